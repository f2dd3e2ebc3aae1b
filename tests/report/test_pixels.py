"""What is summed up in pixels and bins is what was there."""

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st

from hpcgym.report.placement import coverage, envelope

WIDTH, HEIGHT = 7, 5


def sides(largest):
    side = st.floats(0, largest, allow_subnormal=False)
    return st.tuples(side, side).map(sorted)


@settings(deadline=None)
@given(st.lists(st.tuples(sides(WIDTH), sides(HEIGHT)), max_size=6))
def test_coverage_is_the_area_of_the_rectangles_in_each_pixel(rectangles):
    expected = np.zeros((HEIGHT, WIDTH))
    for (left, right), (low, high) in rectangles:
        x, y = np.arange(WIDTH), np.arange(HEIGHT)
        wide = np.clip(np.minimum(x + 1, right) - np.maximum(x, left), 0, 1)
        tall = np.clip(np.minimum(y + 1, high) - np.maximum(y, low), 0, 1)
        expected += np.outer(tall, wide)
    corners = np.array([[*x, *y] for x, y in rectangles]).reshape(-1, 4).T
    assert coverage(*corners, WIDTH, HEIGHT) == pytest.approx(expected, abs=1e-9)


@st.composite
def step_functions(draw):
    gaps = draw(st.lists(st.integers(0, 5), min_size=1, max_size=30).filter(any))
    times = np.concatenate(([draw(st.integers(0, 50))], gaps)).cumsum()
    values = draw(st.lists(st.integers(0, 9), min_size=times.size, max_size=times.size))
    return times, np.array(values)


@settings(deadline=None)
@given(step_functions(), st.integers(1, 12))
def test_a_bin_has_mean_least_and_greatest_of_what_holds_in_it(function, n_bins):
    times, values = function
    times = times * n_bins  # so that the edges of bins are whole seconds
    seconds = np.arange(times[0], times[-1])
    held = values[np.searchsorted(times, seconds, side="right") - 1].reshape(n_bins, -1)
    bins = envelope(times, values, n_bins)
    assert bins.edges == pytest.approx(np.linspace(times[0], times[-1], n_bins + 1))
    assert bins.mean == pytest.approx(held.mean(axis=1))
    assert bins.low.tolist() == held.min(axis=1).tolist()
    assert bins.high.tolist() == held.max(axis=1).tolist()


def test_a_peak_of_a_second_is_not_lost_in_a_year():
    times = np.array([0, 15_000_000, 15_000_001, 31_536_000])
    bins = envelope(times, np.array([0, 500, 0, 0]), 300)
    assert bins.high.max() == 500
    assert np.count_nonzero(bins.high) == 1
    assert bins.mean.sum() * 31_536_000 / 300 == pytest.approx(500)
    assert bins.high.argmax() == int(15_000_000 / 31_536_000 * 300)
