"""What a new id is to be frozen with: the digest of its jobs, and the best static scheduler.

    python -m hpcgym.suite.freezing mini kth

prints both for traces of ``tasks.toml`` as lines of that file. The best static scheduler is chosen
on the train part alone: of 200 weights over six features, with EASY's backfilling, that with the
least mean bounded slowdown over all its jobs in one simulation; under limits over the windows of
the part; where jobs share nodes, of the co-schedulers by name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hpcgym.baselines.coschedulers import COSCHEDULERS
from hpcgym.errors import HpcgymError, unknown
from hpcgym.evaluation.limited import limits_of
from hpcgym.evaluation.static_weights import best_static
from hpcgym.progress import silence
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.suite.tasks import Task, digest_of, environment, part_of, tasks
from hpcgym.workload import load_workload

BUDGET = 200

#: All rules of the best static scheduler but its weights.
STATIC = Scheduler(policy="spf", backfill_order="spf")


def frozen(task: Task, budget: int = BUDGET) -> tuple[Task, Mapping[str, float] | str]:
    """Return a task with the digest of the jobs that are here, and its best static scheduler."""
    jobs = load_workload(task.workload, task.clean)
    known = replace(task, digest=digest_of(jobs), processors=jobs.processors)
    train, _ = part_of(jobs, known, "train")
    if task.kind == "pairs":
        return known, _best_named(known)
    if task.kind == "power":
        with environment(known, "train") as env:
            limits, world = limits_of(env.unwrapped), env.unwrapped
            parts = [world.episodes.workload_of(one) for one in world.episodes.listing]
            cluster = world.options.cluster
        assert limits is not None
        rules = STATIC.but(power=limits.power)
        best = best_static(parts, WEIGHTED_FEATURES, rules, budget, 0, silence, cluster, limits)
        return known, best
    return known, best_static([train], WEIGHTED_FEATURES, STATIC, budget, 0, silence)


def _best_named(task: Task) -> str:
    """Return the co-scheduler with the least mean bounded slowdown over the train windows."""
    with environment(task, "train") as env:
        world = env.unwrapped
        parts = [world.episodes.workload_of(one) for one in world.episodes.listing]
        machine = {"cluster": world.options.cluster, "speedups": world.speedups}
    means = {
        name: np.mean([simulate(one, rules, **machine).metrics["mean_bsld"] for one in parts])
        for name, rules in COSCHEDULERS.items()
    }
    return min(means, key=lambda name: float(means[name]))


def lines_of(task: Task, best: Any) -> str:
    """Return what is to stand in ``tasks.toml``."""
    told = f'"{best}"'
    if not isinstance(best, str):
        told = "{ " + ", ".join(f"{name} = {weight!r}" for name, weight in best.items()) + " }"
    return f'processors = {task.processors}\ndigest = "{task.digest}"\nbest = {told}\n'


def main(names: list[str]) -> None:
    """Print what the traces of these names are to be frozen with."""
    first = {name.rpartition("-")[0]: task for name, task in reversed([*tasks().items()])}
    for name in names or list(first):
        if name not in first:
            raise HpcgymError(unknown("trace", name, first))
        print(f"[traces.{name}]\n{lines_of(*frozen(first[name]))}", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HpcgymError as error:
        sys.exit(f"hpcgym: {error}")
