"""The shapes that an agent may give to the jobs of a user: processors and requested times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice, check_whole, is_number
from hpcgym.machine.speedups.moldable import SPEEDUPS
from hpcgym.workload.columns import read_only
from hpcgym.workload.extracts import stacked
from hpcgym.workload.model import Workload

Ints = NDArray[np.int64]

MOST_SHAPES = 1000
_MOST_FACTOR = 1024.0


@dataclass(frozen=True)
class Shapes:
    """Which shapes each job of a user may have, and whose jobs these are.

    Shape k is the (k // len(requests))-th of ``widths`` and the (k % len(requests))-th of
    ``requests``.

    Attributes
    ----------
    widths : factors of the processors that the log's job asks for; rounded, from 1 to all.
    requests : factors of the time that it requests, as long as that takes on these processors.
    speedup : a name of :data:`hpcgym.machine.speedups.moldable.SPEEDUPS`.
    processors : of the machine.
    user : whose, by the log's number; None: of who has most jobs in an episode.
    """

    widths: tuple[float, ...]
    requests: tuple[float, ...]
    speedup: str
    processors: int
    user: int | None

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.widths) * len(self.requests)

    def factors(self, shape: int) -> tuple[float, float]:
        """Return the factors of processors and of requested time of a shape."""
        width, request = divmod(shape, len(self.requests))
        return self.widths[width], self.requests[request]

    def place(self, width: float, request: float) -> int:
        """Return the shape of these factors, or of those that are next to them."""
        nearest = [
            int(np.argmin([max(other / factor, factor / other) for other in factors]))
            for factors, factor in ((self.widths, width), (self.requests, request))
        ]
        return nearest[0] * len(self.requests) + nearest[1]

    def asked(self, jobs: Workload, shape: int) -> dict[str, Ints]:
        """Return columns of jobs that have all this shape.

        On as many processors as in the log they run as long as there, up to the logged request.
        """
        width, request = self.factors(shape)
        logged, limit = jobs.requested_processors, jobs.requested_time
        other = np.clip(np.floor(width * logged + 0.5), 1, self.processors).astype(np.int64)
        times = SPEEDUPS[self.speedup](logged, other)
        work = np.minimum(jobs.run_time, limit)
        run, longest = (
            np.where(other == logged, seconds, np.maximum(np.ceil(seconds * times), 1))
            for seconds in (work, limit)
        )
        asked = np.maximum(np.ceil(longest * request), 1)
        columns = {"requested_processors": other, "run_time": run, "requested_time": asked}
        return {name: column.astype(np.int64) for name, column in columns.items()}

    def with_all(self, jobs: Workload) -> Workload:
        """Return jobs, and behind them these with each shape, (1 + number) times as many."""
        shaped = [_with(jobs, self.asked(jobs, shape)) for shape in range(self.number)]
        return stacked([jobs, *shaped])

    def given(self, jobs: Workload, shapes: Ints) -> Workload:
        """Return jobs with the shapes that they have been given, (n_jobs,); -1: as in the log."""
        columns = {
            name: jobs.columns[name].copy()
            for name in ("requested_processors", "run_time", "requested_time")
        }
        for shape in np.unique(shapes[shapes >= 0]).tolist():
            rows = np.flatnonzero(shapes == shape)
            for name, values in self.asked(jobs.take(rows), shape).items():
                columns[name][rows] = values
        return _with(jobs, columns)

    def user_of(self, jobs: Workload, first: int, last: int) -> int:
        """Return whose jobs an agent submits in an episode: rows ``first`` to ``last`` count.

        Raises
        ------
        HpcgymError : of none of these jobs it is known whose it is.
        """
        if self.user is not None:
            return self.user
        known = jobs.user_id[first:last]
        users, number = np.unique(known[known >= 0], return_counts=True)
        if not len(users):
            raise HpcgymError(f"{jobs.name}: an episode does not tell whose its jobs are")
        return int(users[number.argmax()])


def _with(jobs: Workload, columns: dict[str, Ints]) -> Workload:
    """Return the same jobs with other columns, where they stand, in whatever order."""
    changed = {name: read_only(values) for name, values in columns.items()}
    return replace(jobs, columns={**jobs.columns, **changed})


def read_shapes(
    widths: Any, requests: Any, speedup: Any, user: Any, workload: Workload, processors: int
) -> Shapes:
    """Return the shapes, checked.

    Raises
    ------
    HpcgymError : wrong or too many factors, no such model, or a log without users.
    """
    factors = []
    for name, given in (("widths", widths), ("requests", requests)):
        fine = isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 0
        if not fine or not all(
            is_number(x) and 1 / _MOST_FACTOR <= x <= _MOST_FACTOR for x in given
        ):
            raise HpcgymError(
                f"{name} must be factors from 1/{_MOST_FACTOR:g} to {_MOST_FACTOR:g}, not {given!r}"
            )
        if len(set(given)) < len(given):
            raise HpcgymError(f"{name}: a factor is named twice")
        factors.append(tuple(float(x) for x in given))
    if len(factors[0]) * len(factors[1]) > MOST_SHAPES:
        raise HpcgymError(f"widths and requests: at most {MOST_SHAPES:,} shapes together")
    check_choice("speedup", speedup, SPEEDUPS)
    if not (workload.user_id >= 0).any():
        raise HpcgymError(f"{workload.name} does not tell whose jobs are whose")
    if user is not None and check_whole("user", user, 0) not in workload.user_id:
        raise HpcgymError(f"user: {workload.name} has no job of user {user}")
    return Shapes(factors[0], factors[1], speedup, processors, user)
