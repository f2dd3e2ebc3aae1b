"""What a dispatcher may know of an environment's state: a view of it as at a scheduling pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.envs.core.cutting import Episode
from hpcgym.envs.core.limited_machines import LimitedMachines
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.dispatchers.asking import Facts, Present, view_at
from hpcgym.simulation.native_nodes import take_view
from hpcgym.simulation.nodes import facts_of, pool_as_node

if TYPE_CHECKING:
    from hpcgym.envs.core.simulations import Simulations


def pass_view(simulations: Simulations, e: int, rows: NDArray[np.int64]) -> PassView:
    """Return a view of simulation ``e`` in which these rows of the episode are queued.

    A machine whose jobs ask for single cores is one node with all of them, as a pool is.

    Raises
    ------
    HpcgymError : a machine whose jobs have nodes of their own: there only ``simulate`` asks them.
    """
    if isinstance(simulations.machines, LimitedMachines):
        raise HpcgymError(
            "pass_view: where jobs have nodes of their own, under limits too, dispatchers are asked"
            " by simulate() only"
        )
    shown, native = _shown(simulations, e), simulations.native.simulation(e)
    told, queued = native.view(), np.sort(rows)
    if shown.pool is None:
        nodes = simulations.machines.row(e, *simulations.rows(e))
        take_view(nodes, told)
    else:
        nodes = shown.pool
        nodes.set_free(np.array([[native.free]]))
    duration = native.schedule()["predicted"][queued]
    running = told["running"], told["running_start"], told["running_end"]
    present = Present(native.time, simulations.jobs(e), queued, duration, *running)
    return view_at(present, nodes, shown.facts)


class _Shown(NamedTuple):
    """What views of an episode have in common; see :func:`_shown`."""

    episode: Episode
    facts: Facts
    pool: Nodes | None  # but for what is free


def _shown(simulations: Simulations, e: int) -> _Shown:
    """Return what views of the present episode have in common, made at the first of them."""
    episode = simulations.present(e)
    kept: _Shown | None = simulations.shown.get(e)
    if kept is None or kept.episode != episode:
        cluster, alike = simulations.options.cluster, simulations.machines.is_pool
        workload = simulations.episodes.workload_of(episode)
        facts = facts_of(workload, cluster, pool=alike)
        pool = pool_as_node(workload.requested_processors, cluster.processors) if alike else None
        kept = simulations.shown[e] = _Shown(episode, facts, pool)
    return kept
