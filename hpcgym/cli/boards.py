"""Tables and options of ``hpcgym evaluate``: slices, rows, and who pays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hpcgym.agents.settings import EpisodeSettings
from hpcgym.cli import output
from hpcgym.cli.means import Asked, Means, means_of
from hpcgym.cli.running import note
from hpcgym.cli.tables import Format, Sheet, Table, show
from hpcgym.files.recorded import KEY

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Cluster
    from hpcgym.study import Leaderboard
    from hpcgym.workload import Workload


# --- What is said around a leaderboard, and the page of it ----------------------------------------

#: Rows that are of slices, beside those of groups of jobs.
SLICE = "slice"


def setting_of(
    workload: Workload, machine: Cluster | None, board: Leaderboard, settings: dict[str, Any]
) -> list[str]:
    """Return on what policies were compared, in a line, and what was around slices, if anything."""
    from hpcgym.study.evaluation.stage import PLAIN

    slices = f"{settings['n']:,} {settings['episodes']}"
    if settings["episodes"] == "windows":
        slices += f" of {settings['jobs']:,} jobs"
    elif settings["episodes"] == "whole":
        slices = "all at once"
    if board.left_out:
        slices += f", without {board.left_out:,} jobs that cross the end of one"
    where = "whole workload" if settings["slices"] == "all" else f"{settings['slices']} part"
    # references have the rules of the environments, so the first tells the setting of all
    first = next(one for one in board.schedulers.values() if one is not None)
    words = [workload.name, _called(workload, machine), where, slices]
    words += [f"{first.allocation} allocation"] if first.allocation != "first-fit" else []
    words += [f"{first.passes} passes"] if first.passes != "per-timestamp" else []
    around = {name: value for name, value in board.around.items() if value != PLAIN[name]}
    told = ", ".join(f"{name}={value}" for name, value in around.items())
    return [" · ".join(words), *([f"slices with {told}"] if around else [])]


def rows_by(workload: Workload, board: Leaderboard, by: str) -> pd.DataFrame:
    """Return the metric of each slice, or of each class of jobs or user there, in long rows."""
    if board.groups is not None and by != SLICE:
        rows = board.groups
    else:
        told = board.by_slice.rename_axis("slice").reset_index()
        rows = told.melt("slice", var_name="scheduler", value_name=board.metric)
        rows.insert(0, "workload", workload.name)
    return rows


def no_intervals(board: Leaderboard) -> str:
    """Return why a leaderboard has no intervals, in a line; nothing if it has."""
    from hpcgym.study.intervals import why_no_intervals

    return why_no_intervals(len(board.by_slice), "slices")


def notes_of(board: Leaderboard) -> list[str]:
    """Return what is said below a leaderboard, in lines."""
    why = no_intervals(board)
    lines = [why] if why else []
    if (other := board.reference) is not None:
        above = [f"above {other}: {board.ranked_by.title} less that of {other}"]
        chance = f"p: chance of such a difference from {other} if there were none"
        lines.append("; ".join([*(above if board.compared else ()), chance]))
    for name, members in board.trainings.items():
        if len(members) > 1:
            lines.append(f"{name}: means of {len(members)} trainings; intervals resample them too")
    lines += _of_acting(board)
    if board.static_weights:
        weights = ", ".join(f"{w:.3g} {name}" for name, w in board.static_weights.items())
        lines.append(f"best-static: {weights}; chosen on the train part")
    return lines


def _of_acting(board: Leaderboard) -> list[str]:
    """Return what there is to know of policies that act in an environment, in lines."""
    if None not in board.schedulers.values():
        return []
    changed = [
        name
        for name, scheduler in board.schedulers.items()
        if name.endswith(")") and scheduler is not None
    ]
    words = "rules behind a name, as in {}, are those of the environment in which policies act"
    return [words.format(one) for one in changed[:1]] + [
        f"{name}: sees at most {places:,} waiting jobs, and up to {waiting:,} waited at once: the"
        " others come after these"
        for name, (places, waiting) in board.unseen.items()
    ]


def save_figures(workload: Workload, board: Leaderboard, where: Path, width: float) -> list[Path]:
    """Write a performance profile and average ranks of what policies are ranked by."""
    from hpcgym.report.overview import write_figures
    from hpcgym.schedule.provenance import provenance_of_workloads
    from hpcgym.study.evaluation.figures import slice_figures

    grid = board.by_slice
    grid = grid.loc[:, grid.notna().any()]  # who failed everywhere has no place
    metric = board.ranked_by
    drawn = slice_figures({metric.name: grid}, {metric.name: metric}, width)
    record = provenance_of_workloads([workload])
    return write_figures(drawn, where, lambda _: record)


def _called(workload: Workload, machine: Cluster | None) -> str:
    """Return the machine in words."""
    if machine is None or not machine.groups:
        return f"{(machine or workload).processors:,} processors"
    return f"{machine.name or 'cluster'}: {machine.nodes:,} nodes, {machine.processors:,} cores"


# --- What is printed of a leaderboard -------------------------------------------------------------


class Shown(NamedTuple):
    """A leaderboard, and what it was made of.

    Attributes
    ----------
    workload, machine : of all slices; None: a pool.
    board : what is printed.
    settings : of the evaluation, by the names of its arguments.
    clean : the recipe that the workload was cleaned by.
    """

    workload: Workload
    machine: Cluster | None
    board: Leaderboard
    settings: dict[str, Any]
    clean: str


def sheet_of(shown: Shown) -> Sheet:
    """Return a row for each policy, for people."""
    from hpcgym.study.evaluation.leaderboard import lines_of

    above = setting_of(shown.workload, shown.machine, shown.board, shown.settings)
    above += output.cleaning_of(shown.workload)
    below = ["* best of its column", *notes_of(shown.board)]
    return Sheet(above, [Table(*lines_of(shown.board))], below)


def show_board(shown: Shown, format: Format) -> None:
    """Print a row for each policy."""
    from hpcgym.schedule.provenance import provenance_of_workloads

    workload, machine, board = shown.workload, shown.machine, shown.board

    def facts() -> dict[str, Any]:
        found = output.workload_facts(workload, shown.clean)
        found |= output.machine_facts(workload, machine)
        found |= {KEY: provenance_of_workloads([workload]), "evaluation": shown.settings}
        return {**found, **board.facts()}

    begin = {"workload": workload.name, **output.machine_columns(workload, machine)}
    rows = [{**begin, **row} for row in board.rows()]
    show(format, lambda: sheet_of(shown), lambda: rows, facts)
    if format in (Format.json, Format.csv) and (why := no_intervals(board)):  # others have it
        note(why)


def by_group(shown: Shown, by: str, reference: str | None) -> Means:
    """Return a row for each policy on each slice, class of jobs or user."""
    board = shown.board
    paired = None if reference is None else board.reference
    asked = Asked(metric=[board.metric], ci=by != SLICE, paired=paired, by=by)
    above = setting_of(shown.workload, shown.machine, board, shown.settings)
    return means_of(rows_by(shown.workload, board, by), "", asked, above)


def report_failures(board: Leaderboard) -> None:
    """Say which policies failed."""
    for policy, row in board.table.iterrows():
        if row["failed"]:
            where = f"on {row['failed']:.0f} of {row['slices']:.0f} slices"
            errors = [error for (name, _), error in board.failures.items() if name == policy]
            if errors:
                note(f"{policy} failed {where}: {errors[0]}")
            else:
                note(f"{policy} has no {board.metric} {where}")


# --- Options of ``hpcgym evaluate`` ---------------------------------------------------------------

_AROUND = ("start", "warmup", "arrivals", "horizon")


@dataclass(frozen=True)
class Slices(EpisodeSettings):
    """What policies are compared on: of the part that agents have not seen.

    Experiment
    ----------
    part test|train|all : Part of the workload in time; agents are trained on the first part.
        [default: test; all with --protocol prequential]
    episodes windows|weeks|months|whole : What a slice is: a window of jobs, a week, a month, or all
        of the part.
    number N : Number of slices, chosen at random. [default: 100 windows, all weeks or months]
    start empty|warm|SCHEDULER : What a slice begins with: an empty machine, or the jobs that run
        and wait at that time in the schedule of EASY (warm), or of another scheduler, on the whole
        workload. [default: as agents were trained, or empty]
    warmup TIME|none : How long before its slice a simulation begins, such as 1d; only the jobs of
        the slice count. [default: as agents were trained, or none]
    arrivals stop|continue : Whether later jobs keep coming, up to the horizon. [default: as agents
        were trained, or stop]
    horizon TIME|none : When a slice is over, such as 7d after its first submission; jobs that still
        wait are charged the time that they have waited. [default: as agents were trained, or none]
    """

    part: Annotated[str, typer.Option("--slices")] = ""
    episodes: str = "windows"
    number: Annotated[int | None, typer.Option("--number", "-n")] = None
    start: str | None = None
    warmup: str | None = None
    arrivals: str | None = None
    horizon: str | None = None

    def around(self) -> dict[str, Any]:
        """Return what is around slices, as ``evaluate`` takes it."""
        return {name: getattr(self, name) for name in _AROUND}

    def changed(self) -> dict[str, Any]:
        """Return what says how slices are cut, by option; None where it is as usual."""
        usual = Slices()
        return {
            f"--{name}": None if getattr(self, name) == getattr(usual, name) else True
            for name in ("episodes", "jobs", *_AROUND)
        }
