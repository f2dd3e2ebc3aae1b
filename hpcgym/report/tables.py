"""Tables of metrics: as DataFrame, and for people with the best values marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpcgym.report.labels import Results, named
from hpcgym.report.numbers import shown

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from hpcgym.schedule.result import Result

LESS, MORE, NEITHER = -1, 1, 0  # what is better


@dataclass(frozen=True)
class Metric:
    """How a metric is shown.

    Attributes
    ----------
    name : key in ``Result.metrics``.
    title : heading for people.
    unit : of what is shown, empty for plain numbers.
    better : LESS, MORE or NEITHER.
    scale : factor from the metric to what is shown.
    """

    name: str
    title: str
    unit: str = ""
    better: int = NEITHER
    scale: float = 1

    @property
    def heading(self) -> str:
        """Title and unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def text(self, value: float) -> str:
        """Return a value of the metric for people."""
        return shown(value if self.scale == 1 else value * self.scale)


_JOULES_A_MWH = 3.6e9

#: All metrics of any schedule in the order in which they are shown; others follow.
METRICS = (
    Metric("jobs", "jobs"),
    Metric("mean_bsld", "mean BSLD", "", LESS),
    Metric("rms_bsld", "RMS BSLD", "", LESS),
    Metric("median_bsld", "median BSLD", "", LESS),
    Metric("p95_bsld", "P95 of BSLD", "", LESS),
    Metric("p99_bsld", "P99 of BSLD", "", LESS),
    Metric("max_bsld", "max BSLD", "", LESS),
    Metric("mean_bsld_short", "mean BSLD of short jobs", "", LESS),
    Metric("mean_bsld_medium", "mean BSLD of medium jobs", "", LESS),
    Metric("mean_bsld_long", "mean BSLD of long jobs", "", LESS),
    Metric("mean_slowdown", "mean slowdown", "", LESS),
    Metric("mean_wait_s", "mean wait", "s", LESS),
    Metric("max_wait_s", "max wait", "s", LESS),
    Metric("mean_response_s", "mean response", "s", LESS),
    Metric("max_response_s", "max response", "s", LESS),
    Metric("utilization", "utilisation", "%", MORE, 100),
    Metric("makespan_s", "makespan", "s", LESS),
    Metric("mean_queue_length", "mean queued jobs", "", LESS),
    Metric("max_queue_length", "max queued jobs", "", LESS),
    Metric("backfilled_share", "backfilled", "%", NEITHER, 100),
    Metric("starved_share", "starved", "%", LESS, 100),
    Metric("killed_jobs", "killed jobs"),
    Metric("energy_idle_j", "energy idle", "MWh", LESS, 1 / _JOULES_A_MWH),
    Metric("energy_busy_j", "energy busy", "MWh", LESS, 1 / _JOULES_A_MWH),
    Metric("energy_off_j", "energy off", "MWh", LESS, 1 / _JOULES_A_MWH),
    Metric("energy_switching_j", "energy switching", "MWh", LESS, 1 / _JOULES_A_MWH),
    Metric("energy_j", "energy", "MWh", LESS, 1 / _JOULES_A_MWH),
)

#: Metrics of some machines, of limits, of energy whose carbon intensity or price is known, and of
#: jobs that share nodes.
SOMETIMES = (
    Metric("energy_components_j", "energy components", "MWh", LESS, 1 / _JOULES_A_MWH),
    Metric("cap_exceeded_s", "above caps", "s", LESS),
    Metric("budget_exceeded_j", "above budgets", "MWh", LESS, 1 / _JOULES_A_MWH),
    Metric("carbon_g", "carbon", "kg", LESS, 1e-3),
    Metric("cost", "cost of energy", "", LESS),
    Metric("makespan_improvement", "makespan improvement", "%", MORE, 100),
    Metric("mean_job_speedup", "mean job speedup", "", MORE),
    Metric("slowed_share", "slowed down", "%", LESS, 100),
    Metric("compact_share", "compact jobs", "%", NEITHER, 100),
    Metric("throughput_per_h", "throughput", "jobs/h", MORE),
)

#: Columns of the table that compares schedulers on a terminal.
COMPARED = (
    "mean_bsld",
    "p95_bsld",
    "max_bsld",
    "mean_wait_s",
    "max_wait_s",
    "utilization",
)

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

    from hpcgym.schedule.metrics import told_metrics

    parts = named(results)
    rows = [told_metrics(result) for result in parts.values()]
    return pd.DataFrame(rows, index=pd.Index(list(parts), name="scheduler"))


def described(names: Sequence[str]) -> list[Metric]:
    """Return how metrics are shown; one that is not known here by its own name."""
    known = {metric.name: metric for metric in (*METRICS, *SOMETIMES)}
    return [known.get(name) or Metric(name, name.replace("_", " ")) for name in names]


def in_order(metrics: Mapping[str, Any]) -> list[Metric]:
    """Return all metrics of a result in the order in which they are shown."""
    known = [metric.name for metric in (*METRICS, *SOMETIMES) if metric.name in metrics]
    return described([*known, *(name for name in metrics if name not in known)])


def best(metric: Metric, values: Sequence[float]) -> list[bool]:
    """Tell which values are the best; none if all are shown alike, or nothing is better.

    Values that are shown alike are equally good: a mark must not depend on a rounding error.
    """
    texts = [metric.text(value) for value in values]
    numbers = [value for value in values if value == value]  # NaN differs from itself
    if metric.better == NEITHER or len({*texts}) < 2 or not numbers:
        return [False] * len(values)
    top = metric.text(max(numbers) if metric.better == MORE else min(numbers))
    return [text == top for text in texts]


def comparison(
    results: Results, names: Sequence[str] | None = None
) -> list[list[tuple[str, bool]]]:
    """Return a table for people: rows of (text, is it the best), the heading being the first.

    Parameters
    ----------
    results : a result, a sequence of them, or name -> result.
    names : metrics, one column each; None: ``COMPARED``, or where all results have speedups of
        jobs, those of ``SHARED`` that they have.
    """
    parts = named(results)
    if names is None:
        sharing = bool(_known_to_all(["mean_job_speedup"], parts))
        names = _known_to_all(SHARED, parts) if sharing else COMPARED
    metrics = described(names)
    marks = {
        metric.name: best(metric, [part.metrics[metric.name] for part in parts.values()])
        for metric in metrics
    }
    heading = [("scheduler", False), *((metric.heading, False) for metric in metrics)]
    rows = [
        [
            (name, False),
            *(
                (metric.text(part.metrics[metric.name]), marks[metric.name][row])
                for metric in metrics
            ),
        ]
        for row, (name, part) in enumerate(parts.items())
    ]
    return [heading, *rows]


def _known_to_all(names: Sequence[str], parts: Mapping[str, Result]) -> list[str]:
    """Return the metrics that all results have."""
    return [name for name in names if all(name in part.metrics for part in parts.values())]


def rich_comparison(results: Results, names: Sequence[str] | None = None) -> Table:
    """Return the table that compares schedulers, for rich; ``*`` marks the best of a column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    heading, *rows = comparison(results, names)
    marked = any(top for row in rows for _, top in row)
    caption = "* best of its column" if marked else None
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, caption=caption, caption_justify="left"
    )
    table.add_column(heading[0][0], overflow="fold")
    for text, _ in heading[1:]:
        table.add_column(_two_lines(text), justify="right", no_wrap=True)
    for (name, _), *values in rows:
        cells = [
            Text(f"{text}*", "bold green") if top else Text(f"{text} ") for text, top in values
        ]
        table.add_row(Text(name), *cells)
    return table


def _two_lines(heading: str) -> str:
    """Return a heading broken where it becomes narrowest, with room for a mark behind it."""
    words = heading.split()
    breaks = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(len(words))]
    first, second = min(breaks, key=lambda lines: max(map(len, lines)))
    return f"{first} \n{second} "


def rich_metrics(result: Result) -> Table:
    """Return all metrics of one result as a table of two columns, for rich."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from hpcgym.schedule.metrics import told_metrics

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("unit")
    for metric in in_order(told_metrics(result)):
        table.add_row(metric.title, metric.text(result.metrics[metric.name]), metric.unit)
    return table
