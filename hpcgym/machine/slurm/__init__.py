"""What files of Slurm say: machines, partitions and scheduling of a slurm.conf, and QOS."""

from hpcgym.machine.slurm.conf import OtherSetting, SlurmConf, read_slurm_conf
from hpcgym.machine.slurm.lines import ENDING
from hpcgym.machine.slurm.qos import Qos, read_qos

__all__ = ["ENDING", "OtherSetting", "Qos", "SlurmConf", "read_qos", "read_slurm_conf"]
