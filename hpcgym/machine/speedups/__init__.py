"""Speedups of codes that share nodes: measured, generated, learned."""

from hpcgym.machine.speedups.files import (
    find_speedups,
    generate_speedups,
    read_speedups,
    write_speedups,
)
from hpcgym.machine.speedups.heatmap import Heatmap
from hpcgym.machine.speedups.learned import LearnedSpeedups, PairRegression, pair_features

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
