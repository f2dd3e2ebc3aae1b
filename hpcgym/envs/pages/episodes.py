"""What the pages of the environments say of episodes, and of the versions that have other ones."""

from __future__ import annotations

from collections.abc import Mapping

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
