"""Several trainings of one agent as one row of a leaderboard: they differ in their seeds only."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_each_once
from hpcgym.scheduler.own_code import names_code

if TYPE_CHECKING:
    import pandas as pd

_GROUP = re.compile(r"\s*([^\W\d][\w .+-]*?)\s*=(?!=)(.*)")

#: Groups, by their rows: the rows of their members.
Groups = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Seeds:
    """A row of several policies.

    Attributes
    ----------
    name : of the row.
    members : what each is, by what the user calls it.
    """

    name: str
    members: Mapping[str, Any]

    def found(self, find: Callable[[Any], Any]) -> Seeds:
        """Return the same with what ``find`` says that each member is."""
        return Seeds(self.name, {name: find(one) for name, one in self.members.items()})


def seeds_of(name: str, members: Any) -> Seeds:
    """Return the row of a list of policies.

    Raises
    ------
    HpcgymError : no members, or one twice.
    """
    texts = [str(one) for one in members if isinstance(one, str | Path)]
    check_each_once(name, texts)
    if not members or "" in texts:
        raise HpcgymError(f"{name} needs files or policies, such as {name}=a.pt,b.pt")
    called = [
        str(one) if isinstance(one, str | Path) else f"seed {place}"
        for place, one in enumerate(members)
    ]
    return Seeds(name, dict(zip(called, members, strict=True)))


def read_seeds(policy: Any) -> Any:
    """Return the row that a text such as "ppo=ppo-0.pt,ppo-1.pt" means; what else is given, as is.

    Raises
    ------
    HpcgymError : as of :func:`seeds_of`.
    """
    if not isinstance(policy, str) or os.path.exists(policy):
        return policy
    match = _GROUP.fullmatch(policy)
    if match is None:
        return policy
    return seeds_of(match[1], [part.strip() for part in match[2].split(",")])


def runs_own_code(policy: str) -> bool:
    """Tell whether a text, or one of its trainings, is of a user's module, or a model with code.

    Raises
    ------
    HpcgymError : as of :func:`seeds_of`.
    """
    given = read_seeds(policy)
    texts = given.members if isinstance(given, Seeds) else [given]
    return any(names_code(text) or text.endswith(".zip") for text in texts)


def unfolded(policies: Mapping[str, Any]) -> tuple[dict[str, Any], Groups]:
    """Return policies with the members of groups as rows of their own, and which these are."""
    rows: dict[str, Any] = {}
    groups: Groups = {}
    for name, one in policies.items():
        if not isinstance(one, Seeds):
            rows[name] = one
            continue
        members = {f"{name}: {member}": policy for member, policy in one.members.items()}
        groups[name] = tuple(members)
        rows |= members
    return rows, groups


def folded(frame: pd.DataFrame, groups: Groups) -> pd.DataFrame:
    """Return a frame, a column a row of the table, with the mean of each group in its place."""
    import pandas as pd

    group_of = {member: name for name, members in groups.items() for member in members}
    columns: dict[Any, Any] = {}
    for row in frame:
        name = group_of.get(str(row))
        if name is None:
            columns[row] = frame[row]
        elif name not in columns:
            columns[name] = frame[list(groups[name])].mean(axis=1, skipna=False)
    return pd.DataFrame(columns, index=frame.index)


def folded_failures(
    failures: Mapping[tuple[str, str], str], groups: Groups
) -> dict[tuple[str, str], str]:
    """Return failures with those of members at their group, which they name."""
    group_of = {member: name for name, members in groups.items() for member in members}
    found: dict[tuple[str, str], str] = {}
    for (row, where), error in failures.items():
        key = (group_of.get(row, row), where)
        told = error if row not in group_of else f"{row.removeprefix(f'{key[0]}: ')}: {error}"
        found[key] = f"{found[key]}; {told}" if key in found else told
    return found
