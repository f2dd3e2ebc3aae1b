"""What can be proved of jobs that are suspended, for :mod:`hpcgym.validation.preemption`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.schedule.lost_runs import LostRuns, last_starts, ran_before
from hpcgym.validation.nodes import check_nodes
from hpcgym.validation.schedules import Timeline, Times, cases
from hpcgym.workload.needs import needs_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def check_pieces(result: Result, pieces: LostRuns, length: Times) -> list[str]:
    """Find jobs whose pieces do not add up to their run time, from their start to their end.

    ``length`` (n_jobs,) is how long a whole run lasts [s].
    """
    assert result.suspended is not None
    ran, paused = ran_before(result), result.suspended
    first = result.start.copy()
    first[pieces.job[::-1]] = pieces.start[::-1]
    stopped = np.zeros(len(result.start), np.bool_)
    stopped[pieces.job] = True
    text = "job {} has run for {} s when it goes on for the last time, of {} s"
    return [
        *cases(first != result.start, "job {} starts at {} s, its first piece at {} s",
               result.start, first),
        *cases((paused < 0) | ((paused > 0) & ~stopped), "job {} was suspended for {} s", paused),
        *cases(ran >= length, text, ran, length),
    ]  # fmt: skip


def check_kept(result: Result, pieces: LostRuns) -> list[str]:
    """Find jobs that go on on other nodes, and memory that others use while they are suspended.

    All but cores stays taken from the first start of a job to its end.
    """
    held = result.allocation
    assert held is not None
    for piece, job in enumerate(pieces.job.tolist()):
        own = slice(*held.first[job : job + 2].tolist())
        had = slice(*pieces.first[piece : piece + 2].tolist())
        mine = sorted(zip(held.node[own].tolist(), held.units[own].tolist(), strict=True))
        theirs = sorted(zip(pieces.node[had].tolist(), pieces.units[had].tolist(), strict=True))
        if mine != theirs:
            return [f"job {job} goes on on other nodes than those on which it was suspended"]
    needs = needs_of(result.workload, result.cluster.resources).copy()
    needs[:, 1] = 0
    return check_nodes(result, needs, held)


def check_going_on(
    result: Result, pieces: LostRuns, line: Timeline, called: Sequence[str]
) -> list[str]:
    """Find jobs of a pool that are still suspended when they could go on.

    One can if it fits beside all that run, and the suspended jobs that may stop it.

    Parameters
    ----------
    line : of all runs.
    called : of each job, the name by which others may stop it.
    """
    rule = result.scheduler.preempts
    assert rule is not None
    last = np.append(pieces.job[1:] != pieces.job[:-1], True)[: len(pieces.job)]
    until = np.where(
        last, last_starts(result)[pieces.job], np.append(pieces.start[1:], 0)[: len(last)]
    )
    begin, end = np.searchsorted(line.time, pieces.end), np.searchsorted(line.time, until)
    width = result.workload.requested_processors[pieces.job]
    held = {name: np.zeros(len(line.time) + 1, np.int64) for name in rule.levels}
    for piece, job in enumerate(pieces.job.tolist()):
        held[called[job]][begin[piece]] += width[piece]
        held[called[job]][end[piece]] -= width[piece]
    held = {name: np.cumsum(changes)[:-1] for name, changes in held.items()}
    for piece, job in enumerate(pieces.job.tolist()):
        span = slice(begin[piece], end[piece])
        taken = line.used[span] + width[piece]
        for one, other in rule.pairs:
            if other == called[job]:
                taken = taken + held[one][span]
        found = cases(
            taken <= result.cluster.processors,
            f"job {job} is still suspended at {{1}} s, when it fits",
            line.time[span],
        )
        if found:
            return found
    return []
