"""``hpcgym reproduce cp``: constraint programming, as Remediani and Galleguillos used it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import executors, options, pages
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.reproduce import FolderOption, QuickOption, print_tables, shown
from hpcgym.cli.running import ExplainedCommand, Lists, note


def _dispatchers() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.cp.configurations import DISPATCHERS, MACHINES

    return [
        (one, f"on {', '.join(name for name, of in MACHINES.items() if one in of.dispatchers)}")
        for one in DISPATCHERS
    ]


def _machines() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.cp.configurations import MACHINES

    return [(name, f"with {machine.what}") for name, machine in MACHINES.items()]


class CpStudy(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym reproduce cp --quick",
        "hpcgym reproduce cp",
        "hpcgym reproduce cp --machine eurora --days 7",
        "hpcgym reproduce cp --machine eurora --dispatcher easy --dispatcher pcp20",
        "hpcgym reproduce cp --full --executor dask:tcp://node1:8786",
        "mpiexec -n 9 hpcgym reproduce cp --executor mpi    # 8 workers",
        "hpcgym reproduce cp --machine kit-forhlr-ii --format csv > slowdowns.csv",
    )
    lists: ClassVar[Lists] = {
        "Machines (--machine)": _machines,
        "Dispatchers (--dispatcher)": _dispatchers,
        "Executors (--executor)": executors.names,
    }


@grouped
def cp(
    *,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="A machine of the list below; several times for several.",
            show_default="all whose workloads are on this machine",
            rich_help_panel="Experiment",
        ),
    ] = None,
    dispatcher: Annotated[
        list[str] | None,
        typer.Option(
            "--dispatcher",
            metavar="NAME",
            help="A dispatcher of the list below; several times for several. Tables and pictures"
            " show only these; those of others are removed, but their outcomes are kept.",
            show_default="all",
            rich_help_panel="Experiment",
        ),
    ] = None,
    folder: FolderOption = Path("cp"),
    days: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="How many days a run has; generated workloads of three seeds.",
            show_default="0.4 of Eurora, 3.5 of KIT, 5 of KTH-SP2",
            rich_help_panel="Experiment",
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="A month of Eurora and KTH-SP2, a week of KIT, one seed: hours.",
            rich_help_panel="Experiment",
        ),
    ] = False,
    quick: QuickOption = False,
    executor: executors.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: pages.PageOptions,
) -> None:
    """Study CP dispatchers as Remediani (2017) and Galleguillos, Kiziltan and Soto did (2020).

    It compares heuristics and EASY with CPH-0 to 3, pure CP 0 to 3, HCP'19, PCP'19 and PCP'20, by
    requested, predicted and real run times: slowdown, waits, queues, times of a dispatch, sizes of
    the models, beside the published values. It takes about an hour on two cores, and the same
    command goes on after an interruption. --quick has the heuristics on Eurora, which need no
    OR-Tools.
    """
    from hpcgym.benchmarks.cp.configurations import QUICK_MACHINES
    from hpcgym.benchmarks.cp.run import reproduce as run

    executor.become_mpi()
    chosen = tuple(dict.fromkeys(dispatcher or ()))
    usual = QUICK_MACHINES if quick and not chosen else _with_workloads(chosen)
    names = list(dict.fromkeys(machine or usual))
    rules = {"days": days, "full": full, "quick": quick, "dispatchers": chosen}
    path, tables = shown(run, names, folder, **rules, **vars(executor))
    print_tables(tables, "slowdown by class of jobs", format)
    page.write_study(path)


def _with_workloads(dispatchers: tuple[str, ...]) -> list[str]:
    """Return the machines of the study whose workloads are generated, or need not be fetched.

    Where none of these dispatchers runs, if there are any, a machine is left out.
    """
    from hpcgym.benchmarks.cp.configurations import MACHINES
    from hpcgym.workload.archive import find

    run = {
        name: of
        for name, of in MACHINES.items()
        if not dispatchers or set(dispatchers) & set(of.dispatchers)
    }
    run = run or MACHINES  # of none it is said what is wrong with the names
    for name in [name for name in MACHINES if name not in run]:
        note(f"{name} is left out: none of these dispatchers runs there")
    generated = [name for name, of in run.items() if ":" in of.workload]
    traces = [name for name, of in run.items() if ":" not in of.workload]
    missing = [name for name in traces if find(MACHINES[name].workload) is None]
    for name in missing:
        note(f"{name} is left out: hpcgym traces fetch {MACHINES[name].workload}")
    return generated + [name for name in traces if name not in missing]
