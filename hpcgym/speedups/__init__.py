"""Speedups of codes that share nodes: measured, generated, learned."""

from hpcgym.speedups.files import find_speedups, generate_speedups, read_speedups, write_speedups
from hpcgym.speedups.heatmap import Heatmap
from hpcgym.speedups.learned import LearnedSpeedups, PairRegression, pair_features

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
