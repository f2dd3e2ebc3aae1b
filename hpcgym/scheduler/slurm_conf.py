"""The rules of a slurm.conf as a scheduler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

from hpcgym.errors import HpcgymError, HpcgymWarning, Remarks, warn_caller, warn_of_file
from hpcgym.machine.slurm import OtherSetting, SlurmConf, WrongSettingError, read_slurm_conf
from hpcgym.machine.slurm.conf import MAX_TRES, YES
from hpcgym.machine.slurm.keys import GENERAL, PARAMETERS, meant
from hpcgym.machine.slurm.keys import known as known_keys
from hpcgym.machine.slurm.lines import SlurmFiles, minutes_text
from hpcgym.machine.slurm.nodes import of_sole_type
from hpcgym.names import CORE, LICENCE, MEMORY, MOST_NICE, of_type
from hpcgym.scheduler import slurm_assoc, slurm_qos
from hpcgym.scheduler.backfilling import SlurmBackfill
from hpcgym.scheduler.policies.fair_share import FAIR_TREE, FairShare
from hpcgym.scheduler.restrictions import MODES, Quota, are_budgets, of_tables, weigh_time
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.slurm_assoc import Association, read_associations
from hpcgym.scheduler.slurm_qos import Qos, read_qos
from hpcgym.scheduler.slurm_tables import Left, warn_of_left, without_budgets
from hpcgym.units import WEEK_S, count_of
from hpcgym.workload.amounts import (
    AMOUNTS,
    IN_ALL,
    OF_ONE_JOB,
    amount_called,
    amount_of_tres,
    amount_within,
    in_all_of,
    in_terms_of,
    licences_in,
    weights_of,
)

_OF_BACKFILL = tuple(each.name for each in fields(SlurmBackfill) if each.name != "calc_period")
#: Of these, what passes at events follow: all that there is under sched/builtin.
_AT_EVENTS = ("default_queue_depth", "sched_interval")
_CLASSIC = "no_fair_tree"  # the flag of the formula that was the usual one before Slurm 19.05
_AS_IT_IS = "no_normal_"  # before a factor that is not divided, ``part``, ``qos`` or ``tres``
#: Flags of priorities that a scheduler follows, or that change nothing it follows.
_FLAGS = {"", _CLASSIC, "fair_tree", MAX_TRES}
_FLAGS |= {f"{_AS_IT_IS}{of}" for of in ("part", "qos", "tres", "assoc")}
#: General settings that a scheduler follows, in lower case.
_FOLLOWED = ("schedulertype", "prioritytype", "licenses")
_BILLING = "tresbillingweights"
#: Those that it also follows with PriorityType=priority/multifactor: weights, and what they need.
_MULTIFACTOR = (
    "priorityweightage", "priorityweightjobsize", "priorityweightfairshare",
    "priorityweightpartition", "priorityweightqos", "priorityweighttres", "prioritymaxage",
    "prioritydecayhalflife", "priorityfavorsmall", "fairsharedampeningfactor", "priorityflags",
)  # fmt: skip
#: Those of them that are lists, of which a part may be followed.
_LISTS = ("priorityweighttres", "priorityflags", "accountingstorageenforce")
#: Why settings are not followed.
_WITH_QOS = "only with a file of QOS, --scheduler slurm.conf:qos=FILE"
_NOT_SIMULATED = "not simulated"
_BASIC = "priority/basic"
_USUAL_CALC_PERIOD_S = 300
_NO_LICENCE = "no licence is reserved: jobs that lack some are passed over, as without it"
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
    jobs are backfilled as :class:`SlurmBackfill` says. ``PriorityType=priority/basic`` is by
    submission. With ``priority/multifactor``, or no type, the order is the sum of three factors
    times their weights (Slurm's page "Multifactor Priority Plugin"), and four with that of the
    partition: PriorityJobFactor / the greatest of one. The nice of a job is taken from it, down to
    1. Jobs in a partition of a higher PriorityTier come before all others. Age: min(wait /
    PriorityMaxAge, 1). Job size: processors / those of the machine, or 1 less that with
    PriorityFavorSmall; Slurm's is the mean of this and the same of nodes. Fair share: Fair Tree as
    :class:`FairShare` has it, or with ``PriorityFlags=NO_FAIR_TREE`` 2^(-U / S /
    FairShareDampeningFactor). Without ``assoc`` there are no accounts, and users are alike.
    Preemption is as in :func:`hpcgym.scheduler.slurm_qos.preemption_of_slurm`. ``Licenses`` bound
    what all jobs have together; a job that lacks some is passed over, also with bf_licenses.

    Raises
    ------
    HpcgymError : a file that cannot be read, or an invalid value in ``qos`` or ``assoc``; the
        message names the file.
    """
    beside = (None if file is None else str(file) for file in (qos, assoc))
    return rules_of_slurm(SlurmFiles(str(path), *beside)).scheduler


class SlurmRules(NamedTuple):
    """What a slurm.conf, and the files beside it, say of scheduling.

    Attributes
    ----------
    files : which they are.
    conf : what the file says, without values that cannot be.
    qos : that are known.
    partitions : those of which each QOS is the partition's own, by its name.
    scheduler : which follows it all, as far as a simulation can.
    followed : settings that it goes by, each with the rule of the scheduler that it is part of.
    left : settings that it does not go by, each with why.
    wrong : what is wrong with values that cannot be.
    left_of : what no simulation follows of a table of sacctmgr, by its kind.
    """

    files: SlurmFiles
    conf: SlurmConf
    qos: list[Qos]
    partitions: dict[str, list[str]]
    scheduler: Scheduler
    followed: list[tuple[OtherSetting, str]]
    left: list[tuple[OtherSetting, str]]
    wrong: list[str]
    left_of: dict[str, list[Left]]


def rules_of_slurm(files: SlurmFiles) -> SlurmRules:
    """Return what the files say, with the scheduler and warnings of :func:`scheduler_of_slurm`."""
    read = read_rules(files)
    _warn(read)
    return read


def read_rules(files: SlurmFiles) -> SlurmRules:
    """Return the same, without warnings of what is not followed."""
    conf = read_slurm_conf(files.conf)
    try:
        known = [] if files.qos is None else read_qos(files.qos)
        members = [] if files.assoc is None else read_associations(files.assoc, conf.cluster.name)
        conf, wrong, scheduler = _usable(conf, known, files.qos, members)
    except HpcgymError as error:
        beside = (file for file in files[1:] if file)
        places = (*(f"{place}: " for place in conf.where.values()), *beside)
        named = str(error).startswith(places)
        raise HpcgymError(str(error) if named else f"{files.conf}: {error}") from None
    rest = [setting for setting in conf.others if not any(error.is_of(setting) for error in wrong)]
    why = [part for setting in rest for part in _parts(setting, conf, scheduler, known)]
    stops = scheduler.preemption is not None and scheduler.preemption.column == "qos"
    followed = [*(_STOPPING if stops else ()), *_factors_followed(known, conf, scheduler, members)]
    of_qos, of_members = slurm_qos.limits_as_quotas(known)[1], []
    if budgets := _why_no_budgets(conf):
        of_qos += without_budgets(known, budgets)[1]
        of_members = without_budgets(members, budgets)[1]
    return SlurmRules(
        files, conf, known, _partitions_of(conf, known), scheduler,
        followed=[(setting, _rule_of(setting)) for setting, reason in why if not reason],
        left=[(setting, reason) for setting, reason in why if reason],
        wrong=[str(error) for error in wrong],
        left_of={
            "QOS": [limit for limit in of_qos if limit.column not in followed],
            slurm_assoc.KIND: slurm_assoc.limits_as_quotas(members)[1] + of_members,
        },
    )  # fmt: skip


def _factors_followed(
    known: Sequence[Qos], conf: SlurmConf, scheduler: Scheduler, members: Sequence[Association]
) -> Iterator[str]:
    """Yield the columns of factors of QOS that the scheduler follows.

    Limits of minutes count without the UsageFactor, and of a partition's own QOS no LimitFactor.
    """
    if scheduler.fair_share is not None and not weigh_time(scheduler.quota):
        yield slurm_qos.USAGE_FACTOR
    of_partitions = _partitions_of(conf, known)
    if members and not any(qos.limit_factor for qos in known if qos.name in of_partitions):
        yield slurm_qos.LIMIT_FACTOR


def _warn(read: SlurmRules) -> None:
    """Warn of what is wrong, and of what is not followed."""
    path, qos, assoc = read.files
    warn_of_file(path, Remarks(list, {_WRONG: read.wrong}), HpcgymWarning)
    if untracked := _untracked(read):
        text = f"{path}: AccountingStorageTRES does not track {', '.join(untracked)}"
        why = "a dump may not tell which jobs have it, and Slurm itself keeps no limit of it"
        warn_caller(f"{text}: {why}", HpcgymWarning)
    if not is_safe(read.conf) and are_budgets(read.scheduler.quota):
        text = f"{path}: without AccountingStorageEnforce=safe Slurm ends running jobs"
        warn_caller(f"{text} once GrpTRESMins is used up; here they run on", HpcgymWarning)
    has = read.conf.cluster.node_resources
    untyped = [
        f"{name} in {quota}"
        for quota in read.scheduler.quota
        for name in map(amount_within, dict((*quota.bounds, *quota.least)))
        if name not in has and any(name.startswith(of_type(resource, "")) for resource in has)
    ]
    if untyped:
        text = f"{path}: no node has GPUs or others of these types, so limits of them bound nothing"
        warn_caller(f"{text}: {', '.join(untyped)}", HpcgymWarning)
    for (kind, left), file in zip(read.left_of.items(), (qos, assoc), strict=True):
        stops = kind == "QOS" and any(row.preempts for row in read.qos)
        lacks = f"; {path} has no PreemptType=preempt/qos, so no job stops another by its QOS"
        why = lacks if stops and not _stops_by_qos(read.conf) else ""
        warn_of_left(str(file), left, kind, why=why)
    if left_of_conf := [setting for setting, _ in read.left]:
        more = qos is None and any(why == _WITH_QOS for _, why in read.left)
        hint = f". {path}:qos=FILE takes what sacctmgr -P show qos printed" if more else ""
        hint += f"; bf_licenses: {_NO_LICENCE}" * any(why == _NO_LICENCE for _, why in read.left)
        text = f"{path}: not followed: {', '.join(_in_short(left_of_conf))}{hint}"
        warn_caller(text, HpcgymWarning, [str(setting) for setting in left_of_conf])


def _untracked(read: SlurmRules) -> list[str]:
    """Return the resources of limits and weights that accounting does not track, though some."""
    conf = read.conf
    if conf.tracked is None:
        return []
    tracked = {of_sole_type(amount_of_tres(name), conf.sole_types) for name in conf.tracked}
    named = {of for quota in read.scheduler.quota for of, _ in (*quota.bounds, *quota.least)}
    for text in (part.billing for part in conf.cluster.partitions if part.billing):
        with suppress(HpcgymError):
            named |= {*weights_of(text)}
    always = (*AMOUNTS, *OF_ONE_JOB, MEMORY, *tracked)
    return sorted({*map(amount_within, named)} - {*always})


def _in_short(settings: Iterable[OtherSetting]) -> list[str]:
    """Return what messages call settings; a key of several nodes or partitions once."""
    named: dict[tuple[bool, str], set[str]] = {}
    for setting in settings:
        named.setdefault((bool(setting.of), setting.key), set()).add(setting.name)
    return sorted(
        names.pop() if len(names) == 1 else f"{key} of {len(names):,} nodes or partitions"
        for (_, key), names in named.items()
    )


def _usable(
    conf: SlurmConf, known: Sequence[Qos], of: str | None, members: Sequence[Association]
) -> tuple[SlurmConf, list[WrongSettingError], Scheduler]:
    """Return a file without values that cannot be, what is wrong with these, and the scheduler."""
    wrong: list[WrongSettingError] = []
    while True:
        try:
            return conf, wrong, _rules(conf, known, of, members)
        except WrongSettingError as error:
            wrong.append(error)
            conf = conf.without(error.stands)


def _rules(
    conf: SlurmConf, known: Sequence[Qos], of: str | None, members: Sequence[Association]
) -> Scheduler:
    """Return the scheduler; with the QOS ``known``, ``of`` a file, and with associations."""
    policy, fair_share = _order(conf, known)
    if why := _why_no_budgets(conf):
        known = without_budgets(known, why)[0]
        members = without_budgets(members, why)[0]
    forgets = _half_life_s(conf)
    if fair_share is not None:
        fair_share = replace(fair_share, factors=slurm_qos.usage_factors(known))
        if members:
            fair_share = slurm_assoc.with_shares(fair_share, members)
    preemption = slurm_qos.preemption_of_slurm(conf)
    mode = slurm_qos.mode_of_slurm(conf)
    if _stops_by_qos(conf) and mode in MODES and any(qos.preempts for qos in known):
        assert of is not None
        preemption = slurm_qos.stopping_of(known, of, mode, slurm_qos.exempt_of_slurm(conf))
    partitions = _partitions_of(conf, known)
    quotas = slurm_qos.limits_as_quotas(known, partitions, forgets)[0]
    in_place = slurm_qos.in_place_of(known, partitions)
    of_members = slurm_assoc.limits_as_quotas(members, in_place)[0]
    of_members = [replace(quota, half_life_s=forgets) for quota in of_members]
    quotas += slurm_qos.by_limit_factors(of_members, known)
    if is_safe(conf):
        quotas = [_in_all(quota) for quota in quotas]
    quotas = of_tables([*_licences(conf), *(_of_sole_types(quota, conf) for quota in quotas)])
    return Scheduler(
        policy=policy, backfill=_backfill(conf, weigh_time(quotas)), fair_share=fair_share,
        preemption=preemption, quota=quotas or None,
    )  # fmt: skip


def _why_no_budgets(conf: SlurmConf) -> str:
    """Return why GrpTRESMins is not followed; blank: it is."""
    if conf.said("prioritytype") == _BASIC:
        return "only priority/multifactor counts what has been used"
    resets = conf.said("priorityusageresetperiod") not in ("", "none")
    return "PriorityUsageResetPeriod is not simulated" if resets else ""


def is_safe(conf: SlurmConf) -> bool:
    """Return whether jobs start only if a budget suffices up to their requested time."""
    enforced = conf.said("accountingstorageenforce").split(",")
    return "safe" in map(str.strip, enforced)


def keeps_budget(conf: SlurmConf, quota: Quota) -> bool:
    """Return whether a Slurm of a file keeps a budget of all, or of accounts, as it is."""
    kinds = {amount_called(name).budget for name in quota.running} - {0}
    return is_safe(conf) and kinds <= {IN_ALL} and quota.half_life_s == _half_life_s(conf)


def _half_life_s(conf: SlurmConf) -> int | None:
    """Return in what time half of what budgets have used is forgotten [s]; None: nothing is."""
    return _seconds(conf, "PriorityDecayHalfLife") or None


def _in_all(quota: Quota) -> Quota:
    """Return a quota whose budgets count what running jobs still may use, too."""
    bounds = {
        in_all_of(amount_within(name)) if amount_called(name).budget else name: most
        for name, most in quota.bounds
    }
    return replace(quota, bounds=bounds)


def _of_sole_types(quota: Quota, conf: SlurmConf) -> Quota:
    """Return a quota in which a bound on the only type of a resource is one on the resource."""
    bounds: dict[str, int] = {}
    least: dict[str, int] = {}
    for kept, pairs, tighter in ((bounds, quota.bounds, min), (least, quota.least, max)):
        for name, bound in pairs:
            amount = in_terms_of(name, lambda of: of_sole_type(of, conf.sole_types))
            kept[amount] = tighter(bound, kept.get(amount, bound))
    return replace(quota, bounds=bounds, least=least)


def _licences(conf: SlurmConf) -> list[Quota]:
    """Return the licences of the cluster as a quota of all jobs, of one that names some.

    Without bf_licenses Slurm passes over a job that lacks some, and reserves nothing for it (page
    "slurm.conf").
    """
    licences, text = _licences_of(conf), conf.scheduling.get("licenses", "")
    try:
        return [Quota(bounds=licences)] if licences else []
    except HpcgymError as error:
        such = f"Licenses={text}: no list such as matlab:20,abaqus@server:5: {error}"
        raise conf.wrong("licenses", such) from None


def _licences_of(conf: SlurmConf) -> dict[str, int]:
    """Return how many the cluster has of each licence, by its column."""
    return licences_in(conf.scheduling.get("licenses", ""))


def _partitions_of(conf: SlurmConf, known: Sequence[Qos]) -> dict[str, list[str]]:
    """Return the partitions of which each QOS that is known is the partition's own, by its name."""
    names = {qos.name.casefold(): qos.name for qos in known}
    partitions: dict[str, list[str]] = {}
    for partition in conf.cluster.partitions:
        if partition.qos is not None and (name := names.get(partition.qos.casefold())):
            partitions.setdefault(name, []).append(partition.name)
    return partitions


def _stops_by_qos(conf: SlurmConf) -> bool:
    """Tell whether preemption is by the QOS of jobs."""
    return conf.said("preempttype") == "preempt/qos"


def _rule_of(setting: OtherSetting) -> str:
    """Return the rule of a scheduler that a setting is part of."""
    key = setting.key.casefold()
    if key in (
        "prioritydecayhalflife", "prioritycalcperiod", "fairsharedampeningfactor", "priorityflags",
        _BILLING,
    ):  # fmt: skip
        return "fair_share"
    if "preempt" in key or key == "gracetime":
        return "preemption"
    rules = dict.fromkeys(("qos", "licenses", "accountingstorageenforce"), "quota")
    rules["schedulertype"] = "backfill"
    return "backfill" if key.startswith(PARAMETERS) else rules.get(key, "policy")


def _parts(
    setting: OtherSetting, conf: SlurmConf, scheduler: Scheduler, known: Sequence[Qos]
) -> Iterator[tuple[OtherSetting, str]]:
    """Yield a setting with why it is not followed, blank: it is; a list in parts, if both hold."""
    values = [part.strip() for part in setting.value.split(",")]
    if setting.of or not setting.is_called(*_LISTS):
        values = [setting.value]
    by_reason: dict[str, list[str]] = {}
    for value in values:
        reason = _why(setting._replace(value=value), conf, scheduler, known)
        by_reason.setdefault(reason, []).append(value)
    for reason, own in by_reason.items():
        text = ",".join(own)
        part = setting._replace(key=f"{setting.key}={text}", value="") if reason else setting
        yield (part if len(by_reason) > 1 else setting), reason


def _why(setting: OtherSetting, conf: SlurmConf, scheduler: Scheduler, known: Sequence[Qos]) -> str:
    """Return why a setting is not followed; blank: it is."""
    key, value = setting.key.casefold(), setting.value.casefold()
    if setting.of and key == "qos":
        missing = f"the file of QOS has no {setting.value!r}" if known else _WITH_QOS
        return "" if value in (qos.name.casefold() for qos in known) else missing
    if setting.of and key in ("priority", "prioritytier"):
        return ""
    if key in ("priority", "priorityjobfactor", *_MULTIFACTOR):
        if conf.said("prioritytype") == _BASIC:
            return "PriorityType=priority/basic: priorities are by submission"
        if key == "priorityweightqos" and not known:
            return _WITH_QOS
        if key == "priorityweighttres" and value:
            counted = all(_totals_of(conf, amount) for amount in weights_of(setting.value))
            return "" if counted else "weighed is what cores, memory, Gres or Licenses have"
        return _NOT_SIMULATED if key == "priorityflags" and value not in _FLAGS else ""
    if key.startswith(PARAMETERS):
        return _why_no_parameter(key.removeprefix(PARAMETERS).strip(), value, scheduler)
    if key.startswith("preempt") or key == "gracetime":
        return _why_no_preemption(setting, conf, scheduler, known)
    if key == "maxmempercpu":
        return "jobs have the processors that the log tells, which Slurm raises by it"
    if key == "accountingstorageenforce":
        if value == "safe" and are_budgets(scheduler.quota):
            return ""
        return "the limits of the files behind qos= and assoc= always hold"
    if key in _FOLLOWED:
        return ""
    if key == "prioritycalcperiod":
        followed = scheduler.fair_share is not None or weigh_time(scheduler.quota)
        return "" if followed else "only fair share and limits of minutes go by it"
    if setting.of and key == _BILLING:
        return _why_not_billed(setting.value)
    kinds = ("partitionname", "nodename") if setting.of else (GENERAL,)
    known_key = any(key in known_keys(kind) for kind in kinds)
    return _NOT_SIMULATED if known_key else f"Slurm has no such setting{meant(kinds[0], key)}"


def _why_not_billed(weights: str) -> str:
    """Return why weights, by which jobs are billed, are not followed; blank: they are."""
    try:
        weights_of(weights)
    except HpcgymError as error:
        return str(error)
    return ""


def _why_no_parameter(name: str, value: str, scheduler: Scheduler) -> str:
    """Return why one of the SchedulerParameters is not followed; blank: it is."""
    if (name, value) == ("bf_interval", "-1"):
        return ""
    if name in _AT_EVENTS or (name in _OF_BACKFILL and scheduler.reserve.depth != 0):
        return ""
    if name in _OF_BACKFILL:
        return "SchedulerType=sched/builtin, or bf_interval=-1: nothing is backfilled"
    if name in slurm_qos.YOUNGEST_FIRST:
        return "" if scheduler.preemption is not None else "no job stops another"
    if name == "bf_licenses":
        return _NO_LICENCE
    known = name in known_keys(PARAMETERS)
    return _NOT_SIMULATED if known else f"Slurm has no such parameter{meant(PARAMETERS, name)}"


def _why_no_preemption(
    setting: OtherSetting, conf: SlurmConf, scheduler: Scheduler, known: Sequence[Qos]
) -> str:
    """Return why a setting of preemption is not followed; blank: it is."""
    if scheduler.preemption is None:
        return _WITH_QOS if _stops_by_qos(conf) and not known else "no job stops another"
    if setting.of:
        if _stops_by_qos(conf):
            return "with PreemptType=preempt/qos that of the QOS counts"
        followed = setting.is_called("gracetime") or setting.of in slurm_qos.spared(conf)
        return "" if followed else "of a partition only OFF is simulated"
    if setting.is_called("preemptparameters"):
        simulated = setting.value.casefold() in slurm_qos.YOUNGEST_FIRST
        return "" if simulated else "only youngest_first is simulated"
    return "" if setting.is_called(*slurm_qos.FOLLOWED) else _NOT_SIMULATED


def _backfill(conf: SlurmConf, by_time: bool) -> str:
    """Return the way to backfill; ``by_time``: with limits of what jobs still may use.

    Under priority/basic time counts only as jobs end (``priority_p_job_end`` of
    priority/multifactor).
    """
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
            problem = f"SchedulerParameters: {str(error).removeprefix('backfill: ')}"
            raise conf.wrong("schedulerparameters", problem, ("parameters", name)) from None
    given |= {"bf_interval": "-1"} if strict else {}
    if by_time:
        given["calc_period"] = str(_calc_period(conf))
    text = "+".join(f"{name}={value}" for name, value in given.items())
    return str(SlurmBackfill.parse(f"slurm:{text}" if text else "slurm"))


def _calc_period(conf: SlurmConf) -> int:
    """Return PriorityCalcPeriod [s], at multiples of which what jobs have run counts; 0: never.

    Slurm counts its periods from the start of slurmctld, which no file tells: here they are those
    of the log's clock (``_decay_thread`` of priority/multifactor in Slurm 22.05 to 25.05).
    """
    if conf.said("prioritytype") == _BASIC:
        return 0
    return _seconds(conf, "PriorityCalcPeriod", _USUAL_CALC_PERIOD_S) or _USUAL_CALC_PERIOD_S


def _order(conf: SlurmConf, known: Sequence[Qos]) -> tuple[str, FairShare | None]:
    """Return the order of the queue, and what fair share needs; with the priorities of QOS."""
    kind = conf.said("prioritytype")
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
    by_partition = {of.name: of.priority_factor for of in conf.cluster.partitions}
    weight = _weight(conf, "PriorityWeightPartition")
    of_partitions = _over_greatest(conf, "part", "partition", by_partition, weight)
    by_qos = {qos.name: qos.priority for qos in known}
    weight = _weight(conf, "PriorityWeightQOS") if known else 0
    of_qos = _over_greatest(conf, "qos", "queue", by_qos, weight)
    of_amounts = _of_tres(conf)
    terms = [*of_partitions.terms, *terms, *of_qos.terms, *of_amounts.terms]
    most = sum(weights.values()) + of_partitions.most + of_qos.most + of_amounts.most
    of_usage = weights["PriorityWeightFairshare"] > 0
    policy = _with_tiers(conf, *_less_nice(terms, most, of_usage)) or "fcfs"
    if not of_usage:
        return policy, None
    forgets = _seconds(conf, "PriorityDecayHalfLife") or math.inf
    weighed = any(setting.of and setting.is_called(_BILLING) for setting in conf.others)
    charged = "billing" if weighed else "processors"
    fair_share = FairShare(forgets, charged=charged, period_s=_calc_period(conf))
    if _CLASSIC not in _flags(conf):
        return policy, replace(fair_share, formula=FAIR_TREE)
    return policy, replace(fair_share, damping=_weight(conf, "FairShareDampeningFactor", "1"))


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
    tiers = sorted({partition.priority_tier for partition in partitions})
    numbers = {
        partition.name: reach * tiers.index(partition.priority_tier) for partition in partitions
    }
    return " + ".join([*_of_names("partition", numbers), *([priority] if priority else [])])


class _Factors(NamedTuple):
    """Terms of a priority, none below 0, and the most that they are in sum."""

    terms: list[str]
    most: int


def _over_greatest(
    conf: SlurmConf, kind: str, column: str, numbers: Mapping[str, int], weight: int
) -> _Factors:
    """Return what names in a column add to the priority: the weight times a part of the greatest.

    By Slurm's page "Multifactor Priority Plugin"; with ``NO_NORMAL_`` before the ``kind`` among
    PriorityFlags, the weight times the number itself.
    """
    greatest = max(numbers.values(), default=0) or 1
    whole = 1 if f"{_AS_IT_IS}{kind}" in _flags(conf) else greatest
    shares = {name: weight * number / whole for name, number in numbers.items()}
    return _Factors(_of_names(column, shares), weight * greatest // whole)


def _of_tres(conf: SlurmConf) -> _Factors:
    """Return what a job's shares of all that its partition has of amounts add to its priority.

    By ``_get_tres_factors`` in ``priority_multifactor.c`` of Slurm 22.05 to 25.05.
    """
    text = conf.scheduling.get("priorityweighttres", "")
    try:
        weights = weights_of(text) if text else {}
    except HpcgymError as error:
        raise conf.wrong("priorityweighttres", f"PriorityWeightTRES={text}: {error}") from None
    terms, most, as_it_is = [], 0.0, f"{_AS_IT_IS}tres" in _flags(conf)
    for amount, weight in weights.items():
        totals = _totals_of(conf, amount) if weight else {}
        most += weight * max((total if as_it_is else 1 for total in totals.values()), default=0)
        name = of_sole_type(amount, conf.sole_types)
        asked = name if name == "processors" else f"asked({name!r})"
        by_share: dict[float, list[str]] = {}
        for part, total in totals.items():
            share = weight / (1 if as_it_is else total)
            by_share.setdefault(share, []).append(f"partition == {part!r}")
        everywhere = len(by_share) == 1 and len(totals) >= len(conf.cluster.partitions)
        for share, parts in by_share.items():
            there = "" if everywhere else f" * ({' or '.join(parts)})"
            terms.append(f"{share:.15g}{there} * {asked}")
    return _Factors(terms, math.ceil(most))


def _totals_of(conf: SlurmConf, amount: str) -> dict[str, int]:
    """Return how much each partition has of an amount, of those with some; of licences all.

    By ``_calc_part_tres`` in ``partition_mgr.c`` of Slurm 22.05 to 25.05. Without partitions ""
    stands for all nodes. Nodes, which a log need not tell, and what is billed have no number here.
    """
    cluster = conf.cluster
    nodes = {part.name: [*part.nodes] for part in cluster.partitions}
    nodes = nodes or {"": [*range(cluster.nodes)]}
    if amount.startswith(LICENCE):
        totals = dict.fromkeys(nodes, _licences_of(conf).get(amount, 0))
    else:
        resource = CORE if amount == "processors" else of_sole_type(amount, conf.sole_types)
        known = {name: place for place, name in enumerate(cluster.resources)}
        column = cluster.capacity[:, known[resource]] if resource in known else None
        totals = (
            {} if column is None else {name: int(column[own].sum()) for name, own in nodes.items()}
        )
    return {name: total for name, total in totals.items() if total}


def _of_names(column: str, numbers: Mapping[str, float]) -> list[str]:
    """Return terms that are the number of what a job is called in a column."""
    return [f"{n:.15g} * ({column} == {name!r})" for name, n in numbers.items() if n]


def _seconds(conf: SlurmConf, name: str, usual: int = WEEK_S) -> int | None:
    """Return a time of Slurm in seconds; None: no end."""
    text = conf.scheduling.get(name.casefold())
    try:
        return usual if text is None else minutes_text(text, name)
    except HpcgymError as error:
        raise conf.wrong(name.casefold(), str(error)) from None


def _weight(conf: SlurmConf, name: str, usual: str = "0") -> int:
    """Return a whole number of at least 0."""
    text = conf.scheduling.get(name.casefold(), usual)
    number = count_of(text)
    if number is None:
        problem = f"{name} must be a whole number of at least 0, not {text!r}"
        raise conf.wrong(name.casefold(), problem)
    return number
