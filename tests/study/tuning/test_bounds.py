"""Bounds that a tuned scheduler must keep, as texts."""

from __future__ import annotations

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.study.tuning.trials import USUAL_BOUNDS, Bound

EASY = {"max_wait_h": 50.0, "p99_wait_h": 20.0, "mean_bsld": 8.0}


@pytest.mark.parametrize(
    ("text", "measure", "limit"),
    [
        ("max_wait <= 7d", "max_wait_h", 168.0),
        ("max_wait<=2w", "max_wait_h", 336.0),
        ("max_wait_h <= 7.5", "max_wait_h", 7.5),
        ("p99_wait <= 90m", "p99_wait_h", 1.5),
        ("p99_wait <= 7200s", "p99_wait_h", 2.0),
        ("p99_wait <= 1d 12h", "p99_wait_h", 36.0),
        (USUAL_BOUNDS[0], "p99_wait_h", 30.0),
        (" max_wait <= 1.5 * easy ", "max_wait_h", 75.0),
        ("mean_bsld <= 2x easy", "mean_bsld", 16.0),
        ("users_p90_wait <= 1e2", "users_p90_wait_h", 100.0),
    ],
)
def test_what_bounds_mean(text: str, measure: str, limit: float) -> None:
    bound = Bound.parse(text)
    assert (bound.measure, bound.limit(EASY)) == (measure, pytest.approx(limit))
    assert Bound.parse(str(bound)) == bound


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_wait < 7d", "should be like"),
        ("max_wait <= seven days", "should be like"),
        ("max_wait <= 7d easy", "should be like"),
        ("mean_bsld <= 7d", "should be like"),
        ("max_wait <= 1.2.3", "should be like"),
        ("max_wait <= 9e999", "should be like"),
        ("max_wait <= -1", "should be like"),
        ("max_wait <=", "should be like"),
        ("longest_wait <= 7d", "unknown measure .* known are mean_bsld, weekly_bsld, mean_wait"),
    ],
)
def test_what_is_no_bound(text: str, said: str) -> None:
    with pytest.raises(HpcgymError, match=said):
        Bound.parse(text)
