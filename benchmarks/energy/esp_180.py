"""Section 6.3.3: Light-ESP with Linpack on 180 cores, three users who choose their frequencies.

The thesis measured; here time and energy by frequency are a model of what it prints. At the share x
of the highest frequency a job takes T(x) = 1 + k (1 / x - 1) times as long, where k is such that
Linpack has the degradation of table 4.3 over the frequencies of table 4.2. Its power is
P(x) = (a + x^3) / (a + 1) of that at the highest frequency, where a is such that the energy, P T,
is least at the frequency that section 6.3.3 names as the most efficient one. Assumed are that shape
of the power, the watts themselves, which no order of jobs depends on, when jobs come, and how long
those of the burst run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.energy.published_powercap import TABLE_4_3
from hpcgym.benchmarks.energy.published_shares import BURST, FREQUENCIES
from hpcgym.benchmarks.energy.shares import stretches
from hpcgym.cluster.files import find_cluster
from hpcgym.cluster.pool import Cluster
from hpcgym.schedule.result import Result
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload.generators.light_esp import WORK_S, light_esp
from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]

#: Policy -> its figure in the thesis, and what it is called here.
FIGURES = {"EFS": "6.5", "FS": "6.6", "FS+EFS": "6.7"}
POLICIES = {"EFS": "energy-fairshare", "FS": "fairshare", "FS+EFS": "fs+efs"}
USERS = tuple(FREQUENCIES)
CORES, NODE_CORES = 180, 12
REPEAT = 4
BURST_RUN_TIME_S = 60  # assumed
#: The least and the most that section 6.1.2 reports of frequencies that save energy; the burst's
#: code was calibrated to be efficient at 2.3 GHz, by how much is not told.
BURST_SAVED = (0.20, 0.25)
BURST_USERS = ("green", "normal", "on demand")


def shares_of_frequency() -> tuple[float, float]:
    """Return k, how much of the run time frequency acts on, and a, the power it does not act on."""
    linpack = next(one for one in TABLE_4_3 if one.name == "linpack")
    power = find_cluster("curie").groups[0].power
    assert power is not None
    levels = power.frequency_ghz
    k = (linpack.degradation - 1) / (levels[-1] / levels[0] - 1)
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


@dataclass
class Outcome:
    """What became of jobs under a policy, over all orders.

    Attributes
    ----------
    wait, stretch : user -> a number for each of her jobs [s], [1].
    counted : user -> when her jobs of the first order end [s], and the joules counted until then.
    """

    wait: dict[str, Floats] = field(default_factory=dict)
    stretch: dict[str, Floats] = field(default_factory=dict)
    counted: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)


def light_esp_of(seed: int, load: float) -> Workload:
    """Return Light-ESP four times in a row, each time with other users for the groups of jobs.

    The groups are equal thirds of each type of jobs. With load 1 a repetition comes in the time
    that the fractions of table 6.2 take; whole nodes take longer, and so do low frequencies.
    """
    once = light_esp(CORES, 1, seed, load, users=len(USERS), node_cores=NODE_CORES)
    span = round(WORK_S / load)
    user = np.concatenate([(once.user_id - 1 + turn) % len(USERS) for turn in range(REPEAT)])
    submit = np.concatenate([once.submit_time + turn * span for turn in range(REPEAT)])
    longer, drawn = np.array([efficiencies()[name] for name in USERS])[user].T
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
    name: str,
    submit: NDArray[np.int64],
    run_time: NDArray[np.int64],
    cores: NDArray[np.int64],
    user: NDArray[np.int64],
    drawn: Floats,
) -> Workload:
    """Return jobs of whole nodes that draw a part of their greatest power."""
    columns = {
        "job_number": np.arange(1, len(submit) + 1),
        "submit_time": submit,
        "run_time": run_time,
        "requested_time": run_time,
        "requested_processors": cores,
        "allocated_processors": cores,
        "user_id": user + 1,
        "power_w": core_w() * drawn,
    }
    return Workload.from_columns(columns, processors=CORES, name=name)


def core_w() -> float:
    """Return the greatest power of a core: of a node of Curie, which stands for those there."""
    found = find_cluster("curie").groups[0].power
    assert found is not None
    return found.busy_levels_w[-1] / NODE_CORES


def simulated(workload: Workload, policy: str) -> Result:
    """Return the schedule under a policy; jobs are back-filled in the order of the queue."""
    scheduler = Scheduler(POLICIES[policy], backfill_order=POLICIES[policy])
    return simulate(workload, scheduler, cluster=Cluster(CORES, busy_power_w=core_w()))


def run(load: float, seeds: int) -> dict[str, Outcome]:
    """Return policy -> what becomes of Light-ESP, over that many orders of the jobs."""
    outcomes = {}
    for policy in POLICIES:
        results = [simulated(light_esp_of(seed, load), policy) for seed in range(seeds)]
        outcomes[policy] = _outcome(results, USERS)
    return outcomes


def run_burst() -> dict[float, Outcome]:
    """Return part of energy saved -> what becomes of the burst under EFS (figure 6.8)."""
    longer, drawn = efficiencies()["green"]
    by_model = 1 - longer * drawn
    return {
        saved: _outcome([simulated(burst(saved), "EFS")], BURST_USERS)
        for saved in (*BURST_SAVED, by_model)
    }


def _outcome(results: list[Result], users: tuple[str, ...]) -> Outcome:
    """Return the jobs of each user in all results."""
    found = Outcome()
    for place, user in enumerate(users, start=1):
        mine = [result.workload.user_id == place for result in results]
        found.wait[user] = _joined(
            [result.wait[of].astype(np.float64) for result, of in zip(results, mine, strict=True)]
        )
        found.stretch[user] = _joined(
            [stretches(result)[of] for result, of in zip(results, mine, strict=True)]
        )
        found.counted[user] = _counted(results[0], mine[0])
    return found


def _joined(parts: list[Floats]) -> Floats:
    return np.sort(np.concatenate(parts))


def _counted(result: Result, mine: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the ends of some jobs and the joules that have been counted at each of them."""
    jobs = result.workload
    joules = jobs.power_w * jobs.requested_processors * jobs.run_time
    end = (result.start + jobs.run_time)[mine]
    order = np.argsort(end, kind="stable")
    return end[order].astype(np.float64), np.cumsum(joules[mine][order])
