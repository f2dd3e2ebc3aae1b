"""Simulations, batches, limits and dispatchers that cannot be: ``mistakes.txt`` says why."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs, tiny
from mistakes import is_told, mistakes_in
from test_dispatching import FEW, TWO

import hpcgym
from hpcgym.machine import Cluster, Failures, NodeGroup, NodePower
from hpcgym.machine.speedups import Heatmap
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.workload import load_workload
from hpcgym.workload.codes import with_codes

TRACE = load_workload("lublin:jobs=600,processors=64,seed=5,load=1.1")
SLICES = [TRACE.take(slice(k, k + 100), name=f"part {k}") for k in range(0, 600, 100)]
SMALL = load_workload("lublin:jobs=10,processors=32,seed=0").take(slice(0, 9), name="small")
JOBS = load_workload("lublin:jobs=30,processors=16,seed=1")
PAIRS = Heatmap(("a", "b"), [[1.0, 1.25], [0.8, 1.0]], alone=[1.0, 1.0])
CODED = with_codes(few_jobs(8, [0], [10], [1]), ["a"])
POWER = NodePower(100, [150, 200], 10, [1, 2], 1.5)
RAN = few_jobs(
    4, [0, 10, 20, 90], [50, 90, 80, 20], [1, 1, 2, 4], wait_time=[0, 0, 30, 40], name="t"
)
QUEUE = {"submit": [0, 0], "duration": [1, 1], "units": [1, 1], "per_unit": [[1], [1]]}


def machine(power: NodePower | None = POWER, cores: int = 1, **more: Any) -> Cluster:
    return Cluster(groups=(NodeGroup("node", 4, {"core": cores}, power),), **more)


def limited(limits: Any = (), **rules: Any) -> Any:
    """Simulate a job under limits."""
    given = {"cluster": machine(), "limits": limits, **rules}
    return hpcgym.simulate(few_jobs(64, [0], [1], [1]), **given)


def answers(answer: Any, **rules: Any) -> Any:
    """Simulate a dispatcher that gives an answer."""

    def wrong(view: PassView) -> Any:
        return answer(view) if callable(answer) else answer

    return hpcgym.simulate(FEW, wrong, cluster=TWO, **rules)


def view(**changes: Any) -> PassView:
    return PassView.of(0, ("core",), [[4]], queue={**QUEUE, **changes})


NAMES: dict[str, Any] = {
    **{known.__name__: known for known in (Cluster, EnergyBudget, Failures, Heatmap, NodeGroup)},
    **{known.__name__: known for known in (NodePower, PassView, PowerCap, Scheduler, replace)},
    **{known.__name__: known for known in (machine, limited, answers, view)},
    **{"FEW": FEW, "JOBS": JOBS, "POWER": POWER, "RAN": RAN, "SMALL": SMALL, "TWO": TWO},
    "np": np,
    "math": math,
    "simulate": hpcgym.simulate,
    "continued": lambda *times: hpcgym.continued(hpcgym.simulate(RAN), *times),
    "reference": partial(hpcgym.simulate, JOBS, engine="reference"),
    "batch": lambda **given: BatchSimulator(**{"slices": SLICES, **given}),
    "weights": BatchSimulator(SLICES).run,
    "score": lambda answer: hpcgym.simulate(JOBS, policy=answer),
    "shared": lambda scheduler="easy-co", **rules: hpcgym.simulate(
        CODED, scheduler, **{"cluster": "2x1x4", "speedups": PAIRS, **rules}
    ),
    "alone": lambda **rules: hpcgym.simulate(CODED, **rules),
    "few": partial(hpcgym.simulate, FEW, cluster=TWO),
    "tiny": lambda **columns: hpcgym.simulate(tiny(**columns)),
    "failing": lambda failures: hpcgym.simulate(
        few_jobs(4, [0], [9], [2]), cluster="2x1x2", failures=failures
    ),
}


@pytest.mark.parametrize(("given", "message"), mistakes_in(__file__))
def test_a_mistake_is_told_on_one_line(given: str, message: str) -> None:
    is_told(given, NAMES, message)
