"""``hpcgym simulate``: one workload, one scheduler."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hpcgym.cli import completion, coscheduling, limits, loading, names, options, output, signals
from hpcgym.cli.figures import FigureOptions
from hpcgym.cli.files import SCHEDULE, ForceOption
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.own_rules import failures_in_a_line, own_hold_told
from hpcgym.cli.running import ExplainedCommand, Lists
from hpcgym.cli.streams import is_standard_output
from hpcgym.files.recorded import KEY
from hpcgym.progress import working

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


class Simulate(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym simulate lublin:jobs=10000,load=0.9",
        "hpcgym simulate KTH-SP2 --clean glesser --passes per-event --format json",
        "hpcgym simulate trace.swf.gz --policy saf --backfill-order spf --threshold 72000",
        "hpcgym simulate trace.swf.gz --estimate ave2 --correction incremental",
        "hpcgym simulate KTH-SP2 --scheduler saf --policy-estimate user-ratio",
        "hpcgym simulate KTH-SP2 --scheduler fairshare --fair-share half_life_s=86400",
        "hpcgym simulate KTH-SP2 --week 12 --html week12.html --output schedule.swf",
        "hpcgym simulate KTH-SP2 --from 7257600 --to 7862400 --scheduler fairshare",
        "hpcgym simulate eurora:days=7 --cluster eurora --allocation best-fit --output jobs.csv",
        "hpcgym simulate eurora:jobs=200 --cluster eurora --scheduler pcp20 --estimate ave2",
        "hpcgym simulate lublin:jobs=1000,processors=192 --cluster taurus --carbon grid.csv",
        "hpcgym simulate lublin:jobs=1000,processors=80640 --cluster curie --power mix --cap"
        " percent=60,start=90000,end=93600",
        "hpcgym simulate lublin:jobs=1000,processors=192 --cluster taurus --failures failures.csv",
        "hpcgym simulate codes:jobs=500,processes=256 --cluster 100x2x24 --speedups generated"
        " --scheduler easy-co",
        "hpcgym simulate KTH-SP2 --cluster 25x2x2 --speedups pairs.csv --codes 1 --scheduler"
        " filler-co --pairs-above 1 --pair-estimate learned",
    )
    lists: ClassVar[Lists] = {
        "Schedulers (--scheduler), the names of bundles of the other options": names.schedulers,
        "Dispatchers (--scheduler), which say themselves what starts": names.dispatchers,
        "Co-schedulers (--scheduler), with --speedups: half-socket allocation": names.coschedulers,
        "Policies (--policy, --backfill-order)": names.policies,
        "Names in expressions (--policy, --backfill-order)": names.in_expressions,
        "Policies (--policy) with --speedups": names.shared_policies,
        "Estimates of run times (--estimate, --policy-estimate)": names.estimates,
        **names.OF_READING,
    }


@grouped
def simulate(
    workload: loading.WorkloadArgument,
    *,
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Scheduler to begin with, or a dispatcher; see the lists below. Or module:name,"
            " one of your own: a function is a dispatcher. Or a file: TOML, or a slurm.conf, with"
            " QOS as slurm.conf:qos=qos.txt.",
            rich_help_panel="Scheduler",
            autocompletion=completion.schedulers,
        ),
    ] = "easy",
    rules: options.SimulatedRules,
    reading: loading.PeriodReading,
    format: options.FormatOption = Format.table,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write the schedule: .swf, .swf.gz, .csv, .json or .parquet. The last three have"
            " the nodes of jobs on a machine with nodes: 3:2 4:1 are two units on node 3, one on"
            " 4. - prints it alone, in the form of --format; a table is SWF.",
            show_default=False,
            rich_help_panel="Output",
        ),
        SCHEDULE,
    ] = None,
    failures: loading.FailuresOption = None,
    picture: options.PictureOption = None,
    html: options.HtmlOption = None,
    paper: FigureOptions,
    force: ForceOption = False,
    under: limits.LimitOptions,
    signal: signals.SignalOptions,
    shared: coscheduling.SharingOptions,
) -> None:
    """Simulate one scheduler or dispatcher on a workload and print its metrics."""
    outcome = simulated(workload, scheduler, rules, reading, failures, under, signal, shared)
    ((name, result),) = outcome.results.items()
    output.save_schedule(name, result, output_file)
    for path in (picture, html):
        output.picture(outcome.results, path)
    paper.write(partial(output.save_figures, outcome.results))
    if is_standard_output(output_file):
        return
    if format is Format.json:
        output.print_json(outcome.facts())
    elif format is Format.csv:
        output.print_csv(outcome.rows())
    else:
        _print_table(name, result)


def simulated(
    workload: str,
    scheduler: str,
    rules: options.SimulatedRules,
    reading: loading.PeriodReading,
    failures: Path | None,
    under: limits.LimitOptions,
    signal: signals.SignalOptions,
    shared: coscheduling.SharingOptions,
) -> output.Outcome:
    """Return what the command computes; arguments as those of :func:`simulate`."""
    machine = reading.machine
    shared_rules = shared.given()
    overrides = shared_rules | rules.given() | reading.given() | under.given()
    with own_hold_told(scheduler):
        chosen = options.rules(scheduler, overrides)  # a wrong name is said before the work
    asked = under.read(machine)
    sharing = shared.read(machine, limited=asked is not None)
    coscheduling.check(sharing, {scheduler: chosen}, shared_rules)
    change = None if sharing is None else sharing.with_codes
    jobs = reading.load(workload, schedulers=[chosen], change=change)
    grid = signal.read(jobs, machine)
    kept = limits.following(asked, grid, machine)

    from hpcgym.baselines.labels import scheduler_name
    from hpcgym.schedule.provenance import provenance_of
    from hpcgym.simulation.run import simulate as run

    pairs = None if sharing is None else sharing.speedups
    with (
        working(f"simulating {len(jobs):,} jobs"),
        failures_in_a_line(chosen),
        own_hold_told(scheduler),
    ):
        result = run(jobs, chosen, cluster=machine, limits=kept, speedups=pairs, failures=failures)
        signals.add_metrics(result, grid)
    name = scheduler_name(result.scheduler)

    def facts() -> dict[str, Any]:
        found = output.workload_facts(jobs, reading.clean) | output.machine_facts(jobs, machine)
        found |= {} if sharing is None else sharing.facts()
        found |= output.result_facts(name, result)
        return {**found, KEY: provenance_of({name: result})}

    def rows() -> list[dict[str, Any]]:
        return [output.csv_row(jobs, machine, name, result)]

    return output.Outcome({name: result}, facts, rows)


def _print_table(name: str, result: Result) -> None:
    """Print a result for people."""
    from hpcgym.baselines.labels import describe
    from hpcgym.report.labels import subtitle
    from hpcgym.report.tables import rich_metrics
    from hpcgym.report.words import limits_in_words

    out = output.console()
    out.print(subtitle({name: result}), style="bold", markup=False)
    if (rules := describe(result.scheduler)) != name:
        out.print(rules, markup=False)
    if limits_kept := limits_in_words(result):
        out.print(f"limits: {limits_kept}", markup=False)
    output.print_cleaning(out, result.workload)
    out.print()
    out.print(rich_metrics(result))
    output.print_dispatches(out, {name: result})
    output.print_moved(out, {"": result})
