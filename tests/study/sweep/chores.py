"""Tasks for tests of sweeps: functions that workers can import."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from hpcgym.study import run_tasks

TROUBLE = 3  # the number that some functions do not like
HURRY = False  # no task sleeps then


def square(task: dict[str, Any]) -> dict[str, Any]:
    """Square a number, and note in the file ``log`` of the task that it was done."""
    if "log" in task:
        with open(task["log"], "a") as file:
            file.write(f"{task['x']}\n")
    time.sleep(0 if HURRY else task.get("sleep_s", 0))
    return {"square": task["x"] ** 2, "third": task["x"] / 3}


def fail_on_three(task: dict[str, Any]) -> dict[str, Any]:
    """Square a number unless it is 3."""
    if task["x"] == TROUBLE:
        raise ValueError("three is too much")
    return square(task)


def fail_at_first(task: dict[str, Any]) -> dict[str, Any]:
    """Fail when a task is done for the first time."""
    before = Path(task["log"]).read_text().split() if Path(task["log"]).exists() else []
    result = square(task)
    if str(task["x"]) not in before:
        raise OSError("not now")
    return result


def die_sometimes(task: dict[str, Any]) -> dict[str, Any]:
    """Kill the worker if the task says so."""
    if task.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    return square(task)


def die_once(task: dict[str, Any]) -> dict[str, Any]:
    """Kill the worker at the first task of all."""
    try:
        Path(task["log"]).with_suffix(".died").touch(exist_ok=False)
    except FileExistsError:
        return square(task)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def die(task: dict[str, Any]) -> dict[str, Any]:
    """Kill the worker."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def interrupt_on_three(task: dict[str, Any]) -> dict[str, Any]:
    """Be interrupted, as by Ctrl-C, if the number is 3."""
    if task["x"] == TROUBLE:
        raise KeyboardInterrupt
    return square(task)


def numbers(n: int, **more: Any) -> list[dict[str, Any]]:
    """Return the tasks 0 to n - 1."""
    return [{"x": x, **more} for x in range(n)]


if __name__ == "__main__":  # a sweep for a test to kill
    folder, log, count = sys.argv[1:4]
    chores = numbers(int(count), log=log, sleep_s=0.02)
    run_tasks(square, chores, folder, "processes", workers=2, chunk=3)
