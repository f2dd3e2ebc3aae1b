"""Speedups of codes that share nodes: measured, generated, learned."""

from hpcgym.coscheduling.files import read_speedups, write_speedups
from hpcgym.coscheduling.generated import find_speedups, generate_speedups
from hpcgym.coscheduling.heatmap import Heatmap
from hpcgym.coscheduling.learned import LearnedSpeedups, PairRegression, pair_features

__all__ = [
    "Heatmap",
    "LearnedSpeedups",
    "PairRegression",
    "find_speedups",
    "generate_speedups",
    "pair_features",
    "read_speedups",
    "write_speedups",
]
