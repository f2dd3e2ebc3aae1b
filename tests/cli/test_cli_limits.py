"""The command line under limits of power and energy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hpcgym import load_workload, simulate, validate_schedule
from hpcgym.baselines.labels import scheduler_name
from hpcgym.cli import app
from hpcgym.cluster import find_cluster
from hpcgym.cluster.power_plans import greatest_w
from hpcgym.schedule.signals import read_signal, total_of
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.rules import POWER, Scheduler

JOBS = "lublin:jobs=200,processors=192,seed=1,load=1.3"
TAURUS = ("--cluster", "taurus")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["simulate", JOBS, *arguments])


def as_json(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_a_cap() -> None:
    cap = "percent=70,start=20000,end=60000,announced=15000,kills"
    shown = as_json(*TAURUS, "--power", "shut", "--cap", cap)
    taurus = find_cluster("taurus")
    limit = PowerCap(0.7 * greatest_w(taurus), 20000, 60000, announced=15000, kills=True)
    expected = simulate(load_workload(JOBS), cluster="taurus", limits=limit, power="shut")
    assert shown["scheduler"]["power"] == "shut"
    assert shown["scheduler"]["name"] == "easy, shut power"
    assert shown["mean_bsld"] == expected.metrics["mean_bsld"]
    assert shown["cap_exceeded_s"] == expected.metrics["cap_exceeded_s"]
    assert shown["energy_off_j"] > 0


def test_several_limits() -> None:
    budgets = ("joules=2e8,start=20000,end=100000,period=60", "percent=70,start=100000,end=150000")
    options = [word for text in budgets for word in ("--budget", text)]
    shown = as_json(*TAURUS, "--power", "reduce-pc", *options, "--cap", "watts=3000,end=9000")
    taurus = find_cluster("taurus")
    limits = [
        PowerCap(3000, 0, 9000),
        EnergyBudget(2e8, 20_000, 100_000, 60),
        EnergyBudget.of(taurus, 0.7, 100_000, 150_000),
    ]
    expected = simulate(load_workload(JOBS), cluster="taurus", limits=limits, power="reduce-pc")
    assert shown["mean_bsld"] == expected.metrics["mean_bsld"]
    assert shown["budget_exceeded_j"] == 0


@pytest.mark.slow
def test_a_dispatcher_that_solves_a_model_under_a_cap() -> None:
    pytest.importorskip("ortools")
    few = "lublin:jobs=60,processors=192,seed=1,load=1.5"
    words = ["simulate", few, *TAURUS, "--scheduler", "pcp20", "--estimate", "clairvoyant"]
    words += ["--cap", "percent=70", "--format", "json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    cap = PowerCap.of(find_cluster("taurus"), 0.7)
    rules: dict[str, Any] = {"cluster": "taurus", "estimate": "clairvoyant"}
    expected = simulate(load_workload(few), "pcp20", limits=[cap], **rules)
    proofs = validate_schedule(expected)
    assert {"caps", "levels", "alone"} <= set(proofs)
    assert shown["mean_bsld"] == expected.metrics["mean_bsld"]
    assert shown["cap_exceeded_s"] == 0
    assert shown["dispatches"]["dispatches"] == len(expected.dispatcher.log) > 0
    free = simulate(load_workload(few), "pcp20", limits=[], **rules)
    assert free.metrics["mean_bsld"] < expected.metrics["mean_bsld"]


def test_a_budget_with_flags() -> None:
    text = "percent=60,start=20000,end=100000,shutdown,off_as_idle"
    shown = as_json(*TAURUS, "--power", "powercap", "--budget", text)
    one = EnergyBudget.of(find_cluster("taurus"), 0.6, 20_000, 100_000, shutdown=True)
    blind, seeing = (
        simulate(load_workload(JOBS), cluster="taurus", limits=limit, power="powercap")
        for limit in (replace(one, off_as_idle=True), one)
    )
    assert shown["mean_bsld"] == blind.metrics["mean_bsld"] != seeing.metrics["mean_bsld"]


PRICES = "time_s,eur_per_mwh\n0,40\n43200,100\n"


def test_limits_that_follow_a_price(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(PRICES)
    follow_price = ("--price", str(file), "--repeat", "day")
    text = "percent=60,start=0,end=172800,shutdown"
    shown = as_json(
        *TAURUS, "--power", "powercap", *follow_price, "--budget", f"{text},follow=price,swing=0.3"
    )
    taurus = find_cluster("taurus")
    whole = EnergyBudget.of(taurus, 0.6, 0, 172_800, shutdown=True)
    pieces = [
        EnergyBudget(whole.joules / 4 * part, 43_200 * k, 43_200 * (k + 1), shutdown=True)
        for k, part in enumerate((1.3, 0.7, 1.3, 0.7))
    ]
    expected = simulate(load_workload(JOBS), cluster="taurus", limits=pieces, power="powercap")
    assert shown["mean_bsld"] == expected.metrics["mean_bsld"]
    price = read_signal(file, repeat="day")
    assert shown["cost"] == pytest.approx(total_of(expected, price))
    cap = "percent=60, start=0, end=86400, follow = price, swing = 0.3"
    capped = as_json(*TAURUS, *follow_price, "--cap", cap)
    caps = [
        PowerCap(0.6 * part * greatest_w(taurus), 43_200 * k, 43_200 * (k + 1))
        for k, part in enumerate((1.3, 0.7))
    ]
    kept = simulate(load_workload(JOBS), cluster="taurus", limits=caps, power="none")
    assert capped["mean_bsld"] == kept.metrics["mean_bsld"]


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--cap", "percent=60,follow=price,swing=0.3", "needs an end"),
        ("--cap", "percent=60,end=9,follow=wind,swing=1", "follow must be price or carbon, not"),
        ("--cap", "percent=60,end=9,follow=price", "needs both follow and swing"),
        ("--cap", "percent=60,end=9,swing=1", "needs both follow and swing"),
        ("--cap", "percent=60,end=9,swing=1,swing=1", "swing is there twice"),
        ("--cap", "percent=60,end=9,follow=carbon,swing=1", "swing=1: it needs --carbon FILE"),
        ("--cap", "percent=60,end=9,follow=price,swing=2", "swing must be a number from 0 to 1"),
        ("--cap", "watts=9,follow=price,swing=x", "swing must be a number from 0 to 1, not 'x'"),
        (
            "--budget",
            "percent=90,start=0,end=86400,follow=price,swing=1",
            "swing may be up to 0.11",
        ),
        ("--budget", "percent=60,start=0,end=99999,follow=price,swing=1", "tells of 0 s to 86,400"),
    ],
)
def test_what_cannot_follow(option: str, text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(PRICES)
    result = run(*TAURUS, "--price", str(file), option, text)
    assert result.exit_code != 0
    assert message in f"{result.exception}{result.output}"


def test_power_alone_gives_jobs_nodes_of_their_own() -> None:
    shown = as_json(*TAURUS, "--power", "none")
    jobs = load_workload(JOBS)
    assert shown["mean_bsld"] == simulate(jobs, cluster="taurus", limits=[]).metrics["mean_bsld"]
    assert shown["mean_bsld"] != simulate(jobs, cluster="taurus").metrics["mean_bsld"]
    table = run(*TAURUS, "--power", "none", "--allocation", "contiguous")
    assert table.exit_code == 0
    assert "contiguous allocation" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cap", "watts=1"), "are for machines whose nodes have a power; --cluster says"),
        ((*TAURUS, "--cap", "wats=1"), "did you mean 'watts'?"),
        ((*TAURUS, "--cap", "start=1"), "--cap start=1: it needs either watts or percent"),
        ((*TAURUS, "--cap", "watts=1,percent=1"), "it needs either watts or percent"),
        ((*TAURUS, "--cap", "watts=many"), "--cap: watts must be a number, not 'many'"),
        ((*TAURUS, "--cap", "watts=1,start=1.5"), "--cap: start must be a whole number, not '1.5'"),
        ((*TAURUS, "--cap", "watts=1,kills=maybe"), "kills is yes or no, not 'maybe'"),
        ((*TAURUS, "--cap", "watts=1,start=5,end=5"), "cap: it ends at 5 s, not after its start"),
        ((*TAURUS, "--budget", "joules=1,start=0"), "it needs start and end"),
        ((*TAURUS, "--power", "mixed"), "did you mean 'mix'?"),
        ((*TAURUS, "--power", "shut"), "--power shut says how limits are kept, and there are none"),
        ((*TAURUS, "--power", "powercap"), "give --cap or --budget"),
        ((*TAURUS, "--cap", "percent=6000"), "60 % is 0.6"),
        ((*TAURUS, "--cap", "percent=-5"), "percent=60, which goes from 0 to 1000"),
    ],
)
def test_limits_that_cannot_be(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in f"{result.exception}{result.output}"


@pytest.mark.parametrize("power", POWER)
def test_names(power: str) -> None:
    expected = "easy" if power == "none" else f"easy, {power} power"
    assert scheduler_name(Scheduler(power=power)) == expected


@pytest.mark.parametrize("command", [["evaluate", "easy"], ["train", "controls"]])
def test_an_option_of_the_other_environment_is_refused(command: list[str]) -> None:
    words = [*command, "--workload", JOBS, "--env", "PowerCap", "--shutdown"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert "--shutdown is for hpcgym/EnergyBudget-v0, not hpcgym/PowerCap-v0" in said


def test_the_heading_names_the_limits() -> None:
    given = ["--cap", "percent=60,start=90000,end=93600", "--budget", "percent=50,start=0,end=3600"]
    text = run(*TAURUS, *given).stdout
    assert "\nlimits: cap 60 % (" in text
    assert " W) from 90,000 s to 93,600 s; budget 50 % (" in text
    assert " kWh) from 0 s to 3,600 s\n" in text
    assert "limits:" not in run(*TAURUS).stdout


def test_fair_share_is_printed_once_below_the_name() -> None:
    text = run("--scheduler", "fairshare", "--fair-share", "half_life_s=86400").stdout
    heading, rules = text.splitlines()[:2]
    assert " · fairshare · " in heading
    assert text.count("half_life_s=86400") == rules.count("half_life_s=86400") == 1
