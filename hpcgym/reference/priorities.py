"""Slurm's multifactor priority of a job, worked out as its page says.

https://slurm.schedmd.com/priority_multifactor.html: the sum of weighted factors from 0 to 1, less
the nice of the job. No priority is below 1, which is the lowest of a job that is not held. Jobs in
a partition of a higher tier come first, whatever their priorities.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hpcgym.reference.jobs import Job

_ABOVE_ALL = 10**12  # no priority comes near it


class MultifactorPriority:
    """A policy of the reference: tier and priority; all numbers are exact.

    Parameters
    ----------
    weights : of age, job size and partition.
    max_age : seconds from which on a job is as old as can be.
    processors : of the machine.
    partitions : tier and factor of each.
    partition, nice : of each job; an unknown nice is -1, and counts as 0.
    """

    def __init__(
        self,
        weights: Sequence[int],
        max_age: int,
        processors: int,
        partitions: Sequence[tuple[int, int]],
        partition: Sequence[int],
        nice: Sequence[int],
    ) -> None:
        self.weights, self.max_age, self.processors = weights, max_age, processors
        self.partitions, self.partition, self.nice = partitions, partition, nice

    def begin(self, simulation: Any) -> None:
        """Look at nothing that has terminated."""

    def __call__(self, job: Job, now: int) -> Fraction:
        """Return the score of a job: the highest is first."""
        tier, factor = self.partitions[self.partition[job.number]]
        greatest = max(factor for _, factor in self.partitions) or 1
        factors = (
            min(Fraction(now - job.submit, self.max_age), Fraction(1)),
            Fraction(job.processors, self.processors),
            Fraction(factor, greatest),
        )
        priority = sum(
            (weight * one for weight, one in zip(self.weights, factors, strict=True)), Fraction(0)
        )
        nice = self.nice[job.number]
        priority -= 0 if nice == -1 else nice
        return tier * _ABOVE_ALL + max(priority, Fraction(1))
