"""``simulate(..., engine="reference")``: rules of a scheduler as :mod:`hpcgym.reference` has them.

The reference schedules by itself; here its rules are read from a workload, a scheduler and a
machine, and a result is made of what has become of its jobs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.machine.constraints import constraint_of
from hpcgym.machine.failures import Failures
from hpcgym.machine.pool import Cluster
from hpcgym.names import NAMED, PARTITION
from hpcgym.reference.failures import FailingSimulation
from hpcgym.reference.jobs import (
    BY_TIME,
    IN_ALL,
    OF_CLUSTER,
    USED,
    Job,
    Spared,
    jobs_of,
    node_jobs_of,
)
from hpcgym.reference.limits import LimitedSimulation
from hpcgym.reference.nodes import NodeSimulation
from hpcgym.reference.orders import NAMES, POLICIES, ByExpression, ByNetwork
from hpcgym.reference.own_nodes import Budget, Cap, limited_jobs_of, machine_of
from hpcgym.reference.pool import PoolSimulation
from hpcgym.reference.power import SwitchingSimulation
from hpcgym.reference.state import STATE
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import STATE_NAMES, Allocation, LostRuns, down
from hpcgym.scheduler.estimates.by_name import learns
from hpcgym.scheduler.limits import Limit, check_limits
from hpcgym.scheduler.policies.expressions import OF_AMOUNTS
from hpcgym.scheduler.policies.features import WEIGHTED_FEATURES
from hpcgym.scheduler.policies.index import IndexPolicy
from hpcgym.scheduler.restrictions import Quota, Window
from hpcgym.scheduler.rules import PREDICTING, Scheduler
from hpcgym.scheduler.whole_nodes import node_power
from hpcgym.simulation.driver import Run
from hpcgym.simulation.limited import own_place
from hpcgym.simulation.restricted import nodes_in
from hpcgym.simulation.results import as_came, check_ended
from hpcgym.workload.amounts import USED as OF_USE
from hpcgym.workload.amounts import amount_called, asked_of
from hpcgym.workload.checks import needs_on
from hpcgym.workload.constraints import constraints_of
from hpcgym.workload.followers import followed, think_times
from hpcgym.workload.io.swf_header import names_of, partitions_of
from hpcgym.workload.model import Workload

#: Estimates of run times that it has, besides lists and predictors in Python.
_ESTIMATES = re.compile(r"requested|double-requested|clairvoyant|ave\d+|user-ratio|typical-ratio")


def finish(
    run: Run,
    scheduler: Scheduler,
    cluster: Cluster,
    failures: Failures | None = None,
    limits: Limit | Iterable[Limit] | None = None,
) -> Result:
    """Simulate to the end by the reference, instead of the engine.

    ``run``: as the engine would; ``failures``: of nodes; ``limits``: of :func:`hpcgym.simulate`.
    """
    workload = run.workload
    if run.simulation.place.name == "whole nodes":
        return _under_limits(run, scheduler, cluster, check_limits(limits or ()))
    rules = _rules_of(workload, scheduler, cluster)
    if cluster.groups:
        parts = _nodes_of_partitions(workload, cluster)
        allowed = _allowed(workload, cluster, parts)
        jobs = node_jobs_of(workload, cluster.node_resources, allowed, parts)
        capped = [part.name for part in cluster.partitions if part.max_cores_per_node is not None]
        for job, name in zip(jobs, partitions_of(workload), strict=True):
            job.demand += tuple(job.demand[0] * (name == part) for part in capped)
        counted = [*cluster.node_resources, *(PARTITION + name for name in capped)]
        capacity = cluster.capacity[:, [*map(cluster.resources.index, counted)]].tolist()
        rules["allocation"] = scheduler.allocation
        made: PoolSimulation = (
            NodeSimulation(jobs, capacity, **rules)
            if failures is None
            else FailingSimulation(jobs, capacity, _table(failures), **rules)
        )
    elif cluster.shutdown_after_s is not None:
        times = (cluster.shutdown_after_s, cluster.shutdown_time_s, cluster.boot_time_s)
        made = SwitchingSimulation(jobs_of(workload), cluster.processors, *times, **rules)
    else:
        made = PoolSimulation(jobs_of(workload), cluster.processors, **rules)
    result = _result_of(workload, scheduler, cluster, made.run())
    if failures is not None:
        result = replace(result, node_states=down(failures), lost=_lost(made.lost, failures))
    elif scheduler.preemption is not None:
        result = replace(result, **_stopped(made))
    elif isinstance(made, SwitchingSimulation):
        result = replace(result, idle_seconds=made.seconds())
    return as_came(result, _column([job.submit for job in made.jobs]))


def _under_limits(
    run: Run, scheduler: Scheduler, cluster: Cluster, limits: tuple[Limit, ...]
) -> Result:
    """Return the result where each job has nodes of its own."""
    workload = run.workload
    rules = _rules_of(workload, scheduler, cluster)
    del rules["passes"], rules["windows"], rules["spared"], rules["preemption"]
    made = limited_by_reference(workload, scheduler, cluster, limits, **rules)
    jobs = made.run()
    schedule = _schedule_of(jobs)
    schedule["predicted_at_highest"] = schedule["predicted"]
    schedule |= {"level": _column([job.level for job in jobs])}
    schedule |= {"submit": _column([job.submit for job in jobs])}
    schedule["cell_node"] = _column([n for job in jobs for n in job.cells])
    codes = {"off": "off", "shutting": "switching_off", "booting": "switching_on"}
    rows = [(n, STATE_NAMES.index(codes[state]), *when) for n, state, *when in made.intervals]
    for k, name in enumerate(("node", "state", "begin", "end")):
        schedule[f"log_{name}"] = _column([row[k] for row in rows])
    # all nodes are on, or have been noted
    schedule["node_state"] = _column([len(STATE_NAMES)] * cluster.nodes)
    schedule["node_since"] = _column([0] * cluster.nodes)
    attributes = {}
    if learns(scheduler.policy_estimate):
        attributes["policy_run_time"] = _column([job.policy_time for job in jobs])
    return run.result(schedule, attributes)


def limited_by_reference(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    limits: tuple[Limit, ...],
    simulator: type[LimitedSimulation] = LimitedSimulation,
    switches: bool = False,
    **rules: Any,
) -> LimitedSimulation:
    """Return a simulation by the reference where jobs have nodes of their own, at its beginning.

    ``simulator``: the class, or what makes one; ``switches``: nodes may be switched off, whatever
    limits say; ``rules``: as the reference takes them, but for how limits are kept.
    """
    power = node_power(cluster, needed=False)
    switching = replace(cluster, shutdown_after_s=0) if switches else cluster
    needs = needs_on(workload, cluster)
    limited, _ = own_place(workload, scheduler, switching, limits, needs)
    machine = machine_of(cluster, power, limited.switches, limited.constants["lowest"])
    jobs = limited_jobs_of(workload, power, limited.widths.tolist(), machine.cores)
    caps = _records(Cap, limited.caps, "start end announced mw kills off")
    budgets = _records(Budget, limited.budgets, "start end mj period shuts binds free_mw")
    in_a_row = scheduler.allocation == "contiguous"
    return simulator(jobs, machine, caps, budgets, scheduler.power, in_a_row, **rules)


def _records(made: Any, records: NDArray[np.void], names: str) -> list[Any]:
    """Return the engine's caps, or budgets, as those of the reference."""
    return [made(**{name: int(record[name]) for name in names.split()}) for record in records]


def check_known(workload: Workload, scheduler: Scheduler, **given: Any) -> None:
    """Raise an HpcgymError for rules and arguments that the reference does not have.

    ``given``: arguments of :func:`hpcgym.simulate` that it does not have; None: not given.
    """
    lacks = {
        **{name: value is not None for name, value in given.items()},
        "an extract of a log, which begins with jobs that run": workload.initial is not None,
        "a dispatcher": scheduler.dispatcher is not None,
        "a policy that is a function": scheduler.order.function is not None,
        "orders by what users have used": any(scheduler.usage_orders),
        f"allocation={scheduler.allocation!r}": scheduler.allocation.startswith("random"),
    }
    for rule, order in zip(("policy", "backfill_order"), scheduler.orders, strict=True):
        lacks[f"{rule}={scheduler.describe()[rule]!r}"] = not _is_order(order)
    for rule in PREDICTING:
        given = getattr(scheduler, rule)
        lacks[f"{rule}={given!r}"] = isinstance(given, str) and not _ESTIMATES.fullmatch(given)
    for what, asked in lacks.items():
        if asked:
            raise lacking(what)


def lacking(what: str) -> HpcgymError:
    """Return the error of a rule that the reference does not have."""
    return HpcgymError(
        f'engine="reference" does not have {what}: it knows pools and nodes under named policies'
        ", weights of six features and expressions; leave engine out"
    )


def _is_order(order: IndexPolicy | None) -> bool:
    """Return whether the reference has an order: a name, weights of six features, an expression."""
    if order is None or _is_named(order):
        return True
    if order.expression is not None:
        known = ("", *NAMES, *STATE, *OF_AMOUNTS)
        return all(step.name in known for step in order.expression.steps)
    return order.is_weighted_sum and order.weights.keys() <= {*WEIGHTED_FEATURES}


def _is_named(order: IndexPolicy) -> bool:
    """Return whether an order has a name that the reference knows."""
    return isinstance(order.given, str) and order.given in POLICIES


def _order(order: IndexPolicy | None, given: Any, workload: Workload) -> Any:
    """Return an order as the reference takes it."""
    if order is None:
        return "sjbf" if given == "sjbf" else "fcfs"
    if _is_named(order):
        return order.given
    if order.expression is None:
        return tuple(order.weights.get(name, 0.0) for name in WEIGHTED_FEATURES)
    if order.expression.reversed is not None:
        return "lcfs" if order.expression.reversed else "fcfs"
    called = {column: names_of(workload, column) for column in NAMED.values()}
    if (layer := order.expression.layer) is not None:
        inputs = [(each.text, each.center, each.scale) for each in layer.inputs]
        hidden, bias, output, skip = (
            of.tolist() for of in (layer.hidden, layer.bias, layer.output, layer.skip)
        )
        return ByNetwork(inputs, hidden, bias, output, skip, workload, called)
    return ByExpression(order.expression.text, workload, called)


def _rules_of(workload: Workload, scheduler: Scheduler, cluster: Cluster) -> dict[str, Any]:
    """Return the rules as :class:`hpcgym.reference.PoolSimulation` takes them."""
    hold = scheduler.hold
    same = ("backfill", "correction", "passes", "threshold")
    orders = zip(("policy", "backfill_order"), scheduler.orders, strict=True)
    estimates = {rule: getattr(scheduler, rule) for rule in PREDICTING}
    quotas, maintenance = scheduler.quota, scheduler.maintenance
    if cluster.groups:  # a printed one may close no node of the machine
        maintenance = tuple(window for window in maintenance if len(nodes_in(window, cluster)))
    return {
        **{rule: getattr(scheduler, rule) for rule in same},
        **{rule: _order(order, getattr(scheduler, rule), workload) for rule, order in orders},
        **{
            k: estimate.tolist() if isinstance(estimate, np.ndarray) else estimate
            for k, estimate in estimates.items()
        },
        "relax": None if scheduler.relax is None else math.ceil(scheduler.relax),
        "hold": None if hold is None else {**hold.table(), "erode_s": hold.erode_s},
        "quotas": [
            (
                _keys(workload, quota),
                asked_of(workload, [amount_called(name).of or name])[:, 0].tolist(),
                most,
                *_kind_of(quota, name),
            )
            for quota in quotas
            for name, most in quota.running.items()
        ],
        "places": [
            (_keys(workload, quota), most) for quota in quotas for most in quota.submitted.values()
        ],
        "windows": _windows(workload, maintenance, cluster),
        "spared": [
            frozenset(np.flatnonzero(window.may_use(workload)).tolist()) if window.open_to else None
            for window in maintenance
        ],
        "follows": _follows(workload, scheduler.dependencies),
        "preemption": _preemption(workload, scheduler),
    }


def _kind_of(quota: Quota, name: str) -> list[Any]:
    """Return what is said of a bound of a quota beside what is bound."""
    amount = amount_called(name)
    if amount.budget:
        return [USED if amount.budget == OF_USE else IN_ALL, quota.half_life_s]
    return [BY_TIME] * bool(amount.of) + [OF_CLUSTER] * quota.of_cluster(name)


def _table(failures: Failures) -> list[tuple[int, int, int]]:
    """Return node, time and repair of each failure."""
    columns = (failures.node, failures.time, failures.repaired)
    return list(zip(*(column.tolist() for column in columns), strict=True))


#: Nodes that each job may have; None: all.
_Sets = list[frozenset[int] | None]


def _nodes_of_partitions(workload: Workload, cluster: Cluster) -> _Sets:
    """Return the nodes of each job's partition; None: all."""
    every = frozenset(range(cluster.nodes))
    parts = {part.name: frozenset(part.nodes) for part in cluster.partitions}
    bound = {name: nodes for name, nodes in parts.items() if nodes != every}
    return [bound.get(name) for name in partitions_of(workload)]


def _allowed(workload: Workload, cluster: Cluster, parts: _Sets) -> _Sets:
    """Return the nodes that each job may have: those of its partition that meet its constraint."""
    features = [{*cluster.groups[place].features} for place in cluster.group_of.tolist()]
    if not any(features):
        return parts
    asked = constraints_of(workload)[0].tolist()
    met: dict[str, frozenset[int]] = {}
    for text in filter(None, set(asked)):
        constraint = constraint_of(text)
        met[text] = frozenset(n for n, own in enumerate(features) if constraint.met_by(own))
    return [
        nodes if not text else met[text] if nodes is None else nodes & met[text]
        for nodes, text in zip(parts, asked, strict=True)
    ]


def _keys(workload: Workload, quota: Quota) -> list[tuple[int] | None]:
    """Return the key of each job, by which it counts; None: it does not."""
    both = zip(quota.counted(workload).tolist(), quota.spared(workload).tolist(), strict=True)
    return [None if key < 0 else Spared((key,)) if free else (key,) for key, free in both]


def _windows(workload: Workload, maintenance: Iterable[Window], cluster: Cluster) -> list[Any]:
    """Return begin, end and the nodes of each window, or its processors on a pool."""
    windows: list[Any] = []
    for window in maintenance:
        begin, end = window.seconds(workload.header)
        if cluster.groups:
            windows.append((begin, end, nodes_in(window, cluster).tolist()))
        else:
            windows.append((begin, end, window.processors or cluster.processors))
    return windows


def _follows(workload: Workload, dependencies: str) -> dict[int, Any] | None:
    """Return whom each job follows that follows others, its time to think and its earliest."""
    if dependencies == "none":
        return None
    following = followed(workload)
    think = think_times(workload, following, dependencies).tolist()
    others: dict[int, list[int]] = {}
    for job, other in zip(following.job.tolist(), following.other.tolist(), strict=True):
        others.setdefault(job, []).append(other)
    after = dependencies == "after"
    return {
        job: (those, think[job], int(workload.submit_time[job]) if after else 0)
        for job, those in others.items()
    }


def _preemption(workload: Workload, scheduler: Scheduler) -> tuple[Any, ...] | None:
    """Return the groups of jobs, the pairs of groups, the mode, and exempt and grace times."""
    rule = scheduler.preemption
    if rule is None:
        return None
    names = [*rule.levels, None]  # -1 is of none
    groups = [names[place] for place in rule.groups(workload).tolist()]
    return groups, set(rule.pairs), rule.mode, dict(rule.exempt), dict(rule.grace)


def _stopped(made: PoolSimulation) -> dict[str, Any]:
    """Return the attributes of a result about runs that other jobs ended."""
    none = np.zeros(0, np.int64)
    runs = _lost(made.lost, Failures(none, none, none))
    if made.preemption[2] != "suspend":
        return {"lost": runs}
    return {"pieces": runs, "suspended": _column([job.paused for job in made.jobs])}


def _lost(lost: list[Any], failures: Failures) -> LostRuns:
    """Return runs that did not last, by job and time."""
    lost = sorted(lost, key=lambda run: (run[0], run[2]))
    job, begin, end = (_column([run[k] for run in lost]) for k in range(3))
    return LostRuns(failures, job, begin, end, *_cells([tuple(run[3].items()) for run in lost]))


def _result_of(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, jobs: list[Job]
) -> Result:
    """Return what has become of jobs as a result."""
    more: dict[str, Any] = {}
    check_ended(workload, scheduler, _column([job.start for job in jobs]))
    if cluster.groups:
        more["allocation"] = Allocation(*_cells([job.nodes for job in jobs]))
    if learns(scheduler.policy_estimate):
        more["policy_run_time"] = _column([job.policy_time for job in jobs])
    if scheduler.candidate_estimate is not None and learns(scheduler.candidate_estimate):
        more["candidate_run_time"] = _column([job.candidate_time for job in jobs])
    return replace(Result.of(workload, cluster, scheduler, _schedule_of(jobs)), **more)


def _schedule_of(jobs: list[Any]) -> dict[str, NDArray[np.int64]]:
    """Return the columns of a schedule."""
    return {
        "start": _column([job.start for job in jobs]),
        "run": _column([job.end - job.start - job.paused for job in jobs]),
        "predicted": _column([job.predicted for job in jobs]),
        "promised": _column([job.reserved_start for job in jobs]),
        "backfilled": _column([job.backfilled for job in jobs]),
    }


def _cells(
    placed: list[tuple[tuple[int, int], ...]],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the first cell of each, and the nodes and units of all."""
    first = _column([0, *accumulate(map(len, placed))])
    every = [cell for cells in placed for cell in cells]
    node, units = (np.array([cell[k] for cell in every], np.int32) for k in (0, 1))
    return first, node, units


def _column(values: list[int]) -> NDArray[np.int64]:
    """Return whole numbers as a column, read-only."""
    made: NDArray[np.int64] = np.array(values, np.int64)
    made.flags.writeable = False
    return made
