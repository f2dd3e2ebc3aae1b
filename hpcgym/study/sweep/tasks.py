"""Many tasks on any executor: in chunks, tried again if they fail, kept on disk as they finish.

A task is a dict that JSON can hold; a function, dict -> dict, from the top level of a module does
it. A task is known by the hash of its JSON: a task whose result is on disk is never done again, on
any executor. A folder belongs to one function.
"""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, check_whole
from hpcgym.progress import silence
from hpcgym.study.executors import SerialExecutor, check_executor, open_executor, slots
from hpcgym.study.sweep.records import (
    Row,
    append,
    canonical,
    claim,
    failure_text,
    identity,
    ids_of,
    kept,
    locked,
    result_text,
)

Function = Callable[[dict[str, Any]], Mapping[str, Any]]
Progress = Callable[[int, int], None]

_LIMIT_S = 1.0  # [s] after which a worker hands back the rest of a chunk: a kill loses little
_CHUNK_MOST = 1000  # tasks
_SHARES = 4  # the tasks left make so many chunks for each one in flight: the last are small
_AHEAD = 2  # chunks that wait for each worker: none is ever idle, and few are lost
_DEATHS = 3  # so many worker deaths before any task has finished: the tasks are not the cause


@dataclass(frozen=True)
class Summary:
    """How a run of tasks has ended.

    Attributes
    ----------
    total : number of different tasks.
    done : tasks with results on disk.
    new : tasks of ``done`` that were done in this run.
    failed : tasks that failed as often as they may; the next run tries them again.
    damaged : rows that have changed since they were written. They are dropped, and their tasks done
        again.
    """

    total: int
    done: int
    new: int
    failed: int
    damaged: int


def run_tasks(
    function: Function,
    tasks: Iterable[dict[str, Any]],
    folder: str | Path,
    executor: str | Executor = "processes",
    **how: Any,
) -> Summary:
    """Do all tasks whose results are not in the folder yet.

    Results are the same on every executor. A task that raises is tried again after the others; a
    task that kills its worker is tried again alone on a new one. Tasks that fail for good are kept
    with their inputs. After a kill or Ctrl-C the same call goes on where it was.

    Parameters
    ----------
    function : does a task, dict -> dict; from the top level of a module. Values of its result that
        are no numbers (nan, infinity) are kept as null.
    tasks : dicts that JSON can hold. Dicts with the same JSON are one task, in any order of their
        keys; ``{"x": 1}``, ``{"x": 1.0}`` and ``{"x": True}`` are three. For millions of tasks give
        a collection that makes them in iteration, not a list.
    folder : where results are kept; made if need be. One process at a time may use it, with one
        function, known by its module and name. Neither its code nor the arguments of a
        ``functools.partial`` are compared, so all that a result depends on belongs in its task.
    executor, how : where, and how: see :class:`How`.

    Raises
    ------
    HpcgymError : a wrong argument; a folder in use by another process, with results of another
        function, or that cannot be written; or workers that cannot be kept alive.
    """
    settings = How(executor, **how)
    _check_function(function, executor)
    with locked(Path(folder)) as file:
        return run_locked(function, tasks, file, settings)


@dataclass(frozen=True)
class How:
    """Where tasks are done, and how often they are tried.

    Attributes
    ----------
    executor, workers : see :func:`hpcgym.study.open_executor`.
    chunk : tasks that are sent to a worker at once; by default a share of the tasks left, of which
        a worker hands back those that it has not begun within a second.
    retries : how often a task that failed is tried again.
    progress : called now and then with the number of settled tasks, and of all.

    Raises
    ------
    HpcgymError : an invalid value.
    """

    executor: str | Executor
    workers: int | None = None
    chunk: int | None = None
    retries: int = 2
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.chunk is not None:
            check_whole("chunk", self.chunk, 1)
        check_whole("retries", self.retries, 0)
        check_executor(self.executor, self.workers)


def run_locked(
    function: Function,
    tasks: Iterable[dict[str, Any]],
    file: sqlite3.Connection,
    how: How,
) -> Summary:
    """Do as :func:`run_tasks`, with the file of a folder that the caller has locked."""
    tasks = list(tasks) if isinstance(tasks, Iterator) else tasks  # gone through twice
    claim(file, name_of(function))
    run = _TaskRun(function, tasks, file, how)
    if run.left:
        run.to_the_end()
    return Summary(run.total, run.done, run.new, run.failed, run.damaged)


@dataclass
class _Task:
    identity: str
    text: str  # canonical JSON
    attempts: int = 0


class _TaskRun:
    """One run of tasks: those left, those in flight, and their outcomes.

    Chunks in flight when a worker died are suspects: they are cut in two and done one at a time, so
    that the death only counts against the task that kills its worker.
    """

    def __init__(
        self,
        function: Function,
        tasks: Iterable[dict[str, Any]],
        file: sqlite3.Connection,
        how: How,
    ) -> None:
        self.function, self.file, self.how = function, file, how
        self.progress = how.progress or silence
        done, self.damaged = kept(file, "results")
        self.damaged += kept(file, "failures")[1]
        wanted = ids_of(tasks)
        self.left = wanted - done
        self.total, self.done = len(wanted), len(wanted) - len(self.left)
        self.new = self.failed = self.sent = self.deaths = 0
        self.fresh = self._fresh(tasks)
        self.returned: deque[_Task] = deque()  # not begun
        self.again: deque[_Task] = deque()  # failed
        self.suspects: deque[list[_Task]] = deque()
        self.flying: dict[Future[Any], tuple[list[_Task], bool]] = {}  # whether it is a suspect

    def to_the_end(self) -> None:
        """Do all that is left, on new workers whenever those there are broken."""
        executor = self.how.executor
        self.progress(self.done, self.total)
        while True:
            sent = self.sent
            with open_executor(executor, self.how.workers) as opened:
                broken = self._serve(opened)
            if broken is None:
                return
            if self.sent == sent:
                raise HpcgymError(f"executor {executor}: it takes no tasks: {_in_words(broken)}")
            if isinstance(executor, Executor):
                raise HpcgymError(
                    f"executor: it has broken ({broken}), and was not started here: run the tasks"
                    " again on another; what is done is kept"
                )

    def _serve(self, executor: Executor) -> BaseException | None:
        """Keep an executor busy until all is done, or it is broken: then return its error."""
        broken = None
        try:
            while broken is None:
                broken = self._fill(executor)
                if not self.flying:
                    return broken
                finished, _ = wait_for(self.flying, return_when=FIRST_COMPLETED)
                broken = self._land(finished) or broken
            wait_for(self.flying, timeout=10)  # the others fail by themselves
        finally:  # also after Ctrl-C: what has finished is kept
            self._land({future for future in self.flying if future.done() or broken is not None})
        return broken

    def _fill(self, executor: Executor) -> BaseException | None:
        """Send chunks: a few for each worker, a suspect alone. Return the error of a broken one."""
        # asked each time: Dask's workers come and go
        window = 1 if isinstance(executor, SerialExecutor) else _AHEAD * slots(executor)
        while len(self.flying) < (1 if self.suspects else window):
            alone = bool(self.suspects)
            tasks = self.suspects.popleft() if alone else self._next_chunk(window)
            if not tasks:
                return None
            sent = [task.text for task in tasks]
            limit_s = _LIMIT_S if self.how.chunk is None else None
            try:
                future = executor.submit(run_chunk, self.function, sent, limit_s)
            except (BrokenExecutor, RuntimeError) as error:
                self.suspects.append(tasks)
                return error
            self.sent += 1
            self.flying[future] = tasks, alone
            if alone:
                break
        return None

    def _next_chunk(self, window: int) -> list[_Task]:
        """Return the next tasks: those that failed once come last."""
        waiting = len(self.left) + len(self.returned) + len(self.again)
        size = self.how.chunk or max(1, min(_CHUNK_MOST, waiting // (_SHARES * window)))
        queue = chain(_drained(self.returned), self.fresh, _drained(self.again))
        return list(islice(queue, size))

    def _land(self, futures: set[Future[Any]]) -> BaseException | None:
        """Take what has become of chunks; return the error if their executor is broken."""
        broken: BaseException | None = None
        results: list[Row] = []
        failures: list[tuple[_Task, tuple[str, str]]] = []
        deaths: list[tuple[list[_Task], bool, BaseException]] = []
        for future in [
            flying for flying in self.flying if flying in futures
        ]:  # in the order of sending
            tasks, alone = self.flying.pop(future)
            try:
                outcomes = future.result(timeout=0)
            except Exception as error:  # of a worker, not of a task
                deaths.append((tasks, alone, error))
                continue
            rest = tasks[len(outcomes) :]
            if rest and alone:
                self.suspects.appendleft(rest)
            else:
                self.returned.extend(rest)
            for task, outcome in zip(tasks, outcomes, strict=False):
                if isinstance(outcome, str):
                    results.append((task.identity, outcome))
                else:
                    failures.append((task, outcome))
        if results:
            append(self.file, results=results)
            self.done += len(results)
            self.new += len(results)
        for task, (words, trace) in failures:
            if self._goes_on(task, words, trace):
                self.again.append(task)
        for tasks, alone, death in deaths:
            self._suspect(tasks, alone, death)
            broken = death if isinstance(death, BrokenExecutor | CancelledError) else broken
        if futures:
            self.progress(self.done + self.failed, self.total)
        return broken

    def _suspect(self, tasks: list[_Task], alone: bool, error: BaseException) -> None:
        """Let tasks that were on their way when their worker died be done one chunk at a time."""
        half = len(tasks) // 2
        if half:
            self.suspects.extend([tasks[:half], tasks[half:]])
        elif not alone or self._goes_on(tasks[0], f"its worker died: {_in_words(error)}", ""):
            self.suspects.append(tasks)
        else:
            self.deaths += 1
        if self.deaths == _DEATHS and not self.new:
            raise HpcgymError(f"the workers die before they have done anything: {_in_words(error)}")

    def _goes_on(self, task: _Task, error: str, trace: str) -> bool:
        """Count a failure of a task; tell whether it is tried again, or else keep it as failed."""
        task.attempts += 1
        if task.attempts <= self.how.retries:
            return True
        self.failed += 1
        text = failure_text(task.text, task.attempts, error, trace)
        append(self.file, failures=[(task.identity, text)])
        return False

    def _fresh(self, tasks: Iterable[dict[str, Any]]) -> Iterator[_Task]:
        """Return the tasks that are left, each once."""
        for task in tasks:
            text = canonical(task)
            name = identity(text)
            if name in self.left:
                self.left.remove(name)
                yield _Task(name, text)


def run_chunk(
    function: Function, tasks: list[str], limit_s: float | None = None
) -> list[str | tuple[str, str]]:
    """Do some tasks, in a worker.

    Parameters
    ----------
    function : dict -> dict.
    tasks : the canonical JSON of each.
    limit_s : [s] time after which no further task is begun; None: all are done.

    Returns
    -------
    outcomes : for each task that was done, the text to keep, or its error and traceback.
    """
    begin = time.perf_counter()
    outcomes: list[str | tuple[str, str]] = []
    for text in tasks:
        try:
            result = function(json.loads(text))
            if not isinstance(result, Mapping):
                raise TypeError(f"the function must return a dict, not {result!r}")
            outcomes.append(result_text(text, result))
        except (Exception, SystemExit) as error:
            outcomes.append((_in_words(error), traceback.format_exc()))
        if limit_s is not None and time.perf_counter() - begin >= limit_s:
            break
    return outcomes


def name_of(function: Any) -> str:
    """Return the module and the name of a function: the same if its module is run as a script."""
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    module = str(named.__module__)
    if module == "__main__":
        main = sys.modules[module]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec else Path(file).stem if file else module
    return f"{module}.{named.__qualname__}"


def _check_function(function: Any, executor: str | Executor) -> None:
    """Raise an HpcgymError if workers could not import a function."""
    if executor == "serial" or isinstance(executor, SerialExecutor):
        return
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise HpcgymError(
            f"function must be one that workers can import, from the top level of a module: {error}"
        ) from None


def _drained(queue: deque[_Task]) -> Iterator[_Task]:
    """Take tasks from a queue, as many as are asked for."""
    while queue:
        yield queue.popleft()


def _in_words(error: BaseException) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
