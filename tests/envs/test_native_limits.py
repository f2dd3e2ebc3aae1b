"""Environments on whole nodes, under limits or not, on the native engine and on the kernels."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    CHASSIS,
    LIMITED,
    LOADED,
    NAMES,
    SINGLE,
    SLOW,
    THRESHOLDS,
    VECTOR,
    assert_same,
    go_on,
    limits_that_grow,
    play,
    random_acts,
    visible_acts,
)
from limit_strategies import Case
from test_native_environments import INTERVALS, is_over, on_both
from test_own_nodes import ASLEEP, cases
from test_own_nodes import environment as on_own_nodes
from test_steered_schedules import INTERVALS as SPANS
from test_steered_schedules import SETS, action_of, begin, steered

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")

SEEDS = st.integers(0, 2**16)
REWARDS = st.sampled_from(["bsld", "wait", "energy", "log_bsld", {"bsld": 1, "energy": 0.5}])
FEATURES = st.sampled_from([(), (), ("wait",), ("wait", "expansion", "unicef", "area")])


def schedule_of(env: Any) -> list[Any]:
    """Return what is known of a schedule so far."""
    result = env.result()
    first, node, units = result.allocation
    begun = np.repeat(result.start >= 0, np.diff(first))
    states = result.node_states
    return [
        *(result.start, result.end, result.predicted_run_time, result.reserved_start),
        *(result.backfilled, result.frequency, first, node[begun], units, result.limits),
        *([] if states is None else vars(states).values()),
        *(env.time, env.free, env.queued(), env.running()),
    ]


def played(env: Any, acts: Any, decisions: int) -> list[Any]:
    """Return what an episode shows, also after it has been gone back to a decision."""
    seen: list[Any] = play(env, acts, most=decisions)
    saved = env.snapshot()
    for first in (decisions, 0):
        seen += [*schedule_of(env), env.restore(saved)]
        if not is_over(env):
            seen += go_on(env, acts, *seen[-1], first=first)
    return [*seen, *schedule_of(env)]


@settings(SLOW, max_examples=150)
@given(
    st.data(), st.booleans().flatmap(lambda learns: steered(learns, any_cores=True)), SETS, SEEDS
)
def test_an_episode_under_limits_is_the_same(
    data: st.DataObject, case: Case, controls: tuple[str, ...], seed: int
) -> None:
    features = data.draw(FEATURES)
    options = {
        "controls": controls,
        "policy_features": features,
        "interval": data.draw(SPANS),
        "threshold": data.draw(THRESHOLDS),
        "reward": data.draw(REWARDS),
    }
    decisions = data.draw(st.integers(0, 12))
    numbers = (*controls, *features)

    def show() -> list[Any]:
        env = begin(case, **options)
        return played(env, lambda number, _, __: action_of(numbers, seed, number), decisions)

    with pytest.MonkeyPatch.context() as patched:
        on_both(patched, show)


@settings(SLOW, max_examples=150)
@given(
    st.data(),
    st.booleans().flatmap(lambda learns: cases(learns, any_cores=True)),
    st.sampled_from(NAMES),
    SEEDS,
)
def test_an_episode_on_own_nodes_is_the_same(
    data: st.DataObject, case: Case, name: str, seed: int
) -> None:
    options = {"window": data.draw(st.sampled_from([1, 3, 6])), "reward": data.draw(REWARDS)}
    if name == "JobSelection":
        options["reservation"] = data.draw(st.sampled_from(["revised", "kept"]))
        options["skip_forced"] = data.draw(st.booleans())
    else:
        options["threshold"] = data.draw(THRESHOLDS)
    if name == "MixedPolicy":
        options["interval"] = data.draw(INTERVALS)
    decisions = data.draw(st.integers(0, 12))

    def show() -> list[Any]:
        env = on_own_nodes(name, case, **options)
        return played(env, visible_acts(env, seed), decisions)

    with pytest.MonkeyPatch.context() as patched:
        on_both(patched, show)


#: Machines and limits, of many at once.
UNDER_LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"cluster": CHASSIS, "limits": limits_that_grow, "interval": "2h"},
    {"cluster": CHASSIS, "power": "mix", "estimate": "ave2", "reward": "log_bsld"},
    {"cluster": CHASSIS, "policy_features": ("wait", "area"), "interval": 5, "reward": "energy"},
)
ASLEEP_OR_IN_ROWS: tuple[dict[str, Any], ...] = (
    {"cluster": ASLEEP},
    {"cluster": ASLEEP, "allocation": "contiguous", "estimate": "e-loss", "reward": "energy"},
)
EACH = [(name, more) for name in LIMITED for more in UNDER_LIMITS]
EACH += [(name, more) for name in NAMES for more in ASLEEP_OR_IN_ROWS]


def named(case: Any) -> str:
    return case if isinstance(case, str) else "-".join(map(str, case)) or "plain"


@pytest.mark.parametrize(("name", "more"), EACH, ids=named)
def test_many_at_once_are_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, more: dict[str, Any]
) -> None:
    def show() -> list[Any]:
        env = VECTOR[name](5, LOADED, jobs=25, window=8, threads=2, max_episode_steps=60, **more)
        seen = [env.reset(seed=3)]
        for k in range(150):
            env.action_space.seed(k)
            seen.append(env.step(env.action_space.sample()))
            if k == 60:
                saved = env.snapshot()
            if k == 90:
                seen.append(env.restore(saved))
        return seen

    on_both(monkeypatch, show)


@pytest.mark.parametrize(("name", "more"), EACH, ids=named)
def test_it_is_the_native_engine_that_serves(name: str, more: dict[str, Any]) -> None:
    env = SINGLE[name](LOADED, jobs=20, **more)
    assert env.simulations.native is not None
    acts = random_acts(env.action_space, 0)
    assert play(env, acts, seed=1)[-1].terminated


def test_limits_of_no_sense_are_refused() -> None:
    pool, limited = (
        SINGLE[name](LOADED, jobs=20).simulations for name in ("MixedPolicy", "PowerCap")
    )
    none = np.zeros(0, np.int64)
    cap, budget = np.array([5, 9, 5, 10, 0, 0]), np.array([5, 9, 10, 10, 1, 0, 0, 1])
    told = {"caps": cap, "budgets": budget}
    limited.native._stepper.limit(0, told)
    with pytest.raises(ValueError, match="a machine under none"):
        pool.native._stepper.limit(0, told)
    with pytest.raises(IndexError, match="no such environment"):
        limited.native._stepper.limit(1, told)
    for name, wrong in (("caps", cap[::-1]), ("budgets", budget[::-1]), ("caps", cap[1:])):
        with pytest.raises(ValueError, match=name):
            limited.native._stepper.limit(0, {**told, name: np.ascontiguousarray(wrong)})
    limited.native._stepper.limit(0, {"caps": none, "budgets": none})


def test_a_pickled_snapshot_has_its_limits() -> None:
    """Of an episode that has others than what it is restored into."""
    rules = {"cluster": CHASSIS, "jobs": 25, "limits": limits_that_grow}
    env, other = (SINGLE["PowerCap"](LOADED, **rules) for _ in range(2))
    acts, seen = random_acts(env.action_space, 3), set()
    for seed in range(8):
        play(env, acts, most=6, seed=seed)
        saved = env.snapshot()
        copy = pickle.loads(pickle.dumps(saved))
        shown = [(each, each.restore(one)) for each, one in ((env, saved), (other, copy))]
        assert_same(*([*go_on(each, acts, *found), *schedule_of(each)] for each, found in shown))
        seen.add(len(env.result().limits))
    assert len(seen) > 1
