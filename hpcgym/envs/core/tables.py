"""The arrays behind an environment: the jobs that simulations share, and a row for each of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.envs.core import arrays
from hpcgym.envs.core.node_books import node_watts
from hpcgym.envs.core.options import WINDOW_FEATURES, Options
from hpcgym.errors import HpcgymError
from hpcgym.files import header_number
from hpcgym.scheduler.estimates.by_name import predicted_run_times
from hpcgym.scheduler.estimates.learning import (
    asks_for_predictions,
    average_in_kernel,
    make_estimators,
)
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.mixed import weighed
from hpcgym.simulation.prepare import engine_rules, job_records, numbered, orders
from hpcgym.simulation.restricted import profile_for
from hpcgym.workload.model import Workload

# kinds in which single jobs are started from outside
_SELECTING = (arrays.SELECTION_KIND, arrays.PAIRS_KIND, arrays.PAIR_SCORES_KIND)


def asks_when(kind: int, interval: str) -> int:
    """Return when the kernel asks."""
    if kind in _SELECTING:
        return state.EACH_JOB
    if kind == arrays.ORDERING_KIND or interval == "pass":
        return state.EACH_PASS
    return state.NOBODY


class Common(NamedTuple):
    """What both the empty machine and the table are made of."""

    jobs: NDArray[np.void]
    predicted: NDArray[np.int64] | None  # None where it becomes known at submission
    ordered_by: NDArray[np.int64] | None  # the same of what policies look at
    users: NDArray[np.int64]
    n_users: int
    secondary: int
    keys: NDArray[np.int64] | None
    scores: NDArray[np.float64] | None


def common_of(options: Options, workload: Workload) -> Common:
    """Return the jobs, their predictions and users, and the order of backfilling."""
    jobs = job_records(workload)
    scheduler = options.scheduler
    predicted = predicted_run_times(scheduler.estimate, jobs["run"], workload)
    ordered_by = predicted_run_times(
        scheduler.policy_estimate, jobs["run"], workload, "policy_estimate"
    )
    users, n_users = np.zeros(0, np.int64), 0
    if average_in_kernel(scheduler) or asks_for_predictions(scheduler):
        users, n_users = numbered(workload.user_id)
    _, secondary, keys, scores = orders(workload, scheduler, shares=True)
    return Common(jobs, predicted, ordered_by, users, n_users, secondary, keys, scores)


def empty_machine(
    options: Options,
    longest: int,
    kind: int,
    more_rules: dict[str, int],
    common: Common,
    processors: int,
) -> state.State:
    """Return the state before the first submission, with room for the longest episode."""
    primary = state.SELECTION if kind in _SELECTING else state.SCORED
    last = average_in_kernel(options.scheduler)
    rules = engine_rules(
        options.scheduler, primary, common.secondary, common.predicted, common.jobs["run"], last
    )
    first = state.make_state(rules | more_rules, None, longest, processors, common.n_users, last)
    return first._replace(profile=profile_for(options.scheduler, first.profile))


def table_of(
    options: Options,
    workload: Workload,
    longest: int,
    features: tuple[str, ...],
    settings: NDArray[np.void],
    first: state.State,
    common: Common,
    books: bool,
) -> arrays.Table:
    """Return what the simulations share; ``books`` are kept of what nodes draw."""
    n, jobs, keys = len(workload), common.jobs, np.zeros(0, np.int64)
    if common.secondary == state.KEYED and common.keys is not None:
        keys = np.concatenate([np.zeros(longest, np.int64), common.keys[1]])
    columns = JobColumns(workload)
    ordered_by = jobs["requested"] if common.ordered_by is None else common.ordered_by
    estimators = make_estimators(
        options.scheduler,
        common.users,
        workload.requested_processors,
        jobs["processors"],
        int(first.sim.capacity),
    )
    if settings[0]["kind"] == arrays.WEIGHTS_KIND:
        estimators.looks[0] = 1
    own = dict(options.own)
    places = {name: k for k, name in enumerate((*WINDOW_FEATURES, *own))}
    codes = [places[name] for name in options.names]
    cluster = options.cluster
    parts = weighed(JobColumns(workload, ordered_by), features, n)
    watts, still = node_watts(cluster, books)
    return arrays.Table(
        jobs=jobs,
        users=np.array(common.users),
        keys=keys,
        second_scores=np.zeros((0, 2)) if common.scores is None else common.scores[1].copy(),
        weighed=parts.static,
        waiting=parts.waiting,
        places=parts.places,
        formulas=parts.formulas,
        serial=parts.serial,
        columns=_own_columns(own, columns, n),
        codes=np.array(codes, np.int64),
        predicted=np.array(jobs["requested"] if common.predicted is None else common.predicted),
        ordered_by=np.array(ordered_by),
        watts=np.array([getattr(cluster, name) for name in _WATTS]),
        node_watts=watts,
        still_w=still,
        reward_weights=np.array(options.rewards.weights),
        shapes=np.array(options.rewards.shapes),
        settings=settings,
        sim=first.sim.reshape(1),
        blocks=first.blocks,
        **estimators._asdict(),
    )


# in the order of what the kernel says that processors do
_WATTS = ("busy_power_w", "idle_power_w", "off_power_w", "shutdown_w", "boot_w")


def _own_columns(own: dict[str, Any], columns: JobColumns, n: int) -> NDArray[np.float32]:
    """Return users' own columns of the window, checked."""
    values = np.zeros((n, len(own)), np.float32)
    for k, (name, function) in enumerate(own.items()):
        column = np.asarray(function(columns))
        if column.shape != (n,) or column.dtype.kind not in "fiub":
            raise HpcgymError(
                f"features: {name!r} must return {n} numbers, one a job, "
                f"not an array of shape {column.shape}"
            )
        if not (np.abs(column) <= 1).all():
            raise HpcgymError(f"features: {name!r} must return numbers from -1 to 1")
        values[:, k] = column
    return values


def batch_of(options: Options, longest: int, number: int, n_nodes: int) -> arrays.Batch:
    """Return the arrays of that many simulations; there are books of ``n_nodes`` nodes."""
    late = options.rewards.paid == arrays.PAID_AT_END
    return arrays.Batch(
        episode_state=np.zeros(number, arrays.EPISODE),
        window=np.zeros((number, options.window), np.int64),
        new=np.zeros((number, longest), np.int64),
        terms=np.zeros((number, arrays.N_TERMS)),
        totals=np.zeros((number, arrays.N_TERMS)),
        counted_j=np.zeros(number),
        begun_j=np.zeros(number),
        norms=np.zeros((number, arrays.N_TERMS)),
        scales=np.ones((number, len(options.rewards.weights))),
        next_scales=np.ones((number, len(options.rewards.weights))),
        owed=np.zeros((number, arrays.N_TERMS)),
        unpaid=np.zeros((number, longest if late else 0), np.int64),
        gone=np.zeros((number, longest if late else 0), np.int64),
        gone_bsld=np.zeros((number, longest if late else 0)),
        busy_until=np.zeros((number, n_nodes), np.int64),
    )


def clock_of(workload: Workload) -> int:
    """Return the time of the week at the trace's time 0 [s], by its header, else Monday 0 h."""
    began = header_number(workload.header, "UnixStartTime", least=0)
    return 0 if began is None else (began - 4 * 86_400) % 604_800  # the epoch was a Thursday
