"""The metrics of a schedule: one table, with the unit, the direction and the formula of each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, did_you_mean, is_number
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.schedule.books import books
from hpcgym.schedule.schedule import RECORDED, Schedule, kept
from hpcgym.units import HOUR_S
from hpcgym.workload.amounts import of_units

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster
    from hpcgym.workload.model import Workload


# --- The slowdown of jobs, of arrays --------------------------------------------------------------

TAU_S = 10  # [s] run times below this count as this in the bounded slowdown


def check_tau(tau: float) -> float:
    """Return what short run times count as [s], checked.

    Raises
    ------
    HpcgymError : no number above 0.
    """
    if not is_number(tau) or not 0 < tau < np.inf:
        raise HpcgymError(f"tau must be a number of seconds above 0, not {tau!r}")
    return float(tau)


def bsld(
    wait: NDArray[np.int64],
    run: NDArray[np.int64],
    tau: float = TAU_S,
    full_speed: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return the bounded slowdown of each job: max((wait + run) / max(full_speed, tau), 1).

    Legrand et al. 2018, equation 1; Glesser 2016, section 7.4.3: there no job is slowed down, and
    ``full_speed`` is ``run``.

    Parameters
    ----------
    wait, run : (n_jobs,) [s] waiting and run times.
    tau : [s] run times below this count as this.
    full_speed : (n_jobs,) [s] run times at the highest frequency; None: as they are.
    """
    length = run if full_speed is None else full_speed
    return np.maximum((wait + run) / np.maximum(length, tau), 1.0)


def bsld_of(result: Schedule) -> NDArray[np.float64]:
    """Return the bounded slowdown of each job of a schedule, (n_jobs,)."""
    return bsld(result.wait, result.run_time, full_speed=result.full_speed_run_time)


def slowdown(wait: NDArray[np.int64], run: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the slowdown of each job: (wait + run) / run, (n_jobs,)."""
    return (wait + run) / run


def weighted_wait(processors: NDArray[np.int64], run: NDArray[Any], wait: NDArray[Any]) -> float:
    """Return the area-weighted wait: sum(processors x run x wait) / sum(processors x run).

    Short waits of most jobs weigh little in it if wide and long ones starve. nan without area.

    Parameters
    ----------
    processors : (n_jobs,) of each job.
    run, wait : (n_jobs,) in any units; what is returned has that of ``wait``.
    """
    area = processors * run.astype(np.float64)
    total = float(area.sum())
    return float((area * wait).sum()) / total if total else float("nan")


# --- How many jobs wait, and how many processors are busy, as time goes on ------------------------


def queue_length(result: Schedule) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of waiting jobs over time.

    Returns
    -------
    times : (n_times,) int64 [s], strictly increasing; each value holds from its time to the next.
    lengths : (n_times,) int64; the last is 0.
    """
    seen = result.runs.from_begin
    return _steps(seen.workload.submit_time, seen.start, np.ones(len(seen.start), np.int64))


def processors_in_use(result: Schedule) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of busy processors over time, as :func:`queue_length` does."""
    seen = result.runs.from_begin
    return _steps(seen.start, seen.end, seen.workload.requested_processors)


def mean_congestion(result: Schedule) -> float:
    """Return how many times as long files take, averaged over the makespan; 1 without congestion.

    Of a machine with a bandwidth: max(1, what running jobs ask for / bandwidth), see
    :class:`hpcgym.machine.speedups.Heatmap`.
    """
    run, bandwidth = result.coschedule, result.cluster.io_bytes_s
    assert run is not None
    assert bandwidth is not None
    demand = result.workload.requested_processors * run.speedups.io_bytes_s[run.code]
    times, asked = _steps(result.start, result.end, demand)
    longer = np.maximum(asked[:-1] / bandwidth, 1) - 1
    span = result.end.max(initial=0) - result.workload.submit_time.min(initial=0)
    return 1 + float((longer * np.diff(times)).sum()) / float(span) if span else 1.0


def _steps(
    begin: NDArray[np.int64], end: NDArray[np.int64], amount: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the step function that is the sum of ``amount`` over [begin, end) of all jobs."""
    moments = np.concatenate([begin, end])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    totals = np.cumsum(np.concatenate([amount, -amount])[order])
    last = np.flatnonzero(np.diff(moments, append=moments[-1:] + 1))  # of all changes at a time
    return moments[last], totals[last]


def longest_queue(result: Schedule) -> int:
    """Return the greatest number of waiting jobs: some submission reaches it."""
    submits, starts = result.workload.submit_time, np.sort(result.start)
    longest = 0
    for first in range(0, submits.size, 1_000_000):
        times = submits[first : first + 1_000_000]
        waiting = np.searchsorted(submits, times, "right") - np.searchsorted(starts, times, "right")
        longest = max(longest, int(waiting.max()))
    return longest


# --- The energy of a schedule by what its machine does --------------------------------------------

_ROUNDING = 1e-12  # of sums of powers


def energies_j(cluster: Cluster, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the energy of processors by what they do [J], from processor seconds by the same."""
    off, on = seconds.get("switching_off", 0), seconds.get("switching_on", 0)
    return {
        "energy_busy_j": seconds["busy"] * cluster.busy_power_w,
        "energy_idle_j": seconds["idle"] * cluster.idle_power_w,
        "energy_off_j": seconds.get("off", 0) * cluster.off_power_w,
        "energy_switching_j": off * cluster.shutdown_w + on * cluster.boot_w,
    }


def books_energies_j(result: Schedule) -> dict[str, float]:
    """Return the energy by what nodes do, and of components where the machine has any [J]."""
    states = books(result).by_state
    energies = {
        "energy_busy_j": sum(states[name] for name in states if name.startswith("busy")),
        "energy_idle_j": states["idle"],
        "energy_off_j": states["off"],
        "energy_switching_j": states["switching_off"] + states["switching_on"],
    }
    if result.cluster.levels:
        energies["energy_components_j"] = states["components"]
    return energies


def _limits(result: Schedule, amount: str) -> list[Any]:
    """Return the limits of a schedule that have an amount: caps "watts", budgets "joules"."""
    return [limit for limit in result.limits or () if hasattr(limit, amount)]


def exceeded_s(result: Schedule) -> int:
    """Return how long the power is above any cap that is known [s]; each second counts once."""
    caps, times, watts = _limits(result, "watts"), books(result).time, books(result).total_w
    windows = [
        (max(cap.start, cap.announced or 0), times[-1] if cap.end is None else cap.end)
        for cap in caps
    ]
    cuts = np.unique(np.concatenate([times, np.clip(np.ravel(windows), times[0], times[-1])]))
    here = watts[np.searchsorted(times, cuts[:-1], "right") - 1]
    above = np.zeros(len(here), np.bool_)
    for cap, (begin, end) in zip(caps, windows, strict=True):
        inside = (cuts[:-1] >= begin) & (cuts[:-1] < end)
        above |= inside & (here > cap.watts * (1 + _ROUNDING))
    return int(np.diff(cuts)[above].sum())


def exceeded_j(result: Schedule) -> float:
    """Return what was used beyond budgets [J]."""
    excess = 0.0
    for budget in _limits(result, "joules"):
        used = books(result).joules(budget.start, budget.end)
        if used > budget.joules * (1 + _ROUNDING):
            excess += used - budget.joules
    return excess


# --- The metrics of a schedule --------------------------------------------------------------------

#: Classes of jobs by their run time [s]: name -> (from, below).
LENGTH_CLASSES = {"short": (0, 600), "medium": (600, 7200), "long": (7200, 2**62)}
#: Classes of jobs by their size: small ones ask for no more than one processor of so many.
SIZE_CLASSES, SMALL = ("small", "large"), 8

LESS, NEITHER, MORE = -1, 0, 1  # Metric.better

_JOULES_A_MWH = 3.6e9
_ROUNDING_OF_TICKS = 1e-9


def in_class(run: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """Return which jobs are of a class of :data:`LENGTH_CLASSES` by their run time [s]."""
    low, high = LENGTH_CLASSES[name]
    return (run >= low) & (run < high)


class Facts:
    """What formulas of metrics are made of.

    Attributes
    ----------
    result : the schedule.
    jobs : (n_jobs,) bool, of which jobs metrics of jobs are: ``Schedule.counted``, or a group of
        them.
    n : their number.
    wait, run : (n,) [s].
    bsld : (n,) bounded slowdowns; one nan without jobs.
    machine : the schedule from its beginning on: of the machine, all jobs count, and all runs.
    delays : (n_promised,) [s] from the first promise to a job to its first start, below 0 of those
        that started before; of jobs that were promised a start.
    span : [s] the makespan C, last end - first submission; 0 without jobs.
    busy : processor seconds of jobs.
    energies : name -> J, by what processors or nodes do; none without a span.
    """

    def __init__(self, result: Schedule, jobs: NDArray[np.bool_] | None = None) -> None:
        jobs = result.counted if jobs is None else jobs
        self.result, self.jobs = result, jobs
        self.n = int(np.count_nonzero(jobs))
        self.wait, self.run = result.wait[jobs], result.run_time[jobs]
        self.bsld = bsld_of(result)[jobs] if self.n else np.full(1, np.nan)
        self.machine = result.runs.from_begin

    @cached_property
    def delays(self) -> NDArray[np.int64]:  # noqa: D102 - the class says what it is
        result, begun = self.result, self.result.start
        if result.lost is not None:  # a job that lost its run has kept its promise
            begun = begun.copy()
            np.minimum.at(begun, result.lost.job, result.lost.start)
        promised = self.jobs & (result.reserved_start >= 0)
        delays: NDArray[np.int64] = (begun - result.reserved_start)[promised]
        return delays

    @cached_property
    def span(self) -> float:  # noqa: D102
        seen = self.machine
        if not len(seen.start):
            return 0
        span: float = (seen.end.max() - seen.workload.submit_time.min()).item()
        return span

    @cached_property
    def busy(self) -> float:  # noqa: D102
        seen = self.machine
        return _sum_of_products(seen.workload.requested_processors, seen.run_time)

    @cached_property
    def energies(self) -> Mapping[str, float]:  # noqa: D102
        seen = self.machine
        if not self.span:
            return {}
        if seen.keeps_books:
            return books_energies_j(seen)
        idle = {"idle": seen.cluster.processors * self.span - self.busy}
        return energies_j(seen.cluster, {"busy": self.busy, **(seen.idle_seconds or idle)})

    def in_use(self, resource: str) -> float:
        """Return what jobs have of a resource of nodes over what there is, averaged over C.

        nan without such a resource, or without jobs.
        """
        seen, cluster = self.machine, self.result.cluster
        if resource not in cluster.resources:
            return np.nan
        there_is = cluster.capacity[:, cluster.resources.index(resource)].sum(dtype=np.float64)
        used = _sum_of_products(of_units(seen.workload, resource), seen.run_time)
        return used / (there_is * self.span) if there_is * self.span else np.nan

    def of_class(self, name: str) -> NDArray[np.float64]:
        """Return the bounded slowdowns of a class of jobs."""
        return self.bsld[in_class(self.run, name)] if self.n else self.bsld[:0]


class Metric(NamedTuple):
    """A metric, and how people are shown it.

    Attributes
    ----------
    name : key in ``Result.metrics``; ends in its unit, ``_s`` seconds or ``_j`` joules.
    title : heading for people.
    unit : of what is shown, empty for plain numbers.
    better : LESS, MORE or NEITHER.
    scale : factor from the metric to what is shown.
    formula : takes :class:`Facts`; None where something else tells it: signals, a comparison.
    of : which schedules have it, a key of :data:`HAVE`; "": all.
    of_jobs : whether groups of jobs have it too, since it looks at nothing but ``Facts.jobs``.
    """

    name: str
    title: str
    unit: str = ""
    better: int = NEITHER
    scale: float = 1
    formula: Callable[[Facts], float | int] | None = None
    of: str = ""
    of_jobs: bool = False

    @property
    def heading(self) -> str:
        """Title and unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


def _jobs(name: str, title: str, unit: str, formula: Callable[[Facts], float | int]) -> Metric:
    """Return a metric of jobs of which less is better, nan without jobs."""
    or_nan = lambda f: formula(f) if f.n else np.nan  # noqa: E731
    return Metric(name, title, unit, LESS, 1, or_nan, of_jobs=True)


def _of_class(name: str) -> Metric:
    title = f"mean BSLD of {name} jobs"
    mean = lambda f: float(f.of_class(name).mean()) if f.of_class(name).size else np.nan  # noqa: E731
    return Metric(f"mean_bsld_{name}", title, "", LESS, 1, mean)


def _percentile(name: str, title: str, share: int) -> Metric:
    return _jobs(name, title, "", lambda f: float(np.percentile(f.bsld, share)))


def _energy(name: str, of: str = "") -> Metric:
    title, key = f"energy {name}", f"energy_{name}_j"
    return Metric(
        key, title, "MWh", LESS, 1 / _JOULES_A_MWH, lambda f: f.energies.get(key, 0.0), of
    )


def _share(name: str, title: str, better: int, formula: Callable[[Facts], float]) -> Metric:
    """Return a metric of jobs that is shown in per cent, 0 without jobs."""
    share = lambda f: formula(f) / max(f.n, 1)  # noqa: E731
    return Metric(name, title, "%", better, 100, share, of_jobs=True)


def _shared(
    name: str, title: str, unit: str, better: int, scale: float, formula: Callable[[Facts], float]
) -> Metric:
    """Return a metric of schedules whose jobs may have shared nodes."""
    return Metric(name, title, unit, better, scale, formula, "shared nodes")


#: Facts that only some schedules have -> whether a schedule has them.
HAVE: dict[str, Callable[[Facts], bool]] = {
    "": lambda f: True,
    "levels": lambda f: bool(f.span and f.machine.cluster.levels),
    "caps": lambda f: bool(_limits(f.result, "watts")),
    "budgets": lambda f: bool(_limits(f.result, "joules")),
    "shared nodes": lambda f: f.n > 0 and f.result.coschedule is not None,
    "files": lambda f: (
        f.n > 0 and f.result.coschedule is not None and f.result.cluster.io_bytes_s is not None
    ),
    "failures": lambda f: f.result.lost is not None,
    "cancelling": lambda f: f.result.cancels,
    "suspending": lambda f: f.result.pieces is not None,
    "dispatch time": lambda f: f.n > 0 and f.result.dispatching is not None,
}


def _starved(f: Facts) -> float:
    """Return the share of jobs that waited longer than the threshold; nan without one."""
    threshold = f.result.scheduler.threshold
    return np.nan if threshold is None else int((f.wait > threshold).sum()) / max(f.n, 1)


def _area_weighted_wait(f: Facts) -> float:
    """Return the mean of the waits [s], weighted by areas; nan where no job has any."""
    return weighted_wait(f.result.workload.requested_processors[f.jobs], f.run, f.wait)


#: All metrics, in the order in which they are shown. n: jobs, m: processors, C: the makespan.
METRICS = (
    Metric("jobs", "jobs", formula=lambda f: f.n, of_jobs=True),
    _jobs("mean_bsld", "mean BSLD", "", lambda f: float(f.bsld.mean())),
    _jobs("rms_bsld", "RMS BSLD", "", lambda f: float(np.sqrt(np.mean(f.bsld * f.bsld)))),
    _percentile("median_bsld", "median BSLD", 50),
    _percentile("p95_bsld", "P95 of BSLD", 95),
    _percentile("p99_bsld", "P99 of BSLD", 99),
    _jobs("max_bsld", "max BSLD", "", lambda f: float(f.bsld.max())),
    *map(_of_class, LENGTH_CLASSES),
    _jobs("mean_slowdown", "mean slowdown", "", lambda f: float(slowdown(f.wait, f.run).mean())),
    _jobs("mean_wait_s", "mean wait", "s", lambda f: float(f.wait.mean())),
    _jobs("max_wait_s", "max wait", "s", lambda f: f.wait.max().item()),
    _jobs("p99_wait_s", "P99 of wait", "s", lambda f: float(np.percentile(f.wait, 99))),
    _jobs("area_weighted_wait_s", "area-weighted wait", "s", _area_weighted_wait),
    _jobs("mean_response_s", "mean response", "s", lambda f: float((f.wait + f.run).mean())),
    _jobs("max_response_s", "max response", "s", lambda f: (f.wait + f.run).max().item()),
    Metric(  # sum of processors x run time / (m C)
        "utilization", "utilization", "%", MORE, 100,
        lambda f: f.busy / (f.machine.cluster.processors * f.span) if f.span else np.nan,
    ),
    Metric("makespan_s", "makespan", "s", LESS, 1, lambda f: f.span),
    Metric(  # waiting jobs, averaged over C
        "mean_queue_length", "mean queued jobs", "", LESS, 1,
        lambda f: float(f.machine.wait.sum(dtype=np.float64)) / f.span if f.span else np.nan,
    ),
    Metric(
        "max_queue_length", "max queued jobs", "", LESS, 1,
        lambda f: longest_queue(f.machine) if f.span else 0,
    ),
    Metric(  # how long the dispatcher took for the answer that started the job
        "mean_dispatch_s", "mean dispatch time", "s", LESS, 1,
        lambda f: float(f.result.dispatching.late[f.jobs].mean()),  # type: ignore[union-attr]
        "dispatch time", of_jobs=True,
    ),
    _share(  # started before a job that came earlier in the queue
        "backfilled_share", "backfilled", NEITHER, lambda f: int(f.result.backfilled[f.jobs].sum())
    ),
    # each scheduler has a threshold of its own: fewer beyond a longer one are not better
    Metric("starved_share", "starved", "%", NEITHER, 100, _starved, of_jobs=True),
    Metric(  # of jobs that were promised a start; by the rules, or as another came first
        "promises_broken", "promises broken", "%", LESS, 100,
        lambda f: float((f.delays > 0).mean()) if f.delays.size else np.nan, of_jobs=True,
    ),
    Metric(
        "max_promise_delay_s", "max delay of a promise", "s", LESS, 1,
        lambda f: max(f.delays.max().item(), 0) if f.delays.size else np.nan, of_jobs=True,
    ),
    # cut at their requested time, or killed for a cap
    Metric(
        "killed_jobs", "killed jobs",
        formula=lambda f: int(f.result.killed[f.jobs].sum()), of_jobs=True,
    ),
    Metric(  # stopped by others, not to run again
        "cancelled_jobs", "cancelled jobs", better=LESS,
        formula=lambda f: int(f.result.cancelled[f.jobs].sum()), of="cancelling", of_jobs=True,
    ),
    Metric(  # of runs that a failure of a node, or another job, ended
        "lost_runs", "lost runs", better=LESS,
        formula=lambda f: int(f.result.restarts[f.jobs].sum()), of="failures", of_jobs=True,
    ),
    Metric(
        "lost_core_seconds", "lost core time", "core h", LESS, 1 / HOUR_S,
        lambda f: int(f.result.lost_core_seconds[f.jobs].sum()), "failures", of_jobs=True,
    ),
    Metric(  # how often a job was suspended
        "suspensions", "suspensions", better=LESS,
        formula=lambda f: int(f.jobs[f.result.pieces.job].sum()),  # type: ignore[union-attr]
        of="suspending", of_jobs=True,
    ),
    Metric(  # of all jobs; part of their mean wait
        "mean_suspended_s", "mean time suspended", "s", LESS, 1,
        lambda f: float(f.result.suspended[f.jobs].mean()) if f.n else np.nan,  # type: ignore[index]
        "suspending", of_jobs=True,
    ),
    _energy("idle"),
    _energy("busy"),
    _energy("off"),
    _energy("switching"),
    Metric(  # the integral of power over C
        "energy_j", "energy", "MWh", LESS, 1 / _JOULES_A_MWH,
        lambda f: sum(f.energies.values()) if f.span else 0.0,
    ),
    _energy("components", "levels"),
    Metric(  # how long the power was above a cap that held and was known
        "cap_exceeded_s", "above caps", "s", LESS, 1,
        lambda f: exceeded_s(f.result), "caps",
    ),
    Metric(  # what was used beyond budgets
        "budget_exceeded_j", "above budgets", "MWh", LESS, 1 / _JOULES_A_MWH,
        lambda f: exceeded_j(f.result), "budgets",
    ),
    Metric("carbon_g", "carbon", "kg", LESS, 1e-3),
    Metric("cost", "cost of energy", "", LESS),
    Metric("makespan_improvement", "makespan improvement", "%", MORE, 100),
    # run time of compact jobs over that which it took (ELiSE); below 1, slowed down
    _shared(
        "mean_job_speedup", "mean job speedup", "", MORE, 1,
        lambda f: float(f.result.job_speedup[f.jobs].mean()),
    ),
    _shared(
        "slowed_share", "slowed down", "%", LESS, 100,
        lambda f: float((f.result.job_speedup[f.jobs] < 1 - _ROUNDING_OF_TICKS).mean()),
    ),
    _shared(  # as the rules say, or because they are too wide
        "compact_share", "compact jobs", "%", NEITHER, 100,
        lambda f: float((f.result.coschedule.shape[f.jobs] == 0).mean()),  # type: ignore[union-attr]
    ),
    Metric(  # where the machine has a bandwidth: how many times as long files take
        "io_congestion", "I/O congestion", "", LESS, 1,
        lambda f: mean_congestion(f.result), "files",
    ),
    _shared(
        "throughput_per_h", "throughput", "jobs/h", MORE, 1,
        lambda f: len(f.result.start) / float(f.span) * HOUR_S,
    ),
)  # fmt: skip


#: What names of metrics of resources begin with; behind it stands the resource.
_IN_USE = "utilization_"
#: What only a simulation can tell, by its rules.
_BY_RULES = ("backfilled_share", "starved_share", "promises_broken", "max_promise_delay_s")
#: What is said of a machine, and needs all of its time; energies, too.
_OF_THE_MACHINE = (
    *("utilization", "makespan_s", "mean_queue_length", "max_queue_length", "io_congestion"),
    *("throughput_per_h", "cap_exceeded_s", "budget_exceeded_j"),
)


def is_of_jobs(name: str) -> bool:
    """Tell whether a metric is of jobs, and not of the machine."""
    return name not in _OF_THE_MACHINE and not name.startswith((_IN_USE, "energy"))


def utilization_of(resource: str) -> str:
    """Return the name of the metric that says which share of a resource jobs have."""
    return _IN_USE + resource


def _of_resource(resource: str) -> Metric:
    """Return the share of a resource of nodes that jobs have, as ``utilization`` of processors."""
    title = f"{resource} utilization"
    return Metric(utilization_of(resource), title, "%", MORE, 100, lambda f: f.in_use(resource))


def metrics_of(cluster: Cluster) -> tuple[Metric, ...]:
    """Return the metrics of schedules of a machine, in the order in which they are shown.

    They are :data:`METRICS`, and the utilization of each resource of nodes beside processors of
    which there is not always enough, such as ``utilization_gpu``.
    """
    counted = [resource for resource in cluster.node_resources[1:] if _runs_out(cluster, resource)]
    place = next(k for k, metric in enumerate(METRICS) if metric.name == "utilization") + 1
    return (*METRICS[:place], *map(_of_resource, counted), *METRICS[place:])


def _runs_out(cluster: Cluster, resource: str) -> bool:
    """Tell whether nodes have an amount of a resource that jobs can use up."""
    amounts = [group.resources.get(resource, 0) for group in cluster.groups]
    return any(amounts) and ANY_NUMBER not in amounts


def metric_called(name: str) -> Metric | None:
    """Return the metric of a name, of :data:`METRICS` or of a resource; None if it is unknown."""
    if is_of_resource(name):
        return _of_resource(name.removeprefix(_IN_USE))
    return known_metrics().get(name)


def is_of_resource(name: str) -> bool:
    """Tell whether a name is that of the utilization of a resource, such as ``utilization_gpu``."""
    return name.startswith(_IN_USE) and name != _IN_USE


def as_shown(names: Iterable[str]) -> list[str]:
    """Return names of metrics in the order in which they are shown, unknown ones last."""
    places = {name: place for place, name in enumerate(known_metrics())}

    def place_of(name: str) -> int:
        return places.get("utilization" if name.startswith(_IN_USE) else name, len(places))

    return sorted(names, key=place_of)


def known_metrics() -> dict[str, Metric]:
    """Return the metrics of all machines by name, in the order in which they are shown."""
    return {metric.name: metric for metric in METRICS}


def ranking_metrics() -> dict[str, Metric]:
    """Return the metrics of a schedule of which less, or more, is better, by name."""
    return {
        name: metric
        for name, metric in known_metrics().items()
        if metric.formula is not None and metric.better != NEITHER
    }


def watts_given(cluster: Cluster | None, workload: Workload) -> bool:
    """Tell whether powers were given, of the machine (None: a usual pool) or of any job."""
    power_w = workload.columns.get("power_w")
    of_jobs = power_w is not None and bool((power_w >= 0).any())
    return of_jobs or (cluster is not None and cluster.watts_given)


def needs_watts(name: str) -> bool:
    """Tell whether a metric is an energy by powers."""
    return name.startswith("energy_")


def compute_metrics(
    result: Schedule, wanted: Callable[[str], bool] = lambda name: True
) -> dict[str, float | int]:
    """Return all metrics of a schedule by name, or those that are ``wanted``.

    Names end in their unit: ``_s`` seconds, ``_j`` joules. With n jobs, m processors and the
    makespan C = last end - first submission:

    - ``mean_``, ``max_``, ``median_``, ``p95_``, ``p99_bsld``; ``rms_bsld``, the root of the mean
      square; ``mean_bsld_short``, ``_medium``, ``_long`` by run time (below 10 min, below 2 h, the
      rest; nan without such jobs): see
      :func:`hpcgym.schedule.metrics.bsld`.
    - ``mean_slowdown``; ``mean_wait_s``, ``max_wait_s``, ``p99_wait_s``;
      ``area_weighted_wait_s``, weighted by processors x run time; ``mean_response_s``,
      ``max_response_s`` (wait + run).
    - ``utilization``: sum of processors x run time / (m C); ``utilization_gpu`` and the like of
      each resource of nodes, with what there is of it as m.
    - ``makespan_s``: C. ``mean_queue_length``: waiting jobs, averaged over C;
      ``max_queue_length``.
    - ``mean_dispatch_s``, where a dispatcher takes time: how long the call took that started the
      job; part of its wait.
    - ``backfilled_share``: of jobs that started before a job that came earlier in the queue;
      ``starved_share``: of jobs that waited longer than the scheduler's threshold, nan without
      one.
    - ``promises_broken``: of jobs that were promised a start (``reserved_start``), those that first
      started later; ``max_promise_delay_s``: how much later at most, 0 if none. nan where none was
      promised any: without reservations, with a dispatcher.
    - where jobs share nodes, ``mean_job_speedup``, compact run time / actual run time (ELiSE);
      ``slowed_share``, of jobs for which it is below 1; ``compact_share``, of jobs that are
      compact, by the rules or because they are too wide; ``throughput_per_h``, jobs over C in
      hours. The bounded slowdown divides by compact run times there.
    - ``io_congestion``, where jobs share files too: the factor by which file access is slower,
      max(1, demand of running jobs / bandwidth), averaged over C.
    - ``killed_jobs``: cut at their requested time, or killed for a cap.
    - ``lost_runs``, where nodes fail or jobs stop others: runs that were ended so, and began anew;
      ``lost_core_seconds``: processor seconds of these and of cancelled jobs. ``utilization``,
      energies and the queue count these runs too.
    - ``cancelled_jobs``, where jobs cancel others: those; they count among ``killed_jobs``.
    - ``suspensions``, where jobs suspend others: how often; ``mean_suspended_s``: for how long, of
      all jobs. Waits, and so slowdowns, have this time in them.
    - ``energy_busy_j``, ``energy_idle_j``, ``energy_off_j``, ``energy_switching_j``: of processors
      that are busy, idle, off, and being switched off or on; of nodes, where these have a power of
      their own, see :mod:`hpcgym.schedule.books`, and where something stands above nodes
      ``energy_components_j`` of it. ``energy_j``: their sum, the integral of power over C.
      If no powers were given, each processor draws those of a node of Glesser 2016, table 4.2:
      :func:`told_metrics` leaves such energies out.
    - ``cap_exceeded_s``, under caps: how long the power was above one that held and was known;
      ``budget_exceeded_j``, under budgets: what was used beyond them.

    Of an extract n are the jobs that the schedule started, and their waiting counts from their
    submission. Where jobs run or wait at its beginning, C begins there; machine and queue are what
    they are from then on, with the jobs that run.

    Without jobs counts, shares of jobs, makespan and energies are 0, and all else is nan. Of a
    schedule that has jobs to start (``ended``) n are the jobs that have ended, and metrics of the
    machine are nan.
    """
    facts = Facts(result)
    whole = result.ended is None
    return {
        metric.name: metric.formula(facts) if whole or is_of_jobs(metric.name) else np.nan
        for metric in metrics_of(result.cluster)
        if metric.formula is not None and wanted(metric.name) and HAVE[metric.of](facts)
    }


class Metrics(dict[str, float | int]):
    """Metrics by name, also as attributes: ``result.metrics.mean_bsld``."""

    def __getattr__(self, name: str) -> float | int:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no metric {name!r}; {did_you_mean(name, self)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


@kept
def metrics(result: Schedule) -> Metrics:
    """Return all metrics of a schedule, by name, worked out once."""
    return Metrics(compute_metrics(result))


def told_metrics(result: Schedule) -> dict[str, float | int]:
    """Return the metrics that tables, pages and files have: no energies unless watts were given.

    Of a past that a log recorded, none by what it does not tell.
    """
    watts = watts_given(result.cluster, result.workload)
    past = result.replayed_on == RECORDED
    return {
        name: value
        for name, value in metrics(result).items()
        if (watts and not past) or not needs_watts(name)
        if not (past and name in _BY_RULES)
    }


def _sum_of_products(processors: NDArray[np.int64], run: NDArray[Any]) -> float:
    """Return the processor seconds of all jobs, of whole run times exactly."""
    if run.dtype != np.int64:
        return float((processors * run).sum())  # dot products differ from processor to processor
    # not as a dot product of floats: its threads take longer to wake than the sum takes
    if (processors * run.astype(np.float64)).sum() < 2.0**62:
        return int(np.dot(processors, run))
    # no int64 holds them, but Python's integers do
    total: int = sum(map(operator.mul, processors.tolist(), run.tolist()))
    return total
