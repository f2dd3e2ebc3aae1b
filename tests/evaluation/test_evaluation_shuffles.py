"""Schedulers compared on the same shuffles."""

from __future__ import annotations

import numpy as np
import pytest

from hpcgym.errors import HpcgymError
from hpcgym.evaluation import compare_shuffles
from hpcgym.evaluation.intervals import bootstrap, win_rates


def rows(*makespans: float, **others: float) -> list[dict[str, float]]:
    return [{"makespan_s": makespan, **others} for makespan in makespans]


def test_improvements_by_hand() -> None:
    table = compare_shuffles(
        {
            "easy": rows(100, 120, utilization=0.5),
            "co": rows(80, 120, utilization=0.75, mean_job_speedup=1.1),
            "bad": rows(200, 240),
        }
    )
    assert table.index.tolist() == ["easy", "co", "bad"]
    assert table.improvement_percent.tolist() == [0, 12.5, -50]  # 25 % and nothing
    assert table.makespan_s.tolist() == [110, 100, 220]
    assert table.wins.tolist() == [0.25, 0.75, 0]
    assert table.shuffles.tolist() == [2, 2, 2]
    assert table.utilization.tolist()[:2] == [0.5, 0.75]
    assert table.mean_job_speedup.isna().tolist() == [True, False, True]


def test_intervals_by_hand() -> None:
    # of 20 values, 10 of them 25 % and 10 of them 0, a resample has 25 % k times of 20, k binomial
    co = rows(*([80] * 10 + [100] * 10))
    table = compare_shuffles({"easy": rows(*[100] * 20), "co": co, "bad": rows(*[200] * 20)})
    assert table.improvement_low.tolist() == [0, 25 * 6 / 20, -50]
    assert table.improvement_high.tolist() == [0, 25 * 14 / 20, -50]


def test_wins_add_up_to_1() -> None:
    assert win_rates(np.array([[1.0, 1.0, 2.0], [3.0, np.nan, 2.0]])).tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ({}, "easy"),
        ({"fcfs": rows(1)}, "easy"),
        ({"easy": []}, "no shuffles"),
        ({"easy": rows(1, 2), "co": rows(1)}, "easy has 2 shuffles, co has 1"),
        ({"easy": rows(1), "co": rows(0)}, "co: shuffle 0 has no makespan_s above 0"),
        ({"easy": rows(1), "co": [{}]}, "co: shuffle 0 has no makespan_s above 0"),
    ],
)
def test_what_cannot_be_compared(outcomes: dict[str, list[dict[str, float]]], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        compare_shuffles(outcomes)


@pytest.mark.parametrize("number", [1, 5])
def test_intervals_need_resamples(number: int) -> None:
    message = "resamples must be a whole number of at least 1, not 0"
    with pytest.raises(HpcgymError, match=message):
        compare_shuffles({"easy": rows(*[100] * number)}, resamples=0)
    with pytest.raises(HpcgymError, match=message):
        bootstrap(np.ones((number, 1)), 0)
