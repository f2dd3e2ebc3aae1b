"""``hpcgym suite``: frozen tasks, submissions, and proofs of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli import files, options, output
from hpcgym.cli.means import TableFormat
from hpcgym.cli.options import Format
from hpcgym.cli.output import print_table
from hpcgym.cli.running import ExplainedCommand, note
from hpcgym.errors import HpcgymError
from hpcgym.progress import counting

if TYPE_CHECKING:
    from rich.console import JustifyMethod

    from hpcgym.suite.board import Board
    from hpcgym.suite.submissions import Submission

suite = typer.Typer(name="suite", no_args_is_help=True, rich_markup_mode=None)

Folders = Annotated[
    list[Path], typer.Argument(metavar="FOLDER...", help="Of submissions.", show_default=False)
]


_CURVES = files.Written("picture", (".png", ".svg", ".pdf"), drawn=True)


class _List(ExplainedCommand):
    examples = ("hpcgym suite list", "hpcgym suite list --format json")


class _Run(ExplainedCommand):
    examples = (
        "hpcgym suite run --agent saf --output saf",
        "hpcgym suite run --agent best-static --tasks mini --output static",
        "hpcgym suite run --agent model.zip --tasks select --output ppo",
        "hpcgym suite run --agent rule-es --tasks weights --output rule-es",
        "hpcgym suite run --agent my_package:Agent --tasks kth-order,sdsc-order --output mine",
    )


class _Verify(ExplainedCommand):
    examples = ("hpcgym suite verify saf",)


class _Report(ExplainedCommand):
    examples = (
        "hpcgym suite report easy saf mine",
        "hpcgym suite report saf mine --format latex > table.tex",
        "hpcgym suite report rule-es job-ppo --curves curves.svg",
    )


@suite.callback()
def _group() -> None:
    """Play frozen tasks, compare what agents reach there, and prove what others have reached.

    A submission is a folder: the schedules of an agent, and the metrics that it says they have.
    """


@suite.command("list", cls=_List)
def list_tasks(format: options.FormatOption = Format.table) -> None:
    """List the tasks: their jobs, their environments, and whether their traces are here."""
    from hpcgym.suite.tasks import tasks

    rows = [_facts(task) for task in tasks().values()]
    if format is Format.json:
        output.print_json(rows)
    elif format is Format.csv:
        output.print_csv(rows)
    else:
        headings = ("task", "environment", "jobs", "slice", "steps", "frozen", "here")
        _print_table(headings, [[_word(row[key]) for key in headings] for row in rows])


@suite.command("run", cls=_Run)
def run_agent(
    *,
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE|MODULE:CLASS",
            help="A reference (random, fcfs, easy, sjf, saf, f1, best-static, saf-typical) or any"
            " scheduler; job-ppo, rule-es, xnes, maskable-ppo or ppo, which are trained;"
            " lookahead; a saved agent (.pt, .json, suite:TASK/AGENT/SEED), a model of"
            " Stable-Baselines3 (.zip), whose reading runs code that is in it; or code of your own,"
            " from this folder too. What has train(make, seed, steps) is trained in each task, once"
            " for each of five seeds.",
            show_default=False,
        ),
    ],
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="mini|KIND|ID,...",
            help="Ids, kinds (select, order, weights, power, pairs), or mini: three small ones.",
            show_default="all but mini; of these and of kinds, those that the agent can play",
        ),
    ] = None,
    folder: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="Of the submission; a run goes on with what it has.",
            rich_help_panel="Output",
        ),
    ],
) -> None:
    """Let an agent play the test part of tasks, and write its submission."""
    from hpcgym.scheduler.own_code import look_here
    from hpcgym.suite.submissions import run
    from hpcgym.suite.tasks import find_tasks

    look_here()
    chosen = find_tasks(tasks)
    # of kinds and mini those that it can play, as without --tasks
    named = tasks is not None and {*tasks.split(",")} <= {task.name for task in chosen}
    done = run(agent, chosen, folder, named=named, progress=counting, note=note)
    for name in done.tasks:
        values = done.values(name)
        seeds = f" x {len(values)} seeds" if len(values) > 1 else ""
        typer.echo(f"{name}: mean BSLD {values.mean():.4g} over {values.shape[1]} slices{seeds}")


@suite.command("verify", cls=_Verify)
def verify_submissions(folders: Folders) -> None:
    """Prove the schedules of submissions, and compute their metrics anew, without the agents.

    A line a task; the exit code is 1 unless all are equal. What is proved: that the schedules are
    possible for these jobs on this machine, and that the metrics are theirs; not who made them.
    """
    from hpcgym.suite.proofs import verify
    from hpcgym.suite.submissions import read

    sound = True
    for folder in folders:
        found = read(folder)
        if not found.tasks:
            raise HpcgymError(f"{folder}: the submission has no task")
        with counting("verifying", len(found.tasks)) as step:
            proofs = verify(found, step=step)
        begin = f"{folder}: " if len(folders) > 1 else ""
        for proof in proofs:
            typer.echo(f"{begin}{proof.task}: {'' if proof.equal else 'not '}equal: {proof.text}")
        sound &= all(proof.equal for proof in proofs)
    if not sound:
        raise typer.Exit(1)


@suite.command("report", cls=_Report)
def report_submissions(
    folders: Folders,
    format: Annotated[
        TableFormat,
        typer.Option(help="latex: a tabular for the package booktabs.", rich_help_panel="Output"),
    ] = TableFormat.table,
    curves: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw how the trainings went (.png, .svg, .pdf).",
            show_default=False,
            rich_help_panel="Output",
        ),
        _CURVES,
    ] = None,
    force: files.ForceOption = False,
) -> None:
    """Compare submissions over the tasks that all have; each is verified again.

    The score of a task is log(EASY / agent) / log(EASY / best static) of mean bounded slowdowns: 0
    is EASY, 1 the best weights that do not change. Scores of tasks and trainings are summed up by
    their interquartile mean; the 95 % intervals are of resampled trainings and slices. ! marks who
    lets somebody wait over twice as long as the longest wait of EASY, or leaves more jobs waiting
    at the end of slices than EASY does, by over 1 % of their jobs.

    A submission whose proof fails in some task has no score, and is not ranked; the exit code is
    then 1.
    """
    from hpcgym.suite.board import board_of
    from hpcgym.suite.submissions import read

    found = [read(folder) for folder in folders]
    if curves is not None:
        _draw_curves(found, curves)
    board = board_of(found, progress=counting)
    if format is TableFormat.json:
        output.print_json(board.facts())
    elif format is TableFormat.csv:
        output.print_csv(board.rows())
    elif format is TableFormat.latex:
        sys.stdout.write(board.to_latex())
    elif format is TableFormat.markdown:
        sys.stdout.write(board.to_markdown())
    else:
        _print_board(board)
    failed = [(agent, task) for agent in board.values for task in board.failed(agent)]
    for agent, task in failed:
        note(f"{agent}: {task} is not verified: {board.proofs[agent][task].text}")
    if failed:
        raise typer.Exit(1)


def _draw_curves(submissions: Sequence[Submission], path: Path) -> None:
    """Write the picture of trainings."""
    from hpcgym.report.canvas import picture_suffix, save_figure
    from hpcgym.suite.board import curves_of, draw_curves

    save_figure(draw_curves(curves_of(submissions)), path, picture_suffix(path))
    note(f"wrote {path}")


def _facts(task: Any) -> dict[str, Any]:
    """Return a task as a row of the list."""
    from hpcgym.workload.archive import find, is_trace

    return {
        "task": task.name,
        "environment": task.env_id.removeprefix("hpcgym/"),
        "jobs": task.workload,
        "slice": task.window,
        "steps": task.steps,
        "seeds": len(task.seeds),
        "frozen": task.frozen,
        "here": not is_trace(task.workload) or find(task.workload) is not None,
        "digest": task.digest or None,
    }


def _word(value: Any) -> str:
    """Return a fact for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print_board(board: Board) -> None:
    """Print scores for people: over all tasks, then task by task."""
    from hpcgym.naming import counted
    from hpcgym.suite.proofs import PROVED
    from hpcgym.suite.tasks import suite as name_of

    out = output.console()
    out.print(f"{name_of()} · {counted(len(board.tasks), 'task')}", style="bold", markup=False)
    out.print()
    _print_table(*board.cells())
    out.print(
        "! in some task over twice EASY's longest wait, or more unserved than EASY by over 1 % of"
        " the jobs",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    out.print(PROVED, markup=False, soft_wrap=True)
    out.print()
    _print_table(*board.cells_by_task())


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of texts, the first column to the left."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, heading in enumerate(headings):
        # headings may be folded
        least = max((len(row[place]) for row in rows), default=0) if place else None
        side: JustifyMethod = "right" if place else "left"
        table.add_column(Text(heading), justify=side, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*map(Text, row))
    print_table(output.console(), table, [])
