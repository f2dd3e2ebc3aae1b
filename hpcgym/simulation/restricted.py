"""What restricts who may start when: quotas, windows, and jobs that follow or stop others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.codes import KILL, UNCORRECTED
from hpcgym.scheduler.rule_values import plain
from hpcgym.simulation.dependencies import arrivals_of, following_in, what_moves
from hpcgym.simulation.preempting import preemption_of, warn_of_absent
from hpcgym.simulation.quotas import make_places, make_quotas, use_up, warn_of_none
from hpcgym.simulation.windows import closings, make_windows, warn_of_unmet

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def check_restricted(workload: Workload, scheduler: Scheduler, correction: int, place: str) -> None:
    """Check the rules of a simulation under quotas, around windows or of jobs that wait for others.

    Parameters
    ----------
    correction : its code; UNCORRECTED, where no prediction is too short.
    place : of :data:`hpcgym.scheduler.capabilities.PLACES`.

    Raises
    ------
    HpcgymError : rules that do not go with quotas or windows, or predictions that may be too short
        for windows.

    Warns
    -----
    HpcgymWarning : EASY on nodes, whose reservation is another then.
    """
    _check_planned(workload, scheduler, place)
    if scheduler.windows and correction not in (UNCORRECTED, KILL):
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
    if scheduler.moves_submissions and mode == "cancel":
        raise HpcgymError(
            f"preemption={scheduler.preemption!r} and quota={scheduler.quota!r} do not go together:"
            " a job that is cancelled would let others come in the very pass; take requeue or"
            " suspend"
        )
    if scheduler.moves_submissions and scheduler.hold is not None and callable(scheduler.policy):
        raise HpcgymError(
            f"hold, policy={plain(scheduler.policy)} and {what_moves(scheduler)} do not go"
            " together: the function is asked before those jobs come that others have let come"
        )
    if scheduler.windows and mode == "suspend":
        raise HpcgymError(
            f"preemption={scheduler.preemption!r} and maintenance windows do not go together:"
            " a suspended job would go on into a window; take requeue or cancel"
        )


def _check_planned(workload: Workload, scheduler: Scheduler, place: str) -> None:
    """Raise or warn as :func:`check_restricted` does, whatever restricts.

    Where something is planned around, EASY's reservation on nodes is of nodes by name.
    """
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, place, *extract)
    rule = "preemption" if scheduler.preemption is not None else "windows"
    planned = scheduler.preemption is not None or scheduler.windows
    if place == "nodes" and planned and scheduler.reserves_one:
        warn_caller(
            f"with {rule} EASY's reservation is of nodes by name, and not a promise of room:"
            " compare with a window that nobody meets",
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
    for preempts in {str(one.preempts): one.preempts for one in schedulers}.values():
        if preempts is not None:
            warn_of_absent(slices, preempts)
    follows = {one.dependencies: None for one in schedulers if one.dependencies != "none"}
    for rule in list(follows)[:1]:
        following_in(slices, rule)


def restrictions_of(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    on_nodes: bool,
    several: bool,
    outside: bool,
    ticks: int,
) -> dict[str, Any]:
    """Return what restricts who may start when, as arguments of a model.

    Parameters
    ----------
    several : whether simulations have parts of the jobs, which do not know of the others.
    outside : whether the order of the queue is said from there.
    ticks : of the clock in a second.

    Raises
    ------
    HpcgymError : windows that the machine cannot have, or an order that looks at when jobs are
        submitted.
    WorkloadError : a job that exceeds a quota by itself, or follows itself, and would wait for
        ever.

    Warns
    -----
    RuleWarning : quotas that are of no job, windows before the first job or after the last,
        jobs that follow jobs that are not there, preemption of nobody.
    """
    quotas = make_quotas(workload, scheduler.quotas)
    if workload.initial is not None and not several:
        use_up(quotas, workload.initial.running)
    warn_of_none([workload], scheduler.quotas, [quotas])
    windows = make_windows(closings(workload, scheduler, cluster), on_nodes)
    warn_of_unmet([workload], [windows])
    told: dict[str, Any] = {
        "restrictions": {
            **quotas._asdict(),
            "windows": np.column_stack([windows.begin, windows.end, windows.taken]),
            "window_nodes": windows.nodes,
        }
    }
    if scheduler.moves_submissions:
        places = make_places(workload, scheduler.quotas)
        told["arrivals"] = {
            **arrivals_of(workload, scheduler, several, outside, ticks),
            "processors": places.processors,
            "place_counts": places.counts,
            "places": places.left,
        }
    if scheduler.preempts is not None:
        told["preemption"] = preemption_of(workload, scheduler.preempts)
    return told
