"""Which colour each job has in a Gantt chart: by user, by code, or by how much it was sped up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.naming import counted
from hpcgym.report.canvas import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
)
from hpcgym.workload.names import called, names_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

#: Colours of the users with most processor time, and of all others.
USER_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY_BLUE, VERMILLION, YELLOW)
#: Several greys, or all others' jobs would look like one.
OTHERS_COLOURS = ("#8C8C8C", "#A6A6A6", "#BFBFBF")
#: Colours of jobs in turn, where users are unknown.
JOB_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY_BLUE, VERMILLION)

#: Job speedups below which a colour ends; the same in all pictures, so that they compare.
SPEEDUP_EDGES = (0.8, 0.9, 1 - 1e-9, 1 + 1e-9, 1.1, 1.25)
#: What they are called: slower jobs are orange, faster ones blue, the farther from 1 the darker.
SPEEDUP_NAMES = (
    "below 0.8",
    "0.8 to 0.9",
    "0.9 to 1",
    "1",
    "1 to 1.1",
    "1.1 to 1.25",
    "above 1.25",
)
SPEEDUP_COLOURS = ("#A63603", "#E6752E", "#FBBE86", "#C8C8C8", "#A9D3EC", "#4A98CC", "#08519C")


class Palette(NamedTuple):
    """``colours`` (n_colours, 3), which of them each job has, and the meaning of some."""

    colours: NDArray[np.float64]
    of_job: NDArray[np.int64]
    meaning: dict[str, str]


def palette_of(
    result: Result, by: str | None = None, span: tuple[float, float] | None = None
) -> Palette:
    """Give the jobs colours.

    Parameters
    ----------
    by : "user"; "code" or "speedup", of schedules with speedups; None: "speedup" there, "code" if
        all jobs are compact, else "user".
    span : from when until when users count [s]; None: always.

    Raises
    ------
    HpcgymError : another name, or one that needs speedups.
    """
    if by is None:
        by = _usual(result)
    check_choice("colours", by, _PALETTES)
    if by != "user" and result.coschedule is None:
        raise HpcgymError(f"colours by {by} are for schedules with speedups of jobs")
    if by == "user":
        return _by_user(result, span)
    palette: Palette = _PALETTES[by](result)
    return palette


def _usual(result: Result) -> str:
    """Return what colours tell if nobody says."""
    if result.coschedule is None:
        return "user"
    return "speedup" if result.coschedule.shape.any() else "code"


def speedup_classes(result: Result) -> NDArray[np.int64]:
    """Return the place in ``SPEEDUP_NAMES`` of the speedup of each job, (n_jobs,)."""
    return np.searchsorted(SPEEDUP_EDGES, result.job_speedup, "right")


def _by_user(result: Result, span: tuple[float, float] | None) -> Palette:
    """Give a colour to each of the users with most processor time within a span of time."""
    users, user = np.unique(result.workload.user_id, return_inverse=True)
    if users.size == 1:
        turns = np.arange(user.size) % len(JOB_COLOURS)
        return Palette(_rgb(JOB_COLOURS), turns, {})
    begin, end = span or (-np.inf, np.inf)
    ran = np.minimum(result.start + result.run_time, end) - np.maximum(result.start, begin)
    area = np.bincount(user, np.maximum(ran, 0) * result.workload.requested_processors)
    names = names_of(result.workload, "user_id")
    return _by_area([called(names, "user", number) for number in users.tolist()], user, area)


def _by_code(result: Result) -> Palette:
    """Give a colour to each of the codes that have had most of the nodes."""
    run = result.coschedule
    assert run is not None
    assert result.allocation is not None
    lanes = np.diff(result.allocation.first) * np.where(run.shares, 1, run.parts)
    area = np.bincount(run.code, result.run_time * lanes, len(run.speedups.codes))
    seen = np.flatnonzero(area)
    place = np.zeros(len(area), np.int64)
    place[seen] = np.arange(len(seen))
    return _by_area([run.speedups.codes[code] for code in seen], place[run.code], area[seen])


def _by_speedup(result: Result) -> Palette:
    """Give a colour to each class of speedups."""
    of_job = speedup_classes(result)
    shares = np.bincount(of_job, minlength=len(SPEEDUP_NAMES)) / of_job.size
    meaning = {
        f"{name} ({_percent(share)} of jobs)": colour
        for name, share, colour in zip(SPEEDUP_NAMES, shares, SPEEDUP_COLOURS, strict=True)
        if share
    }
    first, *others = meaning
    meaning = {f"job speedup {first}": meaning[first], **{name: meaning[name] for name in others}}
    return Palette(_rgb(SPEEDUP_COLOURS), of_job, meaning)


_PALETTES: dict[str, Any] = {"user": _by_user, "code": _by_code, "speedup": _by_speedup}


def _by_area(names: Sequence[str], owner: NDArray[np.int64], area: NDArray[Any]) -> Palette:
    """Give a colour to those that have most of the area, greys to all others."""
    seen = int(np.count_nonzero(area))
    busiest = np.argsort(-area, kind="stable")[: min(seen, len(USER_COLOURS))]
    place = len(USER_COLOURS) + np.arange(len(names)) % len(OTHERS_COLOURS)
    place[busiest] = np.arange(busiest.size)
    meaning = {
        f"{names[row]} ({_percent(area[row] / area.sum())})": colour
        for row, colour in zip(busiest, USER_COLOURS, strict=False)
    }
    if seen > busiest.size:
        meaning[counted(seen - busiest.size, "other")] = OTHERS_COLOURS[1]
    return Palette(_rgb((*USER_COLOURS, *OTHERS_COLOURS)), place[owner], meaning)


def _rgb(colours: Sequence[str]) -> NDArray[np.float64]:
    from matplotlib.colors import to_rgb

    return np.array([to_rgb(colour) for colour in colours])


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"
