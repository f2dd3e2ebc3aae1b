"""``hpcgym reproduce``: published studies computed anew, and all items of their documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import click

from hpcgym.cli import names, options
from hpcgym.cli.files import Written
from hpcgym.cli.groups import Option
from hpcgym.cli.running import Commands, Lists, note
from hpcgym.cli.tables import Format, Sheet, of_frame, rows_of, show
from hpcgym.errors import HpcgymError
from hpcgym.files.recorded import KEY, write_beside
from hpcgym.progress import measuring

if TYPE_CHECKING:
    import pandas as pd


# --- What all studies share -----------------------------------------------------------------------

#: Traces of the studies that are looked for if none is named.
TRACES = ("KTH-SP2", "SDSC-SP2", "CTC-SP2", "SDSC-BLUE")


@click.group(cls=Commands)
def reproduce() -> None:
    """Compute a published study anew, and show the published values beside ours."""


@dataclass(frozen=True)
class _Placed(options.ExecutorOptions):
    """Where a study writes, and how much of it is run.

    Output
    ------
    folder FOLDER : Folder for report.md, tables (CSV and LaTeX) and pictures (PNG and PDF). Earlier
        results are kept there and not computed again. [default: the study's name]

    Experiment
    ----------
    quick : A small cut that takes seconds, to see what the study writes.
    """

    folder: Annotated[Path | None, Option("--output")] = None
    quick: bool = False
    format: Format = Format.table


@dataclass(frozen=True)
class StudyOptions(_Placed):
    """How a study is run, and how its tables are shown."""

    def study(self, name: str, asked: Study) -> None:
        """Run a study, print what is shown of what it makes, and say where its report is."""
        from hpcgym.schedule.provenance import provenance_of_workloads

        self.become_mpi()
        report, made = self._done(asked, self.folder or Path(name))
        show_frames(asked.shown(made), self.format)
        write_beside(report, provenance_of_workloads([]))
        note(f"wrote {report}, tables and pictures beside it")

    def _done(self, asked: Study, folder: Path) -> Any:
        """Run a study with a bar for each long step, lines in a log; say that it can go on."""
        from hpcgym.benchmarks.studies.harness import Folder

        current, show = "", None
        with ExitStack() as bars:

            def progress(what: str, done: int, total: int) -> None:
                nonlocal current, show
                if what != current:
                    bars.close()
                    current = what
                    show = bars.enter_context(measuring(what))
                assert show is not None
                show(done, total)

            try:
                place = Folder(folder, **self.given(), progress=progress)
                run = import_module(f"hpcgym.benchmarks.{asked.module}").reproduce
                return run(asked.given(self.quick), place, quick=self.quick, **asked.rules())
            except KeyboardInterrupt:
                bars.close()
                if folder.exists():
                    note(f"\n{folder} keeps what is done: the same command goes on")
                raise


#: What tables are of -> name -> table.
Shown = dict[str, dict[str, "pd.DataFrame"]]


class Study:
    """A study as it is asked for; its fields are options.

    Workload
    --------
    workload WORKLOAD : A trace of the archive, a file or a generator; several times for several.
        [default: those of the study's traces that are on this machine]
    """

    #: Of :mod:`hpcgym.benchmarks`: its ``reproduce`` takes what is given, a folder, and rules, and
    #: returns the report, and tables by name.
    module: ClassVar[str]
    #: What is looked for if no workload is named.
    traces: ClassVar[tuple[str, ...]] = ()
    #: What is printed: in words, the name of a table, and the columns by which it is parted.
    shows: ClassVar[tuple[str, ...]] = ()
    #: How a part is called, of the values of these columns.
    part_name: ClassVar[str] = "{}"

    def given(self, quick: bool) -> Any:
        """Return the workloads that were named, each once, or else the usual ones."""
        return list(dict.fromkeys(vars(self)["workload"] or self.usual()))

    def usual(self) -> list[str]:
        """Return the workloads if none is named."""
        return at_hand(self.traces)

    def rules(self) -> dict[str, Any]:
        """Return what the study takes beside what is given."""
        return {name: value for name, value in vars(self).items() if name != "workload"}

    def shown(self, made: Any) -> Shown:
        """Return what is printed of what was made."""
        what, table, *columns = self.shows
        return {what: _by(made[table], *columns, named=self.part_name)}


def study(name: str, lists: Lists | None = None) -> Callable[[type[Study]], type[Study]]:
    """Return what makes a command of a class of that name, by lists for its help."""
    listed = {**(lists or {}), "Executors (--executor)": names.executors}

    def made(kind: type[Study]) -> type[Study]:
        def command(*, asked: Study, how: StudyOptions) -> None:
            how.study(name, asked)

        command.__doc__ = kind.__doc__
        command.__annotations__["asked"] = dataclass(frozen=True)(kind)
        reproduce.command(name, lists=listed)(command)
        return kind

    return made


def at_hand(traces: Sequence[str]) -> list[str]:
    """Return those of the study's traces that need not be fetched."""
    from hpcgym.workload.archive import find

    names = [name for name in traces if find(name) is not None]
    if not names:
        raise HpcgymError(
            "none of the study's traces is on this machine: hpcgym traces fetch"
            f" {' '.join(traces[:2])}, or name a workload with --workload"
        )
    return names


def _by(table: pd.DataFrame, *columns: str, named: str = "{}") -> dict[str, pd.DataFrame]:
    """Return a table for each of the values of some columns, which are left out and name it."""
    parts = table.groupby(list(columns), sort=False)
    return {named.format(*of): part.drop(columns=list(columns)) for of, part in parts}


def show_frames(shown: Shown, format: Format) -> None:
    """Print the tables of a study."""
    from hpcgym.schedule.provenance import provenance_of_workloads

    named = [
        (what, *trace_and_frame)
        for what, tables in shown.items()
        for trace_and_frame in tables.items()
    ]
    rows = [{"workload": trace, **row} for _, trace, frame in named for row in rows_of(frame)]
    show(
        format,
        lambda: Sheet([], [of_frame(frame, f"{trace}: {what}") for what, trace, frame in named]),
        lambda: rows,
        lambda: {"rows": rows, KEY: provenance_of_workloads([])},
    )


# --- The studies ----------------------------------------------------------------------------------


def _in(module: str, table: str) -> Callable[[], list[tuple[str, str]]]:
    """Return what lists the names in a table of a study with their meanings."""
    return names.named(f"hpcgym.benchmarks.{module}", table)


@study(
    "mixed-policies", {"Readings of the paper (--reading)": _in("mixed_policies.study", "READINGS")}
)
class MixedPolicies(Study):
    """Study mixed policies as Legrand, Trystram and Zrigui did (2018).

    It computes weekly bounded slowdowns of the twelve pure policies with and without threshold; of
    the best of a million mixed policies of each week and month, of a training half, and of the week
    before; and of XNES over three and six weights. Its four traces take ten hours of computing,
    or half an hour with 34 points. After an interruption, the same command goes on. The long part,
    all vectors on each week, runs as tasks of the executor, whose workers must all see the folder.

    Experiment
    ----------
    reading text|numbers : How the paper is read; the pure policies are simulated both ways.
    points N : Values of each of three weights, evenly from -1 to 1; the paper has 100. All
        vectors of 34 are among those of 100.

    Examples
    --------
    hpcgym reproduce mixed-policies --quick
    hpcgym reproduce mixed-policies --workload KTH-SP2 --points 34
    hpcgym reproduce mixed-policies --reading text --output as-written
    mpiexec -n 9 hpcgym reproduce mixed-policies --executor mpi    # 8 workers
    hpcgym reproduce mixed-policies --workload trace.swf.gz --format csv > sums.csv
    """

    module = "mixed_policies.run"
    traces = TRACES
    workload: list[str] | None = None
    reading: str = "numbers"
    points: int = 100

    def shown(self, made: Any) -> Shown:
        """Return the sums of the reading that was asked for."""
        chosen = [
            reproduced for reproduced in made if reproduced.study.reading.name == self.reading
        ]
        tables = {reproduced.study.trace: reproduced.tables["split"] for reproduced in chosen}
        return {"sums of weekly mean BSLD": tables}


@study("prediction")
class Prediction(Study):
    """Study run time prediction as Gaussier, Glesser, Reis and Trystram did (2015, 2016).

    It simulates EASY with predicted run times: by request, AVE2 and regressions that learn on-line
    under 20 losses, with three corrections, and backfilling by arrival or shortest first. Tables
    show the thesis's values beside ours. After an interruption, the same command goes on.

    Experiment
    ----------
    published FOLDER : The original results: a checkout of predictsim, the authors' repository, or
        tables made of it (glesser-ch7-TRACE.csv.gz). [default: only what the thesis prints]

    Examples
    --------
    hpcgym reproduce prediction --quick
    hpcgym reproduce prediction --workload KTH-SP2 --published predictsim
    hpcgym reproduce prediction --executor dask:tcp://node1:8786
    mpiexec -n 9 hpcgym reproduce prediction --executor mpi    # 8 workers
    hpcgym reproduce prediction --workload trace.swf.gz --format csv > overview.csv
    """

    module = "prediction.run"
    traces = (*TRACES, "CEA-Curie")
    shows = ("mean BSLD (table 7.6)", "7.6", "trace")
    workload: list[str] | None = None
    published: Annotated[Path | None, Option(envvar="HPCGYM_PUBLISHED")] = None


def _dispatchers() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.cp.runs import DISPATCHERS, MACHINES

    machines = {
        dispatcher: [name for name, of in MACHINES.items() if dispatcher in of.dispatchers]
        for dispatcher in DISPATCHERS
    }
    return [(dispatcher, f"on {', '.join(names)}") for dispatcher, names in machines.items()]


def _machines() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.cp.runs import MACHINES

    return [(name, f"with {machine.what}") for name, machine in MACHINES.items()]


@study("cp", {"Machines (--machine)": _machines, "Dispatchers (--dispatcher)": _dispatchers})
class Cp(Study):
    """Study CP dispatchers as Remediani (2017) and Galleguillos, Kiziltan and Soto did (2020).

    It compares heuristics and EASY with CPH-0 to 3, pure CP 0 to 3, HCP'19, PCP'19 and PCP'20, by
    requested, predicted and real run times: slowdown, waits, queues, times of a dispatch, sizes of
    the models, beside the published values; sentences of the first are judged by intervals over
    seeds. It takes some hours on two cores, and the same command goes on after an interruption.
    --quick has the lists on Eurora, which need no OR-Tools.

    Experiment
    ----------
    machine NAME : A machine of the list below; several times for several. [default: all]
    dispatcher NAME : A dispatcher of the list below; several times for several. Tables and pictures
        show only these; those of others are removed, but their outcomes are kept. [default: all]
    days N : How many days the jobs of each seed come in, before the load stretches them.
        [default: 10 of eurora, 2 of eurora-cph, 0.4 of the others of Eurora, 3.5 of KIT]
    seeds N : How many workloads are generated. [default: 20 of eurora, 12 of eurora-cph, 8 of
        eurora-cp and eurora-later, 5 of KIT]

    Examples
    --------
    hpcgym reproduce cp --quick
    hpcgym reproduce cp
    hpcgym reproduce cp --machine eurora-cph --seeds 3
    hpcgym reproduce cp --machine eurora-later --dispatcher prb --dispatcher pcp20
    hpcgym reproduce cp --executor dask:tcp://node1:8786
    mpiexec -n 9 hpcgym reproduce cp --executor mpi    # 8 workers
    hpcgym reproduce cp --machine kit-forhlr-ii --format csv > slowdowns.csv
    """

    module = "cp.run"
    machine: list[str] | None = None
    dispatcher: list[str] | None = None
    days: float | None = None
    seeds: int | None = None

    def given(self, quick: bool) -> Any:
        """Return the machines that were named, or those on which the dispatchers run."""
        from hpcgym.benchmarks.cp.runs import MACHINES

        if self.machine:
            return list(dict.fromkeys(self.machine))
        asked = set(self.dispatcher or ())
        if quick and not asked:
            return ["eurora"]
        run = [name for name, of in MACHINES.items() if not asked or asked & set(of.dispatchers)]
        return run or list(MACHINES)  # of none it is said what is wrong with the names

    def rules(self) -> dict[str, Any]:
        """Return how long the runs are, on how many seeds, and of which dispatchers."""
        dispatchers = tuple(dict.fromkeys(self.dispatcher or ()))
        return {"days": self.days, "seeds": self.seeds, "dispatchers": dispatchers}

    def shown(self, made: Any) -> Shown:
        """Return the tables of all machines."""
        return {"slowdown by class of jobs": made}


@study("powercap", {"Beginnings, all of which are simulated": _in("energy.powercap", "STARTS")})
class Powercap(Study):
    """Study power caps as Georgiou, Glesser and Trystram did (2015).

    A cap of 80, 60 or 40 % holds for an hour in the middle of intervals in which a log is
    overloaded. SHUT, DVFS, MIX or idle nodes keep it. The study has energy, launched jobs and work
    (figure 4.6), nodes and power over time (4.4, 4.5), switching off or slowing down (table 4.3),
    and the watts of Curie (section 4.5). It takes some minutes. After an interruption, the same
    command goes on.

    Machine
    -------
    cluster NAME|FILE : The machine: nodes that are all alike, with a power (hpcgym machines).

    Experiment
    ----------
    number N : How many intervals of each kind are simulated, at most.

    Examples
    --------
    hpcgym reproduce powercap --quick
    hpcgym reproduce powercap
    hpcgym reproduce powercap --workload lublin:jobs=20000,processors=192,load=1.2 --cluster
        machine.toml
    """

    module = "energy.powercap_run"
    traces = ("CEA-Curie",)
    shows = ("energy, launched jobs and work (figure 4.6)", "4.6", "trace", "begins")
    part_name = "{}, {}"
    workload: list[str] | None = None
    cluster: str = "curie"
    number: int = 10


@study("energy-budget")
class EnergyBudgetStudy(Study):
    """Study energy budgets as Dutot, Georgiou, Glesser and others did (2017).

    Budgets of 100 to 30 % hold for three days of busy weeks. powercap, reducePC and energyBud keep
    them, with free processors on or switched off. The study has utilization, AVEbsld and energy
    beside EASY's (figures 5.1 to 5.3), and what switching off changes (table 5.1). Its thirty weeks
    are the authors'. A week of Curie, with its 80,640 processors, takes minutes. After an
    interruption, the same command goes on.

    Workload
    --------
    workload WORKLOAD : A week of jobs: what comes in the first seven days. May be repeated.
    weeks_of FOLDER : The authors' weeks: a clone of https://github.com/glesserd/energybudget-expe

    Examples
    --------
    hpcgym reproduce energy-budget --weeks-of energybudget-expe
    hpcgym reproduce energy-budget --quick --workload lublin:jobs=2000,processors=64
    """

    module = "energy.budget_run"
    shows = ("beside EASY's (figures 5.1 to 5.3)", "figures", "trace")
    workload: list[str] | None = None
    weeks_of: Path | None = None

    def usual(self) -> list[str]:
        """Return the files of the authors' weeks."""
        folder = self.weeks_of
        files = [] if folder is None else sorted(folder.rglob("*_1w_*.json"))
        if not files:
            where = "weeks are needed" if folder is None else f"{folder} has no weeks"
            raise HpcgymError(
                f"{where}: clone https://github.com/glesserd/energybudget-expe, and name its folder"
                " with --weeks-of; or name weeks with --workload"
            )
        return [str(path) for path in files]

    def rules(self) -> dict[str, Any]:
        """Return nothing: what is given is all."""
        return {}


@study(
    "energy-fairshare",
    {"Readings of the text, all of which are simulated": _in("energy.shares", "READINGS")},
)
class EnergyFairshare(Study):
    """Study energy fair share as Georgiou, Glesser, Rzadca and Trystram did (2015).

    Each of the 20 users with the most jobs saves 30 % of the energy, or wastes it, under EFS and
    FS+EFS (table 6.1). A second experiment has three users of Light-ESP (figures 6.2 and 6.3).
    SDSC-SP2 and CEA-Curie take six minutes of a core. After an interruption, the same command goes
    on.

    Examples
    --------
    hpcgym reproduce energy-fairshare --quick
    hpcgym reproduce energy-fairshare --workload SDSC-SP2
    hpcgym reproduce energy-fairshare --workload trace.swf.gz --format csv > users.csv
    """

    module = "energy.shares_run"
    traces = ("SDSC-SP2", "PIK-IPLEX", "CEA-Curie")  # those of table 6.1
    shows = ("stretch over that under FS (table 6.1)", "6.1", "trace")
    workload: list[str] | None = None


@study(
    "coscheduling",
    {"Readings of the document, all of which are simulated": _in("coscheduling.runs", "READINGS")},
)
class Coscheduling(Study):
    """Study co-scheduling as Karapanagiotis, Triantafyllis and others did (ELiSE).

    It compares makespans of co-schedulers with EASY's: by mean speedup of pairs, under several
    readings of the document, and by mix of process counts. It also measures simulated days an
    hour. It takes a minute of one core. After an interruption, the same command goes on.

    Experiment
    ----------
    speedups_file FILE : Measured speedups of codes with their processes and run times, as ELiSE's.
        [default: lm-aris.compute-NAS.json of HPCGYM_DATA; without it parts are left out]
    heatmaps N : Parts of the printed heatmap for each mean, at most.

    Examples
    --------
    hpcgym reproduce coscheduling --quick
    hpcgym reproduce coscheduling --speedups-file lm-aris.compute-NAS.json
    hpcgym reproduce coscheduling --executor dask:tcp://node1:8786 --format csv > table.csv
    """

    module = "coscheduling.run"
    speedups_file: Path | None = None
    heatmaps: int = 12

    def given(self, quick: bool) -> Any:
        """Return the file of measured speedups, if there is one."""
        from hpcgym.benchmarks.coscheduling.run import MEASURED_FILE, find_measured

        if self.speedups_file is not None and not self.speedups_file.exists():
            raise HpcgymError(f"--speedups-file: there is no file {self.speedups_file}")
        measured = find_measured() if self.speedups_file is None else self.speedups_file
        if measured is None:
            note(
                f"mixes of process counts are left out: there is no {MEASURED_FILE} in HPCGYM_DATA;"
                " name one with --speedups-file"
            )
        return measured

    def rules(self) -> dict[str, Any]:
        """Return how many parts of the heatmap there are for each mean."""
        return {"heatmaps": self.heatmaps}

    def shown(self, made: Any) -> Shown:
        """Return the improvements."""
        parts = {"500 jobs on 100 nodes": made["improvements"]}
        return {"makespan improvement over EASY": parts}


@study("frontier")
class Frontier(Study):
    """Compare all rules on whole logs: slowdowns, waits, tails, and who pays.

    The rules are orders of the queue by requested and learned run times, thresholds, hold, and
    backfilling with and without extra processors: 140 rules on each log, and five beside them. Each
    is simulated from several starting weeks and with jittered submissions. One of the 140 is chosen
    on the first halves of the logs, and shown on the second. After an interruption, the same
    command goes on.

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

    module = "frontier.run"
    workload: list[str] | None = None
    named: bool = False

    def usual(self) -> list[str]:
        """Return the traces that are here: more of them, if only named rules are run."""
        return at_hand((*TRACES, "HPC2N", "CEA-Curie") if self.named else TRACES)

    def shown(self, made: Any) -> Shown:
        """Return what named rules reach, on each log and over all."""
        of_all: Shown = {}
        if self.named:
            gained = made["gains-late"].drop(columns="breaks the gate")
            of_all = {
                "divided by EASY's": {"all logs": made["over-logs"]},
                "gained on EASY's over weeks of the late parts": {"all logs": gained},
            }
        return of_all | {"whole logs": _by(made["named"], "log")}


@study("rlscheduler")
class RlScheduler(Study):
    """Play the networks that RLScheduler (SC 2020) has published: by its rules and by ours.

    If you have their repository, name its folder of networks, trained_models/bsld; hpcgym ships
    none of them. Each plays its log by its best actions and by drawn ones: the ten sequences of
    their table, sequences of later jobs, and the whole log, beside FCFS, SJF, F1, SAF and EASY.
    The logs are Lublin-1, SDSC-SP2, HPC2N and Lublin-2, as far as they are on this machine. It
    takes some minutes of two cores. After an interruption, the same command goes on.

    Experiment
    ----------
    models FOLDER : Their folder trained_models/bsld.

    Examples
    --------
    hpcgym reproduce rlscheduler --models deep-batch-scheduler/trained_models/bsld
    hpcgym reproduce rlscheduler --models trained_models/bsld --quick
    """

    module = "rlscheduler.run"
    models: Path | None = None

    def given(self, quick: bool) -> Path:
        """Return the folder of the networks."""
        if self.models is None:
            raise HpcgymError(
                "--models: name the folder trained_models/bsld of DIR-LAB/deep-batch-scheduler"
            )
        return self.models

    def rules(self) -> dict[str, Any]:
        """Return nothing: the networks are what is given."""
        return {}

    def shown(self, made: Any) -> Shown:
        """Return the tables of the report."""
        tables = {name: of for name, of in made.items() if name not in ("played", "means")}
        return {"mean bounded slowdown": tables}


# --- ``hpcgym reproduce sample`` ------------------------------------------------------------------


@reproduce.command("sample")
def sample(
    folder: Annotated[Path, Option("--output")] = Path("sample"),
    format: Format = Format.table,
) -> None:
    """Compute the cheapest result of each of the five documents, and judge it: some minutes.

    Each is a part of its study, by the command that is printed before it; studies need real traces,
    as "hpcgym traces fetch KTH-SP2 CEA-Curie" has them, OR-Tools and matplotlib. What cannot be run
    is said, and the exit code is then 1. After an interruption, the same command goes on.

    Output
    ------
    folder FOLDER : Folder with a folder for each document, as the studies write them.

    Examples
    --------
    hpcgym reproduce sample
    """
    from hpcgym.benchmarks.studies import documents
    from hpcgym.benchmarks.studies.items import SAMPLE

    judged, failed = [], False
    for document, cheapest in SAMPLE.items():
        item, study, options = (cheapest[name] for name in ("item", "study", "options"))
        results = folder / document.partition(" ")[0].lower()
        note(f"\n{document}, {item}: hpcgym reproduce {study} {options}")
        try:
            words = [*options.split(), "--output", str(results / study)]
            reproduce.commands[study].main(words, standalone_mode=False)
        except HpcgymError as error:
            note(f"{document} is left out: {error}")
            failed = True
            continue
        entries = documents.all_items(results)
        judged += [e for e in entries if (e.document, e.place) == (document, item)]
    table = documents.table_of(judged).drop(columns=["computed", "published"])
    rows = rows_of(table)
    show(format, lambda: Sheet([], [of_frame(table)]), lambda: rows, lambda: {"rows": rows})
    if failed:
        raise click.exceptions.Exit(1)


# --- ``hpcgym reproduce items`` -------------------------------------------------------------------


@reproduce.command(
    "items", lists={"Verdicts": names.named("hpcgym.benchmarks.studies.items", "VERDICTS")}
)
def items(
    results: Path | None = None,
    page: Annotated[Path | None, Option("--output"), Written("page", (".md",))] = None,
    force: bool = False,
    format: Format = Format.table,
) -> None:
    """List all items of the documents with their verdicts.

    An item is a table, figure, equation or sentence with a result. Its verdict is exact, close,
    trend or not met, with the reason. The list also says what was not run yet, and by which
    command, and what the inputs do not allow. Nothing is simulated: the verdicts are those recorded
    when hpcgym's authors last ran the studies, or of tables that the other commands have written
    for you.

    Options
    -------
    results FOLDER : Judge your own results: the folder that holds the folders of the studies, such
        as mixed-policies.

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
    from hpcgym.benchmarks.studies.items import DOCUMENTS

    entries = documents.all_items(results)
    table = documents.table_of(entries)
    rows = rows_of(table)
    if page is not None:
        write_text(documents.page_text(entries, results=results is not None), page)

    def sheet() -> Sheet:
        missing = table["verdict"].isin(["not run", "quick cut"])
        why = table["why"].where(~missing, table["why"] + "; " + table["command"]).str.strip("; ")
        shown = table.assign(**{"why, or the command": why})
        columns = ["item", "what", "verdict", "why, or the command"]
        return Sheet(
            [],
            [
                of_frame(part[columns], f"{document}: {DOCUMENTS[str(document)]}")
                for document, part in shown.groupby("document", sort=False)
            ],
        )

    show(format, sheet, lambda: rows, lambda: {"rows": rows})
    source = (
        "recorded; --results FOLDER judges yours" if results is None else f"results in {results}"
    )
    note(f"{documents.counts_text(entries)} ({source})")
    if page is not None:
        note(f"wrote {page}")
