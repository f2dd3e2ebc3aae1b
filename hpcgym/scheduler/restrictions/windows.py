"""Windows in which processors or nodes are closed, to all jobs or to most."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import Clock, is_date, zone_of
from hpcgym.errors import HpcgymError
from hpcgym.files import check_is_there, head_of, is_there
from hpcgym.headers import header_number
from hpcgym.machine.failures import Failures
from hpcgym.machine.partitions import text_of_nodes
from hpcgym.names import RESERVATION
from hpcgym.scheduler import slurm_reservations
from hpcgym.scheduler.restrictions.quotas import MOST_BOUND, OR
from hpcgym.units import count_of, in_seconds
from hpcgym.workload.io.swf_header import called_in, names_of

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

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
        by_reservation = bool(self.reservations) and tells_reservations(workload)
        may = [
            np.isin(called_in(workload, column), names)
            for key, column in _WHO.items()
            if (names := getattr(self, key)) and by_reservation == (column == RESERVATION)
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
