"""The whole space of three weights, covered by a grid: Legrand 2018, sections 7.1 and 8.1.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import compiling
from hpcgym.compilation.threads import OnThreads
from hpcgym.engine import state
from hpcgym.engine.constants import TAU_S
from hpcgym.engine.many import coverage
from hpcgym.errors import HpcgymError, unknown
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.policies.features import FEATURES, check_features
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.warm_start import check_extract
from hpcgym.sweep.batch import METRICS, BatchSimulator, thread_count
from hpcgym.sweep.batch_table import make_workers
from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]

#: The features of Legrand et al. 2018, section 7.
THREE = ("processors", "requested", "wait")

_TILE = 1500  # vectors, about
_TILES_A_CALL = 50


class Coverage(NamedTuple):
    """A metric of one slice under all vectors of a grid.

    Attributes
    ----------
    points : (n_points,) float64, what each weight can be.
    values : (n_points, n_points, n_points) float64: ``values[i, j, k]`` is the metric under the
        weights ``points[[i, j, k]]``.
    simulations : how many it took.
    """

    points: Floats
    values: Floats
    simulations: int

    def __repr__(self) -> str:
        shape, least = " x ".join(map(str, self.values.shape)), self.best
        return f"Coverage({shape} vectors, {self.simulations:,} simulations, best {least:.6g})"

    @property
    def best(self) -> float:
        """The least value."""
        return float(self.values.min())

    @property
    def weights(self) -> Floats:
        """The first vector with the least value, (3,), divided by ||w||_1."""
        return vector(len(self.points), int(self.values.argmin()))


def cover(
    workload: Workload,
    features: Sequence[str] = THREE,
    scheduler: str | Scheduler = "spf",
    *,
    points: int = 100,
    metric: str = "mean_bsld",
    processors: int | None = None,
    tau: float = TAU_S,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Coverage:
    """Compute a metric of a slice under every vector of a grid.

    Each weight has ``points`` values, evenly spaced from -1 to 1 (Legrand 2018 has 100): a million
    vectors, of which some are multiples of others and so the same policy. All have the value that
    :class:`BatchSimulator` gives them (as whole numbers without a common divisor, divided by
    ||w||_1: of multiples of these, rounding may serve jobs of equal scores in another order). But
    vectors that provably make the same schedule as one that was simulated are not simulated again,
    see :mod:`hpcgym.engine.many.coverage`.

    Parameters
    ----------
    workload : the slice.
    features : three names of :data:`hpcgym.scheduler.policies.FEATURES`; of those that change as a
        job waits only "wait".
    scheduler, processors, tau : see :class:`BatchSimulator`; passes per timestamp, and estimates
        that do not learn, only.
    points : at least 2. With an odd number weights can be 0; all 0 stands for FCFS.
    metric : a name of :data:`hpcgym.sweep.batch.METRICS` of which less is better.
    threads : as for :meth:`BatchSimulator.run`.
    progress : called with the shares of the space done and all of them, now and then.

    Raises
    ------
    HpcgymError : an argument that is not one of these.
    """
    if not isinstance(workload, Workload):
        raise HpcgymError(f"workload must be a single workload, not {workload!r}")
    check_extract(workload, "coverage")
    batch = BatchSimulator([workload], features, scheduler, processors=processors, tau=tau)
    _check(batch)
    if metric not in METRICS or metric == "utilization":
        raise HpcgymError(unknown("metric", metric, [m for m in METRICS if m != "utilization"]))
    if not isinstance(points, int | np.integer) or not 2 <= points <= 1000:
        raise HpcgymError(f"points must be a whole number from 2 to 1000, not {points!r}")
    number, longest = thread_count(threads), len(workload)
    vectors = grid(int(points))
    sim = batch.table.sim.copy()
    sim["asks"] = state.EACH_PASS
    table = batch.table._replace(sim=sim)
    first = vectors.sphere.first
    values = np.full(first[-1], np.nan)
    counts = np.zeros(len(first) - 1, np.int64)
    notes = coverage.Notes(
        queued=np.zeros((number, longest), np.int64),
        behind=np.zeros((number, longest), np.int64),
        left=np.zeros((number, int(np.diff(first).max())), np.int64),
        corners=np.zeros((number, coverage.CORNERS, 3)),
        cut=np.zeros((number, coverage.CORNERS, 3)),
        counts=np.zeros((number, 2), np.int64),
    )
    workers = make_workers(batch.empty, batch.learner, longest, number)
    code, settings = np.int64(METRICS[metric]), batch.settings
    cover_on_threads = OnThreads(coverage.cover_share)
    kept = 0, table, workers, notes, vectors.sphere, code, settings, values, counts
    with compiling(coverage.cover_share):
        for begin in range(0, len(counts), _TILES_A_CALL):
            stop = min(begin + _TILES_A_CALL, len(counts))
            cover_on_threads(number, (begin, stop), kept)
            if progress is not None:
                progress(stop, len(counts))
    found = np.append(values, batch.run(np.zeros((1, 3)), metric)[0] if points % 2 else np.nan)
    return Coverage(vectors.points, found[vectors.places], int(counts.sum() + points % 2))


def vector(points: int, place: int) -> Floats:
    """Return a vector of the grid, (3,), divided by ||w||_1; zeros where all weights are 0.

    It is the one that is simulated for its direction: in whole numbers, in steps of half the
    spacing, without their common divisor.

    Parameters
    ----------
    points : values of each weight.
    place : in the flattened cube ``Coverage.values``.
    """
    steps = 2 * np.array(np.unravel_index(place, (points,) * len(THREE))) - (points - 1)
    reduced = steps // max(int(np.gcd.reduce(steps)), 1)
    weights: Floats = reduced / max(int(np.abs(reduced).sum()), 1)
    return weights


class Grid(NamedTuple):
    """The vectors of a grid, each direction once.

    Attributes
    ----------
    points : (n_points,) what each weight can be.
    sphere : the directions, in tiles.
    places : (n_points, n_points, n_points) which direction each vector has; -1 where all are 0.
    """

    points: Floats
    sphere: coverage.Sphere
    places: NDArray[np.int64]


@lru_cache(maxsize=2)
def grid(n_points: int) -> Grid:
    """Return the vectors with ``n_points`` values for each of three weights.

    In steps of half the spacing all weights are whole numbers; a vector's direction is that of the
    numbers without their common divisor.
    """
    steps = np.arange(1 - n_points, n_points, 2)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3)
    divisor = np.gcd.reduce(cube, axis=1)
    reduced = cube // np.maximum(divisor, 1)[:, np.newaxis]
    code = (reduced + n_points) @ np.array([4 * n_points**2, 2 * n_points, 1])
    _, chosen, places = np.unique(code[divisor > 0], return_index=True, return_inverse=True)
    directions = reduced[divisor > 0][chosen]
    order, first, corners = _tiles(directions)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    all_places = np.full(len(cube), -1)
    all_places[divisor > 0] = rank[places]
    chosen_vectors = directions[order].astype(np.float64)
    size = np.abs(chosen_vectors)
    sphere = coverage.Sphere(
        weights=chosen_vectors / size.sum(axis=1, keepdims=True),
        places=chosen_vectors / size.max(axis=1, keepdims=True),
        first=first,
        corners=corners,
    )
    return Grid(np.linspace(-1.0, 1.0, n_points), sphere, all_places.reshape((n_points,) * 3))


def _tiles(
    directions: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Cut the surface of the cube into tiles.

    Returns
    -------
    order : (n,) the directions, tile after tile.
    first : (n_tiles + 1,) where each tile begins in that order.
    corners : (n_tiles, 4, 3) of each tile.
    """
    side = max(1, round((len(directions) / 6 / _TILE) ** 0.5))
    size = np.abs(directions)
    largest = size.argmax(axis=1)
    row = np.arange(len(directions))
    sign = np.sign(directions[row, largest])
    tile = 2 * largest + (sign > 0)
    for more in (1, 2):
        share = directions[row, (largest + more) % 3] / size[row, largest]
        tile = tile * side + np.minimum((share + 1) / 2 * side, side - 1).astype(np.int64)
    order = np.argsort(tile, kind="stable")
    names, first = np.unique(tile[order], return_index=True)
    corners = np.empty((len(names), 4, 3))
    ends = np.linspace(-1.0, 1.0, side + 1)
    for which, name in enumerate(names.tolist()):
        rest, two = divmod(name, side)
        face, one = divmod(rest, side)
        axis = face // 2
        for corner, (i, j) in enumerate([(0, 0), (1, 0), (1, 1), (0, 1)]):
            corners[which, corner, axis] = 1.0 if face % 2 else -1.0
            corners[which, corner, (axis + 1) % 3] = ends[one + i]
            corners[which, corner, (axis + 2) % 3] = ends[two + j]
    return order, np.append(first, len(order)), corners


def _check(batch: BatchSimulator) -> None:
    """Raise an error where scores are not linear or not fixed, or passes are not one a time."""
    check_scheduler(batch.scheduler, "coverage")
    check_features("features", batch.features)
    if len(batch.features) != len(THREE):
        raise HpcgymError(f"features: coverage is of three, not of {len(batch.features)}")
    for name in batch.features:
        if FEATURES[name].patience is not None and name != "wait":
            raise HpcgymError(
                f"features: of those that change with waiting only 'wait', not {name!r}"
            )
