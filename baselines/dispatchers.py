"""The named dispatchers: heuristics, and those that solve a model.

They are those of Remediani 2017 and Galleguillos et al. 2020.

A dispatcher gets a :class:`hpcgym.scheduler.dispatchers.PassView` at a scheduling pass and returns
the places in the queue of the jobs that start. The heuristics sort the queue and start all that fit
in that order: Algorithm 1 of Remediani 2017 at one time. A job that does not fit is passed over,
without a reservation: that is EASY's, which is a scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, installing, unknown
from hpcgym.scheduler.allocations import BEST_FIT

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


def prb_published(view: PassView) -> NDArray[np.int64]:
    """Return the order of PRB's program: all have been in the queue for a second more."""
    return np.lexsort((demand(view), -published_urgency(view)))


def sdprb(view: PassView) -> NDArray[np.int64]:
    """Return the order of falling slowdown, among equals that of rising demand."""
    return np.lexsort((demand(view), -slowdown(view)))


def urgency(view: PassView) -> NDArray[np.float64]:
    """Return equation 4.1 of Remediani 2017: max ewt x time in the queue / ewt of the queue."""
    return view.max_expected_wait * view.wait / view.expected_wait


def published_urgency(view: PassView) -> NDArray[np.float64]:
    """Return equation 4.1 as PRB's and CPH's programs have it: with a second more in the queue."""
    return urgency(replace(view, wait=view.wait + 1))


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
    strict : whether nothing starts after a job that does not fit.
    own_nodes : whether it fills the fullest nodes first, whatever the scheduler says.
    """

    name: str
    order: Order
    strict: bool = False
    own_nodes: bool = False

    def __call__(self, view: PassView) -> list[Any]:
        """Return the places that start, with their nodes if it chooses them."""
        order = self.order(view)
        if not self.own_nodes:
            return view.in_order(order)
        placed = replace(view, allocation=BEST_FIT).placed(order)
        if not self.strict:
            return placed
        return [job for job, place in zip(placed, order.tolist(), strict=False) if job[0] == place]


class NamedDispatcher(NamedTuple):
    """What a name stands for.

    Attributes
    ----------
    meaning : what the dispatcher does.
    make : returns a new one.
    own_nodes : whether it chooses the nodes of all that it starts, whatever the rule
        ``allocation``.
    """

    meaning: str
    make: Callable[[], Dispatcher]
    own_nodes: bool = False


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

#: What may stand behind the name of a dispatcher: as its authors' program runs it; or as it is
#: improved here, which is the same as nothing.
PUBLISHED, IMPROVED = ":as=published", ":as=improved"

#: Lists that stop at the first job that does not fit, as AccaSim runs them; PRB passes it over
#: there too.
_STRICT = ("fcfs-list", "sjf-list", "ljf-list")

#: Classes of those that choose nodes, whatever the rule ``allocation``.
_PLACING = ("HCP19", "PCP19", "PCP20")


def _model(kind: str, given: tuple[Any, ...], end: str) -> Dispatcher:
    """Return a new dispatcher that solves a model; ``end`` of its name says as what."""
    try:
        dispatchers = import_module("hpcgym.baselines.cp.dispatchers")
        programs = import_module("hpcgym.baselines.cp.published")
    except ImportError as error:
        raise HpcgymError(
            f"dispatchers that solve a model need OR-Tools: {installing('cp')} ({error})"
        ) from None
    dispatcher: Any = getattr(dispatchers, kind)(*given)
    if end == PUBLISHED:
        dispatcher = programs.Published(dispatcher)
    else:
        dispatcher.name += end
    made: Dispatcher = dispatcher
    return made


def _named() -> dict[str, NamedDispatcher]:
    """Return the dispatchers by name, each as improved and as published."""
    named = {}
    for name, (meaning, order) in _LISTS.items():
        for end in ("", IMPROVED):
            named[name + end] = NamedDispatcher(meaning, partial(ListDispatcher, name + end, order))
        whole, strict = name + PUBLISHED, name in _STRICT
        words = "the same, as AccaSim runs it: by best fit"
        if strict:
            words += ", up to the first that does not fit"
        theirs = prb_published if order is prb else order
        named[whole] = NamedDispatcher(
            words, partial(ListDispatcher, whole, theirs, strict, True), True
        )
    for name, (meaning, kind, given) in _MODELS.items():
        for end in ("", IMPROVED):
            made = partial(_model, kind, given, end)
            named[name + end] = NamedDispatcher(meaning, made, kind in _PLACING)
        if kind != "PureCP":  # no program of that time is public
            words = "the same, as its authors' program runs it"
            made = partial(_model, kind, given, PUBLISHED)
            named[name + PUBLISHED] = NamedDispatcher(words, made, True)
    return named


#: Name -> dispatcher.
DISPATCHERS: dict[str, NamedDispatcher] = _named()

#: Names of the dispatchers that solve a model: these need OR-Tools.
CP_DISPATCHERS = tuple(
    name
    for name in DISPATCHERS
    if name.partition(":")[0] in _MODELS and not name.endswith(IMPROVED)
)


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
    """Return whether a dispatcher chooses all nodes itself, by name or by its class.

    So does a dispatcher of one's own that has the attribute ``own_nodes`` and says so.
    """
    if isinstance(dispatcher, str):
        return dispatcher in DISPATCHERS and DISPATCHERS[dispatcher].own_nodes
    return bool(getattr(dispatcher, "own_nodes", False))
