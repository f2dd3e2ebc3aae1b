"""``hpcgym compare``: one workload, several schedulers, rules and sizes of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from hpcgym.cli import completion, coscheduling, limits, loading, names, options, output, signals
from hpcgym.cli.bounds import check_simulations
from hpcgym.cli.figures import FigureOptions
from hpcgym.cli.files import ForceOption
from hpcgym.cli.fitting import print_table
from hpcgym.cli.groups import Several, grouped
from hpcgym.cli.lineup import choices_of, leave_out, lineup, pair_rules, scheduler_names
from hpcgym.cli.options import Format
from hpcgym.cli.own_rules import failures_in_a_line, own_hold_told
from hpcgym.cli.running import ExplainedCommand, Lists
from hpcgym.errors import ApartError, HpcgymError, reworded
from hpcgym.files.recorded import KEY
from hpcgym.progress import counting

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.rules import Scheduler

#: Schedulers that are compared if none is named.
DEFAULT = ("fcfs", "easy", "easy-sjbf", "easy++", "saf", "conservative")
#: Those of them that cannot keep limits of power and energy.
UNLIMITED = ("conservative",)
#: The same beside all co-schedulers; the others are compared with the first.
SHARED_DEFAULT = ("easy", "fcfs", "conservative", *names.COSCHEDULERS)


class Compare(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym compare KTH-SP2 --scheduler easy,saf,saf:threshold=288000",
        "hpcgym compare KTH-SP2 --week 12 --scheduler easy,easy-sjbf,easy++ --html week12.html",
        "hpcgym compare lublin:jobs=10000,load=0.9 --format csv > six.csv",
        "hpcgym compare KTH-SP2 --policy saf,spf --policy 'wait - area' --estimate requested,ave2",
        "hpcgym compare KTH-SP2 --processors 100,128 --scheduler easy,saf --picture sizes.png",
        "hpcgym compare KTH-SP2 --scheduler easy,saf --figures figures --figures-width 7.2",
        "hpcgym compare eurora:jobs=200 --cluster eurora --scheduler easy,prb,sdprb,pcp20",
        "hpcgym compare codes:jobs=500,processes=256 --cluster 100x2x24 --speedups generated",
    )
    brief: ClassVar[Lists] = {
        "Schedulers (--scheduler)": names.schedulers,
        "Dispatchers (--scheduler), which say themselves what starts": names.dispatchers,
        "Co-schedulers (--scheduler), with --speedups": names.coschedulers,
        "Policies (--policy, --backfill-order)": names.policies,
        "Estimates of run times (--estimate, --policy-estimate)": names.estimates,
        **names.OF_READING,
    }


@dataclass(frozen=True, eq=False)
class Setting:
    """One machine, what holds on it, and what it is called if there are several."""

    size: str
    reading: loading.PeriodReading
    asked: tuple[limits.Asked, ...] | None
    sharing: coscheduling.Sharing | None

    @property
    def machine(self) -> Cluster | None:
        """The machine; None: a pool, of which the workload knows the size."""
        return self.reading.machine

    def labelled(self, text: str) -> str:
        """Return a text with the machine behind it, if there are several."""
        return f"{text} on {self.size}" if self.size else text


class Row(NamedTuple):
    """One scheduler on one machine."""

    name: str
    setting: Setting
    result: Result

    @property
    def label(self) -> str:
        """What it is called in tables and pictures."""
        return self.setting.labelled(self.name)


@grouped
def compare(
    workload: loading.WorkloadArgument,
    *,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME...",
            help="Scheduler or dispatcher of the lists below, or one of your own, module:name (a"
            " function is a dispatcher). A scheduler may have other rules,"
            " as in saf:threshold=18000,hold=0.1.",
            show_default=f"{','.join(DEFAULT)}; with --policy EASY with each; with --speedups easy,"
            " fcfs, conservative and all co-schedulers",
            rich_help_panel="Scheduler",
            autocompletion=completion.schedulers,
        ),
    ] = None,
    rules: Several[options.SimulatedRules],
    reading: Annotated[Several[loading.PeriodReading], "processors", "cluster", "allocation"],
    format: options.FormatOption = Format.table,
    picture: options.PictureOption = None,
    html: options.HtmlOption = None,
    paper: FigureOptions,
    force: ForceOption = False,
    under: Annotated[Several[limits.LimitOptions], "power"],
    signal: signals.SignalOptions,
    shared: Annotated[
        Several[coscheduling.SharingOptions], "partners", "pairs_above", "pair_estimate"
    ],
) -> None:
    """Simulate several schedulers or dispatchers and mark the best of each metric.

    Options with ... take several values, also joined by commas: each scheduler is simulated under
    each value, and rows are named as in "saf, threshold=18000". A single value changes all
    schedulers. --policy without --scheduler means EASY with each policy. docs/comparing.md says
    which rules change which schedulers. A scheduler that cannot keep a rule is left out, with the
    reason.
    """
    rows = _compared(workload, scheduler, rules, reading, under, signal, shared)
    outcome = _outcome(rows)
    for path in (picture, html):
        output.picture(outcome.results, path)
    paper.write(partial(output.save_figures, outcome.results))
    if format is Format.json:
        output.print_json(outcome.facts())
    elif format is Format.csv:
        output.print_csv(outcome.rows())
    else:
        _print_table(rows)


def compared(
    workload: str,
    scheduler: list[str] | None,
    rules: Several[options.SimulatedRules],
    reading: Several[loading.PeriodReading],
    under: Several[limits.LimitOptions],
    signal: signals.SignalOptions,
    shared: Several[coscheduling.SharingOptions],
) -> output.Outcome:
    """Return what the command computes; arguments as those of :func:`compare`."""
    return _outcome(_compared(workload, scheduler, rules, reading, under, signal, shared))


def _compared(
    workload: str,
    scheduler: list[str] | None,
    rules: Several[options.SimulatedRules],
    reading: Several[loading.PeriodReading],
    under: Several[limits.LimitOptions],
    signal: signals.SignalOptions,
    shared: Several[coscheduling.SharingOptions],
) -> list[Row]:
    choices = choices_of(rules, reading.only("allocation"), under, shared)
    settings = _settings(reading, under, shared)
    sharing = settings[0].sharing
    named = scheduler_names(scheduler) or (
        [] if "policy" in choices[0].rules else _usual(settings[0])
    )
    chosen = _going_with(settings, lineup(named, choices, sharing=sharing is not None))
    of_pairs = pair_rules(sharing is not None)
    given = {rule: value for rule, value in choices[0].rules.items() if rule in of_pairs}
    coscheduling.check(sharing, chosen, given)
    return _simulate(workload, settings, chosen, signal)


def _going_with(
    settings: Sequence[Setting], schedulers: Mapping[str, Scheduler]
) -> dict[str, Scheduler]:
    """Return the schedulers that go with limits and shared nodes; say which are left out."""
    found, apart = {}, []
    for name, scheduler in schedulers.items():
        try:
            with own_hold_told(name):
                for one in settings:
                    coscheduling.check(one.sharing, {name: scheduler}, {})
                    limits.check(one.asked, {name: scheduler})
            found[name] = scheduler
        except ApartError as error:
            apart.append(error)
    leave_out(apart, found)
    return found


def _outcome(rows: Sequence[Row]) -> output.Outcome:
    """Return the schedules by their labels, and what is printed of them."""

    def lines() -> list[dict[str, Any]]:
        return [
            output.csv_row(row.result.workload, row.setting.machine, row.name, row.result)
            for row in rows
        ]

    return output.Outcome({row.label: row.result for row in rows}, lambda: _facts(rows), lines)


def _usual(setting: Setting) -> list[str]:
    """Return the schedulers that are compared if none is named."""
    if setting.sharing is not None:
        return list(SHARED_DEFAULT)
    return [name for name in DEFAULT if setting.asked is None or name not in UNLIMITED]


def _settings(
    reading: Several[loading.PeriodReading],
    under: Several[limits.LimitOptions],
    shared: Several[coscheduling.SharingOptions],
) -> list[Setting]:
    """Return the machines, with what holds on each."""
    for one in reading.each:
        _ = one.machine  # which says what does not go with --allocation
    machines = reading.only("processors", "cluster")
    found = []
    for one in machines.each:
        limited = [each.read(one.machine) for each in under.each]  # each --power is checked
        asked = limited[0]
        sharing = shared.each[0].read(one.machine, limited=asked is not None)
        size = one.cluster or f"{one.processors} processors"
        found.append(Setting(size if machines.varied else "", one, asked, sharing))
    return found


def _simulate(
    workload: str,
    settings: Sequence[Setting],
    chosen: Mapping[str, Scheduler],
    signal: signals.SignalOptions,
) -> list[Row]:
    """Simulate all schedulers on each machine."""
    from hpcgym.simulation.run import simulate

    check_simulations(len(settings) * len(chosen))
    found: list[Row] = []
    apart: list[ApartError] = []
    loaded = [
        one.reading.load(
            workload,
            schedulers=chosen.values(),
            change=None if one.sharing is None else one.sharing.with_codes,
        )
        for one in settings
    ]
    grids = [signal.read(jobs, one.machine) for one, jobs in zip(settings, loaded, strict=True)]
    with counting("simulating", len(settings) * len(chosen)) as step:
        for one, jobs, grid in zip(settings, loaded, grids, strict=True):
            kept = limits.following(one.asked, grid, one.machine)
            pairs = None if one.sharing is None else one.sharing.speedups
            for name, rules in chosen.items():
                step(f"simulating {one.labelled(name)}")
                try:
                    with failures_in_a_line(rules), own_hold_told(name):
                        result = simulate(
                            jobs, rules, cluster=one.machine, limits=kept, speedups=pairs
                        )
                except ApartError as error:
                    apart.append(reworded(error, f"{one.labelled(name)}: {error}"))
                    continue
                except HpcgymError as error:
                    raise reworded(error, f"{one.labelled(name)}: {error}") from None
                signals.add_metrics(result, grid)
                found.append(Row(name, one, result))
            here = [row.result for row in found if row.setting is one]
            if one.sharing is not None and here:
                coscheduling.add_improvement(here)
    leave_out(apart, found)
    return found


def _facts(rows: Sequence[Row]) -> dict[str, Any]:
    """Return all there is to be told, of several machines what each is and what cleaning did."""
    from hpcgym.schedule.provenance import provenance_of

    jobs_of = {row.setting: row.result.workload for row in rows}
    first, jobs = next(iter(jobs_of.items()))
    facts = output.workload_facts(jobs, first.reading.clean)
    facts |= output.machine_facts(jobs, first.machine)
    if first.size:
        facts = {key: facts[key] for key in ("hpcgym", "workload", "clean")}
        facts["machines"] = [
            {**output.machine_facts(jobs, one.machine), "cleaning": dict(jobs.cleaning)}
            for one, jobs in jobs_of.items()
        ]
    if first.sharing is not None:
        facts |= first.sharing.facts()
    facts["results"] = [
        output.machine_columns(row.result.workload, row.setting.machine)
        | output.result_facts(row.name, row.result)
        for row in rows
    ]
    facts[KEY] = provenance_of({row.label: row.result for row in rows})
    return facts


def _print_table(rows: Sequence[Row]) -> None:
    """Print a comparison for people."""
    from hpcgym.baselines.labels import describe
    from hpcgym.report.labels import subtitle
    from hpcgym.report.tables import rich_comparison
    from hpcgym.report.words import limits_in_words

    results = {row.label: row.result for row in rows}
    out = output.console()
    out.print(subtitle(results), style="bold", markup=False)
    if len(rows) == 1 and (rules := describe(rows[0].result.scheduler)) != rows[0].name:
        out.print(rules, markup=False)
    schedules = {row.setting: row.result for row in rows}
    for one, result in schedules.items():
        if kept := limits_in_words(result):
            out.print(f"{one.labelled('limits')}: {kept}", markup=False)
    cleanings = [result.workload.cleaning for result in schedules.values()]
    if all(cleaning == cleanings[0] for cleaning in cleanings):
        output.print_cleaning(out, rows[0].result.workload)
    else:
        for one, result in schedules.items():
            output.print_cleaning(out, result.workload, one.labelled("cleaning"))
    out.print()
    print_table(out, rich_comparison(results))
    output.print_dispatches(out, results)
    output.print_moved(out, results)
