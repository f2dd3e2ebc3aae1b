"""Intervals over slices and seeds, and p-values, against slow ones and against scipy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hpcgym.evaluation.intervals import (
    EXACT,
    FLIPS,
    Drawn,
    bootstrap,
    draw,
    intervals,
    iqm,
    iqms_of,
    means_of,
    p_values,
)

stats = pytest.importorskip("scipy.stats")

VALUES = st.floats(-1e6, 1e6)
SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 7))


def drawn_again(values: np.ndarray, drawn: Drawn, place: int, resample: int) -> np.ndarray:
    """The values of a resample, written out: each seed and each slice as often as it was drawn."""
    seeds = drawn.seeds[place]
    times = np.ones(1, np.int64) if seeds is None else seeds[resample]
    assert times.sum() == len(values)
    of_seeds = np.repeat(values, times, axis=0)
    return np.repeat(of_seeds, drawn.slices[resample], axis=1)


@given(st.data())
def test_resamples_have_the_means_of_what_was_drawn(data: st.DataObject) -> None:
    seeds, n = data.draw(SHAPES)
    rows = [data.draw(arrays(float, (s, n), elements=VALUES)) for s in (1, seeds)]
    drawn = draw(rows, 9, data.draw(st.integers(0, 99)))
    means, middles = means_of(rows, drawn), iqms_of(rows, drawn)
    for (place, values), resample in product(enumerate(rows), range(9)):
        written = drawn_again(values, drawn, place, resample)
        assert written.shape == values.shape
        assert means[resample, place] == pytest.approx(written.mean(), abs=1e-6)
        trimmed = stats.trim_mean(written, 0.25, axis=None)  # as rliable has it
        assert middles[resample, place] == pytest.approx(trimmed, abs=1e-6)


@given(arrays(float, SHAPES, elements=VALUES))
def test_the_interquartile_mean_is_scipys(values: np.ndarray) -> None:
    assert iqm(values) == pytest.approx(stats.trim_mean(values, 0.25, axis=None), abs=1e-6)


def test_what_failed_has_no_interquartile_mean() -> None:
    rows = [np.array([[1.0, np.nan, 2.0, 3.0, 4.0]]), np.array([[1.0, 1.0, 2.0, 3.0, 4.0]])]
    assert np.isnan([iqm(one) for one in rows]).tolist() == [True, False]
    low, high = intervals(rows, iqms_of, 50, 0)
    assert np.isnan([*low, *high]).tolist() == [True, False] * 2


def test_seeds_widen_an_interval_as_theory_says() -> None:
    """The variance of a mean over crossed effects is that of the seeds / S + of the slices / n."""
    rng = np.random.default_rng(3)
    seeds, slices = rng.normal(0, 2, 40), rng.normal(0, 1, 60)
    rows = [seeds[:, None] + slices]
    low, high = intervals(rows, means_of, 4000, 0)
    expected = 2 * 1.96 * np.sqrt(seeds.var() / 40 + slices.var() / 60)
    assert (high - low)[0] == pytest.approx(expected, rel=0.06)
    # of one mean of the seeds a slice, the seeds are forgotten
    low, high = bootstrap(rows[0].mean(axis=0)[:, None], 4000)
    assert (high - low)[0] == pytest.approx(2 * 1.96 * slices.std() / 60**0.5, rel=0.06)


def test_p_values_by_hand() -> None:
    # the signs +++ and --- of 8 are as far from 0 as 1 + 2 + 3
    assert p_values(np.array([[1.0], [2.0], [3.0]])).tolist() == [0.25]
    # 1 + 2 - 3 = 0, as far as all are
    table = np.array([[1.0, 0.0, np.nan], [2.0, 0.0, 1.0], [-3.0, 0.0, 1.0]])
    assert p_values(table)[:2].tolist() == [1.0, 1.0]
    assert np.isnan(p_values(table)[2])


@given(
    st.integers(2, EXACT - 2).flatmap(
        lambda n: arrays(float, n, elements=st.integers(-50, 50).map(lambda one: one / 10))
    )
)
def test_p_values_of_few_slices_are_those_of_all_signs(differences: np.ndarray) -> None:
    found = p_values(differences[:, None])[0]
    expected = stats.permutation_test(
        (differences,),
        lambda one, axis: one.sum(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    # scipy doubles the smaller tail; all signs have both alike
    assert found == pytest.approx(min(1.0, expected.pvalue))


@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
def test_p_values_of_many_slices_are_near_those_of_t(shift: float) -> None:
    differences = np.random.default_rng(5).normal(shift, 1, 40)
    found = p_values(differences[:, None])[0]
    assert found == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)
    assert found >= 1 / (FLIPS + 1)
    assert p_values(differences[:, None])[0] == found
