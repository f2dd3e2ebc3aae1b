"""What is played on which logs: by a plain simulator of RLScheduler's rules, and by ours.

Zhang, Dai, He, Bao and Xie (RLScheduler: an automated HPC batch job scheduler using reinforcement
learning, SC 2020) let a policy select one job whenever the queue has any. Nothing else is selected
until this job has started. It begins on a machine without jobs, and goes from event to event. Jobs
run for as long as they ran, whatever they requested. With backfilling, those start around the
selected job, in order of submission, that would end by their request before the selected one can
start. When that is, is told once, when the job is selected.
"""

from __future__ import annotations

import hashlib
import math
from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym import HpcgymError, Workload, load_workload, simulate
from hpcgym.agents.rlscheduler import PublishedNetwork, RLScheduler, Sight, chosen
from hpcgym.baselines import SCHEDULERS
from hpcgym.benchmarks.studies.harness import same_jobs
from hpcgym.study.evaluation.environments import act_out
from hpcgym.units import HOUR_S

# --- Their rules: a plain simulator of what is decided there when ---------------------------------

#: Of the rows in the queue, in order of submission, the time and the free processors: which row.
Select = Callable[[list[int], int, int], int]

#: Policy -> submission, processors, requested time -> score, the least first. Where a policy looks
#: at waiting, the jobs of a queue have all "waited" -1 - submission: there a job that waits has -1
#: in the place of its start. SAF is not among theirs.
SCORES: dict[str, Callable[[int, int, int], Any]] = {
    "fcfs": lambda submit, processors, requested: submit,
    "wfp3": lambda submit, processors, requested: -(((-1 - submit) / requested) ** 3) * processors,
    "unicef": lambda submit, processors, requested: (
        (1 + submit - 1e-15) / (math.log2(processors + 1e-15) * requested)
    ),
    "sjf": lambda submit, processors, requested: (requested, submit),
    "f1": lambda submit, processors, requested: (
        math.log10(max(requested, 0.1)) * processors + 870 * math.log10(max(submit, 0.1))
    ),
    "saf": lambda submit, processors, requested: (requested * processors, submit),
}


def least_score(jobs: Workload, policy: str) -> Select:
    """Return what selects the job of the least score, of :data:`SCORES`."""
    columns = jobs.submit_time, jobs.requested_processors, jobs.requested_time
    scores = [*map(SCORES[policy], *(column.tolist() for column in columns))]
    return lambda queue, time, free: min(queue, key=scores.__getitem__)


def by_network(
    network: PublishedNetwork, sight: Sight, chance: np.random.Generator | None
) -> Select:
    """Return what selects the job that a network takes: its best, or drawn by chance."""
    processors = sight.processors

    def select(queue: list[int], time: int, free: int) -> int:
        rows = np.array(queue)
        rows = rows[sight.visible(rows)]
        numbers = network(sight.features(rows, time, processors[rows] <= free))
        return int(rows[chosen(numbers, chance)])

    return select


def play(jobs: Workload, select: Select, backfill: bool) -> NDArray[np.int64]:
    """Return when each job starts under their rules, (n_jobs,) int64 [s]."""
    machine = _Machine(jobs)
    while machine.queue or machine.to_come < len(jobs):
        if not machine.queue:
            machine.go_on()
            continue
        selected = select(machine.queue, machine.time, machine.free)
        machine.wait_for(selected, backfill)
        machine.start(selected)
    return np.array(machine.starts, np.int64)


class _Machine:
    """A pool of processors, on which their rules go from event to event."""

    def __init__(self, jobs: Workload) -> None:
        self._submit, self._run = jobs.submit_time.tolist(), jobs.run_time.tolist()
        self._processors = jobs.requested_processors.tolist()
        self._requested = jobs.requested_time.tolist()
        self.starts = [-1] * len(jobs)
        self.free, self.time, self.to_come = jobs.processors, self._submit[0], 0
        self.queue: list[int] = []  # in order of submission
        self._running: list[int] = []  # the first to end first

    def _end(self, row: int) -> int:
        return int(self.starts[row] + self._run[row])

    def _expected_end(self, row: int) -> int:
        return int(self.starts[row] + self._requested[row])

    def go_on(self) -> None:
        """Go on by one event: a submission, or an end that is before it."""
        comes = self.to_come < len(self._submit)
        first_end = self._end(self._running[0]) if self._running else math.inf
        if comes and self._submit[self.to_come] <= first_end:
            self.time = max(self.time, self._submit[self.to_come])
            self.queue.append(self.to_come)
            self.to_come += 1
        else:
            row = self._running.pop(0)
            self.time = max(self.time, self._end(row))
            self.free += self._processors[row]

    def start(self, row: int) -> None:
        """Start a job of the queue."""
        self.starts[row] = self.time
        self.free -= self._processors[row]
        self.queue.remove(row)
        insort(self._running, row, key=self._end)

    def _shadow(self, row: int) -> int:
        """Return when a job that does not fit will, by requested times."""
        free = self.free
        # they sort the list itself, so that jobs which end at once end in this order
        self._running.sort(key=self._expected_end)
        for other in self._running:
            free += self._processors[other]
            if free >= self._processors[row]:
                break
        else:
            raise HpcgymError(f"job {row} wants more processors than the machine has")
        shadow = self._expected_end(other)
        self._running.sort(key=self._end)
        return shadow

    def wait_for(self, row: int, backfill: bool) -> None:
        """Let time pass until a selected job fits; others may end before it is expected to."""
        shadow = self._shadow(row) if backfill and self._processors[row] > self.free else 0
        while self._processors[row] > self.free:
            if backfill:
                for other in list(self.queue):
                    ends = self.time + self._requested[other]
                    if ends < shadow and self._processors[other] <= self.free:
                        self.start(other)
            self.go_on()


#: Jobs of a sequence, and how many sequences a table of theirs is of.
LENGTH, NUMBER = 1024, 10

#: Jobs of a part of a log: from the first their sequences are drawn, later ones are for comparison.
PART, PARTS = 10_000, 5


class Log(NamedTuple):
    """A log of their table: what it is loaded from, and the folder of its network in theirs."""

    source: str
    network: str


LOGS = {
    "Lublin-1": Log("lublin_256", "lublin256"),
    "SDSC-SP2": Log("SDSC-SP2", "sdsc_sp2"),
    "HPC2N": Log("HPC2N", "hpc2n"),
    "Lublin-2": Log("lublin_256_new2", "Lublin256new"),
}

#: What is compared: scores of theirs, and schedulers of ours that are simulated.
THEIRS = ("fcfs", "sjf", "f1", "saf")
OURS = ("easy", "easy-sjbf", "sjf", "f1", "saf", "saf-typical-80h")

#: The network's best action, and actions drawn; by how many seeds these are.
BEST, DRAWN = "network", "network, drawn"
SEEDS = 3


# --- Logs as they read them, and parts of them ----------------------------------------------------


def load_log(source: str, never_ran_s: int = 10) -> Workload:
    """Return a log as they read it: what never ran, with a run time of -1, is a job of 10 s.

    A job wants the greater of what it requested and had; where no time is requested it is what it
    ran. What ran for 0 s is left out.
    """
    jobs = load_workload(source, "none" if ":" not in source else "default")
    run, requested = jobs.run_time, jobs.requested_time
    jobs = jobs.with_columns(
        run_time=np.where(run < 0, never_ran_s, run),
        requested_processors=np.maximum(jobs.requested_processors, jobs.allocated_processors),
        requested_time=np.where(requested < 0, run, requested),
    )
    return jobs.take(jobs.run_time > 0, name=jobs.name)


#: Reads a log as they do, without what never ran.
load_ran = partial(load_log, never_ran_s=0)


class Setting(NamedTuple):
    """By which rules a log is played.

    Attributes
    ----------
    load : reads it.
    backfill : whether their rules backfill; None: by ours, in JobSelection.
    """

    load: Callable[[str], Workload]
    backfill: bool | None


SETTINGS = {
    "theirs": Setting(load_log, False),
    "theirs, backfilling": Setting(load_log, True),
    "what ran": Setting(load_ran, False),
    "what ran, backfilling": Setting(load_ran, True),
    "ours": Setting(load_workload, None),
}


def first_rows(jobs: int) -> list[int]:
    """Return where sequences begin: what their environment draws among so many jobs.

    Gymnasium's predecessor made a seed of numpy's old generator of the first eight bytes of the
    SHA-512 of a number, here 1.
    """
    seed = int.from_bytes(hashlib.sha512(b"1").digest()[:8], "little")
    drawn = np.random.RandomState([seed % 2**32, seed >> 32])
    return [int(drawn.randint(LENGTH, jobs - LENGTH - 1)) for _ in range(NUMBER)]


def parts_of(jobs: int) -> dict[str, list[tuple[int, int]]]:
    """Return the parts of a log of so many jobs: name -> sequences, (first row, jobs).

    The first part are their sequences; those of later ones are drawn in the same way.
    """
    parts = {}
    for begin in range(0, min(jobs, PART * PARTS), PART):
        if begin == 0 or jobs - begin >= PART:
            rows = first_rows(min(jobs - begin, PART))
            name = f"{begin // 1000} to {(begin + PART) // 1000} thousand"
            parts[name] = [(begin + row, LENGTH) for row in rows]
    return {**parts, WHOLE: [(0, jobs)]}


WHOLE = "whole log"


# --- What is played -------------------------------------------------------------------------------


#: Of a sequence, (first row, jobs): the jobs, when they start and how long they run.
Played = Iterator[tuple[Workload, NDArray[np.int64], NDArray[np.int64]]]


def play_part(task: Mapping[str, Any]) -> dict[str, list[float]]:
    """Let one policy play a part of a log.

    Parameters
    ----------
    task : "source" of a log and "jobs_sha256", its hash; "sequences", pairs of the first row and a
        number of jobs; "setting", of :data:`SETTINGS`; "policy", and for a network "folder" and
        "seed", None for its best action.

    Returns
    -------
    "mean_bsld", "mean_wait_h", "max_wait_h" : one value for each sequence.

    Raises
    ------
    HpcgymError : the log cannot be read here, or has other jobs; or of the network.
    """
    load, backfill = SETTINGS[task["setting"]]
    log = same_jobs(load, task["jobs_sha256"], task["source"])
    played = _by_ours(log, task) if backfill is None else _by_theirs(log, task, backfill)
    metrics: dict[str, list[float]] = {"mean_bsld": [], "mean_wait_h": [], "max_wait_h": []}
    for jobs, start, run in played:
        wait = start - jobs.submit_time
        metrics["mean_bsld"].append(float(np.maximum((wait + run) / np.maximum(run, 10), 1).mean()))
        metrics["mean_wait_h"].append(float(wait.mean()) / HOUR_S)
        metrics["max_wait_h"].append(float(wait.max()) / HOUR_S)
    return metrics


def _by_theirs(log: Workload, task: Mapping[str, Any], backfill: bool) -> Played:
    """Play by their rules."""
    network = None if task["policy"] in SCORES else PublishedNetwork(task["folder"])
    for first, number in task["sequences"]:
        jobs = log.take(slice(first, first + number))
        if network is None:
            select = least_score(jobs, task["policy"])
        else:
            seed = task["seed"]
            chance = None if seed is None else np.random.default_rng([seed, first])
            select = by_network(network, Sight(jobs, log), chance)
        yield jobs, play(jobs, select, backfill), jobs.run_time


def _by_ours(log: Workload, task: Mapping[str, Any]) -> Played:
    """Play under EASY, from an empty machine; a network acts in JobSelection.

    In the environment, and by all schedulers but EASY, the shortest request is backfilled first.
    """
    env: Any = None
    policy: Any = None
    if task["policy"] not in OURS:
        policy = RLScheduler(task["folder"], task["seed"] is not None, task["seed"] or 0)
        env = gymnasium.make(
            policy.env_id, workload=log, disable_env_checker=True, episodes="windows",
            jobs=task["sequences"][0][1], start="empty", warmup=None, arrivals="stop", horizon=None,
            **policy.env_options,
        )  # fmt: skip
    for first, number in task["sequences"]:
        if env is None:
            jobs = log.take(slice(first, first + number))
            result = simulate(jobs, SCHEDULERS[task["policy"]])
        else:
            act_out(policy, env, *env.reset(seed=0, options={"start": first, "jobs": number}))
            result = env.unwrapped.result()
        yield result.workload, result.start, result.run_time
