"""Machines and partitions of Slurm's configuration files."""

from hpcgym.cluster.slurm.conf import SlurmConf, read_slurm_conf
from hpcgym.cluster.slurm.qos import Qos, read_qos
from hpcgym.cluster.slurm.settings import Unfollowed

__all__ = ["Qos", "SlurmConf", "Unfollowed", "read_qos", "read_slurm_conf"]
