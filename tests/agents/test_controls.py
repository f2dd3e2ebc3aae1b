"""Controls found by search: what they reach, how they act and are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym.agents import controls, load
from hpcgym.cli import app
from hpcgym.cluster import Cluster, NodeGroup, find_cluster
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import evaluate
from hpcgym.scheduler.limits import EnergyBudget
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

pytestmark = pytest.mark.slow

NAME = "lublin:jobs=600,processors=16,seed=1,load=1.2"
TRACE = load_workload(NAME)
SLICES: dict[str, Any] = {"episodes": "windows", "jobs": 60, "number": 6}
SHORT: dict[str, Any] = {
    **SLICES,
    "budget": 12,
    "population": 6,
    "env_options": {"share": 0.7, "controls": ["power", "nodes"], "interval": 10},
}


@pytest.fixture(scope="module")
def agent() -> controls.Controls:
    return controls.train(TRACE, seed=2, **SHORT)


def returned(agent: controls.Controls, episode: str) -> float:
    """The return of an episode in a single environment."""
    options = {**agent.env_options, "episodes": "windows", "jobs": 60, "part": "train"}
    env = gymnasium.make(agent.env_id, workload=TRACE, **options)
    observation, info = env.reset(options={"slice": episode})
    agent.begin(env)
    total, ended = 0.0, False
    while not ended:
        observation, reward, ended, _, info = env.step(agent.act(observation, info))
        total += float(reward)
    assert total == pytest.approx(-info["metrics"]["mean_bsld"], rel=1e-12)
    return total


def test_it_is_as_good_as_it_says(agent: controls.Controls) -> None:
    """One environment after the other, what many side by side have found."""
    found = agent.found
    assert not set(found["fitted_on"]) & set(found["chosen_on"])
    assert len(found["fitted_on"]) == len(found["chosen_on"]) == 3
    mean = np.mean([returned(agent, name) for name in found["chosen_on"]])
    assert -mean == pytest.approx(found["value"], rel=1e-12)
    assert found["value"] <= found["value_of_the_beginning"]


def test_the_search_begins_at_the_machine_as_it_is(agent: controls.Controls) -> None:
    """That is EASY, which backfills by requested time, under the limits alone."""
    power = find_cluster("taurus").groups[0].power
    machine = Cluster(groups=(NodeGroup("n", 16, {"core": 1}, power),))
    values = []
    for name in agent.found["chosen_on"]:
        jobs = TRACE.take(slice(*map(int, name.removeprefix("rows ").split(":"))))
        start, end = int(jobs.submit_time[0]), int(jobs.submit_time[-1]) + 1
        budget = EnergyBudget.of(machine, 0.7, start, end)
        rules: dict[str, Any] = {"backfill_order": "spf", "limits": budget}
        values.append(simulate(jobs, "easy", cluster=machine, **rules).metrics["mean_bsld"])
    assert agent.found["value_of_the_beginning"] == pytest.approx(np.mean(values), rel=1e-12)


def test_the_seed_decides(agent: controls.Controls) -> None:
    again = controls.train(TRACE, seed=2, **SHORT)
    other = controls.train(TRACE, seed=3, **SHORT)
    assert again.found == agent.found
    np.testing.assert_array_equal(again.rows, agent.rows)
    np.testing.assert_array_equal(again.weights, agent.weights)
    assert other.found != agent.found


def test_files_hold_all(agent: controls.Controls, tmp_path: Path) -> None:
    agent.save(tmp_path / "agent.json")
    loaded = load(tmp_path / "agent.json")
    assert loaded.found == agent.found
    assert loaded.env_options == agent.env_options
    name = agent.found["fitted_on"][0]
    assert returned(loaded, name) == returned(agent, name)


def test_actions_by_hand(agent: controls.Controls) -> None:
    """One control that is 1 - 2 (share of busy nodes - 1/2), cut at 1; and weights as they are."""
    row = np.zeros(len(agent.inputs) + 1)
    row[agent.inputs.index("nodes_busy")], row[-1] = -2.0, 1.0
    rows = np.stack([row, np.zeros_like(row)])
    weights = [0.5, -1, 0, 0, 0.25]
    mine = controls.Controls(rows, weights, agent.inputs, agent.env_id, agent.env_options, {})
    options = {**agent.env_options, "episodes": "windows", "jobs": 60}
    env = gymnasium.make(agent.env_id, workload=TRACE, **options)
    observation, info = env.reset(seed=0)
    mine.begin(env)
    wide = gymnasium.make(agent.env_id, workload=TRACE, **{**options, "observation": "dict"})
    shown = wide.reset(seed=0)[0]
    for _ in range(5):
        busy = float(shown["power"][13])
        action = mine.act(observation, info)
        assert action.tolist() == [min(2 - 2 * busy, 1.0), 0.0, *weights]
        observation, _, ended, _, info = env.step(action)
        shown = wide.step(action)[0]
        assert not ended


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"env": "hpcgym/MixedPolicy-v0"}, "unknown env"),
        ({"method": "newton"}, "unknown method"),
        ({"inputs": ("tea",)}, "unknown inputs 'tea'"),
        ({"budget": 0}, "budget must be a whole number"),
        ({"sigma": 0}, "sigma must be a number above 0"),
        ({"number": 1}, "two episodes or more"),
        ({"env_options": {"observation": "dict"}}, "observation='flat'"),
        ({"env_options": {"limits": lambda jobs: ()}}, "a file cannot hold them"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        controls.train(TRACE, **{**SHORT, **arguments})


def test_other_environments_and_files_are_refused(agent: controls.Controls, tmp_path: Path) -> None:
    env = gymnasium.make("hpcgym/MixedPolicy-v0", workload=TRACE)
    with pytest.raises(HpcgymError, match="act in hpcgym/EnergyBudget-v0"):
        agent.begin(env)
    file = tmp_path / "agent.json"
    agent.save(file)
    contents = json.loads(file.read_text())
    for change, message in (
        ({"format": 9}, "not of this version"),
        ({"weights": [1.0]}, "do not fit"),
        ({"agent": "tea"}, "holds an agent that this version does not know"),
    ):
        file.write_text(json.dumps({**contents, **change}))
        with pytest.raises(HpcgymError, match=message):
            load(file)


def test_the_command_and_the_comparison(agent: controls.Controls, tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    arguments = ["train", "controls", "--workload", NAME, "--share", "0.7", "--controls"]
    arguments += ["power,nodes", "--episodes", "windows", "--jobs", "60", "--number", "6"]
    result = CliRunner().invoke(app, [*arguments, "--budget", "12", "--output", str(file)])
    assert result.exit_code == 0, result.output
    assert "held back" in result.stderr
    board = evaluate(str(file), TRACE, jobs=60, n=2, budget=0)
    assert board.reference == "powercap"
    assert {str(file), "easy", "saf", "powercap"} <= set(board.by_slice)
    assert board.table["failed"].sum() == 0
