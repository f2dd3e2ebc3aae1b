"""Machines under limits that are controlled and asked from outside, on both engines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from limit_strategies import Case, limited
from numpy.typing import NDArray
from twins import assert_same_under_limits

from hpcgym._engine import Simulation
from hpcgym.compilation import jit_entry
from hpcgym.engine import state
from hpcgym.engine.machines.limited import controls
from hpcgym.engine.machines.limited.state import CAP, LOG, NEVER, PLENTY
from hpcgym.engine.orders.scores import take_scores
from hpcgym.simulation import driver
from hpcgym.simulation.scoring import Scoring


@jit_entry
def set_control(machine, start, end, mw, off, ceiling):  # type: ignore[no-untyped-def]
    """Set the control of the kernels; what is compiled without checks is not called by Python."""
    controls.set_control(machine, start, end, mw, off, ceiling)


def controlled(simulation: driver.Simulation) -> driver.Simulation:
    """Return it with a control that has not been set yet, as environments begin."""
    machine: Any = simulation.machine
    control = np.zeros(1, CAP)
    control["start"] = control["end"] = control["announced"] = NEVER
    control["mw"] = PLENTY
    own = machine.scalars[0]
    own.controlled = own.limited = own.switches = 1
    caps = np.concatenate([machine.caps, control])
    log = np.empty(16 * len(machine.nodes), LOG)
    return replace(simulation, machine=machine._replace(caps=caps, log=log))


class Controls:
    """Sets controls of both at random, the kernels' first, as between two passes or within one."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.to_set: list[tuple[int, int, int, int] | None] = []  # by whoever comes next

    def __call__(self, simulation: driver.Simulation, native: Simulation) -> None:
        """Do so between two passes."""
        self.draw(simulation.arrays, simulation.machine)
        self.follow(native)

    def draw(self, arrays: state.Prepared, machine: Any) -> None:
        """Set those of the kernels, or let them be."""
        draw, own, n_nodes = self.random.integers, machine.scalars[0], len(machine.nodes)
        if draw(3):
            self.to_set.append(None)
            return
        first = own.counted_to < own.begin
        idle = n_nodes * int(own.rest_mw) + int(own.components_mw)
        most = n_nodes * int(machine.busy_mw[-1]) + int(own.components_mw)
        mw = PLENTY if draw(2) else int(draw(idle * 3 // 4, most + 1))
        off = 0 if draw(2) else int(draw(n_nodes + 1))
        ceiling = int(draw(own.highest + 1))
        start = int(own.begin if first else arrays.sim.time + 1)
        end = state.FOREVER if draw(2) else start + 2 + int(draw(60))
        set_control(machine, start, end, mw, off, ceiling)
        self.to_set.append((end, mw, off, ceiling))

    def follow(self, native: Simulation) -> None:
        """Set those of the native engine alike."""
        told = self.to_set.pop(0)
        if told is not None:
            native.control(*told)


@dataclass(frozen=True)
class Asked(Scoring):
    """Says an order, or which job is served next, that nothing else says; and sets controls."""

    controls: Controls | None

    def __call__(self, arrays: state.Prepared, machine: Any) -> None:
        """Do so of a simulation of the kernels."""
        sim = arrays.sim
        if self.controls is not None:
            self.controls.draw(arrays, machine)
        come = np.arange(len(arrays.jobs)) < sim.next
        waits = np.flatnonzero((arrays.progress["start"] < 0) & come)
        if sim.primary == state.SELECTION:
            sim.selected = self.first(waits, int(sim.time))
        else:
            take_scores(arrays.scores, arrays.blocks, waits, self.scores(waits, int(sim.time)))

    def answer(self, jobs: NDArray[np.void], machine: Any, native: Simulation) -> None:
        """Do so of a simulation of the native engine."""
        if self.controls is not None:
            self.controls.follow(native)
        waits = np.sort(native.view()["queued"])
        if native.asked == "job":
            native.select(self.first(waits, native.time))
        else:
            native.order(waits, self.scores(waits, native.time))

    def scores(self, jobs: NDArray[np.int64], time: int) -> NDArray[np.float64]:
        """Return scores that change with time."""
        return np.sin(jobs * 7.0 + time)

    def first(self, jobs: NDArray[np.int64], time: int) -> int:
        """Return the job with the highest."""
        return int(jobs[np.argmax(self.scores(jobs, time))])


def asking(
    selects: bool, controls: Controls | None, simulation: driver.Simulation
) -> driver.Simulation:
    """Return it with somebody who is asked."""
    sim, nobody = simulation.arrays.sim, cast(Any, None)
    if selects:
        sim.asks, sim.primary, sim.selected = state.EACH_JOB, state.SELECTION, -1
    if controls is not None:
        simulation = controlled(simulation)
    return replace(simulation, dispatch=Asked(nobody, nobody, None, controls))


def asked_for(case: Case) -> Case:
    """The case with a policy that is a function, which nobody calls."""
    return replace(case, rules=case.rules | {"policy": lambda view: view.job, "threshold": None})


@pytest.mark.parametrize("kinds", ["none", "caps", "budgets", "both"])
@settings(max_examples=200)
@given(st.data())
def test_controls_at_random_times(kinds: str, data: st.DataObject) -> None:
    case, meanwhile = data.draw(limited(kinds)), Controls(data.draw(st.integers(0, 2**32)))
    pieces = data.draw(st.sampled_from([1, 3]))
    assert assert_same_under_limits(case, pieces, controlled, meanwhile)


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@pytest.mark.parametrize("selects", [False, True])
@settings(max_examples=200)
@given(st.data())
def test_questions_come_after_what_limits_do(
    kinds: str, selects: bool, data: st.DataObject
) -> None:
    case, meanwhile = asked_for(data.draw(limited(kinds))), None
    if data.draw(st.booleans()):
        meanwhile = Controls(data.draw(st.integers(0, 2**32)))
    made = partial(asking, selects, meanwhile)
    assert assert_same_under_limits(case, 1, made, meanwhile)
