"""Environments on the native engine and on the kernels that it replaces show the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    NAMES,
    RULES,
    SINGLE,
    SLOW,
    THRESHOLDS,
    VECTOR,
    assert_same,
    go_on,
    play,
    visible_acts,
    whole,
)
from node_driving import EURORA, places, units_on_nodes
from node_driving import RULES as NODE_RULES
from strategies import clusters, workloads
from test_node_energy import MIXED, SMALL

from hpcgym import Cluster
from hpcgym.workload import Workload, load_workload

#: What episodes are, and how rewards are made of them.
EPISODES = st.fixed_dictionaries(
    {
        "paid": st.sampled_from(["start", "start", "end", "waiting"]),
        "reward": st.sampled_from(["bsld", "wait", "energy", "log_bsld", {"bsld": 1, "wait": 0.5}]),
        "horizon": st.sampled_from([None, None, 50, 900, "3h"]),
        "window": st.sampled_from([1, 3, 6, "split:5"]),
    }
)
#: Run times that are learned.
LEARNED = st.fixed_dictionaries(
    {
        "estimate": st.sampled_from(
            ["requested", "ave2", "ave3", "user-ratio", "typical-ratio", "e-loss"]
        ),
        "policy_estimate": st.sampled_from(["requested", "ave2", "typical-ratio", "e-loss"]),
        "correction": st.sampled_from(["requested", "incremental"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp", "wfp3"]),
    }
)
#: Long jobs leave some processors free.
HOLD = {"share": 0.3, "from_s": 600, "factor": 4.0, "erode_s": 14_400, "by": "both"}
#: What lies around episodes.
HONEST = (
    {"start": "warm", "paid": "end", "estimate": "ave2", "correction": "incremental"},
    {"start": "saf", "paid": "waiting", "warmup": "1h", "arrivals": "continue", "horizon": "1d"},
    {"start": "warm", "estimate": "e-loss", "policy_estimate": "ave2", "backfill_order": "sjbf"},
    {"start": "saf", "estimate": "ave3", "policy_estimate": "e-loss", "backfill_order": "saf"},
    {"start": "warm", "policy_estimate": "ave2", "hold": HOLD},
)
LOADED = load_workload("lublin:jobs=2000,processors=64,seed=3,load=1.2")
LIMIT = {"max_episode_steps": 40}
INTERVALS = st.sampled_from(["pass", "episode", 1, 3, "1h", "day"])


def options_of(data: Any, name: str) -> dict[str, Any]:
    """Return arguments of an environment of this name."""
    options = {**data.draw(RULES), **data.draw(EPISODES), "observation": "flat"}
    if name == "JobSelection":
        options["reservation"] = data.draw(st.sampled_from(["revised", "kept"]))
        options["skip_forced"] = data.draw(st.booleans())
    else:
        options["threshold"] = data.draw(THRESHOLDS)
    if name == "MixedPolicy":
        options["interval"] = data.draw(INTERVALS)
    return options


def is_over(env: Any) -> bool:
    """Return whether the episode has ended, as a snapshot may have it."""
    return bool(env.simulations.batch.episode_state["ended"][0])


def on_both(monkeypatch: pytest.MonkeyPatch, show: Callable[[], Any]) -> None:
    """Compare what is shown on both engines."""
    with monkeypatch.context() as patched:
        patched.setenv("HPCGYM_ENGINE", "numba")
        expected = show()
    assert_same(show(), expected)


@settings(SLOW, max_examples=200)
@given(st.data(), workloads(), st.sampled_from(NAMES), st.integers(0, 2**16))
def test_an_episode_is_the_same(
    data: st.DataObject, workload: Workload, name: str, seed: int
) -> None:
    options = whole(workload, **options_of(data, name))
    if data.draw(st.integers(0, 2)) == 0:
        options |= data.draw(LEARNED)
        options["features"] = ("wait", "predicted", "policy_time", "fits")
    elif options["passes"] == "per-timestamp" and data.draw(st.booleans()):
        options |= {"cluster": data.draw(clusters(workload.processors)), "hold": None}
        options["shutdown_action"] = name == "JobSelection"
        if name != "JobSelection":
            del options["shutdown_action"]
            options["threshold"] = None

    def show() -> list[Any]:
        env = SINGLE[name](**options)
        acts = visible_acts(env, seed)
        seen: list[Any] = play(env, acts, most=12)
        seen += [env.time, env.free, env.queued(), env.running(), env.pass_view().fits()]
        saved = env.snapshot()
        for snapshot in (env.snapshot(hide=True), saved, saved):
            seen.append(env.restore(snapshot))
            if not is_over(env):
                seen += go_on(env, acts, *seen[-1], most=9, first=12)
                seen += [env.result().start, env.queued(), env.free]
        if not is_over(env):
            seen += go_on(env, acts, None, env.restore(saved)[1], first=12)
        seen += [env.result().start, env.result().backfilled, env.result().reserved_start]
        return seen

    with pytest.MonkeyPatch.context() as patched:
        on_both(patched, show)


@settings(SLOW, max_examples=100)
@given(st.data(), places(), st.sampled_from(NAMES), st.integers(0, 2**16))
def test_an_episode_on_nodes_is_the_same(
    data: st.DataObject, place: tuple[Cluster, Workload], name: str, seed: int
) -> None:
    cluster, workload = place
    options = options_of(data, name) | data.draw(NODE_RULES)
    del options["passes"]
    if data.draw(st.integers(0, 2)) == 0:
        options |= data.draw(LEARNED)
    options = whole(workload, **options, cluster=cluster)

    def show() -> list[Any]:
        env = SINGLE[name](**options)
        acts = visible_acts(env, seed)
        seen: list[Any] = play(env, acts, most=8)
        seen += [env.time, env.free, env.queued(), env.running(), env.pass_view().fits()]
        saved = env.snapshot()
        for others in (seed + 1, seed):
            seen.append(env.restore(saved))
            if not is_over(env):
                seen += go_on(env, visible_acts(env, others), *seen[-1], first=8)
            result = env.result()
            seen += [units_on_nodes(result), result.start, result.backfilled, env.time]
            seen.append(result.reserved_start)
        return seen

    with pytest.MonkeyPatch.context() as patched:
        on_both(patched, show)


#: Machines of nodes, and rules on them.
PLACES = (
    {"workload": EURORA, "cluster": "eurora", "allocation": "weighted", "reward": "log_bsld"},
    {
        "workload": SMALL,
        "cluster": MIXED,
        "reward": {"energy": 1, "bsld": 1},
        "allocation": "worst-fit",
    },
    {"workload": SMALL, "cluster": MIXED, "allocation": "random:3", **HONEST[0]},
    {"workload": EURORA, "cluster": "eurora", "allocation": "hybrid", **HONEST[1]},
    {"workload": SMALL, "cluster": MIXED, "reward": "energy", **HONEST[2]},
)
IDS = ("alone", "warm", "continued", "learned", "regression", "held")
ON_NODES = ("nodes", "powers", "drawn", "continued-on-nodes", "powers-later")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("more", [{}, *HONEST, *PLACES], ids=[*IDS, *ON_NODES])
def test_many_at_once_are_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, more: dict[str, Any]
) -> None:
    options = {"workload": LOADED, **more}
    hides = "cluster" not in more

    def show() -> list[Any]:
        env = VECTOR[name](5, jobs=30, window=8, threads=2, **LIMIT, **options)
        seen = [env.reset(seed=3)]
        for k in range(200):
            env.action_space.seed(k)
            seen.append(env.step(env.action_space.sample()))
            if k in (60, 130):
                saved, hidden = env.snapshot(), env.snapshot(hide=hides)
                seen += [env.restore(hidden), env.step(env.action_space.sample())]
                seen.append(env.restore(saved))
            if k == 90:
                mask = np.arange(5) % 2 == 0
                seen.append(env.reset(seed=k, options={"reset_mask": mask}))
        return seen

    on_both(monkeypatch, show)


@pytest.mark.parametrize("name", NAMES)
def test_none_counts_of_those_that_are_known(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As long as the machine warms up, hiding the future hides all jobs that count."""

    def show() -> list[Any]:
        env = VECTOR[name](3, workload=LOADED, jobs=30, max_episode_steps=3, **HONEST[1])
        env.reset(seed=3)
        seen = [env.restore(env.snapshot(hide=True))]
        for k in range(6):
            env.action_space.seed(k)
            seen.append(env.step(env.action_space.sample()))
        return seen

    on_both(monkeypatch, show)
    ended = [step[4]["metrics"] for step in show()[1:] if "metrics" in step[4]]
    assert any("mean_bsld" not in metrics for metrics in ended)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"estimate": "e-loss", "policy_estimate": "typical-ratio"},
        {"estimate": "ave2", "policy_estimate": "e-loss", "hold": HOLD},
        *PLACES,
    ],
    ids=["plain", "learned", "held", *ON_NODES],
)
def test_it_is_the_native_engine_that_serves(name: str, rules: dict[str, Any]) -> None:
    env = SINGLE[name](jobs=20, **rules)
    assert env.simulations.native is not None
