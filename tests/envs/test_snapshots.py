"""Snapshots: what is hidden, whose they are, and simulations that go on with environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import (
    BUSY,
    FAIR,
    NAMES,
    REGRESSIONS,
    SINGLE,
    TINY,
    USERS,
    VECTOR,
    go_on,
    jobs_of,
    play,
    visible_acts,
    whole,
)
from few_jobs import few_jobs
from mistakes import mistakes_of
from share_strategies import heeded

from hpcgym import HpcgymError, simulate, validate_schedule
from hpcgym._engine import Simulation
from hpcgym.envs.core.infos import means_of, state_of
from hpcgym.machine.pool import Cluster

ids = pytest.mark.parametrize("name", NAMES)
CROWDED = BUSY.with_columns(submit_time=BUSY.submit_time // 20)


def make(name: str, **options: Any) -> Any:
    arguments = {"workload": BUSY, "jobs": 60, "window": 6, **options}
    if name == "MixedPolicy":
        arguments.setdefault("interval", 3)
    return SINGLE[name](**arguments)


def test_hidden_jobs_run_for_their_predictions() -> None:
    env = make("JobSelection", jobs=80, window=80, estimate="ave2")
    acts = visible_acts(env, 0)
    play(env, acts, most=50, seed=3)
    before, submitted = env.result(), len(env.queued()) + int((env.result().start >= 0).sum())
    queued = env.queued()
    observation, info = env.restore(env.snapshot(hide=True))
    steps = go_on(env, acts, observation, info)
    after = env.result()
    assert len(after.start) == submitted < 80
    assert (after.start[:submitted] >= 0).all()
    assert after.run_time[queued].tolist() == before.predicted_run_time[queued].tolist()
    ended = (before.start >= 0) & (before.start + before.run_time <= before.start.max())
    rows = np.flatnonzero(ended[:submitted])
    assert after.run_time[rows].tolist() == before.run_time[rows].tolist()
    assert steps[-1].terminated
    sums = means_of(state_of(env.simulations, 0))
    assert sums["mean_wait_s"] == pytest.approx(after.wait.mean())
    assert sums["mean_bsld"] == pytest.approx(after.bsld.mean())


@pytest.mark.parametrize(
    "rules",
    [{"estimate": "double-requested"}, {"estimate": "ave2", "correction": "recursive-doubling"}],
)
def test_hidden_jobs_are_killed_at_their_requested_times(rules: dict[str, Any]) -> None:
    """A prediction may be longer: 40 s of 20, or 32 s after 17 s."""
    jobs = few_jobs(2, [0, 1, 30, 31, 41], [1, 1, 18, 20, 3], [2] * 5, [20] * 5, user_id=[1] * 5)
    env = SINGLE["JobSelection"](**whole(jobs, window=5, reservation="kept", **rules))
    steps = play(env, lambda *_: 0, most=3)
    assert (steps[-1].info["time_s"], env.queued().tolist()) == (31, [3])
    play_on = go_on(env, lambda *_: 0, *env.restore(env.snapshot(hide=True)))
    assert play_on[-1].terminated
    result = env.result()
    assert (result.run_time <= 20).all()
    validate_schedule(result)


def test_what_is_hidden_before_the_first_submission_is_hidden_in_one_episode() -> None:
    env = VECTOR["MixedPolicy"](2, BUSY, jobs=12, window=6, interval="hour")
    env.reset(seed=0)
    env.restore(env.snapshot(hide=True))
    assert env.simulations.hides(0)
    for _ in range(2):
        env.step(np.zeros(env.action_space.shape))
    assert not env.simulations.hides(0)
    assert env.simulations.rows(0)[1] == 12


@pytest.mark.parametrize(
    ("paid", "slowdowns", "waits", "owed"),
    [("start", 2.1, 30, [0, 0]), ("end", 1, 0, [0, 0]), ("waiting", 3.1, 30, [1, 0])],
)
def test_rewards_of_a_hidden_future_are_those_of_the_known_jobs(
    paid: str, slowdowns: float, waits: float, owed: list[float]
) -> None:
    """By hand: at 60 s job 0 has ended, job 1 runs since 40 s, job 2 has come, job 3 has not."""
    jobs = few_jobs(2, [0, 10, 60, 300], [40, 100, 20, 1], [2, 1, 1, 1], [80, 300, 40, 1])
    machine = Cluster(2, busy_power_w=10, idle_power_w=4)
    env = SINGLE["JobSelection"](**whole(jobs, window=4, paid=paid, cluster=machine))
    env.reset()  # what the first step pays of the jobs that wait has been paid then
    assert env.snapshot(hide=True).rows["totals"].tolist() == [owed[0], 0, 0, 0, 0]
    steps = play(env, lambda *_: 0, most=2)
    assert (steps[-1].info["time_s"], env.queued().tolist()) == (60, [2])
    rows = env.snapshot(hide=True).rows
    # job 1 is predicted to run for 300 s: 80 + 300 processor seconds, of 120 that have passed
    joules = 10 * 380 + 4 * (120 - 380)
    assert rows["totals"] == pytest.approx([slowdowns, waits, joules, 0, 30])
    assert rows["owed"].tolist() == [*owed, 0, 0, 0]
    assert rows["norms"] == pytest.approx([-1 / 3, -1 / 10_800, -1 / (20 * 61), 0, -1 / 3600])


@ids
@pytest.mark.parametrize("paid", ["start", "end", "waiting"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"correction": "kill"},
        {"cluster": Cluster(64, shutdown_after_s=600)},
        {"start": "warm", "warmup": "10m", "horizon": "6h"},
        {"warmup": "10m", "arrivals": "continue", "horizon": "1h"},
        {"start": "warm", "horizon": "10m"},
    ],
)
def test_sums_counted_anew_are_those_of_the_steps(
    name: str, paid: str, given: dict[str, Any]
) -> None:
    """Where predictions are true, what is paid for the past does not depend on what is hidden."""
    env = make(name, workload=CROWDED, paid=paid, estimate="clairvoyant", **given)
    act = visible_acts(env, 5)

    def check() -> None:
        stepped, anew = env.snapshot().rows, env.snapshot(hide=True).rows
        for sums in ("totals", "owed", "counted_j"):
            np.testing.assert_allclose(anew[sums], stepped[sums], rtol=1e-12, err_msg=sums)

    def act_and_check(number: int, observation: Any, info: dict[str, Any]) -> Any:
        if number % 5 == 1:  # not at a reset, which pays nothing: the first step does
            check()
        return act(number, observation, info)

    play(env, act_and_check, seed=2)
    check()
    assert env.snapshot().rows["totals"][1] > 0  # somebody has waited


def test_jobs_that_ran_at_the_beginning_are_not_decided_about() -> None:
    """By hand: at 110 s, 10 s after the beginning, job 1 has ended, job 0 runs, and two wait."""
    machine = Cluster(4, busy_power_w=10, idle_power_w=4)
    env = SINGLE["JobSelection"](**whole(TINY.extract(100), window=4, cluster=machine))
    env.reset()
    assert env.time == 110
    real, rows = env.snapshot().rows, env.snapshot(hide=True).rows
    assert rows["norms"][:2] == pytest.approx([-1 / 2, -1 / 7200])
    # 2 x 100 s and 2 x 10 s; where it is not known it is 2 x 200 s
    assert real["totals"][2] == 10 * 220 + 4 * (40 - 220)
    assert rows["totals"][2] == 10 * 420 + 4 * (40 - 420)


def test_a_hidden_future_goes_on_to_its_last_start_whatever_the_horizon() -> None:
    env = make("JobSelection", workload=CROWDED, start="warm", horizon="10m")
    act = visible_acts(env, 5)
    steps = play(env, act, seed=2)
    assert steps[-1].truncated
    env.reset(seed=2)
    observation, info = env.restore(env.snapshot(hide=True))
    begin = info["time_s"]
    hidden = go_on(env, act, observation, info)
    assert hidden[-1].terminated
    assert not hidden[-1].truncated
    assert hidden[-1].info["time_s"] > begin + 600


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "act", "policy", "most"),
    [("JobSelection", 0, "fcfs", 80), ("MixedPolicy", np.array([1.0]), "fairshare", 60)],
)
def test_a_hidden_future_goes_on_with_what_was_used(
    name: str, act: Any, policy: str, most: int
) -> None:
    """With known run times and shares it is that of the jobs that are known."""
    rules = {"estimate": "clairvoyant", "backfill_order": "fairshare", "fair_share": FAIR[0]}
    if name == "MixedPolicy":
        rules |= {"policy_features": ["fairshare"], "interval": "pass"}
    env = make(name, workload=USERS, jobs=100, **rules)
    play(env, lambda *_: act, most=most, options={"start": 0, "jobs": 100})
    now, hidden = env.time, env.snapshot(hide=True)
    jobs = env.episode_workload.take(env.episode_workload.submit_time <= now)
    rules = {"policy": policy, **env.scheduler_rules}
    expected = simulate(jobs, **rules).start.tolist()
    by_submission = simulate(jobs, **heeded(rules | {"backfill_order": "fcfs"})).start.tolist()
    differ = {max(pair) for pair in zip(expected, by_submission, strict=True) if len({*pair}) > 1}
    assert max(differ) > now
    for _ in range(2):
        go_on(env, lambda *_: act, *env.restore(hidden))
        assert env.result().start[: len(jobs)].tolist() == expected


_WAITS = jobs_of([(0, 2, 200), (10, 2, 60), (50, 2, 30), (90, 1, 40)], 4)
OTHER_USERS = {"workload": BUSY.with_columns(user_id=np.roll(BUSY.user_id, 1))}  # as many jobs each
LEARNING = {"estimate": "e-loss", "policy_estimate": REGRESSIONS[1], "backfill_order": "lexp"}


def extract(wait: int) -> dict[str, Any]:
    """An extract of the same jobs, whatever the wait of one that runs at its beginning."""
    return whole(_WAITS.with_columns(wait_time=[0, wait, 60, 20]).extract(100))


@ids
@pytest.mark.parametrize("options", [{}, {"backfill_order": "fcfs"}, extract(40)])
def test_they_are_of_the_same_rules(name: str, options: dict[str, Any]) -> None:
    first, same = (begun(name, **LEARNING | options) for _ in range(2))
    same.restore(first.snapshot())


def begun(name: str, **options: Any) -> Any:
    env = make(name, **options)
    env.reset(seed=0)
    return env


def moved(options: dict[str, Any], other: dict[str, Any], hide: bool = False) -> None:
    """Restore what is of these options in environments of these."""
    for name in NAMES:
        snapshot = begun(name, **LEARNING | options).snapshot(hide=hide)
        begun(name, **LEARNING | options | other).restore(snapshot)


@ids
def test_a_simulation_goes_on_with_its_environment(name: str) -> None:
    """It is one as others are, and is there as long as somebody looks at it."""
    env = VECTOR[name](2, BUSY, jobs=40, window=8)
    env.reset(seed=1)
    live = env.simulations.simulation(1)
    assert isinstance(live, Simulation)
    before = live.time
    env.step(env.action_space.sample())
    assert live is env.simulations.simulation(1)
    assert live.time > before
    del env
    assert len(live.schedule()["start"]) == 40


test_mistakes = mistakes_of(globals(), errors=(HpcgymError, ValueError))
