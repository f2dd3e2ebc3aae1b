"""Why one job of a schedule waited: ``explain(result, job)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_whole
from hpcgym.explanation.delays import can_repeat, delays
from hpcgym.explanation.meanwhile import Meanwhile, meanwhile
from hpcgym.explanation.reasons import Spell, kept_by_quotas, rights, spells_of, summed
from hpcgym.explanation.stops import stopped_by, stops_of
from hpcgym.explanation.story import Facts, moves, story, who_delayed
from hpcgym.explanation.timing import SECONDS, TimeOverError, over_after, time_of
from hpcgym.explanation.watching import Moment, Pass, said_before, watch, why_not_watched
from hpcgym.files.plain import plain
from hpcgym.progress import silence
from hpcgym.schedule.result import Result
from hpcgym.scheduler.rule_values import quota_text

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.workload.model import Workload

#: Jobs that are left out one by one, unless somebody says how many.
MOST = 2000


@dataclass(frozen=True)
class Explanation:
    """Why a job waited.

    Attributes
    ----------
    job : its number in the log.
    sentences : the answer in words.
    facts : of the job: ``submit_time``, ``start_time``, ``wait_time``, ``suspended`` (part of it),
        ``stops`` (a dict each, of :class:`hpcgym.explanation.stops.Stop`), ``stopped`` (whom it
        stopped to start, a dict each, of :class:`hpcgym.explanation.stops.Stopped`),
        ``run_time``, ``requested_time``, ``predicted_run_time`` [s], ``requested_processors``,
        ``units``, ``per_unit`` (resource -> amount), ``reserved_start`` [s] (None: it had no
        reservation), ``backfilled``.
    waited_for : reason -> [s], as in :data:`hpcgym.explanation.reasons.REASONS`; empty where the
        passes of a schedule cannot be made again.
    behind : the part of that, reason -> [s], in which other jobs stood before it in the queue; not
        told of quotas, which keep a job wherever it stands.
    passes : a row a pass of the wait: ``time`` [s], ``ahead`` (queued jobs before it), ``head`` (
        number of the first job that could not start, -1: none), ``shadow`` [s], ``extra``,
        ``free`` (processors), ``before`` (as ``ahead``, with those that were back-filled in the
        pass), ``quotas`` (those that it would have exceeded, as ``--quota`` has them); empty where
        the passes cannot be made again.
    others : a row a job that ran while this one waited, before its first start or after it was
        stopped, index its number: ``submit_time``, ``start_time``, ``end_time`` [s] (of several
        runs of it, one meanwhile), ``requested_processors``, ``right`` (how it came to run, as in
        :data:`hpcgym.explanation.reasons.RIGHTS`) and ``delay`` [s]: how much earlier this job
        would have started without it; missing where that was not tried.
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
        return who_delayed(self.others)

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
    seconds: float | None = SECONDS,
    progress: Callable[[int, int], None] = silence,
) -> Explanation:
    """Explain why a job of a schedule waited.

    The passes of its wait are simulated again. Which jobs delayed it is found by leaving out each
    job that ran while it waited, and simulating again: without X it would have started so much
    earlier. That counts all that follows from X, also through other jobs.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`.
    job : its number in the log, ``workload.job_number``; of a job that ran several times, which has
        several rows, the last.
    most : how many jobs are left out at most, those with the most processor seconds in the wait;
        None: 2000.
    seconds : how long this takes at most, but for the simulation that is made then; None: as long
        as it takes. Of jobs for which there is no time the delay is missing, those with the least
        processor seconds first; so are the passes, if half the time is not enough for them.
    progress : is called with the jobs left out so far, and how many there will be.

    Raises
    ------
    HpcgymError : no result, no job of that number, or something that is no number.
    """
    if not isinstance(result, Result):
        raise HpcgymError(f"explain takes a result of hpcgym.simulate, not {result!r}")
    job, allowed = check_whole("job", job, 0), time_of(seconds)
    over, half = over_after(allowed), over_after(allowed / 2)
    row = _row(result.workload, job)
    ran = meanwhile(result, row)
    most = MOST if most is None else most
    tried = _largest(result, row, ran.row, most if can_repeat(result) else 0)
    unwatched = why_not_watched(result)
    passes: list[Pass] = []
    spells: list[Spell] = []

    def going_on() -> None:
        progress(0, len(tried))
        if half():
            raise TimeOverError

    with said_before():
        try:
            passes = [] if unwatched else watch(result, row, going_on)
            spells = spells_of(result, row, passes, going_on)
        except TimeOverError:
            told_half = f"{allowed / 2:g} s, half of the {allowed:g} s that this may take"
            passes, unwatched = [], f"in {told_half}"
        earlier = delays(result, row, tried, progress, over).tolist()
    delay = dict(zip(tried.tolist(), earlier, strict=False))
    others = _others(result, ran, passes, delay)
    facts = _facts(result, row)
    runs = int((result.workload.job_number == job).sum())
    quotas = kept_by_quotas(passes, facts["start_time"])
    later = 0
    if result.given is not None:
        given = result.given.submit_time[_row(result.given, job)]
        later = int(result.workload.submit_time[row] - given)
    moved = moves(result, row, passes)
    order = _order(result)
    told = Facts(job, facts, later, runs, spells, quotas, others, moved, order, unwatched)
    behind = summed([spell for spell in spells if spell.behind])
    table = _passes(result, passes)
    return Explanation(job, story(told), facts, summed(spells), behind, table, others)


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
    """Return the jobs with the most processor seconds in the wait of a job, the most first."""
    begin = np.maximum(result.start[rows], result.workload.submit_time[job])
    end = np.minimum(result.end[rows], result.start[job])
    area = (end - begin) * result.workload.requested_processors[rows]
    return rows[np.argsort(-area, kind="stable")[:most]]


def _facts(result: Result, row: int) -> dict[str, Any]:
    """Return what there is to say of the job itself."""
    workload = result.workload
    promised = result.reserved_start[row]
    return {
        "submit_time": int(workload.submit_time[row]),
        "start_time": plain(result.start[row]),
        "wait_time": plain(result.wait[row]),
        "suspended": 0 if result.suspended is None else int(result.suspended[row]),
        "stops": [one._asdict() for one in stops_of(result, row)],
        "stopped": [one._asdict() for one in stopped_by(result, row)],
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
    result: Result, ran: Meanwhile, passes: list[Pass], delay: dict[int, int]
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
            "right": rights(result, ran, passes),
            "delay": pd.array([delay.get(one) for one in rows.tolist()], dtype="Int64"),
        },
        index=pd.Index(workload.job_number[rows], name="job_number"),
    )


def _passes(result: Result, passes: list[Pass]) -> pd.DataFrame:
    """Return the table of passes, heads by their numbers."""
    import pandas as pd

    table = pd.DataFrame([one.at for one in passes], columns=list(Moment._fields))
    table.insert(1, "ahead", [one.ahead for one in passes])
    table["before"] = [one.before for one in passes]
    table["quotas"] = [quota_text(one.quotas) or "" for one in passes]
    heads = table["head"].to_numpy(np.int64)
    table["head"] = np.where(heads >= 0, result.workload.job_number[np.maximum(heads, 0)], -1)
    return table


def _order(result: Result) -> str:
    """Return what the order of the queue is called."""
    return str(result.scheduler.describe().get("policy", "chosen from outside"))
