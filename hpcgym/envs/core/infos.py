"""The infos of environments: of one, and of many as Gymnasium's own loop over single ones has them.

What a vector environment says at a step is made when it is read: most of it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.envs.core.machines import ScheduleState
from hpcgym.envs.core.observation import N_TOLD
from hpcgym.envs.core.simulations import Simulations
from hpcgym.errors import HpcgymError
from hpcgym.schedule.measures import metrics_within, result_within, weekly_sums
from hpcgym.schedule.result import Result
from hpcgym.schedule.schedule import read_only

# --- The schedule of a simulation, of which little is copied --------------------------------------


def state_of(simulations: Simulations, e: int) -> ScheduleState:
    """Return what the schedule of simulation ``e`` is made of, as it is now."""
    batch, world = simulations.batch, simulations.played(e)
    return ScheduleState(
        simulations.names[e],
        world.episodes,
        simulations.present(e),
        world.machines,
        simulations.episode(e) if simulations.changes_jobs(e) else None,
        batch.episode_state[e : e + 1].copy()[0],  # a record by itself is slow to copy
        batch.totals[e].copy(),
        simulations.simulation(e),
        simulations.told_jobs(e),
        world.told.rules,
        simulations.limits[e],
        simulations.counts(e),
    )


#: Term of rewards -> the metric that its sum gives.
_METRICS_OF_TERMS = {
    "bsld": "mean_bsld", "wait_s": "mean_wait_s", "energy_j": "energy_j",
    "elapsed_s": "makespan_s", "turnaround_s": "mean_turnaround_s",
}  # fmt: skip
#: Those of them that are of a job: the sums are divided by the number of jobs.
_MEANS = ("mean_bsld", "mean_wait_s", "mean_turnaround_s")


def means_of(state: ScheduleState) -> dict[str, float]:
    """Return the metrics that the sums give at once, of the jobs that count and have started.

    Means are 0 where no job counts.
    """
    now, start = state.episode_state, state.schedule["start"]
    paid = start >= int(now.begin)
    if now.truncated:
        paid[: state.come] |= start[: state.come] < 0
    paid[: now.counts_first] = paid[now.counting :] = False
    if state.counts is not None:
        paid &= state.counts
    jobs = max(int(np.count_nonzero(paid)), 1)
    metrics = [_METRICS_OF_TERMS[term] for term in state.machines.terms]
    return {
        name: total / jobs if name in _MEANS else total
        for name, total in zip(metrics, state.totals.tolist(), strict=False)
    }


def jobs_before(start: NDArray[np.int64], episode_state: Any) -> int:
    """Return how many jobs ran when the episode began, as in an extract; ``start``: of jobs [s]."""
    return int(np.count_nonzero((start >= 0) & (start < episode_state["begin"])))


def not_over() -> HpcgymError:
    """Return the error of metrics of an episode that goes on."""
    return HpcgymError("metrics: the episode is not over; result().metrics has what was so far")


def metrics_of(state: ScheduleState) -> dict[str, float | int]:
    """Return the metrics of an episode that is over: of its slice, where it is more than that.

    Raises
    ------
    HpcgymError : it goes on.
    """
    if state.episode_state.ended == 0:
        raise not_over()
    result, counts = schedule_of(state), _slice_of(state)
    return result.metrics if counts is None else metrics_within(result, *counts)


def weekly_of(state: ScheduleState) -> NDArray[np.float64]:
    """Return the weekly sums of the jobs of an episode that count; amid it, of those that ended.

    As :func:`hpcgym.schedule.measures.weekly_sums`; who waits when it is over counts as in metrics.
    """
    result, counts, now = schedule_of(state), _slice_of(state), state.episode_state
    if now.ended == 0:
        here = slice(int(now.counts_first), int(now.counting))
        counts_here = np.zeros(len(result.start), np.bool_)
        counts_here[here] = result.counted[here]
        return weekly_sums(result, counts_here)
    if counts is not None:
        result = result_within(result, *counts)
    return weekly_sums(result, result.decided & (result.start >= 0))


def counted_of(state: ScheduleState) -> NDArray[np.int64]:
    """Return the rows of the jobs of an episode that count; see SchedulingEnv.counted."""
    now, start, submit = state.episode_state, state.schedule["start"], state.schedule["submit"]
    counts = ((start < 0) | (start >= now.begin)) & (submit <= now.until)
    counts[: now.counts_first] = counts[now.counting :] = False
    if state.counts is not None:
        counts &= state.counts
    return np.flatnonzero(counts)


def _slice_of(state: ScheduleState) -> tuple[int, int, int | None] | None:
    """Return :attr:`hpcgym.envs.core.slices.Episode.counting` as it is now.

    None: metrics are of all that is scheduled.
    """
    now = state.episode_state
    if now.of_slice == 0 and now.truncated == 0:
        return None
    end = None if now.until == FOREVER else int(now.until)
    return int(now.counts_first), int(now.counting), end


def schedule_of(state: ScheduleState) -> Result:
    """Return the schedule of a simulation so far; jobs not started have start -1.

    Where run times are learned, the requested ones stand for jobs not submitted yet.
    """
    workload = state.workload
    if workload is None:
        workload = state.episodes.workload_of(state.episode)
    result, native = state.machines.schedule(state, workload), state.simulation
    if state.episode_state.ended == 1 and (result.start >= 0).all():
        return result
    ended = state.schedule["start"] >= 0
    ended[native.view()["running"]] = False
    ended[native.moment().get("given_up", np.zeros(0, np.int64))] = False
    if result.given is not None:  # its jobs stand as they came
        ended = ended[np.argsort(state.schedule["submit"], kind="stable")]
    return replace(result, ended=read_only(ended))


# --- The infos of environments --------------------------------------------------------------------

#: Begins the names of what infos have at an episode's end alone.
_AT_END = "episode_"


def info_of(simulations: Simulations, e: int) -> dict[str, Any]:
    """Return what is said of simulation ``e`` as it is now; all arrays are new."""
    out = simulations.out
    # numbers as numpy has them: others ask for their dtype
    info = {"window": out.told[e, N_TOLD:].copy(), "time_s": simulations.seconds(out.told[e, 0], e)}
    info |= zip(simulations.reward_keys, out.terms[e], strict=False)
    if simulations.lists_neighbours:
        info["neighbour_rows"] = simulations.neighbours_of(e)
    if simulations.tells_ends:
        batch = simulations.batch
        n = int(batch.episode_state["gone"][e])
        # lists: Gymnasium takes arrays for as long in all environments
        info |= {"ended": batch.gone[e, :n].tolist(), "ended_bsld": batch.gone_bsld[e, :n].tolist()}
    if simulations.tells_masks:
        info["action_mask"] = out.masks[e].copy()
    return info


def pay_tails(simulations: Simulations, over: NDArray[np.bool_]) -> None:
    """Add to the rewards of episodes that have ended what is paid at their ends alone.

    ``over``: (number,) which of the simulations have ended their episodes in this step.
    """
    if not any(simulations.rewards.tails):
        return
    tails, unasked = np.array(simulations.rewards.tails), simulations.batch.episode_state["unasked"]
    for e in np.flatnonzero(over & (unasked == 0)).tolist():
        metrics = metrics_of(state_of(simulations, e))
        simulations.out.rewards[e] -= tails * (metrics["p99_wait_s"] / 3600)


def end_of(state: ScheduleState) -> dict[str, np.float64]:
    """Return what is said of an episode that is over, beside the rest: numbers, as others ask."""
    return {f"{_AT_END}{name}": np.float64(value) for name, value in means_of(state).items()}


_LATER: Any = object  # stands for an entry that is not made yet, in copies of environments as well


class Infos(dict[str, Any]):
    """A dict whose entries are made when they are first read; else it is one as any other.

    All keys are there from the beginning, in their order. What reads a dict without asking it, as
    the encoder of ``json`` does, so finds it as long as it is, and then asks for its items.

    Parameters
    ----------
    names : the keys, with what stands for entries that are not made yet.
    make : returns the entry of a key.
    """

    __slots__ = ("_make",)

    def __init__(self, names: dict[str, Any], make: Callable[[str], Any]) -> None:
        super().__init__(names)
        self._make = make

    def made(self) -> Infos:
        """Make all that is left."""
        for key in dict.keys(self):
            self[key]
        return self

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if value is _LATER:
            value = self._make(key)
            super().__setitem__(key, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, or the default if it is missing."""
        return self[key] if key in self else default  # noqa: SIM401  # it would call itself

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _when_made(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)
    return lambda self, *given: method(self.made(), *given)


# dict(infos) and {**infos} copy entries as they lie there, unless __iter__ is not that of a dict
for _name in (
    "__eq__", "__iter__", "__ne__", "__or__", "__repr__", "__ror__", "copy", "items", "pop",
    "popitem", "setdefault", "values",
):  # fmt: skip
    setattr(Infos, _name, _when_made(_name))


class StepRecord(NamedTuple):
    """What is told of environments at a step; nothing changes it.

    Attributes
    ----------
    told, terms, masks : see :class:`hpcgym.envs.core.observation.Outputs`.
    beside : (num_envs, M) neighbours, and (num_envs,) how many there are; None where no nodes are
        shared.
    ended : where jobs are paid when they end, (num_envs,) how many were, and (num_envs, most) which
        and their bounded slowdowns, then anything.
    """

    told: NDArray[np.int64]
    terms: NDArray[np.float64]
    masks: NDArray[np.int8]
    beside: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    ended: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None


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
    states: list[ScheduleState]
    last: tuple[list[dict[str, Any]], NDArray[np.float32], NDArray[np.int8]] | None


class Teller:
    """Makes the infos of the steps of a vector environment."""

    def __init__(self, env: VectorEnv[Any, Any, Any], simulations: Simulations) -> None:
        self._env, self._simulations = env, simulations
        # in the order in which a loop over single environments has them
        names = ["window", "time_s", *simulations.reward_keys]
        names += ["neighbour_rows"] * simulations.lists_neighbours
        names += ["ended", "ended_bsld"] * simulations.tells_ends
        names += ["action_mask"] * simulations.tells_masks
        self._usual = _later(names)
        ends = [_AT_END + _METRICS_OF_TERMS[term] for term in simulations.terms]
        self._at_ends = _later([*names, *ends])
        self._at_resets = _later(["final_obs", "final_info", *names])

    def of_step(self, ends: Ends | None) -> Infos:
        """Return the infos of the last step."""
        names = self._usual
        if ends is not None:
            if ends.last is not None:
                names = self._at_resets
            elif ends.over.any():
                names = self._at_ends
        simulations, out, ended = self._simulations, self._simulations.out, None
        if simulations.tells_ends:
            batch = simulations.batch
            counts = batch.episode_state["gone"].copy()
            most = counts.max()
            ended = counts, batch.gone[:, :most].copy(), batch.gone_bsld[:, :most].copy()
        step = StepRecord(out.told, out.terms, out.masks, simulations.neighbours, ended)
        return Infos(names, partial(self._made, step, ends))

    def keep(self, done: NDArray[np.bool_], over: NDArray[np.bool_], last: bool) -> Ends:
        """Return what is kept of the episodes that are done; what was told last if it is wanted."""
        simulations, those = self._simulations, np.flatnonzero(done)
        states = [state_of(simulations, e) for e in those.tolist()]
        last_told = None
        if last:
            infos = [info_of(simulations, e) for e in those.tolist()]
            last_told = infos, simulations.out.observations[those], simulations.out.masks[those]
        return Ends(those, over[those], states, last_told)

    def of_some(self, those: list[int]) -> dict[str, Any]:
        """Return the infos of some environments as they are now; those of others are empty."""
        if len(those) == self._env.num_envs and self._simulations.copies:
            return self.of_step(None)  # which makes what is asked for
        return self._added(those, [info_of(self._simulations, e) for e in those])

    def _added(self, those: list[int], infos: list[dict[str, Any]]) -> dict[str, Any]:
        """Return infos of some environments as Gymnasium puts them together."""
        added: dict[str, Any] = {}
        for e, info in zip(those, infos, strict=True):
            added = self._env._add_info(added, info, e)
        return added

    def _made(self, step: StepRecord, ends: Ends | None, key: str) -> Any:
        """Return an entry of the infos of a step."""
        name = key.removeprefix("_")
        if ends is not None and name.startswith((_AT_END, "final_")):
            return self._at_end(ends, key, name)
        if key != name:
            return np.ones(len(step.told), np.bool_)
        if name == "window":
            return step.told[:, N_TOLD:].copy()
        if name == "time_s":
            return self._simulations.seconds(step.told[:, 0].copy())
        if name == "action_mask":  # a view where observations are views
            return step.masks.copy() if self._simulations.copies else step.masks
        if name == "neighbour_rows":
            assert step.beside is not None
            rows, counts = step.beside
            return np.where(np.arange(rows.shape[1]) < counts[:, np.newaxis], rows, -1)
        if name in self._simulations.reward_keys:
            return step.terms[:, self._simulations.reward_keys.index(name)].copy()
        assert step.ended is not None
        counts, *lists = step.ended
        listed = np.empty(len(counts), object)
        for e, count in enumerate(counts.tolist()):
            listed[e] = lists[name == "ended_bsld"][e, :count].tolist()
        return listed

    def _at_end(self, ends: Ends, key: str, name: str) -> Any:
        """Return such an entry of the episodes that have ended, or that have one."""
        final, number = name.startswith("final"), self._env.num_envs
        which = slice(None) if final else ends.over
        those = ends.those[which].tolist()
        if key != name:
            flags = np.zeros(number, np.bool_)
            flags[those] = True
            return flags
        simulations = self._simulations
        if name == "final_obs":
            assert ends.last is not None
            _, rows, masks = ends.last
            observations = np.full(number, None, object)
            for k, e in enumerate(those):
                observations[e] = simulations.layout.of(rows[k], masks[k])
            return observations
        entries: list[dict[str, Any]] = [
            {**end_of(state)} if over else {}
            for state, over in zip(ends.states, ends.over.tolist(), strict=True)
        ]
        if final:
            assert ends.last is not None
            entries = [{name: info | end} for info, end in zip(ends.last[0], entries, strict=True)]
        else:
            entries = [{name: end[name]} for end in entries if end]
        return self._added(those, entries)[name]


def _later(names: Iterable[str]) -> dict[str, Any]:
    """Return names, and behind each that of its flags, with what stands for their entries."""
    return {each: _LATER for name in names for each in (name, f"_{name}")}
