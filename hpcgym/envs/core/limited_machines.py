"""Machines behind an environment whose jobs have nodes of their own, under limits or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.limited import rows as limited_rows
from hpcgym.engine.machines.limited.rows import LimitedRows
from hpcgym.engine.machines.limited.state import LimitedNodes
from hpcgym.engine.rows import shared_arrays
from hpcgym.engine.state import FOREVER
from hpcgym.envs.core.layout import Layout
from hpcgym.envs.core.machines import MachineParts, Machines, schedule_of_queue
from hpcgym.envs.core.options import Options
from hpcgym.envs.core.tables import Common
from hpcgym.envs.core.told import State
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.limits import Limit, check_limits
from hpcgym.simulation.limited import (
    check_for_limits,
    check_power_rule,
    takes_whole_nodes,
    units_a_node,
    warn_of_own_nodes,
    with_machine,
)
from hpcgym.simulation.limited_machine import (
    check_clock,
    check_possible,
    limit_records,
    model_of,
    node_power,
)
from hpcgym.simulation.nodes import needs_on
from hpcgym.workload.model import Workload


class Limited(NamedTuple):
    """What an environment says of a machine whose jobs have nodes of their own.

    Attributes
    ----------
    controls : names of CONTROLS, in the order of the action.
    limits_of : returns the limits of an episode's jobs, in seconds of their clock; None: it has
        none, and nothing is said of power.
    switches : whether nodes may be switched off at all.
    """

    controls: tuple[str, ...]
    limits_of: Callable[[Workload], tuple[Limit, ...]] | None
    switches: bool


def own_nodes(options: Options) -> Limited | None:
    """Return what is said of a machine without limits if jobs have nodes of their own on it."""
    check_power_rule(options.scheduler, None)
    if not takes_whole_nodes(options.cluster, options.scheduler, None):
        return None
    return Limited((), None, options.cluster.shutdown_after_s is not None)


#: What an agent may set.
CONTROLS = ("frequency", "nodes", "power")


class LimitedMachines(Machines):
    """The machines of many simulations whose jobs have nodes of their own.

    Attributes
    ----------
    rows : as of all machines; another object once the arrays have grown.
    widths : (n_rows,) nodes of each job.
    limits : of the present episode of each simulation.

    Raises
    ------
    HpcgymError : rules that do not go with nodes of one's own or with limits, or nodes that are
        not alike or without a power.
    WorkloadError : a job that cannot be simulated.
    """

    own_rules = ("power",)

    def __init__(
        self, limited: Limited, options: Options, workload: Workload, number: int, longest: int
    ) -> None:
        scheduler, cluster = options.scheduler, options.cluster
        has_limits = limited.limits_of is not None
        check_for_limits(scheduler, has_limits)
        if not has_limits:
            check_scheduler(scheduler, "environments on nodes")
        unknown = [group.name for group in cluster.groups if group.power is None]
        if not has_limits and unknown:
            raise HpcgymError(
                "with nodes of their own for jobs (shutdown_after_s, allocation='contiguous')"
                f" environments count what nodes draw, and group {unknown[0]!r} has no power;"
                " give it one: power=NodePower(...), or [group.power] in its file"
            )
        self.limited, self.options = limited, options
        self.limits_of = limited.limits_of
        # nodes are switched off, not processors
        self.cluster = replace(cluster, shutdown_after_s=None)
        self.units = self.counted = cluster.nodes
        self.books, self.n_booked = False, 0
        self.power = node_power(cluster)
        self.needs = needs_on(workload, cluster)
        self.a_node = units_a_node(self.needs, cluster)
        if not has_limits:
            warn_of_own_nodes(self.needs, cluster, scheduler)
        self.widths = -(-self.needs[:, 0] // self.a_node)
        self.model = model_of(
            workload, scheduler, cluster, self.power, self.widths, limited.switches
        )
        check_clock(workload, self.model)
        self.rows: LimitedRows = limited_rows.make_rows(
            *self.model[:-1], self.widths, cluster.nodes, number, longest, has_limits
        )
        self.rows.scalars[:] = self.rows.begin
        self.limits: list[tuple[Limit, ...]] = [()] * number
        self._next_limits = list(self.limits)

    @property
    def busy_w(self) -> float:
        """What a node draws at most [W], with its part of what stands above."""
        above = int(self.rows.begin[0]["components_mw"])
        return (self.units * int(self.rows.drawn_mw[-1]) + above) / 1000 / self.units

    @property
    def parts(self) -> MachineParts:  # type: ignore[override]  # rows are others once they have grown
        """What the engine is told of the machines."""
        return MachineParts(limited=self.rows)

    @property
    def telling(self) -> tuple[NDArray[Any], ...]:
        """Constant arrays that tell one machine from another, for fingerprints."""
        return shared_arrays(self.rows)

    def prepared(self, common: Common) -> Common:
        """Return jobs that ask for nodes in place of processors."""
        jobs = common.jobs.copy()
        jobs["processors"] = self.widths
        return common._replace(jobs=jobs)

    def set_next(self, e: int, jobs_of: Callable[[], Workload], start: int) -> None:
        """Set the limits of the next episode of simulation ``e``, which begins at row ``start``.

        Raises
        ------
        HpcgymError : limits that are none, that need nodes to be switched off where they stay on,
            or under which a job can never start.
        """
        limits_of, workload = self.limited.limits_of, jobs_of()
        given = () if limits_of is None else check_limits(limits_of(workload))
        scheduler, cluster = self.options.scheduler, self.options.cluster
        if any(getattr(limit, "shutdown", False) for limit in given) and not self.limited.switches:
            raise HpcgymError("limits: budgets with shutdown need the control 'nodes'")
        caps, budgets = limit_records(scheduler, cluster, self.power, self.model, given)
        if (caps["end"] == FOREVER).any():
            self._check_possible(e, start, workload, caps)
        self.rows = limited_rows.set_next_limits(self.rows, e, caps, budgets)
        self._next_limits[e] = given

    def _check_possible(
        self, e: int, start: int, workload: Workload, caps: NDArray[np.void]
    ) -> None:
        """Raise an HpcgymError if a job of an episode can never start under a cap without end."""
        stop = start + len(workload)
        machine = limited_rows.row_of(self.rows, e, start, stop)
        first = self.rows.total[start : stop + 1]
        machine = machine._replace(caps=caps, scalars=self.rows.begin, first=first)
        check_possible(workload, machine)

    def limits_now(self, e: int) -> tuple[Limit, ...]:
        """Return the limits of the present episode of simulation ``e``."""
        return self.limits[e]

    def take_limits(self, e: int, limits: tuple[Limit, ...]) -> None:
        """Note the limits under which simulation ``e`` goes on, in an episode of its own."""
        self.limits[e] = limits

    def began(self, e: int) -> None:
        """Note that simulation ``e`` has begun the episode that was to come next."""
        self.limits[e] = self._next_limits[e]

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors the free nodes have."""
        return free * (self.cluster.processors // self.cluster.nodes)

    def finds_room(self, rows: NDArray[np.int64], free: int) -> NDArray[np.bool_]:
        """Return which of these waiting jobs find enough nodes now, whatever limits say."""
        found: NDArray[np.bool_] = self.widths[rows] <= free
        return found

    def row(self, e: int, start: int, n: int) -> LimitedNodes:
        """Return the machine of simulation ``e`` for its ``n`` jobs from row ``start`` on.

        What a schedule is made of are copies.
        """
        total = self.rows.total[start : start + n + 1]
        self.rows.first[e, : n + 1] = total - total[0]
        machine = limited_rows.row_of(self.rows, e, start, start + n)
        log = machine.log[: machine.scalars[0].logged]
        names = ("first", "cells", "nodes", "tasks", "scalars")
        return machine._replace(
            log=log.copy(), **{name: getattr(machine, name).copy() for name in names}
        )

    def schedule(
        self, told: State, workload: Workload, jobs: NDArray[np.void], options: Options
    ) -> Result:
        """Return the schedule of a simulation so far, with nodes, levels and limits."""
        result, machine = schedule_of_queue(told, workload, jobs, options), told.machine
        start, n = told.first, len(result.start)
        units, a_node = self.needs[start : start + n, 0], self.a_node[start : start + n]
        begun, predicted = result.start >= 0, machine.tasks["predicted"]
        asked = np.where(begun, predicted, result.predicted_run_time)
        result = replace(result, predicted_run_time=asked)
        return with_machine(result, machine, units, a_node, told.limits)


def set_places(
    settings: NDArray[np.void], limited: Limited | None, n_weights: int, layout: Layout
) -> None:
    """Say where controls stand in the action, behind the weights, and power in the observation."""
    settings["seen_power"] = layout.power_at
    places = {} if limited is None else {name: k for k, name in enumerate(limited.controls)}
    for field, name in zip(_PLACES, CONTROLS, strict=True):
        settings[field] = n_weights + places[name] if name in places else -1


_PLACES = ("act_frequency", "act_nodes", "act_power")  # in the order of CONTROLS
