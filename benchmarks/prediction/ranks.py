"""Rank correlations, and how alike configurations do here and in the published results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.prediction.campaign import Findings
from hpcgym.benchmarks.prediction.choice import medians
from hpcgym.benchmarks.prediction.configurations import Configuration, variants, with_thresholds

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

_FEWEST = 4  # configurations that a correlation is given of
_MANY = 10  # times the thesis's configurations are a whole campaign


def spearman(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation: Pearson's of the ranks, ties at their mean rank."""
    return pearson(_ranks(first), _ranks(second))


def pearson(first: Floats, second: Floats) -> float:
    """Return the linear correlation, nan where one side does not vary."""
    a, b = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else float("nan")


def kendall(first: Floats, second: Floats) -> float:
    """Return Kendall's tau-b: pairs in the same order less those in opposite ones, over all.

    Pairs with a tie count for neither; the denominator is the root of the pairs without a tie in
    the one times those in the other.
    """
    agree = one = other = 0
    for place in range(len(first) - 1):
        a = np.sign(first[place + 1 :] - first[place])
        b = np.sign(second[place + 1 :] - second[place])
        agree += int((a * b).sum())
        one += int(np.abs(a).sum())
        other += int(np.abs(b).sum())
    return agree / float(np.sqrt(one * other)) if one and other else float("nan")


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value, the mean of those that tie."""
    import pandas as pd

    return np.asarray(pd.Series(values).rank(), np.float64)


def correlations(findings: list[Findings]) -> pd.DataFrame:
    """Return how alike configurations with learning do here and as published, by group.

    Returns
    -------
    A row for each trace and group: all, then those of one order, correction, weight and pair of
    branches; its mean of the mean bounded slowdowns, ours and published, and the rank
    correlations over its configurations.
    """
    import pandas as pd

    rows = [
        {"trace": found.trace, "of": of, "configurations": len(part), **_alike(part)}
        for found in findings
        for of, part in _groups(found)
    ]
    return pd.DataFrame(rows)


def _groups(found: Findings) -> Iterator[tuple[str, pd.DataFrame]]:
    """Return the thesis's configurations that learn, and of them those of each level of each part.

    Before them all that learn, if there are many more, and the medians over variants.
    """
    table = found.learned.dropna(subset=["published"])
    everything = found.table[found.table["estimate"] == "regression"].dropna(subset=["published"])
    if len(everything) > _MANY * len(table) > 0:
        yield "all published", everything
        yield "medians over thresholds and scales", _medians(found, variants)
    if len(everything) > len(table) > 0:
        yield "medians over thresholds", _medians(found, with_thresholds)
    if len(table):
        yield "the thesis's", table
    table = table.assign(loss="over " + table["over"] + ", under " + table["under"])
    for name in ("order", "correction", "weight", "loss"):
        for level in table[name].unique():
            yield f"{name}: {level}", table[table[name] == level]


def _medians(found: Findings, over: Callable[[Configuration], list[Configuration]]) -> pd.DataFrame:
    """Return the medians of the triples that learn, ours and published."""
    import pandas as pd

    both = {name: medians(found.table[name], over) for name in ("mean_bsld", "published")}
    table = pd.DataFrame(both).dropna()
    return table[table.index.isin(found.learned.index)]


def _alike(part: pd.DataFrame) -> dict[str, float]:
    """Return means and correlations of our mean bounded slowdowns and the published ones."""
    ours, theirs = part["mean_bsld"].to_numpy(), part["published"].to_numpy()
    enough = len(part) >= _FEWEST
    return {
        "ours": float(ours.mean()),
        "published": float(theirs.mean()),
        "ours / published": float(ours.mean() / theirs.mean()),
        "Spearman": spearman(ours, theirs) if enough else float("nan"),
        "Kendall": kendall(ours, theirs) if enough else float("nan"),
    }


#: What is changed of the thesis's configurations, to see how steady published values are.
_CHANGES: dict[str, dict[str, float]] = {
    "threshold 60 s": {"threshold": 60.0},
    "threshold 600 s": {"threshold": 600.0},
    "both scales 100": {"over_scale": 100.0, "under_scale": 100.0},
    "both scales 10,000": {"over_scale": 10_000.0, "under_scale": 10_000.0},
}


def steadiness(findings: list[Findings]) -> pd.DataFrame:
    """Return how the published values themselves change with what should matter little.

    The thesis's configurations against the same with another threshold or with both branches of the
    loss scaled by the same factor: no model of the original can be expected to come closer.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for found in findings:
        if found.published is None:
            continue
        table = _published_table(found)
        usual = _variant(table, {})
        for name, change in _CHANGES.items():
            both = pd.concat([usual, _variant(table, change)], axis=1, join="inner").to_numpy()
            if len(both) < _FEWEST:
                continue
            first, second = both[:, 0], both[:, 1]
            rows.append(
                {
                    "trace": found.trace,
                    "changed": name,
                    "configurations": len(both),
                    "Spearman": spearman(first, second),
                    "Kendall": kendall(first, second),
                    "median ratio": float(np.exp(np.median(np.abs(np.log(second / first))))),
                }
            )
    return pd.DataFrame(rows)


def _published_table(found: Findings) -> pd.DataFrame:
    """Return the published configurations with learning: what they are, and their values."""
    import pandas as pd

    assert found.published is not None
    rows = [
        {**one.words(), "value": found.published.table.loc[name, "mean_bsld"]}
        for name, one in found.published.configurations.items()
        if one.learned
    ]
    return pd.DataFrame(rows)


def _variant(table: pd.DataFrame, change: dict[str, float]) -> pd.Series[float]:
    """Return the values of the thesis's configurations with some parameters changed."""
    wanted = {"over_scale": 1.0, "under_scale": 1.0, "threshold": 0.0, **change}
    plain = table["over"].isin(["absolute", "squared"]) & table["under"].isin(
        ["absolute", "squared"]
    )
    for column, value in wanted.items():
        plain &= table[column] == value
    keys = ["order", "correction", "over", "under", "weight"]
    return table[plain].set_index(keys)["value"]
