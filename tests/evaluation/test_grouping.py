"""Evaluations by classes of jobs and users: the values are those of the jobs themselves."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import Leaderboard, evaluate, summary

JOBS = "lublin:jobs=1200,processors=32,load=0.9,seed=1"
WINDOWS = {"n": 5, "jobs": 100, "budget": 0}


class First:
    """Selects the first job that is shown."""

    def act(self, observation: Any, info: Any) -> int:
        return 0


class Failing(First):
    def act(self, observation: Any, info: Any) -> int:
        raise ValueError("no")


def board(**given: Any) -> Leaderboard:
    return evaluate(workload=JOBS, **{**WINDOWS, **given})


def of_jobs(policy: str, where: str) -> Any:
    """The jobs of a slice under a policy, simulated here; ``where`` is as "rows 10:20"."""
    first, stop = map(int, where.removeprefix("rows ").split(":"))
    part = hpcgym.load_workload(JOBS).take(np.arange(first, stop))
    return hpcgym.simulate(part, policy).jobs


def test_values_are_those_of_the_jobs() -> None:
    found = board(by="user", metric="max_wait_s").groups
    assert found is not None
    assert list(found) == ["workload", "slice", "user", "scheduler", "jobs", "max_wait_s"]
    for where in found["slice"].unique():
        jobs = of_jobs("easy", where)
        rows = found[(found["slice"] == where) & (found["scheduler"] == "easy")].set_index("user")
        assert rows["jobs"].sum() == len(jobs)
        for user, mine in jobs.groupby("user_id"):
            assert rows.loc[f"user {user}", "jobs"] == len(mine)
            assert rows.loc[f"user {user}", "max_wait_s"] == mine["wait_time"].max()


@pytest.mark.parametrize("env", ["hpcgym/JobSelection-v0", "hpcgym/JobSelection-v1"])
def test_policies_that_act_and_references_count_the_same_jobs(env: str) -> None:
    found = board(policies={"first": First()}, env=env, by="class")
    groups = found.groups
    assert groups is not None
    assert set(groups["scheduler"]) == set(found.by_slice)
    sizes = groups.pivot_table("jobs", "slice", "scheduler", "sum")
    assert (sizes.nunique(axis=1) == 1).all()
    total = (groups["jobs"] * groups["mean_bsld"]).groupby(
        [groups["slice"], groups["scheduler"]]
    ).sum() / groups.groupby(["slice", "scheduler"])["jobs"].sum()
    whole = found.by_slice.stack()
    assert np.allclose(total.sort_index(), whole.sort_index())


@pytest.mark.filterwarnings("ignore:.*failed on")
def test_who_failed_has_no_groups_and_trainings_are_one_row() -> None:
    policies = {"some": [First(), First()], "failing": Failing()}
    groups = board(policies=policies, env="hpcgym/JobSelection-v0", by="class").groups
    assert groups is not None
    assert "some" in set(groups["scheduler"])
    assert "failing" not in set(groups["scheduler"])
    assert not groups.duplicated(["slice", "class", "scheduler"]).any()


def test_what_cannot_be() -> None:
    with pytest.raises(HpcgymError, match="unknown by 'week'"):
        board(by="week")
    with pytest.raises(HpcgymError, match="utilization is of whole schedules"):
        board(by="user", metric="utilization")
    assert board().groups is None


def test_the_command_prints_them() -> None:
    words = ["evaluate", "--workload", JOBS, "--number=5", "--jobs=100", "--budget=0"]

    def printed(*more: str) -> str:
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    rows = list(csv.DictReader(io.StringIO(printed("--by=class", "--format=csv"))))
    groups = board(by="class").groups
    assert groups is not None
    means = summary(groups, ["mean_bsld"], intervals=["mean_bsld"], by="class")
    assert [float(row["mean_bsld"]) for row in rows] == means["mean_bsld"].tolist()
    one = json.loads(printed("--by=slice", "--format=json"))
    assert len({row["slice"] for row in one}) == 5
    assert "| class |" in printed("--by=class", "--reference=easy", "--format=markdown")
    assert "above easy" in printed("--by=class", "--reference=easy")
    assert printed("--format=markdown").startswith("| policy | mean BSLD | 95 % interval |")
    wrong = CliRunner().invoke(app, [*words, "--by=week"])
    assert wrong.exit_code == 1
    assert "known are slice, class, user" in wrong.stderr
