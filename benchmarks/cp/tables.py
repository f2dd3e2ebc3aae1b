"""Tables and pictures of the study, ours beside the published values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.cp.items import (
    INFINITE,
    OF_EURORA,
    SECONDS_BETWEEN,
    STATEMENTS,
    TIMES,
    VARIABLES_BELOW,
    judge_ratio,
    ratio_interval,
)
from hpcgym.benchmarks.cp.runs import BARE, CLASSES, DURATIONS, PARTS, Findings, Run
from hpcgym.benchmarks.studies.tables import finish
from hpcgym.report import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Outcome = Mapping[str, Any]
Outcomes = Sequence[Outcome]

#: What published tables have where a run did not come to its end.
NOT_FINISHED = "none finished"


def number(value: float | None) -> float:
    """Return a number of an outcome; what is none was kept as null."""
    return float("nan") if value is None else float(value)


def value_of(outcome: Outcome, measure: str) -> float:
    """Return a part of a box, such as "slowdown q3, long": of the jobs of a class that waited.

    Waits are those of all jobs.
    """
    what, _, name = measure.partition(", ")
    kind, part = what.split()
    if kind == "queue":
        return number(outcome["queue"][part])
    key = {"slowdown": "slowed", "wait": "wait"}[kind]
    return number(outcome["shapes"][name or "all"][key][part])


def mean_of(outcomes: Outcomes, *keys: str) -> float:
    """Return the mean over seeds of a number of outcomes; of those that have it."""
    values = []
    for one in outcomes:
        for key in keys:
            one = one[key]
        values.append(number(one))  # type: ignore[arg-type]
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


# --- Slowdown, waits and queues (Remediani 2017, figures 3.3 to 5.11) -----------------------------


def slowdowns(found: Findings) -> pd.DataFrame:
    """Return slowdowns of all jobs by class, and the boxes of those that waited."""
    return _by_class(found, "slowdown", "slowed")


def waits(found: Findings) -> pd.DataFrame:
    """Return waits [s] of all jobs by class, and the boxes of those that waited."""
    return _by_class(found, "wait", "waited")


def _by_class(found: Findings, measure: str, late: str) -> pd.DataFrame:
    rows = []
    for run, outcomes in found.ended().items():
        row: dict[str, Any] = {"run": str(run)}
        for name in CLASSES:
            row["mean" if name == "all" else name] = mean_of(
                outcomes, "shapes", name, measure, "mean"
            )
        row["std"] = mean_of(outcomes, "shapes", "all", measure, "std")
        for part in ("number", *PARTS, "mean"):
            row[f"{part}, waited"] = mean_of(outcomes, "shapes", "all", late, part)
        rows.append(row)
    return pd.DataFrame(rows)


def queues(found: Findings) -> pd.DataFrame:
    """Return how many jobs wait after passes (equation 3.2)."""
    return pd.DataFrame(
        [
            {"run": str(run)}
            | {part: mean_of(of, "queue", part) for part in ("number", "mean", *PARTS[1:])}
            for run, of in found.ended().items()
        ]
    )


def statements(found: Findings) -> pd.DataFrame:
    """Return what the text of Remediani 2017 says, and whether ours hold by intervals."""
    if found.name not in OF_EURORA:
        return pd.DataFrame()
    ended = {str(run): outcomes for run, outcomes in found.ended().items()}
    rows = []
    for said in STATEMENTS:
        second, _, of_class = said.second.partition(", ")
        other = f"{said.measure.partition(', ')[0]}, {of_class}" if of_class else said.measure
        pair = []
        for run, measure in ((said.first, said.measure), (second, other)):
            dispatcher, letter = run.split()
            outcomes = ended.get(f"{found.machine.named(dispatcher)} {letter}")
            if outcomes is not None:
                pair.append([value_of(one, measure) for one in outcomes])
        if len(pair) < 2:
            continue
        low, high = ratio_interval(*pair)
        row: dict[str, Any] = {"item": said.item, "section": said.section}
        row |= {"Remediani 2017 says": str(said)}
        row |= {name: _mean(of) for name, of in zip(("the first", "the second"), pair, strict=True)}
        row |= {"ratio, low": low, "ratio, high": high}
        rows.append(row | {"so": judge_ratio(low, high, said.relation) if low == low else None})
    return pd.DataFrame(rows)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


# --- Times and models (Galleguillos 2020) ---------------------------------------------------------


def times(found: Findings) -> pd.DataFrame:
    """Return the average time of a dispatch [ms] and that of the whole simulations [s].

    A dispatcher is not called where no job fits. The published averages are over all invocations,
    so the sum of ours is shown over the passes with jobs in the queue too.
    """
    rows = []
    for run, outcomes in found.ended().items():
        if "dispatch_ms" not in outcomes[0]:
            continue
        calls = [one["dispatch_ms"]["number"] for one in outcomes]
        spent = sum(
            number(one["dispatch_ms"]["mean"]) * n
            for one, n in zip(outcomes, calls, strict=True)
            if n
        )
        passes = sum(one["queue"]["number"] for one in outcomes)
        row: dict[str, Any] = {
            "run": str(run),
            "dispatch (ms)": spent / max(passes, 1),
            "published (ms)": "",
            "a call (ms)": spent / max(sum(calls), 1),
            "longest (ms)": max(number(one["dispatch_ms"]["high"]) for one in outcomes),
            "passes": passes,
            "calls": sum(calls),
            "simulation (s)": sum(one["total_s"] for one in outcomes),
            "published (s)": "",
        }
        published = TIMES.get(found.name, {}).get((run.dispatcher, run.duration))
        if published is not None:
            ended = published.dispatch_ms < INFINITE
            row["published (ms)"] = f"{published.dispatch_ms:,.0f}" if ended else NOT_FINISHED
            row["published (s)"] = f"{published.total_s:,.0f}" if ended else NOT_FINISHED
        rows.append(row)
    return pd.DataFrame(rows)


def as_published(found: Findings) -> pd.DataFrame:
    """Return whether PCP'19 as published came to its end: a row for each seed."""
    rows = []
    for run, outcomes in found.outcomes.items():
        if run.dispatcher != BARE:
            continue
        published = TIMES[found.name]["pcp19", run.duration]
        for seed, one in zip(found.seeds, outcomes, strict=True):
            stopped = "stopped" in one
            row: dict[str, Any] = {"run": str(run), "seed": seed}
            row["started"] = one["started"] if stopped else one["shapes"]["all"]["jobs"]
            row["jobs"] = one["jobs"] if stopped else row["started"]
            row["nothing found"] = float("nan") if stopped else one["solved"]["unknown"]
            row["ours"] = NOT_FINISHED if stopped else "finished"
            row["published"] = "finished" if published.dispatch_ms < INFINITE else NOT_FINISHED
            rows.append(row)
    return pd.DataFrame(rows)


def solving(found: Findings) -> pd.DataFrame:
    """Return what became of the models: how many were solved to what, of all seeds together."""
    rows = []
    for run, outcomes in found.ended().items():
        if outcomes[0].get("solved"):
            of = pd.DataFrame([one["solved"] for one in outcomes]).astype(float)
            means = of[["considered", "variables"]].mean()
            sums = of.drop(columns=means.index).sum()
            rows.append({"run": str(run), **sums.to_dict(), **means.to_dict()})
    return pd.DataFrame(rows)


def qualities(found: Findings) -> pd.DataFrame:
    """Return the ratios of HCP'19's mean slowdowns and waits to PCP'20's, with intervals."""
    ended, rows = found.ended(), []
    for letter in found.machine.durations:
        pair = [ended.get(Run(name, letter)) for name in ("hcp19", "pcp20")]
        for measure in ("slowdown", "wait") if all(pair) else ():
            values = [
                [number(one["shapes"]["all"][measure]["mean"]) for one in outcomes or ()]
                for outcomes in pair
            ]
            low, high = ratio_interval(*values)
            row: dict[str, Any] = {"measure": f"{measure} {letter}"}
            row |= {"hcp19": _mean(values[0]), "pcp20": _mean(values[1])}
            rows.append(row | {"low": low, "high": high})
    return pd.DataFrame(rows)


def sizes(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the ratios of variables, times and objectives, PCP'20 to PCP'19, of each instance."""
    rows = []
    for found in findings:
        for run, outcome in found.instances.items():
            row: dict[str, Any] = {"machine": found.name, "instances of": str(run)}
            row["number"] = len(outcome["variables"])
            for what, key in (
                ("as published", "as_published"),
                ("ours", "variables"),
                ("seconds", "seconds"),
                ("objective", "objective"),
            ):
                ratio = ratios(outcome[key])
                row[f"{what}: median ratio"] = float(np.median(ratio)) if ratio.size else np.nan
                row[f"{what}: largest ratio"] = float(ratio.max()) if ratio.size else np.nan
                if what == "seconds":
                    least, most = SECONDS_BETWEEN
                    share = (least <= ratio) & (ratio <= most)
                    row[f"seconds: share within {least:g} to {most:g}"] = _share(share)
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


# --- The documents' figures -----------------------------------------------------------------------

_COLOURS = dict(
    zip(DURATIONS, (canvas.VERMILLION, canvas.BLUE, canvas.ORANGE, canvas.GREEN), strict=True)
)
_NOTE = "low, quartiles, median, high, and mean (triangle): means over seeds"
#: What matplotlib calls the parts of a box.
_OF_BOXES = ("whislo", "q1", "med", "q3", "whishi")
_MEAN = {"marker": "^", "markerfacecolor": "black", "markeredgecolor": "white", "markersize": 5}


def draw_slowdowns(found: Findings) -> Figure:
    """Figures 3.3, 3.4, 5.1, 5.2, 5.5, 5.6 and 5.9: slowdowns of the jobs that waited, by class."""
    side = {name: f"slowdown, {name}" for name in CLASSES}
    return _draw(found, {side[name]: ("shapes", name, "slowed") for name in CLASSES}, "Slowdown")


def draw_waits(found: Findings) -> Figure:
    """Figures 5.4, 5.8 and 5.11: waits of those that waited."""
    return _draw(found, {"wait (s)": ("shapes", "all", "waited")}, "Waits")


def draw_queues(found: Findings) -> Figure:
    """Figures 3.5, 5.3, 5.7 and 5.10: jobs that wait after each pass."""
    return _draw(found, {"jobs that wait": ("queue",)}, "Queue", symlog=True)


def _draw(
    found: Findings, panels: Mapping[str, tuple[str, ...]], heading: str, *, symlog: bool = False
) -> Figure:
    """Draw a panel of boxes for each part of the outcomes."""
    runs = found.ended()
    figure = canvas.new_figure(max(6.0, 1.5 + 0.25 * len(runs)), 1.9 + 2.5 * len(panels))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for one, (side, keys) in zip(axes, panels.items(), strict=True):
        _boxes(one, runs, keys)
        first = f"{heading}: {found.name}" if one is axes[0] else ""
        finish(one, first, _NOTE, y=side, log="" if symlog else "y")
        if symlog:
            one.set_yscale("symlog")
            one.set_ylim(bottom=0)
    axes[-1].set_xticks(range(len(runs)), [str(run) for run in runs], rotation=90)
    return figure


def _boxes(axes: Axes, runs: Mapping[Run, Outcomes], keys: tuple[str, ...]) -> None:
    """Draw a box for each run that has one, coloured by its durations."""
    named: set[str] = set()
    for place, (run, outcomes) in enumerate(runs.items()):
        parts = {part: mean_of(outcomes, *keys, part) for part in (*PARTS, "mean")}
        if not all(np.isfinite(value) for value in parts.values()):
            continue
        drawn = dict(zip(_OF_BOXES, [parts[part] for part in PARTS], strict=True))
        made = axes.bxp(
            [{**drawn, "mean": parts["mean"]}], positions=[place], widths=0.6, showfliers=False,
            showmeans=True, patch_artist=True, medianprops={"color": "black"}, meanprops=_MEAN,
            manage_ticks=False,
        )  # fmt: skip
        name = "_" if run.duration in named else f"{run.duration}: {DURATIONS[run.duration]}"
        made["boxes"][0].set(facecolor=_COLOURS[run.duration], alpha=0.7, label=name)
        named.add(run.duration)
    if not named:
        axes.text(0.5, 0.5, "no job waits", transform=axes.transAxes, ha="center", fontsize=9)
    axes.set_xlim(-0.7, len(runs) - 0.3)


def draw_means(found: Findings) -> Figure:
    """Figures 4 and 5 of Galleguillos 2020, of all runs: means and one standard deviation."""
    runs = found.ended()
    figure = canvas.new_figure(max(6.0, 1.5 + 0.25 * len(runs)), 7)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, measure, label in zip(panels, ("slowdown", "wait"), ("", " (s)"), strict=True):
        parts = [
            [mean_of(of, "shapes", "all", measure, part) for of in runs.values()]
            for part in ("mean", "std", "low")
        ]
        mean, std, low = np.array(parts)
        # no job is below the least, and a deviation of a long tail may be
        errors = np.array([np.fmin(std, mean - low), std])
        axes.errorbar(range(len(runs)), mean, errors, fmt="o", color=canvas.BLUE, capsize=3)
        heading = f"Slowdown and wait of all jobs: {found.name}" if axes is panels[0] else ""
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
        finish(axes, heading, found.name, x="instance", y=side, log="y")
    return figure


#: Name of a table of one machine -> what makes it.
TABLES: dict[str, Callable[[Findings], pd.DataFrame]] = {
    "slowdown": slowdowns,
    "wait": waits,
    "queue": queues,
    "statements": statements,
    "times": times,
    "as-published": as_published,
    "qualities": qualities,
    "solving": solving,
}

#: Heading of a picture of one machine -> what draws it, and the name of its file.
PICTURES: dict[str, tuple[Callable[[Findings], Figure], str]] = {
    "Slowdown of the jobs that waited": (draw_slowdowns, "slowdown"),
    "Queue": (draw_queues, "queue"),
    "Waiting times": (draw_waits, "wait"),
    "Slowdown and wait (Galleguillos et al. 2020, figures 4 and 5)": (draw_means, "means"),
}
RATIOS = "Models of the same instances (Galleguillos et al. 2020, figures 6 and 7)"
