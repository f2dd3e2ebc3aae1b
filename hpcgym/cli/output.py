"""What commands print and write: tables that fit, json, csv, pictures and pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli.files import PAGE, PICTURE, Written, WrittenFolder
from hpcgym.cli.running import note
from hpcgym.files.recorded import NAME, ending_of, origin_columns, record_text, write_beside
from hpcgym.files.writing import csv_text, is_stream, json_text, plain, whole, whole_text
from hpcgym.naming import duration
from hpcgym.progress import working
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, JustifyMethod
    from rich.table import Column, Table

    from hpcgym.machine import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.runs import Allocation
    from hpcgym.workload import Workload


# --- Tables that fit a terminal -------------------------------------------------------------------


def table_of(
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    left: Collection[int] = (0,),
    fold: Collection[int] = (),
    edges: bool = False,
) -> Table:
    """Return a table of texts, which are not read as markup.

    Parameters
    ----------
    left : the places of columns whose texts stand to the left.
    fold : the places of columns whose texts may be folded.
    edges : whether there is room around it.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=edges, pad_edge=edges)
    for place, heading in enumerate(headings):
        side: JustifyMethod = "left" if place in left else "right"
        table.add_column(Text(heading), justify=side, no_wrap=place not in fold, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


#: Columns of words are folded, but not to fewer letters than this.
LEAST_LETTERS = 12


def print_table(out: Console, table: Table, least: Sequence[str] | None = None) -> None:
    """Print a table whole; on a terminal that is too narrow, without columns that matter least.

    A line below the table says which columns were left out. Rows that are still too long go on
    in the next line of the terminal. Only a terminal is ever too narrow: files have all columns.

    Parameters
    ----------
    out : where to print.
    table : its columns with ``no_wrap`` are never cut, the others are folded to no less than their
        ``min_width``, or 12 letters.
    least : headings of columns that may be left out, the first of these first; None: all with
        ``no_wrap`` but the first two columns, from the right.
    """
    columns = table.columns
    for column in columns:
        letters = column.min_width or LEAST_LETTERS
        column.min_width = _width(column) if column.no_wrap else min(_width(column), letters)
    headings = [" ".join(str(one.header).split()) for one in columns]
    if least is None:
        least = [
            name for name, one in zip(headings[:1:-1], columns[:1:-1], strict=True) if one.no_wrap
        ]
    part, gone = table, set[str]()
    for heading in least if out.is_terminal else ():
        if _needed(out, part) <= out.width:
            break
        gone.add(heading)
        left = [one for name, one in zip(headings, columns, strict=True) if name not in gone]
        part = copy(table)
        part.columns = [replace(one, _index=place) for place, one in enumerate(left)]
    needed = _needed(out, part)
    if needed > out.width:
        part.width = needed
    out.print(part, crop=False)
    if told := [name for name in headings if name in gone]:
        text = f"left out, as the terminal is too narrow: {', '.join(told)}"
        out.print(text, markup=False, soft_wrap=True)


def _needed(out: Console, table: Table) -> int:
    """Return how wide a table is at least, with what stands between its columns."""
    from rich.measure import Measurement

    unbounded = out.options.update(max_width=1_000_000)
    whole = Measurement.get(out, unbounded, table).maximum
    return whole - sum(_width(one) - (one.min_width or 0) for one in table.columns)


def _width(column: Column) -> int:
    """Return the length of the longest line of a column."""
    from rich.cells import cell_len

    texts = [str(column.header), *map(str, column.cells)]
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


# --- Results as JSON and CSV, and into files ------------------------------------------------------


def show(
    format: str,
    facts: Callable[[], Any],
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    table: Callable[[], None],
    **texts: Callable[[], str | None],
) -> None:
    """Print a result as ``--format`` says: facts as JSON, rows as CSV, or a table for people.

    ``texts`` are other formats, by name: markdown and latex.

    Floats are in full; in JSON what is no number (0 / 0) is null, in CSV what a row lacks is empty.
    """
    if format == "json":
        print_json(facts())
    elif format == "csv":
        print_csv(rows())
    elif format in texts:
        sys.stdout.write(texts[format]() or "")
    else:
        table()


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def console() -> Console:
    """Return where tables go; without a terminal, lines are as long as they need to be."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 250)


def workload_facts(workload: Workload, clean: str) -> dict[str, Any]:
    """Return what a result was computed from."""
    return {
        "hpcgym": __version__,
        "workload": workload.name,
        "processors": workload.processors,
        "clean": clean,
        "cleaning": dict(workload.cleaning),
    }


def machine_facts(workload: Workload, cluster: Cluster | None) -> dict[str, Any]:
    """Return what tables have of the machine, and of a cluster that was named its queues too."""
    queues = {} if cluster is None else {"queues": dict(cluster.queues)}
    return {**machine_columns(workload, cluster), **queues}


def machine_columns(workload: Workload, cluster: Cluster | None) -> dict[str, Any]:
    """Return the size of the machine, and of a cluster that was named its nodes too."""
    if cluster is None:
        return {"processors": workload.processors}
    return {
        "processors": cluster.processors,
        "cluster": cluster.name,
        "nodes": cluster.nodes if cluster.groups else None,
    }


def result_facts(name: str, result: Result) -> dict[str, Any]:
    """Return the scheduler with its settings, all metrics, and of solved models a summary."""
    from hpcgym.baselines.schedulers import described
    from hpcgym.report.tables import dispatches
    from hpcgym.schedule.metrics import told_metrics

    facts = {"scheduler": {"name": name, **described(result.scheduler)}, **told_metrics(result)}
    solved = dispatches(result)
    return facts if solved is None else {**facts, "dispatches": solved}


def print_dispatches(out: Console, results: Mapping[str, Result]) -> None:
    """Print what dispatchers that solve models have logged, a line each."""
    from hpcgym.report.tables import dispatches, in_words

    for name, result in results.items():
        solved = dispatches(result)
        if solved is not None:
            out.print(f"{name}: {in_words(solved)}", markup=False, soft_wrap=True)


def print_moved(out: Console, results: Mapping[str, Result]) -> None:
    """Print how much later jobs were submitted by rules that say when, a line each; no wait has it.

    These are quotas of submitted jobs, and dependencies.
    """
    for name, result in results.items():
        if result.given is None or not len(result.given):
            continue
        later = float(result.workload.submit_time.mean() - result.given.submit_time.mean())
        text = f"jobs were submitted {duration(later)} later than in the log on average"
        before = f"{name}: " if name else ""
        out.print(f"{before}{text}; no wait counts this", markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON, floats in full; what is no number (0 / 0) is null."""
    sys.stdout.write(json_text(value))


def print_csv(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows, floats in full; what some have and others not is empty in these."""
    sys.stdout.write(csv_text(rows))


def csv_row(
    workload: Workload, cluster: Cluster | None, name: str, result: Result
) -> dict[str, Any]:
    """Return a result as one line of a table; its last columns say where it is from."""
    from hpcgym.baselines.schedulers import described
    from hpcgym.schedule.metrics import told_metrics
    from hpcgym.schedule.provenance import provenance_of

    record, shared = provenance_of({name: result}), result.coschedule
    return {
        "workload": workload.name,
        **machine_columns(workload, cluster),
        **({} if shared is None else {"speedups": shared.speedups.source}),
        "scheduler": name,
        **described(result.scheduler),
        **told_metrics(result),
        **origin_columns(record),
    }


def draw(results: Mapping[str, Result], path: Path, *, report: bool = True) -> None:
    """Write what the name's ending says: a page, with or without a report; a picture."""
    from hpcgym.explore import write_page
    from hpcgym.report import save_picture

    ending = ending_of(path)
    if ending == ".html":
        write_page(results, path, report=report)
    else:
        save_picture(results, path)


def save_schedule(name: str, result: Result, path: Path | None) -> None:
    """Write the schedule, with where it is from, and say so: as SWF, or all columns as a table.

    Tables in CSV and JSON have where they are from in a file beside; a pipe has none.
    """
    from hpcgym.schedule.provenance import provenance_of

    if path is None:
        return
    with working(f"writing {path}"):
        if ending_of(path) == ".swf":
            result.to_swf(path, name=name)
        else:
            record = provenance_of({name: result})
            write_jobs(result, path, record)
            if path.suffix.casefold() != ".parquet" and not is_stream(path):
                write_beside(path, record)
    note(f"wrote {path}")


def write_jobs(result: Result, path: Path, record: Mapping[str, Any]) -> None:
    """Write the columns of a schedule, with the nodes of jobs if it has any; Parquet with a record.

    Raises
    ------
    WorkloadError : the file cannot be written, or pyarrow is missing.
    """
    from hpcgym.files.tables import need_parquet, write_parquet

    table = result.jobs
    if result.allocation is not None:
        table = table.assign(nodes=nodes_of_jobs(result.allocation))
    if path.suffix.casefold() == ".parquet":
        need_parquet()
        with whole(path) as part:
            write_parquet(table, part, {NAME: record_text(record)})
        return
    with whole_text(path) as file:
        if path.suffix.casefold() == ".json":
            json.dump(plain(table.to_dict("records")), file, indent=1, allow_nan=False)
            file.write("\n")
        else:
            table.to_csv(file, index=False, lineterminator="\n")


def nodes_of_jobs(allocation: Allocation) -> list[str]:
    """Return the nodes of each job and its units there, such as ``3:2 4:2``."""
    pairs = zip(allocation.node.tolist(), allocation.units.tolist(), strict=True)
    cells = [f"{node}:{units}" for node, units in pairs]
    first = allocation.first.tolist()
    return [" ".join(cells[a:b]) for a, b in pairwise(first)]


def print_cleaning(out: Console, workload: Workload, heading: str = "cleaning") -> None:
    """Print what cleaning did to a workload."""
    if not workload.cleaning:
        out.print(f"{heading}: nothing dropped or repaired", markup=False)
        return
    out.print(f"{heading}:", markup=False)
    for reason, jobs in workload.cleaning.items():
        out.print(f"  {jobs:,} {reason}", markup=False, soft_wrap=True)


# --- The options of commands that write figures for papers ----------------------------------------


@dataclass(frozen=True)
class FigureOptions:
    """Where figures go, and how wide they are.

    Output
    ------
    figures FOLDER : Write figures for a paper, each as PDF and SVG: no titles, TrueType fonts,
        lines that differ in grey too.
    figures_width INCHES : Width of the figures: 3.5 is a column, 7.2 a page.
    """

    figures: Annotated[Path | None, WrittenFolder()] = None
    figures_width: Annotated[float, typer.Option(min=2.5, max=12)] = 3.5  # fmt: skip

    def write(self, save: Callable[[Path, float], list[Path]]) -> None:
        """Write what a function of folder and width writes, if it is asked for, and say so."""
        if self.figures is None:
            return
        with working(f"drawing into {self.figures}"):
            files = save(self.figures, self.figures_width)
        names = dict.fromkeys(path.stem for path in files)
        note(f"wrote {', '.join(names)} into {self.figures}, each as PDF and SVG")


@dataclass(frozen=True)
class _PictureOptions:
    """Where a picture of schedules, and a page of them, go.

    Output
    ------
    picture FILE : Draw Gantt charts, utilization, queue and slowdowns: .png, .svg, .pdf, or a page,
        .html, with tables too.
    html FILE : Write a page with all tables and pictures.
    """

    picture: Annotated[Path | None, PICTURE] = None
    html: Annotated[Path | None, PAGE] = None


@dataclass(frozen=True)
class DrawnOptions(FigureOptions, _PictureOptions):
    """Where all that is drawn of schedules goes."""

    force: bool = False

    def draw(self, results: Mapping[str, Result]) -> None:
        """Draw schedules into the files that are asked for, and say so."""
        from hpcgym.report import save_figures
        from hpcgym.report.overview import why_no_gantts

        for path in filter(None, (self.picture, self.html)):
            with working(f"drawing {path}"):
                draw(results, path)
            note(f"wrote {path}")
            if missing := why_no_gantts(results):
                note(f"{path}: {missing}")
        self.write(partial(save_figures, results))


# --- The option of commands that write what they print as a page, too -----------------------------


@dataclass(frozen=True)
class PageOptions:
    """Where a page goes.

    Output
    ------
    html FILE : Write a page too, whose tables can be sorted: .html.
    """

    html: Annotated[Path | None, Written("page", (".html",))] = None
    force: bool = False

    def write(self, make: Callable[[], str]) -> None:
        """Write the page that a function returns, if one is asked for, and say so."""
        if self.html is None:
            return
        with working(f"writing {self.html}"), whole_text(self.html) as file:
            file.write(make())
        note(f"wrote {self.html}")
