"""What the single environments share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.envs.core.base import (
    CANDIDATES_KIND,
    PROPOSALS_KIND,
    SHAPES_KIND,
    Definition,
    has_matplotlib,
    read_index,
    read_numbers,
    read_options,
    read_options_of_reset,
    set_signature,
)
from hpcgym.envs.core.checks import may_refuse
from hpcgym.envs.core.infos import (
    counted_of,
    end_of,
    info_of,
    jobs_before,
    metrics_of,
    pay_tails,
    schedule_of,
    state_of,
    weekly_of,
)
from hpcgym.envs.core.logs import Logs, Played
from hpcgym.envs.core.observation import Observation
from hpcgym.envs.core.reward import BSLD, ENERGY, read_reward, space_of_rewards
from hpcgym.envs.core.simulations import Simulations, pass_view
from hpcgym.envs.core.snapshots import Snapshot, check_owner, hidden, restore_row, save_row
from hpcgym.envs.core.spec import ToldBySpec
from hpcgym.errors import installing
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import OF_ENVIRONMENTS
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.limits import Limit
from hpcgym.workload.model import Workload


class StepView(NamedTuple):
    """What a user's own reward function sees of a step; arrays have an entry for each job started.

    Attributes
    ----------
    time_s, elapsed_s : [s] the time now, and since the last decision; where jobs share nodes these
        and ``wait_s`` are float64.
    started : (n,) int64, rows of the episode's jobs that started in the step.
    counts : (n,) bool, which of them count: not those around a slice; ``bsld`` is of these alone.
    wait_s, run_time_s, requested_time_s, processors : (n,) int64, of these jobs; where jobs have
        nodes of their own both times are those at the frequencies at which they run, and processors
        are nodes.
    bsld : sum of their bounded slowdowns.
    energy_j : energy accounted to the step; see the reward "energy".
    queued, free : jobs that wait now, processors that are free now; nodes where jobs have such of
        their own.
    jobs : jobs of the episode that count; of an extract, those that do not run at its beginning.
    """

    time_s: int
    elapsed_s: int
    started: NDArray[np.int64]
    counts: NDArray[np.bool_]
    wait_s: NDArray[np.int64]
    run_time_s: NDArray[np.int64]
    requested_time_s: NDArray[np.int64]
    processors: NDArray[np.int64]
    bsld: float
    energy_j: float
    queued: int
    free: int
    jobs: int


def action_masks(env: SchedulingEnv) -> NDArray[np.bool_]:
    """Return which actions can be done, (n_actions,); the name is sb3-contrib's."""
    mask: NDArray[np.bool_] = env.simulations.out.masks[0].astype(np.bool_)
    return mask


class SchedulingEnv(ToldBySpec, gymnasium.Env[Any, Any]):
    """What the environments share: arguments, episodes, observations, rewards, snapshots.

    The pages of the environments are :class:`hpcgym.envs.JobSelection`,
    :class:`hpcgym.envs.QueueOrdering`, :class:`hpcgym.envs.MixedPolicy`,
    :class:`hpcgym.envs.Backfill`, :class:`hpcgym.envs.Inspector`,
    :class:`hpcgym.envs.PowerCapEnv`, :class:`hpcgym.envs.EnergyBudgetEnv`,
    :class:`hpcgym.envs.CoSchedule` and :class:`hpcgym.envs.Submit`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # as Gymnasium's own are
        # a mode that is listed can be used: others check environments by drawing in each
        "render_modes": ["ansi", "rgb_array"] if has_matplotlib() else ["ansi"],
        "render_fps": 5,
    }
    #: What agents decide: "select", "order", "weights", "backfill", "inspect", "power", "pairs" or
    #: "submit".
    action_kind: ClassVar[str] = ""
    #: What reads the arguments that :meth:`__init__` does not name itself.
    read_arguments: ClassVar[Callable[..., Definition]]
    #: What is usual there, in place of what the functions below say.
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    #: What reads in turn those that these do not name.
    passes_on: ClassVar[tuple[Callable[..., Any], ...]] = (read_options,)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        set_signature(cls, SchedulingEnv)

    def __init__(
        self,
        workload: Any = None,
        *,
        stretch: tuple[float, float] | None = None,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            if render_mode == "rgb_array":
                raise gymnasium.error.DependencyNotInstalled(
                    f"render_mode 'rgb_array' needs matplotlib: {installing('report')}"
                )
            known = ", ".join(map(repr, self.metadata["render_modes"]))
            raise gymnasium.error.Error(
                f"render_mode must be None or one of {known}, not {render_mode!r}: no window is"
                " opened, env.render() returns a text or an image to show"
            )
        self.render_mode, self._logs = render_mode, Logs(type(self), workload, stretch, arguments)
        self._take(self._logs.first)  # spaces are those of any
        self.action_space = self._definition.action_space
        self.observation_space = self._definition.layout.space
        if (space := space_of_rewards(self.options.rewards)) is not None:
            self.reward_space, self.reward_dim = space, space.shape[0]
        self._begun = self._over = False

    def _take(self, played: Played) -> None:
        """Play this log from now on."""
        self._definition, self.episodes, _ = played
        self.options = self._definition.options
        vars(self).update(self._definition.attributes)
        vars(self).pop("simulations", None)
        if may_refuse(self._definition, self.episodes):
            self.simulations = self._made()

    @cached_property
    def simulations(self) -> Simulations:
        """The simulations behind it, made when they are first asked for, as by a reset."""
        return self._made()

    def _made(self) -> Simulations:
        return Simulations([(self._definition, self.episodes)], 1)

    # -- Gymnasium ---------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: one drawn at random, or that of the options.

        Parameters
        ----------
        seed : of the drawing of this and all later episodes.
        options : ``{"slice": name}`` or ``{"start": row, "jobs": n}``; see
            :meth:`hpcgym.envs.core.episodes.Episodes.find`.

        Raises
        ------
        HpcgymError : options that name no episode.
        """
        super().reset(seed=seed)
        given = read_options_of_reset(options)
        if self._logs.draws:
            self._begun = False
            self._take(self._logs.draw(self.np_random))
        episode = self.episodes.find(given) if given else self.episodes.draw(self.np_random)
        self.simulations.set_next(0, episode)
        self.simulations.reset(np.zeros(1, np.int64))
        self._begun, self._over = True, False
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Do an action, and simulate to the next decision or the end of the episode.

        Raises
        ------
        HpcgymError : an action of another shape, or with a value that is no number.
        ResetNeeded : the episode has ended, or none has begun.
        """
        simulations = self.simulations
        if not self._begun or self._over:
            why = "the episode has ended" if self._begun else "no episode has begun"
            raise gymnasium.error.ResetNeeded(f"{why}: call reset()")
        before = 0.0
        if self.options.rewards.function is not None:
            before = simulations.seconds(simulations.batch.episode_state["last_time"][0], 0)
        self._set_action(action)
        simulations.step(0)
        ended, truncated = simulations.out.ended.item(0), simulations.out.truncated.item(0)
        info = self._info()
        if ended or truncated:
            self._over = True
            info |= end_of(state_of(simulations, 0))
            pay_tails(simulations, np.ones(1, np.bool_))
        return self._observation(), self._reward(before), ended, truncated, info

    def render(self) -> Any:
        """Return the present state as text or as an image, by ``render_mode``."""
        from hpcgym.envs.render import look, picture_of, text_of  # takes long to import

        if self.render_mode is None:
            gymnasium.logger.warn("render_mode is None: give one to gymnasium.make")
            return None
        view = look(self.simulations, type(self).__name__)
        return text_of(view) if self.render_mode == "ansi" else picture_of(view)

    # -- the state in plain terms ------------------------------------------------------------------

    @property
    def episode_workload(self) -> Workload:
        """The jobs of the present episode, in order of submission."""
        return self.simulations.episode(0)

    @property
    def episode_name(self) -> str:
        """What the present episode is called, as the option ``"slice"`` of :meth:`reset` has it."""
        return self.simulations.names[0]

    @property
    def scheduler_rules(self) -> dict[str, Any]:
        """The rules that :func:`hpcgym.simulate` must be given for the same schedule.

        Of a dispatcher only ``estimate``, ``correction`` and ``allocation``. The machine is
        ``cluster=env.unwrapped.options.cluster``; without it the simulation has a pool of the
        workload's processors. Where the environment has limits, those of the episode are
        ``result().limits``.
        """
        by_rule = self.simulations.kind in (CANDIDATES_KIND, PROPOSALS_KIND, SHAPES_KIND)
        follows = ("policy",) if by_rule else ()
        names = (*OF_ENVIRONMENTS, *follows, *self.simulations.world(0).machines.own_rules)
        return self.options.scheduler.given(names)

    @property
    def limits_of(self) -> Callable[[Workload], tuple[Limit, ...]] | None:
        """What returns the limits of an episode's jobs, by the seconds of their clock; or None."""
        limited = self._definition.limited
        return None if limited is None else limited.limits_of

    @property
    def keeps_selected(self) -> bool:
        """Whether a selected job that does not fit stays selected until it starts."""
        return self.simulations.world(0).told.rules["keeps"] == 1

    @property
    def time(self) -> Any:
        """The time [s], an int; where jobs share nodes a float."""
        return self.simulations.time(0)

    @property
    def free(self) -> int:
        """Number of free processors; of nodes of jobs' own, of parts of nodes that jobs share."""
        return self.simulations.simulation(0).free

    def queued(self) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that wait, in order of submission."""
        return self.simulations.queued(0)

    def submit_times(self) -> NDArray[np.int64]:
        """Return when the episode's jobs were submitted, (n_jobs,) int64 [s].

        That is when the log says, unless ``dependencies`` or ``quota`` say it. Then it is when a
        job came, and what the log says of jobs that have not come yet.
        """
        return self.simulations.jobs(0)["submit"].copy()

    def running(self) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that run, in order of submission.

        With nodes of their own also those that have them, and wait until these are on. Not those
        that others have suspended.
        """
        jobs = self.simulations.jobs(0)
        start = self.simulations.simulation(0).schedule()["start"]
        end = start + jobs["run"]
        runs = (start >= 0) & (end > self.time)
        runs[self.simulations.suspended(0)] = False
        return np.flatnonzero(runs)

    def counted(self) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that count in rewards and :meth:`metrics`.

        They are the jobs of the slice, up to the horizon; not those before and after it, nor those
        that run when an extract begins. So ``result().wait[counted()]`` are the waits that count,
        of the jobs that have started.
        """
        return counted_of(state_of(self.simulations, 0))

    def pass_view(self, rows: NDArray[np.int64] | None = None) -> PassView:
        """Return what a dispatcher may know of the present state.

        Parameters
        ----------
        rows : the rows of the episode's jobs that it sees waiting; by default all that wait.
        """
        return pass_view(self.simulations, 0, self.queued() if rows is None else rows)

    def result(self) -> Result:
        """Return the schedule of the episode so far; jobs that have not started have start -1.

        Up to its end, or while any has not started, its metrics are of the jobs that have ended
        (``result().ended``), and those of the machine are nan.
        """
        return schedule_of(state_of(self.simulations, 0))

    def metrics(self) -> dict[str, float | int]:
        """Return the metrics of the jobs that count, as :func:`hpcgym.simulate` has them.

        Jobs that wait when the episode is over count as if they started then. ``unserved_jobs``
        (waiting then) and ``longest_wait_s`` are of earlier jobs too, and ``utilization`` is of all
        jobs up to the last start that counts or the horizon. What has no value is nan.

        Raises
        ------
        HpcgymError : the episode is not over.
        """
        return metrics_of(state_of(self.simulations, 0))

    def weekly(self) -> NDArray[np.float64]:
        """Return sums over the jobs that count of each week of the log, (n_weeks, 3) float64.

        They are the number of the jobs, their bounded slowdowns, and their waits [h]; see
        :func:`hpcgym.schedule.measures.weekly_sums`. The weeks before the episode have none. Before
        the episode is over they are of the jobs that have ended; then who waits counts as in
        :meth:`metrics`.
        """
        return weekly_of(state_of(self.simulations, 0))

    # -- look-ahead --------------------------------------------------------------------------------

    def snapshot(self, hide: bool = False) -> Snapshot:
        """Return a copy of the whole state, to be restored as often as wanted.

        Parameters
        ----------
        hide : replace what an online scheduler cannot know: once restored, each job that has not
            ended runs for its predicted time, at most the requested one, and no further job is
            submitted.
        """
        if not self._begun:
            raise gymnasium.error.ResetNeeded("there is nothing to save yet: call reset()")
        saved = save_row(self.simulations, 0, self.np_random)
        return hidden(self.simulations, 0, saved) if hide else saved

    def restore(self, snapshot: Snapshot) -> tuple[Observation, dict[str, Any]]:
        """Go back to a snapshot of this environment; return its observation and info.

        Raises
        ------
        HpcgymError : a snapshot of another environment.
        """
        check_owner(self.simulations, 0, snapshot)
        restore_row(self.simulations, 0, snapshot)
        self.np_random.bit_generator.state = snapshot.generator
        self.simulations.show(0)
        self._begun = True
        self._over = bool(self.simulations.batch.episode_state["ended"][0])
        return self._observation(), self._info()

    # -- parts -------------------------------------------------------------------------------------

    def _set_action(self, action: Any) -> None:
        space, simulations = self._definition.action_space, self.simulations
        if isinstance(space, spaces.Discrete):
            simulations.chosen[0] = read_index(action, int(space.n))
        else:
            numbers = read_numbers("action", action, space.shape)
            simulations.numbers[0] = self._definition.numbers(numbers)

    def _observation(self) -> Observation:
        out = self.simulations.out
        return self.simulations.layout.of(out.observations[0].copy(), out.masks[0].copy())

    def _info(self) -> dict[str, Any]:
        return info_of(self.simulations, 0)

    def _reward(self, before: float) -> Any:
        if self.options.rewards.function is not None:
            if self.simulations.batch.episode_state["unasked"][0]:
                return 0.0
            return read_reward(self.options.rewards.function(self._view(before)))
        rewards = self.simulations.out.rewards
        return rewards.item(0) if len(self.options.rewards.weights) == 1 else rewards[0].copy()

    def _view(self, before: float) -> StepView:
        """Return what a reward function sees."""
        simulations, batch = self.simulations, self.simulations.batch
        now, starts = batch.episode_state[0], simulations.simulation(0).schedule()["start"]
        first, last = now["counts_first"], now["counting"]
        own = simulations.counts(0)
        counts = np.ones(len(starts), np.bool_) if own is None else own.copy()
        counts[:first] = counts[last:] = False
        started = batch.new[0, : now["fresh"]].copy()
        jobs, start = simulations.jobs(0)[started], starts[started]
        return StepView(
            time_s=self.time,
            elapsed_s=self.time - before,
            started=started,
            counts=counts[started] & (start >= now["begin"]),
            wait_s=start - jobs["submit"],
            run_time_s=jobs["run"],
            requested_time_s=jobs["requested"],
            processors=jobs["processors"],
            bsld=float(batch.terms[0, BSLD]),
            energy_j=float(batch.terms[0, ENERGY]),
            queued=simulations.waiting(0),
            free=self.free,
            jobs=int(counts.sum()) - jobs_before(starts[counts], now),
        )
