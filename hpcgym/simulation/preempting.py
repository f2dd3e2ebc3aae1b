"""Jobs that may stop others, as the engine takes it, and the runs that have ended so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import RuleWarning, warn_caller
from hpcgym.schedule.lost_runs import lost_runs, of_those, pieces_of
from hpcgym.simulation.quotas import called_together

if TYPE_CHECKING:
    from hpcgym.cluster.failures import Failures
    from hpcgym.scheduler.preemption import Preemption
    from hpcgym.workload.model import Workload

_MODES = ("requeue", "cancel", "suspend")  # by their codes


def preemption_of(workload: Workload, rule: Preemption) -> dict[str, NDArray[Any]]:
    """Return who may stop whom, as arguments of a model.

    Warns
    -----
    RuleWarning : no job may stop another, or none is called so.
    """
    return {
        "group": warn_of_absent([workload], rule)[0],
        "level": np.array(list(rule.levels.values())),
        "may": rule.may.astype(np.int64),
        "exempt": rule.exempt_of_groups,
        "mode": np.array([_MODES.index(rule.mode)]),
    }


def warn_of_absent(slices: Sequence[Workload], rule: Preemption) -> list[NDArray[np.int64]]:
    """Return the group of each job of slices, by who may stop whom; -1: of none.

    Warns
    -----
    RuleWarning : no job of any slice may stop another, or names are of no job.
    """
    groups = [rule.groups(one) for one in slices]
    name, may = called_together(slices), rule.may
    rows = [np.bincount(group[group >= 0], minlength=len(may)) > 0 for group in groups]
    there: NDArray[np.bool_] = np.array(rows)
    if not (may & there[:, :, np.newaxis] & there[:, np.newaxis, :]).any():
        warn_caller(f"{name}: preemption {rule}: no job may stop another", RuleWarning)
        return groups
    present = np.flatnonzero(np.count_nonzero(there, axis=0)).tolist()
    absent = [called for place, called in enumerate(rule.levels) if place not in present]
    if absent:
        text = f"{name}: preemption {rule}: there is no job of {', '.join(absent)}"
        warn_caller(text, RuleWarning)
    return groups


def for_result(
    rule: Preemption | None, schedule: Mapping[str, NDArray[np.int64]], failures: Failures
) -> dict[str, Any]:
    """Return what a result tells of runs that others, or failures, ended, by its attributes.

    In the ``schedule`` of a simulation jobs have started later by the time for which they were
    suspended.
    """
    runs = lost_runs(failures, schedule)
    if rule is not None and rule.mode == "cancel":  # what ends for good is in the schedule
        runs = of_those(runs, runs.start != schedule["start"][runs.job])
    if rule is None or rule.mode != "suspend":
        return {"lost": runs}
    pieces, moved = pieces_of(runs), schedule["start"]
    start = moved.copy()
    start[pieces.job[::-1]] = pieces.start[::-1]  # of several pieces of a job the first
    return {"pieces": pieces, "start": start, "suspended": moved - start}
