"""Rules that act in ``hpcgym/CoSchedule-v1`` as agents do, with ``action="pair"``.

The first two are orders of the jobs that find room, and leave it to the environment's rule
``partners`` on which nodes they start: as the co-schedulers of ELiSE do, which can be simulated.
None ever waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice

Floats = NDArray[np.float64]
Observation = Mapping[str, NDArray[Any]]

# places in the fields of an observation; docs/environments/co-schedule.md has all of them
_IDLE = 0  # of "machine"
_NODES, _ALONE = 0, 4  # of "jobs"


def speedups(shown: NDArray[Any]) -> Floats:
    """Return speedups s that an observation shows as s / (s + 1); 0 without any."""
    values = np.asarray(shown, np.float64)
    return values / (1.0 - values)


class PairPolicy:
    """A rule that names the job that starts next, and maybe the job beside which it runs.

    Parameters
    ----------
    name : one of ``PAIR_POLICIES``.

    Raises
    ------
    HpcgymError : another name.

    Examples
    --------
    >>> from hpcgym.baselines.pair_policies import PairPolicy
    >>> PairPolicy("greedy-pairs")
    PairPolicy('greedy-pairs')
    """

    def __init__(self, name: str) -> None:
        check_choice("pair policy", name, PAIR_POLICIES)
        self.name = name
        self._workload: Any = None
        self._nodes = 0

    def __repr__(self) -> str:
        return f"PairPolicy({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode; to be called after each reset.

        Raises
        ------
        HpcgymError : an environment in which no pairs are named, or whose observations are flat.
        """
        env = getattr(env, "unwrapped", env)
        if getattr(env, "action", "") != "pair" or env.options.flat:
            raise HpcgymError(
                f"{self.name} acts in hpcgym/CoSchedule-v1 with action='pair' and"
                " observation='dict'"
            )
        self._workload, self._nodes = env.episode_workload, env.options.cluster.nodes

    def act(self, observation: Observation, info: Mapping[str, Any]) -> int:
        """Return the number of a pair, or of waiting where no visible job finds room."""
        if self._workload is None:
            raise HpcgymError(f"{self.name}: call begin(env) after the reset, then act")
        mask = info["action_mask"]
        scores = np.full(len(mask) - 1, -np.inf)
        rows: NDArray[np.int64] = info["window"][info["window"] >= 0]
        table = scores.reshape(len(info["window"]), -1)  # a view
        table[: len(rows), 0] = 0.0  # beside no named job: the rule ``partners`` decides
        if self.name == "sjf-pairs":
            table[: len(rows), 0] = -self._workload.requested_time[rows]
        elif self.name == "greedy-pairs":
            table[: len(rows)] = self._speedups(observation, len(rows))
        scores[mask[:-1] == 0] = -np.inf
        if not np.isfinite(scores).any():
            return len(mask) - 1
        return int(scores.argmax())

    def _speedups(self, seen: Observation, n: int) -> Floats:
        """Return speedups of the first n visible jobs, (n, 1 + neighbours): alone, with each."""
        both = speedups(seen["pairs"][:n]).mean(axis=-1)
        # a job is as fast on its own nodes as it is alone; if these are too few, it is not known
        idle = np.rint(float(seen["machine"][_IDLE]) * self._nodes)
        needed = np.rint(seen["jobs"][:n, _NODES].astype(np.float64) * self._nodes)
        alone = np.where(needed <= idle, speedups(seen["jobs"][:n, _ALONE]), 0.0)
        return np.column_stack([alone, np.where(both > 0, both, -np.inf)])


#: Name -> what it does.
PAIR_POLICIES = {
    "first-pairs": "in order of submission, any job that finds room",
    "sjf-pairs": "the shortest that finds room, in the order of sjf-co",
    "greedy-pairs": "the pair of the greatest mean speedup of both, or a job alone if that is more",
}
