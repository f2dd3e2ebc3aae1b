"""One file that shows schedules down to each job, and asks nothing of the network."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shlex
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.baselines.labels import describe
from hpcgym.dates import zero_of, zone_of
from hpcgym.errors import HpcgymError
from hpcgym.explore.document import document, origin_section, source
from hpcgym.explore.fans import fans_of
from hpcgym.explore.sections import Compared, report_of
from hpcgym.files.writing import plain, whole_text
from hpcgym.names import NAMED
from hpcgym.report.gantt import gantt_time
from hpcgym.report.placement import has_nodes, place_jobs, rows_of
from hpcgym.report.tables import (
    Results,
    comparison,
    drawable,
    in_order,
    limits_of,
    told_of_all,
)
from hpcgym.schedule.gains import same_jobs
from hpcgym.schedule.groups import asked_resources
from hpcgym.schedule.metrics import watts_given
from hpcgym.schedule.provenance import provenance_of
from hpcgym.schedule.result import Result
from hpcgym.scheduler.restrictions import bound_submissions
from hpcgym.units import DAY_S, duration
from hpcgym.workload.extracts import first_time
from hpcgym.workload.io.swf_header import called, names_of

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload


# --- What a page is told, which ``browser/decode.js`` reads ---------------------------------------

_MOST = 2**53  # numbers of JavaScript are float64


def pack(head: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """Return a header and columns of numbers, name -> (n,), as JSON: ``columns`` in the header.

    Raises
    ------
    HpcgymError : a whole number beyond 2^53.
    """
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    for column in arrays.values():
        if column.dtype.kind != "f" and (most := int(np.abs(column).max(initial=0))) > _MOST:
            raise HpcgymError(f"a page cannot hold {most:,}: its numbers end at 2^53")
    listed = {name: column.tolist() for name, column in arrays.items()}
    text = json.dumps({**plain(head), "columns": listed}, allow_nan=False, separators=(",", ":"))
    return text.encode()


def as_text(packed: bytes) -> str:
    """Return bytes as gzip in base64: letters that no page takes for an end of its script."""
    return b64encode(gzip.compress(packed, 9, mtime=0)).decode("ascii")


# --- What a page is told of schedules -------------------------------------------------------------

Told = tuple[dict[str, Any], dict[str, Any]]  # a header, and columns by name


def of_workload(workload: Workload) -> Told:
    """Return what all schedules of a workload share.

    Submit times and job numbers are told as differences, most of which are small.

    Returns
    -------
    head : ``name``, ``first`` (the first submission, s), ``begin`` (of schedules, s since then:
        above 0 of an extract whose first jobs came before it), ``epoch`` (when second 0 was, s
        since 1970; None if the log does not tell) and ``zone`` (its time zone), ``kinds`` (what
        jobs are sorted by -> what each number of the column is called).
    columns : ``gap`` [s], ``number_gap``, ``size``, ``requested`` [s] and one of each kind, (n,).
    """
    submit, number = workload.submit_time, workload.job_number
    kinds, columns = _kinds(workload)
    epoch, zone = _epoch(workload)
    head = {
        "name": workload.name,
        "first": int(submit[0]),
        "begin": first_time(workload) - int(submit[0]),
        "first_number": int(number[0]),
        "epoch": epoch,
        "zone": zone,
        "kinds": kinds,
    }
    return head, {
        "gap": np.diff(submit, prepend=submit[:1]),
        "number_gap": np.diff(number, prepend=number[:1]),
        "size": workload.requested_processors,
        "requested": workload.requested_time,
        **columns,
    }


def _kinds(workload: Workload) -> Told:
    """Return by what jobs can be told apart: names, and which of them each job has."""
    names: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for kind, column in NAMED.items():
        numbers, place = np.unique(workload.columns[column], return_inverse=True)
        if len(numbers) < 2 and (kind != "user" or numbers[0] < 0):
            continue  # which all jobs have tells nothing
        if any(np.array_equal(place, other) for other in columns.values()):
            continue  # such as a group for each user
        known = names_of(workload, column)
        names[kind] = [called(known, kind, number) for number in numbers.tolist()]
        columns[kind] = place
    resources, of_job = asked_resources(workload)
    if len(resources) > 1:
        names["resource"] = [*resources.values()]
        columns["resource"] = np.searchsorted([*resources], of_job)
    return names, columns


def _epoch(workload: Workload) -> tuple[int | None, str | None]:
    """Return when second 0 of a log was, seconds since 1970, and the name of its time zone."""
    began = zero_of(workload.header, 2 * int(workload.submit_time[-1]))
    return (None, None) if began is None else (began, zone_of(workload.header)[1])


def of_schedule(result: Result, name: str, place: int, first: Result, lanes: int) -> Told:
    """Return what is told of one schedule.

    On a pool of processors the browser places the jobs; where the schedule tells their nodes, the
    rows of each job are told.

    Parameters
    ----------
    name : what the schedule is called.
    place : its number on the page, which its columns end in.
    first : the first schedule on the page; run times that are the same are not told again.
    lanes : where jobs share nodes, the rows of each node, a multiple of the parts of a node.

    Returns
    -------
    head : ``name``, ``rules`` (the scheduler, in words), ``rows`` and ``row`` (how many there are,
        and what one is), ``processors``, ``columns`` (what is told -> name of the column),
        and the names of ``nodes``.
    columns : ``wait`` and, unless as in the first, ``run`` [s], (n,). Where they differ from the
        run times, ``full``, those at full speed, which bounded slowdowns divide by; where metrics
        are not of all jobs, ``counted``, 1 of those that they are of. Where jobs are placed,
        ``pieces`` (of each job, (n,)), ``low`` and ``width`` of each piece, and ``nodes``, the rows
        of each node. Where the machine has powers, ``power_gap`` [s] and ``power`` [W], one a
        change.
    """
    cluster, shared = result.cluster, result.coschedule
    columns: dict[str, Any] = {"wait": result.start - result.workload.submit_time}
    ran = result.end - result.start
    if result is first or not np.array_equal(ran, first.end - first.start):
        columns["run"] = ran
    if result.full_speed_run_time is not result.run_time:
        columns["full"] = result.full_speed_run_time
    if not result.counted.all():
        columns["counted"] = result.counted.astype(np.int64)
    rows, row = cluster.processors, "processor"
    if shared is not None or has_nodes(result):
        finer = 1 if shared is None else lanes // shared.parts
        rectangles, nodes = place_jobs(result), rows_of(result) * finer
        rows, row = int(nodes[-1]), "core" if shared is None else "part"
        columns["pieces"] = np.bincount(rectangles.job, minlength=len(result.start))
        columns["low"] = rectangles.low * finer
        columns["width"] = (rectangles.high - rectangles.low) * finer
        columns["nodes"] = np.diff(nodes)
    columns |= _power(result)
    head = {
        "name": name,
        "rules": describe(result.scheduler),
        "rows": rows,
        "row": row,
        "processors": cluster.processors,
        "columns": {column: f"{column}{place}" for column in columns},
    }
    if "nodes" in columns:
        head["nodes"] = cluster.node_names
    return head, {f"{column}{place}": values for column, values in columns.items()}


def _power(result: Result) -> dict[str, Any]:
    """Return the power over time, of a machine whose watts somebody gave, else nothing.

    When processors of a pool are switched off is not known, so these are missing too.
    """
    if not watts_given(result.cluster, result.workload) or result.idle_seconds is not None:
        return {}
    levels = np.rint(np.append(sum(result.books.watts().values()), 0)).astype(np.int64)
    times = result.books.time - result.workload.submit_time[0]
    changes = np.append(True, np.diff(levels) != 0)
    return {"power_gap": np.diff(times[changes], prepend=0), "power": levels[changes]}


def statistics(parts: Mapping[str, Result]) -> dict[str, Any]:
    """Return the metrics of schedules as a page shows them, seconds in larger units.

    Returns
    -------
    names : of the schedules.
    first : the names of those metrics that are shown at once.
    rows : ``{"name", "title", "unit", "values": [[text, is it the best], ...]}`` of each metric.
    """
    metrics = in_order(told_of_all(parts))
    (_, *of_table), *_ = comparison(parts)
    _, *lines = comparison(parts, [metric.name for metric in metrics])
    at_once = {heading for heading, _ in of_table}
    rows = []
    for metric, *cells in zip(metrics, *(line[1:] for line in lines), strict=True):
        seconds = metric.unit == "s"
        values = []
        for (text, best), result in zip(cells, parts.values(), strict=True):
            value = result.metrics[metric.name]
            values.append([duration(value) if seconds and math.isfinite(value) else text, best])
        unit = "" if seconds else metric.unit
        rows.append({"name": metric.name, "title": metric.title, "unit": unit, "values": values})
    first_shown = [metric.name for metric in metrics if metric.heading in at_once]
    return {"names": list(parts), "first": first_shown, "rows": rows}


def check_same_jobs(parts: Mapping[str, Result]) -> None:
    """Raise an HpcgymError unless all schedules are of the same jobs."""
    if len(same_jobs(parts, runs=True)) < len(parts):
        raise HpcgymError(
            "schedules on one page must be of the same jobs, submitted when they are in the others;"
            " these differ in jobs, or jobs follow others, or quotas of submitted jobs let some"
            " come later, or a failure of a node or a job that stopped it has made one run several"
            " times; explore each by itself"
        )


# --- One file that shows schedules down to each job -----------------------------------------------

#: Files of the script, in the order in which they stand in the page: each uses those before it.
SCRIPTS = (
    *("theme", "sorting", "arrays", "decode", "place", "curves", "words", "calendar", "filter"),
    *("measures", "colours", "raster", "state", "shares", "gantt", "panes", "overlay", "elements"),
    *("waiting", "facts", "fans", "table", "selection", "view", "pointer", "keys", "pictures"),
    *("choice", "live", "main"),
)


def page(results: Results, *, report: bool = False, at: float | str | None = None) -> str:
    """Return a page that shows schedules down to each job.

    It is one file of HTML, without anything from the network. A reader can zoom and move, look at
    single jobs, filter them, choose which two schedules are shown, and save what is seen as a
    picture; see docs/comparing.md. It says where it is from. The same results give the same text
    but for the date, which is that of :func:`hpcgym.files.recorded.date_text`.

    Parameters
    ----------
    results : a result of :func:`hpcgym.simulate`, or several of the same jobs: a sequence, or name
        -> result. Of a schedule with failures of nodes each run is shown.
    report : whether tables and pictures to print follow; without matplotlib there are no pictures,
        and the page says so. Then results may be of other jobs too: schedules of the jobs of the
        first can be looked into, and the page names the others.
    at : a time, as :func:`hpcgym.snapshot` takes it: the page shows when the jobs that waited then
        in the first schedule were expected to start, beside what happened.

    Raises
    ------
    HpcgymError : no result, one without jobs, results of different jobs, a number beyond 2^53, or a
        first schedule that :func:`hpcgym.forecast` does not know at this time.
    """
    given = drawable(results)
    if not report:
        return explorer_page(given, at=at)
    compared = results if isinstance(results, Compared) else None
    return explorer_page(same_jobs(given, runs=True), given, compared, at)


def write_page(
    results: Results,
    path: str | os.PathLike[str],
    *,
    report: bool = False,
    at: float | str | None = None,
) -> None:
    """Write the page of :func:`page` to a file, whole or not at all.

    Parameters
    ----------
    results, report, at : as for :func:`page`.
    path : of the file.

    Raises
    ------
    HpcgymError : as for :func:`page`, or a file that cannot be written.
    """
    text = page(results, report=report, at=at)
    with whole_text(path) as file:
        file.write(text)


@dataclass(frozen=True)
class Frame:
    """A page as a notebook shows it: in a frame of its own, apart from the notebook."""

    page: str
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads"'
            f' style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def show(results: Results, *, height: int = 760) -> Frame:
    """Return the page of :func:`page` for a notebook, which shows it as the value of a cell.

    Parameters
    ----------
    results : as for :func:`page`.
    height : of the frame [pixels].

    Raises
    ------
    HpcgymError : as for :func:`page`.
    """
    return Frame(page(results), height)


def explorer_page(
    shown: Mapping[str, Result],
    reported: Mapping[str, Result] | None = None,
    compared: Compared | None = None,
    at: float | str | None = None,
    **more: Any,
) -> str:
    """Return a page with an explorer.

    Parameters
    ----------
    shown : the schedules that can be looked into, of the same jobs.
    reported : those of which tables and pictures follow; None: there is no report.
    compared : what came out, which stands at the top.
    at : the moment of which forecasts are shown; None: of none.
    more : goes into the header of the explorer's data.

    Raises
    ------
    HpcgymError : as for :func:`page`.
    """
    every = shown if reported is None else reported
    record = provenance_of(every)
    head = {"limits": limits_of(every), "command": _jobs_in_words(record), **more}
    if at is not None:
        head["fans"] = fans_of(next(iter(shown.values())), at)
    head["fixed"] = any(map(why_not_live, shown.values()))
    # of a year all jobs would be a bar code; the busiest week can be read
    opens, first = gantt_time(shown)[0], int(next(iter(shown.values())).workload.submit_time[0])
    head["opens"] = [opens.first - first, opens.last - first]
    if at is not None:
        head["opens"] = [head["fans"]["now"] - DAY_S, head["fans"]["now"] + 3 * DAY_S]
    parts = {
        "DATA": as_text(_packed(shown, every, head)),
        "ORIGIN": "" if reported is not None else origin_section(record),
        "REPORT": "" if reported is None else report_of(reported, list(shown), record, compared),
        "FINDINGS": "".join(
            f"<p>{escape(line)}</p>" for line in (() if compared is None else compared.findings)
        ),
    }
    # in one go: a name in a report that looks like a mark stays what it is
    body = re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], source("explorer.html"))
    title = next(iter(every.values())).workload.name
    return document(title, body, record=record, scripts=SCRIPTS, styles=("style", "explorer"))


def why_not_live(result: Result) -> str:
    """Return why the live app cannot try other rules on a schedule; "": it can."""
    why = {
        "a dispatcher says what starts": result.dispatcher is not None,
        "a function orders the queue": result.scheduler.order.function is not None,
        "it keeps limits": result.limits is not None,
        "jobs share nodes": result.coschedule is not None,
        "jobs stop others": result.scheduler.preemption is not None,
        "nodes fail": result.lost is not None,
        "jobs follow others": result.scheduler.dependencies != "none",
        "quotas say when jobs are submitted": bound_submissions(result.scheduler.quota),
    }
    return next((reason for reason, true in why.items() if true), "")


def _jobs_in_words(record: Mapping[str, Any]) -> str:
    """Return the words of ``hpcgym explore`` that name jobs and schedulers; "…" of another page."""
    if not record["command"] or record["command"][0] != "explore":
        return "…"
    left = iter(record["command"][1:])
    words = []
    for word in left:
        if word == "--output":
            next(left, None)
        elif word != "--force" and not word.startswith("--output="):
            words.append(word)
    return shlex.join(words)


def _packed(
    shown: Mapping[str, Result], every: Mapping[str, Result], head: dict[str, Any]
) -> bytes:
    """Return what an explorer is told of schedules, and of the metrics of all.

    ``head`` goes into its header.
    """
    check_same_jobs(shown)
    parts = {name: result.runs for name, result in shown.items()}
    first = next(iter(parts.values()))
    told_of_jobs, columns = of_workload(first.workload)
    interrupted = any(result.interrupted is not None for result in shown.values())
    told_of_jobs["what"] = "run" if interrupted else "job"
    head = {**told_of_jobs, "runs": [], "statistics": statistics(every), **head}
    # rows of a node that all have, however many jobs may share it under each scheduler
    lanes = lcm(*(part.coschedule.parts for part in parts.values() if part.coschedule is not None))
    for place, (name, result) in enumerate(parts.items()):
        of_run, columns_of_run = of_schedule(result, name, place, first, lanes)
        head["runs"].append(of_run)
        columns |= columns_of_run
    return pack(head, columns)
