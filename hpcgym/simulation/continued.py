"""Extracts of simulations: an interval of a long one, to go on with alone or by other rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.scheduler.dispatchers.view import cells_of
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.simulation.driver import Simulation, new_simulation
from hpcgym.simulation.nodes import as_on_pool, needs_on, nodes_for
from hpcgym.workload.extracts import interval, named, nothing_there
from hpcgym.workload.warm_start import Cells, Initial, Ongoing, joined

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.workload.model import Workload


def continued(result: Result, start: float, end: float | None = None) -> Workload:
    """Return the jobs of [start, end), and the state that a simulation was in at ``start``.

    Simulated by the same scheduler on the same machine, they start as in ``result``, to the second;
    by another one, that is what it makes of this state. Jobs that had started before ``start`` and
    end then or later are *running*, those that were submitted before and start later are
    *queued*, and those that had ended are kept for fair share and for run times that are learned,
    as :func:`hpcgym.workload.extracts.extract` says of traces. Waiting times of the jobs,
    the column ``wait_time``, are those of ``result``.

    To know what no schedule tells, such as reservations, the simulation is done again up to
    ``start``. The same scheduler looks at the queue when something happens next, another one at
    ``start``.

    Not to the second: with ``allocation="random"``, which draws anew; and by usage, where users
    who come from ``end`` on would have counted among those who share.

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
    HpcgymError : a schedule that cannot be made again up to ``start``: with speedups, under limits,
        with processors that are switched off, of a dispatcher or an environment, with preemption,
        or with run times that are learned.
    WorkloadError : times that are no whole seconds, in the wrong order or before the beginning of
        the simulation, where that is one of an extract; no job in the extract.
    """
    begin, last = interval(start, end)
    _check(result)
    workload, scheduler, cluster = result.workload, result.scheduler, result.cluster
    if workload.initial is not None and begin <= workload.initial.begin:
        raise WorkloadError(f"start must be after {workload.initial.begin} s, where result begins")
    simulation, nodes = again(result)
    simulation.drive(begin - 1, goes_on=False)
    arrays = simulation.arrays
    started = arrays.progress["start"]
    submit, begun = workload.submit_time, started >= 0
    if not np.array_equal(started[begun], result.start[begun]):
        raise HpcgymError("result: another schedule than that of its scheduler")
    runs = begun & (started + arrays.jobs["run"] >= begin)
    kept = runs | (~begun & (submit < last))
    if not kept.any():
        raise nothing_there(workload, begin, end)
    before = submit < begin
    reserved = _reserved(arrays, before & ~begun)
    held = runs if reserved is None else runs | (before & ~begun)
    ongoing = Ongoing(
        scheduler.describe(),
        cluster,
        order=arrays.progress["marks"] // state.STARTED_AS,
        predicted=np.where(before, arrays.progress["predicted"], -1),
        promised=arrays.progress["promised"],
        reserved=reserved,
        cells=cells_held(result, nodes, held),
        looks=tuple(int(arrays.sim[name]) for name in state.LOOKS) if arrays.sim.every else None,
    )
    bare = replace(workload, initial=None, cleaning={})
    past = bare.with_columns(wait_time=result.wait, run_time=result.run_time).take(begun & ~runs)
    if workload.initial is not None:
        past = joined(workload.initial.past, past)
    past = replace(past, name=f"{workload.name} before {begin}")
    jobs = bare.with_columns(wait_time=result.wait)
    jobs = replace(jobs, initial=Initial(begin, np.where(runs, started, -1), past, ongoing))
    return jobs.take(kept, name=named(workload, begin, end))


def _check(result: Result) -> None:
    """Raise an HpcgymError if the schedule cannot be made again up to some time."""
    why = {
        "speedups of jobs that share nodes": result.coschedule is not None,
        "limits": result.limits is not None,
        "processors that are switched off": result.cluster.shutdown_after_s is not None,
        "a dispatcher": result.scheduler.dispatcher is not None,
        "an order from outside": result.outside,
        "preemption": result.scheduler.preemption is not None,
        "jobs that follow others": result.scheduler.dependencies != "none",
        "quotas of submitted jobs": result.scheduler.moves_submissions,
        "run times that are learned": asks_for_predictions(result.scheduler)
        or result.learned is not None,
    }
    for what, present in why.items():
        if present:
            raise HpcgymError(
                f"result: a simulation with {what} cannot be continued; "
                "result.as_workload().extract(start, end) begins with its running and queued jobs"
            )


def again(result: Result) -> tuple[Simulation, Nodes | None]:
    """Return the simulation of a result before its first event, and nodes where jobs have any.

    Of pools, and of nodes that jobs do not share, under no limits.
    """
    workload, scheduler, cluster = result.workload, result.scheduler, result.cluster
    nodes = None
    if cluster.groups:
        needs = needs_on(workload, cluster)
        if not as_on_pool(needs, scheduler):
            nodes = nodes_for(workload, needs, cluster, scheduler)
    return new_simulation(workload, scheduler, cluster, nodes), nodes


def _reserved(arrays: state.Prepared, queued: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return the start times reserved for jobs that wait, (n_jobs,) [s]; None if there are none."""
    if arrays.sim.depth != state.UNLIMITED or arrays.sim.expired:
        return None
    return np.where(queued, arrays.line["reserved"], -1)


def cells_held(result: Result, nodes: Nodes | None, held: NDArray[np.bool_]) -> Cells | None:
    """Return the nodes of the jobs that hold some, (n_jobs,) bool; None on a pool.

    ``nodes``: the machine of a simulation that is done again; None: as ``result`` says.
    """
    if result.allocation is None:
        return None
    cells = result.allocation if nodes is None else cells_of(nodes, np.arange(len(held)))
    first, node, units = (np.asarray(column, np.int64) for column in cells)
    counts = np.diff(first)
    chosen = np.repeat(held, counts)
    first = np.concatenate([[0], np.cumsum(np.where(held, counts, 0))])
    return Cells(first, node[chosen], units[chosen])
