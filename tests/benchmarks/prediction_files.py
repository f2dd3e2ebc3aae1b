"""Traces and published results for tests of the study of predictions."""

from __future__ import annotations

import gzip
from itertools import product
from pathlib import Path

from hpcgym.benchmarks.prediction import runs
from hpcgym.benchmarks.prediction.runs import Configuration
from hpcgym.scheduler.estimates import Regression

COLUMNS = (
    "scheduler,correction,predictor,over_loss,over_param,under_loss,under_param,threshold,weight,"
    "jobs,mean_bsld,max_bsld,rms_bsld,mean_response_s,max_response_s"
)


def published() -> list[Configuration]:
    """All that there are published results of: 5,760 that learn, and 12 that do not."""
    sides = [(branch, scale) for branch in runs.BRANCHES for scale in runs.SCALES]
    sides += [("exponential", 1e-5), ("exponential", 1e-4)]
    losses = [
        runs.loss(over, under, weight, over_scale=o, under_scale=u, threshold=threshold)
        for (over, o), (under, u), threshold, weight in product(
            sides, sides, runs.THRESHOLDS, runs.WEIGHTS
        )
    ]
    learned = product(runs.ORDERS, runs.CORRECTIONS, losses)
    return [*runs.WITHOUT_LEARNING, *(Configuration(*triple) for triple in learned)]


ORDERS = {"fcfs": "easy_prediction_backfill_scheduler", "sjbf": "easy_plus_plus_scheduler"}
CORRECTIONS = {"requested": "reqtime", "incremental": "tsafrir"}
WEIGHTS = {
    "1": "1",
    "long": "5+log(r/m)",
    "wide": "5+log(m/r)",
    "small": "11+log(1/(r*m))",
    "large": "1+log(m*r)",
}
BRANCHES = {"absolute": "abs", "squared": "square", "exponential": "exp"}
PREDICTORS = {
    "ave2": "tsafrir",
    "clairvoyant": "clairvoyant",
    "requested": "reqtime",
    "double-requested": "double_reqtime",
}


def words_of(configuration: Configuration) -> tuple[str, str, str, tuple[str, ...]]:
    """What the campaign calls scheduler, correction and predictor, and the parts of the loss."""
    correction = CORRECTIONS.get(configuration.correction, "recursive_doubling")
    if configuration.learned:
        given = Regression.parse(configuration.estimate)
        loss = (
            BRANCHES[given.over], f"{given.over_scale:g}",
            BRANCHES[given.under], f"{given.under_scale:g}",
            f"{given.threshold:g}", WEIGHTS[given.weight],
        )  # fmt: skip
        return ORDERS[configuration.order], correction, "sgdlinear", loss
    if configuration.estimate != "ave2":
        correction = "throw_an_error"
    return ORDERS[configuration.order], correction, PREDICTORS[configuration.estimate], ("NA",) * 6


def row_of(configuration: Configuration, *measures: float) -> str:
    """A row of the published files."""
    order, correction, predictor, loss = words_of(configuration)
    return ",".join(map(str, (order, correction, f"predictor_{predictor}", *loss, *measures)))


def write_published(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write("\n".join([COLUMNS, *rows]) + "\n")


def name_of(configuration: Configuration) -> str:
    """What the campaign's repository calls the schedule of a configuration."""
    order, correction, predictor, loss = words_of(configuration)
    signs = str.maketrans("", "", "+()/*")
    loss_parts = "I".join(["", *loss]).translate(signs) if configuration.learned else ""
    name = f"res_{order}_predictor{predictor.replace('_', '')}{loss_parts}_{correction}.swf.gz"
    return f"simulations/{name}"


def write_checkout(folder: Path, trace: str, rows: list[tuple[str, object, object]]) -> Path:
    """Write the file of a checkout with names of schedules, numbers of jobs and mean slowdowns."""
    path = folder / "experiments" / "data" / trace / "sim_analysis" / "metrics_complete"
    path.parent.mkdir(parents=True)
    lines = [f"{k} {name} {jobs} NA {bsld} 1" for k, (name, jobs, bsld) in enumerate(rows)]
    path.write_text("\n".join([" name length avgft avgbsld maxbsld", *lines]) + "\n")
    return path.parents[1]
