"""Portfolio look-ahead as an agent: alone, in its environment, and in an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of
from plain_envs import MixedPolicy, QueueOrdering

from hpcgym import Cluster, Scheduler, load_workload, simulate
from hpcgym.agents.lookahead import PURE, Lookahead
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.study import evaluate
from hpcgym.workload import Workload

BUSY = load_workload("lublin:jobs=400,processors=64,seed=1,load=2")
LONG = load_workload("lublin:jobs=2000,processors=64,seed=1,load=1.3")
MIXED = ["saf", "lexp", {"wait": 3.0, "area": -0.001, "f3": 0.1}, "unicef"]


def environment(workload: Any = BUSY, **arguments: Any) -> Any:
    return MixedPolicy(workload, episodes="whole", interval="pass", **arguments)


def act_to_the_end(env: Any, agent: Any) -> list[Any]:
    observation, info = env.reset(seed=0)
    agent.begin(env)
    ended, actions = False, []
    while not ended:
        actions.append(agent.act(observation, info))
        assert env.action_space.contains(actions[-1].astype(np.float32))
        observation, _, ended, _, info = env.step(actions[-1])
    return actions


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["learned", "user-ratio", "requested", "clairvoyant"])
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"backfill_order": "lexp"},
        {"backfill_order": "sjbf", "estimate": "ave2", "correction": "recursive-doubling"},
        {"backfill": "none", "estimate": "clairvoyant"},
        {"passes": "per-event", "correction": "incremental", "estimate": "ave2"},
        {"backfill": "until-shadow", "hold": 0.1},
        {"backfill": "conservative", "estimate": "ave2", "correction": "incremental"},
        {"backfill": "depth:3", "estimate": "e-loss", "correction": "predicted-again"},
        {"backfill": "slurm:bf_interval=600", "backfill_order": "fairshare"},
        {"backfill_order": "log(1 + wait) - requested", "correction": "kill", "estimate": "ave2"},
        {"quota": "user:jobs=3"},
        {"quota": "user:submitted=60", "maintenance": "10000/20000:processors=32"},
        {"cluster": Cluster(64, shutdown_after_s=600, shutdown_time_s=60, boot_time_s=300)},
    ],
    ids=str,
)
def test_the_same_schedule_alone_and_in_the_environment(
    estimate: str, rules: dict[str, Any]
) -> None:
    moved = "submitted" in rules.get("quota", "")  # where f3 has no meaning
    mixed = estimate == "user-ratio" and not moved
    agent = Lookahead(MIXED if mixed else PURE, estimate=estimate)
    env = environment(policy_features=agent.features, **rules)
    actions = act_to_the_end(env, agent)
    assert len({tuple(action) for action in actions}) > 1
    alone = agent.run(BUSY, Scheduler(**env.scheduler_rules), cluster=env.options.cluster)
    assert env.result().start.tolist() == alone.start.tolist()
    assert env.result().metrics == alone.metrics


def hourly(workload: Workload, **arguments: Any) -> Any:
    return MixedPolicy(workload, episodes="whole", interval="hour", **arguments)


class Timed(Lookahead):
    """Knows when it was asked."""

    def act(self, observation: Any, info: Any) -> Any:
        self.times.append(info["time_s"])
        return super().act(observation, info)


@pytest.mark.slow
def test_between_passes_it_does_not_look_ahead_of_its_time_either() -> None:
    """Other run times of jobs that have not ended, and other jobs to come, change no choice."""
    env, agent = hourly(LONG), Timed()
    agent.times = []
    actions = act_to_the_end(env, agent)
    half = len(actions) // 2
    run, wide = LONG.run_time.copy(), LONG.requested_processors.copy()
    running = env.result().start + run > agent.times[half]
    run[running] = LONG.requested_time[running]  # no earlier than before
    wide[LONG.submit_time > agent.times[half]] = 1
    assert (run != LONG.run_time).sum() > 50
    other = LONG.with_columns(run_time=run, requested_processors=wide)
    again = act_to_the_end(hourly(other), Lookahead())
    same = np.equal(actions[: half + 1], again[: half + 1]).all(axis=1)
    assert same.all()
    assert not np.equal(actions[half + 1 : half + 5], again[half + 1 : half + 5]).all()
    assert len(np.unique(np.array(actions[:half]), axis=0)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["none", "spread"])
def test_between_passes_it_is_the_simulation_of_its_choices(scale: str) -> None:
    """The weights in units of their features, which one vector of the portfolio has."""
    env = hourly(LONG, scale=scale)
    agent = Lookahead()
    actions = act_to_the_end(env, agent)
    chosen = np.array(actions) * (1.0 if env.units is None else env.units)
    chosen /= np.abs(chosen).sum(axis=1, keepdims=True)
    known = agent.weights / np.abs(agent.weights).sum(axis=1, keepdims=True)
    near = np.abs(chosen[:, None] - known[None]).max(axis=2).min(axis=1)
    assert near.max() < 1e-12
    assert len(np.unique(chosen.round(9), axis=0)) > 2


def test_an_episode_of_many() -> None:
    env = MixedPolicy(BUSY, jobs=100, interval="pass")
    agent = Lookahead()
    observation, info = env.reset(options={"start": 150, "jobs": 100})
    agent.begin(env)
    ended = False
    while not ended:
        observation, _, ended, _, info = env.step(agent.act(observation, info))
    assert env.result().start.tolist() == agent.run(env.episode_workload).start.tolist()


@pytest.mark.parametrize("hide", [False, True])
def test_it_notices_that_a_snapshot_was_restored(hide: bool) -> None:
    env, agent = environment(), Lookahead()
    observation, info = env.reset(seed=0)
    agent.begin(env)
    for _ in range(150):
        observation, _, _, _, info = env.step(agent.act(observation, info))
    snapshot = env.snapshot()
    expected = []
    for _ in range(100):
        expected.append(agent.act(observation, info))
        observation, _, _, _, info = env.step(expected[-1])
    # another past of the same jobs
    env.restore(snapshot)
    for _ in range(60):
        env.step(np.eye(6)[2])
    if hide:
        hidden = env.snapshot(hide=True)
        observation, info = env.restore(hidden)
        agent.act(observation, info)
    observation, info = env.restore(snapshot)
    for action in expected:
        assert (agent.act(observation, info) == action).all()
        observation, _, _, _, info = env.step(action)


def test_who_knows_run_times_does_better_than_the_best_of_the_portfolio() -> None:
    best = min(simulate(BUSY, name).metrics["mean_bsld"] for name in PURE)
    result = Lookahead(estimate="clairvoyant").run(BUSY)
    assert result.metrics["mean_bsld"] < best
    assert result.outside


def test_the_result_names_no_policy_that_never_ran() -> None:
    for scheduler in (None, "saf", Scheduler("wfp3", backfill_order="lexp")):
        result = Lookahead().run(BUSY, scheduler)
        order = getattr(scheduler, "backfill_order", "spf")
        assert result.outside
        assert result.scheduler == Scheduler(backfill_order=order)
    # as in the environment
    env = environment()
    act_to_the_end(env, Lookahead())
    assert env.result().outside
    assert env.result().scheduler == Lookahead().run(BUSY).scheduler


@pytest.mark.parametrize("estimate", ["learned", "requested"])
def test_short_jobs_count_by_tau(estimate: str) -> None:
    start = {
        tau: Lookahead(estimate=estimate, tau=tau).run(BUSY).start.tolist()
        for tau in (0.5, 1, 10, 3600.0)
    }
    assert start[10] == Lookahead(estimate=estimate).run(BUSY).start.tolist()
    assert start[3600.0] != start[10]
    # run times are whole seconds, their ratios to requested times are not
    assert (start[0.5] == start[1]) == (estimate == "requested")


def test_no_jobs_and_one() -> None:
    for n in (0, 1):
        result = Lookahead().run(BUSY.take(slice(0, n)))
        assert (result.wait == 0).all()
        assert len(result.wait) == n


def test_a_row_of_an_evaluation() -> None:
    board = evaluate(["lookahead"], BUSY, jobs=40, n=2, budget=0, **NOTHING_AROUND)
    assert board.schedulers["lookahead"] is None
    assert board.failures == {}
    for name, value in board.by_slice["lookahead"].items():
        part = slice_of(BUSY, str(name))
        assert value == Lookahead().run(part).metrics["mean_bsld"]


def slice_of(workload: Workload, name: str) -> Workload:
    env = MixedPolicy(workload, jobs=100)
    env.reset(options={"slice": name})
    return env.episode_workload


def test_run_takes_what_simulate_takes() -> None:
    jobs = load_workload("lublin:jobs=100,processors=16,seed=0,load=1")
    easy = Lookahead().run(jobs, "easy")
    on_nodes = Lookahead().run(jobs, "easy", cluster="16x1x1")
    assert (on_nodes.start == easy.start).all()
    assert np.diff(on_nodes.allocation.first).tolist() == jobs.requested_processors.tolist()
    assert easy.scheduler.backfill_order == "spf"  # as goes with weights
    assert (easy.start == Lookahead().run(jobs, backfill_order="spf").start).all()
    in_order = Lookahead().run(jobs, "easy", backfill_order="fcfs")
    assert in_order.scheduler.backfill_order == "fcfs"


@pytest.mark.parametrize(
    ("rules", "same"),
    [
        ({"backfill": "depth:1"}, {}),
        ({"quota": "user:jobs=1000000"}, {}),
        ({"quota": "user:submitted=1000000"}, {}),
        ({"maintenance": "9000000000/9000000001"}, {}),
        ({"quota": "user:jobs=1000000", "backfill": "depth:3"}, {"backfill": "depth:3"}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::hpcgym.errors.RuleWarning")
def test_rules_that_bind_nothing_change_nothing(
    rules: dict[str, str], same: dict[str, str]
) -> None:
    agent = Lookahead()
    starts = agent.run(BUSY, backfill_order="fcfs", **rules).start
    assert starts.tolist() == agent.run(BUSY, backfill_order="fcfs", **same).start.tolist()
    assert starts.tolist() != simulate(BUSY, "saf", **rules).start.tolist()


def test_drained_queues_keep_to_quotas() -> None:
    """One job of a user runs at once. At 10 s one of jobs 1 and 2 may start, though both fit.

    A drained queue without the quota would start both: the first vector, longest first, would do.
    """
    columns = {
        "submit_time": [0, 1, 1, 1],
        "run_time": [10, 100, 20, 5],
        "requested_time": [10, 100, 20, 5],
        "requested_processors": [1, 1, 1, 1],
        "user_id": [1, 1, 1, 2],
    }
    workload = Workload.from_columns(columns, processors=2)
    agent = Lookahead([{"requested": 1.0}, {"requested": -1.0}], estimate="requested", tau=1)
    rules = {"backfill_order": "fcfs", "quota": "user:jobs=1"}
    assert agent.run(workload, **rules).start.tolist() == [0, 30, 10, 1]


def test_an_extract_begins_where_it_is() -> None:
    """With one vector it is a simulation of the extract."""
    part = simulate(BUSY, "saf").as_workload().extract(int(BUSY.submit_time[200]))
    result = Lookahead(["lexp", "lexp"]).run(part)
    assert result.start.tolist() == simulate(part, "lexp").start.tolist()
    assert Lookahead(["lexp", "saf"]).run(part).start.tolist() != result.start.tolist()


test_mistakes = mistakes_of(globals(), QueueOrdering)
