"""``hpcgym explore``: the page that it writes, and the app that it serves."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from commands import run, succeed

from hpcgym.explore import page
from hpcgym.explore.live import Server
from hpcgym.files.recorded import Command, commanded
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

WORKLOAD = "lublin:jobs=60,processors=16,seed=2"


def test_the_page_is_that_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    names = {f"{name}:threshold=1h": name for name in ("easy", "saf")}
    words = ["explore", WORKLOAD, "--scheduler", ",".join(names)]
    words += ["--at", "60000", "--output", "two.html"]
    succeed(*words)
    jobs = load_workload(WORKLOAD)
    results = {called: simulate(jobs, name, threshold=3600) for called, name in names.items()}
    with commanded(Command(words, dict, "1970-01-01T00:00:00Z")):
        assert Path("two.html").read_text() == page(results, at=60_000)


@pytest.mark.slow
def test_the_app_is_served_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "hpcgym", "explore", WORKLOAD, "--no-browser"]
    with subprocess.Popen(
        [*command, "--processors", "32"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that a shell has started in the background ignore Ctrl-C, and so would the app
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            said = _asked_and_interrupted(process)
        finally:
            process.kill()  # or a failure would wait for it without an end
    assert process.returncode == 0
    assert said.splitlines()[-1] == "ended"
    assert "Traceback" not in said


def _asked_and_interrupted(process: subprocess.Popen[str]) -> str:
    """What the app says until Ctrl-C, after its page and a question."""
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(address, timeout=30) as answer:
        assert b"<title>" in answer.read()
    question = json.dumps({"what": "command", "policy": "saf"}).encode()
    with urllib.request.urlopen(f"{address}save", question, timeout=30) as answer:
        expected = f"hpcgym simulate {WORKLOAD} --processors 32 --policy saf"
        assert answer.read().decode() == expected
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=30)[1]


@pytest.mark.slow
def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run("explore", WORKLOAD, "--no-browser", "--port", port).stderr
    assert said == f"hpcgym: --port {port}: Address already in use\n"


def test_the_demo_tells_who_delayed_a_job() -> None:
    """What the terminal shows is what the app begins with."""
    text = succeed("demo", "--text").stdout
    assert "easy" in text
    assert "saf" in text
    assert "Job 789 of lublin-128 seed 3 load 0.85 under easy" in text
    assert "Who delayed it, and by how much:" in text


@pytest.mark.parametrize("command", ["demo", f"explore {WORKLOAD}"])
def test_without_a_browser_the_app_is_served_all_the_same(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    opened: list[str] = []
    served: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(Server, "serve_forever", lambda self: served.append(self.address))
    begin = "#job=789" if command == "demo" else ""  # the job that waited longest
    for browser in (True, False):
        said = succeed(*command.split(), *([] if browser else ["--no-browser"]))
        assert said.stdout == f"{served[-1]}{begin}\n"
        assert said.stderr.endswith("for this machine alone; Ctrl-C ends it\n")
        assert opened == [said.stdout.strip()] * browser
        opened.clear()
    assert len(served) == 2
