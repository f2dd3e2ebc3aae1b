"""The jobs of a schedule as a table, with the numbers and the names that they are told apart by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.naming import NAMED
from hpcgym.workload.names import name_all

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.schedule.result import Result


def jobs_table(result: Result) -> pd.DataFrame:
    """Return one row a job: the schedule beside the workload's columns that shaped it.

    Columns: job_number, user_id; those of group_id, executable, queue and partition that the
    workload has of any job, -1 where it has none; behind each of these the names, if the log tells
    any: user, group, code, queue_name, partition_name; requested_processors, units if jobs have
    any, submit_time, start_time, end_time, wait_time, run_time, requested_time, predicted_run_time,
    reserved_start (all int64, times in seconds), bsld, backfilled, killed; where nodes fail, or
    jobs stop others, restarts and lost_core_seconds, and cancelled, bool, where stopped jobs do not
    run again, or suspended [s], where they go on later; their wait has that time in it. What a
    workload has, too, is called as there. Where jobs share nodes times are float64, and there are
    more columns: shape, a name of :data:`hpcgym.schedule.places.SHAPES`, code, its name, and
    job_speedup. In logs of Slurm groups are accounts, and queues QOS.
    """
    import pandas as pd

    columns = result.workload.columns
    apart = [column for word, column in NAMED.items() if word != "user"]
    units = {} if result.workload.units is None else {"units": result.workload.units}
    more = {}
    if result.coschedule is not None:
        shape, code = result.coschedule.names
        more = {"shape": shape, "code": code, "job_speedup": result.job_speedup}
    if result.lost is not None:
        more = {"restarts": result.restarts, "lost_core_seconds": result.lost_core_seconds}
    if result.suspended is not None:
        more = {"suspended": result.suspended}
    if result.cancels:
        more["cancelled"] = result.cancelled
    table = pd.DataFrame(
        {
            "job_number": columns["job_number"],
            "user_id": columns["user_id"],
            **{name: columns[name] for name in apart if (columns[name] >= 0).any()},
            "requested_processors": columns["requested_processors"],
            **units,
            "submit_time": columns["submit_time"],
            "start_time": result.start,
            "end_time": result.end,
            "wait_time": result.wait,
            "run_time": result.run_time,
            "requested_time": columns["requested_time"],
            "predicted_run_time": result.predicted_run_time,
            "reserved_start": result.reserved_start,
            "bsld": result.bsld,
            "backfilled": result.backfilled,
            "killed": result.killed,
            **more,
        }
    )
    return name_all(table, result.workload)
