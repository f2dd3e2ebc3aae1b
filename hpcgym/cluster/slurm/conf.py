"""A slurm.conf as a machine, its partitions, and how it schedules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym.cluster.partitions import STATES, Partition, hosts
from hpcgym.cluster.pool import Cluster, NodeGroup
from hpcgym.cluster.slurm import lines as slurm_lines
from hpcgym.errors import HpcgymError, HpcgymWarning, unknown, warn_caller
from hpcgym.naming import CORE, MEMORY

# --- Unknown names in files of Slurm that are close to a known one --------------------------------

_ALIKE = 0.85  # least similarity of a name and what is meant by it

#: All names in SchedulerParameters (man page slurm.conf), followed or not.
_PARAMETERS = (
    "allow_zero_lic", "assoc_limit_stop", "batch_sched_delay", "bb_array_stage_cnt",
    "bf_allow_magnetic_slot", "bf_busy_nodes", "bf_continue", "bf_hetjob_immediate",
    "bf_hetjob_prio", "bf_interval", "bf_job_part_count_reserve", "bf_licenses",
    "bf_max_job_array_resv", "bf_max_job_assoc", "bf_max_job_part", "bf_max_job_start",
    "bf_max_job_test", "bf_max_job_user", "bf_max_job_user_part", "bf_max_time",
    "bf_min_age_reserve", "bf_min_prio_reserve", "bf_node_space_size", "bf_one_resv_per_job",
    "bf_resolution", "bf_running_job_reserve", "bf_topopt_enable", "bf_topopt_iterations",
    "bf_window", "bf_window_linear", "bf_yield_interval", "bf_yield_sleep", "build_queue_timeout",
    "correspond_after_task_cnt", "default_queue_depth", "defer", "defer_batch", "delay_boot",
    "disable_job_shrink", "disable_hetjob_steps", "enable_hetjob_steps", "enable_job_state_cache",
    "enable_user_top", "extra_constraints", "ignore_numa", "ignore_prefer_validation",
    "ignore_constraint_validation", "max_array_tasks", "max_depend_depth", "max_rpc_cnt",
    "max_sched_time", "max_script_size", "max_submit_line_size", "max_switch_wait",
    "no_backup_scheduling", "no_env_cache", "nohold_on_prolog_fail", "pack_serial_at_end",
    "partition_job_depth", "preempt_reorder_count", "preempt_strict_order",
    "preempt_youngest_first", "reduce_completing_frag", "requeue_on_resume_failure",
    "requeue_setup_env_fail", "salloc_wait_nodes", "sbatch_wait_nodes", "sched_interval",
    "sched_max_job_start", "sched_min_interval", "spec_cores_first", "step_retry_count",
    "step_retry_time", "time_min_as_soft_limit", "whole_hetjob",
)  # fmt: skip


def meant(name: str, known: Iterable[str]) -> str:
    """Return the known name closest to an unknown one; "" if it is known, or none is close."""
    names = {one.casefold(): one for one in known}
    if name.casefold() in names:
        return ""
    near = get_close_matches(name.casefold(), names, 1, _ALIKE)
    return names[near[0]] if near else ""


def warn_of_typos(settings: Iterable[OtherSetting], parameters: Mapping[str, str]) -> None:
    """Say which settings are probably other ones, mistyped.

    Parameters
    ----------
    settings : those that are not of the machine.
    parameters : ``SchedulerParameters`` by name.

    Warns
    -----
    HpcgymWarning : for each; it names file, line and what is probably meant.
    """
    found = [(one.where, one.key, one.near) for one in settings if one.near]
    places = [one.where for one in settings if one.is_called("schedulerparameters")]
    found += [
        (where, f"SchedulerParameters {name}", near)
        for where in places[-1:]
        for name in parameters
        if (near := meant(name, _PARAMETERS))
    ]
    for where, name, near in found:
        warn_caller(f"{where}: unknown setting {name}; did you mean {near}?", HpcgymWarning)


# --- Nodes of a slurm.conf as groups of a machine -------------------------------------------------

#: Keys of a node that are read, in lower case.
READ = (
    "cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore",
    "realmemory", "memspeclimit", "gres", "feature", "features",
)  # fmt: skip


class Nodes(NamedTuple):
    """Nodes of one line: where it stands, a group of equal ones, their names in order, features."""

    where: str
    group: NodeGroup
    names: list[str]
    features: set[str]


def nodes_of(
    line: slurm_lines.Setting, defaults: Mapping[str, tuple[str, str]], counts_memory: bool
) -> Nodes | None:
    """Return the nodes of a line ``NodeName=...``; None of those that are not there yet.

    Processors are CPUs, as Slurm counts them: ``CPUs``, or boards x sockets x cores x threads.
    Memory is ``RealMemory`` less ``MemSpecLimit`` [MB], where jobs are given memory at all.

    Parameters
    ----------
    defaults : keys of the lines ``NodeName=DEFAULT`` before it.
    counts_memory : whether memory is a resource that jobs take.

    Raises
    ------
    HpcgymError : a value that cannot be; the message names file, line and nodes.
    """
    where = f"{line.where}, nodes {line.value!r}"
    told = {**defaults, **line.others}
    given = {key: value for key, (_, value) in told.items()}

    def number(key: str, usual: int) -> int:
        written, value = told.get(key, (key, ""))
        found = slurm_lines.count(value, f"{where}: {written}")
        return usual if found is None else found

    if given.get("state", "").casefold() == "future":
        return None
    names = hosts(line.value, where)
    boards = number("boards", 1)
    sockets = number("sockets", boards * number("socketsperboard", 1))
    made = sockets * number("corespersocket", 1) * number("threadspercore", 1)
    cpus = number("cpus", number("procs", made))
    amounts = {CORE: cpus}
    if counts_memory:
        memory = number("realmemory", 1)
        amounts[MEMORY] = max(memory - number("memspeclimit", 0), 0)
    if given.get("gres"):
        generic = slurm_lines.gres(given["gres"], f"{where}: {told['gres'][0]}")
        if generic.keys() & {CORE, MEMORY}:
            raise HpcgymError(f"{where}: Gres: {CORE} and {MEMORY} are no generic resources")
        amounts |= generic
    # only jobs that share nodes go by sockets, and these must divide the cores
    shared = sockets if sockets and cpus % sockets == 0 else 1
    try:
        group = NodeGroup(line.value, len(names), amounts, sockets=shared)
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {error}") from None
    features = f"{given.get('feature', '')},{given.get('features', '')}"
    named = {feature for feature in features.split(",") if feature}
    return Nodes(line.where, group, names, named)


def node_sets(
    settings: Iterable[slurm_lines.Setting], groups: Iterable[Nodes]
) -> dict[str, list[str]]:
    """Return the nodes of each line ``NodeSet=...``: those it names, and those with its feature."""
    found: dict[str, list[str]] = {}
    for line in settings:
        if line.name.casefold() != "nodeset":
            continue
        given = {key: value for key, (_, value) in line.others.items()}
        where = f"{line.where}, set {line.value!r}"
        names = hosts(given["nodes"], where) if "nodes" in given else []
        feature = given.get("feature")
        names += [name for one in groups if feature in one.features for name in one.names]
        found[line.value] = names
    return found


# --- Partitions of a slurm.conf -------------------------------------------------------------------


def partition(
    line: slurm_lines.Setting,
    defaults: Mapping[str, tuple[str, str]],
    nodes: Mapping[str, int],
    sets: Mapping[str, Sequence[str]],
) -> Partition:
    """Return the partition of a line.

    Parameters
    ----------
    line : ``PartitionName=...``.
    defaults : keys of the lines ``PartitionName=DEFAULT`` before it.
    nodes : name -> number of each node of the machine.
    sets : name -> nodes of each ``NodeSet``.

    Raises
    ------
    HpcgymError : a partition without nodes, nodes that the machine does not have, or a value that
        cannot be; the message names file, line and partition.

    Warns
    -----
    HpcgymWarning : a DenyQos or DenyAccounts of ALL, which is nobody's name.
    """
    where = f"{line.where}, partition {line.value!r}"
    told = {**defaults, **line.others}
    given = {key: value for key, (_, value) in told.items()}

    def number(key: str, usual: int | None) -> Any:
        written, value = told.get(key, (key, ""))
        found = slurm_lines.count(value, f"{where}: {written}")
        return usual if found is None else found

    def time(key: str) -> int | None:
        written, value = told.get(key, (key, ""))
        return slurm_lines.minutes_text(value, f"{where}: {written}")

    share = given.get("oversubscribe", given.get("shared", "no")).casefold()
    for key in ("denyaccounts", "denyqos"):
        written, value = told.get(key, (key, ""))
        if value.casefold() == "all":
            warn_caller(f"{where}: {written}={value} denies nobody: ALL is no name", HpcgymWarning)
    return _made(
        line.where,
        name=line.value,
        nodes=_members(given.get("nodes", ""), nodes, sets, where),
        default=given.get("default", "no").casefold() in ("yes", "true", "1"),
        max_time_s=time("maxtime"),
        default_time_s=time("defaulttime"),
        min_nodes=number("minnodes", 0),
        max_nodes=number("maxnodes", None),
        priority_tier=number("prioritytier", 1),
        priority_factor=number("priorityjobfactor", 1),
        allow_accounts=slurm_lines.several(given.get("allowaccounts", "")),
        deny_accounts=slurm_lines.several(given.get("denyaccounts", "")),
        allow_qos=slurm_lines.several(given.get("allowqos", "")),
        deny_qos=slurm_lines.several(given.get("denyqos", "")),
        qos=given.get("qos") or None,
        exclusive=share == "exclusive",
        state=_state(told, where),
    )


def _made(where: str, **settings: Any) -> Partition:
    """Return a partition; what it cannot be is said with file and line."""
    try:
        return Partition(**settings)
    except HpcgymError as error:
        raise HpcgymError(f"{where}, {error}") from None


def _state(told: Mapping[str, tuple[str, str]], where: str) -> str:
    """Return the state of a partition, up unless somebody says otherwise."""
    written, value = told.get("state", ("State", "UP"))
    if value.casefold() not in STATES:
        raise HpcgymError(f"{where}: {written}: {unknown('state', value, STATES)}")
    return value.casefold()


def _members(
    text: str, nodes: Mapping[str, int], sets: Mapping[str, Sequence[str]], where: str
) -> tuple[int, ...]:
    """Return the numbers of the nodes that a partition names."""
    if "=" in text:  # Slurm, too, takes what comes behind the blanks for the value
        raise HpcgymError(f"{where}: Nodes is blank, before {text[:40]}")
    names: list[str] = list(nodes) if text.casefold() == "all" else []
    if text and not names:
        names = [node for name in hosts(text, where) for node in sets.get(name, [name])]
    if not names:
        raise HpcgymError(f"{where}: it has no nodes")
    missing = [name for name in names if name not in nodes]
    if missing:
        raise HpcgymError(f"{where}: there is no node {missing[0]!r}")
    return tuple(sorted({nodes[name] for name in names}))


# --- Which settings of a slurm --------------------------------------------------------------------


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


def other_settings(settings: Iterable[slurm_lines.Setting]) -> list[OtherSetting]:
    """Return the settings that say, or may say, how jobs are scheduled, beside the machine's own.

    Settings that say nothing of schedules, such as ports and log files, are left out.
    """
    found = []
    for setting in settings:
        name = setting.name.casefold()
        if name == "nodename":
            found += _of_keys(setting, READ)
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


def _of_keys(line: slurm_lines.Setting, followed: tuple[str, ...]) -> list[OtherSetting]:
    """Return what the line of a node or partition says that is not followed."""
    found = []
    for key, (name, value) in line.others.items():
        if key in followed or key in _SILENT_KEYS or value.casefold() in _USUAL_KEYS.get(key, ()):
            continue
        near = meant(name, _KEYS[line.name.casefold()])
        found.append(OtherSetting(line.where, line.value, name, value, near))
    return found


# --- A slurm.conf as a machine, its partitions, and how it schedules ------------------------------

#: What general settings of scheduling are unless somebody sets them, in lower case.
_UNLESS_SAID = {
    "schedulertype": "sched/backfill",
    "prioritytype": "priority/multifactor",
    "preempttype": "preempt/none",
    "preemptmode": "off",
}
_DEFAULT = "default"  # the name of nodes and partitions that others begin with


@dataclass(frozen=True)
class SlurmConf:
    """What a slurm.conf says of a machine and its scheduling.

    Attributes
    ----------
    cluster : the machine: a group for each line of nodes, in order, and the partitions.
    node_names : what each node is called, by its number in the machine.
    scheduling : general settings of scheduling, lower case name -> value.
    where : file and line of each of these.
    parameters : ``SchedulerParameters``, name -> value, "" of those that are only named.
    preempt_modes : ``PreemptMode`` of the partitions that have their own, by name.
    others : settings that are not of the machine; a scheduler may go by them.
    """

    cluster: Cluster
    node_names: tuple[str, ...]
    scheduling: dict[str, str]
    where: dict[str, str]
    parameters: dict[str, str]
    preempt_modes: dict[str, str]
    others: tuple[OtherSetting, ...]

    def said(self, name: str) -> str:
        """Return a general setting in lower case, or what Slurm has unless somebody sets it."""
        return self.scheduling.get(name, _UNLESS_SAID.get(name, "")).casefold()

    def wrong(self, name: str, message: str) -> HpcgymError:
        """Return the error that a general setting has a wrong value; it names file and line."""
        return HpcgymError(f"{self.where[name]}: {message}" if name in self.where else message)


def read_slurm_conf(path: str | os.PathLike[str]) -> SlurmConf:
    """Return what a slurm.conf says, with the files that it includes.

    Nodes whose state is FUTURE are not there. Memory is a resource where ``SelectTypeParameters``
    has it (``CR_Core_Memory``); all ``Gres`` of nodes are, types of one together.

    Raises
    ------
    HpcgymError : a file that cannot be read, a line that is no setting, no nodes, a node or
        partition that stands twice, or a value that cannot be; the message names file and line.

    Warns
    -----
    HpcgymWarning : unknown settings whose names are close to a known one, and settings that stand
        there twice, of which the last counts.
    """
    settings = slurm_lines.settings_of(Path(path))
    general = _general(settings)
    groups = _groups(settings, "memory" in general.get("selecttypeparameters", "").casefold())
    if not groups:
        raise HpcgymError(f"{path}: it has no nodes, NodeName=...")
    names = _names(groups)
    cluster = Cluster(
        groups=tuple(nodes.group for nodes in groups),
        name=general.get("clustername") or Path(path).name,
        partitions=_partitions(settings, groups, names),
    )
    others = other_settings(settings)
    parameters = _parameters(settings, general.get("schedulerparameters", ""))
    warn_of_typos(others, parameters)
    return SlurmConf(
        cluster=cluster,
        node_names=tuple(names),
        scheduling={name: value for name, value in general.items() if name in OF_SCHEDULING},
        where={s.name.casefold(): s.where for s in settings if not s.others},
        parameters=parameters,
        preempt_modes=_of_partitions(settings, "preemptmode"),
        others=tuple(others),
    )


def _general(settings: Iterable[slurm_lines.Setting]) -> dict[str, str]:
    """Return the general settings, lower case name -> value; Slurm too takes the last of two."""
    found: dict[str, str] = {}
    for setting in settings:
        name = setting.name.casefold()
        if setting.others:
            continue
        if name in OF_SCHEDULING and found.get(name, setting.value) != setting.value:
            slurm_lines.warn_of_later(setting.where, setting.name)
        found[name] = setting.value
    return found


def _groups(settings: list[slurm_lines.Setting], counts_memory: bool) -> list[Nodes]:
    """Return the nodes of each line; lines ``NodeName=DEFAULT`` say what those after them have."""
    defaults: dict[str, tuple[str, str]] = {}
    found = []
    for line in settings:
        if line.name.casefold() != "nodename":
            continue
        if line.value.casefold() == _DEFAULT:
            defaults |= line.others
        elif nodes := nodes_of(line, defaults, counts_memory):
            found.append(nodes)
    return found


def _names(groups: Iterable[Nodes]) -> list[str]:
    """Return what each node is called, in order."""
    found: dict[str, None] = {}
    for nodes in groups:
        for name in nodes.names:
            if name in found:
                raise HpcgymError(f"{nodes.where}: node {name!r} stands there twice")
            found[name] = None
    return list(found)


def _of_partitions(settings: Iterable[slurm_lines.Setting], key: str) -> dict[str, str]:
    """Return a key of the partitions that have it, also by lines ``PartitionName=DEFAULT``."""
    usual, found = "", {}
    for line in settings:
        if line.name.casefold() == "partitionname":
            value = line.others.get(key, ("", usual))[1]
            if line.value.casefold() == _DEFAULT:
                usual = value
            elif value:
                found[line.value] = value
    return found


def _partitions(
    settings: list[slurm_lines.Setting], groups: list[Nodes], names: list[str]
) -> tuple[Partition, ...]:
    """Return all partitions."""
    nodes = {name: number for number, name in enumerate(names)}
    sets = node_sets(settings, groups)
    defaults: dict[str, tuple[str, str]] = {}
    found: dict[str, Partition] = {}
    for line in settings:
        if line.name.casefold() != "partitionname":
            continue
        if line.value.casefold() == _DEFAULT:
            defaults |= line.others
        elif line.value in found:
            raise HpcgymError(f"{line.where}: partition {line.value!r} stands there twice")
        else:
            found[line.value] = partition(line, defaults, nodes, sets)
    return tuple(found.values())


def _parameters(settings: Iterable[slurm_lines.Setting], text: str) -> dict[str, str]:
    """Return ``SchedulerParameters`` by name; of two Slurm looks up the first."""
    parts = (part.partition("=") for part in text.split(",") if part.strip())
    found: dict[str, str] = {}
    for name, _, value in ((name.strip(), sign, value.strip()) for name, sign, value in parts):
        if found.setdefault(name, value) != value:
            places = [s.where for s in settings if s.name.casefold() == "schedulerparameters"]
            text = f"{places[-1]}: SchedulerParameters has {name} twice; {found[name]} counts"
            warn_caller(text, HpcgymWarning)
    return found
