"""Environments under orders by what users have used: of slow agents, and of `simulate`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from driving import (
    NAMES,
    SINGLE,
    SLOW,
    THRESHOLDS,
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
from node_strategies import machines, workloads_for
from share_strategies import ABOVE, BUSY_W, accounts, fitting, heeded, order, watts_of, with_power
from slow_environments import Ordering, Selection, Weights
from slow_shares import Accounts, SlowOrder
from strategies import WEIGHTS, workloads
from test_steered_schedules import begin, steered

from hpcgym import Cluster, load_workload, simulate, validate_schedule
from hpcgym.cluster import NodeGroup
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.policies import FairShare
from hpcgym.workload import Workload

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**16)
INTERVALS = st.sampled_from(["pass", "1h", "2h", "episode", 1, 2, 3, 7])


def starts(env: Any) -> list[int]:
    return env.unwrapped.result().start.tolist()


@st.composite
def places(draw: st.DrawFn) -> tuple[Workload, dict[str, Any], SlowOrder]:
    """Jobs with power, rules of an environment by usage, and the slow order of backfilling."""
    jobs = draw(with_power(draw(workloads(max_jobs=30))))
    fair, slow = draw(accounts(jobs))
    ours, theirs = draw(order(slow, watts_of(jobs)))
    rules = {
        "backfill": "easy",
        "backfill_order": ours,
        "estimate": draw(st.sampled_from(["requested", "clairvoyant", "ave2", "typical-ratio"])),
        "policy_estimate": draw(st.sampled_from(["requested", "requested", "ave3"])),
        "correction": draw(st.sampled_from(["requested", "incremental", "recursive-doubling"])),
        "passes": draw(st.sampled_from(["per-timestamp", "per-timestamp", "per-event"])),
        "fair_share": fair,
    }
    return jobs, rules, theirs


def on_pool(jobs: Workload, rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return whole(jobs, cluster=Cluster(jobs.processors, busy_power_w=BUSY_W), **rules, **more)


def slow_rules(rules: dict[str, Any], slow: SlowOrder) -> dict[str, Any]:
    return {k: v for k, v in rules.items() if k != "fair_share"} | {"backfill_order": slow}


# --- Against slow agents ------------------------------------------------------------------------


@costly
@settings(SLOW, max_examples=200)
@given(places(), SEEDS, st.sampled_from(["kept", "revised"]))
def test_any_selection(
    case: tuple[Workload, dict[str, Any], SlowOrder], seed: int, reservation: str
) -> None:
    jobs, rules, slow = case
    numbers, act = by_chance(seed, "place")
    env = SINGLE["JobSelection"](**on_pool(jobs, rules, window=5, reservation=reservation))
    steps = play(env, act)
    kept = reservation == "kept"
    expected = Selection(jobs, numbers, kept=kept, window=5, **slow_rules(rules, slow))
    assert starts(env) == expected.play()
    assert len(steps) - 1 == expected.decisions


@costly
@settings(SLOW, max_examples=200)
@given(places(), SEEDS, THRESHOLDS)
def test_any_scores(
    case: tuple[Workload, dict[str, Any], SlowOrder], seed: int, threshold: int | None
) -> None:
    jobs, rules, slow = case
    rules["threshold"] = threshold
    numbers, act = by_chance(seed, "scores")
    env = QueueOrdering(**on_pool(jobs, rules, window=5))
    steps = play(env, act)
    expected = Ordering(jobs, numbers, window=5, **slow_rules(rules, slow))
    assert starts(env) == expected.play()
    assert len(steps) - 1 == expected.decisions


@costly
@settings(SLOW, max_examples=200)
@given(places(), INTERVALS, st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=5), THRESHOLDS)
def test_weights_that_change(
    case: tuple[Workload, dict[str, Any], SlowOrder],
    interval: Any,
    given_weights: list[Any],
    threshold: int | None,
) -> None:
    jobs, rules, slow = case
    rules["threshold"] = threshold
    weights, normalised = in_turn(given_weights)
    env = MixedPolicy(**on_pool(jobs, rules, interval=interval))
    play(env, lambda k, _, __: weights(k))
    expected = Weights(jobs, normalised, interval=interval, **slow_rules(rules, slow))
    assert starts(env) == expected.play()


# --- Usage in the action ------------------------------------------------------------------------

#: In another order than the table of features, usage in the middle.
FEATURES = ("wait", "fairshare", "requested", "energy_fairshare", "processors")
WEIGHTED = st.tuples(
    st.sampled_from([0.0, 0.0, 0.01, -0.01]),
    st.sampled_from([0.0, 1.0, -0.5, 100.0]),
    st.sampled_from([0.0, 0.0, -0.25]),
    st.sampled_from([0.0, 0.0, 1.0]),
    st.sampled_from([0.0, 0.0, -0.25]),
)


def exact(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Weights of the same signs whose sizes are eighths, 1 together.

    Places are often whole parts of each other, and so are processors: what should tie does so only
    where sums are exact.
    """
    used = [place for place, weight in enumerate(weights) if weight]
    sizes = [0.125 if weight else 0.0 for weight in weights]
    if used:
        sizes[used[-1]] = 1 - 0.125 * (len(used) - 1)
    return tuple(map(math.copysign, sizes, weights))


def policy_of(weights: Any) -> Any:
    """What weights are as a policy: divided by the sum of their sizes."""
    size = sum(map(abs, weights))
    shares = [weight / size if size else 0.0 for weight in weights]
    return dict(zip(FEATURES, shares, strict=True)) if size else "fcfs"


@costly
@settings(SLOW, max_examples=200)
@given(places(), INTERVALS, WEIGHTED, THRESHOLDS)
def test_weights_that_stay_make_the_schedule_of_simulate(
    case: tuple[Workload, dict[str, Any], Any], interval: Any, weights: Any, threshold: int | None
) -> None:
    jobs, rules, _ = case
    rules["threshold"] = threshold
    env = MixedPolicy(**on_pool(jobs, rules, interval=interval, policy_features=FEATURES))
    play(env, lambda *_: np.array(weights))
    same = simulate(
        jobs, policy=policy_of(weights), cluster=env.options.cluster, **env.scheduler_rules
    )
    assert starts(env) == same.start.tolist()
    assert env.result().predicted_run_time.tolist() == same.predicted_run_time.tolist()
    validate_schedule(env.result())


@costly
@settings(SLOW, max_examples=200)
@given(places(), INTERVALS, st.lists(WEIGHTED, min_size=2, max_size=4))
def test_weights_of_usage_that_change(
    case: tuple[Workload, dict[str, Any], SlowOrder], interval: Any, given_weights: list[Any]
) -> None:
    """Against the slow agent, with a slow order for each decision."""
    jobs, rules, slow = case
    rules |= {"estimate": "requested", "policy_estimate": "requested"}
    if slow.accounts.in_a_tree:
        given_weights = [exact(one) for one in given_weights]
    weights, normalised = in_turn(given_weights)

    class ByUsage(Weights):
        def score_by(self, weights: Any) -> Any:
            wait, cpu, time, energy, size = weights
            used = [weight for weight in weights if weight]
            alone = len(used) == 1 and bool(cpu or energy)
            kind: Any = ("cpu" if cpu else "energy") if alone else (cpu, energy)
            sign = -1 if alone and used[0] < 0 else 1
            made = SlowOrder(
                kind, slow.accounts, slow.watts, BUSY_W,
                lambda job, now: (
                    time * job.requested + wait * (now - job.submit) + size * job.processors
                ),
            )  # fmt: skip
            made.begin(self)
            return lambda job, now: sign * made(job, now)

    env = MixedPolicy(**on_pool(jobs, rules, interval=interval, policy_features=FEATURES))
    play(env, lambda k, _, __: weights(k))
    expected = ByUsage(jobs, normalised, interval=interval, **slow_rules(rules, slow))
    assert starts(env) == expected.play()


# --- Other machines -----------------------------------------------------------------------------

ORDERS = st.sampled_from(["fairshare", "energy-fairshare", "fs+efs", {"fairshare": 1, "wait": 0.1}])


@costly
@settings(SLOW, max_examples=150)
@given(st.data(), machines(), INTERVALS, WEIGHTED)
def test_nodes(data: st.DataObject, cluster: Cluster, interval: Any, weights: Any) -> None:
    jobs = data.draw(workloads_for(cluster).flatmap(with_power))
    fair, _ = data.draw(accounts(jobs))
    rules = {
        "backfill_order": data.draw(fitting(ORDERS, fair)),
        "estimate": data.draw(st.sampled_from(["requested", "clairvoyant", "typical-ratio"])),
        "fair_share": fair,
    }
    env = MixedPolicy(
        **whole(jobs, cluster=cluster, interval=interval, policy_features=FEATURES, **rules)
    )
    play(env, lambda *_: np.array(weights))
    same = simulate(jobs, policy=policy_of(weights), cluster=cluster, **env.scheduler_rules)
    assert starts(env) == same.start.tolist()
    ordering = SINGLE["JobSelection"](**whole(jobs, cluster=cluster, window=40, **rules))
    play(ordering, lambda *_: 0)
    first = simulate(jobs, policy="fcfs", cluster=cluster, **env.scheduler_rules)
    assert starts(ordering) == first.start.tolist()


@costly
@settings(SLOW, max_examples=150)
@given(st.data(), INTERVALS.filter(lambda interval: interval != "pass"), WEIGHTED)
def test_limits(data: st.DataObject, interval: Any, weights: Any) -> None:
    """Controls that limit nothing, weights that stay: the schedule of the same limits alone."""
    case = data.draw(steered())
    power = case.cluster.groups[0].power
    assert power is not None
    assume(any(watt != 0 for watt in case.workload.power_w) and power.busy_levels_w[-1] > 0)
    fair, _ = data.draw(accounts(case.workload))
    case.rules |= {"backfill_order": data.draw(fitting(ORDERS, fair))}
    used = any(weights)
    features = FEATURES if used else ()
    env = begin(
        case,
        controls=("frequency", "power"),
        interval=interval,
        policy_features=features,
        fair_share=fair if used or case.rules.get("backfill") != "none" else None,
    )
    play(env, lambda *_: np.array([1.0, 1.0, *(weights if used else ())]))
    rules = {**case.rules, "policy": policy_of(weights), "fair_share": fair}
    same = simulate(case.workload, cluster=case.cluster, limits=case.limits, **heeded(rules))
    assert starts(env) == same.start.tolist()
    assert np.array_equal(env.result().frequency, same.frequency)


# --- Episode after episode ----------------------------------------------------------------------


def busy_users(jobs: int = 300) -> Workload:
    """Jobs of many users, of groups, that wait in it."""
    trace = load_workload(f"lublin:jobs={jobs},processors=64,seed=1,load=2")
    users = np.random.default_rng(0).zipf(1.5, jobs) % 17
    return trace.with_columns(user_id=users, group_id=users % 3)


BUSY = busy_users()
NODES = Cluster(groups=(NodeGroup("a", 16, {"core": 4, "mem": 8}),))
NEEDY = Workload.from_columns(
    {name: column for name, column in BUSY.columns.items() if name != "job_number"},
    processors=64,
    units=np.minimum(BUSY.requested_processors, 32),
    per_unit={"core": np.ones(300, np.int64), "mem": 1 + np.arange(300) % 4},
)
FAIR = [
    FairShare(3600, shares={3: 5.0, 99: 2.0}),
    FairShare(86_400, accounts="group"),
    FairShare(600, 0.5, {"a": 3.0}, ABOVE[1]),
    FairShare(3600, shares={"b": 2.0}, accounts=ABOVE[2], formula="fair-tree"),
]
PLACES: dict[str, dict[str, Any]] = {
    "pool": {"workload": BUSY},
    "nodes": {"workload": NEEDY, "cluster": NODES},
}
EPISODES = ((0, 60), (120, 80), (20, 40), (0, 60))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fair", FAIR, ids=["shares", "group", "accounts", "tree"])
def test_each_episode_begins_anew_with_its_own_users(place: str, fair: FairShare) -> None:
    weights = np.array([0.002, 1.0, 0.0, 0.0, -0.002])
    order = "fs+efs" if fair.formula == "classic" else "energy-fairshare"
    rules = {"backfill_order": order, "fair_share": fair, "policy_features": FEATURES}
    env = MixedPolicy(**PLACES[place], jobs=100, **rules)
    for first, n in EPISODES:
        play(env, lambda *_: weights, options={"start": first, "jobs": n})
        same = simulate(
            env.episode_workload,
            policy=policy_of(weights.tolist()),
            cluster=env.options.cluster,
            **env.scheduler_rules,
        )
        assert starts(env) == same.start.tolist()
    plain = simulate(env.episode_workload, "easy", cluster=env.options.cluster)
    assert starts(env) != plain.start.tolist()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_vectors_do_what_single_environments_do(place: str, name: str) -> None:
    """Also when they begin the next episodes by themselves, and go on from a snapshot."""
    arguments: dict[str, Any] = {
        **PLACES[place], "jobs": 40, "window": 9, "backfill_order": "fairshare",
        "fair_share": FAIR[0],
    }  # fmt: skip
    if name == "MixedPolicy":
        arguments |= {"policy_features": FEATURES, "interval": 9}
    vector = VECTOR[name](3, **arguments)
    singles = [SINGLE[name](**arguments) for _ in range(3)]
    act = random_acts(vector.single_action_space, 5)
    observations = [env.reset(seed=e)[0] for e, env in enumerate(singles)]
    seen = vector.reset(seed=[0, 1, 2])[0]
    ended, over, episodes, saved = [False] * 3, 120, 0, None
    for number in range(over):
        if number == over // 2:
            saved = vector.snapshot()
        actions = np.array([act(number + 1000 * e, None, {}) for e in range(3)])
        seen, rewards, terminated, _, _ = vector.step(actions)
        if saved is not None and number == over // 2 + 7:
            for again in range(over // 2, number + 1):
                if again == over // 2:
                    vector.restore(saved)
                actions = np.array([act(again + 1000 * e, None, {}) for e in range(3)])
                repeated = vector.step(actions)
            assert_same(repeated[0], seen)
        for e, env in enumerate(singles):
            if ended[e]:
                observations[e], ended[e] = env.reset()[0], False
                episodes += 1
                continue
            observations[e], reward, ended[e], _, _ = env.step(actions[e])
            assert rewards[e] == reward
        assert terminated.tolist() == ended
        one = {key: np.stack([o[key] for o in observations]) for key in observations[0]}
        assert_same(dict(seen), one)
    assert episodes > 0


@settings(SLOW, max_examples=60)
@given(places(), SEEDS, st.sampled_from(NAMES), st.integers(1, 12))
def test_snapshots(
    case: tuple[Workload, dict[str, Any], Any], seed: int, name: str, decisions: int
) -> None:
    jobs, rules, _ = case
    more: dict[str, Any] = {"policy_features": FEATURES} if name == "MixedPolicy" else {}
    again, first = follows_again(
        SINGLE[name](**on_pool(jobs, rules, window=5, **more)), seed, decisions
    )
    assert again.start.tolist() == first.start.tolist()


@pytest.mark.parametrize("name", ["JobSelection", "MixedPolicy"])
def test_a_hidden_future_goes_on_with_what_was_used(name: str) -> None:
    """With known run times and shares it is that of the jobs that are known."""
    arguments: dict[str, Any] = {
        "workload": BUSY, "jobs": 100, "estimate": "clairvoyant",
        "backfill_order": "fairshare", "fair_share": FAIR[0],
    }  # fmt: skip
    act: Any = 0
    policy, most = "fcfs", 80
    if name == "MixedPolicy":
        arguments |= {"policy_features": FEATURES, "interval": "pass"}
        act, policy, most = np.array([0.0, 1.0, 0.0, 0.0, 0.0]), "fairshare", 60
    env = SINGLE[name](**arguments)
    steps = play(env, lambda *_: act, most=most, options={"start": 0, "jobs": 100})
    now = steps[-1].info["time"]
    known = int((env.episode_workload.submit_time <= now).sum())
    assert known < 90
    hidden = env.snapshot(hide=True)
    jobs = env.episode_workload.take(slice(known))
    rules = {"policy": policy, **env.scheduler_rules}
    expected = simulate(jobs, **rules).start.tolist()
    by_submission = simulate(jobs, **heeded(rules | {"backfill_order": "fcfs"})).start.tolist()
    differ = {max(pair) for pair in zip(expected, by_submission, strict=True) if len({*pair}) > 1}
    assert max(differ) > now
    for _ in range(2):
        observation, info = env.restore(hidden)
        go_on(env, lambda *_: act, observation, info)
        assert starts(env)[:known] == expected


# --- What is said -------------------------------------------------------------------------------


def test_rules_are_told() -> None:
    env = QueueOrdering(BUSY, jobs=20, backfill_order="fairshare", fair_share="half_life_s=60")
    assert env.scheduler_rules["fair_share"] == FairShare(60)
    assert QueueOrdering(BUSY, jobs=20).scheduler_rules["fair_share"] is None


def test_snapshots_are_of_the_same_shares() -> None:
    one, other = (
        QueueOrdering(BUSY, jobs=20, backfill_order="fs+efs", fair_share=f) for f in FAIR[:2]
    )
    one.reset(seed=0)
    other.reset(seed=0)
    with pytest.raises(HpcgymError, match="it is of an environment with other jobs or arguments"):
        other.restore(one.snapshot())


def test_energy_without_power_is_said() -> None:
    dark = Cluster(64, busy_power_w=0.0)
    with pytest.raises(HpcgymError, match="without power there is no energy to share"):
        QueueOrdering(BUSY, cluster=dark, backfill_order="energy-fairshare")
    with pytest.raises(HpcgymError, match="without power there is no energy to share"):
        MixedPolicy(BUSY, cluster=dark, policy_features=["energy_fairshare"])
    MixedPolicy(BUSY, cluster=dark, policy_features=["fairshare"])


def test_the_slow_simulator_agrees_of_a_longer_trace() -> None:
    jobs = busy_users(150)
    fair = FairShare(5000, shares={1: 4.0})
    slow = SlowOrder("cpu", Accounts({*jobs.user_id.tolist()}, {1: 4.0}, half_life=5000), [], 1.0)
    env = MixedPolicy(
        **whole(jobs, backfill_order="fairshare", policy_features=["fairshare"], fair_share=fair)
    )
    play(env, lambda *_: np.array([0.3]))
    expected = simulate_pool(
        jobs_of(jobs), 64, policy=slow, backfill="easy", backfill_order=slow,
        estimate="requested", correction="requested", threshold=None, passes="per-timestamp",
    )  # fmt: skip
    assert starts(env) == [job.start for job in expected]
