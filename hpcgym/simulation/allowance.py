"""How much a training may simulate: the steps of environments and the jobs of simulations.

A step of an environment counts as one; of a vector environment, as one for each of its
environments. A simulation (:func:`hpcgym.simulate`, a batch) counts as many as it has jobs. What an
environment simulates by itself, such as EASY for a reward beside it, counts nothing.

It is counted where it happens, in the process of the training. Other processes, the look-ahead of
environments, and what was done before are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from hpcgym.errors import HpcgymError


class SpentError(HpcgymError):
    """More steps than are allowed: nothing of them has been done."""


class Allowance:
    """Steps that may be done while this is entered, in this process.

    Parameters
    ----------
    steps : how many may be done.
    done : how many have been done before.
    """

    def __init__(self, steps: int, done: int = 0) -> None:
        self.steps, self.done = steps, done
        self._lock = Lock()

    def __enter__(self) -> Allowance:
        _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open.remove(self)

    def spend(self, steps: int) -> None:
        """Count steps that are to be done.

        Raises
        ------
        SpentError : they are more than are left.
        """
        with self._lock:
            if self.done + steps > self.steps:
                raise SpentError(
                    f"{self.steps:,} steps are allowed, {self.done:,} are done, and these are"
                    f" {steps:,} more"
                )
            self.done += steps


_open: list[Allowance] = []
_here = local()


def spend(steps: int) -> None:
    """Count steps, or jobs that are simulated, if anybody counts them.

    Raises
    ------
    SpentError : more than are left.
    """
    if _open and not getattr(_here, "free", False):
        for allowance in _open:
            allowance.spend(steps)


@contextmanager
def uncounted() -> Iterator[None]:
    """Count nothing of what this thread does within."""
    before = getattr(_here, "free", False)
    _here.free = True
    try:
        yield
    finally:
        _here.free = before
