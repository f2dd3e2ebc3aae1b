"""Dispatchers in simulations: what they are shown at a pass, and what their answers start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler.dispatchers.asking import Asking, Facts, Present, Start, view_at
from hpcgym.scheduler.dispatchers.own_nodes import Seen
from hpcgym.scheduler.dispatchers.view import PassView

if TYPE_CHECKING:
    from hpcgym._engine import Simulation

_NOWHERE = np.zeros(0, np.int64)


class OnNodes(NamedTuple):
    """A simulation on nodes, as :class:`Asking` says; a pool is one node.

    Attributes
    ----------
    jobs : JOBS.
    nodes : what views are made from; an answer needs no other state.
    """

    native: Simulation
    jobs: NDArray[np.void]
    nodes: Any

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
        if "free" not in told:
            told = on_one_node(told, self.native.free)
        return view_at(present_in(told, self.native.time, self.jobs), self.nodes, told, facts)

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


class OnOwnNodes(NamedTuple):
    """One in which each job has nodes of its own.

    It is asked as :class:`hpcgym.scheduler.dispatchers.own_nodes.Proposing` says.

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

    def seen(self) -> Seen:  # noqa: D102
        told = self.native.view()
        present = present_in(told, self.native.time, self.jobs)
        allowed = self.native.fits(present.queued.tolist()).astype(np.bool_)
        free, changes = told["free"].astype(np.bool_), int(told["changes"][0])
        return Seen(present, allowed, changes, free, told["cell_first"], told["cell_node"])

    def propose(self, jobs: list[int]) -> int:  # noqa: D102
        first = np.zeros(len(jobs) + 1, np.int64)
        return self.native.launch(np.array(jobs, np.int64), first, _NOWHERE, _NOWHERE)


def on_one_node(told: dict[str, NDArray[np.int64]], free: int) -> dict[str, NDArray[np.int64]]:
    """Return a view of a pool as that of one node: jobs have a unit each."""
    n = len(told["running"])
    cells = {
        "first": np.arange(n + 1),
        "node": np.zeros(n, np.int64),
        "units": np.ones(n, np.int64),
    }
    return told | {"free": np.array([free])} | {f"cell_{name}": cells[name] for name in cells}


def present_in(told: dict[str, NDArray[np.int64]], time: int, jobs: NDArray[np.void]) -> Present:
    """Return the jobs that wait and run, by a view of the native engine."""
    order = np.argsort(told["queued"])
    queued, duration = told["queued"][order], told["duration"][order]
    running = told["running"], told["running_start"], told["running_end"]
    return Present(time, jobs, queued, duration, *running)


@dataclass(frozen=True)
class Proposed:
    """Asks a dispatcher at a pass where each job has nodes of its own."""

    asks: Callable[..., None]

    def answer(self, jobs: NDArray[np.void], nodes: Any, native: Simulation) -> None:
        """Do so."""
        self.asks(OnOwnNodes(native, jobs))


@dataclass(frozen=True)
class Starting:
    """Asks a dispatcher at a pass."""

    asks: Callable[[Asking], None]

    def answer(self, jobs: NDArray[np.void], nodes: Any, native: Simulation) -> None:
        """Do so."""
        asking = OnNodes(native, jobs, nodes)
        self.asks(asking)
        if native.asked:  # it thinks, and nothing starts now
            asking.start([])
