"""The command line under limits of power and energy, and on machines whose nodes fail."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import as_json, line, succeed

from hpcgym import load_workload, simulate
from hpcgym.cluster import failures_of, find_cluster
from hpcgym.cluster.power_plans import greatest_w
from hpcgym.schedule.signals import read_signal, total_of
from hpcgym.scheduler.limits import EnergyBudget, PowerCap

JOBS = "lublin:jobs=200,processors=192,seed=1,load=1.3"
TAURUS = ("simulate", JOBS, "--cluster", "taurus")
MACHINE = find_cluster("taurus")
WATTS = greatest_w(MACHINE)
SIXTY = EnergyBudget.of(MACHINE, 0.6, 0, 172_800, shutdown=True)


def halves(joules: float) -> list[EnergyBudget]:
    """A budget of two days that follows the price below, by half a day."""
    return [
        EnergyBudget(joules / 4 * part, 43_200 * k, 43_200 * (k + 1), shutdown=True)
        for k, part in enumerate((1.3, 0.7, 1.3, 0.7))
    ]


@pytest.mark.parametrize(
    ("power", "options", "limits"),
    [
        ("none", (), []),
        (
            "shut",
            ("--cap", "percent=70,start=20000,end=60000,announced=15000,kills"),
            [PowerCap(0.7 * WATTS, 20000, 60000, announced=15000, kills=True)],
        ),
        (
            "reduce-pc",
            (
                *("--budget", "joules=2e8,start=20000,end=100000,period=60"),
                *("--budget", "percent=70,start=100000,end=150000", "--cap", "watts=3000,end=9000"),
            ),
            [
                PowerCap(3000, 0, 9000),
                EnergyBudget(2e8, 20_000, 100_000, 60),
                EnergyBudget.of(MACHINE, 0.7, 100_000, 150_000),
            ],
        ),
        (
            "powercap",
            ("--budget", "percent=60,start=0,end=172800,shutdown,off_as_idle"),
            [replace(SIXTY, off_as_idle=True)],
        ),
        (
            "powercap",
            ("--budget", "percent=60,start=0,end=172800,shutdown,follow=price,swing=0.3"),
            halves(SIXTY.joules),
        ),
        (
            "none",
            ("--cap", "percent=60, start=0, end=86400, follow = price, swing = 0.3"),
            [
                PowerCap(0.6 * p * WATTS, 43_200 * k, 43_200 * k + 43_200)
                for k, p in ((0, 1.3), (1, 0.7))
            ],
        ),
    ],
)
def test_limits_are_those_of_the_library(
    power: str, options: tuple[str, ...], limits: Any, tmp_path: Path
) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("time_s,eur_per_mwh\n0,40\n43200,100\n")
    shown = as_json(*TAURUS, "--power", power, "--price", file, "--repeat", "day", *options)
    expected = simulate(load_workload(JOBS), cluster="taurus", limits=limits, power=power)
    assert shown["scheduler"]["power"] == power
    for metric in ("mean_bsld", "energy_j", "cap_exceeded_s", "budget_exceeded_j"):
        assert shown.get(metric) == expected.metrics.get(metric)
    assert shown["cost"] == pytest.approx(total_of(expected, read_signal(file, repeat="day")))
    assert shown["mean_bsld"] != as_json(*TAURUS)["mean_bsld"]  # jobs have nodes of their own


def test_headings_name_limits_allocation_and_fair_share() -> None:
    given = ["--cap", "percent=60,start=90000,end=93600", "--budget", "percent=50,start=0,end=3600"]
    text = succeed(*TAURUS, *given).stdout
    assert "\nlimits: cap 60 % (" in text
    assert " W) from 90,000 s to 93,600 s; budget 50 % (" in text
    assert " kWh) from 0 s to 3,600 s\n" in text
    text = succeed(*TAURUS, "--allocation", "contiguous").stdout
    assert "limits:" not in text
    assert "contiguous allocation" in text
    rules = ("--scheduler", "fairshare", "--fair-share", "half_life_s=86400")
    text = succeed("simulate", JOBS, *rules).stdout
    heading, told = text.splitlines()[:2]
    assert " · fairshare · " in heading
    assert text.count("half_life_s=86400") == told.count("half_life_s=86400") == 1


@pytest.mark.slow
def test_nodes_that_fail(tmp_path: Path) -> None:
    table, schedule = tmp_path / "failures.csv", tmp_path / "jobs.csv"
    failures_of(MACHINE, 10**6, mtbf=2e5, repair=7200, seed=1).write(table)
    told = as_json(*TAURUS, "--failures", table, "--output", schedule)
    result = simulate(load_workload(JOBS), cluster="taurus", failures=table)
    assert told["lost_runs"] == result.restarts.sum() > 0
    assert told["lost_core_seconds"] == result.lost_core_seconds.sum()
    with schedule.open() as lines:
        assert [int(row["restarts"]) for row in csv.DictReader(lines)] == result.restarts.tolist()
    assert "lost core time" in succeed(*TAURUS, "--failures", table).stdout
    assert "do not go together" in line(*TAURUS, "--failures", table, "--cap", "percent=80")
    job = int(result.workload.job_number[result.restarts.argmax()])
    stops = as_json("explain", *TAURUS[1:], "--failures", table, "--job", job)["stops"]
    assert len(stops) == result.restarts.max()
    assert all(one["nodes"] and one["how"] == "failed" for one in stops)
