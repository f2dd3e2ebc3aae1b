"""Average ranks and performance profiles: Demšar's example, scipy, and pictures by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from drawing import given, settings
from drawing import strategies as st

from hpcgym.errors import HpcgymError
from hpcgym.schedule.metrics import LESS, MORE, NEITHER, Metric, known_metrics
from hpcgym.study.evaluation.figures import (
    Ranks,
    average_ranks,
    critical_difference,
    draw_profiles,
    draw_ranks,
    ratios_to_best,
    slice_figures,
)

BSLD = Metric("mean_bsld", "mean BSLD", "", LESS)
AUC = Metric("auc", "AUC", "", MORE)

#: Demšar 2006, table 6: areas under curves of four classifiers on 14 data sets. Two that are equal
#: to three digits, 0.975, have the ranks 2 and 3 there.
CLASSIFIERS = pd.DataFrame(
    [
        [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)  # fmt: skip


def test_the_published_example() -> None:
    found = average_ranks(CLASSIFIERS, AUC)
    by_name = dict(zip(found.names, found.mean.round(3).tolist(), strict=True))
    assert by_name == {"C4.5+m+cf": 1.964, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5": 3.143}
    assert list(by_name) == sorted(by_name, key=lambda name: by_name[name])
    assert found.slices == 14
    assert round(found.difference, 2) == 1.25
    assert found.difference == critical_difference(4, 14)
    assert round(critical_difference(4, 14, 0.1), 2) == 1.12
    # section 3.2.2: no two of the four differ at 5 %
    assert found.groups == [(0, 3)]


@pytest.mark.parametrize(
    ("alpha", "published"),
    [
        # Demšar 2006, table 5 (a), of 2 to 10 classifiers
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_critical_values(alpha: float, published: list[float]) -> None:
    for k, q in enumerate(published, 2):
        computed = critical_difference(k, 7, alpha) / math.sqrt(k * (k + 1) / 42)
        assert computed == pytest.approx(q, abs=1.01e-3)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(3, 8).flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=5, max_size=30
        )
    )
)
def test_friedmans_p_is_scipys(rows: list[list[int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    table = pd.DataFrame(rows, columns=[f"s{place}" for place in range(len(rows[0]))])
    found = average_ranks(table, BSLD)
    ranks = np.mean([stats.rankdata(row) for row in rows], axis=0)
    assert found.mean.tolist() == pytest.approx(sorted(ranks))
    if all(len(set(row)) == 1 for row in rows):
        assert found.p == 1
        return
    assert found.p == pytest.approx(stats.friedmanchisquare(*table.to_numpy().T).pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("mean", "p", "groups"),
    [
        ([1.0, 2.0, 3.0, 4.0], 0.001, [(0, 1), (1, 2), (2, 3)]),
        ([1.0, 1.5, 1.9, 4.0], 0.001, [(0, 2)]),
        ([1.0, 1.5, 2.2, 4.0], 0.001, [(0, 1), (1, 2)]),
        ([1.0, 2.1, 3.2, 4.3], 0.001, []),
        ([1.0, 2.1, 3.2, 4.3], 0.2, [(0, 3)]),
    ],
)
def test_who_does_not_differ(mean: list[float], p: float, groups: list[tuple[int, int]]) -> None:
    assert Ranks(["a", "b", "c", "d"], np.array(mean), 9, p, 1.0).groups == groups


def test_more_is_better_of_some_metrics_and_rows_with_gaps_are_left_out() -> None:
    rows = [[1.0, 2.0, 3.0]] * 6
    table = pd.DataFrame([*rows, [3.0, 2.0, math.nan]], columns=["a", "b", "c"])
    assert average_ranks(table, BSLD).names == ["a", "b", "c"]
    assert average_ranks(table, AUC).names == ["c", "b", "a"]
    assert average_ranks(table, AUC).slices == 6


def test_what_has_no_ranks() -> None:
    for table, message in (
        (CLASSIFIERS.iloc[:, :2], "there are 2 and 14"),
        (CLASSIFIERS.iloc[:4], "there are 4 and 4"),
    ):
        with pytest.raises(HpcgymError, match=message):
            average_ranks(table, AUC)
    with pytest.raises(HpcgymError, match="neither less nor more"):
        average_ranks(CLASSIFIERS, Metric("x", "x", "", NEITHER))


def test_the_picture_has_each_name_at_its_rank_and_a_bar_over_each_group() -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        np.arange(5.0) + rng.normal(0, 1, (30, 5)), columns=["$a_", "b", "c", "d", "e"]
    )
    found = average_ranks(table, BSLD)
    axes = draw_ranks(table, BSLD)
    texts = [text.get_text().split() for text in axes.texts]
    assert ["30", "instances", "Friedman's"] in [words[:3] for words in texts]
    for name, rank in zip(found.names, found.mean, strict=True):
        assert any({name, f"{rank:.2f}"} == set(words) for words in texts)
    bars = [line for line in axes.get_lines() if line.get_linewidth() == 3]
    assert len(bars) == len(found.groups) > 1
    for bar, (first, last) in zip(bars, found.groups, strict=True):
        low, high = bar.get_xdata()
        inside = (low < found.mean) & (found.mean < high)
        assert np.flatnonzero(inside).tolist() == list(range(first, last + 1))


def test_ranks_are_drawn_where_ratios_are_not() -> None:
    """Nobody waits on any slice under the first: so no ratio to it."""
    grid = pd.DataFrame({"a": [0.0] * 6, "b": [1.0] * 6, "c": [2.0] * 6})
    assert list(slice_figures({"bsld": grid}, {"bsld": BSLD}, 3.5)) == ["ranks-bsld"]
    assert len(slice_figures({"bsld": grid + 1}, {"bsld": BSLD}, 3.5)) == 2
    with pytest.raises(HpcgymError, match="on no slice"):
        slice_figures({"bsld": grid[["a", "b"]]}, {"bsld": BSLD}, 3.5)


# --- Performance profiles -------------------------------------------------------------------------


def test_profiles_are_shares_of_slices_near_the_best() -> None:
    grid = pd.DataFrame({"x": [1.0, 4.0, 9.0], "y": [2.0, 2.0, 3.0]})
    np.testing.assert_allclose(ratios_to_best(grid, BSLD), [[1, 2], [2, 1], [3, 1]])
    np.testing.assert_allclose(
        ratios_to_best(grid, known_metrics()["utilization"]), [[2, 1], [1, 2], [1, 3]]
    )
    pytest.importorskip("matplotlib")
    first, second = draw_profiles(grid, BSLD).get_lines()
    for line, ratios in ((first, [1, 2, 3]), (second, [2, 1, 1])):
        x, share = line.get_data()
        for at in (1.0, 1.5, 2.0, 2.9, 3.0):
            reached = share[np.flatnonzero(np.asarray(x) <= at)[-1]]
            assert reached == pytest.approx(100 * sum(one <= at for one in ratios) / 3)
    assert first.get_label() == "x: best on 33 %"


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["week 1", "week 2", "week 7"], "weeks"),
        (["month 1", "month 2", "month 3"], "months"),
        (["week 1", "month 1", "week 2"], "instances"),
        ([0, 1, 2], "instances"),
    ],
)
def test_a_profile_calls_its_rows_by_their_name(labels: list[object], words: str) -> None:
    pytest.importorskip("matplotlib")
    grid = pd.DataFrame({"x": [1.0, 4.0, 9.0], "y": [2.0, 2.0, 3.0]}, index=labels)
    assert draw_profiles(grid, BSLD).get_ylabel() == f"% of 3 {words}"


def test_what_has_no_profile() -> None:
    grid = pd.DataFrame({"x": [0.0, 1.0], "y": [2.0, np.nan]})
    with pytest.raises(HpcgymError, match="on no slice all have a value above 0"):
        ratios_to_best(grid, BSLD)
    with pytest.raises(HpcgymError, match="neither less nor more"):
        ratios_to_best(grid, known_metrics()["jobs"])
