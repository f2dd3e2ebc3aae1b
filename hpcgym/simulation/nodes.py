"""Machines of nodes that jobs may share and that may fail: jobs' demands, and their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, Layout, Model, assign
from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import ANY_NUMBER, Cluster
from hpcgym.names import PARTITION
from hpcgym.schedule.runs import Allocation
from hpcgym.scheduler import allocations
from hpcgym.scheduler.allocations import asks_of, random_seed, random_state
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.simulation.prepare import Place, pool_of
from hpcgym.simulation.restricted import barred, closings, holders_of
from hpcgym.simulation.warm_start import own_cells
from hpcgym.workload.checks import needs_on, single_cores
from hpcgym.workload.model import Workload
from hpcgym.workload.ongoing import Cells

if TYPE_CHECKING:
    from hpcgym.machine.failures import Failures
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Initial

_ALLOCATIONS = {
    "first-fit": allocations.FIRST_FIT,
    "best-fit": allocations.BEST_FIT,
    "worst-fit": allocations.WORST_FIT,
    "balanced": allocations.BALANCED,
    "weighted": allocations.WEIGHTED,
    "hybrid": allocations.HYBRID,
    "random": allocations.RANDOM,
}

_MOST_ASKED = 2.0**62  # of resources, in units of a machine file, times seconds


class NodeDemands(NamedTuple):
    """Demands of jobs on the nodes of a machine, and their allocation. N nodes, R resources."""

    needs: NDArray[np.int64]  # (n_jobs, 2 + R) as of needs_on
    capacity: NDArray[np.int64]  # (N, R)
    allocation: int  # one of :mod:`hpcgym.scheduler.allocations`
    seed: int  # of the random one
    # (n_jobs, R) demand of all units of a job x (requested time + 1 s); None unless the allocation
    # goes by demand
    asks: NDArray[np.int64] | None = None
    partitions: int = 0  # so many of the resources, the last ones

    @property
    def layout(self) -> Layout:
        """The same as the engine takes it."""
        needs, capacity = (np.ascontiguousarray(array, np.int64) for array in self[:2])
        state = random_state(self.seed)
        return Layout(
            needs,
            capacity,
            self.allocation,
            random_state=state,
            asks=self.asks,
            partitions=self.partitions,
        )

    def with_holders(self, needs: NDArray[np.int64]) -> NodeDemands:
        """Return the same with holders of nodes, which are no jobs, behind the jobs."""
        if not len(needs):
            return self
        asks = self.asks
        if asks is not None:
            asks = np.concatenate([asks, np.zeros_like(needs[:, 1:-1])])
        return self._replace(needs=np.concatenate([self.needs, needs]), asks=asks)


def simulates_as_pool(needs: NDArray[np.int64], scheduler: Scheduler) -> bool:
    """Return whether jobs start as on a pool, so that nodes can be chosen afterwards.

    This holds for jobs of single cores. It does not hold with Slurm's reservations or windows of
    named nodes, for which free cores on other nodes are of no use, nor under preemption, which
    frees nodes.
    """
    by_name = scheduler.reserve.slurm is not None or scheduler.preemption is not None
    by_name = by_name or any(window.nodes or window.open_to for window in scheduler.maintenance)
    return single_cores(needs) and not by_name


def is_pool(cluster: Cluster, workload: Workload, scheduler: Scheduler) -> bool:
    """Return whether a machine is a pool of processors, as :func:`simulates_as_pool` says.

    Raises
    ------
    WorkloadError : a job that never fits.
    """
    return not cluster.groups or simulates_as_pool(needs_on(workload, cluster), scheduler)


def place_of(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    failures: Failures | None = None,
    needs: NDArray[np.int64] | None = None,
) -> Place:
    """Return a machine as a pool, or as nodes that jobs may share.

    With a dispatcher it always has nodes: a pool is one node.

    Parameters
    ----------
    failures : of the nodes, if they fail.
    needs : demands of jobs on nodes, if known; see :func:`needs_on`.

    Raises
    ------
    HpcgymError : passes at single events, which are for pools of processors.
    WorkloadError : a job that never fits.
    """
    by_name = scheduler.dispatcher is not None
    if not cluster.groups and not by_name:
        return pool_of(workload, cluster)
    asked = needs_on(workload, cluster) if needs is None else needs
    if failures is None and not by_name and simulates_as_pool(asked, scheduler):
        return pool_of(workload, cluster)
    return place_on_nodes(workload, asked, cluster, scheduler, failures)


def place_on_nodes(
    workload: Workload,
    needs: NDArray[np.int64],
    cluster: Cluster,
    scheduler: Scheduler,
    failures: Failures | None = None,
) -> Place:
    """Return a machine as nodes, for jobs with these needs; see :func:`place_of`."""
    nodes = nodes_for(workload, needs, cluster, scheduler, failures is not None)
    # a pool that is switched off stays one, also where it is one node to a dispatcher
    args: dict[str, Any] = {} if cluster.shutdown_after_s is not None else {"nodes": nodes.layout}
    if failures is not None:
        args["outages"] = outages_of(failures)
    return Place("nodes", cluster, pool_of(workload, cluster).units, args, nodes)


def outages_of(failures: Failures) -> NDArray[np.int64]:
    """Return when nodes fail and are repaired, by time; at the same time repairs come first.

    (2 * n, 3): time [s], node, and the time of the failure's repair [s], or -1 for a repair.
    """
    repairs = np.full(len(failures), -1)
    time = np.concatenate([failures.repaired, failures.time])
    until = np.concatenate([repairs, failures.repaired])
    node = np.concatenate([failures.node, failures.node])
    return np.column_stack([time, node, until])[np.lexsort((until >= 0, time))]


def nodes_for(
    workload: Workload,
    needs: NDArray[np.int64],
    cluster: Cluster,
    scheduler: Scheduler,
    failing: bool = False,
) -> NodeDemands:
    """Return the nodes of a machine, for jobs with these needs.

    If nodes are ``failing``, a holder of each node while it is down stands behind the jobs; behind
    these stand the holders of nodes in windows.

    Raises
    ------
    HpcgymError : passes at single events, which are for pools of processors.
    """
    check_scheduler(scheduler, "nodes")
    parts = sum(name.startswith(PARTITION) for name in cluster.resources)
    place, bars = len(cluster.resources) - parts, barred(workload, scheduler)
    capacity = cluster.capacity
    if bars.shape[1] and scheduler.order.function is not None:
        raise HpcgymError(
            f"{scheduler.said('maintenance')}: a policy that is a function sees no windows that are"
            " open to some jobs"
        )
    if bars.shape[1]:  # each unit of a barred job needs one of what its windows take
        needs = np.insert(needs, [1 + place] * bars.shape[1], bars, axis=1)
        capacity = np.insert(capacity, [place] * bars.shape[1], ANY_NUMBER, axis=1)
    asks = demand_of(needs, workload.requested_time, scheduler)
    nodes = NodeDemands(needs, capacity, *allocation_code(scheduler), asks, parts)
    if failing:
        ones = np.ones(cluster.nodes, np.int64)
        nodes = nodes.with_holders(np.column_stack([ones, capacity, ones]))
    return nodes.with_holders(holders_of(closings(workload, scheduler, cluster), capacity, place))


def assign_nodes(
    schedule: Mapping[str, NDArray[np.int64]],
    needs: NDArray[np.int64],
    cluster: Cluster,
    scheduler: Scheduler,
    initial: Initial | None = None,
) -> Allocation:
    """Return nodes for jobs that have run on a pool of as many cores, chosen at their starts.

    ``schedule`` is the simulator's; jobs that have not started get none. Jobs that run at the
    beginning keep the nodes that ``initial`` tells, if any.
    """
    start, run, requested = (schedule[name] for name in ("start", "run", "requested"))
    asks, since = demand_of(needs, requested, scheduler), -FOREVER
    none = np.zeros(0, np.int64)
    cells, placed = Cells(np.zeros(1, np.int64), none, none), 0
    if initial is not None:
        own, since = own_cells(initial, cluster), initial.begin
        if own is not None:
            cells, placed = own, int(initial.running.sum())
        if asks is not None:
            asks[: len(initial.running)][initial.running] = 0  # they do not wait
    begun = np.flatnonzero(start >= 0)
    by_start = np.empty_like(begun)
    by_start[schedule["number"][begun]] = begun
    by_end = begun[np.argsort(start[begun] + run[begun])]
    # by submission, which is another order where jobs depend on others
    order = np.argsort(schedule["submit"], kind="stable")
    place = np.argsort(order)
    nodes = NodeDemands(needs[order], cluster.capacity, *allocation_code(scheduler))
    if asks is not None:
        nodes = nodes._replace(asks=asks[order])
    jobs = np.column_stack([schedule["submit"], run, requested, needs[:, 0], schedule["submit"]])
    model = Model(
        jobs[order], cluster.processors, {}, predicted=requested[order], nodes=nodes.layout
    )
    known = cells.take(by_start[:placed])
    assigned = assign(model, start[order], place[by_start], place[by_end], *known, since)
    by_submission = Allocation.of(assigned)
    as_they_stand = bool((place[1:] > place[:-1]).all())
    return by_submission if as_they_stand else by_submission.rows(place)


def nodes_of_table(
    workload: Workload, cluster: Cluster, scheduler: Scheduler, keeps_books: bool = False
) -> NodeDemands | None:
    """Return the nodes of environments; None if the machine is simulated as a pool.

    It is if jobs ask for single cores, unless the environment ``keeps_books`` of jobs' nodes.

    Raises
    ------
    HpcgymError : rules with which environments know no nodes.
    WorkloadError : a job that never fits.
    """
    if is_pool(cluster, workload, scheduler) and not keeps_books:
        return None
    check_scheduler(scheduler, "nodes", "environments on nodes")
    return nodes_for(workload, needs_on(workload, cluster), cluster, scheduler)


def demand_of(
    needs: NDArray[np.int64], requested: NDArray[np.int64], scheduler: Scheduler
) -> NDArray[np.int64] | None:
    """Return the demands of jobs x time, (n_jobs, R), if the allocation goes by demand.

    Raises
    ------
    HpcgymError : the sum of demands is too large to count.
    """
    if _ALLOCATIONS[scheduler.allocation.partition(":")[0]] not in allocations.BY_DEMAND:
        return None
    asks = asks_of(needs, requested)
    most = (
        needs[:, :1].astype(np.float64) * needs[:, 1:-1] * (requested[:, np.newaxis] + 1.0)
    ).sum()
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


def pool_as_node(asked: NDArray[np.int64], processors: int) -> NodeDemands:
    """Return one node with all processors, and jobs that ask for so many on it."""
    ones = np.ones_like(asked)
    needs = np.column_stack([ones, asked, ones])
    return NodeDemands(needs, np.array([[processors]]), allocations.FIRST_FIT, 0)
