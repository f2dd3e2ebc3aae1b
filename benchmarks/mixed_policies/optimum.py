"""The best vectors of three weights, from all vectors of a grid (Legrand et al. 2018, section 7).

Many vectors often give the least value: a week's best vector is then any of them. ``w_greedy``, a
week's best vector on the next week, is therefore a mean over all of them, and beside it the value
of the first in the order of the grid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.mixed_policies.grid import THREE, grid, vector
from hpcgym.benchmarks.mixed_policies.study import PURE, THRESHOLD_S, Study
from hpcgym.errors import HpcgymError
from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Optimum:
    """What all vectors tell; arrays have an entry for each week (or month).

    Attributes
    ----------
    numbers : of the weeks.
    best : w*, the least mean BSLD of any vector.
    weights : (n, 3) the first vector that has it, ||w||_1 = 1.
    ties : share of the vectors that have it.
    greedy, greedy_first : the best vectors of the week before: mean, and the first; NaN without.
    train_weights : (3,) w*_train, least sum over the weeks of training.
    train : mean BSLD of w*_train.
    below_saf : share of the vectors that beat SAF.
    vectors : that were compared.
    seconds : of computing: the sum over weeks, whichever process or earlier run computed them.
    """

    numbers: NDArray[np.int64]
    best: Floats
    weights: Floats
    ties: Floats
    greedy: Floats
    greedy_first: Floats
    train_weights: Floats
    train: Floats
    below_saf: Floats
    vectors: int
    seconds: float


def find_optimum(
    study: Study, parts: Mapping[int, Workload], train: Sequence[int], points: int, what: str
) -> Optimum:
    """Try all vectors of three weights on all weeks (or months) and find the best ones.

    Parameters
    ----------
    study : the trace and the reading.
    parts : weeks or months of it.
    train : numbers of those that w*_train is the best of.
    points : values of a weight.
    what : what progress calls it.
    """
    n = len(parts)
    best, ties, first, below = (np.full(n, np.nan) for _ in range(4))
    greedy, weights = np.full(n, np.nan), np.empty((n, len(THREE)))
    saf = study.pure(parts)[PURE.index("saf")]
    total = np.zeros((points,) * len(THREE))
    seconds = 0.0
    before: tuple[int, NDArray[np.bool_], int] | None = None
    for place, (number, part) in enumerate(parts.items()):
        step = covered(
            study,
            number,
            part,
            points,
            partial(_tell, study, what, place, n, len(grid(points).weights)),
        )
        values = step["values"]
        best[place] = values.min()
        at_best = values == best[place]
        one = int(at_best.argmax())
        ties[place] = at_best.mean()
        weights[place] = vector(points, one)
        below[place] = (values < saf[place]).mean()
        if before is not None and before[0] == number - 1:
            greedy[place] = values[before[1]].mean()
            first[place] = values.flat[before[2]]
        before = (number, at_best, one)
        if number in train:
            total += values
        seconds += float(step["seconds"])
    chosen = vector(points, int(total.argmin()))
    train_bsld = study.batch(parts, features=THREE).run(chosen[np.newaxis])[0]
    _check(study, train_bsld, list(parts), train, float(total.min()))
    return Optimum(
        numbers=np.array(list(parts)),
        best=best,
        weights=weights,
        ties=ties,
        greedy=greedy,
        greedy_first=first,
        train_weights=chosen,
        train=train_bsld,
        below_saf=below,
        vectors=len(grid(points).weights),
        seconds=seconds,
    )


def _tell(study: Study, what: str, place: int, n: int, each: int, done: int) -> None:
    """Tell how much of all weeks is done."""
    study.progress(what, place * each + done, n * each)


def covered(
    study: Study,
    number: int,
    part: Workload,
    points: int,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Return the mean BSLD of one week under all vectors, ``values`` (points, points, points)."""

    def compute() -> dict[str, Any]:
        began = time.perf_counter()
        vectors = grid(points)
        batch = study.batch({number: part}, features=THREE)
        values = batch.run(vectors.weights, progress=progress)[:, 0]
        return {"values": values[vectors.places], "seconds": time.perf_counter() - began}

    return study.step(*_step(number, part, points), compute)


def file_of(study: Study, number: int, part: Workload, points: int) -> Path | None:
    """Return where the result of :func:`covered` is kept; None if nothing is."""
    return study.file(*_step(number, part, points))


def _step(
    number: int, part: Workload, points: int
) -> tuple[str, dict[int, Workload], dict[str, Any]]:
    """Return the name of the step, its jobs, and what it depends on beside them."""
    inputs = {"features": THREE, "points": points, "threshold": THRESHOLD_S}
    return "cover", {number: part}, inputs


def _check(
    study: Study, values: Floats, numbers: list[int], train: Sequence[int], expected: float
) -> None:
    """Raise if a simulation does not find what the sums over weeks say."""
    found = sum(value for number, value in zip(numbers, values, strict=True) if number in train)
    if not np.isclose(found, expected, rtol=1e-9):
        raise HpcgymError(
            f"{study.trace}: the weeks say {expected} of w*_train, the simulation {found}"
        )
