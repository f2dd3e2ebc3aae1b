"""Restrictions on when jobs may run: quotas, maintenance windows and preemption."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import Clock, is_date, zone_of
from hpcgym.errors import HpcgymError, is_number, unknown
from hpcgym.files import check_is_there, head_of, header_number, is_there
from hpcgym.machine.failures import Failures
from hpcgym.machine.partitions import text_of_nodes
from hpcgym.names import ARRAY, LICENCE, RESERVATION, WITH_QOS
from hpcgym.scheduler import slurm_reservations
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.units import count_of, in_seconds
from hpcgym.workload.amounts import AMOUNTS, amount_called, amount_problem, asked_of
from hpcgym.workload.columns import distinct
from hpcgym.workload.io.swf_header import called_in, names_of

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload


# --- Quotas ---------------------------------------------------------------------------------------

#: Names by which jobs are grouped -> columns of their numbers. In logs of Slurm, queues are QOS.
COLUMNS = {**WITH_QOS, ARRAY: ARRAY}
#: Separates alternative names.
OR = "|"
#: The groups in which the jobs of workloads count, which most simulations ask for several times.
_GROUPS: WeakKeyDictionary[Workload, dict[Quota, NDArray[np.int64]]] = WeakKeyDictionary()
_SPARES = "spares"
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
        requested time, is at most the bound; time alone lets it start, to the second. Of one job
        also those of :data:`hpcgym.workload.amounts.OF_ONE_JOB`.
    spares : names of queues, or such as ``partition=short``, whose jobs count, but may exceed the
        bound: in Slurm another limit takes its place for them.
    least : amount -> the least that a job must ask for, likewise; only of one job.
    of_table : whether it stands in a table of a site, of which a log need not have all.

    Raises
    ------
    HpcgymError : an unknown column or amount, an amount of one job, or a least one, of several, or
        a bound that is not from 1, of resources from 0, to below 10^12.

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
        for part in (part.strip() for part in of.split("/")):
            column, equals, name = (piece.strip() for piece in part.partition("="))
            if column == _SPARES and equals:
                spares += map(str.strip, name.split(OR))
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
            return cls(tuple(each), tuple(where), amounts, tuple(spares), least)
        except HpcgymError as error:
            raise HpcgymError(f"quota {text!r}: {str(error).removeprefix('quota: ')}") from None

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


def weigh_time(quotas: Iterable[Quota]) -> bool:
    """Return whether one of some quotas bounds an amount weighed by time, such as gpu-minutes."""
    return any(amount_called(name).of for quota in quotas for name in quota.running)


# --- Windows --------------------------------------------------------------------------------------

_LATEST = 2**53  # [s] as of all times in a workload
_KEYS = "processors|nodes|accounts|users|reservations"
_TEXT = re.compile(rf"(?P<begin>[^/]+)/(?P<end>[^/]+?)(?P<more>(?::\s*(?:{_KEYS})\s*=[^:]*)*)")
_SUCH = {
    **{"processors": " processors=32", "nodes": " nodes=gpu,0-3", "users": " users=ann|bob"},
    **{"accounts": " accounts=physics", "reservations": " reservations=course"},
}
#: Who may use a window -> the columns of their numbers.
_WHO = {"accounts": "group_id", "users": "user_id", "reservations": RESERVATION}


@dataclass(frozen=True)
class Window:
    """A time at which processors or nodes are closed to jobs, known from the beginning.

    No job runs on them within it: a job starts only if it is predicted to end by ``begin``, or runs
    elsewhere. In the second of ``end`` jobs may start again. A window on nodes may be open to some
    jobs, as a reservation of Slurm is: these run there, and elsewhere, as if there were none.

    Attributes
    ----------
    begin, end : whole seconds of the log's clock, or dates such as ``2026-03-01T08:00``, in the
        zone of the log unless they name another; ``end`` is outside the window.
    processors : number of closed processors of a pool; None: all.
    nodes : closed nodes of a machine, as in its file: groups and numbers, ``gpu,0-3``; "": all.
    accounts, users, reservations : names, or numbers without a name: of jobs of these accounts (a
        log's groups) or users it is open to each, or, if it names reservations and the log tells of
        any (``--reservation`` of Slurm, the column ``reservation``), to those that asked for these.
    printed : whether a site printed it, of whose nodes the machine need not have all: it closes
        those that the machine has.

    Raises
    ------
    HpcgymError : an invalid time, an end that is not after the beginning, processors that are
        no whole number from 1 to 2^31, or processors beside nodes.

    Examples
    --------
    >>> from hpcgym.scheduler.restrictions import Window
    >>> print(Window("2026-03-01T08:00", "2026-03-02T08:00", nodes="gpu,0-3"))
    2026-03-01T08:00/2026-03-02T08:00:nodes=gpu,0-3
    """

    begin: int | str
    end: int | str
    processors: int | None = None
    nodes: str = ""
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()
    printed: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("begin", "end"):
            object.__setattr__(self, name, _time(name, getattr(self, name)))
        if isinstance(self.begin, int) and isinstance(self.end, int) and self.end <= self.begin:
            raise HpcgymError("window: its end must be after its beginning")
        width = self.processors
        whole = isinstance(width, int) and not isinstance(width, bool)
        if width is not None and not (whole and 1 <= width <= MOST_BOUND):
            raise HpcgymError(
                f"window: processors must be a whole number from 1 on, not {self.processors!r}"
            )
        if not isinstance(self.nodes, str) or any(sign in self.nodes for sign in "/;"):
            raise HpcgymError(f"window: nodes must be a text such as 'gpu,0-3', not {self.nodes!r}")
        if self.nodes and width is not None:
            raise HpcgymError(f"window {self}: it takes nodes or processors, not both")
        for key in _WHO:
            names = getattr(self, key)
            if not isinstance(names, list | tuple) or not all(map(_is_name, names)):
                raise HpcgymError(
                    f"window: {key} must be names without / : ; | =, or - in front, not {names!r}"
                )
            object.__setattr__(self, key, tuple(names))
        if self.open_to and width is not None:
            raise HpcgymError(f"window {self}: nodes are open to some jobs, processors to none")

    @property
    def open_to(self) -> tuple[tuple[str, ...], ...]:
        """The accounts, users and reservations whose jobs may use it; empty if no job may."""
        who = tuple(getattr(self, key) for key in _WHO)
        return who if any(who) else ()

    def may_use(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs it is open to, (n_jobs,).

        If it names reservations, and the log tells any, these are the jobs that asked for one of
        them, as in Slurm. Else a job must be of its accounts and of its users, where it names both.
        """
        told = bool(self.reservations) and tells_reservations(workload)
        may = [
            np.isin(called_in(workload, column), names)
            for key, column in _WHO.items()
            if (names := getattr(self, key)) and told == (column == RESERVATION)
        ]
        return np.logical_and.reduce(may) if may else np.zeros(len(workload), np.bool_)

    def __str__(self) -> str:
        of = f":nodes={self.nodes}" if self.nodes else ""
        of = of if self.processors is None else f":processors={self.processors}"
        who = {key: OR.join(map(str, getattr(self, key))) for key in _WHO}
        of += "".join(f":{key}={names}" for key, names in who.items() if names)
        return f"{self.begin}/{self.end}{of}"

    @classmethod
    def parse(cls, text: str) -> Window:
        """Return the window of a text such as ``86400/172800:processors=32``.

        Raises
        ------
        HpcgymError : it is not one.
        """
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise HpcgymError(
                f"window {text!r}: it must be BEGIN/END such as 2026-03-01T08:00/2026-03-02T08:00,"
                " with :processors=32 or :nodes=gpu,0-3 behind it if it is not all, and on nodes"
                " :accounts=, :users= or :reservations= of those whose jobs may run in it; several"
                " are separated by ;"
            )
        given: dict[str, Any] = {}
        for key, _, of in (part.partition("=") for part in match["more"].split(":")[1:]):
            key, of = key.strip(), of.strip()
            if not of or key in given:
                why = "stands there twice" if of else "names none; such as"
                raise HpcgymError(f"window {text!r}: {key}= {why}{_SUCH[key] * (not of)}")
            given[key] = tuple(map(str.strip, of.split(OR))) if key in _WHO else of
            if key == "processors":
                given[key] = count_of(of)
                if given[key] is None:
                    raise HpcgymError(
                        f"window {text!r}: processors must be a whole number, not {of!r}"
                    )
        try:
            return cls(match["begin"], match["end"], **given)
        except HpcgymError as error:
            raise HpcgymError(f"window {text!r}: {str(error).removeprefix('window: ')}") from None

    def seconds(self, header: Mapping[str, list[str]]) -> tuple[int, int]:
        """Return when it begins and ends [s] on the clock of a log, at second 0 or later.

        Raises
        ------
        HpcgymError : a date, and the log has no clock; an end before the log begins; or an end that
            is not after the window's beginning.
        """
        begin, end = (second_of(time, header, f"window {self}") for time in (self.begin, self.end))
        if end <= begin:
            raise HpcgymError(f"window {str(self)!r}: its end must be after its beginning")
        if end <= 0:
            raise HpcgymError(f"window {str(self)!r} is over before the log begins")
        if end > _LATEST:
            raise HpcgymError(f"window {str(self)!r} ends too late: after second {_LATEST:,}")
        return max(begin, 0), end


def tells_reservations(workload: Workload) -> bool:
    """Tell whether a log says which jobs asked for reservations."""
    column = workload.columns[RESERVATION]
    return bool(names_of(workload, RESERVATION)) or bool((column >= 0).any())


def _is_name(name: Any) -> bool:
    """Tell whether a window can name it."""
    if not isinstance(name, str) or name.strip() != name or name.startswith("-"):
        return False
    return name != "" and not set("/:;|=") & {*name}


def second_of(time: int | str, header: Mapping[str, list[str]], what: str) -> int:
    """Return the second of a log's clock at which a time is, which may be a date.

    Raises
    ------
    HpcgymError : a date, and the log does not tell the date at which it begins; the message begins
        with ``what``.
    """
    if isinstance(time, int):
        return time
    zero = header_number(header, "UnixStartTime", least=0)
    if zero is None:
        raise HpcgymError(
            f"{what}: the log does not tell the date at which it begins; give whole seconds of its"
            " clock"
        )
    return Clock(zone_of(header)[1]).seconds(time) - zero


def read_windows(value: Any) -> tuple[Window, ...]:
    """Return the windows that a text, a file or Windows describe; none for None.

    Parameters
    ----------
    value : a text with ``;`` between windows; Windows; what ``scontrol show reservation`` printed
        (:mod:`hpcgym.scheduler.slurm_reservations`); or a CSV file of failures, read as planned
        ones: failures with the same begin and repair are one window.

    Raises
    ------
    HpcgymError : the value is no window, or the file holds no failures.

    Examples
    --------
    >>> from hpcgym.scheduler.restrictions import read_windows
    >>> [window.processors for window in read_windows("0/60; 3600/7200:processors=8")]
    [None, 8]
    """
    if value is None:
        return ()
    if isinstance(value, str | os.PathLike) and is_there(value):
        path = Path(value)
        if head_of(path).startswith(slurm_reservations.BEGINNINGS):
            value = slurm_reservations.read_reservations(path, Window)
        else:
            value = _planned(Failures.read(path))
    elif isinstance(value, Window | str | os.PathLike):
        check_is_there(value)
        if "/" not in str(value):
            raise HpcgymError(
                f"window {value!r} is neither a file nor BEGIN/END, such as"
                " 2026-03-01T08:00/2026-03-02T08:00"
            )
        value = [Window.parse(part) for part in str(value).split(";") if part.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(part, Window) for part in value):
        raise HpcgymError(f"maintenance must be a text BEGIN/END, a file or Windows, not {value!r}")
    return tuple(value)


def _planned(failures: Failures) -> list[Window]:
    """Return failures of nodes as windows."""
    nodes: dict[tuple[int, int], list[int]] = {}
    rows = zip(*(column.tolist() for column in vars(failures).values()), strict=True)
    for node, time, repaired in rows:
        nodes.setdefault((time, repaired), []).append(node)
    return [Window(*times, nodes=text_of_nodes(group)) for times, group in nodes.items()]


def _time(name: str, value: Any) -> int | str:
    """Return whole seconds, or the text of a date, checked."""
    seconds = in_seconds(value, name)
    if isinstance(seconds, int) and not isinstance(seconds, bool) and 0 <= seconds <= _LATEST:
        return seconds
    if isinstance(value, str):
        text = value.strip()
        if is_date(text):
            try:
                Clock("UTC").seconds(text)
                return text
            except ValueError:
                pass
    raise HpcgymError(
        f"window: {name} must be whole seconds of the log's clock or a date such as"
        f" 2026-03-01T08:00, not {value!r}"
    )


# --- Preemption -----------------------------------------------------------------------------------

#: Mode -> what happens to stopped jobs.
MODES = {
    "requeue": "they wait again, and then run from the beginning",
    "cancel": "they do not run again",
    "suspend": "they give up their processors, and later go on where they were",
}
_TIMES = {"exempt": "PreemptExemptTime", "grace": "GraceTime"}  # as Slurm calls them
_LONGEST = 10**9  # [s]
SUCH = "'partition:interactive>batch'"  # in messages


@dataclass(frozen=True)
class Preemption:
    """Which jobs may stop which others, and what happens to stopped jobs.

    Attributes
    ----------
    column : the column whose names group jobs, of :data:`hpcgym.names.WITH_QOS`.
    pairs : (one, other) names, or numbers without a name: jobs of one may stop jobs of other.
    mode : a name of :data:`MODES`.
    exempt : (name, seconds): a job of this name cannot be stopped before it has run for so long;
        each of its runs counts anew.
    grace : (name, seconds): a job of this name runs on for so long once it is to stop.

    Raises
    ------
    HpcgymError : an unknown column or mode; no pairs; pairs that form a circle; a name that cannot
        stand in a text; times of names that are never stopped; or times with "suspend", with which
        Slurm has none either.

    Examples
    --------
    >>> from hpcgym.scheduler.restrictions import Preemption
    >>> print(Preemption.parse("partition:debug>interactive>batch,cancel"))
    partition:debug>interactive;debug>batch;interactive>batch,cancel
    """

    column: str
    pairs: tuple[tuple[str, str], ...]
    mode: str = "requeue"
    exempt: tuple[tuple[str, int], ...] = ()
    grace: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.column not in WITH_QOS:
            raise HpcgymError(f"preemption: {unknown('column', self.column, WITH_QOS)}")
        if self.mode not in MODES:
            raise HpcgymError(f"preemption: {unknown('mode', self.mode, MODES)}")
        for name in (name for pair in self.pairs for name in pair):
            if not name:
                raise HpcgymError(f"preemption: a name is missing; it must be such as {SUCH}")
            column, colon, rest = name.partition(":")
            if colon and column in WITH_QOS:
                raise HpcgymError(
                    f"preemption: one column is for all names, {self.column}: {rest!r} stands with"
                    f" another, {column}"
                )
            if any(sign in name for sign in ">;,") or name != name.strip():
                raise HpcgymError(
                    f"preemption: no name has blanks at its ends, or > ; , as {name!r}"
                )
        if not self.pairs:
            raise HpcgymError(f"preemption: it has no pairs; it must be such as {SUCH}")
        assert self.levels  # or there is an error
        for kind in _TIMES:
            self._check_times(kind)

    def _check_times(self, kind: str) -> None:
        """Put the times of a kind in order; raise an HpcgymError if they are invalid."""
        given = [(name, in_seconds(seconds, kind)) for name, seconds in getattr(self, kind)]
        if given and self.mode == "suspend":
            raise HpcgymError(
                f"preemption: {kind} goes with requeue and cancel; with suspend Slurm ignores such"
                f" a time, {_TIMES[kind]}"
            )
        names = [name for name, _ in given]
        for name, seconds in given:
            if name not in self.stopped:
                raise HpcgymError(f"preemption: {kind}: no job may stop jobs of {name!r}")
            if names.count(name) > 1:
                raise HpcgymError(f"preemption: {kind}: {name!r} is there twice")
            if not (is_number(seconds) and seconds == int(seconds) and 1 <= seconds <= _LONGEST):
                raise HpcgymError(
                    f"preemption: {kind}: seconds must be a whole number from 1 to {_LONGEST:,},"
                    f" not {seconds!r}"
                )
        in_order = sorted(given, key=lambda pair: self.stopped.index(pair[0]))
        object.__setattr__(self, kind, tuple((name, int(s)) for name, s in in_order))

    def __str__(self) -> str:
        mode = "" if self.mode == "requeue" else f",{self.mode}"
        text = f"{self.column}:{';'.join('>'.join(pair) for pair in self.pairs)}{mode}"
        for kind in _TIMES:
            given: tuple[tuple[str, int], ...] = getattr(self, kind)
            times = {seconds for _, seconds in given}
            if len(given) == len(self.stopped) and len(times) == 1:
                text += f",{kind}={next(iter(times))}"
            elif given:
                text += f",{kind}={';'.join(f'{name}={seconds}' for name, seconds in given)}"
        return text

    @classmethod
    def parse(cls, text: str) -> Preemption:
        """Return the preemption of a text such as ``partition:debug>interactive>batch,requeue``.

        Exempt times [s] may follow, of all names, ``,exempt=600``, or of some,
        ``,exempt=batch=600;interactive=60``; and grace times likewise, ``,grace=120``.

        Raises
        ------
        HpcgymError : it is not one.
        """
        column, colon, rest = text.partition(":")
        chains, *words = (word.strip() for word in rest.split(","))
        times: dict[str, str] = {}
        while words and (kind := words[-1].partition("=")[0]) in _TIMES and "=" in words[-1]:
            if kind in times:
                raise HpcgymError(f"preemption {text!r}: {kind} is there twice")
            times[kind] = words.pop().removeprefix(f"{kind}=")
        if not colon or ">" not in chains:
            raise HpcgymError(f"preemption {text!r} is no rule such as {SUCH}")
        pairs = []
        for chain in filter(None, (chain.strip() for chain in chains.split(";"))):
            names = [name.strip() for name in chain.removeprefix(f"{column}:").split(">")]
            if len(names) < 2:
                raise HpcgymError(f"preemption {text!r}: {chain!r} is no pair such as 'a>b'")
            pairs += [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        unique = tuple(dict.fromkeys(pairs))
        mode = ",".join(words) if words else "requeue"
        parsed = {kind: _times_of(times[kind], unique) for kind in times}
        return cls(column.strip(), unique, mode, **parsed)

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each name: 0 if it may stop none, else 1 + the highest that it may stop."""
        levels = dict.fromkeys((name for pair in self.pairs for name in pair), 0)
        for _ in range(len(levels) + 1):
            before = dict(levels)
            for stopper, other in self.pairs:
                levels[stopper] = max(levels[stopper], levels[other] + 1)
            if levels == before:
                return levels
        raise HpcgymError(f"preemption: jobs could stop each other in a circle: {self}")

    def groups(self, workload: Workload) -> NDArray[np.int64]:
        """Return the group of each job, (n_jobs,) int64: its place in ``levels``, -1 if none."""
        group = np.full(len(workload), -1, np.int64)
        columns = JobColumns(workload)
        for place, name in enumerate(self.levels):
            group[columns.is_called(WITH_QOS[self.column], name)] = place
        return group

    @property
    def stopped(self) -> tuple[str, ...]:
        """The names whose jobs may be stopped."""
        return _stopped(self.pairs)

    def of_groups(self, times: tuple[tuple[str, int], ...]) -> NDArray[np.int64]:
        """Return :attr:`exempt` or :attr:`grace` of each group, (G,) int64 [s]; 0 of others."""
        seconds = dict(times)
        return np.array([seconds.get(name, 0) for name in self.levels], np.int64)

    @property
    def may(self) -> NDArray[np.bool_]:
        """Whether the jobs of one group may stop those of another, (G, G)."""
        place = {name: i for i, name in enumerate(self.levels)}
        may = np.zeros((len(place), len(place)), np.bool_)
        for stopper, other in self.pairs:
            may[place[stopper], place[other]] = True
        return may


def _times_of(text: str, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, Any], ...]:
    """Return the names and seconds of ``600``, which is of all, or ``a=600;b=60``."""
    names = _stopped(pairs)
    times: list[tuple[str, Any]] = []
    for part in text.split(";"):
        name, equals, seconds = (word.strip() for word in part.rpartition("="))
        times += [(stopped, in_seconds(seconds)) for stopped in ([name] if equals else names)]
    return tuple(times)


def _stopped(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names whose jobs may be stopped, once each."""
    return tuple(dict.fromkeys(name for _, name in pairs))


def by_tier(tiers: Iterable[tuple[str, int]]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of names with tiers: each may stop all that have a lower tier."""
    known = sorted(tiers, key=lambda item: -item[1])
    return tuple((a, b) for a, high in known for b, low in known if low < high)
