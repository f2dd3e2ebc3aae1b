"""``hpcgym reproduce energy-fairshare``: a study of fairness, computed anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import executors, options
from hpcgym.cli.options import Format
from hpcgym.cli.reproduce import WorkloadsOption, at_hand, print_tables, shown
from hpcgym.cli.running import ExplainedCommand, Lists, note

#: Traces of table 6.1.
TRACES = ("SDSC-SP2", "PIK-IPLEX", "CEA-Curie")


def _readings() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.energy.shares import READINGS

    return [(name, reading.meaning) for name, reading in READINGS.items()]


class EnergyFairShare(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym reproduce energy-fairshare --quick",
        "hpcgym reproduce energy-fairshare --workload SDSC-SP2",
        "hpcgym reproduce energy-fairshare --workload trace.swf.gz --format csv > users.csv",
    )
    lists: ClassVar[Lists] = {
        "Readings of the text, all of which are simulated": _readings,
        "Executors (--executor)": executors.names,
    }


def energy_fairshare(
    workload: WorkloadsOption = None,
    folder: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="Where tables, pictures and report.md are written. What was simulated before is"
            " kept there, and not simulated again.",
        ),
    ] = Path("energy-fairshare"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A small cut that takes seconds: few jobs and users."),
    ] = False,
    executor: executors.ExecutorOption = "processes",
    workers: executors.WorkersOption = None,
    format: options.FormatOption = Format.table,
) -> None:
    """Study energy fair share as Georgiou, Glesser, Rzadca and Trystram did (2015).

    Each of the 20 users who submit most saves 30 % of the energy, or wastes it, under EFS and
    FS+EFS (table 6.1); three users of Light-ESP (figures 6.2 and 6.3). SDSC-SP2 takes two minutes
    of two cores. After an interruption, the same command goes on.
    """
    from hpcgym.benchmarks.energy.shares_run import reproduce as run

    executors.become_mpi(executor, workers)
    sources = list(dict.fromkeys(workload or at_hand(TRACES)))
    rules = {"quick": quick, "executor": executor, "workers": workers}
    path, tables = shown(run, sources, folder, **rules)
    by_trace = tables["6.1"].groupby("trace", sort=False)
    parts = {str(trace): part.drop(columns="trace") for trace, part in by_trace}
    print_tables(parts, "stretch over that under FS (table 6.1)", format)
    note(f"wrote {path}, tables and pictures beside it")
