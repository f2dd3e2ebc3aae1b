"""PCP'19 as Galleguillos 2020 has it: what its solver finds by itself starts, and nothing else.

PCP'19 of :mod:`hpcgym.baselines.cp` is given the list's schedule: as a hint, as bounds of the
starts, as the answer where the solver finds no better one, and as proof that no model is needed.
Nor is a machine with jobs in its queue left idle. Nothing published says so. Here the same model
has starts in [t, eoh] (section 2.2), no hint, and a schedule of the solver is taken whatever the
list's is; where the solver finds none within its work, nothing starts, and jobs beyond the window
wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.workload.extracts import DAY_S

Ints = NDArray[np.int64]

#: The name in the study.
NAME = "pcp19 as published"


class AsPublished:
    """PCP'19 without a hint and without anything to fall back on.

    Attributes
    ----------
    name : of the dispatcher.
    limits : of the window and the solver: PCP'19's usual ones.
    asked : of each call at which some job fitted a dictionary: ``time`` [s], ``idle``, whether
        nothing ran, ``found``, whether the solver came to a schedule, and ``started`` jobs.
    """

    name = NAME
    own_nodes = True

    def __init__(self) -> None:
        pcp19: Any = find_dispatcher("pcp19")
        self._pcp19, self.limits = pcp19, pcp19.limits
        self.asked: list[dict[str, Any]] = []

    def __call__(self, view: PassView) -> list[tuple[int, Ints]]:
        """Return the places that start now, each with the node of each unit."""
        from hpcgym.baselines.cp.dispatcher import search

        if not view.fits().any():
            return []
        problem = replace(self._pcp19.pose(view), bounded=False)
        model = self._pcp19.model(problem)
        model.cp.clear_hints()
        schedule = search(model, self.limits, fixed=True).schedule
        starts = []
        if schedule is not None and schedule.nodes is not None:
            now = np.flatnonzero(schedule.start == 0)
            starts = [(int(problem.places[job]), schedule.nodes[job]) for job in now]
        self.asked.append(
            {
                "time": int(view.time),
                "idle": not len(view.running_job),
                "found": schedule is not None,
                "started": len(starts),
            }
        )
        return starts

    @property
    def stopped(self) -> bool:
        """Whether nothing started at its last call, though nothing ran."""
        return bool(self.asked) and self.asked[-1]["idle"] and not self.asked[-1]["started"]


def summary(asked: Sequence[dict[str, Any]], submit: Ints) -> dict[str, Any]:
    """Return how far a simulation came.

    Parameters
    ----------
    asked : what ``AsPublished.asked`` is after it.
    submit : (n_jobs,) of its workload [s].

    Returns
    -------
    ``jobs`` of the workload, ``started`` of them; ``calls``, and at how many of them nothing was
    ``found``; ``idle``, at how many of these nothing ran; ``days``, the time of the submissions,
    and the last start, ``last_day``, both from the first submission (nan if nothing started).
    """
    missed = [one for one in asked if not one["found"]]
    last = max((one["time"] for one in asked if one["started"]), default=float("nan"))
    return {
        "jobs": len(submit),
        "started": sum(one["started"] for one in asked),
        "calls": len(asked),
        "nothing found": len(missed),
        "idle": sum(one["idle"] for one in missed),
        "days": float(submit[-1] - submit[0]) / DAY_S,
        "last_day": (last - float(submit[0])) / DAY_S,
    }
