"""What a schedule gains over another of the same jobs: week by week, and who pays for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.schedule.groups import groups_of
from hpcgym.schedule.measures import mean_by_user, weekly_sums
from hpcgym.schedule.metrics import weighted_wait
from hpcgym.schedule.result import Result
from hpcgym.units import HOUR_S
from hpcgym.workload.io.swf_header import called, names_of

Floats = NDArray[np.float64]


# --- Weeks of one replay, and whether jobs starve -------------------------------------------------
#
# Both schedules are of the same jobs, from the first job of a log to the last: a week that is
# simulated alone drains at its end, which flatters schedulers that let wide jobs wait.

#: Weeks with fewer jobs do not count: their means say little.
FEWEST_JOBS = 20
#: The gate: a schedule's longest wait, and area-weighted wait, may be so many times EASY's.
MOST = 2.0
#: [h] Waits of up to these pass the gate, whatever EASY's are: seconds are no loss. On each log of
#: the suite twice EASY's area-weighted wait is above its floor.
FLOOR_H, FLOOR_WEIGHTED_H = 72.0, 1.0
#: Of several replays of a log the gate is kept by the means of their waits, and in each replay by
#: waits so many times as long. From replay to replay, submissions stretched by up to 3 %, the ratio
#: of a rule's longest wait to EASY's differs by a standard deviation of some 10 % (five rules on
#: six logs). The worst of five draws is up to 2.3 of these above their mean, in 95 of 100 cases: so
#: a rule whose mean keeps the gate breaks it in a replay by chance seldom, and by more only if it
#: starves jobs in some replays.
WIDER = 1.25
#: Wide jobs ask for more than this share of the machine.
WIDE = 0.25


class Felt(NamedTuple):
    """The slowdowns and waits of some jobs of a schedule.

    Attributes
    ----------
    jobs : (n_weeks,) int64, how many of the jobs were submitted in each week; weeks count from the
        first submission of the log.
    bsld : (n_weeks,) float64, mean bounded slowdown of these; nan without jobs.
    longest_wait_h, area_weighted_wait_h : [h] of all of the jobs; the second as of
        :func:`hpcgym.schedule.metrics.weighted_wait`.
    wide_wait_h : [h] mean wait of those that ask for more than :data:`WIDE` of the machine; nan
        without any, or where it is not known.
    promises_broken : the share of the jobs that were promised a start as heads of the queue, and
        started later; nan where it is not known.
    """

    jobs: NDArray[np.int64]
    bsld: Floats
    longest_wait_h: float
    area_weighted_wait_h: float
    wide_wait_h: float = float("nan")
    promises_broken: float = float("nan")


class Gain(NamedTuple):
    """What a schedule gains on EASY's of the same jobs.

    Attributes
    ----------
    weeks : (n,) float64, log(EASY's / its mean bounded slowdown) of each week that counts; of
        several replays (n_replays, n).
    broken : what breaks the gate, in words; () if it is kept.
    """

    weeks: Floats
    broken: tuple[str, ...]

    @property
    def counted(self) -> Floats:
        """As ``weeks``, or EASY's own gain of 0 in each where the gate is broken."""
        return np.zeros_like(self.weeks) if self.broken else self.weeks

    @property
    def score(self) -> float:
        """The mean over the weeks that count; nan of none."""
        return float(self.counted.mean()) if self.weeks.size else float("nan")


def felt(
    result: Result, jobs: NDArray[np.bool_], since_first_submit: NDArray[np.int64] | None = None
) -> Felt:
    """Return what some jobs of a schedule felt; the schedule is that of the whole log.

    Parameters
    ----------
    jobs : (n_jobs,) which ones, at least one, such as those submitted in the second half.
    since_first_submit : (n_jobs,) [s] when jobs were submitted, by which they belong to weeks;
        None: as they were in this schedule. Replays have those of the log as it is.

    Raises
    ------
    HpcgymError : none of them.
    """
    if not jobs.any():
        raise HpcgymError("jobs: no job has a wait that could be told")
    number, bsld, _ = weekly_sums(result, jobs, since_first_submit=since_first_submit).T
    means = np.divide(bsld, number, out=np.full(len(number), np.nan), where=number > 0)
    processors, wait = result.workload.requested_processors[jobs], result.wait[jobs] / HOUR_S
    wide = wait[processors > WIDE * result.cluster.processors]
    return Felt(
        number.astype(np.int64),
        means,
        float(wait.max()),
        weighted_wait(processors, result.run_time[jobs], wait),
        float(wide.mean()) if len(wide) else float("nan"),
    )


def times(ours: float, theirs: float) -> float:
    """Return how many times another wait ours is: where that is 0, 0 if ours is, and else inf."""
    return ours / theirs if theirs > 0 else float("inf") if ours > 0 else 0.0


def used(easy: Felt, ours: Felt) -> tuple[float, float]:
    """Return what share of the gate the longest and the area-weighted wait use, see :func:`times`.

    The gate is kept by up to 1 of both: by waits of twice EASY's, or of :data:`FLOOR_H` the longest
    and :data:`FLOOR_WEIGHTED_H` the area-weighted one.
    """
    longest, weighted = _most(easy[2:4])
    return times(ours.longest_wait_h, longest), times(ours.area_weighted_wait_h, weighted)


def _most(easy: tuple[float, float]) -> tuple[float, float]:
    """Return the longest and the area-weighted wait [h] that keep the gate."""
    longest = max(MOST * easy[0], FLOOR_H)
    return longest, max(MOST * easy[1], FLOOR_WEIGHTED_H)  # nan stays, so in front


def broken_by(
    easy: tuple[float, float], ours: tuple[float, float], wider: float = 1.0
) -> tuple[str, ...]:
    """Return what breaks the gate, in words; () if it is kept.

    Parameters
    ----------
    easy, ours : the longest and the area-weighted wait [h].
    wider : how many times as long waits may be as the gate has them.
    """
    names = "longest wait", "area-weighted wait"
    return tuple(
        f"{name} {value:,.1f} h, at most {most:,.1f} h"
        for name, value, most in zip(names, ours, np.array(_most(easy)) * wider, strict=True)
        if times(value, most) > 1
    )


def gain(easy: Felt, ours: Felt) -> Gain:
    """Return what a schedule gains on EASY's of the same jobs.

    A week counts if :data:`FEWEST_JOBS` jobs were submitted in it. The gate is of :func:`used`.

    Raises
    ------
    HpcgymError : these are not the same jobs.
    """
    if not np.array_equal(easy.jobs, ours.jobs):
        raise HpcgymError("two schedules are compared week by week only if they have the same jobs")
    counts = easy.jobs >= FEWEST_JOBS
    weeks = np.log(easy.bsld[counts] / ours.bsld[counts])
    return Gain(weeks, broken_by(easy[2:4], ours[2:4]))


def gain_of_replays(easy: Sequence[Felt], ours: Sequence[Felt]) -> Gain:
    """Return what schedules of replays of a log gain on EASY's of the same replays.

    The gate is kept if the means over the replays keep it, and each replay keeps one that is
    :data:`WIDER`.

    Raises
    ------
    HpcgymError : these are not the same jobs.
    """
    weeks = np.array([gain(*pair).weeks for pair in zip(easy, ours, strict=True)])
    theirs, waits = (
        [(replay.longest_wait_h, replay.area_weighted_wait_h) for replay in replays]
        for replays in (easy, ours)
    )
    if means := broken_by(_mean(theirs), _mean(waits)):
        return Gain(weeks, means)
    each = (broken_by(*pair, wider=WIDER) for pair in zip(theirs, waits, strict=True))
    worst = next(filter(None, each), ())
    return Gain(weeks, tuple(f"{text}, in a replay" for text in worst))


def _mean(waits: Sequence[tuple[float, float]]) -> tuple[float, float]:
    longest, weighted = np.mean(waits, axis=0).tolist()
    return longest, weighted


# --- Who pays for a mean: classes of jobs, and users ----------------------------------------------

_LOSERS = 5  # users that are named


class OfClass(NamedTuple):
    """The jobs of a class: their number, mean bounded slowdown, and its ratio to the first's.

    Both are nan where the class has no jobs.
    """

    jobs: int
    mean_bsld: float
    ratio: float


class Loser(NamedTuple):
    """A user: name, number of jobs, and the ratio of the mean bounded slowdown to the first's."""

    user: str
    jobs: int
    ratio: float


class Paid(NamedTuple):
    """Whose jobs have a higher or lower bounded slowdown than in the first schedule.

    Attributes
    ----------
    classes : class of jobs, by run time, by size and, where jobs ask for several, by resources ->
        :class:`OfClass`. Classes are those of jobs in the first schedule.
    users : how many users have jobs.
    gain, lose : users whose mean bounded slowdown is lower than in the first schedule, or higher.
    median_ratio : of the users' mean bounded slowdowns to those in the first schedule.
    lose_most : the users who lose most, five at most.
    """

    classes: dict[str, OfClass]
    users: int
    gain: int
    lose: int
    median_ratio: float
    lose_most: list[Loser]

    def facts(self) -> dict[str, Any]:
        """Return it for JSON."""
        classes = {name: of_class._asdict() for name, of_class in self.classes.items()}
        losers = [loser._asdict() for loser in self.lose_most]
        return {**self._asdict(), "classes": classes, "lose_most": losers}

    def columns(self) -> dict[str, Any]:
        """Return it as columns of a line of a table, such as ``short_ratio``.

        The users who lose most are not among them.
        """
        columns: dict[str, Any] = {}
        for name, of_class in self.classes.items():
            keys = (f"{name}_{key}" for key in ("jobs", "bsld", "ratio"))
            columns |= zip(keys, of_class, strict=True)
        users = ("gain", "lose", "median_ratio")
        return columns | {f"users_{key}": getattr(self, key) for key in users}


def same_jobs(parts: Mapping[str, Result], runs: bool = False) -> dict[str, Result]:
    """Return the schedules of the same jobs as the first, submitted at the same times.

    ``runs``: with the same runs of them.
    """
    workloads = {name: (result.runs if runs else result).workload for name, result in parts.items()}
    first = next(iter(workloads.values()))
    columns = ("submit_time", "job_number", "requested_processors")

    def alike(name: str) -> bool:
        pairs = ((getattr(first, column), getattr(workloads[name], column)) for column in columns)
        return all(np.array_equal(*pair) for pair in pairs)

    return {name: result for name, result in parts.items() if alike(name)}


def who_pays(parts: Mapping[str, Result]) -> dict[str, Paid]:
    """Return who pays for the mean of each schedule, beside the first, which is there too.

    Schedules of other jobs than the first, or of jobs submitted at other times, are left out.
    """
    same = same_jobs(parts)
    first = next(iter(same.values()))
    classes = {**groups_of(first, "class"), **groups_of(first, "size")}
    of_resources = groups_of(first, "resource")
    if len(of_resources) > 1:  # which may be called as a class
        classes |= {f"resource {k}" if k in classes else k: of_resources[k] for k in of_resources}
    jobs, user = first.counted, first.workload.user_id
    users, number = np.unique(user[jobs], return_counts=True)
    before, old = _means(first, classes), mean_by_user(first.bsld, user, jobs)
    names, paid = names_of(first.workload, "user_id"), {}
    for name, result in same.items():
        after, ratio = _means(result, classes), mean_by_user(result.bsld, user, jobs) / old
        most = np.argsort(-ratio, kind="stable")[:_LOSERS]
        paid[name] = Paid(
            {
                kind: OfClass(int(np.count_nonzero(of)), after[kind], after[kind] / before[kind])
                for kind, of in classes.items()
            },
            len(users),
            int((ratio < 1).sum()),
            int((ratio > 1).sum()),
            float(np.median(ratio)) if len(ratio) else float("nan"),
            [
                Loser(called(names, "user", int(users[k])), int(number[k]), float(ratio[k]))
                for k in most.tolist()
                if ratio[k] > 1
            ],
        )
    return paid


def _means(result: Result, classes: Mapping[str, NDArray[np.bool_]]) -> dict[str, float]:
    """Return the mean bounded slowdown of each class of jobs; nan of one without jobs."""
    return {
        name: float(result.bsld[jobs].mean()) if jobs.any() else float("nan")
        for name, jobs in classes.items()
    }
