"""Dispatchers that take time: what they answer at one time starts at a later one.

While a dispatcher thinks, jobs are submitted and end as always, and nothing starts. It is asked
anew, at the earliest, when its answer is there.
"""

from __future__ import annotations

import math
from itertools import groupby
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import is_number
from hpcgym.scheduler.dispatchers.asking import (
    Asking,
    Facts,
    Start,
    ask,
    check_goes_on,
    refuse,
    refuse_start,
    start_now,
)
from hpcgym.scheduler.dispatchers.calls import Dispatching
from hpcgym.scheduler.dispatchers.view import PassView
from hpcgym.scheduler.rule_values import MEASURED, MOST_DISPATCH_TIME

_ROUNDING = 1e-6  # [s] a sum of floating-point numbers may be above the whole second that it is


class LateDispatcher:
    """A dispatcher in a simulation in which its calls take time.

    Parameters
    ----------
    dispatcher : who is asked.
    dispatch_time : "measured", seconds, or a callable that takes the view and returns seconds.
    facts : of the jobs.

    Attributes
    ----------
    due : [s] when the answer is there that it thinks of; FOREVER while it does not think.
    """

    def __init__(self, dispatcher: Any, dispatch_time: Any, facts: Facts):
        self.dispatcher = dispatcher
        self.due = FOREVER
        self._takes = dispatch_time
        self._facts = facts
        self._decided: list[tuple[int, Start]] = []  # jobs that start when the answer is there
        self._passed = False  # whether a pass has come meanwhile
        self._time: list[int] = []  # of the calls [s]
        self._seconds: list[int] = []
        self._call = np.full(len(facts.user), -1, np.int64)

    @property
    def dispatching(self) -> Dispatching:
        """All calls up to now."""
        return Dispatching(np.array(self._time, int), np.array(self._seconds, int), self._call)

    def at_pass(self, asking: Asking) -> None:
        """Answer a pass at which a queued job fits.

        Raises
        ------
        DispatchError : as :func:`hpcgym.scheduler.dispatchers.asking.dispatch`.
        """
        if self.due == FOREVER:
            self._ask(asking.view(self._facts), asking)
        else:
            self._passed = True
            if asking.time == self.due:
                self.arrive(asking)
        if asking.native.asked:  # it thinks, and nothing starts now
            asking.start([])

    def arrive(self, asking: Asking) -> None:
        """Start what has been decided, now that it is ``due``; ask anew if a pass has come since.

        All that happens until then has happened, and that time included.

        Raises
        ------
        DispatchError : as :func:`at_pass`.
        """
        if asking.time < self.due:
            asking.native.pass_time(self.due)
        passed, self._passed, self.due = self._passed, False, FOREVER
        # jobs have only ended meanwhile, so that the nodes which were free then are free still; but
        # some may have failed: who was to start there goes on waiting
        left = self._decided[asking.start(self._decided) + 1 :]
        while left:
            left = left[asking.start(left) + 1 :]
        if not passed:
            return
        view = asking.view(self._facts)
        if view.fits().any():
            self._ask(view, asking)

    def _ask(self, view: PassView, asking: Asking) -> None:
        """Ask what starts, and start it or, if that takes time, keep it until it is due."""
        begun = perf_counter()
        starts = ask(self.dispatcher, view, self._facts.job_number)
        took = self._seconds_of(view, perf_counter() - begun)
        self._call[view.job[[start.place for start in starts]]] = len(self._time)
        self._time.append(view.time)
        self._seconds.append(took)
        if took == 0:
            start_now(self.dispatcher, view, starts, asking, self._facts)
            return
        self.due = view.time + took
        starts = on_nodes(self.dispatcher, view, starts, self._facts.job_number)
        self._decided = [(int(view.job[start.place]), start) for start in starts]
        if not starts:
            check_goes_on(self.dispatcher, view, asking.native.coming, self._facts)

    def _seconds_of(self, view: PassView, measured: float) -> int:
        """Return how long a call takes, in whole seconds, rounded up."""
        told = self._takes
        if told == MEASURED:
            told = measured
        elif callable(told):
            told = told(view)
            if not (is_number(told) and 0 <= told <= MOST_DISPATCH_TIME):
                what = f"0 to {MOST_DISPATCH_TIME:,} s"
                refuse(self.dispatcher, view, f"takes {told!r} by dispatch_time, not {what}")
        return max(math.ceil(float(told) - _ROUNDING), 0)


def on_nodes(
    dispatcher: Any, view: PassView, starts: list[Start], job_number: NDArray[np.int64]
) -> list[Start]:
    """Return starts with the nodes of all units: those that the allocation chooses now.

    Raises
    ------
    DispatchError : one that does not fit.
    """
    free, found = view.free.copy(), list[Start]()
    for named, some in groupby(starts, lambda start: start.nodes is not None):
        group = list(some)
        if not named:
            places = [start.place for start in group]
            chosen = dict(view.placed(places, free, after=[start.place for start in found]))
            group = [Start(place, chosen.get(place)) for place in places]
        for start in group:
            if start.nodes is None:
                refuse_start(dispatcher, view, start, job_number)
            np.subtract.at(free, start.nodes, view.per_unit[start.place])
            if (free < 0).any():
                refuse_start(dispatcher, view, start, job_number)
        found += group
    return found
