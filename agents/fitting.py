"""Learning from recordings, batch by batch: what clones and CQL do beside their losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from hpcgym.agents.common import Budget
from hpcgym.agents.logs import tensorboard_log
from hpcgym.agents.maskable_ppo import ENV_ID, JobNetwork, network_of, shape_of
from hpcgym.agents.recordings import Recording
from hpcgym.errors import HpcgymError
from hpcgym.progress import SHOW_S

_LOGGED = 20  # batches between two that are logged


def network_for(
    recording: Recording, before: Mapping[str, Any], width: int, unfit: str
) -> JobNetwork:
    """Return a network for these observations, new or from a file.

    Parameters
    ----------
    before : the contents of the file, empty for a new one.
    width : of a new one.
    unfit : what is said of a file whose network is for other features.

    Raises
    ------
    HpcgymError : such a file.
    """
    seen = recording.observations
    n_context = sum(seen[name].shape[1] for name in ("cluster", "queue", "time"))
    n_features = seen["jobs"].shape[2]
    if not before:
        return JobNetwork(n_features, n_context, width)
    network = network_of(before)
    shape = shape_of(network)
    if (shape["n_features"], shape["n_context"]) != (n_features, n_context):
        raise HpcgymError(unfit)
    return network


def contents_of(
    name: str,
    recording: Recording,
    network: JobNetwork,
    optimizer: torch.optim.Optimizer,
    steps: int,
    seed: int,
) -> dict[str, Any]:
    """Return what a file of a network says that was made from a recording."""
    return {
        "agent": name,
        "env_id": ENV_ID,
        "env_options": dict(recording.about["env_options"]),
        "network": shape_of(network),
        "weights": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "steps": steps,
        "seed": seed,
    }


def descend(
    optimizer: torch.optim.Optimizer, loss: torch.Tensor, learning_rate: float, left: float
) -> None:
    """Make a step against the gradient, smaller as less of the budget is ``left``, from 1 to 0."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * max(left, 1e-3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def in_batches(
    name: str,
    learn: Callable[[], Mapping[str, float]],
    budget: Budget,
    words: str,
    *,
    tensorboard: str | Path | None,
    save: Callable[[], None],
    checkpoint_s: float,
    show: Callable[[str], None] | None,
) -> None:
    """Learn from batches until the budget is spent.

    Parameters
    ----------
    name : of the agent: of the folder of its logs, and before each key.
    learn : learns from one batch; returns what there is to tell.
    words : how that is shown, with its keys in braces.
    tensorboard : folder for TensorBoard's logs, or None.
    save : is called every ``checkpoint_s`` seconds.
    show : is given a line every few seconds, or None.

    Raises
    ------
    HpcgymError : logs without TensorBoard.
    """
    log = None if tensorboard is None else tensorboard_log(Path(tensorboard) / name)
    saved_s = shown_s = 0.0
    while budget.left > 0:
        told = learn()
        budget.done += 1
        if log is not None and budget.done % _LOGGED == 0:
            log(budget.done, {f"{name}/{key}": value for key, value in told.items()})
        spent = budget.spent_s
        if spent - saved_s > checkpoint_s:
            saved_s = spent
            save()
        if show is not None and (spent - shown_s > SHOW_S or budget.left == 0):
            shown_s = spent
            show(
                f"{1 - budget.left:4.0%}  {budget.done:,} batches  "
                f"{(budget.done - budget.first) / max(spent, 1e-9):,.0f} batches/s  "
                f"{words.format(**told)}"
            )
