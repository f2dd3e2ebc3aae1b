"""``hpcgym reproduce coscheduling``: the results of ELiSE."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import executors, options, pages
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.reproduce import FolderOption, QuickOption, print_tables, shown
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.errors import HpcgymError


def _readings() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.coscheduling.readings import READINGS

    return [(name, reading.meaning) for name, reading in READINGS.items()]


class CoschedulingStudy(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym reproduce coscheduling --quick",
        "hpcgym reproduce coscheduling --speedups-file lm-aris.compute-NAS.json",
        "hpcgym reproduce coscheduling --executor dask:tcp://node1:8786 --format csv > table.csv",
    )
    lists: ClassVar[Lists] = {
        "Readings of the document, all of which are simulated": _readings,
        "Executors (--executor)": executors.names,
    }


@grouped
def coscheduling(
    *,
    speedups_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Measured speedups of codes with their processes and run times, as ELiSE's.",
            show_default="lm-aris.compute-NAS.json of HPCGYM_DATA; without it parts are left out",
            rich_help_panel="Experiment",
        ),
    ] = None,
    heatmaps: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Generated heatmaps of each mean and reading.",
            rich_help_panel="Experiment",
        ),
    ] = 20,
    shuffles: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Shuffles of each set of measured codes.",
            rich_help_panel="Experiment",
        ),
    ] = 100,
    folder: FolderOption = Path("coscheduling"),
    quick: QuickOption = False,
    executor: executors.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: pages.PageOptions,
) -> None:
    """Study co-scheduling as Karapanagiotis, Triantafyllis and others did (ELiSE).

    It compares makespans of co-schedulers with EASY's: by mean speedup of pairs, under several
    readings of the document; by mix of process counts; and over shuffles of measured codes, with
    what they correlate with. It also measures simulated days an hour. It takes some minutes of two
    cores. After an interruption, the same command goes on.
    """
    from hpcgym.benchmarks.coscheduling.run import MEASURED_FILE, find_measured
    from hpcgym.benchmarks.coscheduling.run import reproduce as run

    executor.become_mpi()
    if speedups_file is not None and not speedups_file.is_file():
        raise HpcgymError(f"--speedups-file: there is no file {speedups_file}")
    measured = find_measured() if speedups_file is None else speedups_file
    if measured is None:
        note(
            f"mixes and shuffles of measured codes are left out: there is no {MEASURED_FILE} in"
            " HPCGYM_DATA; name one with --speedups-file"
        )
    rules = {"heatmaps": heatmaps, "shuffles": shuffles, "quick": quick}
    path, tables = shown(run, measured, folder, **rules, **vars(executor))
    parts = {"500 jobs on 100 nodes": tables["improvements"]}
    print_tables(parts, "makespan improvement over EASY", format)
    page.write_study(path)
