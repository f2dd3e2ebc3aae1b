"""Limits that follow a signal: the same mean, by hand and for any signal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.machine import find_cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.schedule import signals
from hpcgym.schedule.signals import Signal, follow
from hpcgym.scheduler.limits import EnergyBudget, PowerCap, check_limits

TAURUS = find_cluster("taurus")
MOST_W = greatest_w(TAURUS)


def signal(times: list[float], values: list[float], period: int | None = None) -> Signal:
    return Signal(np.array(times), np.array(values), "EUR", "prices.csv", period)


def test_two_steps_by_hand() -> None:
    """Means 2 and distances of 1: half of the power more, and half less."""
    price = signal([0, 3600, 7200], [1, 3])
    limits = follow(EnergyBudget(2e6, 0, 7200, 60, True), price, 0.5, TAURUS)
    assert limits == (
        EnergyBudget(1.5e6, 0, 3600, 60, True),
        EnergyBudget(0.5e6, 3600, 7200, 60, True),
    )


def test_steps_of_other_lengths_by_hand() -> None:
    """4 for an hour and 1 for two: the mean is 2, the farthest step 2 away, and has nothing."""
    price = signal([0, 3600, 10_800], [4, 1])
    limits = follow(PowerCap(600, 0, 10_800), price, 1.0, TAURUS)
    assert [
        (limit.watts, limit.start, limit.end) for limit in limits if isinstance(limit, PowerCap)
    ] == [
        (0.0, 0, 3600),
        (900.0, 3600, 10_800),
    ]


@pytest.mark.parametrize("announced", [None, 0, 60])
def test_the_steps_of_a_cap_are_known_when_it_is(announced: int | None) -> None:
    price = signal([0, 3600, 10_800], [4, 1])
    limits = follow(PowerCap(600, 60, 10_800, announced=announced), price, 1.0, TAURUS)
    assert [limit.announced for limit in limits if isinstance(limit, PowerCap)] == [announced] * 2


SIGNALS = st.lists(st.integers(1, 5_000), min_size=1, max_size=12).flatmap(
    lambda lengths: st.tuples(
        st.just(np.cumsum([0, *lengths]).astype(float)),
        st.lists(
            st.integers(-500, 500).map(lambda value: value / 7),
            min_size=len(lengths),
            max_size=len(lengths),
        ),
        st.booleans(),
    )
)


@settings(max_examples=60, deadline=None)
@given(SIGNALS, st.data())
def test_the_mean_is_kept_whatever_the_signal(
    drawn: tuple[np.ndarray, list[float], bool], data: st.DataObject
) -> None:
    times, values, repeats = drawn
    last = int(times[-1])
    signal_drawn = Signal(times, np.array(values), "g", "s", last if repeats else None)
    begin = data.draw(st.integers(0, 3 * last if repeats else last - 1))
    end = begin + data.draw(st.integers(1, 2 * last if repeats else last - begin))
    share, swing = data.draw(st.floats(0.01, 0.5)), data.draw(st.floats(0, 1))
    budget = EnergyBudget(share * MOST_W * (end - begin), begin, end)
    limits = list(follow(budget, signal_drawn, swing, TAURUS))
    assert check_limits(limits) == tuple(limits)
    assert [limits[0].start, *(limit.end for limit in limits)] == [
        *(limit.start for limit in limits),
        end,
    ]
    assert limits[0].start == begin
    joules = [limit.joules for limit in limits if isinstance(limit, EnergyBudget)]
    assert math.fsum(joules) == pytest.approx(budget.joules, rel=1e-9)
    # second by second: what the signal is, and what power there is
    seconds = np.arange(begin, end)
    at = seconds % last if repeats else seconds
    value = np.array(values)[np.searchsorted(times, at, "right") - 1]
    power = np.concatenate([np.full(b.end - b.start, b.joules / (b.end - b.start)) for b in limits])  # type: ignore[union-attr]
    mean = share * MOST_W
    assert (np.abs(power - mean) <= swing * mean * (1 + 1e-9) + 1e-9).all()
    if value.max() - value.min() > 1e-6:
        farthest = np.abs(value - value.mean()).max()
        expected = mean * (1 + swing * (value.mean() - value) / farthest)
        assert power == pytest.approx(expected, rel=1e-6, abs=1e-6 * mean)
    else:
        assert power == pytest.approx(np.full(len(seconds), mean), rel=1e-9)
    # caps are the same power
    caps = follow(PowerCap(mean, begin, end), signal_drawn, swing, TAURUS)
    watts = [limit.watts for limit in caps if isinstance(limit, PowerCap)]
    assert watts == pytest.approx(
        [j / (b.end - b.start) for j, b in zip(joules, limits, strict=True)]
    )


def test_steps_within_a_second_are_one() -> None:
    price = signal([0, 10.2, 10.4, 20], [1, 100, 3])
    limits = follow(EnergyBudget(1000, 0, 20), price, 0.5, TAURUS)
    assert [(limit.start, limit.end) for limit in limits] == [(0, 10), (10, 20)]
    joules = [limit.joules for limit in limits if isinstance(limit, EnergyBudget)]
    assert sum(joules) == pytest.approx(1000)
    assert joules[0] > joules[1]


def test_the_swing_that_is_named_can_be() -> None:
    price = signal([0, 3600, 7200], [1, 3])
    limits = follow(PowerCap(0.8 * MOST_W, 0, 7200), price, 0.25, TAURUS)
    assert [limit.watts for limit in limits if isinstance(limit, PowerCap)] == pytest.approx(
        [MOST_W, 0.6 * MOST_W]
    )


def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a limit follow the price of six days, when it may have ten steps."""
    monkeypatch.setattr(signals, "MOST", 10)
    price = signal([0, 3600, 86_400], [1, 3], period=86_400)
    follow(EnergyBudget(1e6, 0, 6 * 86_400), price, 0.5, TAURUS)


test_mistakes = mistakes_of(globals(), fixtures=("monkeypatch",))
