"""``hpcgym evaluate``: what it prints where, and how errors end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import as_csv, as_json, instead, run, succeed

from hpcgym.baselines import SCHEDULERS
from hpcgym.cli.evaluate import Slices
from hpcgym.report.tables import text_of
from hpcgym.schedule.metrics import known_metrics
from hpcgym.study import evaluate
from hpcgym.study.evaluation import policies as module
from hpcgym.workload import load_workload
from hpcgym.workload.fingerprint import workload_digest

TRACE = "lublin:jobs=2000,processors=64,load=3"
FEW = ("--jobs", "100", "--number", "5", "--budget", "15")
ASKED = ("evaluate", "--workload", TRACE, *FEW)
NODES = "eurora:jobs=400,load=2"
ON_NODES = ("--workload", NODES, "--jobs", "40", "--number", "2", "--budget", "2")


def board(*policies: str, **rules: Any) -> Any:
    return evaluate(policies, load_workload(TRACE), **{"jobs": 100, "n": 5, "budget": 15} | rules)


def rows(value: Any) -> dict[str, Any]:
    return {row["name"]: row for row in value["policies"]}


def test_json_has_everything_in_full() -> None:
    value, leaderboard = as_json(*ASKED, "spf", "--seed", "3"), board("spf", seed=3)
    assert value["workload"] == load_workload(TRACE).name
    (workload,) = value["provenance"]["workloads"]
    assert workload["sha256"] == workload_digest(load_workload(TRACE))
    assert value["provenance"]["command"][0] == "evaluate"
    around = {"start": "empty", "warmup": None, "arrivals": "stop", "horizon": None}
    cut = {"slices": "test", "episodes": "windows", "jobs": 100, "n": 5, "train_share": 0.5}
    assert value["evaluation"] == {**cut, **around, "seed": 3, "budget": 15}
    assert list(rows(value)) == list(leaderboard.table.index)
    for name, expected in leaderboard.table.iterrows():
        for column, number in expected.items():
            assert rows(value)[name][column] == (None if np.isnan(number) else number)
    assert rows(value)["spf"]["scheduler"] == SCHEDULERS["spf"].describe()
    assert value["static_weights"] == leaderboard.static_weights
    assert value["by_slice"] == leaderboard.by_slice.to_dict(orient="index")
    assert value["failures"] == []
    assert (
        succeed(*ASKED, "spf", "--seed", "3", "--format", "latex").stdout == leaderboard.to_latex()
    )


def test_the_table_marks_the_best() -> None:
    text = succeed(*ASKED, "conservative", "0,0,0,0,0,-1").stdout
    lines = text.splitlines()
    name = load_workload(TRACE).name
    assert lines[0] == f"{name} · 64 processors · test part · 5 windows of 100 jobs that share none"
    best = lines[1 + next(k for k, line in enumerate(lines) if "─" in line)]
    assert "*" in best.split()[1]
    assert "* best of its column" in text
    for policy in ("easy", "easy-sjbf", "saf", "f1", "best-static", "conservative", "0,0,0,0,0,-1"):
        assert any(line.startswith(f"{policy} ") for line in lines)
    assert "chosen on the train part" in lines[-1]
    assert "no 95 % intervals" not in text
    assert text.count(" to ") == 8 * 2  # of slowdowns and gains


@pytest.mark.parametrize("format", ["table", "json", "csv", "latex"])
def test_few_slices_have_no_intervals_and_a_line_says_why(format: str) -> None:
    done = succeed(*instead(ASKED, "--number", "4", "--budget", "0"), "--format", format)
    no_interval = "no 95 % intervals: they need 5 slices or more, and there are 4"
    no_small_p = "no p can be below 0.125: that needs more slices, and there are 4"
    for line in (no_interval, no_small_p):
        assert (done.stdout + done.stderr).count(line) == 1
        assert (line in done.stdout) == (format == "table")
    if format == "json":
        for row in json.loads(done.stdout)["policies"]:
            assert (row["mean_bsld_low"], row["mean_bsld_high"]) == (None, None)
    assert (" to " in done.stdout) is False


def test_options_reach_the_evaluation() -> None:
    options = ("--backfill", "none", "--budget", "0", "--slices", "train", "--passes", "per-event")
    value = as_json(*instead(ASKED, *options))
    pure = {f"{name} (no backfilling)" for name in ("sjf", "saf", "f1")}
    assert {*rows(value)} == {"fcfs", "random", *pure}
    for row in value["policies"]:
        assert (row["scheduler"]["backfill"], row["scheduler"]["passes"]) == ("none", "per-event")
    assert all(int(name.split(":")[1]) <= 1000 for name in value["by_slice"])
    shares = ("fairshare", "--fair-share", "half_life_s=600", "--budget", "0", "--seed", "3")
    value = as_json(*instead(ASKED, *shares))
    leaderboard = board("fairshare", budget=0, seed=3, fair_share="half_life_s=600")
    assert {name: row["mean_bsld"] for name, row in rows(value).items()} == dict(
        leaderboard.table["mean_bsld"]
    )
    (name,) = (name for name in rows(value) if "fair share" in name)  # no other looks at them
    assert name == "fairshare (fair share half_life_s=600, damping=1)"


def test_a_failing_agent_is_said_and_its_place_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = SimpleNamespace(
        name="mine", env_id="hpcgym/JobSelection-v2", act=lambda observation, info: "?"
    )
    monkeypatch.setattr(module, "load_agent", lambda path: agent)
    result = run(*ASKED, "folder/agent.pt")
    assert result.exit_code == 1  # it failed everywhere
    said = "folder/agent.pt failed on 5 of 5 slices: HpcgymError: action must be an index"
    assert said in result.stderr
    lines = [text for text in result.stdout.splitlines() if text.startswith("folder/agent.pt ")]
    assert [line.split()[1] for line in lines] == ["-", "-"]  # in both tables
    value = json.loads(run(*ASKED, "folder/agent.pt", "--format", "json").stdout)
    last = value["policies"][-1]
    assert (last["name"], last["mean_bsld"], last["failed"]) == ("folder/agent.pt", None, 5)
    assert len(value["failures"]) == 5


@pytest.mark.slow
def test_a_machine_of_nodes() -> None:
    asked = ("evaluate", "prb", *ON_NODES, "--cluster", "eurora", "--allocation", "best-fit")
    value = as_json(*asked)
    rules = {"cluster": "eurora", "allocation": "best-fit"}
    leaderboard = evaluate("prb", load_workload(NODES), jobs=40, n=2, budget=2, **rules)
    assert (value["cluster"], value["nodes"], value["processors"]) == ("eurora", 64, 1024)
    assert {name: row["mean_bsld"] for name, row in rows(value).items()} == dict(
        leaderboard.table["mean_bsld"]
    )
    assert rows(value)["prb"]["scheduler"]["allocation"] == "best-fit"
    heading, *_ = succeed(*asked).stdout.splitlines()
    assert (
        " · eurora: 64 nodes, 1,024 cores · test part · 2 windows of 40 jobs that share none"
        in heading
    )
    assert heading.endswith(" · best-fit allocation")
    (row, *_) = as_csv(*asked)
    assert (row["cluster"], row["nodes"], "queues" in row) == ("eurora", "64", False)
    assert set(value["queues"]) == {"debug", "parallel", "longpar"}


@pytest.mark.slow
def test_several_trainings_are_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def agent(path: str) -> Any:
        place = int(path[0])
        act = lambda observation, info: min(place, len(info["window"]) - 1)  # noqa: E731
        return SimpleNamespace(act=act, env_id="hpcgym/JobSelection-v2")

    monkeypatch.setattr(module, "load_agent", agent)
    options = ("ppo=0.pt,1.pt,4.pt", "wfp3", "--metric", "p99_wait_s", "--reference", "saf")
    text = succeed(*instead(ASKED, *options)).stdout
    row, _ = (line for line in text.splitlines() if line.startswith("ppo "))
    assert "ppo: means of 3 trainings; intervals resample them too" in text.splitlines()
    assert "P99 of wait less that of saf; p: chance of a difference this large" in text
    assert " IQM " in text
    assert "means of" not in succeed(*ASKED, "ppo=0.pt").stdout  # of one
    value = as_json(*instead(ASKED, *options))
    row_of_ppo = rows(value)["ppo"]
    assert (row_of_ppo["seeds"], value["metric"]) == (3, "p99_wait_s")
    assert row.split()[1].rstrip("*") == text_of(
        known_metrics()["p99_wait_s"], row_of_ppo["p99_wait_s"]
    )


@pytest.mark.slow
def test_the_table_says_what_is_around_slices() -> None:
    assert "slices with" not in succeed(*ASKED).stdout
    around = ("--start", "warm", "--arrivals", "continue", "--horizon", "12h")
    said = "\nslices with start=warm, arrivals=continue, horizon=12h\n"
    assert said in succeed(*instead(ASKED, *around)).stdout
    evaluation = as_json(*ASKED, "--env", "QueueOrdering-v2")["evaluation"]
    assert (evaluation["start"], evaluation["horizon"]) == (
        "warm",
        "7d",
    )  # as the environment has it


# --- What users bring -----------------------------------------------------------------------------


@pytest.fixture
def own(here: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the current folder with what acts."""
    code = "class First:\n    features = ('requested',)\n"
    code += "    def __init__(self):\n        open('made', 'a').write('.')\n"
    code += "    def act(self, observation, info):\n        return 0\n"
    code += "import hpcgym\ndef fails(view):\n    return view.time // 0\n"
    code += "FAILS = hpcgym.Scheduler(policy=fails)\n"
    Path("cli_brought.py").write_text(code)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    yield
    sys.modules.pop("cli_brought", None)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("given", ["cli_brought:First", "mine=cli_brought:First"])
def test_modules_of_the_current_folder_are_found(given: str) -> None:
    order = ("--backfill-order", "fcfs")
    value = as_json(*instead(ASKED, given, "--env", "JobSelection", "--budget", "0", *order))
    assert rows(value)[given.partition("=")[0]]["mean_bsld"] == rows(value)["easy"]["mean_bsld"]
    assert "random (acting)" in rows(value)
    assert Path("made").read_text() == "."  # it is made once


@pytest.mark.usefixtures("own")
def test_where_own_code_fails_is_said() -> None:
    done = run("evaluate", "cli_brought:FAILS", "--workload", TRACE, *FEW[:2], "--number", "1")
    failure = "cli_brought:FAILS failed on 1 of 1 slices: ZeroDivisionError"
    (said,) = (text for text in done.stderr.splitlines() if text.startswith(failure))
    assert said.endswith("(cli_brought.py, line 9)")


def test_what_is_around_slices_may_be_none() -> None:
    assert Slices(warmup="1d", horizon="none").around() == {"warmup": "1d", "horizon": None}
    assert Slices().around() == {}
