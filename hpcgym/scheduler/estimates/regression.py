"""Learned regression of run times: what is learned, of which features, under which loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from hpcgym.errors import HpcgymError, check_choice, is_number, unknown
from hpcgym.scheduler.estimates.features import JOB_FEATURES

#: Names of the branches of a loss and of the weightings of jobs: their codes are their places.
BRANCHES = ("absolute", "squared", "exponential")
WEIGHTINGS = ("1", "long", "wide", "small", "large")

#: Exponents are cut off here: the squares of slopes, times features, still are finite.
LARGEST_EXPONENT = 300.0

_PREFIX = "regression"


@dataclass(frozen=True)
class Regression:
    """An on-line regression of run times (Glesser 2016, section 7.3.2), compiled.

    A prediction is f = w . Phi(x): the products of up to ``degree`` features, weighted. Each job
    that ends is learned by one step of NAG (Ross, Mineiro and Langford 2013) on the loss

        weight * over(f - p - threshold)    if f is longer than the run time p + threshold,
        weight * under(p + threshold - f)   else,

    plus ``l2`` / 2 times the sum of squares of w. The predicted run time is abs(f), in whole
    seconds, from 1 to the requested time.

    Attributes
    ----------
    over, under : "absolute" (scale z), "squared" (scale z^2) or "exponential" (exp(scale z)): what
        too long and too short predictions cost, z [s].
    over_scale, under_scale : above 0.
    threshold : [s] predictions up to so much too long count as too short.
    weight : what a job counts, q its processors: "1", "long" 5 + log(p/q), "wide" 5 + log(q/p),
        "small" 11 + log(1/(q p)), "large" 1 + log(q p) (table 7.3, where the last is without 1).
    eta : how fast to learn.
    l2 : how much large weights cost.
    features : names of :data:`hpcgym.scheduler.estimates.JOB_FEATURES`.
    degree : 1 or 2.

    ``eta`` and ``l2`` are by default those of the published campaign.

    Raises
    ------
    HpcgymError : a value that is not one of these.

    Examples
    --------
    >>> from hpcgym.scheduler.estimates import Regression
    >>> print(Regression.parse("e-loss"))
    regression:over=squared,under=absolute,weight=large
    """

    over: str = "squared"
    under: str = "squared"
    over_scale: float = 1.0
    under_scale: float = 1.0
    threshold: float = 0.0
    weight: str = "1"
    eta: float = 5000.0
    l2: float = 4e9
    features: tuple[str, ...] = tuple(JOB_FEATURES)
    degree: int = 2

    def __post_init__(self) -> None:
        for name, known in (("over", BRANCHES), ("under", BRANCHES), ("weight", WEIGHTINGS)):
            if getattr(self, name) not in known:
                raise HpcgymError(unknown(name, getattr(self, name), known))
        for name in ("over_scale", "under_scale", "threshold", "eta", "l2"):
            value = _number(name, getattr(self, name), name in ("threshold", "l2"))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "features", _features(self.features))
        if self.degree not in (1, 2):
            raise HpcgymError(f"degree must be 1 or 2, not {self.degree!r}")

    @classmethod
    def parse(cls, text: str) -> Regression:
        """Return the regression that a text stands for.

        Parameters
        ----------
        text : "e-loss" (equation 7.3: squared over, absolute under, large jobs weigh more),
            "regression", or "regression:" and attributes parted by commas, as ``str`` gives it;
            features are joined by "+".

        Raises
        ------
        HpcgymError : an unknown attribute, or a value that it cannot have.
        """
        if text == "e-loss":
            return cls(over="squared", under="absolute", weight="large")
        head, _, tail = text.partition(":")
        if head != _PREFIX:
            raise HpcgymError(unknown("regression", text, ("e-loss", "regression:over=...")))
        given: dict[str, Any] = {}
        for part in filter(None, tail.split(",")):
            name, sign, value = part.partition("=")
            if not sign:
                raise HpcgymError(
                    f"{text!r}: {part!r} is no attribute=value; commas part attributes, and "
                    "features are joined by '+', as in features=requested+ave2"
                )
            if name not in [field.name for field in fields(cls)]:
                raise HpcgymError(unknown(f"attribute in {text!r}", name, _NAMES))
            given[name] = _read(name, value)
        return cls(**given)

    def __str__(self) -> str:
        """Return the text that :meth:`parse` takes."""
        usual = type(self)()
        parts = [
            f"{field.name}={_write(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(usual, field.name)
            or field.name in ("over", "under", "weight")
        ]
        return f"{_PREFIX}:{','.join(parts)}"


_NAMES = [field.name for field in fields(Regression)]
_TEXTS = ("over", "under", "weight")


def _number(name: str, value: Any, may_be_0: bool) -> float:
    """Return a number of at least 0, or above it."""
    good = is_number(value) and math.isfinite(value)
    if not good or value < 0 or (value == 0 and not may_be_0):
        least = "of at least 0" if may_be_0 else "above 0"
        raise HpcgymError(f"{name} must be a number {least}, not {value!r}")
    return float(value)


def _features(names: Any) -> tuple[str, ...]:
    """Return names of features, checked."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise HpcgymError(f"features must be names of features, at least one, not {names!r}")
    for name in names:
        check_choice("feature", name, JOB_FEATURES)
    if len(set(names)) < len(names):
        raise HpcgymError("features: a feature is named twice")
    return tuple(names)


def _read(name: str, text: str) -> Any:
    """Return the value of an attribute that a text gives."""
    if name in _TEXTS:
        return text
    if name == "features":
        return tuple(text.split("+"))
    try:
        return int(text) if name == "degree" else float(text)
    except ValueError:
        raise HpcgymError(f"{name} must be a number, not {text!r}") from None


def _write(value: Any) -> str:
    """Return an attribute's value as a text."""
    if isinstance(value, tuple):
        return "+".join(value)
    return value if isinstance(value, str) else repr(value).removesuffix(".0")
