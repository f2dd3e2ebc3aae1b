"""What chapter 7 of Glesser 2016 prints and its authors found, ours beside it, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpcgym.benchmarks.prediction import runs
from hpcgym.benchmarks.prediction.runs import Configuration, Loss, e_loss
from hpcgym.benchmarks.studies import items
from hpcgym.benchmarks.studies.harness import Folder, load_sources, task_of
from hpcgym.benchmarks.studies.tables import pearson
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.files.tables import csv_frame
from hpcgym.naming import DAY_S
from hpcgym.workload.archive import TRACES
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

# --- What is published. These numbers are only shown beside ours ----------------------------------

_PRINTED = items.published_values(__file__)

#: The thesis's logs by their names in the archive.
LOGS = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie", "MetaCentrum")

#: Table 7.1: mean bounded slowdown of EASY and of EASY-CLAIRVOYANT, and the decrease [%].
TABLE_7_1: dict[str, tuple[float, ...]] = _PRINTED["table 7.1"]

#: Table 7.4: processors, thousands of jobs, months.
TABLE_7_4: dict[str, tuple[int, ...]] = _PRINTED["table 7.4"]

#: Table 7.6: clairvoyant FCFS and SJBF, EASY, EASY++, learning: best and worst of FCFS, of SJBF.
TABLE_7_6: dict[str, tuple[float, ...]] = _PRINTED["table 7.6"]

#: Table 7.7: the triple chosen on the other logs, EASY, EASY++.
TABLE_7_7: dict[str, tuple[float, ...]] = _PRINTED["table 7.7"]

#: Section 7.5.3: how much lower the E-Loss triple is than EASY and EASY++, on average [%].
REDUCTIONS = (28, 11)

#: Section 7.5.3: mean, least and largest correlation of triples on two of the logs (Pearson).
PEARSON = (0.26, 0.01, 0.80)

#: Table 7.8, on Curie: mean absolute error [s] and mean E-Loss.
TABLE_7_8 = {"AVE2": (5217.0, 10.2e8), "E-Loss": (6762.0, 2.35e5)}

_SCHEDULERS = {
    "easy_backfill_scheduler": "fcfs",
    "easy_prediction_backfill_scheduler": "fcfs",
    "easy_sjbf_scheduler": "sjbf",
    "easy_plus_plus_scheduler": "sjbf",
}
_CORRECTIONS = {
    "reqtime": "requested",
    "tsafrir": "incremental",
    "recursive_doubling": "recursive-doubling",
    "throw_an_error": "requested",  # it is never asked
    "NA": "requested",
}
_PREDICTORS = {
    "predictor_tsafrir": "ave2",
    "predictor_clairvoyant": "clairvoyant",
    "predictor_reqtime": "requested",
    "predictor_double_reqtime": "double-requested",
    "NA": "requested",
}
_BRANCHES = {"abs": "absolute", "square": "squared", "exp": "exponential"}
_WEIGHTS = {
    "1": "1",
    "5+log(r/m)": "long",
    "5+log(m/r)": "wide",
    "11+log(1/(r*m))": "small",
    "1+log(m*r)": "large",
}


class Published(NamedTuple):
    """The published results of one trace: mean bounded slowdowns of configurations, by their text.

    Attributes
    ----------
    rows : in the file.
    values, unfinished : of runs that came to their end, and of others, which are compared with
        nothing.
    """

    rows: int
    values: pd.Series[float]
    unfinished: pd.Series[float]


def read_published(folder: Path | None) -> dict[str, Published]:
    """Return the published results of each trace; none without a folder.

    Raises
    ------
    HpcgymError : there is no such folder, it has no such files, or one of them is not as it should
        be.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise HpcgymError(
            f"{folder}: there is no such folder, which published results are to be in"
        )
    names = {name.casefold(): name for name in TRACES}
    files = sorted(folder.glob("glesser-ch7-*.csv.gz"))
    if not files:
        raise HpcgymError(f"{folder}: no published results (glesser-ch7-TRACE.csv.gz) are there")
    found = {}
    for file in files:
        trace = file.name.removeprefix("glesser-ch7-").removesuffix(".csv.gz")
        found[names.get(trace.casefold(), trace)] = _read(file)
    return found


def _read(path: Path) -> Published:
    """Return the published results of one file."""
    rows = csv_frame(path, keep_default_na=False, dtype=str)
    try:
        names = [str(configuration_of_row(row)) for row in rows.to_dict("records")]
        numbers = rows[["jobs", "mean_bsld"]].apply(pd.to_numeric, errors="coerce")
    except (ValueError, KeyError) as error:
        raise HpcgymError(f"{path}: no published results: {error}") from None
    values = numbers["mean_bsld"].set_axis(pd.Index(names, name="configuration"))
    whole = ((numbers["jobs"] == numbers["jobs"].max()) & numbers["mean_bsld"].notna()).to_numpy()
    # EASY is there twice: by itself, and as the one that takes the request for a prediction
    ended = values[whole]
    return Published(len(rows), ended[~ended.index.duplicated()], values[~whole])


def configuration_of_row(row: Mapping[Any, Any]) -> Configuration:
    """Return the configuration of a row of the published files.

    Raises
    ------
    KeyError, ValueError : it has none of the known names, or no number where one has to be.
    """
    order, correction = _SCHEDULERS[row["scheduler"]], _CORRECTIONS[row["correction"]]
    if row["predictor"] != "predictor_sgdlinear":
        return Configuration(order, correction, _PREDICTORS[row["predictor"]])
    loss = Loss(
        _BRANCHES[row["over_loss"]],
        _BRANCHES[row["under_loss"]],
        _WEIGHTS[row["weight"]],
        float(row["over_param"]),
        float(row["under_param"]),
        float(row["threshold"]),
    )
    return Configuration(order, correction, loss)


# --- The campaign on some traces: its tasks, and the table of what came out -----------------------

QUICK_JOBS = 1500  # of a trace, in a quick cut


@dataclass
class Findings:
    """What came out on one trace.

    Attributes
    ----------
    source, workload : what the trace was loaded from; its jobs.
    table : a row for each configuration, by its text: what it is, whether the thesis has it, what
        :func:`hpcgym.benchmarks.prediction.runs.simulate_one` returns, and the published value.
    accuracy : predictor -> its predictions at submission and the run times, (2, n_jobs) [s].
    """

    source: str
    workload: Workload
    table: pd.DataFrame
    accuracy: dict[str, Any] = field(default_factory=dict)

    @property
    def trace(self) -> str:
        """The name of the trace."""
        return self.workload.name

    @property
    def of_thesis(self) -> pd.DataFrame:
        """The rows of the table whose configurations are the thesis's."""
        return self.table[self.table["of thesis"]]


def load_traces(sources: Sequence[str], quick: bool) -> dict[str, Workload]:
    """Return source -> jobs of each trace.

    Raises
    ------
    HpcgymError : a trace that cannot be read or has no requested times, or two of the same name.
    """
    return load_sources(sources, lambda source: _load(source, QUICK_JOBS if quick else None))


def _load(source: str, jobs: int | None) -> Workload:
    """Return a trace; one of the thesis's names on a machine of another size is called so.

    The archive's MetaCentrum has 8,412 processors, the thesis's 3,356.
    """
    try:
        workload = runs.load_trace(source, jobs)
    except WorkloadError:
        if (load_workload(source, clean="none").requested_time > 0).any():
            raise
        raise HpcgymError(
            f"{source} has no requested times, which predictions are compared with: name another"
            " trace, or the generator, lublin:jobs=10000, which has them"
        ) from None
    if TABLE_7_4.get(workload.name, (workload.processors,))[0] != workload.processors:
        name = f"{workload.name} of {workload.processors:,} processors"
        workload = workload.take(slice(None), name=name)
    return workload


def run_campaign(
    traces: Mapping[str, Workload],
    configurations: Sequence[Configuration],
    folder: Folder,
    published: Mapping[str, Published],
    *,
    quick: bool,
) -> list[Findings]:
    """Simulate every configuration on every trace that has not been yet; return what came out.

    Parameters
    ----------
    traces : source -> jobs.
    folder : where the study is run.
    published : results of a trace by its name.
    """
    jobs = QUICK_JOBS if quick else None
    settings = {"eta": runs.ETA, "l2": runs.L2, "first_jobs": jobs}
    words = [one.words() for one in configurations]
    alike = [task_of(source, workload, **settings) for source, workload in traces.items()]
    tasks = [{**task, "rules": rules} for task in alike for rules in words]
    outcomes = iter(folder.run(runs.simulate_one, tasks, "simulations"))
    index = pd.Index([str(one) for one in configurations], name="configuration")
    thesis = {str(one) for one in runs.thesis()}
    found = []
    for source, workload in traces.items():
        name = workload.name
        table = pd.DataFrame([rules | next(outcomes) for rules in words], index=index)
        table["of thesis"] = index.isin(thesis)
        table["published"] = published[name].values if name in published else _NONE
        found.append(Findings(source, workload, table))
    return found


# --- The thesis's tables, ours beside the published values, as DataFrames -------------------------

_NONE = float("nan")
#: The triple that does best over all logs by the authors' own results, and the thesis's.
AVE2_REQUESTED = Configuration("sjbf", "requested", "ave2")
_NAMED = {
    "EASY": runs.EASY,
    "EASY++": runs.EASY_PLUS_PLUS,
    "E-Loss, incremental, SJBF": runs.E_LOSS_TRIPLE,
    "E-Loss, requested, SJBF": Configuration("sjbf", "requested", runs.E_LOSS),
    "AVE2, requested, SJBF": AVE2_REQUESTED,
    **{f"clairvoyant, {order.upper()}": one for order, one in runs.CLAIRVOYANT.items()},
}
_NAMES = {str(one): name for name, one in _NAMED.items()}


def name_of(configuration: Configuration) -> str:
    """Return what pictures and tables call a configuration."""
    return _NAMES.get(str(configuration), str(configuration))


def exactness(findings: Sequence[Findings]) -> pd.DataFrame:
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


def table_7_1(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.1: EASY with requested and with known run times."""
    rows = []
    for found in findings:
        known, easy = found.table["mean_bsld"][[str(runs.CLAIRVOYANT["fcfs"]), str(runs.EASY)]]
        ours = {"EASY": easy, "CLAIRVOYANT": known, "decrease %": reduction(known, easy)}
        rows.append(_beside(found.trace, ours, TABLE_7_1))
    return pd.DataFrame(rows)


def reduction(value: Any, reference: Any) -> Any:
    """Return by how many percent values are below others."""
    return 100 * (1 - value / reference)


def table_7_4(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.4: the logs, as they are before they are cleaned."""
    rows = []
    for found in findings:
        log = load_workload(found.source, clean="none")
        ours = {
            "processors": found.workload.processors,
            "jobs (thousands)": len(log) / 1000,
            "months": float(np.ptp(log.submit_time)) / (365.25 / 12 * DAY_S),
        }
        rows.append(_beside(found.trace, ours, TABLE_7_4))
    return pd.DataFrame(rows)


def table_7_6(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.6: known run times, EASY, EASY++, and the best and the worst that learn.

    The thesis's ends are over its 120 configurations that learn and the same with the thresholds of
    60 and 600 s: so its values are found in the published ones, all but those of SDSC-BLUE that are
    of runs that did not come to their end.
    """
    rows = []
    for found in findings:
        columns = {"ours": found.table["mean_bsld"], "published": found.table["published"]}
        values = pd.DataFrame({by: _overview(found, of) for by, of in columns.items()})
        values["thesis"] = TABLE_7_6.get(found.trace, _NONE)
        values["ours / published"] = values["ours"] / values["published"]
        values.insert(0, "trace", found.trace)
        rows.append(values.rename_axis("what").reset_index())
    return pd.concat(rows)[["trace", "what", "ours", "published", "thesis", "ours / published"]]


def _overview(found: Findings, values: pd.Series[float]) -> dict[str, float]:
    """Return the entries of a row of table 7.6, by the values of all configurations."""
    table = found.table
    named = ("clairvoyant, FCFS", "clairvoyant, SJBF", "EASY", "EASY++")
    entries = {name: float(values[str(_NAMED[name])]) for name in named}
    plain = table["over"].isin(runs.BRANCHES) & table["under"].isin(runs.BRANCHES)
    plain &= (table["over_scale"] == 1) & (table["under_scale"] == 1)
    for order in runs.ORDERS:
        learned = values[plain & (table["order"] == order)]
        entries[f"learning, {order.upper()}: best"] = float(learned.min())
        entries[f"learning, {order.upper()}: worst"] = float(learned.max())
    return entries


def claim(findings: Sequence[Findings]) -> pd.DataFrame:
    """Section 7.5.3: E-Loss, incremental correction and SJBF against EASY and EASY++."""
    triple, *others = (str(one) for one in (runs.E_LOSS_TRIPLE, runs.EASY, runs.EASY_PLUS_PLUS))
    gains = ["below EASY %", "below EASY++ %"]
    parts = []
    for by, column in (("ours", "mean_bsld"), ("published", "published")):
        values = pd.DataFrame({found.trace: found.table[column] for found in findings}).T
        part = values[[triple, *others]].set_axis(["E-Loss triple", "EASY", "EASY++"], axis=1)
        for name, gain in zip(("EASY", "EASY++"), gains, strict=True):
            part[gain] = reduction(part["E-Loss triple"], part[name])
        part = part.dropna(subset=["E-Loss triple"])
        if len(part):
            part.loc["mean"] = part[gains].mean()
            parts.append(part.rename_axis("trace").reset_index().assign(values=by))
    printed: dict[str, Any] = {"trace": "thesis, six logs", "values": "printed"}
    printed |= dict(zip(gains, REDUCTIONS, strict=True))
    return pd.concat([*parts, pd.DataFrame([printed])])


def table_7_8(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.8: mean absolute error and mean E-Loss of predictions at submission.

    Those of simulations with incremental correction and SJBF: AVE2's are EASY++'s.
    """
    rows: list[dict[str, Any]] = []
    for found in findings:
        processors = found.workload.requested_processors
        for name, (predicted, run) in found.accuracy.items():
            error = (predicted - run).astype(np.float64)
            rows.append(
                {
                    "trace": found.trace,
                    "prediction": name,
                    "MAE (s)": float(np.abs(error).mean()),
                    "mean E-Loss": f"{e_loss(predicted, run, processors).mean():.3g}",
                    "share too short": float((error < 0).mean()),
                    "median (s)": float(np.median(predicted)),
                }
            )
    for name, (mae, loss) in TABLE_7_8.items():
        row = {"trace": "thesis", "prediction": name, "MAE (s)": mae}
        rows.append({**row, "mean E-Loss": f"{loss:.3g}"})
    return pd.DataFrame(rows)


def tails(findings: Sequence[Findings]) -> pd.DataFrame:
    """Section 7.5.5: what a thousandth of the jobs has of the sum of bounded slowdowns.

    Of EASY, EASY++ and the thesis's triple, and the least, median and most over all of its
    configurations with AVE2 or learning, with how many of them are above EASY.
    """
    rows = []
    for found in findings:
        share = found.of_thesis["tail_share"]
        predicts = share[found.of_thesis["estimate"].isin(["regression", "ave2"])]
        row: dict[str, Any] = {"trace": found.trace}
        for one in (runs.EASY, runs.EASY_PLUS_PLUS, runs.E_LOSS_TRIPLE):
            row[f"share, {name_of(one)}"] = float(share[str(one)])
        row |= {f"share, {name}": predicts.agg(name) for name in ("min", "median", "max")}
        above = int((predicts > share[str(runs.EASY)]).sum())
        rows.append({**row, "above EASY's": f"{above} of {len(predicts)}"})
    return pd.DataFrame(rows)


def pairs(findings: Sequence[Findings]) -> pd.DataFrame:
    """Section 7.5.3: Pearson's coefficient of the thesis's triples on each two logs."""
    rows = []
    for first, second in combinations(findings, 2):
        row: dict[str, Any] = {"first": first.trace, "second": second.trace}
        for by, column in (("ours", "mean_bsld"), ("published", "published")):
            both = pd.concat([of.of_thesis[column] for of in (first, second)], axis=1).dropna()
            enough = len(both) >= _SHARE * len(first.of_thesis)
            row[f"{by}: Pearson"] = pearson(*both.to_numpy().T) if enough else _NONE
        rows.append(row)
    return pd.DataFrame(rows)


def spread(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the thesis's triple over all its variants: ours, and the published values."""
    names = [str(one) for one in runs.variants(runs.E_LOSS_TRIPLE)]
    ends = {"least": 0, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75, "most": 1}
    rows = []
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
            below = reduction(float(values.median()), easy)
            rows.append({**row, "EASY": easy, "median below EASY %": below})
    return pd.DataFrame(rows)


# --- Which triple to take -------------------------------------------------------------------------

#: Of its variants that a triple needs for a median, and of all triples that two logs must have.
_SHARE = 2 / 3


def selection(findings: Sequence[Findings], published: Mapping[str, Published]) -> pd.DataFrame:
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
    rows = []
    for by, values in given.items():
        table = pd.DataFrame(values).reindex(columns=traces)
        table = table[table.index.isin(blind)]
        sums = table.sum(axis=1, skipna=False).dropna()
        for one in dict.fromkeys([*_NAMES, *sums.nsmallest(1).index]):
            if one in table.index and table.loc[one].notna().any():
                place = f"{int((sums < sums[one]).sum()) + 1} of {len(sums)}" if one in sums else ""
                row = {"values": by, "triple": _NAMES.get(one, one), **table.loc[one].to_dict()}
                rows.append({**row, "sum": float(sums.get(one, _NONE)), "place": place})
    printed = {trace: TABLE_7_7.get(trace, (_NONE,))[0] for trace in traces}
    triple = str(runs.E_LOSS_TRIPLE)
    unfinished = {
        trace: float(value)
        for trace in traces
        if trace in published and (value := published[trace].unfinished.get(triple)) is not None
    }
    for by, of in (("printed", printed), ("printed, or unfinished", printed | unfinished)):
        row = {"values": by, "triple": "table 7.7: chosen on other logs", **of}
        rows.append({**row, "sum": sum(of.values()), "place": ""})
    return pd.DataFrame(rows)


def table_7_7(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.7: the triple of least sum over our other traces, on this one; it learns, or AVE2."""
    names = [str(one) for one in runs.thesis() if one.learned or one.estimate == "ave2"]
    values = pd.DataFrame({found.trace: found.table["mean_bsld"] for found in findings})
    rows = []
    for trace, triple in leave_one_out(values[values.index.isin(names)]).items():
        of = values[trace]
        row = {"trace": trace, "triple": triple, "ours": of[triple]}
        for one in (runs.EASY, runs.EASY_PLUS_PLUS):
            row[f"below {name_of(one)} %"] = reduction(of[triple], of[str(one)])
        rows.append({**row, "thesis": TABLE_7_7.get(trace, (_NONE,))[0]})
    return pd.DataFrame(rows)


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


# --- The items of Glesser 2016, chapter 7, and what makes their verdicts --------------------------

#: The log of figures 7.3 and 7.4. Table 7.8 names none: it is taken for this one, too.
CURIE = "CEA-Curie"


def _values(table: str, names: Mapping[str, str], number: int, step: float = 0.1) -> items.Judge:
    """Judge values beside printed ones.

    Parameters
    ----------
    table : its name.
    names : column of ours -> that of theirs.
    number : of traces that the thesis has.
    step : see :func:`hpcgym.benchmarks.studies.items.of_values`.
    """

    def judge(stored: items.Stored) -> items.Verdict:
        rows = stored.table(table)
        parts = [items.columns_of(rows, *of, "trace") for of in names.items()]
        ours, printed, trace = (np.concatenate(of) for of in zip(*parts, strict=True))
        found = items.of_values(ours, printed, step, "values")
        return _traces(found, len({*trace}), number)

    return judge


def _traces(verdict: items.Verdict, found: int, printed: int) -> items.Verdict:
    """Return a verdict that says of how many of the thesis's traces it is."""
    return items.Verdict(verdict.verdict, f"{verdict.why}; of {found} of {printed} traces")


def _more(judge: items.Judge, words: str) -> items.Judge:
    """Return a judge that tells something more."""

    def judged(stored: items.Stored) -> items.Verdict:
        found = judge(stored)
        return items.Verdict(found.verdict, f"{found.why}; {words}")

    return judged


def _table_7_4(stored: items.Stored) -> items.Verdict:
    """Table 7.4: each number, as it is printed: cut, or rounded."""
    names = ("processors", "jobs (thousands)", "months")
    table = stored.table("table-7.4", "trace", *names)
    found = {}
    for name in names:
        columns = items.columns_of(table, "trace", name, f"thesis: {name}")
        for trace, ours, printed in zip(*columns, strict=True):
            words = f"{trace}: {name} {ours:,.4g}, printed {printed:g}"
            found[words] = printed in (int(ours), round(ours))
    others = [words for words, same in found.items() if not same]
    words = f"not: {'; '.join(others)}; " if others else ""
    words += "of Curie section 6.3.1 has 6 months; MetaCentrum is not at hand: the archive's log of"
    what = "values as printed, cut or rounded"
    return items.of_count(len(found) - len(others), len(found), what, f"{words} it is another one")


def _table_7_6_text(stored: items.Stored) -> items.Verdict:
    """Table 7.6, text: learning is best of what does not know run times, SJBF of what does."""
    so = {}
    table = stored.table("table-7.6", "trace", "what", "ours")
    for trace, part in table.groupby("trace", sort=False):
        if trace in TABLE_7_6:
            ours = part.set_index("what")["ours"]
            best = min(value for what, value in ours.items() if str(what).endswith("best"))
            so[f"{trace}: learning is best"] = best < min(ours["EASY"], ours["EASY++"])
            so[f"{trace}: known run times, SJBF, are better"] = ours["clairvoyant, SJBF"] < best
    return items.of_sentences(so)


_WHOSE = {"ours": "ours", "published": "by the authors' files"}


def _correlations(stored: items.Stored) -> items.Verdict:
    """Section 7.5.3: mean, least and largest coefficient over pairs of logs."""
    table = stored.table("table-pairs", "ours: Pearson", "published: Pearson")
    values = {by: table[f"{by}: Pearson"].dropna().to_numpy() for by in ("ours", "published")}
    if len(values["ours"]) < 2:
        raise items.NotThereError("fewer than three logs")
    (mean, least, most), ours = PEARSON, values["ours"]
    so = {
        "the coefficient is low: half of the pairs are below 0.5": float(np.median(ours)) < 0.5,
        f"its mean is {mean:g}, within 0.1": abs(ours.mean() - mean) <= 0.1,
        f"the least is {least:g}, within 0.1": abs(ours.min() - least) <= 0.1,
        f"the largest is {most:.2f}, within 0.1": abs(ours.max() - most) <= 0.1,
    }
    found = items.of_sentences(so)
    words = [
        f"{_WHOSE[by]} {of.mean():.2f}, {of.min():.2f} to {of.max():.2f} over {len(of)} pairs"
        for by, of in values.items()
        if len(of)
    ]
    printed = f"mean and range printed: {mean:g}, {least:g} to {most:.2f} over 15 pairs of six logs"
    return items.Verdict(found.verdict, "; ".join([found.why, printed, *words]))


def _beside_easy(so: dict[str, bool], trace: str, gains: Mapping[str, float]) -> None:
    """Add whether a triple is below EASY and EASY++ as table 7.7 has it of a trace."""
    chosen, *others = TABLE_7_7[trace]
    for (name, gain), printed in zip(gains.items(), others, strict=True):
        words = f"{trace}: {'below' if chosen < printed else 'above'} {name}, as printed"
        so[words] = (gain > 0) == (chosen < printed)


_GAINS = {"EASY": "below EASY %", "EASY++": "below EASY++ %"}


def _table_7_7(stored: items.Stored) -> items.Verdict:
    """Table 7.7: the same triple is always chosen, and is below EASY and EASY++ where printed.

    For MetaCentrum triples are chosen by their sum over the five other logs.
    """
    table = stored.table("table-7.7", "trace", "triple", *_GAINS.values())
    so: dict[str, bool] = {}
    for row in table[table["trace"].isin([*TABLE_7_7])].to_dict("records"):
        correction = "requested" if row["trace"] == "SDSC-SP2" else "incremental"
        printed = str(Configuration("sjbf", correction, runs.E_LOSS))
        so[f"{row['trace']}: the thesis's triple is chosen"] = row["triple"] == printed
        _beside_easy(so, row["trace"], {name: row[gain] for name, gain in _GAINS.items()})
    found = items.of_sentences(so)
    rows = stored.table("table-selection", "values", "triple", "sum")
    sums = rows.set_index(["values", "triple"])["sum"]
    name = _NAMES[str(AVE2_REQUESTED)]
    by = ("published", "printed", "printed, or unfinished")
    triples = (name, *("table 7.7: chosen on other logs",) * 2)
    theirs, added, run = (float(sums.get(of, _NONE)) for of in zip(by, triples, strict=True))
    if not np.isfinite([theirs, added]).all():
        return found
    words = (
        "MetaCentrum's triple is chosen by the sum over the five other logs. In the authors' files"
        f" {name}, which learns nothing, has {theirs:.1f}. Table 7.7 adds up to {added:.1f}, but"
        " on SDSC-BLUE it has another triple than it says; the triple's own run there came to no"
        f" end, and with its value the sum is {run:.1f}"
    )
    return items.Verdict(found.verdict, f"{found.why}. {words}")


def _claim(stored: items.Stored) -> items.Verdict:
    """Section 7.5.3: whether the text's reductions follow from table 7.7; ours beside them."""
    table = stored.table("table-claim", "values", "trace", *_GAINS.values())
    rows = table[table["values"] == "ours"].set_index("trace")
    if "mean" not in rows.index:
        raise items.NotThereError("no mean over traces")
    so: dict[str, bool] = {}
    for trace in [str(trace) for trace in rows.index if trace in TABLE_7_7]:
        gains = {name: float(rows.loc[trace, gain]) for name, gain in _GAINS.items()}
        _beside_easy(so, trace, gains)
    mean = ", ".join(
        f"{rows.loc['mean', gain]:.0f} % below {name}" for name, gain in _GAINS.items()
    )
    own = [np.mean([reduction(row[0], row[k]) for row in TABLE_7_7.values()]) for k in (1, 2)]
    words = (
        f"by the text {REDUCTIONS[0]} % below EASY and {REDUCTIONS[1]} % below EASY++; by its own"
        f" table 7.7 {own[0]:.0f} and {own[1]:.0f} %. Ours: {mean}, near the text's, but because"
        f" differences cancel: {items.of_sentences(so).why}"
    )
    return _traces(items.Verdict(items.CONTRADICTION, words), len(rows) - 1, len(TABLE_7_7))


def _of_predictions(*said: tuple[str, str, str, str]) -> items.Judge:
    """Judge orders of two predictions on Curie; tell how many hold on all other logs.

    Parameters
    ----------
    said : what is said, and a column of table 7.8, of which the first prediction has less than the
        second.
    """

    def judge(stored: items.Stored) -> items.Verdict:
        table = stored.table(
            "table-7.8", "trace", "prediction", *{column for _, column, *_ in said}
        )
        wide = table[table["trace"] != "thesis"].pivot(index="trace", columns="prediction")
        less = {
            words: wide[column][first].astype(float) < wide[column][second].astype(float)
            for words, column, first, second in said
        }
        if CURIE not in wide.index:
            raise items.NotThereError("without CEA-Curie")
        found = items.of_sentences({words: bool(so[CURIE]) for words, so in less.items()})
        others = pd.DataFrame(less).drop(CURIE).to_numpy()
        words = [
            f"{column} of {first} {float(wide[column][first][CURIE]):,.4g}, of {second}"
            f" {float(wide[column][second][CURIE]):,.4g}"
            for _, column, first, second in said
        ]
        more = f"on {len(others)} other logs {others.sum()} of {others.size} hold"
        return items.Verdict(found.verdict, "; ".join([f"on Curie {found.why}", *words, more]))

    return judge


def _tails(stored: items.Stored) -> items.Verdict:
    """Section 7.5.5: with AVE2 or learning a thousandth of jobs has far more than under EASY."""
    table = stored.table("table-tails", "trace", "share, EASY", "share, median", "above EASY's")
    so, words = {}, []
    for row in table.to_dict("records"):
        above, _, number = row["above EASY's"].partition(" of ")
        say = f"{row['trace']}: more than under EASY with every triple that predicts"
        so[f"{say} ({above} of {number})"] = above == number
        shares = [f"{row[f'share, {name}']:.1%}" for name in ("EASY", "EASY++", "median")]
        words.append(f"{row['trace']}: EASY {shares[0]}, EASY++ {shares[1]}, median {shares[2]}")
    found = items.of_sentences(so)
    what = "what a thousandth of the jobs has of the sum of slowdowns"
    return items.Verdict(found.verdict, "; ".join([f"{what}: {found.why}", *words]))


_ERRORS = (
    ("AVE2 has the lower mean absolute error", "MAE (s)", "AVE2", "E-Loss"),
    ("the E-Loss has the lower mean E-Loss", "mean E-Loss", "E-Loss", "AVE2"),
)
_SHORT = (
    ("more predictions are too short under the E-Loss", "share too short", "squared loss",
     "E-Loss"),
    ("they are smaller", "median (s)", "E-Loss", "squared loss"),
)  # fmt: skip

#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 7.1": _values(
        "table-7.1", {name: f"thesis: {name}" for name in ("EASY", "CLAIRVOYANT")}, len(TABLE_7_1)
    ),
    "table 7.4": _table_7_4,
    # the original experiment at full precision is met where nothing learns
    "section 7.5.2": _values("table-without-learning", {"ours": "published"}, len(LOGS), 0),
    "table 7.6": _more(
        _values("table-7.6", {"ours": "thesis"}, len(TABLE_7_6)),
        "the thesis's 16.5 and 12.6 of SDSC-BLUE are of runs that did not come to their end",
    ),
    "table 7.6, text": _table_7_6_text,
    "figure 7.2": items.of_picture("SDSC-BLUE-CEA-Curie.png", "KTH-SP2-SDSC-SP2.png"),
    "section 7.5.3, correlations": _correlations,
    "table 7.7": _table_7_7,
    "section 7.5.3, E-Loss": _claim,
    "table 7.8": _more(
        _of_predictions(*_ERRORS),
        "the table names no log, and has "
        + ", ".join(f"{name} {a:,.0f} s and {b:.3g}" for name, (a, b) in TABLE_7_8.items()),
    ),
    "figures 7.3 and 7.4": _of_predictions(*_SHORT),
    "section 7.5.5": _tails,
}
