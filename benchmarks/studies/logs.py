"""The jobs of a study: traces have the machines, and the names, that published values are of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpcgym.workload.archive import find, trace_of
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload


def load_jobs(source: str, clean: str | Sequence[str] = "default") -> Workload:
    """Return what :func:`hpcgym.load_workload` does, a trace of the archive as it was published.

    The machine has the processors of :attr:`hpcgym.workload.archive.Trace.studied_processors`. Jobs
    of the edition that studies have are called by the trace's name, as their published values are.

    Raises
    ------
    WorkloadError : see :func:`hpcgym.load_workload`.
    """
    trace = trace_of(source)
    if trace is None:
        return load_workload(source, clean)
    workload = load_workload(source, clean, processors=trace.studied_processors)
    path = find(source) if source.casefold() == trace.name.casefold() else Path(source)
    if path is not None and trace.is_studied_file(path):
        workload = workload.take(slice(None), name=trace.name)
    return workload
