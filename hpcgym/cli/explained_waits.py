"""What all jobs of schedules waited for, as tables and pictures of ``hpcgym explain``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.cli import output
from hpcgym.cli.options import Format
from hpcgym.cli.running import note
from hpcgym.errors import HpcgymError
from hpcgym.files.recorded import KEY
from hpcgym.progress import measuring

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from hpcgym.schedule.result import Result

_MANY_HOURS = 100 * 3600  # [s]; as hours, and not as days
MOST_ROWS = 15  # of a table for people, but of sizes and weeks; others are one row


def show(
    results: Mapping[str, Result], by: str | None, format: Format, picture: Path | None
) -> None:
    """Print and draw what all jobs waited for: of one schedule by groups, of several each.

    ``by``: one of :data:`hpcgym.explanation.GROUPS`; None: sizes, or a row a scheduler.
    """
    from hpcgym.schedule.provenance import provenance_of

    table = _table(results, by)
    if picture is not None:
        _draw(table, results, picture)
    if format is Format.json:
        result = next(iter(results.values()))
        facts = {"workload": result.workload.name, "schedulers": list(results)}
        record = {KEY: provenance_of(results)}
        output.print_json({**facts, "waited_for": _rows(table), **record})
    elif format is Format.csv:
        output.print_csv(_rows(table))
    else:
        _print(table, results)


def _table(results: Mapping[str, Result], by: str | None) -> pd.DataFrame:
    """Return what groups of jobs waited for, or all under each of several schedulers."""
    import pandas as pd

    from hpcgym.explanation import waits, waits_by

    found = {}
    for name, result in results.items():
        with measuring(f"looking at each pass of {name}") as progress:
            try:
                found[name] = waits(result, progress)
            except HpcgymError as error:
                raise HpcgymError(f"{name}: {error}") from None
    if len(results) == 1:
        ((name, result),) = results.items()
        return waits_by(result, found[name], by or "requested_processors")
    rows = {name: {"jobs": len(one), **one.sum()} for name, one in found.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("scheduler")


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, seconds in columns that say so."""
    named = table.rename(columns={name: f"{name}_s" for name in table.columns if name != "jobs"})
    rows = named.reset_index().to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _print(table: pd.DataFrame, results: Mapping[str, Result]) -> None:
    """Print for people: how long all waited, and which share of that is due to what."""
    from hpcgym.report.labels import subtitle

    out = output.console()
    out.print(subtitle(dict(results)), style="bold", markup=False)
    everything = table.drop(columns="jobs")
    if not everything.to_numpy().any():
        out.print("No job waited.")
        return
    if table.index.name != "scheduler":
        _say(out.print, everything.sum())
    out.print()
    out.print(_shares(table))
    out.print("Hours are the sum over all jobs of a row, and percentages are of these hours.")


def _say(say: Any, seconds: pd.Series[int]) -> None:
    """Say what all waiting is due to, the most first."""
    from hpcgym.explanation.reasons import CALLED
    from hpcgym.naming import duration

    total = int(seconds.sum())
    text = f"{total / 3600:,.0f} h" if total >= _MANY_HOURS else duration(total)
    say(f"All jobs together waited for {text}:", markup=False)
    for name, spent in seconds[seconds > 0].sort_values(ascending=False).items():
        say(f"  {100 * spent / total:5.1f} %  {CALLED[str(name)]}", markup=False)


def _shares(table: pd.DataFrame) -> Table:
    """Return a table of shares, the last rows of a long one as one."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from hpcgym.explanation.reasons import CALLED
    from hpcgym.explanation.waits import shortened

    reasons = [name for name in CALLED if table[name].any()]
    rows = [(str(name), row) for name, row in shortened(table, MOST_ROWS).iterrows()]
    found = Table(str(table.index.name), "jobs", "waited (h)", box=SIMPLE_HEAD)
    for name in reasons:
        found.add_column(CALLED[name], justify="right")
    for column in found.columns[1:3]:
        column.justify = "right"
    for name, row in rows:
        spent = sum(int(row[reason]) for reason in reasons)
        parts = [f"{100 * row[reason] / spent:.1f}" if spent else "" for reason in reasons]
        found.add_row(escape(name), f"{int(row['jobs']):,}", _hours(spent), *parts)
    return found


def _hours(seconds: int) -> str:
    """Return hours with a digit behind the point, or with two that tell something."""
    hours = seconds / 3600
    return f"{hours:,.1f}" if hours >= 1 or not hours else f"{hours:.2g}"


def _draw(table: pd.DataFrame, results: Mapping[str, Result], path: Path) -> None:
    """Draw a bar a row into a file."""
    from hpcgym.report.canvas import figure_of, picture_suffix, save_figure
    from hpcgym.report.labels import subtitle
    from hpcgym.report.waits import draw_waits
    from hpcgym.schedule.provenance import provenance_of

    axes = draw_waits(table, subtitle(dict(results)))
    save_figure(figure_of(axes), path, picture_suffix(path), provenance_of(results))
    note(f"wrote {path}")
