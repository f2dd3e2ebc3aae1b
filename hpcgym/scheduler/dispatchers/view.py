"""What a dispatcher sees at a scheduling pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Layout, Listing
from hpcgym.errors import HpcgymError, unknown
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.scheduler.allocations import BY_DEMAND, FIRST_FIT, HYBRID, RANDOM, asks_of, random_state

# --- The parts of a view made by hand -------------------------------------------------------------

Ints = NDArray[np.int64]

_OF_QUEUE = ("submit", "duration", "units", "per_unit")
_MORE_OF_QUEUE = (
    "job", "requested", "policy_time", "user", "queue", "expected_wait", "allowed", "held_back",
    "units_per_node",
)  # fmt: skip
_OF_RUNNING = ("start", "end", "per_unit", "first", "node", "units")
_NOTHING_RUNS = {**dict.fromkeys(_OF_RUNNING, ()), "first": (0,)}


def machine(resources: Any, capacity: Any) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the resources, and the (N, R) amounts of the nodes, checked."""
    names = () if isinstance(resources, str) else tuple(resources)
    if not names or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        raise HpcgymError(f"resources must be different names, not {resources!r}")
    nodes = _length("capacity", capacity)
    if not nodes:
        raise HpcgymError("capacity must have a row for each node, and it has no row")
    return names, whole_array("capacity", capacity, (nodes, len(names)), 0)


def queued(queue: Any, time: int, types: int) -> dict[str, Any]:
    """Return the fields of a view about the queued jobs; see ``PassView.of``."""
    _check_keys("queue", queue, _OF_QUEUE, _MORE_OF_QUEUE)
    n = _length("queue['submit']", queue["submit"])

    def numbers(key: str, least: int | None, usual: Any = None, most: int | None = None) -> Ints:
        return whole_array(f"queue[{key!r}]", queue.get(key, usual), (n,), least, most)

    submit = numbers("submit", None, most=time)
    duration = numbers("duration", 0)
    requested = numbers("requested", 0, duration)
    unknown_number = np.full(n, -1)
    waits = _waits("queue['expected_wait']", queue.get("expected_wait", np.ones(n)), n)
    allowed = array("queue['allowed']", queue.get("allowed", np.ones(n, np.bool_)))
    flags = allowed.astype(np.int64) if allowed.dtype.kind == "b" else allowed
    return {
        "job": numbers("job", 0, np.arange(n)),
        "submit": submit,
        "wait": time - submit,
        "duration": duration,
        "requested": requested,
        "policy_time": numbers("policy_time", 0, requested),
        "units": numbers("units", 1),
        "per_unit": _demands("queue['per_unit']", queue["per_unit"], (n, types)),
        "units_per_node": numbers("units_per_node", 1, np.full(n, ANY_NUMBER)),
        "user": numbers("user", None, unknown_number),
        "queue": numbers("queue", None, unknown_number),
        "expected_wait": waits,
        "max_expected_wait": float(waits.max(initial=1.0)),
        "allowed": whole_array("queue['allowed']", flags, (n,), 0, 1).astype(np.bool_),
        "held_back": numbers("held_back", 0, np.zeros(n, np.int64)),
    }


def read_running(given: Any, time: int, nodes: int, types: int, queue: int) -> dict[str, Any]:
    """Return the fields of a view about the running jobs; ``queue``: the number of queued ones."""
    parts = _NOTHING_RUNS if given is None or given == {} else given
    _check_keys("running", parts, _OF_RUNNING, ("job",))
    n = _length("running['start']", parts["start"])
    cells = _length("running['node']", parts["node"])
    first = whole_array("running['first']", parts["first"], (n + 1,))
    if first[0] != 0 or first[-1] != cells or (np.diff(first) < 0).any():
        raise HpcgymError(
            f"running['first'] must rise from 0 to {cells}, the length of running['node'], not"
            f" {first.tolist()}"
        )
    node = whole_array("running['node']", parts["node"], (cells,), 0, nodes - 1)
    _check_once(first, node)
    end = whole_array("running['end']", parts["end"], (n,))
    return {
        "running_job": whole_array(
            "running['job']", parts.get("job", queue + np.arange(n)), (n,), 0
        ),
        "running_start": whole_array("running['start']", parts["start"], (n,), most=time),
        "running_end": np.maximum(end, time + 1),
        "running_per_unit": _demands("running['per_unit']", parts["per_unit"], (n, types)),
        "running_first": first,
        "running_node": node,
        "running_units": whole_array("running['units']", parts["units"], (cells,), 1),
    }


def _demands(name: str, values: Any, shape: tuple[int, int]) -> Ints:
    """Return the demands of units, (n, R), checked: each takes at least a core."""
    demands = whole_array(name, values, shape, 0)
    for job in np.flatnonzero(demands[:, 0] == 0)[:1].tolist():
        raise HpcgymError(f"{name} must have a core for each unit, and [{job}] has none")
    return demands


def _check_once(first: Ints, node: Ints) -> None:
    """Raise an HpcgymError for a running job that has a node twice."""
    for job, (begin, end) in enumerate(pairwise(first.tolist())):
        distinct, times = np.unique(node[begin:end], return_counts=True)
        for twice in distinct[times > 1][:1].tolist():
            raise HpcgymError(
                f"running['node'] must have each node of a job once, and job {job} has node {twice}"
                " twice; units says how many are there"
            )


def free_beside(
    names: Sequence[str], capacity: Ints, first: Ints, node: Ints, units: Ints, per_unit: Ints
) -> Ints:
    """Return the free resources of nodes beside the running jobs, (N, R).

    Raises
    ------
    HpcgymError : jobs take more of a node than it has.
    """
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    free = capacity.copy()
    np.subtract.at(free, node, units[:, None] * per_unit[owner])
    if (free < 0).any():
        n, r = np.argwhere(free < 0)[0].tolist()
        has = capacity[n, r]
        raise HpcgymError(
            f"running: the jobs on node {n} take {has - free[n, r]} {names[r]} of its {has}"
        )
    return free


def whole_array(
    name: str,
    values: Any,
    shape: tuple[int, ...],
    least: int | None = None,
    most: int | None = None,
) -> Ints:
    """Return whole numbers as a new int64 array.

    Raises
    ------
    HpcgymError : another shape, other numbers, or a number below ``least`` or above ``most``.
    """
    given = array(name, values)
    if given.size == 0 and 0 in shape:
        return np.zeros(shape, np.int64)
    if given.shape != shape:
        raise HpcgymError(f"{name} must have the shape {shape}, not {given.shape}")
    if given.dtype.kind not in "iu":
        kind = "whole numbers" if shape else "a whole number"
        raise HpcgymError(f"{name} must be {kind}, not {given.dtype}: {values!r}")
    if least is not None and given.min() < least:
        raise HpcgymError(f"{name} must be at least {least}, not {given.min()}")
    if most is not None and given.max() > most:
        raise HpcgymError(f"{name} must be at most {most}, not {given.max()}")
    return given.astype(np.int64)


def _waits(name: str, values: Any, number: int) -> NDArray[np.float64]:
    """Return expected waits [s], (number,) float64, checked to be above 0."""
    given = array(name, values)
    if given.shape != (number,):
        raise HpcgymError(f"{name} must have the shape {(number,)}, not {given.shape}")
    if given.size and given.dtype.kind not in "iuf":
        raise HpcgymError(f"{name} must be numbers, not {given.dtype}: {values!r}")
    waits = given.astype(np.float64)
    if not ((waits > 0) & (waits < np.inf)).all():
        raise HpcgymError(f"{name} must be above 0 s: {values!r}")
    return waits


def _length(name: str, values: Any) -> int:
    """Return how many rows or numbers are given, one after the other."""
    given = array(name, values)
    if given.ndim == 0:
        raise HpcgymError(f"{name} must be a list, not {values!r}")
    return len(given)


def _check_keys(name: str, given: Any, needed: Sequence[str], more: Sequence[str]) -> None:
    """Raise an HpcgymError unless a mapping has all that is needed, and nothing unknown."""
    if not isinstance(given, Mapping):
        raise HpcgymError(f"{name} must be a mapping of arrays, not {given!r}")
    for key in given:
        if key not in (*needed, *more):
            raise HpcgymError(unknown(f"key of {name}", key, (*needed, *more)))
    for key in needed:
        if key not in given:
            raise HpcgymError(f"{name} lacks {key!r}; it needs {', '.join(needed)}")


def array(name: str, values: Any) -> NDArray[Any]:
    """Return values as an array."""
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths
        raise HpcgymError(f"{name} has parts of different lengths") from None


# --- What a dispatcher sees at a scheduling pass --------------------------------------------------


class NodePlan(NamedTuple):
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
    capacity, free : (N, R) int64, resources of each node, and those of them that are free now.
    job : (q,) int64, rows of the queued jobs in the workload, in order of submission. All arrays of
        shape (q,) are by place in this queue.
    submit, wait, duration, requested : (q,) int64 [s]; ``duration`` is the predicted run time, by
        the scheduler's estimate.
    policy_time : (q,) int64 [s], run times by the scheduler's policy_estimate, which named policies
        look at: requested times, or predictions from the jobs that have ended by now.
    units, per_unit : (q,) and (q, R) int64, number of units of a job, and resources that each
        takes. Where jobs have nodes of their own, as under limits, a unit is a whole node.
    units_per_node : (q,) int64, the most units of a job that one node may have;
        :data:`hpcgym.machine.pool.ANY_NUMBER`: no bound.
    user, queue : (q,) int64, the log's numbers.
    expected_wait : (q,) float64 [s] of the job's queue on this machine; 1 if it names no queues.
    max_expected_wait : [s] the largest of the machine's queues.
    allowed : (q,) bool, whether limits let the job start now, alone; true without limits.
    held_back : (q,) int64, passes at which the job was chosen and limits kept it from starting.
    running_job : (r,) int64, rows of the running jobs in the workload, by expected end.
    running_start, running_end : (r,) int64 [s]; ends are expected ones, and after now;
        a job that waits for nodes to be switched on starts later than now.
    running_per_unit : (r, R) int64.
    running_first, running_node, running_units : (r + 1,), (c,), (c,) int64; running job k is on
        nodes ``running_node[running_first[k]:running_first[k + 1]]``, with so many units on each.
    allocation : code of the order in which nodes are filled, see
        :mod:`hpcgym.scheduler.allocations`.
    drawn : (1 + N,) int64, under random allocation the state of its generator, and the last order
        of the nodes; None under other allocations.
    asked : (R,) int64, under weighted and hybrid allocation the sum over all waiting jobs of their
        demand x (requested time + 1 s); None under others, or if only the queue's jobs wait.
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
    policy_time: Ints
    units: Ints
    per_unit: Ints
    units_per_node: Ints
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
        queue : ``submit``, ``duration``, ``units`` and ``per_unit`` of the queued jobs. Optional,
            with defaults: ``job`` (their places), ``requested`` (the durations), ``policy_time``
            (the requested times), ``user``, ``queue`` (-1), ``expected_wait`` (1), ``allowed``
            (all), ``held_back`` (0) and ``units_per_node`` (no bound).
        running : ``start``, ``end``, ``per_unit``, ``first``, ``node`` and ``units`` of the running
            jobs; ``job`` is optional.

        Raises
        ------
        HpcgymError : an argument of another shape, or with invalid numbers: a time below 0, a job
            that is submitted or starts after now, no unit, a unit without a core, a node that does
            not exist or that a job has twice, or jobs that take more of a node than it has. The
            message names the argument.
        """
        now = int(whole_array("time", time, (), 0))
        names, nodes = machine(resources, capacity)
        waiting = queued(queue, now, len(names))
        runs = read_running(running, now, len(nodes), len(names), len(waiting["job"]))
        held = [runs[f"running_{part}"] for part in ("first", "node", "units", "per_unit")]
        return cls(
            time=now,
            resources=names,
            capacity=nodes,
            free=free_beside(names, nodes, *held),
            allocation=int(whole_array("allocation", allocation, (), FIRST_FIT, HYBRID)),
            **waiting,
            **runs,
        )

    @property
    def processors(self) -> Ints:
        """Processors that each queued job asks for, (q,) int64: cores, on machines of nodes."""
        processors: Ints = self.units * self.per_unit[:, 0]
        return processors

    @property
    def total(self) -> Ints:
        """The amount of each resource on the whole machine, (R,) int64."""
        total: Ints = self.capacity.sum(axis=0)
        return total

    def fits(self) -> NDArray[np.bool_]:
        """Return which queued jobs would fit now, each alone, (q,) bool."""
        alone = np.zeros(len(self.job), np.bool_)
        alone[self._listing(self.free).fits(np.arange(len(self.job)))] = True
        return alone

    def in_order(self, order: Any) -> list[int]:
        """Return the places of the jobs that start if jobs are tried in this order.

        Jobs that do not fit are passed over: Algorithm 1 of Remediani 2017 at one time.

        Parameters
        ----------
        order : places in the queue, each at most once.

        Raises
        ------
        HpcgymError : an invalid order.
        """
        started: list[int] = self._listing(self.free).start(self._places(order)).tolist()
        return started

    def placed(
        self, places: Any, free: Ints | None = None, after: Any = ()
    ) -> list[tuple[int, Ints]]:
        """Return which jobs find nodes if tried in this order, and the node of each unit.

        Nodes are filled by ``allocation``. Jobs that find no nodes are passed over.

        Parameters
        ----------
        places : places in the queue, each at most once.
        free : (N, R) int64, free resources of nodes for these jobs; None: all that is free now.
        after : places of jobs that start before these at this pass, and no longer wait: under
            random allocation each of them draws an order of its own.

        Raises
        ------
        HpcgymError : invalid places.
        """
        chosen, started = self._places(places), self._places(after)
        listing = self._listing(self.free if free is None else free, started)
        fitting = listing.start(chosen)
        cells = listing.cells(fitting)
        edges = np.cumsum(self.units[fitting])
        of_each = np.split(np.repeat(cells["node"], cells["units"]), edges)  # the last is empty
        return list(zip(fitting.tolist(), of_each[: len(fitting)], strict=True))

    def plan(self, order: Any) -> NodePlan:
        """Return the schedule of the whole queue if jobs are tried in this order (Algorithm 1).

        At each time all jobs that fit start, in this order; then time goes on to the next expected
        end. ``order`` holds all places.

        Raises
        ------
        HpcgymError : an invalid order.
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
        return NodePlan(times, **listing.cells(np.arange(len(self.job))))

    def _places(self, order: Any) -> Ints:
        """Return an order of places, checked."""
        places = array("an order", order)
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
        """Return the nodes as a Listing for the queued jobs and, behind them, maybe running ones.

        ``free`` (N, R) are their free resources; the jobs at the places ``after`` no longer wait.
        """
        needs = np.column_stack([self.units, self.per_unit, self.units_per_node])
        if with_running:  # as many units as cells: the number is not used
            held = np.maximum(np.diff(self.running_first), 1)
            running = np.column_stack([held, self.running_per_unit, held])
            needs = np.concatenate([needs, running])
        more: dict[str, Any] = {}
        asked, drawn = np.zeros(self.capacity.shape[1], np.int64), 0
        if self.allocation in BY_DEMAND:
            asks = asks_of(needs[: len(self.job)], self.requested)
            asked = asks.sum(axis=0) if self.asked is None else self.asked
            asked = asked - asks[list(after)].sum(axis=0)
            more["asks"] = np.zeros((len(needs), len(asked)), np.int64)  # 0 for running jobs
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
