"""CPH: constraint programming decides when jobs start, a heuristic decides where.

Remediani 2017, section 4.2. The relaxed model has one cumulative for each resource type, over the
whole machine (equations 4.7 and 4.8), and minimises the waits weighted by the queues' expected
waits (4.6) or the slowdowns (4.12); the search follows the priority of PRB (4.4) or the slowdown
(4.3). The jobs that start now go to the first nodes that hold them, in the order of priority.
Equations 4.9 to 4.11, for units on nodes, are in pure CP: the section says that CPH solves the
relaxation.

HCP'19 has the same variables, constraints and search. There the objective is slowdown, the order
of the jobs that of the slowdown, and the nodes are chosen by best fit: ``cph-3`` with best fit.
"""

from __future__ import annotations

from hpcgym.baselines.cp.dispatcher import CPDispatcher
from hpcgym.baselines.cp.objective import weighted_wait
from hpcgym.baselines.cp.pool_model import Model, branch_on_starts, schedule
from hpcgym.baselines.cp.problem import Problem
from hpcgym.baselines.cp.solve import POOLED, Limits
from hpcgym.baselines.cp.variants import variant


def build(problem: Problem) -> Model:
    """Return the model of a problem."""
    model = schedule(problem)
    branch_on_starts(model)
    return model


class CPH(CPDispatcher):
    """CPH as a dispatcher, variant 0 to 3."""

    pooled = True
    usual = POOLED

    def __init__(self, number: int, limits: Limits | None = None) -> None:
        chosen = variant(number, weighted_wait)
        super().__init__(f"cph-{number}", build, chosen.order, chosen.objective, limits)
