"""``hpcgym explore``: the page that it writes, and the app that it serves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from test_page import told
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.explore import page
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

WORKLOAD = "lublin:jobs=60,processors=16,seed=2"


def explore(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explore", *map(str, words)])
    return result.exit_code, result.stderr


@pytest.mark.cli
def test_the_page_is_that_of_the_library(tmp_path: Path) -> None:
    file = tmp_path / "two.html"
    words = [WORKLOAD, "--scheduler", "easy,saf", "--threshold", "3600", "--output", file]
    assert explore(*words)[0] == 0
    jobs = load_workload(WORKLOAD)
    results = {name: simulate(jobs, name, threshold=3600) for name in ("easy", "saf")}
    head, columns = told(file.read_text())
    expected, others = told(page(results))
    assert head.pop("origin") != expected.pop("origin")  # the command says it
    assert head == expected
    assert all(np.array_equal(columns[name], others[name]) for name in others)
    code, said = explore(*words)
    assert code == 1
    assert f"{file} is there already" in said


@pytest.mark.cli
def test_a_trace_of_events(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    assert explore(WORKLOAD, "--output", file)[0] == 0
    written = json.loads(file.read_text())
    assert written["otherData"]["command"][0] == "explore"
    assert sum(event["ph"] == "X" for event in written["traceEvents"]) >= 60


@pytest.mark.cli
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheduler", "easy,saf,fcfs"], "one or two schedulers can be explored, not 3"),
        (["--scheduler", "eas"], "unknown scheduler or dispatcher 'eas'"),
        (["--output", "page.png"], "the name of a page or trace ends in .html"),
        (["--scheduler", "fcfs-list"], "cannot be explored live, since a dispatcher"),
    ],
)
def test_what_cannot_be_is_said(words: list[str], message: str) -> None:
    code, said = explore(WORKLOAD, *words)
    assert code == 1
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.distributed
def test_the_app_is_served_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "hpcgym", "explore", WORKLOAD, "--no-browser"]
    command += ["--processors", "32"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            assert b"<title>" in answer.read()
        question = json.dumps({"what": "command", "policy": "saf"}).encode()
        with urllib.request.urlopen(f"{address}save", question) as answer:
            expected = f"hpcgym simulate {WORKLOAD} --processors 32 --policy saf"
            assert answer.read().decode() == expected
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.splitlines()[-1] == "ended"
    assert "Traceback" not in said


@pytest.mark.distributed
def test_a_port_that_is_taken_is_said() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = explore(WORKLOAD, "--no-browser", "--port", port)
    assert code == 1
    assert said.strip() == f"hpcgym: --port {port}: Address already in use"
