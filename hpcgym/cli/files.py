"""Files of commands: what may be written where, standard input and output as files."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from hpcgym.errors import HpcgymError, reworded
from hpcgym.files.writing import check_writable, is_stream, same_file

# --- Files that commands write --------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """Stands in the ``Annotated`` type of a parameter that names a file to write.

    Attributes
    ----------
    what : the file is, in words.
    endings : of names it may have.
    drawn : whether it needs matplotlib.
    stream : whether ``-`` stands for standard output.
    """

    what: str
    endings: tuple[str, ...]
    drawn: bool = False
    stream: bool = False


@dataclass(frozen=True)
class WrittenFolder:
    """Stands in the type of a parameter that names a folder which pictures are written into."""


SCHEDULE = Written(
    "schedule", (".swf", ".swf.gz", ".csv", ".csv.gz", ".json", ".parquet"), stream=True
)
PICTURE = Written("picture", (".png", ".svg", ".pdf", ".html"), drawn=True)
PAGE = Written("page", (".html",), drawn=True)


def check_files(command: Callable[..., Any] | None, values: Mapping[str, Any]) -> None:
    """Say before the work of a command what is wrong with the files that it is to write.

    Parameters
    ----------
    command : the function; its parameters that are :class:`Written` name the files. If it has any,
        it has a parameter ``force`` too.
    values : of its parameters.

    Raises
    ------
    HpcgymError : a name with another ending, a picture without matplotlib, a file that cannot be
        written; one that is another one to write, or one that is read; one that is there already,
        or a folder with files in it, without --force. No file is changed.
    """
    marks = marks_of(command)
    named = [(Path(values[name]), mark) for name, mark in marks.items() if values[name] is not None]
    outputs = [(path, mark) for path, mark in named if isinstance(mark, Written)]
    for path, mark in outputs:
        _check_name(path, mark)
    files = [path for path, _ in outputs if not is_stream(path)]
    if outputs:
        _check_not_read([path for path, _ in outputs], _read(command, values))
        for place, path in enumerate(files):
            one = next((one for one in files[:place] if same_file(path, one)), None)
            if one is not None:
                raise HpcgymError(f"{one} and {path} are one file: choose another name for one")
    for path in [path for path, mark in named if isinstance(mark, WrittenFolder)]:
        _check_folder(path, values["force"])
    for path in files:
        if path.exists() and not path.is_dir() and not values["force"]:
            raise HpcgymError(f"{path} is there already: --force overwrites it")
    for path, _ in outputs:
        check_writable(path)


def digests_of_read(
    command: Callable[..., Any] | None, values: Mapping[str, Any]
) -> dict[str, str]:
    """Return the files that a command reads: name -> SHA-256, with the folder if two are alike.

    As for the files that must not be written, every text that is the name of one counts; but what
    cannot be read has not been.
    """
    from hpcgym.workload.io.files import sha256_of

    read = [path for path in _read(command, values) if path.is_file() and os.access(path, os.R_OK)]
    names = [path.name for path in read]
    return {
        path.name if names.count(path.name) == 1 else str(path): sha256_of(path) for path in read
    }


def check_regular(command: Callable[..., Any] | None, values: Mapping[str, Any]) -> None:
    """Raise an HpcgymError if a command would read a pipe or a device, which may never end."""
    for path in _read(command, values):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise HpcgymError(f"{path} is no regular file")


def _read(command: Callable[..., Any] | None, values: Mapping[str, Any]) -> list[Path]:
    """Return all that a command may read, by name."""
    marks = marks_of(command)
    others = [value for name, value in values.items() if name not in marks]
    return sorted({path for value in others for path in _files_of(value)})


def _check_name(path: Path, mark: Written) -> None:
    """Say so if a name cannot be that of such a file, or what writes it is not installed."""
    if not path.name.endswith(mark.endings):
        raise HpcgymError(f"{path}: the name of a {mark.what} ends in {', '.join(mark.endings)}")
    if not path.absolute().parent.is_dir():
        raise HpcgymError(f"{path} cannot be written: there is no folder {path.parent}")
    if mark.drawn:
        from hpcgym.report.canvas import require_matplotlib

        require_matplotlib()
    if path.suffix == ".parquet":
        from hpcgym.files.tables import need_parquet

        need_parquet()


def _check_folder(path: Path, force: bool) -> None:
    """Say so if pictures cannot be written into a folder, or would be beside other files."""
    from hpcgym.report.canvas import require_matplotlib

    require_matplotlib()
    if not path.exists() and not path.absolute().parent.is_dir():
        raise HpcgymError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.exists() and not path.is_dir():
        raise HpcgymError(f"{path} is there already, and is no folder")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise HpcgymError(f"{path} has files in it already: --force writes beside and over them")


def _check_not_read(files: Iterable[Path], inputs: Collection[Path]) -> None:
    """Say so if a file to write is one that is read, be it the output of the shell, too."""
    for path in files:
        for one in inputs:
            if same_file(path, one) and not one.is_char_device():
                what = "is" if path == one else f"is the same file as {one}, which is"
                raise HpcgymError(f"{path} {what} read here: choose another name to write to")


def _files_of(value: Any) -> Iterator[Path]:
    """Return the files that a value of the command line names, also as an argument of a generator.

    Every text that is the name of an existing file counts as one: rather too many than too few.
    """
    if isinstance(value, list | tuple):
        for one in value:
            yield from _files_of(one)
    if not isinstance(value, str | Path):
        return
    text = str(value)
    pieces = [*text.split(","), *text.partition(":")[2].split(",")]
    names = (text, *pieces, *(piece.partition("=")[2] for piece in (text, *pieces)))
    for name in {*names, *(name.strip() for name in names)}:  # arguments may have blanks around
        path = Path(os.path.expanduser(name))  # which leaves a user that there is not as it is
        if name and os.path.exists(path):
            yield path
    yield from _files_of_trace(text)


def _files_of_trace(name: str) -> Iterator[Path]:
    """Return the file of a trace by its name, or the one that it would be fetched into."""
    from hpcgym.workload.archive import cache_folder, find, find_own, find_trace, is_trace

    with suppress(HpcgymError):  # what is wrong is said when it is read
        if is_trace(name):
            yield find(name) or cache_folder() / find_trace(name).file
        elif own := find_own(name):
            yield own


def marks_of(command: Callable[..., Any] | None) -> dict[str, Written | WrittenFolder]:
    """Return what marks the parameters of a command that name what to write."""
    hints = {} if command is None else get_type_hints(command, include_extras=True)
    return {
        name: mark
        for name, hint in hints.items()
        for mark in get_args(hint)[1:]
        if isinstance(mark, Written | WrittenFolder)
    }


# --- Standard input (``-``) or a pipe as a log ----------------------------------------------------

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
    from hpcgym.files import head_of, saying
    from hpcgym.workload.load import format_of

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
