"""``hpcgym explore`` and ``hpcgym index``: pages of schedules, and of the results in a folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcgym.cli import loading, names, options, output
from hpcgym.cli.files import Written
from hpcgym.cli.groups import grouped
from hpcgym.cli.lineup import scheduler_names, simulated_each
from hpcgym.cli.running import note
from hpcgym.errors import HpcgymError
from hpcgym.progress import working

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


# --- ``hpcgym explore`` ---------------------------------------------------------------------------


@grouped(brief=names.OF_SIMULATING)
def explore(
    workload: str,
    *,
    scheduler: list[str] | None = None,
    rules: options.SimulatedRules,
    reading: loading.PeriodReading,
    output_file: Annotated[
        Path | None,
        typer.Option("--output"),
        Written("page or trace", (".html", ".json", ".json.gz")),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser")] = True,
    force: bool = False,
) -> None:
    """Look into a schedule down to each job: zoom, pick jobs, compare two schedulers.

    With --output it is one file to keep or to send. Without, it is a live app on this machine
    alone, until Ctrl-C. Sliders change order, backfilling, estimates, threshold, hold and the size
    of the machine, and the schedule follows. A click on a job says why it waited.

    Scheduler
    ---------
    scheduler NAME... : One scheduler or several; two at a time are shown, one above the other. The
        live app takes one or two, and its sliders change the second. [default: easy]

    Output
    ------
    output_file FILE : Write a page, .html, that shows the schedules without hpcgym and without a
        network; or a trace of events for Perfetto, .json or .json.gz. Without it the live app is
        opened.
    port N : Port of the live app. [default: a free one]
    browser : Open the live app in the web browser.

    Examples
    --------
    hpcgym explore KTH-SP2
    hpcgym explore KTH-SP2 --week 12 --scheduler easy,saf
    hpcgym explore KTH-SP2 --scheduler easy,saf --output kth.html
    hpcgym explore KTH-SP2 --output kth.json.gz
    hpcgym explore lublin:jobs=5000,processors=128,load=1.1 --port 8123 --no-browser
    hpcgym explore eurora:days=7 --cluster eurora --output eurora.html
    """
    outcome = explored(workload, scheduler, rules, reading)
    if output_file is None:
        _serve(outcome.results, loading.simulating(workload, reading), port, browser)
        return
    with working(f"writing {output_file}"):
        output.draw(outcome.results, output_file, report=outcome.report)
    note(f"wrote {output_file}")


def explored(
    workload: str,
    scheduler: list[str] | None,
    rules: options.SimulatedRules,
    reading: loading.PeriodReading,
) -> output.Outcome:
    """Return what the command computes, which prints nothing; arguments as of :func:`explore`."""
    called = scheduler_names(scheduler) or ["easy"]
    results = simulated_each(called, workload, rules, reading)
    return output.Outcome(results, dict, list, lambda: None, report=False)


def _serve(results: Mapping[str, Result], command: list[str], port: int, browser: bool) -> None:
    """Serve the live app until Ctrl-C."""
    import webbrowser

    from hpcgym.explore.live import Server, Session

    try:
        server = Server(Session(results, command), port)
    except OSError as error:
        raise HpcgymError(f"--port {port}: {error.strerror or error}") from None
    with server:
        typer.echo(server.address)
        sys.stdout.flush()  # who started the program reads the address from it
        note("for this machine alone; Ctrl-C ends it")
        if browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            note("ended")


# --- ``hpcgym index``: a page about the results in a folder ---------------------------------------


@grouped()
def index(
    results: Path,
    output: Annotated[Path, Written("page", (".html",))],
    force: bool = False,
) -> None:
    """Write a page with a row for each schedule in the files of a folder, and links to them.

    It reads the records of the files: when they were written, by which command, for which jobs,
    with which scheduler and metrics. Files without a record are named below the table. A click on a
    heading sorts.

    Arguments
    ---------
    results FOLDER : Folder of results.
    output OUTPUT : Page to write: .html.

    Examples
    --------
    hpcgym index results results/index.html
    hpcgym index results results/index.html --force
    """
    from hpcgym.explore.document import indexed, write_index

    with working(f"reading {results}"):
        found = indexed(results, but=output)  # which may be there already
        write_index(found, output, results.resolve().name)
    without = f", {len(found.others):,} without a record" if found.others else ""
    note(f"wrote {output}: {len(found.records):,} files{without}")
