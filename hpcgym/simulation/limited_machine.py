"""Machines and limits as the engine takes them: nodes, their power, caps and budgets.

Power is in whole milliwatts and energy in millijoules: what limits look at is rounded up, limits
are rounded down. So sums are exact, and nothing depends on their order.

Two powers are kept. The *true* one is what nodes draw. The *charged* one, which is never below it,
is what limits look at: a node that is on and free may begin to switch off in the next second, and
counts as the larger of both powers; one whose job waits for other nodes counts as being switched on
or busy, whichever is more.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, fields_of
from hpcgym.cluster.power import MILLION, NodePower
from hpcgym.cluster.power_plans import greatest_w, rho, savings_w
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.schedule.power_uses import QUANTUM_W
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

CAP, BUDGET = np.dtype(fields_of("PowerCap")), np.dtype(fields_of("EnergyBudget"))
_BEFORE = -1  # [s] before all events: when caps are announced that are known from the beginning
_PLENTY = 2**61  # [mW] more than there can be
_SUFFICES = 0
#: What the rule ``power`` is under budgets, where it says more than that they must suffice.
BUDGET_RULES = {"powercap": 1, "reduce-pc": 2, "energy-bud": 3}
#: ``mix`` uses frequencies of at least this share of the highest (Glesser 2016, section 4.5.2: from
#: 2.0 GHz on of 2.7).
MIX_FROM = 0.74
_NO_POWER = NodePower(idle_w=0.0, busy_w=0.0)
_RELATIVE_ERROR = 1e-12  # of watts and joules that were multiplied


def node_power(cluster: Cluster, needed: bool = True) -> NodePower:
    """Return the power of each node of a machine whose nodes are all alike.

    Raises
    ------
    HpcgymError : a pool, nodes that are not alike, or, where it is ``needed``, without a power.
    """
    if not cluster.groups:
        raise HpcgymError(
            "limits, and allocation='contiguous', are for machines with nodes: cluster= says which"
        )
    if cluster.partitions:
        check("whole nodes", "partitions")
    first = cluster.groups[0]
    for group in cluster.groups:
        if dict(group.resources) != dict(first.resources) or group.power != first.power:
            raise HpcgymError(
                f"limits need nodes that are all alike, but groups {first.name!r} and"
                f" {group.name!r} differ"
            )
    if first.power is None:
        if needed:
            raise HpcgymError(
                f"limits need the power of nodes, and group {first.name!r} has none; give it one:"
                " power=NodePower(...), or [group.power] in its file"
            )
        return _NO_POWER
    if first.power.off_w > first.power.idle_w:
        raise HpcgymError("off_w: under limits a node must not draw more off than idle")
    return first.power


class LimitedMachine(NamedTuple):
    """A machine whose jobs have nodes of their own, and the jobs; L levels, C kinds of slowdowns.

    ``constants`` are whole numbers by name, as the engine takes them.
    """

    constants: dict[str, int]
    busy_mw: NDArray[np.int64]  # (L,) charged for a node of a job
    drawn_mw: NDArray[np.int64]  # (L,) its true power
    slowdown: NDArray[np.int64]  # (C, L) [millionths]
    kind: NDArray[np.int64]  # (n_jobs,) of slowdown
    measured_mw: NDArray[np.int64]  # (n_jobs, L) measured power of whole jobs, -1; empty if unknown
    size: NDArray[np.int64]  # (levels above nodes,) nodes below a component
    component_mw: NDArray[np.int64]  # (levels above nodes,)
    widths: NDArray[np.int64]  # (n_jobs,) nodes of each job
    switches: bool  # whether nodes may be switched off
    most_mw: int  # the greatest power that there is
    caps: NDArray[np.void] = np.zeros(0, CAP)
    budgets: NDArray[np.void] = np.zeros(0, BUDGET)
    controlled: bool = False  # whether somebody sets limits while jobs run

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return self.constants["n_nodes"]

    @property
    def components_mw(self) -> int:
        """What all that stands above nodes draws [mW]."""
        return int((-(-self.n_nodes // self.size) * self.component_mw).sum())

    @property
    def told(self) -> dict[str, NDArray[np.int64]]:
        """The same as a model takes it."""
        limited = self.controlled or len(self.caps) > 0 or len(self.budgets) > 0
        own = self.constants | {"limited": limited, "controlled": self.controlled}
        names = ("busy_mw", "drawn_mw", "slowdown", "kind", "measured_mw", "size", "component_mw")
        return {
            **{name: np.array([value], np.int64) for name, value in own.items()},
            **{name: np.ascontiguousarray(getattr(self, name)) for name in names},
            **told_of_limits(self.caps, self.budgets),
        }

    def part(self, first: int, stop: int) -> LimitedMachine:
        """Return the same machine for some of the jobs."""
        names = ("kind", "measured_mw", "widths")
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


def may_switch(scheduler: Scheduler, cluster: Cluster, given: tuple[Limit, ...]) -> bool:
    """Return whether nodes may be switched off: by limits, or by the machine."""
    shuts = any(isinstance(limit, EnergyBudget) and limit.shutdown for limit in given)
    planned = scheduler.power in ("shut", "mix") and any(isinstance(c, PowerCap) for c in given)
    return planned or shuts or cluster.shutdown_after_s is not None


def check_off_as_idle(given: tuple[Limit, ...], switches: bool) -> None:
    """Raise an HpcgymError where a budget tells how nodes are reckoned that are never off."""
    if not switches and any(getattr(limit, "off_as_idle", False) for limit in given):
        raise HpcgymError(
            "budget: off_as_idle is about nodes that are off, and none is ever switched off here;"
            " shutdown, or shutdown_after_s of the machine, does that"
        )


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
    HpcgymError : a cap that is exceeded with all nodes off, more energy than is counted, or a
        budget with ``off_as_idle`` where nodes stay on.
    """
    check_off_as_idle(given, machine.switches)
    most = machine.most_mw * (1 - _RELATIVE_ERROR)
    caps = [one for one in given if isinstance(one, PowerCap) and one.watts * 1000 < most]
    off = [nodes_off(cluster, power, cap, scheduler.power) for cap in caps]
    budgets = [one for one in given if isinstance(one, EnergyBudget)]
    _check_energy(machine.most_mw, budgets)
    return cap_records(caps, off), budget_records(budgets, machine.most_mw)


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
    Glesser 2016, :func:`hpcgym.cluster.power_plans.algorithm_2`, the others at the highest or the
    lowest frequency. What stands above nodes is counted too.

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
    savings = savings_w(cluster, np.arange(cluster.nodes), level)
    need = round(greatest_w(cluster, level) - cap.watts, 9)
    number = int(np.searchsorted(savings, need))
    if number > cluster.nodes:
        left = greatest_w(cluster, level) - savings[-1]
        raise HpcgymError(
            f"a cap of {cap.watts:g} W: with all nodes off the machine draws {left:g} W"
        )
    return number


def cap_records(caps: list[PowerCap], off: list[int]) -> NDArray[np.void]:
    """Return caps as the engine takes them, with how many nodes are off under each."""
    records = np.zeros(len(caps), CAP)
    for record, cap, nodes in zip(records, caps, off, strict=True):
        record["start"] = cap.start
        record["end"] = FOREVER if cap.end is None else cap.end
        record["announced"] = _BEFORE if cap.announced is None else cap.announced
        record["mw"] = math.floor(min(cap.watts * 1000, _PLENTY))
        record["kills"] = cap.kills
        record["off"] = nodes
    return records


def budget_records(budgets: list[EnergyBudget], most: int) -> NDArray[np.void]:
    """Return budgets as the engine takes them; ``most`` is the greatest power there is [mW].

    One that no load can exceed is left out, unless nodes are switched off for it.
    """
    kept = []
    for budget in budgets:
        seconds = budget.end - budget.start
        binds = budget.joules * 1000 < most * seconds * (1 - _RELATIVE_ERROR)
        if not (binds or budget.shutdown):
            continue
        mj = math.floor(min(budget.joules * 1000, most * seconds))
        record = np.zeros((), BUDGET)
        record["start"], record["end"] = budget.start, budget.end
        record["mj"], record["mean_mw"] = mj, mj // seconds
        record["period"] = budget.period if binds else seconds
        record["shuts"], record["binds"] = budget.shutdown, binds
        record["as_idle"] = budget.off_as_idle
        kept.append(record)
    return np.array(kept, BUDGET)


def _check_energy(most: int, budgets: list[EnergyBudget]) -> None:
    """Raise an HpcgymError where the energy of a period is more than the simulator counts."""
    for budget in budgets:
        if most * (budget.end - budget.start) >= 2**61:
            raise HpcgymError(
                f"budget: {most / 1000:g} W for {budget.end - budget.start} s are more than the"
                " simulator counts"
            )


def _check_clock(workload: Workload, machine: LimitedMachine) -> None:
    """Raise a WorkloadError where times are more than the simulator counts."""
    longest = machine.slowdown.max(initial=0) / MILLION
    total = float(workload.requested_time.sum(dtype=np.float64)) * longest
    if total >= FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: slowed down, the jobs request {total:.3g} s one after the other,"
            " more than the simulator's clock holds"
        )
