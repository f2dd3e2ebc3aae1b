"""A twin that looks at Slurm again and again, says when jobs start, and learns from what came."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.forecasting.arrivals import NOBODY
from hpcgym.forecasting.forecasts import Forecast
from hpcgym.forecasting.futures import Futures
from hpcgym.forecasting.scores import LEVELS, Floats
from hpcgym.forecasting.state import MachineState, SlurmStates
from hpcgym.scheduler.rules import Scheduler
from hpcgym.slurm.looks import SeenJob, SlurmLook
from hpcgym.slurm.present import present
from hpcgym.twin.record import TwinRecord

#: Within so many seconds of a forecast Slurm's own plan counts as said beside it.
_SOON_S = 90
#: A forecast has so many futures at least; more, up to those asked for, where there is time.
_LEAST = 8


class WaitingJob(NamedTuple):
    """What a twin says of a waiting job.

    Attributes
    ----------
    job : as Slurm calls it.
    user, processors, requested, waited : of the job, times in [s].
    p10, p50, p90 : by when it has started with these chances, by the pool of futures and point
        [s since 1970]; inf: never.
    slurm : when Slurm plans it [s since 1970]; -1: it does not say.
    """

    job: str
    user: str
    processors: int
    requested: int
    waited: int
    p10: float
    p50: float
    p90: float
    slurm: int


class PlanCheck(NamedTuple):
    """How the plan of Slurm's last backfill pass compares with that of the rules here.

    Attributes
    ----------
    same, told : of so many jobs of which Slurm tells a start time, how many are planned so here.
    """

    same: int
    told: int


@dataclass(frozen=True, eq=False)
class TwinPoll:
    """What a twin found and said at one time.

    Attributes
    ----------
    state : what was known.
    forecast : of its waiting jobs.
    waiting : what is said of each.
    plan : the comparison of plans; None: it cannot be made at this poll.
    took_s : how long it took.
    """

    state: MachineState
    forecast: Forecast
    waiting: list[WaitingJob]
    plan: PlanCheck | None
    took_s: float


class Twin:
    """Forecasts beside a Slurm that runs, which it never changes.

    Parameters
    ----------
    states : of Slurm.
    scheduler : its rules.
    log : a file that keeps forecasts and scores, and is read first; None: they are not kept.
    futures : of each forecast at most.
    every_s : from one poll to the next [s]; a forecast aims at less than half of that.

    Attributes
    ----------
    record : what was said, and what it taught.
    last : the last poll; None before the first.
    """

    def __init__(
        self,
        states: SlurmStates,
        scheduler: Scheduler,
        log: Path | None = None,
        *,
        futures: int = 64,
        every_s: float = 30,
    ) -> None:
        self.states, self.scheduler = states, scheduler
        self.record = TwinRecord(log)
        self.last: TwinPoll | None = None
        self._futures, self._number, self._every_s = futures, min(_LEAST, futures), every_s
        states.remember(self.record.ended)

    def poll(self) -> TwinPoll:
        """Look at Slurm, score what has started, and say when the others start.

        Raises
        ------
        HpcgymError : Slurm does not answer, or tells of a machine that these rules do not know.
        """
        began = time.monotonic()
        state = self.states.now()
        slurm = state.look
        assert slurm is not None
        seed = state.time % 2**31
        forecast = Forecast(state, self.scheduler, state.past, self._number, seed)
        spent = time.monotonic()
        samples = np.sort(forecast.starts, axis=0) - state.time
        spent = time.monotonic() - spent
        self._settle(slurm)
        requested = _requested(state, self.scheduler)
        self._say(state, samples, requested)
        waiting = self._waiting(state, samples, requested)
        plan = self._planned(slurm) if slurm.passed >= 0 else None
        self.last = TwinPoll(state, forecast, waiting, plan, time.monotonic() - began)
        # as many futures as there is time for
        if spent > self._every_s / 4:
            self._number = max(self._number // 2, min(_LEAST, self._futures))
        elif spent < self._every_s / 16:
            self._number = min(self._number * 2, self._futures)
        return self.last

    def _settle(self, slurm: SlurmLook) -> None:
        """Score the forecasts of jobs that have started, and remember those that have ended."""
        here = {key_of(seen): seen for seen in slurm.jobs}
        for job, line in [*self.record.pending.items()]:
            seen = here.get(job)
            if seen is None or seen.is_held:  # one that is released is forecast anew
                self.record.gone(job)
            elif not seen.waits:
                self.record.started(job, max(seen.told.began - int(line["time"]), 0))
            elif seen.planned >= 0 and line["slurm"] < 0 and slurm.time <= line["time"] + _SOON_S:
                self.record.planned(job, max(seen.planned - int(line["time"]), 0))
        for key, ended in self.states.ended.items():
            if key not in self.record.ended:
                self.record.has_ended(key, ended)

    def _say(self, state: MachineState, samples: Floats, requested: Floats) -> None:
        """Keep the first forecast of each job."""
        look = state.look
        assert look is not None
        seen = {job.told.number: job for job in look.jobs}
        for at, number in enumerate(state.jobs.job_number[~state.running].tolist()):
            job = seen[number]
            if key_of(job) in self.record.pending:
                continue
            slurm = max(job.planned - state.time, 0) if job.planned >= 0 else -1
            user = job.told.names[0]
            point = float(requested[at])
            self.record.said(key_of(job), state.time, user, samples[:, at], point, slurm)

    def _waiting(self, state: MachineState, samples: Floats, requested: Floats) -> list[WaitingJob]:
        slurm = state.look
        assert slurm is not None
        seen = {job.told.number: job for job in slurm.jobs}
        levels = [int(np.abs(LEVELS - level).argmin()) for level in (0.1, 0.5, 0.9)]
        numbers, rows = state.jobs.job_number[~state.running].tolist(), []
        for at, number in enumerate(numbers):
            job = seen[number]
            user = job.told.names[0]
            quantiles = self.record.quantiles(user, samples[:, at], float(requested[at]))
            low, median, high = (state.time + quantiles[levels]).tolist()
            waited = state.time - job.told.submit
            facts = job.label, user, job.told.processors, job.told.limit, waited
            rows.append(WaitingJob(*facts, low, median, high, job.planned))
        return rows

    def _planned(self, slurm: SlurmLook) -> PlanCheck | None:
        """Compare the plan of the last pass with Slurm's."""
        before = before_pass(slurm)
        if before is None:
            return None
        machine = self.states.machine
        state = MachineState(present(before, machine, {}), machine.cluster, before)
        try:
            table = Forecast(state, self.scheduler, state.past, 1).plan()
        except HpcgymError:  # rules that plan few jobs or none
            return None
        planned = dict(zip(table.job.tolist(), table.planned.tolist(), strict=True))
        jobs = [seen for seen in slurm.jobs if seen.planned >= 0 and not seen.is_held]
        jobs = [seen for seen in jobs if seen.told.submit <= slurm.passed]
        same = sum(planned.get(seen.told.number) == seen.planned for seen in jobs)
        return PlanCheck(same, len(jobs))


def key_of(seen: SeenJob) -> str:
    """Return a key of a job that no other job ever has: Slurm begins its numbers anew at times."""
    return f"{seen.label} of {seen.told.submit}"


def before_pass(slurm: SlurmLook) -> SlurmLook | None:
    """Return what Slurm would have told just before its last backfill pass.

    Jobs that started since wait, those that were submitted since are not there, those that ended
    since run. None: nobody knows on which processors of their nodes the latter ran.
    """
    time, jobs = slurm.passed, []
    for seen in slurm.jobs:
        job = seen.told
        if job.submit > time or 0 <= job.ended <= time:
            continue
        if job.began >= time:
            jobs.append(seen._replace(told=job._replace(began=-1, ended=-1), nodes=""))
        elif job.ended >= 0 and slurm.parts and not _is_placed(job.number, slurm):
            return None
        else:
            jobs.append(seen._replace(told=job._replace(ended=-1)))
    return slurm._replace(time=time, jobs=jobs)


def _is_placed(number: int, slurm: SlurmLook) -> bool:
    """Return whether it is known on which processors a job ran."""
    parts = slurm.parts.get(number)
    return parts is not None and bool(parts.cells)


def _requested(state: MachineState, scheduler: Scheduler) -> Floats:
    """Return how long waiting jobs wait if all run as long as they request, and none come [s]."""
    rows = np.flatnonzero(~state.running)
    if not len(rows):
        return np.zeros(0)
    nobody = replace(state.jobs.take(slice(0)), initial=None)
    futures = Futures(state, scheduler, nobody, [NOBODY])
    runs = state.jobs.requested_time[np.newaxis]
    starts = futures.starts(runs, np.zeros(1, np.int64), rows, 1)[0]
    waits: Floats = np.where(starts < 0, np.inf, starts - float(state.time))
    return waits
