"""What ``hpcgym traces show`` prints of a workload for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hpcgym.cli import output
from hpcgym.naming import counted
from hpcgym.workload.summary import SHARES

if TYPE_CHECKING:
    from rich.console import Console

    from hpcgym.workload import Workload

_BAR = 24  # characters of the longest bar
_LABELS = {
    "run_time_s": "run time [s]",
    "processors_of_jobs": "processors of jobs",
    "wait_s": "wait as recorded [s]",
}
_ESTIMATES = {
    "mean_accuracy": "run over requested time, mean",
    "median_accuracy": "the same, median",
    "exact": "requests that are the run time",
    "below_a_tenth": "runs below a tenth of the request",
    "killed": "runs cut at the request",
}


def print_summary(workload: Workload, facts: Mapping[str, Any], warnings: Iterable[str]) -> None:
    """Print what a workload is like, and what is odd of it."""
    out = output.console()
    load = "" if facts["load"] is None else f" · load {facts['load']:.3g}"
    jobs, processors = counted(facts["jobs"], "job"), counted(facts["processors"], "processor")
    line = f"{facts['name']} · {jobs} · {processors} · {facts['days']:.4g} days{load}"
    out.print(line, style="bold", markup=False)
    if facts["begin"] is not None:
        out.print(f"first submission {facts['begin']}", markup=False)
    out.print(f"SHA-256 of the jobs {facts['sha256_of_jobs']}", markup=False)
    status = ", ".join(f"{jobs:,} {name}" for name, jobs in facts["status"].items())
    out.print(f"status: {status}", markup=False, soft_wrap=True)
    output.print_cleaning(out, workload)
    for line in warnings:
        out.print(f"warning: {line}", style="yellow", markup=False, soft_wrap=True)
    spreads = [
        (_LABELS[key], *(f"{value:,.4g}" for value in facts[key].values()))
        for key in _LABELS
        if facts[key] is not None
    ]
    _table(out, ("", "mean", "median", "95 %", "maximum"), spreads)
    widths = facts["widths"]["classes"]
    rows = [(one["processors"], _percent(one["jobs"]), _percent(one["area"])) for one in widths]
    _table(out, ("processors", "of jobs", "of processor time"), rows)
    out.print(f"powers of 2: {_percent(facts['widths']['powers_of_2'])} of jobs", markup=False)
    estimates = [(label, _percent(facts["estimates"][key])) for key, label in _ESTIMATES.items()]
    _table(out, ("requested times", ""), estimates)
    if facts["arrivals"] is not None:
        hours = {f"{hour:02} h": jobs for hour, jobs in enumerate(facts["arrivals"]["hours"])}
        _bars(out, "submitted by hour", hours)
        _bars(out, "by weekday", facts["arrivals"]["weekdays"])
    for key in SHARES:
        found = facts[key]
        if found["number"] > (key != "users"):
            some = [
                (one["name"], f"{one['jobs']:,}", _percent(one["area"])) for one in found["first"]
            ]
            title = f"{found['number']:,} {key if found['number'] > 1 else key[:-1]}"
            _table(out, (title, "jobs", "of processor time"), some)


def _bars(out: Console, title: str, jobs: Mapping[str, int]) -> None:
    """Print numbers as bars."""
    most = max(max(jobs.values()), 1)
    rows = [(name, f"{n:,}", "█" * round(_BAR * n / most)) for name, n in jobs.items()]
    _table(out, (title, "jobs", ""), rows, left=(0, 2))


def _table(
    out: Console,
    heads: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    left: tuple[int, ...] = (0,),
) -> None:
    """Print a table, the columns at the places ``left`` to the left."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if place in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    out.print()
    out.print(table)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
