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
from hpcgym.scheduler.on_machines import check_machine, check_shared
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.prepare import machine_of
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
    are those of `hpcgym.simulate(..., speedups=...)`; `docs/coscheduling.md` has them.

    {Description} The list of *neighbours* shows the first `neighbours` running jobs, in order of
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

    By default a `Dict` of five fields. With `observation="flat"` it is one `Box(0, 1, (1001,),
    float32)`, the fields one after the other, row by row. The table gives places in it, and shapes,
    for 16 waiting and 16 running jobs. All numbers are from 0 to 1. i is a place in the window, j a
    place in the list of neighbours, N the number of nodes of the machine. A speedup s appears as s
    / (s + 1), so that 1 is in the middle, and a time t as t / (t + 1 h). Rows without a job are 0,
    and so are the pairs of a job that is alone on its nodes.

    | field | flat | shape | unit | what |
    |---|---|---|---|---|
    | `machine[0]` | 0 on | (8,) | share of N | nodes without a job |
    | `machine[1]` |  |  | share of N | nodes with a job that have a part free |
    | `machine[2]` |  |  | share of all | parts that are free |
    | `machine[3]` |  |  | - | n / (n + `window`), n waiting jobs |
    | `machine[4]` |  |  | share of n | waiting jobs outside the window |
    | `machine[5]` |  |  | - | r / (r + `neighbours`), r running jobs |
    | `machine[6]` |  |  | share of these | running jobs with a part free beside them that are not listed |
    | `machine[7]` |  |  | t / (t + 1 h) | longest wait of a visible job |
    | `jobs[i, 0]` | 8 on | (16, 8) | share of N | nodes that it needs |
    | `jobs[i, 1]` |  |  | t / (t + 1 h) | predicted compact run time, by `estimate` |
    | `jobs[i, 2]` |  |  | t / (t + 1 h) | waiting time |
    | `jobs[i, 3]` |  |  | s / (s + 1) | mean speedup beside all codes |
    | `jobs[i, 4]` |  |  | s / (s + 1) | speedup on parts of its nodes without a neighbour |
    | `jobs[i, 5]` |  |  | share of these | other waiting jobs with which the mean of both speedups is above 1 |
    | `jobs[i, 6]` |  |  | - | 1 if it takes a part of each node, 0 if it is alone on them |
    | `jobs[i, 7]` |  |  | - | 1 if it finds room now |
    | `neighbours[j, 0]` | 136 on | (16, 5) | share of N | its nodes that have a part free |
    | `neighbours[j, 1]` |  |  | share of N | its nodes |
    | `neighbours[j, 2]` |  |  | t / (t + 1 h) | what is left of its predicted compact run time |
    | `neighbours[j, 3]` |  |  | s / (s + 1) | rate at which it runs now; compact is 1 |
    | `neighbours[j, 4]` |  |  | s / (s + 1) | speedup on parts of its nodes without a neighbour |
    | `pairs[i, j, 0]` | 216 on | (16, 16, 2) | s / (s + 1) | speedup of the waiting job beside the running one |
    | `pairs[i, j, 1]` |  |  | s / (s + 1) | speedup of the running job beside the waiting one |
    | `mask[a]` | 728 on | (273,) | 0 or 1 | 1 for each possible action |

    Nothing here is hidden from an online scheduler: no actual run time, no actual end, no job that
    has not been submitted. Speedups and the present rates of running jobs are known.

    ## Info

    | key | when | what |
    |---|---|---|
    | `window` | always | (window,) int64: rows of `env.unwrapped.episode_workload` of the visible jobs, then -1 |
    | `neighbours` | always | (neighbours,) int64: rows of the running jobs that are listed, then -1 |
    | `time` | always | the time [s], of the trace's clock, a float |
    | `action_mask` | always | (n_actions,) int8: 1 for each possible action |
    | `reward_terms` | always | raw terms of the last step: `bsld`, the sum over jobs that ended; `wait_s`, over those that started; `energy_j`; `elapsed_s`; 0 after a reset |
    | `metrics` | at the end | metrics of the schedule, as `hpcgym.simulate` has them; values that are nan are left out |
    | `episode_name` | at the end | the name of the episode |

    `env.unwrapped` also has `time`, `free` (free parts of nodes), `queued()`, `running()`,
    `result()` (the schedule so far), `scheduler_rules`, `speedups`, and `snapshot()` and
    `restore()`. For the same machine and rules call
    `hpcgym.simulate(env.unwrapped.episode_workload, cluster=env.unwrapped.options.cluster,
    speedups=env.unwrapped.speedups, **env.unwrapped.scheduler_rules)`.

    ## Rewards

    A job's wait counts in the step in which it starts, its slowdown in the step in which it ends,
    and energy as it is drawn. For an episode of n jobs on m processors:

    | `reward` | what a step adds | return |
    |---|---|---|
    | `"bsld"` | -max((wait + run) / max(compact, 10 s), 1) / n for each job that ends | -`metrics["mean_bsld"]`: minus the mean bounded slowdown |
    | `"wait"` | -wait / n for each job that starts [h] | -`metrics["mean_wait_s"]` / 3600: minus the mean wait [h] |
    | `"throughput"` | -(time since the last decision) / B | -`metrics["makespan_s"]` / B: minus the makespan, by what compact jobs would need at least |
    | `"energy"` | -(energy that the machine has drawn since the last decision) / E | -`metrics["energy_j"]` / E, with E = B x power with all processors busy |

    run is the time that the job takes; compact is the time that it takes on filled nodes of its
    own, at most the requested time. B is the sum of processors x compact over m, or the time from
    the first to the last submission if that is longer. The return is the metric except for the
    rounding of a sum (a relative error below 1e-9).

    - A mapping of these names to weights, `{"bsld": 0.7, "energy": 0.3}`, is their weighted sum.
    - A list of names, `["bsld", "energy"]`, makes the reward an array, float64, and adds
      `env.unwrapped.reward_space`, as MO-Gymnasium has it.
    - A function is called once a step with a `StepView` (in `hpcgym/envs/single.py`: the jobs that
      started, their waiting and compact run times, the time, the energy, the queue) and returns the
      reward.

    ## Starting State

    {Starting State} The clock moves to the first question, which comes with the first submission.

    ## Arguments

    | `action` | `"pair"` | or `"scores"`; see Action Space |
    | `workload` | `"codes:jobs=2000,processes=96,processors=768,arrivals=poisson,interval=420,seed=0"` | a `Workload` whose jobs have codes, or what `hpcgym.load_workload` takes |
    | `speedups` | `"generated:codes=16,mean=1.1,spread=0.1,seed=0"` | a `hpcgym.machine.speedups.Heatmap`, a file of one, or a text as in the default |
    | `cluster` | `"16x2x24"` | a `hpcgym.Cluster` whose nodes are alike, the name of one, or nodes x sockets x cores |
    | `allocation` | `"half-socket"` | `"half-socket"`; `"part:K"`: one of K parts of each node; `"spread"`, `"compact"`: alone on its nodes |
    | `partners` | `"best"` | `"fill"`, `"best"` or `"first"`: which nodes a job takes, see `hpcgym.Scheduler`, whose default is `"fill"` |
    | `estimate` | `"requested"` | predicted compact run times: `"requested"`, `"double-requested"` or `"clairvoyant"` |
    | `reward` | `"bsld"` | see Rewards |
    | `window` | `16` | how many waiting jobs are visible |
    | `neighbours` | `16` | how many running jobs are visible |
    | `observation` | `"dict"` | `"dict"` or `"flat"` |

    ## Vectorized environment

    {Vectorized environment} Its `action_masks()` are (num_envs, n_actions) bool.
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
        names = ("allocation", "partners", "estimate", "backfill")
        return self.options.scheduler.given(names)

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
