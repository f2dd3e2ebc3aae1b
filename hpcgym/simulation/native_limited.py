"""What the native engine is told of machines under limits, and what it tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.engine.machines.limited.state import LOG, LimitedNodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONSTANTS = (
    *("idle_mw", "rest_mw", "off_mw", "shutdown_mw", "boot_mw", "rise_mw", "off_time", "on_time"),
    *("timeout", "lowest", "highest", "rule", "contiguous", "limited", "controlled"),
)
_CAP = ("start", "end", "announced", "mw", "kills", "off")
_BUDGET = ("start", "end", "mj", "mean_mw", "period", "shuts", "as_idle", "binds")


def told_of_limited(machine: LimitedNodes) -> dict[str, NDArray[np.int64]]:
    """Return what a model is told of a machine that is empty as yet."""
    own: Any = machine.scalars[0]
    names = ("busy_mw", "drawn_mw", "slowdown", "kind", "measured_mw", "size", "component_mw")
    return {
        **{name: np.array([own[name]]) for name in _CONSTANTS},
        **{name: np.ascontiguousarray(getattr(machine, name)) for name in names},
        "n_nodes": np.array([len(machine.nodes)]),
        # a control says nothing before it is set
        **told_of_limits(machine.caps[: len(machine.caps) - own.controlled], machine.budgets),
    }


def told_of_limits(
    caps: NDArray[np.void], budgets: NDArray[np.void]
) -> dict[str, NDArray[np.int64]]:
    """Return caps and budgets as the engine takes them."""
    return {"caps": _rows(caps, _CAP), "budgets": _rows(budgets, _BUDGET)}


def _rows(records: NDArray[np.void], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return fields of records, one record behind the other."""
    return np.column_stack([records[name] for name in names]).ravel()


def take_limited(machine: LimitedNodes, schedule: dict[str, NDArray[np.int64]]) -> LimitedNodes:
    """Write what has become of nodes and jobs; return the machine, with its log."""
    own = machine.scalars[0]
    begun = schedule["start"] >= 0
    machine.tasks["level"] = np.where(begun, schedule["level"], own.highest)
    machine.tasks["predicted"] = schedule["predicted_at_highest"]
    machine.cells[...] = schedule["cell_node"]
    for name in ("state", "since"):
        machine.nodes[name] = schedule[f"node_{name}"]
    log = np.zeros(len(schedule["log_node"]), LOG)
    for name in LOG.names or ():
        log[name] = schedule[f"log_{name}"]
    own.logged, own.kills = len(log), schedule["kills"][0]
    return machine._replace(log=log)


def idle_mw(machine: LimitedNodes, off: int) -> int:
    """Return what is charged without jobs while the first ``off`` nodes are off [mW]."""
    own, n_nodes, size = machine.scalars[0], len(machine.nodes), machine.size
    dark = np.full(len(size), n_nodes) if off == n_nodes else off // size * size
    power = off * own.off_mw + (n_nodes - off) * own.rest_mw + own.components_mw
    # of the nodes below a component that is off not even what is off draws anything
    return int(
        power - (-(-dark // size) * machine.component_mw).sum() - dark[:1].sum() * own.off_mw
    )
