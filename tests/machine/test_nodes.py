"""Machines: nodes, pools, and what they draw."""

from __future__ import annotations

import dataclasses
import pickle
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym.machine import Cluster, Level, NodeGroup, NodePower, cluster_toml, find_cluster
from hpcgym.machine.power import slowed

GPU = NodeGroup("gpu", 2, {"gpu": 2, "core": 16, "mem": 16_000})
MIC = NodeGroup("mic", 1, {"core": 8, "mem": 32_000, "mic": 1})


def test_nodes_lie_group_after_group() -> None:
    cluster = Cluster(groups=(GPU, MIC))
    assert cluster.resources == ("core", "gpu", "mem", "mic")
    assert cluster.capacity.tolist() == [[16, 2, 16_000, 0]] * 2 + [[8, 0, 32_000, 1]]
    assert cluster.capacity.dtype == np.int64
    assert cluster.group_of.tolist() == [0, 0, 1]
    assert (cluster.nodes, cluster.processors) == (3, 40)
    assert not cluster.capacity.flags.writeable


def test_a_machine_is_a_value() -> None:
    pool = Cluster(7)
    assert (pool.groups, pool.nodes, pool.resources) == ((), 1, ("core",))
    assert (pool.capacity.tolist(), pool.group_of.tolist()) == ([[7]], [0])
    amounts, waits = {"core": 4}, {"debug": 60.0}
    cluster = Cluster(groups=(NodeGroup("a", 1, amounts),), queues=waits, name="mine")
    amounts["core"] = waits["debug"] = 1
    assert (cluster.groups[0].resources, cluster.queues) == ({"core": 4}, {"debug": 60.0})
    again = pickle.loads(pickle.dumps(cluster))
    assert again == cluster
    assert hash(again) == hash(cluster)
    assert again != dataclasses.replace(cluster, queues={"debug": 60.5})
    assert not again.capacity.flags.writeable


def test_processors_are_the_cores_of_the_groups() -> None:
    assert Cluster(40, groups=(GPU, MIC)) == Cluster(groups=[GPU, MIC])  # type: ignore[arg-type]


def test_numpy_numbers_are_numbers() -> None:
    cluster = Cluster(np.int32(8), np.float32(1.5), np.int64(3))  # type: ignore[arg-type]
    assert cluster == Cluster(8, 1.5, 3.0)
    assert type(cluster.processors) is int
    assert type(cluster.busy_power_w) is float


def test_bandwidths_are_counted_to_the_byte() -> None:
    # found by a random run: 980 / 1e9 * 1e9 is a little less
    cluster = Cluster(4, io_bandwidth_gb_s=980 / 1e9)
    assert cluster.io_bytes_s == 980
    assert Cluster(4, io_bandwidth_gb_s=1e-12).io_bytes_s == 1
    assert Cluster(4).io_bytes_s is None


FILE = """
name = "mine"

[[group]]
name = "thin"
nodes = 4
core = 2

[group.power]
idle_w = 100
busy_w = [200, 250.5, 300]
frequency_ghz = [1, 1.5, 2]
slowdown = [2, 1.4, 1]
boot_time_s = 90

[[group]]
name = "fat"
nodes = 2
core = 8

[group.power]
idle_w = 300
busy_w = 500

[[level]]
name = "chassis"
of = 3
power_w = 40.5
"""

MINE = Cluster(
    groups=(
        NodeGroup(
            "thin",
            4,
            {"core": 2},
            NodePower(100, (200, 250.5, 300), 0, (1, 1.5, 2), (2, 1.4, 1), boot_time_s=90),
        ),
        NodeGroup("fat", 2, {"core": 8}, NodePower(300, 500)),
    ),
    levels=(Level("chassis", 3, 40.5),),
    name="mine",
)


def test_a_file_with_power_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    assert find_cluster(path) == MINE
    path.write_text(cluster_toml(MINE))
    assert find_cluster(path) == MINE
    assert hash(find_cluster(path)) == hash(MINE)
    assert "boot_w" not in path.read_text()  # it is the highest of busy_w by itself


def test_what_is_so_by_itself() -> None:
    power = NodePower(100, [200, 300], frequency_ghz=[1, 2])
    assert (power.shutdown_w, power.boot_w, power.off_w) == (100, 300, 0)
    assert power.levels == 2
    assert NodePower(1, 2).busy_w == (2,)
    assert NodePower(1, 2).slowdowns == (1,)


def test_slowdowns_lie_on_a_line_over_the_frequency() -> None:
    """Glesser 2016, section 4.6.2: 1.63 at 1.2 GHz and 1.29 at 2.0 GHz."""
    power = find_cluster("curie").groups[0].power
    assert power is not None
    by_ghz = dict(zip(power.frequency_ghz, power.slowdowns, strict=True))
    assert by_ghz[1.2] == 1.63
    assert round(by_ghz[2.0], 2) == 1.29
    assert by_ghz[2.7] == 1
    own = power.slowdowns_of(np.array([-1.0, 1.0, 2.5]))
    assert own[0].tolist() == list(power.slowdowns)
    assert own[1].tolist() == [1] * 8
    assert own[2, [0, -1]].tolist() == [2.5, 1]
    listed = MINE.groups[0].power
    assert listed is not None
    assert listed.slowdowns_of(np.array([-1.0, 3.0])).tolist() == [[2, 1.4, 1], [3, 2, 1]]


@given(st.integers(0, 2**53), st.integers(10**6, 10**9))
def test_slowed_times_are_whole_seconds_rounded_up(time: int, millionths: int) -> None:
    expected = ceil(Fraction(millionths, 10**6) * time)
    assert int(slowed(time, millionths / 10**6)) == expected


def test_the_machines_of_document_004() -> None:
    curie, taurus = find_cluster("curie"), find_cluster("taurus")
    assert (curie.nodes, curie.processors) == (5040, 80_640)
    below = [level.of for level in curie.levels]
    assert curie.nodes / below[0] / below[1] == 56
    power = taurus.groups[0].power
    assert power is not None
    assert power.shutdown_w is not None
    assert power.boot_w is not None
    assert power.shutdown_w * power.shutdown_time_s == pytest.approx(620, rel=1e-15)
    assert power.boot_w * power.boot_time_s == pytest.approx(19_030, rel=1e-15)
