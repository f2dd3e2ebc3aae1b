"""Why a job waited: spells of one reason, and the same in plain sentences, the answer first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.labels import in_short
from hpcgym.explanation import watching
from hpcgym.names import CORE, FEATURES, MEMORY, PARTITION
from hpcgym.schedule.result import Result
from hpcgym.scheduler.restrictions import bound_submissions
from hpcgym.simulation.nodes import simulates_as_pool
from hpcgym.simulation.prepare import candidate_times_of
from hpcgym.units import duration
from hpcgym.words import counted
from hpcgym.workload.amounts import asked_of
from hpcgym.workload.checks import needs_on
from hpcgym.workload.followers import followed
from hpcgym.workload.needs import units_on

if TYPE_CHECKING:
    import pandas as pd


# --- What a job waited for ------------------------------------------------------------------------

Ints = NDArray[np.int64]
Needs = NDArray[np.int64]  # (n_jobs, 1 + R), units and what each asks for

#: What a job may have waited for: name -> what held as it waited.
REASONS = {
    "quota": "it would have exceeded a quota",
    "processors": "fewer processors were free than it asks for",
    "nodes": "enough cores were free, but no nodes had room for all of it",
    "partition": "too few of the nodes with room for it were open to its partition",
    "features": "too few of the nodes with room for it had the features that it needs",
    "order": "nothing starts out of order",
    "reservation": "it would have delayed the first job of the queue",
    "plan": "all earlier times were reserved for others",
    "plan_or_hold": "earlier times were reserved, or processors were to stay free behind it",
    "clock": "the next pass that backfills was to come",
    "unseen": "passes that backfill do not look at so many jobs",
    "hold": "processors were to stay free behind it",
    "before": "the extract had not begun",
}
#: What they are called in tables and pictures.
CALLED = {
    "quota": "quota",
    "processors": "too few processors free",
    "nodes": "no room on nodes",
    "partition": "no room in partition",
    "features": "no room on nodes with its features",
    "order": "order",
    "reservation": "first job's reservation",
    "plan": "others' reservations",
    "plan_or_hold": "reservations, or held-back processors",
    "clock": "next pass that backfills",
    "unseen": "not looked at",
    "hold": "held-back processors",
    "before": "before the extract",
}
#: By what right jobs may have run while another waited, in words of one and of many.
RIGHTS = {
    "outside": "ended before it was submitted",
    "ran": "ran already",
    "stopped": "stopped others to start, or may have",
    "order": "started in turn, first of the queue",
    "shadow": "had to end before the first job of the queue could start",
    "relaxed": "were expected to end by the reservation of the first job, as its wait was short of"
    " the limit of relaxed backfilling, and may have delayed it",
    "extra": "fitted on processors that the first job of the queue leaves free",
    "gap": "fitted in before what was reserved",
    "filled": "were backfilled",
    "chosen": "started by choice",
    "resumed": "went on after a suspension",
    "unknown": "started, and had to stop later",
}


def reasons_at(
    result: Result,
    rows: NDArray[np.int64],
    at: watching.Moment,
    unseen: NDArray[np.bool_],
    barred: NDArray[np.bool_],
    needs: Needs | None,
) -> NDArray[np.int8]:
    """Return what each of some jobs waits for after a pass at which it did not start.

    Parameters
    ----------
    rows : of the jobs, (k,).
    unseen : whether a pass that backfills does not look at each, (k,) bool; for Slurm alone.
    barred : whether each would exceed a quota, (k,) bool.
    needs : what jobs ask of nodes, None on a pool.

    Returns
    -------
    Places in :data:`REASONS`, (k,) int8.
    """
    scheduler = result.scheduler
    width = result.workload.requested_processors[rows]
    tests = [("quota", barred), ("processors", width > at.free)]
    if needs is not None:
        for name, free in (
            ("nodes", (PARTITION, FEATURES)),
            ("partition", (FEATURES,)),
            ("features", ()),
        ):
            without = needs.copy()
            without[:, 1:-1][:, _begin_with(result, free)] = 0
            tests.append((name, ~have_room(result, rows, at.time, without)))
    if scheduler.reserve.slurm is not None:
        if scheduler.reserve.depth == 0:  # each partition is served in order
            return _first(tests, "order")
        tests.append(("clock", np.full(len(rows), not at.looked)))
        tests.append(("unseen", unseen))
    if scheduler.reserve.several:
        return _first(tests, "plan" if scheduler.hold is None else "plan_or_hold")
    tests.append(("hold", (rows == at.head) | (at.head == -1)))
    if scheduler.reserve.kind == "none":
        return _first(tests, "order")
    # on nodes what is left beside the head is counted by nodes, under quotas it is not counted
    if result.allocation is None and not scheduler.quota:
        ends = at.time + result.predicted_run_time[rows]
        until = at.shadow - (scheduler.reserve.kind == "until-shadow")  # ends before it
        tests.append(("hold", (width <= at.extra) | (ends <= until)))
    return _first(tests, "reservation")


def _first(tests: Sequence[tuple[str, NDArray[np.bool_]]], otherwise: str) -> NDArray[np.int8]:
    """Return the place in REASONS of the first test that holds, of each job."""
    names = list(REASONS)
    codes = np.full(len(tests[0][1]), names.index(otherwise), np.int8)
    for name, holds in reversed(tests):
        codes[holds] = names.index(name)
    return codes


def _begin_with(result: Result, words: tuple[str, ...]) -> list[bool]:
    """Return which resources of the machine begin with one of some words, (R,)."""
    return [name.startswith(words) for name in result.cluster.resources]


def needs_of_nodes(result: Result) -> Needs | None:
    """Return what jobs ask of the nodes that a schedule gave them; None where cores are alike."""
    if result.allocation is None:
        return None
    needs = needs_on(result.workload, result.cluster)
    return None if simulates_as_pool(needs, result.scheduler) else needs


def have_room(
    result: Result, rows: NDArray[np.int64], time: int, needs: Needs
) -> NDArray[np.bool_]:
    """Return whether the nodes hold each of some jobs beside those that run after a pass, (k,)."""
    assert result.allocation is not None
    start = result.start
    running = np.flatnonzero((start <= time) & (start + result.run_time > time))
    cells = result.allocation.rows(running)
    owner = np.repeat(running, np.diff(cells.first))
    free = result.cluster.capacity.astype(np.int64).copy()
    np.subtract.at(free, cells.node, cells.units[:, None] * needs[owner, 1:-1])
    demands, kind = np.unique(needs[rows, 1:], axis=0, return_inverse=True)
    room = np.array([int(units_on(free, demand).sum()) for demand in demands], np.int64)
    fits: NDArray[np.bool_] = room[kind.ravel()] >= needs[rows, 0]
    return fits


class Spell(NamedTuple):
    """A part of a wait.

    Attributes
    ----------
    reason : what the job waited for, a name of :data:`REASONS`.
    behind : whether other jobs stood before it in the queue; not told of quotas, which keep a job
        wherever it stands.
    seconds : how long [s].
    """

    reason: str
    behind: bool
    seconds: int


def spells_of(result: Result, job: int, passes: Sequence[watching.Pass]) -> list[Spell]:
    """Return the parts of a job's wait, of each reason at most two, the longest first.

    If there are no passes, the list is empty; otherwise the parts add up to the wait.
    """
    if not passes:
        return []
    seen, start = watching.seen_from(result, job), int(result.start[job])
    seconds = {
        ("before", False): seen - int(result.workload.submit_time[job]),
        # passes at single events: a job that does not fit as it comes has no pass
        ("processors", passes[0].ahead > 0): min(passes[0].at.time, start) - seen,
    }
    needs, names = needs_of_nodes(result), list(REASONS)
    row = np.array([job])
    for pass_, spent in _with_times(passes, start):
        kept_out = np.array([pass_.unseen]), np.array([bool(pass_.quotas)])
        name = names[int(reasons_at(result, row, pass_.at, *kept_out, needs)[0])]
        part = name, pass_.ahead > 0 and name != "quota"
        seconds[part] = seconds.get(part, 0) + spent
    spells = [Spell(name, behind, spent) for (name, behind), spent in seconds.items() if spent > 0]
    return sorted(spells, key=lambda spell: -spell.seconds)


def summed(spells: Sequence[Spell]) -> dict[str, int]:
    """Return how long a job waited for what, reason -> [s]."""
    seconds: dict[str, int] = {}
    for spell in spells:
        seconds[spell.reason] = seconds.get(spell.reason, 0) + spell.seconds
    return seconds


def kept_by_quotas(passes: Sequence[watching.Pass], start: int) -> dict[str, int]:
    """Return for how long a job would have exceeded each quota, quota -> [s]; at once, several."""
    seconds: dict[str, int] = {}
    for pass_, spent in _with_times(passes, start):
        for quota in map(str, pass_.quotas):
            seconds[quota] = seconds.get(quota, 0) + spent
    return seconds


def _with_times(passes: Sequence[watching.Pass], start: int) -> Iterator[tuple[watching.Pass, int]]:
    """Yield the passes at which a job did not start, with the time from each to the next [s]."""
    times = [pass_.at.time for pass_ in passes] + [start]
    for pass_, until in zip(passes, times[1:], strict=True):
        if pass_.at.time < start:
            yield pass_, min(until, start) - pass_.at.time


def rights(
    result: Result, others: watching.Meanwhile, passes: Sequence[watching.Pass]
) -> list[str]:
    """Return by what right each of some jobs ran while another waited: names of RIGHTS."""
    shadows = {pass_.at.time: pass_.at for pass_ in passes}
    chosen = result.outside or result.dispatcher is not None
    plans = result.scheduler.reserve.several
    names = []
    for place, row in enumerate(others.row.tolist()):
        start = int(others.start[place])
        if others.outside[place]:
            names.append("outside")
        elif others.before[place]:
            names.append("ran")
        elif others.stopped[place]:
            names.append("stopped")
        elif others.resumed[place]:
            names.append("resumed")
        elif chosen:
            names.append("chosen")
        elif not others.marked[place]:
            names.append("unknown")
        elif not result.backfilled[row]:
            names.append("order")
        elif plans:
            names.append("gap")
        elif start not in shadows:  # the passes cannot be made again
            names.append("filled")
        else:
            names.append(_right_behind(result, row, shadows[start]))
    return names


def _right_behind(result: Result, row: int, at: watching.Moment) -> str:
    """Return by what right a job started at a pass before the first job that waits."""
    until = at.shadow - (result.scheduler.reserve.kind == "until-shadow")
    if at.time + int(result.predicted_run_time[row]) <= until:
        return "shadow"
    limit, submit = result.scheduler.relax, result.workload.submit_time
    if limit is None or at.head < 0 or at.time - int(submit[at.head]) >= limit:
        return "extra"
    times = result.candidate_run_time
    if times is None:  # known beforehand
        run = np.minimum(result.workload.run_time, result.workload.requested_time)
        times = candidate_times_of(result.workload, result.scheduler, run)
    return "relaxed" if at.time + int(times[row]) <= until else "extra"


# --- An explanation in words: plain sentences, the answer first -----------------------------------

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


class WaitFacts(NamedTuple):
    """What the sentences are made of; see :class:`hpcgym.explanation.explain.Explanation`."""

    number: int
    job: dict[str, Any]
    later: str  # why it was submitted later than in the log, if it was
    runs: int
    spells: list[Spell]
    quotas: dict[str, int]
    others: pd.DataFrame
    moves: Moves | None
    order: str
    unwatched: str  # why the passes cannot be made again, if they cannot


def refused_by(result: Result, job: int, due: int) -> dict[str, int]:
    """Return which quotas of submitted jobs kept a job out, quota -> [s] for which each was full.

    ``due``: when the log submits it [s]. Nothing where jobs follow others, which moves that.
    """
    rules, workload = result.scheduler, result.workload
    came = int(workload.submit_time[job])
    seconds: dict[str, int] = {}
    for quota in rules.quota if rules.dependencies == "none" and due < came else ():
        group = quota.counted(workload)
        if not quota.submitted or group[job] < 0 or quota.spared(workload)[job]:
            continue
        within = np.flatnonzero(group == group[job])
        within = within[within != job]
        begin, end = (
            np.clip(times[within], due, came) for times in (workload.submit_time, result.end)
        )
        times = np.unique(np.concatenate(([due, came], begin, end)))
        for name, most in quota.submitted.items():
            asked = asked_of(workload, [name])[:, 0]
            had = _so_far(begin, asked[within], times) - _so_far(end, asked[within], times)
            full = int(np.diff(times)[had[:-1] + asked[job] > most].sum())
            if full:
                seconds[str(quota.with_bounds({name: most}))] = full
    return seconds


def _so_far(when: Ints, asked: Ints, times: Ints) -> Ints:
    """Return how much was asked for up to each time, inclusive, (n_times,)."""
    order = np.argsort(when)
    sums = np.concatenate([[0], np.cumsum(asked[order])])
    so_far: Ints = sums[np.searchsorted(when[order], times, "right")]
    return so_far


def why_later(result: Result, job: int, due: int) -> str:
    """Return why a job is submitted later than at ``due`` [s], when the log submits it, in words.

    Either the jobs that it follows ended later, or a quota of submitted jobs kept it out, or both.
    """
    rules, workload = result.scheduler, result.workload
    following, quota = followed(workload), "because of a quota of submitted jobs"
    others = following.other[following.job == job]
    if rules.dependencies == "none" or not len(others):
        return quota
    first = f"job {workload.job_number[others[0]]}, which it follows,"
    after = f"after {first if len(others) == 1 else 'the jobs that it follows'} had ended"
    if not bound_submissions(rules.quota):
        return after
    think = int(workload.think_time[job])
    if rules.dependencies == "closed-loop" and think < 0:
        return f"{after}, and perhaps {quota}"
    ready = int(result.end[others].max()) + max(think, 0)
    if workload.submit_time[job] <= ready:
        return after
    return quota if ready <= due else f"{after}, and {quota}"


def moves(result: Result, job: int, passes: Sequence[watching.Pass]) -> Moves | None:
    """Return how a job's reservation moved in the passes of its wait; None without passes."""
    if not passes:
        return None
    submit, start = int(result.workload.submit_time[job]), int(result.start[job])
    own = [pass_.at for pass_ in passes if pass_.at.head == job and pass_.at.time < start]
    times = [moment.shadow for moment in own if moment.shadow >= 0]
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


def story(facts: WaitFacts) -> list[str]:
    """Return an explanation as sentences, the most important first."""
    job = facts.job
    asked = f"{_resources(job)} for {duration(job['requested_time'])}"
    past = job["recorded_wait_time"]
    recorded = "" if past is None else f"; in the log it waited for {duration(past)}"
    lines = [f"It asked for {asked}, and waited for {duration(job['wait_time'])}{recorded}."]
    if job["submitted_later"] > 0:
        later = f"It was submitted {duration(job['submitted_later'])} later than in the log"
        lines.append(
            "It was refused when the log submits it, because of a quota of submitted jobs"
            f"{_which_quotas(job['refused_by'])}. {later}, and its wait counts from then."
            if job["refused_by"]
            else f"{later}, {facts.later}."
        )
    if facts.runs > 1:
        lines.append(f"The log has {facts.runs} jobs or runs with this number; this is the last.")
    if job["suspended"] > 0:
        lines.append(
            f"Of that it was suspended for {duration(job['suspended'])}, after its first start."
        )
    stops = watching.in_words([watching.Stop(**stop) for stop in job["stops"]], job["submit_time"])
    waited = [*_of_the_wait(facts), *_of_the_queue(facts)]
    if job["wait_time"] == 0:
        lines.append(f"{'Then it' if job['submitted_later'] > 0 else 'It'} started at once.")
        waited = []
    return [*lines, *_of_delays(facts.others), *stops, *waited, *_of_others(facts)]


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
        if len(delay) == 1:
            return ["1 other job was left out, and did not delay it."]
        return [f"{len(delay):,} other jobs were left out, one at a time: none alone delayed it."]
    (first, most), *more = [(number, duration(each)) for number, each in late.items()]
    lines = [f"without job {first} it would have started {most} earlier"]
    lines += [f"without {number}, {seconds}" for number, seconds in more[: _NAMED - 1]]
    rest = len(late) - _NAMED
    lines += [f"{counted(rest, 'other')} delayed it too"] if rest > 0 else []
    return [f"{counted(len(late), 'job')} delayed it: {'; '.join(lines)}."]


def _tried(others: pd.DataFrame) -> pd.Series[int]:
    """Return the delays that are known, by the numbers of the jobs."""
    return others["delay"].dropna().astype(np.int64)


def _of_the_wait(facts: WaitFacts) -> list[str]:
    """Return sentences on what held when, the longest first."""
    if not facts.spells:
        return [f"Why it waited cannot be worked out {facts.unwatched}."]
    waited = facts.job["wait_time"]
    lines, first = [], "with no job before it, " * any(spell.behind for spell in facts.spells)
    for reason, behind, seconds in facts.spells:
        part = f"{seconds / waited:.0%}" if seconds >= waited / 200 else "less than 1%"
        share = f" ({part} of its wait)" if len(facts.spells) > 1 else ""
        if reason == "before":
            lines.append(
                f"When the extract began it had waited for {duration(seconds)}{share}; for what, is"
                " not simulated."
            )
            continue
        kept = reason == "quota"
        stood = "behind other jobs, while" if behind else f"{'' if kept else first}because"
        which = _which_quotas(facts.quotas) if kept else ""
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


def _before_extract(facts: WaitFacts) -> int:
    """Return how long a job had waited when an extract began [s]."""
    return summed(facts.spells).get("before", 0)


def _of_the_queue(facts: WaitFacts) -> list[str]:
    """Return sentences on the job's place in the queue, and what was reserved for it."""
    moves, job = facts.moves, facts.job
    if moves is None:
        return []
    unseen = _before_extract(facts)
    place = (
        f"{counted(moves.ahead, 'job')} stood before it"
        if moves.ahead
        else "No job stood before it"
    )
    when = "when the extract began" if unseen else "when it came"
    lines = [f"{place} in the queue {when} (order: {in_short(facts.order)})."]
    if moves.queued_s >= 0:
        after = f"After {duration(moves.queued_s)}" if moves.queued_s else "At once"
        if unseen and moves.queued_s <= unseen:
            after = "Then"
        lines.append(f"{after} it was the first job that could not start.")
    if moves.first >= 0:
        reserved = duration(moves.first - job["submit_time"])
        moved = (moves.earlier, "an earlier"), (moves.later, "a later")
        told_moves = [f"{watching.times(often)} to {which} time" for often, which in moved if often]
        line = f"Its first reservation{' then' * bool(unseen)} was for {reserved} after it came"
        line += f", and moved {' and '.join(told_moves)}" if told_moves else ""
        lines.append(f"{line}.")
        if (late := job["start_time"] - moves.first) > 0:
            lines.append(f"That promise was broken: it started {duration(late)} later.")
        if (before := moves.last - job["start_time"]) > 0:
            lines.append(f"It started {duration(before)} before the last time reserved for it.")
        if moves.ended_early:
            ended = f"{counted(moves.ended_early, 'job')} ended earlier than predicted"
            lines.append(f"While it was the first job that could not start, {ended}.")
    return lines


def _of_others(facts: WaitFacts) -> list[str]:
    """Return sentences on the jobs that ran while it waited."""
    others, delay = facts.others, _tried(facts.others)
    if not len(others):
        return []
    counts = others["right"].value_counts()
    parts = [f"{counts[name]:,} {words}" for name, words in RIGHTS.items() if name in counts]
    refused, waited = bool(facts.job["refused_by"]), facts.job["wait_time"] > 0
    when = "waited or was refused" if refused and waited else "was refused" if refused else "waited"
    if _before_extract(facts):
        when += " in the extract"
    lines = [f"While it {when}, {counted(len(others), 'job')} ran: {'; '.join(parts)}."]
    lines += _who_came_later(others, facts.job["submit_time"])
    if helped := int((delay < 0).sum()):
        without = "it" if helped == 1 else "one of these"
        later = f"without {without}, the job would start later"
        lines.append(f"{helped:,} of them helped: {later}.")
    harmless = int((delay == 0).sum())
    if harmless and harmless < len(delay):
        lines.append(f"{harmless:,} of them made no difference.")
    if len(delay) and (untried := len(others) - len(delay)):
        lines.append(f"Not tried: {untried:,} of them.")
    return lines


def _who_came_later(others: pd.DataFrame, submit: int) -> list[str]:
    """Return a sentence on those of the jobs that ran which came later, if there are any."""
    later = others[others["submit_time"] > submit]
    delay = _tried(later)
    if not len(delay):
        return [f"{len(later):,} of these came later than it."] if len(later) else []
    late = int((delay > 0).sum())
    of = "them" if len(delay) == len(later) else f"the {len(delay):,} that were tried"
    text = f"{len(later):,} of these came later than it; {f'{late:,}' if late else 'none'} of {of}"
    return [f"{text} delayed it."]
