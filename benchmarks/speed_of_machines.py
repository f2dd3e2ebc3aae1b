"""How fast machines are simulated beside a plain pool: of nodes, with power, shared by jobs.

But for nodes, times are seconds of the processor, so that other programs matter less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle, product
from typing import Any

import numpy as np
from timing import Figures, in_turn, rates, simulated, spent

from hpcgym import Heatmap, Result, Scheduler, generate_speedups, simulate
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.coscheduling.speed import machine_of
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.nodes import assign_nodes, place_on_nodes, simulates_as_pool
from hpcgym.simulation.prepare import pool_of
from hpcgym.workload import Code, Workload, assign_codes, fitting, generate_code_jobs, load_workload
from hpcgym.workload.archive import find
from hpcgym.workload.checks import needs_on

SCHEDULERS = ("fcfs", "easy", "conservative", *COSCHEDULERS)
NODES, CORES, JOBS = 100, 48, 5_000
GROWTH = (1_250, 2_500, 5_000, 10_000, 20_000, 40_000)
PROCESSES = (24, 64, 128, 256)
#: Of what the machine can do under a scheduler, with the mean speedup of pairs where jobs share.
LOAD = 0.9

#: A log, put on the nodes that ELiSE names.
TRACE = "SDSC-SP2"

Simulations = Mapping[str, Callable[[], Result]]


def timed(runs: Mapping[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Return the seconds of the processor of calls that take turns."""
    return in_turn({name: spent(run, time.process_time) for name, run in runs.items()}, repeat)


def rows_of(runs: Simulations, repeat: int, **beside: Any) -> list[dict[str, Any]]:
    """Return a row for each simulation: its time, and its mean queue."""
    return simulated("by", runs, repeat, time.process_time, **beside)


# --- Nodes ----------------------------------------------------------------------------------------


def nodes(given: argparse.Namespace) -> Figures:
    """Time EASY and Slurm's rules on nodes, beside a pool; the simulation alone."""
    kth, one_core = load_workload("KTH-SP2", "glesser"), find_cluster("kth-sp2")
    easy, slurm = Scheduler(), Scheduler(backfill="slurm")
    cases: dict[str, tuple[Workload, Cluster, Scheduler]] = {
        "KTH-SP2, pool of 100 processors": (kth, Cluster(100), easy),
        "KTH-SP2, 100 nodes x 1 core, first fit": (kth, one_core, easy),
        "the same, single cores treated as any units": (kth, one_core, easy),
        "the same under Slurm's rules": (kth, one_core, slurm),
    }
    thin, some = thin_nodes(1152, core=20, mem=64_000), thin_nodes(96, core=20, mem=64_000)
    sources = {
        "100,000 jobs of single cores": "lublin:jobs=100000,processors=23040,seed=1",
        "100,000 jobs of whole nodes and parts": "kit:jobs=100000,seed=1",
    }
    for (name, source), allocation in product(sources.items(), ("first-fit", "best-fit")):
        jobs = fitting_on(load_workload(source), thin)
        rules = Scheduler(allocation=allocation)
        cases[f"1,152 x 20 cores, {name}, {allocation}"] = jobs, thin, rules
    full = load_workload("lublin:jobs=10000,processors=12288,load=1.2,seed=1")
    label = "96 x 128 cores, 10,000 jobs at load 1.2, Slurm's rules"
    cases[label] = full, thin_nodes(96, core=128), slurm
    crowd = fitting_on(load_workload("kit:jobs=1000,seed=3"), some)
    for name in ("easy", "conservative"):
        label = f"96 x 20 cores, {len(crowd):,} jobs of whole nodes and parts, {name}"
        cases[label] = crowd, some, Scheduler(backfill=name)
    runs = {name: on_nodes(*case, general="any units" in name) for name, case in cases.items()}
    # those that take seconds by themselves: behind them the system clears memory for the next
    slow = {name for name in cases if "Slurm" in name or "conservative" in name}
    least: dict[str, float] = {}
    for names in (cases.keys() - slow, slow):
        least |= in_turn({name: runs[name] for name in runs if name in names}, given.repeat)
    rows = [{"what": name, **rates(least[name], len(of[0]))} for name, of in cases.items()]
    return Figures("Nodes", rows)


def thin_nodes(number: int, **each: int) -> Cluster:
    """Return a machine of nodes that are all alike."""
    return Cluster(groups=(NodeGroup("thin", number, each),))


def fitting_on(jobs: Workload, cluster: Cluster) -> Workload:
    """Return the jobs that fit the machine."""
    if jobs.units is None:
        return jobs
    kept = {name for name in jobs.per_unit if name in cluster.resources}
    plain = ~np.any([v > 0 for name, v in jobs.per_unit.items() if name not in kept], axis=0)
    here = jobs.take(np.broadcast_to(plain, len(jobs)))
    return fitting(here, cluster.resources, cluster.capacity)


def on_nodes(
    jobs: Workload, cluster: Cluster, scheduler: Scheduler, general: bool = False
) -> Callable[[], float]:
    """Return a simulation on a pool or nodes, as ``simulate`` does it or by the ``general`` way."""
    needs = None if cluster.groups is None else needs_on(jobs, cluster)
    alike = needs is None or (simulates_as_pool(needs, scheduler) and not general)

    def run() -> float:
        where = pool_of(jobs, cluster)
        if needs is not None and not alike:
            where = place_on_nodes(jobs, needs, cluster, scheduler)
        simulation = new_simulation(jobs, scheduler, where)
        begin = time.perf_counter()
        simulation.drive()
        if needs is not None and alike:
            assign_nodes(simulation.schedule(), needs, cluster, scheduler)
        return time.perf_counter() - begin

    return run


def slurm(given: argparse.Namespace) -> Figures:
    """Time Slurm's rules on 1,000 nodes by jobs, and on 100 if 1,000 jobs wait at once."""
    thin = thin_nodes(1_000, core=48, mem=200_000)
    runs: dict[str, Callable[[], Result]] = {}
    for number in (1_000, 4_000, 16_000):
        jobs = load_workload(f"lublin:jobs={number},processors=48000,load=0.8,seed=1")
        label = f"1,000 x 48 cores, {number:,} jobs at load 0.8"
        runs[label] = partial(simulate, jobs, backfill="slurm", cluster=thin)
    some = load_workload("KTH-SP2").weeks()[32].take(np.arange(1_000))
    crowd = some.with_columns(submit_time=np.zeros(len(some), np.int64))
    patient = "slurm:bf_window=10080+bf_max_job_test=1000"
    for where in ("100x1x1", "pool"):
        on = find_cluster("kth-sp2") if where != "pool" else None
        label = f"1,000 jobs of KTH-SP2 at once, {where}"
        runs[label] = partial(simulate, crowd, backfill=patient, cluster=on)
    rows = simulated("what", runs, given.repeat, time.process_time)
    return Figures("Nodes under Slurm's rules", rows)


# --- Power ----------------------------------------------------------------------------------------


def books(given: argparse.Namespace) -> Figures:
    """Time what energy accounts add to EASY on KTH-SP2, on nodes and on a pool."""
    kth = load_workload("KTH-SP2", "glesser")
    pool, plain = Cluster(100), find_cluster("kth-sp2")
    power = find_cluster("taurus").groups[0].power
    powered = Cluster(groups=(NodeGroup("node", 100, {"core": 1}, power),))
    #: Name -> machine, and which books are read.
    cases: dict[str, tuple[Cluster, str]] = {
        "pool": (pool, ""),
        "pool, energies by state and job": (pool, "states jobs"),
        "nodes": (plain, ""),
        "nodes with power": (powered, ""),
        "nodes with power, energies by state": (powered, "states"),
        "nodes with power, energies by state and job": (powered, "states jobs"),
        "nodes with power, the same and power over time": (powered, "states jobs watts"),
        "nodes, limits=[]": (powered, "limits"),
    }

    def once(on: Cluster, reads: str) -> None:
        result = simulate(kth, cluster=on, limits=[] if reads == "limits" else None)
        if "states" in reads:
            _ = result.books.by_state
        if "jobs" in reads:
            result.books.by_job()
        if "watts" in reads:
            result.books.watts()

    least = timed({name: partial(once, *case) for name, case in cases.items()}, given.repeat)
    rows = [
        {"what": name, **rates(s, len(kth)), "ratio": s / least[name.partition(",")[0].split()[0]]}
        for name, s in least.items()
    ]
    return Figures(f"KTH-SP2, {len(kth):,} jobs, 100 processors or nodes of one core, EASY", rows)


def limits(given: argparse.Namespace) -> Figures:
    """Time two machines under a cap or a budget of 60 % for a quarter of the time."""
    rows = []
    for name, source in (
        ("curie", "lublin:jobs=20000,processors=5040,load=10,seed=1"),
        ("taurus", "lublin:jobs=20000,processors=192,load=0.8,seed=1"),
    ):
        jobs, on = load_workload(source), find_cluster(name)
        runs = {
            what: partial(simulate, jobs, cluster=on, limits=limits, power=rule)
            for what, (limits, rule) in limits_of(on, jobs).items()
        }
        rows += rows_of(runs, given.repeat, machine=name)
    return Figures("20,000 jobs, 60 % for a quarter of the time", rows)


def limits_of(on: Cluster, jobs: Workload) -> dict[str, tuple[list[Any], str]]:
    """Return limits, and the rule that keeps them, by name."""
    first, last = int(jobs.submit_time[0]), int(jobs.submit_time[-1])
    middle, half = (first + last) // 2, (last - first) // 8
    begin, end = middle - half, middle + half
    cap = PowerCap.of(on, 0.6, begin, end=end)
    sudden = PowerCap.of(on, 0.6, begin, end=end, announced=begin - 3600, kills=True)
    cases: dict[str, tuple[list[Any], str]] = {"no limit": ([], "none")}
    cases |= {f"cap, {rule}": ([cap], rule) for rule in ("none", "shut", "dvfs", "mix")}
    cases["cap of an hour's notice that kills, mix"] = [sudden], "mix"
    for rule, off in product(("powercap", "reduce-pc", "energy-bud"), (False, True)):
        budget = EnergyBudget.of(on, 0.6, begin, end, shutdown=off)
        cases[f"budget, {rule}{', idle nodes off' if off else ''}"] = [budget], rule
    return cases


# --- Jobs that share nodes ------------------------------------------------------------------------


def sharing(jobs: int, at_once: bool = False) -> dict[str, Callable[[], Result]]:
    """Return simulations of generated jobs under all schedulers, at once or at a load of 0.9."""
    speedups = generate_speedups()
    given: dict[str, Any] = {"cluster": machine_of(NODES * CORES, CORES), "speedups": speedups}
    loads = {name: None if at_once else name for name in SCHEDULERS}
    return {
        name: partial(simulate, jobs_of(speedups, jobs, load), name, **given)
        for name, load in loads.items()
    }


def jobs_of(speedups: Heatmap, jobs: int, load_of: str | None) -> Workload:
    """Return jobs of codes: all at time 0, or at random, 0.9 of what a scheduler can do."""
    random = np.random.default_rng(0)
    times = random.uniform(600, 7200, len(speedups)).tolist()
    codes = [Code(*of) for of in zip(speedups.codes, cycle(PROCESSES), times, strict=False)]
    interval_s = None
    if load_of is not None:
        each = [node_seconds(code, load_of, speedups) for code in codes]
        interval_s = float(np.mean(each)) / (LOAD * NODES)
    arrivals = "at-once" if load_of is None else "poisson"
    given: dict[str, Any] = {"mix": "shuffle", "arrivals": arrivals, "interval_s": interval_s}
    return generate_code_jobs(codes, jobs, processors=NODES * CORES, **given)


def node_seconds(code: Code, name: str, speedups: Heatmap) -> float:
    """Return what a job takes of the machine, a half of a node counting half."""
    if name not in COSCHEDULERS:
        return -(-code.processes // CORES) * code.compact_s
    halves = -(-code.processes // (CORES // 2))
    if COSCHEDULERS[name].allocation == "spread":
        return halves * code.compact_s / float(speedups.alone[speedups.place(code.name)])
    return halves / 2 * code.compact_s / speedups.mean_speedup


def shared(given: argparse.Namespace) -> Figures:
    """Time jobs that share 100 nodes of 48 cores, all submitted at once, or load 0.9."""
    slow = sharing(JOBS, at_once=True)
    alone = {"conservative": slow.pop("conservative")}
    rows = rows_of(alone, 1, what="at once") + rows_of(slow, given.repeat, what="at once")
    rows += rows_of(sharing(JOBS), given.repeat, what=f"load {LOAD}")
    return Figures(f"{JOBS:,} jobs, {NODES} nodes of {CORES} cores", rows)


def growth(given: argparse.Namespace) -> Figures:
    """Time the same at load 0.9 by number of jobs, with the exponent from 5,000 jobs on."""
    least = {n: timed(sharing(n), given.repeat) for n in GROWTH}
    rows = []
    for name in SCHEDULERS:
        late = GROWTH[-4:]
        slope, _ = np.polyfit(np.log(late), np.log([least[n][name] for n in late]), 1)
        ms = {f"{n:,} jobs, ms": 1e3 * least[n][name] for n in GROWTH}
        rows.append({"scheduler": name, **ms, "exponent": float(slope)})
    return Figures(f"ms by jobs, load {LOAD}; n log n would have 1.10", rows)


def log(given: argparse.Namespace) -> Figures:
    """Time two years of SDSC-SP2 on nodes that jobs share."""
    speedups, on = generate_speedups(), machine_of(128 * 64, 64)
    rows = []
    for shape in ("p processes", "p nodes") if find(TRACE) is not None else ():
        jobs = assign_codes(load_workload(TRACE), speedups.codes, seed=0)
        if shape == "p nodes":  # of 64 cores each
            names = ("requested_processors", "allocated_processors")
            wide = {name: 64 * jobs.columns[name] for name in names}
            about: dict[str, Any] = {"header": jobs.header, "name": jobs.name}
            columns = {**jobs.columns, **wide}
            jobs = Workload.from_columns(columns, processors=on.processors, **about)
        runs = {
            name: partial(simulate, jobs, name, cluster=on, speedups=speedups)
            for name in ("fcfs", "easy", "easy-co", "filler-co", "popularity-co")
        }
        rows += rows_of(runs, given.repeat, what=shape)
    return Figures(f"{TRACE} on 128 nodes of 64 cores, by what a job of p processors is", rows)


SECTIONS = (nodes, slurm, books, limits, shared, growth, log)
