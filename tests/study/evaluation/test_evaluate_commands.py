"""``hpcgym evaluate``: that options reach all rows, and jobs that no row could run are dropped."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boards import BUDGET, CODES, SHARED_MACHINE
from click.testing import CliRunner

from hpcgym.cli import app
from hpcgym.study import evaluate, summary
from hpcgym.study.evaluation.references import OF_SHARED_NODES
from hpcgym.workload import load_workload, write_table

LOG = "lublin:jobs=900,processors=64,seed=4,load=1.2"
FEW = ("--jobs", "60", "--budget", "0", "--number", "5")
STOPS = "queue:interactive>batch"


def printed(*words: str, log: str = LOG, fails: bool = False) -> str:
    done = CliRunner().invoke(app, ["evaluate", *words, "--workload", log, *FEW])
    assert done.exit_code == fails, done.output
    return done.stderr if fails else done.stdout


def json_of(*words: str, log: str = LOG) -> Any:
    return json.loads(printed(*words, "--format", "json", log=log))


@pytest.mark.parametrize(
    ("words", "given", "row"),
    [
        (["--quota", "user:jobs=2", "--maintenance", "1/2"],
         {"quota": "user:jobs=2", "maintenance": "1/2"},
         "saf (quota user:jobs=2, maintenance 1/2)"),
        (["--preemption", STOPS], {"preemption": STOPS}, f"saf (preemption {STOPS})"),
        (["--preemption", "none", "--quota", "none"], {}, "saf"),
        (["reduce-pc+saf", "--env", "EnergyBudget", "--share", "0.7"],
         {"env": BUDGET, "env_options": {"share": 0.7}}, "reduce-pc+saf (backfill fcfs)"),
    ],
    ids=["quota", "preemption", "none", "limits"],
)  # fmt: skip
def test_the_table_is_the_board(words: list[str], given: dict[str, Any], row: str) -> None:
    policies = [word for word in words if word.startswith("reduce")] or ["saf"]
    value = json_of(*({*policies} - {*words}), *words)
    rows = {entry["name"]: entry for entry in value["policies"]}
    assert row in rows
    log = load_workload(LOG)
    board = evaluate(policies, log, jobs=60, n=5, budget=0, **given)
    for name, expected in board.table.iterrows():
        for column, number in expected.items():
            assert rows[str(name)][column] == (None if np.isnan(number) else number)
    assert value["reference"] == board.reference
    if "env" in given:
        text = printed(*words)
        assert "above powercap: mean BSLD less that of powercap" in text
    assert "quota 'user' is neither a file nor a quota" in printed("--quota", "user", fails=True)


def test_where_jobs_share_nodes() -> None:
    words = ("greedy-pairs", "--env", "CoSchedule", "--cluster", SHARED_MACHINE)
    log = CODES.replace("jobs=300", "jobs=800")  # with room for five windows of 60
    value = json_of(*words, "--speedups", "generated:codes=16,spread=0.2", log=log)
    names = {policy["name"] for policy in value["policies"]}
    assert names == {"greedy-pairs", *OF_SHARED_NODES}
    assert value["reference"] == "filler-co"
    assert "makespan" in printed(*words, log=log)


def test_each_class_of_jobs_or_slice() -> None:
    rows = list(csv.DictReader(io.StringIO(printed("--by=class", "--format=csv"))))
    groups = evaluate((), load_workload(LOG), jobs=60, n=5, budget=0, by="class").groups
    assert groups is not None
    means = summary(groups, ["mean_bsld"], intervals=["mean_bsld"], by="class")
    assert [float(row["mean_bsld"]) for row in rows] == means["mean_bsld"].tolist()
    assert len({row["slice"] for row in json_of("--by=slice")["rows"]}) == 5
    assert "| class |" in printed("--by=class", "--reference=easy", "--format=markdown")
    assert "above easy" in printed("--by=class", "--reference=easy")
    assert printed("--format=markdown").startswith("| policy | mean BSLD | 95 % interval |")
    assert "known are slice, class, size, resource, user" in printed("--by=week", fails=True)


def test_jobs_follow_others(tmp_path: Path) -> None:
    """F1 is no reference then; what is said of a log that nobody heeds is left out."""
    log = load_workload(LOG)
    numbers = np.arange(len(log)) + 1
    followers = log.with_columns(
        job_number=numbers,
        preceding_job=np.where(numbers % 3 == 0, numbers - 1, -1),
        think_time=np.zeros(len(log), np.int64),
    )
    write_table(followers, tmp_path / "jobs.csv")
    words = ["evaluate", "saf", "--workload", str(tmp_path / "jobs.csv"), "--processors", "64"]
    words += [*FEW, "--format", "json", "--dependencies", "after"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert '"saf (dependencies after)"' in done.stdout
    assert '"f1' not in done.stdout
    assert "when the log says, unless" not in done.stderr


OWN = """
from hpcgym import Scheduler
import numpy as np

few = Scheduler(quota="user:processors=5")

class Trained:
    env_id = "hpcgym/MixedPolicy-v2"
    env_options = {"quota": "user:processors=5"}

    def act(self, observation, info):
        return np.array([0, -1, 0, 0, 0, 0], np.float32)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", ["saf:quota=user:processors=5", "own_quotas:few", "own_quotas:Trained"]
)
def test_jobs_that_a_quota_of_one_row_never_lets_run_are_dropped(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows are of the same jobs."""
    (tmp_path / "own_quotas.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["evaluate", "spf", row, "--jobs", "12", *FEW[2:]]
    words += ["--workload", "lublin:jobs=300,processors=64,seed=4", "--format", "json"]
    words += ["--start", "empty", "--arrivals", "stop", "--horizon", "none"]
    done = CliRunner().invoke(app, [*words, "--errors", "skip"])
    assert done.exit_code == 0, done.stderr
    jobs = load_workload("lublin:jobs=300,processors=64,seed=4")
    (workload,) = json.loads(done.stdout)["provenance"]["workloads"]
    assert workload["jobs"] == int((jobs.requested_processors <= 5).sum()) < 300
    sys.modules.pop("own_quotas", None)
