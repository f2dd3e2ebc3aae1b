"""All vectors of three weights on a grid: Legrand et al. 2018, sections 7.1 and 8.1.2."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The features of Legrand et al. 2018, section 7.
THREE = ("processors", "requested", "wait")


class Grid(NamedTuple):
    """The vectors of a grid; those that are multiples of each other are one policy, simulated once.

    Attributes
    ----------
    points : (n_points,) what each weight can be, evenly spaced from -1 to 1.
    weights : (n_directions, 3) each direction once, divided by ||w||_1; all 0 stands for FCFS.
    places : (n_points, n_points, n_points) which direction the vector of three points has.
    """

    points: Floats
    weights: Floats
    places: NDArray[np.int64]


@lru_cache(maxsize=2)
def grid(n_points: int) -> Grid:
    """Return the vectors with ``n_points`` values for each of three weights."""
    codes = _in_steps(np.arange(n_points**3), n_points) @ [4 * n_points**2, 2 * n_points, 1]
    _, chosen, places = np.unique(codes, return_index=True, return_inverse=True)
    weights = vector(n_points, chosen)
    return Grid(np.linspace(-1.0, 1.0, n_points), weights, places.reshape((n_points,) * 3))


def vector(points: int, place: int | NDArray[np.int64]) -> Floats:
    """Return the weights that stand for vectors of the grid, (..., 3), divided by ||w||_1.

    Parameters
    ----------
    points : values of each weight.
    place : in the flattened cube of all vectors.
    """
    reduced = _in_steps(np.asarray(place), points)
    weights: Floats = reduced / np.maximum(np.abs(reduced).sum(axis=-1, keepdims=True), 1)
    return weights


def _in_steps(place: NDArray[np.int64], points: int) -> NDArray[np.int64]:
    """Return vectors in whole steps of half the spacing, without their common divisor."""
    cube = np.stack(np.unravel_index(place, (points,) * len(THREE)), axis=-1)
    steps = 2 * cube - (points - 1)
    return np.asarray(steps // np.maximum(np.gcd.reduce(steps, axis=-1, keepdims=True), 1))
