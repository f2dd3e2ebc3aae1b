"""File systems that jobs share of many simulations, a row for each, for environments.

A machine without a bandwidth has no such rows, but None.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcgym.compilation import jit_inline
from hpcgym.engine.machines.corun.files.shared import SharedFiles
from hpcgym.engine.rows import Rows, Shared, empty_rows, names_of


class FileRows(NamedTuple):
    """Rows of ``SharedFiles`` (:mod:`hpcgym.engine.machines.corun.files.shared`), with its names.

    ``usual`` is what all jobs of the table ask for, ``none`` the counts where nobody does.
    """

    bandwidth: Shared
    share: Shared
    usual: Shared  # (n_rows,)
    none: Shared  # (1,)
    demand: Rows
    beside: Rows
    running: Rows
    place: Rows
    counts: Rows


def make_file_rows(files: SharedFiles, number: int, longest: int) -> FileRows:
    """Return those of that many simulations, of up to ``longest`` of the jobs of ``files``."""
    one = files._replace(
        demand=np.zeros(longest, np.int64),
        beside=np.zeros(longest),
        running=np.zeros(longest, np.int64),
        place=np.zeros(longest, np.int64),
    )
    rows = empty_rows(one, number, names_of(Rows, FileRows))
    return FileRows(files.bandwidth, files.share, files.demand, files.counts.copy(), **rows)


@jit_inline
def files_of_row(rows, e, n):
    """Return the file system of simulation ``e``, whose episode has ``n`` jobs."""
    if rows is None:
        return None
    return SharedFiles(
        rows.bandwidth, rows.share, rows.demand[e, :n], rows.beside[e], rows.running[e],
        rows.place[e], rows.counts[e],
    )  # fmt: skip


@jit_inline
def begin_files(rows, e, start, n):
    """Let nobody use it, before ``n`` jobs from this row of the table."""
    if rows is None:
        return
    for job in range(n):
        rows.demand[e, job] = rows.usual[start + job]
    rows.counts[e, 0] = rows.none[0]
