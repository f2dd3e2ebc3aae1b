"""The whole study: every step on every trace, and a report that grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.mixed_policies import published, tables
from hpcgym.benchmarks.mixed_policies.optimum import (
    Optimum,
    cover_on,
    covered,
    find_optimum,
    search_all,
    units,
)
from hpcgym.benchmarks.mixed_policies.study import READINGS, THRESHOLD_S, Study, grid
from hpcgym.benchmarks.mixed_policies.tables import gains, order_agreement
from hpcgym.benchmarks.studies.harness import Folder, folder_name, write_csv
from hpcgym.benchmarks.studies.tables import table_text
from hpcgym.benchmarks.studies.weeks import WEEKS
from hpcgym.version import __version__
from hpcgym.workload.load import load_workload

# --- The report -----------------------------------------------------------------------------------

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
    number = published.THRESHOLD_TABLE.get(study.trace)
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


# --- How near the sums are to the paper's ---------------------------------------------------------

#: Where the differences are told.
_DIFFERENCES = "`benchmarks/mixed_policies/README.md`, *What differs, and why*"


def account_text(findings: Sequence[Findings]) -> str:
    """Return the account as Markdown; empty if the paper has no values of these traces."""
    compared = [found for found in findings if "paper" in found.tables["thresholds"]]
    if not compared:
        return ""
    note = (
        "Sums without a threshold, ours divided by the paper's; pairs of policies that are in the"
        " same order; the largest difference of a gain over FCFS, in percentage points. What"
        f" differs from the paper, and why as far as that is known: {_DIFFERENCES}.\n"
    )
    table = table_text(closeness(compared))
    return f"## How close\n\n{note}\n{table}"


def closeness(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return how near the sums without a threshold are to the paper's, by trace and reading."""
    rows = []
    for found in findings:
        study, table = found.study, found.tables["thresholds"]
        free = table[table["threshold (s)"] == "none"].set_index("policy")
        ours = {str(name): float(value) for name, value in free["ours"].items()}
        paper = {name: row[0] for name, row in published.TABLES_3_TO_6[study.trace].items()}
        ratio = free["ours / paper"]
        same, pairs = order_agreement(ours, paper)
        mine, theirs = gains(ours), gains(paper)
        rows.append(
            {
                "trace": study.trace,
                "reading": study.reading.name,
                "FCFS: ratio": float(ratio["fcfs"]),
                "least ratio": float(ratio.min()),
                "geometric mean ratio": float(np.exp(np.log(ratio).mean())),
                "largest ratio": float(ratio.max()),
                "same order": f"{same} of {pairs}",
                "largest difference of a gain": max(abs(mine[p] - theirs[p]) for p in ours),
            }
        )
    return pd.DataFrame(rows)


# --- The whole study ------------------------------------------------------------------------------

_MAPS = 4  # weeks whose space is drawn, of a trace of which the paper draws none


@dataclass
class Findings:
    """What has been computed of one trace under one reading so far.

    Attributes
    ----------
    study, source : the trace and the reading; what the trace was loaded from.
    tables : name -> table; each is a CSV file too.
    pictures : name -> file, relative to the folder of the report.
    optimum, months : what all vectors told on weeks and months.
    searched : name of a search -> its arrays, for each budget.
    """

    study: Study
    source: str
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)
    optimum: Optimum | None = None
    months: Optimum | None = None
    searched: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    reading: str = "numbers",
    quick: bool = False,
) -> tuple[Path, list[Findings]]:
    """Run the study and write tables, pictures and a report; what was done before is kept.

    Pure policies are simulated under both readings, everything else under the one given.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; results of steps are in its folder ``steps``. Its executor does
        the long part, all vectors on each week; the rest is done here, on all threads.
    reading : "text" or "numbers", see ``readings.READINGS``.
    quick : a small cut.

    Returns
    -------
    The file of the report, and the findings of each trace, those under ``reading`` first.

    Raises
    ------
    HpcgymError : a source or reading that is none, a file that cannot be written, or no matplotlib.
    """
    names = [reading, *(name for name in READINGS if name != reading)]
    findings = [
        Findings(
            Study(source, name, folder=folder.path, quick=quick, progress=folder.progress), source
        )
        for source in sources
        for name in names
    ]
    folder.begin(HEAD)
    for found in findings:
        add_pure(found, folder)
        _write_tables(found, folder)
    path = folder.report(report_text(findings))
    for found in findings:
        if found.study.reading.name == reading:
            cover_on(found.study, found.source, folder)
            for add in (add_units, add_optimum, add_searches, add_months):
                add(found, folder)
                _write_tables(found, folder)
                folder.report(report_text(findings))
    return path, findings


def add_pure(found: Findings, folder: Folder) -> None:
    """Simulate the pure policies: tables 1 and 3 to 7, figures 1 and 2."""
    study = found.study
    study.progress(f"{study.trace}, {study.reading.name}: pure policies", 0, 1)
    found.tables["jobs"] = tables.jobs(study)
    found.tables["thresholds"] = tables.thresholds(study)
    found.tables["split"] = tables.split(study)
    found.tables["weekly"] = weekly = tables.weekly(study)
    if study.trace in published.TABLE_7:
        found.tables["longest"] = tables.longest(study, load_workload(found.source, clean="none"))
    found.pictures = {
        "distribution": _drawn(found, folder, "distribution", tables.draw_distribution, weekly),
        "saf": _drawn(found, folder, "saf", tables.draw_saf, weekly),
    }


def add_units(found: Findings, _: Folder) -> None:
    """Try units of times: what the paper leaves open."""
    found.tables["units"] = units(found.study)


def add_optimum(found: Findings, folder: Folder) -> None:
    """Try all vectors of three weights: table 2, figures 3 and 4."""
    study = found.study
    found.optimum = find_optimum(study, study.weeks, study.train, study.points)
    found.tables["split"] = tables.split(study, found.optimum)
    found.tables["weekly"] = weekly = tables.weekly(study, found.optimum)
    draw = tables.draw_comparison
    halves = (study.train, study.test)
    found.pictures["weeks"] = _drawn(found, folder, "weeks", draw, weekly, "week", *halves)
    cubes = {
        week: covered(study, week, study.weeks[week], study.points)["values"]
        for week in _mapped(study)
    }
    spaces = tables.draw_spaces(cubes, grid(study.points).points, _name(study))
    found.pictures["spaces"] = _saved(found, folder, "spaces", spaces)


def add_searches(found: Findings, folder: Folder) -> None:
    """Search the best weights of each week: figure 5."""
    assert found.optimum is not None
    study = found.study
    found.searched = search_all(study)
    found.tables["searches"] = tables.searches(found.optimum, found.searched)
    found.tables["weekly"] = weekly = tables.weekly(study, found.optimum, found.searched)
    draw = tables.draw_searches
    found.pictures["searches"] = _drawn(found, folder, "searches", draw, weekly)


def add_months(found: Findings, folder: Folder) -> None:
    """Do the same by month: section 11, figure 15."""
    study = found.study
    if "month" not in study.covers():
        return  # too short a trace
    halves = tables.half_of_months(study)
    found.months = find_optimum(study, study.months, halves[0], study.month_points)
    found.tables["months"] = tables.months(study, found.months)
    found.tables["monthly"] = monthly = tables.monthly(study, found.months)
    draw = tables.draw_comparison
    found.pictures["months"] = _drawn(found, folder, "months", draw, monthly, "month", *halves)


def _mapped(study: Study) -> list[int]:
    """Return the weeks whose space is drawn: the paper's, or those where policies differ most."""
    named = [week for week in published.MAPPED.get(study.trace, ()) if week in study.weeks]
    if named:
        return named
    bsld = study.pure(study.weeks)
    spread = bsld.max(axis=0) / bsld.min(axis=0)
    most = spread.argsort()[::-1][:_MAPS]
    return sorted(list(study.weeks)[place] for place in most)


def _name(study: Study) -> str:
    """Return what pictures say of the trace, in one line that fits."""
    trace = study.trace if len(study.trace) <= 40 else f"{study.trace[:39]}…"
    return f"{trace}, reading: {study.reading.name}, threshold {THRESHOLD_S:,} s"


def _drawn(
    found: Findings, folder: Folder, name: str, draw: Any, table: pd.DataFrame, *others: Any
) -> Path:
    """Draw a picture of a table and return its file, relative to the folder."""
    return _saved(found, folder, name, draw(table, _name(found.study), *others))


def _saved(found: Findings, folder: Folder, name: str, figure: Any) -> Path:
    """Write a picture and return its file, relative to the folder."""
    return folder.picture(figure, _place(found, f"{name}.png"))


def _write_tables(found: Findings, folder: Folder) -> None:
    """Write all tables as CSV."""
    for name, table in found.tables.items():
        write_csv(table, folder.path / _place(found, f"{name}.csv"))


def _place(found: Findings, file: str) -> Path:
    """Return where a file of these findings is, relative to the folder."""
    return Path(folder_name(f"{found.study.trace}-{found.study.reading.name}")) / file
