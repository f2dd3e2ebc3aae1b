"""The rules of a scheduler as the engine takes them: what each number stands for."""

from __future__ import annotations

PER_TIMESTAMP, PER_EVENT = 0, 1  # passes
UNLIMITED = 2**62  # depth: a reservation for every queued job, from its submission on
ALL_JOBS = 2**62  # tested
NO_THRESHOLD = -1  # threshold [s]

# primary and secondary, the orders in which the queue is served and back-filled. SUBMISSION is that
# of arrival; KEYED ones do not change with time; SCORED ones do, and are computed at each pass.
# PREDICTION (secondary only) is by predicted run time; SELECTION (primary only) is from outside.
SUBMISSION, KEYED, PREDICTION, SELECTION, SCORED, CUBED = range(6)

GIVEN, AVERAGE = 0, 1  # estimate: from outside, or the mean of the user's last jobs
# correction; UNCORRECTED: no prediction can expire; AGAIN: what the predictor says then; KILL: the
# job ends
UNCORRECTED, TO_REQUESTED, INCREMENTAL, DOUBLING, AGAIN, KILL = range(6)
NEVER, AFTER_ENDS, EACH_TIME = range(3)  # renews
