"""One file that shows schedules down to each job, and asks nothing of the network."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import lcm
from typing import Any

from hpcgym.explore.columns import check_same_jobs, of_schedule, of_workload, same_jobs, statistics
from hpcgym.explore.document import document, origin_section, source
from hpcgym.explore.packing import as_text, pack
from hpcgym.explore.sections import report_of
from hpcgym.files.writing import whole_text
from hpcgym.report.labels import Results, drawable
from hpcgym.report.words import limits_of
from hpcgym.schedule.provenance import provenance_of
from hpcgym.schedule.result import Result

#: Files of the script, in the order in which they stand in the page: each uses those before it.
SCRIPTS = (
    "theme",
    "sorting",
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
    "choice",
    "live",
    "main",
)


def page(results: Results, *, report: bool = False) -> str:
    """Return a page that shows schedules down to each job.

    It is one file of HTML, without anything from the network. A reader can zoom and move, look at
    single jobs, filter them, choose which two schedules are shown, and save what is seen as a
    picture; see docs/exploring.md. It says where it is from. The same results give the same text
    but for the date, which is that of :func:`hpcgym.files.origin.date_text`.

    Parameters
    ----------
    results : a result of :func:`hpcgym.simulate`, or several of the same jobs: a sequence, or name
        -> result. Of a schedule with failures of nodes each run is shown.
    report : whether tables and pictures to print follow. Then results may be of other jobs too:
        schedules of the jobs of the first can be looked into, and the page names the others.

    Raises
    ------
    HpcgymError : no result, one without jobs, results of different jobs, a number beyond 2^53; or a
        report, and matplotlib is not installed.
    """
    given = drawable(results)
    return explorer_page(same_jobs(given), given) if report else explorer_page(given)


def write_page(results: Results, path: str | os.PathLike[str], *, report: bool = False) -> None:
    """Write the page of :func:`page` to a file, whole or not at all.

    Parameters
    ----------
    results, report : as for :func:`page`.
    path : of the file.

    Raises
    ------
    HpcgymError : as for :func:`page`, or a file that cannot be written.
    """
    text = page(results, report=report)
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


def explorer_page(
    shown: Mapping[str, Result], reported: Mapping[str, Result] | None = None, **more: Any
) -> str:
    """Return a page with an explorer.

    Parameters
    ----------
    shown : the schedules that can be looked into, of the same jobs.
    reported : those of which tables and pictures follow; None: there is no report.
    more : goes into the header of the explorer's data.

    Raises
    ------
    HpcgymError : as for :func:`page`.
    """
    every = shown if reported is None else reported
    record = provenance_of(every)
    told = {"limits": limits_of(every), **more}
    parts = {
        "DATA": as_text(_packed(shown, every, told)),
        "ORIGIN": "" if reported is not None else origin_section(record),
        "REPORT": "" if reported is None else report_of(reported, list(shown), record),
    }
    # in one go: a name in a report that looks like a mark stays what it is
    body = re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], source("explorer.html"))
    title = next(iter(every.values())).workload.name
    return document(title, body, record=record, scripts=SCRIPTS, styles=("style", "explorer"))


def _packed(
    shown: Mapping[str, Result], every: Mapping[str, Result], head: dict[str, Any]
) -> bytes:
    """Return what an explorer is told of schedules, and of the metrics of all.

    ``head`` goes into its header.
    """
    parts = {name: result.runs for name, result in shown.items()}
    check_same_jobs(parts)
    first = next(iter(parts.values()))
    told_of_jobs, columns = of_workload(first.workload)
    head = {**told_of_jobs, "runs": [], "statistics": statistics(every), **head}
    # rows of a node that all have, however many jobs may share it under each scheduler
    lanes = lcm(*(part.coschedule.parts for part in parts.values() if part.coschedule is not None))
    for place, (name, result) in enumerate(parts.items()):
        of_run, told = of_schedule(result, name, place, first, lanes)
        head["runs"].append(of_run)
        columns |= told
    return pack(head, columns)
