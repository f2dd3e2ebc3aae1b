"""Tables as Markdown and CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    import pandas as pd


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
    if "gain %" in head:
        return f"{value:+.1f}"
    if "ratio" in head or "/ paper" in head or "share" in head:
        return f"{value:.3f}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}"


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table with all digits.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    write_text(table.to_csv(index=False, lineterminator="\n"), path)


def write_text(text: str, path: Path) -> None:
    """Write a text, and the folder if need be.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise HpcgymError(f"{path} cannot be written: {error.strerror or error}") from None
