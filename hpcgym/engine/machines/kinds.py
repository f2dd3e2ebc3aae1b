"""The kinds of machines: what each gives to the one loop, and to what answers it."""

from __future__ import annotations

from typing import Any, NamedTuple

from hpcgym.engine.answers.shares import usage_by_clock
from hpcgym.engine.machines.corun import easy as corun_easy
from hpcgym.engine.machines.limited import easy as limited_easy
from hpcgym.engine.machines.nodes import conservative as nodes_conservative
from hpcgym.engine.machines.nodes import easy as nodes_easy
from hpcgym.engine.machines.nodes import failures as nodes_failing
from hpcgym.engine.machines.pool import conservative as pool_conservative
from hpcgym.engine.machines.pool import easy as pool_easy


class Kind(NamedTuple):
    """A kind of machine.

    Attributes
    ----------
    easy : the loop with no reservation or one, of :func:`hpcgym.engine.loop.loop_of`.
    conservative : the loop with a reservation for each queued job, or None.
    usage_of : what :func:`hpcgym.engine.answers.shares.counting` takes.
    """

    easy: Any
    conservative: Any
    usage_of: Any


#: processors that are all alike; its machine is an empty tuple
POOL = Kind(pool_easy.run, pool_conservative.run, usage_by_clock)
#: :class:`hpcgym.engine.machines.nodes.placement.Nodes`
NODES = Kind(nodes_easy.run, nodes_conservative.run, usage_by_clock)
#: :class:`hpcgym.engine.machines.nodes.failures.FailingNodes`
FAILING = Kind(nodes_failing.run, None, usage_by_clock)
#: :class:`hpcgym.engine.machines.limited.state.LimitedNodes`
LIMITED = Kind(limited_easy.run, None, limited_easy.usage_at_level)
#: :class:`hpcgym.engine.machines.corun.state.CorunNodes`
CORUN = Kind(corun_easy.run, None, corun_easy.usage_beside)
