"""When passes come, whom they look at, and for how many jobs they plan."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from same_results import beside_reference
from strategies import POLICY, workloads

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.backfilling import SlurmBackfill
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload


def jobs(*rows: tuple[int, int, int]) -> Workload:
    """Return jobs by submission, processors and run time, which they request, on 4 processors."""
    submit, processors, run = zip(*rows, strict=True)
    return few_jobs(4, submit, run, processors, name="by hand")


#: three in a row on three of the processors, one that wants all at 30 s, one for 40 s on one
FIVE = jobs((0, 3, 10), (1, 3, 10), (2, 3, 10), (3, 4, 5), (4, 1, 40))


@pytest.mark.parametrize(
    ("backfill", "starts"),
    [
        ("none", [0, 10, 20, 30, 35]),
        ("easy", [0, 10, 20, 44, 4]),
        ("depth:2", [0, 10, 20, 44, 4]),  # beside both that have reservations one is left
        ("depth:3", [0, 10, 20, 30, 35]),
        ("conservative", [0, 10, 20, 30, 35]),
    ],
)
def test_by_hand(backfill: str, starts: list[int]) -> None:
    assert hpcgym.simulate(FIVE, backfill=backfill).start.tolist() == starts


def test_the_second_that_waits_is_not_delayed() -> None:
    """From 3 on one processor is extra beside the head; for 20 s it would delay the third job."""
    workload = jobs((0, 3, 10), (1, 3, 10), (2, 4, 5), (3, 1, 20))
    easy = hpcgym.simulate(workload, backfill="easy")
    assert easy.start.tolist() == [0, 10, 23, 3]  # extra beside the head, and the third waits on
    for backfill in ("depth:2", "depth:9", "conservative"):
        assert hpcgym.simulate(workload, backfill=backfill).start.tolist() == [0, 10, 20, 25]


@settings(max_examples=100)
@given(workloads(), POLICY, POLICY)
def test_a_depth_of_one_is_easy_in_the_slow_simulator_too(
    workload: Workload, policy: Any, order: Any
) -> None:
    rules = {"policy": policy, "backfill_order": order}
    one, easy = (
        simulate_pool(jobs_of(workload), workload.processors, backfill=backfill, **rules)
        for backfill in ("depth:1", "easy")
    )
    assert [job.start for job in one] == [job.start for job in easy]
    assert [job.reserved_start for job in one] == [job.reserved_start for job in easy]


@settings(max_examples=50)
@given(workloads(), st.sampled_from([2, 3, 8]))
def test_what_is_promised_is_kept(workload: Workload, depth: int) -> None:
    result = hpcgym.simulate(workload, backfill=depth)
    hpcgym.validate_schedule(result)
    promised = result.reserved_start >= 0
    assert (result.start[promised] <= result.reserved_start[promised]).all()


def test_slurm_by_hand() -> None:
    """What could start beside the first at 40 does so at the next multiple of 30, or never."""
    workload = jobs((0, 2, 300), (10, 4, 100), (40, 1, 50), (70, 1, 240), (95, 1, 10))
    # the fourth would end at 330 and delay the second; the fifth comes in time for the pass at 120
    assert hpcgym.simulate(workload, backfill="slurm").start.tolist() == [0, 300, 60, 400, 120]
    slow = hpcgym.simulate(workload, backfill="slurm:bf_interval=600")
    assert slow.start.tolist() == [0, 300, 400, 400, 400]
    first = hpcgym.simulate(workload, backfill="slurm:bf_max_job_test=1")
    assert first.start.tolist() == [0, 300, 400, 400, 400]
    # without a reservation for the second the fourth starts as well
    near = hpcgym.simulate(workload, backfill="slurm:bf_window=1")
    assert near.start.tolist() == [0, 330, 60, 90, 120]


def test_at_an_event_all_start_that_are_first_and_fit() -> None:
    """Also where a pass that back-fills falls on the same second, and looks at one job alone."""
    workload = jobs((0, 4, 30), (1, 1, 100), (2, 1, 100), (3, 1, 100))
    result = hpcgym.simulate(workload, backfill="slurm:bf_max_job_test=1")
    assert result.start.tolist() == [0, 30, 30, 30]
    hpcgym.validate_schedule(result)


def test_settings_of_slurm() -> None:
    assert Scheduler(backfill="slurm:bf_interval=30").backfill == "slurm"
    assert Scheduler(backfill=SlurmBackfill(60)).backfill == "slurm:bf_interval=60"  # type: ignore[arg-type]
    assert Scheduler(backfill="slurm:bf_max_job_test=7").reserve.depth == 7
    for text, words in (
        ("slurm:bf_intervall=1", "did you mean 'bf_interval'"),
        ("slurm:bf_interval=1+bf_interval=2", "there twice"),
        ("slurm:bf_interval=0", "whole number from 1"),
        ("slurm:bf_interval=", "whole number from 1"),
        ("slurm:bf_window=1.5", "whole number from 1"),
    ):
        with pytest.raises(HpcgymError, match=words):
            Scheduler(backfill=text)


def test_numbers_and_names() -> None:
    named = {0: "none", 1: "easy", 2: "depth:2", "3": "depth:3", "depth:1": "easy"}
    for given_, name in named.items():
        assert Scheduler(backfill=given_).backfill == name  # type: ignore[arg-type]
    assert Scheduler(backfill="depth:5").reserve.depth == 5
    assert Scheduler(backfill="conservative").reserve.depth is None


@pytest.mark.parametrize(
    ("backfill", "words"),
    [
        ("depth:K", "whole number"),
        ("depth:", "whole number"),
        (-1, "whole number from 0"),
        ("depth:2.5", "whole number"),
        (True, "unknown backfill"),
        ("deep", "unknown backfill"),
        (10**10, "whole number from 0"),
    ],
)
def test_what_is_no_depth(backfill: Any, words: str) -> None:
    with pytest.raises(HpcgymError, match=words):
        Scheduler(backfill=backfill)


def jobs_slurm(processors: int, *rows: tuple[int, int, int], **columns: list[int]) -> Workload:
    """Return jobs that come, need and request so much."""
    submit, needs, times = zip(*rows, strict=True)
    given = {"submit_time": submit, "requested_processors": needs}
    given |= {"run_time": times, "requested_time": times, **columns}
    return Workload.from_columns(given, processors=processors)


def starts(workload: Workload, slow: dict[str, Any] | None = None, **rules: Any) -> list[int]:
    """Return when jobs start, which the slow simulator must say, too."""
    found = hpcgym.simulate(workload, **rules)
    same = {name: rules[name] for name in ("policy", "backfill") if name in rules}
    expected = simulate_pool(jobs_of(workload), workload.processors, **same | (slow or {}))
    assert found.start.tolist() == [job.start for job in expected]
    return found.start.tolist()


def test_the_second_of_a_backfill_pass_counts_as_after_it() -> None:
    """Job 0 comes with the pass at 0 s. So there is one at 30 s, and the next one at 60 s."""
    late = jobs_slurm(4, (0, 2, 1000), (31, 3, 1000), (31, 1, 10))
    assert starts(late, backfill="slurm") == [0, 1000, 60]
    # nothing happened at 30 s, so that none comes at 60 s
    later = jobs_slurm(4, (0, 2, 1000), (65, 3, 1000), (65, 1, 10))
    assert starts(later, backfill="slurm") == [0, 1000, 65]


#: A pass at an event looks at two jobs, and at 60 s, with no event, three of five are left.
FEW = "slurm:default_queue_depth=1+sched_interval=3600"
FIVE_SLURM = [(0, 1, 1000), *[(31, 1, 1000)] * 5]


@pytest.mark.parametrize("count", [4, 5])
def test_jobs_waited_if_they_did_before_the_pass(count: int) -> None:
    """The passes at 60 s start all that wait. All the same one comes at 90 s, then at 120 s.

    Of four jobs none is left for the backfill pass at 60 s, of five one is.
    """
    last = (91, 8, 1000), (91, 1, 10)
    found = starts(jobs_slurm(8, *FIVE_SLURM[: 1 + count], *last), backfill=FEW)
    assert found[: 1 + count] == [0, 31, 31, 60, 60, 60][: 1 + count]
    assert found[-1] == 120


@pytest.mark.parametrize("count", [3, 4, 5])
def test_on_nodes_too(count: int) -> None:
    workload = jobs_slurm(8, *FIVE_SLURM[: 1 + count], (91, 8, 1000), (91, 1, 10))
    rules = {"policy": "fcfs", "backfill": FEW, "backfill_order": "fcfs", "threshold": None}
    rules |= {"estimate": "requested", "correction": "requested"}
    cluster = Cluster(groups=(NodeGroup("n", 8, {"core": 1}),))
    beside_reference(workload, {**rules, "allocation": "first-fit", "hold": None}, cluster)


def test_a_backfill_pass_without_an_event_comes_behind_a_pass_in_order() -> None:
    """At 60 s the pass in order starts two jobs, and the backfill pass looks at one."""
    assert starts(jobs_slurm(8, *FIVE_SLURM), backfill=f"{FEW}+bf_max_job_test=1") == [
        0,
        31,
        31,
        60,
        60,
        60,
    ]


@pytest.mark.slow
def test_a_backfill_pass_without_an_event_begins_with_preemption() -> None:
    """At 5 s job 2 is first of its queue, and no room can be made for it; at 30 s job 3 is.

    Job 1 cannot be stopped. Job 3 stops job 0.
    """
    queue = [1, 3, 2, 2]
    two = jobs_slurm(4, (0, 2, 1000), (0, 2, 1000), (5, 4, 100), (5, 2, 100), queue=queue)
    rules = {
        "backfill": "slurm",
        "policy": "processors if wait < 20 else -processors",
        "preemption": "queue:2>1",
    }

    def score(job: Any, now: int) -> float:
        return job.processors if now - job.submit < 20 else -job.processors

    slow = {"policy": score, "preemption": (queue, {(2, 1)}, "requeue")}
    assert starts(two, slow, **rules) == [1100, 0, 1000, 30]


def test_who_exceeds_a_quota_counts_among_the_first_and_not_for_its_user() -> None:
    """Job 1 exceeds the quota, job 2 does not fit, and job 3 could start behind it."""
    users = [1, 1, 2, 1]
    few = jobs_slurm(
        4, (0, 2, 100), (0, 1, 10), (0, 3, 100), (0, 1, 10), user_id=users, queue=[1, 1, 2, 2]
    )
    slow = {"quotas": [([1, 1, None, None], 1, math.inf)]}
    rules = {"quota": "queue=1:jobs=1"}
    assert starts(few, slow, **rules, backfill="slurm:bf_max_job_test=2")[3] == 110
    assert starts(few, slow, **rules, backfill="slurm:bf_max_job_test=3")[3] == 0
    assert starts(few, slow, **rules, backfill="slurm:bf_max_job_user=1")[3] == 0


class Case(NamedTuple):
    """Jobs, what restricts them, and when they start with passes per timestamp, and after events.

    ``jobs``: submission, run time, as requested, and processors of each; ``more``: columns.
    """

    processors: int
    jobs: list[tuple[int, int, int]]
    more: dict[str, list[int]]
    rules: dict[str, Any]
    together: list[int]
    apart: list[int]


FOUR = [(0, 10, 1), (0, 10, 1), (1, 5, 2), (2, 3, 2)]
CASES = {
    # at 10 s job 0 counts until its end is handled, though its processor counts as free
    "quota": Case(
        1,
        [(0, 10, 1), (10, 5, 1), (10, 5, 1)],
        {"user_id": [1, 1, 2]},
        {"quota": "user:jobs=1", "backfill": "none"},
        [0, 10, 15],
        [0, 15, 10],
    ),
    # at 10 s job 2 comes as soon as job 0 has ended, and starts before job 1 ends and job 3 comes
    "submitted": Case(
        2,
        FOUR,
        {"user_id": [1, 2, 1, 2]},
        {"quota": "user:submitted=1", "policy": "spf"},
        [0, 0, 13, 10],
        [0, 0, 10, 15],
    ),
    "dependencies": Case(
        2,
        FOUR,
        {"preceding_job": [-1, -1, 1, 2]},
        {"dependencies": "after", "policy": "spf"},
        [0, 0, 13, 10],
        [0, 0, 10, 15],
    ),
    # when the window ends at 10 s, job 1 comes and starts before job 2 comes
    "maintenance": Case(
        1,
        [(3, 5, 1), (10, 3, 1), (10, 1, 1)],
        {},
        {"maintenance": "5/10", "policy": "spf"},
        [14, 11, 10],
        [14, 10, 13],
    ),
    # no job is stopped in the second of its start, as job 0, or of its end, as job 1
    "preemption": Case(
        1,
        [(0, 10, 1), (0, 5, 1), (6, 2, 1)],
        {"queue": [1, 2, 3], "requested_time": [10, 9, 2]},
        {"preemption": "queue:3>2>1", "backfill": "none"},
        [8, 0, 6],
        [8, 1, 6],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_by_hand_events(case: Case) -> None:
    submit, run, processors = map(list, zip(*case.jobs, strict=True))
    columns = {
        "job_number": list(range(1, len(run) + 1)),
        "submit_time": submit,
        "run_time": run,
        "requested_time": run,
        "requested_processors": processors,
        **case.more,
    }
    jobs = Workload.from_columns(columns, processors=case.processors)
    for passes, starts in (("per-timestamp", case.together), ("per-event", case.apart)):
        result = hpcgym.simulate(jobs, passes=passes, **case.rules)
        slow = hpcgym.simulate(jobs, passes=passes, engine="reference", **case.rules)
        order = result.workload.job_number.argsort()
        assert result.start[order].tolist() == starts
        assert slow.start.tolist() == result.start.tolist()
        assert slow.restarts.tolist() == result.restarts.tolist()
        hpcgym.validate_schedule(result)
