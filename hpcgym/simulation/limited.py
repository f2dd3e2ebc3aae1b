"""Simulations under limits of power and energy, in which each job has nodes of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, fields_of
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.machine.power import MILLION, NodePower
from hpcgym.machine.power_plans import fewest_off, greatest_w, rho
from hpcgym.schedule.books import QUANTUM_W
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, NodeStates
from hpcgym.scheduler.asked_for import check_extract
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap, check_limits
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.whole_nodes import check_for_limits, may_switch, node_power, warn_of_own_nodes
from hpcgym.simulation.driver import Run, Simulation, new_simulation, with_room
from hpcgym.simulation.prepare import MachineUnits, Place
from hpcgym.simulation.results import Columns, as_came
from hpcgym.workload.checks import check_jobs, needs_on, units_a_node
from hpcgym.workload.extracts import decided, taken_over

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.estimates.learning import Learned
    from hpcgym.workload.model import Workload


# --- Machines and limits as the engine takes them -------------------------------------------------
#
# Power is in whole milliwatts and energy in millijoules: what limits look at is rounded up, limits
# are rounded down. So sums are exact, and nothing depends on their order.
#
# Two powers are kept. The *true* one is what nodes draw. The *charged* one, which is never below
# it, is what limits look at: a node that is on and free may begin to switch off in the next
# second, and counts as the larger of both powers; one whose job waits for other nodes counts as
# being switched on or busy, whichever is more.

CAP, BUDGET = np.dtype(fields_of("PowerCap")), np.dtype(fields_of("EnergyBudget"))
_BEFORE = -1  # [s] before all events: when caps are announced that are known from the beginning
_PLENTY = 2**61  # [mW] more than there can be
_SUFFICES = 0
#: What the rule ``power`` is under budgets, where it says more than that they must suffice.
BUDGET_RULES = {"powercap": 1, "reduce-pc": 2, "energy-bud": 3}
#: ``mix`` uses frequencies of at least this share of the highest (Glesser 2016, section 4.5.2: from
#: 2.0 GHz on of 2.7).
MIX_FROM = 0.74
_RELATIVE_ERROR = 1e-12  # of watts and joules that were multiplied


class LimitedMachine(NamedTuple):
    """A machine whose jobs have nodes of their own, and the jobs; L levels, C kinds of slowdowns.

    ``constants`` are whole numbers by name, as the engine takes them.
    """

    constants: dict[str, int]
    busy_mw: NDArray[np.int64]  # (L,) charged for a node of a job
    drawn_mw: NDArray[np.int64]  # (L,) its true power
    slowdown: NDArray[np.int64]  # (C, L) [millionths]
    kind: NDArray[np.int64]  # (n_jobs,) of slowdown
    processors: NDArray[np.int64]  # (n_jobs,) as requested
    measured_mw: NDArray[np.int64]  # (n_jobs, L) measured power of whole jobs, -1; empty if unknown
    size: NDArray[np.int64]  # (levels above nodes,) nodes below a component
    component_mw: NDArray[np.int64]  # (levels above nodes,)
    widths: NDArray[np.int64]  # (n_jobs,) nodes of each job
    switches: bool  # whether nodes may be switched off
    most_mw: int  # the greatest power that there is
    caps: NDArray[np.void] = np.zeros(0, CAP)
    budgets: NDArray[np.void] = np.zeros(0, BUDGET)
    controlled: bool = False  # whether an agent sets limits while jobs run

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return self.constants["n_nodes"]

    @property
    def components_mw(self) -> int:
        """Power of all components above nodes [mW]."""
        return int((-(-self.n_nodes // self.size) * self.component_mw).sum())

    @property
    def told(self) -> dict[str, NDArray[np.int64]]:
        """The same as a model takes it."""
        limited = self.controlled or len(self.caps) > 0 or len(self.budgets) > 0
        own = self.constants | {"limited": limited, "controlled": self.controlled}
        of_jobs = ("kind", "processors", "measured_mw")
        names = ("busy_mw", "drawn_mw", "slowdown", *of_jobs, "size", "component_mw")
        return {
            **{name: np.array([value], np.int64) for name, value in own.items()},
            **{name: np.ascontiguousarray(getattr(self, name)) for name in names},
            **told_of_limits(self.caps, self.budgets),
        }

    def part(self, first: int, stop: int) -> LimitedMachine:
        """Return the same machine for some of the jobs."""
        names = ("kind", "processors", "measured_mw", "widths")
        return self._replace(**{name: getattr(self, name)[first:stop] for name in names})

    def idle_mw(self, off: int) -> int:
        """Return what is charged without jobs while the first ``off`` nodes are off [mW]."""
        own, n_nodes, size = self.constants, self.n_nodes, self.size
        dark = np.full(len(size), n_nodes) if off == n_nodes else off // size * size
        power = off * own["off_mw"] + (n_nodes - off) * own["rest_mw"] + self.components_mw
        # of the nodes below a component that is off not even what is off draws anything
        below = int((-(-dark // size) * self.component_mw).sum())
        return int(power - below - dark[:1].sum() * own["off_mw"])


def told_of_limits(
    caps: NDArray[np.void], budgets: NDArray[np.void]
) -> dict[str, NDArray[np.int64]]:
    """Return caps and budgets as the engine takes them."""
    return {"caps": caps.view(np.int64).ravel(), "budgets": budgets.view(np.int64).ravel()}


def machine_without_limits(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    power: NodePower,
    widths: NDArray[np.int64],
    switches: bool,
) -> LimitedMachine:
    """Return a machine, whose nodes may be switched off or not, and its jobs.

    Raises
    ------
    WorkloadError : times that are more than the simulator counts.
    """
    idle, off, shut, boot = (
        up_mw(watts) for watts in (power.idle_w, power.off_w, power.shutdown_w, power.boot_w)
    )
    rest = max(idle, shut) if switches else idle
    drawn = np.array([up_mw(watts) for watts in power.busy_levels_w], np.int64)
    timeout = cluster.shutdown_after_s
    constants = {
        "n_nodes": cluster.nodes,
        "n_processors": cluster.processors,
        "idle_mw": idle,
        "rest_mw": rest,
        "off_mw": off,
        "shutdown_mw": shut,
        "boot_mw": boot,
        "rise_mw": max(boot, rest),
        "off_time": power.shutdown_time_s,
        "on_time": power.boot_time_s,
        "timeout": FOREVER if timeout is None else timeout,
        "lowest": lowest_level(power, scheduler.power),
        "highest": power.levels - 1,
        "rule": BUDGET_RULES.get(scheduler.power, _SUFFICES),
        "contiguous": int(scheduler.allocation == "contiguous"),
    }
    busy, measured = np.maximum(drawn, rest), measured_mw(workload, cluster, power, widths)
    a_node = max(int(busy[-1]), boot, rest)
    if len(measured):
        a_node = max(a_node, int((-(-measured // widths[:, np.newaxis])).max()))
    machine = LimitedMachine(
        constants,
        busy,
        drawn,
        *slowdowns(workload, power),
        np.ascontiguousarray(workload.requested_processors, np.int64),
        measured,
        np.cumprod([level.of for level in cluster.levels], dtype=np.int64),
        np.array([up_mw(level.power_w) for level in cluster.levels], np.int64),
        widths,
        switches,
        cluster.nodes * a_node,
    )
    _check_clock(workload, machine)
    return machine._replace(most_mw=machine.most_mw + machine.components_mw)


def limit_records(
    scheduler: Scheduler,
    cluster: Cluster,
    power: NodePower,
    machine: LimitedMachine,
    given: tuple[Limit, ...],
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return caps and budgets as the engine takes them, without caps that no load can exceed.

    Raises
    ------
    HpcgymError : a cap that is exceeded with all nodes off, or more energy than is counted.
    """
    most = machine.most_mw
    caps = [
        (
            cap.start,
            FOREVER if cap.end is None else cap.end,
            _BEFORE if cap.announced is None else cap.announced,
            math.floor(min(cap.watts * 1000, _PLENTY)),
            cap.kills,
            nodes_off(cluster, power, cap, scheduler.power),
        )
        for cap in given
        if isinstance(cap, PowerCap) and cap.watts * 1000 < most * (1 - _RELATIVE_ERROR)
    ]
    budgets = []
    for budget in (limit for limit in given if isinstance(limit, EnergyBudget)):
        seconds, own = budget.end - budget.start, budget.joules * 1000
        free = -1 if budget.free_node_w is None else up_mw(budget.free_node_w)
        highest = most + max(free, 0) * machine.n_nodes
        if highest * seconds >= 2**61:
            raise HpcgymError(
                f"budget: {highest / 1000:g} W for {seconds} s are more than the simulator counts"
            )
        # one that no load can exceed counts only if nodes are switched off for it
        binds = own < most * seconds * (1 - _RELATIVE_ERROR)
        if not (binds or budget.shutdown):
            continue
        mj, period = math.floor(min(own, most * seconds)), budget.period if binds else seconds
        rules = period, budget.shutdown, free, binds
        budgets.append((budget.start, budget.end, mj, mj // seconds, *rules))
    return np.array(caps, CAP), np.array(budgets, BUDGET)


def up_mw(watts: float | None) -> int:
    """Return a power in whole milliwatts, rounded up; 0 of none."""
    return math.ceil(Decimal(repr(float(watts or 0.0))) * 1000)


def lowest_level(power: NodePower, rule: str) -> int:
    """Return the lowest level at which jobs may run."""
    if rule == "dvfs":
        return 0
    if rule != "mix" or power.levels == 1:
        return power.levels - 1
    ghz = power.frequency_ghz
    return next(level for level in range(power.levels) if ghz[level] >= MIX_FROM * ghz[-1])


def slowdowns(workload: Workload, power: NodePower) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the slowdown of each kind of jobs at each level [millionths], and their kinds."""
    own = workload.columns.get("slowdown", np.full(len(workload), -1.0))
    values, kind = np.unique(own, return_inverse=True)
    factors = power.slowdowns_of(values if len(values) else [-1.0])
    return np.rint(factors * MILLION).astype(np.int64), kind.astype(np.int64).reshape(-1)


def measured_mw(
    workload: Workload, cluster: Cluster, power: NodePower, widths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return what jobs draw at each level whose power was measured, (n_jobs, levels), -1 of others.

    As the books have it: their own power on each core, that of idle nodes on cores that are left.
    Empty where none was measured.
    """
    own = workload.columns.get("power_w", np.full(len(workload), -1.0))
    busy = np.array(power.busy_levels_w)
    if not (own >= 0).any():
        return np.empty((0, len(busy)), np.int64)
    cores = cluster.groups[0].resources["core"]
    scale = busy / busy[-1] if busy[-1] > 0 else np.ones(len(busy))
    watts = np.rint(np.maximum(own, 0)[:, np.newaxis] * scale / QUANTUM_W) * QUANTUM_W
    used = workload.requested_processors
    left = (widths * cores - used) / cores * power.idle_w
    total = np.ceil(1000 * (watts * used[:, np.newaxis] + left[:, np.newaxis]))
    measured: NDArray[np.int64] = total.astype(np.int64)
    measured[own < 0] = -1
    return measured


def nodes_off(cluster: Cluster, power: NodePower, cap: PowerCap, rule: str) -> int:
    """Return how many of the first nodes are off under a cap.

    ``shut``: as few as let all others run at the highest frequency. ``mix``: by algorithm 2 of
    Glesser 2016 (:mod:`hpcgym.benchmarks.energy.plans`), the others at the highest or the lowest
    frequency. What stands above nodes is counted too.

    Raises
    ------
    HpcgymError : a cap that is exceeded with all nodes off.
    """
    if rule not in ("shut", "mix"):
        return 0
    level = power.levels - 1
    lowest = lowest_level(power, rule)
    if rule == "mix" and lowest < level:
        if cap.watts < greatest_w(cluster, lowest):
            level = lowest
        elif rho(power, lowest=lowest) > 0:
            return 0
    return fewest_off(cluster, cap.watts, level)


def _check_clock(workload: Workload, machine: LimitedMachine) -> None:
    """Raise a WorkloadError where times are more than the simulator counts."""
    longest = machine.slowdown.max(initial=0) / MILLION
    total = float(workload.requested_time.sum(dtype=np.float64)) * longest
    if total >= FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: slowed down, the jobs request {total:.3g} s one after the other,"
            " more than the simulator's clock holds"
        )


# --- Simulations under limits of power and energy -------------------------------------------------

_ON = 3  # the state of a node; those before it are places in STATE_NAMES of schedule.node_states


def on_own_nodes(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    given: Limit | Iterable[Limit] | None,
    learned: Learned | None = None,
) -> Run:
    """Return a simulation in which each job has nodes of its own; see :func:`hpcgym.simulate`.

    Raises
    ------
    HpcgymError : rules that do not go with limits, a machine whose nodes are not alike, or a cap
        under which a job can never start.
    WorkloadError : a job that cannot be simulated.
    """
    limits = check_limits(() if given is None else given)
    check_for_limits(scheduler, given is not None)
    needs = needs_on(workload, cluster)
    workload = with_own_nodes(workload, scheduler, cluster, limits, needs)
    if given is None:
        warn_of_own_nodes(needs, cluster, scheduler, "; limits=[] says that this is meant")
    machine, place = own_place(workload, scheduler, cluster, limits, needs)
    simulation = new_simulation(workload, scheduler, place, learned)

    def result(schedule: Columns, attributes: dict[str, Any]) -> Result:
        if (schedule["start"] < 0).any():
            raise HpcgymError("limits: the simulator found no start for a job: an error of its own")
        # run times as they were predicted at full frequency
        asked_for = {**schedule, "predicted": schedule["predicted_at_highest"]}
        limited = replace(Result.of(workload, cluster, scheduler, asked_for), **attributes)
        a_node = units_a_node(needs, cluster)
        return with_machine(limited, machine, schedule, needs[:, 0], a_node, limits)

    return Run(workload, simulation, result)


def with_own_nodes(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    limits: tuple[Limit, ...],
    needs: NDArray[np.int64],
) -> Workload:
    """Return an extract in which each of its running jobs has nodes of its own; others wait.

    Raises
    ------
    HpcgymError : budgets that begin before it, or nodes that are switched off.
    """
    if workload.initial is None:
        return workload
    begin = workload.initial.begin
    if cluster.shutdown_after_s is not None:
        check_extract(workload, "shutdown")
    for limit in limits:
        if isinstance(limit, EnergyBudget) and limit.start < begin < limit.end:
            raise HpcgymError(
                f"limits: a budget has begun at {limit.start} s when {workload.name} begins, at"
                f" {begin} s, and what has been drawn of it is not known"
            )
    places = Scheduler(allocation=scheduler.allocation)

    def only_placed(jobs: Workload) -> Simulation:
        _, place = own_place(jobs, places, cluster, (), needs[: len(jobs)])
        return new_simulation(jobs, places, place)

    return with_room(taken_over(workload), only_placed)


def own_place(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    limits: tuple[Limit, ...],
    needs: NDArray[np.int64],
) -> tuple[LimitedMachine, Place]:
    """Return a machine under limits whose jobs have nodes of their own, and as a place of them.

    See :func:`on_own_nodes`. ``needs``: what the jobs ask of the nodes.
    """
    needed = bool(limits) or cluster.shutdown_after_s is not None
    own = own_nodes_of(needs, cluster, needed)
    check_jobs(workload, cluster.processors)
    machine = machine_for(workload, scheduler, cluster, own.power, own.units.widths, limits)
    return machine, Place("whole nodes", own.cluster, own.units, {"limited": machine.told})


class LimitedNodes(NamedTuple):
    """What jobs with nodes of their own have of a machine.

    ``needs`` as of :func:`needs_on`; ``a_node``: (n_jobs,) units of each job that a node holds.
    ``cluster``: the machine, of which nodes are switched off, not processors.
    """

    power: NodePower
    needs: NDArray[np.int64]
    a_node: NDArray[np.int64]
    units: MachineUnits
    cluster: Cluster


def own_nodes_of(needs: NDArray[np.int64], cluster: Cluster, needed: bool = True) -> LimitedNodes:
    """Return what jobs have of a machine; ``needed``: whether nodes must have a power."""
    power = node_power(cluster, needed)
    a_node = units_a_node(needs, cluster)
    units = MachineUnits(cluster.nodes, -(-needs[:, 0] // a_node))
    return LimitedNodes(power, needs, a_node, units, replace(cluster, shutdown_after_s=None))


def machine_for(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    power: NodePower,
    widths: NDArray[np.int64],
    given: tuple[Limit, ...],
) -> LimitedMachine:
    """Return a machine under limits before the first event."""
    switches = may_switch(scheduler, cluster, given)
    machine = machine_without_limits(workload, scheduler, cluster, power, widths, switches)
    return with_limits(machine, workload, scheduler, cluster, power, given)


def with_limits(
    machine: LimitedMachine,
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    power: NodePower,
    given: tuple[Limit, ...],
) -> LimitedMachine:
    """Return a machine and its jobs under limits.

    Raises
    ------
    HpcgymError : as :func:`limit_records`, or limits under which a job can never start.
    """
    caps, budgets = limit_records(scheduler, cluster, power, machine, given)
    machine = machine._replace(caps=caps, budgets=budgets)
    check_possible(workload, machine)
    return machine


# --- Checks ---------------------------------------------------------------------------------------


def check_possible(workload: Workload, machine: LimitedMachine) -> None:
    """Raise an HpcgymError if a job can never start under the caps that have no end."""
    own, widths, caps = machine.constants, machine.widths, machine.caps
    lasting = caps[caps["end"] == FOREVER]
    if not len(lasting) or not len(workload):
        return
    level = own["lowest"]
    power = widths * machine.busy_mw[level]
    if len(machine.measured_mw):
        power = np.maximum(power, machine.measured_mw[:, level])
    if machine.switches:  # its nodes may have to be switched on
        power = np.maximum(power, widths * own["rise_mw"])
    for cap in lasting:
        floor = machine.idle_mw(int(cap["off"]))
        idle = widths * own["rest_mw"]
        drawn = floor + power - idle
        left = machine.n_nodes - int(lasting["off"].max())
        never = ((drawn > cap["mw"]) | (widths > left)) & decided(workload)
        if never.any():
            job = int(never.argmax())
            width = int(widths[job])
            why, switching = f"the caps leave only {left} nodes on", ""
            if width <= left:
                switching = "" if cap["off"] else ', or power="shut" (--power shut)'
                others = machine.n_nodes - int(cap["off"]) - width
                why = f"with {others} idle nodes beside it the machine draws"
                why += f" {drawn[job] / 1000:g} W"
            raise HpcgymError(
                f"{workload.name}: {workload.called(job)}, of {width} nodes, can never start"
                f" under the cap of {cap['mw'] / 1000:g} W from {cap['start']} s on, which has no"
                f" end: {why}; give a higher cap or an end{switching}"
            )


# --- The result -----------------------------------------------------------------------------------


def with_machine(
    result: Result,
    machine: LimitedMachine,
    schedule: Columns,
    units: NDArray[np.int64],
    a_node: NDArray[np.int64],
    limits: tuple[Limit, ...],
) -> Result:
    """Return a schedule with the nodes of jobs, their frequencies and the states of nodes.

    Its jobs stand in the order in which they came. ``schedule`` is the engine's; ``units`` and
    ``a_node``: of each job, in all and on each node.
    """
    highest = machine.constants["highest"]
    level = np.where(schedule["start"] >= 0, schedule["level"], highest)
    # as many units on each node as it holds, the rest on the last
    on_each = np.repeat(a_node, machine.widths)
    first = np.concatenate([[0], np.cumsum(machine.widths)])
    on_each[first[1:] - 1] = units - (machine.widths - 1) * a_node
    node = schedule["cell_node"].astype(np.int32)
    placed = replace(
        result,
        frequency=level if (level < highest).any() else None,
        node_states=_node_states(schedule, int(result.end.max(initial=0))),
        allocation=Allocation(first, node, on_each.astype(np.int32)),
        limits=limits,
    )
    return as_came(placed, schedule["submit"])


def _node_states(schedule: Columns, end: int) -> NodeStates | None:
    """Return when nodes were off or switched, up to the last end [s]; None where all were on."""
    state, since = schedule["node_state"], schedule["node_since"]
    still = np.flatnonzero((state != _ON) & (since < end))
    columns = {
        "node": np.concatenate([schedule["log_node"], still]),
        "state": np.concatenate([schedule["log_state"], state[still]]),
        "begin": np.concatenate([schedule["log_begin"], since[still]]),
        "end": np.concatenate([schedule["log_end"], np.full(len(still), end)]),
    }
    return NodeStates(**columns) if len(columns["node"]) else None
