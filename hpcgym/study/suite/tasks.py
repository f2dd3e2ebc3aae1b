"""The tasks of the suite: what each id stands for, read from ``tasks.toml`` beside this file.

An id never changes its meaning. What is frozen of it: the jobs of its logs by digests, how they are
cleaned, the machines, the environment with all its rules, the replays, what is for training and
what for the test, the steps and seeds of training, and the scheduler that is to be beaten.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.practice import Make
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.envs.core.base import kind_of
from hpcgym.errors import HpcgymError, WorkloadWarning, check_each_once, unknown
from hpcgym.files import toml_file
from hpcgym.files.writing import plain
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.policies.features import spread
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload, load_workload
from hpcgym.workload.archive import is_trace
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.stretching import stretched

FILE = Path(__file__).with_name("tasks.toml")

#: How the names of tasks on logs of one's own begin.
OWN = "own-"

#: How a replay of a whole log is asked for.
_WHOLE: Mapping[str, Any] = {
    "episodes": "whole", "start": "empty", "arrivals": "stop", "horizon": None, "reward": "bsld",
}  # fmt: skip


@dataclass(frozen=True)
class TaskLog:
    """A log.

    Attributes
    ----------
    name : its name in submissions.
    workload, clean : arguments of :func:`hpcgym.load_workload`.
    processors : of the machine; 0: those that the log tells.
    digest : the fingerprint of the jobs; "" of a log whose jobs are not frozen.
    """

    name: str
    workload: str
    clean: str = "default"
    processors: int = 0
    digest: str = ""


@dataclass(frozen=True)
class Task:
    """A task of the suite.

    Attributes
    ----------
    name : its id.
    env_id, options : the environment, with its arguments other than the jobs and their parts.
    logs : logs on which it is played and scored.
    training : logs from which agents learn: the first halves of ``logs``, or generated jobs.
    further : logs on which it may be played if they are named; they do not count. A log with a
        digest is sealed: its workload is a file that only some have.
    like : the task whose training, reference and rules it has; "": its own.
    unseen : whether what was trained or chosen on its logs is refused.
    keeps_promises : whether jobs may not start if that delays the head of the queue by the times
        that jobs request, see :mod:`hpcgym.validation.promises`.
    window : jobs of a slice; 0 if logs are replayed as a whole.
    replays : what times between submissions are multiplied by in each replay of a log.
    share : the share of each log's time, from its beginning, from which agents may learn.
    steps : how many steps of the environment, or simulated jobs, an agent may train, in each
        training; see :mod:`hpcgym.simulation.allowance`.
    seeds : of the trainings.
    easy : name of the scheduler with a score of 0.
    reference, weights : the scheduler to beat, see :func:`reference_of`.
    references : the schedulers among which it was chosen.
    scored : whether it tells chance, EASY and the reference apart; other tasks are for practice.
    """

    name: str
    env_id: str
    options: Mapping[str, Any] = field(hash=False)
    logs: tuple[TaskLog, ...]
    training: tuple[TaskLog, ...]
    further: tuple[TaskLog, ...]
    like: str
    unseen: bool
    keeps_promises: bool
    window: int
    replays: tuple[float, ...]
    share: float
    steps: int
    seeds: tuple[int, ...]
    easy: str
    reference: str
    weights: tuple[float, ...]
    references: tuple[str, ...]
    scored: bool

    @property
    def kind(self) -> str:
        """What an agent decides: the ``action_kind`` of its environment."""
        return kind_of(self.env_id)

    @property
    def fingerprint(self) -> str:
        """A hash of all that is frozen; two tasks with the same are the same."""
        text = json.dumps(
            plain({**asdict(self), "further": None, "references": None}), sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def log(self, name: str) -> TaskLog:
        """Return one of its logs by name, also of the further ones."""
        known = {log.name: log for log in (*self.logs, *self.further)}
        if name not in known:
            raise HpcgymError(unknown(f"log of {self.name}", name, known))
        return known[name]


@cache
def suite() -> str:
    """Return the name of the suite."""
    return str(_contents()["suite"])


@cache
def apart() -> str:
    """Return the log without which tables have means, too; "" for none."""
    return str(_contents().get("apart", ""))


@cache
def tasks() -> Mapping[str, Task]:
    """Return all tasks by their ids."""
    contents = _contents()

    def logs(names: Iterable[str]) -> tuple[TaskLog, ...]:
        made = ({"workload": name, **contents["logs"].get(name, {})} for name in names)
        return tuple(TaskLog(name, **table) for name, table in zip(names, made, strict=True))

    by_name: dict[str, Task] = {}
    for name, own in contents["tasks"].items():
        like = own.get("like", "")
        table = {**contents["tasks"].get(like, {}), **own}
        played = table.get("logs", contents["played"])
        kind = name if name in contents["references"] else kind_of(table["env"])
        among = contents["references"].get(kind, contents["references"]["order"])
        replays = table.get("replays", contents["replays"])
        by_name[name] = Task(
            name=name,
            env_id=table["env"],
            options=table.get("options", {}),
            logs=logs(played),
            training=by_name[like].training if like else logs(table.get("training", played)),
            further=logs(table.get("further", ())),
            like=like,
            unseen=table.get("unseen", False),
            keeps_promises=table.get("keeps_promises", False),
            window=table.get("window", 0),
            replays=tuple(round(table.get("gaps", 1.0) * factor, 6) for factor in replays),
            share=table.get("share", 0.5),
            steps=table["steps"],
            seeds=tuple(contents["seeds"]),
            easy=table.get("easy", "easy"),
            reference=table.get("reference", among[0]),
            weights=tuple(table.get("weights", ())),
            references=tuple(among),
            scored=table.get("scored", True),
        )
    return by_name


def check_unseen(task: Task, seen: Iterable[Any]) -> None:
    """Raise an HpcgymError for an agent that has seen the logs of a task which is for telling.

    Parameters
    ----------
    seen : the names of logs that its record has.
    """
    for name in map(str, seen if task.unseen else ()):
        for log in task.logs:
            if log.name.casefold() in name.casefold():
                raise HpcgymError(
                    f"{task.name} is for what never saw its logs, and this was trained or chosen on"
                    f" {log.name}"
                )


def on_own_logs(task: Task, logs: Iterable[TaskLog]) -> Task:
    """Return a task with other logs, of which agents learn from the first parts.

    Raises
    ------
    HpcgymError : two logs of one name, or a task of slices, whose machine is its own.
    """
    own = tuple(logs)
    check_each_once("logs", [log.name for log in own])
    if task.window:
        raise HpcgymError(f"{task.name} has slices of its own jobs, and plays no other logs")
    training = own if task.like or task.training == task.logs else task.training
    return replace(
        task, name=f"{OWN}{task.name}", logs=own, training=training, further=(), like="",
        unseen=False,
    )  # fmt: skip


def own_log(source: str) -> TaskLog:
    """Return a log of one's own, with the fingerprint of its jobs.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.load_workload`.
    """
    jobs = jobs_of(TaskLog("", source))
    return TaskLog(jobs.name, source, processors=jobs.processors, digest=fingerprint([jobs]))


@cache
def _contents() -> dict[str, Any]:
    return toml_file(FILE)


def find_tasks(names: str | None = None) -> list[Task]:
    """Return tasks by their names.

    Parameters
    ----------
    names : ids or "mini", which are those on a small log, joined by commas; None: all scored ones.

    Raises
    ------
    HpcgymError : a name that is not one of these.
    """
    known = tasks()
    if names is None:
        return [task for task in known.values() if task.scored]
    chosen: dict[str, Task] = {}
    for name in (part.strip() for part in names.split(",")):
        if name == "mini":
            chosen |= {
                task_name: task
                for task_name, task in known.items()
                if task_name.startswith("mini-")
            }
        elif name in known:
            chosen[name] = known[name]
        else:
            raise HpcgymError(unknown("task", name, [*known, "mini"]))
    return list(chosen.values())


# --- Jobs -----------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def jobs_of(log: TaskLog) -> Workload:
    """Return the jobs of a log.

    Raises
    ------
    HpcgymError : they are not on this machine, or not those that were frozen.
    """
    processors = log.processors if is_trace(log.workload) else 0
    with catch_warnings():
        simplefilter("ignore", WorkloadWarning)  # a pool is meant, whatever partitions there were
        jobs = load_workload(log.workload, log.clean, processors=processors or None)
    digest = fingerprint([jobs])
    if log.digest and digest != log.digest:
        raise HpcgymError(
            f"{log.name} has other jobs than the suite was frozen with: their digest is"
            f" {digest[:12]}, not {log.digest[:12]}"
        )
    if log.processors and jobs.processors != log.processors:
        raise HpcgymError(
            f"the machine of {log.name} has {jobs.processors} processors, not {log.processors}"
        )
    return jobs


def digest_of(log: TaskLog) -> str:
    """Return the fingerprint of the jobs of a log; of a frozen one they need not be here."""
    return log.digest or fingerprint([jobs_of(log)])


def late(task: Task, jobs: Workload) -> NDArray[np.bool_]:
    """Return which jobs of a log count: those that no agent may learn from, (n_jobs,) bool."""
    return np.arange(len(jobs)) >= jobs.row_at(task.share)


def learned_from(task: Task, log: TaskLog) -> Workload:
    """Return the jobs that an agent may learn from.

    Of a log that is played: those of the first part of its time; of one that is for training alone,
    all.
    """
    jobs = jobs_of(log)
    known = jobs.row_at(task.share) if log in task.logs else len(jobs)
    return jobs.take(slice(0, known), name=jobs.name)


def practice(task: Task, logs: Iterable[TaskLog] | None = None) -> Make:
    """Return what makes the environments that agents of a task learn in, of all its logs or some.

    Raises
    ------
    HpcgymError : as of :func:`jobs_of`.
    """
    task = tasks()[task.like] if task.like else task
    jobs = {log.name: learned_from(task, log) for log in (task.training if logs is None else logs)}
    return Make(jobs, task.env_id, _options(task))


def environment(task: Task, log: TaskLog, part: str = "test", factor: float = 1.0) -> Any:
    """Return the environment in which a part of a log is played.

    Parameters
    ----------
    part : "test", the whole log, where the jobs of the second half count; or "train", what an agent
        may learn from.
    factor : what times between submissions are multiplied by.
    """
    import gymnasium

    jobs = jobs_of(log)
    given: dict[str, Any] = {**_options(task), "part": "all"}
    if part == "train":
        jobs = learned_from(task, log)
    elif task.window:
        given |= {"part": "test", "train_share": task.share}
    jobs = jobs if factor == 1 else stretched(jobs, factor)
    given |= {"workload": jobs} | ({} if task.window else dict(_WHOLE))
    return gymnasium.make(task.env_id, disable_env_checker=True, **given)


def _options(task: Task) -> dict[str, Any]:
    """Return the arguments of a task's environment, of a file's lists with tuples."""
    window = {"jobs": task.window} if task.window else {}
    given = {**task.options, **window}
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }


# --- References -----------------------------------------------------------------------------------


def reference_of(task: Task, log: TaskLog) -> Scheduler:
    """Return the scheduler that is to be beaten on a log."""
    return read_reference(task, log, task.reference, task.weights)


def read_reference(task: Task, log: TaskLog, text: str, weights: Iterable[float] = ()) -> Scheduler:
    """Return what a text stands for on a log.

    Parameters
    ----------
    text : a scheduler; or "static", perhaps with rules behind it: weights that do not change. With
        the rule "threshold=easy" jobs wait no longer than EASY's longest wait in the training part
        before they go first.
    weights : of :data:`hpcgym.scheduler.policies.WEIGHTED_FEATURES`, as they are the actions of
        MixedPolicy: each is divided by how much its feature differs in the log's first half.
    """
    name, colon, rules = text.partition(":")
    if rules == "threshold=easy":
        longest = int(simulate(learned_from(task, log), task.easy).wait.max())
        rules = f"threshold={longest}s"
    scheduler = find_scheduler(f"{'saf' if name == 'static' else name}{colon}{rules}")
    if name != "static":
        return scheduler
    scaled = (np.array([*weights]) / _scale(log)).tolist()
    return scheduler.but(
        policy={f: w for f, w in zip(WEIGHTED_FEATURES, scaled, strict=True) if w} or "fcfs"
    )


@lru_cache(maxsize=16)
def _scale(log: TaskLog) -> NDArray[np.float64]:
    """Return what weights are divided by on a log, as in MixedPolicy."""
    jobs = jobs_of(log)
    return spread([jobs.take(slice(0, max(jobs.row_at(0.5), 1)))], WEIGHTED_FEATURES)
