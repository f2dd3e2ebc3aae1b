"""The rule that holds long jobs back, so that some processors stay free behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice, is_number, number_in, unknown
from hpcgym.naming import seconds_of

#: The run times by which a job is held back -> what they are.
HOLD_BY = {
    "requested": "the requested time",
    "policy_estimate": "the run time that the policy looks at",
    "both": "the geometric mean of these two",
}
BY_REQUESTED, BY_PREDICTED, BY_BOTH = range(3)
_CODES = dict(zip(HOLD_BY, (BY_REQUESTED, BY_PREDICTED, BY_BOTH), strict=True))
#: The numbers of the rule as the engine takes them: processors that the longest jobs hold back,
#: share P; from [s]; the logarithm of factor; by which run times.
MOST, FROM, LOG_FACTOR, BY = range(4)
_MOST_S = 2**53


@dataclass(frozen=True)
class Hold:
    """Hold jobs back that are probably long: they start only if some processors stay free.

    On a machine of P processors, a job of q starts only if there are so many free:
    min(P, q + round(share P z / (1 + wait / erode_s))), with z = ln(x / from_s) / ln(factor), at
    least 0 and at most 1, of a run time x. Halves are rounded to even numbers. docs/semantics.md
    says what it means for the reservation of the head and for backfilling.

    Attributes
    ----------
    share : the part of the machine that the longest jobs leave free, 0 to 1.
    from_s : run time from which on jobs are held back [s].
    factor : above 1: jobs ``factor`` times as long as ``from_s``, and longer ones, leave the whole
        share free.
    erode_s : whole seconds of waiting after which a job leaves half as much free; ``math.inf``:
        waiting changes nothing.
    by : the run time x, a name of :data:`HOLD_BY`.

    Raises
    ------
    HpcgymError : a value that is not one of these.

    Examples
    --------
    >>> from hpcgym.scheduler.hold import Hold
    >>> print(Hold(0.1))
    share=0.1,from_s=3600,factor=64,erode_s=14400,by=requested
    """

    share: float
    from_s: float = 3600.0
    factor: float = 64.0
    erode_s: float = 14400
    by: str = "requested"

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "share", _number("share", self.share, 0, 1))
        settle(self, "from_s", _number("from_s", self.from_s, 1, _MOST_S))
        settle(self, "factor", _number("factor", self.factor, 1, 1e12))
        if self.factor == 1:
            raise HpcgymError("hold: factor must be above 1")
        settle(self, "erode_s", _erode(self.erode_s))
        check_choice("hold: by", self.by, HOLD_BY)

    def __str__(self) -> str:
        return ",".join(
            f"{name}={value if isinstance(value, str) else repr(value).removesuffix('.0')}"
            for name, value in self.table().items()
        )

    @classmethod
    def parse(cls, given: Any) -> Hold | None:
        """Return what a number, a text or a mapping says; None where nothing is held back.

        That is a share, ``0.1``; ``share=0.1,from_s=3600``; or a mapping of the attributes.

        Raises
        ------
        HpcgymError : an unknown name or a value that is wrong.
        """
        if given is None or isinstance(given, Hold):
            found = given
        elif isinstance(given, Mapping):
            found = cls._of(given)
        elif isinstance(given, str):
            found = cls._of(_pairs(given))
        else:
            found = cls(given)
        return None if found is None or found.share == 0 else found

    @classmethod
    def _of(cls, entries: Mapping[str, Any]) -> Hold:
        known = [each.name for each in fields(cls)]
        for name in entries:
            if name not in known:
                raise HpcgymError(unknown("entry in hold", name, known))
        if "share" not in entries:
            raise HpcgymError("hold: share is missing, the part of the machine to leave free")
        return cls(**entries)

    def table(self) -> dict[str, Any]:
        """Return the attributes as JSON can hold them; :meth:`parse` takes them back."""
        table = {each.name: getattr(self, each.name) for each in fields(self)}
        return table | ({"erode_s": "inf"} if self.erode_s == math.inf else {})

    def numbers(self, processors: int) -> NDArray[np.float64]:
        """Return the numbers of the rule as the engine takes them, on so many processors."""
        numbers = np.empty(4)
        numbers[MOST] = self.share * processors
        numbers[FROM] = self.from_s
        numbers[LOG_FACTOR] = math.log(self.factor)
        numbers[BY] = _CODES[self.by]
        return numbers

    def held_back(
        self, requested: NDArray[np.int64], predicted: NDArray[np.int64], processors: int
    ) -> NDArray[np.float64]:
        """Return how many processors each job holds back before it has waited, (n_jobs,).

        Parameters
        ----------
        requested, predicted : (n_jobs,) [s], of those the run times that policies look at.
        processors : of the machine.
        """
        most, least, log_factor, by = self.numbers(processors)
        x = requested.astype(np.float64)
        if by == BY_PREDICTED:
            x = predicted.astype(np.float64)
        elif by == BY_BOTH:
            x = np.sqrt(x * predicted)
        # the logarithms of the C library, as in the engine: numpy's may differ in the last bit
        times, place = np.unique(x, return_inverse=True)
        held = [
            most * min(math.log(each / least) / log_factor, 1.0) if each > least else 0.0
            for each in times.tolist()
        ]
        return np.array(held, np.float64)[place]

    @property
    def looks_at_estimate(self) -> bool:
        """Whether it looks at the run times that policies look at."""
        return self.by != "requested"


def _pairs(text: str) -> dict[str, Any]:
    """Return the entries that a text names; one without a name is the share."""
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            name, value = "share", name
        if name in found:
            raise HpcgymError(f"hold: {name} is there twice in {text!r}")
        seconds = seconds_of(value) if name in ("from_s", "erode_s") else None
        found[name] = seconds if seconds is not None else value
        if seconds is None and name != "by":
            found[name] = number_in(f"hold: {name}", value)
    return found


def _erode(value: Any) -> float:
    """Return after how long half as much is held back [s], checked."""
    if value in (math.inf, "inf"):
        return math.inf
    value = value.item() if isinstance(value, np.generic) else value
    if not is_number(value) or not 1 <= value <= _MOST_S or value != int(value):
        raise HpcgymError(f"hold: erode_s must be whole seconds from 1 on, or inf, not {value!r}")
    return float(value)


def _number(name: str, value: Any, least: float, most: float) -> float:
    """Return a number within bounds, checked."""
    value = value.item() if isinstance(value, np.generic) else value
    if not is_number(value) or not least <= value <= most:
        raise HpcgymError(f"hold: {name} must be a number from {least} to {most:g}, not {value!r}")
    return float(value)
