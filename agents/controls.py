"""Controls learned by search: a linear policy that steers a machine under limits.

It acts in ``hpcgym/EnergyBudget-v0`` and ``hpcgym/PowerCap-v0``. Each control is a weighted sum of
a few numbers of the observation, and the order of the queue has weights that do not change. The
search is CMA-ES, or XNES as in :mod:`hpcgym.agents.xnes` (Legrand et al. 2018, section 8.1.2); each
generation plays all its episodes side by side in one vector environment. Needs no extra;
docs/learned-controls.md says what was measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.declared import takes
from hpcgym.agents.episode_search import search
from hpcgym.agents.settings import ControlsSettings
from hpcgym.envs import EnergyBudgetVector, PowerCapVector
from hpcgym.envs.core.cutting import Episode
from hpcgym.envs.core.layout import POWER, QUEUE_AT
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.writing import whole_json
from hpcgym.scheduler.policies.features import spread

NAME = "controls"
FORMAT = 1

#: Environments in which controls are learned.
ENVIRONMENTS: dict[str, Any] = {
    "hpcgym/EnergyBudget-v0": EnergyBudgetVector,
    "hpcgym/PowerCap-v0": PowerCapVector,
}

#: What the policy sees: name -> field of the observation, place in it.
INPUTS = {
    "energy_left": ("power", POWER.index("energy_left")),
    "energy_saved": ("power", POWER.index("energy_saved")),
    "power_left": ("power", POWER.index("power_left")),
    "period_left": ("power", POWER.index("period_left")),
    "cap_now": ("power", POWER.index("cap_now")),
    "cap_in": ("power", POWER.index("cap_in")),
    "nodes_busy": ("power", POWER.index("nodes_busy")),
    "queued": ("queue", 0),
    "area": ("queue", 3),
    "oldest": ("queue", 4),
}

#: Features whose weights order the queue; the search begins at the order of submission.
FEATURES = ("area", "requested", "processors", "wait", "expansion")


Numbers = NDArray[np.float64]


class Shape(NamedTuple):
    """How a vector of the search is cut: a row of weights for each control, then the queue's."""

    n_controls: int
    n_inputs: int
    units: Numbers  # (n_features,) the queue's weights are divided by them

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return self.n_controls * (self.n_inputs + 1) + len(self.units)

    def cut(self, vectors: Numbers) -> tuple[Numbers, Numbers]:
        """Return (n, n_controls, n_inputs + 1) and (n, n_features), the largest weight 1."""
        at = self.n_controls * (self.n_inputs + 1)
        rows = vectors[:, :at].reshape(len(vectors), self.n_controls, self.n_inputs + 1)
        weights = vectors[:, at:] / self.units
        largest = np.abs(weights).max(axis=1, keepdims=True, initial=0.0)
        return rows, weights / np.where(largest > 0, largest, 1.0)


def settings_for(rows: Numbers, seen: NDArray[np.float32]) -> Numbers:
    """Return the controls, (n, n_controls) from -1 to 1: 1 leaves the machine as it is.

    Parameters
    ----------
    rows : (n, n_controls, n_inputs + 1) weights, the last of them that of the number 1.
    seen : (n, n_inputs) numbers of observations, which are looked at as differences from 1/2.
    """
    given = np.ones((len(seen), seen.shape[1] + 1))
    given[:, :-1] = seen - 0.5
    # sums row by row: one environment, or many, give the same to the last bit
    sums: Numbers = (rows * given[:, None, :]).sum(axis=-1)
    return np.clip(sums, -1.0, 1.0)


class Controls:
    """Learned controls, and what they were learned in.

    Parameters
    ----------
    rows : (n_controls, n_inputs + 1) weights of the inputs and of 1.
    weights : (n_features,) of the queue.
    inputs : names of INPUTS.
    env_id, env_options : the environment that they are for.
    found : what is known of the search; plain values.
    """

    name = NAME

    def __init__(
        self,
        rows: Any,
        weights: Any,
        inputs: Sequence[str],
        env_id: str,
        env_options: Mapping[str, Any],
        found: Mapping[str, Any],
    ) -> None:
        self.rows, self.weights = np.asarray(rows, np.float64), np.asarray(weights, np.float64)
        self.inputs, self.env_id = tuple(inputs), env_id
        self.env_options, self.found = dict(env_options), dict(found)
        self._places: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return f"Controls({', '.join(self.env_options['controls'])})"

    def begin(self, env: Any) -> None:
        """Check that an environment is such as these controls were learned in.

        Raises
        ------
        HpcgymError : it has other controls, features of the queue or observations.
        """
        env = getattr(env, "unwrapped", env)
        if getattr(env, "action_kind", "") != "controls" or not env.options.flat:
            raise HpcgymError(f"{self.name} act in {self.env_id} with observation='flat'")
        for argument in ("controls", "policy_features"):
            theirs, ours = list(getattr(env, argument)), list(self.env_options[argument])
            if theirs != ours:
                raise HpcgymError(f"the environment has {argument}={theirs}, and these are {ours}")
        self._places = places_of(env, self.inputs)

    def act(self, observation: Any, info: Mapping[str, Any] | None = None) -> Numbers:
        """Return the action, (n_controls + n_features,), from -1 to 1."""
        if self._places is None:
            raise HpcgymError(f"{self.name}: call begin(env) after the reset, then act")
        seen = np.asarray(observation)[self._places]
        return np.concatenate([settings_for(self.rows[None], seen[None])[0], self.weights])

    def save(self, path: str | Path) -> None:
        """Write everything as JSON, in such a way that a reader never sees half of it."""
        contents = {
            "format": FORMAT,
            "agent": NAME,
            "env_id": self.env_id,
            "env_options": self.env_options,
            "inputs": list(self.inputs),
            "rows": self.rows.tolist(),
            "weights": self.weights.tolist(),
            "found": self.found,
        }
        whole_json(path, contents)


def load(contents: Mapping[str, Any]) -> Controls:
    """Return the controls of a file's contents; :func:`hpcgym.agents.load` reads files."""
    if contents.get("format") != FORMAT or contents.get("env_id") not in ENVIRONMENTS:
        raise HpcgymError(f"these {NAME} are not of this version")
    options = contents["env_options"]
    agent = Controls(
        contents["rows"], contents["weights"], contents["inputs"], contents["env_id"], options,
        contents["found"],
    )  # fmt: skip
    wanted = len(options["controls"]), len(agent.inputs) + 1
    numbers = np.concatenate([agent.rows.reshape(-1), agent.weights.reshape(-1)])
    right = agent.rows.shape == wanted and agent.weights.shape == (len(options["policy_features"]),)
    if not right or not np.isfinite(numbers).all():
        raise HpcgymError(f"these {NAME} have numbers that do not fit their inputs")
    return agent


def places_of(env: Any, inputs: Sequence[str]) -> NDArray[np.int64]:
    """Return where inputs stand in a flat observation of an environment."""
    begins = {"power": env.simulations.layout.power_at, "queue": QUEUE_AT}
    return np.array([begins[INPUTS[name][0]] + INPUTS[name][1] for name in inputs], np.int64)


# --- Learning -------------------------------------------------------------------------------------


@takes(ControlsSettings)
def train(
    workload: Any,
    *,
    env: str = "hpcgym/EnergyBudget-v0",
    inputs: Sequence[str] = tuple(INPUTS),
    env_options: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    show: Callable[[int, float], None] | None = None,
    **settings: Any,
) -> Controls:
    """Search for controls; the same arguments give the same ones.

    Every other episode of the part is played by each vector of the search. The best of them, the
    mean of the last generation and the beginning of the search, which leaves the machine and the
    order of submission as they are, then play the episodes held back; the best there is returned.

    Parameters
    ----------
    workload : what to train on, as for :func:`hpcgym.load_workload`.
    env : id of an environment of ENVIRONMENTS.
    inputs : names of INPUTS that controls depend on.
    env_options : further arguments of the environment, such as ``share``, ``controls``,
        ``policy_features``, or ``reward``, whose mean return over the episodes is maximised.
    output : file of the agent.
    show : is given the vectors tried so far and the least value, minus the return.
    **settings : those of :class:`hpcgym.agents.settings.ControlsSettings`.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or fewer than two episodes.
    """
    check_choice("env", env, ENVIRONMENTS)
    how = ControlsSettings.of("train", settings)
    for name in inputs:
        check_choice("inputs", name, INPUTS)
    options = _options(env_options or {})
    arguments = {**options, **how.of_episodes()}
    stage = _Stage(ENVIRONMENTS[env], workload, arguments, tuple(inputs), how.population)
    offered = stage.env.episodes
    chosen = offered.named(offered.usual if how.number is None else how.number, how.seed)
    if len(chosen) < 2:
        raise HpcgymError("controls need two episodes or more: one to search by, one to choose by")
    shape, first = _begin(stage, [offered.workload_of(one) for one in chosen])
    vector, found = search(
        lambda vectors, played: stage.play(shape, vectors, played),
        first,
        _optimiser(how, first),
        chosen,
        how.budget,
        how.population,
        show,
        {"seed": how.seed, "method": how.method},
    )
    rows, weights = shape.cut(vector[np.newaxis])
    agent = Controls(rows[0], weights[0], inputs, env, options, found)
    if output is not None:
        agent.save(output)
    return agent


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the environment, with those that the policy needs.

    Raises
    ------
    HpcgymError : an observation that is not flat, or values that a file cannot hold.
    """
    usual = {"controls": ["power"], "policy_features": list(FEATURES), "backfill_order": "spf"}
    options = {**usual, "window": 64, "features": ["wait"], "observation": "flat", **given}
    if options["observation"] != "flat":
        raise HpcgymError("env_options: controls are learned with observation='flat'")
    for name in ("controls", "policy_features", "features"):
        options[name] = list(options[name])
    try:
        json.dumps(options)
    except TypeError as error:
        raise HpcgymError(f"env_options: a file cannot hold them; {error}") from None
    return options


def _begin(stage: _Stage, parts: Sequence[Any]) -> tuple[Shape, Numbers]:
    """Return how vectors are cut, and where the search begins."""
    features = stage.env.policy_features
    units = spread(parts, features) if features else np.zeros(0)
    shape = Shape(len(stage.env.controls), len(stage.places), units)
    first = np.zeros(shape.size)
    n_rows = shape.n_controls * (shape.n_inputs + 1)
    first[shape.n_inputs : n_rows : shape.n_inputs + 1] = 1.0
    return shape, first


def _optimiser(how: ControlsSettings, first: Numbers) -> Any:
    """Return the state of the search."""
    import cmaes  # here, because it imports scipy where there is one

    kind = cmaes.XNES if how.method == "xnes" else cmaes.CMA
    return kind(first.copy(), how.sigma, seed=how.seed, population_size=how.population)


class _Stage:
    """A vector environment in which vectors play episodes side by side."""

    def __init__(
        self, kind: Any, workload: Any, options: Mapping[str, Any], inputs: tuple[str, ...], n: int
    ) -> None:
        self._make: Callable[[int], Any] = lambda number: kind(
            number, workload, copy=False, **options
        )
        self._population = n
        self.env = self._make(1)
        self._wide: Any = None
        self.places = places_of(self.env, inputs)

    def play(self, shape: Shape, vectors: Numbers, episodes: Sequence[Episode]) -> Numbers:
        """Return minus the mean return of each vector over the episodes, (n_vectors,)."""
        rows, weights = shape.cut(vectors)
        pairs = [(v, episode) for v in range(len(vectors)) for episode in episodes]
        if self._wide is None or self._wide.num_envs < len(pairs):
            self._wide = self._make(max(len(pairs), self._population * len(episodes)))
            self._wide.reset(seed=0)
        returns = self._returns(rows, weights, pairs)
        means: Numbers = returns.reshape(len(vectors), len(episodes)).mean(axis=1)
        return -means

    def _returns(
        self, rows: Numbers, weights: Numbers, pairs: list[tuple[int, Episode]]
    ) -> Numbers:
        """Return the sum of the rewards of each pair of a vector and an episode."""
        env, n = self._wide, len(pairs)
        whose = np.zeros(env.num_envs, np.int64)  # those without a pair play along, to no end
        whose[:n] = [v for v, _ in pairs]
        mine = np.zeros(env.num_envs, np.bool_)
        for e, (_, episode) in enumerate(pairs):
            mine[:] = False
            mine[e] = True
            observation, _ = env.reset(options={"slice": episode.name, "reset_mask": mine})
        actions = np.empty((env.num_envs, rows.shape[1] + weights.shape[1]))
        actions[:, rows.shape[1] :] = weights[whose]
        alive = np.arange(env.num_envs) < n
        returns = np.zeros(env.num_envs)
        while alive.any():
            seen = observation[:, self.places]
            actions[:, : rows.shape[1]] = settings_for(rows[whose], seen)
            observation, rewards, ended, _, _ = env.step(actions)
            returns[alive] += rewards[alive]
            alive &= ~ended
        return returns[:n]
