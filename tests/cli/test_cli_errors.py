"""The command line: help, mistakes, and published values."""

import json
import os
import subprocess
import sys

import pytest
from commands import JOBS, as_json, run, succeed

from hpcgym.baselines import SCHEDULERS
from hpcgym.cli.options import RECIPES as DESCRIBED_RECIPES
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.policies import POLICIES
from hpcgym.simulation.run import simulate
from hpcgym.version import __version__
from hpcgym.workload import load_workload
from hpcgym.workload.cleaning import FILTERS, RECIPES


def program(*arguments, **options):
    """Run the program in a process of its own."""
    command = [sys.executable, "-c", "from hpcgym.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


# --- help and errors -----------------------------------------------------------------------------


def test_version():
    assert succeed("--version").stdout == f"hpcgym {__version__}\n"


@pytest.mark.parametrize(
    ("given", "said"), [("64.5", "no whole number"), ("many", "no whole number")]
)
def test_a_value_that_is_no_number(given, said):
    done = run("simulate", JOBS, "--processors", given)
    assert done.exit_code == 2
    assert f"Invalid value for '--processors': {said}" in done.stderr


def test_a_choice_that_there_is_not():
    done = run("simulate", JOBS, "--format", "yaml")
    assert done.exit_code == 2
    assert "Invalid value for '--format': 'yaml' is not one of 'table', 'json'" in done.stderr


def test_help_lists_all_names():
    text = succeed("simulate", "--help").stdout
    assert set(DESCRIBED_RECIPES) == set(RECIPES)
    for name in (*SCHEDULERS, *POLICIES, *ESTIMATES, *RECIPES, *FILTERS):
        assert f"\n  {name} " in text or f"\n  {name}\n" in text, name
    for command in ("simulate", "compare", "generate"):
        usage, short, examples = succeed(command, "--help").stdout.split("\n\n")[:3]
        assert usage.startswith(f"Usage: hpcgym {command} ")
        assert short.endswith(".")
        assert examples.startswith(f"    hpcgym {command} ")


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom hpcgym.cli import app\n"
        "print({'pandas', 'matplotlib', 'pooch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "nowhere.swf"], "nowhere.swf: no such file"),
        (["simulate", "KTH-SP3"], "did you mean KTH-SP2"),
        (["simulate", "lublin:jobs=x"], "jobs=x is not a number"),
        (["simulate", JOBS, "--clean", "glaser"], "did you mean 'glesser'"),
        (["simulate", JOBS, "--errors", "ignore"], "errors must be"),
        (["simulate", JOBS, "--scheduler", "eazy"], "easy"),
        (["simulate", JOBS, "--scheduler", "powercap"], "not a scheduler: --power powercap"),
        (["simulate", JOBS, "--scheduler", "easy,saf"], "hpcgym compare --scheduler easy,saf"),
        (["simulate", JOBS, "--backfill", "slurm:bf_interval=1,bf_window=2"], "joined by +, not"),
        (
            ["simulate", JOBS, "--scheduler", "easy:backfill=slurm:bf_interval=1,bf_window=2"],
            "backfill 'slurm:bf_interval=1,bf_window=2': settings of slurm are joined by +, not",
        ),
        (["simulate", JOBS, "--backfill", "slurm:"], "'slurm:': a setting is missing behind it"),
        (["simulate", JOBS, "--maintenance", "0/9:nodes="], "'0/9:nodes=': nodes= names none"),
        (
            ["simulate", JOBS, "--scheduler", "prb", "--fair-share", "damping=2"],
            "(--fair-share): prb orders the queue itself",
        ),
        (
            ["simulate", JOBS, "--scheduler", "fairshare", "--fair-share", ""],
            "fair_share (--fair-share) says nothing",
        ),
        (["evaluate", "easy-co", "--workload", JOBS], "easy-co is for jobs that share nodes: it"),
        (
            ["evaluate", "powercap+foo", "--workload", JOBS, "--env", "PowerCap"],
            "'foo', behind the rule, is no scheduler; known are fcfs",
        ),
        (["evaluate", "powercup", "--workload", JOBS], "or a rule under limits (none, shut"),
        (["simulate", JOBS, "--policy", "safe"], "saf"),
        (["simulate", JOBS, "--policy", "1,2,3"], "a policy has 6 weights"),
        (["simulate", JOBS, "--policy", "1,2,3,4,5,x"], "weights must be numbers"),
        (["simulate", JOBS, "--backfill", "maybe"], "conservative"),
        (["simulate", JOBS, "--backfill-order", "sjbg"], "did you mean 'sjbf'"),
        (["simulate", JOBS, "--estimate", "guess"], "clairvoyant"),
        (["simulate", JOBS, "--correction", "none at all"], "incremental"),
        (["simulate", JOBS, "--passes", "per-week"], "per-event"),
        (["simulate", JOBS, "--threshold", "-5"], "threshold"),
        (["simulate", JOBS, "--threshold", "soon"], "threshold must be a number of at least 0 s"),
        (["simulate", JOBS, "--correction", "none"], "unknown correction 'none'"),
        (["simulate", JOBS, "--processors", "0"], "processors must be"),
        (["simulate", JOBS, "--output", "a.txt"], "a.txt: the name of a schedule ends in .swf"),
        (["simulate", JOBS, "--output", "none/a.swf"], "there is no folder none"),
        (["simulate", JOBS, "--picture", "a.gif"], "a.gif: the name of a picture ends in .png"),
        (["compare", JOBS, "--html", "a.png"], "a.png: the name of a page ends in .html"),
        (["compare", JOBS, "--scheduler", "easy,eazy"], "easy"),
        (["compare", JOBS, "--scheduler", ","], "names no scheduler"),
        (["generate", "lubin:jobs=5", "a.swf"], "'lubin:jobs=5' is not a generator"),
        (["generate", "lublin", "a.txt"], "a.txt: the name of a workload ends in .swf"),
        (["traces", "show", "nothing"], "'nothing' is no file, trace or generator"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.startswith("hpcgym: ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate"],
        ["simulate", JOBS, "--format", "xml"],
        ["simulate", JOBS, "--week", "soon"],
        ["simulate", JOBS, "--no-such-option"],
        ["nothing"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr
    assert result.stdout == ""


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
def test_the_program_prints_json_and_nothing_else_to_stdout():
    done = program("simulate", JOBS, "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["jobs"] == 200
    assert done.stderr == ""


@pytest.mark.slow
def test_a_terminal_without_unicode():
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = program("simulate", JOBS, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mean BSLD" in done.stdout


@pytest.mark.slow
def test_the_program_ends_with_the_codes():
    done = program("simulate", "nowhere.swf")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "hpcgym: nowhere.swf: no such file\n"
    assert program("simulate").returncode == 2


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


def test_the_published_value_of_kth_sp2(trace):
    value = as_json(
        "simulate",
        trace("KTH-SP2-1996-2.swf.gz"),
        "--clean",
        "glesser",
        "--scheduler",
        "easy",
        "--passes",
        "per-event",
    )
    assert value["jobs"] == 28_481
    assert value["mean_bsld"] == pytest.approx(92.57653973362949, abs=1e-9)


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


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_fair_shares_that_nobody_looks_at(command):
    result = run(command, "lublin:jobs=9", "--fair-share", "damping=2")
    assert result.exit_code != 0
    assert "(--fair-share): nothing here looks at" in f"{result.exception}{result.output}"


def test_fair_shares_beside_schedulers_that_do_not_look_at_them():
    options = ("--scheduler", "easy,fairshare", "--fair-share", "half_life_s=600")
    easy, fair = as_json("compare", "lublin:jobs=200,users=5", *options)["results"]
    assert easy["scheduler"]["fair_share"] is None
    assert fair["scheduler"]["fair_share"] == "half_life_s=600, damping=1"
