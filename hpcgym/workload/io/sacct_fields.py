"""Fields of Slurm's accounting: ids of jobs, states, time limits, memory, trackable resources."""

from __future__ import annotations

import math
import re
from difflib import get_close_matches

from hpcgym.workload.io.times import duration, nearest
from hpcgym.workload.model import MISSING

#: What a line is, beside a job.
STEP = "step of a job"
ARRAY_TASKS = "tasks of an array that had not started"
PART = "component of a heterogeneous job"
#: What it may say of an array, as in ``7_[5-9%2]``.
UNUSED_THROTTLE = "not used: how many tasks of an array may run at once, %"

#: What is done with tasks that have no numbers of their own.
ANEW = "repaired: task of an array numbered anew, for the dump has no JobIDRaw"

_ID = re.compile(r"(?P<number>\d{1,18})(?:_(?:(?P<task>\d+)|(?P<tasks>\[.*\]?)))?(?P<part>\+\d+)?")

_MOST_TASKS = re.compile(r"%([1-9]\d{0,8})\]")

#: State of a job that ended -> status of the Standard Workload Format: 1 completed, 5 cancelled, 0
#: failed. REQUEUED and RESIZING are runs of jobs that went on: in another run, or at another size.
STATES = {
    "COMPLETED": 1,
    "CANCELLED": 5,
    "REVOKED": 5,
    **dict.fromkeys(
        (
            *("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"),
            *("PREEMPTED", "REQUEUED", "RESIZING", "SPECIAL_EXIT", "LAUNCH_FAILED"),
        ),
        0,
    ),
}
#: States of jobs that had not ended.
OPEN_STATES = (
    *("PENDING", "RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "COMPLETING", "STAGE_OUT"),
    *("SIGNALING", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"),
)

#: Time limits that are none, or not told.
UNSAID = ("UNLIMITED", "Partition_Limit")

_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)([cn]?)", re.IGNORECASE)
#: Megabytes, as Slurm counts them, of a unit of memory.
_UNITS = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}

#: What stands before the name of a generic resource.
_GRES = "gres/"
#: Amounts under that name which are no resources that a job holds: what it used of its GPUs.
_OF_GPUS = ("gres/gpumem", "gres/gpuutil")
#: Beginnings of what a job asks for beside resources of nodes, and no simulation goes by.
_BESIDE = ("license/", "bb/")


def is_step(text: str) -> bool:
    """Tell whether an id is that of a step, such as ``7.batch``."""
    job, point, step = text.partition(".")
    return bool(point and step) and job[:1].isdigit()


def task_of_id(text: str) -> tuple[int, int] | None:
    """Return the array and the task of an id such as ``123_4``; None of all others."""
    found = _ID.fullmatch(text)
    return (int(found["number"]), int(found["task"])) if found and found["task"] else None


def throttle_of_id(text: str) -> tuple[int, int] | None:
    """Return the array, and how many of its tasks may run at once, of ``123_[5-9%2]``, or None."""
    found = _ID.fullmatch(text)
    most = _MOST_TASKS.search(found["tasks"] or "") if found else None
    return (int(found["number"]), int(most[1])) if found and most else None


def parts_of_id(text: str) -> str | tuple[int, str]:
    """Return ``ARRAY_TASKS``, or the number of a job and ``PART`` if it is one.

    Raises
    ------
    ValueError : it is no id of a job.
    """
    found = _ID.fullmatch(text)
    if found is None:
        raise ValueError("no id such as 123, 123_4 or 123+0")
    if found["tasks"]:
        return ARRAY_TASKS
    return int(found["number"]), PART if found["part"] else ""


def state_of(text: str) -> str:
    """Return the state that a text tells, such as ``CANCELLED by 1234``.

    Raises
    ------
    ValueError : none that Slurm knows.
    """
    word = text.split(" ", 1)[0].rstrip("+").upper()
    if word in STATES or word in OPEN_STATES:
        return word
    near = get_close_matches(word, [*STATES, *OPEN_STATES], 1)
    raise ValueError(f"no state of a job{f'; did you mean {near[0]}?' if near else ''}")


def minutes(text: str) -> int:
    """Return the seconds of a time limit in minutes, -1 if there is none or it is not told."""
    if text.casefold() in map(str.casefold, UNSAID):
        return MISSING
    if not text.isdecimal() or len(text) > 12:
        raise ValueError("no whole minutes")
    return int(text) * 60 or MISSING


def time_limit(text: str) -> int:
    """Return the seconds of a time limit ``1-00:00:00``, -1 if there is none or it is not told."""
    if text.casefold() in map(str.casefold, UNSAID):
        return MISSING
    if ":" not in text:
        raise ValueError("no duration such as 1-00:00:00")
    return nearest(duration(text)) or MISSING


def memory_mb(text: str) -> int:
    """Return the megabytes of ``4Gc``, ``2000Mn`` or ``8G``, rounded up, per whatever it is.

    Raises
    ------
    ValueError : it is no memory.
    """
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise ValueError("no memory such as 4G, 2000Mc or 16Gn")
    return math.ceil(float(found[1]) * _UNITS[found[2].upper()])


def per_what(text: str) -> str:
    """Return ``c`` of memory for each core, ``n`` of memory for each node, else nothing."""
    return text[-1].casefold() if text[-1:].casefold() in ("c", "n") else ""


def tres(text: str) -> dict[str, int]:
    """Return the resources of ``cpu=4,mem=8G,node=2,gres/gpu:a100=2``, by name, memory in MB.

    A generic resource has its name alone: ``gpu``. Its types count, all together, only where their
    sum is not told too.

    Raises
    ------
    ValueError : it is no list of resources.
    """
    amounts: dict[str, int] = {}
    types: dict[str, int] = {}
    for entry in text.split(","):
        name, sign, amount = entry.partition("=")
        if not sign or not name:
            raise ValueError("no resources such as cpu=4,mem=8G,node=1,gres/gpu=2")
        kind = name.casefold()
        if kind == "mem":
            amounts[kind] = memory_mb(amount)
        elif kind in ("cpu", "node"):
            amounts[kind] = _amount(name, amount)
        elif kind.startswith(_GRES) and not kind.startswith(_OF_GPUS):
            generic, colon, _ = name[len(_GRES) :].partition(":")
            generic = "gpu" if generic.casefold() == "gpu" else generic
            told = types if colon else amounts
            told[generic] = _amount(name, amount) + (types.get(generic, 0) if colon else 0)
    return {**types, **amounts}


def _amount(name: str, text: str) -> int:
    """Return how many of a resource a text tells."""
    if not text.isdecimal() or len(text) > 12:
        raise ValueError(f"of which {name} is no whole number")
    return int(text)


def asks_beside(text: str) -> bool:
    """Tell whether resources such as ``cpu=4,license/matlab=1`` hold some that are of no node."""
    return any(entry.casefold().startswith(_BESIDE) for entry in text.split(","))
