"""What jobs run on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcgym.cluster.failures import Failures, failures_of
    from hpcgym.cluster.files import cluster_toml, find_cluster, machine_names, read_cluster
    from hpcgym.cluster.partitions import Partition
    from hpcgym.cluster.pool import Cluster, NodeGroup
    from hpcgym.cluster.power import Level, NodePower

__all__ = [
    "Cluster",
    "Failures",
    "Level",
    "NodeGroup",
    "NodePower",
    "Partition",
    "cluster_toml",
    "failures_of",
    "find_cluster",
    "machine_names",
    "read_cluster",
]

# imported when first used: a pool of processors needs few of them
_HOMES = {
    "Cluster": "pool",
    "Failures": "failures",
    "Level": "power",
    "NodeGroup": "pool",
    "NodePower": "power",
    "Partition": "partitions",
    "cluster_toml": "files",
    "failures_of": "failures",
    "find_cluster": "files",
    "machine_names": "files",
    "read_cluster": "files",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym.cluster' has no attribute {name!r}")
    return getattr(import_module(f"hpcgym.cluster.{_HOMES[name]}"), name)
