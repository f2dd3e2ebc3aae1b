"""Networks that RLScheduler has published, read from a user's folder; they act in JobSelection.

Zhang, Dai, He, Bao and Xie (RLScheduler: an automated HPC batch job scheduler using reinforcement
learning, SC 2020) give each waiting job a number by one small network, the same for all jobs, and
take the job by these numbers. Their repository, DIR-LAB/deep-batch-scheduler, has trained networks
as checkpoints of TensorFlow 1. It names no licence, so nothing of it is here: what is below are the
shapes of its arrays, the order of what a network sees, and the constants that this is divided by.

A network sees eight numbers of a job, each at most 1 - 1e-5 (see :meth:`Sight.features`), and up to
128 jobs. If more wait, these are the shortest and the narrowest in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.tensor_bundle import arrays_of, data_file
from hpcgym.errors import HpcgymError
from hpcgym.workload.columns import MISSING
from hpcgym.workload.model import Workload

#: Name of a layer -> what it takes, and how many numbers it gives: 961 weights.
_LAYERS = {
    "pi/dense": (8, 32),
    "pi/dense_1": (32, 16),
    "pi/dense_2": (16, 8),
    "pi/dense_3": (8, 1),
}

#: Most jobs that a network sees.
VISIBLE = 128

_MOST = 1 - 1e-5
_WAIT_S = 12 * 3600

#: What is divided by the greatest value of the log; 1 where the log does not tell it.
_BY_GREATEST = ("requested_memory", "user_id", "group_id", "executable")

Rows = NDArray[np.int64]


class PublishedNetwork:
    """A network that gives each job a number: the greater, the rather it is taken.

    Parameters
    ----------
    folder : a folder with one checkpoint, in it or in folders below.

    Attributes
    ----------
    data_file : that has the weights.

    Raises
    ------
    HpcgymError : no such folder, no checkpoint in it or several, or one of another network.
    """

    def __init__(self, folder: str | Path) -> None:
        index = _index_in(Path(folder))
        names = [f"{layer}/{part}" for layer in _LAYERS for part in ("kernel", "bias")]
        arrays, self.data_file = arrays_of(index, names), data_file(index)
        self._layers = []
        for layer, shape in _LAYERS.items():
            kernel, bias = arrays[f"{layer}/kernel"], arrays[f"{layer}/bias"]
            if (kernel.shape, bias.shape) != (shape, shape[1:]):
                both = f"{kernel.shape} and {bias.shape}, not {shape} and {shape[1:]}"
                raise HpcgymError(f"{index}: {layer} has the shapes {both}: it is another network")
            if not (np.isfinite(kernel).all() and np.isfinite(bias).all()):
                raise HpcgymError(f"{index}: {layer} has values that are no numbers")
            self._layers.append((kernel.astype(np.float64), bias.astype(np.float64)))

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the number of each job, (n,) float32, of their features, (n, 8).

        They are computed in float64 and rounded once, so that equal jobs have equal numbers.
        """
        values = features.astype(np.float32).astype(np.float64)
        for kernel, bias in self._layers[:-1]:
            values = np.maximum(values @ kernel + bias, 0.0)
        kernel, bias = self._layers[-1]
        scores: NDArray[np.float32] = (values @ kernel + bias)[:, 0].astype(np.float32)
        return scores


def _index_in(folder: Path) -> Path:
    """Return the index of the one checkpoint in a folder."""
    if not folder.is_dir():
        raise HpcgymError(f"{folder}: there is no such folder, with a checkpoint of RLScheduler")
    indexes = sorted(folder.rglob("*.index"))
    if not indexes:
        files = "variables.index, and its data beside it"
        raise HpcgymError(f"{folder} has no checkpoint: no file {files}")
    if len(indexes) > 1:
        advice = f"name the folder of one, as {indexes[-1].parent}"
        raise HpcgymError(f"{folder} has {len(indexes)} checkpoints: {advice}")
    return indexes[0]


class Sight:
    """What a network sees of the jobs of a log.

    Parameters
    ----------
    jobs : of which rows are told.
    log : whose greatest values all is divided by, also of jobs that have not come yet; None: these.

    Attributes
    ----------
    processors : (n_jobs,) what each job requests.
    """

    def __init__(self, jobs: Workload, log: Workload | None = None) -> None:
        log = jobs if log is None else log
        requested, processors = jobs.requested_time, jobs.requested_processors
        self._submit, self.processors = jobs.submit_time, processors
        parts = [_share(requested, log.run_time.max()), _share(processors, log.processors)]
        for name in _BY_GREATEST:
            values = jobs.columns[name]
            shares = _share(values, log.columns[name].max())
            parts.append(np.where(values == MISSING, 1.0, shares))
        self._told = np.column_stack(parts)
        places = np.arange(len(jobs))
        self._by_time = np.empty(len(jobs), np.int64)  # place of each row in this order
        self._by_time[np.lexsort((self._submit, requested))] = places
        self._by_width = np.empty(len(jobs), np.int64)
        self._by_width[np.lexsort((self._submit, processors))] = places

    def visible(self, rows: Rows) -> Rows:
        """Return the places among the waiting jobs of those that a network sees, in its order.

        All, in the order given, that of submission. Of more than 128 the job of the least requested
        time, that of the fewest processors, the second of each, and so on, each job once.
        """
        if len(rows) <= VISIBLE:
            return np.arange(len(rows))
        orders = (np.argsort(order[rows])[:VISIBLE] for order in (self._by_time, self._by_width))
        turns = chain.from_iterable(zip(*(order.tolist() for order in orders), strict=True))
        return np.array([*islice(dict.fromkeys(turns), VISIBLE)], np.int64)

    def features(self, rows: Rows, time: int, fits: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return what a network sees of jobs, (n, 8).

        Wait, of 12 h; requested time, of the longest run time of the log; processors, of the
        machine; requested memory, and the numbers of user, group and program, of the greatest of
        the log; whether it fits now.

        Parameters
        ----------
        rows : of the jobs.
        time : now [s].
        fits : (n,) whether there are enough free processors for each.
        """
        wait = _share(time - self._submit[rows], _WAIT_S)
        return np.column_stack([wait, self._told[rows], np.where(fits, _MOST, 1 - _MOST)])


def _share(values: NDArray[Any], greatest: float) -> NDArray[np.float64]:
    """Return values as shares of the greatest, below 1."""
    shares: NDArray[np.float64] = np.minimum(values / max(float(greatest), 1.0), _MOST)
    return shares


def chosen(numbers: NDArray[np.float32], chance: np.random.Generator | None) -> int:
    """Return the place of the greatest number; or one drawn, each by exp(its number)."""
    if chance is None:
        return int(np.argmax(numbers))
    # the greatest of such sums is drawn by these probabilities (Gumbel's trick)
    return int(np.argmax(numbers + chance.gumbel(size=len(numbers))))


class RLScheduler:
    """A published network as a policy that acts in JobSelection.

    It acts among the jobs of the window. It was trained without backfilling; here the machine is
    EASY's, as it is for others: the selected job that does not fit has the reservation of the pass,
    and jobs are backfilled, the shortest request first. Arguments of the environment change that.

    Parameters
    ----------
    folder : with its checkpoint; see :class:`PublishedNetwork`.
    sampled : whether actions are drawn, as their program does; else the best is taken.
    seed : the same seed draws the same in the same episode, whatever was played before.

    Raises
    ------
    HpcgymError : what :class:`PublishedNetwork` raises.
    """

    env_id = "hpcgym/JobSelection-v2"

    def __init__(self, folder: str | Path, sampled: bool = False, seed: int = 0) -> None:
        self.name = f"rlscheduler{'-sampled' if sampled else ''}:{folder}"
        self.network, self.sampled, self.seed = PublishedNetwork(folder), sampled, seed
        self.env_options = {
            "backfill": "easy",
            "backfill_order": "spf",
            "reservation": "revised",
            "window": 1024,
            "features": ["fits"],
            "observation": "dict",
        }
        self._sight: Sight | None = None
        self._chance: np.random.Generator | None = None

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode, and at the log that they are of.

        Raises
        ------
        HpcgymError : an environment where actions do not select jobs, or that does not show whether
            they fit, as the first of its features.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind != "select" or env.options.names[:1] != ("fits",) or env.options.flat:
            raise HpcgymError(f"{self.name} acts in JobSelection with {self.env_options}")
        jobs = env.episode_workload
        self._sight = Sight(jobs, env.options.workload)
        if self.sampled:
            self._chance = np.random.default_rng([self.seed, len(jobs), int(jobs.submit_time[0])])

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the place in the window of the job that is taken."""
        if self._sight is None:
            raise HpcgymError(f"{self.name}: call begin(env) after the reset, then act")
        window = info["window"]
        places = np.flatnonzero(info["action_mask"][: len(window)])  # quotas may keep some back
        if not len(places):
            return 0
        places = places[self._sight.visible(window[places])]
        fits = observation["jobs"][places, 0] > 0
        numbers = self.network(self._sight.features(window[places], info["time_s"], fits))
        return int(places[chosen(numbers, self._chance)])


def load(text: str) -> RLScheduler:
    """Return the policy that ``rlscheduler:FOLDER`` or ``rlscheduler-sampled:FOLDER`` names.

    Raises
    ------
    HpcgymError : what :class:`PublishedNetwork` raises.
    """
    prefix, _, folder = text.partition(":")
    return RLScheduler(folder, sampled=prefix.endswith("-sampled"))
