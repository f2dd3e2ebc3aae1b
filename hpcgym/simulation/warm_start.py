"""Simulations of extracts, which begin with jobs that run and jobs that wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Model, Simulation
from hpcgym.compilation import compiling
from hpcgym.engine import state
from hpcgym.engine import warm_start as engine
from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.engine.ordered import make_lists
from hpcgym.errors import WorkloadError
from hpcgym.scheduler.capabilities import check
from hpcgym.simulation.native_answers import take_learned, told_of
from hpcgym.simulation.predictions import Learning
from hpcgym.simulation.prepare import check_jobs, job_records, numbered
from hpcgym.workload.extracts import recorded_run_time
from hpcgym.workload.model import MAX_TIME
from hpcgym.workload.warm_start import joined

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.estimates.learning import Learned
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload
    from hpcgym.workload.warm_start import Cells, Initial, Ongoing

Ints = NDArray[np.int64]


def check_extract(workload: Workload, *things: str, **words: str) -> None:
    """Raise an HpcgymError of an extract, where simulations begin with an empty machine.

    ``things`` are what they do, of :mod:`hpcgym.scheduler.capabilities`; ``words`` are others, and
    what whoever asks for them calls them.
    """
    if workload.initial is not None:
        begin = workload.initial.begin
        name = f"{workload.name}, which begins with the jobs that run at {begin} s,"
        check(*things, words={"extract": name, **words})


class Beginning(NamedTuple):
    """How a simulation begins that is one of an extract; its ``progress`` tells the rest.

    Attributes
    ----------
    workload, scheduler, cluster : the extract, and by which rules it is simulated on which machine.
    time : [s] when it begins; what happens in that second is the first event.
    number : of jobs that were submitted before.
    due : whether a pass is due then, whatever happens.
    running : (n_running,) int64, jobs that run, in the order of their starts.
    ongoing : more, where the simulation goes on, else None.
    """

    workload: Workload
    scheduler: Scheduler
    cluster: Cluster
    time: int
    number: int
    due: bool
    running: Ints
    ongoing: Ongoing | None

    @property
    def cells(self) -> Cells | None:
        """The nodes that jobs have on this machine; None where nobody knows."""
        assert self.workload.initial is not None
        return own_cells(self.workload.initial, self.cluster)


def beginning_of(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, arrays: state.Prepared
) -> Beginning | None:
    """Return how a simulation begins with the state of its workload; None if it has none.

    ``arrays`` have users' histories then, and starts, predictions and promises of the jobs before,
    but for what a learner predicts.

    Raises
    ------
    HpcgymError : processors that are to be switched off.
    """
    initial, sim, progress = workload.initial, arrays.sim, arrays.progress
    if initial is None:
        return None
    if sim.managed:
        check_extract(workload, "shutdown")
    running = in_order(workload)
    ongoing = going_on(initial, scheduler, cluster)
    number = int(np.searchsorted(workload.submit_time, initial.begin))
    progress["start"][running] = initial.start[running]
    if sim.estimate == state.AVERAGE:
        _remember(workload, arrays)
        past = arrays.history[arrays.users[:number]]
        requested = arrays.jobs["requested"][:number]
        average = np.minimum(past.sum(axis=1) // past.shape[1], requested)
        known = np.full(number, -1) if ongoing is None else ongoing.predicted[:number]
        unknown = np.where(past[:, 0] < 0, requested, average)
        progress["predicted"][:number] = np.where(known < 0, unknown, known)
    if ongoing is not None:
        progress["promised"][:number] = ongoing.promised[:number]
    due = _due(workload.submit_time, initial, ongoing)
    found = workload, scheduler, cluster, initial.begin, number, due, running, ongoing
    return Beginning(*found)


def begin_with(
    arrays: state.Prepared, beginning: Beginning, learning: Learning | None = None
) -> None:
    """Let the kernels begin so.

    ``learning`` predicts how long the jobs run, as if all had been submitted at the beginning.

    Raises
    ------
    WorkloadError : as :func:`check_running` has it.
    """
    a, ongoing, due = arrays, beginning.ongoing, int(beginning.due)
    begin_running(arrays, beginning, learning)
    with compiling(engine.line_up):
        engine.line_up(
            a.jobs, a.keys, a.scores, a.users, a.sim, a.progress, a.history, a.blocks, a.entries,
            a.narrow, a.freed, a.idle, a.ended, beginning.number, beginning.time, due,
        )  # fmt: skip
    if ongoing is not None and ongoing.looks is not None and not due:
        for name, value in zip(state.LOOKS, ongoing.looks, strict=True):
            a.sim[name] = value
    if ongoing is not None and ongoing.reserved is not None:
        engine.hold(
            a.jobs,
            a.sim,
            a.progress,
            a.blocks,
            a.entries,
            a.profile,
            a.line,
            a.narrow,
            ongoing.reserved.copy(),
        )


def begin_running(
    arrays: state.Prepared, beginning: Beginning, learning: Learning | None = None
) -> None:
    """Do what :func:`begin_with` does before the queue, whose order is not needed."""
    a, sim, progress = arrays, arrays.sim, arrays.progress
    time, number, running = beginning.time, beginning.number, beginning.running
    if learning is not None:
        lists = make_lists([len(running)])
        engine.list_running(a.jobs, progress, *lists, running)
        learning.predict_first(number, time, *lists)
    check_running(beginning)
    run = a.jobs["run"][running]
    if sim.correction == state.KILL:
        run = np.minimum(run, progress["predicted"][running])
    over = progress["start"][running] + run < time
    if over.any():
        raise cannot_run(beginning, int(running[over.argmax()]), int(run[over.argmax()]))
    with compiling(engine.start_running):
        engine.start_running(a.jobs, sim, progress, a.blocks, a.entries, a.idle, running, number)
        while True:
            engine.catch_up(sim, a.jobs, progress, a.blocks, a.entries, time, int(beginning.due))
            if not sim.asked:
                break
            assert learning is not None
            learning.answer(a.blocks, a.entries)


def hold_on_nodes(arrays: state.Prepared, nodes: Nodes, ongoing: Ongoing | None) -> None:
    """Let the jobs that wait have their reservations, where kernels have begun on nodes."""
    if ongoing is not None and ongoing.reserved is not None:
        engine.hold_on_nodes(
            arrays.sim, arrays.progress, arrays.blocks, arrays.entries, arrays.line, nodes,
            ongoing.reserved.copy(),
        )  # fmt: skip


def place_running(beginning: Beginning, nodes: Nodes) -> None:
    """Give the jobs that run at the beginning of an extract their nodes, for the kernels.

    Raises
    ------
    WorkloadError : a job that finds no room beside the others.
    """
    workload, initial = beginning.workload, beginning.workload.initial
    assert initial is not None
    cells = beginning.cells
    if cells is not None:
        write_cells(nodes, cells)
    without = engine.place_running(nodes, beginning.running, cells is not None)
    if len(nodes.asks):
        waiting = (workload.submit_time < initial.begin) & ~initial.running
        asks = nodes.asks[: len(waiting)]  # behind them stand those who hold nodes in windows
        nodes.asked[:] = asks[waiting].sum(axis=0)
    if without >= 0:
        raise cannot_run(beginning, without)


def going_on(initial: Initial, scheduler: Scheduler, cluster: Cluster) -> Ongoing | None:
    """Return what a simulation left, if that goes on: its scheduler, on its machine."""
    ongoing = initial.ongoing
    if ongoing is None or ongoing.cluster != cluster or ongoing.rules != scheduler.describe():
        return None
    return ongoing


def taken_over(workload: Workload) -> Workload:
    """Return an extract with which no scheduler goes on, whatever its rules."""
    initial = workload.initial
    if initial is None or initial.ongoing is None:
        return workload
    return replace(workload, initial=replace(initial, ongoing=replace(initial.ongoing, rules={})))


def own_cells(initial: Initial, cluster: Cluster) -> Cells | None:
    """Return the nodes that jobs have on this machine, None where it is another, or none has."""
    ongoing = initial.ongoing
    return ongoing.cells if ongoing is not None and ongoing.cluster == cluster else None


def write_cells(nodes: Nodes, cells: Cells, jobs: Ints | None = None) -> None:
    """Let jobs have their cells on record: these, or the first ones, as many as there are."""
    counts = np.diff(cells.first)
    # behind the jobs stand those who hold nodes in windows
    rows = np.arange(len(counts)) if jobs is None else jobs
    nodes.held["count"][rows] = counts
    begin = nodes.held["first"][rows] - cells.first[:-1]
    places = np.repeat(begin, counts) + np.arange(len(cells.node))
    nodes.cells["node"][places] = cells.node
    nodes.cells["units"][places] = cells.units


def past_jobs(workload: Workload) -> tuple[Workload | None, Ints, Ints]:
    """Return the jobs that ended before the beginning, the order of their ends, and the ends [s].

    Of the same second those that started first come first.
    """
    if workload.initial is None:
        none = np.zeros(0, np.int64)
        return None, none, none
    past = workload.initial.past
    start = past.submit_time + past.wait_time
    end = start + recorded_run_time(past)
    return past, np.lexsort((start, end)), end


def learned_before(workload: Workload, scheduler: Scheduler) -> Learned | None:
    """Return what is learned of run times from the jobs that ended before the beginning.

    Each is learned from at its end, as it was seen at its submission: of the jobs that had ended
    by then, and of those that ran. None where there are no such jobs.

    Raises
    ------
    WorkloadError : one that nobody could have simulated.
    """
    initial = workload.initial
    if initial is None or not len(initial.past):
        return None
    past, runs = initial.past, workload.take(initial.running)
    submit = np.concatenate([past.submit_time, runs.submit_time])
    order = np.argsort(submit, kind="stable")
    started = np.concatenate([past.submit_time + past.wait_time, initial.start[initial.running]])[
        order
    ]
    ended = (np.arange(len(order)) < len(past))[order]
    both = joined(past, runs)
    check_jobs(past, max(past.processors, int(past.requested_processors.max())))
    jobs = job_records(both)
    jobs["run"][~ended] = MAX_TIME  # they run on
    users, n_users = numbered(both.user_id)
    begun = state.make_state(
        {"logs": 1}, np.zeros(len(both), np.int64), len(both), len(both), n_users
    )
    keys, scores = np.zeros(0, np.int64), np.zeros(0, state.SCORES)
    arrays = state.Prepared(jobs, keys, scores, users, *begun)
    learning = Learning(both, scheduler, arrays)
    model = Model(
        jobs.view(np.int64).reshape(len(both), -1),
        int(jobs["processors"].sum()),
        {"logs": 1, "learns": 1},
        predicted=np.zeros(len(both), np.int64),
        users=users,
        n_users=len(learning.learner.memory),
        **told_of(learning, None, None),
    )
    native = Simulation(model)
    native.learn_from(
        past=np.flatnonzero(ended),
        by_start=np.argsort(started, kind="stable"),
        start=started,
        time=initial.begin,
    )
    take_learned(learning, native)
    return learning.learned


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


def _remember(workload: Workload, arrays: state.Prepared) -> None:
    """Fill the histories of users with the jobs that ended before the beginning."""
    rows = dict(zip(workload.user_id.tolist(), arrays.users.tolist(), strict=True))
    past, order, _ = past_jobs(workload)
    assert past is not None
    run, users, history = recorded_run_time(past), past.user_id, arrays.history
    for user, length in zip(users[order].tolist(), run[order].tolist(), strict=True):
        if user in rows:
            row = history[rows[user]]
            row[:-1] = row[1:]
            row[-1] = length


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
