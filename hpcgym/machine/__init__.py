"""What jobs run on."""

from hpcgym.machine.failures import Failures, failures_of
from hpcgym.machine.files import cluster_toml, find_cluster, machine_names, read_cluster
from hpcgym.machine.partitions import Partition
from hpcgym.machine.pool import Cluster, NodeGroup
from hpcgym.machine.power import Level, NodePower

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
