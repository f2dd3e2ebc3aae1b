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

    Id: `"hpcgym/JobSelection-v2"`.

    ## Description

    This is the setting of the published reinforcement-learning schedulers. Whenever a job could
    start, the agent names one of the visible jobs. If it fits the free processors, it starts, and
    the agent is asked again. If not, it gets the reservation with `backfill="easy"`, and others may
    start around it; with `backfill="none"` all others wait.

    {Description}

    ## Decision points

    - `reservation="revised"`: a scheduling pass asks as long as some waiting job, visible or not,
      fits. A selected job that does not fit ends the pass: under EASY it gets the reservation of
      this pass, and all other jobs are backfilled in `backfill_order`. The next pass asks anew.
    - `reservation="kept"`, as in the published RL schedulers: a pass asks as long as jobs wait and
      none is selected, even if none fits. A selected job that does not fit stays selected until it
      starts, and each pass backfills the others around it.

    An agent that always selects the first job of a policy makes the schedule of `hpcgym.simulate`
    with this policy and the same rules if reservations are revised, the window shows all waiting
    jobs, and the policy does not look at the state (which `hpcgym.simulate` reads once a pass).

    ### Quotas and windows

    {Quotas and windows}

    Quotas, closed times and dependencies need `reservation="revised"`; `preemption` is refused.

    ## Action Space

    `Discrete(window)`: a place in the window. `info["action_mask"]`, (window,) int8, is 1 where
    there is a job: the first places; `env.unwrapped.action_masks()` is the same as bool, for
    sb3-contrib. A masked action means the oldest job. A number beyond the space raises
    `HpcgymError`.

    With `quota`, the mask is 0 for jobs that would exceed one now, and a masked action means the
    oldest job that would not. If that leaves no visible job, the first place stands for the first
    job behind the window that may start.

    With `shutdown_action=True` the space is `Discrete(window + 1)`. The last action begins to
    switch all idle processors off, with the powers and times of `cluster`; it is masked if none is
    idle. The same question follows. A job that takes processors that are off starts when they are
    on.

    ## Starting State

    {Starting State}

    {Around slices}

    {Extracts}

    ## Arguments

    | `reservation` | `"revised"` | or `"kept"`; see Decision points |
    | `shutdown_action` | `False` | whether one more action switches idle processors off |
    | `skip_forced` | `True` | whether a job that is the only choice is selected without a step, \
except the first of an episode |
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
