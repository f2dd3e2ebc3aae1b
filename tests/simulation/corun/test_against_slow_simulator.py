"""The engine where jobs share nodes, beside the slow one, to the tick."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from shared_strategies import Case, cases
from slow_shares import Accounts, SlowOrder

import hpcgym
from hpcgym.cluster.pool import NodeGroup
from hpcgym.reference.shared import COMPACT, Job, Machine, Rules, SharedSimulation, Speedups
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
    sweeps = rules.backfill in ("easy", "until-shadow")
    backfill_order: Any = rules.backfill_order if sweeps else "fcfs"
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


def group_of(machine: Machine) -> tuple[NodeGroup, int]:
    """The nodes of a machine, and the cores of each."""
    cores = machine.sockets * machine.cores
    return NodeGroup("all", machine.nodes, {"core": cores}, sockets=machine.sockets), cores


def cluster_of(case: Case) -> hpcgym.Cluster:
    group, _ = group_of(case.machine)
    gb_s = None if case.files is None else case.files.bandwidth / 1e9
    return hpcgym.Cluster(groups=(group,), io_bandwidth_gb_s=gb_s)


def heatmap_of(case: Case) -> Heatmap:
    """The true speedups, with what codes read and write."""
    found = named(case.true)
    if case.files is None:
        return found
    mb_s = np.array(case.files.demand) / 1e6
    return dataclasses.replace(found, io_share=np.array(case.files.share), io_demand_mb_s=mb_s)


def simulated(case: Case) -> tuple[hpcgym.Result, list[Job]]:
    slow = case.simulate()
    workload = as_workload(slow, len(case.true.alone), cluster_of(case).processors)
    result = hpcgym.simulate(
        workload,
        scheduler_of(case),
        cluster=cluster_of(case),
        speedups=heatmap_of(case),
    )
    return result, slow


def agree(case: Case) -> None:
    """Compare all that both say of each job."""
    compare(*simulated(case))


def compare(result: hpcgym.Result, slow: list[Job]) -> None:
    """Compare all that both say of each job, in this order."""
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


@pytest.mark.slow
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


# --- Fair share -----------------------------------------------------------------------------------

USERS = (0, 1, 2)


class Sharing(SharedSimulation):
    """The slow simulator with an order by what users have used."""

    def share(self, order: SlowOrder, users: list[int]) -> list[Job]:
        self.order, self.processors = order, self.m.nodes * self.m.sockets * self.m.cores
        self.terminated: dict[int, list[Any]] = {}
        for job, user in zip(self.jobs, users, strict=True):
            job.user = user  # type: ignore[attr-defined]
        order.begin(self)
        return self.run()

    def dynamic(self) -> bool:
        return True

    def in_order(self) -> list[Job]:
        return sorted(self.queue, key=lambda job: (-self.order(job, self.now), job.number))

    def end_jobs(self) -> None:
        for job in self.running:
            if job.end == self.now:
                job.actual = job.end - job.start  # type: ignore[attr-defined]
                user = job.user  # type: ignore[attr-defined]
                self.terminated.setdefault(user, []).append(job)
        super().end_jobs()


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(cases(order="fcfs"), st.data())
def test_usage_decides_who_is_first(case: Case, data: st.DataObject) -> None:
    case = one_that_both_take(case)
    jobs = [Job(*job) for job in case.jobs]
    many = st.lists(st.sampled_from(USERS), min_size=len(jobs), max_size=len(jobs))
    users, half_life = data.draw(many), data.draw(st.sampled_from([5, 100, None]))
    shares: dict[Any, float] = data.draw(st.sampled_from([{}, {0: 2.0}, {0: 0.5, 1: 4.0}]))
    in_ticks = None if half_life is None else half_life * case.ticks
    used = Accounts({*users}, shares, half_life=in_ticks)
    by_priority = data.draw(st.booleans())
    order = SlowOrder((1.0, 0.0) if by_priority else "cpu", used, [1.0] * len(jobs), 1.0)
    simulation = Sharing(jobs, case.machine, case.rules, case.true, case.believed, case.ticks)
    slow = simulation.share(order, users)
    policy: Any = {"fairshare": 1.0, "wait": 1e-30} if by_priority else "fairshare"
    fair = hpcgym.scheduler.policies.FairShare(half_life or math.inf, 1.0, shares)
    rules: dict[str, Any] = {"policy": policy, "fair_share": fair}
    if case.rules.backfill in ("easy", "until-shadow") and case.rules.backfill_order == "policy":
        rules["backfill_order"] = policy
    group, cores = group_of(case.machine)
    workload = as_workload(slow, len(case.true.alone), case.machine.nodes * cores)
    result = hpcgym.simulate(
        workload.with_columns(user_id=users),
        scheduler_of(case).but(**rules),
        cluster=hpcgym.Cluster(groups=(group,)),
        speedups=named(case.true),
    )
    hpcgym.validate_schedule(result)
    found = result.coschedule
    assert found is not None
    assert found.start_ticks.tolist() == [job.start for job in slow]
    assert found.end_ticks.tolist() == [job.end for job in slow]
    assert result.backfilled.tolist() == [job.backfilled for job in slow]
