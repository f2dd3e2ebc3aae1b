"""Rectangles as pixels, for schedules with too many jobs to be drawn one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def coverage(
    left: NDArray[Any],
    right: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
    width: int,
    height: int,
) -> Floats:
    """Return the share of each pixel's area that rectangles cover, each counted by itself.

    Parameters
    ----------
    left, right : (n_rectangles,) horizontal sides, in pixels: 0 to ``width``.
    low, high : (n_rectangles,) vertical sides, in pixels: 0 to ``height``.
    width, height : of the picture, in pixels.

    Returns
    -------
    share : (height, width) float64; above 1 only where rectangles overlap.
    """
    # A rectangle is the sum of four quadrants, one at each corner, two of them negative. A quadrant
    # is 1 beyond its corner and in part in the corner's own row and column: the running sum, in
    # both directions, of four numbers. So n rectangles cost 16 n additions whatever their size.
    total = np.zeros((height + 2) * (width + 2))
    for x, sign_x in ((left, 1.0), (right, -1.0)):
        for y, sign_y in ((low, 1.0), (high, -1.0)):
            column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
            part_x, part_y = x - column, y - row
            for step_x, share_x in ((0, 1 - part_x), (1, part_x)):
                for step_y, share_y in ((0, 1 - part_y), (1, part_y)):
                    pixel = (row + step_y) * (width + 2) + column + step_x
                    share = sign_x * sign_y * share_x * share_y
                    total += np.bincount(pixel, share, total.size)
    summed = total.reshape(height + 2, width + 2).cumsum(axis=0).cumsum(axis=1)
    covered: Floats = np.clip(summed[:height, :width], 0.0, None)
    return covered
