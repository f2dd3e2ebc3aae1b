"""Rules that act in ``hpcgym/CoSchedule-v0`` as agents do, with ``action="pair"``.

Each but the last is an order of the jobs that find room, as in the co-schedulers of ELiSE,
and leaves it to the environment's rule ``partners`` on which nodes they start. None ever waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice

Floats = NDArray[np.float64]
Observation = Mapping[str, NDArray[Any]]

# places in the fields of an observation; docs/environments/co-schedule.md has all of them
_IDLE, _OPEN = 0, 1  # of "machine"
_NODES, _ALONE, _FRIENDS, _SHARES = 0, 4, 5, 6  # of "jobs"


def speedups(shown: NDArray[Any]) -> Floats:
    """Return speedups s that an observation shows as s / (s + 1); 0 where there is none."""
    values = np.asarray(shown, np.float64)
    return values / (1.0 - values)


class PairPolicy:
    """A rule that says who starts next, and maybe beside whom.

    Parameters
    ----------
    name : one of ``PAIR_POLICIES``.

    Raises
    ------
    HpcgymError : another name.

    Examples
    --------
    >>> from hpcgym.baselines.pair_policies import PairPolicy
    >>> PairPolicy("greedy-pairs")
    PairPolicy('greedy-pairs')
    """

    def __init__(self, name: str) -> None:
        check_choice("pair policy", name, PAIR_POLICIES)
        self.name = name
        self._workload: Any = None
        self._nodes = 0

    def __repr__(self) -> str:
        return f"PairPolicy({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode; to be called after each reset.

        Raises
        ------
        HpcgymError : an environment in which no pairs are named, or whose observations are flat.
        """
        env = getattr(env, "unwrapped", env)
        if getattr(env, "action", "") != "pair" or env.options.flat:
            raise HpcgymError(
                f"{self.name} acts in hpcgym/CoSchedule-v0 with action='pair' and"
                " observation='dict'"
            )
        self._workload, self._nodes = env.episode_workload, env.options.cluster.nodes

    def act(self, observation: Observation, info: Mapping[str, Any]) -> int:
        """Return the number of a pair, or of waiting where no visible job finds room."""
        if self._workload is None:
            raise HpcgymError(f"{self.name}: call begin(env) after the reset, then act")
        mask = info["action_mask"]
        scores = np.full(len(mask) - 1, -np.inf)
        rows: NDArray[np.int64] = info["window"][info["window"] >= 0]
        table = scores.reshape(len(info["window"]), -1)  # a view
        table[: len(rows)] = PAIR_POLICIES[self.name].scores(self, observation, rows)
        scores[mask[:-1] == 0] = -np.inf
        if not np.isfinite(scores).any():
            return len(mask) - 1
        return int(scores.argmax())

    def _by_order(self, order: Floats, observation: Observation) -> Floats:
        """Return scores of pairs by which jobs of the highest order start as the rule says."""
        n_neighbours = len(observation["neighbours"])
        table = np.full((len(order), n_neighbours + 1), -np.inf)
        table[:, 0] = order
        return table

    def needed(self, observation: Observation, n: int) -> Floats:
        """Return the nodes that the first ``n`` visible jobs need."""
        nodes: Floats = np.rint(observation["jobs"][:n, _NODES].astype(np.float64) * self._nodes)
        return nodes

    def room(self, observation: Observation, n: int) -> Floats:
        """Return the nodes with room for each of the first ``n`` visible jobs."""
        shown = observation["machine"].astype(np.float64) * self._nodes
        shares = observation["jobs"][:n, _SHARES] > 0
        room: Floats = np.rint(shown[_IDLE] + np.where(shares, shown[_OPEN], 0.0))
        return room


def _first(policy: PairPolicy, seen: Observation, rows: NDArray[np.int64]) -> Floats:
    return policy._by_order(np.zeros(len(rows)), seen)


def _filler(policy: PairPolicy, seen: Observation, rows: NDArray[np.int64]) -> Floats:
    room = np.maximum(policy.room(seen, len(rows)), 1.0)
    return policy._by_order(policy.needed(seen, len(rows)) / room, seen)


def _shortest(policy: PairPolicy, seen: Observation, rows: NDArray[np.int64]) -> Floats:
    return policy._by_order(-policy._workload.requested_time[rows].astype(np.float64), seen)


def _largest(policy: PairPolicy, seen: Observation, rows: NDArray[np.int64]) -> Floats:
    return policy._by_order(policy._workload.requested_processors[rows].astype(np.float64), seen)


def _popular(policy: PairPolicy, seen: Observation, rows: NDArray[np.int64]) -> Floats:
    return policy._by_order(seen["jobs"][: len(rows), _FRIENDS].astype(np.float64), seen)


def _greedy(policy: PairPolicy, seen: Observation, rows: NDArray[np.int64]) -> Floats:
    n = len(rows)
    both = speedups(seen["pairs"][:n]).mean(axis=-1)
    # on nodes of its own as fast as it is alone; where there are not enough of them, who knows
    idle = np.rint(float(seen["machine"][_IDLE]) * policy._nodes)
    own = policy.needed(seen, n) <= idle
    alone = np.where(own, speedups(seen["jobs"][:n, _ALONE]), 0.0)
    return np.column_stack([alone, np.where(both > 0, both, -np.inf)])


class Rule(NamedTuple):
    """What a pair policy does.

    Attributes
    ----------
    scores : returns those of the visible jobs, (n, 1 + neighbours), beside nobody in particular and
        beside each neighbour; the highest starts, the first of equals.
    meaning : the same in words.
    """

    scores: Callable[[PairPolicy, Observation, NDArray[np.int64]], Floats]
    meaning: str


#: Name -> rule.
PAIR_POLICIES: dict[str, Rule] = {
    "first-pairs": Rule(_first, "in order of submission, whoever finds room"),
    "filler-pairs": Rule(_filler, "what fits best, as filler-co"),
    "sjf-pairs": Rule(_shortest, "the shortest that finds room, in the order of sjf-co"),
    "largest-pairs": Rule(_largest, "the largest that finds room, in the order of largest-co"),
    "popularity-pairs": Rule(_popular, "who gains with most others, in the order of popularity-co"),
    "greedy-pairs": Rule(
        _greedy, "the pair of the greatest mean speedup of both, or a job alone if that is greater"
    ),
}
