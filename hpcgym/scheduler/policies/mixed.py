"""Features of jobs as the compiled sums of mixed policies take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler.policies.features import FEATURES, JobColumns


class Weighed(NamedTuple):
    """What the engine takes of all jobs, to add features up."""

    static: NDArray[np.float64]  # (n_jobs, n_features) what waiting does not change
    formulas: NDArray[np.int64]  # (n_features,) their places in the table of features
    places: NDArray[np.int64]  # (n_features,) which weight is theirs
    serial: NDArray[np.float64]  # (n_jobs,) [s] patience of the feature unicef, or (0,)


def weighed(columns: JobColumns, features: tuple[str, ...], n_jobs: int) -> Weighed:
    """Return the arrays for weights over these features, in the order of the table of features.

    Those that depend on what users have used are left out: usage is added to scores later.
    In that order sums are those of :func:`hpcgym.scheduler.policies.index.rank`, to the last bit.
    How these depend on waiting the engine knows.
    """
    names = sorted(FEATURES.keys() & set(features), key=list(FEATURES).index)
    static = np.zeros((n_jobs, len(names)))
    for k, name in enumerate(names):
        part = FEATURES[name].static
        if part is not None:
            static[:, k] = part(columns)
    patience = FEATURES["unicef"].patience
    assert patience is not None
    return Weighed(
        static=static,
        formulas=np.array([list(FEATURES).index(name) for name in names], np.int64),
        places=np.array([features.index(name) for name in names], np.int64),
        serial=patience(columns) if "unicef" in names else np.zeros(0),
    )
