"""Weights chosen anew each week by the weeks before."""

from __future__ import annotations

import numpy as np
import pytest

from hpcgym import load_workload, simulate, validate_schedule
from hpcgym.baselines import find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.tuning.online import (
    BEST,
    FIXED,
    SAF,
    Online,
    _choices,
    on_whole_log,
    tune_online,
)
from hpcgym.workload.extracts import WEEK_S, weeks
from hpcgym.workload.model import Workload


@pytest.fixture(scope="module")
def log() -> Workload:
    """Twelve weeks of jobs that are four times as long, and as far apart, as the model has them."""
    jobs = load_workload("lublin:jobs=3000,processors=8,seed=1,load=0.9")
    times = ("submit_time", "run_time", "requested_time")
    return jobs.with_columns(**{name: 4 * jobs.columns[name] for name in times})


@pytest.fixture(scope="module")
def found(log: Workload) -> Online:
    return tune_online(log, "area,wait,requested", vectors=40)


def test_no_choice_looks_ahead() -> None:
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(30, 20))
    before = _choices(logs)
    assert before.keys() > {FIXED, BEST}
    for k in range(5, 20, 5):
        other = logs.copy()
        other[:, k:] = rng.normal(size=(30, 20 - k))
        after = _choices(other)
        for name in before.keys() - {FIXED, BEST}:
            assert np.array_equal(before[name][: k + 1], after[name][: k + 1]), name


def test_choices_by_hand() -> None:
    logs = np.zeros((3, 8))  # the first is SAF's
    logs[1] = [-1, 1, -1, 1, -1, 1, -1, 1]
    logs[2] = -0.25
    chosen = _choices(logs)
    assert chosen["by the week before"].tolist() == [0, 0, 0, 0, 2, 1, 2, 1]
    assert chosen["by all weeks before"].tolist() == [0, 0, 0, 0, 2, 2, 2, 2]
    assert chosen["by all weeks before, if clearly below saf"][4:].tolist() == [2] * 4
    assert chosen[FIXED].tolist() == [2] * 8
    assert chosen[BEST].tolist() == [1, 2] * 4


def test_saf_is_saf(log: Workload, found: Online) -> None:
    means = [simulate(week, "saf").bsld.mean() for week in weeks(log)]
    table = found.table.set_index("weights")
    assert table.loc[SAF, "sum"] == pytest.approx(np.sum(means))
    assert table.loc[SAF, "weekly_bsld"] == pytest.approx(np.exp(np.log(means).mean()))
    whole = simulate(log, "saf")
    assert table.loc[SAF, "mean_bsld"] == pytest.approx(whole.metrics["mean_bsld"])
    assert table.loc[SAF, "max_wait_h"] == pytest.approx(whole.wait.max() / 3600)


def test_the_best_in_hindsight_are_the_best(found: Online) -> None:
    table = found.table.set_index("weights")
    assert table["weekly_bsld"].idxmin() == BEST
    assert table.loc[FIXED, "regret [%]"] == 0
    assert table.loc[BEST, "gap closed"] == pytest.approx(1)
    fixed = np.exp(np.log(found.by_week).mean(axis=1)).min()
    assert table.loc[FIXED, "weekly_bsld"] == pytest.approx(fixed)


def test_weights_change_at_the_beginning_of_weeks(log: Workload, found: Online) -> None:
    names, n = ("area", "wait", "requested"), len(found.names)
    numbers = np.array([int(name.rpartition(" ")[2]) for name in found.names])
    weights = np.tile([-1.0, 0.0, 0.0], (n, 1))
    scheduler, saf = find_scheduler("spf"), simulate(log, "saf")
    same = on_whole_log(log, names, scheduler, weights, numbers)
    assert np.array_equal(same.start, saf.start)
    weights[3:] = [0.0, 0.0, -1.0]
    changed = on_whole_log(log, names, scheduler, weights, numbers)
    begin = log.submit_time[0] + int(numbers[3]) * WEEK_S
    before = saf.start < begin
    assert np.array_equal(changed.start[before], saf.start[before])
    assert (changed.start[~before] >= begin).all()
    assert not np.array_equal(changed.start, saf.start)
    validate_schedule(changed)


def test_what_cannot_be_tuned_on_line(log: Workload) -> None:
    short = log.take(log.submit_time < log.submit_time[0] + 4 * WEEK_S)
    with pytest.raises(HpcgymError, match="weeks; to choose by past ones takes 8"):
        tune_online(short)
    with pytest.raises(HpcgymError, match="features must have area"):
        tune_online(log, "wait,requested")
