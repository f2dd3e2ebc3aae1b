"""Environments on machines of nodes: the schedules of ``simulate``, what is seen, what is not."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import (
    NAMES,
    SINGLE,
    SLOW,
    assert_same,
    go_on,
    label,
    play,
    random_acts,
    visible_acts,
    whole,
)
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from node_strategies import machines, workloads_for
from strategies import WEIGHTS
from test_hidden_future import horizon, known
from test_vector import MODES, N, assert_alike, drive
from test_vector import make as make_vector

import hpcgym
from hpcgym import Cluster, HpcgymError, simulate
from hpcgym.baselines.policies import Baseline, find_baseline
from hpcgym.cluster import NodeGroup
from hpcgym.envs.core.options import USUAL_FEATURES
from hpcgym.workload import Workload, load_workload

ids = pytest.mark.parametrize("name", NAMES)

#: Jobs with GPUs and MICs wait in it, most of them on too few free nodes of their kind.
EURORA = load_workload("eurora:jobs=300,seed=1,load=3")

#: The rules that environments have on nodes.
RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "easy", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2", "ave2"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
        "allocation": st.sampled_from(["first-fit", "best-fit", "worst-fit"]),
    }
)
POLICIES = st.sampled_from(["fcfs", "sjf", "saf", "f1", "wfp3", "lexp", "unicef"])


@st.composite
def places(draw: st.DrawFn) -> tuple[Cluster, Workload]:
    """A small machine of nodes, and jobs that fit it."""
    cluster = draw(machines())
    return cluster, draw(workloads_for(cluster))


def make(name: str, workload: Any = EURORA, **options: Any) -> Any:
    arguments = {"jobs": 40, "window": 9, "cluster": "eurora", **options}
    if name == "MixedPolicy":
        arguments.setdefault("interval", 4)
    return SINGLE[name](workload, **arguments)


def units_on_nodes(result: Any) -> list[dict[int, int]]:
    """Return of each job node -> units on it."""
    first, node, units = (part.tolist() for part in result.allocation)
    return [dict(zip(node[a:b], units[a:b], strict=True)) for a, b in pairwise(first)]


def assert_schedule(found: Any, expected: Any) -> None:
    assert found.start.tolist() == expected.start.tolist()
    assert units_on_nodes(found) == units_on_nodes(expected)
    assert found.predicted_run_time.tolist() == expected.predicted_run_time.tolist()


def waits_on_node(env: Any) -> bool:
    """Tell whether some job waits for which there are cores enough, but not on the right nodes."""
    rows = env.queued()
    cores = env.episode_workload.requested_processors[rows]
    return bool(((cores <= env.free) & ~env.pass_view().fits()).any())


# --- What Gymnasium expects -----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"observation": "flat", "allocation": "best-fit"},
        {"backfill": "none", "allocation": "random:3"},
        {"estimate": "ave2", "correction": "incremental", "allocation": "worst-fit"},
        {"reward": "energy"},
    ],
    ids=str,
)
@ids
def test_gymnasiums_check(name: str, options: dict[str, Any]) -> None:
    more = {"interval": 4} if name == "MixedPolicy" else {}
    env = gymnasium.make(
        f"hpcgym/{name}-v0", workload=EURORA, jobs=25, window=9, cluster="eurora",
        disable_env_checker=False, **more, **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        steps = play(env, random_acts(env.action_space, 0))
    assert all(env.observation_space.contains(step.observation) for step in steps)
    assert all(isinstance(step.reward, float) for step in steps)
    result = env.unwrapped.result()
    assert result.cluster.nodes == 64
    assert steps[-1].info["metrics"]["mean_bsld"] == pytest.approx(np.mean(result.bsld))
    units = [sum(held.values()) for held in units_on_nodes(result)]
    assert units == env.unwrapped.episode_workload.units.tolist()


# --- Schedules ------------------------------------------------------------------------------


@settings(SLOW, max_examples=250)
@given(places(), RULES, POLICIES, st.sampled_from(["JobSelection", "QueueOrdering"]))
def test_baselines_make_the_schedules_of_simulate(
    place: tuple[Cluster, Workload], rules: dict[str, Any], policy: str, name: str
) -> None:
    cluster, workload = place
    expected = simulate(workload, policy=policy, cluster=cluster, **rules)
    env = SINGLE[name](**whole(workload, window=64, cluster=cluster, **rules))
    assert_schedule(driven(env, Baseline(policy)), expected)
    hpcgym.validate_schedule(env.result())


@settings(SLOW, max_examples=150)
@given(
    places(),
    RULES,
    st.sampled_from(["pass", "1h", "episode", 1, 3]),
    st.tuples(*[WEIGHTS] * 6),
)
def test_constant_weights_make_the_schedule_of_simulate(
    place: tuple[Cluster, Workload], rules: dict[str, Any], interval: Any, weights: Any
) -> None:
    cluster, workload = place
    env = SINGLE["MixedPolicy"](**whole(workload, interval=interval, cluster=cluster, **rules))
    play(env, lambda _, __, ___: np.array(weights))
    size = np.abs(np.array(weights)).sum()
    policy = tuple((np.array(weights) / size).tolist()) if size else "fcfs"
    assert_schedule(env.result(), simulate(workload, policy=policy, cluster=cluster, **rules))


def driven(env: Any, actor: Any) -> Any:
    """Return the schedule of a policy that acts."""
    observation, info = env.reset()
    actor.begin(env)
    ended = False
    while not ended:
        observation, _, ended, _, info = env.step(actor.act(observation, info))
    return env.result()


@pytest.mark.parametrize("allocation", ["first-fit", "best-fit"])
@pytest.mark.parametrize("policy", ["easy", "saf"])
@ids
def test_a_real_size(name: str, policy: str, allocation: str) -> None:
    """Of which the small machines above may be no picture: 64 nodes, four resources."""
    actor = find_baseline(policy)
    rules = {"allocation": allocation, "backfill_order": "spf", **actor.rules}
    env = make(name, window=256, episodes="whole", **rules, **_interval(name))
    result = driven(env, actor)
    order = {"policy": policy} if policy != "easy" else {}
    assert_schedule(result, simulate(EURORA, cluster="eurora", **order, **env.scheduler_rules))
    hpcgym.validate_schedule(result)
    pool = simulate(EURORA, processors=1024, **order, backfill_order=rules["backfill_order"])
    assert pool.start.tolist() != result.start.tolist()


def _interval(name: str) -> dict[str, Any]:
    return {"interval": "pass"} if name == "MixedPolicy" else {}


@pytest.mark.parametrize("allocation", ["first-fit", "best-fit", "worst-fit", "random:3"])
def test_an_episode_begins_with_empty_nodes(allocation: str) -> None:
    """Also after one that was left early, and behind another: what was held is forgotten."""
    env = make("JobSelection", window=64, backfill_order="fcfs", allocation=allocation)
    for seed in range(4):
        env.reset(seed=seed)
        for _ in range(8):
            env.step(0)
        result = driven(env, Baseline("saf"))
        expected = simulate(result.workload, "saf", cluster="eurora", **env.scheduler_rules)
        assert_schedule(result, expected)
        hpcgym.validate_schedule(result)


# --- Many at once ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"allocation": "best-fit", "estimate": "ave2"}], ids=str)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@ids
def test_native_and_loop_are_alike(name: str, mode: AutoresetMode, options: dict[str, Any]) -> None:
    given = {"workload": EURORA, "cluster": "eurora", **options}
    native, loop = (make_vector(name, mode, way, **given) for way in ("vector_entry_point", "sync"))
    assert native.observation_space == loop.observation_space
    ended = assert_alike(drive(native, 7, 60), drive(loop, 7, 60))
    assert ended > 2 * N
    assert_alike(drive(native, [3, 1, 4], 10), drive(loop, [3, 1, 4], 10))


@ids
def test_neighbours_do_not_matter(name: str) -> None:
    """Nodes are a row for each environment: random ones too are those of one alone."""
    options = {"workload": EURORA, "cluster": "eurora", "allocation": "random:5", "jobs": 20}
    mode = AutoresetMode.NEXT_STEP
    many = make_vector(name, mode, "vector_entry_point", **options)
    seen = drive(many, [11, 12, 13], 30)
    again = drive(many, [11, 12, 14], 30)
    for one, other in zip(seen, again, strict=True):
        for key in one[0]:
            assert one[0][key][:2].tolist() == other[0][key][:2].tolist()


def test_the_wrapper_for_stable_baselines() -> None:
    sb3 = pytest.importorskip("hpcgym.envs.sb3", reason="needs stable-baselines3")
    options = {"workload": EURORA, "cluster": "eurora", "jobs": 20, "window": 9}
    env = sb3.HpcVecEnv("hpcgym/JobSelection-v0", 2, **options)
    env.seed(3)
    observation = env.reset()
    for _ in range(40):
        assert observation["jobs"].shape == (2, 9, len(USUAL_FEATURES))
        observation, rewards, done, _ = env.step(np.zeros(2, np.int64))
        assert rewards.shape == done.shape == (2,)


# --- Snapshots ------------------------------------------------------------------------------


@settings(SLOW, max_examples=100)
@given(places(), RULES, st.sampled_from(NAMES), st.integers(0, 20), st.integers(0, 2**16))
def test_what_follows_a_snapshot_follows_again(
    place: tuple[Cluster, Workload],
    rules: dict[str, Any],
    name: str,
    decisions: int,
    seed: int,
) -> None:
    cluster, workload = place
    env = make(name, **whole(workload, cluster=cluster, window=6), **rules)
    acts = visible_acts(env, seed)
    begun = play(env, acts, most=decisions)
    assume(not begun[-1].terminated)
    saved = env.snapshot()
    first = go_on(env, acts, begun[-1].observation, begun[-1].info)
    result = env.result()
    for others in (seed + 1, seed):
        observation, info = env.restore(saved)
        assert_same(observation, begun[-1].observation)
        again = go_on(env, visible_acts(env, others), observation, info)
    assert_same(again, first)
    assert_schedule(env.result(), result)


@ids
def test_the_future_cannot_be_hidden_on_nodes(name: str) -> None:
    env = make(name)
    env.reset(seed=0)
    with pytest.raises(HpcgymError, match="hidden on pools of processors only"):
        env.snapshot(hide=True)
    other = make(name, allocation="best-fit")
    other.reset(seed=0)
    with pytest.raises(HpcgymError, match="other jobs or arguments"):
        other.restore(env.snapshot())


# --- What is seen ---------------------------------------------------------------------------


def free_now(env: Any) -> Any:
    """Return what each node has free, (N, R), worked out from the running jobs' nodes."""
    jobs, cluster = env.episode_workload, env.options.cluster
    free, held = cluster.capacity.tolist(), units_on_nodes(env.result())
    for row in env.running().tolist():
        for node, units in held[row].items():
            for r, resource in enumerate(cluster.resources):
                free[node][r] -= units * int(jobs.per_unit[resource][row])
    return free


def fits_on(free: Any, env: Any, row: int) -> bool:
    """Return whether the nodes together hold the units of a job."""
    jobs, room = env.episode_workload, 0
    demand = [int(jobs.per_unit[name][row]) for name in env.options.cluster.resources]
    for node in free:
        room += min(have // need for have, need in zip(node, demand, strict=True) if need)
    return room >= int(jobs.units[row])


def check_seen(env: Any, observation: Any, info: Any) -> list[bool]:
    """Compare what is seen of the machine with what is worked out; return what fits."""
    free = free_now(env)
    rows = info["window"][info["window"] >= 0].tolist()
    fits = [fits_on(free, env, row) for row in rows]
    column = USUAL_FEATURES.index("fits")
    shown = observation["jobs"][:, column].tolist()
    assert shown == [*map(float, fits), *[0.0] * (len(shown) - len(fits))]
    share = np.float32(sum(fits) / max(len(fits), 1))
    assert observation["queue"][5] == share
    assert sum(node[0] for node in free) == env.free
    view = env.pass_view()
    assert view.free.tolist() == free
    assert view.job.tolist() == env.queued().tolist()
    assert view.fits().tolist() == [fits_on(free, env, row) for row in view.job.tolist()]
    return fits


@settings(SLOW, max_examples=100)
@given(places(), RULES, st.sampled_from(NAMES[:2]), st.integers(0, 2**16))
def test_what_fits_is_seen(
    place: tuple[Cluster, Workload], rules: dict[str, Any], name: str, seed: int
) -> None:
    cluster, workload = place
    assume(any(need.any() for key, need in workload.per_unit.items() if key != "core")
           or (workload.per_unit["core"] > 1).any())  # fmt: skip
    env = make(name, **whole(workload, cluster=cluster, window=6), **rules)
    acts, steps = visible_acts(env, seed), 0
    observation, info = env.reset()
    ended = False
    while not ended:
        check_seen(env, observation, info)
        observation, _, ended, _, info = env.step(acts(steps, observation, info))
        steps += 1


@ids
def test_cores_enough_do_not_mean_that_a_job_fits(name: str) -> None:
    """The column tells of nodes: it differs from that of a pool."""
    env = make(name, jobs=120, window=40, **_interval(name))
    observation, info = env.reset(seed=0)
    ended, scattered = False, 0
    while not ended:
        check_seen(env, observation, info)
        scattered += waits_on_node(env)
        action = 0 if name == "JobSelection" else np.zeros(env.action_space.shape)
        observation, _, ended, _, info = env.step(action)
    assert scattered > 3


# --- Single cores ---------------------------------------------------------------------------


SERIAL = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")
FOUR = Cluster(groups=(NodeGroup("thin", 12, {"core": 4}), NodeGroup("fat", 2, {"core": 8})))


@pytest.mark.parametrize("estimate", ["requested", "ave2", "e-loss"])
@ids
def test_jobs_of_single_cores_run_as_on_a_pool(name: str, estimate: str) -> None:
    options = {"jobs": 60, "window": 6, "estimate": estimate}
    pool, nodes = make(name, SERIAL, cluster=None, **options), make(
        name, SERIAL, cluster=FOUR, allocation="worst-fit", **options
    )  # fmt: skip
    acts = visible_acts(pool, 0)
    one, other = play(pool, acts, seed=4), play(nodes, acts, seed=4)
    assert_same(one, other)
    result = nodes.result()
    assert result.start.tolist() == pool.result().start.tolist()
    assert pool.result().allocation is None
    units = [sum(held.values()) for held in units_on_nodes(result)]
    assert units == result.workload.requested_processors.tolist()
    hpcgym.validate_schedule(result)


@ids
def test_of_single_cores_the_future_can_be_hidden(name: str) -> None:
    env = make(name, SERIAL, cluster=FOUR, jobs=60)
    acts = visible_acts(env, 0)
    begun = play(env, acts, most=12, seed=4)
    observation, info = env.restore(env.snapshot(hide=True))
    assert_same(observation, begun[-1].observation)
    steps = go_on(env, acts, observation, info)
    assert steps[-1].terminated
    assert all(units_on_nodes(env.result()))


def test_jobs_that_have_not_started_have_no_nodes() -> None:
    for workload, cluster in ((EURORA, "eurora"), (SERIAL, FOUR)):
        env = make("JobSelection", workload, cluster=cluster)
        env.reset(seed=1)
        for _ in range(15):
            env.step(0)
        result = env.result()
        assert (result.start < 0).any()
        assert [bool(held) for held in units_on_nodes(result)] == (result.start >= 0).tolist()


# --- What is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["estimate", "policy_estimate"])
@pytest.mark.parametrize("value", ["e-loss", "user-ratio"])
@ids
def test_what_learns_is_refused_on_nodes(name: str, rule: str, value: str) -> None:
    with pytest.raises(HpcgymError, match="and environments on nodes do not go together"):
        make(name, **{rule: value})


def of_one_kind(**resources: int) -> Cluster:
    return Cluster(groups=(NodeGroup("all", 100, resources),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": "eurrora"}, "unknown machine 'eurrora'; did you mean 'eurora'"),
        ({"passes": "per-event"}, "passes='per-event' and a machine of nodes"),
        ({"allocation": "best"}, "did you mean 'best-fit'"),
        ({"processors": 1024}, "either cluster or processors, not both"),
        ({"correction": "kill"}, "correction='kill' and environments do not"),
        ({"correction": "next-second"}, "'next-second' is for dispatchers only"),
        ({"cluster": of_one_kind(core=16)}, r"asks for \d+ 'mem' a unit, which the machine lacks"),
        (
            {"cluster": of_one_kind(core=8, mem=16_000, gpu=2, mic=2)},
            r"asks for \d+ units? of 16 core, .*; the empty machine holds 0\. So it is with \d+ of",
        ),
    ],
    ids=label,
)
def test_mistakes_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        make("JobSelection", **options)


@pytest.mark.parametrize("cluster", ["eurora", FOUR], ids=label)
def test_processors_of_nodes_are_not_switched_off(cluster: Any) -> None:
    workload = EURORA if cluster == "eurora" else SERIAL
    with pytest.raises(HpcgymError, match="shutdown_action"):
        make("JobSelection", workload, cluster=cluster, shutdown_action=True)


# --- Pictures -------------------------------------------------------------------------------


@ids
def test_text_and_frames(name: str) -> None:
    pytest.importorskip("matplotlib", reason="frames need matplotlib")
    frames: list[Any] = []
    for mode in ("ansi", "rgb_array"):
        env = make(name, render_mode=mode)
        acts = random_acts(env.action_space, 0)
        env.reset(seed=0)
        for steps in (0, 12):
            play(env, acts, most=steps, seed=0)
            frames.append(env.render())
    assert f"{1024 - env.free:,} of 1,024 busy, {env.free:,} free" in frames[1]
    assert frames[0] != frames[1]
    assert frames[2].shape == frames[3].shape == (800, 1280, 3)
    assert (frames[2] != frames[3]).any()


def test_the_text_says_what_fits_on_nodes() -> None:
    env = make("QueueOrdering", jobs=120, window=40, render_mode="ansi")
    env.reset(seed=0)
    seen = 0
    for _ in range(60):
        rows, free = env.queued().tolist(), free_now(env)
        lines = [line.split() for line in env.render().partition("Queue,")[2].splitlines()]
        told = {line[0]: line[-1] for line in lines if line and line[-1] in ("yes", "no")}
        expected = {str(r): "yes" if fits_on(free, env, r) else "no" for r in rows[:10]}
        assert told == expected
        seen += waits_on_node(env)
        if env.step(np.zeros(40))[2]:
            break
    assert seen > 3


# --- What no scheduler knows ----------------------------------------------------------------


def altered(env: Any, now: int, seed: int, keeps_next: bool) -> Workload:
    """Return the jobs of an episode with another future, after ``now`` [s]."""
    rng = np.random.default_rng(seed)
    jobs, start = env.episode_workload, env.result().start
    n = int((jobs.submit_time <= now).sum())  # events of this second are known
    submit, run = jobs.submit_time.copy(), jobs.run_time.copy()
    requested, units = jobs.requested_time.copy(), jobs.units.copy()
    for row in range(n):
        length = min(run[row], requested[row])
        if start[row] < 0:
            run[row] = rng.integers(1, 2 * requested[row] + 1)
        elif start[row] + length > now and start[row] + requested[row] > now + 1:
            run[row] = rng.integers(now + 1 - start[row], 2 * requested[row] + 1)
    later = len(jobs) - n
    kept = int((submit[n:] == submit[n]).sum()) if keeps_next and later else 0
    submit[n + kept :] = max(now, submit[n + kept - 1]) + np.cumsum(
        rng.choice([1, 7, 600, 5000], later - kept)
    )
    run[n:], requested[n:] = rng.integers(1, 3000, (2, later))
    units[n:] = 1
    columns = {
        "submit_time": submit,
        "run_time": run,
        "requested_time": requested,
        "requested_processors": units * jobs.per_unit["core"],
        "user_id": jobs.user_id,
    }
    return Workload.from_columns(
        columns, processors=jobs.processors, units=units, per_unit=jobs.per_unit, name=jobs.name
    )


@settings(SLOW, max_examples=250)
@given(
    places(),
    RULES.filter(lambda rules: rules["estimate"] != "clairvoyant"),
    st.sampled_from(NAMES),
    st.sampled_from(["pass", "1h", 2, "episode"]),
    st.integers(0, 30),
    st.integers(0, 2**16),
)
def test_another_future_looks_the_same(
    place: tuple[Cluster, Workload],
    rules: dict[str, Any],
    name: str,
    interval: Any,
    decisions: int,
    seed: int,
) -> None:
    cluster, workload = place
    arguments: dict[str, Any] = {"window": 4, "cluster": cluster, **rules}
    if name == "MixedPolicy":
        arguments["interval"] = interval
    env = SINGLE[name](**whole(workload, **arguments))
    acts = visible_acts(env, seed)
    one = play(env, acts, most=decisions)
    assume(not one[-1].terminated)
    now = horizon(env, interval if name == "MixedPolicy" else None)
    assume(name != "MixedPolicy" or len(one) > 1 or interval == "pass")
    other_env = SINGLE[name](
        **whole(altered(env, now, seed, isinstance(interval, int)), **arguments)
    )
    other = play(other_env, acts, most=decisions)
    assert_same(known(one), known(other))
    assert_same(vars_of(env.pass_view()), vars_of(other_env.pass_view()))


def vars_of(view: Any) -> dict[str, Any]:
    """Return all that a view tells."""
    return {name: value for name, value in vars(view).items() if name != "resources"}
