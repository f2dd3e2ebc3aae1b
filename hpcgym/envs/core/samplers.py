"""Which episodes are drawn more often than others, by how hard they are for a simple scheduler.

Hard is a high mean bounded slowdown under the shortest job first, without backfilling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.elementary import log
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import Cluster
from hpcgym.schedule.measures import metrics_within
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.allowance import uncounted
from hpcgym.simulation.run import simulate
from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]

SAMPLERS = ("uniform", "hard", "filtered")

#: Of windows, which may begin anywhere, at most so many are looked at: a random sample, always the
#: same.
MOST = 1000

_SJF = Scheduler("spf", backfill="none")


class EpisodeChoice(NamedTuple):
    """Episodes to draw from.

    Attributes
    ----------
    episodes : n of them.
    up_to : (n,) the chance of each and of those before it.
    """

    episodes: Sequence[Episode]
    up_to: Floats

    def draw(self, rng: np.random.Generator) -> Episode:
        """Return one of them, by one call of ``rng.random``."""
        return self.episodes[int(np.searchsorted(self.up_to, rng.random(), side="right"))]


def difficulty(jobs: Workload, episode: Episode, processors: int) -> float:
    """Return the mean bounded slowdown under SJF of the jobs of an episode that count.

    1 where none of them decides anything: all ran when it began.
    """
    with uncounted():
        result = simulate(jobs, _SJF, cluster=Cluster(processors))
    metrics = metrics_within(result, *episode.counting)
    return float(metrics["mean_bsld"]) if metrics["jobs"] else 1.0


def choice_of(sampler: str, episodes: Sequence[Episode], hardness: Floats) -> EpisodeChoice:
    """Return what to draw from.

    Parameters
    ----------
    sampler : "hard" or "filtered".
    episodes : n of them.
    hardness : (n,) the :func:`difficulty` of each, at least 1.

    Raises
    ------
    HpcgymError : none is hard.
    """
    if sampler == "hard":
        weights = log(hardness)
        if not weights.any():
            raise HpcgymError(
                f"sampler='hard': in none of {len(episodes)} episodes anybody waits under SJF, so"
                " that all are equally easy; use 'uniform'"
            )
    else:
        # half of them are at least the median m, so that the mean is at least m / 2: some are left
        weights = (hardness >= np.median(hardness)) & (hardness <= 2 * hardness.mean())
    up_to = np.cumsum(weights, dtype=np.float64)
    return EpisodeChoice(episodes, up_to / up_to[-1])
