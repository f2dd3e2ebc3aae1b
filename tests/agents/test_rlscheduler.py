"""RLScheduler's networks: their files, what they see, and how they act."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import plain_envs
import pytest
from checkpoints import SHAPES, crc32c, network_of, random_network, write_checkpoint
from click.testing import CliRunner
from mistakes import mistakes_of, why_not

from hpcgym import HpcgymError, Workload, load_workload, simulate
from hpcgym.agents import load
from hpcgym.agents.rlscheduler import PublishedNetwork, RLScheduler, Sight, chosen
from hpcgym.agents.tensor_bundle import arrays_of
from hpcgym.cli import app
from hpcgym.study import evaluate
from hpcgym.study.evaluation.policies import find_policy

# --- Files ----------------------------------------------------------------------------------------


def test_arrays_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    written = random_network()
    index = write_checkpoint(tmp_path, written)
    arrays = arrays_of(index, [*written])
    for name, array in written.items():
        assert arrays[name].shape == array.shape
        assert np.array_equal(arrays[name], array)
    assert [*arrays_of(index, ["pi/dense_3/bias"])] == ["pi/dense_3/bias"]


def test_no_byte_can_be_another(tmp_path: Path) -> None:
    """Each changed byte is noticed, or changes nothing that is read."""
    index = write_checkpoint(tmp_path, random_network())
    names = [f"{layer}/{part}" for layer in SHAPES for part in ("kernel", "bias")]
    whole = arrays_of(index, names)
    rng = random.Random(0)
    refused = 0
    for file in (index, index.with_suffix(".data-00000-of-00001")):
        content = file.read_bytes()
        for _ in range(60):
            place = rng.randrange(len(content))
            changed = bytes([content[place] ^ 1 << rng.randrange(8)])
            file.write_bytes(content[:place] + changed + content[place + 1 :])
            try:
                arrays = arrays_of(index, names)
            except HpcgymError:
                refused += 1
            else:
                assert all(np.array_equal(arrays[name], whole[name]) for name in names)
            file.write_bytes(content[:place])
            assert why_not(arrays_of, index, names).startswith(str(tmp_path))
        file.write_bytes(content)
    assert refused > 100


def test_a_folder_has_one_checkpoint(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "log_s0" / "variables", random_network())
    PublishedNetwork(tmp_path)


# --- What a network sees and says -----------------------------------------------------------------


def four_jobs() -> Workload:
    return Workload.from_columns(
        {
            "submit_time": [0, 10, 10, 20],
            "run_time": [50, 400, 100, 5],
            "requested_time": [100, 800, 100, 10],
            "requested_processors": [4, 1, 2, 8],
            "requested_memory": [-1, 64, 16, 16],
            "user_id": [2, 1, 4, -1],
        },
        processors=8,
    )


def test_what_a_network_sees() -> None:
    """By hand: each number is a share of the greatest, below 1; 1 of what is not known."""
    jobs, most, least = four_jobs(), 1 - 1e-5, 1e-5
    features = Sight(jobs).features(np.array([0, 1, 3]), 21_600, np.array([True, False, True]))
    expected = [
        [0.5, 0.25, 0.5, 1, 0.5, 1, 1, most],
        [21_590 / 43_200, most, 0.125, most, 0.25, 1, 1, least],
        [21_580 / 43_200, 0.025, most, 0.25, 1, 1, 1, most],
    ]
    assert features == pytest.approx(np.array(expected), rel=1e-9)
    late = Sight(jobs).features(np.array([2]), 10 + 13 * 3600, np.array([True]))
    assert late[0, 0] == most
    # the greatest values are those of the whole log
    part = Sight(jobs.take(slice(0, 1)), jobs).features(np.array([0]), 0, np.array([True]))
    assert part[0, 1:3] == pytest.approx([0.25, 0.5])


def test_of_many_jobs_the_shortest_and_the_narrowest_are_seen() -> None:
    jobs = load_workload("lublin:jobs=700,processors=64,seed=3")
    sight, rows = Sight(jobs), np.arange(5, 605)
    requested, width = jobs.requested_time, jobs.requested_processors
    short = sorted(rows, key=lambda row: (requested[row], jobs.submit_time[row], row))
    narrow = sorted(rows, key=lambda row: (width[row], jobs.submit_time[row], row))
    expected: list[int] = []
    for shortest, other in zip(short, narrow, strict=True):
        expected += [row for row in (shortest, other) if row not in expected]
    assert rows[sight.visible(rows)].tolist() != sorted(expected[:128])
    for seen, wanted in zip(rows[sight.visible(rows)], expected[:128], strict=True):
        same = [(requested[r], width[r], jobs.submit_time[r]) for r in (seen, wanted)]
        assert same[0] == same[1]
    assert sight.visible(rows[:128]).tolist() == [*range(128)]
    assert len(set(sight.visible(rows[:129]).tolist())) == 128


def test_a_network_is_four_layers(tmp_path: Path) -> None:
    arrays = random_network(4)
    write_checkpoint(tmp_path, arrays)
    seen = np.random.default_rng(1).random((5, 8))
    for job, score in zip(seen.astype(np.float32), PublishedNetwork(tmp_path)(seen), strict=True):
        values = job
        for layer in SHAPES:
            kernel, bias = arrays[f"{layer}/kernel"], arrays[f"{layer}/bias"]
            sums = [values @ kernel[:, k] + bias[k] for k in range(len(bias))]
            values = np.array(
                sums if layer == "pi/dense_3" else [max(sum_of_unit, 0) for sum_of_unit in sums]
            )
        assert score == pytest.approx(values[0], rel=1e-4)
    equal = PublishedNetwork(tmp_path)(np.repeat(seen[:1], 129, axis=0))
    assert len(set(equal.tolist())) == 1


def test_actions_are_drawn_by_their_probabilities() -> None:
    numbers = np.log(np.array([0.5, 0.2, 0.3], np.float32))
    assert chosen(numbers, None) == 0
    rng = np.random.default_rng(0)
    drawn = np.bincount([chosen(numbers, rng) for _ in range(4000)]) / 4000
    assert drawn == pytest.approx([0.5, 0.2, 0.3], abs=0.03)


# --- How it acts ----------------------------------------------------------------------------------

JOBS = "lublin:jobs=400,processors=64,seed=5,load=1.1"


def played(policy: RLScheduler, jobs: Workload, **options: Any) -> Any:
    around = {"start": "empty", "warmup": None, "arrivals": "stop", "horizon": None}
    given = {**policy.env_options, "episodes": "whole", **around, **options}
    env = gymnasium.make(policy.env_id, workload=jobs, disable_env_checker=True, **given)
    observation, info = env.reset(seed=0)
    policy.begin(env)
    over = False
    while not over:
        observation, _, over, _, info = env.step(policy.act(observation, info))
    return env.unwrapped.result()


@pytest.mark.parametrize(
    ("network", "policy"), [({"requested": 1.0}, "sjf"), ({"processors": 1.0}, "smallest")]
)
def test_a_network_that_is_a_rule_makes_its_schedule(
    tmp_path: Path, network: dict[str, float], policy: str
) -> None:
    write_checkpoint(tmp_path, network_of(**network))
    jobs = load_workload(JOBS)
    jobs = jobs.with_columns(requested_time=jobs.run_time)  # longer ones look all alike
    order = {"sjf": "sjf", "smallest": "-processors"}[policy]
    rules = {"backfill": "easy", "backfill_order": "spf"}
    expected = simulate(jobs, policy=order, **rules)
    assert np.array_equal(played(RLScheduler(tmp_path), jobs).start, expected.start)
    alone = played(RLScheduler(tmp_path), jobs, backfill="none")
    assert np.array_equal(alone.start, simulate(jobs, policy=order, backfill="none").start)
    assert not np.array_equal(alone.start, simulate(jobs, "easy").start)


def test_what_fits_is_seen(tmp_path: Path) -> None:
    """A network that takes what fits leaves no job behind without need."""
    arrays = network_of(fits=1.0)
    arrays["pi/dense_3/kernel"][0, 0] = 1
    write_checkpoint(tmp_path, arrays)
    jobs = load_workload(JOBS)
    result = played(RLScheduler(tmp_path), jobs, backfill="none")
    for row in np.flatnonzero(result.wait > 0)[:50]:
        time = result.start[row] - 1
        runs = (result.start <= time) & (result.start + result.run_time > time)
        free = jobs.processors - jobs.requested_processors[runs].sum()
        assert jobs.requested_processors[row] > free


def test_it_takes_none_that_a_quota_keeps_back(tmp_path: Path) -> None:
    """Of those that the mask allows the narrowest, of these the first."""
    write_checkpoint(tmp_path, network_of(processors=1.0))
    policy = RLScheduler(tmp_path)
    env: Any = gymnasium.make(
        policy.env_id, workload="lublin:jobs=400,processors=64,seed=5,load=4", episodes="whole",
        quota="user:jobs=1", start="empty", arrivals="stop", horizon=None, **policy.env_options,
    )  # fmt: skip
    observation, info = env.reset(seed=0)
    policy.begin(env)
    width = env.unwrapped.episode_workload.requested_processors
    over, kept_back = False, 0
    while not over:
        action = policy.act(observation, info)
        allowed = np.flatnonzero(info["action_mask"])
        assert action == min(allowed, key=lambda place: (width[info["window"][place]], place))
        kept_back += allowed[-1] >= len(allowed)
        observation, _, over, _, info = env.step(action)
    assert kept_back > 50


def test_the_same_seed_draws_the_same(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, random_network())
    jobs = load_workload(JOBS)
    policy = RLScheduler(tmp_path, sampled=True, seed=3)
    first, again = played(policy, jobs), played(policy, jobs)
    assert np.array_equal(first.start, again.start)
    assert not np.array_equal(first.start, played(RLScheduler(tmp_path, True, 4), jobs).start)
    assert not np.array_equal(first.start, played(RLScheduler(tmp_path), jobs).start)


# --- Brought to an evaluation ---------------------------------------------------------------------


def test_a_folder_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "models", random_network())
    monkeypatch.chdir(tmp_path)
    assert load("rlscheduler:models").sampled is False
    assert find_policy("rlscheduler-sampled:models").sampled is True
    assert find_policy(f"rlscheduler:{tmp_path}").name == f"rlscheduler:{tmp_path}"


def test_it_stands_in_a_leaderboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "models", network_of(processors=1.0))
    monkeypatch.chdir(tmp_path)
    around: dict[str, Any] = {"start": "empty", "arrivals": "stop", "horizon": None}
    workload = "lublin:jobs=800,processors=64,seed=5,load=1.1"
    board = evaluate(
        ["rlscheduler:models", "-processors"],
        workload,
        n=3,
        jobs=100,
        budget=0,
        resamples=50,
        **around,
    ).table
    assert board.loc["rlscheduler:models", "mean_bsld"] == board.loc["-processors", "mean_bsld"]
    assert "easy" in board.index
    command = f"evaluate rlscheduler:models --workload {workload} --number 1 --budget 0"
    said = CliRunner().invoke(app, command.split())
    assert said.exit_code == 0
    assert "rlscheduler:models" in said.output


test_mistakes = mistakes_of(globals(), plain_envs)
