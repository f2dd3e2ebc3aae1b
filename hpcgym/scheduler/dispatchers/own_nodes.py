"""Asking a dispatcher where each job has nodes of its own, and so under limits of power and energy.

What it answers is a queue: it is served in that order, without backfilling. The first job that
limits do not let start now waits, and all behind it; at the next pass it is asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.scheduler.dispatchers.asking import (
    Facts,
    Present,
    Start,
    ask,
    check_goes_on,
    refuse_start,
    seen,
)
from hpcgym.scheduler.dispatchers.view import PassView

Ints = NDArray[np.int64]


class Seen(NamedTuple):
    """What a simulation tells at a pass.

    Attributes
    ----------
    present : its jobs.
    allowed : (q,) bool, which of those that wait limits let start now, each alone.
    changes : when the next pass without an event comes [s], FOREVER: never.
    free : (N,) bool, which nodes have no job.
    first, node : (r + 1,) and (c,), the nodes of those that run.
    """

    present: Present
    allowed: NDArray[np.bool_]
    changes: int
    free: NDArray[np.bool_]
    first: Ints
    node: Ints


class Proposing(Protocol):
    """A simulation in which each job has nodes of its own."""

    @property
    def widths(self) -> Ints:
        """How many nodes each job takes, (n_jobs,)."""

    @property
    def coming(self) -> int:
        """How many jobs have not been submitted."""

    def seen(self) -> Seen:
        """Return what there is to see."""

    def propose(self, jobs: list[int]) -> int:
        """Start jobs up to the first that limits do not let; return how many started."""


def propose(
    dispatcher: Callable[[PassView], Iterable[Any]],
    asking: Proposing,
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
    told = asking.seen()
    view = _view_of(told, asking.widths, facts, capacity, held_back)
    starts = ask(dispatcher, view, facts.job_number)
    _check_room(dispatcher, view, starts, facts.job_number)
    started = asking.propose([int(view.job[start.place]) for start in starts])
    for start in starts[started:]:
        held_back[view.job[start.place]] += 1
    if not started and told.changes == FOREVER:
        check_goes_on(dispatcher, view, asking.coming, facts)


def _view_of(told: Seen, widths: Ints, facts: Facts, capacity: Ints, held_back: Ints) -> PassView:
    """Return what a dispatcher may know; a unit of a job is a whole node."""
    job, running = told.present.queued, told.present.running
    return PassView(
        **seen(told.present, facts),
        capacity=capacity.copy(),
        free=np.where(told.free[:, np.newaxis], capacity, 0),
        units=widths[job],
        per_unit=np.repeat(capacity[:1], len(job), axis=0),
        allowed=told.allowed,
        held_back=held_back[job],
        running_per_unit=np.repeat(capacity[:1], len(running), axis=0),
        running_first=told.first,
        running_node=told.node,
        running_units=np.ones(len(told.node), np.int64),
    )


def _check_room(dispatcher: Any, view: PassView, starts: list[Start], job_number: Ints) -> None:
    """Raise a DispatchError if there are not enough free nodes, whatever limits allow."""
    free = int((view.free[:, 0] > 0).sum())
    for start in starts:
        free -= int(view.units[start.place])
        if free < 0:
            refuse_start(dispatcher, view, start, job_number)
