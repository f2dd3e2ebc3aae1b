"""The table of a sweep: a row for each simulation, or for each class of jobs, or user, of each."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files import MOST_TOML, bytes_of, shaped, text_of
from hpcgym.files.writing import same_file, whole
from hpcgym.schedule.measures import GROUPED_BY
from hpcgym.sweep import manifest as manifest_file
from hpcgym.sweep.experiment import load_experiment
from hpcgym.sweep.manifest import (
    Manifest,
    Tasks,
    differences,
    file_of,
    make_manifest,
    other_versions,
)
from hpcgym.sweep.records import (
    FAILURES,
    FUNCTION,
    LOCK,
    RESULTS,
    check_files,
    ids_of,
    is_locked,
    locked,
    read_failures,
    read_records,
    read_results,
)
from hpcgym.sweep.simulations import simulate_task
from hpcgym.sweep.tasks import How, Progress, Summary, run_locked

if TYPE_CHECKING:
    import pandas as pd


# --- Sweeps in folders: begin one, go on with it, see where it is ---------------------------------

_MOST_NAME = 1 << 16

EXPERIMENT, MANIFEST, ORIGIN = "experiment.toml", "manifest.json", "origin"


def run_experiment(
    path: str | Path,
    folder: str | Path,
    executor: str | Executor = "processes",
    *,
    workers: int | None = None,
    chunk: int | None = None,
    retries: int = 2,
    progress: Progress | None = None,
) -> Summary:
    """Simulate all that an experiment describes; see :func:`hpcgym.sweep.load_experiment`.

    Parameters
    ----------
    path : of the experiment.
    folder : where the sweep is kept: a new or empty one.
    executor, workers, chunk, retries, progress : see :func:`hpcgym.sweep.run_tasks`.

    Raises
    ------
    HpcgymError : something is wrong with the experiment, or the folder is in use.
    """
    how = How(executor, workers, chunk, retries, progress)
    folder = Path(folder)
    _check_free(folder, Path(path))
    experiment = load_experiment(path)
    manifest = make_manifest(experiment)
    _check_inputs(manifest, experiment.folder, folder)
    with locked(folder):
        # again: making the manifest may take longer than another run, or than editing the file
        _check_free(folder, Path(path))
        content = bytes_of(experiment.path, MOST_TOML, HpcgymError)
        if hashlib.sha256(content).hexdigest() != experiment.sha256:
            raise HpcgymError(f"{path} has changed while the sweep began: begin again")
        _keep(folder / EXPERIMENT, content)
        # relative, so that both can be moved or mounted together
        origin = os.path.relpath(experiment.folder.resolve(), folder.resolve())
        _keep(folder / ORIGIN, f"{origin}\n".encode())
        _keep(folder / MANIFEST, manifest_file.as_text(manifest).encode())
        return _run(folder, manifest, how)


#: What there is in a folder before the first task has ended, beside its lock.
_FILES = (EXPERIMENT, ORIGIN, MANIFEST, FUNCTION)


def _is_own(name: str) -> bool:
    """Return whether a file is one of a sweep that has not begun, or a part that a kill left."""
    return name in (LOCK, *_FILES) or (name.startswith(_FILES) and name.endswith(".part"))


def _has_not_begun(folder: Path) -> bool:
    """Tell whether a folder has a lock, and at most what is written before the first task."""
    return (folder / LOCK).is_file() and all(map(_is_own, os.listdir(folder)))


def _may_go(path: Path, experiment: Path) -> bool:
    """Return whether a file of that name is what a kill left: the same, or nothing yet."""
    if path.stat().st_size == 0:
        return True
    if path.name == EXPERIMENT:
        return path.read_bytes() == bytes_of(experiment, MOST_TOML, HpcgymError)
    return path.name != ORIGIN or origin_of(path.parent).is_dir()


def _check_free(folder: Path, experiment: Path) -> None:
    """Raise an HpcgymError unless a sweep can begin in a folder.

    What has the name of a file of a sweep is one only beside a lock, an empty file that is made
    first. Without it, it is the user's: that may only be the experiment itself.
    """
    if any((folder / name).exists() for name in (RESULTS, FAILURES)):
        if not (folder / MANIFEST).exists():
            raise HpcgymError(
                f"{folder} has results that are no sweep's: choose another (--output)"
            )
        raise HpcgymError(
            f"{folder} has a sweep already: hpcgym sweep resume {folder} goes on with it; or choose"
            " another folder (--output)"
        )
    others = [folder.name] if folder.exists() else []
    if folder.is_dir():
        lock = folder / LOCK
        begun = lock.is_file() and lock.stat().st_size == 0
        others = [
            name
            for name in os.listdir(folder)
            if not (begun and _is_own(name) and _may_go(folder / name, experiment))
            and not (name == EXPERIMENT and same_file(folder / name, experiment))
        ]
    if others:
        raise HpcgymError(f"{folder} is there already, and is no sweep: choose another (--output)")


def _check_inputs(manifest: Manifest, origin: Path, folder: Path) -> None:
    """Raise an HpcgymError if the sweep would write over a file that it reads."""
    for name in manifest["inputs_sha256"]:
        path = file_of(name, manifest, origin)
        if path is not None and any(same_file(path, folder / own) for own in _FILES):
            raise HpcgymError(f"{path} would be overwritten: choose another folder (--output)")


def resume(
    folder: str | Path,
    executor: str | Executor = "processes",
    *,
    workers: int | None = None,
    chunk: int | None = None,
    retries: int = 2,
    progress: Progress | None = None,
) -> Summary:
    """Do what is left of a sweep; tasks that failed are tried again.

    Parameters
    ----------
    folder : of the sweep.
    executor, workers, chunk, retries, progress : see :func:`hpcgym.sweep.run_tasks`; they need not
        be those of the first run.

    Raises
    ------
    HpcgymError : no sweep is there, it is running, or its results would not be of one piece: the
        experiment, a file that a workload is read from, or the version of hpcgym has changed.
    """
    how = How(executor, workers, chunk, retries, progress)
    folder = Path(folder)
    read_manifest(folder)  # first: locking would make the folder
    with locked(folder):
        manifest = read_manifest(folder)
        experiment = bytes_of(folder / EXPERIMENT, MOST_TOML, HpcgymError)
        changed = differences(manifest, origin_of(folder), experiment)
        if changed:
            raise HpcgymError(
                f"{folder} cannot be resumed: {'; '.join(changed)}. Run the experiment anew, into"
                " another folder"
            )
        return _run(folder, manifest, how)


def read_manifest(folder: str | Path) -> Manifest:
    """Return the manifest of a sweep.

    Raises
    ------
    HpcgymError : there is none, or it cannot be read.
    """
    path = Path(folder) / MANIFEST
    if not path.exists():
        if _has_not_begun(path.parent):
            raise HpcgymError(
                f"{folder} has a sweep that was stopped before it began: hpcgym sweep run"
                f" EXPERIMENT --output {folder} starts it again"
            )
        raise HpcgymError(f"{folder} is no sweep: it has no {MANIFEST}")
    check_files(path.parent, _FILES)
    return manifest_file.read(path)


def origin_of(folder: Path) -> Path:
    """Return the folder that names of files in a sweep's experiment are relative to."""
    path = folder / ORIGIN
    name = text_of(path, _MOST_NAME, "the name of a folder").strip()
    if not name.isprintable():
        raise HpcgymError(f"{path} is not the name of a folder")
    return Path(os.path.normpath(folder.resolve() / name))


def warnings_of(folder: str | Path) -> list[str]:
    """Say which versions differ from when a sweep began, though it can be resumed."""
    return other_versions(read_manifest(folder))


@dataclass(frozen=True)
class Status:
    """Where a sweep is.

    Attributes
    ----------
    tasks, done, failed : numbers of tasks: all, with results, failed for good.
    state : "running", "complete", "failed" (all others are done) or "interrupted".
    damaged : number of lines of results that are not what was written; ``resume`` does their tasks
        again.
    """

    tasks: int
    done: int
    failed: int
    state: str
    damaged: int = 0


def status(folder: str | Path) -> Status:
    """Tell where a sweep is; it may be running."""
    folder = Path(folder)
    tasks = Tasks(read_manifest(folder))
    running, total = is_locked(folder), len(tasks)
    ids = [record and record["id"] for record in read_records(folder / RESULTS)]
    failed_ids = [record["id"] for record in read_failures(folder)]
    wanted = ids_of(tasks) if ids or failed_ids else set()
    damaged = ids.count(None)
    done = len(wanted & {*ids})
    failed = len(wanted & {*failed_ids})
    state = "interrupted"
    if running:
        state = "running"
    elif done == total:
        state = "complete"
    elif done + failed == total:
        state = "failed"
    return Status(total, done, failed, state, damaged)


def _run(folder: Path, manifest: Mapping[str, Any], how: How) -> Summary:
    """Run the tasks of a manifest, in a folder that is locked."""
    function = partial(
        simulate_task, folder=str(origin_of(folder)), digests=manifest["inputs_sha256"]
    )
    return run_locked(function, Tasks(manifest), folder, how)


def _keep(path: Path, contents: bytes) -> None:
    """Write a file whole or not at all."""
    with whole(path) as part:
        part.write_bytes(contents)


# --- The table of a sweep -------------------------------------------------------------------------


def read_table(folder: str | Path, by: str | None = None) -> pd.DataFrame:
    """Return what a sweep has found so far, a row for each finished task.

    Parameters
    ----------
    folder : of the sweep.
    by : one of :data:`hpcgym.schedule.measures.GROUPED_BY`: a row for each class of jobs, or user,
        of each task, with the metrics of :func:`hpcgym.schedule.measures.metrics_by`; a column of
        that name stands before scheduler. The experiment has to say so, ``by = ["class", "user"]``.

    Returns
    -------
    table : columns workload, slice ("whole", "week 1", ...), seed (missing without one), scheduler,
        then the metrics; in the order of the experiment, on whatever executor it ran. With speedups
        there is a column ``speedups`` behind workload, with limits ``limits``, their names, and
        with shuffles ``shuffle``, their seeds, before scheduler. With speedups and makespans the
        last column is ``makespan_improvement``: the makespan of the first scheduler on the same
        jobs over that of the row, less 1; missing
        as long as the first is not done.

    Raises
    ------
    HpcgymError : no sweep is there, it cannot be read, or it keeps no metrics ``by``.
    """
    import pandas as pd

    manifest = read_manifest(folder)
    if by is not None:
        _check_kept(folder, manifest, by)
    tasks = Tasks(manifest)
    keys = keys_of(manifest, by)
    with shaped(Path(folder) / RESULTS, "the file of the results of a sweep"):
        metrics = set(manifest["metrics"])
        records = read_results(folder, tasks)
        if by is None:
            rows = [_row(record, keys, metrics) for record in records]
        else:
            rows = [row for record in records for row in _rows_by(record, keys, by)]
        table = pd.DataFrame(rows, columns=None if rows else keys)
        # where no slice has a value of a metric, it is still a number that is missing
        missing = [name for name in table.columns[len(keys) :] if table[name].dtype == object]
        table = table.astype({"seed": "Int64", **dict.fromkeys(missing, "float64")})
    if by is None and "speedups" in keys and "makespan_s" in table:
        _add_improvement(table, keys, next(iter(manifest["schedulers"])))
    return table


def _row(record: Mapping[str, Any], keys: list[str], metrics: set[str]) -> dict[str, Any]:
    """Return the row of a task; raise a ValueError if its result has not these metrics.

    Without ``metrics`` it has all that there are, whose names are one word.
    """
    task = record["task"]
    result = {name: value for name, value in record["result"].items() if name != "by"}
    if metrics and result.keys() != metrics:
        raise ValueError(result)
    return {**{key: task[key] for key in keys}, **_numbers(result, keys)}


def _rows_by(record: Mapping[str, Any], keys: list[str], by: str) -> list[dict[str, Any]]:
    """Return the rows of the groups of a task; raise a ValueError if its result has none."""
    groups = record["result"]["by"][by]
    return [
        {**{key: (record["task"] | {by: name})[key] for key in keys}, **_numbers(found, keys)}
        for name, found in groups.items()
    ]


def _numbers(metrics: Mapping[str, Any], keys: list[str]) -> Mapping[str, Any]:
    """Return metrics as they are; raise a ValueError if there are none, or one is no number."""
    for name, value in metrics.items():
        if name in keys or not name.isidentifier() or type(value) not in (int, float, NoneType):
            raise ValueError(metrics)
    if not metrics:
        raise ValueError(metrics)
    return metrics


def keys_of(manifest: Mapping[str, Any], by: str | None = None) -> list[str]:
    """Return which columns of the table tell its rows apart, the scheduler being the last."""
    of_jobs = [key for key in ("speedups", "limits") if key in manifest]
    shuffle = ["shuffle"] if "shuffles" in manifest else []
    group = [] if by is None else [by]
    return ["workload", *of_jobs, "slice", "seed", *shuffle, *group, "scheduler"]


def _check_kept(folder: str | Path, manifest: Mapping[str, Any], by: str) -> None:
    """Raise an HpcgymError unless a sweep keeps metrics of classes, or of users."""
    check_choice("by", by, GROUPED_BY)
    if by not in manifest.get("by", ()):
        raise HpcgymError(
            f"{folder} keeps no metrics by {by}: write by = {json.dumps([by])} into the experiment,"
            " and run it again, into another folder"
        )


def _add_improvement(table: pd.DataFrame, keys: list[str], first: str) -> None:
    """Add by how much makespans are better than those of the first scheduler on the same jobs."""
    jobs = table[keys[:-1]].astype(object).where(table[keys[:-1]].notna(), None)
    same = [tuple(row) for row in jobs.itertuples(index=False)]
    rows = zip(same, table["scheduler"], table["makespan_s"], strict=True)
    reference = {of: makespan for of, scheduler, makespan in rows if scheduler == first}
    makespans = [reference.get(of, float("nan")) for of in same]
    table["makespan_improvement"] = makespans / table["makespan_s"] - 1
