"""Many environments in one: the same trajectories as Gymnasium's own loop over single ones."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import BUSY, CHASSIS, LIMITED, LOADED, NAMES, VECTOR, assert_same, limits_that_grow
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

OPTIONS: dict[str, dict[str, Any]] = {
    "JobSelection": {"reservation": "kept", "observation": "flat", "backfill_order": "sjbf"},
    "QueueOrdering": {"estimate": "ave2", "correction": "incremental", "reward": "energy"},
    "MixedPolicy": {"interval": "2h", "passes": "per-event", "backfill_order": "lexp"},
}
STEERED: dict[str, dict[str, Any]] = {
    "plain": {"limits": limits_that_grow, "controls": ("power", "nodes")},
    "options": {"limits": limits_that_grow, "interval": 3, "policy_features": ("area", "wait"),
                "power": "energy-bud", "reward": "energy", "observation": "flat"},
    "usual": {"cluster": None, "interval": "2h"},
}  # fmt: skip
PREDICTED: dict[str, Any] = {
    "estimate": "e-loss",
    "policy_estimate": "regression:over=absolute,under=squared,eta=1,l2=0",
    "correction": "predicted-again",
    "backfill_order": "lexp",
    "features": ["wait", "predicted", "policy_time"],
}
MODES = list(AutoresetMode)
N = 3


def make(name: str, mode: AutoresetMode, way: str, **options: Any) -> VectorEnv:
    arguments = {"workload": BUSY, "jobs": 12, "window": 6, **options}
    if name == "MixedPolicy":
        arguments = {"interval": 4, **arguments}
    if name in LIMITED:
        arguments = {"cluster": CHASSIS, **arguments, "workload": LOADED}
    if way == "sync":
        arguments["vector_kwargs"] = {"autoreset_mode": mode}
    else:
        arguments["autoreset_mode"] = mode
    return gymnasium.make_vec(f"hpcgym/{name}-v0", N, vectorization_mode=way, **arguments)


def drive(env: VectorEnv, seed: Any, steps: int, first: int = 0) -> list[Any]:
    """Return all that so many steps of random actions show; where no seed is given, go on."""
    seen: list[Any] = []
    if seed is not None:
        seen.append(env.reset(seed=seed))
    mode = env.metadata["autoreset_mode"]
    for k in range(first, first + steps):
        env.action_space.seed(k)
        seen.append(env.step(env.action_space.sample()))
        done = seen[-1][2] | seen[-1][3]
        if mode == AutoresetMode.DISABLED and done.any():
            seen.append(env.reset(options={"reset_mask": done.copy()}))
    return seen


def assert_same_info(
    native: dict[str, Any], loop: dict[str, Any], done: Any, joules: float
) -> None:
    """Compare what both say; the loop's arrays hold anything where its masks are False."""
    assert "time" in native
    assert ("action_mask" in native) == ("action_mask" in loop)
    assert ("metrics" in native) == ("metrics" in loop or "metrics" in loop.get("final_info", {}))
    for key in ("time", "action_mask", "window"):
        if key in native:
            told = loop[f"_{key}"]  # a reset of some tells of these alone
            np.testing.assert_array_equal(native[key][told], loop[key][told], err_msg=key)
    if "final_obs" in native:
        assert_same(native["_final_obs"], loop["_final_obs"])
        for e in np.flatnonzero(done):
            assert_same(native["final_obs"][e], loop["final_obs"][e])
    if "metrics" in native:
        of_loop = loop["metrics"] if "metrics" in loop else loop["final_info"]["metrics"]
        for key, values in native["metrics"].items():
            if not key.startswith("_"):
                rtol = joules if key == "energy_j" else 1e-12
                np.testing.assert_allclose(values[done], of_loop[key][done], rtol=rtol)
                assert native["metrics"][f"_{key}"].tolist() == done.tolist()
    if "final_info" in native:
        for key, values in native["final_info"]["metrics"].items():
            if not key.startswith("_"):
                of_loop = loop["final_info"]["metrics"][key]
                rtol = joules if key == "energy_j" else 1e-12
                np.testing.assert_allclose(values[done], of_loop[done], rtol=rtol)


def assert_alike(native: list[Any], loop: list[Any], joules: float = 1e-12) -> int:
    """Compare two trajectories; return how many episodes ended in them."""
    ended = 0
    assert len(native) == len(loop)
    for one, other in zip(native, loop, strict=True):
        assert_same(one[0], other[0])
        done = np.zeros(N, bool)
        if len(one) == 5:
            assert_same(one[1:4], other[1:4])
            done = one[2] | one[3]
            ended += int(done.sum())
        assert_same_info(one[-1], other[-1], done, joules)
    return ended


@pytest.mark.parametrize("more", ["plain", "options", "predicted"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", NAMES)
def test_native_and_loop_are_alike(name: str, mode: AutoresetMode, more: str) -> None:
    options = {"plain": {}, "options": OPTIONS[name], "predicted": PREDICTED}[more]
    native, loop = (make(name, mode, way, **options) for way in ("vector_entry_point", "sync"))
    assert native.single_observation_space == loop.single_observation_space
    assert native.observation_space == loop.observation_space
    assert native.action_space == loop.action_space
    assert native.metadata["autoreset_mode"] == mode
    ended = assert_alike(drive(native, 7, 60), drive(loop, 7, 60))
    assert ended > 3 * N
    assert_alike(drive(native, [3, 1, 4], 10), drive(loop, [3, 1, 4], 10))


@pytest.mark.parametrize("more", list(STEERED))
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", LIMITED)
def test_native_and_loop_are_alike_under_limits(name: str, mode: AutoresetMode, more: str) -> None:
    """With kills, and episodes that have other numbers of limits."""
    native, loop = (
        make(name, mode, way, **STEERED[more]) for way in ("vector_entry_point", "sync")
    )
    assert native.single_observation_space == loop.single_observation_space
    # Taurus draws no whole milliwatts while nodes are switched
    joules = 1e-6 if more == "usual" else 1e-12
    ended = assert_alike(drive(native, 7, 60), drive(loop, 7, 60), joules)
    assert ended > 3 * N


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_a_second_reset_draws_the_next_episode(mode: AutoresetMode) -> None:
    native, loop = (make("JobSelection", mode, way) for way in ("vector_entry_point", "sync"))
    given = {"start": 40, "jobs": 12}
    for seed, options in ((5, None), (None, None), (None, given), (None, None)):
        one, other = (env.reset(seed=seed, options=options) for env in (native, loop))
        assert_same(one[0], other[0])
        assert one[1]["time"].tolist() == other[1]["time"].tolist()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_steps_cuts_alike(name: str, mode: AutoresetMode) -> None:
    native, loop = (
        make(name, mode, way, max_episode_steps=2, **({"interval": 2} if name == NAMES[2] else {}))
        for way in ("vector_entry_point", "sync")
    )
    one, other = drive(native, 0, 12), drive(loop, 0, 12)
    assert len(one) == len(other)
    truncations = 0
    for a, b in zip(one, other, strict=True):
        assert_same(a[0], b[0])
        told = b[-1]["_time"]
        assert a[-1]["time"][told].tolist() == b[-1]["time"][told].tolist()
        if len(a) == 5:
            assert_same(a[1:4], b[1:4])
            truncations += int(a[3].sum())
    assert truncations > 3


@pytest.mark.parametrize("name", NAMES)
def test_observations_may_be_views(name: str) -> None:
    for form in ("dict", "flat"):
        options = {"observation": form}
        views = make(name, AutoresetMode.NEXT_STEP, "vector_entry_point", copy=False, **options)
        copies = make(name, AutoresetMode.NEXT_STEP, "vector_entry_point", **options)
        assert_same(views.reset(seed=1)[0], copies.reset(seed=1)[0])
        for k in range(15):
            copies.action_space.seed(k)
            action = copies.action_space.sample()
            assert_same(views.step(action)[0], copies.step(action)[0])
        assert_same(drive(copies, 1, 15), drive(copies, 1, 15))


@pytest.mark.parametrize("name", NAMES)
def test_statistics_of_episodes(name: str) -> None:
    env = RecordEpisodeStatistics(make(name, AutoresetMode.NEXT_STEP, "vector_entry_point"))
    returns, values = [], []
    env.reset(seed=0)
    for k in range(60):
        env.action_space.seed(k)
        _, _, ended, _, info = env.step(env.action_space.sample())
        if ended.any():
            returns += info["episode"]["r"][ended].tolist()
            values += (-info["metrics"]["mean_bsld"][ended]).tolist()
    assert len(returns) > N
    assert returns == pytest.approx(values, rel=1e-12)


def test_action_masks() -> None:
    env = make("JobSelection", AutoresetMode.NEXT_STEP, "vector_entry_point")
    observation, info = env.reset(seed=0)
    for _ in range(20):
        masks = observation["jobs"].any(axis=2)  # no visible job has features that are all 0
        assert env.unwrapped.action_masks().tolist() == masks.tolist()
        assert info["action_mask"].tolist() == observation["mask"].tolist() == masks.tolist()
        observation, *_, info = env.step(np.zeros(N, np.int64))


@pytest.mark.parametrize("name", [*NAMES, "PowerCap"])
def test_one_environment_and_many(name: str) -> None:
    """An environment is not changed by those beside it, nor by which thread simulates it."""
    arguments: dict[str, Any] = {"workload": BUSY, "jobs": 40, "window": 6}
    if name == "MixedPolicy":
        arguments["interval"] = 2
    if name in LIMITED:
        arguments |= {"workload": LOADED, "cluster": CHASSIS, "limits": limits_that_grow}
    many = VECTOR[name](40, **arguments)
    many.reset(seed=100)
    alone = [VECTOR[name](1, **arguments) for _ in range(2)]
    numbers = (0, 37)
    for e, env in zip(numbers, alone, strict=True):
        env.reset(seed=100 + e)
    for k in range(60):
        many.action_space.seed(k)
        actions = many.action_space.sample()
        observations, rewards, ended, _, info = many.step(actions)
        for e, env in zip(numbers, alone, strict=True):
            single = env.step(actions[e : e + 1])
            for key, values in observations.items():
                assert values[e].tolist() == single[0][key][0].tolist()
            assert (rewards[e], ended[e]) == (single[1][0], single[2][0])
            assert info["time"][e] == single[4]["time"][0]
