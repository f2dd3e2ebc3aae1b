"""Simulations on machines of nodes, and those in which a dispatcher says what starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, Model, assign
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.engine.machines.nodes.placement import Nodes, make_nodes
from hpcgym.engine.machines.nodes.rows import Rooms, make_rooms
from hpcgym.errors import HpcgymError
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.records import JOBS
from hpcgym.scheduler import allocations
from hpcgym.scheduler.allocations import asks_of, random_seed
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.dispatchers.asking import Facts, begin, dispatch
from hpcgym.scheduler.dispatchers.late import LateDispatcher
from hpcgym.simulation.native_nodes import layout_of
from hpcgym.simulation.starting import Proposed, Starting
from hpcgym.simulation.warm_start import own_cells
from hpcgym.simulation.windows import closings, holders_of
from hpcgym.workload.needs import check_fits, expected_waits, needs_of
from hpcgym.workload.partition_limits import check_limits
from hpcgym.workload.partitions import check_partitions
from hpcgym.workload.warm_start import Cells
from hpcgym.workload.whole_nodes import warn_of_shared

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload
    from hpcgym.workload.warm_start import Initial

_ALLOCATIONS = {
    "first-fit": allocations.FIRST_FIT,
    "best-fit": allocations.BEST_FIT,
    "worst-fit": allocations.WORST_FIT,
    "balanced": allocations.BALANCED,
    "weighted": allocations.WEIGHTED,
    "hybrid": allocations.HYBRID,
    "random": allocations.RANDOM,
}

_NONE = np.zeros(0, np.int64)
_NO_CELLS = Cells(np.zeros(1, np.int64), _NONE, _NONE)
_MOST_ASKED = 2.0**62  # of resources, in units of a machine file, times seconds


def needs_on(workload: Workload, cluster: Cluster) -> NDArray[np.int64]:
    """Return what the jobs ask of the nodes of a machine, (n_jobs, 1 + R).

    On a pool, which is one node, a job is one unit.

    Raises
    ------
    WorkloadError : a job that never fits, asks for what the machine does not have, or is one that
        its partition does not let run.
    """
    if not cluster.groups:
        return np.column_stack([np.ones(len(workload), np.int64), workload.requested_processors])
    check_partitions(workload, [one.name for one in cluster.partitions])
    warn_of_shared(workload, cluster)
    needs = needs_of(workload, cluster.resources)
    check_fits(workload, needs, cluster.capacity, cluster.resources)
    check_limits(workload, cluster)
    return needs


def single_cores(needs: NDArray[np.int64]) -> bool:
    """Return whether each unit is one core and nothing else.

    Such units fit wherever a core is free. So cores are alike: the machine is a pool of them, and a
    job can have any when it starts.
    """
    return bool((needs[:, 1] == 1).all() and (needs[:, 2:] == 0).all())


def as_on_pool(needs: NDArray[np.int64], scheduler: Scheduler) -> bool:
    """Return whether the starts of jobs are those on a pool, and nodes can be chosen afterwards.

    So it is with single cores, but for Slurm's reservations and windows of nodes by name: a core
    that is free on another node is of no use to who is to start there. Nor under preemption, which
    frees nodes.
    """
    by_name = scheduler.slurm is not None or any(window.nodes for window in scheduler.windows)
    by_name = by_name or scheduler.preemption is not None
    return single_cores(needs) and not by_name


def nodes_for(
    workload: Workload, needs: NDArray[np.int64], cluster: Cluster, scheduler: Scheduler
) -> Nodes:
    """Return the empty nodes of a machine, for jobs that ask for so much of them.

    Raises
    ------
    HpcgymError : passes at single events, which are for pools of processors.
    """
    check_scheduler(scheduler, "nodes")
    plans = scheduler.depth is None or scheduler.plans
    asks = demand_of(needs, workload.requested_time, scheduler)
    closed = closings(workload, scheduler, cluster)
    takers = 0
    if scheduler.slurm is not None:
        takers = min(scheduler.slurm.bf_max_job_test, len(workload)) + len(closed)
    code = allocation_code(scheduler)
    if not closed:
        return make_nodes(needs, cluster.capacity, *code, plans, asks, takers)
    holders = holders_of(closed, cluster)
    if asks is not None:  # who holds nodes in windows does not wait for anything
        asks = np.concatenate([asks, np.zeros_like(holders[:, 1:])])
    needs = np.concatenate([needs, holders])
    nodes = make_nodes(needs, cluster.capacity, *code, plans, asks, takers)
    for holder, one in enumerate(closed, len(workload)):
        cells = nodes.cells[nodes.held["first"][holder] :][: len(one.nodes)]
        cells["node"], cells["units"] = one.nodes, 1
        nodes.held["count"][holder] = len(one.nodes)
    return nodes


def asked(
    dispatcher: Any, workload: Workload, cluster: Cluster, asks: Callable[..., None] | None = None
) -> tuple[Any, Starting | Proposed]:
    """Return a dispatcher, told that a simulation begins, and what asks it in a pass.

    ``asks`` takes the dispatcher, a simulation where each job has nodes of its own, and ``facts``;
    None: one where jobs share them is asked.
    """
    dispatcher, facts = _begun(dispatcher), facts_of(workload, cluster)
    if asks is not None:
        return dispatcher, Proposed(partial(asks, dispatcher, facts=facts))
    return dispatcher, Starting(partial(dispatch, dispatcher, facts=facts))


def asked_late(
    dispatcher: Any, workload: Workload, cluster: Cluster, scheduler: Scheduler
) -> tuple[Any, LateDispatcher]:
    """Return a dispatcher, told that a simulation begins, and what asks it if calls take time."""
    dispatcher = _begun(dispatcher)
    facts = facts_of(workload, cluster)
    return dispatcher, LateDispatcher(dispatcher, scheduler.dispatch_time, facts)


def _begun(dispatcher: Any) -> Any:
    """Return a dispatcher, of a name too, that has been told that a simulation begins."""
    if isinstance(dispatcher, str):
        dispatcher = find_dispatcher(dispatcher)
    begin(dispatcher)
    return dispatcher


def facts_of(workload: Workload, cluster: Cluster, pool: bool = False) -> Facts:
    """Return what views tell of the jobs beside the simulation; of cores alone on a ``pool``."""
    return Facts(
        cluster.resources[:1] if pool else cluster.resources,
        workload.job_number,
        workload.user_id,
        workload.queue,
        expected_waits(workload, cluster.queues),
        max(cluster.queues.values(), default=1.0),
    )


def assign_nodes(
    schedule: Mapping[str, NDArray[np.int64]],
    needs: NDArray[np.int64],
    cluster: Cluster,
    scheduler: Scheduler,
    initial: Initial | None = None,
) -> Allocation:
    """Return the nodes of jobs that have run on a pool of as many cores, given at their starts.

    ``schedule`` is the simulator's; jobs that have not started get none. Those that run at the
    beginning, by ``initial``, have their own where it tells them.
    """
    start, run, requested = (schedule[name] for name in ("start", "run", "requested"))
    asks, since = demand_of(needs, requested, scheduler), -FOREVER
    if initial is not None:
        since = initial.begin
        if asks is not None:
            asks[: len(initial.running)][initial.running] = 0  # they do not wait
    # in the order in which they come, which is another where jobs depend on others
    come = np.argsort(schedule["submit"], kind="stable")
    place = np.argsort(come)
    begun = np.flatnonzero(start >= 0)
    by_start = np.empty_like(begun)
    by_start[schedule["number"][begun]] = begun
    by_end = begun[np.argsort(start[begun] + run[begun])]
    cells, known = None if initial is None else own_cells(initial, cluster), _NO_CELLS
    if initial is not None and cells is not None:
        known = cells.take(by_start[: int(initial.running.sum())])
    jobs = np.zeros(len(start), JOBS)
    for name in ("submit", "run", "requested"):
        jobs[name] = schedule[name][come]
    jobs["processors"] = needs[come, 0]
    nodes = make_nodes(
        needs[come],
        cluster.capacity,
        *allocation_code(scheduler),
        asks=None if asks is None else asks[come],
    )
    model = Model(
        jobs.view(np.int64).reshape(len(jobs), -1),
        cluster.processors,
        {},
        predicted=jobs["requested"].copy(),
        nodes=layout_of(nodes),
    )
    found = assign(model, start[come], place[by_start], place[by_end], *known, since)
    return Allocation.of(found).rows(place)


def node_needs(
    cluster: Cluster, workload: Workload, scheduler: Scheduler, keeps_books: bool = False
) -> NDArray[np.int64] | None:
    """Return what jobs ask of nodes in an environment, None where it is a pool of processors.

    So it is where jobs ask for single cores, unless it ``keeps_books`` of who has which. Behind the
    jobs stands who holds nodes in windows.

    Raises
    ------
    HpcgymError : rules with which environments know no nodes.
    WorkloadError : a job that never fits.
    """
    if is_pool(cluster, workload, scheduler) and not keeps_books:
        return None
    check_scheduler(scheduler, "nodes", "environments on nodes")
    needs = needs_on(workload, cluster)
    if scheduler.windows:
        needs = np.concatenate([needs, holders_of(closings(workload, scheduler, cluster), cluster)])
    return needs


def check_limits_kept(scheduler: Scheduler, cluster: Cluster) -> None:
    """Raise an HpcgymError for what environments do only under limits."""
    if scheduler.power != "none":
        check_scheduler(scheduler, "environments on nodes" if cluster.groups else "pool")


def rooms_for(
    needs: NDArray[np.int64],
    requested: NDArray[np.int64],
    cluster: Cluster,
    scheduler: Scheduler,
    number: int,
    longest: int,
    holders: int = 0,
) -> Rooms:
    """Return the nodes of that many simulations in an environment or a batch.

    ``needs`` (n_jobs, 1 + R) and ``requested`` (n_jobs,) [s] are of their jobs; so many as
    ``holders``, the last, hold nodes in windows of all simulations.
    """
    asks = demand_of(needs, requested, scheduler)
    code = allocation_code(scheduler)
    plans, looks = scheduler.plans, scheduler.slurm is not None
    return make_rooms(needs, cluster.capacity, *code, number, longest, asks, plans, holders, looks)


def demand_of(
    needs: NDArray[np.int64], requested: NDArray[np.int64], scheduler: Scheduler
) -> NDArray[np.int64] | None:
    """Return what jobs ask for, (n_jobs, R), where the allocation goes by it.

    Raises
    ------
    HpcgymError : more in all than can be counted.
    """
    if _ALLOCATIONS[scheduler.allocation.partition(":")[0]] not in allocations.BY_DEMAND:
        return None
    asks = asks_of(needs, requested)
    most = (needs[:, :1].astype(np.float64) * needs[:, 1:] * (requested[:, np.newaxis] + 1.0)).sum()
    if most > _MOST_ASKED:
        raise HpcgymError(
            f"allocation {scheduler.allocation!r}: all jobs together ask for {most:.1e} times a"
            f" second of what nodes have, which must be at most {_MOST_ASKED:.1e}"
        )
    return asks


def allocation_code(scheduler: Scheduler) -> tuple[int, int]:
    """Return the allocation as the engine takes it, and its seed."""
    allocation = scheduler.allocation
    return _ALLOCATIONS[allocation.partition(":")[0]], random_seed(allocation)


def is_pool(cluster: Cluster, workload: Workload, scheduler: Scheduler) -> bool:
    """Return whether a machine is a pool of processors, as :func:`as_on_pool` says.

    Raises
    ------
    WorkloadError : a job that never fits.
    """
    return not cluster.groups or as_on_pool(needs_on(workload, cluster), scheduler)


def check_pool(cluster: Cluster, workload: Workload, what: str) -> None:
    """Raise an HpcgymError where jobs ask for more of nodes than single cores."""
    if cluster.groups and not single_cores(needs_on(workload, cluster)):
        raise HpcgymError(
            f"{what} knows pools of processors only, and jobs whose units are single cores; "
            "simulate, evaluate, environments and batches know nodes"
        )


def pool_as_node(asked: NDArray[np.int64], processors: int) -> Nodes:
    """Return one node with all processors, and jobs that ask for so many on it."""
    needs = np.column_stack([np.ones_like(asked), asked])
    nodes = make_nodes(needs, np.array([[processors]]), allocations.FIRST_FIT)
    nodes.cells["node"], nodes.cells["units"] = 0, 1
    nodes.held["count"] = 1
    return nodes
