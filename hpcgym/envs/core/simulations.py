"""The simulations behind an environment: what advances them, copies, and copies that hide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, NoEpisode, Simulation, Stepper
from hpcgym.envs.core.base import (
    CANDIDATES_KIND,
    PAIR_SCORES_KIND,
    PAIRS_KIND,
    SELECTION_KIND,
    SHAPES_KIND,
    Definition,
)
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.machines import Records
from hpcgym.envs.core.model import BEGIN, EPISODE, SHOW, STEP, World, scales_of
from hpcgym.envs.core.observation import MOST_SETS, Lent, Outputs
from hpcgym.envs.core.reward import PAID_AT_END
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError, WorkloadWarning, warn_caller
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.dispatchers.asking import JobFacts, facts_of, on_one_node, view_at
from hpcgym.scheduler.limits import Limit
from hpcgym.simulation.allowance import spend
from hpcgym.simulation.driver import with_jobs
from hpcgym.simulation.fair_share import Accounts
from hpcgym.simulation.nodes import NodeDemands, pool_as_node
from hpcgym.workload.model import Workload

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

    def in_place(self, anew: Callable[[], Simulation]) -> Simulation:
        """Return it, to go on in an environment of its jobs.

        ``anew`` returns a simulation of its episode before the first event.
        """
        if self._simulation is None:
            assert self._saved is not None
            saved, run_times = self._saved
            made = anew()
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
    world : in which it is played, if that is another than is played now.
    limits : under which it is; ``records`` is the same as the engine takes it, None: no limits.
    accounts : with which it begins; None where no order looks at usage.
    """

    name: str = ""
    world: World | None = None
    limits: tuple[Limit, ...] = ()
    records: Records | None = None
    accounts: Accounts | None = None


# --- The simulations behind an environment --------------------------------------------------------

#: Kinds of actions of which a mask says which there are.
_WITH_ACTION_MASKS = (SELECTION_KIND, CANDIDATES_KIND, PAIRS_KIND, PAIR_SCORES_KIND)
#: Places in an EPISODE of what is said of the next one.
_NEXT = np.array(
    [
        list(EPISODE.names or ()).index(f"next_{name}")
        for name in (
            *("start", "jobs", "counts_first", "counting", "until", "of_slice"),
            *("open", "span", "span_from", "horizon"),
        )
    ]
)


class Simulations:
    """Simulations of episodes of one log or several, advanced from decision to decision.

    Parameters
    ----------
    defined : of each log what the environment is there, and where episodes come from. Simulation e
        is of log e mod their number, until :meth:`set_next` says another.
    number : of simulations.
    autoreset : whether the step after the end of an episode begins the next.
    copy : whether callers may keep observations; else the next step overwrites them; ``copies``.

    Attributes
    ----------
    worlds : what those of each of these logs share.
    rewards, scheduler, kind, layout, terms : the same for all.
    reward_keys : of the terms in infos, in their order.
    tells_ends : whether jobs are paid when they end, and infos say which have.
    tells_masks, lists_neighbours : whether infos say which actions there are, and which running
        jobs others can be put beside.
    batch, out : the arrays; see :class:`hpcgym.envs.core.model.World` and :class:`Outputs`.
    lent : what callers are given of ``out``.
    names, limits : of the present episode of each simulation.
    """

    def __init__(
        self,
        defined: Sequence[tuple[Definition, Episodes]],
        number: int,
        *,
        autoreset: bool = False,
        copy: bool = True,
    ) -> None:
        self._autoreset = autoreset
        self.worlds = [self.world_of(*pair) for pair in defined]
        # of the log that each plays, of its present episode, and of the log of its next
        self._of_log = [self.worlds[e % len(defined)] for e in range(number)]
        self._present, self._next_log = [*self._of_log], [*self._of_log]
        world, definition = self.worlds[0], defined[0][0]
        self.rewards, self.scheduler = definition.options.rewards, definition.options.scheduler
        self.kind, self.layout, self.terms = definition.kind, world.layout, world.machines.terms
        self.reward_keys = [f"reward_{term}" for term in self.terms]
        self.tells_ends = self.rewards.paid == PAID_AT_END
        self.tells_masks = self.kind in _WITH_ACTION_MASKS
        self._ticks = np.array([self.world(e).machines.units.ticks for e in range(number)])
        self.names = [""] * number
        self.limits: list[tuple[Limit, ...]] = [()] * number
        self._coming = [Coming()] * number
        self.shown: dict[int, Any] = {}  # what pass_view keeps of present episodes
        self.batch, self.out = world.batch(number, self.worlds), world.outputs(number)
        self.lists_neighbours = self.batch.neighbours.shape[1] > 0
        self.chosen = np.zeros(number, np.int64)
        self.numbers = np.zeros((number, world.numbers))
        self._make_stepper()
        self.copies = copy
        self._sets: list[Lent] = []
        self._lend(0, np.copy)

    def _make_stepper(self) -> None:
        """Make what steps environments, and note what steps write of episodes, by name."""
        self._rows = {
            name: array if array.ndim > 1 else array.reshape(-1, 1)
            for name, array in vars(self.batch).items()
        }
        states = self.batch.episode_state
        self._rows["episode_state"] = states.view(np.int64).reshape(len(states), -1)
        self._stepper = Stepper([world.native for world in self._present], self._rows)
        for e, coming in enumerate(self._coming):
            if coming.world is not None:
                self._stepper.take(e, coming.world.native, at_once=False)
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
        for e, snapshot in kept.items():
            self.put(e, snapshot)
        self._lend(0, np.copy)

    def world_of(self, definition: Definition, episodes: Episodes) -> World:
        """Return what simulations of a log share."""
        return World.of(definition, episodes, self._autoreset)

    def world(self, e: int) -> World:
        """Return what simulation ``e`` shares with all of its log."""
        return self._of_log[e]

    def played(self, e: int) -> World:
        """Return that in which simulation ``e`` plays its present episode.

        It is the same, but where episodes begin with jobs, as each is then a log of its own.
        """
        return self._present[e]

    def drawn_world(self, e: int) -> World | None:
        """Return that of its log if it was drawn, and None if it is one of ``worlds``."""
        return None if self._of_log[e] in self.worlds else self._of_log[e]

    def seconds(self, times: Any, e: int | None = None) -> Any:
        """Return times of the clock of simulation ``e`` in seconds: float64 where it is finer.

        None: of all, a time each.
        """
        if (self._ticks == 1).all():
            return times
        return times / (self._ticks if e is None else self.world(e).machines.units.ticks)

    def time(self, e: int) -> Any:
        """Return the time of simulation ``e`` [s], an int; where jobs share nodes a float."""
        return self.seconds(self.out.told.item(e, 0), e)

    @property
    def nbytes(self) -> int:
        """Memory of the simulations [bytes], without the table that they share."""
        own = (*self.out, self.chosen, self.numbers, *self._rows.values())
        return int(self._stepper.nbytes + sum(array.nbytes for array in own))

    def fingerprint(self, world: World) -> tuple[int, ...]:
        """Return numbers that differ if simulations play episodes of other jobs, rules or users.

        ``world``: in which they play them.
        """
        batch = self.batch
        sizes = [array.shape[1] for array in (batch.window, batch.scales, batch.neighbours)]
        return (*world.fingerprint, *sizes)

    def set_next(self, e: int, episode: Episode, world: World | None = None) -> None:
        """Say which episode simulation ``e`` is to begin next, of its own log or of another."""
        log = world or self._next_log[e]
        if log is not self._next_log[e]:
            self._make_room(log)
            self._next_log[e] = log
        world = log.playing(episode)
        if world is not (self._coming[e].world or self._present[e]):
            self._stepper.take(e, world.native, at_once=False)
        first, last, _ = episode.counting
        span, since = world.episodes.span_of(episode)
        shapes = world.definition.shapes
        if shapes is not None:
            user = shapes.user_of(world.episodes.workload_of(episode), first, last)
            self.batch.episode_state[e]["next_user"] = user
        ticks = 1 if since < 0 else world.machines.units.ticks
        self._rows["episode_state"][e, _NEXT] = (
            *(episode.start, episode.stop - episode.start),
            *(first, last, episode.until),
            0 if episode.last < 0 else world.episodes.number_counting(episode),
            last - first + int(episode.endless),
            *(span * ticks, since * ticks),
            # the end of a stream is that of its log, which nobody knows beforehand
            FOREVER if episode.endless else episode.until,
        )
        if any(self.rewards.references):
            self.batch.next_scales[e] = self._scales_of(log, world, episode)
        # most machines need not know: jobs are cut out of the whole for those that must
        jobs_of = partial(world.episodes.workload_of, episode)
        limits, records = world.machines.limits_from(jobs_of, episode.start)
        accounts = world.accounts_of(jobs_of()) if world.counts else None
        # what the stepper holds for the next episode begins even if it is of the present world
        held = self._coming[e].world is not None or world is not self._present[e]
        another = world if held else None
        self._coming[e] = Coming(episode.name, another, limits, records, accounts)
        self._tell_coming(e)

    def _scales_of(self, log: World, world: World, episode: Episode) -> list[float]:
        """Return what rewards of an episode are multiplied by; references are simulated once.

        Episodes that begin anywhere are too many to be kept.
        """
        scales = log.scales.get(episode)
        if scales is None:
            scales = scales_of(world.definition.options, world.episodes, episode)
            if episode.beginning >= 0:
                log.scales[episode] = scales
        return scales

    def _make_room(self, world: World) -> None:
        """Make rows wide enough for the episodes of a log, and a quarter more if they are not."""
        now = _widths_of(self.batch)
        needed = _widths_of(world.batch(len(self._present), [world]))
        self.widen({name: n * 5 // 4 if n > now[name] else n for name, n in needed.items()})

    def widen(self, widths: Mapping[str, int]) -> None:
        """Make rows of an episode at least so wide, by name."""
        now = _widths_of(self.batch).items()
        narrow = [name for name, width in now if width < widths[name]]
        if not narrow:
            return
        kept = self.__getstate__()["_stepper"]
        for name in narrow:
            array = getattr(self.batch, name)
            room = np.zeros((len(array), widths[name]), array.dtype)
            room[:, : array.shape[1]] = array
            setattr(self.batch, name, room)
        self._make_stepper()
        for e, snapshot in kept.items():
            self.put(e, snapshot)
        self._sets = []
        self._lend(0, np.copy)

    def _tell_coming(self, e: int) -> None:
        """Tell of the limits and the accounts of users of the next episode of simulation ``e``."""
        coming = self._coming[e]
        if coming.records is not None:
            self._stepper.limit(e, coming.records)
        if coming.accounts is not None:
            self._stepper.begin_with(e, coming.accounts)

    def reset(self, those: NDArray[np.int64]) -> None:
        """Begin the next episodes of some simulations, (k,)."""
        n = len(self.chosen)
        rows = [(0, n)] if len(those) == n else [(e, e + 1) for e in those.tolist()]
        for first, stop in rows:
            self._go_on(BEGIN, first, stop)
        for e in those.tolist():
            self.began(e)
        self._warn_of_horizon(those)

    def _warn_of_horizon(self, those: NDArray[np.int64]) -> None:
        """Say so if the horizon of an episode that has begun has come before its first question."""
        until = self.batch.episode_state["until"][those]
        late = those[self.out.told[those, 0] >= until].tolist()
        if any(not self.simulation(e).asked for e in late):
            warn_caller(
                "horizon: an episode is over before the agent is asked. It has one step, whose"
                " action does nothing and is not rewarded; give a longer horizon",
                WorkloadWarning,
            )

    def began(self, e: int) -> None:
        """Note that simulation ``e`` has begun the episode that was to come next."""
        coming = self._coming[e]
        self.names[e], self.limits[e] = coming.name, coming.limits
        if coming.world is not None:
            self._note_world(e, self._next_log[e], coming.world)
            self._coming[e] = coming._replace(world=None)

    def _note_world(self, e: int, log: World, world: World) -> None:
        self._of_log[e], self._present[e], self._ticks[e] = log, world, world.machines.units.ticks
        self.shown.pop(e, None)  # there may be an episode of the same name

    def play_at_once(self, e: int, log: World | None, name: str) -> None:
        """Let simulation ``e`` be of an episode of a log, without it until it is put there.

        ``log``: None: of the one that it plays.
        """
        log = log or self._of_log[e]
        world = self.world_to_play(log, name)
        if world is not self._present[e]:
            self._make_room(log)
            self._stepper.take(e, world.native, at_once=True)
            self._note_world(e, log, world)
        self._next_log[e] = log

    @staticmethod
    def world_to_play(log: World, name: str) -> World:
        """Return that in which the episode of a log is played.

        Raises
        ------
        HpcgymError : the log has no episode of this name, if that matters.
        """
        if log.episodes.start is None:
            return log
        return log.playing(log.episodes.find({"slice": name}))

    def step(self, e: int) -> None:
        """Do the action of simulation ``e`` that stands in ``chosen`` or ``numbers``."""
        spend(1)
        self._go_on(STEP, e, e + 1)

    def _go_on(self, task: int, first: int, stop: int, threads: int = 1) -> bool:
        """Do a task of simulations ``first`` to ``stop``; return whether a step ended an episode.

        Raises
        ------
        ResetNeeded : an interrupt has ended a step before its end, or a reset.
        """
        try:
            return self._stepper.go_on(task, first, stop, threads, self._which)
        except NoEpisode as error:
            raise gymnasium.error.ResetNeeded(f"{error}: call reset()") from None

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
            room = self._rows[name][e]
            n = min(len(row), len(room))  # they were made for other logs, too
            room[:n] = row[:n]

        def anew() -> Simulation:
            """Return a simulation of the present episode, with its limits and accounts."""
            world, jobs_of = self.world(e), partial(self._jobs_of, e)
            _, limits = world.machines.limits_from(jobs_of, self.present(e).start)
            made = self._stepper.anew(e, world.accounts_of(jobs_of()), limits)
            self._tell_coming(e)  # of the same log, perhaps
            return made

        self._stepper.put(e, kept.in_place(anew))

    def hide(self, e: int, rows: Mapping[str, NDArray[Any]], hidden: Simulation) -> None:
        """Let rows of ``e`` tell of the same episode as a simulation goes on that hides."""
        self._stepper.hide(e, {name: row[np.newaxis] for name, row in rows.items()}, hidden)

    def running(self, e: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the running jobs of simulation ``e``, first predicted ends first, and these."""
        state = self.simulation(e).view()
        return state["running"], state["running_end"]

    def finds_room(self, e: int, rows: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return which of these waiting jobs would fit now; None: ``pass_view`` knows."""
        return self.played(e).machines.finds_room(self.simulation(e), rows, self.rows(e)[0])

    def neighbours_of(self, e: int) -> NDArray[np.int64]:
        """Return the running jobs of simulation ``e`` that are neighbours, then -1; (M,)."""
        rows: NDArray[np.int64] = self.batch.neighbours[e].copy()
        rows[self.batch.episode_state["beside"][e] :] = -1
        return rows

    @property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """What is listed in all simulations, (n, M), and how much of it counts, (n,), or None."""
        if not self.lists_neighbours:
            return None
        return self.batch.neighbours.copy(), self.batch.episode_state["beside"].copy()

    def show(self, e: int) -> None:
        """Tell where simulation ``e`` is, after another state has been put there."""
        self._go_on(SHOW, e, e + 1)

    def tell_anew(self) -> None:
        """Tell in arrays that no caller has, so that callers may keep those they have."""
        for which, lent in enumerate(self._sets):
            if not lent.is_kept():
                self._which, self.lent, self.out = which, lent, lent.out
                return
        which = len(self._sets) if len(self._sets) < MOST_SETS else (self._which + 1) % MOST_SETS
        self._lend(which, np.empty_like)

    def _lend(self, which: int, make: Callable[[Any], Any]) -> None:
        """Tell in a new set of arrays, made of those of now; set ``which`` is not used any more."""
        # nobody may have them yet, be it what copies or unpickles environments
        now: tuple[Any, ...] = self.out
        same = 0 if self.copies else 2
        out = Outputs(*now[:same], *map(make, now[same:]))
        look_at: Callable[..., None] = self._stepper.look_at
        look_at(which, self.chosen, self.numbers, *out, is_lent=self.copies)
        lent = Lent(out, self.layout, self.copies)
        self._sets[which : which + 1] = [lent]
        lent.begin()
        self._which, self.lent, self.out = which, lent, out

    def step_all(self, threads: int) -> bool:
        """Do the actions of all simulations by so many threads; return whether an episode ended."""
        self.tell_anew()
        n = len(self.chosen)
        spend(n)
        return self._go_on(STEP, 0, n, min(n, threads))

    def episode(self, e: int) -> Workload:
        """Return the jobs of the present episode of simulation ``e``.

        After a snapshot that hides the future they run for the predicted times, and nothing is
        said of jobs that were killed. Jobs that an agent has submitted ask for what it said.
        """
        workload, shapes = self._jobs_of(e), self.world(e).definition.shapes
        if shapes is not None:
            return shapes.given(workload, self.batch.shapes[e, : len(workload)])
        if not self.hides(e):
            return workload
        run_time = self.jobs(e)["run"].copy()
        nobody = np.zeros(len(run_time), np.bool_)
        return replace(workload, columns={**workload.columns, "run_time": run_time}, killed=nobody)

    def changes_jobs(self, e: int) -> bool:
        """Return whether jobs of the present episode of simulation ``e`` differ from the log's."""
        return self.hides(e) or self.kind == SHAPES_KIND

    def counts(self, e: int) -> NDArray[np.bool_] | None:
        """Return which jobs of the episode of simulation ``e`` count, of its slice; None: all."""
        if self.kind != SHAPES_KIND:
            return None
        start, n = self.rows(e)
        users = self.played(e).table["users"][start : start + n]
        counts: NDArray[np.bool_] = users == self.batch.episode_state["user"][e]
        return counts

    def _jobs_of(self, e: int) -> Workload:
        """Return the same as the log has them."""
        return self.played(e).episodes.workload_of(self.present(e))

    def present(self, e: int) -> Episode:
        """Return which episode simulation ``e`` is in."""
        now: Any = self.batch.episode_state[e]
        return episode_of(self.names[e], now)

    def hides(self, e: int) -> bool:
        """Return whether simulation ``e`` goes on from a snapshot that hides the future."""
        return bool(self.batch.episode_state["hides"][e])

    def rows(self, e: int) -> tuple[int, int]:
        """Return the first row of the episode of simulation ``e``, and how many it has."""
        states = self.batch.episode_state
        return int(states["start"][e]), int(states["jobs"][e])

    def rows_in_table(self, e: int) -> slice | NDArray[np.int64]:
        """Return where in the table the jobs of the episode stand, with the shapes they have."""
        start, n = self.rows(e)
        if self.kind != SHAPES_KIND:
            return slice(start, start + n)
        number = len(self.played(e).table["users"])
        rows: NDArray[np.int64] = start + np.arange(n) + number * (1 + self.batch.shapes[e, :n])
        return rows

    def queued(self, e: int) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that wait in simulation ``e``, as they came."""
        simulation = self.simulation(e)
        rows = np.flatnonzero(self.came(e) & (simulation.schedule()["start"] < 0))
        if not self.scheduler.moves_submissions:  # they came by their rows
            return rows
        return rows[np.argsort(simulation.moment()["came"][rows])]

    def waiting(self, e: int) -> int:
        """Return how many jobs of the episode wait in simulation ``e``."""
        scheduler = self.scheduler
        if scheduler.moves_submissions or scheduler.preemption is not None:
            return len(self.queued(e))
        now = self.simulation(e).moment()
        return int(now["submitted"].item() - now["started"].item())

    def came(self, e: int) -> NDArray[np.bool_]:
        """Return which jobs of the episode have been submitted in simulation ``e``, (n_jobs,)."""
        moment = self.simulation(e).moment()
        if self.scheduler.moves_submissions:
            return moment["came"] >= 0
        came: NDArray[np.bool_] = np.arange(self.rows(e)[1]) < moment["submitted"]
        return came

    def jobs(self, e: int) -> NDArray[np.void]:
        """Return the records of the jobs of the present episode of simulation ``e``, (n_jobs,).

        With nodes of their own jobs that have started are as long as they are at their level.
        """
        jobs, scheduler, world = self.told_jobs(e), self.scheduler, self.world(e)
        changes = scheduler.moves_submissions or scheduler.preemption is not None
        changes |= scheduler.correction == "kill"
        if not (changes or "limited" in world.machines.told):
            return jobs
        schedule = with_jobs(self.simulation(e).schedule(), jobs, world.told.rules)
        jobs = jobs.copy()
        for name in ("submit", "run", "requested"):
            jobs[name] = schedule[name]
        return jobs

    def told_jobs(self, e: int) -> NDArray[np.void]:
        """Return the jobs of the episode as simulation ``e`` was told of them, (n_jobs,) JOBS."""
        jobs = self.played(e).told.jobs[self.rows_in_table(e)]
        if self.hides(e):
            jobs = jobs.copy()
            jobs["run"] = self.simulation(e).run_times()
        return jobs

    def suspended(self, e: int) -> NDArray[np.int64]:
        """Return the rows of the jobs of simulation ``e`` that others have suspended."""
        return self.simulation(e).moment().get("given_up", np.zeros(0, np.int64))


def _widths_of(batch: Any) -> dict[str, int]:
    """Return how wide the rows of these arrays are, by name."""
    return {name: array.shape[1] for name, array in vars(batch).items() if array.ndim > 1}


def episode_of(name: str, episode_state: Any) -> Episode:
    """Return which rows of the workload an episode has, by its EPISODE."""
    start, n = int(episode_state["start"]), int(episode_state["jobs"])
    return Episode(name, start, start + n)


# --- What a dispatcher may know of an environment's state -----------------------------------------


def pass_view(simulations: Simulations, e: int, rows: NDArray[np.int64]) -> PassView:
    """Return a view of simulation ``e`` in which these rows of the episode are queued.

    A machine whose jobs ask for single cores is one node with all of them, as a pool is.

    Raises
    ------
    HpcgymError : a machine whose jobs have nodes of their own: there only ``simulate`` asks them.
    """
    if "limited" in simulations.world(e).machines.told:
        raise HpcgymError(
            "pass_view: where jobs have nodes of their own, under limits too, dispatchers are asked"
            " by simulate() only"
        )
    shown, native = _shown(simulations, e), simulations.simulation(e)
    state, queued = native.view(), np.sort(rows)
    if "free" not in state:
        state = on_one_node(state, native.free)
    schedule = native.schedule()
    state |= {"queued": queued, "duration": schedule["predicted"][queued]}
    if "ordered_by" in schedule:
        state["ordered_by"] = schedule["ordered_by"][queued]
    return view_at(state, native.time, simulations.jobs(e), shown.nodes, shown.facts)


class _Shown(NamedTuple):
    """What views of an episode have in common; see :func:`_shown`."""

    episode: Episode
    facts: JobFacts
    nodes: NodeDemands


def _shown(simulations: Simulations, e: int) -> _Shown:
    """Return what views of the present episode have in common, made at the first of them."""
    episode = simulations.present(e)
    kept: _Shown | None = simulations.shown.get(e)
    changes = simulations.kind == SHAPES_KIND  # from one decision to the next
    if kept is None or kept.episode != episode or changes:
        world = simulations.played(e)
        cluster, machines = world.definition.options.cluster, world.machines
        workload = simulations.episode(e) if changes else world.episodes.workload_of(episode)
        start, n = simulations.rows(e)
        times = world.table["ordered_by"][simulations.rows_in_table(e)]
        facts = facts_of(workload, cluster, times, pool=machines.place == "pool")
        if machines.place == "pool":
            nodes = pool_as_node(workload.requested_processors, cluster.processors)
        else:
            nodes = machines.told["nodes"]
            nodes = nodes._replace(needs=nodes.needs[start : start + n])
        kept = simulations.shown[e] = _Shown(episode, facts, nodes)
    return kept
