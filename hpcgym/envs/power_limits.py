"""The environments in which an agent steers a machine under limits of power and energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from hpcgym.cluster import Cluster
from hpcgym.envs.core import arrays
from hpcgym.envs.core.episode_limits import (
    LimitsOf,
    daily_caps,
    one_budget,
    read_controls,
    read_limits,
    read_machine,
    switches_nodes,
)
from hpcgym.envs.core.limited_machines import CONTROLS, Limited
from hpcgym.envs.core.numbers import read_numbers
from hpcgym.envs.core.options import DEFAULT_WORKLOAD, read_interval
from hpcgym.envs.core.tables import clock_of
from hpcgym.envs.pages.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import Scheduler

# the same for one environment and for many
SHARE, HOURS, PERIOD_S = 0.6, (8, 20), 600


@page
class PowerCapEnv(SchedulingEnv):
    """Steer a machine whose power is capped at times: frequencies, nodes, the power in use.

    | | |
    |---|---|
    | id | `"hpcgym/PowerCap-v0"` |
    | action | `Box(-1, 1, (n,), float32)`: a number for each control, then for each feature |
    | observation | `Dict` of six fields, or one flat `Box` |
    | reward | minus the bounded slowdown by default; dense; joules too, mixed or apart |

    ## Description

    Each day from 8 to 20 h the machine may draw no more than a share of its greatest power
    (document 004, chapter 4), or whatever else `limits` says. The scheduler keeps the caps whatever
    the agent does, by the rule `power`: with `"dvfs"`, the default, a job starts at the highest
    frequency at which all caps that it may run into allow it. The agent decides what is best
    meanwhile, and before: how fast jobs run, which nodes are off, how much power to use; and with
    `policy_features` the order of the queue.

    Each job has nodes of its own. By default each processor of the workload is a node, with the
    power of a node of the machine `curie`: eight frequencies, switched off and on at once.

    {description}

    {controls}

    ## Observation Space

    {observation}

    ## Rewards

    {rewards}

    {power_rewards}

    ## Starting State

    {episodes} All nodes are on. The first decision comes before the first submission.

    ## Episode End

    {end}

    ## Determinism

    {determinism}

    ## Arguments

    | argument | default | what |
    |---|---|---|
    | `share` | `0.6` | of the greatest power: the cap |
    | `hours` | `(8, 20)` | of the day, between which it holds |
    {power_arguments}
    {arguments}

    ## Vectorized environment

    {vector}

    ## Reference

    {power_reference}

    ## Version History

    - v0: the first.
    """

    action_kind: ClassVar[str] = "controls"

    def __init__(
        self,
        workload: Any = DEFAULT_WORKLOAD,
        *,
        share: float = SHARE,
        hours: tuple[int, int] = HOURS,
        limits: Any = None,
        controls: Sequence[str] = CONTROLS,
        policy_features: Sequence[str] = (),
        interval: Any = "hour",
        power: str = "dvfs",
        episodes: str = "windows",
        jobs: int = 256,
        part: str = "all",
        train_share: float = 0.5,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        given, usual = capped_daily(workload, arguments, share, hours)
        rules, self.controls, self.policy_features = read_rules(
            given, usual, limits, controls, policy_features, interval, power
        )
        super().__init__(
            arrays.WEIGHTS_KIND, given.pop("workload"),
            episodes, jobs, part, train_share, render_mode, rules, given,
        )  # fmt: skip
        self.action_space = controls_space(self.controls, self.policy_features)

    def _set_action(self, action: Any) -> None:
        set_numbers(self, self.simulations.numbers[0], "action", action, ())


@page
class EnergyBudgetEnv(SchedulingEnv):
    """Steer a machine that may use so much energy in the episode, and no more.

    | | |
    |---|---|
    | id | `"hpcgym/EnergyBudget-v0"` |
    | action | `Box(-1, 1, (n,), float32)`: a number for each control, then for each feature |
    | observation | `Dict` of six fields, or one flat `Box` |
    | reward | minus the bounded slowdown by default; dense; joules too, mixed or apart |

    ## Description

    From the first to the last submission of an episode the machine may use a share of the energy
    that it would use with all nodes busy (document 004, chapter 5), or whatever else `limits` says.
    A job starts only if the budget suffices for all that is then certain, so a budget is never
    exceeded but by what idle nodes draw. When to use the energy is up to the agent: `powercap`
    never draws more than the mean, and loses what it does not draw at night; whoever uses too much
    too early has to wait for the end.

    Each job has nodes of its own. By default each processor of the workload is a node, with the
    power of a node of the machine `taurus`: one frequency, 7 s to switch off and 152 s to switch
    on.

    {description}

    {controls}

    ## Observation Space

    {observation}

    ## Rewards

    {rewards}

    {power_rewards}

    ## Starting State

    {episodes} All nodes are on. The first decision comes before the first submission.

    ## Episode End

    {end}

    ## Determinism

    {determinism}

    ## Arguments

    | argument | default | what |
    |---|---|---|
    | `share` | `0.6` | of the energy with all nodes busy: the budget |
    | `period` | `600` | [s] between two looks at the meter, for rules that look |
    | `shutdown` | `False` | whether idle nodes are switched off at once |
    {power_arguments}
    {arguments}

    ## Vectorized environment

    {vector}

    ## Reference

    {power_reference}

    ## Version History

    - v0: the first.
    """

    action_kind: ClassVar[str] = "controls"

    def __init__(
        self,
        workload: Any = DEFAULT_WORKLOAD,
        *,
        share: float = SHARE,
        period: int = PERIOD_S,
        shutdown: bool = False,
        limits: Any = None,
        controls: Sequence[str] = CONTROLS,
        policy_features: Sequence[str] = (),
        interval: Any = "hour",
        power: str = "none",
        episodes: str = "windows",
        jobs: int = 256,
        part: str = "all",
        train_share: float = 0.5,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        given, usual = budgeted(workload, arguments, share, period, shutdown)
        rules, self.controls, self.policy_features = read_rules(
            given, usual, limits, controls, policy_features, interval, power,
            shutdown=shutdown,
        )  # fmt: skip
        super().__init__(
            arrays.WEIGHTS_KIND, given.pop("workload"),
            episodes, jobs, part, train_share, render_mode, rules, given,
        )  # fmt: skip
        self.action_space = controls_space(self.controls, self.policy_features)

    def _set_action(self, action: Any) -> None:
        set_numbers(self, self.simulations.numbers[0], "action", action, ())


class PowerCapVector(SchedulingVectorEnv):
    """Many environments :class:`PowerCapEnv` in one."""

    action_kind: ClassVar[str] = "controls"

    def __init__(
        self,
        num_envs: int = 1,
        workload: Any = DEFAULT_WORKLOAD,
        *,
        share: float = SHARE,
        hours: tuple[int, int] = HOURS,
        limits: Any = None,
        controls: Sequence[str] = CONTROLS,
        policy_features: Sequence[str] = (),
        interval: Any = "hour",
        power: str = "dvfs",
        **arguments: Any,
    ) -> None:
        given, usual = capped_daily(workload, arguments, share, hours)
        rules, self.controls, self.policy_features = read_rules(
            given, usual, limits, controls, policy_features, interval, power
        )
        super().__init__(arrays.WEIGHTS_KIND, num_envs, given.pop("workload"), rules, **given)
        self._set_spaces(controls_space(self.controls, self.policy_features))

    def _set_actions(self, actions: Any) -> None:
        set_numbers(self, self.simulations.numbers, "actions", actions, (self.num_envs,))


class EnergyBudgetVector(SchedulingVectorEnv):
    """Many environments :class:`EnergyBudgetEnv` in one."""

    action_kind: ClassVar[str] = "controls"

    def __init__(
        self,
        num_envs: int = 1,
        workload: Any = DEFAULT_WORKLOAD,
        *,
        share: float = SHARE,
        period: int = PERIOD_S,
        shutdown: bool = False,
        limits: Any = None,
        controls: Sequence[str] = CONTROLS,
        policy_features: Sequence[str] = (),
        interval: Any = "hour",
        power: str = "none",
        **arguments: Any,
    ) -> None:
        given, usual = budgeted(workload, arguments, share, period, shutdown)
        rules, self.controls, self.policy_features = read_rules(
            given, usual, limits, controls, policy_features, interval, power, shutdown=shutdown
        )
        super().__init__(arrays.WEIGHTS_KIND, num_envs, given.pop("workload"), rules, **given)
        self._set_spaces(controls_space(self.controls, self.policy_features))

    def _set_actions(self, actions: Any) -> None:
        set_numbers(self, self.simulations.numbers, "actions", actions, (self.num_envs,))


def capped_daily(
    workload: Any, arguments: dict[str, Any], share: float, hours: Any
) -> tuple[dict[str, Any], LimitsOf]:
    """Return the arguments with workload and machine, and what caps its power each day."""
    given = read_machine(workload, arguments, "curie")
    return given, daily_caps(given["cluster"], share, hours, clock_of(given["workload"]))


def budgeted(
    workload: Any, arguments: dict[str, Any], share: float, period: int, shutdown: bool
) -> tuple[dict[str, Any], LimitsOf]:
    """Return the arguments with workload and machine, and what gives it a budget."""
    given = read_machine(workload, arguments, "taurus")
    return given, one_budget(given["cluster"], share, period, shutdown)


def read_rules(
    given: dict[str, Any],
    usual: LimitsOf,
    limits: Any,
    controls: Any,
    policy_features: Any,
    interval: Any,
    power: str,
    *,
    shutdown: bool = False,
) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Return the rules of an environment under limits, its controls and its features, checked."""
    names, features = read_controls(controls, policy_features)
    held = read_interval(interval)
    if held[0] == "pass":
        raise HpcgymError("interval: controls hold for stretches of time, not for single passes")
    given["power"] = power
    cluster: Cluster = given["cluster"]
    switches = switches_nodes(cluster, names, limits, shutdown, Scheduler(power=power).power)
    limited = Limited(names, read_limits(limits, usual), switches)
    return {"features": features, "interval": held, "limited": limited}, names, features


def controls_space(controls: tuple[str, ...], features: tuple[str, ...]) -> spaces.Box:
    """Return the space of a number for each control, then for each feature."""
    return spaces.Box(-1.0, 1.0, (len(controls) + len(features),), np.float32)


def set_numbers(env: Any, numbers: Any, name: str, action: Any, shape: tuple[int, ...]) -> None:
    """Take over an action, or those of many environments; the kernel has weights first."""
    n_controls, n_weights = len(env.controls), len(env.policy_features)
    read = read_numbers(name, action, (*shape, n_controls + n_weights))
    numbers[..., :n_weights] = read[..., n_controls:]
    numbers[..., n_weights:] = read[..., :n_controls]
