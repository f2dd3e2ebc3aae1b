"""Where jobs share nodes simulations can stop anywhere, and go on as copies."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from pieces import same_in_pieces
from shared_strategies import Case, cases
from test_against_slow_simulator import (
    as_workload,
    cluster_of,
    heatmap_of,
    one_that_both_take,
    scheduler_of,
)

import hpcgym
from hpcgym.reference.shared import Job, Machine, Rules, Speedups
from hpcgym.scheduler.policies import FairShare
from hpcgym.speedups import Heatmap

SEEDS = st.integers(0, 10**6)
pytestmark = pytest.mark.filterwarnings("ignore:fair share")


def assert_same_in_pieces(seed: int, case: Case, **rules: Any) -> None:
    """Simulate a case in one piece and in several."""
    case, cluster = one_that_both_take(case), cluster_of(case)
    jobs = sorted((Job(*job) for job in case.jobs), key=lambda job: job.submit)
    workload = as_workload(jobs, len(case.true.alone), cluster.processors)
    if "fair_share" in rules:
        workload = workload.with_columns(user_id=np.arange(len(workload)) % 3)
    scheduler, speedups = scheduler_of(case).but(**rules), heatmap_of(case)
    same_in_pieces(
        seed, partial(hpcgym.simulate, workload, scheduler, cluster=cluster, speedups=speedups)
    )


@settings(max_examples=100)
@given(st.sampled_from([None, 0.9, 1.0]), cases(knows=True), SEEDS)
def test_where_speedups_are_learned(above: float | None, case: Case, seed: int) -> None:
    assert_same_in_pieces(seed, case, pair_estimate="learned", pairs_above=above)


@settings(max_examples=100)
@given(st.data(), cases(order="fcfs"), SEEDS)
def test_where_usage_or_waiting_orders(data: st.DataObject, case: Case, seed: int) -> None:
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
    assert_same_in_pieces(seed, case, **rules)


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
    assert_same_in_pieces(seed, Case(tuple(sorted(jobs)), machine, rules, true, None, 10**9))


@pytest.mark.parametrize(
    ("backfill", "allocation"), [("conservative", "compact"), ("easy", "part:2")]
)
def test_years_in_ticks(backfill: str, allocation: str) -> None:
    """Times of which a pool of whole seconds would not hear: the schedule is that of earlier."""
    found, jobs = [], [(10, 20, 3), (40, 40, 12), (7, 9, 5), (30, 30, 4)]
    for start in (0, 3 * 10**8):
        workload = few_jobs(
            16,
            [start + k for k in range(4)],
            [run for run, _, _ in jobs],
            [width for _, _, width in jobs],
            [requested for _, requested, _ in jobs],
            executable=[1, 2, 1, 2],
            header={"Code": ["1 a", "2 b"]},
        )
        scheduler = hpcgym.Scheduler(backfill=backfill, allocation=allocation)
        speedups = Heatmap(("a", "b"), np.array([[1.0, 0.9], [1.2, 0.7]]))
        result = hpcgym.simulate(workload, scheduler, cluster="4x1x4", speedups=speedups)
        told = result.coschedule
        assert told is not None
        promised = np.where(told.promised_ticks < 0, -1, told.promised_ticks - start * 10**9)
        ticks = (told.start_ticks, told.end_ticks)
        found.append([*[(at - start * 10**9).tolist() for at in ticks], promised.tolist()])
    assert found[0][0][0] == 0
    assert found[0] == found[1]
