"""XNES over the weights of each week, a search of its own for every week (section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.benchmarks.mixed_policies.study import Study
from hpcgym.benchmarks.studies.store import code

#: Name of a search in the paper, and of its set of features in ``hpcgym.agents.xnes`` -> how many.
SEARCHES = {"xnes3": 3, "xnes6": 6}

SEED = 0

#: What decides which vectors a search tries.
_MODULES = tuple(f"hpcgym.agents.{name}" for name in ("search", "settings", "lockstep", "xnes"))


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

    inputs = {**search.settings(), "search": code(*_MODULES)}
    return study.step(name, study.weeks, inputs, compute)
