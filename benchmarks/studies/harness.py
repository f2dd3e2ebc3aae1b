"""What every study is run by: a folder, with tasks on any executor, progress, and files of results.

The module of a study has ``reproduce(given, folder, *, quick=False, ...)``. It begins the folder,
has its tasks done there, and publishes tables, pictures and a report; what was done before is kept.

- *given*: sources of workloads, or what else the study is of; *folder*: a :class:`Folder`, with the
  outcomes of tasks in its folder ``tasks``; *quick*: a small cut, which is compared with nothing
  published.
- It returns the file of the report and the tables by name, as in ``TEXTS`` of its module.
- It raises an HpcgymError where an input cannot be read, two have the same name, a file cannot be
  written, a task fails, or there is no matplotlib.

Tables and reports are made by :mod:`hpcgym.benchmarks.studies.tables`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hpcgym import HpcgymError, Workload, load_workload
from hpcgym.benchmarks.studies.store import code
from hpcgym.files import open_file, text_of, toml_file
from hpcgym.files.tables import write_csv_frame
from hpcgym.files.writing import check_writable, whole_text, writing
from hpcgym.report.canvas import require_matplotlib, save_figure
from hpcgym.study import read_results, run_tasks
from hpcgym.study.sweep.tasks import Function
from hpcgym.workload.archive import find, trace_of
from hpcgym.workload.fingerprint import fingerprint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcgym.benchmarks.studies.tables import Texts


# --- Telling whoever waits how far a study is -----------------------------------------------------

#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""


# --- The long part of a study as tasks of a sweep: on any executor --------------------------------


_MOST_LISTED = 1 << 20  # bytes


#: What a study returns: the file of its report, and its tables by name.
Studied = tuple[Path, "dict[str, pd.DataFrame]"]
#: Tasks, or what they return.
Tasks = Sequence[Mapping[str, Any]]
#: Pictures of a study: heading, file in its folder, figure.
Drawn = Iterator[tuple[str, str, "Figure"]]


@dataclass(frozen=True)
class Folder:
    """A folder that a study is run in: its tasks are done there, its tables and report written.

    Attributes
    ----------
    path : of the folder.
    executor, workers : where tasks are done; see :func:`hpcgym.study.run_tasks`.
    progress : told of each step.
    """

    path: Path
    executor: str | Executor = "processes"
    workers: int | None = None
    progress: Progress = no_progress

    def begin(self, head: str) -> None:
        """Say before the work what would keep the study from ending; see :func:`check_report`.

        Raises
        ------
        HpcgymError : no matplotlib, or what :func:`check_report` raises.
        """
        require_matplotlib()
        check_report(self.path / "report.md", head)

    def run(
        self,
        function: Function,
        tasks: Sequence[dict[str, Any]],
        of: str,
        into: str = "tasks",
        *,
        what: str | None = None,
        chunk: int | None = None,
    ) -> list[Any]:
        """Do all tasks whose results are not there yet; return what each has returned, in order.

        Each is told the :func:`hpcgym.benchmarks.studies.store.code` too: it is another task after
        an edit of what may compute it.

        Parameters
        ----------
        function, tasks, chunk : see :func:`hpcgym.study.run_tasks`.
        of : what tasks are called where some have failed.
        into : the folder in this one that has their results.
        what : what progress calls them; None: the same.

        Raises
        ------
        HpcgymError : a task that failed again and again, or what :func:`hpcgym.study.run_tasks`
            raises.
        """
        place, tell = self.path / into, partial(self.progress, what or of)
        tasks = [{**task, "code": code()} for task in tasks]
        how: dict[str, Any] = {"workers": self.workers, "chunk": chunk, "progress": tell}
        summary = run_tasks(function, tasks, place, self.executor, **how)
        if summary.failed:
            raise HpcgymError(f"{summary.failed} of {summary.total} {of} failed; {place} says why")
        return [record["result"] for record in read_results(place, tasks)]

    def write_tables(self, made: Mapping[str, pd.DataFrame], begin: str = "table-") -> None:
        """Write tables as CSV and as LaTeX, each named after its name."""
        from hpcgym.benchmarks.studies.tables import latex_text

        for name, table in made.items():
            path = self.file_of(name, begin)
            write_csv(table, path)
            write_text(latex_text(table), path.with_suffix(".tex"))

    def file_of(self, table: str, begin: str = "table-") -> Path:
        """Return the file of a table, whose name may begin with a folder in this one."""
        return (self.path / table).with_name(f"{begin}{Path(table).name}.csv")

    def picture(self, figure: Figure, file: str | Path) -> Path:
        """Write a figure as PNG and PDF, and its folder if need be; return the PNG's place here.

        Raises
        ------
        HpcgymError : it cannot be written.
        """
        path = self.path / file
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".png", ".pdf"):
            save_figure(figure, path.with_suffix(suffix), suffix)
        return Path(file)

    def pictures(self, drawn: Drawn) -> dict[str, Path]:
        """Write pictures; return heading -> file."""
        return {heading: self.picture(figure, file) for heading, file, figure in drawn}

    def publish(
        self,
        head: str,
        made: Mapping[str, pd.DataFrame],
        texts: Texts,
        pictures: Mapping[str, Path],
        cut: str,
        begin: str = "table-",
    ) -> Studied:
        """Write all tables that have rows, and a report of them; return its file, and the tables.

        What was published here before and is not now, such as tables of other traces, is removed:
        ``files.txt`` lists all that is.

        Parameters
        ----------
        head : what the report begins with.
        made : the tables by name.
        texts : of the tables, see :func:`hpcgym.benchmarks.studies.tables.table_sections`.
        pictures : heading -> file.
        cut : what a quick cut has; "" of a whole study.
        begin : how the names of the tables' files begin.
        """
        from hpcgym.benchmarks.studies.tables import table_sections

        made = {name: table for name, table in made.items() if len(table)}
        self.write_tables(made, begin)
        files = {self.file_of(name, begin) for name in made}
        files |= {self.path / file for file in pictures.values()}
        self._list({self.file_of(name, begin) for name in texts}, files)
        quick = [f"**A quick cut: {cut}. Not to be compared.**\n"] if cut else []
        drawn = [f"## {name}\n\n![{name}]({at.as_posix()})\n" for name, at in pictures.items()]
        text = "\n".join([head, *quick, *table_sections(made, texts), *drawn])
        report = self.path / "report.md"
        write_text(text, report)
        return report, made

    def _list(self, others: set[Path], files: set[Path]) -> None:
        """List tables and pictures; remove others, and those that were listed before."""
        listing = self.path / "files.txt"
        listed = text_of(listing, _MOST_LISTED, "a list").splitlines() if listing.exists() else []
        # whatever the list says, nothing outside of the folder is removed
        others |= {self.path / name for name in listed if ".." not in Path(name).parts}
        for path in others - files:
            for suffix in (".csv", ".tex") if path.suffix == ".csv" else (".png", ".pdf"):
                if path.is_relative_to(self.path):
                    path.with_suffix(suffix).unlink(missing_ok=True)
        names = sorted(path.relative_to(self.path).as_posix() for path in files)
        write_text("".join(f"{name}\n" for name in names), listing)


# --- The jobs of a study --------------------------------------------------------------------------


def load_sources(sources: Iterable[str], load: Callable[[str], Workload]) -> dict[str, Workload]:
    """Return the workload of each source.

    Raises
    ------
    HpcgymError : one that cannot be read, or two of the same name.
    """
    workloads = {source: load(source) for source in sources}
    check_names(workloads.values())
    return workloads


def task_of(source: str, workload: Workload, **given: Any) -> dict[str, Any]:
    """Return a task on a workload, which workers load anew and know by its hash."""
    jobs = fingerprint([workload])
    return {"source": source, "trace": workload.name, "jobs_sha256": jobs, **given}


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


def hash_of(workloads: Iterable[Workload]) -> str:
    """Return a hash of jobs, with what predictors and dispatchers in Python look at beside them."""
    every = list(workloads)
    digest = hashlib.sha256(fingerprint(every).encode())
    for workload, name in product(every, ("group_id", "executable", "queue")):
        digest.update(np.ascontiguousarray(workload.columns[name], np.int64).tobytes())
    return digest.hexdigest()


def check_same_jobs(name: str, here: str, begun: str) -> None:
    """Raise an HpcgymError if a worker has other jobs than the study began with.

    Parameters
    ----------
    name : what the jobs are called.
    here, begun : hashes of them.
    """
    if here != begun:
        raise HpcgymError(f"{name}: it has other jobs here than where the study was begun")


@lru_cache(maxsize=4)
def same_jobs(load: Callable[..., Workload], begun: str, source: str, *rest: Any) -> Workload:
    """Return ``load(source, *rest)``, which each worker does once for many tasks.

    Raises
    ------
    HpcgymError : it cannot be read here, or its hash is not ``begun``.
    """
    workload = load(source, *rest)
    check_same_jobs(source, fingerprint([workload]), begun)
    return workload


def check_names(workloads: Iterable[Workload]) -> None:
    """Raise an HpcgymError if two workloads of a study have the same name."""
    names = sorted(workload.name for workload in workloads)
    for name in [name for name, other in pairwise(names) if name == other]:
        raise HpcgymError(f"two workloads are called {name}")


# --- Files of a study -----------------------------------------------------------------------------


T = TypeVar("T")


def readings(kind: Callable[..., T], module: str, file: str = "readings.toml") -> dict[str, T]:
    """Return the ways in which a document may be read, by name, from a file beside a module.

    Parameters
    ----------
    kind : makes one of the fields that the file names.
    module : its file.
    """
    return {name: kind(**of) for name, of in toml_file(Path(module).with_name(file)).items()}


def folder_name(trace: str) -> str:
    """Return the name of a folder for what is about a trace."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in trace)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table with all digits.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    with whole_text(path, folders=True) as file:
        write_csv_frame(table, file)


def write_text(text: str, path: Path) -> None:
    """Write a text, and the folder if need be; whoever interrupts that leaves no half of it.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    with whole_text(path, folders=True) as file:
        file.write(text)


def check_report(path: Path, head: str) -> None:
    """Say before the work that a report cannot be written, and make its folder.

    An older report of the study stays as it is until the new one is whole. Any other file of that
    name is the user's, and so is all in a folder without a report: a study replaces and removes
    files of its own. Without a report its first line is written at once: it marks the folder,
    even if the study is interrupted.

    Parameters
    ----------
    path : of the report.
    head : its beginning; the first line says which study it is of.

    Raises
    ------
    HpcgymError : the file cannot be written, or is no report of this study; the folder has other
        files and no report.
    """
    title, problem = head.splitlines()[0], ""
    check_writable(path, folders=True)
    if path.exists():
        with open_file(path) as file:
            first = file.readline(1000).decode(errors="replace")
        problem = f"{path} is there already, and is" if first.strip() != title else ""
    elif any(path.parent.iterdir()):
        problem = f"{path.parent} has files already, and"
    else:
        write_text(f"{title}\n\nNot finished yet.\n", path)
    if problem:
        name = title.lstrip("# ")
        raise HpcgymError(
            f"{problem} no report of this study ({name}): choose another folder (--output)"
        )
