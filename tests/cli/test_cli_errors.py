"""Mistakes, and what the system may do: one line and an exit code."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from commands import JOBS, in_words, run, succeed, typed
from mistakes import is_told

from hpcgym.cli.interrupts import interruptible
from hpcgym.simulation.driver import Simulation
from hpcgym.version import __version__


def test_version():
    assert succeed("--version").stdout == f"hpcgym {__version__}\n"


def mistakes(heading):
    """What ``mistakes.txt`` has below such headings: the words of a command, and what is said."""
    begin = None
    for row in Path(__file__).with_name("mistakes.txt").read_text().splitlines():
        words, arrow, message = row.partition("  =>  ")
        if row.startswith("# "):
            begin = row.removeprefix(heading) if row.startswith(heading) else None
        elif arrow and begin is not None:
            yield f"{begin} {words}", message


@pytest.mark.parametrize(("words", "message"), list(mistakes("# hpcgym")))
def test_mistakes_end_in_a_line_and_leave_nothing(words, message, here):
    node = "[[group]]\nname = 'node'\n{} = {}\ncore = 16\nmem = 500\ngpu = 2\nmic = 2\n"
    files = {
        "typo.toml": node.format("node", 4),
        "tiny.toml": node.format("nodes", 64),
        "text.toml": "four nodes\n",
        "pool.toml": "processors = 4000\n",
        "prices.csv": "time_s,eur_per_mwh\n0,40\n43200,100\n",
        "grid.csv": "datetime,g_per_kwh\n2024-01-01,50\n2024-01-02,9\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    is_told("typed(*words)", {"typed": typed, "words": shlex.split(words)}, message)
    assert {path.name for path in here.iterdir()} == {*files}


@pytest.mark.parametrize(("words", "message"), list(mistakes("# before the work: hpcgym")))
def test_what_is_wrong_or_missing_is_said_before_the_work(words, message, monkeypatch):
    for module in ("ortools", "hpcgym.baselines.cp.dispatchers", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("hpcgym.workload.load.load_with_raw", None)
    is_told("typed(*words)", {"typed": typed, "words": shlex.split(words)}, message)


@pytest.mark.parametrize(("words", "message"), list(mistakes("# usage: hpcgym")))
def test_wrong_usage_is_exit_code_2(words, message):
    result = run(*shlex.split(words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
    assert message in in_words(result.stderr)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory for this workload"),
        (OSError(28, "No space left on device", "a.swf"), 1, "a.swf: No space left on device"),
        (OSError("gone"), 1, "gone"),
        (ZeroDivisionError(), 1, None),  # of the program itself: it keeps its traceback
    ],
)
def test_what_the_system_may_do(monkeypatch, error, code, line):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("hpcgym.workload.load.load_with_raw", fail)
    result = run("simulate", JOBS)
    assert result.exit_code == code
    if line is None:
        assert result.exception is error
    else:
        assert result.stderr == f"hpcgym: {line}\n"
    if code == 130:
        monkeypatch.setattr("click.Command.parse_args", fail)  # while options are read
        assert run("simulate", JOBS).stderr == f"hpcgym: {line}\n"


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_command_ends_amid_a_simulation_that_takes_minutes(
    number, code, line, monkeypatch, capfd
):
    whole = Simulation.drive

    def drive(*arguments):
        timer.start()
        return whole(*arguments)

    timer = threading.Timer(0.3, os.kill, (os.getpid(), number))
    monkeypatch.setattr(Simulation, "drive", drive)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = time.monotonic()
    try:
        done = run("simulate", "lublin:jobs=60000,processors=256,load=3", "--scheduler", "evolved")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.exit_code, done.stderr) == (code, f"hpcgym: {line}\n")
    assert time.monotonic() - begun < 30
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_sigterm_is_left_to_who_hears_it_already():
    """To a handler of the program that runs commands; and it is not heard on other threads."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [1]
    thread = threading.Thread(target=lambda: heard.append(succeed("simulate", JOBS).exit_code))
    thread.start()
    thread.join()
    assert heard == [1, 0]


@pytest.mark.parametrize("module", ["hpcgym.cli.program", "hpcgym.cli.simulate", "click"])
def test_ctrl_c_while_python_imports_is_a_line(module):
    code = (
        "import sys\nfrom hpcgym.cli import main\nsys.argv[1:] = ['simulate', '-h']\n"
        "class Stop:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop)\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "hpcgym: interrupted\n")


#: Sends Ctrl-C at an import, counted from the first of ours on; Python runs this when it starts.
AT_AN_IMPORT = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Count:
    seen = None
    def find_spec(name, *_):
        if Count.seen is not None:
            Count.seen += 1
            if Count.seen == {}:
                os.kill(os.getpid(), signal.SIGINT)
        elif name == "hpcgym.starting":
            Count.seen = 0
sys.meta_path.insert(0, Count)
"""


@pytest.mark.parametrize("place", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377])
def test_ctrl_c_at_any_import_of_ours_is_a_line(place, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(AT_AN_IMPORT.format(place))
    takes_minutes = ("simulate", "lublin:jobs=200000,processors=256,load=3", "--scheduler=evolved")
    done = subprocess.run(
        [sys.executable, "-m", "hpcgym", *takes_minutes],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "hpcgym: interrupted\n")


def test_a_script_with_the_library_keeps_its_own_end(tmp_path):
    """Also if it is called as the program is, or has its name among its arguments."""
    script = tmp_path / "study.py"
    code = "import signal, hpcgym; print(signal.getsignal(signal.SIGINT).__name__)"
    script.write_text(f"import signal; signal.signal(2, signal.default_int_handler); {code}")
    for words in ([script, "hpcgym"], [script, "-m", "hpcgym"], ["-c", script.read_text()]):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("default_int_handler\n", "")
