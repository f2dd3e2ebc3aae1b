#!/usr/bin/env python3
"""What makers of the suite need: what a new id is frozen with, and the files of a release.

    python scripts/freeze_suite.py freeze mini kth

prints the digest of the jobs of traces of ``tasks.toml``, and their best static scheduler, as lines
of that file. That scheduler is chosen on the train part alone: of 200 weights over six features,
with EASY's backfilling, that with the least mean bounded slowdown over all its jobs in one
simulation; under limits over the windows of the part; where jobs share nodes, of the co-schedulers
by name.

    python scripts/freeze_suite.py tell pool-order

prints which policies a task tells apart.

    python scripts/freeze_suite.py release FOLDER SUBMISSION...

copies the agents of submissions to a folder, under names such as kth-order-job-ppo-0.pt, and writes
released.json beside them, which tells the digest of each. With that file in agents/ and the others
at :data:`hpcgym.agents.saved.RELEASE`, ``hpcgym.agents.load("suite:kth-order/job-ppo/0")`` finds
them. Nobody's own classes are packed: only files that ``hpcgym.agents.load`` reads without running
code of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents import contents_of, ending_of
from hpcgym.agents.saved import REGISTRY
from hpcgym.baselines.chance import RANDOM
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.errors import HpcgymError, unknown
from hpcgym.files import bytes_of
from hpcgym.files.writing import whole, whole_json
from hpcgym.progress import silence
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.study.evaluation.platform import platform_of
from hpcgym.study.evaluation.references import best_static
from hpcgym.study.intervals import bootstrap
from hpcgym.study.suite.evaluation import METRICS, STATIC, Evaluation
from hpcgym.study.suite.submissions import TRAININGS, agent_of, easy_of, read
from hpcgym.study.suite.tasks import Task, digest_of, environment, find_tasks, part_of, tasks
from hpcgym.workload import load_workload
from hpcgym.workload.io.files import sha256_of

BUDGET = 200


def frozen(task: Task, budget: int = BUDGET) -> tuple[Task, Mapping[str, float] | str]:
    """Return a task with the digest of the jobs that are here, and its best static scheduler."""
    jobs = load_workload(task.workload, task.clean)
    known = replace(task, digest=digest_of(jobs), processors=jobs.processors)
    train, _ = part_of(jobs, known, "train")
    if task.kind == "pairs":
        return known, _best_named(known)
    if task.kind == "power":
        with environment(known, "train") as env:
            platform, episodes = platform_of(env.unwrapped), env.unwrapped.episodes
            parts = [episodes.workload_of(one) for one in episodes.listing]
        assert platform.limits is not None
        rules = STATIC.but(power=platform.limits.power)
        return known, best_static(parts, WEIGHTED_FEATURES, rules, budget, 0, silence, platform)
    return known, best_static([train], WEIGHTED_FEATURES, STATIC, budget, 0, silence)


def _best_named(task: Task) -> str:
    """Return the co-scheduler with the least mean bounded slowdown over the train windows."""
    with environment(task, "train") as env:
        platform, episodes = platform_of(env.unwrapped), env.unwrapped.episodes
        parts = [episodes.workload_of(one) for one in episodes.listing]
    means = {
        name: np.mean([platform.simulate(one, rules).metrics["mean_bsld"] for one in parts])
        for name, rules in COSCHEDULERS.items()
    }
    return min(means, key=lambda name: float(means[name]))


def lines_of(task: Task, best: Any) -> str:
    """Return what is to stand in ``tasks.toml``."""
    told = f'"{best}"'
    if not isinstance(best, str):
        told = "{ " + ", ".join(f"{name} = {weight!r}" for name, weight in best.items()) + " }"
    return f'processors = {task.processors}\ndigest = "{task.digest}"\nbest = {told}\n'


_MOST = 1 << 28  # bytes of a file


def pack(output: Path, folders: Sequence[Path]) -> dict[str, dict[str, str]]:
    """Copy the agents of submissions to a folder; return its registry, which is written, too.

    Returns
    -------
    registry : "TASK/AGENT/SEED" -> ``file`` and ``sha256``.

    Raises
    ------
    HpcgymError : no submission, one without agents, a file that is none of an agent, or two agents
        of one name.
    """
    found: dict[str, dict[str, str]] = {}
    for folder in folders:
        done = read(folder)
        files = [
            (task, path)
            for task in done.tasks
            for path in sorted((folder / TRAININGS / task).glob("*"))
            if path.suffix != ".csv"
        ]
        if not files:
            raise HpcgymError(f"{folder} has no files of trained agents")
        for task, path in files:
            agent = contents_of(path)["agent"]
            name = f"{task}/{agent}/{path.stem}"
            if name in found:
                raise HpcgymError(f"{folder}: there are two agents {name}")
            file = f"{task}-{agent}-{path.stem}{ending_of(agent)}"
            with whole(output / file, folders=True) as part:
                part.write_bytes(bytes_of(path, _MOST, HpcgymError))
            found[name] = {"file": file, "sha256": sha256_of(output / file)}
    whole_json(output / REGISTRY.name, found)
    return found


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


def slowdowns(evaluation: Evaluation, policy: str) -> Floats:
    """Return the mean bounded slowdown of a policy in each slice of a task, (slices,)."""
    name = METRICS[0]
    made = easy_of(evaluation.task) if policy == "easy" else agent_of(policy, evaluation).make(0)
    return np.array(
        [evaluation.reached(evaluation.run(made, one), one)[name] for one in evaluation.slices]
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
    with Evaluation(task, part) as evaluation:

        def of(policy: str) -> Floats:
            kind = task.kind if policy == RANDOM else ""
            key = (task.digest, task.window, part, policy, kind)
            if key not in known:
                known[key] = slowdowns(evaluation, policy)
            return known[key]

        policies = OF_PAIRS if task.kind == "pairs" else POLICIES
        return told_of(task.name, of("easy"), {name: of(name) for name in policies})


def main(arguments: Sequence[str]) -> None:
    """Print what traces are to be frozen with, or pack submissions."""
    word, *names = arguments or [""]
    if word == "freeze":
        first = {name.rpartition("-")[0]: task for name, task in reversed([*tasks().items()])}
        for name in names or list(first):
            if name not in first:
                raise HpcgymError(unknown("trace", name, first))
            print(f"[traces.{name}]\n{lines_of(*frozen(first[name]))}", flush=True)
    elif word == "tell":
        known: Known = {}
        for task in find_tasks(",".join(name for name in names if name != "--train") or None):
            print(told_by(task, "train" if "--train" in names else "test", known).text, flush=True)
    elif word == "release" and len(names) > 1:
        output, *folders = map(Path, names)
        print(f"{output}: {len(pack(output, folders))} files of agents, and {REGISTRY.name}")
    else:
        raise HpcgymError(
            "usage: freeze TRACE..., tell [--train] TASK..., or release OUTPUT SUBMISSION..."
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HpcgymError as error:
        sys.exit(f"hpcgym: {error}")
