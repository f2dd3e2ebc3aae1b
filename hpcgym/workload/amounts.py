"""What jobs ask for, by the names of amounts: a row of AMOUNTS, or any resource of the jobs' units.

Limits know amounts by these names alone, and so do the command line, proofs and explanations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.names import CORE, MEMORY, near_name, resource_problem

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

Ints = NDArray[np.int64]


class Amount(NamedTuple):
    """An amount that jobs ask for.

    Attributes
    ----------
    asked : returns how much each job of a workload asks for, (n_jobs,) int64, at least 0.
    in_use : what is in use of it, in words, behind a number.
    from_submission : whether a job has it from its submission on; else from its start on.
    """

    asked: Callable[[Workload], Ints]
    in_use: str
    from_submission: bool = False


def _once(workload: Workload) -> Ints:
    return np.ones(len(workload), np.int64)


def of_units(workload: Workload, resource: str) -> Ints:
    """Return how much of a resource the units of each job ask for together, (n_jobs,) int64."""
    if workload.units is None or resource not in workload.per_unit:
        return np.zeros(len(workload), np.int64)
    of_each: Ints = workload.units * workload.per_unit[resource]
    return of_each


AMOUNTS = {
    "jobs": Amount(_once, "jobs run"),
    "processors": Amount(lambda workload: workload.requested_processors, "processors are busy"),
    "submitted": Amount(_once, "jobs run or wait", from_submission=True),
}


def amount_called(name: str) -> Amount:
    """Return the amount of a name: a row of :data:`AMOUNTS`, or a resource of units."""
    resource = Amount(lambda workload: of_units(workload, name), f"{name} are in use")
    return AMOUNTS.get(name, resource)


def amount_problem(name: str) -> str:
    """Return why no amount has this name, in words; nothing if one may.

    >>> amount_problem("processor"), amount_problem("gpu")
    ("did you mean 'processors'?", '')
    """
    near = name if name in AMOUNTS else near_name(name, (*AMOUNTS, CORE, MEMORY))
    near = "processors" if near == CORE else near
    if near == name:
        return ""
    return f"did you mean {near!r}?" if near else resource_problem(name)


def asked_of(workload: Workload, names: Iterable[str]) -> Ints:
    """Return how much each job asks for of some amounts, (n_jobs, n) int64.

    Raises
    ------
    HpcgymError : a name that is nearly that of a resource of the jobs, or more than can be counted.
    """
    columns = [np.zeros((len(workload), 0), np.int64)]
    for name in names:
        if name not in (*AMOUNTS, *workload.per_unit) and (
            near := near_name(name, workload.per_unit)
        ):
            raise HpcgymError(f"amount {name!r}: did you mean {near!r}, as jobs ask for?")
        asked = np.maximum(amount_called(name).asked(workload), 0)
        if asked.max(initial=0) > _MOST // max(len(workload), 1):
            raise HpcgymError(f"amount {name!r}: jobs ask for more of it than can be counted")
        columns.append(asked[:, np.newaxis])
    return np.ascontiguousarray(np.concatenate(columns, axis=1), np.int64)


def asks_of_running(workload: Workload) -> dict[str, Ints]:
    """Return what running jobs have, amount -> (n_jobs,), of each amount that any job asks for."""
    names = [name for name, amount in AMOUNTS.items() if not amount.from_submission]
    names += [name for name in workload.per_unit if name != CORE]
    asked = dict(zip(names, asked_of(workload, names).T, strict=True))
    return {name: of_jobs for name, of_jobs in asked.items() if of_jobs.any()}


#: The most that all jobs may ask for together, as the engine counts.
_MOST = 2**62
