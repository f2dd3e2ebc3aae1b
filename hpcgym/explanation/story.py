"""An explanation in words: plain sentences, the answer first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcgym.explanation.reasons import REASONS, RIGHTS, Spell
from hpcgym.explanation.stops import Stop, Stopped, in_words, times, who_was_stopped
from hpcgym.explanation.watching import Pass
from hpcgym.naming import CORE, MEMORY, counted, duration
from hpcgym.schedule.result import Result

if TYPE_CHECKING:
    import pandas as pd

_NAMED = 5  # jobs that are named in a sentence


class Moves(NamedTuple):
    """How a job's own reservation came and moved.

    Attributes
    ----------
    queued_s : [s] from the submission until it was the first job that could not start; -1: never.
    ahead : jobs before it in the queue at first.
    first, last : [s] the first and the last time that was reserved for it, -1 if none.
    earlier, later : how often that moved to an earlier and to a later time.
    ended_early : jobs that ended before they were predicted to, while it was the first.
    """

    queued_s: int
    ahead: int
    first: int
    last: int
    earlier: int
    later: int
    ended_early: int


class Facts(NamedTuple):
    """What the sentences are made of; see :class:`hpcgym.explanation.explain.Explanation`."""

    number: int
    job: dict[str, Any]
    later: int  # than in the log it was submitted [s]
    runs: int
    spells: list[Spell]
    quotas: dict[str, int]
    others: pd.DataFrame
    moves: Moves | None
    order: str
    unwatched: str  # why the passes cannot be made again, if they cannot


def moves(result: Result, job: int, passes: Sequence[Pass]) -> Moves | None:
    """Return how a job's reservation moved in the passes of its wait; None without passes."""
    if not passes:
        return None
    submit, start = int(result.workload.submit_time[job]), int(result.start[job])
    own = [one.at for one in passes if one.at.head == job and one.at.time < start]
    times = [one.shadow for one in own if one.shadow >= 0]
    early = 0
    if own:
        ends = result.start + result.run_time
        predicted = result.start + result.predicted_run_time
        within = (ends > own[0].time) & (ends <= start) & (result.start <= own[-1].time)
        early = int((within & (ends < predicted)).sum())
    return Moves(
        queued_s=own[0].time - submit if own else -1,
        ahead=passes[0].ahead,
        first=times[0] if times else -1,
        last=times[-1] if times else -1,
        earlier=sum(b < a for a, b in pairwise(times)),
        later=sum(b > a for a, b in pairwise(times)),
        ended_early=early,
    )


def story(told: Facts) -> list[str]:
    """Return an explanation as sentences, the most important first."""
    job = told.job
    asked = f"{_resources(job)} for {duration(job['requested_time'])}"
    lines = [f"It asked for {asked}, and waited for {duration(job['wait_time'])}."]
    if told.later > 0:
        lines.append(
            "Before that it was kept outside the queue, by quotas of submitted jobs or by jobs that"
            f" it follows: it was submitted {duration(told.later)} later than in the log."
        )
    if told.runs > 1:
        lines.append(f"The log has {told.runs} runs with this number; this is the last.")
    if job["suspended"] > 0:
        lines.append(
            f"Of that it was suspended for {duration(job['suspended'])}, after its first start."
        )
    stops = in_words([Stop(**one) for one in job["stops"]], job["submit_time"])
    stopped = who_was_stopped([Stopped(**one) for one in job["stopped"]], told.number)
    if job["wait_time"] == 0:
        return [*lines, "It started at once.", *stopped, *stops]
    lines += _of_delays(told.others)
    lines += [*stopped, *stops]
    lines += _of_the_wait(told)
    lines += _of_the_queue(told)
    lines += _of_others(told)
    return lines


def who_delayed(others: pd.DataFrame) -> dict[int, int]:
    """Return the jobs without which it would have started earlier, and by how much [s]."""
    delay = _tried(others)
    late = delay[delay > 0].sort_values(ascending=False, kind="stable")
    numbers: list[int] = late.index.tolist()
    return dict(zip(numbers, late.tolist(), strict=True))


def _of_delays(others: pd.DataFrame) -> list[str]:
    """Return a sentence on those that delayed it, if any was tried."""
    delay, late = _tried(others), who_delayed(others)
    if not len(delay):
        return []
    if not late:
        which = "the job" if len(others) == 1 else f"any one of {len(delay):,} jobs"
        which = which if len(delay) > 1 or len(others) == 1 else "the one job tried"
        ran = "that ran while it waited"
        return [f"It would not have started earlier without {which} {ran}."]
    (first, most), *more = [(number, duration(each)) for number, each in late.items()]
    lines = [f"without job {first} it would have started {most} earlier"]
    lines += [f"without {number} {seconds}" for number, seconds in more[: _NAMED - 1]]
    rest = len(late) - _NAMED
    less = f"; {counted(rest, 'other')} delayed it too" if rest > 0 else ""
    return [f"{counted(len(late), 'job')} delayed it: {', '.join(lines)}{less}."]


def _tried(others: pd.DataFrame) -> pd.Series[int]:
    """Return the delays that are known, by the numbers of the jobs."""
    return others["delay"].dropna().astype(np.int64)


def _of_the_wait(told: Facts) -> list[str]:
    """Return sentences on what held when, the longest first."""
    if not told.spells:
        return [f"Why it waited cannot be worked out {told.unwatched or 'for such schedules'}."]
    waited = told.job["wait_time"]
    lines, first = [], "with no job before it, " * any(spell.behind for spell in told.spells)
    for reason, behind, seconds in told.spells:
        kept = reason == "quota"
        stood = "behind other jobs, while" if behind else f"{'' if kept else first}because"
        which = _which_quotas(told.quotas) if kept else ""
        share = f" ({seconds / waited:.0%} of its wait)" if len(told.spells) > 1 else ""
        lines.append(f"It waited for {duration(seconds)} {stood} {REASONS[reason]}{which}{share}.")
    return lines


def _which_quotas(quotas: Mapping[str, int]) -> str:
    """Return the quotas that a job would have exceeded, of several for how long each."""
    if len(quotas) == 1:
        return f", {next(iter(quotas))}"
    longest = sorted(quotas.items(), key=lambda item: -item[1])
    return f": {', '.join(f'{quota} for {duration(seconds)}' for quota, seconds in longest)}"


def _resources(job: Mapping[str, Any]) -> str:
    """Return what a job asked for."""
    others = [
        f"{n:,} MB of memory" if name == MEMORY else f"{n:,} {name}"
        for name, n in job["per_unit"].items()
        if name != CORE
    ]
    text = counted(job["requested_processors"], "processor")
    if not others:
        return text
    each = ", ".join([f"{job['per_unit'].get(CORE, 1):,} {CORE}", *others])
    return f"{text}, {counted(job['units'], 'unit')} of {each}"


def _of_the_queue(told: Facts) -> list[str]:
    """Return sentences on the job's place in the queue, and what was reserved for it."""
    found, job = told.moves, told.job
    if found is None:
        return []
    place = (
        f"{counted(found.ahead, 'job')} stood before it"
        if found.ahead
        else "Nobody stood before it"
    )
    lines = [f"{place} in the queue when it came (order: {told.order})."]
    if found.queued_s >= 0:
        after = f"{duration(found.queued_s)} later" if found.queued_s else "At once"
        lines.append(f"{after} it was the first job that could not start.")
    if found.first >= 0:
        line = (
            f"It was promised to start {duration(found.first - job['submit_time'])} after it came"
        )
        moved = (found.earlier, "an earlier"), (found.later, "a later")
        told_moves = [f"{times(often)} to {which} time" for often, which in moved if often]
        line += f"; that moved {' and '.join(told_moves)}" if told_moves else ""
        before = found.last - job["start_time"]
        line += (
            f". It started {duration(before)} before the last of these times" if before > 0 else ""
        )
        lines.append(f"{line}.")
        if found.ended_early:
            ended = counted(found.ended_early, "job")
            lines.append(f"{ended} ended earlier than predicted meanwhile.")
    return lines


def _of_others(told: Facts) -> list[str]:
    """Return sentences on the jobs that ran while it waited."""
    others, delay = told.others, _tried(told.others)
    if not len(others):
        return []
    lines = [_by_what_right(others["right"].value_counts())]
    lines += _who_came_later(others, told.job["submit_time"])
    if not len(delay):
        return lines
    if helped := int((delay < 0).sum()):
        which = "one" if helped == 1 else f"any one of {helped:,}"
        lines.append(f"Without {which} of them it would have started later.")
    harmless = int((delay == 0).sum())
    if harmless and harmless < len(delay):
        others_too = f"The other {harmless:,}" if harmless > 1 else "The other one"
        lines.append(f"{others_too} made no difference.")
    if len(delay) < len(others):
        untried = len(others) - len(delay)
        lines.append(f"{untried:,} of them {'was' if untried == 1 else 'were'} not tried.")
    return lines


def _by_what_right(counts: pd.Series[int]) -> str:
    """Return how many jobs ran while it waited for which reason, by these counts, in words."""
    if counts.sum() == 1:
        return f"While it waited, 1 job ran, which {_of_one(RIGHTS[counts.index[0]])}."
    told = {name: int(counts[name]) for name in RIGHTS if name in counts}
    parts = [
        f"{n:,} {RIGHTS[name] if n > 1 else _of_one(RIGHTS[name])}" for name, n in told.items()
    ]
    return f"While it waited, {counted(int(counts.sum()), 'job')} ran: {'; '.join(parts)}."


def _of_one(words: str) -> str:
    """Return what several did, as of one."""
    words = words.replace("they had", "it had")
    return words.replace("were ", "was ")


def _who_came_later(others: pd.DataFrame, submit: int) -> list[str]:
    """Return a sentence on those of the jobs that ran which came later, if there are any."""
    later = others[others["submit_time"] > submit]
    if not len(later):
        return []
    which = "That job" if len(others) == 1 else f"{len(later):,} of these"
    delay = _tried(later)
    if not len(delay):
        return [f"{which} came later than it."]
    late = int((delay > 0).sum())
    if len(later) == 1:
        return [f"{which} came later than it, and {'delayed' if late else 'did not delay'} it."]
    of = "them" if len(delay) == len(later) else f"the {len(delay):,} that were tried"
    return [f"{which} came later than it; {f'{late:,}' if late else 'none'} of {of} delayed it."]
