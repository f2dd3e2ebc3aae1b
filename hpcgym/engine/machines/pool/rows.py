"""Pools of processors of many simulations, a row of arrays for each."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_inline
from hpcgym.engine.answers.told import BY_CLOCK
from hpcgym.engine.machines.pool import easy, planned
from hpcgym.engine.passes.preempting import PREEMPTING
from hpcgym.engine.passes.preempting_rows import preempting_of
from hpcgym.engine.passes.restricted import RESTRICTED
from hpcgym.engine.passes.restricted_rows import jobs_of, own_keys_of, restricted_of
from hpcgym.engine.rows import keys_of, loop_on_rows
from hpcgym.engine.state import ALL_PASSES

_run = loop_on_rows(easy.run, BY_CLOCK)
_run_restricted = loop_on_rows(planned.run_restricted, RESTRICTED)
_run_preempting = loop_on_rows(planned.run_preempting, PREEMPTING)


@jit_inline
def run_on_pool(table, start, n, rows, e, learns, fair, stop_time, max_passes):
    """Simulate ``n`` jobs of a table on a pool in row ``e`` of the arrays of many simulations.

    To the end, ``stop_time`` [s], a question or so many passes; return the passes done. ``table``
    has the jobs, users and keys of all, ``rows`` the arrays of State and the scores; ``learns`` is
    None where no run times are learned, ``fair`` where no order looks at usage.
    """
    jobs, keys = table.jobs[start : start + n], keys_of(table, start, n)
    return _run(jobs, keys, table, start, rows, e, (), learns, fair, stop_time, max_passes)


@jit_inline
def run_restricted_on_pool(table, start, n, rows, kept, stops, s, e, learns, fair, stop_time):
    """Simulate ``n`` jobs, of slice ``s``, with what restricts them.

    Else as :func:`run_on_pool` does. ``kept`` are RestrictedRows, ``stops`` their PreemptingRows or
    None. Where these are not None it returns, too, when their log is full.
    """
    jobs, keys = jobs_of(kept, e, table, start, n), own_keys_of(kept, e, table, start, n)
    machine, most = restricted_of(kept, (), e, s, start, n), np.int64(ALL_PASSES)
    if stops is None:
        _run_restricted(jobs, keys, table, start, rows, e, machine, learns, fair, stop_time, most)
    if stops is not None:
        _run_preempting(
            jobs, keys, table, start, rows, e, preempting_of(stops, machine, e, start, n), None,
            fair, stop_time, most,
        )  # fmt: skip
