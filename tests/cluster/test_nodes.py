"""Machines with nodes are what they are said to be, or there are none."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.errors import HpcgymError

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


def test_sockets_share_the_cores_of_a_node() -> None:
    assert GPU.sockets == 1
    assert [NodeGroup("a", 1, {"core": 6}, sockets=n).sockets for n in (1, 2, 3, 6)] == [1, 2, 3, 6]
    two = NodeGroup("gpu", 2, GPU.resources, sockets=2)
    assert two != GPU
    assert Cluster(groups=(two,)).resources == ("core", "gpu", "mem")


def test_a_pool_is_one_node() -> None:
    pool = Cluster(7)
    assert (pool.groups, pool.nodes, pool.resources) == ((), 1, ("core",))
    assert pool.capacity.tolist() == [[7]]
    assert pool.group_of.tolist() == [0]


def test_processors_are_the_cores_of_the_groups() -> None:
    assert Cluster(40, groups=(GPU, MIC)) == Cluster(groups=[GPU, MIC])  # type: ignore[arg-type]
    with pytest.raises(
        HpcgymError, match="processors is 41, but the groups of nodes have 40 cores"
    ):
        Cluster(41, groups=(GPU, MIC))
    with pytest.raises(HpcgymError, match="a machine needs processors, or groups of nodes"):
        Cluster()


def test_a_cluster_can_be_a_key_and_be_sent() -> None:
    cluster = Cluster(groups=(GPU,), queues={"debug": 3600}, name="mine")
    again = pickle.loads(pickle.dumps(cluster))
    assert again == cluster
    assert hash(again) == hash(cluster)
    assert again != dataclasses.replace(cluster, queues={"debug": 60})
    assert not again.capacity.flags.writeable


def test_what_is_given_can_be_changed_afterwards() -> None:
    amounts, waits = {"core": 4}, {"debug": 60.0}
    cluster = Cluster(groups=(NodeGroup("a", 1, amounts),), queues=waits)
    amounts["core"] = waits["debug"] = 1
    assert cluster.groups[0].resources == {"core": 4}
    assert cluster.queues == {"debug": 60.0}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("", 1, {"core": 1}), "the name of a group of nodes must be a text, not ''"),
        (("a", 0, {"core": 1}), "group 'a': nodes must be a whole number from 1 to 1048576, not 0"),
        (("a", 2.0, {"core": 1}), "nodes must be a whole number"),
        (("a", True, {"core": 1}), "nodes must be a whole number"),
        (("a", 1, {"mem": 1}), "group 'a': a node needs at least 1 core"),
        (("a", 1, {"core": 0}), "a node needs at least 1 core"),
        (("a", 1, {"core": 1, "gpu": -1}), "gpu must be a whole number from 0 to"),
        (("a", 1, {"core": 1, "gpu": 0.5}), "gpu must be a whole number from 0 to"),
        (("a", 1, {"core": 1, "units": 1}), "'units' cannot be the name of a resource"),
        (("a", 1, {"core": 1, "two words": 1}), "'two words' cannot be the name of a resource"),
        (("a", 1, {"core": 1, "name": 1}), "'name' cannot be the name of a resource: it stands"),
        (("a", 1, {"core": 1, "run_time": 1}), "'run_time' cannot be .*: it is a column of jobs"),
        (("a", 1, {"core": 1, "users": 1}), "'users' cannot be .*: it is nearly 'user"),
        (("a", 1, {"core": 1, "user": 1}), "'user' cannot be .*: it is a column of jobs"),
        (("a", 1, {"core": 1, "RAM": 1}), "'RAM' cannot be .*: did you mean 'mem'?"),
        (
            ("a", 1, {"core": 1, "mem": "16 GB"}),
            "mem must be a whole number of MB from 0 .* '16 GB'",
        ),
        (("a", 1, 16), "group 'a': resources must be a mapping"),
        (("a", 1, {"core": 1, "sockets": 2}), "'sockets' cannot be .*: it stands for something"),
        (("a", 1, {"core": 1, "code": 2}), "'code' cannot be .*: it is a column of jobs"),
        (("a", 1, {"core": 6}, None, 4), "group 'a': sockets must divide the 6 cores of a node, w"),
        (("a", 1, {"core": 6}, None, 0), "group 'a': sockets must be a whole number from 1 to"),
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
