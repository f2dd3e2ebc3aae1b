"""Submissions: a folder that says what an agent did in tasks of the suite.

``submission.json`` says who played, on which jobs, and the metrics of each slice; ``schedules.npz``
has the schedules themselves, so that others can work the metrics out again. What is kept of
trainings is in :mod:`hpcgym.suite.trainings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number
from hpcgym.evaluation.slices import Progress, silent
from hpcgym.files import arrays_of, json_file, shaped
from hpcgym.files.plain import json_text
from hpcgym.files.writing import check_writable, whole, whole_text
from hpcgym.naming import name_problem
from hpcgym.suite.agents import Player, digest_of_agent, player
from hpcgym.suite.ground import METRICS, Ground, Kept
from hpcgym.suite.tasks import Task, suite, tasks
from hpcgym.suite.trainings import made
from hpcgym.version import __version__

FACTS, SCHEDULES = "submission.json", "schedules.npz"

_KIND = "a submission"


@dataclass
class Submission:
    """What an agent did.

    Attributes
    ----------
    folder : where it is.
    agent : what it was called.
    tasks : task -> what is said of it: ``task`` and ``jobs`` (their fingerprints), ``trained``,
        ``seeds``, ``slices`` (names), and of each metric ``[seed][slice]``.
    arrays : "TASK/SEED/SLICE/ARRAY" -> array.
    sha256 : of the agent's file, or None.
    """

    folder: Path
    agent: str
    tasks: dict[str, dict[str, Any]]
    arrays: dict[str, NDArray[Any]]
    sha256: str | None = None

    def kept(self, task: str, seed: int, place: int) -> dict[str, NDArray[Any]]:
        """Return the arrays of a slice."""
        begin = f"{task}/{seed}/{place}/"
        mine = {key: array for key, array in self.arrays.items() if key.startswith(begin)}
        return {key.removeprefix(begin): array for key, array in mine.items()}

    def values(self, task: str, metric: str = METRICS[0]) -> NDArray[np.float64]:
        """Return a metric as it was told, (seeds, slices)."""
        return np.array(self.tasks[task]["metrics"][metric], np.float64)

    def write(self) -> None:
        """Write both files, the schedules first."""
        with whole(self.folder / SCHEDULES, folders=True) as part, part.open("wb") as file:
            np.savez_compressed(file, **self.arrays)  # type: ignore[arg-type]
        facts = {
            "suite": suite(),
            "hpcgym": __version__,
            "agent": self.agent,
            "sha256": self.sha256,
            "tasks": self.tasks,
        }
        with whole_text(self.folder / FACTS) as text:
            text.write(json_text(facts))


def read(folder: str | Path) -> Submission:
    """Return the submission of a folder.

    Raises
    ------
    HpcgymError : there is none, it is of another suite, or damaged.
    """
    folder = Path(folder)
    path = folder / FACTS
    if not path.is_file():
        raise HpcgymError(f"{folder} holds no submission: there is no {FACTS} in it")
    with shaped(path, _KIND):
        facts = json_file(path)
        if facts["suite"] != suite():
            raise HpcgymError(f"{path} is of {facts['suite']}, and this is {suite()}")
        told = {str(name): dict(one) for name, one in facts["tasks"].items()}
        for name, one in told.items():
            _check(path, name, one)
        agent, sha256 = facts["agent"], facts["sha256"]
        if problem := name_problem(agent):
            raise HpcgymError(f"{path}: the name of the agent must be {problem}")
    return Submission(folder, agent, told, arrays_of(folder / SCHEDULES), sha256)


def _check(path: Path, name: str, told: Mapping[str, Any]) -> None:
    """Raise an HpcgymError for a task that is told in another form."""
    if name not in tasks():
        raise HpcgymError(f"{path}: there is no task {name!r} in {suite()}")
    if not all(type(seed) is int for seed in told["seeds"]):  # of Python, False is equal to 0
        raise HpcgymError(f"{path}: seeds of {name} must be whole numbers, not {told['seeds']!r}")
    size = (len(told["seeds"]), len(told["slices"]))
    for metric in METRICS:
        rows = told["metrics"][metric]
        right = len(rows) == size[0] and all(len(row) == size[1] for row in rows)
        if not (right and all(is_number(value) for row in rows for value in row)) or 0 in size:
            raise HpcgymError(
                f"{path}: {metric} of {name} must have a number for each of {size[0]} seeds and"
                f" {size[1]} slices"
            )


def run(
    agent: str,
    chosen: Sequence[Task],
    folder: str | Path,
    *,
    named: bool = False,
    progress: Progress | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Submission:
    """Let an agent play tasks, and write down what it did; go on with what is there.

    Tasks that the folder has already are not played again.

    Parameters
    ----------
    agent : see :func:`hpcgym.suite.agents.player`.
    chosen : the tasks.
    folder : of the submission; it is made.
    named : whether all of these tasks must be played; else those that the agent cannot play, or
        whose jobs are not here, are left out, and ``note`` is told.
    progress : as of :func:`hpcgym.evaluation.evaluate`.

    Raises
    ------
    HpcgymError : an agent that is none, a task that it cannot play, what it did wrong there, or a
        folder with another submission, or that cannot be written.
    """
    done = _begun(Path(folder), agent)
    left = [task for task in chosen if task.name not in done.tasks]
    if len(left) < len(chosen):
        note(f"{folder} has {len(chosen) - len(left)} of these tasks already")
    held: list[str] = []  # why tasks are left out, until one is played: if none is, one will do
    for task in left:
        try:
            ground = Ground(task)
            with ground:
                who = player(agent, ground)
                check_writable(done.folder / FACTS, folders=True)  # before hours of training
                _play(done, ground, agent, who, progress or silent)
        except _PlayError as error:
            raise HpcgymError(error) from None
        except HpcgymError as error:
            if named:
                raise HpcgymError(f"{task.name}: {error}") from None
            held.append(f"left out: {task.name}: {error}")
        else:
            done.write()
        if done.tasks:
            for text in held:
                note(text)
            held.clear()
    if not done.tasks:
        first = held[0].removeprefix("left out: ")
        raise HpcgymError(f"{agent} plays none of these tasks: {first}")
    return done


class _PlayError(HpcgymError):
    """What an agent did wrong while it played: that ends the run, whatever the task."""


def _begun(folder: Path, agent: str) -> Submission:
    """Return the submission that a folder holds, or a new one."""
    sha256 = digest_of_agent(agent)
    if problem := name_problem(agent):
        raise HpcgymError(f"the name of an agent must be {problem}")
    if not (folder / FACTS).exists():
        return Submission(folder, agent, {}, {}, sha256)
    found = read(folder)
    if (found.agent, found.sha256) != (agent, sha256):
        same = "an older file of " if found.agent == agent else ""
        raise HpcgymError(f"{folder} holds the submission of {same}{found.agent}: choose another")
    return found


def _play(done: Submission, ground: Ground, agent: str, who: Player, progress: Progress) -> None:
    """Let an agent play a task, and add what it did."""
    task, slices = ground.task, ground.slices
    found: dict[str, list[list[float]]] = {metric: [] for metric in METRICS}
    arrays: dict[str, NDArray[Any]] = {}
    with progress(f"{agent} on {task.name}", len(who.seeds) * len(slices)) as step:
        for seed in who.seeds:
            policy = _made(who, seed, agent, task, done.folder)
            rows = []
            for place, episode in enumerate(slices):
                step(f"{agent} on {task.name}: {episode.name}")
                kept = _kept(ground, policy, episode, agent)
                arrays |= {f"{task.name}/{seed}/{place}/{k}": a for k, a in kept.items()}
                rows.append(ground.metrics(ground.result(kept, episode), episode))
            for metric, values in found.items():
                values.append([row[metric] for row in rows])
    done.arrays |= arrays
    done.tasks[task.name] = {
        "task": task.fingerprint,
        "jobs": task.digest,
        "trained": who.trained,
        "steps": task.steps if who.trained else None,
        "seeds": list(who.seeds),
        "slices": [episode.name for episode in slices],
        "metrics": found,
    }


def _made(who: Player, seed: int, agent: str, task: Task, folder: Path) -> Any:
    """Return the policy of a seed, trained."""
    try:
        return made(who, agent, folder, task.name, seed)
    except Exception as error:  # whatever a user's training does
        where = f"{agent} on {task.name}, training with seed {seed}"
        raise _PlayError(f"{where}: {_told(error)}") from None


def _kept(ground: Ground, policy: Any, episode: Any, agent: str) -> Kept:
    """Return the schedule of a slice."""
    try:
        return ground.play(policy, episode)
    except HpcgymError as error:
        if hasattr(policy, "act"):  # else what a scheduler cannot do
            raise _PlayError(_where(agent, ground, episode, error)) from None
        raise
    except Exception as error:  # whatever a user's policy does
        raise _PlayError(_where(agent, ground, episode, error)) from None


def _where(agent: str, ground: Ground, episode: Any, error: Exception) -> str:
    return f"{agent} on {ground.task.name}, {episode.name}: {_told(error)}"


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, HpcgymError) else f"{type(error).__name__}: {error}"
