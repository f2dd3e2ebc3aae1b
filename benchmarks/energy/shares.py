"""Chapter 6 of Glesser 2016: users who save or waste energy, in traces and in Light-ESP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import Cluster, Result, Scheduler, Workload, simulate
from hpcgym.benchmarks.studies.harness import load_jobs, readings, same_jobs
from hpcgym.benchmarks.studies.items import published_values
from hpcgym.machine import find_cluster
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.whole_nodes import node_power
from hpcgym.units import WEEK_S
from hpcgym.workload.generators.light_esp import WORK_S, light_esp

# --- Table 6.1 ------------------------------------------------------------------------------------

#: What the thesis calls the policies -> what they are called here.
POLICIES = {"efs": "energy-fairshare", "fs+efs": "fs+efs"}
BASELINE = "fairshare"

#: What a user needs of the energy of others.
EFFICIENCIES = {"green": 0.7, "gluttonous": 1.3}
#: Of a late reading: FS over FS as logged, where nobody gains or loses. What chance alone does.
CHANCE = ("fs", "nobody differs")

USERS = 20  # those who submit most
QUICK_JOBS, QUICK_USERS = 3_000, 4
USUAL_W = 100.0


@dataclass(frozen=True)
class Reading:
    """One way to read how the thesis simulates.

    Attributes
    ----------
    meaning : in words.
    passes, half_life_s : rules, as in :class:`Scheduler` and :class:`FairShare`.
    order : in which jobs are backfilled; None: that of the queue.
    recipe : how the trace is cleaned.
    late_seed : of up to a minute by which each job comes later; None: as logged.
    """

    meaning: str
    passes: str = "per-event"
    order: str | None = None
    half_life_s: float = WEEK_S
    recipe: str = "glesser"
    late_seed: int | None = None

    def scheduler(self, policy: str) -> Scheduler:
        """Return the scheduler of a policy."""
        return Scheduler(
            policy,
            backfill_order=policy if self.order is None else self.order,
            passes=self.passes,
            fair_share=FairShare(self.half_life_s),
        )


TEXT = "as written"
READINGS = readings(Reading, __file__, "shares.toml")
#: Logs with more jobs than that are simulated as written and once later, to see what chance does.
MANY_JOBS, FEW_READINGS = 200_000, 2


def readings_of(workload: Workload) -> list[str]:
    """Return the readings that a log is simulated under."""
    return list(READINGS)[: FEW_READINGS if len(workload) > MANY_JOBS else None]


def load_trace(source: str, reading: Reading, jobs: int | None) -> Workload:
    """Return a trace as a reading has it; only the first ``jobs`` of them, None: all."""
    workload = load_jobs(source, clean=reading.recipe)
    if jobs is not None and jobs < len(workload):
        workload = workload.take(slice(0, jobs), name=f"{workload.name}, first {jobs:,} jobs")
    if reading.late_seed is not None:
        random = np.random.default_rng(reading.late_seed)
        later = workload.submit_time + random.integers(0, 61, len(workload))
        workload = workload.with_columns(submit_time=later)
    return workload


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """Let one user after another save energy or waste it.

    Parameters
    ----------
    task : "source" of a trace; "reading", a name of READINGS; "jobs" (None: all); "users", how
        many; "jobs_sha256" of the jobs as they are cleaned for it.

    Returns
    -------
    outcome : "jobs"; "users", their numbers, those who submit most first; "baseline", their mean
        stretch there; "rows", for each policy and efficiency two lists by user: "by_means", the
        mean stretch over that in the baseline, and "by_jobs", the mean over jobs of this ratio. A
        late reading has a row of CHANCE too.

    Raises
    ------
    HpcgymError : the trace cannot be read here, or has other jobs.
    """
    reading = READINGS[task["reading"]]
    workload = same_jobs(load_trace, task["jobs_sha256"], task["source"], reading, task["jobs"])
    users, number = np.unique(workload.user_id, return_counts=True)
    most = users[np.argsort(-number, kind="stable")][: task["users"]]
    baseline = stretches(simulate(workload, reading.scheduler(BASELINE)))
    rows = []
    for name, policy in POLICIES.items():
        scheduler = reading.scheduler(policy)
        for efficiency, factor in EFFICIENCIES.items():
            ratios = []
            for user in most:
                ours = _of_saver(workload, scheduler, user, factor)
                ratios.append(_ratios(ours, baseline, workload.user_id == user))
            rows.append(_row(name, efficiency, ratios))
    if reading.late_seed is not None:
        logged = load_trace(task["source"], READINGS[TEXT], task["jobs"])
        before = stretches(simulate(logged, reading.scheduler(BASELINE)))
        # jobs that come later may come in another order
        late, then = np.argsort(workload.job_number), np.argsort(logged.job_number)
        user_id, ours = workload.user_id[late], baseline[late]
        rows.append(_row(*CHANCE, [_ratios(ours, before[then], user_id == u) for u in most]))
    means = [float(baseline[workload.user_id == user].mean()) for user in most]
    return {"jobs": len(workload), "users": most.tolist(), "baseline": means, "rows": rows}


def _of_saver(
    workload: Workload, scheduler: Scheduler, user: int, factor: float
) -> NDArray[np.float64]:
    """Return the stretches where a user needs so much of the energy of others."""
    watts = np.where(workload.user_id == user, factor * USUAL_W, USUAL_W)
    machine = Cluster(workload.processors, busy_power_w=USUAL_W)
    return stretches(simulate(workload.with_columns(power_w=watts), scheduler, cluster=machine))


def _ratios(
    ours: NDArray[np.float64], before: NDArray[np.float64], mine: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return a user's stretch over that before: of the means, and the mean over jobs."""
    return (
        float(ours[mine].mean() / before[mine].mean()),
        float((ours[mine] / before[mine]).mean()),
    )


def _row(policy: str, efficiency: str, ratios: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return a row of an outcome."""
    by_means, by_jobs = np.transpose(ratios).tolist()
    row = {"policy": policy, "efficiency": efficiency}
    return {**row, "by_means": by_means, "by_jobs": by_jobs}


def stretches(result: Result) -> NDArray[np.float64]:
    """Return (wait + run time) / run time of each job."""
    return (result.wait + result.run_time) / result.run_time


# --- Section 6.3.2: three users of Light-ESP on a machine of Curie's size -------------------------

#: What the thesis calls the policies -> what they are called here.
ESP_POLICIES = {"FIFO": "fcfs", "FS": "fairshare", "EFS": "energy-fairshare", "FS_EFS": "fs+efs"}
PROCESSORS = 80_640
REPEAT = 4
ESP_USERS = (1, 2, 3)
SEEDS, QUICK_SEEDS = 200, 3
#: How fast jobs come, which the thesis does not tell: as fast as they can run, or faster.
LOADS = (1.0, 1.2)


#: What the three users differ in: how names of columns begin -> the spread of their efficiency, and
#: whether their jobs differ.
EXPERIMENTS = {"": (0.3, 0), "other_": (0.0, 1)}


def run_esp(load: float, seeds: int) -> pd.DataFrame:
    """Return what becomes of jobs in that many orders of them, a row for each.

    The columns "EFS_1" and the like are mean stretches of a user, "used_EFS" is the utilisation;
    "other_EFS_1" and the like are of users with other jobs. Jobs are backfilled in the order of
    the queue, as Slurm does.
    """
    rows: list[dict[str, float]] = [{} for _ in range(seeds)]
    for (begin, (spread, unequal)), seed in product(EXPERIMENTS.items(), range(seeds)):
        given = {"users": len(ESP_USERS), "unequal": unequal, "spread": spread}
        workload = light_esp(PROCESSORS, REPEAT, seed, load, **given)  # type: ignore[arg-type]
        for name, policy in ESP_POLICIES.items():
            result = simulate(workload, Scheduler(policy, backfill_order=policy))
            each = stretches(result)
            for user in ESP_USERS:
                rows[seed][f"{begin}{name}_{user}"] = float(each[workload.user_id == user].mean())
            rows[seed][f"{begin}used_{name}"] = float(result.metrics["utilization"])
    return pd.DataFrame(rows)


# --- Section 6.3.3 --------------------------------------------------------------------------------

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Frequencies [GHz] of the users of 180 cores: the most energy-efficient one, the highest, and the
#: lowest, which is "usually the most energy-consuming one".
FREQUENCIES = {"green": 2.3, "normal": 2.5, "gluttonous": 1.6}
#: Figure 6.8: jobs that are submitted at once, and their cores.
BURST = (60, 60)

#: Policy -> its figure in the thesis, and what it is called here.
FIGURES = {"EFS": "6.5", "FS": "6.6", "FS_EFS": "6.7"}
POLICIES_180 = {"EFS": "energy-fairshare", "FS": "fairshare", "FS_EFS": "fs+efs"}
USERS_180 = tuple(FREQUENCIES)
CORES, NODE_CORES = 180, 12
BURST_RUN_TIME_S = 60  # assumed
#: The least and the most that section 6.1.2 reports of frequencies that save energy; the burst's
#: code was calibrated to be efficient at 2.3 GHz, by how much is not told.
BURST_SAVED = (0.20, 0.25)
BURST_USERS = ("green", "normal", "on demand")


def shares_of_frequency() -> tuple[float, float]:
    """Return k, how much of the run time frequency acts on, and a, the power it does not act on."""
    degradation, _ = published_values(__file__)["table 4.3"]["linpack"]
    levels = node_power(find_cluster("curie")).frequency_ghz
    k = (degradation - 1) / (levels[-1] / levels[0] - 1)
    x = FREQUENCIES["green"] / FREQUENCIES["normal"]
    # where the derivative of (a + x^3) (1 - k + k / x) by x is 0
    a = 3 * x**4 * slowdown(x, k) / k - x**3
    return k, a


def slowdown(x: float, k: float) -> float:
    """Return T(x): how many times as long a job takes."""
    return 1 + k * (1 / x - 1)


def drawn_at(x: float, a: float) -> float:
    """Return P(x): the part of its greatest power that a job draws."""
    return (a + x**3) / (a + 1)


def efficiencies() -> dict[str, tuple[float, float]]:
    """Return user -> how many times as long her jobs take, and the part of the power they draw."""
    k, a = shares_of_frequency()
    highest = max(FREQUENCIES.values())
    shares = {user: ghz / highest for user, ghz in FREQUENCIES.items()}
    return {user: (slowdown(x, k), drawn_at(x, a)) for user, x in shares.items()}


#: What became of jobs: "wait" [s] and "stretch" -> user -> a number for each of her jobs.
Became = dict[str, dict[str, Floats]]


def light_esp_of(seed: int, load: float) -> Workload:
    """Return Light-ESP four times in a row, each time with other users for the groups of jobs.

    The groups are equal thirds of each type of jobs. With load 1 a repetition comes in the time
    that the fractions of table 6.2 take; whole nodes take longer, and so do low frequencies.
    """
    once = light_esp(CORES, 1, seed, load, users=len(USERS_180), node_cores=NODE_CORES)
    span = round(WORK_S / load)
    user = np.concatenate([(once.user_id - 1 + turn) % len(USERS_180) for turn in range(REPEAT)])
    submit = np.concatenate([once.submit_time + turn * span for turn in range(REPEAT)])
    longer, drawn = np.array([efficiencies()[name] for name in USERS_180])[user].T
    run_time = np.rint(np.tile(once.run_time, REPEAT) * longer).astype(np.int64)
    cores = np.tile(once.requested_processors, REPEAT)
    return _jobs(f"light-esp seed {seed}", submit, run_time, cores, user, drawn)


def burst(saved: float) -> Workload:
    """Return the jobs of figure 6.8, all at once, those of the users in turn.

    Parameters
    ----------
    saved : the part of the energy that the green user's jobs need less than the others'.
    """
    number, cores = BURST
    user = np.arange(number) % len(BURST_USERS)
    k, _ = shares_of_frequency()
    longer = slowdown(FREQUENCIES["green"] / FREQUENCIES["normal"], k)
    times = np.where(user == 0, round(BURST_RUN_TIME_S * longer), BURST_RUN_TIME_S)
    drawn = np.where(user == 0, (1 - saved) * BURST_RUN_TIME_S / times, 1.0)
    zeros = np.zeros(number, np.int64)
    return _jobs(f"burst, {saved:.0%}", zeros, times, np.full(number, cores), user, drawn)


def _jobs(
    name: str, submit: Ints, run_time: Ints, cores: Ints, user: Ints, drawn: Floats
) -> Workload:
    """Return jobs of whole nodes that draw a part of their greatest power."""
    columns: dict[str, Any] = {"job_number": np.arange(1, len(submit) + 1)}
    columns |= {"submit_time": submit, "user_id": user + 1, "power_w": core_w() * drawn}
    columns |= dict.fromkeys(("run_time", "requested_time"), run_time)
    columns |= dict.fromkeys(("requested_processors", "allocated_processors"), cores)
    return Workload.from_columns(columns, processors=CORES, name=name)


def core_w() -> float:
    """Return the greatest power of a core: of a node of Curie, which stands for those there."""
    return node_power(find_cluster("curie")).busy_levels_w[-1] / NODE_CORES


def simulated(workload: Workload, policy: str) -> Result:
    """Return the schedule under a policy; jobs are backfilled in the order of the queue."""
    scheduler = Scheduler(POLICIES_180[policy], backfill_order=POLICIES_180[policy])
    return simulate(workload, scheduler, cluster=Cluster(CORES, busy_power_w=core_w()))


def run_180(load: float, seeds: int) -> dict[str, list[Became]]:
    """Return policy -> what becomes of Light-ESP in each of that many orders of the jobs."""
    jobs = [light_esp_of(seed, load) for seed in range(seeds)]
    return {
        policy: [_became(simulated(workload, policy), USERS_180) for workload in jobs]
        for policy in POLICIES_180
    }


def run_burst() -> dict[float, Became]:
    """Return part of energy saved -> what becomes of the burst under EFS (figure 6.8)."""
    longer, drawn = efficiencies()["green"]
    by_model = 1 - longer * drawn
    return {
        saved: _became(simulated(burst(saved), "EFS"), BURST_USERS)
        for saved in (*BURST_SAVED, by_model)
    }


def _became(result: Result, users: tuple[str, ...]) -> Became:
    """Return what became of the jobs of each user."""
    mine = {user: result.workload.user_id == place for place, user in enumerate(users, start=1)}
    values = {"wait": result.wait.astype(np.float64), "stretch": stretches(result)}
    return {what: {user: of[jobs] for user, jobs in mine.items()} for what, of in values.items()}
