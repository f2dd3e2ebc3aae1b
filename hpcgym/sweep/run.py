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
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files import MOST_TOML, bytes_of, text_of
from hpcgym.files.writing import same_file, whole
from hpcgym.schedule.measures import GROUPED_BY
from hpcgym.sweep import manifest as manifest_file
from hpcgym.sweep.experiment import load_experiment
from hpcgym.sweep.manifest import (
    Manifest,
    Tasks,
    differences,
    make_manifest,
    versions,
)
from hpcgym.sweep.records import (
    FAILURES,
    FUNCTION,
    LOCK,
    RESULTS,
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


def _has_not_begun(folder: Path) -> bool:
    """Tell whether a folder has a lock, and at most what is written before the first task.

    Parts of such files are there, too, where a kill left them.
    """
    return (folder / LOCK).is_file() and all(
        name in (LOCK, *_FILES) or (name.startswith(_FILES) and name.endswith(".part"))
        for name in os.listdir(folder)
    )


def _check_free(folder: Path, experiment: Path) -> None:
    """Raise an HpcgymError unless a folder is new, empty, or of a sweep that has not begun.

    It may have the experiment itself in it.
    """
    if (folder / MANIFEST).exists() and any((folder / n).exists() for n in (RESULTS, FAILURES)):
        raise HpcgymError(
            f"{folder} has a sweep already: hpcgym sweep resume {folder} goes on with it; or choose"
            " another folder (--output)"
        )
    if not folder.exists() or (folder.is_dir() and _has_not_begun(folder)):
        return
    own = folder.is_dir() and os.listdir(folder)
    if own != [] and not (own == [EXPERIMENT] and same_file(folder / EXPERIMENT, experiment)):
        raise HpcgymError(f"{folder} is there already, and is no sweep: choose another (--output)")


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
    now = versions()
    return [
        f"{name} was {then} and is {now[name]}"
        for name, then in read_manifest(folder)["versions"].items()
        if name in now and now[name] != then and name != "hpcgym"
    ]


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
    if by is not None and check_choice("by", by, GROUPED_BY) not in manifest.get("by", ()):
        raise HpcgymError(
            f"{folder} keeps no metrics by {by}: write by = {json.dumps([by])} into the experiment,"
            " and run it again, into another folder"
        )
    keys = keys_of(manifest, by)
    rows = []
    for record in read_results(folder, Tasks(manifest)):
        result = {name: value for name, value in record["result"].items() if name != "by"}
        for group, found in ({None: result} if by is None else record["result"]["by"][by]).items():
            task = record["task"] | {by: group}
            rows.append({**{key: task[key] for key in keys}, **found})
    table = pd.DataFrame(rows, columns=None if rows else keys)
    # where no slice has a value of a metric, it is still a number that is missing
    missing = [name for name in table.columns[len(keys) :] if table[name].dtype == object]
    table = table.astype({"seed": "Int64", **dict.fromkeys(missing, "float64")})
    if by is None and "speedups" in keys and "makespan_s" in table:
        _add_improvement(table, keys, next(iter(manifest["schedulers"])))
    return table


def keys_of(manifest: Mapping[str, Any], by: str | None = None) -> list[str]:
    """Return which columns of the table tell its rows apart, the scheduler being the last."""
    of_jobs = [key for key in ("speedups", "limits") if key in manifest]
    shuffle = ["shuffle"] if "shuffles" in manifest else []
    group = [] if by is None else [by]
    return ["workload", *of_jobs, "slice", "seed", *shuffle, *group, "scheduler"]


def _add_improvement(table: pd.DataFrame, keys: list[str], first: str) -> None:
    """Add by how much makespans are better than those of the first scheduler on the same jobs."""
    jobs = table[keys[:-1]].astype(object).where(table[keys[:-1]].notna(), None)
    same = [tuple(row) for row in jobs.itertuples(index=False)]
    rows = zip(same, table["scheduler"], table["makespan_s"], strict=True)
    reference = {of: makespan for of, scheduler, makespan in rows if scheduler == first}
    makespans = [reference.get(of, float("nan")) for of in same]
    table["makespan_improvement"] = makespans / table["makespan_s"] - 1
