"""Machines under limits that an agent steers: against a slow one, and by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from drawing import assume, given, settings
from drawing import strategies as st
from driving import CHASSIS, LOADED, SEEDS, SLOW, for_slow, jobs_of, play, rules, whole
from limit_strategies import Case, limited, on_single_cores, simulate_pool
from mistakes import mistakes_of
from slow_controls import SteeredSimulation
from strategies import holds

from hpcgym import Cluster, Workload
from hpcgym.envs.core.machines import LimitedMachines
from hpcgym.envs.power_limits import EnergyBudgetEnv, PowerCapEnv
from hpcgym.errors import HpcgymError
from hpcgym.machine import NodeGroup, NodePower
from hpcgym.schedule.runs import STATE_NAMES
from hpcgym.scheduler.limits import EnergyBudget, PowerCap

KINDS = "caps switching budgets both none"
INTERVALS = st.sampled_from(["hour", "hour", "2h", "episode", 1, 2, 3, 7])
SETS = st.sampled_from(
    [
        ("frequency", "nodes", "power"),
        ("power", "nodes"),
        ("nodes",),
        ("power", "frequency"),
        ("frequency",),
    ]
)
# often all, so that something can start at all; numbers between two levels and nodes
NUMBERS = np.array([-1.0, -0.6, -0.2, 0.0, 0.1, 0.5, 0.75, 1.0, 1.0, 1.0], np.float32)
CODES = {"off": "off", "shutting": "switching_off", "booting": "switching_on"}


def environment(case: Case, **more: Any) -> PowerCapEnv:
    """The environment of a case, whose one episode is all jobs."""
    names = (
        "backfill", "backfill_order", "estimate", "policy_estimate", "correction", "allocation",
        "power", "hold",
    )  # fmt: skip
    rules = {name: case.rules[name] for name in names}
    return PowerCapEnv(
        **whole(case.workload, cluster=case.cluster, limits=case.limits, window=4, **rules, **more)
    )


@st.composite
def steered(draw: st.DrawFn, learns: bool = False, any_cores: bool = False) -> Case:
    """A case for environments: in the order of submission, its clock from 0 on.

    ``learns``: with rules of those who predict; unless they have ``any_cores``, on nodes of one
    core: what is learned of a job looks at its nodes, and the reference at its processors.
    Likewise at one level where shares of requested times are learned, which are longer at others.
    """
    case = draw(limited(KINDS))
    # of fcfs, no threshold changes anything
    case.rules |= {"policy": "fcfs", "threshold": None, "policy_estimate": "requested"}
    case.rules |= {"hold": draw(holds())}
    if learns:
        case.rules |= {rule: value for rule, value in draw(rules()).items() if rule != "passes"}
        if not any_cores:
            case = on_single_cores(case)
            assert case.cluster.groups[0].power is not None
            if case.cluster.groups[0].power.levels > 1:
                shares = ("user-ratio", "typical-ratio")
                for rule in ("estimate", "policy_estimate"):
                    if case.rules[rule] in shares:
                        case.rules[rule] = "e-loss"
    first = int(case.workload.submit_time[0])
    moved = case.workload.with_columns(submit_time=case.workload.submit_time - first)
    limits = []
    for limit in case.limits:
        end = None if limit.end is None else limit.end - first
        assume(end is None or end > 0)
        start = max(limit.start - first, 0)
        known = getattr(limit, "announced", None)
        known = {} if known is None else {"announced": max(known - first, 0)}
        limits.append(replace(limit, start=start, end=end, **known))
    return Case(moved, case.cluster, limits, case.rules)


def begin(case: Case, **more: Any) -> PowerCapEnv:
    """An environment whose limits are possible."""
    env = environment(case, **more)
    try:
        env.reset()
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    return env


def action_of(controls: tuple[str, ...], seed: int, number: int) -> Any:
    return np.random.default_rng((seed, number)).choice(NUMBERS, len(controls))


# --- Against the slow simulator -----------------------------------------------------------------


@settings(SLOW, max_examples=250)
@given(st.booleans().flatmap(steered), SETS, INTERVALS, SEEDS)
def test_any_controls(case: Case, controls: tuple[str, ...], interval: Any, seed: int) -> None:
    env = begin(case, controls=controls, interval=interval)
    steps = play(env, lambda number, _, __: action_of(controls, seed, number))
    every = ("submissions", interval) if isinstance(interval, int) else (
        {"hour": ("seconds", 3600), "2h": ("seconds", 7200), "episode": ("episode", 0)}[interval]
    )  # fmt: skip

    def decide(number: int) -> dict[str, float]:
        return dict(zip(controls, action_of(controls, seed, number).tolist(), strict=True))

    def steers(*given: Any, **rules: Any) -> SteeredSimulation:
        return SteeredSimulation(decide, every, *given, **rules)

    assert isinstance(env.simulations.world(0).machines, LimitedMachines)
    estimates = {name: case.rules[name] for name in ("estimate", "policy_estimate")}
    switches = env.simulations.world(0).machines.limited.switches
    slow = simulate_pool(case, steers, switches, **for_slow(estimates))
    assert_same_schedule(env.result(), slow.jobs, slow.intervals)
    assert [step.info["time_s"] for step in steps[:-1]] == [time for time, _ in slow.seen]
    seen = np.array([step.observation["power"] for step in steps[:-1]])
    np.testing.assert_allclose(seen, np.array([known for _, known in slow.seen]), atol=1e-6)


def assert_same_schedule(result: Any, jobs: list[Any], intervals: list[Any]) -> None:
    assert result.start.tolist() == [job.start for job in jobs]
    assert result.end.tolist() == [job.end for job in jobs]
    assert result.predicted_run_time.tolist() == [job.predicted for job in jobs]
    assert result.backfilled.tolist() == [job.backfilled for job in jobs]
    if result.frequency is not None:
        assert result.frequency.tolist() == [job.level for job in jobs]
    first, node, _ = result.allocation
    for job, (start, end) in enumerate(pairwise(first)):
        assert node[start:end].tolist() == list(jobs[job].cells)
    states = result.node_states
    columns = [] if states is None else [np.asarray(c).tolist() for c in vars(states).values()]
    states_found = [(n, STATE_NAMES[code], b, e) for n, code, b, e in zip(*columns, strict=True)]
    assert sorted(states_found) == sorted((n, CODES[state], b, e) for n, state, b, e in intervals)


# --- By hand --------------------------------------------------------------------------------------

#: Two levels, and switching takes no time.
AT_ONCE = NodePower(100.0, (150.0, 200.0), 10.0, (1.0, 2.0), 1.5)
FOUR_NODES = Cluster(groups=(NodeGroup("node", 4, {"core": 1}, AT_ONCE),))


def test_by_hand() -> None:
    """Four nodes, jobs of an hour: a cap for two, a level, nodes off, and all at once."""
    few = jobs_of([(0, 1, 3600)] * 4, 4)
    arguments = whole(few, cluster=FOUR_NODES, limits=[], interval="episode")

    def play_one(frequency: float, nodes: float, power: float) -> Any:
        env = PowerCapEnv(**arguments)
        play(env, lambda *_: np.array([frequency, nodes, power]))
        return env.result()

    assert play_one(1, 1, 1).start.tolist() == [0, 0, 0, 0]
    # 400 W idle, 800 W at most: half of what lies between are two nodes more busy than idle
    assert play_one(1, 1, 0).start.tolist() == [0, 0, 3600, 3600]
    slow = play_one(-1, 1, 1)
    assert slow.frequency.tolist() == [0, 0, 0, 0]
    assert slow.end.tolist() == [5400] * 4
    # half of a level is rounded to the even one
    assert play_one(0, 1, 1).frequency.tolist() == [0, 0, 0, 0]
    assert play_one(0.1, 1, 1).frequency is None
    dark = play_one(1, 0, 1)
    assert dark.start.tolist() == [0, 0, 3600, 3600]
    assert dark.allocation.node.tolist() == [2, 3, 2, 3]
    assert dark.node_states.node.tolist() == [0, 1]
    # at the lowest level, of 50 W more, twice as many fit below the cap
    assert play_one(-1, 1, 0).start.tolist() == [0, 0, 0, 0]
    everything = play_one(-1, -1, -1)  # one after the other, each on the first node
    assert everything.start.tolist() == [0, 5400, 10_800, 16_200]


# --- The limits of an episode -------------------------------------------------------------------


def test_usual_limits() -> None:
    """Caps from 8 to 20 h of each day that has submissions; a budget up to the last of them."""
    day = 86_400
    few = jobs_of([(day + 30_000, 1, 10), (2 * day, 1, 10), (3 * day + 28_799, 1, 10)], 4)
    # the log begins at midnight, or two hours later: then the last job comes at 10 h
    for late, days in ((0, (1, 2)), (7200, (1, 2, 3))):
        log = replace(few, header={"UnixStartTime": [str(4 * day + late)]})
        env = PowerCapEnv(**whole(log))
        env.reset()
        assert env.result().limits == tuple(
            PowerCap(0.6 * 4 * 358, k * day + 28_800 - late, k * day + 72_000 - late) for k in days
        )
    budget = EnergyBudgetEnv(**whole(few), cluster="4", share=0.5, period=60, shutdown=True)
    budget.reset()
    span = 2 * day + 28_799 - 30_000 + 1
    given = EnergyBudget(0.5 * 4 * 190.738 * span, day + 30_000, day + 30_000 + span, 60, True)
    assert budget.result().limits == (given,)


def windows(limits: list[PowerCap]) -> PowerCapEnv:
    """An environment of two windows of two jobs, of which the second has a wide one."""
    few = jobs_of([(0, 1, 60), (0, 2, 60), (9000, 8, 60), (9000, 2, 60)], 8)
    power = NodePower(idle_w=100.0, busy_w=200.0)
    machine = Cluster(groups=(NodeGroup("node", 4, {"core": 2}, power=power),))
    return PowerCapEnv(few, cluster=machine, jobs=2, limits=limits)


def test_an_episode_has_its_own_jobs_of_the_table() -> None:
    """The second window has a job that a cap never lets start, and jobs of other widths."""
    env = windows([])
    for window, units in (("window 0000", [1, 2]), ("window 0001", [2, 2, 2, 2, 2])):
        play(env, lambda *_: np.ones(3), options={"slice": window})
        allocation = env.result().allocation
        assert allocation is not None
        assert allocation.units.tolist() == units


def test_times_of_limits_count_from_the_first_submission_or_are_a_function() -> None:
    cap = PowerCap(9000.0, 100, 5000, announced=50, kills=True)
    budget = EnergyBudget(1e8, 0, 90_000)
    env = PowerCapEnv(LOADED, cluster=CHASSIS, jobs=30, limits=[cap, budget])
    env.reset(seed=3)
    first = int(env.episode_workload.submit_time[0])
    assert first > 0
    moved = (
        PowerCap(9000.0, first + 100, first + 5000, announced=first + 50, kills=True),
        EnergyBudget(1e8, first, first + 90_000),
    )
    assert env.result().limits == moved
    asked = []

    def limits_of(workload: Workload) -> list[Any]:
        asked.append(workload)
        return [PowerCap(12e3, int(workload.submit_time[5]))] if len(asked) > 1 else []

    narrow = LOADED.with_columns(requested_processors=np.minimum(LOADED.requested_processors, 4))
    env = PowerCapEnv(narrow, cluster=CHASSIS, jobs=30, limits=limits_of)
    env.reset(seed=3)
    assert env.result().limits == ()
    env.reset(seed=3)
    assert env.result().limits == (PowerCap(12e3, int(asked[1].submit_time[5])),)
    assert [len(workload) for workload in asked] == [30, 30]


test_mistakes = mistakes_of(globals())
