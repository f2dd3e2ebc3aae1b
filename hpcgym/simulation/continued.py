"""Extracts of simulations: an interval of a long one, to go on with alone or by other rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.schedule.runs import Allocation, cells_held
from hpcgym.scheduler.estimates.learning import BY_REGRESSION, FROM_OUTSIDE, N_SEEN
from hpcgym.simulation.driver import Simulation, new_simulation
from hpcgym.simulation.nodes import place_of
from hpcgym.workload.extracts import interval, joined, named, nothing_there
from hpcgym.workload.model import Initial
from hpcgym.workload.ongoing import Ongoing, Predictions

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.workload.model import Workload


def continued(result: Result, start: float, end: float | None = None) -> Workload:
    """Return the jobs of [start, end), and the state of a simulation at ``start``.

    Simulated by the same scheduler on the same machine, they start as in ``result``, to the second;
    another scheduler goes on from this state in its own way. Jobs that started before ``start`` and
    end then or later are *running*; jobs that were submitted before and start later are *queued*;
    jobs that had ended are kept for fair share and for learned run times, as in
    :func:`hpcgym.workload.extracts.extract`. The column ``wait_time`` has the waiting times of
    ``result``.

    The simulation is repeated up to ``start`` for what no schedule tells, such as reservations. The
    same scheduler looks at the queue at the next event, another one at ``start``.

    Starts may differ with ``allocation="random"``, which draws anew, and in orders by usage, where
    users who first come after ``end`` would have counted among those who share.

    Parameters
    ----------
    result : what :func:`hpcgym.simulate` returned.
    start, end : [s] of the trace's clock, whole seconds; without ``end``, up to the last
        submission.

    Returns
    -------
    part : the running, queued and submitted jobs, with ``part.initial``.

    Raises
    ------
    HpcgymError : a schedule that cannot be repeated up to ``start``: with speedups, limits,
        shutdown of processors, a dispatcher or an environment, preemption, or nodes that fail.
    WorkloadError : times that are no whole seconds, in the wrong order, or before the beginning of
        the simulation of an extract; no job in the extract.
    """
    begin, last = interval(start, end)
    part = next(continuations(result, [(begin, last)]))
    if not len(part):
        raise nothing_there(result.workload, begin, last)
    return part


def continuations(result: Result, times: Sequence[tuple[int, int]]) -> Iterator[Workload]:
    """Yield :func:`continued` of some intervals from one simulation; some may have no jobs.

    ``times``: when each begins, rising, and before when its jobs are submitted [s].
    """
    _check(result)
    first = result.workload.initial
    simulation = again(result)
    for begin, last in times:
        if first is not None and begin <= first.begin:
            raise WorkloadError(f"start must be after {first.begin} s, where result begins")
        simulation.drive(begin - 1)
        yield _part(result, simulation, begin, last)


def _part(result: Result, simulation: Simulation, begin: int, last: int) -> Workload:
    """Return the jobs that run, wait, or come before ``last`` [s], where a simulation stands."""
    workload, scheduler, cluster = result.workload, result.scheduler, result.cluster
    known = simulation.schedule()
    started = known["start"]
    submit, begun = workload.submit_time, started >= 0
    if not np.array_equal(started[begun], result.start[begun]):
        raise HpcgymError("result: another schedule than that of its scheduler")
    runs = begun & (started + known["run"] >= begin)
    kept, before = runs | (~begun & (submit < last)), submit < begin
    planned, cells = simulation.native.reserved(), result.allocation
    reserved, held = None, runs
    if "reserved" in planned:  # of jobs that wait
        held = runs | (before & ~begun)
        reserved = np.where(before & ~begun, planned["reserved"], -1)
    if simulation.place.nodes is not None:
        cells = Allocation.of(known if reserved is None else planned)
    ongoing = Ongoing(
        scheduler.describe(),
        cluster,
        order=known["number"],
        predicted=np.where(before, known["predicted"], -1),
        promised=known["promised"],
        reserved=reserved,
        cells=None if cells is None else cells_held(cells, held),
        looks=_looks(simulation),
        predictions=_predictions(simulation, known, runs, before & ~begun),
    )
    bare = replace(workload, initial=None, cleaning={})
    past = bare.with_columns(wait_time=result.wait, run_time=result.run_time).take(begun & ~runs)
    if workload.initial is not None:
        past = joined(workload.initial.past, past)
    past = replace(past, name=f"{workload.name} before {begin}")
    jobs = bare.with_columns(wait_time=result.wait)
    jobs = replace(jobs, initial=Initial(begin, np.where(runs, started, -1), past, ongoing))
    return jobs.take(kept, name=named(workload, begin, last))


def _check(result: Result) -> None:
    """Raise an HpcgymError if the schedule cannot be made again up to some time."""
    why = {
        "speedups of jobs that share nodes": result.coschedule is not None,
        "limits": result.limits is not None,
        "processors that are switched off": result.cluster.shutdown_after_s is not None,
        "a dispatcher": result.scheduler.dispatcher is not None,
        "an order from outside": result.outside,
        "preemption": result.scheduler.preemption is not None,
        # what jobs that wait have lost is in no column of theirs, and users were charged for it
        "nodes that fail, whose lost runs an extract does not tell,": result.lost is not None,
        "jobs that follow others": result.scheduler.dependencies != "none",
        "quotas of submitted jobs": result.scheduler.moves_submissions,
    }
    for what, present in why.items():
        if present:
            raise HpcgymError(
                f"result: a simulation with {what} cannot be continued; "
                "result.as_workload().extract(start, end) begins with its running and queued jobs"
            )


def again(result: Result) -> Simulation:
    """Return the simulation of a result before its first event.

    Of pools, and of nodes that jobs do not share, under no limits.
    """
    workload, scheduler = result.workload, result.scheduler
    return new_simulation(workload, scheduler, place_of(workload, scheduler, result.cluster))


def _predictions(
    simulation: Simulation,
    known: Mapping[str, NDArray[np.int64]],
    runs: NDArray[np.bool_],
    waits: NDArray[np.bool_],
) -> Predictions | None:
    """Return what has been learned, and is said of jobs; None if nothing is learned."""
    learning, native = simulation.learning, simulation.native
    if learning is None:
        return None
    n, view = len(runs), native.view()
    expected = np.full(n, -1)
    expected[view["running"]] = view["running_end"]
    seen = np.zeros((n, 0))
    if np.isin(learning.estimators.kinds, (FROM_OUTSIDE, BY_REGRESSION)).any():
        seen = np.zeros((n, N_SEEN))
        for job in np.flatnonzero(runs | waits).tolist():
            seen[job] = native.features(job)
    none = np.zeros(n, np.int64)
    return Predictions(
        simulation.learned(), known.get("ordered_by", none), expected, known["corrections"], seen
    )


def _looks(simulation: Simulation) -> tuple[int, ...] | None:
    """Return when passes come, where that is by the clock; else None."""
    if not simulation.told.rules.get("every"):
        return None
    return tuple(simulation.native.moment()["looks"].tolist())
