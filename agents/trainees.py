"""xnes, MaskablePPO and PPO as the suite trains agents: by ``train(make, seed, steps)``.

What is learned, and how, stands in their own modules. Here they are given the train part of a task
and as many steps; the validation part they do not look at.

>>> from hpcgym.agents.practice import maker
>>> from hpcgym.agents.trainees import XnesTrainee
>>> make = maker("lublin:jobs=600,processors=32,load=1.0", "hpcgym/MixedPolicy-v1", {"jobs": 20})
>>> agent = XnesTrainee().train(make, seed=0, steps=20_000)
>>> sorted(agent.agent.weights_)
['area', 'expansion', 'processors', 'ratio', 'requested', 'wait']
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hpcgym.agents.logs import Log
from hpcgym.agents.practice import Make
from hpcgym.agents.settings import EpisodeSettings
from hpcgym.agents.xnes import Xnes
from hpcgym.errors import HpcgymError
from hpcgym.files.writing import whole
from hpcgym.scheduler.rules import Scheduler

_HOUR_S = 3600


class XnesTrainee:
    """Weights that do not change, searched by :class:`hpcgym.agents.xnes.Xnes`.

    Each vector is simulated on the whole train part. That counts as so many steps as the part has
    hours, of which each is a decision of an agent that sets weights every hour.

    Attributes
    ----------
    agent : the search, once it is done.
    """

    name = "xnes"
    agent: Xnes

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError unless its actions are weights."""
        return _acting(env, self.name, "weights")

    def train(self, make: Make, seed: int, steps: int, log: Log | None = None) -> XnesTrainee:
        """Search; ``log`` is told the least mean bounded slowdown so far, of the train part."""
        env = make()
        world = self.check(env)
        jobs = world.options.workload
        hours = max(int(jobs.submit_time[-1] - jobs.submit_time[0]) // _HOUR_S, 1)

        def progress(done: int, best: float) -> None:
            if log is not None:
                log(done * hours, {"train/least_mean_bsld": best})

        self.agent = Xnes(
            world.policy_features,
            scheduler=Scheduler(**world.scheduler_rules),
            budget=max(steps // hours, 1),
            seed=seed,
        ).fit(jobs, progress=progress, threads=1)
        env.close()
        return self

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode."""
        self.agent.begin(env)

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the weights."""
        return self.agent.act(observation, info)

    def save(self, path: str | Path) -> None:
        """Write the file of the search."""
        self.agent.save(path)


class NetworkTrainee:
    """An agent of Stable-Baselines3, trained by a module of this package.

    Parameters
    ----------
    name : of the agent.
    module : that trains it.
    kind : of actions that it knows.
    """

    def __init__(self, name: str, module: str, kind: str) -> None:
        self.name, self._module, self._kind = name, module, kind
        self._agent: Any = None
        self._file = b""

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError if the agent cannot act there."""
        return _acting(env, self.name, self._kind)

    def train(self, make: Make, seed: int, steps: int, log: Log | None = None) -> NetworkTrainee:
        """Train; steps are rounded up to whole rollouts. ``log``: the mean BSLD of episodes."""
        env = make()
        self.check(env)
        given = dict(env.spec.kwargs)
        env.close()
        names = vars(EpisodeSettings())
        settings = {name: given.pop(name) for name in names if name in given}
        train = import_module(f"hpcgym.agents.{self._module}").train
        with TemporaryDirectory() as folder:
            path = Path(folder) / "agent.pt"
            self._agent = train(
                given.pop("workload"), steps=steps, seed=seed, output=path, env_options=given,
                log=log, **settings,
            )  # fmt: skip
            self._file = path.read_bytes()
        return self

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was made for."""
        self._agent.begin(env)

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the action."""
        return self._agent.act(observation, info)

    def save(self, path: str | Path) -> None:
        """Write the agent's file."""
        with whole(path, folders=True) as part:
            part.write_bytes(self._file)


MaskablePpoTrainee = partial(NetworkTrainee, "maskable-ppo", "maskable_ppo", "selection")
PpoTrainee = partial(NetworkTrainee, "ppo", "ppo", "weights")


def _acting(env: Any, name: str, kind: str) -> Any:
    """Return an environment itself; raise an HpcgymError unless it has actions of a kind."""
    world = getattr(env, "unwrapped", env)
    if getattr(world, "action_kind", "") != kind:
        raise HpcgymError(f"{name} acts in environments of {kind}, not in this one")
    return world
