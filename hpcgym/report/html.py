"""One HTML page with everything about one or several schedules, in a single file."""

from __future__ import annotations

import os
import platform
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.files.recorded import meta_of
from hpcgym.files.writing import whole_text
from hpcgym.report.canvas import figure_of, save_figure
from hpcgym.report.dispatches import dispatches, in_words
from hpcgym.report.distribution import draw_bsld
from hpcgym.report.gantt import draw_gantt
from hpcgym.report.job_speedups import draw_job_speedups, draw_slowed, has_speedups
from hpcgym.report.labels import Results, by_machine, describe, drawable, limits_of, subtitle
from hpcgym.report.numbers import shown
from hpcgym.report.origin import origin_rows
from hpcgym.report.overview import panels, why_no_gantts
from hpcgym.report.placement import has_nodes
from hpcgym.report.power import draw_power
from hpcgym.report.speedups import draw_speedups
from hpcgym.report.tables import comparison, in_order
from hpcgym.report.timeline import (
    draw_nodes_in_use,
    draw_queue_length,
    draw_throughput,
    draw_utilization,
)
from hpcgym.schedule.provenance import provenance_of
from hpcgym.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result

_LIBRARIES = ("numpy", "numba", "pandas", "matplotlib")

#: How pages look.
STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --back: #fff; --soft: #666; --line: #ddd;
  --best: #00704f; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #161a1d; --soft: #a0a0a0;
  --line: #3a4046; --best: #4cd0a5; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p { margin: .4rem 0; }
.soft, caption, figcaption { color: var(--soft); }
.scroll { overflow-x: auto; margin-bottom: .8rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { caption-side: bottom; text-align: left; font-size: .85rem; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child, .words th, .words td { text-align: left; }
.words td:last-child { white-space: normal; }
thead th { border-bottom-width: 2px; vertical-align: bottom; }
.best { color: var(--best); font-weight: 700; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 4px;
  padding: 6px; box-sizing: border-box; }
"""

_DEFINITIONS = """
Bounded slowdown (BSLD) of a job: max((wait + run) / max(run, 10 s), 1). Short jobs run less than
10 minutes, medium ones less than 2 hours, long ones longer.
Response: wait + run. Utilisation: processor time of the jobs over that of the machine from the
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


def write_html(results: Results, path: str | os.PathLike[str]) -> None:
    """Write a page with tables and pictures of one or several schedules of a workload.

    The file holds everything: it asks for nothing over the network and runs no script. It follows
    the reader's choice of light or dark, and says where it is from
    (:func:`hpcgym.schedule.provenance.provenance_of`).

    Parameters
    ----------
    results : a result, a sequence of them, or scheduler name -> result.
    path : of the file.

    Raises
    ------
    HpcgymError : a file that cannot be written, or matplotlib is not installed.
    """
    path = Path(path)
    page = html_page(results)
    with whole_text(path) as file:
        file.write(page)


def html_page(results: Results) -> str:
    """Return the page that :func:`write_html` writes.

    The same results give the same text but for the date, which is that of
    :func:`hpcgym.files.origin.date_text`.
    """
    parts = drawable(results)
    heading = subtitle(parts)
    record = provenance_of(parts)
    body = [
        f"<h1>{escape(next(iter(parts.values())).workload.name)}</h1>",
        f'<p class="soft">{escape(heading)}</p>',
        *([f'<p class="soft">{escape(limits_of(parts))}</p>'] if limits_of(parts) else []),
        "<h2>Metrics</h2>",
        _metrics(parts),
        f'<p class="soft">{_DEFINITIONS.strip()}</p>',
        *([f'<p class="soft">{_OF_ENERGY.strip()}</p>'] if "energy_j" in _told(parts) else []),
        *([f'<p class="soft">{_OF_SPEEDUPS.strip()}</p>'] if has_speedups(parts) else []),
        "<h2>Pictures</h2>",
        *_pictures(parts),
        "<h2>Schedulers</h2>",
        _schedulers(parts),
        *_dispatches(parts),
        "<h2>Workload</h2>",
        _workload(parts),
        *_machines(parts),
        "<h2>Where this is from</h2>",
        _table(["", "hpcgym verify makes it again and compares"], origin_rows(record), words=True),
        "<h2>Made with</h2>",
        _table(["software", "version"], _versions(parts), words=True),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{meta_of(record)}\n<title>{escape(heading)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _table(
    heading: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    words: bool = False,
) -> str:
    """Return an HTML table; a cell is what is shown, or (what is shown, is it the best)."""

    def cell(value: Any) -> str:
        text, top = value if isinstance(value, tuple) else (value, False)
        return f'<td class="best">{escape(text)} ★</td>' if top else f"<td>{escape(str(text))}</td>"

    head = "".join(f"<th>{escape(text)}</th>" for text in heading)
    lines = "\n".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    below = f"<caption>{escape(caption)}</caption>" if caption else ""
    kind = ' class="words"' if words else ""
    return (
        f'<div class="scroll"><table{kind}>{below}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def _metrics(parts: Mapping[str, Result]) -> str:
    """Return all metrics, one a row, so that any number of them fits; schedulers are columns."""
    metrics = in_order(_told(parts))
    columns = comparison(parts, [metric.name for metric in metrics])
    (_, *names), *rows = ([*row] for row in zip(*columns, strict=True))
    machines = " and machine" * (len(by_machine(parts)) > 1)
    caption = f"★ best of its row{machines}" if len(parts) > 1 else ""
    lines = [[title, *values] for (title, _), *values in rows]
    return _table(["metric", *(name for name, _ in names)], lines, caption=caption)


def _told(parts: Mapping[str, Result]) -> dict[str, float | int]:
    """Return the metrics of the first schedule that the page has of all."""
    from hpcgym.schedule.metrics import told_metrics

    first, *others = (told_metrics(part) for part in parts.values())
    return {name: value for name, value in first.items() if all(name in one for one in others)}


def _pictures(parts: Mapping[str, Result]) -> list[str]:
    """Return the pictures; Gantt charts and power only of as many schedulers as can be told apart.

    Where processors draw flat powers, theirs is the utilisation over again.
    """
    missing = why_no_gantts(parts)
    shown_parts = {} if missing else parts
    figures = [
        *(figure for group in panels(parts) for figure in _of_panel(group)),
        *(
            (draw_power({name: result}), f"Power over time, {name}: by what the nodes do.")
            for name, result in shown_parts.items()
            if result.keeps_books and result.idle_seconds is None
        ),
        *(
            (draw_gantt({name: result}), _about(name, result))
            for name, result in shown_parts.items()
        ),
    ]
    pieces = [_figure(figure_of(axes), text) for axes, text in figures]
    return [*pieces, f'<p class="soft">{escape(missing)}</p>'] if missing else pieces


def _of_panel(parts: Mapping[str, Result]) -> list[tuple[Axes, str]]:
    """Return the pictures that have a line for each scheduler."""
    return [
        (draw_bsld(parts), "How many jobs have a bounded slowdown above x."),
        (draw_utilization(parts), "Processors in use over time."),
        (draw_queue_length(parts), "Queued jobs over time."),
        *_of_speedups(parts),
    ]


def _of_speedups(parts: Mapping[str, Result]) -> list[tuple[Axes, str]]:
    """Return pictures of jobs that share nodes, of each heatmap once; none of others."""
    if not has_speedups(parts):
        return []
    by = "code" if len(parts) == 1 else "scheduler"
    figures = [
        (draw_throughput(parts), "Ended jobs over time."),
        (draw_job_speedups(parts), f"Speedups of jobs by {by}: quartiles, 5 % and 95 %, means."),
        (draw_slowed(parts), "How many jobs are slowed down, and sped up."),
    ]
    if all(map(has_nodes, parts.values())):
        figures.insert(0, (draw_nodes_in_use(parts), "Nodes with a job over time."))
    maps = [part.coschedule.speedups for part in parts.values() if part.coschedule is not None]
    for heatmap in {speedups.digest: speedups for speedups in maps}.values():
        figures.append((draw_speedups(heatmap), "How fast each code runs beside each other one."))
    return figures


def _about(name: str, result: Result) -> str:
    """Return what a Gantt chart shows."""
    if result.coschedule is not None:
        return f"Gantt chart, {name}: who has which parts of which nodes when."
    where = "nodes" if result.cluster.groups else "processors"
    return f"Gantt chart, {name}: who uses which {where} when."


def _figure(figure: Figure, text: str) -> str:
    """Return a picture as part of the page."""
    image = BytesIO()
    save_figure(figure, image, ".png")
    data = b64encode(image.getvalue()).decode("ascii")
    width = round(figure.get_figwidth() * 96)
    caption = escape(text)
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{caption}" width="{width}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


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
    return _table(["scheduler", "rules"], words, words=True) + _table(heading, rows, words=True)


def _dispatches(parts: Mapping[str, Result]) -> list[str]:
    """Return with what limits dispatchers have solved models, and what came of it."""
    rows = [
        [name, repr(result.dispatcher), in_words(solved)]
        for name, result in parts.items()
        if (solved := dispatches(result)) is not None
    ]
    return [_table(["scheduler", "dispatcher", "dispatches"], rows, words=True)] if rows else []


def _workload(parts: Mapping[str, Result]) -> str:
    """Return what is simulated, and what cleaning dropped and repaired."""
    pieces = []
    for workload in {id(part.workload): part.workload for part in parts.values()}.values():
        rows = [("jobs", shown(len(workload))), ("processors", shown(workload.processors))]
        rows += [(key, " ".join(texts)) for key, texts in workload.header.items() if key in _HEADER]
        pieces.append(_table(["workload", workload.name], rows, words=True))
        counts = [(reason, shown(number)) for reason, number in workload.cleaning.items()]
        pieces.append(
            _table(["cleaning", "jobs"], counts or [("nothing dropped or repaired", "0")])
        )
    return "\n".join(pieces)


def _machines(parts: Mapping[str, Result]) -> list[str]:
    """Return what the nodes of each machine have, by group, and its queues."""
    pieces = []
    for cluster in {id(part.cluster): part.cluster for part in parts.values()}.values():
        rows = [
            [group.name, shown(group.nodes)]
            + [shown(group.resources.get(name, 0)) for name in cluster.node_resources]
            for group in cluster.groups
        ]
        if rows:
            units = [f"{name} (MB)" if name == "mem" else name for name in cluster.node_resources]
            heading = ["group of nodes", "nodes", *units]
            pieces.append(_table(heading, rows, caption="of each node"))
        if cluster.queues:
            waits = [
                (name, shown(int(wait) if wait == int(wait) else wait))
                for name, wait in cluster.queues.items()
            ]
            pieces.append(_table(["queue", "expected wait (s)"], waits))
    return ["<h2>Machine</h2>", *pieces] if pieces else []


_HEADER = ("Computer", "Installation", "StartTime", "EndTime", "MaxNodes", "MaxProcs")


def _versions(parts: Mapping[str, Result]) -> list[tuple[str, str]]:
    """Return the versions that the results may depend on."""
    found = [("hpcgym", __version__), ("Python", platform.python_version())]
    solver = ["ortools"] if any(map(dispatches, parts.values())) else []
    for library in (*_LIBRARIES, *solver):
        try:
            found.append((library, version(library)))
        except PackageNotFoundError:
            continue
    return found
