"""``hpcgym verify``: whether what a file holds comes out again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcgym.cli.again import Again, again
from hpcgym.cli.bounds import UNTOLD, Told
from hpcgym.cli.differences import of_contents, of_records
from hpcgym.cli.running import ExplainedCommand
from hpcgym.errors import HpcgymError, WorkloadError, one_line
from hpcgym.files.origin import Command, commanded
from hpcgym.files.recorded import beside, ending_of, record_of_file, table_of
from hpcgym.version import __version__


class Verify(ExplainedCommand):
    """The command with examples in its help."""

    examples = (
        "hpcgym simulate KTH-SP2 --scheduler saf --output saf.swf --html saf.html",
        "hpcgym verify saf.swf saf.html",
        "hpcgym verify saf.swf --workload logs/KTH-SP2.swf.gz",
    )


def verify(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files that hpcgym simulate, compare or explore wrote: schedules, pages,"
            " pictures, traces of events, or the output of --format json or csv in a file"
            " .json or .csv.",
            show_default=False,
        ),
    ],
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="WORKLOAD",
            help="Where the log is now, in place of the name in the recorded command.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make files again by the command that each has recorded, and say whether they are equal.

    It prints a line for each file: "equal", or what differs first. It compares jobs, rules, the
    schedule and all that the file holds. It exits with 1 if a file differs or has no record.

    A command that would cost far more than its file tells, in jobs or in simulations, is not run.

    Files that the recorded command names are looked for in the current folder, and then beside the
    verified file.
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
