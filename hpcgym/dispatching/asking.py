"""Asking a dispatcher: the view of a simulation at a pass, and what is done with the answer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hpcgym.dispatching.view import PassView, cells_of
from hpcgym.engine import node_easy
from hpcgym.engine.nodes import ALLOCATION, RANDOM, RANDOM_STATE, Nodes
from hpcgym.engine.ordered import BLOCK
from hpcgym.engine.state import NEXT, QUEUE, RUNNING, TIME, Prepared
from hpcgym.errors import HpcgymError

Ints = NDArray[np.int64]


class DispatchError(HpcgymError):
    """A dispatcher has answered what cannot be; names it, the time and the job if there is one."""


@dataclass(frozen=True)
class Facts:
    """What does not change and views tell, by row of the workload.

    Attributes
    ----------
    resources : names of the types.
    job_number, user, queue : (n_jobs,) int64 of the log.
    expected_wait : (n_jobs,) float64 [s].
    max_expected_wait : [s].
    """

    resources: tuple[str, ...]
    job_number: Ints
    user: Ints
    queue: Ints
    expected_wait: NDArray[np.float64]
    max_expected_wait: float


def view_of(arrays: Prepared, nodes: Nodes, facts: Facts, queued: Ints | None = None) -> PassView:
    """Return what a dispatcher may know of a simulation.

    ``queued`` (q,) are the queued jobs that it sees, by default all.
    """
    time = int(arrays.sim[TIME])
    job = np.sort(_listed(arrays, QUEUE)[0] if queued is None else queued)
    running, end = _listed(arrays, RUNNING)
    jobs, progress = arrays.jobs, arrays.progress
    first, node, units = cells_of(nodes, running)
    allocation, drawn = int(nodes.slots[ALLOCATION]), None
    if allocation == RANDOM:
        drawn = np.concatenate([nodes.slots[RANDOM_STATE : RANDOM_STATE + 1], nodes.order])
    return PassView(
        time=time,
        resources=facts.resources,
        capacity=nodes.capacity.copy(),
        free=nodes.free.copy(),
        job=job,
        submit=jobs["submit"][job],
        wait=time - jobs["submit"][job],
        duration=progress["predicted"][job],
        requested=jobs["requested"][job],
        units=nodes.needs[job, 0],
        per_unit=nodes.needs[job, 1:],
        user=facts.user[job],
        queue=facts.queue[job],
        expected_wait=facts.expected_wait[job],
        max_expected_wait=facts.max_expected_wait,
        running_job=running,
        running_start=progress["start"][running],
        running_end=np.maximum(end, time + 1),
        running_per_unit=nodes.needs[running, 1:],
        running_first=first,
        running_node=node,
        running_units=units,
        allocation=allocation,
        drawn=drawn,
    )


def _listed(arrays: Prepared, which: int) -> tuple[Ints, Ints]:
    """Return the jobs of an ordered list and their keys, (n,) each."""
    blocks, entries = arrays.blocks, arrays.entries
    begin = int(blocks["first"][which])
    numbers = blocks["order"][begin : begin + int(blocks["in_use"][which])].tolist()
    parts = [entries[b * BLOCK : b * BLOCK + int(blocks["count"][b])] for b in numbers]
    listed = np.concatenate(parts)
    return listed["job"].astype(np.int64), listed["key"].astype(np.int64)


def dispatch(
    dispatcher: Callable[[PassView], Iterable[Any]], arrays: Prepared, nodes: Nodes, facts: Facts
) -> None:
    """Ask a dispatcher what starts at this pass, and start it.

    Raises
    ------
    DispatchError : an answer that is no list of places; a start that does not fit; or nothing that
        starts, though nothing runs and nothing is to come.
    """
    view = view_of(arrays, nodes, facts)
    starts = ask(dispatcher, view)
    for start in starts:
        place, chosen = start if isinstance(start, tuple) and len(start) == 2 else (start, None)
        job = _job_at(dispatcher, view, place)
        number = _called(facts, job, place)
        if arrays.progress["start"][job] >= 0:
            _refuse(dispatcher, view, f"starts {number} twice")
        placed = chosen is not None
        if placed:
            _write_cells(dispatcher, view, nodes, job, chosen, number)
        a = arrays
        if not node_easy.start_chosen(
            a.jobs, a.keys, a.sim, a.progress, a.blocks, a.entries, a.idle, nodes, job, placed
        ):
            where = "on the nodes it names" if placed else "into what is free"
            _refuse(dispatcher, view, f"starts {number}, which does not fit {where}")
    if not starts and not len(view.running_job) and arrays.sim[NEXT] == len(arrays.jobs):
        first = _called(facts, int(view.job[0]), 0)
        _refuse(
            dispatcher,
            view,
            f"starts nothing, when nothing runs and no job is still to come: {first} and"
            f" {len(view.job) - 1:,} others would wait for ever",
        )


def ask(dispatcher: Callable[[PassView], Iterable[Any]], view: PassView) -> list[Any]:
    """Return what a dispatcher answers.

    Raises
    ------
    DispatchError : an answer that is no list, or what the dispatcher asks the view wrongly.
    """
    try:
        answer = dispatcher(view)
        if isinstance(answer, Iterable):
            return list(answer)
    except HpcgymError as error:
        raise DispatchError(f"dispatcher {_name(dispatcher)} at {view.time} s: {error}") from error
    _refuse(dispatcher, view, f"must return the places that start, not {answer!r}")


def _called(facts: Facts, job: int, place: Any) -> str:
    """Return what messages call a job: by its number in the log, or if it has none by its row."""
    number = facts.job_number[job]
    return f"{f'job {number}' if number >= 0 else f'the job of row {job}'} (place {place})"


def _job_at(dispatcher: Any, view: PassView, place: Any) -> int:
    """Return the row of the job at a place of the queue."""
    try:
        index = operator.index(place)
    except TypeError:
        index = -1
    if not 0 <= index < len(view.job):
        _refuse(
            dispatcher, view, f"starts {place!r}, which is no place from 0 to {len(view.job) - 1}"
        )
    return int(view.job[index])


def _write_cells(
    dispatcher: Any, view: PassView, nodes: Nodes, job: int, chosen: Any, number: str
) -> None:
    """Write the nodes that a dispatcher has chosen for the units of a job."""
    try:
        node = np.asarray(chosen)
    except ValueError:  # lists of different lengths
        node = np.zeros(0)
    if node.shape != (int(nodes.needs[job, 0]),) or node.dtype.kind not in "iu":
        _refuse(
            dispatcher,
            view,
            f"must name a node for each of the {nodes.needs[job, 0]} units of {number}",
        )
    if node.min() < 0 or node.max() >= len(nodes.free):
        _refuse(dispatcher, view, f"names a node for {number} beyond 0 to {len(nodes.free) - 1}")
    distinct, units = np.unique(node, return_counts=True)
    first = int(nodes.held["first"][job])
    nodes.cells["node"][first : first + len(distinct)] = distinct
    nodes.cells["units"][first : first + len(distinct)] = units
    nodes.held["count"][job] = len(distinct)


def _refuse(dispatcher: Any, view: PassView, what: str) -> NoReturn:
    """Raise a DispatchError."""
    raise DispatchError(f"dispatcher {_name(dispatcher)} at {view.time} s: it {what}")


def _name(dispatcher: Any) -> str:
    """Return what a dispatcher is called."""
    named = getattr(dispatcher, "name", None) or getattr(dispatcher, "__name__", None)
    return str(named or type(dispatcher).__name__)
