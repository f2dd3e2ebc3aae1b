"""Snapshots of environments: to go on from later, here or elsewhere, or with the future hidden."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core.base import SHAPES_KIND
from hpcgym.envs.core.model import World
from hpcgym.envs.core.simulations import Kept, Simulations
from hpcgym.errors import HpcgymError


class Snapshot(NamedTuple):
    """The state of one simulation; its arrays are copies."""

    rows: dict[str, NDArray[Any]]  # what steps write of an episode, by name
    name: str  # of the episode
    owner: tuple[int, ...]  # the same for environments with the same episode and rules
    kept: Kept
    hides: bool = False
    generator: Any = None  # the state of what draws episodes, of a single environment
    limits: Any = ()  # of the episode
    world: World | None = None  # of its log, if that was drawn

    def __repr__(self) -> str:
        return f"Snapshot({self.name!r}, hides={self.hides})"


def save_row(
    simulations: Simulations, e: int, generator: np.random.Generator | None = None
) -> Snapshot:
    """Return a copy of simulation ``e``."""
    return Snapshot(
        rows=simulations.written(e),
        name=simulations.names[e],
        owner=simulations.fingerprint(simulations.played(e)),
        kept=simulations.kept(e),
        hides=simulations.hides(e),
        generator=None if generator is None else generator.bit_generator.state,
        limits=simulations.limits[e],
        world=simulations.drawn_world(e),
    )


def check_owner(simulations: Simulations, e: int, snapshot: Snapshot) -> None:
    """Raise unless a snapshot is of simulation ``e``, or of others with the same arguments."""
    if not isinstance(snapshot, Snapshot):
        raise HpcgymError(f"snapshot must be what snapshot() returned, not {type(snapshot)}")
    log, world = snapshot.world or simulations.world(e), None
    if snapshot.world is None or log.is_like(simulations.worlds[0]):
        with suppress(HpcgymError):  # the log has no episode of this name
            world = simulations.world_to_play(log, snapshot.name)
    if world is None or snapshot.owner != simulations.fingerprint(world):
        raise HpcgymError("snapshot: it is of an environment with other jobs or arguments")


def restore_row(simulations: Simulations, e: int, snapshot: Snapshot) -> None:
    """Make simulation ``e`` what it was when the snapshot was taken.

    What it shows is to be told then: ``simulations.show``.
    """
    simulations.widen({name: len(row) for name, row in snapshot.rows.items()})
    simulations.play_at_once(e, snapshot.world, snapshot.name)
    simulations.names[e], simulations.limits[e] = snapshot.name, snapshot.limits
    simulations.put(e, snapshot.kept, snapshot.rows)


_CANNOT_HIDE = (
    "snapshot: the future can be hidden on pools of processors only, without quotas, windows,"
    " dependencies and preemption"
)


def hidden(simulations: Simulations, e: int, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of simulation ``e`` with predictions for what is not known yet.

    Jobs that have not ended run for their predicted run times, and jobs that have not been
    submitted are no more: rewards are scaled as for an episode of the known jobs.
    """
    if simulations.kind == SHAPES_KIND:
        raise HpcgymError("snapshot: the future cannot be hidden where an agent submits jobs")
    try:
        simulation = snapshot.kept.hidden()
    except ValueError:
        raise HpcgymError(_CANNOT_HIDE) from None
    rows = {name: row.copy() for name, row in snapshot.rows.items()}
    simulations.hide(e, rows, simulation)
    return snapshot._replace(rows=rows, hides=True, kept=Kept(simulation, True))
