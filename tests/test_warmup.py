"""What is compiled beforehand is all that a first use would compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import completed
from typer.testing import CliRunner

from hpcgym import HpcgymError, warmup
from hpcgym.cli import app
from hpcgym.compilation import notice

#: Compiles part after part; prints which entries of each have not been compiled. Those of
#: environments are counted: three parts compile the same for other kinds of machines.
WARM_UP = """
import importlib, json, pkgutil, sys
from pathlib import Path
import hpcgym.agents, hpcgym.baselines
from numba.core.dispatcher import Dispatcher
from hpcgym import warmup
from hpcgym.compilation.notice import part_of

entries = []
for package in (hpcgym, hpcgym.agents, hpcgym.baselines):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        source = Path(importlib.util.find_spec(found.name).origin)
        if source.suffix != ".py" or "@jit" not in source.read_text():
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            # the loops of machines are made elsewhere, and stand in their modules
            of_machine = name == "run" and ".machines." in found.name
            if isinstance(value, Dispatcher) and (
                value.py_func.__module__ == found.name or of_machine
            ):
                if not value.targetoptions.get("no_cpython_wrapper"):
                    entries.append((f"{found.name}.{name}", value))
seconds, missing = {}, {}
for part in warmup.PARTS:
    seconds |= warmup.warmup([part])
    of_part = [(n, entry) for n, entry in entries if part_of([n]) == part != "environments"]
    missing[part] = [n for n, entry in of_part if not entry.signatures]
steps = {n.rpartition(".")[2]: len(e.signatures) for n, e in entries if ".envs.kernels." in n}
print(json.dumps({"entries": len(entries), "missing": missing, "steps": steps}))
"""


@pytest.mark.slow
def test_every_entry_is_compiled_by_the_part_that_it_belongs_to() -> None:
    # with one thread nobody uses what is for many
    done = completed([sys.executable, "-c", WARM_UP], env={**os.environ, "NUMBA_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["entries"] > 40
    assert found["missing"] == {part: [] for part in warmup.PARTS}
    # one function for all that an environment does, compiled once for each kind of machine, and
    # once more for each on which run times are learned, for an order by usage, for files, for
    # quotas, for preemption, and where episodes begin with jobs
    assert found["steps"] == {"go_on": 12}


def test_parts_are_those_that_lines_name() -> None:
    assert list(warmup.PARTS) == list(notice.PARTS)
    for name in notice.PARTS:
        assert f"`hpcgym warmup {name}`" in notice.text_of(name)


class Type:
    """What numba says of a named tuple."""

    def __init__(self, home: str) -> None:
        self.instance_class = type("Rows", (), {"__module__": home})


@pytest.mark.parametrize(
    ("function", "homes", "part"),
    [
        ("hpcgym.engine.machines.pool.easy.run", [], "simulator"),
        ("hpcgym.engine.warm_start.begin", [], "simulator"),
        ("hpcgym.engine.warm_start.hold_on_nodes", [], "nodes"),
        ("hpcgym.engine.answers.online.answer", [], "learning"),
        ("hpcgym.engine.answers.shares.begin", ["hpcgym.engine.answers.shares"], "fair-share"),
        ("hpcgym.envs.kernels.steps.go_on", ["hpcgym.envs.core.arrays"], "environments"),
        (
            "hpcgym.envs.kernels.steps.go_on",
            ["hpcgym.envs.core.arrays", "hpcgym.engine.answers.shares"],
            "fair-share",
        ),
        (
            "hpcgym.envs.kernels.steps.go_on",
            ["hpcgym.envs.core.arrays", "hpcgym.engine.machines.limited.rows"],
            "environments-limits",
        ),
        ("hpcgym.engine.machines.limited.easy.run", ["hpcgym.engine.state"], "limits"),
        (
            "hpcgym.engine.machines.corun.easy.run",
            ["hpcgym.engine.machines.corun.state"],
            "corun",
        ),
        (
            "hpcgym.engine.machines.corun.easy.run",
            ["hpcgym.engine.machines.corun.state", "hpcgym.engine.machines.corun.files.shared"],
            "corun-files",
        ),
        ("hpcgymnastics.run", [], None),
        ("tiny.plus_one", [], None),
    ],
)
def test_which_part_a_function_belongs_to(function: str, homes: list[str], part: str) -> None:
    assert notice.part_of([function], [object(), *map(Type, homes)]) == part


def test_names_of_parts_are_checked_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = []
    monkeypatch.setattr(warmup, "PARTS", {"one": lambda: done.append(1), "two": done.clear})
    with pytest.raises(HpcgymError, match=r"unknown part 'too'; did you mean 'two'.*one, two"):
        warmup.warmup(["one", "too"])
    assert not done
    told = []
    seconds = warmup.warmup(["two", "one", "one"], lambda *what: told.append(what))
    assert list(seconds.items()) == [("two", 0.0), ("one", 0.0)]
    assert done == [1]
    assert told == [("two", None), ("two", 0.0), ("one", None), ("one", 0.0)]


# --- The command ----------------------------------------------------------------------------------


@pytest.fixture
def two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a part that compiles for a quarter of a second beside one that has been compiled."""
    monkeypatch.setattr(warmup, "PARTS", {"nodes": lambda: None, "limits": compile_something})
    monkeypatch.setattr(warmup, "kept_in", lambda: "/somewhere")


def compile_something() -> None:
    notice._spent_s["limits"] = notice._spent_s.get("limits", 0.0) + 0.25


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["warmup", *arguments])


@pytest.mark.usefixtures("two_parts")
def test_the_command_says_how_long_each_part_took() -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stdout == "nodes   compiled already\nlimits  0.2 s\n"
    assert result.stderr == "compiled code is kept in /somewhere\n"
    rows = json.loads(run("limits", "--format", "json").stdout)
    assert rows == [{"part": "limits", "compile_s": pytest.approx(0.25)}]
    assert run("--format", "csv").stdout.startswith("part,compile_s\nnodes,0.0\nlimits,0.2")


@pytest.mark.usefixtures("two_parts")
def test_the_command_says_that_all_was_compiled() -> None:
    result = run("nodes")
    assert (result.exit_code, result.stdout) == (0, "nodes  compiled already\n")
    assert result.stderr == (
        "all of it was compiled already; compiled code is kept in /somewhere\n"
    )


@pytest.mark.usefixtures("two_parts")
def test_the_command_knows_its_parts() -> None:
    result = run("node")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "hpcgym: unknown part 'node'; did you mean 'nodes'? known are nodes, limits\n"
    )


def test_the_help_of_the_command_lists_all_parts() -> None:
    text = run("--help").stdout
    for name, part in notice.PARTS.items():
        assert f"\n  {name} " in text
        assert f"about {part.seconds} s" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", [{"NUMBA_CACHE_DIR": "/dev/null/x"}, {"NUMBA_DISABLE_JIT": "1"}]
)
def test_the_command_says_that_nothing_is_kept(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hpcgym", "warmup", "simulator"]
    done = completed(command, env={**os.environ, **environment})
    assert (done.returncode, done.stdout) == (1, "")
    assert "hpcgym: compiled code is kept nowhere, so nothing can be compiled" in done.stderr


# --- The line -------------------------------------------------------------------------------------

LINE = notice.text_of("learning") + "\n"
#: Compiles two functions of a part, the second at once after the first.
LEARN = """
import numpy as np
from hpcgym.compilation import notice
from hpcgym.engine.answers import nag
from hpcgym.scheduler.estimates import learned
notice.SILENCE_S = 0.0
x, phi, terms = np.ones(1), np.ones(3), np.ones((learned.N_ROWS, 3))
nag.predict_from(x, phi, terms, 2)
nag.learn_from(x, phi, terms, np.ones(2), np.zeros(1, learned.LOSS)[0], 1.0, 1.0, 1.0)
"""


def learn(folder: Path, before: str = "") -> tuple[str, str]:
    """Return what a process prints that compiles two functions, or finds them compiled."""
    done = run_aloud([sys.executable, "-c", f"{before}\n{LEARN}"], NUMBA_CACHE_DIR=str(folder))
    return done.stdout, done.stderr


def run_aloud(command: list[str], **environment: str) -> Any:
    """Run a command to its end, with what is said of compiling."""
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )


@pytest.mark.slow
def test_a_line_says_once_what_is_compiled_and_nothing_what_is_kept(tmp_path: Path) -> None:
    assert learn(tmp_path) == ("", LINE)
    assert learn(tmp_path) == ("", "")


@pytest.mark.slow
def test_a_program_with_logging_of_its_own_decides(tmp_path: Path) -> None:
    to_output = (
        "import logging, sys; logging.basicConfig(stream=sys.stdout, format='! %(message)s')"
    )
    assert learn(tmp_path / "a", to_output) == (f"! {LINE}", "")
    silent = "import logging; logging.getLogger('hpcgym').setLevel('ERROR')"
    assert learn(tmp_path / "b", silent) == ("", "")


class Clock:
    """A clock and a timer that a test moves on; stands for ``time`` and for ``threading.Timer``."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waiting: list[tuple[float, Any]] = []

    def monotonic(self) -> float:
        return self.now

    def Timer(self, seconds: float, function: Any, arguments: Any) -> Any:  # noqa: N802
        clock, entry = self, (self.now + seconds, lambda: function(*arguments))

        class Timer:
            daemon = False

            def start(self) -> None:
                clock.waiting.append(entry)

            def cancel(self) -> None:
                clock.waiting = [other for other in clock.waiting if other is not entry]

        return Timer()

    def go_on(self, seconds: float) -> None:
        self.now += seconds
        due = [entry for entry in self.waiting if entry[0] <= self.now]
        self.waiting = [entry for entry in self.waiting if entry[0] > self.now]
        for _, function in due:
            function()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(notice, "time", clock)
    monkeypatch.setattr(notice, "threading", clock)
    monkeypatch.setattr(notice, "_spent_s", {})
    monkeypatch.setattr(notice, "_said", set())
    return clock


def test_two_seconds_of_a_part_are_silent_in_all(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with notice.about("nodes"):
            clock.go_on(50)  # it is looked for
            notice.start()
            clock.go_on(0.9)
        clock.go_on(50)
    with notice.about("limits"):
        notice.start()
        clock.go_on(1.9)
    assert not caplog.messages
    with notice.about("nodes"):
        notice.start()
        clock.go_on(0.1)
        assert not caplog.messages
        clock.go_on(0.2)
        assert caplog.messages == [notice.text_of("nodes")]
        clock.go_on(50)
    with notice.about("nodes"):
        notice.start()
        clock.go_on(50)
    assert caplog.messages == [notice.text_of("nodes")]
    assert notice.spent_s() == pytest.approx(0.9 + 0.9 + 1.9 + 50.3 + 50)


def test_the_function_that_is_called_counts_for_what_others_call(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with notice.about("environments"):
        notice.start()
        for _ in range(3):
            with notice.about("nodes"):
                notice.start()
                clock.go_on(1)
    assert caplog.messages == [notice.text_of("environments")]
    assert notice.spent_s() == 3


def test_it_is_silent_while_another_process_compiles(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with notice.about("nodes"):
        with notice.paused():  # for the lock of what is called
            clock.go_on(50)
        notice.start()
        clock.go_on(1.5)
        with notice.paused():  # for one that it calls
            clock.go_on(50)
        clock.go_on(0.4)
        assert not caplog.messages
        clock.go_on(0.2)
    assert caplog.messages == [notice.text_of("nodes")]
    assert notice.spent_s() == pytest.approx(2.1)


def test_nothing_is_said_of_functions_of_others_or_during_warmup(
    clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiles() -> None:
        with notice.about("nodes"):
            notice.start()
            clock.go_on(50)

    with notice.about(None):
        notice.start()
        clock.go_on(50)
    monkeypatch.setattr(warmup, "PARTS", {"nodes": compiles})
    assert warmup.warmup() == {"nodes": 50}
    assert not caplog.messages
