"""Scores by hand, and their intervals by loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.intervals import how_often
from hpcgym.suite.scores import probability_of_improvement, scores_of, stratified

EASY = np.array([8.0, 24.0, 16.0, 20.0, 12.0])  # mean 16
BEST = np.array([2.0, 6.0, 4.0, 4.0, 4.0])  # mean 4


def test_a_score_by_hand() -> None:
    values = np.array([EASY, BEST, EASY / 2, EASY * 2, BEST / 4])
    assert scores_of(values, EASY, BEST) == pytest.approx([0, 1, 0.5, -0.5, 2])


def test_the_interquartile_mean_over_tasks_and_trainings() -> None:
    values = {
        "one": np.array([EASY, EASY / 2, EASY * 2, BEST]),  # 0, 0.5, -0.5, 1
        "two": np.array([BEST / 4, BEST * 4, BEST, BEST * 2]),  # 2, 0, 1, 0.5
    }
    easy, best = (dict.fromkeys(values, one[None]) for one in (EASY, BEST))
    # of -0.5, 0, 0, 0.5, 0.5, 1, 1, 2 the two least and greatest are left out
    found, low, high = stratified(values, easy, best)
    assert found == pytest.approx((0 + 0.5 + 0.5 + 1) / 4)
    assert low < found < high


def test_an_interval_by_loops() -> None:
    rng = np.random.default_rng(3)
    values = {"one": rng.uniform(2, 30, (3, 6)), "two": rng.uniform(2, 30, (1, 5))}
    easy = {"one": rng.uniform(9, 30, (1, 6)), "two": rng.uniform(9, 30, (1, 5))}
    best = {"one": rng.uniform(2, 5, (1, 6)), "two": rng.uniform(2, 5, (1, 5))}
    _, low, high = stratified(values, easy, best, resamples=50, seed=7)

    draws = np.random.default_rng(7)
    found: list[list[float]] = [[] for _ in range(50)]
    for task, one in values.items():
        slices = how_often(one.shape[1], 50, draws)
        seeds = how_often(len(one), 50, draws) if len(one) > 1 else np.ones((50, 1), int)
        unit = math.log(easy[task].mean() / best[task].mean())
        for k in range(50):
            rows = [j for j, times in enumerate(slices[k]) for _ in range(times)]
            for s, times in enumerate(seeds[k]):
                ratio = np.mean([easy[task][0][j] for j in rows]) / np.mean(
                    [one[s][j] for j in rows]
                )
                found[k] += [math.log(ratio) / unit] * times
    middles = []
    for scores in found:
        ascending = sorted(scores)
        assert len(ascending) == 4
        middles.append((ascending[1] + ascending[2]) / 2)
    assert [low, high] == pytest.approx(np.percentile(middles, [2.5, 97.5]))


def test_whoever_is_easy_everywhere_has_no_spread() -> None:
    easy, best = {"one": EASY[None]}, {"one": BEST[None]}
    assert stratified({"one": EASY[None]}, easy, best) == (0, 0, 0)


def test_few_slices_have_no_interval() -> None:
    easy, best = {"one": EASY[None, :4]}, {"one": BEST[None, :4]}
    found, low, high = stratified({"one": BEST[None, :4]}, easy, best)
    assert found == pytest.approx(1)
    assert np.isnan([low, high]).all()
    with pytest.raises(HpcgymError, match="resamples must be a whole number of at least 1"):
        stratified({"one": EASY[None]}, easy, best, 0)


def test_the_probability_of_improvement_by_hand() -> None:
    one = [np.array([1.0, 2.0, 3.0]), np.array([5.0])]
    other = [np.array([2.0, 2.5]), np.array([4.0, 6.0])]
    # first task: 1 beats none; 2 draws once; 3 beats both: 2.5 of 6. Second: 1 of 2
    assert probability_of_improvement(one, other) == pytest.approx((2.5 / 6 + 1 / 2) / 2)
    assert probability_of_improvement(other, one) == pytest.approx(1 - (2.5 / 6 + 1 / 2) / 2)
    assert probability_of_improvement(one, one) == 0.5
