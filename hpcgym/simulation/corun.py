"""Simulations in which jobs share nodes and speed each other up, or slow each other down."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.machine.pool import Cluster, NodeGroup
from hpcgym.machine.speedups.heatmap import Heatmap
from hpcgym.machine.speedups.learned import LearnedSpeedups
from hpcgym.names import CORE
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, Coschedule
from hpcgym.scheduler.asked_for import check_extract
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.scheduler.shared_nodes import (
    check_files,
    check_machine,
    check_shared,
    cores_of_part,
    pool_rules,
)
from hpcgym.simulation.driver import Run, new_simulation
from hpcgym.simulation.nodes import assign_nodes
from hpcgym.simulation.prepare import MachineUnits, Place, job_records
from hpcgym.simulation.restricted import longest_outside
from hpcgym.simulation.results import Columns, as_came
from hpcgym.workload.codes import codes_of

if TYPE_CHECKING:
    from hpcgym._engine import Simulation as Native
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


# --- Nodes that jobs share ------------------------------------------------------------------------

COMPACT, SPREAD, PART = range(3)  # placement of a job
_PARTNERS = ("best", "fill", "first", "used")  # by their codes: the order in which nodes are taken
_FINEST = 10**9  # ticks a second


class Files(NamedTuple):
    """The file system that all jobs share, where they slow each other down. C codes.

    The congestion is the sum of the running jobs' demands over the bandwidth. If it is above 1, all
    waiting for files takes so many times as long.
    """

    bandwidth: float  # [bytes/s]
    share: NDArray[np.float64]  # (C,) part of its time that a code, alone, waits for files
    demand: NDArray[np.int64]  # (n_jobs,) of each job while it does [bytes/s]


class SharedNodes(NamedTuple):
    """Nodes that jobs share, and how fast the jobs run there. C codes, n jobs."""

    speedup: NDArray[np.float64]  # (C, C) of a code beside another
    alone: NDArray[np.float64]  # (C,) of a code on parts of its nodes, with no job beside it
    n_nodes: int
    parts: int  # of a node
    partners: int  # code of the rule
    pairs_above: float | None  # good partners have a mean speedup above this; None: all are good
    weights: NDArray[np.float64]  # (3,) of PASS_FEATURES
    fills: bool  # whether all that fits starts, without a reservation
    behind: int  # how many jobs behind the one that came first may start before it
    logs_spells: bool  # whether it is noted which codes ran side by side, and how fast
    nodes: NDArray[np.int64]  # (n,) how many each job needs
    placement: NDArray[np.int64]  # (n,) COMPACT, SPREAD or PART
    code: NDArray[np.int64]  # (n,)
    cores: NDArray[np.int64]  # (n,) that each job has on each of its nodes, but for the last
    files: Files | None

    @property
    def units(self) -> NDArray[np.int64]:
        """How many parts of nodes each job takes, (n,)."""
        return self.nodes * np.where(self.placement == PART, 1, self.parts)

    @property
    def told(self) -> dict[str, NDArray[Any]]:
        """The same as a model takes it; the scheduler believes in the true speedups."""
        selects = self.pairs_above is not None
        rules = self.partners, self.fills, selects, self.logs_spells, self.behind
        arguments: dict[str, NDArray[Any]] = {
            "machine": np.array([self.n_nodes, self.parts, *rules], np.int64),
            **{name: getattr(self, name) for name in ("nodes", "placement", "code", "weights")},
            **{name: np.ascontiguousarray(getattr(self, name)) for name in ("speedup", "alone")},
            **belief_in(self.speedup, self.alone, self.pairs_above),
            "bandwidth": np.zeros(1),
        }
        if self.files is not None:
            arguments["bandwidth"] = np.array([self.files.bandwidth], np.float64)
            arguments |= {"io_share": self.files.share, "io_demand": self.files.demand}
        return arguments

    def part(self, first: int, stop: int) -> SharedNodes:
        """Return the same for some of the jobs."""
        names = ("nodes", "placement", "code", "cores")
        return self._replace(**{name: getattr(self, name)[first:stop] for name in names})


def belief_in(
    believed: NDArray[np.float64], alone: NDArray[np.float64], pairs_above: float | None
) -> dict[str, NDArray[Any]]:
    """Return what a scheduler derives from the speedups that it believes in, (C, C) and (C,)."""
    mean = (believed + believed.T) / 2
    rank = [
        # the place of each code beside a code, and of an idle node; equal speedups have the same
        len(row) - np.searchsorted(np.sort(row), row, "right")
        for row in np.column_stack([believed, alone])
    ]
    partner = np.ones_like(mean) if pairs_above is None else mean > pairs_above
    return {
        "believed": np.ascontiguousarray(believed, np.float64),
        "believed_alone": np.ascontiguousarray(alone, np.float64),
        "rank": np.array(rank, np.int64),
        "good": (mean > 1).astype(np.int64),  # what makes a job popular
        "partner": partner.astype(np.int64),
        "greatest": np.array([alone.max(initial=1.0)]),
    }


def shared_nodes(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    speedups: Heatmap,
    cores: int,
    sockets: int,
) -> SharedNodes:
    """Return nodes of so many ``cores`` and ``sockets``, and how fast jobs run beside each other.

    Raises
    ------
    HpcgymError : sockets with fewer cores than parts.
    WorkloadError : a job whose code has no speedups.
    """
    code = codes_of(workload, speedups.codes)
    nodes, placement, each = _placed(workload, scheduler, cluster.nodes, cores, sockets)
    weights, files = np.zeros(len(PASS_FEATURES)), _files_of(cluster, speedups, workload, code)
    if scheduler.order.looks_at_pass:
        given = scheduler.order.weights
        weights[:] = [given.get(name, 0.0) for name in PASS_FEATURES]
    pairs = scheduler.pair_estimate
    return SharedNodes(
        speedups.filled,
        speedups.alone,
        cluster.nodes,
        max(scheduler.parts, 1),
        _PARTNERS.index(scheduler.partners),
        scheduler.pairs_above,
        weights,
        fills=scheduler.reserve.kind == "fill",
        behind=scheduler.reserve.behind,
        # spells are for what learns, which congestion is refused with
        logs_spells=files is None and not (isinstance(pairs, str) and pairs == "known"),
        nodes=nodes,
        placement=placement,
        code=code,
        cores=each,
        files=files,
    )


def _placed(
    workload: Workload, scheduler: Scheduler, n_nodes: int, cores: int, sockets: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return how many nodes each job needs, its placement there, and its cores on each.

    A job that has too many processes to be spread over the machine is compact.
    """
    processors = workload.requested_processors
    placement, each = np.full((2, len(workload)), [[COMPACT], [cores]])
    if scheduler.parts:
        part = cores_of_part(scheduler, cores, sockets)
        spread = -(-processors // part) <= n_nodes
        placement[spread] = SPREAD if scheduler.parts == 1 else PART
        each[spread] = part
    return -(-processors // each), placement, each


def ticks_a_second(
    workload: Workload,
    speedups: Heatmap,
    believed: Any = "known",
    congested: float = 1.0,
    more: float = 0.0,
) -> int:
    """Return how many ticks a second has: a thousand million, or fewer in powers of ten.

    So few that the simulator's clock holds all jobs one after the other, each as slow as can be, in
    truth or as the scheduler's ``pair_estimate`` has it, and by ``congested`` times its rate, and
    ``more`` seconds in which none runs.

    Raises
    ------
    WorkloadError : the clock does not hold them in seconds.
    """
    slowest = min(1.0, *_slowest(speedups))
    if isinstance(believed, Heatmap):
        slowest = min(slowest, *_slowest(believed))
    elif not isinstance(believed, str):  # what it learns is never below what it has seen
        slowest = min(slowest, float(believed.matrix().min()))
    slowest *= congested
    total = 2.0 * float(workload.requested_time.sum(dtype=np.float64)) / slowest
    total += float(workload.submit_time.max(initial=0)) + 1 + more
    ticks = _FINEST
    while ticks > 1 and total * ticks >= FOREVER / 2:
        ticks //= 10
    if total * ticks >= FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: at a speedup of {slowest:g} the jobs take {total:.3g} s one after"
            " the other, more than the simulator's clock holds"
        )
    return ticks


def _slowest(speedups: Heatmap) -> tuple[float, float]:
    """Return the least speedup of a pair, and of a code alone."""
    return float(speedups.filled.min()), float(speedups.alone.min())


def _files_of(
    cluster: Cluster, speedups: Heatmap, workload: Workload, code: NDArray[np.int64]
) -> Files | None:
    """Return the file system; None where the machine has no bandwidth.

    ``code``: (n_jobs,) of each job, its place in the speedups.
    """
    if cluster.io_bytes_s is None or speedups.io_share is None:
        return None
    demand = workload.requested_processors * speedups.io_bytes_s[code]
    return Files(cluster.io_bytes_s, np.array(speedups.io_share, np.float64), demand)


def slowest_in_congestion(cluster: Cluster, speedups: Heatmap, files: Files | None) -> float:
    """Return a rate below which no congestion slows down a job that would run at rate 1.

    As if all jobs ran at once, or as many of the most demanding ones as the machine has room for.
    """
    if files is None:
        return 1.0
    asked = min(
        float(files.demand.sum(dtype=np.float64)),
        float(cluster.processors * speedups.io_bytes_s.max()),
    )
    congestion = max(1.0, asked / float(files.bandwidth))
    return 1.0 / (1.0 + float(files.share.max()) * (congestion - 1.0))


# --- What a scheduler learns of pairs of jobs while they run --------------------------------------

#: The part of its run that a job must have spent beside one code for its end to tell of the pair.
ENOUGH = 0.9


class PairLearning:
    """Tells the simulator what the scheduler takes for the speedups of pairs.

    Jobs tell when they have ended: the mean rate over their whole run, the compact run time over
    that which it took, is that of the pair if they ran beside jobs of one code for at least nine
    tenths of it. Nothing else is seen of the true speedups.
    """

    def __init__(self, pairs: Any, speedups: Heatmap, pairs_above: float | None):
        self.pairs = pairs
        self._codes = speedups.codes
        self._above = pairs_above
        self._told = 0  # spells that have been looked at
        self._ended = 0
        self._code = self._run = np.zeros(0, np.int64)  # of each job; compact run times [ticks]
        self._beside: dict[int, dict[int, int]] = {}  # job -> code -> ticks

    @classmethod
    def of(cls, scheduler: Scheduler, speedups: Heatmap) -> PairLearning | None:
        """Return what goes with the scheduler's ``pair_estimate``; None if it knows the truth."""
        pairs = scheduler.pair_estimate
        if isinstance(pairs, str):
            if pairs == "known":
                return None
            pairs = LearnedSpeedups(codes=speedups.codes)
        missing = [code for code in speedups.codes if code not in pairs.codes]
        if missing:
            raise HpcgymError(f"pair_estimate knows no code {missing[0]!r}")
        return cls(copy.deepcopy(pairs), speedups, scheduler.pairs_above)

    @property
    def learns(self) -> bool:
        """Whether ends are learned from."""
        return hasattr(self.pairs, "learn")

    def begin(self, code: NDArray[np.int64], run: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return what is believed of the speedups when a simulation begins, for a model.

        ``code`` (n_jobs,) of its jobs, and ``run`` (n_jobs,) [ticks] how long they run compactly.
        """
        self._code, self._run = code, run
        return self._belief()

    def _belief(self) -> dict[str, NDArray[Any]]:
        """Return what is believed now, as the engine takes it."""
        codes = list(self._codes)
        if self.learns:
            places = [self.pairs.codes.index(code) for code in codes]
            matrix = self.pairs.matrix()[np.ix_(places, places)]
            alone = matrix.max(axis=1)  # as of heatmaps that do not tell
        else:
            known = self.pairs.take(codes)
            matrix, alone = known.filled, known.alone
        return belief_in(matrix, alone, self._above)

    def learn(self, native: Native) -> None:
        """Learn from the jobs that have ended since the last time, after a pass."""
        ended = native.ended(self._ended).tolist()
        if not ended:
            return
        spells = native.spells(self._told)
        self._told += len(spells["job"])
        self._ended += len(ended)
        self._note(*(spells[name].tolist() for name in ("job", "beside", "begin", "end")))
        learned = [self._learn_from(job, native.time - native.start(job)) for job in ended]
        if any(learned):
            native.believe(self._belief())

    def _note(self, *spells: list[int]) -> None:
        """Note how long jobs have run beside codes: jobs, codes, begins and ends of spells."""
        for job, beside, begin, end in zip(*spells, strict=True):
            of_job = self._beside.setdefault(job, {})
            of_job[beside] = of_job.get(beside, 0) + end - begin

    def _learn_from(self, job: int, took: int) -> bool:
        """Learn from the end of a job; return whether anything was learned."""
        spells = self._beside.pop(job, {})
        total = sum(spells.values())
        if not total:
            return False
        beside = max(spells, key=lambda code: (spells[code], -code))
        if beside < 0 or spells[beside] < ENOUGH * total:
            return False
        rate = float(self._run[job]) / float(took)
        self.pairs.learn(self._codes[self._code[job]], self._codes[beside], rate)
        return True


# --- Simulations in which jobs share nodes and speed each other up --------------------------------


def on_shared_nodes(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, speedups: Heatmap
) -> Run:
    """Return a simulation in which jobs share nodes; see :func:`hpcgym.simulate`.

    Raises
    ------
    HpcgymError : rules that do not go with shared nodes, or a machine whose nodes are not alike.
    WorkloadError : a job that cannot be simulated, or whose code has no speedups.
    """
    check_shared(scheduler)
    check_files(cluster, speedups, scheduler)
    check_extract(workload, "shared nodes")
    cores, sockets = check_machine(cluster)
    _check_resources(workload)
    machine = shared_nodes(workload, scheduler, cluster, speedups, cores, sockets)
    congested = slowest_in_congestion(cluster, speedups, machine.files)
    more = longest_outside(workload, scheduler)
    ticks = ticks_a_second(workload, speedups, scheduler.pair_estimate, congested, more)
    units = MachineUnits(cluster.nodes * machine.parts, machine.units, ticks)
    learning, in_order = PairLearning.of(scheduler, speedups), scheduler.reserve.conservative
    args: dict[str, Any] = {}
    if not in_order:
        args["sharing"] = machine.told
        if learning is not None:
            args["sharing"] |= learning.begin(machine.code, job_records(workload)["run"] * ticks)
    place = Place("shared nodes", cluster, units, args, fills=scheduler.reserve.kind == "fill")
    simulation = new_simulation(workload, pool_rules(scheduler), place)
    if learning is not None and learning.learns and not in_order:
        simulation.after_pass = learning.learn

    def result(schedule: Columns, attributes: dict[str, Any]) -> Result:
        if in_order:
            schedule = {**schedule, **_placed_in_order(schedule, machine, scheduler)}
        pairs = None if learning is None else learning.pairs
        given = workload, scheduler, cluster, speedups
        shared = shared_result(*given, schedule, machine, ticks, pairs)
        return as_came(replace(shared, **attributes), schedule["submit"] // ticks)

    return Run(workload, simulation, result)


# --- Checks ---------------------------------------------------------------------------------------


def _check_resources(workload: Workload) -> None:
    """Raise a WorkloadError if jobs need more than cores."""
    for name, demand in workload.per_unit.items():
        if name != CORE and demand.any():
            job = int(np.flatnonzero(demand)[0])
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} needs {name}: where jobs share nodes they"
                " have cores and nothing else"
            )


# --- The arrays -----------------------------------------------------------------------------------


def _placed_in_order(
    schedule: Columns, machine: SharedNodes, scheduler: Scheduler
) -> dict[str, NDArray[np.int64]]:
    """Return the ends and the nodes of compact jobs whose starts are known."""
    start, end = schedule["start"], schedule["start"] + schedule["run"]
    # by the places of times among all: in ticks they may be beyond the clock of the engine
    known = np.unique([start, end])
    begin, over = np.searchsorted(known, start), np.searchsorted(known, end)
    run = over - begin
    times = {"submit": np.zeros_like(begin), "run": run, "requested": run}
    placed = {**schedule, **times, "start": np.where(start >= 0, begin, -1)}
    whole = Cluster(groups=(NodeGroup("node", machine.n_nodes, {CORE: 1}),))  # each taken as one
    ones = np.ones_like(machine.nodes)
    needs = np.column_stack([machine.nodes, ones, ones])
    nodes = assign_nodes(placed, needs, whole, pool_rules(scheduler)).node
    return {"end": end, "cell_node": nodes}


# --- The result -----------------------------------------------------------------------------------


def shared_result(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    speedups: Heatmap,
    schedule: Columns,
    machine: SharedNodes,
    ticks: int,
    pairs: Any = None,
) -> Result:
    """Return the schedule, with times in seconds, float64.

    ``schedule`` is the simulator's, in ticks; ``pairs``: what it has learned of pairs of jobs.
    """
    run = Coschedule(
        ticks=ticks,
        start_ticks=schedule["start"],
        end_ticks=schedule["end"],
        promised_ticks=schedule["promised"],
        compact_s=schedule["run"] // ticks,
        shape=machine.placement.astype(np.int8),
        code=machine.code,
        parts=machine.parts,
        speedups=speedups,
        pairs=pairs,
    )
    result = Result.of(workload, cluster, scheduler, schedule)
    reserved = schedule["promised"]
    return replace(
        result,
        start=_seconds(run.start_ticks, ticks),
        run_time=_seconds(run.end_ticks - run.start_ticks, ticks),
        predicted_run_time=schedule["predicted"] // ticks,
        reserved_start=np.where(reserved < 0, -1.0, _seconds(reserved, ticks)),
        allocation=_allocation(workload, machine, schedule["cell_node"]),
        coschedule=run,
    )


def _seconds(times: NDArray[np.int64], ticks: int) -> Any:
    """Return times in ticks as seconds, float64, read-only."""
    seconds = times / ticks
    seconds.flags.writeable = False
    return seconds


def _allocation(workload: Workload, machine: SharedNodes, cells: NDArray[np.int64]) -> Allocation:
    """Return the nodes of jobs: on each as many processes as it takes, the rest on the last."""
    nodes, each = machine.nodes, machine.cores
    first = np.concatenate([[0], np.cumsum(nodes)]).astype(np.int64)
    units = np.repeat(each, nodes)
    units[first[1:] - 1] = workload.requested_processors - (nodes - 1) * each
    return Allocation(first, cells.astype(np.int32), units.astype(np.int32))
