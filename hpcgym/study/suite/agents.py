"""Agents by their names in a task, and the trainings that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcgym.agents import TRAINED, import_agent
from hpcgym.baselines.chance import RANDOM
from hpcgym.errors import HpcgymError
from hpcgym.files import is_there, sha256_of
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.evaluation.policies import find_policy, of_shared_nodes, scheduler_of
from hpcgym.study.evaluation.user_policies import acts
from hpcgym.study.suite.tasks import Task, TaskLog, reference_of, tasks

#: The schedulers that these names stand for where jobs share nodes.
_OF_PAIRS = {"easy": "easy-co", "sjf": "sjf-co"}

#: The scheduler that is to be beaten in a task.
REFERENCE = "reference"


def found_agent(agent: str, task: Task, log: TaskLog) -> Any:
    """Return the scheduler or the policy of a name, for a log of a task; nothing is trained.

    Parameters
    ----------
    agent : ``reference``; ``random``, which is None here; a name of :data:`hpcgym.agents.TRAINED`
        or of a scheduler, a file of a saved agent, or ``package.module:Class``; see
        :func:`hpcgym.study.evaluate`.

    Raises
    ------
    HpcgymError : it is not one of these, or cannot act in this task.
    """
    if agent == REFERENCE:
        return reference_of(task, log)
    if agent == RANDOM:
        return None  # it is made where it acts
    if agent in TRAINED:
        module, kind = TRAINED[agent]
        return getattr(import_agent(module), kind)()
    pairs = task.kind == "pairs"
    policy = find_policy(_OF_PAIRS.get(agent, agent) if pairs else agent)
    if of_shared_nodes(policy) and not pairs:
        raise HpcgymError(f"{agent} is for jobs that share nodes, and in {task.name} none do")
    if acts(policy) or of_shared_nodes(policy):
        return policy
    if pairs:
        raise HpcgymError(f"{agent} does not know nodes that jobs share, as in {task.name}")
    return scheduler_of(policy, {})


def is_trained(agent: str, policy: Any) -> bool:
    """Tell whether an agent is trained here: it has ``train``, and is no file."""
    saved = digest_of_agent(agent) is not None
    return not (saved or isinstance(policy, Scheduler)) and callable(getattr(policy, "train", None))


def training_of(task: Task, policy: Any) -> Task:
    """Return the task whose training an agent uses in a task: the first with the same training.

    An agent may declare that it learns the same for several kinds of decisions: with
    ``trains_as = {"select": "order"}`` it is trained for "order" only, if logs, options, steps and
    seeds are the same.
    """
    task = tasks()[task.like] if task.like else task
    kind = getattr(policy, "trains_as", {}).get(task.kind, task.kind)

    def learned(other: Task) -> Any:
        logs = [
            (log, log in other.logs) for log in other.training
        ]  # of those that are played a part
        return logs, dict(other.options), other.window, other.share, other.steps, other.seeds

    alike = (
        other
        for other in tasks().values()
        if other.kind == kind and not other.like and learned(other) == learned(task)
    )
    return next(alike, task)


def digest_of_agent(agent: str) -> str | None:
    """Return the SHA-256 of an agent's file; None if the agent is no file."""
    return sha256_of(Path(agent)) if is_there(agent) else None
