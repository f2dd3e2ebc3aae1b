"""Back-filling as Slurm's ``sched/backfill`` does it: from time to time, over the first jobs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from hpcgym.errors import HpcgymError, is_number, unknown

NAME = "slurm"
_MOST = 10**9
_MAY_BE_ZERO = ("bf_job_part_count_reserve", "bf_window_linear", "bf_max_job_user")


@dataclass(frozen=True)
class SlurmBackfill:
    """Slurm's way to back-fill: at events jobs start in order; others start from time to time.

    docs/slurm.md says which schedules it makes, and what Slurm does beside that.

    Attributes
    ----------
    bf_interval : [s] from one pass that back-fills to the next.
    bf_max_job_test : how many queued jobs such a pass looks at.
    bf_window : [min] from the pass on in which reservations begin.
    bf_job_part_count_reserve : how many jobs may have reservations; 0: all that are looked at.
    bf_resolution : [s] plans have reservations begin and end at multiples of it.
    bf_window_linear : [s] by which the spans grow within which running jobs count as ending
        together, as Slurm tries when a job can start; 0: they double.
    bf_max_job_user : how many queued jobs of one user such a pass looks at; 0: any number. It skips
        the others, which do not count in ``bf_max_job_test``.
    default_queue_depth : how many queued jobs a pass at an event looks at, and one more, as Slurm
        counts.
    sched_interval : [s] at multiples of it such a pass looks at all queued jobs.

    Raises
    ------
    HpcgymError : a value that is no whole number, or out of its bounds.

    Examples
    --------
    >>> from hpcgym.scheduler.slurm_backfill import SlurmBackfill
    >>> print(SlurmBackfill(bf_interval=60, bf_max_job_test=1000))
    slurm:bf_interval=60+bf_max_job_test=1000
    >>> print(SlurmBackfill())
    slurm
    """

    bf_interval: int = 30
    bf_max_job_test: int = 500
    bf_window: int = 1440
    bf_job_part_count_reserve: int = 0
    bf_resolution: int = 60
    bf_window_linear: int = 0
    bf_max_job_user: int = 0
    default_queue_depth: int = 100
    sched_interval: int = 60

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least = 0 if each.name in _MAY_BE_ZERO else 1
            if not (is_number(value) and least <= value <= _MOST and value == int(value)):
                raise HpcgymError(
                    f"backfill: {each.name} must be a whole number from {least} to {_MOST:,}, not"
                    f" {value!r}"
                )
            object.__setattr__(self, each.name, int(value))

    def __str__(self) -> str:
        usual = SlurmBackfill()
        said = [
            f"{each.name}={getattr(self, each.name)}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(usual, each.name)
        ]
        return ":".join([NAME, "+".join(said)]) if said else NAME

    @property
    def reservations(self) -> int:
        """How many jobs may have reservations."""
        return min(self.bf_job_part_count_reserve or self.bf_max_job_test, self.bf_max_job_test)

    @classmethod
    def parse(cls, text: str) -> SlurmBackfill | None:
        """Return what a text says, such as ``slurm:bf_interval=60``; None if it is another rule.

        Raises
        ------
        HpcgymError : an unknown setting, none behind a colon, one that stands twice, or a value
            that it cannot have.
        """
        name, _, rest = text.partition(":")
        if name != NAME:
            return None
        if "," in rest:
            raise HpcgymError(
                f"backfill {text!r}: settings of slurm are joined by +, not by commas, as in"
                " slurm:bf_interval=60+bf_window=2880"
            )
        if text != NAME and not rest.strip():
            raise HpcgymError(
                f"backfill {text!r}: a setting is missing behind it, such as bf_interval=60; slurm"
                " alone has Slurm's own"
            )
        known = [each.name for each in fields(cls)]
        found: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in rest.split("+"))):
            key, _, value = (piece.strip() for piece in part.partition("="))
            if key not in known:
                raise HpcgymError(f"backfill {text!r}: {unknown('setting', key, known)}")
            if key in found:
                raise HpcgymError(f"backfill {text!r}: {key} is there twice")
            found[key] = int(value) if value.isascii() and value.isdigit() else value
        return cls(**found)
