"""The arrays that steps of environments look at and write, and those that callers are given.

Callers may keep theirs. Those that nobody keeps are used again, which is cheaper than new ones.
"""

from __future__ import annotations

from sys import getrefcount
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import fields_of
from hpcgym.envs.core.layout import Layout, Observation

# --- The arrays of environments -------------------------------------------------------------------

# where an environment is, and what all of a table share; native/envs/records.hpp says what each is
EPISODE = np.dtype((np.record, fields_of("Episode")))
SETTINGS = np.dtype((np.record, fields_of("Settings")))
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


N_TOLD = 2  # places of `Outputs.told` before the rows


# --- Arrays for what is told of environments ------------------------------------------------------

MOST = 3  # sets of arrays: that of a step, of the one before, and of infos


class Lent:
    """A set of arrays, and what callers are given of them.

    Parameters
    ----------
    out : the arrays.
    layout : of observations.
    copy : whether observations and masks are lent as well; else each step overwrites them.

    Attributes
    ----------
    rewards : (num_envs,) the first reward.
    """

    def __init__(self, out: Outputs, layout: Layout, copy: bool) -> None:
        self.out, self.rewards = out, out.rewards[:, 0]
        # what can be done must stay known, whatever is made of an observation
        self._masks = out.masks.copy() if copy else out.masks
        self._views = layout.of(out.observations, self._masks)
        self._lent = [*out[0 if copy else 2 :], self.rewards]
        if copy:
            seen = self._views.values() if isinstance(self._views, dict) else [self._views]
            self._lent += [self._masks, *seen]
        self._kept = 0

    def begin(self) -> None:
        """Note that nobody has them yet."""
        self._kept = sum(map(getrefcount, self._lent))

    def is_kept(self) -> bool:
        """Return whether anybody has one of the arrays, or a view of one."""
        return sum(map(getrefcount, self._lent)) != self._kept

    def observation(self) -> Observation:
        """Return the observation, of arrays that are lent."""
        if not isinstance(self._views, dict):
            return self._views
        if self._masks is not self.out.masks:
            np.copyto(self._masks, self.out.masks)
        return self._views.copy()
