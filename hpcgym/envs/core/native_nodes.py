"""Nodes of environments on the native engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcgym._engine import Layout

if TYPE_CHECKING:
    from hpcgym.engine.machines.nodes.rows import Rooms


def layout_of_rooms(rooms: Rooms) -> Layout:
    """Return what the engine is told of the nodes of all simulations, and of all jobs."""
    begin: Any = rooms.begin[0]
    asks = rooms.asks if len(rooms.asks) else None
    state = int(begin.random_state)
    return Layout(rooms.needs, rooms.capacity, int(begin.allocation), random_state=state, asks=asks)
