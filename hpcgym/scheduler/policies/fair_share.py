"""Fair share: the shares of users, and how fast their usage is forgotten.

Glesser 2016, section 6.2.2, equations 6.1 to 6.4, with the accounts above users as in the classic
fair-share algorithm of Slurm (https://slurm.schedmd.com/classic_fair_share.html); or its Fair Tree
(https://slurm.schedmd.com/fair_tree.html).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import (
    HpcgymError,
    check_choice,
    check_each_once,
    is_number,
    number_in,
    unknown,
)
from hpcgym.files import check_is_there, toml_file
from hpcgym.scheduler.policies.features import names_of_jobs
from hpcgym.units import WEEK_S, in_seconds, whole_seconds
from hpcgym.workload.amounts import amount_called, amount_problem
from hpcgym.workload.io.swf_header import called_in
from hpcgym.workload.model import Workload

MOST_SECONDS = 2**53
_MOST_FACTOR = 1e9

BY_GROUP = "group"
AT = "@"  #: between a user and an account, and before an account, of names of the log
PARENT = "parent"  #: in place of a share: the user stands for the account above
_MACHINE = f"{AT}root"  # in Slurm the account above all
_FEW = 12  # a text lists up to so many shares, or else tells their number
CLASSIC, FAIR_TREE = FORMULAS = ("classic", "fair-tree")
Account = int | str  # a user's number, or the name of an account above users
#: What a text may say -> whether it is a number.
_IN_TEXT = {
    **dict.fromkeys(("half_life_s", "damping", "period_s"), True),
    **dict.fromkeys(("accounts", "formula", "charged"), False),
}
#: The amount that is charged where no other is named.
_USUAL = "processors"


@dataclass(frozen=True)
class FairShare:
    """Shares of users, and how fast their usage is forgotten.

    Usage is counted when a job ends, in processor seconds, or seconds of another amount, or joules,
    and halves in each ``half_life_s`` from then on. By the classic formula an account's priority is
    2^(-U / S / damping): U is its usage as a part of all that there was to use, S its share as a
    part of all shares. By Fair Tree it is the user's place among all n: 1, (n - 1) / n, down to
    1 / n. Accounts below the same account are ordered by share / part of their usage, greatest
    first; all users below one come before all users below the next.

    Attributes
    ----------
    half_life_s : time in which usage loses half its weight: whole seconds, or a text such as
        ``"2d"``; ``math.inf``: never.
    damping : above 0; the larger, the less priorities differ. For the classic formula only.
    shares : user number, or name of an account -> share, above 0; 1 for all others. Shares are
        relative to those of the other users and accounts below the same account. Or all keys are
        names of the log, whose groups are accounts: ``@physics`` is an account, ``alice@physics``
        the jobs of its user ``alice``, ``alice@physics:gpu`` those in the partition ``gpu``. A user
        of an account may have "parent" in place of a share: she stands for the account; by Fair
        Tree she comes first in it.
    accounts : the account above each user or account: a mapping of user numbers, and names of
        accounts, to names of accounts; or "group": a user's jobs of one ``group_id`` of the
        workload are charged to the account ``group:NUMBER``. None: there are only users. With names
        of the log users are below their accounts, and ``@root`` is the machine.
    formula : "classic" or "fair-tree".
    charged : the amount of which jobs are charged seconds, such as "gpu", or "billing", as Slurm
        does with TRESBillingWeights (``calc_job_billable_tres``). By the classic formula the
        machine has so much of it as its processors have by the mean of the jobs.
    factors : queue -> by what a second of its jobs is multiplied, at least 0; 1 for all others
        (UsageFactor of Slurm's QOS).
    period_s : 0: a job is charged when it ends. Else usage counts, and priorities change, at
        multiples of it on the log's clock only, as in Slurm each PriorityCalcPeriod, and are seen
        from the next second on. There a job that runs is charged what it ran since the last
        multiple; a job that has ended by then, what it ran up to its end. So many seconds s count
        as s f^s, and usage is multiplied by f in each second, with f = 1 - 0.693 / half_life_s
        (``_decay_thread`` and ``_apply_new_usage`` of priority/multifactor in Slurm 22.05).

    Raises
    ------
    HpcgymError : a value that is not one of these, an unknown account, or an account above itself.

    Examples
    --------
    >>> from hpcgym.scheduler.policies import FairShare
    >>> print(FairShare(shares={"physics": 3}, accounts={12: "physics", 14: "biology"}))
    half_life_s=604800, damping=1, shares physics=3, accounts 12<physics 14<biology
    """

    half_life_s: float = WEEK_S
    damping: float = 1.0
    shares: Mapping[Account, float | str] = field(default_factory=dict, hash=False)
    accounts: str | Mapping[Account, str] | None = field(default=None, hash=False)
    formula: str = CLASSIC
    charged: str = _USUAL
    period_s: int = 0
    factors: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "half_life_s", _half_life(self.half_life_s))
        settle(self, "damping", _above_zero("damping", self.damping))
        settle(self, "period_s", whole_seconds("period_s", self.period_s))
        settle(self, "factors", _factors(self.factors))
        settle(self, "accounts", _accounts(self.accounts))
        settle(self, "shares", _shares(self.shares))
        check_choice("formula", self.formula, FORMULAS)
        if problem := amount_problem(self.charged):
            raise HpcgymError(f"charged: {self.charged!r} is no amount of jobs: {problem}")
        if amount_called(self.charged).from_submission:
            raise HpcgymError(f"charged: jobs have {self.charged!r} before they run")
        if of := amount_called(self.charged).of:
            raise HpcgymError(f"charged: {of!r} is charged by time, {self.charged!r} twice")
        self._check_names()
        if self.formula == FAIR_TREE and self.damping != 1:
            raise HpcgymError("damping is of the classic formula, and not of fair-tree")
        for name in self.shares:
            if isinstance(name, str) and not self._may_be(name):
                listed = self.accounts if isinstance(self.accounts, Mapping) else {}
                known = dict.fromkeys(listed.values())  # in the order of the accounts
                raise HpcgymError(unknown("account in shares", name, known, "the number of a user"))

    def __str__(self) -> str:
        parts = [f"half_life_s={self.half_life_s:g}", f"damping={self.damping:g}"]
        if self.formula != CLASSIC:
            parts[1] = f"formula={self.formula}"
        if self.charged != _USUAL:
            parts.append(f"charged={self.charged}")
        if self.period_s:
            parts.append(f"period_s={self.period_s}")
        if self.factors:
            listed = " ".join(f"{name}={factor:g}" for name, factor in self.factors.items())
            parts.append(f"factors {listed}")
        few = not self.by_name or len(self.shares) <= _FEW
        if not few:
            parts.append(f"{len(self.shares):,} shares of accounts and their users")
        elif self.shares:
            listed = " ".join(
                f"{name}={share}" if isinstance(share, str) else f"{name}={share:g}"
                for name, share in self.shares.items()
            )
            parts.append(f"shares {listed}")
        if isinstance(self.accounts, Mapping) and self.accounts and few:
            listed = " ".join(f"{below}<{above}" for below, above in self.accounts.items())
            parts.append(f"accounts {listed}")
        elif self.accounts == BY_GROUP:
            parts.append(f"accounts={self.accounts}")
        return ", ".join(parts)

    @classmethod
    def parse(
        cls, given: Any, argument: str = "fair_share", usual: FairShare | None = None
    ) -> FairShare:
        """Return the fair share that a text, a file or a mapping describes.

        Examples are ``half_life_s=86400,damping=2``, ``FILE.toml``, or a table as of :meth:`table`.
        Attributes that a text or a file leaves out are taken from ``usual``.

        Raises
        ------
        HpcgymError : an unknown name, a file that cannot be read, or a wrong value.
        """
        if isinstance(given, FairShare):
            return given
        if isinstance(given, Mapping):
            return cls._of(given, f"{argument}: ")
        if not isinstance(given, str):
            raise HpcgymError(
                f"{argument} must be a FairShare, a table or a text such as"
                f" 'half_life_s=86400,damping=2', not {given!r}"
            )
        if given.endswith(".toml"):
            return cls.read(given, usual)
        check_is_there(given)
        pairs: dict[str, Any] = {}
        for pair in filter(None, given.split(",")):
            name, _, value = (part.strip() for part in pair.partition("="))
            if name not in _IN_TEXT:
                raise HpcgymError(unknown(argument, name, _IN_TEXT, "a file .toml with shares"))
            if name in pairs:
                raise HpcgymError(f"{argument}: {name} is there twice in {given!r}")
            timed = name == "half_life_s"  # the class says what is wrong with it
            pairs[name] = value
            if _IN_TEXT[name] and not timed:
                pairs[name] = number_in(f"{argument}: {name}", value)
        return cls._of(pairs, f"{argument}: ", usual)

    @classmethod
    def read(cls, path: str | Path, usual: FairShare | None = None) -> FairShare:
        """Return the fair share of a TOML file, whose keys are attributes of the class.

        Attributes that it leaves out are taken from ``usual``.

        Raises
        ------
        HpcgymError : as :meth:`parse`.
        """
        return cls._of(toml_file(path), f"{path}: ", usual)

    @classmethod
    def _of(
        cls, entries: Mapping[str, Any], where: str, usual: FairShare | None = None
    ) -> FairShare:
        """Return the fair share of a table, whose keys are attributes of the class.

        ``where``: the beginning of messages; ``usual``: as :meth:`parse` takes it.
        """
        known = [entry.name for entry in fields(cls)]
        for name in entries:
            if name not in known:
                raise HpcgymError(where + unknown("entry", name, known))
        try:
            return cls(**entries) if usual is None else replace(usual, **entries)
        except HpcgymError as error:
            raise HpcgymError(f"{where}{error}") from None

    @property
    def users(self) -> list[int]:
        """The users that are named in shares or accounts."""
        listed = self.accounts if isinstance(self.accounts, Mapping) else {}
        return [name for name in dict.fromkeys((*self.shares, *listed)) if isinstance(name, int)]

    def table(self) -> dict[str, Any]:
        """Return the attributes as JSON can hold them; :meth:`parse` takes them back."""
        accounts = dict(self.accounts) if isinstance(self.accounts, Mapping) else self.accounts
        half_life = "inf" if self.half_life_s == math.inf else self.half_life_s
        table = {
            "half_life_s": half_life,
            "damping": self.damping,
            "shares": dict(self.shares),
            "accounts": accounts,
            "formula": self.formula,
            "charged": self.charged,
            "period_s": self.period_s,
            "factors": dict(self.factors),
        }
        usual = {"formula": CLASSIC, "charged": _USUAL, "period_s": 0, "factors": {}}
        return {name: value for name, value in table.items() if usual.get(name) != value}

    def factor_of(self, workload: Workload) -> NDArray[np.float64]:
        """Return by what a second of each job is multiplied, (n_jobs,)."""
        of_jobs = np.ones(len(workload))
        queues = called_in(workload, "queue") if self.factors else None
        for name, factor in self.factors.items():
            of_jobs[queues == name] = factor
        return of_jobs

    @property
    def by_name(self) -> bool:
        """Whether users and accounts are known by names of the log."""
        return any(isinstance(name, str) and AT in name for name in (*self.shares, *self._listed))

    def tree_of(self, parts: Sequence[Workload]) -> Tree:
        """Return the accounts of the jobs of some workloads, one after the other."""
        if self.by_name:
            return self.tree_of_names([job for part in parts for job in names_of_jobs(part)])
        columns = ("user_id", "group_id")
        return self.tree(
            *(np.concatenate([part.columns[name] for part in parts]) for name in columns)
        )

    def tree(self, user_id: NDArray[np.int64], group_id: NDArray[np.int64]) -> Tree:
        """Return the accounts of jobs with these users and groups, both (n_jobs,)."""
        columns = [user_id, group_id] if self.accounts == BY_GROUP else [user_id]
        distinct, owner = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        leaves: list[Any] = [tuple(key) for key in distinct.tolist()]
        # named users hold their shares, whether or not they have jobs
        named = set(self.users)
        have_jobs = {user for user, *_ in leaves}
        if self.accounts != BY_GROUP:
            leaves += [(user,) for user in sorted(named - have_jobs)]
        above = [self._above(*leaf) for leaf in leaves]
        return self._tree(owner.reshape(-1), above, [user for user, *_ in leaves])

    def tree_of_names(self, jobs: Sequence[tuple[str, str, str]]) -> Tree:
        """Return the accounts of jobs, given each job's names of user, account and partition."""
        of_jobs = [self.leaf_of(*job) for job in jobs]
        named = [name for name in self.shares if isinstance(name, str) and name[0] != AT]
        places = {name: place for place, name in enumerate(dict.fromkeys((*of_jobs, *named)))}
        owner = np.array([places[name] for name in of_jobs], np.int64)
        return self._tree(owner, [self._above(name) for name in places], [*places])

    def leaf_of(self, user: str, account: str, partition: str) -> str:
        """Return the leaf that a job is charged to: a user of an account, maybe in a partition."""
        name = f"{user}{AT}{account}"
        within = f"{name}:{partition}"
        return within if within in self.shares else name

    def _tree(
        self, owner: NDArray[np.int64], above: list[str | None], leaves: Sequence[Account]
    ) -> Tree:
        """Return the accounts: those that jobs are charged to, and all above these."""
        names: list[str] = []
        for account in above:
            while account is not None and account not in names:
                names.append(account)
                account = self._above(account)
        # an account without users holds its share too
        for account in self._named():
            if account not in names:
                names.append(account)
        places = {name: len(leaves) + k for k, name in enumerate(names)} | {None: -1}
        parent = [places[account] for account in above]
        parent += [places[self._above(name)] for name in names]
        given = [self.shares.get(name, 1.0) for name in (*leaves, *names)]
        in_place = math.inf if self.formula == FAIR_TREE else 1.0
        return Tree.of(owner, parent, given, len(leaves), in_place)

    @property
    def _listed(self) -> Mapping[Account, str]:
        """The listed accounts above users and accounts."""
        return self.accounts if isinstance(self.accounts, Mapping) else {}

    def _check_names(self) -> None:
        """Raise an HpcgymError if some users or accounts are known by names, and not all."""
        if self.by_name:
            for name in (*self.shares, *self._listed, *self._listed.values()):
                if not isinstance(name, str) or AT not in name:
                    raise HpcgymError(
                        f"shares: {name!r} beside names such as '@physics' and 'alice@physics', by"
                        " which then all are to be called"
                    )
            if self.accounts == BY_GROUP:
                raise HpcgymError("accounts='group' and names such as '@physics': one of them")
        for name, share in self.shares.items():
            if share == PARENT and (not isinstance(name, str) or name.rpartition(AT)[0] == ""):
                raise HpcgymError(f"the share of {name!r}: only users of accounts have 'parent'")

    def _above(self, name: Account, group: int | None = None) -> str | None:
        """Return the account above a user, of a group, or above an account; None: the machine."""
        if group is not None:
            return f"{BY_GROUP}:{group}"
        above = self._listed.get(name)
        if above is None and isinstance(name, str) and name.rpartition(AT)[0]:
            above = AT + name.rpartition(AT)[2].partition(":")[0]
        return None if above == _MACHINE else above

    def _named(self) -> list[str]:
        """Return the accounts above users that are named here."""
        listed = self._listed
        names = [
            name for name in (*listed, *listed.values(), *self.shares) if isinstance(name, str)
        ]
        if self.by_name:
            names = [name for name in names if name[0] == AT and name != _MACHINE]
        return list(dict.fromkeys(names))

    def _may_be(self, name: str) -> bool:
        """Return whether an account above users can have this name."""
        if self.accounts == BY_GROUP:
            kind, _, number = name.partition(":")
            return kind == BY_GROUP and number.removeprefix("-").isdigit()
        return AT in name or name in self._listed or name in self._listed.values()


class Tree(NamedTuple):
    """Accounts: first the leaves, which jobs are charged to, then the accounts above them."""

    owner: NDArray[np.int64]  # (n_jobs,) the leaf of each job
    parent: NDArray[np.int64]  # (n_accounts,) the account above, -1: the machine
    share: NDArray[np.float64]  # (n_accounts,) of the machine: equation 6.1 along the path
    part: NDArray[np.float64]  # (n_accounts,) of the account above
    leaves: int

    @classmethod
    def of(
        cls,
        owner: NDArray[Any],
        parent: list[int],
        shares: Sequence[float | str],
        leaves: int,
        in_place: float,
    ) -> Tree:
        """Return the accounts with their shares normalised; ``in_place``: the part of PARENT."""
        above = np.array(parent, np.int64)
        stand_in = np.array([share == PARENT for share in shares], np.bool_)
        given = np.array([0.0 if share == PARENT else share for share in shares], np.float64)
        sums = np.zeros(len(above) + 1)
        np.add.at(sums, above, given)  # -1 is the last place
        part = np.full(len(above), in_place)
        np.divide(given, sums[above], out=part, where=~stand_in)
        share, account = part.copy(), above.copy()
        while (account >= 0).any():
            below = account >= 0
            share[below] *= part[account[below]]
            account[below] = above[account[below]]
        return cls(owner.astype(np.int64), above, share, part, leaves)


def _half_life(value: Any) -> float:
    """Return a half-life [s], checked: whole seconds, or infinity."""
    if value in (math.inf, "inf"):
        return math.inf
    value = in_seconds(value, "half_life_s")
    try:
        seconds = int(value)
    except (TypeError, ValueError, OverflowError):
        seconds = 0
    if isinstance(value, str) or not 1 <= seconds <= MOST_SECONDS or seconds != value:
        raise HpcgymError(f"half_life_s must be whole seconds, at least 1, or inf, not {value!r}")
    return seconds


def _factors(given: Any) -> dict[str, float]:
    """Return factors by queue, checked."""
    if not isinstance(given, Mapping):
        raise HpcgymError(f"factors must be a mapping of queues to factors, not {given!r}")
    for name, factor in given.items():
        if not (isinstance(name, str) and is_number(factor) and 0 <= factor < _MOST_FACTOR):
            raise HpcgymError(
                f"factors: {name!r}: {factor!r} is no queue with a number from 0 to 10^9"
            )
    return {name: float(factor) for name, factor in given.items()}


def _above_zero(what: str, value: Any) -> float:
    """Return a number above 0, checked."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, str | bool) or not 1e-100 < number < 1e100:
        raise HpcgymError(f"{what} must be a number above 0, not {value!r}")
    return number


def _account(name: Any) -> Account:
    """Return a user's number, also where it is a text, as in files, or the name of an account."""
    if isinstance(name, str) and not name.removeprefix("-").isdigit() and name:
        return name
    try:
        if not isinstance(name, bool) and int(name) == float(name) and abs(int(name)) < 2**63:
            return int(name)
    except (TypeError, ValueError, OverflowError):
        pass
    raise HpcgymError(f"an account must be a user's number or a name, not {name!r}")


def _shares(given: Any) -> dict[Account, float | str]:
    """Return shares by account, checked."""
    if not isinstance(given, Mapping):
        raise HpcgymError(f"shares must be a mapping of accounts to shares, not {given!r}")
    _check_once("shares", given)
    return {
        _account(name): s if s == PARENT else _above_zero(f"the share of {name!r}", s)
        for name, s in given.items()
    }


def _check_once(what: str, given: Mapping[Any, Any]) -> None:
    """Say so if a mapping names an account twice, as ``{1: ..., "1": ...}`` does."""
    check_each_once(what, map(_account, given))


def _accounts(given: Any) -> str | dict[Account, str] | None:
    """Return the accounts above users and accounts, checked."""
    if given is None or given == BY_GROUP:
        return given  # type: ignore[no-any-return]
    if not isinstance(given, Mapping):
        raise HpcgymError(
            f"accounts must be a mapping of users and accounts to accounts, or {BY_GROUP!r}, "
            f"not {given!r}"
        )
    _check_once("accounts", given)
    listed = {_account(below): _account(above) for below, above in given.items()}
    named: dict[Account, str] = {}
    for below, above in listed.items():
        if not isinstance(above, str):
            raise HpcgymError(f"accounts: {above} above {below!r} is a user, not an account")
        named[below] = above
        seen = [below]
        while above in listed and above not in seen:
            seen.append(above)
            above = listed[above]
        if above in seen:
            raise HpcgymError(f"accounts: {above!r} stands above itself")
    return named
