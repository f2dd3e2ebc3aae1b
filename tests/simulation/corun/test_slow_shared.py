"""The slow simulator of shared nodes meets schedules worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from mistakes import mistakes_of

from hpcgym.reference import shared

ONES = shared.Speedups([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0])
COMPACT = {"allocation": shared.COMPACT}
BLOCKS = {**COMPACT, "backfill": "none"}


def of_pairs(*pairs: list[float], alone: list[float] | None = None) -> shared.Speedups:
    return shared.Speedups(list(pairs), alone or [1.0] * len(pairs))


def share(
    jobs: list[tuple[int, ...]],
    nodes: int,
    speedups: shared.Speedups = ONES,
    ticks: int = 10,
    **rules: Any,
) -> list[shared.SharedJob]:
    """Simulate (submit, run, processors, code[, requested]) on nodes of one socket of 4 cores."""
    given = [
        shared.SharedJob(s, run, (*rest, run)[0], size, code) for s, run, size, code, *rest in jobs
    ]
    return shared.simulate_shared(
        given, shared.SharedMachine(nodes, 1, 4), shared.SharedRules(**rules), speedups, ticks=ticks
    )


SLOW, SLOWING = of_pairs([0.5]), of_pairs([1.0, 0.5], [1.0, 1.0])
LONE = [(0, 1, 2, 0)]
THIRD = of_pairs([3.0], alone=[3.0])
# beside two jobs the one that slows more counts; the other comes and goes unnoticed
TWO_BESIDE = of_pairs([1.0, 0.7, 1.5], [1.0] * 3, [1.0] * 3)
# job 0 has a half of node 0; the head needs both nodes; job 2 would slow job 0 down
HEAD = [(0, 10, 2, 0), (0, 5, 4, 0), (0, 4, 2, 1)]
# jobs 0 and 1 have all but a half of node 1; job 2 needs a half of each node, from 100 on
LEAVES = [(0, 10, 4, 0), (0, 20, 2, 0), (0, 5, 4, 0), (0, 30, 2, 0)]
# job 0 has a half of three nodes until 100; job 1 is compact and needs three nodes
WIDE = [(0, 10, 6, 0), (0, 10, 10, 0), (0, 30, 2, 0), (0, 10, 2, 0)]
# of three idle nodes 1, 1, 3 and 2 are a third, a third, all and two thirds
FITS = [(0, 10, 4, 0), (0, 20, 4, 0), (0, 10, 12, 0), (0, 10, 8, 0)]
# job 1 needs all of the node; 0 and 3 are as short as each other
SHORT = [(0, 20, 2, 0), (0, 10, 4, 0), (0, 40, 2, 0), (0, 20, 2, 0)]
# job 0 has two of three nodes until 100, job 1 needs all
ONE_NODE_LEFT = [(0, 10, 8, 0), (0, 5, 12, 0)]
FILL = {"backfill": "fill", "order": (0.0, 0.0, 1.0)}
#: Jobs, nodes, speedups, rules, and start and end of each job.
TIMES: dict[str, tuple[Any, ...]] = {
    "an end is rounded up to a tick": (LONE, 1, THIRD, {"ticks": 10}, [(0, 4)]),
    "of a thousand": (LONE, 1, THIRD, {"ticks": 1000}, [(0, 334)]),
    "of a second": (LONE, 1, THIRD, {"ticks": 1}, [(0, 1)]),
    "compact jobs are cut at their request": ([(0, 10, 4, 0, 6)], 1, ONES, COMPACT, [(0, 60)]),
    "a request is of compact work": (
        [(0, 10, 2, 0, 6), (0, 9, 2, 0, 6)], 1, SLOW, {}, [(0, 120), (0, 120)],
    ),
    "a neighbour of a killed job is renewed at its end": (
        [(0, 9, 2, 0, 2), (0, 10, 2, 0)], 1, SLOW, {}, [(0, 40), (0, 120)],
    ),
    "a faster neighbour changes nothing": (
        [(0, 7, 4, 0), (0, 20, 2, 1), (1, 3, 2, 2)], 2, TWO_BESIDE, {"partners": "first"},
        [(0, 100), (0, 200), (10, 40)],
    ),
    # 100 - 0.5 * 80 = 60 are left when job 2 ends; 0.5 * 40 = 20 done, 80 left
    "without a reservation the partner starts": (
        HEAD, 1, SLOWING, {"backfill": "fill"}, [(0, 120), (120, 170), (0, 40)],
    ),
    "and waits where nobody is backfilled": (
        HEAD, 1, SLOWING, {"backfill": "none"}, [(0, 100), (100, 150), (150, 190)],
    ),
    # one node is slack: job 2 uses it; job 3 would need another one; job 4 ends in time
    "slack is used up": (
        [(0, 10, 12, 0), (0, 10, 16, 0), (0, 30, 4, 0), (0, 30, 4, 0), (0, 10, 4, 0)],
        5, ONES, COMPACT, [(0, 100), (100, 200), (0, 300), (200, 500), (0, 100)],
    ),
    "no slack, also beside somebody": (
        WIDE, 3, ONES, {}, [(0, 100), (100, 200), (200, 500), (0, 100)],
    ),
    "a node to spare": (
        WIDE, 4, ONES, {"partners": "fill"}, [(0, 100), (100, 200), (0, 300), (0, 100)],
    ),
    "who leaves a part to the head takes nothing from it": (
        LEAVES, 2, ONES, {}, [(0, 100), (0, 200), (100, 150), (0, 300)],
    ),
    # job 3 is of code 1, whose mean with the head, of code 2, is 0.75
    "who is no partner of the head takes its node": (
        [*LEAVES[:2], (0, 5, 4, 2), (0, 30, 2, 1)], 2,
        of_pairs([1.0] * 3, [1.0, 1.0, 0.5], [1.0, 0.5, 1.0]), {"pairs_above": 0.9},
        [(0, 100), (0, 200), (100, 150), (150, 450)],
    ),
    # nodes 0 and 1 are all that the head has; job 3 is 1.5 times as fast there, 1.25 on node 2
    "nodes without slack are passed over": (
        [(0, 10, 4, 0), (0, 50, 2, 1), (0, 5, 7, 0), (0, 40, 2, 2)], 3,
        of_pairs([1.0] * 3, [0.5, 1.0, 1.0], [1.5, 1.25, 1.0]), {},
        [(0, 100), (0, 500), (100, 150), (0, 320)],
    ),
    # at 100 job 3 is first again; job 0 fills the last node, on which job 1 follows
    "fit fills what is free": (
        FITS, 3, ONES, {**BLOCKS, "order": (1.0, 0.0, 0.0)},
        [(100, 200), (200, 400), (0, 100), (100, 200)],
    ),
    # code 1 is good with all others, code 0 only with it: 1/2, 1/2, 1
    "popular jobs come first": (
        [(0, 10, 4, 0), (0, 10, 4, 0), (0, 10, 4, 1)], 1, of_pairs([0.5, 1.2], [1.2, 1.2]),
        {**BLOCKS, "order": (0.0, 1.0, 0.0)}, [(100, 200), (200, 300), (0, 100)],
    ),
    "filling by scores": (SHORT, 1, ONES, FILL, [(100, 300), (0, 100), (300, 700), (100, 300)]),
    "first-come: over when the reservation begins": (
        [*ONE_NODE_LEFT, (0, 10, 4, 0)], 3, ONES, {**COMPACT, "backfill": "first-come:1"},
        [(0, 100), (100, 150), (0, 100)],
    ),
    "first-come: no more than so many behind it": (
        [*ONE_NODE_LEFT, (0, 11, 4, 0), (0, 5, 4, 0)], 3, ONES,
        {**COMPACT, "backfill": "first-come:1"}, [(0, 100), (100, 150), (150, 260), (150, 200)],
    ),
    # jobs 0 and 2 are over at 100 as requested, and slow each other down
    "first-come: as requested, whatever the speed": (
        [(0, 10, 2, 0), (0, 5, 8, 0), (0, 10, 2, 0)], 2, SLOW,
        {"backfill": "first-come:9", "partners": "used"}, [(0, 200), (200, 250), (0, 200)],
    ),
    "filling past one that does not fit": (
        [(0, 10, 2, 0), (0, 20, 4, 0), (0, 40, 2, 0)], 1, ONES, FILL,
        [(0, 100), (400, 600), (0, 400)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TIMES)
def test_starts_and_ends(name: str) -> None:
    given, nodes, speedups, rules, expected = TIMES[name]
    jobs = share(given, nodes, speedups, **rules)
    assert [(job.start, job.end) for job in jobs] == expected
    if rules.get("backfill") == "fill":
        passes = "past" in name or "partner" in name
        assert [job.number for job in jobs if job.backfilled] == [2] * passes
        assert {job.promised for job in jobs} == {-1}


def test_odd_cores_are_left_over() -> None:
    """Two sockets of 5 cores: a half has 2 of each, so that 5 processors need two nodes."""
    jobs = [shared.SharedJob(0, 1, 1, 5, 0), shared.SharedJob(0, 1, 1, 4, 0)]
    placed = shared.simulate_shared(jobs, shared.SharedMachine(3, 2, 5), shared.SharedRules(), ONES)
    assert [job.needed for job in placed] == [2, 1]
    assert (jobs[0].start, jobs[0].number) == (-1, -1)  # what is given is untouched


def test_a_predicted_end_counts_with_being_alone() -> None:
    """At 2 both end at 50; either could be left alone at any time: job 2 is promised 100."""
    twice = of_pairs([2.0])
    jobs = share([(0, 10, 2, 0), (0, 10, 2, 0), (0, 1, 4, 0)], 1, twice)
    assert [(job.start, job.end) for job in jobs] == [(0, 50), (0, 50), (50, 60)]
    assert jobs[2].promised == 100


@pytest.mark.parametrize(
    ("partners", "chosen"), [("best", [0, 2]), ("fill", [1, 2]), ("first", [0, 1])]
)
def test_partners(partners: str, chosen: list[int]) -> None:
    """At 20 node 0 is idle, code 0 is on node 1, code 1 on node 2, and code 2 comes.

    It is 1.1 times as fast beside 0, 1.5 beside 1, and 1.2 alone. Two jobs of code 3 have had node
    0 until then; codes 0 and 1 are no partners.
    """
    pairs = [[1.0, 0.5, 1.0, 1.0], [0.5, 1.0, 1.0, 1.0], [1.1, 1.5, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0]]
    given = [(0, 1, 2, 3), (0, 1, 2, 3), (0, 9, 2, 0), (0, 9, 2, 1), (2, 1, 4, 2)]
    speedups = of_pairs(*pairs, alone=[1.0, 1.0, 1.2, 1.0])
    jobs = share(given, 4, speedups, partners=partners, pairs_above=1.0)
    assert [[node for node, _ in job.nodes] for job in jobs] == [[0], [0], [1], [2], chosen]


def test_believed_speedups_choose_and_true_ones_hold() -> None:
    """The scheduler believes that code 1 is fast beside code 0; it is slow."""
    true, believed = of_pairs([1.0, 1.0], [0.5, 1.0]), of_pairs([1.0, 1.0], [1.5, 1.0])
    jobs = [shared.SharedJob(0, 10, 10, 2, 0), shared.SharedJob(0, 10, 10, 2, 1)]
    given = jobs, shared.SharedMachine(2, 1, 4), shared.SharedRules(), true
    for believes, node, end in ((None, 1, 100), (believed, 0, 150)):
        simulated = shared.simulate_shared(*given, believes, ticks=10)
        assert (simulated[1].nodes[0][0], simulated[1].end) == (node, end)


@pytest.mark.parametrize(
    ("order", "started"),
    [
        ("fcfs", [0, 1, 2, 3]),
        ("lcfs", [0, 3, 2, 1]),
        ("sjf", [0, 2, 1, 3]),
        ("lpf", [0, 3, 1, 2]),
        ("sqf", [0, 3, 2, 1]),
        ("lqf", [0, 1, 2, 3]),
        ("saf", [0, 2, 3, 1]),
        ((0.0, 0.0, 1.0), [0, 2, 1, 3]),
    ],
)
def test_orders_of_the_queue(order: Any, started: list[int]) -> None:
    """One node, compact, one job after the other. Areas: 30 * 4, 20 * 3, 40 * 2."""
    given = [(0, 10, 4, 0), (1, 30, 4, 0), (2, 20, 3, 0), (3, 40, 2, 0)]
    jobs = share(given, 1, **BLOCKS, order=order)
    assert [job.number for job in sorted(jobs, key=lambda job: job.start)] == started


def test_the_estimate_moves_the_promise() -> None:
    given = [(0, 10, 4, 0, 20), (0, 10, 4, 0, 20)]
    for estimate, promised in {
        "clairvoyant": 100,
        "requested": 200,
        "double-requested": 400,
    }.items():
        assert share(given, 1, **COMPACT, estimate=estimate)[1].promised == promised


def test_rounding_moves_no_promise() -> None:
    """Job 0 has 70 ticks at 0.7, and alone no more: expected at 100, which the head is promised.

    Job 1 goes at 40. 28 are done, but 70 - 0.7 * 40 is a little more than 42 in double precision,
    which would be expected at 101. Job 4, on the other node at 1.15, would end at 101 and so waits;
    70 / 1.15 is 60.9. Beside job 2 alone job 0 has rate 0.8, from 80 on 0.7: it ends at 95.
    """
    pairs = [[1.0, 0.7, 0.8, 1.0], [1.0] * 4, [1.0] * 4, [0.1] * 4]
    speedups = of_pairs(*pairs, alone=[0.7, 1.0, 1.0, 1.15])
    given = [
        shared.SharedJob(0, 7, 7, 1, 0),
        shared.SharedJob(0, 4, 4, 1, 1),
        shared.SharedJob(0, 8, 8, 1, 2),
    ]
    given += [shared.SharedJob(0, 5, 5, 4, 0), shared.SharedJob(4, 7, 7, 1, 3)]
    jobs = shared.simulate_shared(
        given, shared.SharedMachine(2, 1, 3), shared.SharedRules(parts=3), speedups, ticks=10
    )
    assert [job.nodes[0][0] for job in jobs] == [0] * 5
    assert [(job.start, job.end) for job in jobs[1:]] == [(0, 40), (0, 80), (95, 145), (145, 206)]
    assert jobs[3].promised == 100


test_mistakes = mistakes_of(globals(), errors=ValueError)
