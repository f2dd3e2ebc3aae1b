"""One trace under one reading of the paper: its weeks, its policies, and grids of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.benchmarks.mixed_policies.published import SPLIT
from hpcgym.benchmarks.studies.harness import Progress, load_jobs, no_progress, readings
from hpcgym.benchmarks.studies.store import Store
from hpcgym.benchmarks.studies.weeks import WEEKS
from hpcgym.errors import HpcgymError, WorkloadError, check_choice
from hpcgym.naming import MONTH_S, WEEK_S
from hpcgym.scheduler.policies import POLICIES, WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.workload.extracts import slices
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

# --- The two ways to read the paper ---------------------------------------------------------------

#: The cleaning recipe of both readings.
RECIPE = "legrand"


@dataclass(frozen=True)
class Reading:
    """How the paper is read where its text and its numbers disagree.

    Attributes
    ----------
    name : "text" or "numbers".
    meaning : for people.
    tau_s : run times below it count as it in bounded slowdowns, seconds.
    drops_crossing : whether jobs that logged a start and an end in different periods are dropped.
    first_week : number, counted from the trace's time 0, of the paper's week 1.
    """

    name: str
    meaning: str
    tau_s: int
    drops_crossing: bool
    first_week: int


READINGS = readings(Reading, __file__)


def find_reading(name: str) -> Reading:
    """Return a reading by name.

    Raises
    ------
    HpcgymError : an unknown name.
    """
    check_choice("reading", name, READINGS)
    return READINGS[name]


def weeks(workload: Workload, reading: Reading, number: int | None) -> dict[int, Workload]:
    """Return the weeks from number 1 to ``number``, or to the last that has jobs.

    In the paper's numbers, if it has this trace; of others week 1 is the second from time 0.
    """
    first = reading.first_week if workload.name in WEEKS else 1
    found = _periods(workload, reading, WEEK_S, first, "week")
    return {week: part for week, part in found.items() if number is None or week <= number}


def months(workload: Workload, reading: Reading) -> dict[int, Workload]:
    """Return the months of 30 days from the second of the trace on, which is number 1.

    A trace that ends before has none.
    """
    return _periods(workload, reading, MONTH_S, 1, "month")


def _periods(
    workload: Workload, reading: Reading, period_s: int, first: int, label: str
) -> dict[int, Workload]:
    """Return the periods that have jobs, the one numbered ``first`` from time 0 as number 1."""
    if reading.drops_crossing:
        try:
            parts = slices(workload, period_s, first=first, label=label, origin_s=0)
        except WorkloadError:  # no job in any of them
            return {}
        return {int(part.name.rpartition(" ")[2]) - first + 1: part for part in parts}
    period = workload.submit_time // period_s
    found = {}
    for number in np.unique(period[period >= first]).tolist():
        begin, end = np.searchsorted(period, [number, number + 1]).tolist()
        name = f"{workload.name} {label} {number}"
        found[number - first + 1] = workload.take(slice(begin, end), name=name)
    return found


# --- All vectors of three weights on a grid -------------------------------------------------------

Floats = NDArray[np.float64]

#: The features of Legrand et al. 2018, section 7.
THREE = ("processors", "requested", "wait")


class Grid(NamedTuple):
    """The vectors of a grid; those that are multiples of each other are one policy, simulated once.

    Attributes
    ----------
    points : (n_points,) what each weight can be, evenly spaced from -1 to 1.
    weights : (n_directions, 3) each direction once, divided by ||w||_1; all 0 stands for FCFS.
    places : (n_points, n_points, n_points) which direction the vector of three points has.
    """

    points: Floats
    weights: Floats
    places: NDArray[np.int64]


@lru_cache(maxsize=2)
def grid(n_points: int) -> Grid:
    """Return the vectors with ``n_points`` values for each of three weights."""
    codes = _in_steps(np.arange(n_points**3), n_points) @ [4 * n_points**2, 2 * n_points, 1]
    _, chosen, places = np.unique(codes, return_index=True, return_inverse=True)
    weights = vector(n_points, chosen)
    return Grid(np.linspace(-1.0, 1.0, n_points), weights, places.reshape((n_points,) * 3))


def vector(points: int, place: int | NDArray[np.int64]) -> Floats:
    """Return the weights that stand for vectors of the grid, (..., 3), divided by ||w||_1.

    Parameters
    ----------
    points : values of each weight.
    place : in the flattened cube of all vectors.
    """
    reduced = _in_steps(np.asarray(place), points)
    weights: Floats = reduced / np.maximum(np.abs(reduced).sum(axis=-1, keepdims=True), 1)
    return weights


def _in_steps(place: NDArray[np.int64], points: int) -> NDArray[np.int64]:
    """Return vectors in whole steps of half the spacing, without their common divisor."""
    cube = np.stack(np.unravel_index(place, (points,) * len(THREE)), axis=-1)
    steps = 2 * cube - (points - 1)
    return np.asarray(steps // np.maximum(np.gcd.reduce(steps, axis=-1, keepdims=True), 1))


# --- One trace under one reading of the paper -----------------------------------------------------

#: Section 4.2: the twelve pure policies.
PURE = tuple(POLICIES)[:12]

#: Section 5.2: seconds of waiting after which a job goes to the head of the queue.
THRESHOLD_S = 200_000


class Study:
    """The weeks and months of a trace, and the bounded slowdowns of policies on them.

    Parameters
    ----------
    source : a trace of the archive, a file or a generator, as for ``hpcgym simulate``.
    reading : "text" or "numbers", see ``readings.READINGS``.
    folder : where results are kept.
    quick : a small cut: few weeks, a coarse grid, short searches.
    progress : told of each step.

    Attributes
    ----------
    trace : name of the trace, as the paper has it.
    workload : the cleaned trace.
    weeks, months : number -> jobs, by the paper's numbers; no months of a short trace.
    train, test : numbers of the weeks of the two halves (section 7.2.1).
    points, month_points : values of a weight in the grids of weeks and months.
    budgets : evaluations of a search for one week, least first; figures show those of the least.

    Raises
    ------
    HpcgymError : a source that cannot be read, an unknown reading, or less than two weeks.
    """

    def __init__(
        self,
        source: str,
        reading: str,
        *,
        folder: Path,
        quick: bool = False,
        progress: Progress = no_progress,
    ) -> None:
        self.reading = find_reading(reading)
        self.workload = load_jobs(source, clean=RECIPE)
        self.trace = self.workload.name
        self.progress = progress
        self.quick = quick
        self.points, self.month_points = (8, 6) if quick else (100, 30)
        self.budgets = (60, 120) if quick else (500, 1000, 2000)
        last = 6 if quick else WEEKS.get(self.trace)
        self.weeks = weeks(self.workload, self.reading, last)
        if len(self.weeks) < 2:
            raise HpcgymError(
                f"{self.trace} has jobs in {len(self.weeks)} of the weeks of the study (reading"
                f" {reading}); it needs two"
            )
        found = months(self.workload, self.reading)
        self.months = {month: part for month, part in found.items() if not quick or month <= 3}
        self.train, self.test = self._halves()
        self.store = Store(folder / "steps")

    def _halves(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the weeks of training and of testing."""
        numbers = list(self.weeks)
        if self.trace in SPLIT and not self.quick:
            first, second = SPLIT[self.trace]
        else:
            half = numbers[len(numbers) // 2 - 1]
            first, second = (numbers[0], half), (half + 1, numbers[-1])
        return (
            [week for week in numbers if first[0] <= week <= first[1]],
            [week for week in numbers if second[0] <= week <= second[1]],
        )

    def rules(self, threshold: float | None = THRESHOLD_S) -> Scheduler:
        """Return the paper's rules: EASY, SPF backfilling, all but the policy."""
        return find_scheduler("spf").but(threshold=threshold)

    def batch(
        self,
        parts: Mapping[int, Workload],
        threshold: float | None = THRESHOLD_S,
        features: Sequence[str] = WEIGHTED_FEATURES,
    ) -> BatchSimulator:
        """Return a simulator of weeks or months under many weight vectors."""
        rules, tau = self.rules(threshold), self.reading.tau_s
        return BatchSimulator(list(parts.values()), features, rules, tau=tau)

    def step(
        self,
        name: str,
        parts: Mapping[int, Workload],
        inputs: Mapping[str, Any],
        compute: Callable[[], Mapping[str, Any]],
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays of a step on weeks or months, from disk if they are there."""
        known = {
            "jobs": fingerprint(parts.values()),
            "tau": self.reading.tau_s,
            "rules": repr(self.rules()),
            **inputs,
        }
        return self.store.step(f"{self.trace}-{name}", known, compute)

    def covers(self) -> dict[str, tuple[dict[int, Workload], int]]:
        """Return the weeks and the months, each with the values of a weight in their grid.

        A single month is no study of months: it cannot be both of training and of testing.
        """
        found = {"week": (self.weeks, self.points)}
        if len(self.months) >= 2:
            found["month"] = (self.months, self.month_points)
        return found

    def pure(
        self, parts: Mapping[int, Workload], threshold: float | None = THRESHOLD_S
    ) -> NDArray[np.float64]:
        """Return the mean BSLD of the pure policies, (12, n_parts) in the order of PURE."""

        def compute() -> dict[str, NDArray[np.float64]]:
            return {"bsld": self.batch(parts, threshold).run(pure_weights())}

        inputs = {"threshold": threshold, "policies": PURE}
        return self.step("pure", parts, inputs, compute)["bsld"]


def pure_weights() -> NDArray[np.float64]:
    """Return the weights of the pure policies, (12, 6)."""
    weights = [POLICIES[name].weights for name in PURE]
    return np.array([[row.get(name, 0.0) for name in WEIGHTED_FEATURES] for row in weights])
