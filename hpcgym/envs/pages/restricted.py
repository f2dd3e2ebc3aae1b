"""What the pages of environments say of quotas, windows, and jobs that follow or stop others."""

from __future__ import annotations

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
