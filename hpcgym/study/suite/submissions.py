"""Submissions: agents on tasks of the suite, and what is kept of that in a folder."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents import TRAINED, ending_of, import_agent
from hpcgym.agents.practice import Log, csv_log
from hpcgym.agents.saved import is_released
from hpcgym.baselines.chance import RANDOM
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError, is_number
from hpcgym.files import bytes_of, json_file, shaped
from hpcgym.files.tables import arrays_of
from hpcgym.files.writing import check_writable, json_text, whole, whole_text
from hpcgym.naming import name_problem
from hpcgym.progress import Progress, silent
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.evaluation.policies import STATIC, find_policy, of_shared_nodes, scheduler_of
from hpcgym.study.evaluation.user_policies import acts, own_name
from hpcgym.study.suite.evaluation import METRICS, Evaluation
from hpcgym.study.suite.evaluation import STATIC as STATIC_RULES
from hpcgym.study.suite.tasks import Task, environment, suite, tasks
from hpcgym.version import __version__

# --- Agents ---------------------------------------------------------------------------------------

#: What they are where jobs share nodes; others do not know it.
_OF_PAIRS = {"easy": "easy-co", "sjf": "sjf-co"}

_MOST_AGENT = 1 << 32  # bytes of a file


@dataclass(frozen=True)
class Agent:
    """What is evaluated on a task: an agent, or a scheduler.

    Attributes
    ----------
    seeds : of its trainings, or of chance; (0,) where there is neither.
    trained : whether it is trained here.
    make : returns the policy or scheduler of a seed, trained; a log may follow the seed, which is
        told how the training goes, if the agent says so.
    """

    seeds: tuple[int, ...]
    trained: bool
    make: Callable[..., Any]


def agent_of(agent: str, evaluation: Evaluation) -> Agent:
    """Return what is evaluated on a task under a name.

    Parameters
    ----------
    agent : ``random``, a name of :data:`hpcgym.agents.TRAINED` or of a scheduler, a file
        of a saved agent, or ``package.module:Class``; see :func:`hpcgym.study.evaluate`. If it
        is no file and has a method ``train(make, seed, steps)``, this is called once for each seed
        of the task, of an object of its own, before it acts. ``make(part="train",
        num_envs=None)`` returns the task's environment with the jobs of its train part, or those of
        "validation". A ``train`` that has an argument ``log`` is given one, see
        :mod:`hpcgym.agents.practice`.

    Raises
    ------
    HpcgymError : it is none of these, or cannot act in this task.
    """
    task = evaluation.task
    if agent == RANDOM:
        evaluation.chance(0)
        return Agent(task.seeds, False, evaluation.chance)
    if agent == STATIC:
        best = static_of(task)
        return Agent((0,), False, lambda seed: best)
    found = _found(agent, task)
    if agent in TRAINED:  # which know what they can do before they have learned it
        found.check(evaluation.env)
    else:
        evaluation.check(agent, found)
    saved = digest_of_agent(agent) is not None or is_released(agent)
    if saved or not callable(getattr(found, "train", None)) or isinstance(found, Scheduler):
        return Agent((0,), False, lambda seed: found)
    return Agent(task.seeds, True, partial(_trained, agent, task))


def easy_of(task: Task) -> Scheduler:
    """Return the scheduler that a score of 0 stands for."""
    return find_scheduler(task.easy)


def static_of(task: Task) -> Scheduler:
    """Return the scheduler that a score of 1 stands for."""
    if isinstance(task.best, str):
        return find_scheduler(task.best)
    return STATIC_RULES.but(policy=dict(task.best))


def digest_of_agent(agent: str) -> str | None:
    """Return the SHA-256 of the file that an agent is; None if it is none."""
    if not os.path.isfile(agent):
        return None
    return hashlib.sha256(bytes_of(agent, _MOST_AGENT, HpcgymError)).hexdigest()


def _found(agent: str, task: Task) -> Any:
    """Return a scheduler, or a policy that acts."""
    if agent in TRAINED:
        module, kind = TRAINED[agent]
        return getattr(import_agent(module), kind)()
    pairs = task.kind == "pairs"
    found = find_policy(_OF_PAIRS.get(agent, agent) if pairs else agent)
    if of_shared_nodes(found) and not pairs:
        raise HpcgymError(f"{agent} is for jobs that share nodes, and in {task.name} none do")
    if acts(found) or of_shared_nodes(found):
        return found
    if pairs:
        raise HpcgymError(f"{agent} does not know nodes that jobs share, as in {task.name}")
    return scheduler_of(found, {})


def _trained(agent: str, task: Task, seed: int, log: Log | None = None) -> Any:
    """Return a new agent that was trained with a seed."""
    policy = _found(agent, task)

    def make(part: str = "train", num_envs: int | None = None, **more: Any) -> Any:
        if part == "test":
            raise HpcgymError(f"{own_name(policy)}: nobody trains on the test part")
        return environment(task, part, num_envs, **more)

    told = "log" in inspect.signature(policy.train).parameters
    policy.train(make, seed, task.steps, **({"log": log} if told else {}))
    return policy


# --- Submissions ----------------------------------------------------------------------------------

FACTS, SCHEDULES, TRAININGS = "submission.json", "schedules.npz", "trainings"

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
    """Evaluate an agent on tasks, and write down what it did; go on with what is there.

    Tasks that the folder has already are not run again.

    Parameters
    ----------
    agent : see :func:`hpcgym.study.suite.submissions.agent_of`.
    chosen : the tasks.
    folder : of the submission; it is made.
    named : whether all of these tasks must be run; else those in which the agent cannot act, or
        whose jobs are not here, are left out, and ``note`` is told.
    progress : as of :func:`hpcgym.study.evaluate`.

    Raises
    ------
    HpcgymError : an agent that is none, a task in which it cannot act, what it did wrong there, or
        a folder with another submission, or that cannot be written.
    """
    done = _begun(Path(folder), agent)
    left = [task for task in chosen if task.name not in done.tasks]
    if len(left) < len(chosen):
        note(f"{folder} has {len(chosen) - len(left)} of these tasks already")
    held: list[str] = []  # why tasks are left out, until one is run: if none is, one will do
    for task in left:
        try:
            with Evaluation(task) as evaluation:
                who = agent_of(agent, evaluation)
                check_writable(done.folder / FACTS, folders=True)  # before hours of training
                _evaluate(done, evaluation, agent, who, progress or silent)
        except _AgentError as error:
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


class _AgentError(HpcgymError):
    """What an agent did wrong while it acted: that ends the run, whatever the task."""


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


def _evaluate(
    done: Submission, evaluation: Evaluation, agent: str, who: Agent, progress: Progress
) -> None:
    """Evaluate an agent on a task, and add what it did."""
    task, slices = evaluation.task, evaluation.slices
    found: dict[str, list[list[float]]] = {metric: [] for metric in METRICS}
    arrays: dict[str, NDArray[Any]] = {}
    with progress(f"{agent} on {task.name}", len(who.seeds) * len(slices)) as step:
        for seed in who.seeds:
            with _blaming(f"{agent} on {task.name}, training with seed {seed}"):
                policy = _made(who, agent, done.folder / TRAININGS / task.name, seed)
            rows = []
            for place, episode in enumerate(slices):
                step(f"{agent} on {task.name}: {episode.name}")
                # a scheduler that cannot run a task is no mistake of the user's code
                with _blaming(f"{agent} on {task.name}, {episode.name}", acts(policy)):
                    kept = evaluation.run(policy, episode)
                arrays |= {f"{task.name}/{seed}/{place}/{k}": a for k, a in kept.items()}
                rows.append(evaluation.reached(kept, episode))
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


def _made(who: Agent, agent: str, folder: Path, seed: int) -> Any:
    """Return the policy of a seed; what its training leaves is kept in a folder."""
    if not who.trained:
        return who.make(seed)
    policy = who.make(seed, csv_log(folder / f"{seed}.csv"))
    if callable(getattr(policy, "save", None)):
        folder.mkdir(parents=True, exist_ok=True)
        policy.save(folder / f"{seed}{ending_of(agent) if agent in TRAINED else ''}")
    return policy


@contextmanager
def _blaming(where: str, anyway: bool = True) -> Iterator[None]:
    """Turn what a user's code does wrong into an _AgentError; HpcgymErrors only if ``anyway``."""
    try:
        yield
    except Exception as error:  # whatever a user's code does
        known = isinstance(error, HpcgymError)
        if known and not anyway:
            raise
        raise _AgentError(
            f"{where}: {error if known else f'{type(error).__name__}: {error}'}"
        ) from None
