"""Expressions as features, and the reservation of the head, against slow plain programs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from drawing import costly, given, settings
from drawing import strategies as st
from driving import EURORA, SINGLE, SLOW, visible_acts, whole
from mistakes import mistakes_of
from strategies import workloads

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.envs.core.observation import SHADOW_AT
from hpcgym.envs.power_limits import EnergyBudgetEnv
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.reference.state import STATE
from hpcgym.workload import Workload

NAMES = ("JobSelection", "QueueOrdering", "MixedPolicy", "Backfill", "Inspector")
#: Expression -> the same of job j, which has waited w, by what is named of the state.
PLAIN: dict[str, Callable[..., float]] = {
    "requested * processors": lambda j, w, seen: float(j["requested"] * j["processors"]),
    "rank(processors)": lambda j, w, seen: float(j["processors"]),
    "rank(-wait)": lambda j, w, seen: -float(w),
    "log(1 + wait)": lambda j, w, seen: float(np.log(1 + w)),
    **{
        f"{name} + 0 * processors": (lambda j, w, seen, name=name: float(seen(name)))
        for name in STATE
    },
}


class Seen:
    """The state of an environment as :class:`hpcgym.reference.state.State` takes a simulation.

    ``cores``: of a node, where jobs have nodes of their own.
    """

    def __init__(self, env: Any, cores: int = 1) -> None:
        jobs, result, now = env.episode_workload, env.result(), env.time
        self.now, self.machine, self.workload = now, env.options.cluster.processors // cores, jobs
        self.start, self.end = result.start, result.end
        self.users = jobs.user_id
        self.widths, self.requested = -(-jobs.requested_processors // cores), jobs.requested_time
        begun = self.start >= 0
        self.over = np.flatnonzero(begun & (self.end <= now))
        self.runs = np.flatnonzero(begun & (self.end > now))
        self.waits = np.array(env.queued(), np.int64)
        self.free = self.machine - int(self.widths[self.runs].sum())

    def ends(self) -> dict[int, int]:
        """Return predicted end -> processors."""
        processors: dict[int, int] = {}
        for j in self.runs:
            end = int(self.start[j] + self.requested[j])
            processors[end] = processors.get(end, 0) + int(self.widths[j])
        return processors

    def of(self, name: str, job: int) -> float:
        """Return what a name of the state is of a job."""
        mine = self.users == self.users[job]
        by_end = self.over[np.lexsort((self.start[self.over], self.end[self.over]))]
        last = [float(self.end[j] - self.start[j]) for j in by_end if mine[j]][-5:]
        soon = sum(width for at, width in self.ends().items() if at <= self.now + 3600)
        plain = {
            "free": self.free / self.machine,
            "free_1h": (self.free + soon) / self.machine,
            "queued": len(self.waits),
            "behind": (self.requested * self.widths)[self.waits].sum() / self.machine,
            "machine_size": self.machine,
            "hour": self.now % 86_400 / 3600,
            "weekday": self.now // 86_400 % 7,
            "fits": self.widths[job] <= self.free,
            "leaves": max(self.free - self.widths[job], 0) / self.machine,
            "user_running": mine[self.runs].sum(),
            "user_waiting": mine[self.waits].sum(),
            "last_run": last[-1] if last else self.requested[job],
            "mean_run": sum(last) / len(last) if last else self.requested[job],
            "spread_run": np.std(last) if last else 0,
            "known_runs": len(last),
        }
        return float(plain[name])

    def shadow(self, job: int) -> tuple[int, int]:
        """Return when a job could start if nothing else did, and how much it would leave free."""
        free = self.free
        if self.widths[job] <= free:
            return self.now, int(free - self.widths[job])
        for end, width in sorted(self.ends().items()):
            free += width
            if free >= self.widths[job]:
                return end, int(free - self.widths[job])
        raise AssertionError("it is larger than the machine")


@costly
@settings(SLOW, max_examples=150)
@given(workloads(max_jobs=25), st.sampled_from(NAMES), st.integers(0, 2**16))
def test_what_is_shown_is_what_plain_programs_say(workload: Workload, name: str, seed: int) -> None:
    given = {"features": tuple(PLAIN), "window": 6, "backfill_order": "spf"}
    if name == "MixedPolicy":
        given["interval"] = "pass"
    env = SINGLE[name](**whole(workload, **given))
    acts = visible_acts(env, seed)
    observation, info = env.reset()
    for number in range(60):
        seen = Seen(env)
        rows = check_shown(env, seen, observation, info)
        if len(rows):
            at, extra = seen.shadow(rows[0])
            ahead = np.float32(at - env.time)
            shadow = [ahead / (ahead + np.float32(3600)), np.float32(extra) / workload.processors]
        else:
            shadow = [0, 0]
        np.testing.assert_allclose(observation["cluster"][SHADOW_AT:], shadow, rtol=2e-7)
        action = acts(number, observation, info)
        observation, _, over, cut, info = env.step(action)
        if over or cut:
            break


def check_shown(env: Any, seen: Seen, observation: Any, info: Any) -> Any:
    """Compare what is shown of visible jobs; return their rows."""
    rows, jobs = info["window"][info["window"] >= 0], env.episode_workload
    for k, (text, plain) in enumerate(PLAIN.items()):
        values = []
        for row in rows:
            processors = jobs.requested_processors[row]
            job = {"requested": jobs.requested_time[row], "processors": processors}
            wait = env.time - jobs.submit_time[row]
            values.append(plain(job, wait, lambda one, row=row: seen.of(one, row)))
        if text.startswith("rank"):
            shown = [sum(other < own for other in values) / 6 for own in values]
        else:
            shown = [own / (4 + abs(own)) for own in values]
        np.testing.assert_array_almost_equal_nulp(
            observation["jobs"][: len(rows), k], np.array(shown, np.float32)
        )
    return rows


@costly
@settings(SLOW, max_examples=100)
@given(workloads(max_jobs=25), st.integers(1, 4), st.integers(0, 2**16))
def test_what_is_free_under_limits_is_nodes(workload: Workload, cores: int, seed: int) -> None:
    nodes = -(-workload.processors // cores)
    group = NodeGroup("n", nodes, {"core": cores}, NodePower(10.0, 100.0))
    given = {"features": tuple(PLAIN), "window": 6, "limits": [], "interval": 1}
    given |= {"policy_features": ("area", "wait"), "controls": ()}
    env = EnergyBudgetEnv(**whole(workload, cluster=Cluster(groups=(group,)), **given))
    observation, info = env.reset()
    rng, over = np.random.default_rng(seed), False
    while not over:
        check_shown(env, Seen(env, cores), observation, info)
        observation, _, over, _, info = env.step(rng.uniform(-1, 1, 2).astype(np.float32))


def test_all_names_of_the_state_are_compared() -> None:
    assert all(f"{name} + 0 * processors" in PLAIN for name in STATE)


def compare(
    name: str, jobs: Workload, begin: Callable[[Any], Callable[..., Any]], policy: str, **given: Any
) -> None:
    """Let someone act on all jobs, and compare with the simulation of the rule that it plays.

    ``begin`` returns, of an environment at the beginning, what says the action. ``given`` are
    arguments of it, ``policy_estimate`` also that of the simulation.
    """
    env = SINGLE[name](**whole(jobs, backfill="easy", backfill_order="spf", **given))
    observation, info = env.reset()
    act, over = begin(env), False
    while not over:
        observation, _, over, _, info = env.step(act(observation, info))
    orders = {"policy": policy, "backfill_order": "spf"}
    if name == "Backfill":
        orders = {"policy": "fcfs", "backfill_order": policy}
    expected = hpcgym.simulate(jobs, **orders, policy_estimate=given["policy_estimate"])
    np.testing.assert_array_equal(env.result().start, expected.start)


def by_ranks(env: Any) -> Callable[..., Any]:
    """Return what takes the job of the highest rank, its one feature, or orders by ranks."""

    def act(observation: Any, info: Any) -> Any:
        ranks = observation["jobs"][:, 0].copy()
        ranks[info["window"] < 0] = -1
        if env.action_kind == "backfill":
            return 1 + int(np.argmax(ranks[1:])) if (info["window"] >= 0).sum() > 1 else 0
        return int(np.argmax(ranks)) if env.action_kind == "select" else ranks

    return act


def by_baseline(policy: str) -> Callable[[Any], Callable[..., Any]]:
    """Return what begins the baseline of a policy."""

    def begin(env: Any) -> Callable[..., Any]:
        baseline = find_baseline(policy)
        baseline.begin(env)
        return baseline.act

    return begin


@pytest.mark.parametrize("policy", ["-requested*processors", "4*log(wait+72000)-log(requested)"])
@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering", "Backfill"])
@pytest.mark.parametrize("estimate", ["requested", "typical-ratio"])
def test_who_acts_by_ranks_makes_the_schedule_of_the_rule(
    name: str, policy: str, estimate: str
) -> None:
    """Areas are of millions, and many are equal, or nearly so: float32 cannot tell them apart."""
    jobs = hpcgym.load_workload("lublin:jobs=1500,processors=4096,seed=3,load=1.0")
    # of each two jobs the second is a little smaller, in the last bit of float32
    requested = jobs.requested_time.copy()
    requested[1::2] = np.maximum(requested[::2] * 16 + 1, jobs.run_time[1::2])
    requested[::2] *= 16
    width = jobs.requested_processors.copy()
    width[1::2] = width[::2]
    jobs = jobs.with_columns(requested_time=requested, requested_processors=width)
    given: dict[str, Any] = {"window": 1500, "policy_estimate": estimate}
    compare(name, jobs, by_ranks, policy, features=(f"rank({policy})",), **given)


def test_many_environments_show_what_one_does() -> None:
    features = ("wait", "rank(-requested*processors)", "user_waiting", "log(1+last_run)")
    given = {"workload": "lublin:jobs=3000,processors=64,seed=1,load=0.9", "features": features}
    many = gymnasium.make_vec("hpcgym/JobSelection-v2", num_envs=3, window=32, **given)
    single = gymnasium.make("hpcgym/JobSelection-v2", window=32, **given)
    seen, _ = many.reset(seed=[5, 6, 7])
    alone, _ = single.reset(seed=6)
    for _ in range(100):
        for field in alone:
            np.testing.assert_array_equal(alone[field], seen[field][1])
        seen, *_ = many.step(np.zeros(3, np.int64))
        alone, _, over, cut, _ = single.step(0)
        if over or cut:
            break


def test_a_function_is_told_which_jobs_it_gets() -> None:
    """Those of the log, once, also where an episode has those that run when it begins."""
    log, got = hpcgym.load_workload("lublin:jobs=900,processors=64,load=0.7"), list[int]()

    def own(jobs: Any) -> Any:
        got.append(len(jobs.submit))
        return np.arange(900) / 1024

    for around in ({"start": "empty", "arrivals": "stop", "horizon": None}, {"start": "warm"}):
        env = SINGLE["JobSelection"](workload=log, jobs=200, features={"own": own}, **around)
        observation, info = env.reset(seed=1)
        rows = info["window"][info["window"] >= 0]
        shown = observation["jobs"][: len(rows), env.options.names.index("own")]
        assert (shown * 1024).tolist() == (env.episode_workload.job_number[rows] - 1).tolist()
        env.reset(seed=2)
        assert got.pop() == 900
        assert not got


# --- Expressions that act -------------------------------------------------------------------------

#: Of the queue, the machine and users: what changes within a pass shows.
STATES = (
    "-(0.5 - 2.4 * free) * log(processors) - log(requested)",
    "(free_1h - free) * wait - user_running * area - leaves * requested",
    "-last_run * processors * known_runs - user_waiting * spread_run + fits * wait",
)
JOBS = "lublin:jobs=800,processors=64,seed=4,load=1.1"


def with_users() -> Workload:
    """Return jobs of a few users."""
    jobs = hpcgym.load_workload(JOBS)
    return jobs.with_columns(user_id=np.random.default_rng(0).integers(0, 6, len(jobs)))


@pytest.mark.parametrize("policy", STATES)
@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering"])
@pytest.mark.parametrize("estimate", ["requested", "typical-ratio"])
def test_a_baseline_by_the_state_makes_the_schedule_of_the_rule(
    name: str, policy: str, estimate: str
) -> None:
    given: dict[str, Any] = {"features": ("wait", "user_running+spread_run"), "window": 800}
    compare(name, with_users(), by_baseline(policy), policy, policy_estimate=estimate, **given)


@pytest.mark.parametrize("policy", ["saf", "f1", "spf"])
@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering", "Backfill"])
def test_a_baseline_looks_at_predictions_of_the_environment(name: str, policy: str) -> None:
    given: dict[str, Any] = {"window": 800, "policy_estimate": "typical-ratio"}
    compare(name, with_users(), by_baseline(policy), policy, **given)


def begin(name: str, **rules: Any) -> None:
    """Let a rule by the state of the queue begin in an environment."""
    env = SINGLE[name](**whole(with_users(), window=8, **rules))
    env.reset()
    find_baseline("last_run * free * processors").begin(env)


@pytest.mark.parametrize("interval", ["pass", "hour", 3, "episode"])
@pytest.mark.parametrize("estimate", ["requested", "typical-ratio"])
def test_weights_of_expressions_are_the_rule_that_they_say(interval: Any, estimate: str) -> None:
    features = ("log(requested)", "processors", "free*log(processors)", "log(wait+600)")
    weights = [-0.5, -0.125, 0.25, 0.125]  # of which the sum is 1
    policy = " + ".join(f"{w} * ({text})" for w, text in zip(weights, features, strict=True))
    given: dict[str, Any] = {"policy_features": features, "interval": interval, "window": 8}
    constant = np.array(weights)
    compare(
        "MixedPolicy", with_users(), lambda env: lambda observation, info: constant, policy,
        policy_estimate=estimate, **given,
    )  # fmt: skip


def test_weights_of_expressions_go_on_from_copies() -> None:
    features = ("log(1+last_run)", "-log(processors)")
    env = SINGLE["MixedPolicy"](
        **whole(with_users(), policy_features=features, interval="pass", window=8, scale="spread")
    )
    env.reset()
    rng = np.random.default_rng(1)
    for _ in range(40):
        env.step(rng.uniform(-1, 1, 2))
    snapshot = pickle.loads(pickle.dumps(env.snapshot()))
    starts = []
    for _ in range(2):
        env.restore(snapshot)
        over = False
        while not over:
            over = env.step(np.array([0.5, 0.5]))[2]
        starts.append(env.result().start)
    np.testing.assert_array_equal(*starts)


test_mistakes = mistakes_of(globals(), EURORA)
