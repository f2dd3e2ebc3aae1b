"""A package that adds a reader, a generator, a machine, two policies and an agent to hpcgym."""

from pathlib import Path

import numpy as np

from hpcgym import Cluster, Workload
from hpcgym.files import lines_of
from hpcgym.machine import NodeGroup


class Tally:
    """Logs that begin with "tally 64", processors; then submit time, run time, processors."""

    def recognizes(self, path: Path, head: bytes) -> bool:
        """Tell whether a file is such a log, by its name or first bytes."""
        return head.startswith(b"tally ")

    def read(self, path: Path, how) -> Workload:
        """Read one; ``how`` is a ReadOptions, which may tell another size of the machine."""
        (_, size), *jobs = (line.split() for line, _ in lines_of(path, "a tally"))
        names = ("submit_time", "run_time", "requested_processors")
        columns = dict(zip(names, np.array(jobs, int).T, strict=True))
        return Workload.from_columns(
            columns, processors=how.processors or int(size), name=path.name
        )


def waves(jobs: int = 100, processors: int = 64, seed: int = 0) -> Workload:
    """Ten jobs come together each hour; each runs for up to two hours on up to half the machine."""
    random = np.random.default_rng(seed)
    run_time = random.integers(60, 7200, jobs)
    columns = {
        "submit_time": np.arange(jobs) // 10 * 3600,
        "run_time": run_time,
        "requested_time": 2 * run_time,
        "requested_processors": random.integers(1, processors // 2 + 1, jobs),
    }
    return Workload.from_columns(columns, processors=processors, name=f"waves seed {seed}")


CORNER = Cluster(groups=[NodeGroup("thin", 4, {"core": 16})], name="corner")

PATIENT = "wait - 600 * processors"  # an expression, or weights by feature


def narrow(view):
    """Fewest processors first; a function of a PassView returns a score for each queued job."""
    return -view.units * view.per_unit[:, 0]


class Newest:
    """Selects the job that was submitted last, of those that are visible."""

    env_id = "hpcgym/JobSelection-v2"

    def act(self, observation, info) -> int:
        """Return the place of a job."""
        return int(np.flatnonzero(info["action_mask"])[-1])
