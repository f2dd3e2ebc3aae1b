"""How property tests draw their cases: by numpy from a seed, or by hypothesis, which shrinks them.

Tests import the names of hypothesis from here. hypothesis itself takes most of the time of a test:
``scripts/test --all`` lets it draw some of the cases, with ``HPCGYM_HYPOTHESIS=1``, after numpy has
drawn its own.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import HealthCheck

#: Whether hypothesis draws.
BY_HYPOTHESIS = os.environ.get("HPCGYM_HYPOTHESIS") == "1"

if BY_HYPOTHESIS:
    from hypothesis import assume, event, given, settings, strategies
else:
    import seeded as strategies  # type: ignore[no-redef]
    from seeded import assume, event, given, settings  # type: ignore[assignment]

__all__ = ["HealthCheck", "assume", "costly", "event", "given", "settings", "strategies"]

Test = TypeVar("Test")


def costly(test: Test) -> Test:
    """Let a test draw half of the cases: others draw such workloads and rules, too.

    It stands above all other decorators.
    """
    test.costly = True  # type: ignore[attr-defined]
    return test
