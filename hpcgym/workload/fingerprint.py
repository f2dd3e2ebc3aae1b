"""Hashes of workloads, by which kept results are found: of all that a simulation depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.names import CONSTRAINT, SWF_COLUMNS, UNITS
from hpcgym.workload.codes import code_names
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.model import Workload
from hpcgym.workload.ongoing import Ongoing

#: The columns that every simulation depends on.
SIMULATED = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")

#: The columns that some simulations depend on, through policies, predictors, fair share or memory.
READ_BY_SOME = ("job_number", "group_id", "executable", "queue", "partition", "requested_memory")


def workload_digest(workload: Workload) -> str:
    """Return the SHA-256, in hexadecimal digits, of all that simulations read of a workload.

    These are the processors of the machine; each job's number, times, processors, user, group,
    code, queue, partition, array, nice, requested memory, units, nodes, constraint, reservation,
    billing, licences, power and slowdown, and whether cleaning cut it; when the log begins; and the
    state that an extract begins with. Recorded waits, status and used resources make no difference,
    nor do names of files and the machine on which it is computed: numbers are hashed as 64 bits,
    the lowest byte first.

    Names of users, groups, queues, partitions and reservations, which only rules that name them
    look at, and the date of the log's second 0, are no part of it.
    """
    digest = hashlib.sha256(f"hpcgym workload 1 {fingerprint([workload])} ".encode())
    _add_read_by_some(digest, workload)
    initial = workload.initial
    if initial is not None:
        _add_read_by_some(digest, initial.past)
        if initial.ongoing is not None:
            _add_ongoing(digest, initial.ongoing)
    return digest.hexdigest()


def given_digest(workload: Workload) -> str:
    """Return the SHA-256 of all that simulations read in which jobs follow others.

    Beside what :func:`workload_digest` covers, that is whom each job follows, its think time, and
    how long it waited in the log.
    """
    digest = hashlib.sha256(f"hpcgym given {workload_digest(workload)} ".encode())
    for name in ("preceding_job", "think_time", "wait_time"):
        digest.update(f"{name} ".encode() + bytes_of_numbers(workload.columns[name]))
    if workload.more_preceding is not None:
        digest.update(b"more_preceding " + bytes_of_numbers(workload.more_preceding))
    return digest.hexdigest()


def _add_read_by_some(digest: Any, workload: Workload) -> None:
    for name in READ_BY_SOME:
        values = workload.columns[name]
        if (values != MISSING).any():
            digest.update(f"{name} ".encode() + bytes_of_numbers(values))
    if workload.killed.any():
        digest.update(b"killed " + np.packbits(workload.killed, bitorder="little").tobytes())


def _add_ongoing(digest: Any, ongoing: Ongoing) -> None:
    rules = sorted((rule, str(value)) for rule, value in ongoing.rules.items())
    digest.update(f"ongoing {rules} {ongoing.looks} ".encode())
    for name in ("order", "predicted", "promised", "reserved"):
        values = getattr(ongoing, name)
        if values is not None:
            digest.update(f"{name} ".encode() + bytes_of_numbers(values))
    for values in ongoing.cells or ():
        digest.update(b"cells " + bytes_of_numbers(values))


def bytes_of_numbers(values: NDArray[Any]) -> bytes:
    """Return numbers as bytes, the same on every machine: 64 bits each, the lowest byte first."""
    kind = "<f8" if values.dtype.kind == "f" else "<i8"
    return np.ascontiguousarray(values, kind).tobytes()


def fingerprint(parts: Iterable[Workload]) -> str:
    """Return a hash of the machines and jobs of some workloads, in their order; names make none."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part.processors} ".encode())
        for name in SIMULATED:
            digest.update(bytes_of_numbers(part.columns[name]))
        for name, values in part.columns.items():
            if name in SWF_COLUMNS:
                continue
            if (values != MISSING).any():
                digest.update(f"{name} ".encode() + bytes_of_numbers(values))
        if constraints := names_of(part, CONSTRAINT):
            digest.update(f"constraints {sorted(constraints.items())} ".encode())
        if names := code_names(part):
            digest.update(f"codes {sorted(names.items())} ".encode())
            digest.update(bytes_of_numbers(part.executable))
        if part.units is not None:
            for name, amounts in {UNITS: part.units, **part.per_unit}.items():
                digest.update(f"{name} ".encode() + bytes_of_numbers(amounts))
        if part.first_submit_s:  # not told of logs that begin at 0, whose hashes are kept somewhere
            digest.update(f"first {part.first_submit_s} ".encode())
        if part.initial is not None:
            start, past = part.initial.start, part.initial.past
            digest.update(f"begin {part.initial.begin} ".encode() + bytes_of_numbers(start))
            digest.update((fingerprint([past])).encode() + bytes_of_numbers(past.wait_time))
    return digest.hexdigest()
