"""The long part of the study, all vectors on each week, as tasks of a sweep: on any executor.

Workers write into the study's folder, which they must all see; what they have written the study
then finds, and does not compute again. The folder's ``steps`` say what is done; the records of
tasks lie inside, so that they are never there without it.
"""

from __future__ import annotations

from concurrent.futures import Executor
from functools import lru_cache
from pathlib import Path
from typing import Any

from hpcgym.benchmarks.mixed_policies.grid import THREE, grid
from hpcgym.benchmarks.mixed_policies.optimum import covered, file_of
from hpcgym.benchmarks.mixed_policies.study import Study
from hpcgym.benchmarks.studies.spread import run_all
from hpcgym.errors import HpcgymError
from hpcgym.workload.load import load_workload


def cover_on(
    study: Study, source: str, folder: Path, executor: str | Executor, workers: int | None
) -> None:
    """Try all vectors of three weights on all weeks and months on which they were not yet.

    Parameters
    ----------
    study : the trace and the reading, with results in ``folder``.
    source : what the trace was loaded from.
    executor, workers : see :func:`hpcgym.sweep.open_executor`.

    Raises
    ------
    HpcgymError : a task that failed again and again, or whose result is not in the folder.
    """
    records = folder / "steps" / "tasks"
    tasks = [
        {
            "source": source,
            "reading": study.reading.name,
            "folder": str(folder.resolve()),
            "quick": study.quick,
            "period": period,
            "number": number,
            # named after all inputs: other jobs, grids or versions are other tasks
            "file": file,
        }
        for period, number, file in _uncovered(study)
    ]
    if not tasks:
        return
    if executor != "serial":
        _compile(study)
    what = f"{study.trace}: all vectors on {len(tasks)} weeks and months"
    summary = run_all(
        cover_one,
        tasks,
        records,
        executor,
        workers,
        of="weeks and months",
        what=what,
        progress=study.progress,
        chunk=1,
    )
    missing = len(_uncovered(study))
    if missing:
        raise HpcgymError(
            f"{missing} of {summary.total} weeks and months are not in {folder / 'steps'}: all"
            " workers must see it and have the same hpcgym; if files were deleted there, delete"
            f" {records} too"
        )


def _compile(study: Study) -> None:
    """Compile in this process what workers, each on one thread, then find in the cache."""
    few = load_workload("lublin:jobs=20,processors=8,seed=0")
    study.batch({0: few}, features=THREE).run(grid(2).weights, threads=1)


def _uncovered(study: Study) -> list[tuple[str, int, str]]:
    """Return the weeks and months that have not been done yet: period, number, name of the file."""
    files = [
        (period, number, file_of(study, number, part, points))
        for period, (parts, points) in study.covers().items()
        for number, part in parts.items()
    ]
    return [
        (period, number, file.name)
        for period, number, file in files
        if file is not None and not file.is_file()
    ]


def cover_one(task: dict[str, Any]) -> dict[str, Any]:
    """Try all vectors on one week or month; the result lies in the study's folder."""
    study = _study(task["source"], task["reading"], task["folder"], task["quick"])
    parts, points = study.covers()[task["period"]]
    step = covered(study, task["number"], parts[task["number"]], points)
    return {"best": float(step["values"].min())}


@lru_cache(maxsize=2)
def _study(source: str, reading: str, folder: str, quick: bool) -> Study:
    """Return the study; a worker reads a trace once."""
    return Study(source, reading, folder=Path(folder), quick=quick)
