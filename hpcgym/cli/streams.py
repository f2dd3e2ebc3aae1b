"""``-`` on the command line: standard input as a log, standard output as a file to write."""

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
_STDIN, _FOLDER = "stdin", "hpcgym-stdin-"  # names of the copy, and of the folder that it is in


@contextmanager
def standard_streams(command: Callable[..., Any] | None, values: dict[str, Any]) -> Iterator[None]:
    """Put files in place of ``-`` among the values of a command's parameters, while it runs.

    Standard input is copied into a file, as readers look at the beginning of a log first. The
    file to write is a link to standard output, whose name ends as the command's --format says.

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
    if not outputs and values.get(_LOG) != _DASH:
        yield
        return
    if len(outputs) > 1:
        raise HpcgymError("- is standard output, which one file only can be written to")
    try:
        with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
            if values.get(_LOG) == _DASH:
                values[_LOG] = str(_received(Path(folder)))
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
    """Return a text in which the copy of standard input has another name."""
    copy = rf"{re.escape(tempfile.gettempdir())}/{_FOLDER}\w+/{_STDIN}(\.\w+)?"
    return re.sub(copy, called, text)


def _received(folder: Path) -> Path:
    """Return a file with all that standard input has, by whose name its format is known."""
    from hpcgym.files.opening import head_of
    from hpcgym.workload.io.formats import format_of

    if sys.stdin.isatty():
        raise HpcgymError("- is standard input, which is this terminal: pipe a log into it")
    path = folder / _STDIN
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if format_of(path) != "swf":  # which all is that is nothing else
        return path
    return path.rename(path.with_suffix(_ending(head_of(path))))


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
