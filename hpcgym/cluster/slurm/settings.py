"""Which settings of a slurm.conf say something of schedules, beside those of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hpcgym.cluster.slurm import machine
from hpcgym.cluster.slurm.lines import Setting
from hpcgym.cluster.slurm.typos import meant


class OtherSetting(NamedTuple):
    """A setting that is not of the machine; the scheduler of the file may go by it.

    Attributes
    ----------
    where : file and line.
    of : the node or partition that it is of, "" of a general setting.
    key, value : as they are written.
    near : the setting that is probably meant by one that is not known; "" of all others.
    """

    where: str
    of: str
    key: str
    value: str
    near: str = ""

    @property
    def name(self) -> str:
        """What messages call it: ``debug: LLN``."""
        return f"{self.of}: {self.key}" if self.of else self.key

    def is_called(self, *keys: str) -> bool:
        """Tell whether its key is one of some in lower case."""
        return self.key.casefold() in keys


#: Lines of things, and general settings of which the machine is made.
_OF_MACHINES = (
    "NodeName", "PartitionName", "NodeSet", "DownNodes", "ClusterName", "SelectTypeParameters",
    "GresTypes",
)  # fmt: skip

#: General settings that say how jobs are scheduled.
_OF_SCHEDULING = (
    "SchedulerType", "SchedulerParameters", "SelectType", "PriorityType", "PriorityWeightAge",
    "PriorityWeightAssoc", "PriorityWeightFairshare", "PriorityWeightJobSize",
    "PriorityWeightPartition", "PriorityWeightQOS", "PriorityWeightTRES", "PriorityMaxAge",
    "PriorityDecayHalfLife", "PriorityCalcPeriod", "PriorityFavorSmall", "PriorityFlags",
    "PriorityUsageResetPeriod", "PrioritySiteFactorParameters", "PrioritySiteFactorPlugin",
    "PreemptType", "PreemptMode", "PreemptParameters", "PreemptExemptTime",
    "EnforcePartLimits", "AccountingStorageEnforce", "MaxJobCount", "MaxArraySize",
    "FirstJobId", "DefMemPerCPU", "DefMemPerNode", "DefCpuPerGPU", "DefMemPerGPU", "MaxMemPerCPU",
    "MaxMemPerNode", "OverTimeLimit", "CompleteWait", "JobRequeue", "RequeueExit",
    "RequeueExitHold", "Licenses",
    "SuspendTime", "SuspendTimeout", "ResumeTimeout", "SuspendExcNodes", "SuspendExcParts",
    "SuspendRate", "ResumeRate", "ResvOverRun", "SchedulerTimeSlice", "TopologyPlugin",
    "TopologyParam", "DisableRootJobs", "FairShareDampeningFactor",
)  # fmt: skip
#: The same in lower case, by which they are kept.
OF_SCHEDULING = tuple(name.casefold() for name in _OF_SCHEDULING)

#: Beginnings and ends of those that say nothing of schedules: names of files, ports, time limits of
#: messages, how jobs are watched and signed in.
_SILENT = re.compile(
    r"(slurm|auth|cred|crypto|acct|accounting|jobacct|jobcomp|proctrack|task|prolog|epilog|mpi|"
    r"launch|health|log|debug|plug|state|storage|switch|communication|control|backup|tmp|track|"
    r"unkillable|vsize|x11|federation|gpufreq|job(container|credential|file|submit)|kill|"
    r"keepalive|burstbuffer|bcast|cli|cluster(filter)?|comm|core|check|dependency|"
    r"energy|ext|get|group|hash|inactive|include|interactive|min|message|power|private|propagate|"
    r"reboot|resumeprogram|resumefailprogram|return|route|rpc|salloc|sbcast|srun|suspendprogram|"
    r"tcp|usepam|userpam|wait|unix|tree|nodefeatures|max(step|tasks|dbd|batch|node)|preplugins|"
    r"prep|scron|sched(log)|mcs|scheduler(port|root|auth)|fast|licenses?_|"
    r"allowspecresources|usergroup|eiotimeout|epilogmsgtime|mailprog|maildomain)\w*"
    r"|\w*(logfile|pidfile|port|debug|timeout|host|addr|dir|location|program|logging|user)"
)

#: Keys of nodes and partitions that say nothing of schedules.
_SILENT_KEYS = (
    "nodeaddr", "nodehostname", "port", "bcastaddr", "reason", "tmpdisk", "cpubind", "alternate",
    "allocnodes", "disablerootjobs", "hidden", "rootonly",
    "resumetimeout", "suspendtimeout", "suspendtime", "powerdownonidle", "resumerate",
)  # fmt: skip

#: General settings whose value is what every simulation does anyway.
_USUAL = {
    "schedulertype": ("sched/backfill",),
    "selecttype": ("select/cons_tres", "select/cons_res"),
    "prioritytype": ("priority/basic",),
    "preempttype": ("preempt/none",),
    "preemptmode": ("off",),
    "preemptexempttime": ("-1", "0", "00:00:00"),
    "topologyplugin": ("topology/none", "topology/default", "topology/flat"),
    "priorityfavorsmall": ("no",),
    "enforcepartlimits": ("no", "any", "all"),
    "completewait": ("0",),
}
#: The same of keys of nodes and partitions, or they are read with these values.
_USUAL_KEYS = {
    "state": ("up", "unknown", "idle", "future"),
    "prioritytier": ("1",),
    "priorityjobfactor": ("1",),
    "oversubscribe": ("no", "exclusive"),
    "shared": ("no", "exclusive"),
    "lln": ("no",),
    "weight": ("1",),
    "allowgroups": ("all",),
}
#: Keys of partitions that simulations go by.
_OF_PARTITIONS = (
    "nodes", "default", "maxtime", "defaulttime", "maxnodes", "minnodes", "allowaccounts",
    "denyaccounts", "allowqos", "denyqos", "state",
)  # fmt: skip
#: Keys of nodes and of partitions, by the line that they stand on, which may be meant by others.
_KEYS = {
    "nodename": (
        "CPUs", "Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore",
        "RealMemory", "MemSpecLimit", "Gres", "Feature", "Features", "State", "Weight", "Procs",
        "CoreSpecCount", "CpuSpecList", "NodeAddr", "NodeHostname", "TmpDisk",
    ),
    "partitionname": (
        "Nodes", "Default", "MaxTime", "DefaultTime", "MaxNodes", "MinNodes", "AllowAccounts",
        "DenyAccounts", "AllowQos", "DenyQos", "AllowGroups", "PriorityTier", "PriorityJobFactor",
        "PreemptMode", "OverSubscribe", "Shared", "State", "LLN", "QOS", "GraceTime",
        "OverTimeLimit", "DefMemPerCPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode",
        "MaxCPUsPerNode", "ExclusiveUser", "TRESBillingWeights", "ReqResv", "SelectTypeParameters",
        "Priority", "DefCpuPerGPU", "DefMemPerGPU", "MaxCPUsPerSocket", "CpuBind", "ExclusiveTopo",
    ),
}  # fmt: skip


def other_settings(settings: Iterable[Setting]) -> list[OtherSetting]:
    """Return the settings that say, or may say, how jobs are scheduled, beside the machine's own.

    Settings that say nothing of schedules, such as ports and log files, are left out.
    """
    found = []
    for setting in settings:
        name = setting.name.casefold()
        if name == "nodename":
            found += _of_keys(setting, machine.READ)
        elif name == "partitionname":
            found += _of_keys(setting, _OF_PARTITIONS)
        elif name in OF_SCHEDULING:
            if setting.value.casefold() not in _USUAL.get(name, ()):
                found.append(OtherSetting(setting.where, "", setting.name, setting.value))
        elif name not in map(str.casefold, _OF_MACHINES) and not _SILENT.fullmatch(name):
            near = meant(setting.name, (*_OF_MACHINES, *_OF_SCHEDULING))
            found.append(OtherSetting(setting.where, "", setting.name, setting.value, near))
        elif name == "downnodes":
            found.append(OtherSetting(setting.where, "", setting.name, setting.value))
    return found


def _of_keys(line: Setting, followed: tuple[str, ...]) -> list[OtherSetting]:
    """Return what the line of a node or partition says that is not followed."""
    found = []
    for key, (name, value) in line.others.items():
        if key in followed or key in _SILENT_KEYS or value.casefold() in _USUAL_KEYS.get(key, ()):
            continue
        near = meant(name, _KEYS[line.name.casefold()])
        found.append(OtherSetting(line.where, line.value, name, value, near))
    return found
