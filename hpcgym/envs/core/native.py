"""Environments on the native engine, where it has their rules.

What steps write of episodes lies in the arrays of :class:`hpcgym.envs.core.arrays.Batch`, as it
does where the compiled kernels serve. What happens between two decisions the engine knows alone:
the arrays of the simulations are written when somebody asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Features, Model, Stepper
from hpcgym.engine import state
from hpcgym.engine.answers import nag
from hpcgym.engine.answers.online import FROM_OUTSIDE, Estimators, Learner
from hpcgym.engine.holding import hold_back
from hpcgym.engine.machines.nodes.rows import row_of
from hpcgym.engine.many.beginnings import Before
from hpcgym.engine.ordered import BLOCK, NOTHING
from hpcgym.envs.core import arrays
from hpcgym.envs.core.native_nodes import layout_of_rooms, nodes_to_load, store_cells, store_nodes
from hpcgym.envs.core.told import Now, now_of
from hpcgym.simulation.native import TAKEN
from hpcgym.simulation.native_answers import has_kinds, n_terms, told_of_learning
from hpcgym.simulation.native_nodes import is_on

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcgym.engine.machines.nodes.rows import Rooms
    from hpcgym.envs.core.simulations import Simulations

#: What steps write for Python, of a Batch.
_ROWS = (
    *("episode_state", "window", "new", "terms", "totals", "norms", "owed", "scales"),
    *("next_scales", "unpaid", "gone", "gone_bsld", "busy_until"),
)
#: What a simulation is now, as far as single numbers say it, in the order of ``Stepper.state``.
_NOW = (
    *("time", "next", "started", "free", "arrived", "changed", "head", "shadow", "extra", "asked"),
    *("selected", "groups", "idle_s", "off_s", "switching_off_s", "switching_on_s"),
    *("ended", "learned", "ended_at_pass"),
)
_LISTED = (("running", int(state.RUNNING)), ("queue", int(state.QUEUE)))


def serves(simulations: Simulations) -> bool:
    """Return whether the native engine has the rules of an environment, on pools or nodes."""
    sim, parts = simulations.table.sim[0], simulations.machines.parts
    kinds = simulations.table.kinds
    lacks = (
        sim.tested,
        sim.depth == state.UNLIMITED,
        sim.renews == state.EACH_TIME,
        sim.learns and sim.holds,
        FROM_OUTSIDE in kinds,
    )
    return (
        is_on()
        and (parts.pool is not None or parts.rooms is not None)
        and parts.kept is None
        and simulations.usage is None
        and not (sim.managed and simulations.episodes.beginnings)
        and not any(lacks)
        and has_kinds(kinds)
    )


def model_of(
    table: arrays.Table, history: tuple[int, int], learner: Learner, rooms: Rooms | None
) -> Model:
    """Return what the engine is told of all jobs; ``history``: users, and their jobs.

    ``learner`` has learned nothing yet. ``rooms``: None on a pool.
    """
    sim, kind, n = table.sim[0], table.settings[0]["kind"], len(table.jobs)
    rules = {name: int(sim[name]) for name in TAKEN}
    # the kernels look at ends to give nodes back
    rules |= {"keeps": int(sim.keeps), "logs": int(sim.learns)}
    rules["asks"] = int(sim.asks == state.EACH_PASS)
    more: dict[str, Any] = {"predicted": table.predicted}
    if rooms is not None:
        more["nodes"] = layout_of_rooms(rooms)
    if len(table.keys):
        more["second_keys"] = table.keys[len(table.keys) - n :]
    if len(table.second_scores):
        more["second_scores"] = table.second_scores.view(np.float64).reshape(n, 2)
    if kind == arrays.ORDERING_KIND:
        more["scores"] = np.tile([0.0, np.inf], (n, 1))  # before a decision
    if kind == arrays.WEIGHTS_KIND:
        parts = table.weighed, table.waiting, table.places, table.serial
        more["features"] = Features(*parts, table.ordered_by)
    if sim.estimate == state.AVERAGE:
        more |= {"users": table.users, "n_users": history[0]}
        rules["last"] = history[1]
    if sim.learns:
        more |= {"users": table.users, "n_users": len(learner.memory)}
        more["learning"] = told_of_learning(_estimators_of(table), learner)
    if sim.holds:
        line = np.zeros(n, state.LINE)
        hold_back(table.jobs, table.ordered_by, table.hold, line)
        more["held"] = np.ascontiguousarray(line["held"])
    jobs = table.jobs.view(np.int64).reshape(n, -1)
    return Model(jobs, int(sim.free), rules, several=True, **more)


class NativeSteps:
    """What steps environments on the native engine, and knows what they are in between.

    Parameters
    ----------
    simulations : whose table it is at present. What steps write of episodes is in the batch at
        once, the rest where :meth:`store` has written it.
    """

    def __init__(self, simulations: Simulations) -> None:
        self.table, self._batch = simulations.table, simulations.batch
        self._estimators = _estimators_of(self.table)
        self._rooms: Rooms | None = simulations.machines.rows
        self._rows = rows_of(self._batch)
        self._stepper = stepper_of(self.table, self._rows, simulations)
        self._actions = simulations.chosen, simulations.numbers
        self._out: arrays.Outputs | None = None
        self._ahead = np.zeros(len(self._batch.window), np.bool_)  # of what stands in the batch
        self._all_ahead = False

    def go_on(self, task: int, first: int, stop: int, workers: int, out: arrays.Outputs) -> None:
        """Do what :func:`hpcgym.envs.kernels.steps.go_on` does."""
        if out is not self._out:
            told: tuple[Any, ...] = out
            self._stepper.look_at(*self._actions, *told)
            self._out = out
        if task == arrays.SHOW:
            for e in range(first, stop):
                if not self._ahead[e]:  # another state has been put there
                    self._load(e)
        elif not self._all_ahead:
            self._ahead[first:stop] = True
            self._all_ahead = bool(self._ahead.all())
        self._stepper.go_on(task, first, stop, workers)

    def take(self, those: slice) -> None:
        """Note that the batch has other states of some simulations, to be shown before all else."""
        self._ahead[those] = self._all_ahead = False

    def load_all(self) -> None:
        """Go on from what stands in the batch, wherever there is an episode."""
        for e in np.flatnonzero(self._batch.episode_state["jobs"]).tolist():
            self._load(e)

    def store(self, e: int) -> None:
        """Write what simulation ``e`` knows into the batch."""
        if not self._ahead[e]:
            return
        self._ahead[e] = self._all_ahead = False
        batch, table, known = self._batch, self.table, self._stepper.state(e)
        batch.sim[e] = self._sim(known)
        batch.blocks[e] = table.blocks
        for name, which in _LISTED:
            _fill(batch.blocks[e], batch.entries[e], which, known[name].reshape(-1, 4))
        n = len(known["progress"]) // 4
        _whole(batch.progress[e])[:n] = known["progress"].reshape(n, 4)
        batch.history[e] = known["past"].reshape(batch.history.shape[1:])
        groups = len(known["idle"]) // 3
        _whole(batch.idle[e])[:groups] = known["idle"].reshape(groups, 3)
        scores = batch.scores[e].view(np.float64).reshape(-1, 2)
        if len(known["scores"]):
            scores[:n] = known["scores"].reshape(n, 2)
        if len(table.second_scores):
            start = batch.episode_state["start"][e]
            batch.scores[e, n : 2 * n] = table.second_scores[start : start + n]
        if table.sim[0].learns:
            self._store_learned(e, n, known)
        if self._rooms is not None:
            store_nodes(self._rooms, e, int(batch.episode_state["start"][e]), n, known)

    def _store_learned(self, e: int, n: int, known: dict[str, Any]) -> None:
        batch = self._batch
        batch.sim["answered"][e] = batch.sim["next"][e]
        batch.ended[e, : len(known["log"])] = known["log"]
        for name in ("memory", "ratios", "seen", "ordered_by", "weights"):
            kept, values = getattr(batch, name)[e], known[name]
            kept.reshape(-1)[: len(values)] = values
        batch.model_sums[e] = known["sums"].reshape(2, 2)
        for k, name in enumerate(("terms", "second_terms")):
            terms = n_terms(self._estimators, k)
            batch.model[e, k, :, :terms] = known[name].reshape(nag.N_ROWS, terms)
        if len(known["second_scores"]):
            scores = batch.scores[e].view(np.float64).reshape(-1, 2)
            scores[n : 2 * n] = known["second_scores"].reshape(n, 2)

    def _learned(self, e: int, n: int) -> dict[str, Any]:
        batch, scored = self._batch, len(self.table.second_scores) > 0
        found = {
            name: getattr(batch, name)[e].reshape(-1) for name in ("memory", "ratios", "weights")
        }
        for k, name in enumerate(("terms", "second_terms")):
            found[name] = batch.model[e, k, :, : n_terms(self._estimators, k)].ravel()
        return found | {
            "log": batch.ended[e, : batch.sim["ended"][e]],
            "seen": batch.seen[e, :n].reshape(-1),
            "ordered_by": batch.ordered_by[e, :n],
            "sums": batch.model_sums[e].reshape(-1),
            "second_scores": batch.scores[e, n : 2 * n if scored else n].view(np.float64),
        }

    def _sim(self, known: dict[str, Any]) -> Any:
        sim = self.table.sim[0].copy()
        for name, value in zip(_NOW, known["now"].tolist(), strict=True):
            sim[name] = value
        sim["pass_due"] = sim["asked"] > state.AN_ORDER
        return sim

    def now(self, e: int) -> Now:
        """Return what has happened in simulation ``e``, and leave the batch as it is.

        Which nodes jobs have had is written where the kernels have it.
        """
        batch = self._batch
        if not self._ahead[e]:
            return now_of(batch, e)
        known = self._stepper.state(e)
        progress = known["progress"].view(batch.progress.dtype)
        if self._rooms is not None:
            start = int(batch.episode_state["start"][e])
            store_cells(self._rooms, e, start, len(progress), known)
        idle = known["idle"].view(batch.idle.dtype)
        ordered_by = known["ordered_by"] if batch.ordered_by.size else None
        return Now(self._sim(known), progress, idle, ordered_by)

    @property
    def nbytes(self) -> int:
        """Memory of the simulations, and of what steps write of episodes [bytes]."""
        return self._stepper.nbytes + sum(array.nbytes for array in self._rows.values())

    def _load(self, e: int) -> None:
        """Go on from what stands in the batch."""
        batch = self._batch
        sim, n = batch.sim[e], int(batch.episode_state["jobs"][e])
        selects = sim.primary == state.SELECTION
        listed = {name: _flat(batch.blocks[e], batch.entries[e], k) for name, k in _LISTED}
        start = int(batch.episode_state["start"][e])
        nodes = {}
        if self._rooms is not None:
            nodes = nodes_to_load(row_of(self._rooms, e, start, start + n), n)
        self._stepper.set_state(
            e,
            {
                "now": np.array([sim[name] for name in _NOW]),
                "progress": _whole(batch.progress[e])[:n],
                "past": batch.history[e].reshape(-1),
                "idle": np.ascontiguousarray(_whole(batch.idle[e])[: sim.groups]),
                "scores": batch.scores[e, : 0 if selects else n].view(np.float64),
                **listed,
                **(self._learned(e, n) if sim.learns else {}),
                **nodes,
            },
        )
        self._ahead[e] = True


def _estimators_of(table: arrays.Table) -> Estimators:
    return Estimators(*(getattr(table, name) for name in Estimators._fields))


def _whole(records: NDArray[np.void]) -> NDArray[np.int64]:
    """Return records of whole numbers as rows."""
    return records.view(np.int64).reshape(-1, records.dtype.itemsize // 8)


def _blocks(blocks: NDArray[np.void], which: int, number: int) -> NDArray[np.int64]:
    """Return the first blocks of a list, in order."""
    first = int(blocks["first"][which])
    order: NDArray[np.int64] = blocks["order"][first : first + number]
    return order


def _flat(blocks: NDArray[np.void], entries: NDArray[np.void], which: int) -> NDArray[np.int64]:
    """Return the entries of a list, one behind the other."""
    used = _blocks(blocks, which, int(blocks["in_use"][which]))
    counts = blocks["count"][used]
    parts = [entries[b * BLOCK : b * BLOCK + n] for b, n in zip(used.tolist(), counts, strict=True)]
    return _whole(np.concatenate(parts)).reshape(-1)


def _fill(
    blocks: NDArray[np.void], entries: NDArray[np.void], which: int, rows: NDArray[np.int64]
) -> None:
    """Write entries into an empty list."""
    number = max(-(-len(rows) // BLOCK), 1)
    blocks["in_use"][which] = number
    for k, block in enumerate(_blocks(blocks, which, number).tolist()):
        part = rows[k * BLOCK : (k + 1) * BLOCK]
        _whole(entries)[block * BLOCK : block * BLOCK + len(part)] = part
        least = part.min(axis=0, initial=NOTHING)
        blocks["count"][block], blocks["sum_width"][block] = len(part), part[:, 2].sum()
        blocks["least_span"][block], blocks["least_width"][block] = least[1], least[2]


def _beginnings(simulations: Simulations, before: Before) -> list[dict[str, Any]]:
    """Return the states with which episodes begin, as the engine takes them."""
    table, learner, rooms = simulations.table, simulations.learner, simulations.machines.rows
    found, by, start = [], _estimators_of(table), 0
    parts = simulations.episodes.beginnings
    for s, (sim, number) in enumerate(zip(before.sim, before.number.tolist(), strict=True)):
        blocks, entries = before.blocks[s], before.entries[s]
        one = {
            "when": np.array([before.time[s], number, before.due[s]]),
            "now": np.array([sim[name] for name in _NOW]),
            "progress": _whole(before.progress[s])[:number],
            "running": _flat(blocks, entries, int(state.RUNNING)),
            "queue": np.zeros(0, np.int64),
            "past": before.history[s].reshape(-1),
            "idle": np.zeros(0, np.int64),
            "scores": np.zeros(0),
        }
        if table.sim[0].learns:
            for name in ("memory", "ratios"):
                one[name] = getattr(before, name)[s].reshape(-1)
            for k, name in enumerate(("terms", "second_terms")):
                one[name] = before.model[s, k, :, : n_terms(by, k)].ravel()
            one |= {
                "log": np.zeros(0, np.int64),  # all that ended before has been learned from
                "seen": before.seen[s, :number].reshape(-1),
                "ordered_by": before.ordered_by[s, :number],
                "sums": before.model_sums[s].reshape(-1),
                "weights": learner.weights.reshape(-1),
                "second_scores": np.zeros(0),
            }
        if rooms is not None:  # they stand behind those of the simulations
            nodes = row_of(rooms, len(simulations.batch.window) + s, start, start + number)
            one |= nodes_to_load(nodes, number)
        start += len(parts[s])
        found.append(one)
    return found


def rows_of(batch: arrays.Batch) -> dict[str, NDArray[Any]]:
    """Return the arrays into which the engine writes of episodes."""
    rows = {name: getattr(batch, name) for name in _ROWS}
    for name in ("counted_j", "begun_j"):
        rows[name] = getattr(batch, name).reshape(-1, 1)
    rows["episode_state"] = batch.episode_state.view(np.int64).reshape(len(batch.window), -1)
    return rows


def stepper_of(
    table: arrays.Table, rows: dict[str, NDArray[Any]], simulations: Simulations
) -> Stepper:
    """Return what steps environments."""
    told = {name: getattr(table, name) for name in ("codes", "columns", "ordered_by", "watts")}
    told |= {"settings": table.settings.view(np.int64), "shapes": table.shapes}
    told |= {"reward_weights": table.reward_weights, "formulas": table.formulas}
    told |= {"node_watts": table.node_watts, "still_w": table.still_w}
    before = simulations.before
    begins = [] if before is None else _beginnings(simulations, before)
    history, rooms = simulations.batch.history.shape[1:], simulations.machines.rows
    model = model_of(table, history, simulations.learner, rooms)
    return Stepper(model, told, rows, begins)
