"""The study of power caps, on small machines and workloads."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from mistakes import mistakes_of

from hpcgym.benchmarks.energy import powercap, powercap_run
from hpcgym.benchmarks.energy.powercap import EMPTY, LOGGED, Interval
from hpcgym.benchmarks.energy.powercap_run import TABLE_4_3
from hpcgym.cli import app
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.machine.power import NodePower
from hpcgym.scheduler.whole_nodes import node_power
from hpcgym.simulation.run import simulate
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload.load import load_workload

POWER = NodePower(10.0, [50.0, 100.0], off_w=2.0, frequency_ghz=[1.0, 2.0], slowdown=1.5)
MACHINE = Cluster(groups=[NodeGroup("node", 16, {"core": 1}, POWER)])
LONG = load_workload("lublin:jobs=400,processors=16,seed=5,load=8")
JOBS = LONG.with_columns(
    run_time=1 + LONG.run_time // 7, requested_time=1 + LONG.requested_time // 7
)
#: The jobs with when they ran: under EASY.
RAN = simulate(JOBS, cluster=Cluster(16)).as_workload()
INTERVAL = Interval(5_000, 23_000, 0.5, 10, 1.0, 1.0, 0.5, 0.0, 9.0, 9.0)


@pytest.mark.parametrize("begins", powercap.STARTS)
@pytest.mark.parametrize("policy", powercap.POLICIES)
def test_amounts_are_those_second_by_second(policy: str, begins: str) -> None:
    result = powercap.capped(RAN, MACHINE, INTERVAL, 0.5, policy, begins)
    amounts = powercap.amounts(result, INTERVAL)
    work = computed = energy = 0.0
    level = np.ones(len(result.start), int) if result.frequency is None else result.frequency
    states = result.node_states
    for second in range(INTERVAL.begin, INTERVAL.end):
        runs = (result.start <= second) & (second < result.end)
        size = result.workload.requested_processors
        work += size[runs].sum()
        computed += (size * np.where(level == 1, 1.0, 1 / 1.5))[runs].sum()
        watts = np.where(level == 1, 100.0, 50.0)
        off = 0
        if states is not None:
            assert (states.state == 0).all()  # switching takes no time
            off = int(((states.begin <= second) & (second < states.end)).sum())
        idle = 16 - size[runs].sum() - off
        energy += (size * watts)[runs].sum() + 10 * idle + 2 * off
    assert amounts["work"] == work
    assert amounts["computed"] == pytest.approx(computed, rel=1e-3)  # run times are rounded up
    assert amounts["energy_j"] == pytest.approx(energy, rel=1e-12)
    began = (result.start >= INTERVAL.begin) & (result.start < INTERVAL.end)
    assert amounts["launched"] == began.sum() > 0


def test_an_interval_begins_with_what_runs_and_waits_by_the_log() -> None:
    start = RAN.submit_time + RAN.wait_time
    came, begin = RAN.submit_time < INTERVAL.begin, INTERVAL.begin
    runs = came & (start < begin) & (start + RAN.run_time > begin)
    waits, comes = came & (start >= begin), ~came & (RAN.submit_time < INTERVAL.end)
    assert min(runs.sum(), waits.sum(), comes.sum()) > 0
    numbers = RAN.job_number[runs | waits | comes]
    for begins in powercap.STARTS:
        jobs = powercap.jobs_of(RAN, INTERVAL, begins)
        assert sorted(jobs.job_number) == sorted(numbers)
        plain = powercap.capped(RAN, MACHINE, INTERVAL, 1.0, "none", begins)
        validate_schedule(plain)
        ran = np.isin(plain.workload.job_number, RAN.job_number[runs])
        assert ((plain.start < begin) == (ran & (begins == LOGGED))).all()
        for policy in powercap.POLICIES:
            ours = powercap.capped(RAN, MACHINE, INTERVAL, 0.4, policy, begins)
            validate_schedule(ours)
            (cap,) = ours.limits or ()
            assert (cap.start, cap.end) == (12_200, 15_800)  # the hour in the middle
            assert cap.watts == pytest.approx(0.4 * 1600)
            if begins == EMPTY:
                assert powercap.amounts(ours, INTERVAL)["exceeded_s"] == 0


def test_nodes_in_their_states_are_all_nodes() -> None:
    for policy in ("SHUT", "DVFS"):
        result = powercap.capped(RAN, MACHINE, INTERVAL, 0.5, policy, EMPTY)
        nodes = powercap_run.nodes_by_state(result)
        assert (np.sum(list(nodes.values()), axis=0) == 16).all()
        assert min(values.min() for values in nodes.values()) >= 0
        watts = result.books.watts()
        assert nodes["off"] * 2.0 == pytest.approx(watts["off"])
        assert nodes["idle"] * 10.0 == pytest.approx(watts["idle"])
        assert nodes["busy_1ghz"] * 50.0 == pytest.approx(watts["busy_1ghz"])
        assert len(result.books.time) == len(nodes["idle"]) + 1


def test_what_waits_at_least() -> None:
    def least(submit: list[int], start: list[int], cores: list[int]) -> int:
        columns = (np.array(values) for values in (submit, start, cores))
        return powercap._least_waiting(*columns, 10, 20)

    assert least([0, 15], [17, 30], [4, 2]) == 2  # 4, 6 from 15 on, 2 from 17 on
    assert least([0, 12], [25, 25], [4, 2]) == 4
    assert least([12], [25], [3]) == 0
    assert least([0, 15], [15, 30], [4, 2]) == 2  # one comes as the other goes


def test_intervals_by_their_small_jobs() -> None:
    cluster = Cluster(groups=[NodeGroup("node", 64, {"core": 16}, POWER)])
    source = f"lublin:jobs=3000,processors={cluster.processors},seed=1,load=1.3"
    jobs = powercap.load(source, cluster)  # when they run is told, as EASY lets them
    start = jobs.submit_time + jobs.wait_time
    end, cores = start + jobs.run_time, jobs.requested_processors
    plain = simulate(jobs, cluster=Cluster(cluster.processors))
    assert start.tolist() == plain.start.tolist()
    intervals = {
        name: powercap.choose(jobs, cluster.processors, name, 3) for name in powercap.INTERVALS
    }
    small = {name: np.mean([interval.small for interval in of]) for name, of in intervals.items()}
    assert small["bigjob"] < small["medianjob"] < small["smalljob"]
    for name, of in intervals.items():
        assert len(of) == 3
        for interval, other in combinations(of, 2):
            assert interval.end <= other.begin or other.end <= interval.begin
        interval = of[0]
        assert interval.end - interval.begin == 3_600 * powercap.INTERVALS[name]
        assert interval.backlog >= 1
        moments = np.arange(interval.begin, interval.end, 97)
        waits = [cores[(jobs.submit_time <= t) & (start > t)].sum() for t in moments]
        assert min(waits) >= interval.backlog * cluster.processors
        busy = [cores[(start <= t) & (t < end)].sum() for t in moments]
        assert interval.busy == pytest.approx(np.mean(busy) / cluster.processors, abs=0.02)
        there = (jobs.submit_time < interval.end) & (start >= interval.begin)
        assert interval.jobs == there.sum()
        longer = (jobs.requested_time / jobs.run_time)[there]
        assert (interval.longer, interval.median_longer) == (longer.mean(), np.median(longer))
        short = (cores < 512) & (jobs.run_time < 120)
        assert (interval.small, interval.short) == (
            (cores < 512)[there].mean(),
            short[there].mean(),
        )
        assert interval.huge == (cores * jobs.run_time > cluster.processors * 3600)[there].mean()


def test_table_4_3_as_printed_and_with_what_is_saved() -> None:
    table = powercap_run.table_4_3()
    assert table["published rho"].tolist() == [rho for _, rho in TABLE_4_3.values()]
    for words, above in (("as printed", 358 - 193), ("saved", 193)):
        by_hand = 1 - 1 / table["deg"] - above / (358 - 14)
        assert (table[f"{words}: least rho"] < by_hand).all()
        assert (by_hand < table[f"{words}: greatest rho"]).all()
    assert set(table["as printed: within rounding"]) == {"no"}
    assert set(table["saved: within rounding"]) == {"yes"}
    power = node_power(find_cluster("curie"))
    least, most = powercap_run.rho_between(power, 2.0, saved=False)
    assert least == pytest.approx(1 - 1 / 1.995 - 166 / 344)  # Pmax 358.5, Pdvfs 192.5, Poff 14.5
    assert most == pytest.approx(1 - 1 / 2.005 - 164 / 344)
    off = set(table["benchmark"][table["best by C1 and C3"] == "Switch-off"])
    assert off == {"NA", "linpack", "IMB"}


def test_numbers_of_section_4_5() -> None:
    table = powercap_run.section_4_5()
    assert table["ours"].tolist() == pytest.approx(
        [6880, 6692, 34360, 1, 9, 2, 1.294, 75.14], abs=0.005
    )


def so_of(values: Any) -> dict[tuple[str, str], str]:
    """Return whether sentences hold if all runs have these values: (cap, policy) -> row."""
    cells = [(1.0, "none"), *((cap, name) for cap in powercap.CAPS for name in powercap.POLICIES)]
    rows = [
        {"cap": cap, "policy": name, "exceeded_s": 0, "launched": 5} | values(cap, name)
        for cap, name in cells
    ]
    outcome = {"possible_j": 1.0, "possible_work": 1.0, "rows": rows}
    tasks = [
        {"trace": "t", "begins": "r", "kind": name} for name in powercap.INTERVALS for _ in range(2)
    ]
    table = powercap_run.statements(powercap_run.rows_of(tasks, [outcome] * len(tasks)))
    return dict(
        zip(zip(table["item"], table["sentence"], strict=True), table["so, t, r"], strict=True)
    )


def as_published(cap: float, policy: str) -> dict[str, float]:
    """Return values by which all is as the text of section 4.6.3 has it."""
    if cap == 1:
        return {"energy_j": 1.0, "work": 1.0, "computed": 1.0, "launched": 3}
    energy, work = {
        0.8: {"SHUT": (0.87, 0.95), "DVFS": (0.882, 0.98), "MIX": (0.865, 0.92)},
        0.6: {"SHUT": (0.80, 0.94), "DVFS": (0.88, 0.97), "MIX": (0.79, 0.91)},
        0.4: {"SHUT": (0.735, 0.89), "DVFS": (0.87, 0.895), "MIX": (0.734, 0.885)},
    }[cap].get(policy, (0.82, 0.6))
    launched = 3 if (cap, policy) == (0.8, "DVFS") else 5
    return {"energy_j": energy, "work": work, "computed": work, "launched": launched}


def reversed_of(cap: float, policy: str) -> dict[str, float]:
    """Return values by which it is not."""
    if cap == 1:
        return {"energy_j": 0.1, "work": 0.1, "computed": 0.1}
    work = {"SHUT": 0.5, "DVFS": 0.4, "MIX": 0.2, "none": 0.9}[policy]
    if policy == "SHUT" and cap == 0.4:
        work = 0.42
    if cap == 0.8:
        work = {"DVFS": 0.1, "MIX": 0.35}.get(policy, work)
    energy = {"SHUT": 0.8, "DVFS": 0.3, "MIX": 0.9, "none": 0.1}[policy]
    computed = {"SHUT": 0.1, "DVFS": 0.3 if cap < 0.8 else 0.01, "MIX": 0.1, "none": 0.9}[policy]
    return {"energy_j": energy, "work": work, "computed": computed}


def test_statements_can_hold_and_fail() -> None:
    # under 40 % DVFS has more work than SHUT in five hours, and less in a day
    elsewhere = {("section 4.6.3, 24 hours", "under 40 % SHUT has most work")}
    so = so_of(as_published)
    assert len(so) == 15
    assert {key for key, yes in so.items() if yes == "no"} == elsewhere
    assert {key for key, yes in so_of(reversed_of).items() if yes == "yes"} == elsewhere


def test_by_command_with_a_workload(tmp_path: Path) -> None:
    arguments = ["reproduce", "powercap", "--quick", "--cluster", "taurus", "--format", "json"]
    arguments += ["--workload", "lublin:jobs=3000,processors=192,seed=1,load=1.3"]
    arguments += ["--executor", "serial", "--output", str(tmp_path / "x")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["policy"] for row in rows] == ["none", "SHUT", "DVFS", "MIX", "none"] * 2
    assert rows[0]["workload"] == "lublin-192 seed 1 load 1.3, as logged"
    assert rows[5]["workload"] == "lublin-192 seed 1 load 1.3, all queued"


test_mistakes = mistakes_of(globals())
