"""What policies that do not learn reach in the environments: the reference scores of their pages.

Each table has rows that its command prints with hpcgym 0.1.0, rounded, and without what is said of
back-filling behind their names.
"""

from __future__ import annotations

from typing import NamedTuple


class Reference(NamedTuple):
    """A command, and the rows that it prints: policy, mean bounded slowdown, mean wait [h]."""

    command: str
    slices: str
    rows: tuple[tuple[str, float, float, float, float], ...]

    def __str__(self) -> str:
        lines = [
            f"| `{name}` | {mean:.1f} ({low:.1f} to {high:.1f}) | {wait:.2f} |"
            for name, mean, low, high, wait in self.rows
        ]
        table = "\n".join(
            ("| policy | mean bounded slowdown | mean wait [h] |", "|---|---|---|", *lines)
        )
        return (
            f"Scores of some policies that do not learn, on {self.slices}, with 95 % intervals:\n\n"
            f"```sh\nhpcgym evaluate {self.command}\n```\n\n{table}"
        )


_WINDOWS = "50 unseen windows of 256 jobs"
_WEEKS = "20 unseen weeks of KTH-SP2"
_GENERATED = "--workload lublin:jobs=10000,processors=256,seed=0 --number 50"
_QUEUE = (
    ("saf", 32.7, 7.1, 72.4, 0.31),
    ("f1", 34.1, 8.4, 73.6, 0.31),
    ("best-static", 34.7, 8.9, 74.0, 0.33),
    ("sjf", 86.3, 39.7, 141.4, 0.67),
    ("wfp3", 87.3, 45.9, 136.2, 0.71),
    ("easy", 121.8, 71.1, 177.8, 0.93),
    ("fcfs", 607.3, 389.6, 840.3, 3.75),
)

#: Class of an environment -> its scores.
SCORES = {
    "JobSelection": Reference(
        f"fcfs sjf saf wfp3 f1 --env JobSelection {_GENERATED}",
        _WINDOWS,
        (*_QUEUE[:3], ("random (acting)", 37.4, 10.0, 78.8, 0.34), *_QUEUE[3:]),
    ),
    "QueueOrdering": Reference(
        f"fcfs sjf saf wfp3 f1 --env QueueOrdering {_GENERATED}",
        _WINDOWS,
        (*_QUEUE[:3], ("random (acting)", 36.4, 10.3, 76.5, 0.34), *_QUEUE[3:]),
    ),
    "MixedPolicy": Reference(
        f"fcfs sjf saf wfp3 f1 --env MixedPolicy {_GENERATED}",
        _WINDOWS,
        (
            ("saf", 32.8, 7.0, 72.8, 0.31),
            ("f1", 34.2, 8.4, 73.7, 0.31),
            ("best-static", 34.7, 8.9, 74.1, 0.33),
            ("random (acting)", 75.1, 31.8, 127.7, 0.57),
            ("sjf", 85.6, 39.7, 138.5, 0.68),
            ("wfp3", 88.4, 46.4, 137.2, 0.72),
            *_QUEUE[5:],
        ),
    ),
    "PowerCapEnv": Reference(
        "--env PowerCap --share 0.6 --workload KTH-SP2 --episodes weeks --number 20",
        _WEEKS,
        (
            ("saf", 85.1, 63.7, 107.8, 2.73),
            ("best-static", 94.7, 72.1, 118.5, 2.76),
            ("f1", 110.2, 82.1, 143.4, 3.21),
            ("random", 146.4, 117.8, 177.5, 4.07),
            ("easy-sjbf", 182.2, 149.5, 214.1, 5.08),
            ("easy", 223.8, 186.1, 263.6, 5.55),
        ),
    ),
    "EnergyBudgetEnv": Reference(
        "--env EnergyBudget --share 0.6 --shutdown --workload KTH-SP2 --episodes weeks --number 20",
        _WEEKS,
        (
            ("saf", 39.2, 23.7, 59.4, 1.23),
            ("best-static", 41.6, 24.4, 62.4, 1.27),
            ("f1", 46.1, 27.2, 69.3, 1.36),
            ("random", 50.5, 32.2, 73.7, 1.56),
            ("easy-sjbf", 58.0, 39.3, 80.0, 1.73),
            ("easy", 75.1, 48.1, 106.2, 1.90),
            ("powercap", 252.3, 192.0, 322.6, 6.34),
        ),
    ),
    "CoSchedule": Reference(
        "greedy-pairs easy-co popularity-co --env CoSchedule --number 20 --cluster 16x2x24"
        " --workload codes:jobs=5000,processes=96,processors=768",
        "20 unseen windows of 256 jobs",
        (
            ("sjf-co", 7.8, 7.7, 7.9, 9.68),
            ("greedy-pairs", 23.7, 22.9, 24.6, 13.83),
            ("easy-co", 28.4, 27.6, 29.3, 14.81),
            ("popularity-co", 28.4, 27.6, 29.3, 14.81),
            ("filler-co", 28.4, 27.6, 29.3, 14.81),
        ),
    ),
}
