"""Heatmaps from a seed, and heatmaps by name.

What memory does is what makes speedups differ. A code that is bound by memory bandwidth or cache
gains much on half sockets, where each of its processes has more of both, and costs its neighbour
much; one that is bound by its cores gains nothing, and is the best of neighbours. So::

    log speedup(a, b) = sensitivity of a - pressure of b + noise of (a, b)

with a sensitivity and a pressure that go together. That is what the public measurements of ELiSE
look like (NAS on ARIS and Grvingt, SPEC on ARIS): of the variance of the logarithms 47 to 55 % are
between codes, 33 to 44 % between neighbours, 8 to 13 % neither; sensitivity and pressure have a
correlation of 0.81 to 0.97; and the logarithms are nearly symmetric about their mean (skewness -0.1
to 0.4), the speedups are less so (0.4 to 0.8).
"""

from __future__ import annotations

import inspect
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.opening import check_is_there
from hpcgym.speedups.files import read_speedups
from hpcgym.speedups.heatmap import Floats, Heatmap

# Shares of the variance between codes and between neighbours, and how sensitivity and pressure go
# together: about the middle of what was measured.
_SENSITIVITY, _PRESSURE, _CORRELATION = 0.5, 0.4, 0.87

#: The greatest standard deviation of the logarithm of speedups; that of ELiSE's is 0.1 to 0.2.
_MOST_SPREAD = 2.0

_NAME = "generated"


def generate_speedups(
    codes: int = 16, mean: float = 1.1, spread: float = 0.1, seed: int = 0
) -> Heatmap:
    """Generate a heatmap of a given mean and spread, as of codes more or less bound by memory.

    The same arguments give the same heatmap to the last bit, whatever the machine: of random
    numbers there are only sums, products and roots.

    Parameters
    ----------
    codes : how many; they are called code-1, code-2 and so on.
    mean : of all pairs' speedups, each code beside itself among them; above 0.
    spread : standard deviation of all pairs' speedups, at least 0. Both are met to 1e-12.
    seed : of the random numbers, at least 0.

    Raises
    ------
    HpcgymError : an argument out of range, or a spread that is too large for mean and codes, so
        that speedups would come close to 0; the message names it.
    """
    codes = _whole("codes", codes, 1, 1000)
    seed = _whole("seed", seed, 0, 2**64)
    mean, spread = _real("mean", mean), _real("spread", spread)
    if mean <= 0 or spread < 0:
        name, value = ("mean", mean) if mean <= 0 else ("spread", spread)
        least = "above 0" if name == "mean" else "of at least 0"
        raise HpcgymError(f"{_NAME} speedups: {name} must be a number {least}, not {value:g}")
    logarithms = _logarithms(codes, np.random.default_rng(seed))
    relative = _with_variation(logarithms, spread / mean)
    if relative is None:
        most = mean * _variation(_exponential(_MOST_SPREAD * logarithms))
        raise HpcgymError(
            f"{_NAME} speedups: spread must be at most {most:.3g} for a mean of {mean:g} and"
            f" {codes} codes, not {spread:g}"
        )
    speedup = relative * (mean / _mean(relative))
    names = tuple(f"code-{number}" for number in range(1, codes + 1))
    source = f"{_NAME}:codes={codes},mean={mean!r},spread={spread!r},seed={seed}"
    return Heatmap(names, speedup, source=source)


def find_speedups(source: str | os.PathLike[str] | Heatmap) -> Heatmap:
    """Return the heatmap that ``source`` names.

    Parameters
    ----------
    source : a heatmap; a file of :func:`hpcgym.speedups.read_speedups`; or "generated" with any
        arguments of :func:`generate_speedups`, "generated:codes=16,mean=1.1,spread=0.1,seed=0".

    Raises
    ------
    HpcgymError : no such file, or one that cannot be read; an unknown or wrong argument.
    """
    if isinstance(source, Heatmap):
        return source
    if not isinstance(source, str | os.PathLike):
        raise HpcgymError(
            f"speedups must be a heatmap, a file or a text, not a {type(source).__name__}"
        )
    if isinstance(source, str) and source.partition(":")[0] == _NAME:
        return generate_speedups(**_arguments(source))
    path = Path(os.path.expanduser(source))
    if not path.exists():
        check_is_there(source)
    if not os.path.exists(path):
        raise HpcgymError(
            f"there are no speedups {str(source)!r}: neither such a file (CSV, JSON, loads of"
            f" ELiSE) nor {_NAME}:codes=16,mean=1.1,spread=0.1,seed=0"
        )
    return read_speedups(path)


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments in a text, "generated:name=number,name=number"."""
    known = inspect.signature(generate_speedups).parameters
    found: dict[str, Any] = {}
    for part in filter(None, text.partition(":")[2].split(",")):
        name, _, value = (word.strip() for word in part.partition("="))
        check_choice(f"argument of {_NAME} speedups", name, known)
        if name in found:
            raise HpcgymError(f"{_NAME} speedups: {name} is given twice")
        # a seed may be too long for a float
        found[name] = int(value) if value.isdecimal() else _real(name, value)
    return found


def _whole(name: str, value: Any, least: int, most: int) -> int:
    """Return an argument as an int; a float from a text may stand for one (1e3)."""
    number = value if isinstance(value, int) else _real(name, value)
    if not least <= number <= most or number != int(number):
        raise HpcgymError(
            f"{_NAME} speedups: {name} must be a whole number from {least} to {most}, not {value!r}"
        )
    return int(number)


def _real(name: str, value: Any) -> float:
    """Return an argument as a float, or say that it is no number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise HpcgymError(f"{_NAME} speedups: {name} must be a number, not {value!r}")
    return number


def _logarithms(codes: int, rng: np.random.Generator) -> Floats:
    """Return log speedups of each pair, (codes, codes), with mean 0 and standard deviation 1."""
    sensitivity, own, noise = (
        rng.standard_normal(codes),
        rng.standard_normal(codes),
        rng.standard_normal((codes, codes)),
    )
    pressure = _CORRELATION * sensitivity + math.sqrt(1 - _CORRELATION**2) * own
    logarithms = (
        math.sqrt(_SENSITIVITY) * sensitivity[:, np.newaxis]
        - math.sqrt(_PRESSURE) * pressure
        + math.sqrt(1 - _SENSITIVITY - _PRESSURE) * noise
    )
    logarithms -= _mean(logarithms)
    deviation = math.sqrt(_mean(logarithms * logarithms))
    return logarithms / deviation if deviation > 0 else logarithms


def _with_variation(logarithms: Floats, variation: float) -> Floats | None:
    """Return exp(t x) with t such that standard deviation over mean are ``variation``, if it can.

    They rise with t, and the search ends where there is no float in between.
    """
    low, high = 0.0, _MOST_SPREAD
    if variation == 0:
        return np.ones(logarithms.shape)
    if _variation(_exponential(high * logarithms)) < variation:
        return None
    while low < (middle := (low + high) / 2) < high:
        if _variation(_exponential(middle * logarithms)) < variation:
            low = middle
        else:
            high = middle
    return _exponential(high * logarithms)


def _exponential(x: Floats) -> Floats:
    """Return nearly exp(x), (1 + x / 2^10)^(2^10).

    Only by products, which have the same bits on every machine; numpy's exp has not.
    """
    power = 1 + x / 2**10
    for _ in range(10):
        power *= power
    return power


def _mean(values: Floats) -> float:
    """Return the mean, rounded once, so that it is the same on every machine."""
    return math.fsum(values.ravel().tolist()) / values.size


def _variation(values: Floats) -> float:
    """Return the standard deviation over the mean."""
    mean = _mean(values)
    deviations = values - mean
    return math.sqrt(_mean(deviations * deviations)) / mean
