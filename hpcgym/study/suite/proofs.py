"""Proofs of a submission: its schedules are possible, and its metrics are theirs.

No code of the agent is run. What is read of the folder is start times, and nodes where jobs have
such of their own; jobs, run times, machine and limits are the task's. So what is proved is that
somebody who may choose starts could have made this schedule, and that its metrics are as told. It
is not proved who chose them, nor that nobody looked at run times beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.naming import counted
from hpcgym.schedule.result import Result
from hpcgym.study.suite.evaluation import LONGEST, METRICS, Evaluation
from hpcgym.study.suite.submissions import Submission
from hpcgym.study.suite.tasks import tasks
from hpcgym.validation.validate import validate_schedule

# --- Proofs of a submission -----------------------------------------------------------------------

#: Metrics are equal that differ by no more than this share: sums may be rounded in other ways.
_ALIKE = 1e-9

#: What is proved of who is verified, and what is not.
PROVED = (
    "verified: proved possible for these jobs on this machine, with these metrics; not who made the"
    " schedules, how it was trained, or whether it knew run times beforehand"
)

_LATEST_S = 2**52


@dataclass(frozen=True)
class Proof:
    """What was found of a task of a submission.

    Attributes
    ----------
    task : its id.
    equal : whether all schedules are possible, and all metrics as told.
    text : what was proved, or the first thing that is wrong, in a line.
    longest : (seeds, slices) the longest wait, :data:`hpcgym.study.suite.evaluation.LONGEST` [s],
        of what was proved. It is not told, but computed here.
    """

    task: str
    equal: bool
    text: str
    longest: NDArray[np.float64] | None = field(default=None, compare=False)


def verify(
    submission: Submission, only: list[str] | None = None, step: Callable[[str], None] | None = None
) -> list[Proof]:
    """Prove the schedules of a submission, and compute its metrics anew from them.

    Parameters
    ----------
    submission : what :func:`hpcgym.study.suite.submissions.read` returns.
    only : ids; None: all tasks that it has.
    step : called with the name of each task before it is looked at.

    Raises
    ------
    HpcgymError : the jobs of a task are not on this machine.
    """
    found = []
    for name in submission.tasks if only is None else only:
        if step is not None:
            step(name)
        with Evaluation(tasks()[name]) as evaluation:
            found.append(prove(submission, evaluation))
    return found


def prove(submission: Submission, evaluation: Evaluation) -> Proof:
    """Prove one task of a submission, see :func:`verify`."""
    try:
        return Proof(evaluation.task.name, True, *_proved(submission, evaluation))
    except HpcgymError as error:
        return Proof(evaluation.task.name, False, str(error))


def _proved(submission: Submission, evaluation: Evaluation) -> tuple[str, NDArray[np.float64]]:
    """Return what was proved of a task, and longest waits.

    Else an HpcgymError has the first thing that is wrong.
    """
    task, told = evaluation.task, submission.tasks[evaluation.task.name]
    if told.get("jobs") != task.digest or told.get("task") != task.fingerprint:
        raise HpcgymError("it was run with other jobs or rules than the suite has")
    names = [episode.name for episode in evaluation.slices]
    if told["slices"] != names:
        raise HpcgymError(f"it has other slices than the {len(names)} of the task")
    seeds = told["seeds"]
    if seeds not in ([0], list(task.seeds)) or (told.get("trained") and len(seeds) == 1):
        raise HpcgymError(f"it has seeds {seeds}, not {list(task.seeds)}")
    proofs: tuple[str, ...] = ()
    longest = np.empty((len(seeds), len(names)))
    for row, seed in enumerate(seeds):
        for place, episode in enumerate(evaluation.slices):
            where = f"{episode.name}, seed {seed}"
            try:
                result = evaluation.result(submission.kept(task.name, seed, place), episode)
                proofs = validate_schedule(served(result) if evaluation.surrounded else result)
                metrics = evaluation.metrics(result, episode)
            except (HpcgymError, ArithmeticError, LookupError) as error:
                raise HpcgymError(f"{where}: {error}") from None
            _compare(metrics, told["metrics"], row, place, where)
            longest[row, place] = metrics[LONGEST]
    return (
        f"{counted(len(names), 'slice')} x {counted(len(seeds), 'seed')}; {', '.join(proofs)}",
        longest,
    )


def _compare(metrics: dict[str, float], told: Any, row: int, place: int, where: str) -> None:
    """Raise an HpcgymError for a metric that is told otherwise than it is."""
    for name in METRICS:
        here, there = metrics[name], told[name][row][place]
        if not abs(here - there) <= _ALIKE * max(abs(here), abs(there), 1.0):
            raise HpcgymError(f"{where}: {name} is told as {there:.10g}, and is {here:.10g}")


def served(result: Result) -> Result:
    """Return a schedule in which all jobs start, so that it can be proved whole.

    Where an episode was truncated some have not started. They are put behind the last end of the
    others, one after another, each as soon as it is there and the one before it has ended: what is
    proved of the others remains as it is, and of these nothing is claimed.

    Raises
    ------
    HpcgymError : a start time below -1, or one so late that an end would be no number.
    """
    start = np.array(result.start)
    if start.min() < -1 or start.max() > _LATEST_S:
        raise HpcgymError("a start time is below -1, or beyond 2^52 s")
    left = start < 0
    clock = int((start + result.run_time)[~left].max(initial=0))
    for row in np.flatnonzero(left).tolist():
        start[row] = max(clock, int(result.workload.submit_time[row]))
        clock = int(start[row] + result.run_time[row])
    return replace(result, start=start)
