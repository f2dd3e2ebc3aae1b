"""Nodes of environments on the native engine, and in the arrays of the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Layout
from hpcgym.engine.machines.nodes.rows import Rooms, row_of
from hpcgym.scheduler.dispatchers.view import cells_of
from hpcgym.simulation.warm_start import write_cells
from hpcgym.workload.warm_start import Cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcgym.engine.machines.nodes.placement import Nodes


def layout_of_rooms(rooms: Rooms) -> Layout:
    """Return what the engine is told of the nodes of all simulations, and of all jobs."""
    begin: Any = rooms.begin[0]
    asks = rooms.asks if len(rooms.asks) else None
    state = int(begin.random_state)
    return Layout(rooms.needs, rooms.capacity, int(begin.allocation), random_state=state, asks=asks)


def nodes_to_load(nodes: Nodes, number: int) -> dict[str, NDArray[np.int64]]:
    """Return what the engine takes of the nodes of a simulation, of which so many jobs count."""
    own, known = nodes.scalars[0], nodes.known
    first, node, units = cells_of(nodes, np.arange(number))
    stands = known["guarded_version"] == own["version"] + own["shadows"]
    placing = ("started_before_head", "random_state", "guarded", "slack")
    return {
        "placing": np.array([own[name] for name in placing]),
        "cell_count": np.diff(first),
        "cell_node": node,
        "cell_units": units,
        "order": nodes.order,
        "asked": nodes.asked,
        "later": nodes.later.reshape(-1),
        "refused": np.where(stands, known["guarded_units"], -1),
    }


def store_cells(rooms: Rooms, e: int, start: int, n: int, known: dict[str, Any]) -> Nodes:
    """Write which nodes the ``n`` jobs of simulation ``e`` have had, from a row on.

    Return its nodes.
    """
    nodes = row_of(rooms, e, start, start + n)
    most = np.minimum(nodes.needs[:, 0], len(nodes.free))
    nodes.held["first"] = np.cumsum(most) - most
    count, node, units = (known[f"cell_{name}"] for name in ("count", "node", "units"))
    write_cells(nodes, Cells(np.concatenate([[0], np.cumsum(count)]), node, units))
    return nodes


def store_nodes(rooms: Rooms, e: int, start: int, n: int, known: dict[str, Any]) -> None:
    """Write all that the engine knows of the nodes of simulation ``e``."""
    nodes = store_cells(rooms, e, start, n, known)
    nodes.scalars[0] = rooms.begin[0]
    own: Any = nodes.scalars[0]
    own["started_before_head"], own["random_state"] = known["placing"][:2]
    own["guarded"], own["slack"] = known["placing"][2:]
    nodes.order[:], nodes.asked[:] = known["order"], known["asked"]
    nodes.later[:] = known["later"].reshape(nodes.later.shape)
    nodes.stale[1], own["n_stale"] = 0, 0
    free = nodes.capacity.copy()
    running = known["running"].reshape(-1, 4)[:, 3]
    first, node, units = cells_of(nodes, running)
    takes = nodes.needs[np.repeat(running, np.diff(first)), 1:]
    np.subtract.at(free, node, units[:, np.newaxis] * takes)
    nodes.set_free(free)
    nodes.known["version"] = -1
    stands = own["version"] + own["shadows"]
    nodes.known["guarded_version"] = np.where(known["refused"] >= 0, stands, -1)
    nodes.known["guarded_units"] = known["refused"]
