"""A rule that evolution finds: a formula over a job, its user, and the state of machine and queue.

A job's score is a weighted sum of :data:`TERMS`: logarithms of what is known of the job, whose
weights depend on the state, so that width may count less when much is free. Searched beside the
weights are two rules against long waits: how much long jobs leave free (``hold``), and the
threshold beyond which a job comes first. That grows with what the machine is behind, for in a queue
of weeks a fixed one of days makes first come, first served of any order. It is a term of the
formula, so that what was learned is a :class:`hpcgym.Scheduler` that one can read. Where an agent
orders the queue, selects a job or weighs features, the formula is the ``policy``; where it picks
jobs to be backfilled, the ``backfill_order``.

The numbers are searched by CMA-ES, on replays: :mod:`hpcgym.agents.replays` says on which, what
they are worth, and when a search ends.

>>> from hpcgym.agents.practice import maker
>>> from hpcgym.agents.rule_es import RuleEs
>>> make = maker("lublin:jobs=2000,processors=64,load=0.4", "hpcgym/QueueOrdering-v2", {})
>>> agent = RuleEs(population=4).train(make, seed=0, steps=10_000)
>>> agent.scheduler.hold.by
'both'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hpcgym.agents.evolution import CmaEs, Evolution, Numbers
from hpcgym.agents.practice import Make
from hpcgym.agents.replays import RULES_REACH, ReplaySearch, held
from hpcgym.agents.settings import RuleEsSettings, takes
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.files import write_scheduler
from hpcgym.scheduler.rules import Scheduler

NAME = "rule-es"

#: The scheduler whose numbers are searched, unless another is named.
USUAL = find_scheduler("saf-typical-80h").but(hold=Hold(0.01, by="both"))

# a scheduler with an estimate for its policy calls that ``requested``, and the request time_limit
_TIME, _LIMIT = "log(max(requested,1))", "log(max(time_limit,1))"
_WIDTH = "log(processors)"
_AGE, _SOON = "log(wait+72000)", "log(wait+3600)"
_QUEUE = "log(1+queued)"

#: Feature of jobs -> the terms of its weight: "1" for a constant, others for values of the state.
#: An agent of MixedPolicy that weighs these five features can express them.
WEIGHTS: Mapping[str, tuple[str, ...]] = {
    _TIME: ("1", "free", "free_1h", _QUEUE),
    _LIMIT: ("1",),
    _WIDTH: ("1", "free", "free_1h", _QUEUE),
    _AGE: ("1", _QUEUE),
    _SOON: ("1",),
}
#: The terms in other environments.
TERMS: Mapping[str, tuple[str, ...]] = {**WEIGHTS, "fits": ("1", "free"), "leaves": ("1",)}

#: How far one unit of a search moves a weight, if not by 1: queues are of up to thousands of jobs.
_REACH = {_QUEUE: 0.2}

#: Rule -> the weights that a search begins with; others are 0.
_BEGIN: Mapping[str, Mapping[str, float]] = {
    "policy": {_TIME: -1.0, _WIDTH: -0.2, _AGE: 4.0},  # the scheduler "aged"
    "backfill_order": {_TIME: -1.0},
}
#: The multiple of what the machine is behind with which a search begins.
_MULTIPLE = 0.5

#: Kind of decision of an agent -> the rule that is the formula.
_RULES = {
    "order": "policy", "select": "policy", "weights": "policy", "backfill": "backfill_order",
}  # fmt: skip


@takes(RuleEsSettings)
class RuleEs(ReplaySearch):
    """A rule and its search.

    Parameters
    ----------
    **settings : those of :class:`hpcgym.agents.settings.RuleEsSettings`.

    Attributes
    ----------
    terms : feature -> the terms of its weight, in the words of :mod:`hpcgym.scheduler.policies`.
    vector : (n,) float64, the weights, feature by feature, then how far the two numbers of the
        threshold and the hold's share are from where they began; after ``train`` what was found.
    """

    name = NAME
    about = "a formula, a hold and a threshold by CMA-ES on replays; terms chosen on first halves"
    #: For selecting jobs it learns the same as for ordering them.
    trains_as: ClassVar[Mapping[str, str]] = {"select": "order"}

    plan: RuleEsSettings

    def __init__(self, **settings: Any) -> None:
        self.plan = RuleEsSettings(**settings)
        self._start("policy", self._named() or USUAL, TERMS)

    def __repr__(self) -> str:
        return f"RuleEs({str(getattr(self.scheduler, self._rule))!r})"

    def begin(self, make: Make, seed: int) -> None:
        """Begin with the rules that act in an environment.

        Raises
        ------
        HpcgymError : no formula can act there.
        """
        rule, around = _rule_of(make.kind), self._named() or USUAL
        if rule == "backfill_order" and self._named() is None:  # as the environment has it
            around = make.scheduler.but(
                policy_estimate=around.policy_estimate, hold=make.scheduler.hold or around.hold
            )
        self._start(rule, around, WEIGHTS if make.kind == "weights" else TERMS)

    def scheduler_of(self, vector: Numbers) -> Scheduler:
        """Return the scheduler with a formula of these weights, hold and threshold."""
        weights, moved = np.split(vector, [self._n_weights])
        formula, around = formula_of(self.terms, weights), self._around
        changed: dict[str, Any] = {}
        if self._is_late:
            least, times = np.exp(RULES_REACH * moved[:2]) * (around.threshold, _MULTIPLE)
            formula += f"+max(wait-max({least:.0f},{times:.3g}*behind),0)"
            changed["threshold"] = None
        if around.hold is not None:
            changed["hold"] = held(around.hold, float(moved[-1]))
        changed[self._rule] = formula
        return around.but(**changed)

    def evolution(self, seed: int) -> Evolution:
        """Return CMA-ES from where the search begins."""
        return CmaEs(self.vector, self.plan.sigma, self.plan.population, seed)

    def check(self, env: Any) -> str:
        """Return the rule that the formula is in an environment.

        Raises
        ------
        HpcgymError : an agent decides something else there than which job comes first.
        """
        return _rule_of(env.unwrapped.action_kind)

    def save(self, path: str | Path) -> None:
        """Write the scheduler, see :mod:`hpcgym.scheduler.files`; the path ends in .toml."""
        write_scheduler(path, self.scheduler, f"found by {NAME}")

    def _named(self) -> Scheduler | None:
        return None if self.plan.scheduler is None else find_scheduler(self.plan.scheduler)

    def _start(self, rule: str, around: Scheduler, terms: Mapping[str, tuple[str, ...]]) -> None:
        # a default order of backfilling must not change with the policy
        around = around.but(backfill_order=around.backfill_order)
        self._rule, self._around, self.terms = rule, around, terms
        begin = _BEGIN[rule]
        weights = [
            begin.get(feature, 0.0) * (of == "1") for feature in terms for of in terms[feature]
        ]
        # no such term where an agent weighs five features
        self._is_late = rule == "policy" and bool(around.threshold) and terms is TERMS
        self._n_weights = len(weights)
        self.vector = np.array([*weights, *[0.0] * ((around.hold is not None) + 2 * self._is_late)])


def _rule_of(kind: str) -> str:
    if kind not in _RULES:
        raise HpcgymError(f"{NAME} finds rules that order jobs, and no such rule acts there")
    return _RULES[kind]


def formula_of(terms: Mapping[str, Sequence[str]], weights: Numbers) -> str:
    """Return the sum of features, each times its weight in the state; those without are left out.

    Parameters
    ----------
    terms : feature -> the terms of its weight.
    weights : of these, feature by feature, in units of the search.
    """
    total, given = "", iter(weights.tolist())
    for feature, of_state in terms.items():
        parts = [
            f"{weight * _REACH.get(each, 1.0):+.4g}" + ("" if each == "1" else f"*{each}")
            for each, weight in zip(of_state, given, strict=False)
            if weight
        ]
        text = "".join(parts)
        if len(parts) > 1:
            text = f"+({text.removeprefix('+')})"
        total += f"{text}*{feature}" if parts else ""
    return total.removeprefix("+") or "0"
