"""CoSchedule: its schedules, its returns and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    SHARED_NODES,
    SIXTEEN,
    SLOW,
    Step,
    assert_same,
    play,
    random_acts,
    terms_of,
    whole,
    with_files,
)
from few_jobs import few_jobs

import hpcgym
from hpcgym.envs import CoSchedule
from hpcgym.envs.render import look
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.machine.speedups import Heatmap
from hpcgym.workload import Workload, assign_codes, load_workload

#: a is fast beside b, b is slow beside a, and both lose beside their own kind.
TWO = Heatmap(("a", "b"), np.array([[0.5, 2.0], [0.8, 0.4]]), alone=np.array([1.25, 1.0]))


def jobs_of(
    codes: list[str], run: list[int], processors: list[int], submit: list[int], size: int = 16
) -> Workload:
    workload = few_jobs(size, submit, run, processors, name="by hand")
    return hpcgym.workload.with_codes(workload, codes)


def pair(env: Any, i: int, j: int = 0) -> int:
    """The action that starts visible job i, beside neighbour j - 1 unless j is 0."""
    return int(i * (env.unwrapped.neighbours + 1) + j)


@st.composite
def workloads(draw: st.DrawFn, codes: int = 3, most: int = 12) -> Workload:
    n = draw(st.integers(1, most))
    times = st.lists(st.integers(1, 400), min_size=n, max_size=n)
    columns = {
        "submit_time": np.cumsum(draw(st.lists(st.sampled_from([0, 1, 50, 300]), min_size=n,
                                               max_size=n))),
        "run_time": draw(times),
        "requested_time": draw(times),
        "requested_processors": draw(st.lists(st.integers(1, 32), min_size=n, max_size=n)),
    }  # fmt: skip
    names = [f"code-{k + 1}" for k in range(codes)]
    workload = Workload.from_columns(columns, processors=32, name="drawn")
    return assign_codes(workload, names, seed=draw(st.integers(0, 99)))


SPEEDUPS = "generated:codes=3,mean=1.1,spread=0.3,seed=1"
OPTIONS = st.fixed_dictionaries(
    {
        "allocation": st.sampled_from(["half-socket", "part:3", "compact", "spread"]),
        "partners": st.sampled_from(["best", "fill", "first"]),
        "estimate": st.sampled_from(["requested", "double-requested", "clairvoyant"]),
        "window": st.sampled_from([1, 3, 12]),
        "neighbours": st.sampled_from([1, 2, 8]),
        "cluster": st.sampled_from(["4x2x4", "3x1x11"]),
    }
)
GIVEN = {"speedups": SPEEDUPS}


def seen(steps: list[Step]) -> list[Any]:
    """What an agent may look at; jobs in the future change names, not rows."""
    return [
        (s.observation, s.info["window"], s.info["neighbour_rows"], s.info["time_s"]) for s in steps
    ]


def waiting(env: Any) -> int:
    return int(env.action_space.n) - 1


# --- Schedules ------------------------------------------------------------------------------------


def in_order(number: int, observation: Any, info: dict[str, Any]) -> int:
    """The first that waits, by the rule, or nobody."""
    mask = info["action_mask"]
    return 0 if mask[0] else len(mask) - 1


def whoever_fits(number: int, observation: Any, info: dict[str, Any]) -> int:
    return int(np.flatnonzero(info["action_mask"])[0])


def assert_same_schedule(ours: Any, other: Any) -> None:
    for name in ("start_ticks", "end_ticks", "shape", "code", "compact_s"):
        np.testing.assert_array_equal(
            getattr(ours.coschedule, name), getattr(other.coschedule, name)
        )
    for a, b in zip(ours.allocation, other.allocation, strict=True):
        np.testing.assert_array_equal(a, b)
    assert ours.metrics == pytest.approx(other.metrics, rel=1e-12, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"allocation": "spread"}, {"allocation": "compact"}, {"allocation": "part:3"},
     {"partners": "fill"}, {"partners": "first"}, with_files(),
     {**with_files(), "allocation": "compact"}],
    ids=lambda options: " ".join(map(str, options)),
)  # fmt: skip
@pytest.mark.parametrize(
    ("act", "backfill"), [(in_order, "none"), (whoever_fits, "fill")], ids=["none", "fill"]
)
def test_a_schedulers_order_makes_its_schedule(act: Any, backfill: str, options: Any) -> None:
    given = {"cluster": SHARED_NODES, "window": 120, **options}
    arguments = whole(load_workload(SIXTEEN), **given)
    env = CoSchedule(**arguments)
    steps = play(env, act)
    rules = {**env.scheduler_rules, "backfill": backfill}
    machine = {"cluster": env.options.cluster, "speedups": env.speedups}
    expected = hpcgym.simulate(env.episode_workload, "fcfs", **machine, **rules)
    assert_same_schedule(env.result(), expected)
    assert "work" in hpcgym.validate_schedule(env.result())
    assert env.metrics() == pytest.approx(expected.metrics, nan_ok=True)
    assert steps[-1].info["episode_makespan_s"] == pytest.approx(expected.metrics["makespan_s"])


def test_a_pair_by_hand() -> None:
    """Two nodes of 2 sockets of 4 cores: jobs of 8 processors take half of both.

    Job 0 (a) runs alone at 1.25. At 0 job 1 (b) starts beside it: a at 2, b at 0.8. a ends at
    100 / 2 = 50; b has done 40 of 100, and the other 60 take 60 s at 1.
    """
    workload = jobs_of(["a", "b", "b"], [100, 100, 30], [8, 8, 8], [0, 0, 0])
    env = CoSchedule(
        workload, speedups=TWO, cluster="2x2x4", episodes="whole", window=3, neighbours=2
    )
    _, info = env.reset()
    assert info["time_s"] == 0.0
    np.testing.assert_array_equal(info["window"], [0, 1, 2])
    # no neighbours, and nothing runs: waiting is not possible
    np.testing.assert_array_equal(info["action_mask"], [1, 0, 0] * 3 + [0])
    _, _, _, _, info = env.step(pair(env, 0))
    np.testing.assert_array_equal(info["neighbour_rows"], [0, -1])
    np.testing.assert_array_equal(info["action_mask"], [1, 1, 0] * 2 + [0] * 3 + [1])
    _, reward, _, _, info = env.step(pair(env, 0, 1))
    # both nodes are full: the next question comes when a has ended, after 50 s
    assert info["time_s"] == 50.0
    assert terms_of(info) == {"bsld": 1.0, "wait_s": 0.0, "energy_j": 358 * 16 * 50.0,
                                    "elapsed_s": 50.0}  # fmt: skip
    assert reward == pytest.approx(-1 / 3)
    np.testing.assert_array_equal(info["neighbour_rows"], [1, -1])
    _, _, ended, _, info = env.step(waiting(env))
    assert not ended
    assert info["time_s"] == 110.0
    _, _, ended, _, info = env.step(pair(env, 0))
    assert ended
    np.testing.assert_array_equal(env.result().end, [50.0, 110.0, 140.0])
    assert env.result().outside


def test_what_is_seen_of_a_pair_by_hand() -> None:
    workload = jobs_of(["a", "b", "b"], [100, 100, 3600], [8, 32, 5], [0, 0, 0], 32)
    env = CoSchedule(
        workload, speedups=TWO, cluster="4x2x4", episodes="whole", window=3, neighbours=2
    )
    env.reset()
    observation, *_ = env.step(pair(env, 0))
    seen = {name: np.asarray(values, np.float64) for name, values in observation.items()}
    # 2 of 4 nodes have a job; 6 of 8 parts are free, 2 jobs wait, 1 runs, nobody is hidden
    np.testing.assert_allclose(seen["machine"], [0.5, 0.5, 0.75, 2 / 5, 0, 1 / 3, 0, 0])
    half = [s / (s + 1) for s in (0.6, 1.0)]  # b on average, and alone
    hundred = 100 / 3700
    # job 1 needs 8 parts, more than there are nodes: it is placed compact, on 4 nodes
    np.testing.assert_allclose(seen["jobs"][0], [1, hundred, 0, *half, 0, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(seen["jobs"][1], [0.5, 0.5, 0, *half, 0, 1, 1], rtol=1e-6)
    np.testing.assert_array_equal(seen["jobs"][2], np.zeros(8))
    rate = 1.25 / 2.25
    np.testing.assert_allclose(
        seen["neighbours"], [[0.5, 0.5, hundred, rate, rate], [0] * 5], rtol=1e-6
    )
    np.testing.assert_array_equal(seen["pairs"][0], np.zeros((2, 2)))
    np.testing.assert_allclose(seen["pairs"][1], [[0.8 / 1.8, 2 / 3], [0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(seen["mask"], [0, 0, 0, 1, 1, 0, 0, 0, 0, 1])


def test_the_neighbours_nodes_come_first() -> None:
    """Jobs of b avoid each other. By the rule a third job goes beside the first of them."""
    workload = jobs_of(["b", "b", "a"], [500] * 3, [4] * 3, [0] * 3)
    options = {"speedups": TWO, "cluster": "2x2x4", "episodes": "whole", "window": 4}
    by_rule, by_name = CoSchedule(workload, **options), CoSchedule(workload, **options)
    for env, j in ((by_rule, 0), (by_name, 2)):
        env.reset()
        for action in (pair(env, 0), pair(env, 0, 0), pair(env, 0, j)):
            env.step(action)
    for env, nodes in ((by_rule, [0, 1, 0]), (by_name, [0, 1, 1])):
        allocation = env.result().allocation
        assert allocation is not None
        assert allocation.node.tolist() == nodes


@pytest.mark.parametrize("partners", ["best", "fill", "first"])
def test_whoever_is_named_is_beside(partners: str) -> None:
    env = CoSchedule(**whole(load_workload(SIXTEEN), cluster=SHARED_NODES, partners=partners))
    _, info = env.reset()
    rng, ended, named = np.random.default_rng(0), False, 0
    while not ended:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        job, beside = -1, -1
        if action < waiting(env):
            i, j = divmod(action, env.neighbours + 1)
            job, beside = info["window"][i], info["neighbour_rows"][j - 1] if j else -1
        now = info["time_s"]
        _, _, ended, _, info = env.step(action)
        result = env.result()
        if job >= 0:
            assert result.start[job] == now
        if beside >= 0:
            first, node, _ = result.allocation  # type: ignore[misc]
            nodes_of_job, other = (set(node[first[j] : first[j + 1]]) for j in (job, beside))
            assert nodes_of_job & other
            named += 1
    assert named > 50


@settings(SLOW, max_examples=60)
@given(workload=workloads(), options=OPTIONS, seed=st.integers(0, 1000))
def test_scores_are_pairs_one_after_the_other(workload: Workload, options: Any, seed: int) -> None:
    """By the rule of the page, worked out with actions of single pairs."""
    by_scores = CoSchedule(action="scores", **whole(workload, **GIVEN, **options))
    by_pairs = CoSchedule(**whole(workload, **GIVEN, **options))
    rng, width = np.random.default_rng(seed), by_pairs.neighbours + 1
    observation, info = by_scores.reset()
    assert_same((observation, info), by_pairs.reset())
    ended = False
    while not ended:
        action = rng.uniform(-1, 0.5, by_scores.action_space.shape).astype(np.float32)
        window, beside = info["window"], info["neighbour_rows"]
        scores = {
            (window[i], beside[j - 1] if j else -1): action[i * width + j]
            for i in range(len(window))
            for j in range(width)
            if j == 0 or beside[j - 1] >= 0
        }
        observation, _, ended, _, info = by_scores.step(action)
        while by_pairs.queued().size and (ended or by_pairs.time < by_scores.time):
            by_pairs.step(best_pair(by_pairs, scores))
        # the next question may be at the same time
        while by_pairs.queued().size > by_scores.queued().size:
            by_pairs.step(best_pair(by_pairs, scores))
    assert_same_schedule(by_scores.result(), by_pairs.result())


def best_pair(env: CoSchedule, scores: dict[Any, float]) -> int:
    """The pair of the highest of these scores that can be started, or waiting."""
    info = env._info()
    possible = {}
    for action in np.flatnonzero(info["action_mask"][:-1]).tolist():
        i, j = divmod(action, env.neighbours + 1)
        named = info["window"][i], info["neighbour_rows"][j - 1] if j else -1
        if named in scores:
            possible[action] = scores[named]
    best = max(possible, key=lambda action: (possible[action], -action), default=-1)
    waits = info["action_mask"][-1] == 1 and (best < 0 or possible[best] <= 0)
    return len(info["action_mask"]) - 1 if waits else best


POWERED = Cluster(
    groups=(
        NodeGroup("old", 3, {"core": 24}, NodePower(90.0, (350.0,), off_w=10.0), sockets=2),
        NodeGroup("new", 5, {"core": 24}, sockets=2),
    )
)


@pytest.mark.parametrize("cluster", [SHARED_NODES, POWERED], ids=["flat", "nodes"])
def test_returns_are_metrics(cluster: Any) -> None:
    """Beside what the conformance tests look at: the makespan, and energy by the most there is."""
    env = CoSchedule(SIXTEEN, jobs=50, window=5, cluster=cluster, reward=["energy", "throughput"])
    steps = play(env, random_acts(env.action_space, 1), seed=5)
    metrics, jobs = env.result().metrics, env.episode_workload
    work = float((jobs.requested_processors * jobs.run_time).sum()) / 192
    bound = max(work, float(jobs.submit_time[-1] - jobs.submit_time[0]))
    greatest = 3 * 350.0 + 5 * 24 * 358.0 if cluster is POWERED else 192 * 358.0
    expected = [metrics["energy_j"] / (bound * greatest), metrics["makespan_s"] / bound]
    np.testing.assert_allclose(-sum(step.reward for step in steps[1:]), expected, rtol=1e-9)
    elapsed = sum(step.info["reward_elapsed_s"] for step in steps[1:])
    assert elapsed == pytest.approx(metrics["makespan_s"])


# --- What it refuses ------------------------------------------------------------------------------


def test_what_is_drawn_is_in_seconds() -> None:
    env = CoSchedule(render_mode="ansi")
    env.reset(seed=0)
    for _ in range(60):
        env.step(int(np.flatnonzero(env.action_masks())[0]))
    view = look(env.simulations, "CoSchedule")
    assert (view.schedule.wait >= 0).all()
    assert (view.schedule.end[view.running] == view.now).all()
    assert view.drawn()[0].end.max() > view.now
    assert view.schedule.wait.max() < view.now - view.first


# --- What cannot be known -------------------------------------------------------------------------


@settings(SLOW, max_examples=60)
@given(data=st.data(), workload=workloads(), options=OPTIONS, seed=st.integers(0, 1000))
def test_nothing_is_seen_before_it_has_been(
    data: Any, workload: Workload, options: Any, seed: int
) -> None:
    options = {**options, "estimate": data.draw(st.sampled_from(["requested", "double-requested"]))}
    env = CoSchedule(**whole(workload, **GIVEN, **options))
    acts = random_acts(env.action_space, seed)
    steps = play(env, acts)
    known = data.draw(st.integers(0, max(len(steps) - 2, 0)))
    now = steps[known].info["time_s"]
    other = altered(env, now, data.draw(st.integers(0, 1000)))
    again = CoSchedule(**whole(other, **GIVEN, **options))
    assert_same(seen(play(again, acts, known)), seen(steps[: known + 1]))


def altered(env: CoSchedule, now: float, seed: int) -> Workload:
    """Jobs that do the same up to ``now`` [s]: later ends and submissions are others."""
    rng, jobs, result = np.random.default_rng(seed), env.episode_workload, env.result()
    n = int((jobs.submit_time <= now).sum())
    run, columns = result.coschedule, {}
    assert run is not None
    for name in ("submit_time", "run_time", "requested_time", "requested_processors", "executable"):
        columns[name] = jobs.columns[name].tolist()[:n]
    for j in range(n):
        if run.end_ticks[j] > now * run.ticks:
            # no less than it has run, at its greatest rate
            least = int(max(now - result.start[j], 0) * env.speedups.filled.max()) + 2
            if result.start[j] >= now:
                least = 1
            if least < columns["requested_time"][j]:
                most = columns["requested_time"][j] + 50
                columns["run_time"][j] = int(rng.integers(least, most))
    for _ in range(int(rng.integers(0, 4))):
        columns["submit_time"].append(int(max(now, columns["submit_time"][-1])) + 1)
        columns["run_time"].append(int(rng.integers(1, 400)))
        columns["requested_time"].append(int(rng.integers(1, 400)))
        columns["requested_processors"].append(int(rng.integers(1, 33)))
        columns["executable"].append(int(rng.integers(1, 4)))
    return Workload.from_columns(columns, processors=32, name="drawn", header=dict(jobs.header))
