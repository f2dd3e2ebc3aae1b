"""What is learned of the jobs that ended before an extract begins, as its trace records them."""

from __future__ import annotations

from hpcgym.compilation import jit_entry
from hpcgym.engine.answers.online import learn_from_ended, look_at
from hpcgym.engine.events import end_first, next_end, start
from hpcgym.engine.state import A_PREDICTION, FOREVER


@jit_entry
def learn_from_record(
    jobs, users, sim, progress, history, blocks, entries, freed, idle, ended, past, by_start, time,
    estimators, learner,
):  # fmt: skip
    """Learn from jobs that have ended by ``time`` [s], each as it was seen at its submission.

    Jobs that had ended in that second had ended, and those ran that had started before. The lists
    are empty; ``progress`` has the starts.

    Parameters
    ----------
    past : (n_past,) int64, jobs that ended, by submission.
    by_start : (n_jobs,) int64, all jobs, also others that run, in the order of their starts.
    """
    begun = 0
    for i in range(len(past) + 1):
        now = jobs[past[i]].submit if i < len(past) else time
        while True:
            end = next_end(blocks)
            began = progress[by_start[begun]].start if begun < len(by_start) else FOREVER
            if end <= min(now, began):
                sim.time = end
                end_first(sim, jobs, progress, users, history, blocks, entries, freed, idle, ended)
            elif began < now:
                sim.time = began
                start(sim, jobs, progress, blocks, entries, idle, by_start[begun])
                begun += 1
            else:
                break
        learn_from_ended(jobs, users, sim, progress, ended, estimators, learner)
        if i < len(past):
            sim.time, sim.asked = now, A_PREDICTION
            look_at(jobs, users, sim, progress, blocks, entries, past[i], estimators, learner)
