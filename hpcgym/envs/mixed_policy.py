"""The environment in which an agent sets the weights of a mixed policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.envs.core.base import (
    DEFAULT_WORKLOAD,
    PLAYED_ON,
    WEIGHTS_KIND,
    Definition,
    check_moving,
    read_interval,
    read_options,
    read_policy_features,
    read_skips,
    spreads_of,
    weighed_of,
)
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import check_choice
from hpcgym.scheduler.policies.features import WEIGHTED_FEATURES

SCALES = ("none", "spread")


def read_mixed_policy(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    policy_features: Any = WEIGHTED_FEATURES,
    interval: Any = "hour",
    scale: str = "none",
    backfill_order: Any = "spf",
    skip_forced: bool = False,
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    features = read_policy_features(policy_features, expressions=True)
    options = read_options(workload, backfill_order=backfill_order, **arguments)
    check_moving(interval, features, options.scheduler)
    read = read_interval(interval)
    units = None
    if check_choice("scale", scale, SCALES) == "spread":
        jobs = options.workload
        units = 1 / spreads_of(features, jobs.take(slice(0, max(jobs.row_at(0.5), 1))))
    return Definition(
        WEIGHTS_KIND,
        options,
        spaces.Box(-1.0, 1.0, (len(features),), np.float32),
        {"policy_features": features, "interval": interval, "scale": scale, "units": units},
        units=units,
        features=features,
        interval=read,
        weighed=weighed_of(features, options.scheduler),
        skips=read_skips(skip_forced),
    )


@page
class MixedPolicy(SchedulingEnv):
    """Set the weights of the policy that orders the queue until the next decision.

    Id: `"hpcgym/MixedPolicy-v2"`.

    ## Description

    These are the mixed policies of Legrand et al. 2018 (`docs/studies.md`): the queue is served in
    order of a weighted sum of features, as by `hpcgym.simulate(workload, policy=weights)`. With
    `episodes="weeks"` and `interval="episode"`, an episode is a week of the paper and one decision.
    A window of 256 jobs is often submitted within a day or two: choose both lengths together.

    {Description}

    ## Decision points

    Weights hold for an `interval`:

    - `"pass"`: one scheduling pass at which some waiting job fits; with `backfill="conservative"`
      one at which jobs wait; with `"slurm"` from one event at which jobs wait to the next
    - a whole number n: the next n submissions; those of the same second stay together
    - `"hour"`, `"day"`, `"week"`, `"6h"`: stretches of this length, from the first submission on
    - `"episode"`: the whole episode

    If no job waits at the end of a stretch, the weights hold for the next one too: the times of
    decisions tell nothing of what comes. A decision by submissions comes after the last event
    before the next of them.

    ### Quotas and windows

    {Quotas and windows}

    {Stopped jobs}

    ## Action Space

    `Box(-1, 1, (n_features,), float32)`: a weight for each of `policy_features`, divided by the sum
    of their sizes: ||w||_1 = 1. If all are 0, the order is that of submission, as in ties. Numbers
    outside [-1, 1] are taken as they are; another shape, NaN or infinity raises `HpcgymError`.

    The first six features are the default (s: seconds from the first submission of the whole log to
    the job's submission, at least 1):

    | name | feature |
    |---|---|
    {policy features}

    A feature may also be an **expression** of a policy that does not look at usage, such as
    `"log(requested)"` or `"free*log(processors)"`; scores are then worked out anew before each
    pass. Expressions do not go with `dependencies`, nor with quotas of submitted jobs.

    Each weight is divided by how much its feature differs between the jobs of the first half of the
    log's time (`hpcgym.scheduler.policies.features`), or by 1 for an expression that looks at the
    state. With `scale="none"` areas, millions of processor seconds, outweigh the rest. The last two
    features are priorities by `fair_share` (`docs/site-rules.md#fair-share`), among the users of
    the episode, which begins without usage unless it is an extract.

    ## Starting State

    {Starting State} With `interval="pass"` the first decision comes at the first submission; in an
    extract it comes at its beginning, and stretches of time count from then on.

    {Around slices}

    {Extracts}

    ## Arguments

    | `policy_features` | the first six | names of features, or expressions |
    | `interval` | `"hour"` | see Decision points |
    | `scale` | `"spread"` | or `"none"`; see Action Space |
    | `skip_forced` | `True` | whether `interval="pass"` takes no step but the first where one job \
waits and none can be stopped |
    """

    action_kind: ClassVar[str] = "weights"
    read_arguments = staticmethod(read_mixed_policy)
    usual: ClassVar[Mapping[str, Any]] = {**PLAYED_ON, "scale": "spread", "skip_forced": True}
    policy_features: tuple[str, ...]
    interval: Any
    scale: str
    units: NDArray[np.float64] | None  # (n_features,) what weights are multiplied by


class MixedPolicyVector(SchedulingVectorEnv):
    """Many environments :class:`MixedPolicy` in one."""

    single = MixedPolicy
    policy_features: tuple[str, ...]
    units: NDArray[np.float64] | None  # of several logs (num_envs, n_features)
