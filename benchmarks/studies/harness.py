"""What every study is run by: tasks on any executor, progress, tables, pictures and the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError
from hpcgym.files.writing import check_writable, whole_text, writing
from hpcgym.report.canvas import save_figure
from hpcgym.sweep import Summary, read_results, run_tasks
from hpcgym.sweep.tasks import Function

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


# --- Telling whoever waits how far a study is -----------------------------------------------------

#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""


# --- The long part of a study as tasks of a sweep: on any executor --------------------------------


def run_all(
    function: Function,
    tasks: Iterable[dict[str, Any]],
    folder: Path,
    executor: str | Executor,
    workers: int | None,
    *,
    of: str,
    what: str,
    progress: Progress,
    chunk: int | None = None,
) -> Summary:
    """Do all tasks whose results are not in the folder yet, each of them.

    Parameters
    ----------
    function, tasks, folder, executor, workers, chunk : see :func:`hpcgym.sweep.run_tasks`.
    of : what tasks are called where some have failed.
    what : what progress calls them.
    progress : told of each step.

    Raises
    ------
    HpcgymError : a task that failed again and again, or what :func:`hpcgym.sweep.run_tasks` raises.
    """
    summary = run_tasks(
        function,
        tasks,
        folder,
        executor,
        workers=workers,
        chunk=chunk,
        progress=lambda done, total: progress(what, done, total),
    )
    if summary.failed:
        raise HpcgymError(f"{summary.failed} of {summary.total} {of} failed; {folder} says why")
    return summary


def outcomes_of(
    function: Function,
    tasks: Sequence[dict[str, Any]],
    folder: Path,
    executor: str | Executor,
    workers: int | None,
    **said: Any,
) -> list[Any]:
    """Do all tasks as :func:`run_all` does; return what each has returned, in their order."""
    run_all(function, tasks, folder, executor, workers, **said)
    return [record["result"] for record in read_results(folder, tasks)]


def check_same_jobs(name: str, here: str, begun: str) -> None:
    """Raise an HpcgymError if a worker has other jobs than the study began with.

    Parameters
    ----------
    name : what the jobs are called.
    here, begun : hashes of them.
    """
    if here != begun:
        raise HpcgymError(f"{name}: it has other jobs here than where the study was begun")


def note_name(names: dict[str, str], name: str, source: str) -> None:
    """Note where the workload of a name comes from.

    Raises
    ------
    HpcgymError : another one of that name has been noted.
    """
    if names.setdefault(name, source) != source:
        raise HpcgymError(f"two workloads are called {name}: {source} is one")


# --- Tables as Markdown and CSV -------------------------------------------------------------------

#: What is in the heads of columns of numbers about 1 or below.
_PARTS = re.compile(r"\bratio\b| / |\bshare\b|Spearman|Kendall")


def table_text(table: pd.DataFrame) -> str:
    """Return a table as Markdown: numbers to the right, ratios and gains with few digits."""
    heads = [str(column) for column in table.columns]
    numeric = [table[column].dtype.kind in "if" for column in table.columns]
    lines = [f"| {' | '.join(heads)} |"]
    lines.append("|" + "|".join("---:" if number else "---" for number in numeric) + "|")
    for row in table.itertuples(index=False):
        cells = (_cell(head, value) for head, value in zip(heads, row, strict=True))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(head: str, value: Any) -> str:
    """Return a value for people."""
    if isinstance(value, str):
        return value.replace("|", "\\|")
    if value is None or value != value:  # NaN
        return ""
    if "%" in head:
        return f"{value:+.1f}"
    if _PARTS.search(head):
        return f"{value:.3f}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}"


def folder_name(trace: str) -> str:
    """Return the name of a folder for what is about a trace."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in trace)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table with all digits.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    write_text(table.to_csv(index=False, lineterminator="\n"), path)


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
    title = head.splitlines()[0]
    check_writable(path, folders=True)
    if not path.is_file():
        if any(path.parent.iterdir()):
            raise HpcgymError(
                f"{path.parent} has files already, and no report of this study"
                f" ({title.lstrip('# ')}): choose another folder (--output)"
            )
        write_text(f"{title}\n\nNot finished yet.\n", path)
        return
    with path.open("rb") as file:
        first = file.readline(1000).decode(errors="replace")
    # earlier versions emptied it before the work, beside the folder of its tasks
    emptied = not first and (path.parent / "tasks").is_dir()
    if first.strip() != title and not emptied:
        raise HpcgymError(
            f"{path} is there already, and is no report of this study ({title.lstrip('# ')}):"
            " choose another folder (--output)"
        )


# --- What the pictures of all studies share -------------------------------------------------------


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, and its folder if need be.

    Raises
    ------
    HpcgymError : it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path, ".png")


def log_ticks(axis: Any, digits: Sequence[float] = (1, 2, 5)) -> None:
    """Put these multiples of the powers of ten beside a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter("")
