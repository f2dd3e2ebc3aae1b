"""Episodes of extracts begin with the jobs that run and wait, as in `simulate`."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
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
    visible_acts,
    whole,
)
from extract_driving import assert_metrics, busy_log, from_the_middle, make, names
from extract_strategies import parts_of, recorded
from node_driving import RULES, places, units_on_nodes
from slow_environments import Ordering, Selection, Weights
from strategies import WEIGHTS, workloads
from test_node_energy import MIXED, SMALL, greatest_w
from test_predicted import (
    EACH_FEATURE,
    INTERVALS,
    POLICIES,
    SEEDS,
    constant_weights_agree,
    index_policies_agree,
    rules,
)
from test_vector import MODES, assert_alike, drive

import hpcgym
from hpcgym import HpcgymError, simulate, validate_schedule
from hpcgym.baselines.policies import Baseline
from hpcgym.cluster import Cluster
from hpcgym.errors import WorkloadError
from hpcgym.scheduler.policies import FairShare
from hpcgym.workload import Workload

pytestmark = pytest.mark.slow


def extract_of(data: st.DataObject, workload: Workload) -> Workload | None:
    """An extract in which there is something to decide; None if none was found."""
    part = parts_of(data, recorded(data, workload), {"estimate": "requested"})[0]
    if part is not None and part.initial is not None and part.initial.running.all():
        with pytest.raises(HpcgymError, match="so that there is nothing to decide"):
            SINGLE["QueueOrdering"](**whole(part))
        return None
    return part


# --- As in `simulate` -----------------------------------------------------------------------------


@costly
@settings(SLOW, max_examples=200)
@given(st.data(), workloads(max_jobs=30), rules(), POLICIES)
def test_index_policies_make_the_schedules_of_simulate(
    data: st.DataObject, workload: Workload, given_rules: dict[str, Any], policy: Any
) -> None:
    part = extract_of(data, workload)
    if part is not None:
        index_policies_agree(part, given_rules, policy)


@settings(SLOW, max_examples=200)
@given(st.data(), workloads(max_jobs=30), rules(), INTERVALS, EACH_FEATURE)
def test_constant_weights_make_the_schedule_of_simulate(
    data: st.DataObject,
    workload: Workload,
    given_rules: dict[str, Any],
    interval: Any,
    weights: list[float],
) -> None:
    part = extract_of(data, workload)
    if part is not None:
        constant_weights_agree(part, given_rules, interval, weights)


@settings(SLOW, max_examples=100)
@given(
    st.data(),
    workloads(max_jobs=30),
    INTERVALS,
    st.tuples(st.sampled_from([0.0, 1e-5]), st.sampled_from([1.0, -0.5])),
    st.sampled_from([60.0, 3600.0, 604_800.0]),
)
def test_what_users_had_used_before_counts(
    data: st.DataObject, workload: Workload, interval: Any, weights: Any, half_life_s: float
) -> None:
    part = extract_of(data, workload)
    if part is None:
        return
    rules = {"backfill_order": "fairshare", "fair_share": FairShare(half_life_s=half_life_s)}
    features = ("wait", "fairshare")
    env = make("MixedPolicy", part, interval=interval, policy_features=features, **rules)
    size = sum(map(abs, weights))
    policy = {name: w / size for name, w in zip(features, weights, strict=True)}
    expected = simulate(part, policy=policy, **env.scheduler_rules)
    for _ in range(2):
        play(env, lambda *_: np.array(weights))
        assert env.result().start.tolist() == expected.start.tolist()


@costly
@settings(SLOW, max_examples=200)
@given(
    st.data(),
    places(),
    RULES,
    st.sampled_from(["fcfs", "sjf", "saf", "f1", "wfp3", "lexp"]),
    st.sampled_from(["JobSelection", "QueueOrdering"]),
    st.booleans(),
)
def test_so_they_do_on_nodes(
    data: st.DataObject,
    place: tuple[Cluster, Workload],
    given_rules: dict[str, Any],
    policy: str,
    name: str,
    goes_on: bool,
) -> None:
    """Also where it is known from a simulation on which nodes jobs run."""
    cluster, workload = place
    if goes_on:
        long = simulate(workload, "easy", cluster=cluster, allocation="worst-fit")
        times = sorted({*long.start.tolist(), *long.end.tolist()})
        part: Any = hpcgym.continued(long, data.draw(st.sampled_from(times)))
        assume(not part.initial.running.all())
    else:
        part = extract_of(data, workload)
    if part is None:
        return
    arguments = {"window": 64, "cluster": cluster, **given_rules}
    try:
        expected = simulate(part, policy=policy, cluster=cluster, **given_rules)
    except WorkloadError as error:
        with pytest.raises(WorkloadError, match=f"^{re.escape(str(error))}$"):
            make(name, part, **arguments)
        return
    env, actor = make(name, part, **arguments), Baseline(policy)
    for _ in range(2):
        observation, info = env.reset()
        actor.begin(env)
        ended = False
        while not ended:
            observation, _, ended, _, info = env.step(actor.act(observation, info))
        assert_metrics(env, expected)
        assert units_on_nodes(env.result()) == units_on_nodes(expected)


@costly
@settings(SLOW, max_examples=100)
@given(
    st.data(),
    places(),
    st.one_of(RULES, rules()),
    INTERVALS,
    st.tuples(*[WEIGHTS] * 6).filter(any),
    THRESHOLDS,
)
def test_so_do_weights_on_nodes(
    data: st.DataObject,
    place: tuple[Cluster, Workload],
    given_rules: dict[str, Any],
    interval: Any,
    weights: Any,
    threshold: Any,
) -> None:
    cluster, workload = place
    part = extract_of(data, workload)
    more = {**given_rules, "threshold": threshold, "passes": "per-timestamp"}
    if part is None:
        return
    policy = tuple((np.array(weights) / np.abs(weights).sum()).tolist())
    try:
        expected = simulate(part, policy=policy, cluster=cluster, **more)
    except WorkloadError:
        return
    env = make("MixedPolicy", part, interval=interval, cluster=cluster, **more)
    for _ in range(2):
        play(env, lambda *_: np.array(weights))
        assert_metrics(env, expected)


def test_an_agent_takes_over_from_the_scheduler_of_a_simulation() -> None:
    """Whatever that was: its reservations and predictions are those of a scheduler that goes on."""
    jobs = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=2,load=1.2")
    long = simulate(jobs, "easy")
    part = hpcgym.continued(long, int(np.median(jobs.submit_time)))
    env = make("QueueOrdering", part, window=200)
    play(env, lambda *_: -np.arange(200) / 200)
    assert_metrics(env, simulate(env.episode_workload, "easy"))
    assert part.initial is not None
    assert part.initial.running.any()


# --- Against the slow environments ----------------------------------------------------------------

PLAIN = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "easy", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "wfp3"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave3"]),
        "policy_estimate": st.sampled_from(["requested", "clairvoyant", "ave3"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
        "passes": st.sampled_from(["per-timestamp", "per-event"]),
    }
)


@costly
@settings(SLOW, max_examples=200)
@given(
    st.data(), workloads(max_jobs=30), PLAIN, SEEDS, st.sampled_from(["kept", "revised", "scores"])
)
def test_any_selection_and_any_scores(
    data: st.DataObject, workload: Workload, given_rules: dict[str, Any], seed: int, kind: str
) -> None:
    part = extract_of(data, workload)
    if part is None:
        return
    numbers, act = by_chance(seed, kind)
    slow: Any
    if kind == "scores":
        env = make("QueueOrdering", part, window=5, **given_rules)
        slow = Ordering(part, numbers, window=5, **given_rules)
    else:
        env = make("JobSelection", part, window=5, reservation=kind, **given_rules)
        slow = Selection(part, numbers, kept=kind == "kept", window=5, **given_rules)
    steps = play(env, act)
    assert env.result().start.tolist() == slow.play()
    assert len(steps) - 1 == slow.decisions
    assert env.result().predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    validate_schedule(env.result())


@costly
@settings(SLOW, max_examples=200)
@given(
    st.data(),
    workloads(max_jobs=30),
    PLAIN,
    INTERVALS,
    st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=4),
)
def test_weights_that_change(
    data: st.DataObject,
    workload: Workload,
    given_rules: dict[str, Any],
    interval: Any,
    given_weights: list[Any],
) -> None:
    part = extract_of(data, workload)
    if part is None:
        return
    weights, normalised = in_turn(given_weights)
    env = make("MixedPolicy", part, interval=interval, **given_rules)
    play(env, lambda k, _, __: weights(k))
    slow = Weights(part, normalised, interval=interval, **given_rules)
    assert env.result().start.tolist() == slow.play()


# --- Rewards and snapshots ------------------------------------------------------------------------


@pytest.mark.parametrize("interval", ["pass", "2h", 3, "episode"])
@pytest.mark.parametrize("cluster", [None, MIXED], ids=["pool", "nodes"])
@names
def test_returns_are_metrics(name: str, cluster: Cluster | None, interval: Any) -> None:
    part = from_the_middle(busy_log(cluster))
    assert part.initial is not None
    assert part.initial.running.sum() > 1
    options: dict[str, Any] = {"cluster": cluster, "window": 9}
    options["reward"] = ["bsld", "wait", "energy"]
    if name == "MixedPolicy":
        options["interval"] = interval
    env = make(name, part, **options)
    span = int(part.submit_time[-1]) - part.initial.begin + 1
    full = SMALL.processors * env.options.cluster.busy_power_w
    for seed in range(3):
        steps = play(env, random_acts(env.action_space, seed))
        metrics = env.result().metrics
        validate_schedule(env.result())
        assert not any(steps[0].info["reward_terms"].values())
        bsld, wait, energy = sum(step.reward for step in steps[1:])
        assert -bsld == pytest.approx(metrics["mean_bsld"], rel=1e-12)
        assert -wait == pytest.approx(metrics["mean_wait_s"] / 3600, rel=1e-12)
        joules = sum(step.info["reward_terms"]["energy_j"] for step in steps[1:])
        assert joules == pytest.approx(metrics["energy_j"], rel=1e-12)
        most = full if cluster is None else greatest_w(cluster)
        assert energy == pytest.approx(-joules / (most * span), rel=1e-12)
        assert steps[-1].info["metrics"]["mean_bsld"] == metrics["mean_bsld"]


def test_functions_are_told_of_jobs_that_start() -> None:
    part = from_the_middle(busy_log())
    assert part.initial is not None
    ran = np.flatnonzero(part.initial.running)
    started: list[int] = []

    def reward(view: Any) -> float:
        started.extend(view.started.tolist())
        assert view.jobs == len(part) - len(ran)
        return -view.bsld / view.jobs

    for name in NAMES:
        started.clear()
        env = make(name, part, reward=reward)
        steps = play(env, random_acts(env.action_space, 0))
        assert sorted([*started, *ran.tolist()]) == list(range(len(part)))
        mean = steps[-1].info["metrics"]["mean_bsld"]
        assert sum(step.reward for step in steps) == pytest.approx(-mean, rel=1e-12)


#: An environment of an extract, after how many decisions a snapshot is taken, and a seed.
begun_episodes = given(
    st.data(), workloads(max_jobs=25), rules(), st.sampled_from(NAMES), st.integers(0, 15), SEEDS
)


@settings(SLOW, max_examples=100)
@begun_episodes
def test_what_follows_a_snapshot_follows_again(
    data: Any, workload: Any, given_rules: Any, name: str, decisions: int, seed: int
) -> None:
    part = extract_of(data, workload)
    if part is not None:
        env = make(name, part, window=6, **given_rules)
        found, expected = follows_again(env, seed, decisions)
        assert found.start.tolist() == expected.start.tolist()


@settings(SLOW, max_examples=150)
@begun_episodes
def test_a_hidden_future_counts_what_is_known(
    data: Any, workload: Any, given_rules: Any, name: str, decisions: int, seed: int
) -> None:
    """The sums of a snapshot that hides, and of what follows, are the metrics of its schedule."""
    part = extract_of(data, workload)
    if part is None:
        return
    env = make(name, part, window=6, **given_rules)
    acts = visible_acts(env, seed)
    begun = play(env, acts, most=decisions)
    assume(not begun[-1].terminated and len(env.queued()))
    observation, info = env.restore(env.snapshot(hide=True))
    assert_same(observation, begun[-1].observation)
    go_on(env, acts, observation, info)
    assert_metrics(env, env.result())
    again = play(env, acts)  # another episode hides nothing
    assert_same(again[: len(begun)], begun)


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@names
def test_many_at_once(name: str, mode: Any, learns: bool) -> None:
    """Each episode is the same as in a single environment, also those that follow by themselves."""
    part = from_the_middle(busy_log()).take(slice(0, 30), name="part")
    learned = {"estimate": "e-loss", "policy_estimate": "user-ratio", "backfill_order": "lexp"}
    options = {"window": 6, "reward": {"bsld": 1, "energy": 1}, **(learned if learns else {})}
    if name == "MixedPolicy":
        options["interval"] = 4
    arguments = whole(part, **options)
    many = VECTOR[name](3, **arguments, autoreset_mode=mode, threads=2)
    loop = gymnasium.make_vec(
        f"hpcgym/{name}-v0", 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode},
        **arguments,
    )  # fmt: skip
    assert assert_alike(drive(many, 7, 60), drive(loop, 7, 60)) > 3


@names
def test_many_at_once_on_nodes(name: str) -> None:
    part = from_the_middle(busy_log(MIXED)).take(slice(0, 30), name="part")
    options = {"cluster": MIXED, "window": 6, "reward": "energy", "allocation": "best-fit"}
    arguments = whole(part, **options)
    many = VECTOR[name](3, **arguments, threads=2)
    loop = gymnasium.make_vec(f"hpcgym/{name}-v0", 3, vectorization_mode="sync", **arguments)
    assert assert_alike(drive(many, 7, 60), drive(loop, 7, 60)) > 3
