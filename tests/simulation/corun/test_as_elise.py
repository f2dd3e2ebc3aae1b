"""The rules of ELiSE as readings: starts are those of a short, slow emulation of its schedulers.

The emulation is of what the paper of ELiSE says (JSSPP 2025, sections 3.3 to 3.6 and algorithm 2)
and, where that is silent, of what its program does: jobs take nodes in use first, by number; a job
is never stopped; the job that came first has a reservation by requested times alone; of the hundred
behind it those start that are over by then, as requested.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

import hpcgym
from hpcgym.benchmarks.coscheduling import runs
from hpcgym.machine.speedups import Heatmap, generate_speedups
from hpcgym.workload import Code, Workload, generate_code_jobs

NODES, CORES, DEPTH = 30, 48, 100


@dataclass(eq=False)
class Job:
    number: int  # from 1
    code: int
    processes: int
    left_s: float  # of its run time, compact
    requested_s: float
    speed: float = 1.0
    start_s: float = -1.0
    nodes: list[int] = field(default_factory=list)


class Emulation:
    """ELiSE for jobs that all come at once; ``shares``: on half nodes, else on whole ones."""

    def __init__(self, jobs: list[Job], speedups: Heatmap, shares: bool, fills: bool) -> None:
        self.speedups, self.shares, self.fills = speedups, shares, fills
        self.waiting, self.running, self.now_s = list(jobs), list[Job](), 0.0
        self.each = CORES // 2 if shares else CORES  # cores that a job has on a node

    def on(self, node: int) -> list[Job]:
        return [job for job in self.running if node in job.nodes]

    def with_room(self) -> list[int]:
        most = 2 if self.shares else 1
        return [node for node in range(NODES) if len(self.on(node)) < most]

    def needs(self, job: Job) -> int:
        return math.ceil(job.processes / self.each)

    def starts(self, job: Job) -> bool:
        nodes = sorted(self.with_room(), key=lambda node: not self.on(node))
        if len(nodes) < self.needs(job):
            return False
        job.nodes, job.start_s = nodes[: self.needs(job)], self.now_s
        self.waiting.remove(job)
        self.running.append(job)
        return True

    def value(self) -> Callable[[Job], float]:
        """Algorithm 2 of the paper, by the cores that are idle as a pass begins."""
        idle = NODES * CORES - sum(len(job.nodes) * self.each for job in self.running)
        number = len(self.waiting)

        def of(job: Job) -> float:
            fit = 1.0
            if idle > 0:
                fit = 1 - (idle - job.processes) / idle if job.processes <= idle else -1.0
            return fit / (job.number / number)

        return of

    def deploy(self) -> None:
        order = sorted(self.waiting, key=self.value(), reverse=True) if self.fills else self.waiting
        for job in list(order):
            if not self.starts(job):
                return

    def backfill(self) -> None:
        first, *others = self.waiting
        room = set(self.with_room())
        over_s = -math.inf
        for job in sorted(self.running, key=lambda job: job.start_s + job.requested_s):
            room |= set(job.nodes)
            over_s = job.start_s + job.requested_s
            if len(room) >= self.needs(first):
                break
        for job in others[:DEPTH]:
            if self.now_s + job.requested_s <= over_s:
                self.starts(job)

    def adjust_speeds(self) -> None:
        for job in self.running if self.shares else []:
            beside = {
                other.code for node in job.nodes for other in self.on(node) if other is not job
            }
            row = self.speedups.speedup[job.code]
            job.speed = min((float(row[code]) for code in beside), default=float(row.max()))

    def starts_s(self) -> dict[int, float]:
        """Simulate to the end; return the start of each job by its number."""
        starts: dict[int, float] = {}
        while self.waiting or self.running:
            if self.waiting:
                self.deploy()
            if len(self.waiting) > 1:
                self.backfill()
            self.adjust_speeds()
            step_s = min(job.left_s / job.speed for job in self.running)
            self.now_s += step_s
            for job in self.running:
                job.left_s -= step_s * job.speed
            starts |= {job.number: job.start_s for job in self.running}
            self.running = [job for job in self.running if job.left_s > 1e-9]
        return starts


def workload_of(speedups: Heatmap, counts: tuple[int, ...], jobs: int, seed: int) -> Workload:
    low, high = np.log(runs.RUN_S)
    times = np.exp(np.random.default_rng(seed).uniform(low, high, len(speedups)))
    codes = [
        Code(name, count, round(time))
        for name, time in zip(speedups.codes, times.tolist(), strict=True)
        for count in counts
    ]
    return generate_code_jobs(codes, jobs, processors=NODES * CORES, seed=seed, mix="random")


@pytest.mark.parametrize("name", ["easy", "easy-co", "filler-co"])
@pytest.mark.parametrize(("counts", "jobs", "least"), [((256,), 60, 60), ((64, 256, 512), 100, 95)])
def test_starts_are_those_of_elise(
    name: str, counts: tuple[int, ...], jobs: int, least: int
) -> None:
    for seed in range(2):
        speedups = generate_speedups(8, 1.1, 0.15, seed)
        workload = workload_of(speedups, counts, jobs, seed)
        scheduler = runs.scheduler_of(name, vars(runs.READINGS[runs.MAIN]), NODES * CORES)
        result = hpcgym.simulate(workload, scheduler, cluster=f"{NODES}x2x24", speedups=speedups)
        hpcgym.validate_schedule(result)
        columns = zip(
            workload.job_number.tolist(),
            [speedups.codes.index(code) for code in result.jobs["code"]],
            workload.requested_processors.tolist(),
            workload.run_time.tolist(),
            workload.requested_time.tolist(),
            strict=True,
        )
        elise = Emulation(
            [Job(*of) for of in columns], speedups, name != "easy", name == "filler-co"
        ).starts_s()
        expected = [elise[number] for number in workload.job_number.tolist()]
        same = np.abs(result.start - np.array(expected)) < 1e-3
        assert int(same.sum()) >= least
        if name == "filler-co" and len(counts) > 1:  # the rules are not those of EASY
            assert len({*workload.requested_processors.tolist()}) > 1
            assert (np.diff(expected) < 0).any()
