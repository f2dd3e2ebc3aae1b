"""``hpcgym train``: what it writes, what it says, and how errors end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import as_json, run, succeed, typed
from mistakes import mistakes_of

from hpcgym.agents import load
from hpcgym.agents.recordings import load_recording, record
from hpcgym.agents.xnes import Xnes
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.envs.core.episodes import Episodes
from hpcgym.machine import find_cluster
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import fitting, load_workload

pytestmark = pytest.mark.slow

TRACE = "lublin:jobs=2000,processors=64,load=1.0,seed=2"


def board(agent: str, *words: str) -> dict[str, set[str]]:
    """Evaluate an agent that does not fail; return the rows of each slice."""
    facts = as_json("evaluate", agent, *words)
    assert not facts["failures"]
    return {name: {*rows} for name, rows in facts["by_slice"].items()}


@pytest.mark.parametrize(
    ("name", "more", "kept"),
    [
        ("rule-es", ("--generations", "9999"), "wrote agent.toml, what was found so far"),
        (
            "xnes",
            ("--budget", "99999999", "--episodes", "whole"),
            "wrote agent.json.checkpoint; the same command goes on",
        ),
    ],
)
def test_sigterm_leaves_what_ctrl_c_leaves(name: str, more: tuple[str, ...], kept: str) -> None:
    """As Slurm sends it at the time limit."""
    log = "lublin:jobs=900,processors=64,load=0.8,seed=2"
    file = Path(kept.split()[1].rstrip(",;"))
    words = [log] if name == "rule-es" else ["--workload", log]
    words += ["--log", "log.csv"] if name != "xnes" else []
    output = f"agent.{file.name.split('.')[1]}"
    command = [sys.executable, "-m", "hpcgym", "train", name, *words, *more, "--output", output]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            table = file if name == "xnes" else Path("log.csv")  # it has learned something then
            end = time.monotonic() + 300
            while not (table.exists() and len(table.read_bytes().splitlines()) > 1):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 143
    *_, where, last = said.splitlines()
    assert kept in where
    assert last == "hpcgym: terminated"
    assert file.is_file()
    assert "Traceback" not in said


def test_a_rule_is_found_in_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = ["lublin:jobs=900,processors=64,load=0.5,seed=2", "lublin:jobs=900,processors=32,seed=3"]
    small = ("--generations", "2", "--population", "4", "--worlds", "0")
    done = succeed("train", "rule-es", *logs, *small, "--log", "log.csv")
    assert "wrote rule-es.toml" in done.stderr
    assert "8 replays of 2 logs: at most about " in done.stderr
    assert "over the gate" not in done.stderr
    with monkeypatch.context() as strict:
        strict.setattr("hpcgym.schedule.gains.FLOOR_H", 0)
        strict.setattr("hpcgym.schedule.gains.MOST", 0.01)
        done = succeed("train", "rule-es", *logs, *small, "--output", "strict.toml")
    for name in ("lublin-64", "lublin-32"):
        assert f"strict.toml: over the gate on the jobs of {name}" in done.stderr
    assert len(Path("log.csv").read_text().splitlines()) == 3
    rows = as_json("compare", logs[0], "--scheduler", "easy", "--scheduler", "rule-es.toml")
    assert len(rows) >= 2
    succeed("train", "rule-es", logs[0], *small, "--env", "Backfill", "--output", "fill.toml")
    assert find_scheduler("fill.toml").policy == "fcfs"

    def interrupt(steps: int, values: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hpcgym.cli.train._show", interrupt)
    done = run("train", "rule-es", logs[0], *small, "--output", "part.toml")
    assert done.exit_code == 130
    assert "wrote part.toml, what was found so far" in done.stderr
    assert find_scheduler("part.toml") != find_scheduler("rule-es.toml")


def test_a_network_is_found_in_logs() -> None:
    log = "lublin:jobs=900,processors=64,load=0.5,seed=2"
    small = ("--generations", "2", "--population", "4", "--worlds", "0", "--units", "3")
    done = succeed("train", "net-es", log, *small)
    assert "wrote net-es.json" in done.stderr
    rows = as_json("compare", log, "--scheduler", "easy", "--scheduler", "network:net-es.json")
    assert len(rows) >= 2


def test_what_is_recorded_is_cloned_and_gone_on_from() -> None:
    pytest.importorskip("minari")
    where = ("--workload", TRACE, "--jobs", "30", "--number", "2", "--backfill", "none")
    done = succeed("train", "record", "random", "saf", *where, "--output", "mixed-v0")
    assert "transitions of 4 episodes to mixed-v0" in done.stderr
    recording = load_recording("mixed-v0")
    assert recording.about["policy"] == "random, saf"
    same = record(
        ["random", "saf"], TRACE, jobs=30, record_episodes=2, env_options={"backfill": "none"}
    )  # fmt: skip
    assert (recording.actions == same.actions).all()
    again = ("train", "record", "random", "saf", *where, "--output", "mixed-v0")
    assert "mixed-v0 is there already: --force overwrites it" in run(*again).stderr
    Path("mixed-v0", "data", "main_data.parquet").write_text("")
    succeed(*again, "--force")
    assert (load_recording("mixed-v0").actions == same.actions).all()
    succeed("train", "clone", "mixed-v0", "--steps", "5", "--log", "clone.csv")
    assert (load("clone.pt").name, load("clone.pt").env_options["backfill"]) == ("clone", "none")
    assert Path("clone.csv").read_text().startswith("steps,train/loss")


def test_a_dispatcher_is_recorded_on_nodes() -> None:
    """Some jobs do not fit, so workload and machine are not told by their names."""
    pytest.importorskip("minari")
    jobs, machine = "eurora:jobs=200,load=1.3,seed=0", find_cluster("kit-forhlr-ii")
    where = ("--workload", jobs, "--cluster", "kit-forhlr-ii", "--jobs", "40", "--number", "2")
    succeed("train", "record", "sdprb", *where, "--allocation", "best-fit", "--errors", "skip")
    recording = load_recording("recording-v0")
    same = record(
        "sdprb", fitting(load_workload(jobs), machine.resources, machine.capacity), jobs=40,
        record_episodes=2, cluster=machine, env_options={"allocation": "best-fit"},
    )  # fmt: skip
    assert recording.about == same.about
    for field, values in recording.observations.items():
        assert (values == same.observations[field]).all()


WEEKS = "lublin:jobs=9000,processors=64,seed=2,load=0.3"


def test_weights_are_searched_for_and_evaluated() -> None:
    options = ("--features", "xnes3", "--budget", "30", "--restarts", "2", "--backfill", "none")
    done = succeed("train", "xnes", "--workload", WEEKS, *options)
    assert done.stdout == ""
    assert "mean_bsld " in done.stderr
    assert " on 3 weeks with " in done.stderr
    assert "wrote xnes.json" in done.stderr
    assert [file.name for file in Path().iterdir()] == ["xnes.json"]
    agent = load("xnes.json")
    weeks = Episodes(load_workload(WEEKS), "weeks", part="train")
    slices = [weeks.workload_of(week) for week in weeks.listing]
    rules = Scheduler(backfill="none", backfill_order="spf")
    same = Xnes("xnes3", budget=30, restarts=2, scheduler=rules).fit(slices)
    assert agent.weights_ == same.weights_
    rows = board("xnes.json", "--workload", WEEKS, "--episodes", "weeks", "--budget", "6")
    assert all({"xnes.json", "fcfs"} <= row for row in rows.values())


def test_an_interrupted_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("--workload", TRACE, "--episodes", "whole", "--budget", "40", "--features", "xnes3")
    succeed("train", "xnes", *command, "--output", "whole.json")
    fit = Xnes.fit

    def interrupted(self: Any, slices: Any, *, progress: Any, **arguments: Any) -> Any:
        def stop(done: int, best: float) -> None:
            progress(done, best)
            if done > 20:
                raise KeyboardInterrupt

        return fit(self, slices, progress=stop, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Xnes, "fit", interrupted)
        stopped = run("train", "xnes", *command, "--output", "part.json")
    assert stopped.exit_code == 130
    assert "part.json.checkpoint; the same command goes on from there" in stopped.stderr
    other = run("train", "xnes", *command, "--output", "part.json", "--seed", "1")
    assert "part.json.checkpoint is the checkpoint of a search with other" in other.stderr
    succeed("train", "xnes", *command, "--output", "part.json")
    assert Path("part.json").read_bytes() == Path("whole.json").read_bytes()
    assert not Path("part.json.checkpoint").exists()


def test_a_search_needs_no_extra() -> None:
    code = "import builtins, sys; given = builtins.__import__\n"
    code += "def strict(name, *rest, **more):\n    assert name != 'torch'\n"
    code += "    return given(name, *rest, **more)\n"
    code += "builtins.__import__ = strict; from hpcgym.cli import main; main()"
    few = "lublin:jobs=60,processors=16,load=1.0,seed=2"
    options = ("--workload", few, "--episodes", "whole", "--budget", "9")
    for command in (("train", "xnes", *options), ("evaluate", "xnes.json", *options, "-n", "1")):
        done = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "failed on" not in done.stderr
        assert "not kept" not in done.stderr  # or else it compiles each time


test_mistakes = mistakes_of(globals(), sys, typed, fixtures=("monkeypatch",))
