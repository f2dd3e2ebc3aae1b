"""The compiled simulator of nodes that jobs share, beside the slow one, to the tick."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from shared_strategies import Case, cases
from slow_shared import COMPACT, Job, Machine, Rules, Speedups, share_slowly

import hpcgym
from hpcgym.cluster.nodes import NodeGroup
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.speedups import Heatmap
from hpcgym.workload import Workload

SHAPES = {0: COMPACT, 1: "spread", 2: "part"}


def named(speedups: Speedups) -> Heatmap:
    codes = tuple(f"c{code}" for code in range(len(speedups.alone)))
    return Heatmap(codes, np.array(speedups.pairs), alone=np.array(speedups.alone))


def as_workload(jobs: list[Job], codes: int, processors: int) -> Workload:
    columns = {
        "submit_time": [job.submit for job in jobs],
        "run_time": [job.run for job in jobs],
        "requested_time": [job.requested for job in jobs],
        "requested_processors": [job.processors for job in jobs],
        "executable": [job.code + 1 for job in jobs],
    }
    names = [f"{code + 1} c{code}" for code in range(codes)]
    return Workload.from_columns(columns, processors=processors, header={"Code": names})


def scheduler_of(case: Case) -> hpcgym.Scheduler:
    rules = case.rules
    order: Any = rules.order
    if not isinstance(order, str):
        order = dict(zip(PASS_FEATURES, order, strict=True))
    backfill_order: Any = rules.backfill_order if rules.backfill == "easy" else "fcfs"
    pairs = "known" if case.believed is None else named(case.believed)
    return hpcgym.Scheduler(
        policy=order,
        backfill=rules.backfill,
        backfill_order=order if backfill_order == "policy" else backfill_order,
        estimate=rules.estimate,
        allocation=f"part:{rules.parts}" if rules.allocation == "part" else rules.allocation,
        partners=rules.partners,
        pairs_above=rules.pairs_above,
        pair_estimate=pairs,
    )


def one_that_both_take(case: Case) -> Case:
    """Without what the simulator refuses, or takes otherwise."""
    rules = case.rules
    if not isinstance(rules.order, str):
        order = rules.order if any(rules.order) else (1.0, 0.0, 0.0)
        by = "fcfs" if rules.backfill_order == "policy" else rules.backfill_order
        rules = dataclasses.replace(rules, order=order, backfill_order=by)
    return dataclasses.replace(case, rules=rules, ticks=10**9)


def simulated(case: Case) -> tuple[hpcgym.Result, list[Job]]:
    jobs = [Job(*job) for job in case.jobs]
    slow = share_slowly(jobs, case.machine, case.rules, case.true, case.believed, case.ticks)
    machine = case.machine
    cores = machine.sockets * machine.cores
    group = NodeGroup("all", machine.nodes, {"core": cores}, sockets=machine.sockets)
    workload = as_workload(slow, len(case.true.alone), machine.nodes * cores)
    result = hpcgym.simulate(
        workload,
        scheduler_of(case),
        cluster=hpcgym.Cluster(groups=(group,)),
        speedups=named(case.true),
    )
    return result, slow


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(cases())
def test_both_make_the_same_schedule(case: Case) -> None:
    agree(one_that_both_take(case))


def agree(case: Case) -> None:
    """Compare all that both say of each job."""
    result, slow = simulated(case)
    hpcgym.validate_schedule(result)
    found, allocation = result.coschedule, result.allocation
    assert found is not None
    assert allocation is not None
    assert found.ticks == 10**9
    assert found.start_ticks.tolist() == [job.start for job in slow]
    assert found.end_ticks.tolist() == [job.end for job in slow]
    assert [SHAPES[shape] for shape in found.shape.tolist()] == [job.shape for job in slow]
    assert result.backfilled.tolist() == [job.backfilled for job in slow]
    promised = [-1.0 if job.promised < 0 else job.promised / found.ticks for job in slow]
    assert result.reserved_start.tolist() == promised
    for number, job in enumerate(slow):
        cells = slice(allocation.first[number], allocation.first[number + 1])
        assert sorted(allocation.node[cells].tolist()) == [node for node, _ in job.nodes]


@pytest.mark.parametrize("seed", range(3))
def test_many_nodes_and_jobs(seed: int) -> None:
    # more nodes than a word of bits has, more running and waiting jobs than a block of a list
    draw = random.Random(seed)
    nodes, codes = draw.choice([64, 65, 70, 130]), 6
    row = [[draw.choice([0.8, 1.0, 1.1, draw.uniform(0.6, 1.5)]) for _ in range(codes)]] * codes
    pairs = [draw.sample(one, codes) for one in row]
    jobs = []
    for number in range(80):
        run = draw.choice([5, 20, 100, draw.randint(1, 200)])
        size = draw.choice([1, 2, 8, 30, draw.randint(1, nodes)])
        jobs.append((number // draw.choice([1, 3]), run, 2 * run, size, draw.randrange(codes)))
    rules = Rules(
        parts=2 + seed % 2,
        pairs_above=draw.choice([None, 0.95]),
        backfill=draw.choice(["easy", "easy", "fill"]),
        order=draw.choice(["fcfs", "sjf", "lqf"]),
    )
    true = Speedups(pairs, [max(one) for one in pairs])
    ordered = tuple(sorted(jobs))
    agree(Case(ordered, Machine(nodes, 1, 3), rules, true, None, 10**9))
