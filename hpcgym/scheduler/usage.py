"""Who looks at what users have used, and so at their shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies.features import USER_FEATURES
from hpcgym.scheduler.rules import Scheduler


def counts_usage(scheduler: Scheduler, features: Iterable[str]) -> bool:
    """Return whether weights over these features, or the order of backfilling, look at usage."""
    return scheduler.usage_orders[1] or not USER_FEATURES.keys().isdisjoint(features)


def check_fair_share(fair_share: Any, counted: bool, dispatcher: str = "") -> None:
    """Raise an HpcgymError if shares of users are given where nothing looks at usage.

    Parameters
    ----------
    fair_share : as it was given; None: it was not.
    counted : whether anything looks at what users have used.
    dispatcher : what says itself what starts, if anything does.
    """
    if isinstance(fair_share, str) and not fair_share.strip():
        raise HpcgymError(
            "fair_share (--fair-share) says nothing; such as half_life_s=86400, or a file .toml"
        )
    if fair_share is not None and dispatcher:
        raise HpcgymError(
            f"fair_share (--fair-share): {dispatcher} orders the queue itself, and looks at nothing"
            " that users have used"
        )
    if fair_share is not None and not counted:
        raise HpcgymError(
            "fair_share (--fair-share): nothing here looks at what users have used; choose an order"
            " that does, such as fairshare, or weigh a feature that does"
            f" ({', '.join(USER_FEATURES)})"
        )


def without_idle_shares(scheduler: Scheduler) -> Scheduler:
    """Return the scheduler without shares of users if no order of it looks at usage."""
    if scheduler.fair_share is None or any(scheduler.usage_orders):
        return scheduler
    return scheduler.but(fair_share=None)
