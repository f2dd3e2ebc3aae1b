"""How many schedules that a rule cannot have made pass `hpcgym.validate_schedule`, by rule.

    python benchmarks/forgeries.py [--number 1000]

From the schedule of each rule schedules are forged in which no more processors are used than there
are: one job is delayed to the next event or to a later one, two jobs that wait together exchange
their starts, or a job that waits starts at an earlier event at which it fits. All else is as it
was. The table has how many of so many forgeries pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import click
import gymnasium
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import hpcgym
from hpcgym.baselines.chance import RandomActions
from hpcgym.progress import counting
from hpcgym.schedule.result import Result
from hpcgym.study.evaluation.environments import act_out
from hpcgym.validation.validate import ScheduleError

JOBS = "lublin:jobs=1000,processors=128,seed=5,load=0.9"
_FAR = 50  # events by which a job is delayed at most

Ints = NDArray[np.int64]


def newest_first(view: Any) -> NDArray[np.float64]:
    """Score jobs as a function of a user's, of which no proof knows the order."""
    return -np.asarray(view.wait, np.float64)


def acted(name: str) -> Result:
    """Return the schedule of an agent that acts at random."""
    whole: Any = {"episodes": "whole", "part": "all", "start": "empty", "arrivals": "stop"}
    env: Any = gymnasium.make(f"hpcgym/{name}", workload=JOBS, window=128, **whole)
    act_out(RandomActions(0), env, *env.reset(seed=0))
    result: Result = env.unwrapped.result()
    return result


def by(scheduler: str, **rules: Any) -> Callable[[], Result]:
    """Return what simulates a scheduler, with some rules changed."""
    return lambda: hpcgym.simulate(JOBS, scheduler, **rules)


#: What is said of a rule -> its schedule.
RULES: dict[str, Callable[[], Result]] = {
    "`fcfs`": by("fcfs"),
    "`easy`": by("easy"),
    "`easy++`": by("easy++"),
    "`saf`": by("saf"),
    "`wfp3`": by("wfp3"),
    "`aged`": by("aged"),
    "`evolved`": by("evolved"),
    "`wait - queued * requested`": by("easy", policy="wait - queued * requested"),
    "`wfp3`, passes per event": by("wfp3", passes="per-event"),
    "`fairshare`": by("easy", policy="fairshare"),
    "a function in Python": by("easy", policy=newest_first),
    "an agent in `JobSelection`": lambda: acted("JobSelection-v2"),
    "an agent in `Backfill`": lambda: acted("Backfill-v2"),
    "`saf`, `hold=0.1`": by("saf", hold=0.1),
    "`saf`, `depth:10`": by("saf", backfill="depth:10"),
    "`conservative`": by("conservative"),
}


def delays(result: Result, rng: np.random.Generator, far: int) -> Iterator[Ints]:
    """Yield starts with one job delayed by one event, or by up to ``far``."""
    events = np.unique(np.concatenate((result.workload.submit_time, result.end)))
    while True:
        start = result.start.copy()
        job = rng.integers(len(start))
        place = np.searchsorted(events, start[job]) + rng.integers(1, far + 1)
        if place < len(events):
            start[job] = events[place]
            yield start


def swaps(result: Result, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield starts of which two jobs that were in the queue together have each other's."""
    submit, begin = result.workload.submit_time, result.start
    while True:
        start, job = begin.copy(), rng.integers(len(begin))
        together = (submit <= begin[job]) & (submit[job] <= begin) & (begin != begin[job])
        others = np.flatnonzero(together)
        if others.size:
            other = rng.choice(others)
            start[[job, other]] = start[[other, job]]
            yield start


def early(result: Result, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield starts with one job that waited started at an event before."""
    events = np.unique(np.concatenate((result.workload.submit_time, result.end)))
    waited = np.flatnonzero(result.wait > 0)
    while True:
        start, job = result.start.copy(), rng.choice(waited)
        low, high = np.searchsorted(events, (result.workload.submit_time[job], start[job]))
        start[job] = events[rng.integers(low, high)]
        yield start


#: What is forged -> starts without an end, each possible or not.
FORGERIES: dict[str, Callable[[Result, np.random.Generator], Iterator[Ints]]] = {
    "next event": lambda result, rng: delays(result, rng, 1),
    "later event": lambda result, rng: delays(result, rng, _FAR),
    "swap": swaps,
    "earlier event": early,
}


def is_possible(result: Result, start: Ints) -> bool:
    """Return whether starts use no more processors than there are."""
    width = result.workload.requested_processors
    times = np.concatenate((start + result.run_time, start))
    order = np.argsort(times, kind="stable")  # ends first
    used = np.cumsum(np.concatenate((-width, width))[order])
    return bool(used.max() <= result.cluster.processors)


def passes(result: Result) -> bool:
    """Return whether a schedule passes."""
    try:
        hpcgym.validate_schedule(result)
    except ScheduleError:
        return False
    return True


def passing(result: Result, forged: Iterator[Ints], number: int) -> int:
    """Return how many of so many possible forgeries pass."""
    possible = (start for start in forged if is_possible(result, start))
    return sum(passes(replace(result, start=next(possible))) for _ in range(number))


@click.command
@click.option("--number", default=1000, show_default=True)
def main(number: int) -> None:
    """Print how many forgeries of each kind pass, of so many of each."""
    rows: dict[str, dict[str, int]] = {}
    with counting("rules", len(RULES)) as step:
        for name, made in RULES.items():
            step(name)
            result = made()
            assert passes(result), name
            rows[name] = {
                kind: passing(result, forge(result, np.random.default_rng(0)), number)
                for kind, forge in FORGERIES.items()
            }
    print(f"of {number:,} forgeries of each kind, how many pass; {JOBS}")
    print(pd.DataFrame(rows).T.to_string())


if __name__ == "__main__":
    main()
