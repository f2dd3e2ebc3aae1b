"""``hpcgym suite``: frozen tasks, submissions, and proofs of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli.groups import grouped
from hpcgym.cli.running import ExplainedCommand, note
from hpcgym.cli.tables import Format, Sheet, Table, of_rows, show
from hpcgym.progress import counting

if TYPE_CHECKING:
    from hpcgym.study.suite.board import Board

suite = typer.Typer(name="suite", no_args_is_help=True, rich_markup_mode=None)


@suite.callback()
def _group() -> None:
    """Play frozen tasks, compare what agents reach there, and prove what others have reached.

    A submission is a folder: the schedules of an agent, and the metrics that it says they have.
    """


@suite.command("list", cls=ExplainedCommand)
@grouped()
def list_tasks(format: Format = Format.table) -> None:
    """List the tasks: their jobs, their environments, and whether their traces are here.

    Examples
    --------
    hpcgym suite list
    hpcgym suite list --format json
    """
    from hpcgym.study.suite.tasks import tasks

    rows = [_facts(task) for task in tasks().values()]
    headings = ("task", "environment", "jobs", "slice", "frozen", "here", "steps")
    show(format, lambda: Sheet([], [of_rows(rows, *headings)]), lambda: rows)


@suite.command("run", cls=ExplainedCommand)
@grouped()
def run_agent(
    *,
    agent: Annotated[str, typer.Option()],
    tasks: str | None = None,
    folder: Annotated[Path, typer.Option("--output")],
) -> None:
    """Let an agent play the test part of tasks, and write its submission.

    Options
    -------
    agent NAME|FILE|MODULE:CLASS : A reference (random, fcfs, easy, sjf, saf, f1, best-static,
        saf-typical) or any scheduler; job-ppo, rule-es, xnes, maskable-ppo or ppo, which are
        trained; lookahead; a saved agent (.pt, .json, suite:TASK/AGENT/SEED), a model of
        Stable-Baselines3 (.zip), whose reading runs code that is in it; or code of your own, from
        this folder too. What has train(make, seed, steps) is trained in each task, once for each of
        five seeds.
    tasks mini|KIND|ID,... : Ids, kinds (select, order, weights, power, pairs), or mini: three small
        ones. [default: all but mini; of these and of kinds, those that the agent can play]

    Output
    ------
    folder FOLDER : Of the submission; a run goes on with what it has.

    Examples
    --------
    hpcgym suite run --agent saf --output saf
    hpcgym suite run --agent best-static --tasks mini --output static
    hpcgym suite run --agent model.zip --tasks select --output ppo
    hpcgym suite run --agent rule-es --tasks weights --output rule-es
    hpcgym suite run --agent my_package:Agent --tasks kth-order,sdsc-order --output mine
    """
    from hpcgym.scheduler.own_code import look_here
    from hpcgym.study.suite.submissions import run
    from hpcgym.study.suite.tasks import find_tasks

    look_here()
    chosen = find_tasks(tasks)
    # of kinds and mini those that it can play, as without --tasks
    named = tasks is not None and {*tasks.split(",")} <= {task.name for task in chosen}
    done = run(agent, chosen, folder, named=named, progress=counting, note=note)
    for name in done.tasks:
        values = done.values(name)
        seeds = f" x {len(values)} seeds" if len(values) > 1 else ""
        typer.echo(f"{name}: mean BSLD {values.mean():.4g} over {values.shape[1]} slices{seeds}")


@suite.command("report", cls=ExplainedCommand)
@grouped()
def report_submissions(
    folders: list[Path],
    format: Format = Format.table,
) -> None:
    """Compare submissions over the tasks that all have; each is verified again.

    The score of a task is log(EASY / agent) / log(EASY / best static) of mean bounded slowdowns: 0
    is EASY, 1 the best weights that do not change. Scores of tasks and trainings are summed up by
    their interquartile mean; the 95 % intervals are of resampled trainings and slices. ! marks who
    lets somebody wait over twice as long as the longest wait of EASY, or leaves more jobs waiting
    at the end of slices than EASY does, by over 1 % of their jobs.

    A submission whose proof fails in some task has no score, and is not ranked; the exit code is
    then 1.

    Arguments
    ---------
    folders FOLDER... : Of submissions.

    Examples
    --------
    hpcgym suite report easy saf mine
    hpcgym suite report saf mine --format latex > table.tex
    """
    from hpcgym.study.suite.board import board_of
    from hpcgym.study.suite.submissions import read

    found = [read(folder) for folder in folders]
    board = board_of(found, progress=counting)
    show(format, lambda: _sheet(board), board.rows, board.facts)
    failed = [(agent, task) for agent in board.values for task in board.failed(agent)]
    for agent, task in failed:
        note(f"{agent}: {task} is not verified: {board.proofs[agent][task].text}")
    if failed:
        raise typer.Exit(1)


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


def _sheet(board: Board) -> Sheet:
    """Return scores for people: over all tasks, then task by task."""
    from hpcgym.naming import counted
    from hpcgym.report.tables import two_lines
    from hpcgym.study.suite.proofs import PROVED
    from hpcgym.study.suite.tasks import suite as name_of

    heading, rows = board.cells()
    below = [
        "! in some task over twice EASY's longest wait, or more unserved than EASY by over 1 % of"
        " the jobs",
        PROVED,
    ]
    title = f"{name_of()} · {counted(len(board.tasks), 'task')}"
    tables = [Table([*map(two_lines, heading)], rows), Table(*board.cells_by_task())]
    return Sheet([title], tables, below)
