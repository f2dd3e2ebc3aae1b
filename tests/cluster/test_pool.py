"""A cluster is what it is said to be, or there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError


def test_defaults_are_the_nodes_of_curie() -> None:
    cluster = Cluster(100)
    assert (cluster.processors, cluster.idle_power_w, cluster.busy_power_w) == (100, 117.0, 358.0)


def test_numpy_numbers_are_numbers() -> None:
    cluster = Cluster(np.int32(8), np.float32(1.5), np.int64(3))  # type: ignore[arg-type]
    assert cluster == Cluster(8, 1.5, 3.0)
    assert type(cluster.processors) is int
    assert type(cluster.busy_power_w) is float


@pytest.mark.parametrize("processors", [0, -1, 1.0, 2.5, "4", 2**31 + 1, np.float64(4)])
def test_wrong_number_of_processors(processors: Any) -> None:
    with pytest.raises(HpcgymError, match="processors must be a whole number from 1 to") as caught:
        Cluster(processors)
    assert str(caught.value).endswith(f"not {processors!r}")


@pytest.mark.parametrize("gb_s", [0, -1.0, float("nan"), float("inf"), "much"])
def test_wrong_bandwidth(gb_s: Any) -> None:
    with pytest.raises(HpcgymError, match="io_bandwidth_gb_s must be a number above 0 GB/s, not"):
        Cluster(4, io_bandwidth_gb_s=gb_s)


def test_bandwidths_are_counted_to_the_byte() -> None:
    # found by a random run: 980 / 1e9 * 1e9 is a little less
    cluster = Cluster(4, io_bandwidth_gb_s=980 / 1e9)
    assert cluster.io_bytes_s == 980
    assert Cluster(4, io_bandwidth_gb_s=1e-12).io_bytes_s == 1
    assert Cluster(4).io_bytes_s is None


@pytest.mark.parametrize("name", ["idle_power_w", "busy_power_w"])
@pytest.mark.parametrize("power", [-1.0, float("nan"), float("inf"), "much", None])
def test_wrong_power(name: str, power: Any) -> None:
    with pytest.raises(HpcgymError, match=f"{name} must be a power of at least 0 W, not"):
        Cluster(4, **{name: power})
