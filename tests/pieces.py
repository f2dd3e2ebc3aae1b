"""Simulations that run in pieces, and go on as copies or as what was saved of them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from hpcgym._engine import FOREVER, Simulation


class Pieces:
    """Stands for a native simulation, which it lets run in pieces that a seed draws.

    After each piece another goes on in its place: a copy, or one that has loaded what was saved.
    Whoever was left may run on, and changes nothing. Without a seed all is one piece.
    """

    def __init__(self, model: Any, seed: int | None) -> None:
        self._native = Simulation(model)
        self._draw = None if seed is None else random.Random(seed)
        self.passes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def run(self, until: int = FOREVER, passes: int = FOREVER) -> int:
        """Do what :meth:`hpcgym._engine.Simulation.run` does."""
        done = 0
        while True:
            most, stop = passes - done, until
            if self._draw is not None and not self.asked:
                most = min(most, self._draw.choice([1, 1, 3, 10, FOREVER]))
                if self._draw.random() < 0.3:
                    stop = min(until, self.time + self._draw.choice([0, 1, 7, 600, 100_000]))
            before = self._native.run(stop, most)
            assert before <= most
            done += before
            if self._draw is not None:
                self._go_on(self._draw)
            if self.asked or done == passes or (before < most and stop == until):
                self.passes += done
                return done

    def _go_on(self, draw: random.Random) -> None:
        """Let another go on."""
        left = self._native
        if draw.random() < 0.5:
            self._native = left.copy()
        else:
            self._native = left.anew(left.run_times())
            self._native.load(left.saved())
        if left.asked:
            assert left.run() == 0  # it waits for the answer
        elif draw.random() < 0.5:
            left.run(passes=5)


@contextmanager
def pieces(seed: int | None) -> Iterator[list[Pieces]]:
    """Let all simulations run in pieces that are made meanwhile."""
    made: list[Pieces] = []

    def make(model: Any) -> Pieces:
        made.append(Pieces(model, seed))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        for name, module in [*sys.modules.items()]:
            if name.startswith("hpcgym.simulation."):
                for own, value in [*vars(module).items()]:
                    if value is Simulation:
                        patch.setattr(module, own, make)
        yield made


def native_of(simulate: Callable[[], Any]) -> Simulation:
    """Return the native simulation of what is to be simulated, as it is before its first event."""

    class Made(Exception):  # noqa: N818
        pass

    made: list[Simulation] = []

    def leave(self: Pieces, *_: Any) -> int:
        made.append(self._native)
        raise Made

    with pytest.MonkeyPatch.context() as patch, pieces(None), suppress(Made):
        patch.setattr(Pieces, "run", leave)
        simulate()
    (native,) = made
    return native


def same_in_pieces(seed: int, simulate: Callable[[], Any]) -> Any:
    """Simulate in pieces; return the result, which is that of one piece."""
    with pieces(None) as whole:
        expected = simulate()
    with pieces(seed) as cut:
        result = simulate()
    assert whole
    for uncut, other in zip(whole, cut, strict=True):
        assert uncut.passes == other.passes
        columns, again = uncut.schedule(), other.schedule()
        assert columns.keys() == again.keys()
        for name, column in columns.items():
            assert column.tolist() == again[name].tolist(), name
        assert uncut.ended().tolist() == other.ended().tolist()
    for name in ("start", "run_time", "predicted_run_time", "reserved_start", "backfilled"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name), name)
    np.testing.assert_array_equal(result.policy_run_time, expected.policy_run_time)
    assert result.metrics == expected.metrics
    return result
