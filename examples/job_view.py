"""Numbers that agents compute from an observation: of each visible job, and a first order.

Observations are those of vector environments, with the usual features of jobs; all is numpy, a row
an environment. :func:`seen` gives numbers of jobs on logarithmic scales, in which orders such as
smallest area first are linear. :func:`backfilled` turns any order into one that backfills as EASY
does: jobs that do not delay the first job that does not fit go before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.practice import acting
from hpcgym.envs.core.observation import HORIZONS, HOUR, USUAL_FEATURES
from hpcgym.errors import HpcgymError

Floats = NDArray[np.float32]

WAIT, REQUESTED, PREDICTED, PROCESSORS, AREA, EXPANSION, FITS, LEAVES = range(8)

#: What is known of a job, the columns of :attr:`Seen.jobs`. Logarithms are divided by 4.
JOB = (
    "log_wait", "log_requested", "log_processors", "log_area", "log_expansion", "wait",
    "requested", "processors", "area", "expansion", "fits", "leaves", "soon",
)  # fmt: skip

#: Known orders, by which learning begins: name -> column of jobs -> weight.
ORDERS: dict[str, dict[str, float]] = {
    "saf": {"log_area": -1.0},
    "spf": {"log_requested": -1.0},
    "expansion": {"log_expansion": 1.0},
    "fcfs": {"log_wait": 1.0},
}

_SLACK = 1e-6  # of shares, which are rounded to float32
_LEAST = -1e6  # score of a place without a job

#: Weights of :func:`backfilled` that make it EASY, as far as that can be seen.
EASY = np.array([8.0, 4.0, 0.0], np.float32)


class Seen(NamedTuple):
    """What is seen of n jobs in B environments.

    Attributes
    ----------
    jobs : (n, len(JOB)) float32.
    state : (B, n_state) float32: cluster, queue and time.
    owner, place : (n,) int64, the environment of a job, and its place in the window.
    mask : (B, most) bool: which places have a job that may be selected. The last has one somewhere.
    processors, requested_s : (B, most) float32, shares of the machine and times [s]; 0 without job.
    free : (B, 1 + len(HORIZONS)) float32: the share that is free, now and at each horizon.
    """

    jobs: Floats
    state: Floats
    owner: NDArray[np.int64]
    place: NDArray[np.int64]
    mask: NDArray[np.bool_]
    processors: Floats
    requested_s: Floats
    free: Floats


def check_sees(env: Any, name: str, *kinds: str) -> Any:
    """Return the environment itself, in whatever wrappers it comes.

    Raises
    ------
    HpcgymError : an agent of this name does not know its actions or observations.
    """
    env = acting(env, name, *kinds)
    if env.options.flat or tuple(env.options.names) != USUAL_FEATURES:
        raise HpcgymError(f"{name} needs observation='dict', with the usual features of jobs")
    return env


def one(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the observation of a single environment as that of a vector of one."""
    return {name: np.asarray(value)[None] for name, value in observation.items()}


def state_of(observation: Mapping[str, Any]) -> Floats:
    """Return what is known beside the window, (B, n_state) float32."""
    return np.concatenate([observation[name] for name in ("cluster", "queue", "time")], axis=1)


def seen(observation: Mapping[str, Any]) -> Seen:
    """Return what is seen in the observation of a vector environment; all arrays are new."""
    every = observation["mask"] > 0
    # visible jobs have the first places, but quotas may keep back any of them
    most = int(np.flatnonzero(every.any(axis=0)).max(initial=0)) + 1
    mask, window = every[:, :most], observation["jobs"][:, :most]
    owner, place = np.nonzero(mask)
    rows = window[owner, place]
    free = observation["cluster"][:, : 1 + len(HORIZONS)].copy()
    logs = [_log_odds(rows[:, WAIT]), _log_odds(rows[:, REQUESTED])]
    logs += [np.log(np.maximum(rows[:, PROCESSORS], 1e-6))]
    logs += [_log_odds(rows[:, AREA]), _log_odds(rows[:, EXPANSION])]
    soon = (free[owner] >= rows[:, PROCESSORS, None] - _SLACK).mean(axis=1)
    plain = rows[:, [WAIT, REQUESTED, PROCESSORS, AREA, EXPANSION, FITS, LEAVES]]
    jobs = np.column_stack([np.stack(logs, axis=1) / 4.0, plain, soon]).astype(np.float32)
    requested = window[:, :, REQUESTED]
    requested_s = np.float32(HOUR) * requested / np.maximum(1.0 - requested, 1e-6)
    return Seen(
        jobs, state_of(observation), owner, place, mask,
        window[:, :, PROCESSORS].copy(), requested_s.astype(np.float32), free,
    )  # fmt: skip


def _log_odds(share: Floats) -> Floats:
    """Return log(t / 1 h) of t / (t + 1 h), from -14 to 14."""
    inside = np.clip(share, 1e-6, 1.0 - 1e-6)
    odds: Floats = np.log(inside / (1.0 - inside))
    return odds


def weights_of(order: str) -> Floats:
    """Return the weights of a known order, (len(JOB),) float32."""
    weights = np.zeros(len(JOB), np.float32)
    for name, weight in ORDERS[order].items():
        weights[JOB.index(name)] = weight
    return weights


def placed(look: Seen, values: Floats) -> Floats:
    """Return numbers of jobs where they stand in the window, (B, most); far below all elsewhere."""
    scores = np.full(look.mask.shape, _LEAST, np.float32)
    scores[look.owner, look.place] = values
    return scores


def backfilled(look: Seen, scores: Floats, weights: NDArray[Any]) -> Floats:
    """Return scores after which jobs go before the first one that does not fit, where they may.

    In the order of ``scores`` jobs start while they fit; they keep their places in front. The next
    one, the blocked job, could start at the first horizon at which enough is free, by predicted
    ends. A job that fits what is left now harms it not if it ends by then, or leaves it enough.

    Parameters
    ----------
    scores : (B, most) of :func:`placed`.
    weights : (3,) or (B, 3): what is added to the score of a job that ends by the horizon before
        that one, or leaves enough; by that one, or leaves enough; that fits.

    Returns
    -------
    scores : (B, most) float32.
    """
    rows = np.arange(len(scores))[:, None]
    order = np.argsort(-scores, axis=1, kind="stable")
    wide, there = look.processors[rows, order], look.mask[rows, order]
    starts = ((np.cumsum(wide, axis=1) <= look.free[:, :1] + _SLACK) & there).cumprod(axis=1) > 0
    first = np.minimum(starts.sum(axis=1), scores.shape[1] - 1)  # place of the blocked job
    width = wide[rows[:, 0], first][:, None]
    long = look.requested_s[rows, order]
    most = int(starts.sum(axis=1).max())  # mostly few jobs start
    begun = np.where(starts[:, :most], wide[:, :most], 0.0)
    left = look.free[:, 0] - begun.sum(axis=1)
    lasting = long[:, :most, None] > HORIZONS.astype(np.float32)
    ahead = look.free[:, 1:] - (begun[:, :, None] * lasting).sum(axis=1)
    enough = ahead >= width - _SLACK
    at = np.where(enough.any(axis=1), enough.argmax(axis=1), len(HORIZONS) - 1)
    before = np.where(at > 0, HORIZONS[at - 1], 0)[:, None]
    extra = ahead[rows[:, 0], at][:, None] - width
    fits = (wide <= left[:, None] + _SLACK) & there & ~starts
    beside = wide <= extra + _SLACK
    strict = fits & ((long <= before) | beside)
    loose = fits & ((long <= HORIZONS[at][:, None]) | beside)
    worth = np.atleast_2d(weights).astype(np.float32)
    bonus = strict * worth[:, :1] + loose * worth[:, 1:2] + fits * worth[:, 2:]
    raised = scores.copy()
    raised[rows, order] += bonus + starts * np.float32(2.0 * EASY.sum())
    return raised


def prefix(look: Seen, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many jobs of an order say what happens: those that start, and the one behind.

    Parameters
    ----------
    order : (B, most) places of the window, the first to be served first.

    Returns
    -------
    counts : (B,) int64; 0 where there is no job.
    """
    rows = np.arange(len(order))[:, None]
    wide, there = look.processors[rows, order], look.mask[rows, order]
    fits = (np.cumsum(wide, axis=1) <= look.free[:, :1] + _SLACK) & there
    counts: NDArray[np.int64] = np.minimum(
        fits.cumprod(axis=1).sum(axis=1) + 1, look.mask.sum(axis=1)
    )
    return counts
