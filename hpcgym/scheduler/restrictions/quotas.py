"""Quotas: bounds on amounts that jobs have together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, unknown
from hpcgym.names import ARRAY, LICENCE, WITH_QOS
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.units import count_of, seconds_of, whole_seconds
from hpcgym.workload.amounts import AMOUNTS, amount_called, amount_problem, asked_of
from hpcgym.workload.columns import distinct

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

#: Names by which jobs are grouped -> columns of their numbers. In logs of Slurm, queues are QOS.
COLUMNS = {**WITH_QOS, ARRAY: ARRAY}
#: Separates alternative names.
OR = "|"
#: The groups in which the jobs of workloads count, which most simulations ask for several times.
_GROUPS: WeakKeyDictionary[Workload, dict[Quota, NDArray[np.int64]]] = WeakKeyDictionary()
_SPARES, _HALF_LIFE = "spares", "half-life"
#: In place of columns by which jobs are grouped: each job by itself.
JOB = "job"
#: Before what each job must ask for at least.
_AT_LEAST = ">"
#: Words for all jobs together.
_ALL = ("all", "everybody")
#: The most jobs or processors, or whatever else, that a quota or a window may name.
MOST_BOUND = 2**31
#: The most of an amount, such as megabytes, that a quota may let jobs have.
_MOST_OF_AMOUNT = 10**12 - 1


@dataclass(frozen=True)
class Quota:
    """Bounds on amounts that jobs have together: all jobs, some, or those of each user.

    A job that would exceed a bound on what running jobs have does not start, and is passed over as
    if it did not wait; one that asks for nothing of that amount may start. A job that would exceed
    ``submitted`` waits outside the queue until others end.

    Attributes
    ----------
    each : columns by which jobs are grouped, of :data:`COLUMNS`: ("user",) counts each user's jobs
        by themselves, () all jobs together. With ("array",) jobs outside arrays do not count. With
        ("job",) the bounds are of one job: one beyond them never runs.
    where : pairs of such a column and a name in the log, or a number without a name: only jobs with
        that name count. ``physics|chemistry`` matches either name. A name may be of another column:
        ("queue", "debug|partition=short") matches the jobs of either.
    bounds : amount -> the most that jobs may have of it at once; kept as sorted pairs. Amounts are
        those of :data:`hpcgym.workload.amounts.AMOUNTS`, ``jobs`` that run, their ``processors``,
        and jobs that run or wait, ``submitted``, licences, such as ``licence.matlab``, and the
        resources of the jobs' units, such as ``mem`` [MB] and ``gpu``. ``gpu-minutes``,
        ``processor-minutes`` and so on are what running jobs still may use: each its GPUs times
        what is left of its requested time. A job starts once that, with its GPUs times its own
        requested time, is at most the bound; time alone lets it start, to the second. Of
        ``gpu-minutes-used``, a budget, jobs start as long as those that ran or run have used less
        than the bound; of ``gpu-minutes-in-all`` if what has been used, what running jobs still may
        use, and what the job asks for is at most the bound. What has been used counts as jobs stop,
        and after every five minutes, or ``calc_period`` of Slurm's backfilling. Of one job also
        those of :data:`hpcgym.workload.amounts.OF_ONE_JOB`.
    spares : names of queues, or such as ``partition=short``, whose jobs count, but may exceed the
        bound: in Slurm another limit takes its place for them.
    least : amount -> the least that a job must ask for, likewise; only of one job.
    of_table : whether it stands in a table of a site, of which a log need not have all.
    half_life_s : time in which half of what has been used is forgotten [s], as Slurm does by
        PriorityDecayHalfLife, or a text such as ``"7d"``; None: nothing is, and of quotas that are
        no budgets.

    Raises
    ------
    HpcgymError : an unknown column or amount, an amount of one job, or a least one, of several, a
        bound that is not from 1, of resources from 0, to below 10^12, or a half-life that is not
        whole seconds from 1 on.

    Examples
    --------
    >>> from hpcgym.scheduler.restrictions import Quota
    >>> print(Quota(("user",), (("queue", "normal"),), {"jobs": 10, "gpu": 4}))
    queue=normal/user:jobs=10+gpu=4
    """

    each: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    bounds: Any = ()  # kept as a tuple of pairs
    spares: tuple[str, ...] = ()
    least: Any = ()  # kept as a tuple of pairs
    of_table: bool = field(default=False, compare=False)
    half_life_s: Any = None  # kept as whole seconds, or None

    def __post_init__(self) -> None:
        for kind in ("bounds", "least"):
            bounds = dict(getattr(self, kind))
            amounts = sorted(bounds, key=lambda name: (name not in AMOUNTS, name))
            object.__setattr__(self, kind, tuple((name, bounds[name]) for name in amounts))
        named = [pair for column, names in self.where for pair in alternatives(column, names)]
        named += [pair for name in self.spares for pair in alternatives("queue", name)]
        if JOB in self.each and self.each != (JOB,):
            raise HpcgymError("quota: 'job' bounds each job by itself, and takes nothing beside it")
        each = () if self.of_a_job else self.each
        for column in (*each, *(column for column, _ in named)):
            if column not in COLUMNS:
                hint = "; accounts of Slurm are groups" if column == "account" else ""
                raise HpcgymError(f"quota: {unknown('column', column, COLUMNS)}{hint}")
        for name, most in (*self.bounds, *self.least):
            if problem := amount_problem(name, of_a_job=self.of_a_job):
                raise HpcgymError(f"quota: {name!r} is no amount of jobs: {problem}")
            whole = isinstance(most, int) and not isinstance(most, bool)
            fewest = int(name in AMOUNTS)  # none of which would let nothing run
            if not (whole and fewest <= most <= _MOST_OF_AMOUNT):
                raise HpcgymError(
                    f"quota: {name} must be a whole number from {fewest} to below 10^12, not"
                    f" {most!r}"
                )
        if self.half_life_s is not None:
            half_life = whole_seconds(f"quota: {_HALF_LIFE}", self.half_life_s, 1)
            budgets = any(amount_called(name).budget for name, _ in self.bounds)
            object.__setattr__(self, "half_life_s", half_life if budgets else None)
        if self.least and not self.of_a_job:
            least = ">=".join(map(str, self.least[0]))
            raise HpcgymError(f"quota: {least} is of one job: job:{least}")
        for _, name in named:
            if any(sign in name for sign in "/:;=") or name != name.strip() or not name:
                raise HpcgymError(f"quota: no name has blanks at its ends, or / : ; =, as {name!r}")
        if not self.bounds and not self.least:
            raise HpcgymError(f"quota: it bounds nothing; give {', '.join(AMOUNTS)} or a resource")

    def __str__(self) -> str:
        of = [*(f"{column}={name}" for column, name in self.where), *self.each] or [_ALL[0]]
        of += [f"{_SPARES}={OR.join(self.spares)}"] * bool(self.spares)
        of += [f"{_HALF_LIFE}={self.half_life_s}"] * (self.half_life_s is not None)
        bounds = [f"{name}={most}" for name, most in self.bounds]
        bounds += [f"{name}{_AT_LEAST}={least}" for name, least in self.least]
        return f"{'/'.join(of)}:{'+'.join(bounds)}"

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Return the quota of a text such as ``queue=normal/user:jobs=10+processors=512``.

        Raises
        ------
        HpcgymError : it is not one.
        """
        of, colon, bounds = text.strip().rpartition(":")
        if not colon:
            raise HpcgymError(f"quota {text!r}: it must be such as 'user:jobs=10'")
        each: list[str] = []
        where: list[tuple[str, str]] = []
        spares: list[str] = []
        half_life: int | float | None = None
        for part in (part.strip() for part in of.split("/")):
            column, equals, name = (piece.strip() for piece in part.partition("="))
            if column == _SPARES and equals:
                spares += map(str.strip, name.split(OR))
            elif column == _HALF_LIFE:
                half_life = seconds_of(name)
                if half_life is None:
                    raise HpcgymError(f"quota {text!r}: {name!r} is no duration such as 7d")
            elif equals:
                where.append((column, name))
            elif part not in _ALL:
                each.append(column)
        amounts: dict[str, int] = {}
        least: dict[str, int] = {}
        for part in bounds.split("+"):
            name, _, number = (piece.strip() for piece in part.partition("="))
            bound, named = count_of(number), least if name.endswith(_AT_LEAST) else amounts
            name = name.removesuffix(_AT_LEAST).strip()
            if not name or name in named or bound is None:
                once = name and bound is not None
                raise HpcgymError(
                    f"quota {text!r}: {name} is there twice"
                    if once
                    else f"quota {text!r}: {part.strip()!r} is no bound such as jobs=10,"
                    " processors=512, gpu=4 or submitted=50"
                )
            named[name] = bound
        try:
            quota = cls(
                tuple(each), tuple(where), amounts, tuple(spares), least, half_life_s=half_life
            )
        except HpcgymError as error:
            raise HpcgymError(f"quota {text!r}: {str(error).removeprefix('quota: ')}") from None
        if half_life is not None and quota.half_life_s is None:
            such = "such as gpu-minutes-used"
            raise HpcgymError(f"quota {text!r}: only what has been used has a half-life, {such}")
        return quota

    @property
    def of_a_job(self) -> bool:
        """Whether its bounds are of each job by itself."""
        return JOB in self.each

    @property
    def running(self) -> dict[str, int]:
        """The bounds on what running jobs have together: amount -> most."""
        return self._together(from_submission=False)

    @property
    def submitted(self) -> dict[str, int]:
        """The bounds on what jobs have together from their submission on: amount -> most."""
        return self._together(from_submission=True)

    def _together(self, *, from_submission: bool) -> dict[str, int]:
        named = () if self.of_a_job else self.bounds
        return {
            name: most
            for name, most in named
            if amount_called(name).from_submission == from_submission
        }

    def with_bounds(self, bounds: Mapping[str, int]) -> Quota:
        """Return a quota of the same jobs with other bounds: amount -> most."""
        return replace(self, bounds=bounds)

    def asked(self, workload: Workload, amount: str) -> NDArray[np.int64]:
        """Return how much each job asks for of an amount, (n_jobs,).

        Raises
        ------
        HpcgymError : the log does not tell it.
        """
        try:
            return asked_of(workload, [amount])[:, 0]
        except HpcgymError as error:
            raise HpcgymError(f"quota {self}: {error}") from None

    def counted(self, workload: Workload) -> NDArray[np.int64]:
        """Return the group in which each job counts, (n_jobs,) int64 from 0 on; -1: in none.

        It is worked out once for each workload, and read-only.
        """
        known = _GROUPS.setdefault(workload, {})
        if self not in known:
            known[self] = self._groups(workload)
            known[self].flags.writeable = False
        return known[self]

    def _groups(self, workload: Workload) -> NDArray[np.int64]:
        n = len(workload)
        within = np.ones(n, np.bool_)
        columns = JobColumns(workload)
        for column, names in self.where:
            named = alternatives(column, names)
            if len(named) > 1 or self.of_table:
                within &= _are_called(columns, named)
            else:  # a warning says which similar name the log has
                within &= columns.is_called(COLUMNS[named[0][0]], named[0][1])
        if ARRAY in self.each:
            within &= workload.columns[ARRAY] >= 0
        group = np.zeros(n, np.int64)
        if self.of_a_job:
            return np.where(within, np.arange(n), -1)
        for column in self.each:  # by rows of keys together it would take ten times as long
            values, number = distinct(workload.columns[COLUMNS[column]])
            _, group = distinct(group * len(values) + number)
        return np.where(within, group, -1)

    def of_cluster(self, amount: str) -> bool:
        """Return whether it says how many licences of an amount the cluster has."""
        is_licence = amount.startswith(LICENCE) and not amount_called(amount).of
        return is_licence and not (self.each or self.where or self.spares)

    def spared(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs may start though they exceed the quota, (n_jobs,)."""
        named = (pair for name in self.spares for pair in alternatives("queue", name))
        return _are_called(JobColumns(workload), named)


def alternatives(column: str, names: str) -> list[tuple[str, str]]:
    """Return the pairs of a column and a name that names such as ``a|partition=b`` match.

    >>> alternatives("queue", "a|partition=b")
    [('queue', 'a'), ('partition', 'b')]
    """
    parts = (name.rpartition("=") for name in names.split(OR))
    return [(own.strip() or column, name.strip()) for own, _, name in parts]


def _are_called(columns: JobColumns, named: Iterable[tuple[str, str]]) -> NDArray[np.bool_]:
    """Return which jobs have one of some names in its column, (n_jobs,)."""
    mask = np.zeros(len(columns.times), np.bool_)
    for column, name in named:
        mask |= columns.are_called(COLUMNS[column], (name,))
    return mask


def of_tables(quotas: Iterable[Quota]) -> list[Quota]:
    """Return quotas as those of a table of a site."""
    return [replace(quota, of_table=True) for quota in quotas]


def bind_jobs(quotas: Iterable[Quota]) -> bool:
    """Return whether one of some quotas bounds what jobs have together."""
    return any(not quota.of_a_job for quota in quotas)


def bound_submissions(quotas: Iterable[Quota]) -> bool:
    """Return whether one of some quotas bounds how many jobs may run or wait."""
    return any(quota.submitted for quota in quotas)


def are_budgets(quotas: Iterable[Quota]) -> bool:
    """Return whether one of some quotas bounds what jobs have used."""
    return any(amount_called(name).budget for quota in quotas for name in quota.running)


def weigh_time(quotas: Iterable[Quota]) -> bool:
    """Return whether one of some quotas bounds an amount weighed by time, such as gpu-minutes."""
    return any(amount_called(name).of for quota in quotas for name in quota.running)
