"""Extracts as tables: all jobs that their beginning follows from, and the time of it.

A table with the column ``begin`` [s], the same in all rows, is an extract from that time on, as
:func:`hpcgym.workload.extracts.extract` takes one of a trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcgym.errors import WorkloadError
from hpcgym.workload.extracts import extract
from hpcgym.workload.model import Workload
from hpcgym.workload.warm_start import joined

if TYPE_CHECKING:
    import pandas as pd

BEGIN = "begin"


def begin_of(frame: pd.DataFrame, processors: int | None, name: str) -> Any:
    """Return when the extract begins that a table is, None if it is none.

    Raises
    ------
    WorkloadError : several times, or an extract without the size of its machine, which says how
        many jobs could run.
    """
    if BEGIN not in frame:
        return None
    if processors is None:
        raise WorkloadError(
            f"{name} is an extract, and does not tell the machine's size: give processors"
        )
    begins = frame[BEGIN].unique()
    if len(begins) != 1:
        raise WorkloadError(f"{name}: column {BEGIN!r} must be the same in all rows")
    return begins[0]


def extract_of(trace: Workload, begin: Any) -> Workload:
    """Return the extract from ``begin`` on, called and counted as the trace."""
    return extract(trace, begin).take(slice(None), name=trace.name, cleaning=trace.cleaning)


def trace_of(workload: Workload, where: str) -> tuple[Workload, int | None]:
    """Return all jobs that are to be written of a workload, and when it begins if it is an extract.

    Raises
    ------
    WorkloadError : an extract of a simulation, which knows more of its jobs than a table has.
    """
    initial = workload.initial
    if initial is None:
        return workload, None
    if initial.ongoing is not None:
        raise WorkloadError(
            f"{where}: a table cannot hold the state of a simulation, but pickle can; and a table "
            "can that of a trace, result.as_workload().extract(start, end)"
        )
    return joined(initial.past, workload), initial.begin
