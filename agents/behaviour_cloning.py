"""Behaviour cloning: teach what a policy does to the network of MaskablePPO.

A clone of a good order is a start for MaskablePPO (``resume=``), and shows what the network can
represent and what the observation leaves out.

>>> from hpcgym.agents import behaviour_cloning
>>> from hpcgym.agents.recordings import record
>>> done = record("sjf", "lublin:jobs=2000,processors=64", record_episodes=2)
>>> behaviour_cloning.train(done, steps=20).name
'clone'
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from hpcgym.agents.maskable_ppo import MaskablePpo, MaskedJobNetwork
from hpcgym.agents.network_files import DIVERGED
from hpcgym.agents.practice import Logger
from hpcgym.agents.recordings import Recording, load_selections
from hpcgym.agents.settings import CloneSettings, takes
from hpcgym.errors import HpcgymError

NAME = "clone"

_LOGGED = 20  # batches between two that are logged


@takes(CloneSettings)
def train(
    recording: str | Path | Recording, *, log: Logger | None = None, **settings: Any
) -> MaskablePpo:
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
    agent = MaskablePpo()
    agent.name, agent.network = NAME, network.eval()
    agent.made_for(recording.about["env_options"])
    return agent
