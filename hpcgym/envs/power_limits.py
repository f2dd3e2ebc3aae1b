"""The environments in which an agent steers a machine under limits of power and energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from hpcgym.envs.core.base import (
    DEFAULT_WORKLOAD,
    WEIGHTS_KIND,
    Definition,
    Limited,
    check_moving,
    read_interval,
    read_options,
)
from hpcgym.envs.core.machines import (
    CONTROLS,
    LimitsOf,
    daily_caps,
    one_budget,
    read_controls,
    read_limits,
    read_machine,
    switches_nodes,
)
from hpcgym.envs.core.model import clock_of
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import Scheduler


def read_power_cap(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    share: float = 0.6,
    hours: tuple[int, int] = (8, 20),
    limits: Any = None,
    controls: Sequence[str] = CONTROLS,
    policy_features: Sequence[str] = (),
    interval: Any = "hour",
    power: str = "dvfs",
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    given = read_machine(workload, arguments, "curie")
    usual = daily_caps(given["cluster"], share, hours, clock_of(given["workload"]))
    return _under_limits(
        {**given, "power": power}, read_limits(limits, usual), limits, controls, policy_features,
        interval,
    )  # fmt: skip


def read_energy_budget(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    share: float = 0.6,
    period: int = 600,
    shutdown: bool = False,
    limits: Any = None,
    controls: Sequence[str] = CONTROLS,
    policy_features: Sequence[str] = (),
    interval: Any = "hour",
    power: str = "none",
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_options``."""
    given = read_machine(workload, arguments, "taurus")
    usual = one_budget(given["cluster"], share, period, shutdown)
    return _under_limits(
        {**given, "power": power}, read_limits(limits, usual), limits, controls, policy_features,
        interval, shutdown,
    )  # fmt: skip


def _under_limits(
    given: dict[str, Any],
    limits_of: LimitsOf,
    limits: Any,
    controls: Any,
    policy_features: Any,
    interval: Any,
    shutdown: bool = False,
) -> Definition:
    """Return what an environment under limits is.

    Parameters
    ----------
    given : the arguments of ``read_options``.
    limits_of : an episode's.
    limits : as they are given.
    shutdown : whether the usual limits switch idle nodes off.
    """
    names, features = read_controls(controls, policy_features)
    held = read_interval(interval)
    if held[0] == "pass":
        raise HpcgymError("interval: controls hold for stretches of time, not for single passes")
    power = Scheduler(power=given["power"]).power
    switches = switches_nodes(given["cluster"], names, limits, shutdown, power)
    limited = Limited(names, limits_of, switches)
    n_numbers = len(names) + len(features)
    options = read_options(**given)
    check_moving(interval, features, options.scheduler)
    return Definition(
        WEIGHTS_KIND,
        options,
        spaces.Box(-1.0, 1.0, (n_numbers,), np.float32),
        {"controls": names, "policy_features": features},
        # the weights of features come first in simulations, and last in actions
        np.roll(np.arange(n_numbers), len(features)),
        features=features,
        interval=held,
        limited=limited,
    )


class SteeringEnv(SchedulingEnv):
    """What the environments under limits share: controls, and weights of features."""

    action_kind: ClassVar[str] = "controls"
    controls: tuple[str, ...]
    policy_features: tuple[str, ...]


@page
class PowerCapEnv(SteeringEnv):
    """Steer a machine whose power is capped at times: frequencies, nodes, the power in use.

    | | |
    |---|---|
    | id | `"hpcgym/PowerCap-v0"` |
    | action | `Box(-1, 1, (n,), float32)`: a number for each control, then for each feature |
    | observation | `Dict` of six fields, or one flat `Box` |
    | reward | minus the bounded slowdown by default; dense; joules too, mixed or apart |

    ## Description

    Each day from 8 to 20 h the machine may draw no more than a share of its greatest power (Glesser
    2016, chapter 4). `limits` can set other limits. The scheduler keeps the caps whatever the agent
    does, by the rule `power`. With `"dvfs"`, the default, a job starts at the highest frequency
    that all caps that it may run into allow. The agent decides how fast jobs run, which nodes are
    off and how much power to use, before and during a cap. With `policy_features` it also decides
    the order of the queue.

    Each job has nodes of its own. By default each processor of the workload is a node, with the
    power of a node of the machine `curie`: eight frequencies, switched off and on at once.

    {Description}

    ## Decision points

    {Decision points under limits}

    ## Action Space

    {Actions under limits}

    ## Observation Space

    {Observation Space under limits}

    ## Info

    {Info under limits}

    ## Rewards

    {Rewards under limits}

    ## Starting State

    {Starting State} All nodes are on. The first decision comes before the first submission.

    ## Episode End

    {Episode End}

    ## Determinism

    {Determinism}

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | `share` | `0.6` | the cap, as a share of the greatest power |
    | `hours` | `(8, 20)` | hours of the day between which the cap holds |
    | `power` | `"dvfs"` | how limits are kept: a name of `hpcgym.scheduler.rules.POWER`, see \
`docs/power-limits.md` |
    {Arguments under limits}
    {arguments}

    ## Vectorized environment

    {Vectorized environment}

    ## Reference

    Scores of some policies that do not learn, on 20 unseen weeks of KTH-SP2, with 95 % intervals:

    ```sh
    hpcgym evaluate --env PowerCap --share 0.6 --workload KTH-SP2 --episodes weeks --number 20
    ```

    | policy | mean bounded slowdown | mean wait [h] |
    |---|---|---|
    | `saf` | 85.1 (63.7 to 107.8) | 2.73 |
    | `best-static` | 94.7 (72.1 to 118.5) | 2.76 |
    | `f1` | 110.2 (82.1 to 143.4) | 3.21 |
    | `random` | 146.4 (117.8 to 177.5) | 4.07 |
    | `easy-sjbf` | 182.2 (149.5 to 214.1) | 5.08 |
    | `easy` | 223.8 (186.1 to 263.6) | 5.55 |

    {Policies under limits}

    ## Version History

    - v0: the first.
    """

    read_arguments = staticmethod(read_power_cap)


@page
class EnergyBudgetEnv(SteeringEnv):
    """Steer a machine that may use only a given amount of energy in the episode.

    | | |
    |---|---|
    | id | `"hpcgym/EnergyBudget-v0"` |
    | action | `Box(-1, 1, (n,), float32)`: a number for each control, then for each feature |
    | observation | `Dict` of six fields, or one flat `Box` |
    | reward | minus the bounded slowdown by default; dense; joules too, mixed or apart |

    ## Description

    From the first to the last submission of an episode, the machine may use a share of the energy
    that it would use with all nodes busy (Glesser 2016, chapter 5). `limits` can set other limits.
    A job starts only if the budget suffices for everything that is certain then. So only idle nodes
    can exceed a budget. The agent decides when to use the energy. The rule `powercap` never draws
    more than the mean, and loses what it does not draw at night. An agent that uses too much too
    early has to wait for the end.

    Each job has nodes of its own. By default each processor of the workload is a node, with the
    power of a node of the machine `taurus`: one frequency, 7 s to switch off and 152 s to switch
    on.

    {Description}

    ## Decision points

    {Decision points under limits}

    ## Action Space

    {Actions under limits}

    ## Observation Space

    {Observation Space under limits}

    ## Info

    {Info under limits}

    ## Rewards

    {Rewards under limits}

    ## Starting State

    {Starting State} All nodes are on. The first decision comes before the first submission.

    ## Episode End

    {Episode End}

    ## Determinism

    {Determinism}

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | `share` | `0.6` | the budget, as a share of the energy with all nodes busy |
    | `period` | `600` | [s] between two readings of the meter, for rules that read it |
    | `shutdown` | `False` | whether idle nodes are switched off at once |
    | `power` | `"none"` | how limits are kept: a name of `hpcgym.scheduler.rules.POWER`, see \
`docs/power-limits.md` |
    {Arguments under limits}
    {arguments}

    ## Vectorized environment

    {Vectorized environment}

    ## Reference

    Scores of some policies that do not learn, on 20 unseen weeks of KTH-SP2, with 95 % intervals:

    ```sh
    hpcgym evaluate --env EnergyBudget --share 0.6 --shutdown --workload KTH-SP2 --episodes weeks --number 20
    ```

    | policy | mean bounded slowdown | mean wait [h] |
    |---|---|---|
    | `saf` | 39.2 (23.7 to 59.4) | 1.23 |
    | `best-static` | 41.6 (24.4 to 62.4) | 1.27 |
    | `f1` | 46.1 (27.2 to 69.3) | 1.36 |
    | `random` | 50.5 (32.2 to 73.7) | 1.56 |
    | `easy-sjbf` | 58.0 (39.3 to 80.0) | 1.73 |
    | `easy` | 75.1 (48.1 to 106.2) | 1.90 |
    | `powercap` | 252.3 (192.0 to 322.6) | 6.34 |

    {Policies under limits}

    ## Version History

    - v0: the first.
    """  # noqa: E501  # rows of tables, commands

    read_arguments = staticmethod(read_energy_budget)


class PowerCapVector(SchedulingVectorEnv):
    """Many environments :class:`PowerCapEnv` in one."""

    single = PowerCapEnv


class EnergyBudgetVector(SchedulingVectorEnv):
    """Many environments :class:`EnergyBudgetEnv` in one."""

    single = EnergyBudgetEnv
