"""What Slurm tells of jobs that have ended."""

from __future__ import annotations

import calendar
import re
import time
from typing import NamedTuple

from hpcgym.errors import HpcgymError

_FIELD = re.compile(r"(\w+)=(\S*)")


class Record(NamedTuple):
    """What Slurm tells of a job that has ended; times are those of the jobs.

    Attributes
    ----------
    name : the job's.
    state : such as ``COMPLETED``.
    submit, start, end : [s].
    nodes : list of nodes, such as ``n[1-3,7]``.
    """

    name: str
    state: str
    submit: int
    start: int
    end: int
    nodes: str


def read_records(text: str, zero_s: int) -> list[Record]:
    """Return the jobs in a file of Slurm's plugin ``jobcomp/filetxt``, in its order.

    ``zero_s`` is the time since 1970 from which times are counted.

    Raises
    ------
    HpcgymError : a line without a field that it must have, or a time that is none.
    """
    found = []
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        try:
            submit, start, end = (_seconds(fields[name]) - zero_s for name in _TIMES)
            told = Record(
                fields["Name"], fields["JobState"], submit, start, end, fields["NodeList"]
            )
            found.append(told)
        except (KeyError, ValueError) as error:
            raise HpcgymError(f"Slurm's record of a job is not understood: {line}") from error
    return found


_TIMES = ("SubmitTime", "StartTime", "EndTime")


def _seconds(text: str) -> int:
    """Return a time of Slurm in seconds since 1970."""
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
