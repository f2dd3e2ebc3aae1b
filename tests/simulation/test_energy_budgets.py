"""Budgets of energy by hand: what they let start, and how nodes are reckoned."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_limits import jobs, machine, run, states

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


def test_switching_off_counts_in_a_budget() -> None:
    """A job of 10 s, then 50 s of switching off, then 40 s off."""
    cluster = machine(1, NodePower(100, 200, 10, shutdown_time_s=50))
    needs = 10 * 200 + 50 * 100 + 40 * 10
    for joules, start in ((needs, 0), (needs - 1, 100)):
        budget = EnergyBudget(joules, 0, 100, shutdown=True)
        result = run(jobs((0, 1, 10)), budget, cluster=cluster, power="none")
        assert result.start.tolist() == [start]
        assert result.metrics["budget_exceeded_j"] == 0


def test_a_budget_that_idle_nodes_exceed() -> None:
    budget = EnergyBudget(300 * 100, 0, 100)
    result = run(jobs((0, 1, 10), (120, 1, 10)), budget, power="energy-bud")
    assert result.start.tolist() == [100, 120]
    assert result.metrics["budget_exceeded_j"] == 100 * 100


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


def test_how_nodes_are_reckoned_is_said_of_nodes_that_are_switched() -> None:
    budget = EnergyBudget(1e6, 0, 1000, off_as_idle=True)
    with pytest.raises(HpcgymError, match="budget: off_as_idle is about nodes that are off"):
        run(jobs((0, 1, 1)), budget)
    assert run(jobs((0, 1, 1)), budget, cluster=machine(shutdown_after_s=5)).start.tolist() == [0]
    cap = PowerCap(300, 500, 900)
    assert run(jobs((0, 1, 1)), budget, cap, power="shut").start.tolist() == [0]
