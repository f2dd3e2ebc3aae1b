"""The whole study of energy fair share: simulations, tables, pictures, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.energy import shares, shares_figures, shares_tables
from hpcgym.benchmarks.energy.shares import (
    QUICK_JOBS,
    QUICK_USERS,
    READINGS,
    TEXT,
    USERS,
    load_trace,
    measure,
)
from hpcgym.benchmarks.energy.shares_figures import HEAD, report_text
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
from hpcgym.report.canvas import require_matplotlib
from hpcgym.workload.fingerprint import fingerprint

if TYPE_CHECKING:
    import pandas as pd

#: Where results come from, beside what all studies depend on.
MODULES = (
    "hpcgym.benchmarks.energy.shares",
    "hpcgym.simulation.prepare",
    "hpcgym.simulation.fair_share",
)


def reproduce(
    sources: Sequence[str],
    folder: Path,
    *,
    quick: bool = False,
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where everything is written; outcomes of simulations into its folder ``tasks``.
    quick : a small cut, which is compared with nothing published.
    executor, workers : where simulations run; see :func:`hpcgym.sweep.run_tasks`.
    progress : told of each step.

    Returns
    -------
    The file of the report, and the tables by name: see
    :data:`hpcgym.benchmarks.energy.shares_figures.TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read, two of the same name, a file that cannot be written,
        a simulation that fails, or no matplotlib.
    """
    require_matplotlib()
    path = folder / "report.md"
    check_report(path, HEAD)  # that it cannot be written is said before the work, not after it
    outcomes = run_readings(sources, folder / "tasks", quick, executor, workers, progress)
    seeds = shares.QUICK_SEEDS if quick else shares.SEEDS
    experiments = []
    kinds = list(product(shares.LOADS, (shares.EFFICIENCY, shares.WORKLOAD)))
    for place, (load, experiment) in enumerate(kinds):
        progress("light-esp", place, len(kinds))
        experiments.append(shares.run_esp(experiment, load, seeds))
    on_180 = {}
    for place, load in enumerate(shares.LOADS):
        progress("light-esp on 180 cores", place, len(shares.LOADS))
        on_180[load] = shares.run_180(load, seeds)
    bursts = shares.run_burst()
    made = make_tables(outcomes, experiments) | tables_of_180(on_180, bursts)
    for name, table in made.items():
        write_csv(table, folder / f"table-{name}.csv")
    pictures = _draw(outcomes, experiments, folder) | _draw_180(on_180, bursts, folder)
    write_text(report_text(made, pictures, quick), path)
    return path, made


def run_readings(
    sources: Sequence[str],
    folder: Path,
    quick: bool,
    executor: str,
    workers: int | None,
    progress: Progress,
) -> dict[str, dict[str, Any]]:
    """Return trace -> reading -> its outcome."""
    readings = [TEXT, "per timestamp"] if quick else list(READINGS)
    jobs = QUICK_JOBS if quick else None
    hashed = code(*MODULES)
    tasks: dict[tuple[str, str], dict[str, Any]] = {}
    names: dict[str, str] = {}
    for source in sources:
        for reading in readings:
            workload = load_trace(source, READINGS[reading], jobs)
            note_name(names, workload.name, source)
            tasks[workload.name, reading] = {
                "trace": workload.name,
                "reading": reading,
                "jobs": jobs,
                "users": QUICK_USERS if quick else USERS,
                "jobs_sha256": fingerprint([workload]),
                "code": hashed,
            }
    found = outcomes_of(
        partial(measure, sources=names),
        list(tasks.values()),
        folder,
        executor,
        workers,
        of="readings",
        what="readings",
        progress=progress,
        chunk=1,
    )
    outcomes: dict[str, dict[str, Any]] = {}
    for (trace, reading), outcome in zip(tasks, found, strict=True):
        outcomes.setdefault(trace, {})[reading] = outcome
    return outcomes


def make_tables(
    outcomes: shares_tables.Outcomes, experiments: Sequence[shares.EspOutcome]
) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name, those without a row left out."""
    made = {
        "6.1": shares_tables.table_6_1(outcomes),
        "6.1-by-jobs": shares_tables.by_jobs(outcomes),
        "readings": shares_tables.of_readings(outcomes),
        "late": shares_tables.of_late(outcomes),
        "users": shares_tables.of_users(outcomes),
        "light-esp": shares_tables.of_esp(experiments),
        "statements": shares_tables.statements(experiments),
    }
    return {name: table for name, table in made.items() if len(table)}


def tables_of_180(
    outcomes: shares_tables.Outcomes180, bursts: shares_tables.Bursts
) -> dict[str, pd.DataFrame]:
    """Return the tables of Light-ESP on 180 cores by name."""
    return {
        "frequencies": shares_tables.of_frequencies(),
        "light-esp-180": shares_tables.of_users_180(outcomes, bursts),
        "statements-180": shares_tables.statements_180(outcomes, bursts),
    }


def _draw(
    outcomes: Mapping[str, Mapping[str, Any]],
    experiments: Sequence[shares.EspOutcome],
    folder: Path,
) -> dict[str, Path]:
    """Draw the pictures; return heading -> file."""
    pictures = {}
    for trace, readings in outcomes.items():
        file = Path(f"users-{folder_name(trace)}.png")
        save_picture(shares_figures.draw_users(readings[TEXT], trace), folder / file)
        pictures[f"Users who save or waste energy: {trace}"] = file
    file = Path("light-esp.png")
    usual = [one for one in experiments if one.load == shares.LOADS[0]]
    save_picture(shares_figures.draw_esp(usual), folder / file)
    pictures["Three users of Light-ESP (figures 6.2 and 6.3)"] = file
    return pictures


def _draw_180(
    outcomes: shares_tables.Outcomes180, bursts: shares_tables.Bursts, folder: Path
) -> dict[str, Path]:
    """Draw figures 6.4 to 6.8, and the users' counters as in figure 6.1; return heading -> file."""
    usual = outcomes[shares.LOADS[0]]
    drawn = {"6.4": ("Linpack by frequency", shares_figures.draw_frequencies())}
    for policy, number in shares.FIGURES.items():
        heading = f"{policy}, Light-ESP on 180 cores (figure {number})"
        found = shares_figures.draw_distributions(usual[policy], heading)
        drawn[number] = (heading, found)
    least = min(shares.BURST_SAVED)
    heading = f"EFS, a burst, {least:.0%} saved (figure 6.8)"
    drawn["6.8"] = (heading, shares_figures.draw_distributions(bursts[least], heading))
    counters = shares_figures.draw_counters(usual, "Counters")
    drawn["6.1-180"] = ("Energy that is counted for users of 180 cores (as figure 6.1)", counters)
    pictures = {}
    for number, (heading, figure) in drawn.items():
        pictures[heading] = Path(f"figure-{number}.png")
        save_picture(figure, folder / pictures[heading])
    return pictures
