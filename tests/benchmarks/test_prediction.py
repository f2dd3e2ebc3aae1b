"""The study of predictions: its configurations, what is published, and its numbers."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of
from prediction_files import name_of, published, row_of, write_checkout, write_published

from hpcgym.benchmarks.prediction import runs, tables
from hpcgym.benchmarks.prediction.items import read_published
from hpcgym.scheduler.estimates import Regression

# --- Configurations -------------------------------------------------------------------------------


def test_there_are_as_many_configurations_as_published() -> None:
    for configurations, learned in ((runs.THESIS, 120), (published(), 5760)):
        assert sum(configuration.learned for configuration in configurations) == learned
        assert (
            len(configurations)
            == len({str(configuration) for configuration in configurations})
            == learned + 12
        )
    assert set(runs.THESIS) < set(published())
    assert set(runs.QUICK) < set(runs.THESIS)
    assert len(set(runs.VARIANTS)) == 27
    assert runs.E_LOSS_TRIPLE in runs.VARIANTS
    assert {*runs.THESIS, *runs.VARIANTS, *runs.WITH_THRESHOLDS} == set(runs.USUAL)
    assert set(runs.USUAL) < set(published())
    assert len(set(runs.USUAL)) == len(runs.USUAL) == 12 + 360 + 24
    assert len(tables.BLIND) == 128


def test_rules_of_a_configuration() -> None:
    rules = runs.E_LOSS_TRIPLE.scheduler
    assert (rules.backfill_order, rules.correction, rules.passes) == (
        "sjbf",
        "incremental",
        "per-event",
    )
    expected = Regression(over="squared", under="absolute", weight="large", eta=5000, l2=4e9)
    assert rules.estimate == str(expected)


# --- What is published ----------------------------------------------------------------------------

SOME = [*published()[12::97], *runs.THESIS[:12]]


def test_rows_are_read_as_configurations(tmp_path: Path) -> None:
    rows = [
        row_of(configuration, 10, place, 1, 1, 1, 1) for place, configuration in enumerate(SOME)
    ]
    write_published(tmp_path / "glesser-ch7-x.csv.gz", rows)
    (results,) = read_published(tmp_path).values()
    assert results["mean_bsld"].to_dict() == {
        str(configuration): place for place, configuration in enumerate(SOME)
    }
    assert results["ended"].all()


def test_a_checkout_of_the_campaign_is_read_as_its_tables_are(tmp_path: Path) -> None:
    rows: list[tuple[str, object, object]] = [
        (name_of(configuration), 10, place) for place, configuration in enumerate(SOME)
    ]
    other = "simulations/res_easy_plus_plus_predictorsgdlinearIIIIII_throw_an_error.swf.gz"
    rows += [("simulations/res_easy_backfill_scheduler_None_None.swf.gz", 10, 9.5)]
    folder = write_checkout(tmp_path, "Metacentrum2013", [(other, 1, "NA"), *rows])
    (trace, results), *others = read_published(tmp_path).items()
    assert (trace, others) == ("MetaCentrum", [])
    expected = {str(configuration): place for place, configuration in enumerate(SOME)}
    assert results["mean_bsld"].to_dict() == expected
    schedule = folder / name_of(runs.EASY_PLUS_PLUS)
    assert results.loc[str(runs.EASY_PLUS_PLUS), "schedule"] == str(schedule)


def test_runs_that_did_not_end_are_told_apart_and_easy_counts_once(tmp_path: Path) -> None:
    named = [f"{name}{',NA' * 8},10,3,1,1,1,1" for name in ("easy_backfill_scheduler",)]
    clairvoyant = runs.CLAIRVOYANT["sjbf"]
    rows = [
        row_of(runs.EASY, 10, 3, 1, 1, 1, 1),
        row_of(runs.EASY_PLUS_PLUS, 9, 2, 1, 1, 1, 1),
        row_of(clairvoyant, 10, "NA", 1, 1, 1, 1),  # type: ignore[arg-type]
        row_of(runs.E_LOSS_TRIPLE, 10, 7, 1, 1, "NA", 1),  # type: ignore[arg-type]
    ]
    write_published(tmp_path / "glesser-ch7-CEA-curie.csv.gz", named + rows)
    results = read_published(tmp_path)["CEA-Curie"]
    ended = results["mean_bsld"][results["ended"]]
    assert ended.to_dict() == {str(runs.EASY): 3.0, str(runs.E_LOSS_TRIPLE): 7.0}
    assert results.loc[str(runs.EASY_PLUS_PLUS), "mean_bsld"] == 2
    campaign = tables.Campaign([], {"CEA-Curie": results})
    assert str(runs.EASY_PLUS_PLUS) not in campaign.of("published", "CEA-Curie")
    assert str(runs.EASY_PLUS_PLUS) in campaign.of("unfinished too", "CEA-Curie")


def test_there_may_be_no_published_results() -> None:
    assert read_published(None) == {}


# --- Numbers --------------------------------------------------------------------------------------


def test_a_thousandth_of_the_jobs_has_its_share() -> None:
    bsld = np.arange(1.0, 2001.0)
    assert runs.tail_share(bsld) == pytest.approx((2000 + 1999) / bsld.sum())
    assert runs.tail_share(np.array([1.0, 3.0])) == 0.75  # at least one job


def test_the_e_loss_is_that_of_equation_7_3() -> None:
    predicted, run, size = np.array([100, 40, 5]), np.array([60, 60, 5]), np.array([2, 3, 1])
    expected = [np.log(120) * 40**2, np.log(180) * 20, 0]
    assert runs.e_loss(predicted, run, size) == pytest.approx(expected)


def test_a_triple_is_chosen_on_the_other_traces() -> None:
    values = pd.DataFrame(
        {
            "a": pd.Series({"x": 1.0, "y": 9.0, "z": 0.0}),
            "b": pd.Series({"x": 5.0, "y": 1.0}),
            "c": pd.Series({"x": 4.0, "y": 3.0, "z": 0.0}),
        }
    )
    # z would always be best, where it has a value on each of the others
    chosen = {trace: tables.sums_without(values, trace).idxmin() for trace in values}
    assert chosen == {"a": "y", "b": "z", "c": "x"}
    assert tables.sums_without(values, "not simulated").to_dict() == {"x": 10.0, "y": 13.0}
    assert len(tables.sums_without(values[["a"]], "a")) == 0


test_mistakes = mistakes_of(globals(), gzip)
