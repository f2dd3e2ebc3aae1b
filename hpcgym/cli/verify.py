"""``hpcgym verify``: whether what a file holds comes out again."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import click

from hpcgym.cli.explore import explore
from hpcgym.cli.files import WrittenFolder, check_regular, digests_of_read
from hpcgym.cli.running import ExplainedCommand, explained
from hpcgym.cli.simulate import compare, simulate
from hpcgym.errors import HpcgymError, WorkloadError, one_line
from hpcgym.files import MOST_JSON, bytes_of, json_of, lines_of
from hpcgym.files.recorded import (
    KEY,
    PACKAGES,
    PICTURE_KEYS,
    Command,
    beside,
    commanded,
    ending_of,
    record_of_file,
    table_of,
)
from hpcgym.files.tables import csv_rows, parquet_frame
from hpcgym.files.writing import plain
from hpcgym.names import SWF_COLUMNS
from hpcgym.version import __version__

# --- What differs between a file and the same one made again --------------------------------------

_MOST = 1024**3  # bytes of a page or a picture
_DRAWN = (".html", *PICTURE_KEYS)
_SHOWN = 60  # letters of a value in a message
#: What is printed beside results, and is compared by itself or not at all.
_APART = (KEY, "hpcgym", PACKAGES)


def of_records(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two records, apart from versions and files."""
    differences = []
    if _digests(recorded["workloads"]) != _digests(now["workloads"]):
        differences.append("the jobs are others" + _cleaned_otherwise(recorded, now))
    none: dict[str, Any] = {}
    for was, is_now in zip_longest(recorded["schedules"], now["schedules"], fillvalue=none):
        name = is_now.get("name") or was.get("name")
        for part in ("rules", "machine", "limits", "speedups", "metrics"):
            if part in was and was[part] != plain(is_now.get(part)):
                difference = first_difference(was[part], is_now.get(part))
                differences.append(f"the {part} of {name}: {difference}")
        if was.get("sha256") != is_now.get("sha256"):
            differences.append(f"the schedule {name} is another")
    return differences


def _digests(parts: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [part.get("sha256") for part in parts]


def _cleaned_otherwise(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how numbers of jobs or their cleaning differ; "" if they do not, or are not told."""
    for was, is_now in zip(recorded["workloads"], now["workloads"], strict=False):
        for part in ("jobs", "processors", "cleaning"):
            if part in was and was[part] != is_now[part]:
                return f" ({part}: {first_difference(was[part], is_now[part])})"
    return ""


def of_contents(path: Path, new: Path, *, same_version: bool) -> str:
    """Return the first thing in which a file differs from the same one made again; "" if none.

    Parameters
    ----------
    path, new : of the file, and of what its command writes now.
    same_version : whether this version wrote it. Of what another one wrote, pages and pictures are
        not compared, nor the header of SWF.
    """
    if ending_of(path) in _DRAWN or record_of_file(path).get("command", [""])[0] == "explore":
        return _of_bytes(path, new) if same_version else ""
    recorded, now = (plain(_held(file, header=same_version)) for file in (path, new))
    return "" if recorded == now else first_difference(recorded, now)


def _held(path: Path, *, header: bool) -> Any:
    """Return what a file holds, but for versions and records; of SWF without ``header`` the jobs.

    A table is a list of rows.
    """
    ending = ending_of(path)
    rows: Any
    if ending == ".swf":
        lines = [text for text, _ in lines_of(path, "SWF")]
        rows = [
            {"header": text} if text.startswith(";") else _row(SWF_COLUMNS, text.split())
            for text in lines
            if header or not text.startswith(";")
        ]
    elif ending == ".csv":
        names, *lists = [row for _, row in csv_rows(path, "CSV")] or [[]]
        rows = [_row(names, row) for row in lists]
    elif ending == ".parquet":
        rows = parquet_frame(path).to_dict("records")
    else:
        rows = json_of(bytes_of(path, MOST_JSON, HpcgymError), str(path), flat=True)
    if isinstance(rows, list):
        return [_bare(row) if isinstance(row, dict) else row for row in rows]
    return _bare(rows) if isinstance(rows, dict) else rows


def _row(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return a row of a table, whatever is missing or too much."""
    return {
        f"column {place}" if name is None else name: value
        for place, (name, value) in enumerate(zip_longest(names, values), 1)
    }


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return values without what differs between versions."""
    return {name: value for name, value in row.items() if name not in _APART}


def _of_bytes(path: Path, new: Path) -> str:
    """Return how a page or a picture differs from the one that is made now."""
    is_, should = (bytes_of(file, _MOST, HpcgymError) for file in (path, new))
    if is_ == should:
        return ""
    if path.suffix.casefold() in PICTURE_KEYS:
        return "it is not the picture that is drawn now"
    pairs = zip_longest(is_.splitlines(), should.splitlines(), fillvalue=b"")
    number = next(n for n, (one_line, other) in enumerate(pairs, 1) if one_line != other)
    return f"line {number} differs from that of now"


def first_difference(recorded: Any, now: Any, *where: str) -> str:
    """Return where two values of JSON differ first, and how."""
    recorded, now = plain(recorded), plain(now)
    parts: list[tuple[str, Any, Any]] = []
    if isinstance(recorded, dict) and isinstance(now, dict):
        parts = [(key, recorded.get(key), now.get(key)) for key in {**recorded, **now}]
    elif isinstance(recorded, list) and isinstance(now, list):
        pairs = zip(recorded, now, strict=False)
        parts = [(_called(k, other), value, other) for k, (value, other) in enumerate(pairs, 1)]
    for part, value, other in parts:
        if value != other:
            return first_difference(value, other, *where, part)
    place = ", ".join(where)
    if isinstance(recorded, list) and isinstance(now, list):
        return f"{place or 'it'} has {len(recorded):,} rows, and should have {len(now):,}"
    return f"{place} is {_short(recorded)}, and should be {_short(now)}".lstrip()


def _called(place: int, row: Any) -> str:
    """Return what a row of a list is called: a job by its number."""
    job = row.get("job_number") if isinstance(row, dict) else None
    return f"row {place}" if job is None else f"job {job}"


def _short(value: Any) -> str:
    """Return a value in a message: one short line."""
    text = value if isinstance(value, str) else json.dumps(plain(value), default=str)
    text = "nothing" if value is None or text == "" else " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


# --- What a recorded command makes now ------------------------------------------------------------

#: The commands whose files can be verified.
_COMMANDS: dict[str, ExplainedCommand] = {
    "simulate": simulate,
    "compare": compare,
    "explore": explore,
}


class Again(NamedTuple):
    """What a recorded command makes now.

    Attributes
    ----------
    made : the files with one ending that it writes, and what it prints.
    read : the files that it reads, name -> SHA-256.
    """

    made: list[Path]
    read: dict[str, str]


def _renamed(workload: str, before: str, folder: Path) -> str:
    """Return a log under the name that it had before, as a link in a folder: files tell its name.

    What is no file, or was none, stays as it is.
    """
    path = Path(workload)
    named = f"stdin{path.suffix}" if before == "-" else Path(before).name
    if not path.is_file() or path.name == named or Path(named).suffix != path.suffix:
        return workload
    link = folder / "workload" / named
    link.parent.mkdir()
    link.symlink_to(path.resolve())
    return str(link)


def again(arguments: Sequence[str], ending: str, workload: str | None, into: Path) -> Again:
    """Carry out a command line, but write into a folder, and only files with this ending.

    Parameters
    ----------
    arguments : without the program's name.
    workload : stands in place of the command line's, if it is not None.
    into : the folder.

    Raises
    ------
    HpcgymError : another command, options that it does not have, one that writes no such file, or
        what the command raises.
    """
    name, *rest = arguments or [""]
    if name not in _COMMANDS:
        *most, last = _COMMANDS
        known = f"{', '.join(most)} and {last}"
        raise HpcgymError(f"hpcgym {name} wrote it, and only files of {known} can be verified")
    from hpcgym.report.figures import SUFFIXES

    command, read = _COMMANDS[name], {}
    folder = Path(tempfile.mkdtemp(dir=into))

    def run(**values: Any) -> None:
        if workload is not None:
            values["workload"] = _renamed(workload, values["workload"], folder)
        check_regular(command.written, values)  # the command may be anybody's
        read.update(digests_of_read(command.written, values))
        printed = ending == f".{values.get('format')}"
        writes = printed
        for name, mark in command.written.items():
            path = Path(values[name] or "")
            endings = SUFFIXES if isinstance(mark, WrittenFolder) else (ending_of(path),)
            values[name] = folder / name / path.name if path.name and ending in endings else None
            if values[name] is not None:
                values[name].parent.mkdir()
                writes = True
        if not writes:
            raise HpcgymError(f"its command writes no file that ends in {ending}")
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            command.callback(**values)
        if printed:
            (folder / f"printed{ending}").write_text(out.getvalue())

    # without checks of files to write
    program = click.Command(name, params=command.params, callback=run, add_help_option=False)
    try:
        program.main(rest, standalone_mode=False)
    except click.UsageError as error:
        raise HpcgymError(f"its command line is not one of now: {error.format_message()}") from None
    except WorkloadError as error:
        hint = "" if workload else "; --workload says where the log lies now"
        raise HpcgymError(f"its command cannot be run again: {error}{hint}") from None
    return Again([file for file in sorted(folder.rglob("*")) if ending_of(file) == ending], read)


# --- ``hpcgym verify``: whether what a file holds comes out again ---------------------------------


@explained()
def verify(
    files: list[str],
    workload: str | None = None,
) -> None:
    """Make files again by the command that each has recorded, and say whether they are equal.

    It prints a line for each file: "equal", or what differs first. It compares jobs, rules, the
    schedule and all that the file holds. It exits with 1 if a file differs or has no record.

    Run it in the folder in which the command ran.

    Arguments
    ---------
    files FILE... : Files that hpcgym simulate, compare or explore wrote: schedules, pages,
        pictures, or the output of --format json or csv in a file .json or .csv.

    Options
    -------
    workload WORKLOAD : Where the log is now, in place of the name in the recorded command.

    Examples
    --------
    hpcgym simulate KTH-SP2 --scheduler saf --output saf.swf --html saf.html
    hpcgym verify saf.swf saf.html
    hpcgym verify saf.swf --workload logs/KTH-SP2.swf.gz
    """
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        # a command's files mostly stand in a row
        run = lru_cache(maxsize=1)(partial(again, workload=workload, into=Path(folder)))
        for name in files:
            path = Path(name)
            if table := table_of(path):
                click.echo(f"{name}: is the record of {table.name}")
                continue
            try:
                said, equal = _verified(path, run)
            except HpcgymError as error:
                said, equal = f"not verified: {error}", False
            click.echo(f"{name}: {one_line(said)}")  # it tells texts of the file
            failed |= not equal
    if failed:
        raise click.exceptions.Exit(1)


def _verified(path: Path, run: Callable[..., Again]) -> tuple[str, bool]:
    """Return what is to be said of a file, and whether it is equal."""
    record = record_of_file(path)
    if not record["command"]:
        raise HpcgymError(
            "it was written from Python, and no command says what it was made from; in Python,"
            " hpcgym.schedule.provenance.provenance_of has the digests to compare"
        )
    with commanded(Command(record["command"], lambda: record["files"], record["date"])):
        now = run(tuple(record["command"]), ending_of(path))
    new = _same_kind(path, record, now.made)
    record_now = record_of_file(new)
    others = _of_other_versions(record.get(PACKAGES, {}), record_now.get(PACKAGES, {}))
    same_version = record["hpcgym"] == __version__ and not others
    differences = of_records(record, record_now)
    contents = of_contents(path, new, same_version=same_version)
    differences += [contents] if contents else []
    of_version = (
        ""
        if record["hpcgym"] == __version__
        else f"; hpcgym {record['hpcgym']} wrote it, not {__version__}"
    )
    others += [
        f"; {name} has other contents now"
        for name, digest in now.read.items()
        if record["files"].get(name, digest) != digest
    ]
    if not differences:
        return f"equal{''.join(others)}{of_version}", True
    return f"differs: {'; '.join(differences)}{''.join(others)}{of_version}", False


def _of_other_versions(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return which packages of others were of other versions than they are now."""
    return [
        f"; it was made with {name} {version}, and this is {now[name]}"
        for name, version in recorded.items()
        if now.get(name, version) != version
    ]


def _same_kind(path: Path, record: Mapping[str, Any], made: Sequence[Path]) -> Path:
    """Return the file that was made now which is what a file is, whatever it is called."""
    for file in made:
        figure = record_of_file(file).get("figure")
        if (figure, beside(file).is_file()) == (record.get("figure"), beside(path).is_file()):
            return file
    raise HpcgymError("its command writes no such file")
