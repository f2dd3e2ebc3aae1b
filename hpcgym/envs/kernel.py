"""What an environment does between two actions, compiled: act, simulate, account.

Single and vector environments call the same functions. Many simulations lie in arrays with one row
for each (`Batch`); the jobs lie in one table that all share (`Table`), and an episode is a range of
its rows. Inside an episode a job is known by its row from the first of them.

Numbers are passed on as np.int64: numba would compile a function anew for each constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_parallel, jit_part
from hpcgym.engine.mixing import mix
from hpcgym.engine.node_rows import empty_nodes, nodes_of, run_on_nodes
from hpcgym.engine.online import FOR_ORDERING, KNOWN, rank
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.power import rest, settle, some_idle, switch_off
from hpcgym.engine.scores import forget_bounds
from hpcgym.engine.search import (
    begin_learning,
    learner_of,
    rewind,
    run_rows,
    set_second_scores,
    set_weights,
)
from hpcgym.engine.state import (
    ARRIVED,
    ASKS,
    FOREVER,
    IDLE_S,
    MANAGED,
    NEXT,
    NOBODY,
    OFF_S,
    QUEUE,
    SCORED,
    SELECTED,
    STARTED,
    STARTED_AS,
    SWITCHING_OFF_S,
    SWITCHING_ON_S,
    TIME,
)
from hpcgym.envs.observe import observe
from hpcgym.metrics import TAU_S

# -- slots of `Batch.place`: where an environment is -----------------------------------------------
(
    START,  # the first row of the episode in the table
    JOBS,  # of the episode
    ORIGIN,  # the first row of the episode in the workload
    NEXT_START,  # the same two of the episode that follows, where environments reset themselves
    NEXT_JOBS,
    VISIBLE,  # jobs in the window
    SHOWN,  # jobs in the window when it was last written to the observation
    CURSOR,  # jobs from this one on have not been in the window
    STOP,  # [s] the time of the next decision, where it comes with the clock
    LAST_TIME,  # [s] up to which energy is accounted for
    COUNTED,  # jobs that have started and been accounted for
    NEW,  # jobs that started in the last step
    ENDED,  # 1 once all jobs of the episode have started
    RESETS,  # 1 if the last step began an episode
) = range(14)
N_PLACES = 14

# -- slots of `Table.settings` ---------------------------------------------------------------------
(
    KIND,
    INTERVAL,  # what MixedPolicy's weights hold for
    INTERVAL_LENGTH,  # seconds or submissions
    PROCESSORS,
    AUTORESET,
    CLOCK,  # [s] time of the week at the trace's time 0
    BY_ACTION,  # 1 if the last index of the window stands for switching idle processors off
) = range(7)
N_SETTINGS = 7
SELECTION_KIND, ORDERING_KIND, WEIGHTS_KIND = range(3)  # KIND
PASSES_INTERVAL, SECONDS_INTERVAL, SUBMISSIONS_INTERVAL, EPISODE_INTERVAL = range(4)  # INTERVAL
NO_RESET, NEXT_STEP, SAME_STEP = range(3)  # AUTORESET

# -- reward terms, summed over the jobs that started in a step -------------------------------------
BSLD, WAIT, ENERGY = range(3)
N_TERMS = 3

BUSY, IDLING, OFF, SWITCHING_OFF, SWITCHING_ON = range(5)  # what processors do, in `Table.watts`


class Table(NamedTuple):
    """What all simulations of an environment share; never changed."""

    jobs: NDArray[np.void]  # (n_rows,) hpcgym.engine.state.JOBS
    users: NDArray[np.int64]  # (n_rows,) or (0,)
    keys: NDArray[np.int64]  # (longest + n_rows,) or (0,): of the secondary order, behind a gap
    second_scores: NDArray[np.void]  # (n_rows,) or (0,) SCORES of the secondary order
    weighed: NDArray[np.float64]  # (n_rows, n_features) static parts of MixedPolicy's features
    waiting: NDArray[np.int64]  # (n_features,) how the same depend on waiting
    places: NDArray[np.int64]  # (n_features,) which weight of the action is theirs
    formulas: NDArray[np.int64]  # (n_features,) their places in the table of features
    serial: NDArray[np.float64]  # (n_rows,) or (0,) patience of the feature unicef
    columns: NDArray[np.float32]  # (n_rows, n_own) users' own columns of the window
    codes: NDArray[np.int64]  # (n_columns,) which feature each column of the window is
    predicted: NDArray[np.int64]  # (n_rows,) [s], or 0 where it becomes known at submission
    ordered_by: NDArray[np.int64]  # (n_rows,) [s] what policies look at, as above
    watts: NDArray[np.float64]  # (5,) of a processor that is busy, idle, off, switching off, on
    taste: NDArray[np.float64]  # (n_rewards, N_TERMS) weights of the terms in each reward
    settings: NDArray[np.int64]
    sim: NDArray[np.int64]  # the state of an empty machine before the first submission
    blocks: NDArray[np.void]
    # hpcgym.engine.online.Estimators, one by one: parallel loops take no tuples within tuples
    kinds: NDArray[np.int64]
    last: NDArray[np.int64]
    loss: NDArray[np.void]
    chosen: NDArray[np.int64]
    looks: NDArray[np.int64]
    classes: NDArray[np.int64]


class Batch(NamedTuple):
    """The state of many simulations, a row for each; copying its rows copies them."""

    sim: NDArray[np.int64]
    progress: NDArray[np.void]
    history: NDArray[np.int64]
    blocks: NDArray[np.void]
    entries: NDArray[np.void]
    profile: NDArray[np.void]
    line: NDArray[np.void]
    narrow: NDArray[np.int64]
    freed: NDArray[np.void]
    idle: NDArray[np.void]
    ended: NDArray[np.int64]
    memory: NDArray[np.float64]
    ratios: NDArray[np.float64]
    seen: NDArray[np.float64]
    model: NDArray[np.float64]
    model_sums: NDArray[np.float64]
    ordered_by: NDArray[np.int64]
    weights: NDArray[np.float64]
    scratch: NDArray[np.float64]
    scores: NDArray[np.void]  # (n, 2 * longest) or (n, 0)
    place: NDArray[np.int64]  # (n, N_PLACES)
    window: NDArray[np.int64]  # (n, window) visible jobs
    new: NDArray[np.int64]  # (n, longest) jobs that started in the last step
    terms: NDArray[np.float64]  # (n, N_TERMS) sums over them
    totals: NDArray[np.float64]  # (n, N_TERMS) the same over the episode
    counted_j: NDArray[np.float64]  # (n,) energy of processors without a job, as far as counted
    norms: NDArray[np.float64]  # (n, N_TERMS) what makes rewards of terms


@jit
def begin(e, table, batch, rooms):
    """Begin the next episode of environment ``e``, and go to its first decision.

    Here and in all that follows ``rooms`` is None on a pool of processors.
    """
    place = batch.place[e]
    start, n = place[NEXT_START], place[NEXT_JOBS]
    place[START], place[JOBS], place[ORIGIN] = start, n, start
    place[VISIBLE] = place[CURSOR] = place[COUNTED] = place[NEW] = place[ENDED] = 0
    place[LAST_TIME] = place[STOP] = table.jobs[start].submit
    place[RESETS] = 1
    rewind(
        table.sim, table.blocks, table.jobs[start : start + n], table.predicted[start : start + n],
        batch.sim[e], batch.progress[e], batch.history[e], batch.blocks[e],
    )  # fmt: skip
    begin_learning(table, batch, e)
    if rooms is not None:
        empty_nodes(rooms, e, start, start + n)
    begin_scores(e, table, batch, start, n)
    batch.counted_j[e] = 0.0
    if table.sim[MANAGED] == 1:
        rest(batch.sim[e], batch.idle[e], table.settings[PROCESSORS])
    span = table.jobs[start + n - 1].submit - table.jobs[start].submit + 1
    full = table.watts[BUSY] * table.settings[PROCESSORS]
    batch.norms[e, BSLD] = -1.0 / n
    batch.norms[e, WAIT] = -1.0 / (3600.0 * n)
    batch.norms[e, ENERGY] = -1.0 / max(full * span, 1.0)
    for term in range(N_TERMS):
        batch.terms[e, term] = batch.totals[e, term] = 0.0
    if table.sim[ASKS] != NOBODY:
        simulate(e, table, batch, rooms, np.int64(FOREVER))
        account(e, table, batch)


@jit_part
def begin_scores(e, table, batch, start, n):
    """Set the scores that do not depend on actions."""
    scores = batch.scores[e]
    if table.settings[KIND] == ORDERING_KIND:
        # jobs outside the window come after those within, by submission
        for job in range(n):
            scores[job].score = -np.inf
            scores[job].patience = np.inf
    set_second_scores(scores, table.second_scores, start, n)


@jit_inline
def simulate(e, table, batch, rooms, stop_time):
    """Run the simulator of environment ``e`` to its next question, its end or ``stop_time`` [s]."""
    start, n = batch.place[e, START], batch.place[e, JOBS]
    if rooms is None:
        run_rows(table, start, n, batch, e, stop_time, np.int64(FOREVER))
    else:
        run_on_nodes(table, start, n, batch, rooms, e, stop_time)


@jit_inline
def account(e, table, batch):
    """Note the jobs that have started since the last decision, sum their terms, fill the window."""
    place, window, sim, new = batch.place[e], batch.window[e], batch.sim[e], batch.new[e]
    progress = batch.progress[e]
    found = kept = 0
    for i in range(place[VISIBLE]):
        job = window[i]
        if progress[job].start < 0:
            window[kept] = job
            kept += 1
        else:
            new[found] = job
            found += 1
    job = place[CURSOR]
    while place[COUNTED] + found < sim[STARTED]:
        if progress[job].start >= 0 and progress[job].marks // STARTED_AS >= place[COUNTED]:
            new[found] = job
            found += 1
        job += 1
    while kept < len(window) and place[CURSOR] < sim[NEXT]:
        if progress[place[CURSOR]].start < 0:
            window[kept] = place[CURSOR]
            kept += 1
        place[CURSOR] += 1
    place[VISIBLE] = kept
    place[NEW] = found
    place[COUNTED] = sim[STARTED]
    place[ENDED] = 1 if sim[STARTED] == place[JOBS] else 0
    add_terms(e, table, batch)


@jit_part
def add_terms(e, table, batch):
    """Add what the last step did to the terms of the reward."""
    place, terms = batch.place[e], batch.terms[e]
    processor_seconds = 0.0
    for i in range(place[NEW]):
        job = batch.new[e, i]
        row = table.jobs[place[START] + job]
        wait = batch.progress[e, job].start - row.submit
        terms[BSLD] += max((wait + row.run) / max(row.run, TAU_S), 1.0)
        terms[WAIT] += wait
        processor_seconds += np.float64(row.processors) * np.float64(row.run)
    elapsed = np.float64(batch.sim[e, TIME] - place[LAST_TIME])
    place[LAST_TIME] = batch.sim[e, TIME]
    watts = table.watts
    if table.sim[MANAGED] == 0:
        idle_seconds = elapsed * table.settings[PROCESSORS] - processor_seconds
        terms[ENERGY] += idle_seconds * watts[IDLING] + processor_seconds * watts[BUSY]
        return
    settle(batch.sim[e], batch.idle[e])
    sim = batch.sim[e]
    joules = sim[IDLE_S] * watts[IDLING] + sim[OFF_S] * watts[OFF]
    joules += sim[SWITCHING_OFF_S] * watts[SWITCHING_OFF]
    joules += sim[SWITCHING_ON_S] * watts[SWITCHING_ON]
    terms[ENERGY] += joules - batch.counted_j[e] + processor_seconds * watts[BUSY]
    batch.counted_j[e] = joules


@jit_inline
def act(e, table, batch, rooms, chosen, numbers):
    """Do what the action says, and go to the next decision."""
    kind = table.settings[KIND]
    if kind == SELECTION_KIND:
        i = chosen[e]
        if i == len(batch.window[e]) and switch_off(batch.sim[e], batch.idle[e]):
            batch.place[e, NEW] = 0
            return
        # there is no job to select: the first is served
        batch.sim[e, SELECTED] = batch.window[e, i if 0 <= i < batch.place[e, VISIBLE] else 0]
    elif kind == ORDERING_KIND:
        for i in range(batch.place[e, VISIBLE]):
            batch.scores[e, batch.window[e, i]].score = numbers[e, i]
        forget_bounds(batch.blocks[e])
    stop, goes_on = np.int64(FOREVER), True
    while goes_on:
        if kind == WEIGHTS_KIND:
            stop = next_stop(e, table, batch)
            weigh(e, table, batch, numbers[e], stop)
        simulate(e, table, batch, rooms, stop)
        goes_on = stop < FOREVER and not interval_is_over(e, table, batch, stop)
    account(e, table, batch)


@jit_part
def next_stop(e, table, batch):
    """Return the last second that MixedPolicy's next weights hold for."""
    interval, length = table.settings[INTERVAL], table.settings[INTERVAL_LENGTH]
    place = batch.place[e]
    if batch.sim[e, STARTED] == place[JOBS]:
        return np.int64(FOREVER)
    if interval == SECONDS_INTERVAL:
        return place[STOP] + length - 1
    if interval == SUBMISSIONS_INTERVAL:
        following = batch.sim[e, NEXT]
        if following + length < place[JOBS]:
            first = table.jobs[place[START] + following].submit
            last = table.jobs[place[START] + following + length].submit - 1
            return max(first, last)
    return np.int64(FOREVER)


@jit_part
def interval_is_over(e, table, batch, stop):
    """Return whether new weights are to be asked for; else go on with the same."""
    place, sim = batch.place[e], batch.sim[e]
    if table.settings[INTERVAL] == SUBMISSIONS_INTERVAL:
        # once all have started, the weights hold to the end
        return sim[STARTED] < place[JOBS]
    place[STOP] = stop + 1
    if sim[STARTED] == place[JOBS]:
        return False  # to the end of the last job
    # all events up to this second have been seen
    sim[TIME] = max(sim[TIME], stop)
    if sim[STARTED] == sim[NEXT]:
        # nothing waits: an answer would be of no use, and when one is would tell what comes
        idle = table.jobs[place[START] + sim[NEXT]].submit - place[STOP]
        length = table.settings[INTERVAL_LENGTH]
        place[STOP] += max(idle // length, 0) * length
        return False
    return True


@jit_part
def weigh(e, table, batch, weights, stop):
    """Give scores by these weights to the queued jobs and to those that come up to ``stop`` [s]."""
    total = 0.0
    for k in range(len(table.waiting)):
        total += abs(weights[k])
    if table.kinds[FOR_ORDERING] != KNOWN:
        set_weights(table, batch, e, weights, total)
    blocks, entries = batch.blocks[e], batch.entries[e]
    forget_bounds(blocks)
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            score_by(e, table, batch, weights, total, entries[i].job)
    if table.settings[INTERVAL] == PASSES_INTERVAL:
        return  # jobs to come are weighed when they are in the queue
    # jobs that have come without a pass are not in the queue yet
    job, n = batch.sim[e, NEXT] - batch.sim[e, ARRIVED], batch.place[e, JOBS]
    while job < n and table.jobs[batch.place[e, START] + job].submit <= stop:
        score_by(e, table, batch, weights, total, job)
        job += 1


@jit_inline
def score_by(e, table, batch, weights, total, job):
    """Give a job its score."""
    if table.kinds[FOR_ORDERING] != KNOWN:
        # that of a job to come will be known when it is submitted
        if job < batch.sim[e, NEXT]:
            start, n = batch.place[e, START], batch.place[e, JOBS]
            jobs = table.jobs[start : start + n]
            rank(jobs, batch.scores[e], SCORED, job, 0, learner_of(batch, e))
        return
    row = batch.place[e, START] + job
    serial = table.serial[row] if len(table.serial) > 0 else 1.0
    batch.scores[e, job].score, batch.scores[e, job].patience = mix(
        weights, table.places, total, table.weighed[row], table.waiting, serial,
        np.float64(table.ordered_by[row]),
    )  # fmt: skip


class Outputs(NamedTuple):
    """What steps write, a row for each environment."""

    observations: NDArray[np.float32]  # (n, size of an observation)
    masks: NDArray[np.int8]  # (n, window) 1 where there is a job; one more if BY_ACTION
    rewards: NDArray[np.float64]  # (n, n_rewards)
    ended: NDArray[np.bool_]  # (n,) whether the episode has ended
    final: NDArray[np.float32]  # (n, size) or (0, 0): last observations of the episodes that ended
    totals: NDArray[np.float64]  # (n, N_TERMS) of those episodes
    lengths: NDArray[np.int64]  # (n,) jobs of those episodes


@jit_inline
def show(e, table, batch, rooms, out):
    """Write what is to be seen of environment ``e``."""
    place = batch.place[e]
    start, n = place[START], place[JOBS]
    ordered_by = table.ordered_by[start : start + n]
    if table.kinds[FOR_ORDERING] != KNOWN:
        ordered_by = batch.ordered_by[e]
    nodes = None
    if rooms is not None:
        nodes = nodes_of(rooms, e, start, start + n)
    observe(
        nodes, batch.sim[e], batch.progress[e], batch.blocks[e], batch.entries[e], batch.idle[e],
        batch.window[e], place[VISIBLE], place[SHOWN], ordered_by,
        table.jobs[start : start + n], table.columns[start : start + n], table.codes,
        table.settings[CLOCK], table.settings[PROCESSORS], out.observations[e],
    )  # fmt: skip
    if table.settings[BY_ACTION] == 1:
        idle = not place[ENDED] and some_idle(batch.sim[e], batch.idle[e])
        out.masks[e, len(batch.window[e])] = idle
    for i in range(place[VISIBLE], place[SHOWN]):
        out.masks[e, i] = 0
    for i in range(place[SHOWN], place[VISIBLE]):
        out.masks[e, i] = 1
    place[SHOWN] = place[VISIBLE]


@jit
def restart(e, table, batch, rooms, out):
    """Begin the next episode of environment ``e``, and show its first decision."""
    begin(e, table, batch, rooms)
    show(e, table, batch, rooms, out)


@jit_part
def copy_row(target, source, e):
    """Copy row ``e``."""
    for k in range(source.shape[1]):
        target[e, k] = source[e, k]


@jit
def step(e, table, batch, rooms, chosen, numbers, out):
    """Do one action in environment ``e``, and show what comes of it."""
    place = batch.place[e]
    if place[ENDED] == 1 and table.settings[AUTORESET] == NEXT_STEP:
        restart(e, table, batch, rooms, out)
        out.ended[e] = False
        for k in range(out.rewards.shape[1]):
            out.rewards[e, k] = 0.0
        return
    place[RESETS] = 0
    for term in range(N_TERMS):
        batch.terms[e, term] = 0.0
    act(e, table, batch, rooms, chosen, numbers)
    for term in range(N_TERMS):
        batch.totals[e, term] += batch.terms[e, term]
    for k in range(len(table.taste)):
        reward = 0.0
        for term in range(N_TERMS):
            reward += table.taste[k, term] * batch.terms[e, term] * batch.norms[e, term]
        out.rewards[e, k] = reward
    show(e, table, batch, rooms, out)
    out.ended[e] = place[ENDED] == 1
    if out.ended[e]:
        copy_row(out.totals, batch.totals, e)
        out.lengths[e] = place[JOBS]
        if table.settings[AUTORESET] == SAME_STEP:
            copy_row(out.final, out.observations, e)
            restart(e, table, batch, rooms, out)


@jit_entry
def reset_one(e, table, batch, rooms, out):
    """Begin the next episode of environment ``e``."""
    restart(e, table, batch, rooms, out)


@jit_entry
def step_one(e, table, batch, rooms, chosen, numbers, out):
    """Do one action in environment ``e``."""
    step(e, table, batch, rooms, chosen, numbers, out)


@jit_parallel
def step_all(table, batch, chosen, numbers, out):
    """Do one action in each environment, on all threads."""
    for e in prange(len(out.ended)):
        step(np.int64(e), table, batch, None, chosen, numbers, out)


@jit_parallel
def step_all_on_nodes(table, batch, rooms, chosen, numbers, out):
    """Do one action in each environment, on all threads."""
    for e in prange(len(out.ended)):
        step(np.int64(e), table, batch, rooms, chosen, numbers, out)
