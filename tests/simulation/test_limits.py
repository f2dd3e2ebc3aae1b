"""Limits of power by hand; machines and rules that do not go with limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym import Cluster, Workload, simulate, validate_schedule
from hpcgym.machine import Level, NodeGroup, NodePower, Partition, find_cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.whole_nodes import node_power
from hpcgym.simulation.limited import nodes_off

#: Idle 100 W, busy 150 W and 1.5 times as long, or 200 W; off 10 W.
POWER = NodePower(100, [150, 200], 10, [1, 2], 1.5)


def machine(
    nodes: int = 4, power: NodePower | None = POWER, cores: int = 1, **more: Any
) -> Cluster:
    return Cluster(groups=(NodeGroup("node", nodes, {"core": cores}, power),), **more)


def jobs(*rows: tuple[int, int, int] | tuple[int, int, int, int], **columns: Any) -> Workload:
    """Jobs of (submit, processors, run time) and maybe requested time."""
    filled = [row if len(row) == 4 else (*row, row[2]) for row in rows]
    names = ("submit_time", "requested_processors", "run_time", "requested_time")
    given = {name: [row[i] for row in filled] for i, name in enumerate(names)}
    return Workload.from_columns({**given, **columns}, processors=64, name="by hand")


def run(workload: Workload, *limits: Any, cluster: Cluster | None = None, **rules: Any) -> Result:
    """Simulate, and prove that the schedule is valid."""
    result = simulate(workload, cluster=cluster or machine(), limits=limits, **rules)
    validate_schedule(result)
    return result


def states(result: Result) -> list[tuple[int, int, int, int]]:
    if result.node_states is None:
        return []
    columns = (result.node_states.node, result.node_states.state)
    columns += (result.node_states.begin, result.node_states.end)
    return [tuple(row) for row in np.stack(columns, axis=1).tolist()]


# --- Extracts ---------------------------------------------------------------------------------


def of_log() -> Workload:
    """At 10 s A (node 0, to 20) and B (nodes 1 and 2, to 12) run, and C, which did, has no node."""
    log = jobs((0, 2, 20), (2, 3, 9), (4, 1, 10), wait_time=[0, 1, 2])
    return replace(log, processors=6).extract(10)


@pytest.mark.parametrize("allocation", ["first-fit", "contiguous"])
def test_an_extract_begins_with_nodes_that_are_on(allocation: str) -> None:
    result = run(of_log(), cluster=machine(3, cores=2), allocation=allocation)
    assert result.start.tolist() == [0, 3, 12]
    assert result.allocation is not None
    assert result.allocation.node.tolist() == [0, 1, 2, 1]
    assert [*result.workload.cleaning.values()] == [1]
    assert result.metrics["makespan_s"] == 22 - 10
    assert result.metrics["energy_j"] == 200 * (10 + 2 * 2 + 10) + 100 * (3 * 12 - 24)


def test_no_budget_has_begun_before_an_extract() -> None:
    small = machine(3, cores=2)
    # from 15 to 35: 6,000 J idle, 500 J for A up to 20, 700 J for C, if it starts at 12
    for joules, start in ((7199, 35), (7200, 12)):
        budget = EnergyBudget(joules, 15, 35, period=20)
        assert run(of_log(), budget, cluster=small).start.tolist() == [0, 3, start]


# --- By hand ----------------------------------------------------------------------------------

SIX = ((0, 1, 30),) * 6
SLEEPY = NodePower(100, 200, 10, shutdown_time_s=5, boot_time_s=20)
SHUTS = machine(1, NodePower(100, 200, 10, shutdown_time_s=50))
RACKS = machine(levels=(Level("rack", 2, 50.0),))
SAVED = {"start": 0, "end": 100, "period": 10}
# a job of 10 s, then 50 s of switching off, then 40 s off
NEEDS = 10 * 200 + 50 * 100 + 40 * 10
#: Jobs, limits, the rule, maybe the machine, and when jobs start.
HAND: dict[str, tuple[Any, ...]] = {
    # four idle nodes draw 400 W; each busy one adds 100: the third is backfilled, for it ends by 10
    "a cap": (((0, 1, 10), (0, 2, 10), (0, 1, 10), (0, 1, 10)), [PowerCap(650)], "none", None,
              [0, 10, 0, 20]),
    "its milliwatts are rounded down": (
        ((0, 1, 10),), [PowerCap(200.0002, 0, 50)], "none", machine(2, NodePower(0, 200.0004)),
        [50]),
    "what is drawn is rounded up": (
        ((0, 1, 10),), [PowerCap(200.0012, 0, 50)], "none", machine(2, NodePower(0, 200.0004)),
        [0]),
    # 100 W busy, and 60 W of the other node as it may begin to switch off; at 35 s it is off
    **{f"a free node may {'switch off' if after else 'stay on'}":
       (((0, 1, 10),), [PowerCap(130, 0, 50)], "none",
        machine(2, NodePower(10, 100, shutdown_time_s=5, shutdown_w=60), shutdown_after_s=after),
        [35 if after else 0]) for after in (None, 30)},
    # at 200 W, then one at 150 W and slower, then none; beyond the window all are fast
    "frequencies": (((0, 1, 10),) * 4, [PowerCap(550, 0, 15)], "dvfs", None, [0, 0, 10, 15]),
    # one of four nodes must be off, for 190 W; the third needs all, and waits for it to boot
    "planned shutdown": (
        ((0, 1, 10, 40), (0, 1, 60), (40, 4, 10), (100, 1, 10)), [PowerCap(700, 50, 90)], "shut",
        machine(4, SLEEPY), [0, 0, 110, 120]),
    # batsim#66: a job ran four times longer on a node that had been woken
    "nodes that have slept": (((0, 1, 40), (100, 1, 40), (200, 1, 40)), [], "none",
                              machine(1, SLEEPY, shutdown_after_s=30), [0, 120, 220]),
    # 500 W on average: one busy node
    "a budget as a cap": (SIX, [EnergyBudget(500 * 100, 0, 100)], "powercap", None,
                          [0, 30, 60, 90, 100, 100]),
    # idle to 50 s: 100 W less than the mean, for 50 s; two nodes for 50 s need that
    "nothing is saved": (((0, 1, 1), (50, 2, 40)), [EnergyBudget(50_000, **SAVED)], "powercap",
                         None, [0, 100]),
    **{f"what is saved can be used by {rule}":
       (((0, 1, 1), (20, 2, 40)), [EnergyBudget(50_000, **SAVED)], rule, None, [0, 50])
       for rule in ("reduce-pc", "energy-bud")},
    # Glesser 2016, section 5.3.3: with energy-bud a short wide job may start, once its 800 J are
    # saved beside the 8,000 J of the head; else it may not
    "a wide job waits": (((0, 1, 150), (60, 4, 40), (60, 3, 4)),
                         [EnergyBudget(600 * 200, 0, 200, period=10)], "reduce-pc", None,
                         [0, 150, 190]),
    "a wide job is backfilled": (((0, 1, 150), (60, 4, 40), (60, 3, 4)),
                                 [EnergyBudget(600 * 200, 0, 200, period=10)], "energy-bud", None,
                                 [0, 150, 90]),
    "switching off fits": (((0, 1, 10),), [EnergyBudget(NEEDS, 0, 100, shutdown=True)], "none",
                           SHUTS, [0]),
    "it does not": (((0, 1, 10),), [EnergyBudget(NEEDS - 1, 0, 100, shutdown=True)], "none",
                    SHUTS, [100]),
    # a busy node and three idle ones are all of the mean; once three are off, two may be busy
    **{f"off is {'idle' if blind else 'off'}, {cluster.nodes} nodes of {mean} W":
       (SIX, [EnergyBudget(mean * 100, 0, 100, shutdown=True, free_node_w=100 if blind else None)],
       "powercap",
        cluster, [0, 30, 60, 90, 100, 100] if blind else [0, 30, 30, 60, 60, 90])
       for blind in (False, True) for cluster, mean in ((machine(), 500), (RACKS, 600))},
}  # fmt: skip


@pytest.mark.parametrize("name", HAND)
def test_starts_under_limits(name: str) -> None:
    rows, limits, rule, cluster, starts = HAND[name]
    result = run(jobs(*rows), *limits, cluster=cluster, power=rule)
    assert result.start.tolist() == starts
    assert result.metrics.get("budget_exceeded_j", 0) == 0
    assert result.metrics.get("cap_exceeded_s", 0) == 0


def test_a_schedule_under_limits_tells_frequencies_and_states() -> None:
    rows, limits, rule, _, _ = HAND["frequencies"]
    result = run(jobs(*rows), *limits, power=rule)
    assert result.frequency is not None
    assert result.frequency.tolist() == [1, 0, 1, 1]
    assert result.run_time.tolist() == [10, 15, 10, 10]
    # (wait + run) / run at the highest frequency
    assert result.bsld.tolist() == [1, 1.5, 2, 2.5]
    rows, limits, rule, cluster, _ = HAND["planned shutdown"]
    result = run(jobs(*rows), *limits, cluster=cluster, power=rule)
    # node 0 is for jobs that end by 45; the second would not
    assert result.allocation is not None
    assert result.allocation.node.tolist() == [0, 1, 0, 1, 2, 3, 0]
    assert states(result) == [(0, 1, 45, 50), (0, 0, 50, 90), (0, 2, 90, 110)]
    assert result.power.watts[result.power.time.between(50, 89)].max() <= 700


def test_jobs_have_nodes_of_their_own() -> None:
    result = run(jobs((0, 3, 10), (0, 2, 10), (0, 1, 10)), cluster=machine(4, cores=2))
    assert result.start.tolist() == [0, 0, 0]
    assert result.allocation is not None
    assert result.allocation.node.tolist() == [0, 1, 2, 3]
    assert result.allocation.units.tolist() == [2, 1, 2, 1]
    two, small = jobs((0, 1, 10), (0, 1, 10)), machine(1, cores=2)
    shared = simulate(two, cluster=small)
    assert (shared.start.tolist(), shared.limits) == ([0, 0], None)
    assert simulate(two, cluster=small, allocation="contiguous").start.tolist() == [0, 10]


def test_nodes_that_are_off_under_a_cap() -> None:
    cluster = machine(8, levels=(Level("chassis", 4, 60.0),))
    assert greatest_w(cluster) == 8 * 200 + 2 * 60
    # three nodes save 570 W; a fourth with its chassis 190 + 60 + 4 * 10 more
    for watts, off in ((1720, 0), (1719, 1), (1150, 3), (1149, 4), (860, 4), (859, 5)):
        assert nodes_off(cluster, node_power(cluster), PowerCap(watts), "shut") == off
        assert nodes_off(cluster, node_power(cluster), PowerCap(watts), "dvfs") == 0
    given = jobs(*((0, 1, 100),) * 8)
    result = run(given, PowerCap(1149, 0), cluster=cluster, power="shut")
    assert sorted(result.start.tolist()) == [0] * 4 + [100] * 4
    assert {row[0] for row in states(result)} == {0, 1, 2, 3}
    assert result.power.watts.tolist() == [860, 860, 0]


def test_what_idle_nodes_exceed_is_counted_once() -> None:
    """One cap up to 50 s and another one from 40 s on; the idle machine exceeds both."""
    given = jobs((0, 1, 1), (200, 1, 10))
    result = run(given, PowerCap(300, 10, 50), PowerCap(350, 40, 70))
    assert result.start.tolist() == [0, 200]
    assert result.metrics["cap_exceeded_s"] == 60
    budget = EnergyBudget(300 * 100, 0, 100)
    result = run(jobs((0, 1, 10), (120, 1, 10)), budget, power="energy-bud")
    assert result.start.tolist() == [100, 120]
    assert result.metrics["budget_exceeded_j"] == 100 * 100


def test_mix_uses_the_higher_frequencies() -> None:
    curie = find_cluster("curie")
    power = node_power(curie)
    small = Cluster(groups=(NodeGroup("thin", 90, {"core": 16}, power),), levels=curie.levels)
    given = hpcgym.load_workload("lublin:jobs=300,processors=1440,seed=1,load=1.3")
    cap = PowerCap.of(small, 0.7, 50_000, end=150_000)
    lowest = {}
    for rule in ("dvfs", "mix"):
        result = run(given, cap, cluster=small, power=rule)
        assert result.frequency is not None
        lowest[rule] = power.frequency_ghz[result.frequency.min()]
    assert lowest["mix"] == 2.0
    assert lowest["dvfs"] < 2.0


@pytest.mark.parametrize(("slowdown", "off"), [(1.63, [255, 1009, 444]), (3.0, [0, 0, 444])])
def test_mix_switches_off_as_algorithm_2_does(slowdown: float, off: list[int]) -> None:
    """Where rho is at most 0; else only where 2 GHz are not slow enough, at 76.7 % of the power."""
    curie = find_cluster("curie")
    power = replace(node_power(curie), slowdown=slowdown)
    caps = [PowerCap.of(curie, share) for share in (0.95, 0.8, 0.7)]
    assert [nodes_off(curie, power, cap, "mix") for cap in caps] == off


def test_a_cap_for_now_that_nobody_knew() -> None:
    given = jobs((0, 2, 100), (1, 1, 20), (2, 1, 50), (30, 1, 10))
    # 800 W at 10 s, 700 from 21 s on, 600 from 52 s on: the last one does not fit before 100 s
    waits = run(given, PowerCap(650, 10, 200, announced=10))
    assert waits.start.tolist() == [0, 1, 2, 100]
    assert waits.metrics["cap_exceeded_s"] == 42
    kills = run(given, PowerCap(650, 10, 200, announced=10, kills=True))
    # the jobs that began last: the third and the second
    assert kills.run_time.tolist() == [100, 9, 8, 10]
    assert kills.killed.tolist() == [False, True, True, False]
    assert kills.metrics["killed_jobs"] == 2
    assert kills.metrics["cap_exceeded_s"] == 0
    # all of their nodes draw up to the second in which they are killed
    assert kills.books.by_job().tolist() == [2 * 100 * 200, 9 * 200, 8 * 200, 10 * 200]
    # 700 W are not above a cap of as much
    exactly = run(jobs((0, 2, 100), (1, 1, 20)), PowerCap(700, 10, 200, announced=10, kills=True))
    assert not exactly.killed.any()


PARTED = machine(partitions=(Partition("batch", (0, 1)), Partition("debug", (2, 3))))
NAMED = replace(jobs((0, 1, 9), partition=[1]), header={"Partition": ["1 batch"]})
WIDE = jobs((0, 1, 10), (0, 3, 10), job_number=[7, 8])


def test_a_job_that_does_not_fit_under_a_cap_waits_for_its_end() -> None:
    result = simulate(WIDE, cluster=machine(), limits=PowerCap(650, 5, 500))
    assert result.start.tolist() == [0, 500]


test_mistakes = mistakes_of(globals())
