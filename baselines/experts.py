"""Dispatchers that act in environments: experts to be compared with, and to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import Scheduler

if TYPE_CHECKING:
    from hpcgym.baselines.dispatchers import Dispatcher
    from hpcgym.scheduler.dispatchers.view import PassView


class Expert:
    """A dispatcher with the interface of an agent, for JobSelection and QueueOrdering.

    It is asked with the visible jobs as the queue. Its actions put the jobs that it starts first,
    then a job that does not fit beside them, which ends the pass, then the others by submission.
    So without backfilling an environment starts what the dispatcher does, on nodes of the
    environment's own choice; only where all others fit too, one more starts. In JobSelection that
    is so with ``reservation="revised"``. Expected ends are corrected as the environment says, which
    is "requested" if nothing else is said, and never "next-second".

    Parameters
    ----------
    dispatcher : a callable, as :func:`hpcgym.simulate` takes it. The nodes that it names, if it
        does, are looked at only to see whether they are free.
    name : what it is called; by default what the callable is.

    Attributes
    ----------
    order : (k,) int64, the places in the window in the order of the last action.
    bound : what the dispatcher has proved of the objective that it last decided by, nan if nothing.
    rules : rules that the environment must have.

    Raises
    ------
    HpcgymError : no callable, or a class.

    Examples
    --------
    >>> from hpcgym.baselines.experts import Expert
    >>> def widest(view):
    ...     return view.in_order((-view.units).argsort(kind="stable"))
    >>> Expert(widest)
    Expert('widest')
    """

    def __init__(self, dispatcher: Dispatcher, name: str | None = None) -> None:
        Scheduler(dispatcher=dispatcher)  # which says what is none
        told = getattr(dispatcher, "name", None) or getattr(dispatcher, "__name__", None)
        self.dispatcher = dispatcher
        self.name = name or str(told or type(dispatcher).__name__)
        self.rules = {"backfill": "none"}
        self.order: NDArray[np.int64] = np.zeros(0, np.int64)
        self.bound = np.nan
        self._env: Any = None

    def __repr__(self) -> str:
        return f"Expert({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at an environment; to be called after each reset.

        The dispatcher is told as by :func:`hpcgym.simulate`: its ``begin()`` is called, if any.

        Raises
        ------
        HpcgymError : it backfills, its actions are weights, or it keeps selected jobs selected.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind not in ("selection", "ordering"):
            raise HpcgymError(f"expert {self.name!r} says what starts, and this action is weights")
        if env.scheduler_rules["backfill"] != "none":
            raise HpcgymError(f"expert {self.name!r} needs an environment with backfill='none'")
        if env.scheduler_rules["quota"] is not None:
            raise HpcgymError(
                f"expert {self.name!r} is not told of quotas, and this environment has some"
            )
        if env.keeps_selected:
            needed = "an environment with reservation='revised'"
            raise HpcgymError(f"expert {self.name!r} needs {needed}")
        from hpcgym.scheduler.dispatchers.asking import (
            begin,
        )

        begin(self.dispatcher)
        self._env = env

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the action: see :meth:`hpcgym.baselines.policies.Baseline.act`.

        Parameters
        ----------
        observation : not looked at.
        info : of the same reset or step; its ``window`` names the visible jobs.

        Raises
        ------
        HpcgymError : a wrong answer of the dispatcher, as by :func:`hpcgym.simulate`; and that it
            starts nothing while nothing runs, also where jobs are still to come.
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

    @property
    def _log(self) -> list[Any]:
        """What the dispatcher has logged; nothing of one whose ``log`` is something else."""
        log = getattr(self.dispatcher, "log", None)
        return log if isinstance(log, list) else []

    def _ranked(self, view: PassView) -> NDArray[np.int64]:
        """Return all places of the view, those that start first."""
        from hpcgym.scheduler.dispatchers.asking import ask, check_fits, check_starts

        logged = len(self._log)
        answer = ask(self.dispatcher, view)
        check_fits(self.dispatcher, view, answer)
        check_starts(self.dispatcher, view, answer)
        last = self._log[-1] if len(self._log) > logged else None
        self.bound = float(last.get("bound", np.nan)) if isinstance(last, Mapping) else np.nan
        starts = np.array([start.place for start in answer], np.int64)
        others = np.setdiff1d(np.arange(len(view.job)), starts)
        # with all that starts tried before it, what does not follow does not fit beside it
        begun = len(view.in_order(starts))
        blocked = (p for p in others if len(view.in_order([*starts, p])) == begun)
        first = np.array(list(islice(blocked, 1)), np.int64)
        return np.concatenate([starts, first, np.setdiff1d(others, first)])
