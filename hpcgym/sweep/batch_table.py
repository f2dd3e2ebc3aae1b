"""The arrays behind a batch: the jobs that all simulations share, and a row for each worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Features
from hpcgym._engine import Simulation as Native
from hpcgym.cluster.pool import Cluster
from hpcgym.engine import holding, state
from hpcgym.engine.answers import online
from hpcgym.engine.machines.kinds import POOL
from hpcgym.engine.many import search
from hpcgym.engine.rows import empty_rows
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.estimates.by_name import learns, predicted_run_times
from hpcgym.scheduler.estimates.learning import (
    asks_for_predictions,
    average_in_kernel,
    learner_rows,
    learning_rules,
    make_estimators,
    make_learner,
)
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.mixed import Weighed, weighed
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.usage import check_fair_share, counts_usage
from hpcgym.simulation.driver import Simulation
from hpcgym.simulation.native import simulation_of
from hpcgym.simulation.nodes import as_on_pool, needs_on
from hpcgym.simulation.prepare import check_jobs, engine_rules, job_records, numbered, orders
from hpcgym.simulation.restricted import check_restricted, profile_for
from hpcgym.simulation.warm_start import beginning_of, check_running, taken_over
from hpcgym.simulation.windows import closings, holders_of
from hpcgym.workload.model import Workload

_JOINED = ("jobs", "users", "keys", "scores", "static", "serial", "predicted", "ordered_by")


def table_of(
    parts: list[Workload],
    sizes: NDArray[np.int64],
    features: tuple[str, ...],
    rules: Scheduler,
    machine: Cluster,
    on_nodes: bool,
) -> tuple[search.Table, state.State, online.Learner]:
    """Return what all simulations share, and one before it begins, with room for any slice."""
    pieces = [_piece(part, features, rules, machine.processors) for part in parts]
    joined = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _JOINED}
    last = average_in_kernel(rules)
    known = None if learns(rules.estimate) else joined["predicted"]
    engine = engine_rules(
        rules, state.SCORED, pieces[0].secondary, known, joined["jobs"]["run"], last
    )
    longest, n_users = int(sizes.max()), max(piece.n_users for piece in pieces)
    counts = counts_usage(rules, features)
    check_fair_share(rules.fair_share, counts)
    engine |= {
        "asks": state.NOBODY,
        **learning_rules(rules, asks_for_predictions(rules), on_nodes or rules.plans, counts),
    }
    if rules.moves_submissions:  # room for the keys of orders that waiting does not change
        engine["primary"] = state.KEYED
    empty = state.make_state(engine, None, longest, machine.processors, n_users, last)
    if rules.plans:
        for part in parts:
            check_restricted(part, rules, empty.sim, on_nodes)
        empty = empty._replace(profile=profile_for(rules, empty.profile))
    processors = joined["jobs"]["processors"]
    estimators = make_estimators(rules, joined["users"], processors, processors, machine.processors)
    estimators.looks[0] = 1
    keys, ends = joined["keys"], np.cumsum(sizes)
    table = search.Table(
        jobs=joined["jobs"],
        slices=np.stack([ends - sizes, ends], axis=1),
        users=joined["users"],
        keys=np.concatenate([np.zeros(longest, np.int64), keys]) if len(keys) else keys,
        second_scores=joined["scores"],
        static=joined["static"],
        waiting=pieces[0].mixed.waiting,
        places=pieces[0].mixed.places,
        formulas=pieces[0].mixed.formulas,
        serial=joined["serial"],
        predicted=joined["predicted"],
        ordered_by=joined["ordered_by"],
        sim=empty.sim.reshape(1),
        blocks=empty.blocks,
        **estimators._asdict(),
    )
    return table, empty, make_learner(rules, longest, n_users, estimators.classes)


def simulations_of(
    parts: list[Workload],
    rules: Scheduler,
    machine: Cluster,
    table: search.Table,
    empty: state.State,
) -> list[Native]:
    """Return the native simulation of each slice, before its first event; weights say its order."""
    found = []
    for part, (start, stop) in zip(parts, table.slices.tolist(), strict=True):
        n, mine = stop - start, slice(start, stop)
        users, last = empty.history.shape
        own = state.make_state(
            state.rules_of(empty.sim), table.predicted[mine], n, machine.processors, users, last
        )
        keys = table.keys[len(table.keys) - len(table.jobs) :][mine]
        scores = np.zeros(2 * n if len(table.second_scores) else 0, state.SCORES)
        scores[n:] = table.second_scores[mine]
        both = np.concatenate([np.zeros_like(keys), keys])
        arrays = state.Prepared(table.jobs[mine], both, scores, table.users[mine], *own)
        if own.sim.holds:
            holding.hold_back(arrays.jobs, table.ordered_by[mine], table.hold, own.line)
        beginning = beginning_of(taken_over(part), rules, machine, arrays)
        if beginning is not None:
            check_running(arrays, beginning)
        rest = table.serial[mine], table.ordered_by[mine]
        features = Features(table.static[mine], table.waiting, table.places, *rest)
        found.append(simulation_of(Simulation(POOL, arrays, beginning=beginning), features))
    return found


class NodeRows(NamedTuple):
    """Who may be on nodes: the jobs of each slice, and behind them who holds nodes in windows."""

    needs: NDArray[np.int64]  # (n_rows, 1 + R) what they ask of nodes
    requested: NDArray[np.int64]  # (n_rows,) [s]
    holders: int  # of each slice


def node_rows(parts: list[Workload], rules: Scheduler, machine: Cluster) -> NodeRows | None:
    """Return who may be on the nodes of a machine; None where it is a pool of processors.

    So it is where jobs ask for single cores.

    Raises
    ------
    HpcgymError : rules that batches on nodes do not know, or under quotas and windows slices of
        which some are on nodes and some are not: simulated alone they would be on a pool.
    """
    if not machine.groups:
        return None
    asked = [needs_on(part, machine) for part in parts]
    pools = [as_on_pool(needs, rules) for needs in asked]
    if all(pools):
        return None
    check_scheduler(rules, "nodes", "batches on nodes")
    if rules.plans and any(pools):
        raise HpcgymError(
            f"slices: {parts[pools.index(True)].name} asks for single cores alone, and others do"
            " not: where reservations are made anew put such slices into batches of their own"
        )
    rows, requested, holders = [], [], np.zeros((0, asked[0].shape[1]), np.int64)
    for part, needs in zip(parts, asked, strict=True):
        if rules.windows:
            holders = holders_of(closings(part, rules, machine), machine)
        rows += [needs, holders]
        requested += [part.requested_time, np.zeros(len(holders), np.int64)]
    return NodeRows(np.concatenate(rows), np.concatenate(requested), len(holders))


@dataclass(frozen=True)
class _Piece:
    """What one slice adds to what all simulations share, an entry for each of its jobs."""

    jobs: NDArray[np.void]
    users: NDArray[np.int64]
    n_users: int
    secondary: int
    keys: NDArray[np.int64]
    scores: NDArray[np.void]
    mixed: Weighed
    predicted: NDArray[np.int64]
    ordered_by: NDArray[np.int64]

    @property
    def static(self) -> NDArray[np.float64]:
        return self.mixed.static

    @property
    def serial(self) -> NDArray[np.float64]:
        return self.mixed.serial


def _piece(part: Workload, features: tuple[str, ...], rules: Scheduler, processors: int) -> _Piece:
    """Return the arrays of one slice."""
    check_jobs(part, processors)
    n, jobs = len(part), job_records(part)
    predicted = predicted_run_times(rules.estimate, jobs["run"], part)
    ordered_by = predicted_run_times(rules.policy_estimate, jobs["run"], part, "policy_estimate")
    ordered_by = jobs["requested"] if ordered_by is None else ordered_by
    learning = average_in_kernel(rules) or asks_for_predictions(rules)
    users, n_users = numbered(part.user_id) if learning else (_NONE, 0)
    _, secondary, keys, scores = orders(part, rules, shares=True)
    return _Piece(
        jobs=jobs,
        users=users,
        n_users=n_users,
        secondary=secondary,
        keys=keys[n:] if secondary == state.KEYED else keys[:0],
        scores=scores[n:] if secondary >= state.SCORED else scores[:0],
        mixed=weighed(JobColumns(part, ordered_by), features, n),
        predicted=jobs["requested"] if predicted is None else predicted,
        ordered_by=ordered_by,
    )


_NONE = np.zeros(0, np.int64)


def make_workers(
    empty: state.State, learner: online.Learner, longest: int, number: int
) -> search.Workers:
    """Return arrays for that many workers, each with rows like those of an empty machine."""
    scores = np.zeros((number, 2 * longest), state.SCORES)
    learned = learner_rows(learner, number)
    return search.Workers(**empty_rows(empty, number, empty._fields), **learned, scores=scores)
