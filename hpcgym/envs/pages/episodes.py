"""What the pages of the environments say of episodes, and of the versions that have other ones."""

from __future__ import annotations

from collections.abc import Mapping

EPISODES = """\
`reset()` draws an episode at random from the `part`. With `options` it begins one that you choose:

| `options` | episode |
|---|---|
| `{"slice": "window 0017"}` | of `episodes="windows"`: the windows of the part that follow one \
another, from 0 |
| `{"slice": "week 12"}`, `{"slice": "month 3"}` | of weeks and months: the number in the trace |
| `{"slice": "whole"}` | of `episodes="whole"`; `"train"` or `"test"` if that is the part |
| `{"slice": "stream"}` | of `episodes="stream"` |
| `{"slice": "rows 300:556"}`, `{"start": 300, "jobs": 256}` | any rows of the workload, also of \
the other part, at most as many as the longest episode has |

In many episodes hardly anybody waits, and nothing can be learned. `sampler` says what is drawn, by
the mean bounded slowdown that SJF reaches in an episode without backfilling. All episodes, of
windows a thousand, are simulated for that once, at the first reset. Evaluate on `"uniform"` ones.

- `"uniform"`: all alike.
- `"hard"`: in proportion to the logarithm of this slowdown; where nobody waits, never.
- `"filtered"`: those from the median up to twice the mean of these slowdowns, all alike: the
  trajectory filtering of RLScheduler (Zhang et al., SC 2020), which trains on all in the end.

Windows that are drawn begin at any job. The machine is empty, and the jobs before the episode do
not exist. Times are those of the trace."""

AROUND = """\
An episode from an empty machine flatters those who let wide or long jobs wait: the slice ends, the
machine drains, and nobody comes after them. Four arguments put around a slice what there is in a
log:

- `start="warm"`: the whole workload is simulated once by EASY, and an episode begins with the jobs
  that ran and waited then in its schedule. The name of any other scheduler does the same with its
  schedule. Windows are then those that follow one another, and weeks and months have all their
  jobs.
- `warmup="1d"`: the episode begins so long before the first submission of its slice.
- `arrivals="continue"`: the jobs that come after the slice go on to come, up to the horizon or the
  end of the part.
- `horizon="7d"`: so long after the first submission of its slice the episode is truncated. A job
  of the slice that waits then is charged what it has waited, as if it started at that second.
  `metrics["unserved_jobs"]` are those that wait then, of the slice or from before.

The jobs of the slice count, n of them, whatever is done: rewards are divided by n, and `metrics`
are of these jobs. Others want their processors, and count for nothing; who lets those wait that
were there before is seen by two metrics of both, `"unserved_jobs"` and `"longest_wait_s"`.
`utilization` is that of the machine from the first submission of the slice to the last start that
counts, or to the horizon, by all jobs."""

END = """\
Terminated when all jobs that count have started. Where these are all jobs of the episode, the last
step goes on until all have ended, and the last observation has no job. Truncated at the `horizon`,
if there is one, with the observation of that second, and a stream at its last submission: it goes
on as long as its log, for agents that want the most in the long run; or by `max_episode_steps` of
`gymnasium.make`."""


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
                "  v0 is as it was. In its short episodes policies hardly differ; here they do,\n"
                "  and what gains in an episode gains in the long run."
            )
    return "\n".join(lines)
