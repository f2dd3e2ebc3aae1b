"""Results as text: JSON and CSV, with floats in full."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no numpy scalars, no NaN."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any) -> str:
    """Return a value as JSON, floats in full; what is no number (0 / 0) is null."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV, floats in full; what some have and others not is empty in these."""
    lines = [plain(row) for row in rows]
    columns = dict.fromkeys(column for line in lines for column in line)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
