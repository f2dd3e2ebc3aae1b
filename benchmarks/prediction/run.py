"""The whole study: the campaign on every trace, then its tables, pictures and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from hpcgym.benchmarks.prediction import figures, runs, tables
from hpcgym.benchmarks.prediction.published import Published, read_published
from hpcgym.benchmarks.prediction.tables import (
    Findings,
    findings_of,
    load_traces,
    predictions_of,
    run_campaign,
)
from hpcgym.benchmarks.studies.harness import Folder, folder_name, write_csv
from hpcgym.benchmarks.studies.store import Store
from hpcgym.benchmarks.studies.tables import quick_note, table_sections
from hpcgym.errors import HpcgymError
from hpcgym.version import __version__

# --- The report -----------------------------------------------------------------------------------

#: What reports of this study begin with.
HEAD = """\
# Run time prediction, computed anew

D. Glesser: Road to exascale (2016), chapter 7, with E. Gaussier, V. Reis and D. Trystram. Computed
by hpcgym {version}. Values are mean bounded slowdowns with 10 s over all jobs; there is a pass
after each event, and jobs are cleaned by the recipe `glesser`. Columns named *published* are
the original experiment's own results at full precision, those named *thesis* what it prints.
"""

#: Name of a table -> heading, and what is said below it.
_TEXTS = {
    "without-learning": (
        "Without learning",
        "The rules are the original's, so these have to be equal. The thesis's SDSC-SP2 is an older"
        " edition of the log with 7 jobs more.",
    ),
    "7.1": ("EASY and known run times (table 7.1)", ""),
    "7.6": (
        "Overview (table 7.6)",
        "Best and worst are over the 120 configurations that learn, with each of the thresholds 0,"
        " 60 and 600 s between the branches of the loss: those over which the thesis's are.",
    ),
    "7.7": (
        "A triple chosen on other traces (table 7.7)",
        "The triple with the least sum over the other traces, on the trace that is left out; among"
        " the configurations that learn and AVE2's.",
    ),
    "claim": (
        "E-Loss, incremental correction, SJBF",
        "By how many percent it is below EASY and EASY++ (section 7.5.3).",
    ),
    "spread": (
        "The same triple with other thresholds and scales",
        "The 27 variants of the triple in the published campaign: a threshold of 0, 60 or 600 s"
        " between the branches, each of which is scaled by 1, 100 or 10,000.",
    ),
    "7.8": (
        "Prediction errors (table 7.8)",
        "Predictions at submission, in simulations with SJBF and incremental correction. The thesis"
        " has them for Curie only.",
    ),
    "best": ("The best triples", "Ranks are among the configurations that learn."),
    "best-medians": (
        "The best triples by their medians",
        "Of each triple the median over its variants: of all its thresholds and scales. AVE2 has no"
        " variants; places are among the triples that learn and AVE2's.",
    ),
    "7.7-medians": (
        "A triple chosen on other traces, by medians",
        "As in table 7.7, but triples are chosen and judged by their medians over variants.",
    ),
    "correlations": (
        "How alike configurations do",
        "Of the configurations that learn, those of one kind each: mean of their mean bounded"
        " slowdowns, and the rank correlations of ours with the published.",
    ),
    "steadiness": (
        "How steady the published values are",
        "The published values of the thesis's configurations against those of the same with a"
        " threshold between the branches, or with both branches scaled alike: what separates runs"
        " of the original that differ in little. *Median ratio*: of the larger to the smaller.",
    ),
    "cost": ("Cost", "Of computing, summed over processes and earlier runs."),
}

_PICTURES = {
    "published": "Ours and the published values",
    "all": "Ours and the published values, all configurations",
    "errors": "Prediction errors (figure 7.3)",
    "predicted": "Predicted run times (figure 7.4)",
}


def report_text(
    findings: Sequence[Findings],
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


def _counts(findings: Sequence[Findings], values: Mapping[str, Published]) -> str:
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
    traces = load_traces(sources, quick)
    folder.begin(HEAD)
    which = runs.quick() if quick else runs.usual()
    if full:
        which = runs.published()
    outcomes = run_campaign(traces, which, folder, quick=quick)
    findings = [
        findings_of(source, workload, which, outcomes[name], values.get(name))
        for name, (source, workload) in traces.items()
    ]
    store = Store(folder.path / "steps")
    for place, found in enumerate(findings):
        folder.progress("predictions", place, len(findings))
        found.accuracy = predictions_of(found, store)
    made = make_tables(findings, values)
    for found in findings:
        file = folder.path / folder_name(found.trace) / "configurations.csv"
        write_csv(found.table.reset_index(), file)
    folder.write_tables(made)
    pictures = _draw(findings, folder)
    return folder.report(report_text(findings, made, pictures, values, quick)), made


def make_tables(
    findings: list[Findings], values: Mapping[str, Published]
) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name, those without a row left out."""
    by_published = (figures.table_7_7, figures.table_7_7_medians)
    made = {
        name: make(findings, values) if make in by_published else make(findings)
        for name, make in TABLES.items()
    }
    return {name: table for name, table in made.items() if len(table)}


def _draw(findings: Sequence[Findings], folder: Folder) -> list[tuple[str, Path]]:
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
