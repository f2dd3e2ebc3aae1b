"""Runs of agents on tasks: trained if need be, played log by log, and written as submissions."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from hpcgym.agents import TRAINED, ending_of, named_file
from hpcgym.agents.practice import csv_log
from hpcgym.agents.saved import seen_by
from hpcgym.baselines.chance import RANDOM
from hpcgym.errors import HpcgymError, check_whole
from hpcgym.files import json_file, shaped
from hpcgym.files.tables import csv_rows
from hpcgym.files.writing import check_writable, json_text, whole_text
from hpcgym.names import name_problem
from hpcgym.progress import Pace, Progress, repeating, silent
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.allowance import Allowance
from hpcgym.study.executors import open_executor
from hpcgym.study.suite.agents import digest_of_agent, found_agent, is_trained, training_of
from hpcgym.study.suite.evaluation import Evaluation, Kept
from hpcgym.study.suite.submissions import FACTS, TRAININGS, Submission, metrics_of, read
from hpcgym.study.suite.tasks import Task, TaskLog, check_unseen, jobs_of, practice, tasks


def run(
    agent: str,
    chosen: Sequence[Task],
    folder: str | Path,
    *,
    logs: Sequence[str] | None = None,
    named: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Submission:
    """Evaluate an agent on tasks, and write its results to a folder, going on with those there.

    Logs and seeds whose results are in the folder, and can be read, are not played again.

    Parameters
    ----------
    agent : as of :func:`hpcgym.study.suite.agents.found_agent`. If it is no file and has a method
        ``train(make, seed, steps)``, this is called once for each seed of the task, of an object of
        its own, before it acts; if its class has ``each_log = True``, for each log, too. ``make``
        is a :class:`hpcgym.agents.practice.Make`. A ``train`` that has an argument ``log`` is given
        one, see :mod:`hpcgym.agents.practice`. It may do the task's ``steps``, which are counted,
        see :mod:`hpcgym.simulation.allowance`: what exceeds them is refused by a ``SpentError``,
        after which it may end with what it has learned. If it then has a ``scheduler``, which is a
        ``Scheduler``, that is simulated; else it acts, from the first job of a log to its last.
        A training serves all tasks for which it is the same, see
        :func:`hpcgym.study.suite.agents.training_of`.
    chosen : the tasks.
    folder : of the submission; it is made.
    logs : names of those that are played; None: all of a task that are on this machine, and
        ``note`` is told of the others.
    named : whether all of these tasks must be run; else those in which the agent cannot act are
        left out, and ``note`` is told.
    workers : how many processes train and play at a time; the longest work begins first.
    progress : as of :func:`hpcgym.study.evaluate`.

    Raises
    ------
    HpcgymError : an invalid agent; a task in which it cannot act, or in which it made an error; a
        folder with another submission, or that cannot be written; or a process that died.
    """
    done = _begun(Path(folder), agent)
    plays: dict[tuple[str, ...], _Play] = {}
    held: list[str] = []
    for task in chosen:
        try:
            here = _here(task, logs, note)
            for log in here:
                policy = found_agent(agent, task, log)
                _check_agent(agent, policy, task, log)
            seen = [log["workload"] for log in seen_by(policy)]
            seen = seen or [*map(str, getattr(policy, "trained_on", []))]
            check_unseen(task, seen)
            trained = is_trained(agent, policy)
            each = getattr(policy, "each_log", False) and task.training == task.logs
            alone = not trained or each
            for log in () if alone else task.training:
                jobs_of(log)  # all must be here
        except HpcgymError as error:
            if named:
                raise HpcgymError(f"{task.name}: {error}") from None
            held.append(f"left out: {task.name}: {error}")
            continue
        source = training_of(task, policy) if trained else task
        of_agent = {
            "task": task.fingerprint,
            "trained": trained,
            "training": source.name if trained else None,
            "trained_on": [log.name for log in task.training] if trained else seen,
            "about": str(getattr(policy, "about", "")),
            **({"own": [asdict(log) for log in task.logs]} if task.name not in tasks() else {}),
        }
        record = done.tasks.setdefault(task.name, {**of_agent, "logs": {}})
        if record["task"] != task.fingerprint:
            raise HpcgymError(f"{folder}: {task.name} was run with other jobs or rules")
        for seed, log in product(task.seeds if trained or agent == RANDOM else [0], here):
            if not done.has(task.name, log.name, seed):
                key = (source.name, str(seed), log.name if alone else "")
                play = plays.setdefault(key, _Play(agent, source, seed, trained, alone, []))
                play.on.append((task, log))
    if not done.tasks:
        first = held[0].removeprefix("left out: ") if held else "no task was played"
        raise HpcgymError(f"{agent} plays none of these tasks: {first}")
    for text in held:
        note(text)
    check_writable(done.folder / FACTS, folders=True)  # before hours of training
    total = sum(len(play.on) for play in plays.values())
    if not total:
        note(f"{folder} has all of this already")
    try:
        with (progress or silent)(agent, total) as step:
            _play_all(done, [*plays.values()], workers, step)
    except BrokenExecutor:
        raise HpcgymError(
            "a process died, for want of memory perhaps: run this again with fewer workers, and it"
            " goes on"
        ) from None
    return done


@dataclass(frozen=True)
class _Play:
    """A seed of an agent on logs of tasks, which share a training: that of ``task``."""

    agent: str
    task: Task
    seed: int
    trained: bool
    alone: bool  # whether its training is for one log
    on: list[tuple[Task, TaskLog]]

    @property
    def jobs(self) -> int:
        """The number of its jobs, from which its duration can be estimated."""
        logs = [log for _, log in self.on] if self.alone else self.task.training
        return sum(len(jobs_of(log)) for log in logs)

    def place(self, folder: Path) -> Path:
        """Return the folder for the files of its training."""
        return folder / TRAININGS / self.task.name / (self.on[0][1].name if self.alone else "")


@dataclass(eq=False)
class _Work:
    """The work of a process: the training of a play; or a log that it plays, with its policy.

    ``steps``: what the training of the policy used, as it was counted.
    """

    play: _Play
    on: tuple[Task, TaskLog] | None = None
    policy: Any = None
    steps: int | None = None
    pace: Pace = field(default_factory=Pace)  # of steps

    def text(self, folder: Path) -> str:
        """Return the work, and the progress of a training, in words."""
        if self.on is not None:
            return f"{self.on[0].name} on {self.on[1].name}, seed {self.play.seed}"
        on = f" on {self.play.on[0][1].name}" if self.play.alone else ""
        text = f"training for {self.play.task.name}{on}, seed {self.play.seed}"
        table = self.play.place(folder) / f"{self.play.seed}.csv"
        (_, (last, *_)) = _rows_of(table)[-1] if table.exists() else (0, ["0"])
        done, all_steps = float(last), self.play.task.steps
        rate = self.pace.rate(done)
        if not rate:  # the table may be of a training that was interrupted
            return text
        left = max(all_steps - done, 0.0) / rate / 60.0
        return f"{text}: {min(done / all_steps, 1.0):.0%} of its steps, about {left:.0f} min left"


def _play_all(
    done: Submission, plays: Sequence[_Play], workers: int, step: Callable[..., None]
) -> None:
    """Train and play all, in so many processes, and write results log by log."""
    made = ("serial", None) if workers == 1 else ("processes", workers)
    longest_first = sorted(plays, key=lambda play: -play.jobs)
    waiting = [_Work(play, None if play.trained else play.on[0]) for play in longest_first]
    running: dict[Future[Any], _Work] = {}
    doing: list[_Work] = []
    one_by_one = threading.Lock()  # what is told last is what is done now

    def tell(steps: int = 0) -> None:
        with one_by_one:
            text = "; ".join(work.text(done.folder) for work in [*doing])
            if text or steps:
                step(text or "done", steps)

    with open_executor(*made) as executor, repeating(tell):
        while waiting or running:
            while waiting and len(running) < workers:
                doing.append(work := waiting.pop(0))
                tell()
                running[executor.submit(_worked, work, done.folder)] = work
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                doing.remove(work := running.pop(future))
                play, result = work.play, future.result()
                if work.on is None:
                    logs = sorted(play.on, key=lambda on: -len(jobs_of(on[1])))
                    waiting[:0] = [_Work(play, on, *result) for on in logs]  # before more trainings
                else:
                    (task, log), (kept, metrics) = work.on, result
                    done.add(task.name, log, play.seed, kept, metrics, work.steps)
                    tell(1)


def _worked(work: _Work, folder: Path) -> Any:
    """Return a policy that was trained, with its steps, or what :func:`_played` does."""
    return _trained(work.play, folder) if work.on is None else _played(work, *work.on)


def _trained(play: _Play, folder: Path) -> tuple[Any, int]:
    """Return the policy of a seed, trained, and the steps that this took, as they were counted.

    The files of its training are kept in a folder, and the steps beside them: a training that was
    interrupted goes on with both, or begins anew.
    """
    agent, task, seed, log = play.agent, play.task, play.seed, play.on[0][1]
    place = play.place(folder)
    kept = place / f"{seed}{ending_of(agent) if agent in TRAINED else ''}"
    table, counted = place / f"{seed}.csv", place / f"{seed}.steps.json"
    before = _steps_in(counted)
    if agent in TRAINED and kept.exists() and before is not None:
        return found_agent(named_file(agent, kept), task, log), before
    policy = found_agent(agent, task, log)
    with _blaming(f"{agent} on {task.name}, training with seed {seed}"):
        make = practice(task, [log] if play.alone else None)
        takes = inspect.signature(policy.train).parameters
        more: dict[str, Any] = {}
        if "past" in takes and table.exists() and before is not None:
            (_, names), *rows = _rows_of(table)
            more["past"] = [dict(zip(names, row, strict=True)) for _, row in rows]
        allowance = Allowance(task.steps, before or 0 if "past" in more else 0)

        def count() -> None:
            with whole_text(counted, folders=True) as text:
                text.write(json_text(allowance.done))

        if "log" in takes:
            tell = csv_log(table, more.get("past", ()))

            def log_and_count(steps: int, values: Mapping[str, float]) -> None:
                tell(steps, values)
                count()

            more["log"] = log_and_count
        with allowance:
            policy.train(make, seed, task.steps, **more)
        if callable(getattr(policy, "save", None)):
            count()
            policy.save(kept)
    return policy, allowance.done


def _steps_in(path: Path) -> int | None:
    """Return the steps that were counted of a training, from its file; None without one."""
    if not path.exists():
        return None
    with shaped(path, "the steps of a training"):
        steps = json_file(path)
        return check_whole("steps", steps, 0)


def _rows_of(table: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of the numbers of a training, each with its line."""
    return csv_rows(table, "the numbers of a training")


def _played(work: _Work, task: Task, log: TaskLog) -> tuple[Kept, dict[str, float]]:
    """Return the schedules of a log, and their metrics."""
    evaluation, play = Evaluation(task, log), work.play
    policy = work.policy if play.trained else found_agent(play.agent, task, log)
    if play.agent == RANDOM:
        policy = evaluation.chance(play.seed)
    learned = getattr(policy, "scheduler", None)
    policy = learned if isinstance(learned, Scheduler) else policy
    with _blaming(f"{play.agent} on {task.name}, {log.name}"):
        results = evaluation.run(policy)
        return evaluation.kept(results), metrics_of(evaluation.felt(results))


def _check_agent(agent: str, policy: Any, task: Task, log: TaskLog) -> None:
    """Raise an HpcgymError if an agent cannot play a log."""
    evaluation = Evaluation(task, log)
    if agent == RANDOM:
        evaluation.chance(0)
    elif agent in TRAINED:  # which know what they can do before they have learned it
        policy.check(evaluation.env)
    else:
        evaluation.check(agent, policy)


def _here(task: Task, names: Sequence[str] | None, note: Callable[[str], None]) -> list[TaskLog]:
    """Return the logs of a task that are played."""
    if names is not None:
        named = [task.log(name) for name in names]
        for log in named:
            jobs_of(log)
        return named
    here, why = [], HpcgymError("it has no logs")
    for log in task.logs:
        try:
            jobs_of(log)
        except HpcgymError as error:
            why = error
            note(f"{task.name}: left out: {log.name}: {error}")
        else:
            here.append(log)
    if not here:
        raise why
    return here


def _begun(folder: Path, agent: str) -> Submission:
    """Return the submission that a folder holds, or a new one."""
    sha256 = digest_of_agent(agent)
    if problem := name_problem(agent):
        raise HpcgymError(f"the name of an agent must be {problem}")
    if not (folder / FACTS).exists():
        return Submission(folder, agent, {}, sha256)
    submission = read(folder)
    if (submission.agent, submission.sha256) != (agent, sha256):
        same = "an older file of " if submission.agent == agent else ""
        raise HpcgymError(
            f"{folder} holds the submission of {same}{submission.agent}: choose another"
        )
    return submission


@contextmanager
def _blaming(where: str) -> Iterator[None]:
    """Turn what a user's code does wrong into an HpcgymError that says where."""
    try:
        yield
    except Exception as error:  # whatever a user's code does
        known = isinstance(error, HpcgymError)
        raise HpcgymError(
            f"{where}: {error if known else f'{type(error).__name__}: {error}'}"
        ) from None
