"""The study of power caps: what is published, tables beside it, pictures, report, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.energy import powercap
from hpcgym.benchmarks.energy.plans import plans_under
from hpcgym.benchmarks.energy.powercap import EMPTY, LOGGED, Interval
from hpcgym.benchmarks.studies import items, tables
from hpcgym.benchmarks.studies.harness import Folder, folder_name, load_sources, task_of
from hpcgym.benchmarks.studies.tables import interval
from hpcgym.errors import HpcgymError
from hpcgym.machine.files import find_cluster
from hpcgym.machine.power import NodePower
from hpcgym.machine.power_plans import fewest_off, greatest_w, rho
from hpcgym.naming import DAY_S, HOUR_S
from hpcgym.report import canvas
from hpcgym.schedule.runs import STATE_NAMES
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.on_machines import node_power
from hpcgym.version import __version__
from hpcgym.workload.extracts import recorded_run_time
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result


# --- What Glesser 2016, chapter 4, prints ---------------------------------------------------------

#: Table 4.3: benchmark -> degradation, and rho as printed. Switching off is best in all but "NA".
TABLE_4_3: dict[str, tuple[float, float]] = items.published_values(__file__)["table 4.3"]

#: Table 4.1 and section 4.5, of the machine `curie`: what is saved [W] by switching off, how many
#: more nodes the bonus of a chassis and of a rack lets compute; of MIX how many times as long jobs
#: take at its lowest frequency, and below which share of the nodes' power it switches off [%].
SECTION_4_5 = {
    "20 nodes off (W)": 6_880,
    "a chassis off (W)": 6_692,
    "a rack off (W)": 34_360,
    "more nodes, chassis": 1,
    "more nodes, rack": 9,
    "MIX: degradation": 1.29,
    "MIX: both below (%)": 75,
}

#: Section 4.6.2, of the thesis's intervals.
SECTION_4_6_2 = {"short": 0.69, "huge": 0.001, "longer": 12_670.0, "median_longer": 12_000.0}

#: Section 4.6.3: by how much less is computed if nodes can only be left idle; work of the 24 hours
#: under a cap of 40 %, of what is possible.
NONE_LESS = 0.40
DAY_WORK = {"SHUT": 0.94, "DVFS": 0.85, "MIX": 0.85}

# --- Tables 4.1 to 4.3 and section 4.5 ------------------------------------------------------------


def curie_power() -> NodePower:
    """Return the powers of a node of Curie (table 4.2)."""
    power = find_cluster("curie").groups[0].power
    assert power is not None
    return power


def table_4_3() -> pd.DataFrame:
    """Return table 4.3, of table 4.2's powers: as printed, and with P_dvfs for what DVFS saves.

    What is printed is rounded, so each rho is given from the least to the greatest that the
    degradation, within 0.005, and the watts, within 0.5, allow.
    """
    nodes, rows = 1_000, []
    for name, (degradation, printed) in TABLE_4_3.items():
        power = replace(curie_power(), slowdown=degradation)
        cap = 0.8 * nodes * power.busy_levels_w[-1]  # enough for all at the lowest frequency
        row: dict[str, Any] = {"benchmark": name, "deg": degradation, "published rho": printed}
        for words, saved in (("as printed", False), ("saved", True)):
            least, most = rho_between(power, degradation, saved=saved)
            within = least - 0.0005 <= printed <= most + 0.0005
            row |= {f"{words}: least rho": least, f"{words}: greatest rho": most}
            row[f"{words}: within rounding"] = "yes" if within else "no"
        plans = plans_under(nodes, cap, power)
        row |= {"published best": "-" if name == "NA" else "Switch-off"}
        row["best by C1 and C3"] = "Switch-off" if plans.best.off else "DVFS"
        row["rho, by equation"] = rho(power)
        rows.append(row)
    return pd.DataFrame(rows)


def rho_between(power: NodePower, degradation: float, *, saved: bool) -> tuple[float, float]:
    """Return the least and the greatest rho of numbers that are rounded.

    1 - 1/deg - (Pmax - Pdvfs) / (Pmax - Poff); ``saved``: with Pmax - Pdvfs for Pdvfs, so that the
    watts at the lowest frequency stand above the line.
    """
    half = (-0.5, 0.5)
    found = []
    for d, high, low, off in product((-0.005, 0.005), half, half, half):
        most, least = power.busy_levels_w[-1] + high, power.busy_levels_w[0] + low
        above = least if saved else most - least
        found.append(1 - 1 / (degradation + d) - above / (most - power.off_w - off))
    return min(found), max(found)


def section_4_5() -> pd.DataFrame:
    """Return the numbers of section 4.5, as the models of power here have them."""
    curie, power = find_cluster("curie"), curie_power()
    alone = replace(curie, levels=())
    busy = power.busy_levels_w[-1]

    def saved(machine: Any, nodes: int) -> float:
        """Return the most watts for which that many nodes are enough to be off."""
        low, high = 0.0, 2.0 * busy * nodes
        while high - low > 0.01:
            middle = (low + high) / 2
            enough = fewest_off(machine, greatest_w(machine) - middle) <= nodes
            low, high = (middle, high) if enough else (low, middle)
        return round(low)

    chassis, rack = curie.levels[0].of, curie.levels[0].of * curie.levels[1].of
    lowest = power.frequency_ghz.index(2.0)
    ours = (
        saved(alone, 20),
        saved(curie, chassis),
        saved(curie, rack),
        (saved(curie, chassis) - saved(alone, chassis)) // busy,
        (saved(curie, rack) - saved(alone, rack)) // busy,
        power.slowdowns[lowest],
        100 * power.busy_levels_w[lowest] / busy,
    )
    rows = zip(SECTION_4_5, ours, SECTION_4_5.values(), strict=True)
    return pd.DataFrame(rows, columns=["what", "ours", "thesis"])


# --- The tables of the study of power caps --------------------------------------------------------

#: (trace, how intervals begin, kind of interval) -> of each its facts, and what
#: :func:`powercap.measure` returns.
Outcomes = Mapping[tuple[str, str, str], Sequence[Mapping[str, Any]]]
#: (cap, policy) -> measure -> shares, a number for each interval.
Cells = Mapping[tuple[float, str], Mapping[str, NDArray[np.float64]]]

SHAPES = [name for name, hours in powercap.INTERVALS.items() if hours < 24]
SWITCHING = ("SHUT", "DVFS", "MIX")  # all but leaving nodes idle


def cells_of(outcomes: Sequence[Mapping[str, Any]]) -> dict[tuple[float, str], Any]:
    """Return what happens in intervals, normalised as in figure 4.6.

    Energy and work over those of a machine that is busy throughout, launched jobs over the most
    that any run of the interval launches, and "launched jobs" as they are.
    """
    cells: dict[tuple[float, str], dict[str, list[float]]] = {}
    for outcome in outcomes:
        most = max(row["launched"] for row in outcome["rows"]) or 1
        for row in outcome["rows"]:
            shares = {
                "energy": row["energy_j"] / outcome["possible_j"],
                "launched": row["launched"] / most,
                "work": row["work"] / outcome["possible_work"],
                "computed": row["computed"] / outcome["possible_work"],
                "launched jobs": row["launched"],
                "exceeded_s": row["exceeded_s"],
            }
            of = cells.setdefault((row["cap"], row["policy"]), {})
            for name, share in shares.items():
                of.setdefault(name, []).append(share)
    return {key: {n: np.array(v) for n, v in of.items()} for key, of in cells.items()}


def figure_4_6(outcomes: Outcomes) -> pd.DataFrame:
    """Return the values of figure 4.6: means over intervals of the same kind."""
    return pd.DataFrame(
        {
            "trace": trace,
            "begins": begins,
            "interval": name,
            "cap": f"{cap:.0%}",
            "policy": policy,
            "energy / possible": float(cell["energy"].mean()),
            "launched / most": float(cell["launched"].mean()),
            "work / possible": float(cell["work"].mean()),
            "95 % interval of the work": interval(cell["work"]),
            "computed / possible": float(cell["computed"].mean()),
            "launched jobs": float(cell["launched jobs"].mean()),
            "above the cap (min)": float(cell["exceeded_s"].mean()) / 60,
        }
        for (trace, begins, name), of in outcomes.items()
        for (cap, policy), cell in cells_of(of).items()
    )


def of_intervals(outcomes: Outcomes) -> pd.DataFrame:
    """Return what the intervals are like, and those of the thesis."""
    rows: list[dict[str, Any]] = [{"trace": "thesis", "interval": "all", **SECTION_4_6_2}]
    for (trace, begins, name), of in outcomes.items():
        if begins == EMPTY:
            rows += [{"trace": trace, "interval": name, **one["interval"]} for one in of]
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


def statements(outcomes: Outcomes) -> pd.DataFrame:
    """Return what the text of section 4.6.3 says, and whether it is so here, for each reading."""
    found = {}
    for trace, begins in dict.fromkeys(key[:2] for key in outcomes):
        known = {n: cells_of(of) for (t, r, n), of in outcomes.items() if (t, r) == (trace, begins)}
        day, shapes = ({n: of for n, of in known.items() if (n in SHAPES) == so} for so in (0, 1))
        parts = (day if of_day else shapes for _, _, of_day, _ in _STATEMENTS)
        found[f"{trace}, {begins}"] = [
            check(part) if part else tables.NOT_SIMULATED
            for part, (_, _, _, check) in zip(parts, _STATEMENTS, strict=True)
        ]
    return tables.statements_table("Glesser 2016, section 4.6.3", _STATEMENTS, found)


Shapes = Mapping[str, Cells]


def caps_of(shapes: Shapes) -> list[float]:
    """Return the caps, the highest first."""
    return sorted({cap for cells in shapes.values() for cap, _ in cells if cap < 1}, reverse=True)


def mean(cells: Cells, cap: float, policy: str, what: str) -> float:
    """Return a mean over workloads; without a cap all policies are one."""
    return float(cells[cap, "none" if cap >= 1 else policy][what].mean())


def over(shapes: Shapes, cap: float, policy: str, what: str) -> float:
    """Return the mean over intervals."""
    return float(np.mean([mean(cells, cap, policy, what) for cells in shapes.values()]))


def _of_all(
    shapes: Shapes, cap: float, what: str, names: Iterable[str] = SWITCHING
) -> dict[str, float]:
    """Return the mean over intervals of each of some policies."""
    return {name: over(shapes, cap, name, what) for name in names}


def _grid(shapes: Shapes) -> list[tuple[Shapes, float]]:
    """Return all intervals, each by itself, under all caps."""
    return [({name: shapes[name]}, cap) for name in shapes for cap in caps_of(shapes)]


def _most(values: Mapping[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def _least(values: Mapping[str, float]) -> str:
    return min(values, key=lambda name: values[name])


def _more_work(shapes: Shapes) -> tables.Finding:
    def gap(of: Shapes, cap: float) -> float:
        return over(of, cap, "DVFS", "work") - over(of, cap, "SHUT", "work")

    gaps = [gap(*one) for one in _grid(shapes)]
    more = sum(gap > 0 for gap in gaps)
    by_cap = [f"{cap:.0%}: {100 * gap(shapes, cap):+.1f}" for cap in caps_of(shapes)]
    return f"in {more} of {len(gaps)}; points at {', '.join(by_cap)}", more == len(gaps)


def _least_energy(shapes: Shapes) -> tables.Finding:
    best = [_least(_of_all(*one, "energy")) for one in _grid(shapes)]
    counts = {name: best.count(name) for name in SWITCHING}
    return f"least energy: {tables.listed(counts, '{}')}", counts["MIX"] > len(best) / 2


def _same_order(shapes: Shapes) -> tables.Finding:
    works = [_of_all(*one, "work") for one in _grid(shapes)]
    apart = [work["MIX"] / np.mean([work["SHUT"], work["DVFS"]]) - 1 for work in works]
    so = bool(max(map(abs, apart)) < 0.2)
    return f"{100 * min(apart):+.0f} to {100 * max(apart):+.0f} %", so


def _falls(shapes: Shapes) -> tables.Finding:
    falling = []
    for cells, name, what in product(shapes.values(), SWITCHING, ("work", "energy")):
        values = [mean(cells, cap, name, what) for cap in (1.0, *caps_of(shapes))]
        falling.append(bool((np.diff(values) < 0).all()))
    return f"in {sum(falling)} of {len(falling)} rows", all(falling)


def _more_rapidly(shapes: Shapes) -> tables.Finding:
    high, low = [1.0, *caps_of(shapes)][-2:]
    before, after = (_of_all(shapes, cap, "work") for cap in (high, low))
    gains = {name: -100 * (before[name] - after[name]) for name in SWITCHING}
    words = f"work from {high:.0%} to {low:.0%}, points: {tables.listed(gains, '{:+.1f}')}"
    return words, gains["DVFS"] < min(gains["SHUT"], gains["MIX"])


def _tradeoff(shapes: Shapes) -> tables.Finding:
    words, so = [], []
    for what in ("work", "computed"):
        pairs = [(_of_all(*one, "energy"), _of_all(*one, what)) for one in _grid(shapes)]
        cost = {
            name: float(np.mean([energy[name] / done[name] for energy, done in pairs]))
            for name in SWITCHING
        }
        words.append(f"energy / {what}: {tables.listed(cost, '{:.2f}')}")
        so.append(max(cost["SHUT"], cost["MIX"]) < cost["DVFS"])
    return "; ".join(words), so[0]


def _idle_beside(shapes: Shapes, what: str) -> dict[str, float]:
    """Return by how many percent idle nodes alone have more than the mean of others, by cap."""
    found = {}
    for cap in caps_of(shapes):
        others = float(np.mean([*_of_all(shapes, cap, what).values()]))
        found[f"{cap:.0%}:"] = 100 * (over(shapes, cap, "none", what) / others - 1)
    return found


def _idle_is_worst(shapes: Shapes) -> tables.Finding:
    works = [_of_all(shapes, cap, "work", powercap.POLICIES) for cap in caps_of(shapes)]
    worst = all(min(work.values()) == work["none"] for work in works)
    more = _idle_beside(shapes, "work")
    words = f"against the mean of the others, {tables.listed(more, '{:+.0f} %')}"
    lowest = -[*more.values()][-1] / 100
    return words, worst and abs(lowest - NONE_LESS) < 0.15


def _idle_same_energy(shapes: Shapes) -> tables.Finding:
    apart = _idle_beside(shapes, "energy")
    return tables.listed(apart, "{:+.0f} %"), max(map(abs, apart.values())) < 10


def _day_work(day: Shapes) -> tables.Finding:
    cap = caps_of(day)[-1]
    ours = _of_all(day, cap, "work", DAY_WORK)
    so = all(abs(ours[name] - share) < 0.05 for name, share in DAY_WORK.items())
    return f"{tables.listed(ours, '{:.0%}')} at {cap:.0%}", so


def _day_order(day: Shapes) -> tables.Finding:
    ours = _of_all(day, caps_of(day)[-1], "work")
    return " > ".join(sorted(ours, key=lambda name: -ours[name])), _most(ours) == "SHUT"


def _day_energy(day: Shapes) -> tables.Finding:
    ours = _of_all(day, caps_of(day)[-1], "energy")
    shares = {name: 100 * share for name, share in ours.items()}
    return tables.listed(shares, "{:.1f} %"), _least(ours) == "MIX"


def _most_for_energy(shapes: Shapes, place: int, policy: str) -> tables.Finding:
    """Return whether a policy has most work for each joule, under one of the caps.

    Work is the thesis's; what is computed is told beside it.
    """
    cap = caps_of(shapes)[place]
    energy, words, best = _of_all(shapes, cap, "energy"), [], []
    for what in ("work", "computed"):
        done = _of_all(shapes, cap, what)
        ratio = {name: done[name] / energy[name] for name in SWITCHING}
        words.append(f"{what} / energy at {cap:.0%}: {tables.listed(ratio, '{:.3f}')}")
        best.append(_most(ratio))
    return "; ".join(words), best[0] == policy


_shut_when_low = partial(_most_for_energy, place=-1, policy="SHUT")
_slow_when_high = partial(_most_for_energy, place=0, policy="DVFS")


#: What is said, how it is published, whether of the 24 hours, what finds ours.
_STATEMENTS: tuple[tuple[str, str, bool, Callable[[Shapes], tables.Finding]], ...] = (
    ("DVFS: the work is larger than under SHUT", "always", False, _more_work),
    ("MIX: the best energy consumption", "most of the time", False, _least_energy),
    ("MIX: work in the same order as others", "so", False, _same_order),
    ("work and energy decrease with the cap", "every type of workload", False, _falls),
    ("DVFS decreases more rapidly below 60 %", "so", False, _more_rapidly),
    ("SHUT and MIX: more efficient in energy / work", "so", False, _tradeoff),
    ("nodes left idle: the worst work", "about 40 % lower", False, _idle_is_worst),
    ("nodes left idle: the energy", "about the same", False, _idle_same_energy),
    ("conclusion: below 60 % switching off is most efficient", "so", False, _shut_when_low),
    ("conclusion: at 80 % lower frequencies are better", "so", False, _slow_when_high),
    ("24 h, 40 %: the work", "DVFS and MIX about 85 %, SHUT 94 %", True, _day_work),
    ("24 h, 40 %: the work, in order", "SHUT first", True, _day_order),
    ("24 h, 40 %: the energy", "lowest under MIX", True, _day_energy),
)


# --- The pictures of the study of power caps ------------------------------------------------------

_COLOURS = {
    "SHUT": canvas.BLUE,
    "DVFS": canvas.VERMILLION,
    "MIX": canvas.GREEN,
    "none": canvas.DARK_GREY,
}
_STATES = {
    "components": canvas.DARK_GREY,
    "idle": canvas.LIGHT_GREY,
    "off": "#9A9A9A",
    "switching_off": canvas.PURPLE,
    "switching_on": canvas.ORANGE,
}
_MEASURES = {
    "energy": "energy / possible",
    "launched": "launched jobs / most",
    "work": "work / possible",
}
_SLOW, _FAST = np.array([0.81, 0.90, 0.96]), np.array([0, 0.27, 0.44])

Steps = Mapping[str, NDArray[np.float64]]


def nodes_by_state(result: Result) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Return how many nodes are in which state over time.

    Returns
    -------
    times : (n_times,) int64 [s].
    nodes : "busy_..." as in the books, by frequency, the lowest first, "idle", and states of
        switching -> (n_times - 1,), from each time to the next.
    """
    times, busy = result.books.time, [n for n in result.books.states if n.startswith("busy")]
    assert result.allocation is not None
    widths = np.diff(result.allocation.first)
    changes = {name: np.zeros(len(times)) for name in (*busy, *STATE_NAMES)}
    top = len(busy) - 1
    level = np.full(len(widths), top) if result.frequency is None else result.frequency
    begin, end = np.searchsorted(times, result.start), np.searchsorted(times, result.end)
    for number, name in enumerate(busy):
        here = level == number
        np.add.at(changes[name], begin[here], widths[here])
        np.subtract.at(changes[name], end[here], widths[here])
    if result.node_states is not None:
        states = result.node_states
        begin, end = (
            np.searchsorted(times, np.clip(moments, times[0], times[-1]))
            for moments in (states.begin, states.end)
        )
        for number, name in enumerate(STATE_NAMES):
            here = states.state == number
            np.add.at(changes[name], begin[here], 1)
            np.subtract.at(changes[name], end[here], 1)
    nodes = {name: np.cumsum(change)[:-1] for name, change in changes.items()}
    nodes["idle"] = result.cluster.nodes - np.sum(list(nodes.values()), axis=0)
    return times, nodes


def draw_interval(result: Result, interval: Interval, heading: str) -> Figure:
    """Draw nodes and power over an interval under a cap, as figures 4.4 and 4.5 do."""
    (cap,) = (limit for limit in result.limits or () if isinstance(limit, PowerCap))
    figure = canvas.new_figure(9, 5.6)
    above, below = figure.subplots(2, 1, sharex=True)
    times, nodes = nodes_by_state(result)
    busy = [name for name in nodes if name.startswith("busy")]
    cores = result.cluster.processors / result.cluster.nodes
    order = [*reversed(busy), "idle", *STATE_NAMES]
    hours = (times - interval.begin) / HOUR_S
    seen = (times[:-1] < interval.end) & (times[1:] > interval.begin)
    used = {name: nodes[name] * cores / 1e3 for name in order if nodes[name][seen].any()}
    _stack(above, hours, used, busy)
    above.set_ylim(0, 1.03 * result.cluster.processors / 1e3)
    tables.finish(above, heading, y="cores (thousands)")
    watts = result.books.watts()
    order = ["components", "idle", *STATE_NAMES, *busy]
    drawn = {name: watts[name] / 1e6 for name in order if watts[name][seen].any()}
    _stack(below, hours, drawn, busy)
    most = greatest_w(result.cluster) / 1e6
    window = [(moment - interval.begin) / HOUR_S for moment in (cap.start, cap.end or interval.end)]
    below.fill_between(
        window,
        cap.watts / 1e6,
        most,
        facecolor="none",
        edgecolor=canvas.BLACK,
        hatch="///",
        linewidth=0.6,
        label="not to be used",
    )
    below.set_ylim(0, 1.03 * most)
    below.set_xlim(0, (interval.end - interval.begin) / HOUR_S)
    canvas.legend_above(below, below.get_legend_handles_labels()[1])
    tables.finish(below, x="hours of the interval", y="power (MW)")
    return figure


def _stack(axes: Axes, hours: NDArray[Any], levels: Steps, busy: Sequence[str]) -> None:
    """Draw step functions one on the other, from below; busy nodes are the darker the faster."""
    under: NDArray[Any] = np.zeros(len(hours))
    shades = dict(zip(busy, np.linspace(0, 1, len(busy)), strict=True))
    for name, values in levels.items():
        over = under + np.append(values, values[-1:])
        shade = shades.get(name)
        colour = _STATES.get(name) if shade is None else tuple(_SLOW + shade * (_FAST - _SLOW))
        axes.fill_between(
            hours, under, over, step="post", color=colour, linewidth=0, label=_text(name)
        )
        under = over


def _text(state: str) -> str:
    """Return what a state is called in the legend."""
    if state.startswith("busy_"):
        return f"{state.removeprefix('busy_').removesuffix('ghz')} GHz"
    return {"components": "above nodes", "busy": "busy"}.get(state, state.replace("_", " "))


def draw_4_6(outcomes: Outcomes, trace: str, begins: str) -> Figure:
    """Figure 4.6: energy, launched jobs and work by interval, cap and policy."""
    names = [name for name in SHAPES if (trace, begins, name) in outcomes]
    figure = canvas.new_figure(9, 1.2 + 2.6 * len(names))
    rows = figure.subplots(len(names), len(_MEASURES), sharey="row", sharex="col", squeeze=False)
    for line, name in zip(rows, names, strict=True):
        cells = cells_of(outcomes[trace, begins, name])
        for axes, what in zip(line, _MEASURES, strict=True):
            _bars(axes, cells, what)
            canvas.plain(axes, grid="x")
            axes.set_xlim(0, 1.02)
        line[0].set_ylabel(name)
    for axes, label in zip(rows[-1], _MEASURES.values(), strict=True):
        axes.set_xlabel(label)
    tables.heading_above(figure, f"{trace}, {begins}; lines: 95 % of resampled intervals")
    handles, labels = rows[0][0].get_legend_handles_labels()
    tables.legend_below(figure, handles, labels, len(labels))
    return figure


def draw_log(workload: Workload, of: Interval, days: int = 4) -> Figure:
    """Figure 3.1: cores in use and cores that wait by a log, some days around an interval."""
    hours = np.arange(of.begin - days * DAY_S, of.end + days * DAY_S, HOUR_S // 4)
    start = workload.submit_time + np.maximum(workload.wait_time, 0)
    end, cores = start + recorded_run_time(workload), workload.requested_processors
    figure = canvas.new_figure(9, 4.4)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, name, begins, ends in (
        (panels[0], "cores in use", start, end),
        (panels[1], "cores that wait", workload.submit_time, start),
    ):
        order, back = np.argsort(begins), np.argsort(ends)
        come, gone = (np.concatenate([[0], np.cumsum(cores[k])]) for k in (order, back))
        level = come[np.searchsorted(begins[order], hours, "right")]
        level = level - gone[np.searchsorted(ends[back], hours, "right")]
        axes.step((hours - of.begin) / DAY_S, level / 1e3, where="post", color=canvas.BLUE)
        for at in (0, (of.end - of.begin) / DAY_S):
            axes.axvline(at, color=canvas.BLACK, linestyle=":", linewidth=1)
        tables.finish(axes, y=f"{name} (thousands)")
    tables.heading_above(figure, f"{workload.name} around an interval of 24 h (figure 3.1)")
    tables.finish(panels[1], x="days from its beginning")
    return figure


def _bars(axes: Axes, cells: Mapping[tuple[float, str], Any], measure: str) -> None:
    """Draw a bar for each cap and policy, from above."""
    place, ticks = 0.0, []
    for cap in sorted({cap for cap, _ in cells}, reverse=True):
        policies = ["none"] if cap >= 1 else list(powercap.POLICIES)
        for policy in policies:
            values = cells[cap, policy][measure]
            low, high = np.percentile(tables.resampled(values), [2.5, 97.5])
            middle = values.mean()
            axes.barh(
                place,
                middle,
                0.8,
                xerr=[[max(middle - low, 0)], [max(high - middle, 0)]],
                color=_COLOURS[policy],
                ecolor=canvas.BLACK,
                error_kw={"linewidth": 0.8},
                label=policy if cap == min(c for c, _ in cells) else None,
            )
            place += 1
        ticks.append((place - 0.5 - len(policies) / 2, f"{cap:.0%}"))
        place += 0.7
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    axes.set_ylim(place - 1.2, -0.6)


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
    folder: Folder,
    *,
    cluster: str = "curie",
    number: int = NUMBER,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    number : of intervals of each kind, at most.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read, is too short or larger than the machine, two of the
        same name, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    if number < 1:
        raise HpcgymError(f"number must be a whole number of at least 1, not {number}")
    folder.begin(HEAD)
    tasks = _tasks(sources, cluster, 1 if quick else number, quick)
    found = folder.run(powercap.measure, tasks, "intervals", chunk=1)
    outcomes: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for task, outcome in zip(tasks, found, strict=True):
        key = task["trace"], task["begins"], task["kind"]
        outcomes.setdefault(key, []).append({"interval": task["interval"], **outcome})
    made = {
        "statements": statements(outcomes),
        "4.6": figure_4_6(outcomes),
        "4.3": table_4_3(),
        "4.5": section_4_5(),
        "intervals": of_intervals(outcomes),
    }
    readings = [f"- *{name}*: {meaning}." for name, meaning in powercap.STARTS.items()]
    hours = ", ".join(f"{name} {of} h" for name, of in powercap.INTERVALS.items())
    head = HEAD.format(version=__version__, cluster=find_cluster(cluster).name, busy=powercap.BUSY)
    head += "\n" + "\n".join(readings) + f"\n\nIntervals: {hours}.\n"
    return folder.publish(
        head, made, TEXTS, _draw(outcomes, tasks, folder), "one interval, one cap" * quick
    )


def _tasks(sources: Sequence[str], cluster: str, number: int, quick: bool) -> list[dict[str, Any]]:
    """Return the tasks: each interval, with each beginning."""
    machine = find_cluster(cluster)
    node_power(machine)  # which says what is wrong before anything is simulated
    jobs = QUICK_JOBS if quick else None
    given = {"caps": list(QUICK_CAPS if quick else powercap.CAPS), "cluster": cluster, "jobs": jobs}
    load = partial(powercap.load, machine=machine, jobs=jobs)
    return [
        task_of(source, workload, begins=begins, kind=kind, interval=asdict(one), **given)
        for source, workload in load_sources(sources, load).items()
        for kind in ([QUICK] if quick else powercap.INTERVALS)
        for one in powercap.choose(workload, machine.processors, kind, number)
        for begins in (EMPTY, LOGGED)
    ]


def _draw(outcomes: Outcomes, tasks: list[dict[str, Any]], folder: Folder) -> dict[str, Path]:
    """Draw the pictures; return heading -> file."""
    pictures = {}
    for trace, begins in dict.fromkeys(key[:2] for key in outcomes):
        if any((trace, begins, name) in outcomes for name in SHAPES):
            file = f"figure-4.6-{folder_name(f'{trace}-{begins}')}.png"
            drawn = folder.picture(draw_4_6(outcomes, trace, begins), file)
            pictures[f"Figure 4.6: {trace}, {begins}"] = drawn
    for task in tasks:
        kind, trace = task["kind"], task["trace"]
        first = outcomes[trace, EMPTY, kind][0]["interval"] == task["interval"]
        if task["begins"] != EMPTY or not first:
            continue
        cluster, workload, of = powercap.inputs_of(task)
        if kind == "24h":
            file = f"figure-3.1-{folder_name(trace)}.png"
            pictures[f"Figure 3.1: {trace}"] = folder.picture(draw_log(workload, of), file)
        for (name, cap, policy), figure in _DRAWN.items():
            if name == kind and cap in task["caps"]:
                heading = f"{name}, {policy}, a cap of {cap:.0%} (as {figure}): {trace}"
                result = powercap.capped(workload, cluster, of, cap, policy, EMPTY)
                file = f"{folder_name(f'{name}-{policy}-{trace}')}.png"
                pictures[heading] = folder.picture(draw_interval(result, of, heading), file)
    return pictures


# --- The items of Glesser 2016, chapter 4, and their verdicts -------------------------------------


def _table_4_3(stored: items.Stored) -> items.Verdict:
    """Table 4.3: whether rho follows from the document's own equation and watts."""
    words = [f"{name}: {what}" for name in ("as printed", "saved") for what in _ROUNDED]
    table = stored.table("table-4.3", "published best", "best by C1 and C3", *words)
    printed, saved = (
        int((table[f"{n}: {_ROUNDED[0]}"] == "yes").sum()) for n in ("as printed", "saved")
    )
    rows, number = table[table["published best"] != "-"], len(table)
    negative = int((rows[f"saved: {_ROUNDED[1]}"] < 0).sum())
    best = int((rows["published best"] == rows["best by C1 and C3"]).sum())
    told = (
        f"rho of section 4.2.1 with the watts of table 4.2 is as printed in {printed} of {number}"
        f" rows, whatever was rounded; with Pmax - P_dvfs for P_dvfs in {saved}, and then it is"
        f" negative, algorithm 2's sign to switch off, in {negative} of {len(rows)}; but by C1 and"
        f" C3 switching off computes more in {best} alone"
    )
    if printed < number == saved:
        return items.Verdict(items.CONTRADICTION, told)
    return items.of_count(negative, len(rows), "mechanisms as published", told)


#: Columns of table 4.3 on what rounding allows.
_ROUNDED = ("within rounding", "greatest rho")


def _section_4_5(stored: items.Stored) -> items.Verdict:
    """Section 4.5: each value, to its own digits."""
    table = stored.table("table-4.5", "what", "ours", "thesis")
    shown = [
        round(ours, 2 if thesis < 2 else 0) for ours, thesis in table[["ours", "thesis"]].to_numpy()
    ]
    return items.of_values(shown, table["thesis"], 0, "numbers")


def _statements(*begin: str) -> items.Judge:
    """Judge sentences of section 4.6.3 by the first reading; say how many hold by the second."""
    column = "Glesser 2016, section 4.6.3"
    first = items.said("table-statements", column, begin)

    def judge(stored: items.Stored) -> items.Verdict:
        table = stored.table("table-statements", column)
        rows = table[table[column].str.startswith(begin)]
        others = [name for name in rows.columns if str(name).startswith("so, ")][1:]
        words = [
            f"{name.removeprefix('so, ')}: {int((rows[name] == 'yes').sum())}" for name in others
        ]
        found = first(stored)
        return items.Verdict(found.verdict, "; ".join([found.why, *words]))

    return judge


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "figure 3.1": items.of_picture("figure-3.1-CEA-Curie.png"),
    "section 4.5": _section_4_5,
    "table 4.3": _table_4_3,
    "figure 4.4": items.of_picture("24h-MIX-CEA-Curie.png"),
    "figure 4.5": items.of_picture("bigjob-SHUT-CEA-Curie.png", "smalljob-DVFS-CEA-Curie.png"),
    "figure 4.6": _statements("DVFS", "MIX", "work and energy", "SHUT and MIX", "nodes left idle"),
    "section 4.6.3, 24 hours": _statements("24 h"),
    "section 4.7": _statements("conclusion"),
}
