"""Backtests: what is scored, how, and that nothing of it was known later."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym import Cluster
from hpcgym.forecasting.backtests import METHODS, AtSubmission, _at_submission, _recent
from hpcgym.forecasting.run_times import RunTimes
from hpcgym.forecasting.scores import LEVELS, crps, places, recalibrated, scores
from hpcgym.workload.model import Workload

LOG = hpcgym.simulate("lublin:jobs=700,processors=64,load=1.1,seed=3", "easy").as_workload()


def test_a_backtest_has_a_row_for_each_method() -> None:
    done: list[str] = []
    table = hpcgym.backtest(
        LOG, "easy", moments=5, futures=4, progress=lambda *_: nullcontext(done.append)
    )
    assert table.method.tolist() == [*METHODS]
    assert set(table.moments) == {5}
    assert len(set(done)) == 10
    again = hpcgym.backtest(LOG, "easy", moments=5, futures=4, threads=2)
    assert again.to_numpy().tolist() == table.to_numpy().tolist()
    other = hpcgym.backtest(LOG, "easy", moments=5, futures=4, seed=1)
    assert other.crps.tolist() != table.crps.tolist()
    raw, requested = (
        table.crps[table.method == name].item() for name in ("futures, raw", "requested")
    )
    assert raw < requested
    recorded = hpcgym.backtest(LOG, "saf", moments=5, futures=4, truth="recorded")
    recent = [each.crps[each.method == "recent"].item() for each in (recorded, table)]
    assert recent[0] == recent[1]  # the same waits, whatever the rules


def test_moments_do_not_see_the_future() -> None:
    rows = np.flatnonzero(LOG.wait_time > 0)
    row = int(rows[len(rows) // 2])
    now = int(LOG.submit_time[row])
    began = LOG.submit_time + LOG.wait_time
    waits, ended = began >= now, began + LOG.run_time <= now
    other = LOG.with_columns(
        run_time=np.where(ended, LOG.run_time, LOG.requested_time),
        wait_time=np.where(waits, LOG.wait_time + 777, LOG.wait_time),
    )
    other = other.take((np.arange(len(other)) <= row) | (np.arange(len(other)) % 3 == 0))
    assert said(LOG, row) == said(other, row)


def said(log: Workload, row: int) -> list[object]:
    rules, machine = hpcgym.Scheduler(), Cluster(64)
    moment = _at_submission(log, row, rules, machine, RunTimes(log), 8, 0, None)
    assert isinstance(moment, AtSubmission)
    (recent,) = _recent(log, [row])
    return [moment.samples.tolist(), moment.requested, moment.median, recent.tolist()]


def test_the_crps_of_a_point_is_its_error() -> None:
    """Of log(1 + wait / 60 s); and quantiles around the truth are better than one beside it."""
    point = np.full((3, len(LEVELS)), 600.0)
    errors = np.abs(np.log1p(10) - np.log1p([0, 10, 600]))
    assert crps(point, np.array([0.0, 600, 36_000])) == pytest.approx(errors, abs=1e-9)
    spread = np.quantile(np.linspace(0, 1200, 101), LEVELS)[np.newaxis]
    wait = np.array([800.0])
    assert crps(spread, wait) < crps(point[:1], np.array([3000.0]))


def test_scores_by_hand() -> None:
    hours = np.arange(1.0, 1 + len(LEVELS)) * 3600
    quantiles = np.stack([hours, hours])
    found = scores(quantiles, np.array([hours[10] + 60, hours[-1] + 3600]))
    assert found["coverage_50"] == found["coverage_80"] == found["coverage_95"] == 0.5
    assert (found["within_15_min"], found["within_factor_2"]) == (0.5, 1.0)
    assert found["median_error_h"] == pytest.approx((60 / 3600 + 11) / 2)


def test_recalibration_widens_what_was_too_sure() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 1, (4000, 64))
    place = places(samples, rng.normal(0, 2, 4000), rng)
    levels = recalibrated(place)
    assert levels[0] < 0.01
    assert levels[-1] > 0.99
    fair = recalibrated(places(samples, rng.normal(0, 1, 4000), rng))
    assert np.abs(fair - LEVELS).max() < 0.03
    assert recalibrated(np.zeros(0)).tolist() == LEVELS.tolist()
    assert (places(np.zeros((9, 3)), np.zeros(9), rng) >= 0).all()


test_mistakes = mistakes_of(globals())
