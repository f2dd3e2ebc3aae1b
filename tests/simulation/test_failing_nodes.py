"""Schedules on nodes that fail, worked out by hand; energies; and proofs that can fail."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from failure_strategies import Failure, failures_for, table_of
from few_jobs import few_jobs
from mistakes import mistakes_of
from node_strategies import workloads_for

import hpcgym
from hpcgym.errors import HpcgymError, HpcgymWarning
from hpcgym.machine import Cluster, Failures, NodeGroup, NodePower
from hpcgym.reference.failures import simulate_failures
from hpcgym.reference.jobs import Job
from hpcgym.schedule.metrics import processors_in_use, queue_length
from hpcgym.schedule.runs import SWITCHING_OFF
from hpcgym.simulation.run import learn_before
from hpcgym.validation.validate import ScheduleError
from hpcgym.workload.model import Workload

PAIR = Cluster(groups=(NodeGroup("a", 2, {"core": 2}),), busy_power_w=10.0, idle_power_w=4.0)


def jobs(*rows: tuple[int, ...]) -> Workload:
    """Jobs of rows (submit, run, units of a core[, requested])."""
    return few_jobs(
        4,
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
        [row[-1] if len(row) == 4 else row[1] for row in rows],
    )


def failing(rows: list[tuple[int, ...]], failures: list[Failure], **rules: Any) -> Any:
    """Simulate jobs on two nodes of two cores; the slow simulator must say the same."""
    result = hpcgym.simulate(jobs(*rows), cluster=PAIR, failures=table_of(failures), **rules)
    slow = [
        Job(row[0], row[2], row[1], row[-1] if len(row) == 4 else row[1], units=row[2])
        for row in rows
    ]
    rules.setdefault("backfill", "easy")
    expected, lost = simulate_failures(slow, PAIR.capacity.tolist(), failures, **rules)
    assert result.start.tolist() == [job.start for job in expected]
    assert len(result.lost.job) == len(lost)
    hpcgym.validate_schedule(result)
    return result


def test_a_job_on_a_node_that_fails_runs_again_from_the_beginning() -> None:
    # A has node 0, which fails at 4 for 6 s, B node 1 until 20: A starts again when 0 is repaired
    result = failing([(0, 9, 2), (0, 20, 2)], [(0, 4, 10)])
    assert result.start.tolist() == [10, 0]
    assert result.end.tolist() == [19, 20]
    assert result.wait.tolist() == [10, 0]
    assert result.run_time.tolist() == [9, 20]
    assert result.restarts.tolist() == [1, 0]
    assert result.lost_core_seconds.tolist() == [8, 0]
    assert (result.lost.start.tolist(), result.lost.end.tolist()) == ([0], [4])
    assert result.jobs["restarts"].tolist() == [1, 0]
    assert result.jobs["lost_core_seconds"].tolist() == [8, 0]
    metrics = result.metrics
    assert (metrics["lost_runs"], metrics["lost_core_seconds"]) == (1, 8)
    assert metrics["utilization"] == (18 + 40 + 8) / (4 * 20)
    assert metrics["mean_queue_length"] == 6 / 20
    assert result.energy.by_job["energy_j"].tolist() == [10.0 * 2 * (4 + 9), 10.0 * 2 * 20]
    watts = result.power
    assert watts["time"].tolist()[:3] == [0, 4, 10]
    assert watts["busy_w"].tolist()[:3] == [40.0, 20.0, 40.0]
    waiting, running = queue_length(result), processors_in_use(result)
    steps = [
        dict(zip(*(part.tolist() for part in curve), strict=True)) for curve in (waiting, running)
    ]
    assert steps == [{0: 0, 4: 1, 10: 0}, {0: 4, 4: 2, 10: 4, 19: 2, 20: 0}]
    assert {"runs", "states", "nodes", "energy", "order"} <= {*hpcgym.validate_schedule(result)}


def test_failures_after_the_last_end_change_nothing() -> None:
    rows = [(0, 9, 4), (3, 5, 1)]
    before = hpcgym.simulate(jobs(*rows), cluster=PAIR)
    with pytest.warns(HpcgymWarning, match="no failure is between .*: they begin at 14 s"):
        result = failing(rows, [(0, 14, 99), (1, 5000, 6000)])
    assert result.start.tolist() == before.start.tolist()
    assert result.metrics["makespan_s"] == before.metrics["makespan_s"]
    assert result.metrics["energy_j"] == before.metrics["energy_j"]


# --- Energy -----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_energy_second_by_second(data: st.DataObject) -> None:
    """Of nodes that draw by themselves: off while down, busy while any run has units on them."""
    power = NodePower(7.0, 20.0, 3.0)
    cluster = Cluster(groups=(NodeGroup("a", 3, {"core": 2, "mem": 3}, power),))
    workload = data.draw(workloads_for(cluster, max_jobs=8, brief=True))
    failures = data.draw(failures_for(cluster, workload))
    result = hpcgym.simulate(workload, cluster=cluster, failures=table_of(failures))
    runs = result.runs
    first, node, _ = runs.allocation
    owner = np.repeat(np.arange(len(runs.start)), np.diff(first))
    begin, end = int(workload.submit_time.min()), int(result.end.max())
    joules = dict.fromkeys(("busy", "idle", "off"), 0.0)
    for now in range(begin, end):
        running = (runs.start <= now) & (now < runs.end)
        busy = set(node[running[owner]].tolist())
        down = {where for where, fails, repaired in failures if fails <= now < repaired}
        assert not busy & down
        joules["busy"] += 20.0 * len(busy)
        joules["off"] += 3.0 * len(down)
        joules["idle"] += 7.0 * (3 - len(busy) - len(down))
    for name, expected in joules.items():
        assert result.metrics[f"energy_{name}_j"] == pytest.approx(expected)
    assert result.energy.by_job["energy_j"].sum() == pytest.approx(joules["busy"])
    assert result.energy.by_job["with_overhead_j"].sum() == pytest.approx(sum(joules.values()))
    assert len(result.energy.by_job) == len(workload)
    used = int(np.dot(runs.workload.requested_processors, runs.run_time))
    useful = int(np.dot(workload.requested_processors, result.run_time))
    assert used == useful + result.metrics["lost_core_seconds"]


# --- Proofs -----------------------------------------------------------------------------------


def moved(result: Any, job: int, start: int) -> Any:
    """Return a schedule in which the last run of a job starts at another time."""
    starts = result.start.copy()
    starts[job] = start
    return replace(result, start=starts)


def test_what_was_learned_before_goes_on_where_nodes_fail() -> None:
    workload = jobs((0, 9, 2))
    before = learn_before(jobs((0, 5, 1)), "easy++", 10)
    result = hpcgym.simulate(
        workload, "easy++", cluster=PAIR, failures=table_of([(0, 4, 6)]), learned=before
    )
    assert result.start.tolist() == [4]  # on the other node
    assert result.learned is not None


def switching() -> Any:
    """Prove a schedule in which a node is being switched off while it is down."""
    result = failing([(0, 9, 2), (0, 20, 2)], [(0, 4, 10)])
    states = result.node_states
    others = replace(states, state=np.full_like(states.state, SWITCHING_OFF))
    return hpcgym.validate_schedule(replace(result, node_states=others))


# --- What can be given ------------------------------------------------------------------------


def test_a_file_of_failures(tmp_path: Path) -> None:
    path = tmp_path / "failures.csv"
    path.write_text("node,time,repaired\n0,4,10\n")
    result = hpcgym.simulate(jobs((0, 9, 2)), cluster=PAIR, failures=path)
    assert result.restarts.tolist() == [1]
    assert "failures of nodes: 1; 1 runs that they ended are not told" in "\n".join(
        result.as_workload().header["Note"]
    )


def test_a_function_is_shown_what_is_free_and_who_waits_again() -> None:
    seen = []

    def last_first(view: Any) -> Any:
        seen.append((view.time, view.free[:, 0].tolist(), view.job.tolist()))
        return view.job

    workload = jobs((0, 9, 2), (0, 9, 2))
    result = hpcgym.simulate(
        workload, cluster=PAIR, policy=last_first, failures=table_of([(0, 4, 6), (1, 5, 6)])
    )
    assert seen == [(0, [2, 2], [0, 1]), (6, [2, 2], [0, 1])]
    assert result.start.tolist() == [6, 6]


def test_who_was_to_start_on_a_node_that_failed_goes_on_waiting() -> None:
    """The answer takes 5 s; node 0 fails at 3, until 9: only the job on node 1 starts at 5."""
    workload = jobs((0, 9, 2), (0, 9, 2))
    result = hpcgym.simulate(
        workload, "sjf-list", cluster=PAIR, dispatch_time=5, failures=table_of([(0, 3, 9)])
    )
    assert sorted(result.start.tolist()) == [5, 14]
    hpcgym.validate_schedule(result)


def test_an_extract_begins_on_nodes_that_have_been_up() -> None:
    """At 10, job 0 has ended; node 0 is down until 30; node 1 is up since 6.

    Job 2, which runs since 7, has node 1. For job 1, which ran since 5, no node has been up: it
    waits, and runs on node 1 from 12 on, up to its failure at 15, then on node 0; then does job 3.
    """
    rows = [(0, 9, 0), (4, 9, 1), (6, 5, 1), (8, 9, 3)]  # submit, run, wait
    log = jobs(*((submit, run, 2) for submit, run, _ in rows))
    log = log.with_columns(wait_time=[wait for _, _, wait in rows])
    failures = [(0, 2, 4), (0, 9, 30), (1, 3, 6), (1, 15, 40)]
    result = hpcgym.simulate(log.extract(10), cluster=PAIR, failures=table_of(failures))
    slow = [Job(s, 2, run, run, units=2, recorded_wait=wait) for s, run, wait in rows]
    expected, _ = simulate_failures(slow, PAIR.capacity.tolist(), failures, begin=10)
    assert [job.start for job in expected if job.end > 10] == [30, 7, 39]
    assert result.start.tolist() == [30, 7, 39]
    assert result.lost.start.tolist() == [12]
    assert [*result.workload.cleaning.values()] == [1]
    assert result.workload.initial is not None
    assert result.workload.initial.start.tolist() == [-1, 7, -1]
    hpcgym.validate_schedule(result)


def test_nothing_of_it_is_told_where_no_node_fails() -> None:
    result = hpcgym.simulate(jobs((0, 9, 2)), cluster=PAIR)
    assert result.lost is None
    assert result.runs is result
    assert result.restarts.tolist() == result.lost_core_seconds.tolist() == [0]
    assert not {"lost_runs", "lost_core_seconds"} & {*result.metrics, *result.jobs.columns}
    assert math.isfinite(result.metrics["energy_j"])


test_mistakes = mistakes_of(globals(), Failures, errors=(HpcgymError, ScheduleError))
