"""Means, ratios and paired differences of sweeps, beside scipy's; performance profiles by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.figures import draw_profiles, ratios_to_best
from hpcgym.evaluation.intervals import summary
from hpcgym.schedule.metrics import known_metrics

BSLD, USED = known_metrics()["mean_bsld"], known_metrics()["utilization"]


def table(n: int = 7) -> pd.DataFrame:
    """Return a table as of a sweep: two workloads, two slices of each of n seeds, three rules."""
    rng = np.random.default_rng(5)
    rows = [
        {"workload": workload, "slice": of, "seed": seed, "scheduler": scheduler,
         "mean_bsld": level * rng.lognormal(), "utilization": rng.uniform(0.2, 0.9)}
        for workload in ("a", "b")
        for of in ("week 1", "week 2")
        for seed in range(n)
        for scheduler, level in (("easy", 4.0), ("saf", 2.0), ("fcfs", 4.5))
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"seed": "Int64"})


def values(rows: pd.DataFrame, workload: str, scheduler: str) -> np.ndarray:
    chosen = rows[(rows["workload"] == workload) & (rows["scheduler"] == scheduler)]
    return chosen.sort_values(["slice", "seed"])["mean_bsld"].to_numpy()


def test_pairs_are_those_of_the_same_jobs() -> None:
    stats = pytest.importorskip("scipy.stats")
    rows = table(6)
    shuffled = rows.sample(frac=1, random_state=3)
    found = summary(shuffled, ["mean_bsld"], paired="easy").set_index(["workload", "scheduler"])
    for workload in ("a", "b"):
        easy = values(rows, workload, "easy")
        for scheduler in ("saf", "fcfs"):
            line = found.loc[workload, scheduler]
            change = values(rows, workload, scheduler) - easy
            assert line["simulations"] == 12
            assert line["mean_bsld"] == pytest.approx(values(rows, workload, scheduler).mean())
            assert line["mean_bsld_above"] == pytest.approx(change.mean())
            assert line["mean_bsld_effect"] == pytest.approx(change.mean() / change.std(ddof=1))
            test = stats.permutation_test(
                (change,), np.mean, permutation_type="samples", n_resamples=np.inf
            )
            assert line["mean_bsld_p"] == pytest.approx(test.pvalue, abs=1e-3)
            ends = stats.bootstrap(
                (change,), np.mean, method="percentile", n_resamples=20_000, rng=1
            ).confidence_interval
            assert line["mean_bsld_above_low"] == pytest.approx(ends.low, abs=0.05 * change.std())
            assert line["mean_bsld_above_high"] == pytest.approx(ends.high, abs=0.05 * change.std())
        assert found.loc[workload, "easy"].filter(like="_above").isna().all()


def test_ratios_are_geometric_means_of_pairs_above_0() -> None:
    rows = table()
    found = summary(rows, ["mean_bsld"], intervals=["mean_bsld"], normalise="easy")
    line = found.set_index(["workload", "scheduler"]).loc["b", "saf"]
    ratios = values(rows, "b", "saf") / values(rows, "b", "easy")
    assert line["mean_bsld"] == pytest.approx(np.prod(ratios) ** (1 / 14))
    assert line["mean_bsld_low"] < line["mean_bsld"] < line["mean_bsld_high"]
    rows.loc[0, "mean_bsld"] = 0.0  # easy on workload a
    found = summary(rows, ["mean_bsld"], normalise="easy")
    assert found["mean_bsld_ratios"].tolist() == [13, 13, 13, 14, 14, 14]


def test_a_pair_of_which_one_is_not_done_is_left_out() -> None:
    rows = table()
    rows = rows.drop(index=0)  # easy of the first jobs of workload a
    found = summary(rows, ["mean_bsld"], paired="easy").set_index(["workload", "scheduler"])
    assert found.loc[("a", "easy"), "simulations"] == 13
    change = values(rows, "a", "saf")[1:] - values(rows, "a", "easy")
    assert found.loc[("a", "saf"), "mean_bsld_above"] == pytest.approx(change.mean())


def test_rows_by_slice_and_few_of_them() -> None:
    found = summary(table(4), ["mean_bsld"], intervals=["mean_bsld"], by="slice")
    assert list(found.columns[:4]) == ["workload", "slice", "scheduler", "simulations"]
    assert len(found) == 12
    assert set(found["simulations"]) == {4}
    assert found["mean_bsld_low"].isna().all()  # of fewer than five there are none


@pytest.mark.parametrize("option", ["paired", "normalise", "by"])
def test_unknown_names_are_told(option: str) -> None:
    with pytest.raises(HpcgymError, match=f"unknown {option} 'eazy'"):
        summary(table(), ["mean_bsld"], **{option: "eazy"})


def test_profiles_are_shares_of_slices_near_the_best() -> None:
    grid = pd.DataFrame({"x": [1.0, 4.0, 9.0], "y": [2.0, 2.0, 3.0]})
    np.testing.assert_allclose(ratios_to_best(grid, BSLD), [[1, 2], [2, 1], [3, 1]])
    np.testing.assert_allclose(ratios_to_best(grid, USED), [[2, 1], [1, 2], [1, 3]])
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
