"""Index policies: each waiting job has a score, and the highest is served first.

A policy is data: weights over named features. A pure policy is a single weight of +1 or -1, a mixed
policy (document 002, section 4.3, equation 3) any other vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.policy.features import FEATURES, WEIGHTED_FEATURES, JobColumns


@dataclass(frozen=True)
class IndexPolicy:
    """A named order of the queue.

    Attributes
    ----------
    meaning : what is served first.
    weights : feature name -> weight; the score is the weighted sum, highest first.
    cubed : whether the score is weight x (wait / requested time)^3 x processors instead (WFP3).
    """

    meaning: str
    weights: Mapping[str, float]
    cubed: bool = False


#: Name -> policy. The first twelve are the pure policies of document 002, section 4.2.
POLICIES: dict[str, IndexPolicy] = {
    "fcfs": IndexPolicy("first come first served", {"wait": 1.0}),
    "lcfs": IndexPolicy("last come first served", {"wait": -1.0}),
    "spf": IndexPolicy("smallest requested time first", {"requested": -1.0}),
    "lpf": IndexPolicy("largest requested time first", {"requested": 1.0}),
    "sqf": IndexPolicy("fewest processors first", {"processors": -1.0}),
    "lqf": IndexPolicy("most processors first", {"processors": 1.0}),
    "saf": IndexPolicy("smallest area (requested time x processors) first", {"area": -1.0}),
    "laf": IndexPolicy("largest area first", {"area": 1.0}),
    "sexp": IndexPolicy("smallest expansion factor first", {"expansion": -1.0}),
    "lexp": IndexPolicy("largest expansion factor first", {"expansion": 1.0}),
    "srf": IndexPolicy("smallest requested time per processor first", {"ratio": -1.0}),
    "lrf": IndexPolicy("largest requested time per processor first", {"ratio": 1.0}),
    "sjf": IndexPolicy("shortest job first: by requested time, as spf", {"requested": -1.0}),
    "wfp3": IndexPolicy("largest (wait / requested time)^3 x processors first", {}, cubed=True),
    "unicef": IndexPolicy("largest wait / (log2(processors) x requested time)", {"unicef": 1.0}),
    "f1": IndexPolicy("least log10(p) q + 870 log10(submit)", {"f1": -1.0}),
    "f2": IndexPolicy("least sqrt(p) q + 25,600 log10(submit)", {"f2": -1.0}),
    "f3": IndexPolicy("least p q + 6,860,000 log10(submit)", {"f3": -1.0}),
    "f4": IndexPolicy("least p sqrt(q) + 530,000 log10(submit)", {"f4": -1.0}),
}

#: A policy as users give it: a name, six weights, or weights by feature name.
PolicyLike = str | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The scores of jobs under a policy: ``score + wait / patience``, highest first.

    Attributes
    ----------
    score : (n_jobs,) float64, None where it is 0 for all: the order is that of waiting alone.
    patience : (n_jobs,) float64 [s], None where waiting changes no score.
    cubed : whether the score is ``score * (wait / patience)**3`` instead.
    """

    score: NDArray[np.float64] | None
    patience: NDArray[np.float64] | None
    cubed: bool = False

    @property
    def by_submission(self) -> bool:
        """Whether the order is that of submission."""
        return self.score is None and self.patience is None


def parse_policy(policy: PolicyLike) -> IndexPolicy:
    """Return the policy that a name, a sequence of six weights or a mapping of weights stands for.

    Raises
    ------
    HpcgymError : an unknown name or feature, another number of weights, or weights that are no
        finite numbers or all 0.
    """
    if isinstance(policy, str):
        if policy in POLICIES:
            return POLICIES[policy]
        if "," not in policy:
            near = get_close_matches(policy.lower(), POLICIES, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise HpcgymError(
                f"unknown policy {policy!r}{hint} Known are {', '.join(POLICIES)}, "
                f"or six weights over {', '.join(WEIGHTED_FEATURES)}"
            )
        policy = _numbers(policy)
    if not isinstance(policy, Mapping):
        if len(policy) != len(WEIGHTED_FEATURES):
            raise HpcgymError(
                f"a policy has {len(WEIGHTED_FEATURES)} weights "
                f"({', '.join(WEIGHTED_FEATURES)}), not {len(policy)}"
            )
        policy = dict(zip(WEIGHTED_FEATURES, policy, strict=True))
    return _mixed(policy)


def _numbers(text: str) -> list[float]:
    """Return the numbers of a comma-separated text."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise HpcgymError(f"policy {text!r}: weights must be numbers") from None


def _mixed(weights: Mapping[str, float]) -> IndexPolicy:
    """Return a policy of these weights, checked."""
    for name, weight in weights.items():
        if name not in FEATURES:
            raise HpcgymError(f"unknown feature {name!r}; known are {', '.join(FEATURES)}")
        if not math.isfinite(weight):
            raise HpcgymError(f"the weight of {name!r} must be a finite number, not {weight!r}")
    used = {name: float(weight) for name, weight in weights.items() if weight != 0}
    if not used:
        raise HpcgymError("a policy needs a weight other than 0")
    return IndexPolicy(" + ".join(f"{w:g} {name}" for name, w in used.items()), used)


def rank(policy: PolicyLike, jobs: JobColumns) -> Ranking:
    """Return the scores of jobs under a policy.

    The weighted sum of the features is ``score + wait / patience`` with

    - score: the sum of weight x static part over the features, in the order of the table;
    - 1 / patience: the sum of weight / patience. With weights w of ``wait`` and v of ``expansion``
      that is computed as patience = p / (w p + v), or 1 / w where v = 0.
    """
    index = parse_policy(policy)
    if index.cubed:
        return Ranking(jobs.processors, jobs.requested, cubed=True)
    weights = {name: index.weights[name] for name in FEATURES if name in index.weights}
    if set(weights) == {"wait"}:
        # waiting longer is having been submitted earlier: an order that time does not change
        return Ranking(None if weights["wait"] > 0 else jobs.submit, None)
    score = np.zeros_like(jobs.submit)
    for name, weight in weights.items():
        static = FEATURES[name].static
        if static is not None:
            score = score + weight * static(jobs)
    return Ranking(score, _patience(weights, jobs))


def _patience(weights: Mapping[str, float], jobs: JobColumns) -> NDArray[np.float64] | None:
    """Return the seconds of waiting that add 1 to each score; infinite where waiting adds none."""
    waiting = {name: w for name, w in weights.items() if FEATURES[name].patience is not None}
    if not waiting:
        return None
    with np.errstate(divide="ignore"):
        if set(waiting) == {"wait"}:
            return np.full_like(jobs.submit, 1.0 / waiting["wait"])
        if set(waiting) == {"wait", "expansion"}:
            p = jobs.requested
            return p / (waiting["wait"] * p + waiting["expansion"])
        patience = {name: FEATURES[name].patience(jobs) / w for name, w in waiting.items()}
        if len(patience) == 1:
            return next(iter(patience.values()))
        gains = [1.0 / seconds for seconds in patience.values()]
        return 1.0 / np.sum(gains, axis=0)
