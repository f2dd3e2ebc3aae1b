"""The table of jobs as a simulation takes them."""

from __future__ import annotations

import numpy as np

from hpcgym._engine import fields_of

# Read-only, but for `run` of jobs that are killed or cancelled or run at another level, and for
# `submit` where the schedule says when jobs come.
JOBS = np.dtype((np.record, fields_of("Job")))
