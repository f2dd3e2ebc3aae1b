"""What is said around a leaderboard, and the page of it."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.cluster import Cluster
    from hpcgym.evaluation import Leaderboard
    from hpcgym.workload import Workload

#: Rows that are of slices, beside those of groups of jobs.
SLICE = "slice"


def setting_of(
    workload: Workload, machine: Cluster | None, board: Leaderboard, settings: dict[str, Any]
) -> list[str]:
    """Return on what policies were compared, in a line, and what was around slices, if anything."""
    from hpcgym.evaluation.trained import PLAIN

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
    from hpcgym.evaluation.intervals import why_no_intervals

    return why_no_intervals(len(board.by_slice), "slices")


def notes_of(board: Leaderboard) -> list[str]:
    """Return what is said below a leaderboard, in lines."""
    why = no_intervals(board)
    lines = [why] if why else []
    if board.reference is not None:
        best_of = len(board.references) > 1
        heading = board.ranked_by.title
        other = board.reference
        above = f"above {board.reference}: {heading} less that of {other}"
        above += ", the best of dispatchers and references" if best_of else ""
        words = [above] if board.references else []
        words += [f"p: chance of such a difference from {other} if there were none"]
        lines.append("; ".join(words))
    for group, members in board.members.get(board.metric, {}).items():
        number = len(members.columns)
        if number > 1:
            lines.append(f"{group}: means of {number} trainings; intervals resample them too")
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


def page_of(
    workload: Workload, machine: Cluster | None, board: Leaderboard, settings: dict[str, Any]
) -> str:
    """Return a leaderboard as a page, with the metric of each slice."""
    from hpcgym.evaluation.tables import lines_of
    from hpcgym.explore.document import sheet
    from hpcgym.explore.markup import Cell, cleaning_table, paragraphs, table
    from hpcgym.report.tables import text_of
    from hpcgym.schedule.provenance import provenance_of_workloads

    heading, rows = lines_of(board)
    lines = [[Cell(*cell) for cell in row] for row in rows]
    slices = [
        [str(name), *(text_of(board.ranked_by, value) for value in values)]
        for name, values in zip(board.by_slice.index, board.by_slice.to_numpy(), strict=True)
    ]
    title = board.ranked_by.title.replace("\n", " ")
    sections = [
        table([one.replace("\n", " ") for one in heading], lines, words=[0], sortable=True,
              caption="★ best of its column. A click on a heading sorts."),
        paragraphs(notes_of(board)),
        f"<h2>Each slice: {escape(title)}</h2>",
        table(["slice", *map(str, board.by_slice)], slices, words=[0], sortable=True),
        "<h2>Workload</h2>",
        cleaning_table(workload.cleaning),
    ]  # fmt: skip
    about = setting_of(workload, machine, board, settings)
    return sheet(
        f"{workload.name}: policies compared", about, "\n".join(sections),
        provenance_of_workloads([workload]),
    )  # fmt: skip


def save_figures(workload: Workload, board: Leaderboard, where: Path, width: float) -> list[Path]:
    """Write a performance profile and average ranks of what policies are ranked by."""
    from hpcgym.evaluation.figures import slice_figures
    from hpcgym.report.figures import write_figures
    from hpcgym.schedule.provenance import provenance_of_workloads

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
