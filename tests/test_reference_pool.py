"""The oracle against schedules worked out by hand, and against the published values.

Jobs are rows (submit, processors, run, requested[, user]); they are called A, B, C ... in that
order. In the drawings a column is a second (or what the drawing says), a row a processor.
"""

import gzip
import math

import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import workloads

from hpcgym.reference.jobs import Job, jobs_of
from hpcgym.reference.orders import POLICIES, f1, f2, f3, f4, unicef, weighted, wfp3
from hpcgym.reference.pool import simulate_pool


def simulated(rows, processors, **words):
    return simulate_pool([Job(*row) for row in rows], processors, **words)


def starts(rows, processors, **words):
    return [job.start for job in simulated(rows, processors, **words)]


# --- Order of the queue ----------------------------------------------------------------------


def test_without_backfilling_a_blocked_head_blocks_all():
    # A . . . B B B C C C
    # . . . . B B B . . .    C would fit beside A, but B comes first.
    rows = [(0, 1, 4, 4), (0, 2, 3, 3), (0, 1, 3, 3)]
    jobs = simulated(rows, 2)
    assert [job.start for job in jobs] == [0, 4, 7]
    assert [job.end for job in jobs] == [4, 7, 10]
    assert not any(job.backfilled for job in jobs)
    assert [job.reserved_start for job in jobs] == [-1, -1, -1]


def test_a_job_is_killed_at_its_requested_time():
    killed, next_one = simulated([(0, 1, 10, 6), (0, 1, 6, 6)], 1)
    assert (killed.end, killed.killed) == (6, True)
    assert (next_one.start, next_one.killed) == (6, False)


def test_given_jobs_are_not_touched():
    given = [Job(0, 1, 10, 10)]
    simulate_pool(given, 1)
    assert [vars(job) for job in given] == [vars(Job(0, 1, 10, 10))]


# A holds all 4 processors for 100 s. No two of B (3 processors, 10 s), C (4, 5 s), D (2, 21 s) fit
# together, so they run one after another in the order of the policy.
ORDERS = {
    "fcfs": "BCD",
    "lcfs": "DCB",
    "spf": "CBD",  # 10, 5, 21
    "sjf": "CBD",
    "lpf": "DBC",
    "sqf": "DBC",  # 3, 4, 2
    "lqf": "CBD",
    "saf": "CBD",  # 30, 20, 42
    "laf": "DBC",
    "srf": "CBD",  # 3.3, 1.25, 10.5
    "lrf": "DBC",
    "lexp": "CBD",  # at 100 s: 99/10, 98/5, 97/21
    "sexp": "DBC",
    "wfp3": "CBD",  # 9.9^3 * 3, 19.6^3 * 4, 4.6^3 * 2
    "unicef": "CBD",  # 99/15.8, 98/10, 97/21
    "f1": "BCD",  # log10 of the submit times 1, 2, 3 outweighs the rest
    "f2": "BCD",
    "f3": "BCD",
    "f4": "BCD",
}
ORDERS_SUBMITTED_TOGETHER = {
    "fcfs": "BCD",  # a tie: submission order
    "lcfs": "BCD",
    "f1": "DCB",  # 1 * 3, 0.70 * 4, 1.32 * 2
    "f2": "CDB",  # 3.16 * 3, 2.24 * 4, 4.58 * 2
    "f3": "CBD",
    "f4": "CBD",  # 10 * 1.73, 5 * 2, 21 * 1.41
}


def order_of(rows, **words):
    jobs = simulated(rows, 4, **words)[1:]
    return "".join(name for _, name in sorted((job.start, "BCD"[job.number - 1]) for job in jobs))


@pytest.mark.parametrize("policy", POLICIES)
def test_primary_order(policy):
    rows = [(0, 4, 100, 100), (1, 3, 10, 10), (2, 4, 5, 5), (3, 2, 21, 21)]
    assert order_of(rows, policy=policy) == ORDERS[policy]


@pytest.mark.parametrize("policy", ORDERS_SUBMITTED_TOGETHER)
def test_primary_order_of_jobs_submitted_together(policy):
    rows = [(0, 4, 100, 100), (9, 3, 10, 10), (9, 4, 5, 5), (9, 2, 21, 21)]
    assert order_of(rows, policy=policy) == ORDERS_SUBMITTED_TOGETHER[policy]


def test_policies_see_the_requested_time_not_the_prediction():
    rows = [(0, 1, 10, 10), (0, 1, 9, 20), (0, 1, 12, 12)]
    assert starts(rows, 1, policy="spf", estimate="clairvoyant") == [0, 22, 10]


def test_scores():
    job = Job(submit=10, processors=4, run=1, requested=100)
    assert f1(job, 0) == -(2 * 4 + 870)
    assert f2(job, 0) == -(10 * 4 + 25600)
    assert f3(job, 0) == -(100 * 4 + 6860000)
    assert f4(job, 0) == -(100 * 2 + 530000)
    assert wfp3(job, 60) == 0.5**3 * 4
    assert unicef(job, 60) == 50 / (2 * 100)
    assert weighted((1, 10, 100, 1000, 10000, 100000))(job, 60) == pytest.approx(
        4 + 1000 + 5000 + 25000 + 15000 + 40000000
    )
    at_zero = Job(submit=0, processors=1, run=1, requested=1)
    assert f1(at_zero, 5) == f2(at_zero, 5) + 1 == 0
    assert (unicef(at_zero, 0), unicef(at_zero, 1)) == (0, math.inf)


PURE = ("lqf sqf", "lpf spf", "fcfs lcfs", "lrf srf", "lexp sexp", "laf saf")


@pytest.mark.parametrize("now", [7, 8, 1000])
@pytest.mark.parametrize("feature", range(6))
def test_one_weight_is_the_pure_policy(feature, now):
    job = Job(submit=7, processors=3, run=1, requested=49)
    largest, smallest = PURE[feature].split()
    for weight, policy in ((1, largest), (-1, smallest)):
        weights = [0] * 6
        weights[feature] = weight
        assert weighted(weights)(job, now) == POLICIES[policy](job, now)


def test_ties_of_a_weighted_wait_do_not_depend_on_the_length():
    score = weighted((0, 0, 0.1, 0, 0, 0))
    assert score(Job(0, 1, 3, 3), 7) == score(Job(0, 1, 10, 10), 7)
    assert starts([(0, 1, 1, 1), (0, 1, 3, 3), (0, 1, 10, 10)], 1, policy=(0, 0, 0.1, 0, 0, 0)) == [
        0,
        1,
        4,
    ]


def test_threshold_is_strict_and_starved_jobs_keep_submission_order():
    # Shortest first on one processor; B is long.  Threshold 10: at 10 s B has waited exactly 10 s.
    # A(0-10) C(10-20) B(20-120) D(120-130);   threshold 9: A B C D
    rows = [(0, 1, 10, 10), (0, 1, 100, 100), (5, 1, 10, 10), (12, 1, 8, 8)]
    assert starts(rows, 1, policy="spf") == [0, 28, 10, 20]
    assert starts(rows, 1, policy="spf", threshold=10) == [0, 20, 10, 120]
    assert starts(rows, 1, policy="spf", threshold=9) == [0, 10, 110, 120]


# --- EASY --------------------------------------------------------------------------------------


def test_easy_backfills_up_to_the_shadow_time():
    #    0 . 2 . . . . . . . 10 . . . . 15
    #    A A A A A A A A A A B B B B B D ...   Two of four processors wide: A, D's row is 1 wide.
    #    . . C C C C C C C C B B B B B         C ends at 10 s, the shadow time; D would end at 11.
    rows = [(0, 2, 10, 10), (1, 4, 5, 5), (2, 1, 8, 8), (2, 1, 9, 9)]
    jobs = simulated(rows, 4, backfill="easy")
    assert [job.start for job in jobs] == [0, 10, 2, 15]
    assert [job.backfilled for job in jobs] == [False, False, True, False]
    assert [job.reserved_start for job in jobs] == [-1, 10, -1, 10 + 5]


def test_easy_uses_the_extra_processors_once():
    # 6 processors. B (4) is blocked by A (3) until 10 s; then 6 are free, so 2 are extra.
    # Long jobs: C takes 1 extra, D needs 2 (no), E takes the other, F finds none left.
    # G is short and ends at the shadow time. D and F start when B ends.
    #  5 | G G . . . . . . . .            (columns of different length)
    #  4 | E E E E E E E E E E
    #  3 | C C C C C C C C C C
    #    | A A A B B B D,F ...
    long = 100
    rows = [
        (0, 3, 10, 10),
        (1, 4, 10, 10),
        (2, 1, long, long),
        (2, 2, long, long),
        (2, 1, long, long),
        (2, 1, long, long),
        (2, 1, 8, 8),
    ]
    assert starts(rows, 6, backfill="easy") == [0, 10, 2, 20, 2, 20, 2]


def test_easy_counts_all_releases_of_the_shadow_time():
    # 5 processors: A and B (2 each) both end at 10 s. C (3) needs only one of them, so 2 are extra
    # then, and D (1, long) may start at once.
    rows = [(0, 2, 10, 10), (0, 2, 10, 10), (1, 3, 10, 10), (2, 1, 100, 100)]
    assert starts(rows, 5, backfill="easy") == [0, 0, 10, 2]


def test_easy_promises_a_start_to_a_lone_head():
    assert [job.reserved_start for job in simulated([(0, 1, 4, 9), (1, 1, 5, 5)], 1)] == [-1, -1]
    jobs = simulated([(0, 1, 4, 9), (1, 1, 5, 5)], 1, backfill="easy")
    assert [(job.start, job.reserved_start) for job in jobs] == [(0, -1), (4, 9)]


#: 2 processors. B (2) is blocked by A until 10 s. C (8 s) and D (4 s) compete for the hole; the
#: second to come would not end by 10 s. C ends as requested, D requests 9 s.
HOLE = [(0, 1, 10, 10), (1, 2, 10, 10), (1, 1, 8, 8), (1, 1, 4, 9)]


@pytest.mark.parametrize(
    ("order", "estimate", "expected"),
    [
        ("fcfs", "requested", [0, 10, 1, 20]),
        ("sjbf", "requested", [0, 10, 1, 20]),  # by request, C is the shorter
        ("sjbf", "clairvoyant", [0, 10, 20, 1]),
        ("lpf", "requested", [0, 10, 20, 1]),
        ("sqf", "requested", [0, 10, 1, 20]),  # a tie: submission order
        ((0, 1, 0, 0, 0, 0), "requested", [0, 10, 20, 1]),
        (lambda job, now: job.number, "requested", [0, 10, 20, 1]),
    ],
)
def test_backfill_order(order, estimate, expected):
    words = {"backfill": "easy", "backfill_order": order, "estimate": estimate}
    assert starts(HOLE, 2, **words) == expected


def test_sjbf_ties_keep_submission_order_whatever_the_primary_order():
    rows = [(0, 1, 10, 10), (1, 2, 10, 10), (1, 1, 8, 8), (1, 1, 8, 8)]
    words = {"backfill": "easy", "backfill_order": "sjbf"}
    assert starts(rows, 2, **words) == [0, 10, 1, 20]
    # B first, then D, then C:
    assert starts(rows, 2, policy=lambda job, now: (0, 9, 1, 2)[job.number], **words) == [
        0,
        10,
        1,
        20,
    ]


def test_threshold_does_not_touch_the_backfill_order():
    # B (2) is blocked by A until 20 s; C occupies the hole until 10 s. Then D has waited 8 s > 3 s,
    # but E is shorter and goes first.
    rows = [(0, 1, 20, 20), (1, 2, 10, 10), (1, 1, 9, 9), (2, 1, 8, 8), (10, 1, 1, 1)]
    words = {"backfill": "easy", "backfill_order": "sjbf", "threshold": 3}
    assert starts(rows, 2, **words) == [0, 20, 1, 11, 10]


# --- Running-time estimates and their corrections -----------------------------------------------


def test_ave2():
    # Two jobs of user 0 ran 10 s and 5 s, none of user 1.
    rows = [
        (0, 1, 10, 100, 0),
        (0, 1, 5, 100, 0),
        (6, 1, 9, 100, 0),  # one has terminated so far
        (11, 1, 9, 100, 0),  # (5 + 10) // 2
        (11, 1, 4, 4, 0),  # at most the request
        (11, 1, 9, 100, 1),
        (16, 1, 1, 100, 0),  # last two: 9 s (ended 15 s) and 4 s (ended 15 s, started later)
    ]
    jobs = simulated(rows, 4, estimate="ave2")
    assert [job.start for job in jobs] == [0, 0, 6, 11, 11, 11, 16]
    assert [job.predicted for job in jobs] == [100, 100, 100, 7, 4, 100, 6]


def test_ave2_takes_jobs_that_end_together_in_the_order_they_started():
    rows = [(0, 1, 10, 50), (2, 1, 8, 50), (4, 1, 6, 50), (11, 1, 1, 50)]
    assert simulated(rows, 4, estimate="ave2")[3].predicted == (8 + 6) // 2


def test_ave2_counts_a_job_that_ends_at_the_submission_only_with_per_timestamp_passes():
    rows = [(0, 1, 10, 50), (0, 1, 5, 50), (10, 1, 1, 50)]
    assert simulated(rows, 4, estimate="ave2")[2].predicted == 7
    assert simulated(rows, 4, estimate="ave2", passes="per-event")[2].predicted == 50


def test_given_predictions_are_at_least_a_second_and_may_exceed_the_request():
    jobs = simulated([(0, 1, 10, 50), (0, 1, 10, 50)], 2, estimate=[-3, 200])
    assert [job.predicted for job in jobs] == [1, 200]


@pytest.mark.parametrize(
    ("correction", "asked_at", "predicted_end"),
    [
        ("requested", 9, 10),
        ("requested", 10, 1500),  # the expiry comes before the submission
        ("requested", 11, 1500),
        ("incremental", 9, 10),
        ("incremental", 10, 10 + 60),
        ("incremental", 69, 10 + 60),
        ("incremental", 70, 10 + 300),
        ("incremental", 310, 10 + 900),
        ("incremental", 910, 1500),  # 10 + 1800 would exceed the request
        ("recursive-doubling", 9, 10),
        ("recursive-doubling", 10, 20),
        ("recursive-doubling", 20, 40),
        ("recursive-doubling", 640, 1280),
        ("recursive-doubling", 1280, 2560),  # beyond the request
    ],
)
def test_corrections(correction, asked_at, predicted_end):
    # One processor runs A (1,400 s, 1,500 s requested, 10 s predicted). What A's prediction is now
    # shows in what EASY promises to B.
    rows = [(0, 1, 1400, 1500), (asked_at, 1, 1, 1)]
    words = {"estimate": [10, 1], "correction": correction, "backfill": "easy"}
    assert simulated(rows, 1, **words)[1].reserved_start == predicted_end


def test_after_the_last_increment_comes_the_requested_time():
    words = {"estimate": [10, 1], "correction": "incremental", "backfill": "easy"}
    for asked_at, predicted_end in ((360009, 360010), (360010, 500000)):
        rows = [(0, 1, 400000, 500000), (asked_at, 1, 1, 1)]
        assert simulated(rows, 1, **words)[1].reserved_start == predicted_end


#: 2 processors. A is predicted to end at 10 s, then (once that expired) at 200 s, and ends at 100.
#: B (2) waits for it; C (15 s) fits before B only once A's prediction is corrected.
EXPIRY = [(0, 1, 100, 200), (1, 2, 10, 10), (2, 1, 15, 15)]


def test_an_expiry_alone_causes_no_pass():
    words = {"backfill": "easy", "estimate": [10, 10, 15, 10]}
    assert starts(EXPIRY, 2, **words) == [0, 100, 110]
    assert starts([*EXPIRY, (50, 2, 10, 10)], 2, **words) == [0, 100, 50, 110]


# --- Passes --------------------------------------------------------------------------------------


def test_per_event_passes_follow_a_submission_that_fits_or_an_order_other_than_fcfs():
    # As above; the job submitted at 50 s does not fit the free processor.
    rows = [*EXPIRY, (50, 2, 10, 10)]
    words = {"backfill": "easy", "estimate": [10, 10, 15, 10], "passes": "per-event"}
    assert starts(rows, 2, **words) == [0, 100, 110, 125]
    assert starts(rows, 2, **words, backfill_order="sjbf") == [0, 100, 50, 110]
    assert starts(rows, 2, **words, backfill_order="spf") == [0, 100, 50, 110]


def test_each_event_alone_or_all_of_a_time_together():
    # 2 processors. A ends at 10 s as predicted, B ends at 10 s though predicted until 20 s. C (2)
    # waits. D (1) is submitted at 10 s.
    #   per-timestamp: A and B end, C starts, D waits.      A A C C D
    #                                                       B B C C .
    #   per-event: D's pass counts A as gone, B as running:
    #   C cannot start, D is backfilled.                    A A D C C
    #                                                       B B . C C   (columns of 5 s)
    rows = [(0, 1, 10, 10), (0, 1, 10, 20), (1, 2, 10, 10), (10, 1, 5, 5)]
    assert starts(rows, 2, backfill="easy") == [0, 0, 10, 20]
    jobs = simulated(rows, 2, backfill="easy", passes="per-event")
    assert [job.start for job in jobs] == [0, 0, 15, 10]
    assert jobs[3].backfilled


def test_a_termination_counts_others_that_end_now_as_predicted():
    # 3 processors: A (1) and B (2) end at 10 s as predicted. In the pass after A's end B counts as
    # gone: C (2) starts in it, then D (1). Were B still there, C would block, and D, which fits
    # and ends early enough, would be marked as backfilled.
    rows = [(0, 1, 10, 10), (0, 2, 10, 10), (1, 2, 5, 5), (2, 1, 5, 5)]
    jobs = simulated(rows, 3, backfill="easy", passes="per-event")
    assert [job.start for job in jobs] == [0, 0, 10, 10]
    assert not jobs[3].backfilled


def test_per_event_submissions_of_one_time_are_scheduled_one_by_one():
    # 2 processors, shortest first: A starts alone, although B, submitted with it, is shorter.
    rows = [(0, 2, 10, 10), (0, 2, 5, 5)]
    assert starts(rows, 2, policy="spf") == [5, 0]
    assert starts(rows, 2, policy="spf", passes="per-event") == [0, 10]


# --- Conservative backfilling -----------------------------------------------------------------


def test_conservative_keeps_every_reservation():
    # 3 processors; a column is 10 s. EASY lets long D use the processor that is extra for B, and
    # thereby delays C.
    #   EASY:   D D D D D D D D D D C        conservative:  . . C D D D ...
    #           A B . . . . . . . . C                       A B C
    #           A B . . . . . . . . C                       A B C
    rows = [(0, 2, 10, 10), (0, 2, 10, 10), (0, 3, 10, 10), (0, 1, 100, 100)]
    assert starts(rows, 3, backfill="easy") == [0, 10, 100, 0]
    jobs = simulated(rows, 3, backfill="conservative")
    assert [job.start for job in jobs] == [0, 10, 20, 30]
    assert [job.reserved_start for job in jobs] == [0, 10, 20, 30]


def test_conservative_backfills_into_holes():
    # 4 processors; a column is 5 s.     D D B B C C C C      (D one wide, E one wide)
    #                                    . . B B C C C C
    #                                    A A B B E E E
    #                                    A A B B
    rows = [(0, 2, 10, 10), (0, 4, 10, 10), (0, 2, 20, 20), (0, 1, 10, 10), (0, 1, 15, 15)]
    jobs = simulated(rows, 4, backfill="conservative")
    assert [job.start for job in jobs] == [0, 10, 20, 0, 20]
    assert [job.reserved_start for job in jobs] == [0, 10, 20, 0, 20]
    assert [job.backfilled for job in jobs] == [False, False, False, True, False]


def test_conservative_moves_reservations_forward_when_a_job_ends_early():
    rows = [(0, 2, 4, 10), (0, 2, 10, 10), (0, 3, 10, 10), (0, 1, 100, 100)]
    jobs = simulated(rows, 3, backfill="conservative")
    assert [job.start for job in jobs] == [0, 4, 14, 24]
    assert [job.reserved_start for job in jobs] == [0, 10, 20, 30]


#: 4 processors. A (3) is to end at 12 s and ends at 3, B (1) ends at 5. C (4, 10 s) is promised
#: 12 s, D (1, 5 s) is promised 5 s.
EARLY_END = [(0, 3, 3, 12), (0, 1, 5, 5), (1, 4, 10, 10), (2, 1, 5, 5)]


def test_compression_lifts_one_reservation_at_a_time():
    # At 3 s C comes first, but D's promise of 5-10 s still stands: C gets 10 s. Then D moves to 3 s
    # and starts. At 5 s C moves to 8 s, D's end. (Made again from nothing: C at 5 s, D at 15 s.)
    #   promised:  A A A A A A A A A A A A C...        done:  A A A . . . . . C...
    #              B B B B B D D D D D . . C...               B B B B B . . . C...
    #                                                         . . . D D D D D C...
    jobs = simulated(EARLY_END, 4, backfill="conservative")
    assert [job.reserved_start for job in jobs] == [0, 0, 12, 5]
    assert [job.start for job in jobs] == [0, 0, 8, 3]
    assert [job.backfilled for job in jobs] == [False, False, False, True]


def test_after_an_expiry_all_reservations_are_made_again_from_nothing():
    # One processor more, on which E runs 100 s, predicted to end at 3 s. Until then it counts as
    # free from 3 s on: D is promised 3 s. At 3 s A ends and E's prediction has expired: C gets 5 s
    # and D must wait for it to end.
    rows = [*EARLY_END[:2], (0, 1, 100, 100), *EARLY_END[2:]]
    words = {"backfill": "conservative", "estimate": [12, 5, 3, 10, 5]}
    jobs = simulated(rows, 5, **words)
    assert [job.reserved_start for job in jobs] == [0, 0, 0, 12, 3]
    assert [job.start for job in jobs] == [0, 0, 0, 5, 15]


def test_after_an_expiry_a_submission_makes_the_others_again_first():
    # As above, shortest first, and F (4 processors, 4 s: the shortest) is submitted at 3 s. Before
    # it is placed D and C are made again: D 3-8 s, C 8-18 s; F gets 18 s, and keeps it in the pass.
    # (Made again from nothing together, F would get 5 s.)
    rows = [*EARLY_END[:2], (0, 1, 100, 100), *EARLY_END[2:], (3, 4, 4, 4)]
    words = {"backfill": "conservative", "policy": "spf", "estimate": [12, 5, 3, 10, 5, 4]}
    jobs = simulated(rows, 5, **words)
    assert [job.reserved_start for job in jobs] == [0, 0, 0, 12, 3, 18]
    assert [job.start for job in jobs] == [0, 0, 0, 8, 3, 18]


def test_conservative_compresses_in_primary_order():
    # One processor. A ends at 4 s instead of 10; B (10 s) is promised 10 s, C 20 s.
    # First come: B moves to 4 s. Shortest first: C may move first, to where it fits before B's
    # standing 10-20 s: there is room for 5 s of C (4-9 s), but not for 7 s.
    for length, policy, expected in (
        (5, "fcfs", [0, 4, 14]),
        (5, "spf", [0, 9, 4]),
        (7, "spf", [0, 4, 14]),
    ):
        rows = [(0, 1, 4, 10), (0, 1, 10, 10), (0, 1, length, length)]
        jobs = simulated(rows, 1, backfill="conservative", policy=policy)
        assert [job.reserved_start for job in jobs] == [0, 10, 20]
        assert [job.start for job in jobs] == expected


# --- Published values ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kth_sp2(trace):
    """KTH-SP2 by the recipe ``glesser``, read here in a few lines of its own."""
    jobs = []
    with gzip.open(trace("KTH-SP2-1996-2.swf.gz"), "rt") as lines:
        for line in lines:
            if line.startswith(";"):
                continue
            field = [int(float(text)) for text in line.split()]
            submit, run, requested, user = field[1], field[3], field[8], field[11]
            processors = field[7] if field[7] > 0 else field[4]
            if run > 0 and requested > 0 and submit >= 0 and 0 < processors <= 100:
                jobs.append(Job(submit, processors, min(run, requested), requested, user))
    assert len(jobs) == 28481
    return jobs


@pytest.mark.parametrize(
    ("words", "mean_bsld", "max_bsld", "mean_response_s"),
    [
        ({}, 92.57653973362949, 14805.2, 15696.798181243601),
        (
            {"estimate": "ave2", "correction": "incremental", "backfill_order": "sjbf"},
            63.5006771704074,
            30250.2,
            15095.780028791101,
        ),
        (
            {"estimate": "ave2", "correction": "recursive-doubling"},
            76.9224423223752,
            39964.7,
            15352.4152592957,
        ),
    ],
    ids=["EASY", "EASY++", "AVE2 recursive doubling"],
)
def test_published_values(kth_sp2, words, mean_bsld, max_bsld, mean_response_s):
    """Glesser (2018), chapter 7: the original simulator's results at full precision."""
    jobs = simulate_pool(kth_sp2, 100, backfill="easy", passes="per-event", **words)
    slowdowns = [max((job.end - job.submit) / max(job.actual, 10), 1) for job in jobs]
    assert sum(slowdowns) / len(jobs) == pytest.approx(mean_bsld, abs=1e-9)
    assert max(slowdowns) == max_bsld
    response_s = sum(job.end - job.submit for job in jobs) / len(jobs)
    assert response_s == pytest.approx(mean_response_s, abs=1e-9)


NAMED = st.sampled_from(["fcfs", "spf", "saf", "lexp", "wfp3"])


@settings(max_examples=100)
@given(workloads(), NAMED, NAMED)
def test_plans_of_one_reservation_are_easy(workload, policy, order):
    rules = {"policy": policy, "backfill_order": order}
    one, easy = (
        simulate_pool(jobs_of(workload), workload.processors, backfill=backfill, **rules)
        for backfill in ("depth:1", "easy")
    )
    for name in ("start", "reserved_start"):
        assert [getattr(job, name) for job in one] == [getattr(job, name) for job in easy]
