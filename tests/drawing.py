"""How property tests draw their cases: by numpy, from a seed (``seeded.py``)."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck
from seeded import assume, event, given, settings, strategies

__all__ = ["HealthCheck", "assume", "costly", "event", "given", "settings", "strategies"]

Test = TypeVar("Test")


def costly(test: Test) -> Test:
    """Let a test draw half of the cases: others draw such workloads and rules, too.

    It stands above all other decorators.
    """
    test.costly = True  # type: ignore[attr-defined]
    return test
