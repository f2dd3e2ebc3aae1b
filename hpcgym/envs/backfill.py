"""The environment in which an agent picks who starts before the head of the queue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces

from hpcgym.envs import single, vector
from hpcgym.envs.core.base import (
    CANDIDATES_KIND,
    DEFAULT_WORKLOAD,
    PLAYED_ON,
    Definition,
    Options,
    read_options,
)
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, check_choice, is_number
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.rules import MOST_RELAXED_S
from hpcgym.units import in_seconds

#: What is usual where a rule orders the queue.
FOLLOWING: Mapping[str, Any] = {
    name: value for name, value in PLAYED_ON.items() if name != "backfill_order"
}


def read_following(
    workload: Any, policy: Any, reservations: tuple[str, ...], **more: Any
) -> Options:
    """Return the options of an environment in which a policy orders the queue.

    ``reservations``: values of ``backfill`` that it may have.

    Raises
    ------
    HpcgymError : rules under which the agent is never asked, nodes, or a split window.
    """
    options = read_options(workload, policy=policy, **more)
    check_scheduler(options.scheduler, "environments by rule")
    check_choice("backfill", options.scheduler.backfill, reservations)
    if options.scheduler.usage_orders[0]:
        raise HpcgymError(
            f"policy={policy!r} looks at what users have used, which is counted only where the"
            " agent or backfill_order does"
        )
    if options.cluster.groups:
        raise HpcgymError(
            "cluster: Backfill and Inspector are for pools of processors: on nodes it depends on"
            " who was tried before who may start"
        )
    if options.split:
        raise HpcgymError("window='split' shows both ends of a queue; here the window shows others")
    return options


#: The value of ``promise`` under which no candidate can delay the head.
KEPT = "kept"


def read_backfill(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    policy: Any = "fcfs",
    promise: Any = KEPT,
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    options = read_following(workload, policy, ("easy", "until-shadow"), **arguments)
    if options.window < 2:
        raise HpcgymError("window must be at least 2 jobs: the head, and one that may start")
    broken_s = _broken_s(promise)
    if broken_s and options.scheduler.relax is not None:
        raise HpcgymError(
            "promise and relax do not go together: by one any job that fits may start while the"
            " head has not waited for long, by the other those that probably end in time"
        )
    return Definition(
        CANDIDATES_KIND,
        options,
        spaces.Discrete(options.window),
        {"promise": promise},
        breaks_s=broken_s,
    )


def _broken_s(promise: Any) -> int:
    """Return up to which wait of the head its promise may be broken [s], 0: never.

    Raises
    ------
    HpcgymError : neither "kept" nor a time.
    """
    if isinstance(promise, str) and promise == KEPT:
        return 0
    seconds = in_seconds(promise, "promise")
    if not is_number(seconds) or not 0 <= seconds <= MOST_RELAXED_S:
        raise HpcgymError(
            f"promise must be 'kept', or up to which wait of the head it may be broken, such as"
            f" '24h', not {promise!r}"
        )
    return math.ceil(seconds)


@page
class Backfill(SchedulingEnv):
    """Pick which job starts before the head of the queue, or none.

    Id: `"hpcgym/Backfill-v2"`.

    ## Description

    This is the question of RLBackfilling (Kolker-Hicks, Zhang and Dai, SC 2023 workshops). Jobs
    start in the order of a `policy` while they fit. The first that does not fit, the *head*, gets
    EASY's reservation: at the *shadow time* enough processors will be free for it, and some *extra*
    ones. A *candidate* fits now, and either ends by the shadow time or takes extra processors only.
    The agent says which candidate starts next, or none. All times are predictions: by them, it
    cannot delay the head, unless `promise` is a time: until the head has waited for that long any
    job that fits is a candidate. The metric `promises_broken` of a result tells how many heads
    started later than they were first promised.

    {Description}

    ## Decision points

    Each scheduling pass asks when the head has its reservation, again and again, until no candidate
    is left or the agent picks none. A picked job starts, and takes of the extra processors if it
    runs on beyond the shadow time. An episode without a question takes one step, whatever its
    action.

    Three agents make schedules of `hpcgym.simulate` with the same `policy` and rules:

    - one that picks the first place behind the head: EASY, `backfill_order="fcfs"`;
    - one that picks the first candidate of a policy: this policy as `backfill_order`, if the window
      shows all candidates;
    - one that picks none: `backfill="none"`.

    ## Action Space

    `Discrete(window)`: a place in the window. Place 0 is the head and stands for none, which ends
    the pass. Behind it are the candidates in order of submission. `info["action_mask"]`, (window,)
    int8, is 1 where there is a job: the first places, at least two when the agent is asked;
    `env.unwrapped.action_masks()` is the same as bool, for sb3-contrib. A masked action means none.
    A number beyond the space raises `HpcgymError`.

    ## Starting State

    {Starting State}

    {Around slices}

    {Extracts}

    ## Arguments

    | `policy` | `"fcfs"` | as in `hpcgym.simulate`, but no function, and nothing that looks at \
usage |
    | `promise` | `"kept"` | or up to which wait of the head it may be broken: seconds, or a text \
such as `"24h"` |
    | `backfill` | `"easy"` | or `"until-shadow"`: there are no extra processors |
    | `backfill_order` | `"fcfs"` | the agent takes its place; with `passes="per-event"` a pass \
follows each submission unless this is `"fcfs"` |

    ## Reference

    RLBackfilling asks about up to 128 candidates. On all of KTH-SP2, SDSC-SP2 and CTC-SP2, as
    multiples of EASY's values:

    | who is picked | mean bounded slowdown | longest wait |
    |---|---|---|
    | the smallest area | 0.75, 0.92, 0.56 | 1.09, 1.13, 1.20 |
    | the shortest | 0.75, 0.94, 0.62 | 1.09, 1.13, 1.18 |
    | any, by chance, or none | 0.94, 1.14, 0.72 | 1.11, 1.08, 1.17 |
    | the largest area | 1.13, 1.15, 1.40 | 1.00, 1.10, 1.08 |
    | none, always | 74, 157, 75 | 3.6, 11.9, 5.7 |

    ## Version History

    - v2: what has happened before the first decision is no reward; observations have `progress`.
    - v1: the first.
    """

    action_kind: ClassVar[str] = "backfill"
    usual: ClassVar[Mapping[str, Any]] = FOLLOWING
    read_arguments = staticmethod(read_backfill)
    promise: Any

    action_masks = single.action_masks


class BackfillVector(SchedulingVectorEnv):
    """Many environments :class:`Backfill` in one."""

    single = Backfill

    action_masks = vector.action_masks
