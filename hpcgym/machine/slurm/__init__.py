"""What files of Slurm say: machines, partitions and scheduling of a slurm.conf."""

from hpcgym.machine.slurm.conf import SlurmConf, WrongSettingError, read_slurm_conf
from hpcgym.machine.slurm.keys import OtherSetting
from hpcgym.machine.slurm.lines import ENDING, conf_in

__all__ = ["ENDING", "OtherSetting", "SlurmConf", "WrongSettingError", "conf_in", "read_slurm_conf"]
