"""The whole study of co-scheduling: simulations, tables, pictures, report."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.coscheduling import runs, speed, tables
from hpcgym.benchmarks.coscheduling.runs import Sizes, Task
from hpcgym.benchmarks.coscheduling.tables import HEAD, report_text
from hpcgym.benchmarks.studies.harness import (
    Progress,
    check_report,
    no_progress,
    outcomes_of,
    save_picture,
    write_csv,
    write_text,
)
from hpcgym.benchmarks.studies.store import code
from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import require_matplotlib
from hpcgym.simulation.run import simulate
from hpcgym.speedups import Heatmap, generate_speedups, read_speedups
from hpcgym.workload import assign_codes, load_workload
from hpcgym.workload.archive import data_folders

if TYPE_CHECKING:
    import pandas as pd

#: Where results come from, beside what all studies depend on.
MODULES = (
    "hpcgym.baselines.schedulers",
    "hpcgym.benchmarks.coscheduling.runs",
    "hpcgym.benchmarks.coscheduling.speed",
    "hpcgym.schedule.metrics",
    "hpcgym.workload.codes",
    "hpcgym.workload.extracts",
)
#: ELiSE's file of speedups measured on ARIS, NAS.
MEASURED_FILE = "lm-aris.compute-NAS.json"

Outcomes = list[tuple[Task, dict[str, Any]]]


def find_measured() -> Path | None:
    """Return the file of measured speedups if it is on this machine.

    It is looked for in the folders of ``HPCGYM_DATA``, and in folders ``coscheduling`` in or beside
    these.
    """
    places = [
        place
        for folder in data_folders()
        for place in (folder, folder / "coscheduling", folder.parent / "coscheduling")
    ]
    return next((at / MEASURED_FILE for at in places if (at / MEASURED_FILE).is_file()), None)


def reproduce(
    measured: Path | None,
    folder: Path,
    *,
    heatmaps: int = Sizes.heatmaps,
    shuffles: int = Sizes.measured_shuffles,
    quick: bool = False,
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    measured : a file of speedups with processes and compact run times; None: without what needs it.
    folder : where everything is written; outcomes of simulations into its folders ``tasks`` and
        ``timings``.
    heatmaps : generated ones of each mean and reading.
    shuffles : of each set of measured codes.
    quick : a small cut, which is compared with nothing published.
    executor, workers : where simulations run; see :func:`hpcgym.sweep.run_tasks`. What is timed
        always runs in this process.
    progress : told of each step.

    Returns
    -------
    The file of the report, and the tables by name: see
    :data:`hpcgym.benchmarks.coscheduling.tables.TEXTS`.

    Raises
    ------
    HpcgymError : numbers below 1, a file that cannot be read or written, or lacks codes, a
        simulation that fails, or no matplotlib.
    """
    require_matplotlib()
    path = folder / "report.md"
    check_report(path, HEAD)  # that it cannot be written is said before the work, not after it
    for name, number in (("heatmaps", heatmaps), ("shuffles", shuffles)):
        if number < 1:
            raise HpcgymError(f"{name} must be a whole number of at least 1, not {number}")
    sizes = runs.QUICK if quick else Sizes(heatmaps=heatmaps, measured_shuffles=shuffles)
    tasks = _tasks(measured, sizes, quick)
    outcomes = _simulated(tasks, measured, folder / "tasks", executor, workers, progress)
    timings = _timed(quick, folder / "timings", progress)
    made = make_tables(outcomes, timings)
    for name, table in made.items():
        write_csv(table, folder / f"table-{name}.csv")
    text = report_text(
        made,
        _draw(outcomes, folder),
        sizes,
        machine=speed.machine_name(),
        missing=MEASURED_FILE if measured is None else None,
        notes=["**A quick cut: few jobs and heatmaps. Not to be compared.**"] if quick else [],
    )
    write_text(text, path)
    return path, made


def make_tables(outcomes: dict[str, Outcomes], timings: Outcomes) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name; those of nothing simulated are left out."""
    pairs = outcomes["pairs"]
    made = {
        "improvements": tables.improvements(pairs),
        "coschedulers": tables.all_coschedulers(pairs),
        "readings": tables.by_reading(pairs),
        "files": tables.files(outcomes["files"]),
    }
    if "mixes" in outcomes:
        made["mixes"] = tables.mixes(outcomes["mixes"])
        made["mix-utilisation"] = tables.mix_utilisation(outcomes["mixes"])
        made["against-easy"] = tables.against_easy(outcomes["shuffles"])
        made["correlations"] = tables.correlations(outcomes["shuffles"])
    made["speed"] = speed.synthetic(timings)
    traces = speed.traces(timings)
    if len(traces):
        made["traces"] = traces
    return made


def _tasks(measured: Path | None, sizes: Sizes, quick: bool) -> list[Task]:
    """Return all tasks, each with a hash of the sources."""
    tasks = runs.of_pairs(sizes, quick) + runs.of_files(sizes)
    if measured is not None:
        speedups = read_speedups(measured)
        tasks += runs.of_mixes(speedups, sizes) + runs.of_shuffles(speedups, sizes)
    hashed = code(*MODULES)
    return [{**task, "code": hashed} for task in tasks]


def _simulated(
    tasks: list[Task],
    measured: Path | None,
    folder: Path,
    executor: str,
    workers: int | None,
    progress: Progress,
) -> dict[str, Outcomes]:
    """Return part -> its tasks, each with its outcome."""
    _compile()
    found = outcomes_of(
        partial(runs.measure, measured=None if measured is None else str(measured)),
        tasks,
        folder,
        executor,
        workers,
        of="sets of jobs",
        what="sets of jobs",
        progress=progress,
    )
    outcomes: dict[str, Outcomes] = {}
    for task, outcome in zip(tasks, found, strict=True):
        outcomes.setdefault(task["part"], []).append((task, outcome))
    return outcomes


def _compile() -> None:
    """Compile in this process what workers then find in the cache."""
    speedups: Heatmap = generate_speedups(2)
    jobs = assign_codes(load_workload("lublin:jobs=20,processors=64"), speedups.codes)
    for name in (runs.REFERENCE, *COSCHEDULERS):
        simulate(jobs, name, cluster="16x2x2", speedups=speedups)


def _timed(quick: bool, folder: Path, progress: Progress) -> Outcomes:
    """Return what was timed: each task with its outcome. Nothing else runs here meanwhile."""
    hashed = code(*MODULES)
    tasks = [{**task, "code": hashed} for task in speed.tasks_of(quick, speed.machine_name())]
    found = outcomes_of(
        speed.measure,
        tasks,
        folder,
        "serial",
        None,
        of="timings",
        what="timings",
        progress=progress,
    )
    return list(zip(tasks, found, strict=True))


def _draw(outcomes: dict[str, Outcomes], folder: Path) -> dict[str, Path]:
    """Draw the pictures; return heading -> file."""
    drawings = {
        "pairs": ("Improvement by mean speedup", tables.draw_pairs),
        "mixes": ("Mixes of process counts, drawn", tables.draw_mixes),
        "shuffles": ("Shuffles of measured codes, drawn", tables.draw_shuffles),
    }
    pictures = {}
    for part, (heading, draw) in drawings.items():
        if part in outcomes:
            file = Path(f"{part}.png")
            save_picture(draw(outcomes[part]), folder / file)
            pictures[heading] = file
    return pictures
