"""Where to look for weights: the vectors that a search asks for, one population after the other.

A search is a generator. It yields vectors and is sent their values, the less the better; it knows
nothing of jobs, and the same values make it go the same way again. Its vectors are in units of the
search, ``weight x scale``; a policy has :func:`normalised` weights. Several searches go side by
side, and go on from a file of the values that they were told.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.settings import XnesSettings
from hpcgym.errors import HpcgymError, unknown
from hpcgym.files.tables import arrays_of
from hpcgym.files.writing import whole_file
from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES, WEIGHTED_FEATURES, spread
from hpcgym.simulation.batch import feature_names
from hpcgym.version import __version__
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

Vector = NDArray[np.float64]  # (n_features,)
Vectors = NDArray[np.float64]  # (n_vectors, n_features)
Values = NDArray[np.float64]  # (n_vectors,)

#: Names for sets of features: those of Legrand et al. 2018.
FEATURE_SETS = {"xnes3": WEIGHTED_FEATURES[:3], "xnes6": WEIGHTED_FEATURES}

#: Restarts begin at least this far from each other, by the sum of the differences of their weights.
_APART = 0.3

#: Of the random vectors this share is drawn in the features' own units, where that is of use.
_NATURAL_SHARE = 0.3

_AT_ONCE = 50  # random vectors asked for together


class Population(NamedTuple):
    """Vectors that a search wants to be evaluated.

    Attributes
    ----------
    vectors : (n_vectors, n_features) float64, in units of the search.
    restart : 0 for random vectors, then the number of the run from 1.
    generation : of that run, from 1; 0 for random vectors.
    step_size : of that run; None for random vectors, or if the method does not tell.
    """

    vectors: Vectors
    restart: int
    generation: int
    step_size: float | None


class WeightUnits(NamedTuple):
    """The units in which weights are searched.

    Attributes
    ----------
    scale : (n_features,) weights of policies are vectors divided by it.
    natural : places of the features that are searched in their own units, too; may be empty.
    """

    scale: Vector
    natural: NDArray[np.int64]


Search = Generator[Population, Values, None]


def features_of(features: str | Sequence[str]) -> tuple[str, ...]:
    """Return the features of a name of FEATURE_SETS, of a text with commas or of a sequence.

    Raises
    ------
    HpcgymError : an unknown name, none, or the same twice.
    """
    if not isinstance(features, str):
        return feature_names(features, usage=True)
    known = [*FEATURE_SETS, *FEATURES, *USER_FEATURES]
    if "," not in features and features not in known:
        raise HpcgymError(unknown("feature", features, known))
    return feature_names(FEATURE_SETS.get(features) or features.split(","), usage=True)


def searching(plan: XnesSettings, units: WeightUnits) -> Search:
    """Search: ask for random vectors, then run the method from the best of them.

    ``budget`` vectors are asked for, no more and no less. Each run begins at the vector with the
    least value of all before it that is not close to where another run began, and the runs share
    what is left of the budget; without random vectors the first begins at 0, from where all
    directions are equally likely. What the method minimises is Legrand et al. 2018, equation 6:

        value + penalty (||w||_1 + 1 / ||w||_1)

    Values that differ only by rounding, such as those of the batch and of an environment, are made
    equal, so that a search takes the same way with both.
    """
    rng = np.random.default_rng(plan.seed)
    left, n_features = plan.budget, len(units.scale)
    samples, natural_ones = _samples(plan, units, rng)
    seen = _Seen([], [], natural_ones)
    for begin in range(0, len(samples), _AT_ONCE):
        tried = samples[begin : begin + _AT_ONCE]
        costs = yield Population(tried, 0, 0, None)
        seen.vectors.append(tried)
        seen.values.append(rounded(costs))
        left -= len(tried)
    starts: list[Vector] = []
    for restart in count(1):
        if left <= 0:
            return
        start, natural = _start(rng, n_features, seen, starts)
        starts.append(start)
        # a start in natural units: so is the run, over the features that it has
        unit = units.scale if natural else np.ones(n_features)
        mean = _unit(start / unit) if natural else start
        searched = np.flatnonzero(mean) if natural else np.arange(n_features)
        share = left // (plan.restarts - restart + 1) if restart < plan.restarts else left
        optimiser = _optimiser(plan, mean[searched], n_features, int(rng.integers(2**31)))
        while share > 0 and left > 0:
            asked = [optimiser.ask() for _ in range(optimiser.population_size)][:left]
            size = np.abs(asked).sum(axis=1)
            tried = np.zeros((len(asked), n_features))
            tried[:, searched] = asked
            tried = _unit(tried * unit)
            step_size = getattr(optimiser, "_sigma", None)  # not public, and only to be shown
            costs = rounded((yield Population(tried, restart, optimiser.generation + 1, step_size)))
            seen.vectors.append(tried)
            seen.values.append(costs)
            share, left = share - len(asked), left - len(asked)
            if len(asked) < optimiser.population_size:
                return
            objective = costs + plan.penalty * (size + 1.0 / size)
            optimiser.tell(list(zip(asked, objective.tolist(), strict=True)))
            if optimiser.should_stop():
                break


class _Seen(NamedTuple):
    """All evaluated vectors, in the order in which they were asked for."""

    vectors: list[Vectors]
    values: list[Values]
    natural: range  # which of them were drawn in natural units


def _samples(
    plan: XnesSettings, units: WeightUnits, rng: np.random.Generator
) -> tuple[Vectors, range]:
    """Return the vectors before the first run, and which of them are drawn in natural units.

    These are uniform over the cube of weights, as Legrand et al. 2018, section 7.1, covers it.
    """
    n_features, places = len(units.scale), units.natural
    if plan.method == "random":
        return candidates(rng, n_features, plan.budget), range(0)
    n_natural = int(_NATURAL_SHARE * plan.n_samples) if len(places) else 0
    first = candidates(rng, n_features, plan.n_samples - n_natural)
    cube = np.zeros((n_natural, n_features))
    cube[:, places] = rng.uniform(-1.0, 1.0, (n_natural, len(places)))
    return np.vstack([first, _unit(cube * units.scale)]), range(len(first), plan.n_samples)


def _start(
    rng: np.random.Generator, n_features: int, seen: _Seen, starts: Sequence[Vector]
) -> tuple[Vector, bool]:
    """Return where a run begins, and whether that was drawn in natural units."""
    if not seen.values:
        return np.zeros(n_features), False
    vectors = np.concatenate(seen.vectors)
    for place in np.argsort(np.concatenate(seen.values), kind="stable").tolist():
        if all(np.abs(vectors[place] - start).sum() > _APART for start in starts):
            return np.asarray(vectors[place]), place in seen.natural
    return np.asarray(_mixed(rng, n_features, 1)[0]), False


def _optimiser(plan: XnesSettings, mean: Vector, n_features: int, seed: int) -> Any:
    """Return the method's state at the beginning of a run.

    Its population does not depend on the run, so that searches side by side keep step.
    """
    import cmaes  # here, because it imports scipy where there is one

    population = plan.population or 4 + int(3 * math.log(n_features))
    kind = cmaes.XNES if plan.method == "xnes" else cmaes.CMA
    return kind(mean.copy(), plan.sigma, seed=seed, population_size=population)


def candidates(rng: np.random.Generator, n_features: int, number: int) -> Vectors:
    """Return vectors to try, (number, n_features), with ||w||_1 = 1 in units of the search.

    The pure policies come first, one feature with +1 or -1. The others have a random half of the
    features, at least one, with weights of the Laplace distribution, which is uniform over
    ||w||_1 = 1.
    """
    pure = np.kron(np.eye(n_features), [[1.0], [-1.0]])
    mixed = _mixed(rng, n_features, max(number - len(pure), 0))
    return np.vstack([pure, mixed])[:number]


def _mixed(rng: np.random.Generator, n_features: int, number: int) -> Vectors:
    """Return random vectors with ||w||_1 = 1."""
    drawn = rng.laplace(size=(number, n_features))
    used = rng.random(drawn.shape) < 0.5
    used[np.arange(number), rng.integers(n_features, size=number)] = True
    return _unit(np.where(used, drawn, 0.0))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vectors, or one, divided by their ||w||_1."""
    divided: NDArray[np.float64] = vectors / np.abs(vectors).sum(axis=-1, keepdims=True)
    return divided


def units_of(scale: str, slices: Sequence[Workload], features: Sequence[str]) -> WeightUnits:
    """Return the units of a search; for the scales see :class:`hpcgym.agents.xnes.Xnes`.

    Beside units of the spread those three features are searched in their own that Legrand 2018
    began with: one whose weights are about 1 second per second hardly looks at processors, but for
    ties, and such policies are hard to hit in other units.
    """
    if scale == "none":
        return WeightUnits(np.ones(len(features)), np.zeros(0, np.int64))
    places = [place for place, name in enumerate(features) if name in FEATURE_SETS["xnes3"]]
    return WeightUnits(
        spread(slices, features), np.array(places if len(places) > 1 else [], np.int64)
    )


def normalised(vectors: Vectors) -> Vectors:
    """Return vectors with ||w||_1 = 1: divided by the sum of the sizes, which then is 1 exactly.

    Sizes become multiples of 2**-52, so that their sums have no rounding, and dividing by the sum
    again, as ``MixedPolicy`` does, changes no bit.
    """
    sizes = np.abs(vectors)
    sizes = np.rint(np.ldexp(sizes / sizes.sum(axis=-1, keepdims=True), 52))
    rest = 2.0**52 - sizes.sum(axis=-1)
    largest = np.expand_dims(sizes.argmax(axis=-1), -1)
    changed = np.take_along_axis(sizes, largest, axis=-1) + rest[..., None]
    np.put_along_axis(sizes, largest, changed, axis=-1)
    signed: Vectors = np.copysign(np.ldexp(sizes, -52), vectors)
    return signed


def rounded(values: float | Values) -> Values:
    """Return values, or one, rounded to about nine digits."""
    mantissa, exponent = np.frexp(values)
    nearest: Values = np.ldexp(np.rint(np.ldexp(mantissa, 30)), exponent - 30)
    return nearest


# --- Searches side by side ------------------------------------------------------------------------

#: (n_vectors, n_searches, n_features) weights -> (n_vectors, n_searches) values.
Objective = Callable[[NDArray[np.float64]], NDArray[np.float64]]

#: Called with the number of evaluations of each search, and the mean of their best values so far.
Progress = Callable[[int, float], None]

_SAVE_EVERY_S = 5.0


class Way:
    """A search under way, and its results so far.

    Parameters
    ----------
    search : the vectors that it asks for, in units of the search.
    scale : (n_features,) the vectors are divided by it.
    features : names, for the columns of ``rows``.
    penalty : the lambda of Legrand et al. 2018, equation 6.

    Attributes
    ----------
    asked : the vectors to evaluate next; None at the end of the search.
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
        self.asked: Population | None = next(search)
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
        for way, column in zip(ways, values.T, strict=True):
            way.tell(column)
        if progress is not None:
            progress(ways[0].done, float(np.mean([way.best for way in ways])))


class Checkpoint:
    """The values that searches were told, in a file from which the same searches go on.

    A search that is told the same values goes the same way again, so that nothing else needs to be
    kept. Used as a context: an interrupted one leaves the file, one that is done deletes it.

    Parameters
    ----------
    path : the file. With None nothing is written.
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
        """Return the next values of an earlier run, (number, n_searches); None: no more values."""
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
        answers = [*self._told, *self._again]
        if self.path is None or not answers:
            return
        self._written_s = time.monotonic()
        with whole_file(self.path, folders=True) as part, part.open("wb") as file:
            np.savez(
                file,
                identity=np.array(self.identity),
                lengths=np.array([len(values) for values in answers]),
                values=np.concatenate(answers),
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
