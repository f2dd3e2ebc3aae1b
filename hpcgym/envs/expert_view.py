"""What a dispatcher may know of an environment's state: a view of it as at a scheduling pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dispatching import PassView
from hpcgym.dispatching.asking import Facts, view_of
from hpcgym.engine import state
from hpcgym.engine.node_rows import row_of
from hpcgym.engine.nodes import FIRST_FIT, Nodes, make_nodes
from hpcgym.workload.needs import expected_waits

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
    return view_of(arrays, nodes, _facts(simulations, e, rooms is None), rows)


def _facts(simulations: Simulations, e: int, pool: bool) -> Facts:
    """Return what does not change in the episode of simulation ``e``."""
    workload, cluster = simulations.episode(e), simulations.options.cluster
    return Facts(
        cluster.resources[:1] if pool else cluster.resources,
        workload.job_number,
        workload.user_id,
        workload.queue,
        expected_waits(workload, cluster.queues),
        max(cluster.queues.values(), default=1.0),
    )


def _pool(arrays: state.Prepared, processors: int) -> Nodes:
    """Return one node with all processors, and the running jobs on it."""
    asked = arrays.jobs["processors"]
    needs = np.column_stack([np.ones_like(asked), asked])
    nodes = make_nodes(needs, np.array([[processors]]), FIRST_FIT)
    nodes.cells["node"], nodes.cells["units"] = 0, 1
    nodes.held["count"] = 1
    nodes.set_free(np.array([[arrays.sim[state.FREE]]]))
    return nodes
