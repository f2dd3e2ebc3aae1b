"""A slurm.conf of the user as settings of a private Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.machine import Cluster, Partition
from hpcgym.machine.partitions import text_of_nodes
from hpcgym.machine.slurm import SlurmConf
from hpcgym.names import CONSTRAINT, CORE, LICENCE, MEMORY, UNITS_PER_NODE
from hpcgym.scheduler.backfilling import SlurmBackfill
from hpcgym.scheduler.restrictions import Quota
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.slurm_conf import is_safe
from hpcgym.units import HOUR_S
from hpcgym.workload import Workload
from hpcgym.workload.amounts import amount_called, tres_of, weights_of
from hpcgym.workload.io.swf_header import called_in
from hpcgym.workload.needs import demands_of

# --- The slurm.conf of a replay -------------------------------------------------------------------

PARTITION = "replay"
RECORDS = "jobs.txt"  # in the folder: what Slurm tells of jobs that have ended

#: Plans in steps of a second, and ends of running jobs to half a minute: as exact as Slurm can be.
_EXACT = "bf_resolution=1,bf_window_linear=1"
#: Who waits is looked at in the second in which something happens, not up to 3 s later.
SOON = "batch_sched_delay=0"
#: EASY with one reservation: passes each second, which look at all jobs.
_ONE_RESERVATION = f"bf_interval=1,{_EXACT},bf_max_job_test=100000,bf_job_part_count_reserve=1"
_AT_ONCE = f"{SOON},default_queue_depth=100000"

#: sched/builtin looks each 30 s when jobs might start, which changes nothing: once a day will do.
_NO_FORECAST = "interval=86400"
#: sched/backfill that only serves in the order of priorities.
NO_BACKFILL = "bf_interval=-1"
#: What a partition or a QOS may be called in Slurm.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class SlurmNode(NamedTuple):
    """A node: its cores, its memory [MB], None where jobs do not share it out, and what else.

    Others are resources, with amounts; features are names.
    """

    cores: int
    memory_mb: int | None = None
    others: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class PrivateNodes:
    """The nodes of a private Slurm, called n1, n2, ...

    Attributes
    ----------
    nodes : all of them.
    controller : port of slurmctld; that of node K is this plus K. The one behind those of the nodes
        is that of a database which does not answer.
    partitions : beside that of all nodes, which is the default.
    """

    nodes: tuple[SlurmNode, ...]
    controller: int
    partitions: tuple[Partition, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the nodes."""
        return [f"n{number}" for number in range(1, len(self.nodes) + 1)]

    @property
    def database(self) -> int:
        """The port of the database."""
        return self.controller + len(self.nodes) + 1


_OWN = (CORE, MEMORY)  # resources of which Slurm has settings of their own


def nodes_of(cluster: Cluster) -> tuple[SlurmNode, ...]:
    """Return the nodes of a machine; a pool is one node.

    Raises
    ------
    HpcgymError : a partition whose name Slurm cannot have.
    """
    for partition in cluster.partitions:
        if not NAME.fullmatch(partition.name) or partition.name.casefold() in (
            PARTITION,
            "default",
        ):
            raise HpcgymError(
                f"a replay on Slurm cannot call a partition {partition.name!r}: letters, digits, _"
                f" . and - are possible, but not {PARTITION!r} and 'default'"
            )
    if not cluster.groups:
        return (SlurmNode(cluster.processors),)
    shared = MEMORY in cluster.resources
    return tuple(
        SlurmNode(
            group.resources[CORE],
            group.resources.get(MEMORY, 0) if shared else None,
            tuple(
                (_generic(name), most)
                for name, most in group.resources.items()
                if name not in _OWN and most
            ),
            group.features,
        )
        for group in cluster.groups
        for _ in range(group.nodes)
    )


def _generic(name: str) -> str:
    """Return what Slurm calls a resource: for some names, as gpu, it would look for devices."""
    return f"x{name}"


def tracked_as(amount: str) -> str:
    """Return what Slurm calls an amount of jobs among its trackable resources; "": it has none.

    An amount that is weighed by time is called as what it weighs.
    """
    kind, slash, name = tres_of(amount_called(amount).of or amount).partition("/")
    return f"{kind}{slash}{_generic(name) if kind == 'gres' else name}"


def asks_of(jobs: Workload, cluster: Cluster) -> list[list[str]]:
    """Return what ``sbatch`` is told of what each job needs, beside times.

    Units are tasks; a unit that has a node of its own is told by the memory of a node, others by
    that of a core. Resources such as GPUs are told for each node.

    Raises
    ------
    WorkloadError : on nodes with memory, a job of none, which in Slurm would have all of a node, or
        of units on which cores have no whole number of MB each; GPUs and the like of units of which
        a node may have several.
    """
    licences = _licences_asked(jobs)
    if not cluster.groups:
        processors = jobs.requested_processors.tolist()
        return [["-n", str(n), *more] for n, more in zip(processors, licences, strict=True)]
    units, demands = demands_of(jobs)
    most = jobs.columns[UNITS_PER_NODE].tolist()
    core = demands[CORE].tolist()
    memory = demands.get(MEMORY, np.zeros(len(jobs), np.int64)).tolist()
    shared = MEMORY in cluster.resources
    constrained = any(group.features for group in cluster.groups)
    constraints = called_in(jobs, CONSTRAINT).tolist()
    asks = []
    for row, number in enumerate(units.tolist()):
        words, alone = ["-n", str(number), "-c", str(core[row])], number == 1 or most[row] == 1
        if alone:
            words += ["-N", str(number)]
        elif most[row] > 0:
            words += [f"--ntasks-per-node={most[row]}"]
        if shared:
            each, left = divmod(memory[row], core[row])
            if not memory[row] or (left and not alone):
                raise WorkloadError(
                    f"{jobs.called(row)} asks for {memory[row]} MB for {core[row]} cores, and Slurm"
                    " for a whole number of MB, at least 1, for each"
                )
            words += [f"--mem={memory[row]}M" if alone else f"--mem-per-cpu={each}M"]
        others = {name: int(amounts[row]) for name, amounts in demands.items() if name not in _OWN}
        generic = [f"{_generic(name)}:{amount}" for name, amount in others.items() if amount]
        if generic and not alone:
            raise WorkloadError(
                f"{jobs.called(row)} asks for {', '.join(name for name in others if others[name])}"
                " in each unit, of which a node may have several: a replay on Slurm has such jobs"
                " where each unit has a node of its own"
            )
        words += [f"--gres={','.join(generic)}"] * bool(generic)
        words += [f"--constraint={constraints[row]}"] * (constrained and constraints[row] != "")
        asks.append([*words, *licences[row]])
    return asks


def _licences_asked(jobs: Workload) -> list[list[str]]:
    """Return what ``sbatch`` is told of the licences of each job."""
    columns = {
        name.removeprefix(LICENCE): jobs.columns[name].tolist()
        for name in jobs.columns
        if name.startswith(LICENCE)
    }
    asked = [
        ",".join(f"{name}:{of[row]}" for name, of in columns.items() if of[row] > 0)
        for row in range(len(jobs))
    ]
    return [["-L", text] if text else [] for text in asked]


def licences_of(jobs: Workload, quotas: Iterable[Quota]) -> tuple[dict[str, str], list[Quota]]:
    """Return the setting of the cluster's licences, and the quotas without bounds that it is.

    What all jobs may have of a licence together is what the cluster has of it; where no quota says
    so, there are as many as anybody asks for.
    """
    licences = {name: _MANY for name in jobs.columns if name.startswith(LICENCE)}
    left = []
    for quota in quotas:
        own = {of: most for of, most in quota.bounds if quota.of_cluster(of)}
        licences |= {of: min(most, licences.get(of, most)) for of, most in own.items()}
        if bounds := {of: most for of, most in quota.bounds if of not in own}:
            left.append(quota.with_bounds(bounds))
    text = ",".join(f"{of.removeprefix(LICENCE)}:{most}" for of, most in licences.items())
    return {"Licenses": text} if text else {}, left


def scheduling_of(scheduler: Scheduler) -> dict[str, str]:
    """Return the settings by which Slurm schedules as a scheduler says.

    Raises
    ------
    HpcgymError : rules that Slurm has no settings for.
    """
    others = scheduler.but(
        policy="fcfs",
        threshold=None,
        policy_estimate="requested",
        backfill_order="fcfs",
        quota=(),
        maintenance=(),
    )
    rules = scheduler.describe()
    # Slurm backfills in the order of its priorities
    two = scheduler.reserve.kind == "until-shadow" and rules["backfill_order"] != rules["policy"]
    if two:
        raise HpcgymError(
            "a replay on Slurm has one order of jobs: with backfill until-shadow backfill_order"
            f" must be the policy, backfill_order={rules['policy']}"
        )
    usual = Scheduler(backfill=scheduler.backfill).describe()
    if wrong := [rule for rule, value in others.describe().items() if value != usual[rule]]:
        raise HpcgymError(
            f"a replay on Slurm cannot follow {', '.join(wrong)}; it follows policy,"
            " policy_estimate, threshold, backfill, quota and maintenance"
        )
    settings = {"PriorityType": "priority/basic", **_ways(scheduler)}
    if is_driven(scheduler):  # no job starts before it has its place in the queue
        settings["SchedulerParameters"] += ",defer"
        if scheduler.reserve.kind == "none":  # sched/builtin has no priorities
            settings["SchedulerType"] = "sched/backfill"
            settings["SchedulerParameters"] += f",{NO_BACKFILL}"
    return settings


def is_driven(scheduler: Scheduler) -> bool:
    """Return whether a policy says the order of the queue, and Slurm does not by itself."""
    return scheduler.policy != "fcfs" or scheduler.threshold is not None


def _ways(scheduler: Scheduler) -> dict[str, str]:
    """Return the settings of the way to backfill."""
    settings = {"SchedulerType": "sched/backfill"}
    if scheduler.reserve.kind == "none":
        parameters = f"{_AT_ONCE},{_NO_FORECAST}"
        return {"SchedulerType": "sched/builtin", "SchedulerParameters": parameters}
    if scheduler.reserve.kind == "until-shadow":
        return settings | {"SchedulerParameters": f"{_ONE_RESERVATION},{_AT_ONCE}"}
    if scheduler.reserve.slurm is None:
        raise HpcgymError(
            f"Slurm cannot backfill as backfill={scheduler.backfill!r} says; it knows 'none',"
            " 'until-shadow' and 'slurm'"
        )
    return settings | {"SchedulerParameters": _of_slurm(scheduler.reserve.slurm)}


def _of_slurm(rules: SlurmBackfill) -> str:
    """Return the parameters of Slurm's own way to backfill."""
    # a bf_window_linear of 0 is what Slurm has if none is given, and it refuses the number
    given = [
        f"{name}={value}"
        for name, value in vars(rules).items()
        if value or name != "bf_window_linear"
    ]
    return ",".join([*given, SOON])


def slurm_conf(
    folder: Path,
    machine: PrivateNodes,
    user: str,
    scheduling: dict[str, str],
    tracked: Sequence[str] | None = None,
) -> str:
    """Return the text of the slurm.conf of a replay.

    Parameters
    ----------
    folder : where all files of the private Slurm lie.
    machine : its nodes and ports.
    user : who runs it, and all jobs.
    scheduling : as :func:`scheduling_of` returns it.
    tracked : None: there are no accounts. Else QOS and accounts lie among the states, and these are
        the resources that Slurm tracks beside those that it does by itself.
    """
    names = sorted({name for node in machine.nodes for name, _ in node.others})
    has_memory = any(node.memory_mb is not None for node in machine.nodes)
    settings = {
        "ClusterName": "replay",
        "SlurmctldHost": "localhost(127.0.0.1)",
        "SlurmctldPort": machine.controller,
        "SlurmUser": user,
        "SlurmdUser": user,
        # nothing listens but on loopback, and nothing is signed: no munge
        "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",
        "AuthType": "auth/none",
        "CredType": "cred/none",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool-%n",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": folder / "slurmd-%n.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": folder / "slurmd-%n.log",
        "SlurmctldDebug": "info",
        "SlurmdDebug": "error",
        # jobs only sleep: nobody confines, counts or connects them
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "SwitchType": "switch/none",
        "MpiDefault": "none",
        # no node is ever taken for dead, nor a message for lost, when the clock jumps
        "SlurmdTimeout": 0,
        "SlurmctldTimeout": HOUR_S,
        "InactiveLimit": 0,
        "MessageTimeout": 100,
        "ReturnToService": 2,
        "SlurmdParameters": "config_overrides",
        # without one, nodes on which a job had no process tell by their answers that it is gone,
        # and Slurm looks at its queue within a second (_notify_slurmctld_nodes), not at once
        "Epilog": "/bin/true",
        # a job that runs as long as it asked for ends by itself
        "OverTimeLimit": 1,
        # records of jobs are kept: forgetting one makes Slurm look at the queue, as an event does.
        # 0 would do so by its page "slurm.conf"; slurmctld takes 2 s for it
        "MinJobAge": 1_000_000_000,
        "MaxJobCount": 1_000_000,
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": folder / RECORDS,
        "AccountingStorageType": "accounting_storage/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU_Memory" if has_memory else "CR_CPU",
        **({"GresTypes": ",".join(names)} if names else {}),
        **{name: value for name, value in scheduling.items() if name != ENFORCED},
        **({} if tracked is None else _with_accounts(machine, tracked)),
    }
    if scheduling.get(ENFORCED) == "safe":
        settings |= {} if tracked is None else {ENFORCED: f"{settings[ENFORCED]},safe"}
    lines = [f"{name}={value}" for name, value in settings.items()]
    for number, (name, node) in enumerate(zip(machine.names, machine.nodes, strict=True), 1):
        port = machine.controller + number
        memory = _MUCH_MB if node.memory_mb is None else max(node.memory_mb, 1)
        # of nodes with weights the least is taken first, as the simulator's first-fit does
        lines.append(
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
            f" CPUs={node.cores} RealMemory={memory} Weight={number} State=UNKNOWN"
            + f" Gres={','.join(f'{name}:{most}' for name, most in node.others)}"
            * bool(node.others)
            + f" Feature={','.join(node.features)}" * bool(node.features)
        )
    return "\n".join([*lines, *_partitions(machine)]) + "\n"


def gres_conf(machine: PrivateNodes) -> str:
    """Return the text of the gres.conf of a replay: what nodes have beside cores and memory."""
    lines = [
        f"NodeName={called} Name={name} Count={most}\n"
        for called, node in zip(machine.names, machine.nodes, strict=True)
        for name, most in node.others
    ]
    return "".join(lines)


_MUCH_MB = 1_000_000  # of nodes whose memory is never asked for
ENFORCED = "AccountingStorageEnforce"
_MANY = 1_000_000  # licences, more than all jobs ask for


def _with_accounts(machine: PrivateNodes, tracked: Sequence[str]) -> dict[str, object]:
    """Return the settings by which limits hold; a database is named that does not answer."""
    return {
        **({"AccountingStorageTRES": ",".join(tracked)} if tracked else {}),
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": machine.database,
        ENFORCED: "limits,qos,nojobs",  # of which it is told nothing
    }


def _partitions(machine: PrivateNodes) -> list[str]:
    """Return the lines of the partitions; that of all nodes comes after all others."""
    lowest = min((partition.priority_tier for partition in machine.partitions), default=1)
    everything = Partition(
        PARTITION, (*range(len(machine.nodes)),), priority_tier=lowest, priority_factor=0
    )
    return [
        f"PartitionName={partition.name} Nodes={_names(partition.nodes)} MaxTime=INFINITE State=UP"
        f" PriorityTier={partition.priority_tier} PriorityJobFactor={partition.priority_factor}"
        f" Default={'YES' if partition is everything else 'NO'}"
        f"{f' QOS={partition.qos}' if partition.qos else ''}"
        f"{f' MaxCPUsPerNode={most}' if (most := partition.max_cores_per_node) else ''}"
        f"{_billing(partition)}"
        for partition in (*machine.partitions, everything)
    ]


def _billing(partition: Partition) -> str:
    """Return the weights by which jobs of a partition are billed."""
    weights = weights_of(partition.billing) if partition.billing else {}
    if not weights:
        return ""
    return f" TRESBillingWeights={','.join(f'{tracked_as(a)}={w}' for a, w in weights.items())}"


def _names(nodes: Sequence[int]) -> str:
    return f"n[{text_of_nodes(node + 1 for node in nodes)}]" if nodes else '""'


# --- A slurm.conf of the user as settings of a private Slurm --------------------------------------

#: Settings of the file that the private Slurm has, in lower case; others may not matter here.
_TAKEN = ("schedulertype",)
_OF_PRIORITIES = (
    "priorityweightage", "prioritymaxage", "priorityweightfairshare", "prioritydecayhalflife",
    "fairsharedampeningfactor", "priorityweightpartition", "priorityfavorsmall",
    "priorityweightqos", "priorityflags", "prioritycalcperiod",
)  # fmt: skip
_SIZE = "priorityweightjobsize"


def has_priorities(conf: SlurmConf) -> bool:
    """Return whether jobs have priorities other than by submission."""
    return conf.said("prioritytype") != "priority/basic"


def needs_accounts(conf: SlurmConf) -> bool:
    """Return whether Slurm needs accounts: without them it ignores ages and fair share."""
    weights = ("priorityweightage", "priorityweightfairshare")
    return has_priorities(conf) and any(_weight(conf, name) > 0 for name in weights)


def counts_size(conf: SlurmConf) -> bool:
    """Return whether priorities count the size of a job."""
    return has_priorities(conf) and _weight(conf, _SIZE) > 0


def settings_of(conf: SlurmConf) -> dict[str, str]:
    """Return the settings by which a private Slurm schedules as a slurm.conf says.

    Where the file does not say otherwise, priorities are those of ``priority/multifactor``.
    """
    given = conf.scheduling
    usual = dict(pair.partition("=")[::2] for pair in SOON.split(","))
    settings = {name: given[name] for name in _TAKEN if name in given}
    settings["PriorityType"] = given.get("prioritytype", "priority/multifactor")
    if has_priorities(conf):
        settings |= {name: given[name] for name in _OF_PRIORITIES if name in given}
        # of a job's size Slurm takes the mean of its shares of processors and of nodes; jobs here
        # ask for no nodes, and the simulator counts processors alone
        settings[_SIZE] = str(2 * _weight(conf, _SIZE))
    if is_safe(conf):
        settings[ENFORCED] = "safe"
    parameters = usual | conf.parameters
    written = [f"{name}={value}" if value else name for name, value in parameters.items()]
    return {**settings, "SchedulerParameters": ",".join(written)}


def _weight(conf: SlurmConf, name: str) -> int:
    """Return a weight; that it is a number was found when the file became a scheduler."""
    return int(conf.scheduling.get(name, "0"))
