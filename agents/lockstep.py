"""Searches side by side, one population of each at a time, and a file from which they go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.search import Asked, Search, Values, Vectors, normalised, rounded
from hpcgym.errors import HpcgymError
from hpcgym.files import arrays_of
from hpcgym.files.writing import whole
from hpcgym.version import __version__
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

#: (n_vectors, n_searches, n_features) weights -> (n_vectors, n_searches) values.
Objective = Callable[[NDArray[np.float64]], NDArray[np.float64]]

#: Is told how many evaluations of each search are done, and the mean of their best values so far.
Progress = Callable[[int, float], None]

_SAVE_EVERY_S = 5.0


class Way:
    """A search under way, and what it has found.

    Parameters
    ----------
    search : the vectors that it asks for, in units of the search.
    scale : (n_features,) what to divide them by.
    features : names, for the columns of ``rows``.
    penalty : the lambda of Legrand et al. 2018, equation 6.

    Attributes
    ----------
    asked : what the search wants to know; None at its end.
    done : evaluations so far.
    best, weights : the least value so far, and the first vector that had it, (n_features,), with
        ||w||_1 = 1.
    rows : one a generation; see :attr:`hpcgym.agents.xnes.Xnes.trace_`.
    """

    def __init__(
        self,
        search: Search,
        scale: NDArray[np.float64],
        features: Sequence[str],
        penalty: float,
    ) -> None:
        self.search, self.scale, self.features = search, scale, features
        self.penalty = penalty
        self.asked: Asked | None = next(search)
        self.vectors = self._vectors()
        self.done, self.best = 0, np.inf
        self.weights = np.zeros(len(features))
        self.rows: list[dict[str, Any]] = []

    def tell(self, values: Values) -> None:
        """Tell the search the values of ``vectors``, and let it ask again."""
        assert self.asked is not None
        # of values that differ only by rounding the first counts
        near = rounded(values)
        first = int(near.argmin())
        if near[first] < rounded(self.best):
            self.best, self.weights = float(values[first]), self.vectors[first].copy()
        self.done += len(values)
        self.rows.append(
            {
                "evaluations": self.done,
                "restart": self.asked.restart,
                "generation": self.asked.generation,
                "value": float(values[first]),
                "best": self.best,
                "objective": self.best + 2.0 * self.penalty,
                "step_size": self.asked.step_size,
                **dict(zip(self.features, self.weights.tolist(), strict=True)),
            }
        )
        try:
            self.asked = self.search.send(values)
        except StopIteration:
            self.asked = None
        self.vectors = self._vectors()

    def _vectors(self) -> Vectors:
        """Return the vectors asked for as weights, with ||w||_1 = 1."""
        if self.asked is None:
            return np.empty((0, 0))
        return normalised(self.asked.vectors / self.scale) + 0.0  # no -0.0


def go(
    ways: Sequence[Way],
    objective: Objective,
    known: Checkpoint,
    progress: Progress | None = None,
) -> None:
    """Go all ways to their ends; they ask for equally many vectors each time."""
    while ways[0].asked is not None:
        weights = np.stack([way.vectors for way in ways], axis=1)
        values = known.take(len(weights))
        if values is None:
            values = objective(weights)
            known.add(values)
        for way, told in zip(ways, values.T, strict=True):
            way.tell(told)
        if progress is not None:
            progress(ways[0].done, float(np.mean([way.best for way in ways])))


class Checkpoint:
    """The values that searches were told, in a file from which the same searches go on.

    A search that is told the same values goes the same way again, so that nothing else needs to be
    kept. Used as a context: an interrupted one leaves the file, one that is done deletes it.

    Parameters
    ----------
    path : the file; None: there is none.
    identity : of the searches; see :func:`identity`.

    Raises
    ------
    HpcgymError : the file is of other searches, or no such file.
    """

    def __init__(self, path: str | Path | None, identity: str) -> None:
        self.path = None if path is None else Path(path)
        self.identity = identity
        self._told: list[Values] = []
        self._again: list[Values] = []  # of an earlier run, yet to be told
        self._written_s = time.monotonic()
        if self.path is not None and self.path.exists():
            self._again = _read(self.path, identity)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._write()
        elif self.path is not None:
            self.path.unlink(missing_ok=True)

    def take(self, number: int) -> NDArray[np.float64] | None:
        """Return the next values of an earlier run, (number, n_searches); None: there are none."""
        if not self._again:
            return None
        values: NDArray[np.float64] = self._again.pop(0)
        if len(values) != number:
            raise HpcgymError(f"{self.path} does not fit this search: delete it")
        self._told.append(values)
        return values

    def add(self, values: NDArray[np.float64]) -> None:
        """Keep new values."""
        self._told.append(values)
        if time.monotonic() - self._written_s > _SAVE_EVERY_S:
            self._write()

    def _write(self) -> None:
        told = [*self._told, *self._again]
        if self.path is None or not told:
            return
        self._written_s = time.monotonic()
        with whole(self.path, folders=True) as part, part.open("wb") as file:
            np.savez(
                file,
                identity=np.array(self.identity),
                lengths=np.array([len(values) for values in told]),
                values=np.concatenate(told),
            )


def _read(path: Path, identity: str) -> list[Values]:
    """Return the values of a checkpoint."""
    arrays = arrays_of(path, ("identity", "lengths", "values"))
    theirs, lengths, values = str(arrays["identity"]), arrays["lengths"], arrays["values"]
    if theirs != identity:
        raise HpcgymError(
            f"{path} is the checkpoint of a search with other arguments, jobs or versions: delete"
            " it to begin anew"
        )
    right = lengths.ndim == 1 and lengths.dtype.kind in "iu" and bool((lengths > 0).all())
    right = right and values.ndim == 2 and values.dtype == np.float64
    if not right or lengths.sum() != len(values):
        raise HpcgymError(f"{path} is a damaged checkpoint of a search: delete it to begin anew")
    return np.split(values, np.cumsum(lengths)[:-1])


def identity(settings: Mapping[str, Any], slices: Sequence[Sequence[Workload]]) -> str:
    """Return a text that only the same searches on the same jobs by the same versions have."""
    import cmaes

    facts = {
        "settings": settings,
        "searches": [len(parts) for parts in slices],
        "jobs": fingerprint(part for parts in slices for part in parts),
        "hpcgym": __version__,
        "numpy": np.__version__,
        "cmaes": cmaes.__version__,
    }
    return json.dumps(facts, sort_keys=True)
