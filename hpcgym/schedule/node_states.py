"""When nodes are off or being switched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.numbers import whole_column
from hpcgym.errors import HpcgymError

#: What a node does in an interval of :class:`NodeStates`; the codes are places in it.
OFF, SWITCHING_OFF, SWITCHING_ON = 0, 1, 2
STATE_NAMES = ("off", "switching_off", "switching_on")

_DTYPES = {"node": np.int64, "state": np.int8, "begin": np.int64, "end": np.int64}


@dataclass(frozen=True, eq=False)
class NodeStates:
    """Intervals in which nodes are off or being switched; at other times they are on. Read-only.

    Attributes
    ----------
    node : (n_intervals,) int64, from 0.
    state : (n_intervals,) int8, places in :data:`STATE_NAMES`.
    begin, end : (n_intervals,) int64 [s]; an interval goes from ``begin`` up to ``end``, exclusive.

    The intervals are kept by node and time, whatever the order in which they are given.

    Raises
    ------
    HpcgymError : arrays of other shapes, or of no whole numbers; a node below 0, a state that is
        none, an interval that ends before it begins, or one that begins within another of its node.
    """

    node: NDArray[np.int64]
    state: NDArray[np.int8]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def __post_init__(self) -> None:
        columns = {
            name: whole_column(f"node states: {name}", getattr(self, name)) for name in _DTYPES
        }
        shapes = {column.shape for column in columns.values()}
        if len(shapes) > 1 or len(shapes.pop()) != 1:
            raise HpcgymError(
                "node states are four arrays of one length, not of "
                + ", ".join(f"{name} {column.shape}" for name, column in columns.items())
            )
        node, state, begin, end = columns.values()
        _check(node < 0, "node {} is none", node)
        _check((state < 0) | (state >= len(STATE_NAMES)), "state {} is none", state)
        _check(end <= begin, "an interval of node {} from {} s to {} s", node, begin, end)
        order = np.lexsort((begin, node))
        for name, column in columns.items():
            kept = column[order].astype(_DTYPES[name])
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)
        overlaps = (np.diff(self.node) == 0) & (self.begin[1:] < self.end[:-1])
        text = "two intervals of node {} at {} s"
        _check(overlaps, text, self.node[1:], self.begin[1:])

    def __len__(self) -> int:
        return len(self.node)


def _check(wrong: NDArray[np.bool_], text: str, *values: NDArray[Any]) -> None:
    """Raise an HpcgymError about the first case that is wrong."""
    if wrong.any():
        first = int(wrong.argmax())
        raise HpcgymError("node states: " + text.format(*(value[first] for value in values)))
