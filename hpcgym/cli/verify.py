"""``hpcgym verify``: whether what a file holds comes out again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand

from hpcgym.cli.explore import explore
from hpcgym.cli.files import check_regular, digests_of_read
from hpcgym.cli.groups import UNTOLD, Told, bounded, check_generated, grouped
from hpcgym.cli.lineup import no_own_code
from hpcgym.cli.output import Outcome, draw, write_jobs
from hpcgym.cli.simulate import compare, simulate
from hpcgym.errors import HpcgymError, WorkloadError, one_line
from hpcgym.files import MOST_JSON, bytes_of, json_of, lines_of
from hpcgym.files.recorded import (
    KEY,
    PICTURE_KEYS,
    Command,
    beside,
    commanded,
    ending_of,
    record_of_file,
    table_of,
)
from hpcgym.files.tables import csv_rows, parquet_frame
from hpcgym.files.writing import csv_text, json_text, plain
from hpcgym.naming import ONCE_CALLED, SWF_COLUMNS
from hpcgym.version import __version__

# --- What differs between a file and the same one made again --------------------------------------

_MOST = 1024**3  # bytes of a page or a picture
_SHOWN = 60  # letters of a value in a message
_APART = (KEY, "hpcgym")  # what is printed beside results, and is compared by itself or not at all


def of_records(told: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two records, apart from versions and files."""
    found = []
    if _digests(told["workloads"]) != _digests(now["workloads"]):
        found.append("the jobs are others" + _cleaned_otherwise(told, now))
    none: dict[str, Any] = {}
    for was, one in zip_longest(told["schedules"], now["schedules"], fillvalue=none):
        name = one.get("name") or was.get("name")
        for part in ("rules", "machine", "limits", "speedups", "metrics"):
            if part in was and was[part] != plain(one.get(part)):
                difference = first_difference(was[part], one.get(part))
                found.append(f"the {part} of {name}: {difference}")
        if was.get("sha256") != one.get("sha256"):
            found.append(f"the schedule {name} is another")
    return found


def _digests(parts: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [part.get("sha256") for part in parts]


def _cleaned_otherwise(told: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how numbers of jobs or their cleaning differ; "" if they do not, or are not told."""
    for was, one in zip(told["workloads"], now["workloads"], strict=False):
        for part in ("jobs", "processors", "cleaning"):
            if part in was and was[part] != one[part]:
                return f" ({part}: {first_difference(was[part], one[part])})"
    return ""


def of_contents(path: Path, outcome: Outcome, *, same_version: bool) -> str:
    """Return the first thing in which a file differs from the same one made again; "" if none.

    Parameters
    ----------
    path : of the file; its ending tells what it is.
    outcome : what its command computes.
    same_version : whether this version wrote it. Of what another one wrote, pages and pictures are
        not compared, nor the header of SWF.
    """
    ending = ending_of(path)
    if ending in (".html", ".png", ".svg", ".pdf") or not outcome.report:
        return _of_drawn(path, outcome) if same_version else ""
    is_printed = ending in (".csv", ".json") and not beside(path).is_file()
    if not is_printed and len(outcome.results) != 1:
        return "its command writes no schedule"  # only simulate does
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder, f"again{ending}")
        if is_printed:
            text = csv_text(outcome.rows()) if ending == ".csv" else json_text(outcome.facts())
            new.write_text(text)
        for name, result in () if is_printed else outcome.results.items():
            if ending == ".swf":
                result.to_swf(new, name=name)
            else:
                write_jobs(result, new, {})
        told, now = (plain(_held(one, header=same_version)) for one in (path, new))
    return "" if told == now else first_difference(told, now)


def _held(path: Path, *, header: bool) -> Any:
    """Return what a file holds, but for versions and records; of SWF without ``header`` the jobs.

    A table is a list of rows, whose columns have the names of now.
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
        return [_of_now(row) if isinstance(row, dict) else row for row in rows]
    return _of_now(rows) if isinstance(rows, dict) else rows


def _row(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return a row of a table, whatever is missing or too much."""
    return {
        f"column {place}" if name is None else name: value
        for place, (name, value) in enumerate(zip_longest(names, values), 1)
    }


def _of_now(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names of now, without what differs between versions."""
    return {ONCE_CALLED.get(name, name): value for name, value in row.items() if name not in _APART}


def _of_drawn(path: Path, outcome: Outcome) -> str:
    """Return how a page or a picture differs from the one that is made now."""
    is_picture = path.suffix.casefold() in PICTURE_KEYS
    figure = record_of_file(path).get("figure") if is_picture else None
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder, path.name)
        if figure is None:
            draw(outcome.results, new, report=outcome.report)
        else:
            from hpcgym.report.overview import figure_again

            figure_again(outcome.results, figure, new)
        is_, should = (bytes_of(one, _MOST, HpcgymError) for one in (path, new))
    if is_ == should:
        return ""
    if is_picture:
        return "it is not the picture that is drawn now"
    pairs = zip_longest(is_.splitlines(), should.splitlines(), fillvalue=b"")
    number = next(n for n, (one, other) in enumerate(pairs, 1) if one != other)
    return f"line {number} differs from that of now"


def first_difference(told: Any, now: Any, *where: str) -> str:
    """Return where two values of JSON differ first, and how."""
    told, now = plain(told), plain(now)
    parts: list[tuple[str, Any, Any]] = []
    if isinstance(told, dict) and isinstance(now, dict):
        parts = [(key, told.get(key), now.get(key)) for key in {**told, **now}]
    elif isinstance(told, list) and isinstance(now, list):
        pairs = zip(told, now, strict=False)
        parts = [(_called(k, other), one, other) for k, (one, other) in enumerate(pairs, 1)]
    for part, one, other in parts:
        if one != other:
            return first_difference(one, other, *where, part)
    place = ", ".join(where)
    if isinstance(told, list) and isinstance(now, list):
        return f"{place or 'it'} has {len(told):,} rows, and should have {len(now):,}"
    return f"{place} is {_short(told)}, and should be {_short(now)}".lstrip()


def _called(place: int, row: Any) -> str:
    """Return what a row of a list is called: a job by its number."""
    job = row.get("job_number") if isinstance(row, dict) else None
    return f"row {place}" if job is None else f"job {job}"


def _short(value: Any) -> str:
    """Return a value in a message: one short line."""
    text = value if isinstance(value, str) else json.dumps(plain(value), default=str)
    text = "nothing" if value is None or text == "" else " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


# --- What a recorded command computes -------------------------------------------------------------

#: The commands whose files can be verified, and which of their arguments computes the outcome.
_COMMANDS: dict[str, tuple[Any, str]] = {
    "simulate": (simulate, "simulation"),
    "compare": (compare, "comparison"),
    "explore": (explore, "exploration"),
}

#: What parsers of options raise; typer brings its own click, or uses the one installed.
_WRONG_USE: Any = typer.BadParameter.__base__


class Again(NamedTuple):
    """What a recorded command computes now; ``files()``: what it reads, name -> SHA-256."""

    outcome: Outcome
    files: Callable[[], dict[str, str]]


def _moved(argument: str, folder: Path) -> str:
    """Return an argument; of a file that is not where it says the one of that name in a folder."""
    option, equals, text = (
        argument.rpartition("=") if argument.startswith("--") else ("", "", argument)
    )
    here = folder / Path(text).name
    # os.path, since pathlib raises for names that no file can have
    gone = text and not os.path.exists(text) and os.path.isfile(here)
    return f"{option}{equals}{here}" if gone else argument


def again(
    arguments: Sequence[str], told: Told, workload: str | None = None, folder: Path = Path()
) -> Again:
    """Return what a command line computes.

    Parameters
    ----------
    arguments : without the program's name; options that name files to write are not followed.
    told : by the file that has recorded it; it may not cost far more.
    workload : stands in place of the command line's, if it is not None.
    folder : where files that the command line names, and that are not there, are looked for.

    Raises
    ------
    HpcgymError : another command, options that it does not have, one that costs far more than is
        told, or what the command raises.
    """
    name, *rest = arguments or [""]
    if name not in _COMMANDS:
        *most, last = _COMMANDS
        known = f"{', '.join(most)} and {last}"
        raise HpcgymError(f"hpcgym {name} wrote it, and only files of {known} can be verified")
    command, asked = _COMMANDS[name]
    found: list[Again] = []

    @wraps(command)
    def run(**values: Any) -> None:
        if workload is None:
            check_generated(values["workload"])
        else:
            values["workload"] = workload
        check_regular(command, values)  # the command may be anybody's
        with no_own_code():
            outcome = command.arguments(values)[asked].outcome()
        found.append(Again(outcome, lambda: digests_of_read(command, values)))

    program = typer.Typer(add_completion=False, rich_markup_mode=None)
    program.command(cls=TyperCommand, add_help_option=False)(run)  # no checks of files to write
    try:
        found_again = [_moved(one, folder) for one in rest]
        with bounded(told):
            typer.main.get_command(program).main(found_again, standalone_mode=False)
    except _WRONG_USE as error:
        raise HpcgymError(f"its command line is not one of now: {error.format_message()}") from None
    return found[0]


# --- ``hpcgym verify``: whether what a file holds comes out again ---------------------------------


@grouped()
def verify(
    files: list[str],
    workload: str | None = None,
) -> None:
    """Make files again by the command that each has recorded, and say whether they are equal.

    It prints a line for each file: "equal", or what differs first. It compares jobs, rules, the
    schedule and all that the file holds. It exits with 1 if a file differs or has no record.

    A command that would cost far more than its file tells, in jobs or in simulations, is not run.

    Files that the recorded command names are looked for in the current folder, and then beside the
    verified file.

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
    run = lru_cache(maxsize=1)(again)  # a command's files mostly stand in a row
    failed = False
    for name in files:
        path = Path(name)
        if table := table_of(path):
            typer.echo(f"{name}: is the record of {table.name}")
            continue
        try:
            said, equal = _verified(path, run, workload)
        except HpcgymError as error:
            said, equal = f"not verified: {error}", False
        typer.echo(f"{name}: {one_line(said)}")  # it tells texts of the file
        failed |= not equal
    if failed:
        raise typer.Exit(1)


def _told(path: Path, record: Mapping[str, Any]) -> Told:
    """Return how many jobs and schedules a file tells; a schedule tells no more jobs than bytes."""
    jobs = [one["jobs"] for one in record["workloads"] if type(one.get("jobs")) is int]
    told = max(jobs, default=UNTOLD)  # a table of results in CSV tells no number
    is_schedule = ending_of(path) in (".swf", ".parquet") or beside(path).is_file()
    return Told(min(told, path.stat().st_size) if is_schedule else told, len(record["schedules"]))


def _verified(path: Path, run: Callable[..., Again], workload: str | None) -> tuple[str, bool]:
    """Return what is to be said of a file, and whether it is equal."""
    from hpcgym.schedule.provenance import provenance_of

    record = record_of_file(path)
    if not record["command"]:
        raise HpcgymError(
            "it was written from Python, and no command says what it was made from; in Python,"
            " hpcgym.schedule.provenance.provenance_of has the digests to compare"
        )
    try:
        made: Again = run(tuple(record["command"]), _told(path, record), workload, path.parent)
    except WorkloadError as error:
        hint = "" if workload else "; --workload says where the log lies now"
        raise HpcgymError(f"its command cannot be run again: {error}{hint}") from None
    written = Command(record["command"], lambda: record["files"], record["date"])
    with commanded(written):
        found = of_records(record, provenance_of(made.outcome.results))
        same_version = record["hpcgym"] == __version__
        contents = of_contents(path, made.outcome, same_version=same_version)
    found += [contents] if contents else []
    of_version = "" if same_version else f"; hpcgym {record['hpcgym']} wrote it, not {__version__}"
    others = [
        f"; {name} has other contents now"
        for name, digest in made.files().items()
        if record["files"].get(name, digest) != digest
    ]
    if not found:
        return f"equal{''.join(others)}{of_version}", True
    return f"differs: {'; '.join(found)}{''.join(others)}{of_version}", False
