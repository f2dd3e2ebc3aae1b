"""Asking a dispatcher where each job has nodes of its own, and so under limits of power and energy.

What it answers is a queue: it is served in that order, without backfilling. The first job that
limits do not let start now waits, and all behind it; at the next pass it is asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.scheduler.dispatchers.asking import (
    Asking,
    Facts,
    Start,
    ask,
    check_goes_on,
    present_in,
    refuse_start,
    seen,
)
from hpcgym.scheduler.dispatchers.view import PassView

Ints = NDArray[np.int64]


def propose(
    dispatcher: Callable[[PassView], Iterable[Any]],
    asking: Asking,
    facts: Facts,
    capacity: Ints,
    held_back: Ints,
) -> None:
    """Ask a dispatcher what is to start at this pass, and start of it what limits allow.

    Parameters
    ----------
    asking : a simulation in which each job has nodes of its own, as many as processors.
    capacity : (N, R) what each node has.
    held_back : (n_jobs,) how often limits have held back a job that was to start; counted here.

    Raises
    ------
    DispatchError : what :func:`ask` raises; more nodes than are free; or nothing that starts,
        though nothing runs, nothing is to come and no limit changes any more.
    """
    view = view_of(asking, facts, capacity, held_back)
    starts = ask(dispatcher, view, facts.job_number)
    _check_room(dispatcher, view, starts, facts.job_number)
    rows = view.job[[start.place for start in starts]]
    started = asking.start([(row, Start(row, None)) for row in rows.tolist()])
    for start in starts[started:]:
        held_back[view.job[start.place]] += 1
    if not started and asking.native.view()["changes"][0] == FOREVER:
        check_goes_on(dispatcher, view, asking.native.coming, facts)


def view_of(asking: Asking, facts: Facts, capacity: Ints, held_back: Ints) -> PassView:
    """Return what a dispatcher, or a policy, may know; a unit of a job is a whole node."""
    told = asking.native.view()
    present = present_in(told, asking.time, asking.jobs)
    job, running = present.queued, present.running
    return PassView(
        **seen(present, facts),
        capacity=capacity.copy(),
        free=np.where(told["free"][:, np.newaxis] > 0, capacity, 0),
        units=asking.jobs["processors"][job],
        per_unit=np.repeat(capacity[:1], len(job), axis=0),
        allowed=asking.native.fits(job.tolist()).astype(np.bool_),
        held_back=held_back[job],
        running_per_unit=np.repeat(capacity[:1], len(running), axis=0),
        running_first=told["cell_first"],
        running_node=told["cell_node"],
        running_units=np.ones(len(told["cell_node"]), np.int64),
    )


def _check_room(dispatcher: Any, view: PassView, starts: list[Start], job_number: Ints) -> None:
    """Raise a DispatchError if there are not enough free nodes, whatever limits allow."""
    free = int((view.free[:, 0] > 0).sum())
    for start in starts:
        free -= int(view.units[start.place])
        if free < 0:
            refuse_start(dispatcher, view, start, job_number)
