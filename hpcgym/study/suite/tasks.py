"""The tasks of the suite: what each id stands for, read from ``tasks.toml`` beside this file.

An id never changes its meaning. What is frozen of it: its jobs by a digest, how they are cleaned,
the machine, the environment with all its rules and what it shows, the split in time, the steps and
seeds of training, and the scheduler that a score of 1 stands for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, unknown
from hpcgym.files import toml_file
from hpcgym.files.writing import plain
from hpcgym.workload import Workload, load_workload
from hpcgym.workload.fingerprint import fingerprint

FILE = Path(__file__).with_name("tasks.toml")

#: Parts of a task's jobs, in order of time.
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Task:
    """What an id stands for.

    Attributes
    ----------
    name : the id.
    kind : what an agent decides: "select", "order", "weights", "power" or "pairs".
    mini : whether it is one of the small ones, for trying.
    workload, clean : what :func:`hpcgym.load_workload` is given.
    processors : of the machine.
    digest : the fingerprint of the jobs; "" where nobody has had them, and the id is not frozen.
    env_id, options : the environment, with its arguments but for the jobs and their parts.
    window : jobs of a slice.
    split : shares of the jobs that are for training and for validation; the others are the test.
    steps : of the environment that an agent may train for, in each training.
    seeds : of the trainings.
    easy : name of the scheduler that a score of 0 stands for.
    best : the one that 1 stands for, the best static one of the training part: weights by feature,
        or a name.
    """

    name: str
    kind: str
    mini: bool
    workload: str
    clean: str
    processors: int
    digest: str
    env_id: str
    options: Mapping[str, Any] = field(hash=False)
    window: int
    split: tuple[float, float]
    steps: int
    seeds: tuple[int, ...]
    easy: str
    best: Mapping[str, float] | str = field(hash=False)

    @property
    def frozen(self) -> bool:
        """Whether the jobs are known, and so the task."""
        return bool(self.digest)

    @property
    def fingerprint(self) -> str:
        """A hash of all that is frozen; two tasks with the same are the same."""
        told = {**asdict(self), "mini": None}
        text = json.dumps(plain(told), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@cache
def suite() -> str:
    """Return the name of the suite."""
    return str(_contents()["suite"])


@cache
def tasks() -> Mapping[str, Task]:
    """Return all tasks by their ids."""
    told = _contents()
    found = {}
    for place, trace in told["traces"].items():
        for kind in trace["kinds"]:
            rules = told["kinds"][kind]
            name = f"{place}-{kind}"
            found[name] = Task(
                name=name,
                kind=kind,
                mini=trace.get("mini", False),
                workload=trace["workload"],
                clean=trace.get("clean", "default"),
                processors=trace["processors"],
                digest=trace.get("digest", ""),
                env_id=rules["env"],
                options={**rules["options"], **trace.get("options", {})},
                window=trace["window"],
                split=tuple(told["split"]),
                steps=trace["steps"],
                seeds=tuple(told["seeds"]),
                easy=rules["easy"],
                best=trace.get("best", ""),
            )
    return found


@cache
def _contents() -> dict[str, Any]:
    return toml_file(FILE)


def find_tasks(names: str | None = None) -> list[Task]:
    """Return tasks by their names.

    Parameters
    ----------
    names : ids, kinds such as "select", or "mini", joined by commas; None: all that are frozen but
        for the small ones.

    Raises
    ------
    HpcgymError : a name that is none of these, or an id that is not frozen.
    """
    known = tasks()
    if names is None:
        return [task for task in known.values() if task.frozen and not task.mini]
    found: dict[str, Task] = {}
    kinds = {task.kind for task in known.values()}
    for name in (part.strip() for part in names.split(",")):
        if name in known:
            check_frozen(known[name])
            found[name] = known[name]
        elif name == "mini":
            found |= {task.name: task for task in known.values() if task.mini}
        elif name in kinds:
            full = (task for task in find_tasks() if task.kind == name)
            found |= {task.name: task for task in full}
        else:
            raise HpcgymError(unknown("task", name, [*known, "mini", *sorted(kinds)]))
    return list(found.values())


def check_frozen(task: Task) -> None:
    """Raise an HpcgymError for an id whose jobs nobody has had yet."""
    if not task.frozen:
        raise HpcgymError(
            f"{task.name} is not frozen yet: the suite has no digest of the jobs of {task.workload}"
        )


def jobs_of(task: Task) -> Workload:
    """Return the jobs of a task, all parts.

    Raises
    ------
    HpcgymError : they are not on this machine, or not those that were frozen.
    """
    check_frozen(task)
    jobs = _loaded(task.workload, task.clean)
    digest = digest_of(jobs)
    if digest != task.digest:
        raise HpcgymError(
            f"{task.name}: {task.workload} has other jobs than the suite was frozen with: their"
            f" digest is {digest[:12]}, not {task.digest[:12]}"
        )
    if jobs.processors != task.processors:
        raise HpcgymError(
            f"{task.name}: the machine of {task.workload} has {jobs.processors} processors, not"
            f" {task.processors}"
        )
    return jobs


@lru_cache(maxsize=8)
def _loaded(workload: str, clean: str) -> Workload:
    return load_workload(workload, clean)


def digest_of(jobs: Workload) -> str:
    """Return what a task's jobs are frozen by."""
    return fingerprint([jobs])


def part_of(jobs: Workload, task: Task, part: str) -> tuple[Workload, dict[str, Any]]:
    """Return the jobs up to the end of a part, and which of them an environment is to draw from.

    The test part begins with jobs that were left by those before it, so that these are there, too;
    nothing that comes after a part is.

    Parameters
    ----------
    part : one of :data:`PARTS`.

    Returns
    -------
    jobs : rows from the first on.
    arguments : ``part`` and ``train_share`` of :class:`hpcgym.envs.core.episodes.Episodes`.
    """
    train, known = cuts_of(jobs, task)
    if part == "train":
        return jobs.take(slice(0, train), name=jobs.name), {"part": "all"}
    if part == "validation":
        jobs, known = jobs.take(slice(0, known), name=jobs.name), train
    elif part != "test":
        raise HpcgymError(unknown("part", part, PARTS))
    return jobs, {"part": "test", "train_share": _share_at(jobs, known)}


def _share_at(jobs: Workload, row: int) -> float:
    """Return the share of the time of some jobs at which a row begins the test part."""
    since = jobs.submit_time - jobs.submit_time[0]
    if since[-1] == 0:  # the share is then one of their number
        return row / len(jobs)
    return float((since[row - 1] + since[row]) / 2 / since[-1])


def cuts_of(jobs: Workload, task: Task) -> tuple[int, int]:
    """Return the first rows of the validation and of the test part."""
    n, (train, validation) = len(jobs), task.split
    return int(train * n + 0.5), int((train + validation) * n + 0.5)


def environment(task: Task, part: str = "train", num_envs: int | None = None, **more: Any) -> Any:
    """Return the environment of a task.

    Parameters
    ----------
    part : "train" or "validation", which an agent may learn from, or "test".
    num_envs : a vector environment of so many, see ``gymnasium.make_vec``; None: a single one.
    more : further arguments of ``gymnasium.make_vec``, such as ``autoreset_mode``.

    Raises
    ------
    HpcgymError : another part, or as of :func:`jobs_of`.
    """
    import gymnasium

    jobs, arguments = part_of(jobs_of(task), task, part)
    given = {**task.options, **arguments, "workload": jobs, "jobs": task.window, **more}
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    if num_envs is not None:
        return gymnasium.make_vec(task.env_id, num_envs=num_envs, **given)
    return gymnasium.make(task.env_id, disable_env_checker=True, **given)
