"""What jobs of a dump of ``sacct`` held: processors, nodes, memory, generic resources."""

from __future__ import annotations

import numpy as np

from hpcgym.naming import CORE, MEMORY, printable, resource_problem
from hpcgym.workload.io.log_lines import Ints, Log, first_known
from hpcgym.workload.io.sacct_fields import asks_beside, memory_mb, per_what, tres
from hpcgym.workload.model import MISSING

#: What stands before the names of columns of generic resources.
GENERIC = "gres/"

_BESIDE = "not used: licenses or burst buffers"
_TRES = ("AllocTRES", "ReqTRES")
_OF_NODES = ("cpu", "mem", "node", "gpu")


def resources_of(log: Log) -> dict[str, Ints]:
    """Return what jobs held, (n,) each: as allocated, else as requested; -1 is unknown.

    That is ``requested_processors``, ``allocated_processors``, ``nodes``, ``gpus``, ``memory_mb``,
    and a column for each other generic resource: ``gres/fpga``.
    """
    given, asked = (log.parsed(name, tres, {}) for name in _TRES)

    def amounts(name: str) -> tuple[Ints, Ints]:
        told = ([job.get(name, MISSING) for job in jobs] for jobs in (given, asked))
        allocated, requested = (np.array(column, dtype=np.int64) for column in told)
        return allocated, requested

    (cpus, asked_cpus), (nodes, asked_nodes) = amounts("cpu"), amounts("node")
    allocated = first_known(_count(log, "AllocCPUS"), _count(log, "NCPUS"), cpus)
    requested = first_known(_count(log, "ReqCPUS"), asked_cpus)
    cores = first_known(allocated, requested)
    log.count(
        "repaired: requested_processors taken from AllocCPUS, not ReqCPUS",
        (requested > 0) & (requested != cores),
    )
    for place in np.flatnonzero(cores <= 0).tolist():
        log.refuse(log.lines[place], "no field tells its processors", "line without processors")
    nodes = first_known(nodes, _count(log, "NNodes"), _count(log, "AllocNodes"), asked_nodes)
    _count_beside(log)
    names = {name for job in (*given, *asked) for name in job} - {*_OF_NODES}
    generic = {name: first_known(*amounts(name)) for name in sorted(names)}
    return {
        "requested_processors": cores,
        "allocated_processors": allocated,
        "nodes": nodes,
        "gpus": first_known(*amounts("gpu")),
        "memory_mb": first_known(*amounts("mem"), _requested_memory(log, cores, nodes)),
        **{f"{GENERIC}{name}": one for name, one in generic.items() if _is_name(log, name, one)},
    }


def _is_name(log: Log, name: str, amounts: Ints) -> bool:
    """Tell whether a generic resource has a name that one can have here; else it is counted."""
    if name not in (CORE, MEMORY) and not resource_problem(name):
        return True
    told = f"{GENERIC}{printable(name)}, which is no name of a resource here"
    log.count(f"not used: {told}", amounts > 0)
    return False


def _count_beside(log: Log) -> None:
    """Count the jobs that ask for something of no node, which no simulation goes by."""
    texts = zip(*(log.texts(name.casefold()) for name in _TRES), strict=True)
    log.count(_BESIDE, np.array([any(map(asks_beside, pair)) for pair in texts], np.bool_))


def _requested_memory(log: Log, cores: Ints, nodes: Ints) -> Ints:
    """Return the memory of jobs by ReqMem [MB], of which some is told for each core or node."""
    amount = log.numbers("ReqMem", memory_mb)
    per = log.parsed("ReqMem", per_what, "")
    times = np.select([np.array(per) == "c", np.array(per) == "n"], [cores, nodes], 1)
    return np.where(amount > 0, amount * np.maximum(times, 1), MISSING)


def _count(log: Log, name: str) -> Ints:
    """Return a field of whole numbers; 0 is unknown, as of a job that was allocated nothing."""

    def whole(text: str) -> int:
        if not text.isdecimal() or len(text) > 12:
            raise ValueError("no whole number")
        return int(text)

    return log.numbers(name, whole)
