"""RLScheduler's published table beside what its rules and ours give on the same sequences.

    python benchmarks/rlscheduler.py [--agent saf --agent agent.pt] [--rows 10]

Zhang, Dai, He, Bao and Xie (RLScheduler: an automated HPC batch job scheduler using reinforcement
learning, SC 2020) compare policies by the mean bounded slowdown over ten sequences of 1,024 jobs,
each from an empty machine, with and without backfilling. Their table, as the repository of the
paper has it (DIR-LAB/deep-batch-scheduler), is here beside three others of our own:

- *their rules*: a plain simulator of what is decided there when, on the sequences that seed 1 of
  their environment draws. It is to meet the published values of what does not learn.
- *JobSelection*: policies act in that environment, with the rules that are nearest to theirs.
- *generated*: the same on a log of our generator, for whoever has none of theirs.

Agents that act in JobSelection are rows of their own, without a published value.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pandas as pd

import hpcgym
from hpcgym import HpcgymError, Workload, load_workload
from hpcgym.baselines.policies import find_baseline
from hpcgym.study.evaluation.policies import find_policy
from hpcgym.workload.archive import find, is_trace

#: Jobs of a sequence, and how many sequences the table is of.
LENGTH, NUMBER = 1024, 10

POLICIES = ("fcfs", "wfp3", "unicef", "sjf", "f1")

#: log -> (how to load it, jobs from its beginning that sequences are drawn from; None: all).
LOGS: dict[str, tuple[str, int | None]] = {
    "Lublin-1": ("lublin_256", None),
    "SDSC-SP2": ("SDSC-SP2", 10_000),
    "HPC2N": ("HPC2N", 10_000),
    "Lublin-2": ("lublin_256_new2", None),
}
GENERATED = "lublin:jobs=10000,processors=256,seed=0"

#: (log, backfilling) -> the published values of POLICIES, and of RLScheduler itself.
PUBLISHED: dict[tuple[str, bool], tuple[float, ...]] = {
    ("Lublin-1", False): (7273.77, 19753.53, 22274.74, 277.35, 258.37, 254.67),
    ("SDSC-SP2", False): (1727.54, 3000.88, 1848.45, 2680.55, 1232.06, 466.44),
    ("HPC2N", False): (297.18, 426.99, 609.77, 157.71, 118.01, 117.01),
    ("Lublin-2", False): (7842.47, 9523.18, 11265.31, 787.89, 698.34, 724.51),
    ("Lublin-1", True): (235.82, 133.87, 307.23, 73.31, 75.07, 58.64),
    ("SDSC-SP2", True): (1595.12, 1083.12, 548.01, 2167.84, 1098.22, 397.82),
    ("HPC2N", True): (127.38, 97.39, 175.12, 122.04, 71.95, 86.14),
    ("Lublin-2", True): (247.61, 318.35, 379.59, 91.99, 148.25, 118.79),
}


class Job(NamedTuple):
    """A job as their rules see it; times in seconds of the log's clock."""

    submit: int
    number: int
    run: int
    processors: int
    requested: int


#: Least first. Where a policy looks at waiting, the jobs of a queue have all "waited" -1 - submit:
#: there a job that waits has -1 in the place of its start.
SCORES: dict[str, Callable[[Job], Any]] = {
    "fcfs": lambda job: job.submit,
    "wfp3": lambda job: -(((-1 - job.submit) / job.requested) ** 3) * job.processors,
    "unicef": lambda job: (
        (1 + job.submit - 1e-15) / (math.log2(job.processors + 1e-15) * job.requested)
    ),
    "sjf": lambda job: (job.requested, job.submit),
    "f1": lambda job: (
        math.log10(max(job.requested, 0.1)) * job.processors
        + 870 * math.log10(max(job.submit, 0.1))
    ),
}


class _Machine:
    """A pool of processors, on which their rules go from event to event."""

    def __init__(self, jobs: Sequence[Job], processors: int) -> None:
        self.coming, self.free, self.time = list(reversed(jobs)), processors, jobs[0].submit
        self.queue: list[Job] = []  # in order of submission
        self.running: list[tuple[int, int, int, int]] = []  # end, number, processors, expected end
        self.slowdowns: list[float] = []

    def go_on(self) -> None:
        """Go on by one event: a submission, or an end that is before it."""
        if self.coming and (not self.running or self.coming[-1].submit <= self.running[0][0]):
            job = self.coming.pop()
            self.time = max(self.time, job.submit)
            self.queue.append(job)
        else:
            end, _, processors, _ = heapq.heappop(self.running)
            self.time = max(self.time, end)
            self.free += processors

    def start(self, job: Job) -> None:
        """Start a job of the queue."""
        response = self.time - job.submit + job.run
        self.slowdowns.append(max(response / max(job.run, 10), 1.0))
        ends = self.time + job.run, job.number, job.processors, self.time + job.requested
        heapq.heappush(self.running, ends)
        self.free -= job.processors
        self.queue.remove(job)

    def shadow(self, job: Job) -> int:
        """Return when a job that does not fit will, by requested times."""
        free = self.free
        for _, _, processors, expected in sorted(self.running, key=lambda one: one[3]):
            free += processors
            if free >= job.processors:
                return expected
        raise HpcgymError(f"a job wants {job.processors} processors, more than the machine has")

    def wait_for(self, job: Job, backfill: bool) -> None:
        """Let time pass until a selected job fits; others may end before it is expected to."""
        shadow = self.shadow(job) if job.processors > self.free else 0
        while job.processors > self.free:
            if backfill:
                for other in list(self.queue):
                    ends = self.time + other.requested
                    if ends < shadow and other.processors <= self.free:
                        self.start(other)
            self.go_on()


def by_their_rules(
    jobs: Sequence[Job], processors: int, score: Callable[[Job], Any], backfill: bool
) -> float:
    """Return the mean bounded slowdown of a sequence under their rules.

    The job of the least score is selected whenever the queue has any, and nothing else is until it
    has started. Jobs run for as long as they ran, whatever they requested.
    """
    machine = _Machine(jobs, processors)
    while machine.queue or machine.coming:
        if not machine.queue:
            machine.go_on()
            continue
        selected = min(machine.queue, key=score)
        machine.wait_for(selected, backfill)
        machine.start(selected)
    return float(np.mean(machine.slowdowns))


def first_rows(jobs: int, number: int = NUMBER, seed: int = 1) -> list[int]:
    """Return where sequences begin: what their environment draws among so many jobs.

    Gymnasium's predecessor made a seed of numpy's old generator of the first eight bytes of the
    SHA-512 of a number.
    """
    told = int.from_bytes(hashlib.sha512(str(seed).encode()).digest()[:8], "little")
    drawn = np.random.RandomState([told % 2**32, told >> 32])
    return [int(drawn.randint(LENGTH, jobs - LENGTH - 1)) for _ in range(number)]


def loaded(source: str, first: int | None = None) -> Workload:
    """Return a log as they read it.

    Jobs that did not run are left out. A job wants the greater of what it requested and had; where
    no time is requested it is what it ran.
    """
    if is_trace(source) and find(source) is None:
        raise HpcgymError(f"it is not on this machine: hpcgym traces fetch {source}")
    jobs = load_workload(source, "none" if ":" not in source else "default")
    run, requested = jobs.run_time, jobs.requested_time
    jobs = jobs.with_columns(
        run_time=np.where(run < 0, 10, run),
        requested_processors=np.maximum(jobs.requested_processors, jobs.allocated_processors),
        requested_time=np.where(requested < 0, run, requested),
    )
    return jobs.take(jobs.run_time > 0, name=jobs.name).take(slice(0, first), name=jobs.name)


def in_environment(jobs: Workload, policy: Any, rows: Sequence[int], backfill: bool) -> float:
    """Return the mean over sequences of the mean bounded slowdown of what acts in JobSelection."""
    rules = {
        "backfill": "until-shadow" if backfill else "none",
        "reservation": "kept",
        "jobs": LENGTH,
    }
    jobs = jobs.with_columns(requested_time=np.maximum(jobs.requested_time, 1))
    window = {} if hasattr(policy, "env_options") else {"window": LENGTH}
    options = {**getattr(policy, "env_options", {}), **window, **rules}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is out of date", DeprecationWarning)
        env = gymnasium.make(
            "hpcgym/JobSelection-v0", workload=jobs, disable_env_checker=True, **options
        )
    means = []
    for row in rows:
        observation, info = env.reset(seed=0, options={"start": row, "jobs": LENGTH})
        if hasattr(policy, "begin"):
            policy.begin(env)
        over = False
        while not over:
            observation, _, terminated, truncated, info = env.step(policy.act(observation, info))
            over = terminated or truncated
        means.append(info["metrics"]["mean_bsld"])
    return float(np.mean(means))


def compared(
    name: str, jobs: Workload, agents: Sequence[str] = (), number: int = NUMBER
) -> pd.DataFrame:
    """Return a row a policy and backfilling: published, by their rules, in JobSelection."""
    columns = (
        jobs.submit_time, np.arange(len(jobs)), jobs.run_time, jobs.requested_processors,
        jobs.requested_time,
    )  # fmt: skip
    listed = [Job(*map(int, row)) for row in zip(*columns, strict=True)]
    begins = first_rows(len(jobs), number)
    found = []
    for backfill in (False, True):
        published = dict(zip((*POLICIES, "RLScheduler"), PUBLISHED.get((name, backfill), ()),
                             strict=False))  # fmt: skip
        whole = number == NUMBER
        for policy in (*POLICIES, "RLScheduler", *agents):
            row: dict[str, Any] = {"backfill": "yes" if backfill else "no", "policy": policy}
            row["published"] = published.get(policy, np.nan) if whole else np.nan
            row["their rules"] = row["JobSelection"] = np.nan
            if policy in POLICIES:
                means = [
                    by_their_rules(
                        listed[b : b + LENGTH], jobs.processors, SCORES[policy], backfill
                    )
                    for b in begins
                ]
                row["their rules"] = float(np.mean(means))
            if policy != "RLScheduler":
                acts = find_policy(policy) if policy in agents else find_baseline(policy)
                acts = acts if hasattr(acts, "act") else find_baseline(policy)
                row["JobSelection"] = in_environment(jobs, acts, begins, backfill)
            if not np.isnan([row[c] for c in ("published", "their rules", "JobSelection")]).all():
                found.append(row)
    return pd.DataFrame(found)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", action="append", default=[], help="what acts in JobSelection")
    parser.add_argument("--rows", type=int, default=NUMBER, help="sequences of each log")
    given = parser.parse_args()
    head = f"hpcgym {hpcgym.__version__}: mean bounded slowdown, {given.rows} x {LENGTH} jobs"
    print(head, flush=True)
    for name, (source, first) in LOGS.items():
        try:
            jobs = loaded(source, first)
        except (HpcgymError, OSError) as error:
            print(f"\n{name} is left out: {error}")
            continue
        table = compared(name, jobs, given.agent, given.rows).round(2).to_string()
        print(f"\n{name}\n{table}", flush=True)
    jobs = loaded(GENERATED)
    print(f"\ngenerated, {GENERATED}")
    print(compared("generated", jobs, given.agent, given.rows).round(2).to_string())


if __name__ == "__main__":
    main()
