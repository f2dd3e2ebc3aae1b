"""What the page of CoSchedule says beside ``page``: its fields, rewards, arguments."""

from __future__ import annotations

from hpcgym.envs.core.layout import PairLayout

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

REWARDS = """\
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
