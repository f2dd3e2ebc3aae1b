"""Quotas and preemption by Slurm's QOS, and by throttles that sacct shows."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from hpcgym.errors import HpcgymError, check_each_once, did_you_mean, number_in
from hpcgym.files import head_of
from hpcgym.machine.slurm.lines import minutes_text
from hpcgym.names import ARRAY
from hpcgym.scheduler.restrictions import MODES, OR, Preemption, Quota, by_tier, of_tables
from hpcgym.scheduler.slurm_assoc import associations_as_quotas, is_associations
from hpcgym.scheduler.slurm_tables import (
    Left,
    Limit,
    SlurmRow,
    bounds_of,
    kind_of,
    limits_of,
    rows_of,
    unfollowed,
    warn_of_left,
    without_budgets,
)
from hpcgym.units import count_of
from hpcgym.workload.amounts import OF_ONE_JOB, amount_within, tres_of

if TYPE_CHECKING:
    from hpcgym.machine.slurm import SlurmConf


# --- QOS as ``sacctmgr -P show qos`` prints them --------------------------------------------------


@dataclass(frozen=True)
class Qos:
    """A quality of service: a priority and limits (man page sacctmgr, "SPECIFICATIONS FOR QOS").

    Attributes
    ----------
    name, priority : what jobs call it; what it adds to their priority, before the weight.
    limits : column, of :data:`hpcgym.scheduler.slurm_tables.LIMITS`, -> what is bound -> most, such
        as ``{"MaxJobsPU": {"jobs": 4}, "GrpTRES": {"cpu": 256, "gres/gpu": 4}}``.
    preempts : names of the QOS whose jobs it may preempt.
    preempt_mode, preempt_exempt_time, grace_time : how its jobs are stopped, for how long they are
        not, and how long they go on then; as they are written, "" where nothing is.
    usage_factor, limit_factor : by what is multiplied what its jobs are charged in fair share, and
        what limits of associations on resources let them have; None: not set.
    others : other columns that hold something: name -> text; no simulation follows them.
    """

    name: str
    priority: int
    limits: dict[str, dict[str, int]]
    preempts: tuple[str, ...]
    preempt_mode: str
    preempt_exempt_time: str
    grace_time: str
    usage_factor: float | None
    limit_factor: float | None
    others: dict[str, str]


def read_qos(path: str | os.PathLike[str]) -> list[Qos]:
    """Return the QOS of a file that ``sacctmgr -P show qos`` printed.

    Raises
    ------
    HpcgymError : a file that cannot be read, without a header of columns between ``|``, a row of
        another length, a QOS that stands twice, or a value that cannot be; the message names file,
        line and column.
    """
    known = []
    for row in rows_of(path, "QOS", ["name"], "Name|Priority|MaxJobsPU"):
        known.append(_qos(row))
        check_each_once(f"{row.where}: QOS", [qos.name for qos in known])
    return known


def _qos(row: SlurmRow) -> Qos:
    """Return the QOS of a row."""
    name, priority = row.take("name"), row.count("priority")
    if not name:
        raise HpcgymError(f"{row.where}: a QOS without a name")
    return Qos(
        name,
        priority or 0,
        limits_of(row),
        tuple(other for other in row.take("preempt").split(",") if other),
        **{field: row.take(name.casefold()) for field, (name, _) in _STOPPING.items()},
        usage_factor=_factor(row, USAGE_FACTOR),
        limit_factor=_factor(row, LIMIT_FACTOR),
        others=row.left(),
    )


def _factor(row: SlurmRow, column: str) -> float | None:
    """Return the factor in a column; None: no such column, or nothing in it."""
    text = row.take(column.casefold())
    factor = number_in(row.at(column.casefold()), text) if text else None
    if factor is not None and not 0 <= factor <= _MOST_FACTOR:
        raise HpcgymError(f"{row.at(column.casefold())}: a factor from 0 to 10^9, not {text!r}")
    return factor


# --- Limits of Slurm's QOS, and throttles of its arrays, as quotas --------------------------------

#: Columns about how jobs are stopped, and their values when they are not set.
_STOPPING = {
    "grace_time": ("GraceTime", ("", "00:00:00")),
    "preempt_mode": ("PreemptMode", ("", "cluster")),
    "preempt_exempt_time": ("PreemptExemptTime", ("",)),
}
#: Columns of factors, 1 of most QOS.
USAGE_FACTOR, LIMIT_FACTOR = "UsageFactor", "LimitFactor"
_MOST_FACTOR = 1e9
#: Columns that say nothing about when jobs run.
_OF_NO_USE = ("id", "descr")
#: The column whose words are told one by one, such as PartitionTimeLimit.
_FLAGS = "flags"
#: The flag of a QOS whose limits come before those of the partition's QOS.
_OVER = "overpartqos"
#: The flag of a QOS of whose budgets nothing is forgotten.
_KEEPS = "nodecay"
#: The flag by which a job beyond a limit is refused, and else waits for ever: it never runs.
_DENIES = "denyonlimit"


_FLAGS_FOLLOWED = (_OVER, _DENIES, _KEEPS)


def quotas_of_slurm(path: str | os.PathLike[str]) -> list[Quota]:
    """Return the limits of jobs together in a file that ``sacctmgr -P show qos`` printed.

    MaxJobsPU, MaxTRESPU and MaxSubmitPU are of each user of a QOS, MaxJobsPA, MaxTRESPA and
    MaxSubmitPA of each account, GrpJobs, GrpTRES and GrpSubmit of all of it, and MaxTRES,
    MaxTRESPerNode, MinTRES and MaxWall of one job, which never runs beyond them, with DenyOnLimit
    or not; of TRES processors, memory and generic resources count (``cpu=256,mem=2T,gres/gpu=4``).
    Logs have QOS as queues, and accounts as groups. A warning names what is not followed.
    What ``sacctmgr -P show assoc`` printed stands for the limits of accounts and their users. A
    dump of ``sacct`` stands for the throttles of its arrays, such as ``7_[5-9%2]``.

    Raises
    ------
    HpcgymError : what :func:`read_qos` or :func:`associations_as_quotas` raises; a dump without
        throttles.
    """
    if is_associations(head_of(Path(path)).decode(errors="replace")):
        return associations_as_quotas(path)
    from hpcgym.workload.io.sacct import throttles

    if (most := throttles(Path(path))) is not None:
        return [Quota((), ((ARRAY, str(array)),), {"jobs": jobs}) for array, jobs in most.items()]
    known, budgets = without_budgets(read_qos(path))
    quotas, left = limits_as_quotas(known)
    warn_of_left(path, [*left, *budgets], "QOS", " by quotas")
    return of_tables(quotas)


def limits_as_quotas(
    known: Sequence[Qos],
    partitions: Mapping[str, Sequence[str]] = MappingProxyType({}),
    half_life_s: int | None = None,
) -> tuple[list[Quota], list[Left]]:
    """Return the limits of QOS as :func:`quotas_of_slurm` does, and what is not followed.

    ``half_life_s`` is of budgets, but for QOS with the flag NoDecay.

    ``partitions`` are those of which a QOS is the partition's own, QOS -> names. Its limits hold
    for their jobs too, together with its own jobs. Where it and the QOS of the job have the same
    limit, that of the partition holds, or with the flag OverPartQOS that of the job; the other QOS
    only counts the job (``acct_policy_set_qos_order`` in ``acct_policy.c`` of Slurm 22.05).
    """
    quotas: list[Quota] = []
    left: list[Left] = []
    bounds = {qos.name: bounds_of(qos.limits) for qos in known}
    over = {qos.name for qos in known if is_over(qos)}
    for qos in known:
        own, others = partitions.get(qos.name, ()), [row.name for row in known if row is not qos]
        apart: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[bool, dict[str, int]]]
        apart = defaultdict(lambda: {False: {}, True: {}})
        for key, most in bounds[qos.name].items():
            same = [name for name in others if key in bounds[name]]
            spares = [name for name in same if name in over and own]
            if qos.name not in over:
                spares += (
                    _of_partition(part) for name in same for part in partitions.get(name, ())
                )
            each, amount, is_least = key
            apart[each, tuple(spares)][is_least][amount] = most
        where = (("queue", OR.join([qos.name, *map(_of_partition, own)])),)
        quotas += [
            Quota(
                each,
                where,
                bounded[False],
                names,
                bounded[True],
                half_life_s=None if _KEEPS in map(str.casefold, _flags(qos)) else half_life_s,
            )
            for (each, names), bounded in apart.items()
        ]
        left += _not_followed(qos)
    return quotas, left


def _of_partition(name: str) -> str:
    """Return what quotas call the jobs of a partition beside queues."""
    return f"partition={name}"


def in_place_of(
    known: Sequence[Qos], partitions: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> dict[Limit, tuple[str, ...]]:
    """Return the QOS whose limits stand in place of those of associations, limit -> names.

    By ``acct_policy.c`` of Slurm 22.05: GrpJobs, GrpTRES and GrpSubmit each in place of the same,
    of a TRES each by itself; so those of one job; MaxJobs and MaxSubmit of a user in an account
    where the QOS bounds each user, or each account. So do those of the QOS of ``partitions`` for
    the jobs there.
    """
    stands: dict[Limit, list[str]] = defaultdict(list)
    for qos in known:
        for kind, amount in dict.fromkeys(
            (kind_of(each), amount) for each, amount, _ in bounds_of(qos.limits)
        ):
            stands[kind, amount].append(qos.name)
    return {
        limit: (
            *names,
            *(_of_partition(part) for name in names for part in partitions.get(name, ())),
        )
        for limit, names in stands.items()
    }


def usage_factors(known: Sequence[Qos]) -> dict[str, float]:
    """Return by what QOS multiply what their jobs are charged, of those that do."""
    return {qos.name: qos.usage_factor for qos in known if qos.usage_factor not in (None, 1)}


def by_limit_factors(quotas: Iterable[Quota], known: Sequence[Qos]) -> Iterator[Quota]:
    """Yield the limits of associations where QOS multiply them for their jobs by LimitFactor.

    It counts for GrpTRES and MaxTRES (``_apply_limit_factor`` in ``acct_policy.c`` of Slurm 22.05).
    The jobs of each factor are held by limits of their own, which count all jobs.
    """
    factors = {qos.name: qos.limit_factor for qos in known if qos.limit_factor not in (None, 0, 1)}
    for quota in quotas:
        scaled = {of: most for of, most in quota.bounds if factors and _is_of_tres(of)}
        rest = {of: most for of, most in quota.bounds if of not in scaled}
        if rest or not scaled:
            yield replace(quota, bounds=rest)
        if scaled:
            yield replace(quota, bounds=scaled, spares=(*quota.spares, *factors))
        for factor in dict.fromkeys(factors.values() if scaled else ()):
            others = (qos.name for qos in known if factors.get(qos.name) != factor)
            bounds = {of: int(most * factor) for of, most in scaled.items()}
            yield replace(quota, bounds=bounds, spares=(*quota.spares, *others))


def _is_of_tres(amount: str) -> bool:
    """Return whether an amount is a trackable resource of a job."""
    of_resource = amount_within(amount) == amount and amount not in OF_ONE_JOB
    return of_resource and bool(tres_of(amount))


def is_over(qos: Qos) -> bool:
    """Return whether the limits of a QOS come before those of the partition's own."""
    return _OVER in map(str.casefold, _flags(qos))


def _flags(qos: Qos) -> list[str]:
    """Return the flags of a QOS, as they are written."""
    texts = [text for name, text in qos.others.items() if name.casefold() == _FLAGS]
    return [flag.strip() for text in texts for flag in text.split(",") if flag.strip()]


def _not_followed(qos: Qos) -> list[Left]:
    """Return what of a QOS no quota follows."""
    left = unfollowed(qos.limits) + ["Preempt"] * bool(qos.preempts)
    left += [name for field, (name, usual) in _STOPPING.items() if getattr(qos, field) not in usual]
    left += [name for name in qos.others if name.casefold() not in (*_OF_NO_USE, _FLAGS)]
    left += [USAGE_FACTOR] * (qos.usage_factor not in (None, 1))
    left += [LIMIT_FACTOR] * (qos.limit_factor not in (None, 1))
    left += [f"Flags={flag}" for flag in _flags(qos) if flag.casefold() not in _FLAGS_FOLLOWED]
    return [Left(qos.name, name) for name in left]


# --- Preemption by a slurm.conf, or by Slurm's QOS ------------------------------------------------

#: Settings that are followed where jobs may stop others, in lower case.
FOLLOWED = ("preempttype", "preemptmode", "preemptexempttime")
#: Their values, and one of SchedulerParameters, that are followed: the youngest of a tier go first.
YOUNGEST_FIRST = ("youngest_first", "preempt_youngest_first")
_TYPES = ("preempt/none", "preempt/partition_prio", "preempt/qos")
# All that Slurm takes; "on" is "suspend". WITHIN and PRIORITY, beside another, are not simulated.
_MODES = (
    "off", "cancel", "gang", "requeue", "suspend", "on", "within", "priority", "cluster",
    "checkpoint",
)  # fmt: skip
_EXEMPT, _GRACE = "PreemptExemptTime", "GraceTime"


def preemption_of_slurm(conf: SlurmConf) -> Preemption | None:
    """Return the preemption of a slurm.conf; None: no preemption, or one that is not simulated.

    With ``PreemptType=preempt/partition_prio`` and ``PreemptMode=REQUEUE``, ``CANCEL`` or
    ``SUSPEND,GANG`` jobs of a partition may stop jobs of all partitions with a lower PriorityTier,
    except those whose own ``PreemptMode`` is OFF. Runs are exempt for ``PreemptExemptTime``, and
    jobs that are to stop run on for the ``GraceTime`` [s] of their partition; with SUSPEND Slurm
    ignores both (its page "slurm.conf", and ``node_scheduler.c`` of Slurm 22.05).

    Raises
    ------
    HpcgymError : ``PreemptMode=SUSPEND`` alone, with which Slurm does not start: GANG lets
        suspended jobs go on (the same; "PreemptMode=SUSPEND requires GANG too"); or an invalid
        type, mode, exempt time or grace time.
    """
    kind = conf.said("preempttype")
    if kind not in _TYPES:
        raise conf.wrong("preempttype", f"PreemptType={kind}: {did_you_mean(kind, _TYPES)}")
    _check_modes(conf)
    mode = mode_of_slurm(conf)
    if kind != "preempt/partition_prio" or mode not in MODES:
        return None
    safe = spared(conf)
    partitions = [
        (partition.name, partition.priority_tier) for partition in conf.cluster.partitions
    ]
    pairs = tuple(pair for pair in by_tier(partitions) if pair[1] not in safe)
    if not pairs:
        return None
    seconds = exempt_of_slurm(conf)
    exempt = _times(((b, seconds) for _, b in pairs), mode)
    stopped = {b for _, b in pairs}
    # also of those never stopped
    grace = {name: _grace_of(conf, name) for name in conf.grace_times}
    times = ((name, seconds) for name, seconds in grace.items() if name in stopped)
    return Preemption("partition", pairs, mode, exempt, _times(times, mode))


def _grace_of(conf: SlurmConf, partition: str) -> int:
    """Return the grace time of a partition that has one [s]."""
    text = conf.grace_times[partition]
    seconds = count_of(text)
    if seconds is None:
        problem = f"partition {partition!r}: {_GRACE}={text}: seconds must be a whole number"
        raise conf.wrong("", problem, ("grace_times", partition))
    return seconds


def _check_modes(conf: SlurmConf) -> None:
    """Refuse modes of the file, or of its partitions, that Slurm does not have."""
    modes: list[tuple[str, str, str, tuple[str, str] | None]] = [
        ("PreemptMode", conf.said("preemptmode"), "preemptmode", None)
    ]
    for named, value in conf.preempt_modes.items():
        modes.append((f"partition {named!r}: PreemptMode", value, "", ("preempt_modes", named)))
    for name, value, setting, stands in modes:
        for mode in (part.strip().casefold() for part in value.split(",")):
            if mode not in _MODES:
                raise conf.wrong(setting, f"{name}={value}: {did_you_mean(mode, _MODES)}", stands)
    if mode_of_slurm(conf) == "suspend" and "gang" not in conf.said("preemptmode"):
        text = "PreemptMode=SUSPEND: Slurm refuses it without GANG; write SUSPEND,GANG"
        raise conf.wrong("preemptmode", text)


def exempt_of_slurm(conf: SlurmConf) -> int | None:
    """Return the usual exempt time of runs [s], which a QOS may replace; None: not set."""
    name = _EXEMPT.casefold()
    try:
        return minutes_text(conf.scheduling.get(name, ""), _EXEMPT)
    except HpcgymError as error:
        raise conf.wrong(name, str(error)) from None


def _times(times: Iterable[tuple[str, int | None]], mode: str) -> tuple[tuple[str, int], ...]:
    """Return exempt or grace times [s] above 0; none with mode suspend."""
    known = {} if mode == "suspend" else dict(times)
    return tuple((name, seconds) for name, seconds in known.items() if seconds)


def mode_of_slurm(conf: SlurmConf) -> str:
    """Return PreemptMode in lower case; it is not one of MODES if no job stops another."""
    return _mode_of(conf.said("preemptmode"))


def _mode_of(value: str) -> str:
    """Return the mode of a PreemptMode; beside SUSPEND, GANG only lets such jobs go on."""
    modes = [mode.strip() for mode in value.casefold().split(",")]
    modes = ["suspend" if mode == "on" else mode for mode in modes]
    return ",".join(mode for mode in modes if mode != "gang" or "suspend" not in modes)


def spared(conf: SlurmConf) -> set[str]:
    """Return the partitions whose jobs are never stopped."""
    return {name for name, mode in conf.preempt_modes.items() if mode.casefold() == "off"}


def stopping_of(
    every_qos: Sequence[Qos], path: str | os.PathLike[str], usual: str, exempt_s: int | None = None
) -> Preemption:
    """Return the preemption by the column Preempt of the QOS of a file.

    Stopped jobs are cancelled, suspended or wait again by the PreemptMode of their QOS; ``usual``
    and ``exempt_s`` are the mode and the PreemptExemptTime of the slurm.conf, for QOS without their
    own. Jobs of QOS with PreemptMode OFF are never stopped. With suspension there are no exempt and
    grace times.

    Raises
    ------
    HpcgymError : no QOS may stop another, or QOS have different modes.
    """
    known = {qos.name: qos for qos in every_qos}
    pairs = tuple((qos.name, other) for qos in known.values() for other in qos.preempts)
    if not pairs:
        raise HpcgymError(f"{path}: no QOS may stop another, for the column Preempt is empty")
    rows = [known[name] for name in dict.fromkeys(other for _, other in pairs if other in known)]
    how = {qos.name: _mode_of(qos.preempt_mode or "cluster") for qos in rows}
    pairs = tuple(pair for pair in pairs if how.get(pair[1]) != "off")
    if not pairs:
        raise HpcgymError(f"{path}: no QOS may stop another, for the PreemptMode of all is OFF")
    modes = {mode for mode in how.values() if mode != "off"}
    modes = {usual if mode == "cluster" else mode for mode in modes}
    if len(modes) > 1:
        raise HpcgymError(
            f"{path}: QOS are stopped in several ways, {', '.join(sorted(modes))}: give one"
            " preemption such as 'qos:high>low,cancel'"
        )
    mode = next(iter(modes), usual)
    stopped = {name for _, name in pairs}
    times = dict.fromkeys(sorted(stopped), exempt_s) | {
        qos.name: minutes_text(qos.preempt_exempt_time, f"{path}: {qos.name}: {_EXEMPT}")
        for qos in rows
        if qos.preempt_exempt_time and qos.name in stopped
    }
    grace = [
        (qos.name, minutes_text(qos.grace_time, f"{path}: {qos.name}: {_GRACE}"))
        for qos in rows
        if qos.grace_time and qos.name in stopped
    ]
    exempt = _times(times.items(), mode)
    try:
        return Preemption("qos", pairs, mode, exempt, _times(grace, mode))
    except HpcgymError as error:
        raise HpcgymError(f"{path}: {error}") from None
