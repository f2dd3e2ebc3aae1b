"""What a submission keeps of trainings: how each went, and the agent that came out of it.

In its folder ``trainings/TASK/SEED.csv`` is the curve, a row for each time that the agent told its
numbers, and beside it lies the agent's own file, ``.json`` or ``.pt``. They prove nothing: a
submission without them is as good.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcgym.agents import TRAINED, ending_of
from hpcgym.agents.logs import csv_log
from hpcgym.suite.agents import Player

TRAININGS = "trainings"


def made(who: Player, agent: str, folder: Path, task: str, seed: int) -> Any:
    """Return the policy of a seed; what its training leaves is kept in a submission's folder.

    Parameters
    ----------
    who : of :func:`hpcgym.suite.agents.player`.
    agent : what it was called there.
    folder : of the submission.
    """
    if not who.trained:
        return who.make(seed)
    place = folder / TRAININGS / task
    policy = who.make(seed, csv_log(place / f"{seed}.csv"))
    if callable(getattr(policy, "save", None)):
        place.mkdir(parents=True, exist_ok=True)
        policy.save(place / f"{seed}{ending_of(agent) if agent in TRAINED else ''}")
    return policy
