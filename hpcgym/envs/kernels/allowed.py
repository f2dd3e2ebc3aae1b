"""Which jobs may start under quotas: what an agent sees of it, and may select; compiled."""

from __future__ import annotations

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.passes.quotas import exceeds
from hpcgym.engine.passes.restricted_rows import in_log_order, restricted_of
from hpcgym.envs.core.arrays import SELECTION_KIND
from hpcgym.envs.kernels.moving import line_up_arrived
from hpcgym.envs.kernels.observe import JOBS_AT, WITHIN_QUOTA


@jit_part
def quotas_of(e, batch, kept):
    """Return the quotas of environment ``e``."""
    episode = batch.episode_state[e]
    return restricted_of(kept, (), e, 0, episode.start, episode.jobs).quotas


@jit
def nearest_allowed(e, batch, kept, job):
    """Return a waiting job if its quota lets it start, else the first by submission that may.

    That may stand behind the window; if there is none, the job is returned.
    """
    quotas, progress = quotas_of(e, batch, kept), batch.progress[e]
    if not exceeds(quotas, job):
        return job
    if not in_log_order(kept):
        line = batch.line[e]
        for i in range(line_up_arrived(e, batch, kept)):
            if not exceeds(quotas, line[i].job):
                return line[i].job
        return job
    for other in range(batch.window[e, 0], batch.sim[e].next):
        if progress[other].start < 0 and not exceeds(quotas, other):
            return other
    return job


@jit
def count_allowed(e, batch, kept):
    """Return how many of the visible jobs their quotas let start."""
    quotas, found = quotas_of(e, batch, kept), 0
    for i in range(batch.episode_state[e].visible):
        if not exceeds(quotas, batch.window[e, i]):
            found += 1
    return found


@jit
def show_quotas(e, table, batch, kept, out):
    """Write which of the visible jobs their quotas let start, in each column that is of it."""
    quotas, width = quotas_of(e, batch, kept), len(table.codes)
    for k in range(width):
        if table.codes[k] == WITHIN_QUOTA:
            for i in range(batch.episode_state[e].visible):
                allowed = not exceeds(quotas, batch.window[e, i])
                out.observations[e, JOBS_AT + i * width + k] = allowed


@jit
def mask_barred(e, table, batch, kept, out):
    """Mask the visible jobs that cannot be selected, as their quotas do not let them start.

    If that is all of them, the first place stands for the first job behind the window that may.
    """
    if table.settings[0].kind != SELECTION_KIND:
        return
    quotas, visible = quotas_of(e, batch, kept), batch.episode_state[e].visible
    mask_at = JOBS_AT + len(batch.window[e]) * len(table.codes)
    found = 0
    for i in range(visible):
        allowed = not exceeds(quotas, batch.window[e, i])
        found += allowed
        out.masks[e, i] = allowed
        out.observations[e, mask_at + i] = allowed
    if found == 0 and visible > 0:
        out.masks[e, 0] = out.observations[e, mask_at] = 1
