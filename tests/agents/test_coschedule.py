"""Pairs learned by search: what is weighed, that one acts as many do, files, training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.agents import coschedule, load
from hpcgym.envs import CoSchedule, CoScheduleVector, JobSelection
from hpcgym.errors import HpcgymError

pytestmark = pytest.mark.slow

JOBS = "codes:jobs=400,processes=24,processors=192,seed=2"
OPTIONS: dict[str, Any] = {"cluster": "8x2x12", "window": 12, "neighbours": 4}
SIZE = len(coschedule.INPUTS)


def env(**options: Any) -> CoSchedule:
    return CoSchedule(JOBS, jobs=40, **{"observation": "flat", **OPTIONS, **options})


def with_weight(name: str, value: float = 1.0) -> Any:
    weights = np.zeros(SIZE)
    weights[coschedule.INPUTS.index(name)] = value
    return weights


def some_state(seed: int = 0) -> tuple[CoSchedule, Any, dict[str, Any]]:
    """Some jobs run, with parts free beside them, and others wait."""
    world = env()
    world.reset(seed=seed)
    for _ in range(4):
        step = world.step(0)
    return world, step[0], step[4]


def test_each_weight_is_for_what_it_is_called() -> None:
    world, row, info = some_state()
    workload, layout = world.episode_workload, world.simulations.layout
    rows, beside = info["window"], info["neighbours"][info["neighbours"] >= 0]
    assert len(beside) == 4
    nodes = 2 / 8  # 24 processes, 12 on each node
    code = world.result().coschedule.code  # type: ignore[union-attr]
    speedup = world.speedups.filled
    pairs = speedup[np.ix_(code[rows], code[beside])] - 1
    hours = workload.requested_time[rows] / 3600
    time = hours / (hours + 1)
    alone = np.broadcast_to(world.speedups.alone[code[rows]][:, None] - 1, (12, 5))
    expected = {
        "nodes": np.full((12, 5), nodes),
        "time": np.broadcast_to(time[:, None], (12, 5)),
        "speedup alone": alone,
        "mean speedup": np.broadcast_to(speedup.mean(axis=1)[code[rows]][:, None] - 1, (12, 5)),
        "nodes beside": np.column_stack([np.zeros(12), np.full((12, 4), nodes)]),
        "speedup beside": np.column_stack([np.zeros(12), pairs]),
        "speedup of the other": np.column_stack(
            [np.zeros(12), speedup[np.ix_(code[beside], code[rows])].T - 1]
        ),
        "by rule": np.column_stack([np.ones(12), np.zeros((12, 4))]),
    }
    for name, values in expected.items():
        scores = coschedule.scores_of(with_weight(name)[None], row[None], layout)[0]
        np.testing.assert_allclose(scores[:-1].reshape(12, 5), values, atol=2e-6, err_msg=name)
        assert scores[-1] == 0
    waits = coschedule.scores_of(with_weight("waiting", -0.5)[None], row[None], layout)[0]
    np.testing.assert_array_equal(waits, [0.0] * 60 + [-0.5])


def test_only_what_can_be_done_is_chosen() -> None:
    rng, world = np.random.default_rng(0), env()
    agent = coschedule.Pairs(rng.normal(size=SIZE), {}, {})
    row, info = world.reset(seed=1)
    agent.begin(world)
    ended = False
    while not ended:
        action = agent.act(row, info)
        assert info["action_mask"][action]
        row, _, ended, _, info = world.step(action)


def test_one_acts_as_many_do() -> None:
    rng = np.random.default_rng(1)
    many = CoScheduleVector(3, JOBS, jobs=40, observation="flat", **OPTIONS)
    weights = rng.normal(size=(3, SIZE))
    rows, _ = many.reset(seed=5)
    layout = many.simulations.layout
    for _ in range(30):
        together = coschedule.choices(weights, rows, layout)
        alone = [coschedule.choices(weights[e : e + 1], rows[e : e + 1], layout)[0]
                 for e in range(3)]  # fmt: skip
        np.testing.assert_array_equal(together, alone)
        rows = many.step(together)[0]


def train(folder: Path, **arguments: Any) -> coschedule.Pairs:
    usual: dict[str, Any] = {
        "budget": 12, "population": 6, "number": 4, "jobs": 40, "output": folder / "pairs.json",
        "env_options": {**OPTIONS, "reward": "throughput"},
    }  # fmt: skip
    return coschedule.train(JOBS, **{**usual, **arguments})


def test_training_and_its_file(tmp_path: Path) -> None:
    seen: list[tuple[int, float]] = []
    agent = train(tmp_path, show=lambda tried, best: seen.append((tried, best)))
    again = train(tmp_path)
    np.testing.assert_array_equal(agent.weights, again.weights)
    assert [tried for tried, _ in seen] == [6, 12]
    assert seen[1][1] <= seen[0][1]
    assert agent.found["value"] <= agent.found["value_of_the_beginning"]
    assert not {*agent.found["fitted_on"]} & {*agent.found["chosen_on"]}
    loaded = load(tmp_path / "pairs.json")
    np.testing.assert_array_equal(loaded.weights, agent.weights)
    assert loaded.env_options == agent.env_options
    # the value is that of the episodes held back, played one by one
    returns = []
    for name in agent.found["chosen_on"]:
        world = CoSchedule(JOBS, jobs=40, part="train", **loaded.env_options)
        row, info = world.reset(options={"slice": name})
        loaded.begin(world)
        total, ended = 0.0, False
        while not ended:
            row, reward, ended, _, info = world.step(loaded.act(row, info))
            total += reward
        returns.append(total)
    assert -np.mean(returns) == pytest.approx(agent.found["value"], rel=1e-12)


def test_the_beginning_serves_in_order_of_submission() -> None:
    world = env()
    agent = coschedule.Pairs(coschedule.BEGINNING, {}, {})
    row, info = world.reset(seed=3)
    agent.begin(world)
    while world.queued().size:
        possible = np.flatnonzero(info["action_mask"])
        action = agent.act(row, info)
        assert action == possible[0]
        row, _, _, _, info = world.step(action)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget must be a whole number"),
        ({"sigma": 0}, "sigma must be a number above 0"),
        ({"number": 1}, "two episodes or more"),
        ({"env_options": {"observation": "dict"}}, "observation='flat'"),
        ({"env_options": {"cluster": {1, 2}}}, "a file cannot hold them"),
    ],
    ids=str,
)
def test_bad_arguments(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match=message):
        train(tmp_path, **arguments)


def test_files_of_other_versions(tmp_path: Path) -> None:
    coschedule.Pairs(np.zeros(SIZE), {}, {}).save(tmp_path / "a.json")
    contents = json.loads((tmp_path / "a.json").read_text())
    for changed in ({"format": 9}, {"inputs": ["nodes"]}, {"weights": [1.0]}):
        (tmp_path / "b.json").write_text(json.dumps({**contents, **changed}))
        with pytest.raises(HpcgymError, match="these pairs"):
            load(tmp_path / "b.json")


def test_where_it_cannot_act() -> None:
    agent = coschedule.Pairs(np.zeros(SIZE), {}, {})
    with pytest.raises(HpcgymError, match="call begin"):
        agent.act(np.zeros(3))
    for world in (env(observation="dict"), env(action="scores"), JobSelection(jobs=5)):
        with pytest.raises(HpcgymError, match="act in hpcgym/CoSchedule-v0"):
            agent.begin(world)
