"""Jobs that follow others: as in the slow simulators; by hand; what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import cases
from submission_strategies import chains

import hpcgym
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.explanation import waits
from hpcgym.schedule.provenance import provenance_of
from hpcgym.validation.restrictions import check_dependencies
from hpcgym.workload.fingerprint import given_digest, workload_digest
from hpcgym.workload.model import Workload, pairs_of


def three(**columns: list[int]) -> Workload:
    """Return three jobs of 10 s on 2 of 4 processors, each of which follows the one before it."""
    given = {
        "job_number": [5, 7, 9],
        "submit_time": [0, 1, 40],
        "run_time": [10] * 3,
        "requested_time": [20] * 3,
        "requested_processors": [2] * 3,
        "preceding_job": [-1, 5, 7],
        "think_time": [-1, 3, -1],
    }
    return Workload.from_columns({**given, **columns}, processors=4)


@pytest.mark.parametrize(
    ("dependencies", "submits", "columns"),
    [
        ("none", [0, 1, 40], {}),
        ("after", [0, 13, 40], {}),
        ("closed-loop", [0, 13, 23], {}),
        # in the log job 7 ended at 1 s + 15 s + 10 s, 14 s before job 9 was submitted
        ("closed-loop", [0, 13, 37], {"wait_time": [0, 15, 0]}),
        ("after", [0, 13, 40], {"wait_time": [0, 15, 0]}),
        ("after", [0, 13, 90], {"think_time": [-1, 3, 67]}),
    ],
)
@pytest.mark.parametrize("backfill", ["none", "easy", "depth:2"])
def test_by_hand(
    dependencies: str, submits: list[int], columns: dict[str, Any], backfill: str
) -> None:
    jobs = three(**columns)
    result = hpcgym.simulate(jobs, dependencies=dependencies, backfill=backfill)
    assert result.workload.submit_time.tolist() == submits
    assert result.start.tolist() == submits  # there is always room
    assert result.wait.tolist() == [0, 0, 0]
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize(
    ("think", "dependencies", "submits"),
    [
        (-1, "after", [0, 1, 20]),  # job 7 ends last, as each needs the whole machine
        (4, "after", [0, 1, 24]),
        (4, "closed-loop", [0, 1, 24]),
        (-1, "closed-loop", [0, 1, 39]),  # in the log job 7 ended at 21 s, 19 s before
        (30, "after", [0, 1, 50]),
    ],
)
def test_several_others(think: int, dependencies: str, submits: list[int]) -> None:
    """By hand: job 9 follows 5 and 7, and 7 waits for the processors of 5 until 10 s."""
    submit = 15 if dependencies == "after" else 40
    jobs = three(
        submit_time=[0, 1, submit],
        requested_processors=[4, 4, 4],
        wait_time=[0, 10, 0],
        preceding_job=[-1, -1, 5],
        think_time=[-1, -1, think],
    )
    jobs = replace(jobs, more_preceding=pairs_of([[9, 7], [9, 99], [8, 5]], ""))
    with pytest.warns(WorkloadWarning, match="1 job follows jobs that are not there"):
        result = hpcgym.simulate(jobs, dependencies=dependencies)
    assert result.workload.submit_time.tolist() == submits
    assert result.start.tolist() == [0, 10, submits[2]]
    hpcgym.validate_schedule(result)
    due = 20 + max(think, 0)
    wrong = replace(result, workload=result.workload.with_columns(submit_time=[0, 1, due - 1]))
    with pytest.raises(HpcgymError, match=rf"job 2 is submitted at {due - 1} s, and may not"):
        hpcgym.validate_schedule(wrong)


def test_one_who_comes_late_stands_behind_and_waits_from_then_on() -> None:
    """By hand: job 7, first in the log of those that wait, comes third."""
    jobs = three(submit_time=[0, 1, 2], requested_processors=[4] * 3, preceding_job=[-1, 5, -1])
    result = hpcgym.simulate(jobs, dependencies="after")
    assert result.workload.job_number.tolist() == [5, 9, 7]
    assert result.start.tolist() == [0, 10, 20]
    assert result.wait.tolist() == [0, 8, 7]
    last = hpcgym.simulate(jobs, dependencies="after", policy="20 * wait - requested")
    assert last.start.tolist() == [0, 10, 20]


def test_faster_jobs_bring_later_ones_forward_in_closed_loop_alone() -> None:
    """A second machine in place of one: chains take less time, if users do not keep to the log."""
    n = 60
    jobs = few_jobs(
        6,
        [100 * row for row in range(n)],
        [90] * n,
        [3] * n,
        job_number=list(range(1, n + 1)),
        preceding_job=[row - 2 if row > 2 else -1 for row in range(1, n + 1)],
        think_time=[5] * n,
    )
    spans = {
        (dependencies, size): hpcgym.simulate(
            jobs, dependencies=dependencies, processors=size
        ).metrics["makespan_s"]
        for dependencies in ("none", "after", "closed-loop")
        for size in (3, 6)
    }
    assert spans["none", 6] == spans["after", 6] == 5990
    assert spans["closed-loop", 6] == 100 + 30 * 95 - 5
    assert 60 * 90 <= spans["closed-loop", 3] <= 60 * 90 + 2 * 5  # both chains think twice at most


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"preceding_job": [7, 5, -1]},
            "job 5 follows a job that follows itself, and would never come: job 5, which"
            " follows job 7, which follows job 5",
        ),
        ({"preceding_job": [-1, -1, 9]}, "follows a job that follows itself, and would never come"),
        ({"think_time": [2**53] * 3}, "think times are 1.8e+16 s together, over 2^53 s"),
    ],
)
def test_jobs_that_would_never_come(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        hpcgym.simulate(three(**columns), dependencies="after")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_jobs_that_follow_each_other_by_another_than_the_first() -> None:
    jobs = replace(three(preceding_job=[-1, 5, 5]), more_preceding=pairs_of([[7, 9], [9, 7]], ""))
    with pytest.raises(WorkloadError, match=r"job 7, which follows job 9, which follows job 7$"):
        hpcgym.simulate(jobs, dependencies="after")


def test_cancelled_jobs_have_no_followers() -> None:
    with pytest.raises(HpcgymError, match="follow jobs that are cancelled; take requeue or susp"):
        hpcgym.simulate(three(), dependencies="after", preemption="queue:2>1,cancel")


@pytest.mark.parametrize("rule", ["policy", "backfill_order"])
@pytest.mark.parametrize("order", ["lcfs", "f3", "0 - wait", "submit + area", (0, 0, -1, 0, 0, 0)])
def test_orders_by_submission_are_refused(rule: str, order: Any) -> None:
    with pytest.raises(HpcgymError, match=f"^{rule}=.* looks at when the log says that jobs are"):
        hpcgym.simulate(three(), dependencies="after", **{rule: order})


def test_what_is_not_there_is_said() -> None:
    with pytest.warns(WorkloadWarning, match="1 job follows jobs that are not there"):
        hpcgym.simulate(three(preceding_job=[-1, 5, 77]), dependencies="after")
    with pytest.warns(WorkloadWarning, match="no job follows another: the log has no preceding"):
        hpcgym.simulate(three(preceding_job=[-1] * 3), dependencies="after")


def test_a_think_time_below_what_marks_the_unknown_is_said() -> None:
    jobs = three(think_time=[-7, -7, -1])  # the first follows none
    with pytest.warns(WorkloadWarning, match="1 job has a think time below -1: it is taken for"):
        hpcgym.simulate(jobs, dependencies="after")


def test_where_a_schedule_is_from_tells_whom_jobs_follow() -> None:
    """The two schedules are the same, as job 9 comes when the log says; the given jobs are not."""
    digests = []
    for preceding in ([-1, 5, 7], [-1, 5, 5]):
        jobs = three(preceding_job=preceding)
        result = hpcgym.simulate(jobs, dependencies="after")
        assert result.given is jobs
        (schedule,) = provenance_of({"one": result})["schedules"]
        assert schedule["workload"] == workload_digest(result.workload)
        assert schedule["given"] == given_digest(jobs)
        digests.append((schedule["sha256"], schedule["workload"], schedule["given"]))
    assert digests[0][:2] == digests[1][:2]
    assert digests[0][2] != digests[1][2]
    more = replace(jobs, more_preceding=pairs_of([[9, 7]], ""))
    given = {given_digest(one) for one in (jobs, more, more.with_columns(wait_time=[1, 2, 3]))}
    assert len(given) == 3
    plain = hpcgym.simulate(jobs)
    assert plain.given is None
    assert "given" not in provenance_of({"one": plain})["schedules"][0]


def test_the_proof_looks_by_itself() -> None:
    result = hpcgym.simulate(three(), "easy")
    after = replace(result, scheduler=replace(result.scheduler, dependencies="after"))
    with pytest.raises(HpcgymError, match="job 1 is submitted at 1 s, and may not be before 13 s"):
        hpcgym.validate_schedule(after)
    result = hpcgym.simulate(three(think_time=[-1, 3, 4]), dependencies="after")
    closed = replace(result, scheduler=replace(result.scheduler, dependencies="closed-loop"))
    with pytest.raises(HpcgymError, match="job 2 is submitted at 40 s, and should be at 27 s"):
        hpcgym.validate_schedule(closed)


@given(st.data(), cases(), st.integers(-3, 3).filter(bool), st.booleans())
@pytest.mark.filterwarnings("ignore:.*no job follows another")
def test_the_proof_finds_any_job_that_comes_at_another_time(
    data: st.DataObject, case: tuple[Workload, Any], by: int, known: bool
) -> None:
    workload, dependencies, follows = data.draw(chains(case[0]))
    result = hpcgym.simulate(workload, "easy", dependencies=dependencies)
    if not known:  # then those that follow none, or come late with "after", prove nothing
        result = replace(result, given=None)
    assert check_dependencies(result) == []
    job = data.draw(st.integers(0, len(workload) - 1))
    submit = result.workload.submit_time.copy()
    submit[job] += by
    moved = {**result.workload.columns, "submit_time": submit}
    found = check_dependencies(replace(result, workload=replace(result.workload, columns=moved)))
    if known:
        assert len(found) == 1
        assert f"job {job} is submitted at {submit[job]} s" in found[0]
    elif by < 0 and dependencies == "closed-loop":
        row = int(result.workload.job_number[job]) - 1
        think = follows[row][1] if row in follows else 0
        # think times that the log does not tell prove only that no job comes before others end
        told = workload.think_time[row] >= 0 or think + by < 0
        assert bool(found) == (row in follows and told)


def test_the_schedule_is_a_log_of_its_own() -> None:
    result = hpcgym.simulate(three(), dependencies="closed-loop")
    again = hpcgym.simulate(result.as_workload(), "easy")
    assert again.start.tolist() == result.start.tolist()
    with pytest.raises(HpcgymError, match="a simulation with jobs that follow others cannot be"):
        hpcgym.continued(result, 5)
    with pytest.raises(HpcgymError, match="why all jobs waited cannot be worked out "):
        waits(result)
    assert hpcgym.explain(result, 9).passes.empty  # that tells less: passes are not made again


def test_a_number_that_stands_twice_proves_less() -> None:
    """A requeued job has a row for each run; the engine follows the last, a result does not say."""
    twice = three(job_number=[5, 5, 9], preceding_job=[-1, -1, 5], think_time=[-1, -1, 4])
    for dependencies in ("after", "closed-loop"):
        hpcgym.validate_schedule(hpcgym.simulate(twice, dependencies=dependencies))
