"""The infos of environments: of one, and of many as Gymnasium's own loop over single ones has them.

What a vector environment says at a step is made when it is read: most of it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.envs import arrays
from hpcgym.envs.layout import Observation
from hpcgym.envs.schedules import State, schedule_of, state_of
from hpcgym.envs.simulations import Simulations

_WITH_MASK = (arrays.SELECTION_KIND, arrays.PAIRS_KIND, arrays.PAIR_SCORES_KIND)
_TERMS = ("bsld", "wait_s", "energy_j", "elapsed_s")


def terms_of(simulations: Simulations) -> tuple[str, ...]:
    """Return the names of the terms of rewards; where jobs share nodes there is one more."""
    return _TERMS if simulations.shared is not None else _TERMS[: arrays.ELAPSED]


def info_of(simulations: Simulations, e: int) -> dict[str, Any]:
    """Return what is said of simulation ``e`` as it is now; all arrays are new."""
    batch = simulations.batch
    info = {
        "window": simulations.visible(e),
        "time": simulations.seconds(batch.sim[e, state.TIME]).item(),
        "reward_terms": dict(zip(terms_of(simulations), batch.terms[e].tolist(), strict=False)),
    }
    if simulations.shared is not None:
        info["neighbours"] = simulations.shared.listed(e)
    if simulations.kind in _WITH_MASK:
        info["action_mask"] = simulations.out.masks[e].copy()
    return info


def end_of(simulations: Simulations, told: State) -> dict[str, Any]:
    """Return what is said of an episode that has ended, beside the rest.

    Metrics without a value are left out: nan is not equal to itself, and infos are compared.
    """
    metrics = schedule_of(simulations, told).metrics
    known = {name: value for name, value in metrics.items() if value == value}
    return {"metrics": known, "episode_name": told.name}


class Infos(dict[str, Any]):
    """A dict whose entries are made when they are first read; then it is one as any other.

    Parameters
    ----------
    make : returns the entry of a key, and maybe others with it.
    names : the keys.
    """

    __slots__ = ("_left", "_make")

    def __init__(self, make: Callable[[str], dict[str, Any]], names: frozenset[str]) -> None:
        self._make, self._left = make, names

    def made(self) -> Infos:
        """Make all that is left."""
        for key in self._left:
            self[key]
        self._left = frozenset()
        return self

    def __missing__(self, key: str) -> Any:
        if key not in self._left:
            raise KeyError(key)
        for name, value in self._make(key).items():
            dict.setdefault(self, name, value)
        return self[key]

    def __contains__(self, key: object) -> bool:
        return key in self._left or super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, or the default where there is none."""
        return self[key] if key in self else default  # noqa: SIM401  # it would call itself

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _when_made(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: Infos, *given: Any) -> Any:
        return method(self.made(), *given)

    return call


for _name in (
    "__delitem__", "__eq__", "__ior__", "__iter__", "__len__", "__ne__", "__or__", "__repr__",
    "__reversed__", "__ror__", "clear", "copy", "items", "keys", "pop", "popitem", "setdefault",
    "values",
):  # fmt: skip
    setattr(Infos, _name, _when_made(_name))


class Step(NamedTuple):
    """What is told of environments at a step; nothing changes it.

    Attributes
    ----------
    told, terms : see :class:`hpcgym.envs.arrays.Outputs`.
    masks : (num_envs, n_actions); None where infos have none.
    beside : (num_envs, M) neighbours, and (num_envs,) how many there are; None where no nodes are
        shared.
    """

    told: NDArray[np.int64]
    terms: NDArray[np.float64]
    masks: NDArray[np.int8] | None
    beside: tuple[NDArray[np.int64], NDArray[np.int64]] | None


class Ends(NamedTuple):
    """What is kept of the episodes that ended in a step.

    Attributes
    ----------
    those : (k,) numbers of their environments.
    terminated : which have ended by themselves, (k,); others were truncated, and have no metrics.
    states : what their schedules are made of.
    last : what was told of them last, if other episodes have begun there; with their observations
        and masks, each (k, ...).
    """

    those: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    states: list[State]
    last: tuple[Step, NDArray[np.float32], NDArray[np.int8]] | None


class Teller:
    """Makes the infos of the steps of a vector environment."""

    def __init__(self, env: VectorEnv[Any, Any, Any], simulations: Simulations) -> None:
        self._env, self._simulations = env, simulations
        self._masked = simulations.kind in _WITH_MASK
        names = {"window", "time", "reward_terms"}
        if simulations.shared is not None:
            names.add("neighbours")
        if self._masked:
            names.add("action_mask")
        self._usual = _masked(names)
        self._at_ends = _masked(names | {"metrics", "episode_name"})
        self._at_resets = _masked(names | {"final_obs", "final_info"})

    def of_step(self, copy: bool, ends: Ends | None) -> Infos:
        """Return the infos of the last step; masks are views unless they are to be copied."""
        names = self._usual
        if ends is not None:
            if ends.last is not None:
                names = self._at_resets
            elif ends.terminated.any():
                names = self._at_ends
        return Infos(partial(self._make, self._step(copy), ends), names)

    def keep(self, done: NDArray[np.bool_], terminated: NDArray[np.bool_], last: bool) -> Ends:
        """Return what is kept of the episodes that are done; what was told last if it is wanted."""
        simulations, those = self._simulations, np.flatnonzero(done)
        states = [state_of(simulations, e) for e in those.tolist()]
        told = None
        if last:
            out, step = simulations.out, self._step(False)
            masks = None if step.masks is None else step.masks[those]
            beside = None if step.beside is None else (step.beside[0][those], step.beside[1][those])
            told = (
                Step(step.told[those], step.terms[those], masks, beside),
                out.observations[those],
                out.masks[those],
            )
        return Ends(those, terminated[those], states, told)

    def _step(self, copy: bool) -> Step:
        """Return what is told at the last step."""
        simulations, out, masks = self._simulations, self._simulations.out, None
        if self._masked:
            masks = out.masks.copy() if copy else out.masks
        shared = simulations.shared
        beside = None if shared is None else shared.neighbours()
        return Step(out.told, out.terms, masks, beside)

    def observation(self, ends: Ends, k: int) -> Observation:
        """Return the last observation of the k-th of some episodes that have ended."""
        assert ends.last is not None
        _, rows, masks = ends.last
        return self._simulations.layout.of(rows[k], masks[k])

    def of_some(self, those: list[int]) -> dict[str, Any]:
        """Return the infos of some environments as they are now; those of others are empty."""
        infos: dict[str, Any] = {}
        for e in those:
            infos = self._env._add_info(infos, info_of(self._simulations, e), e)
        return infos

    def _make(self, step: Step, ends: Ends | None, key: str) -> dict[str, Any]:
        """Return an entry of the infos of a step, and its mask if that comes with it."""
        name = key.removeprefix("_")
        if ends is not None and name in ("metrics", "episode_name", "final_obs", "final_info"):
            infos: dict[str, Any] = {}
            for k, e in enumerate(ends.those.tolist()):  # as Gymnasium does it
                infos = self._env._add_info(infos, self._of_end(ends, k, name), e)
            return infos
        if key != name:
            return {key: np.ones(len(step.told), np.bool_)}
        return {key: getattr(self, f"_{key}")(step)}

    def _of_end(self, ends: Ends, k: int, name: str) -> dict[str, Any]:
        """Return what is said of the k-th episode that has ended, if it is said of it."""
        told = ends.states[k]
        if name == "final_obs":
            return {name: self.observation(ends, k)}
        if name == "final_info":
            more = end_of(self._simulations, told) if ends.terminated[k] else {}
            return {name: {**self._last_info(ends, k), **more}}
        if not ends.terminated[k]:
            return {}
        if name == "episode_name":
            return {name: told.name}
        return {name: end_of(self._simulations, told)[name]}

    def _last_info(self, ends: Ends, k: int) -> dict[str, Any]:
        """Return what was said last of the k-th episode that has ended, as of a single one."""
        assert ends.last is not None
        step, _, _ = ends.last
        names = [name for name in self._usual if not name.startswith("_")]
        info = {name: getattr(self, f"_{name}")(step) for name in names}
        info["time"] = info["time"][k].item()
        terms = zip(terms_of(self._simulations), step.terms[k].tolist(), strict=False)
        info["reward_terms"] = dict(terms)
        return {name: v[k] if isinstance(v, np.ndarray) else v for name, v in info.items()}

    def _time(self, step: Step) -> NDArray[Any]:
        """Return the times [s], (num_envs,)."""
        times: NDArray[Any] = self._simulations.seconds(step.told[:, 0].copy())
        return times

    def _window(self, step: Step) -> NDArray[np.int64]:
        """Return the rows of visible jobs, -1 behind them; (num_envs, window)."""
        return _listed(step.told[:, arrays.N_TOLD :], step.told[:, 1])

    def _neighbours(self, step: Step) -> NDArray[np.int64]:
        """Return the rows of neighbours, -1 behind them; (num_envs, M)."""
        assert step.beside is not None
        return _listed(*step.beside)

    def _action_mask(self, step: Step) -> NDArray[np.int8] | None:
        """Return what can be done, (num_envs, n_actions)."""
        return step.masks

    def _reward_terms(self, step: Step) -> dict[str, Any]:
        """Return the terms of the rewards, each (num_envs,)."""
        everyone = np.ones(len(step.terms), np.bool_)
        terms: dict[str, Any] = {}
        for k, name in enumerate(terms_of(self._simulations)):
            terms[name], terms[f"_{name}"] = step.terms[:, k].copy(), everyone.copy()
        return terms


def _masked(names: set[str]) -> frozenset[str]:
    """Return names with those of their masks."""
    return frozenset(names | {f"_{name}" for name in names})


def _listed(rows: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return lists of rows, (n, size), with -1 behind the first few."""
    behind = np.arange(rows.shape[1]) >= counts[:, np.newaxis]
    return np.where(behind, -1, rows)
