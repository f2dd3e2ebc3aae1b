"""Many tasks: none is lost or done twice, whatever fails or is killed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chores
import pytest
from chores import numbers
from mistakes import mistakes_of

from hpcgym.errors import HpcgymError
from hpcgym.study import read_failures, read_results, run_tasks
from hpcgym.study.executors import SerialExecutor, open_executor
from hpcgym.study.sweep.records import FILE, canonical, identity, locked, reading, rows_of
from hpcgym.study.sweep.tasks import name_of, run_chunk


def done_in(folder: Path) -> list[int]:
    """The numbers whose results are in a folder, as often as they are there, in their order."""
    with reading(folder) as file:
        return [json.loads(row[1])["task"]["x"] for _, row in rows_of(file, "results") if row]


def did(log: Path) -> list[int]:
    """The numbers that were worked on, as often as they were."""
    return [int(line) for line in log.read_text().split()]


# --- Results and their order ----------------------------------------------------------------------


def test_results_come_back_with_their_tasks_in_any_order_asked_for(tmp_path: Path) -> None:
    tasks, seen = numbers(25), list[tuple[int, int]]()
    run_tasks(chores.square, tasks[:4], tmp_path, "serial")
    summary = run_tasks(
        chores.square, tasks, tmp_path, "serial", chunk=11, progress=lambda *n: seen.append(n)
    )
    assert (summary.total, summary.done, summary.new, summary.failed) == (25, 25, 21, 0)
    assert seen == [(4, 25), (15, 25), (25, 25)]
    for wanted in (tasks, tasks[::-1], tasks[3:7]):
        records = read_results(tmp_path, wanted)
        assert [record["task"] for record in records] == wanted
        assert [record["result"] for record in records] == [
            {"square": task["x"] ** 2, "third": task["x"] / 3} for task in wanted
        ]
    assert sorted(record["task"]["x"] for record in read_results(tmp_path)) == list(range(25))


def test_tasks_of_the_same_json_are_one(tmp_path: Path) -> None:
    """In whatever order their keys are; numbers that JSON writes in different ways differ."""
    tasks: list[dict[str, Any]] = [{"x": 1, "y": 2.0}, {"y": 2.0, "x": 1}, {"x": 2, "y": 2.0}]
    summary = run_tasks(chores.square, tasks, tmp_path / "order", "serial")
    assert summary.total == summary.done == 2
    records = read_results(tmp_path / "order", tasks)
    assert [record["result"]["square"] for record in records] == [1, 1, 4]
    tasks = [{"x": 1}, {"x": 1.0}, {"x": True}]
    assert run_tasks(chores.square, tasks, tmp_path / "kinds", "serial").total == 3
    kept = [repr(record["task"]["x"]) for record in read_results(tmp_path / "kinds", tasks)]
    assert kept == ["1", "1.0", "True"]
    # or else sweeps on disk would begin anew with a new version
    assert identity(canonical({"b": [1, 2.5], "a": None})) == "e57f5d37865437a8"


def test_a_folder_is_of_one_function(tmp_path: Path) -> None:
    """Or else the results of one would be taken for those of the other; also without results."""
    with pytest.raises(HpcgymError, match="it takes no tasks"):
        run_tasks(chores.square, numbers(1), tmp_path, Taking(0))
    message = r"has results of 'chores\.square', not of test_tasks\.dividing: choose another"
    for done in (1, 2):
        for function in (dividing, partial(dividing)):
            with pytest.raises(HpcgymError, match=message):
                run_tasks(function, numbers(3), tmp_path, "serial")
        assert run_tasks(partial(chores.square), numbers(done), tmp_path, "serial").new == 1
    assert done_in(tmp_path) == [0, 1]


def test_the_name_of_a_function_is_that_of_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    assert name_of(partial(partial(chores.square, 1), 2)) == "chores.square"
    assert name_of(Taking(1)) == "test_tasks.Taking"  # an object
    monkeypatch.setattr(dividing, "__module__", "__main__")
    for file, spec, module in (
        ("there/study.py", None, "study"),
        ("there/study.py", SimpleNamespace(name="there.study"), "there.study"),
        (None, None, "__main__"),
    ):
        main = SimpleNamespace(__file__=file, __spec__=spec)
        monkeypatch.setitem(sys.modules, "__main__", main)
        assert name_of(dividing) == f"{module}.dividing"


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    run_tasks(dividing, [{"x": 0}, {"x": 2}], tmp_path, "serial")
    results = [record["result"] for record in read_results(tmp_path, [{"x": 0}, {"x": 2}])]
    assert results == [{"y": None, "list": [None, 0]}, {"y": 0.5, "list": [0.5, 2]}]


def dividing(task: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    with np.errstate(divide="ignore"):
        y = np.float64(1) / task["x"]
    return {"y": y, "list": (y, np.int64(task["x"]))}


def test_few_chunks_are_on_their_way_at_a_time(tmp_path: Path) -> None:
    """Millions of tasks must not be sent at once."""

    class Watched(ThreadPoolExecutor):
        most = 0

        def submit(self, *args: Any, **kwargs: Any) -> Any:
            future = super().submit(*args, **kwargs)
            self.most = max(self.most, self._work_queue.qsize())
            return future

    with Watched(2) as executor:
        run_tasks(chores.square, numbers(100, sleep_s=0.001), tmp_path, executor, chunk=1)
        assert 0 < executor.most <= 4
    assert sorted(done_in(tmp_path)) == list(range(100))


def test_a_worker_hands_back_what_it_has_no_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After many short tasks come long ones, which must not lie all on one worker."""
    sent = [canonical(task) for task in numbers(5, sleep_s=0.02)]
    for limit_s, done in ((0.0, 1), (0.05, 3), (60.0, 5), (None, 5)):
        outcomes = run_chunk(chores.square, sent, limit_s)
        assert len(outcomes) <= done
    assert len(outcomes) == 5
    monkeypatch.setattr("hpcgym.study.sweep.tasks._LIMIT_S", 0.01)
    log = tmp_path / "log"
    tasks = [{"x": x, "log": str(log), "sleep_s": 0.002 * (x > 100)} for x in range(200)]
    with ThreadPoolExecutor(2) as threads:
        assert run_tasks(chores.square, tasks, tmp_path, threads).done == 200
    assert sorted(did(log)) == list(range(200))


# --- Failures -------------------------------------------------------------------------------------


def test_a_task_that_fails_is_kept_with_its_inputs_and_loses_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = run_tasks(chores.fail_on_three, numbers(10), tmp_path, "serial", chunk=4)
    assert (summary.done, summary.failed) == (9, 1)
    (failure,) = read_failures(tmp_path)
    assert failure["task"] == {"x": 3}
    assert failure["error"] == "ValueError: three is too much"
    assert failure["attempts"] == 3
    assert 'raise ValueError("three is too much")' in failure["traceback"]
    assert sorted(done_in(tmp_path)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    monkeypatch.setattr(chores, "TROUBLE", None)
    again = run_tasks(chores.fail_on_three, numbers(10), tmp_path, "serial")
    assert (again.done, again.new, again.failed) == (10, 1, 0)
    assert read_failures(tmp_path) == []


def test_a_task_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tasks = numbers(6, log=str(log))
    summary = run_tasks(chores.fail_at_first, tasks, tmp_path, "serial", retries=1)
    assert (summary.done, summary.failed) == (6, 0)
    assert sorted(did(log)) == sorted([*range(6)] * 2)
    none = run_tasks(chores.fail_at_first, numbers(7, log=str(log)), tmp_path, "serial", retries=0)
    assert (none.done, none.failed) == (6, 1)
    assert {failure["attempts"] for failure in read_failures(tmp_path)} == {1}


@pytest.mark.parametrize("result", [7, None, {"f": print}])
def test_a_result_that_cannot_be_kept_is_a_failure(result: Any, tmp_path: Path) -> None:
    summary = run_tasks(lambda task: result, numbers(1), tmp_path, "serial", retries=0)
    assert summary.failed == 1
    assert read_failures(tmp_path)[0]["error"].startswith("TypeError: ")


# --- Kills ----------------------------------------------------------------------------------------


def test_only_tasks_that_kill_their_workers_fail(tmp_path: Path) -> None:
    """Not those that were on their way at the same time, though none is tried again here."""
    sleeping, dying = {"sleep_s": 0.05}, {"dies": True}
    tasks = [{"x": x, **(dying if x in (3, 7) else sleeping)} for x in range(12)]
    summary = run_tasks(
        chores.die_sometimes, tasks, tmp_path, "processes", workers=2, chunk=1, retries=0
    )
    assert (summary.done, summary.failed) == (10, 2)
    failures = read_failures(tmp_path)
    assert sorted(failure["task"]["x"] for failure in failures) == [3, 7]
    for failure in failures:
        assert failure["attempts"] == 1
        assert "its worker died: BrokenProcessPool" in failure["error"]
    assert sorted(done_in(tmp_path)) == [x for x in range(12) if x not in (3, 7)]


class Fragile(Executor):
    """Two workers that take two chunks each; a task that dies takes those of its worker with it.

    If it breaks, as a pool of processes does, all that is on its way is lost, and nothing works
    thereafter; if not, as with Dask, the others go on.
    """

    _max_workers = 2

    def __init__(self, breaks: bool) -> None:
        self.breaks, self.broken = breaks, False
        self.waiting: list[tuple[Future[Any], Any, Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.broken:
            raise BrokenExecutor("gone")
        future: Future[Any] = Future()
        self.waiting.append((future, fn, args))
        if len(self.waiting) == 1:
            threading.Timer(0.01, self.work).start()
        return future

    def work(self) -> None:
        taken, self.waiting = self.waiting[:2], self.waiting[2:]
        died = any(json.loads(text).get("dies") for *_, args in taken for text in args[1])
        if died and self.breaks:
            taken, self.waiting, self.broken = taken + self.waiting, [], True
        if self.waiting:
            threading.Timer(0.01, self.work).start()
        for future, function, args in taken:
            if died:
                future.set_exception((BrokenExecutor if self.breaks else OSError)("killed"))
            else:
                future.set_result(function(*args))


@pytest.mark.parametrize("breaks", [True, False])
@pytest.mark.parametrize("killers", [{0, 5}, {3, 4}, {1, 9, 11}, {0, 1, 2, 3}, {2, 6, 7, 8, 13}])
@pytest.mark.parametrize("chunk", [1, 3])
def test_nobody_is_blamed_for_the_death_of_another(
    killers: set[int], chunk: int, breaks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though all that is on its way is lost with it, and one death is too many."""

    @contextmanager
    def open_fragile(name: str, workers: int | None) -> Iterator[Fragile]:
        yield Fragile(breaks)

    monkeypatch.setattr("hpcgym.study.sweep.tasks.open_executor", open_fragile)
    monkeypatch.setattr("hpcgym.study.sweep.tasks._DEATHS", 99)
    tasks = [{"x": x, "dies": x in killers} for x in range(16)]
    summary = run_tasks(chores.square, tasks, tmp_path, "processes", chunk=chunk, retries=0)
    assert {failure["task"]["x"] for failure in read_failures(tmp_path)} == killers
    assert sorted(done_in(tmp_path)) == [x for x in range(16) if x not in killers]
    assert summary.done + summary.failed == 16


class Taking(SerialExecutor):
    """Breaks when it has taken some tasks."""

    def __init__(self, most: int) -> None:
        self.left = most

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise BrokenExecutor("gone")
        return super().submit(*args, **kwargs)


def test_what_a_broken_executor_did_not_take_is_sent_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Taking] = []

    @contextmanager
    def open_breaking(name: str, workers: int | None) -> Iterator[Taking]:
        opened.append(Taking(2))
        yield opened[-1]

    monkeypatch.setattr("hpcgym.study.sweep.tasks.open_executor", open_breaking)
    assert run_tasks(chores.square, numbers(7), tmp_path, "serial", chunk=1).done == 7
    assert sorted(done_in(tmp_path)) == list(range(7))
    assert len(opened) == 4


def test_an_executor_of_somebody_else_that_breaks_is_not_replaced(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        open_executor("processes", 1) as executor,
        pytest.raises(HpcgymError, match="executor: it has broken"),
    ):
        run_tasks(chores.die_once, numbers(5, log=str(log)), tmp_path, executor)
    run_tasks(chores.die_once, numbers(5, log=str(log)), tmp_path, "serial")
    assert sorted(did(log)) == list(range(5))


#: Tasks that are not all done before a busy machine comes to kill their parent.
MANY = 600


def test_a_killed_parent_loses_and_repeats_nothing_that_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, log = tmp_path / "sweep", tmp_path / "log"
    command = [sys.executable, chores.__file__, str(folder), str(log), str(MANY)]
    parent = subprocess.Popen(command)
    wait_until(lambda: len(done_in(folder)) >= 20)
    workers = children_of(parent.pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not any(is_running(worker) for worker in workers))
    before = done_in(folder)
    assert 20 <= len(before) < MANY
    noted = len(did(log))
    monkeypatch.setattr(chores, "HURRY", True)
    tasks = numbers(MANY, log=str(log), sleep_s=0.02)
    summary = run_tasks(chores.square, tasks, folder, "serial", chunk=50)
    assert (summary.done, summary.damaged) == (MANY, 0)
    assert summary.new == MANY - len(before)
    assert sorted(done_in(folder)) == list(range(MANY))
    assert done_in(folder)[: len(before)] == before
    assert not set(did(log)[noted:]) & set(before)


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def children_of(process: int) -> list[int]:
    """The processes of the sweep's pool; not multiprocessing's own, which ends a little later."""
    psutil = pytest.importorskip("psutil")
    children = psutil.Process(process).children()
    return [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_after_ctrl_c_the_rest_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    tasks = numbers(6, log=str(log))
    with pytest.raises(KeyboardInterrupt):
        run_tasks(chores.interrupt_on_three, tasks, tmp_path, "serial", chunk=1)
    assert done_in(tmp_path) == [0, 1, 2]
    monkeypatch.setattr(chores, "TROUBLE", None)
    assert run_tasks(chores.interrupt_on_three, tasks, tmp_path, "serial").new == 3
    assert did(log) == [0, 1, 2, 3, 4, 5]


def test_ctrl_c_does_not_wait_for_long_tasks(tmp_path: Path) -> None:
    interrupted: list[float] = []

    def interrupt(done: int, total: int) -> None:
        if done:
            interrupted.append(time.monotonic())
            raise KeyboardInterrupt

    tasks = [{"x": 0}, *({"x": x, "sleep_s": 60} for x in range(1, 5))]
    with pytest.raises(KeyboardInterrupt):
        run_tasks(chores.square, tasks, tmp_path, "processes", workers=1, progress=interrupt)
    assert time.monotonic() - interrupted[0] < 30
    assert done_in(tmp_path) == [0]


# --- Files ----------------------------------------------------------------------------------------


def test_a_full_disk_ends_a_run_that_can_go_on(tmp_path: Path) -> None:
    def on_a_small_disk(*arguments: Any, **more: Any) -> sqlite3.Connection:
        file = connect(*arguments, **more)
        file.execute("PRAGMA max_page_count = 8")
        return file

    connect = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", on_a_small_disk)
        with pytest.raises(HpcgymError) as caught:
            run_tasks(chores.square, numbers(200), tmp_path, "serial", chunk=1)
    sentence = "cannot be read or written: database or disk is full"
    assert str(caught.value) == f"{tmp_path / FILE} {sentence}"
    kept = done_in(tmp_path)
    assert kept == [*range(len(kept))]
    assert 9 < len(kept) < 200
    summary = run_tasks(chores.square, numbers(200), tmp_path, "serial")
    assert (summary.done, summary.new, summary.damaged) == (200, 200 - len(kept), 0)


def test_who_only_looks_whether_a_folder_is_locked_stops_nobody(tmp_path: Path) -> None:
    """For a moment it has a lock of its own."""
    with locked(tmp_path):
        pass
    with (tmp_path / "lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(0.1, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        run_tasks(chores.square, numbers(1), tmp_path, "serial")


def test_a_function_in_this_process_need_not_be_imported(tmp_path: Path) -> None:
    run_tasks(lambda task: task, numbers(1), tmp_path, "serial")


test_mistakes = mistakes_of(globals(), reduce)
