"""Tables, pictures and report: fronts, what was chosen early and reached late, and who pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.frontier import runs
from hpcgym.benchmarks.studies.tables import finish, legend_below, read_texts, table_sections
from hpcgym.report.canvas import BLACK, DARK_GREY, LINE_COLOURS, new_figure
from hpcgym.schedule.gains import Felt, gain
from hpcgym.study.intervals import mean_of
from hpcgym.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- Which rules nobody beats in everything -------------------------------------------------------

#: What is weighed against each other, all of which should be small.
AIMS = ("mean_bsld", "mean_wait_h", "p99_wait_h", "max_wait_h")
#: What tables of all logs have: the last tells whether wide jobs starve.
SHOWN = (*AIMS, "area_weighted_wait_h")
#: How many times as much as under EASY a chosen rule may have.
AT_MOST = {"mean_wait_h": 1.0, "p99_wait_h": 1.5, "max_wait_h": 1.5}


def means_of(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return the means over the variants of a log of one part of it, a row for each rule."""
    those = rows[rows["part"] == part].drop(columns=["part", "start_week", "seed"])
    return those.groupby("rule", sort=False).mean()


def front_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rules than which no other is at least as good in all aims, and better in one.

    ``table`` : a row for each rule, with the columns AIMS.
    """
    values: NDArray[np.float64] = table[list(AIMS)].to_numpy()
    kept = [not ((values <= row).all(axis=1) & (values < row).any(axis=1)).any() for row in values]
    return table[kept].sort_values("mean_bsld")


def ratios_to_reference(table: pd.DataFrame, aims: Sequence[str] = AIMS) -> pd.DataFrame:
    """Return how many times as much as under EASY each rule has of each aim."""
    return table[list(aims)] / table.loc[runs.REFERENCE, list(aims)]


def chosen(logs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return all rules that keep the bounds on the early parts of all logs, the best first.

    The best has the least geometric mean, over the logs, of its mean bounded slowdown divided by
    EASY's. The late parts are not looked at.

    Parameters
    ----------
    logs : name -> rows of all rules, variants and parts.

    Returns
    -------
    A row for each rule, "rule" its index: "slowdown / EASY's", and of each aim with a bound the
    greatest of the logs, divided by EASY's.
    """
    ratios = [ratios_to_reference(means_of(rows, "early")) for rows in logs.values()]
    found = pd.DataFrame(
        {
            "slowdown / EASY's": np.exp(
                np.mean([np.log(each["mean_bsld"].to_numpy()) for each in ratios], axis=0)
            ),
            **{
                f"{aim} / EASY's, greatest": np.max([each[aim].to_numpy() for each in ratios], 0)
                for aim in AT_MOST
            },
        },
        index=ratios[0].index,
    )
    keeps = np.logical_and.reduce(
        [found[f"{aim} / EASY's, greatest"] <= most for aim, most in AT_MOST.items()]
    )
    return found[keeps].sort_values("slowdown / EASY's")


def chosen_alone(logs: Mapping[str, pd.DataFrame]) -> dict[str, str | None]:
    """Return the rule that is chosen on the early part of each log by itself, None if none is."""
    return {log: next(iter(chosen({log: rows}).index), None) for log, rows in logs.items()}


# --- The tables -----------------------------------------------------------------------------------

HEADS = {
    "mean_bsld": "mean BSLD",
    "mean_wait_h": "mean wait h",
    "p99_wait_h": "99th percentile h",
    "max_wait_h": "longest wait h",
    "area_weighted_wait_h": "area-weighted wait h",
    "users_p90_wait_h": "90th percentile of users' mean waits h",
    "utilization": "utilisation",
}
NOBODY = "no rule keeps the bounds on all early parts"


def _head(aim: str) -> str:
    """Return what an aim is called without its unit."""
    return HEADS[aim].removesuffix(" h")


def named(logs: Mapping[str, pd.DataFrame], best: str | None) -> pd.DataFrame:
    """Return the named rules, and the chosen one, on the whole logs as they are."""
    names = [rule.name for rule in runs.named_rules()] + ([best] if best else [])
    tables = []
    for log, rows in logs.items():
        as_is = rows[(rows["part"] == "whole") & (rows["start_week"] == 0) & (rows["seed"] == 0)]
        table = as_is.set_index("rule").reindex(list(dict.fromkeys(names))).dropna(how="all")
        tables.append(_shown(table[list(HEADS)], log))
    return pd.concat(tables, ignore_index=True)


def over_logs(logs: Mapping[str, pd.DataFrame], part: str = "whole") -> pd.DataFrame:
    """Return for each rule what a part of each log has of each aim, divided by EASY's.

    Geometric means, and the greatest of the logs.
    """
    found: dict[str, dict[str, float]] = {}
    tables = [ratios_to_reference(means_of(rows, part), SHOWN) for rows in logs.values()]
    for rule, ratios in pd.concat(tables).groupby(level=0, sort=False):
        row = found.setdefault(str(rule), {})
        for aim in SHOWN:
            row[f"{_head(aim)} / EASY's"] = float(np.exp(np.log(ratios[aim].to_numpy()).mean()))
        for aim in SHOWN:
            row[f"{_head(aim)} / EASY's, greatest"] = float(ratios[aim].max())
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("rule").reset_index()


def gains(late: Mapping[str, Mapping[str, Felt]]) -> pd.DataFrame:
    """Return what each rule gains on EASY, week by week of the late parts, under the gate.

    Parameters
    ----------
    late : log -> rule -> what the jobs of its late part felt.

    Returns
    -------
    A row for each rule, by :mod:`hpcgym.schedule.gains`: "gain", the mean over logs of the mean
    over weeks, where a log whose gate is broken counts as 0; "low" and "high", the ends of its
    interval; "without the gate"; a column for each log, without the gate; "breaks the gate", where
    and how.
    """
    rows = []
    for rule in dict.fromkeys(rule for rules in late.values() for rule in rules):
        of = {log: gain(rules[runs.REFERENCE], rules[rule]) for log, rules in late.items()}
        value, low, high = mean_of([one.counted for one in of.values()])
        of_log = {log: mean_of([one.weeks]).value for log, one in of.items()}
        told = [f"{log}: {', '.join(one.broken)}" for log, one in of.items() if one.broken]
        rows.append(
            {
                "rule": rule,
                **{"gain": value, "low": low, "high": high},
                "without the gate": float(np.mean(list(of_log.values()))),
                **of_log,
                "breaks the gate": "; ".join(told),
            }
        )
    return pd.DataFrame(rows)


def fronts(logs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rules of each log that no other beats in all aims, means over variants."""
    return pd.concat(
        [_shown(front_of(means_of(rows, "whole"))[list(HEADS)], log) for log, rows in logs.items()],
        ignore_index=True,
    )


def _shown(table: pd.DataFrame, log: str) -> pd.DataFrame:
    """Return a table with heads for people, and the log in front."""
    shown = table.rename(columns=HEADS).reset_index()
    shown.insert(0, "log", log)
    return shown


def choices(found: pd.DataFrame, number: int = 10) -> pd.DataFrame:
    """Return the first rules of :func:`chosen`, with heads for people."""
    table = found.head(number).reset_index()
    return table.rename(
        columns={f"{aim} / EASY's, greatest": f"{_head(aim)} / EASY's, greatest" for aim in AT_MOST}
    )


def held_out(logs: Mapping[str, pd.DataFrame], rules: Mapping[str, str | None]) -> pd.DataFrame:
    """Return what a rule for each log reaches on the late parts, against EASY.

    Values are means over the variants, with the least and the greatest of them.
    """
    rows = []
    for log, all_rows in logs.items():
        best = rules[log]
        if best is None:
            continue
        late = all_rows[all_rows["part"] == "late"].set_index(["start_week", "seed"])
        ours, easy = late[late["rule"] == best], late[late["rule"] == runs.REFERENCE]
        row: dict[str, Any] = {"log": log, "rule": best}
        for aim in AIMS:
            ratio = (ours[aim] / easy[aim]).to_numpy()
            row[f"{_head(aim)} / EASY's"] = float(ratio.mean())
            row[f"{_head(aim)}, least to greatest"] = f"{ratio.min():.2f} to {ratio.max():.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


def who_pays(logs: Mapping[str, pd.DataFrame], best: str | None) -> pd.DataFrame:
    """Return mean waits [h] of classes of jobs under EASY, SAF and the chosen rule."""
    rules = [runs.REFERENCE, "saf", "saf-typical", *([best] if best else [])]
    rows = []
    for log, all_rows in logs.items():
        means: Any = means_of(all_rows, "whole")
        for name in (*runs.RUN_TIMES_H, *runs.WIDTHS):
            row: dict[str, Any] = {"log": log, "jobs": f"run {name}" if " h" in name else name}
            for rule in dict.fromkeys(rules):
                if rule in means.index:
                    row[f"wait h, {rule}"] = float(means.loc[rule, f"mean_wait_h, {name}"])
            rows.append(row)
    return pd.DataFrame(rows)


def extra_processors(
    logs: Mapping[str, pd.DataFrame], rules: Mapping[str, runs.Rule]
) -> pd.DataFrame:
    """Return each order with and without extra processors, means over variants of whole logs."""
    rows = []
    for log, all_rows in logs.items():
        means: Any = means_of(all_rows, "whole")
        for order in _orders(rules):
            one = means.loc[runs.Rule(order).name]
            other = means.loc[runs.Rule(order, backfill="until-shadow").name]
            rows.append(
                {
                    "log": log,
                    "rule": order,
                    **{HEADS[aim]: float(one[aim]) for aim in AIMS},
                    **{f"{HEADS[aim]}, until shadow": float(other[aim]) for aim in AIMS},
                }
            )
    return pd.DataFrame(rows)


def levers(logs: Mapping[str, pd.DataFrame], rules: Mapping[str, runs.Rule]) -> pd.DataFrame:
    """Return what threshold and hold do to each order: medians over the other rules, and logs.

    Ratios of a rule to the same rule without its threshold, or without its hold; ``rules`` are all
    by their names.
    """
    rows = []
    means: list[Any] = [means_of(all_rows, "whole") for all_rows in logs.values()]
    for what, without in (("threshold_h", None), ("share", 0.0)):
        usual: dict[str, Any] = {what: without}
        values: list[Any] = sorted({getattr(rule, what) for rule in rules.values()} - {without})
        for order, value in product(_orders(rules), values):
            pairs = [
                (rule.name, rule._replace(**usual).name)
                for rule in rules.values()
                if rule.order == order and getattr(rule, what) == value
            ]
            if not pairs:  # the oldest first has no threshold
                continue
            row: dict[str, Any] = {"order": order, "lever": _lever(what, value)}
            for aim in AIMS:
                ratios = [
                    table.loc[one, aim] / table.loc[other, aim]
                    for table in means
                    for one, other in pairs
                ]
                row[f"{_head(aim)} ratio"] = float(np.median(ratios))
            rows.append(row)
    return pd.DataFrame(rows)


def _orders(rules: Mapping[str, runs.Rule]) -> list[str]:
    """Return the orders of some rules, each once."""
    return list(dict.fromkeys(rule.order for rule in rules.values()))


def _lever(what: str, value: float) -> str:
    """Return what one of the two levers is called."""
    return f"threshold {value} h" if what == "threshold_h" else f"hold {value:g}"


def relative(logs: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return for each log the aims of all rules divided by EASY's, means over variants."""
    return {log: ratios_to_reference(means_of(rows, "whole")) for log, rows in logs.items()}


# --- The pictures ---------------------------------------------------------------------------------

_ACROSS = {"max_wait_h": "longest wait / EASY's", "p99_wait_h": "99th percentile of waits / EASY's"}


def draw_front(
    table: pd.DataFrame, rules: dict[str, runs.Rule], log: str, best: str | None
) -> Figure:
    """Each rule's mean bounded slowdown against its tails, all divided by EASY's.

    Parameters
    ----------
    table : a row for each rule, of :func:`ratios_to_reference`.
    rules : what is in its index.
    best : the chosen rule, which gets a circle.
    """
    figure = new_figure(10, 5)
    for place, (aim, label) in enumerate(_ACROSS.items()):
        axes = figure.add_subplot(1, 2, place + 1)
        _scatter(axes, table, rules, aim)
        front = front_of(table).sort_values([aim, "mean_bsld"])
        lower = front[front["mean_bsld"].cummin() == front["mean_bsld"]]
        axes.plot(lower[aim], lower["mean_bsld"], color=DARK_GREY, linewidth=0.8, zorder=1)
        if best:
            chosen = table.loc[best]
            axes.scatter(
                chosen[aim], chosen["mean_bsld"], s=110, facecolors="none", edgecolors=BLACK,
                label="chosen on the early parts", zorder=4,
            )  # fmt: skip
        axes.axvline(1, color=DARK_GREY, linewidth=0.5, linestyle=":")
        axes.axhline(1, color=DARK_GREY, linewidth=0.5, linestyle=":")
        finish(axes, x=label, y="mean bounded slowdown / EASY's", log="xy", grid=None)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend_below(figure, handles, labels, 7)
    figure.suptitle(
        f"Rules on {log}. Triangles hold long jobs back; the line: the best for each tail"
    )
    return figure


def _scatter(axes: Axes, table: pd.DataFrame, rules: dict[str, runs.Rule], aim: str) -> None:
    """Draw a mark for each rule: colours are orders, triangles hold long jobs back."""
    for order, colour in zip(runs.ORDERS, LINE_COLOURS, strict=False):
        for holds, marker in ((False, "o"), (True, "^")):
            names = [
                name
                for name, rule in rules.items()
                if rule.order == order and bool(rule.share) == holds and name in table.index
            ]
            if names:
                axes.scatter(
                    table.loc[names, aim], table.loc[names, "mean_bsld"], s=16, color=colour,
                    marker=marker, linewidths=0, alpha=0.8, zorder=2,
                    label=None if holds else order,
                )  # fmt: skip


# --- The report: tables and pictures of all rules on whole logs -----------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, _TEXTS = read_texts(
    __file__,
    bounds=", ".join(f"{aim} at most {most:g} times EASY's" for aim, most in AT_MOST.items()),
)


def report_text(
    made: Mapping[str, pd.DataFrame], pictures: Mapping[str, Path], best: str | None, quick: bool
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    made : the tables by name.
    pictures : log -> file.
    best : the rule that is chosen, None if none keeps the bounds.
    quick : whether this is a small cut.
    """
    parts = [HEAD.format(version=__version__)]
    if quick:
        parts.append("**A quick cut: the first jobs, few rules. Nothing to go by.**\n")
    if "choices" in made:
        parts.append(f"Chosen on the early parts: **{best or NOBODY}**.\n")
    for log, file in pictures.items():
        parts.append(f"![{log}]({file.as_posix()})\n")
    filled = {name: table for name, table in made.items() if table.shape[1] > 1}
    return "\n".join(parts + table_sections(filled, _TEXTS))
