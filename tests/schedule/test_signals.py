"""Carbon and prices: files, integrals over steps, and what jobs and users emit and pay."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from mistakes import mistakes_of
from power_strategies import in_seconds, schedules

import hpcgym
from hpcgym.cli import app
from hpcgym.reference.energy import energies_of
from hpcgym.schedule.result import Result
from hpcgym.schedule.signals import Signal, bill, read_signal, total_of, zero_of

SLOW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "grid.csv"
    path.write_text(text, encoding="utf-8")
    return path


@st.composite
def signals(draw: st.DrawFn) -> Signal:
    gaps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    time = np.cumsum([draw(st.integers(-5, 0)), *gaps])
    values = draw(
        st.lists(st.sampled_from([0.0, 0.1, 50.0, 1 / 3]), min_size=len(gaps), max_size=len(gaps))
    )
    if draw(st.booleans()):
        period = draw(st.integers(1, int(time[-1] - time[0])))
        return Signal(time, np.array(values), "g", period=period)
    time[-1] += 500  # long enough for any schedule that is drawn
    return Signal(time, np.array(values), "g")


def value_at(signal: Signal, second: int) -> float:
    """The value that holds in a second, looked up step by step."""
    if signal.period is not None:
        second = int(signal.time[0]) + (second - int(signal.time[0])) % signal.period
    steps = zip(signal.time[:-1], signal.time[1:], signal.value, strict=True)
    return next(float(value) for begin, end, value in steps if begin <= second < end)


@SLOW
@given(signals(), st.integers(0, 90), st.integers(0, 60))
def test_integrals_second_by_second(signal: Signal, begin: int, length: int) -> None:
    expected = math.fsum(value_at(signal, second) for second in range(begin, begin + length))
    (integral,) = signal.integral([begin], [begin + length])
    assert math.isclose(integral, expected, rel_tol=1e-12, abs_tol=1e-12)


@SLOW
@given(schedules(), signals())
def test_bills_second_by_second(result: Result, signal: Signal) -> None:
    power = in_seconds(energies_of(result).watts())
    expected = math.fsum(float(watts) * value_at(signal, second) for second, watts in power.items())
    billed = bill(result, signal)
    assert math.isclose(billed.total, expected, rel_tol=1e-12, abs_tol=1e-9)
    assert total_of(result, signal) == billed.total
    charged = math.fsum(billed.by_job.amount)
    assert math.isclose(charged + billed.overhead, billed.total, rel_tol=1e-12, abs_tol=1e-9)
    assert math.isclose(math.fsum(billed.by_user.amount), charged, rel_tol=1e-12, abs_tol=1e-9)
    if len(result.start):
        spread = math.fsum(billed.by_user.with_overhead)
        assert math.isclose(spread, billed.total, rel_tol=1e-12, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "unit", "each"),
    [
        ("carbon_g_per_kwh", "36", "g", 1e-5),
        ("g_per_kwh", "36", "g", 1e-5),
        ("Carbon intensity gCO₂eq/kWh (direct)", "36", "g", 1e-5),
        ("kgCO2/MWh", "36", "g", 1e-5),
        ("tco2e_per_mwh", "0.036", "g", 1e-5),
        ("Day-ahead Price [EUR/MWh]", "-36", "EUR", -1e-8),
        ("usd per kWh", "0.36", "USD", 1e-7),
        ("price_€_per_wh", "3.6", "€", 1e-3),
    ],
)
def test_units(tmp_path: Path, name: str, value: str, unit: str, each: float) -> None:
    path = write(tmp_path, f"time_s,zone,{name}\n5,FR,{value}\n15,FR,{value}\n")
    signal = read_signal(path)
    assert signal.unit == unit
    assert signal.value.tolist() == pytest.approx([each, each], rel=1e-14)
    assert signal.time.tolist() == [5, 15, 25]


def test_date_times(tmp_path: Path) -> None:
    text = (
        "datetime,g_per_kwh\n2024-01-01T01:00+01:00,1\n2024-01-01 06:00,2\n\n2024-01-01T12:00Z,3\n"
    )
    path = write(tmp_path, text)
    for zero in ("2024-01-01", 1_704_067_200, "2024-01-01T01:00+01:00"):
        signal = read_signal(path, time_zero=zero)
        assert signal.time.tolist() == [0, 21_600, 43_200, 64_800]
    assert zero_of({"UnixStartTime": ["1704067200"]}) == 1_704_067_200
    assert zero_of({"UnixStartTime": ["0"]}) is zero_of({}) is None


def test_repeated_by_day_or_for_ever(tmp_path: Path) -> None:
    path = write(tmp_path, "time_s,g_per_wh\n0,3600\n43200,7200\n86400,99999\n")
    signal, day = read_signal(path, repeat="day"), 43_200 * 3
    amounts = signal.integral([0, -86_400, 43_199], [864_000, 0, 43_201])
    assert amounts.tolist() == [10 * day, day, 3]
    signal = read_signal(write(tmp_path, "time_s,eur_per_kwh\n0,0.36\n"), repeat="day")
    assert signal.integral([0, 10**9], [10, 10**9 + 5]).tolist() == pytest.approx([1e-6, 5e-7])


SHORT = Signal(np.array([0, 100]), np.array([1.0]), "g", "short.csv")


def on_taurus() -> hpcgym.Result:
    workload = hpcgym.load_workload("lublin:jobs=20,processors=192,seed=1")
    return hpcgym.simulate(workload, "easy", cluster="taurus")


def test_a_signal_that_ends_early_may_begin_again() -> None:
    result = on_taurus()
    assert total_of(result, replace(SHORT, period=100)) == pytest.approx(result.energy.total_j)


def test_the_command_adds_metrics(tmp_path: Path) -> None:
    carbon = write(
        tmp_path, "datetime,g_per_kwh\n2024-01-01,50\n2024-01-01T12:00,20\n2024-01-02,9\n"
    )
    price = tmp_path / "price.csv"
    price.write_text("time_s,eur_per_mwh\n0,100\n")
    command = ["simulate", "lublin:jobs=50,processors=192,seed=1", "--cluster", "taurus"]
    given = ["--carbon", str(carbon), "--price", str(price), "--repeat", "day"]
    run = CliRunner().invoke(
        app, [*command, *given, "--time-zero", "2024-01-01", "--format", "json"]
    )
    facts = json.loads(run.stdout)
    assert facts["cost"] == pytest.approx(facts["energy_j"] / 3.6e9 * 100)
    assert 20 < facts["carbon_g"] / (facts["energy_j"] / 3.6e6) < 50
    table = CliRunner().invoke(app, [*command, "--price", str(price)])
    assert "cost of energy" in table.output


test_mistakes = mistakes_of(globals())
