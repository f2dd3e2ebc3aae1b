"""The tables of chapter 7 of Glesser 2016: ours beside the published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from hpcgym import load_workload
from hpcgym.benchmarks.prediction import items, runs
from hpcgym.benchmarks.studies.tables import Rows, of_rows, pearson
from hpcgym.naming import DAY_S

_NONE = float("nan")


def exactness(findings: Sequence[runs.Findings]) -> pd.DataFrame:
    """Return the configurations without learning, which have to meet the published values."""
    names = [str(one) for one in runs.without_learning()]
    parts = []
    for found in findings:
        part = found.table.loc[found.table.index.isin(names), ["jobs", "mean_bsld", "published"]]
        part = part.dropna().rename(columns={"mean_bsld": "ours"}).reset_index()
        part.insert(0, "trace", found.trace)
        part["relative"] = [f"{x:+.1e}" for x in part["ours"] / part["published"] - 1]
        parts.append(part)
    return pd.concat(parts)


def _beside(trace: str, ours: Mapping[str, float], printed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a table: our values by name, each followed by the thesis's if it has any."""
    theirs = printed.get(trace, (_NONE,) * len(ours))
    row: dict[str, Any] = {"trace": trace}
    for (name, value), other in zip(ours.items(), theirs, strict=True):
        row |= {name: float(value), f"thesis: {name}": float(other)}
    return row


@of_rows
def table_7_1(findings: Sequence[runs.Findings]) -> Rows:
    """Table 7.1: EASY with requested and with known run times."""
    for found in findings:
        known, easy = found.table["mean_bsld"][[str(runs.CLAIRVOYANT["fcfs"]), str(runs.EASY)]]
        ours = {"EASY": easy, "CLAIRVOYANT": known, "decrease %": items.reduction(known, easy)}
        yield (_beside(found.trace, ours, items.TABLE_7_1))


@of_rows
def table_7_4(findings: Sequence[runs.Findings]) -> Rows:
    """Table 7.4: the logs, as they are before they are cleaned."""
    for found in findings:
        log = load_workload(found.source, clean="none")
        ours = {
            "processors": found.workload.processors,
            "jobs (thousands)": len(log) / 1000,
            "months": float(np.ptp(log.submit_time)) / (365.25 / 12 * DAY_S),
        }
        yield (_beside(found.trace, ours, items.TABLE_7_4))


def table_7_6(findings: Sequence[runs.Findings]) -> pd.DataFrame:
    """Table 7.6: known run times, EASY, EASY++, and the best and the worst that learn.

    The thesis's ends are over its 120 configurations that learn and the same with the thresholds of
    60 and 600 s: so its values are found in the published ones, all but those of SDSC-BLUE that are
    of runs that did not come to their end.
    """
    rows = []
    for found in findings:
        columns = {"ours": found.table["mean_bsld"], "published": found.table["published"]}
        values = pd.DataFrame({by: _overview(found, of) for by, of in columns.items()})
        values["thesis"] = items.TABLE_7_6.get(found.trace, _NONE)
        values["ours / published"] = values["ours"] / values["published"]
        values.insert(0, "trace", found.trace)
        rows.append(values.rename_axis("what").reset_index())
    return pd.concat(rows)[["trace", "what", "ours", "published", "thesis", "ours / published"]]


def _overview(found: runs.Findings, values: pd.Series[float]) -> dict[str, float]:
    """Return the entries of a row of table 7.6, by the values of all configurations."""
    table = found.table
    named = ("clairvoyant, FCFS", "clairvoyant, SJBF", "EASY", "EASY++")
    entries = {name: float(values[str(runs.NAMED[name])]) for name in named}
    plain = table["over"].isin(runs.BRANCHES) & table["under"].isin(runs.BRANCHES)
    plain &= (table["over_scale"] == 1) & (table["under_scale"] == 1)
    for order in runs.ORDERS:
        learned = values[plain & (table["order"] == order)]
        entries[f"learning, {order.upper()}: best"] = float(learned.min())
        entries[f"learning, {order.upper()}: worst"] = float(learned.max())
    return entries


def claim(findings: Sequence[runs.Findings]) -> pd.DataFrame:
    """Section 7.5.3: E-Loss, incremental correction and SJBF against EASY and EASY++."""
    triple, *others = (str(one) for one in (runs.E_LOSS_TRIPLE, runs.EASY, runs.EASY_PLUS_PLUS))
    gains = ["below EASY %", "below EASY++ %"]
    parts = []
    for by, column in (("ours", "mean_bsld"), ("published", "published")):
        values = pd.DataFrame({found.trace: found.table[column] for found in findings}).T
        part = values[[triple, *others]].set_axis(["E-Loss triple", "EASY", "EASY++"], axis=1)
        for name, gain in zip(("EASY", "EASY++"), gains, strict=True):
            part[gain] = items.reduction(part["E-Loss triple"], part[name])
        part = part.dropna(subset=["E-Loss triple"])
        if len(part):
            part.loc["mean"] = part[gains].mean()
            parts.append(part.rename_axis("trace").reset_index().assign(values=by))
    printed: dict[str, Any] = {"trace": "thesis, six logs", "values": "printed"}
    printed |= dict(zip(gains, items.REDUCTIONS, strict=True))
    return pd.concat([*parts, pd.DataFrame([printed])])


@of_rows
def table_7_8(findings: Sequence[runs.Findings]) -> Rows:
    """Table 7.8: mean absolute error and mean E-Loss of predictions at submission.

    Those of simulations with incremental correction and SJBF: AVE2's are EASY++'s.
    """
    for found in findings:
        processors = found.workload.requested_processors
        for name, (predicted, run) in found.accuracy.items():
            error = (predicted - run).astype(np.float64)
            row = {"trace": found.trace, "prediction": name, "MAE (s)": float(np.abs(error).mean())}
            row |= {"mean E-Loss": f"{runs.e_loss(predicted, run, processors).mean():.3g}"}
            row |= {"share too short": float((error < 0).mean())}
            yield row | {"median (s)": float(np.median(predicted))}
    for name, (mae, loss) in items.TABLE_7_8.items():
        row = {"trace": "thesis", "prediction": name, "MAE (s)": mae}
        yield {**row, "mean E-Loss": f"{loss:.3g}"}


@of_rows
def tails(findings: Sequence[runs.Findings]) -> Rows:
    """Section 7.5.5: what a thousandth of the jobs has of the sum of bounded slowdowns.

    Of EASY, EASY++ and the thesis's triple, and the least, median and most over all of its
    configurations with AVE2 or learning, with how many of them are above EASY.
    """
    for found in findings:
        share = found.of_thesis["tail_share"]
        predicts = share[found.of_thesis["estimate"].isin(["regression", "ave2"])]
        row: dict[str, Any] = {"trace": found.trace}
        for one in (runs.EASY, runs.EASY_PLUS_PLUS, runs.E_LOSS_TRIPLE):
            row[f"share, {runs.name_of(one)}"] = float(share[str(one)])
        row |= {f"share, {name}": predicts.agg(name) for name in ("min", "median", "max")}
        above = int((predicts > share[str(runs.EASY)]).sum())
        yield {**row, "above EASY's": f"{above} of {len(predicts)}"}


@of_rows
def pairs(findings: Sequence[runs.Findings]) -> Rows:
    """Section 7.5.3: Pearson's coefficient of the thesis's triples on each two logs."""
    for first, second in combinations(findings, 2):
        row: dict[str, Any] = {"first": first.trace, "second": second.trace}
        for by, column in (("ours", "mean_bsld"), ("published", "published")):
            both = pd.concat([of.of_thesis[column] for of in (first, second)], axis=1).dropna()
            enough = len(both) >= _SHARE * len(first.of_thesis)
            row[f"{by}: Pearson"] = pearson(*both.to_numpy().T) if enough else _NONE
        yield (row)


@of_rows
def spread(findings: Sequence[runs.Findings]) -> Rows:
    """Return the thesis's triple over all its variants: ours, and the published values."""
    names = [str(one) for one in runs.variants(runs.E_LOSS_TRIPLE)]
    ends = {"least": 0, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75, "most": 1}

    for found in findings:
        for by, column in (("ours", "mean_bsld"), ("published", "published")):
            values = found.table[column].reindex(names).dropna()
            if len(values) < _SHARE * len(names):
                continue
            easy = float(found.table[column][str(runs.EASY)])
            usual = float(values.get(str(runs.E_LOSS_TRIPLE), _NONE))
            row = {"trace": found.trace, "values": by, "variants": len(values), "the triple": usual}
            row["its place"] = f"{int((values < usual).sum()) + 1} of {len(values)}"
            row |= {name: float(values.quantile(share)) for name, share in ends.items()}
            below = items.reduction(float(values.median()), easy)
            yield {**row, "EASY": easy, "median below EASY %": below}


# --- Which triple to take -------------------------------------------------------------------------

#: Of its variants that a triple needs for a median, and of all triples that two logs must have.
_SHARE = 2 / 3


@of_rows
def selection(findings: Sequence[runs.Findings], published: Mapping[str, items.Published]) -> Rows:
    """Return sums over the logs, by which triples are to be chosen, of some triples.

    Of ours and of the published values, with the triple of the least sum, and of what table 7.7
    prints of the triples that were chosen: of these also with the original's unfinished runs of the
    triple that is said to be always chosen. A sum has a value on each log.
    """
    traces = [found.trace for found in findings]
    blind = [str(one) for one in runs.thesis() if one.estimate not in runs.UNCORRECTED[1:]]
    given = {
        "ours": {found.trace: found.table["mean_bsld"] for found in findings},
        "published": {t: published[t].values for t in traces if t in published},
    }

    for by, values in given.items():
        table = pd.DataFrame(values).reindex(columns=traces)
        table = table[table.index.isin(blind)]
        sums = table.sum(axis=1, skipna=False).dropna()
        for one in dict.fromkeys([*runs.NAMES, *sums.nsmallest(1).index]):
            if one in table.index and table.loc[one].notna().any():
                place = f"{int((sums < sums[one]).sum()) + 1} of {len(sums)}" if one in sums else ""
                row = {"values": by, "triple": runs.NAMES.get(one, one), **table.loc[one].to_dict()}
                yield {**row, "sum": float(sums.get(one, _NONE)), "place": place}
    printed = {trace: items.TABLE_7_7.get(trace, (_NONE,))[0] for trace in traces}
    triple = str(runs.E_LOSS_TRIPLE)
    unfinished = {
        trace: float(value)
        for trace in traces
        if trace in published and (value := published[trace].unfinished.get(triple)) is not None
    }
    for by, of in (("printed", printed), ("printed, or unfinished", printed | unfinished)):
        row = {"values": by, "triple": "table 7.7: chosen on other logs", **of}
        yield {**row, "sum": sum(of.values()), "place": ""}


@of_rows
def table_7_7(findings: Sequence[runs.Findings]) -> Rows:
    """Table 7.7: the triple of least sum over our other traces, on this one; it learns, or AVE2."""
    names = [str(one) for one in runs.thesis() if one.learned or one.estimate == "ave2"]
    values = pd.DataFrame({found.trace: found.table["mean_bsld"] for found in findings})

    for trace, triple in leave_one_out(values[values.index.isin(names)]).items():
        of = values[trace]
        row = {"trace": trace, "triple": triple, "ours": of[triple]}
        for one in (runs.EASY, runs.EASY_PLUS_PLUS):
            row[f"below {runs.name_of(one)} %"] = items.reduction(of[triple], of[str(one)])
        yield {**row, "thesis": items.TABLE_7_7.get(trace, (_NONE,))[0]}


def leave_one_out(values: pd.DataFrame) -> dict[str, str]:
    """Return the triple that is chosen for each trace: least sum over all the others.

    Parameters
    ----------
    values : mean bounded slowdowns, a row for each triple, a column for each trace; a triple
        without a value on each of the other traces is not chosen.
    """
    chosen = {}
    for trace in values.columns[: len(values.columns) * (len(values.columns) > 1)]:
        others = values.drop(columns=trace).dropna()
        if len(others):
            chosen[str(trace)] = str(others.sum(axis=1).idxmin())
    return chosen
