"""What commands tell of schedules, and write of them: files of jobs, pictures and pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from hpcgym.cli.files import PAGE, PICTURE, WrittenFolder
from hpcgym.cli.running import note
from hpcgym.cli.tables import Format, Row, Sheet, show
from hpcgym.files.recorded import KEY, NAME, ending_of, origin_columns, record_text, write_beside
from hpcgym.files.writing import is_stream, plain, whole_file, whole_text
from hpcgym.progress import working
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Cluster
    from hpcgym.report.figures import Drawing
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


def csv_row(
    workload: Workload,
    cluster: Cluster | None,
    name: str,
    result: Result,
    compared: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a result as one line of a table, with what compares it with others.

    Its last columns say where it is from.
    """
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
        **compared,
        **origin_columns(record),
    }


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
        from hpcgym.files.tables import write_csv_frame

        write_csv_frame(table, file)


def nodes_of_jobs(allocation: Allocation) -> list[str]:
    """Return the nodes of each job and its units there, such as ``3:2 4:2``."""
    pairs = zip(allocation.node.tolist(), allocation.units.tolist(), strict=True)
    cells = [f"{node}:{units}" for node, units in pairs]
    return [" ".join(cells[a:b]) for a, b in pairwise(allocation.first.tolist())]


def cleaning_of(workload: Workload, heading: str = "cleaning") -> list[str]:
    """Return what cleaning did to a workload, in lines."""
    if not workload.cleaning:
        return [f"{heading}: nothing dropped or repaired"]
    return [f"{heading}:", *(f"  {jobs:,} {why}" for why, jobs in workload.cleaning.items())]


# --- The options by which every result is printed, drawn and written -----------------------------


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """What a command has found, in every form in which it can be shown.

    Attributes
    ----------
    sheet : what people see.
    rows : its numbers in full, as a table.
    facts : all that there is to be told, for JSON; None: the rows.
    drawings : name -> a plot of it for papers.
    results : name -> schedule, what it is made of.
    workloads : what it is made of, if not of schedules.
    files : name -> SHA-256, of others that it is made of.
    of_schedules : whether picture and page are those of the schedules.
    """

    sheet: Callable[[], Sheet]
    rows: Callable[[], Iterable[Row]]
    facts: Callable[[], Mapping[str, Any]] | None = None
    drawings: Callable[[], Mapping[str, Drawing]]
    results: Mapping[str, Result] = field(default_factory=dict)
    workloads: Sequence[Workload] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    of_schedules: bool = False

    @cached_property
    def record(self) -> dict[str, Any]:
        """Where it is from."""
        from hpcgym.schedule.provenance import provenance_of, provenance_of_workloads

        made_of = provenance_of_workloads(self.workloads)
        record = provenance_of(self.results) if self.results else made_of
        return {**record, "files": {**record["files"], **self.files}}

    def told(self) -> dict[str, Any]:
        """Return what JSON has."""
        facts = {"rows": [*self.rows()]} if self.facts is None else self.facts()
        return {**facts, KEY: self.record}


def of_schedules(
    results: Mapping[str, Result],
    sheet: Callable[[], Sheet],
    rows: Callable[[], Iterable[Row]],
    facts: Callable[[], Mapping[str, Any]],
) -> CommandResult:
    """Return what a command has found that is about schedules, by their names."""

    def drawings() -> Mapping[str, Drawing]:
        from hpcgym.report.figures import drawings_of

        return drawings_of(results)

    return CommandResult(
        sheet=sheet, rows=rows, facts=facts, drawings=drawings, results=results, of_schedules=True
    )


@dataclass(frozen=True)
class ResultOptions:
    """How a result is printed, and into which files it is drawn.

    Output
    ------
    format table|json|csv|markdown|latex : How to print the result; numbers are in full in json and
        csv.
    picture FILE : Draw the result: .png, .svg or .pdf.
    html FILE : Write a page with all tables, which can be sorted, and all pictures: .html. Without
        matplotlib it has no pictures.
    figures FOLDER : Write each plot for a paper, a column wide, as PDF and PNG, and each table as
        LaTeX.
    """

    format: Format = Format.table
    picture: Annotated[Path | None, PICTURE] = None
    html: Annotated[Path | None, PAGE] = None
    figures: Annotated[Path | None, WrittenFolder()] = None
    force: bool = False

    def show(self, result: CommandResult) -> None:
        """Print a result, and write the files that are asked for."""
        show(self.format, result.sheet, result.rows, result.told)
        self.write(result)

    def write(self, result: CommandResult) -> None:
        """Write the files that are asked for, and say so."""
        for path, write in ((self.picture, _write_picture), (self.html, _write_page)):
            if path is None:
                continue
            with working(f"drawing {path}"):
                write(result, path)
            note(f"wrote {path}")
            if missing := _missing(result):
                note(f"{path}: {missing}")
        if self.figures is not None:
            from hpcgym.report.figures import write_figures

            with working(f"drawing into {self.figures}"):
                tables = result.sheet().tables
                files = write_figures(result.drawings(), tables, self.figures, result.record)
            names = ", ".join(dict.fromkeys(path.stem for path in files))
            note(f"wrote {names} into {self.figures}: plots as PDF and PNG, tables as LaTeX")


def _missing(result: CommandResult) -> str:
    """Return what a picture or a page of a result lacks, and why; nothing if it has all."""
    from hpcgym.report.canvas import why_no_pictures
    from hpcgym.report.overview import why_no_gantts

    if lacking := why_no_pictures():  # it is a page then
        return lacking
    return why_no_gantts(result.results) if result.of_schedules else ""


def _write_picture(result: CommandResult, path: Path) -> None:
    """Draw a result as one picture."""
    from hpcgym.report.figures import save_drawings
    from hpcgym.report.overview import save_picture

    if result.of_schedules:
        save_picture(result.results, path)
    else:
        save_drawings(result.drawings().values(), path, result.record)


def _write_page(result: CommandResult, path: Path) -> None:
    """Write a result as a page."""
    from hpcgym.explore import write_page
    from hpcgym.report.canvas import why_no_pictures
    from hpcgym.report.figures import drawn

    if result.of_schedules:
        write_page(result.results, path, report=True)
        return
    sheet, drawings = result.sheet(), result.drawings()
    if lacking := why_no_pictures():
        sheet, drawings = replace(sheet, below=[*sheet.below, lacking]), {}
    pictures = [(drawn(drawing, _PAGE_INCHES), name) for name, drawing in drawings.items()]
    with whole_text(path) as file:
        file.write(sheet.page(result.record, pictures))


_PAGE_INCHES = 6.5
