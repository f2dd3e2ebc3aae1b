"""Names of schedulers: those of bundles and dispatchers, or else their rules in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

from hpcgym.baselines.dispatchers import DISPATCHERS, chooses_nodes
from hpcgym.baselines.schedulers import COSCHEDULERS, SCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.asked_for import SITE_RULES
from hpcgym.scheduler.backfilling import BackfillRule
from hpcgym.scheduler.estimates.by_name import KNOWN, label_of
from hpcgym.scheduler.policies.expressions import is_expression
from hpcgym.scheduler.policies.networks import Network, is_network
from hpcgym.scheduler.rules import OF_SHARED_NODES, Scheduler

#: Rule -> its words in a name.
_WORDS = {
    "backfill": "{} backfilling",
    "backfill_order": "backfill {}",
    "estimate": "estimate {}",
    "correction": "{} correction",
    "policy_estimate": "policies by {}",
    "threshold": "threshold {} s",
    "hold": "hold {}",
    "relax": "relaxed for {} s",
    "candidate_estimate": "candidates by {}",
    "quota": "quota {}",
    "maintenance": "maintenance {}",
    "preemption": "preemption {}",
    "dependencies": "dependencies {}",
    "fair_share": "fair share {}",
}
#: The same for rules that all schedulers of a table usually share, told above the table.
_OF_SETTING = {
    "policy": "queue by {}",
    "passes": "{} passes",
    "allocation": "{} allocation",
    "power": "{} power",
    "partners": "partners {}",
    "pairs_above": "pairs above {}",
    "pair_estimate": "pair speedups {}",
}
_LONGEST = 120  # characters of a rule in words


def scheduler_names(schedulers: Sequence[Scheduler]) -> list[str]:
    """Return what schedulers are called, with passes and shares if these alone tell them apart."""
    names = apart(
        [scheduler_name(scheduler) for scheduler in schedulers],
        [f"{scheduler.passes} passes" for scheduler in schedulers],
    )
    shares = (scheduler.describe()["fair_share"] for scheduler in schedulers)
    return apart(names, [f"fair share {share}" if share else "equal shares" for share in shares])


def apart(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return names; those that are there with several texts have their texts behind them."""
    both = list(zip(names, texts, strict=True))
    of_name = Counter(name for name, _ in set(both))
    return [f"{name}, {text}" if of_name[name] > 1 else name for name, text in both]


def scheduler_name(scheduler: Scheduler) -> str:
    """Return the name of the bundle or dispatcher that a scheduler is, else its rules.

    Its passes do not matter, nor what shares its users have; an allocation that is not its usual
    one, how limits are kept and how partners are chosen are told behind the name.
    """
    rules = scheduler.describe()
    if scheduler.dispatcher is not None:
        of_it = ("dispatcher", "dispatch_time", "allocation")
        bare = type(scheduler)(**{name: getattr(scheduler, name) for name in of_it})
        # requested times are never too short, so their correction does not matter
        if {**bare.describe(), "correction": rules["correction"]} == rules:
            parts = [*_dispatch_time(rules), *_allocation(scheduler)]
            return ", ".join([str(rules["dispatcher"]), *parts])
        return describe(scheduler)
    names = ("passes", "allocation", "power", *OF_SHARED_NODES)
    beside = {name: getattr(scheduler, name) for name in names}

    def is_that(known: Scheduler) -> bool:
        # shares of users are told but not given: some orders could not have them
        return known.but(**beside).describe() | {"fair_share": rules["fair_share"]} == rules

    for name, known in COSCHEDULERS.items():
        usual = known.allocation == scheduler.allocation
        both_share = min(known.parts, scheduler.parts) > 1
        if (usual or both_share) and is_that(known):
            parts = _partners(scheduler) if usual else _allocation(scheduler)
            return ", ".join([str(name), *parts])
    named = dict(SCHEDULERS)
    if scheduler.order.other is not None:
        named[str(scheduler.policy)] = Scheduler(policy=scheduler.policy)
    for name, known in named.items():
        if is_that(known):
            return ", ".join([str(name), *_allocation(scheduler)])
    return describe(scheduler)


def check_label(name: str, scheduler: str | Scheduler) -> None:
    """Raise an HpcgymError if a scheduler is called as another one is."""
    known = {*SCHEDULERS, *COSCHEDULERS, *DISPATCHERS}
    if isinstance(scheduler, Scheduler):
        begin = scheduler_name(scheduler)
        other = begin in known  # rules that have no name may be a variant of that scheduler
    else:
        begin = scheduler.partition(":")[0].strip()
        other = scheduler != name
    if name in known and begin != name and other:
        raise HpcgymError(
            f"{name!r} is the name of another scheduler than {str(scheduler)!r}: choose another"
            " name"
        )


def labelled(
    name: str, usual: Scheduler, scheduler: Scheduler, shown: Collection[str] | None = None
) -> str:
    """Return a name with those rules behind it that are not the ones it stands for.

    Such as "saf (backfill fcfs)".

    Parameters
    ----------
    shown : the rules that are told if they differ. By default all but passes, allocation and
        limits: they are the setting of all schedulers of a table, and told above it.
    """
    words = dict(_WORDS)
    if shown is not None:
        words = {rule: text for rule, text in {**_OF_SETTING, **_WORDS}.items() if rule in shown}
    parts = _differences(usual.describe(), scheduler.describe(), words)
    return f"{name} ({', '.join(parts)})" if parts else name


def differences(usual: Scheduler, scheduler: Scheduler) -> str:
    """Return the rules of a scheduler that another does not have, but its order, in few words."""
    return ", ".join(_differences(usual.describe(), scheduler.describe(), _WORDS))


def _differences(
    usual: Mapping[str, Any], rules: Mapping[str, Any], words: Mapping[str, str]
) -> list[str]:
    """Return the rules that differ and matter, in a few words each; no value is "no"."""
    unused = {"estimate", "correction"} if rules["backfill"] == "none" else set()
    if rules["backfill"] and not BackfillRule.parse(rules["backfill"]).sweeps:
        unused |= {"backfill_order"}
    if _never_too_short(rules["estimate"]):
        unused |= {"correction"}
    if rules["correction"] == "kill":  # it cuts jobs under any backfilling
        unused -= {"estimate", "correction"}
    if {rules["policy"], rules["backfill_order"]} <= {"fcfs", "sjbf"}:
        unused |= {"policy_estimate"}
    return [
        in_short(text.format(rules[rule]))
        if rules[rule] not in (None, "none")
        else f"no {text.format('').removesuffix(' s').strip()}"
        for rule, text in words.items()
        if rule not in unused and rules[rule] != usual[rule]
    ]


def _never_too_short(estimate: Any) -> bool:
    """Return whether an estimate, in words, leaves nothing to correct."""
    return estimate in KNOWN


def in_short(text: str) -> str:
    """Return a rule in words that has room in a line: an order or quotas of a site's files are cut.

    >>> in_short("wait"), in_short("wait+" * 100)[-6:]
    ('wait', '+wait…')
    """
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def describe(scheduler: Scheduler, *, whole: bool = False) -> str:
    """Return the rules of a scheduler, in a line; each :func:`in_short`, or ``whole``."""
    rules = scheduler.describe()
    parts = _order(scheduler)
    if rules["dispatcher"]:
        parts = [f"dispatcher {rules['dispatcher']}", *_dispatch_time(rules)]
    parts.append(_times(scheduler, "estimate"))
    if not _never_too_short(rules["estimate"]):
        parts.append(f"{scheduler.correction} correction")
    for rule in ("threshold", "hold", "relax", *SITE_RULES):
        value = rules[rule]
        if value not in (None, "none"):
            text = value if isinstance(value, str) else f"{value:,}"
            parts.append(_WORDS[rule].format(text))
    if rules["policy_estimate"] not in ("requested", None):
        parts.append(f"policies by {_times(scheduler, 'policy_estimate')}")
    if rules["candidate_estimate"] is not None:
        parts.append(f"candidates by {_times(scheduler, 'candidate_estimate')}")
    if rules["fair_share"] is not None and any(scheduler.usage_orders):
        parts.append(f"fair share {rules['fair_share']}")
    own = ["nodes of its own choice"] if chooses_nodes(scheduler.dispatcher) else []
    parts += own + _allocation(scheduler)
    return ", ".join(parts if whole else map(in_short, parts))


def _dispatch_time(rules: Mapping[str, Any]) -> list[str]:
    """Return how long a call of the dispatcher takes, if it takes time."""
    takes = rules["dispatch_time"]
    text = f"{takes:g} s a call" if isinstance(takes, int | float) else f"calls' time {takes}"
    return [text] if takes else []


def _allocation(scheduler: Scheduler) -> list[str]:
    """Return the order in which nodes are filled and how limits are kept, if it is not as usual."""
    usual = chooses_nodes(scheduler.dispatcher) or scheduler.allocation == "first-fit"
    parts = [] if usual else [f"{scheduler.allocation} allocation"]
    parts += [] if scheduler.power == "none" else [f"{scheduler.power} power"]
    return parts + _partners(scheduler)


def _partners(scheduler: Scheduler) -> list[str]:
    """Return how partners are chosen where jobs share nodes, if it is not as usual."""
    rules = scheduler.describe()
    parts = [] if scheduler.partners == "fill" else [f"partners {scheduler.partners}"]
    if scheduler.pairs_above is not None:
        parts.append(f"pairs above {scheduler.pairs_above:g}")
    known = rules["pair_estimate"] == "known"
    return parts if known else [*parts, f"pair speedups {rules['pair_estimate']}"]


def _order(scheduler: Scheduler) -> list[str]:
    """Return the order of the queue, and which jobs may start out of order."""
    given = scheduler.policy
    has_name = callable(given) or isinstance(given, Network) or is_network(given)
    order = f"queue by {scheduler.describe()['policy'] if has_name else _policy(given)}"
    if scheduler.reserve.kind == "none":
        return [order, "no backfilling"]
    if scheduler.reserve.kind == "fill":
        return [order, "whatever finds room starts"]
    if scheduler.reserve.kind == "first-come":
        behind = f"backfilling among {scheduler.reserve.behind} by requested times"
        return [order, "a reservation for the one that came first", behind]
    if scheduler.reserve.conservative:
        return [order, "conservative backfilling"]
    if scheduler.reserve.slurm is not None:
        slurm, shown = scheduler.reserve.slurm, ("bf_interval", "bf_max_job_test")
        others = [setting for setting in fields(slurm) if setting.name not in shown]
        rows = [(setting.name, getattr(slurm, setting.name), setting.default) for setting in others]
        way = f"Slurm's backfilling every {slurm.bf_interval} s over {slurm.bf_max_job_test} jobs"
        return [
            order,
            "no backfilling, each partition by itself" if scheduler.reserve.depth == 0 else way,
            *(f"{name} {value}" for name, value, usual in rows if value != usual),
        ]
    if scheduler.reserve.anew:
        by = _policy(scheduler.backfill_order)
        return [order, f"{scheduler.reserve.depth} reservations, backfilling by {by}"]
    until = " until the shadow time" if scheduler.reserve.kind == "until-shadow" else ""
    return [order, f"EASY backfilling by {_policy(scheduler.backfill_order)}{until}"]


def _times(scheduler: Scheduler, rule: str) -> str:
    """Return which run times an estimate takes."""
    words = str(scheduler.describe()[rule])
    if words == "given":
        return "predicted run times given"
    name, _, attributes = words.partition(":")
    label = label_of(name)
    return f"{label} ({attributes.replace(',', ', ')})" if attributes else label


def rules_of_all(schedulers: Sequence[Scheduler]) -> list[str]:
    """Return the rules that all schedulers have and that are not usual, in a few words each."""
    of_queues = [scheduler for scheduler in schedulers if scheduler.dispatcher is None]
    if len(of_queues) < len(schedulers):
        return []
    usual = type(of_queues[0])().describe()
    first, *others = (scheduler.describe() for scheduler in of_queues)
    same = {name for name in first if all(other[name] == first[name] for other in others)}
    rules = usual | {name: first[name] for name in same}
    power = [] if rules["power"] == "none" else [f"{rules['power']} power"]
    order = [] if rules["policy"] == "fcfs" else [in_short(_order(of_queues[0])[0])]
    return order + _differences(usual, rules, _WORDS) + power


def _policy(policy: Any) -> str:
    """Return a policy, which is no function, in a few words."""
    if isinstance(policy, Mapping):
        return "weights " + ", ".join(f"{name} {weight:g}" for name, weight in policy.items())
    if not isinstance(policy, str):
        return f"weights ({', '.join(f'{weight:g}' for weight in policy)})"
    if is_expression(policy):
        return policy
    return f"weights ({policy})" if "," in policy else policy.upper()
