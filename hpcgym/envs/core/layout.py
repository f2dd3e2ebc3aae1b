"""The observation: its fields, in what order they stand in a flat row, and its spaces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

HOUR = 3600.0  # [s]
#: [s] from now: when the share of free processors is looked at
HORIZONS = np.array([60, 600, 3600, 14_400, 43_200, 86_400, 259_200, 604_800], np.int64)
CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE = 1 + len(HORIZONS) + 1, 6, 4
ON_AT = CLUSTER_SIZE - 1  # where the share of what is free and on stands
QUEUE_AT = CLUSTER_SIZE
TIME_AT = QUEUE_AT + QUEUE_SIZE
JOBS_AT = TIME_AT + TIME_SIZE

#: What is to be seen of power, in order: the field "power".
POWER = (
    *("true_power", "charged_power", "cap_now", "cap_left", "cap_next", "cap_in"),
    *("energy_left", "energy_saved", "power_left", "period_left", "period_in"),
    *("nodes_off", "nodes_switching", "nodes_busy", "ceiling_now"),
)
POWER_SIZE = len(POWER)

Observation = NDArray[np.float32] | dict[str, NDArray[Any]]


class Layout:
    """Where the fields of an observation lie in a flat row of float32.

    Parameters
    ----------
    window, width : shape of the field "jobs".
    flat : whether observations are the rows themselves, or dicts of fields.
    power : how many numbers say what is known of power, behind all others; 0: none do.

    Attributes
    ----------
    actions, scores : how many indices and how many numbers stand for visible jobs in actions.
    mask_at, power_at : where these fields begin.
    size : of a row.
    """

    def __init__(self, window: int, width: int, flat: bool, power: int = 0) -> None:
        self.actions = self.scores = window
        fields: dict[str, tuple[int, ...]] = {
            "cluster": (CLUSTER_SIZE,),
            "queue": (QUEUE_SIZE,),
            "time": (TIME_SIZE,),
            "jobs": (window, width),
            "mask": (window,),
        }
        if power:
            fields["power"] = (power,)
        self._lay(fields, flat, ("time", "jobs", "power"))
        self.power_at = self.size - power

    def _lay(
        self, fields: dict[str, tuple[int, ...]], flat: bool, signed: tuple[str, ...] = ()
    ) -> None:
        """Note fields of these shapes in their order; ``signed``: those that may be negative."""
        self.flat, self._fields, self._signed = flat, fields, signed
        sizes = [math.prod(shape) for shape in fields.values()]
        stops = dict(zip(fields, np.cumsum(sizes).tolist(), strict=True))
        self.size = sum(sizes)
        self.mask_at = stops["mask"] - fields["mask"][0]
        self._visible = fields["mask"][0]
        self._parts = [
            (name, slice(stop - size, stop))
            for (name, stop), size in zip(stops.items(), sizes, strict=True)
            if name != "mask"
        ]
        self._tables = [(name, shape) for name, shape in fields.items() if len(shape) > 1]

    @property
    def space(self) -> spaces.Box | spaces.Dict:
        """The space of an observation."""
        if self.flat:
            return spaces.Box(-1.0 if self._signed else 0.0, 1.0, (self.size,), np.float32)
        boxes: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(-1.0 if name in self._signed else 0.0, 1.0, shape, np.float32)
            for name, shape in self._fields.items()
        }
        return spaces.Dict(boxes | {"mask": spaces.MultiBinary(self._visible)})

    def of(self, rows: NDArray[np.float32], masks: NDArray[np.int8]) -> Observation:
        """Return an observation as views of a row and its mask, or of those of many environments.

        Copies of them make a copy of the observation.
        """
        if self.flat:
            return rows
        seen = self.fields(rows)
        seen["mask"] = masks[..., : self._visible]
        return seen

    def fields(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the fields of a row, or of many, but the mask, as views."""
        if rows.ndim == 1:
            found = {name: rows[part] for name, part in self._parts}
        else:
            found = {name: rows[:, part] for name, part in self._parts}
        for name, shape in self._tables:
            found[name] = found[name].reshape(*rows.shape[:-1], *shape)
        return found


MACHINE_SIZE, JOB_SIZE, NEIGHBOUR_SIZE, PAIR_SIZE = 8, 8, 5, 2


class PairLayout(Layout):
    """The same where jobs share nodes.

    Parameters
    ----------
    window, neighbours : W and M, how many waiting and running jobs are shown.

    Attributes
    ----------
    scores : W (M + 1), how many pairs an action can name.
    actions : one more, for waiting: the entries of the mask.
    """

    def __init__(self, window: int, neighbours: int, flat: bool) -> None:
        self.window, self.neighbours = window, neighbours
        self.scores = window * (neighbours + 1)
        self.actions = self.scores + 1
        fields: dict[str, tuple[int, ...]] = {
            "machine": (MACHINE_SIZE,),
            "jobs": (window, JOB_SIZE),
            "neighbours": (neighbours, NEIGHBOUR_SIZE),
            "pairs": (window, neighbours, PAIR_SIZE),
            "mask": (self.actions,),
        }
        self._lay(fields, flat)
        self.power_at = self.size
