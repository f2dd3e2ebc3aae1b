"""How dispatchers are called: at a pass, where each job has its own nodes, and with call times.

While a call runs in simulated time, jobs are submitted and end as always, and no job starts. The
dispatcher is called again, at the earliest, when the call has ended.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, is_number
from hpcgym.machine.pool import Cluster
from hpcgym.scheduler.allocations import BY_DEMAND, RANDOM
from hpcgym.scheduler.dispatchers.view import PassView
from hpcgym.scheduler.rules import MEASURED, MOST_DISPATCH_TIME
from hpcgym.words import counted
from hpcgym.workload.model import Workload
from hpcgym.workload.partitions import expected_waits

if TYPE_CHECKING:
    from hpcgym._engine import Simulation


# --- When a dispatcher that takes time was called, and how long it took ---------------------------


class Dispatching(NamedTuple):
    """The calls of a dispatcher that takes time, and the call that each job started by.

    Attributes
    ----------
    time : (n_calls,) int64 [s] when it was called, ascending.
    seconds : (n_calls,) int64 [s] how long the call took; its jobs start so much later.
    call : (n_jobs,) int64, place in ``time`` of the call that chose the job; -1 for jobs that ran
        when the schedule began.
    """

    time: NDArray[np.int64]
    seconds: NDArray[np.int64]
    call: NDArray[np.int64]

    @property
    def decided(self) -> NDArray[np.int64]:
        """Time of the call that chose the job, (n_jobs,) [s], or -1."""
        return self._of_jobs(self.time, -1)

    @property
    def late(self) -> NDArray[np.int64]:
        """How long the call that chose the job took, (n_jobs,) [s]."""
        return self._of_jobs(self.seconds, 0)

    def _of_jobs(self, of_calls: NDArray[np.int64], none: int) -> NDArray[np.int64]:
        """Return a number of each job's call, (n_jobs,); ``none`` for jobs without a call."""
        return np.append(of_calls, none)[self.call]


# --- Asking a dispatcher --------------------------------------------------------------------------

Ints = NDArray[np.int64]
_NOWHERE = np.zeros(0, np.int64)


class DispatchError(HpcgymError):
    """An invalid answer of a dispatcher; names the dispatcher, the time and, if any, the job."""


@dataclass(frozen=True)
class JobFacts:
    """The fixed facts that views tell, by row of the workload.

    Attributes
    ----------
    resources : names of the types.
    job_number, user, queue : (n_jobs,) int64 of the log.
    expected_wait : (n_jobs,) float64 [s].
    max_expected_wait : [s].
    policy_time : (n_jobs,) int64 [s], of estimates that are known beforehand.
    """

    resources: tuple[str, ...]
    job_number: Ints
    user: Ints
    queue: Ints
    expected_wait: NDArray[np.float64]
    max_expected_wait: float
    policy_time: Ints


def view_at(
    view: dict[str, Ints], time: int | float, jobs: NDArray[np.void], nodes: Any, facts: JobFacts
) -> PassView:
    """Return what a dispatcher may know on the nodes of a simulation.

    Parameters
    ----------
    view : the engine's state of jobs and nodes, ``Simulation.view``.
    time : present time [s].
    jobs : JOBS of all jobs.
    """
    known = _known(view, time, jobs, facts)
    job, running = known["job"], known["running_job"]
    return PassView(
        **known,
        capacity=nodes.capacity.copy(),
        free=view["free"].reshape(nodes.capacity.shape),
        units=nodes.needs[job, 0],
        per_unit=nodes.needs[job, 1:-1],
        units_per_node=nodes.needs[job, -1],
        allowed=np.ones(len(job), np.bool_),
        held_back=np.zeros(len(job), np.int64),
        running_per_unit=nodes.needs[running, 1:-1],
        running_units=view["cell_units"],
        allocation=nodes.allocation,
        drawn=view["drawn"] if nodes.allocation == RANDOM else None,
        asked=view["asked"] if nodes.allocation in BY_DEMAND else None,
    )


def _known(
    view: dict[str, Ints], time: int | float, jobs: NDArray[np.void], facts: JobFacts
) -> dict[str, Any]:
    """Return what a view tells of jobs on any machine, by its attributes."""
    order = np.argsort(view["queued"])
    job = view["queued"][order]
    submit = view["submit"][order] if "submit" in view else jobs["submit"][job]
    return {
        "time": time,
        "resources": facts.resources,
        "job": job,
        "submit": submit,
        "wait": time - submit,
        "duration": view["duration"][order],
        "requested": jobs["requested"][job],
        "policy_time": view["ordered_by"][order]
        if "ordered_by" in view
        else facts.policy_time[job],
        "user": facts.user[job],
        "queue": facts.queue[job],
        "expected_wait": facts.expected_wait[job],
        "max_expected_wait": facts.max_expected_wait,
        "running_job": view["running"],
        "running_start": view["running_start"],
        "running_end": np.maximum(view["running_end"], time + 1),
        "running_first": view["cell_first"],
        "running_node": view["cell_node"],
    }


class Start(NamedTuple):
    """A job that a dispatcher starts.

    Attributes
    ----------
    place : in the queue of the view.
    nodes : (units,) int64, the node of each unit; None where the allocation chooses.
    """

    place: int
    nodes: Ints | None


def begin(dispatcher: Any) -> None:
    """Tell a dispatcher that a simulation begins, if it has a method for that."""
    method = getattr(dispatcher, "begin", None)
    if method is not None:
        method()


class Asking(NamedTuple):
    """A simulation that asks which jobs start, or in which order they wait.

    Attributes
    ----------
    native : the simulation itself.
    jobs : JOBS.
    nodes : views are made from its ``needs``, ``capacity`` and ``allocation``; a pool is one node.
    ticks : clock ticks in a second where jobs share nodes, which views show as one node; ``jobs``
        are in seconds. Else None.
    """

    native: Simulation
    jobs: NDArray[np.void]
    nodes: Any
    ticks: int | None = None

    @property
    def time(self) -> int:
        """Present time, on the clock of the simulation."""
        return self.native.time

    def view(self, facts: JobFacts) -> PassView:
        """Return what a dispatcher may know, where jobs may share nodes."""
        state, free = self.native.view(), self.native.free
        time: int | float = self.time
        if self.ticks is not None:  # what is free there are parts of nodes
            state, time = of_ticks(state, self.ticks), time / self.ticks
            free = int(self.nodes.capacity.sum() - self.nodes.needs[state["running"], 1].sum())
        if "free" not in state:
            state = on_one_node(state, free)
        return view_at(state, time, self.jobs, self.nodes, facts)

    def start(self, starts: list[tuple[int, Start]]) -> int:
        """Start jobs by row up to the first that does not fit; return how many started."""
        node, units, first = [_NOWHERE], [_NOWHERE], [0]
        for _, start in starts:
            if start.nodes is not None:
                distinct, counts = np.unique(start.nodes, return_counts=True)
                node.append(distinct)
                units.append(counts)
            first.append(sum(map(len, node)))
        rows = np.array([job for job, _ in starts], np.int64)
        cells = np.array(first), np.concatenate(node), np.concatenate(units)
        return self.native.launch(rows, *cells)


def of_ticks(view: dict[str, Ints], ticks: int) -> dict[str, Any]:
    """Return a view with its times in seconds, float64, from a clock of so many ticks a second."""
    times = ("submit", "duration", "running_start", "running_end")
    return view | {name: view[name] / ticks for name in times if name in view}


def on_one_node(view: dict[str, Ints], free: int) -> dict[str, Ints]:
    """Return a view of a pool as that of one node: jobs have a unit each."""
    n = len(view["running"])
    cells = {"first": np.arange(n + 1), "node": np.zeros(n, int), "units": np.ones(n, int)}
    return view | {"free": np.array([free])} | {f"cell_{name}": cells[name] for name in cells}


def dispatch(
    dispatcher: Callable[[PassView], Iterable[Any]], asking: Asking, facts: JobFacts
) -> None:
    """Ask a dispatcher which jobs start at this pass, and start them.

    Raises
    ------
    DispatchError : as :func:`ask`; a start that does not fit; or an empty answer when no job runs
        and none is to come.
    """
    view = asking.view(facts)
    start_now(dispatcher, view, ask(dispatcher, view, facts.job_number), asking, facts)


def start_now(
    dispatcher: Any, view: PassView, starts: list[Start], asking: Asking, facts: JobFacts
) -> None:
    """Start at once the jobs that a dispatcher has chosen; errors as of :func:`dispatch`."""
    fitted = asking.start([(int(view.job[start.place]), start) for start in starts])
    if fitted < len(starts):
        refuse_start(dispatcher, view, starts[fitted], facts.job_number)
    if not starts:
        check_goes_on(dispatcher, view, asking.native.coming, facts)


def check_goes_on(dispatcher: Any, view: PassView, coming: int, facts: JobFacts) -> None:
    """Raise a DispatchError where nothing has started, nothing runs and nothing is ``coming``."""
    if not len(view.running_job) and not coming:
        first = _called(view, 0, facts.job_number)
        others = len(view.job) - 1
        who = f"{first} and {counted(others, 'other')}" if others else first
        refuse(
            dispatcher,
            view,
            "starts nothing, when nothing runs and no job is still to come:"
            f" {who} would wait for ever",
        )


def ask(
    dispatcher: Callable[[PassView], Iterable[Any]], view: PassView, job_number: Ints | None = None
) -> list[Start]:
    """Return the answer of a dispatcher; :func:`check_fits` or the engine checks that it fits.

    Parameters
    ----------
    dispatcher, view : the dispatcher, and the view that it is given.
    job_number : (n_jobs,) numbers of the log for errors; None: errors name rows.

    Raises
    ------
    DispatchError : an answer that is no list of different places; nodes that do not exist or are
        not one for each unit; or a wrong call of the view by the dispatcher.
    """
    try:
        answer = dispatcher(view)
        listed = list(answer) if isinstance(answer, Iterable) else None
    except HpcgymError as error:
        raise DispatchError(f"dispatcher {_name(dispatcher)} at {view.time} s: {error}") from error
    if listed is None:
        refuse(dispatcher, view, f"must return the places that start, not {answer!r}")
    starts: dict[int, Start] = {}
    for entry in listed:
        given, chosen = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
        place = _place(dispatcher, view, given)
        called = _called(view, place, job_number)
        if place in starts:
            refuse(dispatcher, view, f"starts {called} twice")
        nodes = None if chosen is None else _nodes(dispatcher, view, place, chosen, called)
        starts[place] = Start(place, nodes)
    return list(starts.values())


def _called(view: PassView, place: int, job_number: Ints | None) -> str:
    """Return the name of a job in messages: its number in the log, or else its row."""
    row = int(view.job[place])
    number = -1 if job_number is None else job_number[row]
    return f"{f'job {number}' if number >= 0 else f'the job of row {row}'} (place {place})"


def _place(dispatcher: Any, view: PassView, given: Any) -> int:
    """Return a place of the queue, checked."""
    try:
        place = operator.index(given)
    except TypeError:
        place = -1
    if not 0 <= place < len(view.job):
        what = given.item() if isinstance(given, np.generic) else given
        refuse(
            dispatcher,
            view,
            f"starts {what!r}, which is no place from 0 to {len(view.job) - 1}; what scores jobs is"
            f" no dispatcher, but a policy: write by_score = hpcgym.Scheduler(policy="
            f"{_name(dispatcher)}), and name by_score",
        )
    return place


def _nodes(dispatcher: Any, view: PassView, place: int, chosen: Any, called: str) -> Ints:
    """Return the nodes that a dispatcher has chosen for the units of a job, checked."""
    try:
        node = np.asarray(chosen)
    except ValueError:  # lists of different lengths
        node = np.zeros(0)
    units = int(view.units[place])
    if node.shape != (units,) or node.dtype.kind not in "iu":
        refuse(dispatcher, view, f"must name a node for each of the {units} units of {called}")
    last = len(view.capacity) - 1
    if node.min() < 0 or node.max() > last:
        refuse(dispatcher, view, f"names a node for {called} beyond 0 to {last}")
    return node.astype(np.int64)


def check_fits(dispatcher: Any, view: PassView, starts: list[Start]) -> None:
    """Raise a DispatchError for a start that does not fit, where there is a view alone.

    If the dispatcher names the nodes of some jobs only, the others are not looked at.
    """
    free, named = view.free.copy(), False
    for start in starts:
        if start.nodes is not None:
            named = True
            np.subtract.at(free, start.nodes, view.per_unit[start.place])
            if (free < 0).any():
                refuse_start(dispatcher, view, start)
    if named:
        return
    fitting = set(view.in_order([start.place for start in starts]))
    for start in starts:
        if start.place not in fitting:
            refuse_start(dispatcher, view, start)


def check_starts(dispatcher: Any, view: PassView, starts: list[Start]) -> None:
    """Raise a DispatchError for an empty answer when no job runs, for an environment.

    :func:`dispatch` lets a machine stay idle for jobs that are still to come. In an environment the
    answer is an order of the queue, which cannot express that.
    """
    if not starts and not len(view.running_job):
        first = _called(view, 0, None)
        refuse(
            dispatcher,
            view,
            f"starts nothing, when nothing runs, and {first} fits: no order of the queue says that"
            " in an environment",
        )


def refuse_start(
    dispatcher: Any, view: PassView, start: Start, job_number: Ints | None = None
) -> NoReturn:
    """Raise a DispatchError that a job does not fit; arguments as those of :func:`ask`."""
    where = "into what is free" if start.nodes is None else "on the nodes it names"
    called = _called(view, start.place, job_number)
    refuse(dispatcher, view, f"starts {called}, which does not fit {where}")


def refuse(dispatcher: Any, view: PassView, what: str) -> NoReturn:
    """Raise a DispatchError that the dispatcher does something wrong at this time."""
    raise DispatchError(f"dispatcher {_name(dispatcher)} at {view.time} s: it {what}")


def _name(dispatcher: Any) -> str:
    """Return what a dispatcher is called."""
    named = getattr(dispatcher, "name", None) or getattr(dispatcher, "__name__", None)
    return str(named or type(dispatcher).__name__)


# --- Asking a dispatcher where each job has nodes of its own --------------------------------------
#
# Its answer is served in order, without backfilling. The first job that limits do not let start now
# waits, and so do all behind it; the dispatcher is asked again at the next pass.


def propose(
    dispatcher: Callable[[PassView], Iterable[Any]],
    asking: Asking,
    facts: JobFacts,
    capacity: Ints,
    held_back: Ints,
) -> None:
    """Ask a dispatcher which jobs start at this pass, and start those that limits allow.

    Parameters
    ----------
    asking : a simulation in which each job has nodes of its own, as many as processors.
    capacity : (N, R) resources of each node.
    held_back : (n_jobs,) how often limits have held back each chosen job; updated here.

    Raises
    ------
    DispatchError : as :func:`ask`; more nodes than are free; or no start when no job runs, none is
        to come and no limit changes any more.
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


def view_of(asking: Asking, facts: JobFacts, capacity: Ints, held_back: Ints) -> PassView:
    """Return what a dispatcher, or a policy, may know; a unit of a job is a whole node."""
    state = asking.native.view()
    known = _known(state, asking.time, asking.jobs, facts)
    job = known["job"]
    return PassView(
        **known,
        capacity=capacity.copy(),
        free=np.where(state["free"][:, np.newaxis] > 0, capacity, 0),
        units=asking.jobs["processors"][job],
        per_unit=np.repeat(capacity[:1], len(job), axis=0),
        units_per_node=np.ones(len(job), np.int64),
        allowed=asking.native.fits(job.tolist()).astype(np.bool_),
        held_back=held_back[job],
        running_per_unit=np.repeat(capacity[:1], len(state["running"]), axis=0),
        running_units=np.ones(len(state["cell_node"]), np.int64),
    )


def _check_room(dispatcher: Any, view: PassView, starts: list[Start], job_number: Ints) -> None:
    """Raise a DispatchError if there are not enough free nodes, whatever limits allow."""
    free = int((view.free[:, 0] > 0).sum())
    for start in starts:
        free -= int(view.units[start.place])
        if free < 0:
            refuse_start(dispatcher, view, start, job_number)


# --- Dispatchers that take time -------------------------------------------------------------------

_ROUNDING = 1e-6  # [s] a sum of floating-point numbers may be above the whole second that it is


class LateDispatcher:
    """A dispatcher in a simulation in which its calls take time.

    Parameters
    ----------
    dispatcher : the dispatcher that is called.
    dispatch_time : "measured", seconds, or a callable that takes the view and returns seconds.
    facts : of the jobs.

    Attributes
    ----------
    due : [s] when the present call ends; FOREVER between calls.
    """

    def __init__(self, dispatcher: Any, dispatch_time: Any, facts: JobFacts):
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
        """Start the chosen jobs, now that they are ``due``; ask again if a pass has come since.

        All events up to ``due``, and at it, have happened.

        Raises
        ------
        DispatchError : as :func:`at_pass`.
        """
        if asking.time < self.due:
            asking.native.pass_time(self.due)
        passed, self._passed, self.due = self._passed, False, FOREVER
        # jobs have only ended meanwhile, so the nodes that were free then are still free; but some
        # nodes may have failed: jobs chosen for these go on waiting
        left = self._decided[asking.start(self._decided) + 1 :]
        while left:
            left = left[asking.start(left) + 1 :]
        if not passed:
            return
        view = asking.view(self._facts)
        if view.fits().any():
            self._ask(view, asking)

    def _ask(self, view: PassView, asking: Asking) -> None:
        """Ask which jobs start, and start them; if the call takes time, keep them until due."""
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
        seconds = self._takes
        if seconds == MEASURED:
            seconds = measured
        elif callable(seconds):
            seconds = seconds(view)
            if not (is_number(seconds) and 0 <= seconds <= MOST_DISPATCH_TIME):
                what = f"0 to {MOST_DISPATCH_TIME:,} s"
                refuse(self.dispatcher, view, f"takes {seconds!r} by dispatch_time, not {what}")
        return max(math.ceil(float(seconds) - _ROUNDING), 0)


def on_nodes(
    dispatcher: Any, view: PassView, starts: list[Start], job_number: NDArray[np.int64]
) -> list[Start]:
    """Return starts with a node for each unit, which the allocation chooses now if none is named.

    Raises
    ------
    DispatchError : a start that does not fit.
    """
    free, placed = view.free.copy(), list[Start]()
    for named, part in groupby(starts, lambda start: start.nodes is not None):
        group = list(part)
        if not named:
            places = [start.place for start in group]
            chosen = dict(view.placed(places, free, after=[start.place for start in placed]))
            group = [Start(place, chosen.get(place)) for place in places]
        for start in group:
            if start.nodes is None:
                refuse_start(dispatcher, view, start, job_number)
            np.subtract.at(free, start.nodes, view.per_unit[start.place])
            if (free < 0).any():
                refuse_start(dispatcher, view, start, job_number)
        placed += group
    return placed


def facts_of(
    workload: Workload, cluster: Cluster, policy_time: Ints, pool: bool = False
) -> JobFacts:
    """Return the fixed facts of the jobs that views tell; on a ``pool`` cores are the one resource.

    ``policy_time``: run times that policies look at, (n_jobs,) [s], unless these are learned.
    """
    return JobFacts(
        cluster.resources[:1] if pool else cluster.resources,
        workload.job_number,
        workload.user_id,
        workload.queue,
        expected_waits(workload, cluster.queues),
        max(cluster.queues.values(), default=1.0),
        policy_time,
    )
