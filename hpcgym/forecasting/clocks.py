"""When Slurm backfills next: passes come at even times while jobs wait, and a log tells no times.

But starts do. A job that starts when nothing else happens has waited for a pass, so where the last
of these starts are in step with each other, the next pass is in step with them. Otherwise each
future has a time of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcgym.scheduler.backfilling import NEVER
from hpcgym.simulation.warm_start import going_on
from hpcgym.units import DAY_S
from hpcgym.workload.columns import Ints
from hpcgym.workload.extracts import recorded_run_time

if TYPE_CHECKING:
    from hpcgym.forecasting.state import MachineState
    from hpcgym.scheduler.rules import Scheduler

#: Starts so long before now are looked at [s], the last so many of them, and at least so many.
_LOOKS_BACK_S, _LAST, _LEAST = DAY_S, 5, 2
#: Futures have so many different times of the first pass at most: each takes a call of the engine.
_PHASES = 8


def first_passes(
    state: MachineState, scheduler: Scheduler, number: int, rng: np.random.Generator
) -> Ints | None:
    """Return when the first pass that backfills comes in each future, (number,) int64 [s].

    None: the rules have no such clock, or the state tells, or no job waits: then the clock begins
    with the next event.
    """
    slurm, initial = scheduler.reserve.slurm, state.jobs.initial
    assert initial is not None
    if slurm is None or slurm.bf_interval == NEVER or state.running.all():
        return None
    ongoing = going_on(initial, scheduler, state.cluster)
    if ongoing is not None and ongoing.looks is not None:
        return None
    every, time = max(slurm.bf_interval, 1), state.time
    phase = _phase(state, every, slurm.sched_interval)
    if phase is not None:
        return np.full(number, time + (phase - time) % every)
    phases = min(_PHASES, number, every)
    drawn = ((np.arange(phases) + rng.random(phases)) * every / phases).astype(np.int64)
    return time + drawn[np.arange(number) * phases // number]


def _phase(state: MachineState, every: int, all_every: int) -> int | None:
    """Return the second of the interval in which the last passes came; None: starts do not tell.

    Parameters
    ----------
    every : from one pass that backfills to the next [s].
    all_every : at its multiples [s] another pass may have started jobs.
    """
    past, jobs, time = state.past, state.jobs, state.time
    runs = state.running
    begin = time - _LOOKS_BACK_S
    past_start = past.submit_time + past.wait_time
    past_end = past_start + recorded_run_time(past)
    submit = np.concatenate([past.submit_time, jobs.submit_time])
    start = np.concatenate([past_start, np.where(runs, state.start, time)])
    lately = start > begin
    submit, start = submit[lately], start[lately]
    events = np.concatenate([submit, past_end[past_end > begin]])
    alone = start[(start < time) & (start > submit) & ~np.isin(start, events)]
    alone = alone[(alone % all_every != 0) & (alone > _empty_at(submit, start, begin))]
    phases = np.unique(alone)[-_LAST:] % every  # of the last such times
    if len(phases) < _LEAST or (phases != phases[0]).any():
        return None
    return int(phases[0])


def _empty_at(submit: Ints, start: Ints, begin: int) -> int:
    """Return the last time [s] at which no job waited; ``begin`` if some always did."""
    waited = start > submit
    if not waited.any():
        return begin
    times = np.concatenate([submit[waited], start[waited]])
    change = np.repeat([1, -1], int(waited.sum()))
    order = np.argsort(times, kind="stable")
    each, last = np.unique(times[order][::-1], return_index=True)
    number = change[order].cumsum()[len(times) - 1 - last]
    # jobs of the state that wait start never, and are counted as if they started now
    empty = each[(number == 0) & (each < each[-1])]
    return int(empty[-1]) if len(empty) else begin
