"""How fast hpcgym simulates and steps, how that grows, and what it costs in memory.

Times are the least of --repeat runs, after one that does not count. What is timed is
hpcgym.simulate() from the loaded workload to the Result; not metrics or the DataFrame, nor reading
the workload, which the section dumps times. Each row of jobs and load is a process of its own,
which ends at --limit seconds; larger sizes are then left out. A step of an environment does an
action that is made beforehand; decisions are counted with those that begin episodes.

Examples
--------
  python benchmarks/speed.py schedulers --repeat 50
  python benchmarks/speed.py jobs --sizes 1000000,10000000 --format json > jobs.json
  python benchmarks/speed.py threads --workload KTH-SP2 --clean legrand --weeks 45
  mpiexec -n 3 python -m mpi4py.futures benchmarks/speed.py executors --executors mpi
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import speed_of_dumps
import speed_of_machines
import speed_of_peers
from timing import Figures, best, forget_peak, machine, memory, rates, simulated, which_schedule

import hpcgym
from hpcgym.baselines import find_scheduler
from hpcgym.benchmarks.studies.tables import table_text
from hpcgym.envs import IDS
from hpcgym.files.writing import json_text
from hpcgym.forecasting.state import snapshots
from hpcgym.processors import threads_here
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.study import open_executor
from hpcgym.workload import weeks
from hpcgym.workload.archive import find

_SLURM = {"backfill": "slurm:bf_max_job_test=1000"}
#: Limits of each user, of three amounts.
_LIMITS = {"quota": "user:jobs=100000+processors=1000000+billing=1000000"}
#: What README recommends: orders that change with time and look at learned run times.
RECOMMENDED = ("saf-typical", "aged", "evolved")
#: Name in the tables -> scheduler, other rules.
SCHEDULERS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("easy", "easy-sjbf", "easy++", "saf", "lexp", "fcfs")},
    **{name: (name, {}) for name in RECOMMENDED},
    "easy, per-event": ("easy", {"passes": "per-event"}),
    "conservative": ("conservative", {}),
    "depth:10": ("easy", {"backfill": "depth:10"}),
    "slurm": ("easy", _SLURM),
    # which hold nobody up: the same schedules, and what it costs to look
    "easy, limits of users": ("easy", _LIMITS),
    "saf, limits of users": ("saf", _LIMITS),
    "slurm, limits of users": ("easy", _SLURM | _LIMITS),
}
GROWING = ("easy", "easy-sjbf", "saf", "lexp", *RECOMMENDED, "conservative")

#: Of a process that is measured: runs at most, and seconds after which there is no further one.
RUNS, BUDGET_S = 3, 2.0


# --- Schedulers, and how they grow ----------------------------------------------------------------


def schedulers(given: argparse.Namespace) -> Figures:
    """Time each scheduler, in turn."""
    jobs = hpcgym.load_workload(given.workload or of_size_of_kth(), given.clean)
    runs = {
        name: partial(hpcgym.simulate, jobs, scheduler, **rules)
        for name, (scheduler, rules) in SCHEDULERS.items()
    }
    title = f"{jobs.name}: {len(jobs):,} jobs, {jobs.processors:,} processors"
    return Figures(title, simulated("scheduler", runs, given.repeat))


def of_size_of_kth() -> str:
    """Return KTH-SP2 if it is on this machine, else a generated workload of its size."""
    return "KTH-SP2" if find("KTH-SP2") else "lublin:jobs=28481,processors=100,load=0.7"


def start(given: argparse.Namespace) -> Figures:
    """Time a process from its start to its end, and its imports."""
    source = given.workload or of_size_of_kth()
    load = f"hpcgym.load_workload({source!r}, {given.clean!r})"
    programs = {
        "imports": "import hpcgym.simulation.run, hpcgym.workload.load",
        "the workload, simulated with easy": f"import hpcgym; hpcgym.simulate({load}, 'easy')",
    }
    rows = [
        {"process": name, "s": best(partial(subprocess.run, command, check=True), given.repeat)}
        for name, program in programs.items()
        for command in [[sys.executable, "-c", program]]
    ]
    return Figures(f"A process from its start to its end: {source}", rows)


#: What a process prints of each of its calls: seconds of the processor, and modules imported.
CALLS = """
import hpcgym, sys, time
jobs = hpcgym.load_workload({!r}, {!r})
for _ in range(2):
    known, begin = len(sys.modules), time.process_time()
    hpcgym.simulate(jobs, "easy")
    print(time.process_time() - begin, len(sys.modules) - known)
"""


def calls(given: argparse.Namespace) -> Figures:
    """Time the first call of simulate in a process, which imports modules, and the second."""
    source = given.workload or of_size_of_kth()
    command = [sys.executable, "-c", CALLS.format(source, given.clean)]
    calls_seen: dict[str, list[list[float]]] = {"first": [], "second": []}
    for _ in range(given.repeat + 1):  # once more, as Python may write its bytecode then
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for call, line in zip(calls_seen, text.splitlines(), strict=True):
            calls_seen[call].append([float(number) for number in line.split()])
    rows = [
        {"call": call, "ms": 1e3 * seconds, "modules imported": int(modules)}
        for call, each in calls_seen.items()
        for seconds, modules in [min(each[1:])]
    ]
    return Figures(f"Calls of simulate in a new process, processor time: {source}", rows)


def jobs(given: argparse.Namespace) -> Figures:
    """Show time and memory by the number of jobs (load 0.8, 256 processors)."""
    sizes = [int(size) for size in given.sizes or (1_000, 10_000, 100_000, 1_000_000)]
    rows = list(growth(given, "jobs", sizes, "lublin:jobs={},processors=256,load=0.8"))
    return Figures("Growth with jobs: 256 processors, load 0.8", rows)


def load(given: argparse.Namespace) -> Figures:
    """Show time by the queue, up to a saturated machine (--jobs jobs, 256 processors)."""
    sizes = given.sizes or (0.5, 0.8, 1.0, 1.5, 3.0, 10.0)
    rows = list(growth(given, "load", sizes, f"lublin:jobs={given.jobs},processors=256,load={{}}"))
    return Figures(f"Growth with the load: {given.jobs:,} jobs, 256 processors", rows)


def growth(
    given: argparse.Namespace, what: str, sizes: Any, generator: str
) -> Iterator[dict[str, Any]]:
    """Run each growing scheduler on generated workloads of several sizes, up to the time limit."""
    for name in GROWING:
        for size in sizes:
            facts = in_a_process(generator.format(size), name, given.limit)
            yield {"scheduler": name, what: size, **facts}
            if facts["note"]:
                break  # larger ones would take longer


def in_a_process(source: str, scheduler: str, limit: float) -> dict[str, Any]:
    """Return what a process of its own has measured, or that it was stopped."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(source, scheduler, theirs))
    process.start()
    theirs.close()  # else the end of the process would not be seen
    try:
        return ours.recv() if ours.poll(limit) else {"note": f"stopped after {limit:g} s"}
    except EOFError:
        raise hpcgym.HpcgymError(f"{scheduler} on {source} failed, as it says above") from None
    finally:
        process.kill()
        process.join()


def measure(source: str, scheduler: str, pipe: Any) -> None:
    """Send the time and the memory of simulating a workload."""
    _ = hpcgym.simulate(hpcgym.load_workload("lublin:jobs=100,processors=64"), scheduler)
    jobs = hpcgym.load_workload(source, "none")
    loading, resident = memory("VmHWM"), memory("VmRSS")
    forget_peak()
    seconds: list[float] = []
    peak = 0.0
    result: Any = None
    while len(seconds) < RUNS and sum(seconds) < BUDGET_S:
        result = None  # two results at once would count twice
        begin = time.perf_counter()
        result = hpcgym.simulate(jobs, scheduler)
        seconds.append(time.perf_counter() - begin)
        peak = peak or memory("VmHWM")
    facts = {
        **rates(min(seconds), len(jobs)),
        **which_schedule(result),
        "longest queue": result.metrics["max_queue_length"],
        # of few jobs it is less than the rest of the process varies by
        "bytes a job": (peak - resident) / len(jobs) if len(jobs) >= 100_000 else None,
        "peak MB": max(peak, loading) / 1e6,
        "note": "",
    }
    pipe.send(facts)


# --- Learned run times ----------------------------------------------------------------------------


def estimates(given: argparse.Namespace) -> Figures:
    """Time EASY-SJBF by estimates, one of which is learned in two ways."""
    from hpcgym.agents.runtime_regression import RuntimeRegression
    from hpcgym.scheduler.estimates import JOB_FEATURES

    source = given.workload or "lublin:jobs=20000,processors=128,seed=0,load=0.8"
    trace = hpcgym.load_workload(source, given.clean)
    e_loss: dict[str, Any] = {"over": "squared", "under": "absolute", "weight": "large"}
    # not the numbers of users and jobs too
    by_river = partial(RuntimeRegression, **e_loss, features=tuple(JOB_FEATURES))
    names = ("requested", "ave2", "user-ratio", "data-driven", "e-loss")
    ways: dict[str, Callable[[], Any]] = {name: partial(str, name) for name in names}
    ways["e-loss, RuntimeRegression"] = by_river
    runs = {name: partial(with_estimate, trace, way) for name, way in ways.items()}
    rows = simulated("estimate", runs, given.repeat)
    return Figures(f"{len(trace):,} jobs of {trace.name}", rows)


def with_estimate(trace: hpcgym.Workload, make: Callable[[], Any]) -> hpcgym.Result:
    """Simulate the best scheduler of the thesis, with a new estimate."""
    rules: dict[str, Any] = {"backfill_order": "sjbf", "correction": "incremental"}
    return hpcgym.simulate(trace, hpcgym.Scheduler(**rules, estimate=make(), passes="per-event"))


# --- Many weights on many slices ------------------------------------------------------------------

#: What the batch is of: workload, cleaning recipe, number of weeks (None: all).
Slices = tuple[str, str, int | None]


@lru_cache
def slices(of: Slices) -> list[hpcgym.Workload]:
    """Return the weeks to simulate."""
    source, clean, number = of
    return weeks(hpcgym.load_workload(source, clean))[:number]


@lru_cache
def batch(of: Slices) -> BatchSimulator:
    """Return the batch of all weeks; a worker makes it once."""
    return BatchSimulator(slices(of))


def slices_of(given: argparse.Namespace) -> Slices:
    """Return which slices are asked for."""
    default = "lublin:jobs=40000,processors=128,seed=0,load=0.7"
    return given.workload or default, given.clean, given.weeks


def vectors(number: int) -> Any:
    """Return random weights over the six features of Legrand 2018, (number, 6)."""
    return np.random.default_rng(0).uniform(-1, 1, (number, 6))


def of_batch(given: argparse.Namespace, seconds: dict[str, tuple[float, float]]) -> Figures:
    """Return the figures of ways to simulate a share of all vectors on all slices."""
    simulator = batch(slices_of(given))
    n_jobs = int(simulator.sizes.sum())
    rows = []
    for how, (spent, share) in seconds.items():
        row = {"by": how, "s": spent}
        row |= {"slices a second": round(given.vectors * len(simulator) * share / spent)}
        rows.append(row | {"ns a job": 1e9 * spent / (given.vectors * n_jobs * share)})
    return Figures(f"{given.vectors} vectors x {len(simulator)} weeks, {n_jobs:,} jobs", rows)


def threads(given: argparse.Namespace) -> Figures:
    """Simulate many weights by threads, and a tenth of them by a loop over simulate."""
    of, weights = slices_of(given), vectors(given.vectors)
    timed = {
        f"{n} threads": (best(partial(batch(of).run, weights, threads=n), given.repeat), 1.0)
        for n in range(1, threads_here() + 1)
    }
    few, rules = max(given.vectors // 10, 1), find_scheduler("spf")

    def loop() -> None:
        for vector in weights[:few].tolist():
            for part in slices(of):
                _ = hpcgym.simulate(part, rules.but(policy=tuple(vector))).bsld.mean()

    timed["loop over simulate"] = best(loop, 1), few / given.vectors
    return of_batch(given, timed)


def executors(given: argparse.Namespace) -> Figures:
    """Divide the weights among the workers of --executors, on one thread each."""
    of, timed = slices_of(given), {}
    pieces = list(pairwise(np.linspace(0, given.vectors, 9).astype(int).tolist()))
    expected = batch(of).run(vectors(given.vectors))
    for name in given.executors:
        for workers in range(1, threads_here() + 1) if name == "processes" else [None]:
            with open_executor(name, workers) as opened:
                executor: Any = opened

                def run(executor: Any = executor) -> Any:
                    asked = [executor.submit(share, of, given.vectors, *piece) for piece in pieces]
                    return np.concatenate([future.result() for future in asked])

                if not (run() == expected).all():
                    raise SystemExit(f"{name}: other results than in this process")
                number = workers or executor.num_workers  # the ranks but the first
                timed[f"{name}, {number} workers"] = best(run, given.repeat), 1.0
    return of_batch(given, timed)


def share(of: Slices, number: int, first: int, stop: int) -> list[list[float]]:
    """Do some of the vectors, on one thread."""
    values: list[list[float]] = batch(of).run(vectors(number)[first:stop], threads=1).tolist()
    return values


# --- Environments ---------------------------------------------------------------------------------

WORKLOAD = "lublin:jobs=10000,processors=256,seed=0,load=0.8"
CODES = "codes:jobs=10000,processes=96,processors=768,arrivals=poisson,interval=600,seed=0"
#: Arguments beside the usual ones.
GIVEN: dict[str, dict[str, Any]] = {
    "hpcgym/JobSelection-v2": {"window": 128},
    "hpcgym/QueueOrdering-v2": {"window": 128},
    "hpcgym/MixedPolicy-v2": {"interval": "pass", "window": 128},
    "hpcgym/PowerCap-v1": {"share": 0.6},
    "hpcgym/EnergyBudget-v1": {"share": 0.6},
    "hpcgym/CoSchedule-v1": {"workload": CODES},
}
#: How observations of many environments are had -> arguments.
WAYS: dict[str, dict[str, Any]] = {
    "copies": {},
    "views": {"copy": False},
    "flat views": {"copy": False, "observation": "flat"},
}


def per_second(call: Callable[[], object], steps: int, repeat: int, each: int = 1) -> int:
    """Return how many a second are done by some calls, each of which does ``each``."""

    def run() -> None:
        for _ in range(steps):
            call()

    return round(each * steps / best(run, repeat))


def single(given: argparse.Namespace) -> Figures:
    """Count steps a second of one environment, each id, each form of observation."""
    jobs, rows = hpcgym.load_workload(given.workload or WORKLOAD), []
    for name in IDS:
        row: dict[str, Any] = {"environment": name}
        for form in ("dict", "flat"):
            options = {"workload": jobs, "observation": form, **GIVEN.get(name, {})}
            env: Any = gymnasium.make(name, **options)
            shape = env.action_space.shape
            action: Any = np.ones(shape, env.action_space.dtype) if shape else 0
            env.reset(seed=0)

            def step(env: Any = env, action: Any = action) -> None:
                if env.step(action)[2]:
                    env.reset()

            row[f"{form}, steps a second"] = per_second(step, given.steps, given.repeat)
        rows.append({**row, "kB": env.unwrapped.simulations.nbytes / 1000})
    return Figures("gymnasium.make: one environment, 128 visible jobs x 8 features", rows)


def vector(given: argparse.Namespace) -> Figures:
    """Count decisions a second of JobSelection by numbers of environments and threads."""
    jobs = hpcgym.load_workload(given.workload or WORKLOAD)
    rows = []
    for number in (1, 8, 64, 512):
        steps, actions = max(given.steps // number, 20), np.zeros(number, np.int64)
        for threads in sorted({1, threads_here()}):
            row: dict[str, Any] = {"environments": number, "threads": threads}
            made: dict[str, Any] = {"num_envs": number, "vectorization_mode": "vector_entry_point"}
            for way, more in WAYS.items():
                rules = {"workload": jobs, "threads": threads, "window": 128, **more}
                env: Any = gymnasium.make_vec("hpcgym/JobSelection-v2", **made, **rules)
                env.reset(seed=0)
                row[way] = per_second(partial(env.step, actions), steps, given.repeat, number)
            simulations = env.unwrapped.simulations
            alone = partial(simulations.step_all, threads)
            row["the engine's call alone"] = per_second(alone, steps, given.repeat, number)
            row["visible jobs"] = float(simulations.batch.episode_state["visible"].mean())
            rows.append({**row, "kB an environment": simulations.nbytes / number / 1000})
    return Figures(f"gymnasium.make_vec: decisions a second of JobSelection, {jobs.name}", rows)


#: A log of RLScheduler in a folder of HPCGYM_DATA.
LUBLIN = "lublin_256"


def defaults(given: argparse.Namespace) -> Figures:
    """Count decisions a processor second of JobSelection with nothing but a log, one and 64."""
    jobs, rows = hpcgym.load_workload(given.workload or LUBLIN), []
    for number in (1, 64):
        run, env = deciding(jobs, number, given.steps)
        seconds = best(run, given.repeat, time.process_time)
        simulations = env.unwrapped.simulations
        row = {"environments": number, "decisions a second": round(given.steps / seconds)}
        row["visible jobs"] = float(simulations.batch.episode_state["visible"].mean())
        rows.append({**row, "kB an environment": simulations.nbytes / number / 1000})
    return Figures(f"JobSelection by default, processor time: {jobs.name}", rows)


def deciding(jobs: hpcgym.Workload, number: int, steps: int) -> tuple[Callable[[], None], Any]:
    """Return what makes so many decisions, always the same, and the environment of these."""
    name = "hpcgym/JobSelection-v2"
    if number == 1:
        env: Any = gymnasium.make(name, workload=jobs)

        def run() -> None:
            env.reset(seed=0)
            for _ in range(steps):
                _, _, ended, truncated, _ = env.step(0)
                if ended or truncated:
                    env.reset()

        return run, env
    made: dict[str, Any] = {"num_envs": number, "vectorization_mode": "vector_entry_point"}
    envs: Any = gymnasium.make_vec(name, **made, workload=jobs, threads=1)
    actions = np.zeros(number, np.int64)

    def run_all() -> None:
        envs.reset(seed=0)
        for _ in range(steps // number):
            envs.step(actions)

    return run_all, envs


# --- Futures --------------------------------------------------------------------------------------

#: Moments at which jobs wait, at most, and futures at each.
MOMENTS, FUTURES = 40, 64


def spent(call: Callable[[], object], repeat: int) -> float:
    """Return the least processor time of a call [s]."""
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def futures(given: argparse.Namespace) -> Figures:
    """Forecast the start of a job, and of the whole queue, by one thread's processor time."""
    jobs = hpcgym.load_workload(given.workload or of_size_of_kth(), given.clean)
    rows = []
    for name in ("easy", "saf", "conservative", "slurm", "aged"):
        scheduler, rules = SCHEDULERS.get(name, (name, {}))
        result = hpcgym.simulate(jobs, scheduler, **rules)
        waits = np.flatnonzero(result.wait > 0)
        late = waits[waits > len(jobs) // 2]
        number = min(MOMENTS, len(late))
        chosen = np.random.default_rng(0).choice(late, number, replace=False)
        times = np.unique(result.workload.submit_time[chosen] + 1).tolist()
        seconds, waiting = dict.fromkeys(("one job", "the queue", "all of it"), 0.0), 0
        for state in snapshots(result, times):
            ask = partial(hpcgym.forecast, state, result.scheduler, futures=FUTURES, threads=1)
            seconds["all of it"] += spent(ask().table, 1)
            forecast = ask()
            targets = forecast.targets
            for what, jobs_of in (("one job", targets[-1:]), ("the queue", targets)):
                forecast.starts_of(jobs_of)
                seconds[what] += spent(partial(forecast.starts_of, jobs_of), given.repeat)
            waiting += len(targets)
        row = {"scheduler": name, "jobs that wait": waiting / len(times)}
        for what in ("one job", "the queue"):
            row[f"us a future of {what}"] = 1e6 * seconds[what] / len(times) / FUTURES
        row["ms a forecast, with all that is prepared"] = 1e3 * seconds["all of it"] / len(times)
        rows.append(row)
    return Figures(f"{jobs.name}: {FUTURES} futures at each of {MOMENTS} moments", rows)


# --- The command line -----------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    section.__name__: section
    for section in (
        *(schedulers, start, calls, jobs, load, estimates, threads, executors, single, vector),
        *(defaults, futures),
        *(*speed_of_machines.SECTIONS, speed_of_dumps.dumps, speed_of_peers.peers),
    )
}


def main() -> None:
    """Read the command line; measure the sections asked for and print each, or all as JSON."""
    given = arguments()
    facts, measured = machine(), {}
    if given.format == "table":
        print(", ".join(f"{name} {value}" for name, value in facts.items()))
    for name in given.sections:
        try:
            measured[name] = SECTIONS[name](given)
        except hpcgym.HpcgymError as error:
            sys.exit(f"speed.py: {error}")
        if given.format == "table":
            print(f"\n{measured[name].title}\n\n{table_text(pd.DataFrame(measured[name].rows))}")
    if given.format == "json":
        rows = {name: figures.rows for name, figures in measured.items()}
        print(json_text({"machine": facts, "sections": rows}), end="")


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    sections = "".join(f"  {name:<12} {section.__doc__}\n" for name, section in SECTIONS.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"sections:\n{sections}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("sections", nargs="+", choices=SECTIONS, metavar="SECTION")
    add("--workload", help="in place of the usual one: a file, a name or a generator")
    add("--clean", default="glesser", help="cleaning recipe (%(default)s)")
    add("--repeat", type=count, default=10, help="timed runs (%(default)s)")
    add("--limit", type=float, default=60, help="[s] for each process (%(default)s)")
    add(
        "--sizes",
        type=lambda text: [*map(float, text.split(","))],
        help="N,N: numbers of jobs, or loads",
    )
    add("--jobs", type=count, default=100_000, help="at most, of load and peers (%(default)s)")
    add("--weeks", type=count, help="first weeks only")
    add("--vectors", type=count, default=200, help="weight vectors (%(default)s)")
    add("--executors", type=lambda text: text.split(","), default=["processes"])
    add("--steps", type=count, default=20_000, help="of a run of environments (%(default)s)")
    for name in speed_of_peers.PEERS:
        add(f"--{name}", type=Path, metavar="FOLDER", help="its checkout, for peers")
    add("--format", choices=("table", "json"), default="table")
    return parser.parse_args()


def count(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


if __name__ == "__main__":
    main()
