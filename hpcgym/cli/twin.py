"""``hpcgym twin``: forecasts beside the Slurm that runs, scored as jobs start."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from hpcgym.cli import loading
from hpcgym.cli.files import Written
from hpcgym.cli.groups import Option
from hpcgym.cli.interrupts import Terminated
from hpcgym.cli.lineup import rules_of
from hpcgym.cli.running import explained, note
from hpcgym.errors import HpcgymError
from hpcgym.progress import working
from hpcgym.units import whole_seconds

if TYPE_CHECKING:
    from hpcgym.twin.polls import Twin
    from hpcgym.twin.serving import TwinSession

_TOLD_S = 600  # a line of progress comes so often


@explained()
def twin(
    *,
    every: str = "30s",
    past: str | None = None,
    log: Annotated[Path | None, Written("log", (".jsonl",), goes_on=True)] = None,
    scheduler: str | None = None,
    reading: loading.MachineReading,
    futures: int = 64,
    port: Annotated[int, Option(type=click.IntRange(0, 65535))] = 0,
) -> None:
    """Say when all waiting jobs of your Slurm start, again and again, and learn from what came.

    It asks squeue, sinfo, sdiag and scontrol show, and never changes anything in Slurm. Each job's
    first forecast is scored once the job starts, beside Slurm's own plan; scores recalibrate the
    next ones. At each look it makes the plan of Slurm's last backfill pass itself, and says how
    many start times agree: if few do, these are not the rules of this Slurm.

    A page for this machine alone shows when jobs start, what another shape of a job would mean, and
    what other policies would do; forecasts.json beside it is for portals. It runs until Ctrl-C.

    Workload
    --------
    past FILE : Jobs that have ended, such as of sacct -P, from which run times and jobs to come are
        learned. Otherwise only those that Slurm remembers, and those in --log, are known.

    Scheduler
    ---------
    scheduler NAME : The rules of this Slurm. [default: its slurm.conf]

    Experiment
    ----------
    every TIME : How often to look: 30s, 5min.
    futures N : How many futures a forecast has at most; fewer where they take long.

    Output
    ------
    log FILE : Keep forecasts and scores in this file, a line of JSON each: .jsonl. If it is there,
        the twin goes on with its scores, also after it was killed.
    port N : Port of the page. [default: a free one]

    Examples
    --------
    hpcgym twin --every 30s --past sacct.txt --log twin.jsonl
    hpcgym twin --scheduler slurm.conf:qos=qos.txt --cluster slurm.conf --port 8123
    """
    every_s = whole_seconds("--every", every, least=1)

    from hpcgym.explore.live import Server
    from hpcgym.forecasting.state import SlurmStates
    from hpcgym.slurm.programs import SlurmPrograms
    from hpcgym.twin.polls import Twin
    from hpcgym.twin.serving import TwinSession

    with working("asking Slurm"):
        states = SlurmStates(SlurmPrograms(), reading.machine, past)
        if scheduler is None and states.machine.conf is None:
            raise click.UsageError("the slurm.conf of this Slurm cannot be read: give --scheduler")
        rules = rules_of(scheduler or str(states.machine.conf), reading.given())
        made = Twin(states, rules, log, futures=futures, every_s=every_s)
        made.poll()
    session = TwinSession(made, every_s)
    try:
        server = Server(session, port)
    except OSError as error:
        raise HpcgymError(f"--port {port}: {error.strerror or error}") from None
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        click.echo(server.address)
        sys.stdout.flush()  # who started the program reads the address from it
        note("for this machine alone; Ctrl-C ends it")
        try:
            _poll_on(made, session, every_s)
        except Terminated:
            raise
        except KeyboardInterrupt:
            note("ended")
        finally:
            server.shutdown()


def _poll_on(twin: Twin, session: TwinSession, every_s: int) -> None:
    """Poll for ever, at even times; tell of problems once, and of scores now and then.

    No problem ends it: a job of which Slurm tells something odd will be gone some day.
    """
    from hpcgym.twin.serving import lines_of_poll

    scored_at = -float(_TOLD_S)
    following = time.monotonic()
    while True:
        if time.monotonic() - scored_at >= _TOLD_S and twin.last is not None:
            scored_at = time.monotonic()
            lines = lines_of_poll(twin.last, twin.record.scores())
            note(f"{time.strftime('%H:%M')}: {'; '.join(lines)}")
        following = max(following + every_s, time.monotonic())
        time.sleep(max(following - time.monotonic(), 0))
        try:
            twin.poll()
        except Exception as error:  # whatever an odd line leads to
            problem = _line_of(error)
            if problem != session.problem:
                note(f"{time.strftime('%H:%M')}: {problem}")
            session.problem = problem
        else:
            session.problem = ""


def _line_of(error: Exception) -> str:
    """Return what went wrong in a line; what hpcgym does not foresee with the kind of error."""
    if isinstance(error, HpcgymError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())
