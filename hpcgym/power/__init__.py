"""Power over time and who is charged with the energy; planning under caps; carbon and prices."""

from hpcgym.power.limits import EnergyBudget, PowerCap
from hpcgym.power.states import NodeStates

__all__ = ["EnergyBudget", "NodeStates", "PowerCap"]
