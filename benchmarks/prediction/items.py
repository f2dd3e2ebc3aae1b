"""What chapter 7 of Glesser 2016 prints, what its authors found, and its items with verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpcgym import HpcgymError
from hpcgym.benchmarks.prediction import runs
from hpcgym.benchmarks.prediction.runs import Configuration, Loss
from hpcgym.benchmarks.studies import items
from hpcgym.files import toml_file
from hpcgym.files.tables import csv_frame
from hpcgym.workload.archive import TRACES

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


def reduction(value: Any, reference: Any) -> Any:
    """Return by how many percent values are below others."""
    return 100 * (1 - value / reference)


# --- The published files --------------------------------------------------------------------------

#: What those files call schedulers, predictors and the like -> their names here.
_NAMES = toml_file(Path(__file__).with_name("names.toml"))


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
    order, correction = (_NAMES[kind][row[kind]] for kind in ("scheduler", "correction"))
    if row["predictor"] != "predictor_sgdlinear":
        return Configuration(order, correction, _NAMES["predictor"][row["predictor"]])
    over, under = (_NAMES["loss"][row[side]] for side in ("over_loss", "under_loss"))
    numbers = (float(row[name]) for name in ("over_param", "under_param", "threshold"))
    return Configuration(
        order, correction, Loss(over, under, _NAMES["weight"][row["weight"]], *numbers)
    )


# --- The items of Glesser 2016, chapter 7, and what makes their verdicts --------------------------

#: The log of figures 7.3 and 7.4. Table 7.8 names none: it is taken for this one, too.
CURIE = "CEA-Curie"


def _said(item: str, frames: Any) -> items.Judge:
    """Return what judges the sentences of an item by what makes that which they are about."""
    return items.by_sentences(__file__, [item], frames)


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
        return found.noted(f"of {len({*trace})} of {number} traces")

    return judge


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


#: What sentences are about, by name, for one trace after another.
Frames = Iterator[dict[str, pd.DataFrame]]


def _overviews(stored: items.Stored) -> Frames:
    """Table 7.6: learning is best of what does not know run times, SJBF of what does."""
    table = stored.table("table-7.6", "trace", "what", "ours")
    for trace, part in table[table["trace"].isin([*TABLE_7_6])].groupby("trace", sort=False):
        ours = part.set_index("what")["ours"]
        row = {"trace": trace, "EASY": ours["EASY"], "EASY_plus": ours["EASY++"]}
        row["best"] = ours[ours.index.str.endswith("best")].min()
        yield {"trace": pd.DataFrame([{**row, "known": ours["clairvoyant, SJBF"]}])}


def _coefficients(stored: items.Stored) -> dict[str, Any]:
    """Return Pearson's coefficients of pairs of logs, ours and by the authors' files."""
    table = stored.table("table-pairs", "ours: Pearson", "published: Pearson")
    found = {by: table[f"{by}: Pearson"].dropna() for by in ("ours", "published")}
    if len(found["ours"]) < 2:
        raise items.NotThereError("fewer than three logs")
    return {"ours": found["ours"], "by the authors' files": found["published"]}


def _correlations(stored: items.Stored) -> Frames:
    """Section 7.5.3: mean, least and largest coefficient over pairs of logs."""
    ours = _coefficients(stored)["ours"].agg(["median", "mean", "min", "max"])
    yield {"pairs": ours.to_frame().T.rename(columns={"min": "least", "max": "most"})}


def _ranges(stored: items.Stored) -> str:
    """Say which coefficients are printed, and which found."""
    words = [
        f"{by} {of.mean():.2f}, {of.min():.2f} to {of.max():.2f} over {len(of)} pairs"
        for by, of in _coefficients(stored).items()
        if len(of)
    ]
    mean, least, most = PEARSON
    printed = f"mean and range printed: {mean:g}, {least:g} to {most:.2f} over 15 pairs of six logs"
    return "; ".join([printed, *words])


_GAINS = {"below EASY %": "gain_easy", "below EASY++ %": "gain_plus"}


def _beside_easy(rows: Any) -> Frames:
    """Return gains on EASY and EASY++, and on which side of them table 7.7 has its triple."""
    for row in rows[rows["trace"].isin([*TABLE_7_7])].rename(columns=_GAINS).to_dict("records"):
        chosen, *others = TABLE_7_7[row["trace"]]
        easy, plus = ("below" if chosen < other else "above" for other in others)
        yield {"trace": pd.DataFrame([{**row, "easy": easy, "plus": plus}])}


def _chosen(stored: items.Stored) -> Frames:
    """Table 7.7: the same triple is always chosen, and is below EASY and EASY++ where printed."""
    table = stored.table("table-7.7", "trace", "triple", *_GAINS)
    corrections = np.where(table["trace"] == "SDSC-SP2", "requested", "incremental")
    printed = [str(Configuration("sjbf", of, runs.E_LOSS)) for of in corrections.tolist()]
    return _beside_easy(table.assign(chosen=table["triple"] == printed))


def _table_7_7(stored: items.Stored) -> items.Verdict:
    """Table 7.7. For MetaCentrum triples are chosen by their sum over the five other logs."""
    found = _said("table 7.7", _chosen)(stored)
    rows = stored.table("table-selection", "values", "triple", "sum")
    sums = rows.set_index(["values", "triple"])["sum"]
    name, others = runs.name_of(runs.AVE2_REQUESTED), "table 7.7: chosen on other logs"
    of = (("published", name), ("printed", others), ("printed, or unfinished", others))
    theirs, added, run = (float(sums.get(one, np.nan)) for one in of)
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
    table = stored.table("table-claim", "values", "trace", *_GAINS)
    rows = table[table["values"] == "ours"]
    means = rows[rows["trace"] == "mean"]
    if not len(means):
        raise items.NotThereError("no mean over traces")
    ours = ", ".join(f"{means[gain].item():.0f} % {gain.removesuffix(' %')}" for gain in _GAINS)
    own = [np.mean([reduction(row[0], row[k]) for row in TABLE_7_7.values()]) for k in (1, 2)]
    cancel = _said("section 7.5.3, E-Loss", lambda _: _beside_easy(rows))(stored).why
    words = (
        f"by the text {REDUCTIONS[0]} % below EASY and {REDUCTIONS[1]} % below EASY++; by its own"
        f" table 7.7 {own[0]:.0f} and {own[1]:.0f} %. Ours: {ours}, near the text's, but because"
        f" differences cancel: {cancel}"
    )
    found = items.Verdict(items.CONTRADICTION, words)
    return found.noted(f"of {len(rows) - 1} of {len(TABLE_7_7)} traces")


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
    table[["above", "number"]] = table["above EASY's"].str.split(" of ", expand=True)
    found = _said("section 7.5.5", lambda _: [{"trace": table}])(stored)
    shares = table[["trace", *(f"share, {name}" for name in ("EASY", "EASY++", "median"))]]
    words = [
        f"{trace}: EASY {easy:.1%}, EASY++ {plus:.1%}, median {median:.1%}"
        for trace, easy, plus, median in shares.itertuples(index=False)
    ]
    what = "what a thousandth of the jobs has of the sum of slowdowns"
    return items.Verdict(found.verdict, f"{what}: {found.why}").noted(*words)


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
    "table 7.6": items.noted(
        _values("table-7.6", {"ours": "thesis"}, len(TABLE_7_6)),
        "the thesis's 16.5 and 12.6 of SDSC-BLUE are of runs that did not come to their end",
    ),
    "table 7.6, text": _said("table 7.6, text", _overviews),
    "figure 7.2": items.of_picture("SDSC-BLUE-CEA-Curie.png", "KTH-SP2-SDSC-SP2.png"),
    "section 7.5.3, correlations": items.noted(
        _said("section 7.5.3, correlations", _correlations), _ranges
    ),
    "table 7.7": _table_7_7,
    "section 7.5.3, E-Loss": _claim,
    "table 7.8": items.noted(
        _of_predictions(*_ERRORS),
        "the table names no log, and has "
        + ", ".join(f"{name} {a:,.0f} s and {b:.3g}" for name, (a, b) in TABLE_7_8.items()),
    ),
    "figures 7.3 and 7.4": _of_predictions(*_SHORT),
    "section 7.5.5": _tails,
}
