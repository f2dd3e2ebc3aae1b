"""Submissions: folders with what agents did on tasks of the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError, check_whole, is_number
from hpcgym.files import json_file, shaped
from hpcgym.files.tables import CheckHeads, arrays_of, is_whole
from hpcgym.files.writing import json_text, whole_file, whole_text
from hpcgym.names import name_problem
from hpcgym.own_code import used_packages
from hpcgym.schedule.gains import Felt
from hpcgym.study.suite.evaluation import Kept
from hpcgym.study.suite.tasks import OWN, Task, TaskLog, digest_of, on_own_logs, suite, tasks
from hpcgym.version import __version__

FACTS, SCHEDULES, TRAININGS = "submission.json", "schedules", "trainings"

#: What submissions tell of each log, of the jobs that count: means over the replays.
METRICS = ("mean_bsld", "longest_wait_h", "area_weighted_wait_h", "wide_wait_h", "promises_broken")

#: These may be null: a log has no wide jobs, or its promises are not known.
_PERHAPS = METRICS[3:]

_KIND = "a submission"


def metrics_of(replays: Sequence[Felt]) -> dict[str, float]:
    """Return :data:`METRICS` of the slowdowns and waits of jobs, which are means over replays."""
    rows = [(np.nansum(f.jobs * f.bsld) / f.jobs.sum(), *f[2:]) for f in replays]
    return dict(zip(METRICS, np.mean(rows, axis=0).tolist(), strict=True))


@dataclass
class Submission:
    """The results of an agent.

    Attributes
    ----------
    folder : where it is.
    agent : its name.
    tasks : task -> facts: ``task`` (its fingerprint), ``trained``, ``training`` (the task whose
        training it was, see :func:`hpcgym.study.suite.agents.training_of`), ``trained_on`` (names
        of logs), ``about``, and ``logs``: log -> its ``jobs`` (their fingerprint), ``seeds``: seed
        -> :data:`METRICS`, and ``steps``: seed -> what the training of the agent used, as it was
        counted; nothing of agents that were not trained, or before steps were counted.
    sha256 : of the agent's file, or None.
    """

    folder: Path
    agent: str
    tasks: dict[str, dict[str, Any]]
    sha256: str | None = None

    def task(self, name: str) -> Task:
        """Return one of its tasks, also one on logs of its own."""
        if name in tasks():
            return tasks()[name]
        logs = [TaskLog(**log) for log in self.tasks[name]["own"]]
        return on_own_logs(tasks()[name.removeprefix(OWN)], logs)

    def file(self, task: str, log: str, seed: int) -> Path:
        """Return where the schedules of a log are."""
        return self.folder / SCHEDULES / task / log / f"{seed}.npz"

    def kept(self, task: str, log: str, seed: int, check: CheckHeads | None = None) -> Kept:
        """Return the arrays of the schedules of a log.

        Parameters
        ----------
        task, log, seed : of the log.
        check : of a folder that may be anybody's, ``check_kept`` of the log's evaluation, which
            looks at the shapes of arrays before they are unpacked.

        Raises
        ------
        HpcgymError : there is no such file, it is damaged, or as of ``check``.
        """
        return arrays_of(self.file(task, log, seed), check=check)

    def has(self, task: str, log: str, seed: int) -> bool:
        """Tell whether a log was played, and its schedules can be read."""
        return seed in self.told(task, log) and is_whole(self.file(task, log, seed))

    def told(self, task: str, log: str) -> dict[int, dict[str, Any]]:
        """Return the metrics of a log by seed; nothing of one that was not played."""
        seeds = self.tasks[task]["logs"].get(log, {"seeds": {}})["seeds"]
        return {int(seed): seeds[seed] for seed in sorted(seeds, key=int)}

    def steps(self, task: str, log: str) -> dict[int, int]:
        """Return the steps that were counted of trainings, by seed."""
        steps = self.tasks[task]["logs"].get(log, {}).get("steps", {})
        return {int(seed): steps[seed] for seed in sorted(steps, key=int)}

    def add(
        self,
        task: str,
        log: TaskLog,
        seed: int,
        kept: Kept,
        metrics: Mapping[str, float],
        steps: int | None = None,
    ) -> None:
        """Add the schedules of a log: write their file, then what is told.

        ``steps``: of the training of the agent that made them; None without a training.
        """
        path = self.file(task, log.name, seed)
        with whole_file(path, folders=True) as part, part.open("wb") as file:
            np.savez_compressed(file, **kept)  # type: ignore[arg-type]
        logs = self.tasks[task]["logs"]
        before = logs.get(log.name, {})
        known = {k: None if value != value else value for k, value in metrics.items()}
        by_seed = {"seeds": known} if steps is None else {"seeds": known, "steps": steps}
        records = {
            name: dict(sorted({**before.get(name, {}), str(seed): value}.items()))
            for name, value in by_seed.items()
        }
        logs |= {log.name: {**before, "jobs": digest_of(log), **records}}
        self.tasks[task]["logs"] = dict(sorted(logs.items()))  # whichever came first
        facts = {
            "suite": suite(),
            "hpcgym": __version__,
            "agent": self.agent,
            "sha256": self.sha256,
            "tasks": self.tasks,
            **({"packages": packages} if (packages := used_packages()) else {}),
        }
        with whole_text(self.folder / FACTS) as text:
            text.write(json_text(facts))


def read(folder: str | Path) -> Submission:
    """Return the submission of a folder.

    Raises
    ------
    HpcgymError : it is missing, it is of another suite, or damaged.
    """
    folder = Path(folder)
    path = folder / FACTS
    if not path.exists():
        raise HpcgymError(f"{folder} holds no submission: there is no {FACTS} in it")
    with shaped(path, _KIND):
        facts = json_file(path)
        if facts["suite"] != suite():
            raise HpcgymError(f"{path} is of {facts['suite']}, and this is {suite()}")
        records = {str(name): dict(record) for name, record in facts["tasks"].items()}
        agent, sha256 = facts["agent"], facts["sha256"]
        if problem := name_problem(agent):
            raise HpcgymError(f"{path}: the name of the agent must be {problem}")
        submission = Submission(folder, agent, records, sha256)
        for name, record in records.items():
            if name.removeprefix(OWN) not in tasks() or (
                name not in tasks() and "own" not in record
            ):
                raise HpcgymError(f"{path}: there is no task {name!r} in {suite()}")
            _check(path, submission.task(name), record)
    return submission


def _check(path: Path, task: Task, record: Mapping[str, Any]) -> None:
    """Raise an HpcgymError for a task that is told in another form."""
    name, seeds = task.name, {str(seed) for seed in task.seeds}
    for log, record_of_log in record["logs"].items():
        task.log(log)
        for seed, metrics in record_of_log["seeds"].items():
            if seed not in seeds:
                raise HpcgymError(f"{path}: {name} on {log} has no seed {seed!r}")
            known = {name: metrics[name] for name in METRICS}
            if not all(is_number(v) or (v is None and k in _PERHAPS) for k, v in known.items()):
                raise HpcgymError(f"{path}: {name} on {log}, seed {seed}: metrics must be numbers")
        for seed, steps in record_of_log.get("steps", {}).items():
            if seed not in seeds:
                raise HpcgymError(f"{path}: {name} on {log} has no seed {seed!r}")
            check_whole(f"{path}: {name} on {log}, seed {seed}: steps", steps, 0)
