"""Which jobs a job of Slurm follows, as by ``afterok:12:13,afterany:14``.

It stands in a field ``Dependency``, which squeue has and sacct has not, or in ``SubmitLine`` of
sacct, the command by which a job was submitted. What it may hold:
https://slurm.schedmd.com/sbatch.html#OPT_dependency
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.workload.columns import MISSING
from hpcgym.workload.io.log_lines import Ints, LogRecords
from hpcgym.workload.io.submit_lines import value_of

_STARTS = "not used: Dependency after, which is on the start of a job"
_ANY = "not used: Dependency on any one of several jobs"
_OTHER = "not used: Dependency that is no list such as afterok:12:13,afterany:14"
_DELAY = "not used: delay of a Dependency on an end, such as afterany:12+5"
_SINGLETON = "not used: Dependency singleton, on all earlier jobs of a user and name"
_UNKNOWN_TASK = "not used: Dependency on a task of an array that is not there"
_ITSELF = "not used: Dependency of a job on itself"
_BROKEN = "repaired: Dependency that the other's end did not meet taken for afterany"

#: Kind of a dependency on the end of a job -> whether the other must have completed.
_ENDS = {
    "afterany": None,
    "afterburstbuffer": None,
    "afterok": True,
    "aftercorr": True,
    "afternotok": False,
}
_REMARK = re.compile(r"\(\w*\)")  # how far it is, as squeue tells
_MINUTES = re.compile(r"\+\d+")
_PART = re.compile(r"(?P<kind>[a-z]+)(?P<jobs>(?::\d{1,18}(?:_(?:\d{1,9}|\*))?(?:\+\d+)?)+)")


class _Condition(NamedTuple):
    """One part of a dependency: its kind, and ids of jobs such as ``12``, ``12_3`` or ``12_*``.

    ``delayed``: whether the job is to wait for some minutes more, which Slurm has for starts only.
    """

    kind: str
    ids: tuple[str, ...]
    delayed: bool


def preceding(
    log: LogRecords, tasks: NDArray[Any], number: Ints, status: Ints, shift: Ints
) -> NDArray[Any]:
    """Return the jobs that each job follows, (n,): numbers, or texts such as ``7 9``, -1 of none.

    Parameters
    ----------
    log : counts what is not used, and what the log itself did not keep.
    tasks, number, status : of each job, (n,).
    shift : what was added to the numbers of each job, and is to those that it names, (n,).
    """
    if "dependency" in log.fields:
        texts = log.texts("dependency")
    else:
        texts = log.parsed("SubmitLine", dependency_of_line, blank="")
    if not any(texts):
        return np.full(len(number), MISSING)
    known = {text: _conditions(text) for text in set(texts)}
    jobs = _Jobs(tasks, number, status, shift)
    named: list[list[int]] = []
    for place, text in enumerate(texts):
        others: list[int] = []
        odd: set[str] = set()
        for part in known[text]:
            if isinstance(part, str):
                odd.add(part)
            else:
                others += jobs.meant(place, part, odd)
                odd |= {_DELAY} if part.delayed else set()
        odd |= {_ITSELF} if number[place] in others else set()
        named.append([other for other in dict.fromkeys(others) if other != number[place]])
        log.counts.update(odd)
    if all(len(others) < 2 for others in named):
        return np.array([others[0] if others else MISSING for others in named], np.int64)
    return np.array([" ".join(map(str, others or [MISSING])) for others in named], dtype=object)


def dependency_of_line(line: str) -> str:
    """Return the dependency in a command such as ``sbatch -d afterok:12 run.sh``; blank if none."""
    return value_of(line, "dependency") or ""


def _conditions(text: str) -> tuple[_Condition | str, ...]:
    """Return the parts of a dependency, or in place of one the reason why it is not used."""
    plain = _REMARK.sub("", text)
    if plain in ("", "None", "null"):
        return ()
    if "?" in plain:
        return (_ANY,)
    return tuple(map(_condition, plain.split(",")))


def _condition(part: str) -> _Condition | str:
    """Return a part of a dependency, or the reason why it is not used.

    Slurm takes both cases, and ids alone for ``afterany``.
    """
    part = part.casefold()
    if part[:1].isdigit():
        part = f"afterany:{part}"
    if part == "singleton":
        return _SINGLETON
    match = _PART.fullmatch(part)
    if match is not None and match["kind"] == "after":
        return _STARTS
    if match is None or match["kind"] not in _ENDS:
        return _OTHER
    ids = tuple(_MINUTES.sub("", job) for job in match["jobs"][1:].split(":"))
    return _Condition(match["kind"], ids, "+" in match["jobs"])


class _Jobs:
    """The jobs of a log by their ids: how they ended, tasks of arrays."""

    def __init__(self, own: NDArray[Any], number: Ints, status: Ints, shift: Ints) -> None:
        self.own, self.shift = own["task"].tolist(), shift.tolist()
        self.status = dict(zip(number.tolist(), status.tolist(), strict=True))  # the last counts
        self.tasks: dict[int, dict[int, int]] = {}
        at = own["task"] >= 0
        tasks = zip(
            *(ids[at].tolist() for ids in (own["number"], own["task"], number)), strict=True
        )
        for array, task, job in tasks:
            self.tasks.setdefault(array, {})[task] = job

    def meant(self, place: int, part: _Condition, odd: set[str]) -> list[int]:
        """Return the numbers of the jobs that a part of a job's dependency names.

        ``odd`` gets reasons to count the job by.
        """
        jobs = []
        own = self.own[place]
        for text in part.ids:
            number, _, task = text.partition("_")
            job = int(number) + self.shift[place]
            tasks = self.tasks.get(job, {})
            if part.kind == "aftercorr" and own >= 0 and not task:
                task = str(own)
            if task.isdigit() and int(task) not in tasks:
                odd.add(_UNKNOWN_TASK)
            elif task.isdigit():
                jobs.append(tasks[int(task)])
            else:
                jobs += tasks.values() if tasks else [job]
        completed = _ENDS[part.kind]
        ends = [self.status[job] == 1 for job in jobs if self.status.get(job, MISSING) != MISSING]
        if completed is not None and any(end != completed for end in ends):
            odd.add(_BROKEN)
        return jobs
