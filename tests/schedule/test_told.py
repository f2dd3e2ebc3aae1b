"""What results tell of jobs that were stopped, or submitted later than the log says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from few_jobs import chain, five
from mistakes import mistakes_of
from preemption_strategies import urgent

import hpcgym
from hpcgym.explanation import waits
from hpcgym.explore.live import Session
from hpcgym.schedule.provenance import provenance_of
from hpcgym.workload.fingerprint import given_digest, workload_digest
from hpcgym.workload.model import Workload, pairs_of


def test_tables_and_metrics_of_stopped_jobs() -> None:
    """Job 3 stops jobs 1 and 2: see ``test_preemption_by_hand.py``."""
    again, cancelled, paused = (
        hpcgym.simulate(urgent(job_number=[1, 2, 3, 4]), preemption=f"queue:2>1,{mode}")
        for mode in ("requeue", "cancel", "suspend")
    )
    assert again.jobs["restarts"].tolist() == [0, 1, 1, 0]
    assert "cancelled" not in again.jobs
    assert (again.metrics["lost_runs"], again.metrics["lost_core_seconds"]) == (2, 5)
    used = (10 + 4 + 1 + 15 + 20 + 10) / (4 * 17)
    assert again.metrics["utilization"] == pytest.approx(used)
    assert "cancelled_jobs" not in again.metrics
    assert cancelled.jobs["cancelled"].tolist() == [False, True, True, False]
    names = ("cancelled_jobs", "lost_runs", "lost_core_seconds")
    assert [cancelled.metrics[name] for name in names] == [2, 0, 5]
    assert paused.jobs["suspended"].tolist() == [0, 5, 5, 0]
    assert "restarts" not in paused.jobs
    assert "lost_runs" not in paused.metrics
    assert (paused.metrics["suspensions"], paused.metrics["mean_suspended_s"]) == (2, 2.5)
    assert paused.metrics["utilization"] == pytest.approx((10 + 20 + 10 + 15) / (4 * 16))
    assert paused.metrics["mean_queue_length"] == pytest.approx(10 / 16)
    told_of_it = hpcgym.explain(paused, 2)
    assert "Of that it was suspended for 5 s, after its first start." in told_of_it.sentences
    assert [stop["jobs"] for stop in told_of_it.to_dict()["stops"]] == [[4]]


def test_a_schedule_with_suspended_jobs_as_a_log(tmp_path: Path) -> None:
    """Its waits have the time in it, so that jobs end when they did, and the header says so."""
    result = hpcgym.simulate(urgent(), preemption="queue:2>1,suspend")
    result.to_swf(tmp_path / "log.swf")
    text = (tmp_path / "log.swf").read_text()
    assert "jobs were suspended 2 times, which is told as a part of their waiting times" in text
    again = hpcgym.load_workload(tmp_path / "log.swf")
    ends = again.submit_time + again.wait_time + again.run_time
    assert ends.tolist() == result.end.tolist()


def moving(**rules: Any) -> hpcgym.Result:
    """A schedule of jobs that come later than the log says."""
    return hpcgym.simulate(chain(submit=[0, 1, 2]), **rules)


@pytest.mark.filterwarnings("ignore:.*no job f")
@pytest.mark.parametrize(
    ("rules", "late"), [({"dependencies": "closed-loop"}, 9), ({"quota": "all:submitted=1"}, 7)]
)
def test_of_moved_submissions_less_is_told(rules: dict[str, Any], late: int) -> None:
    """Passes are not made again; but the schedule is a log of its own."""
    result = moving(**rules)
    again = hpcgym.simulate(result.as_workload(), "easy")
    assert again.start.tolist() == result.start.tolist()
    told_of_it = hpcgym.explain(result, late)
    assert "later than in the log" in told_of_it.sentences[1]
    assert "submitted" not in str(hpcgym.explain(result, 5))
    if "quota" in rules:
        assert waits(result).sum(axis="columns").tolist() == result.wait.tolist()
    else:
        assert told_of_it.passes.empty


@pytest.mark.parametrize(
    ("jobs", "rules"),
    [
        *((chain(job_number=[5, 5, 9], preceding_job=[-1, -1, 5]), rules)
          for rules in ({"dependencies": "after"}, {"dependencies": "closed-loop"})),
        (five(job_number=[1, 1, 3, 4, 4]), {"quota": "user:submitted=1"}),
    ],
)  # fmt: skip
def test_a_number_that_stands_twice_proves_less(jobs: Workload, rules: dict[str, Any]) -> None:
    """A requeued job has a row for each run; the engine follows the last, a result does not say."""
    hpcgym.validate_schedule(hpcgym.simulate(jobs, **rules))


def test_where_a_schedule_is_from_tells_whom_jobs_follow() -> None:
    """The two schedules are the same, as job 9 comes when the log says; the given jobs are not."""
    digests = []
    for preceding in ([-1, 5, 7], [-1, 5, 5]):
        jobs = chain(preceding_job=preceding)
        result = hpcgym.simulate(jobs, dependencies="after")
        assert result.given is jobs
        (schedule,) = provenance_of({"one": result})["schedules"]
        assert schedule["workload"] == workload_digest(result.workload)
        assert schedule["given"] == given_digest(jobs)
        digests.append((schedule["sha256"], schedule["workload"], schedule["given"]))
    assert digests[0][:2] == digests[1][:2]
    assert digests[0][2] != digests[1][2]
    more = replace(jobs, more_preceding=pairs_of([[9, 7]], ""))
    given = {
        given_digest(workload) for workload in (jobs, more, more.with_columns(wait_time=[1, 2, 3]))
    }
    assert len(given) == 3
    plain = hpcgym.simulate(jobs)
    assert plain.given is None
    assert "given" not in provenance_of({"one": plain})["schedules"][0]


test_mistakes = mistakes_of(globals(), Session)
