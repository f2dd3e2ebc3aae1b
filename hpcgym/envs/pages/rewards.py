"""What the pages of the environments say of rewards."""

from __future__ import annotations

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
