"""The whole study: runs on every machine, the same instances; tables, pictures, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp import instances, simulations, tables
from hpcgym.benchmarks.cp.configurations import DISPATCHERS, HEURISTICS, MACHINES, model_of
from hpcgym.benchmarks.cp.published import ABOUT, JOBS, MONTHS, SECONDS_BETWEEN, VARIABLES_BELOW
from hpcgym.benchmarks.studies.harness import Folder, folder_name, write_csv
from hpcgym.benchmarks.studies.tables import read_texts
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
COMMON = {name: _TEXTS.pop(name) for name in ("sizes", "hints")}


def head_of(findings: Sequence[simulations.Findings]) -> str:
    """Return what the report on some machines begins with."""
    months = " and ".join(map(str, sorted(MONTHS.values()))) + " months"
    return f"{HEAD.format(version=__version__, months=months)}\n{_loads(findings)}"


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
}

#: The same of what not every study has: models of the same instances.
_RATIOS = "Models of the same instances (Galleguillos et al. 2020, figures 6 and 7)"


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
    folder : where the study is run; outcomes are in its folders ``runs`` and ``instances``.
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
    made = {"sizes": tables.sizes(findings), "hints": tables.hints(findings)}
    texts: dict[str, tuple[str, str]] = {}
    for found in findings:
        place = folder_name(found.machine)
        write_csv(simulations.table_of(found), folder.path / place / "runs.csv")
        made |= {f"{place}/{name}": make(found) for name, make in TABLES.items()}
        texts |= {
            f"{place}/{name}": (f"{found.machine}: {heading}", note)
            for name, (heading, note) in _TEXTS.items()
        }
    head, cut = head_of(findings), "few days" * quick
    path, made = folder.publish(head, made, texts | COMMON, _draw(findings, folder), cut)
    slowdowns = {found.machine: f"{folder_name(found.machine)}/slowdown" for found in findings}
    return path, {machine: made[name] for machine, name in slowdowns.items() if name in made}


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


def _draw(findings: Sequence[simulations.Findings], folder: Folder) -> dict[str, Path]:
    """Draw the pictures of each machine; return heading -> file."""
    pictures: dict[str, Path] = {}
    for found in findings:
        place, drawn = folder_name(found.machine), PICTURES
        if found.instances:
            drawn = {**PICTURES, _RATIOS: (tables.draw_ratios, "ratios")}
        else:  # of other dispatchers there may have been
            (folder.path / place / "ratios.png").unlink(missing_ok=True)
        pictures |= {
            f"{found.machine}: {heading}": folder.picture(draw(found), f"{place}/{name}.png")
            for heading, (draw, name) in drawn.items()
        }
    return pictures
