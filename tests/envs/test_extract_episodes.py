"""Episodes of extracts begin with the jobs that run and wait, as in `simulate`; some by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from driving import (
    NAMES,
    SEEDS,
    SINGLE,
    SLOW,
    TINY,
    assert_same,
    go_on,
    on_nodes,
    play,
    random_acts,
    rules,
    terms_of,
    units_on_nodes,
    visible_acts,
    whole,
)
from mistakes import mistakes_of, why_not
from node_strategies import ALLOCATIONS
from strategies import workloads
from test_schedules import PLAIN, extract_of

import hpcgym
from hpcgym import simulate, validate_schedule
from hpcgym.baselines.policies import Baseline
from hpcgym.envs.core.infos import means_of, state_of
from hpcgym.machine import Cluster
from hpcgym.workload import Workload

names = pytest.mark.parametrize("name", NAMES)


def make(name: str, workload: Workload, **options: Any) -> Any:
    if name == "MixedPolicy":
        options.setdefault("interval", "pass")
    return SINGLE[name](**whole(workload, **options))


def assert_metrics(env: Any, expected: Any) -> None:
    result = env.result()
    validate_schedule(result)
    assert result.start.tolist() == expected.start.tolist()
    # an agent may order anew at each pass: it promises less than a rule whose order stands
    promised = dict.fromkeys(("promises_broken", "max_promise_delay_s"), 0)
    assert {**result.metrics, **promised} == pytest.approx(
        {**expected.metrics, **promised}, rel=1e-12, nan_ok=True
    )
    means = means_of(state_of(env.simulations, 0))
    for metric, value in means.items():
        assert value == pytest.approx(expected.metrics[metric], rel=1e-9, abs=1e-6), metric


# --- As in `simulate` -----------------------------------------------------------------------------


@pytest.mark.slow
@costly
@settings(SLOW, max_examples=200)
@given(
    st.data(),
    on_nodes(),
    PLAIN,
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
    given_rules = {**given_rules, "passes": "per-timestamp", "policy_estimate": "requested"}
    given_rules["allocation"] = data.draw(st.sampled_from(ALLOCATIONS))
    if goes_on:
        long = simulate(workload, "easy", cluster=cluster, allocation="worst-fit")
        times = sorted({*long.start.tolist(), *long.end.tolist()})
        part: Any = hpcgym.continued(long, data.draw(st.sampled_from(times)))
        assume(not part.initial.running.all())
    else:
        part = extract_of(data, workload)
    arguments = {"window": 64, "cluster": cluster, **given_rules}
    if why := why_not(simulate, part, policy=policy, cluster=cluster, **given_rules):
        assert why_not(make, name, part, **arguments) == why
        return
    expected = simulate(part, policy=policy, cluster=cluster, **given_rules)
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


@pytest.mark.slow
@settings(SLOW, max_examples=150)
@given(
    st.data(), workloads(max_jobs=25), rules(), st.sampled_from(NAMES), st.integers(0, 15), SEEDS
)
def test_a_hidden_future_counts_what_is_known(
    data: Any, workload: Any, given_rules: Any, name: str, decisions: int, seed: int
) -> None:
    """The sums of a snapshot that hides, and of what follows, are the metrics of its schedule."""
    part = extract_of(data, workload)
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


# --- By hand --------------------------------------------------------------------------------------


@names
def test_by_hand(name: str) -> None:
    part = TINY.extract(100)
    env = make(name, part, window=3, reward=["bsld", "wait", "energy"])
    act = {"JobSelection": 0, "QueueOrdering": np.array([1.0, 0.5, 0.0]), "MixedPolicy": None}[name]
    if act is None:
        act = np.array([0, 0, 1, 0, 0, 0.0])  # by waiting
    steps = play(env, lambda *_: act)
    first = steps[0]
    # nothing fits before job 1 ends at 110 s; it was to run to 150 s, and job 0 runs to 300 s
    assert first.info["time_s"] == 110
    assert first.info["window"].tolist() == [2, 3, -1]
    free = first.observation["cluster"][:4]
    assert free.tolist() == [0.5, 0.5, 1.0, 1.0]  # now, in 60 s, 10 min, 1 h
    # up to then of 2 x 100 and 2 x 10 processor seconds of those that ran, which is no reward
    busy, cluster = 220, env.options.cluster
    joules = busy * cluster.busy_power_w + (4 * 10 - busy) * cluster.idle_power_w
    assert terms_of(first.info) == {"bsld": 0, "wait_s": 0, "energy_j": joules}
    result = env.result()
    assert result.start.tolist() == [0, 50, 110, 140, 200]
    assert result.decided.tolist() == [False, False, True, True, True]
    # waits 60, 50, 80 of runs 30, 40, 10: 90/30, 90/40, 90/10
    bsld, wait, energy = sum(step.reward for step in steps[1:])
    assert -bsld == pytest.approx((3 + 2.25 + 9) / 3)
    assert -wait == pytest.approx(190 / 3 / 3600)
    # from 110 s to 210 s: 60, 40 and 40 more
    busy = 140
    joules = busy * cluster.busy_power_w + (4 * 100 - busy) * cluster.idle_power_w
    joules_told = sum(step.info["reward_energy_j"] for step in steps[1:])
    assert joules_told == pytest.approx(joules)
    assert -energy == pytest.approx(joules / (4 * cluster.busy_power_w * 21))  # 100 s to 120 s
    assert env.metrics()["jobs"] == 3
    assert env.metrics()["utilization"] == pytest.approx(360 / (4 * 110))


def test_per_event_the_first_pass_is_before_the_submissions_of_that_second() -> None:
    """Job 0 runs to 201 s; 1 waits at 200 s, and is asked for alone before 2 and 3 come."""
    columns = {"submit_time": [180, 180, 200, 200], "wait_time": [1, 20, -1, -1]}
    columns |= {name: [20] * 4 for name in ("run_time", "requested_time")}
    columns |= {"requested_processors": [1] * 4}
    part = Workload.from_columns(columns, processors=1).extract(200)
    env = make("JobSelection", part, window=2, passes="per-event", reservation="kept")
    # the last that came, whenever it is asked
    steps = play(env, lambda _, __, info: int(info["action_mask"].sum()) - 1)
    seen = [(step.info["time_s"], step.info["window"].tolist()) for step in steps[:-1]]
    assert seen == [(200, [1, -1]), (201, [2, 3]), (221, [2, -1])]
    assert env.result().start.tolist() == [181, 201, 241, 221]


def test_intervals_begin_with_the_extract() -> None:
    """Weights for an hour, from 100 s on, with the queue in sight."""
    env = make("MixedPolicy", TINY.extract(100), window=3, interval="1h")
    _, info = env.reset()
    assert info["time_s"] == 100
    assert info["window"].tolist() == [2, 3, -1]
    assert env.queued().tolist() == [2, 3]
    assert env.running().tolist() == [0, 1]
    assert env.free == 0


@names
def test_ends_of_running_jobs_are_not_seen(name: str) -> None:
    """What is seen of them is predicted, by what they have requested; rewards tell all."""
    seen = []
    for run in ([200, 60, 30, 40, 10], [150, 60, 35, 7, 10]):
        env = make(name, TINY.with_columns(run_time=run).extract(100), window=3)
        observation, info = env.reset()
        seen.append((observation, info["window"]))
        view = env.pass_view()
        assert (view.running_job.tolist(), view.running_end.tolist()) == ([0], [300])
        assert view.wait.tolist() == [60, 20]
    assert_same(*seen)


def test_an_extract_with_an_empty_machine() -> None:
    """Nothing runs or waits: its episode is that of its jobs, but for what has been learned."""
    part = TINY.with_columns(user_id=[1] * 5, submit_time=[0, 10, 50, 90, 900]).extract(500)
    assert part.initial is not None
    assert (len(part), len(part.initial.past)) == (1, 4)
    for name in NAMES:
        env = make(name, part, estimate="ave2", window=2, reward="energy")
        steps = play(env, random_acts(env.action_space, 0))
        assert steps[0].info["time_s"] == 900
        expected = simulate(part, estimate="ave2")
        assert env.result().predicted_run_time.tolist() == expected.predicted_run_time.tolist()
        assert_metrics(env, expected)


def test_what_is_drawn_begins_with_the_extract() -> None:
    env = make("JobSelection", TINY.extract(100), window=3, render_mode="ansi")
    env.reset()
    lines = env.render().splitlines()
    assert lines[1] == "10 s since the episode began, at 110 s: 2 queued, 1 running, 1 ended"
    behind = lines[lines.index("Metrics so far") + 1 :]
    metrics = {line[2:42].strip(): line[42:].strip() for line in behind}
    assert metrics["mean bounded slowdown, ended jobs"] == "-"
    assert metrics["mean wait, started jobs"] == "-"
    assert metrics["longest wait so far"] == "1 min"
    assert metrics["mean utilization"] == "100.0 %"
    assert float(metrics["mean queue length"]) == 2


# --- What is refused ------------------------------------------------------------------------------


def test_rows_of_an_extract() -> None:
    """The first ones are an episode, if they have all jobs that run or wait, and another job."""
    part = TINY.extract(100)
    env = make("QueueOrdering", part, window=4)
    for options in ({"slice": "rows 0:4"}, {"start": 0, "jobs": 4}):
        play(env, lambda *_: np.zeros(4), options=options)
        assert_metrics(env, simulate(part.take(slice(0, 4)), "easy"))
    play(env, lambda *_: np.zeros(4), options={"slice": "whole"})
    assert_metrics(env, simulate(part, "easy"))


test_mistakes = mistakes_of(globals())
