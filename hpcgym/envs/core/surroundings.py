"""What is around a slice in its episode: a machine in use, jobs before and after, a horizon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.machine.pool import Cluster
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import cells_held
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.allowance import uncounted
from hpcgym.simulation.run import simulate
from hpcgym.units import DAY_S, whole_seconds
from hpcgym.workload.extracts import extract, recorded_run_time
from hpcgym.workload.model import Workload
from hpcgym.workload.ongoing import Ongoing

Ints = NDArray[np.int64]

ARRIVALS = ("stop", "continue")

#: The arguments for what is around slices, as they are where nothing is.
NOTHING_AROUND: Mapping[str, Any] = MappingProxyType(
    {"start": "empty", "warmup": None, "arrivals": "stop", "horizon": None}
)

#: Whose schedule an episode goes on with, where it is not said.
USUAL_START = "easy"

_MOST_S = 100 * 366 * DAY_S


class Surroundings(NamedTuple):
    """What is around episodes, by the arguments of :class:`hpcgym.envs.core.episodes.Episodes`.

    Attributes
    ----------
    start : the scheduler that left the machine as an episode finds it; None: it is empty.
    warmup_s, horizon_s : [s]; FOREVER stands for no horizon.
    continues : whether jobs go on to come.
    """

    start: Scheduler | None
    warmup_s: int
    continues: bool
    horizon_s: int

    @property
    def plain(self) -> bool:
        """Whether there is nothing around the jobs."""
        return self == Surroundings(None, 0, False, FOREVER)


def read_surroundings(
    start: Any, warmup: Any, arrivals: Any, horizon: Any, rules: Mapping[str, Any]
) -> Surroundings:
    """Return what episodes have around their jobs, checked.

    ``rules``: what the scheduler keeps that left the machine, whatever it is.

    Raises
    ------
    HpcgymError : no scheduler, no duration, or arrivals that go on without a horizon.
    """
    scheduler = start if isinstance(start, Scheduler) else None
    if isinstance(start, Mapping):
        scheduler = Scheduler().but(**start)
    elif scheduler is None and start != "empty":
        scheduler = find_scheduler(USUAL_START if start == "warm" else start)
    if scheduler is not None:
        scheduler = scheduler.but(**rules)
    check_choice("arrivals", arrivals, ARRIVALS)
    continues = arrivals == "continue"
    if continues and horizon is None:
        raise HpcgymError(
            "arrivals='continue' needs a horizon, such as horizon='28d': jobs come until then"
        )
    warmup_s = 0 if warmup is None else whole_seconds("warmup", warmup, 0, _MOST_S)
    horizon_s = FOREVER if horizon is None else whole_seconds("horizon", horizon, 1, _MOST_S)
    return Surroundings(scheduler, warmup_s, continues, horizon_s)


def check_surroundable(workload: Workload, kind: str, around: Surroundings) -> None:
    """Raise an HpcgymError unless episodes of this kind can have something around them."""
    if workload.initial is not None:
        raise HpcgymError(
            f"start, warmup, arrivals and horizon are for whole traces: {workload.name} is an"
            " extract, which begins with the jobs that run then"
        )
    if kind == "stream" and not around.plain:
        raise HpcgymError(
            "start, warmup, arrivals and horizon: episodes='stream' have all jobs of the part, and"
            " end with its last submission"
        )
    if kind == "whole" and around.start is not None:
        raise HpcgymError(
            "start: episodes='whole' begin where nothing comes before; give start='empty', or use"
            " weeks or windows"
        )


def surrounded(episode: Episode, workload: Workload, around: Surroundings, end: int) -> Episode:
    """Return an episode of rows with what is around it.

    Parameters
    ----------
    episode : a slice of the workload, from an empty machine.
    end : the row behind the last job that may come after it.
    """
    firsts, lasts = np.array([episode.start]), np.array([episode.stop])
    starts, stops, untils = rows_around(workload.submit_time, firsts, lasts, around, end)
    return episode._replace(
        start=int(starts[0]), stop=int(stops[0]), first=episode.start, last=episode.stop,
        until=int(untils[0]),
    )  # fmt: skip


def rows_around(
    submit: Ints, firsts: Ints, lasts: Ints, around: Surroundings, end: int
) -> tuple[Ints, Ints, Ints]:
    """Return the rows of slices with those around them, and when they are truncated, (n,) each.

    Parameters
    ----------
    submit : (n_jobs,) [s], ascending.
    firsts, lasts : (n,) the rows of slices, the last exclusive.
    end : as of :func:`surrounded`.
    """
    begins = submit[firsts]
    starts = np.searchsorted(submit, begins - around.warmup_s) if around.warmup_s else firsts
    untils = np.full(len(begins), FOREVER)
    if around.horizon_s < FOREVER:
        untils = begins + around.horizon_s
    stops = lasts
    if around.continues:
        coming = np.searchsorted(submit, untils, side="right")
        stops = np.maximum(lasts, np.minimum(end, coming))
    return starts, stops, untils


class WarmMachine:
    """The machine as slices find it, by one simulation of the whole log before them.

    What an episode begins with is worked out when somebody asks for it: most of thousands of short
    windows may never be drawn, and jobs that come after one come after many.

    Parameters
    ----------
    workload : from which the episodes are cut.
    episodes : slices of it, from an empty machine.
    around : what is around them; its scheduler has simulated the log.
    end : the row behind the last job that may come after them.
    cluster : the machine; None: a pool of the workload's processors.
    past_jobs : how many jobs of each user episodes know that had ended, the last; infinity: all,
        for users' shares and learned run times. Others would only take time and memory.

    Attributes
    ----------
    listing : the episodes; their rows are those of their own jobs, see :meth:`rows`.
    """

    def __init__(
        self,
        workload: Workload,
        episodes: Sequence[Episode],
        around: Surroundings,
        end: int,
        cluster: Cluster | None,
        past_jobs: float,
    ) -> None:
        assert around.start is not None
        with uncounted():
            self._result = result = simulate(workload, around.start, cluster=cluster)
        self._jobs = replace(workload.with_columns(wait_time=result.wait), cleaning={})
        self._ends = result.start + recorded_run_time(workload)
        submit, firsts = workload.submit_time, np.array([episode.start for episode in episodes])
        lasts = np.array([episode.stop for episode in episodes])
        self._begins = np.maximum(submit[firsts] - around.warmup_s, 0)
        _, self._stops, untils = rows_around(submit, firsts, lasts, around, end)
        ended = np.searchsorted(np.sort(self._ends), self._begins, side="right")
        numbers = self._stops - ended  # a slice has all jobs up to its last but those
        shifts = numbers - self._stops  # what comes from the beginning on stands behind the others
        rows = zip(episodes, *(x.tolist() for x in (numbers, shifts, untils)), strict=True)
        self.listing: list[Episode] = [
            episode._replace(
                start=0, stop=n, first=episode.start + shift, last=episode.stop + shift,
                until=until, beginning=number,
            )
            for number, (episode, n, shift, until) in enumerate(rows)
        ]  # fmt: skip
        self._past = None if past_jobs == math.inf else LastOfUsers(self._jobs, int(past_jobs))

    def rows(self, number: int) -> Ints:
        """Return the rows of the log that the jobs of an episode have, ascending."""
        begin, stop = self._begins[number], self._stops[number]
        return np.flatnonzero(self._ends[:stop] > begin)

    def jobs(self, number: int) -> Workload:
        """Return the jobs of an episode, with the state that it begins with."""
        begin, stop = int(self._begins[number]), self._stops[number]
        # those before the first that runs or waits then are past
        first = 0 if self._past is None else int(np.argmax(self._ends > begin))
        part = extract(self._jobs.take(slice(first, stop)), begin)
        if self._result.allocation is not None:
            part = _on_their_nodes(part, self._result, self.rows(number))
        if self._past is not None and part.initial is not None:
            past = self._jobs.take(self._past.by(begin))
            part = replace(part, initial=replace(part.initial, past=past))
        return replace(part, cleaning={})


class LastOfUsers:
    """The jobs of each user that were the last to end by a time.

    Parameters
    ----------
    jobs : with the times that they waited and ran.
    number : how many of each user, at most.
    """

    def __init__(self, jobs: Workload, number: int) -> None:
        start, run = jobs.submit_time + jobs.wait_time, recorded_run_time(jobs)
        order = np.lexsort((start, start + run))
        order = order[((jobs.wait_time >= 0) & (run >= 1))[order]]
        users, user = np.unique(jobs.user_id[order], return_inverse=True)
        places = np.argsort(user, kind="stable")  # in the order of ends, by user
        self._number, self._ends = number, (start + run)[order]
        self._rows, self._keys = order[places], user[places] * (len(order) + 1) + places
        self._users = np.arange(len(users)) * (len(order) + 1)  # the least key of each

    def by(self, time: int) -> Ints:
        """Return the rows of those by a time [s], ascending."""
        ended = np.searchsorted(self._ends, time, side="right")
        stops = np.searchsorted(self._keys, self._users + ended)
        firsts = np.searchsorted(self._keys, self._users)
        firsts = np.maximum(firsts, stops - self._number)
        places = map(np.arange, firsts.tolist(), stops.tolist())
        return np.sort(self._rows[np.concatenate(list(places))])


def _on_their_nodes(part: Workload, result: Result, rows: Ints) -> Workload:
    """Return an extract of these rows whose jobs run where they ran.

    On other nodes there may be no room for all of them, or they might run into a window, which they
    had been kept out of.
    """
    initial = part.initial
    assert initial is not None
    held = np.zeros(len(result.workload), np.bool_)
    held[rows] = initial.running
    assert result.allocation is not None
    cells = cells_held(result.allocation, held)
    unknown = np.full(len(part), -1)
    ongoing = Ongoing(
        {}, result.cluster, np.arange(len(part)), unknown, unknown, cells=cells.take(rows)
    )
    return replace(part, initial=replace(initial, ongoing=ongoing))
