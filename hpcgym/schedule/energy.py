"""Power and energy of a schedule as tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.machine.power import Floats
from hpcgym.schedule.books import OVERHEAD, Books
from hpcgym.schedule.schedule import Schedule
from hpcgym.workload.io.swf_header import name_all

if TYPE_CHECKING:
    import pandas as pd


# --- Power and energy as tables -------------------------------------------------------------------


class Energy:
    """Where the energy of a schedule has gone: tables that all sum to the same whole [J].

    The rules are those of :mod:`hpcgym.schedule.books`. ``overhead_j`` is what no job is charged
    with: components above nodes, and nodes that are idle, off or being switched. Columns
    ``with_overhead_j`` spread it over jobs and users in proportion to what they are charged.
    """

    def __init__(self, result: Schedule, books: Books):
        self._result, self._books = result, books

    def __repr__(self) -> str:
        return f"Energy({self.total_j:.6g} J, of which {self.overhead_j:.6g} J overhead)"

    @cached_property
    def total_j(self) -> float:
        """Energy of the machine from the first submission to the last end [J]."""
        return sum(self._books.by_state.values())

    @cached_property
    def overhead_j(self) -> float:
        """What no job is charged with [J]."""
        return sum(self._books.by_state[state] for state in OVERHEAD)

    @cached_property
    def by_state(self) -> pd.DataFrame:
        """One row a state: state, energy_j."""
        import pandas as pd

        states = self._books.by_state
        return pd.DataFrame({"state": list(states), "energy_j": list(states.values())})

    @cached_property
    def by_node(self) -> pd.DataFrame:
        """One row a node: node, group, energy_j, then energy by state, such as idle_j.

        A node has an equal share of the components that it is below. A pool is one node.
        """
        import pandas as pd

        cluster = self._result.cluster
        names = np.array([group.name for group in cluster.groups] or ["pool"], dtype=object)
        table = self._books.by_node
        return pd.DataFrame(
            {
                "node": np.arange(cluster.nodes),
                "group": names[cluster.group_of],
                "energy_j": table.sum(axis=1),
                **{f"{name}_j": table[:, k] for k, name in enumerate(self._books.states)},
            }
        )

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """One row a group of nodes: group, nodes, energy_j, then energy by state."""
        groups = self.by_node.groupby("group", sort=False)
        table = groups.sum().drop(columns="node")
        table.insert(0, "nodes", groups.size())
        return table.reset_index()

    @cached_property
    def by_job(self) -> pd.DataFrame:
        """One row a job: job_number, user_id, energy_j it is charged, with_overhead_j."""
        charged = self._books.by_job()
        return charges(self._result, charged, self.overhead_j, ("energy_j", "with_overhead_j"))

    @cached_property
    def by_user(self) -> pd.DataFrame:
        """One row a user: user_id, jobs, energy_j, with_overhead_j."""
        return by_user(self.by_job)


def charges(
    result: Schedule, charged: Floats, overhead: float, names: tuple[str, str]
) -> pd.DataFrame:
    """Return what jobs are charged, (n_jobs,), and the same with their part of the overhead.

    One row a job: job_number, user_id, and two columns of these names.
    """
    import pandas as pd

    workload = result.workload
    amounts = (charged, charged + overhead * shares(result, charged))
    table = pd.DataFrame({"job_number": workload.job_number, "user_id": workload.user_id})
    return name_all(table.assign(**dict(zip(names, amounts, strict=True))), workload)


def by_user(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the sums of a table of jobs, one row a user, with the number of jobs and the name."""
    users = jobs.drop(columns=["job_number", "user"], errors="ignore").groupby("user_id")
    table = users.sum()
    table.insert(0, "jobs", users.size())
    if "user" in jobs:
        table.insert(0, "user", jobs.groupby("user_id")["user"].first())
    return table.reset_index()


def shares(result: Schedule, charged: Floats) -> Floats:
    """Return the part of the overhead that each job has, (n_jobs,): as of what jobs are charged.

    If no job is charged anything it is that of the processor seconds.
    """
    weights = charged
    if not charged.sum():
        weights = result.workload.requested_processors * result.run_time.astype(np.float64)
    total = weights.sum()
    return weights / total if total else np.zeros(len(weights))


def power_table(books: Books) -> pd.DataFrame:
    """Return the power over time, one row a change: time [s], watts, then watts by state.

    Each row holds up to the time of the next; the last one ends the schedule, with 0 W.
    """
    import pandas as pd

    parts = {f"{state}_w": np.append(power, 0.0) for state, power in books.watts().items()}
    total = np.sum(list(parts.values()), axis=0)
    return pd.DataFrame({"time": books.time, "watts": total, **parts})
