"""Rows that are in each evaluation: references, chance, and the best static weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hpcgym.agents import search
from hpcgym.baselines.chance import RANDOM, RandomActions, RandomOrder, random_order
from hpcgym.baselines.labels import differences, labelled, scheduler_name
from hpcgym.errors import HpcgymError, unknown
from hpcgym.machine import Cluster
from hpcgym.scheduler.asked_for import (
    SITE_RULES,
    check_fair_share,
    check_scheduler,
    counts_usage,
    under_site_rules,
    without_idle_shares,
)
from hpcgym.scheduler.backfilling import BackfillRule
from hpcgym.scheduler.limits import EnergyBudget
from hpcgym.scheduler.policies.features import spread
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.whole_nodes import check_for_limits
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.study.evaluation.environments import Environments
from hpcgym.study.evaluation.platform import EnvironmentLimits, Platform
from hpcgym.study.evaluation.policies import STATIC, Policies, is_known, ruled, scheduler_of
from hpcgym.study.evaluation.user_policies import acts
from hpcgym.workload import Workload

Weights = dict[str, float]

_OF_EASY = ("easy", "easy-sjbf", "saf", "f1")

#: References of each leaderboard, beside the best static weights, by its backfilling.
REFERENCES = {
    "easy": _OF_EASY,
    "until-shadow": _OF_EASY,
    "none": ("fcfs", "sjf", "saf", "f1"),
}

#: The same where jobs share nodes; the last is what all are compared with.
OF_SHARED_NODES = ("easy-co", "sjf-co", "filler-co")

#: The rule that all are compared with where there are budgets: the plainest of those made for them.
OF_BUDGETS = "powercap"

_FOR_BUDGETS = (OF_BUDGETS, "reduce-pc", "energy-bud")
_FOR_CAPS = ("shut", "dvfs", "mix")


# --- All rows of an evaluation --------------------------------------------------------------------


def references(rules: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the references under these rules, the plain one first.

    Under several reservations, or Slurm's backfilling, it is the order of submission with these,
    and EASY is one of the others. F1 is left out if the schedule decides submissions: it
    looks at when the log says it.
    """
    backfill = str(BackfillRule.parse(rules.get("backfill", "easy")))
    names = REFERENCES.get(backfill, (f"easy:backfill={backfill}", *_OF_EASY))
    known = {rule: rules[rule] for rule in ("quota", "dependencies") if rule in rules}
    if Scheduler().but(**known).moves_submissions:
        return tuple(name for name in names if name != "f1")
    return names


def rows_of(
    compared: Policies, envs: Environments, slices: Sequence[Workload], always: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all that is to be run, the user's policies, then the references; and their rows.

    A name has behind it the rules that are not those for which it stands elsewhere, as in
    "saf (backfill fcfs)": the same name is the same scheduler in all tables.

    Parameters
    ----------
    slices : the jobs of each slice.
    always : further references.

    Returns
    -------
    rows : row -> a scheduler, or what acts.
    row_of : name of a policy or reference -> its row.

    Raises
    ------
    HpcgymError : two rows of one name, rules or limits that a row cannot keep, or shares of users
        that no row looks at.
    """
    rules, limits = envs.rules, envs.platform.limits
    rows: dict[str, Any] = {}
    row_of: dict[str, str] = {}
    names = (*references(rules), *always)
    for name, policy in {**dict(zip(names, names, strict=True)), **compared.policies}.items():
        row, runs = name, policy
        if not acts(policy):
            usual, runs = (_scheduler(policy, some, limits) for some in ({}, rules))
            runs = under_site_rules(runs, rules, envs.lifted)
            if isinstance(policy, Scheduler) or name == policy:
                row = labelled(name, usual, runs)
        if row in rows:
            raise HpcgymError(f"two policies are called {row!r}")
        row_of[name], rows[row] = row, runs
    for rule in envs.followed:
        if all(acts(policy) or policy.describe() != rule.describe() for policy in rows.values()):
            name = scheduler_name(rule)
            if name in rows:
                raise HpcgymError(f"two policies are called {name!r}")
            row_of[name], rows[name], names = name, rule, (*names, name)
    known = [policy for policy in rows.values() if isinstance(policy, Scheduler)]
    looks = envs.counts_usage or any(any(scheduler.usage_orders) for scheduler in known)
    check_fair_share(rules.get("fair_share"), looks)
    _check_limits(rows, limits, slices)
    # the user's policies first
    order = dict.fromkeys(row_of[name] for name in (*compared.policies, *names))
    return {row: rows[row] for row in order}, row_of


def unlike(rows: Mapping[str, Any], envs: Environments) -> dict[str, str]:
    """Return which rows have other rules than the policies that act, and which, in words.

    Rows of dispatchers and of chance are another matter. Where a rule orders the queue, everyone
    has a backfill order of its own.
    """
    if not any(acts(policy) for policy in rows.values()):
        return {}
    differing = dict.fromkeys(envs.kept, "a selected job keeps its reservation")
    for row, policy in rows.items():
        if isinstance(policy, RandomOrder) or acts(policy) or policy.dispatcher is not None:
            continue
        acting = Scheduler(**{"backfill_order": policy.backfill_order, **envs.rules})
        if words := differences(acting, policy):
            differing[row] = words
    return differing


def _scheduler(
    policy: Any, rules: Mapping[str, Any], limits: EnvironmentLimits | None
) -> Scheduler:
    """Return the scheduler of a policy, which keeps limits by the environment's rule."""
    if isinstance(policy, Scheduler):
        return policy
    scheduler = without_idle_shares(scheduler_of(policy, rules))
    if limits is None or ruled(policy) is not None:
        return scheduler
    return scheduler.but(power=limits.power)


def find_reference(
    name: str, rows: Iterable[str], row_of: Mapping[str, str], compared: Policies
) -> str:
    """Return the row that all are to be compared with, by its name or that of a reference.

    Raises
    ------
    HpcgymError : no such row.
    """
    members = {member for each in compared.trainings.values() for member in each}
    row = row_of.get(name, name)
    known = [*(row for row in rows if row not in members), *compared.trainings]
    if row not in known:
        also = f"{name} if it is among the policies, too" if is_known(name) else ""
        raise HpcgymError(unknown("reference", name, known, also))
    return row


def has_budgets(limits: EnvironmentLimits | None, slices: Sequence[Workload]) -> bool:
    """Tell whether any slice has a budget of energy."""
    return EnergyBudget in _kinds(limits, slices)


def _kinds(limits: EnvironmentLimits | None, slices: Sequence[Workload]) -> set[type]:
    return (
        set() if limits is None else {type(limit) for jobs in slices for limit in limits.of(jobs)}
    )


def _check_limits(
    rows: Mapping[str, Any], limits: EnvironmentLimits | None, slices: Sequence[Workload]
) -> None:
    """Raise an HpcgymError for rows that keep no limits, or keep such as there are not."""
    kinds = _kinds(limits, slices)
    for name, scheduler in rows.items():
        if not isinstance(scheduler, Scheduler):
            continue
        rule = scheduler.power
        if limits is None:
            if rule != "none" or ruled(name) is not None:
                raise HpcgymError(
                    f"{name} keeps limits, but has no limits: give env='hpcgym/EnergyBudget-v1'"
                    " (--env EnergyBudget), or a saved agent of such an environment"
                )
            continue
        try:
            check_for_limits(scheduler)
        except HpcgymError as error:
            raise HpcgymError(f"{name} keeps no limits of power and energy: {error}") from None
        if rule in _FOR_BUDGETS and EnergyBudget not in kinds:
            raise HpcgymError(f"{name} is for budgets, and the environment has none")
        if rule in _FOR_CAPS and rule != limits.power and kinds <= {EnergyBudget}:
            raise HpcgymError(f"{name} is for caps, and the environment has none")


# --- Chance, and the best static weights ----------------------------------------------------------


def chance(envs: Environments, jobs: int, seed: int) -> tuple[str, Any]:
    """Return the name of the row of chance, and its policy, for so many jobs."""
    acting = f"{RANDOM} (acting)"
    if envs.add_random(acting):
        return acting, RandomActions(seed)
    shuffling = random_order(static_rules(envs), jobs, seed)
    return _under_site_rules(RANDOM, shuffling), shuffling


def static_row(envs: Environments) -> str:
    """Return what the row of the best static weights is called."""
    return _under_site_rules(STATIC, static_rules(envs))


def _under_site_rules(name: str, scheduler: Scheduler) -> str:
    """Return a name with the rules of a site behind it."""
    return labelled(name, Scheduler(), scheduler, SITE_RULES)


def static_rules(envs: Environments, features: Sequence[str] = ()) -> Scheduler:
    """Return all rules of static weights over features but the weights.

    Raises
    ------
    HpcgymError : rules that they cannot be chosen under.
    """
    scheduler = _scheduler("spf", envs.rules, envs.platform.limits)
    if counts_usage(scheduler, features):
        scheduler = scheduler.but(fair_share=envs.rules.get("fair_share"))
    return scheduler


def check_static(rules: Mapping[str, Any]) -> None:
    """Raise an HpcgymError for rules that static weights cannot be chosen under."""
    try:
        check_scheduler(Scheduler().but(**rules), "environments")
    except HpcgymError as error:
        raise HpcgymError(f"{error}; budget=0 (--budget 0) leaves best-static out") from None


def best_static(
    training: Sequence[Workload],
    features: Sequence[str],
    scheduler: Scheduler,
    budget: int,
    seed: int,
    step: Callable[[str], None],
    platform: Platform | None = None,
) -> Weights:
    """Return the weights with the least mean BSLD over slices, the first tried of equals.

    Parameters
    ----------
    training : slices to choose by.
    features : names of :data:`hpcgym.scheduler.policies.FEATURES`.
    scheduler : all rules but the policy.
    budget : number of vectors tried, see :func:`hpcgym.agents.search.candidates`; each is simulated
        on every slice.
    seed : of the random vectors.
    step : called for each vector.
    platform : the machine and its limits; by default as many processors as the workload's had. On
        any other slices are simulated one by one, which takes some thirty times as long.
    """
    platform = platform or Platform()
    drawn = search.candidates(np.random.default_rng(seed), len(features), budget)
    vectors = search.normalised(drawn / spread(training, features))
    rows = [
        {name: weight for name, weight in zip(features, row, strict=True) if weight}
        for row in vectors.tolist()
    ]
    left = deque(f"choosing static weights, {k} of {budget}" for k in range(1, budget + 1))
    if platform.limits is None and platform.cluster in (None, Cluster(training[0].processors)):

        def progress(done: int) -> None:
            while budget - len(left) < done // len(training):
                step(left.popleft())

        batch = BatchSimulator(training, features, scheduler)
        values = batch.run(vectors, progress=progress).mean(axis=1)
    else:
        values = np.empty(budget)
        for place, weights in enumerate(rows):
            step(left.popleft())
            policy = scheduler.but(policy=weights)
            results = [platform.simulate(jobs, policy) for jobs in training]
            values[place] = np.mean([result.metrics["mean_bsld"] for result in results])
    return rows[int(search.rounded(values).argmin())]
