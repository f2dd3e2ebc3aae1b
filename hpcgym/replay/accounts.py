"""Limits of QOS and of accounts, given to Slurm without a database.

Where the database of accounts does not answer, slurmctld reads what it last knew of it: the files
``last_tres`` and ``assoc_mgr_state`` among its states. They are written here, as
``src/common/assoc_mgr.c`` and ``slurmdb_pack.c`` of Slurm 22.05 pack them; two later releases read
them too.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.machine import Partition
from hpcgym.replay.configuration import NAME, tracked_as
from hpcgym.scheduler.policies.fair_share import PARENT, FairShare
from hpcgym.scheduler.restrictions import COLUMNS, Quota, alternatives
from hpcgym.workload.amounts import amount_called, weights_of
from hpcgym.workload.io.swf_header import called_in, names_of
from hpcgym.workload.model import Workload

# --- Quotas as limits of Slurm --------------------------------------------------------------------


#: Amounts of jobs -> the most of each at once.
Limit = Mapping[str, int]


def _tighter(limit: Limit, quota: Quota) -> Limit:
    """Return the tighter of a limit and a quota."""
    return {**limit, **{of: min(most, limit.get(of, most)) for of, most in quota.running.items()}}


class AccountLimits(NamedTuple):
    """What Slurm is told of accounts and QOS.

    Users of a log are accounts, or groups where quotas name these, and queues are QOS, since the
    owner of a replay is the only user.

    Attributes
    ----------
    of_all, of_account : limits of all jobs, and of those of an account.
    of_qos : QOS -> limits of its jobs, of those of each account in it, and its priority.
    account, qos : of each job.
    above, shares : account -> the account above it, and its shares among those below the same; the
        account of the whole machine, and 1, of others.
    idle : accounts of users without jobs.
    partitions : partition -> the QOS that is its own.
    over : QOS whose limits come before those of a partition's.
    """

    of_all: Limit
    of_account: Mapping[str, Limit]
    of_qos: Mapping[str, tuple[Limit, Limit, int]]
    account: Sequence[str]
    qos: Sequence[str]
    above: Mapping[str, str] = MappingProxyType({})
    shares: Mapping[str, int] = MappingProxyType({})
    idle: Collection[str] = ()
    partitions: Mapping[str, str] = MappingProxyType({})
    over: Collection[str] = ()

    def tracked(self, partitions: Iterable[Partition]) -> list[str]:
        """Return what Slurm must track, beside what it always does: what is bound, or billed."""
        limits: list[Mapping[str, float]] = [self.of_all, *self.of_account.values()]
        limits += [limit for both in self.of_qos.values() for limit in both[:2]]
        limits += [weights_of(partition.billing) for partition in partitions if partition.billing]
        names = {tracked_as(amount): None for limit in limits for amount in limit}
        return [name for name in names if "/" in name]

    def words(self, row: int) -> list[str]:
        """Return what ``sbatch`` is told of a job."""
        return [f"--account={self.account[row]}", f"--qos={self.qos[row]}"]


def limits_of(
    jobs: Workload,
    quotas: Iterable[Quota],
    priority: Mapping[str, int] = MappingProxyType({}),
    partitions: Mapping[str, str] = MappingProxyType({}),
    over: Collection[str] = (),
    fair_share: FairShare | None = None,
) -> AccountLimits:
    """Return limits of Slurm that are some quotas.

    Parameters
    ----------
    fair_share : whose accounts and shares Slurm has; None: all users are alike.
    priority : of queues by what the log calls them; 0 of others.
    partitions, over : as :class:`AccountLimits` has them, where the quotas are made of these.

    Raises
    ------
    HpcgymError : a quota that is no limit of Slurm: one of partitions or arrays, of users where
        another is of groups, of several groups together, or of jobs that are submitted, which Slurm
        refuses, and which wait outside in a simulation; of minutes of each user of a queue, which
        Slurm 22.05 stores and does not look at. Or one that does not spare just the queues whose
        own limits stand in its place in Slurm.
    """
    quotas = list(quotas)
    by = (
        "group" if any("group" in (*quota.each, *dict(quota.where)) for quota in quotas) else "user"
    )
    letter, owner = by[0], jobs.columns[COLUMNS[by]]
    of_all: Limit = {}
    of_account: dict[str, Limit] = {}
    names = _qos_names(jobs, partitions.values())
    of_qos: dict[str, tuple[Limit, Limit, int]] = {
        qos: ({}, {}, priority.get(name, 0)) for name, qos in names.items()
    }
    wrong: list[str] = []
    for quota in quotas:
        named = [pair for column, name in quota.where for pair in alternatives(column, name)]
        columns = {column for column, _ in named} - ({"partition"} if partitions else set())
        owners = np.unique(owner[quota.counted(jobs) >= 0]).tolist()
        apart = quota.each == (by,)
        one_alone = not quota.each and columns == {by} and len(owners) <= 1
        queues = [name for column, name in named if column in ("queue", "qos")]
        of_queues = columns and columns <= {"queue", "qos"} and (apart or len(queues) == 1)
        spares = quota.spares and not partitions
        by_time = any(amount_called(name).of for name in quota.running)
        known = not quota.submitted and all(map(_has_limits, quota.running))
        if known and columns <= {by} and (apart or one_alone):
            for number in owners:
                name = _called(letter, number)
                of_account[name] = _tighter(of_account.get(name, {}), quota)
        elif known and not columns and not quota.each:
            of_all = _tighter(of_all, quota)
        elif known and of_queues and not spares and (not by_time if apart else not quota.each):
            for name in (names[queue] for queue in queues if queue in names):
                together, each, rank = of_qos[name]
                if apart:
                    each = _tighter(each, quota)
                else:
                    together = _tighter(together, quota)
                of_qos[name] = (together, each, rank)
        else:
            wrong.append(str(quota))
    if wrong:
        raise HpcgymError(
            f"a replay on Slurm has no quota {', nor '.join(wrong)}: quotas may bound what running"
            " jobs have: of all, of each user, of a queue, or of each user of one, or of"
            " groups in place of users"
        )
    qos = [names[name] for name in called_in(jobs, "queue").tolist()]
    own = {number: of_qos[name][0] for number, name in zip(jobs.queue.tolist(), qos, strict=True)}
    for quota in quotas:
        if {column for column, _ in quota.where} <= {by}:
            _check_spares(jobs, quota, own)
    account = [_called(letter, number) for number in owner.tolist()]
    return AccountLimits(
        of_all,
        of_account,
        of_qos,
        account,
        qos,
        *_tree(jobs, fair_share, account),
        {partition: names[name] for partition, name in partitions.items()},
        {names[name] for name in over if name in names},
    )


def _tree(
    jobs: Workload, fair_share: FairShare | None, account: Sequence[str]
) -> tuple[dict[str, str], dict[str, int], list[str]]:
    """Return what stands above each account, its shares, and the accounts of users without jobs."""
    if fair_share is None:
        return {}, {}, []
    tree = fair_share.tree_of([jobs])
    if PARENT in fair_share.shares.values():
        raise HpcgymError("a replay on Slurm has no user with the share of the account above")
    used = {*zip(tree.owner.tolist(), account, strict=True)}
    leaf_of = {name: leaf for leaf, name in used}
    if not len(leaf_of) == len(used) == len({leaf for leaf, _ in used}):
        raise HpcgymError(
            "a replay on Slurm with fair share has each user in one account, and quotas of users"
        )
    names = dict(enumerate(f"a{place}" for place in range(len(tree.parent)))) | dict(used)
    above = {names[own]: names[up] for own, up in enumerate(tree.parent.tolist()) if up >= 0}
    parts = tree.part.tolist()
    shares = {name: max(round(parts[place] * _WHOLE), 1) for place, name in names.items()}
    idle = [names[leaf] for leaf in range(tree.leaves) if names[leaf] not in leaf_of]
    return above, shares, idle


def _qos_names(jobs: Workload, more: Iterable[str]) -> dict[str, str]:
    """Return what Slurm calls each queue, and ``more`` QOS: its name in the log, as orders ask.

    Where Slurm does not take a name, or tells two apart by their case alone, it has a number.
    """
    numbers = dict(zip(called_in(jobs, "queue").tolist(), jobs.queue.tolist(), strict=True))
    numbers |= {name: 10**9 + place for place, name in enumerate(more) if name not in numbers}
    alike = Counter(name.casefold() for name in numbers)
    plain = {*names_of(jobs, "queue").values(), *more}
    return {
        name: name
        if name in plain and NAME.fullmatch(name) and alike[name.casefold()] == 1
        else _called("q", number)
        for name, number in numbers.items()
    }


def _check_spares(jobs: Workload, quota: Quota, of_qos: Mapping[int, Limit]) -> None:
    """Raise an HpcgymError if Slurm bounds other jobs by a quota: a QOS' limit replaces its own."""
    spared = {*jobs.queue[quota.spared(jobs)].tolist()}
    for bound in quota.running:
        own = {number for number, limit in of_qos.items() if bound in limit}
        if own != spared:
            named = dict(zip(jobs.queue.tolist(), called_in(jobs, "queue"), strict=True))
            names = "|".join(str(named[number]) for number in sorted(own))
            which = f"must have spares={names}" if own else "spares nobody"
            raise HpcgymError(
                f"quota {quota}: in Slurm a limit of {bound} of a queue's QOS stands in its place;"
                f" here it {which}"
            )


def _called(letter: str, number: int) -> str:
    """Return what Slurm calls a user or a queue: names of logs may be none that it takes."""
    return f"{letter}{number}" if number >= 0 else f"{letter}none"


#: All shares below one account: by each number up to 16 it is divided without a rest.
_WHOLE = 720_720_000

# --- The files of slurmctld -----------------------------------------------------------------------

_VERSION = 38 << 8  # SLURM_22_05_PROTOCOL_VERSION
_ASSOCS, _USERS, _QOS = 1404, 1406, 1447  # DBD_ADD_ASSOCS, DBD_ADD_USERS, DBD_ADD_QOS
_ENDLESS, _NOTHING = 0xFFFFFFFF, 0xFFFFFFFE  # INFINITE, NO_VAL
_OVER = 1 << 7  # QOS_FLAG_OVER_PART_QOS
_ROOT = "root"
#: Types of resources by their numbers from 1 on; Slurm does not start without one of them.
_RESOURCES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
_FIRST_OTHER = 1001  # the number of the first of all others, TRES_OFFSET


def write_limits(
    folder: Path,
    limits: AccountLimits,
    tracked: Sequence[str],
    user: str,
    number: int,
    now_s: int,
) -> None:
    """Write what slurmctld reads of limits where no database answers.

    Parameters
    ----------
    folder : ``StateSaveLocation``.
    tracked : resources that Slurm tracks beside those that it does by itself.
    user, number : who submits all jobs, and the number of this user of the system.
    now_s : time since 1970 at which the files are written [s].
    """
    head = struct.pack(">HQ", _VERSION, now_s)
    numbers = {name: place for place, name in enumerate(_RESOURCES, 1)}
    numbers |= {name: place for place, name in enumerate(tracked, _FIRST_OTHER)}
    resources = [_resource(place, name) for name, place in numbers.items()]
    (folder / "last_tres").write_bytes(head + _listed(resources))
    qos = {name: place for place, name in enumerate(limits.of_qos, 1)}
    parts = {
        _USERS: [_user(user, number)],
        _QOS: [
            _one_qos(qos[name], _OVER * (name in limits.over), name, *rest, numbers)
            for name, rest in limits.of_qos.items()
        ],
        _ASSOCS: _associations(limits, [*qos.values()], user, number, numbers),
    }
    content = b"".join(struct.pack(">H", kind) + _listed(items) for kind, items in parts.items())
    (folder / "assoc_mgr_state").write_bytes(head + content)


def _listed(records: Sequence[bytes]) -> bytes:
    """Return a list of records, with the status that it was found by."""
    return struct.pack(">I", len(records)) + b"".join(records) + struct.pack(">I", 0)


def _numbers(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def _text(text: str = "") -> bytes:
    """Return a text; an empty one counts as missing."""
    content = text.encode() + b"\0" if text else b""
    return struct.pack(">I", len(content)) + content


def _texts(number: int) -> bytes:
    return _text() * number


def _jobs(limit: Limit) -> int:
    return limit.get("jobs", _ENDLESS)


def _has_limits(amount: str) -> bool:
    """Tell whether Slurm has limits of an amount: of minutes those of what it tracks alone."""
    return not amount_called(amount).of or tracked_as(amount) != ""


def _tracked(limit: Limit, numbers: Mapping[str, int], kind: str = "") -> bytes:
    """Return a limit of what Slurm tracks, by the numbers of its resources.

    ``kind``: "minutes", of what running jobs still may use, or "budget".
    """
    bounds = {
        numbers[name]: most
        for of, most in limit.items()
        if (name := tracked_as(of)) and _kind(of) == kind
    }
    return _text(",".join(f"{number}={most}" for number, most in sorted(bounds.items())))


def _of_group(limit: Limit, numbers: Mapping[str, int]) -> bytes:
    """Return GrpTRESMins, GrpTRESRunMins and GrpTRES."""
    return b"".join(_tracked(limit, numbers, kind) for kind in ("budget", "minutes", ""))


def _kind(amount: str) -> str:
    """Return of which kind a limit of an amount is in Slurm."""
    known = amount_called(amount)
    return "budget" if known.budget else "minutes" if known.of else ""


def _resource(number: int, name: str) -> bytes:
    kind, _, name = name.partition("/")
    return struct.pack(">QQI", 0, 0, number) + _text(name) + _text(kind)


def _user(name: str, number: int) -> bytes:
    """Return a user: no administrator, whose associations stand elsewhere."""
    return b"".join(
        (
            struct.pack(">HII", 1, _NOTHING, _NOTHING),
            _texts(2),
            _numbers(0),
            _text(name),
            _text(),
            _numbers(number, _NOTHING),
        )
    )


def _one_qos(
    number: int,
    flags: int,
    name: str,
    together: Limit,
    each: Limit,
    priority: int,
    numbers: Mapping[str, int],
) -> bytes:
    """Return a QOS with limits of all its jobs and of those of each account."""
    double = struct.pack(">d", 1e6)  # 1.0
    endless = struct.pack(">d", _ENDLESS * 1e6)
    return b"".join(
        (
            _text(),
            _numbers(number, flags, 0),  # GraceTime
            _of_group(together, numbers),
            _numbers(_jobs(together), _ENDLESS, _ENDLESS, _ENDLESS),
            _texts(3),
            _tracked(each, numbers),
            _texts(3),
            _numbers(_jobs(each), *[_ENDLESS] * 7),
            _text(),
            _text(name),
            _numbers(_NOTHING, _NOTHING),  # whom it preempts
            struct.pack(">H", 0),
            _numbers(_ENDLESS, priority),
            double,
            endless,
            endless,
        )
    )


def _associations(
    limits: AccountLimits, qos: Sequence[int], user: str, uid: int, numbers: Mapping[str, int]
) -> list[bytes]:
    """Return the root, all accounts below it, and the one user in each that is a user's."""
    below: dict[str, list[str]] = defaultdict(list)
    users = {*limits.account, *limits.idle}
    for account in sorted({*users, *limits.above.values(), *limits.shares}):
        below[limits.above.get(account, _ROOT)].append(account)
    known = _numbers(len(qos)) + b"".join(_text(str(number)) for number in qos)
    associations: dict[int, bytes] = {}
    ids, borders = count(1), count(1)

    def add(account: str, above: str, parent: int) -> None:
        own, begin = next(ids), next(borders)
        for lower in below[account]:
            add(lower, account, own)
        if account in users:
            last, inside = next(ids), (own, next(borders), next(borders))
            associations[last] = _association(
                last, account, _texts(3), {}, 1, known, inside, user=user, uid=uid
            )
        limit = limits.of_all if account == _ROOT else limits.of_account.get(account, {})
        bound, share = _of_group(limit, numbers), limits.shares.get(account, 1)
        where = parent, begin, next(borders)
        associations[own] = _association(own, account, bound, limit, share, known, where, above)

    add(_ROOT, "", 0)
    return [association for _, association in sorted(associations.items())]


def _association(
    number: int,
    account: str,
    bounds: bytes,
    limit: Limit,
    share: int,
    qos: bytes,
    place: tuple[int, int, int],
    parent: str = "",
    user: str = "",
    uid: int = _NOTHING,
) -> bytes:
    """Return an association; ``place`` is its parent, and where its children begin and end."""
    above, left, right = place
    return b"".join(
        (
            _numbers(_NOTHING),
            _text(account),
            _text("replay"),
            struct.pack(">IHI", 0, 0, share),
            bounds,
            _numbers(_jobs(limit), _ENDLESS, _ENDLESS, _ENDLESS),
            struct.pack(">IHI", number, 0, left),
            _texts(4),
            _numbers(*[_ENDLESS] * 5),
            _text(parent),
            _numbers(above),
            _text(),
            _numbers(0),
            qos,
            _numbers(right, uid),
            _text(user),
        )
    )
