"""The whole study of energy budgets: simulations, tables, pictures, report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.energy import budget_tables
from hpcgym.benchmarks.energy.budget import BUDGETS, READINGS, TEXT, measure, week_of, weeks_of
from hpcgym.benchmarks.energy.budget_tables import HEAD, report_text
from hpcgym.benchmarks.studies.harness import (
    Progress,
    check_report,
    no_progress,
    note_name,
    outcomes_of,
    save_picture,
    write_csv,
    write_text,
)
from hpcgym.benchmarks.studies.logs import load_jobs
from hpcgym.benchmarks.studies.store import code
from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import require_matplotlib
from hpcgym.workload.fingerprint import fingerprint

if TYPE_CHECKING:
    import pandas as pd

#: Where results come from, beside what all studies depend on.
MODULES = ("hpcgym.benchmarks.energy.budget", "hpcgym.benchmarks.energy.common")
QUICK_BUDGETS = (0.9, 0.6, 0.3)


def reproduce(
    sources: Sequence[str],
    folder: Path,
    *,
    weeks: int | None = None,
    seed: int = 0,
    quick: bool = False,
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where everything is written; outcomes of simulations into its folder ``tasks``.
    weeks : so many of each trace's busy weeks, drawn at random; None: all of them.
    seed : of the draw.
    quick : a small cut, which is compared with nothing published.
    executor, workers : where simulations run; see :func:`hpcgym.sweep.run_tasks`.
    progress : told of each step.

    Returns
    -------
    The file of the report, and the tables by name: see
    :data:`hpcgym.benchmarks.energy.budget_tables.TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read or has no whole week, two of the same name, no
        weeks, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    require_matplotlib()
    path = folder / "report.md"
    check_report(path, HEAD)  # that it cannot be written is said before the work, not after it
    number = 1 if quick and weeks is None else weeks
    if number is not None and number < 1:
        raise HpcgymError(f"weeks must be a whole number of at least 1, not {number}")
    if seed < 0:
        raise HpcgymError(f"seed must be a whole number of at least 0, not {seed}")
    names, tasks = _tasks(sources, number, seed, quick)
    outcomes = _simulated(names, tasks, folder / "tasks", executor, workers, progress)
    made = make_tables(outcomes)
    for name, table in made.items():
        write_csv(table, folder / f"table-{name}.csv")
    cells, pictures = budget_tables.cells_of(outcomes[TEXT]), {}
    for measured, (figure, label) in budget_tables.FIGURES.items():
        file = Path(f"figure-{figure}.png")
        drawn = budget_tables.draw(cells, measured, ", ".join(names))
        save_picture(drawn, folder / file)
        pictures[f"Figure {figure}: {label}"] = file
    chosen = "the upper quarter of each trace by the log"
    if number is not None:
        chosen += f", of which {number} were drawn with the seed {seed}"
    write_text(report_text(made, pictures, list(names), chosen, quick), path)
    return path, made


def make_tables(outcomes: budget_tables.Outcomes) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name."""
    made = {"statements": budget_tables.statements(outcomes)}
    if len(outcomes[TEXT]) > 1:
        made["statements-by-trace"] = budget_tables.statements_by_trace(outcomes)
    return made | {
        "5.1": budget_tables.table_5_1(outcomes),
        "figures": budget_tables.figures(outcomes),
        "weeks": budget_tables.of_weeks(outcomes),
        "readings": budget_tables.readings(),
    }


def _tasks(
    sources: Sequence[str], number: int | None, seed: int, quick: bool
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the source of each trace, and the tasks."""
    hashed = code(*MODULES)
    names: dict[str, str] = {}
    weeks: dict[tuple[str, int], str] = {}
    for source in sources:
        workload = load_jobs(source)
        note_name(names, workload.name, source)
        for week in weeks_of(workload, number, seed):
            weeks[workload.name, week] = fingerprint([week_of(workload, week)])
    return names, [
        {
            "trace": trace,
            "reading": reading,
            "week": week,
            "budgets": list(QUICK_BUDGETS if quick else BUDGETS),
            "jobs_sha256": digest,
            "code": hashed,
        }
        for reading in READINGS
        for (trace, week), digest in weeks.items()
    ]


def _simulated(
    names: dict[str, str],
    tasks: list[dict[str, Any]],
    folder: Path,
    executor: str,
    workers: int | None,
    progress: Progress,
) -> dict[str, dict[str, dict[int, dict[str, Any]]]]:
    """Return reading -> trace -> week -> its outcome."""
    found = outcomes_of(
        partial(measure, sources=names),
        tasks,
        folder,
        executor,
        workers,
        of="weeks",
        what="weeks",
        progress=progress,
    )
    outcomes: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    for task, outcome in zip(tasks, found, strict=True):
        by_trace = outcomes.setdefault(task["reading"], {})
        by_trace.setdefault(task["trace"], {})[task["week"]] = outcome
    return outcomes
