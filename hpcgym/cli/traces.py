"""``hpcgym traces``: the Parallel Workloads Archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpcgym.cli import loading, output
from hpcgym.cli.running import Commands, note
from hpcgym.cli.tables import Format, Sheet, of_rows, show
from hpcgym.errors import HpcgymError
from hpcgym.progress import working
from hpcgym.report.cells import Table
from hpcgym.words import counted, shown

if TYPE_CHECKING:
    from hpcgym.report.figures import Drawing
    from hpcgym.workload import Workload
    from hpcgym.workload.archive import Trace


# --- What ``hpcgym traces show`` prints of a workload for people ----------------------------------

_BAR = 24  # characters of the longest bar
_LABELS = {
    "run_time_s": "run time [s]",
    "processors_of_jobs": "processors of jobs",
    "wait_s": "wait as recorded [s]",
}
_ESTIMATES = {
    "mean_accuracy": "run over requested time, mean",
    "median_accuracy": "the same, median",
    "exact": "requests that are the run time",
    "below_a_tenth": "runs below a tenth of the request",
    "killed": "runs cut at the request",
}


def _summary(workload: Workload, facts: Mapping[str, Any], warnings: Iterable[str]) -> Sheet:
    """Return what a workload is like, and what is odd of it, for people."""
    load = "" if facts["load"] is None else f" · load {facts['load']:.3g}"
    jobs, processors = counted(facts["jobs"], "job"), counted(facts["processors"], "processor")
    return Sheet(
        [
            f"{facts['name']} · {jobs} · {processors} · {facts['days']:.4g} days{load}",
            *([] if facts["begin"] is None else [f"first submission {facts['begin']}"]),
            f"SHA-256 of the jobs {facts['sha256_of_jobs']}",
            *_nodes(workload),
            *(
                f"{name}: {counted(of['jobs'], 'job')} of up to {of['most']:,}, {of['hours']:,.4g}"
                f" {name} hours"
                for name, of in facts["resources"].items()
            ),
            "status: " + ", ".join(f"{jobs:,} {name}" for name, jobs in facts["status"].items()),
            *output.cleaning_of(workload),
            *(f"warning: {line}" for line in warnings),
        ],
        [*_tables(facts)],
    )


def _nodes(workload: Workload) -> list[str]:
    """Return of how many jobs a site's log tells the nodes, and what holds for the others."""
    from hpcgym.workload.io.log_lines import ANYWHERE

    guessed = workload.cleaning.get(ANYWHERE, 0)
    if not guessed:
        return []
    others = f"the cores of the {guessed:,} others may lie on any"
    return [f"nodes: told of {len(workload) - guessed:,} jobs; {others}"]


def _tables(facts: Mapping[str, Any]) -> Iterator[Table]:
    """Return the tables of a summary."""
    from hpcgym.workload.summary import SHARES

    spreads = {label: facts[key] for key, label in _LABELS.items() if facts[key] is not None}
    rows = [
        [name, *(shown(value) for value in spread.values())] for name, spread in spreads.items()
    ]
    yield Table(("", "mean", "median", "95 %", "maximum"), rows)
    widths = [
        *(
            (width["processors"], width["jobs"], width["area"])
            for width in facts["widths"]["classes"]
        ),
        ("powers of 2", facts["widths"]["powers_of_2"], None),
    ]
    rows = [[name, *map(_percent, shares)] for name, *shares in widths]
    yield Table(("processors", "of jobs", "of processor time"), rows)
    rows = [[label, _percent(facts["estimates"][key])] for key, label in _ESTIMATES.items()]
    yield Table(("requested times", ""), rows)
    if facts["arrivals"] is not None:
        hours = {f"{hour:02} h": jobs for hour, jobs in enumerate(facts["arrivals"]["hours"])}
        days = facts["arrivals"]["weekdays"]
        for title, jobs in (("submitted by hour", hours), ("by weekday", days)):
            most = max(*jobs.values(), 1)
            bars = [[name, "█" * round(_BAR * n / most), f"{n:,}"] for name, n in jobs.items()]
            yield Table((title, "", "jobs"), bars, 2)
    for key in SHARES:
        shares = facts[key]
        if shares["number"] > (key != "users"):
            title = f"{shares['number']:,} {key if shares['number'] > 1 else key[:-1]}"
            first = shares["first"]
            rows = [
                [share["name"], f"{share['jobs']:,}", _percent(share["area"])] for share in first
            ]
            yield Table((title, "jobs", "of processor time"), rows)


def _drawings(facts: Mapping[str, Any]) -> dict[str, Drawing]:
    """Return how wide jobs are, and when they were submitted."""
    from hpcgym.report.figures import of_shares

    widths = {
        str(width["processors"]): {"jobs": 100 * width["jobs"]}
        for width in facts["widths"]["classes"]
    }
    drawings = {"processors": of_shares(widths, "% of jobs, by their processors")}
    if facts["arrivals"] is not None:
        hours = {f"{hour} h": jobs for hour, jobs in enumerate(facts["arrivals"]["hours"])}
        for name, jobs in (("hour", hours), ("weekday", facts["arrivals"]["weekdays"])):
            rows = {str(heading): {"jobs": float(number)} for heading, number in jobs.items()}
            drawings[f"{name}s"] = of_shares(rows, f"submitted jobs, by {name}")
    return drawings


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


# --- ``hpcgym traces``: the Parallel Workloads Archive --------------------------------------------


@click.group(cls=Commands)
def traces() -> None:
    """List, show and fetch real traces.

    The traces are those of the Parallel Workloads Archive. A trace is looked for in the folders
    that HPCGYM_DATA names, then in the user's cache, where fetched ones are kept. Commands fetch
    the traces that they need. Other SWF files in these folders are traces too: NAME.swf.gz is NAME.
    """


@traces.command("list")
def list_traces(format: Format = Format.table) -> None:
    """List the traces that can be named instead of a file.

    Examples
    --------
    hpcgym traces list
    hpcgym traces list --format csv
    """
    from hpcgym.workload.archive import TRACES, data_folders, own_traces

    data_folders()  # a wrong name in HPCGYM_DATA is said once, not for each trace
    rows = [_facts(trace) for trace in TRACES.values()]
    named = {row["path"] for row in rows}
    rows += [_own(name, path) for name, path in own_traces().items() if str(path) not in named]
    columns = ("name", "system", "period", "on this machine", "processors", "jobs")
    here = [{**row, "on this machine": row["path"] is not None} for row in rows]
    notes = [f"{row['name']}: {row['note']}" for row in rows if row["note"]]
    show(format, lambda: Sheet([], [of_rows(here, *columns)], notes), lambda: rows)


@traces.command("show")
def show_trace(
    workload: str,
    *,
    reading: loading.ShownReading,
    how: output.ResultOptions,
) -> None:
    """Show what a trace, or a log of your own, is like: its machine, load, jobs and users.

    Also show what makes results doubtful: the assumed size of the machine, exact requests, jobs
    that were dropped or repaired. For a trace of the archive, show its origin too.

    Arguments
    ---------
    workload NAME|FILE :

    Examples
    --------
    hpcgym traces show KTH-SP2
    hpcgym traces show jobs.txt --tz Europe/Berlin
    """
    from hpcgym.workload.archive import find_own, is_trace
    from hpcgym.workload.io.files import sha256_of

    facts = _origin(workload) if is_trace(workload) else {}
    if not facts and (own := find_own(workload)):
        facts |= {"path": str(own), "sha256": sha256_of(own)}
    facts_of_jobs: dict[str, Any] = {}
    if not facts or facts["path"] is not None:
        jobs, facts_of_jobs = _summarised(workload, reading)

    def sheet() -> Sheet:
        summary = (
            _summary(jobs, facts_of_jobs, facts_of_jobs["warnings"])
            if facts_of_jobs
            else Sheet([], [])
        )
        origin = {**facts, "path": facts["path"] or "not on this machine"} if facts else {}
        lines = [f"{key}: {value}" for key, value in origin.items() if value is not None]
        return Sheet([*lines, *summary.above], summary.tables)

    single = (str, int, float, type(None))
    how.show(
        output.CommandResult(
            sheet=sheet,
            rows=lambda: [
                {**facts, **{k: v for k, v in facts_of_jobs.items() if isinstance(v, single)}}
            ],
            facts=lambda: {**facts, **facts_of_jobs},
            workloads=[jobs] if facts_of_jobs else [],
            drawings=lambda: _drawings(facts_of_jobs) if facts_of_jobs else {},
        )
    )


def _summarised(source: str, reading: loading.ShownReading) -> tuple[Workload, dict[str, Any]]:
    """Return the cleaned jobs, and what they are like, with the warnings of their reader."""
    import warnings

    from hpcgym.errors import WorkloadWarning
    from hpcgym.workload.fingerprint import workload_digest
    from hpcgym.workload.summary import oddities, summary

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WorkloadWarning)
        with working(f"reading {source}"):
            jobs, raw = reading.read(source, processors=reading.processors, cluster=reading.machine)
    said = [
        str(warning.message) for warning in caught if issubclass(warning.category, WorkloadWarning)
    ]
    odd = [*said, *oddities(jobs, raw)]
    facts = {**summary(jobs), "sha256_of_jobs": workload_digest(jobs)}
    return jobs, {**facts, "cleaning": dict(jobs.cleaning), "warnings": odd}


def _origin(name: str) -> dict[str, Any]:
    """Return where a trace of the archive comes from; the checksum is of the file here, if any."""
    from hpcgym.workload.archive import find_trace
    from hpcgym.workload.io.files import sha256_of

    trace = find_trace(name)
    facts = _facts(trace)
    here = facts["path"]
    return {
        **facts,
        "file": trace.file,
        "url": trace.url,
        "page": trace.page,
        "sha256": trace.sha256 if here is None else sha256_of(Path(here)),
    }


@traces.command("fetch")
def fetch_traces(
    names: list[str],
) -> None:
    """Fetch traces into the user's cache and print their paths.

    Arguments
    ---------
    names NAME... :

    Examples
    --------
    hpcgym traces fetch KTH-SP2 SDSC-SP2
    """
    from hpcgym.workload.archive import fetch, find_trace

    for trace in [find_trace(name) for name in names]:  # a wrong name is said before a download
        click.echo(fetch(trace.name))


def _facts(trace: Trace) -> dict[str, Any]:
    """Return a trace as a row of the list."""
    from hpcgym.workload.archive import find

    try:
        path = find(trace.name)
    except HpcgymError as error:
        note(f"hpcgym: {error}")
        path = None
    return {
        "name": trace.name,
        "system": trace.system,
        "processors": trace.processors,
        "jobs": trace.jobs,
        "period": trace.period,
        "path": None if path is None else str(path),
        "note": trace.note or None,
    }


def _own(name: str, path: Path) -> dict[str, Any]:
    """Return an SWF file of the user's as a row of the list; what it holds is not read."""
    unknown = dict.fromkeys(("system", "processors", "jobs", "period"))
    return {"name": name, **unknown, "path": str(path), "note": None}
