"""The header of an SWF file: what it says of the log, of names, and of a schedule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.files.recorded import KEY
from hpcgym.headers import header_number, plain_number
from hpcgym.names import NAME_COLUMNS, printable

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload


# --- The header of an SWF file --------------------------------------------------------------------

#: The keys of SWF 2.2; they are recognised in any case and at any indentation.
KEYS = (
    *("Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion"),
    *("MaxJobs", "MaxRecords", "Preemption", "UnixStartTime", "TimeZone", "TimeZoneString"),
    *("StartTime", "EndTime", "MaxNodes", "MaxProcs", "MaxRuntime", "MaxMemory", "AllowOveruse"),
    *("MaxQueues", "Queues", "Queue", "MaxPartitions", "Partitions", "Partition", "Note"),
)
_SPELLING = {key.casefold(): key for key in KEYS}
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_ENTRY = re.compile(r"(\s*)(\w+)\s*:(?!//)(.*)", re.DOTALL)

#: Text that belongs to no key stands under this one.
FREE_TEXT = ""

#: What a note begins with that has the record of a file.
RECORD = f"{KEY}: {{"

_CONTINUATION = ";   "  # three blanks, so that reading takes no word of the text for a new key


class HeaderReader:
    """Collects comment lines into ``entries``, ``{"MaxProcs": ["128"], "Queue": [...], ...}``.

    A repeated key has one value for each time it stands there; a line without a key continues the
    value before it as a further line of it, or is free text after the first job.
    """

    def __init__(self) -> None:
        # key -> for each time that it stands there its line, and the lines of its value
        self._entries: dict[str, list[tuple[int, list[str]]]] = {}
        self._open = FREE_TEXT
        self.count = 0

    def add(self, comment: bytes, line: int, after_jobs: bool) -> None:
        """Add one comment line, from its semicolon on; it may stand after the first job."""
        self.count += 1
        if after_jobs:
            self._open = FREE_TEXT
        try:
            text = comment.decode()
        except UnicodeDecodeError:
            text = comment.decode("latin-1")
        text = text.strip().removeprefix(";").rstrip()
        entry = _ENTRY.fullmatch(text)
        key = _SPELLING.get(entry[2].casefold()) if entry else None
        if entry and (key or len(entry[1]) <= 2):
            self._open = key or entry[2]
            self._entries.setdefault(self._open, []).append((line, [entry[3].strip()]))
        elif self._open != FREE_TEXT:
            self._entries[self._open][-1][1].append(text.strip())
        elif text:
            self._entries.setdefault(FREE_TEXT, []).append((line, [text.strip()]))

    def finish(self) -> dict[str, list[str]]:
        """Return the entries, without blank lines at the end of a value.

        The record of where a file is from is left out: it is of that file, not of its jobs.
        """
        entries = {
            key: ["\n".join(lines).strip() for _, lines in values]
            for key, values in self._entries.items()
        }
        if "Note" in entries:
            entries["Note"] = [note for note in entries["Note"] if not note.startswith(RECORD)]
        return {key: values for key, values in entries.items() if values}

    def number(self, key: str, where: str) -> tuple[int | None, list[str]]:
        """Return the first whole number of at least 1 that a key tells, and what is odd, in words.

        None: it tells none. Odd are an entry that tells none, as ``-1``, and entries that tell
        several.

        Raises
        ------
        WorkloadError : an entry before it is no plain whole number; ``where`` and the line come
            first.
        """
        size, taken = None, ""
        odd: list[str] = []
        for line, (text, *_) in self._entries.get(key, ()):
            shown = f"{text[:40]!r} (line {line})"
            try:
                number = plain_number(key, text) or 0
            except HpcgymError as error:
                if size is None:
                    raise WorkloadError(f"{where}, line {line}: {error}") from None
                number = -1  # another one, whichever it is
            if size is None and number:
                size, taken, odd = number, shown, []
            elif size is None and text:
                odd.append(f"{key} is {shown}, no size of a machine")
            elif number not in (0, size):
                odd.append(f"{key} is {taken} and {shown}")
        return size, odd[:1]

    def machine_size(self, where: str) -> tuple[int | None, str]:
        """Return the processors that the header tells, and what is odd about them, in words.

        They are MaxProcs, else MaxNodes, else None.

        Raises
        ------
        WorkloadError : as :meth:`number`.
        """
        size, odd = self.number("MaxProcs", where)
        if size is None:
            size, more = self.number("MaxNodes", where)
            odd = odd + more
        return size, "; ".join(odd)


def numbered_names(header: Mapping[str, list[str]], key: str) -> dict[int, str]:
    """Return the names of numbers that the lines of a key tell, such as ``Queue: 1 short``."""
    names = {}
    for line in header.get(key, ()):
        number, _, name = line.strip().partition(" ")
        if _WHOLE.fullmatch(number) and name.strip():
            names[int(number)] = printable(name)
    return names


def _tells_other(header: Mapping[str, list[str]], processors: int) -> bool:
    """Tell whether a reader would take another size of the machine from a header, or refuse it."""
    try:
        for entry in header.get("MaxProcs", ()):
            plain_number("MaxProcs", entry.partition("\n")[0])
    except HpcgymError:
        return True
    size = header_number(header, "MaxProcs") or header_number(header, "MaxNodes")
    return size != processors


def header_lines(header: Mapping[str, list[str]], processors: int) -> Iterator[str]:
    """Return the comment lines of a header that tells the version and the machine's size."""
    entries = {"Version": ["2.2"], **header}
    if _tells_other(header, processors):
        entries["MaxProcs"] = [str(processors)]
    for value in entries.pop(FREE_TEXT, []):
        yield from (f"{_CONTINUATION}{line}".rstrip() for line in value.splitlines())
    for key, values in entries.items():
        for value in values:
            first, *others = value.splitlines() or [""]
            yield f"; {key}: {first}".rstrip()
            yield from (f"{_CONTINUATION}{line}".rstrip() for line in others)


# --- Names of users, groups, codes, queues and partitions -----------------------------------------
#
# A line ``User: 7 alice`` of a workload's header says that the user with number 7 is called alice.
# So names stay with jobs through every cleaning and slice, and in SWF they are comments. SWF
# itself knows the keys ``Queue`` and ``Partition``.

#: Column of numbers that stand for names -> the key of their lines in a header.
HEADER_KEYS = {
    column: word.removesuffix("_name").capitalize() for word, column in NAME_COLUMNS.items()
}

#: What they are called in messages.
_MEANT = {
    "user": "a user",
    "group": "a group",
    "code": "a code",
    "queue_name": "a queue",
    "partition_name": "a partition",
    "constraint_name": "a constraint",
    "reservation_name": "a reservation",
}


def clock_of(workload: Workload) -> int:
    """Return the time of the week at the log's time 0 [s], by its header, else Monday 0 h."""
    began = header_number(workload.header, "UnixStartTime", least=0)
    return 0 if began is None else (began - 4 * 86_400) % 604_800  # the epoch was a Thursday


def names_of(workload: Workload, column: str) -> dict[int, str]:
    """Return the names of the numbers in a column that the header tells, of ``HEADER_KEYS``.

    Of other columns, such as ``array``, it tells none.

    >>> import hpcgym
    >>> jobs = hpcgym.load_workload("lublin:jobs=2,processors=4,seed=0")
    >>> names_of(jobs, "user_id")
    {}
    """
    key = HEADER_KEYS.get(column)
    return {} if key is None else numbered_names(workload.header, key)


def called_in(workload: Workload, column: str) -> NDArray[np.object_]:
    """Return what the number of each job in a column is called, (n_jobs,): as partitions are."""
    numbers, place = np.unique(workload.columns[column], return_inverse=True)
    names = names_of(workload, column)
    texts = [names.get(n, str(n)) if n >= 0 else "" for n in numbers.tolist()]
    return np.array(texts, dtype=object)[place.reshape(-1)]


def partitions_of(workload: Workload) -> NDArray[np.object_]:
    """Return the partition that each job names, (n_jobs,): a name, or the number; "" of none."""
    return called_in(workload, "partition")


def called(names: Mapping[int, str], kind: str, number: int) -> str:
    """Return what tables and pictures call a number: its name, ``user 7`` or ``unknown user``."""
    return names.get(number, f"{kind} {number}" if number >= 0 else f"unknown {kind}")


def name_all(table: pd.DataFrame, workload: Workload) -> pd.DataFrame:
    """Return a table of the jobs of a workload with names behind the numbers that it has.

    Columns are called as in :data:`hpcgym.names.NAME_COLUMNS`; what has no names has no column.
    A column that is there already stays as it is.
    """
    named = table.copy()
    for column, numbers in NAME_COLUMNS.items():
        names = names_of(workload, numbers)
        if names and numbers in named and column not in named:
            kind = HEADER_KEYS[numbers].lower()
            texts = [called(names, kind, number) for number in named[numbers].tolist()]
            named.insert(list(named.columns).index(numbers) + 1, column, texts)
    return named


def check_name(name: Any, column: str = "code") -> str:
    """Return a name that may stand in a header, or say that it is not one.

    Names stand in lines of headers: they are printable, not empty, and have no blanks at the ends.

    Parameters
    ----------
    name : what is written.
    column : of tables with such names, one of :data:`hpcgym.names.NAME_COLUMNS`.

    Raises
    ------
    WorkloadError : it is not one.
    """
    if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
        raise WorkloadError(f"{name!r} is no name of {_MEANT[column]}: a text, on one line")
    return name


def name_lines(names: Mapping[int, str]) -> list[str]:
    """Return the lines of a header that tell the names of numbers, in their order."""
    return [f"{number} {names[number]}" for number in sorted(names)]


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Return names with their numbers: from 1 on, in the order in which they first stand there."""
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


# --- The SWF header of a schedule -----------------------------------------------------------------

#: What a log's header says of its clock, and of numbers that jobs have: true of any schedule.
_OF_THE_JOBS = (
    *("UnixStartTime", "TimeZone", "TimeZoneString", "StartTime"),
    *("MaxQueues", "MaxPartitions", *HEADER_KEYS.values()),
)
#: Said anew, so that the log's need not be told.
_RENEWED = ("Version", "MaxJobs", "MaxRecords", "MaxNodes", "MaxProcs", "Preemption")


def schedule_header(
    header: Mapping[str, list[str]],
    made: Iterable[str],
    jobs: int,
    processors: int,
    nodes: int | None = None,
) -> dict[str, list[str]]:
    """Return the header of a schedule of the jobs of a log.

    What the log's header says of another scheduler and another machine does not hold for the
    schedule. So only its clock and the names of numbers stay as they are. The rest becomes notes
    which say that they are of the original log, a line each.

    Parameters
    ----------
    header : of the workload that was simulated.
    made : notes of what made the schedule, a line each.
    jobs : their number.
    processors, nodes : of the machine; nodes None: a pool.
    """
    kept = {key: list(values) for key, values in header.items() if key in _OF_THE_JOBS}
    original = [
        f"original log: {key}: {line.strip()}" if key != FREE_TEXT else f"original log: {line}"
        for key, values in header.items()
        if key not in _OF_THE_JOBS and key not in _RENEWED
        for value in values
        for line in value.splitlines()
        if line.strip()
    ]
    return {
        "Version": ["2.2"],
        "MaxJobs": [str(jobs)],
        "MaxRecords": [str(jobs)],
        "Preemption": ["No"],
        **({} if nodes is None else {"MaxNodes": [str(nodes)]}),
        "MaxProcs": [str(processors)],
        **kept,
        "Note": [*made, *original],
    }
