"""Extracts: an interval of a trace, or of a simulation, from the state that the machine was in."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plain_envs
import pytest
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import usable
from mistakes import mistakes_of
from strategies import cases, schedulers

import hpcgym
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.schedule.result import Result
from hpcgym.study import evaluate
from hpcgym.workload.model import Workload


def times_of(long: Result) -> st.SearchStrategy[int]:
    """Times at which something happens in a schedule, those around them, and any others."""
    events = {*long.workload.submit_time.tolist(), *long.start.tolist(), *long.end.tolist()}
    near = sorted({max(time + more, 0) for time in events for more in (-1, 0, 1)})
    return st.one_of(st.sampled_from(near), st.integers(0, near[-1]))


def test_nobody_can_change_a_state() -> None:
    """As the columns of workloads; also where a part is taken of it, and of a simulation."""
    workload = small(**SMALL)
    of_trace, of_run = workload.extract(100), hpcgym.continued(hpcgym.simulate(workload), 100)
    for part in (of_trace, of_run, of_run.take(slice(0, 3)), of_run.take(np.arange(3))):
        assert part.initial is not None
        assert not part.initial.start.flags.writeable
    assert of_run.initial is not None
    assert of_run.initial.ongoing is not None
    for values in (of_run.initial.ongoing.order, of_run.initial.ongoing.promised):
        assert not values.flags.writeable


def test_the_recorded_past_of_an_extract_is_of_the_same_jobs() -> None:
    """What a scheduler made as a log is the past that it makes again, number by number.

    So neither counts the jobs that ran at the beginning, nor the time before it.
    """
    long = hpcgym.simulate(hpcgym.load_workload("lublin:jobs=300,processors=64,load=1.2"), "easy")
    part = long.as_workload().extract(int(np.median(long.start)))
    assert part.initial is not None
    assert part.initial.running.any()
    ours, past = hpcgym.simulate(part, "easy"), hpcgym.recorded(part)
    assert past.start.tolist() == ours.start.tolist()
    # which a log does not tell
    untold = {"backfilled_share": 0.0} | dict.fromkeys(
        ("promises_broken", "max_promise_delay_s"), float("nan")
    )
    assert past.metrics == pytest.approx(ours.metrics | untold, rel=0, abs=0, nan_ok=True)


@settings(max_examples=300)
@given(st.data(), cases())
def test_any_scheduler_goes_on_from_any_state(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]]
) -> None:
    workload, rules = case[0], usable(case[1])
    long = hpcgym.simulate(workload, **rules)
    begin = data.draw(times_of(long).filter(lambda time: time <= long.end.max()))
    part = hpcgym.continued(long, begin)
    others = usable(data.draw(schedulers(part)))
    result = hpcgym.simulate(part, **others)
    hpcgym.validate_schedule(result)
    running = long.start[long.end >= begin] < begin
    assert result.start[running].tolist() == long.start[long.end >= begin][running].tolist()


LEARNED = st.sampled_from(["user-ratio", "typical-ratio", "ave2", "ave3", "e-loss", "requested"])


@settings(max_examples=150)
@given(st.data(), cases())
def test_what_is_learned_goes_on_where_it_was(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]]
) -> None:
    """The same jobs start at the same times, with the same predictions."""
    workload, rules = case[0], usable(case[1])
    rules |= {"estimate": data.draw(LEARNED), "policy_estimate": data.draw(LEARNED)}
    rules |= {"policy": data.draw(st.sampled_from(["saf", "fcfs", "wfp3", AGED]))}
    if rules["estimate"] != "requested":
        rules |= {
            "correction": data.draw(st.sampled_from([rules["correction"], "predicted-again"]))
        }
    long = hpcgym.simulate(workload, **rules)
    begin = data.draw(times_of(long).filter(lambda time: 0 < time <= long.end.max()))
    part = hpcgym.continued(long, begin)
    again, goes_on = hpcgym.simulate(part, **rules), long.end >= begin
    assert again.start.tolist() == long.start[goes_on].tolist()
    assert again.predicted_run_time.tolist() == long.predicted_run_time[goes_on].tolist()
    assert again.reserved_start.tolist() == long.reserved_start[goes_on].tolist()


AGED = "4*log(wait+720)-log(max(requested,1))-0.2*log(processors)"

# --- Worked out by hand ---------------------------------------------------------------------------


def small(**columns: list[int]) -> Workload:
    """A trace of a machine of 4 processors; jobs are numbered from 0."""
    numbers = {"job_number": list(range(len(columns["submit_time"])))}
    columns = {
        "requested_time": columns["run_time"],
        "user_id": [7] * len(columns["submit_time"]),
        **columns,
    }
    return Workload.from_columns({**numbers, **columns}, processors=4, name="t")


#: At 100 s: 0 has ended, 1 in that very second; 2 and 3 run, 4 and 5 wait, of which 5 started right
#: then; 6 comes then, 7 later.
SMALL: dict[str, list[int]] = {
    "submit_time": [0, 10, 20, 30, 90, 95, 100, 150],
    "wait_time": [0, 0, 30, 0, 40, 5, 3, 0],
    "run_time": [50, 90, 80, 90, 20, 10, 10, 10],
    "requested_processors": [1, 1, 2, 1, 4, 1, 1, 1],
    "user_id": [1, 2, 1, 2, 1, 2, 1, 2],
}


def test_what_runs_waits_and_comes() -> None:
    part = small(**SMALL).extract(100, 150)
    assert part.job_number.tolist() == [2, 3, 4, 5, 6]
    assert part.submit_time.tolist() == [20, 30, 90, 95, 100]
    state = part.initial
    assert state is not None
    assert state.begin == 100
    assert state.start.tolist() == [50, 30, -1, -1, -1]
    assert state.past.job_number.tolist() == [0, 1]
    assert part.name == "t from 1 min 40 s to 2 min 30 s"
    assert part.cleaning == {}


def test_the_schedule_of_a_small_extract() -> None:
    """2 runs to 130, 3 to 120; 4 needs all and is promised 130; 5 and 6 end before, one by one."""
    result = hpcgym.simulate(small(**SMALL).extract(100), "easy")
    assert result.start.tolist() == [50, 30, 130, 100, 110, 150]
    assert result.reserved_start.tolist() == [-1, -1, 130, -1, -1, -1]
    assert result.wait.tolist() == [30, 0, 40, 5, 10, 0]
    assert result.begin == 100
    assert "beginning" in hpcgym.validate_schedule(result)
    metrics = result.metrics
    assert metrics["jobs"] == 4
    assert metrics["mean_wait_s"] == (40 + 5 + 10 + 0) / 4
    assert metrics["backfilled_share"] == 2 / 4
    assert metrics["makespan_s"] == 160 - 100
    # from 100 s on: 30 s of two and 20 s of one processor, 20 s of four, and thrice 10 s of one
    assert metrics["utilization"] == (60 + 20 + 80 + 30) / (4 * 60)
    assert metrics["mean_queue_length"] == (30 + 0 + 10 + 0) / 60
    assert metrics["max_queue_length"] == 2


def test_jobs_of_which_a_trace_tells_too_little_are_dropped_and_counted() -> None:
    part = small(**SMALL | {"wait_time": [0, -1, 30, -1, 40, 5, -1, -1]}).extract(100)
    assert part.job_number.tolist() == [2, 4, 5, 6, 7]
    assert list(part.cleaning.values()) == [2]
    assert "it is not known when it ran" in next(iter(part.cleaning))


def test_more_running_jobs_than_processors_are_queued_and_counted() -> None:
    """2 holds two processors; 3 started before and holds three, so that there is no room for 2."""
    part = small(**SMALL | {"requested_processors": [1, 1, 2, 3, 4, 1, 1, 1]}).extract(100)
    state = part.initial
    assert state is not None
    assert state.start.tolist() == [-1, 30, -1, -1, -1, -1]
    assert part.wait_time.tolist() == [80, 0, 40, 5, 3, 0]
    assert list(part.cleaning.values()) == [1]
    assert next(iter(part.cleaning)).startswith("repaired: ran at the beginning")
    result = hpcgym.simulate(part, "easy")
    assert result.start.tolist() == [120, 30, 200, 100, 110, 150]


def killed_at_its_prediction(begin: int) -> Result:
    """User 1 had a job of 50 s; so 2, which began at 50 s, would have been killed at 100 s."""
    workload = small(**SMALL | {"requested_time": [500] * 8})
    return hpcgym.simulate(workload.extract(begin), "easy", estimate="ave1", correction="kill")


def test_a_running_job_may_be_killed_at_once() -> None:
    assert killed_at_its_prediction(100).end[0] == 100


def test_the_state_of_a_simulation_is_pickled() -> None:
    long = hpcgym.simulate(small(**SMALL), "conservative")
    part = hpcgym.continued(long, 100)
    again, goes_on = (
        hpcgym.simulate(pickle.loads(pickle.dumps(part)), "conservative"),
        long.end >= 100,
    )
    assert again.start.tolist() == long.start[goes_on].tolist()
    assert again.reserved_start.tolist() == long.reserved_start[goes_on].tolist()
    assert (again.reserved_start[again.wait > 0] >= 0).all()


GROUPED = Cluster(groups=(NodeGroup("n", 4, {"core": 1}, NodePower(10.0, (50.0,))),))


ASLEEP = Cluster(4, shutdown_after_s=5)


@pytest.mark.parametrize(
    "rules",
    [
        *({"scheduler": "prb"}, {"cluster": ASLEEP}),
        {"cluster": GROUPED, "limits": []},
    ],
)
def test_simulations_that_cannot_be_continued_are_traces_like_any_other(rules: Any) -> None:
    part = hpcgym.simulate(small(**SMALL), **rules).as_workload().extract(100)
    hpcgym.validate_schedule(hpcgym.simulate(part, "easy"))


def starting(job: int, start: int) -> Any:
    """Prove the schedule of an extract of which a job starts at another time."""
    result = hpcgym.simulate(small(**SMALL).extract(100), "easy")
    starts = result.start.copy()
    starts[job] = start
    return hpcgym.validate_schedule(replace(result, start=starts))


# --- A real trace -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kth(trace: Callable[[str], Path]) -> Workload:
    return hpcgym.load_workload(str(trace("KTH-SP2-1996-2.swf.gz")))


def test_a_week_of_a_real_trace(kth: Workload) -> None:
    """What ran and waited is the schedule that the trace recorded, and the rest its submissions."""
    begin, end = 12 * 604_800, 13 * 604_800
    part = kth.extract(begin, end)
    state = part.initial
    assert state is not None
    start = kth.submit_time + kth.wait_time
    over = start + np.minimum(kth.run_time, kth.requested_time)
    in_it = (kth.submit_time < end) & ((over > begin) | (kth.submit_time >= begin))
    assert part.job_number.tolist() == kth.job_number[in_it].tolist()
    assert part.cleaning == {}
    assert state.running.sum() == 6
    assert (part.submit_time < begin).sum() == 25
    assert len(state.past) == ((over <= begin) & (kth.submit_time < begin)).sum()
    for name in ("easy", "conservative", "fairshare", "easy++"):
        result = hpcgym.simulate(part, name)
        hpcgym.validate_schedule(result)
        assert (result.start[~state.running] >= begin).all()


test_mistakes = mistakes_of(globals(), evaluate, plain_envs)
