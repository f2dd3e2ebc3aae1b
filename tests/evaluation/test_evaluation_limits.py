"""Leaderboards under limits: rows are simulations under the limits of each slice, and what acts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym.baselines import SCHEDULERS
from hpcgym.cli import app
from hpcgym.cluster import Cluster, NodeGroup, find_cluster
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import Leaderboard, evaluate
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload, load_workload

NAME = "lublin:jobs=600,processors=16,seed=1,load=1.2"
TRACE = load_workload(NAME)
SMALL: dict[str, Any] = {"jobs": 60, "n": 5, "budget": 0, "resamples": 100}
BUDGET = "hpcgym/EnergyBudget-v0"
SHARE: dict[str, Any] = {"env": BUDGET, "env_options": {"share": 0.7}}
#: Each processor a node of Taurus.
MACHINE = Cluster(groups=(NodeGroup("n", 16, {"core": 1}, find_cluster("taurus").groups[0].power),))


def as_it_is(share: float = 0.7) -> Any:
    """A policy that leaves the machine as it is, made for this share."""
    options = {"share": share, "controls": ["power", "nodes"]}
    return SimpleNamespace(
        name="as it is",
        env_id=BUDGET,
        env_options=options,
        act=lambda observation, info: np.ones(2, np.float32),
    )


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    policies = {"a": as_it_is(), "energy-bud": "energy-bud", "rpc": "reduce-pc+saf", "none": "none"}
    return evaluate(policies, TRACE, **SMALL)


def slices_of(board: Leaderboard) -> Mapping[str, Workload]:
    rows = {name: name.removeprefix("rows ").split(":") for name in board.by_slice.index}
    return {name: TRACE.take(slice(*map(int, ends))) for name, ends in rows.items()}


def budget_of(jobs: Workload, share: float = 0.7) -> EnergyBudget:
    start, end = int(jobs.submit_time[0]), int(jobs.submit_time[-1]) + 1
    joules = share * 16 * 190.738 * (end - start)
    return EnergyBudget(joules, start, end)


def second_by_second(result: Result, start: int, end: int) -> float:
    """The energy from ``start`` up to ``end``, added second by second [J]."""
    times, watts = result.power["time"].tolist(), result.power["watts"].tolist()
    total, row = 0.0, 0
    for second in range(start, min(end, times[-1])):
        while times[row + 1] <= second:
            row += 1
        total += watts[row]
    return total


@pytest.mark.parametrize(
    ("row", "scheduler", "power"),
    [
        ("powercap", "easy", "powercap"),
        ("energy-bud", "easy", "energy-bud"),
        ("rpc", "saf", "reduce-pc"),
        ("none", "easy", "none"),
        ("easy", "easy", "none"),
        ("f1 (backfill fcfs)", "f1", "none"),
    ],
)
def test_rows_are_simulations_under_the_limits_of_each_slice(
    board: Leaderboard, row: str, scheduler: str, power: str
) -> None:
    for name, jobs in slices_of(board).items():
        budget = budget_of(jobs)
        rules = SCHEDULERS[scheduler].but(power=power, backfill_order="fcfs")  # the environment's
        result = simulate(jobs, rules, cluster=MACHINE, limits=[budget])
        assert board.by_slice.loc[name, row] == result.metrics["mean_bsld"]
        assert board.energy["energy_j"].loc[name, row] == result.metrics["energy_j"]
        used = second_by_second(result, budget.start, budget.end)
        found = board.energy["limited_energy_j"].loc[name, row]
        assert found == pytest.approx(used, rel=1e-9)


def test_budgets_matter_here(board: Leaderboard) -> None:
    """Else the rows above would not tell one rule from another."""
    assert len({*board.by_slice.mean().round(6)}) >= 5
    for name, jobs in slices_of(board).items():
        used = board.energy["limited_energy_j"].loc[name, "easy"]
        assert 0.8 < used / budget_of(jobs).joules <= 1.0 + 1e-9


def test_what_acts_keeps_the_same_limits_on_the_same_machine(board: Leaderboard) -> None:
    for table in (board.by_slice, *board.energy.values()):
        np.testing.assert_array_equal(table["a"], table["none"])
    assert board.schedulers["a"] is None


def test_all_are_compared_with_powercap(board: Leaderboard) -> None:
    table = board.table
    assert board.reference == "powercap"
    for row in board.by_slice:
        less = float((board.by_slice[row] - board.by_slice["powercap"]).mean())
        assert table.loc[row, "above_reference"] == pytest.approx(less, abs=1e-9)
        joules = board.energy["limited_energy_j"][row]
        assert table.loc[row, "limited_energy_j"] == pytest.approx(joules.mean(), rel=1e-12)
        assert joules.min() <= table.loc[row, "limited_energy_j_low"] <= joules.mean()
    mean, low, high = board.difference("none", "powercap", "energy_j")
    less = board.energy["energy_j"]["none"] - board.energy["energy_j"]["powercap"]
    assert mean == pytest.approx(less.mean(), rel=1e-9)
    assert low <= mean <= high
    with pytest.raises(HpcgymError, match="unknown metric 'watts'"):
        board.difference("none", "powercap", "watts")


def test_static_weights_are_chosen_under_the_limits() -> None:
    found = evaluate((), TRACE, **{**SMALL, "n": 2, "budget": 4}, **SHARE)
    values = {}
    training = TRACE.take(slice(0, 300))
    starts = [int(name.removeprefix("rows ").split(":")[0]) for name in found.by_slice.index]
    assert min(starts) >= len(training)
    scheduler = found.schedulers["best-static"]
    assert scheduler is not None
    assert scheduler.policy == found.static_weights
    for name, jobs in slices_of(found).items():
        result = simulate(jobs, scheduler, cluster=MACHINE, limits=[budget_of(jobs)])
        values[name] = result.metrics["mean_bsld"]
    assert found.by_slice["best-static"].to_dict() == values


@pytest.mark.parametrize(
    ("policies", "options", "message"),
    [
        ("powercap", {}, "powercap keeps limits, and there are none.*--env EnergyBudget"),
        ("none+saf", {}, "keeps limits, and there are none"),
        ("conservative", SHARE, "conservative keeps no limits of power and energy: backfill"),
        ("dvfs", SHARE, "dvfs is for caps, and the environment has none"),
        ("reduce-pc", {"env": "hpcgym/PowerCap-v0"}, "reduce-pc is for budgets"),
        ([as_it_is(0.7), as_it_is(0.6)], {}, "set other limits; evaluate apart"),
        ("reduce-pc+nobody", SHARE, "unknown policy 'reduce-pc\\+nobody'"),
    ],
)
def test_rows_that_make_no_sense(policies: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        evaluate(policies, TRACE, **SMALL, **options)


def test_the_command() -> None:
    arguments = ["evaluate", "reduce-pc+saf", "--workload", NAME, "--jobs", "60", "--number", "5"]
    arguments += ["--budget", "0", "--env", "EnergyBudget", "--share", "0.7"]
    result = CliRunner().invoke(app, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)["policies"]}
    expected = evaluate("reduce-pc+saf", TRACE, **SMALL, **SHARE).table
    for name, row in expected.iterrows():
        for column in ("mean_bsld", "energy_j", "limited_energy_j", "above_reference"):
            assert rows[str(name)][column] == row[column]
    assert rows["reduce-pc+saf (backfill fcfs)"]["scheduler"]["power"] == "reduce-pc"
    text = CliRunner().invoke(app, arguments).stdout
    assert "above powercap: mean BSLD less that of powercap" in text
    wrong = CliRunner().invoke(app, [*arguments, "--env", "Energy"])
    assert "unknown --env 'Energy'" in wrong.stderr
