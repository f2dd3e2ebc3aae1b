"""``-``: logs from standard input, schedules to standard output."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from commands import JOBS, run, succeed

from hpcgym.cli import files
from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload, write_swf, write_table


def piped(data: bytes, *words: str, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Run the program as a shell does behind a pipe."""
    command = [sys.executable, "-m", "hpcgym", *words]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done


@pytest.mark.parametrize("ending", [".swf", ".swf.gz", ".csv", ".csv.gz", ".json", ".parquet"])
def test_logs_of_all_forms_come_from_standard_input(ending: str, tmp_path: Path) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    jobs, path = load_workload(JOBS), tmp_path / f"jobs{ending}"
    (write_swf if ".swf" in ending else write_table)(jobs, path)
    words = ["--processors", "32", "--scheduler", "saf", "--format", "json"]
    told = json.loads(succeed("simulate", "-", *words, input=path.read_bytes()).stdout)
    plain = json.loads(succeed("simulate", path, *words).stdout)
    schedules = [one["provenance"]["schedules"][0]["sha256"] for one in (told, plain)]
    assert schedules[0] == schedules[1]
    assert told["workload"] == "stdin"
    (digest,) = told["provenance"]["files"].values()
    assert digest == plain["provenance"]["files"][path.name]


def test_what_sacct_prints_comes_from_standard_input() -> None:
    text = "JobIDRaw|User|Submit|Start|End|Timelimit|NCPUS|State\n7|ann|2024-03-01T08:00:00|"
    text += "2024-03-01T08:00:00|2024-03-01T09:00:00|02:00:00|4|COMPLETED\n"
    told = json.loads(succeed("traces", "show", "-", "--format", "json", input=text).stdout)
    assert told["jobs"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_schedules_go_to_standard_output_alone(form: str, tmp_path: Path) -> None:
    done = piped(b"", "simulate", JOBS, "--output", "-", "--format", form)
    result = simulate(load_workload(JOBS), "easy")
    if form == "table":
        (path := tmp_path / "a.swf").write_bytes(done.stdout)
        jobs = load_workload(path, "none")
        starts = jobs.submit_time + jobs.wait_time
        assert sorted(starts.tolist()) == sorted(result.start.tolist())
    else:
        text = done.stdout.decode()
        rows = json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))
        assert [int(row["start_time"]) for row in rows] == result.start.tolist()
    assert done.stderr.decode().splitlines()[-1] == "wrote to standard output"


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">", ">>"])
def test_what_others_write_into_the_same_file_stays(
    redirection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    path = tmp_path / "log"
    path.write_text("; already there\n")
    words = f"'{sys.executable}' -m hpcgym generate {JOBS} -"
    script = f"{{ echo '; before'; {words}; echo '; between'; {words}; echo '; after'; }}"
    subprocess.run(
        ["bash", "-c", f"{script} {redirection} '{path}'"], check=True, capture_output=True
    )
    made = piped(b"", "generate", JOBS, "-").stdout.decode()
    begin = "" if redirection == ">" else "; already there\n"
    assert path.read_text() == f"{begin}; before\n{made}; between\n{made}; after\n"


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "standard input is empty"), (gzip.compress(b"1 2 3")[:-9], "standard input")],
    ids=["empty", "broken gzip"],
)
def test_what_is_no_log_is_said_in_a_line(data: bytes, said: str) -> None:
    done = run("simulate", "-", input=data)
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("hpcgym: ")
    assert said in line


@pytest.mark.slow
def test_errors_name_standard_input_and_not_its_copy() -> None:
    (line,) = piped(b"1 2 three", "simulate", "-", code=1).stderr.decode().splitlines()
    assert line.startswith("hpcgym: standard input, line 1: ")
    job = b"1 0 0 60 4 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n"
    warned = piped(b"; MaxProcs: four\n" + job, "simulate", "-").stderr.decode()
    assert "hpcgym: standard input" in warned
    assert tempfile.gettempdir() not in warned


@pytest.mark.slow
def test_what_a_search_says_of_standard_input(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    write_swf(load_workload("lublin:jobs=500,processors=64,seed=2"), log)
    rules = ["--orders", "fcfs,saf", "--backfilling", "easy", "--budget", "10"]
    words = ["tune", "-", *rules, "--output", tmp_path / "rules"]
    assert "hpcgym simulate - --scheduler" in succeed(*words, input=log.read_bytes()).stderr


def test_a_terminal_is_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with (
        pytest.raises(HpcgymError, match="this terminal: pipe a log into it"),
        files.standard_streams(None, {"workload": "-"}),
    ):
        pass


@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    """As in ``| head``: more is written than a pipe holds."""
    words = ["simulate", "lublin:jobs=20000", "--format", "csv", "--output", "-"]
    command = [sys.executable, "-m", "hpcgym", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read().decode()
    assert "cannot be written" not in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("text", ["sacct", "csv"])
def test_a_pipe_is_recognised_by_what_it_holds(text: str, tmp_path: Path) -> None:
    log = "submit_time,run_time,requested_processors\n0,3600,4\n"
    if text == "sacct":
        log = "JobIDRaw|User|Submit|Start|End|Timelimit|NCPUS|State\n7|ann|2024-03-01T08:00:00|"
        log += "2024-03-01T08:00:00|2024-03-01T09:00:00|02:00:00|4|COMPLETED\n"
    words = f"'{sys.executable}' -m hpcgym traces show <(cat) --processors 8 --format json"
    done = subprocess.run(
        ["bash", "-c", words], input=log.encode(), capture_output=True, check=True
    )
    assert json.loads(done.stdout)["jobs"] == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_errors_name_a_pipe_and_not_its_copy() -> None:
    words = f"'{sys.executable}' -m hpcgym simulate <(echo 'submit_time,cpus')"
    done = subprocess.run(["bash", "-c", words], capture_output=True, check=False)
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("hpcgym: /dev/fd/")
    assert " has an unknown column 'cpus'" in line
    assert done.returncode == 1
