"""``hpcgym demo``: a week of a machine, and why one of its jobs waited."""

from __future__ import annotations

from typing import Annotated

import click

from hpcgym.cli.explore import explained_sheet, serve
from hpcgym.cli.groups import Option
from hpcgym.cli.running import explained, note
from hpcgym.cli.tables import Sheet
from hpcgym.progress import working
from hpcgym.report.tables import metrics_of

#: The week: 1,000 jobs of 49 users on 128 processors, of a model of real logs.
WEEK = "lublin:jobs=1000,processors=128,load=0.85,seed=3"
SCHEDULERS = ("easy", "saf")
_SECONDS = 2.0  # that the explanation of the job takes at most


@explained()
def demo(
    *,
    port: Annotated[int, Option(type=click.IntRange(0, 65535))] = 0,
    browser: Annotated[bool, Option("--browser/--no-browser")] = True,
    text: bool = False,
) -> None:
    """See a week of a machine under two rules, and why one job waited.

    The week is generated: 1,000 jobs of 49 users on 128 processors. EASY serves them in the order
    in which they came, and lets others start early if they do not delay the first. SAF takes the
    job with the smallest area first: requested time x processors. The app shows each job, and
    begins with the one that waited longest under EASY. Ctrl-C ends it.

    Output
    ------
    port N : Port of the app. [default: a free one]
    browser : Open the app in the web browser.
    text : Print what the app begins with, and end.

    Examples
    --------
    hpcgym demo
    hpcgym demo --port 8123 --no-browser
    hpcgym demo --text
    """
    from hpcgym.explanation import explain
    from hpcgym.study.compared import compare

    with working("simulating a week"):
        compared = compare(WEEK, SCHEDULERS)
    results = dict(compared.results)
    easy = results["easy"]
    longest = int(easy.workload.job_number[easy.wait.argmax()])
    if not text:
        serve(results, ["hpcgym", "simulate", WEEK], port, browser, job=longest)
        return
    Sheet([f"{easy.workload.name}: a week"], [metrics_of(results)]).print()
    click.echo()
    explanation = explain(easy, longest, seconds=_SECONDS)
    explained_sheet(explanation, easy.workload.name, "easy", []).print()
    note("\nhpcgym demo shows it in your browser; your own log: hpcgym explore LOG")
