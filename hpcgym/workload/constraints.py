"""Constraints of jobs by features of nodes: what of them a machine follows."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.machine.constraints import constraint_of, followed
from hpcgym.machine.pool import Cluster
from hpcgym.names import CONSTRAINT, NODES
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.model import Workload

_UNUSED = "not used: Constraints"
_PARTLY = "not used: Constraints as to which node has which feature, as [a|b] of several nodes"


def constraints_of(workload: Workload) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Return what each node of a job must meet, a text or "", (n_jobs,).

    With it comes whether that is not all that the constraint says, (n_jobs,)
    (:func:`hpcgym.machine.constraints.followed`).

    Raises
    ------
    WorkloadError : the constraint of a job is not one of Slurm, such as ``a&b``.
    """
    asked = np.full(len(workload), "", object)
    partly = np.zeros(len(workload), np.bool_)
    column = workload.columns[CONSTRAINT]
    rows = np.flatnonzero(column != MISSING)
    if not len(rows):
        return asked, partly
    units = workload.requested_processors if workload.units is None else workload.units
    nodes = np.where(workload.columns[NODES] > 0, workload.columns[NODES], units)
    names = names_of(workload, CONSTRAINT)
    pairs, place = np.unique(np.stack((column, nodes))[:, rows], axis=1, return_inverse=True)
    place = place.reshape(-1)
    for k, (number, most) in enumerate(pairs.T.tolist()):
        here = rows[place == k]
        try:
            known, whole = followed(constraint_of(names.get(number, str(number))), most)
        except HpcgymError as error:
            raise WorkloadError(
                f"{workload.name}: {workload.called(int(here[0]))}: {error}"
            ) from None
        asked[here] = "" if known is None else str(known)
        partly[here] = not whole
    return asked, partly


def machine_for(workload: Workload, cluster: Cluster) -> Cluster:
    """Return a machine that knows the constraints of jobs; none counts where no node has features.

    Raises
    ------
    WorkloadError : the constraint of a job is not one of Slurm, such as ``a&b``.
    """
    if not _has_features(cluster):
        return cluster
    new = {*constraints_of(workload)[0].tolist()} - {"", *cluster.constraints}
    return _with_constraints(cluster, (*cluster.constraints, *sorted(new))) if new else cluster


@lru_cache(maxsize=64)
def _with_constraints(cluster: Cluster, constraints: tuple[str, ...]) -> Cluster:
    """Return the same machine for the same constraints: what is known of it need not be redone."""
    return replace(cluster, constraints=constraints)


def with_constraints_counted(workload: Workload, cluster: Cluster | None) -> Workload:
    """Return the jobs, and count those whose constraint is not followed, or not all of it.

    Raises
    ------
    WorkloadError : the constraint of a job is not one of Slurm, such as ``a&b``.
    """
    if cluster is None or not _has_features(cluster):
        constrained = workload.columns[CONSTRAINT] != MISSING
        return workload.counted({_UNUSED: int(np.count_nonzero(constrained))})
    return workload.counted({_PARTLY: int(np.count_nonzero(constraints_of(workload)[1]))})


def _has_features(cluster: Cluster) -> bool:
    return any(group.features for group in cluster.groups)
