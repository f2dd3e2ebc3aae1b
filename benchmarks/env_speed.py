"""How fast the environments step, one at a time and by the thousand, and what memory they take."""

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from sections import Column, Section, best, machine, parser_of, show

import hpcgym
from hpcgym.envs import IDS
from hpcgym.processors import threads_here

EPILOG = """\
sections:
  single  steps a second of one environment through Python, each id, each form of observation
  vector  decisions a second of JobSelection by number of environments and threads, with copies of
          the observations, with views of the buffers, and of the engine's call alone
  queue   the same with 64 environments, by how many of the 128 visible jobs there are
  trace   the same with 64 environments, by the length of the trace: a step must not depend on it
  first   seconds of the first calls of a process

Every step does an action that is made beforehand: the first job, equal scores, weights or controls.
Decisions are counted with those that begin episodes. Times are the best of --repeat runs.

examples:
  python benchmarks/env_speed.py
  python benchmarks/env_speed.py --sections vector --repeat 20 --format json
"""
WORKLOAD = "lublin:jobs={jobs},processors=256,seed=0,load={load}"
CODES = "codes:jobs=10000,processes=96,processors=768,arrivals=poisson,interval=600,seed=0"
#: Arguments beside the usual ones.
GIVEN: dict[str, dict[str, Any]] = {
    "hpcgym/MixedPolicy-v0": {"interval": "pass"},
    "hpcgym/PowerCap-v0": {"share": 0.6},
    "hpcgym/EnergyBudget-v0": {"share": 0.6},
    "hpcgym/CoSchedule-v0": {"workload": CODES},
}
RATE = Column("per_second", "decisions a second", ",.0f")
US = Column("us", "us a step", ",.1f")
VISIBLE = Column("visible", "visible jobs, mean", ".1f")


def main() -> None:
    """Read the command line and print the sections asked for."""
    given = arguments()
    show(SECTIONS, given, machine() | {"threads": threads_here()})


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = parser_of(__doc__, EPILOG, SECTIONS, 10)
    parser.add_argument("--steps", type=int, default=20_000, help="of a run (%(default)s)")
    return parser.parse_args()


def workload(jobs: int = 10_000, load: float = 0.8) -> hpcgym.Workload:
    """Return a generated workload."""
    return hpcgym.load_workload(WORKLOAD.format(jobs=jobs, load=load))


def single(given: argparse.Namespace) -> Section:
    """Time each environment alone."""
    rows = []
    jobs = workload()
    for name in IDS:
        for form in ("dict", "flat"):
            options = {"workload": jobs, "observation": form, **GIVEN.get(name, {})}
            env = gymnasium.make(name, **options)
            inner: Any = env.unwrapped
            space = env.action_space
            action: Any = 0 if space.shape == () else np.ones(space.shape, space.dtype)
            env.reset(seed=0)

            def run(env: Any = env, action: Any = action) -> None:
                for _ in range(given.steps):
                    if env.step(action)[2]:
                        env.reset()

            seconds = best(run, given.repeat)
            memory = inner.simulations.nbytes
            rows.append(
                {
                    "env": name,
                    "observation": form,
                    "per_second": given.steps / seconds,
                    "us": seconds / given.steps * 1e6,
                    "kb": memory / 1000,
                }
            )
    columns = (
        Column("env", "environment"),
        Column("observation", "observation"),
        RATE,
        US,
        Column("kb", "memory, kB", ",.0f"),
    )
    return Section("gymnasium.make: one environment, 128 visible jobs x 8 features", columns, rows)


def vector(given: argparse.Namespace) -> Section:
    """Time JobSelection by number of environments."""
    rows = []
    jobs = workload()
    for number in (1, 8, 64, 512):
        for threads in sorted({1, threads_here()}):
            rows.append({"envs": number, **rates(given, jobs, number, threads)})
    columns = (
        Column("envs", "environments", ",d"),
        Column("threads", "threads", "d"),
        Column("copies", "copies", ",.0f"),
        Column("views", "views", ",.0f"),
        Column("flat_views", "flat views", ",.0f"),
        Column("engine", "the engine's call alone", ",.0f"),
        Column("kb", "memory an environment, kB", ",.0f"),
    )
    return Section("gymnasium.make_vec: decisions a second of JobSelection", columns, rows)


def rates(
    given: argparse.Namespace, trace: hpcgym.Workload, number: int, threads: int, **options: Any
) -> dict[str, Any]:
    """Return decisions a second of a vector environment, in each way to get observations."""
    steps = max(given.steps // number, 20)
    actions = np.zeros(number, np.int64)
    row: dict[str, Any] = {"threads": threads}
    ways: dict[str, dict[str, Any]] = {
        "copies": {},
        "views": {"copy": False},
        "flat_views": {"copy": False, "observation": "flat"},
    }
    for way, more in ways.items():
        env: Any = gymnasium.make_vec(
            "hpcgym/JobSelection-v0",
            num_envs=number,
            vectorization_mode="vector_entry_point",
            workload=trace,
            threads=threads,
            **more,
            **options,
        )
        env.reset(seed=0)

        def run(env: Any = env) -> None:
            for _ in range(steps):
                env.step(actions)

        row[way] = number * steps / best(run, given.repeat)
        simulations = env.unwrapped.simulations
        visible: list[float] = []

        def alone(simulations: Any = simulations, visible: list[float] = visible) -> None:
            for _ in range(steps):
                simulations.step_all(threads)
            visible.append(float(simulations.batch.episode_state["visible"].mean()))

    row["engine"] = number * steps / best(alone, given.repeat)
    row["visible"] = float(np.mean(visible))
    row["kb"] = simulations.nbytes / number / 1000
    return row


def queue(given: argparse.Namespace) -> Section:
    """Time 64 environments with ever fuller windows."""
    rows = []
    threads = threads_here()
    for load, length in ((0.8, 256), (1.2, 1024), (3.0, 4096)):
        jobs = workload(20_000, load)
        rows.append({"load": load, "jobs": length, **rates(given, jobs, 64, threads, jobs=length)})
    columns = (
        Column("load", "load", ".1f"),
        Column("jobs", "jobs an episode", ",d"),
        VISIBLE,
        Column("copies", "copies", ",.0f"),
        Column("flat_views", "flat views", ",.0f"),
        Column("engine", "the engine's call alone", ",.0f"),
        Column("kb", "memory an environment, kB", ",.0f"),
    )
    return Section("64 environments: decisions a second by the length of the queue", columns, rows)


def trace(given: argparse.Namespace) -> Section:
    """Time 64 environments on ever longer traces."""
    rows = []
    for length in (1_000, 10_000, 100_000, 1_000_000):
        # the load is that of the model: longer traces have no longer queues
        found = rates(given, workload(length, 0.6), 64, threads_here())
        rows.append({"trace": length, **found})
    columns = (
        Column("trace", "jobs of the trace", ",d"),
        VISIBLE,
        Column("flat_views", "flat views", ",.0f"),
        Column("engine", "the engine's call alone", ",.0f"),
        Column("kb", "memory an environment, kB", ",.0f"),
    )
    return Section("64 environments: decisions a second by the length of the trace", columns, rows)


def first_calls(given: argparse.Namespace) -> Section:
    """Time the first calls in this process."""
    rows = []
    jobs = workload(1_000)
    env = gymnasium.make("hpcgym/JobSelection-v0", workload=jobs)
    many = gymnasium.make_vec(
        "hpcgym/JobSelection-v0", num_envs=2, vectorization_mode="vector_entry_point", workload=jobs
    )
    calls: dict[str, Callable[[], Any]] = {
        "simulate": lambda: hpcgym.simulate(jobs),
        "reset": lambda: env.reset(seed=0),
        "step": lambda: env.step(0),
        "step of a vector environment": lambda: (many.reset(), many.step(np.zeros(2, np.int64))),
    }
    for name, call in calls.items():
        start = time.perf_counter()
        call()
        rows.append({"call": name, "seconds": time.perf_counter() - start})
    columns = (Column("call", "first call of"), Column("seconds", "s", ".2f"))
    return Section("First calls", columns, rows)


SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "first": first_calls,
    "single": single,
    "vector": vector,
    "queue": queue,
    "trace": trace,
}

if __name__ == "__main__":
    main()
