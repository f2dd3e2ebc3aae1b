"""The infos of environments: of one, and of many as Gymnasium's own loop over single ones has them.

What a vector environment says at a step is made when it is read: most of it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.envs.core.base import PAIR_SCORES_KIND, PAIRS_KIND, SELECTION_KIND
from hpcgym.envs.core.machines import State
from hpcgym.envs.core.observation import N_TOLD, Observation
from hpcgym.envs.core.reward import BSLD, ELAPSED, ENERGY, WAIT
from hpcgym.envs.core.simulations import Simulations
from hpcgym.schedule.measures import metrics_within
from hpcgym.schedule.result import Result

# --- The schedule of a simulation, of which little is copied --------------------------------------


def state_of(simulations: Simulations, e: int) -> State:
    """Return what the schedule of simulation ``e`` is made of, as it is now."""
    batch = simulations.batch
    return State(
        simulations.names[e],
        simulations.present(e),
        simulations.episode(e) if simulations.hides(e) else None,
        batch.episode_state[e : e + 1].copy()[0],  # a record by itself is slow to copy
        batch.totals[e].copy(),
        simulations.simulation(e),
        simulations.told_jobs(e),
        simulations.told.rules,
        simulations.limits[e],
    )


def means_of(simulations: Simulations, told: State) -> dict[str, float]:
    """Return the metrics that the sums give at once, of the jobs that count and have started."""
    now = told.episode_state
    first, last, start = int(now.counts_first), int(now.counting), told.schedule["start"]
    paid = np.count_nonzero(start[first:last] >= int(now.begin))
    if now.truncated:
        last = min(last, told.come)
        paid += np.count_nonzero(start[first:last] < 0)
    jobs = max(int(paid), 1)
    found = {
        "mean_bsld": told.totals[BSLD] / jobs,
        "mean_wait_s": told.totals[WAIT] / jobs,
        "energy_j": told.totals[ENERGY],
    }
    if "elapsed_s" in simulations.machines.terms:
        found["makespan_s"] = told.totals[ELAPSED]
    return {name: float(value) for name, value in found.items()}


def jobs_before(start: NDArray[np.int64], episode_state: Any) -> int:
    """Return how many jobs ran when the episode began, as in an extract; ``start``: of jobs [s]."""
    return int(np.count_nonzero((start >= 0) & (start < episode_state["begin"])))


def metrics_of(simulations: Simulations, told: State) -> dict[str, float | int]:
    """Return the metrics of an episode that has ended: of its slice, where it is more than that."""
    result, now = schedule_of(simulations, told), told.episode_state
    if now.of_slice == 0 and now.truncated == 0:
        return result.metrics
    end = None if now.until == FOREVER else int(now.until)
    return metrics_within(result, int(now.counts_first), int(now.counting), end)


def schedule_of(simulations: Simulations, told: State) -> Result:
    """Return the schedule of these simulations so far; jobs not started have start -1.

    Where run times are learned, the requested ones stand for jobs not submitted yet.
    """
    workload = told.workload
    if workload is None:
        workload = simulations.episodes.workload_of(told.episode)
    return simulations.machines.schedule(told, workload)


# --- The infos of environments --------------------------------------------------------------------

_WITH_ACTION_MASKS = (SELECTION_KIND, PAIRS_KIND, PAIR_SCORES_KIND)


def info_of(simulations: Simulations, e: int) -> dict[str, Any]:
    """Return what is said of simulation ``e`` as it is now; all arrays are new."""
    out, terms = simulations.out, simulations.machines.terms
    info = {
        "window": out.told[e, N_TOLD:].copy(),
        "time": simulations.seconds(out.told.item(e, 0)),
        "reward_terms": dict(zip(terms, out.terms[e].tolist(), strict=False)),
    }
    batch = simulations.batch
    if batch.neighbours.shape[1]:
        info["neighbours"] = simulations.listed(e)
    if simulations.tells_ends:
        n = int(batch.episode_state["gone"][e])
        # lists: Gymnasium takes arrays for as long in all environments
        info |= {"ended": batch.gone[e, :n].tolist(), "ended_bsld": batch.gone_bsld[e, :n].tolist()}
    if simulations.kind in _WITH_ACTION_MASKS:
        info["action_mask"] = out.masks[e].copy()
    return info


def pay_tails(simulations: Simulations, over: NDArray[np.bool_]) -> None:
    """Add to the rewards of episodes that have ended what is paid at their ends alone.

    ``over``: (number,) which of the simulations have ended their episodes in this step.
    """
    if not any(simulations.options.rewards.tails):
        return
    tails = np.array(simulations.options.rewards.tails)
    for e in np.flatnonzero(over).tolist():
        metrics = metrics_of(simulations, state_of(simulations, e))
        simulations.out.rewards[e] -= tails * (metrics["p99_wait_s"] / 3600)


def end_of(simulations: Simulations, told: State) -> dict[str, Any]:
    """Return what is said of an episode that has ended, beside the rest.

    Metrics without a value are left out: nan is not equal to itself, and infos are compared.
    """
    metrics = metrics_of(simulations, told)
    known = {name: value for name, value in metrics.items() if value == value}
    return {"metrics": known, "episode_name": told.name}


class _LATER:
    """Stands for an entry that is not made yet, in copies of environments as well."""


class Infos(dict[str, Any]):
    """A dict whose entries are made when they are first read; else it is one as any other.

    All keys are there from the beginning, in their order. What reads a dict without asking it, as
    the encoder of ``json`` does, so finds it as long as it is, and then asks for its items.

    Parameters
    ----------
    make : returns the entry of a key, and maybe others with it.
    names : the keys -> what stands for entries that are not made yet, see :func:`later`.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[str], dict[str, Any]], names: dict[str, Any]) -> None:
        super().__init__(names)
        self._make = make

    def made(self) -> Infos:
        """Make all that is left."""
        for key in dict.keys(self):
            self[key]
        return self

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if value is not _LATER:
            return value
        for name, value in self._make(key).items():
            if dict.get(self, name) is _LATER:
                super().__setitem__(name, value)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, or the default where there is none."""
        return self[key] if key in self else default  # noqa: SIM401  # it would call itself

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def later(names: Iterable[str]) -> dict[str, Any]:
    """Return names, in their order, with what stands for entries that are not made yet."""
    return dict.fromkeys(names, _LATER)


def _when_made(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: Infos, *given: Any) -> Any:
        return method(self.made(), *given)

    return call


# dict(infos) and {**infos} copy entries as they lie there, unless __iter__ is not that of a dict
for _name in (
    "__eq__", "__iter__", "__ne__", "__or__", "__repr__", "__ror__", "copy", "items", "pop",
    "popitem", "setdefault", "values",
):  # fmt: skip
    setattr(Infos, _name, _when_made(_name))


class Ended(NamedTuple):
    """The jobs that were paid as they ended.

    Attributes
    ----------
    counts : (num_envs,) how many.
    rows, bsld : (num_envs, most) jobs of the episode, their bounded slowdowns; then anything.
    """

    counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    bsld: NDArray[np.float64]


class Step(NamedTuple):
    """What is told of environments at a step; nothing changes it.

    Attributes
    ----------
    told, terms : see :class:`hpcgym.envs.core.observation.Outputs`.
    masks : (num_envs, n_actions); None where infos have none.
    beside : (num_envs, M) neighbours, and (num_envs,) how many there are; None where no nodes are
        shared.
    ended : None where jobs are not paid when they end.
    """

    told: NDArray[np.int64]
    terms: NDArray[np.float64]
    masks: NDArray[np.int8] | None
    beside: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    ended: Ended | None = None


class Ends(NamedTuple):
    """What is kept of the episodes that ended in a step.

    Attributes
    ----------
    those : (k,) numbers of their environments.
    over : which are over by themselves or by their horizon, (k,); others have no metrics.
    states : what their schedules are made of.
    last : the infos of each, their observations and masks, each (k, ...), if other episodes have
        begun there.
    """

    those: NDArray[np.int64]
    over: NDArray[np.bool_]
    states: list[State]
    last: tuple[list[dict[str, Any]], NDArray[np.float32], NDArray[np.int8]] | None


class Teller:
    """Makes the infos of the steps of a vector environment."""

    def __init__(self, env: VectorEnv[Any, Any, Any], simulations: Simulations) -> None:
        self._env, self._simulations = env, simulations
        self._has_action_masks = simulations.kind in _WITH_ACTION_MASKS
        # in the order in which a loop over single environments has them
        names = ["window", "time", "reward_terms"]
        if simulations.neighbours is not None:
            names.append("neighbours")
        if simulations.tells_ends:
            names += ["ended", "ended_bsld"]
        if self._has_action_masks:
            names.append("action_mask")
        self._usual = later(_with_flags(names))
        self._at_ends = later(_with_flags([*names, "metrics", "episode_name"]))
        self._at_resets = later(_with_flags(["final_obs", "final_info", *names]))

    def of_step(self, ends: Ends | None) -> Infos:
        """Return the infos of the last step."""
        names = self._usual
        if ends is not None:
            if ends.last is not None:
                names = self._at_resets
            elif ends.over.any():
                names = self._at_ends
        return Infos(partial(self._make, self._step(), ends), names)

    def keep(self, done: NDArray[np.bool_], over: NDArray[np.bool_], last: bool) -> Ends:
        """Return what is kept of the episodes that are done; what was told last if it is wanted."""
        simulations, those = self._simulations, np.flatnonzero(done)
        states = [state_of(simulations, e) for e in those.tolist()]
        told = None
        if last:
            infos = [info_of(simulations, e) for e in those.tolist()]
            told = infos, simulations.out.observations[those], simulations.out.masks[those]
        return Ends(those, over[those], states, told)

    def _step(self) -> Step:
        """Return what is told at the last step."""
        simulations, out = self._simulations, self._simulations.out
        masks = out.masks if self._has_action_masks else None
        ended = None
        if simulations.tells_ends:
            batch = simulations.batch
            counts = batch.episode_state["gone"].copy()
            most = counts.max()
            rows, bslds = batch.gone[:, :most].copy(), batch.gone_bsld[:, :most].copy()
            ended = Ended(counts, rows, bslds)
        return Step(out.told, out.terms, masks, simulations.neighbours, ended)

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
        """Return an entry of the infos of a step, and its flags if they come with it."""
        name = key.removeprefix("_")
        if name == "final_obs":
            assert ends is not None
            return self._final_obs(ends, len(step.told))
        if ends is not None and name in ("metrics", "episode_name", "final_info"):
            infos: dict[str, Any] = {}
            for e, info in zip(ends.those.tolist(), self._of_ends(ends, name), strict=True):
                infos = self._env._add_info(infos, info, e)  # as Gymnasium does it
            return infos
        if key != name:
            return {key: np.ones(len(step.told), np.bool_)}
        return {key: getattr(self, f"_{key}")(step)}

    def _final_obs(self, ends: Ends, num_envs: int) -> dict[str, Any]:
        """Return the last observations of episodes that have ended, and of whom there is one."""
        observations, flags = np.full(num_envs, None, object), np.zeros(num_envs, np.bool_)
        for k, e in enumerate(ends.those.tolist()):
            observations[e] = self.observation(ends, k)
        flags[ends.those] = True
        return {"final_obs": observations, "_final_obs": flags}

    def _of_ends(self, ends: Ends, name: str) -> list[dict[str, Any]]:
        """Return this entry of each episode that has ended, in a dict that is empty without it."""
        if name == "final_info":
            return [{name: info} for info in self._last_infos(ends)]
        said: list[dict[str, Any]] = []
        for told, over in zip(ends.states, ends.over.tolist(), strict=True):
            if not over:
                said.append({})
            elif name == "episode_name":
                said.append({name: told.name})
            else:
                said.append({name: end_of(self._simulations, told)[name]})
        return said

    def _last_infos(self, ends: Ends) -> list[dict[str, Any]]:
        """Return what was said last of each episode that has ended, as of single ones."""
        assert ends.last is not None
        return [
            info | (end_of(self._simulations, told) if over else {})
            for info, told, over in zip(ends.last[0], ends.states, ends.over.tolist(), strict=True)
        ]

    def _time(self, step: Step) -> NDArray[Any]:
        """Return the times [s], (num_envs,)."""
        times: NDArray[Any] = self._simulations.seconds(step.told[:, 0].copy())
        return times

    def _window(self, step: Step) -> NDArray[np.int64]:
        """Return the rows of visible jobs, -1 behind them; (num_envs, window)."""
        return step.told[:, N_TOLD:].copy()

    def _neighbours(self, step: Step) -> NDArray[np.int64]:
        """Return the rows of neighbours, -1 behind them; (num_envs, M)."""
        assert step.beside is not None
        return _listed(*step.beside)

    def _action_mask(self, step: Step) -> NDArray[np.int8]:
        """Return what can be done, (num_envs, n_actions): a view where observations are views."""
        assert step.masks is not None
        return step.masks.copy() if self._simulations.copies else step.masks

    def _ended(self, step: Step) -> NDArray[Any]:
        """Return the jobs that were paid as they ended, (num_envs,) lists."""
        assert step.ended is not None
        return _by_environment(step.ended.rows, step.ended.counts)

    def _ended_bsld(self, step: Step) -> NDArray[Any]:
        """Return their bounded slowdowns, (num_envs,) lists."""
        assert step.ended is not None
        return _by_environment(step.ended.bsld, step.ended.counts)

    def _reward_terms(self, step: Step) -> dict[str, Any]:
        """Return the terms of the rewards, each (num_envs,)."""
        everyone = np.ones(len(step.terms), np.bool_)
        terms: dict[str, Any] = {}
        for k, name in enumerate(self._simulations.machines.terms):
            terms[name], terms[f"_{name}"] = step.terms[:, k].copy(), everyone.copy()
        return terms


def _with_flags(names: Iterable[str]) -> list[str]:
    """Return names, and behind each the name of its flags, as Gymnasium has them."""
    return [each for name in names for each in (name, f"_{name}")]


def _by_environment(rows: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[Any]:
    """Return the first few of each row, (n,) lists of different lengths."""
    found = np.empty(len(rows), object)
    for e, count in enumerate(counts.tolist()):
        found[e] = rows[e, :count].tolist()
    return found


def _listed(rows: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return lists of rows, (n, size), with -1 behind the first few."""
    behind = np.arange(rows.shape[1]) >= counts[:, np.newaxis]
    return np.where(behind, -1, rows)
