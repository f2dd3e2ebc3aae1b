"""What all simulations of a log share, as the engine is told; and the arrays of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Features, LogOfEpisodes, Model, Simulation, fields_of
from hpcgym.baselines.labels import scheduler_name
from hpcgym.envs.core.base import (
    CANDIDATES_KIND,
    CONTROLS,
    EPISODE_INTERVAL,
    ORDERING_KIND,
    PAIR_SCORES_KIND,
    PAIRS_KIND,
    PASSES_INTERVAL,
    PROPOSALS_KIND,
    SECONDS_INTERVAL,
    SELECTION_KIND,
    SHAPES_KIND,
    SUBMISSIONS_INTERVAL,
    WEIGHTS_KIND,
    Definition,
    Options,
)
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.machines import (
    CorunMachines,
    LimitedMachines,
    Machines,
    SubmittedMachines,
)
from hpcgym.envs.core.observation import (
    N_TOLD,
    WINDOW_FEATURES,
    Layout,
    Outputs,
    is_rank,
)
from hpcgym.envs.core.reward import N_TERMS, PAID_AT_END
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError
from hpcgym.schedule.measures import metrics_within
from hpcgym.scheduler import allocations
from hpcgym.scheduler.allocations import KILL, RANDOM
from hpcgym.scheduler.asked_for import (
    counts_usage,
    own_site_rules,
    places_of_usage,
)
from hpcgym.scheduler.estimates.by_name import predicted_run_times
from hpcgym.scheduler.estimates.learning import (
    Estimators,
    LearnedState,
    knowledge,
    told_of_learning,
)
from hpcgym.scheduler.orders import Order, expressions_of
from hpcgym.scheduler.policies.features import JobColumns, weighed
from hpcgym.simulation.allowance import uncounted
from hpcgym.simulation.fair_share import Accounts, accounts_of
from hpcgym.simulation.prepare import Agent, EngineInput, Place, prepare
from hpcgym.simulation.run import simulate
from hpcgym.simulation.warm_start import (
    Beginning,
    Learning,
    beginning_of,
    cannot_run,
    check_running,
    learned_before,
)
from hpcgym.workload.extracts import decided, taken_over
from hpcgym.workload.io.swf_header import clock_of
from hpcgym.workload.model import Workload
from hpcgym.workload.ongoing import Cells

# where an environment is, and what all of a table share; native/envs/records.hpp says what each is
EPISODE = np.dtype((np.record, fields_of("Episode")))
SETTINGS = np.dtype((np.record, fields_of("Settings")))
STEP, BEGIN, SHOW = range(3)  # what is to be done with simulations


# --- What all simulations of a log share ----------------------------------------------------------

Arrays = dict[str, NDArray[Any]]
_NONE = np.zeros(0, np.int64)
#: Worlds of episodes that are kept: some 0.6 MB each.
_MOST_PARTS = 512


@dataclass(frozen=True, eq=False)
class World:
    """What all simulations of a log share in an environment; nothing changes it.

    Attributes
    ----------
    definition : what the environment is; jobs with nodes of their own have ``limited``.
    episodes : where episodes come from.
    machines : of all simulations.
    layout : of observations.
    counts : whether some order looks at what users have used.
    told, learning, expressions, features : what the engine is told of the jobs of all episodes, of
        how run times are predicted, of orders that are worked out anew, and of what is weighed.
    shown : expressions that the window shows.
    table : what steps look at beside that.
    begins : with what episodes begin; None where that is an empty machine.
    scales : what rewards of episodes are multiplied by, as far as that has been worked out.
    parts : the worlds of episodes that begin with jobs, of those that were made last.
    """

    definition: Definition
    episodes: Episodes
    machines: Machines
    layout: Layout
    counts: bool
    told: EngineInput
    learning: tuple[Estimators, LearnedState] | None
    expressions: list[Arrays]
    features: dict[str, Any] | None
    table: Arrays
    shown: list[Arrays] = field(default_factory=list)
    begins: Arrays | None = None
    scales: dict[Episode, list[float]] = field(default_factory=dict)
    parts: dict[Episode, World] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        definition: Definition,
        episodes: Episodes,
        autoreset: bool,
        own_columns: NDArray[np.float32] | None = None,
    ) -> World:
        """Return that of an environment, checked.

        ``autoreset``: whether the step after the end of an episode begins the next.
        ``own_columns``: users' own of the window, (n_rows, n_own), where they are known.

        Raises
        ------
        HpcgymError, WorkloadError : as :func:`hpcgym.envs.core.checks.check_episodes`, and
            :func:`hpcgym.simulate` of such machines and extracts.
        """
        options, workload = definition.options, episodes.workload
        scheduler, weighs = options.scheduler, definition.by_name
        layout, machines = definition.layout, machines_of(definition, episodes)
        if isinstance(machines, SubmittedMachines):
            workload = machines.every
        counts = counts_usage(scheduler, weighs)
        engine_input, learning = told_of(workload, machines, definition, counts), None
        if scheduler.asks_for_predictions:
            learns = Learning(workload, scheduler, engine_input)
            learning = learns.estimators, learns.learner
            if definition.kind == WEIGHTS_KIND:
                learns.estimators.looks[0] = int(definition.weighed is None)
        run_time = np.minimum(workload.run_time, workload.requested_time)
        seconds = predicted_run_times(
            scheduler.policy_estimate, run_time, workload, "policy_estimate"
        )
        # what policies look at, the requested time where it is learned
        seconds = np.array(engine_input.jobs["requested"] if seconds is None else seconds)
        features, expressions = None, expressions_of(workload, scheduler)
        columns = JobColumns(workload, seconds)
        if definition.weighed is not None:
            none = {"codes": _NONE}
            expressions = [definition.weighed.program(columns), *(expressions or [none, none])[1:]]
        elif definition.kind == WEIGHTS_KIND:
            parts = weighed(columns, weighs, len(workload))
            features = {
                "parts": parts.static, "formulas": parts.formulas, "places": parts.places,
                "serial": parts.serial, "seconds": seconds,
                "by_usage": tuple(places_of_usage(weighs).tolist()),
            }  # fmt: skip
        settings = shared_settings(definition, layout, machines, autoreset, clock_of(workload))
        if own_columns is None:
            own_columns = _own_columns(options, workload)
        known = cls(
            definition, episodes, machines, layout, counts, engine_input, learning,
            expressions, features,
            table_of(definition, machines, settings, seconds, own_columns)
            | _of_submissions(definition, episodes.workload, engine_input),
            [expression.program(columns) for expression in options.expressions.values()],
        )  # fmt: skip
        return replace(known, begins=_beginning(known))

    def playing(self, episode: Episode) -> World:
        """Return the world of an episode: one of its own jobs where it begins with some."""
        if self.episodes.start is None:
            return self
        if episode not in self.parts:
            if len(self.parts) >= _MOST_PARTS:
                del self.parts[next(iter(self.parts))]
            autoreset = bool(self.table["settings"]["autoreset"][0])
            own, rows = self.episodes.within(episode), self.episodes.rows_of(episode)
            columns, n = self.table["columns"], len(self.episodes.workload)
            of_own = [columns[k : k + n][rows] for k in range(0, len(columns), n)]  # by shape
            self.parts[episode] = World.of(self.definition, own, autoreset, np.concatenate(of_own))
        return self.parts[episode]

    def is_like(self, other: World) -> bool:
        """Return whether a simulation of the other's log could be of this one, by its rules."""
        options, others = self.definition.options, other.definition.options
        return (
            self.definition.kind == other.definition.kind
            and options.scheduler.describe() == others.scheduler.describe()
        )

    @cached_property
    def accounts(self) -> Accounts | None:
        """Those of the users of all jobs."""
        return self.accounts_of(self.episodes.workload)

    @cached_property
    def fingerprint(self) -> tuple[int, ...]:
        """Numbers that differ if the jobs, the rules, or the users that rules look at differ."""
        inputs = (vars(self.told), self.machines.told, self.learning, self.features, self.accounts)
        made = (*inputs, self.expressions, self.shown, self.table, self.begins)
        return tuple(crc32(array.tobytes()) for array in arrays_in(made))

    def accounts_of(self, workload: Workload) -> Accounts | None:
        """Return the accounts with which an episode of jobs begins; None where nobody looks."""
        if not self.counts:
            return None
        options = self.definition.options
        return accounts_of(
            workload, options.scheduler, options.cluster, features=self.definition.features
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made of; it makes what a stepper takes anew."""
        known = {name: value for name, value in vars(self).items() if name != "native"}
        return known | {"parts": {}}

    @cached_property
    def native(self) -> LogOfEpisodes:
        """What a stepper takes of it."""
        more = dict(self.machines.told)
        if "nodes" in more:
            more["nodes"] = more["nodes"].layout
        if self.features is not None:
            more["features"] = Features(**self.features)
        if self.accounts is not None:
            more["accounts"] = self.accounts
        if self.learning is not None:
            more["learning"] = told_of_learning(*self.learning)
        more["expressions"] = self.expressions
        ticks = self.machines.units.ticks
        model = Model(**self.told.arguments(), **more, ticks=ticks, several=True)
        table = self.table | {"settings": self.table["settings"].view(np.int64)}
        return LogOfEpisodes(model, table, self.shown, self.begins)

    def outputs(self, number: int) -> Outputs:
        """Return room for what is told of that many simulations."""
        options, layout = self.definition.options, self.layout
        return Outputs(
            observations=np.zeros((number, layout.size), np.float32),
            masks=np.zeros((number, layout.actions + self.definition.shutdown_action), np.int8),
            rewards=np.zeros((number, len(options.rewards.weights))),
            ended=np.zeros(number, np.bool_),
            truncated=np.zeros(number, np.bool_),
            told=np.zeros((number, N_TOLD + options.window), np.int64),
            terms=np.zeros((number, N_TERMS)),
        )

    @property
    def numbers(self) -> int:
        """How many numbers there is room for in an action, at least one."""
        definition = self.definition
        if definition.kind in (ORDERING_KIND, PAIR_SCORES_KIND):
            return max(self.layout.scores, 1)
        controls = () if definition.limited is None else definition.limited.controls
        return max(len(definition.features) + len(controls), 1)

    def batch(self, number: int, worlds: Sequence[World]) -> SimpleNamespace:
        """Return what steps write of the episodes of that many simulations, n, a row for each.

        ``worlds``: this one, and others of which some may be.
        """
        longest = max(world.episodes.longest for world in worlds)
        booked = max(world.machines.n_booked for world in worlds)
        options, corun = self.definition.options, self.definition.corun
        neighbours = 0 if corun is None else corun.neighbours
        late = longest if options.rewards.paid == PAID_AT_END else 0
        rewards = (number, len(options.rewards.weights))
        return SimpleNamespace(
            episode_state=np.zeros(number, EPISODE),  # an EPISODE each
            window=np.zeros((number, options.window), np.int64),  # visible jobs
            new=np.zeros((number, longest), np.int64),  # jobs that started in the last step
            terms=np.zeros((number, N_TERMS)),  # sums over them
            totals=np.zeros((number, N_TERMS)),  # the same over the episode
            # energy of processors without a job, as far as counted, where they are switched off
            counted_j=np.zeros(number),
            norms=np.zeros((number, N_TERMS)),  # what makes rewards of terms
            scales=np.ones(rewards),  # what rewards are multiplied by: n / a reference
            next_scales=np.ones(rewards),  # of the episode that follows
            # slowdowns and waits [s] so far of jobs that wait; where jobs may be stopped, all sums
            # that a later step may correct, for ENERGY in processor seconds
            owed=np.zeros((number, N_TERMS)),
            unpaid=np.zeros((number, late), np.int64),  # jobs that run and are paid when they end
            gone=np.zeros((number, late), np.int64),  # jobs that were paid so in the last step
            gone_bsld=np.zeros((number, late)),  # their bounded slowdowns
            busy_until=np.zeros((number, booked), np.int64),  # [s] the last end of a node's jobs
            # (n, M) running jobs beside whom others may start, as they began
            neighbours=np.zeros((number, neighbours), np.int64),
            # which shape an agent has given each job; -1: none
            shapes=np.full((number, longest if self.definition.shapes else 0), -1),
        )


# --- With what episodes of extracts begin, as the engine takes it ---------------------------------


def _beginning(world: World) -> Arrays | None:
    """Return with what episodes begin; None where that is an empty machine.

    Raises
    ------
    HpcgymError, WorkloadError : as :func:`hpcgym.simulate` does of such an extract.
    """
    part, rules, all_of = world.episodes.beginning, world.definition.options.scheduler, world.told
    if part is None:
        return None
    # all episodes of an extract have the jobs that were submitted before it, and then some
    part = part.take(slice(0, world.episodes.longest), name=part.name)
    rows = slice(len(part))
    predicted = None if all_of.predicted is None else all_of.predicted[rows]
    own = replace(all_of, jobs=all_of.jobs[rows], users=all_of.users[rows], predicted=predicted)
    learning = None
    if world.learning is not None:
        by, learner = world.learning
        learner = LearnedState._make([array.copy() for array in learner])
        learning = _part_of(by, rows), learner
        Learning(part, rules, own, learned_before(part, rules), learning)
    begins = beginning_of(taken_over(part), rules, world.definition.options.cluster, own)
    # where nothing runs or waits, a submission is what happens first
    state: Arrays = dict.fromkeys(("running", "start", "predicted", "promised"), _NONE)
    state |= {"when": np.array([-1, 0, 0])}
    state["history"] = np.full(own.n_users * own.kept, -1)
    if begins is not None and begins.history.size:
        state["history"] = begins.history.reshape(-1)
    nodes: Arrays = {"first": np.zeros(1, np.int64), "node": _NONE, "units": _NONE, "drawn": _NONE}
    if begins is not None and begins.number > 0:
        check_running(begins)
        state |= begins.arguments(on_nodes=False)
        state["when"] = np.array([state.pop("time"), begins.number, state.pop("due")])
        nodes = _places(world, begins, learning) or nodes
    if "nodes" in world.machines.told:
        state |= nodes
    if learning is not None:
        state |= {name: array.reshape(-1) for name, array in knowledge(*learning).items()}
    return state


def _places(
    world: World, begins: Beginning, learning: tuple[Estimators, LearnedState] | None
) -> Arrays:
    """Return the nodes of those that run, and what allocations go by then; nothing on a pool.

    Raises
    ------
    WorkloadError : one of them cannot run.
    """
    engine_input, nodes = world.told, world.machines.told.get("nodes")
    number, rows = begins.number, slice(begins.number)
    kills = engine_input.rules["correction"] == KILL
    more: dict[str, Any] = {}
    if learning is not None:
        by = _part_of(learning[0], slice(number))
        by = by._replace(looks=np.zeros_like(by.looks))  # there is no order here
        more = {"users": engine_input.users[rows], "n_users": engine_input.n_users}
        more["learning"] = told_of_learning(by, learning[1])
    at_first: Arrays = {}
    if nodes is not None:
        asks = None if nodes.asks is None else nodes.asks[rows]
        more["nodes"] = nodes._replace(needs=nodes.needs[rows], asks=asks).layout
        if begins.cells is not None:
            at_first = begins.cells.take(begins.running)._asdict()
    names = ("running", "start", "predicted", "promised")
    native = Simulation(
        Model(
            engine_input.jobs[rows].view(np.int64).reshape(number, -1),
            begins.cluster.processors,
            {"correction": KILL if kills else 0, "learns": int(learning is not None)},
            predicted=begins.predicted,
            **more,
        )
    )
    known = {name: getattr(begins, name) for name in names}
    stuck = native.begin(time=begins.time, due=False, **known, **at_first)
    if stuck >= 0:
        raise cannot_run(begins, stuck, native.run_time(stuck))
    if nodes is None:
        return {}
    seen = native.view()
    cells = Cells(*(seen[f"cell_{name}"] for name in Cells._fields))
    there = np.argsort(seen["running"])[np.searchsorted(np.sort(seen["running"]), begins.running)]
    drawn = seen["drawn"] if nodes.allocation == RANDOM else _NONE
    return cells.take(there)._asdict() | {"drawn": drawn}


def _part_of(by: Estimators, rows: slice) -> Estimators:
    """Return how the run times of some jobs are predicted."""
    named = {name: getattr(by, name) for name in ("classes", "asked")}
    return by._replace(**{name: column[rows] for name, column in named.items() if len(column)})


# --- What the simulations of an environment are made of -------------------------------------------

_INTERVALS = {
    "pass": PASSES_INTERVAL,
    "seconds": SECONDS_INTERVAL,
    "submissions": SUBMISSIONS_INTERVAL,
    "episode": EPISODE_INTERVAL,
}


def machines_of(definition: Definition, episodes: Episodes) -> Machines:
    """Return the machines of simulations of episodes."""
    if definition.limited is not None:
        return LimitedMachines(definition.limited, definition.options, episodes.workload)
    if definition.corun is not None:
        return CorunMachines(definition.corun, definition.options, episodes)
    if definition.shapes is not None:
        return SubmittedMachines(definition.shapes, definition.options, episodes.workload)
    return Machines(definition.options, episodes.workload)


def shared_settings(
    definition: Definition, layout: Layout, machines: Machines, autoreset: bool, clock: int
) -> NDArray[np.void]:
    """Return what all simulations share, (1,) :data:`hpcgym.envs.core.model.SETTINGS`.

    ``clock``: the time of the week at the trace's time 0 [s].
    """
    settings, options = np.zeros(1, SETTINGS), definition.options
    every, length = definition.interval
    known: dict[str, Any] = {
        "interval": _INTERVALS[every], "interval_length": length, "kind": definition.kind,
        "by_action": definition.shutdown_action, "skips": definition.skips,
        "paid": options.rewards.paid, "split": options.split, "processors": machines.size,
        "ticks": machines.units.ticks, "autoreset": autoreset, "clock": clock,
        "seen_end": layout.end_at,
    }  # fmt: skip
    if definition.corun is None:
        known["seen_power"], known["seen_shapes"] = layout.power_at, layout.shapes_at
        known["shapes"] = 0 if definition.shapes is None else definition.shapes.number
        controls = () if definition.limited is None else definition.limited.controls
        for name in CONTROLS:  # where they stand in the action, behind the weights
            at = len(definition.features) + controls.index(name) if name in controls else -1
            known[f"act_{name}"] = at
    for name, value in known.items():
        settings[name] = value
    return settings


def table_of(
    definition: Definition,
    machines: Machines,
    settings: NDArray[np.void],
    ordered_by: NDArray[np.int64],
    own_columns: NDArray[np.float32],
) -> dict[str, NDArray[Any]]:
    """Return what steps look at of all episodes, beside what the engine is told; never changed.

    ``ordered_by``: what policies look at, (n_rows,) [s]; ``own_columns``: (n_rows, n_own).
    """
    options = definition.options
    shown = options.expressions
    places = {name: k for k, name in enumerate((*WINDOW_FEATURES, *options.own, *shown))}
    return {
        # (n_rows, n_own) users' own columns of the window
        "columns": own_columns,
        # (n_columns,) which feature each column of the window is
        "codes": np.array([places[name] for name in options.names], np.int64),
        "ordered_by": ordered_by,
        # (n_expressions,) whether the place among visible jobs is shown
        "ranks": np.array([is_rank(name) for name in shown], np.int64),
        # (5,) of a processor that is busy, idle, off, switching off, on
        "watts": machines.watts,
        # where nodes have powers: (n_nodes, 2) what a job adds to an idle node as a whole, 1, or by
        # core, 0; (1,) the power of the machine idle
        "node_watts": machines.node_watts,
        "still_w": machines.still_w,
        # (n_rewards, N_TERMS) weights of the terms in each reward; (n_rewards,) PLAIN or LOG
        "reward_weights": np.array(options.rewards.weights),
        "shapes": np.array(options.rewards.shapes),
        "settings": settings,  # (1,) SETTINGS
        # (C,) of a code beside all others, where jobs share nodes
        "mean_speedup": machines.mean_speedup,
    }


def _of_submissions(
    definition: Definition, workload: Workload, engine_input: EngineInput
) -> dict[str, NDArray[Any]]:
    """Return what steps look at beside that where an agent submits jobs; else nothing.

    ``users`` are those of the jobs of all episodes, ``work`` [s] how long each row of the table
    runs if its request does not end it.
    """
    shapes = definition.shapes
    if shapes is None:
        return {}
    work = [np.minimum(workload.run_time, workload.requested_time)]
    work += [shapes.asked(workload, shape)["run_time"] for shape in range(shapes.number)]
    return {"users": workload.user_id.astype(np.int64), "work": np.concatenate(work)}


def _own_columns(options: Options, workload: Workload) -> NDArray[np.float32]:
    """Return users' own columns of the window, checked, of the jobs of all episodes."""
    n, n_given, columns = len(workload), len(options.workload), JobColumns(workload)
    values = np.zeros((n, len(options.own)), np.float32)
    apart = (
        f": a function gets the jobs of all episodes in a row, not the {n_given} of the workload"
    )
    for k, (name, function) in enumerate(options.own.items()):
        column = np.asarray(function(columns))
        if column.shape != (n,) or column.dtype.kind not in "fiub":
            raise HpcgymError(
                f"features: {name!r} must return {n} numbers, one a job, "
                f"not an array of shape {column.shape}{'' if n == n_given else apart}"
            )
        if not (np.abs(column) <= 1).all():
            raise HpcgymError(f"features: {name!r} must return numbers from -1 to 1")
        values[:, k] = column
    return values


# kinds in which single jobs are started from outside
_SELECTING = (SELECTION_KIND, PAIRS_KIND, PAIR_SCORES_KIND)


def told_of(
    workload: Workload, machines: Machines, definition: Definition, counts: bool
) -> EngineInput:
    """Return what the engine is told of the jobs of all episodes, and of the rules.

    ``counts``: whether somebody looks at what users have used.
    """
    kind, by_weights = definition.kind, definition.kind == WEIGHTS_KIND
    follows = kind in (CANDIDATES_KIND, PROPOSALS_KIND, SHAPES_KIND)
    # whether the agent says the order of the queue, by weights or otherwise
    orders = not by_weights or bool(definition.features)
    scheduler = machines.rules
    asks = kind == ORDERING_KIND or (by_weights and definition.interval[0] == "pass")
    order: Order | None = Order(allocations.SELECTION if kind in _SELECTING else allocations.SCORED)
    if kind == ORDERING_KIND or definition.weighed is not None:  # before a decision
        order = Order(allocations.SCORED, scores=np.tile([0.0, np.inf], (len(workload), 1)))
    # it is that of coming, or of a rule
    if follows or (scheduler.moves_submissions and not orders):
        order = None
    agent = Agent(
        order, asks, definition.keeps, definition.shutdown_action,
        picks=kind == CANDIDATES_KIND, puts_off=definition.puts_off, breaks_s=definition.breaks_s,
        sees=definition.sees, anew=definition.weighed is not None,
    )  # fmt: skip
    return prepare(
        workload, scheduler, Place(machines.place, machines.cluster, machines.units),
        agent=agent, counts=counts, several=True,
        logs_ends=scheduler.moves_submissions or "sharing" in machines.told,
    )  # fmt: skip


def arrays_in(values: Any) -> Iterator[NDArray[Any]]:
    """Return all arrays and numbers in what is told, in their order."""
    if isinstance(values, Mapping):
        values = tuple(values.values())
    if isinstance(values, tuple | list):
        for part in values:
            yield from arrays_in(part)
    elif values is not None:
        yield np.asarray(values)


def scales_of(options: Options, episodes: Episodes, episode: Episode) -> list[float]:
    """Return what the sum of each reward is multiplied by in an episode, 1 without a reference.

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
            with uncounted():
                result = simulate(jobs, reference.but(**rules), cluster=options.cluster)
        except HpcgymError as error:
            raise HpcgymError(f"reward: {scheduler_name(reference)}: {error}") from None
        metrics = metrics_within(result, *episode.counting)
        n = int(decided(jobs).sum()) if episode.last < 0 else episodes.number_counting(episode)
        total = metrics["jobs"] * metrics["mean_bsld"]
        scales.append(n / total if metrics["jobs"] else 1.0)
    return scales
