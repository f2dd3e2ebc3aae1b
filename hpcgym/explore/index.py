"""One page about all files of a folder that say where they are from: a row for each schedule."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from hpcgym.errors import HpcgymError, one_line
from hpcgym.explore.document import sheet
from hpcgym.explore.markup import Cell, table
from hpcgym.files.recorded import READERS, ending_of, record_of_file, table_of
from hpcgym.files.writing import same_file, whole_text
from hpcgym.report.numbers import shown

#: Metrics that have a column -> its heading.
_METRICS = {
    "mean_bsld": "mean BSLD",
    "max_bsld": "max BSLD",
    "mean_wait_s": "mean wait (s)",
    "max_wait_s": "max wait (s)",
    "utilization": "utilization",
    "makespan_s": "makespan (s)",
}
_HEADINGS = (
    *("file", "written", "hpcgym", "command", "workload", "jobs", "processors"),
    *("scheduler", "rules"),
)


class Indexed(NamedTuple):
    """What was found in a folder.

    Attributes
    ----------
    records : file -> its record, by name.
    others : files of these kinds that have no readable record.
    """

    records: dict[Path, dict[str, Any]]
    others: list[Path]


def indexed(folder: Path, but: Path) -> Indexed:
    """Return the records of all files but one in a folder, and in those within it.

    Raises
    ------
    HpcgymError : it is no folder.
    """
    if not folder.is_dir():
        raise HpcgymError(f"{folder} is no folder")
    found = Indexed({}, [])
    for path in sorted(folder.rglob("*")):
        if (
            ending_of(path) not in READERS
            or table_of(path)
            or not path.is_file()
            or same_file(path, but)
        ):
            continue
        try:
            found.records[path] = record_of_file(path)
        except HpcgymError:
            found.others.append(path)
    return found


def write_index(found: Indexed, page: Path, title: str) -> None:
    """Write a page with a table of schedules, which a click on a heading sorts.

    It asks for nothing over the network, and the browser runs no other script than that of sorting.

    Parameters
    ----------
    found : of :func:`indexed`.
    page : the file; links are relative to its folder.
    title : of the page.

    Raises
    ------
    WorkloadError : the file cannot be written.
    """
    rows = [
        row
        for path, record in found.records.items()
        for row in _rows(os.path.relpath(path, page.parent), record)
    ]
    with whole_text(page) as file:
        file.write(_page(title, rows, [os.path.relpath(one, page.parent) for one in found.others]))


def _page(title: str, rows: Sequence[Sequence[Any]], others: Sequence[str]) -> str:
    about = [
        f"{len(rows):,} row{'' if len(rows) == 1 else 's'}. hpcgym verify makes files of simulate,"
        " compare and explore again and compares. A click on a heading sorts."
    ]
    about += [f"Without a readable record: {', '.join(others)}"] if others else []
    headings = (*_HEADINGS, *_METRICS.values())
    words = [place for place, name in enumerate(_HEADINGS) if name not in ("jobs", "processors")]
    return sheet(title, about, table(headings, rows, words=words, sortable=True))


def _rows(link: str, record: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Return a row for each schedule of a file; one of a file that has none."""
    jobs = {str(one.get("sha256")): one for one in record["workloads"]}
    command = record["command"]
    said = "from Python" if command is None else shlex.join(["hpcgym", *command])
    for one in record["schedules"] or [{}]:
        workload = jobs.get(str(one.get("workload"))) or (record["workloads"] or [{}])[0]
        machine, metrics = _table(one.get("machine")), _table(one.get("metrics"))
        size = machine.get("processors", workload.get("processors"))
        rules = ", ".join(f"{rule}={value}" for rule, value in _table(one.get("rules")).items())
        yield [
            Cell(link, link=quote(link)),
            *map(_text, (record["date"], record["hpcgym"], said, workload.get("name"))),
            *map(_number, (workload.get("jobs"), size)),
            *map(_text, (one.get("name"), rules)),
            *(_number(metrics.get(metric)) for metric in _METRICS),
        ]


def _table(value: Any) -> Mapping[str, Any]:
    """Return a part of a record, or an empty one: anybody may have written the record."""
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return "" if value is None else one_line(value)


def _number(value: Any) -> Cell:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell("", value="")
    return Cell(shown(value), value=str(value))
