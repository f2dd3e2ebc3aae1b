"""What the native engine is told of machines of nodes, and what it tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Layout
from hpcgym.engine.machines.nodes.placement import CELLS, Nodes
from hpcgym.engine.passes.requeueing import LOST
from hpcgym.scheduler.allocations import RANDOM
from hpcgym.workload.warm_start import Cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[np.int64]]


def told_of_nodes(nodes: Nodes) -> dict[str, Any]:
    """Return what a model is told of nodes, empty as yet."""
    return {"nodes": layout_of(nodes)}


def write_cells(nodes: Nodes, cells: Cells, jobs: NDArray[np.int64] | None = None) -> None:
    """Let jobs have their cells on record: these, or the first ones, as many as there are."""
    counts = np.diff(cells.first)
    # behind the jobs stand those who hold nodes in windows
    rows = np.arange(len(counts)) if jobs is None else jobs
    nodes.held["count"][rows] = counts
    begin = nodes.held["first"][rows] - cells.first[:-1]
    places = np.repeat(begin, counts) + np.arange(len(cells.node))
    nodes.cells["node"][places] = cells.node
    nodes.cells["units"][places] = cells.units


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
