"""When jobs were stopped, for whom or by what, and what that cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, given
from drawing import strategies as st
from few_jobs import few_jobs
from restrictions import DRAWN

import hpcgym
from hpcgym.cluster import Cluster, Failures, NodeGroup
from hpcgym.explanation.watching import (
    Stop,
    Stopped,
    in_words,
    stopped_by,
    stops_of,
    who_was_stopped,
)
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]

MODES = {"requeue": "requeued", "cancel": "cancelled", "suspend": "suspended"}


@given(
    seed=st.integers(0, 50),
    machine=st.sampled_from([None, "6x1x2"]),
    mode=st.sampled_from(list(MODES)),
)
def test_someone_who_may_stop_it_started_then(seed: int, machine: str | None, mode: str) -> None:
    jobs = hpcgym.load_workload(f"lublin:jobs=60,processors=12,seed={seed}")
    rng = np.random.default_rng(seed)
    gap = max(int(np.median(jobs.run_time)) // 2, 1)
    jobs = jobs.with_columns(
        submit_time=np.arange(len(jobs)) * gap, queue=rng.integers(1, 4, len(jobs))
    )
    place: dict[str, Any] = {} if machine is None else {"cluster": machine}
    result = hpcgym.simulate(jobs, preemption=f"queue:3>2>1,{mode}", **place)
    row = {number: place for place, number in enumerate(jobs.job_number.tolist())}
    runs = result.runs
    started = set(zip(runs.workload.job_number.tolist(), runs.start.tolist(), strict=True))
    spent = np.zeros(len(jobs), np.int64)
    for job in range(len(jobs)):
        for stop in stops_of(result, job):
            assert stop.how == MODES[mode]
            assert stop.jobs
            for one in stop.jobs:
                assert (one, stop.stopped) in started
                assert jobs.queue[row[one]] > jobs.queue[job]
            spent[job] += stop.stopped - stop.began
    assume(spent.any())
    numbers = jobs.job_number.tolist()
    told = [(one, stop.job) for one in range(len(jobs)) for stop in stopped_by(result, one)]
    stops = [
        (row[by], numbers[of])
        for of in row.values()
        for one in stops_of(result, of)
        for by in one.jobs
    ]
    assert sorted(told) == sorted(stops)
    if mode == "suspend":
        assert result.pieces is not None
        pieces = result.pieces
        ran = np.zeros(len(jobs), np.int64)
        np.add.at(ran, pieces.job, pieces.end - pieces.start)
        assert spent.tolist() == ran.tolist()
    else:
        lost = result.lost_core_seconds // jobs.requested_processors
        assert spent.tolist() == lost.tolist()


def four(**changes: Any) -> Workload:
    columns: dict[str, Any] = {
        "job_number": [1, 2, 3, 4],
        "submit_time": [0, 0, 5, 5],
        "run_time": [20, 20, 5, 5],
        "requested_time": [20, 20, 5, 5],
        "requested_processors": [1, 1, 1, 1],
        "queue": [1, 1, 2, 2],
    }
    return hpcgym.Workload.from_columns(columns | changes, processors=2)


@pytest.mark.parametrize("mode", list(MODES))
def test_who_took_its_node_is_named_and_nobody_else(mode: str) -> None:
    """By hand: two urgent jobs start at 5 s, each on the node of one of two jobs that run."""
    preemption = f"queue:2>1,{mode}"
    result = hpcgym.simulate(four(), cluster="2x1x1", preemption=preemption)
    expected = [[Stop(MODES[mode], 0, 5, [one], [])] for one in (4, 3)]
    assert [stops_of(result, job) for job in (0, 1)] == expected
    pool = hpcgym.simulate(four(), preemption=preemption)
    assert stops_of(pool, 0) == [Stop(MODES[mode], 0, 5, [3, 4], [])]
    assert stops_of(pool, 2) == []


def test_who_began_anew_may_have_stopped_it() -> None:
    """By hand: 2 stops 1, beside it 3 starts, which 1 stops as it begins anew."""
    jobs = few_jobs(2, [0, 5, 11], [30, 10, 30], [2, 1, 1], job_number=[1, 2, 3], queue=[2, 3, 1])
    result = hpcgym.simulate(jobs, "saf", preemption="queue:3>2>1")
    assert result.start.tolist() == [15, 5, 45]
    assert stops_of(result, 0) == [Stop("requeued", 0, 5, [2], [])]
    assert stops_of(result, 2) == [Stop("requeued", 11, 15, [1], [])]


def test_nodes_that_failed_are_named() -> None:
    jobs = four(requested_processors=[2, 1, 1, 1], queue=[1, 1, 1, 1])
    failures = Failures(np.array([1, 0, 1]), np.array([7, 9, 30]), np.array([8, 10, 31]))
    result = hpcgym.simulate(jobs, cluster="2x1x1", failures=failures)
    assert stops_of(result, 0)[0] == Stop("failed", 0, 7, [], [1])
    told = hpcgym.explain(result, 1)
    assert told.sentences[1:3] == [
        "It was stopped twice.",
        "First 7 s after it came, as node 1 failed, when it had run for 7 s.",
    ]
    assert told.to_dict()["stops"][0]["nodes"] == [1]
    named = Cluster(groups=(NodeGroup("n[1-2]", 2, {"core": 1}),))
    told = hpcgym.explain(hpcgym.simulate(jobs, cluster=named, failures=failures), 1)
    assert "as node n2 failed" in told.sentences[2]
    assert told.to_dict()["stops"][0]["nodes"] == ["n2"]


def test_a_job_that_was_cancelled_had_started() -> None:
    told = hpcgym.explain(hpcgym.simulate(four(), preemption="queue:2>1,cancel"), 1)
    assert told.sentences[1:4] == [
        "It started at once.",
        "It was cancelled 5 s after it came, for job 3 or 4, when it had run for 5 s.",
        "What it had done is lost: 5 s.",
    ]


@pytest.mark.parametrize(
    ("stops", "words"),
    [
        ([], []),
        (
            [Stop("requeued", 10, 70, [17], []), Stop("requeued", 100, 4000, [18, 19], [])],
            [
                "It was stopped twice.",
                "First 1 min after it came, for job 17, when it had run for 1 min.",
                "Then 1 h 6 min after it came, for job 18 or 19, when it had run for 1 h 5 min.",
                "Each time it began again from the start.",
                "What it had run before, 1 h 6 min, is lost and counts as waiting.",
            ],
        ),
        (
            [Stop("failed", 10, 15, [], [0, 3])],
            [
                "It was stopped 5 s after it came, as nodes 0 and 3 failed, when it had run for"
                " 5 s.",
                "It began again from the start.",
                "What it had run before, 5 s, is lost and counts as waiting.",
            ],
        ),
        (
            [Stop("suspended", 10, 15, [3], [])],
            [
                "It was suspended 5 s after it came, for job 3, when it had run for 5 s.",
                "It lost nothing, and went on later.",
            ],
        ),
    ],
)
def test_words(stops: list[Stop], words: list[str]) -> None:
    assert in_words(stops, 10) == words


def test_many_are_counted() -> None:
    told = in_words([Stop("suspended", n, n + 1, [n], []) for n in range(7)], 0)
    assert told[0] == "It was suspended 7 times."
    assert [line.split()[0] for line in told[1:6]] == ["First", *4 * ["Then"]]
    assert "for job 4, when" in told[5]
    assert told[6:] == ["And twice more.", "It lost nothing, and went on later."]


@pytest.mark.parametrize("mode", list(MODES))
def test_whom_it_stopped_is_named(mode: str) -> None:
    """By hand: on a pool each of 3 and 4 may have needed what 1 or 2 had."""
    preemption = f"queue:2>1,{mode}"
    result = hpcgym.simulate(four(), cluster="2x1x1", preemption=preemption)
    told = hpcgym.explain(result, 3)
    assert told.sentences[1:] == ["It started at once.", "To start, it stopped job 2."]
    assert told.to_dict()["stopped"] == [{"job": 2, "time": 5, "jobs": [3]}]
    pool = hpcgym.explain(hpcgym.simulate(four(), preemption=preemption), 3)
    assert pool.sentences[2:] == ["As it started, jobs 1 and 2 were stopped, for it or for job 4."]
    assert hpcgym.explain(result, 1).facts["stopped"] == []


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        ([], []),
        ([(4, [9]), (2, [9]), (2, [9])], ["To start, it stopped jobs 2 and 4."]),
        (
            [(n, [9]) for n in range(1, 8)],
            ["To start, it stopped jobs 1, 2, 3, 4, 5 and 2 others."],
        ),
        (
            [(1, [9]), (2, [8, 9, 10])],
            [
                "To start, it stopped job 1.",
                "As it started, job 2 was stopped, for it or for job 8 or 10.",
            ],
        ),
    ],
)
def test_words_of_whom_it_stopped(stopped: list[tuple[int, list[int]]], words: list[str]) -> None:
    assert who_was_stopped([Stopped(job, 0, jobs) for job, jobs in stopped], 9) == words
