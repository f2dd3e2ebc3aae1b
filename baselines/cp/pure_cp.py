"""Pure CP: constraint programming decides when jobs start and where.

Remediani 2017, section 4.3. The cumulatives of CPH, and for each unit an alternative over the nodes
(equations 4.9, 4.10, 4.11 and 4.13); the units of a job may share a node. It minimises the waits
over the queues' expected waits (4.14) or the slowdowns (4.12). Variants 0 and 2 use the solver's
own search, 1 and 3 branch on the jobs of the highest slowdown (4.3).

PCP'19 (Galleguillos 2020, section 2.2) is variant 3 with nodes of the plan chosen by best fit; the
variables and constraints of both are in :mod:`hpcgym.baselines.cp.node_model`.
"""

from __future__ import annotations

from functools import partial

from hpcgym.baselines.cp import node_model
from hpcgym.baselines.cp.dispatcher import CPDispatcher
from hpcgym.baselines.cp.objective import relative_wait
from hpcgym.baselines.cp.pool_model import Model, branch_on_starts, schedule
from hpcgym.baselines.cp.problem import Problem
from hpcgym.baselines.cp.solve import Limits
from hpcgym.baselines.cp.variants import variant


def build(problem: Problem, *, branches: bool) -> Model:
    """Return the model of a problem; ``branches``: with a search on the starts."""
    model = schedule(problem)
    node_model.allocate(model, problem)
    if branches:
        branch_on_starts(model)
    return model


class PureCP(CPDispatcher):
    """Pure CP as a dispatcher, variant 0 to 3."""

    def __init__(self, number: int, limits: Limits | None = None) -> None:
        chosen = variant(number, relative_wait)
        named = number in (1, 3)
        super().__init__(
            f"cp-{number}",
            partial(build, branches=named),
            chosen.order,
            chosen.objective,
            limits,
            fixed=named,
        )
