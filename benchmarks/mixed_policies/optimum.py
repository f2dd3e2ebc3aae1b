"""The best weights: all vectors on each week, on any executor; searches; units of times."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.mixed_policies.published import TABLE_2
from hpcgym.benchmarks.mixed_policies.study import PURE, THREE, THRESHOLD_S, Study, grid, vector
from hpcgym.benchmarks.studies.harness import Folder, check_same_jobs
from hpcgym.errors import HpcgymError
from hpcgym.naming import DAY_S, HOUR_S, MINUTE_S
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

# --- The best vectors of three weights ------------------------------------------------------------

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
    study: Study, parts: Mapping[int, Workload], train: Sequence[int], points: int
) -> Optimum:
    """Try all vectors of three weights on all weeks (or months) and find the best ones.

    Parameters
    ----------
    study : the trace and the reading.
    parts : weeks or months of it.
    train : numbers of those that w*_train is the best of.
    points : values of a weight.
    """
    n = len(parts)
    best, ties, first, below = (np.full(n, np.nan) for _ in range(4))
    greedy, weights = np.full(n, np.nan), np.empty((n, len(THREE)))
    saf = study.pure(parts)[PURE.index("saf")]
    total = np.zeros((points,) * len(THREE))
    seconds = 0.0
    before: tuple[int, NDArray[np.bool_], int] | None = None
    for place, (number, part) in enumerate(parts.items()):
        step = covered(study, number, part, points)
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


def covered(study: Study, number: int, part: Workload, points: int) -> dict[str, Any]:
    """Return the mean BSLD of one week under all vectors, ``values`` (points, points, points)."""

    def compute() -> dict[str, Any]:
        began = time.perf_counter()
        vectors = grid(points)
        batch = study.batch({number: part}, features=THREE)
        values = batch.run(vectors.weights)[:, 0]
        return {"values": values[vectors.places], "seconds": time.perf_counter() - began}

    inputs = {"features": THREE, "points": points, "threshold": THRESHOLD_S}
    return study.step("cover", {number: part}, inputs, compute)


def _check(
    study: Study, values: Floats, numbers: list[int], train: Sequence[int], expected: float
) -> None:
    """Raise if a simulation does not find what the sums over weeks say."""
    found = sum(value for number, value in zip(numbers, values, strict=True) if number in train)
    if not np.isclose(found, expected, rtol=1e-9):
        raise HpcgymError(
            f"{study.trace}: the weeks say {expected} of w*_train, the simulation {found}"
        )


# --- XNES over the weights of each week -----------------------------------------------------------

#: Name of a search in the paper, and of its set of features in ``hpcgym.agents.xnes`` -> how many.
SEARCHES = {"xnes3": 3, "xnes6": 6}

SEED = 0


def search_all(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Return what the searches find.

    Returns
    -------
    Name -> for each budget of the study ``bsld`` (n_weeks,), ``weights`` (n_weeks, n_features),
    ``evaluations`` of a week.
    """
    return {name: [searched(study, name, of) for of in study.budgets] for name in SEARCHES}


def searched(study: Study, name: str, budget: int) -> dict[str, Any]:
    """Search the best weights of each week, with that many evaluations of it."""
    from hpcgym.agents.xnes import Xnes

    tau = study.reading.tau_s
    search = Xnes(name, budget=budget, seed=SEED, scheduler=study.rules(), tau=tau)

    def compute() -> dict[str, Any]:
        parts = list(study.weeks.values())
        what = f"{study.trace}: {name}, {budget:,} evaluations of {len(parts)} weeks at once"
        found = search.fit_each(
            parts, progress=lambda done, best: study.progress(what, done, budget)
        )
        return {
            "bsld": np.array([agent.best_ for agent in found]),
            "weights": np.array(
                [[agent.weights_.get(n, 0.0) for n in agent.features] for agent in found]
            ),
            "evaluations": budget,
        }

    inputs = search.settings()
    return study.step(name, study.weeks, inputs, compute)


# --- How far the unit of times changes what a search over weights can find ------------------------

#: Unit of times -> its seconds.
UNITS = {"second": 1, "minute": MINUTE_S, "ten minutes": 600, "hour": HOUR_S, "day": DAY_S}

VECTORS, QUICK_VECTORS = 2_000, 50
UNITS_SEED = 1


def units(study: Study) -> pd.DataFrame:
    """Return the best of the same random vectors for each unit; the paper's in a row of its own."""
    train = np.isin(list(study.weeks), study.train)
    test = np.isin(list(study.weeks), study.test)
    rows: list[dict[str, Any]] = []
    for unit, seconds in UNITS.items():
        vectors, bsld = _simulated(study, unit, seconds)
        best, sums = bsld.min(axis=0), bsld[:, train].sum(axis=1)
        chosen = int(sums.argmin())
        rows.append(
            {
                "unit of times": unit,
                "w*, train": best[train].sum(),
                "w*, test": best[test].sum(),
                "w*_train, train": sums[chosen],
                "w*_train, test": bsld[chosen][test].sum(),
                "mean BSLD, q < 0": bsld[vectors[:, 0] < 0].mean(),
                "mean BSLD, q > 0": bsld[vectors[:, 0] > 0].mean(),
            }
        )
    if study.trace in TABLE_2 and not study.quick:
        found, learned = (TABLE_2[study.trace][name] for name in ("w*", "w*_train"))
        rows.append(dict(zip(rows[0], ["paper", *found, *learned], strict=False)))
    return pd.DataFrame(rows)


def _simulated(study: Study, unit: str, seconds: int) -> tuple[Any, Any]:
    """Return the vectors, (n, 3), and their mean BSLD on each week, (n, n_weeks)."""
    number = QUICK_VECTORS if study.quick else VECTORS
    vectors = np.random.default_rng(UNITS_SEED).uniform(-1, 1, size=(number, len(THREE)))
    scales = np.array([seconds if name == "processors" else 1 for name in THREE])

    def compute() -> dict[str, Any]:
        what = f"{study.trace}: times by the {unit}"
        batch = study.batch(study.weeks, features=THREE)
        total = number * len(batch)
        return {
            "bsld": batch.run(
                vectors * scales, progress=lambda done: study.progress(what, done, total)
            )
        }

    inputs = {"unit": seconds, "vectors": number, "seed": UNITS_SEED, "threshold": THRESHOLD_S}
    return vectors, study.step("units", study.weeks, inputs, compute)["bsld"]


# --- The long part of the study -------------------------------------------------------------------


def cover_on(study: Study, source: str, folder: Folder) -> None:
    """Try all vectors of three weights on all weeks and months on which they were not yet.

    What a worker leaves in a folder that is not this one is worked out here again.

    Parameters
    ----------
    study : the trace and the reading, with results in ``folder``.
    source : what the trace was loaded from.
    folder : where the study is run.

    Raises
    ------
    HpcgymError : a task that failed again and again.
    """
    tasks = [
        {
            "source": source,
            "reading": study.reading.name,
            "folder": str(folder.path.resolve()),
            "quick": study.quick,
            "period": period,
            "number": number,
            "jobs_sha256": fingerprint([part]),
        }
        for period, (parts, _) in study.covers().items()
        for number, part in parts.items()
    ]
    what = f"{study.trace}: all vectors on {len(tasks)} weeks and months"
    folder.run(cover_one, tasks, "weeks and months", "steps/tasks", what=what, chunk=1)


def cover_one(task: dict[str, Any]) -> dict[str, Any]:
    """Try all vectors on one week or month; the result lies in the study's folder."""
    study = _study(task["source"], task["reading"], task["folder"], task["quick"])
    parts, points = study.covers()[task["period"]]
    check_same_jobs(task["source"], fingerprint([parts[task["number"]]]), task["jobs_sha256"])
    step = covered(study, task["number"], parts[task["number"]], points)
    return {"best": float(step["values"].min())}


@lru_cache(maxsize=2)
def _study(source: str, reading: str, folder: str, quick: bool) -> Study:
    """Return the study; a worker reads a trace once."""
    return Study(source, reading, folder=Path(folder), quick=quick)
