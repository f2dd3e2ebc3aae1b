"""The rules of a slurm.conf as a scheduler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from hpcgym.errors import HpcgymError, HpcgymWarning, Remarks, warn_caller, warn_of_file
from hpcgym.machine.slurm import OtherSetting, SlurmConf, WrongSettingError, read_slurm_conf
from hpcgym.machine.slurm.conf import YES
from hpcgym.machine.slurm.lines import minutes_text
from hpcgym.naming import MOST_NICE, WEEK_S
from hpcgym.scheduler import slurm_assoc, slurm_qos
from hpcgym.scheduler.backfilling import SlurmBackfill
from hpcgym.scheduler.policies.fair_share import FAIR_TREE, FairShare
from hpcgym.scheduler.restrictions import MODES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.slurm_assoc import Association, read_associations
from hpcgym.scheduler.slurm_qos import Qos, read_qos
from hpcgym.scheduler.slurm_tables import Left, in_short

_OF_BACKFILL = tuple(each.name for each in fields(SlurmBackfill))
#: Of these, what passes at events follow: all that there is under sched/builtin.
_AT_EVENTS = ("default_queue_depth", "sched_interval")
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
_WRONG = "invalid values, replaced by Slurm's defaults"
#: Columns of QOS about preemption.
_STOPPING = ("Preempt", "PreemptMode", "PreemptExemptTime", "GraceTime")


def scheduler_of_slurm(
    path: str | Path, qos: str | Path | None = None, assoc: str | Path | None = None
) -> Scheduler:
    """Return the scheduler of a slurm.conf, and warn of settings that are not followed.

    An invalid value is replaced by Slurm's default.

    ``qos`` is a file that ``sacctmgr -P show qos`` printed. It adds the QOS part of the priority,
    PriorityWeightQOS times Priority / the greatest; limits, as quotas; and preemption, with
    ``PreemptType=preempt/qos``. In logs QOS are queues. ``assoc`` is a file that ``sacctmgr -P show
    assoc`` printed, with the accounts of the cluster and their users: it gives their shares, and
    their limits, as quotas. For jobs of a QOS, its limit replaces the same limit of associations:
    the latter count these jobs, but do not hold them.

    ``SchedulerType=sched/builtin``, or ``bf_interval=-1``, is strict order in each partition; else
    jobs are back-filled as :class:`SlurmBackfill` says. ``PriorityType=priority/basic`` is by
    submission. With ``priority/multifactor``, or no type, the order is the sum of three factors
    times their weights (Slurm's page "Multifactor Priority Plugin"), and four with that of the
    partition: PriorityJobFactor / the greatest of one. The nice of a job is taken from it, down to
    1. Jobs in a partition of a higher PriorityTier come before all others. Age: min(wait /
    PriorityMaxAge, 1). Job size: processors / those of the machine, or 1 less that with
    PriorityFavorSmall; Slurm's is the mean of this and the same of nodes. Fair share: Fair Tree as
    :class:`FairShare` has it, or with ``PriorityFlags=NO_FAIR_TREE`` 2^(-U / S /
    FairShareDampeningFactor). Without ``assoc`` there are no accounts, and users are alike.
    Preemption is as in :func:`hpcgym.scheduler.slurm_qos.preemption_of_slurm`.

    Raises
    ------
    HpcgymError : a file that cannot be read, or an invalid value in ``qos`` or ``assoc``; the
        message names the file.
    """
    conf = read_slurm_conf(path)
    try:
        known = [] if qos is None else read_qos(qos)
        members = [] if assoc is None else read_associations(assoc, conf.cluster.name)
        conf, wrong, scheduler = _usable(conf, known, qos, members)
    except HpcgymError as error:
        beside = (str(file) for file in (qos, assoc) if file)
        places = (*(f"{place}: " for place in conf.where.values()), *beside)
        named = str(error).startswith(places)
        raise HpcgymError(str(error) if named else f"{path}: {error}") from None
    warn_of_file(path, Remarks(list, {_WRONG: wrong}), HpcgymWarning)
    parameters, settings = _not_followed(conf, scheduler, bool(known))
    left = parameters + _in_short(settings)
    if left_of_qos := _left_of_qos(known, scheduler):
        stops = any(one.preempts for one in known) and not _stops_by_qos(conf)
        lacks = f"; {path} has no PreemptType=preempt/qos, so no job stops another by its QOS"
        why = lacks if stops else ""
        text = f"{qos}: not followed: {', '.join(in_short(left_of_qos, 'QOS'))}{why}"
        warn_caller(text, HpcgymWarning, [str(one) for one in left_of_qos])
    _warn_of_associations(assoc, members)
    if left:
        more = qos is None and (_stops_by_qos(conf) or "PriorityWeightQOS" in left)
        hint = f". {path}:qos=FILE takes what sacctmgr -P show qos printed" if more else ""
        text = f"{path}: not followed: {', '.join(left)}{hint}"
        each = [f"{one.where}: {one.name}={one.value}" for one in settings]
        warn_caller(text, HpcgymWarning, [*parameters, *each])
    return scheduler


def _in_short(settings: Iterable[OtherSetting]) -> list[str]:
    """Return what messages call settings; a key of several nodes or partitions once."""
    named: dict[tuple[bool, str], set[str]] = {}
    for one in settings:
        named.setdefault((bool(one.of), one.key), set()).add(one.name)
    return sorted(
        names.pop() if len(names) == 1 else f"{key} of {len(names):,} nodes or partitions"
        for (_, key), names in named.items()
    )


def _warn_of_associations(path: str | Path | None, members: Sequence[Association]) -> None:
    """Warn of what associations say that is not followed."""
    left = slurm_assoc.limits_as_quotas(members)[1]
    if left:
        text = f"{path}: not followed: {', '.join(in_short(left, slurm_assoc.KIND))}"
        warn_caller(text, HpcgymWarning, [str(one) for one in left])


def left_out(conf: SlurmConf) -> tuple[list[str], list[OtherSetting]]:
    """Return what a slurm.conf alone says of schedules that its scheduler does not follow.

    These are SchedulerParameters, and settings.
    """
    return _not_followed(conf, _usable(conf)[2])


def _usable(
    conf: SlurmConf,
    known: Sequence[Qos] = (),
    of: str | Path | None = None,
    members: Sequence[Association] = (),
) -> tuple[SlurmConf, list[str], Scheduler]:
    """Return a file without values that cannot be, what is wrong with these, and the scheduler."""
    wrong: list[str] = []
    while True:
        try:
            return conf, wrong, _rules(conf, known, of, members)
        except WrongSettingError as error:
            wrong.append(str(error))
            conf = conf.without(error.stands)


def without_wrong_values(conf: SlurmConf) -> SlurmConf:
    """Return what a slurm.conf says without values of scheduling that cannot be."""
    return _usable(conf)[0]


def _rules(
    conf: SlurmConf,
    known: Sequence[Qos] = (),
    of: str | Path | None = None,
    members: Sequence[Association] = (),
) -> Scheduler:
    """Return the scheduler; with the QOS ``known``, ``of`` a file, and with associations."""
    policy, fair_share = _order(conf, known)
    if fair_share is not None and members:
        fair_share = slurm_assoc.with_shares(fair_share, members)
    preemption = slurm_qos.preemption_of_slurm(conf)
    mode = slurm_qos.mode_of_slurm(conf)
    if _stops_by_qos(conf) and mode in MODES and any(one.preempts for one in known):
        assert of is not None
        preemption = slurm_qos.stopping_of(known, of, mode, slurm_qos.exempt_of_slurm(conf))
    quotas = slurm_qos.limits_as_quotas(known)[0]
    quotas += slurm_assoc.limits_as_quotas(members, slurm_qos.in_place_of(known))[0]
    return Scheduler(
        policy=policy, backfill=_backfill(conf), fair_share=fair_share,
        preemption=preemption, quota=quotas or None,
    )  # fmt: skip


def _stops_by_qos(conf: SlurmConf) -> bool:
    """Tell whether preemption is by the QOS of jobs."""
    return conf.said("preempttype") == "preempt/qos"


def _left_of_qos(known: Sequence[Qos], scheduler: Scheduler) -> list[Left]:
    """Return the values of QOS that are not followed."""
    stops = scheduler.preemption is not None and scheduler.preemption.column == "qos"
    followed = _STOPPING if stops else ()
    return [one for one in slurm_qos.limits_as_quotas(known)[1] if one.column not in followed]


def _not_followed(
    conf: SlurmConf, scheduler: Scheduler, has_qos: bool = False
) -> tuple[list[str], list[OtherSetting]]:
    """Return what says how jobs are scheduled, and is not followed: parameters, and settings."""
    strict, stops = scheduler.reserve.depth == 0, scheduler.preemption is not None
    left = [
        f"SchedulerParameters {name}"
        for name, value in conf.parameters.items()
        if name not in (_AT_EVENTS if strict else _OF_BACKFILL)
        and (name, value) != ("bf_interval", "-1")
        and not (stops and name in slurm_qos.YOUNGEST_FIRST)
    ]
    followed: tuple[str, ...] = _FOLLOWED
    if _priority_type(conf) != _BASIC:
        known = _flags(conf) <= {_CLASSIC, "fair_tree"}
        followed += (*_MULTIFACTOR, *(["priorityflags"] if known else []))
        followed += ("priorityweightqos",) if has_qos else ()
    said = [one for one in conf.others if not _is_followed(one, followed)]
    if stops:
        said = [one for one in said if not _of_preemption(one, conf)]
    return left, said


def _is_followed(one: OtherSetting, followed: tuple[str, ...]) -> bool:
    """Tell whether a setting is one of some that are followed, or of partitions and followed."""
    of_partitions = ("priority", "prioritytier", "priorityjobfactor")
    return one.is_called(*(of_partitions if one.of else followed))


def _of_preemption(one: OtherSetting, conf: SlurmConf) -> bool:
    """Return whether a setting is followed where jobs stop others."""
    if one.of:  # by QOS Slurm does not go by the modes and grace times of partitions
        off = one.is_called("preemptmode") and one.of in slurm_qos.spared(conf)
        return (off or one.is_called("gracetime")) and not _stops_by_qos(conf)
    if one.is_called("preemptparameters"):
        return one.value.casefold() in slurm_qos.YOUNGEST_FIRST
    return one.is_called(*slurm_qos.FOLLOWED)


def _backfill(conf: SlurmConf) -> str:
    """Return the way to back-fill."""
    kind = conf.said("schedulertype")
    if kind not in ("sched/builtin", "sched/backfill"):
        text = f"SchedulerType={kind}: known are sched/backfill and sched/builtin"
        raise conf.wrong("schedulertype", text)
    strict = kind == "sched/builtin" or conf.parameters.get("bf_interval") == "-1"
    followed = _AT_EVENTS if strict else _OF_BACKFILL
    given = {name: conf.parameters[name] for name in followed if name in conf.parameters}
    for name, value in given.items():
        try:
            SlurmBackfill.parse(f"slurm:{name}={value}")
        except HpcgymError as error:
            told = f"SchedulerParameters: {str(error).removeprefix('backfill: ')}"
            raise conf.wrong("schedulerparameters", told, ("parameters", name)) from None
    given |= {"bf_interval": "-1"} if strict else {}
    text = "+".join(f"{name}={value}" for name, value in given.items())
    return str(SlurmBackfill.parse(f"slurm:{text}" if text else "slurm"))


def _order(conf: SlurmConf, known: Sequence[Qos]) -> tuple[str, FairShare | None]:
    """Return the order of the queue, and what fair share needs; with the priorities of QOS."""
    kind = _priority_type(conf)
    if kind == _BASIC:
        return _with_tiers(conf, "", 1) or "fcfs", None
    if kind != "priority/multifactor":
        text = f"PriorityType={kind}: known are {_BASIC} and priority/multifactor"
        raise conf.wrong("prioritytype", text)
    age = _seconds(conf, "PriorityMaxAge") or math.inf
    size = f"processors / {conf.cluster.processors}"
    if conf.said("priorityfavorsmall") in YES:
        size = f"(1 - {size})"
    factors = {
        "PriorityWeightAge": f"min(wait / {age}, 1)",
        "PriorityWeightJobSize": size,
        "PriorityWeightFairshare": "fairshare",
    }
    weights = {name: _weight(conf, name) for name in factors}
    if age == math.inf:  # it never counts
        weights["PriorityWeightAge"] = 0
    terms = [f"{weights[name]} * {factor}" for name, factor in factors.items() if weights[name]]
    weights["PriorityWeightQOS"] = _weight(conf, "PriorityWeightQOS") if known else 0
    terms += _of_qos(known, weights["PriorityWeightQOS"])
    weights["PriorityWeightPartition"] = _weight(conf, "PriorityWeightPartition")
    terms = _of_partitions(conf, weights["PriorityWeightPartition"]) + terms
    most, of_usage = sum(weights.values()), weights["PriorityWeightFairshare"] > 0
    policy = _with_tiers(conf, *_less_nice(terms, most, of_usage)) or "fcfs"
    if not of_usage:
        return policy, None
    forgets = _seconds(conf, "PriorityDecayHalfLife") or math.inf
    if _CLASSIC not in _flags(conf):
        return policy, FairShare(half_life_s=forgets, formula=FAIR_TREE)
    damping = _weight(conf, "FairShareDampeningFactor", "1")
    return policy, FairShare(half_life_s=forgets, damping=damping)


def _priority_type(conf: SlurmConf) -> str:
    """Return PriorityType, in lower case."""
    return conf.said("prioritytype")


def _flags(conf: SlurmConf) -> set[str]:
    """Return PriorityFlags, in lower case."""
    return {flag.strip() for flag in conf.said("priorityflags").split(",")} - {""}


def _less_nice(terms: list[str], most: int, of_usage: bool) -> tuple[str, int]:
    """Return a priority, the sum of some terms less the nice of a job, and how far it may reach.

    It is at least 1, as Slurm's are. Usage can only be added: with it the nice takes at most as
    much as the terms can be, so that jobs which lose all by it keep their order.

    Parameters
    ----------
    terms : none below 0, and ``most`` in sum at most; where that is 0 no nice counts.
    of_usage : whether one is of what users have used.
    """
    if not most:
        return "", 1
    total = " + ".join(terms) or "0"
    less = f"{total} - min(nice, {most})" if of_usage else f"max({total} - nice, 1)"
    return less, 2 * most + MOST_NICE + 1


def _with_tiers(conf: SlurmConf, priority: str, reach: int) -> str:
    """Return a priority, and before it the tiers of partitions, counted from the lowest.

    Each is worth ``reach``, which is more than two priorities can be apart.
    """
    partitions = conf.cluster.partitions
    tiers = sorted({one.priority_tier for one in partitions})
    numbers = {one.name: reach * tiers.index(one.priority_tier) for one in partitions}
    return " + ".join([*_of_names("partition", numbers), *([priority] if priority else [])])


def _of_partitions(conf: SlurmConf, weight: int) -> list[str]:
    """Return what partitions add to the priority of their jobs: the weight times their factors.

    Each over the greatest.
    """
    partitions = conf.cluster.partitions
    greatest = max((one.priority_factor for one in partitions), default=0) or 1
    return _of_names(
        "partition", {one.name: weight * one.priority_factor / greatest for one in partitions}
    )


def _of_names(column: str, numbers: Mapping[str, float]) -> list[str]:
    """Return terms that are the number of what a job is called in a column."""
    return [f"{n:.15g} * ({column} == {name!r})" for name, n in numbers.items() if n]


def _of_qos(known: Sequence[Qos], weight: int) -> list[str]:
    """Return what QOS add to the priority of their jobs: the weight times a part of the greatest.

    By Slurm's page "Multifactor Priority Plugin".
    """
    greatest = max((one.priority for one in known), default=0) or 1
    return _of_names("queue", {one.name: weight * one.priority / greatest for one in known})


def _seconds(conf: SlurmConf, name: str) -> int | None:
    """Return a time of Slurm in seconds, a week without one; None: no end."""
    text = conf.scheduling.get(name.casefold())
    try:
        return WEEK_S if text is None else minutes_text(text, name)
    except HpcgymError as error:
        raise conf.wrong(name.casefold(), str(error)) from None


def _weight(conf: SlurmConf, name: str, usual: str = "0") -> int:
    """Return a whole number of at least 0."""
    text = conf.scheduling.get(name.casefold(), usual)
    if not (text.isascii() and text.isdigit()):
        problem = f"{name} must be a whole number of at least 0, not {text!r}"
        raise conf.wrong(name.casefold(), problem)
    return int(text)
