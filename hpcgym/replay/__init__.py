"""Traces replayed on an unmodified Slurm, beside their simulation by the same rules."""

from hpcgym.replay.run import Replay, facts_of, replay_on_slurm, table_of

__all__ = ["Replay", "facts_of", "replay_on_slurm", "table_of"]
