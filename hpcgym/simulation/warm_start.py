"""Simulations that begin with running jobs, and run times as predicted at the beginning."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Model, Simulation
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.names import MEMORY
from hpcgym.scheduler.asked_for import check_extract
from hpcgym.scheduler.estimates.by_name import (
    JOB_FACTS,
    JOB_FEATURES,
    NAME,
    REQUEST,
    Predictor,
    predictor_of,
)
from hpcgym.scheduler.estimates.learning import (
    N_ROWS,
    Estimators,
    Learned,
    LearnedState,
    in_words,
    make_estimators,
    make_learner,
    terms_of,
    told_of_learning,
    two_estimates,
)
from hpcgym.simulation.prepare import EngineInput, job_records
from hpcgym.workload.checks import check_jobs
from hpcgym.workload.codes import code_names
from hpcgym.workload.columns import MAX_TIME, distinct, first_of_each
from hpcgym.workload.extracts import joined, last_of_users, past_jobs, recorded_run_time

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Initial, Workload
    from hpcgym.workload.ongoing import Cells, Ongoing


# --- Simulations whose run times are predicted from the jobs that have ended in them --------------
#
# The engine predicts and learns by itself, except with predictors in Python, which are called here.


class Learning:
    """Predicts run times in a simulation, and keeps what has been learned.

    Parameters
    ----------
    workload, scheduler : the jobs and the rules.
    told : what the simulation is told of jobs and users.
    learned : what an earlier simulation has learned, or None.
    parts : estimators and learner, if this is one of many simulations; None: new ones.

    Raises
    ------
    HpcgymError : ``learned`` is of another type, or was learned for other estimates.
    """

    def __init__(
        self,
        workload: Workload,
        scheduler: Scheduler,
        told: EngineInput,
        learned: Learned | None = None,
        parts: tuple[Estimators, LearnedState] | None = None,
    ) -> None:
        self._workload, users = workload, told.users
        self._estimates = in_words(scheduler)
        self._predictors = [predictor_of(estimate) for estimate in two_estimates(scheduler)]
        if parts is None:
            estimators = make_estimators(
                scheduler,
                users,
                workload.requested_processors,
                told.jobs["processors"],
                told.processors,
            )
            parts = estimators, make_learner(scheduler, told.n_users, estimators.classes)
        self.estimators, self.learner = parts
        n_users = len(self.learner.memory)
        self._places = _Places(workload, users, self.estimators.classes, n_users)
        if learned is not None:
            self._go_on(learned)

    def _go_on(self, learned: Learned) -> None:
        """Begin with what another simulation has learned."""
        if not isinstance(learned, Learned):
            raise HpcgymError(f"learned must be the attribute of a result, not {learned!r}")
        if learned.estimates != self._estimates:
            raise HpcgymError(
                f"learned: it was learned for the estimates {' and '.join(learned.estimates)}, "
                f"not for {' and '.join(self._estimates)}"
            )
        for user, row in self._places.memory.items():
            if user in learned.memory:
                self.learner.memory[row] = learned.memory[user]
        for key, row in self._places.ratios.items():
            if key in learned.ratios:
                self.learner.ratios[row] = learned.ratios[key]
        self.learner.model[:] = learned.model
        self.learner.model_sums[:] = learned.model_sums
        self._predictors = [copy.deepcopy(predictor) for predictor in learned.predictors]
        self._before = learned

    _before: Learned | None = None
    _taught = 0  # jobs that the predictors in Python have learned from

    @property
    def learned(self) -> Learned:
        """What has been learned up to now."""
        learner, before = self.learner, self._before
        memory = _Rows(self._places, "memory", learner.memory.copy())
        ratios = _Rows(self._places, "ratios", learner.ratios.copy())
        return Learned(
            self._estimates,
            memory if before is None else {**before.memory, **memory},
            ratios if before is None else {**before.ratios, **ratios},
            learner.model.copy(),
            learner.model_sums.copy(),
            (copy.deepcopy(self._predictors[0]), copy.deepcopy(self._predictors[1])),
        )

    def teach(self, native: Simulation) -> None:
        """Teach the predictors in Python the jobs that have ended since the last time."""
        asked = [predictor for predictor in self._predictors if predictor is not None]
        if not asked:
            return
        ended = native.ended(self._taught).tolist()
        for job in ended:
            run = float(native.run_time(job))
            for predictor in asked:
                predictor.learn_one(self._facts_of(predictor, job, native.features(job), 0.0), run)
        self._taught += len(ended)

    def answer(self, native: Simulation) -> None:
        """Answer what a simulation asks for: by predictors in Python."""
        self.teach(native)
        first, second = self._predictors
        if native.asked == "renewal":
            assert second is not None
            rows = np.sort(native.concerned())
            facts = [
                self._facts_of(second, job, native.features(job, True), 0.0)
                for job in rows.tolist()
            ]
            native.renew(rows, np.array([_seconds(second, x) for x in facts], np.float64))
            return
        job, elapsed, now = native.job, 0.0, native.asked == "correction"
        if now:  # what policies look at stays as it was
            second, elapsed = None, float(native.time - native.start(job))
        x = native.features(job, now)
        answers = [
            None
            if predictor is None
            else _seconds(predictor, self._facts_of(predictor, job, x, elapsed))
            for predictor in (first, second)
        ]
        native.predict(*answers)

    def _facts_of(
        self, predictor: Predictor, job: int, x: Sequence[float], elapsed: float
    ) -> dict[str, Any]:
        """Return what a predictor in Python is told of a job, by name."""
        names = ("user_id", "group_id", "executable", "queue", "job_number")
        known = [int(self._workload.columns[name][job]) for name in names]
        facts: dict[str, Any] = dict(zip(JOB_FEATURES, x, strict=True))
        facts |= zip(JOB_FACTS, [*known, elapsed], strict=True)
        asked = getattr(predictor, "asks_for", ())
        if NAME in asked:
            facts[NAME] = self._codes.get(known[2], known[2])
        if REQUEST in asked:
            facts[REQUEST] = tuple(int(amounts[job]) for amounts in self._requests)
        return facts

    @cached_property
    def _codes(self) -> dict[int, str]:
        """The names of codes by number."""
        return code_names(self._workload)

    @cached_property
    def _requests(self) -> list[NDArray[np.int64]]:
        """What jobs ask for, each (n_jobs,): see :data:`hpcgym.scheduler.estimates.REQUEST`."""
        jobs = self._workload
        if jobs.units is None:
            return [jobs.requested_processors]
        return [jobs.units, *(of for name, of in jobs.per_unit.items() if name != MEMORY)]

    def take(self, native: Simulation) -> None:
        """Learn from all jobs that have ended, and keep what the simulation has learned."""
        self.teach(native)
        learned = native.learned()
        for k, name in enumerate(("terms", "second_terms")):
            n = terms_of(self.estimators, k)
            self.learner.model[k, :, :n] = learned[name].reshape(N_ROWS, n)
        self.learner.memory[...] = learned["memory"].reshape(self.learner.memory.shape)
        self.learner.ratios[...] = learned["ratios"].reshape(self.learner.ratios.shape)
        self.learner.model_sums[...] = learned["sums"].reshape(2, 2)


class _Places:
    """Where what is learned stands in its tables; most never ask, so dictionaries are made late."""

    def __init__(
        self, workload: Workload, users: NDArray[np.int64], classes: NDArray[np.int64], n_users: int
    ) -> None:
        self._workload, self._users, self._classes = workload, users, classes
        self._n_users = n_users

    @cached_property
    def memory(self) -> dict[Any, int]:
        """The row of each user."""
        rows, first = first_of_each(self._users)
        return dict(zip(self._workload.user_id[first].tolist(), rows.tolist(), strict=True))

    @cached_property
    def ratios(self) -> dict[Any, int]:
        """The rows of all jobs, (), of each user and of each class."""
        if not len(self._classes):
            return {}
        rows: dict[tuple[int, ...], int] = {(): 0}
        rows.update({(user,): 1 + row for user, row in self.memory.items()})
        numbers, first = first_of_each(self._classes)
        ids, widths = self._workload.user_id[first], self._workload.requested_processors[first]
        for user, width, number in zip(
            *(of.tolist() for of in (ids, widths, numbers)), strict=True
        ):
            rows[user, width] = 1 + self._n_users + number
        return rows


class _Rows(Mapping[Any, NDArray[np.float64]]):
    """The rows of a table, by what stands in them; as a dictionary, which it is once pickled."""

    def __init__(self, places: _Places, of: str, table: NDArray[np.float64]) -> None:
        self._places, self._of, self._table = places, of, table

    @cached_property
    def _rows(self) -> dict[Any, NDArray[np.float64]]:
        places: dict[Any, int] = getattr(self._places, self._of)
        rows = self._table[np.fromiter(places.values(), np.int64, len(places))]
        return dict(zip(places, rows, strict=True))

    def __getitem__(self, key: Any) -> NDArray[np.float64]:
        return self._rows[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return dict, (self._rows,)


def _seconds(predictor: Predictor, x: dict[str, Any]) -> float:
    """Return a prediction [s], checked."""
    seconds = predictor.predict_one(x)
    try:
        return float("text" if isinstance(seconds, str) else seconds)
    except (TypeError, ValueError, OverflowError):
        raise HpcgymError(
            f"{type(predictor).__name__}.predict_one must return a number of seconds, "
            f"not {seconds!r}"
        ) from None


# --- Simulations of extracts ----------------------------------------------------------------------

Ints = NDArray[np.int64]


class Beginning(NamedTuple):
    """How a simulation begins that is one of an extract.

    Attributes
    ----------
    workload, scheduler, cluster : the extract, and by which rules it is simulated on which machine.
    time : [s] when it begins; what happens in that second is the first event.
    number : of jobs that were submitted before.
    due : whether a pass is due then, whatever happens.
    running, start : (n_running,) int64, jobs that run, in the order of their starts [s].
    predicted, promised : (number,) int64 [s], of the jobs before, but for what a learner predicts.
    history : (n_users, n) int64 [s] run times of the last jobs of each user where estimates are
        their mean, or orders look at them; -1 without any.
    ongoing : more, where the simulation goes on, else None.
    """

    workload: Workload
    scheduler: Scheduler
    cluster: Cluster
    time: int
    number: int
    due: bool
    running: Ints
    start: Ints
    predicted: Ints
    promised: Ints
    history: Ints
    ongoing: Ongoing | None

    @property
    def cells(self) -> Cells | None:
        """The nodes that jobs have on this machine; None if they are not known."""
        assert self.workload.initial is not None
        return own_cells(self.workload.initial, self.cluster)

    def arguments(self, on_nodes: bool) -> dict[str, Any]:
        """Return what ``Simulation.begin`` of the native engine takes, by name."""
        names = ("time", "due", "running", "start", "predicted", "promised")
        arguments: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.history.size:
            arguments["history"] = self.history.reshape(-1)
        ongoing, having = self.ongoing, self.running
        if ongoing is not None and ongoing.looks is not None and not self.due:
            arguments["looks"] = np.array(ongoing.looks)
        if ongoing is not None and ongoing.reserved is not None:
            arguments["reserved"] = ongoing.reserved
            # waiting jobs have nodes in the plan
            having = np.concatenate([having, np.setdiff1d(np.arange(self.number), having)])
        if on_nodes and self.cells is not None:
            arguments |= self.cells.take(having)._asdict()
        said = None if ongoing is None else ongoing.predictions
        if said is not None:
            if said.seen.shape[1]:
                arguments["seen"] = said.seen[: self.number].reshape(-1)
            arguments |= {
                "ordered_by": said.ordered_by[: self.number],
                "expected": said.expected[self.running],
                "corrections": said.corrections[self.running],
            }
        return arguments


def beginning_of(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, told: EngineInput
) -> Beginning | None:
    """Return how a simulation begins with the state of its workload; None if it has no state.

    Raises
    ------
    HpcgymError : a machine that switches processors off.
    """
    initial = workload.initial
    if initial is None:
        return None
    if told.rules.get("managed"):
        check_extract(workload, "shutdown")
    running = in_order(workload)
    ongoing = going_on(initial, scheduler, cluster)
    number = int(np.searchsorted(workload.submit_time, initial.begin))
    history, predicted = np.zeros((0, 0), np.int64), told.predicted
    if told.kept:
        history = history_of(workload, told)
    if predicted is None:  # averages
        past = history[told.users[:number], -told.rules["last"] :]
        requested = told.jobs["requested"][:number]
        average = np.minimum(past.sum(axis=1) // past.shape[1], requested)
        known = np.full(number, -1) if ongoing is None else ongoing.predicted[:number]
        predicted = np.where(known < 0, np.where(past[:, 0] < 0, requested, average), known)
    elif ongoing is not None and ongoing.predictions is not None:
        predicted = ongoing.predicted
    promised = np.full(number, -1) if ongoing is None else ongoing.promised[:number]
    due, start = _due(workload.submit_time, initial, ongoing), initial.start[running]
    of_jobs = running, start, predicted[:number], promised, history
    parts = workload, scheduler, cluster, initial.begin, number, due, *of_jobs, ongoing
    return Beginning(*parts)


def going_on(initial: Initial, scheduler: Scheduler, cluster: Cluster) -> Ongoing | None:
    """Return the state that a simulation left, if its scheduler goes on with it on its machine."""
    ongoing = initial.ongoing
    if ongoing is None or ongoing.cluster != cluster or ongoing.rules != scheduler.describe():
        return None
    return ongoing


def own_cells(initial: Initial, cluster: Cluster) -> Cells | None:
    """Return the nodes that jobs have; None if they are unknown, or those of another machine."""
    ongoing = initial.ongoing
    return ongoing.cells if ongoing is not None and ongoing.cluster == cluster else None


def learned_before(
    workload: Workload, scheduler: Scheduler, cluster: Cluster | None = None
) -> Learned | None:
    """Return what is learned of run times from the jobs that ended before the beginning.

    Each job is learned at its end, with its features at submission, which depend on the jobs that
    had ended or ran by then; or a simulation, which goes on here, had learned it. None if there are
    no such jobs.

    ``cluster``: the machine, on which a simulation may go on; None: none does.

    Raises
    ------
    WorkloadError : a job that cannot be simulated.
    """
    initial = workload.initial
    ongoing = None
    if initial is not None and cluster is not None:
        ongoing = going_on(initial, scheduler, cluster)
    if ongoing is not None and ongoing.predictions is not None:
        learned: Learned = ongoing.predictions.learned
        return learned
    if initial is None or not len(initial.past):
        return None
    runs = workload.take(initial.running)
    start = initial.start[initial.running]
    return _learn_log(initial.past, scheduler, initial.begin, runs, start)[0].learned


def predict_recorded(workload: Workload, scheduler: Scheduler) -> Ints:
    """Return what the estimate of a scheduler says of each job; see ``run.predict_recorded``."""
    start = workload.submit_time + np.maximum(workload.wait_time, 0)
    log = workload.with_columns(wait_time=start - workload.submit_time)
    begin = int((start + workload.run_time).max(initial=0)) + 1
    return _learn_log(log, scheduler, begin, log.take(slice(0)), start[:0])[1]


def _learn_log(
    past: Workload, scheduler: Scheduler, begin: int, runs: Workload, start: Ints
) -> tuple[Learning, Ints]:
    """Learn from the jobs of a log that had ended; return with what, and what was said of them.

    Parameters
    ----------
    past : the jobs that had ended by ``begin`` [s].
    scheduler : the rules, whose estimates learn.
    runs, start : the jobs that ran then, and their starts [s].

    Returns
    -------
    learning : of run times.
    said : (n_past,) [s], the first estimate of each job at its submission; empty if that is known
        beforehand or by a predictor in Python.

    Raises
    ------
    WorkloadError : a job that cannot be simulated.
    """
    order = np.argsort(np.concatenate([past.submit_time, runs.submit_time]), kind="stable")
    started = np.concatenate([past.submit_time + past.wait_time, start])[order]
    ended = (np.arange(len(order)) < len(past))[order]
    both = joined(past, runs)
    check_jobs(past, max(past.processors, int(past.requested_processors.max(initial=1))))
    jobs = job_records(both)
    jobs["run"][~ended] = MAX_TIME  # they run on
    known, users = distinct(both.user_id)
    predicted = np.zeros(len(both), np.int64)
    engine_input = EngineInput(
        jobs, len(both), int(jobs["processors"].sum()), {"logs": 1, "learns": 1},
        predicted=predicted, users=users, n_users=len(known),
    )  # fmt: skip
    learning = Learning(both, scheduler, engine_input)
    learns = told_of_learning(learning.estimators, learning.learner)
    native = Simulation(Model(**engine_input.arguments(), learning=learns))
    predictions = native.learn_from(
        past=np.flatnonzero(ended),
        by_start=np.argsort(started, kind="stable"),
        start=started,
        time=begin,
    )
    learning.take(native)
    return learning, predictions


def in_order(workload: Workload) -> Ints:
    """Return the jobs that run at the beginning, in the order of their starts."""
    initial = workload.initial
    assert initial is not None
    running = np.flatnonzero(initial.running)
    within = np.arange(len(workload)) if initial.ongoing is None else initial.ongoing.order
    return running[np.lexsort((within[running], initial.start[running]))]


def _due(submit_time: Ints, initial: Initial, ongoing: Ongoing | None) -> bool:
    """Return whether the queue is to be looked at as soon as the simulation begins.

    A scheduler that goes on has looked at it before; but if jobs wait and none runs, as in a part
    of an extract, nothing need ever end.
    """
    queued = (initial.start < 0) & (submit_time < initial.begin)
    return ongoing is None or bool(queued.any() and not initial.running.any())


def history_of(workload: Workload, told: EngineInput) -> Ints:
    """Return run times of users' last jobs that ended before the beginning, (n_users, n) [s]."""
    past, order, _ = past_jobs(workload)
    assert past is not None
    history = np.full((told.n_users, told.kept), -1, np.int64)
    users, first_job = np.unique(workload.user_id, return_index=True)
    theirs = order[np.isin(past.user_id[order], users)]
    row = told.users[first_job[np.searchsorted(users, past.user_id[theirs])]]
    places, later = last_of_users(row, told.kept)
    history[row[places], -1 - later] = recorded_run_time(past)[theirs[places]]
    return history


def check_running(beginning: Beginning) -> None:
    """Raise a WorkloadError if jobs that are said to run at the beginning cannot have started.

    They were submitted before, and fit on the machine together.
    """
    workload, initial, running = beginning.workload, beginning.workload.initial, beginning.running
    assert initial is not None
    begin, where = initial.begin, f"{workload.name} at {initial.begin} s"
    used = int(workload.requested_processors[running].sum())
    if used > beginning.cluster.processors:
        raise WorkloadError(
            f"{where}: running jobs hold {used} processors, and the machine has "
            f"{beginning.cluster.processors}; extract from a trace that is cleaned for it"
        )
    start = initial.start[running]
    early = (start < workload.submit_time[running]) | (start >= begin)
    if early.any():
        job = int(running[early.argmax()])
        raise WorkloadError(f"{where}: {workload.called(job)} does not start between its"
                            f" submission and then, but at {initial.start[job]} s")  # fmt: skip


def cannot_run(beginning: Beginning, job: int, run_time: int = MAX_TIME) -> WorkloadError:
    """Return the error of a job that is said to run: its run is over, or else it finds no room."""
    workload, initial = beginning.workload, beginning.workload.initial
    assert initial is not None
    name = workload.called(job)
    if initial.start[job] + run_time >= initial.begin:
        return WorkloadError(
            f"{workload.name}: {name} runs at {initial.begin} s, and finds no room on the nodes "
            f"beside those that started before it, by {beginning.scheduler.allocation}"
        )
    return WorkloadError(
        f"{workload.name} at {initial.begin} s: {name} cannot run still: it started at "
        f"{initial.start[job]} s, and ends {run_time} s later by its run time, its "
        "requested time and the rules of the scheduler"
    )
