"""The virtual clock, and what ends the processes under it; Slurm is not needed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.replay import cleanup, native
from hpcgym.replay.cleanup import CLOCK, CLOCK_FILE, processes_of, sweep
from hpcgym.replay.native import Conductor, library

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="a replay needs Linux"),
]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@contextmanager
def conducted(folder: Path, now_s: float = 0) -> Iterator[tuple[Conductor, dict[str, str]]]:
    """Yield a clock in a folder, and the environment of processes that have it."""
    conductor = Conductor(folder / CLOCK_FILE, now_s)
    yield conductor, having_the_clock(folder)
    conductor.close()


def having_the_clock(folder: Path) -> dict[str, str]:
    """Return the environment of processes that have the clock of a folder."""
    clock = {CLOCK: str(folder / CLOCK_FILE), "LD_PRELOAD": str(library("clock"))}
    return {"PATH": os.environ["PATH"], "TZ": "UTC", **clock}


@needs_compiler
def test_time_passes_at_once_and_to_the_second(tmp_path: Path) -> None:
    script = "date +%s; sleep 50000; date +%s; sleep 0.75; date +%s.%N"
    begin = time.monotonic()
    with conducted(tmp_path, 1_000_000) as (conductor, own):
        said = conductor.run(["/bin/sh", "-c", script], own)
        assert said.split() == ["1000000", "1050000", "1050000.750000000"]
        assert time.monotonic() - begin < 60
        assert conductor.ended == 2
        with pytest.raises(HpcgymError, match="sh failed: wrong"):
            conductor.run(["/bin/sh", "-c", "echo wrong >&2; exit 3"], own)


@needs_compiler
def test_sleepers_go_on_in_the_order_of_their_times(tmp_path: Path) -> None:
    lines = "".join(f"(sleep {n}; date +%s) & " for n in (700, 30, 5000, 30, 90))
    with conducted(tmp_path) as (conductor, own):
        said = conductor.run(["/bin/sh", "-c", f"{lines} wait"], own)
    assert said.split() == ["30", "30", "90", "700", "5000"]


@needs_compiler
def test_a_condition_with_a_time_waits_for_the_clock(tmp_path: Path) -> None:
    """As Slurm's daemons wait: Python's locks do so where semaphores have no clock."""
    source = tmp_path / "wait.c"
    source.write_text(
        "#include <pthread.h>\n#include <stdio.h>\n#include <time.h>\n"
        "int main(void) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n"
        "pthread_cond_t c = PTHREAD_COND_INITIALIZER; struct timespec t = {time(0) + 3600, 0};\n"
        "pthread_mutex_lock(&m); int r; do r = pthread_cond_timedwait(&c, &m, &t); while (!r);\n"
        'printf("%d %ld\\n", r, (long)time(0)); }\n'
    )
    program = tmp_path / "wait"
    subprocess.run(["cc", str(source), "-o", str(program), "-lpthread"], check=True)
    with conducted(tmp_path, 500) as (conductor, own):
        assert conductor.run([str(program)], own) == "110 4100\n"  # ETIMEDOUT


def script(folder: Path, *lines: str) -> list[str]:
    """Return a command that makes a clock ``c`` in a folder and runs some lines of Python."""
    begin = ["import signal, subprocess, sys", "from pathlib import Path"]
    begin += ["from hpcgym.replay.native import Conductor", f"own = {having_the_clock(folder)!r}"]
    begin += [f"c = Conductor(Path({str(folder / CLOCK_FILE)!r}), 0)"]
    (folder / "run.py").write_text("\n".join([*begin, *lines, ""]))
    return [sys.executable, str(folder / "run.py")]


@needs_compiler
def test_a_process_ends_without_who_moves_the_clock(tmp_path: Path) -> None:
    """Even if nobody sweeps: both who moved the clock and its guard may be killed."""
    command = script(
        tmp_path,
        "subprocess.Popen(['/bin/sh', '-c', '(sleep 9000 &) ; sleep 9000'], env=own)",
        "print('ready', flush=True)",
        "sys.stdin.read()",
    )
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        wait_until(lambda: len(list(processes_of(tmp_path))) >= 2)
        process.kill()
    wait_until(lambda: not list(processes_of(tmp_path)))


@needs_compiler
def test_whoever_waits_for_a_process_without_rest_can_be_interrupted(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        # shells start what they put in the background with this signal ignored
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "busy = ['/bin/sh', '-c', 'echo; while :; do :; done']",
        "subprocess.Popen(busy, env=own, stdout=subprocess.PIPE).stdout.readline()",
        "print('ready', flush=True)",
        "c.advance(1000)",
    )
    with (tmp_path / "errors").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.wait(60)  # it would go on for two minutes
        assert "KeyboardInterrupt" in (tmp_path / "errors").read_text()
    finally:
        process.kill()
        process.communicate()
        for pid in processes_of(tmp_path):
            os.kill(pid, signal.SIGKILL)


def wait_until(holds: object) -> None:
    end = time.monotonic() + 60
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def sleeper(folder: Path) -> subprocess.Popen[bytes]:
    own = {**os.environ, CLOCK: str(folder / CLOCK_FILE)}
    return subprocess.Popen(["sleep", "600"], env=own, start_new_session=True)


def test_a_sweep_ends_the_processes_of_its_folder_and_no_others(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "mine-2"
    mine.mkdir()
    ended, kept = sleeper(mine), sleeper(other)
    try:
        wait_until(lambda: list(processes_of(mine)) == [ended.pid])
        sweeping = subprocess.Popen([sys.executable, "-I", "-S", cleanup.__file__, str(mine)],
                                    stdin=subprocess.PIPE)  # fmt: skip
        time.sleep(0.3)
        assert mine.exists()  # it waits for the end of its input
        assert sweeping.stdin is not None
        sweeping.stdin.close()
        assert ended.wait(30) == -9
        assert sweeping.wait(30) == 0
        assert not mine.exists()
        assert kept.poll() is None
    finally:
        for process in (ended, kept):
            process.kill()
            process.wait()
    sweep(mine)  # nothing is left to do


def test_what_is_missing_is_said_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(native, "SYSTEM", "/nowhere")
    monkeypatch.setattr(native, "code_folder", lambda name: tmp_path)
    with pytest.raises(HpcgymError, match="apt-get install slurmctld slurmd slurm-client"):
        native.find_programs()
    with pytest.raises(HpcgymError, match="apt-get install gcc libc6-dev"):
        library("clock")
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_a_library_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "code_folder", lambda name: tmp_path)
    first = library("conductor")
    before = first.stat()
    assert library("conductor") == first
    assert first.stat() == before
    assert list(tmp_path.iterdir()) == [first]
