"""Futures of a state: when jobs start, by other run times and other jobs to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, Model, futures
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.forecasting.arrivals import Block
from hpcgym.processors import threads_here
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.estimates.by_name import knows_run_times
from hpcgym.scheduler.orders import expressions_of
from hpcgym.scheduler.rules import PREDICTING, Scheduler
from hpcgym.scheduler.whole_nodes import own_nodes_by
from hpcgym.simulation import warm_start
from hpcgym.simulation.allowance import spend
from hpcgym.simulation.driver import Simulation
from hpcgym.simulation.fair_share import accounts_of
from hpcgym.simulation.nodes import place_of
from hpcgym.simulation.prepare import prepare
from hpcgym.workload.columns import Ints, read_only
from hpcgym.workload.extracts import stacked
from hpcgym.workload.model import Initial, Workload

if TYPE_CHECKING:
    from hpcgym.forecasting.state import MachineState


class Futures:
    """Futures of one state by some rules.

    Their schedules are those of :func:`hpcgym.simulate` with the same rules, jobs and state, to the
    second, each up to the last start in question.

    Parameters
    ----------
    state : jobs that run or wait, on a machine.
    scheduler : the rules.
    come : jobs of which blocks are made, with their run times.
    blocks : jobs to come, rows of ``come``, at least one block, which may be empty. None is
        submitted before the time of the state.
    first : jobs that come before those of any block, in the order of submission, or nobody. Like
        those of the state they have another run time in each future.

    Attributes
    ----------
    n_own : how many jobs have a run time in each future: those of the state, and ``first``.

    Raises
    ------
    HpcgymError : rules that futures do not know.
    WorkloadError : a job that cannot be simulated, or running jobs that exceed the machine.
    """

    def __init__(
        self,
        state: MachineState,
        scheduler: Scheduler,
        come: Workload,
        blocks: Sequence[Block],
        first: Workload | None = None,
    ) -> None:
        _check_rules(scheduler)
        check(
            *("forecasts", "extract"),
            words=scheduler.asks_for | own_nodes_by(state.cluster, scheduler),
        )
        own = [state.jobs] if first is None or not len(first) else [state.jobs, first]
        n, self.n_own = len(state.jobs), sum(map(len, own))
        # each job of the state may run as long as it requests, as far as rules ask for that
        longest = stacked([replace(part, initial=None) for part in own])
        longest = _with(longest, run_time=longest.requested_time)
        every = stacked([longest, replace(come, initial=None)])
        ours = np.arange(self.n_own)
        rows = [part for block in blocks for part in (ours, self.n_own + block.rows)]
        submits = [part for block in blocks for part in (longest.submit_time, block.submit)]
        whole = _with(every.take(np.concatenate(rows)), submit_time=np.concatenate(submits))
        self._number = np.array([self.n_own + len(block.rows) for block in blocks])
        self._first = np.cumsum(self._number) - self._number
        start = np.full(len(whole), -1)
        start[self._first[:, np.newaxis] + np.arange(n)] = state.start
        initial = Initial(state.time, start, state.past)
        whole = replace(whole, name=state.jobs.name, initial=initial)
        part = _with(state.jobs, run_time=state.jobs.requested_time)
        self._name = state.jobs.name
        self._model, self._beginning = _told(whole, part, state.cluster, scheduler)

    def starts(
        self,
        run_times: Ints,
        block: Ints,
        targets: Ints,
        threads: int | None = None,
        passes: Ints | None = None,
    ) -> Ints:
        """Return when jobs start in each future, (n_futures, n_targets) int64 [s]; -1: never.

        Parameters
        ----------
        run_times : (n_futures, n_own) [s], from 1 to the requested times.
        block : (n_futures,) which jobs come.
        targets : (n_targets,) rows of the state, or behind these of ``first``.
        threads : how many work on it, by default one for each processor that this process may use.
            Nothing depends on it.
        passes : (n_futures,) [s] when the first pass that backfills comes, as of
            :func:`hpcgym.forecasting.clocks.first_passes`; by default as the state tells, or with
            the first event.

        Raises
        ------
        WorkloadError : a job that is said to run has ended by these rules, or finds no room on the
            nodes beside those that started before it.
        """
        run_times = np.ascontiguousarray(run_times, np.int64)
        targets = np.ascontiguousarray(targets, np.int64)
        if passes is None:
            return self._simulated(run_times, block, targets, threads, {})
        starts = np.empty((len(block), len(targets)), np.int64)
        for time in np.unique(passes).tolist():
            rows = passes == time
            looks = np.array([time, time, 1, 0, FOREVER])
            of_clock = {"looks": looks}
            starts[rows] = self._simulated(run_times[rows], block[rows], targets, threads, of_clock)
        return starts

    def _simulated(
        self,
        run_times: Ints,
        block: Ints,
        targets: Ints,
        threads: int | None,
        beside: dict[str, Ints],
    ) -> Ints:
        """Return what :meth:`starts` does, of futures that begin alike."""
        number = self._number[block]
        spend(int(number.sum()))
        most = threads_here()
        try:
            starts: Ints = futures(
                self._model,
                run_times,
                self._first[block],
                number,
                targets,
                min(most if threads is None else threads, most, max(len(block), 1)),
                **self._beginning | beside,
            )
        except ValueError as error:
            raise WorkloadError(f"{self._name}: {error}") from None
        return starts


def _told(
    whole: Workload, part: Workload, cluster: Any, scheduler: Scheduler
) -> tuple[Model, dict[str, Any]]:
    """Return the model of all blocks, and how each begins, as the engine takes them.

    ``part``: the jobs of the state, with which each block begins.
    """
    place = place_of(whole, scheduler, cluster)
    asks, counts = scheduler.asks_for_predictions, any(scheduler.usage_orders)
    logs = counts or place.name != "pool" or scheduler.restricts
    engine_input = prepare(
        whole, scheduler, place, predicts=asks, counts=counts, logs_ends=logs, several=True
    )
    learning = None
    if asks:
        before = warm_start.learned_before(part, scheduler, cluster)
        learning = warm_start.Learning(whole, scheduler, engine_input, before)
    shares = accounts_of(whole, scheduler, cluster, place.units.ticks) if counts else None
    expressions = expressions_of(whole, scheduler)
    model = Simulation(engine_input, place, learning, shares, expressions).model(several=True)
    rows = slice(len(part))
    predicted = None if engine_input.predicted is None else engine_input.predicted[rows]
    own = replace(
        engine_input,
        jobs=engine_input.jobs[rows],
        users=engine_input.users[rows],
        predicted=predicted,
    )
    begins = warm_start.beginning_of(part, scheduler, cluster, own)
    assert begins is not None
    warm_start.check_running(begins)
    if engine_input.kept:  # of the users of all blocks
        begins = begins._replace(history=warm_start.history_of(whole, engine_input))
    arguments = begins.arguments("nodes" in place.told)
    if "first" in arguments:
        arguments["cell_first"] = arguments.pop("first")
    return model, arguments


def _with(jobs: Workload, **columns: NDArray[Any]) -> Workload:
    """Return the same jobs with other columns, where they stand, in whatever order."""
    changed = {name: read_only(values) for name, values in columns.items()}
    return replace(jobs, columns={**jobs.columns, **changed})


def _check_rules(scheduler: Scheduler) -> None:
    """Raise an HpcgymError for rules that look at run times that nobody can know."""
    for name in PREDICTING:
        estimate = getattr(scheduler, name)
        if estimate is not None and knows_run_times(estimate):
            raise HpcgymError(
                f"{name}={scheduler.describe()[name]!r} and forecasts do not go together: nobody"
                " knows the run times of jobs that have not ended"
            )
