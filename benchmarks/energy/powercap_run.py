"""The whole study of power caps: simulations, tables beside the published, pictures, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.energy import powercap
from hpcgym.benchmarks.energy.plans import plans_under
from hpcgym.benchmarks.energy.powercap import OF_SHORT, SUBSTITUTE, measure
from hpcgym.benchmarks.energy.published_powercap import DAY_WORK, HUGE, NONE_LESS, TABLE_4_3
from hpcgym.benchmarks.studies import tables
from hpcgym.benchmarks.studies.harness import Folder, folder_name, load_sources, task_of
from hpcgym.benchmarks.studies.tables import interval
from hpcgym.errors import HpcgymError
from hpcgym.machine.files import find_cluster
from hpcgym.machine.power_plans import greatest_w, rho
from hpcgym.naming import HOUR_S
from hpcgym.report import canvas
from hpcgym.schedule.runs import STATE_NAMES
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.on_machines import node_power
from hpcgym.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result


# --- The tables of the study of power caps --------------------------------------------------------

#: (trace, requested times and maybe what caps are on, interval) -> what :func:`powercap.measure`
#: returns of each workload.
Outcomes = Mapping[tuple[str, str, str], Sequence[Mapping[str, Any]]]
#: (cap, policy) -> measure -> shares, a number for each workload.
Cells = Mapping[tuple[float, str], Mapping[str, NDArray[np.float64]]]

SHAPES = [name for name, hours in powercap.INTERVALS.items() if hours < 24]
SWITCHING = ("SHUT", "DVFS", "MIX")  # all but leaving nodes idle


def cells_of(outcomes: Sequence[Mapping[str, Any]]) -> dict[tuple[float, str], Any]:
    """Return what happens in an interval, normalised as in figure 4.6, over workloads.

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
    """Return the values of figure 4.6: means over workloads of the same kind."""
    rows = []
    for (trace, requests, name), of in outcomes.items():
        for (cap, policy), cell in cells_of(of).items():
            row: dict[str, Any] = {"trace": trace, "requests": requests, "interval": name}
            row |= {"cap": f"{cap:.0%}", "policy": policy}
            row["energy / possible"] = float(cell["energy"].mean())
            row["launched / most"] = float(cell["launched"].mean())
            row["work / possible"] = float(cell["work"].mean())
            row["95 % interval of the work"] = interval(cell["work"])
            row["computed / possible"] = float(cell["computed"].mean())
            row["launched jobs"] = float(cell["launched jobs"].mean())
            row["above the cap (min)"] = float(cell["exceeded_s"].mean()) / 60
            rows.append(row)
    return pd.DataFrame(rows)


def of_intervals(outcomes: Outcomes) -> pd.DataFrame:
    """Return what the intervals are like."""
    rows = []
    for (trace, requests, name), of in outcomes.items():
        for number, outcome in enumerate(of):
            found = outcome["interval"]
            row: dict[str, Any] = {"trace": trace, "requests": requests, "interval": name}
            row |= {"workload": str(number), "from hour": f"{found['begin'] / HOUR_S:g}"}
            row |= {"jobs": found["jobs"], "share of small jobs": found["small"]}
            row["least cores waiting / machine"] = found["backlog"]
            rows.append(row)
    return pd.DataFrame(rows)


def table_4_3() -> pd.DataFrame:
    """Return table 4.3, of table 4.2's powers, in both readings of rho."""
    power = find_cluster("curie").groups[0].power
    assert power is not None
    nodes = 1_000
    cap = 0.8 * nodes * power.busy_levels_w[-1]  # enough for all nodes at the lowest frequency
    rows = []
    for one in TABLE_4_3:
        here = replace(power, slowdown=one.degradation)
        by_equations, by_text = plans_under(nodes, cap, here)
        rows.append(
            {
                "benchmark": one.name,
                "deg": one.degradation,
                "published rho ratio": one.rho,
                "ours rho ratio": rho(here),
                "watts' ratio it needs": 1 - 1 / one.degradation - one.rho,
                "watts' ratio of table 4.2": 1 - 1 / one.degradation - rho(here),
                "published best": one.best,
                "best by C1 and C3": _named(by_equations),
                "by algorithm 2": _named(by_text),
            }
        )
    return pd.DataFrame(rows)


def _named(plan: Any) -> str:
    """Return what a plan does."""
    return "Switch-off" if plan.off else "DVFS"


def statements(outcomes: Outcomes) -> pd.DataFrame:
    """Return what the text of section 4.6.3 says, and whether it is so here, for each reading."""
    found = {}
    for trace, requests in dict.fromkeys(key[:2] for key in outcomes):
        known = {
            n: cells_of(of) for (t, r, n), of in outcomes.items() if (t, r) == (trace, requests)
        }
        day, shapes = ({n: of for n, of in known.items() if (n in SHAPES) == so} for so in (0, 1))
        parts = (day if of_day else shapes for _, _, of_day, _ in _STATEMENTS)
        found[f"{trace}, {requests}"] = [
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
    """Return whether a policy computes most for each joule, under one of the caps."""
    cap = caps_of(shapes)[place]
    done, energy = (_of_all(shapes, cap, what) for what in ("computed", "energy"))
    best = {name: done[name] / energy[name] for name in SWITCHING}
    words = f"computed / energy at {cap:.0%}: {tables.listed(best, '{:.3f}')}"
    return words, _most(best) == policy


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


def draw_interval(result: Result, interval: powercap.Interval, heading: str) -> Figure:
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


def draw_4_6(outcomes: Outcomes, trace: str, requests: str) -> Figure:
    """Figure 4.6: energy, launched jobs and work by interval, cap and policy."""
    names = [name for name in SHAPES if (trace, requests, name) in outcomes]
    figure = canvas.new_figure(9, 1.2 + 2.6 * len(names))
    rows = figure.subplots(len(names), len(_MEASURES), sharey="row", sharex="col", squeeze=False)
    for line, name in zip(rows, names, strict=True):
        cells = cells_of(outcomes[trace, requests, name])
        for axes, what in zip(line, _MEASURES, strict=True):
            _bars(axes, cells, what)
            canvas.plain(axes, grid="x")
            axes.set_xlim(0, 1.02)
        line[0].set_ylabel(name)
    for axes, label in zip(rows[-1], _MEASURES.values(), strict=True):
        axes.set_xlabel(label)
    heading = f"{trace}; requested times: {requests}; lines: 95 % of resampled workloads"
    tables.heading_above(figure, heading)
    handles, labels = rows[0][0].get_legend_handles_labels()
    tables.legend_below(figure, handles, labels, len(labels))
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


# --- The report on power caps ---------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, "powercap.md")

#: What was read otherwise once results were known.
ADDED = (
    "Caps on nodes were added once results of those on the machine were known, and so was"
    f" *{OF_SHORT}*, which is read with those on the machine only."
)


# --- The whole study ------------------------------------------------------------------------------

SEEDS = 10
QUICK = "medianjob"

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
    seeds: int = SEEDS,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces, files or generators in place of the substitute for Curie's trace; none: that.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    seeds : how many substitutes, generated from the seeds 0, 1 and so on.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read, is too short or larger than the machine, two of the
        same name, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    if seeds < 1:
        raise HpcgymError(f"seeds must be a whole number of at least 1, not {seeds}")
    folder.begin(HEAD)
    given = list(sources) or [f"{SUBSTITUTE}:{seed}" for seed in range(1 if quick else seeds)]
    tasks = _tasks(given, cluster, quick)
    found = folder.run(measure, tasks, "intervals", chunk=1)
    outcomes: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for task, outcome in zip(tasks, found, strict=True):
        outcomes.setdefault(_key(task), []).append(outcome)
    made = {
        "statements": statements(outcomes),
        "4.6": figure_4_6(outcomes),
        "4.3": table_4_3(),
        "intervals": of_intervals(outcomes),
    }
    head, cut = _head(find_cluster(cluster).name), "one short workload, one cap" * quick
    return folder.publish(head, made, TEXTS, _draw(outcomes, tasks, folder), cut)


def _head(cluster: str) -> str:
    """Return what the report on a machine begins with."""
    head = HEAD.format(
        version=__version__,
        cluster=cluster,
        shorter=powercap.SHORTER,
        huge=HUGE,
        load=powercap.LOAD,
    )
    readings = [f"- {name}: {meaning}." for name, meaning in powercap.REQUESTS.items()]
    readings += [
        "",
        "A cap on",
        "",
        *(f"- {name}: {words}." for name, words in powercap.CAPPED.items()),
    ]
    readings += ["", ADDED]
    hours = ", ".join(f"{name} {of} h" for name, of in powercap.INTERVALS.items())
    return head + "\n" + "\n".join(readings) + f"\n\nIntervals: {hours}.\n"


def trace_of(workload: str) -> str:
    """Return the trace that a workload counts to: all substitutes are one."""
    return SUBSTITUTE if workload.startswith(f"{SUBSTITUTE} ") else workload


def _tasks(sources: Sequence[str], cluster: str, quick: bool) -> list[dict[str, Any]]:
    """Return the tasks."""
    machine, tasks = find_cluster(cluster), []
    node_power(machine)  # which says what is wrong before anything is simulated
    jobs = powercap.QUICK_JOBS if quick else powercap.JOBS
    caps = list(powercap.QUICK_CAPS if quick else powercap.CAPS)
    given = {"caps": caps, "cluster": cluster, "jobs": jobs}
    generated = [source for source in sources if source.startswith(f"{SUBSTITUTE}:")]
    for requests in powercap.REQUESTS:
        here = sources if requests == powercap.AS_GENERATED else generated
        load = partial(powercap.load, requests=requests, machine=machine, jobs=jobs)
        ways = [powercap.MACHINE] if requests == OF_SHORT else powercap.ways_to_cap(machine)
        tasks += [
            task_of(source, workload, requests=requests, capped=of, interval=name, **given)
            for source, workload in load_sources(here, load).items()
            for of in ways
            for name in ([QUICK] if quick else powercap.INTERVALS)
        ]
    return tasks


def _draw(
    outcomes: dict[tuple[str, str, str], list[dict[str, Any]]],
    tasks: list[dict[str, Any]],
    folder: Folder,
) -> dict[str, Path]:
    """Draw the pictures; return heading -> file."""
    pictures = {}
    for trace, requests in dict.fromkeys(key[:2] for key in outcomes):
        if any((trace, requests, name) in outcomes for name in SHAPES):
            file = f"figure-4.6-{folder_name(f'{trace}-{requests}')}.png"
            drawn = folder.picture(draw_4_6(outcomes, trace, requests), file)
            pictures[f"Figure 4.6: {trace}, requested times {requests}"] = drawn
    todo = [
        (key, shape)
        for key in outcomes
        for shape in _DRAWN
        if key[2] == shape[0] and shape[1] in tasks[0]["caps"] and key[1] in powercap.REQUESTS
    ]
    for done, (key, (name, cap, policy)) in enumerate(todo):
        folder.progress("pictures", done, len(todo))
        trace, requests, _ = key
        number = _first_kept(outcomes[key], cap, policy)
        task = [one for one in tasks if _key(one) == key][number]
        cluster, workload = powercap.inputs_of(task)
        hours = powercap.Interval(**outcomes[key][number]["interval"])
        heading = (
            f"{name}, {policy}, a cap of {cap:.0%} (as {_DRAWN[name, cap, policy]}):"
            f" {workload.name}, {requests}"
        )
        file = f"{folder_name(f'{name}-{policy}-{trace}-{requests}')}.png"
        result = powercap.capped(workload, cluster, hours, cap, policy)
        pictures[heading] = folder.picture(draw_interval(result, hours, heading), file)
    return pictures


def _key(task: dict[str, Any]) -> tuple[str, str, str]:
    """Return what a task is an outcome of: trace, reading, interval.

    A reading is that of requested times, and of what caps are shares of where not of the machine.
    """
    of = task["capped"]
    reading = task["requests"] if of == powercap.MACHINE else f"{task['requests']}, a cap on {of}"
    return trace_of(task["trace"]), reading, task["interval"]


def _first_kept(outcomes: list[dict[str, Any]], cap: float, policy: str) -> int:
    """Return the first workload whose cap nothing that ran before has broken, or else the first."""
    for number, outcome in enumerate(outcomes):
        for row in outcome["rows"]:
            if (row["cap"], row["policy"], row["exceeded_s"]) == (cap, policy, 0):
                return number
    return 0
