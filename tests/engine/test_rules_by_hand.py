"""The rules of pools and of nodes on a few jobs, worked out by hand: both engines, and proved.

Jobs are called A, B, C ... in their order. In the drawings a column is a second (or what the
drawing says), a row a processor.
"""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import Cases, add, check, each_way
from few_jobs import few_jobs

from hpcgym.machine import Cluster, NodeGroup

pytestmark = pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes")


CASES: Cases = {}


def pool(
    name: str, wide: int, rows: list[tuple[int, ...]], start: list[int], /, **rules: Any
) -> None:
    """Add a case of a pool; rows: submit, processors, run, and perhaps requested and user."""
    full = [(*row, *(row[2], 0)[len(row) - 3 :]) for row in rows]
    submit, processors, run, requested, user = zip(*full, strict=True)
    jobs = few_jobs(wide, submit, run, processors, requested, user_id=user)
    add(CASES, name, jobs, start, **{"backfill": "none", **rules})


def nodes(
    name: str,
    machine: list[list[int]],
    rows: list[tuple[Any, ...]],
    start: list[int],
    on: list[dict[int, int]] | None = None,
    /,
    **rules: Any,
) -> None:
    """Add a case of nodes; rows: submit, run, units, what each needs, and perhaps requested.

    ``machine``: what each node has; ``on``: node -> units, of each job.
    """
    names = ("core", "mem")[: len(machine[0])]
    groups = [
        NodeGroup(f"n{i}", 1, {key: n for key, n in zip(names, node, strict=True) if n})
        for i, node in enumerate(machine)
    ]
    submit, run, units, demand, requested = zip(*((*row, row[1])[:5] for row in rows), strict=True)
    per_unit = dict(zip(names, map(list, zip(*demand, strict=True)), strict=True))
    wide = [a * b for a, b in zip(units, per_unit["core"], strict=True)]
    cluster = Cluster(groups=tuple(groups))
    each = {"units": units, "per_unit": per_unit}
    jobs = few_jobs(cluster.processors, submit, run, wide, requested, **each)
    if on is not None:
        rules["expected"] = {**rules.get("expected", {}), "cells": on}
    add(CASES, name, jobs, start, **{"cluster": cluster, "backfill": "none", **rules})


def promised(*times: int) -> dict[str, list[int]]:
    """Return the promises that are expected."""
    return {"reserved_start": [*times]}


EASY, SJBF = {"backfill": "easy"}, {"backfill": "easy", "backfill_order": "sjbf"}
KEPT, BY_EVENT = {"backfill": "conservative"}, {"backfill": "easy", "passes": "per-event"}

# --- Order of the queue ---------------------------------------------------------------------------

# A . . . B B B C C C
# . . . . B B B . . .    C would fit beside A, but B comes first
more = {"backfilled": [False] * 3, **promised(-1, -1, -1)}
pool("a blocked head blocks all", 2, [(0, 1, 4), (0, 2, 3), (0, 1, 3)], [0, 4, 7], expected=more)
more = {"end": [6, 12], "killed": [True, False]}
pool("killed at the requested time", 1, [(0, 1, 10, 6), (0, 1, 6)], [0, 6], expected=more)
# A holds all 4 processors for 100 s. No two of B (3 processors, 10 s), C (4, 5 s), D (2, 21 s) fit
# together, so they run one after another in the order of the policy
LENGTHS = {"B": 10, "C": 5, "D": 21}
for submits, orders in (
    (
        (1, 2, 3),
        "fcfs=BCD lcfs=DCB spf=CBD sjf=CBD lpf=DBC sqf=DBC lqf=CBD saf=CBD laf=DBC srf=CBD lrf=DBC"
        # at 100 s: 99/10, 98/5, 97/21; cubed, times 3, 4, 2; over log2 of that
        " lexp=CBD sexp=DBC wfp3=CBD unicef=CBD"
        # log10 of the submit times 1, 2, 3 outweighs the rest
        " f1=BCD f2=BCD f3=BCD f4=BCD",
    ),
    # 1 * 3, 0.70 * 4, 1.32 * 2; 3.16 * 3, 2.24 * 4, 4.58 * 2; areas; 10 * 1.73, 5 * 2, 21 * 1.41
    ((9, 9, 9), "fcfs=BCD lcfs=BCD f1=DCB f2=CDB f3=CBD f4=CBD"),
):
    for policy, order in (pair.split("=") for pair in orders.split()):
        at = {name: 100 + sum(LENGTHS[o] for o in order[: order.index(name)]) for name in order}
        b, c, d = submits
        rows = [(0, 4, 100), (b, 3, 10), (c, 4, 5), (d, 2, 21)]
        started = [0, *(at[name] for name in "BCD")]
        pool(f"{policy} {submits}", 4, rows, started, policy=policy)
rows = [(0, 1, 10), (0, 1, 9, 20), (0, 1, 12)]
pool("requested times count", 1, rows, [0, 22, 10], policy="spf", estimate="clairvoyant")
rows = [(0, 1, 1), (0, 1, 3), (0, 1, 10)]
pool("ties of a weight of waiting", 1, rows, [0, 1, 4], policy=(0, 0, 0.1, 0, 0, 0))
# shortest first; B is long. At 10 s it has waited exactly 10 s: A(0-10) C B D; threshold 9: A B C D
ROWS = [(0, 1, 10), (0, 1, 100), (5, 1, 10), (12, 1, 8)]
for threshold, started in ((None, [0, 28, 10, 20]), (10, [0, 20, 10, 120]), (9, [0, 10, 110, 120])):
    pool(f"threshold {threshold}", 1, ROWS, started, policy="spf", threshold=threshold)

# --- EASY -----------------------------------------------------------------------------------------

#    0 . 2 . . . . . . . 10 . . . . 15
#    A A A A A A A A A A B B B B B D ...   two of four processors wide: A, D's row is 1 wide
#    . . C C C C C C C C B B B B B         C ends at 10 s, the shadow time; D would end at 11
more = {"backfilled": [False, False, True, False], **promised(-1, 10, -1, 15)}
ROWS = [(0, 2, 10), (1, 4, 5), (2, 1, 8), (2, 1, 9)]
pool("easy up to the shadow time", 4, ROWS, [0, 10, 2, 15], **EASY, expected=more)
# B (4) is blocked by A (3) until 10 s; then 6 are free, so 2 are extra. Of long jobs C takes 1
# extra, D needs 2 (no), E takes the other, F finds none left. G ends at the shadow time
ROWS = [(0, 3, 10), (1, 4, 10), *((2, wide, 100) for wide in (1, 2, 1, 1)), (2, 1, 8)]
pool("easy uses extra processors once", 6, ROWS, [0, 10, 2, 20, 2, 20, 2], **EASY)
# A and B (2 each) both end at 10 s. C (3) needs only one of them, so 2 are extra then
ROWS = [(0, 2, 10), (0, 2, 10), (1, 3, 10), (2, 1, 100)]
pool("easy counts all releases of the shadow time", 5, ROWS, [0, 0, 10, 2], **EASY)
# A (3 of 4) runs to 100 s, which B (4) waits for. C (1) asks for 500 s, and is judged by its run
# time as long as B has not waited for so long: by 1 s at 2 s
ROWS = [(0, 3, 100), (1, 4, 10), (2, 1, 50, 500)]
RELAXED = {**EASY, "candidate_estimate": "clairvoyant"}
for limit, started in ((None, 110), (1, 110), (2, 2), ("24h", 2)):
    by = RELAXED | {"relax": limit} if limit else EASY
    more = promised(-1, 100, -1 if started == 2 else 110)
    pool(f"relaxed {limit}", 4, ROWS, [0, 100, started], **by, expected=more)
ROWS = [(0, 3, 100), (1, 4, 10), (2, 1, 98, 500)]
pool("relaxed up to the shadow time", 4, ROWS, [0, 100, 2], **RELAXED, relax=60)
by = RELAXED | {"backfill": "until-shadow", "relax": 60}
pool("relaxed until the shadow time", 4, ROWS, [0, 100, 110], **by)
# C is thought to run for 50 s, and runs for 150: B waits for it, although it was promised 100 s
ROWS = [(0, 3, 100), (1, 4, 10), (2, 1, 150, 500)]
by = {**EASY, "relax": "1d", "candidate_estimate": [1, 1, 50]}
pool("a relaxed job breaks a promise", 4, ROWS, [0, 152, 2], **by, expected=promised(-1, 100, -1))
# C starts at 2 s, and is predicted to run to 502 s: so B may wait for D, too, at 3 s
ROWS = [(0, 3, 100), (1, 5, 10), (2, 1, 50, 500), (3, 1, 450, 480)]
more = {"expected": promised(-1, 100, -1, -1)}
pool("a relaxed job moves the shadow time", 5, ROWS, [0, 453, 2, 3], **RELAXED, relax=60, **more)
# A and B hold all 3 to 9 s. Nobody could start when C and D come, so nothing is promised under an
# order by waiting; at 4 s B ends, E starts, and C, the first by wait / requested time, gets 9 s. At
# 9 s C starts, and D, which waits for it, gets 14 s
ROWS = [(0, 2, 9), (0, 1, 4, 9), (1, 3, 5), (2, 3, 9), (3, 1, 3)]
by = {**EASY, "policy": "wait / requested", "backfill_order": "fcfs"}
pool("promised by an order that changes", 3, ROWS, [0, 0, 9, 14, 4], **by,
     expected=promised(-1, -1, 9, 14, -1))  # fmt: skip
pool("a lone head", 1, [(0, 1, 4, 9), (1, 1, 5)], [0, 4], **EASY, expected=promised(-1, 9))
# B (2) is blocked by A until 10 s. C (8 s) and D (4 s) compete for the hole; the second to come
# would not end by 10 s. C ends as requested, D requests 9 s
HOLE = [(0, 1, 10), (1, 2, 10), (1, 1, 8), (1, 1, 4, 9)]
for order, estimate, started in (
    ("fcfs", "requested", [0, 10, 1, 20]),
    ("sjbf", "requested", [0, 10, 1, 20]),  # by request, C is the shorter
    ("sjbf", "clairvoyant", [0, 10, 20, 1]),
    ("lpf", "requested", [0, 10, 20, 1]),
    ("sqf", "requested", [0, 10, 1, 20]),  # a tie: submission order
    ((0, 1, 0, 0, 0, 0), "requested", [0, 10, 20, 1]),
):
    by = {"backfill_order": order, "estimate": estimate}
    pool(f"hole {order} {estimate}", 2, HOLE, started, backfill="easy", **by)
# B is blocked by A until 20 s; C has the hole until 10 s. Then D has waited 8 s > 3 s, but E is
# shorter and goes first
ROWS = [(0, 1, 20), (1, 2, 10), (1, 1, 9), (2, 1, 8), (10, 1, 1)]
pool("a threshold is not of the backfill order", 2, ROWS, [0, 20, 1, 11, 10], **SJBF, threshold=3)

# --- Estimates and their corrections --------------------------------------------------------------

ROWS = [
    *((0, 1, 10, 100), (0, 1, 5, 100), (6, 1, 9, 100)),  # of the third's one has terminated
    *((11, 1, 9, 100), (11, 1, 4, 4)),  # (5 + 10) // 2, and at most the request
    (11, 1, 9, 100, 1),  # another user
    (16, 1, 1, 100),  # 9 s (ended 15 s) and 4 s (ended 15 s, started later)
]
more = {"predicted_run_time": [100, 100, 100, 7, 4, 100, 6]}
pool("ave2", 4, ROWS, [0, 0, 6, 11, 11, 11, 16], estimate="ave2", expected=more)
# those that end together count in the order in which they started
ROWS, more = [(0, 1, 10, 50), (2, 1, 8, 50), (4, 1, 6, 50), (11, 1, 1, 50)], {}
more["predicted_run_time"] = [50, 50, 50, (8 + 6) // 2]
pool("ave2 of ties", 4, ROWS, [0, 2, 4, 11], estimate="ave2", expected=more)
for passes, predicted in (("per-timestamp", 7), ("per-event", 50)):
    ROWS, more = [(0, 1, 10, 50), (0, 1, 5, 50), (10, 1, 1, 50)], {}
    more["predicted_run_time"] = [50, 50, predicted]
    by = {"estimate": "ave2", "passes": passes}
    pool(f"ave2 of a job that ends just then {passes}", 4, ROWS, [0, 0, 10], **by, expected=more)
more = {"predicted_run_time": [1, 200]}
pool("given", 2, [(0, 1, 10, 50)] * 2, [0, 0], estimate=[0, 200], expected=more)
# one processor runs A (1,400 s, 1,500 s requested, 10 s predicted). What A's prediction is now
# shows in what EASY promises to B; an expiry comes before the submission
for correction, asked_at, predicted_end in (
    *(("requested", 9, 10), ("requested", 10, 1500), ("requested", 11, 1500)),
    *(("incremental", 9, 10), ("incremental", 10, 70), ("incremental", 69, 70)),
    *(("incremental", 70, 310), ("incremental", 310, 910)),
    ("incremental", 910, 1500),  # 10 + 1800 would exceed the request
    *(
        ("recursive-doubling", 9, 10),
        ("recursive-doubling", 10, 20),
        ("recursive-doubling", 20, 40),
    ),
    ("recursive-doubling", 640, 1280),
    ("recursive-doubling", 1280, 2560),  # beyond the request
):
    by = {"estimate": [10, 1], "correction": correction, "expected": promised(-1, predicted_end)}
    rows = [(0, 1, 1400, 1500), (asked_at, 1, 1)]
    pool(f"{correction} at {asked_at}", 1, rows, [0, 1400], backfill="easy", **by)
for asked_at, predicted_end in ((360009, 360010), (360010, 500000)):  # after the last increment
    by = {"estimate": [10, 1], "correction": "incremental", "expected": promised(-1, predicted_end)}
    rows = [(0, 1, 400000, 500000), (asked_at, 1, 1)]
    pool(f"incremental at {asked_at}", 1, rows, [0, 400000], backfill="easy", **by)

# --- Passes ---------------------------------------------------------------------------------------

# A is predicted to end at 10 s, then (once that expired) at 200 s, and ends at 100. B (2) waits for
# it; C (15 s) fits before B only once A's prediction is corrected, and an expiry alone causes no
# pass. D, submitted at 50 s, does not fit the free processor
EXPIRY = [(0, 1, 100, 200), (1, 2, 10), (2, 1, 15)]
pool("an expiry causes no pass", 2, EXPIRY, [0, 100, 110], **EASY, estimate=[10, 10, 15])
for order, by, started in (
    ("fcfs", EASY, [0, 100, 50, 110]),
    ("fcfs", BY_EVENT, [0, 100, 110, 125]),
    ("sjbf", BY_EVENT, [0, 100, 50, 110]),
    ("spf", BY_EVENT, [0, 100, 50, 110]),
):
    by = {**by, "backfill_order": order, "estimate": [10, 10, 15, 10]}
    pool(f"a submission at 50 s {by}", 2, [*EXPIRY, (50, 2, 10)], started, **by)
# A ends at 10 s as predicted, B ends at 10 s though predicted until 20 s. C (2) waits. D (1) is
# submitted at 10 s.
#   per-timestamp: A and B end, C starts, D waits.      A A C C D
#                                                       B B C C .
#   per-event: D's pass counts A as gone, B as running:
#   C cannot start, D is backfilled.                    A A D C C
#                                                       B B . C C   (columns of 5 s)
ROWS = [(0, 1, 10), (0, 1, 10, 20), (1, 2, 10), (10, 1, 5)]
pool("all of a time together", 2, ROWS, [0, 0, 10, 20], **EASY)
more = {"backfilled": [False] * 3 + [True]}
pool("each event alone", 2, ROWS, [0, 0, 15, 10], **BY_EVENT, expected=more)
# A (1) and B (2) end at 10 s as predicted. In the pass after A's end B counts as gone: C (2) starts
# in it, then D (1). Were B still there, D would be marked as backfilled
more = {"backfilled": [False] * 4}
ROWS = [(0, 1, 10), (0, 2, 10), (1, 2, 5), (2, 1, 5)]
pool("others that end now count as gone", 3, ROWS, [0, 0, 10, 10], **BY_EVENT, expected=more)
# shortest first: A starts alone, although B, submitted with it, is shorter
for passes, started in (("per-timestamp", [5, 0]), ("per-event", [0, 10])):
    rows = [(0, 2, 10), (0, 2, 5)]
    pool(f"of one time {passes}", 2, rows, started, policy="spf", passes=passes)

# --- Conservative ---------------------------------------------------------------------------------

# EASY lets long D use the processor that is extra for B, and thereby delays C (a column is 10 s).
#   EASY:   D D D D D D D D D D C        conservative:  . . C D D D ...
#           A B . . . . . . . . C                       A B C
#           A B . . . . . . . . C                       A B C
ROWS = [(0, 2, 10), (0, 2, 10), (0, 3, 10), (0, 1, 100)]
pool("easy delays the second", 3, ROWS, [0, 10, 100, 0], **EASY)
pool("each is promised", 3, ROWS, [0, 10, 20, 30], **KEPT, expected=promised(0, 10, 20, 30))
#    D D B B C C C C      (D one wide, E one wide; a column is 5 s)
#    . . B B C C C C
#    A A B B E E E
#    A A B B
more = {"backfilled": [False, False, False, True, False], **promised(0, 10, 20, 0, 20)}
ROWS = [(0, 2, 10), (0, 4, 10), (0, 2, 20), (0, 1, 10), (0, 1, 15)]
pool("holes are filled", 4, ROWS, [0, 10, 20, 0, 20], **KEPT, expected=more)
# A (3) is to end at 12 s and ends at 3, B (1) ends at 5. C (4, 10 s) is promised 12 s, D (1, 5 s)
# 5 s. At 3 s C comes first, but D's promise of 5-10 s still stands: C gets 10 s. Then D moves to
# 3 s and starts. At 5 s C moves to 8 s, D's end. (Made again from nothing: C at 5 s, D at 15 s.)
#   promised:  A A A A A A A A A A A A C...        done:  A A A . . . . . C...
#              B B B B B D D D D D . . C...               B B B B B . . . C...
#                                                         . . . D D D D D C...
EARLY = [(0, 3, 3, 12), (0, 1, 5), (1, 4, 10), (2, 1, 5)]
more = {"backfilled": [False] * 3 + [True], **promised(0, 0, 12, 5)}
pool("one reservation at a time is lifted", 4, EARLY, [0, 0, 8, 3], **KEPT, expected=more)
# One processor more, on which E runs 100 s, predicted to end at 3 s. Until then it counts as free
# from 3 s on: D is promised 3 s. At 3 s A ends and E's prediction has expired: C gets 5 s and D
# must wait for it to end
ROWS = [*EARLY[:2], (0, 1, 100), *EARLY[2:]]
by = {**KEPT, "estimate": [12, 5, 3, 10, 5], "expected": promised(0, 0, 0, 12, 3)}
pool("after an expiry all are made again", 5, ROWS, [0, 0, 0, 5, 15], **by)
# As above, shortest first, and F (4 processors, 4 s: the shortest) is submitted at 3 s. Before it
# is placed D and C are made again: D 3-8 s, C 8-18 s; F gets 18 s, and keeps it in the pass
by = {**KEPT, "policy": "spf", "estimate": [12, 5, 3, 10, 5, 4]}
more = promised(0, 0, 0, 12, 3, 18)
ROWS = [*ROWS, (3, 4, 4)]
pool("a submission makes the others again first", 5, ROWS, [0, 0, 0, 8, 3, 18], **by, expected=more)
# A ends at 4 s instead of 10; B (10 s) is promised 10 s, C 20 s. First come: B moves to 4 s.
# Shortest first: C may move first, to where it fits before B's standing 10-20 s
for length, policy, started in (
    *((5, "fcfs", [0, 4, 14]), (5, "spf", [0, 9, 4])),
    (7, "spf", [0, 4, 14]),
):
    rows, by = [(0, 1, 4, 10), (0, 1, 10), (0, 1, length)], {**KEPT, "policy": policy}
    pool(f"{policy} {length} moves", 1, rows, started, **by, expected=promised(0, 10, 20))

# --- Units and nodes ------------------------------------------------------------------------------

PAIR, TWO = [[2, 2], [2, 2]], [[2], [2]]  # cores, memory
# A and B leave one core free on each node: C, two cores together, waits for both ends of A
ROWS = [(0, 5, 1, (1, 0)), (0, 9, 1, (2, 1)), (0, 4, 1, (1, 2)), (0, 2, 1, (2, 0))]
nodes("a unit lies on one node", PAIR, ROWS, [0, 0, 0, 5], [{0: 1}, {1: 1}, {0: 1}, {0: 1}])
ROWS = [(0, 5, 2, (1, 2)), (0, 5, 1, (1, 1)), (0, 3, 1, (1, 0))]
nodes("memory keeps cores idle", PAIR, ROWS, [0, 5, 5], [{0: 1, 1: 1}, {0: 1}, {0: 1}])
nodes("memory, easy", PAIR, ROWS, [0, 5, 0], **EASY)
# A takes 1 of 4, B 3 of 4 cores; then E takes one where least is left, or most, or the first
ROWS = [(0, 9, 1, (1,)), (0, 9, 3, (1,)), (0, 2, 4, (1,)), (0, 9, 1, (2,)), (3, 1, 1, (1,))]
USUAL = [{0: 1}, {0: 3}, {1: 4}, {2: 1}]
WORST = [{0: 1}, {1: 3}, {2: 4}, {0: 1}]  # on all alike, on the first of two full ones
for allocation, on in (
    ("first-fit", [*USUAL, {1: 1}]),
    ("best-fit", [*USUAL, {2: 1}]),
    ("worst-fit", [*WORST, {2: 1}]),
):
    nodes(allocation, [[4]] * 3, ROWS, [0, 0, 0, 0, 3], on, allocation=allocation)
# 3/9 + 9/12 is more than 4/9 + 2/12
for allocation, on in (("first-fit", [{0: 1, 1: 3}]), ("worst-fit", [{1: 3, 2: 1}])):
    by = {"allocation": allocation}
    nodes(f"many nodes {allocation}", [[2, 1], [3, 9], [4, 2]], [(0, 5, 4, (1, 1))], [0], on, **by)
# A leaves the node of four cores to B, which waits beside it; by number it would not. Worth 31 / 36
# and 11 / 36: on the first node (3, 1) would be left, on the other (1, 3). Who comes later was not
# known
for name, rows, on in (
    ("waits", [(0, 9, 1, (1, 1)), (0, 9, 1, (3, 1))], [{1: 1}, {0: 1}]),
    ("comes later", [(0, 9, 1, (1, 1)), (1, 9, 1, (3, 1))], [{0: 1}, {0: 1}]),
):
    started = [row[0] for row in rows]
    nodes(f"worth of who {name}", [[4, 2], [2, 4]], rows, started, on, allocation="weighted")
# A and B leave a core: D needs 2 cores on one node. E ends after 8, but on node 0, which is not the
# head's: it may start as soon as it fits
ROWS = [(0, 4, 1, (1,)), (0, 8, 1, (2,)), (0, 9, 1, (1,)), (1, 5, 1, (2,)), (2, 6, 1, (1,))]
ON, more = [{0: 1}, {1: 1}, {0: 1}, {1: 1}, {0: 1}], promised(-1, -1, -1, 8, -1)
nodes("units of the head fit together", TWO, ROWS, [0, 0, 0, 8, 4], ON, **EASY, expected=more)
# A leaves a core on each of two nodes; at 5 the head's 3 units of 2 cores find 2 + 2 places: one
# core on one node may be taken until later. C asks for one on each and waits, D may start; and then
# there is no slack left for another
BEGIN = [(0, 5, 2, (3,)), (0, 5, 3, (2,))]
ROWS, ON = [*BEGIN, (1, 9, 2, (1,)), (1, 9, 1, (1,))], [{0: 1, 1: 1}, {0: 1, 1: 2}, {0: 2}, {0: 1}]
nodes("slack is of units", [[4], [4]], ROWS, [0, 5, 10, 1], ON, **EASY)
ROWS = [*BEGIN, (1, 9, 1, (1,)), (2, 9, 1, (1,)), (2, 3, 1, (1,))]
nodes("slack is used up", [[4], [4]], ROWS, [0, 5, 1, 5, 2], **EASY)
# node 0 has memory, which the head needs; C takes no core of it although it is the first, D ends
ROWS = [(0, 5, 1, (1, 1)), (0, 5, 1, (2, 1)), (1, 9, 1, (1, 0)), (1, 4, 1, (1, 0))]
ON = [{0: 1}, {0: 1}, {1: 1}, {0: 1}]
nodes("round the head's nodes", [[2, 1], [2, 0]], ROWS, [0, 5, 1, 1], ON, **EASY)
# A and B leave 1 and 2 cores; at 9 the head's 2 units of 2 cores find 1 + 2 places. D, of two units
# of a core, would take the place on node 0 and so none on node 1, and waits. When E has taken node
# 0 for a while, D takes both its units from one place of node 1; at once where E is tried before
ROWS = [(0, 9, 1, (1,)), (0, 9, 1, (2,)), (1, 5, 2, (2,)), (1, 99, 2, (1,)), (2, 3, 1, (1,))]
ROWS += [(3, 1, 1, (4,))]
ON = [{0: 1}, {1: 1}, {0: 1, 1: 1}, {1: 2}, {0: 1}, {1: 1}]
nodes("who failed fits later", [[2], [4]], ROWS, [0, 0, 9, 3, 2, 102], ON, **EASY)
nodes("who failed fits at once", [[2], [4]], ROWS, [0, 0, 9, 2, 2, 101], **SJBF)
# A on node 0 until 5, B on node 1 until 8, C wants both: D has node 0 from 5 to 8, E has not
ROWS = [(0, 5, 1, (2,)), (0, 8, 1, (2,)), (1, 9, 2, (2,)), (1, 3, 1, (2,)), (1, 4, 1, (2,))]
ON, more = [{0: 1}, {1: 1}, {0: 1, 1: 1}, {0: 1}, {0: 1}], promised(0, 0, 8, 5, 17)
nodes("a reservation is of nodes", TWO, ROWS, [0, 0, 8, 5, 17], ON, **KEPT, expected=more)
# a core is free at any time, on node 0 until 5 (C is reserved there) and on node 1 from 5 on
ROWS, ON = [(0, 5, 1, (1,)), (0, 5, 1, (2,)), (0, 9, 1, (2,)), (1, 6, 1, (1,))], None
nodes("units stay on their node", TWO, ROWS, [0, 0, 5, 5], [{0: 1}, {1: 1}, {0: 1}, {1: 1}], **KEPT)
# A (node 0, requested until 20) ends at 4; B and C hold nodes 1 and 2 until 10, reserved for D
ROWS = [(0, 4, 1, (2,), 20), (0, 10, 1, (2,)), (0, 10, 1, (2,)), (1, 5, 2, (2,)), (2, 30, 1, (2,))]
ON, more = [{0: 1}, {1: 1}, {2: 1}, {1: 1, 2: 1}, {0: 1}], promised(0, 0, 0, 10, 15)
nodes("it stays where it is", [[2]] * 3, ROWS, [0, 0, 0, 10, 4], ON, **KEPT, expected=more)
ROWS = [(0, 9, 1, (2,)), (0, 4, 1, (2,), 9), (1, 5, 1, (2,)), (1, 5, 1, (2,))]
ON, more = [{0: 1}, {1: 1}, {1: 1}, {1: 1}], promised(0, 0, 9, 9)
nodes("it becomes earlier", TWO, ROWS, [0, 0, 4, 9], ON, **KEPT, expected=more)
# A is to end at 5 but runs until 10, then thought to run until 20; C comes at 6
ROWS, by = [(0, 10, 1, (2,), 20), (1, 4, 1, (2,)), (6, 4, 1, (1,))], {"estimate": [5, 4, 4]}
nodes("an expiry on nodes", [[2]], ROWS, [0, 10, 14], **KEPT, **by, expected=promised(0, 5, 24))
ROWS, ON = [(0, 9, 1, (1,)), (0, 5, 1, (1,)), (1, 5, 1, (1,))], [{0: 1}, {1: 1}, {1: 1}]
nodes("single cores are chosen at the start", [[1], [1]], ROWS, [0, 0, 5], ON, **KEPT)
more, by = {"end": [6, 11], "killed": [True, False]}, {"estimate": [6, 20], "correction": "kill"}
nodes(
    "killed at its prediction",
    [[1]],
    [(0, 9, 1, (1,)), (0, 5, 1, (1,))],
    [0, 6],
    **by,
    expected=more,
)


@pytest.mark.parametrize(("name", "backfill"), each_way(CASES))
def test_by_hand(name: str, backfill: str) -> None:
    check(CASES[name], backfill)
