"""One trace under one reading of the paper: its weeks, and the simulations that the rest needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.benchmarks.mixed_policies.published import SPLIT
from hpcgym.benchmarks.mixed_policies.readings import RECIPE, find_reading, months, weeks
from hpcgym.benchmarks.studies.logs import load_jobs
from hpcgym.benchmarks.studies.progress import Progress, no_progress
from hpcgym.benchmarks.studies.store import Store, code
from hpcgym.benchmarks.studies.weeks import WEEKS
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies import POLICIES, WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep import BatchSimulator
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

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
    folder : where results are kept; without one nothing is.
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
        folder: Path | None = None,
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
        self._folder = folder
        self.store = None if folder is None else Store(folder / "steps")

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
        if self.store is None:
            return {key: np.asarray(value) for key, value in compute().items()}
        return self.store.step(*self._key(name, parts, inputs), compute)

    def file(
        self, name: str, parts: Mapping[int, Workload], inputs: Mapping[str, Any]
    ) -> Path | None:
        """Return where a step's arrays are kept once they are computed; None if nothing is."""
        return None if self.store is None else self.store.path(*self._key(name, parts, inputs))

    def _key(
        self, name: str, parts: Mapping[int, Workload], inputs: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """Return the name of a step, and all that its arrays depend on."""
        known = {
            "jobs": fingerprint(parts.values()),
            "tau": self.reading.tau_s,
            "rules": repr(self.rules()),
            "code": code(),
            **inputs,
        }
        return f"{self.trace}-{name}".replace("/", "-"), known

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
