"""Leaderboards under quotas and around windows: all rows keep them."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.cli import app
from hpcgym.errors import HpcgymError, RuleWarning, WorkloadWarning
from hpcgym.evaluation import evaluate
from hpcgym.workload import Workload, load_workload, write_table

pytestmark = pytest.mark.slow

TRACE = load_workload("lublin:jobs=900,processors=64,seed=4,load=1.2")
KEPT: dict[str, Any] = {"quota": "user:jobs=2", "maintenance": "1/9000000:processors=20"}
NAMES = {"easy": "easy", "saf": "saf", "spf": "spf"}
FITTING = TRACE.take(np.asarray(TRACE.requested_processors) <= 44)


def same(found: Any, policy: Any, rules: dict[str, Any], jobs: Workload) -> None:
    for name, value in found.items():  # such as "rows 450:510"
        first, stop = map(int, name.removeprefix("rows ").split(":"))
        result = hpcgym.simulate(jobs.take(slice(first, stop)), policy, **rules)
        hpcgym.validate_schedule(result)
        assert value == pytest.approx(result.metrics["mean_bsld"], rel=1e-12), name


def test_schedulers_are_simulated_under_them() -> None:
    board = evaluate(list(NAMES), TRACE, jobs=60, n=8, budget=0, quota="user:jobs=2")
    rows = board.by_slice
    for name in NAMES:
        same(rows[f"{name} (quota user:jobs=2)"], name, {"quota": "user:jobs=2"}, TRACE)
    assert "random (quota user:jobs=2)" in rows
    plain = evaluate(list(NAMES), TRACE, jobs=60, n=8, budget=0).by_slice
    assert (plain["easy"] != rows["easy (quota user:jobs=2)"]).any()


def test_given_schedulers_are_simulated_under_them(tmp_path: Path) -> None:
    """An object and a file are; who has a quota of its own keeps it, unless there is to be none."""
    file = tmp_path / "mine.toml"
    file.write_text('policy = "saf"\n')
    own = "user:jobs=1"
    policies = {"object": hpcgym.Scheduler("saf"), "file": str(file)}
    policies |= {"own": hpcgym.Scheduler("saf", quota=own)}
    rows = evaluate(policies, TRACE, jobs=60, n=4, budget=0, quota="user:jobs=2").by_slice
    same(rows["object (quota user:jobs=2)"], "saf", {"quota": "user:jobs=2"}, TRACE)
    same(rows["file"], str(file), {"quota": "user:jobs=2"}, TRACE)
    same(rows["own"], policies["own"], {}, TRACE)
    rows = evaluate(policies, TRACE, jobs=60, n=4, budget=0, quota=None).by_slice
    same(rows["object"], "saf", {}, TRACE)
    assert (rows["own (no quota)"] == rows["object"]).all()
    rows = evaluate([f"saf:quota={own}"], TRACE, jobs=60, n=4, budget=0, quota=None).by_slice
    same(rows[f"saf:quota={own} (no quota)"], "saf", {}, TRACE)


def test_rows_that_are_always_there_tell_them() -> None:
    rules: dict[str, Any] = {"maintenance": "0/60", "jobs": 60, "n": 2, "budget": 2}
    board = evaluate((), TRACE, reference="best-static", **rules)
    always = ["random (maintenance 0/60)", "best-static (maintenance 0/60)"]
    assert [*board.by_slice][-2:] == always
    assert board.reference == always[1]
    chance = next(row for row in board.rows() if row["name"] == always[0])
    assert (chance["policy"], chance["maintenance"]) == ("random", "0/60")


@pytest.mark.parametrize("env", ["JobSelection-v0", "QueueOrdering-v0"])
def test_who_acts_keeps_them_too(env: str) -> None:
    """A baseline that acts does as well as the same policy simulated."""
    board = evaluate(
        {"mine": find_baseline("saf")}, FITTING, env=f"hpcgym/{env}", jobs=60, budget=0,
        env_options={"window": 256}, **KEPT,
    )  # fmt: skip
    rows = board.by_slice
    (name,) = [row for row in rows if row.startswith("saf (")]
    np.testing.assert_allclose(rows["mine"], rows[name], rtol=1e-12)
    easy = next(row for row in rows if row.startswith("easy ("))
    assert (rows["mine"] != rows[easy]).any()


def test_jobs_stop_others_in_all_rows() -> None:
    """A baseline that acts does as well as the same policy simulated."""
    rules = {"preemption": "queue:interactive>batch"}
    board = evaluate(
        {"mine": find_baseline("saf")}, TRACE, env="hpcgym/MixedPolicy-v0", jobs=60, budget=0,
        env_options={"interval": "pass", "backfill_order": "fcfs"}, **rules,
    )  # fmt: skip
    rows = board.by_slice
    saf = hpcgym.Scheduler("saf", backfill_order="fcfs")
    same(rows["mine"], saf, rules, TRACE)
    (name,) = [row for row in rows if row.startswith("saf (")]
    np.testing.assert_allclose(rows["mine"], rows[name], rtol=1e-12)
    plain = evaluate(saf, TRACE, jobs=60, budget=0).by_slice.to_numpy()
    assert (rows["mine"].to_numpy() != plain[:, 0]).any()


def test_the_best_fixed_weights_are_found_under_them() -> None:
    board = evaluate("spf", FITTING, jobs=60, n=8, budget=15, seed=2, **KEPT)
    rules = {"policy": dict(board.static_weights), "backfill_order": "spf", **KEPT}
    (name,) = [row for row in board.by_slice if row.startswith("best-static")]
    same(board.by_slice[name], "easy", rules, FITTING)


@pytest.mark.parametrize("env", [None, "JobSelection-v0"])
def test_slices_that_begin_with_jobs_begin_under_the_quotas(env: str | None) -> None:
    """Each begins as EASY under the quota left the machine, and is simulated so by all."""
    rules = {"quota": "user:jobs=2"}
    more: dict[str, Any] = {"env_options": {"window": 256}} if env else {}
    board = evaluate(
        {"mine": find_baseline("saf")} if env else ["saf"], FITTING, jobs=60, n=6, budget=0,
        start="warm", env=f"hpcgym/{env}" if env else None, **more, **rules,
    )  # fmt: skip
    long = hpcgym.simulate(FITTING, "easy", **rules)
    # beside who acts, schedulers have the environment's rules
    saf = hpcgym.Scheduler("saf", backfill_order="fcfs") if env else "saf"
    (name,) = [row for row in board.by_slice if row.startswith("saf (")]
    for slice_name, value in board.by_slice[name].items():
        first = (len(FITTING) + 1) // 2 + 60 * int(slice_name.removeprefix("window "))
        stop = first + 60
        part = hpcgym.continued(long, int(FITTING.submit_time[first]))
        rows = np.flatnonzero(part.job_number <= FITTING.job_number[stop - 1])
        result = hpcgym.simulate(part.take(rows), saf, **rules)
        counted = result.workload.job_number >= FITTING.job_number[first]
        assert value == pytest.approx(result.bsld[counted].mean(), rel=1e-12)
    if env:
        np.testing.assert_allclose(board.by_slice["mine"], board.by_slice[name], rtol=1e-12)


def test_an_environment_brings_its_quota_along() -> None:
    """Given to the environment alone, it holds for how slices begin, and for all rows."""
    given: dict[str, Any] = {"jobs": 60, "n": 4, "budget": 0, "start": "warm"}
    given |= {"env": "hpcgym/JobSelection-v0"}
    mine = {"mine": find_baseline("saf")}
    options = {"window": 256, "quota": "user:jobs=2"}
    there = evaluate(mine, FITTING, env_options=options, **given)
    said = evaluate(mine, FITTING, env_options={"window": 256}, quota="user:jobs=2", **given)
    assert (there.by_slice["mine"] == said.by_slice["mine"]).all()
    (easy,) = [row for row in said.by_slice if row.startswith("easy (")]
    assert there.by_slice.filter(like="easy").eq(said.by_slice[easy], axis=0).all().any()


class Trained:
    """Acts as SPF, and was trained under rules of a kind that it brings along."""

    env_id = "hpcgym/MixedPolicy-v0"

    def __init__(self, **rules: Any) -> None:
        self.env_options = {"interval": "episode", **rules}

    def act(self, observation: Any, info: Any) -> Any:
        return np.array([0, -1, 0, 0, 0, 0], np.float32)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("preemption", "queue:interactive>batch"),
        ("quota", "user:jobs=2"),
        ("maintenance", "1/9000000:processors=20"),
        ("threshold", 1),
    ],
)
def test_none_leaves_out_what_an_agent_was_trained_with(rule: str, text: Any) -> None:
    given: dict[str, Any] = {"jobs": 60, "n": 4, "budget": 0}
    log = FITTING if rule == "maintenance" else TRACE
    trained = evaluate({"mine": Trained(**{rule: text})}, log, **given).by_slice
    none = {rule: None}
    freed = evaluate({"mine": Trained(**{rule: text})}, log, **none, **given).by_slice
    plain = evaluate({"mine": Trained()}, log, **given).by_slice
    assert (trained["mine"] != plain["mine"]).any()
    assert freed.equals(plain)


def test_none_does_not_change_an_environment_that_is_made() -> None:
    env = gymnasium.make("hpcgym/MixedPolicy-v0", workload=FITTING, jobs=60, quota="user:jobs=2")
    with pytest.raises(HpcgymError, match="has quota='user:jobs=2', and the evaluation None"):
        evaluate("saf", FITTING, env=env, jobs=60, budget=0, quota=None)


def test_none_goes_with_environments_that_do_not_know_the_rule() -> None:
    given: dict[str, Any] = {"jobs": 60, "n": 2, "budget": 0, "env": "hpcgym/PowerCap-v0"}
    evaluate("saf", TRACE, preemption=None, quota=None, **given)


def test_the_command_takes_both() -> None:
    words = ["evaluate", "saf", "--workload", "lublin:jobs=900,processors=64,seed=4,load=1.2"]
    words += ["--jobs", "60", "--budget", "0", "--format", "json", "--quota"]
    result = CliRunner().invoke(app, [*words, "user:jobs=2", "--maintenance", "1/2"])
    assert result.exit_code == 0
    assert "easy (quota user:jobs=2, maintenance 1/2)" in result.stdout
    stops = ["--preemption", "queue:interactive>batch"]
    result = CliRunner().invoke(app, [*words[:-1], *stops])
    assert result.exit_code == 0
    assert "saf (preemption queue:interactive>batch)" in result.stdout
    result = CliRunner().invoke(app, [*words[:-1], "--preemption", "none", "--quota", "none"])
    assert result.exit_code == 0
    assert '"saf"' in result.stdout
    result = CliRunner().invoke(app, [*words, "user"])
    assert result.exit_code != 0
    assert "quota 'user' is neither a file nor a quota" in result.stderr


def followers() -> Workload:
    """Return jobs of which every third follows the one before."""
    n = len(TRACE)
    numbers = np.arange(n) + 1
    return TRACE.with_columns(
        job_number=numbers,
        preceding_job=np.where(numbers % 3 == 0, numbers - 1, -1),
        think_time=np.zeros(n, np.int64),
    )


def test_the_command_lets_jobs_follow_others(tmp_path: Path) -> None:
    """F1 is no reference then; what is said of a log that nobody heeds is left out."""
    write_table(followers(), tmp_path / "jobs.csv")
    words = ["evaluate", "saf", "--workload", str(tmp_path / "jobs.csv"), "--processors", "64"]
    words += ["--jobs", "60", "--budget", "0", "--format", "json", "--dependencies", "after"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert '"saf (dependencies after)"' in result.stdout
    assert '"f1' not in result.stdout
    assert "when the log says, unless" not in result.stderr


OWN = """
from hpcgym import Scheduler
import numpy as np

few = Scheduler(quota="user:processors=5")

class Trained:
    env_id = "hpcgym/MixedPolicy-v0"
    env_options = {"quota": "user:processors=5"}

    def act(self, observation, info):
        return np.array([0, -1, 0, 0, 0, 0], np.float32)
"""


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
    words = ["evaluate", "spf", row, "--workload", "lublin:jobs=300,processors=64,seed=4"]
    words += ["--jobs", "60", "--budget", "0", "--format", "json"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 1
    assert "--unfit drop drops such jobs" in refused.stderr
    done = CliRunner().invoke(app, [*words, "--unfit", "drop"])
    assert done.exit_code == 0, done.stderr
    jobs = load_workload("lublin:jobs=300,processors=64,seed=4")
    small = int((jobs.requested_processors <= 5).sum())
    (told,) = json.loads(done.stdout)["provenance"]["workloads"]
    assert told["jobs"] == small < 300
    sys.modules.pop("own_quotas", None)


def test_jobs_of_one_pass_are_fit_for_each_row() -> None:
    words = ["evaluate", "spf", "saf:quota=user:processors=5", "--protocol", "prequential"]
    words += ["--workload", "lublin:jobs=60,processors=64,seed=4", "--budget", "2"]
    refused = CliRunner().invoke(app, words)
    assert "--unfit drop drops such jobs" in refused.stderr
    assert CliRunner().invoke(app, [*words, "--unfit", "drop"]).exit_code == 0


@pytest.mark.parametrize(
    "rules",
    [
        {"quota": "queue=99:jobs=1"},
        {"maintenance": "1/2"},
        {"preemption": "queue:98>99"},
        {"preemption": "queue:interactive>batch>99"},
        {"dependencies": "after"},
    ],
)
def test_rules_that_restrict_nobody_are_told_once_for_all_slices(rules: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate("spf", TRACE, jobs=60, n=3, budget=2, **rules)
    told = [one.category for one in caught if issubclass(one.category, WorkloadWarning)]
    assert told == [RuleWarning]
