"""What the pages of the environments under limits say beside :mod:`hpcgym.envs.pages.page`."""

from __future__ import annotations

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
