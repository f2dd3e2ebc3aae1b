"""Machines and dispatchers of the study, and the forms of the models as published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.naming import DAY_S, HOUR_S
from hpcgym.schedule.result import Result
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.rules import Scheduler

# --- PCP'19 as Galleguillos 2020 has it -----------------------------------------------------------

Ints = NDArray[np.int64]

#: The name in the study.
NAME = "pcp19 as published"


class AsPublished:
    """PCP'19 without a hint and without anything to fall back on.

    Attributes
    ----------
    name : of the dispatcher.
    limits : of the window and the solver: PCP'19's usual ones.
    asked : of each call at which some job fitted a dictionary: ``time`` [s], ``idle``, whether
        nothing ran, ``found``, whether the solver came to a schedule, and ``started`` jobs.
    """

    name = NAME
    own_nodes = True

    def __init__(self) -> None:
        pcp19: Any = find_dispatcher("pcp19")
        self._pcp19, self.limits = pcp19, pcp19.limits
        self.asked: list[dict[str, Any]] = []

    def __call__(self, view: PassView) -> list[tuple[int, Ints]]:
        """Return the places that start now, each with the node of each unit."""
        from hpcgym.baselines.cp.dispatcher import search

        if not view.fits().any():
            return []
        problem = replace(self._pcp19.pose(view), bounded=False)
        model = self._pcp19.model(problem)
        model.cp.clear_hints()
        schedule = search(model, self.limits, fixed=True).schedule
        starts = []
        if schedule is not None and schedule.nodes is not None:
            now = np.flatnonzero(schedule.start == 0)
            starts = [(int(problem.places[job]), schedule.nodes[job]) for job in now]
        self.asked.append(
            {
                "time": int(view.time),
                "idle": not len(view.running_job),
                "found": schedule is not None,
                "started": len(starts),
            }
        )
        return starts

    @property
    def stopped(self) -> bool:
        """Whether nothing started at its last call, though nothing ran."""
        return bool(self.asked) and self.asked[-1]["idle"] and not self.asked[-1]["started"]


def summary(asked: Sequence[dict[str, Any]], submit: Ints) -> dict[str, Any]:
    """Return how far a simulation came.

    Parameters
    ----------
    asked : what ``AsPublished.asked`` is after it.
    submit : (n_jobs,) of its workload [s].

    Returns
    -------
    ``jobs`` of the workload, ``started`` of them; ``calls``, and at how many of them nothing was
    ``found``; ``idle``, at how many of these nothing ran; ``days``, the time of the submissions,
    and the last start, ``last_day``, both from the first submission (nan if nothing started).
    """
    missed = [one for one in asked if not one["found"]]
    last = max((one["time"] for one in asked if one["started"]), default=float("nan"))
    return {
        "jobs": len(submit),
        "started": sum(one["started"] for one in asked),
        "calls": len(asked),
        "nothing found": len(missed),
        "idle": sum(one["idle"] for one in missed),
        "days": float(submit[-1] - submit[0]) / DAY_S,
        "last_day": (last - float(submit[0])) / DAY_S,
    }


# --- What is kept of a schedule -------------------------------------------------------------------


#: Remediani 2017, section 3.1.1: class of jobs -> run times above, and up to [s].
CLASSES: Mapping[str, tuple[float, float]] = {
    "all": (-np.inf, np.inf),
    "short": (-np.inf, HOUR_S),
    "medium": (HOUR_S, 12 * HOUR_S),
    "long": (12 * HOUR_S, np.inf),
}

Box = dict[str, float | int]


def box(values: ArrayLike) -> Box:
    """Return what a box of the documents' figures is drawn from (section 3.3.1).

    Returns
    -------
    number, mean, std, and of the values low, q1, median, q3 and high; these are nan of no values.
    """
    given = np.asarray(values, np.float64)
    if given.size == 0:
        nan = float("nan")
        return {"number": 0, **dict.fromkeys(("mean", "std", *_QUARTERS), nan)}
    quarters = np.quantile(given, [0, 0.25, 0.5, 0.75, 1])
    return {
        "number": given.size,
        "mean": float(given.mean()),
        "std": float(given.std()),
        **{name: float(value) for name, value in zip(_QUARTERS, quarters, strict=True)},
    }


_QUARTERS = ("low", "q1", "median", "q3", "high")


def slowdown_of(result: Result) -> NDArray[np.float64]:
    """Return (n_jobs,) equation 3.1 of Remediani 2017, the slowdown, which is not bounded."""
    run = np.maximum(result.run_time, 1)
    return (result.wait + run) / run


def shapes_of(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Return of each class of jobs what the documents' figures and tables show.

    Parameters
    ----------
    results : schedules of one run on several workloads, all jobs of which are taken together.

    Returns
    -------
    class -> ``jobs``, their number; ``slowdown`` and ``wait`` [s] of all of them; ``slowed`` and
    ``waited``, the same of those alone that waited, as figures 5.1 to 5.11 are.
    """
    slowdown = np.concatenate([slowdown_of(result) for result in results])
    wait = np.concatenate([result.wait for result in results])
    run_time = np.concatenate([result.run_time for result in results])
    found = {}
    for name, (above, up_to) in CLASSES.items():
        of = (run_time > above) & (run_time <= up_to)
        late = of & (wait > 0)
        found[name] = {
            "jobs": int(of.sum()),
            "slowdown": box(slowdown[of]),
            "wait": box(wait[of]),
            "slowed": box(slowdown[late]),
            "waited": box(wait[late]),
        }
    return found


def queues_of(results: Sequence[Result]) -> dict[str, Any]:
    """Return how long the queue is (Remediani 2017, equation 3.2).

    Parameters
    ----------
    results : schedules of one run on several workloads.

    Returns
    -------
    ``passes`` : number of the times at which jobs were submitted or ended while some waited: at
        these a dispatcher is asked. ``queue`` : box of the numbers of jobs that wait after these,
        as equation 3.2 has it. ``queue_in_time`` : their mean over time, as the figures' titles
        say ("at every second"), from the first submission to the last end.
    """
    after, spans = zip(*(_waiting(result) for result in results), strict=True)
    queue = np.concatenate(after)
    waited = sum(int(result.wait.sum()) for result in results)
    return {
        "passes": queue.size,
        "queue": box(queue),
        "queue_in_time": waited / sum(spans),
    }


def _waiting(result: Result) -> tuple[NDArray[np.int64], int]:
    """Return how many jobs wait after each pass with jobs in the queue, and the time of all [s]."""
    submit, start, end = (np.sort(t) for t in (_submit(result), result.start, result.end))
    times = np.unique(np.concatenate([submit, end]))
    came = np.searchsorted(submit, times, side="right")
    before = came - np.searchsorted(start, times, side="left")
    after = came - np.searchsorted(start, times, side="right")
    asked = before > 0
    span = max(int(times[-1] - times[0]), 1)
    return after[asked], span


def _submit(result: Result) -> NDArray[np.int64]:
    return result.workload.submit_time


# --- What is simulated ----------------------------------------------------------------------------

#: Letter of the documents -> what jobs are expected to take: wall time, the data-driven heuristic,
#: the last two of the user, and the real run time.
DURATIONS: dict[str, str] = {
    "W": "requested",
    "D": "data-driven",
    "L2": "ave2",
    "R": "clairvoyant",
}

#: Remediani 2017, section 3.2 and chapter 4.
HEURISTICS = ("fcfs-list", "sjf-list", "ljf-list", "prb", "sdprb", "easy")
CPH = ("cph-0", "cph-1", "cph-2", "cph-3")
PURE_CP = ("cp-0", "cp-1", "cp-2", "cp-3")

#: Galleguillos et al. 2020.
LATER = ("hcp19", "pcp19", "pcp20")

#: The plans alone of two of these, to see what the solver adds: nothing is solved.
LISTS_ONLY = " lists"
PLANS = (f"cph-3{LISTS_ONLY}", f"pcp20{LISTS_ONLY}")

#: Those that run with best fit as well, to tell the choice of nodes from that of starts.
BEST_FIT = ("prb", "sdprb", "easy", "cph-3", "cp-3")

#: Those that solve a model.
SOLVERS = (*CPH, *PURE_CP, *LATER)

#: All of the study.
DISPATCHERS = (*HEURISTICS, *SOLVERS, *PLANS, NAME)

#: Of a quick cut, unless others are named: machines, and the part of their usual days.
QUICK_MACHINES = ("eurora",)
QUICK_SHARE = 0.1

#: Dispatchers that start jobs in an order that durations do not enter.
WITHOUT_DURATIONS = ("fcfs-list",)


@dataclass(frozen=True)
class Machine:
    """A machine of the study, and what is submitted to it.

    Attributes
    ----------
    name : of the study.
    workload : what :func:`hpcgym.load_workload` takes; ``{days}`` stands for their number and
        ``{seed}`` for a seed; without these some days of a log are taken, once.
    what : the workload in words.
    durations : letters of the durations that its workload has what they need for.
    dispatchers : those that run on it.
    nodes_matter : whether it matters which nodes a job gets: those of :data:`BEST_FIT` run with
        best fit too.
    full_days : how many days ``--full`` takes, of the first seed.
    usual_days : how many are taken else, of each seed.
    seeds : of the generated workloads; schedules of a few days differ a good deal between them.
    few : dispatcher -> letters of the only durations that it runs with but for ``--full``: what
        costs most and is compared least.
    from_day : where they begin: the first days of a log are hardly used.
    cluster : its name for :func:`hpcgym.machine.find_cluster`, if that is another.
    """

    name: str
    workload: str
    what: str
    durations: tuple[str, ...]
    dispatchers: tuple[str, ...]
    nodes_matter: bool
    full_days: int
    usual_days: float
    from_day: int = 0
    seeds: tuple[int, ...] = (1, 2, 3)
    few: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cluster: str = ""

    def source(self, days: float, seed: int) -> str:
        """Return what its workload of some days is loaded from."""
        return self.workload.format(days=f"{days:g}", seed=seed)

    def seeds_of(self, full: bool) -> tuple[int, ...]:
        """Return the seeds of its workloads; a month is one."""
        return self.seeds[:1] if full or "{seed}" not in self.workload else self.seeds

    def runs(self, full: bool = True) -> list[Run]:
        """Return the runs on it: every dispatcher with every duration that it has to do with."""
        made = self._all_runs()
        return [run for run in made if full or run.duration in self._few(run)]

    def _few(self, run: Run) -> tuple[str, ...]:
        named = run.dispatcher if run.allocation == "first-fit" else f"{run.dispatcher}, best fit"
        return self.few.get(named, self.durations)

    def _all_runs(self) -> list[Run]:
        made = []
        for dispatcher, duration in product(self.dispatchers, self.durations):
            if dispatcher in WITHOUT_DURATIONS and duration != self.durations[0]:
                continue
            if dispatcher in (*LATER, *PLANS) and duration == "W":  # nobody published it
                continue
            made.append(Run(dispatcher, duration))
        if self.nodes_matter:
            those = [name for name in BEST_FIT if name in self.dispatchers]
            made += [Run(*one, "best-fit") for one in product(those, self.durations)]
        return made


@dataclass(frozen=True)
class Run:
    """A dispatcher (or EASY), what it takes durations for, and which nodes it fills first."""

    dispatcher: str
    duration: str
    allocation: str = "first-fit"

    def __str__(self) -> str:
        name = self.dispatcher
        if self.dispatcher not in WITHOUT_DURATIONS:
            name += f" {self.duration}"
        return name if self.allocation == "first-fit" else f"{name}, best fit"


#: What Eurora's CPH and pure CP leave to ``--full``.
_FEW = {
    "cph-1": ("D", "R"),
    "cph-3": ("D", "R"),
    "cp-1": ("D",),
    "cp-2": ("D",),
    "cp-3": ("D",),
    "cph-3, best fit": ("D", "R"),
    "cp-3, best fit": (),
}

#: Name -> machine. The loads of both published logs are not printed: those here are chosen so that
#: jobs wait on most days. KIT's log has no job names, nor has KTH-SP2's: D, which goes by
#: them, is left to Eurora, as Galleguillos et al. 2020 does (section 4).
MACHINES = {
    "eurora": Machine(
        "eurora",
        "eurora:days={days},load=1,seed={seed}",
        "generated workloads",
        ("W", "D", "R"),
        DISPATCHERS,
        nodes_matter=True,
        full_days=30,
        usual_days=0.4,
        few=_FEW,
    ),
    # the same machine, with no more units of a job than figure 6 of Galleguillos allows: it was
    # added once results were known
    "eurora-figure-6": Machine(
        "eurora-figure-6",
        "eurora:days={days},load=1,seed={seed},units=figure-6",
        "generated workloads with few units",
        ("W", "D", "R"),
        ("prb", "sdprb", "easy", *CPH, "pcp19", "pcp20", "cph-3 lists"),
        nodes_matter=True,
        full_days=30,
        usual_days=0.4,
        few=_FEW,
        cluster="eurora",
    ),
    "kit-forhlr-ii": Machine(
        "kit-forhlr-ii",
        "kit:days={days},load=0.9,seed={seed}",
        "generated workloads",
        ("L2", "R"),
        ("prb", "sdprb", "easy", *LATER, "pcp20 lists", NAME),
        nodes_matter=True,
        full_days=7,
        usual_days=3.5,
    ),
    "kth-sp2": Machine(
        "kth-sp2",
        "KTH-SP2",
        "the trace of the archive",
        ("W", "L2", "R"),
        (*HEURISTICS, "cph-0", "cph-3", *LATER, *PLANS),
        nodes_matter=False,
        full_days=30,
        usual_days=5,
        from_day=42,
    ),
}


def duration_of(letter: str) -> Any:
    """Return the estimate that a letter stands for, a new object each time."""
    if letter == "D":
        from hpcgym.scheduler.estimates import DataDriven

        return DataDriven()
    return DURATIONS[letter]


def model_of(name: str) -> str:
    """Return the name of the dispatcher whose model one of the study has."""
    return "pcp19" if name == NAME else name.removesuffix(LISTS_ONLY)


def dispatcher_of(name: str) -> Any:
    """Return a new dispatcher by its name in the study.

    :data:`NAME` is :class:`hpcgym.benchmarks.cp.configurations.AsPublished`. One of
    :data:`PLANS` is that dispatcher with no work for the solver, so that its plan is taken.
    """
    if name == NAME:
        return AsPublished()
    dispatcher: Any = find_dispatcher(model_of(name))
    if name.endswith(LISTS_ONLY):
        dispatcher.limits = replace(dispatcher.limits, work=0.0)
        dispatcher.name = name
    return dispatcher


def rules_of(run: Run, dispatcher: Any) -> Scheduler:
    """Return the rules of a run.

    A job that outlives its duration is expected to end in the next second (Galleguillos et al.
    2020, section 2.2); EASY, which needs an end to reserve by, adds more each time (Glesser 2016).

    Parameters
    ----------
    run : which.
    dispatcher : what is called at each pass; not for EASY.
    """
    estimate = duration_of(run.duration)
    if run.dispatcher == "easy":
        rules = Scheduler(estimate=estimate, correction="incremental")
    else:
        rules = Scheduler(dispatcher=dispatcher, estimate=estimate, correction="next-second")
    return rules.but(allocation=run.allocation)
