"""What the pages of environments say of quotas, windows, and jobs that follow or stop others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hpcgym.envs.core.layout import PairLayout

# --- What the page of CoSchedule says beside ``page`` ---------------------------------------------

#: Field -> (what, unit) of its numbers.
FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "machine": (
        ("nodes without a job", "share of N"),
        ("nodes with a job that have a part free", "share of N"),
        ("parts that are free", "share of all"),
        ("n / (n + `window`), n waiting jobs", "-"),
        ("waiting jobs outside the window", "share of n"),
        ("r / (r + `neighbours`), r running jobs", "-"),
        ("running jobs with a part free beside them that are not listed", "share of these"),
        ("longest wait of a visible job", "t / (t + 1 h)"),
    ),
    "jobs": (
        ("nodes that it needs", "share of N"),
        ("predicted compact run time, by `estimate`", "t / (t + 1 h)"),
        ("waiting time", "t / (t + 1 h)"),
        ("mean speedup beside all codes", "s / (s + 1)"),
        ("speedup on parts of its nodes without a neighbour", "s / (s + 1)"),
        ("other waiting jobs with which the mean of both speedups is above 1", "share of these"),
        ("1 if it takes a part of each node, 0 if it is alone on them", "-"),
        ("1 if it finds room now", "-"),
    ),
    "neighbours": (
        ("its nodes that have a part free", "share of N"),
        ("its nodes", "share of N"),
        ("what is left of its predicted compact run time", "t / (t + 1 h)"),
        ("rate at which it runs now; compact is 1", "s / (s + 1)"),
        ("speedup on parts of its nodes without a neighbour", "s / (s + 1)"),
    ),
    "pairs": (
        ("speedup of the waiting job beside the running one", "s / (s + 1)"),
        ("speedup of the running job beside the waiting one", "s / (s + 1)"),
    ),
}
_PLACES = {"machine": "k", "jobs": "i, k", "neighbours": "j, k", "pairs": "i, j, k"}


def fields(layout: PairLayout) -> list[tuple[object, ...]]:
    """Return the rows of the table of fields: name, first place, shape, unit, what."""
    starts = {
        "machine": 0,
        "jobs": layout.shapes["machine"][0],
        "neighbours": layout.neighbours_at,
        "pairs": layout.pairs_at,
    }
    rows: list[tuple[object, ...]] = []
    for name, numbers in FIELDS.items():
        shape = layout.shapes[name]
        for k, (what, unit) in enumerate(numbers):
            index = _PLACES[name].replace("k", str(k))
            place = f"{starts[name]} on" if k == 0 else ""
            rows.append((f"`{name}[{index}]`", place, shape if k == 0 else "", unit, what))
    possible = "1 for each possible action"
    mask = ("`mask[a]`", f"{layout.mask_at} on", (layout.actions,), "0 or 1", possible)
    return [*rows, mask]


OBSERVATION = """\
By default a `Dict` of five fields. With `observation="flat"` it is one `Box(0, 1, ({size},),
float32)`, the fields one after the other, row by row. The table gives places in it, and shapes, for
{window} waiting and {neighbours} running jobs. All numbers are from 0 to 1. i is a place in the
window, j a place in the list of neighbours, N the number of nodes of the machine. A speedup s
appears as s / (s + 1), so that 1 is in the middle, and a time t as t / (t + 1 h). Rows without a
job are 0, and so are the pairs of a job that is alone on its nodes.

{table}

Nothing here is hidden from an online scheduler: no actual run time, no actual end, no job that has
not been submitted. Speedups and the present rates of running jobs are known.

## Info

| key | when | what |
|---|---|---|
| `window` | always | (window,) int64: rows of `env.unwrapped.episode_workload` of the visible \
jobs, then -1 |
| `neighbours` | always | (neighbours,) int64: rows of the running jobs that are listed, then -1 |
| `time` | always | the time [s], of the trace's clock, a float |
| `action_mask` | always | (n_actions,) int8: 1 for each possible action |
| `reward_terms` | always | raw terms of the last step: `bsld`, the sum over jobs that ended; \
`wait_s`, over those that started; `energy_j`; `elapsed_s`; 0 after a reset |
| `metrics` | at the end | metrics of the schedule, as `hpcgym.simulate` has them; values that \
are nan are left out |
| `episode_name` | at the end | the name of the episode |

`env.unwrapped` also has `time`, `free` (free parts of nodes), `queued()`, `running()`, `result()`
(the schedule so far), `scheduler_rules`, `speedups`, and `snapshot()` and `restore()`. For the same
machine and rules call `hpcgym.simulate(env.unwrapped.episode_workload,
cluster=env.unwrapped.options.cluster, speedups=env.unwrapped.speedups,
**env.unwrapped.scheduler_rules)`."""

SHARED_REWARDS = """\
A job's wait counts in the step in which it starts, its slowdown in the step in which it ends, and
energy as it is drawn. For an episode of n jobs on m processors:

| `reward` | what a step adds | return |
|---|---|---|
| `"bsld"` | -max((wait + run) / max(compact, {tau} s), 1) / n for each job that ends | \
-`metrics["mean_bsld"]`: minus the mean bounded slowdown |
| `"wait"` | -wait / n for each job that starts [h] | -`metrics["mean_wait_s"]` / 3600: minus the \
mean wait [h] |
| `"throughput"` | -(time since the last decision) / B | -`metrics["makespan_s"]` / B: minus the \
makespan, by what compact jobs would need at least |
| `"energy"` | -(energy that the machine has drawn since the last decision) / E | \
-`metrics["energy_j"]` / E, with E = B x power with all processors busy |

run is the time that the job takes; compact is the time that it takes on filled nodes of its own, at
most the requested time. B is the sum of processors x compact over m, or the time from the first to
the last submission if that is longer. The return is the metric except for the rounding of a sum (a
relative error below 1e-9).

- A mapping of these names to weights, `{"bsld": 0.7, "energy": 0.3}`, is their weighted sum.
- A list of names, `["bsld", "energy"]`, makes the reward an array, float64, and adds
  `env.unwrapped.reward_space`, as MO-Gymnasium has it.
- A function is called once a step with a `StepView` (in `hpcgym/envs/single.py`: the jobs that
  started, their waiting and compact run times, the time, the energy, the queue) and returns the
  reward."""

#: Argument -> what it is, in the order of the page; others are those of all environments.
ARGUMENTS = {
    "workload": "a `Workload` whose jobs have codes, or what `hpcgym.load_workload` takes",
    "speedups": "a `hpcgym.speedups.Heatmap`, a file of one, or a text as in the default",
    "cluster": "a `hpcgym.Cluster` whose nodes are alike, the name of one, or nodes x sockets x "
    "cores",
    "allocation": '`"half-socket"`; `"part:K"`: one of K parts of each node; `"spread"`, '
    '`"compact"`: alone on its nodes',
    "partners": '`"fill"`, `"best"` or `"first"`: which nodes a job takes, see '
    '`hpcgym.Scheduler`, whose default is `"fill"`',
    "estimate": 'predicted compact run times: `"requested"`, `"double-requested"` or '
    '`"clairvoyant"`',
    "reward": "see Rewards",
    "window": "how many waiting jobs are visible",
    "neighbours": "how many running jobs are visible",
    "observation": '`"dict"` or `"flat"`',
}


# --- What the pages of the environments under limits say beside -----------------------------------

#: What some of them are in environments under limits.
LIMITED_ARGUMENTS = {
    "processors": "size of the machine, where `cluster` does not say; `None`: that of the workload",
    "cluster": "a `hpcgym.Cluster` whose nodes are all alike and have a power, or its name, such "
    'as `"curie"`; its `shutdown_after_s` is used. `None`: the nodes under Description',
    "policy_estimate": "run times that `backfill_order` and weights look at, as `estimate`",
    "passes": '`"per-timestamp"` only',
    "allocation": '`"first-fit"`, or `"contiguous"`: nodes in a row',
}

MACHINE = """\
A time t appears as t / (t + 1 h). Jobs have whole nodes. In this table and the next, m is the
number of nodes of the machine, and processors mean nodes; `cluster[9]` is `cluster[0]`. The
greatest power is the power with all nodes busy at the highest frequency."""
KNOWN = """
Limits are known from their announcement on. The default limits reach up to the last submission of
an episode, so they tell something of when it comes. Your own `limits` need not."""

REWARDS_PARTS = {
    "when": "A job's waiting and run time count in the step in which it starts, energy as it is "
    "drawn.",
    "length": "length",
    "joules": "(energy that the machine has drawn since the last decision)",
    "greatest": "power with all nodes busy",
    "run": """\
run is the time that the job would take at the highest frequency, at most the requested one, and
length what it takes at its own.""",
}

POWER_REWARDS = """\
A job that a cap kills is as long as it has run. Its slowdown counted too much, and the last step of
the episode corrects this.

Energy is what all nodes, in whatever state, and the levels above them draw, each in whole
milliwatts, rounded up. So the return is the metric to a relative error of about 1e-6, and of 1e-12
if all powers are whole milliwatts. The other returns are the metrics to 1e-12. Energy and slowdown
conflict: lower frequencies save joules and make jobs longer; nodes that are off save most and make
jobs wait. `reward={"bsld": 0.01, "energy": 1}` is a mix, `reward=["bsld", "energy"]` keeps them
apart."""

CONTROLS = """\
## Decision points

| `interval` | controls hold for |
|---|---|
| `"hour"`, `"day"`, `"week"`, `"6h"` | stretches of this length, from the first submission on |
| a whole number n | the next n submissions; those of the same second stay together |
| `"episode"` | the whole episode |

By the clock, a decision is made after all events of a stretch, and controls hold from the next
second on. If no job waits then, the agent is not asked, and the controls hold for the next stretch
too. So the times of decisions tell nothing of what comes. EASY plans with the end of the stretch,
as if controls were over then. By submissions, controls hold from the second after the last event
before the next submission, and plans count them without end.

## Action Space

`Box(-1, 1, (n,), float32)`: a number for each of `controls`, in their order, then a weight for each
of `policy_features`. A control's number means a share x = (number + 1) / 2:

| control | what it does | -1 | 1 |
|---|---|---|---|
| `"frequency"` | a ceiling for jobs that start from now on: no level above x times the highest, \
rounded to the nearest. `power` chooses among the remaining levels; if it would use none of \
them, the ceiling is used | the lowest level | the highest |
| `"nodes"` | how many nodes may be on: x N of N, rounded to the nearest. The others are counted \
from node 0, so that chassis and racks go dark together; they are switched off as they become \
free. Nodes that may be on again are switched on | all are switched off | all may be on |
| `"power"` | no job starts that would raise the charged power (`docs/power-rules.md`) above \
idle + x (greatest - idle): idle is the power of the idle machine, greatest that with all nodes \
busy | that of the idle machine | no cap |

A control limits starts only: running jobs go on unchanged. Nodes are switched on whatever the
control says of the power. But while a cap of `limits` is near, or if a budget does not suffice for
them, they wait for a job that takes them. Limits are kept whatever the controls say. On a machine
without running jobs, the first job is served as `limits` allow, whatever the controls say of nodes
and power; so every episode ends. With all numbers 1 the schedule is that of `limits` alone.

Weights order the queue as those of [MixedPolicy](mixed-policy.md) do, which has a table of the
features. Without any weights, the queue is in the order of submission. Numbers of controls outside
[-1, 1] count as -1 or 1; weights are taken as they are. Another shape, NaN or infinity raises
`HpcgymError`."""

# what, unit, and what stands there if there is none
POWER_FIELDS = (
    ("power that is drawn", "of the greatest", ""),
    ("power that is charged, which limits look at", "of the greatest", ""),
    ("the lowest cap in force", "of the greatest", "1 without one"),
    ("time up to its end", "t / (t + 1 h)", "0 without one"),
    ("the first cap that is known and to come", "of the greatest", "1 without one"),
    ("time up to its start", "t / (t + 1 h)", "1 without one"),
    ("what is left of the budget of the present period, or of the next if there is none", "of it",
     "1 without one"),
    ("saved: its mean power times the time since its start, less what was drawn", "of it", "0 "
     "without one"),
    ("the power that would use up what is left", "of the greatest", "1 without one"),
    ("what is left of its period", "of it", "0 without one"),
    ("time up to its start", "t / (t + 1 h)", "0 once it has begun, 1 without one"),
    ("nodes that are off", "share of m", ""),
    ("nodes that are being switched off or on", "share of m", ""),
    ("nodes of jobs, also of those that wait until nodes are on", "share of m", ""),
    ("the ceiling of frequencies: its level", "of the highest", "1 where there is one level"),
)  # fmt: skip

POWER_ARGUMENTS = {
    "limits": "`None`: the limits of the rows above; `hpcgym.scheduler.limits.PowerCap` and "
    "`EnergyBudget`, whose times count from the first submission of each episode; or a function of "
    "the episode's jobs (a `Workload`) that returns limits in their clock. A cap without end may "
    "leave too little power for the widest job: then `reset()` raises an error that names the job",
    "controls": "what the agent sets, see Action Space; may be empty if there are "
    "`policy_features`",
    "policy_features": "names of features by which the queue is ordered, see Action Space",
    "interval": "see Decision points",
    "power": "how limits are kept: a name of `hpcgym.scheduler.rules.POWER`, see "
    "`docs/power-limits.md`",
}

POWER_REFERENCE = """\
The policies of Glesser 2016 on the same episode and limits, without an agent:

```python
import hpcgym
from hpcgym.envs import {cls}

env = {cls}("lublin:jobs=1000,processors=64,load=1.2", jobs=100)
env.reset(seed=0)
jobs, cluster, limits = env.episode_workload, env.options.cluster, env.result().limits
for power in ("none", "dvfs", "powercap", "energy-bud"):
    result = hpcgym.simulate(jobs, cluster=cluster, limits=limits, power=power)
    print(power, result.metrics["mean_bsld"], result.metrics["energy_j"])
```

`hpcgym evaluate` compares agents with them on unseen slices."""


# --- What policies that do not learn reach in the environments ------------------------------------


class Reference(NamedTuple):
    """A command, and the rows that it prints: policy, mean bounded slowdown, mean wait [h]."""

    command: str
    slices: str
    rows: tuple[tuple[str, float, float, float, float], ...]

    def __str__(self) -> str:
        lines = [
            f"| `{name}` | {mean:.1f} ({low:.1f} to {high:.1f}) | {wait:.2f} |"
            for name, mean, low, high, wait in self.rows
        ]
        table = "\n".join(
            ("| policy | mean bounded slowdown | mean wait [h] |", "|---|---|---|", *lines)
        )
        return (
            f"Scores of some policies that do not learn, on {self.slices}, with 95 % intervals:\n\n"
            f"```sh\nhpcgym evaluate {self.command}\n```\n\n{table}"
        )


_WINDOWS = "50 unseen windows of 256 jobs"
_WEEKS = "20 unseen weeks of KTH-SP2"
_GENERATED = "--workload lublin:jobs=10000,processors=256,seed=0 --number 50"
_QUEUE = (
    ("saf", 32.7, 7.1, 72.4, 0.31),
    ("f1", 34.1, 8.4, 73.6, 0.31),
    ("best-static", 34.7, 8.9, 74.0, 0.33),
    ("sjf", 86.3, 39.7, 141.4, 0.67),
    ("wfp3", 87.3, 45.9, 136.2, 0.71),
    ("easy", 121.8, 71.1, 177.8, 0.93),
    ("fcfs", 607.3, 389.6, 840.3, 3.75),
)

#: Class of an environment -> its scores.
SCORES = {
    "JobSelection": Reference(
        f"fcfs sjf saf wfp3 f1 --env JobSelection {_GENERATED}",
        _WINDOWS,
        (*_QUEUE[:3], ("random (acting)", 37.4, 10.0, 78.8, 0.34), *_QUEUE[3:]),
    ),
    "QueueOrdering": Reference(
        f"fcfs sjf saf wfp3 f1 --env QueueOrdering {_GENERATED}",
        _WINDOWS,
        (*_QUEUE[:3], ("random (acting)", 36.4, 10.3, 76.5, 0.34), *_QUEUE[3:]),
    ),
    "MixedPolicy": Reference(
        f"fcfs sjf saf wfp3 f1 --env MixedPolicy {_GENERATED}",
        _WINDOWS,
        (
            ("saf", 32.8, 7.0, 72.8, 0.31),
            ("f1", 34.2, 8.4, 73.7, 0.31),
            ("best-static", 34.7, 8.9, 74.1, 0.33),
            ("random (acting)", 75.1, 31.8, 127.7, 0.57),
            ("sjf", 85.6, 39.7, 138.5, 0.68),
            ("wfp3", 88.4, 46.4, 137.2, 0.72),
            *_QUEUE[5:],
        ),
    ),
    "PowerCapEnv": Reference(
        "--env PowerCap --share 0.6 --workload KTH-SP2 --episodes weeks --number 20",
        _WEEKS,
        (
            ("saf", 85.1, 63.7, 107.8, 2.73),
            ("best-static", 94.7, 72.1, 118.5, 2.76),
            ("f1", 110.2, 82.1, 143.4, 3.21),
            ("random", 146.4, 117.8, 177.5, 4.07),
            ("easy-sjbf", 182.2, 149.5, 214.1, 5.08),
            ("easy", 223.8, 186.1, 263.6, 5.55),
        ),
    ),
    "EnergyBudgetEnv": Reference(
        "--env EnergyBudget --share 0.6 --shutdown --workload KTH-SP2 --episodes weeks --number 20",
        _WEEKS,
        (
            ("saf", 39.2, 23.7, 59.4, 1.23),
            ("best-static", 41.6, 24.4, 62.4, 1.27),
            ("f1", 46.1, 27.2, 69.3, 1.36),
            ("random", 50.5, 32.2, 73.7, 1.56),
            ("easy-sjbf", 58.0, 39.3, 80.0, 1.73),
            ("easy", 75.1, 48.1, 106.2, 1.90),
            ("powercap", 252.3, 192.0, 322.6, 6.34),
        ),
    ),
    "CoSchedule": Reference(
        "greedy-pairs easy-co popularity-co --env CoSchedule --number 20 --cluster 16x2x24"
        " --workload codes:jobs=5000,processes=96,processors=768",
        "20 unseen windows of 256 jobs",
        (
            ("sjf-co", 7.8, 7.7, 7.9, 9.68),
            ("greedy-pairs", 23.7, 22.9, 24.6, 13.83),
            ("easy-co", 28.4, 27.6, 29.3, 14.81),
            ("popularity-co", 28.4, 27.6, 29.3, 14.81),
            ("filler-co", 28.4, 27.6, 29.3, 14.81),
        ),
    ),
}


# --- What the pages of the environments say of episodes -------------------------------------------

EPISODES = """\
`reset()` draws an episode at random from the `part`. With `options` you choose the episode:

| `options` | episode |
|---|---|
| `{"slice": "window 0017"}` | of `episodes="windows"`: the successive windows of the \
part, from 0 |
| `{"slice": "week 12"}`, `{"slice": "month 3"}` | of weeks and months: the number in the trace |
| `{"slice": "whole"}` | of `episodes="whole"`; `"train"` or `"test"` if that is the part |
| `{"slice": "stream"}` | of `episodes="stream"` |
| `{"slice": "rows 300:556"}`, `{"start": 300, "jobs": 256}` | any rows of the workload, also of \
the other part, at most as many as the longest episode has |

In many episodes hardly any job waits, and nothing can be learned. `sampler` chooses which episodes
are drawn, by the mean bounded slowdown that SJF reaches in an episode without backfilling. For
that, all episodes, or a thousand windows, are simulated once, at the first reset. Evaluate on
`"uniform"` ones.

- `"uniform"`: all with the same probability.
- `"hard"`: in proportion to the logarithm of this slowdown; never, if no job waits.
- `"filtered"`: those from the median up to twice the mean of these slowdowns, with the same
  probability. This is the trajectory filtering of RLScheduler (Zhang et al., SC 2020), which trains
  on all episodes in the end.

Drawn windows begin at any job. The machine is empty, and the jobs before the episode do not exist.
Times are those of the trace."""

AROUND = """\
An episode from an empty machine flatters policies that let wide or long jobs wait: the slice ends,
the machine drains, and no job comes after it. Four arguments add what surrounds a slice in a log:

- `start="warm"`: the whole workload is simulated once by EASY, and an episode begins with the jobs
  that ran and waited at that time in this schedule. The name of any other scheduler does the same
  with its schedule. Windows are then the successive ones, and weeks and months have all their jobs.
- `warmup="1d"`: the episode begins this long before the first submission of its slice.
- `arrivals="continue"`: jobs keep coming after the slice, up to the horizon or the end of the part.
- `horizon="7d"`: the episode is truncated this long after the first submission of its slice. A job
  of the slice that still waits is charged the time that it has waited, as if it started at that
  second. `metrics["unserved_jobs"]` counts the jobs that wait then, of the slice or from before.

Only the n jobs of the slice count: rewards are divided by n, and `metrics` are of these jobs. Two
metrics look at other jobs too, `"unserved_jobs"` and `"longest_wait_s"`: they show agents that let
earlier jobs wait. `utilization` is that of the machine, by all jobs, from the first submission of
the slice to the last start that counts, or to the horizon."""

END = """\
An episode is terminated when all jobs that count have started. If these are all jobs of the
episode, the last step goes on until all have ended, and the last observation has no job. An episode
is truncated at the `horizon`, if there is one, with the observation of that second. A stream is
truncated at its last submission: it is as long as its log, for agents that look for the best result
in the long run. `max_episode_steps` of `gymnasium.make` truncates too."""


def versions(name: str, given: Mapping[str, Mapping[str, object]]) -> str:
    """Return the history of an environment's versions, by its name in ids.

    ``given``: id -> the arguments that it has in place of the defaults.
    """
    lines = ["- v0: the first."]
    for one, arguments in given.items():
        if one == f"hpcgym/{name}-v1":
            shown = ", ".join(f"`{key}={value!r}`" for key, value in arguments.items())
            lines.append(
                f"- v1: the same class with other defaults: {shown}.\n"
                "  v0 is unchanged. In its short episodes policies hardly differ. In v1 they do,\n"
                "  and a policy that gains in an episode gains in the long run."
            )
    return "\n".join(lines)


# --- What the pages of the environments say of rewards --------------------------------------------

_TABLE = """\
{when}
For an episode of n jobs:

| `reward` | what a step adds | return |
|---|---|---|
| `"bsld"` | -max((wait + {length}) / max(run, {tau} s), 1) / n for each job that starts | \
-`metrics["mean_bsld"]`: minus the mean bounded slowdown |
| `"wait"` | -wait / n for each job that starts [h] | -`metrics["mean_wait_s"]` / 3600: minus the \
mean wait [h] |
| `"energy"` | -{joules} / E | -`metrics["energy_j"]` / E, with E = {greatest} x (last - first \
submission + 1 s) |"""

_MORE = """\
| `"max_wait"` | -(growth of the longest wait so far) [h] | minus the longest wait [h] |
| `"p99_wait"` | at the end of the episode -(99th percentile of the waits) [h], else 0 | \
-`metrics["p99_wait_s"]` / 3600 |
| `"log_bsld"`, `"log_wait"` | minus the growth of ln(1 + the sum so far) | -ln(1 + the mean) |
| `"bsld/easy"` | `"bsld"`, divided by the mean bounded slowdown of the scheduler of this name, \
on the same jobs from the same beginning, under the same quotas, windows, dependencies and \
preemption | minus the ratio |"""

_PAID = """\
`paid` says when slowdowns and waits count. With `"start"` they count in the step in which a job
starts, with `"end"` in the step in which it ends. With `"waiting"`, each step counts how much they
have grown, as if the waiting jobs started now, so that waiting costs at once. The return is the
same."""

_FORMS = """\
- A mapping of these names to weights, `{"bsld": 0.7, "energy": 0.3}`, is their weighted sum.
- A list of several names, `["bsld", "energy"]`, makes the reward an array, float64, and adds
  `env.unwrapped.reward_space` and `reward_dim`, as MO-Gymnasium has them.
- A function is called once a step with a `StepView` (in `hpcgym/envs/single.py`: the jobs that
  started, their waiting and run times, the time, the energy, the queue) and returns the reward.

Rewards reveal the run time of a job before its end, which an online scheduler learns only then:
policies must not look at them. Rewards that are paid at the end reveal nothing early."""

#: Where jobs have processors of a pool, or of nodes without limits; and under limits.
REWARDS = f"{_TABLE}\n{_MORE}\n\n{{run}}\n\n{_PAID}\n\n{_FORMS}"
PLAIN = f"{_TABLE}\n\n{{run}}\n\n{_FORMS}"

#: What the rewards say of machines without limits.
PARTS = {
    "when": "A job's waiting and run time, and its energy, count in the step in which it starts.",
    "length": "run",
    "joules": "(energy of the jobs that start + energy of processors without a job since the last "
    "decision)",
    "greatest": "m x `busy_power_w`",
    "run": """\
run is the time that the job will run, at most the requested one. The return is the metric except
for the rounding of a sum (a relative error below 1e-12). While processors are never switched off,
schedules of the same jobs differ in energy only by when they end: see `shutdown_after_s` of
`hpcgym.Cluster`. If jobs have nodes of their own, energy counts as it is drawn, by all nodes and
the levels above them, each in whole milliwatts, rounded up; E is then the energy with all nodes
busy.""",
}


# --- What the pages of environments say of quotas -------------------------------------------------

RESTRICTED = """\
`quota` and `maintenance` are rules of the machine that the agent cannot break, with the words and
the schedules of `hpcgym.simulate`. A job that would exceed a quota is passed over, whatever the
agent says. No job starts that would run into a window, as predicted. With either, a pass asks as
long as some waiting job fits the free processors that no quota keeps back, and a pass follows the
end of a window. Only on nodes, where all jobs of an episode ask for single cores, may schedules
differ from those of `hpcgym.simulate` around windows and under `preemption`: if other jobs of the
workload do not, or if nodes have powers, reservations here are of nodes by name. The scheduler of
`start` keeps the same rules.
`backfill` must be `"easy"`, `"depth:K"`, `"slurm"` or `"none"`; `docs/combinations.md` says what
else is refused. `mask` in JobSelection and the feature `within_quota` tell of quotas.

With `dependencies="after"` or `"closed-loop"`, and with quotas of submitted jobs, the schedule says
when jobs are submitted. A job is in the queue, and in the window, from then on, and waits count
from then on. Of jobs that an episode leaves out nobody waits for the end.
`env.unwrapped.submit_times()` has these times. The window, and the jobs of `result()`, are in the
order in which they came, those of one second in that of the log. Equal jobs are in that order, too,
but in MixedPolicy in that of the log, by their weights.
Episodes have nothing around their jobs then: `start`, `warmup`, `arrivals`, `horizon` and
`episodes="stream"` are refused, also where they are the default; so are weights for some
submissions."""

#: Behind it where environments have it: JobSelection has not.
STOPPING = """\
With `preemption` some jobs stop others, by rule and not by the agent's will: a pass begins with the
jobs that may, in the agent's order. A pass asks, too, if a waiting job may stop one that runs,
whether or not that gives it room. A job that was stopped is in the queue again, and in the window
at the next decision; in the pass that stops it, QueueOrdering serves it last. A suspended job is
not in the queue. No start is final. So slowdowns, waits and energy are worked out anew at each
step, as if no job that runs now were stopped, and the step is rewarded with the difference to the
step before. A step that stops a job takes back what its start was rewarded with. The rewards of an
episode add up to what the metrics of its schedule say. The episode ends once no job can be stopped
any more. `start`, `warmup`, `arrivals`, `horizon` and `episodes="stream"` are refused, as
above, and so is a reward that is a function of your own."""
