"""``hpcgym explore`` and ``explain``: down to each job of a schedule, and why jobs waited."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from hpcgym.cli import loading, output
from hpcgym.cli.files import Written
from hpcgym.cli.groups import Option
from hpcgym.cli.interrupts import Terminated
from hpcgym.cli.lineup import given_schedulers, simulated_each
from hpcgym.cli.running import explained, note
from hpcgym.cli.tables import Sheet, of_rows, rows_of
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.names import ONCE_CALLED
from hpcgym.progress import measuring, working
from hpcgym.report.cells import Table
from hpcgym.units import HOUR_S
from hpcgym.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.explanation import Explanation
    from hpcgym.report.figures import Drawing
    from hpcgym.schedule.result import Result


# --- ``hpcgym explore`` ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """What is looked into.

    Scheduler
    ---------
    scheduler NAME... : One scheduler or several, also with other rules, as in
        saf:threshold=80h,estimate=ave2, or files; two at a time are shown, one above the other. The
        live app takes one or two, and its sliders change the second. [default: easy]
    """

    workload: str
    scheduler: list[str] | None = None
    reading: loading.PeriodReading

    @property
    def names(self) -> dict[str, str]:
        """The schedulers by what they are called."""
        return given_schedulers(self.scheduler) or {"easy": "easy"}

    def simulated(self, failures: Path | None = None) -> dict[str, Result]:
        """Return the schedules by the names of their schedulers."""
        return simulated_each(self.names, self.workload, self.reading, failures)


@explained()
def explore(
    *,
    exploration: Exploration,
    at: Annotated[Any, Option("--at", type=loading.time_of_log)] = None,
    output_file: Annotated[
        Path | None,
        Option("--output"),
        Written("page", (".html",)),
    ] = None,
    port: Annotated[int, Option(type=click.IntRange(0, 65535))] = 0,
    browser: Annotated[bool, Option("--browser/--no-browser")] = True,
    force: bool = False,
) -> None:
    """Look into a schedule down to each job: zoom, pick jobs, compare two schedulers.

    With --output it is one file to keep or to send. Without, it is a live app on this machine
    alone, until Ctrl-C. Sliders change order, backfilling, estimates, threshold, hold and the size
    of the machine, and the schedule follows. A click on a job says why it waited. The slider below
    the picture is "now": it shows when the jobs that waited then were expected to start.

    Experiment
    ----------
    at TIME : Show what was expected at this time, in the first schedule, of the jobs that waited
        then: in seconds of the log's clock, 84d or 2024-03-05T08:00. [default: the live app's
        slider says]

    Output
    ------
    output_file FILE : Write a page, .html, that shows the schedules without hpcgym and without a
        network. Without it the live app is opened.
    port N : Port of the live app. [default: a free one]
    browser : Open the live app in the web browser.

    Examples
    --------
    hpcgym explore KTH-SP2
    hpcgym explore KTH-SP2 --week 12 --scheduler easy,saf
    hpcgym explore KTH-SP2 --scheduler easy,saf --output kth.html
    hpcgym explore lublin:jobs=5000,processors=128,load=1.1 --port 8123 --no-browser
    hpcgym explore KTH-SP2 --at 84d --output kth.html
    hpcgym explore eurora:days=7 --cluster eurora --output eurora.html
    """
    from hpcgym.explore import write_page

    results = exploration.simulated()
    if output_file is None:
        command = loading.simulating(exploration.workload, exploration.reading)
        serve(results, command, port, browser, at=at)
        return
    with working(f"writing {output_file}"):
        write_page(results, output_file, at=at)
    note(f"wrote {output_file}")


def serve(
    results: Mapping[str, Result],
    command: list[str],
    port: int,
    browser: bool,
    job: int | None = None,
    at: float | str | None = None,
) -> None:
    """Serve the live app until Ctrl-C; it begins with the job of that number, at that time."""
    import webbrowser

    from hpcgym.explore.live import Server, Session

    try:
        server = Server(Session(results, command, at), port)
    except OSError as error:
        raise HpcgymError(f"--port {port}: {error.strerror or error}") from None
    address = server.address if job is None else f"{server.address}#job={job}"
    with server:
        click.echo(address)
        sys.stdout.flush()  # who started the program reads the address from it
        note("for this machine alone; Ctrl-C ends it")
        if browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except Terminated:
            raise
        except KeyboardInterrupt:
            note("ended")


# --- What all jobs of schedules waited for --------------------------------------------------------

_MANY_HOURS = 100 * HOUR_S  # [s]; as hours, and not as days
MOST_ROWS = 15  # of a table for people, but of sizes and weeks; others are one row


def _waited(results: Mapping[str, Result], by: str | None) -> output.CommandResult:
    """Return what all jobs waited for: of one schedule by groups, of several each.

    ``by``: one of :data:`hpcgym.explanation.GROUPS`; None: sizes, or a row a scheduler.
    """
    table = _waits(results, by)
    seconds = table.rename(columns=lambda name: name if name == "jobs" else f"{name}_s")
    rows = rows_of(seconds.reset_index())
    facts = {
        "workload": next(iter(results.values())).workload.name,
        "schedulers": list(results),
        "waited_for": rows,
    }
    return output.CommandResult(
        sheet=lambda: _waits_sheet(table, results),
        rows=lambda: rows,
        facts=lambda: facts,
        results=results,
        drawings=lambda: _drawn_waits(table),
    )


def _drawn_waits(table: pd.DataFrame) -> dict[str, Drawing]:
    """Return the hours of each row by what the jobs waited for."""
    from hpcgym.explanation.explain import shortened
    from hpcgym.explanation.story import CALLED
    from hpcgym.report.figures import of_shares

    reasons = [name for name in CALLED if table[name].any()]
    rows = {
        str(name): {CALLED[reason]: row[reason] / HOUR_S for reason in reasons}
        for name, row in shortened(table, MOST_ROWS).iterrows()
    }
    label = f"hours of waiting, by {str(table.index.name).replace('_', ' ')}"
    return {"waited-for": of_shares(rows, label)} if reasons else {}


def _waits(results: Mapping[str, Result], by: str | None) -> pd.DataFrame:
    """Return what groups of jobs waited for, or all under each of several schedulers."""
    import pandas as pd

    from hpcgym.explanation import waits, waits_by

    waits_of = {}
    for name, result in results.items():
        with measuring(f"looking at each pass of {name}") as progress:
            try:
                waits_of[name] = waits(result, progress)
            except HpcgymError as error:
                raise HpcgymError(f"{name}: {error}") from None
    if len(results) == 1:
        ((name, result),) = results.items()
        return waits_by(result, waits_of[name], by or "requested_processors")
    rows = {name: {"jobs": len(table), **table.sum()} for name, table in waits_of.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("scheduler")


def _waits_sheet(table: pd.DataFrame, results: Mapping[str, Result]) -> Sheet:
    """Return for people how long all waited, and which share of that is due to what."""
    from hpcgym.explanation.explain import refused_at_first, shortened
    from hpcgym.explanation.story import CALLED
    from hpcgym.report.cells import two_lines
    from hpcgym.report.tables import subtitle
    from hpcgym.units import duration

    above = [subtitle(dict(results))]
    seconds = table.drop(columns="jobs").sum()
    total = int(seconds.sum())
    refused = []
    for scheduler, result in results.items():
        jobs, later = refused_at_first(result)
        if jobs:
            refused.append(
                f"{scheduler}: quotas of submitted jobs refused {counted(jobs, 'job')} when the log"
                f" submits them. They came {later / HOUR_S:,.0f} h later in all, which is part of"
                " no wait here."
            )
    if not total:
        return Sheet([*above, "No job waited.", *refused], [])
    if table.index.name != "scheduler":
        text = f"{total / HOUR_S:,.0f} h" if total >= _MANY_HOURS else duration(total)
        above.append(f"All jobs together waited for {text}:")
        for name, spent in seconds[seconds > 0].sort_values(ascending=False).items():
            above.append(f"  {100 * spent / total:5.1f} %  {CALLED[str(name)]}")
    reasons = [name for name in CALLED if table[name].any()]
    lines = []
    for name, row in shortened(table, MOST_ROWS).iterrows():
        spent = sum(int(row[reason]) for reason in reasons)
        parts = [f"{100 * row[reason] / spent:.1f}" if spent else "" for reason in reasons]
        lines.append([str(name), f"{int(row['jobs']):,}", _hours(spent), *parts])
    headings = [str(table.index.name), "jobs", "waited (h)"]
    headings += [two_lines(CALLED[name]) for name in reasons]
    note_on_hours = "Hours are the sum over all jobs of a row, and percentages are of these hours."
    return Sheet(above, [Table(headings, lines)], [note_on_hours, *refused])


def _hours(seconds: int) -> str:
    """Return hours with a digit behind the point, or with two that tell something."""
    hours = seconds / HOUR_S
    return f"{hours:,.1f}" if hours >= 1 or not hours else f"{hours:.2g}"


# --- ``hpcgym explain``: why one job waited, or what all waited for -------------------------------

MOST = 2000  # jobs that are left out, unless --most says otherwise
SECONDS = 20.0  # that this takes, unless --seconds says otherwise


@dataclass(frozen=True, kw_only=True)
class Explained(Exploration):
    """What is explained.

    Scheduler
    ---------
    scheduler NAME... : The scheduler whose schedule is explained, also with other rules, as in
        saf:threshold=80h,estimate=ave2, or a file. If you name others behind it, you see how long
        the same job waits under them. [default: easy]
    """

    failures: Path | None = None


@explained()
def explain(
    *,
    job: str | None = None,
    by: str | None = None,
    most: Annotated[int | None, Option(type=click.IntRange(0), show_default=str(MOST))] = None,
    seconds: Annotated[
        float | None, Option(type=click.FloatRange(0), show_default=f"{SECONDS:g}")
    ] = None,
    explained: Explained,
    how: output.ResultOptions,
) -> None:
    """Say why a job waited, or what all jobs waited for.

    With --job: what the job waited for, which jobs started before it, which jobs delayed it, and
    when it was stopped, if jobs stop others or nodes fail.

    For this, the whole log is simulated again without one job at a time of those that ran while
    this job waited. A job delayed this one if this one starts earlier without it. The result says
    how many jobs were not tried within --seconds.

    Without --job: what all jobs waited for, in hours and shares, in groups by --by.

    Options
    -------
    job ID : The job: its number in the log; in a log of Slurm, JobIDRaw. Default: all jobs.
    by user|group|code|queue|partition|week|requested_processors : Groups of jobs, a row each;
        without --job. Several schedulers have a row each. [default: requested_processors]
    most N : How many other jobs are left out at most, one at a time, to see whether this job starts
        earlier: those with most processor time while it waited.
    seconds S : How long the explanation of one job takes at most.

    Examples
    --------
    hpcgym explain KTH-SP2 --job 4034
    hpcgym explain KTH-SP2 --job 4034 --scheduler easy,saf,conservative
    hpcgym explain trace.swf.gz --job 17 --scheduler saf:threshold=72000 --format json
    hpcgym explain KTH-SP2 --by user
    hpcgym explain KTH-SP2 --scheduler easy,saf,conservative
    """
    from hpcgym.explanation import GROUPS
    from hpcgym.explanation import explain as find

    number = None if job is None else _number(job)
    if by is not None:
        check_choice("--by", ONCE_CALLED.get(by, by), GROUPS)
        if number is None and len(explained.names) > 1:
            raise HpcgymError("--by is for one scheduler: of several, each is a row")
    of_all, of_one = {"--by": by}, {"--most": most, "--seconds": seconds}
    wrong = [
        name for name, value in (of_one if job is None else of_all).items() if value is not None
    ]
    if wrong:
        whose = "one job, with" if job is None else "all jobs, without"
        raise HpcgymError(f"{wrong[0]} is for {whose} --job")
    results = explained.simulated(explained.failures)
    if number is None:
        how.show(_waited(results, by))
        return
    allowed, (first, result) = SECONDS if seconds is None else seconds, next(iter(results.items()))
    with measuring("leaving out jobs") as progress:
        explanation = find(result, number, most=most, seconds=allowed, progress=progress)
    _say_untried(explanation, most, allowed)
    beside = _beside(results, number)
    how.show(
        output.CommandResult(
            sheet=lambda: explained_sheet(explanation, result.workload.name, first, beside),
            rows=lambda: explanation.to_dict()["others"],
            facts=lambda: {**explanation.to_dict(), "schedulers": beside},
            results=results,
            drawings=lambda: _drawn_delays(explanation),
        )
    )


def _drawn_delays(explanation: Explanation) -> dict[str, Drawing]:
    """Return by how much the other jobs delayed a job; nothing if none did."""
    from hpcgym.report.figures import of_shares

    rows = {
        f"job {number}": {"delay": float(row["delay"]) / HOUR_S}
        for number, row in _late(explanation).head(MOST_ROWS).iterrows()
    }
    return {"delays": of_shares(rows, f"delay of job {explanation.job} (hours)")} if rows else {}


def _late(explanation: Explanation) -> pd.DataFrame:
    """Return the jobs that delayed a job, the greatest delay first."""
    others = explanation.others
    return others[others["delay"].fillna(0) > 0].sort_values("delay", ascending=False)


def _say_untried(explanation: Explanation, most: int | None, seconds: float) -> None:
    """Say what there was no time for."""
    tried = int(explanation.others["delay"].notna().sum())
    left = min(len(explanation.others), MOST if most is None else most) - tried
    if tried and left:
        note(
            f"{counted(left, 'job')} could not be tried within {seconds:g} s, of those that used"
            " least while it waited; --seconds gives more time"
        )


def _number(job: str) -> int:
    """Return the number of a job."""
    if not (job.isascii() and job.isdecimal()):
        raise HpcgymError(
            f"--job takes the number of a job, not {job!r}: tasks of arrays have one too, sacct's"
            " JobIDRaw"
        )
    return int(job)


def _beside(results: dict[str, Result], job: int) -> list[dict[str, Any]]:
    """Return the start and the wait of a job under each scheduler; of several runs the last."""
    import numpy as np

    rows = []
    for name, result in results.items():
        row = int(np.flatnonzero(result.workload.job_number == job)[-1])
        facts = {"start_time": result.start[row].item(), "wait_time": result.wait[row].item()}
        rows.append({"scheduler": name, **facts, "backfilled": bool(result.backfilled[row])})
    return rows


def explained_sheet(
    explanation: Explanation, log: str, scheduler: str, beside: list[dict[str, Any]]
) -> Sheet:
    """Return an explanation for people: sentences first, figures behind."""
    from hpcgym.units import duration

    above = [f"Job {explanation.job} of {log} under {scheduler}", *explanation.sentences]
    late, tables = _late(explanation), []
    if len(late):
        submit = explanation.facts["submit_time"]
        rows = [
            {
                "job": str(number),
                "processors": f"{row['requested_processors']:,}",
                "started": f"{duration(abs(when))} {'after' if when >= 0 else 'before'} it came",
                "ran for": duration(row["end_time"] - row["start_time"]),
                "delay": duration(int(row["delay"])),
            }
            for number, row in late.head(10).iterrows()
            for when in [row["start_time"] - submit]
        ]
        tables.append(of_rows(rows, title="Who delayed it, and by how much:"))
    if len(beside) > 1:
        shown = [{**row, "wait": duration(row["wait_time"])} for row in beside]
        if (past := explanation.facts["recorded_wait_time"]) is not None:
            shown.append({"scheduler": "recorded", "wait": duration(past), "backfilled": ""})
        title = "The same job under other schedulers:"
        tables.append(of_rows(shown, "scheduler", "wait", "backfilled", title=title))
    return Sheet(above, tables)
