"""What a task can tell: which policies are apart by more than the choice of slices explains.

    python -m hpcgym.suite.telling mini kth-select
    python -m hpcgym.suite.telling --train budget-power

A task in which chance and the best rules are alike says nothing of an agent. So some that should
differ are played on all slices of the test part, and of each the mean over slices of log(EASY's
mean bounded slowdown / its own) is given a 95 % interval, of the same resamples for all. Two
policies whose intervals do not overlap are told apart. So are, more finely, two of which the
interval of the mean of log(one / other), slice by slice, does not hold 0: these pairs have met the
same slices, and what is between calm and crowded ones drops out. With ``--train`` on the train
part, which has three times as many slices: whether it is the task that cannot tell, or the number
of slices.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.chance import RANDOM
from hpcgym.errors import HpcgymError
from hpcgym.evaluation.intervals import bootstrap
from hpcgym.suite.agents import easy_of, player
from hpcgym.suite.ground import METRICS, Ground
from hpcgym.suite.tasks import Task, find_tasks

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
