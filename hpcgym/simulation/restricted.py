"""Restrictions on when jobs start: quotas, windows, and jobs that follow or stop others."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.elementary import exp2, log2
from hpcgym.errors import HpcgymError, HpcgymWarning, WorkloadError, warn_caller
from hpcgym.machine.partitions import nodes_of_text
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.names import MEMORY
from hpcgym.scheduler.allocations import KILL, UNCORRECTED
from hpcgym.scheduler.asked_for import BY_SUBMISSION, check_scheduler, what_moves
from hpcgym.scheduler.backfilling import BUDGET_PERIOD_S
from hpcgym.scheduler.orders import rankings
from hpcgym.scheduler.rules import Scheduler, plain, read_quotas
from hpcgym.words import counted, first_few, so_many
from hpcgym.workload.amounts import OF_ONE_JOB, amount_called, amount_within, asked_of
from hpcgym.workload.columns import MAX_TIME
from hpcgym.workload.extracts import decided, joined, past_jobs, recorded_run_time
from hpcgym.workload.followers import Following, followed, think_times
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.restrictions import Preemption, Quota, Window


# --- Quotas ---------------------------------------------------------------------------------------
#
# A job that would exceed a quota is passed over, as if it did not wait.

#: The reason by which :func:`within_quotas` counts the jobs that it drops.
OVER_QUOTA = "dropped: asks for more than a quota lets run"
_IN_PYTHON = ": hpcgym.simulation.restricted.within_quotas"


class Bounds(NamedTuple):
    """Bounds of quotas in K columns, each of one of A amounts; they have C counts in all."""

    # (n_jobs, K) the counts that a job is in, -1: none, -2 - count: its quota spares the job
    counts: NDArray[np.int64]
    asks: NDArray[np.int64]  # (n_jobs, A) what each job asks for
    amounts: NDArray[np.int64]  # (K,) the place of the amount of each column
    # (K,) the place of what each second of a run uses up of it, -1: nothing
    rates: NDArray[np.int64]
    of_cluster: NDArray[np.int64]  # (K,) 1: what it bounds are licences that the cluster has
    step: NDArray[np.int64]  # (1,) [s] in which time counts
    left: NDArray[np.int64]  # (C,) how much may still start
    budgets: NDArray[np.int64]  # (K,) 0, or what of use is of it: USED, IN_ALL
    half_lives: NDArray[np.int64]  # (C,) [s] of use, 0: nothing of it is forgotten
    period: NDArray[np.int64]  # (1,) [s] at multiples of which use counts
    # what was used before the beginning, as of a multiple of the period: (C,) and [s] (1,), or none
    used: NDArray[np.float64]
    used_at: NDArray[np.int64]


def check_within(workload: Workload, quotas: Iterable[Quota]) -> None:
    """Raise an error if a job exceeds a quota by itself.

    Raises
    ------
    WorkloadError : there are such jobs; it names the first and tells how many there are.
    """
    for quota in quotas:
        for name, wide in _wide(workload, quota):
            if wide.any():
                job = int(wide.argmax())
                unit = amount_called(name).unit
                asked = -(-int(quota.asked(workload, name)[job]) // unit)
                less = asked < dict(quota.least).get(name, 0)
                what = f"s of {name}" if name in OF_ONE_JOB else name
                if unit == 1 and amount_within(name) == MEMORY:
                    what = f"MB of {name}"
                count = so_many(int(np.count_nonzero(wide)), len(workload))
                raise WorkloadError(
                    f"{workload.name}: {workload.called(job)} asks for {asked} {what},"
                    f" {'less' if less else 'more'} than the quota {quota} lets run: it would wait"
                    f" for ever{count}"
                    f"{_IN_PYTHON}(workload, quotas) drops them"
                )


def within_quotas(workload: Workload, quotas: Any) -> Workload:
    """Return the jobs that each quota lets run; the others are counted in ``cleaning``.

    Such a job asks for more processors, or of another amount, than a quota lets run together. Jobs
    that run at the beginning of an extract stay.

    Parameters
    ----------
    quotas : a text, a file or quotas, as the rule ``quota`` takes them, such as those of all
        schedulers that are compared.

    Raises
    ------
    HpcgymError : no quota.
    WorkloadError : no job is left.
    """
    over = np.zeros(len(workload), np.bool_)
    for quota in read_quotas(quotas):
        for _, wide in _wide(workload, quota):
            over |= wide
    if not over.any():
        return workload
    if over.all():
        raise WorkloadError(f"{workload.name}: no job is within the quotas")
    return workload.take(~over, cleaning={OVER_QUOTA: int(np.count_nonzero(over))})


def _wide(workload: Workload, quota: Quota) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield each amount, and which jobs exceed its bound by themselves, (n_jobs,).

    Never those that run already.

    Raises
    ------
    HpcgymError : an amount that the log does not tell.

    Warns
    -----
    HpcgymWarning : the same of a limit of one job in a table of a site.
    """
    bounds = dict(quota.bounds) if quota.of_a_job else quota.running
    if not bounds and not quota.least:
        return
    bound = (quota.counted(workload) >= 0) & ~quota.spared(workload) & decided(workload)
    for sign, pairs in ((1, bounds.items()), (-1, quota.least)):
        for name, limit in pairs:
            try:
                asked = quota.asked(workload, name)
            except HpcgymError as error:
                if not (quota.of_table and quota.of_a_job):
                    raise
                warn_caller(f"not followed: {error}", HpcgymWarning)
                continue
            yield name, (sign * asked > sign * limit * amount_called(name).unit) & bound


def make_quotas(
    workload: Workload,
    quotas: tuple[Quota, ...],
    period: int = 1,
    use_period: int = BUDGET_PERIOD_S,
) -> Bounds:
    """Return the bounds on what running jobs have, before any job runs.

    ``period``: [s] in which amounts that are weighed by time count it; 0: jobs have all of theirs
    until they end. ``use_period``: [s] likewise, of what jobs have used.
    """
    return _counting(workload, [(quota, quota.running) for quota in quotas], period, use_period)


def make_places(workload: Workload, quotas: tuple[Quota, ...]) -> Bounds:
    """Return the bounds on what jobs have that run or wait, before any job does."""
    return _counting(workload, [(quota, quota.submitted) for quota in quotas])


def columns_of(workload: Workload, bounds: Iterable[tuple[Quota, str]]) -> list[int]:
    """Return the column of :class:`Bounds` that each bound of a quota on an amount stands in.

    Bounds of one amount share a column where no job counts in two of them, such as those of single
    users: what a pass looks at of a job does not grow with them.
    """
    columns: list[int] = []
    filled: list[tuple[str, NDArray[np.bool_]]] = []  # of each column: amount, rows
    for quota, name in bounds:
        rows = quota.counted(workload) >= 0
        free = (k for k, (of, taken) in enumerate(filled) if of == name and not taken[rows].any())
        column = next(free, len(filled))
        if column == len(filled):
            filled.append((name, np.zeros(len(workload), np.bool_)))
        filled[column][1][rows] = True
        columns.append(column)
    return columns


def _counting(
    workload: Workload,
    bounded: Iterable[tuple[Quota, Mapping[str, int]]],
    period: int = 1,
    use_period: int = BUDGET_PERIOD_S,
) -> Bounds:
    """Return some bounds of each quota; ``period`` and ``use_period`` as above."""
    bounds = [(quota, name, most) for quota, most_of in bounded for name, most in most_of.items()]
    columns = columns_of(workload, [(quota, name) for quota, name, _ in bounds])
    of_column = {column: name for column, (_, name, _) in zip(columns, bounds, strict=True)}
    counts = np.full((len(workload), len(of_column)), -1)
    left: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    half_lives: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    used: list[NDArray[np.float64]] = [np.zeros(0)]
    begin = None if workload.initial is None else workload.initial.begin
    now = None if begin is None else (begin - 1) // use_period * use_period
    n_counts = 0
    of_cluster = np.zeros(len(of_column), np.bool_)
    for column, (quota, name, most) in zip(columns, bounds, strict=True):
        of_cluster[column] |= quota.of_cluster(name)
        group, spared = quota.counted(workload), quota.spared(workload)
        rows = np.flatnonzero(group >= 0)
        known = n_counts + group[rows]
        counts[rows, column] = np.where(spared[rows], -2 - known, known)
        n_groups = int(group.max(initial=-1)) + 1
        left.append(np.full(n_groups, most * amount_called(name).unit))
        half_lives.append(np.full(n_groups, quota.half_life_s or 0))
        if now is not None and amount_called(name).budget:
            used.append(_used_before(workload, quota, name, n_groups, now, use_period))
        else:
            used.append(np.zeros(n_groups))
        n_counts += n_groups
    names = [of_column[column] for column in range(len(of_column))]
    budgets = [amount_called(name).budget for name in names]
    weighed = [
        amount_called(name).of if period or budget else ""
        for name, budget in zip(names, budgets, strict=True)
    ]
    amounts = list(dict.fromkeys([*names, *filter(None, weighed)]))
    return Bounds(
        counts,
        asked_of(workload, amounts),
        np.array([amounts.index(name) for name in names], np.int64),
        np.array([amounts.index(name) if name else -1 for name in weighed], np.int64),
        of_cluster.astype(np.int64),
        np.array([period or 1]),
        np.concatenate(left).astype(np.int64),
        np.array(budgets, np.int64),
        np.concatenate(half_lives).astype(np.int64),
        np.array([use_period]),
        np.concatenate(used) if any(part.any() for part in used) else np.zeros(0),
        np.array([now or 0]),
    )


def _used_before(
    workload: Workload, quota: Quota, name: str, n_groups: int, now: int, period: int
) -> NDArray[np.float64]:
    """Return what each group had used as an extract begins, of jobs that had ended, (n_groups,).

    It is as of ``now``, the last multiple of the period, beside what jobs used after that.
    """
    used = np.zeros(n_groups)
    past, _, ends = past_jobs(workload)
    if past is None or not len(past):
        return used
    both = quota.counted(joined(past, workload))
    groups = np.full(int(both.max(initial=-1)) + 2, -1)  # the last is of jobs that do not count
    groups[both[len(past) :]] = quota.counted(workload)
    of_past = groups[both[: len(past)]]
    rows = np.flatnonzero(of_past >= 0)
    rate = asked_of(past, [amount_called(name).of])[rows, 0]
    end = ends[rows]
    seconds = _weighed_run(end - recorded_run_time(past)[rows], end, now, period, quota.half_life_s)
    np.add.at(used, of_past[rows], rate * seconds)
    return used


def _weighed_run(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    now: int,
    period: int,
    half_life: int | None,
) -> NDArray[np.float64]:
    """Return what runs that have ended count for at a multiple of the period, (n,) [s].

    At each multiple, and at its end, a run adds the seconds s since the last one as s f^s, with f
    of what is left after a second, and what was used before is multiplied by f^period.
    """
    if half_life is None:
        return (end - begin).astype(np.float64)
    by_second = float(log2(1.0 - 0.693 / half_life))

    def left(seconds: NDArray[np.int64]) -> NDArray[np.float64]:
        return exp2(np.asarray(seconds * by_second, np.float64))

    first = -(-begin // period) * period  # at or after which all is in whole periods
    last = (end - 1) // period * period
    whole = np.maximum(last - first, 0) // period
    ratio = float(exp2(np.array([period * by_second]))[0])
    some = first <= last
    head, tail = np.where(some, first, end) - begin, np.where(some, end - last, 0)
    seconds = head * left(head) * left(np.maximum(now - np.minimum(first, last), 0))
    of_whole = period * ratio * (1 - left(whole * period)) / (1 - ratio)
    seconds += of_whole * left(np.maximum(now - last, 0))
    return seconds + tail * left(tail) * left(np.maximum(now - last, 0))


# --- Windows --------------------------------------------------------------------------------------
#
# On a machine of nodes a holder, which is no job, has the nodes of a window while it lasts.


class Closing(NamedTuple):
    """Equal nodes, or processors, that a window closes; there is one for each kind of node."""

    begin: int  # [s]
    end: int  # [s]
    processors: int
    nodes: NDArray[np.int64]  # none of a pool
    opened: int = -1  # the place of the window among those that are open to some jobs, -1: none


class Windows(NamedTuple):
    """Windows by their ends, (W,)."""

    begin: NDArray[np.int64]  # [s]
    end: NDArray[np.int64]  # [s]
    # how many processors of a pool are closed; on nodes, the row of the holder: negative, for
    # holders are the last rows of needs, behind all jobs
    taken: NDArray[np.int64]
    nodes: NDArray[np.int64]  # closed nodes, one window after the other; none of a pool


def closings(workload: Workload, scheduler: Scheduler, cluster: Cluster) -> list[Closing]:
    """Return the parts of a machine that the windows of a scheduler close, by their ends.

    Raises
    ------
    HpcgymError : dates without a clock in the log, processors on a machine of nodes, nodes on a
        pool, unknown nodes, or windows that together close more than there is.

    Warns
    -----
    HpcgymWarning : printed windows name nodes that the machine does not have.
    """
    left_out: list[str] = []
    for window in scheduler.maintenance:
        nodes_in(window, cluster, left_out)
    if named := sorted({*left_out}):
        text = f"windows name {counted(len(named), 'node')} that the machine does not have"
        warn_caller(f"{text}: {first_few(named)}", HpcgymWarning)
    opened = itertools.count()
    places = [next(opened) if window.open_to else -1 for window in scheduler.maintenance]
    closed = [
        (window, closing._replace(opened=place))
        for window, place in zip(scheduler.maintenance, places, strict=True)
        for closing in _closings_of(window, workload, cluster)
    ]
    _check_room([pair for pair in closed if pair[1].opened < 0], cluster)
    return sorted((closing for _, closing in closed), key=lambda closing: closing.end)


def barred(workload: Workload, scheduler: Scheduler) -> NDArray[np.int64]:
    """Return 1 for each job that may not use windows which are open to some, (n_jobs, W).

    Those that run as an extract begins may: nothing of a window is theirs to take.
    """
    columns = [~window.may_use(workload) for window in scheduler.maintenance if window.open_to]
    bars = np.array(columns, np.int64).reshape(len(columns), len(workload)).T
    if workload.initial is not None:
        bars[workload.initial.running] = 0
    return bars


def _closings_of(window: Window, workload: Workload, cluster: Cluster) -> list[Closing]:
    """Return the parts of a machine that one window closes."""
    begin, end = window.seconds(workload.header)
    nodes = nodes_in(window, cluster)
    if not cluster.groups:
        return [Closing(begin, end, window.processors or cluster.processors, nodes[:0])]
    rows, kind = np.unique(cluster.capacity[nodes], axis=0, return_inverse=True)
    equal = [nodes[kind.reshape(-1) == k] for k in range(len(rows))]
    sizes = zip(rows[:, 0].tolist(), equal, strict=True)
    return [Closing(begin, end, cores * len(alike), alike) for cores, alike in sizes]


def nodes_in(
    window: Window, cluster: Cluster, left_out: list[str] | None = None
) -> NDArray[np.int64]:
    """Return the nodes that a window closes, ascending; a pool is one node.

    To ``left_out`` are added names of nodes in a printed one that the machine does not have.

    Raises
    ------
    HpcgymError : processors on a machine of nodes, nodes on a pool, or unknown nodes.
    """
    if window.open_to and not cluster.groups:
        raise HpcgymError(
            f"window {window}: nodes are open to some jobs, of which a pool of processors has none;"
            " cluster= has some"
        )
    if window.nodes and not cluster.groups:
        raise HpcgymError(f"window {window}: a pool of processors has no nodes; cluster= has some")
    if window.processors is not None and cluster.groups:
        raise HpcgymError(f"window {window}: of a machine of nodes say which, such as :nodes=0-3")
    if window.processors is not None and window.processors > cluster.processors:
        raise HpcgymError(f"window {window}: the machine has {cluster.processors:,} processors")
    if not window.nodes:
        return np.arange(cluster.nodes)
    sizes = [(group.name, group.nodes) for group in cluster.groups]
    unknown = ([] if left_out is None else left_out) if window.printed else None
    nodes = nodes_of_text(window.nodes, sizes, f"window {window}", unknown)
    return np.unique(nodes).astype(np.int64)


def _check_room(closed: list[tuple[Window, Closing]], cluster: Cluster) -> None:
    """Raise an HpcgymError if windows close more at once than a pool, or a node, has."""
    changes: list[tuple[int, int, Closing]] = []
    for _, closing in closed:
        changes += [(closing.begin, 1, closing), (closing.end, -1, closing)]
    free = cluster.capacity[:, 0].copy()
    for time, sign, closing in sorted(changes, key=lambda change: change[:2]):  # ends come first
        nodes = closing.nodes if cluster.groups else np.zeros(1, np.int64)
        free[nodes] -= sign * closing.processors // len(nodes)
        if free.min(initial=0) < 0:
            short = int(free.argmin())
            what = f"node {cluster.node_names[short]}" if cluster.groups else "the processors"
            at_once = [
                str(window)
                for window, other in closed
                if other.begin <= time < other.end and (not cluster.groups or short in other.nodes)
            ]
            together = f"{' and '.join(at_once)} take more at once than there is"
            raise HpcgymError(f"windows overlap: {together} of {what}")


def make_windows(closings: list[Closing], on_nodes: bool) -> Windows:
    """Return windows that are to come."""
    begin, end, taken = np.array([closing[:3] for closing in closings], np.int64).reshape(-1, 3).T
    nodes = [np.zeros(0, np.int64)]
    if on_nodes:  # holders of the nodes stand behind the jobs
        taken = np.arange(-len(closings), 0, dtype=np.int64)
        nodes += [closing.nodes for closing in closings]
    return Windows(begin, end, taken, np.concatenate(nodes))


def holders_of(
    closings: list[Closing], capacity: NDArray[np.int64], first: int
) -> NDArray[np.int64]:
    """Return the needs of the windows' holders, (n_closings, 2 + R).

    A unit is a whole node, or, where some jobs may use it, all of what the others need there.

    Parameters
    ----------
    capacity : (nodes, R).
    first : the place of the first of the resources that the others need.
    """
    rows = np.zeros((len(closings), 2 + capacity.shape[1]), np.int64)
    rows[:, -1] = 1
    for row, closing in zip(rows, closings, strict=True):
        row[0] = len(closing.nodes)
        if closing.opened < 0:
            row[1:-1] = capacity[closing.nodes[0]]
        else:
            row[1 + first + closing.opened] = ANY_NUMBER
    return rows


# --- Jobs that may stop others --------------------------------------------------------------------

_MODES = ("requeue", "cancel", "suspend")  # by their codes


def preemption_of(workload: Workload, rule: Preemption) -> dict[str, NDArray[Any]]:
    """Return a rule of preemption as arguments of a model."""
    return {
        "group": rule.groups(workload),
        "level": np.array(list(rule.levels.values())),
        "may": rule.may.astype(np.int64),
        "exempt": rule.of_groups(rule.exempt),
        "grace": rule.of_groups(rule.grace),
        "mode": np.array([_MODES.index(rule.mode)]),
    }


# --- Submissions that the schedule makes ----------------------------------------------------------

_SHOWN = 6  # jobs of a ring


def arrivals_of(
    workload: Workload, scheduler: Scheduler, several: bool, outside: bool, ticks: int
) -> dict[str, NDArray[np.int64]]:
    """Return which jobs follow which others, and when jobs come, as arguments of a model.

    Jobs that follow others come once these have ended. Jobs that would exceed a quota of submitted
    jobs wait outside the queue until others that count in it have ended.

    Parameters
    ----------
    several : whether several simulations have parts of the jobs, and do not know of the others.
    outside : whether the order of the queue comes from outside.
    ticks : clock ticks in a second.

    Raises
    ------
    HpcgymError : an order that looks at the log's submit times.
    WorkloadError : jobs that follow each other in a circle, or think times beyond the clock.
    """
    n, rule = len(workload), scheduler.dependencies
    by_arrival = _orders_of_arrival(workload, scheduler)
    by_arrival[0] &= not outside
    none = np.empty(0, np.int64)
    following = Following(none, none, np.zeros(n, np.bool_))
    if rule != "none":
        following = followed(workload)
        _check_following(workload, following, rule)
    by_other = np.argsort(following.other, kind="stable")
    args = {
        "first": np.searchsorted(following.other[by_other], np.arange(n + 1)),
        "followers": following.job[by_other],
        "earliest": workload.submit_time * (ticks * (rule == "after")),
        "by_arrival": by_arrival,
    }
    if not several:
        awaits = np.bincount(following.job, minlength=n)
        return args | {"think": think_times(workload, following, rule) * ticks, "awaits": awaits}
    waited = workload.wait_time  # -1: the log does not tell it
    log_end = np.where(waited < 0, -1, workload.submit_time + waited + workload.run_time)
    think = np.maximum(workload.think_time, -1 if rule == "closed-loop" else 0)
    return args | {"think": think, "log_end": log_end}


def longest_outside(workload: Workload, scheduler: Scheduler) -> float:
    """Return how much longer a schedule may become [s] as jobs are submitted late."""
    if not scheduler.moves_submissions:
        return 0.0
    more = float(len(workload))  # they come at whole seconds
    rule = scheduler.dependencies
    if rule != "none":
        more += float(think_times(workload, followed(workload), rule).sum(dtype=np.float64))
    return more


def _orders_of_arrival(workload: Workload, scheduler: Scheduler) -> NDArray[np.int64]:
    """Return 1 where the primary, or the secondary, order is that of submission.

    Raises
    ------
    HpcgymError : another order that looks at submit times.
    """
    arrivals = []
    rules = ("policy", "backfill_order")
    ranked = rankings(workload, scheduler, shares=True)
    parsed = zip(rules, scheduler.orders, ranked, scheduler.anew, strict=True)
    for rule, order, ranking, anew in parsed:
        arrival = ranking is not None and ranking.by_submission
        arrivals.append(arrival)
        if arrival or ranking is None:
            continue
        assert order is not None  # that of submission was passed over
        names = set(order.weights)
        if order.expression is not None:
            names |= {step.name for step in order.expression.steps if step.name}
        # it looks at waiting time only, and is not by submission: it is the reverse order
        reverse = names == {"wait"} and anew is None
        if reverse or not names.isdisjoint(BY_SUBMISSION):
            raise HpcgymError(
                f"{rule}={scheduler.describe()[rule]!r} looks at when the log says that jobs are"
                f" submitted, and {what_moves(scheduler)} changes that"
            )
    return np.array(arrivals, np.int64)


def _check_following(workload: Workload, following: Following, rule: str) -> None:
    """Raise a WorkloadError for jobs that follow in a circle, or think times beyond the clock."""
    if ring := _ring(following):
        names = [workload.called(job) for job in ring]
        if len(names) > _SHOWN:
            names = [*names[: _SHOWN - 1], "...", names[-1]]
        raise WorkloadError(
            f"{workload.name}: {names[0]} follows a job that follows itself, and would never come:"
            f" {', which follows '.join(names)}"
        )
    total = float(think_times(workload, following, rule).sum(dtype=np.float64))
    if total > MAX_TIME:
        raise WorkloadError(f"{workload.name}: think times are {total:.3g} s together, over 2^53 s")


def _ring(following: Following) -> list[int]:
    """Return jobs in a circle, each of which follows the next; empty if there is no circle.

    The first job stands at the end again.
    """
    if (following.other < following.job).all():  # as in nearly all logs
        return []
    graph: TopologicalSorter[int] = TopologicalSorter()
    for job, other in zip(following.job.tolist(), following.other.tolist(), strict=True):
        graph.add(job, other)
    try:
        graph.prepare()
    except CycleError as error:
        ring: list[int] = error.args[1][:0:-1]
        first = ring.index(min(ring))
        return [*ring[first:], *ring[:first], ring[first]]
    return []


# --- All restrictions -----------------------------------------------------------------------------


def check_restricted(workload: Workload, scheduler: Scheduler, correction: int, place: str) -> None:
    """Check the rules of a simulation with quotas, windows, dependencies or preemption.

    Parameters
    ----------
    correction : its code; UNCORRECTED if no prediction can be too short.
    place : of :data:`hpcgym.scheduler.capabilities.PLACES`.

    Raises
    ------
    HpcgymError : rules that do not go with these restrictions, or predictions that may be too short
        for windows.
    WorkloadError : a job that exceeds a quota by itself, and would wait for ever.

    Warns
    -----
    HpcgymWarning : EASY on nodes, whose reservation differs around windows or with preemption.
    """
    _check_planned(workload, scheduler, place)
    check_within(workload, scheduler.quota)
    if scheduler.maintenance and correction not in (UNCORRECTED, KILL):
        raise HpcgymError(
            f"estimate={scheduler.describe()['estimate']!r} may be too short, and a job would run"
            " into a window: take 'requested', or correction='kill', which ends it in time"
        )
    mode = "" if scheduler.preemption is None else scheduler.preemption.mode
    if scheduler.dependencies != "none" and mode == "cancel":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and {scheduler.said('dependencies')} do"
            " not go together: jobs would follow jobs that are cancelled; take requeue or suspend"
        )
    by_function = scheduler.order.function is not None
    if scheduler.moves_submissions and scheduler.hold is not None and by_function:
        raise HpcgymError(
            f"hold, policy={plain(scheduler.policy)} and {what_moves(scheduler)} do not go"
            " together: the function is called before the jobs come that wait for others to end"
        )
    if scheduler.maintenance and mode == "suspend":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and maintenance windows do not go together:"
            " a suspended job would go on into a window; take requeue or cancel"
        )


def _check_planned(workload: Workload, scheduler: Scheduler, place: str) -> None:
    """Raise or warn as :func:`check_restricted` does, for all restrictions.

    With windows or preemption EASY's reservation on nodes is of named nodes.
    """
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, place, *extract)
    rule = "preemption" if scheduler.preemption is not None else "windows"
    planned = scheduler.preemption is not None or scheduler.maintenance
    if place == "nodes" and planned and scheduler.reserve.one:
        warn_caller(
            f"with {rule} EASY's reservation is of named nodes, and not of an amount of room:"
            " compare with schedules under a window that no job meets",
            HpcgymWarning,
        )


def restrictions_of(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    on_nodes: bool,
    several: bool,
    outside: bool,
    ticks: int,
) -> dict[str, Any]:
    """Return all restrictions as arguments of a model.

    Parameters
    ----------
    several : whether several simulations have parts of the jobs, and do not know of the others.
    outside : whether the order of the queue comes from outside.
    ticks : clock ticks in a second.

    Raises
    ------
    HpcgymError : windows that the machine cannot have, or an order that looks at submit times.
    WorkloadError : a job that follows itself, and would wait for ever.
    """
    reserve = scheduler.reserve
    quotas = make_quotas(workload, scheduler.quota, reserve.counts_time_s, reserve.counts_use_s)
    windows = make_windows(closings(workload, scheduler, cluster), on_nodes)
    arguments: dict[str, Any] = {
        "restrictions": {
            **quotas._asdict(),
            "windows": np.column_stack([windows.begin, windows.end, windows.taken]),
            "window_nodes": windows.nodes,
        }
    }
    if scheduler.moves_submissions:
        places = make_places(workload, scheduler.quota)
        arguments["arrivals"] = {
            **arrivals_of(workload, scheduler, several, outside, ticks),
            **places._asdict(),
        }
    if scheduler.preemption is not None:
        arguments["preemption"] = preemption_of(workload, scheduler.preemption)
    return arguments
