"""Schedules with shared nodes are proved; broken ones are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from shared_strategies import Case, cases, with_files

from hpcgym.reference.shared import FileSystem, SharedJob, SharedMachine, SharedRules, Speedups
from hpcgym.validation import corun

RANDOM = settings(max_examples=100)
SHAPES = {"compact": corun.COMPACT, "spread": corun.SPREAD, "part": corun.PART}


def shared(case: Case, jobs: list[SharedJob]) -> corun.SharedSchedule:
    def ints(values: list[int]) -> Any:
        return np.array(values, np.int64)

    cells = [cell for job in jobs for cell in job.nodes]
    return corun.SharedSchedule(
        case.ticks,
        ints([job.submit * case.ticks for job in jobs]),
        ints([job.start for job in jobs]),
        ints([job.end for job in jobs]),
        ints([min(job.run, job.requested) * case.ticks for job in jobs]),
        ints([job.promised for job in jobs]),
        ints([job.processors for job in jobs]),
        ints([job.code for job in jobs]),
        np.array([SHAPES[job.shape] for job in jobs], np.int8),
        ints([0, *np.cumsum([len(job.nodes) for job in jobs]).tolist()]),
        ints([node for node, _ in cells]),
        ints([parts for _, parts in cells]),
        np.array(case.true.pairs),
        np.array(case.true.alone),
        case.machine.nodes,
        case.machine.sockets,
        case.machine.cores,
        case.rules.parts,
        files_of(case, jobs),
    )


def files_of(case: Case, jobs: list[SharedJob]) -> corun.FileTraffic | None:
    if case.files is None:
        return None
    share, demand = np.array(case.files.share), np.array(case.files.demand)
    code = [job.code for job in jobs]
    asked = demand[code] * np.array([job.processors for job in jobs])
    return corun.FileTraffic(float(case.files.bandwidth), share[code], asked)


def wrong(case: Case, jobs: list[SharedJob], *, guaranteed: bool = False) -> dict[str, list[str]]:
    wanted = SHAPES[case.rules.allocation]
    proofs = dict(corun.prove_shared(shared(case, jobs), wanted, guaranteed=guaranteed))
    return {name: texts for name, texts in proofs.items() if texts}


@RANDOM
@given(cases() | with_files(cases()))
def test_schedules_of_the_slow_simulator_are_proved(case: Case) -> None:
    schedule, wanted = shared(case, case.simulate()), SHAPES[case.rules.allocation]
    proofs = list(corun.prove_shared(schedule, wanted, guaranteed=False))
    assert proofs == [("places", []), ("events", []), ("parts", []), ("work", [])]


@RANDOM
@given(cases(backfill="easy", order="fcfs", knows=True))
def test_its_promises_are_kept(case: Case) -> None:
    assert wrong(case, case.simulate(), guaranteed=True) == {}


# --- Each property by hand -----------------------------------------------------------------------

FAST = Speedups(((1.0, 0.5), (1.25, 1.0)), (1.0, 1.5))


def two_beside_each_other() -> tuple[Case, list[SharedJob]]:
    """On node 0 of 2: job 0 ends at 200 ticks; job 1 at 80, then job 2 takes its part."""
    rows = ((0, 10, 10, 2, 0), (0, 10, 10, 2, 1), (0, 10, 10, 8, 0))
    case = Case(rows, SharedMachine(2, 1, 4), SharedRules(partners="fill"), FAST, None, 10)
    jobs = case.simulate()
    assert [(job.start, job.end) for job in jobs] == [(0, 140), (0, 80), (140, 240)]
    assert wrong(case, jobs) == {}
    return case, jobs


@pytest.mark.parametrize("ticks", [-2, 2])
def test_an_end_that_is_moved(ticks: int) -> None:
    """Job 0 does 0.5 beside job 1, then 1: two ticks are two of its work."""
    case, jobs = two_beside_each_other()
    jobs[2].start += ticks  # as it starts when job 0 ends
    jobs[2].end += ticks
    jobs[0].end += ticks
    (text,) = corun.check_work(shared(case, jobs))
    assert text.startswith(f"job 0 does {'9.8' if ticks < 0 else '10.2'}00000000 s")
    assert "(and" not in text


#: What is changed, and what the first line of the proof of its name says then.
TOLD: list[tuple[str, dict[str, Any], str]] = [
    ("places", {"first": [0, 1, 2]}, "has first of shape (3,)"),
    ("places", {"first": [0, 3, 2, 4]}, "cells of job 1 end before they begin"),
    ("places", {"processors": [3, 2, 8]}, "job 0 has 1 nodes instead of 2"),
    ("places", {"node": [2, 0, 0, 1]}, "job 0 is on node 2"),
    ("places", {"units": [1, 1, 2, 1]}, "job 2 has 1 parts of node 1 instead of 2"),
    ("places", {"node": [0, 0, 0, 0]}, "job 2 has node 0 twice"),
    ("places", {"shape": [2, 2, 2]}, "job 2 has shape 2 instead of 0"),
    ("starts", {"submit": [0, 0, 150]}, "job 2 starts at 14.000000000 s, before its submission at"),
    ("starts", {"start": [0, 0, 141]}, "job 2 starts at 14.100000000 s, when no job is submitted"),
    ("starts", {"end": [140, 0, 240]}, "job 1 does not end after its start at 0.000000000 s"),
    ("promises", {"promised": [-1, -1, 139]}, "job 2 starts at 14.000000000 s, after its promised"),
]


@pytest.mark.parametrize(("proof", "change", "message"), TOLD)
def test_what_is_wrong_is_named(proof: str, change: dict[str, Any], message: str) -> None:
    case, jobs = two_beside_each_other()
    right = shared(case, jobs)
    assert right.shape.tolist() == [corun.PART, corun.PART, corun.COMPACT]  # the last is too large
    assert "job 0 has shape 2 instead of 0" in corun.check_places(right, corun.COMPACT)[0]
    checks = {
        "places": lambda schedule: corun.check_places(schedule, corun.PART),
        "starts": corun.check_starts,
        "promises": corun.check_promises,
    }
    for part, schedule in (("", right), (message, right._replace(**change_of(right, change)))):
        violations = checks[proof](schedule)
        assert (part in violations[0]) if part else (violations == [])


def change_of(right: corun.SharedSchedule, change: dict[str, Any]) -> dict[str, Any]:
    """The changed columns, of the types that they have."""
    return {name: np.array(new, getattr(right, name).dtype) for name, new in change.items()}


def test_a_part_that_two_have_at_once() -> None:
    """Job 2 needs all of both nodes; job 0 has a part of node 0 up to 140."""
    case, jobs = two_beside_each_other()
    jobs[2].start = 80
    assert set(wrong(case, jobs)) == {"parts"}


@pytest.mark.parametrize("slower", [False, True])
def test_work_in_congestion_is_proved(slower: bool) -> None:
    """Job 0 reads half of the time; both ask for twice what there is: rate 1 / 1.5."""
    ones, files = Speedups(((1.0,),), (1.0,)), FileSystem(4, (0.5,), (1,))
    rows = ((0, 10, 10, 4, 0), (0, 10, 10, 4, 0))
    case = Case(
        rows, SharedMachine(2, 1, 4), SharedRules(allocation="compact"), ones, None, 10, files
    )
    jobs = case.simulate()
    assert [job.end for job in jobs] == [150, 150]
    if slower:
        for job in jobs:
            job.end = 154
    assert set(wrong(case, jobs)) == ({"work"} if slower else set())


def test_promises_are_proved_where_they_hold() -> None:
    case, jobs = two_beside_each_other()
    jobs[2].promised = 100
    assert set(wrong(case, jobs, guaranteed=True)) == {"reservations"}
    assert wrong(case, jobs) == {}
