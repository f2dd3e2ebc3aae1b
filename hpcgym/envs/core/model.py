"""What the engine is told of all episodes of an environment, and the arrays of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Model, Simulation, fields_of
from hpcgym.baselines.labels import scheduler_name
from hpcgym.envs.core.base import (
    EPISODE_INTERVAL,
    ORDERING_KIND,
    PAIR_SCORES_KIND,
    PAIRS_KIND,
    PASSES_INTERVAL,
    SECONDS_INTERVAL,
    SELECTION_KIND,
    SUBMISSIONS_INTERVAL,
    WEIGHTS_KIND,
    Definition,
    Options,
)
from hpcgym.envs.core.episodes import Episode, Episodes, counted
from hpcgym.envs.core.machines import CONTROLS, CorunMachines, LimitedMachines, Machines
from hpcgym.envs.core.observation import (
    N_TOLD,
    POWER_SIZE,
    WINDOW_FEATURES,
    Layout,
    Outputs,
    PairLayout,
)
from hpcgym.envs.core.reward import MAX_WAIT, N_TERMS, PAID_AT_END
from hpcgym.errors import HpcgymError
from hpcgym.files import header_number
from hpcgym.schedule.measures import metrics_within
from hpcgym.scheduler import allocations
from hpcgym.scheduler.allocations import KILL, RANDOM
from hpcgym.scheduler.asked_for import check_fair_share, counts_usage, own_site_rules
from hpcgym.scheduler.estimates.by_name import predicted_run_times
from hpcgym.scheduler.estimates.learning import (
    Estimators,
    Learner,
    asks_for_predictions,
    knowledge,
    told_of_learning,
)
from hpcgym.scheduler.policies.features import JobColumns, weighed
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.fair_share import warn_of_weights
from hpcgym.simulation.prepare import Agent, Place, Told, check_jobs, prepare
from hpcgym.simulation.restricted import Order, what_moves
from hpcgym.simulation.run import simulate
from hpcgym.simulation.warm_start import (
    Beginning,
    Learning,
    beginning_of,
    cannot_run,
    check_extract,
    check_running,
    learned_before,
    taken_over,
)
from hpcgym.workload.extracts import decided
from hpcgym.workload.model import Cells, Workload

# where an environment is, and what all of a table share; native/envs/records.hpp says what each is
EPISODE = np.dtype((np.record, fields_of("Episode")))
SETTINGS = np.dtype((np.record, fields_of("Settings")))
STEP, BEGIN, SHOW = range(3)  # what is to be done with simulations


# --- With what episodes of extracts begin, as the engine takes it ---------------------------------

Arrays = dict[str, NDArray[Any]]
_NONE = np.zeros(0, np.int64)


class AllJobs(NamedTuple):
    """The jobs of all episodes, as the engine is told of them; ``learning``: None without any."""

    options: Options
    machines: Machines
    told: Told
    learning: tuple[Estimators, Learner] | None


def beginnings_of(all_jobs: AllJobs, episodes: Episodes) -> list[Arrays]:
    """Return with what episodes begin; nothing where that is an empty machine.

    Raises
    ------
    HpcgymError, WorkloadError : as :func:`hpcgym.simulate` does of such an extract.
    """
    found, start = [], 0
    for part in episodes.beginnings:
        # all episodes of an extract have the jobs that were submitted before it, and then some
        own = part.take(slice(0, episodes.longest), name=part.name)
        found.append(_beginning(all_jobs, own, start))
        start += len(part)
    return found


def _beginning(all_jobs: AllJobs, part: Workload, start: int) -> Arrays:
    """Return the same of a part whose jobs stand in the table from a row on."""
    rules, all_of = all_jobs.options.scheduler, all_jobs.told
    rows = slice(start, start + len(part))
    predicted = None if all_of.predicted is None else all_of.predicted[rows]
    own = replace(all_of, jobs=all_of.jobs[rows], users=all_of.users[rows], predicted=predicted)
    learning = None
    if all_jobs.learning is not None:
        by, learner = all_jobs.learning
        learner = Learner._make([array.copy() for array in learner])
        learning = _part_of(by, rows), learner
        if part.initial is not None:
            Learning(part, rules, own, learned_before(part, rules), learning)
    begins = beginning_of(taken_over(part), rules, all_jobs.options.cluster, own)
    # where nothing runs or waits, a submission is what happens first
    told: Arrays = dict.fromkeys(("running", "start", "predicted", "promised"), _NONE)
    told |= {"when": np.array([-1, 0, 0])}
    told["history"] = np.full(own.n_users * own.rules["last"], -1)
    if begins is not None and begins.history.size:
        told["history"] = begins.history.reshape(-1)
    nodes: Arrays = {"first": np.zeros(1, np.int64), "node": _NONE, "units": _NONE, "drawn": _NONE}
    if begins is not None and begins.number > 0:
        check_running(begins)
        told |= begins.arguments(on_nodes=False)
        told["when"] = np.array([told.pop("time"), begins.number, told.pop("due")])
        nodes = _places(all_jobs, begins, start, learning) or nodes
    if "nodes" in all_jobs.machines.told:
        told |= nodes
    if learning is not None:
        told |= {name: one.reshape(-1) for name, one in knowledge(*learning).items()}
    return told


def _places(
    all_jobs: AllJobs,
    begins: Beginning,
    start: int,
    learning: tuple[Estimators, Learner] | None,
) -> Arrays:
    """Return the nodes of those that run, and what allocations go by then; nothing on a pool.

    Raises
    ------
    WorkloadError : one of them cannot run.
    """
    told, nodes = all_jobs.told, all_jobs.machines.told.get("nodes")
    number, rows = begins.number, slice(start, start + begins.number)
    kills = told.rules["correction"] == KILL
    more: dict[str, Any] = {}
    if learning is not None:
        by = _part_of(learning[0], slice(number))
        by = by._replace(looks=np.zeros_like(by.looks))  # there is no order here
        more = {"users": told.users[rows], "n_users": told.n_users}
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
            told.jobs[rows].view(np.int64).reshape(number, -1),
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
    return by._replace(**{name: one[rows] for name, one in named.items() if len(one)})


# --- What the simulations of an environment are made of -------------------------------------------

_INTERVALS = {
    "pass": PASSES_INTERVAL,
    "seconds": SECONDS_INTERVAL,
    "submissions": SUBMISSIONS_INTERVAL,
    "episode": EPISODE_INTERVAL,
}


def check_episodes(definition: Definition, episodes: Episodes) -> None:
    """Raise unless the episodes can be simulated by these arguments of an environment.

    Raises
    ------
    HpcgymError : rules that do not go together, or predictions of other jobs.
    WorkloadError : a job that is larger than the machine.
    """
    options, workload = definition.options, episodes.workload
    limited, corun = definition.limited, definition.corun
    for rule in ("estimate", "policy_estimate"):
        given = not isinstance(getattr(options.scheduler, rule), str)
        if given and workload is not options.workload:
            raise HpcgymError(
                f"{rule}: predictions of one's own are for all jobs of the workload, and "
                f"episodes={episodes.kind!r} leave some out; use 'windows' or 'whole'"
            )
    check_jobs(workload, options.cluster.processors)
    if not episodes.alone and (limited is not None or corun is not None):
        where = "nodes of jobs' own" if corun is None else "nodes that jobs share"
        raise HpcgymError(
            f"start, warmup, arrivals and horizon do not go with {where}: what is drawn there, and"
            " how fast jobs run, is told of a whole episode, with no slice of it set apart"
        )
    if options.scheduler.hold is not None and options.scheduler.moves_submissions:
        raise HpcgymError(
            f"hold and {what_moves(options.scheduler)} do not go together in environments: the"
            " agent is asked before those jobs come that others have let come"
        )
    moves, preempts = options.scheduler.moves_submissions, options.scheduler.preemption is not None
    if moves and preempts:
        raise HpcgymError(
            f"preemption and {what_moves(options.scheduler)} do not go together in environments: an"
            " episode is over when nobody can be stopped any more, and then others may come"
        )
    if not episodes.alone and moves:
        raise HpcgymError(
            f"{_around(episodes)} not go with {what_moves(options.scheduler)}: they go by"
            f" submissions that are known before; {_ALONE}"
        )
    if not episodes.alone and preempts:
        raise HpcgymError(
            f"{_around(episodes)} not go with {options.scheduler.said('preemption')}: they"
            f" go by starts that are final; {_ALONE}"
        )
    if options.rewards.function is not None and preempts:
        raise HpcgymError(
            "reward: a function of one's own sees the jobs that started, and with preemption no"
            " start is final; take a name, or weights by name"
        )
    places = ["environments under limits"] * (limited is not None)
    places += ["shared nodes"] * (corun is not None)
    check_extract(workload, *places)
    if limited is not None:
        check_own_nodes(definition)
    if definition.shutdown_action:
        check_extract(workload, shutdown="shutdown_action")
    if definition.shutdown_action and options.cluster.groups:
        raise HpcgymError("shutdown_action is for pools of processors, not for nodes")


_ALONE = "version 0 has none of these, and start='empty', warmup=None, arrivals='stop' neither"


def _around(episodes: Episodes) -> str:
    """Return what episodes have around their jobs, given or by default, and "does" or "do"."""
    usual = {"start": "empty", "warmup": None, "arrivals": "stop", "horizon": None}
    found = {name: episodes.around[name] for name in usual}
    told = [f"{name}={value!r}" for name, value in found.items() if value != usual[name]]
    told += ["episodes='stream'"] if episodes.kind == "stream" else []
    return f"{', '.join(told)} {'does' if len(told) == 1 else 'do'}"


def check_own_nodes(definition: Definition) -> None:
    """Raise an HpcgymError for rewards that do not go with nodes of jobs' own."""
    rewards = definition.options.rewards
    if any(row[MAX_WAIT] for row in rewards.weights):
        raise HpcgymError(
            "reward 'max_wait' does not go with nodes of jobs' own: these tell of waits when jobs"
            " have started, not how long the longest is by then; take 'p99_wait'"
        )
    if any(rewards.references) and definition.limited and definition.limited.limits_of:
        raise HpcgymError(
            "reward: bsld/NAME does not go with limits, for the scheduler NAME would be simulated"
            " without them; take 'bsld'"
        )


def layout_of(definition: Definition) -> Layout:
    """Return the layout of observations."""
    options, limited = definition.options, definition.limited
    if definition.corun is not None:
        return PairLayout(options.window, definition.corun.neighbours, options.flat)
    has_limits = limited is not None and limited.limits_of is not None
    extra = POWER_SIZE if has_limits else 0
    return Layout(options.window, len(options.names), options.flat, extra)


def machines_of(definition: Definition, episodes: Episodes) -> Machines:
    """Return the machines of simulations of episodes."""
    if definition.limited is not None:
        return LimitedMachines(definition.limited, definition.options, episodes.workload)
    if definition.corun is not None:
        return CorunMachines(definition.corun, definition.options, episodes)
    return Machines(definition.options, episodes.workload)


def settings_of(definition: Definition, layout: Layout, **others: Any) -> NDArray[np.void]:
    """Return what all simulations share, (1,) :data:`hpcgym.envs.core.model.SETTINGS`.

    ``others`` are fields of it.
    """
    settings, options = np.zeros(1, SETTINGS), definition.options
    every, length = definition.interval
    known = {
        "interval": _INTERVALS[every], "interval_length": length, "kind": definition.kind,
        "by_action": definition.shutdown_action, "skips": definition.skips,
        "paid": options.rewards.paid, "split": options.split,
    }  # fmt: skip
    for name, value in (known | others).items():
        settings[name] = value
    if definition.corun is None:
        settings["seen_power"] = layout.power_at
        controls = () if definition.limited is None else definition.limited.controls
        for name in CONTROLS:  # where they stand in the action, behind the weights
            at = len(definition.features) + controls.index(name) if name in controls else -1
            settings[f"act_{name}"] = at
    return settings


def table_of(
    options: Options,
    workload: Workload,
    machines: Machines,
    settings: NDArray[np.void],
    ordered_by: NDArray[np.int64],
) -> dict[str, NDArray[Any]]:
    """Return what steps look at of all episodes, beside what the engine is told; never changed.

    ``ordered_by``: what policies look at, (n_rows,) [s].
    """
    own = dict(options.own)
    places = {name: k for k, name in enumerate((*WINDOW_FEATURES, *own))}
    return {
        # (n_rows, n_own) users' own columns of the window
        "columns": _own_columns(own, JobColumns(workload), len(workload)),
        # (n_columns,) which feature each column of the window is
        "codes": np.array([places[name] for name in options.names], np.int64),
        "ordered_by": ordered_by,
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


def outputs_of(options: Options, layout: Layout, number: int, n_actions: int) -> Outputs:
    """Return room for what is told of that many simulations."""
    return Outputs(
        observations=np.zeros((number, layout.size), np.float32),
        masks=np.zeros((number, n_actions), np.int8),
        rewards=np.zeros((number, len(options.rewards.weights))),
        ended=np.zeros(number, np.bool_),
        truncated=np.zeros(number, np.bool_),
        told=np.zeros((number, N_TOLD + options.window), np.int64),
        terms=np.zeros((number, N_TERMS)),
    )


def numbers_of(definition: Definition, layout: Layout) -> int:
    """Return how many numbers there is room for in an action, at least one."""
    if definition.kind in (ORDERING_KIND, PAIR_SCORES_KIND):
        return max(layout.scores, 1)
    controls = () if definition.limited is None else definition.limited.controls
    return max(len(definition.features) + len(controls), 1)


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


def batch_of(
    options: Options, longest: int, number: int, n_nodes: int, neighbours: int
) -> SimpleNamespace:
    """Return what steps write of the episodes of that many simulations, n, a row for each.

    There are books of ``n_nodes`` nodes, and lists of so many ``neighbours``, M.
    """
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
        begun_j=np.zeros(number),  # energy since an extract began, which its first step takes
        norms=np.zeros((number, N_TERMS)),  # what makes rewards of terms
        scales=np.ones(rewards),  # what rewards are multiplied by: n / a reference
        next_scales=np.ones(rewards),  # of the episode that follows
        # slowdowns and waits [s] so far of jobs that wait; where jobs may be stopped, all sums that
        # a later step may correct, for ENERGY in processor seconds
        owed=np.zeros((number, N_TERMS)),
        unpaid=np.zeros((number, late), np.int64),  # jobs that run and are paid when they end
        gone=np.zeros((number, late), np.int64),  # jobs that were paid so in the last step
        gone_bsld=np.zeros((number, late)),  # their bounded slowdowns
        busy_until=np.zeros((number, n_nodes), np.int64),  # [s] the last end of the jobs of a node
        # (n, M) running jobs beside whom others may start, as they began
        neighbours=np.zeros((number, neighbours), np.int64),
    )


def clock_of(workload: Workload) -> int:
    """Return the time of the week at the trace's time 0 [s], by its header, else Monday 0 h."""
    began = header_number(workload.header, "UnixStartTime", least=0)
    return 0 if began is None else (began - 4 * 86_400) % 604_800  # the epoch was a Thursday


# --- What the engine is told of the jobs of all episodes ------------------------------------------

# kinds in which single jobs are started from outside
_SELECTING = (SELECTION_KIND, PAIRS_KIND, PAIR_SCORES_KIND)


def told_of(workload: Workload, machines: Machines, definition: Definition, counts: bool) -> Told:
    """Return what the engine is told of the jobs of all episodes, and of the rules.

    ``counts``: whether somebody looks at what users have used.
    """
    kind, by_weights = definition.kind, definition.kind == WEIGHTS_KIND
    # whether the agent says the order of the queue, by weights or otherwise
    orders = not by_weights or bool(definition.features)
    scheduler = machines.rules
    asks = kind == ORDERING_KIND or (by_weights and definition.interval[0] == "pass")
    order: Order | None = Order(allocations.SELECTION if kind in _SELECTING else allocations.SCORED)
    if kind == ORDERING_KIND:  # before a decision
        order = Order(allocations.SCORED, scores=np.tile([0.0, np.inf], (len(workload), 1)))
    if scheduler.moves_submissions and not orders:  # it is that of coming
        order = None
    return prepare(
        workload, scheduler, Place(machines.place, machines.cluster, machines.units),
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
    if kind == WEIGHTS_KIND:
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
