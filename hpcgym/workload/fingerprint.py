"""What tells jobs apart for whoever keeps results: a hash of all that a simulation depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from hpcgym.naming import OWN_COLUMNS, UNITS
from hpcgym.workload.codes import code_names
from hpcgym.workload.model import MISSING, Workload

#: The columns that a simulation depends on.
SIMULATED = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")


def fingerprint(parts: Iterable[Workload]) -> str:
    """Return a hash of the machines and jobs of some workloads, in their order; names make none."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part.processors} ".encode())
        for name in SIMULATED:
            digest.update(np.ascontiguousarray(part.columns[name], np.int64).tobytes())
        for name in OWN_COLUMNS:
            values = part.columns[name]
            if (values != MISSING).any():
                digest.update(f"{name} ".encode() + np.ascontiguousarray(values).tobytes())
        if names := code_names(part):
            digest.update(f"codes {sorted(names.items())} ".encode())
            digest.update(np.ascontiguousarray(part.executable, np.int64).tobytes())
        if part.units is not None:
            for name, amounts in {UNITS: part.units, **part.per_unit}.items():
                digest.update(f"{name} ".encode() + np.ascontiguousarray(amounts).tobytes())
        if part.first_submit_s:  # not told of logs that begin at 0, whose hashes are kept somewhere
            digest.update(f"first {part.first_submit_s} ".encode())
        if part.initial is not None:
            start, past = part.initial.start, part.initial.past
            digest.update(f"begin {part.initial.begin} ".encode() + start.tobytes())
            digest.update((fingerprint([past])).encode() + past.wait_time.tobytes())
    return digest.hexdigest()
