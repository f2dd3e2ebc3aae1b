"""``hpcgym compare``: one workload, several schedulers."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

from hpcgym.cli import coscheduling, loading, names, options, output
from hpcgym.cli.files import ForceOption
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, Lists
from hpcgym.errors import HpcgymError, check_each_once
from hpcgym.progress import counting

#: Schedulers that are compared if none is named.
DEFAULT = ("fcfs", "easy", "easy-sjbf", "easy++", "saf", "conservative")
#: The same beside all co-schedulers; the others are compared with the first.
SHARED_DEFAULT = ("easy", "fcfs", "conservative", *names.COSCHEDULERS)


class Compare(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym compare lublin:jobs=10000,load=0.9",
        "hpcgym compare KTH-SP2 --scheduler easy --scheduler saf --picture kth.png",
        "hpcgym compare KTH-SP2 --scheduler easy,saf,saf:threshold=288000,saf:hold=0.1",
        "hpcgym compare KTH-SP2 --week 12 --scheduler easy,easy-sjbf,easy++ --html week12.html",
        "hpcgym compare trace.swf.gz --passes per-event --format csv > trace.csv",
        "hpcgym compare eurora:jobs=200 --cluster eurora --scheduler easy,prb,sdprb,pcp20",
        "hpcgym compare codes:jobs=500,processes=256 --cluster 100x2x24 --speedups generated",
        "hpcgym compare SDSC-SP2 --cluster 8x2x8 --speedups aris.json --codes 1 --scheduler"
        " easy,easy-co,filler-co --pairs-above 1",
    )
    lists: ClassVar[Lists] = {
        "Schedulers (--scheduler)": names.schedulers,
        "Dispatchers (--scheduler), which say themselves what starts": names.dispatchers,
        "Co-schedulers (--scheduler), with --speedups": names.coschedulers,
        "Machines (--cluster)": names.machines,
        "Cleaning recipes and filters (--clean)": names.recipes,
    }


@grouped
def compare(
    workload: loading.WorkloadArgument,
    *,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Scheduler or dispatcher of the lists below, a scheduler also with other rules, as"
            " in saf:threshold=18000,hold=0.1; several times, or several joined by commas.",
            show_default=f"{','.join(DEFAULT)}; with --speedups easy, fcfs, conservative and all"
            " co-schedulers",
        ),
    ] = None,
    passes: options.PassesOption = None,
    fair_share: options.FairShareOption = None,
    reading: loading.PeriodReading,
    format: options.FormatOption = Format.table,
    picture: options.PictureOption = None,
    html: options.HtmlOption = None,
    force: ForceOption = False,
    shared: coscheduling.SharingOptions,
) -> None:
    """Simulate several schedulers or dispatchers and mark the best of each metric.

    With --speedups, --allocation, --partners, --pairs-above and --pair-estimate are for schedulers
    whose jobs share nodes: others, such as easy, stay as they are to be compared with. The first
    scheduler is that over which makespans improve.
    """
    machine = reading.machine
    shared_rules = shared.given()
    sharing = shared.read(machine)
    overrides = options.given(passes=passes, allocation=reading.allocation)
    if sharing is not None:
        shared_rules |= options.given(allocation=overrides.pop("allocation", None))
    chosen = {name: options.rules(name, overrides) for name in _names(scheduler, sharing)}
    chosen = {
        name: rules.but(**shared_rules) if rules.parts > 1 else rules
        for name, rules in chosen.items()
    }
    coscheduling.check(sharing, chosen, shared_rules)
    from hpcgym.scheduler.usage import check_fair_share

    by_usage = {name: rules for name, rules in chosen.items() if any(rules.usage_orders)}
    check_fair_share(fair_share, bool(by_usage))
    chosen |= {name: rules.but(fair_share=fair_share) for name, rules in by_usage.items()}
    jobs = reading.load(workload, None if sharing is None else sharing.with_codes)

    from hpcgym.simulation.run import simulate as run

    results = {}
    with counting("simulating", len(chosen)) as step:
        for name, rules in chosen.items():
            step(f"simulating {name}")
            pairs = None if sharing is None else sharing.speedups
            results[name] = run(jobs, rules, cluster=machine, speedups=pairs)
    if sharing is not None:
        coscheduling.add_improvement(results)
    for path in (picture, html):
        output.picture(results, path)
    if format is Format.json:
        entries = [output.result_facts(name, result) for name, result in results.items()]
        facts = output.workload_facts(jobs, reading.clean) | output.machine_facts(jobs, machine)
        facts |= {} if sharing is None else sharing.facts()
        output.print_json({**facts, "results": entries})
    elif format is Format.csv:
        output.print_csv(
            output.csv_row(jobs, machine, name, part) for name, part in results.items()
        )
    else:
        from hpcgym.report.labels import subtitle
        from hpcgym.report.tables import rich_comparison

        out = output.console()
        out.print(subtitle(results), style="bold", markup=False)
        output.print_cleaning(out, jobs)
        out.print()
        out.print(rich_comparison(results))
        output.print_dispatches(out, results)


def _names(given: list[str] | None, sharing: coscheduling.Sharing | None) -> list[str]:
    """Return the names of schedulers, which differ."""
    if not given:
        return list(DEFAULT if sharing is None else SHARED_DEFAULT)
    chosen = [name for text in given for name in _split(text)]
    if not chosen:
        raise HpcgymError("--scheduler names no scheduler")
    check_each_once("--scheduler", chosen)
    return chosen


def _split(text: str) -> list[str]:
    """Return names joined by commas; a rule belongs to the variant before it."""
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if found and ":" in found[-1] and "=" in part.partition(":")[0]:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found
