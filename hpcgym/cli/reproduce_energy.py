"""``hpcgym reproduce`` powercap, energy-budget and energy-fairshare: studies of energy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import completion, executors, options, pages
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.reproduce import (
    FolderOption,
    QuickOption,
    WorkloadsOption,
    at_hand,
    print_tables,
    shown,
)
from hpcgym.cli.running import ExplainedCommand, Lists
from hpcgym.errors import HpcgymError

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


@grouped
def energy_fairshare(
    *,
    workload: WorkloadsOption = None,
    folder: FolderOption = Path("energy-fairshare"),
    quick: QuickOption = False,
    executor: executors.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: pages.PageOptions,
) -> None:
    """Study energy fair share as Georgiou, Glesser, Rzadca and Trystram did (2015).

    Each of the 20 users with the most jobs saves 30 % of the energy, or wastes it, under EFS and
    FS+EFS (table 6.1). A second experiment has three users of Light-ESP (figures 6.2 and 6.3).
    SDSC-SP2 takes two minutes of two cores. After an interruption, the same command goes on.
    """
    from hpcgym.benchmarks.energy.shares_run import reproduce as run

    executor.become_mpi()
    sources = list(dict.fromkeys(workload or at_hand(TRACES)))
    rules = {"quick": quick, **vars(executor)}
    path, tables = shown(run, sources, folder, **rules)
    by_trace = tables["6.1"].groupby("trace", sort=False)
    parts = {str(trace): part.drop(columns="trace") for trace, part in by_trace}
    print_tables(parts, "stretch over that under FS (table 6.1)", format)
    page.write_study(path)


def _requests() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.energy.powercap_workload import REQUESTS

    return list(REQUESTS.items())


def _caps() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.energy.powercap import CAPPED

    return list(CAPPED.items())


class PowerCapStudy(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym reproduce powercap --quick",
        "hpcgym reproduce powercap",
        "hpcgym reproduce powercap --workload curie.swf.gz --output curie",
        "hpcgym reproduce powercap --workload lublin:jobs=20000,processors=192,load=1.2"
        " --cluster machine.toml",
    )
    lists: ClassVar[Lists] = {
        "Requested times of the substitute, all of which are simulated": _requests,
        "What caps are shares of, likewise where anything stands above nodes": _caps,
        "Executors (--executor)": executors.names,
    }


@grouped
def powercap(
    *,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="WORKLOAD",
            help="A trace of the archive, a file or a generator in place of the substitute;"
            " several times for several.",
            show_default="a generated substitute for the trace of Curie",
            rich_help_panel="Workload",
            autocompletion=completion.traces,
        ),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="The machine: nodes that are all alike, with a power (hpcgym machines).",
            rich_help_panel="Machine",
            autocompletion=completion.machines,
        ),
    ] = "curie",
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N", help="How many substitutes are generated.", rich_help_panel="Experiment"
        ),
    ] = 10,
    folder: FolderOption = Path("powercap"),
    quick: QuickOption = False,
    executor: executors.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: pages.PageOptions,
) -> None:
    """Study power caps as Georgiou, Glesser and Trystram did (2015).

    A cap of 80, 60 or 40 % holds for an hour in the middle of intervals of an overloaded machine.
    SHUT, DVFS, MIX or idle nodes keep it. The study has energy, launched jobs and work (figure
    4.6), nodes and power over time (4.4, 4.5), and switching off or slowing down (table 4.3). It
    takes some minutes of two cores. After an interruption, the same command goes on.
    """
    from hpcgym.benchmarks.energy.powercap_run import reproduce as run

    executor.become_mpi()
    sources = list(dict.fromkeys(workload or ()))
    rules = {"cluster": cluster, "seeds": seeds, "quick": quick}
    path, tables = shown(run, sources, folder, **rules, **vars(executor))
    parts = {
        f"{trace}, requested times {requests}": part.drop(columns=["trace", "requests"])
        for (trace, requests), part in tables["4.6"].groupby(["trace", "requests"], sort=False)
    }
    print_tables(parts, "energy, launched jobs and work (figure 4.6)", format)
    page.write_study(path)


#: Traces of chapter 5, then those that stand for them, and a generated one where none is at hand.
BUDGET_TRACES = ("CEA-Curie", "MetaCentrum", "SDSC-BLUE")
BUDGET_SUBSTITUTES = ("KTH-SP2", "SDSC-SP2", "CTC-SP2")
BUDGET_GENERATED = "lublin:jobs=80000,processors=256,seed=0,load=0.9"


def _budget_readings() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.energy.budget import READINGS

    return [(name, reading.meaning) for name, reading in READINGS.items()]


class EnergyBudgetStudy(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym reproduce energy-budget --quick",
        "hpcgym reproduce energy-budget --weeks 5 --seed 1    # five weeks of each trace, drawn",
        "hpcgym reproduce energy-budget --workload trace.swf.gz --format csv > figures.csv",
    )
    lists: ClassVar[Lists] = {
        "Readings of the text, all of which are simulated": _budget_readings,
        "Executors (--executor)": executors.names,
    }


@grouped
def energy_budget(
    *,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="WORKLOAD",
            help="A trace of the archive, a file or a generator; several times for several.",
            show_default="traces of the thesis and others on this machine, and a generated one",
            rich_help_panel="Workload",
            autocompletion=completion.traces,
        ),
    ] = None,
    weeks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of busy weeks of each trace, drawn at random; the thesis has five.",
            show_default="all of the upper quarter by the log",
            rich_help_panel="Experiment",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Seed of the draw of weeks.", rich_help_panel="Experiment"),
    ] = 0,
    folder: FolderOption = Path("energy-budget"),
    quick: QuickOption = False,
    executor: executors.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: pages.PageOptions,
) -> None:
    """Study energy budgets as Dutot, Georgiou, Glesser and others did (2017).

    Budgets of 100 to 30 % hold for three days of busy weeks. powercap, reducePC and energyBud keep
    them, with idle processors on or switched off. The study has utilization, AVEbsld and energy
    beside EASY's (figures 5.1 to 5.3), and what switching off changes (table 5.1). It takes some
    minutes of two cores. After an interruption, the same command goes on.
    """
    from hpcgym.benchmarks.energy.budget_run import reproduce as run

    executor.become_mpi()
    sources = list(dict.fromkeys(workload or _for_budgets()))
    rules = {"weeks": weeks, "seed": seed, "quick": quick}
    path, tables = shown(run, sources, folder, **rules, **vars(executor))
    by_trace = tables["figures"].groupby("trace", sort=False)
    parts = {str(trace): part.drop(columns="trace") for trace, part in by_trace}
    print_tables(parts, "beside EASY's (figures 5.1 to 5.3)", format)
    page.write_study(path)


def _for_budgets() -> list[str]:
    """Return the traces that are on this machine, and the generated one."""
    try:
        return [*at_hand((*BUDGET_TRACES, *BUDGET_SUBSTITUTES)), BUDGET_GENERATED]
    except HpcgymError:  # none is
        return [BUDGET_GENERATED]
