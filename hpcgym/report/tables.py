"""Words and numbers that people read: of results, machines and limits; and tables of metrics."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hpcgym.baselines.dispatchers import chooses_nodes
from hpcgym.baselines.labels import apart, rules_of_all, scheduler_names
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.recorded import PACKAGES, packages_text
from hpcgym.files.tables import write_csv_frame
from hpcgym.files.writing import whole_text
from hpcgym.names import beside_memory
from hpcgym.report.cells import Cell, Table, rich_table, two_lines
from hpcgym.schedule import gains
from hpcgym.schedule.groups import classes_in_words
from hpcgym.schedule.metrics import (
    LENGTH_CLASSES,
    MORE,
    NEITHER,
    SIZE_CLASSES,
    Metric,
    as_shown,
    metric_called,
    told_metrics,
    utilization_of,
)
from hpcgym.schedule.schedule import RECORDED
from hpcgym.scheduler.whole_nodes import jobs_that_share, own_nodes_by
from hpcgym.units import HOUR_S, duration
from hpcgym.words import counted, shown
from hpcgym.workload.checks import needs_on

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table as RichTable

    from hpcgym.machine.pool import Cluster
    from hpcgym.schedule.result import Result


# --- Machines and limits of results, in words -----------------------------------------------------

_LIMITS_SHOWN = 3


def limits_in_words(result: Result) -> str:
    """Return the first limits that a schedule kept, and how many more; nothing without any.

    Percents are of all nodes busy.
    """
    from hpcgym.machine.power_plans import greatest_w
    from hpcgym.scheduler.limits import PowerCap

    texts = []
    for limit in (result.limits or ())[:_LIMITS_SHOWN]:
        most = greatest_w(result.cluster)
        if isinstance(limit, PowerCap):
            amount, text = limit.watts, f"cap {{}}({limit.watts:,.0f} W)"
        else:
            most *= limit.end - limit.start
            amount, text = limit.joules, f"budget {{}}({shown(limit.joules / 3.6e6)} kWh)"
        text = text.format(f"{100 * amount / most:.4g} % " if most > 0 else "")
        text += f" from {limit.start:,} s" + ("" if limit.end is None else f" to {limit.end:,} s")
        texts.append(text + (", with shutdown" if getattr(limit, "shutdown", False) else ""))
    more = len(result.limits or ()) - len(texts)
    return "; ".join(texts) + (f"; and {more:,} more" if more else "")


def limits_of(parts: Mapping[str, Result]) -> str:
    """Return the limits that schedules kept, of each machine, in a line; nothing without any."""
    kept = [limits_in_words(part) for part in parts.values() if part.limits]
    return f"limits: {each(kept)}" if kept else ""


def machine_in_words(cluster: Cluster) -> str:
    """Return how large a machine is, in a few words."""
    size = cluster.processors
    if not cluster.groups:
        return counted(size, "processor")
    nodes = counted(cluster.nodes, "node")
    return f"{cluster.name}{': ' if cluster.name else ''}{nodes} with {size:,} cores"


def each(texts: Iterable[str]) -> str:
    """Return different texts in a row, each once: "a, b and c"."""
    *most, last = dict.fromkeys(texts)
    return f"{', '.join(most)} and {last}" if most else last


# --- What results are called in tables and pictures -----------------------------------------------

#: One result, several, or several with names of one's own.
Results: TypeAlias = "Result | Sequence[Result] | Mapping[str, Result]"


def named(results: Results) -> dict[str, Result]:
    """Return results by name: the names given, else those of their schedulers.

    Raises
    ------
    HpcgymError : there is no result.
    """
    if isinstance(results, Mapping):
        parts = dict(results)
    else:
        parts = {}
        listed = results if isinstance(results, Sequence) else [results]
        for result in listed:
            _check_result(result)
        names = scheduler_names([result.scheduler for result in listed])
        names = apart(names, [machine_in_words(result.cluster) for result in listed])
        names = apart(names, [result.workload.name for result in listed])
        for name, result in zip(names, listed, strict=True):
            same = sum(known == name or known.startswith(f"{name} (") for known in parts)
            parts[f"{name} ({same + 1})" if same else name] = result
    if not parts:
        raise HpcgymError("there is no result to report")
    for name, result in parts.items():
        _check_result(result, f" ({name!r})")
    return parts


def _check_result(result: Any, where: str = "") -> None:
    """Raise an HpcgymError of what is no result of a simulation."""
    if not hasattr(result, "metrics"):
        raise HpcgymError(
            f"results must be what hpcgym.simulate returns, not a {type(result).__name__}{where}"
        )


def drawable(results: Results) -> dict[str, Result]:
    """Return results by name, as :func:`named`, if there is something to draw of each.

    Raises
    ------
    HpcgymError : there is no result, or one without jobs.
    """
    parts = named(results)
    for name, result in parts.items():
        if not result.decided.any():
            raise HpcgymError(f"there is nothing to draw: {name} has no jobs")
    return parts


def by_machine(parts: Mapping[str, Result]) -> list[dict[str, Result]]:
    """Return the results of each machine; machines in the order of their first ones."""
    machines: list[dict[str, Result]] = []
    for name, part in parts.items():
        for group in machines:
            if next(iter(group.values())).cluster == part.cluster:
                group[name] = part
                break
        else:
            machines.append({name: part})
    return machines


def subtitle(parts: Mapping[str, Result]) -> str:
    """Return workload, machine, scheduler if it is one, and rule of passes, for a picture.

    With several schedulers the rules that all have, and that are not usual, are told too, and an
    allocation that is not first-fit; where jobs share nodes, names tell it, and here is where the
    speedups come from.
    """
    results = list(parts.values())
    jobs = each(_jobs(part) for part in results)
    machines = each(machine_in_words(part.cluster) for part in results)
    words = [
        each(part.workload.name for part in results),
        jobs,
        machines,
        each(f"{part.scheduler.passes} passes" for part in results),
    ]
    shared = [part.coschedule for part in results if part.coschedule is not None]
    if len(results) == 1:
        words.insert(3, next(iter(parts)))
    if shared:
        words.append(each(f"speedups {Path(run.speedups.source).name}" for run in shared))
    elif len(results) > 1:
        schedulers = [part.scheduler for part in results]
        of_lists = [
            scheduler for scheduler in schedulers if not chooses_nodes(scheduler.dispatcher)
        ]
        allocations = {
            scheduler.allocation: f"{scheduler.allocation} allocation" for scheduler in of_lists
        }
        words += [each(allocations.values())] if allocations.keys() - {"first-fit"} else []
    if len(results) > 1:
        words += rules_of_all([part.scheduler for part in results])
    return " · ".join(words)


def _jobs(result: Result) -> str:
    """Return how many jobs a schedule has; of an extract, how many of them it did not start."""
    number = len(result.workload)
    ran = number - int(result.decided.sum())
    words = counted(number, "job")
    return f"{words}, of which {ran:,} run at the beginning" if ran else words


# --- Where the schedules of a page are from, for people -------------------------------------------


def origin_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what :func:`hpcgym.schedule.provenance.provenance_of` says, as rows of a table."""
    command, schedules = record["command"], record.get("schedules", ())  # a leaderboard has none
    said = "none: from Python" if command is None else shlex.join(["hpcgym", *command])
    return [
        ("written", record["date"]),
        ("by", f"hpcgym {record['hpcgym']}"),
        *([("with", packages_text(record))] if PACKAGES in record else []),
        ("command", said),
        *((f"SHA-256 of {name}", digest) for name, digest in record["files"].items()),
        *(
            (f"SHA-256 of the jobs of {jobs['name']}", jobs["sha256"])
            for jobs in record["workloads"]
        ),
        *(
            (f"SHA-256 of the schedule {schedule['name']}", schedule["sha256"])
            for schedule in schedules
        ),
    ]


# --- What dispatchers that solve models have logged -----------------------------------------------

_LOGGED = ("variables", "status", "gap", "postponed", "model_s", "solve_s")


def dispatches(result: Result) -> dict[str, float] | None:
    """Return a summary of what a dispatcher that solves models has logged; None for others.

    ``dispatches`` at which something fitted, of these ``models`` that a solver was needed for;
    ``mean_s`` and ``max_s`` of all dispatches; the shares of them that were ``proved`` optimal, as
    the model has it; ``mean_gap`` of schedule and bound; jobs ``postponed``, for which the model's
    schedule had no nodes.
    """
    log = getattr(result.dispatcher, "log", None)
    if not isinstance(log, Sequence):
        return None
    if not all(isinstance(dispatch, Mapping) and dispatch.keys() >= {*_LOGGED} for dispatch in log):
        return None  # a dispatcher of one's own logs what it likes
    n = max(len(log), 1)
    seconds = [dispatch["model_s"] + dispatch["solve_s"] for dispatch in log]
    return {
        "dispatches": len(log),
        "models": sum(dispatch["variables"] > 0 for dispatch in log),
        "mean_s": sum(seconds) / n,
        "max_s": max(seconds, default=0.0),
        "proved": sum(dispatch["status"] in ("optimal", "plan is optimal") for dispatch in log) / n,
        "mean_gap": sum(dispatch["gap"] for dispatch in log) / n,
        "postponed": sum(dispatch["postponed"] for dispatch in log),
    }


def in_words(solved: Mapping[str, float]) -> str:
    """Return such a summary as a line."""
    text = (
        f"{solved['dispatches']:,} dispatches, {solved['models']:,} of them with a model to solve;"
        f" {solved['mean_s']:.3f} s each on average, {solved['max_s']:.2f} s at most;"
        f" {100 * solved['proved']:.1f} % proved optimal, mean gap"
        f" {100 * solved['mean_gap']:.2f} %"
    )
    if solved["postponed"]:
        text += f"; {solved['postponed']:,} starts postponed, since no nodes were found"
    return text


# --- Tables of metrics ----------------------------------------------------------------------------

#: Columns of the table that compares schedulers on a terminal.
COMPARED = (
    "mean_bsld",
    "p95_bsld",
    "max_bsld",
    "mean_wait_s",
    "max_wait_s",
    "area_weighted_wait_s",
    "utilization",
)

#: What follows them where limits hold, or energy has a price or carbon.
OF_POWER = ("energy_j", "cap_exceeded_s", "budget_exceeded_j", "carbon_g", "cost")

#: The same where jobs share nodes; the improvement is over the first scheduler.
SHARED = (
    "makespan_s",
    "makespan_improvement",
    "mean_job_speedup",
    "slowed_share",
    "throughput_per_h",
    "utilization",
    "mean_bsld",
    "mean_wait_s",
)


#: How far a mean bounded slowdown is above that of the first schedule, with the ends of its 95 %
#: interval: :class:`hpcgym.study.compared.Comparison` tells it.
ABOVE = {
    "above": Metric("above", "mean BSLD above first"),
    "above_low": Metric("above_low", "above first, low end"),
    "above_high": Metric("above_high", "above first, high end"),
}

#: Name of a schedule -> more metrics of it, from what has compared it with the first.
Beside: TypeAlias = Mapping[str, Mapping[str, float]]


def metrics_table(results: Results) -> pd.DataFrame:
    """Return the metrics as a DataFrame, one row a scheduler, one column a metric.

    Parameters
    ----------
    results : a result, a sequence of them, or name -> result.

    Returns
    -------
    table : index ``scheduler``; the columns are the keys of ``Result.metrics``, units in the names.
        Energies are missing where nobody gave powers; see
        :func:`hpcgym.schedule.metrics.told_metrics`.
    """
    import pandas as pd

    parts = named(results)
    rows = [told_metrics(result) for result in parts.values()]
    return pd.DataFrame(rows, index=pd.Index(list(parts), name="scheduler"))


def described(names: Sequence[str]) -> list[Metric]:
    """Return how metrics are shown; one that is not known here by its own name."""
    return [
        ABOVE.get(name) or metric_called(name) or Metric(name, name.replace("_", " "))
        for name in names
    ]


def in_order(metrics: Mapping[str, Any]) -> list[Metric]:
    """Return all metrics of a result in the order in which they are shown."""
    return described(as_shown(metrics))


def told_of_all(parts: Mapping[str, Result]) -> dict[str, float | int]:
    """Return the metrics of the first schedule that tables and pages have of all."""
    first, *others = map(told_metrics, parts.values())
    return {
        name: value for name, value in first.items() if all(name in metrics for metrics in others)
    }


def text_of(metric: Metric, value: float) -> str:
    """Return a value of a metric for people."""
    return shown(value if metric.scale == 1 else value * metric.scale)


def best(metric: Metric, values: Sequence[float]) -> list[bool]:
    """Tell which values are the best; none if all are shown alike, or nothing is better.

    Values that are shown alike are equally good: a mark must not depend on a rounding error.
    """
    texts = [text_of(metric, value) for value in values]
    numbers = [value for value in values if value == value]  # NaN differs from itself
    if metric.better == NEITHER or len({*texts}) < 2 or not numbers:
        return [False] * len(values)
    top = text_of(metric, max(numbers) if metric.better == MORE else min(numbers))
    return [text == top for text in texts]


def comparison(
    results: Results, names: Sequence[str] | None = None, beside: Beside | None = None
) -> list[list[Cell]]:
    """Return a table for people: rows of (text, is it the best), the heading being the first.

    The best are those of each machine, among schedules of the same jobs.

    Parameters
    ----------
    results : a result, a sequence of them, or name -> result.
    names : metrics, one column each; None: ``COMPARED``, or where all results have speedups of
        jobs, those of ``SHARED`` that they have; and where they keep limits ``OF_POWER``.
    beside : more metrics.

    Raises
    ------
    HpcgymError : a metric that the first result has not; others that have it not show "-".
    """
    parts, more = named(results), beside or {}
    first_name, first = next(iter(parts.items()))
    for name in names or ():
        check_choice("metric", name, {**first.metrics, **more.get(first_name, {})})
    metrics = described(_columns(parts) if names is None else names)
    columns: list[Sequence[Cell]] = [[(name, False) for name in ("scheduler", *parts)]]
    for metric in metrics:
        values = [
            more.get(name, {}).get(metric.name, _value(part, metric))
            for name, part in parts.items()
        ]
        texts = [text_of(metric, value) for value in values]
        marks = _best_of_machines(metric, parts)
        columns.append([(metric.heading, False), *zip(texts, marks, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _columns(parts: Mapping[str, Result]) -> list[str]:
    """Return the metrics that a table has room for."""
    simulated = {name: result for name, result in parts.items() if not result.replayed_on} or parts
    shared = bool(_known_to_all(["mean_job_speedup"], parts))
    of_power = [
        name for name in OF_POWER[1:] if any(name in result.metrics for result in parts.values())
    ]
    limited = of_power or any(part.limits is not None for part in parts.values())
    columns = _known_to_all(SHARED if shared else COMPARED, parts)
    columns += _known_to_all(of_scarce_resources(next(iter(simulated.values()))), simulated)
    return [*columns, *(_known_to_all(OF_POWER, simulated) if limited else ())]


def _best_of_machines(metric: Metric, parts: Mapping[str, Result]) -> list[bool]:
    """Return which values are the best of their machine, among schedules of the same jobs."""
    marks: dict[str, bool] = {}
    for group in by_machine(parts):
        while group:
            same = gains.same_jobs(group)
            values = [_value(part, metric) for part in same.values()]
            marks |= zip(same, best(metric, values), strict=True)
            group = {name: part for name, part in group.items() if name not in same}
    return [marks[name] for name in parts]


def _value(result: Result, metric: Metric) -> float:
    past = result.replayed_on == RECORDED  # whose rules and watts are not known
    known = told_metrics(result) if past else result.metrics
    return known.get(metric.name, float("nan"))


def of_scarce_resources(result: Result) -> list[str]:
    """Return the metrics of resources that tables have room for."""
    resources = beside_memory(result.cluster.node_resources)
    return [name for name in map(utilization_of, resources) if name in result.metrics]


def _known_to_all(names: Sequence[str], parts: Mapping[str, Result]) -> list[str]:
    """Return the metrics that all results have."""
    return [name for name in names if all(name in part.metrics for part in parts.values())]


def tables_of(
    results: Results, names: Sequence[str] | None = None, beside: Beside | None = None
) -> list[Table]:
    """Return what people see of schedules: their metrics; of several also who pays, who loses most.

    Parameters
    ----------
    results : a result, a sequence of them, or name -> result. If the log tells when its jobs
        started, the first table has that past as the last row.
    names, beside : metrics, as of :func:`comparison`.
    """
    parts = named(results)
    of_users = [table for table in (who_pays(parts), who_lose_most(parts)) if table is not None]
    return [metrics_of(with_past(parts), names, beside), *of_users]


def metrics_of(
    results: Results, names: Sequence[str] | None = None, beside: Beside | None = None
) -> Table:
    """Return :func:`comparison` as a table; metrics of one unit stay together."""
    parts = named(results)
    heading, *rows = comparison(parts, names, beside)
    units = [metric.unit for metric in described(_columns(parts) if names is None else names)]
    return Table([text for text, _ in heading], rows, groups=units)


def with_past(parts: Mapping[str, Result]) -> dict[str, Result]:
    """Return schedules and, behind them, what the log recorded of the jobs of the first."""
    past = next(iter(parts.values())).past
    if past is None or any(result.replayed_on for result in parts.values()):
        return dict(parts)
    return {**parts, past.replayed_on: past}


def remarks(parts: Mapping[str, Result]) -> list[str]:
    """Return what is said below tables of schedules, in lines.

    Which schedules are the same, which are not compared with the first, what dispatchers that solve
    models have logged, that limits give each job nodes of its own, and how much later jobs were
    submitted by rules that say when (quotas of submitted jobs, and dependencies), which no wait
    has.
    """
    alike: dict[tuple[bytes, ...], list[str]] = {}
    for name, result in parts.items():
        key = (
            result.workload.job_number.tobytes(),
            result.start.tobytes(),
            result.run_time.tobytes(),
        )
        alike.setdefault(key, []).append(name)
    lines = [
        f"the same schedule, start by start: {'; '.join(names)}"
        for names in alike.values()
        if len(names) > 1
    ]
    same = gains.same_jobs(parts)
    if other := [name for name in parts if name not in same]:
        lines.append(
            f"not compared with {next(iter(parts))} by stars, intervals or 'who pays':"
            f" {'; '.join(other)}. The jobs, or the times at which they are submitted, differ."
        )
    solved = {name: dispatches(result) for name, result in parts.items()}
    lines += [
        f"{name}: {in_words(dispatching)}"
        for name, dispatching in solved.items()
        if dispatching is not None
    ]
    lines += list(dict.fromkeys(filter(None, map(_nodes_of_their_own, parts.values()))))
    for name, result in parts.items():
        if result.given is None or not len(result.given):
            continue
        later = float(result.workload.submit_time.mean() - result.given.submit_time.mean())
        if later < 0.5:  # what would be told is 0 s
            continue
        before = f"{name}: " if len(parts) > 1 else ""
        text = f"jobs were submitted {duration(later)} later than in the log on average"
        lines.append(f"{before}{text}; no wait counts this")
    return lines


def _nodes_of_their_own(result: Result) -> str:
    """Return that jobs would share nodes but for limits of power or energy; blank: they would not.

    It may cost them far more than the limits do.
    """
    if not result.limits or own_nodes_by(result.cluster, result.scheduler):
        return ""
    needs = needs_on(result.workload, result.cluster)
    share = jobs_that_share(needs, result.cluster)
    text = (
        "under limits of power or energy each job has nodes of its own, also the"
        f" {share:,} of {len(needs):,} jobs that do not fill theirs; for the cost of the limits"
        " alone compare with --cap none --power none, in Python with limits=[]"
    )
    return text if share else ""


def rich_comparison(
    results: Results, names: Sequence[str] | None = None, beside: Beside | None = None
) -> RichTable:
    """Return the table that compares schedulers, for rich; ``*`` marks the best of a column."""
    parts = named(results)
    heading, *rows = comparison(parts, names, beside)
    machines = by_machine(parts)
    broken = [two_lines(text) for text, _ in heading[1:]]
    simulated = [group for group in machines if any(not r.replayed_on for r in group.values())]
    where = "its column and machine" if len(simulated) > 1 else "its column"
    table = rich_table([heading[0][0], *broken], rows, caption=f"* best of {where}")
    last = {list(group)[-1] for group in machines}
    for line, name in zip(table.rows, parts, strict=True):
        line.end_section = name in last
    return table


def rich_metrics(result: Result, past: Result | None = None) -> RichTable:
    """Return all metrics of one result as a table of two columns, for rich; and of the past."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("metric")
    table.add_column("value" if past is None else "simulated", justify="right")
    if past is not None:
        table.add_column(RECORDED, justify="right")
    table.add_column("unit")
    before = {} if past is None else told_metrics(past)
    for metric in in_order(told_metrics(result)):
        value = result.metrics[metric.name]
        cells = [text_of(metric, value)]
        if past is not None:
            cells.append(text_of(metric, before[metric.name]) if metric.name in before else "")
        table.add_row(metric.title, *cells, _unit_of(metric, value))
    return table


def _unit_of(metric: Metric, value: float) -> str:
    """Return the unit of a metric, of long times with what people call them."""
    long = metric.unit == "s" and value >= HOUR_S
    return f"s = {duration(value)}" if long else metric.unit


# --- Who pays for a mean: classes of jobs, and users ----------------------------------------------


def who_pays(parts: Mapping[str, Result]) -> Table | None:
    """Return :func:`hpcgym.schedule.gains.who_pays` as a table.

    Rows are the number of jobs of each class, then each schedule; below it stands what classes are.
    Cells have the mean bounded slowdown of a class of jobs, and behind
    the first schedule its ratio to that one. A user gains if the mean over the own jobs is lower
    than in the first schedule.

    Parameters
    ----------
    parts : name -> schedule. Those of other jobs than the first are left out.

    Returns
    -------
    None where only the first schedule is left.
    """
    paid = gains.who_pays(parts)
    if len(paid) < 2:
        return None
    name, first = next(iter(paid.items()))
    heading = ["scheduler", *first.classes]
    groups = ["class"] * len(LENGTH_CLASSES) + ["size"] * len(SIZE_CLASSES)
    groups += ["resource"] * (len(first.classes) - len(groups))
    rows = [["jobs", *(f"{of_class.jobs:,}" for of_class in first.classes.values())]]
    rows.append([name, *(shown(of_class.mean_bsld) for of_class in first.classes.values())])
    below = [f"{classes_in_words('class')}; {classes_in_words('size')}"]
    if first.users > 1:
        heading += [f"users who gain (of {first.users:,})", "who lose", "median ratio"]
        groups += ["user"] * 3
        below.append(
            f"a user gains if the mean bounded slowdown of their jobs is lower than under {name}"
        )
        rows = [[*row, "", "", ""] for row in rows]
    for other, gains_of in [*paid.items()][1:]:
        cells = [
            f"{shown(of.mean_bsld)} ({of.ratio:,.2f})" if of.jobs else "-"
            for of in gains_of.classes.values()
        ]
        if first.users > 1:
            cells += [f"{gains_of.gain:,}", f"{gains_of.lose:,}", f"{gains_of.median_ratio:,.2f}"]
        rows.append([other, *cells])
    title = f"Who pays: mean bounded slowdown, and in brackets the ratio to {name}'s"
    return Table([*map(two_lines, heading)], rows, 1, title, groups, below)


def who_lose_most(parts: Mapping[str, Result]) -> Table | None:
    """Return the users who lose most under each schedule, five at most, beside the first.

    Cells have a user, how many times as large their mean bounded slowdown is, and their jobs. A
    column is a schedule; those of other jobs than the first, and those under which nobody loses,
    are left out.

    Parameters
    ----------
    parts : name -> schedule.

    Returns
    -------
    None where nobody loses, or all jobs are of one user.
    """
    (name, first), *others = gains.who_pays(parts).items()
    losers = {other: paid.lose_most for other, paid in others if paid.lose_most}
    if first.users < 2 or not losers:
        return None
    cells = [
        [f"{of.user}: {of.ratio:,.2f} ({counted(of.jobs, 'job')})" for of in lost]
        for lost in losers.values()
    ]
    rows = [[str(place), *row] for place, row in enumerate(zip_longest(*cells, fillvalue=""), 1)]
    title = f"Users who lose most: the ratio of their mean bounded slowdown to {name}'s"
    return Table(["", *losers], rows, 1 + len(losers), title)


def write_csvs(
    tables: Mapping[str, pd.DataFrame], folder: str | Path, index: bool = True
) -> list[Path]:
    """Write tables as ``NAME.csv`` into a folder, which is made if need be; return the files.

    Raises
    ------
    HpcgymError : a file that cannot be written.
    """
    files = []
    for name, table in tables.items():
        files.append(Path(folder, f"{name}.csv"))
        with whole_text(files[-1], folders=True) as file:
            write_csv_frame(table, file, index=index)
    return files
