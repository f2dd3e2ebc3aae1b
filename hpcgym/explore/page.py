"""One file that shows one or two schedules down to each job, and asks nothing of the network."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import lcm
from typing import Any

from hpcgym.explore.columns import check_same_jobs, of_schedule, of_workload, statistics
from hpcgym.explore.packing import as_text, pack
from hpcgym.files.recorded import meta_of
from hpcgym.files.writing import whole_text
from hpcgym.report.labels import Results, drawable
from hpcgym.report.origin import origin_rows
from hpcgym.schedule.provenance import provenance_of
from hpcgym.schedule.result import Result

#: Files of the script, in the order in which they stand in the page: each uses those before it.
SCRIPTS = (
    "arrays",
    "decode",
    "place",
    "curves",
    "words",
    "filter",
    "colours",
    "raster",
    "state",
    "gantt",
    "panes",
    "overlay",
    "elements",
    "facts",
    "table",
    "view",
    "pointer",
    "keys",
    "pictures",
    "live",
    "main",
)


def page(results: Results) -> str:
    """Return a page that shows schedules down to each job.

    It is one file of HTML, without anything from the network. A reader can zoom and move, look at
    single jobs, filter them, and save what is seen as a picture; see docs/exploring.md. It says
    where it is from. The same results give the same text but for the date, which is that of
    :func:`hpcgym.files.origin.date_text`.

    Parameters
    ----------
    results : a result of :func:`hpcgym.simulate`, or two of the same jobs: a sequence, or name ->
        result. Of a schedule with failures of nodes each run is shown.

    Raises
    ------
    HpcgymError : no result or more than two, one without jobs, two of different jobs, or a number
        beyond 2^53.
    """
    return document(results)


def write_page(results: Results, path: str | os.PathLike[str]) -> None:
    """Write the page of :func:`page` to a file, whole or not at all.

    Parameters
    ----------
    results : as for :func:`page`.
    path : of the file.

    Raises
    ------
    HpcgymError : as for :func:`page`, or a file that cannot be written.
    """
    text = page(results)
    with whole_text(path) as file:
        file.write(text)


@dataclass(frozen=True)
class Frame:
    """A page as a notebook shows it: in a frame of its own, apart from the notebook."""

    page: str
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads"'
            f' style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def show(results: Results, *, height: int = 760) -> Frame:
    """Return the page of :func:`page` for a notebook, which shows it as the value of a cell.

    Parameters
    ----------
    results : as for :func:`page`.
    height : of the frame [pixels].

    Raises
    ------
    HpcgymError : as for :func:`page`.
    """
    return Frame(page(results), height)


def _packed(given: Mapping[str, Result], head: dict[str, Any]) -> bytes:
    """Return what a page is told of one or two schedules; ``head`` goes into its header."""
    parts = {name: result.runs for name, result in given.items()}
    check_same_jobs(parts)
    first = next(iter(parts.values()))
    told_of_jobs, columns = of_workload(first.workload)
    head = {**told_of_jobs, "runs": [], "statistics": statistics(given), **head}
    # rows of a node that all have, however many jobs may share it under each scheduler
    lanes = lcm(*(part.coschedule.parts for part in parts.values() if part.coschedule is not None))
    for place, (name, result) in enumerate(parts.items()):
        of_run, told = of_schedule(result, name, place, first, lanes)
        head["runs"].append(of_run)
        columns |= told
    return pack(head, columns)


def document(results: Results, **more: Any) -> str:
    """Return the page of some results; ``more`` goes into the header of its data.

    Raises what :func:`page` raises. A policy for the browser stands in it: nothing but its own
    script runs, whatever the data hold, and it asks nobody but the server that it came from.
    """
    given = drawable(results)
    record = provenance_of(given)
    packed = _packed(given, {"origin": origin_rows(record), **more})
    style, script = source("style.css"), script_of_page()
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}';"
        f" style-src 'sha256-{_digest(style)}'; img-src data: blob:; connect-src 'self'"
    )
    parts = {
        "TITLE": escape(next(iter(given.values())).workload.name),
        "ORIGIN": meta_of(record),
        "POLICY": policy,
        "STYLE": style,
        "DATA": as_text(packed),
        "SCRIPT": script,
    }
    # in one go: a name in the data that looks like a mark stays what it is
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], source("template.html"))


@cache
def source(name: str) -> str:
    """Return a file of the page."""
    return files("hpcgym.explore").joinpath("browser", name).read_text(encoding="utf-8")


@cache
def script_of_page() -> str:
    """Return the script: its files one after the other, in a function of their own."""
    parts = "\n".join(source(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _digest(text: str) -> str:
    """Return the SHA-256 by which the policy allows a script or a style."""
    return b64encode(sha256(text.encode()).digest()).decode("ascii")
