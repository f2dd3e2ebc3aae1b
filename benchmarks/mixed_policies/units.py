"""How far the unit of times changes what a search over weights can find.

A weight of processors counts for nothing beside times in seconds: a grid over weights in [-1, 1]
sees little but the ratio of the two other weights. The paper does not name its units. Here the same
random vectors are tried with times in seconds, minutes, hours and days, which is to multiply the
weight of processors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.mixed_policies.grid import THREE
from hpcgym.benchmarks.mixed_policies.published import TABLE_2
from hpcgym.benchmarks.mixed_policies.study import THRESHOLD_S, Study

if TYPE_CHECKING:
    import pandas as pd

#: Unit of times -> its seconds.
UNITS = {"second": 1, "minute": 60, "ten minutes": 600, "hour": 3_600, "day": 86_400}

VECTORS, QUICK_VECTORS = 2_000, 50
SEED = 1


def units(study: Study) -> pd.DataFrame:
    """Return the best of the same random vectors for each unit; the paper's in a row of its own."""
    import pandas as pd

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
    vectors = np.random.default_rng(SEED).uniform(-1, 1, size=(number, len(THREE)))
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

    inputs = {"unit": seconds, "vectors": number, "seed": SEED, "threshold": THRESHOLD_S}
    return vectors, study.step("units", study.weeks, inputs, compute)["bsld"]
