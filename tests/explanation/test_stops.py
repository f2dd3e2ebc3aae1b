"""What jobs that stop others, and failures, have to do with a wait, as it is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given
from drawing import strategies as st
from few_jobs import few_jobs
from restrictions import DRAWN

import hpcgym
from hpcgym.explanation.story import RIGHTS
from hpcgym.explanation.watching import Stop, in_words, stops_of, waits_of
from hpcgym.machine import Cluster, Failures, NodeGroup
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]

MODES = {"requeue": "requeued", "cancel": "cancelled", "suspend": "suspended"}


def four(**changes: Any) -> Workload:
    given = {"job_number": [1, 2, 3, 4], "queue": [1, 1, 2, 2]} | changes
    return few_jobs(2, [0, 0, 5, 5], [20, 20, 5, 5], given.pop("wide", [1] * 4), **given)


@pytest.mark.parametrize("mode", list(MODES))
def test_who_took_its_node_is_named_and_nobody_else(mode: str) -> None:
    """By hand: two urgent jobs start at 5 s, each on the node of one of two jobs that run."""
    preemption = f"queue:2>1,{mode}"
    result = hpcgym.simulate(four(), cluster="2x1x1", preemption=preemption)
    expected = [[Stop(MODES[mode], 0, 5, [urgent], [])] for urgent in (4, 3)]
    assert [stops_of(result, job) for job in (0, 1)] == expected
    pool = hpcgym.simulate(four(), preemption=preemption)
    assert stops_of(pool, 0) == [Stop(MODES[mode], 0, 5, [3, 4], [])]
    assert stops_of(pool, 2) == []


def test_who_waited_as_its_grace_time_began_is_named() -> None:
    """By hand: both urgent jobs wait from 5 s on, one is looked at after the other."""
    for cluster in (None, "2x1x1"):
        result = hpcgym.simulate(four(), cluster=cluster, preemption="queue:2>1,grace=7")
        assert result.start.tolist() == [19, 22, 12, 17]
        assert stops_of(result, 0) == [Stop("requeued", 0, 19, [4], [])]
        assert stops_of(result, 1) == [Stop("requeued", 0, 12, [3, 4], [])]
        assert "preemption" in hpcgym.validate_schedule(result)


def test_who_began_anew_may_have_stopped_it() -> None:
    """By hand: 2 stops 1, beside it 3 starts, which 1 stops as it begins anew."""
    jobs = few_jobs(2, [0, 5, 11], [30, 10, 30], [2, 1, 1], job_number=[1, 2, 3], queue=[2, 3, 1])
    result = hpcgym.simulate(jobs, "saf", preemption="queue:3>2>1")
    assert result.start.tolist() == [15, 5, 45]
    assert stops_of(result, 0) == [Stop("requeued", 0, 5, [2], [])]
    assert stops_of(result, 2) == [Stop("requeued", 11, 15, [1], [])]


def test_nodes_that_failed_are_named() -> None:
    jobs = four(wide=[2, 1, 1, 1], queue=[1, 1, 1, 1])
    failures = Failures(np.array([1, 0, 1]), np.array([7, 9, 30]), np.array([8, 10, 31]))
    result = hpcgym.simulate(jobs, cluster="2x1x1", failures=failures)
    assert stops_of(result, 0)[0] == Stop("failed", 0, 7, [], [1])
    explained = hpcgym.explain(result, 1)
    assert explained.sentences[1:3] == [
        "It was stopped twice.",
        "First 7 s after it came, as node 1 failed, when it had run for 7 s.",
    ]
    assert explained.to_dict()["stops"][0]["nodes"] == [1]
    named = Cluster(groups=(NodeGroup("n[1-2]", 2, {"core": 1}),))
    explained = hpcgym.explain(hpcgym.simulate(jobs, cluster=named, failures=failures), 1)
    assert "as node n2 failed" in explained.sentences[2]
    assert explained.to_dict()["stops"][0]["nodes"] == ["n2"]


@pytest.mark.parametrize(
    ("stops", "words"),
    [
        ([], []),
        (
            [Stop("requeued", 10, 70, [17], []), Stop("requeued", 100, 4000, [18, 19], [])],
            [
                "It was stopped twice.",
                "First 1 min after it came, for job 17, when it had run for 1 min.",
                "Then 1 h 7 min after it came, for job 18 or 19, when it had run for 1 h 5 min.",
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
    sentences = in_words([Stop("suspended", n, n + 1, [n], []) for n in range(7)], 0)
    assert sentences[0] == "It was suspended 7 times."
    assert [line.split()[0] for line in sentences[1:6]] == ["First", *4 * ["Then"]]
    assert "for job 4, when" in sentences[5]
    assert sentences[6:] == ["And twice more.", "It lost nothing, and went on later."]


def test_who_was_cancelled_had_started() -> None:
    explained = hpcgym.explain(hpcgym.simulate(four(), preemption="queue:2>1,cancel"), 1)
    assert explained.sentences[1:4] == [
        "It started at once.",
        "It was cancelled 5 s after it came, for job 3 or 4, when it had run for 5 s.",
        "What it had done is lost: 5 s.",
    ]


def simulated(preemption: str, *rows: tuple[int, int, int, int], **place: Any) -> Any:
    """Jobs of (submission, processors, run time, queue) on 4 processors, numbered from 1."""
    submit, width, run, queue = np.array(rows).T
    workload = few_jobs(4, submit, run, width, job_number=np.arange(1, len(rows) + 1), queue=queue)
    given = {"preemption": preemption} if preemption else {}
    return hpcgym.simulate(workload, **given, **place)


def rights_of(result: Any, job: int) -> dict[int, str]:
    rights: dict[int, str] = hpcgym.explain(result, job).others["right"].to_dict()
    return rights


# 1 runs from 0 to 500 s, beside 2 and 3, and again from 600 s, when 4 has ended
STOPPED = ((0, 2, 1000, 1), (100, 1, 50, 1), (200, 1, 50, 1), (500, 4, 100, 2))


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_who_ran_beside_it_does_not_count(mode: str) -> None:
    result = simulated(f"queue:2>1,{mode}", *STOPPED)
    explained = hpcgym.explain(result, 1)
    assert waits_of(result, 0) == [(500, 600)]
    assert explained.others["right"].to_dict() == {4: "stopped"}
    assert explained.to_dict()["others"][0]["right"] == "stopped"
    assert (
        "While it waited, 1 job ran: 1 stopped others to start, or may have." in explained.sentences
    )
    assert "1 of these came later than it." in explained.sentences
    assert rights_of(result, 4) == {}


@pytest.mark.parametrize(
    ("preemption", "rows", "job", "rights"),
    [
        # 1 waits for 2 up to 50 s, and for 5 from 200 to 300 s, in which 3 runs on
        (
            "queue:2>1",
            ((10, 2, 500, 1), (0, 4, 50, 1), (60, 1, 400, 3), (70, 1, 20, 1), (200, 3, 100, 2)),
            1,
            {2: "ran", 3: "ran", 5: "stopped"},
        ),
        # 2 and 3 start as 1 is stopped; 4 has waited, and starts in turn beside 3
        (
            "queue:2>1",
            ((0, 4, 100, 1), (10, 1, 20, 2), (10, 2, 90, 2), (20, 1, 30, 1)),
            1,
            {2: "stopped", 3: "stopped", 4: "filled"},
        ),
        # beside 2, which stops 1, starts 3, which may not
        (
            "queue:2>1",
            ((0, 4, 100, 1), (10, 2, 20, 2), (10, 1, 5, 1)),
            1,
            {2: "stopped", 3: "filled"},
        ),
        # 3 starts at 20 s while 1 waits, and is stopped for 4; nobody kept how it began
        (
            "queue:3>2>1",
            ((0, 3, 100, 1), (10, 3, 60, 2), (20, 1, 30, 1), (30, 1, 50, 3)),
            1,
            {2: "stopped", 3: "unknown", 4: "stopped"},
        ),
        # 2 suspends 1 and ends at 60 s; then 1 goes on, while 3 waits for all
        (
            "queue:2>1,suspend",
            ((0, 4, 100, 1), (10, 4, 50, 2), (20, 4, 30, 1)),
            3,
            {1: "resumed", 2: "ran"},
        ),
    ],
)
def test_by_what_right_others_ran(
    preemption: str, rows: Any, job: int, rights: dict[int, str]
) -> None:
    assert rights_of(simulated(preemption, *rows), job) == rights


def test_of_several_runs_the_one_that_stopped_others_counts() -> None:
    """By hand: 1 runs while 2 waits, is stopped for 3, and stops 2 as it begins anew at 50 s."""
    rows = (0, 4, 100, 2), (10, 2, 50, 1), (20, 2, 30, 3)
    result = simulated("queue:3>2>1", *rows, policy="sqf", backfill="none")
    assert waits_of(result, 1) == [(10, 20), (50, 150)]
    assert rights_of(result, 2) == {1: "stopped"}


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
    mode=st.sampled_from(list(MODES)),
)
def test_all_that_is_told_is_in_the_schedule(seed: int, machine: str | None, mode: str) -> None:
    """Waits add up, who stopped others started then, and all who ran meanwhile are told of."""
    jobs = hpcgym.load_workload(f"lublin:jobs=60,processors=12,seed={seed}")
    gap = max(int(np.median(jobs.run_time)) // 2, 1)
    queue = np.random.default_rng(seed).integers(1, 4, len(jobs))
    jobs = jobs.with_columns(submit_time=np.arange(len(jobs)) * gap, queue=queue)
    result = hpcgym.simulate(jobs, preemption=f"queue:3>2>1,{mode}", cluster=machine)
    runs, numbers = result.runs, jobs.job_number.tolist()
    row = {number: place for place, number in enumerate(numbers)}
    number = runs.workload.job_number
    kept = set(zip(number.tolist(), runs.start.tolist(), runs.end.tolist(), strict=True))
    started = {(started_job, start) for started_job, start, _ in kept}
    spent = np.zeros(len(jobs), np.int64)
    stops = [(job, stop) for job in range(len(jobs)) for stop in stops_of(result, job)]
    for job, stop in stops:
        assert stop.how == MODES[mode]
        assert stop.jobs
        for stopper in stop.jobs:
            assert (stopper, stop.stopped) in started
            assert queue[row[stopper]] > queue[job]
        spent[job] += stop.stopped - stop.began
    assume(spent.any())
    lost = result.lost_core_seconds // jobs.requested_processors
    if (pieces := result.pieces) is not None:
        lost = np.zeros(len(jobs), np.int64)
        np.add.at(lost, pieces.job, pieces.end - pieces.start)
    assert spent.tolist() == lost.tolist()
    for job in np.flatnonzero(result.wait > 0).tolist():
        spans = waits_of(result, job)
        ran = int(lost[job]) if mode == "requeue" else 0
        assert sum(end - begin for begin, end in spans) + ran == result.wait[job]
        others = hpcgym.explain(result, numbers[job]).others
        beside = np.zeros(len(number), np.bool_)
        for begin, end in spans:
            beside |= (runs.start < end) & (runs.end > begin)
        assert set(others.index) == set(number[beside].tolist()) - {numbers[job]}
        assert set(others[["start_time", "end_time"]].itertuples(name=None)) <= kept
        for other in others.itertuples():
            assert other.right in RIGHTS
            since = any(begin <= other.start_time < end for begin, end in spans)
            assert (other.right != "ran") == since
