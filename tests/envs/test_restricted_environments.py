"""Environments under quotas and around windows: schedules of the oracles, masks, what is hidden."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import NAMES, SEEDS, SINGLE, SLOW, Act, play, rows_of, whole
from node_driving import EURORA, anywhere, by_reference
from quota_strategies import shared_quotas, with_queues
from restrictions import DRAWN
from strategies import WEIGHTS, workloads

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.envs.job_selection import JobSelection
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "none", "depth:3"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
    }
)
WINDOWED = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(1, 3000), st.floats(0, 1)), max_size=3
)
BUSY = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=1,load=2")
BEGIN = int(BUSY.submit_time[80])
CLOSED = f"{BEGIN}/{BEGIN + 40_000}; {BEGIN + 80_000}/{BEGIN + 99_000}:processors=30"
OF_NODES: dict[str, Any] = {"cluster": "8x2x4", "maintenance": CLOSED.partition(";")[0]}
NODES_OF_CORES = f"{BEGIN}/{BEGIN + 40_000}:nodes=0-5; {BEGIN + 80_000}/{BEGIN + 99_000}"
AT = int(EURORA.submit_time[80])
NODES_CLOSED = f"{AT}/{AT + 40_000}:nodes=0-20; {AT + 60_000}/{AT + 79_000}"
ON_NODES = {"cluster": "eurora", "quota": "user:jobs=3", "maintenance": NODES_CLOSED}
KEPT: dict[str, Any] = {"quota": "user:jobs=2; group:processors=64", "maintenance": CLOSED}


def scores(seed: int, rows: Any, now: int) -> list[float]:
    """Any order of jobs, another at each time; many are equal."""
    return [crc32(f"{seed} {row} {now}".encode()) % 7 / 7 for row in rows]


def chosen_by(name: str, seed: int, window: int) -> Act:
    """Return what chooses by such an order: of jobs that no quota keeps back."""

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        rows = rows_of(info)
        found = np.array(scores(seed, rows, info["time"]), np.float32)
        if name == "QueueOrdering":
            return np.pad(found, (0, window - len(rows)))
        return int(np.argmax(np.where(info["action_mask"][: len(rows)] > 0, found, -1)))

    return act


def windows_of(data: st.DataObject, processors: int) -> tuple[list[Any], str | None]:
    """Windows that do not overlap, as the oracle has them and as a text."""
    found, end = [], 0
    for gap, length, share in data.draw(WINDOWED):
        width = max(1, round(share * processors))
        found.append((end + gap, end + gap + length, width))
        end += gap + length
    return found, "; ".join(f"{a}/{b}:processors={w}" for a, b, w in found) or None


def fitting(rules: dict[str, Any], name: str) -> dict[str, Any]:
    """Return rules that an environment has: where one job is named, one has a reservation."""
    if name == "JobSelection" and rules["backfill"].startswith("depth:"):
        return {**rules, "backfill": "easy"}
    return rules


@settings(SLOW, max_examples=100)
@given(workloads(), RULES, SEEDS, st.sampled_from(["depth:1", "depth:2", "depth:5"]))
def test_several_reservations(
    workload: Workload, rules: dict[str, Any], seed: int, backfill: str
) -> None:
    rules = {**rules, "backfill": backfill}
    env = SINGLE["QueueOrdering"](**whole(workload, window=40, **rules))
    play(env, chosen_by("QueueOrdering", seed, 40))
    order = {"policy": lambda job, now: scores(seed, [job.number], now)[0]}
    expected = simulate_pool(jobs_of(workload), workload.processors, **order, **rules)
    assert env.result().start.tolist() == [job.start for job in expected]
    assert env.result().backfilled.tolist() == [job.backfilled for job in expected]


@settings(SLOW, max_examples=100)
@given(
    st.data(), workloads(), RULES, st.tuples(*[WEIGHTS] * 6).filter(any),
    st.sampled_from(["pass", "1h", "episode", 2]),
)  # fmt: skip
def test_weights(
    data: st.DataObject, workload: Workload, rules: dict[str, Any], vector: Any, interval: Any
) -> None:
    workload = with_queues(workload, [1, 2])
    text, ((*quotas,),) = data.draw(shared_quotas([workload]))
    windows, closed = windows_of(data, workload.processors)
    if closed:
        rules["estimate"] = "requested"
    kept = {"quota": text, "maintenance": closed}
    env = MixedPolicy(**whole(workload, interval=interval, **kept, **rules))
    # divided by their sum there: by a power of two, which changes no order
    weights = np.array(vector)
    weights = weights / 2.0 ** np.ceil(np.log2(np.abs(weights).sum()))
    play(env, lambda *_: weights)
    normalised = tuple((weights / np.abs(weights).sum()).tolist())
    expected = simulate_pool(
        jobs_of(workload), workload.processors, policy=normalised, quotas=quotas, windows=windows,
        **rules,
    )  # fmt: skip
    assert env.result().start.tolist() == [job.start for job in expected]


def closed_nodes(data: st.DataObject, n_nodes: int) -> tuple[list[Any], str | None]:
    """Windows of some nodes by name, as the oracle has them and as a text."""
    found, end = [], 0
    some = st.lists(st.integers(0, n_nodes - 1), min_size=1, unique=True).map(sorted)
    for gap, length, _ in data.draw(WINDOWED):
        found.append((end + gap, end + gap + length, data.draw(some)))
        end += gap + length
    return found, "; ".join(f"{a}/{b}:nodes={','.join(map(str, of))}" for a, b, of in found) or None


@settings(SLOW, max_examples=350)
@given(st.data(), anywhere(), RULES, SEEDS, st.sampled_from(["JobSelection", "QueueOrdering"]))
def test_any_order_of_the_queue(
    data: st.DataObject, place: Any, rules: dict[str, Any], seed: int, name: str
) -> None:
    rules = fitting(rules, name)
    cluster, workload = place[0], with_queues(place[1], [1, 2])
    text, ((*quotas,),) = data.draw(shared_quotas([workload]))
    if cluster is None:
        windows, closed = windows_of(data, workload.processors)
    else:
        windows, closed = closed_nodes(data, cluster.nodes)
    if closed:
        rules["estimate"] = "requested"  # never too short
    kept = {"quota": text, "maintenance": closed}
    env = SINGLE[name](**whole(workload, cluster=cluster, window=40, **kept, **rules))
    play(env, chosen_by(name, seed, 40))
    hpcgym.validate_schedule(env.result())  # which nodes jobs have, and that none meets a window
    order = {"policy": lambda job, now: scores(seed, [job.number], now)[0]}
    more = {"quotas": quotas, "windows": windows}
    expected = by_reference(cluster, workload, **order, **more, **rules)
    assert env.result().start.tolist() == [job.start for job in expected]
    if cluster is None:
        assert env.result().backfilled.tolist() == [job.backfilled for job in expected]


@pytest.mark.parametrize("policy", ["saf", "fcfs"])
def test_later_jobs_come_and_time_ends_episodes(policy: str) -> None:
    """As newer versions have it, but for the machine, which is empty at the beginning."""
    kept = {"quota": "user:jobs=1", "maintenance": f"{BEGIN}/{BEGIN + 90_000}:processors=30"}
    arguments = {"arrivals": "continue", "horizon": "2h", "warmup": "1h", "window": 300, **kept}
    env = JobSelection(BUSY, jobs=40, **arguments)
    truncated = started = 0
    for seed in range(4):
        baseline = find_baseline(policy)
        env.reset(seed=seed)
        baseline.begin(env)
        steps = play(env, lambda _, o, info, act=baseline.act: act(o, info), seed=seed)
        truncated += steps[-1].truncated
        found = env.result().start
        rules = {**env.scheduler_rules, "policy": policy}
        expected = hpcgym.simulate(env.episode_workload, **rules).start
        started += (found >= 0).sum()
        assert found[found >= 0].tolist() == expected[found >= 0].tolist()
    assert truncated > 0
    assert started > 40


@pytest.mark.parametrize(
    ("workload", "kept"),
    [
        (BUSY, KEPT),
        (BUSY, {"quota": "user:jobs=1; all:jobs=9"}),
        (EURORA, {"cluster": "eurora", "quota": "user:jobs=3; queue:processors=300"}),
        (EURORA, ON_NODES),
    ],
    ids=["windows", "quotas", "nodes", "closed nodes"],
)
@pytest.mark.parametrize("name", NAMES)
def test_episodes_go_on_with_the_schedule_that_they_begin_in(
    name: str, workload: Workload, kept: dict[str, Any]
) -> None:
    """By EASY, from wherever it begins, all starts are those of EASY on the whole log."""
    expected = hpcgym.simulate(workload, "easy", **kept)
    starts = dict(zip(workload.job_number.tolist(), expected.start.tolist(), strict=True))
    around = {"start": "warm", "arrivals": "continue", "horizon": "300d"}
    rules = {"backfill": "easy", "backfill_order": "fcfs"}
    more = {"interval": "pass"} if name == "MixedPolicy" else {"window": 300}
    env = SINGLE[name](workload, jobs=40, **around, **rules, **more, **kept)
    ran = 0
    for seed in range(3):
        env.reset(seed=seed)
        baseline = find_baseline("fcfs")
        baseline.begin(env)
        play(env, lambda _, o, info, act=baseline.act: act(o, info), seed=seed)
        found, jobs = env.result().start, env.episode_workload
        ran += int((found < env.episode_workload.submit_time.max()).sum())
        for number, start in zip(jobs.job_number.tolist(), found.tolist(), strict=True):
            assert start in (-1, starts[number])
        assert (found >= 0).sum() >= 40
    assert ran > 0


def four(**columns: list[int]) -> Workload:
    """Return four jobs of 10 s on 2 of 8 processors each, all submitted at once."""
    given = {
        "submit_time": [0] * 4,
        "run_time": [10] * 4,
        "requested_time": [10] * 4,
        "requested_processors": [2] * 4,
        "user_id": [1, 1, 1, 2],
    }
    return Workload.from_columns({**given, **columns}, processors=8)


def test_masks_by_hand() -> None:
    """Of user 1 one job may run. What is masked stands for the first that may start."""
    env = JobSelection(**whole(four(), window=5, quota="user:jobs=1"))
    observation, info = env.reset()
    assert info["action_mask"].tolist() == [1, 1, 1, 1, 0]
    observation, _, _, _, info = env.step(1)
    assert info["window"].tolist() == [0, 2, 3, -1, -1]
    assert info["action_mask"].tolist() == [0, 0, 1, 0, 0]
    assert observation["mask"].tolist() == [0, 0, 1, 0, 0]
    observation, _, _, _, info = env.step(0)  # masked: job 3
    assert (env.time, env.result().start.tolist()) == (10, [-1, 0, -1, 0])
    assert info["action_mask"].tolist() == [1, 1, 0, 0, 0]
    env.step(1)
    _, _, terminated, _, info = env.step(0)
    assert (terminated, info["action_mask"].tolist()) == (True, [0] * 5)
    assert env.result().start.tolist() == [20, 0, 10, 0]


def test_who_stands_behind_the_window_is_served() -> None:
    """The one visible job may not start: the first place stands for the one that may."""
    env = JobSelection(**whole(four(), window=1, quota="user:jobs=1"))
    _, info = env.reset()
    starts = []
    for _ in range(4):
        assert info["action_mask"].tolist() == [1]
        *_, info = env.step(0)
        starts.append(env.result().start.tolist())
    assert starts == [[0, -1, -1, -1], [0, -1, -1, 0], [0, 10, -1, 0], [0, 10, 20, 0]]


def test_the_only_choice_is_forced() -> None:
    """After the first step user 1 may start none, then each time one: three steps of four."""
    jobs = four()
    for forced, steps in ((False, 4), (True, 2)):
        env = JobSelection(**whole(jobs, window=5, quota="user:jobs=1", skip_forced=forced))
        played = play(env, lambda _, __, info: int(np.argmax(info["action_mask"])))
        assert len(played) - 1 == steps
        assert env.result().start.tolist() == [0, 10, 20, 0]


@pytest.mark.parametrize("env_id", ["JobSelection", "QueueOrdering"])
def test_what_quotas_let_start_is_seen(env_id: str) -> None:
    """Counted anew from the jobs that run; with no quota all jobs may."""
    features = ("within_quota", "processors", "queue=2", "qos=2")
    jobs = hpcgym.load_workload("lublin:jobs=80,processors=32,seed=5,load=1.3")
    jobs = jobs.with_columns(queue=1 + np.arange(80) % 3)
    given = whole(jobs, window=20, features=features)
    for quota in ("user:jobs=1", None):
        env, seen = SINGLE[env_id](**given, quota=quota), set()
        observation, info = env.reset(seed=0)
        terminated, rng = False, np.random.default_rng(0)
        while not terminated:
            rows, result = rows_of(info), env.result()
            runs = (result.start >= 0) & (result.start <= env.time) & (result.end > env.time)
            users = set(jobs.user_id[runs].tolist()) if quota else set()
            allowed = [float(user not in users) for user in jobs.user_id[rows].tolist()]
            shown = observation["jobs"][: len(rows)]
            assert shown[:, 0].tolist() == allowed
            assert shown[:, 2].tolist() == (jobs.queue[rows] == 2).tolist()
            assert shown[:, 3].tolist() == shown[:, 2].tolist()
            assert not observation["jobs"][len(rows) :].any()
            seen |= set(allowed)
            action: Any = rng.random(20, np.float32)
            if env_id == "JobSelection":
                action = int(np.argmax(info["action_mask"]))
            observation, _, terminated, _, info = env.step(action)
        assert seen == ({0.0, 1.0} if quota else {1.0})


def test_features_that_compare_with_a_name() -> None:
    jobs = replace(four().with_columns(queue=[1, 2, 2, 1]), header={"Queue": ["1 day", "2 night"]})
    env = JobSelection(**whole(jobs, window=5, features={"queue=night": None, "wait": None}))
    assert env.reset()[0]["jobs"][:, 0].tolist() == [0, 1, 1, 0, 0]
    assert pickle.loads(pickle.dumps(env.options)).names == ("queue=night", "wait")
    with pytest.warns(WorkloadWarning, match="did you mean 'night'"):
        JobSelection(**whole(jobs, features=["queue=nigth"]))
    with pytest.warns(WorkloadWarning, match="features: no job has 'noon' in queue"):
        JobSelection(**whole(jobs, features=["queue=noon"]))
    for name, message in (
        ("queues=night", "features must be one of .*not 'queues'|unknown features 'queues'"),
        ("queue=", "compares with no name"),
        ("queue", "unknown features 'queue'"),
    ):
        with pytest.raises(HpcgymError, match=message):
            JobSelection(**whole(jobs, features=[name]))


def test_masks_are_what_quotas_say_of_who_runs() -> None:
    """Counted anew from the jobs that run; a mask is never empty where there is a question."""
    env = JobSelection(**whole(BUSY, window=20, **KEPT))
    users, groups = BUSY.user_id, BUSY.group_id
    widths = BUSY.requested_processors
    kept_back = 0

    def act(number: int, _: Any, info: dict[str, Any]) -> int:
        nonlocal kept_back
        running = env.running()
        mask, rows = info["action_mask"], rows_of(info)
        allowed = [
            (users[running] == users[row]).sum() < 2
            and widths[running][groups[running] == groups[row]].sum() + widths[row] <= 64
            for row in rows
        ]
        kept_back += len(allowed) - sum(allowed)
        expected = allowed if any(allowed) else [True] + [False] * (len(rows) - 1)
        assert mask[: len(rows)].astype(bool).tolist() == expected
        assert not mask[len(rows) :].any()
        return int(np.random.default_rng(number).choice(np.flatnonzero(mask)))

    play(env, act)
    assert kept_back > 100
    hpcgym.validate_schedule(env.result())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"quota": "user"}, HpcgymError, "quota 'user' is neither a file nor a quota"),
        ({"quota": "all:processors=1"}, WorkloadError, "more than the quota all:processors=1"),
        ({"maintenance": "soon"}, HpcgymError, "window 'soon' is neither a file nor BEGIN/END"),
        ({"maintenance": "0/10:processors=99"}, HpcgymError, "the machine has 8 processors"),
        ({"maintenance": "0/10:nodes=0"}, HpcgymError, "a pool of processors has no nodes"),
        ({"maintenance": "0/10", "estimate": "ave2"}, HpcgymError, "may be too short"),
        ({"quota": "user:jobs=1", "hold": 0.1}, HpcgymError, "hold and quota do not go together"),
        ({"quota": "user:jobs=1", "reservation": "kept"}, HpcgymError, "reservation='kept'"),
        (
            {"quota": "user:jobs=1", "start": "conservative", "arrivals": "stop"},
            HpcgymError,
            "backfill='conservative' and quota='user:jobs=1' do not go together",
        ),
        ({"quota": "user:jobs=1", "shutdown_action": True}, HpcgymError, "only where a job may"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], error: type[HpcgymError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        JobSelection(four(), jobs=4, **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_extracts_begin_under_quotas(name: str) -> None:
    """Jobs that run at the beginning count, more than the quota lets run of some users."""
    part = hpcgym.simulate(BUSY).as_workload().extract(int(BUSY.submit_time[200]))
    assert part.initial is not None
    _, running = np.unique(part.user_id[part.initial.running], return_counts=True)
    assert running.max() > 2
    closed = f"{part.initial.begin + 600}/{part.initial.begin + 90_000}"
    for maintenance in (None, closed):
        kept = {"quota": "user:jobs=2", "maintenance": maintenance}
        env = SINGLE[name](**whole(part, **kept, window=128))
        acting = find_baseline("saf")
        observation, info = env.reset(seed=0)
        acting.begin(env)
        terminated = False
        while not terminated:
            observation, _, terminated, _, info = env.step(acting.act(observation, info))
        alone = hpcgym.simulate(part, **{**env.scheduler_rules, "policy": "saf"})
        assert env.result().start.tolist() == alone.start.tolist()
        assert "quotas" in hpcgym.validate_schedule(env.result())
    met = part.initial.running & (alone.end > part.initial.begin + 600)
    assert met.any()  # they run on, into the window


def test_dispatchers_are_not_told_of_quotas() -> None:
    env = JobSelection(**whole(four(), backfill="none", quota="user:jobs=1"))
    env.reset()
    with pytest.raises(HpcgymError, match="expert 'prb' is not told of quotas"):
        find_baseline("prb").begin(env)
