"""One trace under one reading of the paper: weeks, pure policies, all vectors, searches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import HpcgymError, Scheduler, Workload
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.benchmarks.studies import harness
from hpcgym.benchmarks.studies.harness import Folder, Progress, load_jobs
from hpcgym.benchmarks.studies.store import Store
from hpcgym.errors import check_choice, check_whole
from hpcgym.scheduler.policies import POLICIES, WEIGHTED_FEATURES
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.units import MONTH_S, WEEK_S
from hpcgym.workload.fingerprint import fingerprint

Floats = NDArray[np.float64]
#: Weeks or months by number.
Parts = Mapping[int, Workload]

# --- The two ways to read the paper ---------------------------------------------------------------

#: The cleaning recipe of both readings.
RECIPE = "legrand"

#: Section 6.1: how many consecutive weeks of a trace.
WEEKS = {"KTH-SP2": 45, "CTC-SP2": 45, "SDSC-SP2": 100, "SDSC-BLUE": 100}


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


READINGS = harness.readings(Reading, __file__)


def weeks(workload: Workload, reading: Reading, number: int | None) -> dict[int, Workload]:
    """Return the weeks from number 1 to ``number``, or to the last that has jobs.

    In the paper's numbers, if it has this trace; of others week 1 is the second from time 0.
    """
    first = reading.first_week if workload.name in WEEKS else 1
    numbered = _periods(workload, reading, WEEK_S, first, "week")
    return {week: part for week, part in numbered.items() if number is None or week <= number}


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
        start = workload.submit_time + np.maximum(workload.wait_time, 0)
        until = start + np.maximum(workload.run_time, 0)
        workload = workload.take(start // period_s == until // period_s)
    period = workload.submit_time // period_s
    periods = {}
    for number in np.unique(period[period >= first]).tolist():
        begin, end = np.searchsorted(period, [number, number + 1]).tolist()
        name = f"{workload.name} {label} {number}"
        periods[number - first + 1] = workload.take(slice(begin, end), name=name)
    return periods


# --- All vectors of three weights on a grid -------------------------------------------------------

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

#: Section 8.1.2: "Each dimension of the vector gets 100 point"; of months the paper says nothing.
POINTS, MONTH_POINTS = 100, 30

#: Section 7.2.1: weeks of training and testing; section 9.3 halves the weeks of other traces.
SPLIT = {"SDSC-SP2": ((28, 64), (65, 100))}


class Study:
    """The weeks and months of a trace, and the bounded slowdowns of policies on them.

    Parameters
    ----------
    source : a trace of the archive, a file or a generator, as for ``hpcgym simulate``.
    reading : "text" or "numbers", see :data:`READINGS`.
    folder : where results are kept.
    points : values of a weight in the grid of weeks; months have at most :data:`MONTH_POINTS`.
    quick : a small cut: few weeks, a coarse grid, short searches.
    progress : told of each step.

    Attributes
    ----------
    trace : name of the trace, as the paper has it.
    workload : the cleaned trace.
    weeks, months : number -> jobs, by the paper's numbers; no months of a short trace.
    train, test : numbers of the weeks of the two halves (section 7.2.1).
    points, month_points : values of a weight in the grids of weeks and months.
    budget : evaluations of a search for one week.

    Raises
    ------
    HpcgymError : a source that cannot be read, an unknown reading, less than two points or weeks.
    """

    def __init__(
        self,
        source: str,
        reading: str,
        *,
        folder: Path,
        points: int = POINTS,
        quick: bool = False,
        progress: Progress = harness.no_progress,
    ) -> None:
        check_choice("reading", reading, READINGS)
        check_whole("points", points, 2)
        self.reading, self.progress, self.quick = READINGS[reading], progress, quick
        self.workload = load_jobs(source, clean=RECIPE)
        self.trace = self.workload.name
        self.points, self.month_points = (8, 6) if quick else (points, min(points, MONTH_POINTS))
        self.budget = 120 if quick else 2000
        self.weeks = weeks(self.workload, self.reading, 6 if quick else WEEKS.get(self.trace))
        if len(self.weeks) < 2:
            raise HpcgymError(
                f"{self.trace} has jobs in {len(self.weeks)} of the weeks of the study (reading"
                f" {reading}); it needs two"
            )
        every_month = months(self.workload, self.reading)
        self.months = {
            month: part for month, part in every_month.items() if not quick or month <= 3
        }
        self.train, self.test = self._halves()
        self.store = Store(folder / "steps")

    def _halves(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the weeks of training and of testing."""
        numbers = list(self.weeks)
        half = numbers[len(numbers) // 2 - 1]
        halves = (numbers[0], half), (half + 1, numbers[-1])
        first, second = halves if self.quick else SPLIT.get(self.trace, halves)
        return (
            [week for week in numbers if first[0] <= week <= first[1]],
            [week for week in numbers if second[0] <= week <= second[1]],
        )

    def rules(self, threshold: float | None = THRESHOLD_S) -> Scheduler:
        """Return the paper's rules: EASY, SPF backfilling, all but the policy."""
        return find_scheduler("spf").but(threshold=threshold)

    def batch(
        self,
        parts: Parts,
        threshold: float | None = THRESHOLD_S,
        features: Sequence[str] = WEIGHTED_FEATURES,
    ) -> BatchSimulator:
        """Return a simulator of weeks or months under many weight vectors."""
        rules, tau = self.rules(threshold), self.reading.tau_s
        return BatchSimulator(list(parts.values()), features, rules, tau=tau)

    def step(
        self,
        name: str,
        parts: Parts,
        inputs: Mapping[str, Any],
        compute: Callable[[], Mapping[str, Any]],
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays of a step on weeks or months, from disk if they are there."""
        known = {"jobs": fingerprint(parts.values()), "tau": self.reading.tau_s}
        known |= {"rules": repr(self.rules()), **inputs}
        return self.store.step(f"{self.trace}-{name}", known, compute)

    def covers(self) -> dict[str, tuple[dict[int, Workload], int]]:
        """Return the weeks and the months, each with the values of a weight in their grid.

        A single month is no study of months: it cannot be both of training and of testing.
        """
        covers = {"week": (self.weeks, self.points)}
        if len(self.months) >= 2:
            covers["month"] = (self.months, self.month_points)
        return covers

    def pure(self, parts: Parts, threshold: float | None = THRESHOLD_S) -> Floats:
        """Return the mean BSLD of the pure policies, (12, n_parts) in the order of PURE."""

        def compute() -> dict[str, Floats]:
            return {"bsld": self.batch(parts, threshold).run(pure_weights())}

        inputs = {"threshold": threshold, "policies": PURE}
        return self.step("pure", parts, inputs, compute)["bsld"]


def pure_weights() -> Floats:
    """Return the weights of the pure policies, (12, 6)."""
    weights = [POLICIES[name].weights for name in PURE]
    return np.array([[row.get(name, 0.0) for name in WEIGHTED_FEATURES] for row in weights])


# --- The best vectors of three weights ------------------------------------------------------------


def covered(study: Study, number: int, part: Workload, points: int) -> dict[str, Any]:
    """Return the mean BSLD of one week under all vectors, ``values`` (points, points, points)."""

    def compute() -> dict[str, Any]:
        began = time.perf_counter()
        vectors = grid(points)
        batch = study.batch({number: part}, features=THREE)
        values = batch.run(vectors.weights)[:, 0]
        return {"values": values[vectors.places], "seconds": time.perf_counter() - began}

    inputs = {"features": THREE, "points": points, "threshold": THRESHOLD_S}
    return study.step("cover", {number: part}, inputs, compute)


def optimum(study: Study, parts: Parts, train: Sequence[int], points: int) -> pd.DataFrame:
    """Try all vectors of three weights on all weeks (or months) and find the best ones.

    Parameters
    ----------
    study : the trace and the reading.
    parts : weeks or months of it.
    train : numbers of those that w*_train is the best of.
    points : values of a weight.

    Returns
    -------
    table : a row a week. "w*", the least mean BSLD of any vector; "w*_train", that of the vector
        with the least sum over the weeks of training; "w_greedy", the mean over the best vectors of
        the week before, NaN without; "mean, q < 0" and "mean, q > 0" of the vectors with such a
        weight of processors; "seconds" of computing, whichever process or earlier run did it.
    """
    total = np.zeros((points,) * len(THREE))
    rows: list[dict[str, float]] = []
    before: tuple[int, NDArray[np.bool_]] | None = None
    for number, part in parts.items():
        step = covered(study, number, part, points)
        values = step["values"]
        known = before is not None and before[0] == number - 1
        greedy = values[before[1]].mean() if before and known else np.nan
        row = {"w*": values.min(), "w*_train": np.nan, "w_greedy": greedy}
        row |= {"mean, q < 0": values[: points // 2].mean()}
        row |= {"mean, q > 0": values[-(points // 2) :].mean()}
        rows.append(row | {"seconds": float(step["seconds"])})
        before = number, values == values.min()
        if number in train:
            total += values
    chosen = vector(points, int(total.argmin()))
    table = pd.DataFrame(rows, index=pd.Index(list(parts)))
    table["w*_train"] = study.batch(parts, features=THREE).run(chosen[np.newaxis])[0]
    simulated = float(table.loc[list(train), "w*_train"].sum())
    if not np.isclose(simulated, total.min(), rtol=1e-9):
        raise HpcgymError(
            f"{study.trace}: the weeks say {total.min()} of w*_train, the simulation {simulated}"
        )
    return table


# --- XNES over the weights of each week -----------------------------------------------------------

#: Section 8.1.1: XNES from one start over the weights as they are, with the penalty of equation 6;
#: where it starts, its steps and lambda are not printed.
PLAIN: dict[str, Any] = {"scale": "none", "samples": 0, "restarts": 1, "sigma": 1.0, "penalty": 1.0}
#: The searches over three and six features, as :mod:`hpcgym.agents.xnes` calls these.
SEARCHES = ("xnes3", "xnes6")

SEED = 0


def searched(study: Study, name: str) -> Floats:
    """Return the least mean BSLD of each week that a search finds."""
    from hpcgym.agents.xnes import Xnes

    budget, tau, rules = study.budget, study.reading.tau_s, study.rules()
    search = Xnes(name, budget=budget, seed=SEED, scheduler=rules, tau=tau, **PLAIN)
    parts = list(study.weeks.values())
    what = f"{study.trace}: {name}, {budget:,} evaluations of {len(parts)} weeks at once"

    def compute() -> dict[str, Any]:
        agents = search.fit_each(
            parts, progress=lambda done, best: study.progress(what, done, budget)
        )
        return {"bsld": np.array([agent.best_ for agent in agents])}

    return study.step(name, study.weeks, search.settings(), compute)["bsld"]


# --- The long part of the study, on any executor --------------------------------------------------


def cover_on(study: Study, source: str, folder: Folder) -> None:
    """Try all vectors of three weights on all weeks and months on which they were not yet.

    What a worker leaves in a folder that is not this one is worked out here again.

    Parameters
    ----------
    study : the trace and the reading, with results in ``folder``.
    source : what the trace was loaded from.
    folder : where the study is run.

    Raises
    ------
    HpcgymError : a task that failed again and again.
    """
    folder_of, reading = str(folder.path.resolve()), study.reading.name
    same = {"source": source, "reading": reading, "folder": folder_of, "quick": study.quick}
    tasks = [
        {**same, "points": study.points, "period": period, "number": number}
        | {"jobs_sha256": fingerprint([part])}
        for period, (parts, _) in study.covers().items()
        for number, part in parts.items()
    ]
    what = f"{study.trace}: all vectors on {len(tasks)} weeks and months"
    folder.run(cover_one, tasks, "weeks and months", "steps/tasks", what=what, chunk=1)


def cover_one(task: dict[str, Any]) -> dict[str, Any]:
    """Try all vectors on one week or month; the result lies in the study's folder."""
    study = _study(task["source"], task["reading"], task["folder"], task["points"], task["quick"])
    parts, points = study.covers()[task["period"]]
    harness.check_same_jobs(
        task["source"], fingerprint([parts[task["number"]]]), task["jobs_sha256"]
    )
    step = covered(study, task["number"], parts[task["number"]], points)
    return {"best": float(step["values"].min())}


@lru_cache(maxsize=2)
def _study(source: str, reading: str, folder: str, points: int, quick: bool) -> Study:
    """Return the study; a worker reads a trace once."""
    return Study(source, reading, folder=Path(folder), points=points, quick=quick)
