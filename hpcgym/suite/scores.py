"""Scores: how far an agent is on the way from EASY to the best static scheduler, and beyond.

In a task with the mean bounded slowdowns A of the agent, E of EASY and B of the best static
scheduler, each a mean over the slices of the test part, the score of a training is

    log(E / A) / log(E / B):

0 is as good as EASY, 1 as the best static one. The logarithm makes half and double as far from one
another everywhere, whatever the load of a trace. Over tasks, the interquartile mean of all scores,
a score a training and task (Agarwal et al., Deep Reinforcement Learning at the Edge of the
Statistical Precipice, NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import check_whole
from hpcgym.evaluation.intervals import FEWEST, draw, how_often, iqm

Floats = NDArray[np.float64]

#: Of tasks, the values of an agent, (seeds, slices).
Values = Mapping[str, Floats]


def scores_of(values: Floats, easy: Floats, best: Floats) -> Floats:
    """Return the score of each training in a task, (seeds,) float64.

    Parameters
    ----------
    values : (seeds, slices) mean bounded slowdowns of the agent.
    easy, best : (slices,) those of EASY and of the best static scheduler.
    """
    scores: Floats = np.log(easy.mean() / values.mean(axis=1)) / _unit(easy, best)
    return scores


def _unit(easy: Floats, best: Floats) -> float:
    return float(np.log(easy.mean() / best.mean()))


def stratified(
    values: Values,
    easy: Values,
    best: Values,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return the interquartile mean of the scores over tasks, and its 95 % interval.

    Parameters
    ----------
    values : of the agent, for each task (seeds, slices).
    easy, best : of these tasks (1, slices).
    resamples, seed : of the bootstrap. It is stratified: in each task trainings and slices are
        drawn anew by themselves, tasks stay. EASY meets the slices that the agent meets; log(E /
        B), which is the unit of a task, stays what it is.

    Returns
    -------
    iqm, low, high : the interval is nan where a task has fewer than five slices.

    Raises
    ------
    HpcgymError : no resamples.
    """
    check_whole("resamples", resamples, 1)
    tasks = list(values)
    whole = np.concatenate([scores_of(values[t], easy[t][0], best[t][0]) for t in tasks])
    if min(values[task].shape[1] for task in tasks) < FEWEST:
        return iqm(whole), float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    drawn = []
    for task in tasks:
        one, base = values[task], easy[task][0]
        seeds, n = one.shape
        slices = how_often(n, resamples, rng)
        means, bases = slices @ one.T / n, slices @ base / n  # (resamples, seeds), (resamples,)
        scores = np.log(bases[:, None] / means) / _unit(base, best[task][0])
        drawn.append(scores if seeds == 1 else _resampled(scores, rng))
    every = np.concatenate(drawn, axis=1)
    low, high = np.percentile([iqm(row) for row in every], [2.5, 97.5])
    return iqm(whole), float(low), float(high)


def ends_of_task(
    values: Floats, easy: Floats, best: Floats, resamples: int = 2000, seed: int = 0
) -> dict[str, float]:
    """Return 95 % intervals of a task: trainings and slices are drawn anew, for all policies alike.

    Parameters
    ----------
    values, easy, best : as of :func:`scores_of`.
    resamples, seed : of the bootstrap.

    Returns
    -------
    ends : ``score_low``, ``score_high`` of the agent's score, the mean over its trainings;
        ``best_low``, ``best_high`` of that of the best static scheduler, which is 1; ``gain``,
        ``gain_low``, ``gain_high`` of log(B / A), the mean over trainings, on the same slices:
        above 0 the agent is better. nan with fewer than five slices.

    Raises
    ------
    HpcgymError : no resamples.
    """
    check_whole("resamples", resamples, 1)
    unit = _unit(easy, best)
    ends = {"gain": float(np.log(best.mean() / values.mean(axis=1)).mean())}
    names = ("score", "best", "gain")
    if len(easy) < FEWEST:
        return ends | {f"{name}_{end}": float("nan") for name in names for end in ("low", "high")}
    drawn = draw([values], resamples, seed)
    agents, base, static = (np.log(drawn.slices @ one.T) for one in (values, easy, best))
    times = 1.0 if drawn.seeds[0] is None else drawn.seeds[0]
    agent = (times * agents).sum(axis=1) / len(values)
    found = [(base - agent) / unit, (base - static) / unit, static - agent]
    for name, values_of in zip(names, found, strict=True):
        low, high = np.percentile(values_of, [2.5, 97.5])
        ends |= {f"{name}_low": float(low), f"{name}_high": float(high)}
    return ends


def _resampled(scores: Floats, rng: np.random.Generator) -> Floats:
    """Return for each resample as many trainings, drawn with replacement, (resamples, seeds)."""
    resamples, seeds = scores.shape
    times = how_often(seeds, resamples, rng)
    rows, columns = np.repeat(np.arange(resamples), seeds), np.tile(np.arange(seeds), resamples)
    rows, columns = (np.repeat(one, times.ravel()) for one in (rows, columns))
    found: Floats = scores[rows, columns].reshape(resamples, seeds)
    return found


def probability_of_improvement(one: Sequence[Floats], other: Sequence[Floats]) -> float:
    """Return how likely one agent is better than another in a task: P(X > Y), a mean over tasks.

    Agarwal et al. 2021, section 4.3: with the scores x_1..x_N of one and y_1..y_M of the other in a
    task,

        P = sum over i, j of S(x_i, y_j) / (N M),  S = 1 if x_i > y_j, 1/2 if equal, else 0,

    the Mann-Whitney U statistic over N M. It says how often, not how much.

    Parameters
    ----------
    one, other : for each task, in the same order, the scores of trainings.
    """
    shares = []
    for x, y in zip(one, other, strict=True):
        above = np.sign(np.asarray(x)[:, None] - np.asarray(y)[None, :])
        shares.append(float((above + 1).mean() / 2))
    return float(np.mean(shares))
