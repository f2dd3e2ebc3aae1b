"""Explanations: of one job, with the schedule without each of the others; and of all waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice, check_whole
from hpcgym.explanation import story, watching
from hpcgym.files.writing import plain
from hpcgym.names import NAMED, ONCE_CALLED
from hpcgym.progress import silence
from hpcgym.schedule.result import Result
from hpcgym.scheduler.rules import PREDICTING, Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.units import WEEK_S
from hpcgym.words import counted
from hpcgym.workload.io.swf_header import called, names_of

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload


# --- Which jobs delayed another: the schedule again without each of them --------------------------
#
# Job X delayed job J by as long as J starts earlier in the simulation of all jobs but X. That
# counts all that follows from X, also through others.


def can_repeat(result: Result) -> bool:
    """Return whether a schedule can be made again with other jobs.

    Not one of an environment, of a dispatcher that keeps what it has learned, with failures or
    preemption; nor one that begins with jobs that run, or in which jobs follow others; nor, under
    quotas of submitted jobs, one in which several jobs have the same number.
    """
    others = (result.interrupted, result.dispatcher, result.workload.initial)
    number = result.workload.job_number
    lost = result.given is not None and len(np.unique(number)) < len(number)
    follows = result.scheduler.dependencies != "none"
    return all(other is None for other in others) and not (result.outside or follows or lost)


def delays(
    result: Result,
    job: int,
    rows: NDArray[np.int64],
    progress: Callable[[int, int], None] = silence,
    over: Callable[[], bool] = lambda: False,
) -> NDArray[np.int64]:
    """Return how much earlier a job would start without each of some others, (k,) int64 [s].

    Below 0: it would start later.

    Parameters
    ----------
    result : a schedule of :func:`hpcgym.simulate`.
    job, rows : rows of the job, and of the others, (k,).
    progress : is called after each with how many are done, and how many there are.
    over : tells whether there is no time for more: then those that come first are returned, at
        least one.
    """
    result, there = _as_given(result)
    job, rows = int(there[job]), there[rows]
    start = int(result.start[job])
    # what is submitted after a start has no influence on it
    known = result.workload.submit_time <= start
    earlier = np.zeros(len(rows), np.int64)
    for place, row in enumerate(rows.tolist()):
        without = _start(result, known, row, job)
        if without > start:  # those that come until then may have an influence
            without = _start(result, np.ones_like(known), row, job)
        earlier[place] = start - without
        progress(place + 1, len(rows))
        if over():
            return earlier[: place + 1]
    return earlier


def _as_given(result: Result) -> tuple[Result, NDArray[np.int64]]:
    """Return a schedule with its jobs as they were given, and the row of each of its jobs there."""
    number = result.workload.job_number
    if result.given is None:
        return result, np.arange(len(number))
    given = result.given
    mine, theirs = (np.argsort(numbers, kind="stable") for numbers in (number, given.job_number))
    place, back = np.empty_like(mine), np.empty_like(mine)
    place[mine], back[theirs] = theirs, mine
    rules, start = _cut(result.scheduler, back), result.start[back]
    return replace(result, workload=given, scheduler=rules, start=start), place


def _start(result: Result, known: NDArray[np.bool_], row: int, job: int) -> int:
    """Return when a job starts among those that are known, but for that of a row."""
    kept = known.copy()
    kept[row] = False
    mine = int(kept[:job].sum())
    pairs = None if result.coschedule is None else result.coschedule.speedups
    again = simulate(
        replace(result.workload.take(kept), cleaning={}),
        _cut(result.scheduler, kept),
        cluster=result.cluster,
        limits=result.limits,
        speedups=pairs,
    )
    if again.given is not None:
        mine = int(_as_given(again)[1].argsort()[mine])
    return int(again.start[mine])


def _cut(scheduler: Scheduler, kept: NDArray[Any]) -> Scheduler:
    """Return a scheduler for some of the jobs, or rows: estimates may have a number for each."""
    given = {rule: getattr(scheduler, rule) for rule in PREDICTING}
    cut = {
        rule: np.asarray(estimate)[kept]
        for rule, estimate in given.items()
        if isinstance(estimate, Sequence | np.ndarray) and not isinstance(estimate, str)
    }
    return scheduler.but(**cut) if cut else scheduler


# --- Why one job of a schedule waited: ``explain(result, job)`` -----------------------------------

#: Jobs that are left out one by one, unless somebody says how many.
MOST = 2000


@dataclass(frozen=True)
class Explanation:
    """Why a job waited.

    Attributes
    ----------
    job : its number in the log.
    sentences : the answer in words.
    facts : of the job: ``submit_time``, ``submitted_later`` (than in the log), ``refused_by`` (a
        quota of submitted jobs -> how long it was full then), ``start_time``, ``wait_time``,
        ``recorded_wait_time`` (in the log; None: not told), ``suspended`` (part of the wait),
        ``stops`` (a dict each, of :class:`hpcgym.explanation.watching.Stop`),
        ``run_time``, ``requested_time``, ``predicted_run_time`` [s], ``requested_processors``,
        ``units``, ``per_unit`` (resource -> amount), ``reserved_start`` [s] (None: it had no
        reservation), ``backfilled``.
    waited_for : reason -> [s], as in :data:`hpcgym.explanation.story.REASONS`; empty where the
        passes of a schedule cannot be made again.
    behind : the part of that, reason -> [s], in which other jobs stood before it in the queue; not
        told of quotas, which keep a job wherever it stands.
    passes : a row a pass of the wait: ``time`` [s], ``ahead`` (queued jobs before it), ``head`` (
        number of the first job that could not start, -1: none), ``shadow`` [s], ``extra``,
        ``free`` (processors), ``before`` (as ``ahead``, with those that were backfilled in the
        pass), ``quotas`` (those that it would have exceeded, as ``--quota`` has them); empty where
        the passes cannot be made again.
    others : a row a job that ran while this one waited, before its first start or after it was
        stopped, or while a quota of submitted jobs refused it, index its number: ``submit_time``,
        ``start_time``, ``end_time`` [s] (of several runs of it, one meanwhile),
        ``requested_processors``, ``right`` (how it came to run, as in
        :data:`hpcgym.explanation.story.RIGHTS`) and ``delay`` [s]: how much earlier this job would
        have started without it; missing where that was not tried.
    """

    job: int
    sentences: list[str]
    facts: dict[str, Any]
    waited_for: dict[str, int]
    behind: dict[str, int]
    passes: pd.DataFrame
    others: pd.DataFrame

    @property
    def delayed(self) -> dict[int, int]:
        """The jobs that delayed it, by their numbers, the most first: by how much [s]."""
        return story.who_delayed(self.others)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        others = self.others.astype(object).where(self.others.notna(), None).reset_index()
        return {
            "job_number": self.job,
            "sentences": self.sentences,
            **{name: plain(value) for name, value in self.facts.items()},
            "waited_for": self.waited_for,
            "behind": self.behind,
            "passes": self.passes.to_dict("records"),
            "others": others.to_dict("records"),
        }


def explain(
    result: Result,
    job: int,
    *,
    most: int | None = None,
    seconds: float | None = watching.SECONDS,
    progress: Callable[[int, int], None] = silence,
) -> Explanation:
    """Explain why a job of a schedule waited.

    The passes of its wait are simulated again. Which jobs delayed it is found by leaving out each
    job that ran while it waited, and simulating again: without X it would have started so much
    earlier. That counts all that follows from X, also through other jobs. If a quota of submitted
    jobs refused the job at first, those that ran meanwhile are tried, too.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`.
    job : its number in the log, ``workload.job_number``; of a job that ran several times, which has
        several rows, the last.
    most : how many jobs are left out at most, those with the most processor seconds in the wait;
        None: 2000.
    seconds : how long jobs are left out at most, but for the simulation that is made then; None: as
        long as it takes. Of jobs for which there is no time the delay is missing, those with the
        least processor seconds first.
    progress : is called with the jobs left out so far, and how many there will be.

    Raises
    ------
    HpcgymError : no result, no job of that number, or something that is no number.
    """
    if not isinstance(result, Result):
        raise HpcgymError(f"explain takes a result of hpcgym.simulate, not {result!r}")
    job, allowed = check_whole("job", job, 0), watching.time_of(seconds)
    over, row = watching.over_after(allowed), _row(result.workload, job)
    ran = watching.meanwhile(result, row)
    most = MOST if most is None else most
    tried = _largest(result, row, ran.row, most if can_repeat(result) else 0)
    progress(0, len(tried))
    with watching.said_before():
        passes, unwatched = watching.watch(result, row)
        earlier = delays(result, row, tried, progress, over).tolist()
    spells = story.spells_of(result, row, passes)
    delay = dict(zip(tried.tolist(), earlier, strict=False))
    others = _others(result, ran, passes, delay)
    facts = _facts(result, row)
    runs = int((result.workload.job_number == job).sum())
    quotas = story.kept_by_quotas(passes, facts["start_time"])
    moved = story.moves(result, row, passes)
    order = _order(result)
    later = story.why_later(result, row, watching.due_of(result, row))
    wait = story.WaitFacts(job, facts, later, runs, spells, quotas, others, moved, order, unwatched)
    behind = story.summed([spell for spell in spells if spell.behind])
    table = _passes(result, passes)
    return Explanation(job, story.story(wait), facts, story.summed(spells), behind, table, others)


def _row(workload: Workload, job: int) -> int:
    """Return the row of a job number, of several runs of it the last."""
    rows = np.flatnonzero(workload.job_number == job)
    if len(rows) == 0:
        numbers = workload.job_number
        span = f"; its jobs are {numbers.min()} to {numbers.max()}" if len(numbers) else ""
        dropped = sum(n for reason, n in workload.cleaning.items() if reason.startswith("dropped"))
        gone = f", and {dropped:,} lines or jobs were dropped when it was read" if dropped else ""
        of = numbers[workload.array == job].tolist()
        tasks = f"; {job} is an array, whose tasks are jobs {min(of)} to {max(of)}" if of else ""
        raise HpcgymError(f"{workload.name} has no job {job}{tasks or span}{gone}")
    return int(rows[-1])


def _largest(result: Result, job: int, rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the jobs with the most processor seconds in the wait of a job, the most first.

    The time for which it was refused counts as well.
    """
    begin = np.maximum(result.start[rows], watching.since(result, job))
    end = np.minimum(result.end[rows], result.start[job])
    area = (end - begin) * result.workload.requested_processors[rows]
    return rows[np.argsort(-area, kind="stable")[:most]]


def _facts(result: Result, row: int) -> dict[str, Any]:
    """Return what there is to say of the job itself."""
    workload = result.workload
    promised = result.reserved_start[row]
    came, due = int(workload.submit_time[row]), watching.due_of(result, row)
    recorded = int(workload.wait_time[row])
    return {
        "submit_time": came,
        "submitted_later": came - due,
        "refused_by": story.refused_by(result, row, due),
        "recorded_wait_time": recorded if recorded >= 0 else None,
        "start_time": plain(result.start[row]),
        "wait_time": plain(result.wait[row]),
        "suspended": 0 if result.suspended is None else int(result.suspended[row]),
        "stops": [stop._asdict() for stop in watching.stops_of(result, row)],
        "run_time": plain(result.run_time[row]),
        "requested_time": int(workload.requested_time[row]),
        "predicted_run_time": plain(result.predicted_run_time[row]),
        "requested_processors": int(workload.requested_processors[row]),
        "units": 1 if workload.units is None else int(workload.units[row]),
        "per_unit": {
            name: int(amounts[row]) for name, amounts in workload.per_unit.items() if amounts[row]
        },
        "reserved_start": plain(promised) if promised >= 0 else None,
        "backfilled": bool(result.backfilled[row]),
    }


def _others(
    result: Result, ran: watching.Meanwhile, passes: list[watching.Pass], delay: dict[int, int]
) -> pd.DataFrame:
    """Return the table of the jobs that ran while the job waited."""
    import pandas as pd

    workload, rows = result.workload, ran.row
    return pd.DataFrame(
        {
            "submit_time": workload.submit_time[rows],
            "start_time": ran.start,
            "end_time": ran.end,
            "requested_processors": workload.requested_processors[rows],
            "right": story.rights(result, ran, passes),
            "delay": pd.array([delay.get(other) for other in rows.tolist()], dtype="Int64"),
        },
        index=pd.Index(workload.job_number[rows], name="job_number"),
    )


def _passes(result: Result, passes: list[watching.Pass]) -> pd.DataFrame:
    """Return the table of passes, heads by their numbers."""
    import pandas as pd

    table = pd.DataFrame([pass_.at for pass_ in passes], columns=list(watching.Moment._fields))
    table.insert(1, "ahead", [pass_.ahead for pass_ in passes])
    table["before"] = [pass_.before for pass_ in passes]
    table["quotas"] = ["; ".join(map(str, pass_.quotas)) for pass_ in passes]
    heads = table["head"].to_numpy(np.int64)
    table["head"] = np.where(heads >= 0, result.workload.job_number[np.maximum(heads, 0)], -1)
    return table


def _order(result: Result) -> str:
    """Return what the order of the queue is called."""
    return str(result.scheduler.describe().get("policy", "chosen from outside"))


# --- What all waiting of a schedule is due to -----------------------------------------------------

#: What jobs may be grouped by -> the column of the workload that holds it.
GROUPS = {
    "requested_processors": "requested_processors",
    **NAMED,
    "week": "submit_time",
}
#: Groups that have an order of their own.
ORDERED = ("requested_processors", "week")
_EVERY = 16  # passes between two reports of progress


def waits(result: Result, progress: Callable[[int, int], None] = silence) -> pd.DataFrame:
    """Return how long each job waited for what.

    The simulation is made again, a pass at a time. From each pass to the next a job in the queue
    waits for one thing: the first that holds of :data:`hpcgym.explanation.story.REASONS`.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`.
    progress : is called now and then with how many jobs have come, and how many there are.

    Returns
    -------
    A row a job, in the order of the workload, index ``job_number``; a column a reason, int64 [s].
    The sum of a row is the job's wait.

    Raises
    ------
    HpcgymError : the passes cannot be made again, see
        :func:`hpcgym.explanation.watching.why_not_watched`.
    """
    import pandas as pd

    why = watching.why_not_watched(result)
    if why:
        raise HpcgymError(f"why all jobs waited cannot be worked out {why}")
    seconds = np.zeros((len(result.start), len(story.REASONS)), np.int64)
    with watching.said_before():
        watched = watching.Watched(result)
    submit, needs = result.workload.submit_time, story.needs_of_nodes(result)
    before, processors = map(list(story.REASONS).index, ("before", "processors"))
    if result.workload.initial is not None:
        seen = np.minimum(np.maximum(submit, result.workload.initial.begin), result.start)
        seconds[:, before], submit = seen - submit, seen
    queue, codes = np.empty(0, np.int64), np.empty(0, np.int8)
    came = time = 0
    for passes, at in enumerate(watched.each_pass(int(result.start.max(initial=0)))):
        seconds[queue, codes] += at.time - time
        coming = np.arange(came, watched.come)
        # where each event has a pass, a job that does not fit as it comes has none
        seconds[coming, processors] += np.minimum(at.time, result.start[coming]) - submit[coming]
        time, came = at.time, watched.come
        waiting = np.concatenate((queue, coming))
        queue = watched.queued(waiting)
        unseen = np.isin(queue, watched.unseen(waiting))
        barred = np.any(watched.exceeding(queue), axis=1)
        codes = story.reasons_at(result, queue, at, unseen, barred, needs)
        if passes % _EVERY == 0:
            progress(came, len(seconds))
    if not watched.same():
        raise HpcgymError(f"why all jobs waited cannot be worked out {watching.OTHER}")
    jobs = pd.Index(result.workload.job_number, name="job_number")
    return pd.DataFrame(seconds, index=jobs, columns=list(story.REASONS))


def refused_at_first(result: Result) -> tuple[int, int]:
    """Return how many jobs quotas of submitted jobs refused at first, and for how long [s]."""
    if result.given is None:
        return 0, 0
    given, place = _as_given(result)
    later = result.workload.submit_time - given.workload.submit_time[place]
    return int((later > 0).sum()), int(later.sum())


def waits_by(result: Result, waited: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return what groups of jobs waited for.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`.
    waited : of :func:`waits`.
    by : one of :data:`GROUPS`: "requested_processors" has classes that double, "week" counts from
        0 at the log's first submission, as --week does, the others are what the log tells of a job.

    Returns
    -------
    A row a group, the one that waited longest first, sizes and weeks in their order; index ``by``.
    Columns: ``jobs``, their number, and one a reason, int64 [s].

    Raises
    ------
    HpcgymError : another name, or the log does not tell it of any job.
    """
    by = check_choice("by", ONCE_CALLED.get(by, by), GROUPS)
    workload = result.workload
    numbers, names = _groups(workload, by)
    kinds, kind = np.unique(numbers, return_inverse=True)
    table = waited.groupby(kind.ravel()).sum()
    table.index = table.index.map(lambda place: names(int(kinds[place]))).rename(by)
    table.insert(0, "jobs", np.bincount(kind.ravel(), minlength=len(kinds)))
    if by in ORDERED:
        return table
    longest = table.drop(columns="jobs").sum(axis=1)
    return table.loc[longest.sort_values(ascending=False, kind="stable").index]


def shortened(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return a table of :func:`waits_by` with the last of more than ``most`` rows as one.

    Sizes and weeks, which have an order of their own, stay as they are.
    """
    import pandas as pd

    if len(table) <= most or table.index.name in ORDERED:
        return table
    kept, rest = table.iloc[: most - 1], table.iloc[most - 1 :]
    label = pd.Index([counted(len(rest), "other")], name=table.index.name)
    return pd.concat((kept, pd.DataFrame([rest.sum()], index=label)))


def size_classes(
    processors: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], Callable[[int], str]]:
    """Return the number of each job's class of sizes, (n_jobs,) int64, and what a class is called.

    Classes double, 1, 2, 3 to 4, 5 to 8, ... processors, up to the ``most`` that a job may have.
    """

    def name(power: int) -> str:
        low, high = 2**power // 2 + 1, min(2**power, most)
        return f"{low} to {high}" if low < high else str(high)

    return np.frexp(processors - 1)[1].astype(np.int64), name


def _groups(workload: Workload, by: str) -> tuple[NDArray[np.int64], Callable[[int], str]]:
    """Return the number of each job's group, and what a group is called."""
    column = getattr(workload, GROUPS[by])
    if by == "requested_processors":
        return size_classes(column, workload.processors)
    if by == "week":
        return workload.since_first_submit // WEEK_S, lambda week: f"week {week}"
    if len(column) and column.max() < 0:
        raise HpcgymError(f"{workload.name}: the log does not tell the {by} of any job")
    known = names_of(workload, GROUPS[by])
    return column, lambda number: called(known, by, number)
