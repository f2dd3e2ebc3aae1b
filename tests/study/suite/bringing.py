"""Agents of users, good and bad, and how they are let play."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hpcgym.baselines import find_scheduler
from hpcgym.simulation.allowance import SpentError
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.simulation.run import simulate
from hpcgym.study.suite.runs import run
from hpcgym.study.suite.submissions import SCHEDULES, Submission
from hpcgym.study.suite.tasks import find_tasks


def play(agent: str, names: str | None, folder: Path, **more: Any) -> Submission:
    """Let an agent play tasks by their names, all that it can without them."""
    return run(agent, find_tasks(names), folder, named=names is not None, **more)


def arrays_in(folder: Path) -> dict[str, np.ndarray]:
    """All arrays of a submission, TASK/LOG/SEED/SLICE/ARRAY -> array."""
    arrays = {}
    for path in sorted((folder / SCHEDULES).rglob("*.npz")):
        begin = path.relative_to(folder / SCHEDULES).with_suffix("").as_posix()
        arrays |= {f"{begin}/{key}": array for key, array in np.load(path).items()}
    return arrays


def put_arrays(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write others into the files that are there."""
    for path in (folder / SCHEDULES).rglob("*.npz"):
        begin = path.relative_to(folder / SCHEDULES).with_suffix("").as_posix() + "/"
        mine = {key.removeprefix(begin): a for key, a in arrays.items() if key.startswith(begin)}
        np.savez_compressed(path, **mine)


#: What agents were asked to do, in order.
calls: list[Any] = []


class Shortest:
    """Orders by requested times, in QueueOrdering."""

    def act(self, observation, info):
        scores = np.zeros(len(observation["mask"]), np.float32)
        seen = observation["mask"].astype(bool)
        scores[seen] = -observation["jobs"][seen, 1]
        return scores


class Trained(Shortest):
    """Says what it was trained with."""

    def train(self, make, seed, steps):
        env = make(jobs=40)
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            observation, _, *ended, info = env.step(self.act(observation, info))
            over = any(ended)
        calls.append((seed, steps, make.kind, {name: len(w) for name, w in make.logs.items()}))
        self.seed = seed

    def act(self, observation, info):
        scores = super().act(observation, info)
        return scores if getattr(self, "seed", 0) == 0 else -scores


class Both(Shortest):
    """Learns the same for two decisions: a scheduler."""

    trains_as: ClassVar[dict] = {"select": "order"}

    def train(self, make, seed, steps):
        calls.append((make.kind, seed, [*make.logs]))
        self.scheduler = find_scheduler("saf" if seed == 0 else "aged")


class Dies(Shortest):
    """Ends its process."""

    def act(self, observation, info):
        os._exit(1)


class Each(Trained):
    """Is trained for each log."""

    each_log = True


class Learned(Trained):
    """Finds a scheduler, which is simulated."""

    about = "a formula"

    def train(self, make, seed, steps):
        assert make.scheduler.backfill_order == "spf"
        self.scheduler = find_scheduler("saf" if seed == 0 else "aged")

    def act(self, observation, info):
        raise AssertionError("it is simulated")


class Logs(Shortest):
    """Tells how its training goes, and saves itself."""

    def train(self, make, seed, steps, log=None):
        self.seed = seed
        log(3, {"mine": seed})

    def save(self, path):
        path.write_text(f"seed {self.seed}")


class Cheats(Shortest):
    """Wants to train on the test part."""

    def train(self, make, seed, steps):
        make("test")


class Stops(Shortest):
    """Fails after some decisions."""

    left = 10**9

    def act(self, observation, info):
        Stops.left -= 1
        if Stops.left < 0:
            raise KeyError("lost")
        return super().act(observation, info)


class WrongShape:
    def act(self, observation, info):
        return np.zeros(3, np.float32)


class Selects:
    env_id = "hpcgym/JobSelection-v2"

    def act(self, observation, info):
        return 0


class OtherScale:
    """Was made for weights as they are."""

    env_id = "hpcgym/MixedPolicy-v2"
    env_options: ClassVar[dict] = {"window": 128, "scale": "none"}

    def act(self, observation, info):
        return np.zeros(6)


class SameScale(OtherScale):
    env_options: ClassVar[dict] = {"window": 128, "scale": "spread"}


class NoAgent:
    pass


class Simulates(Shortest):
    """Simulates the first log in its training: once by name, and two weights in a batch."""

    def train(self, make, seed, steps):
        jobs = next(iter(make.logs.values()))
        simulate(jobs, "saf")
        BatchSimulator([jobs], ["area", "wait"]).run([[-1, 0], [-1, 2]])
        self.scheduler = find_scheduler("saf")


class Greedy(Shortest):
    """Does all steps that it is allowed, in a vector environment, and ends with that."""

    def train(self, make, seed, steps):
        envs = make(num_envs=7, jobs=20, reward="bsld/easy", start="warm")
        envs.reset(seed=seed)
        with suppress(SpentError):
            while True:
                envs.step(np.zeros((7, envs.single_action_space.shape[0])))


class Exceeds(Greedy):
    """Does more, and does not stop when it is told to."""

    def train(self, make, seed, steps):
        for _ in range(99):
            simulate(make.logs["pond"], "saf")
