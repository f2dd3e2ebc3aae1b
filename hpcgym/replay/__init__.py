"""Traces replayed on an unmodified Slurm, beside their simulation by the same rules."""

from hpcgym.replay.differences import facts_of, table_of
from hpcgym.replay.run import Replay, replay_on_slurm

__all__ = ["Replay", "facts_of", "replay_on_slurm", "table_of"]
