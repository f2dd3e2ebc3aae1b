"""What the native engine is told of the jobs of all episodes; it takes the part of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Features, Model
from hpcgym.engine import state
from hpcgym.engine.holding import hold_back
from hpcgym.envs.core import arrays
from hpcgym.envs.core.native_limits import told_of_limited_rows
from hpcgym.envs.core.native_nodes import layout_of_rooms
from hpcgym.scheduler.estimates.learned import Estimators, told_of_learning
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.simulation.native_corun import told_of_rows
from hpcgym.simulation.prepare import numbered

if TYPE_CHECKING:
    from hpcgym.engine.passes.restricted_rows import RestrictedRows
    from hpcgym.envs.core.simulations import Simulations

_TAKEN = (
    *("passes", "depth", "primary", "secondary", "estimate", "correction", "threshold", "strict"),
    *("tested", "tested_of_user", "window", "every", "at_events", "all_every", "resolution"),
    *("linear", "asks", "learns", "renews", "logs"),
    *("holds", "erode", "managed", "timeout", "off_time", "on_time"),
)


def model_of(simulations: Simulations) -> Model:
    """Return what the engine is told of all jobs."""
    table, learner, machines = simulations.table, simulations.learner, simulations.machines
    sim, kind, n = table.sim[0], table.settings[0]["kind"], len(table.jobs)
    rules = {name: int(sim[name]) for name in _TAKEN}
    # the kernels look at ends to give nodes back
    moves = simulations.options.scheduler.moves_submissions
    logs = sim.learns or moves or machines.parts.corun is not None
    rules |= {"keeps": int(sim.keeps), "logs": int(logs)}
    learns, usage = asks_for_predictions(simulations.options.scheduler), simulations.usage
    rules["asks"] = int(sim.asks == state.EACH_PASS)
    more: dict[str, Any] = {"predicted": table.predicted}
    if machines.parts.rooms is not None:
        more["nodes"] = layout_of_rooms(machines.parts.rooms)
    if machines.parts.limited is not None:
        more["limited"] = told_of_limited_rows(machines.parts.limited)
    if machines.parts.corun is not None:
        more["ticks"] = int(table.settings[0]["ticks"])
        more["sharing"] = told_of_rows(machines.parts.corun, table.watts, table.node_watts)
    if machines.kept is not None:
        more |= _told_of_kept(machines.kept, sim)
    if len(table.keys):
        more["second_keys"] = table.keys[len(table.keys) - n :]
    if len(table.second_scores):
        more["second_scores"] = table.second_scores
    if kind == arrays.ORDERING_KIND:
        more["scores"] = np.tile([0.0, np.inf], (n, 1))  # before a decision
    if kind == arrays.WEIGHTS_KIND:
        parts = table.weighed, table.waiting, table.places, table.serial
        formulas = table.formulas if learns else None
        by_usage = (-1, -1) if usage is None else usage.places
        more["features"] = Features(*parts, table.ordered_by, formulas, by_usage)
    if usage is not None:
        more["accounts"] = usage.whole
    if sim.tested_of_user:
        users, n_users = numbered(simulations.episodes.workload.user_id)
        more |= {"users": users, "n_users": n_users}
    if sim.estimate == state.AVERAGE:
        more |= {"users": table.users, "n_users": simulations.history[0]}
        rules["last"] = simulations.history[1]
    if learns:
        more |= {"users": table.users, "n_users": len(learner.memory)}
        more["learning"] = told_of_learning(estimators_of(table), learner)
    if sim.holds:
        line = np.zeros(n, state.LINE)
        hold_back(table.jobs, table.ordered_by, table.hold, line)
        more["held"] = np.ascontiguousarray(line["held"])
    jobs = table.jobs.view(np.int64).reshape(n, -1)
    return Model(jobs, int(sim.free), rules, several=True, **more)


def estimators_of(table: arrays.Table) -> Estimators:
    """Return how simulations predict run times."""
    return Estimators(*(getattr(table, name) for name in Estimators._fields))


def _told_of_kept(kept: RestrictedRows, sim: Any) -> dict[str, Any]:
    """Return what restricts all episodes, as arguments of ``Model``.

    ``sim`` : SIM of the simulations.
    """
    windows = kept.window_begin[0], kept.window_end[0], kept.taken[0]
    told: dict[str, Any] = {
        "restrictions": {
            "counts": kept.counts,
            "processors": kept.processors,
            "left": kept.begin_left[0],
            "windows": np.column_stack(windows),
            "window_nodes": kept.closed[0],
        }
    }
    if len(kept.told):
        orders = np.array([sim.primary, sim.secondary]) == state.KEYED
        told["arrivals"] = {
            "first": kept.first,
            "followers": kept.followers,
            "think": kept.told,
            "log_end": kept.log_end,
            "earliest": kept.earliest,
            "by_arrival": kept.by_arrival[0] * orders,
            "processors": kept.processors,
            "place_counts": kept.place_counts,
            "places": kept.begin_places[0],
        }
    if kept.stops is not None:
        begin: Any = kept.stops.begin[0]
        told["preemption"] = {
            "group": kept.stops.group,
            "level": kept.stops.level,
            "may": kept.stops.may.astype(np.int64),
            "exempt": kept.stops.exempt,
            "mode": np.array([begin.mode]),
        }
    return told
