"""Where agents practise: environments of a workload's parts.

An agent that learns has ``train(make, seed, steps)``, as in the suite. ``make`` is a :class:`Make`:
the suite has one for each of its tasks, and :func:`maker` makes one for any workload.

The numbers of a training go to a log, which is called with the steps done and a flat dictionary of
numbers, ``log(2048, {"train/mean_bsld": 31.5})``. Any function of these two is one; here are those
for a table and for TensorBoard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpcgym.envs.core.base import kind_of
from hpcgym.errors import HpcgymError, check_choice, installing
from hpcgym.files.writing import csv_text, whole_text
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import Workload
from hpcgym.workload.load import load_workload

# --- Environments ---------------------------------------------------------------------------------

#: The share of the time for learning that is held out, and by which agents are chosen.
HELD = 0.25


class Make:
    """Makes the environments of the parts of logs that an agent may learn from.

    It is called as ``make(part="train", num_envs=None, log=None, **more)``: ``part`` is "train" or
    "validation", ``log`` the name of a log, by default the first, or a list of names, which a
    vector environment plays in turn, and ``more`` are arguments of the environment that differ.

    Parameters
    ----------
    logs : name -> all jobs that an agent may see. Jobs of the first three quarters of their time
        are for training, the others for validation (:meth:`hpcgym.Workload.row_at`).
    env_id, options : the environment, with its arguments other than ``workload`` and ``part``.

    Attributes
    ----------
    logs : as given.
    kind : the kind of an agent's decisions, the ``action_kind`` of the environment.
    """

    def __init__(
        self,
        logs: Mapping[str, Workload],
        env_id: str,
        options: Mapping[str, Any],
    ) -> None:
        self.logs = dict(logs)
        self._env_id, self._options = env_id, options
        self.kind = kind_of(env_id)

    def __call__(
        self,
        part: str = "train",
        num_envs: int | None = None,
        log: str | Sequence[str] | None = None,
        **more: Any,
    ) -> Any:
        """Return an environment, or a vector environment of ``num_envs``."""
        import gymnasium

        check_choice("part", part, ("train", "validation"))

        def seen(name: str) -> Workload:
            jobs = self.logs[check_choice("log", name, self.logs)]
            stop = jobs.row_at(1.0 - HELD) if part == "train" else len(jobs)
            return jobs.take(slice(0, stop), name=jobs.name)

        named = next(iter(self.logs)) if log is None else log
        workload = seen(named) if isinstance(named, str) else [seen(name) for name in named]
        given = {**self._options, **more, "workload": workload, "train_share": 1.0 - HELD}
        given["part"] = "all" if part == "train" else "test"
        if num_envs is None:
            return gymnasium.make(self._env_id, disable_env_checker=True, **given)
        return gymnasium.make_vec(self._env_id, num_envs=num_envs, **given)

    @property
    def scheduler(self) -> Scheduler:
        """The rules around an agent's decisions, such as the way to backfill."""
        env = self()
        rules: Scheduler = env.unwrapped.options.scheduler
        env.close()
        return rules


def maker(workload: Any, env_id: str, options: Mapping[str, Any], train_share: float = 0.5) -> Make:
    """Return a :class:`Make` of the parts of a workload from which an agent may learn.

    Parameters
    ----------
    workload : what :func:`hpcgym.load_workload` takes, or a ``Workload``; or a list of these.
    env_id, options : the environment, with its arguments but for ``workload`` and ``part``.
    train_share : of each log's time; the jobs that come later an agent does not see.

    Raises
    ------
    HpcgymError : a share that cannot be, no workload, or two of one name.
    """
    if not isinstance(train_share, float | int) or not 0 < train_share <= 1:
        raise HpcgymError(f"train_share must be above 0, and at most 1, not {train_share!r}")
    several = workload if isinstance(workload, list | tuple) else [workload]
    logs: dict[str, Workload] = {}
    for log in several:
        whole = log if isinstance(log, Workload) else load_workload(log)
        if whole.name in logs:
            raise HpcgymError(f"workload: {whole.name} is there twice")
        known = len(whole) if train_share == 1 else whole.row_at(train_share)
        logs[whole.name] = whole.take(slice(0, known), name=whole.name)
    if not logs:
        raise HpcgymError("workload: no log is given to learn from")
    return Make(logs, env_id, options)


def acting(env: Any, name: str, *kinds: str) -> Any:
    """Return an environment itself; raise an HpcgymError unless its ``action_kind`` is of these."""
    world = getattr(env, "unwrapped", env)
    if getattr(world, "action_kind", "") not in kinds:
        listed = " or ".join(kinds)
        raise HpcgymError(f"{name} acts in environments of the kind {listed}, not in this one")
    return world


class Spending:
    """How many steps of environments may be done, and have been; all that are done count."""

    def __init__(self, steps: int) -> None:
        if steps < 1:
            raise HpcgymError(f"steps must be at least 1, not {steps}")
        self.steps, self.done = steps, 0

    def pays(self, steps: float) -> bool:
        """Tell whether so many are left."""
        return self.done + steps <= self.steps


# --- Where the numbers of a training go -----------------------------------------------------------

Logger = Callable[[int, Mapping[str, float]], None]

#: What a table has of it, row by row.
Rows = Sequence[Mapping[str, str]]


def csv_log(path: str | Path, past: Rows = ()) -> Logger:
    """Return a log that is a table: a row a call, a column "steps" and one for each key.

    The file is written anew at each call, whole, with the rows ``past`` first.
    """
    rows: list[Mapping[str, str]] = [*past]

    def log(steps: int, values: Mapping[str, float]) -> None:
        # as texts, so that what is no number stays what it is
        rows.append({"steps": str(steps), **{key: str(value) for key, value in values.items()}})
        with whole_text(path, folders=True) as file:
            file.write(csv_text(rows))

    return log


def tensorboard_log(folder: str | Path) -> Logger:
    """Return a log for TensorBoard.

    Raises
    ------
    HpcgymError : PyTorch or TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise HpcgymError(f"TensorBoard's logs need it: {installing('agents')} ({error})") from None
    writer: Any = SummaryWriter(str(folder))

    def log(steps: int, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, steps)
        writer.flush()

    return log
