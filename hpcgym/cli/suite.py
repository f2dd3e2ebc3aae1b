"""``hpcgym suite``: frozen tasks, submissions, and proofs of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from hpcgym.cli import output
from hpcgym.cli.groups import Option
from hpcgym.cli.running import Commands, note
from hpcgym.cli.tables import Format, Sheet, of_rows, show
from hpcgym.progress import counting
from hpcgym.words import shown

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.report.cells import Table
    from hpcgym.report.figures import Drawing


class By(StrEnum):
    """What a row of a report is of, beside an agent."""

    task = "task"
    log = "log"


@click.group(cls=Commands)
def suite() -> None:
    """Play frozen tasks, compare the scores of agents, and verify the scores of others.

    A submission is a folder with the schedules of an agent, and its claims about their metrics.
    """


@suite.command("list")
def list_tasks(format: Format = Format.table) -> None:
    """List the tasks: environments, logs, how many of the logs are here, and references.

    Examples
    --------
    hpcgym suite list
    hpcgym suite list --format json
    """
    from hpcgym.study.suite.tasks import tasks

    rows = [_facts(task) for task in tasks().values()]
    headings = ("task", "environment", "logs", "here", "reference", "scored")
    show(format, lambda: Sheet([], [of_rows(rows, *headings)]), lambda: rows)


@suite.command("run")
def run_agent(
    *,
    agent: str,
    tasks: str | None = None,
    logs: str | None = None,
    log: list[str] | None = None,
    workers: int = 1,
    folder: Annotated[Path, Option("--output")],
) -> None:
    """Let an agent play tasks, and write its submission.

    Options
    -------
    agent NAME|FILE|MODULE:CLASS : Any scheduler, random, or reference, the rule to beat;
        rule-es, net-es or xnes, trained here; a saved agent (.pt, .json); a model of
        Stable-Baselines3 (.zip; to read it runs code in it); or code of your own, from this folder
        too. A class with train(make, seed, steps) is trained for each task, once for
        each of five seeds; equal trainings are done once. Their steps are counted, and more than
        the task allows are refused.
    tasks mini|ID,... : Ids, or mini: four small tasks on a generated log. [default: all that are
        scored; of these and of mini, those that the agent can play]
    logs NAME,... : Logs to play. [default: all of a task that are on this machine]
    log FILE : A log of your own: tasks are played on it in place of their logs, its first half for
        training, its second for the test. May be repeated.
    workers N : Processes that train and play at a time.

    Output
    ------
    folder FOLDER : Folder of the submission. A run goes on with the trainings and logs in it.

    Examples
    --------
    hpcgym suite run --agent saf --output saf
    hpcgym suite run --agent rule-es --tasks mini --output rule-es
    hpcgym suite run --agent rule-es --tasks order,zero-shot --workers 2 --output rule-es
    hpcgym suite run --agent my_package:Agent --tasks order --logs KTH-SP2 --output mine
    hpcgym suite run --agent aged --tasks order --log mine.swf --log ours.swf.gz --output own
    """
    from hpcgym.errors import check_whole
    from hpcgym.own_code import look_here
    from hpcgym.study.suite.runs import run
    from hpcgym.study.suite.tasks import find_tasks, on_own_logs, own_log

    look_here()
    chosen = find_tasks(tasks)
    if log:
        own = [own_log(file) for file in log]
        kept = (task for task in chosen if tasks or not (task.window or task.unseen))
        chosen = [on_own_logs(task, own) for task in kept]
    named = tasks is not None and "mini" not in tasks.split(",")
    names = None if logs is None else [name.strip() for name in logs.split(",")]
    try:
        done = run(
            agent, chosen, folder, logs=names, named=named,
            workers=check_whole("--workers", workers, 1), progress=counting, note=note,
        )  # fmt: skip
    except KeyboardInterrupt:
        if folder.exists():
            note(f"\n{folder} keeps what is done: the same command goes on")
        raise
    for name in done.tasks:
        for played in done.tasks[name]["logs"]:
            episodes = done.told(name, played).values()
            mean = sum(metrics["mean_bsld"] for metrics in episodes) / len(episodes)
            seeds = f" over {len(episodes)} seeds" if len(episodes) > 1 else ""
            click.echo(f"{name}, {played}: mean BSLD {shown(mean)}{seeds}")


@suite.command("report")
def report_submissions(
    folders: list[Path],
    by: By = By.task,
    *,
    how: output.ResultOptions,
) -> None:
    """Compare submissions task by task; each is verified again.

    The score is the mean over logs of the mean over weeks of log(EASY / agent) of mean bounded
    slowdowns, over five replays of each log; a log counts 0 if its longest wait is over twice
    EASY's and 72 h, or its area-weighted wait over twice EASY's and 1 h, in the mean of the
    replays, or over 1.25 times that in one of them: the gate. A second table has the score without
    the gate, means over all jobs, waits, and which share of promises to heads of the queue was
    broken, also without CEA-Curie.
    "Above the reference" is log(reference / agent), week by week. An agent wins a task if the
    interval of this value is above 0 for the mean of its seeds, and for three of five alone.

    A submission whose proof fails on some log has no score in that task; the exit code is then 1.

    Arguments
    ---------
    folders FOLDER... : Folders of submissions.

    Options
    -------
    by task|log : A row for each agent and task, or for each agent and log.

    Examples
    --------
    hpcgym suite report easy saf mine
    hpcgym suite report mine --by log --format csv > mine.csv
    """
    from hpcgym.study.suite.board import board_of
    from hpcgym.study.suite.submissions import read

    board = board_of([read(folder) for folder in folders], progress=counting, note=note)
    rows = board.table if by == By.task else board.by_log
    records: list[dict[Any, Any]] = rows.to_dict("records")
    if not records:
        note("these are logs that do not count; --by log shows them")
    how.show(
        output.CommandResult(
            sheet=lambda: _sheet(records, rows),
            rows=lambda: records,
            facts=board.facts,
            drawings=lambda: _drawings(records),
        )
    )
    for agent, proof in board.failed:
        note(f"{agent}: {proof.task} on {proof.log} is not verified: {proof.text}")
    if board.failed:
        raise click.exceptions.Exit(1)


def _drawings(records: list[dict[Any, Any]]) -> dict[str, Drawing]:
    """Return the scores of each task with their intervals."""
    from hpcgym.report.figures import of_means

    drawings = {}
    for task in dict.fromkeys(row["task"] for row in records):
        means = {
            f"{row['agent']}, {row['log']}" if "log" in row else row["agent"]: (
                row["score"], row["score_low"], row["score_high"],
            )
            for row in records
            if row["task"] == task
        }  # fmt: skip
        drawings[f"score-{task}"] = of_means(means, f"score in {task}: log(EASY / agent)", 0)
    return drawings


def _facts(task: Any) -> dict[str, Any]:
    """Return a task as a row of the list."""
    from hpcgym.workload.archive import find, find_own, is_trace

    def is_here(workload: str) -> bool:
        generated = ":" in workload
        return generated or bool(find(workload) if is_trace(workload) else find_own(workload))

    here = [log for log in task.logs if is_here(log.workload)]
    return {
        "task": task.name,
        "environment": task.env_id.removeprefix("hpcgym/"),
        "logs": ", ".join(log.name for log in task.logs),
        "here": f"{len(here)} of {len(task.logs)}",
        "reference": task.reference,
        "scored": task.scored,
        "steps": task.steps,
        "seeds": len(task.seeds),
        "training": [log.workload for log in task.training],
        "digests": {log.name: log.digest for log in task.logs},
    }


def _sheet(records: list[dict[Any, Any]], rows: pd.DataFrame) -> Sheet:
    """Return scores for people, two tables a task."""
    from hpcgym.study.suite.board import WEEKLY, Board
    from hpcgym.study.suite.proofs import COUNTED, PROVED
    from hpcgym.study.suite.tasks import suite as name_of

    tables: list[Table] = []
    for task in dict.fromkeys(row["task"] for row in records):
        tables += Board.tables(rows[rows["task"] == task])
    trained = [COUNTED] if any(row["trained"] for row in records) else []
    return Sheet([name_of()], tables, [*Board.broken(rows), WEEKLY, PROVED, *trained])
