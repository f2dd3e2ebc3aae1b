"""Arrays that nobody can change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``values`` so that nobody can change them, copied if their owner still could."""
    owner: Any = values
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    if not isinstance(owner, np.ndarray) or values.strides == (0,):
        return values
    values = values.copy()
    values.flags.writeable = False
    return values
