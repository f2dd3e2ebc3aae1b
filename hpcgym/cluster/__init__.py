"""What jobs run on."""

from hpcgym.cluster.files import cluster_toml, find_cluster, machine_names, read_cluster
from hpcgym.cluster.nodes import NodeGroup
from hpcgym.cluster.pool import Cluster

__all__ = [
    "Cluster",
    "NodeGroup",
    "cluster_toml",
    "find_cluster",
    "machine_names",
    "read_cluster",
]
