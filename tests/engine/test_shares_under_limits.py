"""Fair share under limits of power and energy, beside the slow simulator of limits."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from limit_strategies import limited, simulate_pool
from slow_shares import Accounts, SlowOrder

from hpcgym import simulate, validate_schedule
from hpcgym.errors import HpcgymError
from hpcgym.reference.orders import weighted
from hpcgym.scheduler.policies import FairShare

pytestmark = pytest.mark.slow

HALF_LIVES = (40, 1000, 604_800, None)
SHARES: tuple[dict[Any, float], ...] = ({}, {0: 2.0}, {0: 0.5, 1: 4.0})


def accounts(data: st.DataObject, users: set[int]) -> tuple[FairShare, Accounts]:
    """Accounts as hpcgym and as the slow order take them."""
    half_life = data.draw(st.sampled_from(HALF_LIVES))
    shares = data.draw(st.sampled_from(SHARES))
    fair = FairShare(half_life or math.inf, 1.0, shares)
    return fair, Accounts(users, shares, half_life=half_life)


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@settings(max_examples=60)
@given(st.data())
def test_usage_decides_under_limits(kinds: str, data: st.DataObject) -> None:
    case = data.draw(limited(kinds))
    workload, cluster = case.workload, case.cluster
    fair, slow = accounts(data, {*workload.user_id.tolist()})
    power = cluster.groups[0].power
    assert power is not None
    busy = power.busy_levels_w[-1] / cluster.groups[0].resources["core"]
    watts = [busy if w < 0 else w for w in workload.power_w.tolist()]
    name = data.draw(st.sampled_from(["fairshare", "energy-fairshare", "mixed"]))
    kind: Any = {"fairshare": "cpu", "energy-fairshare": "energy", "mixed": (1.0, 0.5)}[name]
    assume(name == "fairshare" or any(watts))
    rest = weighted((-0.25, 0, 0.01, 0, 0, 0))

    def order() -> SlowOrder:
        made = SlowOrder(kind, slow, watts, busy, rest, processors=cluster.processors)
        made.drawn = lambda job: part_drawn(made.simulation, job)
        made.counts = lambda job, now: job.killed_at < now
        return made

    weights = {"fairshare": 1.0, "energy_fairshare": 0.5, "wait": 0.01, "processors": -0.25}
    orders = ["policy", "backfill_order"] if data.draw(st.booleans()) else ["policy"]
    ours = case.rules | dict.fromkeys(orders, weights if name == "mixed" else name)
    limits = {"cluster": cluster, "limits": case.limits}
    try:
        result = simulate(workload, fair_share=fair, **limits, **ours)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    expected = simulate_pool(case, **{which: order() for which in orders}).jobs
    assert result.start.tolist() == [job.start for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
    validate_schedule(result)


def part_drawn(simulation: Any, job: Any) -> Decimal:
    """What a job has drawn at its frequency, of what it would have drawn at the highest."""
    draws = simulation.m.busy if job.measured is None else job.measured
    return Decimal(draws[job.level]) / draws[-1] if draws[-1] else Decimal(1)
