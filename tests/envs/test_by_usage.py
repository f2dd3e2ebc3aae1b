"""Environments under orders by what users have used: of slow agents, and of `simulate`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from driving import (
    INTERVALS,
    KINDS,
    SEEDS,
    SINGLE,
    SIX_WEIGHTS,
    SLOW,
    THRESHOLDS,
    assert_as_slowly,
    go_on,
    in_turn,
    play,
    whole,
)
from node_strategies import machines, workloads_for
from share_strategies import ABOVE, BUSY_W, accounts, fitting, heeded, order, watts_of, with_power
from slow_environments import PoolWeights
from slow_shares import SlowOrder
from strategies import workloads
from test_steered_schedules import begin, steered

from hpcgym import Cluster, load_workload, simulate
from hpcgym.cluster import NodeGroup
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies import FairShare
from hpcgym.workload import Workload

pytestmark = pytest.mark.slow


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
@settings(SLOW, max_examples=500)
@given(KINDS, places(), SEEDS, SIX_WEIGHTS, INTERVALS, THRESHOLDS)
def test_any_choices(
    kind: str,
    case: tuple[Workload, dict[str, Any], SlowOrder],
    seed: int,
    weights: list[Any],
    interval: Any,
    threshold: int | None,
) -> None:
    jobs, rules, slow = case
    more = {"seed": seed, "weights": weights, "interval": interval, "threshold": threshold}
    assert_as_slowly(kind, jobs, on_pool(jobs, rules), slow_rules(rules, slow), **more)


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

    class ByUsage(PoolWeights):
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
    expected = ByUsage.of(jobs, normalised, interval, **slow_rules(rules, slow))
    assert starts(env) == [job.start for job in expected.jobs]


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
