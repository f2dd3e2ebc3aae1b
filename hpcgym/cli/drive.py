"""``hpcgym drive``: a policy orders the queue of a Slurm that runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli import names, output
from hpcgym.cli.files import Written
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.running import note
from hpcgym.errors import HpcgymError
from hpcgym.naming import seconds_of

if TYPE_CHECKING:
    from hpcgym.drive import Asked

_COLUMNS = (
    *("place", "job_number", "user", "requested_processors", "requested_time", "wait_time"),
    *("priority", "new"),
)


@grouped({"Policies (--policy)": names.policies})
def drive(
    *,
    policy: Annotated[str, typer.Option()],
    every: str = "60s",
    dry_run: bool = False,
    log: Annotated[Path | None, Written("log", (".jsonl",))] = None,
    format: Format = Format.table,
    force: bool = False,
) -> None:
    """Let a policy order the queue of the Slurm that this machine talks to.

    It asks squeue for the waiting jobs. With scontrol it sets the priorities of those whose places
    change. Slurm does all else, and jobs that are held stay held. It runs until Ctrl-C. When it
    ends, for whatever reason, the jobs whose priorities it set get Slurm's own again.

    To set priorities, you need the rights of an operator of Slurm.

    Options
    -------
    policy NAME|EXPRESSION|FILE : What orders the queue: a policy, an expression, a scheduler, or an
        agent that has learned weights, such as agent.json of hpcgym train xnes.
    every TIME : How often to look at the queue: 60s, 5min, 1h.
    dry_run : Print the order that would be set, set nothing, and end.

    Output
    ------
    log FILE : Write what is set, a line of JSON each time: .jsonl.

    Examples
    --------
    hpcgym drive --policy saf --dry-run
    hpcgym drive --policy agent.json --every 60s --log drive.jsonl
    hpcgym drive --policy 'wait - 0.1 * requested * processors'
    """
    every_s = _seconds(every)

    from hpcgym.drive import drive as drive_slurm
    from hpcgym.drive import look
    from hpcgym.evaluation.lineup import queue_order

    scheduler = queue_order(policy)
    if dry_run:
        _show(look(scheduler), format)
        return
    if log is None:
        drive_slurm(scheduler, every_s, _telling(None))
        return
    with log.open("w", buffering=1) as file:
        drive_slurm(scheduler, every_s, _telling(file))


def _seconds(text: str) -> int:
    """Return a time of the command line in seconds."""
    seconds = seconds_of(text)
    if seconds is None or seconds < 1 or seconds != int(seconds):
        raise HpcgymError(f"--every takes a time such as 60s, 5m or 1h, not {text!r}")
    return int(seconds)


def _telling(file: IO[str] | None) -> Callable[[Asked], None]:
    """Return what tells people, and a log, what was done."""

    def tell(asked: Asked) -> None:
        at, waiting = time.strftime("%H:%M:%S", time.localtime(asked.time)), len(asked.order)
        note(f"{at}: {waiting:,} jobs wait; priorities set: {len(asked.changed):,}")
        if file is not None:
            row = {"time": asked.time, "waiting": waiting, "set": asked.changed}
            file.write(f"{json.dumps(row)}\n")

    return tell


def _rows(asked: Asked) -> list[dict[str, Any]]:
    """Return the queue in the order that a policy wants, a row a job."""
    from hpcgym.workload.io.swf_header import called, names_of

    queue, jobs = asked.queue, asked.queue.jobs
    users = names_of(jobs, "user_id")
    rows = []
    for place, row in enumerate(asked.order, 1):
        job, priority = queue.ids[row], int(queue.priority[row])
        told = (
            *(place, int(job), called(users, "user", int(jobs.user_id[row]))),
            *(int(jobs.requested_processors[row]), int(jobs.requested_time[row])),
            *(asked.time - int(jobs.submit_time[row]), priority),
            asked.changed.get(job, priority),
        )
        rows.append(dict(zip(_COLUMNS, told, strict=True)))
    return rows


def _show(asked: Asked, format: Format) -> None:
    """Print the order that would be set."""
    rows = _rows(asked)
    facts = {"time": asked.time, "queue": rows}
    output.show(format, lambda: facts, lambda: rows, lambda: _print(rows, len(asked.changed)))


def _print(rows: list[dict[str, Any]], changed: int) -> None:
    """Print it for people."""
    from hpcgym.naming import duration

    out = output.console()
    if not rows:
        out.print("No job waits.")
        return
    times = ("requested_time", "wait_time")
    cells = [
        [duration(value) if name in times else str(value) for name, value in row.items()]
        for row in rows
    ]
    every = range(len(_COLUMNS))
    out.print(output.table_of(_COLUMNS, cells, left=every, fold=every, edges=True))
    out.print(f"{len(rows):,} jobs wait; of {changed:,} the priority would be set")
