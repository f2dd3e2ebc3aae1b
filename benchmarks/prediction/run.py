"""The whole study: the campaign on every trace, then its tables, pictures and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import HpcgymError, Workload, WorkloadError, load_workload
from hpcgym.benchmarks.prediction import items, runs
from hpcgym.benchmarks.prediction.items import read_published
from hpcgym.benchmarks.prediction.tables import TABLES, Campaign, Findings
from hpcgym.benchmarks.studies import harness
from hpcgym.benchmarks.studies.store import Store
from hpcgym.benchmarks.studies.tables import finish, legend_below, log_ticks, read_texts
from hpcgym.report import canvas
from hpcgym.units import HOUR_S

# --- The campaign on some traces: its tasks, and the table of what came out -----------------------

QUICK_JOBS = 1500  # of a trace, in a quick cut


def load_traces(sources: Sequence[str], quick: bool) -> dict[str, Workload]:
    """Return source -> jobs of each trace.

    Raises
    ------
    HpcgymError : a trace that cannot be read or has no requested times, or two of the same name.
    """
    jobs = QUICK_JOBS if quick else None
    return harness.load_sources(sources, lambda source: _load(source, jobs))


def _load(source: str, jobs: int | None) -> Workload:
    """Return a trace; one of the thesis's names on a machine of another size is called so.

    The archive's MetaCentrum has 8,412 processors, the thesis's 3,356.
    """
    try:
        workload = runs.load_trace(source, jobs)
    except WorkloadError:
        if (load_workload(source, clean="none").requested_time > 0).any():
            raise
        raise HpcgymError(
            f"{source} has no requested times, which predictions are compared with: name another"
            " trace, or the generator, lublin:jobs=10000, which has them"
        ) from None
    if items.TABLE_7_4.get(workload.name, (workload.processors,))[0] != workload.processors:
        name = f"{workload.name} of {workload.processors:,} processors"
        workload = workload.take(slice(None), name=name)
    return workload


def run_campaign(
    traces: Mapping[str, Workload],
    configurations: Sequence[runs.Configuration],
    folder: harness.Folder,
    *,
    quick: bool,
) -> list[pd.DataFrame]:
    """Simulate every configuration on every trace that has not been yet.

    Parameters
    ----------
    traces : source -> jobs.
    folder : where the study is run.

    Returns
    -------
    For each trace a row for each configuration, by its text: see :class:`Findings`.
    """
    jobs = QUICK_JOBS if quick else None
    alike = [harness.task_of(source, of, first_jobs=jobs) for source, of in traces.items()]
    tasks = [
        {**task, "rules": list(configuration)} for task in alike for configuration in configurations
    ]
    outcomes = pd.DataFrame(folder.run(runs.simulate_one, tasks, "simulations"))
    index = pd.Index([str(configuration) for configuration in configurations], name="configuration")
    words = pd.DataFrame(configurations, index=index, columns=runs.Configuration._fields)
    number = len(index)
    parts = (outcomes[k * number : (k + 1) * number] for k in range(len(alike)))
    return [words.join(part.set_index(index)) for part in parts]


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
#: The logs of the thesis's figure 7.2.
FIGURE_7_2 = ("SDSC-BLUE", "MetaCentrum")
_POINTS = 2001  # of a distribution that are drawn
_OUT_OF_SIGHT = 0.02  # of the errors of each predictor, at either end: long tails of few jobs


def draw_two_traces(values: pd.DataFrame, first: str, second: str, note: str = "") -> canvas.Figure:
    """Figure 7.2: each configuration on two traces, by correction, order and whether it learns.

    Parameters
    ----------
    values : mean bounded slowdowns, a row for each configuration, a column for each trace.
    first, second : traces.
    note : whose values they are, if not ours.
    """
    known = {str(configuration): configuration for configuration in runs.THESIS}
    table = values.loc[values.index.isin([*known]), [first, second]].dropna()
    of = pd.DataFrame([known[str(name)] for name in table.index], index=table.index)
    learns = of["estimate"].str.startswith("regression")
    axes = canvas.new_figure(6.5, 6).add_subplot()
    for (correction, colour), (order, marker) in product(_COLOURS.items(), _MARKERS.items()):
        these = table[learns & (of["correction"] == correction) & (of["order"] == order)]
        if len(these):
            style: dict[str, Any] = {"color": colour, "markersize": 5, "alpha": 0.8}
            label = f"{correction}, {order.upper()}"
            axes.plot(these[first], these[second], marker, label=label, **style)
    style = {"color": canvas.BLACK, "markerfacecolor": "none", "markersize": 5}
    axes.plot(*table[~learns].to_numpy().T, "s", label="without learning", **style)
    for name in table.index.intersection([str(configuration) for configuration in _NAMED]):
        words: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 7}
        axes.annotate(runs.NAMES[name], tuple(table.loc[name]), (6, 0), **words)
    x_label, y_label = (f"mean bounded slowdown, {trace}" for trace in (first, second))
    finish(axes, x=x_label, y=y_label, log="xy")
    legend_below(canvas.figure_of(axes), *axes.get_legend_handles_labels(), 3)
    heading = "Mean bounded slowdown of each configuration on two traces (figure 7.2)"
    canvas.title(axes, heading, note)
    return canvas.figure_of(axes)


def draw_shares(
    values: Mapping[str, NDArray[Any]], heading: str, note: str, below: str
) -> canvas.Axes:
    """Draw the share of jobs at or below each value, by name: figures 7.3 and 7.4."""
    axes = canvas.new_figure(7, 4.4).add_subplot()
    share = np.linspace(0, 1, _POINTS)
    for name, numbers in values.items():
        colour, dashes = _LINES.get(name, (canvas.PURPLE, "-"))
        # the least value that this share of the jobs is at or below
        at = np.quantile(numbers, share, method="inverted_cdf")
        axes.step(at, share, where="post", color=colour, linestyle=dashes, label=name)
    axes.set_ylim(0, 1)
    finish(axes, heading, note, x=below, y="share of jobs")
    return axes


def draw_errors(errors: Mapping[str, NDArray[Any]], trace: str) -> canvas.Figure:
    """Figure 7.3: how prediction errors, predicted less actual run time [h], are distributed."""
    note = f"{trace}; at most {_OUT_OF_SIGHT:.0%} of a predictor's errors are beyond either end"
    known = {"clairvoyant": np.zeros(1), **errors}
    below = "predicted less actual run time (hours)"
    axes = draw_shares(known, "Prediction errors (figure 7.3)", note, below)
    shares = (_OUT_OF_SIGHT, 1 - _OUT_OF_SIGHT)
    ends = np.concatenate([np.quantile(values, shares) for values in errors.values()])
    axes.set_xlim(ends.min(), ends.max())
    return canvas.figure_of(axes)


# --- The report -----------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = read_texts(__file__)


def _counts(campaign: Campaign) -> str:
    """Say how much was simulated, and how much was published."""
    lines = [
        f"- {of_trace.workload.name}: {len(of_trace.table):,} configurations of"
        f" {len(of_trace.workload):,} jobs."
        for of_trace in campaign.findings
    ]
    for trace, of in campaign.published.items():
        lines.append(
            f"- Published of {trace}: {len(of):,} configurations; {(~of['ended']).sum():,} of them,"
            " of runs that did not come to their end, are compared with nothing."
        )
    if len(campaign.findings) < 2:
        lines.append("- Figure 7.2 is of two traces: it is drawn if --workload names a second one.")
    return "\n".join(lines) + "\n"


# --- The whole study ------------------------------------------------------------------------------


def reproduce(
    sources: Sequence[str],
    folder: harness.Folder,
    *,
    published: Path | None = None,
    quick: bool = False,
) -> harness.Studied:
    """Run the study; see :mod:`hpcgym.benchmarks.studies.harness`.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run.
    published : of :func:`hpcgym.benchmarks.prediction.items.read_published`; None: only the values
        that the thesis prints.
    quick : few jobs and configurations.
    """
    theirs = read_published(published)  # a wrong folder is said of a quick cut too
    traces = load_traces(sources, quick)
    folder.begin(HEAD)
    outcomes = run_campaign(traces, runs.QUICK if quick else runs.USUAL, folder, quick=quick)
    store = Store(folder.path / "steps")
    findings: list[Findings] = []
    for (source, workload), table in zip(traces.items(), outcomes, strict=True):
        folder.progress("predictions", len(findings), len(traces))
        findings.append(Findings(source, workload, table, runs.predictions_of(workload, store)))
        file = folder.path / harness.folder_name(workload.name) / "configurations.csv"
        harness.write_csv(table.reset_index(), file)
    campaign = Campaign(findings, {} if quick else theirs)
    made = {name: make(campaign) for name, make in TABLES.items()}
    head = f"{HEAD}\n{_counts(campaign)}"
    cut = "few jobs and configurations" * quick
    return folder.publish(head, made, TEXTS, folder.pictures(_drawn(campaign)), cut)


def _drawn(campaign: Campaign) -> harness.Drawn:
    """Draw the pictures of each pair of traces, and of each trace."""
    ours = [of_trace.workload.name for of_trace in campaign.findings]
    pairs = [("", campaign.values["ours"], two) for two in combinations(ours, 2)]
    if {*FIGURE_7_2} <= {*campaign.published}:
        pairs.append(("by the authors' own results", campaign.values["published"], FIGURE_7_2))
    for note, values, (first, second) in pairs:
        file = f"{harness.folder_name(f'{first}-{second}')}.png"
        heading = f"{first} and {second}{', ' * bool(note)}{note} (figure 7.2)"
        yield heading, file, draw_two_traces(values, first, second, note)
    for of_trace in campaign.findings:
        trace, run = of_trace.workload.name, of_trace.workload.run_time / HOUR_S
        given = {name: of_trace.accuracy[runs.LOGGED, name] / HOUR_S for name in runs.PREDICTIONS}
        errors = {name: hours - run for name, hours in given.items()}
        folder = harness.folder_name(trace)
        heading = f"{trace}: prediction errors (figure 7.3)"
        yield heading, f"{folder}/errors.png", draw_errors(errors, trace)
        heading, below = "Predicted run times (figure 7.4)", "predicted run time (hours)"
        axes = draw_shares({"clairvoyant": run, **given}, heading, trace, below)
        axes.set_xscale("log")
        log_ticks(axes.xaxis, (1,))
        yield f"{trace}: {heading}", f"{folder}/predicted.png", canvas.figure_of(axes)
