"""``hpcgym list``: the names that options take, and what they mean."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.cli.running import explained
from hpcgym.cli.tables import Format, Sheet, of_rows, show
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files import MEGABYTE, text_of

if TYPE_CHECKING:
    from hpcgym.machine import Cluster
    from hpcgym.own_code import Extension

#: What the cleaning recipes are for.
RECIPES = {
    "default": "glesser, and the run time stands in for a missing requested time",
    "glesser": "drop jobs without run time, request or processors, or larger than the machine; cut"
    " run times at the request (thesis of D. Glesser)",
    "legrand": "as glesser, but jobs that ran longer than requested are dropped (paper of Legrand,"
    " Trystram and Zrigui)",
    "none": "the file as it is",
    "unfinished": "as default, and jobs stay that had not started or ended when the file was"
    " written: for forecasts",
}


#: What the co-schedulers do; rules are in :data:`hpcgym.baselines.schedulers.COSCHEDULERS`.
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


def named(module: str, table: str) -> Callable[[], list[tuple[str, str]]]:
    """Return what lists the names in a table of a module, which is imported then, with meanings."""

    def listed() -> list[tuple[str, str]]:
        entries = getattr(import_module(module), table).items()
        return [
            (name, entry if isinstance(entry, str) else entry.meaning) for name, entry in entries
        ]

    return listed


def meanings(kind: str, ours: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Return the names of ours, and behind them those that only other packages have.

    Parameters
    ----------
    kind : of :data:`hpcgym.own_code.KINDS`.
    ours : name -> what it means.
    """
    from hpcgym.own_code import others

    theirs = [other for name, other in others(kind).items() if name not in ours]
    more = [(other.name, f"{other.source}: {_said_of(other)}") for other in theirs]
    return [*ours.items(), *more]


def _said_of(extension: Extension) -> str:
    """Return what another package says of a thing that it has, in a line; or what is wrong."""
    from hpcgym.machine import find_cluster
    from hpcgym.scheduler.policies.index import parse_policy

    try:
        if extension.kind == "policies":
            return parse_policy(extension.name).meaning
        if extension.kind == "machines":
            return _nodes(find_cluster(extension.name))
        return first_line(extension.load()) or extension.value
    except HpcgymError as error:
        return str(error)


def first_line(named: Any) -> str:
    """Return the first line of what a function or a class says of itself."""
    return (inspect.getdoc(named) or "").partition("\n")[0].removesuffix(".")


def _of_modules(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the first lines of the docstrings of modules, which may need what is not installed."""
    lines = {}
    for name, module in modules.items():
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        text = ast.get_docstring(ast.parse(text_of(Path(spec.origin), MEGABYTE, "a module"))) or ""
        lines[name] = text.partition("\n")[0].removesuffix(".").replace("``", "")
    return lines


def policies() -> Iterable[tuple[str, str]]:
    """Return the policies with what they serve first."""
    from hpcgym.scheduler.policies import POLICIES

    return meanings("policies", {name: policy.meaning for name, policy in POLICIES.items()})


shared_policies = named("hpcgym.scheduler.policies.index", "PASS_POLICIES")
estimates = named("hpcgym.scheduler.estimates", "ESTIMATES")
limit_rules = named("hpcgym.scheduler.rules", "POWER")
allocations = named("hpcgym.scheduler.allocations", "ALLOCATIONS")
coschedulers = named(__name__, "COSCHEDULERS")


def schedulers() -> Iterable[tuple[str, str]]:
    """Return the named schedulers and their rules."""
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.baselines.labels import describe

    rules = {name: describe(scheduler, whole=True) for name, scheduler in SCHEDULERS.items()}
    return meanings("policies", rules)  # whose names are those of schedulers, too


def dispatchers() -> Iterable[tuple[str, str]]:
    """Return the named dispatchers and what they do."""
    from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, IMPROVED

    for name, dispatcher in DISPATCHERS.items():
        if name.endswith(IMPROVED):  # the same as without it
            continue
        needs = "; needs the extra cp" if name in CP_DISPATCHERS else ""
        yield name, dispatcher.meaning + needs


def coscheduling() -> Iterable[tuple[str, str]]:
    """Return the co-schedulers, and the rules that act in CoSchedule."""
    from hpcgym.baselines.labels import describe
    from hpcgym.baselines.schedulers import COSCHEDULERS

    simulated = [(name, describe(scheduler)) for name, scheduler in COSCHEDULERS.items()]
    return [*simulated, *named("hpcgym.baselines.pair_policies", "PAIR_POLICIES")()]


def machines() -> Iterable[tuple[str, str]]:
    """Return the ready-made machines and what their nodes have."""
    from hpcgym.machine import find_cluster
    from hpcgym.machine.files import ready_made

    return meanings("machines", {name: _nodes(find_cluster(name)) for name in ready_made()})


def _nodes(cluster: Cluster) -> str:
    """Return what the nodes of a machine have."""
    kinds = [f"{group.nodes:,} nodes of {_node(group.resources)}" for group in cluster.groups]
    return "; ".join(kinds) or f"{cluster.processors:,} processors"


def _node(resources: Mapping[str, int]) -> str:
    """Return what a node has."""
    from hpcgym.names import MEMORY

    return ", ".join(
        f"{amount / 1000:g} GB" if name == MEMORY else f"{amount} {name}"
        for name, amount in resources.items()
    )


def formats() -> Iterable[tuple[str, str]]:
    """Return the formats of files of jobs, with what their modules say."""
    from hpcgym.workload.load import FORMATS

    modules = {name: place.partition(":")[0] for name, place in FORMATS.items()}
    return meanings("readers", _of_modules(modules))


def generators() -> Iterable[tuple[str, str]]:
    """Return the generators of workloads, with what they say of themselves."""
    from hpcgym.own_code import find
    from hpcgym.workload.generators import GENERATORS

    ours = {name: first_line(find("generators", name, GENERATORS)) for name in GENERATORS}
    return meanings("generators", ours)


def agents() -> Iterable[tuple[str, str]]:
    """Return the agents that need no file: those that the suite trains, and that act or learn."""
    from hpcgym.agents import TRAINED
    from hpcgym.study.evaluation.policies import ACTING, LEARNERS

    places = {**TRAINED, **ACTING, **LEARNERS}
    modules = {name: f"hpcgym.agents.{module}" for name, (module, _) in places.items()}
    return meanings("agents", _of_modules(modules))


def recipes() -> Iterable[tuple[str, str]]:
    """Return the cleaning recipes, and the filters that they consist of."""
    from hpcgym.workload.cleaning import FILTERS

    return [*RECIPES.items(), *FILTERS.items()]


def policy_features() -> Iterable[tuple[str, str]]:
    """Return the features that policies weigh, with what they are."""
    from hpcgym.scheduler.policies.features import meanings

    return list(meanings(usage=True).items())


def in_expressions() -> Iterable[tuple[str, str]]:
    """Return what an expression may name, and its functions."""
    from hpcgym.scheduler.policies.expressions import FUNCTIONS, NAMES, OF_AMOUNTS

    functions = [(f"{name}()", meaning) for name, (_, meaning) in (FUNCTIONS | OF_AMOUNTS).items()]
    return [*NAMES.items(), *functions]


def executors() -> Iterable[tuple[str, str]]:
    """Return the executors with what they are."""
    from hpcgym.study import EXECUTORS

    return EXECUTORS.items()


def ranking_metrics() -> Iterable[tuple[str, str]]:
    """Return the metrics that policies can be ranked by, and what each is."""
    from hpcgym.schedule.metrics import MORE, ranking_metrics

    for metric in ranking_metrics().values():
        more = ": more is better" if metric.better == MORE else ""
        yield metric.name, metric.heading + more


# --- ``hpcgym list`` ------------------------------------------------------------------------------

#: What there are names of -> the options that take them, and what lists them.
KINDS: dict[str, tuple[str, Callable[[], Iterable[tuple[str, str]]]]] = {
    "schedulers": ("--scheduler: bundles of the other options", schedulers),
    "dispatchers": ("--scheduler: programs that say themselves what starts", dispatchers),
    "coschedulers": ("--scheduler where jobs share nodes, with --speedups", coschedulers),
    "policies": ("--policy, --backfill-order", policies),
    "expressions": ("what expressions of --policy may name", in_expressions),
    "pair-policies": ("--policy with --speedups", shared_policies),
    "estimates": ("--estimate, --policy-estimate", estimates),
    "machines": ("--cluster", machines),
    "formats": ("files of jobs, by their content; format= in Python", formats),
    "generators": ("WORKLOAD: NAME:key=value,key=value", generators),
    "agents": ("--agent of suite run, and policies of evaluate", agents),
    "allocations": ("--allocation", allocations),
    "recipes": ("--clean", recipes),
    "features": ("--features of train xnes", policy_features),
    "limit-rules": ("rules under limits in evaluate, alone or as reduce-pc+saf", limit_rules),
    "shared-rules": ("rules of evaluate where jobs share nodes", coscheduling),
    "metrics": ("--metric", ranking_metrics),
    "executors": ("--executor", executors),
}


@explained()
def list_names(kind: str | None = None, format: Format = Format.table) -> None:
    """List the names that options take, with what each means.

    Arguments
    ---------
    kind KIND : The kind of names to list; without it the kinds are listed.

    Examples
    --------
    hpcgym list
    hpcgym list schedulers
    """
    if kind is None:
        rows = [{"kind": name, "for": options} for name, (options, _) in KINDS.items()]
    else:
        check_choice("KIND", kind, KINDS)
        rows = [{"name": name, "meaning": meaning} for name, meaning in KINDS[kind][1]()]
    show(format, lambda: Sheet([], [of_rows(rows)]), lambda: rows)
