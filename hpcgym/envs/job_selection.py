"""The environment in which an agent selects the next job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces

from hpcgym.envs import single, vector
from hpcgym.envs.core.base import (
    DEFAULT_WORKLOAD,
    PLAYED_ON,
    SELECTION_KIND,
    Definition,
    read_options,
    read_skips,
)
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.scheduler.asked_for import check_scheduler

RESERVATIONS = ("revised", "kept")


def read_job_selection(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    reservation: str = "revised",
    shutdown_action: bool = False,
    skip_forced: bool = False,
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    keeps = check_choice("reservation", reservation, RESERVATIONS) == "kept"
    if not isinstance(shutdown_action, bool):
        raise HpcgymError(f"shutdown_action must be True or False, not {shutdown_action!r}")
    options = read_options(workload, **arguments)
    check_scheduler(options.scheduler, "job selection")
    if keeps and options.scheduler.restricts:
        raise HpcgymError(
            "reservation='kept' does not go with quota, maintenance or dependencies: the selected"
            " job may come to exceed its quota or to meet a window, and the others wait for it"
        )
    if options.scheduler.threshold is not None and options.scheduler.restricts:
        raise HpcgymError(
            "threshold does not go with quota, maintenance or dependencies where an agent names"
            " each job: who has waited longer may not be allowed to start"
        )
    if options.scheduler.hold is not None and options.scheduler.quota:
        raise HpcgymError(
            "hold and quota do not go together where an agent names each job: it would be asked for"
            " one although those that find room exceed a quota"
        )
    return Definition(
        SELECTION_KIND,
        options,
        spaces.Discrete(options.window + shutdown_action),
        {"reservation": reservation},
        keeps=keeps,
        shutdown_action=shutdown_action,
        skips=read_skips(skip_forced),
    )


@page
class JobSelection(SchedulingEnv):
    """Select the job that starts next, or gets the reservation.

    | | |
    |---|---|
    | id | `"hpcgym/JobSelection-v1"` |
    | action | `Discrete(window)`: the place of a job in the window; with a mask |
    | observation | `Dict` of five fields, or one flat `Box` |
    | reward | by default minus ln(1 + bounded slowdown / EASY's); dense |

    ## Description

    This is the setting of the published reinforcement-learning schedulers. Whenever a job could
    start, the agent names one of the waiting jobs that it sees. If enough processors are free, the
    job starts, and the agent is asked again. If not, the job is the head of the queue. With
    `backfill="easy"` it then gets the reservation, and others may start around it. With
    `backfill="none"` all others wait behind it.

    {Description}

    ## Decision points

    - `reservation="revised"`: a scheduling pass asks as long as some waiting job, visible or not,
      fits the free processors. A selected job that fits starts, and the pass goes on. A selected
      job that does not fit ends the questions. Under EASY it gets the reservation of this pass, and
      the other jobs, also those outside the window, are back-filled in `backfill_order`. The next
      pass asks anew.
    - `reservation="kept"`: a pass asks as long as jobs wait and none is selected, even if none of
      them fits. A selected job that does not fit stays selected until it starts. At each pass until
      then, the others are back-filled around it. The published RL schedulers do this.

    No time passes between the questions of a pass. Consider an agent that always selects the job
    that a policy puts first. If reservations are revised and no more jobs wait than the window
    shows, it makes the same schedule as `hpcgym.simulate` with this policy and the same rules. Not
    if the policy looks at the state: a simulation reads that once before a pass, and an agent that
    names jobs one by one sees what has changed in between.

    ### Quotas and windows

    {Quotas and windows}

    All of these need `reservation="revised"`. `preemption` is for QueueOrdering and MixedPolicy.

    ## Action Space

    `Discrete(window)`: a place in the window. `info["action_mask"]`, (window,) int8, is 1 where
    there is a job; these are the first places. `env.unwrapped.action_masks()` is the same as bool,
    under the name that sb3-contrib expects. A masked action means the job that was submitted first.
    A number beyond the space raises `HpcgymError`.

    With `quota`, the mask is 0 for jobs that would exceed one now, in the observation too, and a
    masked action means the first job by submission that would not. If the mask would be 0 for all
    visible jobs, the first place stands for the first job behind the window that may start.

    With `shutdown_action=True` the space is `Discrete(window + 1)`, and the last action begins to
    switch all idle processors off. It is masked if there are none. No time passes, and the same
    question is asked again. A job that takes processors which are off starts when they have been
    switched on. The powers and times are those of `cluster`.

    ## Starting State

    {Starting State} The clock moves to the first question, which comes with the first submission.

    {Around slices}

    {Extracts}

    ## Arguments

    | `reservation` | `"revised"` | or `"kept"`; see Decision points |
    | `shutdown_action` | `False` | whether one more action switches idle processors off |
    | `skip_forced` | `True` | whether the environment itself selects a job that is the only \
choice: no step is asked for it, except the first of an episode |

    ## Vectorized environment

    {Vectorized environment} Its `action_masks()` are (num_envs, n_actions) bool.
    """

    action_kind: ClassVar[str] = "select"
    read_arguments = staticmethod(read_job_selection)
    usual: ClassVar[Mapping[str, Any]] = {**PLAYED_ON, "skip_forced": True}
    reservation: str

    action_masks = single.action_masks


class JobSelectionVector(SchedulingVectorEnv):
    """Many environments :class:`JobSelection` in one."""

    single = JobSelection

    action_masks = vector.action_masks
