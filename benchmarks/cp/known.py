"""The best known schedules of small states: what dispatchers' answers can be measured against."""

from __future__ import annotations

from typing import Any

from hpcgym.benchmarks.cp.growth import state_of

#: (nodes, queued, seed) of the states, which are made up as those of :mod:`growth` are.
STATES = tuple((nodes, queued, seed) for nodes in (2, 4) for queued in (4, 6) for seed in range(2))

#: Deterministic seconds of CP-SAT at most, for each state and model.
WORK = 2.0


def known_tasks(made_by: str) -> list[dict[str, Any]]:
    """Return the tasks."""
    return [
        {"nodes": nodes, "queued": queued, "seed": seed, "work": WORK, "code": made_by}
        for nodes, queued, seed in STATES
    ]


def known_one(task: dict[str, Any]) -> dict[str, Any]:
    """Return the row of :func:`hpcgym.baselines.cp.exact.known_best` of one state.

    Parameters
    ----------
    task : "nodes", "queued" and "seed" of the state, and "work"; and "code", a hash of the sources.
    """
    from hpcgym.baselines.cp.exact import known_best

    nodes, queued, seed = task["nodes"], task["queued"], task["seed"]
    view = state_of(nodes, queued, seed)
    table = known_best({f"{nodes} nodes, {queued} jobs, seed {seed}": view}, task["work"])
    row: dict[str, Any] = table.iloc[0].to_dict()
    return row
