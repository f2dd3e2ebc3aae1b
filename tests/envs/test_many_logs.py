"""Vector environments of several logs: each environment is as in one of its log alone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import plain_envs
import pytest
from driving import (
    AROUND,
    BUSY,
    CASES,
    VECTOR,
    assert_same,
    given,
    mode_of,
)
from gymnasium.vector import AutoresetMode
from mistakes import mistakes_of

from hpcgym import HpcgymError, Workload
from hpcgym.workload import load_workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")

N = 5


def logs_of(arguments: dict[str, Any]) -> list[Workload]:
    """The jobs of a place, and others: with the very same episodes, or on another machine."""
    jobs = load_workload(arguments["workload"])
    if jobs.initial is not None:
        return [jobs, jobs.take(slice(0, len(jobs) - 4), name="fewer")]
    shorter = jobs.with_columns(run_time=jobs.run_time // 2 + 1)
    later = jobs.take(slice(len(jobs) // 3, len(jobs)), name="later")
    if arguments.get("cluster") is not None or jobs.units is not None:
        return [jobs, later, shorter]
    wide = np.minimum(2 * later.requested_processors, later.processors)
    wider = later.with_columns(requested_processors=wide)
    return [jobs, wider.take(slice(None), processors=96, name="wider"), shorter]


def row(infos: Any, e: int) -> Any:
    """Return what is told of one environment: of infos what is there by their masks."""
    if not isinstance(infos, dict):
        return infos[e]
    known = [key for key in infos if not key.startswith("_")]
    return {key: row(infos[key], e) for key in known if infos.get(f"_{key}", np.ones(N))[e]}


def assert_alike(mixed: Any, alone: list[Any], *, first: int, steps: int) -> int:
    """Compare steps and schedules; return how many episodes have ended."""
    ended = 0
    for k in range(first, first + steps):
        mixed.action_space.seed(k)
        actions = mixed.action_space.sample()
        step, told_alone = mixed.step(actions), [env.step(actions) for env in alone]
        for e in range(N):
            assert_same([row(part, e) for part in step],
                        [row(part, e) for part in told_alone[e % len(alone)]])  # fmt: skip
        done = step[2] | step[3]
        for e in np.flatnonzero(done).tolist():
            other = alone[e % len(alone)]
            assert mixed.result(e).start.tolist() == other.result(e).start.tolist()
            assert mixed.result(e).workload.name == other.result(e).workload.name
            assert np.array_equal(mixed.weekly(e), other.weekly(e))
        ended += int(done.sum())
        if mixed.autoreset_mode == AutoresetMode.DISABLED:
            for env, step_of_env in zip((mixed, *alone), (step, *told_alone), strict=True):
                if (over := step_of_env[2] | step_of_env[3]).any():
                    env.reset(options={"reset_mask": over})
    return ended


#: Where what depends on a log differs: all other places are tried by slow tests.
QUICK = (
    *("pool", "learned", "surrounded", "to a horizon", "users", "switched off", "nodes", "powers"),
    *("quotas", "requeued", "extract", "limits", "limits and users", "pairs", "pairs and files"),
)


@pytest.mark.parametrize(
    ("name", "place"),
    [pytest.param(*case, marks=[] if case[1] in QUICK else pytest.mark.slow) for case in CASES],
)
def test_each_is_as_in_one_of_its_log_alone(name: str, place: str) -> None:
    """Step by step, episode after episode, and from a snapshot in a copy."""
    relative = {"reward": "log_bsld/easy"} if place in AROUND else {}
    arguments, mode = given(name, place, **relative), mode_of(name, place, 1)
    logs = logs_of(arguments)
    mixed, *alone = (
        VECTOR[name](N, autoreset_mode=mode, **{**arguments, "workload": jobs})
        for jobs in (logs, *logs)
    )
    seen, *others = (env.reset(seed=7) for env in (mixed, *alone))
    for e in range(N):
        assert_same(
            [row(part, e) for part in seen], [row(part, e) for part in others[e % len(logs)]]
        )
    assert assert_alike(mixed, alone, first=0, steps=60) > 0 or name == "Inspector"
    saved = [pickle.dumps(env.snapshot()) for env in (mixed, *alone)]
    mixed.reset(seed=1)
    for env, state in zip((mixed, *alone), saved, strict=True):
        env.restore(pickle.loads(state))
    assert_alike(pickle.loads(pickle.dumps(mixed)), alone, first=60, steps=20)


def test_hidden_futures_are_of_their_logs() -> None:
    logs = logs_of({"workload": BUSY})
    mixed, *alone = (
        VECTOR["JobSelection"](N, workload=jobs, jobs=30, window=6, estimate="ave2")
        for jobs in (logs, *logs)
    )
    for env in (mixed, *alone):
        env.reset(seed=2)
        for _ in range(9):
            env.step(np.zeros(N, np.int64))
        env.restore(env.snapshot(hide=True))
    assert_alike(mixed, alone, first=0, steps=5)


def test_options_are_of_each_log() -> None:
    logs = logs_of({"workload": BUSY})
    env = VECTOR["QueueOrdering"](4, workload=logs, jobs=12, window=6)
    env.reset(seed=1)
    before = pickle.dumps(env.snapshot())
    env.reset(options={"start": 20, "jobs": 12})
    for e in range(4):
        expected = logs[e % 3].take(slice(20, 32))
        assert env.result(e).workload.columns["run_time"].tolist() == expected.run_time.tolist()
    ahead = env.step(np.zeros((4, 6)))
    env.restore(pickle.loads(before))
    first = env.step(np.zeros((4, 6)))
    env.restore(pickle.loads(before))
    number = (len(logs[1]) - 1) // 12  # a window that the shortest has not
    with pytest.raises(HpcgymError, match=f"window {number + 1:04d}"):
        env.reset(options={"slice": f"window {number + 1:04d}"})
    assert_same(env.step(np.zeros((4, 6))), first)
    assert not np.array_equal(ahead[0]["jobs"], first[0]["jobs"])
    env.reset(options={"slice": f"window {number + 1:04d}",
                       "reset_mask": np.array([True, False, True, True])})  # fmt: skip


def test_references_are_of_each_log() -> None:
    """Also for slices that are the same rows of two logs."""
    arguments = given("JobSelection", "surrounded", reward="bsld/easy", jobs=100, horizon="2d")
    logs = logs_of(arguments)
    mixed, *alone = (
        VECTOR["JobSelection"](N, **{**arguments, "workload": jobs}) for jobs in (logs, *logs)
    )
    for env in (mixed, *alone):
        env.reset(options={"slice": "window 0000"})
    scales = [env.simulations.batch.scales[e % len(alone)].item() for e, env in enumerate(alone)]
    assert mixed.simulations.batch.scales[:3, 0].tolist() == scales
    assert len({*scales}) == 3
    assert_alike(mixed, alone, first=0, steps=1)


def test_weights_are_in_the_units_of_each_log() -> None:
    logs = logs_of({"workload": BUSY})
    mixed, *alone = (
        VECTOR["MixedPolicy"](N, workload=jobs, jobs=12, window=6, scale="spread")
        for jobs in (logs, *logs)
    )
    assert [env_alone.units.tolist() for env_alone in alone] == mixed.units[:3].tolist()
    assert len({*map(tuple, mixed.units.tolist())}) == 2  # shorter run times are not among them
    for env in (mixed, *alone):
        env.reset(seed=0)
    assert_alike(mixed, alone, first=0, steps=40)


def three(first: int) -> Any:
    """Environments of three logs, which begin with this one of them."""
    logs = logs_of({"workload": BUSY})
    env = VECTOR["JobSelection"](3, workload=[*logs[first:], *logs[:first]], jobs=12)
    env.reset(seed=1)
    return env


test_mistakes = mistakes_of(globals(), plain_envs)
