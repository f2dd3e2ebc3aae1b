"""Traces and published results for tests of the study of predictions."""

from __future__ import annotations

import gzip
from itertools import product
from pathlib import Path

from hpcgym.benchmarks.prediction import runs
from hpcgym.benchmarks.prediction.runs import Configuration, Loss

COLUMNS = (
    "scheduler,correction,predictor,over_loss,over_param,under_loss,under_param,threshold,weight,"
    "jobs,mean_bsld,max_bsld,rms_bsld,mean_response_s,max_response_s"
)


def published() -> list[Configuration]:
    """All that there are published results of: 5,760 that learn, and 12 that do not."""
    sides = [(branch, scale) for branch in runs.BRANCHES for scale in runs.SCALES]
    sides += [("exponential", 1e-5), ("exponential", 1e-4)]
    losses = [
        Loss(over, under, weight, over_scale, under_scale, threshold)
        for (over, over_scale), (under, under_scale), threshold, weight in product(
            sides, sides, runs.THRESHOLDS, runs.WEIGHTS
        )
    ]
    learned = product(runs.ORDERS, runs.CORRECTIONS, losses)
    return [*runs.without_learning(), *(Configuration(*one) for one in learned)]


def row_of(one: Configuration, *measures: float) -> str:
    """A row of the published files."""
    order = {"fcfs": "easy_prediction_backfill_scheduler", "sjbf": "easy_plus_plus_scheduler"}
    corrections = {"requested": "reqtime", "incremental": "tsafrir"}
    weights = {
        "1": "1",
        "long": "5+log(r/m)",
        "wide": "5+log(m/r)",
        "small": "11+log(1/(r*m))",
        "large": "1+log(m*r)",
    }
    branches = {"absolute": "abs", "squared": "square", "exponential": "exp"}
    predictors = {
        "ave2": "tsafrir",
        "clairvoyant": "clairvoyant",
        "requested": "reqtime",
        "double-requested": "double_reqtime",
    }
    correction = corrections.get(one.correction, "recursive_doubling")
    loss: tuple[object, ...] = ("NA",) * 6
    if isinstance(one.estimate, Loss):
        predictor, given = "sgdlinear", one.estimate
        loss = (
            branches[given.over], given.over_scale, branches[given.under], given.under_scale,
            given.threshold, weights[given.weight],
        )  # fmt: skip
    else:
        predictor = predictors[one.estimate]
        if one.estimate != "ave2":
            correction = "throw_an_error"
    words = (order[one.order], correction, f"predictor_{predictor}", *loss, *measures)
    return ",".join(map(str, words))


def write_published(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write("\n".join([COLUMNS, *rows]) + "\n")
