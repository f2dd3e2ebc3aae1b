"""Limits of Slurm's QOS, and throttles of its arrays, as quotas."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hpcgym.cluster.slurm import Qos, read_qos
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.files import head_of
from hpcgym.naming import ARRAY
from hpcgym.scheduler.quotas import Quota
from hpcgym.workload.io.sacct import is_sacct, throttles

#: What quotas do not follow, in the words of sacctmgr; preemption goes by the last.
_LEFT = {
    "max_tres": "MaxTRES",
    "max_wall_s": "MaxWall",
    "preempts": "Preempt",
}
#: Limits of jobs that run, or are submitted.
_OF_JOBS = {
    "max_jobs_per_user": "MaxJobsPU",
    "max_submitted_per_user": "MaxSubmitPU",
    "group_jobs": "GrpJobs",
    "group_submitted": "GrpSubmit",
}
_TRES = {"max_tres_per_user": "MaxTRESPU", "group_tres": "GrpTRES"}
#: What says how jobs are stopped, and what it says unless somebody sets it.
_STOPPING = {
    "grace_time": ("GraceTime", ("", "00:00:00")),
    "preempt_mode": ("PreemptMode", ("", "cluster")),
    "preempt_exempt_time": ("PreemptExemptTime", ("",)),
}
#: What other columns have unless somebody sets them.
_UNLESS_SET = {"usagefactor": "1.000000"}


class Left(NamedTuple):
    """Something that a QOS says and no quota follows: its name, and which column, in words."""

    qos: str
    column: str

    def __str__(self) -> str:
        return f"{self.qos}: {self.column}"


def quotas_of_slurm(path: str | os.PathLike[str]) -> list[Quota]:
    """Return the limits of jobs together in a file that ``sacctmgr -P show qos`` printed.

    MaxJobsPU, MaxTRESPU and MaxSubmitPU are of each user of a QOS, GrpJobs, GrpTRES and GrpSubmit
    of all of it; of TRES processors count (``cpu=256``). Logs have QOS as queues. A warning names
    what is not followed.
    A dump of ``sacct`` stands for the throttles of its arrays, such as ``7_[5-9%2]``.

    Raises
    ------
    HpcgymError : what :func:`hpcgym.cluster.slurm.read_qos` raises; a dump without throttles.
    """
    if is_sacct(head_of(Path(path))):
        most = throttles(Path(path))
        if not most:
            raise HpcgymError(
                f"{path}: no line tells how many tasks of an array may run at once, as 7_[5-9%2]"
            )
        return [Quota((), ((ARRAY, str(array)),), jobs=jobs) for array, jobs in most.items()]
    found, left = limits_as_quotas(read_qos(path))
    if left:
        warn_caller(f"{path}: not followed by quotas: {', '.join(map(str, left))}", HpcgymWarning)
    return found


def limits_as_quotas(known: Iterable[Qos]) -> tuple[list[Quota], list[Left]]:
    """Return the limits of QOS as :func:`quotas_of_slurm` does, and what is not followed."""
    found: list[Quota] = []
    left: list[Left] = []
    for qos in known:
        where = (("queue", qos.name),)
        of_users = (qos.max_jobs_per_user, qos.max_tres_per_user, qos.max_submitted_per_user)
        of_all = (qos.group_jobs, qos.group_tres, qos.group_submitted)
        for each, (jobs, tres, submitted) in ((("user",), of_users), ((), of_all)):
            bounds = [most or None for most in (jobs, tres.get("cpu"), submitted)]
            if any(bounds):
                found.append(Quota(each, where, *bounds))
        left += _not_followed(qos)
    return found, left


def limits_of(qos: Qos) -> list[str]:
    """Return the names of the limits that a QOS has, followed or not."""
    return [
        *(name for field, name in _OF_JOBS.items() if getattr(qos, field) is not None),
        *(name for field, name in _TRES.items() if getattr(qos, field)),
        *(name for field, name in _LEFT.items() if field != "preempts" and getattr(qos, field)),
    ]


def _not_followed(qos: Qos) -> list[Left]:
    """Return what of a QOS no quota follows."""
    left = [name for field, name in _LEFT.items() if getattr(qos, field)]
    left += [
        f"{what} {name}"
        for field, what in _TRES.items()
        for name, most in getattr(qos, field).items()
        if name != "cpu" or not most
    ]
    # a limit of 0 lets nothing run: no simulation of jobs that ran can follow it
    left += [f"{name}=0" for field, name in _OF_JOBS.items() if getattr(qos, field) == 0]
    left += [name for field, (name, usual) in _STOPPING.items() if getattr(qos, field) not in usual]
    left += [name for name, text in qos.others.items() if _UNLESS_SET.get(name.casefold()) != text]
    return [Left(qos.name, name) for name in left]
