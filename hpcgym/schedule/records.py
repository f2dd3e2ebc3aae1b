"""Tables of whole numbers with named columns, and that of jobs as a simulation takes them."""

from __future__ import annotations

import numpy as np


def records(*fields: tuple[str, type[np.generic]]) -> np.dtype[np.void]:
    """Return the dtype of records with these fields, which are attributes in plain Python too."""
    return np.dtype((np.record, list(fields)))


def whole_numbers(*names: str) -> np.dtype[np.void]:
    """Return the dtype of records whose fields are all int64."""
    return records(*((name, np.int64) for name in names))


# Read-only, but for `run` of jobs that are killed or cancelled or run at another level, and for
# `submit` where the schedule says when jobs come.
JOBS = records(
    ("submit", np.int64),  # [s]
    ("run", np.int64),  # [s] actual run time, at most the requested time, or that predicted
    ("requested", np.int64),  # [s]
    ("processors", np.int64),
    ("since_first", np.int64),  # [s] submit, counted from the first submission of the whole log
)
