"""The command line: help, mistakes, and published values."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import JOBS, as_json, line, run, succeed

from hpcgym.simulation.run import simulate
from hpcgym.version import __version__
from hpcgym.workload import load_workload


def program(*arguments, **options):
    """Run the program in a process of its own."""
    command = [sys.executable, "-c", "from hpcgym.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


# --- help and errors -----------------------------------------------------------------------------


def test_version():
    assert succeed("--version").stdout == f"hpcgym {__version__}\n"


def mistakes():
    """What ``mistakes.txt`` has: the words of a command, and what is said of them."""
    begin = ""
    for row in Path(__file__).with_name("mistakes.txt").read_text().splitlines():
        words, arrow, message = row.partition("  =>  ")
        if row.startswith("# hpcgym"):
            begin = row.removeprefix("# hpcgym")
        elif arrow:
            yield f"{begin} {words}", message


@pytest.mark.parametrize(("words", "message"), list(mistakes()))
def test_mistakes_end_in_a_line_and_leave_nothing(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    node = "[[group]]\nname = 'node'\n{} = {}\ncore = 16\nmem = 500\ngpu = 2\nmic = 2\n"
    files = {
        "typo.toml": node.format("node", 4),
        "tiny.toml": node.format("nodes", 64),
        "text.toml": "four nodes\n",
        "pool.toml": "processors = 4000\n",
        "prices.csv": "time_s,eur_per_mwh\n0,40\n43200,100\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    assert message in " ".join(line(*shlex.split(words)).split())
    assert {path.name for path in tmp_path.iterdir()} == {*files}


INSTALL = "pip install '.[{}]' in the clone of hpcgym"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate JOBS --scheduler prbb", "did you mean 'prb'"),
        ("simulate JOBS --cluster eurrora", "did you mean 'eurora'"),
        ("compare JOBS --scheduler easy,prbb", "did you mean 'prb'"),
        ("compare JOBS --scheduler easy,prb --passes per-event", "passes does not go with"),
        ("compare JOBS --cluster eurora --allocation best", "did you mean 'best-fit'"),
        ("simulate JOBS --scheduler pcp20", INSTALL.format("cp")),
        ("compare JOBS --scheduler pcp20", INSTALL.format("cp")),
        ("simulate JOBS --picture a.png", INSTALL.format("report")),
        ("simulate JOBS --picture a.html", INSTALL.format("report")),
        ("simulate JOBS --html a.html", INSTALL.format("report")),
    ],
)
def test_what_is_wrong_or_missing_is_said_before_the_work(words, message, monkeypatch, tmp_path):
    for module in ("ortools", "hpcgym.baselines.cp.dispatchers", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("hpcgym.workload.load.load_with_raw", None)
    monkeypatch.chdir(tmp_path)
    assert message in line(*words.replace("JOBS", JOBS).split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate", "Missing argument 'WORKLOAD'"),
        ("simulate JOBS --format yaml", "'--format': 'yaml' is not one of 'table', 'json'"),
        ("simulate JOBS --week soon", "Invalid value for '--week': no whole number"),
        ("simulate JOBS --processors 64.5", "Invalid value for '--processors': no whole number"),
        ("simulate JOBS --from soon", "'soon' is no whole seconds, nor a time such as 5h or 2d"),
        ("simulate JOBS --week 1 --month 1", "a week or a month, not both"),
        ("simulate JOBS --cluster eurora --processors 9", "a machine or its processors, not both"),
        ("evaluate --workload JOBS --cluster eurora --processors 9", "processors, not both"),
        ("compare JOBS --processors 32 --cluster taurus", "a machine or its processors, not both"),
        ("simulate JOBS --no-such-option", "No such option"),
        ("nothing", "No such command"),
    ],
)
def test_wrong_usage_is_exit_code_2(words, message):
    result = run(*words.replace("JOBS", JOBS).split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory for this workload"),
        (OSError(28, "No space left on device", "a.swf"), 1, "a.swf: No space left on device"),
        (OSError("gone"), 1, "gone"),
    ],
)
def test_what_the_system_may_do(monkeypatch, error, code, line):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("hpcgym.workload.load.load_with_raw", fail)
    result = run("simulate", JOBS)
    assert result.exit_code == code
    assert result.stderr == f"hpcgym: {line}\n"


@pytest.mark.parametrize("module", ["hpcgym.cli.program", "hpcgym.cli.simulate", "typer"])
def test_ctrl_c_while_python_imports_is_a_line(module):
    code = (
        "import sys\nfrom hpcgym.cli import main\n"
        "class Stop:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop)\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "hpcgym: interrupted\n")


def test_ctrl_c_while_options_are_read_is_a_line(monkeypatch):
    def fail(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperCommand.parse_args", fail)
    result = run("simulate", JOBS)
    assert (result.exit_code, result.stderr) == (130, "hpcgym: interrupted\n")


def test_a_programming_error_keeps_its_traceback(monkeypatch):
    def fail(*arguments, **options):
        raise ZeroDivisionError

    monkeypatch.setattr("hpcgym.workload.load.load_with_raw", fail)
    assert isinstance(run("simulate", JOBS).exception, ZeroDivisionError)


@pytest.mark.slow
def test_a_terminal_without_unicode():
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = program("simulate", JOBS, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mean BSLD" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes end differently elsewhere")
@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_a_reader_that_goes_is_no_error(format):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from hpcgym.cli import main; main()"]
    done = subprocess.run(
        [*command, "traces", "list", "--format", format],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_who_watches_sees_progress_and_the_result_stays_pure():
    import pty

    screen, terminal = pty.openpty()
    command = [sys.executable, "-c", "from hpcgym.cli import main; main()"]
    done = subprocess.run(
        [*command, "compare", JOBS, "--scheduler", "easy,saf", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        check=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    shown = os.read(screen, 100_000).decode()
    os.close(terminal)
    os.close(screen)
    assert len(json.loads(done.stdout)["results"]) == 2
    assert "simulating saf" in shown


# --- the published values ------------------------------------------------------------------------


def test_fair_shares_by_option_and_file(tmp_path):
    shares = tmp_path / "shares.toml"
    shares.write_text("half_life_s = 600\n[shares]\n1 = 30\n")
    lublin = "lublin:jobs=800,processors=32,load=1.2,users=6"
    by_file = as_json("simulate", lublin, "--scheduler", "fairshare", "--fair-share", str(shares))
    assert by_file["scheduler"]["fair_share"] == "half_life_s=600, damping=1, shares 1=30"
    expected = simulate(load_workload(lublin), "fairshare", fair_share=str(shares))
    assert by_file["mean_bsld"] == expected.metrics["mean_bsld"]
    usual = as_json("simulate", lublin, "--scheduler", "fairshare")
    assert usual["mean_bsld"] != by_file["mean_bsld"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_help_that_cannot_be_written_ends_in_a_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "hpcgym", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "hpcgym: No space left on device\n")
