"""The whole study of energy fair share: simulations, pictures, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.energy import shares, shares_tables
from hpcgym.benchmarks.energy.published_shares import FREQUENCIES
from hpcgym.benchmarks.studies import tables
from hpcgym.benchmarks.studies.harness import Folder, grouped, load_sources, task_of
from hpcgym.report import canvas
from hpcgym.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- The pictures of the study of energy fair share -----------------------------------------------

_USERS = (canvas.GREEN, canvas.BLUE, canvas.VERMILLION)


def draw_esp(outcomes: Sequence[shares.EspOutcome]) -> Figure:
    """Figures 6.2 and 6.3: mean stretch of each user under each policy, over that of FIFO."""
    figure = canvas.new_figure(9, 3.8)
    panels = figure.subplots(1, len(outcomes), sharey=True)
    for axes, outcome in zip(np.atleast_1d(panels), outcomes, strict=True):
        fifo = outcome.stretch["FIFO"].mean()
        for place, user in enumerate(shares.ESP_USERS):
            values = [rows[:, place] / fifo for rows in outcome.stretch.values()]
            middle = np.arange(len(values)) + 0.27 * (place - 1)
            error = [1.96 * one.std(ddof=1) / np.sqrt(len(one)) for one in values]
            axes.bar(
                middle,
                [one.mean() for one in values],
                0.25,
                yerr=error,
                color=_USERS[place],
                ecolor=canvas.DARK_GREY,
                capsize=2,
                label=f"user {user}",
            )
        axes.set_xticks(range(len(outcome.stretch)), list(outcome.stretch))
        tables.finish(axes, outcome.experiment.heading.capitalize())
    np.atleast_1d(panels)[0].set_ylabel("mean stretch / that under FIFO")
    return figure


# --- Pictures as figures 6.4 to 6.8: Light-ESP on 180 cores -------------------------------

#: Where names stand beside their marks [points].
_BESIDE = {"green": (-4, -13), "normal": (6, 6), "gluttonous": (-96, -4)}
_COLOURS_180 = {
    "green": canvas.GREEN,
    "normal": canvas.BLUE,
    "gluttonous": canvas.VERMILLION,
    "on demand": canvas.ORANGE,
}


def draw_frequencies() -> Figure:
    """Figure 6.4: energy by completion time, at each frequency of the users."""
    figure = canvas.new_figure(5.5, 3.8)
    axes = figure.add_subplot()
    k, a = shares.shares_of_frequency()
    highest = max(FREQUENCIES.values())
    x = np.linspace(min(FREQUENCIES.values()), highest, 200) / highest
    longer = np.array([shares.slowdown(one, k) for one in x])
    axes.plot(
        longer,
        longer * [shares.drawn_at(one, a) for one in x],
        color=canvas.DARK_GREY,
        linewidth=1.2,
    )
    for user, ghz in FREQUENCIES.items():
        at = shares.slowdown(ghz / highest, k)
        axes.plot(at, at * shares.drawn_at(ghz / highest, a), "o", color=_COLOURS_180[user])
        energy = at * shares.drawn_at(ghz / highest, a)
        axes.annotate(
            f"{user}, {ghz:g} GHz",
            (at, energy),
            _BESIDE[user],
            textcoords="offset points",
            fontsize=8,
        )
    axes.margins(y=0.12)
    below = "completion time / that at the highest frequency"
    side = "energy / that at the highest frequency"
    tables.finish(axes, "Linpack, as modelled (figure 6.4)", x=below, y=side)
    return figure


def draw_distributions(outcome: shares.Outcome180, heading: str) -> Figure:
    """Figures 6.5 to 6.8: distributions of stretches (a) and waits (b), by user."""
    figure = canvas.new_figure(9, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    _distribution(panels[0], outcome.stretch)
    _distribution(panels[1], outcome.wait)
    stretches = np.concatenate(list(outcome.stretch.values()))
    log = "x" if stretches.max() > 20 * stretches.min() else ""
    tables.finish(panels[0], heading, x="stretch", y="share of jobs", log=log, grid="both")
    tables.finish(panels[1], x="waiting time (s)", grid="both")
    return figure


def _distribution(axes: Axes, values: Mapping[str, shares.Floats]) -> None:
    """Draw what share of each user's jobs have at most so much."""
    for user, of in values.items():
        share = np.arange(1, len(of) + 1) / len(of)
        style = "--" if user == "on demand" else "-"
        axes.plot(of, share, style, drawstyle="steps-post", color=_COLOURS_180[user], linewidth=1.4,
                  label=user)  # fmt: skip
    axes.set_ylim(0, 1.02)


# --- The report on energy fair share --------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, "shares.md")


# --- The whole study ------------------------------------------------------------------------------


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read, two of the same name, a file that cannot be written,
        a simulation that fails, or no matplotlib.
    """
    folder.begin(HEAD)
    outcomes = run_readings(sources, folder, quick)
    seeds = shares.QUICK_SEEDS if quick else shares.SEEDS
    experiments = []
    kinds = list(product(shares.LOADS, (shares.EFFICIENCY, shares.WORKLOAD)))
    for place, (load, experiment) in enumerate(kinds):
        folder.progress("light-esp", place, len(kinds))
        experiments.append(shares.run_esp(experiment, load, seeds))
    on_180 = {}
    for place, load in enumerate(shares.LOADS):
        folder.progress("light-esp on 180 cores", place, len(shares.LOADS))
        on_180[load] = shares.run_180(load, seeds)
    bursts = shares.run_burst()
    made = {
        "6.1": shares_tables.table_6_1(outcomes),
        "6.1-by-jobs": shares_tables.by_jobs(outcomes),
        "readings": shares_tables.of_readings(outcomes),
        "late": shares_tables.of_late(outcomes),
        "light-esp": shares_tables.of_esp(experiments),
        "statements": shares_tables.statements(experiments),
        "frequencies": shares_tables.of_frequencies(),
        "light-esp-180": shares_tables.of_users_180(on_180, bursts),
        "statements-180": shares_tables.statements_180(on_180, bursts),
    }
    pictures = {
        heading: folder.picture(figure, f"{name}.png")
        for name, (heading, figure) in _drawn(experiments, on_180, bursts).items()
    }
    head, cut = HEAD.format(version=__version__), "few jobs, users and orders" * quick
    return folder.publish(head, made, TEXTS, pictures, cut)


def run_readings(sources: Sequence[str], folder: Folder, quick: bool) -> dict[str, dict[str, Any]]:
    """Return trace -> reading -> its outcome."""
    readings = [shares.TEXT, "per timestamp"] if quick else list(shares.READINGS)
    jobs, users = (shares.QUICK_JOBS, shares.QUICK_USERS) if quick else (None, shares.USERS)
    tasks: list[dict[str, Any]] = []
    for reading in readings:
        load = partial(shares.load_trace, reading=shares.READINGS[reading], jobs=jobs)
        tasks += [
            task_of(source, workload, reading=reading, jobs=jobs, users=users)
            for source, workload in load_sources(sources, load).items()
        ]
    found = folder.run(shares.measure, tasks, "readings", chunk=1)
    outcomes: dict[str, dict[str, Any]] = grouped(tasks, found, "trace", "reading")
    return outcomes


def _drawn(
    experiments: Sequence[shares.EspOutcome],
    on_180: shares_tables.Outcomes180,
    bursts: shares_tables.Bursts,
) -> dict[str, tuple[str, Figure]]:
    """Return the pictures by the names of their files, each with its heading."""
    usual, least = on_180[shares.LOADS[0]], min(shares.BURST_SAVED)
    of_three = [one for one in experiments if one.load == shares.LOADS[0]]
    drawn = {
        "light-esp": ("Three users of Light-ESP (figures 6.2 and 6.3)", draw_esp(of_three)),
        "figure-6.4": ("Linpack by frequency", draw_frequencies()),
    }
    shown = {
        number: (f"{policy}, Light-ESP on 180 cores (figure {number})", usual[policy])
        for policy, number in shares.FIGURES.items()
    } | {"6.8": (f"EFS, a burst, {least:.0%} saved (figure 6.8)", bursts[least])}
    for number, (heading, outcome) in shown.items():
        drawn[f"figure-{number}"] = heading, draw_distributions(outcome, heading)
    return drawn
