"""PCP'19: jobs and their units in one model, with a variable for each place a unit can have.

Galleguillos 2020, section 2.2. The scheduling model (cumulatives over the whole machine), the
allocation model (alternatives over the nodes), total slowdown, and a search on the jobs of highest
priority: their slowdown if they started now. Conditional interval variables are CP-SAT's optional
intervals, whose start is their job's own. The search strategy covers the starts; the allocation is
left to the solver's default order.

Pure CP (Remediani 2017, section 4.3) has the same variables and constraints, in variants 1 and 3
the same search, and in 2 and 3 the same objective. What differs is that nodes of the plan are
chosen by best fit here.
"""

from __future__ import annotations

from hpcgym.baselines.cp import node_model
from hpcgym.baselines.cp.dispatcher import CPDispatcher
from hpcgym.baselines.cp.objective import slowdown
from hpcgym.baselines.cp.pool_model import Model, branch_on_starts, schedule
from hpcgym.baselines.cp.problem import Problem
from hpcgym.baselines.cp.solve import Limits
from hpcgym.baselines.dispatchers import sdprb


def build(problem: Problem) -> Model:
    """Return the model of a problem."""
    model = schedule(problem)
    node_model.allocate(model, problem)
    branch_on_starts(model)
    return model


class PCP19(CPDispatcher):
    """PCP'19 as a dispatcher."""

    own_nodes = True

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__("pcp19", build, sdprb, slowdown, limits)
