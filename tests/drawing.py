"""How many cases a property test draws, where each of them takes long."""

from __future__ import annotations

from typing import TypeVar

Test = TypeVar("Test")


def costly(test: Test) -> Test:
    """Let the profile ``ci`` draw half of the cases: others draw such workloads and rules, too.

    It stands above all other decorators of hypothesis.
    """
    test.costly = True  # type: ignore[attr-defined]
    return test
