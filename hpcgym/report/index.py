"""One page about all files of a folder that say where they are from: a row for each schedule."""

from __future__ import annotations

import os
import shlex
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from hpcgym.errors import HpcgymError
from hpcgym.files.recorded import READERS, record_of_file, table_of
from hpcgym.files.writing import same_file, whole_text
from hpcgym.report.html import STYLE
from hpcgym.report.numbers import shown

#: Metrics that have a column -> its heading.
_METRICS = {
    "mean_bsld": "mean BSLD",
    "max_bsld": "max BSLD",
    "mean_wait_s": "mean wait (s)",
    "max_wait_s": "max wait (s)",
    "utilization": "utilisation",
    "makespan_s": "makespan (s)",
}
_HEADINGS = (
    *("file", "written", "hpcgym", "command", "workload", "jobs", "processors"),
    *("scheduler", "rules"),
)

_SORTING = """
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending", place = head.cellIndex;
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = row => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const order = (a, b) => value(a).localeCompare(value(b), "en", { numeric: true });
    const number = (a, b) => Number(value(a)) - Number(value(b));
    const rows = [...body.rows], empty = rows.filter(row => value(row) === "");
    const told = rows.filter(row => value(row) !== "");
    told.sort(told.every(row => Number.isFinite(Number(value(row)))) ? number : order);
    body.append(...(up ? told : told.reverse()), ...empty);
  });
}
"""
_MORE_STYLE = """
body { max-width: none; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0;
  cursor: pointer; text-decoration: underline dotted; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
td.text, th { text-align: left; }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 6rem; max-width: 20rem; }
"""


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
        name = path.name.casefold()
        known = name.removesuffix(".gz").endswith(tuple(READERS))
        if not known or table_of(path) or not path.is_file() or same_file(path, but):
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


def _page(title: str, rows: Sequence[str], others: Sequence[str]) -> str:
    digest = b64encode(sha256(_SORTING.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    heads = "".join(
        f"<th><button>{escape(text)}</button></th>" for text in (*_HEADINGS, *_METRICS.values())
    )
    without = (
        f'<p class="soft">Without a readable record: {escape(", ".join(others))}</p>\n'
        if others
        else ""
    )
    body = "\n".join(rows)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{_MORE_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n"
        f'<p class="soft">{len(rows):,} row{"" if len(rows) == 1 else "s"}. hpcgym verify makes'
        " files of simulate and compare again and compares. A click on a heading sorts.</p>\n"
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n'
        f"</tbody></table></div>\n{without}<script>{_SORTING}</script>\n</body>\n</html>\n"
    )


def _rows(link: str, record: Mapping[str, Any]) -> Iterator[str]:
    """Return a row for each schedule of a file; one of a file that has none."""
    jobs = {str(one.get("sha256")): one for one in record["workloads"]}
    command = record["command"]
    said = "from Python" if command is None else shlex.join(["hpcgym", *command])
    for one in record["schedules"] or [{}]:
        workload = jobs.get(str(one.get("workload"))) or (record["workloads"] or [{}])[0]
        machine, metrics = _table(one.get("machine")), _table(one.get("metrics"))
        size = machine.get("processors", workload.get("processors"))
        texts = [record["date"], record["hpcgym"], said, workload.get("name")]
        values = [workload.get("jobs"), size]
        rules = ", ".join(f"{rule}={value}" for rule, value in _table(one.get("rules")).items())
        name = f'<td class="text"><a href="{escape(quote(link))}">{escape(link)}</a></td>'
        cells = [*map(_text, texts), *map(_number, values), _text(one.get("name")), _text(rules)]
        numbers = map(_number, (metrics.get(metric) for metric in _METRICS))
        yield f"<tr>{''.join([name, *cells, *numbers])}</tr>"


def _table(value: Any) -> Mapping[str, Any]:
    """Return a part of a record, which may have been written by anybody; empty if it is none."""
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return f'<td class="text">{escape("" if value is None else str(value))}</td>'


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return '<td data-value=""></td>'
    return f'<td data-value="{value}">{escape(shown(value))}</td>'
