"""The books of a schedule: the power of the machine over time, and the energy charged to each job.

They follow from the start and run times, the nodes of each job, its frequency and the states of
nodes alone, and do not need the simulation.

**Power.** A node of a group with a power of its own draws ``busy_w`` of the highest level of its
jobs while it has any, else ``idle_w``, ``off_w``, or the power of switching. Components above nodes
draw their power unless all nodes below are off; nodes that are off draw nothing while their
component of the first level is off too. On other machines each processor draws the machine's flat
powers. A job with a measured power draws it on each of its cores, reduced at a lower level as much
as the node's; only the other cores of its node then count as busy, or idle.

**Charges.** A job is charged what its nodes draw while it runs. Jobs that share a node divide its
power in proportion to their cores times the watts of their levels; at the same level, to their
cores. A measured job is charged its measured power. All else (idle, off, switching, components) is
overhead of the machine, which no job is charged.

Everything is counted from the first submission to the last end. These are the rules of
:mod:`hpcgym.reference.energy`, which states them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.machine.power import Floats, Ints, Mask
from hpcgym.machine.power_plans import Above, Powers, levels_above, powers_of, weighed
from hpcgym.schedule.runs import OFF, STATE_NAMES, SWITCHING_OFF, NodeStates
from hpcgym.schedule.schedule import Schedule, kept, known_powers

# --- Which jobs have had which cores of nodes, at which level of power ----------------------------
#
# m cells; a cell is the part of a node that a job has.

#: Measured powers of jobs count in these steps [W], so that sums of them are exact.
QUANTUM_W = 2.0**-20


class OccupiedCells(NamedTuple):
    """The parts of nodes that jobs have had.

    Attributes
    ----------
    job, node, group, cores, level : (m,) int64; a level is at most the highest of its group.
    measured : (m,) int64, measured power of the job on each core, in steps of ``QUANTUM_W``; -1
        where it is unknown.
    """

    job: Ints
    node: Ints
    group: Ints
    cores: Ints
    level: Ints
    measured: Ints

    @property
    def some_measured(self) -> bool:
        """Whether the power of any job is known."""
        return self.measured.strides != (0,)

    def take(self, chosen: Mask) -> OccupiedCells:
        """Return the cells that are chosen, (m,) bool."""
        if chosen.all():
            return self
        places = np.flatnonzero(chosen)
        return OccupiedCells(*(column[places] for column in self))


class Parts(NamedTuple):
    """The cores that each job has had of each group, without shared nodes; p pairs of the two.

    Attributes
    ----------
    job, group, level : (p,) int64.
    cores : (p,) int64, those of jobs that are not measured.
    measured, steps : (p,) int64, cores of measured jobs, and what these draw, in ``QUANTUM_W``.
    """

    job: Ints
    group: Ints
    level: Ints
    cores: Ints
    measured: Ints
    steps: Ints


def cells_of(result: Schedule, powers: Powers) -> OccupiedCells:
    """Return the cells of nodes that jobs have had, of all jobs that have started.

    Raises
    ------
    HpcgymError : a machine with nodes, but a schedule without jobs' nodes; a level below 0; or
        measured powers that cannot be summed exactly.
    """
    n = len(result.start)
    workload, cluster = result.workload, result.cluster
    if not cluster.groups:
        job, node = np.arange(n), np.zeros(n, np.int64)
        cores = np.asarray(workload.requested_processors)
    else:
        if result.allocation is None:
            raise HpcgymError("the schedule does not tell the nodes of jobs: no power is known")
        first, held, units = result.allocation
        job = np.repeat(np.arange(n), np.diff(first))
        node, cores = np.asarray(held, np.int64), units.astype(np.int64)
        if workload.units is not None:
            cores = cores * workload.per_unit["core"][job]
    if len(cluster.groups) < 2:
        group = np.broadcast_to(np.int64(0), len(job))  # takes no memory
        level = np.broadcast_to(powers.top[0], len(job))
    else:
        group = cluster.group_of[node]
        level = powers.top[group]
    if result.frequency is not None:
        if (result.frequency < 0).any():
            raise HpcgymError("frequency: levels are counted from 0, the lowest")
        level = np.minimum(level, result.frequency[job])
    measured = _measured(result, powers, job, group, level)
    cells = OccupiedCells(job, node, group, cores, level, measured)
    return cells.take(result.start[job] >= 0) if (result.start < 0).any() else cells


def parts_of(cells: OccupiedCells, counted: Mask, n_jobs: int, n_groups: int) -> Parts:
    """Return the cells that are counted, and those of measured jobs, summed by job and group."""
    key = cells.job if n_groups == 1 else cells.job * n_groups + cells.group
    size = n_jobs * n_groups
    present = np.flatnonzero(np.bincount(key, minlength=size))
    level = np.zeros(size, np.int64)
    level[key] = cells.level

    def summed(values: NDArray[Any]) -> Ints:
        # whole numbers below 2^53: sums in double precision are exact
        return weighed(key, values, size)[present].astype(np.int64)

    cores = summed(cells.cores * counted)
    measured = steps = np.zeros(len(present), np.int64)
    if cells.some_measured:
        known = cells.measured >= 0
        measured = summed(cells.cores * known)
        of_pair = np.zeros(size, np.int64)
        of_pair[key[known]] = cells.measured[known]  # all cells of a pair have the same
        steps = measured * of_pair[present]
    job, group = np.divmod(present, n_groups)
    return Parts(job, group, level[present], cores, measured, steps)


def _measured(result: Schedule, powers: Powers, job: Ints, group: Ints, level: Ints) -> Ints:
    """Return the measured power of jobs on each core in steps, as much less as their level has."""
    power_w = known_powers(result)
    if power_w is None:
        return np.broadcast_to(np.int64(-1), len(job))
    full = powers.busy[group, powers.top[group]]
    scale = np.divide(powers.busy[group, level], full, out=np.ones_like(full), where=full > 0)
    steps = np.rint(np.where(power_w[job] < 0, 0, power_w[job] * scale) / QUANTUM_W)
    if steps.max(initial=0) * result.cluster.processors >= 2.0**62:
        raise HpcgymError(f"power_w: {power_w.max():g} W a processor is more than can be summed")
    return np.where(power_w[job] < 0, -1, steps.astype(np.int64))


# --- Nodes that several jobs share ----------------------------------------------------------------
#
# Only nodes that are busy as a whole matter here, and of their jobs those that have not all cores.


class EnergySplit(NamedTuple):
    """Nodes over time, between changes; k intervals, s shares, those of jobs that are not measured.

    Attributes
    ----------
    node, begin, end : (k,) int64; from and up to which place in the list of times.
    cores : (k,) int64, the cores that are not those of measured jobs: this part of the node is busy
        where ``level`` is not -1.
    level : (k,) int64, the highest of the jobs that are not measured; -1 without any.
    rate : (k,) float64, what the busy part draws, for each core of a job and each watt of its
        level.
    job : (s,) int64.
    weight : (s,) float64, cores of the job times the watts of its level.
    first, last : (s,) int64, from and up to which interval the job has them.
    """

    node: Ints
    begin: Ints
    end: Ints
    cores: Ints
    level: Ints
    rate: Floats
    job: Ints
    weight: Floats
    first: Ints
    last: Ints

    def charges(self, lengths: Floats, n_jobs: int) -> Floats:
        """Return what each job is charged, (n_jobs,), where intervals count ``lengths``, (k,)."""
        if not len(self.job):
            return np.zeros(n_jobs)
        parts = np.append(self.rate * lengths, 0.0)  # reduceat wants every place below the size
        spans = np.stack((self.first, self.last), axis=1).ravel()
        sums = np.add.reduceat(parts, spans)[::2]
        return weighed(self.job, self.weight * sums, n_jobs)


def no_split() -> EnergySplit:
    """Return that no node is shared."""
    none, empty = np.zeros(0, np.int64), np.zeros(0)
    return EnergySplit(none, none, none, none, none, empty, none, empty, none, none)


def share(
    cells: OccupiedCells, begin: Ints, end: Ints, powers: Powers, n_times: int
) -> EnergySplit:
    """Return what happens on shared nodes.

    Parameters
    ----------
    cells : on nodes that are busy as a whole, of jobs that have not all of their cores.
    begin, end : (m,) from and up to which of the ``n_times`` times the job runs.
    """
    m = len(cells.job)
    if not m:
        return no_split()
    keys = np.concatenate([cells.node * n_times + begin, cells.node * n_times + end])
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    last = np.append(sorted_keys[1:] != sorted_keys[:-1], True)  # of what happens at one time
    unmeasured = cells.measured < 0

    def running(amounts: Ints) -> Ints:
        # integers throughout: nothing drifts
        total: Ints = np.cumsum(np.concatenate([amounts, -amounts])[order])[last]
        return total

    node, time = np.divmod(sorted_keys[last], n_times)
    group = np.zeros(len(node), np.int64)
    group[np.searchsorted(node, cells.node)] = cells.group
    group = group[np.searchsorted(node, node)]
    cores = powers.cores[group] - running(np.where(unmeasured, 0, cells.cores))
    highest, weights = np.full(len(node), -1), np.zeros(len(node))
    for level in np.unique(cells.level[unmeasured]).tolist():
        used = running(np.where(unmeasured & (cells.level == level), cells.cores, 0))
        highest[used > 0] = level
        weights += used * powers.busy[group, level]
    draws = cores / powers.cores[group] * powers.busy[group, highest]
    rate = np.divide(draws, weights, out=np.zeros(len(node)), where=weights > 0)
    # to the next change of the same node; after the last one nothing is left
    until = np.append(time[1:], 0)
    until[np.append(node[1:] != node[:-1], True)] = 0
    until = np.maximum(until, time)
    place = np.empty(2 * m, np.int64)
    place[order] = np.cumsum(np.append(0, last[:-1]))
    first, stop = place[:m][unmeasured], place[m:][unmeasured]
    by_place = np.argsort(first, kind="stable")  # so that sums between shares are short
    shares = cells.take(unmeasured)
    weight = shares.cores * powers.busy[shares.group, shares.level]
    return EnergySplit(
        node,
        time,
        until,
        cores,
        highest,
        rate,
        shares.job[by_place],
        weight[by_place],
        first[by_place],
        stop[by_place],
    )


# --- The books of a schedule ----------------------------------------------------------------------

#: What is not charged to jobs; states of busy nodes follow, by frequency.
OVERHEAD = ("components", "off", *STATE_NAMES[SWITCHING_OFF:], "idle")

#: Seconds: int64; float64 where jobs share nodes and speed each other up.
Times = NDArray[Any]

#: (begin, end) [s] of intervals -> how much each of them counts.
Measure = Callable[[Times, Times], Floats]


def seconds(begin: Times, end: Times) -> Floats:
    """Return the lengths of intervals [s]: watts over them are joules."""
    return (end - begin).astype(np.float64)


class Books:
    """The books of a schedule. What is not asked for is not worked out.

    Parameters
    ----------
    result : the schedule; jobs that have not started, start -1, draw nothing.
    owner : (n_runs,) int64, the job that is charged for each run; None: each run is its own job.

    Raises
    ------
    HpcgymError : a schedule that does not tell the nodes of jobs; states of nodes that there are
        not, or of a pool.
    """

    def __init__(self, result: Schedule, owner: Ints | None = None):
        self._result = result
        self._owner, self._n_owners = owner, 0 if owner is None else int(owner.max(initial=-1)) + 1
        self._cluster = result.cluster
        self._powers: Powers = powers_of(result.cluster)
        nodes = result.cluster.nodes
        if result.node_states is not None and result.node_states.node.max(initial=0) >= nodes:
            raise HpcgymError(f"node states: the machine has {nodes} nodes")

    @property
    def states(self) -> tuple[str, ...]:
        """The states that power and energy are told apart by: ``OVERHEAD``, then busy nodes'."""
        return (*OVERHEAD, *self._powers.labels)

    @cached_property
    def time(self) -> Times:
        """When the power may change, (n_times,) [s], from the first to the last; as ``start``."""
        started = self._result.start >= 0
        if not started.any():
            return np.zeros(1, np.int64)
        end = self._result.end[started]
        first, last = self._result.workload.submit_time.min(), end.max()
        moments = [np.array([first, last]), self._result.start[started], end]
        states = self._result.node_states
        if states is not None:
            moments += [np.clip(states.begin, first, last), np.clip(states.end, first, last)]
        ordered: Times = np.concatenate(moments)
        ordered.sort()  # np.unique would hash them, which takes many times as long
        distinct: Times = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        return distinct

    @cached_property
    def _span(self) -> float:
        """From the first submission to the last end [s]."""
        started = self._result.start >= 0
        if not started.any():
            return 0.0
        return float(self._result.end[started].max() - self._result.workload.submit_time.min())

    def watts(self, group: int | None = None) -> dict[str, Floats]:
        """Return the power over time by state [W], of one group or of the whole machine.

        Returns
        -------
        watts : state -> (n_times - 1,) float64, from each time to the next; a group has the share
            of components that its nodes have of those below them.

        Raises
        ------
        HpcgymError : a pool whose processors are switched off: the schedule does not tell when.
        """
        if self._result.idle_seconds is not None:
            raise HpcgymError(
                "the schedule does not tell when processors of a pool were off, only for how long:"
                " its power over time is not known; on a machine of nodes with a power it is"
            )
        total = {state: np.zeros(len(self.time) - 1) for state in self.states}
        for chosen in range(len(self._powers.cores)) if group is None else (group,):
            for state, power in self._of_group(chosen):
                total[state] += power
        nodes = np.arange(self._cluster.nodes)
        if group is not None:
            nodes = np.flatnonzero(self._cluster.group_of == group)
        for above in self._above:
            total["components"] += self._of_components(above, nodes)
        return total

    @cached_property
    def total_w(self) -> Floats:
        """The power of the whole machine from each time to the next [W], (n_times - 1,) float64."""
        total: Floats = np.sum(list(self.watts().values()), axis=0)
        return total

    def joules(self, begin: float, end: float) -> float:
        """Return the energy from ``begin`` up to ``end`` [s], within the schedule [J]."""
        seconds = np.minimum(self.time[1:], end) - np.maximum(self.time[:-1], begin)
        return float((self.total_w * np.maximum(seconds, 0)).sum())

    @cached_property
    def by_node(self) -> Floats:
        """Energy of each node in each of ``states``, (nodes, states) float64 [J].

        Each node has an equal share of the components that it is below.
        """
        powers, group = self._powers, self._cluster.group_of
        places = {name: place for place, name in enumerate(self.states)}
        energy = np.zeros((len(self.states), self._cluster.nodes))
        span = self._span
        energy[len(OVERHEAD) :], core_seconds = self._busy_by_node
        idle = powers.cores[group] * span - core_seconds
        for code, time in self._switched_by_node:
            idle = idle - time * powers.cores[group]
            if code == OFF and self._above:  # those below a component that is off draw nothing
                time = time - self._above[0].off(self.time)[self._above[0].of_node]
            energy[places[STATE_NAMES[code]]] = time * getattr(powers, STATE_NAMES[code])[group]
        if self._result.idle_seconds is None:
            energy[places["idle"]] = idle / powers.cores[group] * powers.idle[group]
        else:
            for name, core_time in self._result.idle_seconds.items():
                energy[places[name]] = core_time * (getattr(powers, name) / powers.cores)
        for above in self._above:
            on = (span - above.off(self.time)) * above.power_w / above.size
            energy[places["components"]] += on[above.of_node]
        return energy.T

    def by_job(self, measure: Measure = seconds) -> Floats:
        """Return what each job is charged, (n_jobs,) float64 [J], or in what ``measure`` makes."""
        result, parts = self._result, self._parts
        n = len(result.start)
        a_core = self._powers.busy[parts.group, parts.level] / self._powers.cores[parts.group]
        draws = parts.cores * a_core + parts.steps * QUANTUM_W
        watts = weighed(parts.job, draws, n)
        started = result.start >= 0
        charged = np.zeros(n)
        charged[started] = watts[started] * measure(result.start[started], result.end[started])
        charged += self._sharing.charges(measure(*self._shared_times), n)
        return charged if self._owner is None else weighed(self._owner, charged, self._n_owners)

    @cached_property
    def by_state(self) -> dict[str, float]:
        """Energy of the whole machine in each of ``states`` [J]."""
        totals = np.ascontiguousarray(self.by_node.T).sum(axis=1).tolist()
        return dict(zip(self.states, totals, strict=True))

    # --- Parts, each worked out once -----------------------------------------------------------

    @cached_property
    def _cells(self) -> OccupiedCells:
        return cells_of(self._result, self._powers)

    @cached_property
    def _alone(self) -> Mask:
        """Which cells draw the same whatever other jobs are on the node."""
        cells, powers = self._cells, self._powers
        alone: Mask = ~powers.whole[cells.group] | (cells.cores == powers.cores[cells.group])
        return alone

    @property
    def _counted(self) -> Mask:
        """Which cells are busy core by core, or as a whole node of one job, and not measured."""
        if not self._cells.some_measured:
            return self._alone
        return self._alone & (self._cells.measured < 0)

    @cached_property
    def _parts(self) -> Parts:
        return parts_of(
            self._cells, self._counted, len(self._result.start), len(self._powers.cores)
        )

    @cached_property
    def _sharing(self) -> EnergySplit:
        if self._alone.all():
            return no_split()
        begin, end = self._of_jobs
        lasts = (
            begin[self._cells.job] < end[self._cells.job]
        )  # not so of a run lost as it all begins
        cells = self._cells.take(~self._alone & lasts)
        begin, end = begin[cells.job], end[cells.job]
        return share(cells, begin, end, self._powers, len(self.time))

    @cached_property
    def _busy_by_node(self) -> tuple[Floats, Floats]:
        """Energy of busy nodes, (labels, nodes) [J], and core seconds not idle, (nodes,)."""
        cells, shared, group = self._cells, self._sharing, self._cluster.group_of
        lasts = seconds(self._result.start, self._result.end)
        weights = cells.cores * lasts[cells.job]
        used = self._by_label(cells.node, cells.group, cells.level, weights * self._counted)
        of = group[shared.node]
        busy = np.where(shared.level >= 0, shared.cores, 0) * seconds(*self._shared_times)
        used += self._by_label(shared.node, of, shared.level, busy)
        energy, total = used * self._watts_by_label[:, group], used.sum(axis=0)
        if cells.some_measured:
            measured = cells.measured >= 0
            joules = np.where(measured, cells.measured * QUANTUM_W, 0) * weights
            energy += self._by_label(cells.node, cells.group, cells.level, joules)
            total += weighed(cells.node[measured], weights[measured], self._cluster.nodes)
        return energy, total

    @property
    def _switched_by_node(self) -> Iterator[tuple[int, Floats]]:
        """Code of a state, and how long each node is in it, (nodes,) [s]."""
        for code, node, begin, end in self._switched:
            lasts = seconds(self.time[begin], self.time[end])
            yield code, weighed(node, lasts, self._cluster.nodes)

    @cached_property
    def _watts_by_label(self) -> Floats:
        """Power of a core by what it is called, and group, (labels, groups) [W]."""
        powers = self._powers
        table = np.zeros((len(powers.labels), len(powers.cores)))
        table[powers.label.T, np.arange(len(powers.cores))] = powers.busy.T / powers.cores
        return table

    def _by_label(self, node: Ints, group: Ints, level: Ints, weight: Floats) -> Floats:
        """Return sums by what busy nodes are called, and node, (labels, nodes)."""
        labels, n = len(self._powers.labels), self._cluster.nodes
        if labels > 1:
            node = self._powers.label[group, level] * n + node
        return weighed(node, weight, labels * n).reshape(labels, n)

    @property
    def _shared_times(self) -> tuple[Times, Times]:
        shared = self._sharing
        if not len(shared.node):
            return shared.begin, shared.end
        return self.time[shared.begin], self.time[shared.end]

    @cached_property
    def _of_jobs(self) -> tuple[Ints, Ints]:
        """From and up to which place in ``time`` jobs run."""
        return self._place(self._result.start), self._place(self._result.end)

    def _place(self, times: Times) -> Ints:
        """Return the places of times in ``time``."""
        return np.searchsorted(self.time, times)

    @cached_property
    def _switched(self) -> list[tuple[int, Ints, Ints, Ints]]:
        """Code of a state; nodes, and from and up to which time they are in it."""
        states: NodeStates | None = self._result.node_states
        if states is None:
            return []
        begin, end = (
            self._place(np.clip(times, self.time[0], self.time[-1]))
            for times in (states.begin, states.end)
        )
        chosen = [(code, (states.state == code) & (begin < end)) for code in range(3)]
        return [(code, states.node[these], begin[these], end[these]) for code, these in chosen]

    @cached_property
    def _above(self) -> list[Above]:
        none = np.zeros(0, np.int64)
        node = begin = end = none
        for code, *periods in self._switched:
            if code == OFF:
                node, begin, end = periods
        return levels_above(self._cluster, node, begin, end, len(self.time))

    # --- Power over time -----------------------------------------------------------------------

    def _of_group(self, group: int) -> Iterator[tuple[str, Floats]]:
        """Return states, and the power of a group in them over time; whole numbers are counted."""
        powers, cores = self._powers, int(self._powers.cores[group])
        free = np.full(len(self.time) - 1, int((self._cluster.group_of == group).sum()) * cores)
        for level in range(int(powers.top[group]) + 1):
            used, measured, steps = self._busy(group, level)
            free -= used + measured
            watts = used / cores * powers.busy[group, level] + steps * QUANTUM_W
            yield powers.labels[powers.label[group, level]], watts
        for code, node, begin, end in self._switched:
            name, here = STATE_NAMES[code], self._cluster.group_of[node] == group
            number = self._count(begin[here], end[here])
            free -= number * cores
            if code == OFF and self._above:
                dark = self._above[0]
                below = dark.nodes_of(np.flatnonzero(self._cluster.group_of == group))
                number -= self._count(dark.begin, dark.end, below[dark.component])
            yield name, number * getattr(powers, name)[group]
        yield "idle", free / cores * powers.idle[group]

    def _busy(self, group: int, level: int) -> tuple[Ints, Ints, Ints]:
        """Return cores over time that are busy, and measured, and the steps of the measured."""
        parts, shared = self._parts, self._sharing
        here = (parts.group == group) & (parts.level == level)
        begin, end = (places[parts.job[here]] for places in self._of_jobs)
        busy, measured, steps = (
            self._count(begin, end, weight[here])
            for weight in (parts.cores, parts.measured, parts.steps)
        )
        here = (shared.level == level) & (self._cluster.group_of[shared.node] == group)
        busy += self._count(shared.begin[here], shared.end[here], shared.cores[here])
        return busy, measured, steps

    def _count(self, begin: Ints, end: Ints, weight: Ints | int = 1) -> Ints:
        """Return the sum over time of what holds from and up to places in ``time``."""
        changes = np.zeros(len(self.time), np.int64)
        np.add.at(changes, begin, weight)
        np.subtract.at(changes, end, weight)
        return np.cumsum(changes)[:-1]

    def _of_components(self, above: Above, nodes: Ints) -> Floats:
        """Return the power over time of what stands above nodes, as their share of it."""
        share = above.nodes_of(nodes) / above.size
        power = np.zeros(len(self.time) - 1)
        # components of which all nodes are meant are counted in whole numbers
        for part in np.unique(share[share > 0]).tolist():
            these = share == part
            off = these[above.component]
            on = int(these.sum()) - self._count(above.begin[off], above.end[off])
            power += on * (part * above.power_w)
        return power


@kept
def books(schedule: Schedule) -> Books:
    """Return the power of the machine in a schedule, and the energy charged to jobs.

    Raises
    ------
    HpcgymError : jobs are still to start.
    """
    if schedule.ended is not None:
        raise HpcgymError("energy is known of a whole schedule: some jobs are still to start")
    result, owner = schedule.runs.from_begin, schedule.job_of_runs
    # of a copy: in a reference cycle with its books, the schedule and its arrays are freed late
    return Books(replace(result), owner)
