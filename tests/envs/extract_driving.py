"""What the tests of extracts in environments share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import NAMES, SINGLE, VECTOR, whole
from test_node_energy import SMALL

from hpcgym import simulate, validate_schedule
from hpcgym.cluster import Cluster
from hpcgym.envs.core.infos import means_of, state_of
from hpcgym.workload import Workload

names = pytest.mark.parametrize("name", NAMES)


def make(name: str, workload: Workload, *number: int, **options: Any) -> Any:
    if name == "MixedPolicy":
        options.setdefault("interval", "pass")
    return (VECTOR if number else SINGLE)[name](*number, **whole(workload, **options))


def assert_metrics(env: Any, expected: Any) -> None:
    found = env.result()
    validate_schedule(found)
    assert found.start.tolist() == expected.start.tolist()
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-12, nan_ok=True)
    means = means_of(env.simulations, state_of(env.simulations, 0))
    for metric, value in means.items():
        assert value == pytest.approx(expected.metrics[metric], rel=1e-9, abs=1e-6), metric


def busy_log(cluster: Cluster | None = None) -> Workload:
    return simulate(SMALL, "easy", cluster=cluster).as_workload()


def from_the_middle(log: Workload) -> Workload:
    return log.extract(int(np.quantile(log.submit_time, 0.4))).take(slice(0, 80), name="part")
