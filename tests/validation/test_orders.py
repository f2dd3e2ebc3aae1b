"""validate_schedule knows who comes first at each pass, and what every order of a queue keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from expression_strategies import at_states, general
from few_jobs import few_jobs
from proofs import moved, violations
from strategies import POLICY, predictions, workloads

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.filterwarnings("ignore:.*fair share")


def refusal(result: Result) -> str:
    """Return in one line what is wrong with a schedule."""
    return "; ".join(violations(result))


#: On four processors job 1 comes alone at 10 s, and fits beside job 0; job 2 comes at 500 s.
ALONE = few_jobs(4, [0, 10, 500], [1000, 100, 100], [1, 1, 1], user_id=[1, 2, 3])


@pytest.mark.parametrize(
    "scheduler",
    [
        *("easy", "fcfs", "saf", "wfp3", "unicef", "aged", "evolved", "conservative"),
        *("easy:backfill=depth:2", "easy:backfill=until-shadow", "wfp3:passes=per-event"),
        *("easy:policy=wait-queued*requested", "easy:policy=fairshare"),
        *("saf:policy_estimate=regression", "easy:backfill=depth:2,policy=fairshare"),
    ],
)
def test_a_job_alone_that_fits_is_not_held_back(scheduler: str) -> None:
    result = hpcgym.simulate(ALONE, scheduler)
    assert result.start.tolist() == [0, 10, 500]
    validate_schedule(result)
    assert "1" in refusal(moved(result, 1, 500))


@pytest.mark.parametrize("cluster", [None, "1x1x4"])
def test_a_job_alone_that_fits_is_not_held_back_by_an_agent(cluster: str | None) -> None:
    """Whatever the order of the queue, and on nodes."""
    result = replace(hpcgym.simulate(ALONE, "easy", cluster=cluster), outside=True)
    wrong = moved(result, 1, 500)
    assert "any order" not in validate_schedule(wrong)  # an agent may have kept it from starting
    ordered = replace(wrong, outside_orders=True)
    text = "at 10 s 3 processors are free and 1 jobs wait, as in no order of the queue"
    assert text in refusal(ordered)
    proved = validate_schedule(replace(result, outside_orders=True))
    assert "any order" in proved
    assert {"order", "backfilled", "backfilling", "reservations"}.isdisjoint(proved)


#: Job 0 has three of four processors up to 100 s, job 1 needs all, and the others one each.
BEHIND = few_jobs(
    *(4, [0, 10, 20, 20, 30, 70], [100, 50, 60, 50, 200, 1], [3, 4, 1, 1, 1, 1]),
    requested=[100, 50, 80, 60, 200, 1],
)


@pytest.mark.parametrize("ordered", [True, False])
def test_what_jobs_behind_a_reservation_may_do(ordered: bool) -> None:
    """In order of submission job 2 has the last processor from 20 to 80 s, then job 5.

    Job 3 could end at 80 s as well, and job 4 would delay job 1.
    """
    result = hpcgym.simulate(BEHIND, "easy", backfill_order="fcfs")
    assert result.start.tolist() == [0, 100, 20, 150, 150, 80]
    if not ordered:
        result = replace(result, outside=True, outside_orders=True)
    validate_schedule(result)
    # job 3 in place of job 2: another order of backfilling
    order = result.start.copy()
    order[[2, 3, 5]] = [150, 20, 70]
    other = replace(result, start=order)
    if ordered:
        assert "job 2 waits at 20 s, although it fits and delays no reservation" in refusal(other)
    else:
        validate_schedule(other)
    # nobody in their place: job 2 would end by 100 s
    idle = moved(moved(result, 2, 150), 5, 70)
    text = "job 2 waits at 20 s" if ordered else "at 20 s 1 processors are free and 3 jobs wait"
    assert text in refusal(idle)
    # job 4 ends at 280 s, and job 1 cannot start before; in some order job 4 is first
    late = replace(result, start=np.array([0, 280, 20, 100, 80, 100]))
    if ordered:
        text = "job 4 starts at 80 s ahead of the queue, and delays the first job that waits"
        assert text in refusal(late)
    else:
        validate_schedule(late)


#: Job 1 waits from 1 s on for job 0, to 100 s. Job 2 asks for 500 s and runs for 50, then job 3 for
#: 480 and 30 s.
PASSING = few_jobs(
    *(5, [0, 1, 2, 40], [100, 10, 50, 30], [3, 5, 1, 1]), requested=[100, 10, 500, 480]
)


@pytest.mark.parametrize("estimate", ["clairvoyant", [100, 10, 50, 30], "typical-ratio"])
def test_jobs_may_delay_the_first_up_to_a_wait(estimate: Any) -> None:
    """EASY, another limit and longer candidates do not make the same schedule."""
    rules = {"relax": 2, "candidate_estimate": estimate}
    jobs = PASSING
    if estimate == "typical-ratio":  # a job has ended that ran for a tenth of what it asked for
        before = few_jobs(5, [0], [50], [1], requested=[500], user_id=[7])
        jobs = PASSING.with_columns(submit_time=PASSING.submit_time + 1000, user_id=[1, 2, 7, 7])
        jobs = hpcgym.Workload.from_columns(
            {
                name: [*getattr(before, name), *getattr(jobs, name)]
                for name in (
                    "submit_time",
                    "run_time",
                    "requested_processors",
                    "requested_time",
                    "user_id",
                )
            },
            processors=5,
        )
    result = hpcgym.simulate(jobs, "easy", **rules)
    first = int(jobs.submit_time[-3])
    assert (result.start[-2], result.start[-3]) == (first + 1, first + 99)
    assert "backfilling" in validate_schedule(result)
    text = f"job {len(jobs) - 2} starts at {first + 1} s ahead of the queue, and delays"
    without = replace(result, candidate_run_time=None)
    assert text in refusal(replace(without, scheduler=hpcgym.Scheduler()))
    assert text in refusal(replace(result, scheduler=result.scheduler.but(relax=1)))
    longer = hpcgym.Scheduler(relax=2, candidate_estimate=[500] * len(jobs))
    assert text in refusal(replace(without, scheduler=longer))
    # up to 52 s, when job 2 ends, job 1 has waited for too long, and job 3 asks for too much
    waits = (
        f"job {len(jobs) - 1} waits at {first + 51} s, although it fits and delays no reservation"
    )
    assert waits in refusal(replace(result, scheduler=result.scheduler.but(relax=60)))


@settings(max_examples=100)
@given(
    workloads(),
    st.one_of(POLICY, st.just("aged")),
    st.sampled_from(["fcfs", "sjbf", "spf"]),
    st.sampled_from([1, 20, 300, 10**6]),
    st.sampled_from(["clairvoyant", "typical-ratio", "ave2"]),
)
def test_relaxed_schedules_are_proved(
    log: Workload, policy: Any, backfill_order: str, limit: int, estimate: str
) -> None:
    rules = {"relax": limit, "candidate_estimate": estimate, "backfill_order": backfill_order}
    scheduler = hpcgym.Scheduler(policy="fcfs" if policy == "aged" else policy, **rules)
    assert "backfilling" in validate_schedule(hpcgym.simulate(log, scheduler))


def test_jobs_that_end_at_the_shadow_time_are_in_the_way_under_until_shadow() -> None:
    """Job 2 would end at 100 s, when job 1 is to start."""
    jobs = few_jobs(4, [0, 0, 0], [100, 50, 100], [3, 4, 1])
    for backfill, start in (("easy", 0), ("until-shadow", 150)):
        result = hpcgym.simulate(jobs, "easy", backfill=backfill)
        assert result.start.tolist() == [0, 100, start]
        other = moved(result, 2, 150 - start)
        for order in ({}, {"outside": True, "outside_orders": True}):
            validate_schedule(replace(result, **order))
            if backfill == "easy" or not order:
                assert violations(replace(other, **order))


def test_weights_of_waiting_and_areas_order_the_queue() -> None:
    """Job 1 has the greater area, and has waited longer: it comes first all the while."""
    jobs = few_jobs(1, [0, 1, 10], [20, 12, 5], [1, 1, 1])
    result = hpcgym.simulate(jobs, "fcfs", policy=(0, 0, 1, 0, 0, -1))
    assert result.start.tolist() == [0, 20, 32]
    assert "order" in validate_schedule(result)
    swapped = replace(result, start=np.array([0, 25, 20]))
    assert "job 2 starts ahead of the queue but is not marked" in refusal(swapped)


ORDERS = st.one_of(POLICY, general(), at_states())


@st.composite
def told_cases(draw: st.DrawFn) -> tuple[Workload, dict[str, Any]]:
    """A workload, and rules of which each start follows."""
    jobs = draw(workloads(14))
    estimate = draw(st.sampled_from(["requested", "clairvoyant", "ave2", "given"]))
    return jobs, {
        "policy": draw(ORDERS),
        "backfill": draw(st.sampled_from(["none", "easy", "easy", "until-shadow"])),
        "backfill_order": draw(st.one_of(st.sampled_from(["fcfs", "sjbf"]), ORDERS)),
        "estimate": draw(predictions(jobs)) if estimate == "given" else estimate,
        "correction": draw(st.sampled_from(["requested", "incremental", "recursive-doubling"])),
        "threshold": draw(st.sampled_from([None, None, 5, 100])),
        "policy_estimate": draw(st.sampled_from(["requested", "clairvoyant", "typical-ratio"])),
    }


@settings(max_examples=100)
@given(told_cases())
def test_each_start_follows_where_the_order_is_told(case: tuple[Workload, dict[str, Any]]) -> None:
    """No job can start at another event, all others as they do.

    But users whose jobs began and ended together may have two typical ratios.
    """
    jobs, words = case
    try:
        result = hpcgym.simulate(jobs, **words)
    except HpcgymError:  # an expression that orders nothing
        return
    proved = validate_schedule(result)
    assert {"order", "backfilled"} <= {*proved}
    assert ("backfilling" in proved) == (words["backfill"] != "none")
    if words["policy_estimate"] == "typical-ratio":
        return
    for job, start in enumerate(result.start.tolist()):
        events = {*jobs.submit_time.tolist(), *np.delete(result.end, job).tolist()}
        for other in events - {start}:
            if other >= jobs.submit_time[job]:
                assert violations(moved(result, job, other))


@pytest.mark.parametrize(
    "policy",
    [
        "min(1000, log(1000 - requested))",
        "max(wait, log(1000 - requested))",
        "max(processors, sqrt(wait - 500))",
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_no_number_orders_as_it_does_in_the_engine(policy: str, seed: int) -> None:
    jobs = hpcgym.load_workload(f"lublin:jobs=300,processors=64,seed={seed},load=1")
    assert "order" in validate_schedule(hpcgym.simulate(jobs, policy=policy))


def of_users(n: int) -> Workload:
    """A crowd of jobs of six users, each of whom requests other multiples of the run times."""
    jobs = hpcgym.load_workload(f"lublin:jobs={n},processors=32,seed=1,load=1")
    rng = np.random.default_rng(0)
    user = rng.integers(0, 6, n)
    factor = (1 + user) * rng.choice([1, 2, 5], n)
    return jobs.with_columns(user_id=user, requested_time=jobs.run_time * factor)


@pytest.mark.parametrize("scheduler", ["aged", "evolved", "saf-typical"])
def test_orders_by_typical_ratios_are_worked_out_again(scheduler: str) -> None:
    """Each job of a crowd that is moved to the next event is found."""
    jobs = of_users(300)
    result = hpcgym.simulate(jobs, scheduler)
    assert {"order", "backfilled", "backfilling"} <= {*validate_schedule(result)}
    events = np.unique(np.concatenate((jobs.submit_time, result.end)))
    for job in range(0, 300, 10):
        later = int(events[np.searchsorted(events, result.start[job]) + 1])
        assert violations(moved(result, job, later))


@pytest.mark.parametrize(
    ("name", "proves"),
    [
        *(("QueueOrdering-v2", True), ("JobSelection-v2", True), ("MixedPolicy-v2", True)),
        *(("Backfill-v2", False), ("Inspector-v2", False)),
    ],
)
def test_agents_that_order_the_queue_keep_no_job_back(name: str, proves: bool) -> None:
    jobs = "lublin:jobs=100,processors=32,seed=0,load=1"
    env = gymnasium.make(f"hpcgym/{name}", workload=jobs, jobs=40, start="empty", arrivals="stop")
    env.reset(seed=0)
    env.action_space.seed(0)
    rng, over = np.random.default_rng(0), False
    while not over:
        masks = getattr(env.unwrapped, "action_masks", lambda: np.zeros(0))()
        allowed = np.flatnonzero(masks)
        action = rng.choice(allowed) if allowed.size else env.action_space.sample()
        _, _, ended, cut, _ = env.step(action)
        over = ended or cut
    result = env.unwrapped.result()
    assert (result.outside, result.outside_orders) == (True, proves)
    if name != "Inspector-v2":
        assert ("any order" in validate_schedule(result)) == proves


def test_ratios_that_were_learned_before_are_not_worked_out_again() -> None:
    jobs = of_users(1000)
    early, late = jobs.take(slice(0, 500)), jobs.take(slice(500, 1000))
    learned = hpcgym.simulate(early, "saf-typical").learned
    result = hpcgym.simulate(late, "saf-typical", learned=learned)
    alone = hpcgym.simulate(late, "saf-typical")
    assert (result.start != alone.start).any()
    assert "order" not in validate_schedule(result)
    assert "order" in validate_schedule(alone)


def test_the_first_job_does_not_fit_before_others_overtake_it() -> None:
    """Job 0 ends at 10 s; job 1, of the larger area, comes first, and not job 2, which is short."""
    jobs = few_jobs(4, [0, 1, 1], [10, 100, 3], [4, 4, 4])
    result = hpcgym.simulate(jobs, "laf")
    assert result.start.tolist() == [0, 10, 110]
    marks = np.array([False, False, True])
    wrong = replace(result, start=np.array([0, 13, 10]), backfilled=marks)
    text = "at 10 s 4 processors are free and job 1, first in the queue, would fit"
    assert text in refusal(wrong)
