"""Tables as Markdown and CSV."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError
from hpcgym.files.writing import check_writable, whole_text

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
    with whole_text(path, folders=True) as file:
        file.write(text)


def check_report(path: Path, head: str) -> None:
    """Say before the work that a report cannot be written, and make its folder.

    An older report of the study stays as it is until the new one is whole. Any other file of that
    name is the user's, and so is all in a folder without a report: a study replaces and removes
    files of its own. Without a report its first line is written at once: it marks the folder,
    even if the study is interrupted.

    Parameters
    ----------
    path : of the report.
    head : its beginning; the first line says which study it is of.

    Raises
    ------
    HpcgymError : the file cannot be written, or is no report of this study; the folder has other
        files and no report.
    """
    title = head.splitlines()[0]
    check_writable(path, folders=True)
    if not path.is_file():
        if any(path.parent.iterdir()):
            raise HpcgymError(
                f"{path.parent} has files already, and no report of this study"
                f" ({title.lstrip('# ')}): choose another folder (--output)"
            )
        write_text(f"{title}\n\nNot finished yet.\n", path)
        return
    with path.open("rb") as file:
        first = file.readline(1000).decode(errors="replace")
    # earlier versions emptied it before the work, beside the folder of its tasks
    emptied = not first and (path.parent / "tasks").is_dir()
    if first.strip() != title and not emptied:
        raise HpcgymError(
            f"{path} is there already, and is no report of this study ({title.lstrip('# ')}):"
            " choose another folder (--output)"
        )
