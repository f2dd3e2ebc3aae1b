"""The benchmark of forecasts: its worlds are frozen, others are scored, its page is its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpcgym.benchmarks.forecast import run
from hpcgym.errors import HpcgymError
from hpcgym.forecasting.scores import LEVELS
from hpcgym.workload.archive import find

pytestmark = pytest.mark.skipif(find("KTH-SP2") is None, reason="needs KTH-SP2")
PAGE = Path(run.__file__).with_name("README.md")


def said(error: float, truth: str = "easy") -> pd.DataFrame:
    """Points so much longer than the waits, in log(1 + wait / 60 s)."""
    log, _, drawn = run.frozen("KTH-SP2", truth)
    wait = log.wait_time[drawn.second] * 1.0
    point = np.expm1(np.log1p(wait / 60) + error) * 60
    columns = dict.fromkeys(run._QUANTILES, point)
    jobs = log.job_number[drawn.second]
    return pd.DataFrame({"log": "KTH-SP2", "truth": truth, "job": jobs, **columns})


def test_quantiles_of_others_are_scored() -> None:
    (row,) = run.scored(said(0.25).sample(frac=1, random_state=0))
    assert row["crps"] == pytest.approx(0.25)
    assert row["low"] < row["of recent"] < row["high"]
    rows = [*run.scored(pd.concat([said(0), said(1, "recorded")]))]
    assert [row["crps"] for row in rows] == pytest.approx([0, 1])
    for table, message in (
        (said(0)[1:], "KTH-SP2, easy: 1 of .* jobs have no quantiles"),
        (said(0).drop(columns="p97.5"), "no column p97.5"),
        (said(0).replace({"truth": {"easy": "sjf"}}), "no world of"),
    ):
        with pytest.raises(HpcgymError, match=message):
            [*run.scored(table)]


def test_other_jobs_are_not_those_that_are_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SEED", 1)
    with pytest.raises(HpcgymError, match="these are not the jobs or starts"):
        run.frozen("KTH-SP2", "easy")


def test_shares_by_hand() -> None:
    weeks = np.repeat(np.arange(9), 2)
    share = run.share_of(np.full(18, 1.0), np.full(18, 4.0), weeks)
    assert (share["share"], share["low"], share["high"]) == (0.25, 0.25, 0.25)
    wide = run.share_of(np.arange(18.0), np.full(18, 4.0), weeks)
    assert wide["share"] == pytest.approx(8.5 / 4)
    assert wide["low"] < wide["share"] < wide["high"]


def test_who_knows_more_forecasts_better() -> None:
    truth = run.frozen("KTH-SP2", "easy")
    rows = truth.drawn.second[:20]
    wait = truth.log.wait_time[rows] * 1.0
    losses = {
        name: run.crps(of, wait).mean()
        for name, of in run.ceilings(truth, run.scheduler_of("easy", {}), rows).items()
    }
    assert losses["true run times"] < 0.5 * losses["true arrivals"]
    assert len(LEVELS) == len(run._QUANTILES)


def test_the_page_has_what_was_computed() -> None:
    tables = run.page(*(run.csv_frame(run.HERE / f"{name}.csv") for name in ("results", "shares")))
    for table in tables.split("\n\n"):
        assert table in PAGE.read_text()
