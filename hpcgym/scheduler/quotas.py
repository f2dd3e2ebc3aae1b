"""Quotas: how much users and groups of jobs may have running, or submitted, at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, unknown
from hpcgym.naming import ARRAY, WITH_QOS
from hpcgym.scheduler.policies.features import JobColumns

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

#: What a quota may bound: jobs and processors that run at once, and jobs that run or wait.
BOUNDS = ("jobs", "processors", "submitted")
#: What jobs are counted apart by -> columns of their numbers. In logs of Slurm, queues are QOS.
COLUMNS = {**WITH_QOS, ARRAY: ARRAY}
_MOST = 2**31


@dataclass(frozen=True)
class Quota:
    """A bound of what runs, or is submitted: of all jobs, of some, of each user by itself.

    A job that would exceed it does not start, and is passed over as if it did not wait; or it is
    not submitted, and waits outside the queue until others have ended.

    Attributes
    ----------
    each : columns by which jobs are counted apart, of :data:`COLUMNS`: of ("user",) each user by
        itself; of () all together. Of ("array",) jobs that are in none do not count.
    where : pairs of such a column and a name of the log, or a number that has none: only jobs that
        are called so count.
    jobs, processors : how many may run, and how many processors they may have; None: any number.
    submitted : how many may run or wait in the queue, together; None: any number.

    Raises
    ------
    HpcgymError : an unknown column, or a bound that is no whole number from 1 to 2^31.

    Examples
    --------
    >>> from hpcgym.scheduler.quotas import Quota
    >>> print(Quota(each=("user",), where=(("queue", "normal"),), jobs=10))
    queue=normal/user:jobs=10
    """

    each: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    jobs: int | None = None
    processors: int | None = None
    submitted: int | None = None

    def __post_init__(self) -> None:
        for column in (*self.each, *(column for column, _ in self.where)):
            if column not in COLUMNS:
                hint = "; accounts of Slurm are groups" if column == "account" else ""
                raise HpcgymError(f"quota: {unknown('column', column, COLUMNS)}{hint}")
        for name in BOUNDS:
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and 1 <= value <= _MOST):
                raise HpcgymError(f"quota: {name} must be a whole number from 1 on, not {value!r}")
        for _, name in self.where:
            if any(sign in name for sign in "/:;=") or name != name.strip() or not name:
                raise HpcgymError(f"quota: no name has blanks at its ends, or / : ; =, as {name!r}")
        if all(getattr(self, name) is None for name in BOUNDS):
            raise HpcgymError(f"quota: it bounds nothing; give {', '.join(BOUNDS)} or several")

    def __str__(self) -> str:
        of = [*(f"{column}={name}" for column, name in self.where), *self.each] or ["all"]
        bounds = [f"{name}={getattr(self, name)}" for name in BOUNDS if getattr(self, name)]
        return f"{'/'.join(of)}:{'+'.join(bounds)}"

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Return the quota of a text such as ``queue=normal/user:jobs=10+processors=512``.

        Raises
        ------
        HpcgymError : it is none.
        """
        of, colon, bounds = text.strip().rpartition(":")
        if not colon:
            raise HpcgymError(f"quota {text!r}: it must be such as 'user:jobs=10'")
        each: list[str] = []
        where: list[tuple[str, str]] = []
        for part in (part.strip() for part in of.split("/")):
            column, equals, name = (piece.strip() for piece in part.partition("="))
            if equals:
                where.append((column, name))
            elif part != "all":
                each.append(column)
        found: dict[str, int] = {}
        for part in bounds.split("+"):
            name, _, number = (piece.strip() for piece in part.partition("="))
            if name not in BOUNDS or name in found or not (number.isascii() and number.isdigit()):
                raise HpcgymError(
                    f"quota {text!r}: {part.strip()!r} is no bound such as jobs=10,"
                    " processors=512 or submitted=50, each at most once"
                )
            found[name] = int(number)
        try:
            return cls(tuple(each), tuple(where), **found)
        except HpcgymError as error:
            raise HpcgymError(f"quota {text!r}: {str(error).removeprefix('quota: ')}") from None

    def counted(self, workload: Workload) -> NDArray[np.int64]:
        """Return which count each job is in, (n_jobs,) int64: from 0 on, -1 of those in none."""
        n = len(workload)
        within = np.ones(n, np.bool_)
        columns = JobColumns(workload)
        for column, name in self.where:
            within &= columns.is_called(COLUMNS[column], name)
        keys = np.zeros((n, 0), np.int64)
        if self.each:
            keys = np.column_stack([workload.columns[COLUMNS[column]] for column in self.each])
        if ARRAY in self.each:
            within &= workload.columns[ARRAY] >= 0
        _, place = np.unique(keys, axis=0, return_inverse=True) if self.each else ([], np.zeros(n))
        return np.where(within, place.reshape(-1), -1).astype(np.int64)


def bound_submissions(quotas: Iterable[Quota]) -> bool:
    """Return whether one of some quotas bounds how many jobs may run or wait."""
    return any(quota.submitted is not None for quota in quotas)


def quotas_of(text: str | None) -> tuple[Quota, ...]:
    """Return the quotas of a text, one after the other with ``;`` between them.

    Raises
    ------
    HpcgymError : one of them is none.

    Examples
    --------
    >>> from hpcgym.scheduler.quotas import quotas_of
    >>> [quota.jobs for quota in quotas_of("user:jobs=10; group=physics:jobs=100")]
    [10, 100]
    """
    return tuple(Quota.parse(part) for part in (text or "").split(";") if part.strip())
