"""Jobs that come in campaigns: the machinery of the Eurora-like and KIT-like workloads.

A *campaign* is one user running one program again and again: the same name, queue, requested time
and resources, and nearly the same run time, until something else begins. So Remediani 2017, section
3.1.2, describes its log; the machinery is this project's own:

1. Each class of run times gets its published share of the jobs, to the nearest job. Its jobs are
   cut into campaigns of 1 to ``repeats`` jobs, log-uniform.
2. A campaign has a user, drawn by Zipf's law, and one of the user's programs, the first ones more
   often. The program tells what a unit asks for; the campaign, how many units.
3. The campaign's run time is log-uniform in its class; that of a job differs from it by a factor
   exp(normal(0, ``SPREAD``)), and stays in the class.
4. The campaign's queue and requested time follow from its class: that of most users is the queue's
   limit, its default; the others over-estimate by ``FACTORS``, rounded up to ``ROUND_S``.
5. Campaigns begin by a daily cycle. Half of the other jobs follow within seconds, as scripts
   submit them; half after an exponential time with the mean of the run time, but at least
   ``LEAST_THINKING_S``. Time is a circle: what would be submitted after the end is so at the
   beginning, so that the load is even without a start-up phase.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.naming import CORE, MEMORY
from hpcgym.workload.generators.arguments import positive, whole
from hpcgym.workload.model import MAX_TIME, Workload

IntArray = NDArray[np.int64]

SPREAD = 0.1  # of run times within a campaign, in ln
PROGRAMS = 8  # of a user
ZIPF_EXPONENT = 0.9  # as hpcgym.workload.generators.users has it
FACTORS = (1.5, 20.0)  # by which requested times exceed run times, log-uniform
ROUND_S = 900
LEAST_THINKING_S = 600
BURST_S = 10  # at most, between two submissions of a script
DAY_S = 86_400
#: Relative number of campaigns that begin in each hour of the day.
CYCLE = np.array([1] * 8 + [3] * 11 + [1] * 5, dtype=np.float64)


@dataclass(frozen=True)
class DurationClass:
    """Jobs by run time.

    Attributes
    ----------
    share : of all jobs.
    least, most : run times, both included [s].
    repeats : jobs of the longest campaign.
    queues : places of queues in :attr:`Model.queues`, all as likely as each other.
    """

    share: float
    least: int
    most: int
    repeats: int
    queues: tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """Programs by what they ask for; values in a tuple are all as likely as each other.

    Attributes
    ----------
    chance : share of the programs.
    core : cores of a unit.
    memory : MB of a unit for each core.
    most_memory : MB of a unit.
    units : for each class of run times, the numbers of units.
    other : further resources of a unit.
    """

    chance: float
    core: tuple[int, ...]
    memory: tuple[int, ...]
    most_memory: int
    units: tuple[tuple[int, ...], ...]
    other: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """What a workload is like.

    Attributes
    ----------
    name : of the generator.
    processors, nodes : of the machine.
    jobs_per_day : that arrive.
    classes, kinds : of jobs, and of programs.
    queues : names and longest requested times [s].
    users : number of users.
    default_requests : share of campaigns whose requested time is the queue's limit.
    named : whether the jobs' queues and programs are told.
    note : line of the header.
    most_units : what a unit of each campaign asks for, by resource -> the most units it may have;
        more that are drawn are cut to it. None: as drawn.
    """

    name: str
    processors: int
    nodes: int
    jobs_per_day: float
    classes: tuple[DurationClass, ...]
    kinds: tuple[Kind, ...]
    queues: tuple[tuple[str, int], ...]
    users: int
    default_requests: float
    named: bool
    note: str
    most_units: Callable[[Mapping[str, IntArray]], IntArray] | None = None


def generate(
    model: Model, jobs: int | None, days: float | None, seed: int, load: float | None
) -> Workload:
    """Return a workload of the model.

    Parameters
    ----------
    model : what it is like.
    jobs, days : its size. One follows from the other by the model's jobs a day.
    seed : of the random numbers.
    load : sum(processors * run time) / (machine's processors * time); the time of the jobs is
        stretched or squeezed to it, and the daily cycle stays a day long.

    Raises
    ------
    WorkloadError : an argument out of range, or load beside both jobs and days.
    """
    seed = whole(model.name, "seed", seed, 0, 2**64)
    days = positive(model.name, "days", days)
    load = positive(model.name, "load", load)
    if load is not None and jobs is not None and days is not None:
        raise WorkloadError(f"{model.name}: give two of jobs, days and load, not all three")
    if jobs is None:
        jobs = max(1, round((30 if days is None else days) * model.jobs_per_day))
    jobs = whole(model.name, "jobs", jobs, 1, 10**8)
    job_seed, time_seed = np.random.SeedSequence(seed).spawn(2)
    columns, begins = _jobs(model, jobs, np.random.default_rng(job_seed))
    span = (jobs / model.jobs_per_day if days is None else days) * DAY_S
    if load is not None:
        work = np.sum(columns["units"] * columns[CORE] * columns["run_time"], dtype=np.float64)
        span = float(work) / (model.processors * load)
    if span > MAX_TIME / 2:
        raise WorkloadError(f"{model.name}: the jobs spread over more than 2^52 s")
    rng = np.random.default_rng(time_seed)
    submit = _submit_times(begins, columns["run_time"], max(1, math.ceil(span)), rng)
    order = np.argsort(submit, kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    columns["submit_time"] = submit[order]
    given = f"{model.name}(jobs={jobs}, days={span / DAY_S:.6g}, seed={seed}, load={load})"
    return _workload(model, columns, f"{model.name} seed {seed}", given)


def _jobs(
    model: Model, jobs: int, rng: np.random.Generator
) -> tuple[dict[str, IntArray], NDArray[np.bool_]]:
    """Return the jobs' columns but for times, and which of them begin a campaign."""
    sizes, classes = _campaigns(model, jobs, rng)
    campaigns = len(sizes)
    base = np.empty(campaigns)
    for place, kind in enumerate(model.classes):
        at = classes == place
        base[at] = _log_uniform(rng, kind.least, kind.most, int(at.sum()))
    per_campaign = _programs(model, classes, rng)
    queue = np.empty(campaigns, np.int64)
    limits = np.array([limit for _, limit in model.queues])
    for place, duration in enumerate(model.classes):
        at = classes == place
        queue[at] = rng.choice(duration.queues, int(at.sum()))
    too_long = base > limits[queue]  # the queues are in order of their limits
    queue[too_long] = np.searchsorted(limits, base[too_long])
    factor = _log_uniform(rng, *FACTORS, campaigns)
    asked = np.minimum(np.ceil(base * factor / ROUND_S) * ROUND_S, limits[queue])
    by_default = rng.random(campaigns) < model.default_requests
    request = np.where(by_default, limits[queue], asked).astype(np.int64)

    campaign = np.repeat(np.arange(campaigns), sizes)
    run = np.rint(base[campaign] * np.exp(rng.normal(0, SPREAD, jobs))).astype(np.int64)
    bounds = np.array([(kind.least, kind.most) for kind in model.classes])[classes[campaign]]
    run = np.clip(run, bounds[:, 0], np.minimum(bounds[:, 1], request[campaign]))
    columns = {name: values[campaign] for name, values in per_campaign.items()}
    columns |= {"run_time": run, "requested_time": request[campaign], "queue": queue[campaign] + 1}
    begins = np.zeros(jobs, np.bool_)
    begins[np.cumsum(sizes) - sizes] = True
    return columns, begins


def _campaigns(model: Model, jobs: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the jobs of each campaign, and its class."""
    shares = np.cumsum([kind.share for kind in model.classes])
    counts = np.diff(np.rint(shares / shares[-1] * jobs), prepend=0).astype(np.int64)
    sizes, classes = [], []
    for place, (kind, count) in enumerate(zip(model.classes, counts.tolist(), strict=True)):
        drawn = _log_uniform(rng, 1, kind.repeats + 1, count).astype(np.int64)
        ends = np.minimum(np.cumsum(drawn), count)
        part = np.diff(ends, prepend=0)
        part = part[part > 0]  # the last campaign is cut where the class is full
        sizes.append(part)
        classes.append(np.full(len(part), place))
    return np.concatenate(sizes), np.concatenate(classes)


def _programs(model: Model, classes: IntArray, rng: np.random.Generator) -> dict[str, IntArray]:
    """Return each campaign's user, program, units and demands."""
    campaigns = len(classes)
    activity = np.cumsum(np.arange(1, model.users + 1) ** -ZIPF_EXPONENT)
    user = np.searchsorted(activity, rng.random(campaigns) * activity[-1], "right")
    program = user * PROGRAMS + (rng.random(campaigns) ** 2 * PROGRAMS).astype(np.int64)
    number = model.users * PROGRAMS
    chances = np.array([kind.chance for kind in model.kinds])
    kinds = rng.choice(len(model.kinds), number, p=chances / chances.sum())
    others = dict.fromkeys(name for kind in model.kinds for name in kind.other)
    demands = {name: np.zeros(number, np.int64) for name in (CORE, MEMORY, *others)}
    units = np.ones(campaigns, np.int64)
    for place, kind in enumerate(model.kinds):
        at = kinds == place
        core = rng.choice(kind.core, int(at.sum()))
        demands[CORE][at] = core
        memory = core * rng.choice(kind.memory, len(core))
        demands[MEMORY][at] = np.minimum(memory, kind.most_memory)
        for name, amounts in kind.other.items():
            demands[name][at] = rng.choice(amounts, len(core))
        for duration, choices in enumerate(kind.units):
            here = (kinds[program] == place) & (classes == duration)
            units[here] = rng.choice(choices, int(here.sum()))
    columns = {name: values[program] for name, values in demands.items()}
    if model.most_units is not None:
        units = np.minimum(units, model.most_units(columns))
    return {"user_id": user + 1, "executable": program + 1, "units": units, **columns}


def _submit_times(
    begins: NDArray[np.bool_], run_time: IntArray, span: int, rng: np.random.Generator
) -> IntArray:
    """Return submission times from 0 to ``span`` [s] of jobs that lie campaign after campaign."""
    jobs = len(begins)
    first = np.flatnonzero(begins)
    by_script = rng.random(jobs) < 0.5
    thinking = rng.exponential(np.maximum(run_time, LEAST_THINKING_S))
    gap = np.where(by_script, rng.uniform(1, BURST_S, jobs), thinking)
    gap[begins] = 0
    since = np.cumsum(gap)
    since -= np.repeat(since[first], np.diff(first, append=jobs))
    hour = rng.choice(len(CYCLE), len(first), p=CYCLE / CYCLE.sum())
    day = np.floor(rng.random(len(first)) * math.ceil(span / DAY_S))
    start = day * DAY_S + (hour + rng.random(len(first))) * (DAY_S / len(CYCLE))
    times: IntArray = (np.repeat(start, np.diff(first, append=jobs)) + since).astype(
        np.int64
    ) % span
    return times


def _log_uniform(
    rng: np.random.Generator, low: float, high: float, number: int
) -> NDArray[np.float64]:
    """Return numbers whose logarithm is uniform."""
    drawn: NDArray[np.float64] = np.exp(rng.uniform(math.log(low), math.log(high), number))
    return drawn


def _workload(model: Model, columns: dict[str, IntArray], name: str, given: str) -> Workload:
    """Return the columns as a workload."""
    units, core, memory = columns.pop("units"), columns.pop(CORE), columns.pop(MEMORY)
    resources = dict.fromkeys(other for kind in model.kinds for other in kind.other)
    per_unit = {CORE: core, MEMORY: memory, **{r: columns.pop(r) for r in resources}}
    jobs = len(units)
    columns["job_number"] = np.arange(1, jobs + 1)
    columns["status"] = np.broadcast_to(np.int64(1), jobs)
    columns["allocated_processors"] = columns["requested_processors"] = units * core
    columns["requested_memory"] = memory * 1000 // core  # kB a processor
    header = {
        "Version": ["2.2"],
        "UnixStartTime": ["0"],
        "TimeZoneString": ["UTC"],
        "MaxNodes": [str(model.nodes)],
        "MaxProcs": [str(model.processors)],
        "Note": [model.note, given],
    }
    if model.named:
        header["MaxQueues"] = [str(len(model.queues))]
        header["Queue"] = [f"{n} {queue}" for n, (queue, _) in enumerate(model.queues, 1)]
    else:
        del columns["queue"], columns["executable"]
    for values in (*columns.values(), units, *per_unit.values()):
        values.flags.writeable = False  # read-only columns are not copied
    return Workload.from_columns(
        columns,
        processors=model.processors,
        name=name,
        header=header,
        units=units,
        per_unit=per_unit,
    )
