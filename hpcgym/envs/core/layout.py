"""The observation: its fields, in what order they stand in a flat row, and its spaces."""

from __future__ import annotations

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
    """

    def __init__(self, window: int, width: int, flat: bool, power: int = 0) -> None:
        self.window, self.width, self.flat, self.power = window, width, flat, power
        self.actions = self.scores = window
        self.mask_at = JOBS_AT + window * width
        self.power_at = self.mask_at + window
        self.size = self.power_at + power

    @property
    def space(self) -> spaces.Box | spaces.Dict:
        """The space of an observation."""
        if self.flat:
            return spaces.Box(-1.0, 1.0, (self.size,), np.float32)
        unit = {"cluster": (CLUSTER_SIZE,), "queue": (QUEUE_SIZE,)}
        jobs = spaces.Box(-1.0, 1.0, (self.window, self.width), np.float32)
        power = {"power": spaces.Box(-1.0, 1.0, (self.power,), np.float32)} if self.power else {}
        return spaces.Dict(
            {name: spaces.Box(0.0, 1.0, shape, np.float32) for name, shape in unit.items()}
            | power
            | {
                "time": spaces.Box(-1.0, 1.0, (TIME_SIZE,), np.float32),
                "jobs": jobs,
                "mask": spaces.MultiBinary(self.window),
            }
        )

    def of(self, rows: NDArray[np.float32], masks: NDArray[np.int8]) -> Observation:
        """Return an observation as views of a row and its mask, or of those of many environments.

        Copies of them make a copy of the observation.
        """
        if self.flat:
            return rows
        if rows.ndim == 1 and self.power == 0:
            return {
                "cluster": rows[:QUEUE_AT],
                "queue": rows[QUEUE_AT:TIME_AT],
                "time": rows[TIME_AT:JOBS_AT],
                "jobs": rows[JOBS_AT : self.mask_at].reshape(self.window, self.width),
                "mask": masks[: self.window],
            }
        jobs = rows[..., JOBS_AT : self.mask_at]
        power = {"power": rows[..., self.power_at :]} if self.power else {}
        return {
            "cluster": rows[..., :QUEUE_AT],
            "queue": rows[..., QUEUE_AT:TIME_AT],
            "time": rows[..., TIME_AT:JOBS_AT],
            "jobs": jobs.reshape(*rows.shape[:-1], self.window, self.width),
            "mask": masks[..., : self.window],
            **power,
        }


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
