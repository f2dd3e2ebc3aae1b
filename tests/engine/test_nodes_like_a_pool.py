"""Nodes of one core simulated as nodes in general make the schedules of a pool."""

from __future__ import annotations

import numpy as np
import pytest

from hpcgym import Cluster, Scheduler, load_workload, simulate
from hpcgym.cluster import NodeGroup
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.nodes import needs_on, nodes_for

JOBS = load_workload("lublin:jobs=1500,processors=32,seed=3,load=1.1")


@pytest.mark.parametrize("allocation", ["first-fit", "best-fit", "random:4"])
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"backfill": "none"},
        {"backfill_order": "sjbf", "estimate": "ave2", "correction": "incremental"},
        {"policy": "saf"},
        {"policy": "lexp", "backfill_order": "lexp"},
        {"policy": "saf", "threshold": 3600.0},
    ],
    ids=str,
)
def test_the_general_way_is_the_pools(rules: dict[str, object], allocation: str) -> None:
    scheduler = Scheduler(allocation=allocation, **rules)  # type: ignore[arg-type]
    cluster = Cluster(groups=(NodeGroup("thin", 32, {"core": 1}),))
    simulation = new_simulation(
        JOBS, scheduler, cluster, nodes_for(JOBS, needs_on(JOBS, cluster), cluster, scheduler)
    )
    simulation.drive()
    schedule = simulation.schedule()
    expected = simulate(JOBS, Scheduler(**rules), processors=32)  # type: ignore[arg-type]
    assert np.array_equal(schedule["start"], expected.start)
    assert np.array_equal(schedule["promised"], expected.reserved_start)
