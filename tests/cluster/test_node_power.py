"""Power of nodes: checked, in files, and how much longer jobs take at their frequencies."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.cluster import Cluster, Level, NodeGroup, NodePower, cluster_toml, find_cluster
from hpcgym.cluster.power import slowed
from hpcgym.errors import HpcgymError

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


def test_slowed_by_a_decimal_fraction() -> None:
    assert slowed([100, 7, 1, 0], [1.1, 1.0, 1.63, 2]).tolist() == [110, 7, 2, 0]


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


def test_the_command_shows_watts() -> None:
    run = CliRunner().invoke(app, ["machines", "curie"])
    assert "busy_w = [193, 213" in run.output
    listed = CliRunner().invoke(app, ["machines"]).output
    assert "idle 117 W, busy 358 W" in listed
