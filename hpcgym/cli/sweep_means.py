"""What a sweep has found, as means over slices, seeds and shuffles: on the terminal, as a page."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from hpcgym.schedule.metrics import Metric
    from hpcgym.sweep.run import Status

#: Simulations that a page lists one by one; of more, it says where they are.
MOST_LISTED = 2_000
_KEYS = ("workload", "speedups", "limits", "scheduler")
_IMPROVEMENT = "makespan_improvement"


class Means(NamedTuple):
    """A table for people.

    Attributes
    ----------
    keys : headings of the first columns, which say what a row is of.
    heading : of the others.
    rows : of each row the cells, (text, is it the best of its workload).
    notes : what is said below, in lines.
    """

    keys: list[str]
    heading: list[str]
    rows: list[list[tuple[str, bool]]]
    notes: list[str]


def means_of(rows: pd.DataFrame, first: str) -> Means:
    """Return the means over slices, seeds and shuffles.

    Makespans improve over those of the scheduler ``first``.
    """
    from hpcgym.evaluation.intervals import FEWEST, why_no_intervals
    from hpcgym.report.tables import COMPARED, SHARED, described

    keys = [key for key in _KEYS if key in rows]
    found = [str(name) for name in rows.columns if name not in (*keys, "slice", "seed", "shuffle")]
    usual = SHARED if "speedups" in rows else COMPARED
    metrics = described([name for name in usual if name in found] or found)
    groups = rows.groupby(keys, sort=False)
    means = groups[[metric.name for metric in metrics]].mean()
    means["simulations"] = groups.size()
    heading, notes = ["simulations"], []
    for metric in metrics:
        heading.append(metric.heading)
        if metric.name == _IMPROVEMENT:
            means["interval"] = groups[_IMPROVEMENT].apply(_interval)
            heading.append("95 % interval")
            told = why_no_intervals(int(means["simulations"].max()), "simulations")
            told = told or f"bootstrap intervals, of {FEWEST} simulations or more"
            notes.append(f"makespans improve over those of {first}; {told}")
    lines = means.reset_index().to_dict("records")
    cells = []
    for line in lines:
        rivals = [other for other in lines if all(other[key] == line[key] for key in keys[:-1])]
        named = [(str(line[key]), False) for key in keys]
        cells.append([*named, (f"{line['simulations']:,}", False), *_cells(line, rivals, metrics)])
    return Means(keys, heading, cells, notes)


def _cells(
    line: dict[Hashable, Any], rivals: list[dict[Hashable, Any]], metrics: list[Metric]
) -> list[tuple[str, bool]]:
    """Return the means of a line, the best of its rivals marked."""
    from hpcgym.report.tables import best, text_of

    cells = []
    for metric in metrics:
        top = best(metric, [other[metric.name] for other in rivals])[rivals.index(line)]
        cells.append((text_of(metric, line[metric.name]), top))
        if metric.name == _IMPROVEMENT:
            cells.append((line["interval"], False))
    return cells


def _interval(values: pd.Series[float]) -> str:
    """Return the interval of a mean improvement [%], in words."""
    import numpy as np

    from hpcgym.evaluation.intervals import bootstrap
    from hpcgym.report.numbers import shown

    known = np.asarray(values.dropna(), np.float64)
    low, high = bootstrap(100 * known[:, None])
    return "-" if np.isnan(low[0]) else f"{shown(low[0])} to {shown(high[0])}"


def rich_means(means: Means) -> Table:
    """Return the table for a terminal; ``*`` marks the best."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, caption_justify="left")
    table.caption = "\n".join(["means over simulations; * best of its workload", *means.notes])
    for name in means.keys:
        table.add_column(name, overflow="fold")
    for title in means.heading:
        table.add_column(f"{title} ", justify="right")
    for row in means.rows:
        named, values = row[: len(means.keys)], row[len(means.keys) :]
        cells = (
            Text(f"{text}*", "bold green") if top else Text(f"{text} ") for text, top in values
        )
        table.add_row(*(Text(text) for text, _ in named), *cells)
    return table


def page_of(folder: Path, means: Means, rows: pd.DataFrame, status: Status) -> str:
    """Return the means as a page, and each simulation, unless there are very many."""
    from hpcgym.explore.document import sheet
    from hpcgym.explore.markup import Cell, paragraphs, table
    from hpcgym.schedule.provenance import provenance_of_workloads
    from hpcgym.workload.io.files import sha256_of

    words = range(len(means.keys))
    cells = [[Cell(*cell) for cell in row] for row in means.rows]
    caption = "Means over simulations; ★ best of its workload. A click on a heading sorts."
    sections = [
        table([*means.keys, *means.heading], cells, words=words, sortable=True, caption=caption),
        paragraphs(means.notes),
        "<h2>Each simulation</h2>",
        _each(rows) if len(rows) <= MOST_LISTED else paragraphs([_too_many(folder, rows)]),
    ]
    done = f"{status.done:,} of {status.tasks:,} simulations are done, {status.failed:,} failed"
    name = folder.resolve().name
    manifest = folder / "manifest.json"  # which has the workloads
    record = provenance_of_workloads([])
    record["files"][f"{name}/{manifest.name}"] = sha256_of(manifest)
    return sheet(f"{name}: a sweep", [done], "\n".join(sections), record)


def _too_many(folder: Path, rows: pd.DataFrame) -> str:
    return f"These are {len(rows):,}: hpcgym sweep table {folder} --format csv has them."


def _word(value: Any) -> str:
    return "" if value is None or value != value else str(value)  # such as no seed


def _each(rows: pd.DataFrame) -> str:
    """Return the table of all simulations."""
    from hpcgym.explore.markup import table
    from hpcgym.report.tables import described, text_of

    keys = [name for name in rows.columns if rows[name].dtype.kind not in "if"]
    keys += [name for name in ("seed", "shuffle") if name in rows and name not in keys]
    metrics = described([str(name) for name in rows.columns if name not in keys])
    heading = [*map(str, keys), *(metric.heading for metric in metrics)]
    lines = [
        [
            *(_word(row[key]) for key in keys),
            *(text_of(metric, row[metric.name]) for metric in metrics),
        ]
        for row in rows.to_dict("records")
    ]
    return table(heading, lines, words=range(len(keys)), sortable=True)
