"""The study of power caps, on small machines and workloads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym.benchmarks.energy import powercap, powercap_run
from hpcgym.benchmarks.energy.powercap import AS_GENERATED, AS_WRITTEN, CAPPED, OF_SHORT, Interval
from hpcgym.benchmarks.energy.published_powercap import TABLE_4_3
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, Level, NodeGroup
from hpcgym.machine.power import NodePower
from hpcgym.scheduler.limits import PowerCap
from hpcgym.simulation.limited import nodes_off
from hpcgym.simulation.run import simulate
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload.load import load_workload

POWER = NodePower(10.0, [50.0, 100.0], off_w=2.0, frequency_ghz=[1.0, 2.0], slowdown=1.5)
MACHINE = Cluster(groups=[NodeGroup("node", 16, {"core": 1}, POWER)])
LONG = load_workload("lublin:jobs=400,processors=16,seed=5,load=8")
JOBS = LONG.with_columns(
    run_time=1 + LONG.run_time // 7, requested_time=1 + LONG.requested_time // 7
)
INTERVAL = Interval(5_000, 23_000, 0.5, 1.0, 10)


@pytest.mark.parametrize("policy", powercap.POLICIES)
def test_amounts_are_those_second_by_second(policy: str) -> None:
    result = powercap.capped(JOBS, MACHINE, INTERVAL, 0.5, policy)
    found = powercap.amounts(result, INTERVAL)
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
    assert found["work"] == work
    assert found["computed"] == pytest.approx(computed, rel=1e-3)  # run times are rounded up
    assert found["energy_j"] == pytest.approx(energy, rel=1e-12)
    began = (result.start >= INTERVAL.begin) & (result.start < INTERVAL.end)
    assert found["launched"] == began.sum() > 0


def test_before_the_interval_all_policies_are_one() -> None:
    plain = powercap.capped(JOBS, MACHINE, INTERVAL, 1.0, "none")
    before = plain.start < INTERVAL.begin
    assert 0 < before.sum() < len(before)
    for policy in powercap.POLICIES:
        ours = powercap.capped(JOBS, MACHINE, INTERVAL, 0.4, policy)
        assert (ours.start[before] == plain.start[before]).all()
        assert not np.array_equal(ours.start, plain.start)
        assert ours.workload.submit_time.max() < INTERVAL.end
        (cap,) = ours.limits or ()
        assert (cap.start, cap.end) == (12_200, 15_800)  # the hour in the middle


def test_a_cap_on_nodes_with_and_without_the_bonus() -> None:
    """16 nodes of 100 W and 8 switches of 60 W draw 2,080 W, half of the nodes 800 W.

    By what is off a node saves 98 W, a pair with its switch 260 W. With the bonus seven are off:
    nine busy nodes and one that is off draw 902 W, three switches leave 180 W.
    """
    stands = replace(MACHINE, levels=(Level("switch", 2, 60.0),))
    results = {of: powercap.capped(JOBS, stands, INTERVAL, 0.5, "SHUT", of) for of in CAPPED}
    watts, off = {}, {}
    for of, result in results.items():
        validate_schedule(result)
        (cap,) = result.limits or ()
        watts[of] = cap.watts
        off[of] = nodes_off(result.cluster, POWER, cap, "shut")
    assert watts == {powercap.MACHINE: 1040, powercap.NODES: 800, powercap.BONUS: 1280}
    assert off == {powercap.MACHINE: 8, powercap.NODES: 9, powercap.BONUS: 7}
    without = simulate(
        JOBS.take(JOBS.submit_time < INTERVAL.end),
        cluster=MACHINE,
        limits=[PowerCap(800, 12_200, 15_800, announced=INTERVAL.begin)],
        power="shut",
    )
    assert np.array_equal(results[powercap.NODES].start, without.start)
    assert results[powercap.NODES].books.watts().keys() == without.books.watts().keys()
    assert powercap.ways_to_cap(stands) == list(CAPPED)
    assert powercap.ways_to_cap(MACHINE) == [powercap.MACHINE]


def test_nodes_in_their_states_are_all_nodes() -> None:
    for policy in ("SHUT", "DVFS"):
        result = powercap.capped(JOBS, MACHINE, INTERVAL, 0.5, policy)
        times, nodes = powercap_run.nodes_by_state(result)
        assert (np.sum(list(nodes.values()), axis=0) == 16).all()
        assert min(values.min() for values in nodes.values()) >= 0
        watts = result.books.watts()
        assert nodes["off"] * 2.0 == pytest.approx(watts["off"])
        assert nodes["idle"] * 10.0 == pytest.approx(watts["idle"])
        assert nodes["busy_1ghz"] * 50.0 == pytest.approx(watts["busy_1ghz"])
        assert len(times) == len(nodes["idle"]) + 1


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
    jobs = powercap.load(source, AS_GENERATED, cluster)
    found = {name: powercap.choose(jobs, cluster, name) for name in powercap.INTERVALS}
    assert found["bigjob"].small < found["medianjob"].small < found["smalljob"].small
    plain = simulate(jobs, cluster=cluster, limits=[])
    for name, one in found.items():
        assert one.end - one.begin == 3_600 * powercap.INTERVALS[name]
        assert one.backlog >= 1
        moments = range(one.begin, one.end, 97)
        waits = [
            jobs.requested_processors[(jobs.submit_time <= t) & (plain.start > t)].sum()
            for t in moments
        ]
        assert min(waits) >= one.backlog * cluster.processors
    with pytest.raises(HpcgymError, match="24 hours"):
        powercap.choose(jobs.take(jobs.submit_time < 100_000), cluster, "24h")


def test_the_substitute_has_the_facts_of_the_text() -> None:
    jobs = powercap.substitute(0)
    area = jobs.requested_processors * jobs.run_time
    assert np.mean(area > 80_640 * 3_600) == pytest.approx(0.001, rel=0.25)
    offered = area.sum() / (80_640 * jobs.submit_time[-1])
    assert offered == pytest.approx(1.2, rel=0.01)  # run times are rounded up
    curie = Cluster(groups=[NodeGroup("node", 5040, {"core": 16}, POWER)])
    longer = powercap.load("substitute:0", AS_WRITTEN, curie)
    assert longer.run_time.tolist() == jobs.run_time.tolist()
    short = jobs.run_time == 3
    assert set(longer.requested_time[short].tolist()) == {36_000}
    assert longer.requested_time.max() == 86_400
    # what README.md and REQUESTS say of both readings
    times = longer.requested_time / longer.run_time
    assert np.median(times) == 8_640
    assert np.mean(longer.requested_time == 86_400) == pytest.approx(0.55, abs=0.005)
    assert (times * area).sum() / area.sum() == pytest.approx(113, abs=0.5)
    times = jobs.requested_time / jobs.run_time
    assert np.median(times) == pytest.approx(71, abs=0.5)
    assert (times * area).sum() / area.sum() == pytest.approx(15, abs=0.5)
    mixed = powercap.load("substitute:0", OF_SHORT, curie)
    short = jobs.run_time <= 60
    assert 0.7 < short.mean() < 0.8
    for there, whole in ((short, longer), (~short, jobs)):
        assert mixed.requested_time[there].tolist() == whole.requested_time[there].tolist()
    times = mixed.requested_time / mixed.run_time
    assert np.median(times) == 8_640
    assert (times * area).sum() / area.sum() == pytest.approx(74, abs=0.5)
    for reading, median in ((AS_WRITTEN, "8,640"), (AS_GENERATED, "71"), (OF_SHORT, "8,640")):
        assert f"{median} times at the median" in powercap.REQUESTS[reading]
    with pytest.raises(HpcgymError, match="a job needs"):
        powercap.load("substitute:0", AS_GENERATED, MACHINE)


def test_table_4_3_in_both_readings() -> None:
    table = powercap_run.table_4_3()
    assert table["published rho ratio"].tolist() == [row.rho for row in TABLE_4_3]
    ratio = (358 - 193) / (358 - 14)
    by_hand = 1 - 1 / table["deg"] - ratio
    assert table["ours rho ratio"].to_numpy() == pytest.approx(by_hand.to_numpy())
    assert table["watts' ratio it needs"].between(0.555, 0.565).all()
    off = set(table["benchmark"][table["best by C1 and C3"] == "Switch-off"])
    assert off == {"NA", "linpack", "IMB"}
    slow = set(table["benchmark"][table["by algorithm 2"] == "DVFS"])
    assert slow == off  # the text has it the other way round


def outcomes_of(values: Any) -> Any:
    """Return outcomes of two workloads that have these values: (cap, policy) -> row."""
    cells = [(1.0, "none"), *((cap, name) for cap in powercap.CAPS for name in powercap.POLICIES)]
    rows = [
        {"cap": cap, "policy": name, "launched": 10, "exceeded_s": 0} | values(cap, name)
        for cap, name in cells
    ]
    outcome = {"possible_j": 1.0, "possible_work": 1.0, "rows": rows}
    return {("t", "r", name): [outcome, outcome] for name in powercap.INTERVALS}


def as_published(cap: float, policy: str) -> dict[str, float]:
    """Return values by which all is as the text of section 4.6.3 has it."""
    if cap == 1:
        return {"energy_j": 1.0, "work": 1.0, "computed": 1.0}
    work = {"SHUT": 0.94, "DVFS": 0.97, "MIX": 0.95, "none": 0.6}[policy]
    energy = {"SHUT": 0.8, "DVFS": 0.88, "MIX": 0.79, "none": 0.82}[policy]
    computed = {"SHUT": 0.94, "DVFS": 0.99 if cap == 0.8 else 0.8, "MIX": 0.9, "none": 0.6}[policy]
    if cap == 0.8 and policy != "none":
        energy, work = energy + 0.01, work + 0.01
        computed = 1.1 if policy == "DVFS" else 0.9
    if cap == 0.4:
        fall = 0.02 if policy != "DVFS" else 0.027
        energy, work = energy - 0.01, work - fall
    return {"energy_j": energy, "work": work, "computed": computed}


def reversed_of(cap: float, policy: str) -> dict[str, float]:
    """Return values by which it is not."""
    if cap == 1:
        return {"energy_j": 0.1, "work": 0.1, "computed": 0.1}
    work = {"SHUT": 0.5, "DVFS": 0.4, "MIX": 0.2, "none": 0.9}[policy]
    if policy == "SHUT" and cap == 0.4:
        work = 0.42
    energy = {"SHUT": 0.8, "DVFS": 0.3, "MIX": 0.9, "none": 0.1}[policy]
    computed = {"SHUT": 0.1, "DVFS": 0.3 if cap < 0.8 else 0.01, "MIX": 0.1, "none": 0.9}[policy]
    return {"energy_j": energy, "work": work, "computed": computed}


def test_statements_can_hold_and_fail() -> None:
    table = powercap_run.statements(outcomes_of(as_published))
    so = dict(zip(table["Glesser 2016, section 4.6.3"], table["so, t, r"], strict=True))
    # a cap of 40 % leaves 94 % of the work of a day, and more of the hours around it
    elsewhere = {"24 h, 40 %: the work", "24 h, 40 %: the work, in order"}
    assert {words for words, yes in so.items() if yes == "no"} == elsewhere
    table = powercap_run.statements(outcomes_of(reversed_of))
    so = dict(zip(table["Glesser 2016, section 4.6.3"], table["so, t, r"], strict=True))
    order = "24 h, 40 %: the work, in order"
    assert {words for words, yes in so.items() if yes == "yes"} == {order}


def test_by_command_with_a_workload(tmp_path: Path) -> None:
    arguments = ["reproduce", "powercap", "--quick", "--cluster", "taurus", "--format", "json"]
    arguments += ["--workload", "lublin:jobs=3000,processors=192,seed=1,load=1.3"]
    arguments += ["--executor", "serial", "--output", str(tmp_path / "x")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["policy"] for row in rows] == ["none", "SHUT", "DVFS", "MIX", "none"]
    assert rows[0]["workload"] == "lublin-192 seed 1 load 1.3, requested times as requested"
