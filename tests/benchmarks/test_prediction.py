"""The study of predictions: its configurations, what is published, and its numbers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from prediction_files import published, row_of, write_published

from hpcgym.benchmarks.prediction import runs, tables
from hpcgym.benchmarks.prediction.items import read_published
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates import Regression

# --- Configurations -------------------------------------------------------------------------------


def test_there_are_as_many_configurations_as_published() -> None:
    for make, learned in ((runs.thesis, 120), (published, 5760)):
        found = make()
        assert sum(one.learned for one in found) == learned
        assert len(found) == len({str(one) for one in found}) == learned + 12
    assert set(runs.thesis()) < set(published())
    assert set(runs.quick()) < set(runs.thesis())
    variants = runs.variants(runs.E_LOSS_TRIPLE)
    assert len(set(variants)) == 27
    assert runs.E_LOSS_TRIPLE in variants
    assert {*runs.thesis(), *variants} < set(runs.usual())
    assert set(runs.usual()) < set(published())
    assert len(set(runs.usual())) == len(runs.usual()) == 12 + 360 + 24


@pytest.mark.parametrize("one", runs.usual()[::37], ids=str)
def test_a_configuration_can_be_told_in_words(one: runs.Configuration) -> None:
    assert runs.configuration_of(json.loads(json.dumps(one.words()))) == one


def test_rules_of_a_configuration() -> None:
    rules = runs.scheduler_of(runs.E_LOSS_TRIPLE)
    assert (rules.backfill_order, rules.correction, rules.passes) == (
        "sjbf",
        "incremental",
        "per-event",
    )
    expected = Regression(over="squared", under="absolute", weight="large", eta=5000, l2=4e9)
    assert rules.estimate == str(expected)
    loss = runs.Loss("exponential", "absolute", "wide", 1e-5, 100.0, 60.0)
    rules = runs.scheduler_of(runs.Configuration("fcfs", "requested", loss), eta=7)
    other = Regression(
        over="exponential", under="absolute", weight="wide", over_scale=1e-5, under_scale=100,
        threshold=60, eta=7, l2=4e9,
    )  # fmt: skip
    assert rules.estimate == str(other)


# --- What is published ----------------------------------------------------------------------------


def test_rows_are_read_as_configurations(tmp_path: Path) -> None:
    every = published()[12::97] + runs.thesis()[:12]
    write_published(
        tmp_path / "glesser-ch7-x.csv.gz",
        [row_of(one, 10, place, 1, 1, 1, 1) for place, one in enumerate(every)],
    )
    (found,) = read_published(tmp_path).values()
    assert found.values.to_dict() == {str(one): place for place, one in enumerate(every)}
    assert (found.rows, len(found.unfinished)) == (len(every), 0)


def test_runs_that_did_not_end_are_ignored_and_easy_counts_once(tmp_path: Path) -> None:
    named = [f"{name}{',NA' * 8},10,3,1,1,1,1" for name in ("easy_backfill_scheduler",)]
    clairvoyant = runs.CLAIRVOYANT["sjbf"]
    rows = [
        row_of(runs.EASY, 10, 3, 1, 1, 1, 1),
        row_of(runs.EASY_PLUS_PLUS, 9, 2, 1, 1, 1, 1),
        row_of(clairvoyant, 10, "NA", 1, 1, 1, 1),  # type: ignore[arg-type]
        row_of(runs.E_LOSS_TRIPLE, 10, 7, 1, 1, "NA", 1),  # type: ignore[arg-type]
    ]
    write_published(tmp_path / "glesser-ch7-CEA-curie.csv.gz", named + rows)
    found = read_published(tmp_path)["CEA-Curie"]
    assert found.values.to_dict() == {str(runs.EASY): 3.0, str(runs.E_LOSS_TRIPLE): 7.0}
    assert (found.rows, len(found.unfinished)) == (5, 2)
    assert found.unfinished[str(runs.EASY_PLUS_PLUS)] == 2


def test_what_is_no_published_result_is_said(tmp_path: Path) -> None:
    assert read_published(None) == {}
    with pytest.raises(HpcgymError, match=r"nowhere: there is no such folder"):
        read_published(tmp_path / "nowhere")
    with pytest.raises(HpcgymError, match="no published results"):
        read_published(tmp_path)
    file = tmp_path / "glesser-ch7-x.csv.gz"
    for text in (b"scheduler,jobs\neasy,3\n", b"", b"\x1f\x8bno"):
        file.write_bytes(text if text[:1] == b"\x1f" else gzip.compress(text))
        with pytest.raises(HpcgymError, match=r"glesser-ch7-x\.csv\.gz"):
            read_published(tmp_path)


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
    assert tables.leave_one_out(values) == {"a": "y", "b": "z", "c": "x"}
    assert tables.leave_one_out(values[["a"]]) == {}
