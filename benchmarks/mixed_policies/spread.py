"""The long part of the study, the coverages, as tasks of a sweep: on any executor.

Workers write into the study's folder, which they must all see; what they have written the study
then finds, and does not compute again.
"""

from __future__ import annotations

from concurrent.futures import Executor
from functools import lru_cache
from pathlib import Path
from typing import Any

from hpcgym.benchmarks.mixed_policies.optimum import covered, is_covered
from hpcgym.benchmarks.mixed_policies.study import Study

from hpcgym.errors import HpcgymError
from hpcgym.sweep import run_tasks


def cover_on(
    study: Study, source: str, folder: Path, executor: str | Executor, workers: int | None
) -> None:
    """Cover the space of three weights on all weeks and months that are not covered yet.

    Parameters
    ----------
    study : the trace and the reading, with results in ``folder``.
    source : what the trace was loaded from.
    executor, workers : see :func:`hpcgym.sweep.open_executor`.

    Raises
    ------
    HpcgymError : a task that failed again and again.
    """
    tasks = [
        {
            "source": source,
            "reading": study.reading.name,
            "folder": str(folder.resolve()),
            "quick": study.quick,
            "period": period,
            "number": number,
        }
        for period, (parts, points) in study.covers().items()
        for number, part in parts.items()
        if not is_covered(study, number, part, points)
    ]
    if not tasks:
        return
    what = f"{study.trace}: all vectors on {len(tasks)} weeks and months"
    summary = run_tasks(
        cover_one,
        tasks,
        folder / "tasks",
        executor,
        workers=workers,
        chunk=1,
        progress=lambda done, total: study.progress(what, done, total),
    )
    if summary.failed:
        raise HpcgymError(
            f"{summary.failed} of {summary.total} coverages failed; {folder / 'tasks'} says why"
        )


def cover_one(task: dict[str, Any]) -> dict[str, Any]:
    """Cover one week or month; the result lies in the study's folder."""
    study = _study(task["source"], task["reading"], task["folder"], task["quick"])
    parts, points = study.covers()[task["period"]]
    step = covered(study, task["number"], parts[task["number"]], points)
    return {"best": float(step["values"].min()), "simulations": int(step["simulations"])}


@lru_cache(maxsize=2)
def _study(source: str, reading: str, folder: str, quick: bool) -> Study:
    """Return the study; a worker reads a trace once."""
    return Study(source, reading, folder=Path(folder), quick=quick)
