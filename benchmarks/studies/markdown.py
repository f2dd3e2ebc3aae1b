"""Tables as Markdown and CSV."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.workload.files import whole, writing

if TYPE_CHECKING:
    import pandas as pd


#: What is in the heads of columns of numbers about 1 or below.
_PARTS = re.compile(r"\bratio\b| / |\bshare\b|Spearman|Kendall")


def table_text(table: pd.DataFrame) -> str:
    """Return a table as Markdown: numbers to the right, ratios and gains with few digits."""
    heads = [str(column) for column in table.columns]
    numeric = [table[column].dtype.kind in "if" for column in table.columns]
    lines = [f"| {' | '.join(heads)} |"]
    lines.append("|" + "|".join("---:" if number else "---" for number in numeric) + "|")
    for row in table.itertuples(index=False):
        cells = (_cell(head, value) for head, value in zip(heads, row, strict=True))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(head: str, value: Any) -> str:
    """Return a value for people."""
    if isinstance(value, str):
        return value.replace("|", "\\|")
    if value is None or value != value:  # NaN
        return ""
    if "%" in head:
        return f"{value:+.1f}"
    if _PARTS.search(head):
        return f"{value:.3f}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}"


def folder_name(trace: str) -> str:
    """Return the name of a folder for what is about a trace."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in trace)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table with all digits.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    write_text(table.to_csv(index=False, lineterminator="\n"), path)


def write_text(text: str, path: Path) -> None:
    """Write a text, and the folder if need be; whoever interrupts that leaves no half of it.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    with whole(path) as part:
        part.write_text(text)


def check_writable(path: Path) -> None:
    """Make the folder of a file that will be written; what is in the file now stays there.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists()
        path.open("ab").close()
        if not there:
            path.unlink()
