"""What the vector environments share: many simulations advanced by one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hpcgym.envs.core.base import (
    Definition,
    read_indices,
    read_numbers,
    read_options_of_reset,
    set_signature,
)
from hpcgym.envs.core.checks import may_refuse
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.infos import (
    Ends,
    Teller,
    counted_of,
    metrics_of,
    not_over,
    pay_tails,
    schedule_of,
    state_of,
    weekly_of,
)
from hpcgym.envs.core.logs import Logs, Played, is_weighted
from hpcgym.envs.core.machines import ScheduleState
from hpcgym.envs.core.model import World
from hpcgym.envs.core.observation import Observation
from hpcgym.envs.core.reward import space_of_rewards
from hpcgym.envs.core.simulations import Simulations
from hpcgym.envs.core.slices import Episode
from hpcgym.envs.core.snapshots import Snapshot, check_owner, hidden, restore_row, save_row
from hpcgym.envs.core.spec import ToldBySpec
from hpcgym.envs.single import SchedulingEnv
from hpcgym.errors import HpcgymError, check_whole, unknown
from hpcgym.processors import threads_here
from hpcgym.schedule.result import Result

MANY = 32  # environments are worth more than one thread


class Ahead(NamedTuple):
    """The episode that an environment draws next, drawn ahead.

    Attributes
    ----------
    world : of its log, if that was drawn; ``state``: of the generator when it was.
    """

    episode: Episode
    world: World | None = None
    state: Any = None


class VectorSnapshot(NamedTuple):
    """The state of a vector environment; all are copies."""

    rows: list[Snapshot]
    generators: list[Any]
    ahead: list[Ahead | None]
    done: NDArray[np.bool_]
    steps: NDArray[np.int64]
    ends: bool


def action_masks(envs: SchedulingVectorEnv) -> NDArray[np.bool_]:
    """Return which actions can be done, (num_envs, n_actions)."""
    masks: NDArray[np.bool_] = envs.simulations.out.masks.astype(np.bool_)
    return masks


class SchedulingVectorEnv(ToldBySpec, VectorEnv[Any, Any, Any]):
    """What the vector environments share; all simulations lie in the same arrays.

    Environment i, seeded with s, goes through the same states as a single one seeded with s.

    Parameters
    ----------
    num_envs : number of environments.
    workload : as that of the single environment; or a list of such without weights, of which
        environment i has number i mod their number, for good. Each has its own machine, episodes
        and references.
    stretch : as that of the single environment.
    autoreset_mode : "NextStep" (the default), "SameStep" or "Disabled"; Gymnasium's AutoresetMode.
    copy : whether observations may be kept: steps write into no array that anybody has. Without
        copies they are views of buffers that the next step overwrites, and nobody else may write
        into them.
    max_episode_steps : after that many steps an episode is truncated; None: never.
    threads : that step the environments, at most; None: one for fewer than 32 environments, else as
        many as OMP_NUM_THREADS or the machine's cores say. Steps take turns with one thread and
        with several, now and then, and several are used where they are faster: on a machine that
        is busy with other things they are not.
    other arguments : as those of the single environment.

    Attributes
    ----------
    options, episodes : those of the first log; of environment i ``simulations.world(i)`` has its
        own, ``.definition.options`` and ``.episodes``, of the episode that it is in.
    ends : what is kept of the episodes that ended in the last step; None where none did.

    Examples
    --------
    >>> logs = ["lublin:jobs=2000,processors=64", "lublin:jobs=2000,processors=256,load=0.7"]
    >>> envs = gymnasium.make_vec("hpcgym/JobSelection-v2", num_envs=4, workload=logs)
    >>> observations, info = envs.reset(seed=0)
    >>> [envs.unwrapped.result(i).cluster.processors for i in range(4)]
    [64, 256, 64, 256]
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # as Gymnasium's own are
    action_kind: ClassVar[str] = ""
    #: The class of one of them; it says what an action is, and reads its arguments.
    single: ClassVar[type[SchedulingEnv]]
    #: What reads the arguments that :meth:`__init__` does not name itself.
    read_arguments: ClassVar[Callable[..., Definition]]
    passes_on: ClassVar[tuple[Callable[..., Any], ...]]
    usual: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "single" in vars(cls):
            for name in ("action_kind", "read_arguments", "passes_on", "usual"):
                setattr(cls, name, getattr(cls.single, name))
        set_signature(cls, SchedulingVectorEnv)

    def __init__(
        self,
        num_envs: int = 1,
        workload: Any = None,
        *,
        stretch: tuple[float, float] | None = None,
        autoreset_mode: Any = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        max_episode_steps: int | None = None,
        threads: int | None = None,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        check_whole("num_envs", num_envs, 1)
        if max_episode_steps is not None:
            check_whole("max_episode_steps", max_episode_steps, 1)
        if not isinstance(copy, bool):
            raise HpcgymError(f"copy must be True or False, not {copy!r}")
        most = threads_here()
        if threads is not None and not (isinstance(threads, int) and 1 <= threads <= most):
            raise HpcgymError(f"threads must be from 1 to {most}, not {threads!r}")
        # the threads of a few environments wait for one another longer than they work
        self.threads = threads or (most if num_envs >= MANY else 1)
        if render_mode is not None:
            raise gymnasium.error.Error(
                "render_mode: vector environments are not rendered; render a single one"
            )
        # some look for it here, some there
        self.autoreset_mode = mode = _autoreset(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.num_envs, self.copy, self.max_episode_steps = num_envs, copy, max_episode_steps
        several = isinstance(workload, list | tuple) and not is_weighted(workload)
        logs = workload if several else [workload]
        if not logs:
            raise HpcgymError("workload: the list has no log")
        if len(logs) > num_envs:
            raise HpcgymError(
                f"num_envs must be at least {len(logs)}, as many as workload has logs, not"
                f" {num_envs}: each environment plays one"
            )
        if len(logs) > 1 and any(log is None for log in logs):
            raise HpcgymError(
                "workload: None, which stands for the usual one, is not for lists: name each log"
            )
        self._logs = [Logs(type(self), log, stretch, arguments) for log in logs]
        self._defined = [each.first[:2] for each in self._logs]
        self._definition, self.episodes = self._defined[0]
        self.options = self._definition.options
        if self.options.rewards.function is not None:
            raise HpcgymError(
                "reward: vector environments take names and weights; functions need "
                "vectorization_mode='sync'"
            )
        if (space := space_of_rewards(self.options.rewards)) is not None:
            self.reward_space, self.reward_dim = space, space.shape[0]
        draws = any(each.draws for each in self._logs)
        if (len(logs) > 1 or draws) and self._definition.units is not None:
            own = [definition.units for definition, _ in self._defined]
            units = np.stack([own[e % len(own)] for e in range(num_envs)])
            attributes = {**self._definition.attributes, "units": units}
            self._definition = self._definition._replace(units=units, attributes=attributes)
        vars(self).update(self._definition.attributes)
        self.single_observation_space = self._definition.layout.space
        self.single_action_space = self._definition.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.ends: Ends | None = None
        self._generators = [np.random.default_rng() for _ in range(num_envs)]
        self._steps = np.zeros(num_envs, np.int64)
        self._done, self._nobody = np.ones(num_envs, np.bool_), np.zeros(num_envs, np.bool_)
        self._worlds: dict[Episodes, World] = {}  # of logs that may be drawn again
        self._begun = False  # whether all environments have begun an episode
        self._resets_next = False  # whether an episode ended in the last step
        # what each environment draws next is drawn ahead: steps begin it by themselves
        self._ahead: list[Ahead | None] = [None] * num_envs
        if any(may_refuse(*pair) for pair in self._defined):
            self.simulations = self._made()

    @cached_property
    def simulations(self) -> Simulations:
        """The simulations of all, made when they are first asked for, as by a reset."""
        return self._made()

    def _made(self) -> Simulations:
        return Simulations(
            self._defined,
            self.num_envs,
            autoreset=self.autoreset_mode == AutoresetMode.NEXT_STEP,
            copy=self.copy,
        )

    @cached_property
    def _teller(self) -> Teller:
        return Teller(self, self.simulations)

    # -- Gymnasium ---------------------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in all environments, or in those of ``options["reset_mask"]``.

        Parameters
        ----------
        seed : a number, to which environment i adds i, or one for each environment.
        options : as those of the single environment, for all; and "reset_mask", (num_envs,) bool.
        """
        given = dict(read_options_of_reset(options))
        mask = np.asarray(given.pop("reset_mask", np.ones(self.num_envs, np.bool_)))
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise HpcgymError(f"reset_mask must be {self.num_envs} truth values")
        seeds = _seeds(seed, self.num_envs)
        those = np.flatnonzero(mask)
        of_same = [e for e in those.tolist() if not self._logs_of(e).draws]
        asked = {e: Ahead(self._episodes(e).find(given)) for e in of_same} if given else {}
        for e in those.tolist():
            if seeds[e] is not None:
                self._generators[e] = gymnasium.utils.seeding.np_random(seeds[e])[0]
                self._ahead[e] = None
            if given:
                self._set_next(e, asked[e] if e in asked else self._find(e, given))
            else:
                self._set_next(e, self._next(e))
                self._ahead[e] = None
        self.simulations.tell_anew()  # who has seen the last step may write into it
        self.ends = None
        self._begin(those)
        begun = self.simulations.batch.episode_state["jobs"] > 0
        for e in np.flatnonzero(begun & ~mask).tolist():
            self.simulations.show(e)
        self._done = self._done & ~mask  # the last step has returned this array
        self._begun = bool(begun.all())
        return self._observations(), self._teller.of_some(those.tolist())

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Do one action in each environment.

        Rewards are (num_envs,), and of a list of rewards (num_envs, n_rewards).

        Raises
        ------
        HpcgymError : actions of another shape, or with a value that is no number.
        ResetNeeded : no episode has begun, or one has ended and environments do not reset
            themselves.
        """
        simulations, mode = self.simulations, self.autoreset_mode
        if not self._begun:
            raise gymnasium.error.ResetNeeded("some environment has no episode: call reset()")
        if mode == AutoresetMode.DISABLED and self._done.any():
            raise gymnasium.error.ResetNeeded("episodes have ended: call reset() with a reset_mask")
        self._set_actions(actions)
        ends = simulations.step_all(self.threads)
        out = simulations.out
        terminated, truncated = out.ended, out.truncated
        over = done = terminated | truncated if ends else self._nobody
        if self.max_episode_steps is not None:
            truncated = truncated | self._truncate(self.max_episode_steps)
            done = terminated | truncated
            ends = bool(np.count_nonzero(done))
        if ends:
            pay_tails(simulations, over)
        same_step = mode == AutoresetMode.SAME_STEP
        self.ends = self._teller.keep(done, over, same_step) if ends else None
        if self.ends is not None and same_step:
            for e in self.ends.those.tolist():
                self._ahead[e] = None  # the next one is set already
            self._begin(self.ends.those)
        elif self._resets_next and mode == AutoresetMode.NEXT_STEP:
            self._note_resets()
        info = self._teller.of_step(self.ends)
        self._done, self._resets_next = done, ends
        return self._observations(), simulations.lent.rewards, terminated, truncated, info

    def _note_resets(self) -> None:
        """Draw the next episodes of the environments that have just begun one."""
        simulations = self.simulations
        for e in np.flatnonzero(simulations.batch.episode_state["resets"]).tolist():
            simulations.began(e)
            self._begun_in(e)
            self._ahead[e] = None
            self._set_next(e, self._next(e))
            self._steps[e] = 0

    # -- what they did -----------------------------------------------------------------------------

    def result(self, i: int) -> Result:
        """Return the schedule of environment i, as that of a single one does.

        After a step that has ended its episode it is that of this episode, in each autoreset mode,
        up to the next step or reset. Its metrics are of all its jobs, also of those around the
        slice that do not count in :meth:`metrics`; while any has not started, of those that have
        ended.

        Parameters
        ----------
        i : its number, from 0.

        Raises
        ------
        HpcgymError : there is no such environment.
        ResetNeeded : it has no episode.
        """
        return schedule_of(self._state(i))

    def counted(self, i: int) -> NDArray[np.int64]:
        """Return the rows of the jobs of environment i that count, of the episode of its result.

        See :meth:`hpcgym.envs.SchedulingEnv.counted`.
        """
        return counted_of(self._state(i))

    def metrics(self, i: int) -> dict[str, float | int]:
        """Return the metrics of environment i, of the same episode as :meth:`result`.

        See :meth:`hpcgym.envs.SchedulingEnv.metrics`: an episode that ``max_episode_steps`` has cut
        is not over.
        """
        state, ends = self._state(i), self.ends
        if ends is not None and i in ends.those[~ends.over]:
            raise not_over()
        return metrics_of(state)

    def episode_name(self, i: int) -> str:
        """Return what the episode is called that environment i tells of, as :meth:`result` does."""
        return self._state(i).name

    def weekly(self, i: int) -> NDArray[np.float64]:
        """Return the weekly sums of environment i, of the same episode as :meth:`result`.

        See :meth:`hpcgym.envs.SchedulingEnv.weekly`.
        """
        return weekly_of(self._state(i))

    def _state(self, i: int) -> ScheduleState:
        """Return what the schedule is made of that environment i tells of."""
        if check_whole("i", i, 0) >= self.num_envs:
            raise HpcgymError(f"i must be below {self.num_envs}, the number of environments: {i}")
        if self.simulations.batch.episode_state["jobs"][i] == 0:
            raise gymnasium.error.ResetNeeded(f"environment {i} has no episode: call reset()")
        if self.ends is not None and i in self.ends.those:
            place: int = self.ends.those.tolist().index(i)
            return self.ends.states[place]
        return state_of(self.simulations, i)

    # -- look-ahead --------------------------------------------------------------------------------

    def snapshot(self, hide: bool = False) -> VectorSnapshot:
        """Return a copy of the whole state, to be restored as often as wanted.

        Parameters
        ----------
        hide : as that of the single environment; episodes begun later hide nothing.
        """
        if not self._begun:
            raise gymnasium.error.ResetNeeded("some environment has no episode: call reset()")
        rows = [save_row(self.simulations, e) for e in range(self.num_envs)]
        if hide:
            rows = [hidden(self.simulations, e, row) for e, row in enumerate(rows)]
        generators = [generator.bit_generator.state for generator in self._generators]
        ends = self._done.copy(), self._steps.copy(), self._resets_next
        return VectorSnapshot(rows, generators, list(self._ahead), *ends)

    def restore(self, snapshot: VectorSnapshot) -> tuple[Any, dict[str, Any]]:
        """Go back to a snapshot of this environment; return its observations and info."""
        if not isinstance(snapshot, VectorSnapshot):
            raise HpcgymError(f"snapshot must be what snapshot() returned, not {type(snapshot)}")
        if len(snapshot.rows) != self.num_envs:
            raise HpcgymError(
                f"snapshot: it is of {len(snapshot.rows)} environments, not of {self.num_envs}"
            )
        for e, row in enumerate(snapshot.rows):
            check_owner(self.simulations, e, row)
        self.simulations.tell_anew()
        for e, row in enumerate(snapshot.rows):
            restore_row(self.simulations, e, row)
            self.simulations.show(e)
            self._generators[e].bit_generator.state = snapshot.generators[e]
            self._begun_in(e)
            self._ahead[e] = snapshot.ahead[e]
            if self._ahead[e] is not None:
                self._set_next(e, self._next(e))
        self._begun = True
        self._done, self._steps = snapshot.done.copy(), snapshot.steps.copy()
        self._resets_next, self.ends = snapshot.ends, None
        return self._observations(), self._teller.of_some(list(range(self.num_envs)))

    # -- parts -------------------------------------------------------------------------------------

    def _set_actions(self, actions: Any) -> None:
        space, simulations = self._definition.action_space, self.simulations
        if isinstance(space, spaces.Discrete):
            if not simulations.choose(read_indices(actions, self.num_envs), int(space.n)):
                raise HpcgymError(f"actions must be indices from 0 to {space.n - 1}")
        else:
            numbers = read_numbers("actions", actions, (self.num_envs, *space.shape))
            simulations.numbers[:] = self._definition.numbers(numbers)

    def _begin(self, those: NDArray[np.int64]) -> None:
        """Begin the episodes that are set in some environments, and draw those that follow."""
        self.simulations.reset(those)
        for e in those.tolist():
            self._begun_in(e)
            self._set_next(e, self._next(e))
        self._steps[those] = 0

    def _logs_of(self, e: int) -> Logs:
        return self._logs[e % len(self._logs)]

    def _episodes(self, e: int) -> Episodes:
        return self._defined[e % len(self._defined)][1]

    def _next(self, e: int) -> Ahead:
        """Return what environment ``e`` draws next."""
        ahead = self._ahead[e]
        if ahead is None:
            ahead = self._ahead[e] = self._drawn(e)
        return ahead

    def _drawn(self, e: int) -> Ahead:
        rng, logs = self._generators[e], self._logs_of(e)
        if not logs.draws:
            return Ahead(self._episodes(e).draw(rng))
        world = self._world_of(logs.draw(rng))
        state = rng.bit_generator.state
        return Ahead(world.episodes.draw(rng), world, state)

    def _find(self, e: int, options: Mapping[str, Any]) -> Ahead:
        """Return the episode of a log that is drawn which the options of a reset ask for.

        As in a single environment no episode is drawn: the generator goes back to the log's.
        """
        ahead = self._next(e)
        assert ahead.world is not None
        asked = ahead._replace(episode=ahead.world.episodes.find(options))
        self._generators[e].bit_generator.state = ahead.state
        self._ahead[e] = None
        return asked

    def _world_of(self, played: Played) -> World:
        """Return what simulations share of a log that was drawn; once, if it may come again."""
        if not played.stays:
            return self.simulations.world_of(*played[:2])
        if played.episodes not in self._worlds:
            self._worlds[played.episodes] = self.simulations.world_of(*played[:2])
        return self._worlds[played.episodes]

    def _set_next(self, e: int, ahead: Ahead) -> None:
        self.simulations.set_next(e, ahead.episode, ahead.world)

    def _begun_in(self, e: int) -> None:
        """Take actions of environment ``e`` in the units of the log that it plays."""
        units = self.simulations.world(e).definition.units
        if self._logs_of(e).draws and units is not None:
            self._definition.units[e] = units

    def _observations(self) -> Observation:
        return self.simulations.lent.observation()

    def _truncate(self, most: int) -> NDArray[np.bool_]:
        """Return which episodes have had so many steps, and end them."""
        states = self.simulations.batch.episode_state
        # the step that begins an episode does not count
        self._steps = np.where(states["resets"] == 1, 0, self._steps + 1)
        truncated: NDArray[np.bool_] = self._steps >= most
        states["ended"][truncated] = 1
        return truncated


def _autoreset(mode: Any) -> AutoresetMode:
    """Return a mode of resetting, given as such or by its name."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = [each.value for each in AutoresetMode]
        raise HpcgymError(unknown("autoreset_mode", mode, names)) from None


def _seeds(seed: Any, number: int) -> list[int | None]:
    """Return a seed for each environment."""
    if seed is None:
        return [None] * number
    if _is_seed(seed):
        return [int(seed) + e for e in range(number)]
    seeds = list(seed) if isinstance(seed, Iterable) else [seed]
    if len(seeds) != number or not all(value is None or _is_seed(value) for value in seeds):
        raise HpcgymError(f"seed must be a whole number, or {number} of them, not {seed!r}")
    return [None if value is None else int(value) for value in seeds]


def _is_seed(seed: Any) -> bool:
    return isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
