"""The observation where jobs share nodes: its fields, in what order they stand in a flat row."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.envs.core.layout import Observation

MACHINE_SIZE, JOB_SIZE, NEIGHBOUR_SIZE, PAIR_SIZE = 8, 8, 5, 2


class PairLayout:
    """Where the fields of an observation lie in a flat row of float32.

    Parameters
    ----------
    window, neighbours : W and M, how many waiting and running jobs are shown.
    flat : whether observations are the rows themselves, or dicts of fields.

    Attributes
    ----------
    scores : W (M + 1), how many pairs an action can name.
    actions : one more, for waiting: the entries of the mask.
    """

    def __init__(self, window: int, neighbours: int, flat: bool) -> None:
        self.window, self.neighbours, self.flat = window, neighbours, flat
        self.scores = window * (neighbours + 1)
        self.actions = self.scores + 1
        self.neighbours_at = MACHINE_SIZE + window * JOB_SIZE
        self.pairs_at = self.neighbours_at + neighbours * NEIGHBOUR_SIZE
        self.mask_at = self.pairs_at + window * neighbours * PAIR_SIZE
        self.power_at = self.size = self.mask_at + self.actions

    @property
    def space(self) -> spaces.Box | spaces.Dict:
        """The space of an observation."""
        if self.flat:
            return spaces.Box(0.0, 1.0, (self.size,), np.float32)
        fields: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(0.0, 1.0, shape, np.float32) for name, shape in self.shapes.items()
        }
        return spaces.Dict(fields | {"mask": spaces.MultiBinary(self.actions)})

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all fields but the mask, in their order."""
        return {
            "machine": (MACHINE_SIZE,),
            "jobs": (self.window, JOB_SIZE),
            "neighbours": (self.neighbours, NEIGHBOUR_SIZE),
            "pairs": (self.window, self.neighbours, PAIR_SIZE),
        }

    def of(self, rows: NDArray[np.float32], masks: NDArray[np.int8]) -> Observation:
        """Return an observation as views of a row and its mask, or of those of many environments.

        Copies of them make a copy of the observation.
        """
        if self.flat:
            return rows
        return self.fields(rows) | {"mask": masks}

    def fields(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the fields of rows but the mask, as views."""
        places = (0, MACHINE_SIZE, self.neighbours_at, self.pairs_at, self.mask_at)
        return {
            name: rows[..., first:stop].reshape(*rows.shape[:-1], *shape)
            for (name, shape), first, stop in zip(
                self.shapes.items(), places[:-1], places[1:], strict=True
            )
        }
