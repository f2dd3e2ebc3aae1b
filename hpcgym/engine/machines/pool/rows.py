"""Pools of processors of many simulations, a row of arrays for each."""

from __future__ import annotations

from hpcgym.compilation import jit_inline
from hpcgym.engine.answers.shares import usage_by_clock
from hpcgym.engine.machines.pool import easy
from hpcgym.engine.rows import loop_on_rows

_run = loop_on_rows(easy.run, usage_by_clock)


@jit_inline
def run_on_pool(table, start, n, rows, e, learns, fair, stop_time, max_passes):
    """Simulate ``n`` jobs of a table on a pool in row ``e`` of the arrays of many simulations.

    To the end, ``stop_time`` [s], a question or so many passes; return the passes done. ``table``
    has the jobs, users and keys of all, ``rows`` the arrays of State and the scores; ``learns`` is
    None where no run times are learned, ``fair`` where no order looks at usage.
    """
    jobs = table.jobs[start : start + n]
    return _run(jobs, table, start, rows, e, (), learns, fair, stop_time, max_passes)
