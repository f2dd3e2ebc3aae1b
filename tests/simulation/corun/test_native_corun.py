"""Where jobs share nodes both engines are in the same state after each pass."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from shared_strategies import Case, cases, with_files
from test_against_slow_simulator import as_workload, cluster_of, heatmap_of, one_that_both_take
from test_against_slow_simulator import scheduler_of as scheduler_for
from twins import assert_same_answers, assert_same_sharing, assert_twins

import hpcgym
from hpcgym.reference.shared_nodes import Job, Machine, Rules, Speedups
from hpcgym.scheduler.policies import FairShare
from hpcgym.simulation import corun, driver
from hpcgym.simulation.native import serves, simulation_of
from hpcgym.speedups import Heatmap
from hpcgym.workload.model import Workload


class Made(Exception):  # noqa: N818
    """A simulation before its first event."""


def made(case: Case, **rules: Any) -> driver.Simulation:
    """Return the simulation of a case before its first event."""

    def leave(simulation: driver.Simulation) -> None:
        raise Made(simulation)

    cluster = cluster_of(case)
    jobs = sorted((Job(*job) for job in case.jobs), key=lambda job: job.submit)
    workload = as_workload(jobs, len(case.true.alone), cluster.processors)
    if "fair_share" in rules:
        workload = workload.with_columns(user_id=np.arange(len(workload)) % 3)
    scheduler = scheduler_for(case).but(**rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver.Simulation, "drive", leave)
        with pytest.raises(Made) as found:
            corun.simulate_coscheduled(workload, scheduler, cluster, heatmap_of(case))
    simulation: driver.Simulation = found.value.args[0]
    return simulation


def assert_same_after_each_pass(case: Case, pieces: int, **rules: Any) -> None:
    """Simulate with both; the native engine goes on as a copy after so many passes each."""
    simulation, other = made(case, **rules), made(case, **rules)
    assert serves(other)
    native, passes = simulation_of(other), 0
    learning, simulation.pairs = simulation.pairs, None

    def compare() -> None:
        nonlocal native, passes
        passes += 1
        if learning is not None and other.pairs is not None:
            learning.learn(simulation.arrays, simulation.machine)
            assert native.run(passes=1) == 1
            other.pairs.learn_natively(other.arrays, other.machine, native)
            assert other.pairs.pairs.matrix().tolist() == learning.pairs.matrix().tolist()
        elif passes % pieces:
            return
        else:
            assert native.run(passes=pieces) == pieces
        native = native.copy()
        assert_twins(simulation.arrays, native)
        assert_same_answers(simulation, native)
        assert_same_sharing(simulation, native)

    simulation.after_pass = compare
    simulation.drive()
    assert native.run() == passes % pieces
    assert_twins(simulation.arrays, native)
    assert_same_sharing(simulation, native)


@settings(max_examples=300)
@given(st.data(), cases())
def test_each_pass_on_shared_nodes(data: st.DataObject, case: Case) -> None:
    assert_same_after_each_pass(one_that_both_take(case), data.draw(st.sampled_from([1, 3])))


@settings(max_examples=200)
@given(st.data(), with_files(cases()))
def test_each_pass_where_jobs_share_files(data: st.DataObject, case: Case) -> None:
    assert_same_after_each_pass(one_that_both_take(case), data.draw(st.sampled_from([1, 3])))


@settings(max_examples=100)
@given(st.sampled_from([None, 0.9, 1.0]), cases(knows=True))
def test_each_pass_where_speedups_are_learned(above: float | None, case: Case) -> None:
    case = one_that_both_take(case)
    assert_same_after_each_pass(case, 1, pair_estimate="learned", pairs_above=above)


@settings(max_examples=100)
@given(st.data(), cases(order="fcfs"))
def test_each_pass_where_usage_or_waiting_orders(data: st.DataObject, case: Case) -> None:
    policies: list[Any] = [
        {"fairshare": 1.0, "wait": 1e-30},
        "fairshare",
        "wfp3",
        "(wait / requested) ** 3 * processors",
    ]
    rules: dict[str, Any] = {"policy": data.draw(st.sampled_from(policies))}
    half_life = data.draw(st.sampled_from([5, 100, math.inf]))
    if rules["policy"] in policies[:2]:
        rules["fair_share"] = FairShare(half_life, 1.0, {0: 0.5, 1: 4.0})
    if case.rules.backfill == "easy" and data.draw(st.booleans()):
        rules["backfill_order"] = rules["policy"]
    rules["threshold"] = data.draw(st.sampled_from([None, None, 3]))
    assert_same_after_each_pass(one_that_both_take(case), 1, **rules)


@pytest.mark.parametrize("seed", range(6))
def test_more_nodes_than_a_word_has_bits_and_more_jobs_than_a_block(seed: int) -> None:
    draw = random.Random(seed)
    nodes, codes = draw.choice([64, 65, 70, 130]), 6
    row = [[draw.choice([0.8, 1.0, 1.1, draw.uniform(0.6, 1.5)]) for _ in range(codes)]] * codes
    pairs = [draw.sample(one, codes) for one in row]
    jobs = []
    for number in range(300):
        run = draw.choice([5, 20, 100, draw.randint(1, 200)])
        size = draw.choice([1, 2, 8, 30, draw.randint(1, nodes)])
        jobs.append((number // draw.choice([2, 5]), run, 2 * run, size, draw.randrange(codes)))
    rules = Rules(
        parts=2 + seed % 2,
        pairs_above=draw.choice([None, 0.95]),
        backfill=draw.choice(["easy", "easy", "fill"]),
        order=draw.choice(["fcfs", "sjf", "lqf"]),
        backfill_order=draw.choice(["fcfs", "sjbf", "policy"]),
    )
    true = Speedups(pairs, [max(one) for one in pairs])
    machine = Machine(nodes, 1, 3)
    assert_same_after_each_pass(Case(tuple(sorted(jobs)), machine, rules, true, None, 10**9), 5)


@pytest.mark.parametrize(
    ("backfill", "allocation"), [("conservative", "compact"), ("easy", "part:2")]
)
def test_years_in_ticks(backfill: str, allocation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of which a pool of whole seconds would not hear."""
    start, jobs = 3 * 10**8, [(10, 20, 3), (40, 40, 12), (7, 9, 5), (30, 30, 4)]
    columns = {
        "submit_time": [start + k for k in range(4)],
        "run_time": [run for run, _, _ in jobs],
        "requested_time": [requested for _, requested, _ in jobs],
        "requested_processors": [width for _, _, width in jobs],
        "executable": [1, 2, 1, 2],
    }
    workload = Workload.from_columns(columns, processors=16, header={"Code": ["1 a", "2 b"]})
    found = []
    for engine in ("native", "numba"):
        monkeypatch.setenv("HPCGYM_ENGINE", engine)
        scheduler = hpcgym.Scheduler(backfill=backfill, allocation=allocation)
        speedups = Heatmap(("a", "b"), np.array([[1.0, 0.9], [1.2, 0.7]]))
        cluster = hpcgym.cluster.find_cluster("4x1x4")
        found.append(hpcgym.simulate(workload, scheduler, cluster=cluster, speedups=speedups))
        assert found[-1].coschedule is not None
    one, other = (result.coschedule for result in found)
    assert one.start_ticks[0] == start * 10**9
    assert one.end_ticks.tolist() == other.end_ticks.tolist()
    assert one.promised_ticks.tolist() == other.promised_ticks.tolist()
