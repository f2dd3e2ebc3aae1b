"""The environment in which an agent says which job starts beside which."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.envs import vector
from hpcgym.envs.core.base import PAIR_SCORES_KIND, PAIRS_KIND, Corun, Definition, Options
from hpcgym.envs.core.observation import PairLayout, read_window
from hpcgym.envs.core.reward import SHARED, Reward, read_rewards
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv, StepView
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.machine.speedups import Heatmap, find_speedups
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.shared_nodes import check_machine, check_shared
from hpcgym.workload.load import load_workload, machine_of
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
        read_window("window", window), (), {}, {}, observation == "flat",
    )  # fmt: skip
    corun = Corun(find_speedups(speedups), read_window("neighbours", neighbours))
    layout = PairLayout(window, neighbours, options.flat)
    attributes = {"action": action, "speedups": corun.speedups, "neighbours": neighbours}
    space: spaces.Discrete | spaces.Box
    if check_choice("action", action, ACTIONS) == "pair":
        kind, space = PAIRS_KIND, spaces.Discrete(layout.actions)
    else:
        kind = PAIR_SCORES_KIND
        space = spaces.Box(-1.0, 1.0, (layout.scores,), np.float32)
    return Definition(kind, options, space, attributes, corun=corun)


@page
class CoSchedule(SchedulingEnv):
    """Say which waiting job starts, and beside which running one.

    Id: `"hpcgym/CoSchedule-v1"`.

    ## Description

    Jobs share nodes (ELiSE, `docs/coscheduling.md`): each takes half of the cores of each socket
    (`allocation="half-socket"`), and another may have the other half. Codes that need different
    things of a node then run faster than on filled nodes of their own; others run slower. A job's
    rate is its least speedup beside the codes that have a part of any of its nodes.

    {Description}

    The *neighbours* are the first `neighbours` running jobs, in order of start, that
    have a part free on one of their nodes.

    ## Decision points

    The agent is asked whenever a job has ended or been submitted, and some waiting job, visible or
    not, finds room; with `action="pair"` again after each start. There is no backfilling: the agent
    itself must keep nodes free for a large job.

    ## Action Space

    `action="pair"`: `Discrete(window * (neighbours + 1) + 1)`. Action i * (neighbours + 1) + j
    starts visible job i. With j = 0 the rule `partners` chooses the nodes. Otherwise the job takes
    the nodes of neighbour j - 1 that have a part free; if it needs more, the rule chooses them. The
    last action waits until a job ends or is submitted.

    `info["action_mask"]`, (n_actions,) int8, is 1 for each possible action: job i finds enough
    nodes, and if j > 0, it shares nodes, and the neighbour exists. `action_masks()` is the same as
    bool, for sb3-contrib. Waiting is possible while a job runs; while none runs, one has to
    start, so every episode ends. A masked action means the first possible one. A number beyond the
    space raises `HpcgymError`.

    `action="scores"`: `Box(-1, 1, (window * (neighbours + 1),), float32)`, a score for each pair.
    The possible pair with the highest score starts, the first of equals, again and again while that
    score is above 0. Jobs that start meanwhile are no neighbours yet. While no job runs, one is
    started whatever its score. Numbers outside [-1, 1] are taken as they are; another shape, NaN or
    infinity raises `HpcgymError`.

    ## Observation Space

    A `Dict`, or with `observation="flat"` one `Box(0, 1, (1003,), float32)`, by default of 16
    waiting and 16 running jobs. Nodes are shares of the machine's. A speedup or rate s appears as
    s / (s + 1), a time t as t / (t + 1 h). Rows without a job, and pairs of a job that is alone on
    its nodes, are 0.

    | field | flat | shape | what |
    |---|---|---|---|
    | `machine` | 0 to 7 | (8,) | 0: nodes without a job; 1: nodes with a job that have a part free; 2: share of all parts that are free; 3: n / (n + `window`), n waiting jobs; 4: share of them outside the window; 5: r / (r + `neighbours`), r running jobs; 6: share of those with a part free beside them that are not listed; 7: longest wait t of a visible job |
    | `jobs` | 8 to 135 | (16, 8) | 0: nodes that it needs; 1: predicted compact run time t; 2: waiting time t; 3: mean speedup beside all codes; 4: speedup on parts of its nodes without a neighbour; 5: share of the other waiting jobs with which the mean of both speedups is above 1; 6: 1 if it takes a part of each node, 0 if it is alone on them; 7: 1 if it finds room now |
    | `neighbours` | 136 to 215 | (16, 5) | 0: its nodes that have a part free; 1: its nodes; 2: what is left of its predicted compact run time t; 3: its rate now (compact is 1); 4: speedup on parts of its nodes without a neighbour |
    | `pairs` | 216 to 727 | (16, 16, 2) | 0: speedup of waiting job i beside running job j; 1: of j beside i |
    | `mask` | 728 to 1000 | (273,) | 1 for each possible action, else 0 |
    | `progress` | 1001 to 1002 | (2,) | 0: share of the jobs that have started, in weeks and months of their time that has passed, 0 for all jobs of a log; 1: 1, for there is no horizon |

    ## Info

    {Keys}
    | `reward_elapsed_s` | always | likewise the time that has passed [s] |
    | `episode_makespan_s` | at the end | the sum of the time that has passed [s] |
    | `neighbour_rows` | always | (neighbours,) int64: rows of the neighbours, then -1 |

    {Beside}

    Here `free` counts parts of nodes, and `hpcgym.simulate` also needs
    `speedups=env.unwrapped.speedups`.

    ## Rewards

    Waits count when jobs start, slowdowns when they end, energy as it is drawn; of n jobs on m
    processors:

    | `reward` | what a step adds | return |
    |---|---|---|
    | `"bsld"` | -max((wait + run) / max(compact, 10 s), 1) / n for each job that ends | -`metrics["mean_bsld"]` |
    | `"wait"` | -wait / n for each job that starts [h] | -`metrics["mean_wait_s"]` / 3600 |
    | `"throughput"` | -(time since the last decision) / B | -`metrics["makespan_s"]` / B |
    | `"energy"` | -(energy that the machine has drawn since the last decision) / E | -`metrics["energy_j"]` / E, E = B x power with all processors busy |

    run is the job's time; compact is its time on filled nodes of its own, at most the requested
    one. B is the sum of processors x compact over m, or the time between the first and the last
    submission if longer. The return is the metric to a relative error below 1e-9.

    {Forms of rewards}

    ## Starting State

    {Starting State}

    ## Arguments

    | `action` | `"pair"` | or `"scores"` |
    | `workload` | `"codes:jobs=2000,processes=96,processors=768,arrivals=poisson,interval=420,seed=0"` | a `Workload` whose jobs have codes, or its name |
    | `speedups` | `"generated:codes=16,mean=1.1,spread=0.1,seed=0"` | a `hpcgym.machine.speedups.Heatmap`, a file of one, or a text as in the default |
    | `cluster` | `"16x2x24"` | a `hpcgym.Cluster` whose nodes are alike, its name, or nodes x sockets x cores |
    | `allocation` | `"half-socket"` | or `"part:K"`: one of K parts of each node; `"spread"`, `"compact"`: alone on its nodes |
    | `partners` | `"best"` | `"fill"`, `"best"`, `"first"` or `"used"`: which nodes a job takes, see `hpcgym.Scheduler` |
    | `estimate` | `"requested"` | predicted compact run times: `"requested"`, `"double-requested"` or `"clairvoyant"` |
    | `neighbours` | `16` | how many running jobs are visible |
    """  # noqa: E501  # rows of tables, commands

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
        return self.options.scheduler.given(("allocation", "partners", "estimate", "backfill"))

    def running(self) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that run, in order of submission."""
        return np.sort(self.simulations.running(0)[0])

    def beside(self) -> NDArray[np.int64]:
        """Return the rows of the episode's jobs that are listed as neighbours, then -1; (M,)."""
        return self.simulations.neighbours_of(0)

    def pass_view(self, rows: NDArray[np.int64] | None = None) -> PassView:
        """Raise an HpcgymError: no dispatcher knows nodes that jobs share."""
        raise HpcgymError("pass_view: dispatchers know nothing of jobs that share nodes")

    def _view(self, before: float) -> StepView:
        """Return what a reward function sees, in seconds and processors."""
        view, workload = super()._view(before), self.episode_workload
        started, in_seconds = view.started, partial(self.simulations.seconds, e=0)
        return view._replace(
            wait_s=in_seconds(view.wait_s),
            run_time_s=in_seconds(view.run_time_s).astype(np.int64),
            requested_time_s=workload.requested_time[started],
            processors=workload.requested_processors[started],
        )


class CoScheduleVector(SchedulingVectorEnv):
    """Many environments :class:`CoSchedule` in one."""

    single = CoSchedule

    action_masks = vector.action_masks
