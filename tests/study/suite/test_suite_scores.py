"""Scores by hand, and their intervals by loops."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from hpcgym.errors import HpcgymError
from hpcgym.study.intervals import how_often
from hpcgym.study.suite.board import ends_of_task, probability_of_improvement, scores_of, stratified

EASY = np.array([8.0, 24.0, 16.0, 20.0, 12.0])  # mean 16
BEST = np.array([2.0, 6.0, 4.0, 4.0, 4.0])  # mean 4


def drawn(
    seeds: int, n: int, resamples: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The trainings and the slices of each resample, each as often as it was drawn."""
    slices = how_often(n, resamples, rng)
    trainings = how_often(seeds, resamples, rng) if seeds > 1 else np.ones((resamples, 1), int)
    for one, other in zip(trainings, slices, strict=True):
        yield np.repeat(np.arange(seeds), one), np.repeat(np.arange(n), other)


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
        unit = math.log(easy[task].mean() / best[task].mean())
        for k, (seeds, rows) in enumerate(drawn(*one.shape, 50, draws)):
            for s in seeds:
                ratio = easy[task][0][rows].mean() / one[s][rows].mean()
                found[k].append(math.log(ratio) / unit)
    middles = []
    for scores in found:
        ascending = sorted(scores)
        assert len(ascending) == 4
        middles.append((ascending[1] + ascending[2]) / 2)
    assert [low, high] == pytest.approx(np.percentile(middles, [2.5, 97.5]))


@pytest.mark.parametrize("seeds", [1, 3])
def test_intervals_of_a_task_by_loops(seeds: int) -> None:
    rng = np.random.default_rng(4)
    values, easy, best = rng.uniform(2, 30, (seeds, 6)), rng.uniform(9, 30, 6), rng.uniform(2, 5, 6)
    ends = ends_of_task(values, easy, best, resamples=40, seed=5)
    unit = math.log(easy.mean() / best.mean())
    found: dict[str, list[float]] = {"score": [], "best": [], "gain": []}
    for chosen, rows in drawn(seeds, 6, 40, np.random.default_rng(5)):
        agents = [math.log(values[s][rows].mean()) for s in chosen]
        base, static = (math.log(one[rows].mean()) for one in (easy, best))
        found["score"].append((base - np.mean(agents)) / unit)
        found["best"].append((base - static) / unit)
        found["gain"].append(static - np.mean(agents))
    for name, them in found.items():
        told = [ends[f"{name}_low"], ends[f"{name}_high"]]
        assert told == pytest.approx(np.percentile(them, [2.5, 97.5]))
    assert ends["gain"] == pytest.approx(unit * (scores_of(values, easy, best).mean() - 1))


def test_whoever_is_the_best_static_scheduler_gains_nothing() -> None:
    ends = ends_of_task(BEST[None], EASY, BEST)
    assert (ends["gain"], ends["gain_low"], ends["gain_high"]) == (0, 0, 0)
    assert (ends["score_low"], ends["score_high"]) == (ends["best_low"], ends["best_high"])
    few = ends_of_task(BEST[None, :4], EASY[:4], BEST[:4])
    assert few["gain"] == 0
    assert np.isnan([few["gain_low"], few["score_high"]]).all()


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
