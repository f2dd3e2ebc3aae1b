"""Schedules as a trace of events, which Perfetto (https://ui.perfetto.dev) and Chrome can open.

The format is Chrome's JSON of trace events: a process is a schedule, a thread a row of its Gantt
chart, a slice a job on adjacent rows, and counters tell processors in use and jobs that wait.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.explore.page import check_same_jobs
from hpcgym.files.writing import whole_text
from hpcgym.report.placement import has_nodes, place_jobs, rows_of
from hpcgym.report.tables import Results, drawable
from hpcgym.schedule.metrics import processors_in_use, queue_length
from hpcgym.schedule.provenance import provenance_of
from hpcgym.schedule.result import Result
from hpcgym.workload.io.swf_header import called, names_of

_US = 1_000_000  # times are microseconds since the first submission

Event = dict[str, Any]


def write_trace(results: Results, path: str | os.PathLike[str]) -> None:
    """Write schedules as a trace of events, whole or not at all; packed if the name ends in .gz.

    Where the trace is from stands in it under ``otherData``.

    Parameters
    ----------
    results : as for :func:`hpcgym.explore.page`.
    path : of the file.

    Raises
    ------
    HpcgymError : as for :func:`hpcgym.explore.page`, or a file that cannot be written.
    """
    given = drawable(results)
    parts = {name: result.runs for name, result in given.items()}
    check_same_jobs(parts)
    origin = json.dumps(provenance_of(given), ensure_ascii=True, allow_nan=False)
    with whole_text(path) as file:
        file.write(f'{{"displayTimeUnit": "ms", "otherData": {origin}, "traceEvents": [\n')
        gap = ""
        for process, (name, result) in enumerate(parts.items(), 1):
            for event in _events(result, name, process):
                file.write(gap + json.dumps({**event, "pid": process}))
                gap = ",\n"
        file.write("\n]}\n")


def _events(result: Result, name: str, process: int) -> Iterator[Event]:
    """Give the events of a schedule, without its number."""
    first = int(result.workload.submit_time[0])
    yield {"ph": "M", "name": "process_name", "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "args": {"sort_index": process}}
    yield from _slices(result, first)
    for what, steps in (
        ("processors in use", processors_in_use(result)),
        ("jobs that wait", queue_length(result)),
    ):
        for time, value in zip(_microseconds(steps[0], first), steps[1].tolist(), strict=True):
            yield {"ph": "C", "name": what, "ts": time, "args": {"": value}}


def _slices(result: Result, first: int) -> Iterator[Event]:
    """Give the names of the rows that are used, and the slices of jobs on them."""
    drawn = place_jobs(result)
    used = np.unique(drawn.low)
    for row, name in zip(used.tolist(), _row_names(result, used), strict=True):
        yield {"ph": "M", "name": "thread_name", "tid": row, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "tid": row, "args": {"sort_index": row}}
    facts = _facts(result)
    rows = zip(
        drawn.job.tolist(),
        drawn.low.tolist(),
        _microseconds(drawn.begin, first),
        _microseconds(drawn.end, first),
        strict=True,
    )
    for job, row, begin, end in rows:
        told = facts[job]
        name, kind = f"job {told['job_number']}", told["user"]
        yield {
            "ph": "X", "name": name, "cat": kind, "tid": row, "ts": begin, "dur": end - begin,
            "args": told,
        }  # fmt: skip


def _facts(result: Result) -> list[dict[Any, Any]]:
    """Return what is told of each job: its number, user, processors, times [s]."""
    import pandas as pd

    workload = result.workload
    known = names_of(workload, "user_id")
    columns = {
        "job_number": workload.job_number,
        "requested_processors": workload.requested_processors,
        "requested_time": workload.requested_time,
        "wait_time": result.wait,
        "user": [called(known, "user", number) for number in workload.user_id.tolist()],
    }
    return pd.DataFrame(columns).to_dict("records")


def _row_names(result: Result, rows: NDArray[np.int64]) -> list[str]:
    """Return what rows are called: a processor, or a core or part of a node, from 0 on."""
    if result.coschedule is None and not has_nodes(result):
        return [f"processor {row}" for row in rows.tolist()]
    firsts, names = rows_of(result), result.cluster.node_names
    nodes = np.searchsorted(firsts, rows, side="right") - 1
    what = "core" if result.coschedule is None else "part"
    places = zip(nodes.tolist(), (rows - firsts[nodes]).tolist(), strict=True)
    return [f"node {names[node]} {what} {place}" for node, place in places]


def _microseconds(times: NDArray[Any], first: int) -> list[int]:
    """Return times [s] as whole microseconds since the first submission."""
    whole: list[int] = np.rint((times - first) * _US).astype(np.int64).tolist()
    return whole
