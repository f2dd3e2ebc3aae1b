"""What is simulated: machines with their workloads, dispatchers, and expected durations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp.as_published import NAME as AS_PUBLISHED
from hpcgym.benchmarks.cp.as_published import AsPublished
from hpcgym.scheduler.rules import Scheduler

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
DISPATCHERS = (*HEURISTICS, *SOLVERS, *PLANS, AS_PUBLISHED)

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
    cluster : its name for :func:`hpcgym.cluster.find_cluster`, if that is another.
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
        ("prb", "sdprb", "easy", *LATER, "pcp20 lists", AS_PUBLISHED),
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
    return "pcp19" if name == AS_PUBLISHED else name.removesuffix(LISTS_ONLY)


def dispatcher_of(name: str) -> Any:
    """Return a new dispatcher by its name in the study.

    :data:`AS_PUBLISHED` is :class:`hpcgym.benchmarks.cp.as_published.AsPublished`. One of
    :data:`PLANS` is that dispatcher with no work for the solver, so that its plan is taken.
    """
    if name == AS_PUBLISHED:
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
