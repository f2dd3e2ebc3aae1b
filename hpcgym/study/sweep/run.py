"""A sweep in its folder: its manifest and its tasks, its state and its table."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sqlite3
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, HpcgymWarning, WorkloadError, check_choice, warn_caller
from hpcgym.machine.speedups import Heatmap
from hpcgym.own_code import used_packages, version_of
from hpcgym.schedule.groups import GROUPED_BY
from hpcgym.schedule.metrics import needs_watts, watts_given
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.sweep.experiment import Experiment, at, load_experiment
from hpcgym.study.sweep.records import (
    about,
    append,
    claim,
    ids_of,
    is_locked,
    locked,
    read_failures,
    read_results,
    reading,
    rows_of,
)
from hpcgym.study.sweep.simulations import SEED, Source, file_of, simulate_task
from hpcgym.study.sweep.tasks import How, Summary, name_of, run_locked
from hpcgym.version import __version__
from hpcgym.workload import codes_of
from hpcgym.workload.io.files import sha256_of
from hpcgym.workload.load import is_generator

if TYPE_CHECKING:
    import pandas as pd

# --- The manifest of a sweep: all that its results follow from ------------------------------------

Manifest = dict[str, Any]


def make_manifest(experiment: Experiment) -> Manifest:
    """Return the manifest of an experiment; reads the workloads whose slices must be known.

    Raises
    ------
    HpcgymError : a workload that cannot be read, or has none of the slices asked for.
    """
    workloads = []
    for place, source in enumerate(experiment.workloads):
        with at(f"{experiment.path}: workloads[{place}]"):
            workloads += _spelt_out(source, experiment)
    crossed = {
        "speedups": [experiment.inputs.speedups(name).describe() for name in experiment.speedups],
        "limits": [
            {"name": limit_set.name, "cap": [*limit_set.cap], "budget": [*limit_set.budget]}
            for limit_set in experiment.limits
        ],
        "shuffles": list(experiment.shuffles),
        "by": list(experiment.by),
        "packages": used_packages(),
    }
    manifest: Manifest = {
        "versions": versions(),
        "experiment_sha256": experiment.sha256,
        "inputs_sha256": dict(experiment.inputs.digests),
        "seeds": list(experiment.seeds),
        **{key: value for key, value in crossed.items() if value},  # not all experiments have these
        "workloads": workloads,
        "schedulers": {
            name: _rules(scheduler) | dict(experiment.own.get(name, {}))
            for name, scheduler in experiment.schedulers.items()
        },
        "metrics": list(experiment.metrics),
    }
    return {**manifest, "tasks": sum(1 for _ in Tasks(manifest))}


def versions() -> dict[str, str]:
    """Return the versions of what results are computed with."""
    return {"hpcgym": __version__, "python": platform.python_version(), "numpy": version("numpy")}


@dataclass(frozen=True)
class Tasks:
    """All tasks of a manifest, made when they are asked for: the rows of the table, in its order.

    A task has the keys of an entry of ``workloads`` in the manifest, with one ``slice``, and
    ``scheduler``, ``rules`` and ``metrics``; where there are speedups or shuffles, the name of one
    in ``speedups``, the seed of one in ``shuffle``; where there are limits, the name of a set in
    ``limits``, its texts in ``cap`` and ``budget``; and ``by`` where metrics of groups are kept.
    """

    manifest: Manifest

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Go through workloads, slices, schedulers: tasks of one workload follow each other."""
        manifest = self.manifest
        # without speedups, limits or shuffles there is one way: nothing is said of them
        speedups = [
            {"speedups": heatmap["source"]} for heatmap in manifest.get("speedups", [])
        ] or [{}]
        limits = [
            {"limits": limit_set["name"], "cap": limit_set["cap"], "budget": limit_set["budget"]}
            for limit_set in manifest.get("limits", [])
        ]
        shuffles = [{"shuffle": seed} for seed in manifest.get("shuffles", [])] or [{}]
        rules = [
            {"scheduler": name, "rules": rules_of_one}
            for name, rules_of_one in manifest["schedulers"].items()
        ]
        kept = {key: manifest[key] for key in ("metrics", "by") if key in manifest}
        for workload in manifest["workloads"]:
            common = {key: value for key, value in workload.items() if key != "slice_names"}
            slices = [{"slice": name} for name in workload["slice_names"]]
            for ways in product(speedups, limits or [{}], slices, shuffles, rules):
                task = dict(common)
                for way in ways:
                    task |= way
                yield task | kept


def _spelt_out(source: Source, experiment: Experiment) -> list[dict[str, Any]]:
    """Return a workload with each seed and the names of its slices; note the files it comes from.

    Of a generator whose slices are whole only the first is made: there may be many seeds.
    """
    entries: list[dict[str, Any]] = []
    names: list[str] = []
    for seed in experiment.seeds if SEED in source.workload else (None,):
        seeded = source
        if seed is not None:
            seeded = replace(source, workload=source.workload.replace(SEED, str(seed)))
        experiment.inputs.digest(seeded.workload, of_jobs=True)
        generated = is_generator(seeded.workload)
        if not names or source.slices != "whole" or not generated:
            names = _names_of_slices(seeded, experiment)
        entry = {"workload": source.name, "source": seeded.workload, "seed": seed}
        entry |= {key: getattr(source, key) for key in ("clean", "processors", "errors", "slices")}
        given = {key: getattr(source, key) for key in ("cluster", "codes", "tz")}
        entry |= {key: value for key, value in given.items() if value is not None}
        entries.append(entry | {"slice_names": names})
    return entries


def _names_of_slices(source: Source, experiment: Experiment) -> list[str]:
    """Return the names of the slices of a workload, which is read for that; check its jobs."""
    inputs = experiment.inputs
    slices = inputs.slices(source)
    machine = None if source.cluster is None else inputs.machine(source.cluster)
    energies = [metric for metric in experiment.metrics if needs_watts(metric)]
    if energies and not any(watts_given(machine, part) for part in slices.values()):
        raise HpcgymError(
            f"metrics: {energies[0]} needs watts, and none are given for {source.name}: name a"
            " cluster with powers, such as taurus, or a TOML file with idle_power_w and"
            " busy_power_w"
        )
    if "user" in experiment.by and all(
        part.user_id.max(initial=-1) < 0 for part in slices.values()
    ):
        raise HpcgymError(f"by: {source.name}: the log does not tell the user of any job")
    for name in experiment.speedups if source.codes is None else ():
        for part in slices.values():
            try:
                codes_of(part, inputs.speedups(name).codes)
            except WorkloadError as error:
                hint = f"codes = SEED gives all jobs codes of {name} at random"
                raise HpcgymError(f"{error}; {hint}") from None
    if source.slices == "whole":
        return list(slices)
    last = source.last if source.last is not None else float("inf")
    which = [name for name in slices if source.first <= int(name.split()[1]) <= last]
    if not which:
        first, *_, final = [name.split()[1] for name in [*slices, *slices]]
        name = source.workload
        raise HpcgymError(f"{name} has {source.slices} {first} to {final}, none from first to last")
    return which


def _rules(scheduler: Scheduler) -> dict[str, Any]:
    """Return the rules of a scheduler, such that ``Scheduler(**rules)`` is the same again."""
    rules = scheduler.given()
    for name, value in rules.items():
        if isinstance(value, FairShare | Hold):
            rules[name] = value.table()
        elif isinstance(value, Heatmap):
            rules[name] = value.source
        elif isinstance(value, tuple):
            rules[name] = list(value)
    return rules


def read_manifest(folder: str | Path) -> Manifest:
    """Return the manifest of a sweep: one from which tasks can be made.

    Raises
    ------
    HpcgymError : it is missing, or it is not what was written.
    """
    with reading(Path(folder)) as file:
        manifest: Manifest | None = about(file).get("manifest")
    if manifest is None:
        raise HpcgymError(
            f"{folder} is no sweep of an experiment: hpcgym sweep run EXPERIMENT --output {folder}"
            " begins one"
        )
    return manifest


def checksum(manifest: Manifest) -> str:
    """Return the SHA-256 of all entries."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _differences(manifest: Manifest, origin: Path) -> list[str]:
    """Say what differs from when a sweep began, so that it cannot be gone on with."""
    differences = []
    then = manifest["versions"]["hpcgym"]
    if then != __version__:
        differences.append(f"it began with hpcgym {then}, and this is {__version__}")
    for package, then in manifest.get("packages", {}).items():
        if (now := version_of(package)) != then:
            differences.append(f"it began with {package} {then}, and {now} is installed")
    for name, digest in manifest["inputs_sha256"].items():
        try:
            path = file_of(name, origin, of_jobs=True)
        except HpcgymError as error:
            differences.append(str(error))
            continue
        if path is None:
            differences.append(f"{name}: no such file")
        elif sha256_of(path) != digest:
            differences.append(f"the file of {name} has changed: its SHA-256 differs")
    return differences


# --- Sweeps in folders: begin one, go on with it, see where it is ---------------------------------


def run_experiment(
    path: str | Path, folder: str | Path, executor: str | Executor = "processes", **how: Any
) -> Summary:
    """Simulate all that an experiment describes; see :func:`hpcgym.study.load_experiment`.

    Parameters
    ----------
    path : of the experiment.
    folder : where the sweep is kept, in a file of its own; made if need be.
    executor, how : where, and how: see :class:`hpcgym.study.sweep.tasks.How`.

    Raises
    ------
    HpcgymError : something is wrong with the experiment, or the folder has a sweep.
    """
    settings = How(executor, **how)
    path, folder = Path(path), Path(folder)
    with reading(folder) as file:
        _check_free(file, folder)
    experiment = load_experiment(path)
    manifest = make_manifest(experiment)
    # relative, so that both can be moved or mounted together
    origin = os.path.relpath(path.parent.resolve(), folder.resolve())
    facts = {"experiment": experiment.content.decode(), "origin": origin, "manifest": manifest}
    with locked(folder) as file:
        _check_free(file, folder)  # again: making the manifest may take longer than another run
        claim(file, name_of(simulate_task))
        append(file, about=[(name, json.dumps(value)) for name, value in facts.items()])
        return _run(folder, file, settings)


def resume(folder: str | Path, executor: str | Executor = "processes", **how: Any) -> Summary:
    """Do what is left of a sweep; tasks that failed are tried again.

    Parameters
    ----------
    folder : of the sweep.
    executor, how : where, and how: see :class:`hpcgym.study.sweep.tasks.How`; they need not be
        those of the first run.

    Warns
    -----
    HpcgymWarning : the version of Python or numpy has changed.

    Raises
    ------
    HpcgymError : no sweep is there, it is running, or its results would not be of one piece: a file
        that a workload is read from, or the version of hpcgym has changed.
    """
    settings = How(executor, **how)
    folder = Path(folder)
    manifest = read_manifest(folder)  # first: locking would make the folder
    with locked(folder) as file:
        if changed := _differences(manifest, origin_of(file, folder)):
            raise HpcgymError(
                f"{folder} cannot be resumed: {'; '.join(changed)}. Run the experiment anew, into"
                " another folder"
            )
        began = manifest["versions"]
        other = [
            f"{name} was {began[name]}, and is {now}"
            for name, now in versions().items()
            if began[name] != now
        ]
        if other:
            warn_caller(f"{'; '.join(other)}: last digits of results may differ", HpcgymWarning)
        return _run(folder, file, settings)


def _check_free(file: sqlite3.Connection, folder: Path) -> None:
    """Raise an HpcgymError if a folder has a sweep."""
    if "manifest" in about(file):
        raise HpcgymError(
            f"{folder} has a sweep already: hpcgym sweep run {folder} goes on with it; or choose"
            " another folder (--output)"
        )


def origin_of(file: sqlite3.Connection, folder: Path) -> Path:
    """Return the folder that names of files in a sweep's experiment are relative to."""
    return Path(os.path.normpath(folder.resolve() / about(file)["origin"]))


def _run(folder: Path, file: sqlite3.Connection, how: How) -> Summary:
    """Run the tasks of a manifest, in a folder that is locked."""
    manifest: Manifest = about(file)["manifest"]
    origin, digests = str(origin_of(file, folder)), manifest["inputs_sha256"]
    function = partial(simulate_task, folder=origin, digests=digests)
    return run_locked(function, Tasks(manifest), file, how)


@dataclass(frozen=True)
class Status:
    """Where a sweep is.

    Attributes
    ----------
    tasks, done, failed : numbers of tasks: all, with results, failed for good.
    state : "running", "complete", "failed" (all others are done) or "interrupted".
    damaged : number of results that are not what was written; ``resume`` does their tasks again.
    """

    tasks: int
    done: int
    failed: int
    state: str
    damaged: int = 0


def status(folder: str | Path) -> Status:
    """Tell where a sweep is; it may be running."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    running, total = is_locked(folder), manifest["tasks"]
    with reading(folder) as file:
        ids = [row and row[0] for _, row in rows_of(file, "results")]
    failed_ids = {record["id"] for record in read_failures(folder)}
    wanted = ids_of(Tasks(manifest)) if ids or failed_ids else set()
    done, failed = len(wanted & {*ids}), len(wanted & failed_ids)
    states = {"running": running, "complete": done == total, "failed": done + failed == total}
    state = next((name for name, holds in states.items() if holds), "interrupted")
    return Status(total, done, failed, state, ids.count(None))


# --- The table of a sweep -------------------------------------------------------------------------


def read_table(folder: str | Path, by: str | None = None) -> pd.DataFrame:
    """Return what a sweep has found so far, a row for each finished task.

    Parameters
    ----------
    folder : of the sweep.
    by : one of :data:`hpcgym.schedule.groups.GROUPED_BY`: a row for each class of jobs, or user,
        of each task, with the metrics of :func:`hpcgym.schedule.groups.metrics_by`; a column of
        that name stands before scheduler. The experiment has to say so, ``by = ["class", "user"]``.

    Returns
    -------
    table : columns workload, slice ("whole", "week 1", ...), seed (missing without one), scheduler,
        then the metrics; in the order of the experiment, on whatever executor it ran. With speedups
        there is a column ``speedups`` behind workload, with limits ``limits``, their names, and
        with shuffles ``shuffle``, their seeds, before scheduler. With speedups and makespans the
        last column is ``makespan_improvement``: the makespan of the first scheduler on the same
        jobs over that of the row, less 1; missing as long as the first is not done.

    Raises
    ------
    HpcgymError : no sweep is there, it cannot be read, or it keeps no metrics ``by``.
    """
    import pandas as pd

    manifest = read_manifest(folder)
    if by is not None and check_choice("by", by, GROUPED_BY) not in manifest.get("by", ()):
        raise HpcgymError(
            f"{folder} keeps no metrics by {by}: write by = {json.dumps([by])} into the experiment,"
            " and run it again, into another folder"
        )
    key_of = {"speedups": "speedups", "limits": "limits", "shuffle": "shuffles"}
    columns = ("workload", "speedups", "limits", "slice", "seed", "shuffle", by, "scheduler")
    keys = [key for key in columns if key and (key not in key_of or key_of[key] in manifest)]
    rows = []
    for record in read_results(folder, Tasks(manifest)):
        result = {name: value for name, value in record["result"].items() if name != "by"}
        for group, metrics in (
            {None: result} if by is None else record["result"]["by"][by]
        ).items():
            task = record["task"] | {by: group}
            rows.append({**{key: task[key] for key in keys}, **metrics})
    table = pd.DataFrame(rows, columns=None if rows else keys)
    # where no slice has a value of a metric, it is still a number that is missing
    missing = [name for name in table.columns[len(keys) :] if table[name].dtype == object]
    table = table.astype({"seed": "Int64", **dict.fromkeys(missing, "float64")})
    if by is None and "speedups" in keys and "makespan_s" in table:
        firsts = table[table["scheduler"] == next(iter(manifest["schedulers"]))]
        same = table[keys[:-1]].merge(firsts, how="left", on=keys[:-1])["makespan_s"]
        table["makespan_improvement"] = same / table["makespan_s"] - 1
    return table
