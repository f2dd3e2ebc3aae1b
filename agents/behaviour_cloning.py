"""Behaviour cloning: record what a policy does, and teach it to the network of MaskablePPO.

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

import gymnasium
import numpy as np
import torch
from torch.nn.functional import cross_entropy

import hpcgym  # noqa: F401  its import registers the environments
from hpcgym.agents.common import Budget, keeping, one_thread
from hpcgym.agents.maskable_ppo import ENV_ID, JobAgent, JobNetwork, network_of, shape_of
from hpcgym.agents.network_files import adam_state, read_before, write
from hpcgym.agents.recordings import Recording, check_selections, load_recording, save_recording
from hpcgym.agents.settings import CloneSettings, RecordSettings, takes
from hpcgym.agents.specs import OF_WORKLOADS, plain_options, settled_options
from hpcgym.baselines import find_baseline
from hpcgym.envs import any_version
from hpcgym.errors import HpcgymError
from hpcgym.files import shaped
from hpcgym.progress import SHOW_S

NAME = "clone"


@takes(RecordSettings)
def record(
    policy: Any,
    workload: Any,
    output: str | Path | None = None,
    *,
    env_id: str = ENV_ID,
    cluster: Any = None,
    env_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Recording:
    """Drive a policy through an environment, and return (and write) its transitions.

    Parameters
    ----------
    policy : what :func:`hpcgym.baselines.find_baseline` takes, or an object with
        ``act(observation, info)`` and maybe ``begin(env)``.
    workload : what to run, as for :func:`hpcgym.load_workload`.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    output : file, a compressed ``.npz`` with the fields of :class:`Recording`: observations under
        their own names, and ``about`` as JSON.
    env_id, env_options : the environment.
    **settings : those of :class:`hpcgym.agents.settings.RecordSettings`.

    Examples
    --------
    >>> from hpcgym.agents.behaviour_cloning import record
    >>> done = record("saf", "lublin:jobs=600,processors=64", record_episodes=1, jobs=100)
    >>> done.observations["jobs"].shape[1:], int(done.terminations.sum())
    ((128, 8), 1)
    """
    how = RecordSettings.of("record", settings)
    for name in OF_WORKLOADS:
        if name in (env_options or {}):
            raise HpcgymError(f"env_options: {name} is for the recording or the workload")
    actor = policy if hasattr(policy, "act") else find_baseline(policy)
    options = plain_options({**getattr(actor, "rules", {}), **(env_options or {})})
    try:
        with any_version():
            env = gymnasium.make(
                env_id, disable_env_checker=True, workload=workload, cluster=cluster,
                **how.of_episodes(), **options,
            )  # fmt: skip
    except gymnasium.error.Error as error:
        raise HpcgymError(f"env_id {env_id!r}: {error}") from None
    options = settled_options(env.unwrapped, options)
    rows: list[tuple[Any, ...]] = []
    names = []
    for number in range(how.record_episodes):
        observation, info = env.reset(seed=how.seed if number == 0 else None)
        if hasattr(actor, "begin"):
            actor.begin(env.unwrapped)
        over = False
        while not over:
            action = actor.act(observation, info)
            following, reward, terminated, truncated, info = env.step(action)
            order, bound = getattr(actor, "order", ()), getattr(actor, "bound", np.nan)
            rows.append((observation, action, float(reward), terminated, order, bound))
            observation, over = following, terminated or truncated
        names.append(info["episode_name"])
    env.close()
    about = {
        "policy": getattr(actor, "name", type(actor).__name__),
        "env_id": env_id,
        "env_options": options,
        "episodes": names,
        "seed": how.seed,
    }
    recording = _stacked(rows, about)
    if output is not None:
        save_recording(output, recording)
    return recording


def _stacked(rows: list[tuple[Any, ...]], about: dict[str, Any]) -> Recording:
    """Return transitions as arrays."""
    observations, actions, rewards, ends, served, bounds = zip(*rows, strict=True)
    if not isinstance(observations[0], Mapping):
        observations = tuple({"observation": one} for one in observations)
    fields = {name: np.stack([one[name] for one in observations]) for name in observations[0]}
    orders = np.full((len(rows), max(map(len, served))), -1, np.int32)
    for row, order in zip(orders, served, strict=True):
        row[: len(order)] = order
    return Recording(
        fields,
        np.stack(actions),
        np.array(rewards),
        np.array(ends),
        orders,
        np.array(bounds, np.float64),
        about,
    )


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
    source = "recording"
    if not isinstance(recording, Recording):
        source, recording = str(recording), load_recording(recording)
    with shaped(source, "a recording"):
        if recording.about["env_id"] != ENV_ID or "observation" in recording.observations:
            raise HpcgymError(
                f"only what was done in {ENV_ID} with observation='dict' can be cloned"
            )
        check_selections(recording)
    budget = Budget(steps, minutes, before.get("steps", 0))
    torch.manual_seed(how.seed)
    with shaped(resume, f"the file of a {NAME}"):
        network = _network(recording, before, resume, how.width)
        optimizer = torch.optim.Adam(network.parameters(), lr=how.learning_rate)
        if before:
            optimizer.load_state_dict(adam_state(before["optimizer"], optimizer))

    def save() -> None:
        if output is not None:
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

    with keeping(save, lambda: budget.done > budget.first, network), one_thread():
        _fit(
            network, optimizer, recording, budget, how, tensorboard, save, checkpoint_s, show
        )  # fmt: skip
    return JobAgent(network, recording.about["env_options"], NAME)


def _network(recording: Recording, before: Mapping[str, Any], path: Any, width: int) -> JobNetwork:
    """Return a network for these observations, new or from a file."""
    fields = recording.observations
    n_context = sum(fields[name].shape[1] for name in ("cluster", "queue", "time"))
    n_features = fields["jobs"].shape[2]
    if not before:
        return JobNetwork(n_features, n_context, width)
    network = network_of(before)
    shape = shape_of(network)
    if (shape["n_features"], shape["n_context"]) != (n_features, n_context):
        raise HpcgymError(f"{path} holds no {NAME} with the same features")
    return network


def _fit(
    network: JobNetwork,
    optimizer: torch.optim.Optimizer,
    recording: Recording,
    budget: Budget,
    how: CloneSettings,
    tensorboard: Any,
    save: Callable[[], None],
    checkpoint_s: float,
    show: Callable[[str], None] | None,
) -> None:
    """Make the recorded choices likely, batch by batch."""
    seen = recording.observations
    fields = {name: torch.as_tensor(np.asarray(seen[name], np.float32)) for name in seen}
    actions = torch.as_tensor(recording.actions.astype(np.int64))
    generator = torch.Generator().manual_seed(how.seed + budget.first)
    log = _log(tensorboard)
    saved_s = shown_s = agreement = 0.0
    while budget.left > 0:
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
        budget.done += 1
        same = float((scores.argmax(dim=1) == actions[rows]).float().mean())
        agreement += 0.02 * (same - agreement) if agreement else same
        if log is not None and budget.done % 20 == 0:
            log.add_scalar("clone/loss", loss_now, budget.done)
            log.add_scalar("clone/agreement", agreement, budget.done)
        spent = budget.spent_s
        if spent - saved_s > checkpoint_s:
            saved_s = spent
            save()
        if show is not None and (spent - shown_s > SHOW_S or budget.left == 0):
            shown_s = spent
            show(
                f"{1 - budget.left:4.0%}  {budget.done:,} batches  "
                f"{(budget.done - budget.first) / max(spent, 1e-9):,.0f} batches/s  "
                f"the same choice {agreement:.1%}"
            )
    if log is not None:
        log.close()


def _log(folder: Any) -> Any:
    """Return a writer of TensorBoard's logs, or None."""
    if folder is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(Path(folder) / NAME))
