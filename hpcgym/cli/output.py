"""What commands tell of schedules, and write of them: files of jobs, pictures and pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli.files import PAGE, PICTURE, Written, WrittenFolder
from hpcgym.cli.running import note
from hpcgym.files.recorded import NAME, ending_of, origin_columns, record_text, write_beside
from hpcgym.files.writing import is_stream, plain, whole_file, whole_text
from hpcgym.naming import duration
from hpcgym.progress import working
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.runs import Allocation
    from hpcgym.workload import Workload


# --- What is told of a result ---------------------------------------------------------------------


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
    from hpcgym.report.tables import dispatches
    from hpcgym.schedule.metrics import told_metrics

    facts = {"scheduler": {"name": name, **_rules(result)}, **told_metrics(result)}
    solved = dispatches(result)
    return facts if solved is None else {**facts, "dispatches": solved}


def _rules(result: Result) -> dict[str, Any]:
    """Return the rules of the scheduler; none of a past that a log recorded."""
    from hpcgym.baselines.schedulers import described
    from hpcgym.schedule.schedule import RECORDED

    return {} if result.replayed_on == RECORDED else described(result.scheduler)


def remarks(results: Mapping[str, Result]) -> list[str]:
    """Return what is said below tables of schedules, in lines.

    What dispatchers that solve models have logged, and how much later jobs were submitted by rules
    that say when (quotas of submitted jobs, and dependencies), which no wait has.
    """
    from hpcgym.report.tables import dispatches, in_words

    solved = {name: dispatches(one) for name, one in results.items()}
    lines = [f"{name}: {in_words(one)}" for name, one in solved.items() if one is not None]
    for name, result in results.items():
        if result.given is None or not len(result.given):
            continue
        later = float(result.workload.submit_time.mean() - result.given.submit_time.mean())
        before = f"{name}: " if len(results) > 1 else ""
        text = f"jobs were submitted {duration(later)} later than in the log on average"
        lines.append(f"{before}{text}; no wait counts this")
    return lines


def csv_row(
    workload: Workload, cluster: Cluster | None, name: str, result: Result
) -> dict[str, Any]:
    """Return a result as one line of a table; its last columns say where it is from."""
    from hpcgym.schedule.metrics import told_metrics
    from hpcgym.schedule.provenance import provenance_of

    record, shared = provenance_of({name: result}), result.coschedule
    return {
        "workload": workload.name,
        **machine_columns(workload, cluster),
        **({} if shared is None else {"speedups": shared.speedups.source}),
        "scheduler": name,
        **_rules(result),
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

    table = _jobs_of(result)
    if path.suffix.casefold() == ".parquet":
        need_parquet()
        with whole_file(path) as part:
            write_parquet(table, part, {NAME: record_text(record)})
        return
    with whole_text(path) as file:
        _write_table(table, file, as_json=path.suffix.casefold() == ".json")


def print_schedule(result: Result, *, as_json: bool) -> None:
    """Print the columns of a schedule as :func:`write_jobs` writes them."""
    _write_table(_jobs_of(result), sys.stdout, as_json)


def _jobs_of(result: Result) -> pd.DataFrame:
    """Return the columns of a schedule, with the nodes of jobs if it has any."""
    if result.allocation is None:
        return result.jobs
    return result.jobs.assign(nodes=nodes_of_jobs(result.allocation))


def _write_table(table: pd.DataFrame, file: IO[str], as_json: bool) -> None:
    if as_json:
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


def cleaning_of(workload: Workload, heading: str = "cleaning") -> list[str]:
    """Return what cleaning did to a workload, in lines."""
    if not workload.cleaning:
        return [f"{heading}: nothing dropped or repaired"]
    return [f"{heading}:", *(f"  {jobs:,} {why}" for why, jobs in workload.cleaning.items())]


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
    picture FILE : Draw Gantt charts, utilization, queue and slowdowns: .png, .svg or .pdf.
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
