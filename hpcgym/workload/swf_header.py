"""The header of an SWF file: comment lines ``; Key: value`` about the machine and the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

#: The keys of SWF 2.2; they are recognised in any case and at any indentation.
KEYS = (
    *("Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion"),
    *("MaxJobs", "MaxRecords", "Preemption", "UnixStartTime", "TimeZone", "TimeZoneString"),
    *("StartTime", "EndTime", "MaxNodes", "MaxProcs", "MaxRuntime", "MaxMemory", "AllowOveruse"),
    *("MaxQueues", "Queues", "Queue", "MaxPartitions", "Partitions", "Partition", "Note"),
)
_SPELLING = {key.casefold(): key for key in KEYS}
_ENTRY = re.compile(r"(\s*)(\w+)\s*:(?!//)(.*)", re.DOTALL)

#: Text that belongs to no key stands under this one.
FREE_TEXT = ""

_CONTINUATION = ";   "  # three blanks, so that reading takes no word of the text for a new key


class HeaderReader:
    """Collects comment lines into ``entries``, ``{"MaxProcs": ["128"], "Queue": [...], ...}``.

    A repeated key has one value for each time it stands there; a line without a key continues the
    value before it as a further line of it, or is free text after the first job.
    """

    def __init__(self) -> None:
        self.entries: dict[str, list[str]] = {}
        self._open = FREE_TEXT

    def add(self, comment: bytes, after_jobs: bool) -> None:
        """Add one comment line, from its semicolon on; it may stand after the first job."""
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
            self.entries.setdefault(self._open, []).append(entry[3].strip())
        elif self._open != FREE_TEXT:
            self.entries[self._open][-1] += "\n" + text.strip()
        elif text:
            self.entries.setdefault(FREE_TEXT, []).append(text.strip())

    def finish(self) -> dict[str, list[str]]:
        """Return the entries, without blank lines at the end of a value."""
        return {key: [v.strip() for v in values] for key, values in self.entries.items()}


def header_number(header: Mapping[str, list[str]], key: str) -> int | None:
    """Return the first whole number of at least 1 that an entry holds."""
    for value in header.get(key, []):
        found = re.search(r"-?\d+", value)
        if found and int(found[0]) >= 1:
            return int(found[0])
    return None


def numbered_names(header: Mapping[str, list[str]], key: str) -> dict[int, str]:
    """Return the names of numbers that the lines of a key tell, such as ``Queue: 1 short``."""
    names = {}
    for line in header.get(key, ()):
        number, _, name = line.strip().partition(" ")
        if number.lstrip("-").isdigit() and name.strip():
            names[int(number)] = name.strip()
    return names


def machine_size(header: Mapping[str, list[str]]) -> int | None:
    """Return the processors the header tells: MaxProcs, else MaxNodes, else None."""
    return header_number(header, "MaxProcs") or header_number(header, "MaxNodes")


def header_lines(header: Mapping[str, list[str]], processors: int) -> Iterator[str]:
    """Return the comment lines of a header that tells the version and the machine's size."""
    entries = {"Version": ["2.2"], **header}
    if machine_size(header) != processors:
        entries["MaxProcs"] = [str(processors)]
    for value in entries.pop(FREE_TEXT, []):
        yield from (f"{_CONTINUATION}{line}".rstrip() for line in value.splitlines())
    for key, values in entries.items():
        for value in values:
            first, *others = value.splitlines() or [""]
            yield f"; {key}: {first}".rstrip()
            yield from (f"{_CONTINUATION}{line}".rstrip() for line in others)
