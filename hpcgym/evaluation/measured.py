"""What was measured of policies on slices, made into a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError
from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.seeds import Groups, folded, folded_failures
from hpcgym.scheduler.rules import Scheduler

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Measured:
    """Values of policies.

    Attributes
    ----------
    values : row -> its metrics on each slice, nan where it failed.
    slices : their names.
    metric : by which rows are ranked.
    beside : metrics that are shown beside it.
    failures : (row, slice) -> what went wrong.
    groups : rows of the table that are several of these.
    """

    values: Mapping[str, Sequence[Mapping[str, float]]]
    slices: Sequence[str]
    metric: str
    beside: Sequence[str]
    failures: Mapping[tuple[str, str], str]
    groups: Groups

    def frame(self, metric: str) -> pd.DataFrame:
        """Return a metric, a row a slice, a column a row of the lineup."""
        import pandas as pd

        index = pd.Index(list(self.slices), name="slice")
        columns = {name: [one[metric] for one in found] for name, found in self.values.items()}
        return pd.DataFrame(columns, index=index)

    def with_value(self) -> list[bool]:
        """Return which slices have a value of the metric for all that did not fail.

        Raises
        ------
        HpcgymError : none has.
        """
        frame = self.frame(self.metric)
        for row, where in self.failures:
            frame.loc[where, row] = 0.0
        known: list[bool] = frame.notna().all(axis=1).tolist()
        if not any(known):
            raise HpcgymError(
                f"metric {self.metric!r}: there is no value of it on any slice; it is of schedules,"
                " or of jobs, that are not among these"
            )
        return known


def board_of(
    measured: Measured,
    schedulers: Mapping[str, Scheduler | None],
    *,
    energies: Sequence[str] = (),
    makespans: bool = False,
    **given: Any,
) -> Leaderboard:
    """Return what was measured as a leaderboard.

    Parameters
    ----------
    measured : the values.
    schedulers : row of the lineup -> its rules; None for what acted.
    energies : metrics [J] that have intervals.
    makespans : whether makespans have.
    given : other attributes of the leaderboard.
    """
    import pandas as pd

    known, groups = measured.with_value(), measured.groups

    def frame(metric: str) -> pd.DataFrame:
        return folded(measured.frame(metric)[known], groups)

    def members(metric: str) -> dict[str, pd.DataFrame]:
        found = measured.frame(metric)[known]
        return {name: found[list(rows)] for name, rows in groups.items()}

    others = [*energies, *(["makespan_s"] if makespans else [])]
    beside = [name for name in measured.beside if name not in (measured.metric, *others)]
    ranked = frame(measured.metric)
    rows = {**schedulers, **dict.fromkeys(groups)}
    return Leaderboard(
        by_slice=ranked,
        schedulers={str(name): rows[str(name)] for name in ranked},
        failures=folded_failures(measured.failures, groups),
        costs=pd.DataFrame({name: frame(name).mean(skipna=False) for name in beside}),
        energy={name: frame(name) for name in energies},
        makespans=frame("makespan_s") if makespans else None,
        metric=measured.metric,
        members={m: members(m) for m in (measured.metric, *others)} if groups else {},
        **given,
    )
