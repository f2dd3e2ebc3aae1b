"""What Slurm told as the jobs and the machine that simulations begin with."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.files import is_there
from hpcgym.machine import Cluster, find_cluster
from hpcgym.machine.partitions import hosts, names_of_nodes
from hpcgym.machine.pool import NodeGroup
from hpcgym.machine.slurm import read_slurm_conf
from hpcgym.machine.slurm.keys import parameters
from hpcgym.names import CORE
from hpcgym.slurm.looks import SeenJob, SlurmLook, parent_of
from hpcgym.slurm.programs import SlurmPrograms
from hpcgym.slurm.queue import QueuedJob, workload_of
from hpcgym.words import counted
from hpcgym.workload.model import Initial, Workload
from hpcgym.workload.needs import FITS_NOWHERE, that_fit
from hpcgym.workload.ongoing import Cells, Ongoing

#: How often Slurm backfills unless its configuration says it [s].
_USUAL_S = 30
#: States of nodes that start no job, as sinfo calls them in short.
_CLOSED = ("down", "drain", "drng", "fail", "failg", "maint", "inval", "futr", "unk", "reboot")


@dataclass(frozen=True)
class SlurmMachine:
    """The machine of a Slurm.

    Attributes
    ----------
    cluster : its nodes and partitions.
    node_names : what each node is called, by its number; none where nobody knows.
    every_s : from one backfill pass to the next [s].
    conf : the path of its slurm.conf on this machine; None: it cannot be read here.
    """

    cluster: Cluster
    node_names: tuple[str, ...]
    every_s: int
    conf: str | None

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each node by its name."""
        return {name: number for number, name in enumerate(self.node_names)}

    @property
    def shares_nodes(self) -> bool:
        """Whether several jobs may be on one node."""
        return any(group.resources[CORE] > 1 for group in self.cluster.groups)


_SETTING = re.compile(r"^(SchedulerParameters|SLURM_CONF)\s*=\s*(.*?)\s*$", re.MULTILINE)


def machine_of(
    programs: SlurmPrograms, cluster: Cluster | str | int | os.PathLike[str] | None = None
) -> SlurmMachine:
    """Return the machine of a Slurm as it is now: :func:`open_now` of :func:`configured`."""
    return open_now(configured(programs, cluster), programs)


def configured(
    programs: SlurmPrograms, cluster: Cluster | str | int | os.PathLike[str] | None = None
) -> SlurmMachine:
    """Return the machine of a Slurm, as its configuration has it, with all nodes.

    Parameters
    ----------
    programs : that are asked.
    cluster : the machine; None: that of the slurm.conf which ``scontrol show config`` names.

    Raises
    ------
    HpcgymError : Slurm does not answer, or its slurm.conf is not on this machine.
    """
    settings = dict(_SETTING.findall(programs.said("scontrol", "show", "config")))
    known = parameters(settings.get("SchedulerParameters", ""))
    given = known.get("bf_interval", "")
    every_s = int(given) if given.isdecimal() and int(given) > 0 else _USUAL_S
    path = settings.get("SLURM_CONF", "")
    file = path if path and is_there(Path(path)) else None
    if cluster is None and file is None:
        raise HpcgymError(
            f"the slurm.conf of this Slurm, {path or 'which scontrol does not name'}, cannot be"
            " read here: name the machine, such as a copy of that file, as cluster (--cluster)"
        )
    names: tuple[str, ...] = ()
    if cluster is None:
        conf = read_slurm_conf(str(file))
        machine, names = conf.cluster, conf.node_names
    else:
        machine = find_cluster(cluster)
        groups = [(group.name, group.nodes) for group in machine.groups]
        known_names = names_of_nodes(groups)
        if all(isinstance(name, str) for name in known_names):
            names = tuple(map(str, known_names))
    return SlurmMachine(machine, names, every_s, file)


def open_now(machine: SlurmMachine, programs: SlurmPrograms) -> SlurmMachine:
    """Return a machine without the nodes that are closed and empty now, if its nodes have names.

    Raises
    ------
    HpcgymError : Slurm does not answer, or all nodes are closed.
    """
    if not machine.node_names:
        return machine
    closed = _closed(programs.said("sinfo", "-h", "-N", "-o", "%N|%t|%C"))
    cluster, names = _without(machine.cluster, machine.node_names, closed)
    return replace(machine, cluster=cluster, node_names=names)


def _closed(text: str) -> set[str]:
    """Return the nodes that start no job and run none, by lines of sinfo: name, state, cores."""
    closed = set()
    for line in text.splitlines():
        name, _, rest = line.partition("|")
        state, _, cores = rest.partition("|")
        if state.rstrip("*~#!%$@^-+").startswith(_CLOSED) and cores.startswith("0/"):
            closed.add(name)
    return closed


def _without(
    cluster: Cluster, names: Sequence[str], closed: set[str]
) -> tuple[Cluster, tuple[str, ...]]:
    """Return a machine, and the names of its nodes, without some nodes."""
    gone = [number for number, name in enumerate(names) if name in closed]
    if not gone:
        return cluster, tuple(names)
    if len(gone) == len(names):
        raise HpcgymError("all nodes of this Slurm are down or drained: nothing can start")
    kept = np.setdiff1d(np.arange(len(names)), gone)
    number_of = {node: number for number, node in enumerate(kept.tolist())}
    groups: list[NodeGroup] = []
    first = 0
    for group in cluster.groups:
        left = int(((kept >= first) & (kept < first + group.nodes)).sum())
        first += group.nodes
        groups += [replace(group, nodes=left)] if left else []
    partitions = tuple(
        replace(part, nodes=tuple(number_of[node] for node in part.nodes if node in number_of))
        for part in cluster.partitions
    )
    made: Any = {"groups": tuple(groups), "partitions": partitions, "processors": None}
    return replace(cluster, **made), tuple(names[node] for node in kept.tolist())


def present(
    look: SlurmLook,
    machine: SlurmMachine,
    past: Mapping[str, QueuedJob],
) -> Workload:
    """Return the jobs that run or wait for room, with the state of the machine.

    Jobs that are held, and those that run on nodes which the machine does not have, are left out;
    so are those that no empty machine holds, which are counted in ``cleaning``.

    Parameters
    ----------
    look : what Slurm told.
    machine : its own.
    past : jobs that have ended.

    Returns
    -------
    jobs : on a clock of seconds since 1970, with the run time -1, and ``jobs.initial``.
    """
    cells = {seen.told.number: _cells(seen, look, machine) for seen in look.jobs if not seen.waits}
    chosen = [
        seen
        for seen in look.jobs
        if seen.told.ended < 0 and not seen.is_held and cells.get(seen.told.number) != {}
    ]
    chosen = [_on(seen, look, machine) for seen in chosen]
    mine = {id(seen.told) for seen in chosen}
    partitions = sorted(machine.cluster.partitions, key=lambda part: not part.default)
    default = partitions[0].name if partitions else ""
    jobs = [
        _in_partition(job, default)
        for job in past.values()
        if job.ended <= look.time and job.ended > job.began >= 0
    ]
    jobs += [seen.told for seen in chosen]
    jobs.sort(key=lambda job: (job.submit, job.number))
    name, size = machine.cluster.name or "Slurm", machine.cluster.processors
    both = workload_of(jobs, size, name, zone=_zone(), unknown_run_s=-1)
    now = np.array([id(job) in mine for job in jobs], np.bool_)
    fits = _fits(both, machine.cluster)
    dropped = int((now & ~fits).sum())
    both, now = both.take(fits), now[fits]
    jobs = [job for job, does in zip(jobs, fits.tolist(), strict=True) if does]
    began = np.array([job.began for job in jobs if id(job) in mine], np.int64)
    had = [cells.get(job.number) if job.began >= 0 else {} for job in jobs if id(job) in mine]
    unknown = np.full(len(had), -1)
    order, cells_of_all = np.arange(len(had)), _all_cells(had)
    ongoing = Ongoing({}, machine.cluster, order, unknown, unknown, cells=cells_of_all)
    ongoing = replace(ongoing, looks=_looks(look, machine), watched=True)
    own = both.take(now, cleaning={FITS_NOWHERE: dropped})
    return replace(own, initial=Initial(look.time, began, both.take(~now), ongoing))


def _in_partition(job: QueuedJob, default: str) -> QueuedJob:
    """Return a job of the past in the default partition, if its log tells none."""
    *names, partition = job.names
    if not default or partition not in _UNTOLD:
        return job
    return job._replace(names=(*names, default))


#: What stands for a partition that is not told.
_UNTOLD = ("", "-1", "(null)")


def _fits(jobs: Workload, cluster: Cluster) -> NDArray[np.bool_]:
    """Return which jobs the empty machine holds, (n_jobs,)."""
    if not cluster.groups:
        small: NDArray[np.bool_] = jobs.requested_processors <= cluster.processors
        return small
    partitions = [partition.name for partition in cluster.partitions]
    return that_fit(jobs, cluster.resources, cluster.capacity, partitions)[1]


def with_parts(seen: SeenJob, look: SlurmLook, machine: SlurmMachine) -> QueuedJob:
    """Return a job with its parts, where nodes have several cores."""
    parts = look.parts.get(parent_of(seen.told.number))
    if parts is None or not machine.shares_nodes:
        return seen.told
    return seen.told._replace(units=parts.units, most=parts.most)


def _on(seen: SeenJob, look: SlurmLook, machine: SlurmMachine) -> SeenJob:
    """Return a job with its parts, submitted before this second if it has started."""
    job = with_parts(seen, look, machine)
    if job.began >= look.time and job.submit >= look.time:
        job = job._replace(submit=look.time - 1)  # it has started in the second of its submission
    if job.began >= 0:  # one that runs on beyond its limit may end at any time
        job = job._replace(limit=max(job.limit, look.time - job.began + 1))
    return seen._replace(told=job)


def _cells(seen: SeenJob, look: SlurmLook, machine: SlurmMachine) -> dict[int, int] | None:
    """Return how many units a job has on which node; None: unknown, {}: on none of the machine."""
    if not machine.numbers:
        return None
    parts = look.parts.get(seen.told.number)
    if parts is not None and machine.shares_nodes:
        had = dict(parts.cells)
        each = seen.told.processors // parts.units
    else:
        had = dict.fromkeys(_hosts(seen.nodes), 1)
        each = 1
        if machine.shares_nodes:
            return None
    return {
        machine.numbers[name]: cores // each
        for name, cores in had.items()
        if name in machine.numbers
    }


def _hosts(text: str) -> list[str]:
    """Return the nodes of a list; none of what is no list."""
    try:
        return hosts(text, "squeue")
    except HpcgymError:
        return []


def _all_cells(had: Sequence[Mapping[int, int] | None]) -> Cells | None:
    """Return the nodes of all jobs; None where those of one are unknown."""
    known = [cells for cells in had if cells is not None]
    if len(known) < len(had) or not any(known):
        return None
    first = np.cumsum([0, *map(len, known)])
    pairs = [pair for cells in known for pair in sorted(cells.items())]
    node, units = np.array(pairs, np.int64).reshape(-1, 2).T
    return Cells(first, node, units)


def _looks(look: SlurmLook, machine: SlurmMachine) -> tuple[int, ...] | None:
    """Return when the next backfill pass comes, as the engine keeps it; None: nobody knows.

    One comes each interval while something happens or jobs wait; where it is late nothing happens,
    and it comes in step with the last one once something does.
    """
    if look.passed < 0:
        return None
    after = look.passed + machine.every_s
    return (after if look.time <= after else FOREVER, after, 1, 0, FOREVER)


def left_out(look: SlurmLook) -> str:
    """Return how many jobs are held, and wait not for room, in words; "" if none."""
    held = [seen for seen in look.jobs if seen.is_held]
    reasons = sorted({seen.reason for seen in held})
    return f"{counted(len(held), 'job')} left out: {', '.join(reasons)}" if held else ""


def _zone() -> str:
    """Return the name of this machine's time zone, UTC where it does not tell it."""
    if name := os.environ.get("TZ", "").removeprefix(":"):
        return name
    return os.path.realpath("/etc/localtime").partition("zoneinfo/")[2] or "UTC"


def warn_misread(look: SlurmLook) -> None:
    """Warn of lines of squeue that are not understood."""
    if look.misread:
        warn_caller(
            f"squeue is not understood of {counted(len(look.misread), 'job')}, left out:"
            f" {look.misread[0]!r}",
            HpcgymWarning,
        )
