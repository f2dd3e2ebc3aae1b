"""Dispatchers that act in environments: experts to be compared with, and to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.baselines.dispatchers import Dispatcher
    from hpcgym.dispatching.view import PassView


class Expert:
    """A dispatcher with the interface of an agent, for JobSelection and QueueOrdering.

    It is asked with the visible jobs as the queue. Its actions put the jobs that it starts first,
    then a job that does not fit beside them, which ends the pass, then the others by submission.
    So without backfilling an environment starts what the dispatcher does, on nodes of the
    environment's own choice; only where all others fit too, one more starts. In JobSelection that
    is so with ``reservation="revised"``.

    Parameters
    ----------
    dispatcher : see :func:`hpcgym.simulate`.
    name : what it is called.

    Attributes
    ----------
    order : (k,) int64, the places in the window in the order of the last action.
    bound : what the dispatcher has proved of the objective that it last decided by, nan if nothing.
    rules : rules that the environment must have.
    """

    def __init__(self, dispatcher: Dispatcher, name: str) -> None:
        self.dispatcher, self.name = dispatcher, name
        self.rules = {"backfill": "none"}
        self.order: NDArray[np.int64] = np.zeros(0, np.int64)
        self.bound = np.nan
        self._env: Any = None

    def __repr__(self) -> str:
        return f"Expert({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at an environment; to be called after each reset.

        Raises
        ------
        HpcgymError : it backfills, its actions are weights, or it keeps selected jobs selected.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind not in ("selection", "ordering"):
            raise HpcgymError(f"expert {self.name!r} says what starts, and this action is weights")
        if env.scheduler_rules["backfill"] != "none":
            raise HpcgymError(f"expert {self.name!r} needs an environment with backfill='none'")
        if env.keeps_selected:
            needed = "an environment with reservation='revised'"
            raise HpcgymError(f"expert {self.name!r} needs {needed}")
        self._env = env

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the action: see :meth:`hpcgym.baselines.policies.Baseline.act`.

        Parameters
        ----------
        observation : not looked at.
        info : of the same reset or step; its ``window`` names the visible jobs.
        """
        if self._env is None:
            raise HpcgymError(f"expert {self.name!r}: call begin(env) after the reset, then act")
        visible = info["window"][info["window"] >= 0]
        self.order = self._ranked(self._env.pass_view(visible))
        if self._env.action_kind == "selection":
            return int(self.order[0])
        size = int(self._env.action_space.shape[0])
        action = np.full(size, -1.0, np.float32)
        action[self.order] = np.linspace(1.0, -1.0, size, dtype=np.float32)[: len(self.order)]
        return action

    def _ranked(self, view: PassView) -> NDArray[np.int64]:
        """Return all places of the view, those that start first."""
        from hpcgym.dispatching.asking import ask  # with numba, which the names alone do without

        logged = len(getattr(self.dispatcher, "log", []))
        answer = [one[0] if isinstance(one, tuple) else one for one in ask(self.dispatcher, view)]
        log: list[Any] = getattr(self.dispatcher, "log", [])
        self.bound = float(log[-1].get("bound", np.nan)) if len(log) > logged else np.nan
        starts = np.array(answer, np.int64)
        others = np.setdiff1d(np.arange(len(view.job)), starts)
        # with all that starts tried before it, what does not follow does not fit beside it
        begun = len(view.in_order(starts))
        blocked = (p for p in others if len(view.in_order([*starts, p])) == begun)
        first = np.array(list(islice(blocked, 1)), np.int64)
        return np.concatenate([starts, first, np.setdiff1d(others, first)])
