"""What columns of jobs and resources of nodes are called, and which names can be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any
from zlib import crc32

# --- What columns of jobs and resources of nodes are called ---------------------------------------
#
# Tables of jobs and files of machines share these names: what is a column of jobs in one cannot be
# a resource in the other.

#: The 18 fields of a line of the Standard Workload Format 2.2, in file order.
SWF_COLUMNS = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)

#: The column of the number of the array that a job is a task of; it has no names.
ARRAY = "array"

#: The column of what users of Slurm take from the priority of a job, and the most that they can.
NICE, MOST_NICE = "nice", 2**31 - 3

#: The column of how many units of a job may lie on one node.
UNITS_PER_NODE = "units_per_node"

#: The column of what features the nodes of a job must have, a number of a text.
CONSTRAINT = "constraint"

#: The column of the reservation that a job asked for, a number of a name.
RESERVATION = "reservation"

#: Columns of amounts of a whole job, which no unit has: on how many nodes it ran, and what Slurm
#: bills for a second of it.
NODES, BILLING = OF_WHOLE_JOBS = ("allocated_nodes", "billing")

#: Columns that SWF lacks: of measured jobs the mean power on each processor of a job [W], and its
#: completion time at the lowest frequency over that at the highest; of tasks their array; nice; how
#: many units a node may have; constraints; reservations; and amounts of whole jobs.
OWN_COLUMNS = (
    *("power_w", "slowdown", ARRAY, NICE, UNITS_PER_NODE, CONSTRAINT, RESERVATION),
    *OF_WHOLE_JOBS,
)

#: All columns that a job can have, but for licences, units and resources.
JOB_COLUMNS = SWF_COLUMNS + OWN_COLUMNS

#: What stands before the name of a licence, as a column of jobs: how many each needs.
LICENCE = "licence."
_LICENCE = re.compile(r"licence\.\w[\w@.-]*")


def is_job_column(name: str) -> bool:
    """Tell whether a job can have a column: one of JOB_COLUMNS, or of a licence.

    >>> is_job_column("licence.matlab@server"), is_job_column("licence."), is_job_column("gpu")
    (True, False, False)
    """
    return name in JOB_COLUMNS or _LICENCE.fullmatch(name) is not None


def job_columns(names: Iterable[str]) -> list[str]:
    """Return which of some names are columns of jobs, in the order of workloads."""
    known = set(filter(is_job_column, names))
    return [*(c for c in JOB_COLUMNS if c in known), *sorted(known.difference(JOB_COLUMNS))]


#: Whether cleaning cut the run time of a job at its requested time, in tables: 1 or 0.
KILLED = "killed"

#: What units of jobs are called in tables.
UNITS = "units"

#: What jobs are told apart by, in expressions, quotas, tables and pictures -> the columns of their
#: numbers, which may have names in a log.
NAMED = {
    "user": "user_id",
    "group": "group_id",
    "code": "executable",
    "queue": "queue",
    "partition": "partition",
}

#: The same, and QOS, which logs of Slurm have as queues.
WITH_QOS = {**NAMED, "qos": NAMED["queue"]}

#: The name of what a job runs, in tables: a text for each number of ``executable``.
CODE = "code"

#: Columns of names in tables -> the columns of numbers that they are of.
NAME_COLUMNS = {
    word if word != column else f"{word}_name": column
    for word, column in {**NAMED, CONSTRAINT: CONSTRAINT, RESERVATION: RESERVATION}.items()
}

#: The resource that every node has and every unit of a job takes: what processors are counted by.
CORE = "core"

#: The one resource with a unit of measurement: whole megabytes (1 GB = 1,000 MB).
MEMORY = "mem"


def beside_memory(resources: Iterable[str]) -> list[str]:
    """Return the resources that tables tell of by name: all but processors and memory."""
    return [name for name in resources if name not in (CORE, MEMORY)]


#: What stands before the name of a partition, where nodes of its own are a resource like others.
#: No resource that somebody names has a blank in it.
PARTITION = "partition "

#: The same before the constraint of jobs, where the nodes that meet it are such a resource.
FEATURES = "features "

#: Characters that a name from a file may have: of an agent, a machine or a partition, say.
MOST_NAME = 200

#: The same where a name may be a list of nodes, a file or an expression.
MOST_OF_LIST = 4096
MOST_AMOUNT = 2**31  # of units, and of a resource on a node or in a unit: so that no sum overflows
_RESOURCE = re.compile(r"[A-Za-z][\w-]*")
# what stands beside resources in files of machines
_OF_GROUPS = ("name", "nodes", "sockets", "features", "power")

#: What tables of jobs called columns in earlier versions, and classes of jobs -> columns of now.
ONCE_CALLED = {
    "processors": "requested_processors",
    "size": "requested_processors",
    "submit": "submit_time",
    "start": "start_time",
    "end": "end_time",
    "wait": "wait_time",
}

#: Other words for columns and resources.
_OTHER_WORDS = {
    "cpu": CORE,
    "executable": CODE,
    "job_id": "job_number",
    "jobid": "job_number",
    "memory": MEMORY,
    "node": UNITS,
    "nodes": UNITS,
    "processor": "requested_processors",
    "processors": "requested_processors",
    "ram": MEMORY,
    "runtime": "run_time",
    "task": UNITS,
    "walltime": "requested_time",
}


def near_name(name: str, known: Iterable[str], cutoff: float = 0.8) -> str | None:
    """Return which of the known names is meant by one that is not among them.

    It is that name in another case, in the plural, by another word, a part of it (``user`` of
    ``user_id``), or nearly its letters.

    Parameters
    ----------
    name : what is written.
    known : the names there are.
    cutoff : least similarity of the letters, from 0 to 1; see :func:`difflib.get_close_matches`.

    Returns
    -------
    One of ``known``, or None if none comes near.
    """
    names = {word.casefold(): word for word in known}
    written = re.sub(r"[\s-]+", "_", name.strip().casefold())
    for word in (written, written.removesuffix("s"), f"{written}s"):
        meant = word if word in names else _OTHER_WORDS.get(word, word)
        if meant in names:
            return names[meant]
        for folded, known_name in names.items():
            if word in folded.split("_"):
                return known_name
    # another letter makes another word of a short one: vmem is not mem, nor nic nice
    longer = [word for word in names if min(len(word), len(written)) > len(MEMORY)]
    near = get_close_matches(written, longer, 1, cutoff)
    return names[near[0]] if near else None


def resource_problem(name: Any) -> str:
    """Return why nothing can be a resource of this name, in words; nothing if it can.

    A resource begins with a letter, has letters, digits, ``_`` and ``-``, and is no column of jobs,
    nor nearly one, nor nearly ``core`` or ``mem``.
    """
    if not isinstance(name, str) or not _RESOURCE.fullmatch(name):
        why = "it must be letters, digits, '_' and '-', a letter first"
    elif name in (*JOB_COLUMNS, KILLED, UNITS, *NAME_COLUMNS):
        why = "it is a column of jobs"
    elif name in _OF_GROUPS:
        why = "it stands for something else in files of machines"
    elif name in (CORE, MEMORY):
        return ""
    elif near := near_name(name, (CORE, MEMORY)):
        why = f"did you mean {near!r}?"
    elif near := near_name(name, (*JOB_COLUMNS, UNITS, *NAME_COLUMNS)):
        why = f"it is nearly {near!r}, a column of jobs"
    else:
        return ""
    return f"{name!r} cannot be the name of a resource: {why}"


def of_type(resource: str, kind: str) -> str:
    """Return what those of one type of a resource are called, beside all of them.

    >>> of_type("gpu", "a100_3g.20gb")
    'gpu-a100_3g_20gb'
    """
    return f"{resource}-{re.sub(r'[^A-Za-z0-9_-]', '_', kind)}"


def name_problem(name: Any, most: int = MOST_NAME) -> str:
    """Return what a name must be that this is not, in words; nothing if it may be one.

    Names from files stand in tables, pages and pictures, where a line end would forge a row and an
    escape code would write what it likes on a terminal.
    """
    if not isinstance(name, str) or not name:
        return f"a text, not {name!r}"
    if not name.isprintable() or name != name.strip():
        return f"printable, on one line, without blanks at its ends, not {name!r}"
    return "" if len(name) <= most else f"of at most {most:,} characters, and has {len(name):,}"


def printable(text: str, most: int = MOST_NAME) -> str:
    """Return a name of a log as any terminal, table or page can show it.

    What cannot be printed becomes ``?``. Of what is too long the beginning is left, with a checksum
    of the whole: names that differ stay different.
    """
    shown = "".join(c if c.isprintable() else "?" for c in text).strip()
    if len(shown) <= most:
        return shown
    return f"{shown[: most - 11]}...{crc32(text.encode(errors='replace')):08x}"


def known_columns() -> str:
    """Return the columns that a job can have, in words."""
    own = ", ".join((*OWN_COLUMNS, f"{LICENCE}NAME"))
    return f"SWF has {', '.join(SWF_COLUMNS)}; besides there is {own}"


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that differ in case, a plural, ``-`` and ``_`` alone, if there are any."""
    seen: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain = name.casefold().replace("-", "_").removesuffix("s")
        if plain in seen:
            return seen[plain], name
        seen[plain] = name
    return None
