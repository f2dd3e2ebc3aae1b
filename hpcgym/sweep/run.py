"""Sweeps in folders: begin one, go on with it, see where it is.

The folder has the experiment (``experiment.toml``, a copy), ``manifest.json``, ``results.jsonl``,
``failures.jsonl`` if a task failed, ``origin``, the folder that the experiment came from, and
``function``, what does its tasks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.files import MOST_TOML, bytes_of, text_of
from hpcgym.files.writing import same_file, whole
from hpcgym.sweep import manifest_file
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
)
from hpcgym.sweep.simulations import simulate_task
from hpcgym.sweep.tasks import Progress, Summary, check_arguments, run_locked

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
    check_arguments(executor, workers, chunk, retries)
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
        return _run(folder, manifest, executor, workers, chunk, retries, progress)


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
    check_arguments(executor, workers, chunk, retries)
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
        return _run(folder, manifest, executor, workers, chunk, retries, progress)


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


def _run(
    folder: Path,
    manifest: Mapping[str, Any],
    executor: str | Executor,
    workers: int | None,
    chunk: int | None,
    retries: int,
    progress: Progress | None,
) -> Summary:
    """Run the tasks of a manifest, in a folder that is locked."""
    function = partial(
        simulate_task, folder=str(origin_of(folder)), digests=manifest["inputs_sha256"]
    )
    return run_locked(
        function, Tasks(manifest), folder, executor,
        workers=workers, chunk=chunk, retries=retries, progress=progress,
    )  # fmt: skip


def _keep(path: Path, contents: bytes) -> None:
    """Write a file whole or not at all."""
    with whole(path) as part:
        part.write_bytes(contents)
