"""The study of power caps: what is published, tables beside it, pictures, report, verdicts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import Result, Workload
from hpcgym.benchmarks.energy import powercap
from hpcgym.benchmarks.energy.plans import plans_under
from hpcgym.benchmarks.energy.powercap import EMPTY, Interval
from hpcgym.benchmarks.studies import harness, items, tables
from hpcgym.errors import check_whole
from hpcgym.machine import NodePower, find_cluster
from hpcgym.machine.power_plans import fewest_off, greatest_w
from hpcgym.report import canvas
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.whole_nodes import node_power
from hpcgym.units import DAY_S, HOUR_S
from hpcgym.workload.extracts import recorded_run_time

# --- What Glesser 2016, chapter 4, prints ---------------------------------------------------------

_PRINTED = items.published_values(__file__)
_NOTES = items.notes_of(__file__)

#: Table 4.3: benchmark -> degradation, and rho as printed. Switching off is best in all but "NA".
TABLE_4_3: dict[str, tuple[float, float]] = _PRINTED["table 4.3"]

#: Table 4.1 and section 4.5, of the machine `curie`: what is saved [W] by switching off, how many
#: more nodes the bonus of a chassis and of a rack lets compute, and that of a chassis if 6,600 W
#: are to be saved; of MIX how many times as long jobs take at its lowest frequency, and below which
#: share of the nodes' power it switches off [%].
SECTION_4_5: dict[str, float] = {what: value for what, (value,) in _PRINTED["section 4.5"].items()}

#: Section 4.6.2, of the thesis's intervals.
SECTION_4_6_2 = {what: value for what, (value,) in _PRINTED["section 4.6.2"].items()}

# --- Tables 4.1 to 4.3 and section 4.5 ------------------------------------------------------------


@tables.of_rows
def table_4_3() -> tables.Rows:
    """Return table 4.3, of table 4.2's powers: as printed, and with P_dvfs for what DVFS saves.

    What is printed is rounded, so each rho is given from the least to the greatest that the
    degradation, within 0.005, and the watts, within 0.5, allow.
    """
    nodes = 1_000
    for name, (degradation, printed) in TABLE_4_3.items():
        power = replace(node_power(find_cluster("curie")), slowdown=degradation)
        cap = 0.8 * nodes * power.busy_levels_w[-1]  # enough for all at the lowest frequency
        row: dict[str, Any] = {"benchmark": name, "deg": degradation, "published rho": printed}
        for words, saved in (("as printed", False), ("saved", True)):
            least, most = rho_between(power, degradation, saved=saved)
            within = least - 0.0005 <= printed <= most + 0.0005
            row |= {f"{words}: least rho": least, f"{words}: greatest rho": most}
            row[f"{words}: within rounding"] = "yes" if within else "no"
        row["published best"] = "-" if name == "NA" else "Switch-off"
        off = plans_under(nodes, cap, power).best.off
        row["best by C1 and C3"] = "Switch-off" if off else "DVFS"
        yield row


def rho_between(power: NodePower, degradation: float, *, saved: bool) -> tuple[float, float]:
    """Return the least and the greatest rho of numbers that are rounded.

    1 - 1/deg - (Pmax - Pdvfs) / (Pmax - Poff); ``saved``: with Pmax - Pdvfs for Pdvfs, so that the
    watts at the lowest frequency stand above the line.
    """
    half = (-0.5, 0.5)
    rhos = []
    for d, high, low, off in product((-0.005, 0.005), half, half, half):
        most, least = power.busy_levels_w[-1] + high, power.busy_levels_w[0] + low
        above = least if saved else most - least
        rhos.append(1 - 1 / (degradation + d) - above / (most - power.off_w - off))
    return min(rhos), max(rhos)


def section_4_5() -> pd.DataFrame:
    """Return the numbers of section 4.5, as the models of power here have them."""
    curie = find_cluster("curie")
    power = node_power(curie)
    alone = replace(curie, levels=())
    busy = power.busy_levels_w[-1]

    def off(machine: Any, watts: float) -> int:
        """Return the fewest nodes that are off if so many watts are to be saved."""
        return fewest_off(machine, greatest_w(machine) - watts)

    def saved(machine: Any, nodes: int) -> int:
        """Return the most watts for which that many nodes are enough to be off."""
        enough = bisect_right(range(round(2 * busy * nodes)), nodes, key=partial(off, machine))
        return enough - 1

    chassis, rack = curie.levels[0].of, curie.levels[0].of * curie.levels[1].of
    lowest = power.frequency_ghz.index(2.0)
    ours = (
        saved(alone, 20),
        saved(curie, chassis),
        saved(curie, rack),
        (saved(curie, chassis) - saved(alone, chassis)) // busy,
        (saved(curie, rack) - saved(alone, rack)) // busy,
        off(alone, 6_600) - off(curie, 6_600),
        power.slowdowns[lowest],
        100 * power.busy_levels_w[lowest] / busy,
    )
    rows = zip(SECTION_4_5, ours, SECTION_4_5.values(), strict=True)
    return pd.DataFrame(rows, columns=["what", "ours", "thesis"])


# --- What happens in intervals, and what the text says of it --------------------------------------

SHAPES = [name for name, hours in powercap.INTERVALS.items() if hours < 24]
SWITCHING = ["SHUT", "DVFS", "MIX"]  # all but leaving nodes idle
#: Measure of figure 4.6 -> its label there.
FIGURE_4_6 = {
    "energy": "energy / possible",
    "launched": "launched / most",
    "work": "work / possible",
}


@tables.of_rows
def rows_of(tasks: harness.Tasks, outcomes: harness.Tasks) -> tables.Rows:
    """Return what :func:`powercap.measure` found, normalised as in figure 4.6, a row for each run.

    Energy and work are over those of a machine that is busy throughout, launched jobs over the most
    that any run of the interval launches.
    """
    for task, outcome in zip(tasks, outcomes, strict=True):
        most = max(row["launched"] for row in outcome["rows"]) or 1
        known = {"trace": task["trace"], "begins": task["begins"], "interval": task["kind"]}
        for row in outcome["rows"]:
            of = {name: row[name] for name in ("cap", "policy", "exceeded_s")}
            of |= {"energy": row["energy_j"] / outcome["possible_j"], "jobs": row["launched"]}
            of |= {name: row[name] / outcome["possible_work"] for name in ("work", "computed")}
            yield known | of | {"launched": row["launched"] / most}


def figure_4_6(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the values of figure 4.6: means over intervals of the same kind."""
    of = ["trace", "begins", "interval", "cap", "policy"]
    runs = rows.groupby(of, sort=False)
    means = runs[[*FIGURE_4_6, "computed", "jobs"]].mean().rename(columns=FIGURE_4_6)
    means = means.rename(columns={"computed": "computed / possible", "jobs": "launched jobs"})
    work = runs["work"].agg(lambda values: tables.interval(values.to_numpy()))
    means.insert(3, "95 % interval of the work", work)
    means["above the cap (min)"] = runs["exceeded_s"].mean() / 60
    table = means.reset_index()
    table["cap"] = [f"{cap:.0%}" for cap in table["cap"]]
    return table


def of_intervals(tasks: harness.Tasks) -> pd.DataFrame:
    """Return what the intervals are like, and those of the thesis."""
    rows: list[dict[str, Any]] = [{"trace": "thesis", "interval": "all", **SECTION_4_6_2}]
    for task in tasks:
        if task["begins"] == EMPTY:
            rows.append({"trace": task["trace"], "interval": task["kind"], **task["interval"]})
    table = pd.DataFrame(rows).rename(columns=_FACTS)
    for column in ("end", "begin"):
        hours = [f"{x / HOUR_S:g}" if x == x else "" for x in table.pop(column)]
        table.insert(2, f"{column} (hour)", hours)
    return table


_FACTS = {
    "small": "share of small jobs",
    "backlog": "least cores waiting / machine",
    "busy": "cores in use / machine",
    "short": "share of small and short jobs",
    "huge": "share of huge jobs",
    "longer": "requested / run time, mean",
    "median_longer": "requested / run time, median",
}


#: Sentences of sections 4.6.3 and 4.7: see :func:`tables.checked`.
ITEMS = ("figure 4.6", "section 4.7", "section 4.6.3, 24 hours")
SENTENCES = items.csv_rows(__file__, "sentences.csv", ITEMS)


def frames_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what the sentences are about, of the runs of a trace with one beginning.

    Columns are "work_SHUT" and the like, means over intervals of a kind; without a cap all policies
    are one. "fall_work_SHUT": how much less it is than under the next higher cap.

    Returns
    -------
    frames : "cells", of each kind of interval of 5 hours and cap; "caps", their means, where
        "done_SHUT" is work over energy; "mean", over all cells with a cap: "cost_SHUT", energy over
        work, and "deviation_SHUT", of work; "day", of 24 hours by cap; "launched", of medianjob:
        without a cap, DVFS under the highest one, and the least of all others.
    """
    names = ["energy", "work", "launched"]
    means: Any = rows.groupby(["interval", "cap", "policy"])[names].mean().unstack("policy")
    wide = {name: means[name].bfill(axis=1).ffill(axis=1) for name in names}
    cells = pd.concat([wide[name].add_prefix(f"{name}_") for name in names], axis=1)
    falls = -cells.groupby("interval").diff(-1)
    cells = cells.join(falls.add_prefix("fall_"))
    day = cells.index.get_level_values("interval") == "24h"
    shapes = cells[~day]
    caps = shapes.groupby("cap").mean()
    capped = shapes[shapes.index.get_level_values("cap") < 1]
    mean = {}
    for name in SWITCHING:
        caps[f"done_{name}"] = caps[f"work_{name}"] / caps[f"energy_{name}"]
        mean[f"cost_{name}"] = (capped[f"energy_{name}"] / capped[f"work_{name}"]).mean()
        mean[f"deviation_{name}"] = capped[f"work_{name}"].std(ddof=0)
    frames = {"cells": shapes, "caps": caps, "day": cells[day]}
    frames["mean"] = pd.DataFrame([mean] * bool(len(capped)))
    return {**frames, "launched": _launched(wide["launched"][SWITCHING])}


def _launched(launched: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that medianjob launches without a cap, with DVFS at the highest, and else."""
    if "medianjob" not in launched.index:
        return pd.DataFrame()
    runs: Any = launched.loc["medianjob"].stack()
    *_, high, plain = runs.index.levels[0]
    others = runs.drop(plain).drop((high, "DVFS"))
    row = {"uncapped": runs[plain, "DVFS"], "DVFS": runs[high, "DVFS"], "others": others.min()}
    return pd.DataFrame([row])


def statements(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what sections 4.6.3 and 4.7 say, and whether it is so here, for each reading."""
    findings = {
        f"{trace}, {begins}": tables.checked(SENTENCES, frames_of(part))
        for (trace, begins), part in rows.groupby(["trace", "begins"], sort=False)
    }
    return tables.statements_table(SENTENCES, findings)


# --- The pictures of the study of power caps ------------------------------------------------------

_COLOURS = {
    "SHUT": canvas.BLUE,
    "DVFS": canvas.VERMILLION,
    "MIX": canvas.GREEN,
    "none": canvas.DARK_GREY,
}
_STATES = {"above nodes": canvas.DARK_GREY, "idle": canvas.LIGHT_GREY, "off": "#9A9A9A"}
_SLOW, _FAST = np.array([0.81, 0.90, 0.96]), np.array([0, 0.27, 0.44])

Steps = Mapping[str, NDArray[np.float64]]


def nodes_by_state(result: Result) -> Steps:
    """Return how many nodes are in which state, from each time of the books to the next.

    States are "busy_..." as in the books, by frequency, the lowest first, "idle" and "off", which
    includes those that switch.
    """
    power, watts = node_power(result.cluster), result.books.watts()
    busy = [name for name in watts if name.startswith("busy")]
    nodes = {name: watts[name] / w for name, w in zip(busy, power.busy_levels_w, strict=True)}
    nodes["idle"] = watts["idle"] / power.idle_w
    return {**nodes, "off": result.cluster.nodes - np.sum(list(nodes.values()), axis=0)}


def draw_interval(result: Result, interval: Interval, heading: str) -> canvas.Figure:
    """Draw nodes and power over an interval under a cap, as figures 4.4 and 4.5 do."""
    (cap,) = (limit for limit in result.limits or () if isinstance(limit, PowerCap))
    figure = canvas.new_figure(9, 5.6)
    above, below = figure.subplots(2, 1, sharex=True)
    times, nodes, watts = result.books.time, nodes_by_state(result), result.books.watts()
    busy = [name for name in nodes if name.startswith("busy")]
    cores = result.cluster.processors / result.cluster.nodes
    hours = (times - interval.begin) / HOUR_S
    seen = (times[:-1] < interval.end) & (times[1:] > interval.begin)
    used = {name: nodes[name] * cores / 1e3 for name in (*reversed(busy), "idle", "off")}
    rest = np.sum([watts[name] for name in watts if name not in (*busy, "idle", "components")], 0)
    drawn = {"above nodes": watts["components"], "idle": watts["idle"], "off": rest}
    drawn = {name: of / 1e6 for name, of in (drawn | {name: watts[name] for name in busy}).items()}
    for axes, levels in ((above, used), (below, drawn)):
        _stack(axes, hours, {name: of for name, of in levels.items() if of[seen].any()}, busy)
    above.set_ylim(0, 1.03 * result.cluster.processors / 1e3)
    tables.finish(above, heading, y="cores (thousands)")
    most = greatest_w(result.cluster) / 1e6
    window = [(moment - interval.begin) / HOUR_S for moment in (cap.start, cap.end or interval.end)]
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": canvas.BLACK, "linewidth": 0.6}
    below.fill_between(window, cap.watts / 1e6, most, hatch="///", label="not to be used", **style)
    below.set_ylim(0, 1.03 * most)
    below.set_xlim(0, (interval.end - interval.begin) / HOUR_S)
    canvas.legend_above(below, below.get_legend_handles_labels()[1])
    tables.finish(below, x="hours of the interval", y="power (MW)")
    return figure


def _stack(axes: canvas.Axes, hours: NDArray[Any], levels: Steps, busy: Sequence[str]) -> None:
    """Draw step functions one on the other, from below; busy nodes are the darker the faster."""
    under: NDArray[Any] = np.zeros(len(hours))
    shades = dict(zip(busy, np.linspace(0, 1, len(busy)), strict=True))
    for name, values in levels.items():
        over = under + np.append(values, values[-1:])
        colour: Any = _STATES.get(name)
        if name in shades:
            colour = tuple(_SLOW + shades[name] * (_FAST - _SLOW))
        label = name.replace("busy_", "").replace("ghz", " GHz")
        axes.fill_between(hours, under, over, step="post", color=colour, linewidth=0, label=label)
        under = over


def draw_4_6(rows: pd.DataFrame, heading: str) -> canvas.Figure:
    """Figure 4.6: energy, launched jobs and work by interval, cap and policy."""
    names = [name for name in SHAPES if (rows["interval"] == name).any()]
    figure = canvas.new_figure(9, 1.2 + 2.6 * len(names))
    panels = figure.subplots(len(names), len(FIGURE_4_6), sharey="row", sharex="col", squeeze=False)
    for line, name in zip(panels, names, strict=True):
        for axes, what in zip(line, FIGURE_4_6, strict=True):
            _bars(axes, rows[rows["interval"] == name], what)
            canvas.plain(axes, grid="x")
            axes.set_xlim(0, 1.02)
        line[0].set_ylabel(name)
    for axes, label in zip(panels[-1], FIGURE_4_6.values(), strict=True):
        axes.set_xlabel(label)
    tables.heading_above(figure, f"{heading}; lines: 95 % of resampled intervals")
    handles, labels = panels[0][0].get_legend_handles_labels()
    tables.legend_below(figure, handles, labels, len(labels))
    return figure


def _bars(axes: canvas.Axes, rows: pd.DataFrame, measure: str) -> None:
    """Draw a bar for each cap and policy, from above."""
    place, ticks = 0.0, []
    for cap, part in sorted(rows.groupby("cap"), reverse=True):
        begin = place
        for policy, of in part.groupby("policy", sort=False)[measure]:
            low, high = np.percentile(tables.resampled(of.to_numpy()), [2.5, 97.5])
            middle = of.mean()
            error = [[max(middle - low, 0)], [max(high - middle, 0)]]
            label = policy if cap == rows["cap"].min() else None
            style: dict[str, Any] = {"ecolor": canvas.BLACK, "error_kw": {"linewidth": 0.8}}
            axes.barh(
                place, middle, 0.8, xerr=error, color=_COLOURS[str(policy)], label=label, **style
            )
            place += 1
        ticks.append(((begin + place - 1) / 2, f"{cap:.0%}"))
        place += 0.7
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    axes.set_ylim(place - 1.2, -0.6)


def draw_log(workload: Workload, of: Interval, days: int = 4) -> canvas.Figure:
    """Figure 3.1: cores in use and cores that wait by a log, some days around an interval."""
    moments = np.arange(of.begin - days * DAY_S, of.end + days * DAY_S, HOUR_S // 4)
    start = workload.submit_time + np.maximum(workload.wait_time, 0)
    end, cores = start + recorded_run_time(workload), workload.requested_processors
    figure = canvas.new_figure(9, 4.4)
    panels = figure.subplots(2, 1, sharex=True)

    def so_far(times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cores of all jobs up to each moment, by these times of theirs."""
        order = np.argsort(times)
        counted = np.concatenate([[0], np.cumsum(cores[order])])
        return counted[np.searchsorted(times[order], moments, "right")]

    for axes, name, begins, ends in (
        (panels[0], "cores in use", start, end),
        (panels[1], "cores that wait", workload.submit_time, start),
    ):
        level = (so_far(begins) - so_far(ends)) / 1e3
        axes.step((moments - of.begin) / DAY_S, level, where="post", color=canvas.BLUE)
        for at in (0, (of.end - of.begin) / DAY_S):
            axes.axvline(at, color=canvas.BLACK, linestyle=":", linewidth=1)
        tables.finish(axes, y=f"{name} (thousands)")
    tables.heading_above(figure, f"{workload.name} around an interval of 24 h (figure 3.1)")
    tables.finish(panels[1], x="days from its beginning")
    return figure


# --- The whole study ------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, "powercap.md")

#: Intervals of each kind; the jobs and the cap of a cut.
NUMBER = 10
QUICK, QUICK_JOBS, QUICK_CAPS = "medianjob", 40_000, (0.6,)

#: Interval, cap and policy of a picture -> what figure of the thesis it is like.
_DRAWN = {
    ("24h", 0.4, "MIX"): "figure 4.4",
    ("bigjob", 0.6, "SHUT"): "figure 4.5a",
    ("smalljob", 0.4, "DVFS"): "figure 4.5b",
}


def reproduce(
    sources: Sequence[str],
    folder: harness.Folder,
    *,
    cluster: str = "curie",
    number: int = NUMBER,
    quick: bool = False,
) -> harness.Studied:
    """Run the study; see :mod:`hpcgym.benchmarks.studies.harness`.

    Parameters
    ----------
    sources : traces, files or generators.
    folder : where the study is run.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    number : of intervals of each kind, at most.
    quick : one interval, one cap.

    Raises
    ------
    HpcgymError : a source is too short, or larger than the machine, too.
    """
    check_whole("number", number, 1)
    folder.begin(HEAD)
    tasks = _tasks(sources, cluster, 1 if quick else number, quick)
    rows = rows_of(tasks, folder.run(powercap.measure, tasks, "intervals", chunk=1))
    made = {
        "statements": statements(rows),
        "4.6": figure_4_6(rows),
        "4.3": table_4_3(),
        "4.5": section_4_5(),
        "intervals": of_intervals(tasks),
    }
    readings = [f"- *{name}*: {meaning}." for name, meaning in powercap.STARTS.items()]
    hours = ", ".join(f"{name} {of} h" for name, of in powercap.INTERVALS.items())
    head = HEAD.format(cluster=find_cluster(cluster).name, busy=powercap.BUSY)
    head += "\n" + "\n".join(readings) + f"\n\nIntervals: {hours}.\n"
    pictures = folder.pictures(_drawn(rows, tasks))
    return folder.publish(head, made, TEXTS, pictures, "one interval, one cap" * quick)


def _tasks(sources: Sequence[str], cluster: str, number: int, quick: bool) -> list[dict[str, Any]]:
    """Return the tasks: each interval, with each beginning."""
    machine = find_cluster(cluster)
    node_power(machine)  # which says what is wrong before anything is simulated
    jobs = QUICK_JOBS if quick else None
    given = {"caps": list(QUICK_CAPS if quick else powercap.CAPS), "cluster": cluster, "jobs": jobs}
    load = partial(powercap.load, machine=machine, jobs=jobs)
    return [
        harness.task_of(
            source, workload, begins=begins, kind=kind, interval=asdict(chosen), **given
        )
        for source, workload in harness.load_sources(sources, load).items()
        for kind in ([QUICK] if quick else powercap.INTERVALS)
        for chosen in powercap.choose(workload, machine.processors, kind, number)
        for begins in powercap.STARTS
    ]


def _drawn(rows: pd.DataFrame, tasks: list[dict[str, Any]]) -> harness.Drawn:
    """Draw the pictures."""
    for (trace, begins), part in rows.groupby(["trace", "begins"], sort=False):
        of, file = f"{trace}, {begins}", f"{harness.folder_name(f'{trace}-{begins}')}.png"
        yield f"Figure 4.6: {of}", f"figure-4.6-{file}", draw_4_6(part, of)
    first = {(t["trace"], t["kind"]): t for t in reversed(tasks) if t["begins"] == EMPTY}
    for (trace, kind), task in first.items():
        cluster, workload, interval = powercap.inputs_of(task)
        if kind == "24h":
            file = f"figure-3.1-{harness.folder_name(trace)}.png"
            yield f"Figure 3.1: {trace}", file, draw_log(workload, interval)
        for (name, cap, policy), figure in _DRAWN.items():
            if name == kind and cap in task["caps"]:
                heading = f"{name}, {policy}, a cap of {cap:.0%} (as {figure}): {trace}"
                result = powercap.capped(workload, cluster, interval, cap, policy, EMPTY)
                file = f"{harness.folder_name(f'{name}-{policy}-{trace}')}.png"
                yield heading, file, draw_interval(result, interval, heading)


# --- The items of Glesser 2016, chapter 4, and their verdicts -------------------------------------


def _table_4_3(stored: items.Stored) -> items.Verdict:
    """Table 4.3: whether rho follows from the document's own equation and watts."""
    printed, saved = (f"{name}: within rounding" for name in ("as printed", "saved"))
    names = (printed, saved, "saved: greatest rho", "published best", "best by C1 and C3")
    table = stored.table("table-4.3", "benchmark", *names)
    follow, other = (int((table[name] == "yes").sum()) for name in (printed, saved))
    rows = table[table["published best"] != "-"]
    off = rows.loc[rows["published best"] == rows["best by C1 and C3"], "benchmark"]
    negative = int((rows["saved: greatest rho"] < 0).sum())
    counts = {"follow": follow, "number": len(table), "other": other, "negative": negative}
    counts |= {"off": len(off), "rows": len(rows)}
    words = _NOTES["rho"].format(**counts, names=", ".join(off))
    if follow < len(table) == other:
        return items.Verdict(items.CONTRADICTION, words)
    return items.of_count(negative, len(rows), "mechanisms as published", words)


def _section_4_5(stored: items.Stored) -> items.Verdict:
    """Section 4.5: each value, to its own digits."""
    table = stored.table("table-4.5", "what", "ours", "thesis")
    shown = [
        round(ours, 2 if thesis < 2 else 0) for ours, thesis in table[["ours", "thesis"]].to_numpy()
    ]
    verdict = items.of_values(shown, table["thesis"], 0, "numbers")
    return verdict._replace(why=_NOTES["watts"].format(why=verdict.why))


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "figure 3.1": items.of_picture("figure-3.1-CEA-Curie.png"),
    "section 4.5": _section_4_5,
    "table 4.3": _table_4_3,
    "figure 4.4": items.of_picture("24h-MIX-CEA-Curie.png"),
    "figure 4.5": items.of_picture("bigjob-SHUT-CEA-Curie.png", "smalljob-DVFS-CEA-Curie.png"),
    **{item: items.said(item) for item in ITEMS},
}
