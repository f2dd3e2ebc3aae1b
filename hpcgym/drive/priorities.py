"""Which priorities to change so that jobs stand in an order, as few as can be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise

#: Priorities that are set lie above this: whatever Slurm gives by itself is below, so that jobs
#: which have just come stand behind until they are looked at.
LOWEST = 0xFFFF0000
#: Above are values that stand for something else.
HIGHEST = 0xFFFFFFFD
#: So many jobs can stand in a queue whose order is set.
MOST = 20_000


def changes(wanted: Sequence[str], present: Mapping[str, int]) -> dict[str, int]:
    """Return the priorities to set, job -> priority, in the order of the jobs; {}: none.

    Jobs that stand in the order already keep their priorities; others get one between those of
    their neighbours. Where there is no room, all get new ones.

    Parameters
    ----------
    wanted : the jobs, the first first; those after the first 20,000 are left alone.
    present : job -> its priority now.
    """
    jobs = wanted[:MOST]
    given = [present[job] for job in jobs]
    if all(before > after for before, after in pairwise(given)):
        return {}
    values = _between(len(jobs), {place: given[place] for place in _falling(given)})
    if values is None:
        values = _between(len(jobs), {})
        assert values is not None
    return {job: new for job, old, new in zip(jobs, given, values, strict=True) if old != new}


def _falling(values: Sequence[int]) -> list[int]:
    """Return the places of a longest falling part of the values that were set."""
    least: list[int] = []  # the negative last value of the best part of each length
    at: list[int] = []
    before = [-1] * len(values)
    for place, value in enumerate(values):
        if not LOWEST < value < HIGHEST:
            continue
        length = bisect_left(least, -value)
        if length == len(least):
            least.append(-value)
            at.append(place)
        else:
            least[length], at[length] = -value, place
        before[place] = at[length - 1] if length else -1
    found, place = [], at[-1] if at else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


def _between(number: int, kept: Mapping[int, int]) -> list[int] | None:
    """Return falling values, those that are kept as they are; None if there is no room."""
    edges = [(-1, HIGHEST), *sorted(kept.items()), (number, LOWEST)]
    values: list[int] = []
    for (place, high), (after, low) in pairwise(edges):
        missing = after - place - 1
        if high - low <= missing:
            return None
        values += [high - (high - low) * k // (missing + 1) for k in range(1, missing + 1)]
        values += [low] if after < number else []
    return values
