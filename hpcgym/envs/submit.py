"""The environment in which an agent says what the jobs of a user ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from gymnasium import spaces

from hpcgym.envs.backfill import read_following
from hpcgym.envs.core.base import PLAYED_ON, SHAPES_KIND, Definition
from hpcgym.envs.core.observation import USUAL_FEATURES, WINDOW_FEATURES
from hpcgym.envs.core.reward import SUBMITTED, Reward, read_rewards
from hpcgym.envs.core.shapes import Shapes, read_shapes
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.asked_for import check_scheduler

DEFAULT_WORKLOAD = "lublin:jobs=5000,processors=256,load=0.9,seed=0"
#: Columns of the window; expressions are worked out for what jobs ask for in the log.
FEATURES = tuple(
    name for name in USUAL_FEATURES if name in WINDOW_FEATURES and name != "policy_time"
)
#: What is usual there: see :data:`hpcgym.envs.core.base.PLAYED_ON`.
USUAL: Mapping[str, Any] = {
    name: value
    for name, value in PLAYED_ON.items()
    if name not in ("backfill_order", "workload", "reward", "paid")
}


def read_submit(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    user: int | None = None,
    widths: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0),
    requests: Sequence[float] = (0.25, 0.5, 1.0),
    speedup: str = "downey",
    policy: Any = "fcfs",
    backfill_order: Any = None,
    reward: Reward = "turnaround",
    paid: str = "start",
    features: Any = FEATURES,
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    options = read_following(
        workload, policy, ("easy", "until-shadow", "none"),
        backfill_order=backfill_order, features=features, **arguments,
    )  # fmt: skip
    check_scheduler(options.scheduler, "submissions")
    if options.expressions:
        raise HpcgymError(
            f"features: {next(iter(options.expressions))!r} is an expression, and these are worked"
            " out for what jobs ask for in the log"
        )
    rewards = read_rewards(reward, SUBMITTED, paid)
    if any(rewards.references):
        raise HpcgymError(
            "reward: what is divided by that of a scheduler is of all jobs, and here those of one"
            " user count"
        )
    options = replace(options, rewards=rewards)
    shapes = read_shapes(
        widths, requests, speedup, user, options.workload, options.cluster.processors
    )
    return Definition(
        SHAPES_KIND, options, spaces.Discrete(shapes.number), {"shapes": shapes}, shapes=shapes
    )


@page
class Submit(SchedulingEnv):
    """Say how many processors and how much time a user's next job asks for.

    Id: `"hpcgym/Submit-v0"`.

    ## Description

    A scheduler is not asked here; a user is. All jobs of the log are scheduled by a `policy` and
    its backfilling. Those of one user are submitted when the log says, but with the *shape* that
    the agent chooses: on fewer processors a job fits sooner and runs longer, and a shorter request
    lets it be backfilled, but may end it before its work is done. What is best depends on the
    queue. Moldable jobs of this kind were studied by Cirne and Berman ("A model for moldable
    supercomputer jobs", IPDPS 2001) and by Srinivasan et al. (2002).

    A log tells of one width. On as many processors a job runs as long as there; on others by a
    model of its `speedup`:

    | `speedup` | run time on n processors, t that on the logged w |
    |---|---|
    | `"downey"` | t S(w) / S(n), S of Downey 1997 with average parallelism A = 2 w and variance \
1: \
S(n) = 2 n A / (n + 2 A - 1) up to n = 2 A - 1, then A |
    | `"amdahl"` | the same with S(n) = 1 / (0.05 + 0.95 / n) |
    | `"linear"` | t w / n |

    Seconds are rounded up. The numbers 2, 1 and 0.05 are assumptions.

    {Description}

    ## Decision points

    A job of the user is about to be submitted: the agent is asked in the second before, when all
    that happens in that second has happened. Jobs that the log submits in one second are asked
    about one after the other. The user is the one with most jobs in the slice, or `user`. An \
episode
    without a job of the user takes one step, whatever its action.

    ## Action Space

    `Discrete(len(widths) * len(requests))`, 15 by default: action k asks for
    `widths[k // len(requests)]` times the processors of the log, rounded, from 1 to those of the
    machine, and `requests[k % len(requests)]` times the logged request, as long as that takes on
    these processors. `env.unwrapped.shapes.place(1, 1)` is the action that asks as the log does.
    Another number raises `HpcgymError`.

    ## Observation Space

    A `Dict`, or with `observation="flat"` one `Box(-1, 1, (72 + 9 w,), float32)`: the fields one
    after the other, row by row, for w = `window`, 8 features and 15 shapes. Processors are shares
    of the machine's number m, and a time t appears as t / (t + 1 h).

    | field | flat | shape | what |
    |---|---|---|---|
    | `cluster` | 0 to 11 | (12,) | 0: free processors now; 1 to 8: in 1 and 10 min, 1, 4, 12, \
24, 72 and 168 h, if nothing starts and jobs end as predicted; 9: free processors that are on; \
10: time up to the shadow time of the oldest job; 11: extra processors at the shadow time |
    | `queue` | 12 to 17 | (6,) | 0: n / (n + w), n waiting jobs; 1: share of them outside the \
window; 2: q / (q + m), q the processors of the visible jobs; 3: a / (a + m x 1 h), a their \
requested times x processors; 4: their longest wait; 5: share of them that needs no more than the \
free processors |
    | `time` | 18 to 21 | (4,) | sine and cosine of the time of day, and of the week, -1 to 1 |
    | `jobs[i, k]` | 22 + 8 i + k | (w, 8) | feature k of visible job i, of whatever user |
    | `mask[i]` | 22 + 8 w + i | (w,) | 1 if there is a job, else 0; int8 in the dict |
    | `shapes[k, c]` | 22 + 9 w + 3 k + c | (15, 3) | of the job in question with shape k, 0 if \
none is: 0: processors; 1: requested time t; 2: 1 if enough processors are free now |
    | `user` | 67 + 9 w to 69 + 9 w | (3,) | 0: n / (n + 8), n waiting jobs of the user; 1: the \
same of running ones; 2: the mean share of their requests that those of the episode ran which \
have ended, 1 if none has |
    | `progress` | 70 + 9 w to 71 + 9 w | (2,) | 0: in windows the share of the slice's jobs that \
have started, else as elsewhere; 1: time t up to the `horizon`, 1 without one |

    {Columns}

    How long a job in question would run is hidden, on whatever processors.

    ## Info

    {Keys}
    | `reward_turnaround_s` | always | likewise turnarounds [s], as under Rewards |
    | `episode_mean_turnaround_s` | at the end | their mean [s] |
    | `ended` | with `paid="end"` | list of the rows of jobs that were paid in the last step |
    | `ended_bsld` | with `paid="end"` | list of their bounded slowdowns |

    {Beside}

    The jobs that count are those of the user alone; `metrics()` are of all jobs of the slice.
    `env.unwrapped.next_job` is the row of the job in question, -1: none.

    ## Rewards

    The default, `"turnaround"`, is -(wait + run) / n [h] for each job of the user that starts, n
    the number of these jobs: so a return is minus their mean turnaround in hours. Hours are what a
    user waits; a logarithm would make a job of minutes as dear as one of days. A job that its
    request ends before its work is done has to be run again: it counts as if it waited as long a
    second time and then ran to its end, 2 wait + request + run. `"wait"`, `"bsld"`, `"log_wait"`,
    `"log_bsld"`, `"max_wait"` and `"p99_wait"` are as elsewhere, of the jobs that count
    (`"energy"` and `"p99_wait"`: of all); weights by name, lists and functions, too. Nothing can \
be
    divided by a scheduler's.

    A turnaround counts in the step in which its job starts; with `paid="end"` when it ends.

    ## Starting State

    {Starting State}

    {Around slices}

    {Extracts}

    ## Arguments

    | `user` | `None` | whose jobs the agent submits, by the log's number; `None`: of who has \
most \
jobs in the slice |
    | `widths` | `(0.25, 0.5, 1.0, 2.0, 4.0)` | factors of the processors |
    | `requests` | `(0.25, 0.5, 1.0)` | factors of the requested time |
    | `speedup` | `"downey"` | or `"amdahl"`, `"linear"` |
    | `policy` | `"fcfs"` | as in `hpcgym.simulate`, but no function, and nothing that looks at \
usage |
    | `backfill` | `"easy"` | or `"until-shadow"`, `"none"` |
    | `backfill_order` | `None` | order in which jobs are backfilled: `"fcfs"`, `"sjbf"` or any \
policy; `None`: `"fcfs"` under first come, first served, else `"spf"` |
    | `features` | the first eight | as elsewhere, but no expressions |
    | `quota` | `None` | as elsewhere; no shape of a job may be larger than a quota lets run |

    ## Reference

    `hpcgym.envs.submitters` has three: `as-logged` asks as the log does, `smallest` for the
    fewest processors with the longest request, and `forecast` for the shape with the least mean
    turnaround in futures of the queue, by what the scheduler knows. There, too, a job that its
    request kills costs a second run.

    ## Version History

    - v0: the first.
    """

    action_kind: ClassVar[str] = "submit"
    usual: ClassVar[Mapping[str, Any]] = USUAL
    read_arguments = staticmethod(read_submit)
    shapes: Shapes

    @property
    def next_job(self) -> int:
        """The row of the job of the episode that is about to be submitted; -1: none."""
        return int(self.simulations.batch.episode_state["about"][0])


class SubmitVector(SchedulingVectorEnv):
    """Many environments :class:`Submit` in one."""

    single = Submit
    shapes: Shapes
