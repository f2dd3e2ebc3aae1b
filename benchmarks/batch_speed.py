"""How fast many weight vectors are simulated on many slices: by threads, processes, MPI ranks."""

import argparse
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from sections import Column, Section, best, count, machine, names_among, parser_of, show

import hpcgym
from hpcgym.baselines import find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.processors import threads_here
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.study import open_executor
from hpcgym.workload import weeks

EPILOG = """\
sections:
  threads    simulations of a slice a second, by the number of threads; for comparison, a loop over
             hpcgym.simulate, of a tenth of the vectors, with what each simulation prepares
  executors  the same, the vectors divided among workers that compute on one thread each

Slices are the weeks of a trace. Vectors are random, over the six features of Legrand 2018. Times
are the best of --repeat runs.

examples:
  python benchmarks/batch_speed.py KTH-SP2 --clean legrand --weeks 45
  mpiexec -n 3 python -m mpi4py.futures benchmarks/batch_speed.py KTH-SP2 --sections executors \\
      --executors mpi
"""
DEFAULT = "lublin:jobs=40000,processors=128,seed=0,load=0.7"


def main() -> None:
    """Read the command line and print the sections asked for."""
    given = arguments()
    show(SECTIONS, given, machine() | {"threads": threads_here()})


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = parser_of(__doc__, EPILOG, SECTIONS, 5)
    parser.add_argument("workload", nargs="?", default=DEFAULT, help="a trace of several weeks")
    parser.add_argument("--clean", default="default", help="cleaning recipe (%(default)s)")
    parser.add_argument("--weeks", type=count, default=None, help="first weeks only")
    parser.add_argument("--vectors", type=count, default=200, help="weight vectors (%(default)s)")
    executors = names_among(("processes", "mpi"))
    parser.add_argument("--executors", type=executors, default=["processes"], metavar="NAME,NAME")
    given = parser.parse_args()
    try:
        batch(given.workload, given.clean, given.weeks)
    except HpcgymError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    return given


@lru_cache
def slices(workload: str, clean: str, number: int | None) -> list[hpcgym.Workload]:
    """Return the weeks to simulate."""
    return weeks(hpcgym.load_workload(workload, clean=clean))[:number]


@lru_cache
def batch(workload: str, clean: str, number: int | None) -> BatchSimulator:
    """Return the batch of all weeks; a worker makes it once."""
    return BatchSimulator(slices(workload, clean, number))


def vectors(number: int) -> Any:
    """Return random weights, (number, 6)."""
    return np.random.default_rng(0).uniform(-1, 1, (number, 6))


def row(given: argparse.Namespace, how: str, seconds: float, share: float = 1.0) -> dict[str, Any]:
    """Return a row of a table of speeds."""
    one = batch(given.workload, given.clean, given.weeks)
    simulations = given.vectors * len(one) * share
    return {
        "how": how,
        "seconds": seconds,
        "per_second": simulations / seconds,
        "ns": seconds * 1e9 / (given.vectors * int(one.sizes.sum()) * share),
    }


SPEED = (
    Column("how", "by"),
    Column("seconds", "s", ".3f"),
    Column("per_second", "slice simulations a second", ",.0f"),
    Column("ns", "ns a job", ".1f"),
)


def title(given: argparse.Namespace, what: str) -> str:
    """Return the title of a table."""
    one = batch(given.workload, given.clean, given.weeks)
    jobs = int(one.sizes.sum())
    return f"{what}: {given.vectors} vectors x {len(one)} weeks, {jobs:,} jobs"


def by_threads(given: argparse.Namespace) -> Section:
    """Time the engine's call on one thread, two, and so on, and a loop over simulate."""
    one, weights = batch(given.workload, given.clean, given.weeks), vectors(given.vectors)
    rows = []
    for threads in range(1, threads_here() + 1):
        seconds = best(partial(one.run, weights, threads=threads), given.repeat)
        rows.append(row(given, f"{threads} threads", seconds))
    few = max(given.vectors // 10, 1)
    parts, rules = slices(given.workload, given.clean, given.weeks), find_scheduler("spf")

    def loop() -> None:
        for vector in weights[:few].tolist():
            for part in parts:
                _ = hpcgym.simulate(part, rules.but(policy=tuple(vector))).bsld.mean()

    rows.append(row(given, "loop over simulate", best(loop, 1), few / given.vectors))
    return Section(title(given, "threads"), SPEED, rows)


def share(
    workload: str, clean: str, number: int | None, count: int, first: int, stop: int
) -> list[list[float]]:
    """Do some of the vectors, on one thread."""
    one = batch(workload, clean, number)
    values: list[list[float]] = one.run(vectors(count)[first:stop], threads=1).tolist()
    return values


def by_executors(given: argparse.Namespace) -> Section:
    """Time each executor with one worker, two, and so on, where their number can be chosen."""
    rows = []
    pieces = np.linspace(0, given.vectors, 9).astype(int).tolist()
    expected = batch(given.workload, given.clean, given.weeks).run(vectors(given.vectors))
    for name in given.executors:
        numbers = range(1, threads_here() + 1)
        for workers in numbers if name == "processes" else [None]:
            with open_executor(name, workers) as opened:
                executor: Any = opened

                def run(executor: Any = executor) -> Any:
                    futures = [
                        executor.submit(
                            share, given.workload, given.clean, given.weeks, given.vectors, a, b
                        )
                        for a, b in pairwise(pieces)
                    ]
                    return np.concatenate([future.result() for future in futures])

                if not (run() == expected).all():
                    raise SystemExit(f"{name}: other results than in this process")
                seconds = best(run, given.repeat)
                number = workers or executor.num_workers  # the ranks but the first
            rows.append(row(given, f"{name}, {number} workers", seconds))
    return Section(title(given, "executors"), SPEED, rows)


SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "threads": by_threads,
    "executors": by_executors,
}

if __name__ == "__main__":
    main()
