"""Episodes of extracts begin with the jobs that run and wait: as in `simulate`, and by hand."""

from __future__ import annotations

import re
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
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
from extract_strategies import parts_of, recorded
from gymnasium.utils.env_checker import check_env
from hypothesis import assume, given, settings
from hypothesis import strategies as st
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
from hpcgym.cluster import Cluster, NodeGroup, NodePower
from hpcgym.envs.core.schedules import means_of, state_of
from hpcgym.errors import WorkloadError
from hpcgym.evaluation import evaluate
from hpcgym.scheduler.policies import FairShare
from hpcgym.workload import Workload
from hpcgym.workload.codes import with_codes

names = pytest.mark.parametrize("name", NAMES)


def extract_of(data: st.DataObject, workload: Workload) -> Workload | None:
    """An extract in which there is something to decide; None if none was found."""
    part = parts_of(data, recorded(data, workload), {"estimate": "requested"})[0]
    if part is not None and part.initial is not None and part.initial.running.all():
        with pytest.raises(HpcgymError, match="so that there is nothing to decide"):
            SINGLE["QueueOrdering"](**whole(part))
        return None
    return part


def make(name: str, workload: Workload, *number: int, **options: Any) -> Any:
    if name == "MixedPolicy":
        options.setdefault("interval", "pass")
    return (VECTOR if number else SINGLE)[name](*number, **whole(workload, **options))


def assert_metrics(env: Any, expected: Any) -> None:
    found = env.result()
    validate_schedule(found)
    assert found.start.tolist() == expected.start.tolist()
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-12, nan_ok=True)
    means = means_of(env.simulations, state_of(env.simulations, 0))
    for metric, value in means.items():
        assert value == pytest.approx(expected.metrics[metric], rel=1e-9, abs=1e-6), metric


# --- As in `simulate` -----------------------------------------------------------------------------


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


def busy_log(cluster: Cluster | None = None) -> Workload:
    return simulate(SMALL, "easy", cluster=cluster).as_workload()


def from_the_middle(log: Workload) -> Workload:
    return log.extract(int(np.quantile(log.submit_time, 0.4))).take(slice(0, 80), name="part")


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


@settings(SLOW, max_examples=100)
@given(
    st.data(), workloads(max_jobs=25), rules(), st.sampled_from(NAMES), st.integers(0, 15), SEEDS
)
def test_what_follows_a_snapshot_follows_again(
    data: st.DataObject,
    workload: Workload,
    given_rules: dict[str, Any],
    name: str,
    decisions: int,
    seed: int,
) -> None:
    part = extract_of(data, workload)
    if part is not None:
        env = make(name, part, window=6, **given_rules)
        found, expected = follows_again(env, seed, decisions)
        assert found.start.tolist() == expected.start.tolist()


@settings(SLOW, max_examples=150)
@given(
    st.data(), workloads(max_jobs=25), rules(), st.sampled_from(NAMES), st.integers(0, 15), SEEDS
)
def test_a_hidden_future_counts_what_is_known(
    data: st.DataObject,
    workload: Workload,
    given_rules: dict[str, Any],
    name: str,
    decisions: int,
    seed: int,
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


# --- By hand --------------------------------------------------------------------------------------

#: On 4 processors at 100 s: 0 and 1 run, to 200 s and 110 s; 2, of two, and 3, of one, wait.
TINY = Workload.from_columns(
    {
        "submit_time": [0, 10, 50, 90, 120],
        "wait_time": [0, 40, 60, 20, 0],
        "run_time": [200, 60, 30, 40, 10],
        "requested_time": [300, 100, 30, 50, 10],
        "requested_processors": [2, 2, 2, 1, 4],
    },
    processors=4,
    name="tiny",
)


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
    assert first.info["time"] == 110
    assert first.info["window"].tolist() == [2, 3, -1]
    free = first.observation["cluster"][:4]
    assert free.tolist() == [0.5, 0.5, 1.0, 1.0]  # now, in 60 s, 10 min, 1 h
    assert first.info["reward_terms"] == {"bsld": 0, "wait_s": 0, "energy_j": 0}
    result = env.result()
    assert result.start.tolist() == [0, 50, 110, 140, 200]
    assert result.decided.tolist() == [False, False, True, True, True]
    # waits 60, 50, 80 of runs 30, 40, 10: 90/30, 90/40, 90/10
    bsld, wait, energy = sum(step.reward for step in steps[1:])
    assert -bsld == pytest.approx((3 + 2.25 + 9) / 3)
    assert -wait == pytest.approx(190 / 3 / 3600)
    # from 100 s to 210 s: 2 x 100 and 2 x 10 of those that ran, 60, 40 and 40
    busy, cluster = 360, env.options.cluster
    joules = busy * cluster.busy_power_w + (4 * 110 - busy) * cluster.idle_power_w
    found = sum(step.info["reward_terms"]["energy_j"] for step in steps[1:])
    assert found == pytest.approx(joules)
    assert -energy == pytest.approx(joules / (4 * cluster.busy_power_w * 21))  # 100 s to 120 s
    assert steps[-1].info["metrics"]["jobs"] == 3
    assert steps[-1].info["metrics"]["utilization"] == pytest.approx(busy / (4 * 110))


def test_intervals_begin_with_the_extract() -> None:
    """Weights for an hour, from 100 s on, with the queue in sight."""
    env = make("MixedPolicy", TINY.extract(100), window=3, interval="1h")
    _, info = env.reset()
    assert info["time"] == 100
    assert info["window"].tolist() == [2, 3, -1]
    assert env.queued().tolist() == [2, 3]
    assert env.running().tolist() == [0, 1]
    assert env.free == 0


@names
def test_ends_of_running_jobs_are_not_seen(name: str) -> None:
    """What is seen of them is predicted, by what they have requested."""
    seen = []
    for run in ([200, 60, 30, 40, 10], [150, 60, 35, 7, 10]):
        env = make(name, TINY.with_columns(run_time=run).extract(100), window=3)
        seen.append(env.reset())
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
        assert steps[0].info["time"] == 900
        expected = simulate(part, estimate="ave2")
        assert env.result().predicted_run_time.tolist() == expected.predicted_run_time.tolist()
        assert_metrics(env, expected)


def test_what_is_drawn_begins_with_the_extract() -> None:
    env = make("JobSelection", TINY.extract(100), window=3, render_mode="ansi")
    env.reset()
    lines = env.render().splitlines()
    assert lines[1] == "time        day 0, 00:00:10 since the episode began; 110 s"
    assert lines[3] == "jobs        2 queued, 1 running, 1 ended"
    behind = lines[lines.index("Metrics so far") + 1 :]
    metrics = {line[2:42].strip(): line[42:].strip() for line in behind}
    assert metrics["mean bounded slowdown, ended jobs"] == "-"
    assert metrics["mean wait, started jobs"] == "-"
    assert metrics["longest wait so far"] == "1 min"
    assert metrics["mean utilisation"] == "100.0 %"
    assert float(metrics["mean queue length"]) == 2


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"^episodes='windows' begin with an empty machine, and tiny from 100 with the jobs"
             r" that run at 100 s: use episodes='whole', or windows of the whole trace$"),
        ({"episodes": "weeks"}, "^episodes='weeks' begin with an empty machine"),
        ({"episodes": "whole", "part": "test"}, "^part='test': an episode of tiny from 100 begins"
                                                " with all jobs that run or wait at 100 s, rows 0"),
        ({"episodes": "whole", "part": "train"}, "^part='train': an episode .*, rows 0 to 4$"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kinds", [SINGLE, VECTOR], ids=["single", "vector"])
def test_episodes_without_the_running_jobs(
    kinds: Any, arguments: dict[str, Any], message: str
) -> None:
    number = [2] if kinds is VECTOR else []
    with pytest.raises(HpcgymError, match=message):
        kinds["QueueOrdering"](*number, TINY.extract(100), **arguments)


def test_rows_of_an_extract() -> None:
    """The first ones are an episode, if they have all jobs that run or wait, and another job."""
    part = TINY.extract(100)
    env = make("QueueOrdering", part, window=4)
    for start, jobs in ((1, 3), (0, 3)):
        with pytest.raises(HpcgymError, match=f"^rows {start} to {start + jobs}: an episode of ti"):
            env.reset(options={"start": start, "jobs": jobs})
    for options in ({"slice": "rows 0:4"}, {"start": 0, "jobs": 4}):
        play(env, lambda *_: np.zeros(4), options=options)
        assert_metrics(env, simulate(part.take(slice(0, 4)), "easy"))
    play(env, lambda *_: np.zeros(4), options={"slice": "whole"})
    assert_metrics(env, simulate(part, "easy"))
    running = TINY.take(slice(0, 2), name="both").extract(100)
    with pytest.raises(
        HpcgymError, match=r"^part='all': all its jobs run at 100 s, when both from"
    ):
        make("QueueOrdering", running)


def test_machines_that_must_be_empty() -> None:
    part = TINY.extract(100)
    nodes = Cluster(groups=(NodeGroup("n", 4, {"core": 1}, NodePower(10.0, (50.0,))),))
    coded = with_codes(TINY, ["code-1"] * 5).extract(100)
    for arguments in (
        {"id": "hpcgym/PowerCap-v0", "workload": part, "cluster": nodes},
        {"id": "hpcgym/CoSchedule-v0", "workload": coded, "cluster": nodes},
        {"id": "hpcgym/JobSelection-v0", "workload": part, "shutdown_action": True},
        {"id": "hpcgym/QueueOrdering-v0", "workload": part,
         "cluster": Cluster(4, shutdown_after_s=5)},
    ):  # fmt: skip
        with pytest.raises(HpcgymError, match="do not go together"):
            gymnasium.make(**arguments, episodes="whole")
    with pytest.raises(HpcgymError, match=r"^shutdown_action and tiny from 100, which begins"):
        make("JobSelection", part, shutdown_action=True)
    with pytest.raises(HpcgymError, match=r"^evaluate begins each slice with an empty machine,"):
        evaluate("easy", part, episodes="whole", slices="all", budget=0)


def test_snapshots_are_of_the_same_beginning() -> None:
    """The jobs and rules are the same; what runs is not."""
    jobs, others = (TINY.with_columns(wait_time=[0, wait, 60, 20, 0]) for wait in (40, 45))
    one, same, other = (
        make("QueueOrdering", part.extract(100), window=3) for part in (jobs, jobs, others)
    )
    for env in (one, same, other):
        env.reset()
    same.restore(one.snapshot())
    with pytest.raises(HpcgymError, match="other jobs or arguments"):
        other.restore(one.snapshot())


@pytest.mark.parametrize("cluster", [None, MIXED], ids=["pool", "nodes"])
@names
def test_gymnasiums_check(name: str, cluster: Cluster | None) -> None:
    part = from_the_middle(busy_log(cluster)).take(slice(0, 30), name="part")
    options: dict[str, Any] = {"estimate": "ave2", "cluster": cluster, "window": 5}
    env = gymnasium.make(f"hpcgym/{name}-v0", **whole(part, **options), disable_env_checker=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        play(env, random_acts(env.action_space, 0))
