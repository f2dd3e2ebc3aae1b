"""The report: tables and pictures with the paper's own beside ours, and how near they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpcgym.benchmarks.mixed_policies.account import account_text
from hpcgym.benchmarks.mixed_policies.published import THRESHOLD_TABLE
from hpcgym.benchmarks.mixed_policies.readings import READINGS
from hpcgym.benchmarks.mixed_policies.study import THRESHOLD_S
from hpcgym.benchmarks.studies.markdown import table_text
from hpcgym.benchmarks.studies.weeks import WEEKS
from hpcgym.version import __version__

if TYPE_CHECKING:
    from hpcgym.benchmarks.mixed_policies.run import Findings

#: What reports of this study begin with.
HEAD = "# Mixed policies, computed anew\n"

#: Of a picture: heading, and the figure of the paper that it stands for.
_PICTURES = {
    "distribution": "Weekly mean BSLD of the pure policies (figure 1)",
    "saf": "SAF and the best pure policy of each week (figures 2, 6, 9, 12)",
    "weeks": "Mixed policies on each week (figures 3, 7, 10, 13)",
    "spaces": "The space of three weights (figure 4)",
    "searches": "Search over three and six weights against the grid (figures 5, 8, 11, 14)",
    "months": "Mixed policies on each month (figure 15)",
}

_LONGEST = (
    "As logged. Section 10 has them as why 20 hours is too short a threshold; those that ran for"
    " longer than they requested are dropped by the cleaning, and are in no simulation here.\n"
)


def report_text(findings: Sequence[Findings]) -> str:
    """Return the report as Markdown."""
    parts = [
        HEAD,
        "A. Legrand, D. Trystram and S. Zrigui: Adapting Batch Scheduling to Workload"
        " Characteristics: What can we expect From Online Learning? Inria research report 9212,"
        f" 2018. Computed by hpcgym {__version__}; columns named *paper* are the report's own."
        " Sums are of the mean bounded slowdown (BSLD) of each week; gains are relative to FCFS;"
        " all policies backfill by requested time (SPF).\n",
        "Two readings of the paper:\n",
        *(f"- **{reading.name}**: {reading.meaning}." for reading in READINGS.values()),
    ]
    if any(found.study.quick for found in findings):
        parts.append("\n**A quick cut: few weeks and a coarse grid. Not to be compared.**")
    parts += ["", account_text(findings)]
    for found in findings:
        parts.append(_section(found))
    return "\n".join(parts)


def _section(found: Findings) -> str:
    """Return everything about one trace under one reading."""
    study = found.study
    parts = [f"## {study.trace}, reading: {study.reading.name}\n"]
    numbers = " in the paper's numbers" if study.trace in WEEKS else ""
    parts.append(f"Weeks {min(study.weeks)} to {max(study.weeks)}{numbers}.\n")
    parts.append(table_text(found.tables["jobs"]))
    number = THRESHOLD_TABLE.get(study.trace)
    heading = "Thresholds" + (f" (table {number})" if number else "")
    parts += [f"### {heading}\n", table_text(found.tables["thresholds"])]
    if "longest" in found.tables:
        parts += ["### The longest jobs (table 7)\n", _LONGEST, table_text(found.tables["longest"])]
    heading = "Training and testing" + (" (table 2)" if study.trace == "SDSC-SP2" else "")
    halves = (
        f"Weeks {study.train[0]} to {study.train[-1]}, and {study.test[0]} to {study.test[-1]},"
        f" with the threshold of {THRESHOLD_S:,} s.\n"
    )
    parts += [f"### {heading}\n", halves, table_text(found.tables["split"]), *_cost(found)]
    if "units" in found.tables:
        text = "The best of the same random vectors, with times in other units than seconds.\n"
        parts += ["### Units\n", text, table_text(found.tables["units"])]
    for name, heading in _PICTURES.items():
        if name in found.pictures:
            if name == "searches":
                parts += ["### XNES\n", table_text(found.tables["searches"])]
            if name == "months":
                parts += ["### Months (section 11)\n", table_text(found.tables["months"])]
            parts.append(f"{heading}:\n\n![{heading}]({found.pictures[name].as_posix()})\n")
    return "\n".join(parts)


def _cost(found: Findings) -> list[str]:
    """Say what all vectors took."""
    lines = []
    for label, optimum in (("weeks", found.optimum), ("months", found.months)):
        if optimum is not None:
            pairs = optimum.vectors * len(optimum.numbers)
            lines.append(
                f"All {optimum.vectors:,} different vectors on {len(optimum.numbers)} {label},"
                f" {pairs:,} schedules, took {optimum.seconds:,.0f} s of computing,"
                " summed over processes and earlier runs.\n"
            )
    return lines
