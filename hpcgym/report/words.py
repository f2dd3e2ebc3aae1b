"""Machines and limits of results, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.schedule.result import Result

_LIMITS_SHOWN = 3


def limits_in_words(result: Result) -> str:
    """Return the first limits that a schedule kept, and how many more; nothing if there are none.

    Percents are of all nodes busy.
    """
    from hpcgym.cluster.power_plans import greatest_w
    from hpcgym.scheduler.limits import PowerCap

    texts = []
    for limit in (result.limits or ())[:_LIMITS_SHOWN]:
        most = greatest_w(result.cluster)
        if isinstance(limit, PowerCap):
            amount, text = limit.watts, f"cap {{}}({limit.watts:,.0f} W)"
        else:
            most *= limit.end - limit.start
            amount, text = limit.joules, f"budget {{}}({limit.joules / 3.6e6:,.4g} kWh)"
        text = text.format(f"{100 * amount / most:.4g} % " if most > 0 else "")
        text += f" from {limit.start:,} s" + ("" if limit.end is None else f" to {limit.end:,} s")
        texts.append(text + (", with shutdown" if getattr(limit, "shutdown", False) else ""))
    more = len(result.limits or ()) - len(texts)
    return "; ".join(texts) + (f"; and {more:,} more" if more else "")


def limits_of(parts: Mapping[str, Result]) -> str:
    """Return the limits that schedules kept, of each machine, in a line; nothing without any."""
    kept = [limits_in_words(part) for part in parts.values() if part.limits]
    return f"limits: {each(kept)}" if kept else ""


def machine_in_words(cluster: Cluster) -> str:
    """Return how large a machine is, in a few words."""
    size = cluster.processors
    if not cluster.groups:
        return "1 processor" if size == 1 else f"{size:,} processors"
    nodes = "1 node" if cluster.nodes == 1 else f"{cluster.nodes:,} nodes"
    return f"{cluster.name}{': ' if cluster.name else ''}{nodes} with {size:,} cores"


def each(texts: Iterable[str]) -> str:
    """Return different texts in a row, each once: "a, b and c"."""
    *most, last = dict.fromkeys(texts)
    return f"{', '.join(most)} and {last}" if most else last
