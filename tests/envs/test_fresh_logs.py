"""Logs and loads that are drawn at each reset, and specs that hold the jobs of a log."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import plain_envs
import pytest
from driving import (
    BUSY,
    CHASSIS,
    EVERY,
    MODES,
    SINGLE,
    assert_alike,
    assert_same,
    drive,
    from_the_middle,
    play,
    visible_acts,
)
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from mistakes import mistakes_of

import hpcgym
from hpcgym.envs.ids import id_of
from hpcgym.workload import Workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")


def fresh(rng: np.random.Generator) -> Workload:
    processors = int(rng.choice([32, 64]))
    seed = int(rng.integers(2**31))
    return hpcgym.load_workload(f"lublin:jobs=60,processors={processors},seed={seed},load=2")


def named(rng: np.random.Generator) -> str:
    return f"codes:jobs=40,processes=96,processors=768,seed={rng.integers(2**31)}"


def arguments_of(name: str) -> dict[str, Any]:
    if name == "CoSchedule":
        return {"workload": named, "jobs": 12, "window": 6}
    more = {"cluster": CHASSIS} if name in ("PowerCap", "EnergyBudget") else {}
    return {"workload": fresh, "jobs": 12, **more}


@pytest.mark.parametrize("name", EVERY)
def test_each_reset_has_a_log_of_its_own(name: str) -> None:
    """The same seed, the same log, episode, and steps, whatever was played before."""
    env, other = (SINGLE[name](**arguments_of(name)) for _ in range(2))
    logs, seen = [], []
    for seed in (1, None, 2, 1, None):
        acts = visible_acts(env, 3)
        seen.append(play(env, acts, seed=seed))
        logs.append(env.options.workload.name)
    assert logs[:2] == logs[3:]
    assert len(set(logs)) == 3
    assert_same(seen[:2], seen[3:])
    play(other, visible_acts(other, 0), seed=9)
    assert_same(play(other, visible_acts(other, 3), seed=1), seen[0])


@pytest.mark.parametrize("name", EVERY)
def test_gymnasium_takes_it(name: str) -> None:
    env = plain_envs.make(id_of(name), **arguments_of(name))
    check_env(env.unwrapped, skip_render_check=True)
    envs = gymnasium.make_vec(
        id_of(name), num_envs=3, vectorization_mode="sync",
        **plain_envs.plain(name, arguments_of(name)),
    )  # fmt: skip
    envs.reset(seed=4)
    names = [env_of_vector.unwrapped.options.workload.name for env_of_vector in envs.envs]
    assert len(set(names)) == 3
    env.reset(seed=6)
    assert env.unwrapped.options.workload.name == names[2]


# --- Weights and loads ----------------------------------------------------------------------------

OTHER = hpcgym.load_workload("lublin:jobs=90,processors=48,seed=5,load=1.5")


def drawn(name: str, **more: Any) -> dict[str, Any]:
    """Arguments with two logs, or three, and loads."""
    given = arguments_of(name)
    others = [(named(np.random.default_rng(0)), 1)] if name == "CoSchedule" else [(OTHER, 2)]
    more = {**({"part": "all"} if name == "Submit" else {}), **more}
    return {**given, "workload": [(given["workload"], 1), *others], "stretch": (0.8, 1.25), **more}


def gaps(jobs: Workload) -> np.ndarray:
    return jobs.submit_time - jobs.submit_time[0]


def test_logs_are_drawn_by_their_weights_and_loads_between_bounds() -> None:
    logs = [(BUSY, 1), (OTHER, 3)]
    env = SINGLE["JobSelection"](logs, stretch=(0.5, 2.0), jobs=12)
    env.reset(seed=0)
    factors: dict[str, list[float]] = {BUSY.name: [], OTHER.name: []}
    known = {BUSY.name: BUSY, OTHER.name: OTHER}
    for _ in range(100):
        env.reset()
        jobs = env.options.workload
        factor = gaps(jobs)[-1] / gaps(known[jobs.name])[-1]
        assert np.abs(gaps(jobs) - gaps(known[jobs.name]) * factor).max() < 2
        for column in ("run_time", "requested_time", "requested_processors", "user_id"):
            assert np.array_equal(jobs.columns[column], known[jobs.name].columns[column])
        factors[jobs.name].append(factor)
    assert 62 <= len(factors[OTHER.name]) <= 88
    both = np.log([*factors[BUSY.name], *factors[OTHER.name]])
    assert both.min() >= np.log(0.5) - 1e-3
    assert both.max() <= np.log(2.0) + 1e-3
    assert abs(both.mean()) < 0.15
    assert both.std() == pytest.approx(np.log(4) / np.sqrt(12), rel=0.15)


@pytest.mark.parametrize("name", EVERY)
def test_a_load_of_one_is_the_log_itself(name: str) -> None:
    log = arguments_of(name)["workload"](np.random.default_rng(4))
    given = {**arguments_of(name), "workload": log}
    env, same = SINGLE[name](**given), SINGLE[name](**given, stretch=(1, 1))
    env.reset(seed=3), same.reset(seed=3)
    same.np_random.bit_generator.state = env.np_random.bit_generator.state
    same._logs = env._logs  # whose draws do not take a number
    acts = visible_acts(env, 1)
    same._take(same._logs.draw(same.np_random))
    assert_same(play(env, acts), play(same, acts))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=[] if (i + k) % 3 == 0 else pytest.mark.slow)
        for i, name in enumerate(EVERY)
        for k, mode in enumerate(MODES)
    ],
)
def test_many_draw_as_single_ones_do(name: str, mode: Any) -> None:
    """The logs, loads and steps of Gymnasium's loop over single ones, episode after episode."""
    given = plain_envs.plain(name, drawn(name))
    native = gymnasium.make_vec(
        id_of(name), 3, vectorization_mode="vector_entry_point", autoreset_mode=mode, **given
    )
    loop = gymnasium.make_vec(
        id_of(name), 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **given
    )
    ended = assert_alike(drive(native, 7, 40), drive(loop, 7, 40))
    assert ended > 1 or name == "Inspector"
    slices = native.unwrapped.episodes.start is not None
    asked = {"slice": "window 0001"} if slices else {"start": 3, "jobs": 12}
    assert_same(native.reset(seed=2, options=asked), loop.reset(seed=2, options=asked))
    assert_alike(drive(native, None, 15), drive(loop, None, 15))
    assert_same(native.reset(options=asked), loop.reset(options=asked))
    assert_same(native.reset(), loop.reset())
    worlds = native.unwrapped.simulations
    for e, env in enumerate(loop.envs):
        jobs = worlds.world(e).episodes.workload
        assert np.array_equal(jobs.submit_time, env.unwrapped.episodes.workload.submit_time)


@pytest.mark.parametrize("around", [{}, {"start": "warm", "arrivals": "continue", "horizon": "2d"}])
@pytest.mark.parametrize("name", ["MixedPolicy", "JobSelection"])
def test_snapshots_are_of_their_logs(name: str, around: dict[str, Any]) -> None:
    """They go back to logs that are played no more, in this environment and in a copy of it."""
    more = {"jobs": 8, "reward": "log_bsld/easy", "paid": "end", **around}
    more |= {"scale": "spread", "interval": "pass"} if name == "MixedPolicy" else {}
    given = drawn(name, workload=[(BUSY, 1), (OTHER, 1)], **more)
    envs = plain_envs.make_vec(id_of(name), 3, **given).unwrapped
    envs.reset(seed=1)
    saved = pickle.dumps(envs.snapshot())
    steps = drive(envs, None, 80)
    first = [world.definition.options.workload for world in envs.simulations._present]
    envs.reset()
    for env in (envs, pickle.loads(pickle.dumps(envs))):
        env.restore(pickle.loads(saved))
        assert assert_alike(drive(env, None, 80), steps) > 2
        again = [world.definition.options.workload for world in env.simulations._present]
        assert all(
            np.array_equal(a.submit_time, b.submit_time) for a, b in zip(first, again, strict=True)
        )
    other = plain_envs.make_vec(id_of(name), 3, **{**given, "backfill": "none"}).unwrapped
    other.reset(seed=1)
    with pytest.raises(hpcgym.HpcgymError, match="other jobs or arguments"):
        other.restore(pickle.loads(saved))


def test_without_loads_logs_are_read_once() -> None:
    logs = [(BUSY, 1), (OTHER, 1)]
    envs = plain_envs.make_vec("hpcgym/QueueOrdering-v2", 4, workload=logs, jobs=12).unwrapped
    envs.reset(seed=0)
    drive(envs, None, 300)
    worlds = {id(envs.simulations.world(e)) for e in range(4)} - set(map(id, envs._worlds.values()))
    assert not worlds
    assert len(envs._worlds) == 2


def test_machines_may_differ() -> None:
    env = SINGLE["JobSelection"](fresh, jobs=12)
    sizes = set()
    for seed in range(8):
        env.reset(seed=seed)
        result = env.result()
        sizes.add(result.cluster.processors)
        assert env.episodes.workload is env.options.workload
    assert sizes == {32, 64}


def later(workload: Any) -> Any:
    """An environment whose next episode is of what this function returns."""
    turns = iter([BUSY, BUSY])
    env = SINGLE["JobSelection"](lambda rng: next(turns, None) or workload(rng), jobs=12)
    env.reset(seed=0)
    return env


def test_without_a_log_there_is_no_episode() -> None:
    env = later(lambda rng: None)
    for call in (env.reset, partial(env.step, 0)):
        with pytest.raises((hpcgym.HpcgymError, gymnasium.error.ResetNeeded)):
            call()


# --- Specs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering", "MixedPolicy", "Backfill"])
def test_a_spec_with_jobs_goes_through_json(name: str) -> None:
    """It makes the same environment, also in a vector, and of several logs."""
    made = plain_envs.make(id_of(name), workload=BUSY, jobs=12, max_episode_steps=5)
    assert isinstance(made.spec, EnvSpec)
    spec = EnvSpec.from_json(made.spec.to_json())
    assert set(spec.kwargs["workload"]["columns"]) < set(BUSY.columns)
    again = gymnasium.make(spec)
    assert again.spec is not None
    assert again.spec.max_episode_steps == 5
    assert json.loads(again.spec.to_json()) == json.loads(made.spec.to_json())
    worlds = [env.unwrapped.simulations.world(0) for env in (again, made)]
    assert worlds[0].fingerprint == worlds[1].fingerprint
    acts = visible_acts(made, 1)
    assert_same(play(again, acts, seed=3), play(made, acts, seed=3))
    logs = [BUSY, BUSY.take(slice(50, 200))]
    many = plain_envs.make_vec(id_of(name), 2, workload=logs, jobs=12)
    spec_of_both = EnvSpec.from_json(many.spec.to_json())
    assert [len(log["columns"]["submit_time"]) for log in spec_of_both.kwargs["workload"]] == [
        300,
        150,
    ]


def test_a_spec_is_what_gymnasium_reads() -> None:
    made = gymnasium.make("hpcgym/JobSelection-v2", workload="lublin:jobs=900,processors=32")
    spec = made.unwrapped.spec
    read = EnvSpec.from_json(spec.to_json())
    assert spec == read
    assert read == spec
    assert spec != EnvSpec.from_json(spec.to_json().replace("jobs=900", "jobs=901"))


test_mistakes = mistakes_of(globals(), from_the_middle)
