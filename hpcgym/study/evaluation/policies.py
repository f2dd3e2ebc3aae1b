"""The policies of an evaluation: as they were given, as objects, and their names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcgym.agents import import_agent, is_rlscheduler
from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.chance import RANDOM
from hpcgym.baselines.dispatchers import DISPATCHERS, find_dispatcher
from hpcgym.baselines.labels import scheduler_names
from hpcgym.baselines.pair_policies import PAIR_POLICIES, PairPolicy
from hpcgym.baselines.schedulers import (
    COSCHEDULERS,
    find_scheduler,
    is_file,
    is_variant,
    no_scheduler,
    read_variant,
)
from hpcgym.envs.ids import full_id, successor
from hpcgym.errors import HpcgymError, check_each_once, did_you_mean, unknown
from hpcgym.files import is_there
from hpcgym.own_code import find, has_name, names_code, others, sources
from hpcgym.scheduler.asked_for import OF_JOBS, lifted_by, settled, under_site_rules
from hpcgym.scheduler.policies import POLICIES
from hpcgym.scheduler.policies.expressions import is_expression
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.scheduler.rules import POWER, Scheduler
from hpcgym.study.evaluation.user_policies import (
    acts,
    as_policy,
    brought,
    imported,
    load_agent,
    own_name,
)

#: The row of the best static weights.
STATIC = "best-static"

#: Policies that act, by name -> module of hpcgym.agents and class; they need no file.
ACTING = {"lookahead": ("lookahead", "Lookahead")}

#: The same for policies that learn while they act, for evaluations in one pass through all jobs.
LEARNERS = {"weight-bandit": ("weight_bandit", "WeightBandit")}

#: Names that are simulated.
_SIMULATED = tuple(dict.fromkeys([*SCHEDULERS, *DISPATCHERS]))

#: Rules that dispatchers follow, beside those that they replace.
_OF_DISPATCHERS = ("estimate", "correction", "passes", "allocation")

#: Files of agents.
_ENDINGS = (".json", ".onnx", ".pt", ".zip")

_TRAININGS = re.compile(r"\s*([^\W\d][\w .+-]*?)\s*:?=(?!=)(.*)")


# --- What was given, by the names of rows ---------------------------------------------------------


@dataclass(frozen=True)
class Policies:
    """The policies of an evaluation.

    Attributes
    ----------
    policies : row -> what :func:`find_policy` returns.
    trainings : a row of several trainings of one agent -> their rows in ``policies``, of which it
        is the mean.
    """

    policies: dict[str, Any]
    trainings: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def acting(self) -> dict[str, Any]:
        """Those that act in environments."""
        return {name: policy for name, policy in self.policies.items() if acts(policy)}


def read_policies(policies: Any, find: Callable[[Any], Any] | None = None) -> Policies:
    """Return the policies of an evaluation by the names of their rows, found.

    Text that was given is the name itself, and a saved agent is called by its path. What else has
    such a name is called differently: "(acting)" where the other is simulated, or by a number.
    Lists in a mapping, and texts such as "ppo=a.pt,b.pt", are rows of several trainings.

    Parameters
    ----------
    policies : as :func:`hpcgym.study.evaluate` takes them; ``Policies`` are returned as they are.
    find : says what each is; by default :func:`find_policy`.

    Raises
    ------
    HpcgymError : what holds no policies; as of ``find``; the same name or path twice; or a name in
        a mapping that stands for something else.
    """
    if isinstance(policies, Policies):
        return policies
    find, entries = find or find_policy, _entries(policies)
    own = [given if name is None else name for name, given in entries]
    check_each_once("policies", [str(name) for name in own if _is_text(name)])
    found_policies = [
        _each(str(name), given, find) if isinstance(given, list | tuple) else find(given)
        for name, given in entries
    ]
    schedulers = [policy for policy in found_policies if isinstance(policy, Scheduler)]
    names_of = dict(zip(map(id, schedulers), scheduler_names(schedulers), strict=True))
    taken: dict[str, Any] = {}  # what was given keeps its name
    for (name, given), policy in zip(entries, found_policies, strict=True):
        if name is not None and is_known(name) and given != name:
            raise HpcgymError(
                f"the name {name!r} stands for a scheduler or policy of hpcgym; choose another"
            )
        if name is not None or isinstance(given, str):
            taken[given if name is None else name] = policy
    rows: dict[str, Any] = {}
    trainings: dict[str, tuple[str, ...]] = {}
    for (name, given), policy in zip(entries, found_policies, strict=True):
        if name is None and not isinstance(given, str):
            known = (
                str(given)
                if isinstance(given, Path)
                else names_of.get(id(policy)) or own_name(policy)
            )
            name = _free_name(known, policy, taken)
            taken[name] = policy
        row = str(given if name is None else name)
        if isinstance(given, list | tuple):
            trainings[row] = tuple(policy)
            rows |= policy
        else:
            rows[row] = policy
    return Policies(rows, trainings)


def _is_text(policy: Any) -> bool:
    return isinstance(policy, str | Path)


def _entries(policies: Any) -> list[tuple[str | None, Any]]:
    """Return the policies with the names that the user gave; a list is several trainings."""
    if isinstance(policies, Mapping):
        names = [*map(str, policies)]
        check_each_once("policies", names)
        return [*zip(names, policies.values(), strict=True)]
    single = _is_text(policies) or isinstance(policies, Scheduler) or acts(policies)
    if single or callable(policies):
        policies = [policies]
    if not isinstance(policies, Iterable):
        raise HpcgymError(
            f"policies must be names, paths, dispatchers or policies with act, not {policies!r}"
        )
    # chance is in each table anyway
    return [
        _entry(policy) for policy in policies if not (isinstance(policy, str) and policy == RANDOM)
    ]


def _entry(policy: Any) -> tuple[str | None, Any]:
    """Return a policy, or the name and the texts of several trainings."""
    several = None
    if isinstance(policy, str) and not os.path.exists(policy):
        several = _TRAININGS.fullmatch(policy)
    if several is None:
        return None, policy
    return several[1], [part.strip() for part in several[2].split(",")]


def _each(name: str, given: Any, find: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the rows of several trainings."""
    texts = [str(policy) for policy in given if _is_text(policy)]
    check_each_once(name, texts)
    if not given or "" in texts:
        raise HpcgymError(f"{name} needs files or policies, such as {name}=a.pt,b.pt")
    called = [
        str(policy) if _is_text(policy) else f"seed {place}" for place, policy in enumerate(given)
    ]
    return {f"{name}: {row}": find(each) for row, each in zip(called, given, strict=True)}


def _free_name(name: str, policy: Any, taken: Mapping[str, Any]) -> str:
    """Return a free name, as close as possible to the given one."""
    known = is_known(name)
    if acts(policy) and (known or (name in taken and not acts(taken[name]))):
        name = f"{name} (acting)"
    free, number = name, 2
    while free in taken or is_known(free):
        free, number = f"{name} ({number})", number + 1
    return free


# --- What a policy is -----------------------------------------------------------------------------


def find_policy(policy: Any, seed: int | None = None) -> Any:
    """Return a name that can be simulated, a scheduler, a dispatcher, or a policy that acts.

    Parameters
    ----------
    policy : one of those that :func:`hpcgym.study.evaluate` takes.
    seed : of learners, which only :func:`hpcgym.study.prequential` has; None: no learners.

    Raises
    ------
    HpcgymError : it is not one of these.
    """
    policy = as_policy(policy, seed)
    if isinstance(policy, Scheduler) or acts(policy):
        return policy
    if callable(policy):
        Scheduler(dispatcher=policy)  # which says why it is not one
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
    begin = policy.partition(":")[0].strip()
    if begin in COSCHEDULERS:
        return find_scheduler(policy)
    if policy in PAIR_POLICIES:
        return PairPolicy(policy)
    known = ACTING if seed is None else {**ACTING, **LEARNERS}
    if policy in known:
        module, kind = known[policy]
        return as_policy(getattr(import_agent(module), kind), seed)
    expressed = is_expression(policy) and ":" not in policy
    ends_as_files = re.fullmatch(r"[\w-]+\.[a-z]\w*", policy) is not None
    is_agent = is_there(policy) or policy.endswith(_ENDINGS) or ends_as_files
    if is_agent or is_rlscheduler(policy) or ("/" in policy and not expressed):
        return load_agent(policy)  # which says what is missing
    if "," in policy or expressed:
        parse_policy(policy)
        return policy
    rule, plus, order = policy.partition("+")
    if plus and rule in POWER:
        raise HpcgymError(
            f"unknown policy {policy!r}: {order!r}, behind the rule, is no scheduler;"
            f" {did_you_mean(order, SCHEDULERS)}"
        )
    if policy in others("policies"):
        return policy
    if policy in others("agents"):
        agent = find("agents", policy, {})
        return find_policy(brought(agent, str(others("agents")[policy]), seed))
    if os.path.exists(policy):
        return load_agent(policy)  # a folder, which it refuses
    if names_code(policy) and begin not in (*SCHEDULERS, *DISPATCHERS):
        return find_policy(imported(policy, seed))
    if begin != policy:
        raise no_scheduler(policy, [*SCHEDULERS, *COSCHEDULERS])
    also = f"a rule under limits ({', '.join(POWER)}), an expression, six weights, a saved agent's"
    also += " path or package.module:Class"
    also += "" if seed is None else f"; learners are {', '.join(LEARNERS)} and module:Class"
    names = [*_SIMULATED, *known, *COSCHEDULERS, *PAIR_POLICIES]
    packages = sources("policies", names) | sources("agents", names)
    raise HpcgymError(unknown("policy", policy, names, also, packages))


def is_known(name: str) -> bool:
    """Tell whether a name stands for a row that may be there, or for a scheduler or policy."""
    known = name in (STATIC, RANDOM, *COSCHEDULERS, *PAIR_POLICIES) or _is_simulated(name)
    return known or name in others("policies") or name in others("agents")


def of_shared_nodes(policy: Any) -> bool:
    """Tell whether a policy is only for jobs that share nodes."""
    return isinstance(policy, PairPolicy) or (isinstance(policy, Scheduler) and policy.parts > 0)


def _is_simulated(name: str) -> bool:
    """Tell whether a name is that of a scheduler, a dispatcher or a rule for limits."""
    if name in _SIMULATED or is_file(name) or ruled(name) is not None:
        return True
    return is_variant(name) and name.partition(":")[0].strip() not in COSCHEDULERS


def ruled(name: Any) -> tuple[str, str] | None:
    """Return the rule and the scheduler of a row such as "powercap" or "reduce-pc+saf".

    A rule alone stands for EASY under it. None: the name is of another kind, or no text.
    """
    rule, plus, order = name.partition("+") if isinstance(name, str) else ("", "", "")
    if rule not in POWER or (plus and not has_name("policies", order, SCHEDULERS)):
        return None
    return rule, order if plus else "easy"


# --- Schedulers by name, under the rules of an evaluation -----------------------------------------


def scheduler_of(name: Any, rules: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler of a name, of weights or of a dispatcher under these rules.

    A scheduler that is given is returned as it is, and so is what a name says by itself.
    """
    if isinstance(name, Scheduler):
        return name
    if not isinstance(name, str) or name in DISPATCHERS:
        theirs = {rule: rules[rule] for rule in _OF_DISPATCHERS if rule in rules}
        return Scheduler(dispatcher=name, **theirs)
    if (of_limits := ruled(name)) is not None:
        return scheduler_of(of_limits[1], rules).but(power=of_limits[0])
    if is_file(name):
        return find_scheduler(name)
    if is_variant(name):
        begin, changed = read_variant(name)
        return scheduler_of(begin, rules).but(**changed)
    own_rules = name not in POLICIES or name == "fcfs" or POLICIES[name].looks_at_usage
    if name in SCHEDULERS and own_rules:
        scheduler: Scheduler = SCHEDULERS[name]
        usual = Scheduler()
        own = {"backfill", "backfill_order"}
        own |= {rule for rule in rules if getattr(scheduler, rule) != getattr(usual, rule)}
        return scheduler.but(**{rule: rules[rule] for rule in rules if rule not in own})
    return Scheduler(policy=name).but(**rules)


def queue_order(policy: str) -> Scheduler:
    """Return the scheduler with a policy as its order of the queue.

    Parameters
    ----------
    policy : a name, an expression, weights, a file of a scheduler, or a saved agent that has
        learned weights which do not change.

    Raises
    ------
    HpcgymError : no policy, or one that does not order a queue by itself: agents that act on what
        an environment shows them, dispatchers.
    """
    policy_found = find_policy(policy)
    if ruled(policy_found) is not None:
        raise HpcgymError(f"{policy} is a way to keep limits, and no order of a queue")
    if not acts(policy_found):
        return scheduler_of(policy_found, {})
    if not callable(getattr(policy_found, "scheduler", None)):
        raise HpcgymError(
            f"{policy} acts on what an environment shows it, and has no order of a queue of its"
            " own: take a policy, an expression, or an agent that has learned weights, as xnes"
        )
    learned: Scheduler = policy_found.scheduler()
    return learned


def schedulers_of(compared: Policies, rules: Mapping[str, Any]) -> list[Scheduler]:
    """Return the schedulers for which the jobs of an evaluation must be fit.

    The first has the rules that are given, or that agents bring along from their training; others
    are rows with rules of their own, such as "saf:quota=user:jobs=2" or a slurm.conf.

    Parameters
    ----------
    rules : as :func:`hpcgym.study.evaluate` takes them.

    Raises
    ------
    HpcgymError : a rule that a row cannot have.
    """
    kept = settled(OF_JOBS, rules, map(options_of, compared.acting.values()))
    simulated = [
        policy
        for policy in compared.policies.values()
        if not (acts(policy) or of_shared_nodes(policy))
    ]
    lifted = lifted_by(rules)
    own = (under_site_rules(scheduler_of(policy, kept), kept, lifted) for policy in simulated)
    return [Scheduler().but(**kept), *own]


def options_of(policy: Any) -> Mapping[str, Any]:
    """Return the arguments of the environment that a policy was made for, as far as it has any."""
    return getattr(policy, "env_options", None) or {}


def env_of(policy: Any, env: str | None) -> str | None:
    """Return the id of the environment that a policy names.

    ``env``: that of a policy which only says what arguments it needs.
    """
    own: str | None = getattr(policy, "env_id", None)
    if own is None:
        return env if options_of(policy) else None
    return full_id(successor(own))
