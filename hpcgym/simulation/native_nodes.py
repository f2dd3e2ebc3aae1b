"""What the native engine is told of machines of nodes, and what it tells of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Layout, Model, assign
from hpcgym.engine.machines.nodes.failures import FailingNodes
from hpcgym.engine.machines.nodes.placement import CELLS, Nodes
from hpcgym.engine.passes.preempting import Preempting
from hpcgym.engine.passes.requeueing import LOST
from hpcgym.engine.passes.restricted import Restricted
from hpcgym.scheduler.allocations import RANDOM
from hpcgym.scheduler.dispatchers.view import cells_of
from hpcgym.simulation.warm_start import write_cells
from hpcgym.workload.warm_start import Cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[np.int64]]


def is_on() -> bool:
    """Return whether the native engine serves at all."""
    return os.environ.get("HPCGYM_ENGINE") != "numba"


def nodes_in(machine: Any) -> Nodes | None:
    """Return the nodes of a machine as its kind takes it, None of a pool."""
    if isinstance(machine, FailingNodes):
        return machine.nodes
    own = machine.machine if isinstance(machine, Preempting) else machine
    nodes = own.machine if isinstance(own, Restricted) else own
    return nodes if isinstance(nodes, Nodes) else None


def told_of_nodes(machine: Any) -> dict[str, Any]:
    """Return what a model is told of a machine, empty as yet, as its kind takes it."""
    nodes = nodes_in(machine)
    told: dict[str, Any] = {} if nodes is None else {"nodes": layout_of(nodes)}
    if isinstance(machine, FailingNodes):
        told["outages"] = machine.events.view(np.int64).reshape(-1, 3)
    return told


def window_nodes(machine: Restricted) -> NDArray[np.int64]:
    """Return the nodes that windows take, one window after the other."""
    nodes, holders = nodes_in(machine), machine.windows.taken
    if nodes is None or not len(holders):
        return np.zeros(0, np.int64)
    return cells_of(nodes, holders)[1]


def layout_of(nodes: Nodes) -> Layout:
    """Return what the native engine is told of nodes, which are empty as yet."""
    own: Any = nodes.scalars[0]
    return Layout(
        nodes.needs,
        nodes.capacity,
        int(own.allocation),
        random_state=int(own.random_state),
        asks=nodes.asks if len(nodes.asks) else None,
        order=nodes.order.copy() if own.allocation == RANDOM else None,
    )


def take_nodes(machine: Any, schedule: Columns) -> Any:
    """Write which nodes jobs have had; return the machine, which may have logs of other lengths."""
    nodes = nodes_in(machine)
    if nodes is not None and "cell_first" in schedule:
        write_cells(nodes, _cells_in(schedule))
    loses = isinstance(machine, FailingNodes | Preempting)
    return _with_lost(machine, schedule) if loses else machine


def assign_natively(
    jobs: NDArray[np.void],
    nodes: Nodes,
    start: NDArray[np.int64],
    by_start: NDArray[np.int64],
    by_end: NDArray[np.int64],
    known: Cells | None,
    since: int,
) -> None:
    """Give empty nodes to jobs whose times are known, as ``engine.assign`` does.

    ``known``: the cells of the first that start.
    """
    rows = np.ascontiguousarray(jobs).view(np.int64).reshape(len(jobs), -1)
    capacity, requested = int(nodes.capacity[:, 0].sum()), np.ascontiguousarray(jobs["requested"])
    model = Model(rows, capacity, {}, predicted=requested, nodes=layout_of(nodes))
    none = np.zeros(0, np.int64)
    cells = Cells(np.zeros(1, np.int64), none, none) if known is None else known
    found = assign(model, np.ascontiguousarray(start), by_start, by_end, *cells, since)
    write_cells(nodes, _cells_in(found))


def take_view(nodes: Nodes, told: Columns) -> None:
    """Write what a view tells of nodes: what is free, who has which, what allocations go by."""
    own: Any = nodes.scalars[0]
    nodes.free[...] = told["free"].reshape(nodes.free.shape)
    nodes.asked[...] = told["asked"]
    own.random_state, nodes.order[...] = told["drawn"][0], told["drawn"][1:]
    write_cells(nodes, _cells_in(told), told["running"])


def take_pool(node: Nodes, free: int, running: NDArray[np.int64]) -> None:
    """Write the same of the node that stands for a pool: jobs have a unit each."""
    n = len(running)
    node.set_free(np.array([[free]]))
    cells = Cells(np.arange(n + 1), np.zeros(n, np.int64), np.ones(n, np.int64))
    write_cells(node, cells, running)


def _cells_in(schedule: Columns) -> Cells:
    """Return the nodes that jobs have, by a schedule or view of the native engine."""
    return Cells(*(schedule[f"cell_{name}"] for name in Cells._fields))


def lost_in(schedule: Columns) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return LOST and CELLS of the runs that a schedule of the native engine has lost."""
    lost, on_nodes = np.zeros(len(schedule["lost_job"]), LOST), "lost_node" in schedule
    cells = np.empty(len(schedule["lost_node"]) if on_nodes else 0, CELLS)
    for name in ("job", "start", "end"):
        lost[name] = schedule[f"lost_{name}"]
    if on_nodes:
        lost["first"] = schedule["lost_first"][:-1]
        cells["node"], cells["units"] = schedule["lost_node"], schedule["lost_units"]
    return lost, cells


def _with_lost(machine: Any, schedule: Columns) -> Any:
    """Return a machine with the runs on record that a schedule of the native engine has lost."""
    lost, cells = lost_in(schedule)
    own: Any = machine.scalars[0]
    own.lost, own.cells = len(lost), len(cells)
    return machine._replace(lost=lost, cells=cells)
