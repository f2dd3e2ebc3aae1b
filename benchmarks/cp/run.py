"""The whole study: runs on every machine, the same instances, growth; tables, pictures, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp import instances, simulations, tables
from hpcgym.benchmarks.cp.configurations import DISPATCHERS, HEURISTICS, MACHINES, SOLVERS, model_of
from hpcgym.benchmarks.cp.published import ABOUT, JOBS, MONTHS, SECONDS_BETWEEN, VARIABLES_BELOW
from hpcgym.benchmarks.studies.harness import Folder, folder_name, write_csv
from hpcgym.benchmarks.studies.tables import quick_note, read_texts, table_sections
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# --- The report -----------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, _TEXTS = read_texts(
    __file__,
    about=ABOUT,
    below=VARIABLES_BELOW,
    least=SECONDS_BETWEEN[0],
    most=SECONDS_BETWEEN[1],
)
#: The tables of all machines.
COMMON = {
    name: _TEXTS.pop(name) for name in ("sizes", "hints", "by-nodes", "by-queued", "known-best")
}


def report_text(
    findings: Sequence[simulations.Findings],
    made: Mapping[str, Mapping[str, pd.DataFrame]],
    common: Mapping[str, pd.DataFrame],
    pictures: Mapping[str, Path],
    quick: bool,
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    findings : of each machine, with its pictures.
    made : machine -> its tables by name.
    common : tables of all machines by name.
    pictures : heading -> file, of all machines.
    quick : whether this is a small cut.
    """
    months = " and ".join(map(str, sorted(MONTHS.values()))) + " months"
    parts = [HEAD.format(version=__version__, months=months)]
    if quick:
        parts += quick_note("few days")
    parts.append(_loads(findings))
    for found in findings:
        parts.append(f"## {found.machine}\n")
        parts += table_sections(made[found.machine], _TEXTS, "###")
        parts += _pictures(found.pictures)
    parts += table_sections(common, COMMON)
    parts += _pictures(pictures)
    return "\n".join(parts)


def _pictures(pictures: Mapping[str, Path]) -> list[str]:
    return [
        f"{heading}:\n\n![{heading}]({file.as_posix()})\n" for heading, file in pictures.items()
    ]


def _loads(findings: Sequence[simulations.Findings]) -> str:
    """Say what was simulated on which machine, and what the published logs have."""
    lines = []
    only = findings[0].load.dispatchers if findings else ()
    if only:
        lines.append(f"As asked for, of these dispatchers alone: {', '.join(only)}.\n")
    for found in findings:
        load = found.load
        line = (
            f"- {found.machine}: {load.cluster.nodes:,} nodes, {load.cluster.processors:,} cores;"
            f" {sum(map(len, load.workloads)):,} jobs of {load.days:g} days"
            f" ({'; '.join(load.sources)})"
        )
        if found.machine in JOBS:
            line += f"; the published log has {JOBS[found.machine]:,}"
        lines.append(line + ".")
        if load.left_out:
            names = ", ".join(map(str, load.left_out))
            lines.append(f"  Left to `--full`, for time: {names}.")
    return "\n".join(lines) + "\n"


# --- The whole study ------------------------------------------------------------------------------

#: Name of a table of one machine -> what makes it.
TABLES: dict[str, Callable[[simulations.Findings], pd.DataFrame]] = {
    "slowdown": tables.slowdowns,
    "gains": tables.gains,
    "wait": tables.waits,
    "queue": tables.queues,
    "statements": tables.statements,
    "times": tables.times,
    "as-published": tables.as_published,
    "solving": tables.solving,
    "by-queue": tables.by_queue,
}

#: Heading of a picture of one machine -> what draws it, and the name of its file.
PICTURES: dict[str, tuple[Callable[[simulations.Findings], Figure], str]] = {
    "Slowdown of the jobs that waited": (tables.draw_slowdowns, "slowdown"),
    "By class of jobs": (tables.draw_classes, "classes"),
    "Queue": (tables.draw_queues, "queue"),
    "Waiting times": (tables.draw_waits, "wait"),
    "Slowdown and wait (Galleguillos et al. 2020, figures 4 and 5)": (tables.draw_means, "means"),
    "Time of a dispatch by queued jobs": (tables.draw_by_queue, "by-queue"),
}

#: Pictures of some dispatchers alone: they are not drawn where none of these was asked for.
_SHOW = {"by-queue": SOLVERS}

#: Name of the picture of one machine that not every study has, and of that of all machines.
RATIOS, GROWTH = "ratios", "by-nodes"


def reproduce(
    machines: Sequence[str],
    folder: Folder,
    *,
    days: float | None = None,
    full: bool = False,
    quick: bool = False,
    dispatchers: Sequence[str] = (),
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was computed before is kept.

    Parameters
    ----------
    machines : names of :data:`configurations.MACHINES`.
    folder : where the study is run; outcomes are in its folders ``runs``, ``instances``,
        ``growth`` and ``known``.
    days : how much of each workload, of each seed; None: see :data:`configurations.MACHINES`.
    full : a month of Eurora and of KTH-SP2, a week of KIT ForHLR II, of one seed.
    quick : a small cut, which is compared with nothing published.
    dispatchers : those that are run and measured, of :data:`configurations.DISPATCHERS`; by default
        all, of a quick cut the heuristics. What they are compared with is to be among them. Tables
        and pictures of before that are not made of these are removed.

    Returns
    -------
    The file of the report, and machine -> its table of slowdowns, if any run came to schedules.

    Raises
    ------
    HpcgymError : an unknown machine or dispatcher, a machine with none of the dispatchers, days
        that are no positive number, two of ``days``, ``full`` and ``quick``, a workload that
        cannot be read, a file that cannot be written, a task that fails, or no matplotlib, or no
        OR-Tools where a dispatcher solves models.
    """
    for name in machines:
        check_choice("machine of the study", name, MACHINES)
    for name in dispatchers:
        check_choice("dispatcher of the study", name, DISPATCHERS)
    if days is not None and not days > 0:
        raise HpcgymError(f"days must be a number above 0, not {days!r}")
    lengths = {"full": full, "quick": quick, "days": days is not None}
    if len(given := [name for name, one in lengths.items() if one]) > 1:
        raise HpcgymError(f"{' and '.join(given)}: a study is one or the other")
    if quick:
        dispatchers = dispatchers or HEURISTICS
    for name in [name for name in dispatchers or DISPATCHERS if name not in HEURISTICS][:1]:
        find_dispatcher(model_of(name))  # no OR-Tools is said before the work
    folder.begin(HEAD)
    loads = simulations.load_machines(machines, days, full, dispatchers, quick)
    findings = simulations.run_campaign(loads, folder)
    _compare(findings, folder)
    grown = _grow(folder, full, dispatchers)
    best = _known(folder) if "pcp20" in (dispatchers or DISPATCHERS) else []
    made = {found.machine: _filled(TABLES, found) for found in findings}
    common = _common(findings, grown, best)
    written = _write(findings, made, common, folder.path)
    pictures = _draw(findings, grown, folder)
    drawn = [file for one in findings for file in one.pictures.values()] + list(pictures.values())
    _remove_others(findings, folder.path, written | {folder.path / file for file in drawn})
    path = folder.report(report_text(findings, made, common, pictures, quick))
    return path, {machine: of["slowdown"] for machine, of in made.items() if "slowdown" in of}


def _compare(findings: Sequence[simulations.Findings], folder: Folder) -> None:
    """Have PCP'19 and PCP'20 answer at the same states."""
    tasks = {
        (found.machine, run): {
            **found.load.task(),
            "dispatcher": run.dispatcher,
            "duration": run.duration,
            "number": instances.NUMBER,
        }
        for found in findings
        for run in instances.DRIVERS.get(found.machine, ())
        if found.load.wants(run.dispatcher)
    }
    todo, what = list(tasks.values()), "the same instances"
    outcomes = folder.run(
        instances.compare_one, todo, "comparisons", "instances", what=what, chunk=1
    )
    by_machine = {found.machine: found for found in findings}
    for (machine, run), outcome in zip(tasks, outcomes, strict=True):
        by_machine[machine].instances[run] = outcome


def _grow(folder: Folder, full: bool, dispatchers: Sequence[str]) -> list[dict[str, Any]]:
    """Measure dispatchers on states of many sizes; return a row for each."""
    tasks = instances.grow_tasks(full)
    tasks = [task for task in tasks if not dispatchers or task["dispatcher"] in dispatchers]
    found = folder.run(instances.grow_one, tasks, "measurements", "growth", what="growth", chunk=1)
    return [{**task, **outcome} for task, outcome in zip(tasks, found, strict=True)]


def _known(folder: Folder) -> list[dict[str, Any]]:
    """Solve small states to the end; return a row for each."""
    tasks = instances.known_tasks()
    return folder.run(instances.known_one, tasks, "states", "known", what="small states", chunk=1)


def _filled(
    makers: Mapping[str, Callable[[simulations.Findings], pd.DataFrame]],
    found: simulations.Findings,
) -> dict[str, pd.DataFrame]:
    """Return the tables by name, those without a row left out."""
    made = {name: make(found) for name, make in makers.items()}
    return {name: table for name, table in made.items() if len(table)}


def _common(
    findings: Sequence[simulations.Findings],
    grown: Sequence[Mapping[str, Any]],
    best: Sequence[Mapping[str, Any]],
) -> dict[str, pd.DataFrame]:
    """Return the tables of all machines, those without a row left out."""
    made = {
        "sizes": tables.sizes(findings),
        "hints": tables.hints(findings),
        "by-nodes": tables.grown(instances.by_nodes(grown), "nodes"),
        "by-queued": tables.grown(instances.by_queued(grown), "queued"),
        "known-best": pd.DataFrame(best),
    }
    return {name: table for name, table in made.items() if len(table)}


def _write(
    findings: Sequence[simulations.Findings],
    made: Mapping[str, Mapping[str, pd.DataFrame]],
    common: Mapping[str, pd.DataFrame],
    folder: Path,
) -> set[Path]:
    """Write all tables as CSV; return their files."""
    files = {folder / f"table-{name}.csv": table for name, table in common.items()}
    for found in findings:
        place = folder / folder_name(found.machine)
        files[place / "runs.csv"] = simulations.table_of(found)
        for name, table in made[found.machine].items():
            files[place / f"table-{name}.csv"] = table
    for file, table in files.items():
        write_csv(table, file)
    return set(files)


def _remove_others(
    findings: Sequence[simulations.Findings], folder: Path, written: set[Path]
) -> None:
    """Remove tables and pictures of before that this study does not have: of other dispatchers."""
    names = [f"table-{name}.csv" for name in TABLES]
    names += [f"{name}.png" for name in (RATIOS, *(name for _, name in PICTURES.values()))]
    places = [folder / folder_name(found.machine) / name for found in findings for name in names]
    places += [folder / f"table-{name}.csv" for name in COMMON]
    for file in {*places, folder / f"{GROWTH}.png"} - written:
        file.unlink(missing_ok=True)


def _draw(
    findings: Sequence[simulations.Findings], grown: Sequence[Mapping[str, Any]], folder: Folder
) -> dict[str, Path]:
    """Draw the pictures of each machine, and those of all; return these by heading."""
    for found in findings:
        ran = {run.dispatcher for run in found.outcomes}
        drawn = {
            heading: (draw(found), name)
            for heading, (draw, name) in PICTURES.items()
            if ran.intersection(_SHOW.get(name, ran))
        }
        if found.instances:
            heading = "Models of the same instances (Galleguillos et al. 2020, figures 6 and 7)"
            drawn[heading] = (tables.draw_ratios(found), RATIOS)
        for heading, (figure, name) in drawn.items():
            file = Path(folder_name(found.machine)) / f"{name}.png"
            found.pictures[heading] = folder.picture(figure, file)
    if not grown:
        return {}
    growth = folder.picture(tables.draw_by_nodes(instances.by_nodes(grown)), f"{GROWTH}.png")
    return {"Time of a dispatch by size of the machine": growth}
