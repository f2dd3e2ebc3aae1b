"""Loading of workloads from all sources: files, traces of the archive, generators, tables."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import (
    HpcgymError,
    WorkloadError,
    WorkloadWarning,
    did_you_mean,
    unknown,
    warn_caller,
)
from hpcgym.files import head_of, is_there
from hpcgym.machine.files import find_cluster
from hpcgym.machine.pool import Cluster
from hpcgym.machine.slurm import conf_in
from hpcgym.names import CONSTRAINT
from hpcgym.own_code import Extension, find, has_name, others, sources
from hpcgym.workload import archive
from hpcgym.workload.cleaning import clean as clean_workload
from hpcgym.workload.cleaning import (
    fills_times,
    keeps_unfinished,
    warn_of_ignored,
)
from hpcgym.workload.columns import MISSING
from hpcgym.workload.constraints import machine_for, with_constraints_counted
from hpcgym.workload.generators import GENERATORS
from hpcgym.workload.io.files import Errors, FileFormat, ReadOptions, is_table, names_in
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import with_whole_nodes
from hpcgym.workload.partitions import (
    in_default_partition,
    in_partitions_of_queues,
    with_billing,
    with_default_memory,
    with_default_times,
)

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Partition


# --- The formats of files of jobs -----------------------------------------------------------------
#
# A file is of the first format that recognises it: by its first bytes, or by the ending of its
# name.

_IO = "hpcgym.workload.io"
#: Name -> its :class:`hpcgym.workload.io.files.FileFormat`, which is imported when it is needed, in
#: the order in which files are compared with them. Formats of other packages are known, too: their
#: entry points ``hpcgym.readers`` name a class with these methods.
FORMATS = {
    "sacct": f"{_IO}.sacct:FORMAT",
    "pbs": f"{_IO}.pbs:FORMAT",
    "lsf": f"{_IO}.lsf:FORMAT",
    "grid-engine": f"{_IO}.grid_engine:FORMAT",
    "batsim": f"{_IO}.batsim:FORMAT",
    "table": f"{_IO}.tables:FORMAT",
    "swf": f"{_IO}.swf:FORMAT",
}

#: Formats that look at the name alone, or take what is left: those of other packages are asked
#: before a file is of these.
_OF_ANY_CONTENT = ("table", "swf")
_SWF = re.compile(rb";|\s*(-?\d[\d.]*[ \t]+){17}-?\d")  # a comment, or the 18 fields of a job


def _reader(name: str) -> FileFormat:
    """Return a format by its name."""
    return _object_of(find("readers", name, FORMATS))


def _object_of(reader: Any) -> FileFormat:
    """Return a reader of another package, which may be a class."""
    return reader() if isinstance(reader, type) else reader  # type: ignore[no-any-return]


def format_of(path: Path) -> str:
    """Return the name of a file's format: of ``FORMATS``, or of another package.

    Raises
    ------
    WorkloadError : the file cannot be read.
    """
    head = head_of(path, WorkloadError) if is_there(path) else b""
    if _SWF.match(head) and not is_table(path):
        return "swf"
    ours = next(name for name in FORMATS if _reader(name).recognizes(path, head))
    if ours not in _OF_ANY_CONTENT:
        return ours
    theirs = (other for name, other in others("readers").items() if name not in FORMATS)
    return next((other.name for other in theirs if _claims(other, path, head)), ours)


def _claims(other: Extension, path: Path, head: bytes) -> bool:
    """Tell whether a file is of a format of another package; a reader that fails is passed over.

    Warns
    -----
    WorkloadWarning : it failed, and how: files of all other formats are read without it.
    """
    try:
        reader = _object_of(other.load())
        with other.blamed(reader, path):
            return bool(reader.recognizes(path, head))
    except HpcgymError as error:
        warn_caller(f"passed over: {error}", WorkloadWarning)
        return False


def read_jobs(path: Path, how: ReadOptions) -> Workload:
    """Read a file of jobs, of the format that is given or that it is of.

    Raises
    ------
    WorkloadError : as the reader of the format; no format of that name.
    """
    if not (how.format is None or has_name("readers", how.format, FORMATS)):
        more = sources("readers", FORMATS)
        raise WorkloadError(unknown("format", how.format, FORMATS, others=more))
    if how.fields is not None and how.format not in (None, "sacct"):
        raise WorkloadError(f"fields are of a dump of sacct, and the format is {how.format}")
    name = how.format or ("sacct" if how.fields else format_of(path))
    reader = _reader(name)
    if name in FORMATS:
        return reader.read(path, how)
    with others("readers")[name].blamed(reader, path):
        return _workload(reader.read(path, how))


def _workload(made: Any) -> Workload:
    """Return what a reader or a generator of another package has made, checked.

    Jobs without numbers are numbered from 1 on, as in tables.
    """
    if not isinstance(made, Workload):
        raise TypeError(f"it returned no Workload, but {made!r}")
    workload: Workload = made
    if (workload.job_number < 0).all():
        workload = workload.with_columns(job_number=np.arange(1, len(workload) + 1))
    return workload


# --- One door to every workload -------------------------------------------------------------------
_NOT_BOTH = "give either cluster or processors, not both"
_FILE_ENDINGS = (".swf", ".gz", ".csv", ".parquet", ".json", ".txt")


def load_workload(
    source: str | os.PathLike[str] | pd.DataFrame | Workload,
    clean: str | Sequence[str] = "default",
    *,
    processors: int | None = None,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    errors: Errors = "raise",
    format: str | None = None,
    tz: str | None = None,
    fields: str | Sequence[str] | None = None,
) -> Workload:
    """Return the workload that ``source`` names, cleaned and ready to be simulated.

    Parameters
    ----------
    source : a file, plain or gzip: SWF, a table (``.csv``, ``.parquet``, ``.json``) or a site's own
        log, a format of :data:`hpcgym.workload.load.FORMATS`; the name of a trace of the
        Parallel Workloads Archive in any case (``KTH-SP2``; downloaded if it is not on this
        machine) or of an SWF file in a folder of ``HPCGYM_DATA`` (``lublin_256`` for
        ``lublin_256.swf.gz``), a generator of ``GENERATORS``
        (``lublin:jobs=10000,processors=256,seed=0``), a DataFrame with SWF's column names, or a
        workload.
    clean : cleaning recipe, several joined by ``+``, or a sequence of names;
        see :mod:`hpcgym.workload.cleaning`.
    processors : size of the machine, instead of what the source tells; larger jobs are dropped.
    cluster : the machine on which the jobs are to be simulated, as :func:`hpcgym.simulate` takes
        it, instead of ``processors``: its size; the DefaultTime of its partitions, which stands for
        unknown requested times before ``clean`` takes the run time for them; and which of them are
        exclusive, see :func:`hpcgym.workload.with_whole_nodes`. What does not fit on its nodes is
        left in; see :func:`hpcgym.workload.fitting`.
    errors : "raise" stops at a line of a file that is no job; "skip" drops and counts such lines.
    format : of a file, a name of :data:`hpcgym.workload.load.FORMATS`; None: as it looks.
    tz : the time zone of dates that tell no offset, such as ``Europe/Berlin``; None: UTC.
    fields : of a dump of ``sacct -n``, which has no line with their names: as ``-o`` was given
        them, ``"JobID,User,Submit"``, or a sequence of names.

    Raises
    ------
    WorkloadError : an unknown name, a file that cannot be read, a trace that cannot be downloaded,
        a wrong argument of a generator, no job is left after cleaning, or both cluster and
        processors.
    HpcgymError : no machine of that name, or a file that describes none.

    Warns
    -----
    WorkloadWarning : the source does not tell the machine's size; it tells of partial executions,
        jobs that follow others or partitions, which are not simulated.
    """
    how = ReadOptions(processors, errors, format, tz, names_in(fields))
    return load_with_raw(source, clean, how, cluster)[0]


def jobs_and_machine(
    source: str | os.PathLike[str] | pd.DataFrame | Workload,
    cluster: Any,
    processors: int | None,
    scheduler: Any = None,
    clean: str = "default",
) -> tuple[Workload, Cluster]:
    """Return jobs and the machine that they are for, each read once.

    Parameters
    ----------
    source : a workload stays as it is; others are read by :func:`load_workload`.
    cluster, processors : the machine, as a cluster or by its size; without both it is a pool of the
        workload's processors.
    scheduler : what is said of it: a slurm.conf that is both is told of once.
    clean : cleaning recipe of jobs that are read.

    Raises
    ------
    HpcgymError : no machine of that name, or a file that describes none.
    WorkloadError : both are given, an invalid size, or as :func:`load_workload`.
    """
    if cluster is not None:
        if processors is not None:
            raise WorkloadError(_NOT_BOTH)
        is_both = isinstance(scheduler, str) and bool(conf_in(scheduler))
        cluster = find_cluster(cluster, rules_too=is_both)
    workload = source
    if not isinstance(workload, Workload):
        workload = load_workload(workload, clean, cluster=cluster, processors=processors)
    if cluster is None:
        cluster = _pool(workload.processors) if processors is None else Cluster(processors)
    return workload, machine_for(workload, cluster) if cluster.groups else cluster


def machine_of(
    workload: Workload, cluster: Any, processors: int | None, scheduler: Any = None
) -> Cluster:
    """Return the machine of :func:`jobs_and_machine` alone."""
    return jobs_and_machine(workload, cluster, processors, scheduler)[1]


@lru_cache(maxsize=64)
def _pool(processors: int) -> Cluster:
    """Return a pool of processors: nothing changes a cluster, so one is made for each size."""
    return Cluster(processors)


def load_with_raw(
    source: str | os.PathLike[str] | pd.DataFrame | Workload,
    clean: str | Sequence[str],
    how: ReadOptions,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    follows: bool = False,
) -> tuple[Workload, Workload]:
    """Return the jobs of :func:`load_workload`, and all jobs of the source, before cleaning.

    ``follows`` : schedules follow dependencies of jobs, and there is no warning about them.
    """
    # a wrong recipe is refused before a large file is read
    how = replace(how, unfinished=keeps_unfinished(clean))
    machine: Cluster | None = None
    partitions: tuple[Partition, ...] = ()
    if cluster is not None:
        if how.processors is not None:
            raise WorkloadError(_NOT_BOTH)
        machine = find_cluster(cluster)
        partitions = machine.partitions
        how = replace(how, processors=machine.processors)
        if machine.groups:
            how = replace(how, cluster=machine.name, resources=machine.node_resources)
    for option, value in (("format", how.format), ("fields", how.fields)):
        if value is not None and not _is_file(source):
            raise WorkloadError(f"{option} is of files, and {source!r} is no file")
    loaded = _load(source, how)
    workload = loaded
    if partitions:
        if not _is_dump(source, how):  # whose queues are QOS
            workload = in_partitions_of_queues(workload, partitions)
        workload = in_default_partition(workload, partitions)
        if machine is not None:
            workload = with_default_memory(workload, machine)
        workload = with_billing(workload, partitions)
        if fills_times(clean):
            workload = with_default_times(workload, partitions)
    workload = clean_workload(workload, clean, how.processors)
    if loaded is not source and (workload.columns[CONSTRAINT] != MISSING).any():
        workload = with_constraints_counted(workload, machine)
    if machine is not None:
        workload = with_whole_nodes(workload, machine_for(workload, machine))
    if loaded is not source:  # a workload has been warned of when it was loaded
        warn_of_ignored(workload, bool(partitions), follows)
    return workload, loaded


def _is_file(source: Any) -> bool:
    """Tell whether a source names a file that is there."""
    return isinstance(source, str | os.PathLike) and is_there(os.path.expanduser(source))


def _is_dump(source: Any, how: ReadOptions) -> bool:
    """Tell whether a source is a dump of sacct."""
    if how.format is not None or how.fields is not None:
        return how.format in (None, "sacct")
    return _is_file(source) and format_of(Path(os.path.expanduser(source))) == "sacct"


def _load(source: Any, how: ReadOptions) -> Workload:
    """Return the workload before cleaning."""
    if isinstance(source, Workload):
        return source
    if not isinstance(source, str | os.PathLike):
        if type(source).__name__ == "DataFrame":
            from hpcgym.workload.io.tables import from_pandas

            return from_pandas(source, processors=how.processors, errors=how.errors, tz=how.tz)
        kind = type(source).__name__
        hint = (
            "; hpcgym.Workload.from_columns takes columns by their names" if kind == "dict" else ""
        )
        raise WorkloadError(f"a workload cannot be made of a {kind}{hint}")
    path = Path(os.path.expanduser(source))
    if is_there(path) or not isinstance(source, str):
        return read_jobs(path, how)
    if is_generator(source):
        return _generate(source)
    if archive.is_trace(source):
        return _read_trace(source, how)
    own = archive.find_own(source)
    if own is not None:
        return read_jobs(own, how)
    if os.path.exists(path) or len(path.parts) > 1 or path.name.endswith(_FILE_ENDINGS):
        return read_jobs(path, how)  # which says what is wrong with it
    known = map(str.casefold, (*archive.TRACES, *GENERATORS, *archive.own_traces()))
    hint = did_you_mean(source, known, sources("generators", GENERATORS))
    raise WorkloadError(f"{source!r} is no file, trace or generator; {hint}")


def _read_trace(name: str, how: ReadOptions) -> Workload:
    """Read a trace of the archive, from this machine or from the archive."""
    trace = archive.find_trace(name)
    path = archive.find(name) or archive.fetch(name)
    workload = read_jobs(path, how)
    return replace(workload, name=trace.name) if trace.is_archive_file(path) else workload


def is_generator(source: str) -> bool:
    """Tell whether a text is a generator, maybe with arguments, and no file or trace."""
    name = source.partition(":")[0]
    if name in GENERATORS:
        return True
    path = os.path.expanduser(source)
    is_file = os.path.exists(path) or len(Path(path).parts) > 1
    if is_file or archive.is_trace(source) or archive.find_own(source) is not None:
        return False
    return has_name("generators", name, GENERATORS)


def _generate(source: str) -> Workload:
    """Run a generator, ``NAME:key=value,key=value``."""
    name, _, given = source.partition(":")
    generate: Callable[..., Workload] = find("generators", name, GENERATORS)
    allowed = inspect.signature(generate).parameters
    arguments: dict[str, int | float | str] = {}
    for pair in filter(None, given.split(",")):
        key, _, value = (part.strip() for part in pair.partition("="))
        if key not in allowed:
            raise WorkloadError(
                f"generator {name!r} has no argument {key!r}, only {', '.join(allowed)}"
            )
        if key in arguments:
            raise WorkloadError(f"generator {name!r} is given {key!r} twice")
        is_text = allowed[key].annotation in ("str", str)
        arguments[key] = value if is_text else _number(name, key, value)
    if name in GENERATORS:
        return generate(**arguments)  # it checks its own arguments
    with others("generators")[name].blamed(generate):
        return _workload(generate(**arguments))


def _number(name: str, key: str, value: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise WorkloadError(f"generator {name!r}: {key}={value or '(nothing)'} is not a number")
