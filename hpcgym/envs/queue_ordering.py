"""The environment in which an agent gives each visible job a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from hpcgym.envs.core.base import (
    DEFAULT_WORKLOAD,
    ORDERING_KIND,
    PLAYED_ON,
    Definition,
    read_options,
    read_skips,
)
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv


def read_queue_ordering(
    workload: Any = DEFAULT_WORKLOAD, *, skip_forced: bool = False, **arguments: Any
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    options = read_options(workload, **arguments)
    space = spaces.Box(-1.0, 1.0, (options.window,), np.float32)
    return Definition(ORDERING_KIND, options, space, skips=read_skips(skip_forced))


@page
class QueueOrdering(SchedulingEnv):
    """Give each visible job a score; the queue is served from the highest to the lowest.

    Id: `"hpcgym/QueueOrdering-v2"`.

    ## Description

    The agent orders the queue of each scheduling pass. Jobs start in this order while they fit.
    With `backfill="easy"` the first that does not fit gets the reservation, and the others are
    backfilled around it in `backfill_order`. With `"depth:K"` the first K such jobs get
    reservations, with `"conservative"` each job has one; `"slurm"` gives reservations as Slurm
    does. With `backfill="none"` all other jobs wait.

    {Description}

    ## Decision points

    Each scheduling pass asks once, if some waiting job, visible or not, fits the free processors.
    Scores and reservation hold for this pass. With `backfill="conservative"` each pass asks at
    which jobs wait. With `"slurm"` each event does, and the scores hold until the next. An agent
    whose scores order the jobs as a policy does makes the schedule of `hpcgym.simulate` with this
    policy and the same rules, if the window shows all waiting jobs.

    ### Quotas and windows

    {Quotas and windows}

    {Stopped jobs}

    ## Action Space

    `Box(-1, 1, (window,), float32)`: entry i is the score of visible job i. The highest comes
    first; ties are in order of submission, and so are the jobs outside the window, which come last.
    Only the order counts: numbers outside [-1, 1] are taken as they are, and entries without a job
    are not read. Another shape, NaN or infinity raises `HpcgymError`, also in entries without a
    job.

    ## Starting State

    {Starting State}

    {Around slices}

    {Extracts}

    ## Arguments

    | `skip_forced` | `True` | whether no step is taken where one job is visible, except the \
first of an episode |
    """

    action_kind: ClassVar[str] = "order"
    read_arguments = staticmethod(read_queue_ordering)
    usual: ClassVar[Mapping[str, Any]] = {**PLAYED_ON, "skip_forced": True}


class QueueOrderingVector(SchedulingVectorEnv):
    """Many environments :class:`QueueOrdering` in one."""

    single = QueueOrdering
