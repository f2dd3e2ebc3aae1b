"""From a workload and a scheduler to a schedule."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import HpcgymError, check_choice, is_number
from hpcgym.machine.failures import Failures, find_failures
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups.files import find_speedups
from hpcgym.machine.speedups.heatmap import Heatmap
from hpcgym.schedule.result import Result
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.estimates.by_name import Estimate, predicted_run_times, predictor_of
from hpcgym.scheduler.estimates.learning import Learned
from hpcgym.scheduler.limits import Limit
from hpcgym.scheduler.rules import Rules, Scheduler
from hpcgym.scheduler.unused import warn_of_unused
from hpcgym.scheduler.whole_nodes import check_power_rule, own_nodes_by
from hpcgym.simulation import warm_start
from hpcgym.simulation.allowance import spend
from hpcgym.simulation.corun import on_shared_nodes
from hpcgym.simulation.driver import (
    Run,
    Simulation,
    check_learned,
    learns_in,
    let_answer,
    new_simulation,
    run_of,
    with_room,
)
from hpcgym.simulation.limited import on_own_nodes
from hpcgym.simulation.nodes import place_of, place_on_nodes
from hpcgym.simulation.prepare import pool_of
from hpcgym.workload.checks import needs_on
from hpcgym.workload.columns import MAX_TIME
from hpcgym.workload.load import jobs_and_machine, machine_of
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd


class Arguments(Rules, total=False):
    """The arguments of :func:`simulate` by name, but for ``scheduler``, for type checkers."""

    cluster: Cluster | str | int | os.PathLike[str] | None
    processors: int | None
    learned: Learned | None
    limits: Limit | Iterable[Limit] | None
    speedups: Heatmap | str | os.PathLike[str] | None
    failures: Failures | str | os.PathLike[str] | None
    engine: str | None


def simulate(
    workload: Workload | str | os.PathLike[str] | pd.DataFrame,
    scheduler: str | Scheduler | Callable[..., Any] = "easy",
    *,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    processors: int | None = None,
    learned: Learned | None = None,
    limits: Limit | Iterable[Limit] | None = None,
    speedups: Heatmap | str | os.PathLike[str] | None = None,
    failures: Failures | str | os.PathLike[str] | None = None,
    engine: str | None = None,
    **rules: Unpack[Rules],
) -> Result:
    """Simulate a scheduler on a workload.

    Parameters
    ----------
    workload : jobs with processors, requested times and run times, of
        :func:`hpcgym.load_workload`; or what that takes, such as ``"KTH-SP2"``, a file, a generator
        or a DataFrame, which is cleaned in the usual way.
    scheduler : a name of :data:`hpcgym.baselines.SCHEDULERS`, with other rules behind a colon if
        you like (``"saf:threshold=18000,hold=0.1"``), a :class:`Scheduler`, or a dispatcher: a name
        of :data:`hpcgym.baselines.dispatchers.DISPATCHERS`, or a callable that takes a
        :class:`hpcgym.scheduler.dispatchers.PassView` and returns the places in its queue of the
        jobs that start, each a number or a pair of it and the node of each unit.
    cluster : the machine: a :class:`Cluster`, a number of processors, the name of a ready-made one
        or a TOML file (see :func:`hpcgym.machine.find_cluster`); by default as many processors as
        the workload's machine had.
    processors : size of the machine, instead of ``cluster``.
    learned : what an earlier simulation learned of run times, ``result.learned``, for estimates
        that learn: they go on with it. Without, those of an extract learn first from the jobs that
        ended before it.
    limits : caps of power and budgets of energy, :class:`hpcgym.scheduler.limits.PowerCap` and
        :class:`hpcgym.scheduler.limits.EnergyBudget`, on a machine whose nodes have a power; the
        rule ``power`` says how they are kept. With limits, or an empty list of them, each job has
        nodes of its own; without, None, jobs may share nodes.
    speedups : how fast codes run beside each other (ELiSE), where jobs may share nodes: a
        :class:`hpcgym.machine.speedups.Heatmap`, a file of one, or
        ``generated:codes=16,mean=1.1,spread=0.1,seed=0``. The codes of jobs are those of
        ``workload`` (:mod:`hpcgym.workload.codes`), the nodes must be alike, and the rule
        ``allocation`` says how jobs lie on them: "compact", which "first-fit" means then, "spread",
        "half-socket" or "part:K".
    failures : when nodes fail and are repaired, on a machine of nodes: a
        :class:`hpcgym.machine.Failures`, or a CSV file with the columns node, time and repaired.
        Jobs on a node that fails wait again, and run from the beginning.
    engine : "reference": by :mod:`hpcgym.reference`, which is slow, and there to be read and
        changed; it does not have all rules. None: by the fast one.
    rules : rules that differ from the scheduler's, by the names of :class:`Scheduler`'s
        attributes: ``policy``, ``backfill``, ``backfill_order``, ``estimate``, ``correction``,
        ``threshold``, ``hold``, ``relax``, ``candidate_estimate``, ``quota``, ``maintenance``,
        ``preemption``, ``dependencies``, ``passes``, ``policy_estimate``, ``allocation``,
        ``dispatcher``, ``dispatch_time``, ``fair_share``, ``power``, ``partners``,
        ``pairs_above``, ``pair_estimate``.

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
    >>> result = hpcgym.simulate("lublin:jobs=100,processors=64", "easy", estimate="clairvoyant")
    >>> result.metrics.jobs
    100
    """
    workload, cluster = jobs_and_machine(workload, cluster, processors, scheduler)
    if engine is not None:
        check_choice("engine", engine, ("reference",))
        from hpcgym.simulation import by_reference  # which few ask for
    chosen = scheduler_of(scheduler, rules)
    check_learned(chosen, learned)
    outages = None if failures is None else find_failures(failures, cluster)
    warn_of_unused([workload], [chosen], failures=outages)
    spend(len(workload))
    if outages is not None:
        asked = {
            "extract": workload.initial is not None,
            "shared nodes": speedups is not None,
        }
        owned = own_nodes_by(cluster, chosen, limits)
        _check_failures(chosen, cluster, owned, *(name for name in asked if asked[name]))
    if engine is not None:
        by_reference.check_known(workload, chosen, speedups=speedups, learned=learned)
    if speedups is not None:
        if limits is not None:
            check("shared nodes", words=own_nodes_by(cluster, chosen, limits))
        run = on_shared_nodes(workload, chosen, cluster, find_speedups(speedups))
    else:
        check_power_rule(chosen, limits)
        if own_nodes_by(cluster, chosen, limits):
            run = on_own_nodes(workload, chosen, cluster, limits, learned)
        else:
            run = on_pool_or_nodes(workload, chosen, cluster, learned, outages, engine is not None)
    if engine is not None:  # what no engine can do has been said alike
        return by_reference.finish(run, chosen, cluster, outages, limits)
    dispatcher = let_answer(run.simulation, run.workload, chosen)
    # what a dispatcher starts follows no order of the scheduler's
    return run.finish(dispatcher=dispatcher, outside=dispatcher is not None)


def _check_failures(
    scheduler: Scheduler, cluster: Cluster, owned: dict[str, str], *others: str
) -> None:
    """Raise an HpcgymError for rules that do not go with failures, or with ``others``.

    ``owned``: of :func:`own_nodes_by`.
    """
    place = "nodes" if cluster.groups else "pool"
    check("failures", place, *others, words=scheduler.asks_for | owned)
    if scheduler.preemption is not None and scheduler.preemption.mode == "suspend":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and failures of nodes do not go together: a suspended"
            " job has its memory on nodes that may fail; take requeue or cancel"
        )


def on_pool_or_nodes(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    learned: Learned | None,
    failures: Failures | None = None,
    by_node: bool = False,
) -> Run:
    """Return a simulation on a pool, or on nodes that jobs may share, and that may fail.

    ``by_node``: nodes are no pool, even where all cores are alike.
    """
    needs = needs_on(workload, cluster) if cluster.groups else None
    if failures is not None:
        places = Scheduler(allocation=scheduler.allocation)

        def only_placed(jobs: Workload) -> Simulation:
            asked = None if needs is None else needs[: len(jobs)]
            return new_simulation(jobs, places, place_of(jobs, places, cluster, failures, asked))

        workload = with_room(workload, only_placed)
    if by_node and needs is not None:
        place = place_on_nodes(workload, needs, cluster, scheduler, failures)
    else:
        place = place_of(workload, scheduler, cluster, failures, needs)
    simulation = new_simulation(workload, scheduler, place, learned)
    return run_of(workload, scheduler, simulation, needs, failures)


def learn_before(
    workload: Workload,
    scheduler: str | Scheduler,
    time: float,
    *,
    cluster: Cluster | int | None = None,
    processors: int | None = None,
    learned: Learned | None = None,
    **rules: Unpack[Rules],
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
    machine = machine_of(workload, cluster, processors, scheduler)
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
    check_learned(scheduler, learned)
    check_power_rule(scheduler, None)
    if not learns_in(scheduler):
        return [None] * len(ends)
    if cluster.groups or scheduler.dispatcher is not None:
        raise HpcgymError(
            "what is learned before a time is known for pools of processors, without a dispatcher"
        )
    place = pool_of(workload, cluster)
    simulation = new_simulation(workload, scheduler, place, learned, always_learns=True)
    states: list[Learned | None] = []
    for end in ends:
        simulation.drive(end)
        states.append(simulation.learned())
    return states


def predict_recorded(workload: Workload, estimate: Estimate) -> NDArray[np.int64]:
    """Return the run time that an estimate predicts of each job of a log at its submission.

    Nothing is simulated: by then the estimate has learned from the jobs that had ended by the log's
    own waits and run times. So predictions are compared on the same histories, whichever scheduler
    made them. An unknown wait counts as none.

    Parameters
    ----------
    workload : in the order of submission, as always.
    estimate : as :func:`simulate` takes it, but for predictors in Python.

    Returns
    -------
    predicted : (n_jobs,) int64 [s].

    Raises
    ------
    HpcgymError : a predictor in Python, an unknown estimate, or a job that cannot be simulated.
    """
    scheduler = scheduler_of("easy", {"estimate": estimate})
    known = predicted_run_times(scheduler.estimate, workload.run_time, workload)
    if known is not None:
        return known
    if not isinstance(scheduler.estimate, str) or predictor_of(scheduler.estimate) is not None:
        raise HpcgymError("estimate: what a log says is predicted by formulas and regressions only")
    return warm_start.predict_recorded(workload, scheduler)


def _whole_time(time: Any) -> int:
    """Return the first whole second from a time on, checked, within the simulator's clock."""
    if not is_number(time) or time != time:
        raise HpcgymError(f"time must be a number of seconds, not {time!r}")
    return math.ceil(min(max(time, -MAX_TIME), MAX_TIME))
