"""The long part of a study as tasks of a sweep: on any executor."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from hpcgym.benchmarks.studies.progress import Progress
from hpcgym.errors import HpcgymError
from hpcgym.sweep import Summary, run_tasks
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
