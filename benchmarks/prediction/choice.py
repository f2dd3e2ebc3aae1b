"""Which triple to take: on other traces (table 7.7), and over what should matter little.

A mean bounded slowdown depends on few jobs, and another threshold or scale of the loss moves it as
much as another triple does. So triples are compared by their medians over such variants too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.prediction.campaign import Findings
from hpcgym.benchmarks.prediction.configurations import (
    E_LOSS_TRIPLE,
    EASY,
    EASY_PLUS_PLUS,
    Configuration,
    thesis,
    variants,
)
from hpcgym.benchmarks.prediction.published import TABLE_7_7, Published
from hpcgym.benchmarks.prediction.tables import reduction

if TYPE_CHECKING:
    import pandas as pd

_NONE = float("nan")
_SHARE = (
    2 / 3
)  # of its variants that a triple needs for a median, of its triples that a trace needs

Values = Mapping[str, "pd.Series[float]"]


def leave_one_out(values: Values) -> dict[str, str]:
    """Return the triple that is chosen for each trace: least sum over all the others.

    Parameters
    ----------
    values : trace -> mean bounded slowdown of each triple; a triple that has no value on each of
        the other traces is not chosen.
    """
    import pandas as pd

    table = pd.DataFrame(dict(values))
    chosen = {}
    for trace in table.columns:
        others = table.drop(columns=trace).dropna()
        if len(others) and len(table.columns) > 1:
            chosen[str(trace)] = str(others.sum(axis=1).idxmin())
    return chosen


def table_7_7(findings: Sequence[Findings], published: Mapping[str, Published]) -> pd.DataFrame:
    """Table 7.7: the triple that is best on the other traces, on this one.

    Triples are chosen by our values on our other traces, and by the published values on all other
    traces that have them.
    """
    ours = {one.trace: one.table["mean_bsld"] for one in findings}
    theirs = {trace: one.table["mean_bsld"] for trace, one in published.items()}
    return _choices(ours, theirs, TABLE_7_7)


def table_7_7_medians(
    findings: Sequence[Findings], published: Mapping[str, Published]
) -> pd.DataFrame:
    """Return table 7.7 with triples chosen and judged by their medians over variants."""
    ours = {one.trace: medians(one.table["mean_bsld"]) for one in findings}
    theirs = {trace: medians(one.table["mean_bsld"]) for trace, one in published.items()}
    return _choices(ours, theirs, {})


def _candidates(values: Values) -> dict[str, pd.Series[float]]:
    """Return the values of triples, those that learn and AVE2's, on traces that have most."""
    names = [str(one) for one in thesis() if one.learned or one.estimate == "ave2"]
    found = {trace: column[column.index.isin(names)] for trace, column in values.items()}
    return {trace: part for trace, part in found.items() if len(part) >= _SHARE * len(names)}


def _choices(
    ours: Values, theirs: Values, printed: Mapping[str, tuple[float, ...]]
) -> pd.DataFrame:
    """Return a row for each trace that a triple is chosen for, by ours and by published values.

    Parameters
    ----------
    ours, theirs : trace -> values by the text of the configuration, EASY's and EASY++'s among them.
    printed : trace -> what the thesis prints, first of all the triple's value.
    """
    import pandas as pd

    rows = []
    for by, given in (("ours", ours), ("published", theirs)):
        values = _candidates(given)
        for trace, name in leave_one_out(values).items():
            row: dict[str, Any] = {
                "trace": trace,
                "chosen on": f"{by}: {' '.join(other for other in values if other != trace)}",
                "triple": name,
            }
            for whose, judges in (("ours", ours), ("published", theirs)):
                row |= _judged(whose, judges.get(trace), name)
            rows.append({**row, "thesis": printed.get(trace, (_NONE,))[0]})
    return pd.DataFrame(rows)


def _judged(whose: str, values: pd.Series[float] | None, name: str) -> dict[str, float]:
    """Return the value of a triple beside EASY and EASY++."""
    value, easy, plus = (
        _NONE if values is None else float(values.get(one, _NONE))
        for one in (name, str(EASY), str(EASY_PLUS_PLUS))
    )
    return {
        f"{whose}: triple": value,
        f"{whose}: below EASY %": reduction(value, easy),
        f"{whose}: below EASY++ %": reduction(value, plus),
    }


def medians(
    values: pd.Series[float], over: Callable[[Configuration], list[Configuration]] = variants
) -> pd.Series[float]:
    """Return the median of each triple over its variants; what has none by its own value.

    Parameters
    ----------
    values : mean bounded slowdowns by the text of the configuration. A triple that has fewer than
        two thirds of its variants is left out.
    over : returns the variants of a configuration that learns.
    """
    import pandas as pd

    found = {}
    for one in thesis():
        names = [str(variant) for variant in over(one)] if one.learned else [str(one)]
        there = values[values.index.isin(names)].dropna()
        if len(there) >= _SHARE * len(names):
            found[str(one)] = float(there.median())
    return pd.Series(found, dtype=np.float64)


def spread(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the thesis's triple over all its variants: ours, and the published values."""
    import pandas as pd

    names = [str(one) for one in variants(E_LOSS_TRIPLE)]
    rows = []
    for found in findings:
        for by, column in (("ours", "mean_bsld"), ("published", "published")):
            values = found.table[column].reindex(names).dropna()
            if len(values) < _SHARE * len(names):
                continue
            easy = float(found.table[column][str(EASY)])
            usual = float(values.get(str(E_LOSS_TRIPLE), _NONE))
            rows.append(
                {
                    "trace": found.trace,
                    "values": by,
                    "variants": len(values),
                    "the triple": usual,
                    "its place": f"{int((values < usual).sum()) + 1} of {len(values)}",
                    **_quantiles(values),
                    "EASY": easy,
                    "median below EASY %": reduction(float(values.median()), easy),
                }
            )
    return pd.DataFrame(rows)


def _quantiles(values: pd.Series[float]) -> dict[str, float]:
    """Return the ends, quartiles and median of some values."""
    names = ("least", "lower quartile", "median", "upper quartile", "most")
    return dict(zip(names, np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist(), strict=True))


def best_medians(findings: Sequence[Findings], number: int = 5) -> pd.DataFrame:
    """Return the triples that are best by their medians, AVE2's among them."""
    import pandas as pd

    rows = []
    for found in findings:
        values = {"ours": medians(found.table["mean_bsld"])}
        if found.published is not None:
            values["published"] = medians(found.published.table["mean_bsld"])
        ranks = {by: one.rank() for by, one in _candidates(values).items()}
        for by in ranks:
            for name, _ in ranks[by].nsmallest(number).items():
                row: dict[str, Any] = {"trace": found.trace, "best by": by, "triple": str(name)}
                for whose in ranks:
                    row |= _judged(whose, values[whose], str(name))
                    row[f"{whose}: place"] = f"{ranks[whose].get(name, _NONE):g}"
                rows.append(row)
    return pd.DataFrame(rows)
