"""From a workload and a scheduler to a schedule."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Simulation as Native
from hpcgym.baselines import schedulers
from hpcgym.baselines.dispatchers import DISPATCHERS
from hpcgym.cluster.failures import Failures
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import (
    HpcgymError,
    HpcgymWarning,
    WorkloadError,
    check_choice,
    is_number,
    warn_caller,
)
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, down
from hpcgym.scheduler.asked_for import check_fair_share, check_scheduler
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.dispatchers.asking import LateDispatcher, dispatch
from hpcgym.scheduler.estimates.learning import Learned
from hpcgym.scheduler.limits import Limit
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.rules import OF_THE_QUEUE, Scheduler, not_beside_a_dispatcher
from hpcgym.simulation import driver
from hpcgym.simulation.corun import simulate_coscheduled
from hpcgym.simulation.fair_share import warn_of_schedulers
from hpcgym.simulation.limited import check_power_rule, simulate_powered, takes_whole_nodes
from hpcgym.simulation.nodes import (
    as_on_pool,
    assign_nodes,
    begun,
    facts_of,
    needs_on,
    nodes_for,
    scored_by,
)
from hpcgym.simulation.prepare import machine_of
from hpcgym.simulation.restricted import as_came, for_result
from hpcgym.speedups.files import find_speedups
from hpcgym.speedups.heatmap import Heatmap
from hpcgym.workload.model import MAX_TIME, Workload

# --- Simulations on machines whose nodes fail -----------------------------------------------------


def find_failures(failures: Any, cluster: Cluster) -> Failures:
    """Return the failures, of a file too, of a machine.

    Raises
    ------
    HpcgymError : none, a file that cannot be read, or a node that there is not.
    """
    if isinstance(failures, str | os.PathLike):
        failures = Failures.read(failures)
    if not isinstance(failures, Failures):
        raise HpcgymError(
            f"failures must be Failures or a CSV file of them, not a {type(failures).__name__}"
        )
    if len(failures) and failures.node.max() >= cluster.nodes:
        raise HpcgymError(
            f"failures: node {failures.node.max()} is none of the machine, which has"
            f" {cluster.nodes:,} nodes, counted from 0"
        )
    return failures


def check_failures(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, *others: str
) -> None:
    """Raise an HpcgymError for what does not go with failures; ``others`` are asked for too."""
    place = "nodes" if cluster.groups else "pool"
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, "failures", place, *extract, *others)
    if scheduler.preemption is not None and scheduler.preemption.mode == "suspend":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and failures of nodes do not go together: who is"
            " suspended has its memory on nodes that may fail; take requeue or cancel"
        )


def outages_of(failures: Failures) -> NDArray[np.int64]:
    """Return when nodes fail and are repaired, by time, of one time repairs first.

    (2 * n, 3): time [s], node, and when a failure will be repaired [s], -1 of a repair.
    """
    repairs = np.full(len(failures), -1)
    time = np.concatenate([failures.repaired, failures.time])
    until = np.concatenate([repairs, failures.repaired])
    node = np.concatenate([failures.node, failures.node])
    order = np.lexsort((until >= 0, time))
    return np.column_stack([time, node, until])[order]


def warn_of_others(failures: Failures, result: Result) -> None:
    """Warn where all failures are before the first submission or after the last end.

    Warns
    -----
    HpcgymWarning : as the log of a week, which keeps the clock of the whole.
    """
    if not len(failures) or not len(result.start):
        return
    first, last = int(result.workload.submit_time[0]), int(result.end.max())
    if not ((failures.repaired > first) & (failures.time < last)).any():
        warn_caller(
            f"failures: none of {len(failures):,} is between the first submission ({first} s) and"
            f" the last end ({last} s); times are on the workload's clock",
            HpcgymWarning,
        )


# --- From a workload and a scheduler to a schedule ------------------------------------------------


def simulate(
    workload: Workload,
    scheduler: str | Scheduler | Callable[..., Any] = "easy",
    *,
    cluster: Cluster | str | os.PathLike[str] | None = None,
    processors: int | None = None,
    learned: Learned | None = None,
    limits: Limit | Iterable[Limit] | None = None,
    speedups: Heatmap | str | os.PathLike[str] | None = None,
    failures: Failures | str | os.PathLike[str] | None = None,
    engine: str | None = None,
    **rules: Any,
) -> Result:
    """Simulate a scheduler on a workload.

    Parameters
    ----------
    workload : jobs with processors, requested times and run times; see
        :func:`hpcgym.load_workload`, whose cleaning sees to that.
    scheduler : a name of :data:`hpcgym.baselines.SCHEDULERS`, with other rules behind a colon if
        you like (``"saf:threshold=18000,hold=0.1"``), a :class:`Scheduler`, or a dispatcher: a name
        of :data:`hpcgym.baselines.dispatchers.DISPATCHERS`, or a callable that takes a
        :class:`hpcgym.scheduler.dispatchers.PassView` and returns the places in its queue of the
        jobs that start, each a number or a pair of it and the node of each unit.
    cluster : the machine: a :class:`Cluster`, the name of a ready-made one or a TOML file (see
        :func:`hpcgym.cluster.find_cluster`); by default as many processors as the workload's
        machine had.
    processors : size of the machine, instead of ``cluster``.
    learned : what an earlier simulation learned of run times, ``result.learned``, for estimates
        that learn: they go on with it. Without, those of an extract learn first from the jobs that
        ended before it.
    limits : caps of power and budgets of energy, :class:`hpcgym.scheduler.limits.PowerCap` and
        :class:`hpcgym.scheduler.limits.EnergyBudget`, on a machine whose nodes have a power; the
        rule ``power`` says how they are kept. With limits, or an empty list of them, each job has
        nodes of its own; without, None, jobs may share nodes.
    speedups : how fast codes run beside each other (ELiSE), where jobs may share nodes: a
        :class:`hpcgym.speedups.Heatmap`, a file of one, or
        ``generated:codes=16,mean=1.1,spread=0.1,seed=0``. The codes of jobs are those of
        ``workload`` (:mod:`hpcgym.workload.codes`), the nodes must be alike, and the rule
        ``allocation`` says how jobs lie on them: "compact", which "first-fit" means then, "spread",
        "half-socket" or "part:K".
    failures : when nodes fail and are repaired, on a machine of nodes: a
        :class:`hpcgym.cluster.Failures`, or a CSV file with the columns node, time and repaired.
        Jobs on a node that fails wait again, and run from the beginning.
    engine : "reference": by :mod:`hpcgym.reference`, which is slow, and there to be read and
        changed; it does not have all rules. None: by the fast one.
    rules : rules that differ from the scheduler's, by the names of :class:`Scheduler`'s
        attributes: ``policy``, ``backfill``, ``backfill_order``, ``estimate``, ``correction``,
        ``threshold``, ``hold``, ``quota``, ``maintenance``, ``preemption``, ``dependencies``,
        ``passes``, ``policy_estimate``, ``allocation``, ``dispatcher``, ``dispatch_time``,
        ``fair_share``, ``power``, ``partners``, ``pairs_above``, ``pair_estimate``.

    Returns
    -------
    result : the schedule, with its metrics. With the rule ``dependencies``, and with quotas of
        submitted jobs, its workload has the jobs in the order in which they came, and
        ``submit_time`` is when they did.

    Raises
    ------
    HpcgymError : an unknown name or a rule with a value that it cannot have; a dispatcher that
        starts what does not fit.
    WorkloadError : a job that cannot be simulated, named with its reason.

    Examples
    --------
    >>> import hpcgym
    >>> workload = hpcgym.load_workload("lublin:jobs=100,processors=64,seed=0")
    >>> result = hpcgym.simulate(workload, "easy", estimate="clairvoyant")
    >>> result.metrics["jobs"]
    100
    """
    if not isinstance(workload, Workload):
        raise WorkloadError(
            f"simulate takes a workload of load_workload, not a {type(workload).__name__}"
        )
    if engine is not None:
        check_choice("engine", engine, ("reference",))
        from hpcgym.simulation.by_reference import simulate_by_reference  # which few ask for
    chosen = scheduler_of(scheduler, rules)
    cluster = machine_of(workload, cluster, processors)
    driver.check_learned(chosen, learned)
    warn_of_schedulers(workload, [chosen])
    if failures is not None:
        asked = {
            "shared nodes": speedups is not None,
            "shutdown": cluster.shutdown_after_s is not None,
            "whole nodes": limits is not None or chosen.power != "none",
        }
        check_failures(workload, chosen, cluster, *(name for name in asked if asked[name]))
        found = find_failures(failures, cluster)
        if engine is not None:
            others = ("learned",) if learned is not None else ()
            return simulate_by_reference(workload, chosen, cluster, others, found)
        result = _simulate(workload, chosen, cluster, learned, found)
        warn_of_others(found, result)
        return result
    if engine is not None:
        check_power_rule(chosen, limits)
        given = {
            "limits": limits is not None,
            "speedups": speedups is not None,
            "learned": learned is not None,
            "jobs with nodes of their own": takes_whole_nodes(cluster, chosen, limits),
        }
        return simulate_by_reference(workload, chosen, cluster, (n for n in given if given[n]))
    if speedups is not None:
        if limits is not None:
            check("limits", "shared nodes")
        return simulate_coscheduled(workload, chosen, cluster, find_speedups(speedups))
    check_power_rule(chosen, limits)
    if takes_whole_nodes(cluster, chosen, limits):
        return simulate_powered(workload, chosen, cluster, limits, learned)
    return _simulate(workload, chosen, cluster, learned)


def scheduler_of(
    scheduler: str | Scheduler | Callable[..., Any], rules: Mapping[str, Any]
) -> Scheduler:
    """Return the scheduler, or that of a dispatcher, with some rules changed.

    Raises
    ------
    HpcgymError : an unknown name or rule, a value that it cannot have, two dispatchers, a rule of
        the queue beside one, or shares of users that no order looks at.
    """
    if callable(scheduler) or (isinstance(scheduler, str) and scheduler in DISPATCHERS):
        if "dispatcher" in rules:
            raise HpcgymError("dispatcher: there is one already, in place of the scheduler")
        chosen = Scheduler(dispatcher=scheduler)
    elif isinstance(scheduler, str) and not schedulers.is_scheduler(scheduler):
        raise schedulers.no_scheduler(
            scheduler, [*schedulers.SCHEDULERS, *DISPATCHERS, *schedulers.COSCHEDULERS]
        )
    else:
        chosen = (
            scheduler if isinstance(scheduler, Scheduler) else schedulers.find_scheduler(scheduler)
        )
    if rules.get("fair_share") is not None and chosen.fair_share is not None:
        shares = FairShare.parse(rules["fair_share"], usual=chosen.fair_share)
        rules = {**rules, "fair_share": shares}
    chosen = chosen.but(**rules) if rules else chosen
    asked_itself = "" if chosen.dispatcher is None else str(chosen.describe()["dispatcher"])
    check_fair_share(rules.get("fair_share"), any(chosen.usage_orders), asked_itself)
    if chosen.dispatcher is not None:
        for rule in OF_THE_QUEUE:  # also one with the value that is the default
            if rule in rules:
                name = chosen.describe()["dispatcher"]
                raise HpcgymError(not_beside_a_dispatcher(rule, name))
    return chosen


def _simulate(
    workload: Workload,
    chosen: Scheduler,
    cluster: Cluster,
    learned: Learned | None,
    failures: Failures | None = None,
) -> Result:
    """Simulate on a pool, or on nodes that jobs may share, and that may fail; or a dispatcher."""
    dispatcher, needs, nodes = chosen.dispatcher, None, None
    if cluster.groups or dispatcher is not None:
        needs = needs_on(workload, cluster)
        by_name = dispatcher is not None or failures is not None
        if by_name or not as_on_pool(needs, chosen):
            nodes = nodes_for(workload, needs, cluster, chosen, failures is not None)
    if failures is not None:
        assert needs is not None
        on_nodes = partial(_on_failing_nodes, chosen.allocation, cluster, needs, failures)
        workload = driver.with_room(workload, on_nodes)
    simulation = driver.new_simulation(workload, chosen, cluster, nodes, learned)
    if failures is not None:
        simulation.machine["outages"] = outages_of(failures)
    simulation.dispatch = scored_by(chosen.policy, workload, cluster, nodes)
    if dispatcher is not None:
        dispatcher, facts = begun(dispatcher), facts_of(workload, cluster)
        simulation.dispatch = partial(dispatch, dispatcher, facts=facts)
        if chosen.dispatch_time:
            simulation.late = LateDispatcher(dispatcher, chosen.dispatch_time, facts)
            simulation.dispatch = simulation.late.at_pass
    result, schedule = ended(simulation, workload, cluster, chosen, dispatcher is not None)
    late = simulation.late
    dispatching = None if late is None else late.dispatching
    result = replace(result, dispatcher=dispatcher, dispatching=dispatching)
    return with_nodes(result, schedule, needs, failures)


def _on_failing_nodes(
    allocation: str,
    cluster: Cluster,
    needs: NDArray[np.int64],
    failures: Failures,
    jobs: Workload,
) -> driver.Simulation:
    """Return a simulation on nodes that fail, of the first jobs of those that need so much."""
    rules = Scheduler(allocation=allocation)
    nodes = nodes_for(jobs, needs[: len(jobs)], cluster, rules, failing=True)
    simulation = driver.new_simulation(jobs, rules, cluster, nodes)
    simulation.machine["outages"] = outages_of(failures)
    return simulation


def ended(
    simulation: driver.Simulation,
    workload: Workload,
    cluster: Cluster,
    chosen: Scheduler,
    outside: bool = False,
) -> tuple[Result, driver.Columns]:
    """Simulate to the end; return the result without nodes, and the schedule.

    ``outside`` says that the order of the queue is not the scheduler's.
    """
    simulation.drive()
    schedule, native, rules = simulation.schedule(), simulation.native, simulation.told.rules
    if rules.get("managed") and len(workload):
        check_processor_seconds(workload, cluster, native.time)
    result = result_of(native, schedule, rules, workload, cluster, chosen, outside)
    return replace(result, **simulation.for_result(schedule)), schedule


def result_of(
    native: Native,
    schedule: driver.Columns,
    rules: Mapping[str, int],
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler,
    outside: bool = False,
) -> Result:
    """Return the result of a simulation as it is now, by its schedule; without nodes."""
    seconds = None
    if rules.get("managed") and len(workload):
        seconds = {name: int(total[0]) for name, total in native.idle_seconds().items()}
    return Result.of(workload, cluster, scheduler, schedule, seconds, outside)


def with_nodes(
    result: Result,
    schedule: driver.Columns,
    needs: NDArray[np.int64] | None = None,
    failures: Failures | None = None,
) -> Result:
    """Return a result with the nodes of jobs, and the runs that others, or failures, have ended.

    Its jobs stand in the order in which they came.

    ``needs`` : what they ask of nodes, if that is known; ``failures`` : of these nodes.
    """
    cluster, rules, workload = result.cluster, result.scheduler, result.workload
    if cluster.groups and "cell_first" in schedule:
        result = replace(result, allocation=Allocation.of(schedule))
    elif cluster.groups:
        asked = needs_on(workload, cluster) if needs is None else needs
        allocation = assign_nodes(schedule, asked, cluster, rules, workload.initial)
        result = replace(result, allocation=allocation)
    if rules.preemption is not None or failures is not None:
        none = np.zeros(0, np.int64)
        told = Failures(none, none, none) if failures is None else failures
        lost = for_result(rules.preemption, schedule, told)
        result = replace(result, **lost)
    if failures is not None:
        result = replace(result, node_states=down(failures))
    return as_came(result, schedule["submit"])


def learn_before(
    workload: Workload,
    scheduler: str | Scheduler,
    time: float,
    *,
    cluster: Cluster | None = None,
    processors: int | None = None,
    learned: Learned | None = None,
    **rules: Any,
) -> Learned | None:
    """Simulate up to ``time`` [s], exclusive; return what has been learned of run times by then.

    That never looks ahead of ``time``, as ``simulate(...).learned`` does where jobs end later.

    Parameters
    ----------
    workload, scheduler, cluster, processors, learned, rules : as :func:`simulate` takes them.
    time : of the trace's clock.

    Returns
    -------
    learned : for :func:`simulate` to go on with; None if no estimate of the scheduler learns.

    Raises
    ------
    HpcgymError : a time that is no number, or what :func:`simulate` raises.
    """
    chosen = scheduler_of(scheduler, rules)
    machine = machine_of(workload, cluster, processors)
    return learn_at(workload, chosen, [time], machine, learned)[0]


def learn_at(
    workload: Workload,
    scheduler: Scheduler,
    times: Sequence[float],
    cluster: Cluster,
    learned: Learned | None = None,
) -> list[Learned | None]:
    """Return what one simulation has learned before each of some rising times [s].

    As :func:`learn_before` does for one of them.
    """
    ends = [_whole_time(time) - 1 for time in times]
    driver.check_learned(scheduler, learned)
    check_power_rule(scheduler, None)
    if not driver.learns_in(scheduler):
        return [None] * len(ends)
    if cluster.groups or scheduler.dispatcher is not None:
        raise HpcgymError(
            "what is learned before a time is known for pools of processors, without a dispatcher"
        )
    simulation = driver.new_simulation(
        workload, scheduler, cluster, learned=learned, always_learns=True
    )
    found: list[Learned | None] = []
    for end in ends:
        simulation.drive(end)
        found.append(simulation.learned())
    return found


def _whole_time(time: Any) -> int:
    """Return the first whole second from a time on, checked, within the simulator's clock."""
    if not is_number(time) or time != time:
        raise HpcgymError(f"time must be a number of seconds, not {time!r}")
    return math.ceil(min(max(time, -MAX_TIME), MAX_TIME))


def check_processor_seconds(workload: Workload, cluster: Cluster, end: int) -> None:
    """Raise a WorkloadError if there are more processor seconds up to ``end`` [s] than counted."""
    span = end - int(workload.submit_time[0])
    if cluster.processors * span >= 2**63:
        raise WorkloadError(
            f"shutdown_after_s: {cluster.processors:,} processors during {span:,} s are more "
            "processor seconds than the simulator counts"
        )
