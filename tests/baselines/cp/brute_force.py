"""The least total slowdown of a small dispatching problem, found by trying everything.

Slow and obvious: it shares nothing with the models. A machine is a list of nodes, each a tuple of
what it has of each resource; it counts what is free and knows no positions.

Total slowdown only grows with the starts, so some best schedule has no job that could start earlier
with all others as they are. Such a schedule is what comes of taking its jobs in the order of their
starts and starting each as soon as its nodes have room for as long as it runs. All orders, and for
each job all nodes for its units, are tried; a branch is left when it cannot beat the best so far.
"""

from fractions import Fraction
from itertools import combinations_with_replacement

# A job: (units, demand of one unit, duration). What runs: (node, amounts taken, end).


def least_slowdown(nodes, running, jobs, waits):
    """Return the least sum of (wait + start + duration) / duration, as a fraction; times from now.

    nodes: a tuple of amounts for each node. running: (node, amounts, end). jobs: (units, demand,
    duration), units all alike. waits: seconds that each job has waited.
    """
    fixed = sum(Fraction(w + d, d) for w, (_, _, d) in zip(waits, jobs, strict=True))
    busy = [(node, amounts, 0, end) for node, amounts, end in running]
    best = [None]
    _search(nodes, busy, dict(enumerate(jobs)), (0, -1), Fraction(0), best)
    return fixed + best[0]


def _search(nodes, busy, left, last, so_far, best):
    """Try all that is left; ``last`` is the start and the number of the job before."""
    at_least = so_far + sum(Fraction(last[0], duration) for _, _, duration in left.values())
    if best[0] is not None and at_least >= best[0]:
        return
    if not left:
        best[0] = so_far
        return
    options = []
    for number, (units, demand, duration) in left.items():
        for chosen in _choices(nodes, busy, units):
            start = _first_start(nodes, busy, chosen, demand, duration)
            # in the order of starts, equal ones by number: all else belongs to another order
            if start is not None and (start, number) > last:
                options.append((start, number, chosen))
    for start, number, chosen in sorted(options):
        _, demand, duration = left[number]
        here = [(node, demand, start, start + duration) for node in chosen]
        others = {other: job for other, job in left.items() if other != number}
        cost = so_far + Fraction(start, duration)
        _search(nodes, busy + here, others, (start, number), cost, best)


def _choices(nodes, busy, units):
    """Return the ways to spread units over nodes; of nodes that are the same, any will do."""
    looks = [
        (amounts, sorted(entry[1:] for entry in busy if entry[0] == node))
        for node, amounts in enumerate(nodes)
    ]
    known = []
    for chosen in combinations_with_replacement(range(len(nodes)), units):
        pattern = sorted((looks[node], chosen.count(node)) for node in set(chosen))
        if pattern not in [seen for seen, _ in known]:
            known.append((pattern, chosen))
    return [chosen for _, chosen in known]


def _first_start(nodes, busy, chosen, demand, duration):
    """Return when the units find room on these nodes at once; None: they never do."""
    for start in sorted({0} | {end for _, _, _, end in busy}):
        if _room(nodes, busy, chosen, demand, start, start + duration):
            return start
    return None


def _room(nodes, busy, chosen, demand, start, end):
    moments = [start] + [begin for _, _, begin, _ in busy if start < begin < end]
    return all(
        _taken(busy, node, moment, r) + chosen.count(node) * demand[r] <= nodes[node][r]
        for node in set(chosen)
        for moment in moments
        for r in range(len(demand))
    )


def _taken(busy, node, moment, resource):
    return sum(
        amounts[resource]
        for at, amounts, begin, finish in busy
        if at == node and begin <= moment < finish
    )
