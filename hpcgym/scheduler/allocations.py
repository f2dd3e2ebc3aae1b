"""Allocations: how nodes are filled, and how jobs share them; and codes of the engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.machine.pool import Cluster

# --- The rules of a scheduler as the engine takes them --------------------------------------------

PER_TIMESTAMP, PER_EVENT = 0, 1  # passes
UNLIMITED = 2**62  # depth: a reservation for every queued job, from its submission on
ALL_JOBS = 2**62  # tested
NO_THRESHOLD = -1  # threshold [s]

# primary and secondary: the orders in which the queue is served and backfilled. SUBMISSION is the
# order of arrival; KEYED orders do not change with time; SCORED ones do, and are computed at each
# pass. PREDICTION (secondary only) is by predicted run time; SELECTION (primary only) comes from
# outside.
SUBMISSION, KEYED, PREDICTION, SELECTION, SCORED, CUBED = range(6)

GIVEN, AVERAGE = 0, 1  # estimate: from outside, or the mean of the user's last jobs
# correction; UNCORRECTED: no prediction can expire; AGAIN: a new prediction; KILL: the job ends
UNCORRECTED, TO_REQUESTED, INCREMENTAL, DOUBLING, AGAIN, KILL = range(6)
NEVER, AFTER_ENDS, EACH_TIME = range(3)  # renews


# --- In which order nodes are filled --------------------------------------------------------------

#: Codes of allocations that fill nodes in an order; in BY_DEMAND the order depends on the job.
FIRST_FIT, BEST_FIT, WORST_FIT, RANDOM, BALANCED, WEIGHTED, HYBRID = range(7)
BY_DEMAND = (WEIGHTED, HYBRID)  # they look at the demands of the job and of the waiting jobs

ALLOCATIONS = {
    "first-fit": "nodes by number",
    "best-fit": "nodes with the least free first, by the sum of its shares of the whole machine",
    "worst-fit": "nodes with the most free first",
    "balanced": "nodes with what others lack, such as GPUs, last, and each kind of them by turns",
    "weighted": "nodes on which least is left of what those ask for that wait",
    "hybrid": "as balanced, and by what is left, as weighted, among nodes of a kind",
    "random": "nodes in random order; random:SEED draws others",
    "contiguous": "nodes of its own in a row, for each job",
    "compact": "co-scheduling: nodes of its own, filled, for each job",
    "spread": "co-scheduling: half of each socket of nodes of its own",
    "half-socket": "co-scheduling: half of each socket; another job may have the other half",
    "part": "co-scheduling: one of K parts of each socket; part:K",
}
#: Parts of each socket at most.
MOST_PARTS = 16


def random_seed(allocation: str) -> int:
    """Return the seed of a random allocation, 0 unless it tells one.

    Raises
    ------
    HpcgymError : see :func:`check_allocation_name`.
    """
    check_allocation_name(allocation)
    name, _, seed = allocation.partition(":")
    return int(seed or 0) if name == "random" else 0


def random_state(seed: int) -> int:
    """Return the state of the generator of random orders that a seed gives, above 0."""
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    return int(state >> np.uint64(1)) | 1


def asks_of(needs: NDArray[np.int64], requested: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each job's demand of all units x (requested time + 1 s), (n_jobs, R).

    Parameters
    ----------
    needs : (n_jobs, 2 + R) of :func:`hpcgym.workload.needs.needs_of`.
    requested : (n_jobs,) [s].
    """
    asks: NDArray[np.int64] = needs[:, :1] * needs[:, 1:-1] * (requested[:, np.newaxis] + 1)
    return asks


def check_allocation_name(allocation: str) -> None:
    """Raise an HpcgymError unless this is an allocation.

    A seed must be a whole number of at least 0, a number of parts 2 to 16.
    """
    name, colon, number = str(allocation).partition(":")
    check_choice("allocation", name if name in ("random", "part") else allocation, ALLOCATIONS)
    whole = number.isascii() and number.isdigit()
    if name == "part" and not (whole and 2 <= int(number) <= MOST_PARTS):
        raise HpcgymError(f"allocation part:K needs a whole number from 2 to {MOST_PARTS}")
    if colon and not whole:
        raise HpcgymError(f"allocation {name}:SEED needs a whole number, not {number!r}")


COSCHEDULED = ("compact", "spread", "half-socket", "part")  # allocations


def check_allocation(allocation: str, cluster: Cluster) -> None:
    """Raise an HpcgymError for an allocation of co-scheduling, or an unusual one on a pool."""
    if allocation.partition(":")[0] in COSCHEDULED:
        raise HpcgymError(
            f"allocation {allocation!r} is for co-scheduling: give simulate() speedups of jobs that"
            " share nodes"
        )
    if allocation != "first-fit" and not cluster.groups:
        raise HpcgymError(
            f"allocation {allocation!r} is for machines with nodes, of which a pool of processors"
            " has none; cluster says which"
        )
