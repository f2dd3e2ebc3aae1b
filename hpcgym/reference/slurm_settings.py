"""The settings of Slurm's backfilling, read from the rule."""

from __future__ import annotations


def settings_of_slurm(backfill: str) -> dict[str, int] | None:
    """Return the settings of rule 23; None of another rule."""
    name, _, text = backfill.partition(":")
    if name != "slurm":
        return None
    usual = {"bf_interval": 30, "bf_max_job_test": 500, "bf_window": 1440}
    usual |= {"bf_resolution": 60, "bf_window_linear": 0}
    usual |= {"default_queue_depth": 100, "sched_interval": 60}
    given = dict(part.split("=") for part in text.split("+") if part)
    usual |= {"bf_job_part_count_reserve": 0, "bf_max_job_user": 0}
    return {**usual, **{k: int(v) for k, v in given.items()}}
