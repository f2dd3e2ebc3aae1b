"""Machines under limits of environments, as the native engine takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcgym.engine.machines.limited.rows import LimitedRows, row_of
from hpcgym.simulation.native_limited import told_of_limited, told_of_limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def told_of_limited_rows(rows: LimitedRows) -> dict[str, NDArray[np.int64]]:
    """Return what the engine is told of the machines of all simulations, without limits."""
    own: Any = rows.begin[0]
    caps, budgets = rows.caps[0, : own["controlled"]], rows.budgets[0, :0]
    parts = {"kind": rows.kind, "measured_mw": rows.measured_mw, "scalars": rows.begin}
    return told_of_limited(row_of(rows, 0, 0, 0)._replace(caps=caps, budgets=budgets, **parts))


def next_limits(rows: LimitedRows, e: int) -> dict[str, NDArray[np.int64]]:
    """Return the limits of the next episode of simulation ``e``."""
    counts: Any = rows.counts[e, 0]
    caps, budgets = rows.next_caps[e], rows.next_budgets[e]
    return told_of_limits(caps[: counts["next_caps"]], budgets[: counts["next_budgets"]])
