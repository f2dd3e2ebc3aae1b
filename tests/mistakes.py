"""Files of mistakes: in each line Python that fails, and what the one line of its error says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hpcgym.errors import HpcgymError


def mistakes_in(test: str) -> list[tuple[str, str]]:
    """Return the lines of ``mistakes.txt`` beside a test, without headings."""
    rows = Path(test).with_name("mistakes.txt").read_text().splitlines()
    parts = (row.partition("  =>  ") for row in rows)
    return [(given, message) for given, arrow, message in parts if arrow]


def is_told(given: str, names: Mapping[str, Any], message: str) -> str:
    """Check that this fails with a message of one line; return that."""
    with pytest.raises(HpcgymError) as caught:
        eval(given, {**names})
    told = str(caught.value)
    assert message in told
    assert "\n" not in told
    return told
