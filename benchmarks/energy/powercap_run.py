"""The whole study of power caps: simulations, tables, pictures, report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.energy import powercap_tables
from hpcgym.benchmarks.energy.powercap import (
    AS_GENERATED,
    CAPS,
    INTERVALS,
    JOBS,
    MACHINE,
    OF_SHORT,
    QUICK_CAPS,
    QUICK_JOBS,
    REQUESTS,
    SUBSTITUTE,
    Interval,
    capped,
    load,
    measure,
    ways_to_cap,
)
from hpcgym.benchmarks.energy.powercap_tables import HEAD, report_text
from hpcgym.benchmarks.studies.harness import (
    Progress,
    check_report,
    folder_name,
    no_progress,
    note_name,
    outcomes_of,
    save_picture,
    write_csv,
    write_text,
)
from hpcgym.benchmarks.studies.store import code
from hpcgym.cluster.files import find_cluster
from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import require_matplotlib
from hpcgym.workload.fingerprint import fingerprint

if TYPE_CHECKING:
    import pandas as pd

#: Where results come from, beside what all studies depend on.
MODULES = (
    "hpcgym.benchmarks.energy.powercap",
    "hpcgym.benchmarks.energy.common",
)
SEEDS = 10
QUICK = "medianjob"

#: Interval, cap and policy of a picture -> what figure of the thesis it is like.
_DRAWN = {
    ("24h", 0.4, "MIX"): "figure 4.4",
    ("bigjob", 0.6, "SHUT"): "figure 4.5a",
    ("smalljob", 0.4, "DVFS"): "figure 4.5b",
}


def reproduce(
    sources: Sequence[str],
    folder: Path,
    *,
    cluster: str = "curie",
    seeds: int = SEEDS,
    quick: bool = False,
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces, files or generators in place of the substitute for Curie's trace; none: that.
    folder : where everything is written; outcomes of simulations into its folder ``tasks``.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    seeds : how many substitutes, generated from the seeds 0, 1 and so on.
    quick : a small cut, which is compared with nothing published.
    executor, workers : where simulations run; see :func:`hpcgym.sweep.run_tasks`.
    progress : told of each step.

    Returns
    -------
    The file of the report, and the tables by name: see
    :data:`hpcgym.benchmarks.energy.powercap_tables.TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read, is too short or larger than the machine, two of the
        same name, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    require_matplotlib()
    path = folder / "report.md"
    check_report(path, HEAD)  # that it cannot be written is said before the work, not after it
    if seeds < 1:
        raise HpcgymError(f"seeds must be a whole number of at least 1, not {seeds}")
    given = list(sources) or [f"{SUBSTITUTE}:{seed}" for seed in range(1 if quick else seeds)]
    names, tasks = _tasks(given, cluster, quick)
    outcomes = _simulated(names, tasks, folder / "tasks", executor, workers, progress)
    made = make_tables(outcomes)
    for name, table in made.items():
        write_csv(table, folder / f"table-{name}.csv")
    pictures = _draw(outcomes, names, tasks, folder, progress)
    write_text(report_text(made, pictures, find_cluster(cluster).name, quick), path)
    return path, made


def make_tables(outcomes: powercap_tables.Outcomes) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name."""
    return {
        "statements": powercap_tables.statements(outcomes),
        "4.6": powercap_tables.figure_4_6(outcomes),
        "4.3": powercap_tables.table_4_3(),
        "intervals": powercap_tables.of_intervals(outcomes),
    }


def trace_of(workload: str) -> str:
    """Return the trace that a workload counts to: all substitutes are one."""
    return SUBSTITUTE if workload.startswith(f"{SUBSTITUTE} ") else workload


def _tasks(
    sources: Sequence[str], cluster: str, quick: bool
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the source of each workload, and the tasks."""
    machine, hashed = find_cluster(cluster), code(*MODULES)
    names: dict[str, str] = {}
    tasks = []
    jobs = QUICK_JOBS if quick else JOBS
    for source in sources:
        generated = source.startswith(f"{SUBSTITUTE}:")
        for requests in REQUESTS if generated else (AS_GENERATED,):
            workload = load(source, requests, machine, jobs)
            note_name(names, workload.name, source)
            tasks += [
                {
                    "workload": workload.name,
                    "requests": requests,
                    "capped": of,
                    "interval": name,
                    "caps": list(QUICK_CAPS if quick else CAPS),
                    "cluster": cluster,
                    "jobs": jobs,
                    "jobs_sha256": fingerprint([workload]),
                    "code": hashed,
                }
                for of in ([MACHINE] if requests == OF_SHORT else ways_to_cap(machine))
                for name in ([QUICK] if quick else INTERVALS)
            ]
    return names, tasks


def _simulated(
    names: dict[str, str],
    tasks: list[dict[str, Any]],
    folder: Path,
    executor: str,
    workers: int | None,
    progress: Progress,
) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Return (trace, reading, interval) -> the outcome of each workload."""
    found = outcomes_of(
        partial(measure, sources=names),
        tasks,
        folder,
        executor,
        workers,
        of="intervals",
        what="intervals",
        progress=progress,
        chunk=1,
    )
    outcomes: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for task, outcome in zip(tasks, found, strict=True):
        outcomes.setdefault(_key(task), []).append(outcome)
    return outcomes


def _draw(
    outcomes: dict[tuple[str, str, str], list[dict[str, Any]]],
    names: dict[str, str],
    tasks: list[dict[str, Any]],
    folder: Path,
    progress: Progress,
) -> dict[str, Path]:
    """Draw the pictures; return heading -> file."""
    pictures = {}
    for trace, requests in dict.fromkeys(key[:2] for key in outcomes):
        if any((trace, requests, name) in outcomes for name in powercap_tables.SHAPES):
            file = Path(f"figure-4.6-{folder_name(f'{trace}-{requests}')}.png")
            save_picture(powercap_tables.draw_4_6(outcomes, trace, requests), folder / file)
            pictures[f"Figure 4.6: {trace}, requested times {requests}"] = file
    todo = [
        (key, shape)
        for key in outcomes
        for shape in _DRAWN
        if key[2] == shape[0] and shape[1] in tasks[0]["caps"] and key[1] in REQUESTS
    ]
    for done, (key, (name, cap, policy)) in enumerate(todo):
        progress("pictures", done, len(todo))
        trace, requests, _ = key
        number = _first_kept(outcomes[key], cap, policy)
        task = [one for one in tasks if _key(one) == key][number]
        cluster = find_cluster(task["cluster"])
        workload = load(names[task["workload"]], requests, cluster, task["jobs"])
        interval = Interval(**outcomes[key][number]["interval"])
        heading = (
            f"{name}, {policy}, a cap of {cap:.0%} (as {_DRAWN[name, cap, policy]}):"
            f" {workload.name}, {requests}"
        )
        file = Path(f"{folder_name(f'{name}-{policy}-{trace}-{requests}')}.png")
        result = capped(workload, cluster, interval, cap, policy)
        save_picture(powercap_tables.draw_interval(result, interval, heading), folder / file)
        pictures[heading] = file
    return pictures


def _key(task: dict[str, Any]) -> tuple[str, str, str]:
    """Return what a task is an outcome of: trace, reading, interval.

    A reading is that of requested times, and of what caps are shares of where not of the machine.
    """
    of = task["capped"]
    reading = task["requests"] if of == MACHINE else f"{task['requests']}, a cap on {of}"
    return trace_of(task["workload"]), reading, task["interval"]


def _first_kept(outcomes: list[dict[str, Any]], cap: float, policy: str) -> int:
    """Return the first workload whose cap nothing that ran before has broken, or else the first."""
    for number, outcome in enumerate(outcomes):
        for row in outcome["rows"]:
            if (row["cap"], row["policy"], row["exceeded_s"]) == (cap, policy, 0):
                return number
    return 0
