"""What scored forecasts teach: recalibration, and the weights of a pool."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hpcgym.errors import HpcgymError
from hpcgym.forecasting.pool import ENOUGH, Pool, Recalibration
from hpcgym.forecasting.scores import LEVELS, crps, logs_of, places, scores, waits_of

RNG = np.random.default_rng(0)


def learned(sd: float, n: int, user: int = 1) -> Recalibration:
    """Futures of standard deviation 1, of what has another one."""
    past = Recalibration()
    for place in places(RNG.normal(0, 1, (n, 64)), RNG.normal(0, sd, n), RNG):
        past.learn(place, user)
    return past


def test_recalibration_widens_what_was_too_sure() -> None:
    levels = learned(2, 2000).levels()
    assert levels[0] < 0.01
    assert levels[-1] > 0.99
    assert np.abs(learned(1, 2000).levels() - LEVELS).max() < 0.04
    assert Recalibration().levels() == pytest.approx(LEVELS)
    assert np.abs(learned(9, 1).levels() - LEVELS).max() < 0.06  # a single one says little
    assert (np.diff(levels) > 0).all()


def test_users_with_enough_forecasts_are_recalibrated_by_their_own() -> None:
    past = learned(1, 1000)
    for _ in range(ENOUGH - 1):
        past.learn(0.99, 7)
    assert past.levels(7).tolist() == past.levels().tolist() == past.levels(8).tolist()
    for _ in range(200):
        past.learn(0.99, 7)
    assert past.levels(7)[10] > past.levels(8)[10] + 0.2
    again = Recalibration.of(json.loads(json.dumps(past.saved())))
    assert again.levels(7).tolist() == past.levels(7).tolist()


def test_a_pool_is_about_as_good_as_the_best_method_whichever_that_is() -> None:
    wait = np.exp(RNG.normal(8, 1, 300))
    sure = [w * np.exp(np.linspace(-0.1, 0.1, len(LEVELS))) for w in wait]
    vague = np.quantile(np.exp(RNG.normal(8, 1, 10_000)), LEVELS)
    wrong = np.full(len(LEVELS), np.inf)
    for better, worse in (("a", "b"), ("b", "a")):
        pool, scored = Pool(["a", "b", "c"]), []
        assert sum(pool.weights.values()) == pytest.approx(1)
        assert pool.weights["a"] > 0.7
        assert pool.weights["b"] == pytest.approx(pool.weights["c"])
        for own, was in zip(sure, wait, strict=True):
            said = {better: own, worse: vague, "c": wrong}
            scored.append(crps(pool.quantiles(said)[np.newaxis], np.array([was]))[0])
            pool.learn(said, was)
        assert pool.weights[better] > 0.97
        assert np.mean(scored[50:]) < 0.1 < crps(np.tile(vague, (300, 1)), wait).mean()
        again = Pool.of(json.loads(json.dumps(pool.saved())))
        assert again.weights == pool.weights


def test_a_pool_mixes_what_errs_on_either_side() -> None:
    pool = Pool(["early", "late"])
    said = {"early": np.full(len(LEVELS), 60.0), "late": np.full(len(LEVELS), 15 * 60.0)}
    for _ in range(200):
        pool.learn(said, 180 + RNG.integers(0, 240))
    assert 0.3 < pool.weights["early"] < 0.7
    # the middle of log(1 + 1) and log(1 + 15), by their weights
    share = pool.weights["early"]
    assert pool.quantiles(said) == pytest.approx(60 * (2**share * 16 ** (1 - share) - 1))


def test_whole_seconds_stay_whole_seconds() -> None:
    """An interval that ends at a wait holds it, after a logarithm, too."""
    waits = np.concatenate([np.arange(0, 100_000, 7), np.arange(10**5, 10**8, 99_991)]) * 1.0
    assert (waits_of(logs_of(waits)) == waits).all()
    exact = np.repeat(waits[:, np.newaxis], len(LEVELS), axis=1)
    assert scores(waits_of(logs_of(exact)), waits)["coverage_50"] == 1


def test_what_a_pool_is_not_made_of() -> None:
    with pytest.raises(HpcgymError, match="different names"):
        Pool(["a", "a"])
    with pytest.raises(HpcgymError, match="another version"):
        Pool.of({"methods": ["a", "b"], "loss": [0.0]})
