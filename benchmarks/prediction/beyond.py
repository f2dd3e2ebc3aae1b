"""Past the thesis: which predictions pay, by weeks, and by how much more than chance.

``python -m hpcgym.benchmarks.prediction.beyond`` compares two families of schedulers:

- ``order``: SAF with SPF backfilling, by requested times, but for the order of the queue, which is
  by predictions: built-in ones, learned regressions, classes of jobs, drift detection;
- ``backfill``: EASY and EASY-SJBF, the queue by submission, backfilling by predictions: the same,
  and quantiles, by which a job is backfilled only if it is safe with some probability.

Every week is simulated from an empty machine, and begins with what was learned in the weeks before
it, from jobs that had ended in their simulations before it begins: nothing looks ahead. Rows that
say "fresh" learn within each week alone. Values are means over cuts of the trace into weeks: see
:mod:`hpcgym.benchmarks.studies.weeks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import typer

from hpcgym.agents.lookahead import Lookahead
from hpcgym.benchmarks.prediction.predictors import RatioQuantile, Ratios
from hpcgym.benchmarks.studies.harness import Folder, check_same_jobs, hash_of, load_jobs
from hpcgym.benchmarks.studies.tables import table_text
from hpcgym.benchmarks.studies.weeks import (
    Floats,
    board_of,
    cut_weeks,
    shifts,
    table_of,
    weekly_slowdowns,
)
from hpcgym.progress import measuring
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

RECIPE = "legrand"

Task = dict[str, Any]

#: Row -> what orders the queue; the first is the reference, the last what cannot be known.
ORDERS: dict[str, Any] = {
    "saf": "requested",
    "ave2": "ave2",
    "user-ratio": "user-ratio",
    "data-driven": "data-driven",
    "squared loss": "regression:over=squared,under=squared,weight=1",
    "e-loss": "e-loss",
    "absolute loss": "regression:over=absolute,under=absolute,weight=1",
    "absolute loss, no l2": "regression:over=absolute,under=absolute,weight=1,l2=0",
    "typical-ratio": "typical-ratio",
    "typical-ratio, fresh": "typical-ratio",
    "one model: all jobs": Ratios("all jobs"),
    "by request": Ratios("request"),
    "by request and width": Ratios("request, width"),
    "by group": Ratios("group"),
    "by user": Ratios("user"),
    "no decay": Ratios("user, width", decay=1.0),
    "no decay, drift detection": Ratios("user, width", decay=1.0, drift=True),
    "decay, drift detection": Ratios("user, width", drift=True),
    "known run times": "clairvoyant",
}

#: Row -> what backfilling reckons with.
ESTIMATES: dict[str, Any] = {
    "requested": "requested",
    "double-requested": "double-requested",
    "ave2": "ave2",
    "e-loss": "e-loss",
    "typical-ratio": "typical-ratio",
    "safe with 50 %": RatioQuantile(0.5),
    "safe with 80 %": RatioQuantile(0.8),
    "safe with 95 %": RatioQuantile(0.95),
    "known run times": "clairvoyant",
}


def lineup(family: str) -> dict[str, Scheduler]:
    """Return the schedulers of a family by the names of their rows, the reference first."""
    saf = Scheduler("saf", backfill_order="spf")
    if family == "order":
        rows = {name: saf.but(policy_estimate=estimate) for name, estimate in ORDERS.items()}
        both = saf.but(policy_estimate="typical-ratio", estimate="typical-ratio")
        rows["typical-ratio, for backfilling too"] = both.but(correction="incremental")
        rows["spf by typical-ratio"] = rows["typical-ratio"].but(policy="spf")
        return rows
    rows = {}
    for order in ("fcfs", "sjbf"):
        for name, estimate in ESTIMATES.items():
            rows[f"{order}, {name}"] = Scheduler(
                backfill_order=order, estimate=estimate, correction="incremental"
            )
        for name in ("e-loss", "typical-ratio"):
            again = rows[f"{order}, {name}"].but(correction="predicted-again")
            rows[f"{order}, {name}, predicted again"] = again
    return rows


def compute(task: Task) -> dict[str, Any]:
    """Return the mean bounded slowdown of the weeks of one cut under one scheduler.

    Parameters
    ----------
    task : "source", "family", "row", "shift" [s] and "jobs_sha256", the hash of the weeks.

    Returns
    -------
    "weeks", their numbers, and "values", one for each.

    Raises
    ------
    HpcgymError : the trace has other jobs here.
    """
    weeks = _cut(task["source"], task["shift"], task["jobs_sha256"])
    row = task["row"]
    if row == _LOOKAHEAD:
        values = [float(Lookahead().run(week).bsld.mean()) for week in weeks.values()]
    else:
        values = weekly_slowdowns(weeks, lineup(task["family"])[row], row.endswith("fresh"))
    return {"weeks": list(weeks), "values": values}


_LOOKAHEAD = "look-ahead, fresh"


@cache
def _cut(source: str, shift: int, jobs: str) -> dict[int, Workload]:
    """Return the weeks of a trace; a worker makes them once."""
    weeks = cut_weeks(load_jobs(source, clean=RECIPE), shift)
    check_same_jobs(source, hash_of(weeks.values()), jobs)
    return weeks


def tables(sources: Sequence[str], families: Sequence[str], n_cuts: int, folder: Folder) -> str:
    """Return the tables of some traces as Markdown; what was simulated before is kept."""
    tasks = [task for source in sources for task in _tasks(source, families, n_cuts)]
    with measuring("schedulers x cuts") as show:
        watched = replace(folder, progress=lambda what, done, total: show(done, total))
        found = watched.run(compute, tasks, "tasks", "")
    done = {_name(task): outcome for task, outcome in zip(tasks, found, strict=True)}
    pages = []
    for source in sources:
        for family in families:
            rows = {
                row: [done[source, family, row, shift] for shift in shifts(n_cuts)]
                for row in _rows(family)
            }
            pages.append(f"## {source}, {family}, {n_cuts} cuts\n\n{_table(rows)}")
    return "\n".join(pages)


def _tasks(source: str, families: Sequence[str], n_cuts: int) -> list[Task]:
    """Return the tasks of one trace; what their values depend on is in them."""
    trace = load_jobs(source, clean=RECIPE)
    hashes = {at: hash_of(cut_weeks(trace, at).values()) for at in shifts(n_cuts)}
    return [
        {
            "source": source,
            "family": family,
            "row": row,
            "shift": shift,
            "jobs_sha256": jobs,
        }
        for family in families
        for row in _rows(family)
        for shift, jobs in hashes.items()
    ]


def _rows(family: str) -> list[str]:
    """Return the names of the rows of a table."""
    rows = list(lineup(family))
    return [*rows, _LOOKAHEAD] if family == "order" else rows


def _name(task: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a task is known by in the tables."""
    return task["source"], task["family"], task["row"], task["shift"]


def _table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return one table: sums, differences to its first row, and shares of the gap."""
    first = next(iter(found))
    numbers = [cut["weeks"] for cut in found[first]]
    values: dict[str, list[Floats]] = {
        row: [np.array(cut["values"]) for cut in cuts] for row, cuts in found.items()
    }
    best = "known run times" if "known run times" in found else None
    return table_text(table_of(board_of(numbers, values), first, best))


def main(
    workload: list[str] | None = None,
    family: list[str] | None = None,
    cuts: int = 8,
    output: Path = Path("beyond"),
    executor: str = "processes",
    workers: int | None = None,
) -> None:
    """Compare which predictions pay, by weeks; see the module.

    Parameters
    ----------
    workload : traces; by default KTH-SP2 and SDSC-SP2.
    family : "order", "backfill" or, by default, both.
    cuts : times of the week to cut at.
    output : where results are kept.
    executor, workers : see :func:`hpcgym.study.open_executor`.
    """
    sources, families = workload or ["KTH-SP2", "SDSC-SP2"], family or ["order", "backfill"]
    print(tables(sources, families, cuts, Folder(output, executor, workers)))


if __name__ == "__main__":
    typer.run(main)
