"""What people are told while functions are compiled: one line, once it has been silent for long.

It goes to the logger ``hpcgym``, as a warning: on the error stream, unless the program that imports
hpcgym says otherwise (:mod:`logging`). :data:`PARTS` is the one table of what is compiled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

SILENCE_S = 2.0  # [s] of compiling, in all, before something is said

_LOGGER = logging.getLogger("hpcgym")


class Part(NamedTuple):
    """Compiled functions that are used together.

    Attributes
    ----------
    what : they are, in words.
    seconds : that compiling all of them takes on an idle core, nothing being compiled before.
    where : what their names begin with, module first.
    given : what the name of the module of one of their arguments' types begins with, or their own,
        where the same functions are compiled anew for each kind of it; else "".
    """

    what: str
    seconds: int
    where: tuple[str, ...]
    given: str = ""


_ENGINE, _STEPS = "hpcgym.engine", ("hpcgym.compilation.threads",)
_ON_NODES = tuple(f"{_ENGINE}.warm_start.{name}" for name in ("place_running", "hold_on_nodes"))
_ANSWERS, _MANY = f"{_ENGINE}.answers", f"{_ENGINE}.many"
_NODES, _LIMITS, _CORUN = (f"{_ENGINE}.machines.{kind}" for kind in ("nodes", "limited", "corun"))

#: The parts that ``hpcgym warmup`` compiles, by its names for them, in its order.
PARTS = {
    "simulator": Part("the simulator", 20, ("hpcgym",)),
    "environments": Part("the environments", 60, _STEPS),
    "nodes": Part("the simulator of nodes", 40, (_NODES, *_ON_NODES)),
    "failures": Part("the simulator of nodes that fail", 40, (f"{_NODES}.failures",)),
    "restricted": Part(
        "the simulator of quotas, windows and dependencies", 40, (f"{_ENGINE}.passes.restricted",)
    ),
    "restricted-many": Part(
        "environments with quotas, windows and dependencies",
        90,
        (_MANY, *_STEPS),
        f"{_ENGINE}.passes.restricted_rows",
    ),
    "preemption": Part("the simulator of preemption", 30, (f"{_ENGINE}.passes.preempting",)),
    "preemption-many": Part(
        "environments with preemption",
        120,
        (_MANY, *_STEPS),
        f"{_ENGINE}.passes.preempting_rows",
    ),
    "learning": Part(
        "run times that are learned", 40, (_ANSWERS, f"{_ENGINE}.warm_start.list_running")
    ),
    "fair-share": Part("fair share", 45, (_ANSWERS, _MANY, *_STEPS), f"{_ANSWERS}.shares"),
    "expressions": Part(
        "expressions that are worked out anew", 30, (_ANSWERS,), f"{_ANSWERS}.expressed"
    ),
    "limits": Part("the simulator of limits of power", 30, (_LIMITS,)),
    "corun": Part("the simulator of shared nodes", 25, (_CORUN,)),
    "corun-files": Part("files that jobs share", 100, (_CORUN, *_STEPS), f"{_CORUN}.files"),
    "lookahead": Part("look-ahead", 40, (f"{_ENGINE}.many.lookahead",)),
    "environments-warm": Part(
        "the environments that begin with jobs", 60, _STEPS, f"{_MANY}.beginnings"
    ),
    "environments-nodes": Part("the environments on nodes", 90, _STEPS, _NODES),
    "environments-limits": Part("the environments under limits", 120, _STEPS, _LIMITS),
    "environments-corun": Part("the environments of shared nodes", 70, _STEPS, _CORUN),
}


def part_of(functions: Sequence[str], signature: Any = ()) -> str | None:
    """Return the name of the part that functions belong to, None of those that are not hpcgym's.

    What fits best counts, of several the last.

    Parameters
    ----------
    functions : the names of one and then of its parts, each with its module.
    signature : types of its arguments, as numba has them.
    """
    types = list(getattr(signature, "args", signature))
    for kind in types:  # what is in a tuple counts too
        types += getattr(kind, "types", ())
    homes = [getattr(kind, "instance_class", object).__module__ for kind in types]
    homes.append(functions[0])
    fit = [
        (len(begin) + len(part.given), place, name)
        for place, (name, part) in enumerate(PARTS.items())
        for begin, function in product(part.where, functions)
        if f"{function}.".startswith(f"{begin}.")
        and (not part.given or any(f"{home}.".startswith(f"{part.given}.") for home in homes))
    ]
    return max(fit, default=(0, 0, None))[2]


def text_of(name: str) -> str:
    """Return what is said while a part is compiled."""
    return (
        f"hpcgym: compiling {PARTS[name].what} for this machine, about {PARTS[name].seconds} s on"
        f" an idle core; this happens once for this kind of simulation, and `hpcgym warmup {name}`"
        " does it beforehand"
    )


class _Compiled(threading.local):
    """The function that a thread compiles now, with all that it calls; numba lets one do so."""

    part: str | None = None
    begin: float | None = None  # [s], None while nothing is counted
    timer: threading.Timer | None = None


_now = _Compiled()
_spent_s: dict[str, float] = {}  # by part, that this process has been compiling
_said: set[str] = set()
_quiet = False


def spent_s() -> float:
    """Return how long this process has been compiling up to now [s]."""
    return sum(_spent_s.values(), 0.0)


@contextmanager
def about(part: str | None) -> Iterator[None]:
    """Say which part the function belongs to that is compiled within, unless another calls it."""
    if _now.part is not None:
        yield
        return
    _now.part = part
    try:
        yield
    finally:
        _stop()
        _now.part = None


def start() -> None:
    """Begin to count, if nobody has: a function is compiled, since it is not kept."""
    if _now.part is None or _now.begin is not None:
        return
    _now.begin = time.monotonic()
    left_s = SILENCE_S - _spent_s.get(_now.part, 0.0)
    if left_s > 0:
        _now.timer = threading.Timer(left_s, _say, (_now.part,))
        _now.timer.daemon = True
        _now.timer.start()
    else:
        _say(_now.part)


def _stop() -> bool:
    """Stop counting; return whether it was on."""
    if _now.part is None or _now.begin is None:
        return False
    if _now.timer is not None:
        _now.timer.cancel()
    _spent_s[_now.part] = _spent_s.get(_now.part, 0.0) + time.monotonic() - _now.begin
    _now.timer = _now.begin = None
    return True


def _say(part: str) -> None:
    """Say once what is compiled."""
    if part not in _said and not _quiet:
        _said.add(part)
        _LOGGER.warning(text_of(part))


@contextmanager
def quietly() -> Iterator[None]:
    """Say nothing: who compiles within has said so."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


@contextmanager
def paused() -> Iterator[None]:
    """Do not count while another process compiles the function: that one speaks."""
    counted = _stop()
    try:
        yield
    finally:
        if counted:
            start()
