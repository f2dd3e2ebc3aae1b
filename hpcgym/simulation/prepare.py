"""From a workload and a scheduler to what a simulation is told before its first event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import Cluster
from hpcgym.schedule.runs import JOBS
from hpcgym.scheduler import allocations
from hpcgym.scheduler.allocations import check_allocation
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.estimates.by_name import CORRECTION_CODES, predicted_run_times
from hpcgym.scheduler.estimates.learning import learning_rules
from hpcgym.scheduler.orders import Order, columns_of, orders
from hpcgym.scheduler.policies.features import STATE_OF_USERS, runs_looked_at
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.restricted import check_restricted, restrictions_of
from hpcgym.workload.checks import check_jobs
from hpcgym.workload.columns import MAX_TIME, distinct
from hpcgym.workload.model import Workload

_NOBODY = np.zeros(0, np.int64)


class MachineUnits(NamedTuple):
    """What a simulation counts of a machine, and by which clock.

    Attributes
    ----------
    capacity : processors, or nodes where each job has its own, or parts of nodes.
    widths : (n_jobs,) int64 units that each job takes.
    ticks : of its clock in a second.
    """

    capacity: int
    widths: NDArray[np.int64]
    ticks: int = 1


@dataclass(frozen=True)
class Place:
    """A machine as a simulation has it: what its kind adds to what the engine is told.

    Attributes
    ----------
    name : of :data:`hpcgym.scheduler.capabilities.PLACES`.
    cluster : the machine, with what the simulation does of its rules.
    units : what is counted there, and by which clock.
    told : further arguments of ``Model``, by name; nothing of a pool.
    nodes : of which dispatchers are shown a view, or None.
    fills : whether what is backfilled goes by the order of the queue, whatever that is.
    """

    name: str
    cluster: Cluster
    units: MachineUnits
    told: Mapping[str, Any] = field(default_factory=dict)
    nodes: Any = None
    fills: bool = False


def pool_of(workload: Workload, cluster: Cluster) -> Place:
    """Return a machine as a pool of processors, of which jobs take some."""
    return Place("pool", cluster, MachineUnits(cluster.processors, workload.requested_processors))


class Agent(NamedTuple):
    """The decisions that come from outside as a simulation runs.

    Attributes
    ----------
    order : in which jobs are served before a decision; None: by the policy of the scheduler.
    asks : whether an order is asked for before each pass in which a job may start.
    keeps : whether a selected job that does not fit stays selected.
    switches : whether an action may switch idle processors off.
    picks : whether the agent names, one by one, the jobs that start before a waiting head.
    puts_off : if each job that is to start may be put off: how often, and for how long at most [s].
    breaks_s : up to which wait of the head any job that fits may be picked [s]; 0: never.
    sees : the parts of the state that are looked at, names of STATE.
    anew : whether the order is computed before each pass.
    """

    order: Order | None = None
    asks: bool = False
    keeps: bool = False
    switches: bool = False
    picks: bool = False
    puts_off: tuple[int, int] | None = None
    breaks_s: int = 0
    sees: frozenset[str] = frozenset()
    anew: bool = False

    @property
    def decides_within(self) -> bool:
        """Whether it decides within a pass which jobs start, in the order of a rule."""
        return self.picks or self.puts_off is not None


NOBODY_ELSE = Agent()


@dataclass(frozen=True)
class EngineInput:
    """The jobs and rules of a simulation, as :class:`hpcgym._engine.Model` takes them.

    Attributes
    ----------
    jobs : (n_jobs,) JOBS.
    processors : of the machine.
    capacity : of the machine in units that jobs take, see :class:`MachineUnits`.
    rules : by name; codes are those of :mod:`hpcgym.scheduler.allocations`.
    orders : in which waiting jobs are served, and backfilled.
    predicted : (n_jobs,) int64 [ticks] run times as predicted beforehand; None: they are averages.
    held : (n_jobs,) float64 processors that each job holds back; None if no job does.
    candidate_times : (n_jobs,) int64 [s] run times by which relaxed backfilling judges jobs, or
        requested ones until they are known; None if it does not.
    users, n_users : (n_jobs,) int64 numbers of users from 0, and how many; (0,) if unused.
    restrictions : further arguments of a model, by name, that restrict when jobs may start.
    """

    jobs: NDArray[np.void]
    processors: int
    capacity: int
    rules: Mapping[str, int]
    orders: tuple[Order, Order] = (Order(allocations.SUBMISSION), Order(allocations.SUBMISSION))
    predicted: NDArray[np.int64] | None = None
    held: NDArray[np.float64] | None = None
    candidate_times: NDArray[np.int64] | None = None
    users: NDArray[np.int64] = field(default_factory=lambda: _NOBODY)
    n_users: int = 0
    restrictions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs.flags.writeable = False

    @property
    def kept(self) -> int:
        """How many run times of each user's last jobs the simulator keeps."""
        return max(self.rules["last"], self.rules["remembered"])

    def arguments(self) -> dict[str, Any]:
        """Return what ``Model`` takes of it, by name."""
        first, second = self.orders
        arguments: dict[str, Any] = {
            "jobs": self.jobs.view(np.int64).reshape(-1, len(JOBS.names or ())),
            "capacity": self.capacity,
            "rules": self.rules,
            "predicted": self.predicted,
            "held": self.held,
            "candidate_times": self.candidate_times,
            "keys": first.keys,
            "second_keys": second.keys,
            "scores": first.scores,
            "second_scores": second.scores,
            **self.restrictions,
        }
        if len(self.users) == len(self.jobs):
            arguments |= {"users": self.users, "n_users": self.n_users}
        return arguments


def prepare(
    workload: Workload,
    scheduler: Scheduler,
    place: Place,
    *,
    agent: Agent = NOBODY_ELSE,
    predicts: bool | None = None,
    counts: bool = False,
    logs_ends: bool = False,
    several: bool = False,
) -> EngineInput:
    """Return the jobs and rules of a simulation that is about to start.

    Parameters
    ----------
    agent : the decisions that come from outside.
    predicts : whether it stops for predictions; None: if it needs to.
    counts : whether users' usage is counted, so that an order may look at it.
    logs_ends : whether ends are noted in any case, so that nodes can be given back.
    several : whether several simulations have parts of the jobs, and do not know of the others.

    Raises
    ------
    HpcgymError : rules that do not go together, an allocation on a pool, or an order of the queue
        that looks at usage without ``counts``.
    WorkloadError : a job that cannot be simulated.

    Warns
    -----
    HpcgymWarning : see :func:`hpcgym.simulation.restricted.check_restricted`.
    """
    cluster, units = place.cluster, place.units
    check_allocation(scheduler.allocation, cluster)
    if scheduler.coschedules:
        raise HpcgymError(
            "policies that look at the pass, backfill='fill' or 'first-come:K', partners,"
            " pairs_above and pair_estimate are for co-scheduling: give simulate() speedups of jobs"
            " that share nodes"
        )
    check_jobs(workload, cluster.processors)
    jobs = job_records(workload)
    predicted = predicted_run_times(scheduler.estimate, jobs["run"], workload)
    predicts = scheduler.asks_for_predictions if predicts is None else predicts
    last = 0 if predicts else scheduler.averaged_jobs
    own, second = orders(workload, scheduler, counts or agent.order is not None, units.ticks)
    first = own if agent.order is None else agent.order
    by_function = scheduler.order.function is not None
    starts = scheduler.dispatcher is not None and not by_function
    second = first if place.fills else second
    rules = {
        **_rules(scheduler, predicted, jobs["run"], place, agent),
        "primary": first.code,
        "secondary": second.code,
        "asks": int(by_function or agent.asks),
        "asks_by_clock": int(by_function and scheduler.reserve.slurm is not None),
        "keeps": int(agent.keeps),
        "picks": int(agent.picks),
        "starts": int(starts),
        "estimate": allocations.AVERAGE if last else allocations.GIVEN,
        "last": last,
        "remembered": max(scheduler.remembered, runs_looked_at(agent.sees)),
        **_power_rules(cluster, scheduler, agent.switches),
        **learning_rules(scheduler, predicts, logs_ends, counts),
    }
    if agent.anew:
        rules["renews"] = allocations.EACH_TIME
    if agent.puts_off is not None:
        most, seconds = agent.puts_off
        rules |= {"proposes": 1, "put_offs": most, "put_off_for": seconds * units.ticks}
    held, hold = None, scheduler.hold
    if hold is not None:
        rules |= {"holds": 1, "erode": 0 if hold.erode_s == math.inf else int(hold.erode_s)}
        times = columns_of(workload, scheduler).times
        held = hold.held_back(jobs["requested"], times, units.capacity)
    candidate_times = None
    if scheduler.relax is not None:
        rules["relax"] = math.ceil(scheduler.relax)  # waits are whole seconds
        candidate_times = candidate_times_of(workload, scheduler, jobs["run"])
    elif agent.breaks_s:
        rules["relax"] = agent.breaks_s
        candidate_times = np.zeros(len(jobs), np.int64)  # whatever they are
    check_restricted(workload, scheduler, rules["correction"], place.name)
    restrictions: Mapping[str, Any] = {}
    if scheduler.restricts:
        on_nodes, outside = place.name == "nodes", agent.order is not None
        restrictions = restrictions_of(
            workload, scheduler, cluster, on_nodes, several, outside, units.ticks
        )
    if last:
        predicted = None
    elif predicted is None:
        predicted = np.zeros(len(jobs), np.int64)  # until they are
    else:
        predicted = predicted * units.ticks  # before the run times, which they may be
    of_users = STATE_OF_USERS & (scheduler.state | agent.sees)
    knows_users = predicts or last or rules.get("tested_of_user") or of_users
    known, users = distinct(workload.user_id) if knows_users else (_NOBODY, _NOBODY)
    if units.widths is not workload.requested_processors:
        jobs["processors"] = units.widths
    if units.ticks != 1:
        for name in ("submit", "run", "requested"):
            jobs[name] *= units.ticks
    orders_told = first, second
    return EngineInput(
        jobs, cluster.processors, units.capacity, rules, orders_told, predicted, held,
        candidate_times, users, len(known), restrictions,
    )  # fmt: skip


def candidate_times_of(
    workload: Workload, scheduler: Scheduler, run_time: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the run times by which relaxed backfilling judges jobs, as far as they are known."""
    estimate = scheduler.candidate_estimate
    assert estimate is not None
    known = predicted_run_times(estimate, run_time, workload, "candidate_estimate")
    return workload.requested_time if known is None else known


def _power_rules(cluster: Cluster, scheduler: Scheduler, by_action: bool) -> dict[str, int]:
    """Return the rules of switching off as ``Model`` takes them.

    Raises
    ------
    HpcgymError : a scheduler for whose rules processors cannot be switched off.
    """
    if cluster.shutdown_after_s is None and not by_action:
        return {}
    check_scheduler(scheduler, "shutdown")
    if by_action and scheduler.plans:
        raise HpcgymError(
            "shutdown_action does not go with quota, maintenance, dependencies or preemption: the"
            " agent is asked there only where a job may start"
        )
    after = cluster.shutdown_after_s
    timeout = FOREVER if after is None else after
    return {
        "managed": 1,
        "timeout": timeout,
        "off_time": cluster.shutdown_time_s,
        "on_time": cluster.boot_time_s,
    }


def job_records(workload: Workload) -> NDArray[np.void]:
    """Return the jobs as ``Model`` takes them, (n_jobs,) JOBS."""
    jobs = np.empty(len(workload), JOBS)
    jobs["submit"] = workload.submit_time
    jobs["run"] = np.minimum(workload.run_time, workload.requested_time)
    jobs["requested"] = workload.requested_time
    jobs["processors"] = workload.requested_processors
    jobs["since_first"] = workload.since_first_submit
    return jobs


def _rules(
    scheduler: Scheduler,
    predicted: NDArray[np.int64] | None,
    run_time: NDArray[np.int64],
    place: Place,
    agent: Agent,
) -> dict[str, int]:
    """Return the rules of a queue as ``Model`` takes them.

    ``predicted`` are run times that are predicted beforehand, None if they become known later.
    """
    plans = place.name in ("pool", "nodes") and not agent.decides_within
    never_short = predicted is not None and bool((predicted >= run_time).all())
    threshold, reserve = scheduler.threshold, scheduler.reserve
    return {
        "passes": allocations.PER_EVENT
        if scheduler.passes == "per-event"
        else allocations.PER_TIMESTAMP,
        "depth": allocations.UNLIMITED if reserve.depth is None else reserve.depth,
        "correction": allocations.UNCORRECTED
        if never_short
        else CORRECTION_CODES[scheduler.correction],
        # waiting times are whole seconds, so "longer than" stays the same rounded down
        "threshold": (
            allocations.NO_THRESHOLD
            if threshold is None
            else min(int(min(threshold, MAX_TIME)) * place.units.ticks, FOREVER)
        ),
        "strict": int(reserve.kind == "until-shadow" or reserve.slurm is not None),
        **(_planning_rules(scheduler) if plans else {}),
    }


def _planning_rules(scheduler: Scheduler) -> dict[str, int]:
    """Return the rules of reservations that are made anew."""
    if not scheduler.plans:
        return {}
    slurm = scheduler.reserve.slurm
    if slurm is None:
        return {"tested": allocations.ALL_JOBS, "window": FOREVER}
    return {
        "every": max(slurm.bf_interval, 1),  # none of its passes is made with a depth of 0
        "tested": slurm.bf_max_job_test,
        "tested_of_user": slurm.bf_max_job_user,
        "window": 60 * slurm.bf_window,
        "resolution": slurm.bf_resolution,
        "linear": slurm.bf_window_linear,
        "at_events": slurm.default_queue_depth + 1,  # as Slurm counts
        "all_every": slurm.sched_interval,
    }
