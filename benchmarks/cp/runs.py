"""What is simulated, on which jobs, and what is kept of it: a task is a run on one seed."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym import HpcgymError, Result, Scheduler, simulate, validate_schedule
from hpcgym.baselines.cp.problem import hold
from hpcgym.baselines.dispatchers import PUBLISHED, find_dispatcher
from hpcgym.benchmarks.studies.harness import Folder, check_same_jobs, hash_of, readings
from hpcgym.machine import Cluster, find_cluster
from hpcgym.scheduler.dispatchers.asking import DispatchError
from hpcgym.scheduler.estimates import DataDriven
from hpcgym.units import HOUR_S
from hpcgym.workload import Workload, fitting, load_workload

Ints = NDArray[np.int64]

# --- Machines and runs ----------------------------------------------------------------------------

#: Letter of the documents -> what jobs are expected to take: wall time, the data-driven heuristic,
#: the last two of the user, and the real run time.
DURATIONS = {"W": "requested", "D": "data-driven", "L2": "ave2", "R": "clairvoyant"}

#: Remediani 2017, section 3.2 and chapter 4.
LISTS = ("sjf-list", "ljf-list", "easy", "prb", "sdprb")
#: PCP'19 of Galleguillos et al. 2020 without anything to fall back on.
BARE = f"pcp19{PUBLISHED}"

#: What stands for a second of the authors' solver in CPH: a fiftieth of its branches, beside the
#: one a job for the first schedule. With the whole second the study would take days.
CPH_WORK = 0.02

#: A quick cut has this part of the days, and these seeds.
QUICK_SHARE, QUICK_SEEDS = 0.1, 2


@dataclass(frozen=True)
class Run:
    """A dispatcher (or EASY), and what it takes durations for."""

    dispatcher: str
    duration: str

    def __str__(self) -> str:
        return f"{self.dispatcher} {self.duration}"


@dataclass(frozen=True)
class Machine:
    """A machine of the study, what is submitted to it, and who runs there.

    Attributes
    ----------
    cluster : its name for :func:`hpcgym.machine.find_cluster`.
    workload : what :func:`hpcgym.load_workload` takes, of ``{days}`` and ``{seed}``.
    days, seeds : of a whole study.
    durations : letters.
    dispatchers : those that run on it, with each of the durations.
    as_published : whether they run as the authors' programs run them.
    what : in words.
    """

    cluster: str
    workload: str
    days: float
    seeds: int
    durations: Sequence[str]
    dispatchers: Sequence[str]
    as_published: bool
    what: str

    def source(self, days: float, seed: int) -> str:
        """Return what the workload of a seed is loaded from."""
        return self.workload.format(days=f"{days:g}", seed=seed)

    def named(self, dispatcher: str) -> str:
        """Return a dispatcher as it runs here."""
        return dispatcher + PUBLISHED * (self.as_published and dispatcher != "easy")

    def runs(self, only: Sequence[str] = ()) -> list[Run]:
        """Return the runs here; ``only`` of these dispatchers, if there are any."""
        chosen = [dispatcher for dispatcher in self.dispatchers if not only or dispatcher in only]
        return [
            Run(self.named(dispatcher), letter)
            for dispatcher, letter in product(chosen, self.durations)
        ]


#: Name -> machine.
MACHINES = readings(Machine, __file__, "machines.toml")

#: All that run on one of them.
DISPATCHERS = tuple(
    dict.fromkeys(dispatcher for of in MACHINES.values() for dispatcher in of.dispatchers)
)


def dispatcher_of(name: str) -> Any:
    """Return a new dispatcher by its name in a run."""
    dispatcher: Any = find_dispatcher(name)
    if name.startswith("cph-") and name.endswith(PUBLISHED):
        dispatcher.limits = replace(dispatcher.limits, work=CPH_WORK)
    elif name == BARE:  # it has the work of PCP'19 here, to be compared
        dispatcher.limits = find_dispatcher("pcp19").limits  # type: ignore[attr-defined]
    return dispatcher


def rules_of(run: Run, dispatcher: Any) -> Scheduler:
    """Return the rules of a run, on the first nodes that are free where nobody chooses them.

    A job that outlives its duration is expected to end in the next second (Galleguillos et al.
    2020, section 2.2); EASY, which needs an end to reserve by, adds more each time (Glesser 2016).
    """
    estimate: Any = DataDriven() if run.duration == "D" else DURATIONS[run.duration]
    if run.dispatcher == "easy":
        return Scheduler(estimate=estimate, correction="incremental", allocation="best-fit")
    return Scheduler(dispatcher=dispatcher, estimate=estimate, correction="next-second")


# --- What is kept of a schedule -------------------------------------------------------------------

#: Remediani 2017, section 3.1.1: class of jobs -> run times above, and up to [s].
CLASSES: Mapping[str, tuple[float, float]] = {
    "all": (-np.inf, np.inf),
    "short": (-np.inf, HOUR_S),
    "medium": (HOUR_S, 12 * HOUR_S),
    "long": (12 * HOUR_S, np.inf),
}

Box = dict[str, float | int]
PARTS = ("low", "q1", "median", "q3", "high")


def box(values: ArrayLike) -> Box:
    """Return what a box of the documents' figures is drawn from (section 3.3.1).

    Returns
    -------
    number, mean, std, and of the values low, q1, median, q3 and high; these are nan of no values.
    """
    given = np.asarray(values, np.float64)
    if given.size == 0:
        return {"number": 0, **dict.fromkeys(("mean", "std", *PARTS), float("nan"))}
    quarters = np.quantile(given, [0, 0.25, 0.5, 0.75, 1]).tolist()
    numbers: Box = {"number": given.size, "mean": float(given.mean()), "std": float(given.std())}
    return numbers | dict(zip(PARTS, quarters, strict=True))


def shapes_of(result: Result) -> dict[str, dict[str, Any]]:
    """Return of each class of jobs what the documents' figures and tables show.

    Returns
    -------
    class -> ``jobs``, their number; boxes of ``slowdown`` (Remediani 2017, equation 3.1, not
    bounded) and ``wait`` [s] of all of them; ``slowed`` and ``waited``, the same of those alone
    that waited, as figures 5.1 to 5.11 are.
    """
    run = np.maximum(result.run_time, 1)
    slowdown, wait = (result.wait + run) / run, result.wait
    shapes = {}
    for name, (above, up_to) in CLASSES.items():
        of = (result.run_time > above) & (result.run_time <= up_to)
        late = of & (wait > 0)
        shapes[name] = {
            "jobs": int(of.sum()),
            "slowdown": box(slowdown[of]),
            "wait": box(wait[of]),
            "slowed": box(slowdown[late]),
            "waited": box(wait[late]),
        }
    return shapes


def queue_of(result: Result) -> Box:
    """Return a box of how many jobs wait after each pass that finds some (equation 3.2).

    A pass is a time at which jobs are submitted or end: then a dispatcher is asked.
    """
    submit, start, end = (
        np.sort(times) for times in (result.workload.submit_time, result.start, result.end)
    )
    times = np.unique(np.concatenate([submit, end]))
    came = np.searchsorted(submit, times, side="right")
    before = came - np.searchsorted(start, times, side="left")
    after: Ints = came - np.searchsorted(start, times, side="right")
    return box(after[before > 0])


def solved(log: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what became of the models that a dispatcher was to solve.

    Returns
    -------
    ``dispatches``, their number; of them ``plan optimal``, where the heuristic's schedule meets the
    trivial bound and no model was made; ``optimal``, ``feasible``, ``infeasible`` and ``unknown``,
    by what the solver found of the others; ``better than heuristic``, where the decision is;
    ``considered`` and ``variables``, means of those with a model, and ``postponed`` jobs, which the
    model started and no nodes were found for.
    """
    by_status = Counter("plan optimal" if not call["variables"] else call["status"] for call in log)
    models = [call for call in log if call["variables"]]
    better = [call for call in models if call["objective"] < call["heuristic"] * (1 - 1e-9)]

    def mean(key: str) -> float:
        return float(np.mean([call[key] for call in models])) if models else float("nan")

    statuses = ("plan optimal", "optimal", "feasible", "infeasible", "unknown")
    return {
        "dispatches": len(log),
        **{name: by_status[name] for name in statuses},
        "better than heuristic": len(better),
        "considered": mean("considered"),
        "variables": mean("variables"),
        "postponed": sum(call["postponed"] for call in log),
    }


# --- The simulations ------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def load_jobs(machine: str, days: float, seed: int) -> tuple[Workload, Cluster]:
    """Return what is submitted to a machine of the study, and the machine.

    Raises
    ------
    HpcgymError : a workload that cannot be read.
    """
    of = MACHINES[machine]
    cluster = find_cluster(of.cluster)
    workload = load_workload(of.source(days, seed))
    return fitting(workload, cluster.resources, cluster.capacity), cluster


class Watched:
    """Calls a dispatcher, notes the CPU seconds of each call, and saves some of the states.

    Attributes
    ----------
    seconds : of each call.
    saved : pickled views, evenly spread over all calls: each ``stride``-th, up to twice ``number``.
    """

    def __init__(self, dispatcher: Any, number: int = 0) -> None:
        self.dispatcher, self.name = dispatcher, str(getattr(dispatcher, "name", ""))
        self.own_nodes = bool(getattr(dispatcher, "own_nodes", False))
        self.seconds: list[float] = []
        self.saved: list[bytes] = []
        self.number, self.stride = number, 1

    def begin(self) -> None:
        """Begin a new simulation."""
        getattr(self.dispatcher, "begin", lambda: None)()

    def __call__(self, view: Any) -> list[Any]:
        """Return what the dispatcher returns."""
        if self.number and len(self.seconds) % self.stride == 0:
            self.saved.append(pickle.dumps(view))
            if len(self.saved) >= 2 * self.number:
                self.saved, self.stride = self.saved[::2], 2 * self.stride
        began = time.process_time()
        chosen = list(self.dispatcher(view))
        self.seconds.append(time.process_time() - began)
        return chosen


def simulate_one(task: dict[str, Any]) -> dict[str, Any]:
    """Simulate one run on the workload of one seed.

    Parameters
    ----------
    task : "machine", a name of :data:`MACHINES`; "days" and "seed" of its workload; "jobs_sha256"
        of that; "dispatcher" and "duration", see :class:`Run`.

    Returns
    -------
    outcome : ``shapes`` and ``queue``, see :func:`shapes_of` and :func:`queue_of`; ``total_s`` [s]
        of the simulation; for dispatchers ``dispatch_ms``, a box of the CPU time of each call [ms],
        and ``solved``, see :func:`solved`. If nothing started although nothing ran and nothing was
        to come, ``stopped`` [s], when, since the first submission, and ``started`` of the ``jobs``.

    Raises
    ------
    HpcgymError : the workload cannot be read here, or has other jobs; or a schedule that is wrong.
    """
    machine, run = task["machine"], Run(task["dispatcher"], task["duration"])
    workload, cluster = load_jobs(machine, task["days"], task["seed"])
    check_same_jobs(machine, hash_of([workload]), task["jobs_sha256"])
    timed = None if run.dispatcher == "easy" else Watched(dispatcher_of(run.dispatcher))
    log: list[dict[str, Any]] = []
    began = time.perf_counter()
    try:
        result = simulate(workload, rules_of(run, timed), cluster=cluster)
    except DispatchError:
        if timed is None or not getattr(timed.dispatcher, "stopped", False):
            raise
        log = timed.dispatcher.log
        last = log[-1]["time"] - int(workload.submit_time[0])
        started = sum(call["started"] for call in log)
        return {"stopped": last, "started": started, "jobs": len(workload)}
    outcome: dict[str, Any] = {"total_s": time.perf_counter() - began}
    validate_schedule(result)
    outcome |= {"shapes": shapes_of(result), "queue": queue_of(result)}
    if timed is not None:
        log = getattr(timed.dispatcher, "log", [])
        outcome["dispatch_ms"] = box(1000 * np.array(timed.seconds))
        outcome["solved"] = solved(log) if log else {}
    return outcome


# --- Models alone: what PCP'19 and PCP'20 make of the same instances ------------------------------

#: Machine -> the runs whose states are saved, of the first seed; published are those of PCP'19 on
#: Eurora.
DRIVERS = {
    "eurora-later": (Run("pcp19", "D"), Run("pcp19", "R")),
    "kit-forhlr-ii": (Run("pcp20", "R"),),
}

#: What is asked at each state.
ASKED = ("pcp20", "pcp19")

#: How many states are compared, spread evenly over the run.
NUMBER = 60


def compare_one(task: dict[str, Any]) -> dict[str, Any]:
    """Ask PCP'20 and PCP'19 at the states of one run.

    Parameters
    ----------
    task : as :func:`simulate_one` takes it, and "number" of states.

    Returns
    -------
    For each state a pair, PCP'20's and PCP'19's: ``variables`` of the models as they are built
    here, ``as_published``, the variables as Galleguillos 2020 counts them, ``seconds`` of CPU time,
    and ``objective``.
    """
    workload, cluster = load_jobs(task["machine"], task["days"], task["seed"])
    check_same_jobs(task["machine"], hash_of([workload]), task["jobs_sha256"])
    watched = Watched(find_dispatcher(task["dispatcher"]), task["number"])
    run = Run(task["dispatcher"], task["duration"])
    simulate(workload, rules_of(run, watched), cluster=cluster)
    pairs: dict[str, list[Any]] = {}
    for packed in watched.saved:
        view = pickle.loads(packed)
        asked = [_asked(name, view) for name in ASKED]
        for answer, published in zip(asked, published_sizes(*considered(view)), strict=True):
            answer["as_published"] = published
        for key in asked[0]:
            pairs.setdefault(key, []).append([answer[key] for answer in asked])
    return pairs


def _asked(name: str, view: Any) -> dict[str, Any]:
    """Return the size, time and objective of a dispatcher's model of a state, solved in any case.

    A dispatcher takes a shortcut where the heuristic's schedule is optimal; the papers' do not.
    """
    from hpcgym.baselines.cp.dispatcher import solve

    dispatcher: Any = find_dispatcher(name)
    began = time.process_time()
    problem = dispatcher.pose(view)
    model = dispatcher.model(problem)
    answer = solve(problem, model, dispatcher.limits, fixed=dispatcher.fixed)
    return {
        "seconds": time.process_time() - began,
        "variables": len(model.cp.proto.variables),
        "objective": problem.weights.cost(answer.schedule.start),
    }


def considered(view: Any) -> tuple[Ints, Ints, Ints]:
    """Return units and demands of the jobs that a model of the state has, and the capacity."""
    dispatcher: Any = find_dispatcher("pcp20")
    problem = dispatcher.pose(view)
    return problem.units, problem.per_unit, view.capacity


def published_sizes(units: Ints, per_unit: Ints, capacity: Ints) -> tuple[int, int]:
    """Return the numbers of decision variables of PCP'20 and PCP'19 by Galleguillos et al. 2020.

    PCP'20 has |Q| + sum rn_i |R| (section 3). PCP'19 has |Q| + sum over jobs and nodes of p_i,n,
    the least of rn_i and how often a unit fits into the empty node (section 2.2).

    Parameters
    ----------
    units : (q,) rn_i.
    per_unit : (q, R) req_i,r / rn_i.
    capacity : (N, R) cap_n,r.
    """
    q, r = per_unit.shape
    alternatives = q
    for number, demand in zip(units.tolist(), per_unit, strict=True):
        alternatives += int(np.minimum(hold(capacity, demand), number).sum())
    return q + int(units.sum()) * r, alternatives


# --- All runs -------------------------------------------------------------------------------------


@dataclass
class Findings:
    """What came out on one machine.

    Attributes
    ----------
    name, days, seeds, jobs : the machine, the days of each workload, the seeds, all jobs together.
    outcomes : run -> what :func:`simulate_one` returns, one for each seed.
    instances : what :func:`compare_one` returns, by run.
    """

    name: str
    days: float
    seeds: list[int]
    jobs: int
    outcomes: dict[Run, list[dict[str, Any]]]
    instances: dict[Run, dict[str, Any]]

    @property
    def machine(self) -> Machine:
        """The machine."""
        return MACHINES[self.name]

    @property
    def workloads(self) -> str:
        """What is simulated: the workloads of all seeds."""
        seeds = f"{self.seeds[0]} to {self.seeds[-1]}"
        return self.machine.workload.format(days=f"{self.days:g}", seed=seeds)

    def task(self, seed: int) -> dict[str, Any]:
        """Return what all tasks on a seed begin with."""
        jobs = hash_of([load_jobs(self.name, self.days, seed)[0]])
        return {"machine": self.name, "days": self.days, "seed": seed, "jobs_sha256": jobs}


def run_campaign(
    names: Sequence[str],
    folder: Folder,
    days: float | None,
    seeds: int | None,
    dispatchers: Sequence[str],
    quick: bool,
) -> list[Findings]:
    """Simulate all runs on some machines that have not been yet.

    Raises
    ------
    HpcgymError : a machine on which no dispatcher runs that was asked for, and what
        :func:`simulate_one` raises.
    """
    findings, tasks, places = [], [], []
    for name in names:
        machine = MACHINES[name]
        if not (runs := machine.runs(dispatchers)):
            raise HpcgymError(f"{', '.join(dispatchers)}: not in the study of {name}")
        length = days or machine.days * (QUICK_SHARE if quick else 1)
        number = seeds or (min(QUICK_SEEDS, machine.seeds) if quick else machine.seeds)
        numbers = list(range(1, number + 1))
        jobs = sum(len(load_jobs(name, length, seed)[0]) for seed in numbers)
        of = Findings(name, length, numbers, jobs, {run: [] for run in runs}, {})
        findings.append(of)
        for seed in numbers:
            begin = of.task(seed)
            tasks += [{**begin, **asdict(run)} for run in runs]
            places += [(of, run) for run in runs]
    outcomes = folder.run(simulate_one, tasks, "simulations", "runs", chunk=1)
    for (of, run), outcome in zip(places, outcomes, strict=True):
        of.outcomes[run].append(outcome)
    return findings
