"""Who is compared in an evaluation: what was given, references, and what their rows are called."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hpcgym.agents import import_agent
from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS, find_dispatcher
from hpcgym.errors import HpcgymError, check_each_once, unknown
from hpcgym.evaluation import limited
from hpcgym.evaluation.stage import acts, as_policy, called, load_agent
from hpcgym.policy import POLICIES
from hpcgym.policy.index import parse_policy
from hpcgym.report.labels import labelled, scheduler_name
from hpcgym.scheduler import Scheduler

#: The row of the best static weights.
STATIC = "best-static"

#: References of each leaderboard, beside the best static weights, by its backfilling.
REFERENCES = {
    "easy": ("easy", "easy-sjbf", "saf", "f1"),
    "none": ("fcfs", "sjf", "saf", "f1"),
}

#: Names that are simulated.
_SIMULATED = tuple(dict.fromkeys([*SCHEDULERS, *DISPATCHERS]))

#: Rules that dispatchers heed, beside those that they stand for.
_OF_DISPATCHERS = ("estimate", "correction", "passes", "allocation")

#: Policies that act, by name -> module of hpcgym.agents and class; they need no file.
ACTING = {"lookahead": ("lookahead", "Lookahead")}


def given(policies: Any) -> dict[str, Any]:
    """Return what the user gave, by name: policies that act, schedulers, or names of schedulers.

    Raises
    ------
    HpcgymError : something else, or the same name or path twice.
    """
    if isinstance(policies, Mapping):
        parts = {str(name): _found(policy) for name, policy in policies.items()}
        for name in parts:
            if name == STATIC or (_is_simulated(name) and parts[name] != name):
                raise HpcgymError(f"the name {name!r} stands for a scheduler; choose another")
        return parts
    if isinstance(policies, str | Path | Scheduler) or acts(policies) or callable(policies):
        policies = [policies]
    elif not isinstance(policies, Iterable):
        raise HpcgymError(
            f"policies must be names, paths, dispatchers or policies with act, not {policies!r}"
        )
    found = [(policy, _found(policy)) for policy in policies]
    check_each_once("policies", [str(one) for one, _ in found if isinstance(one, str | Path)])
    simulated = {*_SIMULATED, STATIC, *(one for _, one in found if isinstance(one, str))}
    parts = {}
    for policy, one in found:
        if isinstance(one, str):
            parts[one] = one
        else:  # a saved agent is called by its path
            name = str(policy) if isinstance(policy, str | Path) else name_of(one)
            parts[free_name(name, simulated, parts, acts(one))] = one
    return parts


def _found(policy: Any) -> Any:
    """Return the name of a scheduler, six weights, a scheduler, a dispatcher, or what acts."""
    policy = as_policy(policy)
    if isinstance(policy, Scheduler) or (acts(policy) and not isinstance(policy, type)):
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
    if os.path.exists(policy) or "/" in policy:
        return load_agent(policy)
    if "," in policy:
        parse_policy(policy)
        return policy
    known = [*_SIMULATED, *ACTING]
    raise HpcgymError(unknown("policy", policy, known, "six weights or a saved agent's path"))


def _is_simulated(name: str) -> bool:
    """Tell whether a name is that of a scheduler, a dispatcher or a rule for limits."""
    return name in _SIMULATED or limited.ruled(name) is not None


def name_of(policy: Any) -> str:
    """Return what an object or a function is called."""
    if isinstance(policy, Scheduler):
        return scheduler_name(policy)
    return called(policy)


def free_name(name: str, simulated: Iterable[str], taken: Iterable[str], acting: bool) -> str:
    """Return a name that nothing simulated by name, and no other policy, has."""
    known = {*simulated}
    if acting and name in known:
        name = f"{name} (acting)"
    free, number = name, 2
    while free in {*known, *taken}:
        free, number = f"{name} ({number})", number + 1
    return free


def lineup(
    policies: Mapping[str, Any],
    rules: Mapping[str, Any],
    limits: limited.Limits | None,
    always: tuple[str, ...],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return all that is to be run, the user's policies, then the references; and their rows.

    A name has behind it the rules that are not those for which it stands elsewhere, as in
    "saf (backfill fcfs)": the same name is the same scheduler in all tables.

    Parameters
    ----------
    policies : of :func:`given`.
    rules : of the evaluation.
    limits : of the environment.
    always : further references.

    Returns
    -------
    found : row -> a scheduler, or what acts.
    rows : name of a policy or reference -> its row.
    """
    found: dict[str, Any] = {}
    rows: dict[str, str] = {}
    names = (*REFERENCES[rules.get("backfill", "easy")], *always)
    for name, policy in {**dict(zip(names, names, strict=True)), **policies}.items():
        row, one = name, policy
        if not isinstance(policy, Scheduler) and not acts(policy):
            one, usual = (_ruled(policy, some, limits) for some in (rules, {}))
            row = labelled(name, usual, one) if name == policy else name
        rows[name] = row
        if row in found:
            raise HpcgymError(f"two policies are called {row!r}")
        found[row] = one
    # the user's policies first
    order = dict.fromkeys(rows[name] for name in (*policies, *names))
    return {row: found[row] for row in order}, rows


def _ruled(policy: Any, rules: Mapping[str, Any], limits: limited.Limits | None) -> Scheduler:
    """Return the scheduler of a name, of weights or of a dispatcher, which keeps limits."""
    row = limited.ruled(policy) if isinstance(policy, str) else None
    if row is not None:
        return scheduler_of(row[1], rules).but(power=row[0])
    return kept(scheduler_of(policy, rules), limits)


def kept(scheduler: Scheduler, limits: limited.Limits | None) -> Scheduler:
    """Return a scheduler that keeps limits by the environment's rule."""
    return scheduler if limits is None else scheduler.but(power=limits.power)


def scheduler_of(name: Any, rules: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler of a name, of weights or of a dispatcher under these rules."""
    if not isinstance(name, str) or name in DISPATCHERS:
        theirs = {rule: rules[rule] for rule in _OF_DISPATCHERS if rule in rules}
        return Scheduler(dispatcher=name, **theirs)
    own_rules = name not in POLICIES or name == "fcfs" or POLICIES[name].looks_at_usage
    if name in SCHEDULERS and own_rules:
        scheduler: Scheduler = SCHEDULERS[name]
        own = {"backfill", "backfill_order"}
        if scheduler.estimate != Scheduler().estimate:
            own |= {"estimate", "correction"}
        if scheduler.policy_estimate != Scheduler().policy_estimate:
            own |= {"policy_estimate"}
        return scheduler.but(**{rule: rules[rule] for rule in rules if rule not in own})
    # a policy alone backfills in the order of requested times, as in SCHEDULERS
    return Scheduler(policy=name, backfill_order="spf").but(**rules)


def references_of(
    found: Mapping[str, Any], rows: Mapping[str, str], rules: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the rows that all may be compared with; none unless one of them solves a model."""
    by = {
        name: one.dispatcher if isinstance(one, Scheduler) else None for name, one in found.items()
    }
    if not any(isinstance(one, str) and one in CP_DISPATCHERS for one in by.values()):
        return ()
    names = REFERENCES[rules.get("backfill", "easy")]
    references = {*(rows[name] for name in names), STATIC}
    return tuple(name for name in by if by[name] is not None or name in references)
