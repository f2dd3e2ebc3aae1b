"""A network that learns to order the queue, by evolution on replays.

It scores a job by twelve numbers of the job, its user and the state, see
:mod:`hpcgym.scheduler.policies.networks`, and the engine works out the scores. The outputs of its
hidden units begin at 0, so that its order is at first that of the scheduler ``aged``. Its weights,
and how much long jobs leave free (``hold``), are searched by pairs of opposite moves with steps of
Adam, on the replays of :mod:`hpcgym.agents.replays`.

>>> from hpcgym.agents.net_es import NetEs
>>> from hpcgym.agents.practice import maker
>>> make = maker("lublin:jobs=2000,processors=64,load=0.4", "hpcgym/QueueOrdering-v2", {})
>>> agent = NetEs(units=4, population=4).train(make, seed=0, steps=10_000)
>>> agent.network.to_vector().shape
(68,)
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hpcgym.agents.evolution import Evolution, Numbers, PairedEs
from hpcgym.agents.practice import Make
from hpcgym.agents.replays import ReplaySearch, held
from hpcgym.agents.settings import NetEsSettings, takes
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.files import network_scheduler
from hpcgym.scheduler.policies.networks import Network, aged_network, write_network
from hpcgym.scheduler.rules import Scheduler

NAME = "net-es"

_HOLD = Hold(0.01, by="both")
#: How far one unit of a search moves a weight: of inputs in the score, of hidden units, and of
#: their outputs.
_SKIP, _HIDDEN, _OUTPUT = 0.5, 0.35, 0.3


@takes(NetEsSettings)
class NetEs(ReplaySearch):
    """A network and its search.

    Parameters
    ----------
    **settings : those of :class:`hpcgym.agents.settings.NetEsSettings`.

    Attributes
    ----------
    vector : (n,) float64, how far the weights, and last the hold's share, are from where they
        began, in units of the search.
    """

    name = NAME
    about = "a network over twelve numbers of a job and the state, evolved on replays"
    #: For selecting jobs it learns the same as for ordering them.
    trains_as: ClassVar[dict[str, str]] = {"select": "order"}

    plan: NetEsSettings

    def __init__(self, **settings: Any) -> None:
        self.plan = NetEsSettings(**settings)
        self._start(0)

    def __repr__(self) -> str:
        return f"NetEs(units={self.plan.units})"

    @property
    def network(self) -> Network:
        """The network, with the rules beside it."""
        return self._network_of(self.vector)

    def begin(self, make: Make, seed: int) -> None:
        """Begin with the order of ``aged``, and hidden units drawn by the seed.

        Raises
        ------
        HpcgymError : an agent decides something else there than which job comes first.
        """
        _check(make.kind)
        self._start(seed)

    def scheduler_of(self, vector: Numbers) -> Scheduler:
        """Return the scheduler whose policy is the network of a vector."""
        return network_scheduler(self._network_of(vector))

    def evolution(self, seed: int) -> Evolution:
        """Return the search by pairs."""
        plan = self.plan
        return PairedEs(self.vector, plan.sigma, plan.population, plan.step, seed)

    def check(self, env: Any) -> str:
        """Return the rule that the network is in an environment.

        Raises
        ------
        HpcgymError : as of :meth:`begin`.
        """
        _check(env.unwrapped.action_kind)
        return "policy"

    def save(self, path: str | Path) -> None:
        """Write the network, which ``network:FILE`` names as a policy; the path ends in .json."""
        write_network(path, self.network)

    def _start(self, seed: int) -> None:
        network = aged_network(self.plan.units, seed)
        n, h = len(network.inputs), len(network.bias)
        self._begun = network
        self._reach = np.repeat([_SKIP, _HIDDEN, _OUTPUT], [n, h * n + h, h])
        self.vector = np.zeros(len(self._reach) + 1)

    def _network_of(self, vector: Numbers) -> Network:
        weights = self._begun.to_vector() + self._reach * vector[:-1]
        trained = {"by": NAME, "settings": vars(self.plan)}
        rules = {**self._begun.rules, "hold": held(_HOLD, float(vector[-1])).table()}
        return replace(self._begun.from_vector(weights, trained), rules=rules)


def _check(kind: str) -> None:
    if kind not in ("order", "select"):
        raise HpcgymError(f"{NAME} learns an order of the queue, and none acts there")
