"""Loading of workloads from all sources: files, traces of the archive, generators, tables."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import WorkloadError, check_choice, did_you_mean
from hpcgym.files import head_of, is_there
from hpcgym.machine.files import find_cluster
from hpcgym.workload import archive
from hpcgym.workload.cleaning import clean as clean_workload
from hpcgym.workload.cleaning import fills_times, filter_names, warn_of_ignored
from hpcgym.workload.io.files import Errors, Format, ReadOptions, is_table, names_in
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import with_whole_nodes
from hpcgym.workload.partitions import (
    in_default_partition,
    in_partitions_of_queues,
    with_default_times,
)

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Cluster, Partition


# --- The formats of files of jobs -----------------------------------------------------------------
#
# A file is of the first format that recognises it: by its first bytes, or by the ending of its
# name.


#: Name -> the module that reads it, in the order in which files are compared with formats. Each is
#: imported when it is needed, and has a :data:`hpcgym.workload.io.files.Format`.
FORMATS = {"sacct": "sacct", "pbs": "pbs", "lsf": "lsf", "grid-engine": "grid_engine"}
FORMATS |= {"batsim": "batsim", "table": "tables", "swf": "swf"}


def _format(name: str) -> Format:
    return import_module(f"hpcgym.workload.io.{FORMATS[name]}").FORMAT  # type: ignore[no-any-return]


def format_of(path: Path) -> str:
    """Return the name of a file's format, in ``FORMATS``.

    Raises
    ------
    WorkloadError : the file cannot be read.
    """
    head = head_of(path, WorkloadError) if is_there(path) else b""
    if head[:1] == b";" and not is_table(path):  # a comment of SWF alone
        return "swf"
    return next(name for name in FORMATS if _format(name)[0](path, head))


def read_jobs(path: Path, how: ReadOptions) -> Workload:
    """Read a file of jobs, of the format that is given or that it is of.

    Raises
    ------
    WorkloadError : as the reader of the format; no format of that name.
    """
    if how.format is not None:
        check_choice("format", how.format, FORMATS)
    if how.fields is not None and how.format not in (None, "sacct"):
        raise WorkloadError(f"fields are of a dump of sacct, and the format is {how.format}")
    return _format(how.format or ("sacct" if how.fields else format_of(path)))[1](path, how)


# --- One door to every workload -------------------------------------------------------------------

#: Names of the generators, and their modules, which are imported when they are needed. A
#: generator's arguments follow its name: ``lublin:jobs=1000,seed=3``.
GENERATORS = {
    "lublin": "hpcgym.workload.generators.lublin",
    "eurora": "hpcgym.workload.generators.campaigns",
    "kit": "hpcgym.workload.generators.campaigns",
    "light-esp": "hpcgym.workload.generators.light_esp",
    "codes": "hpcgym.workload.codes",
}

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


def as_workload(
    source: str | os.PathLike[str] | pd.DataFrame | Workload,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    processors: int | None = None,
) -> Workload:
    """Return a workload as it is; read other sources by :func:`load_workload`."""
    if isinstance(source, Workload):
        return source
    return load_workload(source, cluster=cluster, processors=processors)


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
    filter_names(clean)  # a wrong recipe is refused before a large file is read
    machine: Cluster | None = None
    partitions: tuple[Partition, ...] = ()
    if cluster is not None:
        if how.processors is not None:
            raise WorkloadError("give either cluster or processors, not both")
        machine = find_cluster(cluster)
        partitions = machine.partitions
        how = replace(how, processors=machine.processors)
        if machine.groups:
            how = replace(how, cluster=machine.name, resources=machine.node_resources)
    for option, value in (("format", how.format), ("fields", how.fields)):
        if value is not None and not _is_file(source):
            raise WorkloadError(f"{option} is of files, and {source!r} is no file")
    loaded = _load(source, how)
    # the queues of a dump of sacct are QOS
    queued = loaded if _is_dump(source, how) else in_partitions_of_queues(loaded, partitions)
    placed = in_default_partition(queued, partitions)
    timed = with_default_times(placed, partitions) if fills_times(clean) else placed
    workload = clean_workload(timed, clean, how.processors)
    if machine is not None:
        workload = with_whole_nodes(workload, machine)
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
        raise WorkloadError(f"a workload cannot be made of a {type(source).__name__}")
    path = Path(os.path.expanduser(source))
    if is_there(path) or not isinstance(source, str):
        return read_jobs(path, how)
    if source.partition(":")[0] in GENERATORS:
        return _generate(source)
    if archive.is_trace(source):
        return _read_trace(source, how)
    own = archive.find_own(source)
    if own is not None:
        return read_jobs(own, how)
    if os.path.exists(path) or len(path.parts) > 1 or path.name.endswith(_FILE_ENDINGS):
        return read_jobs(path, how)  # which says what is wrong with it
    known = map(str.casefold, (*archive.TRACES, *GENERATORS, *archive.own_traces()))
    raise WorkloadError(f"{source!r} is no file, trace or generator; {did_you_mean(source, known)}")


def _read_trace(name: str, how: ReadOptions) -> Workload:
    """Read a trace of the archive, from this machine or from the archive."""
    trace = archive.find_trace(name)
    path = archive.find(name) or archive.fetch(name)
    workload = read_jobs(path, how)
    return replace(workload, name=trace.name) if trace.is_archive_file(path) else workload


def generator(name: str) -> Callable[..., Workload]:
    """Return the function of one of ``GENERATORS``."""
    module = import_module(GENERATORS[name])
    return vars(module)[name.replace("-", "_")]  # type: ignore[no-any-return]


def _generate(source: str) -> Workload:
    """Run a generator, ``NAME:key=value,key=value``."""
    name, _, given = source.partition(":")
    generate = generator(name)
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
        is_text = allowed[key].annotation == "str"
        arguments[key] = value if is_text else _number(name, key, value)
    return generate(**arguments)  # it checks its own arguments


def _number(name: str, key: str, value: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise WorkloadError(f"generator {name!r}: {key}={value or '(nothing)'} is not a number")
