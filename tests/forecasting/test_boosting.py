"""Boosting: what it sees, beside a slow count of the same; and that its quantiles hold."""

from __future__ import annotations

import numpy as np
import pytest

import hpcgym
from hpcgym.forecasting.boosting import Boosting, Submissions, Trees
from hpcgym.forecasting.scores import LEVELS, scores

LOG = hpcgym.simulate("lublin:jobs=400,processors=64,load=1.1,users=9,seed=3", "easy").as_workload()
SUBMIT, RUN, ASKED = LOG.submit_time, LOG.run_time, LOG.requested_time
BEGAN = SUBMIT + LOG.wait_time
END = BEGAN + RUN


def supposed(row: int) -> float:
    """For how long a job may run, by a loop."""
    ended = [k for k in np.argsort(END, kind="stable") if END[k] <= SUBMIT[row]]
    asked = ("user_id", "requested_time", "requested_processors")
    columns = [getattr(LOG, name) for name in asked]
    alike = [ended, *([k for k in ended if all(c[k] == c[row] for c in of)]
                      for of in (columns[:1], columns))]  # fmt: skip
    mean = 0.0
    for rows, last, prior in zip(alike, (300, 10, 10), (0.0, 4.0, 1.5), strict=True):
        logs = [np.log(RUN[k] / ASKED[k]) for k in rows[-last:]]
        if logs:
            mean += len(logs) / (len(logs) + prior) * (np.mean(logs) - mean)
    return float(np.exp(mean) * ASKED[row])


def test_what_is_seen_at_a_submission() -> None:
    rows = np.arange(30, 400, 7)
    seen = Submissions(LOG, 64).features(rows)
    for row, x in zip(rows, seen, strict=True):
        now, before = SUBMIT[row], np.arange(len(LOG)) < row
        runs, waits = before & (now > BEGAN) & (now < END), before & (now <= BEGAN)
        width = LOG.requested_processors
        assert x[:3] == pytest.approx([width[row], ASKED[row], supposed(row)], rel=1e-5)
        free = 64 - width[runs].sum()
        assert x[7:11].tolist() == [free, runs.sum(), waits.sum(), width[waits].sum()]
        assert x[11] == pytest.approx((width * ASKED)[waits].sum() / 64)
        assert x[17] == pytest.approx((width * (BEGAN + ASKED - now))[runs].sum() / 64)
        left = sorted(zip((BEGAN + ASKED - now)[runs], width[runs], strict=True))
        room, ready = free, 0
        while room < width[row]:
            ready, more = left.pop(0)
            room += more
        assert x[19] == ready


def test_quantiles_hold_and_errors_of_points_are_learned() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (3000, 2))
    wait = 600 * np.exp(x[:, 0] + 0.5 * rng.standard_normal(3000))
    model = Boosting(Trees(rounds=20))
    model.learn(x[:2000], wait[:2000])
    said = model.quantiles(x[2000:])
    assert said.shape == (1000, len(LEVELS))
    assert (np.diff(said, axis=1) >= 0).all()
    by_name = scores(said, wait[2000:])
    assert 0.72 < by_name["coverage_80"] < 0.86
    point = 600 * np.exp(x[:, 0])
    model.learn(x[:2000, 1:], wait[:2000], point=point[:2000])  # the point alone tells the rest
    errors = scores(model.quantiles(x[2000:, 1:], point=point[2000:]), wait[2000:])
    assert errors["crps"] < 1.05 * by_name["crps"]
    assert scores(model.quantiles(x[2000:, 1:]), wait[2000:])["crps"] > 2 * errors["crps"]
