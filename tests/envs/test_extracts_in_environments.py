"""Episodes of extracts begin with the jobs that run and wait, as in `simulate`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from driving import (
    INTERVALS,
    KINDS,
    NAMES,
    SEEDS,
    SINGLE,
    SIX_WEIGHTS,
    SLOW,
    assert_as_slowly,
    assert_same,
    go_on,
    play,
    random_acts,
    rules,
    visible_acts,
    whole,
)
from extract_driving import assert_metrics, busy_log, from_the_middle, make
from extract_strategies import parts_of, recorded
from node_driving import RULES, places, units_on_nodes
from strategies import workloads

import hpcgym
from hpcgym import HpcgymError, simulate
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
@settings(SLOW, max_examples=400)
@given(st.data(), KINDS, workloads(max_jobs=30), PLAIN, SEEDS, SIX_WEIGHTS, INTERVALS)
def test_any_choices(
    data: st.DataObject,
    kind: str,
    workload: Workload,
    given_rules: dict[str, Any],
    seed: int,
    weights: list[Any],
    interval: Any,
) -> None:
    part = extract_of(data, workload)
    if part is not None:
        more = {"seed": seed, "weights": weights, "interval": interval}
        assert_as_slowly(kind, part, whole(part, **given_rules), given_rules, **more)


# --- Rewards and snapshots ------------------------------------------------------------------------


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
