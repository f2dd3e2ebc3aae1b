"""``hpcgym reproduce``: published studies computed anew, and all items of their documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli import names, options, output
from hpcgym.cli.files import Written
from hpcgym.cli.groups import Lists, grouped
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, note
from hpcgym.errors import HpcgymError
from hpcgym.files.recorded import KEY
from hpcgym.progress import measuring, watched

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.benchmarks.studies.documents import Entry
    from hpcgym.workload import Workload


# --- What all studies share -----------------------------------------------------------------------

reproduce = typer.Typer(name="reproduce", no_args_is_help=True, rich_markup_mode=None)

#: Traces of the studies that are looked for if none is named.
TRACES = ("KTH-SP2", "SDSC-SP2", "CTC-SP2", "SDSC-BLUE")


@reproduce.callback()
def _reproduce() -> None:
    """Compute a published study anew, and show the published values beside ours."""


class _Common:
    """What options of studies mean.

    Workload
    --------
    workload WORKLOAD : A trace of the archive, a file or a generator; several times for several.
        [default: those of the study's traces that are on this machine]

    Experiment
    ----------
    quick : A small cut that takes seconds, to see what the study writes.

    Output
    ------
    folder FOLDER : Folder for tables, pictures and report.md. Earlier results are kept there and
        not computed again.
    """


#: Where a study writes; the default is the study's own.
FolderOption = Annotated[Path, typer.Option("--output")]


@dataclass(frozen=True)
class _Formatted(options.ExecutorOptions):
    format: Format = Format.table


@dataclass(frozen=True)
class Running(output.PageOptions, _Formatted):
    """Where the tasks of a study are done, and how its tables are shown."""

    def done(self, study: Any, given: Any, folder: Path, **rules: Any) -> Any:
        """Run a study with a bar for each long step, lines in a log; say that it can go on."""
        from hpcgym.benchmarks.studies.harness import Folder

        current, show = "", None
        with ExitStack() as bars:

            def progress(what: str, done: int, total: int) -> None:
                nonlocal current, show
                if what != current:
                    bars.close()
                    current = what
                    show = bars.enter_context(measuring(what)) if watched() else _lines(what)
                assert show is not None
                show(done, total)

            try:
                place = Folder(folder, self.executor, self.workers, progress)
                return study(given, place, **rules)
            except KeyboardInterrupt:
                bars.close()
                if folder.exists():
                    note(f"\n{folder} keeps what is done: the same command goes on")
                raise

    def show(self, report: Path, tables: dict[str, pd.DataFrame], what: str) -> None:
        """Print tables by the names of what they are of; say where the report is."""
        print_tables(tables, what, self.format)
        self.write_study(report)


def study(name: str, lists: Lists | None = None) -> Callable[[Any], Any]:
    """Return what makes a command of the study ``name``, by lists for its help."""
    made = reproduce.command(name, cls=ExplainedCommand)
    listed = {**(lists or {}), "Executors (--executor)": names.executors}
    return lambda command: made(grouped(listed, common=_Common)(command))


def _meanings(module: str, table: str) -> Callable[[], list[tuple[str, str]]]:
    """Return what lists the names in a table of a study with their meanings."""

    def entries() -> list[tuple[str, str]]:
        found = getattr(import_module(f"hpcgym.benchmarks.{module}"), table)
        return [(name, getattr(one, "meaning", one)) for name, one in found.items()]

    return entries


def _each(names: Sequence[str] | None, usual: Callable[[], Sequence[str]]) -> list[str]:
    """Return the names that were given, each once, or else the usual ones."""
    return list(dict.fromkeys(names or usual()))


def at_hand(traces: Sequence[str]) -> list[str]:
    """Return those of the study's traces that need not be fetched."""
    from hpcgym.workload.archive import find

    found = [name for name in traces if find(name) is not None]
    if not found:
        raise HpcgymError(
            "none of the study's traces is on this machine: hpcgym traces fetch"
            f" {' '.join(traces[:2])}, or name a workload with --workload"
        )
    return found


def _by(table: pd.DataFrame, *columns: str, name: str = "{}") -> dict[str, pd.DataFrame]:
    """Return a table for each of the values of some columns, which are left out."""
    parts = table.groupby(list(columns), sort=False)
    return {name.format(*of): part.drop(columns=list(columns)) for of, part in parts}


def _lines(what: str) -> Callable[[int, int], None]:
    """Return what writes a line for each task that is done, of many for each hundredth of them."""
    begin, told = time.monotonic(), -1

    def show(done: int, total: int) -> None:
        nonlocal told
        part = done if total <= 100 else 100 * done // total
        if part != told:
            told = part
            note(f"{what}: {done:,} of {total:,}, {(time.monotonic() - begin) / 60:.1f} min")

    return show


def print_tables(
    tables: dict[str, pd.DataFrame], what: str, format: Format, jobs: Sequence[Workload] = ()
) -> None:
    """Print a table of each trace, which says what; JSON tells of the jobs, if they are known."""
    from hpcgym.schedule.provenance import provenance_of_workloads

    rows = [
        {"workload": trace, **{str(column): value for column, value in row.items()}}
        for trace, table in tables.items()
        for row in table.to_dict("records")
    ]
    if format is Format.json:
        output.print_json({"rows": rows, KEY: provenance_of_workloads(jobs)})
    elif format is Format.csv:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        output.print_csv({key: row.get(key) for key in columns} for row in rows)
    else:
        out = output.console()
        for trace, table in tables.items():
            out.print(_rich(f"{trace}: {what}", table))


def _rich(heading: str, table: pd.DataFrame) -> Any:
    """Return a table for people; what the paper has nothing of is left out."""
    from rich.table import Table

    shown = Table(title=heading, title_justify="left", title_style="bold")
    table = table.dropna(axis="columns", how="all")
    for column in table.columns:
        number = table[column].dtype.kind in "if"
        shown.add_column(str(column), justify="right" if number else "left")
    for row in table.itertuples(index=False):
        cells = zip(table.columns, row, strict=True)
        shown.add_row(*(_text(str(column), value) for column, value in cells))
    return shown


def _text(column: str, value: Any) -> str:
    """Return a value for people."""
    if isinstance(value, str):
        return value
    if value != value:  # the paper has no such value
        return ""
    if "/" in column:
        return f"{value:.3f}"
    return f"{value:+.1f}" if "%" in column else f"{value:,.2f}"


# --- The studies ----------------------------------------------------------------------------------


@study(
    "mixed-policies",
    {"Readings of the paper (--reading)": _meanings("mixed_policies.study", "READINGS")},
)
def mixed_policies(
    *,
    workload: list[str] | None = None,
    folder: FolderOption = Path("mixed-policies"),
    reading: str = "numbers",
    quick: bool = False,
    how: Running,
) -> None:
    """Study mixed policies as Legrand, Trystram and Zrigui did (2018).

    It computes weekly bounded slowdowns of the twelve pure policies with and without threshold; of
    the best of a million mixed policies of each week and month, of a training half, and of the week
    before; and of XNES over three and six weights. KTH-SP2 and SDSC-SP2 take three hours of
    two cores. After an interruption, the same command goes on. The long part, all vectors on each
    week, runs as tasks of the executor, whose workers must all see the folder.

    Experiment
    ----------
    reading text|numbers : How the paper is read; the pure policies are simulated both ways.

    Examples
    --------
    hpcgym reproduce mixed-policies --quick
    hpcgym reproduce mixed-policies --workload KTH-SP2
    hpcgym reproduce mixed-policies --reading text --output as-written
    mpiexec -n 9 hpcgym reproduce mixed-policies --executor mpi    # 8 workers
    hpcgym reproduce mixed-policies --workload trace.swf.gz --format csv > sums.csv
    """
    from hpcgym.benchmarks.mixed_policies.run import reproduce as run

    how.become_mpi()
    sources = _each(workload, lambda: at_hand(TRACES))
    path, findings = how.done(run, sources, folder, reading=reading, quick=quick)
    chosen = [found for found in findings if found.study.reading.name == reading]
    tables = {found.study.trace: found.tables["split"] for found in chosen}
    how.show(path, tables, "sums of weekly mean BSLD")


@study("prediction")
def prediction(
    *,
    workload: list[str] | None = None,
    folder: FolderOption = Path("prediction"),
    published: Annotated[Path | None, typer.Option(envvar="HPCGYM_PUBLISHED")] = None,
    full: bool = False,
    quick: bool = False,
    how: Running,
) -> None:
    """Study run time prediction as Gaussier, Glesser, Reis and Trystram did (2015, 2016).

    It simulates EASY with predicted run times: by request, AVE2 and regressions that learn on-line
    under 20 losses, with three corrections, and backfilling by arrival or shortest first. Tables
    show the thesis's values beside ours. After an interruption, the same command goes on.

    Experiment
    ----------
    published FOLDER : Folder with the original results, glesser-ch7-TRACE.csv.gz. [default: only
        what the thesis prints]
    full : All 5,772 configurations of the original results: hours.

    Examples
    --------
    hpcgym reproduce prediction --quick
    hpcgym reproduce prediction --workload KTH-SP2 --published results
    hpcgym reproduce prediction --full --executor dask:tcp://node1:8786
    mpiexec -n 9 hpcgym reproduce prediction --executor mpi    # 8 workers
    hpcgym reproduce prediction --workload trace.swf.gz --format csv > overview.csv
    """
    from hpcgym.benchmarks.prediction.run import reproduce as run

    how.become_mpi()
    sources = _each(workload, lambda: at_hand((*TRACES, "CEA-Curie", "MetaCentrum")))
    rules = {"published": published, "full": full, "quick": quick}
    path, tables = how.done(run, sources, folder, **rules)
    how.show(path, _by(tables["7.6"], "trace"), "mean BSLD (table 7.6)")


def _dispatchers() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.cp.configurations import DISPATCHERS, MACHINES

    return [
        (one, f"on {', '.join(name for name, of in MACHINES.items() if one in of.dispatchers)}")
        for one in DISPATCHERS
    ]


def _machines() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.cp.configurations import MACHINES

    return [(name, f"with {machine.what}") for name, machine in MACHINES.items()]


@study("cp", {"Machines (--machine)": _machines, "Dispatchers (--dispatcher)": _dispatchers})
def cp(
    *,
    machine: list[str] | None = None,
    dispatcher: list[str] | None = None,
    folder: FolderOption = Path("cp"),
    days: float | None = None,
    full: bool = False,
    quick: bool = False,
    how: Running,
) -> None:
    """Study CP dispatchers as Remediani (2017) and Galleguillos, Kiziltan and Soto did (2020).

    It compares heuristics and EASY with CPH-0 to 3, pure CP 0 to 3, HCP'19, PCP'19 and PCP'20, by
    requested, predicted and real run times: slowdown, waits, queues, times of a dispatch, sizes of
    the models, beside the published values. It takes about an hour on two cores, and the same
    command goes on after an interruption. --quick has the heuristics on Eurora, which need no
    OR-Tools.

    Experiment
    ----------
    machine NAME : A machine of the list below; several times for several. [default: all whose
        workloads are on this machine]
    dispatcher NAME : A dispatcher of the list below; several times for several. Tables and pictures
        show only these; those of others are removed, but their outcomes are kept. [default: all]
    days N : How many days a run has; generated workloads of three seeds. [default: 0.4 of Eurora,
        3.5 of KIT, 5 of KTH-SP2]
    full : A month of Eurora and KTH-SP2, a week of KIT, one seed: hours.

    Examples
    --------
    hpcgym reproduce cp --quick
    hpcgym reproduce cp
    hpcgym reproduce cp --machine eurora --days 7
    hpcgym reproduce cp --machine eurora --dispatcher easy --dispatcher pcp20
    hpcgym reproduce cp --full --executor dask:tcp://node1:8786
    mpiexec -n 9 hpcgym reproduce cp --executor mpi    # 8 workers
    hpcgym reproduce cp --machine kit-forhlr-ii --format csv > slowdowns.csv
    """
    from hpcgym.benchmarks.cp.configurations import QUICK_MACHINES
    from hpcgym.benchmarks.cp.run import reproduce as run

    how.become_mpi()
    chosen = tuple(dict.fromkeys(dispatcher or ()))
    usual = QUICK_MACHINES if quick and not chosen else _with_workloads(chosen)
    names = _each(machine, lambda: usual)
    rules = {"days": days, "full": full, "quick": quick, "dispatchers": chosen}
    path, tables = how.done(run, names, folder, **rules)
    how.show(path, tables, "slowdown by class of jobs")


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


@study(
    "powercap",
    {
        "Requested times of the substitute, all of which are simulated": _meanings(
            "energy.powercap", "REQUESTS"
        ),
        "What caps are shares of, likewise where anything stands above nodes": _meanings(
            "energy.powercap", "CAPPED"
        ),
    },
)
def powercap(
    *,
    workload: list[str] | None = None,
    cluster: str = "curie",
    seeds: int = 10,
    folder: FolderOption = Path("powercap"),
    quick: bool = False,
    how: Running,
) -> None:
    """Study power caps as Georgiou, Glesser and Trystram did (2015).

    A cap of 80, 60 or 40 % holds for an hour in the middle of intervals of an overloaded machine.
    SHUT, DVFS, MIX or idle nodes keep it. The study has energy, launched jobs and work (figure
    4.6), nodes and power over time (4.4, 4.5), and switching off or slowing down (table 4.3). It
    takes some minutes of two cores. After an interruption, the same command goes on.

    Workload
    --------
    workload WORKLOAD : A trace of the archive, a file or a generator in place of the substitute;
        several times for several. [default: a generated substitute for the trace of Curie]

    Machine
    -------
    cluster NAME|FILE : The machine: nodes that are all alike, with a power (hpcgym machines).

    Experiment
    ----------
    seeds N : How many substitutes are generated.

    Examples
    --------
    hpcgym reproduce powercap --quick
    hpcgym reproduce powercap
    hpcgym reproduce powercap --workload curie.swf.gz --output curie
    hpcgym reproduce powercap --workload lublin:jobs=20000,processors=192,load=1.2 --cluster
        machine.toml
    """
    from hpcgym.benchmarks.energy.powercap_run import reproduce as run

    how.become_mpi()
    sources = _each(workload, list)
    rules = {"cluster": cluster, "seeds": seeds, "quick": quick}
    path, tables = how.done(run, sources, folder, **rules)
    parts = _by(tables["4.6"], "trace", "requests", name="{}, requested times {}")
    how.show(path, parts, "energy, launched jobs and work (figure 4.6)")


#: Traces of chapter 5, then those that stand for them, and a generated one where none is at hand.
BUDGET_TRACES = ("CEA-Curie", "MetaCentrum", "SDSC-BLUE", "KTH-SP2", "SDSC-SP2", "CTC-SP2")
BUDGET_GENERATED = "lublin:jobs=80000,processors=256,seed=0,load=0.9"


@study(
    "energy-budget",
    {"Readings of the text, all of which are simulated": _meanings("energy.budget", "READINGS")},
)
def energy_budget(
    *,
    workload: list[str] | None = None,
    weeks: int | None = None,
    seed: int = 0,
    folder: FolderOption = Path("energy-budget"),
    quick: bool = False,
    how: Running,
) -> None:
    """Study energy budgets as Dutot, Georgiou, Glesser and others did (2017).

    Budgets of 100 to 30 % hold for three days of busy weeks. powercap, reducePC and energyBud keep
    them, with idle processors on or switched off. The study has utilization, AVEbsld and energy
    beside EASY's (figures 5.1 to 5.3), and what switching off changes (table 5.1). It takes some
    minutes of two cores, and half an hour of one for each week of CEA-Curie with its 80,640
    processors. After an interruption, the same command goes on.

    Workload
    --------
    workload WORKLOAD : A trace of the archive, a file or a generator; several times for several.
        [default: traces of the thesis and others on this machine, and a generated one]

    Experiment
    ----------
    weeks N : Number of busy weeks of each trace, drawn at random; the thesis has five. [default:
        all of the upper quarter by the log]
    seed N : Seed of the draw of weeks.

    Examples
    --------
    hpcgym reproduce energy-budget --quick
    hpcgym reproduce energy-budget --weeks 5 --seed 1    # five weeks of each trace, drawn
    hpcgym reproduce energy-budget --workload trace.swf.gz --format csv > figures.csv
    """
    from hpcgym.benchmarks.energy.budget_run import reproduce as run

    how.become_mpi()
    sources = _each(workload, _for_budgets)
    path, tables = how.done(run, sources, folder, weeks=weeks, seed=seed, quick=quick)
    how.show(path, _by(tables["figures"], "trace"), "beside EASY's (figures 5.1 to 5.3)")


def _for_budgets() -> list[str]:
    """Return the traces that are on this machine, and the generated one."""
    try:
        return [*at_hand(BUDGET_TRACES), BUDGET_GENERATED]
    except HpcgymError:  # none is
        return [BUDGET_GENERATED]


@study(
    "energy-fairshare",
    {"Readings of the text, all of which are simulated": _meanings("energy.shares", "READINGS")},
)
def energy_fairshare(
    *,
    workload: list[str] | None = None,
    folder: FolderOption = Path("energy-fairshare"),
    quick: bool = False,
    how: Running,
) -> None:
    """Study energy fair share as Georgiou, Glesser, Rzadca and Trystram did (2015).

    Each of the 20 users with the most jobs saves 30 % of the energy, or wastes it, under EFS and
    FS+EFS (table 6.1). A second experiment has three users of Light-ESP (figures 6.2 and 6.3).
    SDSC-SP2 takes two minutes of two cores. After an interruption, the same command goes on.

    Examples
    --------
    hpcgym reproduce energy-fairshare --quick
    hpcgym reproduce energy-fairshare --workload SDSC-SP2
    hpcgym reproduce energy-fairshare --workload trace.swf.gz --format csv > users.csv
    """
    from hpcgym.benchmarks.energy.shares_run import reproduce as run

    how.become_mpi()
    # those of table 6.1
    sources = _each(workload, lambda: at_hand(("SDSC-SP2", "PIK-IPLEX", "CEA-Curie")))
    path, tables = how.done(run, sources, folder, quick=quick)
    how.show(path, _by(tables["6.1"], "trace"), "stretch over that under FS (table 6.1)")


@study(
    "coscheduling",
    {
        "Readings of the document, all of which are simulated": _meanings(
            "coscheduling.runs", "READINGS"
        )
    },
)
def coscheduling(
    *,
    speedups_file: Path | None = None,
    heatmaps: int = 20,
    shuffles: int = 100,
    folder: FolderOption = Path("coscheduling"),
    quick: bool = False,
    how: Running,
) -> None:
    """Study co-scheduling as Karapanagiotis, Triantafyllis and others did (ELiSE).

    It compares makespans of co-schedulers with EASY's: by mean speedup of pairs, under several
    readings of the document; by mix of process counts; and over shuffles of measured codes, with
    what they correlate with. It also measures simulated days an hour. It takes some minutes of two
    cores. After an interruption, the same command goes on.

    Experiment
    ----------
    speedups_file FILE : Measured speedups of codes with their processes and run times, as ELiSE's.
        [default: lm-aris.compute-NAS.json of HPCGYM_DATA; without it parts are left out]
    heatmaps N : Generated heatmaps of each mean and reading.
    shuffles N : Shuffles of each set of measured codes.

    Examples
    --------
    hpcgym reproduce coscheduling --quick
    hpcgym reproduce coscheduling --speedups-file lm-aris.compute-NAS.json
    hpcgym reproduce coscheduling --executor dask:tcp://node1:8786 --format csv > table.csv
    """
    from hpcgym.benchmarks.coscheduling.run import MEASURED_FILE, find_measured
    from hpcgym.benchmarks.coscheduling.run import reproduce as run

    how.become_mpi()
    if speedups_file is not None and not speedups_file.is_file():
        raise HpcgymError(f"--speedups-file: there is no file {speedups_file}")
    measured = find_measured() if speedups_file is None else speedups_file
    if measured is None:
        note(
            f"mixes and shuffles of measured codes are left out: there is no {MEASURED_FILE} in"
            " HPCGYM_DATA; name one with --speedups-file"
        )
    rules = {"heatmaps": heatmaps, "shuffles": shuffles, "quick": quick}
    path, tables = how.done(run, measured, folder, **rules)
    parts = {"500 jobs on 100 nodes": tables["improvements"]}
    how.show(path, parts, "makespan improvement over EASY")


@study("frontier")
def frontier(
    *,
    workload: list[str] | None = None,
    folder: FolderOption = Path("frontier"),
    quick: bool = False,
    named: bool = False,
    how: Running,
) -> None:
    """Compare all rules on whole logs: slowdowns, waits, tails, and who pays.

    The rules are orders of the queue by requested and learned run times, thresholds, hold, and
    backfilling with and without extra processors: 140 rules on each log, and two that age. Each is
    simulated from several starting weeks and with jittered submissions. One of the 140 is chosen on
    the first halves of the logs, and shown on the second. After an interruption, the same command
    goes on.

    Experiment
    ----------
    named : Only rules that have names, on each log as it is, cleaned by glesser: a minute or two
        for six logs.

    Examples
    --------
    hpcgym reproduce frontier --quick
    hpcgym reproduce frontier --named    # schedulers by name, all logs at hand
    hpcgym reproduce frontier --workload trace.swf.gz
    mpiexec -n 9 hpcgym reproduce frontier --executor mpi    # 8 workers
    """
    from hpcgym.benchmarks.frontier.run import reproduce as run

    how.become_mpi()
    traces = (*TRACES, "HPC2N", "CEA-Curie") if named else TRACES
    sources = _each(workload, lambda: at_hand(traces))
    path, tables = how.done(run, sources, folder, quick=quick, named=named)
    if named:
        print_tables({"all logs": tables["over-logs"]}, "divided by EASY's", how.format)
    how.show(path, _by(tables["named"], "log"), "whole logs")


# --- ``hpcgym reproduce items`` -------------------------------------------------------------------


@reproduce.command("items", cls=ExplainedCommand)
@grouped({"Verdicts": _meanings("studies.items", "VERDICTS")})
def items(
    results: Path = Path(),
    page: Annotated[Path | None, typer.Option("--output"), Written("page", (".md",))] = None,
    force: bool = False,
    format: Format = Format.table,
) -> None:
    """List all items of the documents with their verdicts, by what the studies have found.

    An item is a table, figure, equation or sentence with a result. Its verdict is exact, close,
    trend or not met, with the reason. The list also says what was not run yet, and by which
    command, and what the inputs do not allow. Nothing is simulated: the command reads the tables
    that the other commands have written.

    Options
    -------
    results FOLDER : Where the folders of the studies are, such as mixed-policies.

    Output
    ------
    page FILE : Write a page too, as Markdown, such as documents.md.

    Examples
    --------
    hpcgym reproduce items
    hpcgym reproduce items --results studies --output documents.md
    hpcgym reproduce items --format csv > items.csv
    """
    from hpcgym.benchmarks.studies import documents
    from hpcgym.benchmarks.studies.harness import write_text

    entries = documents.all_items(results)
    rows = documents.table_of(entries).to_dict("records")
    if page is not None:
        write_text(documents.page_text(entries, results=True), page)
    if format is Format.json:
        output.print_json({"rows": rows})
    elif format is Format.csv:
        output.print_csv({str(key): value for key, value in row.items()} for row in rows)
    else:
        _print(documents.DOCUMENTS, entries)
    note(f"{documents.counts_text(entries)} (results in {results}; --results names another folder)")
    if page is not None:
        note(f"wrote {page}")


def _print(titles: dict[str, str], entries: list[Entry]) -> None:
    """Print a table for each document."""
    from rich.table import Table

    out = output.console()
    for document, title in titles.items():
        shown = Table(title=f"{document}: {title}", title_justify="left", title_style="bold")
        for heading in ("item", "what", "verdict", "why, or the command"):
            shown.add_column(heading)
        for entry in entries:
            if entry.item.document == document:
                missing = entry.verdict.verdict in ("not run", "quick cut")
                parts = [entry.verdict.why, entry.command if missing else ""]
                why = "; ".join(part for part in parts if part)
                cells = (entry.item.place, entry.item.what, entry.verdict.verdict, why)
                shown.add_row(*cells)
        out.print(shown, markup=False)
