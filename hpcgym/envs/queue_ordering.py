"""The environment in which an agent gives each visible job a score."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from hpcgym.envs.core.base import DEFAULT_WORKLOAD, ORDERING_KIND, Definition, read_options
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv


def read_queue_ordering(workload: Any = DEFAULT_WORKLOAD, **arguments: Any) -> Definition:
    """Return what the environment is by its arguments, those of ``read_options``."""
    options = read_options(workload, **arguments)
    space = spaces.Box(-1.0, 1.0, (options.window,), np.float32)
    return Definition(ORDERING_KIND, options, space)


@page
class QueueOrdering(SchedulingEnv):
    """Give each visible job a score; the queue is served from the highest to the lowest.

    | | |
    |---|---|
    | id | `"hpcgym/QueueOrdering-v0"` |
    | action | `Box(-1, 1, (window,), float32)`: a score for each place of the window |
    | observation | `Dict` of five fields, or one flat `Box` |
    | reward | minus the bounded slowdown by default; dense |

    ## Description

    The agent decides in which order a scheduling pass serves the queue. Jobs start in this order
    while they fit. With `backfill="easy"` the first job that does not fit gets the reservation, and
    the others are back-filled around it in `backfill_order`. With `"depth:K"` the first K jobs that
    do not fit get reservations; with `"slurm"`, those that Slurm would give them to. With
    `backfill="none"` all others wait behind the first.

    {Description}

    ## Decision points

    Each scheduling pass at which some waiting job, visible or not, fits the free processors asks
    once. The scores hold for this pass only, and so does the reservation. Consider an agent whose
    scores put the jobs into the order of a policy. If no more jobs wait than the window shows, it
    makes the same schedule as `hpcgym.simulate` with this policy and the same rules.

    With `backfill="slurm"` each event asks at which jobs wait, also if none of them fits. The
    scores hold until the next event, so for the backfill passes between, too.

    ### Quotas and windows

    {Quotas and windows}

    {Stopped jobs}

    ## Action Space

    `Box(-1, 1, (window,), float32)`: entry i is the score of visible job i. The highest comes
    first, with ties in order of submission. Jobs outside the window come after all others, in order
    of submission. Only the order counts. Entries without a job are not read. Numbers outside [-1,
    1] are taken as they are. Another shape, NaN or infinity raises `HpcgymError`, also in entries
    without a job.

    ## Observation Space

    {Observation Space}

    ## Info

    {Info}

    ## Rewards

    {Rewards}

    ## Starting State

    {Starting State} The clock moves to the first question, which comes with the first submission.

    {Around slices}

    {Extracts}

    ## Episode End

    {Episode End}

    ## Determinism

    {Determinism}

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    {arguments}

    ## Vectorized environment

    {Vectorized environment}

    ## Reference

    Scores of some policies that do not learn, on 50 unseen windows of 256 jobs, with 95 %
    intervals:

    ```sh
    hpcgym evaluate fcfs sjf saf wfp3 f1 --env QueueOrdering --workload lublin:jobs=10000,processors=256,seed=0 --number 50
    ```

    | policy | mean bounded slowdown | mean wait [h] |
    |---|---|---|
    | `saf` | 32.7 (7.1 to 72.4) | 0.31 |
    | `f1` | 34.1 (8.4 to 73.6) | 0.31 |
    | `best-static` | 34.7 (8.9 to 74.0) | 0.33 |
    | `random (acting)` | 36.4 (10.3 to 76.5) | 0.34 |
    | `sjf` | 86.3 (39.7 to 141.4) | 0.67 |
    | `wfp3` | 87.3 (45.9 to 136.2) | 0.71 |
    | `easy` | 121.8 (71.1 to 177.8) | 0.93 |
    | `fcfs` | 607.3 (389.6 to 840.3) | 3.75 |

    ## Version History

    - v0: the first.
    - v1: the same class with other defaults: {v1}.
      v0 is unchanged. In its short episodes policies hardly differ. In v1 they do,
      and a policy that gains in an episode gains in the long run.
    """  # noqa: E501  # rows of tables, commands

    action_kind: ClassVar[str] = "ordering"
    read_arguments = staticmethod(read_queue_ordering)


class QueueOrderingVector(SchedulingVectorEnv):
    """Many environments :class:`QueueOrdering` in one."""

    single = QueueOrdering
