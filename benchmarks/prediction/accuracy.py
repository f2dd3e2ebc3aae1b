"""Predictions at submission against run times: what figures 7.3, 7.4 and table 7.8 are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.prediction.campaign import MODULES, Findings
from hpcgym.benchmarks.prediction.configurations import (
    E_LOSS_TRIPLE,
    EASY_PLUS_PLUS,
    ETA,
    L2,
    SQUARED,
    Configuration,
    scheduler_of,
)
from hpcgym.benchmarks.studies.store import Store, code
from hpcgym.simulation.run import simulate
from hpcgym.workload.fingerprint import fingerprint

#: Name of a prediction -> the configuration in whose simulation it is made.
PREDICTIONS = {
    "requested": Configuration("sjbf", "requested", "requested"),
    "AVE2": EASY_PLUS_PLUS,
    "squared loss": Configuration("sjbf", "incremental", SQUARED),
    "E-Loss": E_LOSS_TRIPLE,
}


def predictions_of(found: Findings, store: Store) -> dict[str, NDArray[np.int64]]:
    """Return the predictions at submission of some configurations, and the run times.

    Returns
    -------
    Name of a prediction -> (2, n_jobs) [s]: predicted, and actual run times.
    """

    def compute() -> dict[str, Any]:
        outcomes = {}
        for name, configuration in PREDICTIONS.items():
            result = simulate(found.workload, scheduler_of(configuration))
            outcomes[name] = np.stack([result.predicted_run_time, result.run_time])
        return outcomes

    inputs = {
        "jobs": fingerprint([found.workload]),
        "configurations": {name: one.words() for name, one in PREDICTIONS.items()},
        "eta": ETA,
        "l2": L2,
        "code": code(*MODULES),
    }
    return store.step(f"{found.trace}-predictions".replace("/", "-"), inputs, compute)
