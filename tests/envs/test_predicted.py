"""Environments whose run times are predicted: their schedules, and what is seen of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import (
    BUSY,
    NAMES,
    REGRESSIONS,
    SINGLE,
    for_slow,
    go_on,
    play,
    random_acts,
    whole,
)
from slow_environments import OnPool, Selecting, agent_on

from hpcgym import load_workload, simulate

HOURS = np.float32(3600)
names = pytest.mark.parametrize("name", NAMES)


# --- Schedules --------------------------------------------------------------------------------


@names
def test_the_result_so_far_has_nothing_of_the_episode_before(name: str) -> None:
    """Where nothing has been predicted yet, the requested time stands."""
    env = make(name, **{} if name != "MixedPolicy" else {"interval": "pass"})
    acts = random_acts(env.action_space, 0)
    play(env, acts, seed=1)
    before = env.result()
    play(env, acts, seed=2, most=10)
    result, requested = env.result(), env.episode_workload.requested_time
    coming = env.episode_workload.submit_time > env.time
    assert 10 < coming.sum() < 60
    for times, times_before in (
        (result.policy_run_time, before.policy_run_time),
        (result.predicted_run_time, before.predicted_run_time),
    ):
        assert times[coming].tolist() == requested[coming].tolist()
        assert (times[~coming] < requested[~coming]).any()
        assert (times_before != requested).any()
    kept = result.policy_run_time.tolist()
    go_on(env, acts, *env.restore(env.snapshot()))
    assert result.policy_run_time.tolist() == kept  # a result does not change


# --- Observations -----------------------------------------------------------------------------


@names
def test_predictions_are_seen(name: str) -> None:
    predicted = {"estimate": "e-loss", "policy_estimate": "user-ratio", "backfill_order": "saf"}
    more: dict[str, Any] = {"features": ["predicted", "policy_time"]}
    if name == "MixedPolicy":
        more["interval"] = "pass"
    env = SINGLE[name](**whole(BUSY, window=30, **predicted, **more))
    expected: dict[tuple[int, int], tuple[int, int]] = {}

    class Noting(Selecting):
        def note(self, now: int) -> None:
            for job in self.queue[:30]:
                expected[now, job.number] = (job.predicted, job.policy_time)
            super().note(now)

    agent_on(OnPool, Noting).of(BUSY, lambda *_: 0, False, 30, **for_slow(predicted))
    # all by submission, as the slow environment's
    action = {"JobSelection": 0, "QueueOrdering": np.zeros(30), "MixedPolicy": np.eye(6)[2]}[name]
    seen = set()
    for step in play(env, lambda *_: action)[:-1]:
        rows = step.info["window"][step.info["window"] >= 0].tolist()
        times = [expected[step.info["time_s"], row] for row in rows]
        seen |= set(times)
        seconds = np.array(times, np.float32)
        np.testing.assert_array_equal(
            step.observation["jobs"][: len(rows)], seconds / (seconds + HOURS)
        )
        assert not step.observation["jobs"][len(rows) :].any()
    assert len(seen) > 200


@names
def test_policy_time_is_what_policies_look_at(name: str) -> None:
    """Known beforehand, too; by default it is the requested time, and not shown."""
    run = np.minimum(BUSY.run_time, BUSY.requested_time)
    for estimate, times in (("requested", BUSY.requested_time), ("clairvoyant", run), (run, run)):
        features = ("policy_time", "requested")
        env = SINGLE[name](**whole(BUSY, features=features, policy_estimate=estimate))
        for step in play(env, random_acts(env.action_space, 0), most=30):
            rows = step.info["window"][step.info["window"] >= 0]
            seen, expected = step.observation["jobs"][: len(rows), 0], times[rows] / 1.0
            np.testing.assert_allclose(seen, expected / (expected + 3600), rtol=1e-6)


LEARNING = {"estimate": "e-loss", "policy_estimate": REGRESSIONS[1], "backfill_order": "lexp"}


def make(name: str, workload: Any = BUSY, **options: Any) -> Any:
    arguments = {"jobs": 60, "window": 6, **LEARNING, "correction": "predicted-again", **options}
    if name == "MixedPolicy":
        arguments.setdefault("interval", 3)
    return SINGLE[name](workload, **arguments)


# --- Refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["spf", "(queue == 2) * 1e6 - (wait % 97) * processors"])
def test_weights_of_some_features_are_all_weights(text: str) -> None:
    """Also where times are learned, of which the feature does not know; in the middle of a log."""
    n = 120
    log = load_workload(f"lublin:jobs={n},processors=16,load=2,seed=30").with_columns(
        user_id=[job % 3 for job in range(n)], queue=[1 + job % 2 for job in range(n)]
    )
    rules = {"backfill_order": text, "policy_estimate": "user-ratio"}
    sqf = {"processors": -1.0}
    options = {"jobs": 60, "window": 64, "interval": "pass", "policy_features": ("processors",)}
    env = SINGLE["MixedPolicy"](log, **options, **rules)
    begins = []
    for seed in range(3):
        env.reset(seed=seed)
        over = False
        while not over:
            _, _, over, _, _ = env.step(np.array([-1.0]))
        part = env.episode_workload
        begins.append(int(part.submit_time[0]))
        expected = simulate(part, policy=sqf, **rules)
        assert env.result().start.tolist() == expected.start.tolist()
    assert max(begins) > log.submit_time[0]


@names
@pytest.mark.parametrize("estimate", ["clairvoyant", "typical-ratio"])
def test_a_view_of_a_pass_has_these_times(name: str, estimate: str) -> None:
    more = {"interval": "pass"} if name == "MixedPolicy" else {}
    env = make(name, features=("policy_time",), policy_estimate=estimate, **more)
    acts, seen = random_acts(env.action_space, 0), set()

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        view, rows = env.pass_view(), info["window"][info["window"] >= 0]
        times = view.policy_time[np.searchsorted(view.job, rows)] / 1.0
        shown = observation["jobs"][: len(rows), 0]
        np.testing.assert_allclose(shown, times / (times + 3600), rtol=1e-6)
        seen.update((view.requested != view.policy_time).tolist())
        return acts(number, observation, info)

    play(env, look, seed=3)
    assert True in seen
