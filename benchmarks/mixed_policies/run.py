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
from hpcgym.benchmarks.studies.harness import Folder, folder_name
from hpcgym.benchmarks.studies.tables import read_texts
from hpcgym.benchmarks.studies.weeks import WEEKS
from hpcgym.version import __version__
from hpcgym.workload.load import load_workload

# --- The report -----------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = read_texts(__file__, threshold=THRESHOLD_S)
#: The table of all traces and readings.
_ALL = "how-close"

#: Name of a picture -> heading, and the figure of the paper that it stands for.
_PICTURES = {
    "distribution": "Weekly mean BSLD of the pure policies (figure 1)",
    "saf": "SAF and the best pure policy of each week (figures 2, 6, 9, 12)",
    "weeks": "Mixed policies on each week (figures 3, 7, 10, 13)",
    "spaces": "The space of three weights (figure 4)",
    "searches": "Search over three and six weights against the grid (figures 5, 8, 11, 14)",
    "months": "Mixed policies on each month (figure 15)",
}


def write(findings: Sequence[Findings], folder: Folder) -> Path:
    """Write all tables so far, and a report of them; return its file."""
    made, texts = {_ALL: closeness(findings)}, {_ALL: TEXTS[_ALL]}
    pictures: dict[str, Path] = {}
    for found in findings:
        said = f"{found.study.trace}, reading {found.study.reading.name}"
        for name, (heading, note) in TEXTS.items():
            texts[found.place(name)] = f"{said}: {heading}", note
        made |= {found.place(name): table for name, table in found.tables.items()}
        pictures |= {f"{said}: {_PICTURES[name]}": of for name, of in found.pictures.items()}
    cut = "few weeks and a coarse grid" * any(found.study.quick for found in findings)
    return folder.publish(_head(findings), made, texts, pictures, cut, begin="")[0]


def _head(findings: Sequence[Findings]) -> str:
    """Return what the report begins with: the readings, and what weeks there are of each trace."""
    lines = [f"- **{reading.name}**: {reading.meaning}." for reading in READINGS.values()]
    parts = [HEAD.format(version=__version__), "Two readings of the paper:\n", *lines, ""]
    for found in findings:
        study = found.study
        numbers = " in the paper's numbers" if study.trace in WEEKS else ""
        parts.append(
            f"- {study.trace}, reading {study.reading.name}: weeks {min(study.weeks)} to"
            f" {max(study.weeks)}{numbers}; training on {study.train[0]} to {study.train[-1]},"
            f" testing on {study.test[0]} to {study.test[-1]}."
        )
        parts += _cost(found)
    return "\n".join(parts) + "\n"


def _cost(found: Findings) -> list[str]:
    """Say what all vectors took."""
    lines = []
    for label, optimum in (("weeks", found.optimum), ("months", found.months)):
        if optimum is not None:
            pairs = optimum.vectors * len(optimum.numbers)
            lines.append(
                f"  All {optimum.vectors:,} different vectors on {len(optimum.numbers)} {label},"
                f" {pairs:,} schedules, took {optimum.seconds:,.0f} s of computing,"
                " summed over processes and earlier runs."
            )
    return lines


# --- How near the sums are to the paper's ---------------------------------------------------------


def closeness(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return how near the sums without a threshold are to the paper's, by trace and reading.

    Those of other traces than the paper's have no row.
    """
    rows = []
    for found in findings:
        study, table = found.study, found.tables["thresholds"]
        if "paper" not in table:
            continue
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

    def place(self, name: str) -> str:
        """Return the name of a table or picture of these findings, in a folder of their own."""
        return f"{folder_name(f'{self.study.trace}-{self.study.reading.name}')}/{name}"

    def draw(self, folder: Folder, name: str, figure: Any) -> None:
        """Write a picture."""
        self.pictures[name] = folder.picture(figure, self.place(f"{name}.png"))


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
    path = write(findings, folder)
    for found in findings:
        if found.study.reading.name == reading:
            cover_on(found.study, found.source, folder)
            for add in (add_units, add_optimum, add_searches, add_months):
                add(found, folder)
                write(findings, folder)
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
    found.draw(folder, "distribution", tables.draw_distribution(weekly, _name(study)))
    found.draw(folder, "saf", tables.draw_saf(weekly, _name(study)))


def add_units(found: Findings, _: Folder) -> None:
    """Try units of times: what the paper leaves open."""
    found.tables["units"] = units(found.study)


def add_optimum(found: Findings, folder: Folder) -> None:
    """Try all vectors of three weights: table 2, figures 3 and 4."""
    study = found.study
    found.optimum = find_optimum(study, study.weeks, study.train, study.points)
    found.tables["split"] = tables.split(study, found.optimum)
    found.tables["weekly"] = weekly = tables.weekly(study, found.optimum)
    halves = (study.train, study.test)
    found.draw(folder, "weeks", tables.draw_comparison(weekly, _name(study), "week", *halves))
    cubes = {
        week: covered(study, week, study.weeks[week], study.points)["values"]
        for week in _mapped(study)
    }
    spaces = tables.draw_spaces(cubes, grid(study.points).points, _name(study))
    found.draw(folder, "spaces", spaces)


def add_searches(found: Findings, folder: Folder) -> None:
    """Search the best weights of each week: figure 5."""
    assert found.optimum is not None
    study = found.study
    found.searched = search_all(study)
    found.tables["searches"] = tables.searches(found.optimum, found.searched)
    found.tables["weekly"] = weekly = tables.weekly(study, found.optimum, found.searched)
    found.draw(folder, "searches", tables.draw_searches(weekly, _name(study)))


def add_months(found: Findings, folder: Folder) -> None:
    """Do the same by month: section 11, figure 15."""
    study = found.study
    if "month" not in study.covers():
        return  # too short a trace
    halves = tables.half_of_months(study)
    found.months = find_optimum(study, study.months, halves[0], study.month_points)
    found.tables["months"] = tables.months(study, found.months)
    found.tables["monthly"] = monthly = tables.monthly(study, found.months)
    found.draw(folder, "months", tables.draw_comparison(monthly, _name(study), "month", *halves))


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
