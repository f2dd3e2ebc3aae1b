"""What is chosen and how configurations rank, as tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.prediction import runs
from hpcgym.benchmarks.prediction.published import TABLE_7_7, Published
from hpcgym.benchmarks.prediction.tables import Findings, name_of, reduction
from hpcgym.benchmarks.studies.tables import finish, legend_below, log_ticks, pearson
from hpcgym.naming import HOUR_S
from hpcgym.report import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- Which triple to take -------------------------------------------------------------------------

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
    table = pd.DataFrame(dict(values))
    chosen = {}
    for trace in table.columns:
        others = table.drop(columns=trace).dropna()
        if len(others) and len(table.columns) > 1:
            chosen[str(trace)] = str(others.sum(axis=1).idxmin())
    return chosen


def _candidates(values: Values) -> dict[str, pd.Series[float]]:
    """Return the values of triples, those that learn and AVE2's, on traces that have most."""
    names = [str(one) for one in runs.thesis() if one.learned or one.estimate == "ave2"]
    found = {trace: column[column.index.isin(names)] for trace, column in values.items()}
    return {trace: part for trace, part in found.items() if len(part) >= _SHARE * len(names)}


def table_7_7(findings: Sequence[Findings], published: Mapping[str, Published]) -> pd.DataFrame:
    """Table 7.7: the triple that is best on the other traces, on this one.

    Triples are chosen by our values on our other traces, and by the published values on all other
    traces that have them.
    """
    given = {
        "ours": {one.trace: one.table["mean_bsld"] for one in findings},
        "published": {trace: one.table["mean_bsld"] for trace, one in published.items()},
    }
    rows = []
    for by in given:
        values = _candidates(given[by])
        for trace, name in leave_one_out(values).items():
            row: dict[str, Any] = {
                "trace": trace,
                "chosen on": f"{by}: {' '.join(other for other in values if other != trace)}",
                "triple": name,
            }
            for whose, judges in given.items():
                row |= _judged(whose, judges.get(trace), name)
            rows.append({**row, "thesis": TABLE_7_7.get(trace, (_NONE,))[0]})
    return pd.DataFrame(rows)


def _judged(whose: str, values: pd.Series[float] | None, name: str) -> dict[str, float]:
    """Return the value of a triple beside EASY and EASY++."""
    value, easy, plus = (
        _NONE if values is None else float(values.get(one, _NONE))
        for one in (name, str(runs.EASY), str(runs.EASY_PLUS_PLUS))
    )
    return {
        f"{whose}: triple": value,
        f"{whose}: below EASY %": reduction(value, easy),
        f"{whose}: below EASY++ %": reduction(value, plus),
    }


def medians(
    values: pd.Series[float],
    over: Callable[[runs.Configuration], list[runs.Configuration]] = runs.variants,
) -> pd.Series[float]:
    """Return the median of each triple over its variants; what has none by its own value.

    Parameters
    ----------
    values : mean bounded slowdowns by the text of the configuration. A triple that has fewer than
        two thirds of its variants is left out.
    over : returns the variants of a configuration that learns.
    """
    found = {}
    for one in runs.thesis():
        names = [str(variant) for variant in over(one)] if one.learned else [str(one)]
        there = values[values.index.isin(names)].dropna()
        if len(there) >= _SHARE * len(names):
            found[str(one)] = float(there.median())
    return pd.Series(found, dtype=np.float64)


def spread(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the thesis's triple over all its variants: ours, and the published values."""
    names = [str(one) for one in runs.variants(runs.E_LOSS_TRIPLE)]
    rows = []
    for found in findings:
        for by, column in (("ours", "mean_bsld"), ("published", "published")):
            values = found.table[column].reindex(names).dropna()
            if len(values) < _SHARE * len(names):
                continue
            easy = float(found.table[column][str(runs.EASY)])
            usual = float(values.get(str(runs.E_LOSS_TRIPLE), _NONE))
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


def best_medians(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the five triples that are best by their medians, AVE2's among them."""
    rows = []
    for found in findings:
        values = {"ours": medians(found.table["mean_bsld"])}
        if found.published is not None:
            values["published"] = medians(found.published.table["mean_bsld"])
        ranks = {by: one.rank() for by, one in _candidates(values).items()}
        for by in ranks:
            for name, _ in ranks[by].nsmallest(5).items():
                row: dict[str, Any] = {"trace": found.trace, "best by": by, "triple": str(name)}
                for whose in ranks:
                    row |= _judged(whose, values[whose], str(name))
                    row[f"{whose}: place"] = f"{ranks[whose].get(name, _NONE):g}"
                rows.append(row)
    return pd.DataFrame(rows)


# --- Rank correlations ----------------------------------------------------------------------------

Floats = NDArray[np.float64]

_FEWEST = 4  # configurations that a correlation is given of
_MANY = 10  # times the thesis's configurations are a whole campaign


def spearman(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation: Pearson's of the ranks, ties at their mean rank."""
    return pearson(_ranks(first), _ranks(second))


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
    return np.asarray(pd.Series(values).rank(), np.float64)


def correlations(findings: list[Findings]) -> pd.DataFrame:
    """Return how alike configurations with learning do here and as published, by group.

    Returns
    -------
    A row for each trace and group: all, then those of one order, correction, weight and pair of
    branches; its mean of the mean bounded slowdowns, ours and published, and the rank
    correlations over its configurations.
    """
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
        yield "medians over thresholds and scales", _medians(found, runs.variants)
    if len(everything) > len(table) > 0:
        yield "medians over thresholds", _medians(found, runs.with_thresholds)
    if len(table):
        yield "the thesis's", table
    table = table.assign(loss="over " + table["over"] + ", under " + table["under"])
    for name in ("order", "correction", "weight", "loss"):
        for level in table[name].unique():
            yield f"{name}: {level}", table[table[name] == level]


def _medians(
    found: Findings, over: Callable[[runs.Configuration], list[runs.Configuration]]
) -> pd.DataFrame:
    """Return the medians of the triples that learn, ours and published."""
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
_CHANGES: dict[str, dict[str, Any]] = {
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
    rows: list[dict[str, Any]] = []
    for found in findings:
        if found.published is None:
            continue
        values = found.published.table["mean_bsld"].to_dict()
        for name, change in _CHANGES.items():
            pairs = [
                (str(one), str(replace(one, estimate=replace(one.estimate, **change))))
                for one in runs.thesis()
                if isinstance(one.estimate, runs.Loss)
            ]
            both = np.array([[values[a], values[b]] for a, b in pairs if {a, b} <= values.keys()])
            if len(both) < _FEWEST:
                continue
            first, second = both.T
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


# --- The thesis's figures, and ours against the published values ----------------------------------

_COLOURS = dict(zip(runs.CORRECTIONS, (canvas.BLUE, canvas.VERMILLION, canvas.GREEN), strict=True))
_MARKERS = dict(zip(runs.ORDERS, ("o", "^"), strict=True))
_LINES = {
    "clairvoyant": (canvas.BLACK, ":"),
    "requested": (canvas.DARK_GREY, "--"),
    "AVE2": (canvas.BLUE, "-"),
    "squared loss": (canvas.GREEN, "-"),
    "E-Loss": (canvas.VERMILLION, "-"),
}
_NAMED = (runs.EASY, runs.EASY_PLUS_PLUS, runs.E_LOSS_TRIPLE, *runs.CLAIRVOYANT.values())
_POINTS = 2001  # of a distribution that are drawn
_OUT_OF_SIGHT = 0.02  # of the errors of each predictor, at either end: long tails of few jobs


def draw_against_published(found: Findings) -> Figure:
    """Each configuration: our mean bounded slowdown against the published one."""
    table = found.table[found.table["published"].notna()]
    heading = "Mean bounded slowdown of each configuration"
    figure = _scatter(table, ("published", "mean_bsld"), ("published", "ours"))
    values = table[["published", "mean_bsld"]].to_numpy()
    ends = [values.min(), values.max()]
    axes = figure.axes[0]
    axes.plot(ends, ends, color=canvas.DARK_GREY, linewidth=0.8, linestyle="--", zorder=0)
    canvas.title(axes, heading, found.trace)
    return figure


def draw_two_traces(first: Findings, second: Findings) -> Figure:
    """Figure 7.2: each configuration on two traces."""
    other = second.table["mean_bsld"].rename("mean_bsld too")
    shown = first.of_thesis.join(other, how="inner")
    heading = "Mean bounded slowdown of each configuration on two traces (figure 7.2)"
    figure = _scatter(shown, ("mean_bsld", "mean_bsld too"), (first.trace, second.trace))
    canvas.title(figure.axes[0], heading, "")
    return figure


def _scatter(table: pd.DataFrame, columns: tuple[str, str], of: tuple[str, str]) -> Figure:
    """Draw a mark for each configuration, by correction, order and whether it learns."""
    figure = canvas.new_figure(6.5, 6)
    axes = figure.add_subplot()
    x, y = (table[column] for column in columns)
    learns = table["estimate"] == "regression"
    crowded = len(table) > 500
    for (correction, colour), (order, marker) in product(_COLOURS.items(), _MARKERS.items()):
        these = learns & (table["correction"] == correction) & (table["order"] == order)
        if these.any():
            style: dict[str, Any] = {
                "markersize": 2 if crowded else 5,
                "alpha": 0.3 if crowded else 0.8,
            }
            label = f"{correction}, {order.upper()}"
            axes.plot(x[these], y[these], marker, color=colour, label=label, **style)
    axes.plot(x[~learns], y[~learns], "s", color=canvas.BLACK, markerfacecolor="none", markersize=5,
              label="without learning")  # fmt: skip
    for one in _NAMED:
        if str(one) in table.index:
            place = float(x[str(one)]), float(y[str(one)])
            words: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 7}
            axes.annotate(name_of(one), place, (6, 0), **words)
    x_label, y_label = (f"mean bounded slowdown, {name}" for name in of)
    finish(axes, x=x_label, y=y_label, log="xy")
    legend_below(figure, *axes.get_legend_handles_labels(), 3)
    return figure


def draw_errors(predictions: Mapping[str, NDArray[np.int64]], trace: str) -> Figure:
    """Figure 7.3: how prediction errors, predicted less actual run time, are distributed."""
    errors = {"clairvoyant": np.zeros(1)}
    errors |= {name: (given - run) / HOUR_S for name, (given, run) in predictions.items()}
    figure = canvas.new_figure(7, 4.4)
    axes = figure.add_subplot()
    _distributions(axes, errors)
    shares = (_OUT_OF_SIGHT, 1 - _OUT_OF_SIGHT)
    ends = np.concatenate([np.quantile(values, shares) for values in errors.values()])
    axes.set_xlim(ends.min(), ends.max())
    note = f"{trace}; at most {_OUT_OF_SIGHT:.0%} of a predictor's errors are beyond either end"
    below = "predicted less actual run time (hours)"
    finish(axes, "Prediction errors (figure 7.3)", note, x=below, y="share of jobs")
    return figure


def draw_predicted(predictions: Mapping[str, NDArray[np.int64]], trace: str) -> Figure:
    """Figure 7.4: how predicted run times are distributed."""
    values = {"clairvoyant": next(iter(predictions.values()))[1] / HOUR_S}
    values |= {name: given / HOUR_S for name, (given, _) in predictions.items()}
    figure = canvas.new_figure(7, 4.4)
    axes = figure.add_subplot()
    _distributions(axes, values)
    below = "predicted run time (hours)"
    finish(axes, "Predicted run times (figure 7.4)", trace, x=below, y="share of jobs", log="x")
    log_ticks(axes.xaxis, (1,))
    return figure


def _distributions(axes: Axes, values: Mapping[str, NDArray[Any]]) -> None:
    """Draw the share of jobs at or below each value."""
    share = np.linspace(0, 1, _POINTS)
    for name, numbers in values.items():
        colour, dashes = _LINES.get(name, (canvas.PURPLE, "-"))
        # the least value that this share of the jobs is at or below
        at = np.quantile(numbers, share, method="inverted_cdf")
        axes.step(at, share, where="post", color=colour, linestyle=dashes, label=name)
    axes.set_ylim(0, 1)
