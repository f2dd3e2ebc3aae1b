"""``hpcgym simulate`` and ``hpcgym compare``: one scheduler, or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from hpcgym.cli import loading, names, options, output
from hpcgym.cli.files import PRINTED, SCHEDULE
from hpcgym.cli.groups import Option, Several
from hpcgym.cli.lineup import (
    Entrant,
    choices_of,
    given_schedulers,
    leave_out,
    lineup,
    pair_rules,
    rules_of,
    site_of,
)
from hpcgym.cli.means import split_metrics
from hpcgym.cli.running import explained
from hpcgym.cli.tables import Format, Sheet
from hpcgym.errors import ApartError, HpcgymError, reworded
from hpcgym.progress import counting, working
from hpcgym.units import duration

if TYPE_CHECKING:
    from hpcgym.machine import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.signals import Signal
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.study.compared import Comparison as Beside
    from hpcgym.workload import Workload


# --- A machine, and what holds on it --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OneMachine:
    """One machine, what holds on it, and what it is called if there are several."""

    reading: loading.PeriodReading
    asked: tuple[options.LimitOption, ...] | None
    sharing: loading.Sharing | None
    size: str = ""

    @property
    def machine(self) -> Cluster | None:
        """The machine; None: a pool, of which the workload knows the size."""
        return self.reading.machine

    def labelled(self, text: str) -> str:
        """Return a text with the machine behind it, if there are several."""
        return f"{text} on {self.size}" if self.size else text

    def load(self, source: str, schedulers: Iterable[Scheduler]) -> Workload:
        """Return the jobs that schedulers are to run here."""
        change = None if self.sharing is None else self.sharing.with_codes
        return self.reading.load(source, schedulers=schedulers, change=change)

    def simulate(
        self, jobs: Workload, rules: Scheduler, signals: Mapping[str, Signal],
        failures: Path | None = None,
    ) -> Result:  # fmt: skip
        """Return the schedule of jobs by rules, with what its energy comes to."""
        from hpcgym.simulation.run import simulate

        kept = options.following(self.asked, signals, self.machine)
        pairs = None if self.sharing is None else self.sharing.speedups
        result = simulate(
            jobs, rules, cluster=self.machine, limits=kept, speedups=pairs, failures=failures
        )
        options.add_metrics(result, signals)
        return result

    def facts(self, jobs: Workload) -> dict[str, Any]:
        """Return what a result was computed from."""
        facts = output.workload_facts(jobs, self.reading.clean)
        facts |= output.machine_facts(jobs, self.machine)
        return facts | ({} if self.sharing is None else self.sharing.facts())


class ComparedRow(NamedTuple):
    """One scheduler on one machine; ``site`` is its slurm.conf as it was given, or nothing."""

    name: str
    setting: OneMachine
    result: Result
    site: str

    @property
    def label(self) -> str:
        """What it is called in tables and pictures."""
        return self.setting.labelled(self.name)

    def columns(self, compared: Mapping[str, Any]) -> dict[str, Any]:
        """Return it as a line of a table, with what compares it with others."""
        jobs, machine = self.result.workload, self.setting.machine
        return output.csv_row(jobs, machine, self.name, self.result, compared)


# --- The past beside simulations ------------------------------------------------------------------

#: From which share on mean waits differ, and it is said.
_DIFFERS = 0.1


def past_of(row: ComparedRow) -> ComparedRow | None:
    """Return what the log recorded of the jobs of a schedule, or None where it does not tell."""
    past = row.result.past
    return None if past is None else ComparedRow(past.replayed_on, row.setting, past, "")


def told_apart(row: ComparedRow, past: ComparedRow | None, name: str) -> list[str]:
    """Return how far the rules and the machine of a site's own slurm.conf are from its past.

    These are lines, of a row by name: the log shows more busy at once than the machine has; mean
    waits differ.
    """
    from hpcgym.workload.cleaning import most_busy

    if past is None or not row.site:
        return []
    lines: list[str] = []
    busy, has = most_busy(past.result.workload.columns), row.result.cluster.processors
    if busy > has:
        lines.append(
            f"{name}: the log shows {busy:,} processors busy at once, the machine has {has:,}"
        )
    ours, theirs = (each.result.metrics["mean_wait_s"] for each in (row, past))
    if abs(ours - theirs) <= _DIFFERS * max(ours, theirs):
        return lines
    return [
        *lines,
        f"{name}: mean wait {duration(ours)} simulated, {duration(theirs)} recorded; before you"
        " believe a what-if, hpcgym calibrate says what may explain that",
    ]


# --- ``hpcgym simulate``: one workload, one scheduler ---------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """What is simulated, and how.

    Scheduler
    ---------
    scheduler NAME : Scheduler to begin with, or a dispatcher; see hpcgym list. Or a file: TOML,
        or a slurm.conf, with QOS and accounts as slurm.conf:qos=qos.txt+assoc=assoc.txt, and with
        other rules behind these, as slurm.conf:qos=qos.txt+policy=saf.
    """

    workload: str
    scheduler: str = "easy"
    rules: options.SimulatedRules
    reading: loading.PeriodReading
    failures: Path | None = None
    under: options.LimitOptions
    signal: options.SignalOptions
    shared: loading.SharingOptions

    def row(self) -> ComparedRow:
        """Return the schedule."""
        from hpcgym.baselines.labels import scheduler_name

        pairs = self.shared.given()
        overrides = pairs | self.rules.given() | self.reading.given() | self.under.given()
        chosen = rules_of(self.scheduler, overrides)  # a wrong name is said before the work
        asked = self.under.read(self.reading.machine)
        sharing = self.shared.read(self.reading.machine)
        loading.check_shares([chosen], pairs)
        where = OneMachine(self.reading, asked, sharing)
        jobs = where.load(self.workload, [chosen])
        signals = self.signal.read(jobs, where.machine)
        with working(f"simulating {len(jobs):,} jobs"):
            result = where.simulate(jobs, chosen, signals, self.failures)
        return ComparedRow(scheduler_name(result.scheduler), where, result, site_of(self.scheduler))


@explained()
def simulate(
    *,
    simulation: SimulationOptions,
    output_file: Annotated[Path | None, Option("--output"), SCHEDULE] = None,
    how: output.ResultOptions,
) -> None:
    """Simulate one scheduler or dispatcher on a workload and print its metrics.

    Output
    ------
    output_file FILE : Write the schedule: .swf, .swf.gz, .csv, .json or .parquet. The last three
        have the nodes of jobs on a machine with nodes: 3:2 4:1 are two units on node 3, one on 4.
        - prints it in place of the metrics: as CSV, or with --format json as JSON.

    Examples
    --------
    hpcgym simulate lublin:jobs=10000,load=0.9
    hpcgym simulate KTH-SP2 --clean glesser --passes per-event --format json
    hpcgym simulate trace.swf.gz --policy saf --backfill-order spf --threshold 72000
    hpcgym simulate trace.swf.gz --estimate ave2 --correction incremental
    hpcgym simulate KTH-SP2 --scheduler saf --policy-estimate user-ratio
    hpcgym simulate KTH-SP2 --scheduler fairshare --fair-share half_life_s=86400
    hpcgym simulate KTH-SP2 --week 12 --html week12.html --output schedule.swf
    hpcgym simulate KTH-SP2 --week 12 --output - | head
    hpcgym simulate KTH-SP2 --from 7257600 --to 7862400 --scheduler fairshare
    hpcgym simulate eurora:days=7 --cluster eurora --allocation best-fit --output jobs.csv
    hpcgym simulate eurora:jobs=200 --cluster eurora --scheduler pcp20 --estimate ave2
    hpcgym simulate lublin:jobs=1000,processors=192 --cluster taurus --carbon grid.csv
    hpcgym simulate lublin:jobs=1000,processors=80640 --cluster curie --power mix --cap
        percent=60,start=90000,end=93600
    hpcgym simulate lublin:jobs=1000,processors=192 --cluster taurus --failures failures.csv
    hpcgym simulate codes:jobs=500,processes=256 --cluster 100x2x24 --speedups generated --scheduler
        easy-co
    hpcgym simulate KTH-SP2 --cluster 25x2x2 --speedups pairs.csv --codes 1 --scheduler filler-co
        --pairs-above 1 --pair-estimate learned
    """
    row = simulation.row()
    name, where, result, _ = row
    past = past_of(row)
    facts_of_past = {} if past is None else {past.name: output.result_facts(past.name, past.result)}
    command_result = output.of_schedules(
        {name: result},
        lambda: _sheet(row, past, told_apart(row, past, where.labelled(row.site))),
        lambda: [each.columns({}) for each in (row, past) if each is not None],
        lambda: {
            **where.facts(result.workload),
            **output.result_facts(name, result),
            **facts_of_past,
        },
    )
    if output_file == PRINTED:
        if how.format in (Format.markdown, Format.latex):
            raise HpcgymError("--output - prints jobs as csv or json: leave out --format")
        output.print_schedule(result, as_json=how.format is Format.json)
        how.write(command_result)
        return
    output.save_schedule(name, result, output_file)
    how.show(command_result)


def _sheet(row: ComparedRow, past: ComparedRow | None, below: Sequence[str]) -> Sheet:
    """Return a result for people, beside the past where the log tells it."""
    from hpcgym.baselines.labels import describe
    from hpcgym.report.tables import limits_in_words, remarks, rich_metrics, subtitle, tables_of

    name, result = row.name, row.result
    results = {name: result}
    rules, kept = describe(result.scheduler), limits_in_words(result)
    above = [subtitle(results), *([rules] if rules != name else [])]
    above += [f"limits: {kept}"] if kept else []
    above += output.cleaning_of(result.workload)
    before = None if past is None else past.result
    below = [*remarks(results), *below]
    return Sheet(above, tables_of(results), below, rich_metrics(result, before))


# --- ``hpcgym compare`` ---------------------------------------------------------------------------

#: Schedulers that are compared if none is named.
DEFAULT = ("fcfs", "easy", "easy-sjbf", "easy++", "saf", "conservative")
#: The same beside all co-schedulers; the others are compared with the first.
SHARED_DEFAULT = ("easy", "fcfs", "conservative", *names.COSCHEDULERS)


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """What is compared, and on what.

    Scheduler
    ---------
    scheduler NAME... : Scheduler or dispatcher. A scheduler may have other
        rules, as in saf:threshold=18000,hold=0.1, and a name of your own before it, as in
        mine:=saf:hold=0.1.

    Output
    ------
    metric NAME... : Columns of the table, also joined by commas; csv and json have all. [default:
        some of the main ones]
    """

    workload: str
    scheduler: Annotated[
        list[str] | None,
        Option(
            show_default=f"{','.join(DEFAULT)}; with --policy EASY with each; with --speedups easy,"
            " fcfs, conservative and all co-schedulers"
        ),
    ] = None
    rules: Several[options.SimulatedRules]
    reading: Annotated[Several[loading.PeriodReading], "processors", "cluster", "allocation"]
    under: Annotated[Several[options.LimitOptions], "power"]
    signal: options.SignalOptions
    shared: Annotated[Several[loading.SharingOptions], "partners", "pairs_above", "pair_estimate"]
    metric: list[str] | None = None

    @property
    def metrics(self) -> list[str] | None:
        """The names of metrics, as far as they are known before there are schedules."""
        from hpcgym.report.tables import ABOVE
        from hpcgym.schedule.metrics import known_metrics, metric_called

        if self.metric is None:
            return None
        of_resources = filter(metric_called, ",".join(self.metric).split(","))
        return split_metrics(self.metric, [*known_metrics(), *ABOVE, *of_resources])

    def rows(self) -> list[ComparedRow]:
        """Return the schedules."""
        choices = choices_of(self.rules, self.reading.only("allocation"), self.under, self.shared)
        schedulers = given_schedulers(self.scheduler)  # first, for what is said of machines
        settings = self._settings()
        sharing = settings[0].sharing
        usual = () if "policy" in choices[0].rules else SHARED_DEFAULT if sharing else DEFAULT
        named = schedulers or {name: name for name in usual}
        chosen = lineup(named, choices, sharing=sharing is not None)
        of_pairs = pair_rules(sharing is not None)
        given = {rule: value for rule, value in choices[0].rules.items() if rule in of_pairs}
        loading.check_shares([entrant.rules for entrant in chosen.values()], given)
        return self._rows(settings, chosen)

    def _settings(self) -> list[OneMachine]:
        """Return the machines, with what holds on each."""
        for reading in self.reading.each:
            _ = reading.machine  # which says what does not go with --allocation
        machines = self.reading.only("processors", "cluster")
        settings = []
        for reading in machines.each:
            asked, *_ = [each.read(reading.machine) for each in self.under.each]  # all are checked
            sharing = self.shared.each[0].read(reading.machine)
            size = reading.cluster or f"{reading.processors} processors"
            settings.append(OneMachine(reading, asked, sharing, size if machines.varied else ""))
        return settings

    def _rows(
        self, settings: Sequence[OneMachine], chosen: Mapping[str, Entrant]
    ) -> list[ComparedRow]:
        """Simulate all schedulers on each machine."""
        rows: list[ComparedRow] = []
        apart: list[ApartError] = []
        schedulers = [entrant.rules for entrant in chosen.values()]
        loaded = [setting.load(self.workload, schedulers) for setting in settings]
        signals = [
            self.signal.read(jobs, setting.machine)
            for setting, jobs in zip(settings, loaded, strict=True)
        ]
        with counting("simulating", len(settings) * len(chosen)) as step:
            for setting, jobs, signals_here in zip(settings, loaded, signals, strict=True):
                for name, (rules, site) in chosen.items():
                    step(f"simulating {setting.labelled(name)}")
                    try:
                        rows.append(
                            ComparedRow(
                                name, setting, setting.simulate(jobs, rules, signals_here), site
                            )
                        )
                    except HpcgymError as error:
                        named = reworded(error, f"{setting.labelled(name)}: {error}")
                        if not isinstance(named, ApartError):
                            raise named from None
                        apart.append(named)
                here = [row.result for row in rows if row.setting is setting]
                if setting.sharing is not None and here:
                    loading.add_improvement(here)
        leave_out(apart, rows)
        return rows


@explained()
def compare(
    *,
    comparison: ComparisonOptions,
    how: output.ResultOptions,
) -> None:
    """Simulate several schedulers or dispatchers and mark the best of each metric.

    Options with ... may be given several times: each scheduler is simulated under each value, and
    rows are named as in "saf, threshold=18000". A single value changes all schedulers. --policy
    without --scheduler means EASY with each policy. docs/comparing.md says which rules change which
    schedulers. A scheduler that cannot keep a rule is left out, with the reason.

    Below the metrics it says who pays, beside the first scheduler: short and long, small and large
    jobs, and users.

    Examples
    --------
    hpcgym compare KTH-SP2 --scheduler 'easy,saf,SAF 80 h:=saf:threshold=80h'
    hpcgym compare KTH-SP2 --week 12 --scheduler easy,easy-sjbf,easy++ --html week12.html
    hpcgym compare lublin:jobs=10000,load=0.9 --format csv > six.csv
    hpcgym compare KTH-SP2 --policy saf --policy 'wait - area' --estimate requested --estimate ave2
    hpcgym compare KTH-SP2 --processors 100 --processors 128 --scheduler easy,saf --picture s.png
    hpcgym compare KTH-SP2 --scheduler easy,saf --figures figures
    hpcgym compare eurora:jobs=200 --cluster eurora --scheduler easy,prb,sdprb,pcp20
    hpcgym compare codes:jobs=500,processes=256 --cluster 100x2x24 --speedups generated
    """
    from hpcgym.schedule.gains import who_pays
    from hpcgym.study.compared import Comparison as Beside

    metrics, rows = comparison.metrics, comparison.rows()
    past, beside = past_of(rows[0]), Beside({row.label: row.result for row in rows})

    def columns() -> list[dict[str, Any]]:
        paid = who_pays(beside)
        rows_of_csv = []
        for row in rows:
            of_groups = paid[row.label].columns() if row.label in paid else {}
            compared = {**beside.columns(row.label), **of_groups} if len(rows) > 1 else {}
            rows_of_csv.append(row.columns(compared))
        return rows_of_csv if past is None else [*rows_of_csv, past.columns({})]

    def facts() -> dict[str, Any]:
        facts_of_all, paid = _facts(rows, past), who_pays(beside)
        for row, facts_of_row in (
            zip(rows, facts_of_all["results"], strict=False) if len(rows) > 1 else ()
        ):
            facts_of_row |= beside.columns(row.label)
            facts_of_row["who_pays"] = paid[row.label].facts() if row.label in paid else None
        return facts_of_all

    command_result = output.of_schedules(
        beside, lambda: _compared(rows, past, metrics, beside), columns, facts
    )
    how.show(command_result)


def _facts(rows: Sequence[ComparedRow], past: ComparedRow | None) -> dict[str, Any]:
    """Return all there is to be told, of several machines what each is and what cleaning did."""
    jobs_of = {row.setting: row.result.workload for row in rows}
    first, jobs = next(iter(jobs_of.items()))
    facts = first.facts(jobs)
    if first.size:
        of_all = ("hpcgym", "workload", "clean", "speedups", "codes_seed")
        facts = {key: value for key, value in facts.items() if key in of_all}
        facts["machines"] = [
            {**output.machine_facts(jobs, setting.machine), "cleaning": dict(jobs.cleaning)}
            for setting, jobs in jobs_of.items()
        ]
    facts["results"] = [
        output.machine_columns(row.result.workload, row.setting.machine)
        | output.result_facts(row.name, row.result)
        for row in (rows if past is None else [*rows, past])
    ]
    return facts


def _compared(
    rows: Sequence[ComparedRow],
    past: ComparedRow | None,
    metrics: list[str] | None,
    comparison: Beside,
) -> Sheet:
    """Return a comparison for people, beside the past where the log tells it."""
    from hpcgym.baselines.labels import describe
    from hpcgym.report.tables import (
        limits_in_words,
        rich_comparison,
        subtitle,
        tables_of,
        with_past,
    )

    results = comparison.results
    above = [*comparison.findings, subtitle(results)]
    if len(rows) == 1 and (rules := describe(rows[0].result.scheduler)) != rows[0].name:
        above.append(rules)
    schedules = {row.setting: row.result for row in rows}
    for setting, result in schedules.items():
        if kept := limits_in_words(result):
            above.append(f"{setting.labelled('limits')}: {kept}")
    cleanings = [result.workload.cleaning for result in schedules.values()]
    if all(cleaning == cleanings[0] for cleaning in cleanings):
        above += output.cleaning_of(rows[0].result.workload)
    else:
        for setting, result in schedules.items():
            above += output.cleaning_of(result.workload, setting.labelled("cleaning"))
    printed = tables_of(results, metrics, comparison.beside)
    below = [*(line for table in printed for line in table.below), *comparison.remarks]
    # the first is what the site has today: those behind it are what-ifs, which may differ
    today = next((row for row in rows if row.site), None)
    below += [] if today is None else told_apart(today, past, today.label)
    shown = rich_comparison(with_past(results), metrics, comparison.beside)
    return Sheet(above, printed, below, shown)
