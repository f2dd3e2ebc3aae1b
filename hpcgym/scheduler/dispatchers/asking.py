"""Asking a dispatcher: the view of a simulation at a pass, and what is done with the answer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.naming import counted
from hpcgym.scheduler.allocations import BY_DEMAND, RANDOM
from hpcgym.scheduler.dispatchers.view import PassView

if TYPE_CHECKING:
    from hpcgym._engine import Simulation

Ints = NDArray[np.int64]
_NOWHERE = np.zeros(0, np.int64)


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


class Present(NamedTuple):
    """The jobs that wait and those that run, by row of the workload, and what is known of them."""

    time: int | float
    jobs: NDArray[np.void]  # JOBS of all
    queued: Ints
    submit: Ints  # [s] of these
    duration: Ints  # [s] predicted run times of these
    running: Ints
    running_start: Ints
    running_end: Ints  # as predicted


def view_at(present: Present, nodes: Any, told: dict[str, Ints], facts: Facts) -> PassView:
    """Return what a dispatcher may know of these jobs on the nodes of a simulation.

    ``told`` : what the engine tells of the nodes, ``Simulation.view``.
    """
    job, running = present.queued, present.running
    return PassView(
        **seen(present, facts),
        capacity=nodes.capacity.copy(),
        free=told["free"].reshape(nodes.capacity.shape),
        units=nodes.needs[job, 0],
        per_unit=nodes.needs[job, 1:],
        allowed=np.ones(len(job), np.bool_),
        held_back=np.zeros(len(job), np.int64),
        running_per_unit=nodes.needs[running, 1:],
        running_first=told["cell_first"],
        running_node=told["cell_node"],
        running_units=told["cell_units"],
        allocation=nodes.allocation,
        drawn=told["drawn"] if nodes.allocation == RANDOM else None,
        asked=told["asked"] if nodes.allocation in BY_DEMAND else None,
    )


def seen(present: Present, facts: Facts) -> dict[str, Any]:
    """Return what a view tells of jobs on any machine, by its attributes."""
    time, jobs, job, submit, duration, running, start, end = present
    return {
        "time": time,
        "resources": facts.resources,
        "job": job,
        "submit": submit,
        "wait": time - submit,
        "duration": duration,
        "requested": jobs["requested"][job],
        "user": facts.user[job],
        "queue": facts.queue[job],
        "expected_wait": facts.expected_wait[job],
        "max_expected_wait": facts.max_expected_wait,
        "running_job": running,
        "running_start": start,
        "running_end": np.maximum(end, time + 1),
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
    told = getattr(dispatcher, "begin", None)
    if told is not None:
        told()


class Asking(NamedTuple):
    """A simulation that asks what starts, or in which order jobs wait.

    Attributes
    ----------
    native : the simulation itself.
    jobs : JOBS.
    nodes : with ``needs``, ``capacity`` and ``allocation``: what views on them are made from; a
        pool is one node.
    ticks : of the clock in a second where jobs share nodes, which are one node then; ``jobs`` are
        in seconds. Else None.
    """

    native: Simulation
    jobs: NDArray[np.void]
    nodes: Any
    ticks: int | None = None

    @property
    def time(self) -> int:
        """Present time, on the clock of the simulation."""
        return self.native.time

    def view(self, facts: Facts) -> PassView:
        """Return what a dispatcher may know, where jobs may share nodes."""
        told, free = self.native.view(), self.native.free
        time: int | float = self.time
        if self.ticks is not None:  # what is free there are parts of nodes
            told, time = in_seconds(told, self.ticks), time / self.ticks
            free = int(self.nodes.capacity.sum() - self.nodes.needs[told["running"], 1].sum())
        if "free" not in told:
            told = on_one_node(told, free)
        return view_at(present_in(told, time, self.jobs), self.nodes, told, facts)

    def start(self, starts: list[tuple[int, Start]]) -> int:
        """Start jobs of these rows up to the first that does not fit; return how many started."""
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


def in_seconds(told: dict[str, Ints], ticks: int) -> dict[str, Any]:
    """Return a view with its times in seconds, float64, of a clock of so many ticks a second."""
    times = ("submit", "duration", "running_start", "running_end")
    return told | {name: told[name] / ticks for name in times if name in told}


def on_one_node(told: dict[str, Ints], free: int) -> dict[str, Ints]:
    """Return a view of a pool as that of one node: jobs have a unit each."""
    n = len(told["running"])
    cells = {"first": np.arange(n + 1), "node": np.zeros(n, int), "units": np.ones(n, int)}
    return told | {"free": np.array([free])} | {f"cell_{name}": cells[name] for name in cells}


def present_in(told: dict[str, Ints], time: int | float, jobs: NDArray[np.void]) -> Present:
    """Return the jobs that wait and run, by ``Simulation.view``."""
    order = np.argsort(told["queued"])
    queued, duration = told["queued"][order], told["duration"][order]
    running = told["running"], told["running_start"], told["running_end"]
    submit = told["submit"][order] if "submit" in told else jobs["submit"][queued]
    return Present(time, jobs, queued, submit, duration, *running)


def dispatch(dispatcher: Callable[[PassView], Iterable[Any]], asking: Asking, facts: Facts) -> None:
    """Ask a dispatcher what starts at this pass, and start it.

    Raises
    ------
    DispatchError : what :func:`ask` raises; a start that does not fit; or nothing that starts,
        though nothing runs and nothing is to come.
    """
    view = asking.view(facts)
    start_now(dispatcher, view, ask(dispatcher, view, facts.job_number), asking, facts)


def start_now(
    dispatcher: Any, view: PassView, starts: list[Start], asking: Asking, facts: Facts
) -> None:
    """Start at once what a dispatcher has answered; errors are those of :func:`dispatch`."""
    fitted = asking.start([(int(view.job[one.place]), one) for one in starts])
    if fitted < len(starts):
        refuse_start(dispatcher, view, starts[fitted], facts.job_number)
    if not starts:
        check_goes_on(dispatcher, view, asking.native.coming, facts)


def check_goes_on(dispatcher: Any, view: PassView, coming: int, facts: Facts) -> None:
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
    """Return what a dispatcher answers; whether it fits is for :func:`check_fits` or the engine.

    Parameters
    ----------
    dispatcher, view : who is asked, and what it is shown.
    job_number : (n_jobs,) of the log, by which errors call jobs; without it by their rows.

    Raises
    ------
    DispatchError : an answer that is no list of different places, nodes that there are not or that
        are not one for each unit, or what the dispatcher asks the view wrongly.
    """
    try:
        answer = dispatcher(view)
        listed = list(answer) if isinstance(answer, Iterable) else None
    except HpcgymError as error:
        raise DispatchError(f"dispatcher {_name(dispatcher)} at {view.time} s: {error}") from error
    if listed is None:
        refuse(dispatcher, view, f"must return the places that start, not {answer!r}")
    starts: dict[int, Start] = {}
    for one in listed:
        given, chosen = one if isinstance(one, tuple) and len(one) == 2 else (one, None)
        place = _place(dispatcher, view, given)
        called = _called(view, place, job_number)
        if place in starts:
            refuse(dispatcher, view, f"starts {called} twice")
        nodes = None if chosen is None else _nodes(dispatcher, view, place, chosen, called)
        starts[place] = Start(place, nodes)
    return list(starts.values())


def _called(view: PassView, place: int, job_number: Ints | None) -> str:
    """Return what messages call a job: by its number in the log, or if it has none by its row."""
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
        told = given.item() if isinstance(given, np.generic) else given
        refuse(
            dispatcher,
            view,
            f"starts {told!r}, which is no place from 0 to {len(view.job) - 1}; what scores jobs is"
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
    """Raise a DispatchError where nothing starts though nothing runs, for an environment.

    :func:`dispatch` lets a machine stay idle for jobs that are still to come. An environment is
    told an order of the queue, which cannot say so: what happens there is not the dispatcher's.
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
