"""The observation: its fields, spaces, columns of jobs, and the arrays that callers are given."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadWarning, check_choice, unknown, warn_caller
from hpcgym.machine.pool import ANY_NUMBER, Cluster
from hpcgym.names import LICENCE, WITH_QOS
from hpcgym.own_code import check_takes
from hpcgym.scheduler.policies.expressions import Expression, is_expression, read_expression
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.restrictions import Quota
from hpcgym.workload.amounts import amount_problem
from hpcgym.workload.model import Workload

HOUR = 3600.0  # [s]
#: [s] from now: when the share of free processors is looked at
HORIZONS = np.array([60, 600, 3600, 14_400, 43_200, 86_400, 259_200, 604_800], np.int64)
ON_AT = 1 + len(HORIZONS)  # where the share of what is free and on stands
SHADOW_AT = ON_AT + 1  # where the shadow time of the head stands, and then its extra processors
CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE = SHADOW_AT + 2, 6, 4
QUEUE_AT = CLUSTER_SIZE
TIME_AT = QUEUE_AT + QUEUE_SIZE
JOBS_AT = TIME_AT + TIME_SIZE

#: What is to be seen of power, in order: the field "power".
POWER = (
    *("true_power", "charged_power", "cap_now", "cap_left", "cap_next", "cap_in"),
    *("energy_left", "energy_saved", "power_left", "period_left", "period_in"),
    *("nodes_off", "nodes_switching", "nodes_busy", "ceiling_now"),
)
POWER_SIZE = len(POWER)
#: Numbers about each shape that a job may have, and about the user whose job it is.
SHAPE_SIZE, USER_SIZE = 3, 3
#: Of "progress": how much of the episode is over, and the time up to its horizon.
PROGRESS_SIZE = 2

Observation = NDArray[np.float32] | dict[str, NDArray[Any]]


class Layout:
    """Where the fields of an observation lie in a flat row of float32.

    Parameters
    ----------
    window, width : shape of the field "jobs".
    flat : whether observations are the rows themselves, or dicts of fields.
    power : how many numbers say what is known of power, behind those of the queue; 0: none do.
    shapes : how many shapes the next job may be submitted in; 0: its shape is not asked for.

    Attributes
    ----------
    actions, scores : how many indices and how many numbers stand for visible jobs in actions.
    power_at, shapes_at, end_at : where these fields begin, and "progress", which is the last.
    size : of a row.
    """

    def __init__(
        self, window: int, width: int, flat: bool, power: int = 0, shapes: int = 0
    ) -> None:
        self.actions = self.scores = window
        fields: dict[str, tuple[int, ...]] = {
            "cluster": (CLUSTER_SIZE,),
            "queue": (QUEUE_SIZE,),
            "time": (TIME_SIZE,),
            "jobs": (window, width),
            "mask": (window,),
        }
        if power:
            fields["power"] = (power,)
        if shapes:
            fields |= {"shapes": (shapes, SHAPE_SIZE), "user": (USER_SIZE,)}
        self._lay(fields, flat, ("time", "jobs", "power"))
        self.power_at = self.end_at - power
        self.shapes_at = self.end_at - bool(shapes) * (SHAPE_SIZE * shapes + USER_SIZE)

    def _lay(
        self, fields: dict[str, tuple[int, ...]], flat: bool, signed: tuple[str, ...] = ()
    ) -> None:
        """Note fields of these shapes in their order; ``signed``: those that may be negative."""
        fields = {**fields, "progress": (PROGRESS_SIZE,)}
        self.flat, self._fields, self._signed = flat, fields, signed
        sizes = [math.prod(shape) for shape in fields.values()]
        stops = dict(zip(fields, np.cumsum(sizes).tolist(), strict=True))
        self.size = sum(sizes)
        self.end_at = self.size - PROGRESS_SIZE
        self._visible = fields["mask"][0]
        self._parts = [
            (name, slice(stop - size, stop))
            for (name, stop), size in zip(stops.items(), sizes, strict=True)
            if name != "mask"
        ]
        self._tables = [(name, shape) for name, shape in fields.items() if len(shape) > 1]

    @property
    def space(self) -> spaces.Box | spaces.Dict:
        """The space of an observation."""
        if self.flat:
            return spaces.Box(-1.0 if self._signed else 0.0, 1.0, (self.size,), np.float32)
        boxes: dict[str, spaces.Space[Any]] = {
            name: spaces.Box(-1.0 if name in self._signed else 0.0, 1.0, shape, np.float32)
            for name, shape in self._fields.items()
        }
        return spaces.Dict(boxes | {"mask": spaces.MultiBinary(self._visible)})

    def of(self, rows: NDArray[np.float32], masks: NDArray[np.int8]) -> Observation:
        """Return an observation as views of a row and its mask, or of those of many environments.

        Copies of them make a copy of the observation.
        """
        if self.flat:
            return rows
        seen = self.fields(rows)
        seen["mask"] = masks[..., : self._visible]
        return seen

    def fields(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the fields of a row, or of many, but the mask, as views."""
        if rows.ndim == 1:
            fields = {name: rows[part] for name, part in self._parts}
        else:
            fields = {name: rows[:, part] for name, part in self._parts}
        for name, shape in self._tables:
            fields[name] = fields[name].reshape(*rows.shape[:-1], *shape)
        return fields


MACHINE_SIZE, JOB_SIZE, NEIGHBOUR_SIZE, PAIR_SIZE = 8, 8, 5, 2


class PairLayout(Layout):
    """The same where jobs share nodes.

    Parameters
    ----------
    window, neighbours : W and M, how many waiting and running jobs are shown.

    Attributes
    ----------
    scores : W (M + 1), how many pairs an action can name.
    actions : one more, for waiting: the entries of the mask.
    """

    def __init__(self, window: int, neighbours: int, flat: bool) -> None:
        self.window, self.neighbours = window, neighbours
        self.scores = window * (neighbours + 1)
        self.actions = self.scores + 1
        fields: dict[str, tuple[int, ...]] = {
            "machine": (MACHINE_SIZE,),
            "jobs": (window, JOB_SIZE),
            "neighbours": (neighbours, NEIGHBOUR_SIZE),
            "pairs": (window, neighbours, PAIR_SIZE),
            "mask": (self.actions,),
        }
        self._lay(fields, flat)
        self.power_at = self.end_at


# --- What is seen of visible jobs -----------------------------------------------------------------

USUAL_WINDOW = 128

#: Features of a visible job, in the order of their codes.
WINDOW_FEATURES = {
    "wait": "waiting time t",
    "requested": "requested time t",
    "predicted": "predicted run time t",
    "processors": "processors, a share",
    "area": "a / (a + m x 1 h), a its requested time x processors",
    "expansion": "wait / (wait + requested time): 1 - 1 / expansion factor",
    "fits": "1 if enough processors are free now, else 0",
    "leaves": "share that is free beyond its processors, at least 0",
    "policy_time": "run time t by `policy_estimate`",
    "within_quota": "1 if its quotas let it start now, else 0",
    "put_off": "in Inspector, how often it has been put off, as a share of `put_offs`",
    "past_shadow": "in Backfill, how long t it would run on beyond the shadow time",
    "limit_left": "what its quotas would leave if it started, of their bounds: the least; 1: none",
}
#: Those that there are by default; the others are expressions.
USUAL_FEATURES = (
    *("wait", "requested", "predicted", "processors", "area", "expansion", "fits", "leaves"),
    *("policy_time", "user_running", "user_waiting", "log(1+last_run)", "log(1+spread_run)"),
    "known_runs",
)


def is_rank(name: str) -> bool:
    """Return whether a feature is the place of a job by an expression among the visible ones."""
    return name.startswith("rank(") and name.endswith(")")


class WindowFeatures(NamedTuple):
    """The columns of the window: names, and what those are that are not of WINDOW_FEATURES."""

    names: tuple[str, ...]
    own: dict[str, Callable[[Any], Any]]  # users' own functions
    expressions: dict[str, Expression]


#: What else a feature may be, for who names one that there is not.
OR_EXPRESSION = "an expression, such as 'log(1+last_run)'"


def read_features(
    features: Any, workload: Workload, cluster: Cluster, quotas: Iterable[Quota]
) -> WindowFeatures:
    """Return the columns of the window, checked.

    Parameters
    ----------
    features : names, some maybe with functions.
    workload, cluster, quotas : which say what there is of the amounts that jobs ask for.
    """
    if isinstance(features, str) or not isinstance(features, (Sequence, Mapping)):
        raise HpcgymError(f"features must be names of features, not {features!r}")
    if not all(isinstance(name, str) for name in features):
        raise HpcgymError(f"features must be names of features, not {features!r}")
    given = features if isinstance(features, Mapping) else dict.fromkeys(features)
    if len(given) < len(features):
        raise HpcgymError("features: a feature is named twice")
    own = {name: function for name, function in given.items() if function is not None}
    expressions = {}
    for name in given:
        if name in WINDOW_FEATURES or name in own:
            continue
        compares = re.match(r"\s*\w+\s*=(?!=)", name)  # as in queue=debug
        if is_rank(name) or (is_expression(name) and not compares):
            expressions[name] = _expression(name)
        elif "=" in name:
            own[name] = _comparison(name)
        else:
            own[name] = _share(name, workload, cluster, quotas)
    for name, function in own.items():
        if not callable(function):
            raise HpcgymError(f"features: {name!r} must be a function of job columns")
        check_takes(f"features: {name!r}", function, "JobColumns")
    if not given:
        raise HpcgymError("features must name at least one feature")
    return WindowFeatures(tuple(given), own, expressions)


def _expression(name: str) -> Expression:
    """Return the expression of a feature, or of one that shows ranks by it."""
    expression = read_expression(name[5:-1] if is_rank(name) else name, "features")
    if expression.usage:
        raise HpcgymError(f"features: {name!r} depends on what users have used, which none shows")
    return expression


def _comparison(name: str) -> Callable[[Any], Any]:
    """Return the function of a feature such as ``queue=debug``."""
    word, _, called = (part.strip() for part in name.partition("="))
    if not called:
        raise HpcgymError(f"features: {name!r} compares with no name: such as {word}=debug")
    column = WITH_QOS[check_choice("features", word, WITH_QOS)]
    return partial(_is_called, column=column, called=called)


def _share(
    name: str, workload: Workload, cluster: Cluster, quotas: Iterable[Quota]
) -> Callable[[JobColumns], Any]:
    """Return the function of a feature such as ``gpu``: what jobs ask for, of what there is.

    That is what the nodes have, or else what a quota lets all jobs have together.
    """
    of_all = [dict(quota.bounds) for quota in quotas if not (quota.each or quota.where)]
    there_is = min((bounds[name] for bounds in of_all if name in bounds), default=0)
    if name in cluster.node_resources:
        there_is = int(cluster.capacity[:, cluster.resources.index(name)].sum())
    if 0 < there_is < ANY_NUMBER and not amount_problem(name):
        return partial(_asked_of, amount=name, there_is=there_is)
    if name in workload.per_unit or name.startswith(LICENCE):
        raise HpcgymError(
            f"features: {name!r} is a share of what there is of it, which neither nodes of the"
            f" machine say nor a quota of all jobs, such as everybody:{name}=8; or name"
            f" 'asked({name})'"
        )
    raise HpcgymError(unknown("features", name, WINDOW_FEATURES, OR_EXPRESSION))


def _asked_of(jobs: JobColumns, amount: str, there_is: int) -> Any:
    """Return what each job asks for of an amount, over what there is of it, (n_jobs,)."""
    return np.minimum(jobs.asked(amount) / there_is, 1.0)


def _is_called(jobs: JobColumns, column: str, called: str) -> Any:
    """Return whose number in a column is called so, (n_jobs,) bool.

    Warns
    -----
    WorkloadWarning : nobody's.
    """
    is_called = jobs.is_called(column, called)
    if not is_called.any():
        warn_caller(f"features: no job has {called!r} in {column}", WorkloadWarning)
    return is_called


def read_split_window(window: Any) -> tuple[int, bool]:
    """Return how many jobs are visible, and whether half of them are those that came last."""
    if isinstance(window, str):
        name, _, size = window.partition(":")
        if name == "split" and (not size or size.isdecimal()):
            visible = read_window("window", int(size) if size else USUAL_WINDOW)
            if visible > 1:
                return visible, True
        raise HpcgymError(
            f"window must be a number of jobs, 'split' or 'split:64' with such a number, not"
            f" {window!r}"
        )
    return read_window("window", window), False


def read_window(name: str, window: Any) -> int:
    """Return how many jobs are visible, checked."""
    if not isinstance(window, int) or isinstance(window, bool) or not 1 <= window <= 2**20:
        raise HpcgymError(f"{name} must be a whole number of at least 1 job, not {window!r}")
    return window


# --- What is told, in arrays that callers may keep ------------------------------------------------


class Outputs(NamedTuple):
    """What is told of environments, a row for each; all of it is written at each step."""

    observations: NDArray[np.float32]  # (n, size of an observation)
    # (n, window) 1 where there is a job; one more if BY_ACTION; where jobs share nodes (n, actions)
    masks: NDArray[np.int8]
    rewards: NDArray[np.float64]  # (n, n_rewards)
    ended: NDArray[np.bool_]  # (n,) whether the episode has ended by itself
    truncated: NDArray[np.bool_]  # (n,) whether it has ended by time
    # what infos say: the time, the number of visible jobs, their rows, -1 behind them
    told: NDArray[np.int64]  # (n, N_TOLD + window)
    terms: NDArray[np.float64]  # (n, N_TERMS) as of `World.batch`


N_TOLD = 2  # places of `Outputs.told` before the rows


MOST_SETS = 3  # sets of arrays: that of a step, of the one before, and of infos


class Lent:
    """A set of arrays, and what callers are given of them.

    Parameters
    ----------
    out : the arrays.
    layout : of observations.
    copy : whether observations and masks are lent as well; else each step overwrites them.

    Attributes
    ----------
    rewards : (num_envs,), or (num_envs, n_rewards) if there are several.
    """

    def __init__(self, out: Outputs, layout: Layout, copy: bool) -> None:
        self.out = out
        self.rewards = out.rewards[:, 0] if out.rewards.shape[1] == 1 else out.rewards[:]
        # what can be done must stay known, whatever is made of an observation
        self._masks = out.masks.copy() if copy else out.masks
        self._views = layout.of(out.observations, self._masks)
        self._lent = [*out[0 if copy else 2 :], self.rewards]
        if copy:
            seen = self._views.values() if isinstance(self._views, dict) else [self._views]
            self._lent += [self._masks, *seen]
        self._kept = 0

    def begin(self) -> None:
        """Count who refers to the arrays before anybody else has them."""
        self._kept = sum(map(getrefcount, self._lent))

    def is_kept(self) -> bool:
        """Return whether anybody has one of the arrays, or a view of one."""
        return sum(map(getrefcount, self._lent)) != self._kept

    def observation(self) -> Observation:
        """Return the observation, of arrays that are lent."""
        if not isinstance(self._views, dict):
            return self._views
        if self._masks is not self.out.masks:
            np.copyto(self._masks, self.out.masks)
        return self._views.copy()
