"""``hpcgym reproduce frontier``: all rules on whole logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import groups, options, output
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
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.errors import HpcgymError

# --- ``hpcgym reproduce cp`` ----------------------------------------------------------------------


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
        "Executors (--executor)": groups.names,
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
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
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


# --- ``hpcgym reproduce`` powercap, energy-budget and energy-fairshare ----------------------------

#: Traces of table 6.1.
ENERGY_TRACES = ("SDSC-SP2", "PIK-IPLEX", "CEA-Curie")


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
        "Executors (--executor)": groups.names,
    }


@grouped
def energy_fairshare(
    *,
    workload: WorkloadsOption = None,
    folder: FolderOption = Path("energy-fairshare"),
    quick: QuickOption = False,
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
) -> None:
    """Study energy fair share as Georgiou, Glesser, Rzadca and Trystram did (2015).

    Each of the 20 users with the most jobs saves 30 % of the energy, or wastes it, under EFS and
    FS+EFS (table 6.1). A second experiment has three users of Light-ESP (figures 6.2 and 6.3).
    SDSC-SP2 takes two minutes of two cores. After an interruption, the same command goes on.
    """
    from hpcgym.benchmarks.energy.shares_run import reproduce as run

    executor.become_mpi()
    sources = list(dict.fromkeys(workload or at_hand(ENERGY_TRACES)))
    rules = {"quick": quick, **vars(executor)}
    path, tables = shown(run, sources, folder, **rules)
    by_trace = tables["6.1"].groupby("trace", sort=False)
    parts = {str(trace): part.drop(columns="trace") for trace, part in by_trace}
    print_tables(parts, "stretch over that under FS (table 6.1)", format)
    page.write_study(path)


def _requests() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.energy.powercap import REQUESTS

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
        "Executors (--executor)": groups.names,
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
            autocompletion=options.complete_traces,
        ),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="The machine: nodes that are all alike, with a power (hpcgym machines).",
            rich_help_panel="Machine",
            autocompletion=options.complete_machines,
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
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
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
        "Executors (--executor)": groups.names,
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
            autocompletion=options.complete_traces,
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
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
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


# --- ``hpcgym reproduce coscheduling``: the results of ELiSE --------------------------------------


def _coscheduling_readings() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.coscheduling.runs import READINGS

    return [(name, reading.meaning) for name, reading in READINGS.items()]


class CoschedulingStudy(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym reproduce coscheduling --quick",
        "hpcgym reproduce coscheduling --speedups-file lm-aris.compute-NAS.json",
        "hpcgym reproduce coscheduling --executor dask:tcp://node1:8786 --format csv > table.csv",
    )
    lists: ClassVar[Lists] = {
        "Readings of the document, all of which are simulated": _coscheduling_readings,
        "Executors (--executor)": groups.names,
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
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
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


# --- ``hpcgym reproduce frontier``: all rules on whole logs ---------------------------------------

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
    lists: ClassVar[Lists] = {"Executors (--executor)": groups.names}


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
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
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
