"""Behaviour cloning: teach what a policy does in JobSelection to a small network.

The same network scores every visible job, from its features and from what is known of cluster,
queue and time, so the order in which jobs stand in the window does not matter, and neither does
their number. A clone of a good order shows what the network can represent and what the observation
leaves out, and is a start for learning: ``examples/maskable_ppo.py`` goes on from one.

>>> from hpcgym.agents import behaviour_cloning
>>> from hpcgym.agents.recordings import record
>>> done = record("sjf", "lublin:jobs=2000,processors=64", record_episodes=2)
>>> behaviour_cloning.train(done, steps=20).name
'clone'
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from hpcgym.agents.network_files import DIVERGED, weights_for, write
from hpcgym.agents.practice import Logger, acting
from hpcgym.agents.recordings import Recording, load_selections
from hpcgym.agents.settings import CloneSettings, takes
from hpcgym.errors import HpcgymError

NAME = "clone"
ENV_ID = "hpcgym/JobSelection-v2"

_LOGGED = 20  # batches between two that are logged

# several threads are slower than one for networks this small, and may stall where cores are few
torch.set_num_threads(1)

# --- The network ----------------------------------------------------------------------------------


def both_scales(jobs: torch.Tensor) -> torch.Tensor:
    """Return features as they are and on a logarithmic scale.

    A feature t / (t + 1 h) has the log-odds log(t / 1 h), in which orders such as shortest first or
    smallest area first are linear.
    """
    inside = jobs.clamp(1e-4, 1.0 - 1e-4)
    return torch.cat([jobs, torch.log(inside / (1.0 - inside)) / 4.0], dim=-1)


class MaskedJobNetwork(nn.Module):
    """Scores of the visible jobs, and the value of the state.

    Parameters
    ----------
    n_features : columns of the window.
    n_context : numbers that describe the state beside the window.
    width : of the hidden layers.
    """

    def __init__(self, n_features: int, n_context: int, width: int = 32) -> None:
        super().__init__()
        self.of_job = nn.Linear(2 * n_features, width)
        self.of_context = nn.Linear(n_context, width, bias=False)
        self.score = nn.Sequential(nn.Tanh(), nn.Linear(width, width), nn.Tanh(), _near_zero(width))
        self.value_of_job = nn.Sequential(nn.Linear(2 * n_features, width), nn.Tanh())
        self.value = nn.Sequential(
            nn.Linear(2 * width + n_context, 2 * width), nn.Tanh(),
            nn.Linear(2 * width, 2 * width), nn.Tanh(),
        )  # fmt: skip

    def forward(self, observation: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what ``forward_actor`` and ``forward_critic`` do."""
        return self.forward_actor(observation), self.forward_critic(observation)

    def forward_actor(self, observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the scores, (batch, window); 0 where there is no job."""
        visible = observation["mask"] > 0.5
        context = self.of_context(_context(observation))
        # only visible jobs are computed: mostly they are few
        hidden = self.of_job(both_scales(observation["jobs"][visible]))
        hidden = hidden + context[visible.nonzero()[:, 0]]
        scores = torch.zeros_like(observation["mask"], dtype=hidden.dtype)
        scores[visible] = self.score(hidden).squeeze(-1)
        return scores

    def forward_critic(self, observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the last hidden layer of the value, (batch, 2 * width), from sums over jobs."""
        visible = observation["mask"] > 0.5
        hidden = self.value_of_job(both_scales(observation["jobs"][visible]))
        pooled = hidden.new_zeros(len(visible), hidden.shape[1])
        pooled.index_add_(0, visible.nonzero()[:, 0], hidden)
        number = visible.sum(dim=1, keepdim=True).clamp(min=1)
        parts = [pooled / number, pooled / 32.0, _context(observation)]
        hidden_value: torch.Tensor = self.value(torch.cat(parts, dim=1))
        return hidden_value


def _near_zero(width: int) -> nn.Linear:
    """Return a last layer that makes all choices about as likely at first."""
    layer = nn.Linear(width, 1)
    nn.init.normal_(layer.weight, std=0.01)
    nn.init.zeros_(layer.bias)
    return layer


def _context(observation: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return what is known beside the window, (batch, n_context)."""
    return torch.cat([observation[name] for name in ("cluster", "queue", "time")], dim=1)


def sizes(observation_space: Any) -> tuple[int, int]:
    """Return the number of features of a job, and of numbers that describe the state beside."""
    fields = observation_space.spaces
    context = sum(fields[name].shape[0] for name in ("cluster", "queue", "time"))
    return fields["jobs"].shape[1], context


# --- The agent ------------------------------------------------------------------------------------


class Clone:
    """An agent that selects the job with the highest score.

    Attributes
    ----------
    name : of the agent.
    network : its network; None before anything was learned.
    env_id, env_options : the environment that it was made for.
    """

    name = NAME

    def __init__(self) -> None:
        self.network: MaskedJobNetwork | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def made_for(self, env_options: Mapping[str, Any]) -> None:
        """Take over what there is to know of the environment that it is to act in."""
        self.env_id, self.env_options = ENV_ID, dict(env_options)

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError if no such agent can act there."""
        world = acting(env, self.name, "select")
        if world.options.flat or world.action_space.n != world.options.window:
            raise HpcgymError(
                f"{self.name} scores jobs of observation='dict', and knows no shutdown_action"
            )
        return world

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the agent was made for.

        Raises
        ------
        HpcgymError : it has other actions or features, or nothing has been learned.
        """
        if self.network is None:
            raise HpcgymError(f"{self.name}: nothing has been learned; call train first")
        check_sizes(self.network, self.check(env).observation_space, self.name)

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None) -> int:
        """Return the index of the visible job with the highest score, the first of equals."""
        assert self.network is not None
        names = ("cluster", "queue", "time", "jobs", "mask")
        tensors = {n: torch.as_tensor(np.asarray(observation[n])[None]).float() for n in names}
        with torch.no_grad():
            scores = self.network.forward_actor(tensors)[0].numpy()
        return int(np.argmax(np.where(observation["mask"] > 0, scores, -np.inf)))

    def save(self, path: str | Path) -> None:
        """Write the agent, in such a way that a reader never sees half of it."""
        assert self.network is not None
        contents: dict[str, Any] = {
            "agent": NAME,
            "env_id": ENV_ID,
            "env_options": self.env_options,
            "network": {
                "n_features": self.network.of_job.in_features // 2,
                "n_context": self.network.of_context.in_features,
                "width": self.network.of_job.out_features,
            },
            "weights": self.network.state_dict(),
        }
        write(path, contents)


def check_sizes(network: MaskedJobNetwork, observation_space: Any, name: str) -> None:
    """Raise an HpcgymError if a network was made for other observations."""
    features, context = sizes(observation_space)
    known = network.of_job.in_features // 2
    if features != known:
        raise HpcgymError(f"{name} knows {known} features of jobs, not {features}")
    if context != network.of_context.in_features:
        raise HpcgymError(f"{name} was made for other fields of the observation")


def load(contents: Mapping[str, Any]) -> Clone:
    """Return the agent of a file's contents, which takes no more memory than its weights do."""
    agent = Clone()
    agent.made_for(contents["env_options"])
    with torch.device("meta"):
        network = MaskedJobNetwork(**contents["network"])
    weights = weights_for("weights", contents["weights"], network.state_dict())
    network.load_state_dict(weights, assign=True)
    agent.network = network.eval()
    return agent


# --- Its training ---------------------------------------------------------------------------------


@takes(CloneSettings)
def train(
    recording: str | Path | Recording, *, log: Logger | None = None, **settings: Any
) -> Clone:
    """Train a network to select the jobs that a policy has selected in JobSelection.

    The same arguments give the same agent.

    Parameters
    ----------
    recording : what it did: what ``record`` returned, or its data set of Minari.
    log : is told the loss, and how often the choice is the same, every 20 batches.
    **settings : those of :class:`hpcgym.agents.settings.CloneSettings`.

    Raises
    ------
    HpcgymError : a recording that selections cannot be learned from, or a training that leads to
        weights that are no numbers.
    """
    how = CloneSettings(**settings)
    recording = load_selections(recording)
    seen = recording.observations
    fields = {name: torch.as_tensor(v.astype(np.float32)) for name, v in seen.items()}
    actions = torch.as_tensor(recording.actions.astype(np.int64))
    torch.manual_seed(how.seed)
    n_context = sum(fields[name].shape[1] for name in ("cluster", "queue", "time"))
    network = MaskedJobNetwork(fields["jobs"].shape[2], n_context, how.width)
    optimizer = torch.optim.Adam(network.parameters(), lr=how.learning_rate)
    generator = torch.Generator().manual_seed(how.seed)
    agreement = 0.0
    for done in range(how.steps):
        rows = torch.randint(len(actions), (how.batch_size,), generator=generator)
        observation = {name: value[rows] for name, value in fields.items()}
        scores = network.forward_actor(observation)
        scores = scores.masked_fill(observation["mask"] < 0.5, -1e8)
        loss = cross_entropy(scores, actions[rows])
        loss_now = float(loss.detach())
        if not math.isfinite(loss_now):
            raise HpcgymError(DIVERGED)
        rate = how.learning_rate * max(1.0 - done / how.steps, 1e-3)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        same = float((scores.argmax(dim=1) == actions[rows]).float().mean())
        agreement += 0.02 * (same - agreement) if agreement else same
        if log is not None and ((done + 1) % _LOGGED == 0 or done + 1 == how.steps):
            row = {"train/loss": loss_now, "train/agreement": agreement}
            log(done + 1, {**row, "train/learning_rate": group["lr"]})
    agent = Clone()
    agent.network = network.eval()
    agent.made_for(recording.about["env_options"])
    return agent
