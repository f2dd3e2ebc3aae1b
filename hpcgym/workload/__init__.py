"""Workloads: logs, cleaning them, slices and extracts, the archive of real traces, generators."""

from hpcgym.naming import SWF_COLUMNS
from hpcgym.workload.cleaning import clean
from hpcgym.workload.codes import (
    Code,
    assign_codes,
    code_names,
    codes_in,
    codes_of,
    generate_code_jobs,
    with_codes,
)
from hpcgym.workload.extracts import (
    extract,
    interesting_extracts,
    months,
    shuffled,
    slices,
    weeks,
)
from hpcgym.workload.io.swf import read_swf, write_swf
from hpcgym.workload.io.tables import from_pandas, read_table, write_table
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Initial, Workload
from hpcgym.workload.needs import check_fits, expected_waits, fitting, needs_of
from hpcgym.workload.partition_limits import with_whole_nodes, within_limits

__all__ = [
    "SWF_COLUMNS",
    "Code",
    "Initial",
    "Workload",
    "assign_codes",
    "check_fits",
    "clean",
    "code_names",
    "codes_in",
    "codes_of",
    "expected_waits",
    "extract",
    "fitting",
    "from_pandas",
    "generate_code_jobs",
    "interesting_extracts",
    "load_workload",
    "months",
    "needs_of",
    "read_swf",
    "read_table",
    "shuffled",
    "slices",
    "weeks",
    "with_codes",
    "with_whole_nodes",
    "within_limits",
    "write_swf",
    "write_table",
]
