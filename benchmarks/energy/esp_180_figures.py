"""Pictures as figures 6.1 and 6.4 to 6.8: Light-ESP on 180 cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.benchmarks.energy.esp_180 import (
    FIGURES,
    Floats,
    Outcome,
    drawn_at,
    shares_of_frequency,
    slowdown,
)
from hpcgym.benchmarks.energy.published_shares import FREQUENCIES
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import (
    BLUE,
    DARK_GREY,
    GREEN,
    ORANGE,
    VERMILLION,
    legend_above,
    new_figure,
    plain,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Where names stand beside their marks [points].
_BESIDE = {"green": (-4, -13), "normal": (6, 6), "gluttonous": (-96, -4)}
_COLOURS = {"green": GREEN, "normal": BLUE, "gluttonous": VERMILLION, "on demand": ORANGE}


def draw_frequencies() -> Figure:
    """Figure 6.4: energy by completion time, at each frequency of the users."""
    figure = new_figure(5.5, 3.8)
    axes = figure.add_subplot()
    k, a = shares_of_frequency()
    highest = max(FREQUENCIES.values())
    x = np.linspace(min(FREQUENCIES.values()), highest, 200) / highest
    longer = np.array([slowdown(one, k) for one in x])
    axes.plot(longer, longer * [drawn_at(one, a) for one in x], color=DARK_GREY, linewidth=1.2)
    for user, ghz in FREQUENCIES.items():
        at = slowdown(ghz / highest, k)
        axes.plot(at, at * drawn_at(ghz / highest, a), "o", color=_COLOURS[user])
        energy = at * drawn_at(ghz / highest, a)
        axes.annotate(
            f"{user}, {ghz:g} GHz",
            (at, energy),
            _BESIDE[user],
            textcoords="offset points",
            fontsize=8,
        )
    axes.margins(y=0.12)
    axes.set_xlabel("completion time / that at the highest frequency")
    axes.set_ylabel("energy / that at the highest frequency")
    plain(axes)
    title(axes, "Linpack, as modelled (figure 6.4)")
    return figure


def draw_distributions(outcome: Outcome, heading: str) -> Figure:
    """Figures 6.5 to 6.8: distributions of stretches (a) and waits (b), by user."""
    figure = new_figure(9, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    _distribution(panels[0], outcome.stretch, "stretch")
    _distribution(panels[1], outcome.wait, "waiting time (s)")
    if min(float(of.min()) for of in outcome.stretch.values()) * 20 < max(
        float(of.max()) for of in outcome.stretch.values()
    ):
        panels[0].set_xscale("log")
        log_ticks(panels[0].xaxis)
    panels[0].set_ylabel("share of jobs")
    names = list(outcome.wait)
    rows = legend_above(panels[0], names)
    title(panels[0], heading, legend_rows=rows)
    return figure


def _distribution(axes: Axes, values: Mapping[str, Floats], label: str) -> None:
    """Draw what share of each user's jobs have at most so much."""
    for user, of in values.items():
        share = np.arange(1, len(of) + 1) / len(of)
        style = "--" if user == "on demand" else "-"
        axes.plot(of, share, style, drawstyle="steps-post", color=_COLOURS[user], linewidth=1.4,
                  label=user)  # fmt: skip
    axes.set_xlabel(label)
    axes.set_ylim(0, 1.02)
    plain(axes, "both")


def draw_counters(outcomes: Mapping[str, Outcome], heading: str) -> Figure:
    """Draw the energy that is counted for each user over time, by policy (as figure 6.1)."""
    figure = new_figure(10, 3.6)
    panels = figure.subplots(1, len(outcomes), sharey=True)
    for axes, outcome in zip(panels, outcomes.values(), strict=True):
        for user, (end, joules) in outcome.counted.items():
            axes.plot(end / 60, joules / 1e6, drawstyle="steps-post", color=_COLOURS[user],
                      linewidth=1.4, label=user)  # fmt: skip
        axes.set_xlabel("time (min)")
        plain(axes)
    panels[0].set_ylabel("energy counted (MJ)")
    for axes, policy in zip(panels, outcomes, strict=True):
        rows = legend_above(panels[0], list(_COLOURS)[:3]) if axes is panels[0] else 1
        words = f"{heading}: {policy}" if axes is panels[0] else policy
        title(axes, f"{words} (of figure {FIGURES[policy]})", legend_rows=rows)
    return figure
