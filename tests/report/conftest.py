"""Schedules to report on."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs

from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload


@pytest.fixture(scope="module", autouse=True)
def _one_date() -> Iterator[None]:
    """Pages and pictures tell when they were written: they are compared with others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "0")
        yield


@pytest.fixture(scope="session")
def schedule() -> Callable[..., Any]:
    """Return a function that simulates a generated workload, each once."""
    known: dict[tuple[str, str], Any] = {}

    def simulated(source: str = "lublin:jobs=300,processors=64,load=0.9", scheduler: str = "easy"):
        if (source, scheduler) not in known:
            known[source, scheduler] = simulate(load_workload(source), scheduler)
        return known[source, scheduler]

    return simulated


@pytest.fixture(scope="session")
def make() -> Callable[..., Any]:
    """Return a function that simulates jobs given as (submit, run, processors)."""

    def simulated(jobs: list[tuple[int, int, int]], processors: int = 8, **columns: Any):
        submit, run, size = (np.array(column) for column in zip(*jobs, strict=True))
        given = {"name": "made", **columns}
        return simulate(few_jobs(processors, submit, run, size, **given), "easy")

    return simulated
