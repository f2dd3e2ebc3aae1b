"""The slow simulator of shared nodes meets schedules worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hpcgym.reference import shared

EVERYTHING_1 = shared.Speedups([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0])


def share(
    jobs: list[tuple[int, ...]],
    nodes: int,
    speedups: shared.Speedups,
    ticks: int = 10,
    **rules: Any,
) -> list[shared.Job]:
    """Simulate (submit, run, processors, code[, requested]) on nodes of one socket of 4 cores."""
    given = [shared.Job(s, run, (*rest, run)[0], size, code) for s, run, size, code, *rest in jobs]
    return shared.simulate_shared(
        given, shared.Machine(nodes, 1, 4), shared.Rules(**rules), speedups, ticks=ticks
    )


def times(jobs: list[shared.Job]) -> list[tuple[int, int]]:
    return [(job.start, job.end) for job in jobs]


def nodes(jobs: list[shared.Job]) -> list[list[int]]:
    return [[node for node, _ in job.nodes] for job in jobs]


def test_ends_are_rounded_up_to_a_tick() -> None:
    third = shared.Speedups([[3.0]], [3.0])
    assert times(share([(0, 1, 2, 0)], 1, third, ticks=10)) == [(0, 4)]
    assert times(share([(0, 1, 2, 0)], 1, third, ticks=1000)) == [(0, 334)]
    assert times(share([(0, 1, 2, 0)], 1, third, ticks=1)) == [(0, 1)]


def test_a_faster_neighbour_changes_nothing() -> None:
    """Beside two jobs the one that slows more counts; the other comes and goes unnoticed."""
    pairs = [[1.0, 0.7, 1.5], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    speedups = shared.Speedups(pairs, [1.0, 1.0, 1.0])
    alone = share([(0, 7, 4, 0), (0, 20, 2, 1)], 2, speedups, partners="first")
    both = share([(0, 7, 4, 0), (0, 20, 2, 1), (1, 3, 2, 2)], 2, speedups, partners="first")
    assert alone[0].end == both[0].end == 100
    assert times(both)[2] == (10, 40)
    assert nodes(both)[2] == [1]


def test_compact_jobs_are_cut_at_their_request() -> None:
    jobs = share([(0, 10, 4, 0, 6)], 1, EVERYTHING_1, allocation=shared.COMPACT)
    assert times(jobs) == [(0, 60)]


def test_a_request_is_of_compact_work() -> None:
    """Slowed down to a half, a job that ends at its request runs for twice that."""
    slow = shared.Speedups([[0.5]], [1.0])
    jobs = share([(0, 10, 2, 0, 6), (0, 9, 2, 0, 6)], 1, slow)
    assert times(jobs) == [(0, 120), (0, 120)]


def test_what_cannot_be_placed_is_an_error() -> None:
    with pytest.raises(ValueError, match="larger than the machine"):
        share([(0, 1, 9, 0)], 2, EVERYTHING_1)
    with pytest.raises(ValueError, match="no cores"):
        share([(0, 1, 1, 0)], 2, EVERYTHING_1, parts=5)


def test_odd_cores_are_left_over() -> None:
    """Two sockets of 5 cores: a half has 2 of each, so that 5 processors need two nodes."""
    jobs = [shared.Job(0, 1, 1, 5, 0), shared.Job(0, 1, 1, 4, 0)]
    placed = shared.simulate_shared(jobs, shared.Machine(3, 2, 5), shared.Rules(), EVERYTHING_1)
    assert [job.needed for job in placed] == [2, 1]


def test_without_a_reservation_the_partner_starts() -> None:
    """The same jobs on one node: the head starts when the slowed one has ended.

    100 - 0.5 * 80 = 60 are left when job 2 ends, which began at 0: 0.5 * 40 = 20 done, 80 left.
    """
    slowing = shared.Speedups([[1.0, 0.5], [1.0, 1.0]], [1.0, 1.0])
    given = [(0, 10, 2, 0), (0, 5, 4, 0), (0, 4, 2, 1)]
    jobs = share(given, 1, slowing, backfill="fill")
    assert times(jobs) == [(0, 120), (120, 170), (0, 40)]
    assert [job.backfilled for job in jobs] == [False, False, True]
    assert [job.promised for job in jobs] == [-1, -1, -1]
    jobs = share(given, 1, slowing, backfill="none")
    assert times(jobs) == [(0, 100), (100, 150), (150, 190)]


def test_a_predicted_end_counts_with_being_alone() -> None:
    """Job 0 is twice as fast beside job 1 as alone, so the promise counts with alone.

    Both have 100 ticks; at 2 they end at 50. The first could be left alone at any time, for which
    a reservation for job 2 has to allow: promised 100, though it starts at 50.
    """
    speedups = shared.Speedups([[2.0]], [1.0])
    jobs = share([(0, 10, 2, 0), (0, 10, 2, 0), (0, 1, 4, 0)], 1, speedups)
    assert times(jobs) == [(0, 50), (0, 50), (50, 60)]
    assert jobs[2].promised == 100


def test_slack_is_used_up() -> None:
    """Five nodes: job 0 has three until 100, then job 1 needs four, so that one is slack.

    Job 2, on an idle node until 300, uses it. Job 3 would need another one: it waits, although
    there is an idle node. Job 4 ends by 100, and has that.
    """
    given = [(0, 10, 12, 0), (0, 10, 16, 0), (0, 30, 4, 0), (0, 30, 4, 0), (0, 10, 4, 0)]
    jobs = share(given, 5, EVERYTHING_1, allocation=shared.COMPACT)
    assert times(jobs) == [(0, 100), (100, 200), (0, 300), (200, 500), (0, 100)]
    assert nodes(jobs) == [[0, 1, 2], [0, 1, 2, 4], [3], [0], [4]]


def test_slack_of_shared_nodes() -> None:
    """Job 0 has a half of three nodes until 100; job 1 is compact and needs three nodes.

    With three nodes there is no slack: job 2, up to 300, may not start on any; job 3 ends in time.
    With a fourth one job 2 may spoil one node for the head, and goes beside job 0.
    """
    given = [(0, 10, 6, 0), (0, 10, 10, 0), (0, 30, 2, 0), (0, 10, 2, 0)]
    jobs = share(given, 3, EVERYTHING_1)
    assert jobs[1].shape == shared.COMPACT
    assert times(jobs) == [(0, 100), (100, 200), (200, 500), (0, 100)]
    jobs = share(given, 4, EVERYTHING_1, partners="fill")
    assert nodes(jobs) == [[0, 1, 2], [1, 2, 3], [0], [1]]
    assert times(jobs) == [(0, 100), (100, 200), (0, 300), (0, 100)]


def test_who_leaves_a_part_to_the_head_takes_nothing_from_it() -> None:
    """Jobs 0 and 1 have all but a half of node 1; job 2 needs a half of each node, from 100 on.

    Job 3 runs until 300 on the half that is free: at 100 job 0 leaves the other one.
    """
    given = [(0, 10, 4, 0), (0, 20, 2, 0), (0, 5, 4, 0), (0, 30, 2, 0)]
    jobs = share(given, 2, EVERYTHING_1)
    assert nodes(jobs) == [[0, 1], [0], [0, 1], [1]]
    assert times(jobs) == [(0, 100), (0, 200), (100, 150), (0, 300)]
    assert jobs[2].promised == 100


def test_who_is_no_partner_of_the_head_takes_its_node() -> None:
    """The same jobs, but job 3 is of code 1, and its mean with the head, of code 2, is 0.5."""
    pairs = [[1.0, 1.0, 1.0], [1.0, 1.0, 0.5], [1.0, 0.5, 1.0]]
    speedups = shared.Speedups(pairs, [1.0, 1.0, 1.0])
    given = [(0, 10, 4, 0), (0, 20, 2, 0), (0, 5, 4, 2), (0, 30, 2, 1)]
    jobs = share(given, 2, speedups, pairs_above=0.9)
    # when the head has gone, at 150, job 1 has a half of node 0, and all of node 1 is free
    assert times(jobs) == [(0, 100), (0, 200), (100, 150), (150, 450)]
    assert nodes(jobs)[3] == [0]


def test_nodes_without_slack_are_passed_over() -> None:
    """Nodes 0 and 1 are job 0's until 100, and all that the head then has: it needs two, compact.

    Job 3 is 1.5 times as fast there. It runs longer, and goes to node 2, beside job 1, at 1.25.
    """
    pairs = [[1.0, 1.0, 1.0], [0.5, 1.0, 1.0], [1.5, 1.25, 1.0]]
    speedups = shared.Speedups(pairs, [1.0, 1.0, 1.0])
    given = [(0, 10, 4, 0), (0, 50, 2, 1), (0, 5, 7, 0), (0, 40, 2, 2)]
    jobs = share(given, 3, speedups)
    assert jobs[2].shape == shared.COMPACT
    assert nodes(jobs) == [[0, 1], [2], [0, 1], [2]]
    assert times(jobs) == [(0, 100), (0, 500), (100, 150), (0, 320)]


@pytest.mark.parametrize(
    ("partners", "chosen"), [("best", [0, 2]), ("fill", [1, 2]), ("first", [0, 1])]
)
def test_partners(partners: str, chosen: list[int]) -> None:
    """At 20 node 0 is idle, code 0 is on node 1, code 1 on node 2, and code 2 comes.

    It is 1.1 times as fast beside 0, 1.5 beside 1, and 1.2 alone. Two jobs of code 3 have had node
    0 until then; codes 0 and 1 are no partners.
    """
    pairs = [[1.0, 0.5, 1.0, 1.0], [0.5, 1.0, 1.0, 1.0], [1.1, 1.5, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0]]
    speedups = shared.Speedups(pairs, [1.0, 1.0, 1.2, 1.0])
    given = [(0, 1, 2, 3), (0, 1, 2, 3), (0, 9, 2, 0), (0, 9, 2, 1), (2, 1, 4, 2)]
    jobs = share(given, 4, speedups, partners=partners, pairs_above=1.0)
    assert nodes(jobs) == [[0], [0], [1], [2], chosen]


def test_believed_speedups_choose_and_true_ones_hold() -> None:
    """The scheduler believes that code 1 is fast beside code 0; it is slow."""
    true = shared.Speedups([[1.0, 1.0], [0.5, 1.0]], [1.0, 1.0])
    believed = shared.Speedups([[1.0, 1.0], [1.5, 1.0]], [1.0, 1.0])
    jobs = [shared.Job(0, 10, 10, 2, 0), shared.Job(0, 10, 10, 2, 1)]
    machine = shared.Machine(2, 1, 4)
    knowing = shared.simulate_shared(jobs, machine, shared.Rules(), true, ticks=10)
    assert nodes(knowing) == [[0], [1]]
    assert times(knowing) == [(0, 100), (0, 100)]
    misled = shared.simulate_shared(jobs, machine, shared.Rules(), true, believed, ticks=10)
    assert nodes(misled) == [[0], [0]]
    assert times(misled) == [(0, 100), (0, 150)]


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
    ],
)
def test_orders_of_the_queue(order: str, started: list[int]) -> None:
    """One node, compact, one job after the other. Areas: 30 * 4, 20 * 3, 40 * 2."""
    given = [(0, 10, 4, 0), (1, 30, 4, 0), (2, 20, 3, 0), (3, 40, 2, 0)]
    jobs = share(given, 1, EVERYTHING_1, allocation=shared.COMPACT, backfill="none", order=order)
    assert [job.number for job in sorted(jobs, key=lambda job: job.start)] == started


def test_fit_fills_what_is_free() -> None:
    """Of three idle nodes 1, 1, 3 and 2 are a third, a third, all and two thirds.

    At 100 job 3 is first again; job 0 fills the last node, on which job 1 follows.
    """
    given = [(0, 10, 4, 0), (0, 20, 4, 0), (0, 10, 12, 0), (0, 10, 8, 0)]
    rules = {"allocation": shared.COMPACT, "backfill": "none"}
    jobs = share(given, 3, EVERYTHING_1, order=(1.0, 0.0, 0.0), **rules)
    assert times(jobs) == [(100, 200), (200, 400), (0, 100), (100, 200)]


def test_popular_jobs_come_first() -> None:
    """Code 1 is good with all others, code 0 only with it: 1/2, 1/2, 1."""
    speedups = shared.Speedups([[0.5, 1.2], [1.2, 1.2]], [1.0, 1.0])
    given = [(0, 10, 4, 0), (0, 10, 4, 0), (0, 10, 4, 1)]
    rules = {"allocation": shared.COMPACT, "backfill": "none", "order": (0.0, 1.0, 0.0)}
    jobs = share(given, 1, speedups, **rules)
    assert [job.start for job in jobs] == [100, 200, 0]


def test_short_jobs_come_first() -> None:
    given = [(0, 30, 4, 0), (0, 10, 4, 0), (0, 20, 4, 0)]
    rules = {"allocation": shared.COMPACT, "backfill": "easy", "order": (0.0, 0.0, 1.0)}
    jobs = share(given, 1, EVERYTHING_1, **rules)
    assert [job.start for job in jobs] == [300, 0, 100]
    assert all(job.promised == -1 for job in jobs)


def test_the_estimate_moves_the_promise() -> None:
    given = [(0, 10, 4, 0, 20), (0, 10, 4, 0, 20)]
    promised = {
        estimate: share(given, 1, EVERYTHING_1, allocation=shared.COMPACT, estimate=estimate)[
            1
        ].promised
        for estimate in ("clairvoyant", "requested", "double-requested")
    }
    assert promised == {"clairvoyant": 100, "requested": 200, "double-requested": 400}


def test_a_neighbour_of_a_killed_job_is_renewed_at_its_end() -> None:
    slow = shared.Speedups([[0.5]], [1.0])
    jobs = share([(0, 9, 2, 0, 2), (0, 10, 2, 0)], 1, slow)
    assert jobs[0].end == 40
    assert jobs[1].end == 40 + 80


def test_the_given_jobs_are_untouched() -> None:
    job = shared.Job(0, 1, 1, 1, 0)
    (done,) = shared.simulate_shared([job], shared.Machine(1, 1, 4), shared.Rules(), EVERYTHING_1)
    assert (job.start, job.number, done.start) == (-1, -1, 0)


def test_filling_by_scores() -> None:
    """One node, the shortest first: job 1 needs all of it, and 0 and 3 are as short as each other.

    In the second case job 1 comes before job 2, which starts while it cannot.
    """
    given = [(0, 20, 2, 0), (0, 10, 4, 0), (0, 40, 2, 0), (0, 20, 2, 0)]
    rules = {"backfill": "fill", "order": (0.0, 0.0, 1.0)}
    jobs = share(given, 1, EVERYTHING_1, **rules)
    assert times(jobs) == [(100, 300), (0, 100), (300, 700), (100, 300)]
    assert not any(job.backfilled for job in jobs)
    given = [(0, 10, 2, 0), (0, 20, 4, 0), (0, 40, 2, 0)]
    jobs = share(given, 1, EVERYTHING_1, **rules)
    assert times(jobs) == [(0, 100), (400, 600), (0, 400)]
    assert [job.backfilled for job in jobs] == [False, False, True]


def test_rounding_moves_no_promise() -> None:
    """Job 0 has 70 ticks at 0.7, and alone no more: expected at 100, which the head is promised.

    Job 1 goes at 40. 28 are done, but 70 - 0.7 * 40 is a little more than 42 in double precision,
    which would be expected at 101. Job 4, on the other node at 1.15, would end at 101 and so waits;
    70 / 1.15 is 60.9. Beside job 2 alone job 0 has rate 0.8, from 80 on 0.7: it ends at 95.
    """
    pairs = [[1.0, 0.7, 0.8, 1.0], [1.0] * 4, [1.0] * 4, [0.1] * 4]
    speedups = shared.Speedups(pairs, [0.7, 1.0, 1.0, 1.15])
    given = [shared.Job(0, 7, 7, 1, 0), shared.Job(0, 4, 4, 1, 1), shared.Job(0, 8, 8, 1, 2)]
    given += [shared.Job(0, 5, 5, 4, 0), shared.Job(4, 7, 7, 1, 3)]
    jobs = shared.simulate_shared(
        given, shared.Machine(2, 1, 3), shared.Rules(parts=3), speedups, ticks=10
    )
    assert nodes(jobs) == [[0], [0], [0], [0, 1], [0]]
    assert times(jobs)[1:] == [(0, 40), (0, 80), (95, 145), (145, 206)]
    assert jobs[3].promised == 100
