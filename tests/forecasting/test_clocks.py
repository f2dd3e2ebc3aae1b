"""When Slurm backfills next, as far as a log tells."""

from __future__ import annotations

import numpy as np
import pytest

import hpcgym
from hpcgym.forecasting import clocks
from hpcgym.forecasting.clocks import _empty_at, first_passes
from hpcgym.scheduler.rules import Scheduler

LOG = hpcgym.load_workload("lublin:jobs=900,processors=64,load=1.1,seed=3")
SLURM = hpcgym.simulate(LOG, "easy", backfill="slurm:bf_interval=300")
RNG = np.random.default_rng(0)


def some_times() -> list[int]:
    """Times at which jobs wait, rising."""
    waits = np.flatnonzero(SLURM.wait > 600)[20::5]
    return [int(SLURM.start[row]) - 1 for row in np.sort(waits)]


def test_starts_in_a_log_tell_the_clock_of_the_simulation_that_made_it() -> None:
    log, known = SLURM.as_workload(), 0
    for time in sorted({*some_times()}):
        state = hpcgym.snapshot(log, time)
        passes = first_passes(state, SLURM.scheduler, 16, RNG)
        if passes is None:  # no job waits
            continue
        initial = hpcgym.snapshot(SLURM, time).jobs.initial
        assert initial is not None
        assert initial.ongoing is not None
        looks = initial.ongoing.looks
        assert looks is not None
        assert ((time <= passes) & (passes < time + 300)).all()
        if len({*passes.tolist()}) == 1:
            known += 1
            assert (passes[0] - looks[1]) % 300 == 0
    assert known > 30


def test_what_the_state_tells_is_not_drawn() -> None:
    time = some_times()[10]
    assert first_passes(hpcgym.snapshot(SLURM, time), SLURM.scheduler, 4, RNG) is None
    log = hpcgym.snapshot(SLURM.as_workload(), time)
    for rules in (Scheduler(), Scheduler(backfill="slurm:bf_interval=-1")):
        assert first_passes(log, rules, 4, RNG) is None


def test_a_clock_that_starts_do_not_tell_is_drawn_in_each_future(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "_phase", lambda *_: None)
    time = some_times()[10]
    state = hpcgym.snapshot(SLURM.as_workload(), time)
    passes = first_passes(state, SLURM.scheduler, 64, RNG)
    assert passes is not None
    after, times = np.unique(passes - time, return_counts=True)
    assert times.tolist() == [8] * 8
    assert (after * 8 // 300).tolist() == [*range(8)]  # one in each part of the interval
    few = first_passes(state, SLURM.scheduler, 3, RNG)
    assert few is not None
    assert len({*few.tolist()}) == 3
    again = [hpcgym.forecast(state, SLURM.scheduler, futures=8, threads=n) for n in (1, 2)]
    assert again[0].starts.tolist() == again[1].starts.tolist()


def test_when_nobody_waited_last() -> None:
    submit, start = np.array([5, 10, 30, 40]), np.array([5, 20, 35, 90])
    assert _empty_at(submit, start, 1) == 35  # the last waits still, at 90
    assert _empty_at(submit[:2], start[:2], 1) == 1
    assert _empty_at(submit[:1], start[:1], 1) == 1
    assert _empty_at(np.array([10, 20]), np.array([20, 90]), 1) == 1  # one came as one left
