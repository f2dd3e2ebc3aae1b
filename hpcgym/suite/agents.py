"""What plays a task: references by name, schedulers, saved agents, and what users bring."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hpcgym.agents import TRAINED, import_agent
from hpcgym.agents.logs import Log
from hpcgym.agents.released import is_released
from hpcgym.baselines.chance import RANDOM
from hpcgym.baselines.coschedulers import COSCHEDULERS
from hpcgym.baselines.pair_policies import PAIR_POLICIES, PairPolicy
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.evaluation.brought import acts, own_name
from hpcgym.evaluation.lineup import STATIC, find_policy, scheduler_of
from hpcgym.files import bytes_of
from hpcgym.scheduler.rules import Scheduler
from hpcgym.suite.freezing import STATIC as STATIC_RULES
from hpcgym.suite.ground import Ground
from hpcgym.suite.tasks import Task, environment

#: Names of references; other schedulers may be named as well.
REFERENCES = (RANDOM, "fcfs", "easy", "sjf", "saf", "f1", STATIC, "saf-typical")

#: What they are where jobs share nodes; others do not know it.
_OF_PAIRS = {"easy": "easy-co", "sjf": "sjf-co"}

_MOST_AGENT = 1 << 32  # bytes of a file


@dataclass(frozen=True)
class Player:
    """What plays a task.

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


def player(agent: str, ground: Ground) -> Player:
    """Return what plays a task under a name.

    Parameters
    ----------
    agent : a name of :data:`REFERENCES`, of :data:`hpcgym.agents.TRAINED` or of a scheduler, a file
        of a saved agent, or ``package.module:Class``; see :func:`hpcgym.evaluation.evaluate`. If it
        is no file and has a method ``train(make, seed, steps)``, this is called once for each seed
        of the task, of an object of its own, before it plays. ``make(part="train",
        num_envs=None)`` returns the task's environment with the jobs of its train part, or those of
        "validation". A ``train`` that has an argument ``log`` is given one, see
        :mod:`hpcgym.agents.logs`.

    Raises
    ------
    HpcgymError : it is none of these, or cannot play this task.
    """
    task = ground.task
    if agent == RANDOM:
        ground.chance(0)
        return Player(task.seeds, False, ground.chance)
    if agent == STATIC:
        best = static_of(task)
        return Player((0,), False, lambda seed: best)
    found = _found(agent, task)
    ground.check(agent, found)
    if agent in TRAINED:  # which know what they can do before they have learned it
        found.check(ground.env)
    saved = digest_of_agent(agent) is not None or is_released(agent)
    if saved or not callable(getattr(found, "train", None)) or isinstance(found, Scheduler):
        return Player((0,), False, lambda seed: found)
    return Player(task.seeds, True, partial(_trained, agent, task))


def easy_of(task: Task) -> Scheduler:
    """Return the scheduler that a score of 0 stands for."""
    return COSCHEDULERS[task.easy] if task.kind == "pairs" else find_scheduler(task.easy)


def static_of(task: Task) -> Scheduler:
    """Return the scheduler that a score of 1 stands for."""
    if isinstance(task.best, str):
        return COSCHEDULERS[task.best]
    return STATIC_RULES.but(policy=dict(task.best))


def digest_of_agent(agent: str) -> str | None:
    """Return the SHA-256 of the file that an agent is; None if it is none."""
    if not os.path.isfile(agent):
        return None
    return hashlib.sha256(bytes_of(agent, _MOST_AGENT, HpcgymError)).hexdigest()


def _found(agent: str, task: Task) -> Any:
    """Return a scheduler, or a policy that acts."""
    if task.kind == "pairs":
        name = _OF_PAIRS.get(agent, agent)
        if name in COSCHEDULERS:
            return find_scheduler(name)
        if name in PAIR_POLICIES:
            return PairPolicy(name)
    if agent in TRAINED:
        module, kind = TRAINED[agent]
        return getattr(import_agent(module), kind)()
    found = find_policy(agent)
    if acts(found):
        return found
    if task.kind == "pairs":
        raise HpcgymError(f"{agent} does not know nodes that jobs share, as in {task.name}")
    return found if isinstance(found, Scheduler) else scheduler_of(found, {})


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
