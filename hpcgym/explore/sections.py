"""Tables and pictures of one or several schedules, as sections of a page."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hpcgym import report
from hpcgym.baselines.labels import describe
from hpcgym.errors import one_line
from hpcgym.explore.document import Cell, cleaning_table, origin_section, paragraphs, picture, table
from hpcgym.names import printable
from hpcgym.report import canvas, distribution, overview, tables
from hpcgym.report.timeline import MOST_LINES
from hpcgym.version import __version__
from hpcgym.words import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result

_LIBRARIES = ("numpy", "pandas", "matplotlib")

_DEFINITIONS = """
Bounded slowdown (BSLD) of a job: max((wait + run) / max(run, 10 s), 1). Short jobs run less than
10 minutes, medium ones less than 2 hours, long ones longer.
Response: wait + run. Utilization: processor time of the jobs over that of the machine from the
first submission to the last end (makespan). Backfilled: jobs that started ahead of a job before
them in the queue.
"""

_OF_ENERGY = """
Energy: by what processors or nodes do; components are what stands above nodes.
"""

_OF_SPEEDUPS = """
Job speedup: run time compact, alone on filled nodes, over that beside others; slowed jobs are those
below 1. Where jobs share nodes, their bounded slowdown divides by the compact run time. Throughput:
jobs over the makespan.
"""


@runtime_checkable
class Compared(Protocol):
    """Schedules that were compared with the first: see :class:`hpcgym.Comparison`."""

    @property
    def findings(self) -> Sequence[str]:
        """What came out, in lines."""
        ...

    def plot(self) -> Axes:
        """Draw the differences with their intervals."""
        ...


def report_of(
    parts: Mapping[str, Result],
    shown: Collection[str],
    record: Mapping[str, Any],
    compared: Compared | None,
) -> str:
    """Return tables and pictures of schedules as sections of a page.

    Parameters
    ----------
    parts : name -> schedule.
    shown : names of those that the explorer above can show.
    record : where they are from.
    compared : their differences from the first, with intervals.
    """
    others = [name for name in parts if name not in shown]
    body = [
        f'<p class="soft">{escape(tables.subtitle(parts))}</p>',
        *(
            [f'<p class="soft">{escape(tables.limits_of(parts))}</p>']
            if tables.limits_of(parts)
            else []
        ),
        *([f'<p class="soft">{escape(_of_other_jobs(others))}</p>'] if others else []),
        "<h2>Metrics</h2>",
        _metrics(parts),
        paragraphs(tables.remarks(parts)),
        f'<p class="soft">{_DEFINITIONS.strip()}</p>',
        *(
            [f'<p class="soft">{_OF_ENERGY.strip()}</p>']
            if "energy_j" in tables.told_of_all(parts)
            else []
        ),
        *(
            [f'<p class="soft">{_OF_SPEEDUPS.strip()}</p>']
            if distribution.has_speedups(parts)
            else []
        ),
        *_who_pays(parts),
        "<h2>Pictures</h2>",
        *_pictures(parts, compared),
        "<h2>Schedulers</h2>",
        _schedulers(parts),
        *_dispatches(parts),
        "<h2>Workload</h2>",
        _workload(parts),
        *_machines(parts),
        origin_section(record),
        "<h2>Made with</h2>",
        table(["software", "version"], _versions(parts), words=True),
    ]
    return '<div class="report" id="report">\n' + "\n".join(body) + "\n</div>"


def _of_other_jobs(names: Sequence[str]) -> str:
    """Return which schedules cannot be looked into, and why."""
    verb = "is" if len(names) == 1 else "are"
    return (
        f"Not in the picture above: {', '.join(names)}, which {verb} of other jobs than the first,"
        " or of other runs of them, where jobs were stopped or nodes failed."
    )


def _metrics(parts: Mapping[str, Result]) -> str:
    """Return all metrics, one a row, so that any number of them fits; schedulers are columns."""
    metrics = tables.in_order(tables.told_of_all(parts))
    columns = tables.comparison(tables.with_past(parts), [metric.name for metric in metrics])
    (_, *names), *rows = ([*row] for row in zip(*columns, strict=True))
    machines = " and machine" * (len(tables.by_machine(parts)) > 1)
    caption = f"★ best of its row{machines}" if len(parts) > 1 else ""
    if caption and any(result.scheduler.threshold is not None for result in parts.values()):
        caption += "; starved jobs waited longer than the threshold of their own scheduler: no ★"
    lines = [[title, *(Cell(*value) for value in values)] for (title, _), *values in rows]
    return table(["metric", *(name for name, _ in names)], lines, caption=caption)


def _who_pays(parts: Mapping[str, Result]) -> list[str]:
    """Return what schedules change for classes of jobs and for users; nothing of one schedule."""
    return [
        piece
        for of_users in (tables.who_pays(parts), tables.who_lose_most(parts))
        if of_users is not None
        for piece in (
            f"<h2>{escape(of_users.title)}</h2>",
            table(of_users.heads, of_users.rows, words=range(of_users.words)),
            paragraphs(of_users.below),
        )
    ]


def _pictures(parts: Mapping[str, Result], compared: Compared | None) -> list[str]:
    """Return the pictures; Gantt charts and power only of as many schedulers as can be told apart.

    Where processors draw flat powers, theirs is the utilization over again. Without matplotlib the
    only thing here is what to install.
    """
    if lacking := canvas.why_no_pictures():
        return [paragraphs([f"None here: {lacking}"])]
    missing = overview.why_no_gantts(parts)
    shown_parts = {} if missing else parts
    figures: list[tuple[Axes | Figure, str]] = [
        *(
            []
            if compared is None or len(parts) < 2
            else [(compared.plot(), "Mean bounded slowdowns, 95 % intervals.")]
        ),
        (report.draw_bsld(parts), "How many jobs have a bounded slowdown above x."),
        (overview.draw_over_time(parts), _over_time_of(parts)),
        *_of_speedups(parts),
        *(
            (report.draw_power({name: result}), f"Power over time, {name}: by what the nodes do.")
            for name, result in shown_parts.items()
            if result.keeps_books and result.idle_seconds is None
        ),
        *(
            (report.draw_gantt({name: result}), _about(name, result))
            for name, result in shown_parts.items()
        ),
    ]
    pieces = [picture(canvas.figure_of(drawn), text) for drawn, text in figures]
    more = f"This page has {missing}. The explorer above shows any two of the same jobs."
    return [*pieces, f'<p class="soft">{escape(more)}</p>'] if missing else pieces


def _over_time_of(parts: Mapping[str, Result]) -> str:
    """Return what the picture of utilization and queue shows."""
    text = "Processors in use, and queued jobs, over time."
    return f"{text} Grey: {next(iter(parts))}." if len(parts) > MOST_LINES else text


def _of_speedups(parts: Mapping[str, Result]) -> list[tuple[Axes, str]]:
    """Return pictures of jobs that share nodes, of each heatmap once; none of others."""
    if not distribution.has_speedups(parts):
        return []
    by = "code" if len(parts) == 1 else "scheduler"
    figures = [
        (
            report.draw_job_speedups(parts),
            f"Speedups of jobs by {by}: quartiles, 5 % and 95 %, means.",
        ),
    ]
    maps = [part.coschedule.speedups for part in parts.values() if part.coschedule is not None]
    for heatmap in {speedups.digest: speedups for speedups in maps}.values():
        figures.append(
            (report.draw_speedups(heatmap), "How fast each code runs beside each other one.")
        )
    return figures


def _about(name: str, result: Result) -> str:
    """Return what a Gantt chart shows."""
    if result.coschedule is not None:
        return f"Gantt chart, {name}: who has which parts of which nodes when."
    where = "nodes" if result.cluster.groups else "processors"
    return f"Gantt chart, {name}: who uses which {where} when."


def _schedulers(parts: Mapping[str, Result]) -> str:
    """Return what each scheduler does, and its settings."""
    from hpcgym.baselines.schedulers import described  # only where there is a result

    words = [(name, describe(result.scheduler)) for name, result in parts.items()]
    rules = {name: described(result.scheduler) for name, result in parts.items()}
    rows = [
        [name, *("-" if value is None else value for value in values.values())]
        for name, values in rules.items()
    ]
    heading = ["scheduler", *next(iter(rules.values()))]
    return table(["scheduler", "rules"], words, words=True) + table(heading, rows, words=True)


def _dispatches(parts: Mapping[str, Result]) -> list[str]:
    """Return with what limits dispatchers have solved models."""
    rows = [
        [name, repr(result.dispatcher)]
        for name, result in parts.items()
        if tables.dispatches(result) is not None
    ]
    return [table(["scheduler", "dispatcher"], rows, words=True)] if rows else []


def _workload(parts: Mapping[str, Result]) -> str:
    """Return what is simulated, and what cleaning dropped and repaired."""
    pieces = []
    for workload in {id(part.workload): part.workload for part in parts.values()}.values():
        rows = [("jobs", shown(len(workload))), ("processors", shown(workload.processors))]
        header = ((key, one_line(" ".join(texts))) for key, texts in workload.header.items())
        rows += [(key, text) for key, text in header if key in _HEADER]
        pieces.append(table(["workload", workload.name], rows, words=True))
        pieces.append(cleaning_table(workload.cleaning))
    return "\n".join(pieces)


def _machines(parts: Mapping[str, Result]) -> list[str]:
    """Return what the nodes of each machine have, by group, and its queues."""
    pieces = []
    for cluster in {id(part.cluster): part.cluster for part in parts.values()}.values():
        rows = [
            [printable(group.name), shown(group.nodes)]
            + [shown(group.resources.get(name, 0)) for name in cluster.node_resources]
            for group in cluster.groups
        ]
        if rows:
            units = [f"{name} (MB)" if name == "mem" else name for name in cluster.node_resources]
            heading = ["group of nodes", "nodes", *units]
            pieces.append(table(heading, rows, caption="of each node"))
        if cluster.queues:
            waits = [
                (name, shown(int(wait) if wait == int(wait) else wait))
                for name, wait in cluster.queues.items()
            ]
            pieces.append(table(["queue", "expected wait (s)"], waits))
    return ["<h2>Machine</h2>", *pieces] if pieces else []


_HEADER = ("Computer", "Installation", "StartTime", "EndTime", "MaxNodes", "MaxProcs")


def _versions(parts: Mapping[str, Result]) -> list[tuple[str, str]]:
    """Return the versions that the results may depend on."""
    versions = [("hpcgym", __version__), ("Python", platform.python_version())]
    solver = ["ortools"] if any(map(tables.dispatches, parts.values())) else []
    for library in (*_LIBRARIES, *solver):
        try:
            versions.append((library, version(library)))
        except PackageNotFoundError:
            continue
    return versions
