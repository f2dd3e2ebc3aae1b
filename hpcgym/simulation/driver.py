"""A simulation that runs up to a time, and the answers to the engine's questions on its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, Features, Model
from hpcgym._engine import Simulation as Native
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.errors import HpcgymError
from hpcgym.machine.failures import Failures
from hpcgym.machine.pool import Cluster
from hpcgym.own_code import Extension
from hpcgym.scheduler.allocations import KILL, SCORED
from hpcgym.scheduler.asked_for import places_of_usage
from hpcgym.scheduler.dispatchers.asking import (
    Asking,
    JobFacts,
    LateDispatcher,
    begin,
    dispatch,
    facts_of,
    propose,
    view_of,
)
from hpcgym.scheduler.dispatchers.view import PassView
from hpcgym.scheduler.estimates.by_name import learns
from hpcgym.scheduler.estimates.learning import told_of_learning
from hpcgym.scheduler.orders import Order, columns_of, expressions_of
from hpcgym.scheduler.policies.features import Weighed, weighed
from hpcgym.scheduler.rules import plain
from hpcgym.simulation import warm_start
from hpcgym.simulation.fair_share import Accounts, accounts_of
from hpcgym.simulation.nodes import pool_as_node
from hpcgym.simulation.prepare import (
    NOBODY_ELSE,
    Agent,
    EngineInput,
    Place,
    job_records,
    pool_of,
    prepare,
)
from hpcgym.simulation.results import result_of, with_nodes
from hpcgym.workload.extracts import joined, taken_over, without_nodes
from hpcgym.workload.model import Initial

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.estimates.learning import Estimators, Learned
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

Columns = dict[str, NDArray[np.int64]]


@dataclass
class Simulation:
    """A simulation, and the parts in Python that answer it.

    Attributes
    ----------
    told : of jobs and rules.
    place : the machine.
    learning : predicts run times, or None.
    shares : accounts of users, or None.
    expressions : of the orders that are computed at each pass, as ``Model`` takes them.
    features : features whose weights order the queue, or None.
    dispatch : starts jobs in a pass, or tells their order; or None.
    late : a dispatcher whose calls take time, or None.
    after_pass : looks at what a pass has done, or None.
    beginning : the state with running or waiting jobs from which it begins, or None.
    """

    told: EngineInput
    place: Place
    learning: warm_start.Learning | None = None
    shares: Accounts | None = None
    expressions: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    features: Features | None = None
    dispatch: Callable[[Asking], None] | None = None
    late: LateDispatcher | None = None
    after_pass: Callable[[Native], None] | None = None
    beginning: warm_start.Beginning | None = None

    @cached_property
    def native(self) -> Native:
        """The simulation of the engine, which begins at the first access.

        Raises
        ------
        WorkloadError : jobs that cannot run when it begins.
        """
        native, stuck = self.begun()
        if self.beginning is not None and stuck >= 0:
            raise warm_start.cannot_run(self.beginning, stuck, native.run_time(stuck))
        return native

    def model(self, several: bool = False) -> Model:
        """Return the jobs and rules as the engine has them.

        ``several``: several simulations have parts of the jobs.
        """
        learning = self.learning
        return Model(
            **self.told.arguments(),
            **self.place.told,
            learning=None
            if learning is None
            else told_of_learning(learning.estimators, learning.learner),
            accounts=self.shares,
            expressions=self.expressions,
            features=self.features,
            ticks=self.place.units.ticks,
            several=several,
        )

    def begun(self) -> tuple[Native, int]:
        """Return a new simulation, and the first job that cannot run when it begins, -1 if all can.

        Raises
        ------
        WorkloadError : running jobs that together need more processors than there are.
        """
        begins, stuck = self.beginning, -1
        if begins is not None:
            warm_start.check_running(begins)
        native = Native(self.model())
        if begins is not None:
            go_on = partial(native.begin, **begins.arguments("nodes" in self.place.told))
            stuck = go_on()
            while native.asked:
                self._answer(native)
                stuck = go_on()
        return native, stuck

    def drive(self, until: int = FOREVER, passes: int = FOREVER) -> int:
        """Simulate up to the time ``until``, or so many passes; return how many were done.

        The next call goes on from there.
        """
        native, late, after_pass, done = self.native, self.late, self.after_pass, 0
        while True:
            stop = until if late is None else min(until, late.due)
            made = native.run(stop, passes - done if after_pass is None else 1)
            done += made
            if native.asked:
                self._answer(native)
            elif after_pass is not None and made:
                after_pass(native)
            elif late is not None and stop == late.due < FOREVER:
                late.arrive(Asking(native, self.told.jobs, self.place.nodes))
            else:
                return done

    def _answer(self, native: Native) -> None:
        """Answer a question of the engine, by a policy, a dispatcher or a predictor in Python."""
        if native.asked in ("order", "job", "starts"):
            assert self.dispatch is not None
            self.dispatch(Asking(native, self.told.jobs, self.place.nodes))
        else:
            assert self.learning is not None
            self.learning.answer(native)

    def schedule(self) -> Columns:
        """Return the schedule so far: ``Simulation.schedule`` of the native engine.

        Also has ``submit``, ``run`` and ``requested`` of each job, (n_jobs,) [s].
        """
        return with_jobs(self.native.schedule(), self.told.jobs, self.told.rules)

    def learned(self) -> Learned | None:
        """Return what has been learned of run times so far; None if no estimate learns."""
        if self.learning is None:
            return None
        self.learning.take(self.native)
        return self.learning.learned

    def for_result(self, schedule: Columns) -> dict[str, Any]:
        """Return what a result tells of learning, by its attributes."""
        if self.learning is None:
            return {}
        times = schedule.get("ordered_by") if len(schedule["start"]) else None
        return {"learned": self.learned(), **learned_times(self.learning.estimators, times)}


def learned_times(by: Estimators, times: NDArray[np.int64] | None) -> dict[str, Any]:
    """Return the run times that were learned for policies and candidates, by attributes of results.

    ``times``: of the second estimate, (n_jobs,) [s], or None.
    """
    names = ("policy_run_time", "candidate_run_time")
    return {name: times for name, is_of in zip(names, by.is_of, strict=True) if is_of}


def with_jobs(schedule: Columns, jobs: NDArray[np.void], rules: Mapping[str, int]) -> Columns:
    """Return a schedule of the native engine with ``submit``, ``run`` and ``requested`` of jobs.

    ``jobs``: those that the simulation was told of, JOBS.
    """
    # the engine has its own where jobs come late, are cancelled or run at a lower level
    for name in ("submit", "run", "requested"):
        schedule.setdefault(name, np.ascontiguousarray(jobs[name]))
    if rules.get("correction") == KILL:
        shorter = np.minimum(schedule["run"], schedule["predicted"])
        schedule["run"] = np.where(schedule["start"] >= 0, shorter, schedule["run"])
    return schedule


def new_simulation(
    workload: Workload,
    scheduler: Scheduler,
    place: Place,
    learned: Learned | None = None,
    always_learns: bool = False,
    agent: Agent = NOBODY_ELSE,
) -> Simulation:
    """Return a simulation before its first event.

    A simulation of an extract begins with the state of the extract, and with what has been learned
    from its past unless ``learned`` is given. ``always_learns``: learning is kept even where the
    engine could average by itself, and would not report it. ``agent``: decisions from outside.

    Raises
    ------
    HpcgymError : rules that do not go together.
    WorkloadError : a job that cannot be simulated.
    """
    learning, counts = None, any(scheduler.usage_orders)
    asks = scheduler.asks_for_predictions
    asks |= (learned is not None or always_learns) and learns_in(scheduler)
    engine_input = prepare(
        workload,
        scheduler,
        place,
        agent=agent,
        predicts=asks,
        counts=counts,
        logs_ends=counts or place.name != "pool" or scheduler.restricts,
    )
    if asks:
        before = learned
        if learned is None:
            before = warm_start.learned_before(workload, scheduler, place.cluster)
        learning = warm_start.Learning(workload, scheduler, engine_input, before)
    cluster, ticks = place.cluster, place.units.ticks
    return Simulation(
        engine_input,
        place,
        learning,
        accounts_of(workload, scheduler, cluster, ticks) if counts else None,
        expressions_of(workload, scheduler),
        beginning=warm_start.beginning_of(workload, scheduler, cluster, engine_input),
    )


def by_weights(
    workload: Workload,
    scheduler: Scheduler,
    place: Place,
    features: tuple[str, ...],
    asks: bool = False,
) -> tuple[Run, Weighed]:
    """Return a simulation whose queue is ordered by weights over features, and these features.

    The weights are set as it runs, so no scheduler goes on with an extract of such a simulation.
    ``asks``: whether it asks for weights before each pass in which a job may start.

    Raises
    ------
    HpcgymError, WorkloadError : as of :func:`new_simulation`.
    """
    agent = Agent(Order(SCORED), asks=asks)
    simulation = new_simulation(taken_over(workload), scheduler, place, agent=agent)
    columns, usage = columns_of(workload, scheduler), places_of_usage(features).tolist()
    mixed = weighed(columns, features, len(workload))
    args = mixed.static, mixed.formulas, mixed.places, mixed.serial, np.array(columns.times), usage
    simulation.features = Features(*args)
    return run_of(workload, scheduler, simulation), mixed


class Run(NamedTuple):
    """A simulation, and the function that makes the result on its kind of machine.

    Attributes
    ----------
    workload : its jobs; in an extract only jobs that find room are running.
    simulation : before its first event.
    result : a function of the schedule and of further attributes that returns the result.
    """

    workload: Workload
    simulation: Simulation
    result: Callable[[Columns, dict[str, Any]], Result]

    def finish(self, **attributes: Any) -> Result:
        """Simulate to the end; return the result, with further attributes ``attributes``."""
        simulation = self.simulation
        simulation.drive()
        schedule, late = simulation.schedule(), simulation.late
        attributes["dispatching"] = None if late is None else late.dispatching
        return self.result(schedule, attributes | simulation.for_result(schedule))


def run_of(
    workload: Workload,
    scheduler: Scheduler,
    simulation: Simulation,
    needs: NDArray[np.int64] | None = None,
    failures: Failures | None = None,
) -> Run:
    """Return a simulation on a pool, or on nodes that jobs may share, with its result function.

    ``needs``: demands of the jobs on nodes, if known; ``failures``: of the nodes.
    """

    def result(schedule: Columns, attributes: dict[str, Any]) -> Result:
        given = simulation.told.rules, workload, simulation.place.cluster, scheduler
        bare = result_of(simulation.native, schedule, *given)
        return with_nodes(replace(bare, **attributes), schedule, needs, failures)

    return Run(workload, simulation, result)


def with_room(workload: Workload, simulation: Callable[[Workload], Simulation]) -> Workload:
    """Return an extract in which each running job finds room on a machine; the others wait.

    ``simulation``: returns a simulation of these jobs on it, with rules about nodes only.
    """
    while (initial := workload.initial) is not None:
        before = int(np.searchsorted(workload.submit_time, initial.begin))
        _, stuck = simulation(workload.take(slice(before))).begun()
        if stuck < 0:
            break
        workload = without_nodes(workload, stuck)
    return workload


def check_learned(scheduler: Scheduler, learned: Learned | None) -> None:
    """Raise an HpcgymError for ``learned`` if no estimate of the scheduler learns."""
    if learned is not None and not learns_in(scheduler):
        raise HpcgymError("learned: no estimate of this scheduler learns")


def learns_in(scheduler: Scheduler) -> bool:
    """Return whether an estimate of the scheduler learns."""
    return learns(scheduler.estimate) or learns(scheduler.second_estimate)


def order_of(
    jobs: Workload,
    rules: Scheduler,
    now: int,
    running: Workload | None = None,
    processors: int = 0,
    past: Workload | None = None,
) -> NDArray[np.int64]:
    """Return the rows of waiting jobs in the order of a policy, (n,) int64.

    Parameters
    ----------
    jobs : all waiting jobs, in order of submission, none submitted later than now.
    rules : a policy, the run times that it looks at, and a threshold, without backfilling.
    now : [s] of the jobs' clock.
    running : running jobs, with their waiting times, if a policy looks at the state.
    processors : of the machine; at least those of the running jobs.
    past : jobs that have ended, with the times that they waited and ran, if a policy looks at what
        is learned from them.
    """
    if not len(jobs):
        return np.zeros(0, np.int64)
    if running is None:
        running = jobs.take(slice(0, 0))
    # a job that has just started may have done so by a clock somewhat ahead of this one
    start = np.minimum(running.submit_time + running.wait_time, now - 1)
    # they run on, also beyond their limits
    longer = np.maximum(running.requested_time, now + 1 - start)
    running = running.with_columns(run_time=longer, requested_time=longer)
    order = np.argsort(np.concatenate([running.submit_time, jobs.submit_time]), kind="stable")
    place, n_running = np.argsort(order), len(running)  # in both together
    both = joined(running, jobs)
    size = max(processors, int(running.requested_processors.sum()), both.processors)
    began = np.full(len(both), -1)
    began[place[:n_running]] = start
    known = replace(
        both, initial=Initial(now, began, both.take(slice(0)) if past is None else past)
    )
    learned = warm_start.learned_before(known, rules) if learns_in(rules) else None
    simulation = new_simulation(both, rules, pool_of(both, Cluster(size)), learned)
    by_start, native = np.argsort(start, kind="stable"), simulation.native
    before: dict[str, Any] = {}
    if simulation.told.kept:
        before["history"] = warm_start.history_of(known, simulation.told).reshape(-1)
    native.begin(
        time=now,
        due=True,
        running=place[:n_running][by_start],
        start=start[by_start],
        predicted=both.requested_time,
        promised=np.full(len(both), -1),
        **before,
    )
    rows: NDArray[np.int64] = order[native.in_order(place[n_running:])] - n_running
    return rows


# --- Policies and dispatchers in Python -----------------------------------------------------------
#
# The engine does the rest: which jobs fit, the reservation of the head, backfilling. So a policy
# that is a function needs no EASY of its own, unlike a dispatcher.


def let_answer(simulation: Simulation, workload: Workload, scheduler: Scheduler) -> Any:
    """Let the policy or the dispatcher of a scheduler answer, if it is one in Python.

    Returns
    -------
    dispatcher : the dispatcher, which has been told that a simulation begins, or None.
    """
    place, policy, dispatcher = simulation.place, scheduler.order.function, scheduler.dispatcher
    if dispatcher is None and policy is None:
        return None
    ask: Callable[..., None] = dispatch
    view: Callable[..., PassView] = Asking.view
    alone = place.name == "whole nodes"
    if alone:
        held_back = np.zeros(len(workload), np.int64)
        kept: dict[str, Any] = {"capacity": place.cluster.capacity, "held_back": held_back}
        ask, view = partial(propose, **kept), partial(view_of, **kept)
    elif place.nodes is None:
        view = _of_pool(workload, place)
    times = columns_of(workload, scheduler).times
    facts = facts_of(workload, place.cluster, times, pool=place.nodes is None and not alone)
    if policy is not None:
        begin(policy)
        stops = scheduler.preemption is not None
        simulation.dispatch = partial(_score, policy, scheduler.order.other, view, facts, stops)
    if dispatcher is None:
        return None
    if isinstance(dispatcher, str):
        dispatcher = find_dispatcher(dispatcher)
    begin(dispatcher)
    simulation.dispatch = partial(ask, dispatcher, facts=facts)
    if scheduler.dispatch_time:
        simulation.late = LateDispatcher(dispatcher, scheduler.dispatch_time, facts)
        simulation.dispatch = simulation.late.at_pass
    return dispatcher


def _of_pool(workload: Workload, place: Place) -> Callable[[Asking, JobFacts], PassView]:
    """Return the function that makes views of a pool, or of shared nodes, as one node."""
    shown: dict[str, Any] = {}
    if place.name == "shared nodes":  # whose clock has ticks
        shown = {"jobs": job_records(workload), "ticks": place.units.ticks}
    shown["nodes"] = pool_as_node(workload.requested_processors, place.cluster.processors)
    return lambda asking, facts: asking._replace(**shown).view(facts)


def _score(
    policy: Callable[[PassView], Any],
    other: Extension | None,
    shown: Callable[[Asking, JobFacts], PassView],
    facts: JobFacts,
    stops: bool,
    asking: Asking,
) -> None:
    """Ask a policy, which may be of another package, for the scores of queued jobs at a pass.

    ``stops``: whether running jobs may be stopped; one that is waits in that pass behind others.

    Raises
    ------
    HpcgymError : an answer that is not one number for each queued job, or an error of the package.
    """
    view = shown(asking, facts)
    with nullcontext() if other is None else other.blamed(policy):
        answer, n = policy(view), len(view.job)
    try:
        given = np.asarray(answer)
    except Exception as error:  # whatever a library's own array may raise
        raise HpcgymError(f"policy {plain(policy)} at {view.time} s: {error}") from error
    if given.shape == (n,) and given.dtype.kind in "biuf":
        scores: NDArray[np.float64] = given.astype(np.float64)
        if not np.isnan(scores).any():
            jobs, running = view.job, view.running_job
            if stops:
                jobs = np.concatenate([jobs, running])
                scores = np.concatenate([scores, np.full(len(running), -np.finfo(np.float64).max)])
            asking.native.order(jobs, scores)
            return
        got = "numbers of which some are nan"
    elif given.ndim:
        got = f"an array of shape {given.shape}, {given.dtype}"
    else:
        got = repr(answer)[:60]
    raise HpcgymError(
        f"policy {plain(policy)} at {view.time} s: must return a number for each of the {n}"
        f" queued jobs, the highest first, not {got}"
    )
