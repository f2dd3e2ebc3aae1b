"""Does what gains in an episode gain in the long run? Scores of policies in both, side by side.

    python benchmarks/long_run.py [--trace KTH-SP2] [--windows 40]

Policies act in short episodes from an empty machine, in those of a log that is played on
(``JobSelection-v2``), and on the whole part of the log at once. Some of them play for the episode:
they starve wide or long jobs, block the machine, or were chosen by short episodes. The table has
the mean bounded slowdown of each, and how well the two kinds of episodes rank policies as the whole
log does (Spearman's correlation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.agents.search import candidates
from hpcgym.baselines.chance import RandomActions
from hpcgym.baselines.policies import Baseline, find_baseline
from hpcgym.envs import JobSelection
from hpcgym.progress import counting
from hpcgym.scheduler.policies.features import WEIGHTED_FEATURES, spread
from hpcgym.study.evaluation.environments import act_out
from hpcgym.units import HOUR_S

#: What all are compared under, and what is around episodes, if anything is.
RULES: dict[str, Any] = {"backfill": "none", "reservation": "kept", "paid": "start"}
RULES |= {"reward": "bsld", "window": 128}
SHORT: dict[str, Any] = {"start": "empty", "arrivals": "stop", "horizon": None}
LONG: dict[str, Any] = {"start": "warm", "arrivals": "continue", "horizon": "7d"}

NAMED = (
    "fcfs", "lcfs", "sjf", "lpf", "saf", "laf", "sqf", "lqf", "wfp3", "unicef", "f1", "f2", "f3",
    "f4", "lexp", "sexp",
)  # fmt: skip

Score = Callable[[Any, NDArray[np.int64], float], NDArray[Any]]


class Rule:
    """A policy that selects the visible job with the least score.

    ``score`` takes the jobs, the rows that are visible, and the time [s].
    """

    def __init__(self, score: Score) -> None:
        self.score = score
        self.jobs: Any = None

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode."""
        self.jobs = env.unwrapped.episode_workload

    def act(self, observation: Any, info: dict[str, Any]) -> int:
        """Return the place of a job in the window."""
        rows = info["window"][info["window"] >= 0]
        return int(np.argmin(self.score(self.jobs, rows, info["time_s"])))


def players() -> dict[str, Any]:
    """Return policies that play for an episode, and some that care for who waits."""

    def area(jobs: Any, rows: Any) -> Any:
        return jobs.requested_processors[rows] * jobs.requested_time[rows]

    def starving(jobs: Any, rows: Any, time: float) -> Any:
        wide = jobs.requested_processors[rows] > jobs.processors // 4
        return wide * 1e12 + jobs.submit_time[rows]

    def limited(jobs: Any, rows: Any, time: float) -> Any:
        submitted = jobs.submit_time[rows]
        return np.where(time - submitted > 172_800, submitted - 1e12, area(jobs, rows))

    return {
        "random": RandomActions(),
        "starve wide": Rule(starving),
        "starve long": Rule(lambda j, r, t: (j.requested_time[r] > 14_400) * 1e12 + area(j, r)),
        "saf, two days at most": Rule(limited),
        "saf, ageing": Rule(lambda j, r, t: area(j, r) - 20.0 * (t - j.submit_time[r])),
    }


def played(env: JobSelection, policy: Any, names: Sequence[str]) -> list[dict[str, float]]:
    """Return the metrics of a policy in some episodes of an environment."""
    metrics = []
    for name in names:
        act_out(policy, env, *env.reset(options={"slice": name}))
        metrics.append(env.metrics())
    return metrics


def mean_bsld(metrics: Sequence[dict[str, float]]) -> float:
    """Return the mean bounded slowdown over all jobs of all episodes."""
    jobs = np.array([each["jobs"] for each in metrics])
    return float((jobs * [each["mean_bsld"] for each in metrics]).sum() / jobs.sum())


def episodes_of(env: JobSelection, windows: int) -> list[str]:
    """Return the names of so many episodes, spread over all."""
    listing = env.episodes.listing
    chosen = np.unique(np.linspace(0, len(listing) - 1, windows).astype(int))
    return [listing[k].name for k in chosen]


def trained(env: JobSelection, windows: int, number: int = 40) -> Baseline:
    """Return the best of some random weights in episodes of an environment."""
    units = spread([env.options.workload], WEIGHTED_FEATURES)
    vectors = candidates(np.random.default_rng(0), len(WEIGHTED_FEATURES), number) / units
    names = episodes_of(env, windows)
    rules = [Baseline(dict(zip(WEIGHTED_FEATURES, row, strict=True))) for row in vectors.tolist()]
    return min(rules, key=lambda rule: mean_bsld(played(env, rule, names)))


def compare(workload: Any, windows: int, policies: dict[str, Any] | None = None) -> pd.DataFrame:
    """Return mean bounded slowdowns and longest waits [h], a row a policy."""
    short = JobSelection(workload, part="test", **SHORT, **RULES)
    long = JobSelection(workload, part="test", **LONG, **RULES)
    whole = JobSelection(workload, part="test", episodes="whole", **{**RULES, "window": 512})
    if policies is None:
        parts = [JobSelection(workload, part="train", **more, **RULES) for more in (SHORT, LONG)]
        policies = {name: find_baseline(name) for name in NAMED} | players()
        policies["trained on short episodes"] = trained(parts[0], windows // 2)
        policies["trained on long ones"] = trained(parts[1], windows // 2)
    places = {
        "short": (short, episodes_of(short, windows)),
        "long": (long, episodes_of(long, windows)),
        "whole": (whole, ["test"]),
    }
    rows: dict[str, dict[str, float]] = {}
    with counting("policies", len(policies)) as step:
        for name, policy in policies.items():
            step(name)
            seen = {kind: played(env, policy, of) for kind, (env, of) in places.items()}
            row = {kind: mean_bsld(metrics) for kind, metrics in seen.items()}
            for kind, metrics in seen.items():  # waits also of jobs that were there before
                waits = [
                    of_episode.get("longest_wait_s", of_episode["max_wait_s"])
                    for of_episode in metrics
                ]
                row[f"longest wait, {kind}"] = max(waits) / HOUR_S
            rows[name] = row | {
                "unserved": sum(of_episode["unserved_jobs"] for of_episode in seen["long"])
            }
    return pd.DataFrame(rows).T


def correlations(board: pd.DataFrame) -> dict[str, float]:
    """Return how well each kind of episodes ranks policies as the whole log does."""
    ranks = board[["short", "long", "whole"]].rank()
    return {kind: float(ranks[kind].corr(ranks["whole"])) for kind in ("short", "long")}


@click.command
@click.option("--trace", default=str(JobSelection.usual["workload"]), show_default=True)
@click.option("--windows", default=40, show_default=True)
def main(trace: str, windows: int) -> None:
    """Print what policies reach in short episodes, in long ones and on the whole log."""
    board = compare(trace, windows)
    print(board.sort_values("whole").round(1).to_string())
    for kind, value in correlations(board).items():
        print(f"rank correlation of {kind} episodes with the whole log: {value:.3f}")


if __name__ == "__main__":
    main()
