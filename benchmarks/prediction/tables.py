"""The tables of chapter 7 of Glesser 2016: ours beside the published values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import combinations, product, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpcgym import HpcgymError, Workload, load_workload
from hpcgym.benchmarks.prediction import items, runs
from hpcgym.benchmarks.studies.tables import Rows, of_rows, pearson
from hpcgym.files.tables import csv_frame
from hpcgym.units import DAY_S

_NONE = float("nan")

#: Of all triples that two logs must have for a correlation.
_SHARE = 2 / 3


class Findings(NamedTuple):
    """What came out on one trace.

    Attributes
    ----------
    source, workload : what the trace was loaded from; its jobs.
    table : a row for each configuration, by its text: what it is, and what
        :func:`hpcgym.benchmarks.prediction.runs.simulate_one` returns.
    accuracy : of :func:`hpcgym.benchmarks.prediction.runs.predictions_of`.
    """

    source: str
    workload: Workload
    table: pd.DataFrame
    accuracy: Mapping[tuple[str, str], Any]


class Campaign:
    """Ours beside the authors' own results.

    Attributes
    ----------
    findings : of each trace that was simulated.
    published : of :func:`hpcgym.benchmarks.prediction.items.read_published`.
    """

    def __init__(self, findings: Sequence[Findings], published: Mapping[str, pd.DataFrame]) -> None:
        self.findings, self.published = findings, published

    @cached_property
    def values(self) -> dict[str, pd.DataFrame]:
        """Mean bounded slowdowns, a row for each configuration, a column for each trace.

        Ours, those of the authors' runs that came to their end, and those of all of their runs.
        """
        theirs = self.published.items()
        values = {
            "ours": {
                of_trace.workload.name: of_trace.table["mean_bsld"] for of_trace in self.findings
            },
            "published": {trace: of["mean_bsld"][of["ended"]] for trace, of in theirs},
            "unfinished too": {trace: of["mean_bsld"] for trace, of in theirs},
        }
        return {by: pd.DataFrame(of) for by, of in values.items()}

    @property
    def traces(self) -> list[str]:
        """All traces that are simulated, then others with published results."""
        return list(dict.fromkeys([*self.values["ours"], *self.published]))

    def of(self, by: str, trace: str) -> pd.Series[float]:
        """Return the values on a trace, by configuration; empty without any."""
        return self.values[by].get(trace, pd.Series(dtype=float)).dropna()


@of_rows
def exactness(campaign: Campaign) -> Rows:
    """Return the configurations without learning, which have to meet the published values."""
    for of_trace in campaign.findings:
        theirs = campaign.of("published", of_trace.workload.name)
        for name in map(str, runs.WITHOUT_LEARNING):
            if name in theirs:
                ours = of_trace.table.loc[name]
                row = {"trace": of_trace.workload.name, "configuration": name, "jobs": ours["jobs"]}
                row |= {"ours": ours["mean_bsld"], "published": theirs[name]}
                yield row | {"relative": f"{ours['mean_bsld'] / theirs[name] - 1:+.1e}"}


def _beside(trace: str, ours: Mapping[str, Any], printed: Mapping[str, Any]) -> Rows:
    """Return a row for each of our values by name, beside the thesis's if it has any."""
    for (what, value), thesis in zip(ours.items(), printed.get(trace, repeat(_NONE)), strict=False):
        yield {"trace": trace, "what": what, "ours": float(value), "thesis": thesis}


@of_rows
def table_7_1(campaign: Campaign) -> Rows:
    """Table 7.1: EASY with requested and with known run times."""
    for trace, values in campaign.values["ours"].items():
        known, easy = (
            values[str(configuration)] for configuration in (runs.CLAIRVOYANT["fcfs"], runs.EASY)
        )
        yield from _beside(str(trace), {"EASY": easy, "CLAIRVOYANT": known}, items.TABLE_7_1)


@of_rows
def table_7_4(campaign: Campaign) -> Rows:
    """Table 7.4: the logs, as they are before they are cleaned."""
    for of_trace in campaign.findings:
        log = load_workload(of_trace.source, clean="none")
        ours = {
            "processors": of_trace.workload.processors,
            "jobs (thousands)": len(log) / 1000,
            "months": np.ptp(log.submit_time) / (365.25 / 12 * DAY_S),
        }
        yield from _beside(of_trace.workload.name, ours, items.TABLE_7_4)


#: Entry of table 7.6 -> the configurations that it is of, and whether the least or largest value.
_OVERVIEW: dict[str, tuple[list[str], str]] = {
    runs.NAMES[str(configuration)]: ([str(configuration)], "min")
    for configuration in (*runs.CLAIRVOYANT.values(), runs.EASY, runs.EASY_PLUS_PLUS)
}
for _order, (_end, _how) in product(runs.ORDERS, (("best", "min"), ("worst", "max"))):
    _learn = [
        str(configuration)
        for configuration in runs.WITH_THRESHOLDS
        if configuration.order == _order
    ]
    _OVERVIEW[f"learning, {_order.upper()}: {_end}"] = (_learn, _how)


@of_rows
def table_7_6(campaign: Campaign) -> Rows:
    """Table 7.6: known run times, EASY, EASY++, and the best and the worst that learn.

    The thesis's ends are over its 120 configurations that learn and the same with the thresholds of
    60 and 600 s, but on MetaCentrum over the 120 alone: so its values are found in the published
    ones, but those of unfinished runs.
    """
    thesis = [str(configuration) for configuration in runs.THESIS]
    for trace in campaign.traces:
        values = {by: campaign.of(by, trace) for by in campaign.values}
        if trace == "MetaCentrum":
            values = {by: of[of.index.isin(thesis)] for by, of in values.items()}
        ours, *theirs = (
            {what: of.reindex(names).agg(how) for what, (names, how) in _OVERVIEW.items()}
            for of in values.values()
        )
        for row in _beside(trace, ours, items.TABLE_7_6):
            others = (of[row["what"]] for of in theirs)
            yield {**row, **dict(zip([*values][1:], others, strict=True))}


#: The triple, and what it is compared with, as tables call it.
_BESIDE = {"EASY": str(runs.EASY), "EASY++": str(runs.EASY_PLUS_PLUS)}
_TRIPLE = str(runs.E_LOSS_TRIPLE)


def _gains(values: pd.Series[float], triple: str, name: str) -> dict[str, float]:
    """Return by how many percent a triple is below EASY and EASY++."""
    return {
        f"{name}below {other} %": 100 * (1 - values.get(triple, _NONE) / values.get(rival, _NONE))
        for other, rival in _BESIDE.items()
    }


@of_rows
def pairs(campaign: Campaign) -> Rows:
    """Section 7.5.3: Pearson's coefficient of the thesis's triples on each two logs."""
    thesis = [str(configuration) for configuration in runs.THESIS]
    least = _SHARE * campaign.values["ours"].index.isin(thesis).sum()
    for two in combinations(campaign.traces, 2):
        row: dict[str, Any] = dict(zip(("first", "second"), two, strict=True))
        for by, values in campaign.values.items():
            both = values.reindex(index=thesis, columns=two).dropna()
            enough = len(both) >= max(least, 2)
            row[f"{by}: Pearson"] = pearson(*both.to_numpy().T) if enough else _NONE
        yield row


# --- Which triple to take -------------------------------------------------------------------------

#: The thesis's triples that do not know run times, nor double the request.
BLIND = [
    str(configuration)
    for configuration in runs.THESIS
    if configuration.estimate not in runs.UNCORRECTED[1:]
]


def sums_without(values: pd.DataFrame, trace: str) -> pd.Series[float]:
    """Return the sum of each triple over all other traces, of those with a value on each."""
    others = values.drop(columns=trace, errors="ignore")
    return others.dropna().sum(axis=1) if len(others.columns) else pd.Series(dtype=float)


@of_rows
def table_7_7(campaign: Campaign) -> Rows:
    """Table 7.7: the triple of least sum over the other traces, on the one that is left out.

    Of ours, and of the authors' own values; MetaCentrum's by ours too, though it is not simulated.
    Beside it the triple that the thesis recommends.
    """
    for by, values in campaign.values.items():
        blind = values[values.index.isin(BLIND)]
        for trace in dict.fromkeys([*campaign.traces, *items.LOGS]):
            sums = sums_without(blind, trace)
            if not len(sums):
                continue
            triple, of = str(sums.idxmin()), campaign.of(by, trace)
            row: dict[str, Any] = {"values": by, "trace": trace}
            row["triple"] = runs.NAMES.get(triple, triple)
            row |= {"sum": sums.min(), "over": len(blind.columns.drop(trace, errors="ignore"))}
            row |= {"E-Loss triple's sum": sums.get(_TRIPLE, _NONE)}
            row |= {"value": of.get(triple, _NONE), **_gains(of, triple, "")}
            row["thesis"] = items.TABLE_7_7.get(trace, (_NONE,))[0]
            yield row | {"E-Loss triple": of.get(_TRIPLE, _NONE), **_gains(of, _TRIPLE, "E-Loss ")}


_YES = {True: "yes", False: "no"}


@of_rows
def printed_runs(campaign: Campaign) -> Rows:
    """Return which of the authors' runs table 7.7's values are of, and how far these came."""
    for trace, printed in items.TABLE_7_7.items():
        of = campaign.published.get(trace, pd.DataFrame(columns=["mean_bsld", "jobs", "ended"]))
        for configuration in (runs.E_LOSS_TRIPLE, runs.E_LOSS_REQUESTED):
            if str(configuration) in of.index:
                run: Any = of.loc[str(configuration)]
                row: dict[str, Any] = {"trace": trace, "triple": runs.NAMES[str(configuration)]}
                row |= {"published": run["mean_bsld"], "ended": _YES[bool(run["ended"])]}
                row |= {"jobs": run["jobs"], "jobs of the log": of["jobs"].max()}
                same = abs(run["mean_bsld"] - printed[0]) < items.UNIT
                yield row | {"thesis": printed[0], "printed": _YES[bool(same)]}


# --- Predictions and tails ------------------------------------------------------------------------

#: What the predictions in the authors' own schedules have learned from.
THEIRS = "simulated ends, the authors' own"


@of_rows
def table_7_8(campaign: Campaign) -> Rows:
    """Table 7.8: mean absolute error and mean E-Loss of predictions at submission.

    Simulations are those with incremental correction and SJBF: AVE2's are EASY++'s. The authors'
    own are in the schedules of theirs that are at hand.
    """
    for of_trace in campaign.findings:
        name, jobs = of_trace.workload.name, of_trace.workload
        for (ends, prediction), predicted in of_trace.accuracy.items():
            row = {"trace": name, "prediction": prediction, "learned from": ends}
            yield row | _errors(predicted, jobs.run_time, jobs.requested_processors)
        for prediction, configured in runs.PREDICTIONS.items():
            of: Any = campaign.published.get(name, pd.DataFrame())
            if str(configured) in of.index and of.loc[str(configured), "ended"]:
                row = {"trace": name, "prediction": prediction, "learned from": THEIRS}
                with suppress(HpcgymError):  # their schedules need not be at hand
                    yield row | _errors(*_fields_of(Path(of.loc[str(configured), "schedule"])))
    for name, (mae, e_loss) in items.TABLE_7_8.items():
        row = {"trace": "thesis", "prediction": name, "learned from": "printed"}
        yield row | {"MAE (s)": mae, "mean E-Loss": f"{e_loss:.3g}"}


def _fields_of(schedule: Path) -> Iterator[Any]:
    """Return of each job of a schedule of the authors: predicted and run time [s], processors.

    It is in SWF, with predictions at submission in the last field.
    """
    rows = csv_frame(schedule, sep=" ", comment=";", header=None)
    return (rows[field - 1].to_numpy() for field in (18, 4, 8))


def _errors(predicted: Any, run: Any, processors: Any) -> dict[str, Any]:
    """Return what is said of predictions [s] of jobs with these run times [s] and processors."""
    error = (predicted - run).astype(np.float64)
    loss = runs.e_loss(predicted, run, processors).mean()
    return {
        "MAE (s)": float(np.abs(error).mean()),
        "mean E-Loss": f"{loss:.3g}",
        "share too short": float((error < 0).mean()),
        "median (s)": float(np.median(predicted)),
    }


@of_rows
def tails(campaign: Campaign) -> Rows:
    """Section 7.5.5: what a thousandth of the jobs has of the sum of bounded slowdowns.

    Of EASY, EASY++ and the thesis's triple, and the least, median and most over all of its
    configurations with AVE2 or learning, with how many of them are above EASY; and how many times
    the mean of all jobs these jobs have at least.
    """
    predicts = [
        str(configuration)
        for configuration in runs.THESIS
        if configuration.learned or configuration.estimate == "ave2"
    ]
    for of_trace in campaign.findings:
        share = of_trace.table["tail_share"]
        row: dict[str, Any] = {"trace": of_trace.workload.name}
        for configuration in (runs.EASY, runs.EASY_PLUS_PLUS, runs.E_LOSS_TRIPLE):
            row[f"share, {runs.NAMES[str(configuration)]}"] = float(share[str(configuration)])
        of = share.reindex(predicts).dropna()
        row |= {f"share, {name}": of.agg(name) for name in ("min", "median", "max")}
        row["above EASY's"] = f"{int((of > share[str(runs.EASY)]).sum())} of {len(of)}"
        yield row | {"times the mean, EASY": share[str(runs.EASY)] / runs.TAIL,
                     "times the mean, least": of.min() / runs.TAIL}  # fmt: skip


#: Name of a table -> what makes it.
TABLES = {
    "without-learning": exactness,
    "7.1": table_7_1,
    "7.7": table_7_7,
    "7.7-runs": printed_runs,
    "7.4": table_7_4,
    "7.6": table_7_6,
    "pairs": pairs,
    "7.8": table_7_8,
    "tails": tails,
}
