"""How fast run times are learned while a trace is simulated: compiled, and by river."""

import argparse
import time
from collections.abc import Callable
from typing import Any

from sections import Column, Section, best, machine, parser_of, show

import hpcgym
from hpcgym import Scheduler
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates import JOB_FEATURES

EPILOG = """\
sections:
  paths      one learned configuration (E-Loss, incremental correction, EASY-SJBF, per event):
             compiled; and RuntimeRegression, river's interface over the same compiled steps. Both
             make the same schedule, which is checked.
  estimates  the same scheduler with other estimates, compiled or in Python

Compiled runs are the best of --repeat; river's are timed once.

example:
  python benchmarks/prediction_speed.py KTH-SP2 --clean glesser
"""
DEFAULT = "lublin:jobs=20000,processors=128,seed=0,load=0.8"
E_LOSS: dict[str, Any] = {"over": "squared", "under": "absolute", "weight": "large"}


def main() -> None:
    """Read the command line and print the sections asked for."""
    show(SECTIONS, arguments(), machine())


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = parser_of(__doc__, EPILOG, SECTIONS, 5)
    parser.add_argument("workload", nargs="?", default=DEFAULT, help="a trace")
    parser.add_argument("--clean", default="default", help="cleaning recipe (%(default)s)")
    parser.add_argument("--jobs", type=int, default=None, help="first jobs only")
    given = parser.parse_args()
    try:
        given.trace = hpcgym.load_workload(given.workload, clean=given.clean)
    except HpcgymError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    if given.jobs is not None:
        given.trace = given.trace.take(slice(0, given.jobs))
    return given


def simulation(trace: hpcgym.Workload, estimate: Any) -> Callable[[], hpcgym.Result]:
    """Return what simulates the thesis's best scheduler with an estimate."""
    scheduler = Scheduler(
        backfill_order="sjbf", estimate=estimate, correction="incremental", passes="per-event"
    )
    return lambda: hpcgym.simulate(trace, scheduler)


def paths(given: argparse.Namespace) -> Section:
    """Time one learned configuration by each of the two paths."""
    from hpcgym.agents.runtime_regression import RuntimeRegression

    features = tuple(JOB_FEATURES)  # not the numbers of users and jobs too
    model = RuntimeRegression(**E_LOSS, features=features)
    compiled = simulation(given.trace, "e-loss")
    rows = [_row("compiled", given, best(compiled, given.repeat), compiled())]
    start = time.perf_counter()
    result = simulation(given.trace, model)()
    rows.append(_row("RuntimeRegression", given, time.perf_counter() - start, result))
    for row in rows:
        row["ratio"] = row["seconds"] / rows[0]["seconds"]
        row["same"] = "yes" if row["mean_bsld"] == rows[0]["mean_bsld"] else "no"
    title = (
        f"{len(given.trace):,} jobs of {given.trace.name}, {len(JOB_FEATURES)} features, degree 2"
    )
    columns = (
        Column("path", "path"),
        Column("seconds", "s", ".3f"),
        Column("us_per_job", "us/job", ".2f"),
        Column("ratio", "times as long", ".0f"),
        Column("same", "same mean BSLD"),
    )
    return Section(title, columns, rows)


def estimates(given: argparse.Namespace) -> Section:
    """Time the same scheduler with other estimates."""
    rows = []
    for name in ("requested", "ave2", "user-ratio", "e-loss", "data-driven"):
        run = simulation(given.trace, name)
        rows.append(_row(name, given, best(run, given.repeat), run()))
    columns = (
        Column("path", "estimate"),
        Column("seconds", "s", ".3f"),
        Column("us_per_job", "us/job", ".2f"),
        Column("mean_bsld", "mean BSLD", ".2f"),
    )
    return Section(f"{len(given.trace):,} jobs of {given.trace.name}", columns, rows)


def _row(
    path: str, given: argparse.Namespace, seconds: float, result: hpcgym.Result
) -> dict[str, Any]:
    """Return a row of either section."""
    return {
        "path": path,
        "seconds": seconds,
        "us_per_job": 1e6 * seconds / len(given.trace),
        "mean_bsld": result.metrics["mean_bsld"],
    }


SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "paths": paths,
    "estimates": estimates,
}

if __name__ == "__main__":
    main()
