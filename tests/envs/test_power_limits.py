"""PowerCap and EnergyBudget by themselves: what controls do, limits of episodes, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import (
    CHASSIS,
    LIMITED,
    LOADED,
    play,
    random_acts,
    whole,
)

from hpcgym import Cluster, HpcgymError, Workload, simulate, validate_schedule
from hpcgym.cluster import NodeGroup, NodePower
from hpcgym.cluster.power_plans import greatest_w
from hpcgym.envs.power_limits import EnergyBudgetEnv, PowerCapEnv
from hpcgym.scheduler.limits import EnergyBudget, PowerCap

ids = pytest.mark.parametrize("name", LIMITED)

#: Two levels, a node of two cores; switching takes time, or none.
POWER = NodePower(100.0, (150.0, 200.0), 10.0, (1.0, 2.0), 1.5)
SLOW_POWER = NodePower(100.0, (150.0, 200.0), 10.0, (1.0, 2.0), 1.5, 7, 60)


def machine(nodes: int, power: NodePower = POWER, cores: int = 1) -> Cluster:
    return Cluster(groups=(NodeGroup("node", nodes, {"core": cores}, power),))


def jobs(rows: list[tuple[int, int, int]], processors: int) -> Workload:
    """Jobs of (submission, processors, run time), which request what they run for."""
    submit, width, run = zip(*rows, strict=True)
    columns = {"submit_time": submit, "requested_processors": width}
    columns |= {"run_time": run, "requested_time": run}
    return Workload.from_columns(columns, processors=processors, name="few")


def starts(env: Any) -> list[int]:
    return env.unwrapped.result().start.tolist()


def shrunk(most: int) -> Workload:
    """The loaded workload with no job wider than ``most``."""
    width = np.minimum(LOADED.requested_processors, most)
    return LOADED.take(slice(0, 80)).with_columns(requested_processors=width[:80])


# --- What controls do ---------------------------------------------------------------------------


def test_by_hand() -> None:
    """Four nodes, jobs of an hour: a cap for two, a level, nodes off, and all at once."""
    few = jobs([(0, 1, 3600)] * 4, 4)
    arguments = whole(few, cluster=machine(4), limits=[], interval="episode")

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


def test_nothing_but_one_after_the_other() -> None:
    """With all controls at their least, the first job is served where nothing runs."""
    for cluster in (CHASSIS, machine(64, SLOW_POWER)):
        env = PowerCapEnv(LOADED, cluster=cluster, jobs=30, limits=[])
        steps = play(env, lambda *_: -np.ones(3), seed=1)
        assert steps[-1].terminated
        result = env.result()
        assert (result.frequency == 0).all()
        boots = cluster.groups[0].power.boot_time_s + cluster.groups[0].power.shutdown_time_s
        gaps = result.start[1:] - np.maximum(result.end[:-1], result.workload.submit_time[1:])
        assert (gaps >= 0).all()
        assert (gaps <= boots).all()


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_a_cap_of_the_agent_is_one_that_is_announced_as_it_begins(backfill: str) -> None:
    workload = shrunk(8)
    rng = np.random.default_rng(0)
    env = PowerCapEnv(
        **whole(workload, cluster=CHASSIS, limits=[], backfill=backfill, controls=["power"]),
        power="dvfs",
    )
    steps = play(env, lambda *_: rng.uniform(-0.4, 1.0, 1).astype(np.float32), seed=0)
    rng = np.random.default_rng(0)
    most, idle = greatest_w(CHASSIS), 64 * 117.0 + 8 * 124.0 + 3 * 180.0
    times = [int(workload.submit_time[0]), *(step.info["time"] + 1 for step in steps[1:-1])]
    caps = []
    for start, end in zip(times, [*times[1:], None], strict=True):
        share = (float(rng.uniform(-0.4, 1.0, 1).astype(np.float32)[0]) + 1) / 2
        caps.append(PowerCap(idle + share * (most - idle), start, end, announced=start))
    assert len(caps) > 10
    same = simulate(workload, cluster=CHASSIS, limits=caps, backfill=backfill, power="dvfs")
    assert starts(env) == same.start.tolist()
    assert np.array_equal(env.result().frequency, same.frequency)


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_a_ceiling_makes_jobs_longer(backfill: str) -> None:
    """As if they had been slowed down by hand, 1.63 times at the lowest level."""
    arguments = whole(shrunk(64), cluster=CHASSIS, limits=[], power="none", backfill=backfill)
    env = PowerCapEnv(**arguments, controls=["frequency"])
    play(env, lambda *_: [-1.0])
    times = {
        name: -(-LOADED.columns[name][:80] * 163 // 100) for name in ("run_time", "requested_time")
    }
    by_hand = simulate(
        shrunk(64).with_columns(**times), cluster=CHASSIS, limits=[], backfill=backfill
    )
    assert starts(env) == by_hand.start.tolist()
    assert env.result().end.tolist() == by_hand.end.tolist()


@pytest.mark.parametrize(
    ("backfill", "interval"), [("none", "hour"), ("none", 5), ("easy", "episode")]
)
def test_nodes_that_are_off_make_the_machine_smaller(backfill: str, interval: Any) -> None:
    workload = shrunk(40)
    env = PowerCapEnv(
        **whole(workload, cluster=CHASSIS, limits=[], backfill=backfill, interval=interval),
        controls=["nodes"],
    )
    play(env, lambda *_: [0.25])  # 40 of 64
    group = CHASSIS.groups[0]
    smaller = Cluster(groups=(NodeGroup("thin", 40, group.resources, group.power),))
    same = simulate(workload, cluster=smaller, limits=[], backfill=backfill)
    assert starts(env) == same.start.tolist()
    result = env.result()
    assert (result.allocation.node - 24).tolist() == same.allocation.node.tolist()
    assert set(result.node_states.node.tolist()) == set(range(24))


@pytest.mark.parametrize(
    ("joules", "boot", "second"), [(250_000, 0, 900), (309_909, 0, 100), (309_910, 1, 1000)]
)
def test_nodes_boot_as_far_as_budgets_suffice(joules: int, boot: int, second: int) -> None:
    """Three nodes are off from 0 s on, and may all be on again from 1 s on.

    220,000 J are needed for the first job, its node idle, and three nodes off; 999 * 90 J more for
    each that boots. The second job needs 10,000 J on a node that is on, and 88,500 J on one that is
    off, at the lower level: (150 - 10) * 150 + 90 * 750.
    """
    few, budget = jobs([(0, 1, 900), (100, 1, 100)], 4), EnergyBudget(joules, 0, 1000)
    env = PowerCapEnv(
        **whole(few, cluster=machine(4), limits=[budget], interval=1), controls=["nodes"]
    )
    play(env, lambda number, *_: np.array([1.0 if number else -0.5]))
    result = env.result()
    validate_schedule(result)
    assert result.start.tolist() == [0, second]
    assert result.node_states.begin.tolist() == [0] * 3
    assert result.node_states.end.tolist().count(1) == boot
    assert result.metrics["budget_exceeded_j"] == 0


# --- The limits of an episode -------------------------------------------------------------------


def test_usual_limits() -> None:
    """Caps from 8 to 20 h of each day that has submissions; a budget up to the last of them."""
    day = 86_400
    few = jobs([(day + 30_000, 1, 10), (2 * day, 1, 10), (3 * day + 28_799, 1, 10)], 4)
    env = PowerCapEnv(**whole(few))
    env.reset()
    watts = 0.6 * 4 * 358
    assert env.result().limits == (
        PowerCap(watts, day + 28_800, day + 72_000),
        PowerCap(watts, 2 * day + 28_800, 2 * day + 72_000),
    )
    budget = EnergyBudgetEnv(**whole(few), share=0.5, period=60, shutdown=True)
    budget.reset()
    span = 2 * day + 28_799 - 30_000 + 1
    given = EnergyBudget(0.5 * 4 * 190.738 * span, day + 30_000, day + 30_000 + span, 60, True)
    assert budget.result().limits == (given,)


def test_limits_count_from_the_first_submission_or_are_a_function() -> None:
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

    env = PowerCapEnv(shrunk(4), cluster=CHASSIS, jobs=30, limits=limits_of)
    env.reset(seed=3)
    assert env.result().limits == ()
    env.reset(seed=3)
    assert env.result().limits == (PowerCap(12e3, int(asked[1].submit_time[5])),)
    assert [len(workload) for workload in asked] == [30, 30]


def test_a_cap_without_end_may_be_impossible() -> None:
    env = PowerCapEnv(LOADED, cluster=CHASSIS, jobs=30, limits=[PowerCap.of(CHASSIS, 0.45)])
    with pytest.raises(HpcgymError, match=r"of \d+ nodes, can never start under the cap"):
        env.reset(options={"start": 0, "jobs": 30})


# --- What else environments have ----------------------------------------------------------------


def test_a_reward_of_ones_own_sees_what_runs() -> None:
    """Times are those at the frequencies of jobs; processors are nodes."""
    seen: list[Any] = []

    def reward(view: Any) -> float:
        seen.append(view)
        return 0.0

    few = jobs([(0, 3, 100), (0, 2, 1000)], 8)
    env = PowerCapEnv(**whole(few, cluster=machine(4, cores=2), reward=reward, limits=[]))
    play(env, lambda *_: [-1.0, 1.0, 1.0])
    (view,) = seen
    assert view.run_time_s.tolist() == view.requested_time_s.tolist() == [150, 1500]
    assert view.processors.tolist() == [2, 1]
    assert view.bsld == 1.5 + 1.5
    assert view.free == 4


def test_running_jobs_are_as_long_as_they_are_slowed() -> None:
    env = PowerCapEnv(LOADED, cluster=CHASSIS, jobs=60, window=9)
    acts = random_acts(env.action_space, 3)
    observation, info = env.reset(seed=5)
    number, terminated = 0, False
    while not terminated:
        observation, _, terminated, _, info = env.step(acts(number, observation, info))
        number += 1
        result, now = env.result(), env.time
        going = (result.start >= 0) & (result.end > now)
        assert env.running().tolist() == np.flatnonzero(going).tolist()
        held = env.episode_workload.requested_processors[going].sum()
        assert env.free == 64 - held
        assert observation["power"][13] == pytest.approx(held / 64, abs=1e-6)
    assert number > 10
