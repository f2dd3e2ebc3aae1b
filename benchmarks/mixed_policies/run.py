"""The whole study: every step on every trace, and a report that grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.mixed_policies import items, tables
from hpcgym.benchmarks.mixed_policies.study import (
    POINTS,
    READINGS,
    SEARCHES,
    THRESHOLD_S,
    Study,
    cover_on,
    covered,
    grid,
    optimum,
    searched,
)
from hpcgym.benchmarks.studies.harness import Folder, folder_name
from hpcgym.benchmarks.studies.tables import read_texts
from hpcgym.version import __version__
from hpcgym.workload.load import load_workload

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


@dataclass
class Findings:
    """What has been computed of one trace under one reading so far.

    Attributes
    ----------
    study, source : the trace and the reading; what the trace was loaded from.
    tables : name -> table; each is a CSV file too.
    pictures : name -> file, relative to the folder of the report.
    """

    study: Study
    source: str
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)

    def place(self, name: str) -> str:
        """Return the name of a table or picture of these findings, in a folder of their own."""
        return f"{folder_name(f'{self.study.trace}-{self.study.reading.name}')}/{name}"

    def draw(self, folder: Folder, name: str, figure: Any) -> None:
        """Write a picture."""
        self.pictures[name] = folder.picture(figure, self.place(f"{name}.png"))

    @property
    def said(self) -> str:
        """What pictures say of the trace, in one line that fits."""
        trace = self.study.trace
        trace = trace if len(trace) <= 40 else f"{trace[:39]}…"
        return f"{trace}, reading: {self.study.reading.name}, threshold {THRESHOLD_S:,} s"


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    reading: str = "numbers",
    points: int = POINTS,
    quick: bool = False,
) -> tuple[Path, list[Findings]]:
    """Run the study and write tables, pictures and a report; what was done before is kept.

    Pure policies are simulated under both readings, everything else under the one given.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; results of steps are in its folder ``steps``. Its executor does
        the long part, all vectors on each week; the rest is done here, on all threads.
    reading : "text" or "numbers", see ``study.READINGS``.
    points : values of each of the three weights.
    quick : a small cut.

    Returns
    -------
    The file of the report, and the findings of each trace, those under ``reading`` first.

    Raises
    ------
    HpcgymError : a source or reading that is none, a file that cannot be written, or no matplotlib.
    """
    names = [reading, *(name for name in READINGS if name != reading)]
    rules: dict[str, Any] = {"folder": folder.path, "points": points, "quick": quick}
    findings = [
        Findings(Study(source, name, progress=folder.progress, **rules), source)
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
            add_mixed(found, folder)
            write(findings, folder)
    return path, findings


def add_pure(found: Findings, folder: Folder) -> None:
    """Simulate the pure policies: tables 1 and 3 to 7, figures 1 and 2."""
    study = found.study
    study.progress(f"{study.trace}, {study.reading.name}: pure policies", 0, 1)
    weekly = tables.by_period(study, "week", study.weeks)
    found.tables |= {
        "jobs": tables.jobs(study),
        "thresholds": tables.thresholds(study),
        "split": tables.split_of_weeks(study, weekly),
        "weekly": weekly,
    }
    if study.trace in items.TABLE_7:
        found.tables["longest"] = tables.longest(study, load_workload(found.source, clean="none"))
    found.draw(folder, "distribution", tables.draw_distribution(weekly, found.said))
    heading = "SAF and the best pure policy of each week"
    found.draw(folder, "saf", tables.draw_periods(weekly, tables.BEST, heading, found.said))


def add_mixed(found: Findings, folder: Folder) -> None:
    """Try all vectors of three weights, and searches: table 2, figures 3 to 5 and 15."""
    study, tried = found.study, {}
    halves = {"week": (study.train, study.test), "month": tables.half_of_months(study)}
    for period, (parts, points) in study.covers().items():
        tried[period] = optimum(study, parts, halves[period][0], points)
        table = tables.by_period(study, period, parts, tried[period])
        heading = f"Mixed and pure policies on each {period}"
        figure = tables.draw_periods(table, tables.MIXED, heading, found.said, halves[period][1])
        found.draw(folder, f"{period}s", figure)
        found.tables[f"{period}ly"] = table
    found.tables["grid"] = tables.grids(study, tried)
    if "month" in tried:
        found.tables["months"] = tables.split(found.tables["monthly"], halves["month"])
    searches = {name: searched(study, name) for name in SEARCHES}
    weekly = found.tables["weekly"] = found.tables["weekly"].assign(**searches)
    found.tables["searches"] = tables.searches(tried["week"]["w*"], searches)
    found.tables["split"] = tables.split_of_weeks(study, weekly)
    heading = "XNES and all vectors of three weights"
    figure = tables.draw_periods(weekly, tables.SEARCHED, heading, found.said)
    found.draw(folder, "searches", figure)
    mapped = items.MAPPED.get(study.trace, set()) & study.weeks.keys() or [*study.weeks][:4]
    cubes = {
        week: covered(study, week, study.weeks[week], study.points)["values"]
        for week in sorted(mapped)
    }
    spaces = tables.draw_spaces(cubes, grid(study.points).points, found.said)
    found.draw(folder, "spaces", spaces)


# --- The report -----------------------------------------------------------------------------------


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
    lines = [f"- **{reading.name}**: {reading.meaning}." for reading in READINGS.values()]
    head = "\n".join([HEAD.format(version=__version__), "Two readings of the paper:\n", *lines, ""])
    return folder.publish(head, made, texts, pictures, cut, begin="")[0]


def closeness(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return how near the sums without a threshold are to the paper's, by trace and reading.

    Those of other traces than the paper's have no row.
    """
    rows = []
    for found in findings:
        table = found.tables["thresholds"]
        if "paper" not in table:
            continue
        free = table[table["threshold (s)"] == "none"].set_index("policy")
        ratio = free["ours / paper"]
        same, pairs = tables.order_agreement(free["ours"].tolist(), free["paper"].tolist())
        rows.append(
            {
                "trace": found.study.trace,
                "reading": found.study.reading.name,
                "FCFS: ratio": float(ratio["fcfs"]),
                "least ratio": float(ratio.min()),
                "geometric mean ratio": float(np.exp(np.log(ratio).mean())),
                "largest ratio": float(ratio.max()),
                "same order": f"{same} of {pairs}",
            }
        )
    return pd.DataFrame(rows)
