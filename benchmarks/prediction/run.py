"""The whole study: the campaign on every trace, then its tables, pictures and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from hpcgym.benchmarks.prediction import figures, runs, tables
from hpcgym.benchmarks.prediction.published import Published, read_published
from hpcgym.benchmarks.studies.harness import Folder, folder_name, write_csv
from hpcgym.benchmarks.studies.store import Store
from hpcgym.benchmarks.studies.tables import quick_note, read_texts, table_sections
from hpcgym.errors import HpcgymError
from hpcgym.version import __version__

# --- The report -----------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, _TEXTS = read_texts(__file__)


_PICTURES = {
    "published": "Ours and the published values",
    "all": "Ours and the published values, all configurations",
    "errors": "Prediction errors (figure 7.3)",
    "predicted": "Predicted run times (figure 7.4)",
}


def report_text(
    findings: Sequence[tables.Findings],
    made: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, Path]],
    values: Mapping[str, Published],
    quick: bool,
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    findings : of each trace, with its pictures.
    made : the tables by name.
    pairs : headings and files of the pictures of two traces.
    values : published results by trace.
    quick : whether this is a small cut.
    """
    parts = [HEAD.format(version=__version__)]
    if quick:
        parts += quick_note("few jobs and configurations")
    parts.append(_counts(findings, values))
    # a column of what is not published is left out
    filled = {name: table.dropna(axis="columns", how="all") for name, table in made.items()}
    parts += table_sections(filled, _TEXTS)
    for heading, file in pairs:
        parts.append(f"## {heading} (figure 7.2)\n\n![{heading}]({file.as_posix()})\n")
    if not pairs:
        parts.append("Figure 7.2 is of two traces: it is drawn if --workload names a second one.\n")
    for found in findings:
        parts.append(f"## {found.trace}\n")
        for name, heading in _PICTURES.items():
            if name in found.pictures:
                picture = found.pictures[name].as_posix()
                parts.append(f"{heading}:\n\n![{heading}]({picture})\n")
    return "\n".join(parts)


def _counts(findings: Sequence[tables.Findings], values: Mapping[str, Published]) -> str:
    """Say how much was simulated, and how much was published."""
    lines = [
        f"- {found.trace}: {len(found.table):,} configurations of {len(found.workload):,} jobs."
        for found in findings
    ]
    for trace, one in values.items():
        lines.append(
            f"- Published of {trace}: {one.rows:,} rows; {one.unfinished:,} of them, of runs that"
            " did not come to their end, are ignored."
        )
    return "\n".join(lines) + "\n"


# --- The whole study ------------------------------------------------------------------------------

#: Name of a table -> what makes it.
TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "without-learning": tables.exactness,
    "7.1": tables.table_7_1,
    "7.6": tables.table_7_6,
    "7.7": figures.table_7_7,
    "claim": tables.claim,
    "spread": figures.spread,
    "7.8": tables.table_7_8,
    "best": tables.best,
    "best-medians": figures.best_medians,
    "7.7-medians": figures.table_7_7_medians,
    "correlations": figures.correlations,
    "steadiness": figures.steadiness,
    "cost": tables.cost,
}


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    published: Path | None = None,
    full: bool = False,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    published : folder with the published results; None: only the values that the thesis prints.
    full : all configurations that there are published results of, not only the thesis's.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TABLES`.

    Raises
    ------
    HpcgymError : a source that cannot be read, a folder without published results, both ``full``
        and ``quick``, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    if full and quick:
        raise HpcgymError("full and quick: a study is one or the other")
    values = read_published(published)  # a wrong folder is said of a quick cut too
    if quick:
        values = {}
    traces = tables.load_traces(sources, quick)
    folder.begin(HEAD)
    which = runs.quick() if quick else runs.usual()
    if full:
        which = runs.published()
    outcomes = tables.run_campaign(traces, which, folder, quick=quick)
    findings = [
        tables.findings_of(source, workload, which, outcomes[name], values.get(name))
        for name, (source, workload) in traces.items()
    ]
    store = Store(folder.path / "steps")
    for place, found in enumerate(findings):
        folder.progress("predictions", place, len(findings))
        found.accuracy = runs.predictions_of(found.workload, store)
    made = make_tables(findings, values)
    for found in findings:
        file = folder.path / folder_name(found.trace) / "configurations.csv"
        write_csv(found.table.reset_index(), file)
    folder.write_tables(made)
    pictures = _draw(findings, folder)
    return folder.report(report_text(findings, made, pictures, values, quick)), made


def make_tables(
    findings: list[tables.Findings], values: Mapping[str, Published]
) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name, those without a row left out."""
    by_published = (figures.table_7_7, figures.table_7_7_medians)
    made = {
        name: make(findings, values) if make in by_published else make(findings)
        for name, make in TABLES.items()
    }
    return {name: table for name, table in made.items() if len(table)}


def _draw(findings: Sequence[tables.Findings], folder: Folder) -> list[tuple[str, Path]]:
    """Draw the pictures of each trace and of each pair; return headings and files of the pairs."""
    for found in findings:
        drawn: dict[str, Any] = {
            "errors": figures.draw_errors(found.accuracy, found.trace),
            "predicted": figures.draw_predicted(found.accuracy, found.trace),
        }
        if found.published is not None:
            drawn["published"] = figures.draw_against_published(found, found.of_thesis)
            if len(found.table) > len(runs.usual()):
                drawn["all"] = figures.draw_against_published(found, found.table)
        for name, figure in drawn.items():
            file = Path(folder_name(found.trace)) / f"{name}.png"
            found.pictures[name] = folder.picture(figure, file)
    pairs = []
    for first, second in combinations(findings, 2):
        heading = f"{first.trace} and {second.trace}"
        file = Path(f"{folder_name(f'{first.trace}-{second.trace}')}.png")
        pairs.append((heading, folder.picture(figures.draw_two_traces(first, second), file)))
    return pairs
