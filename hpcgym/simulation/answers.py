"""Policies and dispatchers in Python that answer a simulation as it asks.

The engine does all else: who fits, the reservation of the head, backfilling. So a policy that is a
function needs no EASY of its own, as a dispatcher does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.asking import (
    Asking,
    Facts,
    LateDispatcher,
    begin,
    dispatch,
    facts_of,
    propose,
    view_of,
)
from hpcgym.scheduler.dispatchers.view import PassView
from hpcgym.scheduler.rules import plain
from hpcgym.simulation.nodes import pool_as_node
from hpcgym.simulation.prepare import job_records

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.simulation.driver import Simulation
    from hpcgym.simulation.prepare import Place
    from hpcgym.workload.model import Workload


def let_answer(simulation: Simulation, workload: Workload, scheduler: Scheduler) -> Any:
    """Let the policy or the dispatcher of a scheduler answer, if it is one in Python.

    Returns
    -------
    dispatcher : who says what starts, told that a simulation begins; None if nobody does.
    """
    place, policy, dispatcher = simulation.place, scheduler.policy, scheduler.dispatcher
    if dispatcher is None and not callable(policy):
        return None
    ask: Callable[..., None] = dispatch
    view: Callable[..., PassView] = Asking.view
    alone = place.name == "whole nodes"
    if alone:
        held_back = np.zeros(len(workload), np.int64)
        kept: dict[str, Any] = {"capacity": place.cluster.capacity, "held_back": held_back}
        ask, view = partial(propose, **kept), partial(view_of, **kept)
    elif place.nodes is None:
        view = _of_pool(workload, place)
    facts = facts_of(workload, place.cluster, pool=place.nodes is None and not alone)
    if callable(policy):
        begin(policy)
        simulation.dispatch = partial(_score, policy, view, facts)
    if dispatcher is None:
        return None
    if isinstance(dispatcher, str):
        dispatcher = find_dispatcher(dispatcher)
    begin(dispatcher)
    simulation.dispatch = partial(ask, dispatcher, facts=facts)
    if scheduler.dispatch_time:
        simulation.late = LateDispatcher(dispatcher, scheduler.dispatch_time, facts)
        simulation.dispatch = simulation.late.at_pass
    return dispatcher


def _of_pool(workload: Workload, place: Place) -> Callable[[Asking, Facts], PassView]:
    """Return what shows a pool, or shared nodes as if they were one: a node stands for it."""
    shown: dict[str, Any] = {}
    if place.name == "shared nodes":  # whose clock has ticks
        shown = {"jobs": job_records(workload), "ticks": place.units.ticks}
    shown["nodes"] = pool_as_node(workload.requested_processors, place.cluster.processors)
    return lambda asking, facts: asking._replace(**shown).view(facts)


def _score(
    policy: Callable[[PassView], Any],
    shown: Callable[[Asking, Facts], PassView],
    facts: Facts,
    asking: Asking,
) -> None:
    """Ask a policy for the scores of queued jobs at a pass, and write them.

    Raises
    ------
    HpcgymError : anything but a number for each.
    """
    view = shown(asking, facts)
    answer, n = policy(view), len(view.job)
    try:
        given = np.asarray(answer)
    except Exception as error:  # whatever a library's own array may raise
        raise HpcgymError(f"policy {plain(policy)} at {view.time} s: {error}") from error
    if given.shape == (n,) and given.dtype.kind in "biuf":
        scores: NDArray[np.float64] = given.astype(np.float64)
        if not np.isnan(scores).any():
            asking.native.order(view.job, scores)
            return
        told = "numbers of which some are nan"
    elif given.ndim:
        told = f"an array of shape {given.shape}, {given.dtype}"
    else:
        told = repr(answer)[:60]
    raise HpcgymError(
        f"policy {plain(policy)} at {view.time} s: must return a number for each of the {n}"
        f" queued jobs, the highest first, not {told}"
    )
