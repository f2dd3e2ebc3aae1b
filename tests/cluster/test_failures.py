"""Failures of nodes: tables, files, and those that are drawn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.cluster import Cluster, Failures, NodeGroup, failures_of
from hpcgym.errors import HpcgymError

NODES = Cluster(groups=(NodeGroup("a", 4, {"core": 2}),))


def test_they_are_kept_by_time_then_node() -> None:
    failures = Failures([2, 1, 0], [50, 10, 10], [60, 50, 20])
    assert failures.node.tolist() == [0, 1, 2]
    assert failures.time.tolist() == [10, 10, 50]
    assert failures.repaired.tolist() == [20, 50, 60]
    assert (len(failures), repr(failures)) == (3, "Failures(3 of 3 nodes)")
    with pytest.raises(ValueError, match="read-only"):
        failures.time[0] = 1


def test_a_node_may_fail_again_when_it_is_repaired() -> None:
    assert len(Failures([1, 1], [10, 5], [20, 10])) == 2


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (([0], [1, 2], [3]), "three arrays of one length"),
        (([[0]], [[1]], [[2]]), "three arrays of one length"),
        (([0.5], [1], [2]), "node must hold whole numbers, not float64"),
        (([-1], [1], [2]), "row 0: node -1, 1 s to 2 s: nodes count from 0"),
        (([0, 0], [1, -1], [2, 2]), "row 1: node 0, -1 s to 2 s: nodes count from 0"),
        (([0], [1], [2**53 + 1]), "to 9007199254740993 s: nodes count from 0"),
        (([0], [5], [5]), "row 0: node 0 fails at 5 s and is repaired at 5 s"),
        (([3, 3], [9, 5], [12, 10]), "row 0: node 3 fails at 9 s, while it is down"),
    ],
)
def test_what_cannot_be_is_said(columns: Any, told: str) -> None:
    with pytest.raises(HpcgymError, match=told):
        Failures(*columns)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "failures.csv"
    Failures([2, 1], [50, 10], [60, 50]).write(path)
    assert path.read_text() == "node,time,repaired\n1,10,50\n2,50,60\n"
    again = Failures.read(path)
    assert (again.node.tolist(), again.time.tolist()) == ([1, 2], [10, 50])
    path.write_text("Time , node,repaired\n\n10,1,50\n")  # any order of columns
    assert Failures.read(path).node.tolist() == [1]
    path.write_text("node,time,repaired\n")
    assert len(Failures.read(path)) == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("node,time\n1,2\n", "line 1: the columns must be node,time,repaired"),
        ("node,time,repaired\n1,2\n", "line 2: 2 values instead of 3"),
        ("node,time,repaired\n0,1,2\n\n1,x,3\n", "line 4: time must be a whole number .*, not 'x'"),
        ("node,time,repaired\n0,1,2.5\n", "line 2: repaired must be a whole number"),
        ("node,time,repaired\n-1,1,2\n", "line 2: node must be a whole number from 0"),
        ("node,time,repaired\n0,1,9\n0,5,20\n", "line 3: node 0 fails at 5 s, while it is down"),
        ("node,time,repaired\n0,9,9\n", "line 2: node 0 fails at 9 s and is repaired at 9 s"),
    ],
)
def test_a_wrong_file_is_said_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "failures.csv"
    path.write_text(text)
    with pytest.raises(HpcgymError, match=f"failures.csv.*{told}"):
        Failures.read(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match=r"nothing\.csv"):
        Failures.read(tmp_path / "nothing.csv")


# --- Drawn ------------------------------------------------------------------------------------


def up_and_down(failures: Failures) -> tuple[np.ndarray, np.ndarray]:
    """Return how long nodes were up from a repair to the next failure, and down [s]."""
    order = np.lexsort((failures.time, failures.node))
    node, time, repaired = (
        column[order] for column in (failures.node, failures.time, failures.repaired)
    )
    same = np.diff(node) == 0
    return (time[1:] - repaired[:-1])[same], repaired - time


def test_times_have_the_means_and_the_shape_that_were_asked_for() -> None:
    many = Cluster(groups=(NodeGroup("a", 50, {"core": 1}),))
    failures = failures_of(many, 10**9, mtbf=10**5, repair=5000, seed=3)
    up, down = up_and_down(failures)
    assert len(up) > 300_000
    assert up.mean() == pytest.approx(10**5, rel=0.02)
    assert down.mean() == pytest.approx(5000, rel=0.02)
    # of a Weibull distribution of shape k: the standard deviation over the mean
    for shape, times in ((0.7, up),):
        first, second = math.gamma(1 + 1 / shape), math.gamma(1 + 2 / shape)
        assert times.std() / times.mean() == pytest.approx(
            math.sqrt(second / first**2 - 1), rel=0.03
        )
    assert np.log(down).std() == pytest.approx(1.0, rel=0.02)


def test_a_machine_by_name() -> None:
    words: dict[str, Any] = {"mtbf": 10**6, "repair": 100}
    assert len(failures_of("eurora", 10**6, **words)) > 0
    with pytest.raises(HpcgymError, match="nowhere"):
        failures_of("nowhere", 10**6, **words)


def test_draws_that_cannot_be() -> None:
    words: dict[str, Any] = {"mtbf": 1000, "repair": 100}
    for shape in (0.005, 101):
        with pytest.raises(HpcgymError, match=r"shape must be a number from 0\.1 to 100"):
            failures_of(NODES, 1000, **words, shape=shape)
    # by the mean each node would fail once
    many = Cluster(groups=(NodeGroup("a", 400_000, {"core": 1}),))
    with pytest.raises(HpcgymError, match="more than 10,000,000 failures of this machine"):
        failures_of(many, 2**40, mtbf=2**40, repair=1, shape=0.1)
    late = failures_of(NODES, 2**53, mtbf=2.0**52, repair=2.0**52, seed=1)
    assert late.repaired.max() <= 2**53


def test_they_lie_between_begin_and_until_and_depend_on_the_seed() -> None:
    words: dict[str, Any] = {"mtbf": 1000, "repair": 100, "begin": 5000}
    failures = failures_of(NODES, 50_000, seed=1, **words)
    assert failures.time.min() > 5000
    assert failures.time.max() < 50_000
    assert set(failures.node.tolist()) == {0, 1, 2, 3}
    same, other = (failures_of(NODES, 50_000, seed=seed, **words) for seed in (1, 2))
    assert failures.time.tolist() == same.time.tolist()
    assert failures.time.tolist() != other.time.tolist()
    assert len(failures_of(NODES, 5000, **words)) == 0
    alike = failures_of(NODES, 50_000, mtbf=1000, repair=99.5, repair_sigma=0)
    assert set((alike.repaired - alike.time).tolist()) == {100}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"mtbf": 0}, "mtbf must be a number above 0"),
        ({"mtbf": math.nan}, "mtbf must be a number above 0"),
        ({"repair": -1}, "repair must be a number above 0"),
        ({"shape": "x"}, "shape must be a number above 0"),
        ({"repair_sigma": -0.1}, "repair_sigma must be a number of at least 0"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"begin": 200}, "until must be a whole number from 200"),
        ({"mtbf": 1e-9, "repair": 1e-9}, "more than 10,000,000 failures"),
    ],
)
def test_numbers_that_cannot_be(words: dict[str, Any], told: str) -> None:
    with pytest.raises(HpcgymError, match=told):
        failures_of(NODES, 100, **{"mtbf": 10, "repair": 5, **words})


def test_a_pool_has_no_nodes_that_fail() -> None:
    with pytest.raises(HpcgymError, match="a pool of processors has none"):
        failures_of(Cluster(8), 100, mtbf=10, repair=5)
