"""What chapter 7 of Glesser 2016 prints, what its authors found, and its items with verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym import HpcgymError
from hpcgym.benchmarks.prediction.runs import LOGGED, SIMULATED, Configuration, loss
from hpcgym.benchmarks.studies import items
from hpcgym.benchmarks.studies.items import Frames
from hpcgym.benchmarks.studies.tables import filled
from hpcgym.files import toml_file
from hpcgym.files.tables import csv_frame
from hpcgym.workload.archive import TRACES

# --- What is printed. These numbers are only shown beside ours ------------------------------------

_PRINTED = items.published_values(__file__)
_NOTES = items.notes_of(__file__)

#: Table 7.1: mean bounded slowdown of EASY and of EASY-CLAIRVOYANT, and the decrease [%].
TABLE_7_1: dict[str, tuple[float, ...]] = _PRINTED["table 7.1"]

#: Table 7.4: processors, thousands of jobs, months.
TABLE_7_4: dict[str, tuple[int, ...]] = _PRINTED["table 7.4"]

#: Table 7.6: clairvoyant FCFS and SJBF, EASY, EASY++, learning: best and worst of FCFS, of SJBF.
TABLE_7_6: dict[str, tuple[float, ...]] = _PRINTED["table 7.6"]

#: Table 7.7: the triple chosen on the other logs, EASY, EASY++.
TABLE_7_7: dict[str, tuple[float, ...]] = _PRINTED["table 7.7"]

#: The thesis's logs by their names in the archive.
LOGS = tuple(TABLE_7_7)

#: Section 7.5.3: how much lower the E-Loss triple is than EASY and EASY++, on average [%].
REDUCTIONS: tuple[int, int] = _PRINTED["section 7.5.3"]["reductions"]

#: Section 7.5.3: mean, least and largest correlation of triples on two of the logs (Pearson).
PEARSON: tuple[float, float, float] = _PRINTED["section 7.5.3"]["correlations"]

#: Table 7.8, on Curie: mean absolute error [s] and mean E-Loss.
TABLE_7_8: dict[str, tuple[float, float]] = _PRINTED["table 7.8"]

#: The log of figures 7.3 and 7.4. Table 7.8 names none: it is taken for this one, too.
CURIE = "CEA-Curie"

# --- The campaign's own results -------------------------------------------------------------------

_NAMES = toml_file(Path(__file__).with_name("names.toml"))

#: Its files in a checkout, and what names of simulations say there: as columns of a table do.
_METRICS = "experiments/data/*/sim_analysis/metrics_complete"
_SIMULATION = (
    r"res_(?P<scheduler>easy[a-z_]*_scheduler)_(?:predictor)?(?P<predictor>[a-z]+|None)"
    r"(?:I(?P<over_loss>[a-z]+)I(?P<over_param>[^I]+)I(?P<under_loss>[a-z]+)I(?P<under_param>[^I]+)"
    r"I(?P<threshold>\d+)I(?P<weight>\w+?))?_(?P<correction>[a-z_]+|None)\.swf\.gz"
)
_COLUMNS = ["name", "length", "avgbsld"]
_TRACES = {name.casefold(): name for name in TRACES} | {"metacentrum2013": "MetaCentrum"}


def read_published(folder: Path | None) -> dict[str, pd.DataFrame]:
    """Return the campaign's own results of each trace; none without a folder.

    Parameters
    ----------
    folder : a checkout of its repository, or tables made of it, ``glesser-ch7-TRACE.csv.gz``.

    Returns
    -------
    trace -> a row for each configuration, by its text: ``mean_bsld``; ``jobs``, their number;
    ``ended``, whether all jobs of the log are in it; ``schedule``, its file, which need not be
    there.

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
    files = {path.parts[-3]: path for path in sorted(folder.glob(_METRICS))}
    for path in () if files else sorted(folder.glob("glesser-ch7-*.csv.gz")):
        files[path.name.removeprefix("glesser-ch7-").removesuffix(".csv.gz")] = path
    if not files:
        raise HpcgymError(
            f"{folder}: no published results ({_METRICS}, or glesser-ch7-TRACE.csv.gz) are there"
        )
    return {_TRACES.get(trace.casefold(), trace): _read(path) for trace, path in files.items()}


def _read(path: Path) -> pd.DataFrame:
    """Return the published results of one file."""
    try:
        if path.suffix == ".gz":
            rows = csv_frame(path, keep_default_na=False, dtype=str).assign(name="")
        else:
            how: dict[str, Any] = {"sep": " ", "skipinitialspace": True, "index_col": 0}
            rows = csv_frame(path, keep_default_na=False, dtype=str, **how)[_COLUMNS]
            rows = rows.rename(columns={"length": "jobs", "avgbsld": "mean_bsld"})
            rows = rows.join(rows["name"].str.extract(_SIMULATION))
            rows = rows.dropna(subset="scheduler")  # others are no simulations
        results = rows[["jobs", "mean_bsld"]].apply(pd.to_numeric, errors="coerce")
        texts = [str(configuration_of_row(row)) for row in rows.to_dict("records")]
    except (ValueError, KeyError) as error:
        raise HpcgymError(f"{path}: no published results: {error}") from None
    results["ended"] = (results["jobs"] == results["jobs"].max()) & results["mean_bsld"].notna()
    results["schedule"] = [str(path.parents[1] / name) for name in rows["name"]]
    results = results.set_axis(pd.Index(texts, name="configuration"))
    # EASY is there twice: by itself, and as the one that takes the request for a prediction
    best: pd.DataFrame = results.sort_values("ended", ascending=False, kind="stable")
    return best[~best.index.duplicated()]


def configuration_of_row(row: Mapping[Any, Any]) -> Configuration:
    """Return the configuration of a row of the published results.

    Raises
    ------
    KeyError, ValueError : it has none of the known names, or no number where one has to be.
    """
    order, correction = (_NAMES[kind][row[kind]] for kind in ("scheduler", "correction"))
    if not str(row["predictor"]).endswith("sgdlinear"):
        return Configuration(order, correction, _NAMES["predictor"][row["predictor"]])
    over, under = (_NAMES["loss"][row[side]] for side in ("over_loss", "under_loss"))
    names = {"over_scale": "over_param", "under_scale": "under_param", "threshold": "threshold"}
    numbers = {name: float(row[column]) for name, column in names.items()}
    return Configuration(
        order, correction, loss(over, under, _NAMES["weight"][row["weight"]], **numbers)
    )


# --- What makes the verdicts of its items ---------------------------------------------------------


def _said(item: str, frames: Any) -> items.Judge:
    """Return what judges the sentences of an item by what makes that which they are about."""
    return items.by_sentences(__file__, [item], frames)


def _values(table: str, printed: str = "thesis", step: float = 0.1) -> items.Judge:
    """Judge our values beside others; see :func:`hpcgym.benchmarks.studies.items.of_values`."""

    def judge(stored: items.Stored) -> items.Verdict:
        ours, theirs, traces = items.columns_of(stored.table(table), "ours", printed, "trace")
        verdict = items.of_values(ours, theirs, step, "values")
        return verdict.noted(f"of {len({*traces})} of {len(LOGS)} traces")

    return judge


def _table_7_4(stored: items.Stored) -> items.Verdict:
    """Table 7.4: each number, as it is printed: cut, or rounded."""
    rows = stored.table("table-7.4", "trace", "what", "ours", "thesis").dropna(subset="thesis")
    ours, printed = rows["ours"], rows["thesis"]
    same = (printed == ours.astype(int)) | (printed == ours.round())
    others = [
        f"not: {of['trace']}: {of['what']} {of['ours']:,.4g}, printed {of['thesis']:g}"
        for of in rows[~same].to_dict("records")
    ]
    more = "; ".join([*others, _NOTES["months"], _NOTES["no_metacentrum"]])
    return items.of_count(int(same.sum()), len(rows), "values as printed, cut or rounded", more)


def _of_their_runs(stored: items.Stored) -> str:
    """Say how many printed values of table 7.6 are those of the authors' own runs."""
    rows = stored.table("table-7.6", "trace", "what", "thesis").dropna(subset="thesis")
    if "published" not in rows or not rows["published"].notna().any():
        return ""
    rows = rows[rows["published"].notna()]
    apart = rows[["published", "unfinished too"]].sub(rows["thesis"], axis=0).abs() >= UNIT
    others = rows.loc[apart["published"], ["trace", "what", "thesis"]].to_numpy()
    differing = ", ".join(f"{name} {what} {printed:g}" for name, what, printed in others)
    meta = ~apart["published"][rows["trace"] == "MetaCentrum"]
    same = {"same": len(rows) - len(others), "number": len(rows)}
    words = [_NOTES["own_runs"].format(**same, others=differing)]
    words += [f"{(~apart['unfinished too']).sum()} if others count"]
    if len(meta):
        words.append(_NOTES["metacentrum"].format(same=meta.sum(), number=len(meta)))
    return "; ".join(words)


#: A printed value is that of a run if less than a unit of its last digit apart: cut or rounded.
UNIT = 0.1


def _overviews(stored: items.Stored) -> Frames:
    """Table 7.6: learning is best of what does not know run times, SJBF of what does."""
    table = stored.table("table-7.6", "trace", "what", "ours").dropna(subset="ours")
    for trace, part in table[table["trace"].isin(LOGS)].groupby("trace", sort=False):
        ours = part.set_index("what")["ours"]
        row = {"trace": trace, "EASY": ours["EASY"], "EASY_plus": ours["EASY++"]}
        row["best"] = ours[ours.index.str.endswith("best")].min()
        yield {"trace": pd.DataFrame([{**row, "known": ours["clairvoyant, SJBF"]}])}


def _coefficients(stored: items.Stored) -> dict[str, Any]:
    """Return Pearson's coefficients of pairs of logs, ours and by the authors' own values."""
    table = stored.table("table-pairs", "ours: Pearson", "published: Pearson")
    coefficients = {by: table[f"{by}: Pearson"].dropna() for by in ("ours", "published")}
    if len(coefficients["ours"]) < 2:
        raise items.NotThereError("fewer than three logs")
    return {"ours": coefficients["ours"], "by the authors' own values": coefficients["published"]}


def _correlations(stored: items.Stored) -> Frames:
    """Section 7.5.3: mean, least and largest coefficient over pairs of logs."""
    ours = _coefficients(stored)["ours"].agg(["median", "mean", "min", "max"])
    yield {"pairs": ours.to_frame().T.rename(columns={"min": "least", "max": "most"})}


def _ranges(stored: items.Stored) -> str:
    """Say which coefficients are printed, and which found."""
    mean, least, most = PEARSON
    words = [_NOTES["printed_coefficients"].format(mean=mean, least=least, most=most)]
    words += [
        f"{by} {of.mean():.2f}, {of.min():.2f} to {of.max():.2f} over {len(of)}"
        for by, of in _coefficients(stored).items()
        if len(of)
    ]
    return f"mean and range of coefficients: {'; '.join(words)}"


_GAINS = ("below EASY %", "below EASY++ %")


#: The triple that the thesis says is always chosen; on SDSC-SP2 with the other correction.
_SAID, _OTHER = "E-Loss, incremental, SJBF", "E-Loss, requested, SJBF"


def _beside_easy(rows: Any, name: str = "") -> Frames:
    """Return gains on EASY and EASY++, and on which side of them table 7.7 has its triple."""
    for row in rows.dropna(subset=[f"{name}{gain}" for gain in _GAINS]).to_dict("records"):
        chosen, *others = TABLE_7_7[row["trace"]]
        easy, plus = ("below" if chosen < other else "above" for other in others)
        gains = {"gain_easy": row[name + _GAINS[0]], "gain_plus": row[name + _GAINS[1]]}
        yield {"trace": pd.DataFrame([{**row, **gains, "easy": easy, "plus": plus}])}


def _chosen(stored: items.Stored, by: str) -> Any:
    """Return the rows of table 7.7 by some values, of the thesis's logs."""
    columns = "values", "trace", "triple", "over", *_GAINS, *(f"E-Loss {gain}" for gain in _GAINS)
    rows = stored.table("table-7.7", *columns)
    rows = rows[(rows["values"] == by) & rows["trace"].isin(LOGS)]
    return rows.assign(
        chosen=rows["triple"] == np.where(rows["trace"] == "SDSC-SP2", _OTHER, _SAID)
    )


def _table_7_7(stored: items.Stored) -> items.Verdict:
    """Table 7.7: the same triple is always chosen, and is below EASY and EASY++ where printed.

    It is a contradiction if by the authors' own runs other triples are chosen, or if its values are
    of another triple than is said.
    """
    rows = _chosen(stored, "ours").dropna(subset=[*_GAINS])
    judge = _said("table 7.7", lambda _: _beside_easy(rows))
    ours = judge(stored) if len(rows) else None
    ended, every = (
        rows.loc[rows["over"] == len(LOGS) - 1, "triple"]
        for rows in (_chosen(stored, by) for by in ("published", "unfinished too"))
    )
    if not len(ended):
        return judge(stored)
    of = stored.table("table-7.7-runs", "trace", "triple", "printed", "ended", "jobs")
    printed, first = of[of["printed"] == "yes"], of[of["triple"] == _SAID]
    other = printed[printed["triple"] != _SAID]
    short = [
        f"{row['trace']} ({row['jobs']:,.0f} of {row['jobs of the log']:,.0f} jobs,"
        f" {row['published']:.2f})"
        for row in first[first["ended"] == "no"].to_dict("records")
    ]
    counts = {"ended": (ended == _SAID).sum(), "every": (every == _SAID).sum(), "logs": len(LOGS)}
    counts |= {"said": _SAID, "short": " and ".join(short), "number": len(printed) - len(other)}
    counts |= {"traces": ", ".join(other["trace"]), "triples": ", ".join({*other["triple"]})}
    words = _NOTES["other_triples"].format(**counts)
    follows = (ended == _SAID).all() and not len(other)
    verdict = ours.verdict if follows and ours else items.CONTRADICTION
    return items.Verdict(verdict, words + (f". Ours: {ours.why}" if ours else ""))


def _claim(stored: items.Stored) -> items.Verdict:
    """Section 7.5.3: whether the text's reductions follow from table 7.7; ours beside them."""
    gains = [f"E-Loss {gain}" for gain in _GAINS]
    rows = _chosen(stored, "ours").dropna(subset=gains)
    why = _said("section 7.5.3, E-Loss", lambda _: _beside_easy(rows, "E-Loss "))(stored).why
    of = [np.mean([100 * (1 - of[0] / of[k]) for of in TABLE_7_7.values()]) for k in (1, 2)]
    ours, own, text = (
        " and ".join(f"{value:.0f} % {gain[:-2]}" for gain, value in zip(_GAINS, by, strict=True))
        for by in (rows[gains].mean(), of, REDUCTIONS)
    )
    values = {"text": text, "own": own, "ours": ours, "why": why, "rows": len(rows)}
    return items.Verdict(items.CONTRADICTION, _NOTES["reductions"].format(**values, logs=len(LOGS)))


#: Column of table 7.8 -> what it is called in sentences, before a prediction.
_MEASURES = {
    "MAE (s)": "MAE",
    "mean E-Loss": "loss",
    "share too short": "short",
    "median (s)": "median",
}


def _predictions(stored: items.Stored, ends: str) -> Any:
    """Return what table 7.8 has of predictions that learned from these ends, a row for each log."""
    table = stored.table("table-7.8", "trace", "prediction", "learned from", *_MEASURES)
    wide = table[table["learned from"] == ends].pivot(index="trace", columns="prediction",
                                                      values=[*_MEASURES])  # fmt: skip
    wide.columns = [f"{_MEASURES[m]}_{p}".replace("-", "_").replace(" ", "_") for m, p in wide]
    return wide.astype(float).reset_index()


def _of_predictions(item: str) -> items.Judge:
    """Judge sentences on predictions by the ends of Curie's log; tell of others, and simulated."""

    def judge(stored: items.Stored) -> items.Verdict:
        said = items.csv_rows(__file__, "sentences.csv", [item])
        so = {
            ends: filled(said, {"logs": _predictions(stored, ends)}) for ends in (LOGGED, SIMULATED)
        }
        curie = {words: holds for words, holds in so[LOGGED].items() if words.startswith(CURIE)}
        if not curie:
            raise items.NotThereError(f"without {CURIE}")
        others = [holds for words, holds in so[LOGGED].items() if words not in curie]
        simulated = [holds for words, holds in so[SIMULATED].items() if words in curie]
        verdict = items.of_sentences(curie)
        return verdict._replace(why=f"on Curie {verdict.why}").noted(
            f"on other logs {sum(others)} of {len(others)} hold",
            _NOTES["simulated"].format(holds=sum(simulated), number=len(simulated)),
        )

    return judge


def _errors(stored: items.Stored) -> str:
    """Say which errors predictions on Curie have: printed, and by what they have learned from."""
    table = stored.table("table-7.8", "trace", "prediction", "learned from", "MAE (s)")
    table = table[table["trace"].isin([CURIE, "thesis"]) & table["prediction"].isin([*TABLE_7_8])]
    words = [
        f"{ends}: "
        + ", ".join(
            f"{of['prediction']} {of['MAE (s)']:,.0f} s and {float(of['mean E-Loss']):.3g}"
            for of in part.to_dict("records")
        )
        for ends, part in table.groupby("learned from", sort=False)
    ]
    return "; ".join(["mean absolute error and E-Loss (the table names no log)", *words])


def _tails(stored: items.Stored) -> Frames:
    """Section 7.5.5: a thousandth of jobs has extremely high values with AVE2 or learning."""
    table = stored.table("table-tails", "trace", "times the mean, least", "times the mean, EASY")
    names = {"times the mean, least": "times", "times the mean, EASY": "easy"}
    yield {"logs": table.rename(columns=names)}


def _how_extreme(stored: items.Stored) -> str:
    """Say on what "extremely high" rests, and what EASY has."""
    (of,) = _tails(stored)
    times, easy = (of["logs"][name] for name in ("times", "easy"))
    above = stored.table("table-tails", "trace", "above EASY's").set_index("trace")["above EASY's"]
    times_of = {"least": times.min(), "easy": easy.min(), "most": easy.max()}
    words = ", ".join(f"{trace} {number}" for trace, number in above.items())
    return _NOTES["extreme"].format(**times_of, above=words)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 7.1": _values("table-7.1"),
    "table 7.4": _table_7_4,
    # the original experiment at full precision is met where nothing learns
    "section 7.5.2": _values("table-without-learning", "published", 0),
    "table 7.6": items.noted(_values("table-7.6"), _of_their_runs),
    "table 7.6, text": _said("table 7.6, text", _overviews),
    "figure 7.2": items.of_picture(
        "SDSC-BLUE-MetaCentrum.png", "SDSC-BLUE-CEA-Curie.png", "KTH-SP2-SDSC-SP2.png"
    ),
    "section 7.5.3, correlations": items.noted(
        _said("section 7.5.3, correlations", _correlations), _ranges
    ),
    "table 7.7": _table_7_7,
    "section 7.5.3, E-Loss": _claim,
    "table 7.8": items.noted(_of_predictions("table 7.8"), _errors),
    "figures 7.3 and 7.4": _of_predictions("figures 7.3 and 7.4"),
    "section 7.5.5": items.noted(_said("section 7.5.5", _tails), _how_extreme),
}
