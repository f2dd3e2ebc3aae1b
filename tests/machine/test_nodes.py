"""Machines: nodes, pools, and what they draw."""

from __future__ import annotations

import dataclasses
import pickle
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym.errors import HpcgymError
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
    with pytest.raises(ValueError, match="read-only"):
        cluster.capacity[0, 0] = 1


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
    with pytest.raises(
        HpcgymError, match="processors is 41, but the groups of nodes have 40 cores"
    ):
        Cluster(41, groups=(GPU, MIC))
    with pytest.raises(HpcgymError, match="a machine needs processors, or groups of nodes"):
        Cluster()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("", 1, {"core": 1}), "the name of a group of nodes must be a text, not ''"),
        (("a", 0, {"core": 1}), "group 'a': nodes must be a whole number from 1 to 1048576, not 0"),
        (("a", True, {"core": 1}), "nodes must be a whole number"),
        (("a", 1, {"mem": 1}), "group 'a': a node needs at least 1 core"),
        (("a", 1, {"core": 1, "gpu": -1}), "gpu must be a whole number from 0 to"),
        (("a", 1, {"core": 1, "units": 1}), "'units' cannot be the name of a resource"),
        (("a", 1, {"core": 1, "run_time": 1}), "'run_time' cannot be .*: it is a column of jobs"),
        (("a", 1, {"core": 1, "RAM": 1}), "'RAM' cannot be .*: did you mean 'mem'?"),
        (("a", 1, {"core": 1, "mem": "16 GB"}), "mem must be a whole number of MB .* '16 GB'"),
        (("a", 1, 16), "group 'a': resources must be a mapping"),
        (("a", 1, {"core": 6}, None, 4), "group 'a': sockets must divide the 6 cores of a node, w"),
        (("a", 1, {"core": 6}, None, 2.0), "group 'a': sockets must be a whole number from 1 to"),
    ],
)
def test_groups_that_are_none(arguments: Any, problem: str) -> None:
    with pytest.raises(HpcgymError, match=problem):
        NodeGroup(*arguments)


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"groups": (GPU, GPU)}, "two groups of nodes have the name 'gpu'"),
        ({"groups": []}, "^a machine needs processors, or groups of nodes$"),
        (
            {"groups": (GPU, NodeGroup("b", 1, {"core": 1, "GPUs": 4}))},
            "'gpu' and 'GPUs' are two resources of almost the same name",
        ),
        ({"groups": ("gpu",)}, "groups must be NodeGroup after NodeGroup"),
        (
            {"groups": [NodeGroup(n, 2**20, {"core": 1}) for n in "ab"]},
            "a machine has at most 1048576 nodes",
        ),
        (
            {"groups": (GPU,), "shutdown_after_s": 60},
            "only nodes with a power can be switched off, and group 'gpu' has none",
        ),
        ({"processors": 4, "queues": {"a": 0}}, "queue 'a': the expected wait must be above 0 s"),
        ({"processors": 4, "queues": {"a": "1 h"}}, "must be above 0 s, not '1 h'"),
        ({"processors": 4, "queues": {"a": 1, "A": 2}}, "two queues have the same name: a, A"),
        ({"processors": 4, "queues": ["a"]}, "queues must be a mapping"),
        ({"processors": 4, "queues": {1: 1}}, "the name of a queue must be a text, not 1"),
        ({"processors": 4, "name": 3}, "the name of a machine must be a text, not 3"),
    ],
)
def test_machines_that_are_none(attributes: Any, problem: str) -> None:
    with pytest.raises(HpcgymError, match=problem):
        Cluster(**attributes)


SECONDS = [-1, 1.5, "60", np.nan, 2**31 + 1, np.float64(4)]


@pytest.mark.parametrize(
    ("name", "wrong", "must"),
    [
        ("processors", [0, -1, 1.0, 2.5, "4", 2**31 + 1, np.float64(4)], "a whole number from 1 t"),
        ("io_bandwidth_gb_s", [0, -1.0, np.nan, np.inf, "much"], "a number above 0 GB/s, not"),
        ("idle_power_w", [-1.0, np.nan, np.inf, "much", None], "a power of at least 0 W, not"),
        ("busy_power_w", [-1.0, np.nan, np.inf, "much", None], "a power of at least 0 W, not"),
        ("off_power_w", [-1.0, np.nan, np.inf, "much", None], "a power of at least 0 W, not"),
        *(
            (f"{what}_power_w", [-1.0, np.nan, "much"], "a power of at least 0 W")
            for what in ("shutdown", "boot")
        ),
        ("shutdown_after_s", SECONDS, "whole seconds from 0 to"),
        *(
            (f"{what}_time_s", [*SECONDS, None], "whole seconds from 0 to")
            for what in ("shutdown", "boot")
        ),
    ],
)
def test_numbers_of_machines_that_are_none(name: str, wrong: list[Any], must: str) -> None:
    for value in wrong:
        with pytest.raises(HpcgymError, match=f"{name} must be {must}") as caught:
            Cluster(**{"processors": 4, name: value})
        assert str(caught.value).endswith(f"not {value!r}")


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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("idle_w = 100\n", "", "group 'thin', power: 'idle_w' is missing"),
        ("idle_w = 100", "idle = 100", "power: unknown key 'idle'; did you mean 'idle_w'"),
        ("idle_w = 100", "idle_w = -1", "power: idle_w must be a power of at least 0 W, not -1"),
        ("[200, 250.5, 300]", "[300, 200, 100]", "power: busy_w must be a power, or powers that"),
        ("[1, 1.5, 2]", "[1, 2]", "power: frequency_ghz must be rising .* there are 3, not"),
        ("[1, 1.5, 2]", "[2, 1, 3]", "power: frequency_ghz must be rising"),
        ("[2, 1.4, 1]", "[2, 1.4]", "power: slowdown must be a factor"),
        ("[2, 1.4, 1]", "[2, 2.1, 1]", "power: slowdown must be a factor"),
        ("[2, 1.4, 1]", "0.9", "power: slowdown must be a factor from 1 to 1000"),
        ("boot_time_s = 90", "boot_time_s = 1.5", "boot_time_s must be whole seconds from 0"),
        ("[group.power]\nidle_w = 300\nbusy_w = 500\n", "power = 7\n", r"a table, \[group.power\]"),
        (
            "[group.power]\nidle_w = 300",
            "[group.powr]\nidle_w = 300",
            "'powr'; did you mean 'power'",
        ),
        ("of = 3", "of = 0", "level 'chassis': of must be a whole number from 1"),
        ("of = 3\n", "", "level 'chassis': 'of' is missing"),
        ("power_w = 40.5", "power_w = 'x'", "level 'chassis': power_w must be a power"),
    ],
)
def test_mistakes_in_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FILE
    path = tmp_path / "mine.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(HpcgymError, match=f"mine.toml.*{message}"):
        find_cluster(path)


def test_mistakes_in_python() -> None:
    for wrong, message in (
        (lambda: NodePower(1, 2, slowdown=1.5), "slowdown must be 1 with one level"),
        (lambda: NodePower(1, ()), "busy_w must be a power"),
        (lambda: NodePower(1, (1, 2)), "frequency_ghz must be"),
        (lambda: NodeGroup("a", 1, {"core": 1}, 5), "power must be a NodePower, not 5"),
        (lambda: NodeGroup("a", 1, {"core": 1, "power": 2}), "cannot be the name of a resource"),
        (lambda: Cluster(4, levels=(Level("a", 1, 1),)), "a pool of processors has none"),
        (lambda: Cluster(groups=MINE.groups, levels=("rack",)), "Level above Level"),
        (lambda: Cluster(groups=MINE.groups, levels=MINE.levels * 2), "the name 'chassis'"),
        (lambda: Level("", 1, 1), "the name of a level"),
    ):
        with pytest.raises(HpcgymError, match=message):
            wrong()


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
