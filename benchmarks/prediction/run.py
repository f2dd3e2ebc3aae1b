"""The whole study: the campaign on every trace, then its tables, pictures and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.prediction import choice, configurations, figures, ranks, tables
from hpcgym.benchmarks.prediction.accuracy import predictions_of
from hpcgym.benchmarks.prediction.campaign import (
    Findings,
    findings_of,
    load_traces,
    run_campaign,
)
from hpcgym.benchmarks.prediction.published import Published, read_published
from hpcgym.benchmarks.studies.markdown import (
    check_report,
    folder_name,
    write_csv,
    write_text,
)
from hpcgym.benchmarks.studies.pictures import save_picture
from hpcgym.benchmarks.studies.progress import Progress, no_progress
from hpcgym.benchmarks.studies.store import Store
from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import require_matplotlib

if TYPE_CHECKING:
    import pandas as pd

#: Name of a table -> what makes it.
TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "without-learning": tables.exactness,
    "7.1": tables.table_7_1,
    "7.6": tables.table_7_6,
    "7.7": choice.table_7_7,
    "claim": tables.claim,
    "spread": choice.spread,
    "7.8": tables.table_7_8,
    "best": tables.best,
    "best-medians": choice.best_medians,
    "7.7-medians": choice.table_7_7_medians,
    "correlations": ranks.correlations,
    "steadiness": ranks.steadiness,
    "cost": tables.cost,
}


def reproduce(
    sources: Sequence[str],
    folder: Path,
    *,
    published: Path | None = None,
    full: bool = False,
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
    published : folder with the published results; None: only the values that the thesis prints.
    full : all configurations that there are published results of, not only the thesis's.
    quick : a small cut, which is compared with nothing published.
    executor, workers : where simulations run; see :func:`hpcgym.sweep.run_tasks`.
    progress : told of each step.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TABLES`.

    Raises
    ------
    HpcgymError : a source that cannot be read, a folder without published results, both ``full``
        and ``quick``, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    from hpcgym.benchmarks.prediction.report import HEAD, report_text

    if full and quick:
        raise HpcgymError("full and quick: a study is one or the other")
    require_matplotlib()
    values = read_published(published)  # a wrong folder is said of a quick cut too
    if quick:
        values = {}
    traces = load_traces(sources, quick)
    path = folder / "report.md"
    check_report(path, HEAD)  # that it cannot be written is said before the work, not after it
    which = configurations.quick() if quick else configurations.usual()
    if full:
        which = configurations.published()
    outcomes = run_campaign(
        traces, which, folder / "tasks", executor, workers, quick=quick, progress=progress
    )
    findings = [
        findings_of(source, workload, which, outcomes[name], values.get(name))
        for name, (source, workload) in traces.items()
    ]
    store = Store(folder / "steps")
    for place, found in enumerate(findings):
        progress("predictions", place, len(findings))
        found.accuracy = predictions_of(found, store)
    made = make_tables(findings, values)
    _write(findings, made, folder)
    pictures = _draw(findings, folder)
    write_text(report_text(findings, made, pictures, values, quick), path)
    return path, made


def make_tables(
    findings: list[Findings], values: Mapping[str, Published]
) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name, those without a row left out."""
    by_published = (choice.table_7_7, choice.table_7_7_medians)
    made = {
        name: make(findings, values) if make in by_published else make(findings)
        for name, make in TABLES.items()
    }
    return {name: table for name, table in made.items() if len(table)}


def _write(findings: Sequence[Findings], made: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write all tables as CSV."""
    for found in findings:
        place = folder / folder_name(found.trace)
        write_csv(found.table.reset_index(), place / "configurations.csv")
    for name, table in made.items():
        write_csv(table, folder / f"table-{name}.csv")


def _draw(findings: Sequence[Findings], folder: Path) -> list[tuple[str, Path]]:
    """Draw the pictures of each trace and of each pair; return headings and files of the pairs."""
    for found in findings:
        drawn: dict[str, Any] = {
            "errors": figures.draw_errors(found.accuracy, found.trace),
            "predicted": figures.draw_predicted(found.accuracy, found.trace),
        }
        if found.published is not None:
            drawn["published"] = figures.draw_against_published(found, found.of_thesis)
            if len(found.table) > len(configurations.usual()):
                drawn["all"] = figures.draw_against_published(found, found.table)
        for name, figure in drawn.items():
            found.pictures[name] = Path(folder_name(found.trace)) / f"{name}.png"
            save_picture(figure, folder / found.pictures[name])
    pairs = []
    for first, second in combinations(findings, 2):
        heading = f"{first.trace} and {second.trace}"
        file = Path(f"{folder_name(f'{first.trace}-{second.trace}')}.png")
        save_picture(figures.draw_two_traces(first, second), folder / file)
        pairs.append((heading, file))
    return pairs
