"""What restricts who may start when, where jobs share nodes: by hand, and beside the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from pieces import same_in_pieces
from quota_strategies import quotas, with_queues
from restrictions import DRAWN
from shared_strategies import Case, cases, with_files
from submission_strategies import chains
from test_against_slow_simulator import (
    as_workload,
    cluster_of,
    compare,
    heatmap_of,
    one_that_both_take,
    scheduler_of,
)

import hpcgym
from hpcgym.reference.shared import Job, SharedSimulation
from hpcgym.speedups import Heatmap
from hpcgym.workload import Workload
from hpcgym.workload.codes import with_codes

pytestmark = DRAWN
TWO = Heatmap(("a", "b"), [[1.0, 1.25], [0.8, 1.0]], alone=[1.0, 1.0])


def workload(*jobs: tuple[int, int, int, int, str], **columns: list[int]) -> Workload:
    """Jobs (submit, run, requested, processors, code)."""
    names = ("submit_time", "run_time", "requested_time", "requested_processors")
    given = {name: [job[k] for job in jobs] for k, name in enumerate(names)}
    found = with_codes(Workload.from_columns(given, processors=8), [job[4] for job in jobs])
    return found.with_columns(job_number=list(range(1, len(jobs) + 1)), **columns)


def simulate(jobs: Workload, scheduler: str = "easy-co", **rules: Any) -> hpcgym.Result:
    arguments = {"cluster": "2x1x4", "speedups": TWO, **rules}
    result = hpcgym.simulate(jobs, scheduler, **arguments)
    hpcgym.validate_schedule(result)
    return result


# --- By hand --------------------------------------------------------------------------------------


def test_who_would_exceed_a_quota_is_passed_over() -> None:
    # one job of each user: the second of user 1 waits, though half of the nodes is free, and the
    # job of user 2 starts beside the first. a runs at 1.25 beside b, and ends at 80
    jobs = [(0, 100, 100, 4, "a"), (0, 10, 10, 4, "a"), (0, 100, 100, 4, "b")]
    result = simulate(workload(*jobs, user_id=[1, 1, 2]), quota="user:jobs=1")
    assert result.start.tolist() == [0, 80, 0]
    assert result.end[0] == 80
    assert result.backfilled.tolist() == [False, False, False]
    assert simulate(workload(*jobs, user_id=[1, 2, 3]), quota="user:jobs=1").start[1] == 0


def test_a_job_that_follows_comes_at_a_whole_second() -> None:
    # the first runs at 3, and has done 10 s of work after 3 and a third: who follows comes at 4
    third = Heatmap(("a", "b"), [[1.0, 3.0], [1.0, 1.0]], alone=[1.0, 1.0])
    jobs = [(0, 10, 10, 4, "a"), (0, 10, 10, 4, "b"), (0, 5, 5, 4, "b")]
    chain = workload(*jobs, preceding_job=[-1, -1, 1], think_time=[-1, -1, 0])
    result = simulate(chain, speedups=third, dependencies="after")
    assert result.workload.job_number.tolist() == [1, 2, 3]
    assert result.workload.submit_time.tolist() == [0, 0, 4]
    assert result.start.tolist() == [0, 0, 4]
    assert result.given is chain
    later = chain.with_columns(think_time=[-1, -1, 7])
    assert simulate(later, speedups=third, dependencies="after").start.tolist() == [0, 0, 11]


def test_who_waits_outside_comes_at_a_whole_second() -> None:
    third = Heatmap(("a", "b"), [[1.0, 3.0], [1.0, 1.0]], alone=[1.0, 1.0])
    jobs = [(0, 10, 10, 4, "a"), (0, 10, 10, 4, "b"), (0, 5, 5, 4, "b"), (3, 5, 5, 8, "b")]
    result = simulate(
        workload(*jobs, user_id=[1, 2, 1, 1]), speedups=third, quota="user:submitted=1"
    )
    # the third waits for the first; the last for the third, which ends at 9
    assert result.workload.submit_time.tolist() == [0, 0, 4, 9]
    assert result.start.tolist() == [0, 0, 4, 10]


# --- Beside the reference -------------------------------------------------------------------------

WHICH = st.sampled_from(
    ["", "", "quota", "follow", "places", "quota+follow", "quota+places", "follow+places"]
)


def restricted(data: st.DataObject, case: Case, which: str) -> tuple[Case, Workload, Any]:
    """A case with what restricts it; its jobs, and the rules of the scheduler."""
    case = one_that_both_take(case)
    n, processors = len(case.jobs), cluster_of(case).processors
    plain = as_workload([Job(*job) for job in case.jobs], len(case.true.alone), processors)
    jobs = with_queues(plain, data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    users = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    jobs = jobs.with_columns(job_number=list(range(1, n + 1)), user_id=users)
    changes: dict[str, Any] = {}
    told: dict[str, Any] = {}
    if case.rules.order == "lcfs" and ("follow" in which or "places" in which):
        changes["order"] = "saf"
    texts = []
    if "quota" in which:
        text, changes["quotas"] = data.draw(quotas(jobs))
        texts.append(text)
    if "places" in which:
        each = data.draw(st.sampled_from(["all", "user", "queue"]))
        most = data.draw(st.sampled_from([1, 1, 2, 3]))
        keys = {"all": [0] * n, "user": users, "queue": jobs.queue.tolist()}[each]
        changes["places"] = [(keys, most)]
        texts.append(f"{each}:submitted={most}")
    if texts:
        told["quota"] = "; ".join(texts)
    if "follow" in which:
        jobs, told["dependencies"], changes["follows"] = data.draw(chains(jobs))
    case = replace(case, rules=replace(case.rules, **changes))
    return case, jobs, scheduler_of(case).but(**told)


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

    def in_order(self) -> list[Job]:
        return sorted(self.queue, key=lambda job: (-self.asked[job.number], job.number))


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
    given = [Job(*job) for job in case.jobs]
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

    jobs = workload((0, 10, 20, 3, "a"), (0, 10, 10, 4, "b"), (1, 5, 5, 4, "b"), user_id=[1, 2, 3])
    result = simulate(jobs, speedups=third, policy=seen)
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
