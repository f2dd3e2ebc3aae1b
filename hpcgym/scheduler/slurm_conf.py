"""The rules of a slurm.conf as a scheduler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from hpcgym.cluster.slurm import Qos, SlurmConf, read_qos, read_slurm_conf
from hpcgym.cluster.slurm.amounts import minutes_text
from hpcgym.cluster.slurm.settings import Unfollowed
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.scheduler.policies.fair_share import FAIR_TREE, FairShare
from hpcgym.scheduler.preemption import MODES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.slurm_backfill import SlurmBackfill
from hpcgym.scheduler.slurm_preemption import (
    FOLLOWED,
    YOUNGEST_FIRST,
    exempt_of_slurm,
    mode_of_slurm,
    preemption_of_slurm,
    spared,
    stopping_of,
)
from hpcgym.scheduler.slurm_quotas import limits_as_quotas

ENDING = ".conf"
_OF_BACKFILL = tuple(each.name for each in fields(SlurmBackfill))
_WEEK_S = 7 * 86_400
_CLASSIC = "no_fair_tree"  # the flag of the formula that was the usual one before Slurm 19.05
#: General settings that a scheduler follows, in lower case.
_FOLLOWED = ("schedulertype", "prioritytype", "schedulerparameters")
#: Those that it also follows with PriorityType=priority/multifactor.
_MULTIFACTOR = (
    "priorityweightage", "priorityweightjobsize", "priorityweightfairshare", "prioritymaxage",
    "prioritydecayhalflife", "priorityfavorsmall", "fairsharedampeningfactor",
    "priorityweightpartition",
)  # fmt: skip
_BASIC = "priority/basic"
#: Columns of QOS that say who stops whom, in lower case.
_STOPPING = ("preempt", "preemptmode", "preemptexempttime")


def scheduler_of_slurm(path: str | Path, qos: str | Path | None = None) -> Scheduler:
    """Return the scheduler of a slurm.conf, and warn of what it says that is not followed.

    ``qos`` is a file that ``sacctmgr -P show qos`` printed. It adds their part of the priority,
    PriorityWeightQOS times Priority / the greatest; their limits, as quotas; and with
    ``PreemptType=preempt/qos`` who stops whom. Logs have QOS as queues.

    ``SchedulerType=sched/builtin``, or ``bf_interval=-1``, is strict order; else jobs are
    back-filled as :class:`SlurmBackfill` says. ``PriorityType=priority/basic`` is by submission.
    With ``priority/multifactor``, or no type, the order is the sum of three factors times their
    weights (Slurm's page "Multifactor Priority Plugin"), and four with that of the partition:
    PriorityJobFactor / the greatest of one. Jobs in a partition of a higher PriorityTier come
    before all others. Age: min(wait / PriorityMaxAge, 1). Job
    size: processors / those of the machine, or 1 less that with PriorityFavorSmall; Slurm's is the
    mean of this and the same of nodes. Fair share: Fair Tree as :class:`FairShare` has it, or with
    ``PriorityFlags=NO_FAIR_TREE`` 2^(-U / S / FairShareDampeningFactor). The file tells no accounts
    and no shares: users are alike. Who stops whom is as :func:`preemption_of_slurm` says.

    Raises
    ------
    HpcgymError : a file that cannot be read, or a value that cannot be; the message names the file.
    """
    conf = read_slurm_conf(path)
    try:
        known = [] if qos is None else read_qos(qos)
        scheduler = _rules(conf, known, qos)
    except HpcgymError as error:
        raise HpcgymError(f"{path}: {error}") from None
    left = _not_followed(conf, scheduler, bool(known))
    if left_of_qos := _left_of_qos(known, scheduler):
        warn_caller(f"{qos}: not followed: {', '.join(left_of_qos)}", HpcgymWarning)
    if left:
        of_qos = conf.scheduling.get("preempttype", "").casefold() == "preempt/qos"
        more = qos is None and (of_qos or "PriorityWeightQOS" in left)
        hint = f". {path}:qos=FILE takes what sacctmgr -P show qos printed" if more else ""
        text = f"{path}: not followed: {', '.join(dict.fromkeys(left))}{hint}"
        warn_caller(text, HpcgymWarning)
    return scheduler


def followed_and_not(conf: SlurmConf) -> tuple[list[Unfollowed], list[Unfollowed]]:
    """Return the settings that are not of the machine: those of the scheduler, and all others.

    Of SchedulerParameters each of the two has its own.

    Raises
    ------
    HpcgymError : a value that cannot be, so that the file is no scheduler.
    """
    left = _not_followed(conf, _rules(conf))
    followed: list[Unfollowed] = []
    others: list[Unfollowed] = []
    for one in conf.unfollowed:
        if one.name.casefold() != "schedulerparameters":
            (others if one.name in left else followed).append(one)
            continue
        for found, is_left in ((followed, False), (others, True)):
            parts = [
                f"{name}={value}" if value else name
                for name, value in conf.parameters.items()
                if (f"SchedulerParameters {name}" in left) == is_left
            ]
            found += [one._replace(value=",".join(parts))] if parts else []
    return followed, others


def _rules(conf: SlurmConf, known: Sequence[Qos] = (), of: str | Path | None = None) -> Scheduler:
    """Return the scheduler; with the QOS ``known``, ``of`` a file."""
    policy, fair_share = _order(conf, known)
    preemption = preemption_of_slurm(conf)
    kind, mode = conf.scheduling.get("preempttype", ""), mode_of_slurm(conf)
    if kind.casefold() == "preempt/qos" and mode in MODES and any(one.preempts for one in known):
        assert of is not None
        preemption = stopping_of(known, of, mode, exempt_of_slurm(conf))[0]
    return Scheduler(
        policy=policy, backfill=_backfill(conf), fair_share=fair_share,
        preemption=preemption, quota=limits_as_quotas(known)[0] or None,
    )  # fmt: skip


def _left_of_qos(known: Sequence[Qos], scheduler: Scheduler) -> list[str]:
    """Return what QOS say that is not followed."""
    stops = str(scheduler.preemption).startswith("qos:")
    followed = _STOPPING if stops else ()
    left = limits_as_quotas(known)[1]
    return [name for name in left if name.rpartition(": ")[2].casefold() not in followed]


def _not_followed(conf: SlurmConf, scheduler: Scheduler, has_qos: bool = False) -> list[str]:
    """Return the settings that say how jobs are scheduled, and are not followed."""
    strict, stops = scheduler.backfill == "none", scheduler.preemption is not None
    left = [
        f"SchedulerParameters {name}"
        for name, value in conf.parameters.items()
        if (name not in _OF_BACKFILL or (strict and (name, value) != ("bf_interval", "-1")))
        and not (stops and name in YOUNGEST_FIRST)
    ]
    followed: tuple[str, ...] = _FOLLOWED
    if _priority_type(conf) != _BASIC:
        known = _flags(conf) <= {_CLASSIC, "fair_tree"}
        followed += (*_MULTIFACTOR, *(["priorityflags"] if known else []))
        followed += ("priorityweightqos",) if has_qos else ()
    keys = ("prioritytier", "priorityjobfactor")
    said = [
        one
        for one in conf.unfollowed
        if one.name.casefold() not in followed and one.name.casefold().split(": ")[-1] not in keys
    ]
    if stops:
        said = [one for one in said if not _of_preemption(one, spared(conf))]
    return left + sorted(one.name for one in said)


def _of_preemption(one: Unfollowed, safe: set[str]) -> bool:
    """Return whether a setting is followed where jobs stop others."""
    name, value = one.name.casefold(), one.value.casefold()
    if name == "preemptparameters":
        return value in YOUNGEST_FIRST
    partition, _, key = one.name.rpartition(": ")
    return name in FOLLOWED or (key.casefold() == "preemptmode" and partition in safe)


def _backfill(conf: SlurmConf) -> str:
    """Return the way to back-fill."""
    kind = conf.scheduling.get("schedulertype", "sched/backfill").casefold()
    if kind == "sched/builtin" or conf.parameters.get("bf_interval") == "-1":
        return "none"
    if kind != "sched/backfill":
        raise HpcgymError(f"SchedulerType={kind}: known are sched/backfill and sched/builtin")
    given = [f"{name}={conf.parameters[name]}" for name in _OF_BACKFILL if name in conf.parameters]
    return str(SlurmBackfill.parse(":".join(["slurm", "+".join(given)] if given else ["slurm"])))


def _order(conf: SlurmConf, known: Sequence[Qos]) -> tuple[str, FairShare | None]:
    """Return the order of the queue, and what fair share needs; with the priorities of QOS."""
    said = conf.scheduling
    kind = _priority_type(conf)
    if kind == _BASIC:
        return _with_partitions(conf, [], 0, 0) or "fcfs", None
    if kind != "priority/multifactor":
        raise HpcgymError(f"PriorityType={kind}: known are {_BASIC} and priority/multifactor")
    age = _seconds(said.get("prioritymaxage"), "PriorityMaxAge") or math.inf
    size = f"processors / {conf.cluster.processors}"
    if said.get("priorityfavorsmall", "no").casefold() == "yes":
        size = f"(1 - {size})"
    factors = {
        "PriorityWeightAge": f"min(wait / {age}, 1)",
        "PriorityWeightJobSize": size,
        "PriorityWeightFairshare": "fairshare",
    }
    weights = {name: _weight(name, said.get(name.casefold(), "0")) for name in factors}
    if age == math.inf:  # it never counts
        weights["PriorityWeightAge"] = 0
    terms = [f"{weights[name]} * {factor}" for name, factor in factors.items() if weights[name]]
    weights["PriorityWeightQOS"] = _weight(
        "PriorityWeightQOS", said.get("priorityweightqos", "0") if known else "0"
    )
    terms += _of_qos(known, weights["PriorityWeightQOS"])
    of_partitions = _weight("PriorityWeightPartition", said.get("priorityweightpartition", "0"))
    policy = _with_partitions(conf, terms, of_partitions, sum(weights.values())) or "fcfs"
    if not weights["PriorityWeightFairshare"]:
        return policy, None
    half = said.get("prioritydecayhalflife")
    forgets = _seconds(half, "PriorityDecayHalfLife") or math.inf
    if _CLASSIC not in _flags(conf):
        return policy, FairShare(half_life_s=forgets, formula=FAIR_TREE)
    damping = _weight("FairShareDampeningFactor", said.get("fairsharedampeningfactor", "1"))
    return policy, FairShare(half_life_s=forgets, damping=damping)


def _priority_type(conf: SlurmConf) -> str:
    """Return PriorityType, in lower case."""
    return conf.scheduling.get("prioritytype", "priority/multifactor").casefold()


def _flags(conf: SlurmConf) -> set[str]:
    """Return PriorityFlags, in lower case."""
    said = conf.scheduling.get("priorityflags", "").casefold()
    return {flag.strip() for flag in said.split(",")} - {""}


def _with_partitions(conf: SlurmConf, terms: list[str], weight: int, most: int) -> str:
    """Return the sum of some terms, and what the partition of a job adds to it.

    That is its tier, counted from the lowest, times more than all else can add, and ``weight``
    times its factor over the greatest.

    Parameters
    ----------
    terms : of the sum, which add up to ``most`` at most.
    """
    partitions = conf.cluster.partitions
    tiers = sorted({one.priority_tier for one in partitions})
    greatest = max((one.priority_factor for one in partitions), default=0) or 1
    added = []
    for one in partitions:
        above = tiers.index(one.priority_tier) * (most + weight + 1)
        number = above + weight * one.priority_factor / greatest
        added += [f"{number:.15g} * (partition == {one.name!r})"] if number else []
    return " + ".join([*added, *terms])


def _of_qos(known: Sequence[Qos], weight: int) -> list[str]:
    """Return what QOS add to the priority of their jobs: the weight times a part of the greatest.

    By Slurm's page "Multifactor Priority Plugin".
    """
    greatest = max((one.priority for one in known), default=0) or 1
    numbers = {one.name: weight * one.priority / greatest for one in known}
    return [f"{number:.15g} * (queue == {name!r})" for name, number in numbers.items() if number]


def _seconds(text: str | None, name: str) -> int | None:
    """Return a time of Slurm in seconds, a week where there is none; None: no end."""
    return _WEEK_S if text is None else minutes_text(text, name)


def _weight(name: str, text: str) -> int:
    """Return a whole number of at least 0."""
    if not (text.isascii() and text.isdigit()):
        raise HpcgymError(f"{name} must be a whole number, not {text!r}")
    return int(text)
