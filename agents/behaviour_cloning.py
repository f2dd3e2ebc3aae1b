"""Behaviour cloning: teach what a policy does to the network of MaskablePPO.

A clone of a good order is a start for MaskablePPO (``resume=``), and shows what the network can
represent and what the observation leaves out.

>>> from hpcgym.agents import behaviour_cloning
>>> agent = behaviour_cloning.train(
...     "lublin:jobs=2000,processors=64", baseline="sjf", record_episodes=2, steps=20
... )
>>> agent.name
'clone'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from hpcgym.agents.maskable_ppo import (
    ENV_ID,
    Budget,
    JobAgent,
    JobNetwork,
    keeping,
    network_of,
    shape_of,
)
from hpcgym.agents.network_files import adam_state, read_before, write
from hpcgym.agents.practice import tensorboard_log
from hpcgym.agents.recordings import Recording, load_selections, record
from hpcgym.agents.settings import CloneSettings, RecordSettings, takes
from hpcgym.errors import HpcgymError
from hpcgym.files import shaped
from hpcgym.progress import SHOW_S

NAME = "clone"

_LOGGED = 20  # batches between two that are logged


@takes(CloneSettings)
def train(
    workload: Any = None,
    *,
    baseline: Any = "f1",
    recording: str | Path | Recording | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    output: str | Path | None = None,
    resume: str | Path | None = None,
    env_options: Mapping[str, Any] | None = None,
    tensorboard: str | Path | None = None,
    checkpoint_s: float = 120.0,
    show: Callable[[str], None] | None = None,
    **settings: Any,
) -> JobAgent:
    """Train a network to select the jobs that a policy selects in JobSelection.

    The same arguments give the same agent, if ``steps`` says how long.

    Parameters
    ----------
    workload : what to record on, as for :func:`hpcgym.load_workload`.
    baseline : the policy to clone, by name or as an object that acts.
    recording : what it did, instead: the file that ``record`` wrote, or what it returned.
    minutes, steps : how long; whichever is over first. A step is one batch.
    output : file of the agent, written at each checkpoint and at the end.
    resume : file of a clone to go on with.
    env_options : further arguments of the environment.
    tensorboard : folder for TensorBoard's logs.
    checkpoint_s : time between checkpoints [s].
    show : is given a line on the progress every few seconds.
    **settings : those of :class:`hpcgym.agents.settings.CloneSettings`.
    """
    how = CloneSettings.of("train", settings)
    before = read_before(resume, ENV_ID, NAME)
    if (workload is None) == (recording is None):
        raise HpcgymError("give either a workload to record on or a recording")
    if recording is None:
        given = {**before.get("env_options", {}), **(env_options or {})}
        recorded = {field.name: getattr(how, field.name) for field in fields(RecordSettings)}
        recording = record(baseline, workload, env_options=given, **recorded)
    recording = load_selections(recording)
    budget = Budget(steps, minutes, before.get("steps", 0))
    torch.manual_seed(how.seed)
    with shaped(resume, f"the file of a {NAME}"):
        network = _network_for(recording, before, how.width, resume)
        optimizer = torch.optim.Adam(network.parameters(), lr=how.learning_rate)
        if before:
            optimizer.load_state_dict(adam_state(before["optimizer"], optimizer))

    def save() -> None:
        if output is None:
            return
        contents = {
            "agent": NAME,
            "env_id": ENV_ID,
            "env_options": dict(recording.about["env_options"]),
            "network": shape_of(network),
            "weights": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "steps": budget.done,
            "seed": how.seed,
        }
        write(output, contents)

    log = None if tensorboard is None else tensorboard_log(Path(tensorboard) / NAME)
    learn = _learner(network, optimizer, recording, budget, how)
    saved_s = shown_s = 0.0
    with keeping(save, lambda: budget.done > budget.first, network):
        while budget.left > 0:
            told = learn()
            budget.done += 1
            if log is not None and budget.done % _LOGGED == 0:
                log(budget.done, {f"{NAME}/{key}": value for key, value in told.items()})
            spent = budget.spent_s
            if spent - saved_s > checkpoint_s:
                saved_s = spent
                save()
            if show is not None and (spent - shown_s > SHOW_S or budget.left == 0):
                shown_s = spent
                show(
                    f"{1 - budget.left:4.0%}  {budget.done:,} batches  "
                    f"{(budget.done - budget.first) / max(spent, 1e-9):,.0f} batches/s  "
                    f"the same choice {told['agreement']:.1%}"
                )
    return JobAgent(network, recording.about["env_options"], NAME)


def _network_for(
    recording: Recording, before: Mapping[str, Any], width: int, resume: str | Path | None
) -> JobNetwork:
    """Return a network for these observations, new of a width, or that of a file to go on with."""
    seen = recording.observations
    n_context = sum(seen[name].shape[1] for name in ("cluster", "queue", "time"))
    n_features = seen["jobs"].shape[2]
    if not before:
        return JobNetwork(n_features, n_context, width)
    network = network_of(before)
    shape = shape_of(network)
    if (shape["n_features"], shape["n_context"]) != (n_features, n_context):
        raise HpcgymError(f"{resume} holds no {NAME} with the same features")
    return network


def _learner(
    network: JobNetwork,
    optimizer: torch.optim.Optimizer,
    recording: Recording,
    budget: Budget,
    how: CloneSettings,
) -> Callable[[], dict[str, float]]:
    """Return what makes the recorded choices of a batch likely."""
    seen = recording.observations
    fields = {name: torch.as_tensor(np.asarray(seen[name], np.float32)) for name in seen}
    actions = torch.as_tensor(recording.actions.astype(np.int64))
    generator = torch.Generator().manual_seed(how.seed + budget.first)
    agreement = 0.0

    def learn() -> dict[str, float]:
        nonlocal agreement
        rows = torch.randint(len(actions), (how.batch_size,), generator=generator)
        observation = {name: value[rows] for name, value in fields.items()}
        scores = network.forward_actor(observation)
        scores = scores.masked_fill(observation["mask"] < 0.5, -1e8)
        loss = cross_entropy(scores, actions[rows])
        loss_now = float(loss.detach())
        if not math.isfinite(loss_now):
            raise HpcgymError(
                f"the training has led to a loss of {loss_now} in batch {budget.done + 1}; a lower"
                " learning_rate may help"
            )
        for group in optimizer.param_groups:
            group["lr"] = how.learning_rate * max(budget.left, 1e-3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        same = float((scores.argmax(dim=1) == actions[rows]).float().mean())
        agreement += 0.02 * (same - agreement) if agreement else same
        return {"loss": loss_now, "agreement": agreement}

    return learn
