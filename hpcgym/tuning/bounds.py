"""Bounds that a tuned scheduler must keep: ``max_wait <= 7d``, ``p99_wait <= 1.5 easy``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hpcgym.errors import HpcgymError, check_choice, number_in
from hpcgym.schedule.measures import HOUR, MEASURES

#: Letter behind a number -> hours. Without one, waits are in hours.
_HOURS = {"s": 1 / HOUR, "m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_BOUND = re.compile(r"(\w+)\s*<=\s*([0-9.]+(?:[eE][0-9]+)?)\s*([smhdw]?)\s*(?:[*x]?\s*(easy))?")


@dataclass(frozen=True)
class Bound:
    """What a measure may be at most.

    Attributes
    ----------
    measure : a name of :data:`hpcgym.schedule.measures.MEASURES`.
    most : in the unit of the measure; or how many times as much as under EASY.
    of_easy : whether it is that many times as much.
    """

    measure: str
    most: float
    of_easy: bool

    @classmethod
    def parse(cls, text: str) -> Bound:
        """Return the bound that a text says.

        Such as ``max_wait <= 7d``, where s, m, h, d and w are seconds to weeks, and hours are meant
        without a letter; ``p99_wait <= 1.5 easy``; or ``mean_bsld <= 30``.

        Raises
        ------
        HpcgymError : it says none, or names no measure.
        """
        found = _BOUND.fullmatch(text.strip())
        if found is None:
            raise HpcgymError(
                f"bound {text!r} should be like 'max_wait <= 7d' or 'p99_wait <= 1.5 easy'"
            )
        name, number, unit, easy = found.groups()
        measure = name if name in MEASURES else f"{name}_h"
        if measure not in MEASURES:
            check_choice(f"measure in bound {text!r}", name, _short_names())
        in_hours = measure.endswith("_h")
        if unit and (easy or not in_hours):
            raise HpcgymError(f"bound {text!r}: {number}{unit} is a time, and {name} has no such")
        most = number_in(f"the number of bound {text!r}", number) * (_HOURS[unit] if unit else 1.0)
        if not math.isfinite(most):
            raise HpcgymError(f"bound {text!r}: {number} is too large")
        return cls(measure, most, easy is not None)

    def __str__(self) -> str:
        if self.of_easy:
            return f"{self.measure} <= {self.most:g} easy"
        return f"{self.measure} <= {self.most:g}"

    def limit(self, easy: Mapping[str, float]) -> float:
        """Return the most that the measure may be, where EASY has these measures."""
        return self.most * easy[self.measure] if self.of_easy else self.most


#: What is kept unless one says otherwise: nobody starves for the others' gain.
USUAL_BOUNDS = ("p99_wait <= 1.5 easy", "max_wait <= 1.5 easy")


def _short_names() -> list[str]:
    """Return the names of measures as people write them."""
    return [name.removesuffix("_h") for name in MEASURES]
