"""Experiments: a small TOML file says which workloads, slices, schedulers and seeds to simulate."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from hpcgym.baselines.schedulers import COSCHEDULERS, SCHEDULERS, scheduler_of
from hpcgym.errors import HpcgymError, check_choice, check_each_once
from hpcgym.files import MOST_TOML, bytes_of, is_there, toml_of
from hpcgym.machine import Cluster
from hpcgym.names import name_problem
from hpcgym.own_code import names_code
from hpcgym.schedule.groups import GROUPED_BY, group_metrics
from hpcgym.schedule.metrics import is_of_resource, known_metrics
from hpcgym.scheduler.limits import read_limits
from hpcgym.scheduler.rules import PREDICTING, RULES, Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.study.sweep.simulations import OWN_RULES, PAIR_ESTIMATES, SEED, Inputs, Source
from hpcgym.workload import Workload

MOST_SHUFFLES = 100_000

_Made = TypeVar("_Made", "Source", "LimitSet")


@dataclass(frozen=True)
class LimitSet:
    """Limits that hold in the same simulations; none: jobs have nodes of their own all the same.

    Attributes
    ----------
    name : what it is called in tables.
    cap, budget : texts, as :func:`hpcgym.scheduler.limits.read_limits` takes them.

    Raises
    ------
    HpcgymError : a name that tables cannot have.
    """

    name: str
    cap: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True)
class Experiment:
    """What is to be simulated: every workload, slice and seed under every scheduler.

    With speedups, limits or shuffles, with each of them.

    Attributes
    ----------
    path : of the file.
    content : of the file.
    inputs : the other files that it names, relative to its folder, with their checksums.
    workloads : at least one.
    schedulers : name -> scheduler, at least one.
    seeds : what ``{seed}`` in a workload stands for.
    metrics : names of the metrics that are kept; none: all.
    by : of :data:`hpcgym.schedule.groups.GROUPED_BY`: those of these metrics that are of jobs
        alone are kept for each class of jobs, or user, too.
    speedups : files of speedups, or generated ones, of jobs that share nodes; none: none do.
    shuffles : seeds of the orders into which jobs are shuffled; none: they come as they are.
    limits : sets of limits of power and energy; none: jobs may share nodes.
    own : scheduler -> rule -> the function or class of the user's that it is, ``module:name``.
    """

    path: Path
    content: bytes
    inputs: Inputs = field(compare=False)
    workloads: tuple[Source, ...]
    schedulers: Mapping[str, Scheduler]
    seeds: tuple[int, ...] = ()
    metrics: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    speedups: tuple[str, ...] = ()
    shuffles: tuple[int, ...] = ()
    limits: tuple[LimitSet, ...] = ()
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Checksum of the file."""
        return hashlib.sha256(self.content).hexdigest()


_NOT_KEYS = ("path", "content", "inputs", "own")  # of an experiment's file


def load_experiment(path: str | Path) -> Experiment:
    """Return the experiment that a TOML file describes.

    The file has ``schedulers``, a list of names and of tables (a ``name`` of one's own, a
    ``scheduler`` to begin with, and rules that differ, a ``dispatcher`` or a ``policy`` also by
    ``module:name``, in the folder of the file first; ``quota`` and ``maintenance`` as on the
    command line, their files relative to that folder); ``[[workloads]]``, tables with the keys of
    ``Source``; and, if wanted, ``seeds``, ``metrics``, ``by`` and ``speedups``, one or
    a list, ``shuffles``, a list of seeds or how many, from 0 on, and ``[[limits]]``, tables with a
    ``name``, ``cap`` and ``budget``.

    Raises
    ------
    HpcgymError : what is wrong with the file, and at which key.
    """
    path = Path(path)
    content = bytes_of(path, MOST_TOML, HpcgymError)
    table = toml_of(content, str(path))
    with at(path):
        known = [
            attribute.name for attribute in fields(Experiment) if attribute.name not in _NOT_KEYS
        ]
        _check_keys("", table, known)
        inputs = Inputs(path.parent)
        workloads = [_made(Source, *entry) for entry in _entries(table, "workloads", dict)]
        given = _entries(table, "schedulers", str, dict)
        schedulers = [_scheduler(where, entry, inputs) for where, entry in given]
        lists: dict[str, Any] = {
            key: tuple(entry for _, entry in _entries(table, key, kind, needed=False))
            for key, kind in (("seeds", int), ("metrics", str), ("by", str), ("speedups", str))
        }
        limits = [
            _made(LimitSet, *entry) for entry in _entries(table, "limits", dict, needed=False)
        ]
        lists["shuffles"] = _shuffles(table)
        named = {
            "workloads": [source.name for source in workloads],
            "schedulers": [name for name, _ in schedulers],
            "limits": [limit_set.name for limit_set in limits],
        }
        for key, values in (lists | named).items():
            check_each_once(key, values)
        own = {entry["name"]: _own(entry) for _, entry in given if isinstance(entry, dict)}
        experiment = Experiment(
            path, content, inputs, tuple(workloads), dict(schedulers), **lists,
            limits=tuple(limits), own={name: rules for name, rules in own.items() if rules},
        )  # fmt: skip
        _check_seeds(experiment)
        _check_metrics(experiment)
        _check_together(experiment)
        return experiment


# --- What the file says, one entry after another --------------------------------------------------


@contextmanager
def at(where: object) -> Iterator[None]:
    """Put a place before what is said to be wrong there."""
    try:
        yield
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {error}") from None


_WORDS = {str: "a text", int: "a whole number", dict: "a table"}


def _made(kind: type[_Made], where: str, entry: dict[str, Any]) -> _Made:
    """Return what a table of the file says, whose keys are fields: a text, a number, or texts."""
    _check_keys(where, entry, [attribute.name for attribute in fields(kind)])
    for attribute in fields(kind):
        if attribute.default is MISSING and attribute.name not in entry:
            raise HpcgymError(f"{where}.{attribute.name} is missing")
    given: dict[str, Any] = {}
    for key, value in entry.items():
        wanted, *more = get_args(hint := get_type_hints(kind)[key]) or (hint,)
        several = ... in more
        values = value if several and isinstance(value, list) else [value]
        for single in values:
            if type(single) is not wanted:
                listed = ", or a list of texts" if several else ""
                raise HpcgymError(f"{where}.{key} must be {_WORDS[wanted]}{listed}, not {value!r}")
        given[key] = tuple(values) if several else value
    with at(where):
        return kind(**given)


def _scheduler(where: str, entry: str | dict[str, Any], inputs: Inputs) -> tuple[str, Scheduler]:
    """Return the name and the rules of a scheduler of the file."""
    if isinstance(entry, str):
        with at(where):
            return entry, scheduler_of(entry, {})
    _check_keys(where, entry, ("name", "scheduler", *RULES))
    begin = entry.get("scheduler", "easy")
    with at(where):
        name = _check_name(entry.get("name"))
        if name in SCHEDULERS or name in COSCHEDULERS:
            raise HpcgymError(f"name: {name!r} stands for a scheduler; choose another")
        scheduler_of(begin, {})
    rules = {key: value for key, value in entry.items() if key in RULES}
    for rule, value in rules.items():
        with at(f"{where}.{rule}"):
            rules[rule] = _rule(rule, value, inputs)
    with at(where):
        return name, scheduler_of(begin, rules)


def _rule(rule: str, value: Any, inputs: Inputs) -> Any:
    """Return the value of a rule: code of the user's, what a file has, or what the entry says."""
    if rule in PREDICTING and not isinstance(value, str):
        raise HpcgymError(f"must be a name, not {value!r}")
    if rule in OWN_RULES and names_code(value):
        return inputs.rule(value)
    if rule == "pair_estimate" and isinstance(value, str) and value not in PAIR_ESTIMATES:
        return inputs.speedups(value)
    if rule in ("quota", "maintenance", "fair_share") and isinstance(value, str):
        path = inputs.folder / os.path.expanduser(value)
        if is_there(path) or (rule == "fair_share" and value.endswith(".toml")):
            return str(path)
    return value


def _own(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the rules of an entry that are code of the user's."""
    return {rule: entry[rule] for rule in OWN_RULES if names_code(entry.get(rule))}


def _check_name(name: Any) -> str:
    """Return a name that tables can have, or raise an HpcgymError."""
    if not isinstance(name, str) or not name:
        raise HpcgymError("name must say what it is called in tables")
    if problem := name_problem(name):
        raise HpcgymError(f"name must be {problem}")
    return name


def _shuffles(table: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the seeds of the shuffles of the file, which has a list, or how many."""
    given = table.get("shuffles")
    if "shuffles" not in table:
        return ()
    if type(given) is int and 1 <= given <= MOST_SHUFFLES:
        return tuple(range(given))
    seeds = given if isinstance(given, list) else []
    if 1 <= len(seeds) <= MOST_SHUFFLES and all(type(seed) is int and seed >= 0 for seed in seeds):
        return tuple(seeds)
    raise HpcgymError(
        f"shuffles must be how many, from 1 to {MOST_SHUFFLES:,}, or a list of seeds of at least 0,"
        f" not {given!r}"
    )


def _entries(
    table: Mapping[str, Any], key: str, *kinds: type, needed: bool = True
) -> list[tuple[str, Any]]:
    """Return the entries of a list of the file, each with its place; a text may stand alone.

    ``needed``: it has to be there, with at least one entry.
    """
    wanted = " or ".join(_WORDS[kind] for kind in kinds)
    if key not in table:
        if not needed:
            return []
        how = f"[[{key}]]" if kinds == (dict,) else f"{key} = [...]"
        raise HpcgymError(f"{key} is missing: {how}")
    entries = table[key]
    if kinds == (str,) and isinstance(entries, str):
        entries = [entries]
    if not isinstance(entries, list) or not entries:
        raise HpcgymError(f"{key} must be a list, each entry {wanted}, not {entries!r}")
    for place, entry in enumerate(entries):
        if type(entry) not in kinds:
            raise HpcgymError(f"{key}[{place}] must be {wanted}, not {entry!r}")
    return [(f"{key}[{place}]", entry) for place, entry in enumerate(entries)]


def _check_keys(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    known = list(known)
    for key in table:
        check_choice(f"key of {where}" if where else "key", key, known)


# --- What goes together ---------------------------------------------------------------------------


def _check_seeds(experiment: Experiment) -> None:
    """Raise unless there are seeds if, and only if, some workload has a place for them."""
    workloads = experiment.workloads
    seeded = [place for place, source in enumerate(workloads) if SEED in source.workload]
    if seeded and not experiment.seeds:
        raise HpcgymError(f"workloads[{seeded[0]}].workload has {SEED}: say which in seeds = [...]")
    if experiment.seeds and not seeded:
        raise HpcgymError(f"seeds are given, but no workload has {SEED} in it")
    for place, source in enumerate(workloads):
        if source.codes is not None and not experiment.speedups:
            raise HpcgymError(f"workloads[{place}].codes needs speedups, which have the codes")


def _check_metrics(experiment: Experiment) -> None:
    """Raise unless simulations have these metrics, some of jobs if they are of groups too."""
    metrics, by, limits = experiment.metrics, experiment.by, experiment.limits
    of = {
        "": True,
        "shared nodes": bool(experiment.speedups),
        "caps": any(limit_set.cap for limit_set in limits),
        "budgets": any(limit_set.budget for limit_set in limits),
        "dispatch time": any(
            scheduler.dispatch_time for scheduler in experiment.schedulers.values()
        ),
    }
    every = known_metrics().items()
    known = [
        name for name, metric in every if metric.formula is not None and of.get(metric.of, False)
    ]
    known += filter(is_of_resource, metrics)
    for place, name in enumerate(metrics):
        check_choice(f"metrics[{place}]", name, known)
    for name in by:
        check_choice("by", name, GROUPED_BY)
    if by and metrics and not {*metrics} & {*group_metrics()}:
        raise HpcgymError(f"by: {metrics[0]} is not one of groups of jobs, such as mean_bsld")


def _check_together(experiment: Experiment) -> None:
    """Simulate no jobs, on each machine in each way: what cannot be simulated is said at once."""
    inputs = experiment.inputs
    heatmaps: list[tuple[str, Any]] = []
    for place, text in enumerate(experiment.speedups):
        with at(f"speedups[{place}]"):
            heatmaps.append((f" with speedups[{place}]", inputs.speedups(text)))
    limited = enumerate(experiment.limits)
    sets: list[tuple[str, Any]] = [
        (f" under limits[{place}]", limit_set) for place, limit_set in limited
    ]
    ways = [*product(sets or [("", None)], heatmaps or [("", None)])]
    machines: dict[str | None, int] = {}
    for place, source in enumerate(experiment.workloads):
        machines.setdefault(source.cluster, place)
    for name, place in machines.items():
        on = f" on workloads[{place}]"
        with at(f"workloads[{place}].cluster"):
            # the size of a pool may be in a log that is yet to be read
            machine = Cluster(2**20) if name is None else inputs.machine(name)
        nobody = Workload.from_columns({"submit_time": []}, processors=machine.processors)
        for (under, limit_set), (beside, pairs) in ways:
            limits = None
            if limit_set is not None:
                with at(f"{under.removeprefix(' under ')}{on}"):
                    limits = read_limits(machine, limit_set.cap, limit_set.budget)
            for number, scheduler in enumerate(experiment.schedulers.values()):
                with at(f"schedulers[{number}]{under}{beside}{on}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of jobs that are not here
                    how: dict[str, Any] = {"cluster": machine, "limits": limits, "speedups": pairs}
                    simulate(nobody, scheduler, **how)
