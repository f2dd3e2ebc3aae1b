"""What Glesser 2016, chapter 7, and its original results say, and its items with their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.prediction.runs import Configuration, Loss, thesis
from hpcgym.benchmarks.studies import items
from hpcgym.errors import HpcgymError
from hpcgym.files.tables import csv_frame
from hpcgym.workload.archive import TRACES

if TYPE_CHECKING:
    import pandas as pd


# --- What is published. These numbers are only shown beside ours ----------------------------------

_PRINTED = items.published_values(__file__)

#: The thesis's logs by their names in the archive.
LOGS = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie", "MetaCentrum")

#: Table 7.1: mean bounded slowdown of EASY and of EASY-CLAIRVOYANT, and the decrease [%].
TABLE_7_1: dict[str, tuple[float, ...]] = _PRINTED["table 7.1"]

#: Table 7.6: clairvoyant FCFS and SJBF, EASY, EASY++, learning: best and worst of FCFS, of SJBF.
TABLE_7_6: dict[str, tuple[float, ...]] = _PRINTED["table 7.6"]

#: Table 7.7: the triple chosen on the other logs, EASY, EASY++.
TABLE_7_7: dict[str, tuple[float, ...]] = _PRINTED["table 7.7"]

#: Section 7.5.3: how much lower the E-Loss triple is than EASY and EASY++, on average [%].
REDUCTIONS = (28, 11)

#: Section 7.5.3: least and largest correlation of triples on two of the logs (Pearson).
PEARSON = (0.01, 0.80)

#: Table 7.8, on Curie: mean absolute error [s] and mean E-Loss.
TABLE_7_8 = {"AVE2": (5217.0, 10.2e8), "E-Loss": (6762.0, 2.35e5)}

#: The columns of the published files that say how a run came out.
MEASURES = ("jobs", "mean_bsld", "max_bsld", "rms_bsld", "mean_response_s", "max_response_s")

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


@dataclass(frozen=True)
class Published:
    """The published results of one trace.

    Attributes
    ----------
    rows : in the file.
    unfinished : rows of runs that did not come to their end; they are ignored.
    table : a row for each other configuration, by its text; columns :data:`MEASURES`.
    configurations : the configurations of the rows of the table.
    """

    rows: int
    unfinished: int
    table: pd.DataFrame
    configurations: dict[str, Configuration]


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
    import pandas as pd

    rows = csv_frame(path, keep_default_na=False, dtype=str)
    try:
        kept = [configuration_of_row(row) for row in rows.to_dict("records")]
        numbers = rows[list(MEASURES)].apply(pd.to_numeric, errors="coerce")
    except (ValueError, KeyError) as error:
        raise HpcgymError(f"{path}: no published results: {error}") from None
    numbers.index = pd.Index([str(one) for one in kept], name="configuration")
    whole = (numbers["jobs"] == numbers["jobs"].max()) & numbers["mean_bsld"].notna()
    # EASY is there twice: by itself, and as the one that takes the request for a prediction
    table = numbers[whole]
    table = table[~table.index.duplicated()]
    by_text = {str(one): one for one in kept}
    return Published(
        rows=len(rows),
        unfinished=int((~whole).sum()),
        table=table,
        configurations={name: by_text[name] for name in table.index},
    )


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


# --- The items of Glesser 2016, chapter 7, and what makes their verdicts --------------------------


def _traces(verdict: items.Verdict, found: int, printed: int) -> items.Verdict:
    """Return a verdict that says of how many of the thesis's traces it is."""
    return items.Verdict(verdict.verdict, f"{verdict.why}; of {found} of {printed} traces")


def _table_7_1(stored: items.Stored) -> items.Verdict:
    table = stored.table("table-7.1")
    columns = (("EASY", "thesis: EASY"), ("EASY-CLAIRVOYANT", "thesis: CLAIRVOYANT"))
    pairs = [items.columns_of(table, *pair) for pair in columns]
    ours, printed = (np.concatenate([pair[k] for pair in pairs]) for k in (0, 1))
    return _traces(items.of_values(ours, printed, 0.1, "values"), len(ours) // 2, len(TABLE_7_1))


def _table_7_6(stored: items.Stored) -> items.Verdict:
    ours, printed, trace = items.columns_of(stored.table("table-7.6"), "ours", "thesis", "trace")
    return _traces(items.of_values(ours, printed, 0.1, "values"), len({*trace}), len(TABLE_7_6))


def _campaign(stored: items.Stored) -> items.Verdict:
    """Section 7.5.2: the original experiment at full precision is met where nothing learns."""
    ours, published, trace = items.columns_of(
        stored.table("table-without-learning"), "ours", "published", "trace"
    )
    found = items.of_values(ours, published, 0, "values without learning")
    return items.Verdict(found.verdict, f"{found.why}; of {len({*trace})} traces")


def _table_7_7(stored: items.Stored) -> items.Verdict:
    """Table 7.7: the triple that was chosen on other logs is below EASY, and below EASY++."""
    ours = [f"ours: below {name} %" for name in ("EASY", "EASY++")]
    table = stored.table("table-7.7", "trace", "chosen on", *ours)
    so = {}
    for row in table.to_dict("records"):
        if not row["chosen on"].startswith("ours") or row["trace"] not in TABLE_7_7:
            continue
        chosen, easy, plus = TABLE_7_7[row["trace"]]
        for name, printed in (("EASY", easy), ("EASY++", plus)):
            below = row[f"ours: below {name} %"] > 0
            so[f"{row['trace']}: below {name} as published"] = below == (chosen < printed)
    return items.of_sentences(so)


def _correlations(stored: items.Stored) -> items.Verdict:
    """Section 7.5.3: the coefficients of pairs of logs are within the published least and most."""
    names = [str(one) for one in thesis()]
    logs = {log: f"{log}/configurations" for log in LOGS}
    values = {
        log: table.set_index("configuration")["mean_bsld"].reindex(names)
        for log, table in stored.each(logs, "configuration", "mean_bsld")
    }
    so = {}
    for first, second in combinations(values, 2):
        found = float(values[first].corr(values[second]))
        within = bool(PEARSON[0] <= found <= PEARSON[1])
        so[f"{first} and {second} within {PEARSON[0]:g} and {PEARSON[1]:g}: {found:.2f}"] = within
    return items.of_sentences(so)


def _claim(stored: items.Stored) -> items.Verdict:
    """Section 7.5.3: how far the E-Loss triple is below EASY and EASY++, over all logs."""
    table = stored.table("table-claim", "values", "trace", "below EASY %", "below EASY++ %")
    mean = table[(table["values"] == "ours") & (table["trace"] == "mean")]
    if not len(mean):
        raise items.NotThereError("no mean over traces")
    row = mean.iloc[0]
    words = f"{row['below EASY %']:.0f} % below EASY, {row['below EASY++ %']:+.0f} % below EASY++"
    words += f" (published {REDUCTIONS[0]} and {REDUCTIONS[1]} %)"
    so = sum(bool(row[name] > 0) for name in ("below EASY %", "below EASY++ %"))
    traces = len(table[(table["values"] == "ours") & (table["trace"] != "mean")])
    return _traces(items.of_count(so, 2, "are below as published", words), traces, len(LOGS))


def _table_7_8(stored: items.Stored) -> items.Verdict:
    """Table 7.8: AVE2 has the lower mean absolute error, E-Loss the lower mean E-Loss."""
    table = stored.table("table-7.8", "trace", "prediction", "MAE (s)", "mean E-Loss")
    table = table[table["prediction"].isin(list(TABLE_7_8))]
    table = table.assign(loss=table["mean E-Loss"].astype(float))
    so = {}
    for trace, part in table[~table["trace"].str.startswith("thesis")].groupby("trace"):
        rows = part.set_index("prediction")
        if {*TABLE_7_8} <= {*rows.index}:
            so[f"{trace}: AVE2 has the lower MAE"] = bool(
                rows.loc["AVE2", "MAE (s)"] < rows.loc["E-Loss", "MAE (s)"]
            )
            so[f"{trace}: E-Loss has the lower mean E-Loss"] = bool(
                rows.loc["E-Loss", "loss"] < rows.loc["AVE2", "loss"]
            )
    return items.of_sentences(so)


def _figures_of_predictions(stored: items.Stored) -> items.Verdict:
    """Figures 7.3 and 7.4: under E-Loss more predictions are too short than by squared loss."""
    table = stored.table("table-7.8", "trace", "prediction", "share too short", "median (s)")
    so = {}
    for trace, part in table[~table["trace"].str.startswith("thesis")].groupby("trace"):
        rows = part.set_index("prediction")
        others = [name for name in rows.index if str(name) == "squared loss"]
        if "E-Loss" in rows.index and others:
            short, median = rows["share too short"], rows["median (s)"]
            so[f"{trace}: more are too short"] = bool(short["E-Loss"] > short[others].max())
            so[f"{trace}: they are smaller"] = bool(median["E-Loss"] < median[others].min())
    return items.of_sentences(so)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 7.1": _table_7_1,
    "section 7.5.2": _campaign,
    "table 7.6": _table_7_6,
    "figure 7.2": items.of_picture("KTH-SP2-SDSC-SP2.png", "MetaCentrum-SDSC-BLUE.png"),
    "section 7.5.3, correlations": _correlations,
    "table 7.7": _table_7_7,
    "section 7.5.3, E-Loss": _claim,
    "table 7.8": _table_7_8,
    "figures 7.3 and 7.4": _figures_of_predictions,
}
