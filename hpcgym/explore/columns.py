"""What a page is told of schedules: few columns, from which the browser works out the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.baselines.labels import describe
from hpcgym.errors import HpcgymError
from hpcgym.files import header_number
from hpcgym.naming import NAMED, duration
from hpcgym.report.placement import has_nodes, place_jobs, rows_of
from hpcgym.report.tables import comparison, in_order
from hpcgym.schedule.metrics import Metric, told_metrics, watts_given
from hpcgym.workload.io.times import zone_of
from hpcgym.workload.names import called, names_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.workload.model import Workload

Told = tuple[dict[str, Any], dict[str, Any]]  # a header, and columns by name

_LAST_DATE = 253_370_764_800  # beginning of the year 9999, seconds since 1970


def of_workload(workload: Workload) -> Told:
    """Return what all schedules of a workload share.

    Submit times and job numbers are told as differences, most of which are small.

    Returns
    -------
    head : ``name``, ``first`` (the first submission, s), ``epoch`` (when second 0 was, s since
        1970; None if the log does not tell) and ``zone`` (its time zone), ``kinds`` (what jobs are
        sorted by -> what each number of the column is called).
    columns : ``gap`` [s], ``number_gap``, ``size``, ``requested`` [s] and one of each kind, (n,).
    """
    submit, number = workload.submit_time, workload.job_number
    kinds, columns = _kinds(workload)
    epoch, zone = _epoch(workload)
    head = {
        "name": workload.name,
        "first": int(submit[0]),
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
        names[kind] = [called(known, kind, one) for one in numbers.tolist()]
        columns[kind] = place
    return names, columns


def _epoch(workload: Workload) -> tuple[int | None, str | None]:
    """Return when second 0 of a log was, seconds since 1970, and the name of its time zone."""
    began = header_number(workload.header, "UnixStartTime") or 0
    last = int(workload.submit_time[-1])
    if not 0 < began < _LAST_DATE - 2 * last:
        return None, None
    return int(began), zone_of(workload.header)[1]


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
    columns : ``wait`` and, unless as in the first, ``run`` [s], (n,). Where jobs are placed,
        ``pieces`` (of each job, (n,)), ``low`` and ``width`` of each piece, and ``nodes``, the rows
        of each node. Where the machine has powers, ``power_gap`` [s] and ``power`` [W], one a
        change.
    """
    cluster, shared = result.cluster, result.coschedule
    told: dict[str, Any] = {"wait": result.start - result.workload.submit_time}
    ran = result.end - result.start
    if result is first or not np.array_equal(ran, first.end - first.start):
        told["run"] = ran
    rows, row = cluster.processors, "processor"
    if shared is not None or has_nodes(result):
        finer = 1 if shared is None else lanes // shared.parts
        rectangles, nodes = place_jobs(result), rows_of(result) * finer
        rows, row = int(nodes[-1]), "core" if shared is None else "part"
        told["pieces"] = np.bincount(rectangles.job, minlength=len(result.start))
        told["low"] = rectangles.low * finer
        told["width"] = (rectangles.high - rectangles.low) * finer
        told["nodes"] = np.diff(nodes)
    told |= _power(result)
    head = {
        "name": name,
        "rules": describe(result.scheduler),
        "rows": rows,
        "row": row,
        "processors": cluster.processors,
        "columns": {one: f"{one}{place}" for one in told},
    }
    if "nodes" in told:
        head["nodes"] = cluster.node_names
    return head, {f"{one}{place}": values for one, values in told.items()}


def _power(result: Result) -> dict[str, Any]:
    """Return the power over time, of a machine whose watts somebody gave, else nothing.

    When processors of a pool are switched off is not known, so there is none of these either.
    """
    if not watts_given(result.cluster, result.workload) or result.idle_seconds is not None:
        return {}
    watts = sum(result.books.watts().values())
    levels = np.rint(np.append(watts, 0)).astype(np.int64)
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
    told = [told_metrics(result) for result in parts.values()]
    first, *others = told
    metrics = in_order({one: first[one] for one in first if all(one in each for each in others)})
    (_, *of_table), *_ = comparison(parts)
    _, *lines = comparison(parts, [metric.name for metric in metrics])
    at_once = {heading for heading, _ in of_table}
    rows = []
    for metric, *cells in zip(metrics, *(line[1:] for line in lines), strict=True):
        values = [
            [duration(one[metric.name]) if _in_seconds(metric, one) else text, best]
            for (text, best), one in zip(cells, told, strict=True)
        ]
        unit = "" if metric.unit == "s" else metric.unit
        rows.append({"name": metric.name, "title": metric.title, "unit": unit, "values": values})
    first_shown = [one.name for one in metrics if one.heading in at_once]
    return {"names": list(parts), "first": first_shown, "rows": rows}


def _in_seconds(metric: Metric, told: Mapping[str, float]) -> bool:
    """Return whether a metric is a number of seconds."""
    return metric.unit == "s" and math.isfinite(told[metric.name])


def same_jobs(parts: Mapping[str, Result]) -> dict[str, Result]:
    """Return the schedules of the same jobs as the first; of failures of nodes, the same runs."""
    runs = {name: result.runs.workload for name, result in parts.items()}
    first = next(iter(runs.values()))
    return {name: result for name, result in parts.items() if _alike(first, runs[name])}


def check_same_jobs(parts: Mapping[str, Result]) -> None:
    """Raise an HpcgymError unless all schedules are of the same jobs."""
    first, *others = (result.workload for result in parts.values())
    if not all(_alike(first, other) for other in others):
        raise HpcgymError(
            "schedules on one page must be of the same jobs, submitted when they are in the others;"
            " these differ in jobs, or jobs follow others, or a failure of a node has made one run"
            " several times"
        )


def _alike(first: Workload, other: Workload) -> bool:
    """Return whether two workloads have the same jobs, as a page tells them."""
    columns = ("submit_time", "job_number", "requested_processors")
    return all(np.array_equal(getattr(first, one), getattr(other, one)) for one in columns)
