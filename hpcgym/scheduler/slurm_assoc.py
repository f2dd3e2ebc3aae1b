"""Associations of Slurm, accounts and their users: shares, and limits as quotas."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType

from hpcgym.errors import HpcgymError, HpcgymWarning, check_each_once, number_in, warn_caller
from hpcgym.names import LICENCE
from hpcgym.scheduler.policies.fair_share import AT, PARENT, Account, FairShare
from hpcgym.scheduler.restrictions import JOB, OR, Quota
from hpcgym.scheduler.slurm_tables import (
    Left,
    Limit,
    Limits,
    SlurmRow,
    bounds_of,
    header_of,
    kind_of,
    limits_of,
    rows_of,
    unfollowed,
    warn_of_left,
    without_budgets,
)
from hpcgym.words import counted

KIND = "associations"  # in messages
_ROOT = "root"  # the account above all
#: Columns that name the account above, where they were asked for.
_ABOVE = ("par name", "parentname", "parent name", "parent")
#: Columns that do not affect when jobs run, or that the log tells for each job.
_OF_NO_USE = (
    "qos", "qos_raw", "def qos", "id", "lft", "rgt", "par id", "parentid", "lineage", "comment",
    "flags", "is def", *_ABOVE,
)  # fmt: skip
#: In place of a share of 0, which is not allowed: its users come last.
_NO_SHARE = 1e-99


@dataclass(frozen=True)
class Association:
    """An account, or a user of one, with shares and limits (man page sacctmgr, "ASSOCIATIONS").

    Attributes
    ----------
    where : file and line.
    cluster, account : their names.
    user, partition : of a user, and of her jobs in one partition; "": an account, any partition.
    above : the account above an account, "" of the first.
    share : relative to the others below the same account; "parent": no share of its own.
    limits : column, of :data:`hpcgym.scheduler.slurm_tables.LIMITS`, -> what is bound -> most, such
        as ``{"MaxJobs": {"jobs": 4}, "GrpTRES": {"cpu": 256}}``.
    others : other columns that hold something: name -> text; no simulation follows them.
    """

    where: str
    cluster: str
    account: str
    user: str
    partition: str
    above: str
    share: float | str
    limits: dict[str, dict[str, int]]
    others: dict[str, str]

    @property
    def name(self) -> str:
        """What a :class:`~hpcgym.scheduler.policies.FairShare` calls it."""
        within = f":{self.partition}" if self.partition else ""
        return f"{self.user}{AT}{self.account}{within}"


def is_associations(text: str) -> bool:
    """Return whether a text begins as ``sacctmgr -P show assoc`` prints it."""
    columns = header_of(text)
    return {"account", "user"} <= {*columns} and not {"jobid", "jobidraw"} & {*columns}


def read_associations(path: str | os.PathLike[str], cluster: str = "") -> list[Association]:
    """Return the associations of a cluster in a file that ``sacctmgr -P show assoc`` printed.

    The account above an account is given by the column of ``format=...,ParentName``, or by the
    blanks before its name (``sacctmgr -P show assoc tree``); else it is ``root``.

    Raises
    ------
    HpcgymError : a file that cannot be read or has no such header, a row of another length, an
        association that stands twice, an invalid value, accounts in a circle, several clusters of
        which none has this name, or no user; the message names file, line and column.

    Warns
    -----
    HpcgymWarning : the file does not give the accounts above accounts.
    """
    such = "Cluster|Account|User|Partition|Share"
    line: list[tuple[int, str]] = []  # accounts above the present row: blanks before, and names
    associations, tells = [], False
    for row in rows_of(path, KIND, ("account", "user"), such):
        tells |= row.others["account"].startswith(" ") or not row.others.keys().isdisjoint(_ABOVE)
        associations.append(_association(row, line))
    associations = _of_cluster(associations, cluster, path)
    check_each_once(f"{path}: association", [assoc.name for assoc in associations])
    if not any(assoc.user for assoc in associations):
        raise HpcgymError(f"{path}: it holds no user of an account")
    _check_circles(associations)
    if not tells and sum(not assoc.user for assoc in associations) > 2:
        text = (
            f"{path}: it does not tell which accounts stand above others, so all stand below root;"
            " sacctmgr -P show assoc tree tells it"
        )
        warn_caller(text, HpcgymWarning)
    return associations


def _of_cluster(
    associations: list[Association], cluster: str, path: str | os.PathLike[str]
) -> list[Association]:
    """Return the associations of a cluster; of the only one where the file does not tell which."""
    own = [assoc for assoc in associations if assoc.cluster.casefold() == cluster.casefold()]
    names = sorted({assoc.cluster for assoc in associations})
    named = cluster and any(names)  # both say which cluster it is
    if not own and (named or len(names) > 1):
        which = f", none of {cluster!r}" if cluster else ""
        has = f"clusters {', '.join(names)}{which}"
        if len(names) == 1:
            has = f"cluster {names[0]}, not {cluster!r} as the slurm.conf"
        raise HpcgymError(
            f"{path}: it has the {has}: take one, as"
            f" sacctmgr -P show assoc cluster={cluster or names[0]} does"
        )
    others = sorted({*names} - {assoc.cluster for assoc in own})
    if own and others:
        left = counted(len(associations) - len(own), "association")
        text = f"{path}: left out: {left} of other clusters, {', '.join(others)}"
        warn_caller(text, HpcgymWarning)
    return own or associations


def _check_circles(associations: Sequence[Association]) -> None:
    """Raise an HpcgymError if an account stands above itself."""
    above = {assoc.account: assoc.above for assoc in associations if not assoc.user}
    for assoc in associations:
        account, steps = assoc.account, 0
        while account := above.get(account, ""):
            steps += 1
            if steps > len(above):
                raise HpcgymError(f"{assoc.where}: account {assoc.account!r} stands above itself")


def _association(row: SlurmRow, line: list[tuple[int, str]]) -> Association:
    """Return the association of a row; ``line`` are the accounts above the rows so far."""
    written = row.others["account"]
    account, user = row.take("account"), row.take("user")
    if not account:
        raise HpcgymError(f"{row.where}: an association without an account")
    parents = [row.take(column) for column in _ABOVE]
    above = "" if account == _ROOT else next(filter(None, parents), "")
    if not user:
        blanks = len(written) - len(written.lstrip())
        while line and line[-1][0] >= blanks:
            line.pop()
        if not above and account != _ROOT:
            above = line[-1][1] if line else _ROOT
        line.append((blanks, account))
    share = row.take("share").casefold() or "1"
    return Association(
        where=row.where,
        cluster=row.take("cluster"),
        account=account,
        user=user,
        partition=row.take("partition"),
        above="" if user else above,
        share=PARENT if share == PARENT else number_in(f"{row.where}: Share", share),
        limits=limits_of(row),
        others={
            name: text for name, text in row.left().items() if name.casefold() not in _OF_NO_USE
        },
    )


# --- Shares and limits ----------------------------------------------------------------------------


def with_shares(fair_share: FairShare, associations: Sequence[Association]) -> FairShare:
    """Return fair share with the shares and the accounts of associations.

    Users and accounts below an account whose share is "parent" count as if they were below the
    account above that (man page sacctmgr, "Fairshare"). A share of 0 is the least possible.
    """
    accounts = {assoc.account: assoc for assoc in associations if not assoc.user}

    def with_own(account: str) -> str:
        while account in accounts and accounts[account].share == PARENT:
            account = accounts[account].above or _ROOT
        return account

    shares: dict[Account, float | str] = {}
    above: dict[Account, str] = {}
    for assoc in associations:
        if not assoc.user and (assoc.account == _ROOT or assoc.share == PARENT):
            continue
        shares[assoc.name] = assoc.share or _NO_SHARE
        upper = with_own(assoc.account if assoc.user else assoc.above)
        if upper != (assoc.account if assoc.user else _ROOT):
            above[assoc.name] = AT + upper
    return replace(fair_share, shares=shares, accounts=above)


#: Bounds of a quota that are alike: pairs of an amount and the most, in their order.
_Bounds = tuple[tuple[str, int], ...]


def limits_as_quotas(
    associations: Sequence[Association],
    spares: Mapping[Limit, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[list[Quota], list[Left]]:
    """Return the limits of associations as quotas, and what is not followed.

    ``spares`` names, for limits, the QOS of which the jobs go by another limit.

    GrpJobs, GrpTRES (``cpu=256,gres/gpu=4``) and GrpSubmit of an account hold for all jobs of it
    and of the accounts below it together; of a user for hers. MaxJobs and MaxSubmit hold for each
    user of an account, and an account below that has its own goes by that; so do MaxTRES,
    MaxTRESPerNode and MaxWall of each job. What is alike is one quota.
    """
    quotas = [*_sparing(_of_accounts(associations), "Grp", spares)]
    for kinds in [("Grp",), ("Max",)] if spares else [("Grp", "Max")]:
        quotas += _sparing(_of_users(associations, kinds), kinds[0], spares)
    quotas += _sparing(_of_users(associations, ("",)), "", spares)
    return quotas, [
        Left(assoc.name, what) for assoc in associations for what in _not_followed(assoc)
    ]


def _sparing(
    quotas: Iterable[Quota], kind: str, spares: Mapping[Limit, tuple[str, ...]]
) -> Iterator[Quota]:
    """Yield quotas with the QOS that they spare; bounds that spare different QOS become several."""
    for quota in quotas:
        apart: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
        for amount, most in quota.bounds:
            apart[spares.get((kind, amount), ())][amount] = most
        for names, bounds in apart.items():
            yield replace(quota, bounds=bounds, spares=names)


def _of_accounts(associations: Sequence[Association]) -> Iterator[Quota]:
    """Yield the quotas of accounts; equal ones of accounts with none below are joined."""
    accounts = {assoc.account: assoc for assoc in associations if not assoc.user}
    below = defaultdict(list)  # each account: itself, and all below it
    for name in accounts:
        upper = name
        while upper:
            below[upper].append(name)
            upper = accounts[upper].above if upper in accounts else ""
    alike = defaultdict(list)
    for name, assoc in accounts.items():
        bounds = _bounds(assoc.limits, "Grp")
        if name == _ROOT:  # of all jobs; but what all have of a licence is what the cluster has
            own = tuple(pair for pair in bounds if not pair[0].startswith(LICENCE))
            bounds = tuple(pair for pair in bounds if pair not in own)
            if own:
                yield Quota(bounds=own)
        if bounds and (len(below[name]) > 1 or name == _ROOT):
            yield Quota((), (("group", OR.join(below[name])),), bounds)
        elif bounds:
            alike[bounds].append(name)
    for bounds, names in alike.items():
        yield Quota(("group",), (("group", OR.join(names)),), bounds)


def _of_users(associations: Sequence[Association], kinds: Sequence[str]) -> Iterator[Quota]:
    """Yield the quotas of users of accounts: few, for each pass asks all of them.

    ``kinds``: of their own Grp limits, of the Max limits of each user of an account, or of those
    of each job.

    Accounts whose users all have the same limits share a quota; so do users with the same limits in
    all of their accounts; others have their own.
    """
    of_jobs = "" in kinds
    accounts = {assoc.account: assoc for assoc in associations if not assoc.user}

    def inherited(assoc: Association) -> Limits:
        limits = defaultdict(dict, {column: {**own} for column, own in assoc.limits.items()})
        upper = assoc.account
        while upper in accounts:
            for column, bounds in accounts[upper].limits.items():
                limits[column] = {**bounds, **limits[column]}
            upper = accounts[upper].above
        return limits

    of_accounts: dict[tuple[str, str], dict[str, _Bounds]] = defaultdict(dict)
    of_users: dict[tuple[str, str], set[_Bounds]] = defaultdict(set)
    for assoc in associations:
        if assoc.user:
            limits = [
                _bounds(assoc.limits if kind == "Grp" else inherited(assoc), kind) for kind in kinds
            ]
            bounds = _least_of(limits)
            of_accounts[assoc.account, assoc.partition][assoc.user] = bounds
            of_users[assoc.user, assoc.partition].add(bounds)
    groups: dict[tuple[_Bounds, str], list[str]] = defaultdict(list)
    users: dict[tuple[_Bounds, str], dict[str, None]] = defaultdict(dict)
    for (account, partition), users_of in of_accounts.items():
        if len({*users_of.values()}) == 1:
            groups[next(iter(users_of.values())), partition].append(account)
            continue
        for user, bounds in users_of.items():
            if len(of_users[user, partition]) == 1:
                users[bounds, partition][user] = None
            elif bounds:
                where = (("group", account), ("user", user), *_within(partition))
                yield Quota((JOB,) if of_jobs else (), where, bounds)
    for column, alike in (("group", groups), ("user", users)):
        for (bounds, partition), names in alike.items():
            if bounds:
                where = ((column, OR.join(names)), *_within(partition))
                yield Quota((JOB,) if of_jobs else ("group", "user"), where, bounds)


def _within(partition: str) -> tuple[tuple[str, str], ...]:
    """Return the condition that jobs are of a partition, where one is named."""
    return (("partition", partition),) if partition else ()


def _least_of(bounds: Iterable[_Bounds]) -> _Bounds:
    """Return the least of the bounds on each amount."""
    least: dict[str, int] = {}
    for amount, most in chain.from_iterable(bounds):
        least[amount] = min(most, least.get(amount, most))
    return tuple(sorted(least.items()))


def _bounds(limits: Limits, kind: str) -> _Bounds:
    """Return the limits of a kind as bounds of a quota; associations have no least ones."""
    of_all = bounds_of(limits).items()
    return tuple(
        sorted((amount, most) for (each, amount, _), most in of_all if kind_of(each) == kind)
    )


def _not_followed(assoc: Association) -> list[str]:
    """Return what of an association no simulation follows."""
    left = [*(name for name in assoc.others if name), *unfollowed(assoc.limits)]
    return left + ["Share=0, taken for the least"] * (assoc.share == 0)


def associations_as_quotas(path: str | os.PathLike[str]) -> list[Quota]:
    """Return the limits in a file of associations, and warn of what is not followed.

    Raises
    ------
    HpcgymError : what :func:`read_associations` raises.
    """
    members, budgets = without_budgets(read_associations(path))
    quotas, left = limits_as_quotas(members)
    warn_of_left(path, [*left, *budgets], KIND, " by quotas")
    return quotas
