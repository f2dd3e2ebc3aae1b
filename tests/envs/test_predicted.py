"""Environments whose run times are predicted: their schedules, and what is seen of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    BUSY,
    NAMES,
    SINGLE,
    SLOW,
    VECTOR,
    assert_same,
    by_chance,
    follows_again,
    go_on,
    in_turn,
    play,
    random_acts,
    whole,
)
from predictors import CompiledRegression, Told
from slow_environments import Ordering, Selection, Weights
from strategies import POLICY, WEIGHTS, workloads

from hpcgym import HpcgymError, load_workload, simulate, validate_schedule
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import score_of
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.policies import FEATURES
from hpcgym.workload import Workload

# the second is eager, and so often wrong within a few jobs
REGRESSIONS = ("e-loss", "regression:over=absolute,under=squared,weight=small,eta=1,l2=0")
LEARNED = ("typical-ratio", *REGRESSIONS, *REGRESSIONS)
ESTIMATES = st.sampled_from(["requested", "clairvoyant", "ave3", "user-ratio", *LEARNED])
SEEDS = st.integers(0, 2**16)
INTERVALS = st.sampled_from(["pass", "1h", "episode", 1, 3])
HOURS = np.float32(3600)
names = pytest.mark.parametrize("name", NAMES)


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """Rules of environments that predict, as ``simulate`` takes them."""
    estimate = draw(ESTIMATES)
    corrections = ["requested", "incremental", "recursive-doubling"]
    if estimate not in ("requested", "clairvoyant"):
        corrections.append("predicted-again")
    return {
        "backfill": draw(st.sampled_from(["easy", "easy", "none"])),
        "backfill_order": draw(st.sampled_from(["fcfs", "sjbf", "saf", "lexp", "wfp3", "sqf"])),
        "estimate": estimate,
        "policy_estimate": draw(ESTIMATES),
        "correction": draw(st.sampled_from(corrections)),
        "passes": draw(st.sampled_from(["per-timestamp", "per-event"])),
    }


def for_slow(given_rules: dict[str, Any]) -> dict[str, Any]:
    """Return the rules as slow environments take them."""
    return {
        name: CompiledRegression(Regression.parse(value)) if value in REGRESSIONS else value
        for name, value in given_rules.items()
    }


def starts(env: Any) -> list[int]:
    return env.unwrapped.result().start.tolist()


def assert_same_predictions(found: Any, expected: Any) -> None:
    """Compare what two results say of predictions; the first is valid."""
    validate_schedule(found)
    assert found.predicted_run_time.tolist() == expected.predicted_run_time.tolist()
    if expected.policy_run_time is None:
        assert found.policy_run_time is None
    else:
        assert found.policy_run_time.tolist() == expected.policy_run_time.tolist()


# --- Schedules --------------------------------------------------------------------------------


POLICIES = POLICY.filter(lambda p: isinstance(p, str) or any(p))
EACH_FEATURE = st.lists(WEIGHTS, min_size=len(FEATURES), max_size=len(FEATURES))


@settings(SLOW, max_examples=150)
@given(workloads(max_jobs=30), rules(), POLICIES)
def test_index_policies_make_the_schedules_of_simulate(
    workload: Workload, given_rules: dict[str, Any], policy: Any
) -> None:
    index_policies_agree(workload, given_rules, policy)


def index_policies_agree(workload: Workload, given_rules: dict[str, Any], policy: Any) -> None:
    """Play a policy in environments and by `simulate`, with all these arguments."""
    expected = simulate(workload, policy=policy, **given_rules)
    jobs, score = jobs_of(workload), score_of(policy)

    def now(info: dict[str, Any]) -> list[float]:
        rows = [row for row in info["window"].tolist() if row >= 0]
        times = env.simulations.simulation(0).schedule().get("ordered_by")
        if times is None:  # they are known beforehand
            times = env.simulations.table.ordered_by
        for row in rows:
            jobs[row].requested = int(times[row])
        return [score(jobs[row], info["time"]) for row in rows]

    def order(_: int, __: Any, info: dict[str, Any]) -> Any:
        action = np.zeros(40)
        places = np.argsort(-np.array(now(info)), kind="stable")
        action[places] = -np.arange(len(places)) / 40
        return action

    acts = {"JobSelection": lambda _, __, info: int(np.argmax(now(info))), "QueueOrdering": order}
    for name, act in acts.items():
        env = SINGLE[name](**whole(workload, window=40, **given_rules))
        for _ in range(2):  # an episode begins with nothing learned
            play(env, act)
            assert starts(env) == expected.start.tolist()
        assert_same_predictions(env.result(), expected)


@settings(SLOW, max_examples=150)
@given(workloads(max_jobs=30), rules(), INTERVALS, EACH_FEATURE)
def test_constant_weights_make_the_schedule_of_simulate(
    workload: Workload, given_rules: dict[str, Any], interval: Any, weights: list[float]
) -> None:
    constant_weights_agree(workload, given_rules, interval, weights)


def constant_weights_agree(
    workload: Workload, given_rules: dict[str, Any], interval: Any, weights: list[float]
) -> None:
    """Play the same weights in an environment and by `simulate`, with all these arguments."""
    size = float(np.abs(weights).sum())
    policy: Any = {name: w / size for name, w in zip(FEATURES, weights, strict=True) if w}
    expected = simulate(workload, policy=policy or "fcfs", **given_rules)
    more = {"interval": interval, "policy_features": tuple(FEATURES)}
    env = SINGLE["MixedPolicy"](**whole(workload, **more, **given_rules))
    for _ in range(2):
        steps = play(env, lambda _, __, ___: np.array(weights))
        assert starts(env) == expected.start.tolist()
    assert_same_predictions(env.result(), expected)
    assert steps[-1].info["metrics"]["mean_bsld"] == pytest.approx(
        expected.metrics["mean_bsld"], rel=1e-12
    )


@settings(SLOW, max_examples=150)
@given(
    workloads(max_jobs=30),
    rules(),
    INTERVALS,
    st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=4),
)
def test_weights_that_change(
    workload: Workload, given_rules: dict[str, Any], interval: Any, given_weights: list[Any]
) -> None:
    weights, normalised = in_turn(given_weights)
    env = SINGLE["MixedPolicy"](**whole(workload, interval=interval, **given_rules))
    play(env, lambda k, _, __: weights(k))
    slow = Weights(workload, normalised, interval=interval, **for_slow(given_rules))
    assert starts(env) == slow.play()


@settings(SLOW, max_examples=150)
@given(workloads(max_jobs=30), rules(), SEEDS, st.sampled_from(["kept", "revised", "scores"]))
def test_any_selection_and_any_scores(
    workload: Workload, given_rules: dict[str, Any], seed: int, kind: str
) -> None:
    arguments = whole(workload, window=5, **given_rules)

    numbers, act = by_chance(seed, kind)
    slow: Any
    if kind == "scores":
        env = SINGLE["QueueOrdering"](**arguments)
        slow = Ordering(workload, numbers, window=5, **for_slow(given_rules))
    else:
        env = SINGLE["JobSelection"](**arguments, reservation=kind)
        kept = kind == "kept"
        slow = Selection(workload, numbers, kept=kept, window=5, **for_slow(given_rules))
    play(env, act)
    assert starts(env) == slow.play()
    assert env.result().predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    validate_schedule(env.result())


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

    def first(now: int, rows: list[int]) -> int:
        for row in rows:
            expected[now, row] = (slow.jobs[row].predicted, slow.jobs[row].policy_time)
        return 0

    slow = Selection(BUSY, first, kept=False, window=30, **for_slow(predicted))
    slow.play()
    # all by submission, as the slow environment's
    action = {"JobSelection": 0, "QueueOrdering": np.zeros(30), "MixedPolicy": np.eye(6)[2]}[name]
    seen = set()
    for step in play(env, lambda *_: action)[:-1]:
        rows = step.info["window"][step.info["window"] >= 0].tolist()
        times = [expected[step.info["time"], row] for row in rows]
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
    assert "policy_time" not in SINGLE[name](BUSY).options.names


# --- Snapshots --------------------------------------------------------------------------------

LEARNING = {"estimate": "e-loss", "policy_estimate": REGRESSIONS[1], "backfill_order": "lexp"}


def make(name: str, workload: Any = BUSY, **options: Any) -> Any:
    arguments = {"jobs": 60, "window": 6, **LEARNING, "correction": "predicted-again", **options}
    if name == "MixedPolicy":
        arguments.setdefault("interval", 3)
    return SINGLE[name](workload, **arguments)


@settings(SLOW, max_examples=80)
@given(workloads(max_jobs=30), rules(), st.sampled_from(NAMES), st.integers(0, 25), SEEDS)
def test_what_follows_a_snapshot_follows_again(
    workload: Workload, given_rules: dict[str, Any], name: str, decisions: int, seed: int
) -> None:
    env = SINGLE[name](**whole(workload, window=6, **given_rules))
    again, result = follows_again(env, seed, decisions)
    assert again.predicted_run_time.tolist() == result.predicted_run_time.tolist()


@names
def test_episodes_begin_with_nothing_learned(name: str) -> None:
    fresh, used = make(name), make(name)
    acts = random_acts(fresh.action_space, 0)
    play(used, acts, seed=1)
    assert used.simulations.simulation(0).learned()["memory"].any()
    assert_same(play(used, acts, seed=2), play(fresh, acts, seed=2))


@names
def test_a_snapshot_of_another_estimate_is_refused(name: str) -> None:
    env = make(name)
    env.reset(seed=0)
    for rules_of_other in (
        {"estimate": REGRESSIONS[1]},
        {"policy_estimate": "e-loss"},
        {"estimate": "ave2", "policy_estimate": "ave2"},
    ):
        other = make(name, **rules_of_other)
        other.reset(seed=0)
        with pytest.raises(HpcgymError, match="snapshot: it is of an environment with other"):
            other.restore(env.snapshot())


@names
@pytest.mark.parametrize("rule", ["estimate", "policy_estimate"])
@pytest.mark.parametrize("estimate", ["ave2", "user-ratio", "typical-ratio", "e-loss"])
def test_a_snapshot_of_other_users_is_refused(name: str, rule: str, estimate: str) -> None:
    """What is learned of users would go to others."""
    rules = {"estimate": "requested", "policy_estimate": "requested", "correction": "requested"}
    # as many users, and as many jobs of each
    others = BUSY.with_columns(user_id=np.roll(BUSY.user_id, 1))
    env, same, other = (make(name, w, **{**rules, rule: estimate}) for w in (BUSY, BUSY, others))
    for one in (env, same, other):
        one.reset(seed=0)
    same.restore(env.snapshot())
    for hide in (False, True):
        with pytest.raises(HpcgymError, match="snapshot: it is of an environment with other"):
            other.restore(env.snapshot(hide=hide))


@names
@pytest.mark.parametrize("learned", [{}, LEARNING])
def test_a_snapshot_of_another_order_of_backfilling_is_refused(name: str, learned: Any) -> None:
    plain = {"estimate": "requested", "policy_estimate": "requested", "correction": "requested"}
    rules = learned or plain
    for one, other in (("saf", "sqf"), ("spf", "saf"), ("lexp", "wfp3"), ("fcfs", "sjbf")):
        envs = [make(name, **{**rules, "backfill_order": order}) for order in (one, other)]
        for env in envs:
            env.reset(seed=0)
        with pytest.raises(HpcgymError, match="snapshot: it is of an environment with other"):
            envs[1].restore(envs[0].snapshot())


# --- Refusals ---------------------------------------------------------------------------------


@names
@pytest.mark.parametrize("rule", ["estimate", "policy_estimate"])
def test_predictors_in_python_are_refused(name: str, rule: str) -> None:
    for estimate in ("data-driven", Told(lambda x: 1.0)):
        message = f"^{rule}=.* and environments do not go together: no Python runs inside"
        with pytest.raises(HpcgymError, match=message):
            SINGLE[name](BUSY, **{rule: estimate})
        with pytest.raises(HpcgymError, match=message):
            VECTOR[name](2, BUSY, **{rule: estimate})


@names
def test_given_times_are_for_all_jobs(name: str) -> None:
    long = load_workload("lublin:jobs=3000,processors=32,seed=2")
    with pytest.raises(HpcgymError, match="policy_estimate: predictions of one's own are for all"):
        SINGLE[name](long, episodes="weeks", policy_estimate=long.run_time)


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
