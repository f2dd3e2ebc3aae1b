"""Schedules to report on."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

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

    @cache
    def simulated(source: str = "lublin:jobs=300,processors=64,load=0.9", scheduler: str = "easy"):
        return simulate(load_workload(source), scheduler)

    return simulated


@pytest.fixture(scope="session")
def make() -> Callable[..., Any]:
    """Return a function that simulates jobs given as (submit, run, processors)."""

    def simulated(jobs: list[tuple[int, int, int]], processors: int = 8, **columns: Any):
        given = {"name": "made", **columns}
        return simulate(few_jobs(processors, *zip(*jobs, strict=True), **given), "easy")

    return simulated
