"""Experiments: a small TOML file says which workloads, slices, schedulers and seeds to simulate."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hpcgym.baselines.schedulers import COSCHEDULERS, SCHEDULERS, find_scheduler
from hpcgym.errors import HpcgymError, check_choice, check_each_once
from hpcgym.files import MOST_TOML, bytes_of, toml_of
from hpcgym.naming import MOST_OF_LIST, name_problem
from hpcgym.schedule.measures import GROUPED_BY, group_metrics
from hpcgym.schedule.metrics import known_metrics
from hpcgym.scheduler.asked_for import check_fair_share
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.own_code import names_code, own_rule
from hpcgym.scheduler.restrictions import read_windows
from hpcgym.scheduler.rule_values import read_quotas
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep.simulations import OWN_RULES, LimitSet, at, believed, check_limited, check_sharing
from hpcgym.sweep.source import KINDS, SEED, SLICES, Source
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
    workloads = tuple(
        _source(f"workloads[{place}]", entry)
        for place, entry in enumerate(_list(table, "workloads", [dict]))
    )
    schedulers = dict(
        _scheduler(f"schedulers[{place}]", entry, path.parent)
        for place, entry in enumerate(_list(table, "schedulers", [str, dict]))
    )
    seeds = tuple(_list(table, "seeds", [int])) if "seeds" in table else ()
    metrics = tuple(_list(table, "metrics", [str])) if "metrics" in table else ()
    by, speedups = _one_or_more(table, "by"), _one_or_more(table, "speedups")
    shuffles = _shuffles(table)
    check_each_once("workloads", [source.name for source in workloads])
    given = [_name_of(entry) for entry in table["schedulers"]]
    check_each_once("schedulers", given)
    check_each_once("seeds", seeds)
    check_each_once("metrics", metrics)
    _check_seeds(workloads, seeds)
    check_each_once("speedups", speedups)
    check_each_once("shuffles", shuffles)
    limits = _limits(table)
    check_each_once("limits", [one.name for one in limits])
    if limits and speedups:
        check(words={"limits": "limits", "shared nodes": "speedups"})
    check_sharing(workloads, schedulers, speedups, path.parent)
    check_limited(workloads, schedulers, limits, path.parent)
    late = any(scheduler.dispatch_time for scheduler in schedulers.values())
    _check_metrics(metrics, bool(speedups), limits, late)
    _check_by(by, metrics)
    tables = [entry for entry in table["schedulers"] if isinstance(entry, dict)]
    own = {entry["name"]: _own(entry) for entry in tables if _own(entry)}
    return Experiment(
        path, sha256, workloads, schedulers, seeds, metrics, by, speedups, shuffles, limits, own
    )


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
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise HpcgymError(f"{where}.name must say what the scheduler is called in tables")
    if problem := name_problem(name):
        raise HpcgymError(f"{where}.name must be {problem}")
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
        known = at(f"{where}.pair_estimate", believed, rules["pair_estimate"], folder)
        rules["pair_estimate"] = known
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


def _name_of(entry: str | dict[str, Any]) -> str:
    return entry if isinstance(entry, str) else entry["name"]


def _check_seeds(workloads: Iterable[Source], seeds: tuple[int, ...]) -> None:
    """Raise unless there are seeds if, and only if, some workload has a place for them."""
    seeded = [place for place, source in enumerate(workloads) if SEED in source.workload]
    if seeded and not seeds:
        raise HpcgymError(f"workloads[{seeded[0]}].workload has {SEED}: say which in seeds = [...]")
    if seeds and not seeded:
        raise HpcgymError(f"seeds are given, but no workload has {SEED} in it")


def _one_or_more(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the names at a key that has one, or a list; none without the key."""
    if isinstance(table.get(key), str):
        return (table[key],)
    return tuple(_list(table, key, [str])) if key in table else ()


def _limits(table: Mapping[str, Any]) -> tuple[LimitSet, ...]:
    """Return the sets of limits of the file."""
    if "limits" not in table:
        return ()
    found = []
    for place, entry in enumerate(_list(table, "limits", [dict])):
        where = f"limits[{place}]"
        _check_keys(where, entry, _names(LimitSet))
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            raise HpcgymError(f"{where}.name must say what these limits are called in tables")
        if problem := name_problem(entry["name"]):
            raise HpcgymError(f"{where}.name must be {problem}")
        texts = {key: _texts(f"{where}.{key}", entry[key]) for key in entry if key != "name"}
        found.append(LimitSet(entry["name"], **texts))
    return tuple(found)


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


def _check_metrics(
    metrics: tuple[str, ...], shared: bool, limits: tuple[LimitSet, ...], late: bool
) -> None:
    """Raise unless simulations have these metrics.

    ``shared``: they share nodes; ``late``: some have a dispatcher that takes time.
    """
    of = {
        "shared nodes": shared,
        "caps": any(one.cap for one in limits),
        "budgets": any(one.budget for one in limits),
        "dispatch time": late,
    }
    had = ["", *(name for name, there in of.items() if there)]
    every = known_metrics().items()
    known = [name for name, metric in every if metric.formula is not None and metric.of in had]
    for place, name in enumerate(metrics):
        check_choice(f"metrics[{place}]", name, known)


def _check_by(by: tuple[str, ...], metrics: tuple[str, ...]) -> None:
    """Raise unless groups of jobs are known ones, and some metric is of jobs."""
    for name in by:
        check_choice("by", name, GROUPED_BY)
    check_each_once("by", by)
    if by and metrics and not {*metrics} & {*group_metrics()}:
        raise HpcgymError(f"by: {metrics[0]} is none of groups of jobs, such as mean_bsld")


def _list(table: Mapping[str, Any], key: str, kinds: list[type]) -> list[Any]:
    """Return a list of the file that has to be there, with at least one entry."""
    words = {str: "a name", dict: "a table", int: "a whole number"}
    wanted = " or ".join(words[kind] for kind in kinds)
    if key not in table:
        how = f"[[{key}]]" if kinds == [dict] else f"{key} = [...]"
        raise HpcgymError(f"{key} is missing: {how}")
    entries = table[key]
    if not isinstance(entries, list) or not entries:
        raise HpcgymError(f"{key} must be a list, each entry {wanted}, not {entries!r}")
    for place, entry in enumerate(entries):
        if type(entry) not in kinds:
            raise HpcgymError(f"{key}[{place}] must be {wanted}, not {entry!r}")
    return entries


def _check_keys(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    known = list(known)
    for key in table:
        check_choice(f"key of {where}" if where else "key", key, known)
