"""The simulations behind an environment: what the engine is told, and what advances them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Features, Model, Simulation, Stepper
from hpcgym.baselines.labels import scheduler_name
from hpcgym.envs.core import arrays
from hpcgym.envs.core.arrays import MOST, Lent
from hpcgym.envs.core.cutting import Episode, counted
from hpcgym.envs.core.definition import Definition
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.machines import Machines, Records, own_nodes
from hpcgym.envs.core.options import Options
from hpcgym.envs.core.setup import (
    AllJobs,
    batch_of,
    beginnings_of,
    check_episodes,
    clock_of,
    layout_of,
    machines_of,
    numbers_of,
    outputs_of,
    settings_of,
    table_of,
)
from hpcgym.errors import HpcgymError
from hpcgym.processors import threads_here
from hpcgym.schedule.measures import metrics_within
from hpcgym.scheduler import allocations
from hpcgym.scheduler.asked_for import check_fair_share, counts_usage, own_site_rules
from hpcgym.scheduler.estimates.by_name import predicted_run_times
from hpcgym.scheduler.estimates.learning import (
    Estimators,
    Learner,
    asks_for_predictions,
    told_of_learning,
)
from hpcgym.scheduler.limits import Limit
from hpcgym.scheduler.policies.features import JobColumns, weighed
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.driver import expressions_of, with_jobs
from hpcgym.simulation.fair_share import (
    Accounts,
    accounts_of,
    places_of_usage,
    warn_of_weights,
)
from hpcgym.simulation.nodes import check_limits_kept
from hpcgym.simulation.prepare import Agent, Told, prepare
from hpcgym.simulation.restricted import Order
from hpcgym.simulation.run import simulate
from hpcgym.simulation.warm_start import Learning
from hpcgym.workload.extracts import decided
from hpcgym.workload.model import Workload

# --- What the engine is told of the jobs of all episodes ------------------------------------------

# kinds in which single jobs are started from outside
_SELECTING = (arrays.SELECTION_KIND, arrays.PAIRS_KIND, arrays.PAIR_SCORES_KIND)


def told_of(workload: Workload, machines: Machines, definition: Definition, counts: bool) -> Told:
    """Return what the engine is told of the jobs of all episodes, and of the rules.

    ``counts``: whether somebody looks at what users have used.
    """
    kind, by_weights = definition.kind, definition.kind == arrays.WEIGHTS_KIND
    # whether the agent says the order of the queue, by weights or otherwise
    orders = not by_weights or bool(definition.features)
    scheduler = machines.rules
    asks = kind == arrays.ORDERING_KIND or (by_weights and definition.interval[0] == "pass")
    order: Order | None = Order(allocations.SELECTION if kind in _SELECTING else allocations.SCORED)
    if kind == arrays.ORDERING_KIND:  # before a decision
        order = Order(allocations.SCORED, scores=np.tile([0.0, np.inf], (len(workload), 1)))
    if scheduler.moves_submissions and not orders:  # it is that of coming
        order = None
    return prepare(
        workload, scheduler, machines.cluster, machines.place, units=machines.units,
        agent=Agent(order, asks, definition.keeps, definition.shutdown_action), counts=counts,
        logs_ends=scheduler.moves_submissions or "sharing" in machines.told, several=True,
    )  # fmt: skip


def learning_of(
    workload: Workload, scheduler: Scheduler, told: Told, kind: int
) -> tuple[Estimators, Learner] | None:
    """Return how run times are predicted, and what is known of them at first; None: they are not.

    ``kind``: what the agent says.
    """
    if not asks_for_predictions(scheduler):
        return None
    learning = Learning(workload, scheduler, told)
    if kind == arrays.WEIGHTS_KIND:
        learning.estimators.looks[0] = 1
    return learning.estimators, learning.learner


def ordered_by(options: Options, workload: Workload, jobs: NDArray[np.void]) -> NDArray[np.int64]:
    """Return what policies look at, (n_jobs,) [s], the requested time where it is learned."""
    run_time = np.minimum(workload.run_time, workload.requested_time)
    found = predicted_run_times(
        options.scheduler.policy_estimate, run_time, workload, "policy_estimate"
    )
    return np.array(jobs["requested"] if found is None else found)


def features_of(
    workload: Workload,
    features: tuple[str, ...],
    seconds: NDArray[np.int64],
    by_usage: tuple[int, ...],
) -> dict[str, Any]:
    """Return the features that are weighed, as arguments of ``Features``.

    ``seconds``: what policies look at; ``by_usage``: which weights are those of usage, -1: none.
    """
    parts = weighed(JobColumns(workload, seconds), features, len(workload))
    return {
        "parts": parts.static,
        "formulas": parts.formulas,
        "places": parts.places,
        "serial": parts.serial,
        "seconds": seconds,
        "by_usage": by_usage,
    }


def model_of(simulations: Simulations) -> Model:
    """Return the model of all episodes."""
    machines, learning = simulations.machines, simulations.learning
    more = dict(machines.told)
    if "nodes" in more:
        more["nodes"] = more["nodes"].layout
    if simulations.features is not None:
        more["features"] = Features(**simulations.features)
    if simulations.accounts is not None:
        more["accounts"] = simulations.accounts
    if learning is not None:
        more["learning"] = told_of_learning(*learning)
    more["expressions"] = simulations.expressions
    told = simulations.told.arguments()
    return Model(**told, **more, ticks=machines.units.ticks, several=True)


def arrays_in(told: Any) -> Iterator[NDArray[Any]]:
    """Return all arrays and numbers in what is told, in their order."""
    if isinstance(told, Mapping):
        told = tuple(told.values())
    if isinstance(told, tuple | list):
        for one in told:
            yield from arrays_in(one)
    elif told is not None:
        yield np.asarray(told)


def looks_at_usage(options: Options, features: tuple[str, ...], workload: Workload) -> bool:
    """Return whether some order looks at what users have used.

    ``features``: that weights are for.

    Raises
    ------
    HpcgymError : shares of users where no order looks at usage.
    """
    counts = counts_usage(options.scheduler, features)
    check_fair_share(options.scheduler.fair_share, counts)
    if counts:
        warn_of_weights([workload], options.scheduler, features)
    return counts


def scales_of(options: Options, episodes: Episodes, episode: Episode) -> list[float]:
    """Return what each reward of an episode is multiplied by, 1 without a reference.

    With one, it is jobs of the slice / sum of bounded slowdowns: the return is then minus the
    agent's sum over the reference's, both of the same jobs from the same beginning, under the same
    rules of the site.
    """
    jobs, scales = episodes.workload_of(episode), []
    rules = {rule: getattr(options.scheduler, rule) for rule in own_site_rules(options.scheduler)}
    for reference in options.rewards.references:
        if reference is None:
            scales.append(1.0)
            continue
        try:
            result = simulate(jobs, reference.but(**rules), cluster=options.cluster)
        except HpcgymError as error:
            raise HpcgymError(f"reward bsld/{scheduler_name(reference)}: {error}") from None
        metrics = metrics_within(result, *counted(episode))
        n = int(decided(jobs).sum()) if episode.last < 0 else episode.last - episode.first
        total = metrics["jobs"] * metrics["mean_bsld"]
        scales.append(n / total if metrics["jobs"] else 1.0)
    return scales


# --- Copies of simulations ------------------------------------------------------------------------


class Kept:
    """A copy of a simulation; where it is pickled, what it knows as bytes.

    ``hides``: whether it has jobs with run times of its own.
    """

    def __init__(self, simulation: Simulation, hides: bool) -> None:
        self._simulation: Simulation | None = simulation
        self._hides = hides
        self._saved: tuple[bytes, NDArray[np.int64] | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle has of it."""
        saved, own = self._saved, self._simulation
        if own is not None:
            saved = own.saved(), own.run_times() if self._hides else None
        return {"_simulation": None, "_hides": self._hides, "_saved": saved}

    def in_place(self, stepper: Stepper, e: int, accounts: Callable[[], Any]) -> Simulation:
        """Return it, to go on in an environment of its jobs.

        ``accounts`` returns what users had used before, as the engine takes it, or None.
        """
        if self._simulation is None:
            assert self._saved is not None
            saved, run_times = self._saved
            made = stepper.anew(e, accounts())
            if run_times is not None:
                made = made.anew(run_times)
            made.load(saved)
            self._simulation = made
        return self._simulation

    def hidden(self) -> Simulation:
        """Return one that goes on with the future hidden, of one that has not been pickled."""
        assert self._simulation is not None
        return self._simulation.hidden()


class Coming(NamedTuple):
    """The episode that a simulation is to begin next.

    Attributes
    ----------
    limits : under which it is; ``records`` is the same as the engine takes it, None: no limits.
    accounts : with which it begins; None where no order looks at usage.
    """

    name: str = ""
    limits: tuple[Limit, ...] = ()
    records: Records | None = None
    accounts: Accounts | None = None


# --- The simulations behind an environment --------------------------------------------------------


class Simulations:
    """Simulations of episodes of one workload, advanced from decision to decision.

    Parameters
    ----------
    definition : what the environment is.
    episodes : where episodes come from.
    number : of simulations.
    autoreset : whether the step after the end of an episode begins the next.
    copy : whether callers may keep observations; else the next step overwrites them; ``copies``.

    Attributes
    ----------
    batch, out : the arrays; see :mod:`hpcgym.envs.core.arrays`.
    lent : what callers are given of ``out``.
    told, learning, features : what the engine is told of the jobs of all episodes, of how run times
        are predicted and what is weighed; see :mod:`hpcgym.envs.core.simulations`.
    table : what steps look at beside that.
    machines : of all simulations.
    begins : with what episodes begin; nothing where that is an empty machine.
    layout : of the observations in ``out.observations``.
    accounts : of the users of all jobs; None where no order looks at usage.
    names, limits : of the present episode of each simulation.
    """

    def __init__(
        self,
        definition: Definition,
        episodes: Episodes,
        number: int,
        *,
        autoreset: bool = False,
        copy: bool = True,
    ) -> None:
        options, features, kind = definition.options, definition.features, definition.kind
        self.options, self.episodes, self.kind = options, episodes, kind
        workload, longest, scheduler = episodes.workload, episodes.longest, options.scheduler
        if definition.limited is None and definition.corun is None:
            check_limits_kept(scheduler, options.cluster)
            definition = definition._replace(limited=own_nodes(options))
        check_episodes(definition, episodes)
        self.layout = layout_of(definition)
        self.names = [""] * number
        self.limits: list[tuple[Limit, ...]] = [()] * number
        self._coming = [Coming()] * number
        self.shown: dict[int, Any] = {}  # what expert_view keeps of present episodes

        machines = self.machines = machines_of(definition, episodes)
        self._weighed = features
        self._counts = looks_at_usage(options, features, workload)
        self.accounts = self.accounts_of(workload)
        self.told = told_of(workload, machines, definition, self._counts)
        self.learning = learning_of(workload, scheduler, self.told, kind)
        self.expressions = expressions_of(workload, scheduler)
        seconds = ordered_by(options, workload, self.told.jobs)
        self.features = None
        if kind == arrays.WEIGHTS_KIND:
            by_usage = tuple(places_of_usage(features).tolist())
            self.features = features_of(workload, features, seconds, by_usage)
        settings = settings_of(
            definition, self.layout, processors=machines.counted, ticks=machines.units.ticks,
            autoreset=autoreset, clock=clock_of(workload),
        )  # fmt: skip
        self.table = table_of(options, workload, machines, settings, seconds)
        known = AllJobs(options, machines, self.told, self.learning)
        self.begins = beginnings_of(known, episodes)
        listed = 0 if definition.corun is None else definition.corun.neighbours
        self.batch = batch_of(options, longest, number, machines.n_booked, listed)
        n_actions = self.layout.actions + definition.shutdown_action
        self.out = outputs_of(options, self.layout, number, n_actions)
        self.chosen = np.zeros(number, np.int64)
        self.numbers = np.zeros((number, numbers_of(definition, self.layout)))
        self._make_stepper()
        self.copies = copy
        self._sets: list[Lent] = []
        self._lend(0, np.copy)

    def _make_stepper(self) -> None:
        """Make what steps environments, and note what steps write of episodes, by name."""
        self._rows = {
            name: array if array.ndim > 1 else array.reshape(-1, 1)
            for name, array in self.batch._asdict().items()
        }
        states = self.batch.episode_state
        self._rows["episode_state"] = states.view(np.int64).reshape(len(states), -1)
        table = self.table._asdict() | {"settings": self.table.settings.view(np.int64)}
        self._stepper = Stepper(model_of(self), table, self._rows, self.begins)
        for e in range(len(states)):
            self._tell_coming(e)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made of: the arrays, and what simulations know beside them."""
        begun = np.flatnonzero(self.batch.episode_state["jobs"]).tolist()
        own = self.__dict__ | {"_stepper": {e: self.kept(e) for e in begun}}
        return own | {"lent": None, "_sets": [], "_rows": {}}

    def __setstate__(self, known: dict[str, Any]) -> None:
        kept = known.pop("_stepper")
        self.__dict__ = known
        self._make_stepper()
        for e, one in kept.items():
            self.put(e, one)
        self._lend(0, np.copy)

    def seconds(self, times: Any) -> Any:
        """Return times of the simulations' clock in seconds: float64 where it is finer."""
        ticks = self.machines.units.ticks
        return times if ticks == 1 else times / ticks

    @property
    def tells_ends(self) -> bool:
        """Whether jobs are paid when they end, and infos say which have."""
        return self.options.rewards.paid == arrays.PAID_AT_END

    @property
    def nbytes(self) -> int:
        """Memory of the simulations [bytes], without the table that they share."""
        own = (*self.out, self.chosen, self.numbers, *self._rows.values())
        return int(self._stepper.nbytes + sum(array.nbytes for array in own))

    @cached_property
    def fingerprint(self) -> tuple[int, ...]:
        """Numbers that differ if the jobs, the rules, or the users that rules look at differ."""
        told = (vars(self.told), self.machines.told, self.learning, self.features, self.accounts)
        made = (*told, self.expressions, self.table, self.begins)
        marks = [crc32(one.tobytes()) for one in arrays_in(made)]
        sizes = [size for array in self.batch for size in array.shape[1:]]
        return (*marks, *sizes)

    def set_next(self, e: int, episode: Episode) -> None:
        """Say which episode simulation ``e`` is to begin next."""
        state, n = self.batch.episode_state[e], episode.stop - episode.start
        state["next_start"], state["next_jobs"] = episode.start, n
        state["next_until"], state["next_beginning"] = episode.until, max(episode.beginning, 0)
        state["next_counting"], state["next_of_slice"] = n, 0
        state["next_counts_first"] = 0
        if episode.last >= 0:
            state["next_counting"] = episode.last - episode.start
            state["next_of_slice"] = episode.last - episode.first
            state["next_counts_first"] = episode.first - episode.start
        counting = state["next_counting"] - state["next_counts_first"]
        state["next_open"] = counting + int(episode.endless)
        if any(self.options.rewards.references):
            self.batch.next_scales[e] = scales_of(self.options, self.episodes, episode)
        # most machines need not know: jobs are cut out of the whole for those that must
        jobs_of = partial(self.episodes.workload_of, episode)
        limits, records = self.machines.limits_from(jobs_of, episode.start)
        accounts = self.accounts_of(jobs_of()) if self._counts else None
        self._coming[e] = Coming(episode.name, limits, records, accounts)
        self._tell_coming(e)

    def _tell_coming(self, e: int) -> None:
        """Tell of the limits and the accounts of users of the next episode of simulation ``e``."""
        coming = self._coming[e]
        if coming.records is not None:
            self._stepper.limit(e, coming.records)
        if coming.accounts is not None:
            self._stepper.begin_with(e, coming.accounts)

    def accounts_of(self, workload: Workload) -> Accounts | None:
        """Return the accounts with which an episode of these jobs begins."""
        if not self._counts:
            return None
        options, features = self.options, self._weighed
        return accounts_of(workload, options.scheduler, options.cluster, features=features)

    def reset(self, those: NDArray[np.int64]) -> None:
        """Begin the next episodes of some simulations, (k,)."""
        n = len(self.chosen)
        rows = [(0, n)] if len(those) == n else [(e, e + 1) for e in those.tolist()]
        for first, stop in rows:
            self._stepper.go_on(arrays.BEGIN, first, stop, 1, self._which)
        for e in those.tolist():
            self.began(e)

    def began(self, e: int) -> None:
        """Note that simulation ``e`` has begun the episode that was to come next."""
        self.names[e], self.limits[e] = self._coming[e].name, self._coming[e].limits

    def step(self, e: int) -> None:
        """Do the action of simulation ``e`` that stands in ``chosen`` or ``numbers``."""
        self._stepper.go_on(arrays.STEP, e, e + 1, 1, self._which)

    def simulation(self, e: int) -> Simulation:
        """Return simulation ``e``, which goes on with its environment up to the next episode."""
        return self._stepper.simulation(e)

    def choose(self, actions: NDArray[np.int64], number: int) -> bool:
        """Set the actions of all if each is an index below ``number``; return whether they are."""
        return self._stepper.choose(actions, number)

    def kept(self, e: int) -> Kept:
        """Return a copy of simulation ``e``."""
        return Kept(self.simulation(e).copy(), self.hides(e))

    def written(self, e: int) -> dict[str, NDArray[Any]]:
        """Return copies of what steps have written of the episode of simulation ``e``."""
        return {name: array[e].copy() for name, array in self._rows.items()}

    def put(self, e: int, kept: Kept, rows: Mapping[str, NDArray[Any]] | None = None) -> None:
        """Let simulation ``e`` go on from a copy, of an episode of these rows, or as they are."""
        for name, row in (rows or {}).items():
            self._rows[name][e] = row

        def accounts() -> Accounts | None:
            """Return those with which the present episode has begun."""
            return self.accounts_of(self.episodes.workload_of(self.present(e)))

        self._stepper.put(e, kept.in_place(self._stepper, e, accounts))

    def running(self, e: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the running jobs of simulation ``e``, first predicted ends first, and these."""
        told = self.simulation(e).view()
        return told["running"], told["running_end"]

    def finds_room(self, e: int, rows: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return which of these waiting jobs would fit now; None: ``pass_view`` knows."""
        return self.machines.finds_room(self.simulation(e), rows, self.rows(e)[0])

    def listed(self, e: int) -> NDArray[np.int64]:
        """Return the running jobs of simulation ``e`` that are neighbours, then -1; (M,)."""
        rows: NDArray[np.int64] = self.batch.neighbours[e].copy()
        rows[self.batch.episode_state["beside"][e] :] = -1
        return rows

    @property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """What is listed in all simulations, (n, M), and how much of it counts, (n,), or None."""
        listed = self.batch.neighbours
        if listed.shape[1] == 0:
            return None
        return listed.copy(), self.batch.episode_state["beside"].copy()

    def show(self, e: int) -> None:
        """Tell where simulation ``e`` is, after another state has been put there."""
        self._stepper.go_on(arrays.SHOW, e, e + 1, 1, self._which)

    def tell_anew(self) -> None:
        """Tell in arrays that no caller has, so that callers may keep those they have."""
        for which, lent in enumerate(self._sets):
            if not lent.is_kept():
                self._which, self.lent, self.out = which, lent, lent.out
                return
        which = len(self._sets) if len(self._sets) < MOST else (self._which + 1) % MOST
        self._lend(which, np.empty_like)

    def _lend(self, which: int, make: Callable[[Any], Any]) -> None:
        """Tell in a new set of arrays, made of those of now; set ``which`` is not used any more."""
        # nobody may have them yet, be it what copies or unpickles environments
        now: tuple[Any, ...] = self.out
        same = 0 if self.copies else 2
        out = arrays.Outputs(*now[:same], *map(make, now[same:]))
        told: tuple[Any, ...] = out
        self._stepper.look_at(which, self.chosen, self.numbers, *told)
        lent = Lent(out, self.layout, self.copies)
        self._sets[which : which + 1] = [lent]
        lent.begin()
        self._which, self.lent, self.out = which, lent, out

    def step_all(self, threads: int | None = None) -> bool:
        """Do the actions of all simulations; return whether an episode has ended.

        ``threads``: how many; None: one a core.
        """
        self.tell_anew()
        n = len(self.chosen)
        workers = min(n, threads_here() if threads is None else threads)
        return self._stepper.go_on(arrays.STEP, 0, n, workers, self._which)

    def episode(self, e: int) -> Workload:
        """Return the jobs of the present episode of simulation ``e``.

        After a snapshot that hides the future they run for the predicted times, and nothing is
        said of jobs that were killed.
        """
        workload = self.episodes.workload_of(self.present(e))
        if not self.hides(e):
            return workload
        run_time = self.jobs(e)["run"].copy()
        nobody = np.zeros(len(run_time), np.bool_)
        return replace(workload, columns={**workload.columns, "run_time": run_time}, killed=nobody)

    def present(self, e: int) -> Episode:
        """Return which episode simulation ``e`` is in."""
        now: Any = self.batch.episode_state[e]
        return episode_of(self.names[e], now, bool(self.episodes.beginnings))

    def hides(self, e: int) -> bool:
        """Return whether simulation ``e`` goes on from a snapshot that hides the future."""
        return bool(self.batch.episode_state["hides"][e])

    def rows(self, e: int) -> tuple[int, int]:
        """Return the first row of the episode of simulation ``e``, and how many it has."""
        states = self.batch.episode_state
        return int(states["start"][e]), int(states["jobs"][e])

    def queued(self, e: int) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that wait in simulation ``e``, as they came."""
        simulation = self.simulation(e)
        rows = np.flatnonzero(self.came(e) & (simulation.schedule()["start"] < 0))
        if not self.options.scheduler.moves_submissions:  # they came by their rows
            return rows
        return rows[np.argsort(simulation.moment()["came"][rows])]

    def waiting(self, e: int) -> int:
        """Return how many jobs of the episode wait in simulation ``e``."""
        scheduler = self.options.scheduler
        if scheduler.moves_submissions or scheduler.preemption is not None:
            return len(self.queued(e))
        now = self.simulation(e).moment()
        return int(now["submitted"].item() - now["started"].item())

    def came(self, e: int) -> NDArray[np.bool_]:
        """Return which jobs of the episode have been submitted in simulation ``e``, (n_jobs,)."""
        moment = self.simulation(e).moment()
        if self.options.scheduler.moves_submissions:
            return moment["came"] >= 0
        came: NDArray[np.bool_] = np.arange(self.rows(e)[1]) < moment["submitted"]
        return came

    def jobs(self, e: int) -> NDArray[np.void]:
        """Return the records of the jobs of the present episode of simulation ``e``, (n_jobs,).

        With nodes of their own jobs that have started are as long as they are at their level.
        """
        jobs, scheduler, rules = self.told_jobs(e), self.options.scheduler, self.told.rules
        changes = scheduler.moves_submissions or scheduler.preemption is not None
        changes |= scheduler.correction == "kill"
        if not (changes or "limited" in self.machines.told):
            return jobs
        schedule, jobs = with_jobs(self.simulation(e).schedule(), jobs, rules), jobs.copy()
        for name in ("submit", "run", "requested"):
            jobs[name] = schedule[name]
        return jobs

    def told_jobs(self, e: int) -> NDArray[np.void]:
        """Return the jobs of the episode as simulation ``e`` was told of them, (n_jobs,) JOBS."""
        start, n = self.rows(e)
        jobs = self.told.jobs[start : start + n]
        if self.hides(e):
            jobs = jobs.copy()
            jobs["run"] = self.simulation(e).run_times()
        return jobs

    def suspended(self, e: int) -> NDArray[np.int64]:
        """Return the rows of the jobs of simulation ``e`` that others have suspended."""
        return self.simulation(e).moment().get("given_up", np.zeros(0, np.int64))


def episode_of(name: str, episode_state: Any, begins: bool) -> Episode:
    """Return which rows of the workload an episode has, and how it began, by its EPISODE."""
    start, n = int(episode_state["start"]), int(episode_state["jobs"])
    beginning = int(episode_state["beginning"]) if begins else -1
    return Episode(name, start, start + n, beginning=beginning)
