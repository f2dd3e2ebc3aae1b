"""Nothing is seen that an online scheduler could not know.

Run times of jobs that have not ended, and all there is to know of jobs not submitted yet,
are altered so that the past stays the same. Observations and infos must stay the same. A reward
is another matter: it is given when a job starts and holds its run time, as does
``info["reward_bsld"]``; agents must not be shown them as observations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, costly, given, settings
from drawing import strategies as st
from driving import (
    FOLLOWING,
    NAMES,
    RULES,
    SEEDS,
    SINGLE,
    SLOW,
    Step,
    assert_same,
    go_on,
    on_nodes,
    play,
    random_acts,
    visible_acts,
    whole,
)
from expression_strategies import at_states
from limit_strategies import Case
from node_strategies import ALLOCATIONS
from strategies import workloads
from test_steered_machines import SETS, begin, steered

from hpcgym.envs.core.observation import USUAL_FEATURES
from hpcgym.envs.power_limits import EnergyBudgetEnv
from hpcgym.scheduler.limits import EnergyBudget
from hpcgym.workload import Workload

SEEN = (
    *("wait", "predicted", "policy_time", "expansion", "rank(-last_run * requested)"),
    *("free_1h * wait - mean_run", "user_running - user_waiting + fits", "known_runs * spread_run"),
    *("rank(leaves + wait * (hour + weekday))", "queued * processors - area * free"),
)
# often wrong within a few jobs
EAGER = "regression:over=absolute,under=squared,weight=small,eta=1,l2=0"
PREDICTED = {"backfill_order": "saf", "policy_estimate": EAGER, "features": SEEN}
ESTIMATES = st.sampled_from(
    [
        {"estimate": "requested"},
        {"estimate": "ave2"},
        {"estimate": "ave2", "correction": "incremental", "backfill_order": "sjbf"},
        {"estimate": "ave2", "correction": "recursive-doubling"},
        {"estimate": "ave2", "passes": "per-event"},
        {"estimate": "requested", "backfill": "none"},
        {**PREDICTED, "estimate": "ave3", "policy_estimate": "e-loss"},
        {**PREDICTED, "estimate": EAGER, "policy_estimate": "user-ratio"},
        {**PREDICTED, "estimate": "user-ratio", "policy_estimate": "typical-ratio"},
        {**PREDICTED, "estimate": "e-loss", "policy_estimate": EAGER, "passes": "per-event"},
        {**PREDICTED, "estimate": EAGER, "correction": "predicted-again"},
        {**PREDICTED, "estimate": "double-requested", "backfill_order": "lexp"},
    ]
)
INTERVALS = ("pass", "1h", 2, 3, "episode")


def altered(env: Any, now: int, seed: int, most_jobs: int, keeps_next: bool) -> Workload:
    """Return the jobs of an episode with another future, after ``now`` [s]."""
    rng = np.random.default_rng(seed)
    jobs, start = env.episode_workload, env.result().start
    n = int((jobs.submit_time <= now).sum())  # events of this second are known
    names = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")
    columns = {name: jobs.columns[name].tolist() for name in (*names, "units_per_node")}
    units = None if jobs.units is None else jobs.units.copy()
    for row in range(n):
        requested = columns["requested_time"][row]
        run = min(columns["run_time"][row], requested)
        if start[row] < 0:
            columns["run_time"][row] = int(rng.integers(1, 2 * requested + 1))
        elif start[row] + run > now and start[row] + requested > now + 1:
            least = max(now + 1 - start[row], 1)  # it may wait for its nodes
            columns["run_time"][row] = int(rng.integers(least, 2 * requested + 1))
    later = columns["submit_time"][n:]
    # that submissions come next is what ended an interval of submissions: their time is known
    following = [time for time in later if time == later[0]] if keeps_next else []
    for values in columns.values():
        del values[n:]
    number = len(later) or (int(rng.integers(1, most_jobs + 1)) if units is None else 0)
    for k in range(number):
        then = max(columns["submit_time"][-1], now) + int(rng.choice([1, 7, 600, 5000]))
        columns["submit_time"].append(following[k] if k < len(following) else then)
        columns["run_time"].append(int(rng.integers(1, 3000)))
        columns["requested_time"].append(int(rng.integers(1, 3000)))
        columns["requested_processors"].append(int(rng.integers(1, jobs.processors + 1)))
        columns["user_id"].append(int(rng.integers(-1, 3)))
        columns["units_per_node"].append(-1)
    given = {"processors": jobs.processors, "name": jobs.name}
    if units is None:
        return Workload.from_columns(columns, **given)
    units[n:] = 1
    columns["requested_processors"] = units * jobs.per_unit["core"]
    return Workload.from_columns(columns, units=units, per_unit=jobs.per_unit, **given)


def known(steps: list[Step]) -> list[Any]:
    """Return what an agent may look at."""
    return [
        (s.observation, {k: v for k, v in s.info.items() if not k.startswith("reward_")})
        for s in steps
    ]


def horizon(env: Any, interval: Any) -> int:
    """Return the second up to which everything has shown when a decision is made."""
    jobs, now = env.episode_workload, env.time
    coming = jobs.submit_time[len(env.queued()) + int((env.result().start >= 0).sum()) :]
    if isinstance(interval, int) and coming.size:
        return max(now, int(coming[0]) - 1)
    return now


@st.composite
def cases(draw: st.DrawFn) -> tuple[Workload, dict[str, Any]]:
    """Jobs and rules, on a pool, maybe under quotas, or on nodes."""
    if draw(st.integers(0, 2)):
        more = {"quota": draw(st.sampled_from([None, None, "user:jobs=1", "all:jobs=2"]))}
        more |= draw(st.sampled_from([{}, {"threshold": 100}])) if more["quota"] is None else {}
        if draw(st.booleans()):
            more["backfill_order"] = draw(at_states())
        return draw(workloads(max_jobs=25)), draw(ESTIMATES) | more
    cluster, workload = draw(on_nodes())
    rules = draw(RULES.filter(lambda rules: rules["estimate"] != "clairvoyant"))
    allocation = draw(st.sampled_from(ALLOCATIONS))
    kills = {"correction": "requested"} if rules["correction"] == "kill" else {}
    more = {"cluster": cluster, "passes": "per-timestamp", "allocation": allocation}
    return workload, rules | more | kills


@costly
@settings(SLOW, max_examples=600)
@given(
    cases(),
    st.sampled_from([*NAMES, *FOLLOWING]),
    st.sampled_from(INTERVALS),
    st.sampled_from(["revised", "kept"]),
    st.sampled_from(["start", "waiting"]),
    st.one_of(st.just("fcfs"), at_states()),
    st.integers(0, 30),
    st.integers(0, 2**16),
)
def test_another_future_looks_the_same(
    case: tuple[Workload, dict[str, Any]],
    name: str,
    interval: Any,
    reservation: str,
    paid: str,
    policy: str,
    decisions: int,
    seed: int,
) -> None:
    workload, rules = case
    arguments: dict[str, Any] = {"window": 4, "paid": paid, **rules}
    if name in FOLLOWING:
        assume("cluster" not in rules and not rules.get("quota"))
        if name == "Backfill" and rules.get("backfill") == "none":
            arguments["backfill"] = "easy"
        arguments["policy"] = policy
        arguments["features"] = [*USUAL_FEATURES, *SEEN[4:], "put_off", "past_shadow"]
    if name == "JobSelection" and not rules.get("quota"):
        arguments["reservation"] = reservation
    if name == "MixedPolicy":
        arguments["interval"] = interval
    else:
        interval = None
    env = SINGLE[name](**whole(workload, **arguments))
    acts = visible_acts(env, seed)
    steps = play(env, acts, most=decisions)
    assume(not steps[-1].terminated)
    assume(name not in FOLLOWING or steps[-1].info["window"][0] >= 0)  # it is asked
    now = horizon(env, interval)
    if name == "MixedPolicy" and len(steps) == 1 and interval != "pass":
        now = int(workload.submit_time[0]) - 1  # nothing has been submitted yet
    if now >= workload.submit_time[0]:
        other_workload = altered(env, now, seed, 5, isinstance(interval, int))
        other_env = SINGLE[name](**whole(other_workload, **arguments))
        other = play(other_env, acts, most=decisions)
        assert_same(known(steps), known(other))
        assert_same(vars_of(env.pass_view()), vars_of(other_env.pass_view()))
        if "cluster" not in rules and not rules.get("quota"):
            assert_hidden_alike(env, other_env, acts, steps[-1], other[-1])


def vars_of(view: Any) -> dict[str, Any]:
    """Return all that a view tells."""
    return {name: value for name, value in vars(view).items() if name != "resources"}


def assert_hidden_alike(env: Any, other: Any, acts: Any, here: Step, there: Step) -> None:
    """What follows a snapshot that hides does not depend on what it hides."""
    same_size = len(env.episode_workload) == len(other.episode_workload)
    futures = []
    for each, step in ((env, here), (other, there)):
        queued, now = each.queued(), each.time
        observation, info = each.restore(each.snapshot(hide=True))
        assert_same(observation, step.observation)
        steps = go_on(each, acts, observation, info, most=5000)
        assert steps[-1].terminated
        if each.options.rewards.paid:  # while they wait: what they wait from now on is still to pay
            owed = sum(step.info["reward_wait_s"] for step in steps)
            assert owed == (each.result().start[queued] - now).sum()
        rewards = [step.reward for step in steps]
        futures.append((known(steps), rewards, each.result().start, each.result().run_time))
    first, second = futures
    assert_same(first[2:], second[2:])
    assert_same(first[0], second[0])
    if same_size:  # of which rewards are means
        assert_same(first[1], second[1])


@pytest.mark.parametrize("rule", ["estimate", "policy_estimate"])
@pytest.mark.parametrize("name", NAMES)
def test_a_clairvoyant_estimate_is_seen(name: str, rule: str) -> None:
    """The test above can fail: where run times are predictions, they show."""
    columns = {
        "submit_time": [0, 0, 1],
        "run_time": [50, 60, 70],
        "requested_time": [100, 100, 100],
        "requested_processors": [2, 2, 2],
    }
    seen = []
    for run in ([50, 60, 70], [50, 90, 70]):
        workload = Workload.from_columns({**columns, "run_time": run}, processors=2)
        options = {"interval": "pass"} if name == "MixedPolicy" else {}
        rules = {rule: "clairvoyant", "features": SEEN, **options}
        env = SINGLE[name](**whole(workload, window=4, **rules))
        seen.append(env.reset()[0]["jobs"].tolist())
    assert seen[0] != seen[1]


# --- Under limits ---------------------------------------------------------------------------

COLUMNS = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")


@settings(SLOW, max_examples=250, suppress_health_check=list(HealthCheck))
@given(steered(), SETS, st.sampled_from(["hour", 1, 2, 3]), st.integers(0, 30), SEEDS)
def test_so_it_does_under_limits(
    case: Case, controls: tuple[str, ...], interval: Any, decisions: int, seed: int
) -> None:
    """Where an interval ends, and so what plans see of the controls, tells nothing either."""
    case.rules["estimate"] = "ave2" if seed % 2 else "requested"
    given = {name: case.workload.columns[name] for name in COLUMNS}
    case.workload = Workload.from_columns(given, processors=case.cluster.processors)
    env = begin(case, controls=controls, interval=interval)
    acts = random_acts(env.action_space, seed)
    most = len(play(env, acts)) - 2
    assume(most > 0)  # nothing has been submitted at the first decision
    decisions = 1 + decisions % most
    steps = play(env, acts, most=decisions)
    now = horizon(env, interval)
    case.workload = altered(env, now, seed, 5, isinstance(interval, int))
    other = play(begin(case, controls=controls, interval=interval), acts, most=decisions)
    assert_same(known(steps), known(other))


def test_usual_budgets_tell_when_the_last_job_comes() -> None:
    """As their page says, and others do not: the test above can fail."""

    def seen(last: int, limits: Any) -> list[float]:
        columns = {"submit_time": [0, 10, last], "requested_processors": [2] * 3}
        columns |= {name: [9000] * 3 for name in ("run_time", "requested_time")}
        few = Workload.from_columns(columns, processors=2)
        env = EnergyBudgetEnv(**whole(few, limits=limits))
        env.reset()
        power: list[float] = env.step([1.0, 1.0, 1.0])[0]["power"].tolist()
        return power

    assert seen(5000, None) != seen(9000, None)
    given = [EnergyBudget(2e6, 0, 9001)]
    assert seen(5000, given) == seen(9000, given)
