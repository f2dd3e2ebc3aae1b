"""Values that rules of a scheduler can have: each checked, and made one of its own."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError, check_choice, is_number
from hpcgym.files import check_is_there
from hpcgym.naming import seconds_of
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.policies.fair_share import FAIR_TREE, FairShare
from hpcgym.scheduler.policies.index import IndexPolicy, weight_text
from hpcgym.scheduler.restrictions import SUCH, Preemption, Quota, Window
from hpcgym.scheduler.slurm_qos import preemption_of_qos, quotas_of_slurm

#: The time of a dispatcher's calls by the clock, and the longest that a call may take [s].
MEASURED = "measured"
MOST_DISPATCH_TIME = 10**9


def number_or_none(rule: str, value: Any) -> float | None:
    """Return a finite number, or None, checked."""
    if value is None:
        return None
    if not is_number(value) or not math.isfinite(value):
        raise HpcgymError(f"{rule} must be a finite number or None, not {value!r}")
    return float(value)


def pair_estimate(value: Any) -> Any:
    """Return what the scheduler knows of pairs, a copy of what learns, checked."""
    if isinstance(value, str):
        check_choice("pair_estimate", value, ("known", "learned"))
        return value
    if hasattr(value, "learn") and hasattr(value, "matrix"):
        return copy.deepcopy(value)
    if hasattr(value, "speedup") and hasattr(value, "codes"):
        return value
    raise HpcgymError(
        "pair_estimate must be 'known', 'learned', a Heatmap or LearnedSpeedups, not "
        f"{type(value).__name__}"
    )


def threshold(threshold: Any) -> float | None:
    """Return a starvation threshold [s], checked; a text may have units, such as ``"80h"``."""
    if threshold is None:
        return None
    number = threshold.item() if isinstance(threshold, np.generic) else threshold
    if isinstance(number, str) and (seconds := seconds_of(number)) is not None:
        number = int(seconds) if seconds.is_integer() else seconds
    if not is_number(number) or math.isnan(number) or number < 0:
        hint = ", or a time such as '5h' or '2d'" if isinstance(threshold, str) else ""
        raise HpcgymError(f"threshold must be a number of at least 0 s{hint}, not {threshold!r}")
    return number


def fair_share(value: Any, orders: Sequence[IndexPolicy | None]) -> FairShare:
    """Return shares of users, checked beside the orders of a scheduler.

    Raises
    ------
    HpcgymError : they are wrong, or one of the orders adds up usages that only have places.
    """
    shares = FairShare.parse(value)
    if shares.formula == FAIR_TREE and any(order is not None and order.summed for order in orders):
        raise HpcgymError(
            "fs+efs adds up what users have used, and by formula=fair-tree they only have places:"
            " weigh the features fairshare and energy_fairshare"
        )
    return shares


def dispatch_time(value: Any) -> Any:
    """Return how long a dispatcher takes [s], checked."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or callable(value) or (isinstance(value, str) and value == MEASURED):
        return value
    if not (is_number(value) and 0 <= value <= MOST_DISPATCH_TIME):
        raise HpcgymError(
            f"dispatch_time must be 0 to {MOST_DISPATCH_TIME:,} s, 'measured' or a callable, not"
            f" {value!r}"
        )
    return value


def typed(value: Any) -> Any:
    """Return a rule's value as a user would give it: what was parsed as its text."""
    if isinstance(value, tuple) and all(isinstance(one, Quota | Window) for one in value):
        return "; ".join(map(str, value)) or None
    return str(value) if isinstance(value, Preemption) else value


def plain(value: object) -> str | float | None:
    """Return a rule's value as a word or number."""
    value = typed(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, FairShare | Hold):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={weight_text(weight)}" for name, weight in value.items())
    if isinstance(value, tuple):
        return ",".join(map(weight_text, value))
    if isinstance(value, np.ndarray):
        return "given"
    named = getattr(value, "name", None) or getattr(value, "__name__", None)
    named = named or getattr(value, "source", None)  # of a heatmap
    return str(named or f"{type(value).__name__} in Python")


def read_quotas(value: Any) -> tuple[Quota, ...]:
    """Return the quotas that a rule of a scheduler says: a text, a file or Quotas; of None none.

    Raises
    ------
    HpcgymError : what is no quota, or a file that holds neither Slurm's QOS nor throttles.

    Examples
    --------
    >>> from hpcgym.scheduler.rule_values import read_quotas
    >>> [quota.jobs for quota in read_quotas("user:jobs=10; group=physics:jobs=100")]
    [10, 100]
    """
    if value is None:
        return ()
    if isinstance(value, str | os.PathLike) and os.path.isfile(value):
        value = quotas_of_slurm(value)
    elif isinstance(value, Quota | str | os.PathLike):
        check_is_there(value)
        if ":" not in str(value):
            raise HpcgymError(
                f"quota {value!r} is neither a file nor a quota such as 'user:jobs=10'"
            )
        value = [Quota.parse(part) for part in str(value).split(";") if part.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(one, Quota) for one in value):
        raise HpcgymError(f"quota must be a text such as 'user:jobs=10', not {value!r}")
    return tuple(value)


def read_preemption(value: Any) -> Preemption | None:
    """Return the preemption that a rule of a scheduler says: a text, a file or one; or None.

    Raises
    ------
    HpcgymError : what is none, or a file that does not hold Slurm's QOS, or in which none may stop
        another.
    """
    if value is None:
        return None
    if isinstance(value, str | os.PathLike) and os.path.isfile(value):
        value = preemption_of_qos(value)
    elif isinstance(value, str | os.PathLike):
        check_is_there(value)
        value = Preemption.parse(os.fspath(value))
    if not isinstance(value, Preemption):
        raise HpcgymError(f"preemption must be a text such as {SUCH}, not {value!r}")
    return value


def not_beside_a_dispatcher(rule: str, name: object) -> str:
    """Return the message that a rule does not go with the dispatcher of this name."""
    why = "is asked once at each time" if rule.endswith("passes") else "says itself what starts"
    return (
        f"{rule} does not go with the dispatcher {name}, which {why}: leave {rule} out, or name a"
        " scheduler in place of the dispatcher"
    )
