"""The rows of visible jobs, which the engine keeps from one decision to the next: to the last bit.

Plain programs work out each number anew from the schedule so far, whatever was shown before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plain_envs
import pytest
from drawing import costly, given, settings
from drawing import strategies as st
from driving import (
    FAIR,
    MODES,
    SEEDS,
    SINGLE,
    SLOW,
    USERS,
    assert_alike,
    assert_same,
    drive,
    on_a_pool,
    on_nodes,
    play,
    visible_acts,
    whole,
)
from driving import given as given_at
from few_jobs import few_jobs
from gymnasium.vector import AutoresetMode
from test_expressions_shown import Seen

from hpcgym.envs.core.observation import USUAL_FEATURES
from hpcgym.envs.ids import id_of
from hpcgym.machine import Cluster
from hpcgym.workload import Workload

NAMES = ("JobSelection", "QueueOrdering", "Backfill", "Inspector")
#: Columns of each kind: still, of predictions, of users, of a job and its user, of now.
EVERY = (
    *USUAL_FEATURES,
    *("log(requested)", "requested*processors", "last_run*processors", "mean_run-user_running"),
    *(
        "rank(-requested*processors)",
        "rank(last_run)",
        "log(1+wait)*known_runs",
        "queued*processors",
    ),
)
SETS = (
    EVERY,
    USUAL_FEATURES,
    ("user_waiting", "predicted"),
    ("last_run", "wait"),
    ("log(requested)",),
)
#: Rules by which predictions of waiting jobs differ, or change.
RULES = (
    {},
    {"estimate": "ave2", "correction": "incremental"},
    {"policy_estimate": "typical-ratio"},
    {"estimate": "user-ratio", "policy_estimate": "typical-ratio", "correction": "incremental"},
)


def time_shown(seconds: float) -> np.float32:
    """Return how a time is shown."""
    t = np.float32(seconds)
    return np.float32(t / (t + np.float32(3600)))


def number_shown(x: float) -> np.float32:
    """Return how the value of an expression is shown."""
    return np.float32(x / (4 + abs(x)))


class Plain:
    """What is shown of the visible jobs of an environment now, from its schedule so far."""

    def __init__(self, env: Any, rows: list[int]) -> None:
        self.jobs, self.now, self.rows = env.episode_workload, env.time, rows
        self.window, view = env.options.window, env.pass_view()
        places = np.searchsorted(view.job, rows)
        self.predicted = dict(zip(rows, view.duration[places].tolist(), strict=True))
        simulation = env.simulations.simulation(0).schedule()
        self.policy = simulation.get("ordered_by", self.jobs.requested_time)
        self.fits = dict(zip(rows, view.fits()[places].tolist(), strict=True))
        self.free, self.processors = env.free, env.options.cluster.processors
        self.seen = Seen(env)

    def column(self, name: str) -> list[Any]:
        """Return a column of the window."""
        if name.startswith("rank("):
            values = [self.value(name[5:-1], row) for row in self.rows]
            return [
                np.float32(sum(other < own for other in values) / self.window) for own in values
            ]
        return [self.number(name, row) for row in self.rows]

    def number(self, name: str, row: int) -> Any:
        wait = self.now - int(self.jobs.submit_time[row])
        asked = int(self.jobs.requested_time[row])
        width = int(self.jobs.requested_processors[row])
        if name == "expansion":
            return np.float32(wait) / (np.float32(wait) + np.float32(asked))
        if name == "area":
            area = np.float32(asked) * np.float32(width)
            return area / (area + np.float32(3600) * np.float32(self.processors))
        times = {"wait": wait, "requested": asked, "predicted": self.predicted[row],
                 "policy_time": int(self.policy[row])}  # fmt: skip
        if name in times:
            return time_shown(times[name])
        shares = {"processors": width, "leaves": max(self.free - width, 0)}
        if name in shares:
            return np.float32(shares[name] / self.processors)
        return np.float32(self.fits[row]) if name == "fits" else number_shown(self.value(name, row))

    def value(self, text: str, row: int) -> float:
        """Return an expression of a job."""
        names = ("user_running", "user_waiting", "last_run", "mean_run", "spread_run", "known_runs")
        known = {name: self.seen.of(name, row) for name in names if name in text}
        known |= {
            "requested": float(self.policy[row]),
            "processors": float(self.jobs.requested_processors[row]),
            "wait": float(self.now - self.jobs.submit_time[row]),
            "queued": float(len(self.seen.waits)),
        }
        return float(eval(text, {"log": math.log, "__builtins__": {}}, known))


@costly
@settings(SLOW, max_examples=120)
@given(
    st.one_of(on_a_pool(), on_nodes()), st.sampled_from(NAMES), st.sampled_from(SETS),
    st.sampled_from(RULES), st.sampled_from([2, 3, 40]), SEEDS,
)  # fmt: skip
def test_rows_are_those_of_plain_programs(
    place: tuple[Cluster, Workload],
    name: str,
    features: tuple[str, ...],
    rules: dict[str, Any],
    window: int,
    seed: int,
) -> None:
    cluster, workload = place
    if cluster.groups and name not in NAMES[:2]:
        name = NAMES[0]
    more = {"cluster": cluster, "features": features, "window": window, **rules}
    env = SINGLE[name](**whole(workload, **more))
    acts = visible_acts(env, seed)

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        rows = info["window"][info["window"] >= 0].tolist()
        if rows:
            plain = Plain(env, rows)
            for k, column in enumerate(features):
                assert_same(
                    observation["jobs"][: len(rows), k],
                    np.array(plain.column(column), np.float32),
                    f"{column} at {env.time}",
                )
        assert not observation["jobs"][len(rows) :].any()
        assert observation["mask"].tolist() == [1] * len(rows) + [0] * (window - len(rows))
        return acts(number, observation, info)

    play(env, look)
    play(env, look)  # again: what was kept is of another simulation


def test_a_wait_that_32_bits_do_not_hold() -> None:
    """The third job waits 2^32 s and more, those behind it for a few."""
    long = 2**32
    jobs = few_jobs(1, [0, 0, 0, long - 5, long], [long, 9, 9, 9, 9], [1] * 5)
    names = ("wait", "expansion", "area")
    env = SINGLE["JobSelection"](**whole(jobs, features=names))
    env.reset(seed=0)
    env.step(0)
    observation, _, _, _, info = env.step(0)
    rows = info["window"][info["window"] >= 0].tolist()
    assert (env.time, rows) == (long + 9, [2, 3, 4])
    plain = Plain(env, rows)
    for k, name in enumerate(names):
        assert_same(observation["jobs"][:3, k], np.array(plain.column(name), np.float32), name)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("copy", [True, False], ids=["copies", "views"])
@pytest.mark.parametrize("window", [2, 30])
@pytest.mark.parametrize(
    "place", ["pool", "surrounded", "accounts on nodes", "learned", "requeued"]
)
def test_many_show_them_as_single_ones_do(
    place: str, window: int, copy: bool, mode: AutoresetMode
) -> None:
    """From episode to episode, with users."""
    name = "QueueOrdering"
    more: dict[str, Any] = {"features": EVERY, "window": window}
    if place in ("pool", "surrounded", "learned"):
        more |= {"workload": USERS, "fair_share": FAIR[0], "backfill_order": "fairshare"}
    arguments = {**given_at(name, place), **more}
    native = plain_envs.maker("QueueOrderingVector")(3, autoreset_mode=mode, copy=copy, **arguments)
    loop = plain_envs.make_vec(
        id_of(name), 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode},
        **arguments,
    )  # fmt: skip
    if copy:
        assert assert_alike(drive(native, 7, 50), drive(loop, 7, 50)) > 0
        return
    assert_same(native.reset(seed=7)[0], loop.reset(seed=7)[0])
    for k in range(50):
        native.action_space.seed(k)
        action = native.action_space.sample()
        ours, other = native.step(action), loop.step(action)
        assert_same(ours[0], other[0])
        if mode == AutoresetMode.DISABLED and (ours[2] | ours[3]).any():
            mask = {"reset_mask": ours[2] | ours[3]}
            ours, other = native.reset(options=mask), loop.reset(options=mask)
            assert_same(ours[0], other[0])
