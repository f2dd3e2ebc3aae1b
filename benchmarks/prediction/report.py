"""The report: the thesis's tables and figures, ours beside the published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.benchmarks.prediction.campaign import Findings
from hpcgym.benchmarks.prediction.published import Published
from hpcgym.benchmarks.studies.markdown import table_text
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

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
        parts.append("**A quick cut: few jobs and configurations. Not to be compared.**\n")
    parts.append(_counts(findings, values))
    for name, (heading, note) in _TEXTS.items():
        if name in made:
            table = made[name].dropna(axis="columns", how="all")  # nothing of it was published
            parts += [f"## {heading}\n", *([f"{note}\n"] if note else []), table_text(table)]
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
