"""Files of commands: what may be written where, and standard input as a file."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, reworded
from hpcgym.files import MEGABYTE, check_is_file, head_of, is_there, saying, size_text
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
    folder : whether it is a folder with files of its own.
    goes_on : whether the command goes on with what is there already.
    """

    what: str
    endings: tuple[str, ...]
    drawn: bool = False
    folder: bool = False
    goes_on: bool = False


@dataclass(frozen=True)
class WrittenFolder:
    """Stands in the type of a parameter that names a folder which pictures are written into."""


#: Name of a parameter that names what to write -> what that is.
Marks = Mapping[str, Written | WrittenFolder]

SCHEDULE = Written("schedule", (".swf", ".swf.gz", ".csv", ".csv.gz", ".json", ".parquet"))
#: The name by which a schedule is printed.
PRINTED = Path("-")
PICTURE = Written("picture", (".png", ".svg", ".pdf"), drawn=True)
PAGE = Written("page", (".html",))  # without matplotlib it has no pictures


def check_files(marks: Marks, values: Mapping[str, Any]) -> None:
    """Say before the work of a command what is wrong with the files that it is to write.

    Parameters
    ----------
    marks : of the parameters of the command. If there are any, it has a parameter ``force`` too.
    values : of its parameters.

    Raises
    ------
    HpcgymError : a name with another ending, a picture without matplotlib, a file that cannot be
        written; one that is another one to write, or one that is read; one that is there already,
        or a folder with files in it, without --force. No file is changed.
    """
    given = {name: mark for name, mark in marks.items() if values[name] is not None}
    named = [(Path(values[name]), mark) for name, mark in given.items()]
    named = [pair for pair in named if pair != (PRINTED, SCHEDULE)]
    outputs = [(path, mark) for path, mark in named if isinstance(mark, Written)]
    for path, mark in outputs:
        _check_name(path, mark)
    files = [path for path, _ in outputs if not is_stream(path)]
    if outputs:
        _check_not_read([path for path, _ in outputs], _read(marks, values))
        for place, path in enumerate(files):
            same = next((same for same in files[:place] if same_file(path, same)), None)
            if same is not None:
                raise HpcgymError(f"{same} and {path} are one file: choose another name for one")
    for path in [path for path, mark in named if isinstance(mark, WrittenFolder)]:
        _check_folder(path, values["force"])
    for path, mark in outputs:
        other = path.is_dir() and not mark.folder  # which no option overwrites
        if path in files and path.exists() and not (other or mark.goes_on or values["force"]):
            raise HpcgymError(f"{path} is there already: --force overwrites it")
    for path, mark in outputs:
        if not (mark.folder and path.is_dir()):
            check_writable(path)


def digests_of_read(marks: Marks, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the files that a command reads: name -> SHA-256, with the folder if two are alike.

    As for the files that must not be written, every text that is the name of one counts; but what
    cannot be read has not been.
    """
    from hpcgym.workload.io.files import sha256_of

    read = [path for path in _read(marks, values) if path.is_file() and os.access(path, os.R_OK)]
    names = [path.name for path in read]
    return {
        path.name if names.count(path.name) == 1 else str(path): sha256_of(path) for path in read
    }


def check_regular(marks: Marks, values: Mapping[str, Any]) -> None:
    """Raise an HpcgymError if a command would read a pipe or a device, which may never end."""
    for path in _read(marks, values):
        if is_there(path):
            check_is_file(path)


def _read(marks: Marks, values: Mapping[str, Any]) -> list[Path]:
    """Return all that a command may read, by name."""
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
        for read in inputs:
            if same_file(path, read) and not read.is_char_device():
                what = "is" if path == read else f"is the same file as {read}, which is"
                raise HpcgymError(f"{path} {what} read here: choose another name to write to")


def _files_of(value: Any) -> Iterator[Path]:
    """Return the files that a value of the command line names, also as an argument of a generator.

    Every text that is the name of an existing file counts as one: rather too many than too few.
    """
    if isinstance(value, list | tuple):
        for part in value:
            yield from _files_of(part)
    if not isinstance(value, str | Path):
        return
    text = str(value)
    pieces = [*text.split(","), *re.split("[,+]", text.partition(":")[2])]
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


# --- Standard input (``-``) or a pipe as a log ----------------------------------------------------

_LOG = "workload"  # the parameter of commands that read a log
_FOLDER = "hpcgym-stream-"  # what the name of the folder of copies begins with
_GIVEN = {
    "stdin": "standard input",
    "pipe": "the pipe",
}  # what the copies in it are called: what was given
#: Pipes that the shell has opened for this process, and that somebody writes to: of no other is
#: that known, and who waited for one might wait for ever.
_PIPE = re.compile(r"/dev/stdin|(?:/dev|/proc/self)/fd/\d+")
_MOST = 4096 * MEGABYTE  # of a log from a stream, which may never end


@contextmanager
def streamed(values: dict[str, Any]) -> Iterator[None]:
    """Put a file in place of a log that can be read only once, while a command runs.

    Readers look at the beginning of a log first. Standard input is such a log, and a pipe of the
    shell, as of ``<(zcat dump.gz)``; pipes with a name of their own are not read.

    Raises
    ------
    HpcgymError : standard input is a terminal, or a log of over 4 GiB.
    """
    log = values.get(_LOG)
    if not (isinstance(log, str) and (log == "-" or _is_pipe(log))):
        yield
        return
    try:
        with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
            values[_LOG] = str(_received(log, Path(folder)))
            yield
    except HpcgymError as error:
        raise reworded(error, as_given(str(error))) from None


def _is_pipe(log: str) -> bool:
    """Tell whether this is a pipe of the shell."""
    return bool(_PIPE.fullmatch(log)) and Path(log).is_fifo()


def as_given(text: str) -> str:
    """Return a text in which copies are called as they were given."""
    copies = rf"{re.escape(tempfile.gettempdir())}/{_FOLDER}\w+/({'|'.join(_GIVEN)})(\.\w+)?"
    return re.sub(copies, lambda match: _GIVEN[match[1]], text)


def _received(log: str, folder: Path) -> Path:
    """Return a file with all that a stream has, by whose name its format is known."""
    from hpcgym.workload.load import format_of

    if log == "-" and sys.stdin.isatty():
        raise HpcgymError("- is standard input, which is this terminal: pipe a log into it")
    path = folder / ("stdin" if log == "-" else "pipe")
    with (
        saying(log),
        nullcontext(sys.stdin.buffer) if log == "-" else Path(log).open("rb") as stream,
        path.open("wb") as copy,
    ):
        while piece := stream.read(MEGABYTE):
            copy.write(piece)
            if copy.tell() > _MOST:
                raise HpcgymError(
                    f"{_GIVEN[path.name]} gives more than {size_text(_MOST)}: give a file"
                )
    if format_of(path) != "swf":  # which all is that is nothing else
        return path
    return path.rename(f"{path}{_ending(head_of(path))}")


def _ending(head: bytes) -> str:
    """Return how the name of a table must end whose beginning this is; none of a log in SWF."""
    if head.startswith(b"PAR1"):
        return ".parquet"
    text = head.lstrip()
    if text.startswith((b"{", b"[")):
        return ".json"
    return ".csv" if b"," in text.partition(b"\n")[0] and not text.startswith(b";") else ""
