"""Numbers that compiled environments share with the rest of the library."""

from hpcgym.schedule.bounded_slowdown import TAU_S

__all__ = ["TAU_S"]
