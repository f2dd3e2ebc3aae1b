"""Dispatchers, and policies that are functions, in simulations of the native engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.engine.state import Prepared
from hpcgym.scheduler.dispatchers.asking import Asking, Facts, Present, Start, view_at
from hpcgym.scheduler.dispatchers.view import PassView
from hpcgym.simulation.kernel_passes import Kernels
from hpcgym.simulation.native_nodes import take_pool, take_view
from hpcgym.simulation.own_nodes import OfKernels, Told

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
        return self.native.coming

    def pass_time(self, time: int) -> None:  # noqa: D102
        self.native.pass_time(time)

    def view(self, facts: Facts) -> PassView:  # noqa: D102
        told = self.native.view()
        if "free" in told:
            take_view(self.nodes, told)
        else:
            take_pool(self.nodes, self.native.free, told["running"])
        return self.view_told(told, facts)

    def view_told(self, told: dict[str, NDArray[np.int64]], facts: Facts) -> PassView:
        """Return the same where the nodes tell of machine and jobs what there is to tell."""
        return view_at(_present_in(told, self.native.time, self.jobs), self.nodes, facts)

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


class NativeOwn(NamedTuple):
    """One in which each job has nodes of its own.

    It is asked as :class:`hpcgym.simulation.own_nodes.Proposing` says.

    Attributes
    ----------
    jobs : JOBS; their processors are nodes.
    """

    native: Simulation
    jobs: NDArray[np.void]

    @property
    def widths(self) -> NDArray[np.int64]:  # noqa: D102
        widths: NDArray[np.int64] = self.jobs["processors"]
        return widths

    @property
    def coming(self) -> int:  # noqa: D102
        return self.native.coming

    def told(self) -> Told:  # noqa: D102
        told = self.native.view()
        present = _present_in(told, self.native.time, self.jobs)
        allowed = self.native.fits(present.queued.tolist()).astype(np.bool_)
        free, changes = told["free"].astype(np.bool_), int(told["changes"][0])
        return Told(present, allowed, changes, free, told["cell_first"], told["cell_node"])

    def propose(self, jobs: list[int]) -> int:  # noqa: D102
        first = np.zeros(len(jobs) + 1, np.int64)
        return self.native.launch(np.array(jobs, np.int64), first, _NOWHERE, _NOWHERE)


def _present_in(told: dict[str, NDArray[np.int64]], time: int, jobs: NDArray[np.void]) -> Present:
    """Return the jobs that wait and run, by a view of the native engine."""
    order = np.argsort(told["queued"])
    queued, duration = told["queued"][order], told["duration"][order]
    running = told["running"], told["running_start"], told["running_end"]
    return Present(time, jobs, queued, duration, *running)


@dataclass(frozen=True)
class Proposed:
    """Asks a dispatcher at a pass, of either engine, where each job has nodes of its own."""

    asks: Callable[..., None]

    def __call__(self, arrays: Prepared, machine: Any) -> None:
        """Do so of a simulation of the kernels."""
        self.asks(OfKernels(arrays, machine))

    def answer(self, jobs: NDArray[np.void], machine: Any, native: Simulation) -> None:
        """Do so of a simulation of the native engine."""
        self.asks(NativeOwn(native, jobs))


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
