"""Index policies: each waiting job has a score, and the highest is served first.

A policy is data: weights over named features, or an expression over them. A pure policy is a single
weight of +1 or -1, a mixed policy (Legrand et al. 2018, section 4.3, equation 3) any other vector.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym import own_code
from hpcgym.errors import HpcgymError, check_choice, is_number, unknown
from hpcgym.own_code import check_takes
from hpcgym.scheduler.policies.expressions import (
    Expression,
    is_constant,
    is_expression,
    read_expression,
    the_same_for_all,
)
from hpcgym.scheduler.policies.features import (
    FEATURES,
    PASS_FEATURES,
    USER_FEATURES,
    WEIGHTED_FEATURES,
    JobColumns,
)
from hpcgym.scheduler.policies.networks import PREFIX, Network, is_network, network_of


@dataclass(frozen=True)
class IndexPolicy:
    """A named order of the queue.

    Attributes
    ----------
    meaning : what is served first.
    weights : feature name -> weight; the score is the weighted sum, highest first.
    cubed : whether the score is weight x (wait / requested time)^3 x processors instead (WFP3).
    summed : whether the score is instead minus the sum of the user's usage of processors and of
        energy, each divided by the share and by the greatest of all users (Glesser 2016, section
        6.3.1).
    expression : its value is the score instead; ``weights`` are those of users' priorities in it.
    function : a Python function that returns the scores at each pass instead.
    given : what the user gave: a name, an expression, weights or the function.
    other : what another package has under the name; None of all else.
    """

    meaning: str
    weights: Mapping[str, float]
    cubed: bool = False
    summed: bool = False
    expression: Expression | None = None
    function: Callable[..., Any] | None = None
    given: Any = field(default=None, compare=False)
    other: own_code.Extension | None = None

    @property
    def is_weighted_sum(self) -> bool:
        """Whether the score is the sum of ``weights`` times features, and nothing else."""
        return not (self.cubed or self.summed or self.expression or self.function)

    @property
    def is_named(self) -> bool:
        """Whether it is one of :data:`POLICIES`, not a user's own."""
        return isinstance(self.given, str) and self.given in POLICIES

    @property
    def looks_at_usage(self) -> bool:
        """Whether the order depends on what users have used."""
        return self.summed or not USER_FEATURES.keys().isdisjoint(self.weights)

    @property
    def looks_at_pass(self) -> bool:
        """Whether the order depends on the state of machine and queue at a pass."""
        return not PASS_FEATURES.keys().isdisjoint(self.weights)


#: Name -> policy. The first twelve are the pure policies of Legrand et al. 2018, section 4.2.
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
    "f1": IndexPolicy("least log10(p) q + 870 log10(s), s since the first job", {"f1": -1.0}),
    "f2": IndexPolicy("least sqrt(p) q + 25,600 log10(s), s since the first job", {"f2": -1.0}),
    "f3": IndexPolicy("least p q + 6,860,000 log10(s), s since the first job", {"f3": -1.0}),
    "f4": IndexPolicy("least p sqrt(q) + 530,000 log10(s), s since the first job", {"f4": -1.0}),
    "fairshare": IndexPolicy(
        "the user who has used the fewest processor seconds for her share", {"fairshare": 1.0}
    ),
    "energy-fairshare": IndexPolicy(
        "the user who has used the fewest joules for her share", {"energy_fairshare": 1.0}
    ),
    "fs+efs": IndexPolicy("the least sum of both, each over its present maximum", {}, summed=True),
}

#: Name -> policy of co-scheduling (ELiSE, "Examples of implemented (co-)Schedulers"): only
#: simulations in which jobs share nodes know them.
PASS_POLICIES: dict[str, IndexPolicy] = {
    "filler": IndexPolicy("the job that fits best into what is free", {"fit": 1.0}),
    "popularity": IndexPolicy("the job that gains with the most others", {"popularity": 1.0}),
    "sjf-filler": IndexPolicy("fit and shortness", {"fit": 1.0, "shortness": 1.0}),
    "popularity-filler": IndexPolicy("fit and popularity", {"fit": 1.0, "popularity": 1.0}),
}

for _table in (POLICIES, PASS_POLICIES):
    _table.update({name: replace(policy, given=name) for name, policy in _table.items()})

#: A policy as users give it: a name, an expression, six weights, weights by feature name, a
#: function that returns the scores at each pass, a network, or a parsed policy.
PolicyLike = (
    str
    | Sequence[float]
    | NDArray[Any]
    | Mapping[str, float]
    | Callable[..., Any]
    | Network
    | IndexPolicy
)


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


_SUCH_AS = "or an expression such as '-(requested * processors) + 20 * wait'"


def parse_policy(
    policy: PolicyLike, argument: str = "policy", others: Iterable[str] = ()
) -> IndexPolicy:
    """Return the policy that a name, an expression, weights or a function describes.

    Parameters
    ----------
    policy : a name of POLICIES or of another package, an expression (see
        :mod:`hpcgym.scheduler.policies.expressions`), six weights (also as a text with commas),
        weights by feature, a function, or a network (see
        :mod:`hpcgym.scheduler.policies.networks`; as a text ``network:FILE``).
    argument : its name in errors.
    others : further names that the caller accepts, for errors.

    Raises
    ------
    HpcgymError : an unknown name or feature, a wrong number of weights, weights that are not finite
        or all 0, a wrong expression, a file that holds no network, or a policy of another package
        that cannot be imported.
    """
    if isinstance(policy, IndexPolicy):
        return policy
    if isinstance(policy, Network):
        return IndexPolicy(policy.name, {}, expression=policy.expression, given=policy)
    if isinstance(policy, str):
        name = policy.strip()
        if is_network(name):
            return _of_file(name, argument)
        if name in POLICIES:
            return POLICIES[name]
        if name in PASS_POLICIES:
            return PASS_POLICIES[name]
        if is_constant(policy) and "," not in policy:
            raise the_same_for_all(argument, policy)
        if is_expression(policy):
            expression = read_expression(policy, argument)
            return IndexPolicy(policy, expression.usage, expression=expression, given=name)
        if "," not in policy and name in own_code.others("policies"):
            return _of_other(name, argument)
        if "," not in policy:
            such = f"six weights over {', '.join(WEIGHTED_FEATURES)}, {_SUCH_AS}"
            such += "; the policy of a named scheduler is find_scheduler(NAME).policy"
            more = own_code.sources("policies", POLICIES)
            raise HpcgymError(unknown(argument, policy, [*others, *POLICIES], such, more))
    if isinstance(policy, Mapping):
        mixed = _mixed(policy, argument)
        return replace(mixed, given={name: float(weight) for name, weight in policy.items()})
    if callable(policy):
        return _function(policy, argument)
    if isinstance(policy, str):
        weights: Any = _numbers(policy, argument)
    else:
        weights = policy.tolist() if isinstance(policy, np.ndarray) else policy
    if not isinstance(weights, Sequence):
        raise HpcgymError(
            f"{argument} must be a name, six weights or weights by feature, not {policy!r}"
        )
    if len(weights) != len(WEIGHTED_FEATURES):
        raise HpcgymError(
            f"{argument}: a policy has {len(WEIGHTED_FEATURES)} weights "
            f"({', '.join(WEIGHTED_FEATURES)}), not {len(weights)}"
        )
    mixed = _mixed(dict(zip(WEIGHTED_FEATURES, weights, strict=True)), argument)
    text = policy.strip() if isinstance(policy, str) else None
    return replace(mixed, given=text or tuple(map(float, weights)))


def _of_file(name: str, argument: str) -> IndexPolicy:
    """Return the policy that is the network of a file."""
    try:
        network = network_of(name)
    except HpcgymError as error:
        raise HpcgymError(f"{argument} {PREFIX} {error}") from None
    return IndexPolicy(name, {}, expression=network.expression, given=name)


def _of_other(name: str, argument: str) -> IndexPolicy:
    """Return the policy of another package: what users may give, or a class of functions."""
    named = own_code.find("policies", name, POLICIES)
    other = own_code.others("policies")[name]
    with other.blamed(named):
        given = named() if isinstance(named, type) else named
    try:
        policy = parse_policy(given, argument)
    except HpcgymError as error:
        raise other.error(error) from None
    meaning = inspect.getdoc(named) if policy.function is not None else policy.meaning
    first = (meaning or policy.meaning).partition("\n")[0]
    return replace(policy, meaning=first, given=name, other=other)


def _function(policy: Callable[..., Any], argument: str) -> IndexPolicy:
    """Return a function as a policy."""
    if isinstance(policy, type):
        raise HpcgymError(
            f"{argument} must not be the class {policy.__name__}; give {policy.__name__}()"
        )
    check_takes(argument, policy, "the PassView of a pass")
    name = getattr(policy, "__name__", type(policy).__name__)
    return IndexPolicy(f"as {name} says", {}, function=policy, given=policy)


def weight_text(weight: float) -> str:
    """Return the shortest text that stands for exactly this weight."""
    return repr(float(weight)).removesuffix(".0")


def _numbers(text: str, argument: str) -> list[float]:
    """Return the numbers of a comma-separated text."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise HpcgymError(
            f"{argument} {text!r}: weights must be numbers; several policies are no one text"
        ) from None


def _mixed(weights: Mapping[str, Any], argument: str) -> IndexPolicy:
    """Return a policy of these weights, checked."""
    items = tuple(weights.items())
    try:
        return _mixed_of(items, argument)
    except TypeError:  # a weight without a hash is no number: the error names it
        return _mixed_of.__wrapped__(items, argument)


@lru_cache(maxsize=1024)  # a simulation asks a dozen times what its policy is
def _mixed_of(weights: tuple[tuple[str, Any], ...], argument: str) -> IndexPolicy:
    used = {}
    for name, weight in weights:
        check_choice(f"feature in {argument}", name, [*FEATURES, *USER_FEATURES, *PASS_FEATURES])
        if not is_number(weight) or not math.isfinite(weight):
            raise HpcgymError(
                f"{argument}: the weight of {name!r} must be a finite number, not {weight!r}"
            )
        if weight != 0:
            used[name] = float(weight)
    if not used:
        raise HpcgymError(f"{argument}: a policy needs a weight other than 0")
    if 0 < len(PASS_FEATURES.keys() & used.keys()) < len(used):
        raise HpcgymError(
            f"{argument}: {', '.join(PASS_FEATURES)} are weighed with each other only, not with "
            f"{next(name for name in used if name not in PASS_FEATURES)!r}"
        )
    return IndexPolicy(" + ".join(f"{weight_text(w)} {name}" for name, w in used.items()), used)


def usual_backfill_order(policy: PolicyLike) -> str:
    """Return the usual order of backfilling under a policy.

    It is by requested time, "spf" (Legrand et al. 2018, section 2.2); by submission under "fcfs",
    as in EASY, and under the policies of co-scheduling; under a policy of fair share that policy
    itself (Glesser 2016, section 6.3.1).
    """
    order = parse_policy(policy)
    if order.given == "fcfs" or order.looks_at_pass:
        return "fcfs"
    named = isinstance(order.given, str) and order.given in POLICIES
    return order.given if named and order.looks_at_usage else "spf"


def rank(policy: PolicyLike, jobs: JobColumns) -> Ranking:
    """Return the scores of jobs under a policy.

    The weighted sum of the features is ``score + wait / patience`` with

    - score: the sum of weight x static part over the features, in the order of the table;
    - 1 / patience: the sum of weight / patience. With weights w of ``wait`` and v of ``expansion``
      that is computed as patience = p / (w p + v), or 1 / w where v = 0.

    An expression is evaluated in the order in which it is written; a general one only at each pass.

    Raises
    ------
    HpcgymError : no policy (see :func:`parse_policy`), a policy that looks at usage, or scores
        beyond double precision.
    """
    index = parse_policy(policy)
    refuse_usage(index)
    if index.function is not None:  # returns scores when it is called
        return unknown_yet(jobs)
    if index.cubed:
        return Ranking(jobs.processors, jobs.requested, cubed=True)
    if index.expression is None and set(index.weights) == {"wait"}:
        # jobs that wait longer were submitted earlier: time does not change this order
        return Ranking(None if index.weights["wait"] > 0 else jobs.submit, None)
    return _weighed(index, jobs)


def rank_without_usage(policy: PolicyLike, jobs: JobColumns) -> Ranking:
    """Return the scores of jobs under a policy that looks at usage, without the part of usage."""
    ranking = _weighed(parse_policy(policy), jobs)
    if ranking.patience is not None:
        return ranking
    return Ranking(ranking.score, np.full_like(jobs.submit, np.inf))


def unknown_yet(jobs: JobColumns) -> Ranking:
    """Return placeholders for scores that become known at each pass."""
    return Ranking(np.zeros_like(jobs.submit), np.full_like(jobs.submit, np.inf))


def refuse_usage(policy: PolicyLike, argument: str = "policy") -> None:
    """Raise an HpcgymError for a policy that looks at usage, where usage is not counted.

    Also for a policy that looks at the state at a pass, where jobs share no nodes.
    """
    order = parse_policy(policy, argument)
    words = order.given if isinstance(order.given, str) else order.meaning
    if order.looks_at_pass:
        raise HpcgymError(
            f"{argument} {words!r} is for co-scheduling: give simulate() speedups of jobs that"
            " share nodes"
        )
    if order.looks_at_usage:
        raise HpcgymError(
            f"{argument} {words!r} depends on what users have used, which is not counted here"
        )


def _weighed(index: IndexPolicy, jobs: JobColumns) -> Ranking:
    """Return the weighted sum of the features of jobs, or the value of an expression."""
    if index.expression is not None:
        return _expressed(index.expression, jobs)
    weights = {name: index.weights[name] for name in FEATURES if name in index.weights}
    score = np.zeros_like(jobs.submit)
    with np.errstate(over="ignore", invalid="ignore"):
        for name, weight in weights.items():
            score = score + weight * jobs.feature(name)
    return _checked(Ranking(score, _patience(weights, jobs)), index.meaning)


def _checked(ranking: Ranking, meaning: str) -> Ranking:
    """Return scores, checked: each is a finite number, however long the job waits."""
    score, patience = ranking.score, ranking.patience
    fits = score is None or (np.abs(score) < 1e307).all()
    if patience is not None:
        fits &= (np.abs(patience) > 1e-290).all()
    if not fits:
        raise HpcgymError(f"policy {meaning}: its scores are beyond double precision")
    return ranking


def _expressed(expression: Expression, jobs: JobColumns) -> Ranking:
    """Return the scores of jobs by an expression, without the part of usage."""
    if expression.general:
        return unknown_yet(jobs)
    if expression.reversed is not None:  # jobs that wait longer were submitted earlier
        return Ranking(jobs.submit if expression.reversed else None, None)
    return _checked(Ranking(expression.values(jobs), None), expression.text)


def _patience(weights: Mapping[str, float], jobs: JobColumns) -> NDArray[np.float64] | None:
    """Return the seconds of waiting that add 1 to each score; infinite where waiting adds none."""
    parts = [(name, FEATURES[name].patience, weight) for name, weight in weights.items()]
    waiting = {name: (patience, w) for name, patience, w in parts if patience is not None}
    if not waiting:
        return None
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        if set(waiting) == {"wait"}:
            seconds = np.full_like(jobs.submit, 1.0 / weights["wait"])
        elif set(waiting) == {"wait", "expansion"}:
            p = jobs.requested
            seconds = p / (weights["wait"] * p + weights["expansion"])
        else:
            each = [patience(jobs) / weight for patience, weight in waiting.values()]
            gain = np.sum([1.0 / part for part in each], axis=0)
            seconds = each[0] if len(each) == 1 else 1.0 / gain
    return seconds
