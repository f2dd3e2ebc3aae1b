"""Quotas of submitted jobs: as in the slow simulators; by hand; what is refused, and proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from restrictions import bounds, with_numbers
from strategies import cases

import hpcgym
from hpcgym.errors import HpcgymError, HpcgymWarning
from hpcgym.explanation import waits
from hpcgym.explore.live import Session
from hpcgym.validation.restrictions import check_submitted
from hpcgym.workload.model import Workload

QUEUES = st.lists(st.integers(1, 2), min_size=1, max_size=5)


def test_by_hand_in_an_extract() -> None:
    """At 5 s jobs 1 and 2 run and job 3 waits; so jobs 4 and 5 come when these have ended."""
    log = five(submit_time=[0, 0, 1, 6, 7], wait_time=[0, 0, 9, 0, 0], user_id=[1] * 5)
    part = log.extract(5)
    result = hpcgym.simulate(part, quota="user:submitted=2", processors=2)
    assert result.workload.submit_time.tolist() == [0, 0, 1, 20, 20]
    assert result.start.tolist() == [0, 0, 10, 20, 20]
    hpcgym.validate_schedule(result)
    early = replace(result, workload=result.workload.with_columns(submit_time=[0, 0, 1, 19, 20]))
    with pytest.raises(HpcgymError, match=r"at 19 s 3 jobs run or wait"):
        hpcgym.validate_schedule(early)


def five(**columns: list[int]) -> Workload:
    """Return five jobs, of three users in two queues, on a machine with room for all of them."""
    given = {
        "job_number": [1, 2, 3, 4, 5],
        "submit_time": [0, 0, 1, 2, 3],
        "run_time": [10, 20, 10, 5, 5],
        "requested_time": [20] * 5,
        "requested_processors": [1] * 5,
        "user_id": [1, 2, 1, 1, 3],
        "queue": [1, 2, 2, 1, 2],
    }
    return Workload.from_columns({**given, **columns}, processors=8)


BY_HAND = [
    ("user:submitted=9", [0, 0, 1, 2, 3]),
    ("all:submitted=4", [0, 0, 1, 2, 7]),  # job 4 ends then
    # jobs 1 and 3 to 4, one after the other
    ("user:submitted=1", [0, 0, 10, 20, 3]),
    ("queue=2:submitted=1", [0, 0, 20, 2, 30]),
    # at 10 s job 3 is kept out by queue 2, and job 4, which is due later, goes past it; at 20 s
    # both job 3 and job 5 would be the one of queue 2
    ("user:submitted=1; queue:submitted=1", [0, 0, 20, 10, 30]),
]


@pytest.mark.parametrize(("quota", "submits"), BY_HAND)
@pytest.mark.parametrize("backfill", ["none", "easy", "depth:2", "slurm"])
def test_by_hand(quota: str, submits: list[int], backfill: str) -> None:
    """Who is submitted starts at once."""
    jobs = five()
    result = hpcgym.simulate(jobs, quota=quota, backfill=backfill)
    found = dict(zip(result.workload.job_number.tolist(), result.start.tolist(), strict=True))
    assert [found[number] for number in range(1, 6)] == submits
    assert result.wait.tolist() == [0] * 5
    assert result.given is jobs
    assert "submitted" in hpcgym.validate_schedule(result)


def test_who_waits_in_the_queue_counts() -> None:
    """By hand: one processor, and two of its user's jobs run or wait at any time."""
    jobs = five(user_id=[1] * 5, run_time=[10] * 5)
    result = hpcgym.simulate(jobs, processors=1, quota="user:submitted=2")
    assert result.workload.submit_time.tolist() == [0, 0, 10, 20, 30]
    assert result.start.tolist() == [0, 10, 20, 30, 40]
    assert result.wait.tolist() == [0, 10, 10, 10, 10]
    both = hpcgym.simulate(jobs, quota="user:submitted=3+jobs=1")  # on eight processors
    assert both.workload.submit_time.tolist() == [0, 0, 1, 10, 20]
    assert both.start.tolist() == [0, 10, 20, 30, 40]
    hpcgym.validate_schedule(both)


def test_who_was_outside_stands_behind_those_submitted_meanwhile() -> None:
    """By hand: job 2 is due first, and comes when job 1 ends; job 5 came at 3 s."""
    jobs = five(user_id=[1, 1, 2, 3, 4])
    result = hpcgym.simulate(jobs, processors=1, quota="user:submitted=1")
    assert result.workload.job_number.tolist() == [1, 3, 4, 5, 2]
    assert result.workload.submit_time.tolist() == [0, 1, 2, 3, 10]
    assert result.start.tolist() == [0, 10, 20, 25, 30]
    hpcgym.validate_schedule(result)


def test_who_was_outside_comes_before_those_that_are_due_in_that_second() -> None:
    """By hand: job 2 follows job 1, and is due as that ends; job 3 has waited outside since 5 s."""
    jobs = few_jobs(
        1,
        [0, 0, 5],
        [10, 10, 10],
        [1] * 3,
        [10] * 3,
        job_number=[1, 2, 3],
        user_id=[1, 2, 1],
        preceding_job=[-1, 1, -1],
    )
    result = hpcgym.simulate(jobs, quota="user:submitted=1", dependencies="after")
    assert result.workload.submit_time.tolist() == [0, 10, 10]
    assert result.workload.job_number.tolist() == [1, 2, 3]
    assert result.start.tolist() == [0, 20, 10]
    hpcgym.validate_schedule(result)


def test_a_log_of_which_most_waits_outside() -> None:
    """Jobs of one user come one after the other, whatever the machine."""
    jobs = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=3")
    jobs = jobs.with_columns(user_id=[1] * 300, submit_time=[0] * 300)
    result = hpcgym.simulate(jobs, quota="user:submitted=1")
    assert result.start.tolist() == [0, *result.end[:-1].tolist()]
    assert result.workload.job_number.tolist() == jobs.job_number.tolist()
    hpcgym.validate_schedule(result)


@given(st.data(), cases(), QUEUES, st.integers(-3, 3).filter(bool))
@pytest.mark.filterwarnings("ignore:.*no job falls under these quotas")
def test_the_proof_finds_any_job_that_comes_at_another_time(
    data: st.DataObject, case: tuple[Workload, Any], queues: list[int], by: int
) -> None:
    workload = with_numbers(case[0], queues)
    text, _, _ = data.draw(bounds(workload))
    result = hpcgym.simulate(workload, quota=text)
    assert check_submitted(result) == []
    job = data.draw(st.integers(0, len(workload) - 1))
    submit = result.workload.submit_time.copy()
    submit[job] += by
    moved = {**result.workload.columns, "submit_time": submit}
    wrong = replace(result, workload=replace(result.workload, columns=moved))
    text = f"job {job} is submitted at {submit[job]} s, and should be at {submit[job] - by} s"
    assert any(text in one for one in check_submitted(wrong))


def test_the_proof_counts_by_itself() -> None:
    result = hpcgym.simulate(five(), quota="user:submitted=2")
    wrong = replace(result, scheduler=result.scheduler.but(quota="user:submitted=1"))
    with pytest.raises(HpcgymError) as error:
        hpcgym.validate_schedule(wrong)
    assert "quota user:submitted=1: at 1 s 2 jobs run or wait" in str(error.value)
    assert "job 2 is submitted at 1 s, and should be at 10 s" in str(error.value)
    unknown = replace(wrong, given=None)  # then it is not known when jobs are due
    with pytest.raises(HpcgymError, match=r"schedule: quota user:submitted=1: at 1 s 2 jobs run"):
        hpcgym.validate_schedule(unknown)
    late = replace(result, scheduler=result.scheduler.but(quota="user:submitted=3"))
    with pytest.raises(HpcgymError, match=r"job 4 is submitted at 10 s, and should be at 2 s"):
        hpcgym.validate_schedule(late)


def test_numbers_that_stand_twice_prove_less() -> None:
    jobs = five(job_number=[1, 1, 3, 4, 4])
    hpcgym.validate_schedule(hpcgym.simulate(jobs, quota="user:submitted=1"))


@pytest.mark.parametrize("order", ["lcfs", "f3", "submit + area"])
def test_orders_by_submission_are_refused(order: str) -> None:
    told = (
        r"looks at when the log says that jobs are submitted, and quota='all:submitted=3' changes"
    )
    with pytest.raises(HpcgymError, match=told):
        hpcgym.simulate(five(), quota="all:submitted=3", policy=order)


def test_what_is_not_told_of_such_a_schedule() -> None:
    result = hpcgym.simulate(five(), quota="user:submitted=1")
    with pytest.raises(HpcgymError, match="a simulation with quotas of submitted jobs cannot be"):
        hpcgym.continued(result, 5)
    with pytest.raises(HpcgymError, match="why all jobs waited cannot be worked out "):
        waits(result)
    told = hpcgym.explain(result, 3)
    assert told.passes.empty
    assert told.sentences[1].endswith("it was submitted 9 s later than in the log.")
    assert "submitted" not in str(hpcgym.explain(result, 5))
    with pytest.raises(HpcgymError, match="cannot be explored live, since quotas say when jobs"):
        Session({"one": result}, [])


def test_limits_of_qos(tmp_path: Path) -> None:
    file = tmp_path / "qos.txt"
    file.write_text(
        "Name|Priority|MaxJobsPU|GrpJobs|GrpSubmit|MaxSubmitPU\n"
        "day|10|||2|\nnight|10|1||0|2\nnormal|0||||0\n"
    )
    told = "not followed by quotas: night: GrpSubmit=0, normal: MaxSubmitPU=0$"
    with pytest.warns(HpcgymWarning, match=told):
        scheduler = hpcgym.Scheduler(quota=str(file))
    assert (
        scheduler.describe()["quota"]
        == "queue=day:submitted=2; queue=night/user:jobs=1+submitted=2"
    )
    assert hpcgym.Scheduler(quota=scheduler.quota) == scheduler
    jobs = five(user_id=[1] * 5, queue=[1, 1, 1, 2, 2])
    jobs = replace(jobs, header={"Queue": ["1 day", "2 night"]})
    result = hpcgym.simulate(jobs, scheduler)
    assert result.workload.job_number.tolist() == [1, 2, 4, 5, 3]
    assert result.workload.submit_time.tolist() == [0, 0, 2, 3, 10]
    assert result.start.tolist() == [0, 0, 2, 7, 10]
    hpcgym.validate_schedule(result)
