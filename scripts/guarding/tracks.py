"""What an agent sees, noted step by step, and actions that are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class Track:
    """What an agent has seen, step by step."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {}

    def note(self, name: str, value: Any) -> None:
        """Note a value, or the parts of one, under a name."""
        if isinstance(value, Mapping):
            for key, part in value.items():
                self.note(f"{name}.{key}", part)
        else:
            array = isinstance(value, np.ndarray)
            self.seen.setdefault(name, []).append(value.copy() if array else value)

    def facts(self) -> dict[str, Any]:
        """Return an array for each name, where all of its values are alike."""
        return {name: _stacked(listed) for name, listed in self.seen.items()}


def _stacked(listed: list[Any]) -> Any:
    """Return one array of many, if they have one shape and kind."""
    kinds = {(np.shape(one), np.asarray(one).dtype) for one in listed}
    (first, *more) = kinds
    return np.array(listed) if not more and first[1].kind in "biuf" else listed


def acted(space: Any, mask: Any, rng: np.random.Generator) -> Any:
    """Return a random action; one in nine choices is made as if there were no mask."""
    if hasattr(space, "n"):
        if mask is None or rng.integers(9) == 0:
            return int(rng.integers(space.n))
        allowed = np.flatnonzero(mask)
        return int(allowed[rng.integers(len(allowed))])
    shape = space.shape
    # whole quarters: ties, and the ends of the range
    return (rng.integers(-4, 5, size=shape) / 4).astype(np.float32)
