"""``hpcgym reproduce frontier``: all rules on whole logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import executors, options, pages
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.reproduce import (
    TRACES,
    FolderOption,
    QuickOption,
    WorkloadsOption,
    at_hand,
    print_tables,
    shown,
)
from hpcgym.cli.running import ExplainedCommand, Lists

#: Logs beside those of all studies.
LARGER = ("HPC2N", "CEA-Curie")


class FrontierStudy(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym reproduce frontier --quick",
        "hpcgym reproduce frontier --named    # schedulers by name, all logs at hand",
        "hpcgym reproduce frontier --workload trace.swf.gz",
        "mpiexec -n 9 hpcgym reproduce frontier --executor mpi    # 8 workers",
    )
    lists: ClassVar[Lists] = {"Executors (--executor)": executors.names}


@grouped
def frontier(
    *,
    workload: WorkloadsOption = None,
    folder: FolderOption = Path("frontier"),
    quick: QuickOption = False,
    named: Annotated[
        bool,
        typer.Option(
            "--named",
            help="Only rules that have names, on each log as it is, cleaned by glesser: a minute or"
            " two for six logs.",
            rich_help_panel="Experiment",
        ),
    ] = False,
    executor: executors.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: pages.PageOptions,
) -> None:
    """Compare all rules on whole logs: slowdowns, waits, tails, and who pays.

    The rules are orders of the queue by requested and learned run times, thresholds, hold, and
    backfilling with and without extra processors: 140 rules on each log, and two that age. Each is
    simulated from several starting weeks and with jittered submissions. One of the 140 is chosen on
    the first halves of the logs, and shown on the second. After an interruption, the same command
    goes on.
    """
    from hpcgym.benchmarks.frontier.run import reproduce as run

    executor.become_mpi()
    traces = (*TRACES, *LARGER) if named else TRACES
    sources = list(dict.fromkeys(workload or at_hand(traces)))
    path, tables = shown(run, sources, folder, quick=quick, named=named, **vars(executor))
    if named:
        print_tables({"all logs": tables["over-logs"]}, "divided by EASY's", format)
    by_log = tables["named"].groupby("log", sort=False)
    print_tables({str(log): part.drop(columns="log") for log, part in by_log}, "whole logs", format)
    page.write_study(path)
