"""The header of an SWF file: comment lines ``; Key: value`` about the machine and the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.files import header_number, plain_number
from hpcgym.files.recorded import KEY
from hpcgym.naming import printable

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
        self._entries: dict[str, list[list[str]]] = {}
        self._lines: dict[str, list[int]] = {}  # of each entry
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
            self._entries.setdefault(self._open, []).append([entry[3].strip()])
            self._lines.setdefault(self._open, []).append(line)
        elif self._open != FREE_TEXT:
            self._entries[self._open][-1].append(text.strip())
        elif text:
            self._entries.setdefault(FREE_TEXT, []).append([text.strip()])

    def finish(self) -> dict[str, list[str]]:
        """Return the entries, without blank lines at the end of a value.

        The record of where a file is from is left out: it is of that file, not of its jobs.
        """
        entries = {
            key: ["\n".join(lines).strip() for lines in values]
            for key, values in self._entries.items()
        }
        if "Note" in entries:
            entries["Note"] = [note for note in entries["Note"] if not note.startswith(RECORD)]
        return {key: values for key, values in entries.items() if values}

    def number(self, key: str, where: str) -> int | None:
        """Return the first whole number of at least 1 that a key tells; None if it tells none.

        Raises
        ------
        WorkloadError : an entry that is no plain whole number; ``where`` and the line come first.
        """
        for lines, line in zip(self._entries.get(key, ()), self._lines.get(key, ()), strict=True):
            try:
                number = plain_number(key, lines[0])
            except HpcgymError as error:
                raise WorkloadError(f"{where}, line {line}: {error}") from None
            if number is not None and number >= 1:
                return number
        return None

    def machine_size(self, where: str) -> tuple[int | None, str]:
        """Return the processors that the header tells, and what is odd about them, in words.

        They are MaxProcs, else MaxNodes, else None. Odd are an entry that tells no size, as ``-1``,
        and entries that tell several.

        Raises
        ------
        WorkloadError : as :meth:`number`.
        """
        odd = []
        for key in ("MaxProcs", "MaxNodes"):
            number = self.number(key, where)
            places = zip(self._entries.get(key, ()), self._lines.get(key, ()), strict=True)
            told = [
                (_told(key, lines[0]), f"{lines[0][:40]!r} (line {line})", lines[0])
                for lines, line in places
            ]
            if number is not None:
                taken = next(text for size, text, _ in told if size == number)
                others = [text for size, text, _ in told if size not in (None, number)]
                odd += [f"{key} is {taken} and {others[0]}"] if others else []
                return number, "; ".join(odd)
            none = [f"{key} is {text}, no size of a machine" for _, text, words in told if words]
            odd += none[:1]
        return None, "; ".join(odd)


def _told(key: str, text: str) -> int | str | None:
    """Return the number of at least 1 that an entry tells, or its text if that is no plain one."""
    try:
        return plain_number(key, text) or None
    except HpcgymError:
        return text


def numbered_names(header: Mapping[str, list[str]], key: str) -> dict[int, str]:
    """Return the names of numbers that the lines of a key tell, such as ``Queue: 1 short``."""
    names = {}
    for line in header.get(key, ()):
        number, _, name = line.strip().partition(" ")
        if _WHOLE.fullmatch(number) and name.strip():
            names[int(number)] = printable(name)
    return names


def machine_size(header: Mapping[str, list[str]]) -> int | None:
    """Return the processors the header tells: MaxProcs, else MaxNodes, else None."""
    return header_number(header, "MaxProcs") or header_number(header, "MaxNodes")


def _tells_other(header: Mapping[str, list[str]], processors: int) -> bool:
    """Tell whether a reader would take another size of the machine from a header, or refuse it."""
    try:
        for entry in header.get("MaxProcs", ()):
            plain_number("MaxProcs", entry.partition("\n")[0])
    except HpcgymError:
        return True
    return machine_size(header) != processors


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
