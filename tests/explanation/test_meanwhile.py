"""Who ran while a job waited, where jobs are stopped and wait again: by hand, and drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import costly, given
from drawing import strategies as st
from few_jobs import few_jobs
from restrictions import DRAWN

import hpcgym
from hpcgym.cluster import Failures
from hpcgym.explanation.story import RIGHTS
from hpcgym.explanation.watching import waits_of

pytestmark = [*DRAWN, pytest.mark.slow]


def simulated(preemption: str, *rows: tuple[int, int, int, int], **place: Any) -> Any:
    """Jobs of (submission, processors, run time, queue) on 4 processors, numbered from 1."""
    submit, width, run, queue = np.array(rows).T
    workload = few_jobs(4, submit, run, width, job_number=np.arange(1, len(rows) + 1), queue=queue)
    given = {"preemption": preemption} if preemption else {}
    return hpcgym.simulate(workload, **given, **place)


def rights_of(result: Any, job: int) -> dict[int, str]:
    found: dict[int, str] = hpcgym.explain(result, job).others["right"].to_dict()
    return found


# 1 runs from 0 to 500 s, beside 2 and 3, and again from 600 s, when 4 has ended
STOPPED = ((0, 2, 1000, 1), (100, 1, 50, 1), (200, 1, 50, 1), (500, 4, 100, 2))


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_who_ran_beside_it_does_not_count(mode: str) -> None:
    result = simulated(f"queue:2>1,{mode}", *STOPPED)
    told = hpcgym.explain(result, 1)
    assert waits_of(result, 0) == [(500, 600)]
    assert told.others["right"].to_dict() == {4: "stopped"}
    assert told.to_dict()["others"][0]["right"] == "stopped"
    assert "While it waited, 1 job ran, which stopped others to start." in told.sentences
    assert "That job came later than it." in told.sentences
    assert rights_of(result, 4) == {}


def test_both_waits_count() -> None:
    """By hand: 1 waits for 2 up to 50 s, and for 5 from 200 to 300 s, in which 3 runs on."""
    rows = (10, 2, 500, 1), (0, 4, 50, 1), (60, 1, 400, 3), (70, 1, 20, 1), (200, 3, 100, 2)
    result = simulated("queue:2>1", *rows)
    assert waits_of(result, 1) == [(10, 50), (200, 300)]
    assert rights_of(result, 1) == {2: "ran", 3: "ran", 5: "stopped"}


def test_of_two_it_is_not_known_which_stopped_it() -> None:
    """By hand: 2 and 3 start as 1 is stopped; 4 has waited, and starts in turn beside 3."""
    rows = (0, 4, 100, 1), (10, 1, 20, 2), (10, 2, 90, 2), (20, 1, 30, 1)
    told = rights_of(simulated("queue:2>1", *rows), 1)
    assert told == {2: "may have stopped", 3: "may have stopped", 4: "gap"}


def test_runs_that_were_stopped_later() -> None:
    """By hand: 3 starts at 20 s while 1 waits, and is stopped for 4; nobody kept how it began."""
    rows = (0, 3, 100, 1), (10, 3, 60, 2), (20, 1, 30, 1), (30, 1, 50, 3)
    result = simulated("queue:3>2>1", *rows)
    assert rights_of(result, 1) == {2: "stopped", 3: "unknown", 4: "stopped"}


def test_who_went_on() -> None:
    """By hand: 2 suspends 1 and ends at 60 s; then 1 goes on, while 3 waits for all."""
    rows = (0, 4, 100, 1), (10, 4, 50, 2), (20, 4, 30, 1)
    result = simulated("queue:2>1,suspend", *rows)
    assert rights_of(result, 3) == {1: "resumed", 2: "ran"}
    line = "While it waited, 2 jobs ran: 1 ran already; 1 went on after it had been suspended."
    assert line in hpcgym.explain(result, 3).sentences


def test_after_a_failure() -> None:
    """By hand: node 0 of 2 fails at 40 s, where 1 runs beside 2; 3 ran and ended before that."""
    rows = (0, 2, 100, 1), (0, 2, 200, 1), (0, 4, 10, 1)
    failures = Failures(np.array([0]), np.array([40]), np.array([60]))
    result = simulated("", *rows, cluster="2x1x2", failures=failures)
    stopped = int(np.flatnonzero(result.restarts)[0])
    assert waits_of(result, stopped) == [(40, 60)]
    assert rights_of(result, stopped + 1) == {2 - stopped: "ran"}


@costly
@given(
    seed=st.integers(0, 50),
    machine=st.sampled_from([None, "6x1x2"]),
    mode=st.sampled_from(["requeue", "cancel", "suspend"]),
)
def test_all_that_is_told_is_in_the_schedule(seed: int, machine: str | None, mode: str) -> None:
    """Waits add up, and those told of are all that ran in them, of runs that did."""
    jobs = hpcgym.load_workload(f"lublin:jobs=60,processors=12,seed={seed}")
    gap = max(int(np.median(jobs.run_time)) // 2, 1)
    queue = np.random.default_rng(seed).integers(1, 4, len(jobs))
    jobs = jobs.with_columns(submit_time=np.arange(len(jobs)) * gap, queue=queue)
    place: dict[str, Any] = {} if machine is None else {"cluster": machine}
    result = hpcgym.simulate(jobs, preemption=f"queue:3>2>1,{mode}", **place)
    runs = result.runs
    number = runs.workload.job_number
    lost = result.lost_core_seconds // jobs.requested_processors
    for row in np.flatnonzero(result.wait > 0).tolist():
        me = int(jobs.job_number[row])
        spans = waits_of(result, row)
        ran = 0 if mode != "requeue" else int(lost[row])
        assert sum(end - begin for begin, end in spans) + ran == result.wait[row]
        others = hpcgym.explain(result, me).others
        beside = np.zeros(len(number), np.bool_)
        for begin, end in spans:
            beside |= (runs.start < end) & (runs.end > begin)
        assert set(others.index) == set(number[beside].tolist()) - {me}
        kept = set(zip(number.tolist(), runs.start.tolist(), runs.end.tolist(), strict=True))
        assert set(others[["start_time", "end_time"]].itertuples(name=None)) <= kept
        for one in others.itertuples():
            assert one.right in RIGHTS
            started = any(begin <= one.start_time < end for begin, end in spans)
            assert (one.right != "ran") == started
