"""Pools of processors of many simulations, a row of arrays for each."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_inline
from hpcgym.engine.answers.shares import usage_by_clock
from hpcgym.engine.machines.pool import easy, planned
from hpcgym.engine.passes.restricted_rows import restricted_of
from hpcgym.engine.rows import loop_on_rows
from hpcgym.engine.state import FOREVER

_run = loop_on_rows(easy.run, usage_by_clock)
_run_restricted = loop_on_rows(planned.run_restricted, usage_by_clock)


@jit_inline
def run_on_pool(table, start, n, rows, e, learns, fair, stop_time, max_passes):
    """Simulate ``n`` jobs of a table on a pool in row ``e`` of the arrays of many simulations.

    To the end, ``stop_time`` [s], a question or so many passes; return the passes done. ``table``
    has the jobs, users and keys of all, ``rows`` the arrays of State and the scores; ``learns`` is
    None where no run times are learned, ``fair`` where no order looks at usage.
    """
    jobs = table.jobs[start : start + n]
    return _run(jobs, table, start, rows, e, (), learns, fair, stop_time, max_passes)


@jit_inline
def run_restricted_on_pool(table, start, n, rows, kept, s, e, learns, fair, stop_time):
    """Simulate ``n`` jobs, of slice ``s``, under quotas and around windows, to their end.

    Else as :func:`run_on_pool` does. ``kept`` are RestrictedRows.
    """
    jobs, most = table.jobs[start : start + n], np.int64(FOREVER)
    machine = restricted_of(kept, (), e, s, start, start + n)
    return _run_restricted(jobs, table, start, rows, e, machine, learns, fair, stop_time, most)
