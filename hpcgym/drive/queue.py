"""The queue of a Slurm that runs, as squeue tells it."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.workload.model import Workload
from hpcgym.workload.names import HEADER_KEYS, header_lines, numbered

#: What squeue is asked for; the environment variable SLURM_TIME_FORMAT must be ``%s``.
FORMAT = "%A|%C|%l|%V|%Q|%y|%u|%a|%q|%P"
_FIELDS = FORMAT.count("|") + 1
_LIMIT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)|(\d+)")
#: What stands for a time limit where a job has none [s]: a year.
NO_LIMIT_S = 365 * 86_400
_NONE = ("UNLIMITED", "NOT_SET", "INVALID")
_NAMED = ("user_id", "group_id", "queue", "partition")  # of the last four fields


class Queue(NamedTuple):
    """The jobs that wait, but for those that are held.

    Attributes
    ----------
    ids : what Slurm calls each, in order of submission.
    priority : (n,) int64, what Slurm gives each.
    jobs : the same jobs as policies see them: users, accounts (groups), QOS (queues) and partitions
        with their names, nice, times in seconds since 1970. An array of jobs is one.
    """

    ids: list[str]
    priority: NDArray[np.int64]
    jobs: Workload


def read_queue(text: str, first_submit_s: int | None = None) -> Queue:
    """Return the queue that squeue printed in :data:`FORMAT`.

    Parameters
    ----------
    text : a line a job.
    first_submit_s : when the first job of all was submitted; None: the first of these.

    Raises
    ------
    HpcgymError : a line that is not understood.
    """
    rows: dict[str, tuple[list[int], list[str]]] = {}
    for line in text.splitlines():
        parts = line.split("|")
        try:
            if len(parts) != _FIELDS:
                raise ValueError
            numbers = [int(parts[k]) for k in (3, 0, 1, 4, 5)] + [_seconds(parts[2])]
        except ValueError:
            raise HpcgymError(f"squeue told a job that is not understood: {line!r}") from None
        if int(parts[4]) > 0:  # one that is held has no priority
            rows[parts[0]] = numbers, parts[6:]
    ids = sorted(rows, key=lambda one: rows[one][0][:2])
    told = [rows[one] for one in ids]
    submit, number, processors, priority, nice, limit = (
        np.array([numbers[k] for numbers, _ in told], np.int64) for k in range(6)
    )
    columns = {
        "job_number": number,
        "submit_time": submit,
        "requested_processors": processors,
        "requested_time": limit,
        "run_time": limit,  # which nobody knows
        "nice": nice,
    }
    header = {}
    for k, column in enumerate(_NAMED):
        of_name = numbered(names[k] for _, names in told)
        columns[column] = np.array([of_name[names[k]] for _, names in told], np.int64)
        header[HEADER_KEYS[column]] = header_lines({v: name for name, v in of_name.items()})
    first = int(submit.min(initial=2**62)) if first_submit_s is None else first_submit_s
    jobs = Workload.from_columns(
        columns,
        processors=int(processors.max(initial=1)),
        name="queue",
        header=header,
        first_submit_s=first if len(ids) else None,
    )
    return Queue(ids, priority, jobs)


def _seconds(text: str) -> int:
    """Return a time limit of Slurm, such as ``1-02:00:00`` or ``30:00``, in seconds, at least 1."""
    if text in _NONE:
        return NO_LIMIT_S
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    days, hours, minutes, seconds, alone = (int(part or 0) for part in found.groups())
    return max(((days * 24 + hours) * 60 + minutes) * 60 + seconds + alone, 1)
