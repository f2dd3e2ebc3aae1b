"""What jobs run on."""

from hpcgym.cluster.pool import Cluster

__all__ = ["Cluster"]
