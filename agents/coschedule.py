"""Pairs learned by search: a linear policy that says which job starts beside which.

It acts in ``hpcgym/CoSchedule-v0``. Each pair that can be started has a score, a weighted sum of a
few numbers of the observation; the highest starts, unless waiting has a higher one. The search is
CMA-ES; each generation plays all its episodes side by side in one vector environment. Needs no
extra; docs/learned-pairs.md says what was measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.declared import takes
from hpcgym.agents.episode_search import search
from hpcgym.agents.settings import PairsSettings
from hpcgym.envs import CoScheduleVector
from hpcgym.envs.core.cutting import Episode
from hpcgym.envs.core.layout import PairLayout
from hpcgym.errors import HpcgymError
from hpcgym.files.writing import whole_json

NAME = "pairs"
FORMAT = 1
ENVIRONMENT = "hpcgym/CoSchedule-v0"

#: What weights are for, in their order. Of speedups it is how far they are above 1, of all else the
#: number of the observation.
INPUTS = (
    # of the waiting job
    "nodes",
    "time",
    "wait",
    "mean speedup",
    "speedup alone",
    "friends",
    # of the running one, and of both; 0 where the rule says on which nodes
    "free nodes",
    "nodes beside",
    "time left",
    "rate",
    "speedup beside",
    "speedup of the other",
    "gap between the times",
    # where the rule says so: 1, and of the machine
    "by rule",
    "by rule, idle",
    "by rule, open",
    # of waiting: 1, and of the machine
    "waiting",
    "waiting, idle",
    "waiting, open",
)
_OF_JOBS, _OF_NEIGHBOURS, _OF_PAIRS, _BY_RULE, _WAITING = (
    slice(0, 6), slice(6, 10), slice(10, 13), slice(13, 16), slice(16, 19),
)  # fmt: skip

#: Where the search begins: who came first starts where the rule says, and nobody waits.
BEGINNING = np.array([0.0] * 16 + [-1.0, 0.0, 0.0])


Numbers = NDArray[np.float64]


def above_one(shown: NDArray[Any]) -> Numbers:
    """Return how far speedups are above 1 that an observation shows as s / (s + 1)."""
    return shown / (1.0 - shown) - 1.0


def scores_of(weights: Numbers, rows: NDArray[np.float32], layout: PairLayout) -> Numbers:
    """Return the scores of all actions, (n, actions).

    Parameters
    ----------
    weights : (n, 19), of INPUTS.
    rows : (n, size) flat observations, laid out so.
    """
    seen = layout.fields(rows.astype(np.float64))
    machine, jobs, pairs = seen["machine"], seen["jobs"], above_one(seen["pairs"])
    neighbours = seen["neighbours"]
    of = weights[:, None, None, :]  # environment, job, neighbour, input
    own = jobs[..., :6].copy()
    own[..., 3:5] = above_one(own[..., 3:5])
    other = neighbours[..., [0, 1, 2, 3]].copy()
    other[..., 3] = above_one(other[..., 3])
    gap = np.abs(jobs[:, :, None, 1] - neighbours[:, None, :, 2])
    both = np.concatenate([pairs, gap[..., None]], axis=-1)
    # sums row by row: one environment, or many, give the same to the last bit
    table = np.empty((len(rows), layout.window, layout.neighbours + 1))
    table[:] = (own * of[:, :, 0, _OF_JOBS]).sum(axis=-1)[:, :, None]
    table[..., 1:] += (other * of[:, :, 0, _OF_NEIGHBOURS]).sum(axis=-1)[:, None, :]
    table[..., 1:] += (both * of[..., _OF_PAIRS]).sum(axis=-1)
    state = np.ones((len(rows), 3))
    state[:, 1:] = machine[:, :2]
    table[..., 0] += (state * weights[:, _BY_RULE]).sum(axis=-1)[:, None]
    waits = (state * weights[:, _WAITING]).sum(axis=-1)
    return np.column_stack([table.reshape(len(rows), -1), waits])


def choices(weights: Numbers, rows: NDArray[np.float32], layout: PairLayout) -> NDArray[np.int64]:
    """Return the actions of highest score that can be done, (n,), the first of equals."""
    scores = scores_of(weights, rows, layout)
    scores[rows[:, layout.mask_at :] == 0] = -np.inf
    best: NDArray[np.int64] = scores.argmax(axis=1)
    return best


class Pairs:
    """A learned policy over pairs, and what it was learned in.

    Parameters
    ----------
    weights : (19,), of INPUTS.
    env_options : arguments of the environment that it is for.
    found : what is known of the search; plain values.
    """

    name = NAME
    env_id = ENVIRONMENT

    def __init__(
        self, weights: Any, env_options: Mapping[str, Any], found: Mapping[str, Any]
    ) -> None:
        self.weights = np.asarray(weights, np.float64)
        self.env_options, self.found = dict(env_options), dict(found)
        self._layout: PairLayout | None = None

    def __repr__(self) -> str:
        return f"Pairs({len(self.weights)} weights)"

    def begin(self, env: Any) -> None:
        """Look at how an environment's observations are laid out; to be called after each reset.

        Raises
        ------
        HpcgymError : an environment of another kind, or with other actions or observations.
        """
        env = getattr(env, "unwrapped", env)
        if getattr(env, "action", "") != "pair" or not env.options.flat:
            raise HpcgymError(
                f"{self.name} act in {ENVIRONMENT} with action='pair' and observation='flat'"
            )
        self._layout = env.simulations.layout

    def act(self, observation: Any, info: Mapping[str, Any] | None = None) -> int:
        """Return the action."""
        if self._layout is None:
            raise HpcgymError(f"{self.name}: call begin(env) after the reset, then act")
        return int(choices(self.weights[None], np.asarray(observation)[None], self._layout)[0])

    def save(self, path: str | Path) -> None:
        """Write everything as JSON, in such a way that a reader never sees half of it."""
        contents = {
            "format": FORMAT,
            "agent": NAME,
            "env_id": ENVIRONMENT,
            "env_options": self.env_options,
            "inputs": list(INPUTS),
            "weights": self.weights.tolist(),
            "found": self.found,
        }
        whole_json(path, contents)


def load(contents: Mapping[str, Any]) -> Pairs:
    """Return the policy of a file's contents; :func:`hpcgym.agents.load` reads files.

    Raises
    ------
    HpcgymError : contents of another version.
    """
    if contents.get("format") != FORMAT or tuple(contents.get("inputs", ())) != INPUTS:
        raise HpcgymError(f"these {NAME} are not of this version")
    agent = Pairs(contents["weights"], contents["env_options"], contents["found"])
    if agent.weights.shape != (len(INPUTS),) or not np.isfinite(agent.weights).all():
        raise HpcgymError(f"these {NAME} have numbers that do not fit their inputs")
    return agent


# --- Learning -------------------------------------------------------------------------------------


@takes(PairsSettings)
def train(
    workload: Any,
    *,
    env_options: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    show: Callable[[int, float], None] | None = None,
    **settings: Any,
) -> Pairs:
    """Search for weights; the same arguments give the same ones.

    Every other episode is played by each vector of the search. The best of them, the mean of the
    last generation and the beginning of the search, :data:`BEGINNING`, then play the episodes held
    back; the best there is returned.

    Parameters
    ----------
    workload : what to train on, as for :func:`hpcgym.load_workload`.
    env_options : further arguments of the environment, such as ``speedups``, ``cluster``, or
        ``reward``, whose mean return over the episodes is maximised.
    output : file of the agent.
    show : is given the vectors tried so far and the least value, minus the return.
    **settings : those of :class:`hpcgym.agents.settings.PairsSettings`.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or fewer than two episodes.
    """
    import cmaes  # here, because it imports scipy where there is one

    how = PairsSettings.of("train", settings)
    options = _options(env_options or {})
    stage = _Stage(workload, {**options, **how.of_episodes()})
    chosen = stage.env.episodes.named(how.number, how.seed)
    if len(chosen) < 2:
        raise HpcgymError("pairs need two episodes or more: one to search by, one to choose by")
    size = how.population
    optimiser = cmaes.CMA(BEGINNING.copy(), how.sigma, seed=how.seed, population_size=size)
    told = {"seed": how.seed}
    vector, found = search(stage.play, BEGINNING, optimiser, chosen, how.budget, size, show, told)
    agent = Pairs(vector, options, found)
    if output is not None:
        agent.save(output)
    return agent


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the environment, with those that the policy needs.

    Raises
    ------
    HpcgymError : actions or observations of another kind, or values that a file cannot hold.
    """
    options = {"window": 64, "action": "pair", "observation": "flat", **given}
    if options["observation"] != "flat" or options["action"] != "pair":
        raise HpcgymError("env_options: pairs are learned with action='pair', observation='flat'")
    try:
        json.dumps(options)
    except TypeError as error:
        raise HpcgymError(f"env_options: a file cannot hold them; {error}") from None
    return options


class _Stage:
    """A vector environment in which vectors play episodes side by side."""

    def __init__(self, workload: Any, options: Mapping[str, Any]) -> None:
        self._make: Callable[[int], CoScheduleVector] = lambda number: CoScheduleVector(
            number, workload, copy=False, **options
        )
        self.env = self._make(1)
        self._wide: Any = None

    def play(self, vectors: Numbers, episodes: Sequence[Episode]) -> Numbers:
        """Return minus the mean return of each vector over the episodes, (n_vectors,)."""
        pairs = [(v, episode) for v in range(len(vectors)) for episode in episodes]
        if self._wide is None or self._wide.num_envs != len(pairs):
            self._wide = self._make(len(pairs))
        env, mine = self._wide, np.zeros(len(pairs), np.bool_)
        for e, (_, episode) in enumerate(pairs):
            mine[:] = False
            mine[e] = True
            rows, _ = env.reset(options={"slice": episode.name, "reset_mask": mine})
        weights = vectors[[v for v, _ in pairs]]
        values: Numbers = -self._returns(weights, rows).reshape(len(vectors), -1).mean(axis=1)
        return values

    def _returns(self, weights: Numbers, rows: NDArray[np.float32]) -> Numbers:
        """Return the sum of the rewards in each environment."""
        env = self._wide
        layout = env.simulations.layout
        returns: Numbers = np.zeros(env.num_envs)
        alive = np.ones(env.num_envs, np.bool_)
        actions = np.zeros(env.num_envs, np.int64)
        while alive.any():
            actions[alive] = choices(weights[alive], rows[alive], layout)
            rows, rewards, ended, _, _ = env.step(actions)
            returns[alive] += rewards[alive]
            alive &= ~ended
        return returns
