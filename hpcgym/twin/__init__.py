"""A twin beside a Slurm that runs: forecasts of all waiting jobs, scored as they start.

``record`` keeps what was said and what came of it in a file, ``polls`` looks, says and learns,
``policies`` asks what other rules would do, and ``serving`` answers a page and programs.
"""

from hpcgym.twin.polls import Twin, TwinPoll

__all__ = ["Twin", "TwinPoll"]
