"""The environment in which an agent says which job starts beside which."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.envs.core import arrays
from hpcgym.envs.core.definition import Definition
from hpcgym.envs.core.layout import PairLayout
from hpcgym.envs.core.machines import Corun
from hpcgym.envs.core.options import SHARED, Options, Reward, read_rewards, read_window
from hpcgym.envs.pages.page import page
from hpcgym.envs.single import SchedulingEnv, StepView
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.corun import check_machine, check_shared
from hpcgym.simulation.prepare import machine_of
from hpcgym.speedups import Heatmap, find_speedups
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

DEFAULT_SPEEDUPS = "generated:codes=16,mean=1.1,spread=0.1,seed=0"
#: Jobs of the codes that generated speedups name, a little more than the machine can do.
DEFAULT_CODES = "codes:jobs=2000,processes=96,processors=768,arrivals=poisson,interval=420,seed=0"
DEFAULT_CLUSTER = "16x2x24"
ACTIONS = ("pair", "scores")


def read_pair_options(
    workload: Any = DEFAULT_CODES,
    *,
    action: str = "pair",
    speedups: Any = DEFAULT_SPEEDUPS,
    cluster: Any = DEFAULT_CLUSTER,
    allocation: str = "half-socket",
    partners: str = "best",
    estimate: str = "requested",
    reward: Reward = "bsld",
    window: int = 16,
    neighbours: int = 16,
    observation: str = "dict",
) -> Definition:
    """Return what the environment is by its arguments.

    Raises
    ------
    HpcgymError : an argument with a value that it cannot have; it is named.
    WorkloadError : a workload that cannot be read.
    """
    if not isinstance(workload, Workload):
        workload = load_workload(workload)
    machine = machine_of(workload, cluster, None)
    scheduler = Scheduler(
        allocation=allocation, partners=partners, estimate=estimate, backfill="none"
    )
    check_shared(scheduler)
    check_scheduler(scheduler, "environments")
    check_machine(machine)
    check_choice("observation", observation, ("dict", "flat"))
    options = Options(
        workload, machine, scheduler, read_rewards(reward, SHARED),
        read_window("window", window), (), {}, observation == "flat",
    )  # fmt: skip
    corun = Corun(find_speedups(speedups), read_window("neighbours", neighbours))
    layout = PairLayout(window, neighbours, options.flat)
    attributes = {"action": action, "speedups": corun.speedups, "neighbours": neighbours}
    space: spaces.Discrete | spaces.Box
    if check_choice("action", action, ACTIONS) == "pair":
        kind, space = arrays.PAIRS_KIND, spaces.Discrete(layout.actions)
    else:
        kind = arrays.PAIR_SCORES_KIND
        space = spaces.Box(-1.0, 1.0, (layout.scores,), np.float32)
    return Definition(kind, options, space, {"corun": corun}, attributes)


@page
class CoSchedule(SchedulingEnv):
    """Say which waiting job starts, and beside which running one.

    | | |
    |---|---|
    | id | `"hpcgym/CoSchedule-v0"` |
    | action | `Discrete(window * (neighbours + 1) + 1)`: a pair of jobs, or waiting; or a score \
for each pair |
    | observation | `Dict` of five fields, or one flat `Box` |
    | reward | minus the bounded slowdown by default; time, joules too, mixed or apart |

    ## Description

    Jobs share nodes: each takes half of the cores of each socket (`allocation="half-socket"`), and
    another may have the other half. Codes that need different things of a node, such as memory
    bandwidth and arithmetic, then run faster than on filled nodes of their own; others run slower
    (ELiSE). The agent sees how fast each waiting job would run beside each running one, and decides
    which job starts beside which.

    How fast a job runs depends on its neighbours at each time. Its rate is its least speedup beside
    the codes that have a part of any of its nodes, and changes when they come and go. So a start
    may slow other jobs down, or speed them up, and an end is not known before it comes. The rules
    are those of `hpcgym.simulate(..., speedups=...)`; `docs/shared-nodes.md` has them.

    {description} The list of *neighbours* shows the first `neighbours` running jobs, in order of
    start, that have a part free on one of their nodes.

    ## Decision points

    The agent is asked whenever a job has ended or been submitted, and some waiting job, visible or
    not, finds room. With `action="pair"` it is asked again after each start, at the same time, as
    long as some job finds room. With `action="scores"` it is asked once.

    There is no backfilling: any visible job may start if there is room. The agent itself must keep
    nodes free for a large job.

    ## Action Space

    `action="pair"`: `Discrete(window * (neighbours + 1) + 1)`. Action i * (neighbours + 1) + j
    starts visible job i. With j = 0 the rule `partners` chooses the nodes. Otherwise the job takes
    the nodes of neighbour j - 1 that have a part free; if it needs more, the rule chooses them. The
    last action is to wait until a job ends or is submitted.

    `info["action_mask"]`, (n_actions,) int8, is 1 for each possible action. Job i must find enough
    nodes; if j > 0, it must share nodes, and there must be such a neighbour. Waiting is possible
    while a job runs. While none runs, each job finds room, and one has to start; so every episode
    ends. If no visible job finds room, only waiting is possible. A masked action means the first
    possible one. `env.unwrapped.action_masks()` is the same as bool, under the name that
    sb3-contrib expects. A number beyond the space raises `HpcgymError`.

    `action="scores"`: `Box(-1, 1, (window * (neighbours + 1),), float32)`, a score for each pair.
    Of the pairs that can be started, the one with the highest score starts, the first of equals.
    This is repeated while that score is above 0; then the agent waits. Jobs and neighbours are
    those that were shown: a job that has just started is no neighbour yet. While no job runs, one
    is started whatever its score. Numbers outside [-1, 1] are taken as they are. Another shape, NaN
    or infinity raises `HpcgymError`.

    ## Observation Space

    {pair_observation}

    ## Rewards

    {pair_rewards}

    ## Starting State

    {episodes} The clock moves to the first question, which comes with the first submission.

    ## Episode End

    {end}

    ## Determinism

    {determinism}

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | `action` | `"pair"` | or `"scores"`; see Action Space |
    {pair_arguments}

    ## Vectorized environment

    {vector} Its `action_masks()` are (num_envs, n_actions) bool.

    ## Reference

    {reference}

    The co-schedulers of ELiSE on the same episode:

    ```python
    import hpcgym
    from hpcgym.envs import CoSchedule

    env = CoSchedule(jobs=100)
    env.reset(seed=0)
    machine = {"cluster": env.options.cluster, "speedups": env.speedups}
    for name in ("easy-co", "sjf-co", "filler-co"):
        result = hpcgym.simulate(env.episode_workload, name, **machine)
        print(name, result.metrics["mean_bsld"], result.metrics["makespan_s"])
    ```

    ## Version History

    - v0: the first.
    """

    action_kind: ClassVar[str] = "pairs"
    read_arguments = staticmethod(read_pair_options)
    action: str
    speedups: Heatmap
    neighbours: int

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions can be done, (n_actions,); the name is sb3-contrib's.

        With ``action="scores"``, which pairs can be started, and whether nothing need be.
        """
        mask: NDArray[np.bool_] = self.simulations.out.masks[0].astype(np.bool_)
        return mask

    @property
    def scheduler_rules(self) -> dict[str, Any]:
        """The rules that :func:`hpcgym.simulate` must be given, beside speedups and cluster."""
        names = ("allocation", "partners", "estimate", "backfill")
        return self.options.scheduler.given(names)

    def running(self) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that run, in order of submission."""
        return np.sort(self.simulations.running(0)[0])

    def beside(self) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that are listed as neighbours, then -1; (M,)."""
        return self.simulations.listed(0)

    def pass_view(self, rows: NDArray[np.int64] | None = None) -> PassView:
        """Raise an HpcgymError: no dispatcher knows nodes that jobs share."""
        raise HpcgymError("pass_view: dispatchers know nothing of jobs that share nodes")

    def _view(self, before: float) -> StepView:
        """Return what a reward function sees, in seconds and processors."""
        view, workload = super()._view(before), self.episode_workload
        started, in_seconds = view.started, self.simulations.seconds
        return view._replace(
            wait_s=in_seconds(view.wait_s),
            run_time_s=in_seconds(view.run_time_s).astype(np.int64),
            requested_time_s=workload.requested_time[started],
            processors=workload.requested_processors[started],
        )


class CoScheduleVector(SchedulingVectorEnv):
    """Many environments :class:`CoSchedule` in one."""

    action_kind: ClassVar[str] = "pairs"
    read_arguments = staticmethod(read_pair_options)
    action: str
    speedups: Heatmap
    neighbours: int

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions can be done, (num_envs, n_actions)."""
        masks: NDArray[np.bool_] = self.simulations.out.masks.astype(np.bool_)
        return masks
