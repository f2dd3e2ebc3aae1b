"""How fast the environments step, one at a time and by the thousand, and what memory they take.

Every step does an action that is made beforehand: the first job, equal scores, weights or controls.
Decisions are counted with those that begin episodes.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from timing import Figures, best

from hpcgym.envs import IDS
from hpcgym.processors import threads_here
from hpcgym.workload import load_workload

WORKLOAD = "lublin:jobs=10000,processors=256,seed=0,load=0.8"
CODES = "codes:jobs=10000,processes=96,processors=768,arrivals=poisson,interval=600,seed=0"
#: Arguments beside the usual ones.
GIVEN: dict[str, dict[str, Any]] = {
    "hpcgym/JobSelection-v1": {"window": 128},
    "hpcgym/QueueOrdering-v1": {"window": 128},
    "hpcgym/MixedPolicy-v1": {"interval": "pass", "window": 128},
    "hpcgym/PowerCap-v0": {"share": 0.6},
    "hpcgym/EnergyBudget-v0": {"share": 0.6},
    "hpcgym/CoSchedule-v0": {"workload": CODES},
}
#: How observations of many environments are had -> arguments.
WAYS: dict[str, dict[str, Any]] = {
    "copies": {},
    "views": {"copy": False},
    "flat views": {"copy": False, "observation": "flat"},
}


def single(given: argparse.Namespace) -> Figures:
    """Count steps a second of one environment, each id, each form of observation."""
    jobs, rows = load_workload(given.workload or WORKLOAD), []
    for name in IDS:
        row: dict[str, Any] = {"environment": name}
        for form in ("dict", "flat"):
            options = {"workload": jobs, "observation": form, **GIVEN.get(name, {})}
            env = gymnasium.make(name, **options)
            inner: Any = env.unwrapped
            space = env.action_space
            action: Any = 0 if space.shape == () else np.ones(space.shape, space.dtype)
            env.reset(seed=0)

            def run(env: Any = env, action: Any = action) -> None:
                for _ in range(given.steps):
                    if env.step(action)[2]:
                        env.reset()

            row[f"{form}, steps a second"] = round(given.steps / best(run, given.repeat))
        row["kB"] = inner.simulations.nbytes / 1000
        rows.append(row)
    return Figures("gymnasium.make: one environment, 128 visible jobs x 8 features", rows)


def vector(given: argparse.Namespace) -> Figures:
    """Count decisions a second of JobSelection by numbers of environments and threads."""
    jobs = load_workload(given.workload or WORKLOAD)
    rows = [
        {"environments": number, "threads": threads, **_rates(given, jobs, number, threads)}
        for number in (1, 8, 64, 512)
        for threads in sorted({1, threads_here()})
    ]
    return Figures(f"gymnasium.make_vec: decisions a second of JobSelection, {jobs.name}", rows)


def _rates(given: argparse.Namespace, jobs: Any, number: int, threads: int) -> dict[str, Any]:
    """Return decisions a second of a vector environment, in each way to get observations."""
    steps = max(given.steps // number, 20)
    actions = np.zeros(number, np.int64)
    row: dict[str, Any] = {}
    for way, more in WAYS.items():
        env: Any = gymnasium.make_vec(
            "hpcgym/JobSelection-v1",
            num_envs=number,
            vectorization_mode="vector_entry_point",
            workload=jobs,
            threads=threads,
            window=128,
            **more,
        )
        env.reset(seed=0)

        def run(env: Any = env) -> None:
            for _ in range(steps):
                env.step(actions)

        row[way] = round(number * steps / best(run, given.repeat))
    simulations = env.unwrapped.simulations

    def alone() -> None:
        for _ in range(steps):
            simulations.step_all(threads)

    row["the engine's call alone"] = round(number * steps / best(alone, given.repeat))
    row["visible jobs"] = float(simulations.batch.episode_state["visible"].mean())
    row["kB an environment"] = simulations.nbytes / number / 1000
    return row


SECTIONS = (single, vector)
