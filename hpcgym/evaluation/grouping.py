"""What policies do for each class of jobs, or for each user: rows beside a leaderboard."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.schedule.groups import GROUPED_BY, group_metrics, metrics_by

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.schedule.result import Result


def check_grouping(by: str | None, metric: str) -> None:
    """Raise an HpcgymError unless groups of jobs have a metric."""
    if by is None:
        return
    check_choice("by", by, GROUPED_BY)
    known = group_metrics()
    if metric not in known:
        raise HpcgymError(
            f"{metric} is of whole schedules, and has no value by {by}; these are of jobs:"
            f" {', '.join(name for name in known if name != 'jobs')}"
        )


@dataclass
class Grouping:
    """Collects a metric of groups of jobs, schedule by schedule.

    Attributes
    ----------
    by : one of :data:`hpcgym.schedule.groups.GROUPED_BY`.
    metric : a name of :func:`hpcgym.schedule.groups.group_metrics`.
    rows : what was found, in order.
    """

    by: str
    metric: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, policy: str, where: str, result: Result) -> None:
        """Take what a policy did on a slice."""
        for group, found in metrics_by(result, self.by, [self.metric]).items():
            self.rows.append({
                "slice": where, self.by: group, "scheduler": policy,
                "jobs": found["jobs"], self.metric: found[self.metric],
            })  # fmt: skip

    def table(
        self, workload: str, failed: Collection[str], trainings: Mapping[str, Collection[str]]
    ) -> pd.DataFrame:
        """Return the rows, without policies that failed; see ``Leaderboard.groups``.

        Parameters
        ----------
        workload : its name.
        failed : policies that failed on some slice: their means could not be compared.
        trainings : row -> the policies that it is the mean of.
        """
        import pandas as pd

        row_of = {one: name for name, members in trainings.items() for one in members}
        out = {*failed, *(row_of[one] for one in failed if one in row_of)}
        columns = ["workload", "slice", self.by, "scheduler", "jobs", self.metric]
        found = pd.DataFrame([{"workload": workload, **row} for row in self.rows], columns=columns)
        found["scheduler"] = [row_of.get(name, name) for name in found["scheduler"]]
        found = found[~found["scheduler"].isin(out)]
        if not row_of:
            return found.reset_index(drop=True)
        return found.groupby(columns[:4], sort=False, as_index=False).mean()
