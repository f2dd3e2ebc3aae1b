"""Tables and pictures of the study, ours beside the published values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.cp import configurations
from hpcgym.benchmarks.cp.configurations import NAME as AS_PUBLISHED
from hpcgym.benchmarks.cp.published import (
    ABOUT,
    SECONDS_BETWEEN,
    STATEMENTS,
    TIMES,
    VARIABLES_BELOW,
    Times,
)
from hpcgym.benchmarks.cp.simulations import Findings
from hpcgym.benchmarks.studies.tables import finish
from hpcgym.report import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- The documents' tables ------------------------------------------------------------------------

Outcome = Mapping[str, Any]

#: Number of seeds -> how many standard errors of their mean a 95 % interval reaches (Student's t).
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}

#: What published tables have where a run did not come to its end.
NOT_FINISHED = "none finished"


def number(value: float | None) -> float:
    """Return a number of an outcome; what is none was kept as null."""
    return float("nan") if value is None else float(value)


def half_interval(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean over seeds; nan of one seed.

    Three seeds give a wide one: with so few, only large differences are no chance.
    """
    if len(values) not in T_95:
        return float("nan")
    return T_95[len(values)] * float(np.std(values, ddof=1)) / float(np.sqrt(len(values)))


# --- Slowdown, waits and queues (Remediani 2017, figures 5.1 to 5.11) -----------------------------


def slowdowns(found: Findings) -> pd.DataFrame:
    """Return mean slowdowns by class of jobs, and the quartiles of those that waited."""
    return _by_class(found, "slowdown", "slowed")


def waits(found: Findings) -> pd.DataFrame:
    """Return mean waits [s] by class of jobs, and the quartiles of those that waited."""
    return _by_class(found, "wait", "waited")


def _by_class(found: Findings, measure: str, late: str) -> pd.DataFrame:
    rows = []
    for run, outcome in found.outcomes.items():
        shapes = outcome["shapes"]
        boxes = shapes["all"][late]
        seeds = outcome["by_seed"][measure]
        row: dict[str, Any] = {"run": str(run), "mean": float(np.mean(seeds))}
        if len(seeds) > 1:
            row["± over seeds"] = half_interval(seeds)
        row["std"] = number(shapes["all"][measure]["std"])
        for name in configurations.CLASSES:
            if name != "all":
                row[name] = number(shapes[name][measure]["mean"])
        row["waited"] = boxes["number"]
        row |= {f"{part}, waited": number(boxes[part]) for part in _BOX_PARTS}
        rows.append(row)
    return pd.DataFrame(rows)


#: What Remediani 2017's figures show of the jobs that waited: lines, box, triangle (section 5.1).
_BOX_PARTS = ("low", "q1", "median", "q3", "high", "mean")


def queues(found: Findings) -> pd.DataFrame:
    """Return how many jobs wait after passes (equation 3.2), and on average over time."""
    rows = []
    for run, outcome in found.outcomes.items():
        queue = outcome["queues"]["queue"]
        row: dict[str, Any] = {"run": str(run), "passes": outcome["queues"]["passes"]}
        row |= {part: number(queue[part]) for part in ("mean", "q1", "median", "q3", "high")}
        row["mean over time"] = outcome["queues"]["queue_in_time"]
        rows.append(row)
    return pd.DataFrame(rows)


# --- Times (Galleguillos 2020, tables 1 and 2) ----------------------------------------------------


def times(found: Findings) -> pd.DataFrame:
    """Return the average time of a dispatch [ms] and that of the whole simulation [s].

    A dispatcher is not called where no job fits. The published averages are over all invocations,
    so the sum of ours is shown over the passes with jobs in the queue too.
    """
    rows = []
    for run, outcome in found.outcomes.items():
        if "dispatch_ms" not in outcome:
            continue
        spent, calls = outcome["dispatch_ms"], outcome["calls"]
        total = number(spent["mean"]) * calls if calls else 0.0
        row: dict[str, Any] = {
            "run": str(run),
            "dispatch (ms)": total / max(outcome["queues"]["passes"], 1),
            "published (ms)": "",
            "a call (ms)": number(spent["mean"]),
            "longest (ms)": number(spent["high"]),
            "passes": outcome["queues"]["passes"],
            "calls": calls,
            "simulation (s)": outcome["total_s"],
            "published (s)": "",
        }
        published = _published(found, run)
        if published is not None:
            ended = np.isfinite(published.dispatch_ms)
            row["published (ms)"] = f"{published.dispatch_ms:,.0f}" if ended else NOT_FINISHED
            row["published (s)"] = f"{published.total_s:,.0f}" if ended else NOT_FINISHED
        rows.append(row)
    return pd.DataFrame(rows)


def _published(found: Findings, run: configurations.Run) -> Times | None:
    """Return the published times of a run; PCP'19's are those of PCP'19 as published."""
    dispatcher = "pcp19" if run.dispatcher == AS_PUBLISHED else run.dispatcher
    return TIMES.get(found.machine, {}).get((dispatcher, run.duration))


def as_published(found: Findings) -> pd.DataFrame:
    """Return how far PCP'19 came without a hint and a fallback: a row for each seed."""
    rows = []
    for run, outcome in {**found.outcomes, **found.stopped}.items():
        published = _published(found, run)
        said = published is not None and not np.isfinite(published.dispatch_ms)
        for seed, one in zip(found.load.seeds, outcome.get("alone", ()), strict=False):
            row: dict[str, Any] = {"run": str(run), "seed": seed, "jobs": one["jobs"]}
            row |= {"started": one["started"], "calls": one["calls"]}
            row |= {"nothing found": one["nothing found"], "of these idle": one["idle"]}
            row |= {"days": one["days"], "last start (days)": number(one["last_day"])}
            row["ours"] = "finished" if one["started"] == one["jobs"] else NOT_FINISHED
            row["published"] = NOT_FINISHED if said else "finished"
            rows.append(row)
    return pd.DataFrame(rows)


def solving(found: Findings) -> pd.DataFrame:
    """Return what became of the models: how many were solved to what."""
    rows = []
    for run, outcome in found.outcomes.items():
        if outcome.get("solved") and run.dispatcher not in configurations.PLANS:
            rows.append({"run": str(run), **outcome["solved"]})
    return pd.DataFrame(rows)


def by_queue(found: Findings) -> pd.DataFrame:
    """Return the mean time of a dispatch [ms] by the number of queued jobs, in powers of two."""
    rows = []
    for run, outcome in found.outcomes.items():
        if run.dispatcher in configurations.SOLVERS:
            cells = {str(of["queued"]): of["mean_ms"] for of in outcome["by_queue"]}
            rows.append({"run": str(run), **cells})
    columns = sorted({key for row in rows for key in row if key != "run"}, key=int)
    table = pd.DataFrame(rows, columns=["run", *columns])
    return table.rename(columns={least: f"from {least}" for least in columns})


# --- Comparisons ----------------------------------------------------------------------------------


def statements(found: Findings) -> pd.DataFrame:
    """Return what the text of Remediani 2017 says of its figures, and what ours are.

    Its figures have slowdowns of the jobs whose slowdown is not 1 (sections 3.3.1 and 5.1), so ours
    are means over those; of waits it averages all, those that are 0 too.
    """
    by_name = {
        _full(run): outcome
        for run, outcome in found.outcomes.items()
        if run.allocation == "first-fit"
    }
    rows = []
    for said in STATEMENTS:
        if said.first in by_name and said.second in by_name:
            drawn = said.measure.replace("slowdown", "slowed")
            ours, theirs = (_value(by_name[name], drawn) for name in (said.first, said.second))
            if np.isfinite(ours) and np.isfinite(theirs):
                relation = "about" if said.about else "below"
                pair = f"{said.first} {relation} {said.second}"
                rows.append(
                    {
                        "Remediani 2017 says": f"{said.measure}: {pair}",
                        "section": said.section,
                        "the first": ours,
                        "the second": theirs,
                        "ours": _holds(ours, theirs, about=said.about),
                        "added": "later" if said.later else "",
                    }
                )
    return pd.DataFrame(rows)


def _holds(first: float, second: float, *, about: bool) -> str:
    if about:
        return "so" if np.isclose(first, second, rtol=ABOUT) else "not so"
    if np.isclose(first, second, rtol=0.01):
        return "equal within 1 %"
    return "so" if first < second else "not so"


def _full(run: configurations.Run) -> str:
    return f"{run.dispatcher} {run.duration}"


def _value(outcome: Outcome, measure: str) -> float:
    """Return the mean of a measure: "queue", one of a box such as "slowed", or "slowed, long".

    Of "box of queue" and the like it is the upper quartile.
    """
    part = "q3" if measure.startswith(_BOX) else "mean"
    measure = measure.removeprefix(_BOX)
    if measure == "queue":
        return number(outcome["queues"]["queue"][part])
    what, _, of = measure.partition(", ")
    return number(outcome["shapes"][of or "all"][what][part])


_BOX = "box of "


# --- Sizes (Galleguillos 2020, figures 6 and 7) ---------------------------------------------------


def sizes(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the ratios of variables, times and objectives, PCP'20 to PCP'19, of each instance."""
    rows = []
    for found in findings:
        for run, outcome in found.instances.items():
            row: dict[str, Any] = {"machine": found.machine, "instances of": str(run)}
            row["number"] = len(outcome["variables"])
            for what, values in (
                ("as published", outcome["as_published"]),
                ("ours", outcome["variables"]),
                ("seconds", outcome["seconds"]),
                ("objective", outcome["objective"]),
            ):
                ratio = ratios(values)
                row[f"{what}: median ratio"] = float(np.median(ratio)) if ratio.size else np.nan
                row[f"{what}: largest ratio"] = float(ratio.max()) if ratio.size else np.nan
                if what == "seconds":
                    low, high = SECONDS_BETWEEN
                    within = (low <= ratio) & (ratio <= high)
                    row[f"seconds: share within {low:g} to {high:g}"] = _share(within)
                elif what == "objective":
                    row["objective: share at 1"] = _share(np.isclose(ratio, 1, rtol=1e-9))
                else:
                    row[f"{what}: share below {VARIABLES_BELOW}"] = _share(ratio < VARIABLES_BELOW)
            rows.append(row)
    return pd.DataFrame(rows)


def ratios(pairs: Sequence[Sequence[float]]) -> Any:
    """Return the ratios of pairs, PCP'20's to PCP'19's, where both are."""
    given = np.array([pair for pair in pairs if None not in pair], np.float64).reshape(-1, 2)
    return given[:, 0] / given[:, 1]


def _share(of: Any) -> float:
    return float(of.mean()) if of.size else float("nan")


def hints(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return what solvers find with the list's schedule as a hint, and without."""
    rows = []
    for found in findings:
        for run, outcome in found.instances.items():
            asked: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
            for one in outcome["hints"]:
                asked.setdefault((one["dispatcher"], one["hint"]), []).append(one)
            for (dispatcher, hint), of in asked.items():
                row: dict[str, Any] = {"machine": found.machine, "instances of": str(run)}
                row |= {"dispatcher": dispatcher, "hint": "the list" if hint else "none"}
                row |= {"models": len(of)}
                row["considered"] = float(np.mean([one["considered"] for one in of]))
                row |= {key: 100 * float(np.mean([one[key] for one in of])) for key in _HINTED}
                rows.append(row)
    return pd.DataFrame(rows).rename(columns=_HINTED)


_HINTED = {"found": "found %", "better": "better than the list %", "gap": "mean gap %"}


# --- The documents' figures -----------------------------------------------------------------------

_COLOURS = dict(
    zip(
        configurations.DURATIONS,
        (canvas.VERMILLION, canvas.BLUE, canvas.ORANGE, canvas.GREEN),
        strict=True,
    )
)
_WIDTH = 0.25  # inches of a box
_NOTE = "low, quartiles, median and high; triangles: means"


def draw_slowdowns(found: Findings) -> Figure:
    """Figures 5.1, 5.5 and 5.9: slowdowns of the jobs that waited."""
    figure = canvas.new_figure(_wide(found), 4.4)
    axes = figure.add_subplot()
    _boxes(axes, found, lambda of: of["shapes"]["all"]["slowed"])
    finish(axes, f"Slowdown of the jobs that waited: {found.machine}", _NOTE, y="slowdown", log="y")
    return figure


def draw_classes(found: Findings) -> Figure:
    """Figures 5.2 and 5.6: the same for short, medium and long jobs."""
    names = classes_of(found)
    figure = canvas.new_figure(_wide(found), 1.5 + 2.5 * len(names))
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for one, name in zip(axes, names, strict=True):
        _boxes(one, found, lambda of, name=name: of["shapes"][name]["slowed"])  # type: ignore[misc]
        heading = f"Slowdown by class of jobs, of those that waited: {found.machine}"
        finish(one, heading if one is axes[0] else "", _NOTE, y=f"slowdown, {name}", log="y")
    return figure


def classes_of(found: Findings) -> list[str]:
    """Return the classes of which some job waited in some run; one panel, empty, if none did."""
    shapes = [outcome["shapes"] for outcome in found.outcomes.values()]
    names = [name for name in configurations.CLASSES if name != "all"]
    some = [name for name in names if any(of[name]["slowed"]["number"] for of in shapes)]
    return some or names[:1]


def draw_queues(found: Findings) -> Figure:
    """Figures 5.3, 5.7 and 5.10: jobs that wait after each pass."""
    figure = canvas.new_figure(_wide(found), 4.4)
    axes = figure.add_subplot()
    _boxes(axes, found, _queue)
    axes.set_yscale("symlog")
    axes.set_ylim(bottom=0)
    finish(axes, f"Queue: {found.machine}", _NOTE, y="jobs that wait")
    return figure


def _queue(of: Mapping[str, Any]) -> Any:
    """Return the box of a run's queue, that of no values where nobody waits after any pass."""
    queue = of["queues"]["queue"]
    return queue if queue["number"] and queue["high"] > 0 else configurations.box([])


def draw_waits(found: Findings) -> Figure:
    """Figures 5.4, 5.8 and 5.11: waits, and the trend of their average over all jobs."""
    figure = canvas.new_figure(_wide(found), 7)
    boxes, trend = figure.subplots(2, 1, sharex=True)
    _boxes(boxes, found, lambda of: of["shapes"]["all"]["waited"])
    side = "wait of those that waited (s)"
    finish(boxes, f"Waiting times: {found.machine}", _NOTE, y=side, log="y")
    means = [number(of["shapes"]["all"]["wait"]["mean"]) for of in found.outcomes.values()]
    trend.plot(range(len(means)), means, "o-", color=canvas.DARK_GREY, markersize=4, linewidth=1)
    trend.set_ylim(bottom=0)
    trend.tick_params(axis="x", rotation=90)  # the shared axis hands on names, not their rotation
    finish(trend, y="average wait (s)")
    return figure


_MEANS = {"W": "requested", "D": "data-driven", "L2": "last two of the user", "R": "real run time"}


def _wide(found: Findings) -> float:
    return max(6.0, 1.5 + _WIDTH * len(found.outcomes))


def _boxes(axes: Axes, found: Findings, of: Callable[[Mapping[str, Any]], Any]) -> None:
    """Draw a box for each run, coloured by its durations."""
    runs = list(found.outcomes)
    boxes = {place: of(found.outcomes[run]) for place, run in enumerate(runs)}
    boxes = {place: part for place, part in boxes.items() if part["number"]}
    drawn = [{name: part[ours] for name, ours in _PARTS.items()} for part in boxes.values()]
    if drawn:
        made = axes.bxp(
            drawn, positions=list(boxes), widths=0.6, showfliers=False, showmeans=True,
            patch_artist=True, medianprops={"color": "black"}, meanprops=_MEAN,
            manage_ticks=False,
        )  # fmt: skip
        named: set[str] = set()
        for place, patch in zip(boxes, made["boxes"], strict=True):
            letter = runs[place].duration
            name = "_" if letter in named else f"{letter}: {_MEANS[letter]}"
            patch.set(facecolor=_COLOURS[letter], alpha=0.7, label=name)
            named.add(letter)
    else:
        axes.text(0.5, 0.5, "no job waits", transform=axes.transAxes, ha="center", fontsize=9)
        axes.tick_params(axis="y", which="both", left=False, labelleft=False)
    axes.set_xlim(-0.7, len(runs) - 0.3)
    axes.set_xticks(range(len(runs)), [str(run) for run in runs], rotation=90)


#: What matplotlib calls the parts of a box.
_PARTS = {
    "whislo": "low",
    "q1": "q1",
    "med": "median",
    "q3": "q3",
    "whishi": "high",
    "mean": "mean",
}
_MEAN = {"marker": "^", "markerfacecolor": "black", "markeredgecolor": "white", "markersize": 5}


def draw_means(found: Findings) -> Figure:
    """Figures 4 and 5 of Galleguillos 2020, of all runs: means and one standard deviation."""
    runs = list(found.outcomes)
    figure = canvas.new_figure(_wide(found), 7)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, measure, label in zip(panels, ("slowdown", "wait"), ("", " (s)"), strict=True):
        of_all = [found.outcomes[run]["shapes"]["all"][measure] for run in runs]
        parts = [[number(one[name]) for one in of_all] for name in ("mean", "std", "low")]
        mean, std, low = np.array(parts)
        # no job is below the least, and a deviation of a long tail may be
        errors = np.array([np.fmin(std, mean - low), std])
        axes.errorbar(range(len(runs)), mean, errors, fmt="o", color=canvas.BLUE, capsize=3)
        heading = f"Slowdown and wait of all jobs: {found.machine}" if axes is panels[0] else ""
        note = "bars: one standard deviation, but not below the least value"
        finish(axes, heading, note, y=f"average {measure}{label}")
    panels[1].set_xticks(range(len(runs)), [str(run) for run in runs], rotation=90)
    return figure


def draw_ratios(found: Findings) -> Figure:
    """Figures 6 and 7 of Galleguillos et al. 2020: PCP'20 to PCP'19 on each instance."""
    figure = canvas.new_figure(8, 3.8)
    panels = (("variables", "number of variables"), ("seconds", "time of a dispatch"))
    for axes, (what, label) in zip(figure.subplots(1, 2), panels, strict=True):
        for place, (run, outcome) in enumerate(found.instances.items()):
            ratio = ratios(outcome[what])
            style = {"markersize": 4, "alpha": 0.7, "color": canvas.line_style(place)["color"]}
            axes.plot(np.arange(1, ratio.size + 1), ratio, "o", label=str(run), **style)
        at = VARIABLES_BELOW if what == "variables" else 1
        axes.axhline(at, color=canvas.DARK_GREY, linewidth=0.8)
        heading, side = f"PCP'20 to PCP'19: {label}", f"ratio: {label}"
        finish(axes, heading, found.machine, x="instance", y=side, log="y")
    return figure
