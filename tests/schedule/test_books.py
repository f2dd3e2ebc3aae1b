"""The books of schedules equal those of :mod:`hpcgym.reference.energy`, and close.

That works all out again in fractions, node by node: of schedules that nobody simulated, and of such
under limits, on shared nodes and on pools; the validator proves these.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from limit_strategies import limited
from mistakes import mistakes_of
from node_strategies import node_schedulers, workloads_for
from power_strategies import in_seconds, machines, schedules
from strategies import SEVERAL, clusters, schedulers, workloads

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, Level, NodeGroup, NodePower
from hpcgym.reference.energy import Energies, energies_of
from hpcgym.schedule.books import Books, seconds
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import NodeStates
from hpcgym.schedule.schedule import job_slowdowns
from hpcgym.scheduler.limits import PowerCap
from hpcgym.validation.books import check_books, check_states, lengths_at_frequencies
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload.extracts import extract
from hpcgym.workload.model import Workload

MANY, SOME = settings(max_examples=300), settings(max_examples=100)
PART = Fraction(1, 10**12)  # by which sums of the same energy may differ


def close(value: float, expected: Fraction | float) -> bool:
    return math.isclose(value, float(expected), rel_tol=1e-12, abs_tol=1e-12)


def assert_balance(result: Result) -> Energies:
    """Each row of each table is that of all seconds, and all have the same sum."""
    slow, books, energy = energies_of(result), result.books, result.energy
    states, nodes = slow.by_state(), slow.by_node(result.cluster.nodes)
    whole, charged = sum(states.values(), Fraction(0)), slow.by_job(len(result.start))

    def near(value: float, expected: Fraction | float) -> bool:
        return abs(Fraction(value) - Fraction(expected)) <= whole * PART + Fraction(1, 10**12)

    for state in {*states, *books.states}:
        assert near(books.by_state[state], states.get(state, 0)), state
    for node, joules in enumerate(energy.by_node.energy_j.tolist()):
        assert near(joules, nodes[node])
    group_of = result.cluster.group_of.tolist()
    for group, joules in enumerate(energy.by_group.energy_j.tolist()):
        assert near(joules, sum(nodes[n] for n, g in enumerate(group_of) if g == group))
    users: dict[int, Fraction] = {}
    for job, row in enumerate(energy.by_job.itertuples()):
        assert near(row.energy_j, charged[job])
        users[row.user_id] = users.get(row.user_id, Fraction(0)) + charged[job]
    for row in energy.by_user.itertuples():
        assert near(row.energy_j, users[row.user_id])
    table, first = result.power, int(books.time[0])
    steps = np.repeat(table.watts[:-1], np.diff(table.time)).tolist()
    power = in_seconds(slow.watts())
    assert len(steps) == len(power)
    for second, watts in enumerate(steps):
        assert close(watts, power[first + second])
    for group in range(len(result.cluster.groups) or 1):
        total, power = sum(books.watts(group).values()), in_seconds(slow.watts(group))
        for second, watts in enumerate(np.repeat(total, np.diff(books.time)).tolist()):
            assert close(watts, power[first + second])
    assert_tables_agree(result, float(whole))
    return slow


def assert_tables_agree(result: Result, whole: float) -> None:
    """The sums of all tables are the whole [J]."""
    energy = result.energy
    for table in (energy.by_state, energy.by_node, energy.by_group):
        assert close(math.fsum(table.energy_j), whole)
    for table in (energy.by_job, energy.by_user):
        assert close(math.fsum(table.energy_j) + energy.overhead_j, whole)
        # without a job there is nobody over whom it could be spread
        assert close(math.fsum(table.with_overhead_j), whole if len(result.start) else 0)
    assert close(energy.total_j, whole)
    assert close(result.metrics["energy_j"], whole)
    assert energy.by_user.jobs.sum() == len(result.start)


@MANY
@given(schedules())
def test_as_second_by_second(result: Result) -> None:
    assert_balance(result)
    assert check_books(result) == []
    # how long switching takes is drawn at random
    assert not [text for text in check_states(result) if "runs on" in text]
    full = np.minimum(result.workload.run_time, result.workload.requested_time)
    assert lengths_at_frequencies(result, full).tolist() == result.run_time.tolist()


def measured(draw: st.DrawFn, workload: Workload) -> Workload:
    """The workload, in some cases with jobs whose power is known."""
    if draw(st.booleans()):
        return workload
    known = st.sampled_from([-1.0, -1.0, 0.0, 5.0, 1 / 7, 22.5])
    n = len(workload)
    return workload.with_columns(power_w=draw(st.lists(known, min_size=n, max_size=n)))


@st.composite
def on_shared_nodes(draw: st.DrawFn) -> tuple[Workload, dict[str, Any]]:
    """Nodes of several kinds that jobs share, with levels above; some jobs are measured."""
    cluster = draw(machines(pools=False))
    workload = draw(workloads_for(cluster, brief=True))
    rules = draw(node_schedulers(workload))
    return measured(draw, workload), {"cluster": cluster, **rules}


@st.composite
def on_pools(draw: st.DrawFn) -> tuple[Workload, dict[str, Any]]:
    """A pool whose processors may be switched off."""
    workload = draw(workloads(25, 12, brief=True))
    rules = draw(schedulers(workload))
    cluster = draw(clusters(workload.processors))
    if rules["backfill"] in SEVERAL or rules["passes"] == "per-event":
        cluster = Cluster(workload.processors, cluster.idle_power_w, cluster.busy_power_w)
    return measured(draw, workload), {"cluster": cluster, **rules}


UNDER_LIMITS = limited("caps caps switching switching budgets both none", brief=True).map(
    lambda case: (case.workload, {"cluster": case.cluster, "limits": case.limits, **case.rules})
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "where", [UNDER_LIMITS, on_shared_nodes(), on_pools()], ids=["limits", "nodes", "pools"]
)
@SOME
@given(data=st.data())
def test_simulations_second_by_second(where: Any, data: st.DataObject) -> None:
    workload, rules = data.draw(where)
    try:
        result = hpcgym.simulate(workload, **rules)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    assert "energy" in validate_schedule(result)
    if result.idle_seconds is None:
        assert_metrics(result, assert_balance(result))
    else:  # what single processors do: `tests/engine/test_power.py` proves their seconds
        assert_tables_agree(result, math.fsum(result.energy.by_state.energy_j))


def assert_metrics(result: Result, slow: Energies) -> None:
    """Each second counts once, of whatever caps hold."""
    seconds_power = in_seconds(slow.watts())
    caps = [limit for limit in result.limits or () if hasattr(limit, "watts")]
    budgets = [limit for limit in result.limits or () if hasattr(limit, "joules")]
    above = [
        any(
            max(cap.start, cap.announced or 0) <= now < (math.inf if cap.end is None else cap.end)
            and power > Fraction(cap.watts) * (1 + PART)
            for cap in caps
        )
        for now, power in seconds_power.items()
    ]
    assert result.metrics.get("cap_exceeded_s", 0) == sum(above)
    excess = Fraction(0)
    for budget in budgets:
        used = sum(
            watts for now, watts in seconds_power.items() if budget.start <= now < budget.end
        )
        excess += max(used - Fraction(budget.joules), 0)
    whole = sum(seconds_power.values())
    exceeded = Fraction(result.metrics.get("budget_exceeded_j", 0))
    assert abs(exceeded - excess) <= whole * PART
    waits, runs = result.wait.tolist(), result.run_time.tolist()
    times = zip(waits, runs, result.full_speed_run_time.tolist(), strict=True)
    slowdowns = [max((wait + run) / max(length, 10), 1) for wait, run, length in times]
    assert close(result.metrics["mean_bsld"], math.fsum(slowdowns) / len(slowdowns))


@SOME
@given(schedules(), st.data())
def test_the_validator_finds_books_that_do_not_close(result: Result, data: st.DataObject) -> None:
    books = result.books
    assume(len(result.start) and books.by_job().max() > 0)
    job = int(books.by_job().argmax())
    factor = data.draw(st.sampled_from([1 - 1e-9, 1 + 1e-9, 2.0, 0.5]))

    class Wrong(Books):
        def by_job(self, measure=seconds):  # type: ignore[no-untyped-def]
            charged = super().by_job(measure).copy()
            charged[job] *= factor
            return charged

    vars(result)["books"] = Wrong(result)
    total = sum(books.by_state.values())
    if books.by_job()[job] * 1e-9 > 2e-12 * total:
        assert any(text.startswith("all jobs") for text in check_books(result))
    vars(result)["books"] = books
    states = dict(books.by_state)
    assert check_books(result) == []
    books.by_state["idle"] = states["idle"] + 1e-9 * total
    assert any("idle" in text for text in check_books(result))


def test_the_validator_finds_energy_that_is_somebody_elses() -> None:
    """All sums close, and each job is charged between the part of its cores at either level."""
    result = two_levels_on_a_node()

    class ByJob(Books):
        def by_job(self, measure=seconds):  # type: ignore[no-untyped-def]
            return super().by_job(measure) + np.array([10.0, -10.0])

    class ByNode(Books):
        by_node = property(lambda self: super().by_node + self.moved)  # type: ignore[assignment]
        moved = np.array([[1.0], [-1.0]])

    class Power(Books):
        def watts(self, group=None):  # type: ignore[no-untyped-def]
            power = super().watts(group)
            power["idle"] = power["idle"] + np.array([1.0, -0.5, 0.0])  # for 5 s, and for 10 s
            return power

    for kind, text in (
        (ByJob, r"job 0 is charged [0-9.]+ J instead of 4000.0 J \(and 1 more\)"),
        (Power, r"the power is 301.0 W from 0 s on instead of 300.0 W \(and 1 more\)"),
        (ByNode, r"node 0 draws 5007.0 J instead of 5000.0 J \(and 1 more\)"),
    ):
        vars(result)["books"] = kind(result)
        (violation,) = check_books(result)
        assert re.fullmatch(text, violation), violation


def test_the_validator_finds_jobs_on_nodes_that_are_off() -> None:
    result = two_jobs_apart()
    right = NodeStates([1, 1, 0], [0, 2, 0], [0, 15, 30], [15, 20, 60])
    good = replace(result, node_states=right)
    assert check_states(good) == []
    for states, text in (
        (NodeStates([1], [0], [0], [21]), "job 1 runs on node 1 while it is not on"),
        (NodeStates([1, 0], [0, 2], [35, 29], [36, 34]), "job 0 runs on node 0 while it is not on"),
        (NodeStates([1], [2], [10], [14]), "node 1 is switched on for 4 s instead of 5 s"),
        (NodeStates([1], [1], [3], [7]), "node 1 is switched off for 4 s instead of 3 s"),
    ):
        assert text in " ".join(check_states(replace(result, node_states=states)))


# --- By hand ----------------------------------------------------------------------------------

#: 100 W idle, 200 W busy at 1 GHz, 300 W at 2 GHz, 10 W off; 5 s to switch on, 3 s to switch off.
NODE = NodePower(100, (200, 300), 10, (1, 2), 2, shutdown_time_s=3, boot_time_s=5)


def machine(nodes: int, cores: int = 4, *levels: Level) -> Cluster:
    return Cluster(groups=(NodeGroup("n", nodes, {"core": cores}, NODE),), levels=levels)


def jobs(rows: list[tuple[int, ...]], **columns: object) -> Workload:
    """Jobs of (submission, run time, requested time, units, cores of each)."""
    submit, run, requested, units, cores = zip(*rows, strict=True)
    names = {"submit_time": submit, "run_time": run, "requested_time": requested, **columns}
    size = sum(u * c for u, c in zip(units, cores, strict=True))
    return Workload.from_columns(names, processors=size, units=units, per_unit={"core": cores})


def two_jobs_apart() -> Result:
    """A on node 0 from 0 to 30 s, then B on node 1, 20 to 60 s."""
    workload = jobs([(0, 30, 30, 1, 4), (20, 40, 40, 1, 4)], user_id=[7, 8])
    return hpcgym.simulate(workload, "easy", cluster=machine(2))


def two_levels_on_a_node() -> Result:
    """A on 3 cores of node 0 at 1 GHz up to 20 s, B on its last from 5 to 15 s at 2 GHz."""
    workload = jobs([(0, 10, 10, 1, 3), (5, 10, 10, 1, 1)])
    fast = hpcgym.simulate(workload, "easy", cluster=machine(2))
    return replace(fast, frequency=np.array([0, 1]), run_time=np.array([20, 10]))


def test_who_pays_what_by_hand() -> None:
    """Computing costs more than idling, which batsim#38 had alike."""
    result = two_jobs_apart()
    assert result.books.by_job().tolist() == [30 * 300, 40 * 300]
    idle = 20 * 100 + 30 * 100  # node 1 before B, node 0 after A
    energies = {name: result.metrics[f"energy_{name}j"] for name in ("idle_", "busy_", "")}
    assert energies == {"idle_": idle, "busy_": 21_000, "": 21_000 + idle}
    assert "energy_components_j" not in result.metrics
    assert result.power.watts.tolist() == [400, 600, 400, 0]
    assert result.power.time.tolist() == [0, 20, 30, 60]
    users = result.energy.by_user
    assert users.user_id.tolist() == [7, 8]
    assert users.with_overhead_j.tolist() == pytest.approx([9_000 * 26 / 21, 12_000 * 26 / 21])


@pytest.mark.parametrize(
    ("rows", "nodes", "charged", "whole"),
    [
        # killed at its requested time: all of its nodes draw up to that second (batsim#51)
        ([(0, 1000, 30, 3, 4), (0, 50, 50, 1, 1)], 4, [27_000, 15_000], 42_000 + 3 * 20 * 100),
        # a parallel job has all cores of its nodes (batsim#72)
        ([(0, 30, 30, 3, 4)], 4, [27_000], 30 * (3 * 300 + 100)),
        # two on a node divide what it draws (batsim#65)
        ([(0, 10, 10, 1, 3), (5, 10, 10, 1, 1)], 1, [1500 + 1500 * 3 / 4, 1500 + 1500 / 4], 4500),
    ],
)
def test_cases_that_others_had_wrong(rows: Any, nodes: int, charged: Any, whole: float) -> None:
    result = hpcgym.simulate(jobs(rows), "easy", cluster=machine(nodes))
    assert result.killed.tolist() == [run > requested for _, run, requested, *_ in rows]
    assert result.books.by_job().tolist() == charged
    assert result.metrics["energy_j"] == whole
    assert validate_schedule(result)


def test_levels_of_frequency() -> None:
    """A, 3 cores at 1 GHz, takes twice as long; B, 1 core at 2 GHz, raises what the node draws."""
    workload = jobs([(0, 10, 10, 1, 3), (5, 10, 10, 1, 1)])
    fast = hpcgym.simulate(workload, "easy", cluster=machine(1))
    slow = replace(fast, frequency=np.array([0, 1]), run_time=np.array([20, 10]))
    assert job_slowdowns(slow).tolist() == [2, 1]
    shared = 10 * 300  # of the second 5 to 15, divided as 3 * 200 to 1 * 300
    charged = [10 * 200 + shared * 600 / 900, shared * 300 / 900]
    assert slow.books.by_job().tolist() == pytest.approx(charged, rel=1e-15)
    states = slow.books.by_state
    assert (states["busy_1ghz"], states["busy_2ghz"]) == (10 * 200, shared)
    assert not slow.killed.any()
    assert {"lengths", "energy"} <= {*validate_schedule(slow)}
    # a job that is cut runs for longer than it requested, and one may have a slowdown of its own
    workload = jobs([(0, 100, 7, 1, 4), (0, 10, 10, 1, 4)])
    result = hpcgym.simulate(workload, "easy", cluster=machine(2))
    slow = replace(result, frequency=np.array([0, 0]), run_time=np.array([14, 20]))
    assert slow.killed.tolist() == [True, False]
    own = {**workload.columns, "slowdown": np.array([1.1, -1.0])}
    other = replace(slow, workload=replace(workload, columns=own), run_time=np.array([8, 20]))
    assert job_slowdowns(other).tolist() == [1.1, 2]
    for schedule in (slow, other):
        assert "lengths" in validate_schedule(schedule)


def test_what_stands_above_nodes_is_saved_when_all_below_is_off() -> None:
    """Two chassis of 2 nodes, one rack of both; nodes 2 and 3 are off at different times."""
    levels = (Level("chassis", 2, 50), Level("rack", 2, 70))
    workload = jobs([(0, 100, 100, 1, 4)])
    result = hpcgym.simulate(workload, "easy", cluster=machine(4, 4, *levels))
    states = NodeStates([2, 3, 3, 1], [0, 0, 2, 0], [10, 20, 40, 0], [50, 40, 45, 100])
    result = replace(result, node_states=states)
    power = dict(zip(result.power.time.tolist(), result.power.watts.tolist(), strict=True))
    assert power == {
        0: 300 + 10 + 100 + 100 + 170,
        10: 300 + 10 + 10 + 100 + 170,
        20: 300 + 10 + 0 + 0 + 120,  # a chassis is off, with what its nodes draw that are off
        40: 300 + 10 + 10 + 300 + 170,
        45: 300 + 10 + 10 + 100 + 170,
        50: 300 + 10 + 100 + 100 + 170,
        100: 0,
    }
    nodes = result.energy.by_node
    assert nodes.off_j.tolist() == [0, 1000, 20 * 10, 0]
    assert nodes.components_j.tolist() == [4250, 4250, 80 * 25 + 1750, 80 * 25 + 1750]
    assert result.metrics["energy_components_j"] == 100 * 170 - 20 * 50
    assert result.metrics["energy_switching_j"] == 5 * 300
    all_off = NodeStates([1, 2, 3, 0], [0] * 4, [0, 0, 0, 100], [110, 110, 110, 110])
    last = replace(result, node_states=all_off)
    assert last.metrics["energy_components_j"] == 100 * (50 + 70)


def test_measured_powers_of_jobs() -> None:
    """A job that is measured draws that; on nodes the other cores are idle, or busy."""
    workload = jobs([(0, 10, 10, 1, 1), (5, 10, 10, 1, 1)], power_w=[8.0, -1.0])
    result = hpcgym.simulate(workload, "easy", cluster=machine(1))
    assert result.books.by_job().tolist() == [80, 5 * 225 + 5 * 300]
    assert result.power.watts.tolist() == [8 + 75, 8 + 225, 300, 0]
    pool = hpcgym.Cluster(4, idle_power_w=1, busy_power_w=10)
    result = hpcgym.simulate(workload, "easy", cluster=pool)
    assert result.power.watts.tolist() == [8 + 3, 8 + 10 + 2, 10 + 3, 0]
    assert result.metrics["energy_j"] == 5 * (11 + 20 + 13)
    assert validate_schedule(result)


@pytest.mark.parametrize("nodes", [(), (NodeGroup("a", 8, {"core": 8}),)])
def test_pools_and_flat_groups_keep_their_energies_to_the_last_bit(nodes: Any) -> None:
    """And their books, which nobody opens for it, say the same."""
    workload = hpcgym.load_workload("lublin:jobs=200,processors=64,seed=2")
    size = {"groups": nodes} if nodes else {"processors": 64}
    flat = Cluster(**size, idle_power_w=0.1, busy_power_w=1 / 3)
    result = hpcgym.simulate(workload, "easy", cluster=flat)
    busy = int((workload.requested_processors * result.run_time).sum())
    idle = 64 * result.metrics["makespan_s"] - busy
    assert result.metrics["energy_busy_j"] == busy * (1 / 3)
    assert result.metrics["energy_idle_j"] == idle * 0.1
    assert not result.keeps_books
    assert "books" not in vars(result)
    assert close(result.energy.total_j, result.metrics["energy_j"])
    assert check_books(result) == []


def switching_off() -> Result:
    workload = hpcgym.load_workload("lublin:jobs=100,processors=64,seed=2")
    pool = hpcgym.Cluster(64, shutdown_after_s=600, boot_time_s=60)
    return hpcgym.simulate(workload, "easy", cluster=pool)


def test_a_pool_that_switches_off_knows_its_energy() -> None:
    result = switching_off()
    assert_tables_agree(result, result.metrics["energy_j"])


def test_books_of_a_simulation_on_curie_are_proved() -> None:
    workload = hpcgym.load_workload("lublin:jobs=300,processors=80640,seed=4")
    result = hpcgym.simulate(workload, "easy", cluster="curie")
    assert {"energy", "nodes"} <= {*validate_schedule(result)}
    assert result.books.by_state["busy_2.7ghz"] > 0
    assert result.metrics["energy_components_j"] == 119_840 * result.metrics["makespan_s"]
    assert result.energy.by_group.nodes.tolist() == [5040]


def test_jobs_that_have_not_started_draw_nothing() -> None:
    result = two_jobs_apart()
    running = replace(result, start=np.array([0, -1]))
    assert running.books.by_job().tolist() == [9_000, 0]
    assert sum(running.books.by_state.values()) == 9_000 + 30 * 100


def test_node_states_are_sorted_and_read_only() -> None:
    states = NodeStates([1, 0, 1], [0, 1, 2], [9, 3, 0], [10, 4, 9])
    assert states.node.tolist() == [0, 1, 1]
    assert states.begin.tolist() == [3, 0, 9]
    assert states.state.dtype == np.int8
    assert not states.end.flags.writeable
    assert len(states) == 3


def test_a_run_that_is_lost_as_an_extract_begins_is_charged_nothing() -> None:
    """A cap ends the job that runs then; another starts on its node in that second."""
    power = NodePower(idle_w=0.0, busy_w=(0.5, 2.0), off_w=0.0, frequency_ghz=(1.0, 2.0))
    cluster = Cluster(groups=(NodeGroup("node", 1, {"core": 2}, power),))
    workload = extract(few_jobs(2, [0, 1], [2, 1], [1, 1], wait_time=[0, 5]), 1)
    cap = PowerCap(0.6, 1, 2, kills=True)
    result = hpcgym.simulate(workload, "fcfs", cluster=cluster, limits=[cap], power="dvfs")
    assert result.end.tolist() == [1, 2]
    assert result.books.by_job().tolist() == [0.0, 0.5]
    validate_schedule(result)


test_mistakes = mistakes_of(globals())
