"""The network of job-ppo, the agent that acts with it, and its file.

The same small network looks at each visible job, at what :mod:`hpcgym.agents.job_view` makes of it
and of the state, so neither the order of jobs in the window nor their number matters. What it says
is added to the score of a known order, and is 0 at first: learning goes on from that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcgym.agents import job_view
from hpcgym.agents.job_view import JOB, ORDERS, Seen
from hpcgym.agents.network_files import weights_for, write
from hpcgym.agents.practice import Spending
from hpcgym.agents.specs import settled_options
from hpcgym.envs.core.layout import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE
from hpcgym.errors import HpcgymError, check_choice

STATE_SIZE = CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE

_SHARP = 8.0  # how sure the order to begin with is: its factor in scores, which are logits

Agent = TypeVar("Agent", bound="JobActor")


class Batch(NamedTuple):
    """Decisions of any number B, with the n jobs that are seen in them.

    Attributes
    ----------
    jobs : (n, len(JOB)) and state (B, STATE_SIZE), float32, as of :class:`Seen`.
    base : (n,) float32, scores of the order to begin with.
    owner : (n,) int64, the decision of a job.
    place : (n,) int64, its place in the window.
    """

    jobs: torch.Tensor
    state: torch.Tensor
    base: torch.Tensor
    owner: torch.Tensor
    place: torch.Tensor

    @classmethod
    def of(cls, *arrays: NDArray[Any]) -> Batch:
        """Return one of arrays."""
        return cls(*(torch.from_numpy(one) for one in arrays))


class JobNetwork(nn.Module):
    """Scores of jobs, and the value of the state.

    Parameters
    ----------
    width : of the hidden layers.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.of_job, self.of_state = nn.Linear(len(JOB), width), nn.Linear(STATE_SIZE, width)
        self.score = nn.Sequential(nn.Tanh(), nn.Linear(width, width), nn.Tanh(), _zero(width))
        self.value_of_job = nn.Sequential(nn.Linear(len(JOB), width), nn.Tanh())
        self.value = nn.Sequential(
            nn.Linear(2 * width + STATE_SIZE, width), nn.Tanh(), _zero(width)
        )

    def scores(self, batch: Batch) -> torch.Tensor:
        """Return a score for each job, (n,)."""
        hidden = self.of_job(batch.jobs) + self.of_state(batch.state)[batch.owner]
        said: torch.Tensor = self.score(hidden).squeeze(1)
        return batch.base + said

    def values(self, batch: Batch) -> torch.Tensor:
        """Return the value of each decision's state, (B,), from sums and means over its jobs."""
        hidden = self.value_of_job(batch.jobs)
        sums = hidden.new_zeros(len(batch.state), hidden.shape[1])
        sums.index_add_(0, batch.owner, hidden)
        counts = torch.bincount(batch.owner, minlength=len(sums)).clamp(min=1)[:, None]
        parts = [sums / counts, sums / 32.0, batch.state]
        values: torch.Tensor = self.value(torch.cat(parts, dim=1)).squeeze(1)
        return values


def _zero(width: int) -> nn.Linear:
    """Return a last layer that says 0 whatever it sees."""
    layer = nn.Linear(width, 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def in_windows(batch: Batch, values: torch.Tensor, most: int) -> torch.Tensor:
    """Return numbers of jobs by their places, (B, most); far below all others without a job."""
    wide = values.new_full((len(batch.state), most), -1e9)
    return wide.index_put((batch.owner, batch.place), values)


def base_of(look: Seen, order: str) -> NDArray[np.float32]:
    """Return the scores of a known order that backfills as EASY does, (n,)."""
    weights = _SHARP * job_view.weights_of(order)
    scores = job_view.placed(look, look.jobs @ weights)
    scores = job_view.backfilled(look, scores, job_view.EASY)
    base: NDArray[np.float32] = scores[look.owner, look.place]
    return base


def batch_of(look: Seen, order: str) -> Batch:
    """Return what the network is given of observations."""
    return Batch.of(look.jobs, look.state, base_of(look, order), look.owner, look.place)


class JobActor:
    """An agent that serves jobs from the highest score to the lowest.

    Attributes
    ----------
    network : its network, after training.
    order : of :data:`hpcgym.agents.job_view.ORDERS`, the one to begin with.
    kind : "selection" or "ordering", what its actions are.
    env_id, env_options : the environment that it was trained for.
    """

    name = ""
    kinds: tuple[str, ...] = ("selection", "ordering")

    def __init__(self) -> None:
        self.kind, self.order = "", "saf"
        self.network = JobNetwork(1)
        self.best: JobNetwork | None = None  # what a training has chosen so far

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.env_id!r})" if self.kind else f"{type(self).__name__}()"
        )

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError if no such agent can act there."""
        return job_view.check_sees(env, self.name, *self.kinds)

    def look_at(self, env: Any) -> None:
        """Take over what there is to know of the environment that it is to act in."""
        world = self.check(env)
        self.kind, self.env_id = world.action_kind, env.spec.id
        self.env_options = settled_options(world, env.spec.kwargs)
        env.close()

    def choose_order(self, judge: Callable[[Any], float], spent: Spending) -> float:
        """Take the order that does best by itself; return its value, of which less is better.

        The first one is judged, and others as long as three quarters of the steps are left.
        """
        values: dict[str, float] = {}
        for self.order in ORDERS:
            if not values or spent.left > 0.75:
                values[self.order] = judge(self.actions)
        self.order = min(values, key=lambda order: values[order])
        return values[self.order]

    def actions(self, observation: Mapping[str, Any]) -> Any:
        """Return the best actions in a vector environment."""
        look = job_view.seen(observation)
        with torch.no_grad():
            batch = batch_of(look, self.order)
            scores = in_windows(batch, self.network.scores(batch), look.mask.shape[1]).numpy()
        return in_environment(self.kind, scores, observation["mask"].shape[1])

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was trained in.

        Raises
        ------
        HpcgymError : it has other actions or observations, or nothing has been learned.
        """
        if not self.kind:
            raise HpcgymError(f"{self.name}: nothing has been learned; call train first")
        torch.set_num_threads(1)  # several are slower for networks this small
        job_view.check_sees(env, self.name, self.kind)

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None) -> Any:
        """Return the action: the place of a job, or a score for each place."""
        action = self.actions(job_view.one(observation))[0]
        return int(action) if self.kind == "selection" else action

    def keep_best(self) -> bool:
        """Be what a training that was interrupted had chosen; tell whether there was anything."""
        if self.best is not None:
            self.network = self.best
        return self.best is not None

    def save(self, path: str | Path) -> None:
        """Write the agent, in such a way that a reader never sees half of it."""
        contents = {
            "agent": self.name,
            "env_id": self.env_id,
            "env_options": self.env_options,
            "network": {"width": self.network.of_job.out_features},
            "weights": self.network.state_dict(),
            "kind": self.kind,
            "order": self.order,
        }
        write(path, contents)


def in_environment(kind: str, scores: NDArray[Any], window: int) -> NDArray[Any]:
    """Return actions by scores (B, most): places (B,), or scores (B, window)."""
    if kind == "selection":
        return np.asarray(scores.argmax(axis=1))
    actions = np.zeros((len(scores), window), np.float32)
    actions[:, : scores.shape[1]] = scores
    return actions


def loaded(agent: Agent, contents: Mapping[str, Any]) -> Agent:
    """Return an agent with what a file has; it takes no more memory than its weights do."""
    agent.kind = check_choice("kind", contents["kind"], agent.kinds)
    agent.order = check_choice("order", contents["order"], ORDERS)
    agent.env_id, agent.env_options = contents["env_id"], contents["env_options"]
    with torch.device("meta"):
        agent.network = JobNetwork(**contents["network"])
    weights = weights_for("weights", contents["weights"], agent.network.state_dict())
    agent.network.load_state_dict(weights, assign=True)
    return agent
