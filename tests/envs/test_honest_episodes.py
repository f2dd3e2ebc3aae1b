"""Episodes with something around them: worked out again from schedules of ``simulate``."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import plain_envs
import pytest
from drawing import given
from drawing import strategies as st
from driving import (
    ASLEEP,
    BUSY,
    FOLLOWING,
    NAMES,
    SINGLE,
    SLOW,
    VECTOR,
    cost_so_far,
    go_on,
    jobs_of,
    noting_first,
    play,
    units_on_nodes,
)
from plain_envs import JobSelection, JobSelectionVector, MixedPolicy, maker
from strategies import workloads

import hpcgym
from hpcgym.errors import HpcgymError, WorkloadWarning
from hpcgym.scheduler.policies.features import spread
from hpcgym.workload import Workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")
TAU_S = 10
HOUR = 3600


def first_come(number: int, observation: Any, info: dict[str, Any]) -> int:
    return 0


#: Who serves jobs as they come, in each environment.
AS_THEY_COME: dict[str, Any] = {
    "JobSelection": 0, "QueueOrdering": np.zeros(128), "MixedPolicy": np.zeros(6),
    "Backfill": 1, "Inspector": 0,
}  # fmt: skip


def least_area(env: JobSelection) -> Any:
    """Select the visible job with the least requested area, as SAF."""

    def act(number: int, observation: Any, info: dict[str, Any]) -> int:
        jobs, rows = env.episode_workload, info["window"][info["window"] >= 0]
        areas = jobs.requested_time[rows] * jobs.requested_processors[rows]
        return int(np.argmin(areas))

    return act


def slowdown(wait: float, run: float) -> float:
    return max((wait + run) / max(run, TAU_S), 1.0)


def charged(
    jobs: Workload, start: list[int], first: int, stop: int, end: int
) -> tuple[list[float], list[float], int]:
    """Return slowdowns and waits of jobs up to an end, one by one, and who waits then at all."""
    bslds, waits, unserved = [], [], 0
    for row in range(stop):
        submit = int(jobs.submit_time[row])
        run = int(min(jobs.run_time[row], jobs.requested_time[row]))
        if submit > end:
            continue
        begun = start[row]
        if begun < 0 or begun > end:
            unserved += 1
            begun = end
        if row >= first:
            bslds.append(slowdown(begun - submit, run))
            waits.append(float(begun - submit))
    return bslds, waits, unserved


def at_first(env: Any) -> tuple[bool, Any, float]:
    """Return whether somebody is asked, what jobs have cost by now, and the longest wait so far."""
    start, submit, counted = env.result().start, env.submit_times(), env.counted()
    waits = [start[row] - submit[row] for row in counted if start[row] >= 0]
    return bool(env.simulations.simulation(0).asked), cost_so_far(env), max(waits, default=0)


# --- The beginning --------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["warm", "saf"])
def test_weeks_begin_with_the_jobs_of_the_whole_log(start: str) -> None:
    trace = hpcgym.load_workload("lublin:jobs=4000,processors=64,load=0.6,seed=3")
    env = JobSelection(trace, episodes="weeks", start=start, jobs=1)
    whole = hpcgym.simulate(trace, "easy" if start == "warm" else "saf")
    week = (trace.submit_time - trace.submit_time[0]) // 604_800
    names = [episode.name for episode in env.episodes.listing]
    assert names == [f"week {k}" for k in range(1, int(week.max()) + 1)]
    env.reset(options={"slice": "week 2"})
    inside = np.flatnonzero(week == 2)
    begin = int(trace.submit_time[inside[0]])
    before = (week < 2) & (whole.start + whole.run_time > begin)
    there = env.episode_workload.columns["job_number"]
    assert set(there.tolist()) == set(trace.columns["job_number"][before | (week == 2)].tolist())


@pytest.mark.parametrize(
    "rules",
    [
        {"backfill_order": "last_run * processors"},
        {"backfill_order": "user_waiting * mean_run"},
        {"backfill_order": "spf", "estimate": "ave2"},
        {"backfill_order": "spf", "estimate": "typical-ratio"},
    ],
    ids=str,
)
def test_windows_know_the_jobs_that_had_ended(rules: dict[str, Any]) -> None:
    """A window is the extract of the schedule around it, with what users had run before."""
    log = hpcgym.load_workload("lublin:jobs=1200,processors=64,seed=1,load=1.1")
    log = log.with_columns(user_id=np.arange(len(log)) * 7 % 11 % 6)
    env = MixedPolicy(log, start="warm", jobs=200, policy_features=["area"], **rules)
    whole, policy, matters = hpcgym.simulate(log, "easy").as_workload(), {"area": -1.0}, False
    for number in (1, 2, 3):
        _, over = env.reset(options={"slice": f"window {number:04}"}), False
        while not over:
            over = env.step(np.array([-1.0]))[2]
        jobs, start = env.episode_workload, env.result().start
        part = whole.extract(jobs.initial.begin, int(jobs.submit_time[-1]) + 1)
        expected = hpcgym.simulate(part, policy=policy, backfill="easy", **rules)
        begun = start >= 0  # it ends when all that count have started
        assert part.job_number.tolist() == jobs.job_number.tolist()
        assert start[begun].tolist() == expected.start[begun].tolist()
        nobody = replace(part.initial, past=part.initial.past.take(slice(0, 0)))
        without = replace(part, initial=nobody)
        alone = hpcgym.simulate(without, policy=policy, backfill="easy", **rules)
        matters |= alone.start[begun].tolist() != start[begun].tolist()
    assert matters


def test_windows_are_made_when_they_are_drawn() -> None:
    """A snapshot goes on in its own window, whichever is played by then, here or elsewhere."""
    log = hpcgym.load_workload("lublin:jobs=1200,processors=64,seed=1,load=1.1")
    env, other = (JobSelection(log, start="warm", jobs=10) for _ in range(2))
    env.reset(options={"slice": "window 0030"})
    env.step(0)
    saved = env.snapshot()
    expected = [env.step(0)[:2] for _ in range(3)]
    env.reset(options={"slice": "window 0007"})
    made = [episode.name for episode in env.simulations.world(0).parts]
    assert made == ["window 0030", "window 0007"]
    other.reset(options={"slice": "window 0001"})
    for going_on, kept in ((env, saved), (other, pickle.loads(pickle.dumps(saved)))):
        going_on.restore(kept)
        assert going_on.episode_name == "window 0030"
        for observation, reward in expected:
            seen, paid, *_ = going_on.step(0)
            assert paid == reward
            assert all(np.array_equal(seen[name], column) for name, column in observation.items())


def test_snapshots_of_other_windows_are_refused() -> None:
    log = hpcgym.load_workload("lublin:jobs=1000,processors=64,load=0.9,seed=1")
    options: dict[str, Any] = {"jobs": 50, "part": "all", "start": "easy"}
    env = JobSelection(log, **options)
    env.reset(seed=3)
    saved = env.snapshot()
    for changes in ({"start": "saf"}, {"jobs": 40}, {"warmup": "5h"}, {"start": "empty"}):
        other = JobSelection(log, **{**options, **changes})
        other.reset(seed=5)
        with pytest.raises(HpcgymError, match="an environment with other jobs or arguments"):
            other.restore(saved)


def test_a_longer_episode_goes_on_where_episodes_are_short() -> None:
    log = hpcgym.load_workload("lublin:jobs=800,processors=64,load=0.9,seed=1")
    env, other = (JobSelection(log, jobs=n, part="all", start="empty") for n in (300, 5))
    env.reset(seed=0)
    other.reset(seed=0)
    other.restore(env.snapshot())
    over = False
    while not over:
        seen, paid, over, *_ = env.step(0)
        same, same_paid, same_over, *_ = other.step(0)
        assert (same_paid, same_over) == (paid, over)
        assert all(np.array_equal(same[name], column) for name, column in seen.items())
    assert other.result().start.tolist() == env.result().start.tolist()


def test_a_week_that_is_restored_twice_is_the_one_that_begins_next() -> None:
    """Whatever was to come before, in a vector environment."""
    log = hpcgym.load_workload("lublin:jobs=3000,processors=64,load=0.5,seed=1")
    options: dict[str, Any] = {"workload": log, "episodes": "weeks", "part": "all", "start": "easy"}
    envs = gymnasium.make_vec("hpcgym/JobSelection-v2", num_envs=1, **options).unwrapped
    saved = {}
    for seed in range(60):
        envs.reset(seed=seed)
        names = envs.simulations.names[0], envs.simulations._coming[0].name
        saved.setdefault(names, envs.snapshot())
    for now_and_next in (("week 2", "week 1"), ("week 1", "week 1"), ("week 2", "week 2")):
        envs.restore(saved[now_and_next])
    over = False
    while not over:
        _, _, (over,), *_ = envs.step(np.zeros(1, np.int64))
    envs.step(np.zeros(1, np.int64))
    alone = gymnasium.make_vec("hpcgym/JobSelection-v2", num_envs=1, **options).unwrapped
    alone.reset(options={"slice": "week 2"})
    assert envs.simulations.names == ["week 2"]
    assert envs.simulations.time(0) == alone.simulations.time(0)


# --- Any surroundings -----------------------------------------------------------------------------

DURATIONS = st.sampled_from([None, 1, 20, 600, 5000, 40_000])


@SLOW
@given(
    st.sampled_from([*NAMES, *FOLLOWING]),
    workloads(),
    st.sampled_from(["empty", "easy", "saf"]),
    DURATIONS,
    st.sampled_from([1, 50, 3000, 10**6]),
    st.sampled_from(["stop", "continue"]),
    st.sampled_from(["start", "end", "waiting"]),
    st.integers(1, 8),
    st.integers(0, 10**6),
)
def test_metrics_and_returns_by_hand(
    name: str,
    trace: Workload,
    start: str,
    warmup: int | None,
    horizon: int,
    arrivals: str,
    paid: str,
    jobs: int,
    seed: int,
) -> None:
    around = {"start": start, "warmup": warmup, "horizon": horizon, "arrivals": arrivals}
    jobs = min(jobs, len(trace))
    more = {"interval": "pass", "backfill_order": "fcfs"} if name == "MixedPolicy" else {}
    if name in FOLLOWING:
        more = {"policy": "fcfs"}
    rewards = ["bsld", "wait", "max_wait"]
    env = SINGLE[name](trace, jobs=jobs, paid=paid, reward=rewards, **around, **more)
    acts, noted = noting_first(lambda *_: AS_THEY_COME[name], lambda: at_first(env))
    steps = play(env, acts, seed=seed)
    last, episode = steps[-1], env.simulations.present(0)
    listed = [window for window in env.episodes.listing if window.name == episode.name]
    known = listed[0] if listed else env.episodes.find({"slice": episode.name})
    part = env.episode_workload
    first, stop = known.first - known.start, known.last - known.start
    until = int(part.submit_time[first]) + horizon
    if start == "empty":  # else the rows are those of what ran or waited
        if warmup:
            begin = trace.submit_time[known.first] - warmup
            assert known.start == (trace.submit_time < begin).sum()
        come = int((trace.submit_time <= until).sum()) if arrivals == "continue" else 0
        assert known.stop == max(known.last, come)
    whole = hpcgym.simulate(part, **env.scheduler_rules)  # an agent that is first come is EASY
    ran = [int(begun) for begun in whole.start]
    end = until if last.truncated else max(ran[first:stop])
    assert last.terminated != last.truncated
    assert last.truncated == any(begun > until for begun in ran[first:stop])
    seen = env.result().start
    assert all(mine in (-1, theirs) for mine, theirs in zip(seen.tolist(), ran, strict=True))
    bslds, waits, unserved = charged(part, ran, first, stop, end)
    metrics = env.metrics()
    assert metrics["jobs"] == len(bslds)
    assert metrics["unserved_jobs"] == unserved
    assert metrics["mean_bsld"] == pytest.approx(sum(bslds) / len(bslds))
    assert metrics["max_wait_s"] == max(waits)
    total = sum(step.reward for step in steps[1:])
    n = len(bslds)  # who comes after the horizon does not count
    expected = [sum(bslds) / n, sum(waits) / HOUR / n, max(waits) / HOUR]
    is_asked, cost, longest = noted[0]
    before = np.array([cost[0] / n, cost[1] / HOUR / n, longest / HOUR])
    due = before - expected if is_asked else np.zeros(3)  # nothing is decided if nobody is asked
    np.testing.assert_allclose(total, due, rtol=1e-9, atol=1e-9)
    if paid == "end":
        ended = [row for step in steps for row in step.info["ended"]]
        assert len(ended) == len(set(ended)) == sum(0 <= ran[k] <= end for k in range(first, stop))
        shown = [bsld for step in steps for bsld in step.info["ended_bsld"]]
        by_row = {row: slowdown(ran[row] - part.submit_time[row],
                                min(part.run_time[row], part.requested_time[row]))
                  for row in ended}  # fmt: skip
        assert shown == pytest.approx([by_row[row] for row in ended])


@SLOW
@given(workloads(), st.sampled_from(["start", "waiting"]))
def test_a_stream_never_ends_by_itself(trace: Workload, paid: str) -> None:
    env = JobSelection(trace, episodes="stream", paid=paid, reward=["bsld", "wait"])
    acts, noted = noting_first(first_come, lambda: at_first(env))
    steps = play(env, acts)
    last = int(trace.submit_time[-1])
    assert [step.terminated for step in steps] == [False] * len(steps)
    assert env.time == last
    ran = hpcgym.simulate(trace, **env.scheduler_rules).start.tolist()
    bslds, waits, unserved = charged(trace, ran, 0, len(trace), last)
    metrics = env.metrics()
    assert metrics["jobs"] == len(trace)
    assert metrics["unserved_jobs"] == unserved
    total = sum(step.reward for step in steps[1:])
    expected = np.array([sum(bslds), sum(waits) / HOUR]) / len(trace)
    before = noted[0][1] / len(trace) / [1, HOUR]
    np.testing.assert_allclose(total, before - expected, rtol=1e-9, atol=1e-9)


# --- When rewards are paid ------------------------------------------------------------------------


def test_rewards_at_the_end_tell_nothing_before() -> None:
    """Run times that nobody knows yet change no reward and no info until a job ends."""
    rng = np.random.default_rng(3)
    other = BUSY.with_columns(
        run_time=np.maximum(1, (BUSY.requested_time * rng.uniform(0.3, 1, len(BUSY))).astype(int))
    )
    together = 0
    for number in range(5):
        envs = [JobSelection(trace, jobs=60, paid="end") for trace in (BUSY, other)]
        seen = [play(env, first_come, options={"slice": f"window {number:04}"}) for env in envs]
        for ours, two in zip(*seen, strict=False):
            if ours.info.get("ended") or two.info.get("ended"):
                break
            assert ours.reward == two.reward == 0
            assert ours.info["reward_bsld"] == two.info["reward_bsld"] == 0
            together += 1
    assert together > 10


def test_a_scheduler_over_itself_is_one() -> None:
    warm = {"start": "warm", "warmup": "1h", "arrivals": "continue", "horizon": "9h"}
    for around in ({}, warm, {"cluster": ASLEEP}):
        env = JobSelection(BUSY, jobs=30, reward="bsld/easy", **around)
        for seed in range(4):
            steps = play(env, first_come, seed=seed)
            assert sum(step.reward for step in steps[1:]) == pytest.approx(-1, rel=1e-9)


@pytest.mark.parametrize(
    "around",
    [{}, {"start": "warm", "warmup": "1h", "arrivals": "continue", "horizon": "20h"}],
    ids=["alone", "surrounded"],
)
def test_reward_functions_know_which_jobs_count(around: dict[str, Any]) -> None:
    """Of these alone, job by job, are the slowdowns that a step tells."""
    views: list[Any] = []

    def reward(view: Any) -> float:
        views.append(view)
        return 0.0

    env = JobSelection(BUSY, jobs=30, reward=reward, **around)
    play(env, first_come, options={"slice": "window 0003"})
    first = int(env.episode_workload.submit_time.searchsorted(BUSY.submit_time[90]))
    left_out = 0
    for view in views[:-1]:  # the last has those that still wait, too
        rows = zip(view.wait_s.tolist(), view.run_time_s.tolist(), view.counts, strict=True)
        slowdowns = [slowdown(wait, run) for wait, run, counts in rows if counts]
        assert view.bsld == pytest.approx(sum(slowdowns))
        assert (view.counts == ((first <= view.started) & (view.started < first + 30))).all()
        left_out += int((~view.counts).sum())
        assert view.jobs == 30
    assert (left_out > 0) == bool(around)


@pytest.mark.parametrize(
    "around", [{}, {"start": "warm", "arrivals": "continue", "horizon": "9h"}, {"cluster": ASLEEP}]
)
def test_the_tail_is_paid_at_the_end(around: dict[str, Any]) -> None:
    """The 99th percentile of waits by hand: once, in hours, in single and vector environments."""
    given = {"workload": BUSY, "jobs": 40, **around}
    weights = {"p99_wait": 0.5, "bsld": 1.0}
    single = {reward: JobSelection(reward=reward, **given) for reward in ("p99_wait", "bsld")}
    both = JobSelection(reward=["bsld", "p99_wait"], **given)
    envs = plain_envs.make_vec(
        "hpcgym/JobSelection-v2", num_envs=1, reward=weights, autoreset_mode="SameStep", **given
    )
    for name in ("window 0001", "window 0004"):
        options = {"slice": name}
        steps = {r: play(env, first_come, options=options) for r, env in single.items()}
        rewards = {r: [step.reward for step in some[1:]] for r, some in steps.items()}
        env = single["p99_wait"]
        jobs, start = env.episode_workload, env.result().start.tolist()
        first = int(jobs.submit_time.searchsorted(BUSY.submit_time[40 * int(name[-1])]))
        end = int(jobs.submit_time[first]) + 9 * HOUR if "horizon" in around else 10**9
        _, waits, _ = charged(jobs, start, first, first + 40, end)
        tail = float(np.percentile(waits, 99)) / HOUR
        assert rewards["p99_wait"][:-1] == [0.0] * (len(rewards["p99_wait"]) - 1)
        assert rewards["p99_wait"][-1] == pytest.approx(-tail)
        envs.reset(seed=0, options=options)
        pairs = play(both, first_come, options=options)[1:]
        for of_slowdown, two, pair in zip(rewards["bsld"], rewards["p99_wait"], pairs, strict=True):
            mixed = envs.step(np.zeros(1, np.int64))[1]
            assert mixed[0] == pytest.approx(of_slowdown + two / 2)
            assert pair.reward.tolist() == pytest.approx([of_slowdown, two])
    assert tail > 0


def test_logarithms_add_up() -> None:
    returns = []
    for reward in ("bsld", "log_bsld"):
        env = JobSelection(BUSY, jobs=60, reward=reward)
        steps = play(env, first_come, options={"slice": "window 0002"})
        returns.append(-sum(step.reward for step in steps[1:]))
    assert returns[1] == pytest.approx(np.log1p(returns[0]))


# --- What is asked and seen -----------------------------------------------------------------------


@SLOW
@given(workloads(), st.sampled_from(["revised", "kept"]), st.sampled_from(["easy", "none"]))
def test_skipping_forced_decisions_changes_no_schedule(
    trace: Workload, reservation: str, backfill: str
) -> None:
    starts, returns, asked = [], [], []
    for skip in (False, True):
        env = JobSelection(
            trace, episodes="whole", reservation=reservation, backfill=backfill, skip_forced=skip,
            reward=["bsld", "wait", "energy"],
        )  # fmt: skip
        steps = play(env, least_area(env))
        starts.append(env.result().start.tolist())
        returns.append(sum(step.reward for step in steps[1:]))
        masks = [int(step.info["action_mask"].sum()) for step in steps]
        asked.append([n for n in masks[1:-1] if n == 1])
    assert starts[0] == starts[1]
    np.testing.assert_allclose(returns[0], returns[1], rtol=1e-9)
    assert asked[1] == []


@SLOW
@given(
    workloads(),
    st.sampled_from(["QueueOrdering", "MixedPolicy"]),
    st.sampled_from(["easy", "none", "slurm"]),
    st.sampled_from([None, "queue:interactive>batch"]),
)
def test_orders_of_one_job_are_not_asked_for(
    trace: Workload, name: str, backfill: str, preemption: str | None
) -> None:
    """The shortest job first, by scores whose size differs from step to step."""
    starts, returns, asked, gone = [], [], [], []
    more: dict[str, Any] = {}
    if name == "MixedPolicy":
        more = {"interval": "pass", "policy_features": ("requested", "wait")}
    if preemption is not None and backfill != "slurm":
        more["preemption"] = preemption
    for skip in (False, True):
        env = maker(name)(
            trace, episodes="whole", backfill=backfill, skip_forced=skip, paid="end",
            reward=["bsld", "wait", "energy"], **more,
        )  # fmt: skip

        def act(number: int, observation: Any, info: dict[str, Any], env: Any = env) -> Any:
            if name == "MixedPolicy":
                return np.array([-1.0, 0.0])
            asked_for = env.episode_workload.requested_time[info["window"]]
            return np.where(info["window"] < 0, 0, -asked_for / 1e6 - env.time % 7)

        steps = play(env, act)
        starts.append(env.result().start.tolist())
        returns.append(sum(step.reward for step in steps[1:]))
        asked.append([int((step.info["window"] >= 0).sum()) for step in steps[1:-1]])
        gone.append([job for step in steps for job in step.info["ended"]])
    assert starts[0] == starts[1]
    np.testing.assert_allclose(returns[0], returns[1], rtol=1e-9)
    assert sorted(gone[0]) == sorted(gone[1])
    if name == "QueueOrdering" or "preemption" not in more:
        assert 1 not in asked[1]


@SLOW
@given(workloads(), st.integers(2, 7), st.integers(0, 1000))
def test_a_split_window_shows_both_ends(trace: Workload, size: int, seed: int) -> None:
    env = JobSelection(trace, episodes="whole", window=f"split:{size}")
    rng = np.random.default_rng(seed)

    def act(number: int, observation: Any, info: dict[str, Any]) -> int:
        waiting = env.queued().tolist()
        head = waiting[: (size + 1) // 2]
        tail = [row for row in waiting if row not in head][-(size // 2) :]
        assert info["window"][info["window"] >= 0].tolist() == head + tail
        return int(rng.integers(len(head) + len(tail)))

    play(env, act)


def test_weights_in_units_of_the_spread() -> None:
    weights = np.array([0.3, -0.2, 0.5, -1.0, 0.1, 0.7], np.float32)
    half = BUSY.take(slice(0, len(BUSY) // 2))
    names = MixedPolicy(BUSY).policy_features
    starts = []
    for scale, action in (("spread", weights), ("none", weights / spread([half], names))):
        env = MixedPolicy(BUSY, episodes="whole", interval="episode", scale=scale)
        play(env, lambda number, observation, info, action=action: action)
        starts.append(env.result().start.tolist())
    assert starts[0] == starts[1]


@pytest.mark.parametrize("paid", ["start", "end", "waiting"])
@pytest.mark.parametrize("reward", ["bsld", "log_bsld", "max_wait"])
def test_what_hides_the_future_rewards_no_wait(paid: str, reward: str) -> None:
    """Rewards after it are finite and no gains, and tell nothing of run times that nobody knows."""
    rng = np.random.default_rng(3)
    other = BUSY.with_columns(
        run_time=np.maximum(1, (BUSY.requested_time * rng.uniform(0.3, 1, len(BUSY))).astype(int))
    )
    around = {"start": "warm", "arrivals": "continue", "horizon": "9h"}
    for steps in (3, 25, 60):
        seen = []
        for trace in (BUSY, other):
            env = JobSelection(trace, jobs=30, paid=paid, reward=reward, **around)
            played = play(env, first_come, most=steps, options={"slice": "window 0000"})[-1]
            if played.terminated or played.truncated:
                continue
            hidden = go_on(env, first_come, *env.restore(env.snapshot(hide=True)))
            rewards = [step.reward for step in hidden]
            assert np.isfinite(rewards).all()
            assert max(rewards) <= 1e-9
            seen.append(rewards)
        if len(seen) == 2 and steps == 3 and not (paid == "start" and reward == "log_bsld"):
            assert seen[0] == pytest.approx(seen[1])  # no job has ended: both worlds look alike


@pytest.mark.filterwarnings("default::hpcgym.errors.WorkloadWarning")
def test_a_horizon_before_the_first_question_is_said() -> None:
    """At 1 s job 1 comes and does not fit; the agent is asked at 50 s."""
    jobs = jobs_of([(0, 8, 50), (1, 8, 10), (60, 1, 5)], 8)
    given = {"jobs": 2, "warmup": 5, "start": "empty", "part": "all"}
    for make in (SINGLE["Backfill"], partial(VECTOR["Backfill"], 2)):
        env = make(jobs, horizon=60, **given)
        with pytest.warns(WorkloadWarning, match="^horizon: an episode is over before the agent"):
            env.reset(options={"slice": "window 0000"})
    env = JobSelection(jobs, horizon=1, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.reset(options={"slice": "window 0000"})  # at 0 s it is asked about job 0


@pytest.mark.parametrize(
    "around",
    [
        {},
        {"start": "warm", "warmup": "1h", "arrivals": "continue", "horizon": "9h"},
        {"warmup": "1h", "arrivals": "continue", "horizon": "300d"},
        {"episodes": "stream"},
    ],
    ids=str,
)
def test_jobs_that_count_are_those_of_the_metrics(around: dict[str, Any]) -> None:
    env, envs = (
        JobSelection(BUSY, jobs=40, **around),
        JobSelectionVector(1, BUSY, jobs=40, **around),
    )
    whole = around.get("horizon") != "9h"
    for _ in range(3):
        env.reset(seed=3)
        rows = env.counted()
        play(env, first_come, seed=3)
        assert env.counted().tolist() == rows.tolist()
        envs.reset(seed=3)
        assert envs.counted(0).tolist() == rows.tolist()
        assert len(rows) == env.metrics()["jobs"]
        if whole and around.get("episodes") is None:
            waits = env.result().wait[rows]
            assert waits.mean() == pytest.approx(env.metrics()["mean_wait_s"])


def test_a_reset_never_ends_an_episode() -> None:
    trace = hpcgym.load_workload("lublin:jobs=400,processors=64,seed=3,load=0.9")
    for name in ("JobSelection", "QueueOrdering"):
        env = SINGLE[name](trace, jobs=20, start="warm", horizon=1)
        for episode in env.episodes.listing:
            options = {"slice": episode.name}
            play(env, lambda *_, name=name: AS_THEY_COME[name], options=options)
            assert env.metrics()["jobs"] >= 1


def test_jobs_begin_on_the_nodes_on_which_they_ran() -> None:
    """Placed anew in the order of their starts, some would find no room."""
    jobs = hpcgym.load_workload("eurora:jobs=200,load=1.3,seed=1")
    env = JobSelection(jobs, cluster="eurora", jobs=64, start="warm", backfill="none")
    there = units_on_nodes(hpcgym.simulate(jobs, "easy", cluster="eurora"))
    row_of = {number: row for row, number in enumerate(jobs.job_number.tolist())}
    seen = 0
    for episode in env.episodes.listing:
        env.reset(options={"slice": episode.name})
        part, units = env.episode_workload, units_on_nodes(env.result())
        for row in np.flatnonzero(part.initial.running if part.initial else ()):
            assert units[row] == there[row_of[part.job_number[row]]]
            seen += 1
    assert seen > 10


@pytest.mark.parametrize("paid", ["start", "end", "waiting"])
@pytest.mark.parametrize("more", [{"threshold": 900}, {"jobs": 90, "horizon": "3h"}])
def test_returns_are_those_of_metrics(more: dict[str, Any], paid: str) -> None:
    """But for what jobs had cost at the first question; also where a slice outlasts its horizon."""
    given = {"jobs": 30, "start": "warm", "arrivals": "continue", "horizon": "1d", **more}
    env = JobSelection(BUSY, reward=["bsld", "wait"], paid=paid, **given)
    for episode in env.episodes.listing:
        env.reset(options={"slice": episode.name})
        is_asked, cost, _ = at_first(env)
        assert is_asked
        total, over = np.zeros(2), False
        while not over:
            _, reward, terminated, truncated, _ = env.step(0)
            total, over = total + reward, terminated or truncated
        metrics = env.metrics()
        expected = np.array([metrics["mean_bsld"], metrics["mean_wait_s"] / HOUR])
        before = cost / metrics["jobs"] / [1, HOUR]
        np.testing.assert_allclose(-total, expected - before, rtol=1e-9)
