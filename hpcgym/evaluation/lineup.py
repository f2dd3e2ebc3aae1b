"""Who is compared in an evaluation: what was given, references, and what their rows are called."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hpcgym.agents import import_agent
from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.chance import RANDOM
from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, find_dispatcher
from hpcgym.baselines.labels import labelled, scheduler_names
from hpcgym.baselines.pair_policies import PAIR_POLICIES
from hpcgym.baselines.schedulers import (
    COSCHEDULERS,
    find_scheduler,
    is_file,
    is_variant,
    no_scheduler,
    read_variant,
)
from hpcgym.errors import HpcgymError, check_each_once, nearest, unknown
from hpcgym.evaluation import brought
from hpcgym.evaluation.brought import (
    ENDINGS,
    Groups,
    Seeds,
    acts,
    as_policy,
    imported,
    load_agent,
    options_of,
    own_name,
    read_seeds,
    seeds_of,
    unfolded,
)
from hpcgym.scheduler.asked_for import (
    OF_JOBS,
    SITE_RULES,
    lifted_by,
    settled,
    under_site_rules,
    without_idle_shares,
)
from hpcgym.scheduler.backfilling import Backfill
from hpcgym.scheduler.own_code import names_code
from hpcgym.scheduler.policies import POLICIES
from hpcgym.scheduler.policies.expressions import is_expression
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.scheduler.rules import POWER, Scheduler

#: The row of the best static weights.
STATIC = "best-static"

_OF_EASY = ("easy", "easy-sjbf", "saf", "f1")
#: References of each leaderboard, beside the best static weights, by its backfilling.
REFERENCES = {
    "easy": _OF_EASY,
    "until-shadow": _OF_EASY,
    "none": ("fcfs", "sjf", "saf", "f1"),
}

#: Names that are simulated.
_SIMULATED = tuple(dict.fromkeys([*SCHEDULERS, *DISPATCHERS]))

#: Rules that dispatchers heed, beside those that they stand for.
_OF_DISPATCHERS = ("estimate", "correction", "passes", "allocation")

#: Policies that act, by name -> module of hpcgym.agents and class; they need no file.
ACTING = {"lookahead": ("lookahead", "Lookahead")}


#: Finds what a user means by a policy.
Find = Callable[[Any], Any]

#: A name and a policy -> what else the name stands for; None if for nothing else.
Other = Callable[[str, Any], Any]


def listed(policies: Any) -> Any:
    """Return the policies of an evaluation: one or several in a list, or as the user named them.

    Lists in a mapping, and texts such as "ppo=a.pt,b.pt", are rows of several trainings.

    Raises
    ------
    HpcgymError : what holds no policies.
    """
    if isinstance(policies, Mapping):
        return {
            name: seeds_of(str(name), one) if isinstance(one, list | tuple) else one
            for name, one in policies.items()
        }
    if isinstance(policies, str | Path | Scheduler) or acts(policies) or callable(policies):
        policies = [policies]
    if not isinstance(policies, Iterable):
        raise HpcgymError(
            f"policies must be names, paths, dispatchers or policies with act, not {policies!r}"
        )
    # chance is in each table anyway
    given = [one for one in policies if not (isinstance(one, str) and one == RANDOM)]
    return [read_seeds(one) for one in given]


def by_name(policies: Any, find: Find, other: Other) -> dict[str, Any]:
    """Return what the user gave, by the names that it has in the evaluation.

    Text that was given is the name itself, and a saved agent is called by its path. What else has
    such a name is called differently: "(acting)" where the other is simulated, or by a number.

    Parameters
    ----------
    policies : of :func:`listed`.
    find : says what each is.
    other : tells of names that are taken.

    Raises
    ------
    HpcgymError : as of ``find``; the same name or path twice, or a name in a mapping that stands
        for something else.
    """
    if isinstance(policies, Mapping):
        check_each_once("policies", map(str, policies))
        chosen = {str(name): _found(policy, find) for name, policy in policies.items()}
        for name, one in chosen.items():
            _check_free(name, one, other)
        return chosen
    texts = [str(one) if isinstance(one, str | Path) else None for one in policies]
    check_each_once("policies", [text for text in texts if text is not None])
    check_each_once("policies", [one.name for one in policies if isinstance(one, Seeds)])
    meant = [_found(policy, find) for policy in policies]
    named = [one for one in meant if isinstance(one, Scheduler)]
    names = dict(zip(map(id, named), scheduler_names(named), strict=True))
    of_texts = {text: one for text, one in zip(texts, meant, strict=True) if text is not None}
    chosen = {}
    for text, one in zip(texts, meant, strict=True):
        if isinstance(one, Seeds):
            _check_free(one.name, one, other)
            name = one.name
        elif text is None:
            name = _free_name(
                names.get(id(one)) or own_name(one), one, {**of_texts, **chosen}, other
            )
        else:
            name = _free_name(text, one, chosen, other)
        chosen[name] = one
    return chosen


def _found(policy: Any, find: Find) -> Any:
    """Return what a policy, or each of several trainings, is."""
    return policy.found(find) if isinstance(policy, Seeds) else find(policy)


def _check_free(name: str, policy: Any, other: Other) -> None:
    """Raise an HpcgymError for a name that stands for something else."""
    if other(name, policy) is not None:
        raise HpcgymError(
            f"the name {name!r} stands for a scheduler or policy of hpcgym; choose another"
        )


def _free_name(name: str, policy: Any, others: Mapping[str, Any], other: Other) -> str:
    """Return a name that nothing else has, as like to the given one as can be."""

    def rival(name: str) -> Any:
        """Return what has a name already; None: nothing."""
        told = other(name, policy)
        return others.get(name) if told is None else told

    first = rival(name)
    if first is not None and acts(policy) and not acts(first):
        name = f"{name} (acting)"
    return free_name(name, lambda free: rival(free) is not None)


def free_name(name: str, taken: Callable[[str], bool]) -> str:
    """Return a name that is not taken: this one, or with a number behind it."""
    free, number = name, 2
    while taken(free):
        free, number = f"{name} ({number})", number + 1
    return free


def find_policy(policy: Any) -> Any:
    """Return the name of a scheduler, six weights, a scheduler, a dispatcher, or what acts.

    Raises
    ------
    HpcgymError : it is none of these.
    """
    policy = as_policy(policy)
    if isinstance(policy, Scheduler) or acts(policy):
        return policy
    if callable(policy):
        Scheduler(dispatcher=policy)  # which says why it is none
        return policy
    if isinstance(policy, Path):
        return load_agent(policy)
    if not isinstance(policy, str):
        raise HpcgymError(
            "a policy is a name, a path, a dispatcher (a callable, see simulate) or an object with"
            f" act, not {policy!r}"
        )
    if policy in DISPATCHERS:
        find_dispatcher(policy)  # what it needs may be missing
    if _is_simulated(policy):
        return policy
    if policy in ACTING:
        module, kind = ACTING[policy]
        return getattr(import_agent(module), kind)()
    expressed = is_expression(policy) and ":" not in policy
    ends_as_files = re.fullmatch(r"[\w-]+\.[a-z]\w*", policy) is not None
    is_file = os.path.exists(policy) or policy.endswith(ENDINGS) or ends_as_files
    if is_file or ("/" in policy and not expressed):
        return load_agent(policy)  # which says what is missing
    if "," in policy or expressed:
        parse_policy(policy)
        return policy
    rule, plus, order = policy.partition("+")
    if plus and rule in POWER:
        raise HpcgymError(
            f"unknown policy {policy!r}: {order!r}, behind the rule, is no scheduler;"
            f" {nearest(order, SCHEDULERS)}"
        )
    begin = policy.partition(":")[0]
    if names_code(policy) and begin not in (*SCHEDULERS, *DISPATCHERS, *COSCHEDULERS):
        return find_policy(imported(policy))
    if begin in (*COSCHEDULERS, *PAIR_POLICIES):
        raise HpcgymError(
            f"{policy} is for jobs that share nodes: it needs --env CoSchedule"
            " (env='hpcgym/CoSchedule-v0')"
        )
    if begin != policy:
        raise no_scheduler(policy, [*SCHEDULERS, *COSCHEDULERS])
    known = [*_SIMULATED, *ACTING]
    rules = f"a rule under limits ({', '.join(POWER)})"
    also = f"{rules}, an expression, six weights, a saved agent's path or package.module:Class"
    raise HpcgymError(unknown("policy", policy, known, also))


def other_scheduler(name: str, policy: Any) -> str | None:
    """Return the name if it stands for a row or a scheduler, and the policy is not that name."""
    meant = isinstance(policy, str) and policy == name
    return name if name in (STATIC, RANDOM) or (_is_simulated(name) and not meant) else None


def _is_simulated(name: str) -> bool:
    """Tell whether a name is that of a scheduler, a dispatcher or a rule for limits."""
    variant = is_variant(name) and name.partition(":")[0].strip() in SCHEDULERS
    return name in _SIMULATED or variant or is_file(name) or brought.ruled(name) is not None


def with_references(
    policies: Mapping[str, Any],
    rules: Mapping[str, Any],
    limits: brought.Limits | None,
    always: tuple[str, ...],
    lifted: tuple[str, ...] = (),
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all that is to be run, the user's policies, then the references; and their rows.

    A name has behind it the rules that are not those for which it stands elsewhere, as in
    "saf (backfill fcfs)": the same name is the same scheduler in all tables.

    Parameters
    ----------
    policies : of :func:`by_name`.
    rules : of the evaluation.
    limits : of the environment.
    always : further references.
    lifted : rules of a site that no row has.

    Returns
    -------
    lineup : row -> a scheduler, or what acts.
    row_of : name of a policy or reference -> its row.
    """
    lineup: dict[str, Any] = {}
    row_of: dict[str, str] = {}
    names = (*references(rules), *always)
    for name, policy in {**dict(zip(names, names, strict=True)), **policies}.items():
        row, one = name, policy
        if isinstance(policy, Scheduler):
            one = under_site_rules(policy, rules, lifted)
            row = labelled(name, policy, one)
        elif not acts(policy):
            found = (named_scheduler(policy, some, limits) for some in (rules, {}))
            one, usual = map(without_idle_shares, found)
            one = under_site_rules(one, rules, lifted)
            row = labelled(name, usual, one) if name == policy else name
        row_of[name] = row
        if row in lineup:
            raise HpcgymError(f"two policies are called {row!r}")
        lineup[row] = one
    # the user's policies first
    order = dict.fromkeys(row_of[name] for name in (*policies, *names))
    return {row: lineup[row] for row in order}, row_of


def references(rules: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the references under these rules, the plain one first.

    Under several reservations, or Slurm's backfilling, it is the order of submission with these,
    and EASY is one of the others. F1 is none where the schedule says when jobs are submitted: it
    looks at when the log says it.
    """
    backfill = str(Backfill.parse(rules.get("backfill", "easy")))
    names = REFERENCES.get(backfill, (f"easy:backfill={backfill}", *_OF_EASY))
    known = {rule: rules[rule] for rule in ("quota", "dependencies") if rule in rules}
    if Scheduler().but(**known).moves_submissions:
        return tuple(name for name in names if name != "f1")
    return names


def named_scheduler(
    policy: Any, rules: Mapping[str, Any], limits: brought.Limits | None = None
) -> Scheduler:
    """Return the scheduler of a name, of weights or of a dispatcher, which keeps limits."""
    of_limits = brought.ruled(policy) if isinstance(policy, str) else None
    if of_limits is not None:
        power, order = of_limits
        return scheduler_of(order, rules).but(power=power)
    return under_limits(scheduler_of(policy, rules), limits)


def under_limits(scheduler: Scheduler, limits: brought.Limits | None) -> Scheduler:
    """Return a scheduler that keeps limits by the environment's rule."""
    return scheduler if limits is None else scheduler.but(power=limits.power)


def scheduler_of(name: Any, rules: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler of a name, of weights or of a dispatcher under these rules."""
    if not isinstance(name, str) or name in DISPATCHERS:
        known = (*_OF_DISPATCHERS, *SITE_RULES)  # which are refused, and not left out
        theirs = {rule: rules[rule] for rule in known if rule in rules}
        return Scheduler(dispatcher=name, **theirs)
    if is_file(name):
        return find_scheduler(name)
    if is_variant(name):
        begin, others = read_variant(name)
        return scheduler_of(begin, rules).but(**others)
    own_rules = name not in POLICIES or name == "fcfs" or POLICIES[name].looks_at_usage
    if name in SCHEDULERS and own_rules:
        scheduler: Scheduler = SCHEDULERS[name]
        usual = Scheduler()
        own = {"backfill", "backfill_order"}
        own |= {rule for rule in rules if getattr(scheduler, rule) != getattr(usual, rule)}
        if "estimate" in own:
            own |= {"correction"}
        return scheduler.but(**{rule: rules[rule] for rule in rules if rule not in own})
    return Scheduler(policy=name).but(**rules)


def queue_order(policy: str) -> Scheduler:
    """Return the scheduler whose order of the queue a policy is.

    Parameters
    ----------
    policy : a name, an expression, weights, a file of a scheduler, or a saved agent that has
        learned weights which do not change.

    Raises
    ------
    HpcgymError : no policy, or one that does not order a queue by itself: agents that act on what
        an environment shows them, dispatchers.
    """
    found = find_policy(policy)
    if isinstance(found, Scheduler):
        return found
    if acts(found):
        if not callable(getattr(found, "scheduler", None)):
            raise HpcgymError(
                f"{policy} acts on what an environment shows it, and has no order of a queue of its"
                " own: take a policy, an expression, or an agent that has learned weights, as xnes"
            )
        learned: Scheduler = found.scheduler()
        return learned
    return scheduler_of(found, {})


def reference_row(
    name: str, lineup: Iterable[str], row_of: Mapping[str, str], groups: Groups
) -> str:
    """Return the row that all are to be compared with.

    Raises
    ------
    HpcgymError : no such row.
    """
    rows = [row for row in lineup if all(row not in members for members in groups.values())]
    row, known = row_of.get(name, name), [*rows, *groups]
    if row not in known:
        also = f"{name} if it is among the policies, too" if _is_simulated(name) else ""
        raise HpcgymError(unknown("reference", name, known, also))
    return row


def references_of(
    lineup: Mapping[str, Any], row_of: Mapping[str, str], rules: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the rows that all may be compared with; none unless one of them solves a model."""
    dispatchers = {
        row: one.dispatcher if isinstance(one, Scheduler) else None for row, one in lineup.items()
    }
    if not any(isinstance(one, str) and one in CP_DISPATCHERS for one in dispatchers.values()):
        return ()
    rows = {row_of[name] for name in (*references(rules), STATIC)}
    return tuple(row for row, one in dispatchers.items() if one is not None or row in rows)


def schedulers_of(found: Any, rules: Mapping[str, Any]) -> list[Scheduler]:
    """Return the schedulers for which the jobs of an evaluation must be fit.

    The first has the rules that are given, or that agents bring along from their training; others
    are rows with rules of their own, such as "saf:quota=user:jobs=2" or a slurm.conf.

    Parameters
    ----------
    found : of :func:`hpcgym.evaluation.shared.found_policies`.
    rules : as :func:`hpcgym.evaluation.evaluate` takes them.

    Raises
    ------
    HpcgymError : a rule that a row cannot have.
    """
    rows = unfolded(found)[0] if isinstance(found, Mapping) else {}
    acting = filter(acts, rows.values())
    kept = settled(OF_JOBS, rules, map(options_of, acting))
    simulated = [one for one in rows.values() if not acts(one)]
    lifted = lifted_by(rules)
    known = (one if isinstance(one, Scheduler) else named_scheduler(one, kept) for one in simulated)
    return [Scheduler().but(**kept), *(under_site_rules(one, kept, lifted) for one in known)]
