"""The page of a twin beside a Slurm that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hpcgym.explore.document import paragraphs, sheet, table
from hpcgym.units import duration

_FORM = (
    '<form method="get" action="shape">'
    '<p>What if a job were submitted now: <input name="processors" size="6" value="{0}"> processors'
    ' for <input name="requested" size="8" value="{1}"> <button>Ask</button></p></form>'
)
#: What the page begins with for a new job.
SHAPE = ("16", "4h")
#: What stands in facts for a time that does not come; None: it is not told.
NEVER = "never"


def twin_page(facts: Mapping[str, Any]) -> str:
    """Return the page of a twin: when all waiting jobs start, how good the last forecasts were.

    Parameters
    ----------
    facts : as :meth:`hpcgym.twin.serving.TwinSession.facts` returns them.
    """
    time = facts["time"]
    rows = [
        (
            *(row["job"], row["user"], f"{row['processors']:,}", duration(row["requested_s"])),
            duration(row["waited_s"]),
            *(_in(row[name], time) for name in ("p10_s", "p50_s", "p90_s", "slurm_s")),
        )
        for row in facts["waiting"]
    ]
    heading = (
        *("job", "user", "processors", "requested", "waited"),
        *("starts in, 10 %", "50 %", "90 %", "Slurm plans"),
    )
    sections = [
        table(heading, rows, sortable=True) if rows else paragraphs(["No job waits for room."]),
        '<p><a href="shape">What if a job were submitted now?</a></p>',
        '<p><a href="policies">What if the policy were another?</a></p>',
        '<p class="soft">As JSON: <a href="forecasts.json">forecasts.json</a>,'
        ' <a href="policies.json">policies.json</a></p>',
    ]
    return sheet(f"When jobs start on {facts['machine']}", facts["lines"], "\n".join(sections))


def shape_page(title: str, rows: Sequence[Mapping[str, Any]], shape: tuple[str, str]) -> str:
    """Return the page of what-ifs of shape: a row for each shape that is compared."""
    cells = [
        (
            *(f"{row['processors']:,}", duration(row["requested"])),
            *(_in(row[name], 0) for name in ("p10", "p50", "p90")),
            *(_in(row[name], 0) for name in ("earlier_p10", "earlier_p50", "earlier_p90")),
        )
        for row in rows
    ]
    heading = (
        *("processors", "requested", "starts in, 10 %", "50 %", "90 %"),
        *("earlier than the first, 10 %", "50 %", "90 %"),
    )
    form = _FORM.format(*(escape(text) for text in shape))
    return sheet(title, [], f"{table(heading, cells)}\n{form}\n{_BACK}")


def policies_page(title: str, lines: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of other policies: a row for each."""
    names = ("wait_s", "less_p10_s", "less_p50_s", "less_p90_s")
    cells = [(row["policy"], *(_in(row[name], 0) for name in names)) for row in rows]
    heading = ("policy", "mean wait from now", "less than now, 10 %", "50 %", "90 %")
    return sheet(title, lines, f"{table(heading, cells, words=[0])}\n{_BACK}")


_BACK = '<p><a href="./">All waiting jobs</a></p>'


def _in(second: float | str | None, time: float) -> str:
    """Return how long it is from a time to a second, in words; "-": it is not told."""
    if second is None:
        return "-"
    return second if isinstance(second, str) else duration(second - time)
