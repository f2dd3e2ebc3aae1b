"""The whole study: runs on every machine, the same instances, growth; tables, pictures, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp import figures, tables
from hpcgym.benchmarks.cp.campaign import (
    Findings,
    code_of,
    load_machines,
    run_campaign,
    table_of,
)
from hpcgym.benchmarks.cp.configurations import (
    DISPATCHERS,
    HEURISTICS,
    MACHINES,
    SOLVERS,
    model_of,
)
from hpcgym.benchmarks.cp.growth import by_nodes, by_queued, grow_one, grow_tasks
from hpcgym.benchmarks.cp.instances import DRIVERS, NUMBER, compare_one
from hpcgym.benchmarks.cp.known import known_one, known_tasks
from hpcgym.benchmarks.cp.report import COMMON, HEAD, report_text
from hpcgym.benchmarks.studies.markdown import (
    check_report,
    folder_name,
    write_csv,
    write_text,
)
from hpcgym.benchmarks.studies.pictures import save_picture
from hpcgym.benchmarks.studies.progress import Progress, no_progress
from hpcgym.benchmarks.studies.spread import run_all
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.report.canvas import require_matplotlib
from hpcgym.sweep import read_results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Name of a table of one machine -> what makes it.
TABLES: dict[str, Callable[[Findings], pd.DataFrame]] = {
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
PICTURES: dict[str, tuple[Callable[[Findings], Figure], str]] = {
    "Slowdown of the jobs that waited": (figures.draw_slowdowns, "slowdown"),
    "By class of jobs": (figures.draw_classes, "classes"),
    "Queue": (figures.draw_queues, "queue"),
    "Waiting times": (figures.draw_waits, "wait"),
    "Slowdown and wait (Galleguillos et al. 2020, figures 4 and 5)": (figures.draw_means, "means"),
    "Time of a dispatch by queued jobs": (figures.draw_by_queue, "by-queue"),
}

#: Pictures of some dispatchers alone: they are not drawn where none of these was asked for.
_SHOW = {"by-queue": SOLVERS}

#: Name of the picture of one machine that not every study has, and of that of all machines.
RATIOS, GROWTH = "ratios", "by-nodes"


def reproduce(
    machines: Sequence[str],
    folder: Path,
    *,
    days: float | None = None,
    full: bool = False,
    quick: bool = False,
    dispatchers: Sequence[str] = (),
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was computed before is kept.

    Parameters
    ----------
    machines : names of :data:`configurations.MACHINES`.
    folder : where everything is written; outcomes into its folders ``runs``, ``instances``,
        ``growth`` and ``known``.
    days : how much of each workload, of each seed; None: see :data:`configurations.MACHINES`.
    full : a month of Eurora and of KTH-SP2, a week of KIT ForHLR II, of one seed.
    quick : a small cut, which is compared with nothing published.
    dispatchers : those that are run and measured, of :data:`configurations.DISPATCHERS`; by default
        all, of a quick cut the heuristics. What they are compared with is to be among them. Tables
        and pictures of before that are not made of these are removed.
    executor, workers : where tasks run; see :func:`hpcgym.sweep.run_tasks`.
    progress : told of each step.

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
    require_matplotlib()
    for name in [name for name in dispatchers or DISPATCHERS if name not in HEURISTICS][:1]:
        find_dispatcher(model_of(name))  # no OR-Tools is said before the work
    path = folder / "report.md"
    check_report(path, HEAD)  # that it cannot be written, too
    loads = load_machines(machines, days, full, dispatchers, quick)
    spread: dict[str, Any] = {"executor": executor, "workers": workers, "progress": progress}
    findings = run_campaign(loads, folder / "runs", **spread)
    _compare(findings, folder / "instances", **spread)
    grown = _grow(folder / "growth", full, dispatchers, **spread)
    best = _known(folder / "known", **spread) if "pcp20" in (dispatchers or DISPATCHERS) else []
    made = {found.machine: _filled(TABLES, found) for found in findings}
    common = _common(findings, grown, best)
    written = _write(findings, made, common, folder)
    pictures = _draw(findings, grown, folder)
    written |= {folder / file for one in findings for file in one.pictures.values()}
    _remove_others(findings, folder, written | {folder / file for file in pictures.values()})
    write_text(report_text(findings, made, common, pictures, quick), path)
    return path, {machine: of["slowdown"] for machine, of in made.items() if "slowdown" in of}


def _compare(findings: Sequence[Findings], folder: Path, **spread: Any) -> None:
    """Have PCP'19 and PCP'20 answer at the same states."""
    tasks = {
        (found.machine, run): {
            **found.load.task(),
            "dispatcher": run.dispatcher,
            "duration": run.duration,
            "number": NUMBER,
            "code": code_of("hpcgym.benchmarks.cp.instances"),
        }
        for found in findings
        for run in DRIVERS.get(found.machine, ())
        if found.load.wants(run.dispatcher)
    }
    what = "the same instances"
    run_all(compare_one, tasks.values(), folder, **spread, of="comparisons", what=what, chunk=1)
    records = read_results(folder, tasks.values())
    by_machine = {found.machine: found for found in findings}
    for (machine, run), record in zip(tasks, records, strict=True):
        by_machine[machine].instances[run] = record["result"]


def _grow(
    folder: Path, full: bool, dispatchers: Sequence[str], **spread: Any
) -> list[dict[str, Any]]:
    """Measure dispatchers on states of many sizes; return a row for each."""
    tasks = grow_tasks(code_of("hpcgym.benchmarks.cp.growth"), full)
    tasks = [task for task in tasks if not dispatchers or task["dispatcher"] in dispatchers]
    run_all(grow_one, tasks, folder, **spread, of="measurements", what="growth", chunk=1)
    return [{**one["task"], **one["result"]} for one in read_results(folder, tasks)]


def _known(folder: Path, **spread: Any) -> list[dict[str, Any]]:
    """Solve small states to the end; return a row for each."""
    tasks = known_tasks(code_of("hpcgym.benchmarks.cp.known"))
    run_all(known_one, tasks, folder, **spread, of="states", what="small states", chunk=1)
    return [record["result"] for record in read_results(folder, tasks)]


def _filled(
    makers: Mapping[str, Callable[[Findings], pd.DataFrame]], found: Findings
) -> dict[str, pd.DataFrame]:
    """Return the tables by name, those without a row left out."""
    made = {name: make(found) for name, make in makers.items()}
    return {name: table for name, table in made.items() if len(table)}


def _common(
    findings: Sequence[Findings],
    grown: Sequence[Mapping[str, Any]],
    best: Sequence[Mapping[str, Any]],
) -> dict[str, pd.DataFrame]:
    """Return the tables of all machines, those without a row left out."""
    import pandas as pd

    made = {
        "sizes": tables.sizes(findings),
        "hints": tables.hints(findings),
        "by-nodes": tables.grown(by_nodes(grown), "nodes"),
        "by-queued": tables.grown(by_queued(grown), "queued"),
        "known-best": pd.DataFrame(best),
    }
    return {name: table for name, table in made.items() if len(table)}


def _write(
    findings: Sequence[Findings],
    made: Mapping[str, Mapping[str, pd.DataFrame]],
    common: Mapping[str, pd.DataFrame],
    folder: Path,
) -> set[Path]:
    """Write all tables as CSV; return their files."""
    files = {folder / f"table-{name}.csv": table for name, table in common.items()}
    for found in findings:
        place = folder / folder_name(found.machine)
        files[place / "runs.csv"] = table_of(found)
        for name, table in made[found.machine].items():
            files[place / f"table-{name}.csv"] = table
    for file, table in files.items():
        write_csv(table, file)
    return set(files)


def _remove_others(findings: Sequence[Findings], folder: Path, written: set[Path]) -> None:
    """Remove tables and pictures of before that this study does not have: of other dispatchers."""
    names = [f"table-{name}.csv" for name in TABLES]
    names += [f"{name}.png" for name in (RATIOS, *(name for _, name in PICTURES.values()))]
    places = [folder / folder_name(found.machine) / name for found in findings for name in names]
    places += [folder / f"table-{name}.csv" for name in COMMON]
    for file in {*places, folder / f"{GROWTH}.png"} - written:
        file.unlink(missing_ok=True)


def _draw(
    findings: Sequence[Findings], grown: Sequence[Mapping[str, Any]], folder: Path
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
            drawn[heading] = (figures.draw_ratios(found), RATIOS)
        for heading, (figure, name) in drawn.items():
            found.pictures[heading] = Path(folder_name(found.machine)) / f"{name}.png"
            save_picture(figure, folder / found.pictures[heading])
    if not grown:
        return {}
    growth = Path(f"{GROWTH}.png")
    save_picture(figures.draw_by_nodes(by_nodes(grown)), folder / growth)
    return {"Time of a dispatch by size of the machine": growth}
