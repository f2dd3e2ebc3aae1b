"""A slurm.conf of the user as settings of a private Slurm."""

from __future__ import annotations

from hpcgym.cluster.slurm import SlurmConf
from hpcgym.errors import HpcgymError
from hpcgym.replay.configuration import NO_BACKFILL, SOON

#: Settings of the file that the private Slurm has, in lower case; others may not matter here.
_TAKEN = ("schedulertype",)
_OF_PRIORITIES = ("priorityweightpartition", "priorityfavorsmall")
_SIZE = "priorityweightjobsize"


def is_aged(conf: SlurmConf) -> bool:
    """Return whether priorities grow as jobs wait, which Slurm ignores without a database.

    Then the order of the file drives it, as any policy does.
    """
    return conf.said("prioritytype") != "priority/basic" and _weight(conf, "priorityweightage") > 0


def settings_of(conf: SlurmConf) -> dict[str, str]:
    """Return the settings by which a private Slurm schedules as a slurm.conf says.

    Where the file does not say otherwise, priorities are those of ``priority/multifactor``. Where
    they grow with age it has the settings of a Slurm that is driven.

    Raises
    ------
    HpcgymError : a weight of fair share, which needs a database.
    """
    said = conf.scheduling
    if _weight(conf, "priorityweightfairshare"):
        raise HpcgymError(
            "a replay on Slurm has no database of accounts, which PriorityWeightFairshare needs:"
            " leave it out"
        )
    usual = dict(one.partition("=")[::2] for one in SOON.split(","))
    parameters = usual | conf.parameters
    settings = {name: said[name] for name in _TAKEN if name in said}
    if is_aged(conf):
        parameters["defer"] = ""  # no job starts before it has its place in the queue
        settings["PriorityType"] = "priority/basic"
        if settings.get("schedulertype", "").casefold() == "sched/builtin":
            # which serves by submission, whatever priorities
            settings["schedulertype"] = "sched/backfill"
            parameters |= dict(one.partition("=")[::2] for one in NO_BACKFILL.split(","))
    else:
        settings["PriorityType"] = said.get("prioritytype", "priority/multifactor")
        settings |= {name: said[name] for name in _OF_PRIORITIES if name in said}
        # of a job's size Slurm takes the mean of its shares of processors and of nodes; jobs here
        # ask for no nodes, and the simulator counts processors alone
        settings[_SIZE] = str(2 * _weight(conf, _SIZE))
    written = [f"{name}={value}" if value else name for name, value in parameters.items()]
    return {**settings, "SchedulerParameters": ",".join(written)}


def _weight(conf: SlurmConf, name: str) -> int:
    """Return a weight; that it is a number was found when the file became a scheduler."""
    return int(conf.scheduling.get(name, "0"))
