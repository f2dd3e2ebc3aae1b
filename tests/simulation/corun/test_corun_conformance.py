"""Where jobs share nodes: schedules are the slow simulator's, in pieces and under restrictions."""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from pieces import same_in_pieces
from quota_strategies import with_queues
from restrictions import DRAWN, restrict
from share_strategies import SlowOrder
from shared_strategies import BY_RUNS, LOOKING, Case, cases, coded, with_files

import hpcgym
from hpcgym.machine.pool import NodeGroup
from hpcgym.machine.speedups import Heatmap
from hpcgym.reference.shared import (
    COMPACT,
    SharedJob,
    SharedMachine,
    SharedRules,
    SharedSimulation,
    Speedups,
)
from hpcgym.reference.shares import AccountTree
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.workload import Workload

pytestmark = [*DRAWN, pytest.mark.filterwarnings("ignore:fair share")]

SHAPES = {0: COMPACT, 1: "spread", 2: "part"}


def named(speedups: Speedups) -> Heatmap:
    codes = tuple(f"c{code}" for code in range(len(speedups.alone)))
    return Heatmap(codes, np.array(speedups.pairs), alone=np.array(speedups.alone))


def as_workload(jobs: list[SharedJob], codes: int, processors: int) -> Workload:
    columns = {
        "job_number": list(range(1, len(jobs) + 1)),
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
    if callable(order):
        order = LOOKING[order]
    elif not isinstance(order, str):
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
    if isinstance(rules.order, tuple):
        order = rules.order if any(rules.order) else (1.0, 0.0, 0.0)
        by = "fcfs" if rules.backfill_order == "policy" else rules.backfill_order
        rules = dataclasses.replace(rules, order=order, backfill_order=by)
    return dataclasses.replace(case, rules=rules, ticks=10**9)


def group_of(machine: SharedMachine) -> tuple[NodeGroup, int]:
    """The nodes of a machine, and the cores of each."""
    cores = machine.sockets * machine.cores
    return NodeGroup("all", machine.nodes, {"core": cores}, sockets=machine.sockets), cores


def cluster_of(case: Case) -> hpcgym.Cluster:
    group, _ = group_of(case.machine)
    gb_s = None if case.files is None else case.files.bandwidth / 1e9
    return hpcgym.Cluster(groups=(group,), io_bandwidth_gb_s=gb_s)


def heatmap_of(case: Case) -> Heatmap:
    """The true speedups, with what codes read and write."""
    heatmap = named(case.true)
    if case.files is None:
        return heatmap
    mb_s = np.array(case.files.demand) / 1e6
    return dataclasses.replace(heatmap, io_share=np.array(case.files.share), io_demand_mb_s=mb_s)


def simulated(case: Case) -> tuple[hpcgym.Result, list[SharedJob]]:
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


def compare(result: hpcgym.Result, slow: list[SharedJob]) -> None:
    """Compare all that both say of each job, in this order."""
    hpcgym.validate_schedule(result)
    times, allocation = result.coschedule, result.allocation
    assert times is not None
    assert allocation is not None
    assert times.ticks == 10**9
    assert times.start_ticks.tolist() == [job.start for job in slow]
    assert times.end_ticks.tolist() == [job.end for job in slow]
    assert [SHAPES[shape] for shape in times.shape.tolist()] == [job.shape for job in slow]
    assert result.backfilled.tolist() == [job.backfilled for job in slow]
    promised = [-1.0 if job.promised < 0 else job.promised / times.ticks for job in slow]
    assert result.reserved_start.tolist() == promised
    for number, job in enumerate(slow):
        cells = slice(allocation.first[number], allocation.first[number + 1])
        assert sorted(allocation.node[cells].tolist()) == [node for node, _ in job.nodes]


def crowd(seed: int, count: int, gaps: list[int]) -> Case:
    """More nodes than a word of bits has, more running and waiting jobs than a block of a list."""
    draw = random.Random(seed)
    nodes, codes = draw.choice([64, 65, 70, 130]), 6
    row = [[draw.choice([0.8, 1.0, 1.1, draw.uniform(0.6, 1.5)]) for _ in range(codes)]] * codes
    pairs = [draw.sample(speeds, codes) for speeds in row]
    jobs = []
    for number in range(count):
        run = draw.choice([5, 20, 100, draw.randint(1, 200)])
        size = draw.choice([1, 2, 8, 30, draw.randint(1, nodes)])
        jobs.append((number // draw.choice(gaps), run, 2 * run, size, draw.randrange(codes)))
    rules = SharedRules(
        parts=2 + seed % 2,
        pairs_above=draw.choice([None, 0.95]),
        backfill=draw.choice(["easy", "easy", "fill"]),
        order=draw.choice(["fcfs", "sjf", "lqf"]),
        backfill_order=draw.choice(["fcfs", "sjbf", "policy"]),
    )
    true = Speedups(pairs, [max(speeds) for speeds in pairs])
    return Case(tuple(sorted(jobs)), SharedMachine(nodes, 1, 3), rules, true, None, 10**9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_many_nodes_and_jobs(seed: int) -> None:
    agree(crowd(seed, 80, [1, 3]))


# --- Fair share -----------------------------------------------------------------------------------

USERS = (0, 1, 2)


class Sharing(SharedSimulation):
    """The slow simulator with an order by what users have used."""

    def share(self, order: SlowOrder, users: list[int]) -> list[SharedJob]:
        self.order, self.processors = order, self.m.nodes * self.m.sockets * self.m.cores
        self.terminated: dict[int, list[Any]] = {}
        for job, user in zip(self.jobs, users, strict=True):
            job.user = user  # type: ignore[attr-defined]
        order.begin(self)
        return self.run()

    def dynamic(self) -> bool:
        return True

    def in_order(self) -> list[SharedJob]:
        used = sorted({self.order.ratio("cpu", job.user, self.now) for job in self.queue})
        # what begun ticks alone tell apart the slow order, of twelve digits, takes for equal
        assume(all(more - less > more / 10**8 for less, more in pairwise(used)))
        return sorted(self.queue, key=lambda job: -self.order(job, self.now))

    def end_jobs(self) -> None:
        for job in self.running:
            if job.end == self.now:
                job.actual = job.end - job.start  # type: ignore[attr-defined]
                user = job.user  # type: ignore[attr-defined]
                self.terminated.setdefault(user, []).append(job)
        super().end_jobs()


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(cases(order="fcfs"), st.data())
def test_usage_decides_who_is_first(case: Case, data: st.DataObject) -> None:
    case = one_that_both_take(case)
    jobs = [SharedJob(*job) for job in case.jobs]
    many = st.lists(st.sampled_from(USERS), min_size=len(jobs), max_size=len(jobs))
    users, half_life = data.draw(many), data.draw(st.sampled_from([5, 100, None]))
    shares: dict[Any, float] = data.draw(st.sampled_from([{}, {0: 2.0}, {0: 0.5, 1: 4.0}]))
    in_ticks = None if half_life is None else half_life * case.ticks
    used = AccountTree({*users}, shares, half_life=in_ticks)
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
    times = result.coschedule
    assert times is not None
    assert times.start_ticks.tolist() == [job.start for job in slow]
    assert times.end_ticks.tolist() == [job.end for job in slow]
    assert result.backfilled.tolist() == [job.backfilled for job in slow]


SEEDS = st.integers(0, 10**6)


def assert_same_in_pieces(seed: int, case: Case, **rules: Any) -> None:
    """Simulate a case in one piece and in several."""
    case, cluster = one_that_both_take(case), cluster_of(case)
    jobs = sorted((SharedJob(*job) for job in case.jobs), key=lambda job: job.submit)
    workload = as_workload(jobs, len(case.true.alone), cluster.processors)
    if "fair_share" in rules:
        workload = workload.with_columns(user_id=np.arange(len(workload)) % 3)
    scheduler, speedups = scheduler_of(case).but(**rules), heatmap_of(case)
    same_in_pieces(
        seed, partial(hpcgym.simulate, workload, scheduler, cluster=cluster, speedups=speedups)
    )


#: Orders by usage and by waiting.
POLICIES: list[Any] = [{"fairshare": 1.0, "wait": 1e-30}, "fairshare", "wfp3"]
POLICIES += ["(wait / requested) ** 3 * processors"]


@pytest.mark.parametrize("what", ["learned", "ordered"])
@settings(max_examples=100)
@given(st.data(), SEEDS)
def test_in_pieces_it_learns_and_orders_the_same(what: str, data: st.DataObject, seed: int) -> None:
    if what == "learned":
        above, case = data.draw(st.sampled_from([None, 0.9, 1.0])), data.draw(cases(knows=True))
        assert_same_in_pieces(seed, case, pair_estimate="learned", pairs_above=above)
        return
    case = data.draw(cases(order="fcfs"))
    rules: dict[str, Any] = {"policy": data.draw(st.sampled_from(POLICIES))}
    half_life = data.draw(st.sampled_from([5, 100, math.inf]))
    if rules["policy"] in POLICIES[:2]:
        rules["fair_share"] = FairShare(half_life, 1.0, {0: 0.5, 1: 4.0})
    if case.rules.backfill == "easy" and data.draw(st.booleans()):
        rules["backfill_order"] = rules["policy"]
    rules["threshold"] = data.draw(st.sampled_from([None, None, 3]))
    assert_same_in_pieces(seed, case, **rules)


@pytest.mark.parametrize("seed", range(6))
def test_many_nodes_and_jobs_in_pieces(seed: int) -> None:
    assert_same_in_pieces(seed, crowd(seed, 300, [2, 5]))


@pytest.mark.parametrize(
    ("backfill", "allocation"), [("conservative", "compact"), ("easy", "part:2")]
)
def test_years_in_ticks(backfill: str, allocation: str) -> None:
    """Times of which a pool of whole seconds would not hear: the schedule is that of earlier."""
    schedules, jobs = [], [(10, 20, 3, "a"), (40, 40, 12, "b"), (7, 9, 5, "a"), (30, 30, 4, "b")]
    for start in (0, 3 * 10**8):
        workload = coded(*((start + k, *job) for k, job in enumerate(jobs)), processors=16)
        scheduler = hpcgym.Scheduler(backfill=backfill, allocation=allocation)
        speedups = Heatmap(("a", "b"), np.array([[1.0, 0.9], [1.2, 0.7]]))
        result = hpcgym.simulate(workload, scheduler, cluster="4x1x4", speedups=speedups)
        times = result.coschedule
        assert times is not None
        promised = np.where(times.promised_ticks < 0, -1, times.promised_ticks - start * 10**9)
        ticks = (times.start_ticks, times.end_ticks)
        schedules.append([*[(at - start * 10**9).tolist() for at in ticks], promised.tolist()])
    assert schedules[0][0][0] == 0
    assert schedules[0] == schedules[1]


# --- Beside the reference -------------------------------------------------------------------------

WHICH = st.sampled_from(
    ["", "", "quota", "follow", "places", "quota+follow", "quota+places", "follow+places"]
)


def restricted(data: st.DataObject, case: Case, which: str) -> tuple[Case, Workload, Any]:
    """A case with what restricts it; its jobs, and the rules of the scheduler."""
    case = one_that_both_take(case)
    n, processors = len(case.jobs), cluster_of(case).processors
    plain = as_workload([SharedJob(*job) for job in case.jobs], len(case.true.alone), processors)
    jobs = with_queues(plain, data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    most = 0 if case.rules.order in BY_RUNS else 2
    users = data.draw(st.lists(st.integers(0, most), min_size=n, max_size=n))
    jobs = jobs.with_columns(job_number=list(range(1, n + 1)), user_id=users)
    changes: dict[str, Any] = {}
    restricting: dict[str, Any] = {}
    if case.rules.order == "lcfs" and ("follow" in which or "places" in which):
        changes["order"] = "saf"
    jobs = restrict(data, which, jobs, restricting, changes)
    case = replace(case, rules=replace(case.rules, **changes))
    return case, jobs, scheduler_of(case).but(**restricting)


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data(), st.one_of(cases(), cases(), with_files(cases())), WHICH, st.integers(0, 10**6))
def test_pieces_make_the_schedule_of_the_reference(
    data: st.DataObject, case: Case, which: str, seed: int
) -> None:
    case, jobs, scheduler = restricted(data, case, which)
    slow = case.simulate()
    given = {"cluster": cluster_of(case), "speedups": heatmap_of(case)}
    result = same_in_pieces(seed, partial(hpcgym.simulate, jobs, scheduler, **given))
    compare(result, sorted(slow, key=lambda job: (job.submit, job.number)))
    assert result.workload.submit_time.tolist() == sorted(job.submit for job in slow)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([*BY_RUNS]).flatmap(lambda order: cases(order=order)))
def test_runs_count_as_long_as_they_took_beside_others(case: Case) -> None:
    agree(one_that_both_take(case))


# --- Policies that are functions ------------------------------------------------------------------

FUNCTIONS: dict[str, Any] = {
    "least area": lambda view: -view.requested * view.processors,
    "patience": lambda view: (view.wait / view.requested) ** 3 * view.processors,
    "by room": lambda view: view.processors * (1 if 2 * view.free.sum() > view.total[0] else -1),
    "by the number that runs": lambda view: (view.job + 3 * len(view.running_job)) % 7,
}


class ByFunction(SharedSimulation):
    """The reference with an order that is asked for once a pass."""

    function = ""

    def dynamic(self) -> bool:
        return True

    def do_pass(self) -> None:
        cores = self.m.nodes * self.m.sockets * self.m.cores
        free = cores - sum(job.processors for job in self.running)
        self.asked = {}
        for job in self.queue:
            wait = self.now / self.ticks - job.submit
            self.asked[job.number] = {
                "least area": -job.requested * job.processors,
                "patience": (wait / job.requested) ** 3 * job.processors,
                "by room": job.processors * (1 if 2 * free > cores else -1),
                "by the number that runs": (job.number + 3 * len(self.running)) % 7,
            }[self.function]
        super().do_pass()

    def in_order(self) -> list[SharedJob]:
        return sorted(self.queue, key=lambda job: -self.asked[job.number])


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    st.data(),
    st.one_of(cases(order="fcfs"), with_files(cases(order="fcfs"))),
    st.sampled_from(["", "", "quota", "follow", "places", "follow+places"]),
    st.sampled_from(list(FUNCTIONS)),
    st.integers(0, 10**6),
)
def test_a_function_orders_the_queue(
    data: st.DataObject, case: Case, which: str, function: str, seed: int
) -> None:
    if case.rules.backfill_order == "policy":
        case = replace(case, rules=replace(case.rules, backfill_order="sjbf"))
    case, jobs, scheduler = restricted(data, case, which)
    given = [SharedJob(*job) for job in case.jobs]
    slow = ByFunction(
        given, case.machine, case.rules, case.true, case.believed, case.ticks, case.files
    )
    slow.function = function
    expected = slow.run()
    rules = {"policy": FUNCTIONS[function], "backfill_order": scheduler.backfill_order}
    machine = {"cluster": cluster_of(case), "speedups": heatmap_of(case)}
    result = same_in_pieces(seed, partial(hpcgym.simulate, jobs, scheduler.but(**rules), **machine))
    compare(result, sorted(expected, key=lambda job: (job.submit, job.number)))


def test_what_a_function_sees() -> None:
    third = Heatmap(("a", "b"), [[1.0, 3.0], [1.0, 1.0]], alone=[1.0, 1.0])
    views = []

    def seen(view: Any) -> Any:
        views.append(view)
        return -view.submit

    jobs = coded((0, 10, 20, 3, "a"), (0, 10, 10, 4, "b"), (1, 5, 5, 4, "b"), user_id=[1, 2, 3])
    given: dict[str, Any] = {"cluster": "2x1x4", "speedups": third, "policy": seen}
    result = hpcgym.simulate(jobs, "easy-co", **given)
    # the first two share both nodes; the third is asked about when the first ends
    assert result.start.tolist() == [0, 0, pytest.approx(10 / 3)]
    assert [view.time for view in views] == [0, 3_333_333_334 / 10**9]
    first, last = views
    assert first.free.tolist() == [[8]]
    assert first.processors.tolist() == [3, 4]
    assert first.requested.tolist() == first.duration.tolist() == [20, 10]
    assert last.wait.tolist() == [3_333_333_334 / 10**9 - 1]
    assert last.free.tolist() == [[4]]
    assert last.running_job.tolist() == [1]
    assert last.running_start.tolist() == [0]
    assert last.running_end.tolist() == [10]
    assert last.user.tolist() == [3]
