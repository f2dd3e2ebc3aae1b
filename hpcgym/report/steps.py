"""Step functions of time, such as the queue length, and how they fit into a picture."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Envelope(NamedTuple):
    """A step function over equal bins of time.

    ``edges``, shape (n_bins + 1,), seconds; ``mean``, ``low`` and ``high``, shape (n_bins,): mean
    over time, least and greatest value in each bin.
    """

    edges: Floats
    mean: Floats
    low: Floats
    high: Floats


def envelope(times: NDArray[Any], values: NDArray[Any], n_bins: int) -> Envelope:
    """Sum up a step function in ``n_bins`` bins, so that no peak is lost however short it was.

    Parameters
    ----------
    times : (n_times,) seconds, increasing, the first and the last being those of the picture.
    values : (n_times,); the function has ``values[i]`` from ``times[i]`` on. A value that holds
        for no time at all is counted by none of the three.
    n_bins : at least 1.
    """
    length = np.diff(times)
    held = length > 0
    starts: Floats = np.append(times[:-1][held], times[-1]).astype(np.float64)
    levels: Floats = values[:-1][held].astype(np.float64)
    if not levels.size:  # nothing lasts
        nothing = np.zeros(n_bins)
        return Envelope(
            np.linspace(starts[0], starts[0] + 1, n_bins + 1), nothing, nothing, nothing
        )
    edges = np.linspace(starts[0], starts[-1], n_bins + 1)
    integral = np.concatenate(([0.0], np.cumsum(levels * np.diff(starts))))
    mean = np.diff(np.interp(edges, starts, integral)) / np.diff(edges)
    # A bin's values are those that begin in it and the one that it begins with.
    entering = np.clip(np.searchsorted(starts, edges[:-1], side="right") - 1, 0, levels.size - 1)
    leaving = np.clip(np.searchsorted(starts, edges[1:], side="left"), 1, levels.size)
    spans = np.stack((entering, leaving), axis=1).ravel()
    levels = np.append(levels, levels[-1])  # reduceat wants every index below the size
    low: Floats = np.minimum.reduceat(levels, spans)[::2]
    high: Floats = np.maximum.reduceat(levels, spans)[::2]
    return Envelope(edges, np.clip(mean, low, high), low, high)
