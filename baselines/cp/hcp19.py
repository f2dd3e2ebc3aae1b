"""HCP'19: constraint programming decides when jobs start, best fit decides where.

Galleguillos 2020, section 1. The scheduling model of PCP'19 (section 2.2) treats resources of one
type as a pool over all nodes; the jobs that start now then go to nodes by best fit, in the order of
their priority, and one for which no nodes are found is postponed to the next pass: there is no
iteration between the two stages.

The model is that of CPH (Remediani 2017, section 4.2) with slowdown in the search and the
objective; what differs is best fit. PCP'19 adds the allocation to it.
"""

from __future__ import annotations

from hpcgym.baselines.cp.dispatcher import CPDispatcher
from hpcgym.baselines.cp.objective import slowdown
from hpcgym.baselines.cp.pool_model import Model, branch_on_starts, schedule
from hpcgym.baselines.cp.problem import Problem
from hpcgym.baselines.cp.solve import POOLED, Limits
from hpcgym.baselines.dispatchers import sdprb


def build(problem: Problem) -> Model:
    """Return the model of a problem."""
    model = schedule(problem)
    branch_on_starts(model)
    return model


class HCP19(CPDispatcher):
    """HCP'19 as a dispatcher."""

    own_nodes = True
    pooled = True
    usual = POOLED

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__("hcp19", build, sdprb, slowdown, limits)
