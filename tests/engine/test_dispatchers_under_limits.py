"""Dispatchers on nodes of jobs' own, under limits: beside the slow simulator and other machines."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import accumulate, takewhile
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from limit_strategies import Case, limited, possible, simulate_pool
from pieces import same_in_pieces
from test_under_limits import check_same

import hpcgym
from hpcgym import simulate
from hpcgym.baselines.dispatchers import DISPATCHERS
from hpcgym.reference.limits import LimitedSimulation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.dispatchers import PassView

pytestmark = pytest.mark.slow

KINDS = ["none", "caps", "switching", "budgets", "both"]
LISTS = [name for name in DISPATCHERS if name.endswith(("-list", "prb"))]
#: Of a case, what goes beside a dispatcher.
BESIDE = ("estimate", "correction", "allocation", "power")


def dispatched(case: Case, dispatcher: Any) -> Result:
    """Return what a dispatcher makes of a case that can be simulated."""
    rules = {rule: case.rules[rule] for rule in BESIDE}
    limits = {"cluster": case.cluster, "limits": case.limits}
    return possible(partial(simulate, case.workload, dispatcher, **limits, **rules))


# --- Beside the slow simulator ------------------------------------------------------------------


def whims(time: int, jobs: list[int], widths: list[int], free: int, runs: bool) -> list[int]:
    """Return places of a queue: what nobody would want, always the same of the same pass."""
    chance = random.Random(repr((time, jobs)))
    order = chance.sample(range(len(jobs)), len(jobs))
    held = accumulate(widths[place] for place in order)
    fit = [p for p, _ in takewhile(lambda pair: pair[1] <= free, zip(order, held, strict=True))]
    least = 0 if runs else 1
    return fit[: chance.randint(min(least, len(fit)), len(fit))] or ([] if runs else fit)


class Whimsical(LimitedSimulation):
    """Asks what starts, and notes what could be seen then."""

    def __init__(self, *given: Any, **rules: Any) -> None:
        super().__init__(*given, **rules)
        self.seen: list[Any] = []
        self.held_back = dict.fromkeys(range(len(self.jobs)), 0)

    def start_in_order(self, now: int) -> None:
        queue = sorted(self.queue, key=lambda job: job.number)
        allowed = [self.best(job, backfills=False) is not None for job in queue]
        if not any(allowed):
            return
        numbers, widths = [job.number for job in queue], [job.width for job in queue]
        free = [n for n, node in enumerate(self.nodes) if node.job is None]
        on = sorted((job.number, job.start, list(job.cells)) for job in self.running)
        held = [self.held_back[number] for number in numbers]
        self.seen.append((now, numbers, allowed, held, widths, free, on))
        named = whims(now, numbers, widths, len(free), bool(self.running))
        for count, place in enumerate(named):
            also = self.best(queue[place], backfills=False)
            if also is None:
                for waits in named[count:]:
                    self.held_back[numbers[waits]] += 1
                return
            self.start_as(also, backfills=False)


def whimsical(view: PassView, seen: list[Any]) -> list[int]:
    """Return the same as a dispatcher does, and note the same of its view."""
    numbers, widths = view.job.tolist(), view.units.tolist()
    free = np.flatnonzero(view.free[:, 0]).tolist()
    assert (view.free[free] == view.capacity[free]).all()
    assert (view.per_unit == view.capacity[0]).all()
    cells = np.split(view.running_node, view.running_first[1:-1])
    runs = zip(view.running_job.tolist(), view.running_start.tolist(), cells, strict=False)
    on = sorted((job, start, nodes.tolist()) for job, start, nodes in runs)
    allowed, held = view.allowed.tolist(), view.held_back.tolist()
    seen.append((view.time, numbers, allowed, held, widths, free, on))
    return whims(view.time, numbers, widths, len(free), bool(on))


@pytest.mark.parametrize("kinds", KINDS)
@settings(max_examples=60)
@given(st.data(), st.integers(0, 10**6))
def test_what_is_seen_and_starts_is_the_slow_simulators(
    kinds: str, data: st.DataObject, seed: int
) -> None:
    """Also where it goes on in pieces."""
    case, seen = data.draw(limited(kinds)), list[list[Any]]()

    def dispatched_again() -> Result:
        seen.append([])
        return dispatched(case, partial(whimsical, seen=seen[-1]))

    result = same_in_pieces(seed, dispatched_again)
    rules = case.rules | {"policy": "fcfs", "backfill": "none", "threshold": None}
    slow = simulate_pool(replace(case, rules=rules), Whimsical)
    assert isinstance(slow, Whimsical)
    assert seen == [slow.seen] * 2
    check_same(result, slow)
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize("name", LISTS)
@settings(max_examples=25)
@given(case=limited("caps switching budgets both"))
def test_limits_are_kept_whatever_a_dispatcher_names(name: str, case: Case) -> None:
    result = dispatched(case, name)
    proofs = hpcgym.validate_schedule(result)
    assert {"caps", "budgets", "alone", "levels"} <= set(proofs)
