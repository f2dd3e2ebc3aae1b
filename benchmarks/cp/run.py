"""The whole study: runs on every machine, the same instances; tables, pictures, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from hpcgym import HpcgymError
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp import items, runs
from hpcgym.benchmarks.cp.runs import BARE, CLASSES, DURATIONS, PARTS, Findings, Run
from hpcgym.benchmarks.studies.harness import Folder, Studied
from hpcgym.benchmarks.studies.tables import Rows, finish, of_rows, read_texts
from hpcgym.errors import check_choice
from hpcgym.report import canvas

#: What published tables have where a run did not come to its end.
NOT_FINISHED = "none finished"


def ended(findings: Findings) -> dict[Run, pd.DataFrame]:
    """Return the outcomes of the runs that came to a schedule on every seed.

    Returns
    -------
    run -> a row for each seed, whose columns are as ``shapes.long.slowed.q3``; beside what
    :func:`hpcgym.benchmarks.cp.runs.simulate_one` returns ``dispatch.mean``, the time of all calls
    [ms] by the passes with jobs in the queue, and ``simulation.total`` [s].
    """
    kept = {}
    for run, outcomes in findings.outcomes.items():
        if not any("stopped" in outcome for outcome in outcomes):
            of = pd.json_normalize(list(outcomes)).apply(pd.to_numeric, errors="coerce")
            of["simulation.total"] = of["total_s"]
            if "dispatch_ms.number" in of:
                of["calls_ms"] = of["dispatch_ms.mean"].fillna(0) * of["dispatch_ms.number"]
                of["dispatch.mean"] = of["calls_ms"] / of["queue.number"].clip(lower=1)
            kept[run] = of
    return kept


def means(findings: Findings) -> pd.DataFrame:
    """Return the mean over the seeds of each number of an outcome: a row for each run."""
    return pd.DataFrame({str(run): of.mean() for run, of in ended(findings).items()}).T


def _means(findings: Findings, names: Mapping[str, str]) -> pd.DataFrame:
    """Return some columns of the means by other names, and the runs."""
    chosen = means(findings).reindex(columns=list(names)).rename(columns=names)
    return chosen.rename_axis("run").reset_index()


# --- Slowdown, waits and queues (Remediani 2017, figures 3.3 to 5.11) -----------------------------


def by_class(findings: Findings, measure: str, late: str) -> pd.DataFrame:
    """Return a measure of all jobs by class, and its boxes of those that waited."""
    names = {f"shapes.{name}.{measure}.mean": name for name in CLASSES}
    names |= {f"shapes.all.{measure}.mean": "mean", f"shapes.all.{measure}.std": "std"}
    parts = ("number", *PARTS, "mean")
    return _means(
        findings, names | {f"shapes.all.{late}.{part}": f"{part}, waited" for part in parts}
    )


def queues(findings: Findings) -> pd.DataFrame:
    """Return how many jobs wait after passes (equation 3.2)."""
    return _means(findings, {f"queue.{part}": part for part in ("number", "mean", *PARTS[1:])})


@of_rows
def statements(findings: Findings) -> Rows:
    """Return what the texts say of pairs of runs, and whether ours hold by intervals."""
    of_runs = {str(run): of for run, of in ended(findings).items()}

    for said in items.STATEMENTS:
        pair = []
        for run, measure in said.pair if findings.name in items.machines_of(said.item) else ():
            dispatcher, letter = run.split()
            of = of_runs.get(f"{findings.machine.named(dispatcher)} {letter}")
            pair += [] if of is None else [of[items.column_of(measure)]]
        if len(pair) == 2:
            low, high = items.ratio_interval(pair[0].tolist(), pair[1].tolist())
            row: dict[str, Any] = {"item": said.item, "section": said.section}
            row |= {"what is said": str(said), "jobs": findings.workloads}
            row |= {"the first": pair[0].mean(), "the second": pair[1].mean()}
            row |= {"ratio, low": low, "ratio, high": high}
            known = low == low
            yield row | {"so": items.judge_ratio(low, high, said.relation) if known else None}


# --- Times and models (Galleguillos 2020) ---------------------------------------------------------


@of_rows
def times(findings: Findings) -> Rows:
    """Return the average time of a dispatch [ms] and that of the whole simulations [s].

    A dispatcher is not called where no job fits. The published averages are over all invocations,
    so the sum of ours is shown over the passes with jobs in the queue too.
    """
    for run, of in ended(findings).items():
        if "calls_ms" in of:
            spent, calls, passes = of[["calls_ms", "dispatch_ms.number", "queue.number"]].sum()
            ms, s = _published(findings, run)
            row: dict[str, Any] = {"run": str(run), "dispatch (ms)": spent / max(passes, 1)}
            row |= {"published (ms)": ms, "a call (ms)": spent / max(calls, 1)}
            row |= {"longest (ms)": of["dispatch_ms.high"].max()}
            row |= {"passes": int(passes), "calls": int(calls)}
            yield row | {"simulation (s)": of["total_s"].sum(), "published (s)": s}


def _published(findings: Findings, run: Run) -> tuple[str, str]:
    """Return the published times of a run, or what is printed in place of them."""
    printed = items.TIMES.get(findings.name, {}).get(run.duration, {}).get(run.dispatcher)
    if printed is None:
        return "", ""
    ms, s = (
        (f"{printed_time:,.0f}" for printed_time in printed)
        if printed
        else (NOT_FINISHED, NOT_FINISHED)
    )
    return ms, s


@of_rows
def as_published(findings: Findings) -> Rows:
    """Return whether PCP'19 as published came to its end: a row for each seed."""
    for run, outcomes in findings.outcomes.items():
        for seed, outcome in (
            zip(findings.seeds, outcomes, strict=True) if run.dispatcher == BARE else ()
        ):
            jobs = outcome["jobs"] if "stopped" in outcome else outcome["shapes"]["all"]["jobs"]
            row: dict[str, Any] = {"run": str(run), "seed": seed}
            row |= {"started": outcome.get("started", jobs), "jobs": jobs}
            row |= {"nothing found": outcome.get("solved", {}).get("unknown")}
            row |= {"ours": NOT_FINISHED if "stopped" in outcome else "finished"}
            yield row | {"published": _published(findings, Run("pcp19", run.duration))[0]}


@of_rows
def solving(findings: Findings) -> Rows:
    """Return what became of the models: how many were solved to what, of all seeds together."""
    for run, outcomes in ended(findings).items():
        of = outcomes.filter(like="solved.").rename(columns=lambda name: name.partition(".")[2])
        if len(of.columns):
            means = of[["considered", "variables"]].mean()
            yield {"run": str(run), **of.drop(columns=means.index).sum(), **means}


@of_rows
def sizes(findings: Sequence[Findings]) -> Rows:
    """Return the ratios of variables, times and objectives, PCP'20 to PCP'19, of each instance."""
    least, most = items.SECONDS_BETWEEN
    few = f"share below {items.VARIABLES_BELOW}"
    within = f"share within {least:g} to {most:g}"
    shares: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
        "as published": ("as_published", few, lambda ratio: ratio < items.VARIABLES_BELOW),
        "ours": ("variables", few, lambda ratio: ratio < items.VARIABLES_BELOW),
        "seconds": ("seconds", within, lambda ratio: ratio.between(least, most)),
        "objective": ("objective", "share at 1", lambda ratio: np.isclose(ratio, 1, rtol=1e-9)),
    }

    for of_machine in findings:
        for run, outcome in of_machine.instances.items():
            row: dict[str, Any] = {"machine": of_machine.name, "instances of": str(run)}
            row["number"] = len(outcome["variables"])
            for what, (key, share, so) in shares.items():
                ratio = ratios(outcome[key])
                row[f"{what}: median ratio"] = ratio.median()
                row[f"{what}: largest ratio"] = ratio.max()
                row[f"{what}: {share}"] = pd.Series(so(ratio)).mean()
            yield row


def ratios(pairs: Sequence[Sequence[float]]) -> pd.Series[float]:
    """Return the ratios of pairs, PCP'20's to PCP'19's, where both are."""
    given = pd.DataFrame(pairs, columns=["first", "second"], dtype=float).dropna()
    return given["first"] / given["second"]


# --- The documents' figures -----------------------------------------------------------------------

_COLOURS = dict(
    zip(DURATIONS, (canvas.VERMILLION, canvas.BLUE, canvas.ORANGE, canvas.GREEN), strict=True)
)
_NOTE = "low, quartiles, median, high, and mean (triangle): means over seeds"
#: What matplotlib calls the parts of a box.
_OF_BOXES = ("whislo", "q1", "med", "q3", "whishi", "mean")
_MEAN = {"marker": "^", "markerfacecolor": "black", "markeredgecolor": "white", "markersize": 5}


def _by_run(
    findings: Findings, panels: int, high: float
) -> tuple[canvas.Figure, Any, pd.DataFrame]:
    """Return a figure of panels above one another with a place for each run, and the means."""
    of = means(findings)
    figure = canvas.new_figure(max(6.0, 1.5 + 0.25 * len(of)), high)
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    axes[-1].set_xticks(range(len(of)), of.index, rotation=90)
    return figure, axes, of


def draw_boxes(findings: Findings, panels: Mapping[str, str], scale: str = "log") -> canvas.Figure:
    """Draw a panel of boxes for each part of the outcomes: a box for each run that has one."""
    figure, every, of = _by_run(findings, len(panels), 1.9 + 2.5 * len(panels))
    for axes, (side, where) in zip(every, panels.items(), strict=True):
        _draw_boxes(axes, of.reindex(columns=[f"{where}.{part}" for part in (*PARTS, "mean")]))
        first = (
            f"{side.partition(',')[0].capitalize()}: {findings.name}" if axes is every[0] else ""
        )
        finish(axes, first, _NOTE, y=side, log="y" if scale == "log" else "")
        if scale == "symlog":
            axes.set_yscale("symlog")
            axes.set_ylim(bottom=0)
    return figure


def _draw_boxes(axes: canvas.Axes, boxes: pd.DataFrame) -> None:
    """Draw the boxes that have all parts, coloured by the durations of their runs."""
    named: set[str] = set()
    for place, (run, *box) in enumerate(boxes.itertuples()):
        letter = str(run).split()[1]
        if np.isfinite(box).all():
            drawn = dict(zip(_OF_BOXES, box, strict=True))
            made = axes.bxp(
                [drawn], positions=[place], widths=0.6, showfliers=False,
                showmeans=True, patch_artist=True, medianprops={"color": "black"}, meanprops=_MEAN,
                manage_ticks=False,
            )  # fmt: skip
            name = "_" if letter in named else f"{letter}: {DURATIONS[letter]}"
            made["boxes"][0].set(facecolor=_COLOURS[letter], alpha=0.7, label=name)
            named.add(letter)
    if not named:
        axes.text(0.5, 0.5, "no job waits", transform=axes.transAxes, ha="center", fontsize=9)
    axes.set_xlim(-0.7, len(boxes) - 0.3)


def draw_means(findings: Findings) -> canvas.Figure:
    """Figures 4 and 5 of Galleguillos 2020, of all runs: means and one standard deviation."""
    figure, panels, of = _by_run(findings, 2, 7)
    for axes, measure, label in zip(panels, ("slowdown", "wait"), ("", " (s)"), strict=True):
        where = [f"shapes.all.{measure}.{part}" for part in ("mean", "std", "low")]
        mean, std, low = of.reindex(columns=where).to_numpy().T
        # no job is below the least, and a deviation of a long tail may be
        errors = np.array([np.fmin(std, mean - low), std])
        axes.errorbar(range(len(of)), mean, errors, fmt="o", color=canvas.BLUE, capsize=3)
        heading = f"Slowdown and wait of all jobs: {findings.name}" if axes is panels[0] else ""
        note = "bars: one standard deviation, but not below the least value"
        finish(axes, heading, note, y=f"average {measure}{label}")
    return figure


def draw_ratios(findings: Findings) -> canvas.Figure:
    """Figures 6 and 7 of Galleguillos et al. 2020: PCP'20 to PCP'19 on each instance."""
    figure = canvas.new_figure(8, 3.8)
    panels = (("variables", "number of variables"), ("seconds", "time of a dispatch"))
    for axes, (what, label) in zip(figure.subplots(1, 2), panels, strict=True):
        for place, (run, outcome) in enumerate(findings.instances.items()):
            ratio = ratios(outcome[what])
            style = {"markersize": 4, "alpha": 0.7, "color": canvas.line_style(place)["color"]}
            axes.plot(np.arange(1, ratio.size + 1), ratio, "o", label=str(run), **style)
        at = items.VARIABLES_BELOW if what == "variables" else 1
        axes.axhline(at, color=canvas.DARK_GREY, linewidth=0.8)
        heading, side = f"PCP'20 to PCP'19: {label}", f"ratio: {label}"
        finish(axes, heading, findings.name, x="instance", y=side, log="y")
    return figure


#: Name of a table of one machine -> what makes it.
TABLES: dict[str, Callable[[Findings], pd.DataFrame]] = {
    "slowdown": partial(by_class, measure="slowdown", late="slowed"),
    "wait": partial(by_class, measure="wait", late="waited"),
    "queue": queues,
    "statements": statements,
    "times": times,
    "as-published": as_published,
    "solving": solving,
}

#: Heading of a picture of one machine -> what draws it, and the name of its file. The first are
#: figures 3.3 to 3.5 and 5.1 to 5.11 of Remediani 2017; waits are of those that waited.
PICTURES: dict[str, tuple[Callable[[Findings], canvas.Figure], str]] = {
    "Slowdown of the jobs that waited": (
        partial(
            draw_boxes, panels={f"slowdown, {name}": f"shapes.{name}.slowed" for name in CLASSES}
        ),
        "slowdown",
    ),
    "Queue": (partial(draw_boxes, panels={"jobs that wait": "queue"}, scale="symlog"), "queue"),
    "Waiting times": (partial(draw_boxes, panels={"wait (s)": "shapes.all.waited"}), "wait"),
    "Slowdown and wait (Galleguillos et al. 2020, figures 4 and 5)": (draw_means, "means"),
    "Models of the same instances (Galleguillos et al. 2020, figures 6 and 7)": (
        draw_ratios,
        "ratios",
    ),
}


# --- The whole study -----------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
_LEAST, _MOST = items.SECONDS_BETWEEN
_NUMBERS: dict[str, Any] = {"about": items.ABOUT, "share": items.LEAST, "least": _LEAST}
HEAD, _TEXTS = read_texts(__file__, below=items.VARIABLES_BELOW, most=_MOST, **_NUMBERS)
_SIZES = _TEXTS.pop("sizes")


def reproduce(
    machines: Sequence[str],
    folder: Folder,
    *,
    days: float | None = None,
    seeds: int | None = None,
    quick: bool = False,
    dispatchers: Sequence[str] = (),
) -> Studied:
    """Run the study and write tables, pictures and a report; what was computed before is kept.

    Parameters
    ----------
    machines : names of :data:`runs.MACHINES`.
    folder : where the study is run; outcomes are in its folders ``runs`` and ``instances``.
    days, seeds : how long the workload of each seed is, and how many there are; None: see
        :data:`runs.MACHINES`.
    quick : a small cut, which is compared with nothing published.
    dispatchers : those that are run, of :data:`runs.DISPATCHERS`; by default all. Tables and
        pictures of before that are not made of these are removed.

    Returns
    -------
    The file of the report, and machine -> its table of slowdowns, if any run came to schedules.

    Raises
    ------
    HpcgymError : an unknown machine or dispatcher, a machine with none of the dispatchers, days or
        seeds that are no positive numbers, a workload that cannot be read, a file that cannot be
        written, a task that fails, or no matplotlib, or no OR-Tools where a dispatcher solves
        models.
    """
    for name in machines:
        check_choice("machine of the study", name, runs.MACHINES)
    for name in dispatchers:
        check_choice("dispatcher of the study", name, runs.DISPATCHERS)
    for what, value in (("days", days), ("seeds", seeds)):
        if value is not None and not value > 0:
            raise HpcgymError(f"{what} must be a number above 0, not {value!r}")
    asked = dispatchers or [
        dispatcher for name in machines for dispatcher in runs.MACHINES[name].dispatchers
    ]
    for name in [name for name in asked if name not in runs.LISTS][:1]:
        find_dispatcher(name)  # no OR-Tools is said before the work
    folder.begin(HEAD)
    findings = runs.run_campaign(machines, folder, days, seeds, dispatchers, quick)
    _compare(findings, folder)
    made = {"sizes": sizes(findings)}
    texts, pictures = {}, {}
    for of_machine in findings:
        for name, (heading, note) in _TEXTS.items():
            made[f"{of_machine.name}/{name}"] = TABLES[name](of_machine)
            texts[f"{of_machine.name}/{name}"] = f"{of_machine.name}: {heading}", note
        for heading, (draw, name) in PICTURES.items():
            file = f"{of_machine.name}/{name}.png"
            if draw is not draw_ratios or of_machine.instances:
                pictures[f"{of_machine.name}: {heading}"] = folder.picture(draw(of_machine), file)
    path, made = folder.publish(
        head_of(findings), made, texts | {"sizes": _SIZES}, pictures, "few days" * quick
    )
    names = {of_machine.name: f"{of_machine.name}/slowdown" for of_machine in findings}
    return path, {machine: made[name] for machine, name in names.items() if name in made}


def head_of(findings: Sequence[Findings]) -> str:
    """Return what the report begins with: also what was simulated."""
    lines = [
        f"- {of_machine.name}: {of_machine.machine.what}, {of_machine.jobs:,} jobs:"
        f" `{of_machine.workloads}`."
        for of_machine in findings
    ]
    return "\n".join([HEAD, *lines, ""])


def _compare(findings: Sequence[Findings], folder: Folder) -> None:
    """Have PCP'19 and PCP'20 answer at the same states."""
    places = [
        (of_machine, run)
        for of_machine in findings
        for run in runs.DRIVERS.get(of_machine.name, ())
        if run in of_machine.outcomes
    ]
    number = {"number": runs.NUMBER}
    tasks = [of.task(of.seeds[0]) | asdict(run) | number for of, run in places]
    what = "the same instances"
    outcomes = folder.run(runs.compare_one, tasks, "comparisons", "instances", what=what, chunk=1)
    for (of_machine, run), outcome in zip(places, outcomes, strict=True):
        of_machine.instances[run] = outcome
