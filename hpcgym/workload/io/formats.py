"""The formats of files of jobs: one table, by which a file is recognised and read.

A file is of the first format that recognises it: by its first bytes, or by the ending of its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hpcgym.errors import WorkloadError, check_choice
from hpcgym.files import head_of
from hpcgym.workload.io.batsim import is_batsim, read_batsim
from hpcgym.workload.io.files import Reading, is_table
from hpcgym.workload.io.pbs import is_pbs, read_pbs
from hpcgym.workload.io.presets import is_f_data, is_pm100, read_f_data, read_pm100
from hpcgym.workload.io.sacct import is_sacct, read_sacct
from hpcgym.workload.io.swf import read_swf
from hpcgym.workload.io.tables import read_table
from hpcgym.workload.model import Workload


@dataclass(frozen=True)
class Format:
    """A format of files of jobs.

    Attributes
    ----------
    meaning : what it is, in words.
    read : reads a file.
    recognises : whether a file is of it, by its path and its first bytes, unpacked.
    """

    meaning: str
    read: Callable[[Path, Reading], Workload]
    recognises: Callable[[Path, bytes], bool]


def _swf(path: Path, how: Reading) -> Workload:
    return read_swf(path, errors=how.errors, processors=how.processors)


def _table(path: Path, how: Reading) -> Workload:
    return read_table(
        path,
        processors=how.processors,
        errors=how.errors,
        machine_queues=how.queues,
        tz=how.tz,
    )


#: Name -> format, in the order in which files are compared with them.
FORMATS = {
    "sacct": Format(
        "Slurm's accounting, as sacct -P or sacct --parsable prints it",
        read_sacct,
        lambda path, head: is_sacct(head),
    ),
    "pbs": Format(
        "accounting logs of PBS and Torque",
        read_pbs,
        lambda path, head: is_pbs(head),
    ),
    "batsim": Format(
        "workloads of Batsim in JSON, with delays as profiles",
        read_batsim,
        is_batsim,
    ),
    "pm100": Format(
        "the table of jobs of PM100, of Marconi100: Parquet or CSV",
        read_pm100,
        is_pm100,
    ),
    "f-data": Format(
        "a table of jobs of F-DATA, of Fugaku: Parquet or CSV",
        read_f_data,
        is_f_data,
    ),
    "table": Format(
        "a table with the columns of SWF: .csv, .csv.gz, .parquet, .json, .json.gz",
        _table,
        lambda path, head: is_table(path),
    ),
    "swf": Format("the Standard Workload Format", _swf, lambda path, head: True),
}


def format_of(path: Path) -> str:
    """Return the name of the format that a file is of, in ``FORMATS``.

    Raises
    ------
    WorkloadError : it cannot be read.
    """
    head = head_of(path, WorkloadError) if os.path.isfile(path) else b""
    return next(name for name, one in FORMATS.items() if one.recognises(path, head))


def read_jobs(path: Path, how: Reading, format: str | None = None) -> Workload:
    """Read a file of jobs, of the format that is given or that it is of.

    Raises
    ------
    WorkloadError : as the reader of the format; no format of that name.
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    return FORMATS[format or format_of(path)].read(path, how)
