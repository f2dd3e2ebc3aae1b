"""Workloads of campaigns of users: fitted to what is published of Eurora, and of KIT.

Published (Remediani 2017, sections 3.1, 3.1.1 and 5.1; Galleguillos et al. 2020, section 4):

- 372,320 jobs from March 2014 to August 2015, 678 a day.
- 93.15 % of them run for up to an hour, 6.82 % for one to twelve hours, 0.03 % for longer.
- Three queues: ``debug`` for short tests, ``parallel`` for up to 6 hours, ``longpar`` for up to 24.
- 64 nodes of 16 cores and 16 GB, half of them with 2 GPUs, half with 2 MICs; no job asks for both.
- Users repeat jobs with nearly the same run time for a while, and then change to other ones
  (section 3.1.2): :mod:`hpcgym.workload.generators.campaigns`.
- Requested times are severe over-estimates, and the queue's default where the user gives none.
- Of what jobs ask for, a bound alone (Galleguillos 2020, Figure 6): at each of 624,564 states of
  the log PCP'20 has less than a tenth of PCP'19's decision variables. By the formulas of sections 3
  and 2.2, with four resources, a job of k units has 1 + 4 k of the one and 1 + 64 min(k, c) of the
  other, if c units fit on an empty node; with GPUs or MICs, 1 + 32 min(k, c). So a job alone keeps
  to a tenth if k is below about 1.6 c: if its units fill their nodes, with a single one. One with
  GPUs or MICs never does; there must be others in the queue then. Or all nodes count for it too:
  section 2.2 also says that "minimum 1 + |N| variables are needed to model a serial job", and so a
  single unit with GPUs has 5 of the one and 65 of the other.

Assumed, since nothing is published of it: run times within the classes, the limit of ``debug`` (1
hour), which jobs go to which queue, how many users there are, how often campaigns repeat and how
arrivals cluster, and the share of default requests. Assumed are the names of jobs: a user's program
has a word, the campaigns of the program are numbered (``relax_3``), and in every other campaign its
jobs are too (``relax_3_12``), since users number jobs that are alike, as a program of the
documents' authors says (github.com/cgalleguillosm/cp_dispatchers,
``misc/datadriven_predictor.py``). Assumed too is what jobs ask for, and it does not keep to that
bound: at 98 % of the states of ``hpcgym reproduce cp`` the share is a tenth or more
(benchmarks/cp/README.md), so that here more jobs have several units, or GPUs and MICs, than in the
log. ``units=figure-6`` cuts the units of each job to the most with which it keeps to the bound
when it is alone in the queue, by the sentence of section 2.2 for those with GPUs and MICs: of the
log's states some surely had a single job queued. That is still no more than a bound, and the share
of jobs with GPUs and MICs stays assumed. It was added once results were known; the other is the
default, so that a seed keeps its jobs. The numbers of units are chosen so that at the published
number of jobs a day the load of the cores is about a half (with ``figure-6`` an eighth); a campaign
of large jobs moves that of a single month a good deal, so ``load`` sets it where it matters. (Two
months of the log, 76,265 jobs, had nearly twice the mean: ``jobs=76265,days=61``.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, positive_argument, whole_argument
from hpcgym.names import CORE, MEMORY
from hpcgym.units import DAY_S, HOUR_S
from hpcgym.workload.codes import with_codes
from hpcgym.workload.columns import MAX_TIME
from hpcgym.workload.model import Workload

# --- Jobs that come in campaigns ------------------------------------------------------------------
#
# A *campaign* is one user running one program again and again: the same name, queue, requested
# time and resources, and nearly the same run time, until something else begins. So Remediani 2017,
# section 3.1.2, describes its log; the machinery is this project's own:
#
# 1. Each class of run times gets its published share of the jobs, to the nearest job. Its jobs are
#    cut into campaigns of 1 to ``repeats`` jobs, log-uniform.
# 2. A campaign has a user, drawn by Zipf's law, and one of the user's programs, the first ones more
#    often. The program tells what a unit asks for; the campaign, how many units.
# 3. The campaign's run time is log-uniform in its class; that of a job differs from it by a factor
#    exp(normal(0, ``SPREAD``)), and stays in the class.
# 4. The campaign's queue and requested time follow from its class: that of most users is the
#    queue's limit, its default; the others over-estimate by ``FACTORS``, rounded up to ``ROUND_S``.
# 5. Campaigns begin by a daily cycle. Half of the other jobs follow within seconds, as scripts
#    submit them; half after an exponential time with the mean of the run time, but at least
#    ``LEAST_THINKING_S``. Time is a circle: what would be submitted after the end is so at the
#    beginning, so that the load is even without a start-up phase.

IntArray = NDArray[np.int64]

SPREAD = 0.1  # of run times within a campaign, in ln
#: What a user's programs are called; some words begin alike.
STEMS = ("run", "relax", "md", "scf", "test", "restart", "post", "sweep")
PROGRAMS = len(STEMS)  # of a user
ZIPF_EXPONENT = 0.9  # as hpcgym.workload.generators.lublin has it
FACTORS = (1.5, 20.0)  # by which requested times exceed run times, log-uniform
ROUND_S = 900
LEAST_THINKING_S = 600
BURST_S = 10  # at most, between two submissions of a script
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
    queues : places of queues in :attr:`CampaignModel.queues`, all as likely as each other.
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
class CampaignModel:
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
    model: CampaignModel, jobs: int | None, days: float | None, seed: int, load: float | None
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
    seed = whole_argument(model.name, "seed", seed, 0, 2**64)
    days = positive_argument(model.name, "days", days)
    load = positive_argument(model.name, "load", load)
    if load is not None and jobs is not None and days is not None:
        raise WorkloadError(f"{model.name}: give two of jobs, days and load, not all three")
    if jobs is None:
        jobs = max(1, round((30 if days is None else days) * model.jobs_per_day))
    jobs = whole_argument(model.name, "jobs", jobs, 1, 10**8)
    job_seed, time_seed, name_seed = np.random.SeedSequence(seed).spawn(3)
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
    names: list[str] = []
    if model.named:
        words = _names(columns["executable"], begins, np.random.default_rng(name_seed))
        names = [words[job] for job in order.tolist()]
    columns = {name: values[order] for name, values in columns.items()}
    columns["submit_time"] = submit[order]
    given = f"{model.name}(jobs={jobs}, days={span / DAY_S:.6g}, seed={seed}, load={load})"
    workload = _workload(model, columns, f"{model.name} seed {seed}", given)
    return with_codes(workload, names) if names else workload


def _jobs(
    model: CampaignModel, jobs: int, rng: np.random.Generator
) -> tuple[dict[str, IntArray], NDArray[np.bool_]]:
    """Return the jobs' columns but for times, and which of them begin a campaign."""
    sizes, classes = _campaigns(model, jobs, rng)
    campaigns = len(sizes)
    base = np.empty(campaigns)
    for place, kind in enumerate(model.classes):
        at = classes == place
        base[at] = log_uniform(rng, kind.least, kind.most, int(at.sum()))
    per_campaign = _programs(model, classes, rng)
    queue = np.empty(campaigns, np.int64)
    limits = np.array([limit for _, limit in model.queues])
    for place, duration in enumerate(model.classes):
        at = classes == place
        queue[at] = rng.choice(duration.queues, int(at.sum()))
    too_long = base > limits[queue]  # the queues are in order of their limits
    queue[too_long] = np.searchsorted(limits, base[too_long])
    factor = log_uniform(rng, *FACTORS, campaigns)
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


def _campaigns(
    model: CampaignModel, jobs: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the jobs of each campaign, and its class."""
    shares = np.cumsum([kind.share for kind in model.classes])
    counts = np.diff(np.rint(shares / shares[-1] * jobs), prepend=0).astype(np.int64)
    sizes, classes = [], []
    for place, (kind, count) in enumerate(zip(model.classes, counts.tolist(), strict=True)):
        drawn = log_uniform(rng, 1, kind.repeats + 1, count).astype(np.int64)
        ends = np.minimum(np.cumsum(drawn), count)
        part = np.diff(ends, prepend=0)
        part = part[part > 0]  # the last campaign is cut where the class is full
        sizes.append(part)
        classes.append(np.full(len(part), place))
    return np.concatenate(sizes), np.concatenate(classes)


def _programs(
    model: CampaignModel, classes: IntArray, rng: np.random.Generator
) -> dict[str, IntArray]:
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


def _names(program: IntArray, begins: NDArray[np.bool_], rng: np.random.Generator) -> list[str]:
    """Return the name of each job, of jobs that lie campaign after campaign.

    Campaigns of a user's program are numbered from 1 in the order in which they lie here.
    """
    campaign = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    numbered = rng.random(len(first)) < 0.5
    seen: dict[int, int] = {}
    stems = []
    for program_number in program[first].tolist():
        seen[program_number] = seen.get(program_number, 0) + 1
        stems.append(f"{STEMS[(program_number - 1) % PROGRAMS]}_{seen[program_number]}")
    within = np.arange(len(program)) - first[campaign] + 1
    return [
        f"{stems[of]}_{number}" if numbered[of] else stems[of]
        for of, number in zip(campaign.tolist(), within.tolist(), strict=True)
    ]


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


def log_uniform(
    rng: np.random.Generator, low: float, high: float, number: int
) -> NDArray[np.float64]:
    """Return numbers whose logarithm is uniform."""
    drawn: NDArray[np.float64] = np.exp(rng.uniform(math.log(low), math.log(high), number))
    return drawn


def _workload(
    model: CampaignModel, columns: dict[str, IntArray], name: str, given: str
) -> Workload:
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


# --- A workload like that of ForHLR II at KIT -----------------------------------------------------
#
# Published (Galleguillos et al. 2020, section 4):
#
# - 114,355 jobs from June 2016 to January 2018, 187 a day.
# - 66.26 % of them run for less than an hour.
# - 1,152 nodes of 20 cores and 64 GB, 21 of 48 cores, 4 GPUs and 1 TB: 98 % of the nodes have cores
#   and memory only. The log tells no names of jobs.
#
# Assumed, since the document says nothing of it: how the other run times divide (24 % up to twelve
# hours, the rest up to three days), run times within the classes, requested times, how many users
# there are, what jobs ask for (whole thin nodes, and a few jobs the fat ones), and how campaigns
# repeat and arrivals cluster (:mod:`hpcgym.workload.generators.campaigns`). The document gives no
# load either; the numbers of nodes are chosen so that at the published number of jobs a day it is
# about 0.6. A campaign of large jobs moves that of a single month a good deal, so ``load`` sets it
# where it matters. With the log itself, ``load_workload("KIT-FH2")``, none of this is needed.

_KIT_JOBS, _KIT_DAYS = 114_355, 610  # June 2016 to January 2018, whole months

_THIN = (
    (1, 1, 1, 2, 2, 4, 8, 16, 32, 64, 128),  # short
    (2, 4, 4, 8, 16, 16, 32, 64),  # medium
    (2, 8, 16, 32, 64),  # long
)
_FAT = ((1, 1, 2), (1, 1, 2), (1,))

KIT = CampaignModel(
    name="kit",
    processors=1152 * 20 + 21 * 48,
    nodes=1152 + 21,
    jobs_per_day=_KIT_JOBS / _KIT_DAYS,
    classes=(
        DurationClass(0.6626, 1, HOUR_S - 1, repeats=100, queues=(0,)),
        DurationClass(0.2400, HOUR_S, 12 * HOUR_S, repeats=30, queues=(0,)),
        DurationClass(0.0974, 12 * HOUR_S + 1, 72 * HOUR_S, repeats=10, queues=(0,)),
    ),
    kinds=(
        Kind(0.95, (20,), (800, 1600, 3200), 64_000, _THIN),
        Kind(0.03, (12, 24, 48), (8_000, 16_000), 1_000_000, _FAT),
        Kind(0.02, (12, 24, 48), (8_000, 16_000), 1_000_000, _FAT, {"gpu": (1, 2, 4)}),
    ),
    queues=(("normal", 72 * HOUR_S),),
    users=150,
    default_requests=0.2,
    named=False,
    note="KIT-like: fitted to what is published of ForHLR II, the rest assumed",
)


def kit(
    jobs: int | None = None,
    days: float | None = None,
    seed: int = 0,
    load: float | None = None,
) -> Workload:
    """Generate a workload like that of ForHLR II; see the module for what is published of it.

    The same arguments give the same workload.

    Parameters
    ----------
    jobs : number of jobs; by default, as many as come in ``days``.
    days : time of the submissions; by default 30, or as long as ``jobs`` take to come.
    seed : of the random numbers, at least 0.
    load : offered load, sum(cores * run time) / (cores of the machine * time of the submissions).
        The time is stretched or squeezed to reach it. None keeps the published 187 jobs a day.

    Returns
    -------
    Workload
        With units and, for each, ``core``, ``mem`` [MB] and ``gpu``; ``user_id`` from 1.

    Raises
    ------
    WorkloadError
        An argument out of range, or all of jobs, days and load.
    """
    return generate(KIT, jobs, days, seed, load)


# --- An Eurora-like workload ----------------------------------------------------------------------

_EURORA_JOBS, _EURORA_DAYS = 372_320, 549  # March 2014 to August 2015, whole months

_UNITS = (
    (1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 32),  # short
    (1, 1, 2, 2, 4, 4, 8, 8, 16),  # medium
    (1, 2, 4),  # long
)

EURORA = CampaignModel(
    name="eurora",
    processors=64 * 16,
    nodes=64,
    jobs_per_day=_EURORA_JOBS / _EURORA_DAYS,
    classes=(
        DurationClass(0.9315, 1, HOUR_S, repeats=200, queues=(0, 0, 0, 0, 1, 1, 1, 1, 1, 2)),
        DurationClass(0.0682, HOUR_S + 1, 12 * HOUR_S, repeats=30, queues=(1, 1, 1, 2)),
        DurationClass(0.0003, 12 * HOUR_S + 1, 24 * HOUR_S, repeats=3, queues=(2,)),
    ),
    kinds=(
        Kind(0.60, (1, 4, 8, 16, 16), (250, 500, 1000, 2000), 16_000, _UNITS),
        Kind(0.25, (1, 2, 8, 16), (250, 500, 1000), 16_000, _UNITS, {"gpu": (1, 2)}),
        Kind(0.15, (1, 2, 8, 16), (250, 500, 1000), 16_000, _UNITS, {"mic": (1, 2)}),
    ),
    queues=(("debug", HOUR_S), ("parallel", 6 * HOUR_S), ("longpar", 24 * HOUR_S)),
    users=150,
    default_requests=0.6,
    named=True,
    note="Eurora-like: fitted to what is published of the log, the rest assumed",
)


def eurora(
    jobs: int | None = None,
    days: float | None = None,
    seed: int = 0,
    load: float | None = None,
    units: str = "assumed",
) -> Workload:
    """Generate a workload like that of Eurora; see the module for what is published of it.

    The same arguments give the same workload.

    Parameters
    ----------
    jobs : number of jobs; by default, as many as come in ``days``.
    days : time of the submissions; by default 30, or as long as ``jobs`` take to come.
    seed : of the random numbers, at least 0.
    load : offered load, sum(cores * run time) / (cores of the machine * time of the submissions).
        The time is stretched or squeezed to reach it. None keeps the published 678 jobs a day.
    units : how many a job has: ``assumed``, or ``figure-6``, no more than with which it keeps to
        the bound of Galleguillos 2020, Figure 6, when alone in the queue: see :func:`most_units`.

    Returns
    -------
    Workload
        With units and, for each, ``core``, ``mem`` [MB], ``gpu`` and ``mic``; queues 1 to 3, named
        in the header; ``user_id`` from 1; ``executable``, a number for each name of a job, which
        the header has too.

    Raises
    ------
    WorkloadError
        An argument out of range, or all of jobs, days and load.
    """
    if units not in UNITS:
        raise WorkloadError(f"eurora: units must be {' or '.join(UNITS)}, not {units!r}")
    model = EURORA
    if units == "figure-6":
        model = replace(EURORA, most_units=most_units, note=f"{EURORA.note}; units=figure-6")
    return generate(model, jobs, days, seed, load)


#: What the argument ``units`` may be.
UNITS = ("assumed", "figure-6")

#: Of a node of Eurora; half of them have the GPUs, half the MICs.
_NODE = {"core": 16, "mem": 16_000, "gpu": 2, "mic": 2}


def most_units(per_unit: Mapping[str, IntArray]) -> IntArray:
    """Return the most units with which a job alone in the queue is below a tenth in Figure 6.

    The largest k for which 1 + 4 k < (1 + 64 min(k, c)) / 10, where c units fit on an empty node:
    (64 c - 10) // 40, for c <= k. PCP'20 has the one number of decision variables (Galleguillos
    2020, section 3: |Q| + rn |R|), PCP'19 the other (section 2.2).

    Parameters
    ----------
    per_unit : ``core``, ``mem`` [MB], ``gpu`` and ``mic`` of a unit, (n,) each.

    Returns
    -------
    (n,) numbers of units: 1 where a unit fills its node, at most 25.
    """
    held = [
        np.where(per_unit[name] > 0, amount // np.maximum(per_unit[name], 1), _NODE["core"])
        for name, amount in _NODE.items()
    ]
    most: IntArray = (64 * np.min(held, axis=0) - 10) // 40
    return most
