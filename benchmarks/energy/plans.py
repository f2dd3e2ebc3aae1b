"""What a machine uses, and how many equal nodes are off or slow under a cap (Glesser 2016)."""

from __future__ import annotations

import math
from typing import NamedTuple

from hpcgym import HpcgymError, Result
from hpcgym.errors import check_whole
from hpcgym.machine import NodePower
from hpcgym.machine.power_plans import cap_w, idle_w, rho, slow_and_fast

# --- Section 4.2.1 --------------------------------------------------------------------------------


class Plan(NamedTuple):
    """How many of equal nodes are off and how many slow; the others are as fast as they can.

    Attributes
    ----------
    nodes, off, slow : numbers of nodes, ``off`` + ``slow`` at most ``nodes`` (C2).
    work : what they compute, 1 for a node at the highest frequency: the right side of C1.
    watts : what they draw if all compute: the left side of C3.
    """

    nodes: int
    off: int
    slow: int
    work: float
    watts: float


class Plans(NamedTuple):
    """Plans under a cap.

    Attributes
    ----------
    best : that which computes most, by C1, C2 and C3. Nodes are switched off where rho is at least
        0, else slowed down; and where not even all nodes at the lowest frequency keep under the
        cap, some are switched off and all others are slow.
    printed : that of algorithm 2 of Glesser 2016, as it is printed. It mixes where not even all
        nodes at the lowest frequency keep under the cap, whatever rho is; else it switches off
        where rho is at most 0, which is where slowing down computes more. So it never computes
        more than the best.
    """

    best: Plan
    printed: Plan


def plans_under(
    nodes: int, watts: float, power: NodePower, degradation: float | None = None, lowest: int = 0
) -> Plans:
    """Return the plan that computes most under a cap, and that of the printed algorithm.

    Numbers of nodes are whole, rounded so that the cap is kept.

    Parameters
    ----------
    nodes : N.
    watts : P, the cap, of the nodes alone.
    power, degradation, lowest : as in :func:`hpcgym.machine.power_plans.rho`.

    Raises
    ------
    HpcgymError : a cap that not even nodes that are off keep, or what ``rho`` raises.
    """
    slow_w, fast_w, deg = slow_and_fast(power, degradation, lowest)
    nodes, cap, off_w = check_whole("nodes", nodes, 1, 2**31), cap_w(watts), power.off_w
    if cap < nodes * off_w:
        raise HpcgymError(
            f"a cap of {cap:g} W: {nodes} nodes that are off draw {nodes * off_w:g} W"
        )

    def plan(off: int, slow: int) -> Plan:
        fast = nodes - off - slow
        drawn = off * off_w + slow * slow_w + fast * fast_w
        return Plan(nodes, off, slow, fast + slow / deg, drawn)

    excess, too_low = max(nodes * fast_w - cap, 0), cap < nodes * slow_w
    on = -_up((nodes * off_w - cap) / (slow_w - off_w))  # if all of them are slow
    slowed = plan(nodes - on, on) if too_low else plan(0, _up(excess / (fast_w - slow_w)))
    dark, better = plan(_up(excess / (fast_w - off_w)), 0), rho(power, degradation, lowest)
    return Plans(
        best=dark if better >= 0 else slowed, printed=slowed if too_low or better > 0 else dark
    )


def _up(number: float) -> int:
    """Return the next whole number, without what is left of rounding."""
    return math.ceil(round(number, 9))


# --- What a machine uses from one time to another -------------------------------------------------


def energy_within(result: Result, begin: int, end: int) -> float:
    """Return the energy from ``begin`` up to ``end`` [J].

    By the books of the schedule; before its first submission and after its last end all nodes are
    on and idle.
    """
    books = result.books
    inside = max(min(end, int(books.time[-1])) - max(begin, int(books.time[0])), 0)
    return books.joules(begin, end) + idle_w(result.cluster) * (end - begin - inside)
