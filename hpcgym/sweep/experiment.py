"""Experiments: a small TOML file says which workloads, slices, schedulers and seeds to simulate."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hpcgym.baselines.schedulers import COSCHEDULERS, SCHEDULERS, find_scheduler
from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError, check_choice, check_each_once
from hpcgym.files import MOST_TOML, bytes_of, toml_of
from hpcgym.naming import MOST_OF_LIST, name_problem
from hpcgym.schedule.measures import GROUPED_BY, group_metrics
from hpcgym.schedule.metrics import known_metrics
from hpcgym.scheduler.asked_for import check_fair_share
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.limits import PowerCap, check_limits, read_limits
from hpcgym.scheduler.own_code import names_code, own_rule
from hpcgym.scheduler.restrictions import read_windows
from hpcgym.scheduler.rules import Scheduler, read_quotas
from hpcgym.simulation.corun import PairLearning, check_machine, check_shared, check_together
from hpcgym.simulation.limited import (
    check_for_limits,
    check_off_as_idle,
    check_power_rule,
    may_switch,
    node_power,
    nodes_off,
)
from hpcgym.sweep.simulations import (
    OWN_RULES,
    PAIR_ESTIMATES,
    load_machine,
    machine_file,
    note,
    read_speedups_of,
)
from hpcgym.sweep.source import KINDS, SEED, SLICES, LimitSet, Source
from hpcgym.workload.cleaning import filter_names
from hpcgym.workload.io.files import check_errors

MOST_SHUFFLES = 100_000


def _names(kind: type[Any]) -> tuple[str, ...]:
    """Return what a table of the file may say: the fields of what is made of it."""
    return tuple(field.name for field in fields(kind))


_RULES = _names(Scheduler)
#: Rules that are texts, or files in the experiment's folder.
_READ = {"quota": read_quotas, "maintenance": read_windows}
_NOT_KEYS = ("path", "sha256", "own")  # of an experiment's file


@dataclass(frozen=True)
class Experiment:
    """What is to be simulated: every workload, slice and seed under every scheduler.

    With speedups, limits or shuffles, with each of them.

    Attributes
    ----------
    path : of the file; names of other files in it are relative to its folder.
    sha256 : checksum of the file.
    workloads : at least one.
    schedulers : name -> scheduler, at least one.
    seeds : what ``{seed}`` in a workload stands for.
    metrics : names of the metrics that are kept; none: all.
    by : of :data:`hpcgym.schedule.measures.GROUPED_BY`: those of these metrics that are of jobs
        alone are kept for each class of jobs, or user, too.
    speedups : files of speedups, or generated ones, of jobs that share nodes; none: none do.
    shuffles : seeds of the orders into which jobs are shuffled; none: they come as they are.
    limits : sets of limits of power and energy; none: jobs may share nodes.
    own : scheduler -> rule -> the function or class of the user's that it is, ``module:name``.
    """

    path: Path
    sha256: str
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
    def folder(self) -> Path:
        """What names of files are relative to."""
        return self.path.parent


def load_experiment(path: str | Path) -> Experiment:
    """Return the experiment that a TOML file describes.

    The file has ``schedulers``, a list of names and of tables (a ``name`` of one's own, a
    ``scheduler`` to begin with, and rules that differ, a ``dispatcher`` or a ``policy`` also by
    ``module:name``, in the folder of the file first; ``quota`` and ``maintenance`` as on the
    command line, their files relative to that folder); ``[[workloads]]``, tables with the keys of
    :class:`Source`; and, if wanted, ``seeds``, ``metrics``, ``by`` and ``speedups``, one or
    a list, ``shuffles``, a list of seeds or how many, from 0 on, and ``[[limits]]``, tables with
    the keys of :class:`LimitSet`.

    Raises
    ------
    HpcgymError : what is wrong with the file, and at which key.
    """
    path = Path(path)
    content = bytes_of(path, MOST_TOML, HpcgymError)
    table = toml_of(content, str(path))
    try:
        return _experiment(table, path, hashlib.sha256(content).hexdigest())
    except HpcgymError as error:
        raise HpcgymError(f"{path}: {error}") from None


def _experiment(table: Mapping[str, Any], path: Path, sha256: str) -> Experiment:
    _check_keys("", table, [key for key in _names(Experiment) if key not in _NOT_KEYS])
    folder = path.parent
    workloads = [_source(*entry) for entry in _entries(table, "workloads", dict)]
    given = _entries(table, "schedulers", str, dict)
    schedulers = [_scheduler(where, entry, folder) for where, entry in given]
    seeds, metrics, by, speedups = (
        [entry for _, entry in _entries(table, key, kind, needed=False)]
        for key, kind in (("seeds", int), ("metrics", str), ("by", str), ("speedups", str))
    )
    limits = [_limit_set(*entry) for entry in _entries(table, "limits", dict, needed=False)]
    shuffles = _shuffles(table)
    for key, values in (
        ("workloads", [source.name for source in workloads]),
        ("schedulers", [name for name, _ in schedulers]),
        ("seeds", seeds),
        ("metrics", metrics),
        ("by", by),
        ("speedups", speedups),
        ("shuffles", shuffles),
        ("limits", [one.name for one in limits]),
    ):
        check_each_once(key, values)
    _check_seeds(workloads, seeds)
    if limits and speedups:
        check(words={"limits": "limits", "shared nodes": "speedups"})
    made = dict(schedulers)
    machines = [_machine_of(f"workloads[{k}]", one, folder) for k, one in enumerate(workloads)]
    _check_sharing(workloads, machines, made, speedups, folder)
    _check_limited(machines, made, limits)
    _check_metrics(metrics, by, made, speedups, limits)
    own = {entry["name"]: _own(entry) for _, entry in given if isinstance(entry, dict)}
    return Experiment(
        path, sha256, tuple(workloads), made, tuple(seeds), tuple(metrics), tuple(by),
        tuple(speedups), shuffles, tuple(limits), {name: one for name, one in own.items() if one},
    )  # fmt: skip


# --- What the file says, one entry after another --------------------------------------------------


def _source(where: str, entry: dict[str, Any]) -> Source:
    """Return a workload of the file, checked as far as can be without reading it."""
    _check_keys(where, entry, KINDS)
    if "workload" not in entry:
        raise HpcgymError(f"{where}.workload is missing: a file, a trace or a generator")
    for key, value in entry.items():
        if type(value) is not KINDS[key]:
            word = "a text" if KINDS[key] is str else "a whole number"
            raise HpcgymError(f"{where}.{key} must be {word}, not {value!r}")
    source = Source(**{"name": entry["workload"], **entry})
    if problem := name_problem(source.name, MOST_OF_LIST):
        raise HpcgymError(f"{where}.name must be {problem}")
    at(f"{where}.clean", filter_names, source.clean)
    at(f"{where}.errors", check_errors, source.errors)
    if source.processors is not None and source.processors < 1:
        raise HpcgymError(f"{where}.processors must be at least 1, not {source.processors}")
    if source.processors is not None and source.cluster is not None:
        raise HpcgymError(f"{where}: either cluster or processors, not both")
    if source.codes is not None and source.codes < 0:
        raise HpcgymError(f"{where}.codes is a seed of at least 0, not {source.codes}")
    check_choice(f"{where}.slices", source.slices, SLICES)
    for key in ("first", "last"):
        if key in entry and source.slices == "whole":
            raise HpcgymError(f"{where}.{key} needs slices = 'weeks' or 'months'")
    if source.last is not None and source.last < source.first:
        raise HpcgymError(f"{where}.last is {source.last}, before first, {source.first}")
    return source


def _scheduler(where: str, entry: str | dict[str, Any], folder: Path) -> tuple[str, Scheduler]:
    """Return the name and the rules of a scheduler of the file, which is in ``folder``."""
    if isinstance(entry, str):
        return entry, at(where, find_scheduler, entry)
    _check_keys(where, entry, ("name", "scheduler", *_RULES))
    name = _named(where, entry.get("name"), "the scheduler is called")
    if name in SCHEDULERS or name in COSCHEDULERS:
        raise HpcgymError(f"{where}.name: {name!r} stands for a scheduler; choose another")
    begin = at(f"{where}.scheduler", find_scheduler, entry.get("scheduler", "easy"))
    rules = {key: value for key, value in entry.items() if key in _RULES}
    for rule in ("estimate", "policy_estimate"):
        if not isinstance(rules.get(rule, ""), str):
            raise HpcgymError(f"{where}.{rule} must be a name, not {rules[rule]!r}")
    rules |= {
        rule: at(f"{where}.{rule}", own_rule, text, folder) for rule, text in _own(entry).items()
    }
    for rule, read in _READ.items():
        if rule in rules:
            rules[rule] = at(f"{where}.{rule}", read, _beside(rules[rule], folder))
    shares = rules.get("fair_share")
    if isinstance(shares, str) and shares.endswith(".toml"):
        rules["fair_share"] = str(folder / shares)
    if isinstance(rules.get("pair_estimate"), str):
        text = rules["pair_estimate"]
        if text not in PAIR_ESTIMATES:
            rules["pair_estimate"] = at(
                f"{where}.pair_estimate", read_speedups_of, text, folder, {}
            )
    scheduler = at(where, begin.but, **rules)
    at(where, check_fair_share, rules.get("fair_share"), any(scheduler.usage_orders))
    return name, scheduler


def _beside(text: Any, folder: Path) -> Any:
    """Return the path of a file in a folder, if there is one of that name; else what is given."""
    path = folder / os.path.expanduser(text) if isinstance(text, str) else folder
    return str(path) if os.path.isfile(path) else text


def _own(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the rules of an entry that are code of the user's."""
    return {rule: entry[rule] for rule in OWN_RULES if names_code(entry.get(rule))}


def _check_seeds(workloads: Iterable[Source], seeds: Sequence[int]) -> None:
    """Raise unless there are seeds if, and only if, some workload has a place for them."""
    seeded = [place for place, source in enumerate(workloads) if SEED in source.workload]
    if seeded and not seeds:
        raise HpcgymError(f"workloads[{seeded[0]}].workload has {SEED}: say which in seeds = [...]")
    if seeds and not seeded:
        raise HpcgymError(f"seeds are given, but no workload has {SEED} in it")


def _limit_set(where: str, entry: dict[str, Any]) -> LimitSet:
    """Return a set of limits of the file."""
    _check_keys(where, entry, _names(LimitSet))
    name = _named(where, entry.get("name"), "these limits are called")
    texts = {key: _texts(f"{where}.{key}", entry[key]) for key in entry if key != "name"}
    return LimitSet(name, **texts)


def _named(where: str, name: Any, what: str) -> str:
    """Return a name that tables can have, or raise an HpcgymError."""
    if not isinstance(name, str) or not name:
        raise HpcgymError(f"{where}.name must say what {what} in tables")
    if problem := name_problem(name):
        raise HpcgymError(f"{where}.name must be {problem}")
    return name


def _texts(where: str, given: Any) -> tuple[str, ...]:
    """Return the texts of a key that has one, or a list."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise HpcgymError(
            f"{where} must be a text, such as 'percent=60,start=0,end=3600', or a list of texts,"
            f" not {given!r}"
        )
    return tuple(texts)


def _shuffles(table: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the seeds of the shuffles of the file, which has a list, or how many."""
    given = table.get("shuffles")
    if "shuffles" not in table:
        return ()
    if type(given) is int and 1 <= given <= MOST_SHUFFLES:
        return tuple(range(given))
    seeds = given if isinstance(given, list) else []
    if 1 <= len(seeds) <= MOST_SHUFFLES and all(type(one) is int and one >= 0 for one in seeds):
        return tuple(seeds)
    raise HpcgymError(
        f"shuffles must be how many, from 1 to {MOST_SHUFFLES:,}, or a list of seeds of at least 0,"
        f" not {given!r}"
    )


def _entries(
    table: Mapping[str, Any], key: str, *kinds: type, needed: bool = True
) -> list[tuple[str, Any]]:
    """Return the entries of a list of the file, each with its place; a name may stand alone.

    ``needed``: it has to be there, with at least one entry.
    """
    words = {str: "a name", dict: "a table", int: "a whole number"}
    wanted = " or ".join(words[kind] for kind in kinds)
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


def at(where: str, check: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a check, and name the key if it objects."""
    try:
        return check(*args, **kwargs)
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {error}") from None


# --- What goes together ---------------------------------------------------------------------------


def _machine_of(where: str, source: Source, folder: Path) -> Cluster | None:
    """Return the machine of a workload, None of a pool."""
    if source.cluster is None:
        return None
    found: dict[str, str] = {}

    def read(text: str) -> Cluster:
        note(text, machine_file(text, folder), found)
        return load_machine(text, str(folder), found.get(text, ""))

    machine: Cluster = at(f"{where}.cluster", read, source.cluster)
    return machine


def _check_sharing(
    workloads: Sequence[Source],
    machines: Sequence[Cluster | None],
    schedulers: Mapping[str, Scheduler],
    speedups: Sequence[str],
    folder: Path,
) -> None:
    """Raise an HpcgymError unless machines, schedulers and speedups go together."""
    heatmaps = [
        at(f"speedups[{place}]", read_speedups_of, text, folder, {})
        for place, text in enumerate(speedups)
    ]
    for place, (source, machine) in enumerate(zip(workloads, machines, strict=True)):
        where = f"workloads[{place}].cluster"
        if not speedups and source.codes is not None:
            raise HpcgymError(f"workloads[{place}].codes needs speedups, which have the codes")
        if speedups and machine is None:
            raise HpcgymError(
                f"{where} is missing: speedups are of jobs on nodes; such as '100x2x24', nodes"
                " x sockets x cores"
            )
        if speedups:
            at(where, check_machine, machine)
    for where, name, scheduler in _placed(schedulers):
        if not speedups and scheduler.coschedules:
            raise HpcgymError(
                f"{where}: jobs share nodes under {name!r}; speedups = FILE or 'generated:...' says"
                " how fast they run then"
            )
        if speedups:
            at(where, check_shared, scheduler)
        for heatmap in heatmaps:
            at(where, PairLearning.of, scheduler, heatmap)  # knows all codes
        for number, machine in enumerate(machines if speedups else ()):
            at(f"{where} on workloads[{number}].cluster", check_together, scheduler, machine)


def _check_limited(
    machines: Sequence[Cluster | None],
    schedulers: Mapping[str, Scheduler],
    sets: Sequence[LimitSet],
) -> None:
    """Raise an HpcgymError unless machines, schedulers and limits go together."""
    for where, _, scheduler in _placed(schedulers):
        if sets:
            at(where, check_for_limits, scheduler)
        else:
            at(where, check_power_rule, scheduler, None)
    needed = any(one.cap or one.budget for one in sets)
    for number, machine in enumerate(machines if sets else ()):
        on = f"workloads[{number}]"
        if machine is None:
            raise HpcgymError(
                f"{on}.cluster is missing: limits are of machines whose nodes have a power, such as"
                " 'taurus'"
            )
        power = at(f"{on}.cluster", node_power, machine, needed)
        for place, one in enumerate(sets):
            found = read_limits(machine, one.cap, one.budget, f"limits[{place}].")
            at(f"limits[{place}]", check_limits, found)
            for where, _, scheduler in _placed(schedulers):
                pair = f"{where} under limits[{place}] on {on}"
                at(pair, check_off_as_idle, found, may_switch(scheduler, machine, found))
                for cap in found:
                    if isinstance(cap, PowerCap):
                        at(pair, nodes_off, machine, power, cap, scheduler.power)


def _placed(schedulers: Mapping[str, Scheduler]) -> Iterator[tuple[str, str, Scheduler]]:
    """Go through schedulers: the place in the file, the name, the rules."""
    for place, (name, scheduler) in enumerate(schedulers.items()):
        yield f"schedulers[{place}]", name, scheduler


def _check_metrics(
    metrics: Sequence[str],
    by: Sequence[str],
    schedulers: Mapping[str, Scheduler],
    speedups: Sequence[str],
    limits: Sequence[LimitSet],
) -> None:
    """Raise an HpcgymError unless simulations have these metrics, some of jobs if ``by`` groups."""
    of = {
        "": True,
        "shared nodes": bool(speedups),
        "caps": any(one.cap for one in limits),
        "budgets": any(one.budget for one in limits),
        "dispatch time": any(scheduler.dispatch_time for scheduler in schedulers.values()),
    }
    every = known_metrics().items()
    known = [name for name, one in every if one.formula is not None and of.get(one.of, False)]
    for place, name in enumerate(metrics):
        check_choice(f"metrics[{place}]", name, known)
    for name in by:
        check_choice("by", name, GROUPED_BY)
    if by and metrics and not {*metrics} & {*group_metrics()}:
        raise HpcgymError(f"by: {metrics[0]} is none of groups of jobs, such as mean_bsld")
