"""The logs that an environment plays: the same for good, or another one at each reset."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from hpcgym.elementary import exp, log
from hpcgym.envs.core.base import Definition, define
from hpcgym.envs.core.checks import settled
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError, is_number
from hpcgym.own_code import check_takes
from hpcgym.workload.model import Workload
from hpcgym.workload.stretching import stretched

_MOST_WEIGHT = 1e100  # of a log: weights are added up


class Played(NamedTuple):
    """What an environment is on one log.

    Attributes
    ----------
    definition, episodes : see :func:`hpcgym.envs.core.base.define`.
    stays : whether the same may be drawn again.
    """

    definition: Definition
    episodes: Episodes
    stays: bool = True


class Logs:
    """Where an environment has its jobs from.

    Parameters
    ----------
    cls : the class of the environment.
    workload : as an environment is given it: None, a log or its name; a function that returns one
        of them; or a list of pairs, each a log or function and its weight.
    stretch : bounds of the factor by which times between submissions are multiplied, or None. It is
        drawn so that its logarithm is uniform.
    arguments : all others of the environment.

    Attributes
    ----------
    draws : whether a reset draws a log, or how much it is stretched.
    first : one of what is played; that for good where nothing is drawn.

    Raises
    ------
    HpcgymError, WorkloadError : what is no log, weight or bound; and as of ``define``.
    """

    def __init__(self, cls: Any, workload: Any, stretch: Any, arguments: Mapping[str, Any]) -> None:
        self._cls, self._arguments = cls, arguments
        self._bounds = _read_stretch(stretch)
        self._among, self._shares = _read_logs(workload)
        self._known = {k: self._made(log) for k, log in enumerate(self._among) if not callable(log)}
        self.draws = self._bounds is not None or len(self._known) != 1 or len(self._among) > 1
        self.first = self.draw(np.random.default_rng(0))

    def draw(self, rng: np.random.Generator) -> Played:
        """Return what is played next: of one log for good, without a call of ``rng``."""
        k = int(rng.choice(len(self._among), p=self._shares)) if len(self._among) > 1 else 0
        played = self._known.get(k)
        if played is None:
            played = self._made(drawn_log(self._among[k], rng))._replace(stays=False)
        if self._bounds is None:
            return played
        factor = exp(rng.uniform(*self._bounds))
        jobs = stretched(played.definition.options.workload, factor)
        return self._made(jobs)._replace(stays=False)

    def _made(self, log: Any) -> Played:
        definition, episodes = define(self._cls, log, self._arguments)
        return Played(settled(definition, episodes), episodes)


def is_weighted(workload: Any) -> bool:
    """Return whether a workload is a list of pairs, each with a weight."""
    return (
        isinstance(workload, list | tuple)
        and len(workload) > 0
        and all(isinstance(each, list | tuple) for each in workload)
    )


def drawn_log(draw: Callable[[np.random.Generator], Any], rng: np.random.Generator) -> Any:
    """Return the log that a user's function makes, checked.

    Raises
    ------
    HpcgymError : it does not take the generator; what it returns is no log, nor the name of one.
    """
    check_takes("workload", draw, "numpy's generator of the environment")
    log = draw(rng)
    if isinstance(log, Workload | str | os.PathLike):
        return log
    raise HpcgymError(
        "workload: the function must return a Workload, or what names one to hpcgym.load_workload,"
        f" not {log!r}"
    )


def _read_logs(workload: Any) -> tuple[list[Any], list[float]]:
    """Return the logs and functions of a workload, and the share of each."""
    if not is_weighted(workload):
        if isinstance(workload, list | tuple):
            raise HpcgymError(
                "workload: several logs need weights, workload=[(log, 2), (other, 1)], and each"
                " reset draws one; in gymnasium.make_vec(id, num_envs=..., workload=[...]) a list"
                " without weights has a log for each environment"
            )
        return [workload], [1.0]
    logs, weights = [], []
    for pair in workload:
        if len(pair) != 2 or pair[0] is None or isinstance(pair[0], list | tuple):
            raise HpcgymError("workload: a list with weights has pairs, each a log and its weight")
        log, weight = pair
        if not is_number(weight) or not 0 < weight <= _MOST_WEIGHT:
            raise HpcgymError(
                f"workload: a weight must be above 0 and at most {_MOST_WEIGHT:g}, not {weight!r}"
            )
        logs.append(log)
        weights.append(float(weight))
    return logs, (np.array(weights) / sum(weights)).tolist()


def _read_stretch(stretch: Any) -> tuple[float, float] | None:
    """Return the logarithms of the bounds."""
    if stretch is None:
        return None
    bounds = tuple(stretch) if isinstance(stretch, list | tuple) else ()
    if len(bounds) != 2 or not all(is_number(each) for each in bounds):
        raise HpcgymError(f"stretch must be two numbers such as (0.75, 1.1), not {stretch!r}")
    least, most = bounds
    if not 0 < least <= most < math.inf:
        raise HpcgymError(f"stretch must be two numbers above 0, the lesser first, not {stretch!r}")
    return log(least), log(most)
