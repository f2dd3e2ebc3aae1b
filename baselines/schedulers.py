"""The named schedulers: the EASY family, conservative backfilling and the pure index policies."""

from __future__ import annotations

from difflib import get_close_matches

from hpcgym.errors import HpcgymError
from hpcgym.policy.index import POLICIES
from hpcgym.scheduler import Scheduler

_FAMILY = {
    # no backfilling at all: the strict queue
    "fcfs": Scheduler(backfill="none"),
    # Mu'alem and Feitelson 2001
    "easy": Scheduler(),
    "conservative": Scheduler(backfill="conservative"),
    # shortest job backfilled first; with requested times also the FCFS of document 002
    "easy-sjbf": Scheduler(backfill_order="sjbf"),
    # Tsafrir, Etsion and Feitelson 2007; document 004, section 7.5
    "easy++": Scheduler(backfill_order="sjbf", estimate="ave2", correction="incremental"),
}

#: Name -> scheduler. A policy's name alone is that policy with EASY backfilling in the order of
#: requested times, the setting of document 002 (section 2.2); only ``fcfs`` is the strict queue.
SCHEDULERS: dict[str, Scheduler] = {
    **_FAMILY,
    **{
        name: Scheduler(policy=name, backfill_order="spf")
        for name in POLICIES
        if name not in _FAMILY
    },
}


def find_scheduler(name: str) -> Scheduler:
    """Return a scheduler by name.

    Raises
    ------
    HpcgymError : an unknown name; the message has the nearest known ones.
    """
    if name not in SCHEDULERS:
        near = get_close_matches(name.lower(), SCHEDULERS, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise HpcgymError(f"unknown scheduler {name!r}{hint} Known are {', '.join(SCHEDULERS)}")
    return SCHEDULERS[name]
