"""Dispatchers, and policies that are functions, in simulations of the native engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.engine.state import Prepared
from hpcgym.scheduler.dispatchers.asking import Asking, Facts, Kernels, Present, Start, view_at
from hpcgym.scheduler.dispatchers.view import PassView
from hpcgym.simulation.native_nodes import take_view

if TYPE_CHECKING:
    from hpcgym._engine import Simulation

_NOWHERE = np.zeros(0, np.int64)


class Native(NamedTuple):
    """A simulation of the native engine, as :class:`Asking` says.

    Attributes
    ----------
    jobs : JOBS.
    nodes : what views are made from; an answer needs no other state.
    """

    native: Simulation
    jobs: NDArray[np.void]
    nodes: Nodes

    @property
    def time(self) -> int:  # noqa: D102
        return self.native.time

    @property
    def coming(self) -> int:  # noqa: D102
        return int(self.native.view()["coming"][0])

    def pass_time(self, time: int) -> None:  # noqa: D102
        self.native.pass_time(time)

    def view(self, facts: Facts) -> PassView:  # noqa: D102
        told = self.native.view()
        take_view(self.nodes, told)
        return self.view_told(told, facts)

    def view_told(self, told: dict[str, NDArray[np.int64]], facts: Facts) -> PassView:
        """Return the same where the nodes tell of machine and jobs what there is to tell."""
        order = np.argsort(told["queued"])
        queued, duration = told["queued"][order], told["duration"][order]
        running = told["running"], told["running_start"], told["running_end"]
        present = Present(self.native.time, self.jobs, queued, duration, *running)
        return view_at(present, self.nodes, facts)

    def start(self, starts: list[tuple[int, Start]]) -> int:  # noqa: D102
        node, units, first = [_NOWHERE], [_NOWHERE], [0]
        for _, start in starts:
            if start.nodes is not None:
                distinct, counts = np.unique(start.nodes, return_counts=True)
                node.append(distinct)
                units.append(counts)
            first.append(sum(map(len, node)))
        rows = np.array([job for job, _ in starts], np.int64)
        cells = np.array(first), np.concatenate(node), np.concatenate(units)
        return self.native.launch(rows, *cells)


@dataclass(frozen=True)
class Starting:
    """Asks a dispatcher at a pass, of either engine."""

    asks: Callable[[Asking], None]

    def __call__(self, arrays: Prepared, machine: Any) -> None:
        """Do so of a simulation of the kernels."""
        self.asks(Kernels(arrays, machine))

    def answer(self, jobs: NDArray[np.void], machine: Any, native: Simulation) -> None:
        """Do so of a simulation of the native engine."""
        asking = Native(native, jobs, machine)
        self.asks(asking)
        if native.asked:  # it thinks, and nothing starts now
            asking.start([])
