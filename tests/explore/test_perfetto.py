"""Traces of events: slices are the schedule, and no two on a row overlap."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from strategies import workloads

from hpcgym.errors import HpcgymError
from hpcgym.explore import write_trace
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload
from hpcgym.workload.model import Workload


def events_of(results: Any, path: Path) -> list[dict[str, Any]]:
    write_trace(results, path)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: list[dict[str, Any]] = json.loads(text, parse_constant=_no_number)["traceEvents"]
    return found


def _no_number(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(workloads(20))
def test_slices_are_the_schedule(
    tmp_path_factory: pytest.TempPathFactory, workload: Workload
) -> None:
    workload = workload.with_columns(job_number=np.arange(1, len(workload) + 1))
    result = simulate(workload, "easy")
    events = events_of(result, tmp_path_factory.mktemp("trace") / "trace.json")
    first = int(workload.submit_time[0])
    rows = defaultdict(list)
    jobs = set()
    for event in events:
        if event["ph"] != "X":
            continue
        job = event["args"]["job_number"] - 1
        jobs.add(job)
        assert event["name"] == f"job {job + 1}"
        assert event["ts"] == (result.start[job] - first) * 1_000_000
        assert event["dur"] == (result.end[job] - result.start[job]) * 1_000_000
        assert event["args"]["wait_time"] == result.wait[job]
        rows[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert jobs == set(range(len(workload)))
    for spans in rows.values():
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(spans)))
    for time, busy in _counted(events, "processors in use").items():
        runs = (result.start <= time + first) & (result.end > time + first)
        assert busy == workload.requested_processors[runs].sum()
    for time, waiting in _counted(events, "jobs that wait").items():
        waits = (workload.submit_time <= time + first) & (result.start > time + first)
        assert waiting == waits.sum()


def _counted(events: list[dict[str, Any]], what: str) -> dict[int, int]:
    """Return the values of a counter by time [s]."""
    mine = [event for event in events if event["ph"] == "C" and event["name"] == what]
    return {event["ts"] // 1_000_000: event["args"][""] for event in mine}


def test_two_schedules_packed(tmp_path: Path, made: Callable[..., Any]) -> None:
    jobs = [(0, 10, 4), (0, 20, 8), (5, 5, 2)]
    parts = {'<a> "b"': made(jobs, "easy"), "fcfs": made(jobs, "fcfs")}
    events = events_of(parts, tmp_path / "two.json.gz")
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {1: '<a> "b"', 2: "fcfs"}
    slices = [event for event in events if event["ph"] == "X" and event["pid"] == 2]
    # the second needs all processors, from 10 s to 30 s; nothing overtakes it
    assert [(e["ts"] // 1_000_000, e["tid"]) for e in slices] == [(0, 0), (10, 0), (30, 0)]
    told = json.loads(gzip.decompress((tmp_path / "two.json.gz").read_bytes()))["otherData"]
    assert [one["name"] for one in told["schedules"]] == list(parts)


def test_rows_of_nodes_have_names(tmp_path: Path) -> None:
    result = simulate(load_workload("eurora:jobs=30,load=1,seed=1"), "easy", cluster="eurora")
    events = events_of(result, tmp_path / "nodes.json")
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names[0] == "node 0 core 0"
    assert names[min(row for row in names if row >= 16)].startswith("node 1 core ")
    named = Cluster(groups=(NodeGroup("n[01-02]", 2, {"core": 2}),))
    jobs = load_workload("lublin:jobs=20,processors=4")
    events = events_of(simulate(jobs, "easy", cluster=named), tmp_path / "named.json")
    assert "node n01 core 0" in [e["args"]["name"] for e in events if e["name"] == "thread_name"]


def test_a_file_that_cannot_be_written(tmp_path: Path, made: Callable[..., Any]) -> None:
    with pytest.raises(HpcgymError, match="missing"):
        write_trace(made([(0, 1, 1)]), tmp_path / "missing" / "trace.json")
