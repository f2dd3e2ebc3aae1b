"""Proofs of a submission: its schedules are possible, and its metrics are theirs.

No code of the agent is run. What is read of the folder is start times, and nodes where jobs have
such of their own; jobs, run times, machine and limits are the task's. So what is proved is that
somebody who may choose starts could have made this schedule, and that its metrics are as told. It
is not proved who chose them, nor that nobody looked at run times beforehand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.chance import RANDOM
from hpcgym.errors import HpcgymError
from hpcgym.evaluation.intervals import bootstrap
from hpcgym.naming import counted
from hpcgym.schedule.result import Result
from hpcgym.suite.ground import LONGEST, METRICS, Ground
from hpcgym.suite.submissions import Submission, easy_of, player
from hpcgym.suite.tasks import Task, find_tasks, tasks
from hpcgym.validation.validate import validate_schedule

# --- What a task can tell -------------------------------------------------------------------------

Floats = NDArray[np.float64]

#: Who is told apart: chance, and rules that are known to differ; where jobs share nodes, some of
#: those that place them.
POLICIES = (RANDOM, "sjf", "saf", "f1")
OF_PAIRS = ("filler-co", "ljf-co", "popularity-co", "sjf-co")

#: (digest of jobs, window, part, policy, kind of task if it acts) -> slowdowns of slices.
Known = dict[tuple[str, int, str, str, str], Floats]


@dataclass(frozen=True)
class Told:
    """What a task tells of policies.

    Attributes
    ----------
    task : its id.
    slices : their number.
    ends : policy -> the interval of its gain over EASY, the best last.
    paired : (policy, other) in the same order -> the interval of the other's gain over it.
    """

    task: str
    slices: int
    ends: Mapping[str, tuple[float, float]]
    paired: Mapping[tuple[str, str], tuple[float, float]]

    @property
    def alike(self) -> list[tuple[str, str]]:
        """Pairs of policies whose intervals overlap."""
        pairs = combinations(self.ends.items(), 2)
        return [(a, b) for (a, one), (b, two) in pairs if one[1] >= two[0] and two[1] >= one[0]]

    @property
    def alike_in_pairs(self) -> list[tuple[str, str]]:
        """Pairs of policies that are not told apart slice by slice either."""
        return [pair for pair, (low, high) in self.paired.items() if low <= 0 <= high]

    @property
    def text(self) -> str:
        """All of it in a line."""
        shown = ", ".join(f"{name} {a:.2f} to {b:.2f}" for name, (a, b) in self.ends.items())
        alike, in_pairs = map(_listed, (self.alike, self.alike_in_pairs))
        return (
            f"{self.task}: {self.slices} slices; log(EASY / policy): {shown}; alike: {alike}; also"
            f" slice by slice: {in_pairs}"
        )


def _listed(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(" and ".join(pair) for pair in pairs) or "none"


def slowdowns(ground: Ground, policy: str) -> Floats:
    """Return the mean bounded slowdown of a policy in each slice of a task, (slices,)."""
    name = METRICS[0]
    made = easy_of(ground.task) if policy == "easy" else player(policy, ground).make(0)
    return np.array(
        [
            ground.metrics(ground.result(ground.play(made, one), one), one)[name]
            for one in ground.slices
        ]
    )


def told_of(task: str, easy: Floats, values: Mapping[str, Floats], resamples: int = 2000) -> Told:
    """Return what mean bounded slowdowns of slices, (slices,) each, tell of policies."""
    gains = {name: np.log(easy / one) for name, one in values.items()}
    order = sorted(gains, key=lambda name: float(gains[name].mean()))
    pairs = [*combinations(order, 2)]
    columns = [gains[name] for name in order] + [gains[two] - gains[one] for one, two in pairs]
    low, high = bootstrap(np.stack(columns, axis=1), resamples)
    every = [*zip(low.tolist(), high.tolist(), strict=True)]
    ends = dict(zip(order, every[: len(order)], strict=True))
    paired = dict(zip(pairs, every[len(order) :], strict=True))
    return Told(task, len(easy), ends, paired)


def told_by(task: Task, part: str = "test", known: Known | None = None) -> Told:
    """Return what a part of a task tells of policies: it plays them.

    Parameters
    ----------
    known : what was found before is taken from here, and what is found is added. Schedulers do the
        same whatever an agent decides: they are simulated once for all tasks of a trace.

    Raises
    ------
    HpcgymError : its jobs are not on this machine.
    """
    known = {} if known is None else known
    with Ground(task, part) as ground:

        def of(policy: str) -> Floats:
            kind = task.kind if policy == RANDOM else ""
            key = (task.digest, task.window, part, policy, kind)
            if key not in known:
                known[key] = slowdowns(ground, policy)
            return known[key]

        policies = OF_PAIRS if task.kind == "pairs" else POLICIES
        return told_of(task.name, of("easy"), {name: of(name) for name in policies})


def main(names: Sequence[str]) -> None:
    """Print what tasks tell, a line each."""
    chosen = ",".join(name for name in names if name != "--train")
    known: Known = {}
    for task in find_tasks(chosen or None):
        print(told_by(task, "train" if "--train" in names else "test", known).text, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HpcgymError as error:
        sys.exit(f"hpcgym: {error}")


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
    longest : (seeds, slices) the longest wait, :data:`hpcgym.suite.ground.LONGEST` [s], of what was
        proved. It is not told, but computed here.
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
    submission : what :func:`hpcgym.suite.submissions.read` returns.
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
        with Ground(tasks()[name]) as ground:
            found.append(prove(submission, ground))
    return found


def prove(submission: Submission, ground: Ground) -> Proof:
    """Prove one task of a submission, see :func:`verify`."""
    try:
        return Proof(ground.task.name, True, *_proved(submission, ground))
    except HpcgymError as error:
        return Proof(ground.task.name, False, str(error))


def _proved(submission: Submission, ground: Ground) -> tuple[str, NDArray[np.float64]]:
    """Return what was proved of a task, and longest waits.

    Else an HpcgymError has the first thing that is wrong.
    """
    task, told = ground.task, submission.tasks[ground.task.name]
    if told.get("jobs") != task.digest or told.get("task") != task.fingerprint:
        raise HpcgymError("it was played with other jobs or rules than the suite has")
    names = [episode.name for episode in ground.slices]
    if told["slices"] != names:
        raise HpcgymError(f"it has other slices than the {len(names)} of the task")
    seeds = told["seeds"]
    if seeds not in ([0], list(task.seeds)) or (told.get("trained") and len(seeds) == 1):
        raise HpcgymError(f"it has seeds {seeds}, not {list(task.seeds)}")
    proofs: tuple[str, ...] = ()
    longest = np.empty((len(seeds), len(names)))
    for row, seed in enumerate(seeds):
        for place, episode in enumerate(ground.slices):
            where = f"{episode.name}, seed {seed}"
            try:
                result = ground.result(submission.kept(task.name, seed, place), episode)
                proofs = validate_schedule(served(result) if ground.surrounded else result)
                metrics = ground.metrics(result, episode)
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
