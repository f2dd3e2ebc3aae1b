"""What jobs run on."""

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
