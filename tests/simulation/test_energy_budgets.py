"""Budgets of energy by hand: what they let start, and how nodes are reckoned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_limits import jobs, machine, run, states

import hpcgym
from hpcgym import simulate
from hpcgym.cluster import Level, NodePower
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.limits import EnergyBudget, PowerCap


def test_powercap_keeps_below_the_mean() -> None:
    """500 W on average: one busy node."""
    budget = EnergyBudget(500 * 100, 0, 100)
    given = jobs(*((0, 1, 30),) * 6)
    result = run(given, budget, power="powercap")
    assert result.start.tolist() == [0, 30, 60, 90, 100, 100]
    assert result.metrics["budget_exceeded_j"] == 0


def test_what_is_saved_can_be_used() -> None:
    """Idle to 50 s: 100 W less than the mean, for 50 s. Two nodes for 50 s need that."""
    budget = EnergyBudget(500 * 100, 0, 100, period=10)
    given = jobs((0, 1, 1), (50, 2, 40))
    assert run(given, budget, power="powercap").start.tolist() == [0, 100]
    for rule in ("reduce-pc", "energy-bud"):
        assert run(given, budget, power=rule).start.tolist() == [0, 50]
    # with half as long to save
    given = jobs((0, 1, 1), (20, 2, 40))
    for rule in ("reduce-pc", "energy-bud"):
        # 100 W above the mean for 40 s need 4,000 J, which are there at 50 s: a second was used
        result = run(given, budget, power=rule)
        assert result.start.tolist() == [0, 50]
        assert result.reserved_start.tolist() == [-1, 50]


def test_a_short_wide_job_is_backfilled_where_there_is_energy() -> None:
    """Glesser 2016, section 5.3.3: with energy-bud it may start, with a lower cap it may not."""
    budget = EnergyBudget(600 * 200, 0, 200, period=10)
    given = jobs((0, 1, 150), (60, 4, 40), (60, 3, 4))
    # at 60 s 6,000 J are saved; the head needs 200 W above the mean for 40 s, and all nodes
    assert run(given, budget, power="reduce-pc").start.tolist() == [0, 150, 190]
    assert run(given, budget, power="energy-bud").start.tolist() == [0, 150, 60]


def test_what_is_left_for_the_head() -> None:
    """Up to 150 s 15,000 J are saved, of which it needs 8,000; the third would take 100 W."""
    budget = EnergyBudget(600 * 200, 0, 200, period=10)
    long = jobs((0, 1, 150), (60, 4, 40), (60, 1, 80))
    short = jobs((0, 1, 150), (60, 4, 40), (60, 1, 60))
    # below the mean, but not by what the head lacks
    for given in (long, short):
        assert run(given, budget, power="reduce-pc").start.tolist() == [0, 150, 190]
    # 8,000 J are more than the other 7,000, and 6,000 are less
    assert run(long, budget, power="energy-bud").start.tolist() == [0, 150, 190]
    assert run(short, budget, power="energy-bud").start.tolist() == [0, 150, 60]


def test_switching_off_counts_in_a_budget() -> None:
    """A job of 10 s, then 50 s of switching off, then 40 s off."""
    cluster = machine(1, NodePower(100, 200, 10, shutdown_time_s=50))
    needs = 10 * 200 + 50 * 100 + 40 * 10
    for joules, start in ((needs, 0), (needs - 1, 100)):
        budget = EnergyBudget(joules, 0, 100, shutdown=True)
        result = run(jobs((0, 1, 10)), budget, cluster=cluster, power="none")
        assert result.start.tolist() == [start]
        assert result.metrics["budget_exceeded_j"] == 0


def test_a_job_measured_at_nothing_draws_nothing() -> None:
    """It is charged as any other when it starts; then its node saves 10,000 J."""
    budget = EnergyBudget(25_000, 0, 100)
    given = jobs((0, 1, 50), (50, 1, 50), power_w=[0.0, -1.0])
    result = run(given, budget, cluster=machine(2), power="none")
    assert result.start.tolist() == [0, 50]


def test_a_budget_that_idle_nodes_exceed() -> None:
    budget = EnergyBudget(300 * 100, 0, 100)
    result = run(jobs((0, 1, 10), (120, 1, 10)), budget, power="energy-bud")
    assert result.start.tolist() == [100, 120]
    assert result.metrics["budget_exceeded_j"] == 100 * 100


@pytest.mark.parametrize(
    ("joules", "boot"), [(300_999, 0), (301_000, 1), (381_999, 1), (382_000, 2), (463_000, 3)]
)
def test_a_budget_suffices_for_nodes_that_boot_after_a_cap(joules: int, boot: int) -> None:
    """A job of 900 s, its node idle, and three off need 220,000 J; each that boots 90 * 900 J."""
    limits = [PowerCap(300, 0, 100), EnergyBudget(joules, 0, 1000)]
    result = run(jobs((0, 1, 900)), *limits, power="mix")
    assert result.start.tolist() == [0]
    ends = [(node, 0, 0, 100 if node < boot else 900) for node in range(3)]
    assert sorted(states(result)) == ends
    assert result.metrics["budget_exceeded_j"] == 0


@pytest.mark.parametrize(("joules", "boot"), [(321_999, 0), (322_000, 1), (484_000, 3)])
def test_a_budget_suffices_for_nodes_that_are_off_after_a_cap(joules: int, boot: int) -> None:
    """A job starts as the cap ends, while three nodes are switched off: by then 44,000 J are used.

    From then on 197,000 J are needed, and 90 * 900 J for each node that boots.
    """
    power = NodePower(100, [150, 200], 10, [1, 2], 1.5, shutdown_time_s=100)
    limits = [PowerCap(300, 0, 60, announced=0), EnergyBudget(joules, 0, 1000)]
    result = run(jobs((0, 1, 840)), *limits, cluster=machine(4, power), power="mix")
    assert result.start.tolist() == [60]
    ends = [(node, 1, 0, 100) for node in range(3)]
    ends += [(node, 0, 100, 900) for node in range(boot, 3)]
    assert sorted(states(result)) == sorted(ends)


def test_a_budget_suffices_for_nodes_that_a_job_leaves_on_before() -> None:
    """One job runs through the period, another ends before, on three nodes that were off.

    They may be idle from then on: 600 * (200 + 3 * 100) J. Without the long job they may be so in
    any case; the budget is nobody's then.
    """
    cluster = machine(shutdown_after_s=150)
    first, long, short = (0, 4, 10), (200, 1, 800), (300, 3, 50)
    for joules, start in ((300_000, 300), (299_999, 1000), (140_000, 1000)):
        budget = EnergyBudget(joules, 400, 1000)
        result = run(jobs(first, long, short), budget, cluster=cluster)
        assert result.start.tolist() == [0, 200, start]
        assert result.metrics["budget_exceeded_j"] == 0
    result = run(jobs(first, short), EnergyBudget(100_000, 400, 1000), cluster=cluster)
    assert result.start.tolist() == [0, 300]


def test_nodes_are_off_while_a_budget_says_so() -> None:
    power = NodePower(100, 200, 10, shutdown_time_s=5, boot_time_s=20)
    budget = EnergyBudget(600 * 200, 50, 250, period=50, shutdown=True)
    given = jobs((0, 1, 60), (100, 2, 40), (300, 1, 10))
    result = run(given, budget, cluster=machine(4, power), power="energy-bud")
    # the second boots two nodes, the last one takes one that is still off
    assert result.start.tolist() == [0, 120, 320]
    assert states(result) == [
        (0, 1, 60, 65), (0, 0, 65, 100), (0, 2, 100, 120), (0, 1, 160, 165), (0, 0, 165, 300),
        (0, 2, 300, 320),
        (1, 1, 50, 55), (1, 0, 55, 100), (1, 2, 100, 120), (1, 1, 160, 165), (1, 0, 165, 330),
        (2, 1, 50, 55), (2, 0, 55, 330), (3, 1, 50, 55), (3, 0, 55, 330),
    ]  # fmt: skip


@pytest.mark.parametrize(("racks", "mean"), [((), 500), ((Level("rack", 2, 50.0),), 600)])
def test_a_budget_that_reckons_off_as_idle(racks: tuple[Level, ...], mean: int) -> None:
    """A busy node and three idle ones are all of the mean; once three are off, two may be busy."""
    cluster, given = machine(levels=racks), jobs(*((0, 1, 30),) * 6)
    sees = EnergyBudget(mean * 100, 0, 100, shutdown=True)
    result = run(given, sees, cluster=cluster, power="powercap")
    assert result.start.tolist() == [0, 30, 30, 60, 60, 90]
    blind = replace(sees, off_as_idle=True)
    result = run(given, blind, cluster=cluster, power="powercap")
    assert result.start.tolist() == [0, 30, 60, 90, 100, 100]
    assert (1, 0, 0, 100) in states(result)  # it is off, and drawn so


def test_what_nodes_save_that_are_off_is_read_from_the_meter() -> None:
    """At 20 s 500 * 20 - 230 - 40 * 19 J are saved; two busy nodes and two idle ones need 4,000.

    If nodes stay on, that is there at 50 s only.
    """
    given = jobs((0, 1, 1), (20, 2, 40))
    budget = EnergyBudget(500 * 100, 0, 100, period=10, shutdown=True, off_as_idle=True)
    for rule, start in (("powercap", 100), ("reduce-pc", 20), ("energy-bud", 20)):
        assert run(given, budget, power=rule).start.tolist() == [0, start]


def test_what_is_certain_is_reckoned_with_idle_nodes() -> None:
    """A job of 10 s, then its node, which is off, counts as idle for 90 s.

    Where the meter is looked at, it is seen at 60 s that 5,100 J were used, of 6,000.
    """
    cluster = machine(1, NodePower(100, 200, 10, shutdown_time_s=50))
    needs = 10 * 200 + 90 * 100
    for joules, period, start in ((needs, 600, 0), (needs - 1, 600, 100), (needs - 1, 10, 60)):
        budget = EnergyBudget(joules, 0, 100, period, shutdown=True, off_as_idle=True)
        result = run(jobs((0, 1, 10)), budget, cluster=cluster, power="none")
        assert result.start.tolist() == [start]


def test_how_nodes_are_reckoned_is_said_of_nodes_that_are_switched() -> None:
    budget = EnergyBudget(1e6, 0, 1000, off_as_idle=True)
    with pytest.raises(HpcgymError, match="budget: off_as_idle is about nodes that are off"):
        run(jobs((0, 1, 1)), budget)
    assert run(jobs((0, 1, 1)), budget, cluster=machine(shutdown_after_s=5)).start.tolist() == [0]
    cap = PowerCap(300, 500, 900)
    assert run(jobs((0, 1, 1)), budget, cap, power="shut").start.tolist() == [0]


def test_a_budget_of_everything_with_shutdown_limits_nothing() -> None:
    given = hpcgym.load_workload("lublin:jobs=300,processors=16,seed=3,load=1.1")
    cluster = machine(16)
    expected = simulate(given, processors=16)
    budget = EnergyBudget.of(cluster, 1.0, 10_000, 400_000, shutdown=True)
    result = run(given, budget, cluster=cluster, power="energy-bud")
    assert np.array_equal(result.start, expected.start)
    assert result.metrics["energy_off_j"] > 0


# --- Nodes ------------------------------------------------------------------------------------
