"""Backtests: what is scored, how, and that nothing of it was known later."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym import Cluster
from hpcgym.errors import HpcgymError, HpcgymWarning
from hpcgym.forecasting import boosting, methods
from hpcgym.forecasting.backtests import DrawnJobs, forecasts_at
from hpcgym.forecasting.methods import LEARNED, METHODS
from hpcgym.forecasting.scores import LEVELS, crps, places, scores
from hpcgym.workload.model import Workload

LOG = hpcgym.simulate("lublin:jobs=700,processors=64,load=1.1,seed=3", "easy").as_workload()


def test_a_backtest_has_a_row_for_each_method() -> None:
    done: list[str] = []
    table = hpcgym.backtest(
        LOG, "easy", moments=5, futures=4, progress=lambda *_: nullcontext(done.append)
    )
    assert table.method.tolist() == [*METHODS]
    assert set(table.moments) == {5}
    assert (len(done), len(set(done))) == (12, 11)  # ten jobs, and learning twice
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


def test_another_method_is_a_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, scored and pooled like the others."""
    row = methods.Method("twice the point of medians", lambda m, _: np.full(21, 2 * m.median))
    monkeypatch.setitem(methods.TABLE, "twice", row._replace(pooled=True))
    monkeypatch.setitem(methods.METHODS, "twice", row.says)
    table = hpcgym.backtest(LOG, "easy", moments=5, futures=4).set_index("method")
    assert table.weight["twice"] > 0
    assert table.crps["twice"] != table.crps["median"]
    assert table.weight.sum() == pytest.approx(1)


def test_without_the_learner_its_rows_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "find_spec", lambda name: None)
    with pytest.warns(HpcgymWarning, match=r"left out: boosting; .* install .*forecast"):
        table = hpcgym.backtest(LOG, "easy", moments=4, futures=2)
    assert table.method.tolist() == [name for name in METHODS if name not in LEARNED]
    assert table.weight.sum() == pytest.approx(1)
    with pytest.raises(HpcgymError, match="boosting needs scikit-learn: pip install"):
        boosting.Boosting()


def test_moments_do_not_see_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of none of the methods, with what boosting and the pool have learned by then."""
    waits = np.flatnonzero(LOG.wait_time > 0)
    chosen = waits[waits >= len(LOG) // 10]
    monkeypatch.setattr(methods, "LEAST", 15)
    monkeypatch.setattr(boosting, "FITTED", np.array([0.1, 0.5, 0.9]))
    drawn = DrawnJobs(chosen[20:60:2], chosen[100:140:2], chosen)
    row = int(drawn.second[-1])
    now = int(LOG.submit_time[row])
    began = LOG.submit_time + LOG.wait_time
    waiting, ended = began >= now, began + LOG.run_time <= now
    other = LOG.with_columns(
        run_time=np.where(ended, LOG.run_time, LOG.requested_time),
        wait_time=np.where(waiting, LOG.wait_time + 777, LOG.wait_time),
    )
    other = other.take((np.arange(len(other)) <= row) | (np.arange(len(other)) % 3 == 0))
    sooner = drawn._replace(taught=chosen[chosen <= row])
    first, second = (last_said(log, of) for log, of in ((LOG, drawn), (other, sooner)))
    assert first.keys() == METHODS.keys()
    assert first == second
    assert first["boosting"] != first["recent"]  # they have learned
    assert first["median, learned"] != first["futures"] != first["futures, raw"]


def last_said(log: Workload, drawn: DrawnJobs) -> dict[str, list[float]]:
    done = forecasts_at(log, drawn, hpcgym.Scheduler(), Cluster(64), futures=8)
    return {name: said[-1].tolist() for name, said in done.said.items()}


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
    by_name = scores(quantiles, np.array([hours[10] + 60, hours[-1] + 3600]))
    assert by_name["coverage_50"] == by_name["coverage_80"] == by_name["coverage_95"] == 0.5
    assert (by_name["within_15_min"], by_name["within_factor_2"]) == (0.5, 1.0)
    assert by_name["median_error_h"] == pytest.approx((60 / 3600 + 11) / 2)


def test_places_are_random_among_equals() -> None:
    rng = np.random.default_rng(0)
    even = places(np.zeros((900, 3)), np.zeros(900), rng)
    assert (even >= 0).all()
    assert np.quantile(even, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.05)


test_mistakes = mistakes_of(globals())
