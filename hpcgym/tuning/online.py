"""Weights chosen anew each week by the weeks before: what on-line tuning reaches.

Legrand 2018 asks what can be expected from on-line learning: each week has weights that serve it
far better than SAF does (w*), but which they are is known only afterwards. Here weights are chosen
for each week by those before it alone, and compared with SAF, with the best weights that never
change, known in hindsight, and with the best of each week. What a week was like is known when it is
over: of its jobs that still wait or run then, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.search import candidates, features_of, units_of
from hpcgym.errors import HpcgymError, check_whole
from hpcgym.evaluation.intervals import bootstrap
from hpcgym.evaluation.online import FIXED, learn_through
from hpcgym.progress import silence
from hpcgym.schedule.measures import HOUR
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep.batch import BatchSimulator
from hpcgym.workload.extracts import WEEK_S, weeks
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.schedule.result import Result

Values = NDArray[np.float64]  # (n_vectors, n_weeks) logarithms of mean bounded slowdowns

SAF = "saf"
BEST = "best of each week, in hindsight (w*)"

_SOME = 8  # weeks
_FEWEST = 4  # weeks before the first that is chosen for: SAF serves those


@dataclass(frozen=True)
class Online:
    """What on-line tuning reaches.

    Attributes
    ----------
    vectors : (n_vectors, n_features) the weights to choose from; the first is SAF's.
    features : what they weigh.
    choices : way to choose -> (n_weeks,) which vector each week has.
    by_week : (n_vectors, n_weeks) mean bounded slowdown of each week under each vector, from an
        empty machine.
    names : of the weeks.
    whole : way to choose -> mean bounded slowdown and longest wait [h] on the whole log, with
        weights that change at the beginning of each week.
    """

    vectors: NDArray[np.float64]
    features: tuple[str, ...]
    choices: dict[str, NDArray[np.int64]]
    by_week: NDArray[np.float64]
    names: list[str]
    whole: dict[str, tuple[float, float]]

    @property
    def table(self) -> pd.DataFrame:
        """A row for each way to choose.

        Columns: ``sum`` of the weekly mean bounded slowdowns, each week from an empty machine, and
        their geometric mean ``weekly_bsld``; how much that is above the best fixed weights,
        ``regret [%]``; its change against SAF with the 95 % interval of resamples of weeks; the
        share of the way from SAF to the best of each week, in logarithms; and of the whole log
        ``mean_bsld`` and ``max_wait_h``, where weights change at the beginning of each week.
        """
        import pandas as pd

        logs = np.log(self.by_week)
        of = {name: logs[chosen, np.arange(logs.shape[1])] for name, chosen in self.choices.items()}
        rows = []
        for name, mine in of.items():
            less = mine - of[SAF]
            low, high = (100 * (np.exp(end[0]) - 1) for end in bootstrap(less[:, None]))
            gap = float((of[BEST] - of[SAF]).mean())
            mean_bsld, max_wait = self.whole[name]
            rows.append(
                {
                    "weights": name,
                    "sum": float(np.exp(mine).sum()),
                    "weekly_bsld": float(np.exp(mine.mean())),
                    "regret [%]": 100 * float(np.exp((mine - of[FIXED]).mean()) - 1),
                    "against saf [%]": 100 * float(np.exp(less.mean()) - 1),
                    "interval": "" if np.isnan(low) else f"[{low:+.0f}, {high:+.0f}]",
                    "gap closed": float(less.mean()) / gap + 0.0 if gap else 0.0,  # no -0.0
                    "mean_bsld": mean_bsld,
                    "max_wait_h": max_wait,
                }
            )
        return pd.DataFrame(rows)


def tune_online(
    workload: Workload,
    features: str | Sequence[str] = "xnes6",
    *,
    scheduler: str | Scheduler = "spf",
    vectors: int = 3000,
    seed: int = 0,
    progress: Callable[[int, str, float], None] | None = None,
) -> Online:
    """Choose weights for each week by the weeks before, in several ways.

    Parameters
    ----------
    workload : a log of eight weeks or more.
    features : what is weighed, as for :class:`hpcgym.agents.xnes.Xnes`.
    scheduler : all rules but the policy, as there.
    vectors : how many vectors of weights there are to choose from: each feature alone, then random
        ones.
    seed : of the vectors.
    progress : told how many simulations are done, and what is done.

    Raises
    ------
    HpcgymError : a log of fewer weeks, an unknown feature, or rules that batches do not simulate.
    """
    say = progress or silence
    names = features_of(features)
    if "area" not in names:
        raise HpcgymError(f"features must have area, by which SAF goes; there are {names}")
    parts = weeks(workload)
    if len(parts) < 2 * _FEWEST:
        raise HpcgymError(
            f"{workload.name} has {len(parts)} weeks; to choose by past ones takes {2 * _FEWEST}"
        )
    pool = _vectors(parts, names, check_whole("vectors", vectors, 1), seed)
    batch = BatchSimulator(parts, names, scheduler)
    values = batch.run(pool, progress=lambda done: say(done, "weeks", np.nan))
    choices = _choices(np.log(values))
    numbers = np.array([int(part.name.rpartition(" ")[2]) for part in parts])
    whole = {}
    for number, (name, chosen) in enumerate(choices.items()):
        say(values.size + number, "whole log", np.nan)
        result = on_whole_log(workload, names, batch.scheduler, pool[chosen], numbers)
        whole[name] = float(result.bsld.mean()), float(result.wait.max()) / HOUR
    return Online(pool, names, choices, values, batch.names, whole)


def _vectors(
    parts: Sequence[Workload], features: tuple[str, ...], number: int, seed: int
) -> NDArray[np.float64]:
    """Return the weights to choose from: SAF's, each feature alone both ways, and random ones."""
    units = units_of("spread", parts[:_FEWEST], features)  # what is known before the first choice
    saf = np.zeros((1, len(features)))
    saf[0, features.index("area")] = -1.0
    drawn = candidates(np.random.default_rng(seed), len(features), number) / units.scale
    return np.vstack([saf, drawn])


def _choices(logs: Values) -> dict[str, NDArray[np.int64]]:
    """Return which vector each week has, by each way to choose."""
    n = logs.shape[1]
    ways: dict[str, Callable[[Values], int]] = {
        "by the week before": lambda past: int(past[:, -1].argmin()),
        f"by {_SOME} weeks before": lambda past: int(past[:, -_SOME:].sum(axis=1).argmin()),
        "by all weeks before": lambda past: int(past.sum(axis=1).argmin()),
        "by all weeks before, if clearly below saf": _clear,
    }
    chosen = {
        name: np.array([0 if k < _FEWEST else way(logs[:, :k]) for k in range(n)])
        for name, way in ways.items()
    }
    fixed = int(logs.sum(axis=1).argmin())
    return {
        SAF: np.zeros(n, np.int64),
        **chosen,
        FIXED: np.full(n, fixed),
        BEST: logs.argmin(axis=0),
    }


def _clear(past: Values) -> int:
    """Return the vector that is the furthest below SAF, two standard errors added; else SAF."""
    less = past - past[0]
    bound = less.mean(axis=1) + 2 * less.std(axis=1, ddof=1) / np.sqrt(past.shape[1])
    bound[0] = 0.0
    return int(bound.argmin())


def on_whole_log(
    workload: Workload,
    features: tuple[str, ...],
    scheduler: Scheduler,
    weights: NDArray[np.float64],
    numbers: NDArray[np.int64],
) -> Result:
    """Simulate a log without a break, with weights that change at the beginning of weeks.

    Where no job waits then, the weights of the week before hold for one more.

    Parameters
    ----------
    weights : (n_weeks, n_features) of each week.
    numbers : (n_weeks,) of the weeks, from the first submission; others have those of the last
        before them, and the first week SAF's.
    """
    rules = {
        name: getattr(scheduler, name)
        for name in ("backfill", "backfill_order", "estimate", "correction", "policy_estimate")
    }
    learner = _ByWeek(features, weights, numbers, workload.first_submit_s)
    return learn_through("weights by week", learner, workload, rules, "week")[0]


@dataclass(frozen=True)
class _ByWeek:
    """Gives each week the weights that it has; see :func:`on_whole_log`."""

    features: tuple[str, ...]
    weights: NDArray[np.float64]
    numbers: NDArray[np.int64]
    begin: int

    def act(self, observation: Any, info: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the weights of the week that begins, or SAF's."""
        # a decision is made when the last second of a week is over
        week = (int(info["time"]) + 1 - self.begin) // WEEK_S
        place = int(np.searchsorted(self.numbers, week, side="right")) - 1
        if place < 0:
            return np.array([-1.0 if name == "area" else 0.0 for name in self.features])
        chosen: NDArray[np.float64] = self.weights[place]
        return chosen
