"""``hpcgym train``: what it writes, what it says, and how errors end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import as_json, line, run, succeed

from hpcgym.agents import load, practice
from hpcgym.agents.recordings import load_recording, record
from hpcgym.agents.xnes import Xnes
from hpcgym.envs.core.episodes import Episodes
from hpcgym.machine import find_cluster
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import fitting, load_workload

pytestmark = pytest.mark.slow

TRACE = "lublin:jobs=2000,processors=64,load=1.0,seed=2"
SHORT = ("--workload", TRACE, "--jobs", "20", "--steps", "64", "--envs", "4")


def board(agent: str, *words: str) -> dict[str, set[str]]:
    """Evaluate an agent that does not fail; return the rows of each slice."""
    found = as_json("evaluate", agent, *words)
    assert not found["failures"]
    return {name: {*rows} for name, rows in found["by_slice"].items()}


def test_an_agent_is_trained_and_evaluated() -> None:
    options = ("--backfill", "none", "--reservation", "kept", "--window", "32")
    done = succeed("train", "maskable-ppo", *SHORT, *options)
    assert done.stdout == ""
    assert "wrote maskable-ppo.pt" in done.stderr
    agent = load("maskable-ppo.pt")
    given = {"backfill": "none", "reservation": "kept", "window": 32}
    assert agent.env_options.items() >= given.items()
    few = ("--jobs", "50", "--number", "3", "--budget", "5")
    rows = board("maskable-ppo.pt", "--workload", TRACE, *few)
    assert all({"maskable-ppo.pt", "f1 (no backfilling)"} <= row for row in rows.values())


@pytest.mark.parametrize(
    ("name", "env", "ending"),
    [
        ("job-ppo", "QueueOrdering", "pt"),
        ("rule-es", "JobSelection", "json"),
        ("rule-es", None, "json"),
    ],
)
def test_agents_of_one_file_are_trained_and_evaluated(
    name: str, env: str | None, ending: str
) -> None:
    short = ("--workload", "lublin:jobs=900,processors=64,load=0.8,seed=2", "--jobs", "30")
    envs = ("--pairs", "2") if name == "rule-es" else ("--envs", "2")
    where = () if env is None else ("--env", env)
    logs = ("--log", "log.csv", "--tensorboard", "logs")
    done = succeed("train", name, *short, "--steps", "4000", *envs, *where, *logs)
    assert f"wrote {name}.{ending}" in done.stderr
    assert "validation/mean_bsld" in Path("log.csv").read_text().partition("\n")[0]
    assert list(Path("logs").rglob("events.out.tfevents*"))
    around = ("--start", "warm", "--arrivals", "continue", "--horizon", "7d")
    assert board(f"{name}.{ending}", *short, *around, "--number", "2", "--budget", "5")


@pytest.mark.parametrize(("name", "ending"), [("job-ppo", "pt"), ("rule-es", "json")])
def test_ctrl_c_leaves_the_best_so_far(
    name: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(steps: int, values: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hpcgym.cli.train._show", interrupt)  # it is told after a first choice
    short = ("--workload", "lublin:jobs=900,processors=64,load=0.8,seed=2", "--jobs", "30")
    done = run("train", name, *short, "--steps", "4000")
    assert done.exit_code == 130
    assert f"wrote {name}.{ending}, the best so far; the training cannot go on" in done.stderr
    assert load(f"{name}.{ending}").env_id

    def nothing(*arguments: Any) -> None:
        raise KeyboardInterrupt

    Path(f"{name}.{ending}").unlink()
    monkeypatch.setattr(practice, "_played", nothing)
    done = run("train", name, *short, "--steps", "4000")
    assert done.exit_code == 130
    assert "nothing is written: no agent was chosen yet" in done.stderr
    assert not Path(f"{name}.{ending}").exists()


def test_clones_are_trained_of_orders_and_of_recordings() -> None:
    where = ("--workload", TRACE, "--jobs", "30", "--number", "2", "--backfill", "none")
    done = succeed("train", "record", "saf", *where, "--output", "saf.npz")
    assert "transitions of 2 episodes to saf.npz" in done.stderr
    assert load_recording("saf.npz").about["policy"] == "saf"
    succeed("train", "clone", "--recording", "saf.npz", "--steps", "5", "--output", "a.pt")
    succeed("train", "clone", "saf", *where, "--steps", "5", "--output", "b.pt")
    for path in ("a.pt", "b.pt"):
        assert load(path).name == "clone"
        assert load(path).env_options["backfill"] == "none"
    succeed("train", "maskable-ppo", *SHORT, "--resume", "a.pt")


def test_offline_data_is_recorded_and_learned_from() -> None:
    """Several policies, for Minari; then a clone of what was written."""
    pytest.importorskip("pyarrow")
    where = ("--workload", TRACE, "--jobs", "30", "--number", "2")
    given = ("--format", "minari", "--output", "mixed-v0")
    done = succeed("train", "record", "random", "easy", "saf", *where, *given)
    assert "transitions of 6 episodes to mixed-v0" in done.stderr
    assert load_recording("mixed-v0").about["policy"] == "random, easy, saf"
    succeed("train", "clone", "--recording", "mixed-v0", "--steps", "5", "--output", "b.pt")
    assert load("b.pt").name == "clone"
    again = line("train", "record", "saf", *where, *given, "--force")
    assert "mixed-v0 cannot be written: Is a directory" in again


def test_a_dispatcher_is_recorded_on_nodes() -> None:
    jobs, machine = "eurora:jobs=200,load=1.3,seed=0", find_cluster("kit-forhlr-ii")
    where = ("--workload", jobs, "--cluster", "kit-forhlr-ii", "--jobs", "40", "--number", "2")
    succeed("train", "record", "sdprb", *where, "--allocation", "best-fit", "--unfit", "drop")
    found = load_recording("recording.npz")
    same = record(
        "sdprb", fitting(load_workload(jobs), machine.resources, machine.capacity), jobs=40,
        record_episodes=2, cluster=machine, env_options={"allocation": "best-fit"},
    )  # fmt: skip
    assert found.about == same.about
    for field, values in found.observations.items():
        assert (values == same.observations[field]).all()


WEEKS = "lublin:jobs=9000,processors=64,seed=2,load=0.3"


def test_weights_are_searched_for_and_evaluated() -> None:
    options = ("--features", "xnes3", "--budget", "30", "--restarts", "2", "--backfill", "none")
    done = succeed("train", "xnes", "--workload", WEEKS, *options)
    assert done.stdout == ""
    assert "100%  30 of 30 vectors on 3 slices" in done.stderr
    assert " s left  best mean_bsld " in done.stderr
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
    other = line("train", "xnes", *command, "--output", "part.json", "--seed", "1")
    assert "part.json.checkpoint is the checkpoint of a search with other" in other
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


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "hpcgym.agents.job_ppo", raising=False)
    assert "pip install '.[agents]'" in line("train", "job-ppo", "--workload", "lublin")
