"""The named dispatchers: heuristics, and those that solve a model.

They are those of Remediani 2017 and Galleguillos et al. 2020.

A dispatcher gets a :class:`hpcgym.scheduler.dispatchers.PassView` at a scheduling pass and returns
the places in the queue of the jobs that start. The heuristics sort the queue and start all that fit
in that order: Algorithm 1 of Remediani 2017 at one time. A job that does not fit is passed over,
without a reservation: that is EASY's, which is a scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, installing, unknown

if TYPE_CHECKING:
    from hpcgym.scheduler.dispatchers.view import PassView

#: What a dispatcher is: see :func:`hpcgym.simulate`.
Dispatcher = Callable[["PassView"], Iterable[Any]]

#: A view -> (q,) the places in its queue, the first to be served first.
Order = Callable[["PassView"], NDArray[np.int64]]


# --- Orders of the queue --------------------------------------------------------------------------


def fcfs(view: PassView) -> NDArray[np.int64]:
    """Return the order of submission."""
    return np.arange(len(view.job))


def sjf(view: PassView) -> NDArray[np.int64]:
    """Return the order of expected durations, the shortest first."""
    return np.argsort(view.duration, kind="stable")


def ljf(view: PassView) -> NDArray[np.int64]:
    """Return the order of expected durations, the longest first."""
    return np.argsort(-view.duration, kind="stable")


def prb(view: PassView) -> NDArray[np.int64]:
    """Return the order of falling urgency, among equals that of rising demand."""
    return np.lexsort((demand(view), -urgency(view)))


def sdprb(view: PassView) -> NDArray[np.int64]:
    """Return the order of falling slowdown, among equals that of rising demand."""
    return np.lexsort((demand(view), -slowdown(view)))


def urgency(view: PassView) -> NDArray[np.float64]:
    """Return equation 4.1 of Remediani 2017: max ewt x time in the queue / ewt of the queue."""
    return view.max_expected_wait * view.wait / view.expected_wait


def slowdown(view: PassView) -> NDArray[np.float64]:
    """Return equation 4.3 of Remediani 2017, (q,): (wait + expected duration) / expected duration.

    Of an expected duration of 0 it is the wait itself, as the lines below that equation say.
    """
    known = np.maximum(view.duration, 1)
    return np.where(view.duration == 0, view.wait, (view.wait + view.duration) / known)


def demand(view: PassView) -> NDArray[np.int64]:
    """Return equation 4.2 of Remediani 2017, (q,): the tie-break, of which less is better.

    Expected duration x units x the sum over the resources of what a unit asks for. The equation
    calls its first factor ewt and the sentence above it the job's expected duration, as section 4.1
    does; an expected wait would not favour jobs that "require less resources and for a lower time".
    Resources are summed as numbers of what they are counted in: memory in MB.
    """
    amount: NDArray[np.int64] = view.per_unit.sum(axis=1)
    return view.duration * view.units * amount


# --- Names ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ListDispatcher:
    """Starts what fits in an order of the queue; jobs that do not fit are passed over.

    Attributes
    ----------
    name : of the dispatcher.
    order : of the queue.
    """

    name: str
    order: Order

    def __call__(self, view: PassView) -> list[int]:
        """Return the places that start."""
        return view.in_order(self.order(view))


class Named(NamedTuple):
    """What a name stands for: what the dispatcher does, and what makes one."""

    meaning: str
    make: Callable[[], Dispatcher]


_LISTS: dict[str, tuple[str, Order]] = {
    "fcfs-list": ("what fits, in the order of submission", fcfs),
    "sjf-list": ("what fits, the shortest expected duration first", sjf),
    "ljf-list": ("what fits, the longest expected duration first", ljf),
    "prb": ("what fits, by wait against the queue's expected wait (Remediani 2017, eq. 4.1)", prb),
    "sdprb": ("what fits, by slowdown so far (Remediani 2017, eq. 4.3)", sdprb),
}

#: What the variants 0 to 3 of CPH and pure CP weigh jobs by: in the search, and in the objective.
_VARIANTS = (
    "by expected waits",
    "slowdown in the search",
    "slowdown in the objective",
    "slowdown in both",
)

#: Name -> what it does; what is called in hpcgym.baselines.cp.dispatchers with what.
_MODELS: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    **{
        f"cph-{k}": (f"CPH, {words} (Remediani 2017, 4.2)", "CPH", (k,))
        for k, words in enumerate(_VARIANTS)
    },
    **{
        f"cp-{k}": (f"pure CP, {words} (Remediani 2017, 4.3)", "PureCP", (k,))
        for k, words in enumerate(_VARIANTS)
    },
    "hcp19": ("CP schedules, best fit allocates (Galleguillos 2020, 1)", "HCP19", ()),
    "pcp19": ("CP with a variable for each node (Galleguillos 2020, 2.2)", "PCP19", ()),
    "pcp20": ("CP with positions of resources (Galleguillos et al. 2020, 3)", "PCP20", ()),
}

#: Names of the dispatchers that solve a model: these need OR-Tools.
CP_DISPATCHERS = tuple(_MODELS)

#: Names of those that choose the nodes of all that they start, whatever the rule ``allocation``.
OWN_NODES = ("hcp19", "pcp19", "pcp20")


def _model(kind: str, given: tuple[Any, ...]) -> Dispatcher:
    """Return a new dispatcher that solves a model."""
    try:
        found = import_module("hpcgym.baselines.cp.dispatchers")
    except ImportError as error:
        raise HpcgymError(
            f"dispatchers that solve a model need OR-Tools: {installing('cp')} ({error})"
        ) from None
    dispatcher: Dispatcher = getattr(found, kind)(*given)
    return dispatcher


#: Name -> dispatcher.
DISPATCHERS: dict[str, Named] = {
    **{
        name: Named(meaning, partial(ListDispatcher, name, order))
        for name, (meaning, order) in _LISTS.items()
    },
    **{
        name: Named(meaning, partial(_model, kind, given))
        for name, (meaning, kind, given) in _MODELS.items()
    },
}


def find_dispatcher(name: str) -> Dispatcher:
    """Return a new dispatcher by name.

    Raises
    ------
    HpcgymError : an unknown name, the message has the nearest known ones; or one that solves a
        model, and there is no OR-Tools.
    """
    if not isinstance(name, str) or name not in DISPATCHERS:
        raise HpcgymError(unknown("dispatcher", name, DISPATCHERS))
    return DISPATCHERS[name].make()


def chooses_nodes(dispatcher: str | Dispatcher | None) -> bool:
    """Return whether a dispatcher chooses all nodes itself: one of ``OWN_NODES`` or its class.

    So does a dispatcher of one's own that has the attribute ``own_nodes`` and says so.
    """
    if isinstance(dispatcher, str):
        return dispatcher in OWN_NODES
    return bool(getattr(dispatcher, "own_nodes", False))
