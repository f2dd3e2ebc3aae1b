"""The kinds of machines: what each gives to the one loop, and to what answers it."""

from __future__ import annotations

from typing import Any, NamedTuple

from hpcgym.engine.answers.told import BY_CLOCK, Told
from hpcgym.engine.machines.corun import easy as corun_easy
from hpcgym.engine.machines.limited import easy as limited_easy
from hpcgym.engine.machines.nodes import conservative as nodes_conservative
from hpcgym.engine.machines.nodes import easy as nodes_easy
from hpcgym.engine.machines.nodes import failures as nodes_failing
from hpcgym.engine.machines.nodes import planned as nodes_planned
from hpcgym.engine.machines.pool import conservative as pool_conservative
from hpcgym.engine.machines.pool import easy as pool_easy
from hpcgym.engine.machines.pool import planned as pool_planned
from hpcgym.engine.passes.preempting import PREEMPTING
from hpcgym.engine.passes.restricted import RESTRICTED
from hpcgym.engine.state import UNLIMITED


class Kind(NamedTuple):
    """A kind of machine.

    Attributes
    ----------
    easy : the loop with no reservation or one, of :func:`hpcgym.engine.loop.loop_of`.
    told : what the machine tells those who answer.
    planned : the loop with reservations for some queued jobs, made anew at each pass, or None.
    conservative : the loop with a reservation for each queued job, or None.
    """

    easy: Any
    told: Told
    planned: Any = None
    conservative: Any = None

    def loop_of(self, sim: Any) -> Any:
        """Return the loop for the rules of a simulation, its SIM."""
        if sim.tested > 0:
            return self.planned
        return self.conservative if sim.depth == UNLIMITED else self.easy


#: processors that are all alike; its machine is an empty tuple
POOL = Kind(pool_easy.run, BY_CLOCK, pool_planned.run, pool_conservative.run)
#: :class:`hpcgym.engine.machines.nodes.placement.Nodes`
NODES = Kind(nodes_easy.run, BY_CLOCK, nodes_planned.run, nodes_conservative.run)
#: :class:`hpcgym.engine.machines.nodes.failures.FailingNodes`
FAILING = Kind(nodes_failing.run, BY_CLOCK)
#: :class:`hpcgym.engine.machines.limited.state.LimitedNodes`
LIMITED = Kind(limited_easy.run, Told(limited_easy.usage_at_level))
#: :class:`hpcgym.engine.machines.corun.state.CorunNodes`
CORUN = Kind(corun_easy.run, Told(corun_easy.usage_beside))
#: :class:`hpcgym.engine.passes.restricted.Restricted` of a pool, and of nodes
POOL_RESTRICTED = Kind(None, RESTRICTED, pool_planned.run_restricted)
NODES_RESTRICTED = Kind(None, RESTRICTED, nodes_planned.run_restricted)
#: :class:`hpcgym.engine.passes.preempting.Preempting` of a pool, and of nodes
POOL_PREEMPTING = Kind(None, PREEMPTING, pool_planned.run_preempting)
NODES_PREEMPTING = Kind(None, PREEMPTING, nodes_planned.run_preempting)
