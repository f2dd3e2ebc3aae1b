"""What a dispatcher may know of an environment's state: a view of it as at a scheduling pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dispatching import PassView
from hpcgym.dispatching.asking import view_of
from hpcgym.engine import state
from hpcgym.engine.node_rows import row_of
from hpcgym.engine.nodes import FIRST_FIT, Nodes, make_nodes
from hpcgym.node_simulation import facts_of

if TYPE_CHECKING:
    from hpcgym.envs.simulations import Simulations


def pass_view(simulations: Simulations, e: int, rows: NDArray[np.int64]) -> PassView:
    """Return a view of simulation ``e`` in which these rows of the episode are queued.

    A machine whose jobs ask for single cores is one node with all of them, as a pool is.
    """
    batch, rooms = simulations.batch, simulations.rooms
    start, n = simulations.rows(e)
    changing: dict[str, Any] = {name: getattr(batch, name)[e] for name in state.State._fields}
    arrays = state.Prepared(
        jobs=simulations.table.jobs[start : start + n],
        keys=batch.sim[e, :0],
        scores=batch.scores[e],
        users=batch.sim[e, :0],
        **changing,
    )
    processors = simulations.options.cluster.processors
    nodes = _pool(arrays, processors) if rooms is None else row_of(rooms, e, start, start + n)
    facts = facts_of(simulations.episode(e), simulations.options.cluster, rooms is None)
    return view_of(arrays, nodes, facts, rows)


def _pool(arrays: state.Prepared, processors: int) -> Nodes:
    """Return one node with all processors, and the running jobs on it."""
    asked = arrays.jobs["processors"]
    needs = np.column_stack([np.ones_like(asked), asked])
    nodes = make_nodes(needs, np.array([[processors]]), FIRST_FIT)
    nodes.cells["node"], nodes.cells["units"] = 0, 1
    nodes.held["count"] = 1
    nodes.set_free(np.array([[arrays.sim[state.FREE]]]))
    return nodes
