from .conf import SlurmConf as SlurmConf
from .conf import WrongSettingError as WrongSettingError
from .conf import read_slurm_conf as read_slurm_conf
from .keys import OtherSetting as OtherSetting
from .lines import ENDING as ENDING
from .lines import conf_in as conf_in
