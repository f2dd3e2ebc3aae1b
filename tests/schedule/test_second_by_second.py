"""Books balance and limits are kept on random machines, whatever happens on them.

Kills, nodes that sleep, frequencies, caps and budgets are mixed. The validator proves each
schedule; beside it all is worked out again in every second, in fractions (`slow_books.py`), and no
code is shared with either. ``HPCGYM_EXAMPLES=1000`` draws that many cases of each kind.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from drawing import assume, event, given, settings
from drawing import strategies as st
from limit_strategies import Case, limited
from node_strategies import node_schedulers, workloads_for
from power_strategies import machines
from slow_books import SlowBooks, keep_slowly
from strategies import SEVERAL, clusters, schedulers, workloads

from hpcgym import Result, simulate, validate_schedule
from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.workload.model import Workload

SLOW = settings(max_examples=100)
PART = Fraction(1, 10**12)  # by which sums of the same energy may differ

# --- Under limits -------------------------------------------------------------------------------


@pytest.mark.slow
@SLOW
@given(limited("caps caps switching switching budgets both none", brief=True))
def test_under_limits(case: Case) -> None:
    try:
        result = simulate(case.workload, cluster=case.cluster, limits=case.limits, **case.rules)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    assert {"lengths", "states", "alone", "levels", "caps", "budgets", "energy"} <= {
        *validate_schedule(result),
        "states",  # where no node is ever switched there is nothing to prove
    }
    slow = keep_slowly(result)
    assert_balance(result, slow)
    assert_limits_kept(result, slow)
    assert_metrics(result, slow)
    note(result)


def note(result: Result) -> None:
    """Note what has happened, for ``pytest --hypothesis-show-statistics``."""
    cut = np.minimum(result.workload.run_time, result.workload.requested_time)
    kills = [max(c.start, c.announced or 0) for c in of_kind(result, PowerCap) if c.kills]
    by_cap = result.killed & (result.full_speed_run_time < cut) & np.isin(result.end, kills)
    happened = {
        "killed for a cap": by_cap.any(),
        "killed at the requested time": (result.killed & ~by_cap).any(),
        "nodes sleep": result.node_states is not None,
        "jobs are slowed down": result.frequency is not None,
        "jobs are measured": (result.workload.power_w >= 0).any(),
        "caps": of_kind(result, PowerCap),
        "budgets": of_kind(result, EnergyBudget),
        "a cap is exceeded by what ran before, or idle": result.metrics.get("cap_exceeded_s"),
    }
    for name, true in happened.items():
        if true:
            event(name)


def of_kind(result: Result, kind: type) -> list[Any]:
    return [limit for limit in result.limits or () if isinstance(limit, kind)]


def assert_limits_kept(result: Result, slow: SlowBooks) -> None:
    for cap in of_kind(result, PowerCap):
        assert_cap_kept(result, slow, cap)
    ends = result.end.tolist()
    for budget in of_kind(result, EnergyBudget):
        used = sum(slow.power[now] for now in slow.power if budget.start <= now < budget.end)
        if used > Fraction(budget.joules) * (1 + PART):  # idle: nothing is started then
            rows = zip(result.start.tolist(), ends, strict=True)
            assert not [1 for start, end in rows if start < budget.end and end > budget.start]


def assert_metrics(result: Result, slow: SlowBooks) -> None:
    """Each second counts once, of whatever caps hold."""
    caps, budgets = of_kind(result, PowerCap), of_kind(result, EnergyBudget)
    if caps:
        seconds = [
            now
            for now, power in slow.power.items()
            if any(
                max(cap.start, cap.announced or 0) <= now
                and (cap.end is None or now < cap.end)
                and power > Fraction(cap.watts) * (1 + PART)
                for cap in caps
            )
        ]
        assert result.metrics["cap_exceeded_s"] == len(seconds)
    if budgets:
        excess = Fraction(0)
        for one in budgets:
            used = sum(slow.power[now] for now in slow.power if one.start <= now < one.end)
            excess += max(used - Fraction(one.joules), 0)
        whole = sum(slow.power.values())
        assert abs(Fraction(result.metrics["budget_exceeded_j"]) - excess) <= whole * PART
    waits, runs = result.wait.tolist(), result.run_time.tolist()
    full = result.full_speed_run_time.tolist()
    slowdowns = [
        max(Fraction(wait + run, max(length, 10)), Fraction(1))
        for wait, run, length in zip(waits, runs, full, strict=True)
    ]
    mean = sum(slowdowns) / len(slowdowns)
    assert abs(Fraction(result.metrics["mean_bsld"]) - mean) <= mean * PART
    cut = np.minimum(result.workload.run_time, result.workload.requested_time)
    if result.frequency is None:
        ends_early = result.run_time < result.workload.run_time
        assert (result.run_time <= cut).all()
        assert result.metrics["killed_jobs"] == ends_early.sum()


def assert_cap_kept(result: Result, slow: SlowBooks, cap: PowerCap) -> None:
    """Whenever it is exceeded nothing runs that was given its nodes since it was announced."""
    known = -1 if cap.announced is None else cap.announced
    begins = max(cap.start, known)
    starts, ends, asked = result.start.tolist(), result.end.tolist(), given_nodes(result)
    for now, power in slow.power.items():
        if now < begins or (cap.end is not None and now >= cap.end):
            continue
        if power <= Fraction(cap.watts) * (1 + PART):
            continue
        running = [j for j, start in enumerate(starts) if start <= now < ends[j]]
        assert all(asked[j] < known for j in running), (cap, now)
        if cap.kills and now == begins:  # all that ran are killed before it is exceeded
            assert all(starts[j] == now for j in running), (cap, now)


def given_nodes(result: Result) -> list[int]:
    """When each job was given its nodes, at the earliest: before its start if it waited for one."""
    of_node = result.cluster.groups[0].power
    assert of_node is not None
    states = result.node_states
    switched = set()
    if states is not None:
        switched = set(zip(states.node.tolist(), states.end.tolist(), strict=True))
    assert result.allocation is not None
    first, node, _ = (column.tolist() for column in result.allocation)
    found = []
    for job, start in enumerate(result.start.tolist()):
        waited = any((number, start) in switched for number in node[first[job] : first[job + 1]])
        found.append(start - waited * (of_node.shutdown_time_s + of_node.boot_time_s))
    return found


# --- Without limits -----------------------------------------------------------------------------


@st.composite
def shared(draw: st.DrawFn) -> tuple[Cluster, Workload, dict[str, Any]]:
    """Nodes of several kinds that jobs share, with levels above; some jobs are measured."""
    cluster = draw(machines(pools=False))
    workload = draw(workloads_for(cluster, brief=True))
    return cluster, measured(draw, workload), draw(node_schedulers(workload))


@st.composite
def pools(draw: st.DrawFn) -> tuple[Cluster, Workload, dict[str, Any]]:
    """A pool whose processors may be switched off."""
    workload = draw(workloads(25, 12, brief=True))
    rules = draw(schedulers(workload))
    cluster = draw(clusters(workload.processors))
    if rules["backfill"] in SEVERAL or rules["passes"] == "per-event":
        cluster = Cluster(workload.processors, cluster.idle_power_w, cluster.busy_power_w)
    return cluster, measured(draw, workload), rules


def measured(draw: st.DrawFn, workload: Workload) -> Workload:
    """The workload, in some cases with jobs whose power is known."""
    if draw(st.booleans()):
        return workload
    known = st.sampled_from([-1.0, -1.0, 0.0, 5.0, 1 / 7, 22.5])
    n = len(workload)
    return workload.with_columns(power_w=draw(st.lists(known, min_size=n, max_size=n)))


@pytest.mark.slow
@SLOW
@given(shared())
def test_shared_nodes(case: tuple[Cluster, Workload, dict[str, Any]]) -> None:
    cluster, workload, rules = case
    result = simulate(workload, cluster=cluster, **rules)
    assert {"energy", "nodes"} <= {*validate_schedule(result)}
    assert_balance(result, keep_slowly(result))


@SLOW
@given(pools())
def test_pools(case: tuple[Cluster, Workload, dict[str, Any]]) -> None:
    cluster, workload, rules = case
    result = simulate(workload, cluster=cluster, **rules)
    assert "energy" in validate_schedule(result)
    if result.idle_seconds is None:
        assert_balance(result, keep_slowly(result))
        return
    # what single processors do is not kept: `tests/engine/test_power.py` proves their seconds
    whole = sum(map(Fraction, result.energy.by_state.energy_j.tolist()))
    assert_tables_agree(result, whole)


# --- The books ----------------------------------------------------------------------------------


def assert_balance(result: Result, slow: SlowBooks) -> None:
    """All tables have the same sum, and each of their rows is right."""
    whole = sum(slow.by_state.values(), Fraction(0))
    least = whole * PART

    def assert_near(value: float, expected: Fraction) -> None:
        assert abs(Fraction(value) - expected) <= least

    energy, table = result.energy, result.power
    for row in energy.by_state.itertuples():
        assert_near(row.energy_j, slow.by_state[row.state])
    assert {state for state, joules in slow.by_state.items() if joules} <= {*energy.by_state.state}
    for node, joules in enumerate(energy.by_node.energy_j.tolist()):
        assert_near(joules, slow.by_node[node])
    for group, joules in enumerate(energy.by_group.energy_j.tolist()):
        assert_near(joules, slow.by_group[group])
    users: dict[int, Fraction] = {}
    for job, row in enumerate(energy.by_job.itertuples()):
        assert_near(row.energy_j, slow.by_job[job])
        users[row.user_id] = users.get(row.user_id, Fraction(0)) + slow.by_job[job]
    for row in energy.by_user.itertuples():
        assert_near(row.energy_j, users[row.user_id])
    assert_near(energy.overhead_j, whole - sum(slow.by_job.values()))
    times, watts = table.time.tolist(), table.watts.tolist()
    place = 0
    for now, power in sorted(slow.power.items()):
        while times[place + 1] <= now:
            place += 1
        assert abs(Fraction(watts[place]) - power) <= power * PART
    steps = [end - begin for begin, end in pairwise(times)]
    assert_near(0, sum(Fraction(w) * s for w, s in zip(watts, steps, strict=False)) - whole)
    assert_tables_agree(result, whole)


def assert_tables_agree(result: Result, whole: Fraction) -> None:
    """The sums of all tables, and the metrics, are the whole [J]."""
    energy = result.energy
    overhead = Fraction(energy.overhead_j)
    sums = {
        name: sum(map(Fraction, getattr(energy, name).energy_j.tolist()))
        for name in ("by_state", "by_node", "by_group", "by_job", "by_user")
    }
    sums["by_job"] += overhead
    sums["by_user"] += overhead
    sums["total"] = Fraction(energy.total_j)
    sums["metric"] = Fraction(result.metrics["energy_j"])
    assert {name for name, joules in sums.items() if abs(joules - whole) > whole * PART} == set()
