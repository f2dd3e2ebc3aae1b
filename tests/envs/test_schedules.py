"""Schedules under actions that nobody would choose are those of slow environments, everywhere.

A slow environment (`slow_environments.py`) shares no code with those of the library. It is asked
the same questions, by what is seen alone, so that one question too many would not change them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from driving import (
    FAIR,
    INTERVALS,
    KINDS,
    NEEDY,
    NODES_WITH_MEM,
    RULES,
    SEEDS,
    SINGLE,
    SIX_WEIGHTS,
    SLOW,
    THRESHOLDS,
    USERS,
    Step,
    by_chance,
    for_slow,
    in_turn,
    on_nodes,
    play,
    rules,
    terms_of,
    units_on_nodes,
    whole,
)
from extract_strategies import parts_of, recorded
from limit_strategies import Case, limited, on_single_cores, simulate_pool
from node_strategies import ALLOCATIONS
from share_strategies import BUSY_W, SlowOrder, accounts, order, watts_of, with_power
from slow_environments import (
    PAID,
    OnNodes,
    OnOwnNodes,
    OnPool,
    Ordering,
    Selecting,
    Weighing,
    agent_on,
)
from strategies import workloads
from test_steered_machines import assert_same_schedule

from hpcgym import Cluster, simulate, validate_schedule
from hpcgym.envs.core.observation import ON_AT
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.workload import Workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")
WINDOWS = st.sampled_from([1, 2, 3, 5, 40])


class Place(NamedTuple):
    """Where choices are tried.

    Attributes
    ----------
    arguments : of an environment.
    slow : makes the slow environment of who decides, by what that takes, and lets it run.
    passes : whether weights hold for single passes.
    paid : whether slowdowns may be paid at other times than at starts.
    check : compares what else the machine has, by the environment, its steps and the slow one.
    """

    arguments: dict[str, Any]
    slow: Callable[..., Any]
    passes: bool = True
    paid: bool = True
    check: Callable[[Any, list[Step], Any], None] = lambda env, steps, slow: None


@st.composite
def pools(draw: st.DrawFn) -> Place:
    jobs, given_rules = draw(workloads()), draw(st.one_of(RULES, rules()))
    return on_pool(jobs, given_rules, for_slow(given_rules))


def on_pool(jobs: Workload, given_rules: Any, slow_rules: Any, **more: Any) -> Place:
    def slow(who: Any, *deciding: Any, **threshold: Any) -> Any:
        return agent_on(OnPool, who).of(jobs, *deciding, **slow_rules, **threshold)

    return Place(whole(jobs, **given_rules, **more), slow, passes=False)


@st.composite
def of_users(draw: st.DrawFn) -> Place:
    """Jobs with power, of users whose order depends on what they have used."""
    return on_pool(*draw(shares()))


@st.composite
def shares(draw: st.DrawFn) -> tuple[Workload, dict[str, Any], dict[str, Any]]:
    """Jobs with power, rules of an environment by usage, and the same with the slow order."""
    jobs = draw(with_power(draw(workloads(max_jobs=30))))
    fair, slow = draw(accounts(jobs))
    ours, theirs = draw(order(slow, watts_of(jobs)))
    common = {
        "backfill": "easy",
        "estimate": draw(st.sampled_from(["requested", "clairvoyant", "ave2", "typical-ratio"])),
        "policy_estimate": draw(st.sampled_from(["requested", "requested", "ave3"])),
        "correction": draw(st.sampled_from(["requested", "incremental", "recursive-doubling"])),
        "passes": draw(st.sampled_from(["per-timestamp", "per-timestamp", "per-event"])),
    }
    cluster = Cluster(jobs.processors, busy_power_w=BUSY_W)
    mine = common | {"backfill_order": ours, "fair_share": fair, "cluster": cluster}
    return jobs, mine, common | {"backfill_order": theirs}


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


def extract_of(data: st.DataObject, workload: Workload) -> Workload:
    """An extract in which there is something to decide."""
    part = parts_of(data, recorded(data, workload), {"estimate": "requested"})[0]
    assume(part is not None and part.initial is not None)
    assume(not part.initial.running.all())  # so that there is something to decide
    return part


@st.composite
def extracts(draw: st.DrawFn) -> Place:
    part = extract_of(draw(st.data()), draw(workloads(max_jobs=30)))
    given_rules = draw(PLAIN)
    return on_pool(part, given_rules, given_rules)


@st.composite
def nodes(draw: st.DrawFn) -> Place:
    """Passes are one at a time there."""
    cluster, jobs = draw(on_nodes())
    given_rules = {rule: value for rule, value in draw(rules()).items() if rule != "passes"}
    given_rules["allocation"] = draw(st.sampled_from(ALLOCATIONS))

    def slow(who: Any, *deciding: Any, **threshold: Any) -> Any:
        every = {"policy": "fcfs", "passes": "per-timestamp", "threshold": None}
        every |= for_slow(given_rules) | threshold
        of_nodes = node_jobs_of(jobs, cluster.resources)
        made = agent_on(OnNodes, who)(*deciding, of_nodes, cluster.capacity.tolist(), **every)
        made.run()
        return made

    def check(env: Any, steps: list[Step], made: Any) -> None:
        assert units_on_nodes(env.result()) == [dict(job.nodes) for job in made.jobs]
        if env.result().policy_run_time is not None:
            assert env.result().policy_run_time.tolist() == [job.policy_time for job in made.jobs]

    return Place(whole(jobs, cluster=cluster, **given_rules), slow, check=check)


@st.composite
def own_nodes(draw: st.DrawFn) -> Place:
    """Nodes are switched off, or stand in a row, or both.

    Where run times are learned they have one core: what is learned of a job looks at its nodes, and
    the reference at its processors.
    """
    case = draw(limited("none"))
    case.rules |= {"policy": "fcfs", "threshold": None, "policy_estimate": "requested"}
    if draw(st.booleans()):
        case.rules |= {rule: value for rule, value in draw(rules()).items() if rule != "passes"}
        case = on_single_cores(case)
    if case.cluster.shutdown_after_s is None and case.rules["allocation"] != "contiguous":
        after = draw(st.sampled_from([0, 1, 30, 600]))
        case.cluster = replace(case.cluster, shutdown_after_s=after)
    names = ("backfill", "backfill_order", "estimate", "policy_estimate", "correction")
    given_rules = {rule: case.rules[rule] for rule in (*names, "allocation")}

    def slow(who: Any, *deciding: Any, **threshold: Any) -> Any:
        made, estimates = agent_on(OnOwnNodes, who), ("estimate", "policy_estimate")
        return simulate_pool(
            Case(case.workload, case.cluster, [], {**case.rules, **threshold}),
            lambda *given, **rules: made(*deciding, *given, **rules),
            **for_slow({name: case.rules[name] for name in estimates}),
        )

    def check(env: Any, steps: list[Step], made: Any) -> None:
        assert_same_schedule(env.result(), made.jobs, made.intervals)
        seen = np.array([step.observation["cluster"][[0, ON_AT]] for step in steps[:-1]])
        np.testing.assert_allclose(seen * len(made.nodes), np.array(made.seen), atol=1e-5)

    given_rules |= {"cluster": case.cluster}
    return Place(whole(case.workload, **given_rules), slow, paid=False, check=check)


def chosen(
    kind: str, place: Place, window: int, seed: int, weights: Any, interval: Any, threshold: Any
) -> None:
    """Play any choices of a kind in an environment and in a slow one, and compare what they did."""
    first: dict[str, Any] = {"threshold": threshold}
    paid = PAID[seed % 3 if place.paid else 0]
    place.arguments.update(paid=paid, reward=["bsld", "wait"])
    if kind == "weights":
        given_weights, normalised = in_turn(weights)
        interval = "pass" if place.passes else interval
        env = SINGLE["MixedPolicy"](**place.arguments, interval=interval, **first)
        steps = play(env, lambda number, _, __: given_weights(number))
        slow = place.slow(Weighing, normalised, interval, **first)
    else:
        numbers, act = by_chance(seed, kind, window)
        if kind == "scores":
            env = SINGLE["QueueOrdering"](**place.arguments, window=window, **first)
            slow = place.slow(Ordering, numbers, window, **first)
        else:
            env = SINGLE["JobSelection"](
                **place.arguments, window=window, reservation=kind, **first
            )
            slow = place.slow(Selecting, numbers, kind == "kept", window, **first)
        steps = play(env, act)
    if place.passes or kind != "weights":
        assert len(steps) - 1 == max(len(slow.seen), 1)  # one step if nobody is asked
    assert env.result().start.tolist() == [job.start for job in slow.jobs]
    assert env.result().predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    place.check(env, steps, slow)
    validate_schedule(env.result())
    before, *terms = [[*terms_of(step.info).values()][:2] for step in steps]
    decided = env.result().decided
    total = [env.result().bsld[decided].sum(), env.result().wait[decided].sum()]
    assert np.sum([before, *terms], axis=0) == pytest.approx(total, rel=1e-12)
    if slow.seen:
        assert before == pytest.approx(slow.at_first[paid], rel=1e-12)
        due = (np.array(total) - before) / decided.sum() / [1, 3600]
        assert -sum(step.reward for step in steps) == pytest.approx(due, rel=1e-9, abs=1e-9)
    else:
        assert not sum(step.reward for step in steps).any()


PLACES = {
    "pool": pools(), "nodes": nodes(), "own nodes": own_nodes(), "users": of_users(),
    "extract": extracts(),
}  # fmt: skip
_SLOW = ("own nodes", "users", "extract")


@costly
@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[pytest.mark.slow] * (place in _SLOW)) for place in PLACES]
)
@settings(SLOW, max_examples=800)
@given(st.data(), KINDS, WINDOWS, SEEDS, SIX_WEIGHTS, INTERVALS, THRESHOLDS)
def test_any_choices(
    place: str, data: Any, kind: str, window: int, seed: int, weights: Any, interval: Any,
    threshold: int | None,
) -> None:  # fmt: skip
    chosen(kind, data.draw(PLACES[place]), window, seed, weights, interval, threshold)


def test_long_queues() -> None:
    """Hundreds of queued jobs lie in several blocks, and most are not in the window."""
    random = np.random.default_rng(0)
    columns = {
        "submit_time": np.sort(random.integers(0, 4000, 300)),
        "run_time": random.integers(1, 2000, 300),
        "requested_time": random.integers(1, 4000, 300),
        "requested_processors": random.integers(1, 40, 300),
        "user_id": random.integers(1, 4, 300),
    }
    workload = Workload.from_columns(columns, processors=40)
    for order_of in (
        {"backfill_order": "fcfs"},
        {"backfill_order": "sjbf", "estimate": "ave2", "correction": "incremental"},
        {"backfill_order": "saf", "passes": "per-event"},
    ):
        for kind, window in (("revised", 20), ("scores", 100)):
            chosen(kind, on_pool(workload, order_of, order_of), window, 0, [], "pass", None)


# --- Usage in the action --------------------------------------------------------------------------

#: In another order than the table of features, usage in the middle.
FEATURES = ("wait", "fairshare", "requested", "energy_fairshare", "processors")
WEIGHTED = st.tuples(
    st.sampled_from([0.0, 0.0, 0.01, -0.01]),
    st.sampled_from([0.0, 1.0, -0.5, 100.0]),
    st.sampled_from([0.0, 0.0, -0.25]),
    st.sampled_from([0.0, 0.0, 1.0]),
    st.sampled_from([0.0, 0.0, -0.25]),
)


def exact(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Weights of the same signs whose sizes are eighths, 1 together.

    Places are often whole parts of each other, and so are processors: what should tie does so only
    where sums are exact.
    """
    used = [place for place, weight in enumerate(weights) if weight]
    sizes = [0.125 if weight else 0.0 for weight in weights]
    if used:
        sizes[used[-1]] = 1 - 0.125 * (len(used) - 1)
    return tuple(map(math.copysign, sizes, weights))


@pytest.mark.slow
@costly
@settings(SLOW, max_examples=200)
@given(shares(), INTERVALS, st.lists(WEIGHTED, min_size=2, max_size=4))
def test_weights_of_usage_that_change(case: Any, interval: Any, given_weights: list[Any]) -> None:
    """Against the slow agent, with a slow order for each decision."""
    jobs, mine, theirs = case
    slow, known = theirs["backfill_order"], dict.fromkeys(("estimate", "policy_estimate"))
    known = dict.fromkeys(known, "requested")
    if slow.accounts.in_a_tree:
        given_weights = [exact(weight) for weight in given_weights]
    weights, normalised = in_turn(given_weights)

    class ByUsage(Weighing):
        def score_by(self, weights: Any) -> Any:
            wait, cpu, time, energy, size = weights
            used = [weight for weight in weights if weight]
            alone = len(used) == 1 and bool(cpu or energy)
            kind: Any = ("cpu" if cpu else "energy") if alone else (cpu, energy)
            sign = -1 if alone and used[0] < 0 else 1
            made = SlowOrder(
                kind, slow.accounts, slow.watts, BUSY_W,
                lambda job, now: (
                    time * job.requested + wait * (now - job.submit) + size * job.processors
                ),
            )  # fmt: skip
            made.begin(self)
            return lambda job, now: sign * made(job, now)

    place = on_pool(jobs, mine | known, theirs | known, interval=interval, policy_features=FEATURES)
    env = SINGLE["MixedPolicy"](**place.arguments)
    play(env, lambda k, _, __: weights(k))
    expected = place.slow(ByUsage, normalised, interval)
    assert env.result().start.tolist() == [job.start for job in expected.jobs]


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", [{"workload": USERS}, {"workload": NEEDY, "cluster": NODES_WITH_MEM}], ids=len
)
@pytest.mark.parametrize("fair", FAIR, ids=["shares", "group", "accounts", "tree"])
def test_each_episode_begins_anew_with_its_own_users(place: Any, fair: Any) -> None:
    weights = np.array([0.002, 1.0, 0.0, 0.0, -0.002])
    policy = dict(zip(FEATURES, (weights / np.abs(weights).sum()).tolist(), strict=True))
    order = "fs+efs" if fair.formula == "classic" else "energy-fairshare"
    rules = {"backfill_order": order, "fair_share": fair, "policy_features": FEATURES}
    env = SINGLE["MixedPolicy"](**place, jobs=100, **rules)
    for first, n in ((0, 60), (120, 80), (20, 40), (0, 60)):
        play(env, lambda *_: weights, options={"start": first, "jobs": n})
        machine = {"cluster": env.options.cluster, **env.scheduler_rules}
        same = simulate(env.episode_workload, policy=policy, **machine)
        assert env.result().start.tolist() == same.start.tolist()
    plain = simulate(env.episode_workload, "easy", cluster=env.options.cluster)
    assert env.result().start.tolist() != plain.start.tolist()
