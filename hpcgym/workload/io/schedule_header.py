"""The SWF header of a schedule: what was simulated, and what the log said, called so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpcgym.workload.io.swf_header import FREE_TEXT
from hpcgym.workload.names import HEADER_KEYS

#: What a log's header says of its clock, and of numbers that jobs have: true of any schedule.
_OF_THE_JOBS = (
    *("UnixStartTime", "TimeZone", "TimeZoneString", "StartTime"),
    *("MaxQueues", "MaxPartitions", *HEADER_KEYS.values()),
)
#: Said anew, so that the log's need not be told.
_RENEWED = ("Version", "MaxJobs", "MaxRecords", "MaxNodes", "MaxProcs", "Preemption")


def schedule_header(
    header: Mapping[str, list[str]],
    made: Iterable[str],
    jobs: int,
    processors: int,
    nodes: int | None = None,
) -> dict[str, list[str]]:
    """Return the header of a schedule of the jobs of a log.

    What the log's header says of another scheduler and another machine does not hold for the
    schedule. So only its clock and the names of numbers stay as they are. The rest becomes notes
    which say that they are of the original log, a line each.

    Parameters
    ----------
    header : of the workload that was simulated.
    made : notes of what made the schedule, a line each.
    jobs : their number.
    processors, nodes : of the machine; nodes None: a pool.
    """
    kept = {key: list(values) for key, values in header.items() if key in _OF_THE_JOBS}
    original = [
        f"original log: {key}: {line.strip()}" if key != FREE_TEXT else f"original log: {line}"
        for key, values in header.items()
        if key not in _OF_THE_JOBS and key not in _RENEWED
        for value in values
        for line in value.splitlines()
        if line.strip()
    ]
    return {
        "Version": ["2.2"],
        "MaxJobs": [str(jobs)],
        "MaxRecords": [str(jobs)],
        "Preemption": ["No"],
        **({} if nodes is None else {"MaxNodes": [str(nodes)]}),
        "MaxProcs": [str(processors)],
        **kept,
        "Note": [*made, *original],
    }
