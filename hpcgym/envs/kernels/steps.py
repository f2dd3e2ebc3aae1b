"""What an environment does between two actions, compiled: act, simulate, account.

Single and vector environments call the same functions. Many simulations lie in arrays with one row
for each (`Batch`); the jobs lie in one table that all share (`Table`), and an episode is a range of
its rows. Inside an episode a job is known by its row from the first of them.

What the functions take of a machine is not None where the environment has a machine of that kind:

- ``pool``: processors that are all alike; ``()``, since it has no arrays of its own.
- ``rooms``: nodes.
- ``kept``: quotas and windows of one of these two, if there are any, as RestrictedRows.
- ``limited``: nodes of their own for jobs, under limits or not.
- ``corun``: nodes that jobs share.

``alone`` is ``()`` on all but the last, so that what jobs with processors of their own need stands
in one place. ``before`` has the states with which episodes begin, None where the machine is empty;
their nodes stand behind those of all environments. ``learns`` is None where no run times are
learned, ``fair`` where no order looks at usage. numba leaves out what is under an ``is not None``
that is false, if it has no ``else``.

Numbers are passed on as np.int64: numba would compile a function anew for each constant.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_part
from hpcgym.engine.answers.online import FOR_ORDERING, KNOWN
from hpcgym.engine.idle_power import some_idle, switch_off
from hpcgym.engine.machines.limited.controls import extend_control
from hpcgym.engine.machines.limited.rows import machine_of, run_under_limits
from hpcgym.engine.machines.nodes.rows import nodes_of, run_on_nodes, run_restricted_on_nodes
from hpcgym.engine.machines.pool.rows import run_on_pool, run_restricted_on_pool
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.passes.preempting_rows import log_is_full
from hpcgym.engine.passes.restricted_rows import in_log_order
from hpcgym.engine.state import ALL_PASSES, AN_ORDER, FOREVER, NOBODY
from hpcgym.envs.core.arrays import (
    BEGIN,
    ENERGY,
    LOG,
    N_TERMS,
    N_TOLD,
    ORDERING_KIND,
    SECONDS_INTERVAL,
    SELECTION_KIND,
    SHOW,
    STEP,
    WEIGHTS_KIND,
)
from hpcgym.envs.kernels.accounts import account
from hpcgym.envs.kernels.allowed import (
    count_allowed,
    mask_barred,
    nearest_allowed,
    show_quotas,
)
from hpcgym.envs.kernels.beginning import begin
from hpcgym.envs.kernels.corun import act_on_pairs, serve, show_pairs
from hpcgym.envs.kernels.intervals import interval_is_over, next_stop, weigh
from hpcgym.envs.kernels.limited import control, observe_power
from hpcgym.envs.kernels.moving import jobs_here, order_as_seen, queued
from hpcgym.envs.kernels.observe import ON_AT, observe
from hpcgym.envs.kernels.terms import step_of_log


@jit_part
def simulate(e, table, batch, pool, rooms, kept, limited, learns, fair, stop_time):
    """Run the simulator of environment ``e`` to its next question, its end or ``stop_time`` [s]."""
    start, n = batch.episode_state[e].start, batch.episode_state[e].jobs
    if kept is not None:
        simulate_restricted(
            e, table, batch, pool, rooms, kept, kept.stops, learns, fair, stop_time
        )  # fmt: skip
    if kept is None:
        if pool is not None:
            run_on_pool(table, start, n, batch, e, learns, fair, stop_time, np.int64(ALL_PASSES))
        if rooms is not None:
            run_on_nodes(table, start, n, batch, rooms, e, learns, fair, stop_time)
    if limited is not None:
        run_under_limits(table, start, n, batch, limited, e, learns, fair, stop_time)


@jit
def simulate_restricted(e, table, batch, pool, rooms, kept, stops, learns, fair, stop_time):
    """Do so where quotas, windows or other jobs say who may start; ``stops`` are of ``kept``."""
    start, n, s = batch.episode_state[e].start, batch.episode_state[e].jobs, np.int64(0)
    if pool is not None:
        run_restricted_on_pool(table, start, n, batch, kept, stops, s, e, learns, fair, stop_time)
    if rooms is not None:
        stop = len(rooms.needs)  # who holds nodes in windows stands behind the jobs of all
        run_restricted_on_nodes(
            table, start, n, batch, rooms, start, stop, kept, stops, s, e, learns, fair, stop_time
        )  # fmt: skip


@jit_part
def act(
    e, begins, table, batch, alone, pool, rooms, kept, limited, corun, learns, fair, chosen, numbers
):  # fmt: skip
    """Go to the next decision, after what the action says; to the first if the episode begins."""
    if corun is not None:
        if begins:
            serve(e, table, batch, corun, np.int64(-1), np.int64(-1))
        else:
            act_on_pairs(e, table, batch, corun, chosen[e], numbers[e])
        account(e, table, batch, pool, rooms, kept, limited, corun)
    if alone is not None:
        act_on_queue(
            e, begins, table, batch, pool, rooms, kept, limited, learns, fair, chosen, numbers
        )  # fmt: skip


@jit_inline
def act_on_queue(
    e, begins, table, batch, pool, rooms, kept, limited, learns, fair, chosen, numbers
):  # fmt: skip
    """Do what :func:`act` does where jobs have their processors alone.

    The simulator is called in one place: each more would be compiled once more.
    """
    kind = table.settings[0].kind
    acts = not begins
    if batch.episode_state[e].controls_hold == 1:
        acts = False  # the last action goes on
    if acts:
        if kind == SELECTION_KIND:
            i = chosen[e]
            if i == len(batch.window[e]) and switch_off(batch.sim[e], batch.idle[e]):
                batch.episode_state[e].new = 0
                return
            # there is no job to select: the first is served
            first = i if 0 <= i < batch.episode_state[e].visible else 0
            batch.sim[e].selected = batch.window[e, first]
            if kept is not None:
                batch.sim[e].selected = nearest_allowed(e, batch, kept, batch.window[e, first])
        elif kind == ORDERING_KIND:
            for i in range(batch.episode_state[e].visible):
                batch.scores[e, batch.window[e, i]].score = numbers[e, i]
            if kept is not None and not in_log_order(kept):
                order_as_seen(e, batch, kept, numbers[e])
            forget_bounds(batch.blocks[e])
    until = batch.episode_state[e].until
    last, goes_on = np.int64(FOREVER), True
    while goes_on:
        if kind == WEIGHTS_KIND and not begins:
            last = next_stop(e, table, batch, kept)
        stop = min(last, until)
        if kind == WEIGHTS_KIND and not begins:
            weigh(e, table, batch, kept, fair, numbers[e], stop)
        if limited is not None and not begins:
            control_machine(e, table, batch, limited, numbers[e], stop)
        simulate(e, table, batch, pool, rooms, kept, limited, learns, fair, stop)
        if is_full(e, kept, limited) and not begins:
            batch.episode_state[e].controls_hold = 1
            return  # to be called again, with the same action, once there is room
        if stop == until and until < FOREVER and batch.sim[e].asked != AN_ORDER:
            # a reset cannot say that an episode is over: the first step will, whatever it does
            batch.episode_state[e].truncated = not begins
            batch.sim[e].time = max(batch.sim[e].time, until)
            goes_on = False
        else:
            goes_on = last < FOREVER and not interval_is_over(e, table, batch, kept, stop)
        if not goes_on:
            account(e, table, batch, pool, rooms, kept, limited, None)
            if table.settings[0].skips == 1 and not begins and is_forced(e, table, batch, kept):
                goes_on = True
                batch.sim[e].selected = batch.window[e, 0]
                if kept is not None:
                    batch.sim[e].selected = nearest_allowed(e, batch, kept, batch.window[e, 0])
    batch.episode_state[e].controls_hold = 0


@jit_part
def is_full(e, kept, limited):
    """Return whether a log of environment ``e`` is full, and the step is to be gone on with."""
    full = False
    if limited is not None:
        full = limited.scalars[e, 0].full == 1
    if kept is not None:
        full = full or log_is_full(kept.stops, e)
    return full


@jit_part
def is_forced(e, table, batch, kept):
    """Return whether there is one job to select, and nothing else that could be done."""
    episode = batch.episode_state[e]
    choices = episode.visible
    if kept is not None:
        choices = max(count_allowed(e, batch, kept), 1)
    if episode.ended == 1 or choices != 1:
        return False
    return table.settings[0].by_action == 0 or not some_idle(batch.sim[e], batch.idle[e])


@jit_part
def control_machine(e, table, batch, limited, numbers, stop):
    """Set the controls by the action, or let them hold for longer if that has been done."""
    episode, settings = batch.episode_state[e], table.settings[0]
    held = episode.controls_hold
    episode.controls_hold = 1
    if limited.begin[0].controlled == 0:
        return
    # the time of the next submission must not be told
    by_clock = settings.interval == SECONDS_INTERVAL and stop < FOREVER
    end = stop + 1 if by_clock else np.int64(FOREVER)
    machine = machine_of(limited, e, episode.start, episode.start + episode.jobs)
    if held == 1:
        extend_control(machine, end)
    else:
        control(
            machine, batch.sim[e], numbers,
            settings.act_frequency, settings.act_nodes, settings.act_power, end,
        )  # fmt: skip


@jit_inline
def show(e, table, batch, pool, rooms, kept, limited, corun, out):
    """Write what is to be seen of environment ``e``."""
    episode = batch.episode_state[e]
    start, stop = episode.start, episode.start + episode.jobs
    if corun is not None:
        show_pairs(e, table, batch, corun, out)
    if pool is not None:
        show_queue(e, table, batch, None, kept, out)
    if rooms is not None:
        show_queue(e, table, batch, nodes_of(rooms, e, start, stop), kept, out)
    if kept is not None:
        show_quotas(e, table, batch, kept, out)
        mask_barred(e, table, batch, kept, out)
    if limited is not None:
        show_queue(e, table, batch, None, kept, out)
        machine = machine_of(limited, e, start, stop)
        if limited.begin[0].limited == 1:
            observe_power(machine, batch.sim[e], out.observations[e], table.settings[0].seen_power)
        else:
            out.observations[e, ON_AT] = machine.scalars[0].free_on / len(machine.nodes)


@jit_inline
def show_queue(e, table, batch, nodes, kept, out):
    """Write what is to be seen where jobs have their processors alone, and the mask."""
    episode = batch.episode_state[e]
    start, n = episode.start, episode.jobs
    ordered_by = table.ordered_by[start : start + n]
    if table.kinds[FOR_ORDERING] != KNOWN:
        ordered_by = batch.ordered_by[e]
    observe(
        nodes, batch.sim[e], batch.progress[e], batch.blocks[e], batch.entries[e], batch.line[e],
        batch.idle[e], batch.window[e], episode.visible, queued(e, batch, kept), ordered_by,
        jobs_here(e, table, batch, kept), table.columns[start : start + n], table.codes,
        table.settings[0].clock, table.settings[0].processors, out.observations[e],
    )  # fmt: skip
    if table.settings[0].by_action == 1:
        idle = not episode.ended and some_idle(batch.sim[e], batch.idle[e])
        out.masks[e, len(batch.window[e])] = idle
    out.masks[e, : episode.visible] = 1
    out.masks[e, episode.visible : len(batch.window[e])] = 0


@jit_part
def tell(e, batch, out):
    """Note what infos say of environment ``e``."""
    episode, told, window = batch.episode_state[e], out.told[e], batch.window[e]
    told[0] = batch.sim[e].time
    told[1] = episode.visible
    for i in range(episode.visible):
        told[N_TOLD + i] = window[i]
    told[N_TOLD + episode.visible :] = -1
    for term in range(N_TERMS):
        out.terms[e, term] = batch.terms[e, term]


@jit_part
def reward(e, table, batch, out):
    """Note the reward of the last action in environment ``e``."""
    for k in range(len(table.reward_weights)):
        value = 0.0
        for term in range(N_TERMS):
            value += table.reward_weights[k, term] * batch.terms[e, term] * batch.norms[e, term]
        if table.shapes[k] == LOG:
            value = step_of_log(e, table.reward_weights[k], batch, value)
        out.rewards[e, k] = value * batch.scales[e, k]
    for term in range(N_TERMS):
        batch.totals[e, term] += batch.terms[e, term]
    out.truncated[e] = batch.episode_state[e].ended == 1 and batch.episode_state[e].open > 0
    out.ended[e] = batch.episode_state[e].ended == 1 and batch.episode_state[e].open == 0


@jit_part
def step(
    e, task, table, batch, before, alone, pool, rooms, kept, limited, corun, learns, fair, chosen,
    numbers, out,
):  # fmt: skip
    """Do one action in environment ``e``, begin its next episode, or do nothing."""
    if task == SHOW:
        return
    episode = batch.episode_state[e]
    begins = task == BEGIN or (episode.ended == 1 and table.settings[0].autoreset == 1)
    episode.resets = begins
    if begins or episode.controls_hold == 0:  # else the step goes on, once logs are longer
        episode.noted = 0
        for term in range(N_TERMS):
            batch.terms[e, term] = 0.0
    if begins:
        begin(e, table, batch, before, rooms, kept, limited, corun, fair)
    elif before is not None:
        batch.terms[e, ENERGY], batch.begun_j[e] = batch.begun_j[e], 0.0
    waits = begins and table.sim[0].asks == NOBODY  # for the weights and controls of the first step
    if not waits:
        act(
            e, begins, table, batch, alone, pool, rooms, kept, limited, corun, learns, fair, chosen,
            numbers,
        )  # fmt: skip
    if before is not None and begins:
        if waits:  # what runs and waits is seen all the same
            account(e, table, batch, pool, rooms, kept, limited, corun)
        leave_to_first_step(e, batch)
    if is_full(e, kept, limited) and not begins:
        return
    if not begins:
        reward(e, table, batch, out)
    elif task == STEP:  # else the last step has told of the episode before
        out.ended[e] = out.truncated[e] = False
        for k in range(out.rewards.shape[1]):
            out.rewards[e, k] = 0.0


@jit_part
def leave_to_first_step(e, batch):
    """Leave what has happened since an extract began to the first step: a reset has no reward."""
    batch.begun_j[e] = batch.terms[e, ENERGY]
    batch.terms[e, ENERGY] = 0.0
    batch.episode_state[e].new = 0


@jit_entry
def go_on(
    worker, n_workers, first, stop, task, out, table, batch, before, alone, pool, rooms, kept,
    limited, corun, learns, fair, chosen, numbers,
):  # fmt: skip
    """Step some environments, begin their next episodes, or only show where they are.

    All that is told of them is written anew.

    Parameters
    ----------
    worker, n_workers : who does this share of them, and how many share.
    first, stop : the environments.
    task : STEP, BEGIN or SHOW.
    out : hpcgym.envs.core.arrays.Outputs, written.
    table, batch : hpcgym.envs.core.arrays.Table and Batch.
    before : hpcgym.engine.many.beginnings.Before of what episodes begin with, or None.
    alone, pool, rooms, kept, limited, corun : the machine; see this module.
    learns, fair : see this module; ``fair`` is a ShareRows.
    chosen, numbers : (n,) int64 and (n, n_numbers) float64, the actions.
    """
    n = stop - first
    for e in range(first + n * worker // n_workers, first + n * (worker + 1) // n_workers):
        step(
            e, task, table, batch, before, alone, pool, rooms, kept, limited, corun, learns, fair,
            chosen, numbers, out,
        )  # fmt: skip
        show(e, table, batch, pool, rooms, kept, limited, corun, out)
        tell(e, batch, out)
