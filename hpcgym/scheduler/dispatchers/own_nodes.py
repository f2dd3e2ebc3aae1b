"""Asking a dispatcher where each job has nodes of its own, and so under limits of power and energy.

What it answers is a queue: it is served in that order, without backfilling. The first job that
limits do not let start now waits, and all behind it; at the next pass it is asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.limited import easy
from hpcgym.engine.machines.limited.state import LimitedNodes
from hpcgym.engine.state import FOREVER, Prepared
from hpcgym.scheduler.dispatchers.asking import (
    Facts,
    Start,
    ask,
    check_goes_on,
    present_of,
    refuse_start,
    seen,
)
from hpcgym.scheduler.dispatchers.view import PassView

Ints = NDArray[np.int64]


def propose(
    dispatcher: Callable[[PassView], Iterable[Any]],
    arrays: Prepared,
    machine: LimitedNodes,
    facts: Facts,
    capacity: Ints,
    held_back: Ints,
) -> None:
    """Ask a dispatcher what is to start at this pass, and start of it what limits allow.

    Parameters
    ----------
    capacity : (N, R) what each node has.
    held_back : (n_jobs,) how often limits have held back a job that was to start; counted here.

    Raises
    ------
    DispatchError : what :func:`ask` raises; more nodes than are free; or nothing that starts,
        though nothing runs, nothing is to come and no limit changes any more.
    """
    view, changes = _view_of(arrays, machine, facts, capacity, held_back)
    starts = ask(dispatcher, view, facts.job_number)
    _check_room(dispatcher, view, starts, facts.job_number)
    a, started = arrays, 0
    for start in starts:
        job = int(view.job[start.place])
        if not easy.start_proposed(
            a.jobs, a.keys, a.sim, a.progress, a.blocks, a.entries, machine, job
        ):
            break
        started += 1
    for start in starts[started:]:
        held_back[view.job[start.place]] += 1
    if not started and changes == FOREVER:
        check_goes_on(dispatcher, view, len(arrays.jobs) - int(arrays.sim.next), facts)


def _view_of(
    arrays: Prepared, machine: LimitedNodes, facts: Facts, capacity: Ints, held_back: Ints
) -> tuple[PassView, int]:
    """Return what a dispatcher may know, and when the next pass without an event comes [s].

    A unit of a job is a whole node.
    """
    told = seen(present_of(arrays), facts)
    job, running = told["job"], told["running_job"]
    allowed = np.zeros(len(job), np.bool_)
    changes = easy.allowed_now(machine, arrays.sim, arrays.jobs, arrays.progress, job, allowed)
    begin, end = machine.first[running], machine.first[running + 1]
    first = np.concatenate([[0], np.cumsum(end - begin)])
    cells = np.repeat(begin - first[:-1], end - begin) + np.arange(first[-1])
    without_job = (machine.nodes["job"] < 0)[:, np.newaxis]
    view = PassView(
        **told,
        capacity=capacity.copy(),
        free=np.where(without_job, capacity, 0),
        units=machine.first[job + 1] - machine.first[job],
        per_unit=np.repeat(capacity[:1], len(job), axis=0),
        allowed=allowed,
        held_back=held_back[job],
        running_per_unit=np.repeat(capacity[:1], len(running), axis=0),
        running_first=first,
        running_node=machine.cells[cells].astype(np.int64),
        running_units=np.ones(len(cells), np.int64),
    )
    return view, int(changes)


def _check_room(dispatcher: Any, view: PassView, starts: list[Start], job_number: Ints) -> None:
    """Raise a DispatchError if there are not enough free nodes, whatever limits allow."""
    free = int((view.free[:, 0] > 0).sum())
    for start in starts:
        free -= int(view.units[start.place])
        if free < 0:
            refuse_start(dispatcher, view, start, job_number)
