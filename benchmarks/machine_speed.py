"""How fast machines are simulated beside a plain pool: of nodes, with power, shared by jobs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sections import Column, Section, in_turn, machine, parser_of, processor_seconds, show

from hpcgym import (
    Cluster,
    Heatmap,
    Result,
    Scheduler,
    Workload,
    generate_speedups,
    load_workload,
    simulate,
)
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.coscheduling.speed import SHAPES, TRACE, machine_of, trace_jobs
from hpcgym.machine import NodeGroup, find_cluster
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.nodes import as_on_pool, assign_nodes, needs_on, place_on_nodes
from hpcgym.simulation.prepare import pool_of
from hpcgym.workload import Code, fitting, generate_code_jobs
from hpcgym.workload.archive import find

EPILOG = """\
sections:
  nodes   EASY and Slurm's rules on nodes, beside a pool; seconds of the simulation alone
  books   what energy accounts add to EASY on KTH-SP2
  limits  two machines under a cap or a budget of 60 % for a quarter of the time
  shared  jobs that share nodes: 100 nodes of 48 cores, all submitted at once, or load 0.9
  growth  the same at load 0.9 by number of jobs, with the exponent from 5,000 jobs on; n log n
          would have 1.10
  log     two years of SDSC-SP2 on nodes that jobs share

Times are the least of --repeat runs, in turn, after one that does not count; but for nodes, they
are seconds of the processor, so that other programs matter less.

examples:
  python benchmarks/machine_speed.py --sections nodes,books --repeat 20
  python benchmarks/machine_speed.py --sections limits --repeat 2
"""
DAY = 86_400  # s
SLURM = Scheduler(backfill="slurm")
SCHEDULERS = ("fcfs", "easy", "conservative", *COSCHEDULERS)
NODES, CORES, JOBS = 100, 48, 5_000
GROWTH = (1_250, 2_500, 5_000, 10_000, 20_000, 40_000)
PROCESSES = (24, 64, 128, 256)
#: Of what the machine can do under a scheduler, with the mean speedup of pairs where jobs share.
LOAD = 0.9

WHAT = Column("what", "")
NS = Column("ns", "ns a job", ",.0f")
RATIO = Column("ratio", "ratio", ".2f")
SECONDS = Column("seconds", "s", ".3f")
RATE = Column("per_second", "jobs a second", ",.0f")
QUEUE = Column("queue", "mean queue", ",.1f")
SCHEDULER = Column("scheduler", "scheduler")


def main() -> None:
    """Read the command line and print the sections asked for."""
    show(SECTIONS, parser_of(__doc__, EPILOG, SECTIONS, 10).parse_args(), machine())


def rates(seconds: float, jobs: int) -> dict[str, float]:
    """Return what is shown of a time."""
    return {"seconds": seconds, "ns": 1e9 * seconds / jobs, "per_second": jobs / seconds}


# --- Nodes ----------------------------------------------------------------------------------------


def nodes(given: argparse.Namespace) -> Section:
    """Time simulations on nodes beside one on a pool."""
    kth, one_core = load_workload("KTH-SP2", "glesser"), find_cluster("kth-sp2")
    easy = Scheduler()
    table: dict[str, tuple[Workload, Callable[[], float]]] = {
        "KTH-SP2, pool of 100 processors": (kth, partial(on_pool, kth)),
        "KTH-SP2, 100 nodes x 1 core, first fit": (kth, on_nodes(kth, one_core, easy)),
        "the same, single cores treated as any units": (
            kth,
            on_nodes(kth, one_core, easy, general=True),
        ),
        "the same under Slurm's rules": (kth, on_nodes(kth, one_core, SLURM)),
    }
    thin = Cluster(groups=(NodeGroup("thin", 1152, {"core": 20, "mem": 64_000}),))
    for name, source in (
        ("100,000 jobs of single cores", "lublin:jobs=100000,processors=23040,seed=1"),
        ("100,000 jobs of whole nodes and parts", "kit:jobs=100000,seed=1"),
    ):
        jobs = fitting_on(load_workload(source), thin)
        for allocation in ("first-fit", "best-fit"):
            label = f"1,152 x 20 cores, {name}, {allocation}"
            table[label] = jobs, on_nodes(jobs, thin, Scheduler(allocation=allocation))
    small = Cluster(groups=(NodeGroup("thin", 96, {"core": 128}),))
    full = load_workload("lublin:jobs=10000,processors=12288,load=1.2,seed=1")
    table["96 x 128 cores, 10,000 jobs at load 1.2, Slurm's rules"] = (
        full,
        on_nodes(full, small, SLURM),
    )
    some = Cluster(groups=(NodeGroup("thin", 96, {"core": 20, "mem": 64_000}),))
    crowd = fitting_on(load_workload("kit:jobs=1000,seed=3"), some)
    for name in ("easy", "conservative"):
        label = f"96 x 20 cores, {len(crowd):,} jobs of whole nodes and parts, {name}"
        table[label] = crowd, on_nodes(crowd, some, Scheduler(backfill=name))
    # those that take seconds by themselves: behind them the system clears memory for the next
    slow = {name for name in table if "Slurm" in name or "conservative" in name}
    least: dict[str, float] = {}
    for names in (table.keys() - slow, slow):
        least |= in_turn({name: table[name][1] for name in table if name in names}, given.repeat)
    reference = least["KTH-SP2, pool of 100 processors"] / len(kth)
    rows = [
        {
            "what": name,
            **rates(least[name], len(jobs)),
            "ratio": least[name] / len(jobs) / reference,
        }
        for name, (jobs, _) in table.items()
    ]
    return Section(f"Nodes, best of {given.repeat}", (WHAT, NS, RATE, RATIO), rows)


def fitting_on(jobs: Workload, cluster: Cluster) -> Workload:
    """Return the jobs that fit the machine."""
    if jobs.units is None:
        return jobs
    kept = {name for name in jobs.per_unit if name in cluster.resources}
    plain = ~np.any([v > 0 for name, v in jobs.per_unit.items() if name not in kept], axis=0)
    here = jobs.take(np.broadcast_to(plain, len(jobs)))
    return fitting(here, cluster.resources, cluster.capacity)


def on_pool(jobs: Workload) -> float:
    """Return the seconds of plain EASY on a pool."""
    simulation = new_simulation(jobs, Scheduler(), pool_of(jobs, Cluster(jobs.processors)))
    begin = time.perf_counter()
    simulation.drive()
    return time.perf_counter() - begin


def on_nodes(
    jobs: Workload, cluster: Cluster, scheduler: Scheduler, general: bool = False
) -> Callable[[], float]:
    """Return a simulation on nodes, as ``simulate`` does it or by the ``general`` way."""
    needs = needs_on(jobs, cluster)
    alike = as_on_pool(needs, scheduler) and not general

    def run() -> float:
        on_nodes = pool_of(jobs, cluster)
        if not alike:
            on_nodes = place_on_nodes(jobs, needs, cluster, scheduler)
        simulation = new_simulation(jobs, scheduler, on_nodes)
        begin = time.perf_counter()
        simulation.drive()
        if alike:
            assign_nodes(simulation.schedule(), needs, cluster, scheduler)
        return time.perf_counter() - begin

    return run


# --- Power ----------------------------------------------------------------------------------------


def books(given: argparse.Namespace) -> Section:
    """Time what books add to plain EASY on one trace, on nodes and on a pool."""
    kth = load_workload("KTH-SP2", "glesser")
    power = find_cluster("taurus").groups[0].power
    pool, plain = Cluster(100), find_cluster("kth-sp2")
    powered = Cluster(groups=(NodeGroup("node", 100, {"core": 1}, power),))
    cases: dict[str, tuple[Cluster, dict[str, Any], Callable[[Result], object] | None]] = {
        "pool": (pool, {}, None),
        "pool, energies by state and job": (pool, {}, by_job),
        "nodes": (plain, {}, None),
        "nodes with power": (powered, {}, None),
        "nodes with power, energies by state": (powered, {}, lambda of: of.books.by_state),
        "nodes with power, energies by state and job": (powered, {}, by_job),
        "nodes with power, the same and power over time": (
            powered,
            {},
            lambda of: (by_job(of), of.books.watts()),
        ),
        "limits=[]": (powered, {"limits": []}, None),
        "limits=[], energies by state and job": (powered, {"limits": []}, by_job),
    }

    def once(on: Cluster, rules: dict[str, Any], reads: Callable[[Result], object] | None) -> Any:
        result = simulate(kth, cluster=on, **rules)
        return None if reads is None else reads(result)

    runs = {name: processor_seconds(partial(once, *case)) for name, case in cases.items()}
    least = in_turn(runs, given.repeat)
    rows = [
        {
            "what": name,
            **rates(seconds, len(kth)),
            "ratio": seconds / least["pool" if "pool" in name else "nodes"],
        }
        for name, seconds in least.items()
    ]
    title = f"KTH-SP2, {len(kth):,} jobs, 100 processors or nodes of one core, EASY"
    return Section(f"{title}, best of {given.repeat}", (WHAT, NS, RATIO), rows)


def by_job(result: Result) -> object:
    """Work out the energies by state, and what jobs are charged."""
    return result.books.by_state, result.books.by_job()


def limits(given: argparse.Namespace) -> Section:
    """Time machines under a cap and under a budget, by each rule."""
    rows = []
    for name, source in (
        ("curie", "lublin:jobs=20000,processors=5040,load=10,seed=1"),
        ("taurus", "lublin:jobs=20000,processors=192,load=0.8,seed=1"),
    ):
        jobs, on = load_workload(source), find_cluster(name)
        cases = limits_of(on, jobs)
        runs = {
            what: processor_seconds(partial(simulate, jobs, cluster=on, **rules))
            for what, rules in cases.items()
        }
        widths = np.ceil(jobs.requested_processors / on.groups[0].resources["core"])
        days = (int(jobs.submit_time[-1]) - int(jobs.submit_time[0])) / DAY
        told = (
            f"{name}: {on.nodes:,} nodes, {len(jobs):,} jobs of {widths.mean():.0f}, {days:.1f} d"
        )
        for what, seconds in in_turn(runs, given.repeat).items():
            result = simulate(jobs, cluster=on, **cases[what])
            queue = result.metrics["mean_queue_length"]
            rows.append(
                {"machine": told, "what": what, **rates(seconds, len(jobs)), "queue": queue}
            )
    columns = (Column("machine", "machine"), WHAT, SECONDS, RATE, QUEUE)
    return Section(f"60 % for a quarter of the time, best of {given.repeat}", columns, rows)


def limits_of(on: Cluster, jobs: Workload) -> dict[str, dict[str, Any]]:
    """Return rules by name."""
    first, last = int(jobs.submit_time[0]), int(jobs.submit_time[-1])
    middle, half = (first + last) // 2, (last - first) // 8
    begin, end = middle - half, middle + half
    cap = PowerCap.of(on, 0.6, begin, end=end)
    sudden = PowerCap.of(on, 0.6, begin, end=end, announced=begin - 3600, kills=True)
    cases: dict[str, dict[str, Any]] = {"whole nodes, no limit": {"limits": []}}
    for rule in ("none", "shut", "dvfs", "mix"):
        cases[f"cap, {rule}"] = {"limits": [cap], "power": rule}
    cases["cap of an hour's notice that kills, mix"] = {"limits": [sudden], "power": "mix"}
    for rule in ("powercap", "reduce-pc", "energy-bud"):
        for shutdown in (False, True):
            budget = EnergyBudget.of(on, 0.6, begin, end, shutdown=shutdown)
            what = f"budget, {rule}{', idle nodes off' if shutdown else ''}"
            cases[what] = {"limits": [budget], "power": rule}
    return cases


# --- Jobs that share nodes ------------------------------------------------------------------------


def jobs_of(speedups: Heatmap, jobs: int, load_of: str | None) -> Workload:
    """Return jobs of codes: all at time 0, or at random, 0.9 of what a scheduler can do."""
    random = np.random.default_rng(0)
    times = random.uniform(600, 7200, len(speedups)).tolist()
    sizes = [PROCESSES[place % len(PROCESSES)] for place in range(len(speedups))]
    codes = [Code(*of) for of in zip(speedups.codes, sizes, times, strict=True)]
    interval_s = None
    if load_of is not None:
        each = [node_seconds(code, load_of, speedups) for code in codes]
        interval_s = float(np.mean(each)) / (LOAD * NODES)
    return generate_code_jobs(
        codes,
        jobs,
        processors=NODES * CORES,
        mix="shuffle",
        arrivals="at-once" if load_of is None else "poisson",
        interval_s=interval_s,
    )


def node_seconds(code: Code, name: str, speedups: Heatmap) -> float:
    """Return what a job takes of the machine, a half of a node counting half."""
    if name not in COSCHEDULERS:
        return -(-code.processes // CORES) * code.compact_s
    halves = -(-code.processes // (CORES // 2))
    if COSCHEDULERS[name].allocation == "spread":
        return halves * code.compact_s / float(speedups.alone[speedups.place(code.name)])
    return halves / 2 * code.compact_s / speedups.mean_speedup


def sharing(jobs: Workload, name: str, on: Cluster, speedups: Heatmap) -> Callable[[], Result]:
    """Return a simulation of jobs that share nodes."""
    return partial(simulate, jobs, name, cluster=on, speedups=speedups)


def shared(given: argparse.Namespace) -> Section:
    """Time all schedulers, with long queues and short ones."""
    speedups, on, rows = generate_speedups(), machine_of(NODES * CORES, CORES), []
    for what, at_once in (("all submitted at once", True), (f"load {LOAD}", False)):
        runs = {
            name: sharing(jobs_of(speedups, JOBS, None if at_once else name), name, on, speedups)
            for name in SCHEDULERS
        }
        timed = {name: processor_seconds(run) for name, run in runs.items()}
        for name, seconds in in_turn(
            timed, given.repeat, {"conservative"} if at_once else ()
        ).items():
            queue = runs[name]().metrics["mean_queue_length"]
            rows.append({"what": what, "scheduler": name, **rates(seconds, JOBS), "queue": queue})
    title = f"{JOBS:,} jobs, {NODES} nodes of {CORES} cores, best of {given.repeat}"
    return Section(title, (WHAT, SCHEDULER, SECONDS, RATE, QUEUE), rows)


def growth(given: argparse.Namespace) -> Section:
    """Time ever more jobs at a stable queue; fit a power law."""
    speedups, on = generate_speedups(), machine_of(NODES * CORES, CORES)
    rows: dict[str, dict[str, Any]] = {name: {"scheduler": name} for name in SCHEDULERS}
    for n in GROWTH:
        runs = {
            name: processor_seconds(sharing(jobs_of(speedups, n, name), name, on, speedups))
            for name in SCHEDULERS
        }
        for name, seconds in in_turn(runs, given.repeat).items():
            rows[name][str(n)] = 1e3 * seconds
    late = GROWTH[-4:]
    for row in rows.values():
        times = np.log([row[str(n)] for n in late])
        row["exponent"] = float(np.polyfit(np.log(late), times, 1)[0])
    columns = (SCHEDULER, *(Column(str(n), f"{n:,}", ",.1f") for n in GROWTH))
    title = f"ms by jobs, load {LOAD}"
    return Section(title, (*columns, Column("exponent", "exponent", ".2f")), list(rows.values()))


def log(given: argparse.Namespace) -> Section:
    """Time two years of a log, its jobs with codes drawn at random."""
    speedups, on, rows = generate_speedups(), machine_of(128 * 64, 64), []
    for shape in SHAPES if find(TRACE) is not None else ():
        jobs = trace_jobs(TRACE, shape, speedups)
        runs = {
            name: processor_seconds(sharing(jobs, name, on, speedups))
            for name in ("fcfs", "easy", "easy-co", "filler-co", "popularity-co")
        }
        for name, seconds in in_turn(runs, given.repeat).items():
            rows.append({"what": shape, "scheduler": name, **rates(seconds, len(jobs))})
    title = f"{TRACE} on 128 nodes of 64 cores, by what a job of p processors is"
    return Section(title, (WHAT, SCHEDULER, SECONDS, RATE), rows)


SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "nodes": nodes,
    "books": books,
    "limits": limits,
    "shared": shared,
    "growth": growth,
    "log": log,
}

if __name__ == "__main__":
    main()
