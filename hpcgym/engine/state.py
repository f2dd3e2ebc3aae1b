"""What the kernels work on: the rules, the jobs and the state of a simulation, as flat arrays.

The arrays are passed to compiled functions one by one, under the same names everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.ordered import make_lists
from hpcgym.engine.orders.narrow import CLASSES
from hpcgym.schedule.records import *  # noqa: F403
from hpcgym.schedule.records import records, whole_numbers
from hpcgym.scheduler.codes import *  # noqa: F403
from hpcgym.scheduler.codes import KEYED, UNLIMITED

CORRECTED, BACKFILLED, STARTED_AS = 1, 256, 512
FOREVER = 2**62  # [s] later than any event

ALL_PASSES = 2**62  # how many `run` does at most: as many as there are
# asked: an order of the queue, within a pass; a prediction for the job that is submitted next; a
# new one for the job sim.expiring, which has run as long as predicted; new ones for waiting jobs
AN_ORDER, A_PREDICTION, A_CORRECTION, A_RENEWAL = range(1, 5)
# woken: at times of their own, that is a look, or a pass over all jobs
AN_EVENT, A_LOOK, OVER_ALL = range(3)

# A simulation has one record, called `sim`: its rules, and the scalars of its present state.
RULES = (
    "passes",
    "depth",
    "primary",
    "secondary",
    "estimate",
    "correction",
    "threshold",  # [s]
    "asks",  # when the kernel stops and asks what to do
    "strict",  # 1 if jobs end before a reservation begins, as in Slurm; not in that very second
    "holds",  # 1 if long jobs are held back, see engine/holding.py
    "erode",  # [s] of waiting that halve what a job holds back, 0: never
    # where reservations are made anew; else all 0
    "every",  # [s] from one such pass to the next, 0: each pass is one
    "tested",  # queued jobs that it looks at, ALL_JOBS
    "tested_of_user",  # how many of one user, 0: any number
    "window",  # [s] from the pass on in which reservations begin, FOREVER
    # where there are passes at times of their own
    "resolution",  # [s] reservations begin and end in the plan at multiples of it
    "linear",  # [s] by which spans grow in which jobs end together, 0: they double
    "at_events",  # queued jobs that a pass at an event looks at
    "all_every",  # [s] at multiples of it such a pass looks at all of them
    "keeps",  # 1 if a job that was selected and does not fit stays selected until it starts
    "managed",  # 1 if idle processors are switched off, see engine/idle_power.py
    "timeout",  # [s] of idleness, after which they are
    "off_time",  # [s] that it takes to switch off, and on
    "on_time",
    "learns",  # 1 if it also asks for a prediction before each submission
    "renews",  # when it does so for jobs that wait, before a pass
    "logs",  # 1 if it notes who has ended
)
_PRESENT = (
    "time",  # [s] of the last event
    "next",  # job that is submitted next
    "capacity",  # processors of the machine
    "free",  # processors
    "arrived",  # jobs submitted since the last pass, not yet in the queue
    "started",  # jobs started
    "oldest",  # no job before this one is queued
    "head",  # the job that could not start at the last pass, -1 if none
    "shadow",  # [s] when the head can start, by predicted ends
    "extra",  # processors that the head leaves free at the shadow time
    "asked",  # what the kernel waits for, AN_ORDER and so on; 0 while it waits for nothing
    "selected",  # the job to serve next where the order is that of SELECTION, -1 if none yet
    "changed",  # 1 if a job started or ended, or a prediction expired, since the last full pass
    # of run times that are learned while jobs end
    "answered",  # jobs whose prediction has been made
    "ended",  # jobs in `ended`
    "learned",  # how many of them have been learned from
    "ended_at_pass",  # how many of them there were at the last pass, where predictions are renewed
    "pass_due",  # 1 if a pass is due at the time of the submission that has been asked about
    "expiring",  # the job whose new prediction is asked for
    "renewed",  # [s] that prediction
    # of machines that switch processors off
    "groups",  # of idle processors
    "idle_s",  # [processor seconds] of processors without a job, by what they did
    "off_s",
    "switching_off_s",
    "switching_on_s",
    # of conservative backfilling only
    "expired",  # 1 if a prediction expired since the reservations were made
    "may_advance",  # 1 if the next pass may find earlier times for some reservations
    "ended_early",  # jobs that ended before their predicted end since the last pass
    "first_reserved",  # [s] the earliest reservation of a queued job
    "profile_first",  # the profile's present step
    "profile_steps",  # how many there have been at once
    "spare_step",  # one that may be used again, NO_STEP if there is none
    # of a depth between one reservation and all
    "reserved",  # reservations that the last pass made
    "last_reserved",  # the last job in primary order that has one, -1 if none
    # where that is done at times of its own, see engine/passes/looks.py
    "due",  # [s] when the next pass makes reservations, FOREVER if nothing is to be done then
    "look",  # [s] the same, whether or not there is anything to be done; -1 before the first event
    "all_due",  # [s] when a pass looks at all jobs, FOREVER if none was left out at the last event
    "waited",  # 1 if looks go on though nothing happens; on pools, if jobs waited at the last
    # of looks on nodes, by what Slurm takes for changes
    "by_plan",  # 1 if the plan says whether looks go on
    "woken",  # why there is a pass: AN_EVENT, or by the clock alone
    "idle_planned",  # nodes without a job that this plan reserves
    "had_planned",  # 1 if the last look left such
    "put_off",  # 1 if a job of this plan could have started before the time that it was tried from
    "beyond",  # [s] the first place that was not reserved as it was too late, FOREVER if none was
)
SIM = whole_numbers(*RULES, *_PRESENT)
#: What a simulation needs to know to go on with looks by the clock.
LOOKS = ("due", "look", "waited", "had_planned", "all_due")

PROGRESS = records(
    ("start", np.int64),  # [s] -1 before
    ("predicted", np.int64),  # [s] run time predicted at submission
    ("promised", np.int64),  # [s] first start time reserved for the job, -1 if none
    ("marks", np.int64),  # see hpcgym.schedule.marks
)

# What jobs are ordered by: `keys` ascending in a KEYED order, `scores` highest first in a SCORED
# one. That of job j stands at j for the primary order, and at n_jobs + j for the secondary.
SCORES = records(  # score + x or, if CUBED, score * x**3; x = waiting / patience
    ("score", np.float64),
    ("patience", np.float64),  # [s]
)

LINE = records(
    # where several jobs have reservations: by place in the order in which a pass looks at jobs
    ("job", np.int64),
    ("score", np.float64),
    # and by job
    ("reserved", np.int64),  # [s] start time reserved now
    ("loose", np.int64),  # why it may be earlier now, 0 if it may not, where each has one
    ("reserved_at", np.int64),  # [s] at which pass, where each makes reservations anew
    # where a pass looks at so many jobs of one user: by job the first one of its user, and by that
    ("user", np.int64),
    ("tested", np.int64),  # how many this pass has looked at
    # by job, where each has a reservation: see hpcgym.engine.machines.pool.earlier
    ("begins", np.int64),  # the step of the profile at which it begins, and that at which it ends
    ("ends", np.int64),
    ("next", np.int64),  # jobs whose reservations begin at the same step, -1: none
    ("before", np.int64),
    ("hole", np.int64),  # the first step at which it may begin in a hole, and its time [s]
    ("hole_time", np.int64),
    ("last_begin", np.int64),  # [s] the latest time at which it may
    # by 64 jobs: a bit for each that the next pass has to look at
    ("noted", np.uint64),
    # by job, where long ones are held back
    ("held", np.float64),  # [processors] that stay free behind the job, before it has waited
)
NO_STEP = 2**32 - 1  # in place of a step of the profile
FREED_EARLY = records(("until", np.int64), ("width", np.int64))  # [s] predicted end, processors
IDLE = records(  # a group of idle processors
    ("since", np.int64),  # [s] up to which it has been counted
    ("off_at", np.int64),  # [s] when it begins to switch off
    ("width", np.int64),  # processors
)
PROFILE = records(  # a step: free processors from a time on, by predicted ends and reservations
    ("time", np.int64),
    ("free", np.int64),
    # numba looks for negative indices, unless they cannot be: most time goes into following these
    ("next", np.uint32),  # step, NO_STEP if this is the last
    ("before", np.uint32),
    ("uses", np.int32),  # how many jobs begin or end here
    ("job", np.int32),  # the first queued job whose reservation begins here, -1 if none does
)

# -- the ordered lists -----------------------------------------------------------------------------
# Running jobs by predicted end, queued jobs in secondary order and, if it is KEYED, in primary
# order; and by width and predicted run time, where each has a reservation in a pool. For plain
# numbers numba would compile what works on a list anew for each.
_LISTS: Any = np.arange(4)
RUNNING, QUEUE, PRIMARY_QUEUE, BY_LENGTH = _LISTS


class State(NamedTuple):
    """Everything that changes during a simulation; copying its arrays copies the simulation."""

    sim: Any  # one SIM
    progress: NDArray[np.void]  # (n_jobs,) PROGRESS
    history: NDArray[np.int64]  # (n_users, k) [s] run times of the last k jobs ended, or -1
    blocks: NDArray[np.void]  # the ordered lists: see hpcgym.engine.ordered
    entries: NDArray[np.void]
    profile: NDArray[np.void]  # (n_steps,) PROFILE, empty unless several jobs may be reserved
    # (n_jobs,) LINE, empty unless several jobs have reservations or long jobs are held back
    line: NDArray[np.void]
    narrow: NDArray[np.int64]  # (n_blocks * CLASSES,) [s], see hpcgym.engine.orders.narrow
    freed: NDArray[np.void]  # (n_running,) FREED_EARLY, empty unless all have reservations
    idle: NDArray[np.void]  # (n_groups,) IDLE, empty unless processors are switched off
    ended: NDArray[np.int64]  # (n_jobs,) jobs in the order of their ends, empty unless noted


class Prepared(NamedTuple):
    """A simulation before its first event: what the kernels' ``run`` takes, in its order."""

    jobs: NDArray[np.void]
    keys: NDArray[np.int64]
    scores: NDArray[np.void]
    users: NDArray[np.int64]
    sim: Any  # one SIM
    progress: NDArray[np.void]
    history: NDArray[np.int64]
    blocks: NDArray[np.void]
    entries: NDArray[np.void]
    profile: NDArray[np.void]
    line: NDArray[np.void]
    narrow: NDArray[np.int64]
    freed: NDArray[np.void]
    idle: NDArray[np.void]
    ended: NDArray[np.int64]


def make_state(
    rules: Mapping[str, int],
    predicted: NDArray[np.int64] | None,
    n_jobs: int,
    processors: int,
    n_users: int,
    last: int = 0,
) -> State:
    """Return the state of an empty machine before the first submission.

    Parameters
    ----------
    rules : fields of ``sim`` by name; others are 0.
    predicted : (n_jobs,) [s] predicted run times, None where they become known at submission.
    n_jobs, processors : sizes of the workload and of the machine.
    n_users, last : how many users there are, and of how many jobs each has a history; 0 where no
        estimate needs it.
    """
    sim: Any = np.zeros(1, SIM)[0]
    for name, value in rules.items():
        sim[name] = value
    sim.free = sim.capacity = processors
    sim.head = sim.last_reserved = sim.shadow = sim.selected = sim.look = -1
    sim.first_reserved = sim.due = sim.all_due = sim.beyond = FOREVER
    progress = np.empty(n_jobs, PROGRESS)
    progress["start"] = -1
    progress["promised"] = -1
    progress["marks"] = 0
    progress["predicted"] = 0 if predicted is None else predicted
    plans = sim.tested > 0 or sim.depth == UNLIMITED
    # a job may start beside one that is to end in the same second, where events are handled alone
    running = min(n_jobs, 2 * processors)
    blocks, entries, narrow = make_queues(sim, n_jobs, running)
    profile = np.empty(4 * n_jobs + 8 if plans else 0, PROFILE)
    if plans:
        profile[0] = (0, processors, NO_STEP, NO_STEP, 1, -1)
        sim.profile_steps = 1
        sim.spare_step = NO_STEP
    line = np.zeros(n_jobs if plans or sim.holds else 0, LINE)
    history = np.full((n_users, last), -1, np.int64)
    freed = np.empty(running if sim.depth == UNLIMITED else 0, FREED_EARLY)
    # groups are as many as jobs that have ended, at most as many as processors
    idle = np.empty(min(n_jobs, processors) + 2 if sim.managed else 0, IDLE)
    ended = np.empty(n_jobs if sim.logs else 0, np.int64)
    return State(sim, progress, history, blocks, entries, profile, line, narrow, freed, idle, ended)


def make_queues(
    sim: Any, n_jobs: int, running: int
) -> tuple[NDArray[np.void], NDArray[np.void], NDArray[np.int64]]:
    """Return ``blocks``, ``entries`` and ``narrow`` of empty lists, for so many that may run."""
    n_listed = n_jobs if sim.primary == KEYED else 0
    capacities = [running, n_jobs, n_listed]
    if sim.depth == UNLIMITED:
        capacities.append(n_jobs)
    blocks, entries = make_lists(capacities)
    return blocks, entries, np.empty(len(blocks) * CLASSES, np.int64)


def rules_of(sim: Any) -> dict[str, int]:
    """Return the rules of a simulation, by name: what :func:`make_state` takes."""
    return {name: int(sim[name]) for name in RULES}


def ascending_keys(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return integers that ascend as the scores descend: the bits of -score, made monotone."""
    # adding 0.0 makes -0.0 and 0.0 one key
    bits = (0.0 - scores + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
