"""``-``: logs from standard input; pipes and terminals."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from commands import JOBS, as_json, digests, succeed, typed
from mistakes import mistakes_of

from hpcgym.cli import files
from hpcgym.workload import load_workload, write_swf, write_table

PROGRAM = [sys.executable, "-c", "from hpcgym.cli import main; main()"]
SACCT = "JobIDRaw|User|Submit|Start|End|Timelimit|NCPUS|State\n7|ann|2024-03-01T08:00:00|"
SACCT += "2024-03-01T08:00:00|2024-03-01T09:00:00|02:00:00|4|COMPLETED\n"
CSV = "submit_time,run_time,requested_processors\n0,3600,4\n"


def in_bash(words: str, data: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    words = words.replace("hpcgym", f"'{sys.executable}' -m hpcgym")
    done = subprocess.run(["bash", "-c", words], input=data, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("ending", [".swf", ".swf.gz", ".csv", ".csv.gz", ".json", ".parquet"])
def test_logs_of_all_forms_come_from_standard_input(ending: str) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    path = Path(f"jobs{ending}")
    (write_swf if ".swf" in ending else write_table)(load_workload(JOBS), path)
    words = ("--processors", "32", "--scheduler", "saf")
    facts = as_json("simulate", "-", *words, input=path.read_bytes())
    plain = as_json("simulate", path, *words)
    assert digests(facts) == digests(plain)
    assert facts["workload"] == (
        "stdin" if ".swf" in ending else f"stdin{ending}".removesuffix(".gz")
    )
    (digest,) = facts["provenance"]["files"].values()
    assert digest == plain["provenance"]["files"][path.name]


def test_what_sacct_prints_comes_from_standard_input() -> None:
    assert as_json("traces", "show", "-", input=SACCT)["jobs"] == 1


def test_warnings_name_standard_input_and_not_its_copy() -> None:
    log = "; MaxProcs: four\n1 0 0 60 4 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n"
    warned = succeed("simulate", "-", input=log).stderr
    assert "hpcgym: standard input" in warned
    assert tempfile.gettempdir() not in warned


@pytest.mark.slow
def test_what_a_search_says_of_standard_input() -> None:
    write_swf(load_workload("lublin:jobs=500,processors=64,seed=2"), "log.swf")
    rules = ("--search", "orders=fcfs,saf", "--search", "backfilling=easy", "--budget", "10")
    done = succeed("tune", "-", *rules, input=Path("log.swf").read_bytes())
    assert "hpcgym simulate - --scheduler" in done.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def read_from(stream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a log from such an input."""
    monkeypatch.setattr(sys, "stdin", stream)
    with files.streamed({"workload": "-"}):
        pass


# --- Pipes ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_recognised_by_what_it_holds_and_errors_name_it() -> None:
    for log in (SACCT, CSV):
        words = "hpcgym traces show <(cat) --processors 8 --format json"
        assert json.loads(in_bash(words, log).stdout)["jobs"] == 1
    done = in_bash("hpcgym simulate <(echo 'submit_time,cpus')", code=1)
    (said,) = done.stderr.splitlines()
    assert said.startswith("hpcgym: the pipe")
    assert " has an unknown column 'cpus'" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_with_a_name_may_have_no_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    words = [*PROGRAM, "simulate", str(tmp_path / "log")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == f"hpcgym: {tmp_path / 'log'} is a pipe, not a file\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes end differently elsewhere")
@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_a_reader_that_never_reads_is_no_error(format: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [*PROGRAM, "traces", "list", "--format", format]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


# --- Terminals ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_terminal_without_unicode() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*PROGRAM, "simulate", JOBS], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mean BSLD" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_who_watches_sees_progress_and_the_result_stays_pure() -> None:
    import pty

    screen, terminal = pty.openpty()
    words = [*PROGRAM, "compare", JOBS, "--scheduler", "easy,saf", "--format", "json"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=terminal, check=True, env=env)
    shown = os.read(screen, 100_000).decode()
    os.close(terminal)
    os.close(screen)
    assert len(json.loads(done.stdout)["results"]) == 2
    assert "simulating saf" in shown


test_mistakes = mistakes_of(globals(), gzip, typed, fixtures=("monkeypatch",))
