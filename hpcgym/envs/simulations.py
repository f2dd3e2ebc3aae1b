"""The simulations behind an environment: the arrays, and the calls that advance them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numba import get_num_threads, set_num_threads
from numpy.typing import NDArray

from hpcgym.compilation import compiling
from hpcgym.engine import online, state
from hpcgym.engine.node_rows import CHANGING, Rooms, row_of
from hpcgym.envs import kernel
from hpcgym.envs.episodes import Episode, Episodes
from hpcgym.envs.layout import Layout
from hpcgym.envs.observe import OWN
from hpcgym.envs.options import WINDOW_FEATURES, Options
from hpcgym.errors import HpcgymError
from hpcgym.node_simulation import (
    allocation_of,
    assign_nodes,
    needs_on,
    node_needs,
    rooms_for,
)
from hpcgym.policy.features import JobColumns
from hpcgym.prediction.estimates import predicted_run_times
from hpcgym.prediction.learning import (
    asks_for_predictions,
    average_in_kernel,
    learner_rows,
    learning_rules,
    make_estimators,
    make_learner,
)
from hpcgym.preparation import (
    check_jobs,
    engine_rules,
    job_records,
    numbered,
    orders,
    power_rules,
)
from hpcgym.result import Allocation, Result
from hpcgym.scheduler import Scheduler
from hpcgym.simulation import idle_processor_seconds
from hpcgym.weighing import weighed
from hpcgym.workload.model import Workload

_INTERVALS = {
    "pass": kernel.PASSES_INTERVAL,
    "seconds": kernel.SECONDS_INTERVAL,
    "submissions": kernel.SUBMISSIONS_INTERVAL,
    "episode": kernel.EPISODE_INTERVAL,
}


class Simulations:
    """Simulations of episodes of one workload, advanced from decision to decision.

    Parameters
    ----------
    options : the arguments of the environment.
    episodes : where episodes come from.
    number : of simulations.
    kind : SELECTION_KIND, ORDERING_KIND or WEIGHTS_KIND of :mod:`hpcgym.envs.kernel`.
    keeps : whether a selected job that does not fit stays selected.
    shutdown_action : whether an action may be to switch idle processors off.
    features, interval : of MixedPolicy: its features, and what weights hold for.
    autoreset : NO_RESET, NEXT_STEP or SAME_STEP.

    Attributes
    ----------
    batch, out : the arrays; see :mod:`hpcgym.envs.kernel`.
    table, whole : the jobs, and what else simulations share: with what a restored snapshot has
        made of it, and as it was at first.
    layout : of the observations in ``out.observations``.
    """

    def __init__(
        self,
        options: Options,
        episodes: Episodes,
        number: int,
        kind: int,
        *,
        keeps: bool = False,
        shutdown_action: bool = False,
        features: tuple[str, ...] = (),
        interval: tuple[str, int] = ("pass", 0),
        autoreset: int = kernel.NO_RESET,
    ) -> None:
        self.options, self.episodes, self.kind = options, episodes, kind
        self.layout = Layout(options.window, len(options.names), options.flat)
        self.names = [""] * number
        self._next_names = [""] * number
        self.shown: dict[int, Any] = {}  # what expert_view keeps of present episodes
        workload = episodes.workload
        given = [
            rule
            for rule in ("estimate", "policy_estimate")
            if not isinstance(getattr(options.scheduler, rule), str)
        ]
        if given and workload is not options.workload:
            raise HpcgymError(
                f"{given[0]}: predictions of one's own are for all jobs of the workload, and "
                f"episodes={episodes.kind!r} leave some out; use 'windows' or 'whole'"
            )
        needs = node_needs(options.cluster, workload, options.scheduler)
        check_jobs(workload, options.cluster.processors)
        asks = _asks(kind, interval[0])
        scheduler = options.scheduler
        if shutdown_action and options.cluster.groups:
            raise HpcgymError("shutdown_action is for pools of processors, not for nodes")
        rules = [asks, int(keeps), *power_rules(options.cluster, scheduler, shutdown_action)]
        on_nodes = needs is not None
        rules += learning_rules(scheduler, asks_for_predictions(scheduler), on_nodes)
        common = _common(options, workload)
        first = _empty_machine(options, episodes.longest, kind, rules, common)
        settings = np.zeros(kernel.N_SETTINGS, np.int64)
        settings[kernel.BY_ACTION] = shutdown_action
        settings[kernel.KIND] = kind
        settings[kernel.INTERVAL] = _INTERVALS[interval[0]]
        settings[kernel.INTERVAL_LENGTH] = interval[1]
        settings[kernel.PROCESSORS] = options.cluster.processors
        settings[kernel.AUTORESET] = autoreset
        settings[kernel.CLOCK] = _clock(workload)
        self.whole = self.table = _table(
            options, workload, episodes.longest, features, settings, first, common
        )
        scored = kind != kernel.SELECTION_KIND or len(self.table.second_scores) > 0
        learner = make_learner(scheduler, episodes.longest, common.n_users, self.table.classes)
        self.rooms: Rooms | None = None
        if needs is not None:
            self.rooms = rooms_for(needs, options.cluster, scheduler, number, episodes.longest)
        self.batch = _batch(options, episodes.longest, number, first, scored, learner)
        same_step = autoreset == kernel.SAME_STEP
        size = self.layout.size
        self.out = kernel.Outputs(
            observations=np.zeros((number, size), np.float32),
            masks=np.zeros((number, options.window + shutdown_action), np.int8),
            rewards=np.zeros((number, len(options.weights))),
            ended=np.zeros(number, np.bool_),
            final=np.zeros((number, size) if same_step else (0, 0), np.float32),
            totals=np.zeros((number, kernel.N_TERMS)),
            lengths=np.zeros(number, np.int64),
        )
        width = max(options.window if kind == kernel.ORDERING_KIND else len(features), 1)
        self.chosen = np.zeros(number, np.int64)
        self.numbers = np.zeros((number, width))

    @property
    def nbytes(self) -> int:
        """Memory of the simulations [bytes], without the table that they share."""
        arrays = (*self.changing, *self.out, self.chosen, self.numbers)
        return sum(array.nbytes for array in arrays)

    @property
    def changing(self) -> tuple[NDArray[Any], ...]:
        """All arrays with a row for each simulation."""
        if self.rooms is None:
            return tuple(self.batch)
        return (*self.batch, *(getattr(self.rooms, name) for name in CHANGING))

    @cached_property
    def fingerprint(self) -> tuple[int, ...]:
        """Numbers that differ where jobs, their users as far as they matter, or rules do."""
        table = self.whole
        rules: tuple[NDArray[Any], ...] = (
            *(table.settings, table.sim, table.watts, table.places, table.waiting, table.codes),
            *(table.kinds, table.last, table.loss, table.chosen, table.predicted, table.ordered_by),
            *(table.looks, table.users, table.classes, table.keys, table.second_scores),
        )
        if self.rooms is not None:
            rules += (self.rooms.needs, self.rooms.capacity, self.rooms.begin)
        sizes = [size for array in self.changing for size in array.shape[1:]]
        return (crc32(table.jobs.tobytes()), *(crc32(array.tobytes()) for array in rules), *sizes)

    def set_next(self, e: int, episode: Episode) -> None:
        """Say which episode simulation ``e`` is to begin next."""
        self._next_names[e] = episode.name
        self.batch.place[e, kernel.NEXT_START] = episode.start
        self.batch.place[e, kernel.NEXT_JOBS] = episode.stop - episode.start

    def reset(self, e: int) -> None:
        """Begin the next episode of simulation ``e``."""
        with compiling(kernel.reset_one):
            kernel.reset_one(e, self.table, self.batch, self.rooms, self.out)
        self.began(e)

    def began(self, e: int) -> None:
        """Note that simulation ``e`` has begun the episode that was to come next."""
        self.names[e] = self._next_names[e]

    def step(self, e: int) -> None:
        """Do the action of simulation ``e`` that stands in ``chosen`` or ``numbers``."""
        actions = self.chosen, self.numbers
        kernel.step_one(e, self.table, self.batch, self.rooms, *actions, self.out)

    def step_all(self, threads: int | None = None) -> None:
        """Do the actions of all simulations, on that many threads of numba's, or on all."""
        before = get_num_threads()
        if threads is not None and threads != before:
            set_num_threads(threads)
        actions = self.chosen, self.numbers
        if self.rooms is None:
            kernel.step_all(self.table, self.batch, *actions, self.out)
        else:
            kernel.step_all_on_nodes(self.table, self.batch, self.rooms, *actions, self.out)
        if threads is not None and threads != before:
            set_num_threads(before)

    def visible(self, e: int) -> NDArray[np.int64]:
        """Return the rows of the episode that are in the window, -1 behind them; a new array."""
        rows: NDArray[np.int64] = self.batch.window[e].copy()
        rows[self.batch.place[e, kernel.VISIBLE] :] = -1
        return rows

    def episode(self, e: int) -> Workload:
        """Return the jobs of the present episode of simulation ``e``.

        After a snapshot that hides the future they run for the predicted times, and nothing is
        said of jobs that were killed.
        """
        workload = self.episodes.workload_of(self.present(e))
        if not self.hides(e):
            return workload
        first, n = self.rows(e)
        run_time = self.table.jobs["run"][first : first + n].copy()
        nobody = np.zeros(n, np.bool_)
        return replace(workload, columns={**workload.columns, "run_time": run_time}, killed=nobody)

    def present(self, e: int) -> Episode:
        """Return which episode simulation ``e`` is in."""
        place = self.batch.place[e]
        start, n = int(place[kernel.ORIGIN]), int(place[kernel.JOBS])
        return Episode(self.names[e], start, start + n)

    def hides(self, e: int) -> bool:
        """Return whether simulation ``e`` goes on from a snapshot that hides the future."""
        rows = len(self.whole.jobs)
        if self.table is self.whole:
            return False
        return len(self.table.jobs) <= rows or self.rows(e)[0] >= rows

    def rows(self, e: int) -> tuple[int, int]:
        """Return the first row of the episode of simulation ``e``, and how many it has."""
        place = self.batch.place[e]
        return int(place[kernel.START]), int(place[kernel.JOBS])

    def result(self, e: int, scheduler: Scheduler) -> Result:
        """Return the schedule of simulation ``e`` so far; jobs not started have start -1.

        Where run times are learned, the requested ones stand for jobs not submitted yet.
        """
        start, n = self.rows(e)
        progress = self.batch.progress[e, :n].copy()
        jobs = self.table.jobs[start : start + n].copy()
        idle_seconds = None
        if self.table.sim[state.MANAGED]:
            idle_seconds = idle_processor_seconds(
                self.batch.sim[e].copy(), self.batch.idle[e].copy()
            )
        cluster = self.options.cluster
        result = Result.of(self.episode(e), cluster, scheduler, jobs, progress, idle_seconds, True)
        allocation = self._allocation(e, jobs, progress) if cluster.groups else None
        policy_run_time = self._policy_run_time(e, jobs)
        return replace(result, policy_run_time=policy_run_time, allocation=allocation)

    def _allocation(self, e: int, jobs: NDArray[np.void], progress: NDArray[np.void]) -> Allocation:
        """Return the nodes of the jobs of simulation ``e`` that have started."""
        if self.rooms is not None:
            start, n = self.rows(e)
            return allocation_of(row_of(self.rooms, e, start, start + n))
        needs = needs_on(self.episode(e), self.options.cluster)
        cluster, scheduler = self.options.cluster, self.options.scheduler
        return allocation_of(assign_nodes(jobs, progress, needs, cluster, scheduler))

    def _policy_run_time(self, e: int, jobs: NDArray[np.void]) -> NDArray[np.int64] | None:
        """Return what policies looked at in simulation ``e`` if it was learned, (n_jobs,) [s]."""
        if not self.batch.ordered_by.size:
            return None
        learned = self.batch.ordered_by[e, : len(jobs)].copy()
        coming = int(self.batch.sim[e, state.NEXT])
        learned[coming:] = jobs["requested"][coming:]  # else those of an earlier episode
        learned.flags.writeable = False
        return learned


def _asks(kind: int, interval: str) -> int:
    """Return when the kernel asks."""
    if kind == kernel.SELECTION_KIND:
        return state.EACH_JOB
    if kind == kernel.ORDERING_KIND or interval == "pass":
        return state.EACH_PASS
    return state.NOBODY


class _Common(NamedTuple):
    """What both the empty machine and the table are made of."""

    jobs: NDArray[np.void]
    predicted: NDArray[np.int64] | None  # None where it becomes known at submission
    ordered_by: NDArray[np.int64] | None  # the same of what policies look at
    users: NDArray[np.int64]
    n_users: int
    secondary: int
    keys: NDArray[np.int64]
    scores: NDArray[np.void]


def _common(options: Options, workload: Workload) -> _Common:
    """Return the jobs, their predictions and users, and the order of backfilling."""
    jobs = job_records(workload)
    scheduler = options.scheduler
    predicted = predicted_run_times(scheduler.estimate, jobs["run"], workload)
    ordered_by = predicted_run_times(
        scheduler.policy_estimate, jobs["run"], workload, "policy_estimate"
    )
    users, n_users = np.zeros(0, np.int64), 0
    if average_in_kernel(scheduler) or asks_for_predictions(scheduler):
        users, n_users = numbered(workload.user_id)
    _, secondary, keys, scores = orders(workload, scheduler)
    return _Common(jobs, predicted, ordered_by, users, n_users, secondary, keys, scores)


def _empty_machine(
    options: Options, longest: int, kind: int, more_rules: list[int], common: _Common
) -> state.State:
    """Return the state before the first submission, with room for the longest episode."""
    primary = state.SELECTION if kind == kernel.SELECTION_KIND else state.SCORED
    processors, last = options.cluster.processors, average_in_kernel(options.scheduler)
    rules = engine_rules(
        options.scheduler, primary, common.secondary, common.predicted, common.jobs["run"], last
    )
    return state.make_state(rules + more_rules, None, longest, processors, common.n_users, last)


def _table(
    options: Options,
    workload: Workload,
    longest: int,
    features: tuple[str, ...],
    settings: NDArray[np.int64],
    first: state.State,
    common: _Common,
) -> kernel.Table:
    """Return what the simulations share."""
    n, jobs, keys = len(workload), common.jobs, common.keys[:0]
    if common.secondary == state.KEYED:
        keys = np.concatenate([np.zeros(longest, np.int64), common.keys[n:]])
    columns = JobColumns(workload)
    ordered_by = jobs["requested"] if common.ordered_by is None else common.ordered_by
    estimators = make_estimators(options.scheduler, common.users, jobs["processors"])
    if settings[kernel.KIND] == kernel.WEIGHTS_KIND:
        estimators.looks[0] = 1
    own = dict(options.own)
    codes = [OWN + list(own).index(name) if name in own else _CODES[name] for name in options.names]
    cluster = options.cluster
    parts = weighed(JobColumns(workload, ordered_by), features, n)
    return kernel.Table(
        jobs=jobs,
        users=np.array(common.users),
        keys=keys,
        second_scores=np.array(common.scores[n:]),
        weighed=parts.static,
        waiting=parts.waiting,
        places=parts.places,
        formulas=parts.formulas,
        serial=parts.serial,
        columns=_own_columns(own, columns, n),
        codes=np.array(codes, np.int64),
        predicted=np.array(jobs["requested"] if common.predicted is None else common.predicted),
        ordered_by=np.array(ordered_by),
        watts=np.array([getattr(cluster, name) for name in _WATTS]),
        taste=np.array(options.weights),
        settings=settings,
        sim=first.sim,
        blocks=first.blocks,
        **estimators._asdict(),
    )


# in the order of what the kernel says that processors do
_WATTS = ("busy_power_w", "idle_power_w", "off_power_w", "shutdown_w", "boot_w")
_CODES = {name: code for code, name in enumerate(WINDOW_FEATURES)}


def _own_columns(own: dict[str, Any], columns: JobColumns, n: int) -> NDArray[np.float32]:
    """Return users' own columns of the window, checked."""
    values = np.zeros((n, len(own)), np.float32)
    for k, (name, function) in enumerate(own.items()):
        column = np.asarray(function(columns))
        if column.shape != (n,) or column.dtype.kind not in "fiub":
            raise HpcgymError(
                f"features: {name!r} must return {n} numbers, one a job, "
                f"not an array of shape {column.shape}"
            )
        if not (np.abs(column) <= 1).all():
            raise HpcgymError(f"features: {name!r} must return numbers from -1 to 1")
        values[:, k] = column
    return values


def _batch(
    options: Options,
    longest: int,
    number: int,
    first: state.State,
    scored: bool,
    learner: online.Learner,
) -> kernel.Batch:
    """Return the arrays of that many simulations, each with a row like ``first``."""
    return kernel.Batch(
        **state.rows_of(first, number),
        **learner_rows(learner, number),
        scores=np.zeros((number, 2 * longest if scored else 0), state.SCORES),
        place=np.zeros((number, kernel.N_PLACES), np.int64),
        window=np.zeros((number, options.window), np.int64),
        new=np.zeros((number, longest), np.int64),
        terms=np.zeros((number, kernel.N_TERMS)),
        totals=np.zeros((number, kernel.N_TERMS)),
        counted_j=np.zeros(number),
        norms=np.zeros((number, kernel.N_TERMS)),
    )


def _clock(workload: Workload) -> int:
    """Return the time of the week at the trace's time 0 [s], by its header, else Monday 0 h."""
    for text in workload.header.get("UnixStartTime", []):
        if text.strip().isdecimal():
            return (int(text) - 4 * 86_400) % 604_800  # the epoch was a Thursday
    return 0
