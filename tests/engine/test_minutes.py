"""Quotas of what running jobs still may use, as another simulator has them: second by second.

It shares no code with the library. At each second it looks whether jobs come or end then, or one
that was barred is barred no more: then there is a pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from same_results import agreed

from hpcgym.workload.model import Workload

BACKFILL = ("none", "easy")
JOBS = 12


class Seconds:
    """Jobs: submit, run, requested, processors, gpus, user; rules: of a user, of what, most."""

    def __init__(
        self, jobs: list[tuple[int, ...]], processors: int, rules: list[Any], easy: bool
    ) -> None:
        self.jobs, self.processors, self.rules, self.easy = jobs, processors, rules, easy
        self.start = [-1] * len(jobs)
        self.barred_jobs: set[int] = set()

    def runs(self, job: int, now: int) -> bool:
        return 0 <= self.start[job] <= now < self.start[job] + self.jobs[job][1]

    def amount(self, job: int, of: str) -> int:
        return {"processor": self.jobs[job][3], "job": 1, "gpu": self.jobs[job][4]}[of]

    def barred(self, job: int, now: int) -> bool:
        for each_user, of, minutes in self.rules:
            own = self.amount(job, of) * self.jobs[job][2]
            held = sum(
                self.amount(other, of) * (self.start[other] + self.jobs[other][2] - now)
                for other in range(len(self.jobs))
                if self.runs(other, now)
                and (not each_user or self.jobs[other][5] == self.jobs[job][5])
            )
            if own and held + own > 60 * minutes:
                return True
        return False

    def free(self, now: int) -> int:
        return self.processors - sum(
            job[3] for row, job in enumerate(self.jobs) if self.runs(row, now)
        )

    def do_pass(self, now: int) -> None:
        head = None
        shadow = extra = -1
        for row, job in enumerate(self.jobs):
            if job[0] > now or self.start[row] >= 0 or self.barred(row, now):
                continue
            if head is None and job[3] <= self.free(now):
                self.start[row] = now
            elif head is None:
                if not self.easy:
                    return
                head, (shadow, extra) = row, self.shadow(job, now)
            elif job[3] <= self.free(now) and (now + job[2] <= shadow or job[3] <= extra):
                extra -= job[3] if now + job[2] > shadow else 0
                self.start[row] = now

    def shadow(self, head: tuple[int, ...], now: int) -> tuple[int, int]:
        ends = {
            row: self.start[row] + self.jobs[row][2]
            for row in range(len(self.jobs))
            if self.runs(row, now)
        }
        for time in sorted(ends.values()):
            free = self.free(now) + sum(self.jobs[row][3] for row in ends if ends[row] <= time)
            if free >= head[3]:
                return time, free - head[3]
        raise AssertionError

    def has_pass(self, now: int) -> bool:
        starts = zip(self.start, self.jobs, strict=True)
        ends = {start + job[1] for start, job in starts if start >= 0}
        events = ends | {job[0] for job in self.jobs}
        return now in events or not all(self.barred(row, now) for row in self.barred_jobs)

    def run(self) -> list[int]:
        now = 0
        while min(self.start) < 0:
            if self.has_pass(now):
                self.do_pass(now)
                waiting = {row for row, job in enumerate(self.jobs) if job[0] <= now}
                waiting -= {row for row, start in enumerate(self.start) if start >= 0}
                self.barred_jobs = {row for row in waiting if self.barred(row, now)}
            now += 1
        return self.start


@pytest.mark.parametrize("backfill", BACKFILL)
@pytest.mark.parametrize("seed", range(200))
def test_time_alone_lets_jobs_start(seed: int, backfill: str) -> None:
    rng = np.random.default_rng([seed, BACKFILL.index(backfill)])
    requested = rng.integers(1, 200, JOBS)
    columns = {
        "submit": np.sort(rng.integers(0, 150, JOBS)),
        "run": np.maximum(requested * rng.choice([0.2, 0.7, 1.0], JOBS), 1).astype(int),
        "requested": requested,
        "wide": rng.integers(1, 5, JOBS),
        "gpus": rng.integers(0, 3, JOBS),
        "user": rng.integers(1, 4, JOBS),
    }
    names = ("submit", "run", "requested", "wide", "gpus", "user")
    jobs = list(zip(*(columns[name].tolist() for name in names), strict=True))
    rules = []
    for of, column in rng.permutation([["processor", "wide"], ["gpu", "gpus"], ["job", ""]])[:2]:
        asked = requested * (columns[column] if column else 1)
        least = max(-(-int(asked.max()) // 60), 1)
        rules.append((bool(rng.integers(2)), str(of), least + int(rng.integers(0, least + 2))))
    texts = [f"{'user' if each else 'all'}:{of}-minutes={most}" for each, of, most in rules]
    workload = few_jobs(
        8, *(columns[name] for name in ("submit", "run", "wide", "requested")),
        units=np.ones(JOBS, int), user_id=columns["user"],
        per_unit={"core": columns["wide"], "gpu": columns["gpus"]},
    )  # fmt: skip
    expected = Seconds(jobs, 8, rules, backfill == "easy").run()
    result = agreed(workload, True, backfill=backfill, quota="; ".join(texts))
    assert result.start.tolist() == expected


#: Job 0 may use 3 x 1200 s from 0 s on; of 4200 s in all, job 1 is to have 2403 s: once 601 s of
#: job 0 count.
LONG: dict[str, Any] = {"submit": [0, 1, 2], "run": [1200, 10, 10], "requested": [1200, 2403, 10]}
QUOTA = "all:processor-minutes=70"


@pytest.mark.parametrize(
    ("backfill", "start"),
    [
        ("easy", 601),
        ("slurm:bf_interval=-1+calc_period=1", 660),  # at multiples of 60 s all jobs are looked at
        ("slurm:calc_period=1", 630),  # a pass each 30 s
        ("slurm", 900),  # time counts each 300 s
        ("slurm:calc_period=600", 1200),
        ("slurm:calc_period=0", 1200),  # as under priority/basic: when job 0 ends
    ],
)
def test_time_counts_when_slurm_counts_it(backfill: str, start: int) -> None:
    jobs = long_jobs()
    result = agreed(jobs, True, backfill=backfill, quota=QUOTA)
    assert result.start.tolist() == [0, start, 2]


def long_jobs() -> Workload:
    return few_jobs(9, *(LONG[name] for name in ("submit", "run")), [3, 1, 1], LONG["requested"])
