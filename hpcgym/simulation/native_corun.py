"""What the native engine is told of machines on which jobs share nodes, and what it tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.engine.machines.corun.files.shared import make_files
from hpcgym.engine.machines.corun.rows import CorunRows, row_of
from hpcgym.engine.machines.corun.state import CorunNodes

if TYPE_CHECKING:
    from numpy.typing import NDArray


def told_of_corun(machine: Any) -> dict[str, Any]:
    """Return what a model is told of a machine if jobs share its nodes, all of which are idle."""
    if not isinstance(machine, CorunNodes):
        return {}
    own: Any = machine.scalars[0]
    of_machine = [*machine.who.shape, own.partners, own.fills, own.selective, own.logs_spells]
    told = {
        "machine": np.array(of_machine, np.int64),
        **{
            name: np.ascontiguousarray(machine.tasks[name])
            for name in ("nodes", "placement", "code")
        },
        **{name: getattr(machine, name) for name in ("speedup", "alone", "weights")},
        **belief_in(machine),
        "bandwidth": np.zeros(1),
    }
    if machine.io is not None:
        told["bandwidth"] = machine.io.bandwidth
        told |= {"io_share": machine.io.share, "io_demand": machine.io.demand}
    return {"sharing": told}


def told_of_rows(
    rows: CorunRows, watts: NDArray[np.float64], node_watts: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Return what a model of all jobs of environments is told of sharing; what is drawn counts.

    ``watts``, ``node_watts``: as in :class:`hpcgym.envs.core.arrays.Table` [W].
    """
    io = rows.io
    files = None if io is None else make_files(io.bandwidth[0], io.share, io.usual)
    machine = row_of(rows, 0, 0)._replace(tasks=rows.usual, scalars=rows.begin, io=files)
    told: dict[str, NDArray[Any]] = told_of_corun(machine)["sharing"]
    more = {"watts": watts[:2], "node_watts": node_watts.ravel()}
    return told | more | {"cores": rows.cores, "processors": rows.wanted}


def belief_in(machine: CorunNodes) -> dict[str, NDArray[Any]]:
    """Return what the scheduler takes for the speedups, by the names of those arrays."""
    names = ("believed", "believed_alone", "rank", "good", "partner", "greatest")
    return {name: getattr(machine, name) for name in names}


def take_corun(machine: CorunNodes, schedule: dict[str, NDArray[np.int64]]) -> None:
    """Write when jobs have ended, and which nodes they have had."""
    machine.tasks["end"], machine.cells[...] = schedule["end"], schedule["cell_node"]
