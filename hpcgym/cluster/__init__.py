"""What jobs run on."""

from hpcgym.cluster.files import cluster_toml, find_cluster, machine_names, read_cluster
from hpcgym.cluster.nodes import NodeGroup
from hpcgym.cluster.pool import Cluster
from hpcgym.cluster.power import Level, NodePower

__all__ = [
    "Cluster",
    "Level",
    "NodeGroup",
    "NodePower",
    "cluster_toml",
    "find_cluster",
    "machine_names",
    "read_cluster",
]
