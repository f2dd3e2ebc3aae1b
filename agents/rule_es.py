"""A rule that evolution finds: a formula over a job, its user, and the state of machine and queue.

A job's score is a weighted sum of :data:`TERMS`: logarithms of what is known of the job, whose
weights depend on the state, so that width may count less when much is free. Where an agent
orders the queue, selects a job or weighs features, the formula is the ``policy``; where it picks
jobs to be backfilled, the ``backfill_order``. So what was learned is a :class:`hpcgym.Scheduler`
with a formula that one can read, and runs wherever a scheduler does.

The weights are searched by CMA-ES (Hansen and Ostermeier 2001; Hansen 2016, arXiv:1604.00772), of
the package ``cmaes``. What a vector is worth is what its rule gains on EASY in replays of the logs,
see :mod:`hpcgym.schedule.gains`, less what it exceeds of the gate. In each generation all vectors
meet the same logs, a little more or less crowded than they were. What counts in the end is the mean
of the generations of the second half, not the best sample, which is largely chance.

>>> from hpcgym.agents.practice import maker
>>> from hpcgym.agents.rule_es import RuleEs
>>> make = maker("lublin:jobs=2000,processors=64,load=0.4", "hpcgym/QueueOrdering-v2", {})
>>> agent = RuleEs(population=4).train(make, seed=0, steps=10_000)
>>> agent.scheduler.threshold
288000
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from cmaes import CMA
from numpy.typing import NDArray

from hpcgym.agents.practice import Logger, Make, Rows, Spending
from hpcgym.agents.settings import RuleEsSettings, takes
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.schedule.gains import Felt, felt, gain, used
from hpcgym.scheduler.files import write_scheduler
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload.model import Workload
from hpcgym.workload.stretching import stretched

NAME = "rule-es"

#: The scheduler whose order is searched, unless another is named.
USUAL = "saf-typical-80h"

Numbers = NDArray[np.float64]

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

#: Kind of decision of an agent -> the rule that is the formula.
_RULES = {
    "order": "policy", "select": "policy", "weights": "policy", "backfill": "backfill_order",
}  # fmt: skip

#: The share of the gate that may be used at no price: the rest is for unseen logs.
_MARGIN = 0.9
#: The cost of exceeding that share by a factor of e, in units of the gain.
_PRICE = 2.0


@takes(RuleEsSettings)
class RuleEs:
    """A rule and its search.

    Parameters
    ----------
    **settings : those of :class:`hpcgym.agents.settings.RuleEsSettings`.

    Attributes
    ----------
    terms : feature -> the terms of its weight, in the words of :mod:`hpcgym.scheduler.policies`.
    weights : (n_weights,) float64, feature by feature; after ``train`` the best ones.
    """

    name = NAME
    about = "weights of a formula by CMA-ES on replays; terms and settings chosen on first halves"
    #: For selecting jobs it learns the same as for ordering them.
    trains_as: ClassVar[Mapping[str, str]] = {"select": "order"}

    weights: Numbers

    def __init__(self, **settings: Any) -> None:
        self.plan = RuleEsSettings(**settings)
        self._start("policy", find_scheduler(self.plan.scheduler or USUAL), TERMS)

    def __repr__(self) -> str:
        return f"RuleEs({formula_of(self.terms, self.weights)!r})"

    @property
    def scheduler(self) -> Scheduler:
        """The rule, as it is simulated."""
        return self._with(self.weights)

    def train(
        self, make: Make, seed: int, steps: int, log: Logger | None = None, past: Rows = ()
    ) -> RuleEs:
        """Search; the same arguments find the same rule.

        Parameters
        ----------
        make : has the ``logs`` to learn from, see :class:`hpcgym.agents.practice.Make`.
        seed : of the search, and of how crowded logs are.
        steps : jobs that may be simulated: a generation that would exceed them is not begun. If
            they are too few for the first one, it is of the last jobs of each log.
        log : is told how the search goes.
        past : what ``log`` was told by a training with the same arguments that was interrupted: it
            goes on behind that, and ``log`` is not told it again.

        Raises
        ------
        HpcgymError : an environment in which no formula can act, or a log without a week of 20
            jobs.
        """
        rule, around = _rule_of(make.kind), find_scheduler(self.plan.scheduler or USUAL)
        if rule == "backfill_order" and self.plan.scheduler is None:  # as the environment has it
            around = make.scheduler.but(policy_estimate=around.policy_estimate)
        self._start(rule, around, WEIGHTS if make.kind == "weights" else TERMS)
        plan, spent, rng = self.plan, Spending(steps), np.random.default_rng(seed)
        logs = [jobs.take(slice(-plan.most_jobs, None)) for jobs in make.logs.values()]
        replays = 1 + plan.population  # of each log in a generation, under EASY too
        share = steps / replays / sum(map(len, logs))
        if share < 1:
            logs = [jobs.take(slice(-max(int(share * len(jobs)), 1), None)) for jobs in logs]
        generation = replays * sum(map(len, logs))
        search = CMA(self.weights, plan.sigma, population_size=plan.population, seed=seed)
        means: list[Numbers] = []
        while spent.pays(generation) and len(means) < plan.generations:
            factors = np.exp(rng.uniform(-plan.stretch, plan.stretch, len(logs)))
            asked = [search.ask() for _ in range(plan.population)]
            known = len(means) < len(past)
            if known:
                values = [float(past[len(means)][f"gain/{k}"]) for k in range(plan.population)]
            else:
                met = [_meet(stretched(jobs, by)) for jobs, by in zip(logs, factors, strict=True)]
                rules = [self._with(weights) for weights in asked]
                values = [float(np.mean([_value(case, rule) for case in met])) for rule in rules]
            search.tell([(weights, -value) for weights, value in zip(asked, values, strict=True)])
            spent.done += generation
            means.append(search.mean.copy())
            self.weights = np.mean(means[len(means) // 2 :], axis=0)
            if log is not None and not known:
                gains = {f"gain/{k}": value for k, value in enumerate(values)}
                mean = float(np.mean(values))
                log(spent.done, {"train/gain": mean, "train/best": max(values), **gains})
        return self

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

    def _start(self, rule: str, around: Scheduler, terms: Mapping[str, tuple[str, ...]]) -> None:
        # a default order of backfilling must not change with the policy
        around = around.but(backfill_order=around.backfill_order)
        self._rule, self._around, self.terms = rule, around, terms
        begin = _BEGIN[rule]
        self.weights = np.array(
            [begin.get(feature, 0.0) * (of == "1") for feature in terms for of in terms[feature]]
        )

    def _with(self, weights: Numbers) -> Scheduler:
        changed: dict[str, Any] = {self._rule: formula_of(self.terms, weights)}
        return self._around.but(**changed)


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


# --- The value of a rule --------------------------------------------------------------------------


class _Met(NamedTuple):
    """Jobs on which the rules of a generation are tried, and their slowdowns and waits by EASY."""

    jobs: Workload
    easy: Felt


def _meet(jobs: Workload) -> _Met:
    easy = _felt(jobs, Scheduler())
    if not len(gain(easy, easy).weeks):
        raise HpcgymError(f"{jobs.name} has no week with jobs enough to learn from")
    return _Met(jobs, easy)


def _value(met: _Met, rule: Scheduler) -> float:
    """Return the gain of a rule over EASY, less a penalty for exceeding the gate."""
    ours = _felt(met.jobs, rule)
    over = np.log(np.maximum(np.array(used(met.easy, ours)) / _MARGIN, 1.0)).sum()
    return float(gain(met.easy, ours).weeks.mean() - _PRICE * over)


def _felt(jobs: Workload, rule: Scheduler) -> Felt:
    return felt(simulate(jobs, rule), np.ones(len(jobs), np.bool_))
