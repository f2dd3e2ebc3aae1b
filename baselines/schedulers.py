"""The named schedulers: the EASY family, conservative backfilling and the pure index policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from hpcgym.baselines.dispatchers import DISPATCHERS, chooses_nodes
from hpcgym.errors import HpcgymError, unknown
from hpcgym.machine.slurm.lines import files_of, rules_behind
from hpcgym.own_code import names_code, others, sources
from hpcgym.scheduler.asked_for import check_fair_share
from hpcgym.scheduler.backfilling import BACKFILL, Hold
from hpcgym.scheduler.backfilling import NAME as OF_SLURM
from hpcgym.scheduler.files import ENDING, network_scheduler, read_scheduler
from hpcgym.scheduler.policies.expressions import is_expression
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.policies.index import POLICIES
from hpcgym.scheduler.policies.networks import PREFIX, is_network
from hpcgym.scheduler.rules import OF_THE_QUEUE, RULES, Scheduler, not_beside_a_dispatcher
from hpcgym.units import in_seconds

# --- The co-schedulers of ELiSE -------------------------------------------------------------------
#
# Each is an order of the queue over the same core: jobs take half of each socket, on nodes in use
# before idle ones, and there beside the jobs with which they are fastest. The document names them
# and describes each in a line; the formulas are ours
# (:data:`hpcgym.scheduler.policies.index.PASS_POLICIES`).

_HALF = Scheduler(allocation="half-socket")

#: Name -> scheduler, for :func:`hpcgym.simulate` with ``speedups``.
COSCHEDULERS: dict[str, Scheduler] = {
    # in order of arrival, with EASY's reservation for the first waiting job
    "easy-co": _HALF,
    # the shortest, longest, largest of the queue first
    "sjf-co": _HALF.but(policy="sjf", backfill_order="sjf"),
    "ljf-co": _HALF.but(policy="lpf", backfill_order="lpf"),
    "largest-co": _HALF.but(policy="lqf", backfill_order="lqf"),
    # jobs that gain with most others first
    "popularity-co": _HALF.but(policy="popularity"),
    # the job that fits best into what is free, without reservations
    "filler-co": _HALF.but(policy="filler", backfill="fill"),
    # two factors
    "sjf-filler-co": _HALF.but(policy="sjf-filler", backfill="fill"),
    "popularity-filler-co": _HALF.but(policy="popularity-filler", backfill="fill"),
    # spread and alone: separates the effect of sharing from that of spreading
    "easy-spread": _HALF.but(allocation="spread"),
}


# --- The named schedulers -------------------------------------------------------------------------

_TYPICAL = Scheduler("saf", backfill_order="spf", policy_estimate="typical-ratio")
_AGED = "4*log(wait+72000)-log(max(requested,1))-0.2*log(processors)"
_EVOLVED = (
    "(-0.09506+0.5221*free-1.264*free_1h-0.5697*log(1+queued))*log(max(requested,1))"
    "-0.3425*log(max(time_limit,1))"
    "+(-1.964+1.577*free+1.658*free_1h+0.004571*log(1+queued))*log(processors)"
    "+(4.428+0.2541*log(1+queued))*log(wait+72000)-0.9146*log(wait+3600)"
    "+(1.867+0.05725*free)*fits-0.6008*leaves"
)
_HELD = {"share": 0.015, "by": "both"}
_FAMILY = {
    # no backfilling at all: the strict queue
    "fcfs": Scheduler(backfill="none"),
    # Mu'alem and Feitelson 2001
    "easy": Scheduler(),
    "conservative": Scheduler(backfill="conservative"),
    # shortest job backfilled first; with requested times also the FCFS of Legrand et al. 2018
    "easy-sjbf": Scheduler(backfill_order="sjbf"),
    # Tsafrir, Etsion and Feitelson 2007; Glesser 2016, section 7.5
    "easy++": Scheduler(backfill_order="sjbf", estimate="ave2", correction="incremental"),
    # the triple that Glesser 2016 recommends, section 7.5.3
    "easy-e-loss": Scheduler(backfill_order="sjbf", estimate="e-loss", correction="incremental"),
    # SAF by typical ratios: docs/prediction.md
    "saf-typical": _TYPICAL,
    # chosen on the first halves of whole logs, also by the longest waits: benchmarks/frontier
    "saf-typical-20h-hold": _TYPICAL.but(threshold=72_000, hold={"share": 0.1, "by": "both"}),
    "saf-typical-80h": _TYPICAL.but(threshold=288_000),
    # found by search on the early halves of six logs: waiting counts as a power, width little
    "aged": _TYPICAL.but(policy=_AGED),
    "aged-safe": _TYPICAL.but(
        policy="5*log(wait+50400)-0.6*log(max(requested,1))-0.4*log(max(time_limit,1))"
        "-0.1*log(processors)",
        hold={"share": 0.02, "by": "both"},
    ),
    # the share was chosen on first halves, by five replays of each with stretched submissions
    "aged-hold": _TYPICAL.but(policy=_AGED, hold=_HELD),
    # learned by the agent rule-es on the first halves of the suite's six logs, with seed 0
    "evolved": _TYPICAL.but(policy=_EVOLVED, threshold=288_000),
    "evolved-hold": _TYPICAL.but(policy=_EVOLVED, threshold=288_000, hold=_HELD),
}

#: Name -> scheduler. A policy's name alone is EASY with that policy and its usual backfill order;
#: only ``fcfs`` is the strict queue.
SCHEDULERS: dict[str, Scheduler] = {
    **_FAMILY,
    **{name: Scheduler(policy=name) for name in POLICIES if name not in _FAMILY},
}


def find_scheduler(name: str) -> Scheduler:
    """Return a scheduler by name, a variant of one, or the scheduler of a file.

    A variant is, for example, ``saf:threshold=18000,hold=0.1``: rules follow the colon, by the
    names of :class:`Scheduler`'s attributes; entries of hold, such as ``from_s=600``, may follow
    it. ``backfill_order`` may also be a scheduler's name, which stands for its policy, as in
    ``evolved:backfill_order=evolved``. Files end in ``.toml``, see :mod:`hpcgym.scheduler.files`;
    are of a network, ``network:FILE``, see :mod:`hpcgym.scheduler.policies.networks`; rules may
    follow both, as in ``network:FILE:threshold=18000``. Or they end in ``.conf``: of Slurm, see
    :func:`hpcgym.scheduler.slurm_conf.scheduler_of_slurm`;
    ``slurm.conf:qos=qos.txt+assoc=assoc.txt`` adds the files that ``sacctmgr -P show qos`` and
    ``show assoc`` printed, and ``+policy=saf,threshold=18000`` behind them replaces rules.

    Raises
    ------
    HpcgymError : an unknown name; the message has the nearest known ones. Or a dispatcher's. Or a
        file that cannot be read. Or a rule that there is not, or a value that it cannot have.
    """
    if isinstance(name, str) and (known := SCHEDULERS.get(name) or COSCHEDULERS.get(name)):
        return known
    if of_slurm := files_of(name):
        from hpcgym.scheduler.slurm_conf import scheduler_of_slurm

        return scheduler_of_slurm(*of_slurm)
    if is_variant(name) or rules_behind(name)[1]:
        begin, rules = read_variant(name)
        return find_scheduler(begin).but(**rules)
    if is_network(name):
        return network_scheduler(name)
    if is_file(name):
        return read_scheduler(name)
    if isinstance(name, str) and name in DISPATCHERS:
        raise HpcgymError(
            f"{name!r} is a dispatcher, not a scheduler: name it by the rule dispatcher,"
            f' Scheduler(dispatcher={name!r}), in an experiment dispatcher = "{name}"'
        )
    if isinstance(name, str) and name in others("policies"):
        return Scheduler(policy=name)
    raise no_scheduler(name, [*SCHEDULERS, *COSCHEDULERS])


_BEHIND_CONF = (
    "behind a slurm.conf stand qos=FILE and assoc=FILE, what sacctmgr -P show qos and show assoc"
    " printed, and then rules: slurm.conf:qos=FILE+assoc=FILE+policy=saf"
)


def no_scheduler(name: Any, known: Iterable[str], kind: str = "scheduler") -> HpcgymError:
    """Return the error of what is no name of a scheduler, nor a variant of one.

    ``known`` are the names there are, ``kind`` what the name should have been.
    """
    begin, colon, _ = name.partition(":") if isinstance(name, str) else (name, "", "")
    if colon and begin in DISPATCHERS:
        variants = [variant for variant in DISPATCHERS if variant.startswith(f"{begin}:")]
        return HpcgymError(
            f"{name!r}: dispatchers have no variants but {' and '.join(variants)}; give rules by"
            " themselves"
        )
    if colon and files_of(begin):
        return HpcgymError(f"{name!r}: {_BEHIND_CONF}")
    if isinstance(begin, str) and begin.endswith(".json"):
        return HpcgymError(f"{name!r} is no {kind}; the file of a network is network:{name}")
    if isinstance(begin, str) and begin in BACKFILL:
        return HpcgymError(f"{begin!r} is a way to backfill, not a {kind}: easy:backfill={begin}")
    if isinstance(name, str) and not colon and is_expression(name):
        return HpcgymError(
            f"{name!r} is an order of the queue, not a {kind}: 'easy:policy={name}', or"
            " Scheduler(policy=...)"
        )
    more = ""
    if names_code(name):
        more = (
            "; a Python function of your own goes to hpcgym evaluate MODULE:NAME (in environments),"
            " or in Python to Scheduler(policy=function)"
        )
    packages = sources("policies", SCHEDULERS)
    return HpcgymError(unknown(kind, begin, known, others=packages) + more)


def is_scheduler(name: Any) -> bool:
    """Return whether a text is the name of a scheduler, of a variant of one, or of a file."""
    if is_file(name):
        return True
    if not isinstance(name, str):
        return False
    begin = _parts(name)[0].strip()
    known = begin in SCHEDULERS or begin in COSCHEDULERS or begin in others("policies")
    return known or _is_own_file(begin)


def is_file(name: Any) -> bool:
    """Return whether a text is meant as the file of a scheduler, also a slurm.conf with rules."""
    if not isinstance(name, str) or _BEHIND_FILE.fullmatch(name):
        return False
    return _is_own_file(name) or files_of(rules_behind(name)[0] or name) is not None


def _is_own_file(name: str) -> bool:
    """Return whether a text names a file of hpcgym."""
    return name.endswith(ENDING) or is_network(name)


#: A file of hpcgym and rules behind it.
_BEHIND_FILE = re.compile(
    rf"(\s*{PREFIX}[^=]+?|[^=]+?{re.escape(ENDING)}):(\s*\w+\s*=.*)", re.DOTALL
)


def _parts(name: str) -> tuple[str, str]:
    """Return the name or the file with which a variant begins, and the text of its rules."""
    begin, text = rules_behind(name)
    if begin:
        return begin, text
    if behind_file := _BEHIND_FILE.fullmatch(name):
        return behind_file[1], behind_file[2]
    begin, _, text = name.partition(":")
    return begin, text


def is_variant(name: Any) -> bool:
    """Return whether a text names a scheduler with other rules behind a colon."""
    return isinstance(name, str) and ":" in name and is_scheduler(name) and not is_file(name)


def at_commas(text: str) -> list[str]:
    """Return what stands between the commas of a text, but for those in brackets: max(wait, 5)."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def read_variant(name: str) -> tuple[str, dict[str, Any]]:
    """Return the name with which a variant begins, and the rules behind it.

    Raises
    ------
    HpcgymError : a rule that there is not, or without a value.
    """
    begin, text = _parts(name)
    of_site = files_of(begin) is not None
    known, of_hold = [*RULES], [each.name for each in fields(Hold)]
    rules: dict[str, Any] = {}
    of_share: list[str] = []
    for pair in at_commas(text):
        rule, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value:
            raise HpcgymError(
                f"scheduler {name!r}: {pair.strip()!r} should be rule=value, as in"
                " saf:threshold=18000,hold=0.1"
            )
        if rule in of_hold:
            of_share.append(f"{rule}={value}")
            continue
        if rule not in known and str(rules.get("backfill", "")).startswith(f"{OF_SLURM}:"):
            rules["backfill"] += f",{pair}"  # a setting of it, which says what is wrong with that
            continue
        if rule not in known:
            more = f"; {_BEHIND_CONF}" if of_site else ""
            raise HpcgymError(f"scheduler {name!r}: {unknown('rule', rule, known)}{more}")
        if rule in rules:
            raise HpcgymError(f"scheduler {name!r}: {rule} is there twice")
        rules[rule] = rule_value(rule, value)
    if of_share and rules.get("hold") is None:
        raise HpcgymError(f"scheduler {name!r}: {of_share[0]} is of hold, such as hold=0.1")
    if of_share:
        rules["hold"] = ",".join([rules["hold"], *of_share])
    base = {**SCHEDULERS, **COSCHEDULERS}.get(begin.strip(), Scheduler())
    return begin.strip(), _with_named_order(rules, base)


def _with_named_order(rules: Mapping[str, Any], changed: Scheduler) -> dict[str, Any]:
    """Return rules that change a scheduler; a ``backfill_order`` that names one is its policy.

    Raises
    ------
    HpcgymError : that policy looks at other run times than the scheduler will.
    """
    name = rules.get("backfill_order")
    own = SCHEDULERS.get(name) if isinstance(name, str) and name not in POLICIES else None
    if own is None or own.policy == "fcfs":
        return dict(rules)
    estimate = rules.get("policy_estimate", changed.policy_estimate)
    if not (isinstance(estimate, str) and estimate == own.policy_estimate):  # it may be an array
        raise HpcgymError(
            f"backfill_order {name!r}: its policy looks at run times by"
            f" policy_estimate={own.policy_estimate!r}, which must be given, too"
        )
    return {**rules, "backfill_order": own.policy}


#: Rules that are numbers, and those that a scheduler can be without.
_TIMES = ("threshold", "relax", "dispatch_time")
_NUMBERS = (*_TIMES, "pairs_above")
_NONE = (*_NUMBERS, "hold", "quota", "maintenance", "preemption", "fair_share", "dispatcher")


def rule_value(rule: str, text: str) -> Any:
    """Return what a rule is that was given as text: a number or None, where it can be.

    Times may have units, such as ``5h``; see :func:`hpcgym.units.in_seconds`.

    Raises
    ------
    HpcgymError : "none" among others.
    """
    if rule in _NONE and "none" in (words := [word.strip() for word in re.split("[,;]", text)]):
        if len(words) > 1:
            raise HpcgymError(
                f"{rule} {text!r}: a scheduler has none or the rest, not both; hpcgym compare"
                " simulates both if the option is given twice"
            )
        return None
    if rule not in _NUMBERS:
        return text
    read = in_seconds(text, rule) if rule in _TIMES else text
    if not isinstance(read, str):
        return read
    try:
        number = float(text)  # also 1e4 and inf
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def described(scheduler: Scheduler) -> dict[str, str | float | None]:
    """Return :meth:`Scheduler.describe`; allocation is None if the dispatcher chooses nodes."""
    rules = scheduler.describe()
    if chooses_nodes(scheduler.dispatcher):
        rules["allocation"] = None
    return rules


def scheduler_of(
    scheduler: str | Scheduler | Callable[..., Any], rules: Mapping[str, Any]
) -> Scheduler:
    """Return the scheduler, or that of a dispatcher, with some rules changed.

    Raises
    ------
    HpcgymError : an unknown name or rule, a value that it cannot have, two dispatchers, a rule of
        the queue beside one, or shares of users that no order looks at.
    """
    if callable(scheduler) or (isinstance(scheduler, str) and scheduler in DISPATCHERS):
        if "dispatcher" in rules:
            raise HpcgymError("dispatcher: there is one already, in place of the scheduler")
        chosen = Scheduler(dispatcher=scheduler)
    elif isinstance(scheduler, str) and not is_scheduler(scheduler):
        raise no_scheduler(scheduler, [*SCHEDULERS, *DISPATCHERS, *COSCHEDULERS])
    else:
        chosen = scheduler if isinstance(scheduler, Scheduler) else find_scheduler(scheduler)
    if rules.get("fair_share") is not None and chosen.fair_share is not None:
        shares = FairShare.parse(rules["fair_share"], usual=chosen.fair_share)
        rules = {**rules, "fair_share": shares}
    chosen = chosen.but(**_with_named_order(rules, chosen)) if rules else chosen
    asked_itself = "" if chosen.dispatcher is None else str(chosen.describe()["dispatcher"])
    check_fair_share(rules.get("fair_share"), any(chosen.usage_orders), asked_itself)
    if chosen.dispatcher is not None:
        for rule in OF_THE_QUEUE:  # also one with the value that is the default
            if rule in rules:
                name = chosen.describe()["dispatcher"]
                raise HpcgymError(not_beside_a_dispatcher(rule, name))
    return chosen
