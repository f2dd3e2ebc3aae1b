"""Which settings of a slurm.conf say something of schedules, beside those of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hpcgym.cluster.slurm import machine
from hpcgym.cluster.slurm.lines import Setting


class Unfollowed(NamedTuple):
    """A setting that is not of the machine; the scheduler of the file may go by it.

    Attributes
    ----------
    where : file and line.
    name, value : as they are written, after the name of a node or partition: ``debug: MaxTime``.
    why : it is not of the machine, in words.
    """

    where: str
    name: str
    value: str
    why: str


#: General settings of which the machine is made, in lower case.
OF_MACHINES = ("clustername", "selecttypeparameters", "grestypes", "nodeset")

#: General settings that say how jobs are scheduled, which are kept by name.
OF_SCHEDULING = (
    "schedulertype", "schedulerparameters", "selecttype", "prioritytype", "priorityweightage",
    "priorityweightassoc", "priorityweightfairshare", "priorityweightjobsize",
    "priorityweightpartition", "priorityweightqos", "priorityweighttres", "prioritymaxage",
    "prioritydecayhalflife", "prioritycalcperiod", "priorityfavorsmall", "priorityflags",
    "priorityusageresetperiod", "prioritysitefactorparameters", "prioritysitefactorplugin",
    "preempttype", "preemptmode", "preemptparameters", "preemptexempttime",
    "enforcepartlimits", "accountingstorageenforce", "maxjobcount", "maxarraysize",
    "firstjobid", "defmempercpu", "defmempernode", "defcpupergpu", "defmempergpu", "maxmempercpu",
    "maxmempernode", "overtimelimit", "jobrequeue", "requeueexit", "requeueexithold", "licenses",
    "suspendtime", "suspendtimeout", "resumetimeout", "suspendexcnodes", "suspendexcparts",
    "suspendrate", "resumerate", "resvoverrun", "schedulertimeslice", "topologyplugin",
    "topologyparam", "disablerootjobs", "fairsharedampeningfactor",
)  # fmt: skip

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
    r"prep|scron|sched(log)|mcs|scheduler(port|root|auth)|fast|licenses?_|completewait|"
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
}
#: The same of keys of nodes and partitions.
_USUAL_KEYS = {
    "state": ("up", "unknown", "idle", "future"),
    "prioritytier": ("1",),
    "priorityjobfactor": ("1",),
    "oversubscribe": ("no",),
    "shared": ("no",),
    "lln": ("no",),
    "weight": ("1",),
    "allowgroups": ("all",),
}
#: Keys of partitions that simulations go by.
_OF_PARTITIONS = (
    "nodes", "default", "maxtime", "defaulttime", "maxnodes", "minnodes", "allowaccounts",
    "denyaccounts", "allowqos",
)  # fmt: skip
_NOT_YET = "not of the machine"
_UNKNOWN = "not a known setting"


def unfollowed(settings: Iterable[Setting]) -> list[Unfollowed]:
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
                found.append(Unfollowed(setting.where, setting.name, setting.value, _NOT_YET))
        elif name not in OF_MACHINES and not _SILENT.fullmatch(name):
            why = _NOT_YET if name == "downnodes" else _UNKNOWN
            found.append(Unfollowed(setting.where, setting.name, setting.value, why))
    return found


def _of_keys(line: Setting, followed: tuple[str, ...]) -> list[Unfollowed]:
    """Return what the line of a node or partition says that is not followed."""
    found = []
    for key, (name, value) in line.others.items():
        if key in followed or key in _SILENT_KEYS or value.casefold() in _USUAL_KEYS.get(key, ()):
            continue
        found.append(Unfollowed(line.where, f"{line.value}: {name}", value, _NOT_YET))
    return found
