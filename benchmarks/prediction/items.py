"""The items of Glesser 2016, chapter 7, and what makes their verdicts.

Published values: ``published.py``, and the original experiment's own where they are given.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from hpcgym.benchmarks.prediction.configurations import thesis
from hpcgym.benchmarks.prediction.published import (
    LOGS,
    PEARSON,
    REDUCTIONS,
    TABLE_7_1,
    TABLE_7_6,
    TABLE_7_7,
    TABLE_7_8,
)
from hpcgym.benchmarks.studies.items import (
    Item,
    NotThereError,
    Stored,
    Verdict,
    built,
    columns_of,
    of_count,
    of_picture,
    of_sentences,
    of_values,
    still_open,
)

DOCUMENT = "Glesser 2016"


def _traces(verdict: Verdict, found: int, printed: int) -> Verdict:
    """Return a verdict that says of how many of the thesis's traces it is."""
    return Verdict(verdict.verdict, f"{verdict.why}; of {found} of {printed} traces")


def _table_7_1(stored: Stored) -> Verdict:
    table = stored.table("table-7.1")
    columns = (("EASY", "thesis: EASY"), ("EASY-CLAIRVOYANT", "thesis: CLAIRVOYANT"))
    pairs = [columns_of(table, *pair) for pair in columns]
    ours, printed = (np.concatenate([pair[k] for pair in pairs]) for k in (0, 1))
    return _traces(of_values(ours, printed, 0.1, "values"), len(ours) // 2, len(TABLE_7_1))


def _table_7_6(stored: Stored) -> Verdict:
    ours, printed, trace = columns_of(stored.table("table-7.6"), "ours", "thesis", "trace")
    return _traces(of_values(ours, printed, 0.1, "values"), len({*trace}), len(TABLE_7_6))


def _campaign(stored: Stored) -> Verdict:
    """Section 7.5.2: the original experiment at full precision is met where nothing learns."""
    ours, published, trace = columns_of(
        stored.table("table-without-learning"), "ours", "published", "trace"
    )
    found = of_values(ours, published, 0, "values without learning")
    return Verdict(found.verdict, f"{found.why}; of {len({*trace})} traces")


def _table_7_7(stored: Stored) -> Verdict:
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
    return of_sentences(so)


def _correlations(stored: Stored) -> Verdict:
    """Section 7.5.3: the coefficients of pairs of logs are within the published least and most."""
    names = [str(one) for one in thesis()]
    values = {}
    for log in LOGS:
        try:
            table = stored.table(f"{log}/configurations", "configuration", "mean_bsld")
        except NotThereError:
            continue
        values[log] = table.set_index("configuration")["mean_bsld"].reindex(names)
    so = {}
    for first, second in combinations(values, 2):
        found = float(values[first].corr(values[second]))
        within = bool(PEARSON[0] <= found <= PEARSON[1])
        so[f"{first} and {second} within {PEARSON[0]:g} and {PEARSON[1]:g}: {found:.2f}"] = within
    return of_sentences(so)


def _claim(stored: Stored) -> Verdict:
    """Section 7.5.3: how far the E-Loss triple is below EASY and EASY++, over all logs."""
    table = stored.table("table-claim", "values", "trace", "below EASY %", "below EASY++ %")
    mean = table[(table["values"] == "ours") & (table["trace"] == "mean")]
    if not len(mean):
        raise NotThereError("no mean over traces")
    row = mean.iloc[0]
    words = f"{row['below EASY %']:.0f} % below EASY, {row['below EASY++ %']:+.0f} % below EASY++"
    words += f" (published {REDUCTIONS[0]} and {REDUCTIONS[1]} %)"
    so = sum(bool(row[name] > 0) for name in ("below EASY %", "below EASY++ %"))
    traces = len(table[(table["values"] == "ours") & (table["trace"] != "mean")])
    return _traces(of_count(so, 2, "are below as published", words), traces, len(LOGS))


def _table_7_8(stored: Stored) -> Verdict:
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
    return of_sentences(so)


def _figures_of_predictions(stored: Stored) -> Verdict:
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
    return of_sentences(so)


ITEMS: tuple[Item, ...] = (
    built(DOCUMENT, "section 7.1.2", "EASY with predictions that expire", "docs/semantics.md"),
    Item(DOCUMENT, "table 7.1", "EASY and clairvoyant EASY", _table_7_1, published="TABLE_7_1"),
    built(DOCUMENT, "equations 7.1 and 7.2", "regression of run times", "docs/prediction.md"),
    built(DOCUMENT, "table 7.2", "features of jobs", "docs/prediction.md"),
    built(DOCUMENT, "figure 7.1", "losses with two branches", "docs/prediction.md"),
    built(DOCUMENT, "table 7.3", "weights of the losses", "docs/prediction.md"),
    built(DOCUMENT, "section 7.4.2", "three corrections", "docs/prediction.md"),
    built(DOCUMENT, "table 7.4", "the six logs", "`hpcgym traces list`: all are known by name"),
    built(DOCUMENT, "table 7.5", "the 20 losses of the campaign", "docs/prediction.md"),
    Item(
        DOCUMENT,
        "section 7.5.2",
        "the campaign's own results, as its repository has them",
        _campaign,
        options="--published FOLDER",
        published="the files that --published names",
    ),
    Item(DOCUMENT, "table 7.6", "overview of all triples", _table_7_6, published="TABLE_7_6"),
    Item(
        DOCUMENT,
        "figure 7.2",
        "triples on two logs (there SDSC-BLUE and MetaCentrum)",
        of_picture("KTH-SP2-SDSC-SP2.png", "MetaCentrum-SDSC-BLUE.png"),
    ),
    Item(
        DOCUMENT,
        "section 7.5.3, correlations",
        "how alike triples do on two logs, by Pearson's coefficient",
        _correlations,
        published="PEARSON",
    ),
    Item(
        DOCUMENT,
        "table 7.7",
        "a triple that was chosen on other logs",
        _table_7_7,
        published="TABLE_7_7",
    ),
    built(DOCUMENT, "equation 7.3", "E-Loss", "docs/prediction.md"),
    Item(
        DOCUMENT,
        "section 7.5.3, E-Loss",
        "28 % below EASY, 11 % below EASY++",
        _claim,
        published="REDUCTIONS",
    ),
    Item(
        DOCUMENT,
        "table 7.8",
        "errors of predictions (there of Curie)",
        _table_7_8,
        published="TABLE_7_8",
    ),
    Item(
        DOCUMENT,
        "figures 7.3 and 7.4",
        "errors and predicted run times (there of Curie)",
        _figures_of_predictions,
        published="section 7.5.4",
    ),
    still_open(
        DOCUMENT,
        "section 7.5.5",
        "0.1 % of jobs have extremely high bounded slowdowns",
        "of each configuration the mean, the greatest and the root mean square are kept, not the"
        " distribution over jobs",
    ),
)
