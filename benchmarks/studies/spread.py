"""The long part of a study as tasks of a sweep: on any executor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from hpcgym.benchmarks.studies.progress import Progress
from hpcgym.errors import HpcgymError
from hpcgym.sweep import Summary, read_results, run_tasks
from hpcgym.sweep.tasks import Function


def run_all(
    function: Function,
    tasks: Iterable[dict[str, Any]],
    folder: Path,
    executor: str | Executor,
    workers: int | None,
    *,
    of: str,
    what: str,
    progress: Progress,
    chunk: int | None = None,
) -> Summary:
    """Do all tasks whose results are not in the folder yet, each of them.

    Parameters
    ----------
    function, tasks, folder, executor, workers, chunk : see :func:`hpcgym.sweep.run_tasks`.
    of : what tasks are called where some have failed.
    what : what progress calls them.
    progress : told of each step.

    Raises
    ------
    HpcgymError : a task that failed again and again, or what :func:`hpcgym.sweep.run_tasks` raises.
    """
    summary = run_tasks(
        function,
        tasks,
        folder,
        executor,
        workers=workers,
        chunk=chunk,
        progress=lambda done, total: progress(what, done, total),
    )
    if summary.failed:
        raise HpcgymError(f"{summary.failed} of {summary.total} {of} failed; {folder} says why")
    return summary


def outcomes_of(
    function: Function,
    tasks: Sequence[dict[str, Any]],
    folder: Path,
    executor: str | Executor,
    workers: int | None,
    **said: Any,
) -> list[Any]:
    """Do all tasks as :func:`run_all` does; return what each has returned, in their order."""
    run_all(function, tasks, folder, executor, workers, **said)
    return [record["result"] for record in read_results(folder, tasks)]


def check_same_jobs(name: str, here: str, begun: str) -> None:
    """Raise an HpcgymError if a worker has other jobs than the study began with.

    Parameters
    ----------
    name : what the jobs are called.
    here, begun : hashes of them.
    """
    if here != begun:
        raise HpcgymError(f"{name}: it has other jobs here than where the study was begun")


def note_name(names: dict[str, str], name: str, source: str) -> None:
    """Note where the workload of a name comes from.

    Raises
    ------
    HpcgymError : another one of that name has been noted.
    """
    if names.setdefault(name, source) != source:
        raise HpcgymError(f"two workloads are called {name}: {source} is one")
