"""What the names that options take mean, for the help of commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: What the cleaning recipes are for.
RECIPES = {
    "default": "glesser, and the run time stands in for a missing requested time",
    "glesser": "drop jobs without run time, request or processors, or larger than the machine; cut"
    " run times at the request (thesis of D. Glesser)",
    "legrand": "as glesser, but jobs that ran longer than requested are dropped (paper of Legrand,"
    " Trystram and Zrigui)",
    "none": "the file as it is",
}


#: What the co-schedulers do; rules are in :data:`hpcgym.baselines.coschedulers.COSCHEDULERS`.
COSCHEDULERS = {
    "easy-co": "in order of arrival, with EASY's reservation for the first that waits",
    "sjf-co": "the job that requests the shortest time first, EASY",
    "ljf-co": "the job that requests the longest time first, EASY",
    "largest-co": "the job with most processes first, EASY",
    "popularity-co": "the job that gains beside most of the others that wait first, EASY",
    "filler-co": "what fits best into what is free, whoever waits",
    "sjf-filler-co": "the same, weighed with how short a job is",
    "popularity-filler-co": "the same, weighed with how many others a job gains beside",
    "easy-spread": "EASY, each job on half of each socket of nodes of its own",
}


def schedulers() -> Iterable[tuple[str, str]]:
    """Return the named schedulers and their rules."""
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.baselines.labels import describe

    return [(name, describe(scheduler)) for name, scheduler in SCHEDULERS.items()]


def coschedulers() -> Iterable[tuple[str, str]]:
    """Return the named co-schedulers and what they do."""
    return list(COSCHEDULERS.items())


def dispatchers() -> Iterable[tuple[str, str]]:
    """Return the named dispatchers and what they do."""
    from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS

    for name, dispatcher in DISPATCHERS.items():
        needs = "; needs the extra cp" if name in CP_DISPATCHERS else ""
        yield name, dispatcher.meaning + needs


def coscheduling() -> Iterable[tuple[str, str]]:
    """Return the co-schedulers, and the rules that act in CoSchedule."""
    from hpcgym.baselines.coschedulers import COSCHEDULERS
    from hpcgym.baselines.labels import describe
    from hpcgym.baselines.pair_policies import PAIR_POLICIES

    simulated = [(name, describe(scheduler)) for name, scheduler in COSCHEDULERS.items()]
    return [*simulated, *((name, rule.meaning) for name, rule in PAIR_POLICIES.items())]


def limit_rules() -> Iterable[tuple[str, str]]:
    """Return how limits of power and energy are kept."""
    from hpcgym.scheduler.rules import POWER

    return list(POWER.items())


def machines() -> Iterable[tuple[str, str]]:
    """Return the ready-made machines and what their nodes have."""
    from hpcgym.cluster import find_cluster, machine_names

    for name in machine_names():
        cluster = find_cluster(name)
        kinds = (f"{group.nodes:,} nodes of {_node(group.resources)}" for group in cluster.groups)
        yield name, "; ".join(kinds)


def _node(resources: Mapping[str, int]) -> str:
    """Return what a node has."""
    from hpcgym.naming import MEMORY

    return ", ".join(
        f"{amount / 1000:g} GB" if name == MEMORY else f"{amount} {name}"
        for name, amount in resources.items()
    )


def recipes() -> Iterable[tuple[str, str]]:
    """Return the cleaning recipes, and the filters that they consist of."""
    from hpcgym.workload.cleaning import FILTERS

    filters = [(name, _first_line(function.__doc__)) for name, function in FILTERS.items()]
    return [*RECIPES.items(), *filters]


def policies() -> Iterable[tuple[str, str]]:
    """Return the index policies and what they serve first."""
    from hpcgym.scheduler.policies import POLICIES

    return [(name, policy.meaning) for name, policy in POLICIES.items()]


def in_expressions() -> Iterable[tuple[str, str]]:
    """Return what an expression may name, and its functions."""
    from hpcgym.scheduler.policies.expressions import NAMES
    from hpcgym.scheduler.policies.grammar import FUNCTIONS

    functions = [(f"{name}()", meaning) for name, (_, meaning) in FUNCTIONS.items()]
    return [*NAMES.items(), *functions]


def estimates() -> Iterable[tuple[str, str]]:
    """Return the estimates of run times and what they are."""
    from hpcgym.scheduler.estimates import ESTIMATES

    return [(name, estimate.meaning) for name, estimate in ESTIMATES.items()]


def shared_policies() -> Iterable[tuple[str, str]]:
    """Return the policies of jobs that share nodes and what they serve first."""
    from hpcgym.scheduler.policies.index import PASS_POLICIES

    return [(name, policy.meaning) for name, policy in PASS_POLICIES.items()]


def _first_line(text: str | None) -> str:
    """Return the first line of a docstring as it stands in a list."""
    line = (text or "").strip().splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]


def ranking_metrics() -> Iterable[tuple[str, str]]:
    """Return the metrics that policies can be ranked by, and what each is."""
    from hpcgym.schedule.metrics import MORE, ranking_metrics

    for metric in ranking_metrics().values():
        more = ": more is better" if metric.better == MORE else ""
        yield metric.name, metric.heading + more


#: What help lists of commands that read jobs for a machine: title -> names and meanings.
OF_READING = {
    "Machines (--cluster)": machines,
    "Cleaning recipes and filters (--clean)": recipes,
}
