"""Windows: times at which a machine, or a part of it, is closed to jobs, as for maintenance."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpcgym.cluster.failures import Failures
from hpcgym.cluster.partitions import text_of_nodes
from hpcgym.errors import HpcgymError
from hpcgym.files.headers import header_number
from hpcgym.files.opening import check_is_there
from hpcgym.workload.io.times import Clock, is_date, zone_of

_LATEST = 2**53  # [s] as of all times in a workload
_MOST = 2**31
_TEXT = re.compile(
    r"(?P<begin>[^/]+)/(?P<end>[^/]+?)(?::\s*(?P<what>processors|nodes)\s*=(?P<of>.*))?"
)


@dataclass(frozen=True)
class Window:
    """A time at which processors or nodes are closed to jobs; from the beginning everyone knows it.

    No job runs on them within it: one starts only if it ends by ``begin``, as predicted, or runs
    elsewhere. In the very second of ``end`` one may start.

    Attributes
    ----------
    begin, end : whole seconds of the log's clock, or dates such as ``2026-03-01T08:00``, in the
        zone of the log unless they tell another; ``end`` is not in it.
    processors : of a pool; None: all.
    nodes : of a machine of nodes, as in its file: groups and numbers, ``gpu,0-3``; "": all.

    Raises
    ------
    HpcgymError : a time that is none, an end that is not after the beginning, processors that are
        no whole number from 1 to 2^31, or processors beside nodes.

    Examples
    --------
    >>> from hpcgym.scheduler.windows import Window
    >>> print(Window("2026-03-01T08:00", "2026-03-02T08:00", nodes="gpu,0-3"))
    2026-03-01T08:00/2026-03-02T08:00:nodes=gpu,0-3
    """

    begin: int | str
    end: int | str
    processors: int | None = None
    nodes: str = ""

    def __post_init__(self) -> None:
        for name in ("begin", "end"):
            object.__setattr__(self, name, _time(name, getattr(self, name)))
        if isinstance(self.begin, int) and isinstance(self.end, int) and self.end <= self.begin:
            raise HpcgymError("window: its end must be after its beginning")
        width = self.processors
        whole = isinstance(width, int) and not isinstance(width, bool)
        if width is not None and not (whole and 1 <= width <= _MOST):
            raise HpcgymError(
                f"window: processors must be a whole number from 1 on, not {self.processors!r}"
            )
        if not isinstance(self.nodes, str) or any(sign in self.nodes for sign in "/;"):
            raise HpcgymError(f"window: nodes must be a text such as 'gpu,0-3', not {self.nodes!r}")
        if self.nodes and width is not None:
            raise HpcgymError(f"window {self}: it takes nodes or processors, not both")

    def __str__(self) -> str:
        of = f":nodes={self.nodes}" if self.nodes else ""
        of = of if self.processors is None else f":processors={self.processors}"
        return f"{self.begin}/{self.end}{of}"

    @classmethod
    def parse(cls, text: str) -> Window:
        """Return the window of a text such as ``86400/172800:processors=32``.

        Raises
        ------
        HpcgymError : it is none.
        """
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise HpcgymError(
                f"window {text!r}: it must be BEGIN/END such as 2026-03-01T08:00/2026-03-02T08:00,"
                " with :processors=32 or :nodes=gpu,0-3 behind it if it is not all; several are"
                " separated by ;"
            )
        of = (found["of"] or "").strip()
        if found["what"] == "nodes" and not of:
            raise HpcgymError(f"window {text!r}: nodes= names none; such as nodes=gpu,0-3")
        if found["what"] == "processors" and not (of.isascii() and of.isdigit()):
            raise HpcgymError(f"window {text!r}: processors must be a whole number, not {of!r}")
        try:
            if found["what"] == "processors":
                return cls(found["begin"], found["end"], processors=int(of))
            return cls(found["begin"], found["end"], nodes=of)
        except HpcgymError as error:
            raise HpcgymError(f"window {text!r}: {str(error).removeprefix('window: ')}") from None

    def seconds(self, header: Mapping[str, list[str]]) -> tuple[int, int]:
        """Return when it begins and ends [s] on the clock of a log, at second 0 or later.

        Raises
        ------
        HpcgymError : dates that the log has no clock for, an end before the log begins, or one that
            is not after the window's own beginning.
        """
        begin, end = (self._second(time, header) for time in (self.begin, self.end))
        if end <= begin:
            raise HpcgymError(f"window {str(self)!r}: its end must be after its beginning")
        if end <= 0:
            raise HpcgymError(f"window {str(self)!r} is over before the log begins")
        if end > _LATEST:
            raise HpcgymError(f"window {str(self)!r} ends too late: after second {_LATEST:,}")
        return max(begin, 0), end

    def _second(self, time: int | str, header: Mapping[str, list[str]]) -> int:
        if isinstance(time, int):
            return time
        zero = header_number(header, "UnixStartTime", least=0)
        if zero is None:
            raise HpcgymError(
                f"window {self}: the log does not tell by which date it begins; give whole seconds"
                " of its clock"
            )
        return Clock(zone_of(header)[1]).seconds(time) - zero


def windows_of(text: str | None) -> tuple[Window, ...]:
    """Return the windows of a text, one after the other with ``;`` between them.

    Raises
    ------
    HpcgymError : one of them is none.

    Examples
    --------
    >>> from hpcgym.scheduler.windows import windows_of
    >>> [window.processors for window in windows_of("0/60; 3600/7200:processors=8")]
    [None, 8]
    """
    return tuple(Window.parse(part) for part in (text or "").split(";") if part.strip())


def window_text(value: Any) -> str | None:
    """Return windows as the text that :func:`windows_of` takes, or None.

    Parameters
    ----------
    value : such a text, windows, or a CSV file of failures, which are planned then: those of the
        same time and repair are a window.

    Raises
    ------
    HpcgymError : what is no window, or a file that does not hold failures.
    """
    if value is None:
        return None
    if isinstance(value, str | os.PathLike) and os.path.isfile(value):
        value = _planned(Failures.read(value))
    elif isinstance(value, Window | str | os.PathLike):
        check_is_there(value)
        if "/" not in str(value):
            raise HpcgymError(
                f"window {value!r} is neither a file nor BEGIN/END, such as"
                " 2026-03-01T08:00/2026-03-02T08:00"
            )
        value = windows_of(str(value))
    if not isinstance(value, list | tuple) or not all(isinstance(one, Window) for one in value):
        raise HpcgymError(f"maintenance must be a text BEGIN/END, a file or Windows, not {value!r}")
    return "; ".join(map(str, value)) or None


def _planned(failures: Failures) -> list[Window]:
    """Return failures of nodes as windows."""
    nodes: dict[tuple[int, int], list[int]] = {}
    rows = zip(*(column.tolist() for column in vars(failures).values()), strict=True)
    for node, time, repaired in rows:
        nodes.setdefault((time, repaired), []).append(node)
    return [Window(*times, nodes=text_of_nodes(some)) for times, some in nodes.items()]


def _time(name: str, value: Any) -> int | str:
    """Return whole seconds, or the text of a date, checked."""
    text = str(value).strip()
    if isinstance(value, int | str) and not isinstance(value, bool):
        if text.isascii() and text.isdigit() and int(text) <= _LATEST:
            return int(text)
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
