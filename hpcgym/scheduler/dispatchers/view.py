"""What a dispatcher sees at a scheduling pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Layout, Listing
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.allocations import (
    BY_DEMAND,
    FIRST_FIT,
    HYBRID,
    RANDOM,
    asks_of,
    random_state,
)
from hpcgym.scheduler.dispatchers import given_view

Ints = NDArray[np.int64]


class Plan(NamedTuple):
    """A schedule of the queued jobs, on nodes.

    Attributes
    ----------
    start : (q,) int64 [s], by place in the queue.
    first : (q + 1,) int64: the job at place j is on nodes ``node[first[j]:first[j + 1]]``.
    node, units : (c,) int64, and how many of its units on each.
    """

    start: Ints
    first: Ints
    node: Ints
    units: Ints


@dataclass(frozen=True, eq=False, repr=False)
class PassView:
    """The state at a scheduling pass, as far as a scheduler can know it; all arrays are read-only.

    q queued jobs, r running ones, N nodes, R types of resources.

    Attributes
    ----------
    time : present time [s]; where jobs share nodes, times that move with them are float64.
    resources : names of the types, "core" first.
    capacity, free : (N, R) int64, what each node has and what of it is free now.
    job : (q,) int64, rows of the queued jobs in the workload, in order of submission. What has the
        shape (q,) is by place in this queue.
    submit, wait, duration, requested : (q,) int64 [s]; ``duration`` is the predicted run time, by
        the scheduler's estimate.
    units, per_unit : (q,) and (q, R) int64, how many units a job has and what each takes. Where
        jobs have nodes of their own, as under limits, a unit is a whole node.
    user, queue : (q,) int64, the log's numbers.
    expected_wait : (q,) float64 [s] of the job's queue on this machine; 1 if it names no queues.
    max_expected_wait : [s] the largest of the machine's queues.
    allowed : (q,) bool, which queued jobs limits let start now, each alone; all without limits.
    held_back : (q,) int64, at how many passes each was named and did not start, for limits.
    running_job : (r,) int64, rows of the running jobs in the workload, by expected end.
    running_start, running_end : (r,) int64 [s]; ends are expected ones, and after now;
        a job that waits for nodes to be switched on starts later than now.
    running_per_unit : (r, R) int64.
    running_first, running_node, running_units : (r + 1,), (c,), (c,) int64; running job k is on
        nodes ``running_node[running_first[k]:running_first[k + 1]]``, with so many units on each.
    allocation : code of the order in which nodes are filled, see
        :mod:`hpcgym.scheduler.allocations`.
    drawn : (1 + N,) int64, where random allocation stands: the state of its generator, and the last
        order of the nodes; None where the allocation is another.
    asked : (R,) int64, where the allocation goes by that, what all jobs that wait ask for, each
        times its requested time and a second; None: it is another, or none waits but the queue.
    """

    time: int
    resources: tuple[str, ...]
    capacity: Ints
    free: Ints
    job: Ints
    submit: Ints
    wait: Ints
    duration: Ints
    requested: Ints
    units: Ints
    per_unit: Ints
    user: Ints
    queue: Ints
    expected_wait: NDArray[np.float64]
    max_expected_wait: float
    allowed: NDArray[np.bool_]
    held_back: Ints
    running_job: Ints
    running_start: Ints
    running_end: Ints
    running_per_unit: Ints
    running_first: Ints
    running_node: Ints
    running_units: Ints
    allocation: int = FIRST_FIT
    drawn: Ints | None = None
    asked: Ints | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __repr__(self) -> str:
        queued, running = len(self.job), len(self.running_job)
        return f"PassView({self.time} s, {queued} queued, {running} running jobs)"

    @classmethod
    def of(
        cls,
        time: int,
        resources: Sequence[str],
        capacity: Any,
        *,
        queue: Mapping[str, Any],
        running: Mapping[str, Any] | None = None,
        allocation: int = FIRST_FIT,
    ) -> PassView:
        """Return a view made by hand, to try a dispatcher on.

        Parameters
        ----------
        time, resources, capacity, allocation : as the attributes.
        queue : ``submit``, ``duration``, ``units`` and ``per_unit`` of the queued jobs, and what
            else there is of ``job``, ``requested`` (the durations), ``user``, ``queue`` (-1),
            ``expected_wait`` (1), ``allowed`` (all) and ``held_back`` (0).
        running : ``start``, ``end``, ``per_unit``, ``first``, ``node`` and ``units`` of the running
            jobs, and maybe ``job``.

        Raises
        ------
        HpcgymError : an argument of another shape, or with numbers that it cannot have: a time
            below 0, a job that is submitted or starts after now, no unit, a unit without a core, a
            node that there is not or that a job has twice, more running than a node has. The
            argument is named.
        """
        now = int(given_view.whole("time", time, (), 0))
        names, nodes = given_view.machine(resources, capacity)
        waiting = given_view.queued(queue, now, len(names))
        runs = given_view.running(running, now, len(nodes), len(names), len(waiting["job"]))
        held = [runs[f"running_{part}"] for part in ("first", "node", "units", "per_unit")]
        return cls(
            time=now,
            resources=names,
            capacity=nodes,
            free=given_view.free_beside(names, nodes, *held),
            allocation=int(given_view.whole("allocation", allocation, (), FIRST_FIT, HYBRID)),
            **waiting,
            **runs,
        )

    @property
    def processors(self) -> Ints:
        """How many processors each queued job has, (q,) int64: cores, on machines of nodes."""
        processors: Ints = self.units * self.per_unit[:, 0]
        return processors

    @property
    def total(self) -> Ints:
        """What the whole machine has of each resource, (R,) int64."""
        total: Ints = self.capacity.sum(axis=0)
        return total

    def fits(self) -> NDArray[np.bool_]:
        """Return which queued jobs would fit now, each alone, (q,) bool."""
        alone = np.zeros(len(self.job), np.bool_)
        alone[self._listing(self.free).fits(np.arange(len(self.job)))] = True
        return alone

    def in_order(self, order: Any) -> list[int]:
        """Return the places that start if jobs are taken in that order, those that fit.

        Jobs that do not fit are passed over: Algorithm 1 of Remediani 2017 at one time.

        Parameters
        ----------
        order : places in the queue, each at most once.

        Raises
        ------
        HpcgymError : an order that is not that.
        """
        started: list[int] = self._listing(self.free).start(self._places(order)).tolist()
        return started

    def placed(
        self, places: Any, free: Ints | None = None, after: Any = ()
    ) -> list[tuple[int, Ints]]:
        """Return which jobs find nodes if taken in this order, and the node of each unit.

        Nodes are filled by ``allocation``. Those that find none left are passed over.

        Parameters
        ----------
        places : places in the queue, each at most once.
        free : (N, R) int64, what the nodes have for them, where that is not all that is free now.
        after : places of the jobs that start before these at this pass: where the allocation is
            random, each of them draws an order of its own; they no longer wait.

        Raises
        ------
        HpcgymError : places that are not that.
        """
        chosen, started = self._places(places), self._places(after)
        listing = self._listing(self.free if free is None else free, started)
        found = listing.start(chosen)
        cells = listing.cells(found)
        edges = np.cumsum(self.units[found])
        of_each = np.split(np.repeat(cells["node"], cells["units"]), edges)  # the last is empty
        return list(zip(found.tolist(), of_each[: len(found)], strict=True))

    def plan(self, order: Any) -> Plan:
        """Return the schedule of the whole queue if jobs are taken in that order (Algorithm 1).

        At each time all jobs that fit start, in that order; then time goes on to the next expected
        end. ``order`` holds all places.

        Raises
        ------
        HpcgymError : an order that is not that.
        """
        places = self._places(order)
        if len(places) != len(self.job):
            raise HpcgymError(
                f"a plan needs an order of all {len(self.job)} places, not of {len(places)}"
            )
        listing = self._listing(self.free, with_running=True)
        times = listing.plan(places, np.maximum(self.duration, 1), self.running_end, self.time)
        if (times < 0).any():
            place = int(np.flatnonzero(times < 0)[0])
            each = zip(self.per_unit[place].tolist(), self.resources, strict=True)
            raise HpcgymError(
                f"the job of row {self.job[place]} never fits: it asks for {self.units[place]} x"
                f" ({', '.join(f'{amount} {name}' for amount, name in each)}), which the empty"
                " machine does not hold"
            )
        return Plan(times, **listing.cells(np.arange(len(self.job))))

    def _places(self, order: Any) -> Ints:
        """Return an order of places, checked."""
        places = given_view.array("an order", order)
        if places.size == 0:
            places = places.astype(np.int64)
        if places.ndim != 1 or places.dtype.kind not in "iu":
            raise HpcgymError(f"an order is a list of places in the queue, not {order!r}")
        most = len(self.job) - 1
        for place in places[(places < 0) | (places > most)][:1].tolist():
            raise HpcgymError(f"an order has places from 0 to {most}, each once, not {place}")
        distinct, times = np.unique(places, return_counts=True)
        for place in distinct[times > 1][:1].tolist():
            raise HpcgymError(
                f"an order has places from 0 to {most}, each once, not {place} (the job of row"
                f" {self.job[place]}) twice"
            )
        return places.astype(np.int64)

    def _listing(
        self, free: Ints, after: Ints | tuple[()] = (), with_running: bool = False
    ) -> Listing:
        """Return the nodes as they are, for the queued jobs and maybe those that run behind them.

        ``free`` (N, R) is there for them; jobs of the places ``after`` wait no longer.
        """
        needs = np.column_stack([self.units, self.per_unit])
        if with_running:  # as many units as cells: nobody looks at them
            held = np.maximum(np.diff(self.running_first), 1)
            needs = np.concatenate([needs, np.column_stack([held, self.running_per_unit])])
        more: dict[str, Any] = {}
        asked, drawn = np.zeros(self.capacity.shape[1], np.int64), 0
        if self.allocation in BY_DEMAND:
            asks = asks_of(needs[: len(self.job)], self.requested)
            asked = asks.sum(axis=0) if self.asked is None else self.asked
            asked = asked - asks[list(after)].sum(axis=0)
            more["asks"] = np.zeros((len(needs), len(asked)), np.int64)  # who runs asks for nothing
            more["asks"][: len(asks)] = asks
        elif self.allocation == RANDOM:  # jobs get the nodes that the simulation will give them
            more["random_state"], drawn = random_state(0), len(after)
            if self.drawn is not None:
                more["random_state"], more["order"] = int(self.drawn[0]), self.drawn[1:]
        layout = Layout(needs, np.ascontiguousarray(self.capacity), self.allocation, **more)
        listing = Listing(layout, np.ascontiguousarray(free), asked, drawn)
        for k in range(len(self.running_job) if with_running else 0):
            cells = slice(self.running_first[k], self.running_first[k + 1])
            row = len(self.job) + k
            listing.hold(row, self.running_node[cells], self.running_units[cells])
        return listing
