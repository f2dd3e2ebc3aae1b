"""The thesis's tables, ours beside the published values, as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.prediction.campaign import Findings
from hpcgym.benchmarks.prediction.configurations import (
    BRANCHES,
    CLAIRVOYANT,
    E_LOSS_TRIPLE,
    EASY,
    EASY_PLUS_PLUS,
    ORDERS,
    Configuration,
    without_learning,
)
from hpcgym.benchmarks.prediction.published import (
    REDUCTIONS,
    TABLE_7_1,
    TABLE_7_6,
    TABLE_7_8,
)
from hpcgym.benchmarks.prediction.simulations import e_loss

if TYPE_CHECKING:
    import pandas as pd

_NONE = float("nan")


def exactness(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the configurations without learning, which have to meet the published values."""
    import pandas as pd

    rows = [
        {
            "trace": found.trace,
            "jobs": int(found.table["jobs"].iloc[0]),
            "configuration": str(one),
            "ours": found.ours(one),
            "published": found.theirs(one),
            "difference": f"{found.ours(one) - found.theirs(one):+.1e}",
            "relative": f"{found.ours(one) / found.theirs(one) - 1:+.1e}",
        }
        for found in findings
        for one in without_learning()
        if np.isfinite(found.theirs(one))
    ]
    return pd.DataFrame(rows)


def table_7_1(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.1: EASY with requested and with known run times."""
    import pandas as pd

    rows = []
    for found in findings:
        easy, known = found.ours(EASY), found.ours(CLAIRVOYANT["fcfs"])
        printed = TABLE_7_1.get(found.trace, (_NONE, _NONE, _NONE))
        rows.append(
            {
                "trace": found.trace,
                "EASY": easy,
                "thesis: EASY": printed[0],
                "EASY-CLAIRVOYANT": known,
                "thesis: CLAIRVOYANT": printed[1],
                "decrease %": reduction(known, easy),
                "thesis: decrease %": printed[2],
            }
        )
    return pd.DataFrame(rows)


def reduction(value: float, reference: float) -> float:
    """Return by how many percent a value is below another."""
    return 100 * (1 - value / reference)


def table_7_6(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.6: known run times, EASY, EASY++, and the best and the worst that learn."""
    import pandas as pd

    rows = []
    for found in findings:
        ours, theirs = (_overview(found, column) for column in ("mean_bsld", "published"))
        printed = TABLE_7_6.get(found.trace, (_NONE,) * len(ours))
        for (name, value), other, thesis_value in zip(
            ours.items(), theirs.values(), printed, strict=True
        ):
            rows.append(
                {
                    "trace": found.trace,
                    "what": name,
                    "ours": value,
                    "published": other,
                    "thesis": thesis_value,
                    "ours / published": value / other,
                }
            )
    return pd.DataFrame(rows)


def _overview(found: Findings, column: str) -> dict[str, float]:
    """Return the entries of a row of table 7.6, from a column of the findings.

    The thesis's ends are over its 120 configurations that learn and the same with the thresholds of
    60 and 600 s: so its values are found in the published ones, all but those of SDSC-BLUE that are
    of runs that did not come to their end.
    """
    table = found.table
    named = {
        "clairvoyant, FCFS": CLAIRVOYANT["fcfs"],
        "clairvoyant, SJBF": CLAIRVOYANT["sjbf"],
        "EASY": EASY,
        "EASY++": EASY_PLUS_PLUS,
    }
    entries = {name: float(table[column][str(one)]) for name, one in named.items()}
    plain = table["over"].isin(BRANCHES) & table["under"].isin(BRANCHES)
    learned = table[plain & (table["over_scale"] == 1) & (table["under_scale"] == 1)]
    for order in ORDERS:
        values = learned.loc[learned["order"] == order, column]
        entries[f"learning, {order.upper()}: best"] = float(values.min())
        entries[f"learning, {order.upper()}: worst"] = float(values.max())
    return entries


def best(findings: Sequence[Findings], number: int = 3) -> pd.DataFrame:
    """Return the best triples that learn, by our values and by the published ones."""
    import pandas as pd

    rows = []
    for found in findings:
        learned = found.learned
        columns = {"ours": "mean_bsld", "published": "published"}
        ranks = {by: learned[column].rank() for by, column in columns.items()}
        for by, column in columns.items():
            for name, row in learned.dropna(subset=[column]).nsmallest(number, column).iterrows():
                rows.append(
                    {
                        "trace": found.trace,
                        "best by": by,
                        "triple": str(name),
                        "ours": row["mean_bsld"],
                        "rank": _rank(ranks["ours"][str(name)]),
                        "published": row["published"],
                        "published: rank": _rank(ranks["published"][str(name)]),
                        "of": f"{len(learned):,}",
                    }
                )
    return pd.DataFrame(rows)


def _rank(value: float) -> str | None:
    return f"{value:g}" if np.isfinite(value) else None


# --- The claim, and what predictions are like -----------------------------------------------------


def claim(findings: Sequence[Findings]) -> pd.DataFrame:
    """Section 7.5.3: E-Loss, incremental correction and SJBF against EASY and EASY++."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for by in ("ours", "published"):
        part = [_claimed(found, by) for found in findings]
        part = [row for row in part if np.isfinite(row["E-Loss triple"])]
        if part:
            gains = [key for key in part[0] if "%" in key]
            mean = {key: float(np.mean([row[key] for row in part])) for key in gains}
            rows += [*part, {"trace": "mean", "values": by, **mean}]
    printed = dict(zip(("below EASY %", "below EASY++ %"), REDUCTIONS, strict=True))
    rows.append({"trace": "thesis, six logs", "values": "printed", **printed})
    return pd.DataFrame(rows)


def _claimed(found: Findings, by: str) -> dict[str, Any]:
    """Return a row of the claim: our values, or the published."""
    value = found.ours if by == "ours" else found.theirs
    triple, easy, plus = map(value, (E_LOSS_TRIPLE, EASY, EASY_PLUS_PLUS))
    return {
        "trace": found.trace,
        "values": by,
        "E-Loss triple": triple,
        "EASY": easy,
        "EASY++": plus,
        "below EASY %": reduction(triple, easy),
        "below EASY++ %": reduction(triple, plus),
    }


def table_7_8(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.8: mean absolute error and mean E-Loss of predictions at submission.

    Those of simulations with incremental correction and SJBF: AVE2's are EASY++'s.
    """
    import pandas as pd

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
        rows.append(
            {
                "trace": "thesis, Curie",
                "prediction": name,
                "MAE (s)": mae,
                "mean E-Loss": f"{loss:.3g}",
                "share too short": _NONE,
                "median (s)": _NONE,
            }
        )
    return pd.DataFrame(rows)


def cost(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return what the simulations took, summed over processes and earlier runs."""
    import pandas as pd

    rows = []
    for found in findings:
        learned = found.table["estimate"] == "regression"
        for name, part in (("with learning", learned), ("without", ~learned)):
            seconds = found.table.loc[part, "seconds"]
            rows.append(
                {
                    "trace": found.trace,
                    "simulations": name,
                    "number": len(seconds),
                    "median (s)": float(seconds.median()),
                    "sum (s)": float(seconds.sum()),
                }
            )
    return pd.DataFrame(rows)


def name_of(configuration: Configuration) -> str:
    """Return what pictures call a configuration."""
    named = {EASY: "EASY", EASY_PLUS_PLUS: "EASY++", E_LOSS_TRIPLE: "E-Loss, incremental, SJBF"}
    named |= {one: f"clairvoyant, {order.upper()}" for order, one in CLAIRVOYANT.items()}
    return named.get(configuration, str(configuration))
