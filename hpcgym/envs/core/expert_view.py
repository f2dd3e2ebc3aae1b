"""What a dispatcher may know of an environment's state: a view of it as at a scheduling pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core.cutting import Episode
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.dispatchers.asking import Facts, on_one_node, present_in, view_at
from hpcgym.simulation.nodes import Nodes, facts_of, pool_as_node

if TYPE_CHECKING:
    from hpcgym.envs.core.simulations import Simulations


def pass_view(simulations: Simulations, e: int, rows: NDArray[np.int64]) -> PassView:
    """Return a view of simulation ``e`` in which these rows of the episode are queued.

    A machine whose jobs ask for single cores is one node with all of them, as a pool is.

    Raises
    ------
    HpcgymError : a machine whose jobs have nodes of their own: there only ``simulate`` asks them.
    """
    if "limited" in simulations.machines.told:
        raise HpcgymError(
            "pass_view: where jobs have nodes of their own, under limits too, dispatchers are asked"
            " by simulate() only"
        )
    shown, native = _shown(simulations, e), simulations.simulation(e)
    told, queued = native.view(), np.sort(rows)
    if "free" not in told:
        told = on_one_node(told, native.free)
    told |= {"queued": queued, "duration": native.schedule()["predicted"][queued]}
    present = present_in(told, native.time, simulations.jobs(e))
    return view_at(present, shown.nodes, told, shown.facts)


class _Shown(NamedTuple):
    """What views of an episode have in common; see :func:`_shown`."""

    episode: Episode
    facts: Facts
    nodes: Nodes


def _shown(simulations: Simulations, e: int) -> _Shown:
    """Return what views of the present episode have in common, made at the first of them."""
    episode = simulations.present(e)
    kept: _Shown | None = simulations.shown.get(e)
    if kept is None or kept.episode != episode:
        cluster, machines = simulations.options.cluster, simulations.machines
        workload = simulations.episodes.workload_of(episode)
        facts = facts_of(workload, cluster, pool=machines.place == "pool")
        if machines.place == "pool":
            nodes = pool_as_node(workload.requested_processors, cluster.processors)
        else:
            start, n = simulations.rows(e)
            nodes = machines.told["nodes"]
            nodes = nodes._replace(needs=nodes.needs[start : start + n])
        kept = simulations.shown[e] = _Shown(episode, facts, nodes)
    return kept
