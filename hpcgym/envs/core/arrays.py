"""The arrays of environments: what simulations share, a row for each, what steps write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.records import whole_numbers

# Where an environment is: a record each, `Batch.episode_state`.
EPISODE = whole_numbers(
    "start",  # the first row of the episode in the table
    "jobs",  # of the episode
    "begin",  # [s] when it begins: at the first submission; an extract, if jobs run or wait then
    "next_start",  # the same two of the episode that follows, where environments reset themselves
    "next_jobs",
    # where jobs come before or after the slice that counts: see hpcgym.envs.core.cutting
    "counts_first",  # the first job that counts
    "counting",  # jobs up to this one, exclusive, count
    "until",  # [s] when the episode is truncated, FOREVER: never
    "beginning",  # with which of the beginnings it begins
    "of_slice",  # jobs of the slice; 0 where it is the whole episode
    "next_counts_first",
    "next_counting",
    "next_until",
    "next_beginning",
    "next_of_slice",
    "next_open",
    "open",  # jobs that may count, and have not started; one more where it ends by time alone
    "truncated",  # 1 if it ended by time
    "visible",  # jobs in the window
    "cursor",  # jobs from this one on have not been in the window
    "stop",  # [s] the time of the next decision by the clock; by submissions the second before it
    "last_time",  # [s] up to which energy is accounted for
    "counted",  # jobs that have started and been accounted for
    "new",  # jobs that started in the last step
    "noted",  # of them, those that have been accounted for
    "unpaid",  # jobs that run and are paid when they end
    "gone",  # jobs that were paid in the last step, as they ended
    "ended",  # 1 once all jobs that count have started, or by time
    "resets",  # 1 if the last step began an episode
    "hides",  # 1 if it goes on from a snapshot that hides the future
)

# What all environments of a table share: one record, `Table.settings`.
SETTINGS = whole_numbers(
    "kind",
    "interval",  # what weights and controls hold for
    "interval_length",  # seconds or submissions
    "processors",
    "autoreset",  # 1 if the step after the end of an episode begins the next
    "clock",  # [s] time of the week at the trace's time 0
    "by_action",  # 1 if the last index of the window stands for switching idle processors off
    "act_frequency",  # where controls of a machine under limits stand in the action, or -1
    "act_nodes",
    "act_power",
    "seen_power",  # where power stands in the observation
    "ticks",  # in a second
    "paid",
    "skips",  # 1 if decisions with one action are not asked for
    "split",  # 1 if the window shows the head and the tail of the queue
)
# kind; the last two where jobs share nodes
SELECTION_KIND, ORDERING_KIND, WEIGHTS_KIND, PAIRS_KIND, PAIR_SCORES_KIND = range(5)
STEP, BEGIN, SHOW = range(3)  # what is to be done with simulations
PASSES_INTERVAL, SECONDS_INTERVAL, SUBMISSIONS_INTERVAL, EPISODE_INTERVAL = range(4)  # interval

# -- reward terms, summed over the jobs that started in a step -------------------------------------
# ELAPSED where jobs share nodes, MAX_WAIT where they do not: what the longest wait has grown by
BSLD, WAIT, ENERGY, ELAPSED, MAX_WAIT = range(5)
N_TERMS = 5
PLAIN, LOG = range(2)  # shape of a reward
PAID_AT_START, PAID_AT_END, PAID_WHILE_WAITING = range(3)  # slowdowns and waits, `paid`

BUSY, IDLING, OFF, SWITCHING_OFF, SWITCHING_ON = range(5)  # what processors do, in `Table.watts`


class Table(NamedTuple):
    """What steps look at of all episodes, beside what the engine is told; never changed."""

    columns: NDArray[np.float32]  # (n_rows, n_own) users' own columns of the window
    codes: NDArray[np.int64]  # (n_columns,) which feature each column of the window is
    ordered_by: NDArray[np.int64]  # (n_rows,) [s] what policies look at
    watts: NDArray[np.float64]  # (5,) of a processor that is busy, idle, off, switching off, on
    # where nodes have powers: (n_nodes, 2) what a job adds to an idle node as a whole, 1, or by
    # core, 0; (1,) the power of the machine idle
    node_watts: NDArray[np.float64]
    still_w: NDArray[np.float64]
    reward_weights: NDArray[np.float64]  # (n_rewards, N_TERMS) weights of the terms in each reward
    shapes: NDArray[np.int64]  # (n_rewards,) PLAIN or LOG
    settings: NDArray[np.void]  # (1,) SETTINGS
    mean_speedup: NDArray[np.float64]  # (C,) of a code beside all others, where jobs share nodes


class Batch(NamedTuple):
    """What steps write of the episodes of many simulations, a row for each."""

    episode_state: NDArray[np.void]  # an EPISODE each
    window: NDArray[np.int64]  # (n, window) visible jobs
    new: NDArray[np.int64]  # (n, longest) jobs that started in the last step
    terms: NDArray[np.float64]  # (n, N_TERMS) sums over them
    totals: NDArray[np.float64]  # (n, N_TERMS) the same over the episode
    # (n,) energy of processors without a job, as far as counted, where they are switched off
    counted_j: NDArray[np.float64]
    begun_j: NDArray[np.float64]  # (n,) energy since an extract began, which its first step takes
    norms: NDArray[np.float64]  # (n, N_TERMS) what makes rewards of terms
    scales: NDArray[np.float64]  # (n, n_rewards) what rewards are multiplied by: n / a reference
    next_scales: NDArray[np.float64]  # (n, n_rewards) of the episode that follows
    # (n, N_TERMS) slowdowns and waits [s] so far of jobs that wait; where jobs may be stopped, all
    # sums that a later step may correct, for ENERGY in processor seconds
    owed: NDArray[np.float64]
    unpaid: NDArray[np.int64]  # (n, longest) or (n, 0) jobs that run and are paid when they end
    gone: NDArray[np.int64]  # (n, longest) or (n, 0) jobs that were paid so in the last step
    gone_bsld: NDArray[np.float64]  # (n, longest) or (n, 0) their bounded slowdowns
    busy_until: NDArray[np.int64]  # (n, n_nodes) [s] or (n, 0): the last end of the jobs of a node
    neighbours: NDArray[np.int64]  # (n, M) running jobs beside whom others may start, as they began
    books: NDArray[
        np.int64
    ]  # (n, 4) where jobs share nodes: at N_BESIDE how many of these there are


class Outputs(NamedTuple):
    """What is told of environments, a row for each; all of it is written at each step."""

    observations: NDArray[np.float32]  # (n, size of an observation)
    # (n, window) 1 where there is a job; one more if BY_ACTION; where jobs share nodes (n, actions)
    masks: NDArray[np.int8]
    rewards: NDArray[np.float64]  # (n, n_rewards)
    ended: NDArray[np.bool_]  # (n,) whether the episode has ended by itself
    truncated: NDArray[np.bool_]  # (n,) whether it has ended by time
    # what infos say: the time, the number of visible jobs, their rows, -1 behind them
    told: NDArray[np.int64]  # (n, N_TOLD + window)
    terms: NDArray[np.float64]  # (n, N_TERMS) as `Batch.terms`


N_BESIDE = 3  # a place in `Batch.books`
N_TOLD = 2  # places of `Outputs.told` before the rows
