"""Forecasts beside a private, unmodified Slurm: what it tells meanwhile, and how good they were.

A stretch of a log is replayed (:func:`hpcgym.replay.replay_on_slurm`). At each submission, a little
later and each half hour Slurm is looked at. When all has ended, each look is a state, of which is
asked

- *exact*: with true run times and arrivals, how many waiting jobs start in the second in which
  Slurm started them;
- *scores*: futures, learned from what had happened, beside Slurm's own start times, and these with
  their errors learned on another stretch.

::

    python -m hpcgym.benchmarks.forecast.beside_slurm KTH-SP2 35 3 33 4
    python -m hpcgym.benchmarks.forecast.beside_slurm KTH-SP2 35 1.6 33 0.8 8x8x1 2
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import hpcgym
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.forecasting.arrivals import Block
from hpcgym.forecasting.forecasts import Forecast
from hpcgym.forecasting.futures import Futures
from hpcgym.forecasting.pool import Recalibration
from hpcgym.forecasting.scores import LEVELS, places, scores
from hpcgym.forecasting.state import MachineState
from hpcgym.machine import Partition, find_cluster
from hpcgym.replay import replay_on_slurm
from hpcgym.replay.private import PrivateSlurm
from hpcgym.slurm.looks import JobParts, SeenJob, SlurmLook, look
from hpcgym.slurm.present import SlurmMachine, machine_of, present
from hpcgym.slurm.queue import QueuedJob, jobs_told
from hpcgym.units import DAY_S, MINUTE_S
from hpcgym.workload.columns import Ints
from hpcgym.workload.io.swf_header import HEADER_KEYS

Floats = NDArray[np.float64]

#: What Slurm is set to: a week ahead, so that its start times are not cut off.
RULES = "easy:backfill=slurm:bf_window=10080"
#: Slurm's own start time counts that it tells first within so many seconds.
_SOON_S = 90
#: Of the regular looks each so manieth is scored: one in two hours.
_EACH = 4


class Stretch(NamedTuple):
    """A stretch of a log on a private Slurm.

    Attributes
    ----------
    looks : the moments, and what was told.
    machine : of Slurm.
    start, run_time : (n_jobs,) [s since 1970] and [s] of each job; job k of Slurm is in row k - 1.
    past : what its accounting would tell of the time before.
    """

    looks: list[tuple[str, SlurmLook]]
    machine: SlurmMachine
    start: Ints
    run_time: Ints
    past: dict[str, QueuedJob]


class _Seen(Exception):  # noqa: N818  # no error: all that is needed has been seen
    """All jobs have started."""


def replayed(log: str, week: int, days: float, nodes: str = "100x1x1", n_parts: int = 0) -> Stretch:
    """Replay some days of a week, with looks at Slurm; jobs take turns in its partitions."""
    full = hpcgym.load_workload(log)
    jobs = full.weeks()[week]
    first = int(jobs.submit_time[0])
    jobs = jobs.take(jobs.submit_time < first + days * DAY_S)
    before = full.take(full.submit_time < first)
    before = before.with_columns(requested_time=-(-before.requested_time // MINUTE_S) * MINUTE_S)
    old = hpcgym.simulate(before, RULES)
    cluster = find_cluster(nodes)
    if n_parts:
        parts = [[*range(k, cluster.nodes, n_parts)] for k in range(n_parts)]
        named = [Partition(f"p{k}", tuple(part)) for k, part in enumerate(parts)]
        cluster = replace(cluster, partitions=tuple(named))
        lines = [f"{k + 1} p{k}" for k in range(n_parts)]
        jobs = jobs.with_columns(partition=1 + jobs.user_id % n_parts)
        jobs = replace(jobs, header={**jobs.header, HEADER_KEYS["partition"]: lines})
        room = cluster.processors // n_parts
        jobs = jobs.take(jobs.requested_processors <= room)
    looks: list[tuple[str, SlurmLook]] = []
    replayed: dict[str, Any] = {}
    began, ran = np.zeros((2, len(jobs)), np.int64)

    def watch(slurm: PrivateSlurm, kind: str) -> None:
        programs = slurm.looking()
        if not replayed:
            replayed["machine"], replayed["zero"] = machine_of(programs), slurm.zero_s
        parts = replayed["machine"].shares_nodes
        slurm_look = look(programs, parts=parts, ended=False)
        looks.append((kind, slurm_look))
        if len(looks) % 100 == 0:
            print(f"{len(looks):,} looks, {slurm.time_s - first:,} s", file=sys.stderr, flush=True)
        waits = any(seen.waits for seen in slurm_look.jobs)
        if not waits and slurm.time_s > int(jobs.submit_time[-1]):
            run = np.minimum(jobs.run_time, jobs.requested_time)
            for seen in look(programs, ended=True).jobs:
                row, job = seen.told.number - 1, seen.told
                began[row] = job.began
                ran[row] = run[row] if job.ended < 0 else job.ended - job.began
            raise _Seen

    with suppress(_Seen):
        replay_on_slurm(jobs, find_scheduler(RULES), cluster=cluster, watch=watch)
    ended = old.as_workload().take(old.end <= first)
    ended = replace(ended, header={**ended.header, "UnixStartTime": [str(replayed["zero"])]})
    return Stretch(looks, replayed["machine"], began, ran, jobs_told(ended))


def moments(stretch: Stretch) -> list[tuple[int, Ints]]:
    """Return which looks are scored, and the jobs in question, by their rows.

    At a submission the job that was submitted, if it waits; else all that wait.
    """
    chosen, regular, known = [], 0, -1
    for k, (kind, slurm_look) in enumerate(stretch.looks):
        waiting = [
            seen.told.number - 1 for seen in slurm_look.jobs if seen.waits and not seen.is_held
        ]
        newest = max((seen.told.number for seen in slurm_look.jobs), default=0) - 1
        if kind == "submitted" and newest > known:
            if newest in waiting and stretch.start[newest] > slurm_look.time:
                chosen.append((k, np.array([newest])))
            known = newest
        elif kind == "regular":
            regular += 1
            waiting = [row for row in waiting if stretch.start[row] > slurm_look.time]
            if regular % _EACH == 0 and waiting:
                chosen.append((k, np.sort(np.array(waiting))))
    return chosen


def requests(stretch: Stretch) -> dict[int, tuple[SeenJob, JobParts | None]]:
    """Return how each job was seen first, as one that waits, by its number."""
    first: dict[int, tuple[SeenJob, JobParts | None]] = {}
    for _, slurm_look in stretch.looks:
        for seen in slurm_look.jobs:
            if seen.told.number not in first:
                asked = seen._replace(told=seen.told._replace(began=-1), nodes="", reason="")
                first[seen.told.number] = asked, slurm_look.parts.get(seen.told.number)
    return first


def exact(
    stretch: Stretch, k: int, rows: Ints, asked: dict[int, tuple[SeenJob, JobParts | None]]
) -> Ints:
    """Return when jobs start from a look, with true run times and arrivals, less their starts [s].

    Those that had been seen to run, and ended in this second, have ended.
    """
    later_look = stretch.looks[k][1]
    seen = {job.told.number: job for job in later_look.jobs}
    over = stretch.start + stretch.run_time <= later_look.time
    here = [job for job in later_look.jobs if job.waits or not over[job.told.number - 1]]
    come = {
        n: one
        for n, one in asked.items()
        if n not in seen and one[0].told.submit >= later_look.time
    }
    parts = {**later_look.parts, **{n: part for n, (_, part) in come.items() if part is not None}}
    every = later_look._replace(jobs=[*here, *(job for job, _ in come.values())], parts=parts)
    jobs = present(every, stretch.machine, {})
    later = np.isin(jobs.job_number, [*come])
    run = stretch.run_time[jobs.job_number - 1]
    state = MachineState(jobs.take(~later), stretch.machine.cluster, later_look)
    coming = replace(jobs.take(later).with_columns(run_time=run[later]), initial=None)
    block = Block(np.arange(len(coming)), coming.submit_time)
    futures = Futures(state, find_scheduler(RULES), coming, [block])
    own = state.jobs.job_number - 1
    place = {row: at for at, row in enumerate(own.tolist())}
    targets = np.array([place[row] for row in rows.tolist()])
    runs = np.minimum(run[~later], state.jobs.requested_time)[np.newaxis]
    starts: Ints = futures.starts(runs, np.zeros(1, np.int64), targets, 1)[0]
    return starts - stretch.start[rows]


class Said(NamedTuple):
    """What was said at a moment of a job.

    Attributes
    ----------
    at_submission : whether it was that of the job.
    time : [s since 1970].
    wait : how long it still waited [s].
    samples : (n_futures,) [s].
    slurm : Slurm's own start time from now, the first within a minute and a half [s]; -1: none.
    exact : how much later it starts with true run times and arrivals than on Slurm [s].
    """

    at_submission: bool
    time: int
    wait: int
    samples: Floats
    slurm: int
    exact: int


def said(stretch: Stretch, futures: int = 32) -> list[Said]:
    """Return all that was said."""
    asked, all_said = requests(stretch), []
    for number, (k, rows) in enumerate(moments(stretch)):
        kind, slurm_look = stretch.looks[k]
        jobs = present(slurm_look, stretch.machine, _known(stretch, slurm_look.time, asked))
        state = MachineState(jobs, stretch.machine.cluster, slurm_look)
        forecast = Forecast(state, find_scheduler(RULES), state.past, futures, number)
        place = {n - 1: at for at, n in enumerate(state.jobs.job_number.tolist())}
        starts = forecast.starts_of(np.array([place[row] for row in rows.tolist()]))
        off = exact(stretch, k, rows, asked)
        for at, row in enumerate(rows.tolist()):
            wait = int(stretch.start[row]) - slurm_look.time
            samples = np.sort(starts[:, at]) - slurm_look.time
            slurm = _told_soon(stretch, k, row + 1)
            all_said.append(
                Said(kind == "submitted", slurm_look.time, wait, samples, slurm, int(off[at]))
            )
    return all_said


def _known(
    stretch: Stretch, time: int, asked: dict[int, tuple[SeenJob, JobParts | None]]
) -> dict[str, QueuedJob]:
    """Return the jobs that had ended by a time: of the past, and of the stretch."""
    known, end = dict(stretch.past), stretch.start + stretch.run_time
    for number, (seen, parts) in asked.items():
        if end[number - 1] <= time:
            began = int(stretch.start[number - 1])
            job = seen.told._replace(began=began, ended=int(end[number - 1]))
            if parts is not None:
                job = job._replace(units=parts.units, most=parts.most)
            known[f"job {number}"] = job
    return known


def _told_soon(stretch: Stretch, k: int, number: int) -> int:
    """Return the first start time that Slurm tells of a job from a look on, from then [s]."""
    time = stretch.looks[k][1].time
    for _, later_look in stretch.looks[k:]:
        if later_look.time > time + _SOON_S:
            break
        for seen in later_look.jobs:
            if seen.told.number == number and seen.waits and seen.planned >= 0:
                return max(seen.planned - time, 0)
    return -1


def table(tested: list[Said], learned: list[Said]) -> pd.DataFrame:
    """Return the scores where Slurm told a start time, at submissions and at regular moments.

    Futures are recalibrated by the places of the other stretch, and Slurm's times by its errors.
    """
    rows, rng = [], np.random.default_rng(0)
    for at_submission in (True, False):
        here, other = (
            [one for one in all_said if one.at_submission == at_submission and one.slurm >= 0]
            for all_said in (tested, learned)
        )
        if not here or not other:
            continue
        wait, before = (np.array([one.wait for one in them], float) for them in (here, other))
        samples, known = (np.array([one.samples for one in them]) for them in (here, other))
        slurm, told = (np.array([one.slurm for one in them], float) for them in (here, other))
        past = Recalibration()
        for place in places(known, before, rng).tolist():
            past.learn(place, 0)
        off = np.quantile(_log(before) - _log(told), LEVELS)
        corrected = MINUTE_S * np.expm1(np.maximum(_log(slurm)[:, np.newaxis] + off, 0))
        methods = {
            "futures": np.array([quantiles_at(own, past.levels()) for own in samples]),
            "futures, raw": np.array([quantiles_at(own, LEVELS) for own in samples]),
            "squeue": np.repeat(slurm[:, np.newaxis], len(LEVELS), axis=1),
            "squeue-corrected": corrected,
        }
        rows += [
            {"moments": "submission" if at_submission else "regular", "method": name,
             **scores(quantiles, wait), "forecasts": len(wait)}
            for name, quantiles in methods.items()
        ]  # fmt: skip
    return pd.DataFrame(rows)


def quantiles_at(samples: Floats, levels: Floats) -> Floats:
    """Return quantiles of the waits in futures [s]."""
    seconds: Floats = np.quantile(samples, levels, method="median_unbiased")
    return seconds


def _log(wait: Floats) -> Floats:
    logs: Floats = np.log1p(np.maximum(wait, 0) / MINUTE_S)
    return logs


def main(log: str, week: str, days: str, other: str, other_days: str, *machine: str) -> None:
    """Replay two stretches, and score each by what the other taught."""
    nodes, n_parts = (machine[0], int(machine[1])) if machine else ("100x1x1", 0)
    stretches = [(int(week), float(days)), (int(other), float(other_days))]
    both = [said(replayed(log, *stretch, nodes, n_parts)) for stretch in stretches]
    for (number, length), tested, learned in zip(stretches, both, both[::-1], strict=True):
        for at_submission in (True, False):
            off = np.abs([one.exact for one in tested if one.at_submission == at_submission])
            kind = "submission" if at_submission else "regular"
            print(
                f"{log}, week {number}, {length} days, {kind}: {len(off):,} forecasts,"
                f" {np.mean(off == 0):.1%} exact, {np.mean(off <= MINUTE_S):.1%} within a minute"
            )
        print(table(tested, learned).round(3).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
