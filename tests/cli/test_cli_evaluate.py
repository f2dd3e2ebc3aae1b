"""``hpcgym evaluate``: what it prints where, and how errors end."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import as_csv, as_json, run, succeed

from hpcgym.baselines import SCHEDULERS
from hpcgym.evaluation import evaluate, lineup
from hpcgym.report.tables import text_of
from hpcgym.schedule.metrics import known_metrics
from hpcgym.workload import load_workload
from hpcgym.workload.fingerprint import workload_digest

TRACE = "lublin:jobs=2000,processors=64,load=3"
FEW = ("--jobs", "100", "--number", "5", "--budget", "15")


ASKED = ("evaluate", "--workload", TRACE, *FEW)


def test_json_has_everything_in_full() -> None:
    value = as_json(*ASKED, "spf", "--seed", "3")
    board = evaluate("spf", load_workload(TRACE), jobs=100, n=5, budget=15, seed=3)
    assert value["workload"] == board_name()
    (workload,) = value["provenance"]["workloads"]
    assert workload["sha256"] == workload_digest(load_workload(TRACE))
    assert value["provenance"]["command"][0] == "evaluate"
    around = {"start": "empty", "warmup": None, "arrivals": "stop", "horizon": None}
    cut = {"slices": "test", "episodes": "windows", "jobs": 100, "n": 5, "train_share": 0.5}
    assert value["evaluation"] == {**cut, **around, "seed": 3, "budget": 15}
    rows = {row["name"]: row for row in value["policies"]}
    assert list(rows) == list(board.table.index)
    for name, expected in board.table.iterrows():
        for column, number in expected.items():
            assert rows[name][column] == (None if np.isnan(number) else number)
    assert rows["spf"]["scheduler"] == SCHEDULERS["spf"].describe()
    assert value["static_weights"] == board.static_weights
    assert value["by_slice"] == board.by_slice.to_dict(orient="index")
    assert value["failures"] == []


def board_name() -> str:
    return load_workload(TRACE).name


def test_the_table_marks_the_best() -> None:
    text = succeed(*ASKED, "conservative", "0,0,0,0,0,-1").stdout
    lines = text.splitlines()
    assert lines[0] == f"{board_name()} · 64 processors · test part · 5 windows of 100 jobs"
    first = next(line for line in lines[lines.index("") :] if "─" in line)
    best = lines[lines.index(first) + 1]
    assert "*" in best.split()[1]
    assert "* best of its column" in text
    for name in ("easy", "easy-sjbf", "saf", "f1", "best-static", "conservative", "0,0,0,0,0,-1"):
        assert any(line.startswith(f"{name} ") for line in lines)
    assert "chosen on the train part" in lines[-1]
    assert "no 95 % intervals" not in text
    assert text.count(" to ") == 8


def test_few_slices_have_no_intervals_and_the_table_says_why() -> None:
    text = succeed(*ASKED, "--number", "4", "--budget", "0").stdout
    assert "no 95 % intervals: they need 5 slices or more, and there are 4" in text.splitlines()
    assert " to " not in text
    value = as_json(*ASKED, "--number", "4", "--budget", "0")
    for row in value["policies"]:
        assert (row["mean_bsld_low"], row["mean_bsld_high"]) == (None, None)


def test_options_reach_the_evaluation() -> None:
    options = ("--backfill", "none", "--budget", "0", "--slices", "train", "--passes", "per-event")
    value = as_json(*ASKED, *options)
    assert {row["name"] for row in value["policies"]} == {
        "fcfs",
        "random",
        *(f"{name} (no backfilling)" for name in ("sjf", "saf", "f1")),
    }
    for row in value["policies"]:
        assert row["scheduler"]["backfill"] == "none"
        assert row["scheduler"]["passes"] == "per-event"
    assert all(int(name.split(":")[1]) <= 1000 for name in value["by_slice"])


def test_a_failing_agent_is_said_and_its_place_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = SimpleNamespace(
        name="mine", env_id="hpcgym/JobSelection-v0", act=lambda observation, info: "?"
    )
    monkeypatch.setattr(lineup, "load_agent", lambda path: agent)
    result = run(*ASKED, "folder/agent.pt")
    assert result.exit_code == 1  # it failed everywhere
    assert (
        "folder/agent.pt failed on 5 of 5 slices: HpcgymError: action must be an index"
        in result.stderr
    )
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("folder/agent.pt "))
    assert line.split()[1] == "-"
    value = json.loads(run(*ASKED, "folder/agent.pt", "--format", "json").stdout)
    last = value["policies"][-1]
    assert (last["name"], last["mean_bsld"], last["failed"]) == ("folder/agent.pt", None, 5)
    assert len(value["failures"]) == 5


def test_shares_are_those_that_are_given() -> None:
    shares = "half_life_s=600"
    options = ("fairshare", "--fair-share", shares, "--budget", "0", "--seed", "3")
    value = as_json(*ASKED, *options)
    rules = {"jobs": 100, "n": 5, "budget": 0, "seed": 3}
    board = evaluate("fairshare", load_workload(TRACE), **rules, fair_share=shares)
    found = {row["name"]: row["mean_bsld"] for row in value["policies"]}
    assert found == dict(board.table["mean_bsld"])
    (name,) = (name for name in found if "fair share" in name)  # no other looks at them
    assert name == "fairshare (fair share half_life_s=600, damping=1)"
    assert board.schedulers[name].fair_share.half_life_s == 600


def test_the_help_has_examples_and_names() -> None:
    text = succeed("evaluate", "--help").stdout
    assert "hpcgym evaluate sjf wfp3 --workload lublin:jobs=10000,load=0.9" in text
    for name in SCHEDULERS:
        assert re.search(rf" {re.escape(name)}[,\n]", text), name


ON_NODES = (
    *("evaluate", "--workload", "eurora:jobs=400,load=2", "--jobs", "40", "--number", "2"),
    *("--budget", "2"),
)


@pytest.mark.slow
def test_a_machine_of_nodes() -> None:
    options = ("prb", "--cluster", "eurora", "--allocation", "best-fit")
    value = as_json(*ON_NODES, *options)
    board = evaluate(
        "prb", load_workload("eurora:jobs=400,load=2"), jobs=40, n=2, budget=2,
        cluster="eurora", allocation="best-fit",
    )  # fmt: skip
    assert (value["cluster"], value["nodes"], value["processors"]) == ("eurora", 64, 1024)
    rows = {row["name"]: row for row in value["policies"]}
    assert {name: row["mean_bsld"] for name, row in rows.items()} == dict(board.table["mean_bsld"])
    assert rows["prb"]["scheduler"]["allocation"] == "best-fit"
    text = succeed(*ON_NODES, *options).stdout
    heading, *_ = text.splitlines()
    assert " · eurora: 64 nodes, 1,024 cores · test part · 2 windows of 40 jobs" in heading
    assert heading.endswith(" · best-fit allocation")
    (row, *_) = as_csv(*ON_NODES, *options)
    assert (row["cluster"], row["nodes"]) == ("eurora", "64")
    assert set(value["queues"]) == {"debug", "parallel", "longpar"}
    assert "queues" not in row


# --- What users bring, groups, metrics, LaTeX ----------------------------------------------------


@pytest.mark.parametrize("given", ["cli_brought:First", "mine=cli_brought:First"])
def test_modules_of_the_current_folder_are_found(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "class First:\n    def act(self, observation, info):\n        return 0\n"
    (tmp_path / "cli_brought.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    few = ("--env", "JobSelection", "--budget", "0", "--format", "json")
    value = json.loads(succeed(*ASKED, given, *few).stdout)
    rows = {row["name"]: row["mean_bsld"] for row in value["policies"]}
    assert rows[given.partition("=")[0]] == rows["easy"]
    assert "random (acting)" in rows
    del sys.modules["cli_brought"]


@pytest.mark.slow
def test_several_trainings_are_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def agent(path: str) -> Any:
        place = int(path[0])
        act = lambda observation, info: min(place, len(info["window"]) - 1)  # noqa: E731
        return SimpleNamespace(act=act, env_id="hpcgym/JobSelection-v0")

    monkeypatch.setattr(lineup, "load_agent", agent)
    options = ("ppo=0.pt,1.pt,4.pt", "wfp3", "--metric", "p99_wait_s", "--reference", "saf")
    text = succeed(*ASKED, *options).stdout
    (row,) = (line for line in text.splitlines() if line.startswith("ppo "))
    assert "ppo: means of 3 trainings; intervals resample them too" in text.splitlines()
    assert "P99 of wait less that of saf (backfill fcfs); p: chance of such a difference" in text
    assert "P99 of wait" in text
    assert " IQM " in text
    assert "means of" not in succeed(*ASKED, "ppo=0.pt").stdout  # of one
    value = as_json(*ASKED, *options)
    (told,) = (row for row in value["policies"] if row["name"] == "ppo")
    assert (told["seeds"], value["metric"]) == (3, "p99_wait_s")
    assert row.split()[1].rstrip("*") == text_of(known_metrics()["p99_wait_s"], told["p99_wait_s"])


def test_latex_is_the_board_alone() -> None:
    text = succeed(*ASKED, "spf", "--format", "latex").stdout
    assert text == evaluate("spf", load_workload(TRACE), jobs=100, n=5, budget=15).to_latex()
    assert text.startswith(r"\begin{tabular}")


@pytest.mark.slow
def test_the_table_says_what_is_around_slices() -> None:
    assert "slices with" not in succeed(*ASKED).stdout
    around = ("--start", "warm", "--arrivals", "continue", "--horizon", "12h")
    assert (
        "\nslices with start=warm, arrivals=continue, horizon=12h\n"
        in succeed(*ASKED, *around).stdout
    )
    found = as_json(*ASKED, "--env", "QueueOrdering-v1")
    assert found["evaluation"]["start"] == "warm"  # as the environment has it
    assert found["evaluation"]["horizon"] == "7d"
