"""Standard input (``-``) or a pipe as a log, standard output as a file to write."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpcgym.cli.files import Written, marks_of
from hpcgym.errors import HpcgymError, reworded
from hpcgym.files.writing import same_file

_DASH = "-"
_LOG = "workload"  # the parameter of commands that read a log
_STDOUT = Path("/dev/stdout")
_FOLDER = "hpcgym-stream-"  # what the name of the folder of copies begins with
_STDIN, _PIPE = "stdin", "pipe"  # what the copies in it are called, or the folder of one


@contextmanager
def standard_streams(command: Callable[..., Any] | None, values: dict[str, Any]) -> Iterator[None]:
    """Put files in place of ``-`` among the values of a command's parameters, while it runs.

    Standard input is copied into a file, as readers look at the beginning of a log first, and so
    is a log that is a pipe, as of ``<(zcat dump.gz)``. The file to write is a link to standard
    output, whose name ends as the command's --format says.

    Raises
    ------
    HpcgymError : standard input is a terminal, or two files to write are standard output.
    """
    marks = marks_of(command)
    outputs = [
        (name, mark)
        for name, mark in marks.items()
        if isinstance(mark, Written) and mark.stream and str(values[name]) == _DASH
    ]
    streamed = _is_stream(values.get(_LOG))
    if not outputs and not streamed:
        yield
        return
    if len(outputs) > 1:
        raise HpcgymError("- is standard output, which one file only can be written to")
    try:
        with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
            if streamed:
                values[_LOG] = str(_received(values[_LOG], Path(folder)))
            for name, mark in outputs:
                ending = f".{values.get('format')}"
                ending = ending if ending in mark.endings else mark.endings[0]
                link = Path(folder, f"stdout{ending}")
                link.symlink_to(_STDOUT)
                values[name] = link
            yield
    except HpcgymError as error:
        raise reworded(error, as_given(str(error), "standard input")) from None


def as_given(text: str, called: str = _DASH) -> str:
    """Return a text in which copies are called as they were given, that of standard input so."""
    folder = rf"{re.escape(tempfile.gettempdir())}/{_FOLDER}\w+"
    text = re.sub(rf"{folder}/{_STDIN}(\.\w+)?", called, text)
    return re.sub(rf"{folder}/{_PIPE}(/.*?([^/]+))/\2(\.\w+)?", r"\1", text)


def _is_stream(log: Any) -> bool:
    """Return whether a log can be read only once."""
    return isinstance(log, str) and (log == _DASH or Path(log).is_fifo())


def _received(log: str, folder: Path) -> Path:
    """Return a file with all that a stream has, by whose name its format is known."""
    from hpcgym.files.opening import head_of, saying
    from hpcgym.workload.io.formats import format_of

    if log == _DASH and sys.stdin.isatty():
        raise HpcgymError("- is standard input, which is this terminal: pipe a log into it")
    path = _place(log, folder)
    with saying(log), path.open("wb") as file:
        if log == _DASH:
            shutil.copyfileobj(sys.stdin.buffer, file)
        else:
            with open(log, "rb") as pipe:
                shutil.copyfileobj(pipe, file)
    if format_of(path) != "swf":  # which all is that is nothing else
        return path
    return path.rename(f"{path}{_ending(head_of(path))}")


def _place(log: str, folder: Path) -> Path:
    """Return where the copy of a stream is; :func:`as_given` finds the name of a pipe in it."""
    if log == _DASH:
        return folder / _STDIN
    below = Path(folder, _PIPE, *Path(log).absolute().parts[1:])
    below.mkdir(parents=True)
    return below / below.name


def _ending(head: bytes) -> str:
    """Return how the name of a table must end whose beginning this is; none of a log in SWF."""
    if head.startswith(b"PAR1"):
        return ".parquet"
    text = head.lstrip()
    if text.startswith((b"{", b"[")):
        return ".json"
    return ".csv" if b"," in text.partition(b"\n")[0] and not text.startswith(b";") else ""


def is_standard_output(path: Path | None) -> bool:
    """Return whether a file to write is standard output."""
    return path is not None and path.is_symlink() and same_file(path, _STDOUT)


def called(path: Path) -> str:
    """Return what a file that was written is called."""
    return "to standard output" if is_standard_output(path) else str(path)
