"""What is printed of a leaderboard, in each format."""

from __future__ import annotations

import sys
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.cli import output
from hpcgym.cli.boards import SLICE, no_intervals, notes_of, rows_by, setting_of
from hpcgym.cli.fitting import print_table
from hpcgym.cli.means import Asked, TableFormat, means_of, print_means
from hpcgym.cli.running import note
from hpcgym.files.recorded import KEY

if TYPE_CHECKING:
    from rich.table import Table

    from hpcgym.cluster import Cluster
    from hpcgym.evaluation import Leaderboard
    from hpcgym.workload import Workload


#: Of a line of a heading: references may have long names.
_HEADING_LETTERS = 16


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


def print_board(shown: Shown, format: TableFormat) -> None:
    """Print a row for each policy."""
    from hpcgym.evaluation.tables import lines_of, markdown
    from hpcgym.schedule.provenance import provenance_of_workloads

    workload, machine, board = shown.workload, shown.machine, shown.board
    if format is TableFormat.table:
        _print_table(shown)
        return
    if format is TableFormat.json:
        facts = output.workload_facts(workload, shown.clean)
        facts |= output.machine_facts(workload, machine)
        facts |= {KEY: provenance_of_workloads([workload]), "evaluation": shown.settings}
        output.print_json({**facts, **board.facts()})
    elif format is TableFormat.csv:
        begin = {"workload": workload.name, **output.machine_columns(workload, machine)}
        output.print_csv({**begin, **row} for row in board.rows())
    elif format is TableFormat.latex:
        sys.stdout.write(board.to_latex() or "")
    else:
        heading, lines = lines_of(board)
        sys.stdout.write(markdown([one.replace("\n", " ") for one in heading], lines, 1))
    if why := no_intervals(board):
        note(why)


def print_grouped(shown: Shown, by: str, reference: str | None, format: TableFormat) -> None:
    """Print a row for each policy on each slice, class of jobs or user."""
    board = shown.board
    rows = rows_by(shown.workload, board, by)
    paired = None if reference is None else board.reference
    asked = Asked(metric=[board.metric], ci=by != SLICE, paired=paired, by=by)
    if format is TableFormat.table:
        _print_setting(shown)
        output.console().print()
    print_means(rows, means_of(rows, "", asked), asked, format)


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


def _print_setting(shown: Shown) -> None:
    """Print on what policies were compared, above a table for people."""
    out = output.console()
    title, *around = setting_of(shown.workload, shown.machine, shown.board, shown.settings)
    out.print(title, style="bold", markup=False)
    for line in around:
        out.print(line, markup=False, soft_wrap=True)


def _print_table(shown: Shown) -> None:
    """Print a leaderboard for people."""
    out = output.console()
    _print_setting(shown)
    output.print_cleaning(out, shown.workload)
    out.print()
    print_table(out, _rich_table(shown.board), _least(shown.board))
    for line in notes_of(shown.board):
        out.print(line, markup=False, soft_wrap=True)


def _least(board: Leaderboard) -> list[str]:
    """Return the headings of columns that a narrow terminal may lack, the first of these first."""
    from hpcgym.evaluation.tables import lines_of

    heading = [" ".join(one.split()) for one in lines_of(board)[0]]
    intervals = [one for one in heading if one.startswith("95 %")]
    kept = {"p", *(one for one in heading if one.startswith("above "))}
    others = [one for one in reversed(heading[2:]) if one not in {*intervals, *kept}]
    return [*others, *intervals]


def _rich_table(board: Leaderboard) -> Table:
    """Return the leaderboard for rich; ``*`` marks the best of a column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from hpcgym.evaluation.tables import lines_of

    heading, rows = lines_of(board)
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        caption="* best of its column" if any(top for row in rows for _, top in row) else None,
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold")
    for title in heading[1:]:
        lines = [part for line in title.split("\n") for part in wrap(line, _HEADING_LETTERS)]
        table.add_column(" \n".join(lines) + " ", justify="right", no_wrap=True)
    for (policy, _), *cells in rows:
        values = (
            Text(f"{text}*", "bold green") if top else Text(f"{text} ") for text, top in cells
        )
        table.add_row(Text(policy), *values)
    return table
