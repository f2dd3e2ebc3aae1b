"""Machines with quotas, windows and jobs that follow others, as the engine takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.passes import dependencies as engine_dependencies
from hpcgym.engine.passes import quotas as engine_quotas
from hpcgym.engine.passes import windows as engine_windows
from hpcgym.engine.passes.quotas import Quotas
from hpcgym.engine.passes.restricted_rows import RestrictedRows
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.simulation.dependencies import (
    links_of,
    make_dependencies,
    orders_of_arrival,
)
from hpcgym.simulation.preempting import preempting_rows, warn_of_absent
from hpcgym.simulation.quotas import make_places, make_quotas, use_up, warn_of_none
from hpcgym.simulation.windows import closings, make_windows, warn_of_unmet

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.engine.machines.nodes.placement import Nodes
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def check_restricted(
    workload: Workload, scheduler: Scheduler, correction: int, on_nodes: bool
) -> None:
    """Check the rules of a simulation under quotas, around windows or of jobs that wait for others.

    Parameters
    ----------
    correction : of predictions that are too short, by its code.

    Raises
    ------
    HpcgymError : rules that do not go with quotas or windows, or predictions that may be too short
        for windows.

    Warns
    -----
    HpcgymWarning : EASY on nodes, whose reservation is another then.
    """
    _check_planned(workload, scheduler, on_nodes)
    if scheduler.windows and correction not in (state.UNCORRECTED, state.KILL):
        raise HpcgymError(
            f"estimate={scheduler.describe()['estimate']!r} may be too short, and a job would run"
            " into a window: take 'requested', or correction='kill', which ends it in time"
        )
    mode = "" if scheduler.preempts is None else scheduler.preempts.mode
    if scheduler.dependencies != "none" and mode == "cancel":
        raise HpcgymError(
            f"preemption={scheduler.preemption!r} and dependencies={scheduler.dependencies!r} do"
            " not go together: jobs would follow jobs that are cancelled; take requeue or suspend"
        )
    if scheduler.windows and mode == "suspend":
        raise HpcgymError(
            f"preemption={scheduler.preemption!r} and maintenance windows do not go together:"
            " a suspended job would go on into a window; take requeue or cancel"
        )


def _check_planned(workload: Workload, scheduler: Scheduler, on_nodes: bool) -> None:
    """Raise or warn as :func:`check_restricted` does, whatever restricts.

    Where reservations are made anew at each pass, those on nodes are of nodes by name.
    """
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, "nodes" if on_nodes else "pool", *extract)
    if on_nodes and scheduler.reserves_one:
        preempts = scheduler.preemption is not None
        rules = "preemption" if preempts else "quotas, windows or dependencies"
        warn_caller(
            f"with {rules} EASY's reservation is of nodes by name, and not a promise of room:"
            " compare with a quota that bounds nothing, such as all:jobs=1000000",
            HpcgymWarning,
        )


def warn_of_unused(
    slices: Sequence[Workload], schedulers: Sequence[Scheduler], cluster: Cluster
) -> None:
    """Warn of what restricts no job of any slice, once for the same rules.

    Warns
    -----
    RuleWarning : quotas that are of no job, windows that none meets, preemption of nobody, jobs
        that follow jobs that are not there.
    """
    for quotas in {one.quotas: None for one in schedulers if one.quotas}:
        warn_of_none(slices, quotas, [make_quotas(one, quotas) for one in slices])
    for scheduler in {one.maintenance: one for one in schedulers if one.windows}.values():
        closed = [closings(one, scheduler, cluster) for one in slices]
        warn_of_unmet(slices, [make_windows(some, bool(cluster.groups)) for some in closed])
    for rule in {str(one.preempts): one.preempts for one in schedulers}.values():
        if rule is not None:
            warn_of_absent(slices, rule)
    follows = {one.dependencies: one for one in schedulers if one.dependencies != "none"}
    for scheduler in list(follows.values())[:1]:
        links_of(slices, scheduler)


def profile_for(scheduler: Scheduler, profile: NDArray[np.void]) -> NDArray[np.void]:
    """Return the profile of a simulation with room for windows."""
    more = np.zeros(4 * len(scheduler.windows), state.PROFILE)
    return np.concatenate([profile, more]) if len(more) else profile


def restricted(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, nodes: Nodes | None
) -> dict[str, Any]:
    """Return the quotas, windows and jobs that follow others, as arguments of ``Model``.

    Parameters
    ----------
    nodes : None: a pool of processors.

    Raises
    ------
    HpcgymError : windows that the machine cannot have, or an order that looks at when jobs are
        submitted.
    WorkloadError : a job that exceeds a quota by itself, or follows itself, and would wait for
        ever.

    Warns
    -----
    RuleWarning : quotas that are of no job, windows before the first job or after the last,
        jobs that follow jobs that are not there.
    """
    quotas = make_quotas(workload, scheduler.quotas)
    if workload.initial is not None:
        use_up(quotas, workload.initial.running)
    warn_of_none([workload], scheduler.quotas, [quotas])
    closed = closings(workload, scheduler, cluster)
    windows = make_windows(closed, nodes is not None)
    warn_of_unmet([workload], [windows])
    by = make_dependencies(workload, scheduler)
    places = make_places(workload, scheduler.quotas)
    taken = [] if nodes is None else [node for one in closed for node in one.nodes]
    told: dict[str, Any] = {
        "restrictions": {
            "counts": quotas.counts,
            "processors": quotas.processors,
            "left": quotas.left,
            "windows": np.column_stack([windows.begin, windows.end, windows.taken]),
            "window_nodes": np.array(taken, np.int64),
        }
    }
    if scheduler.moves_submissions:
        names = ("first", "followers", "think", "earliest", "by_arrival")
        told["arrivals"] = {
            **{name: getattr(by, name) for name in names},
            "awaits": by.left,
            "processors": places.processors,
            "place_counts": places.counts,
            "places": places.left,
        }
    return told


def restricted_rows(
    slices: Sequence[Workload],
    scheduler: Scheduler,
    cluster: Cluster,
    number: int,
    on_nodes: bool,
    longest: int,
) -> RestrictedRows | None:
    """Return what restricts that many simulations of slices; None where nothing is planned anew.

    Their table has the jobs of one slice after the other. A simulation has at most ``longest``.

    Raises
    ------
    HpcgymError : windows that the machine cannot have, or an order that looks at when jobs are
        submitted.
    WorkloadError : a job that exceeds a quota by itself, or follows itself, and would wait for
        ever.

    Warns
    -----
    RuleWarning : quotas that are of no job of any slice, windows that none meets, jobs that
        follow jobs that are not there.
    """
    if not scheduler.plans:
        return None
    quotas = [make_quotas(one, scheduler.quotas) for one in slices]
    closed = [closings(one, scheduler, cluster) for one in slices]
    windows = [make_windows(some, on_nodes) for some in closed]
    warn_of_none(slices, scheduler.quotas, quotas)
    warn_of_unmet(slices, windows)
    held = [[len(one.nodes) for one in some] if on_nodes else [] for some in closed]
    nodes = [[node for one in some for node in one.nodes] if on_nodes else [] for some in closed]
    begin_left = _left_at_first(quotas)
    places = [make_places(one, scheduler.quotas) for one in slices]
    begin_places = _left_at_first(places)
    links = links_of(slices, scheduler)
    moving = longest if scheduler.moves_submissions else 0
    first = links.first
    ahead = np.minimum(np.arange(len(first)) + moving, len(first) - 1)
    most_links = int((first[ahead] - first).max(initial=0))
    stops = preempting_rows(slices, scheduler, cluster, number, longest)
    by_job = {
        "jobs": (longest if moving or stops is not None else 0, state.JOBS),
        "keys": (2 * moving, np.int64),
        "own_first": (moving + (moving > 0), np.int64),
        "own_followers": (most_links, np.int64),
        "awaits": (moving, np.int64),
        "think": (moving, np.int64),
        "coming": (moving, engine_dependencies.COMING),
        "outside": (moving, np.int64),
        "came": (moving, np.int64),
        "moved": (1, engine_dependencies.SCALARS),
    }
    empty: dict[str, Any] = {
        name: np.zeros((number, size), dtype) for name, (size, dtype) in by_job.items()
    }
    return RestrictedRows(
        counts=np.concatenate([one.counts for one in quotas]),
        processors=np.concatenate([one.processors for one in quotas]),
        begin_left=begin_left,
        window_begin=np.stack([one.begin for one in windows]),
        window_end=np.stack([one.end for one in windows]),
        taken=np.stack([one.taken for one in windows]),
        closed_first=np.array([np.cumsum([0, *some]) for some in held], np.int64),
        closed=np.array(nodes, np.int64),
        **links._asdict(),
        place_counts=np.concatenate([one.counts for one in places]),
        begin_places=begin_places,
        user_before=_users_before(slices, scheduler),
        left=np.zeros((number, *begin_left.shape[1:]), np.int64),
        settled=np.zeros((number, 1), engine_quotas.SCALARS),
        over=np.zeros((number, 1), engine_windows.SCALARS),
        by_arrival=np.tile(orders_of_arrival(slices[0], scheduler), (number, 1)),
        places=np.zeros((number, *begin_places.shape[1:]), np.int64),
        places_settled=np.zeros((number, 1), engine_quotas.SCALARS),
        stops=stops,
        **empty,
    )


def _users_before(slices: Sequence[Workload], scheduler: Scheduler) -> NDArray[np.int64]:
    """Return for each row the last before of the same slice and user, -1: none.

    (n_rows,), or (0,) where Slurm's ``bf_max_job_user`` does not ask for it.
    """
    if scheduler.slurm is None or scheduler.slurm.bf_max_job_user == 0:
        return np.zeros(0, np.int64)
    slice_of = np.repeat(np.arange(len(slices)), [len(one) for one in slices])
    user = np.concatenate([one.user_id for one in slices])
    rows = np.lexsort((user, slice_of))  # stable: the rows of a user stay in order
    same = (np.diff(slice_of[rows]) == 0) & (np.diff(user[rows]) == 0)
    before = np.full(len(rows), -1, np.int64)
    before[rows[1:][same]] = rows[:-1][same]
    return before


def _left_at_first(quotas: Sequence[Quotas]) -> NDArray[np.int64]:
    """Return how much of quotas is left at first in each slice, (n_slices, C, 2)."""
    most = max(len(one.left) for one in quotas)
    left = np.zeros((len(quotas), most, 2), np.int64)
    for rows, one in zip(left, quotas, strict=True):
        rows[: len(one.left)] = one.left
    return left
