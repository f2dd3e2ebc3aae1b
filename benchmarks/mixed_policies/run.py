"""The whole study: every step on every trace, and a report that grows with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.mixed_policies import items, study, tables
from hpcgym.benchmarks.studies.harness import Folder, folder_name
from hpcgym.benchmarks.studies.tables import read_texts
from hpcgym.version import __version__
from hpcgym.workload.load import load_workload

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = read_texts(__file__, threshold=study.THRESHOLD_S)
#: The table of all traces and readings.
_ALL = "how-close"

#: Name of a picture -> heading, and the figures of the paper that it stands for.
_PICTURES = {
    "distribution": "Weekly mean BSLD of the pure policies (figure 1)",
    "saf": "SAF and the best pure policy of each week (figures 2, 6, 9, 12)",
    "weeks": "Mixed and pure policies on each week (figures 3, 7, 10, 13)",
    "spaces": "The space of three weights (figure 4)",
    "searches": "XNES and all vectors of three weights (figures 5, 8, 11, 14)",
    "months": "Mixed and pure policies on each month (figure 15)",
}


@dataclass
class Findings:
    """What has been computed of one trace under one reading so far.

    Attributes
    ----------
    study, source : the trace and the reading; what the trace was loaded from.
    folder : where the study is run.
    tables : name -> table; each is a CSV file too.
    pictures : name -> file, relative to the folder.
    """

    study: study.Study
    source: str
    folder: Folder
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)

    def place(self, name: str) -> str:
        """Return the name of a table or picture of these findings, in a folder of their own."""
        return f"{folder_name(f'{self.study.trace}-{self.study.reading.name}')}/{name}"

    def draw(self, name: str, draw: Any, *what: Any) -> None:
        """Draw a picture with its heading, of what it takes before and after these."""
        trace = self.study.trace if len(self.study.trace) <= 40 else f"{self.study.trace[:39]}…"
        note = f"{trace}, reading: {self.study.reading.name}, threshold {study.THRESHOLD_S:,} s"
        figure = draw(*what, heading=_PICTURES[name], note=note)
        self.pictures[name] = self.folder.picture(figure, self.place(f"{name}.png"))


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    reading: str = "numbers",
    points: int = study.POINTS,
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
    names = [reading, *(name for name in study.READINGS if name != reading)]
    rules: dict[str, Any] = {"folder": folder.path, "points": points, "quick": quick}
    findings = [
        Findings(study.Study(source, name, progress=folder.progress, **rules), source, folder)
        for source in sources
        for name in names
    ]
    folder.begin(HEAD)
    for found in findings:
        add_pure(found)
    path = write(findings, folder)
    for found in findings:
        if found.study.reading.name == reading:
            study.cover_on(found.study, found.source, folder)
            add_mixed(found)
            write(findings, folder)
    return path, findings


def add_pure(found: Findings) -> None:
    """Simulate the pure policies: tables 1 and 3 to 7, figures 1 and 2."""
    of = found.study
    of.progress(f"{of.trace}, {of.reading.name}: pure policies", 0, 1)
    weekly = tables.by_period(of, "week", of.weeks)
    found.tables |= {
        "jobs": tables.jobs(of),
        "thresholds": tables.thresholds(of),
        "split": tables.split_of_weeks(of, weekly),
        "weekly": weekly,
    }
    if of.trace in items.TABLE_7:
        found.tables["longest"] = tables.longest(of, load_workload(found.source, clean="none"))
    found.draw("distribution", tables.draw_distribution, weekly)
    found.draw("saf", tables.draw_periods, weekly, tables.BEST)


def add_mixed(found: Findings) -> None:
    """Try all vectors of three weights, and searches: table 2, figures 3 to 5 and 15."""
    of, tried = found.study, {}
    halves = {"week": (of.train, of.test), "month": tables.half_of_months(of)}
    for period, (parts, points) in of.covers().items():
        tried[period] = study.optimum(of, parts, halves[period][0], points)
        table = found.tables[f"{period}ly"] = tables.by_period(of, period, parts, tried[period])
        found.draw(f"{period}s", tables.draw_periods, table, tables.MIXED, halves[period][1])
    found.tables["grid"] = tables.grids(of, tried)
    if "month" in tried:
        found.tables["months"] = tables.split(found.tables["monthly"], halves["month"])
    searches = {name: study.searched(of, name) for name in study.SEARCHES}
    weekly = found.tables["weekly"] = found.tables["weekly"].assign(**searches)
    found.tables["searches"] = tables.searches(tried["week"]["w*"], searches)
    found.tables["split"] = tables.split_of_weeks(of, weekly)
    found.draw("searches", tables.draw_periods, weekly, tables.SEARCHED)
    mapped = items.MAPPED.get(of.trace, set()) & of.weeks.keys() or [*of.weeks][:4]
    cubes = {
        week: study.covered(of, week, of.weeks[week], of.points)["values"]
        for week in sorted(mapped)
    }
    found.draw("spaces", tables.draw_spaces, cubes, study.grid(of.points).points)


# --- The report -----------------------------------------------------------------------------------


def write(findings: Sequence[Findings], folder: Folder) -> Path:
    """Write all tables so far, and a report of them; return its file."""
    made, texts = {_ALL: closeness(findings)}, {_ALL: TEXTS[_ALL]}
    pictures: dict[str, Path] = {}
    for found in findings:
        said = f"{found.study.trace}, reading {found.study.reading.name}"
        texts |= {
            found.place(name): (f"{said}: {text[0]}", text[1]) for name, text in TEXTS.items()
        }
        made |= {found.place(name): table for name, table in found.tables.items()}
        pictures |= {f"{said}: {_PICTURES[name]}": file for name, file in found.pictures.items()}
    cut = "few weeks and a coarse grid" * any(found.study.quick for found in findings)
    lines = [f"- **{reading.name}**: {reading.meaning}." for reading in study.READINGS.values()]
    head = "\n".join([HEAD.format(version=__version__), "Two readings of the paper:\n", *lines, ""])
    return folder.publish(head, made, texts, pictures, cut, begin="")[0]


def closeness(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return how near the sums without a threshold are to the paper's, by trace and reading.

    Those of other traces than the paper's have no row.
    """
    rows = []
    for found in findings:
        table = found.tables["thresholds"]
        if "paper" in table:
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
