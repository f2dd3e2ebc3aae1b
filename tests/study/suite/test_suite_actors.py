"""In each track known rules as actors, a step at a time, make the very schedules of simulations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.baselines import find_baseline
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.suite.evaluation import Evaluation
from hpcgym.study.suite.tasks import tasks
from hpcgym.workload.archive import find

TRACKS = ("order", "select", "weights", "backfill")
#: FCFS has the candidates of EASY where the queue is ordered, and is EASY in "backfill".
RULES = ("fcfs", "saf", "f1")


FEATURES = tasks()["weights"].options["policy_features"]
#: Of these, the weights that a rule is; times are typical first, then requested.
WEIGHTS = {"fcfs": (0, 0, 0, 1, 0), "saf": (0, -1, -1, 0, 0), "saf-typical": (-1, 0, -1, 0, 0)}


class Constant:
    """Weights that never change."""

    def __init__(self, weights: Sequence[float]) -> None:
        self.weights = np.array(weights, np.float32)

    def act(self, observation: Any, info: Any) -> Any:
        return self.weights


class Typical:
    """SAF of typical times, in floats.

    A job's time is predicted when it is submitted, and anew whenever a job of its user has ended.
    """

    def begin(self, env: Any) -> None:
        self.env, self.jobs, self.last = env, env.episode_workload, -1
        self.every = [0.0, 0.0]
        self.decayed: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.areas: dict[int, int] = {}  # of jobs that wait

    def act(self, observation: Any, info: Any) -> Any:
        self.go_on(info["time_s"])
        rows = np.asarray(info["window"])
        keys = np.array([self.areas[row] for row in rows[rows >= 0].tolist()])
        if self.env.action_kind == "select":
            return int(np.argmin(keys))
        if self.env.action_kind == "backfill":
            return 1 + int(np.argmin(keys[1:])) if len(keys) > 1 else 0
        window = self.env.options.window
        action = np.full(window, -1.0, np.float32)
        ranks = np.linspace(1.0, -1.0, window, dtype=np.float32)
        action[np.argsort(keys, kind="stable")] = ranks[: len(keys)]
        return action

    def go_on(self, now: int) -> None:
        """Go through the ends and submissions since the last decision."""
        start, submit = self.env.result().start, self.jobs.submit_time
        end = np.where(start < 0, now + 1, start + self.jobs.run_time)
        ended = np.flatnonzero((end > self.last) & (end <= now))
        came = range(*np.searchsorted(submit, [self.last, now], side="right").tolist())
        at: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for row in ended.tolist():
            at[int(end[row])][0].append(row)
        for row in came:
            at[int(submit[row])][1].append(row)
        for time in sorted(at):
            gone, new = at[time]
            for row in gone:
                self.learn(row)
            self.renew({int(self.jobs.user_id[row]) for row in gone}, start, time)
            self.areas |= {row: self.area(row) for row in new}
        self.last = now

    def renew(self, users: set[int], start: Any, time: int) -> None:
        for row in list(self.areas):
            if 0 <= start[row] < time:
                del self.areas[row]
            elif int(self.jobs.user_id[row]) in users:
                self.areas[row] = self.area(row)

    def learn(self, row: int) -> None:
        ratio = math.log(self.jobs.run_time[row] / self.jobs.requested_time[row])
        self.every = [self.every[0] + 1, self.every[1] + ratio]
        for key in self.classes(row):
            count, total = self.decayed[key]
            self.decayed[key] = [0.95 * count + 1, 0.95 * total + ratio]

    def classes(self, row: int) -> tuple[Any, Any]:
        user = int(self.jobs.user_id[row])
        return user, (user, int(self.jobs.requested_processors[row]))

    def area(self, row: int) -> int:
        requested = int(self.jobs.requested_time[row])
        mean, means = self.every[1] / max(self.every[0], 1), []
        for key in self.classes(row):
            count, total = self.decayed[key]
            mean = (total + mean) / (count + 1)
            means.append(mean)
        seconds = math.floor(requested * math.exp(sum(means) / 2) + 1e-6)
        return min(max(seconds, 1), requested) * int(self.jobs.requested_processors[row])


def check(track: str, rule: str, log: str) -> None:
    """Compare an actor with the simulation of its rule under the rules of the environment."""
    task = replace(tasks()[track], replays=(1.0,))
    policy = rule
    if track == "weights":
        policy = "+".join(f"({w})*({f})" for f, w in zip(FEATURES, WEIGHTS[rule], strict=True))
    elif rule == "saf-typical":
        task = replace(task, options={**task.options, "policy_estimate": "typical-ratio"})
        policy = "saf"
    evaluation = Evaluation(task, task.log(log))
    order = "backfill_order" if track == "backfill" else "policy"
    rules = Scheduler(**{**evaluation.env.unwrapped.scheduler_rules, order: policy})
    actor: Any = Constant(WEIGHTS[rule]) if track == "weights" else find_baseline(policy)
    if rule == "saf-typical" and track != "weights":
        actor = Typical()
    (acted,), (expected,) = evaluation.run(actor), evaluation.run(rules)
    assert np.flatnonzero(acted.start != expected.start).tolist() == []


#: Of each track and rule; F1 is no sum of the features that are weighed.
CASES = [(t, r) for t in TRACKS for r in (*RULES, "saf-typical") if (t, r) != ("weights", "f1")]
#: One of each track is done on each log. Whether its schedule is that of the simulation depends on
#: the track and the log; that the rules differ is seen on one.
ON_EACH_LOG = [
    ("order", "f1"),
    ("select", "saf"),
    ("weights", "saf-typical"),
    ("backfill", "saf"),
]
#: In these typical times are worked out in Python, which takes long.
BY_HAND = [(track, "saf-typical") for track in TRACKS if track != "weights"]


@pytest.mark.parametrize(
    ("track", "rule"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case in BY_HAND)) for case in CASES],
)
def test_rules_that_act_are_those_that_are_simulated(
    track: str, rule: str, trace: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the whole of KTH-SP2."""
    monkeypatch.setenv("HPCGYM_DATA", str(trace("KTH-SP2-1996-2.swf.gz").parent))
    check(track, rule, "KTH-SP2")


@pytest.mark.slow
@pytest.mark.parametrize("log", ["SDSC-SP2", "CTC-SP2", "HPC2N", "SDSC-BLUE", "CEA-Curie"])
@pytest.mark.parametrize(("track", "rule"), ON_EACH_LOG)
def test_they_are_the_same_on_each_log(track: str, rule: str, log: str) -> None:
    if find(log) is None:
        pytest.skip(f"{log} is not on this machine")
    check(track, rule, log)
