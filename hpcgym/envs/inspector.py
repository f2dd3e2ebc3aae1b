"""The environment in which an agent accepts or puts off what a rule is about to start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces

from hpcgym.envs.backfill import FOLLOWING, read_following
from hpcgym.envs.core.base import DEFAULT_WORKLOAD, PROPOSALS_KIND, Definition
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, check_whole

MOST_PUT_OFFS = 255  # the engine counts in a byte
LONGEST_DELAY = 10**9  # [s]


def read_inspector(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    policy: Any = "sjf",
    put_offs: int = 72,
    delay: int = 600,
    backfill_order: Any = None,
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    for name, value, least, most in (
        ("put_offs", put_offs, 0, MOST_PUT_OFFS),
        ("delay", delay, 1, LONGEST_DELAY),
    ):
        if check_whole(name, value, least) > most:
            raise HpcgymError(f"{name} must be at most {most}, not {value!r}")
    reservations = ("easy", "until-shadow", "none")
    options = read_following(
        workload, policy, reservations, backfill_order=backfill_order, **arguments
    )
    return Definition(
        PROPOSALS_KIND,
        options,
        spaces.Discrete(2),
        {"put_offs": put_offs, "delay": delay},
        puts_off=(put_offs, delay),
    )


@page
class Inspector(SchedulingEnv):
    """Accept the job that a rule is about to start, or put it off.

    Id: `"hpcgym/Inspector-v2"`.

    ## Description

    This is the question of SchedInspector (Zhang, Dai and Xie, HPDC 2022). A rule schedules: a
    `policy`, with its backfilling. Whenever it is about to start a job, the agent accepts, and the
    job starts, or puts it off.

    A job that was put off has no reservation in this scheduling pass, and others start as the rule
    says. The next pass comes at most `delay` seconds later. After `put_offs` times a job starts
    without a question. SchedInspector has the same bounds, 600 s and 72 times; but there no other
    job starts in that pass, and jobs are proposed that do not fit yet.

    {Description}

    ## Decision points

    Each scheduling pass asks about each job that would start next: first about the jobs that fit,
    in the order of `policy`, up to the first that does not and gets the reservation of this pass;
    then, with `backfill="easy"`, about those that would be backfilled around it, in
    `backfill_order`. The window shows the job in question first, then the others by submission.

    An agent that always accepts makes the schedule of `hpcgym.simulate` with the same rules. The
    proof of `hpcgym.validate_schedule` may fail for other agents: the machine is idle although jobs
    wait, or jobs start when no job is submitted or ends.

    ## Action Space

    `Discrete(2)`: 0 accepts the job, 1 puts it off. Another number raises `HpcgymError`.

    ## Starting State

    {Starting State}

    {Around slices}

    {Extracts}

    ## Arguments

    | `policy` | `"sjf"` | as in `hpcgym.simulate`, but no function, and nothing that looks at \
usage |
    | `put_offs` | `72` | how often a job may be put off, up to 255 |
    | `delay` | `600` | seconds after which a pass follows, if none does before |
    | `backfill` | `"easy"` | or `"until-shadow"`, `"none"` |
    | `backfill_order` | `None` | order in which jobs are backfilled: `"fcfs"`, `"sjbf"` or any \
policy; `None`: `"fcfs"` under first come, first served, else `"spf"` |

    ## Reference

    The rule itself, by `hpcgym.simulate`. SchedInspector trains under SJF, F1 and others.

    ## Version History

    - v2: what has happened before the first decision is no reward; observations have `progress`.
    - v1: the first.
    """

    action_kind: ClassVar[str] = "inspect"
    usual: ClassVar[Mapping[str, Any]] = FOLLOWING
    read_arguments = staticmethod(read_inspector)
    put_offs: int
    delay: int


class InspectorVector(SchedulingVectorEnv):
    """Many environments :class:`Inspector` in one."""

    single = Inspector
